"""Patterns of whole functions: as they are known by hand, and of random programs never too small."""

from __future__ import annotations

import itertools
import os

import numpy as np
import programs
import pytest
from patterns import nonzero, pattern

from retrograde import (
    Buffer,
    ConversionError,
    checkpointed,
    dropgrad,
    forwarddiff,
    gradient,
    hessian,
    hook,
    ignore,
    jvp,
    primitive,
)
from retrograde.sparse.detect import detect

pytest.importorskip("scipy")

N = 6
X = np.linspace(0.5, 1.5, N)


def band(*offsets: int, n: int = N) -> np.ndarray:
    return sum((np.eye(n, k=k, dtype=bool) for k in offsets), np.zeros((n, n), bool))


def filled(x):
    """A tridiagonal residual in an array made inside, by element, by slice and through a view."""
    r = np.empty(len(x))
    r[0] = x[0] - x[1]
    r[1:-1] = x[:-2] - 2 * x[1:-1] ** 2
    inner = r[1:-1]
    inner += x[2:]
    r[-1] = x[-1] * x[-2]
    return r


def looped(x):
    return np.array([x[max(i - 1, 0)] * np.sin(x[i]) + x[min(i + 1, N - 1)] for i in range(N)])


def stencil(x):
    """A constant matrix, most of which is zero."""
    return (np.eye(N, k=1) - 2 * np.eye(N) + np.eye(N, k=-1)) @ x


def buffered(x):
    b = Buffer(x, N)
    b[0] = x[0] - x[1]
    for i in range(1, N - 1):
        b[i] = x[i - 1] * x[i] * x[i + 1]
    b[N - 1] = x[N - 1] * x[N - 2]
    return b.copy()


def stepped(x):
    for _ in range(3):
        x = x + 0.1 * (np.roll(x, 1) - 2 * x + np.roll(x, -1))
    return x


TRIDIAGONAL = band(-1, 0, 1)


@pytest.mark.parametrize("f", [filled, looped, stencil, buffered, lambda x: checkpointed(filled, x)])
def test_a_tridiagonal_function_is_found_to_be_one(f):
    np.testing.assert_array_equal(pattern(f, X), TRIDIAGONAL)


def test_every_step_of_a_loop_widens_the_band():
    wide = np.array([[min(abs(i - j), N - abs(i - j)) <= 3 for j in range(N)] for i in range(N)])
    np.testing.assert_array_equal(pattern(stepped, X), wide)


def test_the_zeros_of_an_argument_are_not_taken_for_constants():
    np.testing.assert_array_equal(pattern(filled, np.zeros(N)), TRIDIAGONAL)
    np.testing.assert_array_equal(pattern(lambda x: x[:-1] * x[1:], np.zeros(3)), [[1, 1, 0], [0, 1, 1]])


def test_the_zeros_of_a_constant_leave_nothing():
    mask = np.array([1.0, 0.0, 1.0])
    np.testing.assert_array_equal(pattern(lambda x: mask * x**2, np.ones(3)), np.diag(mask != 0))
    np.testing.assert_array_equal(pattern(lambda x: x * 0.0, np.ones(3)), np.zeros((3, 3)))


def test_of_a_choice_what_was_chosen_counts_in_the_run_and_everything_in_all():
    x = np.array([1.0, -1.0, 2.0])
    for f, chosen in (
        (lambda x: np.maximum(x, 0.0), [1, 0, 1]),
        (lambda x: np.where(x > 0, x, 0.0), [1, 0, 1]),
        (lambda x: np.clip(x, -0.5, 1.5), [1, 0, 0]),
    ):
        np.testing.assert_array_equal(pattern(f, x), np.diag(chosen))
        np.testing.assert_array_equal(pattern(f, x, exact=False), np.eye(3))
    np.testing.assert_array_equal(pattern(np.max, x), [[0, 0, 1]])
    np.testing.assert_array_equal(pattern(np.max, x, exact=False), [[1, 1, 1]])
    np.testing.assert_array_equal(pattern(np.sort, x), [[0, 1, 0], [1, 0, 0], [0, 0, 1]])
    np.testing.assert_array_equal(pattern(np.sort, x, exact=False), np.ones((3, 3)))


def test_elements_that_tie_for_an_extreme_are_all_in_the_pattern():
    x = np.array([2.0, 1.0, 2.0])
    np.testing.assert_array_equal(pattern(np.max, x), [[1, 0, 1]])
    np.testing.assert_array_equal(pattern(lambda x: np.maximum(x, x[::-1]), x), [[1, 0, 1], [0, 1, 0], [1, 0, 1]])
    accumulated = pattern(np.maximum.accumulate, np.array([1.0, 1.0, 0.0, 2.0]))
    np.testing.assert_array_equal(accumulated, [[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 0, 1]])


def test_the_pattern_of_a_gradient_is_that_of_the_hessian():
    def f(x):
        return np.sum(x[1:] * x[:-1] ** 2) + 3 * np.sum(x) + np.sin(x[0])

    np.testing.assert_array_equal(
        pattern(lambda x: gradient(f, x)[0], X), TRIDIAGONAL & ~np.diag(np.arange(N) == N - 1)
    )
    # A linear function has none.
    assert not pattern(lambda x: gradient(lambda y: np.sum(y * np.arange(N)), x)[0], X).any()


def test_transforms_inside_a_function_pass_patterns_on():
    # The first element enters linearly.
    pushed = pattern(lambda x: jvp(filled, (x,), (np.ones(N),))[1], X)
    np.testing.assert_array_equal(pushed.any(axis=0), [0, 1, 1, 1, 1, 1])
    dense = hessian(lambda x: np.sum(x[1:] ** 2 * x[:-1]), X)
    np.testing.assert_array_equal(
        pattern(lambda x: hessian(lambda x: np.sum(x[1:] ** 2 * x[:-1]), x).ravel(), X).any(axis=1), dense.ravel() != 0
    )
    np.testing.assert_array_equal(pattern(lambda x: forwarddiff(np.sin, x), X), np.eye(N))
    np.testing.assert_array_equal(pattern(lambda x: hook(print, x) ** 2, X), np.eye(N))


def test_what_is_dropped_is_no_dependence():
    np.testing.assert_array_equal(pattern(lambda x: x * dropgrad(x[::-1]), X), np.eye(N))
    np.testing.assert_array_equal(pattern(lambda x: ignore(lambda: x * 2), X), np.zeros((N, N)))


def test_a_function_of_the_users_own_is_dense():
    scale = primitive(lambda x: 2 * x)
    np.testing.assert_array_equal(pattern(scale, np.ones(3)), np.ones((3, 3)))


def test_rows_and_columns_are_the_numbers_of_containers_in_their_order():
    f = lambda p: {"b": p["w"] * 2, "a": p["w"][0] * p["v"]}
    x = {"w": np.ones(2), "v": 3.0}
    _, (indptr, indices) = detect(f, (x,), {}, 3, True)
    # Columns v, w0, w1; rows a, b0, b1.
    assert [indices[a:b].tolist() for a, b in itertools.pairwise(indptr)] == [[0, 1], [1], [2]]


def test_the_parts_of_a_complex_number_depend_on_what_they_come_from():
    def f(x):
        z = np.zeros(2, complex)
        z[:] = x[:2]
        return [z, z.imag, z.real, z * (1 + 1j * x[2])]

    found = pattern(f, np.ones(3))
    np.testing.assert_array_equal(found[:2], found[4:6])
    np.testing.assert_array_equal(found[:2], [[1, 0, 0], [0, 1, 0]])
    assert not found[2:4].any()
    np.testing.assert_array_equal(found[6:], [[1, 0, 1], [0, 1, 1]])


def test_empty_arguments_and_results_have_empty_patterns():
    assert pattern(lambda x: x * 2, np.zeros(0)).shape == (0, 0)
    assert pattern(lambda x: x[:0], X).shape == (0, N)
    assert not pattern(lambda x: np.ones(3), X).any()
    np.testing.assert_array_equal(pattern(lambda x: x**2, 3.0), [[1]])
    np.testing.assert_array_equal(pattern(lambda x: x**2, np.array(3.0)), [[1]])


def test_a_sum_that_everything_is_divided_by_costs_no_square():
    n = 20_000
    x = np.linspace(1, 2, n)

    def f(x):
        share = x / np.sum(x)
        return np.concatenate([x[1:] - x[:-1], [np.sum(share**2), np.max(share)]])

    _, (_, indices) = detect(f, (x,), {}, n, True)
    assert len(indices) == 2 * (n - 1) + 2 * n


# --- random programs ---------------------------------------------------------------------------------------------

SEEDS = range(4000 if "RETROGRADE_LONG" in os.environ else 120)


def _joined(reals, complexes=()):
    parts = [np.ravel(x) for x in reals]
    for z in complexes:
        parts += [np.ravel(np.real(z)), np.ravel(np.imag(z))]
    return np.concatenate(parts)


@pytest.mark.parametrize("kinds", ["KINDS", "COMPLEX_KINDS"])
def test_the_pattern_of_a_random_program_holds_its_jacobian(kinds):
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        program = programs.draw_program(lambda n: int(rng.integers(n)), getattr(programs, kinds), ("C", "Fortran"))  # noqa: B023
        f = program.function(programs.TRACED | {"loss": _joined})
        entries = nonzero(f, *program.arrays())
        in_run = pattern(f, *program.arrays())
        in_all = pattern(f, *program.arrays(), exact=False)
        assert not np.any(entries & ~in_run), f"{program}\n{entries & ~in_run}"
        assert not np.any(in_run & ~in_all), f"{program}\n{in_run & ~in_all}"


# --- the pattern of every run ------------------------------------------------------------------------------------

DECIDING = {
    "if": lambda x: x * 2 if x[0] > 0 else x**2,
    "if, a number": lambda x: x * 2 if x[0] else x,
    "and": lambda x: x * 2 if (x[0] > 0 and x[1] > 0) else x,
    "while": lambda x: _halved(x),
    "max": lambda x: max(x[0], x[1]) * x,
    "sorted": lambda x: np.array(sorted([x[0], x[1]])),
    "np.any": lambda x: x if np.any(x > 0) else x * 2,
    "mask": lambda x: x[x > 0],
    "mask to write": lambda x: _masked(x),
    "argmax": lambda x: x * x[np.argmax(x)],
    "argsort": lambda x: np.take(x, np.argsort(x)),
    "nonzero": lambda x: x[np.nonzero(x > 0)],
    "where": lambda x: x[np.where(x > 0)],
    "count": lambda x: x[: np.count_nonzero(x > 0)],
    "int": lambda x: x * int(np.argmax(x)),
    "range": lambda x: sum((x[i] for i in range(np.argmax(x))), start=x[0]),
    "in a gradient": lambda x: gradient(lambda y: np.sum(y**2) if y[0] > 0 else np.sum(y**3), x)[0],
}


def _halved(x):
    while np.sum(x) > 1:
        x = x / 2
    return x


def _masked(x):
    y = np.copy(x)
    y[x > 0] = 0.0
    return y


@pytest.mark.parametrize("name", DECIDING)
def test_what_the_values_decide_is_refused_where_every_run_counts(name):
    x = np.array([0.5, 1.5, -1.0])
    with pytest.raises(ConversionError, match=r"pattern='all'(.|\n)*np.where\(condition, a, b\)(.|\n)*pattern='run'"):
        pattern(DECIDING[name], x, exact=False)
    entries = nonzero(DECIDING[name], x)
    assert not np.any(entries & ~pattern(DECIDING[name], x))


CHOOSING = {
    "where": lambda x: np.where(x > 0, x, x[::-1]),
    "mask times": lambda x: (x > 0) * x,
    "masks": lambda x: ((x > 0) & ~(x > 1) | (x < -2)) * x,
    "logical": lambda x: np.where(np.logical_and(x > 0, np.isfinite(x)), 1.0, 0.0) * x,
    "mask product": lambda x: np.diag(np.where(x > 0, 1.0, 0.0)) @ x,
    "sort": np.sort,
    "partition": lambda x: np.partition(x, 1),
    "median": np.median,
    "max": np.max,
    "maximum": lambda x: np.maximum(x, x[::-1]),
    "clip": lambda x: np.clip(x, -0.5, 1.0),
    "running": np.maximum.accumulate,
    "unique": np.unique,
    "select": lambda x: np.select([x > 1, x > 0], [x**2, x[::-1]], 0.0),
    "interpolation": lambda x: np.interp(0.3, [0.0, 1.0, 2.0], x),
    "slope of a maximum": lambda x: gradient(lambda x: np.sum(np.maximum(x, 0.0) ** 2), x)[0],
    "slope of a sort": lambda x: gradient(lambda x: np.sum(np.sort(x) ** 2 * np.arange(3)), x)[0],
    "slope of an extreme": lambda x: gradient(lambda x: np.max(x) ** 2 + np.min(x[:2]) ** 3, x)[0],
    "slope of a median": lambda x: gradient(lambda x: np.median(x) ** 2, x)[0],
    "slope of a norm": lambda x: gradient(lambda x: np.linalg.norm(x, 1) ** 2, x)[0],
    "slope of a product": lambda x: gradient(lambda x: np.prod(x), x)[0],
    "slope of a choice": lambda x: gradient(lambda x: np.sum(np.where(x > 0, x**2, x**3)), x)[0],
}


@pytest.mark.parametrize("name", CHOOSING)
def test_the_pattern_of_every_run_holds_that_of_any(name):
    f = CHOOSING[name]
    rng = np.random.default_rng(0)
    found = pattern(f, np.array([0.5, 1.5, -1.0]), exact=False)
    for _ in range(10):
        x = rng.uniform(-2, 2, 3)
        assert not np.any(nonzero(f, x) & ~found)
        np.testing.assert_array_equal(pattern(f, x, exact=False), found)


def test_the_zeros_of_a_constant_are_zeros_in_every_run():
    np.testing.assert_array_equal(pattern(stencil, X, exact=False), TRIDIAGONAL)
    np.testing.assert_array_equal(pattern(filled, X, exact=False), TRIDIAGONAL)
    np.testing.assert_array_equal(
        pattern(lambda x: np.array([1.0, 0.0]) * x, np.ones(2), exact=False), [[1, 0], [0, 0]]
    )


def test_nothing_is_refused_after_a_pattern_was_found():
    pattern(lambda x: x * 2, X, exact=False)
    assert pattern(lambda x: x if x[0] > 0 else x * 2, X).any()
    with pytest.raises(ConversionError):
        pattern(lambda x: x if x[0] > 0 else x * 2, X, exact=False)
    assert gradient(lambda x: np.sum(x) if x[0] > 0 else np.prod(x), X)[0].all()


def test_in_another_run_a_set_may_hold_other_elements():
    x = np.array([1.0, -1.0, 2.0])
    for f in (
        lambda x: np.setdiff1d(x, [2.0]),
        lambda x: np.intersect1d(x, [1.0, 2.0]),
        lambda x: np.setxor1d(x, [2.0]),
        lambda x: np.unique_all(x).values[:2],
        lambda x: np.unique_inverse(x).values[:2],
    ):
        assert pattern(f, x).sum() == 2
        np.testing.assert_array_equal(pattern(f, x, exact=False), np.ones((2, 3)))
