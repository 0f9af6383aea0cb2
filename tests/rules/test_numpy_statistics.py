"""Hand-worked derivatives of averages, variances and covariances, and of the reductions that skip NaN."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from interpreter import body, puller
from sampling import Point, Slot

import retrograde
from retrograde.rules.table import RULES

inf, nan = math.inf, math.nan


def pulled(function: Any, a: Any, *, y_bar: Any = None, **kwargs: Any) -> Any:
    a = np.asarray(a)
    y = function(a, **kwargs)
    if y_bar is None:
        y_bar = np.ones_like(y)[()]
    return puller(RULES[function], Point("", (Slot(0),), kwargs, (a,)))(y_bar)[0]


def slope(function: Any, a: Any, **kwargs: Any) -> Any:
    """The gradient of the sum of a function's results."""
    return retrograde.gradient(lambda a: np.sum(function(a, **kwargs)), np.asarray(a, float))[0]


def close(actual: Any, expected: Any) -> None:
    np.testing.assert_allclose(actual, expected, rtol=1e-14, atol=1e-300)


def equal(actual: Any, expected: Any) -> None:
    np.testing.assert_array_equal(actual, expected)


# --- variance and standard deviation ---------------------------------------------------------------------------------


def test_variance_slopes_are_twice_the_deviations() -> None:
    close(pulled(np.var, [1.0, 2, 6]), [-4 / 3, -2 / 3, 2])
    close(pulled(np.var, [1.0, 2, 6], ddof=1), [-2, -1, 3])
    close(pulled(np.var, [1.0, 2, 6], correction=1), [-2, -1, 3])
    close(pulled(np.var, [[1.0, 3], [5, 5]], axis=1, y_bar=np.array([1.0, 7])), [[-1, 1], [0, 0]])


def test_variance_of_complex_numbers_is_real() -> None:
    close(pulled(np.var, [1j, -1j]), [1j, -1j])
    close(pulled(np.std, [1j, -1j]), [0.5j, -0.5j])


def test_variance_respects_where() -> None:
    where = np.array([True, False, True])
    close(pulled(np.var, [1.0, nan, 3], where=where), [-1, 0, 1])
    close(pulled(np.std, [1.0, inf, 3], where=where), [-0.5, 0, 0.5])


def test_standard_deviation_slopes() -> None:
    close(pulled(np.std, [1.0, 3]), [-0.5, 0.5])
    close(pulled(np.std, [3.0, 3, 9, 9], ddof=1, y_bar=np.float64(2)), np.array([-2, -2, 2, 2]) / math.sqrt(12))


@pytest.mark.parametrize("number", [0.1, 1.0, 1e-300, 1e5 / 3, -7e200])
@pytest.mark.parametrize("length", [1, 2, 3, 7, 10, 49])
def test_standard_deviation_of_equal_numbers_has_no_slope(number: float, length: int) -> None:
    # The mean of equal numbers is in general not exactly that number, and so neither is their deviation exactly zero.
    a = np.full(length, number)
    with np.errstate(all="ignore"):
        equal(pulled(np.std, a), np.zeros(length))
        equal(pulled(np.var, a) * 0, np.zeros(length))
        equal(RULES[np.std].pushforward(np.std(a), a)(np.arange(1.0, length + 1)), 0)


def test_standard_deviation_of_some_constant_rows() -> None:
    close(pulled(np.std, [[0.1, 0.1, 0.1], [-1, 0, 1]], axis=1), [[0, 0, 0], np.array([-1, 0, 1]) / math.sqrt(6)])


def test_square_of_a_constant_vectors_standard_deviation_has_no_slope() -> None:
    equal(slope(lambda a: np.std(a) ** 2, [0.1, 0.1, 0.1]), [0, 0, 0])


@pytest.mark.parametrize("f", [np.std, lambda a: np.std(a) ** 2])
def test_second_derivatives_of_a_deviation_of_zero_are_no_silent_zeros(f: Any) -> None:
    """That of its square exists, but no value at the point tells it; that of np.var is there."""
    with np.errstate(all="ignore"):
        assert not np.any(np.isfinite(np.diag(retrograde.hessian(f, np.ones(3)))))
        assert not np.isfinite(retrograde.grad(lambda t: retrograde.grad(f)(t * np.array([1.0, 0, 0]))[0])(0.0))
    close(retrograde.hessian(np.var, np.ones(2)), [[0.5, -0.5], [-0.5, 0.5]])
    masked = retrograde.hessian(lambda a: np.where(np.std(a) > 0, np.std(a), 0.0), np.ones(3))
    equal(masked, np.zeros((3, 3)))


def test_variance_without_freedom_has_no_finite_slope_but_a_zero_cotangent_stays_zero() -> None:
    a, y = np.array([1.0, 2]), np.float64(inf)
    with np.errstate(all="ignore"):
        for function in (np.var, np.std):
            pull = RULES[function].pullback(y, a, ddof=2)  # type: ignore[attr-defined]
            assert not np.any(np.isfinite(pull(np.float64(1))[0]))
            equal(pull(np.float64(0))[0], [0, 0])


def test_tiny_standard_deviations_keep_their_slopes() -> None:
    with np.errstate(under="ignore"):
        close(pulled(np.std, [1e-150, 3e-150]), [-0.5, 0.5])


def test_variance_of_float32_stays_float32() -> None:
    a = np.array([1, 2, 4], np.float32)
    for function in (np.var, np.std):
        (a_bar,) = RULES[function].pullback(function(a), a)(np.float32(1))
        assert a_bar.dtype == np.float32


# --- average and covariance ------------------------------------------------------------------------------------------


def test_average_is_differentiable_in_its_weights() -> None:
    a, weights = np.array([1.0, 2, 6]), np.array([1.0, 1, 2])
    a_bar, weights_bar = retrograde.gradient(lambda a, w: np.average(a, weights=w), a, weights)
    close(a_bar, [0.25, 0.25, 0.5])
    close(weights_bar, (a - 15 / 4) / 4)


def test_average_returns_the_sum_of_the_weights() -> None:
    for weights in (None, [1.0, 3]):
        for mine, numpys in zip(
            body(np.average, np.ones((2, 3)), 0, weights, True),
            np.average(np.ones((2, 3)), 0, weights, True),
            strict=True,
        ):
            equal(mine, numpys)
            assert np.shape(mine) == np.shape(numpys)


@pytest.mark.parametrize(
    ("error", "arguments"),
    [
        (ZeroDivisionError, {"weights": [1.0, -1, 0]}),
        (TypeError, {"weights": [1.0]}),
        (ValueError, {"weights": [1.0, 2], "axis": 0}),
    ],
)
def test_average_refuses_what_numpy_refuses(error: type[Exception], arguments: Any) -> None:
    for average in (np.average, RULES[np.average].body):
        with pytest.raises(error):
            average(np.ones(3), **arguments)


def test_covariance_by_hand() -> None:
    x, y = np.array([1.0, 2, 6]), np.array([0.0, 1, 5])
    x_bar, y_bar = retrograde.gradient(lambda x, y: np.cov(x, y)[0, 1], x, y)
    close(x_bar, (y - 2) / 2)
    close(y_bar, (x - 3) / 2)
    close(retrograde.gradient(lambda x: np.cov(x, ddof=0), x)[0], 2 * (x - 3) / 3)


@pytest.mark.parametrize(
    "arguments",
    [
        {"fweights": [1, -1, 2]},
        {"fweights": [1.5, 1, 2]},
        {"fweights": [1, 2]},
        {"aweights": [1, -1, 2]},
        {"aweights": [1.0, 2]},
    ],
)
def test_covariance_refuses_what_numpy_refuses(arguments: Any) -> None:
    with pytest.raises((ValueError, TypeError, RuntimeError)) as numpys:
        np.cov(np.ones((2, 3)), **arguments)
    with pytest.raises(numpys.type):
        body(np.cov, np.ones((2, 3)), **arguments)


def test_covariance_without_freedom_warns_as_numpy_does() -> None:
    with pytest.warns(RuntimeWarning, match="Degrees of freedom"), np.errstate(all="ignore"):
        body(np.cov, np.ones((2, 1)))


def test_covariance_of_nothing() -> None:
    assert body(np.cov, np.zeros((0, 3))).shape == (0, 0)


def test_correlation_of_a_variable_with_itself_is_constant() -> None:
    a_bar = slope(np.corrcoef, [1.0, 2, 6])
    np.testing.assert_allclose(a_bar, [0, 0, 0], atol=1e-15)
    diagonal = slope(lambda a: np.diagonal(np.corrcoef(a)), [[1.0, 2, 6], [0, 1, 5]])
    np.testing.assert_allclose(diagonal, np.zeros((2, 3)), atol=1e-15)


def test_correlation_of_proportional_variables_stays_at_most_one() -> None:
    x = np.array([0.1, 0.2, 0.7])
    assert np.max(np.abs(body(np.corrcoef, np.stack([x, 3 * x])))) <= 1


# --- reductions that skip NaN ----------------------------------------------------------------------------------------


def test_nan_takes_no_part() -> None:
    a = [2, nan, 3, 4]
    equal(slope(np.nansum, a), [1, 0, 1, 1])
    close(slope(np.nanmean, a), [1 / 3, 0, 1 / 3, 1 / 3])
    equal(slope(np.nanprod, a), [12, 0, 8, 6])
    close(slope(np.nanvar, a), [-2 / 3, 0, 0, 2 / 3])
    close(slope(np.nanstd, [1, nan, 3]), [-0.5, 0, 0.5])
    close(slope(np.nanvar, a, ddof=1, where=np.array([True, True, True, False])), [-1, 0, 1, 0])


def test_rows_of_nan_alone_have_no_slope() -> None:
    a = np.array([[nan, nan], [1, 3]])
    equal(slope(np.nansum, a, axis=1), [[0, 0], [1, 1]])
    equal(slope(np.nanprod, a, axis=1), [[0, 0], [3, 1]])


def test_values_without_nan_are_numpys() -> None:
    a = np.array([[1.5, nan, 2], [nan, 3, 4]])
    for function in (np.nansum, np.nanprod, np.nanmean, np.nanvar, np.nanstd):
        for arguments in ({}, {"axis": 1}, {"axis": (0, 1), "keepdims": True}, {"dtype": np.float32}):
            mine, numpys = body(function, a, **arguments), function(a, **arguments)
            np.testing.assert_allclose(mine, numpys, rtol=1e-6)
            assert np.shape(mine) == np.shape(numpys)
        assert body(function, a.astype(np.float32)).dtype == np.float32


# --- variances of large arrays, whose deviations are kept ------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [32768, 65537, 262147])
def test_the_variance_of_a_long_line_is_numpys_to_the_last_bit(n: int, dtype: Any) -> None:
    rng = np.random.default_rng(n)
    for mean in (0.0, -1e3):
        x = (rng.standard_normal(n) * 3 + mean).astype(dtype)
        for arguments in ({}, {"ddof": 1}, {"ddof": 0.5}, {"correction": 2}, {"axis": -1}, {"keepdims": True}):
            for function in (np.var, np.std):
                value = retrograde.pullback(lambda x, f=function, a=arguments: f(x, **a), x)[0]
                want = function(x, **arguments)
                np.testing.assert_array_equal(value, want, strict=True)


def test_the_variance_of_a_long_line_has_the_slope_of_its_formula() -> None:
    x = np.random.default_rng(0).standard_normal((300, 400)) + 5
    deviations = x - np.mean(x)
    close(retrograde.gradient(np.var, x)[0], 2 * deviations / x.size)
    close(retrograde.gradient(lambda x: 3 * np.var(x, ddof=1), x)[0], 6 * deviations / (x.size - 1))
    close(retrograde.gradient(lambda x: 3 * np.std(x), x)[0], 3 * deviations / (x.size * np.std(x)))
    close(retrograde.gradient(lambda x: np.var(x) * np.std(x), x)[0], 3 * np.std(x) * deviations / x.size)
    assert not np.any(retrograde.gradient(np.std, np.full(10**5, 0.1))[0])
    assert not np.any(retrograde.gradient(lambda x: np.var(x) * 0.0, x)[0])
    v = np.random.default_rng(1).standard_normal(x.shape)
    second = retrograde.jvp(lambda x: retrograde.gradient(np.var, x)[0], (x,), (v,))[1]
    close(second, 2 * (v - np.mean(v)) / x.size)


def test_the_pull_of_a_long_line_can_be_repeated_and_gives_an_array_of_its_own() -> None:
    x = np.random.default_rng(0).standard_normal(10**5)
    for function in (np.var, np.std):
        back = retrograde.pullback(function, x)[1]
        first = back(1.0)[0]
        kept = first.copy()
        first += 1
        equal(back(1.0)[0], kept)
        close(back(2.0)[0], 2 * kept)
        equal(back(1.0)[0], kept)
