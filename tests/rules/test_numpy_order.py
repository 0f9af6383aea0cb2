"""Hand-worked derivatives of what depends on order, above all where elements are equal."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from interpreter import body, pulled, pushed

import retrograde
from retrograde.rules.numpy_order import _METHODS
from retrograde.rules.table import RULES, Linear

inf, nan = math.inf, math.nan


def equal(actual: Any, expected: Any) -> None:
    np.testing.assert_array_equal(actual, expected)


# --- sort and partition ----------------------------------------------------------------------------------------------


def test_sort_pulls_back_to_where_the_elements_came_from() -> None:
    equal(pulled(np.sort, [3, 1, 2], y_bar=[1, 10, 100]), [100, 1, 10])
    equal(pulled(np.sort, [[3, 1], [0, 2]], axis=0, y_bar=[[1, 2], [3, 4]]), [[3, 2], [1, 4]])
    equal(pulled(np.sort, [[3, 1], [0, 2]], axis=None, y_bar=[1, 2, 3, 4]), [[4, 2], [1, 3]])


def test_equal_elements_keep_their_order() -> None:
    equal(pulled(np.sort, [2, 1, 2, 1], y_bar=[1, 10, 100, 1000]), [100, 1, 1000, 10])
    equal(pulled(np.sort, [5] * 40, y_bar=np.arange(40)), np.arange(40))
    equal(pushed(np.sort, [2, 1, 2, 1], [1, 10, 100, 1000]), [10, 1000, 1, 100])


@pytest.mark.parametrize("number", [5, 40, 400])
def test_partition_follows_what_numpy_did(number: int) -> None:
    a = np.random.default_rng(number).permutation(float(number) + np.arange(number))
    y = np.partition(a, number // 3)
    equal(pushed(np.partition, a, 2 * a, number // 3), 2 * y)
    equal(pulled(np.partition, a, number // 3, y_bar=3 * y), 3 * a)


def test_partition_of_equal_elements_gives_each_one_place() -> None:
    y_bar = 2.0 ** np.arange(6)
    equal(np.sort(pulled(np.partition, [1, 0, 1, 0, 1, 0], 2, y_bar=y_bar)), y_bar)
    equal(pulled(np.partition, [[1, 1, 1]], 1, axis=-1, y_bar=[[1, 2, 3]]), [[1, 2, 3]])


# --- median and quantiles --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("function", [np.median, np.nanmedian])
def test_median(function: Any) -> None:
    equal(pulled(function, [5, 1, 3]), [0, 0, 1])
    equal(pulled(function, [5, 1, 3, 4]), [0, 0, 0.5, 0.5])
    equal(pulled(function, 7.0), 1)
    equal(pulled(function, [[5, 1, 3], [2, 8, 9]], axis=1, y_bar=[1, 10]), [[0, 0, 1], [0, 10, 0]])
    equal(pulled(function, [[5, 1], [2, 8]], axis=(0, 1), keepdims=True), [[0.5, 0], [0.5, 0]])


@pytest.mark.parametrize("function", [np.median, np.nanmedian])
def test_median_of_equal_elements_is_the_middle_one_of_them(function: Any) -> None:
    equal(pulled(function, [2, 2, 2]), [0, 1, 0])
    equal(pulled(function, [2, 2, 2, 2]), [0, 0.5, 0.5, 0])
    equal(pulled(function, [9, 2, 1, 2, 2]), [0, 0, 0, 1, 0])
    equal(pulled(function, [0, 1, 1, 0]), [0, 0.5, 0, 0.5])
    assert pushed(function, [2, 2, 2], [1, 10, 100]) == 10


def test_median_of_equal_elements_is_the_same_beside_a_row_of_nan() -> None:
    a = [0, 2, 0, 1, 1, 2, 0, 2, 0]
    want = [0, 0, 0, 1, 0, 0, 0, 0, 0]
    equal(pulled(np.median, a), want)
    with pytest.warns(RuntimeWarning, match="All-NaN"):
        equal(pulled(np.nanmedian, [[nan] * 9, a], axis=1), [[0] * 9, want])


def test_median_of_what_is_not_nan() -> None:
    a = [[nan, 4, 1], [nan, nan, 2], [3, 2, 1]]
    equal(pulled(np.nanmedian, a, axis=1), [[0, 0.5, 0.5], [0, 0, 1], [0, 1, 0]])
    with pytest.warns(RuntimeWarning, match="All-NaN"):
        equal(pulled(np.nanmedian, [[nan, nan], [1, nan]], axis=1), [[0, 0], [1, 0]])


def test_statistics_of_nothing_have_empty_cotangents() -> None:
    assert pulled(np.median, np.zeros((3, 0, 2)), axis=0).shape == (3, 0, 2)


def test_quantile_interpolates() -> None:
    equal(pulled(np.quantile, [30, 10, 20], 0.25), [0, 0.5, 0.5])
    equal(pulled(np.percentile, [30, 10, 20], 25), [0, 0.5, 0.5])
    equal(pulled(np.quantile, [30, 10, 20], [0, 0.75, 1], y_bar=[1, 10, 100]), [105, 1, 5])
    equal(pulled(np.nanquantile, [30, nan, 10, 20], [0, 0.75, 1], y_bar=[1, 10, 100]), [105, 0, 1, 5])
    equal(pulled(np.quantile, [1, 1, 1], 0.5), [0, 1, 0])


@pytest.mark.parametrize(
    ("method", "low"),  # of ten elements at q = 0.33: the weight of the third smallest; the rest is the fourth's
    [
        ("inverted_cdf", 0),
        ("averaged_inverted_cdf", 0),
        ("closest_observation", 1),
        ("interpolated_inverted_cdf", 0.7),
        ("hazen", 0.2),
        ("lower", 1),
        ("higher", 0),
        ("midpoint", 0.5),
        ("nearest", 0),
        ("linear", 0.03),
    ],
)
def test_quantile_weighs_as_its_method_does(method: str, low: float) -> None:
    a = np.arange(10.0)
    expected = np.zeros(10)
    expected[2:4] = low, 1 - low
    np.testing.assert_allclose(pulled(np.quantile, a, 0.33, method=method), expected, atol=1e-15)


@pytest.mark.parametrize("function", [np.quantile, np.nanquantile])
@pytest.mark.parametrize("method", _METHODS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_quantile_is_its_own_pushforward(function: Any, method: str, dtype: Any) -> None:
    """A quantile is linear in the elements as long as their order stays, so that it equals its own slope times them."""
    rng = np.random.default_rng(0)
    for n in (1, 2, 3, 4, 7, 20):
        a = rng.integers(0, 6, (2, n)).astype(dtype)
        for q in (0.0, 0.3, 0.5, 1.0, np.linspace(0, 1, 21)):
            y = function(a, q, axis=1, method=method)
            y_dot = RULES[function].pushforward(y, a, q, 1, method=method)(a)  # type: ignore[attr-defined]
            np.testing.assert_allclose(y_dot, y, rtol=4 * np.finfo(dtype).eps)


def test_quantile_of_many_single_precision_elements_weighs_in_double_precision() -> None:
    a = np.arange(20_001, dtype=np.float32)
    (a_bar,) = RULES[np.quantile].pullback(np.float32(0), a, 0.777777)(1.0)  # type: ignore[attr-defined]
    np.testing.assert_allclose(a_bar[15555:15557], [1 - 0.54, 0.54], rtol=1e-9)


@pytest.mark.parametrize("number_of_quantiles", [1, 30])
def test_few_and_many_quantiles_take_the_same_of_equal_elements(number_of_quantiles: int) -> None:
    """Few are selected one by one, many found by sorting everything."""
    a = np.random.default_rng(1).integers(0, 4, (3, 40)).astype(float)
    q = np.linspace(0.4, 1, number_of_quantiles)
    a_bar = pulled(np.quantile, a, q, axis=1, method="lower")
    for row, row_bar in zip(a, a_bar, strict=True):
        expected = np.zeros(40)
        for place in np.quantile(np.arange(40), q, method="lower"):
            expected[np.argsort(row, kind="stable")[place]] += 1
        equal(row_bar, expected)


# --- bins ------------------------------------------------------------------------------------------------------------


def test_weights_of_bins_are_gathered() -> None:
    rule = RULES[np.bincount]
    assert isinstance(rule, Linear)
    equal(rule.adjoints[0](np.array([1.0, 10, 100, 0]), np.array([2, 0, 2]), None, 4), [100, 1, 100])


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"bins": 3},
        {"bins": [-1.0, 0, 0.5, 1]},
        {"bins": 4, "range": (-0.5, 0.5)},
        {"bins": 4, "density": True},
        {"bins": np.array([0.0, 0.25, 1]), "density": True},
    ],
)
@pytest.mark.parametrize("weighted", [False, True])
def test_histogram_is_numpys(arguments: Any, weighted: bool) -> None:
    rng = np.random.default_rng(0)
    for a in (rng.normal(size=200), rng.integers(-2, 3, 50) / 2, np.full(4, 0.25)):
        weights = rng.uniform(size=a.shape) if weighted else None
        for mine, numpys in zip(
            body(np.histogram, a, weights=weights, **arguments),
            np.histogram(a, weights=weights, **arguments),
            strict=True,
        ):
            np.testing.assert_allclose(mine, numpys, rtol=1e-13)
            assert mine.dtype == numpys.dtype


def test_edges_of_a_histogram_follow_the_extremes() -> None:
    (a_bar,) = retrograde.gradient(lambda a: np.histogram(a, 2)[1][1], np.array([3.0, 0, 1, 3]))
    equal(a_bar, [0.25, 0.5, 0, 0.25])


def test_heights_of_a_histogram_are_sums_of_weights() -> None:
    def height(weights: Any) -> Any:
        return np.histogram([0.1, 0.6, 0.9, 1.0, 5.0], [0, 0.5, 1], weights=weights)[0][1]

    equal(retrograde.gradient(height, np.ones(5))[0], [0, 1, 1, 1, 0])


def test_histogram_refuses_what_it_cannot_follow() -> None:
    with pytest.raises(retrograde.UnsupportedArgumentError, match="auto"):
        retrograde.gradient(lambda a: np.sum(np.histogram(a, "auto")[1]), np.arange(4.0))
    for said, arguments in (
        ("finite", {"range": (0.0, inf)}),
        ("range", {"range": (1.0, 0.0)}),
        ("monotonically", {"bins": [1.0, 0.0]}),
        ("same shape", {"weights": np.ones(2)}),
    ):
        for histogram in (np.histogram, RULES[np.histogram].body):  # type: ignore[attr-defined]
            with pytest.raises(ValueError, match=said):
                histogram(np.arange(3.0), **arguments)
