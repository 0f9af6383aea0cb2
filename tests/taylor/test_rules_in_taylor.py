"""The gate of Taylor mode: every rule, at its points, against nested forward mode.

Forward mode is itself compared with differences of the plain functions (tests/test_rules_in_the_engine.py), and the
series of the elementary functions with their closed forms to order 20 (tests/taylor/test_taylor.py).
"""

from __future__ import annotations

import importlib
import importlib.util
import math
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sampling import Point, _fill, points

import retrograde.rules  # fills the table
from retrograde import jvp, taylor
from retrograde.rules.table import RULES, Elementwise, NoGradient, Rule

SPECIAL: set[Any] = set()
if importlib.util.find_spec("scipy") is not None:
    retrograde.rules.load_scipy()
    SPECIAL = {f for f in vars(importlib.import_module("scipy.special")).values() if isinstance(f, np.ufunc)}

RULED = [rule for rule in RULES.values() if not isinstance(rule, NoGradient)]
LONG = bool(os.environ.get("RETROGRADE_LONG"))

EXEMPT = {
    "assoc_legendre": "its rule ends at the second derivative",
    "scipy.special.assoc_legendre_p": "its rule ends at the second derivative",
}
SLOW = {"hyperu", "scipy.special.hyperu"}  # whose differences in its parameters take seconds


def _points(rule: Rule) -> list[Point]:
    """Points in double precision: all of them, or so many that each way through a rule is gone."""
    found = [point for point in points(rule) if point.leaves and not point.single]
    if LONG:
        return found
    if isinstance(rule, Elementwise):
        found = [point for point in found if point.label.replace(" complex", "") in ("3", "3 3", "3 3 3")] or found
    return found[: 1 if _name(rule).startswith(("scipy", "retrograde")) else 2]


def _function(rule: Rule) -> Any:
    """The function as its module has it now: some are taken over while a transform runs."""
    if getattr(rule.function, "__module__", None) == "math":
        return getattr(math, rule.name)
    if rule.name == "full_like":
        return lambda *args, **kwargs: np.full_like(*args, **kwargs)
    return rule.function


def _direction(x: Any, rng: np.random.Generator) -> Any:
    v = rng.uniform(-1, 1, np.shape(x))
    return np.asarray(v + 1j * rng.uniform(-1, 1, np.shape(x)) if np.iscomplexobj(x) else v)[()]


def _derivatives(g: Callable[[Any], Any], order: int) -> list[Any]:
    """g and its derivatives at 0, each by forward mode of the one before."""

    def all_of(order: int) -> Callable[[Any], Any]:
        if not order:
            return lambda t: [g(t)]
        lower = all_of(order - 1)

        def with_one_more(t: Any) -> list[Any]:
            ys, dots = jvp(lower, (t,), (1.0,))
            return [*ys, dots[-1]]

        return with_one_more

    return all_of(order)(0.0)


def _outputs(y: Any) -> list[Any]:
    return list(y) if isinstance(y, tuple | list) else [y]


def _order(rule: Rule, point: Point) -> int:
    """Special functions of parameters are differentiated in those by differences, which take their time."""
    return 2 if not LONG and len(point.leaves) > 1 and _name(rule).startswith(("scipy", "retrograde")) else 3


def _compare(rule: Rule, point: Point) -> None:
    order = _order(rule, point)
    rng = np.random.default_rng(len(point.label))
    xs = list(point.leaves)
    vs = [_direction(x, rng) for x in xs]

    def f(leaves: Any) -> Any:
        leaves = list(leaves)
        return _function(rule)(*_fill(point.args, leaves), **_fill(point.kwargs, leaves))

    with np.errstate(all="ignore"):
        coefficients = taylor(f, xs, vs, order)
        derivatives = _derivatives(lambda t: f([x + t * v for x, v in zip(xs, vs, strict=True)]), order)
    for k, (got, want) in enumerate(zip(coefficients, derivatives, strict=True)):
        for g, w in zip(_outputs(got), _outputs(want), strict=True):
            if g is None or np.asarray(w).dtype.kind not in "fc":
                continue  # an output of integers
            w = np.asarray(w) / math.factorial(k)
            assert np.shape(g) == w.shape, f"coefficient {k} has shape {np.shape(g)}, not {w.shape}"
            scale = 1 + np.max(np.abs(w[np.isfinite(w)]), initial=0)
            np.testing.assert_allclose(g, w, rtol=1e-7, atol=1e-8 * scale, err_msg=f"coefficient {k}")


def _name(rule: Rule) -> str:
    module = getattr(rule.function, "__module__", None) or ("scipy.special" if rule.function in SPECIAL else "numpy")
    return f"{module}.{rule.name}"


@pytest.mark.parametrize("rule", [pytest.param(rule, id=_name(rule)) for rule in sorted(RULED, key=_name)])
def test_a_rule_gives_the_coefficients_of_nested_forward_mode(rule: Rule) -> None:
    if rule.label in EXEMPT:
        pytest.skip(EXEMPT[rule.label])
    if rule.label in SLOW and not LONG:
        pytest.skip("takes seconds: RETROGRADE_LONG=1")
    for point in _points(rule):
        try:
            _compare(rule, point)
        except Exception as error:
            error.add_note(f"point: {point.label}")
            raise
