"""Hermitian matrices of which one triangle is read."""

from __future__ import annotations

import numpy as np
import pytest

from retrograde.rules.triangles import from_triangle, to_triangle

A = np.array([[1 + 9j, 2 + 1j], [3 - 2j, 4 + 8j]])


def test_one_triangle_and_the_real_diagonal_make_the_matrix() -> None:
    np.testing.assert_array_equal(from_triangle(A), [[1, 3 + 2j], [3 - 2j, 4]])
    np.testing.assert_array_equal(from_triangle(A, lower=False), [[1, 2 + 1j], [2 - 1j, 4]])


@pytest.mark.parametrize("lower", [True, False])
def test_to_triangle_is_the_adjoint(lower: bool) -> None:
    h_bar = np.array([[1j + 2, 5.0], [7j, 3 - 1j]])
    want = np.vdot(h_bar, from_triangle(A, lower)).real
    assert np.vdot(to_triangle(h_bar, lower), A).real == pytest.approx(want)


def test_infinity_in_the_triangle_that_is_not_read_is_ignored() -> None:
    np.testing.assert_array_equal(from_triangle(np.array([[1.0, np.inf], [2.0, 3.0]])), [[1, 2], [2, 3]])
