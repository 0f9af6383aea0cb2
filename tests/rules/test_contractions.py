"""Zero cotangents times infinities inside sums of products."""

from __future__ import annotations

import numpy as np

from retrograde.rules.contractions import contracted, matmul, matmul_from_left, outer, without_zero_products

INF, NAN = np.inf, np.nan


def test_zero_cotangent_times_infinity_adds_nothing_to_a_product() -> None:
    y_bar = np.array([[1.0, 0.0], [2.0, 3.0]])
    x = np.array([[4.0, 5.0], [INF, 6.0]])
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(matmul(y_bar, x), [[4, 5], [INF, 28]])
        np.testing.assert_array_equal(matmul_from_left(x.T, y_bar.T), [[4, INF], [5, 28]])


def test_zero_cotangent_times_nan_adds_nothing() -> None:
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(matmul(np.array([0.0, 2.0]), np.array([[NAN, NAN], [3.0, 4.0]])), [6, 8])


def test_nan_of_the_cotangent_itself_stays() -> None:
    np.testing.assert_array_equal(matmul(np.array([[NAN, 0.0]]), np.ones((2, 2))), [[NAN, NAN]])
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(matmul(np.array([[NAN, 0.0]]), np.array([[1.0], [INF]])), [[NAN]])


def test_infinities_of_both_signs_stay_nan() -> None:
    with np.errstate(invalid="ignore"):
        got = matmul(np.array([[1.0, 1.0, 0.0]]), np.array([[INF], [-INF], [INF]]))
    assert np.isnan(got).all()


def test_outer_product_with_an_infinity() -> None:
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(outer(np.array([0.0, 2.0]), np.array([INF, 3.0])), [[0, 0], [INF, 6]])


def test_three_factors_are_masked_where_any_is_not_finite() -> None:
    def contract(y_bar, a, b):  # type: ignore[no-untyped-def]
        return np.einsum("i,i,i->", y_bar, a, b)

    y_bar, a, b = np.array([0.0, 2.0]), np.array([0.0, 3.0]), np.array([INF, 5.0])
    with np.errstate(invalid="ignore"):
        plain = contract(y_bar, a, b)
    assert np.isnan(plain)
    assert without_zero_products(contract, plain, y_bar, a, b) == 30


def test_nothing_is_recomputed_without_a_nan() -> None:
    calls = []

    def contract(y_bar, x):  # type: ignore[no-untyped-def]
        calls.append(1)
        return y_bar @ x

    assert contracted(contract, np.array([0.0, 1.0]), np.array([3.0, 4.0])) == 4
    assert len(calls) == 1
