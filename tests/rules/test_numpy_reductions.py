"""Hand-worked derivatives of the reductions where differences are blind: ties, zeros, empty arrays, infinities."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from interpreter import pulled, pushed
from truth import close

import retrograde.rules.numpy_reductions  # noqa: F401  defines the rules
from retrograde import gradient, pullback, vmap
from retrograde.rules.table import RULES

inf, nan = math.inf, math.nan


def equal(actual: Any, expected: Any) -> None:
    np.testing.assert_array_equal(actual, expected)


# --- sum and mean ----------------------------------------------------------------------------------------------------


def test_sum_copies_nothing() -> None:
    a_bar = pulled(np.sum, np.zeros((1000, 1000)), y_bar=np.float64(3))
    assert a_bar.strides == (0, 0)
    assert not a_bar.flags.writeable
    assert a_bar[7, 8] == 3
    assert pulled(np.sum, np.zeros((4, 5)), axis=0).strides[0] == 0


@pytest.mark.parametrize("seed", [2.0, np.float64(2), np.array(2.0)], ids=["float", "float64", "0-d array"])
def test_sum_of_a_scalar_is_a_scalar(seed: Any) -> None:
    a_bar = pulled(np.sum, 5.0, y_bar=seed)
    assert np.shape(a_bar) == ()
    assert a_bar == 2


def test_sum_respects_where() -> None:
    equal(pulled(np.sum, [1, nan, 3], where=np.array([True, False, True])), [1, 0, 1])


def test_sum_does_not_push_initial() -> None:
    assert pushed(np.sum, [1, 2], [10, 20], initial=100.0) == 30


def test_sum_over_axes_of_every_form() -> None:
    a = np.zeros((2, 3, 4))
    equal(pulled(np.sum, a, axis=-2, y_bar=np.arange(8.0).reshape(2, 4))[1, :, 2], [6, 6, 6])
    equal(pulled(np.sum, a, axis=(-1, 0), y_bar=np.array([1.0, 2, 3]))[1, :, 3], [1, 2, 3])
    equal(pulled(np.sum, a, axis=np.int64(1), y_bar=np.arange(8.0).reshape(2, 4))[0, :, 1], [1, 1, 1])
    equal(pulled(np.sum, a, axis=(), y_bar=np.ones((2, 3, 4))), np.ones((2, 3, 4)))
    equal(pulled(np.sum, a, axis=None, keepdims=True, y_bar=np.full((1, 1, 1), 5.0)), np.full((2, 3, 4), 5))


def test_method_of_add_reduces_the_first_axis() -> None:
    equal(pulled(np.add.reduce, np.zeros((2, 2)), y_bar=np.array([1.0, 2])), [[1, 2], [1, 2]])


@pytest.mark.parametrize("function", [np.sum, np.mean, np.prod])
def test_empty_arrays_have_empty_cotangents(function: Any) -> None:
    with np.errstate(all="ignore"), pytest.warns(RuntimeWarning) if function is np.mean else np.errstate():
        assert pulled(function, np.zeros((0, 3))).shape == (0, 3)
        assert pulled(function, np.zeros((0, 3)), axis=0).shape == (0, 3)


def test_mean_counts_only_where() -> None:
    where = np.array([[True, False, True], [False, False, True]])
    equal(pulled(np.mean, np.zeros((2, 3)), axis=1, where=where), [[0.5, 0, 0.5], [0, 0, 1]])
    equal(pulled(np.mean, np.zeros((2, 3)), where=np.array([True, False, True])), [[0.25, 0, 0.25]] * 2)


def test_float32_stays_float32() -> None:
    a = np.ones((2, 3), np.float32)
    for function in (np.sum, np.mean, np.prod, np.max):
        rule = RULES[function]
        if hasattr(rule, "pullback"):
            (a_bar,) = rule.pullback(function(a), a)(np.float32(1))
        else:
            a_bar = rule.adjoints[0](np.float32(1), a)
        assert a_bar.dtype == np.float32


# --- product ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("a", "expected"),
    [
        ([2, 3, 4], [12, 8, 6]),
        ([0, 3, 4], [12, 0, 0]),
        ([2, 0, 4], [0, 8, 0]),
        ([0, 3, 0], [0, 0, 0]),
        ([0, 0, 0], [0, 0, 0]),
        ([7], [1]),
        ([0], [1]),
        ([-2, 3, -0.0], [-0.0, 0, -6]),
    ],
)
def test_product_with_zeros(a: Any, expected: Any) -> None:
    equal(pulled(np.prod, a), expected)
    equal(pulled(np.multiply.reduce, a), expected)
    a_dot = np.arange(1.0, len(a) + 1)
    assert pushed(np.prod, a, a_dot) == np.dot(expected, a_dot)


def test_product_with_zeros_in_some_rows_only() -> None:
    a = [[1, 2, 3], [0, 5, 6], [0, 0, 9]]
    equal(pulled(np.prod, a, axis=1), [[6, 3, 2], [30, 0, 0], [0, 0, 0]])
    equal(pulled(np.prod, a, axis=0, keepdims=True), [[0, 0, 54], [0, 0, 27], [0, 10, 18]])
    equal(pulled(np.prod, np.reshape([1.0, 2, 0, 4], (2, 2)), axis=(1, 0)), [[0, 0], [8, 0]])


def test_product_that_underflows_although_the_others_do_not() -> None:
    with np.errstate(under="ignore"):
        np.testing.assert_allclose(pulled(np.prod, [1e-200, 1e-200, 3]), [3e-200, 3e-200, 0], rtol=1e-15)
        np.testing.assert_allclose(pulled(np.prod, [1e-310, 2.0, 3.0]), [6, 3e-310, 2e-310], rtol=1e-12)


def test_product_respects_where_and_initial() -> None:
    where = np.array([True, False, True])
    equal(pulled(np.prod, [2, 0, 5], where=where, initial=3.0), [15, 0, 6])
    equal(pulled(np.prod, [0, nan, 5], where=where, initial=3.0), [15, 0, 0])
    equal(pulled(np.prod, [2, 5], initial=0.0), [0, 0])


def test_complex_product_is_conjugated() -> None:
    equal(pulled(np.prod, [2j, 0j], y_bar=1 + 0j), [0, -2j])
    np.testing.assert_allclose(pulled(np.prod, [2j, 1 + 1j], y_bar=1 + 0j), [1 - 1j, -2j], rtol=1e-15)


# --- extremes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("function", [np.max, np.amax, np.nanmax, np.maximum.reduce, np.fmax.reduce])
def test_ties_share_equally(function: Any) -> None:
    equal(pulled(function, [3, 1, 3], y_bar=np.float64(4)), [2, 0, 2])
    equal(pulled(function, [1, 1, 1, 1]), [0.25] * 4)
    equal(pulled(function, [[1, 2], [1, 3]], axis=0), [[0.5, 0], [0.5, 1]])
    equal(pulled(function, [[2, 2], [1, 3]], axis=(0, 1), keepdims=True), [[0, 0], [0, 1]])
    assert pushed(function, [3, 1, 3], [10, 20, 30]) == 20


@pytest.mark.parametrize("function", [np.min, np.amin, np.nanmin, np.minimum.reduce, np.fmin.reduce])
def test_ties_for_the_smallest_share_equally(function: Any) -> None:
    equal(pulled(function, [1, 3, 1]), [0.5, 0, 0.5])
    equal(pulled(function, [[5, 2], [5, 3]], axis=0), [[0.5, 1], [0.5, 0]])


def test_two_zeros_of_either_sign_tie() -> None:
    equal(pulled(np.max, [0.0, -0.0]), [0.5, 0.5])


def test_initial_takes_its_share() -> None:
    equal(pulled(np.max, [1, 2], initial=3.0), [0, 0])
    equal(pulled(np.max, [1, 2], initial=2.0), [0, 0.5])
    equal(pulled(np.max, [[0, 0], [0, 5]], axis=1, initial=0.0), [[1 / 3, 1 / 3], [0, 1]])


def test_extreme_does_not_see_what_where_hides() -> None:
    where = np.array([True, False, True])
    equal(pulled(np.max, [1, 9, 4], where=where, initial=-inf), [0, 0, 1])
    equal(pulled(np.max, [4, 4, 4], where=where, initial=-inf), [0.5, 0, 0.5])


def test_extreme_that_skips_nan() -> None:
    equal(pulled(np.nanmax, [nan, 2, 1]), [0, 1, 0])
    equal(pulled(np.nanmin, [[nan, 2], [4, 2]], axis=1), [[0, 1], [0, 1]])
    with pytest.warns(RuntimeWarning, match="All-NaN"):
        equal(pulled(np.nanmax, [nan, nan]), [0, 0])


def test_ties_share_equally_beside_a_nan() -> None:
    """There are as many elements that equal their extreme as there are extremes, and yet not one for each."""
    a = [[nan, 1], [2, 2]]
    equal(pulled(np.max, a, axis=1), [[0, 0], [0.5, 0.5]])
    equal(pushed(np.max, a, [[1, 1], [1, 3]], axis=1), [0, 2])
    equal(pulled(np.minimum.reduce, np.transpose(a)), [[0, 0.5], [0, 0.5]])
    with pytest.warns(RuntimeWarning, match="All-NaN"):
        equal(pulled(np.nanmax, [[nan, nan], [2, 2]], axis=1), [[0, 0], [0.5, 0.5]])
    equal(vmap(lambda x: pullback(np.max, x)[1](1.0)[0])(np.array(a)), [[0, 0], [0.5, 0.5]])


def test_no_element_of_many_is_an_extreme_that_is_nan() -> None:
    a = np.arange(40_000.0)
    a[7] = nan
    equal(pulled(np.max, a), np.zeros(40_000))
    equal(pulled(np.max, np.reshape(a, (4, -1)), axis=1)[:, -1], [0, 1, 1, 1])
    equal(pulled(np.max, np.reshape(a, (4, -1)), axis=1)[0], np.zeros(10_000))


def test_extreme_with_an_infinite_cotangent_stays_clean() -> None:
    equal(pulled(np.max, [1, 2], y_bar=np.float64(inf)), [0, inf])


def test_extreme_of_infinities() -> None:
    equal(pulled(np.max, [inf, 1, inf]), [0.5, 0, 0.5])
    equal(pulled(np.max, [-inf, -inf]), [0.5, 0.5])


# --- logarithm of a sum of exponentials ------------------------------------------------------------------------------


def test_logaddexp_shares_by_weight() -> None:
    np.testing.assert_allclose(pulled(np.logaddexp.reduce, np.log([1, 3])), [0.25, 0.75], rtol=1e-15)
    np.testing.assert_allclose(pulled(np.logaddexp.reduce, [1000, 1000]), [0.5, 0.5], rtol=1e-13)
    np.testing.assert_allclose(pulled(np.logaddexp.reduce, [-1e6, 0]), [0, 1])


def test_logaddexp_of_infinities() -> None:
    equal(pulled(np.logaddexp.reduce, [-inf, 0]), [0, 1])
    equal(pulled(np.logaddexp.reduce, [-inf, -inf]), [0, 0])
    equal(pulled(np.logaddexp.reduce, [inf, 0]), [1, 0])


# --- extremes of large arrays ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", [None, 0, 1, -1, (0, 2), (1, 2)])
@pytest.mark.parametrize("ties", [False, True])
def test_extremes_of_large_arrays_give_their_cotangent_to_those_who_hold_them(axis: Any, ties: bool) -> None:
    x = np.random.default_rng(0).permutation(40 * 50 * 30).reshape(40, 50, 30) / 7.0
    if ties:
        x[3] = x[5] = 1e4
    for a in (x, np.asfortranarray(x)):
        for keepdims in (False, True):
            y, back = pullback(lambda a, k=keepdims: np.max(a, axis=axis, keepdims=k), a)
            y_bar = np.random.default_rng(1).standard_normal(np.shape(y))
            kept = np.max(x, axis=axis, keepdims=True)
            tied = x == kept
            share = tied / np.sum(tied, axis=axis, keepdims=True)
            np.testing.assert_allclose(back(y_bar)[0], share * np.reshape(y_bar, kept.shape), rtol=1e-15)


@pytest.mark.parametrize("function", [np.sum, np.prod, np.max, np.min])
def test_a_wrapper_may_hand_on_that_nothing_was_given(function: Any) -> None:
    def wrapped(x: Any, **kwargs: Any) -> Any:
        return function(x, **dict.fromkeys(("keepdims", "where", "initial"), np._NoValue) | kwargs)  # type: ignore[attr-defined]

    x = np.array([[1.0, 2.0], [3.0, 0.5]])
    close(gradient(wrapped, x)[0], gradient(function, x)[0])
    y, back = pullback(lambda x: wrapped(x, axis=0, keepdims=True), x)
    assert y.shape == (1, 2)
    close(back(np.ones((1, 2)))[0], gradient(lambda x: np.sum(function(x, axis=0)), x)[0])
