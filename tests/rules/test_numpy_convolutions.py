"""Hand-worked numbers for convolutions and correlations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograde.rules.numpy_convolutions  # noqa: F401  defines the rules
from retrograde.rules.table import RULES, Like, Multilinear


def bars(function: Any, y_bar: Any, a: Any, v: Any, *mode: str) -> tuple[Any, Any]:
    rule = RULES[function]
    assert isinstance(rule, Multilinear)
    likes = [Like(np.shape(x), np.asarray(x).dtype) for x in (a, v)]
    return rule.adjoints[0](y_bar, likes[0], v, *mode), rule.adjoints[1](y_bar, a, likes[1], *mode)


def test_convolve_is_full_by_default() -> None:
    # y = (a₀ v₀, a₀ v₁ + a₁ v₀, a₁ v₁)
    a_bar, v_bar = bars(np.convolve, np.array([1.0, 2.0, 3.0]), np.array([5.0, 7.0]), np.array([2.0, 4.0]))
    np.testing.assert_array_equal(a_bar, [2 + 8, 4 + 12])
    np.testing.assert_array_equal(v_bar, [5 + 14, 10 + 21])


def test_correlate_is_valid_by_default() -> None:
    # y = (a₀ v₀ + a₁ v₁, a₁ v₀ + a₂ v₁)
    a_bar, v_bar = bars(np.correlate, np.array([1.0, 2.0]), np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0]))
    np.testing.assert_array_equal(a_bar, [4, 5 + 8, 10])
    np.testing.assert_array_equal(v_bar, [1 + 4, 2 + 6])


@pytest.mark.parametrize("function", [np.convolve, np.correlate])
@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize(("n", "m"), [(1, 1), (4, 1), (1, 4), (5, 2), (2, 5), (4, 3), (3, 4), (4, 4)])
def test_every_mode_and_length_is_the_adjoint(function: Any, mode: str, n: int, m: int) -> None:
    rng = np.random.default_rng(n * 10 + m)
    a, v = rng.normal(size=n) + 1j * rng.normal(size=n), rng.normal(size=m) + 1j * rng.normal(size=m)
    y_bar = rng.normal(size=function(a, v, mode).size) * (1 + 1j)
    a_bar, v_bar = bars(function, y_bar, a, v, mode)
    a_dot, v_dot = rng.normal(size=n) * 1j, rng.normal(size=m) * (1 - 2j)
    np.testing.assert_allclose(np.vdot(a_bar, a_dot).real, np.vdot(y_bar, function(a_dot, v, mode)).real)
    np.testing.assert_allclose(np.vdot(v_bar, v_dot).real, np.vdot(y_bar, function(a, v_dot, mode)).real)


def test_masked_cotangent_hides_an_infinity() -> None:
    with np.errstate(invalid="ignore"):
        a_bar, _ = bars(np.convolve, np.array([1.0, 0.0, 0.0]), np.ones(2), np.array([2.0, np.inf]))
    np.testing.assert_array_equal(a_bar, [2, 0])
