"""Hand-worked derivatives of the scans: zeros in products, ties of running extremes, slices that overlap."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from interpreter import pulled, pushed

import retrograde
from retrograde.rules.numpy_scans import add_at, recurrence, reverse_recurrence

inf, nan = math.inf, math.nan


def equal(actual: Any, expected: Any) -> None:
    np.testing.assert_array_equal(actual, expected)


# --- the recurrence --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 5, 8, 9, 31])
def test_recurrence_is_the_loop(n: int) -> None:
    b, a = np.arange(1.0, n + 1), np.arange(n) % 3 - 1.0
    t = np.zeros(n)
    for i in range(n):
        t[i] = b[i] + (a[i] * t[i - 1] if i else 0)
    equal(recurrence(b, a, 0), t)
    equal(recurrence(np.stack([b, b]), np.stack([a, a]), 1), [t, t])
    for i in reversed(range(n)):
        t[i] = b[i] + (a[i + 1] * t[i + 1] if i < n - 1 else 0)
    equal(reverse_recurrence(b, a, 0), t)


def test_terms_of_equal_position_are_added() -> None:
    equal(add_at(np.array([1.0, 10, 100]), np.array([2, 0, 2]), 4, 0), [10, 0, 101, 0])
    equal(add_at(np.zeros((2, 0)), np.zeros(0, int), 3, 1), np.zeros((2, 3)))


# --- cumulative sum --------------------------------------------------------------------------------------------------


def test_cumulative_sum_pulls_back_what_comes_later() -> None:
    equal(pulled(np.cumsum, [0, 0, 0], y_bar=[1, 10, 100]), [111, 110, 100])
    equal(pulled(np.cumsum, [[0, 0], [0, 0]], y_bar=[1, 2, 3, 4]), [[10, 9], [7, 4]])
    equal(pulled(np.cumsum, [[0, 0], [0, 0]], axis=-2, y_bar=[[1, 2], [3, 4]]), [[4, 6], [3, 4]])
    equal(pulled(np.add.accumulate, [[0, 0], [0, 0]], y_bar=[[1, 2], [3, 4]]), [[4, 6], [3, 4]])


def test_cumulative_sum_of_a_scalar_is_a_scalars() -> None:
    assert pulled(np.cumsum, 3.0, y_bar=[5]).shape == ()
    assert pulled(np.cumulative_sum, 3.0, y_bar=[0, 5], include_initial=True).shape == ()


def test_initial_zero_of_a_cumulative_sum_pulls_back_to_nothing() -> None:
    equal(pulled(np.cumulative_sum, [0, 0], include_initial=True, y_bar=[1000, 1, 10]), [11, 10])


# --- cumulative product ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("function", [np.cumprod, np.multiply.accumulate])
@pytest.mark.parametrize(
    ("a", "expected"),
    [
        ([2, 3, 4], [1 + 30 + 1200, 20 + 800, 600]),  # y_bar = 1, 10, 100
        ([0, 3, 4], [1 + 30 + 1200, 0, 0]),
        ([2, 0, 4], [1, 20 + 800, 0]),
        ([2, 3, 0], [1 + 30, 20, 600]),
        ([0, 0, 4], [1, 0, 0]),
        ([0, 0, 0], [1, 0, 0]),
    ],
)
def test_cumulative_product_with_zeros(function: Any, a: Any, expected: Any) -> None:
    y_bar = [1, 10, 100]
    np.testing.assert_allclose(pulled(function, a, y_bar=y_bar), expected, rtol=1e-15)
    a_dot = np.array([1.0, 7, 49])
    np.testing.assert_allclose(np.dot(y_bar, pushed(function, a, a_dot)), np.dot(expected, a_dot), rtol=1e-15)


def test_cumulative_product_in_rows() -> None:
    equal(pulled(np.cumprod, [[2, 0], [3, 4]], axis=1), [[1, 2], [5, 3]])
    equal(pulled(np.cumprod, [[2, 0], [3, 4]]), [[1, 2 + 6 + 24], [0, 0]])


def test_cumulative_product_that_underflows() -> None:
    with np.errstate(under="ignore"):
        a_bar = pulled(np.cumprod, [1e-200, 1e-200, 1e100], y_bar=[0, 0, 1])
        np.testing.assert_allclose(a_bar, [1e-100, 1e-100, 0], rtol=1e-14)


def test_second_derivatives_of_products_with_zeros() -> None:
    # f = x₀x₁x₂x₃ at (0, 2, 0, 3): only ∂²f/∂x₀∂x₂ = x₁x₃ is left.
    expected = np.zeros((4, 4))
    expected[0, 2] = expected[2, 0] = 6
    equal(retrograde.hessian(np.prod, np.array([0.0, 2, 0, 3])), expected)
    equal(retrograde.hessian(lambda x: np.cumprod(x)[3], np.array([0.0, 2, 0, 3])), expected)
    equal(retrograde.hessian(np.prod, np.zeros(3)), np.zeros((3, 3)))


def test_second_derivatives_of_products_are_exactly_zero_on_the_diagonal() -> None:
    x = np.array([1e-10, 0.7, 3.0])
    equal(np.diagonal(retrograde.hessian(np.prod, x)), [0, 0, 0])
    equal(np.diagonal(retrograde.hessian(lambda x: np.sum(np.cumprod(x)), x)), [0, 0, 0])


def test_products_of_what_is_not_nan() -> None:
    (a_bar,) = retrograde.gradient(lambda a: np.sum(np.nancumprod(a)), np.array([2, nan, 3]))
    equal(a_bar, [1 + 1 + 3, 0, 2])
    (a_bar,) = retrograde.gradient(lambda a: np.sum(np.nancumsum(a)), np.array([2, nan, 3]))
    equal(a_bar, [3, 0, 1])


# --- running extremes and logaddexp ----------------------------------------------------------------------------------


@pytest.mark.parametrize("function", [np.maximum.accumulate, np.fmax.accumulate])
def test_running_maximum_belongs_to_the_last_record(function: Any) -> None:
    equal(pulled(function, [1, 0, 3, 2], y_bar=[1, 10, 100, 1000]), [11, 0, 1100, 0])
    equal(pulled(function, [[1, 5], [2, 4]], axis=0), [[1, 2], [1, 0]])


def test_running_extremes_share_equally_among_the_ties_so_far() -> None:
    for function, sign in ((np.maximum.accumulate, 1), (np.minimum.accumulate, -1)):
        a = sign * np.array([2, 2, 1, 2, 3, 3])
        y_bar = [1, 2, 4, 9, 10, 20]
        equal(pulled(function, a, y_bar=y_bar), [1 + 1 + 2 + 3, 1 + 2 + 3, 0, 3, 10 + 10, 10])
        equal(pushed(function, a, [1, 3, 100, 5, 7, 9]), [1, 2, 2, 3, 7, 8])


def test_running_maximum_that_skips_nan() -> None:
    equal(pulled(np.fmax.accumulate, [nan, 1, nan, 2], y_bar=[1, 10, 100, 1000]), [0, 110, 0, 1000])


def test_running_logaddexp() -> None:
    a_bar = pulled(np.logaddexp.accumulate, np.log([1, 3, 4]), y_bar=[1, 1, 1])
    np.testing.assert_allclose(a_bar, [1 + 1 / 4 + 1 / 8, 3 / 4 + 3 / 8, 1 / 2], rtol=1e-14)
    equal(pulled(np.logaddexp.accumulate, [-inf, 0], y_bar=[1, 1]), [0, 1])
    np.testing.assert_allclose(pulled(np.logaddexp.accumulate, [1000, 1000], y_bar=[0, 1]), [0.5, 0.5], rtol=1e-13)


# --- reduceat --------------------------------------------------------------------------------------------------------


def test_sums_of_slices() -> None:
    a = np.zeros(6)
    equal(pulled(np.add.reduceat, a, [0, 2, 5], y_bar=[1, 2, 3]), [1, 1, 2, 2, 2, 3])
    equal(pulled(np.add.reduceat, a, [2, 4], y_bar=[1, 2]), [0, 0, 1, 1, 2, 2])
    equal(pulled(np.add.reduceat, a, [0, 4, 1, 5], y_bar=[1, 10, 100, 1000]), [1, 101, 101, 101, 110, 1000])
    equal(pulled(np.add.reduceat, np.zeros((3, 2)), [1, 1], axis=0, y_bar=[[1, 2], [3, 4]]), [[0, 0], [4, 6], [3, 4]])


def test_products_of_slices_with_zeros() -> None:
    a = [2, 0, 3, 4, 0, 0]
    expected = [0, 2, 4, 3, 0, 0]
    equal(pulled(np.multiply.reduceat, a, [0, 2, 4]), expected)
    equal(pushed(np.multiply.reduceat, a, [1, 2, 3, 4, 5, 6], [0, 2, 4]), [4, 12 + 12, 0])
    equal(pulled(np.multiply.reduceat, [2, 3, 5], [0, 2, 1], y_bar=[1, 10, 100]), [3, 2 + 500, 10 + 300])


def test_integers_count_as_floats() -> None:
    a = np.array([2, 2, 3])
    for f in (np.prod, lambda a: np.sum(np.cumprod(a)), lambda a: np.sum(np.maximum.accumulate(a))):
        equal(retrograde.gradient(f, a)[0], retrograde.gradient(f, a.astype(float))[0])
