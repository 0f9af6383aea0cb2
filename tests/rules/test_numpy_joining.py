"""Hand-worked numbers for joins, splits, insertions and choices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograde.rules.numpy_joining  # noqa: F401  defines the rules
from retrograde.errors import MutationError
from retrograde.rules.table import RULES, Composed, Like, Linear


def like(*shape: int) -> Like:
    return Like(shape, np.dtype(float))


def adjoint(function: Any, y_bar: Any, *args: Any, number: int = 0, **kwargs: Any) -> Any:
    rule = RULES[function]
    assert isinstance(rule, Linear)
    return rule.adjoints[number](y_bar, *args, **kwargs)


def body(function: Any, *args: Any, **kwargs: Any) -> Any:
    rule = RULES[function]
    assert isinstance(rule, Composed)
    return rule.body(*args, **kwargs)


def assert_all_equal(bars: Any, expected: Any) -> None:
    assert len(bars) == len(expected)
    for bar, wanted in zip(bars, expected, strict=True):
        np.testing.assert_array_equal(bar, wanted)


def test_concatenate_gives_each_member_its_part() -> None:
    bars = adjoint(np.concatenate, np.array([1.0, 2.0, 3.0]), [like(1), like(0), like(2)])
    assert_all_equal(bars, [[1], [], [2, 3]])


def test_concatenate_without_axis_gives_each_member_its_part_in_its_shape() -> None:
    bars = adjoint(np.concatenate, np.arange(5.0), [like(2, 2), like()], axis=None)
    assert_all_equal(bars, [[[0, 1], [2, 3]], 4])


def test_array_given_as_the_sequence_gets_an_array_back() -> None:
    bar = adjoint(np.concatenate, np.arange(4.0), like(2, 2))
    np.testing.assert_array_equal(bar, [[0, 1], [2, 3]])
    np.testing.assert_array_equal(adjoint(np.stack, np.array([[1.0, 2.0]]), like(2, 1), axis=1), [[1], [2]])


def test_stack_along_the_last_axis_gives_each_member_its_slice() -> None:
    bars = adjoint(np.stack, np.array([[1.0, 2.0], [3.0, 4.0]]), [like(2), like(2)], axis=-1)
    assert_all_equal(bars, [[1, 3], [2, 4]])


@pytest.mark.parametrize(
    ("function", "shapes", "y_bar", "expected"),
    [
        (np.hstack, [(), (2,)], [1, 2, 3], [1, [2, 3]]),
        (np.hstack, [(2, 1), (2, 1)], [[1, 2], [3, 4]], [[[1], [3]], [[2], [4]]]),
        (np.vstack, [(), (1, 1)], [[1], [2]], [1, [[2]]]),
        (np.vstack, [(2,), (1, 2)], [[1, 2], [3, 4]], [[1, 2], [[3, 4]]]),
        (np.dstack, [(2,), (1, 2)], [[[1, 2], [3, 4]]], [[1, 3], [[2, 4]]]),
        (np.column_stack, [(2,), (2, 1)], [[1, 2], [3, 4]], [[1, 3], [[2], [4]]]),
    ],
)
def test_stacks_give_each_member_its_part_in_its_shape(function: Any, shapes: Any, y_bar: Any, expected: Any) -> None:
    assert_all_equal(adjoint(function, np.array(y_bar, float), [like(*shape) for shape in shapes]), expected)


def test_split_gives_zeros_for_the_piece_that_nobody_used() -> None:
    bar = adjoint(np.split, [np.array([1.0]), None, np.array([4.0])], like(4), [1, 3])
    np.testing.assert_array_equal(bar, [1, 0, 0, 4])


def test_split_into_unequal_parts_counts_as_numpy_does() -> None:
    bar = adjoint(np.array_split, [None, np.array([3.0, 4.0])], like(5), 2)
    np.testing.assert_array_equal(bar, [0, 0, 0, 3, 4])


def test_split_at_indices_that_run_backwards_adds_what_overlaps() -> None:
    """np.split(x, [3, 1]) is x[:3], x[3:1], x[1:]."""
    bar = adjoint(np.split, [np.array([1.0, 2.0, 3.0]), None, np.array([10.0, 20.0, 30.0])], like(4), [3, 1])
    np.testing.assert_array_equal(bar, [1, 12, 23, 30])


def test_split_keeps_single_precision() -> None:
    bar = adjoint(np.split, [np.ones(1, np.float32), None], Like((2,), np.dtype(np.float32)), 2)
    assert bar.dtype == np.float32


def test_hsplit_of_a_vector_is_along_its_only_axis() -> None:
    np.testing.assert_array_equal(adjoint(np.hsplit, [None, np.array([2.0])], like(2), 2), [0, 2])
    np.testing.assert_array_equal(adjoint(np.hsplit, [None, np.array([[2.0]])], like(1, 2), 2), [[0, 2]])


def test_unstack_along_the_last_axis() -> None:
    bar = adjoint(np.unstack, (None, np.array([1.0, 2.0])), like(2, 2), axis=-1)
    np.testing.assert_array_equal(bar, [[0, 1], [0, 2]])


@pytest.mark.parametrize("kwargs", [{}, {"indexing": "ij"}, {"sparse": True}, {"copy": False}])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_meshgrid_is_numpys(kwargs: Any, count: int) -> None:
    xi = [np.arange(2.0), np.arange(3.0), np.arange(4.0)][:count]
    assert_all_equal(body(np.meshgrid, *xi, **kwargs), np.meshgrid(*xi, **kwargs))


def test_meshgrid_of_nothing_is_nothing() -> None:
    assert body(np.meshgrid) == ()


def test_block_joins_inner_lists_along_the_last_axis() -> None:
    np.testing.assert_array_equal(
        body(np.block, [[1.0, np.array([2.0, 3.0])], [np.ones((1, 3))]]), [[1, 2, 3], [1, 1, 1]]
    )


@pytest.mark.parametrize("arrays", [[], [[1.0], 2.0], [[], []]])
def test_block_refuses_lists_that_are_empty_or_of_different_depths(arrays: Any) -> None:
    with pytest.raises(ValueError, match=r"np\.block needs lists"):
        body(np.block, arrays)


@pytest.mark.parametrize("obj", [1, -1, [0, 0, -1], slice(0, 3, 2), [], np.array([True, False, True])])
@pytest.mark.parametrize("axis", [0, None])
def test_delete_leaves_what_numpy_leaves(obj: Any, axis: int | None) -> None:
    x = np.arange(3.0)
    np.testing.assert_array_equal(body(np.delete, x, obj, axis), np.delete(x, obj, axis))


def test_delete_refuses_a_position_out_of_range() -> None:
    with pytest.raises(IndexError):
        body(np.delete, np.zeros(2), 2)


@pytest.mark.parametrize(
    ("shape", "obj", "values", "axis"),
    [
        ((2,), [0, 2], [7.0, 8.0], None),
        ((2, 2), 1, 7.0, 1),
        ((2, 2), 1, [7.0, 8.0], 1),
        ((2, 2), [1], [[7.0], [8.0]], 1),
        ((2, 2), -1, [7.0, 8.0, 9.0], None),
        ((2,), slice(2), 7, 0),
        ((2,), [], [], 0),
    ],
)
def test_insert_is_numpys(shape: Any, obj: Any, values: Any, axis: Any) -> None:
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    got = body(np.insert, x, obj, values, axis)
    np.testing.assert_array_equal(got, np.insert(x, obj, values, axis))
    assert got.dtype == np.float32


def test_insert_of_a_float_among_integers_is_refused() -> None:
    with pytest.raises(MutationError, match="truncate a float64 to int64"):
        body(np.insert, np.arange(3), 0, 0.5)


def test_where_keeps_an_infinite_cotangent_out_of_the_other_side() -> None:
    condition, y_bar = np.array([True, False]), np.array([1.0, np.inf])
    np.testing.assert_array_equal(adjoint(np.where, y_bar, condition, like(2), like(2)), [1, 0])
    np.testing.assert_array_equal(adjoint(np.where, y_bar, condition, like(2), like(2), number=1), [0, np.inf])


def test_where_sums_over_what_a_number_was_broadcast_to() -> None:
    assert adjoint(np.where, np.array([1.0, 2.0, 4.0]), np.array([True, False, True]), like(), like(3)) == 5


def test_choose_gives_each_choice_what_was_chosen_of_it() -> None:
    bars = adjoint(np.choose, np.array([1.0, 2.0, 4.0]), np.array([1, 0, 1]), [like(3), like()])
    assert_all_equal(bars, [[0, 2, 0], 5])


@pytest.mark.parametrize(("mode", "expected"), [("wrap", [[0, 2], [1, 0]]), ("clip", [[1, 0], [0, 2]])])
def test_choose_out_of_range(mode: str, expected: Any) -> None:
    bars = adjoint(np.choose, np.array([1.0, 2.0]), np.array([-1, 2]), [like(2), like(2)], mode=mode)
    assert_all_equal(bars, expected)


def test_select_takes_the_first_of_the_conditions_that_hold() -> None:
    conditions = [np.array([True, False, False]), np.array([True, True, False])]
    np.testing.assert_array_equal(body(np.select, conditions, [1.0, 2.0], 3.0), [1, 2, 3])


def test_select_refuses_what_numpy_refuses() -> None:
    with pytest.raises(TypeError, match="invalid entry 0 in condlist"):
        body(np.select, [np.array([1, 0])], [1.0])
    with pytest.raises(ValueError, match="same length"):
        body(np.select, [], [1.0])
    with pytest.raises(ValueError, match="empty condition list"):
        body(np.select, [], [])


def test_piecewise_takes_the_last_of_the_conditions_that_hold() -> None:
    x = np.array([1.0, 2.0, 3.0])
    conditions = [x > 0, x > 2]
    np.testing.assert_array_equal(body(np.piecewise, x, conditions, [np.negative, 7.0]), [-1, -2, 7])


def test_piecewise_calls_its_functions_only_where_their_conditions_hold() -> None:
    def fails(x: Any) -> Any:
        raise AssertionError("called on nothing")

    x = np.array([1.0, 4.0])
    np.testing.assert_array_equal(body(np.piecewise, x, [x < 0, x >= 0], [fails, np.sqrt]), [1, 2])


@pytest.mark.parametrize(
    ("x", "conditions", "functions"),
    [
        (2.0, [True], [np.square]),
        (2.0, False, [1.0, 3.0]),
        (np.array(2.0), [np.array(True), np.array(False)], [5.0, np.square, 1.0]),
        (np.arange(3.0), np.arange(3) > 0, [np.square, -1]),
        (np.arange(3.0), [[True, False, True]], [[5.0, 6.0], 1.0]),
        (np.arange(4.0).reshape(2, 2), [[True, False]], [np.negative, 9.0]),
        (np.arange(3.0, dtype=np.float32), [[True, False, True]], [np.float64(0.1)]),
    ],
)
def test_piecewise_is_numpys(x: Any, conditions: Any, functions: Any) -> None:
    got, want = (f(x, conditions, functions) for f in (RULES[np.piecewise].body, np.piecewise))  # type: ignore[attr-defined]
    np.testing.assert_array_equal(got, want)
    assert got.dtype == want.dtype


def test_piecewise_refuses_too_many_functions() -> None:
    with pytest.raises(ValueError, match=r"with 1 condition\(s\), either 1 or 2 functions"):
        body(np.piecewise, np.ones(2), [np.array([True, False])], [1, 2, 3])


def test_compress_takes_a_condition_shorter_than_the_axis() -> None:
    np.testing.assert_array_equal(body(np.compress, [False, True], np.arange(4.0)), [1])


def test_append_without_axis_flattens() -> None:
    np.testing.assert_array_equal(body(np.append, np.ones((1, 2)), 3.0), [1, 1, 3])
