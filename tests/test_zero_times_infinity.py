"""Zero times infinity is zero, in every rule of NumPy and in both modes, wherever an argument is not finite."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sampling import _fill, points

from retrograde import gradient, hessian, jacobian, jvp, pullback
from retrograde.errors import UnsupportedArgumentError
from retrograde.rules.table import RULES, NoGradient, Rule
from retrograde.trace.structure import flatten, map_leaves

# LAPACK takes long over matrices that are not finite, and gives errors or NaN.
RULED = [
    rule
    for rule in RULES.values()
    if not isinstance(rule, NoGradient)
    and rule.label.startswith("np.")
    and not any(word in rule.label for word in ("linalg", "poly", "roots"))
]


def not_finite(x: Any, value: float) -> Any:
    x = np.array(x)
    if x.size:
        x.flat[0] = value
    return x[()]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("value", [0.0, np.inf, -np.inf, np.nan])
def test_nothing_comes_of_a_zero_cotangent_or_tangent(value: float) -> None:
    wrong = []
    tried = 0
    for rule in RULED:
        for point in [point for point in points(rule) if point.leaves and not point.single][:3]:
            leaves = tuple(not_finite(x, value) for x in point.leaves)

            def f(*xs: Any, rule: Rule = rule, point: Any = point) -> Any:
                function = np.full_like if rule.name == "full_like" else rule.function
                return function(*_fill(point.args, list(xs)), **_fill(point.kwargs, list(xs)))

            try:
                y = f(*leaves)
            except Exception:  # whatever NumPy says to such numbers
                continue
            try:
                y_dot = jvp(f, leaves, tuple(np.zeros_like(x)[()] for x in leaves))[1]
                bars = pullback(f, *leaves)[1](map_leaves(lambda part: np.zeros_like(part)[()], y))
            except UnsupportedArgumentError:
                continue
            tried += 1
            if any(np.any(part != 0) for part in flatten(y_dot)[0]):
                wrong.append(f"{rule.label} at {point.label}: a zero tangent gives {y_dot!r}")
            if any(bar is not None and np.any(bar != 0) for bar in bars):
                wrong.append(f"{rule.label} at {point.label}: a zero cotangent gives {bars!r}")
    assert wrong == []
    assert tried > 500


@pytest.mark.parametrize("n", [3, 50_000])
def test_a_constant_factor_of_zero_hides_an_infinite_slope_behind_it(n: int) -> None:
    x = np.concatenate([[0.0], np.arange(1.0, n)])
    mask = np.concatenate([[0.0], np.ones(n - 1)])
    (x_bar,) = gradient(lambda x: np.sum(np.sqrt(mask * x)), x)
    np.testing.assert_allclose(x_bar, np.where(mask, 0.5 / np.sqrt(np.maximum(x, 1.0)), 0.0))
    assert gradient(lambda x: np.sqrt(0.0 * x), 1.0) == (0.0,)
    assert np.isnan(gradient(lambda x: np.sqrt((x - 1.0) * (x - 1.0)), 1.0)[0])


def test_a_masked_root_has_no_second_derivative_where_it_is_masked() -> None:
    def energy(x: Any) -> Any:
        return np.sum((np.array([0.0, 1.0]) * np.sqrt(x) - 1.0) ** 2)

    x = np.array([0.0, 4.0])
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(hessian(energy, x), [[0, 0], [0, 0.5 * 4.0**-1.5]])
        np.testing.assert_allclose(jacobian(lambda x: gradient(energy, x)[0], x, mode="reverse"), hessian(energy, x))
