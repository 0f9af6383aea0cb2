"""Colourings: right on random patterns, of the known size on known ones, and linear in time and memory."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from retrograde.sparse.colouring import column_colours, count, readable, star_colours
from retrograde.sparse.compression import Compression
from retrograde.sparse.pattern import Pattern

sparse = pytest.importorskip("scipy.sparse")


def of(matrix) -> Pattern:
    matrix = sparse.csr_array(matrix)
    return Pattern.of(matrix, matrix.shape, "matrix")


def band(n, width):
    return sparse.diags_array([np.ones(n - abs(k)) for k in range(-width, width + 1)], offsets=range(-width, width + 1))


def arrow(n, at):
    matrix = sparse.lil_array((n, n))
    matrix.setdiag(1)
    matrix[at, :] = 1
    matrix[:, at] = 1
    return matrix


def grid(k):
    line = band(k, 1)
    return sparse.kronsum(line, line)


def random(rng, m, n):
    return rng.random((m, n)) < rng.uniform(0.02, 0.5)


def test_no_row_has_two_columns_of_one_colour():
    rng = np.random.default_rng(0)
    for _ in range(150):
        pattern = of(random(rng, *rng.integers(0, 25, 2)))
        colours = column_colours(pattern)
        seen = Counter(zip(pattern.rows().tolist(), colours[pattern.indices].tolist(), strict=True))
        assert all(number == 1 for number in seen.values())
        assert np.array_equal(colours < 0, np.bincount(pattern.indices, minlength=pattern.shape[1]) == 0)


def test_every_entry_of_a_symmetric_matrix_is_alone_where_it_is_read():
    rng = np.random.default_rng(1)
    for _ in range(200):
        half = random(rng, *[rng.integers(0, 25)] * 2)
        pattern = of(half | half.T)
        colours = star_colours(pattern)
        rows, colour = readable(pattern, colours)
        seen = Counter(zip(pattern.rows().tolist(), colours[pattern.indices].tolist(), strict=True))
        assert all(seen[place] == 1 for place in zip(rows.tolist(), colour.tolist(), strict=True))
        own = (rows == pattern.rows()) & (colour == colours[pattern.indices])
        mirrored = (rows == pattern.indices) & (colour == colours[pattern.rows()])
        assert np.all(own | mirrored)


@pytest.mark.parametrize(
    ("matrix", "columns", "stars"),
    [
        (band(300, 0), 1, 1),
        (band(300, 1), 3, 3),
        (band(300, 2), 5, 5),
        (arrow(300, 0), 300, 2),
        (arrow(300, -1), 300, 2),
        (arrow(300, 150), 300, 2),
    ],
    ids=["diagonal", "tridiagonal", "pentadiagonal", "arrow", "arrow last", "arrow amid"],
)
def test_known_patterns_need_the_known_number_of_colours(matrix, columns, stars):
    assert count(column_colours(of(matrix))) == columns
    assert count(star_colours(of(matrix))) == stars


def test_a_grid_needs_few_colours():
    assert count(column_colours(of(grid(20)))) <= 8
    assert count(star_colours(of(grid(20)))) <= 6


def test_most_neighbours_first_helps_where_the_order_of_the_columns_does_not():
    # A crown: greedy in the order u0 v0 u1 v1 … needs n colours, and two are enough.
    n = 8
    rows = [(2 * i, 2 * j + 1) for i in range(n) for j in range(n) if i != j]
    pendant = [(2 * i, 2 * n + i) for i in range(n)]
    matrix = np.zeros((len(rows) + len(pendant), 3 * n), bool)
    for k, pair in enumerate(rows + pendant):
        matrix[k, list(pair)] = True
    assert count(column_colours(of(matrix))) == 2


@pytest.mark.parametrize("mode", ["auto", "forward", "reverse", "both"])
def test_the_entries_of_a_matrix_are_read_from_its_products(mode):
    rng = np.random.default_rng(2)
    for matrix in (band(30, 1), arrow(30, 0), grid(5), random(rng, 20, 30), random(rng, 30, 4), np.zeros((3, 4))):
        pattern = of(matrix)
        compression = Compression.of_jacobian(pattern, mode)
        J = np.zeros(pattern.shape)
        J[pattern.rows(), pattern.indices] = rng.standard_normal(pattern.nnz)
        for step in (1, 3, 1000):
            entries = np.full(pattern.nnz, np.nan)
            for number, directions, factor, is_reverse in zip(
                compression.counts, (compression.directions, compression.seeds), (J.T, J), (False, True), strict=True
            ):
                for start in range(0, number, step):
                    products = directions(start, min(start + step, number)) @ factor
                    compression.fill(entries, products, start, is_reverse)
            np.testing.assert_allclose(entries, J[pattern.rows(), pattern.indices])


def test_the_fewest_passes_are_taken():
    def passes(matrix, mode="auto"):
        return (found := Compression.of_jacobian(of(matrix), mode)).mode, found.passes

    assert passes(band(100, 1)) == ("forward", 3)
    assert passes(np.ones((2, 50))) == ("reverse", 2)
    assert passes(np.ones((50, 2))) == ("forward", 2)
    assert passes(arrow(100, 0)) == ("both", 3)
    assert passes(arrow(100, 0), "forward") == ("forward", 100)
    assert Compression.of_hessian(of(arrow(100, 0))).passes == 2


def test_a_pattern_is_taken_as_it_is_given():
    given = sparse.coo_array(([1.0, 0.0, 2.0, 3.0], ([0, 0, 1, 1], [0, 2, 1, 1])), (2, 3))
    pattern = Pattern.of(given, (2, 3), "matrix")
    # What is stored counts, zero or not, and once.
    assert pattern.indptr.tolist() == [0, 2, 3]
    assert pattern.indices.tolist() == [0, 2, 1]
    assert Pattern.of(np.array([[0.0, 1.0], [0.0, 0.0]]), (2, 2), "matrix").indices.tolist() == [1]
    assert Pattern.beside([pattern, pattern]).indices.tolist() == [0, 2, 3, 5, 1, 4]
    assert pattern.part(np.array([False, True])).indptr.tolist() == [0, 0, 1]
    assert of(np.triu(np.ones((3, 3)))).symmetric().indices.tolist() == [0, 1, 2]
