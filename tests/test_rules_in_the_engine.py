"""Rules as users meet them: through the engine, in both modes, to second order, against finite differences."""

from __future__ import annotations

import importlib.util
import math
from typing import Any

import numpy as np
import pytest
from sampling import Point, _fill, points

import retrograde.rules  # fills the table
from retrograde.rules.table import RULES, Elementwise, NoGradient, Rule
from retrograde.testing import check_gradient

if importlib.util.find_spec("scipy") is not None:
    retrograde.rules.load_scipy()

# The rules of NumPy, of Python's math and of SciPy's ufuncs, each at all of its points in double precision; of an
# elementwise rule, which has the same points in many shapes, those of one axis and those that broadcast.
RULED = [r for r in RULES.values() if not isinstance(r, NoGradient)]
POINTS = [
    (rule, point)
    for rule in RULED
    if not (getattr(rule.function, "__module__", None) or "").startswith(("scipy", "retrograde"))
    for point in points(rule)
    if point.leaves
    and not point.single
    and (not isinstance(rule, Elementwise) or " " in point.label or point.label in ("3", "scalar"))
]


# Where differences say nothing.
EXEMPT = {
    "np.linalg.eig": "its vectors have an arbitrary length and order; tests/rules/test_numpy_spectral.py",
    "np.linalg.eigvals": "its values come in an order that jumps; tests/rules/test_numpy_spectral.py",
    "np.linalg.norm: complex 2x3x2, inf, (-1, 0), True": "two sums are nearly equal at this point",
}


def _function(rule: Rule) -> Any:
    """The function as its module has it now: some are taken over while a transform runs."""
    if getattr(rule.function, "__module__", None) == "math":
        return getattr(math, rule.name)
    if rule.name == "full_like":
        return lambda *args, **kwargs: np.full_like(*args, **kwargs)
    return rule.function


@pytest.mark.parametrize(("rule", "point"), [pytest.param(r, p, id=f"{r.label}: {p.label}") for r, p in POINTS])
def test_a_rule_is_right_in_both_modes_and_to_second_order(rule: Rule, point: Point) -> None:
    def f(*leaves: Any) -> Any:
        # By name, since some functions are taken over as attributes while a transform runs.
        return _function(rule)(*_fill(point.args, list(leaves)), **_fill(point.kwargs, list(leaves)))

    if rule.label in EXEMPT or f"{rule.label}: {point.label}" in EXEMPT:
        pytest.skip(EXEMPT.get(rule.label) or EXEMPT[f"{rule.label}: {point.label}"])
    with np.errstate(all="ignore"):
        check_gradient(f, *point.leaves, order=2, rtol=1e-5, atol=1e-6)
