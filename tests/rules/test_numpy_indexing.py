"""Hand-worked numbers for `getitem`, `scatter`, `add_at` and the gathers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from retrograde.rules.numpy_indexing import add_at, getitem, may_repeat, scatter
from retrograde.rules.table import RULES, Like, Linear


def adjoint(function: Any, y_bar: Any, like: tuple[int, ...], *args: Any, **kwargs: Any) -> Any:
    rule = RULES[function]
    assert isinstance(rule, Linear)
    return rule.adjoints[0](y_bar, Like(like, np.dtype(float)), *args, **kwargs)


def test_scatter_adds_where_the_key_repeats() -> None:
    np.testing.assert_array_equal(scatter(np.array([1.0, 2.0, 4.0]), [0, 2, 0], (4,)), [5, 0, 2, 0])


def test_scatter_counts_negative_positions_from_the_end() -> None:
    np.testing.assert_array_equal(scatter(np.array([1.0, 2.0]), np.array([-1, 1]), (2,)), [0, 3])


def test_scatter_of_a_number_fills_the_slice() -> None:
    np.testing.assert_array_equal(scatter(2.0, slice(1, None), (3,)), [0, 2, 2])


def test_scatter_of_nothing_is_zeros() -> None:
    np.testing.assert_array_equal(scatter(np.zeros(0), [], (2,)), [0, 0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
def test_scatter_keeps_the_dtype_of_the_values(dtype: Any) -> None:
    assert scatter(np.ones(2, dtype), [0, 0], (3,)).dtype == dtype
    assert scatter(dtype(1), 0, (3,)).dtype == dtype


def test_scatter_of_python_numbers_is_in_double_precision() -> None:
    assert scatter(1.0, 0, (2,)).dtype == np.float64
    assert scatter(1j, 0, (2,)).dtype == np.complex128


KEYS = {
    "rows": np.array([2, 0, 2, 1]),
    "list": [2, 0, 2],
    "pairs": (np.array([0, 0, 2]), np.array([1, 1, -1])),
    "broadcast pairs": (np.array([[0], [0]]), np.array([1, -3, 3])),
    "columns": (slice(None), np.array([3, 3, 0])),
    "column of rows": (np.array([1, 1]), 2),
    "row of columns": (1, np.array([1, 1])),
    "mask and integers": (np.array([True, False, True]), np.array([1, 1])),
    "new axis": (None, np.array([1, 1])),
    "ellipsis": (Ellipsis, np.array([-1, -1])),
    "whole mask": np.arange(12).reshape(3, 4) % 2 == 0,
    "mask of rows": np.array([True, False, True]),
    "slices": (slice(None, None, -1), slice(0, 4, 2)),
    "scalar mask": True,
    "one element": (1, 2),
    "0-d integer": np.array(1),
    "NumPy integer": np.int64(1),
    "none": np.array([], int),
}


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS.keys())
@pytest.mark.parametrize("order", ["C", "F"])
def test_add_at_adds_as_numpy_does_with_every_kind_of_key(key: Any, order: Any) -> None:
    got = np.ones((3, 4), order=order)
    want = np.ones((3, 4))
    values = np.random.default_rng(0).uniform(size=want[key].shape)
    add_at(got, key, values)
    np.add.at(want, key, values)
    np.testing.assert_allclose(got, want, rtol=1e-15)


def test_add_at_flattens_no_key_of_few_values_in_a_large_array() -> None:
    z = np.zeros((100, 100))
    add_at(z, (np.array([3, 3]), slice(2)), np.ones((2, 2)))
    assert z[3, 0] == z[3, 1] == 2
    assert z.sum() == 4


def test_only_integer_arrays_may_repeat_a_place() -> None:
    assert not may_repeat((1, slice(None), None, Ellipsis, np.array([True]), np.int8(2), False))
    assert may_repeat(np.array([1]))
    assert may_repeat((slice(None), [1, 1]))


def test_getitem_pulls_back_to_zeros_but_where_it_read() -> None:
    np.testing.assert_array_equal(adjoint(getitem, 3.0, (2, 2), (0, 1)), [[0, 3], [0, 0]])


def test_scatter_pulls_back_a_broadcast_value_as_a_sum() -> None:
    assert adjoint(scatter, np.array([1.0, 2.0, 4.0]), (), slice(1, None), (3,)) == 6


def test_scatter_lets_a_foreign_array_take_over() -> None:
    class Foreign:
        def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
            return function, args[1:], kwargs

    function, args, kwargs = scatter(Foreign(), 0, shape=(3,))
    assert function is scatter
    assert (args, kwargs) == ((0,), {"shape": (3,)})


def test_take_adds_up_what_was_taken_twice() -> None:
    bar = adjoint(np.take, np.array([[1.0, 2.0, 4.0]]), (1, 2), [1, 0, 1], axis=1)
    np.testing.assert_array_equal(bar, [[2, 5]])


def test_take_without_axis_pulls_back_to_the_flattened_array() -> None:
    np.testing.assert_array_equal(adjoint(np.take, np.array([1.0, 2.0]), (2, 2), [3, -4]), [[2, 0], [0, 1]])


@pytest.mark.parametrize(("mode", "expected"), [("wrap", [2, 0, 5]), ("clip", [4, 0, 3])])
def test_take_pulls_back_through_positions_out_of_range(mode: str, expected: Any) -> None:
    bar = adjoint(np.take, np.array([1.0, 2.0, 4.0]), (3,), [5, 3, -1] if mode == "wrap" else [5, 3, -7], mode=mode)
    np.testing.assert_array_equal(bar, expected)


def test_take_along_axis_scatters_rows_on_their_own() -> None:
    bar = adjoint(np.take_along_axis, np.array([[1.0, 2.0], [3.0, 4.0]]), (2, 3), np.array([[2, 2], [0, 1]]), axis=1)
    np.testing.assert_array_equal(bar, [[0, 0, 3], [3, 4, 0]])
