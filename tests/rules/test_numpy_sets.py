"""Sets of values: each value has the derivative of the place that it was read from."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
from truth import close

from retrograde import gradient, jacobian, jvp

A = np.array([3.0, 1.0, 3.0, 2.0])
B = np.array([2.0, 5.0, 1.0])


def test_unique_reads_the_first_element_of_each_value() -> None:
    close(jacobian(np.unique, A), [[0, 1, 0, 0], [0, 0, 0, 1], [1, 0, 0, 0]])


def test_unique_of_nans() -> None:
    x = np.array([np.nan, 1.0, np.nan])
    for equal_nan in (True, False):
        y, y_dot = jvp(lambda x, e=equal_nan: np.unique(x, equal_nan=e), (x,), (np.array([5.0, 6.0, 7.0]),))
        np.testing.assert_array_equal(y, np.unique(x, equal_nan=equal_nan))
        close(y_dot, [6, 5] if equal_nan else [6, 5, 7])


def test_unique_says_where_its_values_were_and_how_often() -> None:
    def loss(x: Any) -> Any:
        values, index, inverse, counts = np.unique(x, return_index=True, return_inverse=True, return_counts=True)
        for got, want in zip((index, inverse, counts), ([1, 3, 0], [2, 0, 2, 1], [1, 1, 2]), strict=True):
            np.testing.assert_array_equal(got, want)
        return np.sum(values * counts**2)

    close(gradient(loss, A)[0], [4, 1, 0, 1])


@pytest.mark.parametrize("options", [{}, {"return_index": True}, {"return_counts": True, "return_inverse": True}])
def test_unique_slices_along_an_axis_are_read_from_the_first_of_each(options: dict[str, bool]) -> None:
    x = np.array([[1.0, 2.0, 1.0, 0.0], [3.0, 4.0, 3.0, 5.0]])

    def values(x: Any) -> Any:
        found = np.unique(x, axis=1, **options)
        return found[0] if options else found

    np.testing.assert_array_equal(jvp(values, (x,), (x,))[0], [[0, 1, 2], [5, 3, 4]])
    close(gradient(lambda x: np.sum(values(x) * np.array([1.0, 10.0, 100.0])), x)[0], [[10, 100, 0, 1]] * 2)


def test_unsorted_unique_values_come_in_numpys_order() -> None:
    if "sorted" not in inspect.signature(np.unique).parameters:
        pytest.skip("NumPy before 2.3 sorts always")
    np.testing.assert_array_equal(jvp(lambda x: np.unique(x, sorted=False), (A,), (A,))[1], np.unique(A, sorted=False))


@pytest.mark.parametrize(
    ("f", "of_a", "of_b"),
    [
        (np.union1d, [[0, 1, 0, 0], [0, 0, 0, 1], [1, 0, 0, 0], [0] * 4], [[0] * 3] * 3 + [[0, 1, 0]]),
        (np.intersect1d, [[0, 1, 0, 0], [0, 0, 0, 1]], [[0] * 3] * 2),
        (np.setdiff1d, [[1, 0, 0, 0]], [[0] * 3]),
        (np.setxor1d, [[1, 0, 0, 0], [0] * 4], [[0] * 3, [0, 1, 0]]),
    ],
)
def test_a_value_that_is_in_both_sets_is_read_from_the_first(f: Any, of_a: Any, of_b: Any) -> None:
    got = jacobian(f, A, B)
    close(got[0], of_a)
    close(got[1], of_b)


def test_sets_without_elements() -> None:
    close(gradient(lambda a: np.sum(np.intersect1d(a, [9.0])), A)[0], np.zeros(4))
    close(gradient(lambda a: np.sum(np.unique(a)), np.zeros(0))[0], np.zeros(0))


@pytest.mark.parametrize("other", [[2, 9], [2.0, 9.0], [2.0 + 0j], [9.0], []])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_intersect1d_has_the_dtype_of_both_arrays_also_where_nothing_is_left(dtype: Any, other: list[Any]) -> None:
    a, b = A.astype(dtype), np.array(other)
    want = np.intersect1d(a, b)
    y, y_dot = jvp(lambda a: np.intersect1d(a, b), (a,), (np.ones_like(a),))
    np.testing.assert_array_equal(y, want)
    assert y.dtype == y_dot.dtype == want.dtype
    assert gradient(lambda a: np.real(np.sum(np.intersect1d(a, b))), a)[0].dtype == dtype


@pytest.mark.parametrize("f", [np.unique_all, np.unique_counts, np.unique_inverse])
def test_the_array_apis_functions_name_their_results(f: Any) -> None:
    ours, theirs = jvp(f, (A,), (A,))[0], f(A)
    assert type(ours) is type(theirs)
    for got, want in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(got, want)
    close(jacobian(lambda a: f(a).values, A), jacobian(np.unique, A))


def test_unique_values_come_in_numpys_order() -> None:
    np.testing.assert_array_equal(jvp(np.unique_values, (A,), (A,))[0], np.unique_values(A))
    close(gradient(lambda a: np.sum(np.unique_values(a) ** 2), A)[0], [6, 2, 0, 4])


def test_sets_of_integers_and_of_constants_are_numpys() -> None:
    np.testing.assert_array_equal(jvp(lambda x: np.union1d([2, 1], [1]) * x, (1.0,), (0.0,))[0], [1, 2])
