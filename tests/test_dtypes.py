"""Over every rule: a cotangent has the dtype of its primal, a tangent that of its result, in every floating dtype."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
import pytest
from sampling import Point, _fill, points

import retrograde.rules
from retrograde import gradient, jvp, pullback
from retrograde.errors import UnsupportedArgumentError
from retrograde.rules.table import RULES, Elementwise, NoGradient, Rule
from retrograde.trace.structure import flatten, map_leaves

if importlib.util.find_spec("scipy") is not None:
    retrograde.rules.load_scipy()

# Of real and of complex leaves; where a function has several, each takes the next of the row.
ROWS = {
    "half": ([np.float16, np.float16], [np.complex64, np.complex64]),
    "single": ([np.float32, np.float32], [np.complex64, np.complex64]),
    "long": ([np.longdouble, np.longdouble], [np.clongdouble, np.clongdouble]),
    "mixed": ([np.float32, np.float64, np.float16], [np.complex64, np.complex128]),
}
# Made of a function that SciPy does not have in that precision.
NO_LONG_DOUBLE = {"scipy.special.diric"}
RULED = [rule for rule in RULES.values() if not isinstance(rule, NoGradient)]


def cast(x: Any, row: tuple[list[Any], list[Any]], k: int) -> Any:
    kinds = row[1] if np.iscomplexobj(x) else row[0]
    return np.asarray(x).astype(kinds[k % len(kinds)])[()]


def points_of(rule: Rule) -> list[Point]:
    some = [point for point in points(rule) if point.leaves and not point.single]
    if isinstance(rule, Elementwise):
        some = [point for point in some if "scalar" not in point.label] or some
    return some[:2]


def function_of(rule: Rule) -> Any:
    if (getattr(rule.function, "__module__", None) or "").startswith("math"):
        return None  # numbers of Python only
    return (lambda *args, **kwargs: np.full_like(*args, **kwargs)) if rule.name == "full_like" else rule.function


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("row", ROWS)
def test_derivatives_have_the_dtypes_of_what_they_belong_to(row: str) -> None:
    tried = 0
    wrong = []
    for rule in RULED:
        function = function_of(rule)
        for point in points_of(rule) if function is not None else ():
            leaves = tuple(cast(x, ROWS[row], k) for k, x in enumerate(point.leaves))

            def f(*xs: Any, function: Any = function, point: Point = point) -> Any:
                return function(*_fill(point.args, list(xs)), **_fill(point.kwargs, list(xs)))

            try:
                y = f(*leaves)
            except TypeError:  # a dtype that NumPy or SciPy does not have there
                continue
            try:
                y, y_dot = jvp(f, leaves, leaves)
                bars = pullback(f, *leaves)[1](map_leaves(lambda part: np.ones_like(part)[()], y))
            except UnsupportedArgumentError:
                continue
            except TypeError:
                if rule.label not in NO_LONG_DOUBLE:
                    raise
                continue
            tried += 1
            pairs = [("cotangent", *pair) for pair in zip(bars, leaves, strict=True)]
            pairs += [("tangent", *pair) for pair in zip(flatten(y_dot)[0], flatten(y)[0], strict=True)]
            for what, derivative, owner in pairs:
                have, want = np.asarray(derivative).dtype, np.asarray(owner).dtype
                if derivative is not None and want.kind in "fc" and have != want:
                    wrong.append(f"{rule.label} at {point.label}: a {what} of {have} for {want}")
    assert wrong == []
    assert tried > (500 if importlib.util.find_spec("scipy") else 300)


def test_integers_and_booleans_promote_as_in_numpy_and_have_no_gradient_of_their_own() -> None:
    x, n, mask = np.float32(1.5), np.int8(3), np.array([True, False])
    bars = gradient(lambda x, n, mask: np.sum(x * n * mask), x, n, mask)
    assert bars[0].dtype == np.float32
    assert float(bars[0]) == 3.0
    y, _ = pullback(lambda x: x * n, x)
    assert y.dtype == (x * n).dtype
