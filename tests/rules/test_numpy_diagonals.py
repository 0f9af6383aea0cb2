"""Hand-worked numbers for triangles and diagonals, the off-diagonal and the empty ones above all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograde.rules.numpy_diagonals  # noqa: F401  defines the rules
from retrograde.rules.table import RULES, Like, Linear


def adjoint(function: Any, y_bar: Any, like: tuple[int, ...], *args: Any, **kwargs: Any) -> Any:
    rule = RULES[function]
    assert isinstance(rule, Linear)
    return rule.adjoints[0](np.asarray(y_bar, float), Like(like, np.dtype(float)), *args, **kwargs)


@pytest.mark.parametrize(
    ("offset", "y_bar", "expected"),
    [
        (0, [1, 2], [[1, 0, 0], [0, 2, 0]]),
        (1, [1, 2], [[0, 1, 0], [0, 0, 2]]),
        (2, [1], [[0, 0, 1], [0, 0, 0]]),
        (3, [], [[0, 0, 0], [0, 0, 0]]),
        (-1, [1], [[0, 0, 0], [1, 0, 0]]),
        (-2, [], [[0, 0, 0], [0, 0, 0]]),
    ],
)
def test_diagonal_pulls_back_to_its_place(offset: int, y_bar: Any, expected: Any) -> None:
    np.testing.assert_array_equal(adjoint(np.diagonal, y_bar, (2, 3), offset), expected)
    np.testing.assert_array_equal(adjoint(np.diag, y_bar, (2, 3), offset), expected)


@pytest.mark.parametrize(("offset", "expected"), [(0, [[5, 0], [0, 5]]), (1, [[0, 5], [0, 0]]), (2, [[0, 0], [0, 0]])])
def test_trace_pulls_back_one_number_to_the_whole_diagonal(offset: int, expected: Any) -> None:
    np.testing.assert_array_equal(adjoint(np.trace, 5, (2, 2), offset), expected)


def test_diagonals_of_exchanged_axes_are_those_of_the_transposed_matrices() -> None:
    bar = adjoint(np.diagonal, [[1, 2]], (2, 1, 3), 1, axis1=0, axis2=2)
    np.testing.assert_array_equal(bar[:, 0], [[0, 1, 0], [0, 0, 2]])
    bar = adjoint(np.diagonal, [[1]], (2, 1, 3), 1, axis1=2, axis2=0)
    np.testing.assert_array_equal(bar[:, 0], [[0, 0, 0], [1, 0, 0]])


def test_diag_of_a_vector_pulls_back_from_its_diagonal_alone() -> None:
    np.testing.assert_array_equal(adjoint(np.diag, [[1, 2], [3, 4]], (1,), -1), [3])


def test_diagflat_pulls_back_in_the_shape_of_its_argument() -> None:
    np.testing.assert_array_equal(adjoint(np.diagflat, np.diag([1, 2, 3, 4]), (2, 2)), [[1, 2], [3, 4]])


def test_tril_of_a_vector_sums_the_rows_that_it_was_broadcast_to() -> None:
    np.testing.assert_array_equal(adjoint(np.tril, np.ones((3, 3)), (3,)), [3, 2, 1])
    np.testing.assert_array_equal(adjoint(np.triu, np.ones((3, 3)), (3,), 1), [0, 1, 2])
