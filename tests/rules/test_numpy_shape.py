"""Hand-worked numbers for reshapes, transpositions, repetitions, casts and windows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

import retrograde.rules.numpy_shape  # noqa: F401  defines the rules
from retrograde.errors import UnsupportedArgumentError
from retrograde.rules.numpy_shape import fold_windows
from retrograde.rules.table import RULES, Composed, General, Like, Linear


def adjoint(function: Any, y_bar: Any, like: tuple[int, ...], *args: Any, **kwargs: Any) -> Any:
    rule = RULES[function]
    assert isinstance(rule, Linear)
    return rule.adjoints[0](np.asarray(y_bar, float), Like(like, np.dtype(float)), *args, **kwargs)


def pull(function: Any, y_bar: Any, *args: Any, **kwargs: Any) -> Any:
    rule = RULES[function]
    assert isinstance(rule, General)
    return rule.pullback(function(*args, **kwargs), *args, **kwargs)(y_bar)[0]


def push(function: Any, x_dot: Any, *args: Any, **kwargs: Any) -> Any:
    rule = RULES[function]
    assert isinstance(rule, General)
    return rule.pushforward(function(*args, **kwargs), *args, **kwargs)(x_dot)


def body(function: Any, *args: Any, **kwargs: Any) -> Any:
    rule = RULES[function]
    assert isinstance(rule, Composed)
    return rule.body(*args, **kwargs)


def test_reshape_in_fortran_order_pulls_back_in_fortran_order() -> None:
    bar = pull(np.reshape, np.array([1.0, 2.0, 3.0, 4.0]), np.zeros((2, 2)), -1, order="F")
    np.testing.assert_array_equal(bar, [[1, 3], [2, 4]])


@pytest.mark.parametrize("order", ["A", "K"])
def test_order_of_memory_is_refused_in_both_modes(order: str) -> None:
    x = np.zeros((2, 2), order="F")
    with pytest.raises(UnsupportedArgumentError, match="order='C' or order='F'"):
        pull(np.ravel, np.zeros(4), x, order)
    with pytest.raises(UnsupportedArgumentError, match="as they happen to lie in memory"):
        push(np.ravel, x, x, order)


def test_transpose_by_a_cycle_pulls_back_by_the_inverse_cycle() -> None:
    y_bar = np.arange(24.0).reshape(4, 2, 3)
    np.testing.assert_array_equal(adjoint(np.transpose, y_bar, (2, 3, 4), (2, 0, 1))[1, 2], y_bar[:, 1, 2])


@pytest.mark.parametrize(("axis", "start"), [(0, 0), (0, 1), (0, 3), (2, 0), (2, 2), (1, -1), (-1, -3), (-2, 3)])
def test_rollaxis_goes_where_numpy_puts_it(axis: int, start: int) -> None:
    x = np.zeros((2, 3, 4))
    assert body(np.rollaxis, x, axis, start).shape == np.rollaxis(x, axis, start).shape


def test_atleast_3d_of_a_vector_puts_it_in_the_middle() -> None:
    assert body(np.atleast_3d, np.zeros(2)).shape == (1, 2, 1)


def test_atleast_2d_of_several_gives_a_tuple_and_leaves_a_matrix_as_it_is() -> None:
    x = np.zeros((2, 2))
    number, matrix = body(np.atleast_2d, 1.0, x)
    assert number.shape == (1, 1)
    assert matrix is x


def test_broadcast_arrays_of_one_array_is_a_tuple_still() -> None:
    assert isinstance(body(np.broadcast_arrays, np.zeros(2)), tuple)


def test_broadcast_to_no_rows_pulls_back_to_zeros() -> None:
    np.testing.assert_array_equal(adjoint(np.broadcast_to, np.zeros((0, 2)), (2,), (0, 2)), [0, 0])


def test_roll_along_one_axis_twice_pulls_back_both_shifts() -> None:
    np.testing.assert_array_equal(adjoint(np.roll, [1, 2, 3, 4], (4,), (1, 2), (0, 0)), [4, 1, 2, 3])


def test_repeat_sums_the_copies_of_each_element() -> None:
    np.testing.assert_array_equal(adjoint(np.repeat, [1, 2, 3, 4], (2,), 2), [3, 7])


def test_repeat_by_different_numbers_gives_zero_where_there_is_no_copy() -> None:
    np.testing.assert_array_equal(adjoint(np.repeat, [1, 2, 4], (3,), [2, 0, 1]), [3, 0, 4])


def test_repeat_no_times_pulls_back_to_zeros() -> None:
    np.testing.assert_array_equal(adjoint(np.repeat, np.zeros((2, 0)), (2, 3), 0, axis=1), np.zeros((2, 3)))


def test_tile_sums_over_the_tiles() -> None:
    np.testing.assert_array_equal(adjoint(np.tile, [[1, 2, 3, 4], [10, 20, 30, 40]], (2,), (2, 2)), [44, 66])


def test_resize_sums_over_whole_and_broken_repetitions() -> None:
    np.testing.assert_array_equal(adjoint(np.resize, [[1, 2], [3, 4], [5, 6]], (4,), (3, 2)), [6, 8, 3, 4])


def test_resize_to_less_gives_zeros_for_the_rest() -> None:
    np.testing.assert_array_equal(adjoint(np.resize, [7], (2, 2), 1), [[7, 0], [0, 0]])


def test_resize_of_nothing_pulls_back_to_nothing() -> None:
    assert adjoint(np.resize, [0, 0], (0,), 2).shape == (0,)


def test_astype_to_integers_has_derivative_zero() -> None:
    x = np.array([1.5, -0.5])
    np.testing.assert_array_equal(pull(np.astype, np.ones(2), x, int), [0, 0])
    np.testing.assert_array_equal(push(np.astype, np.ones(2), x, int), [0, 0])


def test_astype_to_single_precision_pushes_in_single_precision() -> None:
    assert push(np.astype, np.ones(2), np.ones(2), np.float32).dtype == np.float32


def test_astype_from_complex_to_real_pushes_the_real_part() -> None:
    with pytest.warns(np.exceptions.ComplexWarning):
        np.testing.assert_array_equal(push(np.astype, np.array([2 + 3j]), np.array([1j]), float), [2])


@pytest.mark.parametrize("trim", ["fb", "f", "B"])
@pytest.mark.parametrize("x", [[0, 0, 1, 0, 2, 0], [0, 0], [1], []])
def test_trim_zeros_trims_what_numpy_trims(x: Any, trim: str) -> None:
    x = np.array(x, float)
    np.testing.assert_array_equal(body(np.trim_zeros, x, trim), np.trim_zeros(x, trim))


def test_trim_zeros_of_a_matrix_trims_the_axes_asked_for() -> None:
    x = np.array([[0, 0, 0], [0, 1, 0], [0, 2, 0.0]])
    np.testing.assert_array_equal(body(np.trim_zeros, x), [[1], [2]])
    np.testing.assert_array_equal(body(np.trim_zeros, x, axis=-1), [[0], [1], [2]])


def test_trim_zeros_refuses_another_side() -> None:
    with pytest.raises(ValueError, match="unexpected character"):
        body(np.trim_zeros, np.zeros(2), "x")


def test_windows_add_up_where_they_overlap() -> None:
    np.testing.assert_array_equal(
        adjoint(sliding_window_view, [[1, 2], [10, 20], [100, 200]], (4,), 2), [1, 12, 120, 200]
    )


def test_windows_of_windows_add_up_along_their_one_axis() -> None:
    """x[i + j + k] for two windows of two along the axis of three: the middle is read twice."""
    np.testing.assert_array_equal(fold_windows(np.array([[[1.0, 2.0], [4.0, 8.0]]]), (3,), (2, 2), (0, 0)), [1, 6, 8])
