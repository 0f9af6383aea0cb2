"""Zero times infinity is zero, in every rule of NumPy and in both modes, wherever an argument is not finite."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sampling import _fill, points

from retrograde import jvp, pullback
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
