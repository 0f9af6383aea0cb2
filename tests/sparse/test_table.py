"""The patterns of single functions, over the points of every rule: never too small, and exact where that is claimed."""

from __future__ import annotations

import importlib.util
import math
import os
from typing import Any

import numpy as np
import pytest
from patterns import nonzero, pattern
from sampling import Point, _fill, points

import retrograde.rules  # fills the table
from retrograde import ConversionError
from retrograde.rules.table import RULES, Composed, Elementwise, NoGradient, Rule, WithArguments
from retrograde.sparse import families
from retrograde.sparse.table import DENSE, EXACT, SCIPY, family_of
from retrograde.trace.structure import flatten

pytest.importorskip("scipy")
if importlib.util.find_spec("scipy") is not None:
    retrograde.rules.load_scipy()

LONG = "RETROGRADE_LONG" in os.environ
RULED = [rule for rule in RULES.values() if not isinstance(rule, NoGradient)]
POINTS = [
    (rule, point)
    for rule in RULED
    for point in points(rule)
    if point.leaves
    and not point.single
    and (not isinstance(rule, Elementwise) or point.label in ("3", "2x1 3", "2x1 3 1x1x3") or LONG)
]


def _function(rule: Rule) -> Any:
    """The function as its module has it now: some are taken over while a transform runs."""
    if getattr(rule.function, "__module__", None) == "math":
        return getattr(math, rule.name)
    if rule.name == "full_like":
        return lambda *args, **kwargs: np.full_like(*args, **kwargs)
    return rule.function


@pytest.mark.parametrize(("rule", "point"), [pytest.param(r, p, id=f"{r.label}: {p.label}") for r, p in POINTS])
def test_a_pattern_holds_every_entry_of_the_jacobian(rule: Rule, point: Point) -> None:
    def f(*leaves: Any) -> Any:
        y = _function(rule)(*_fill(point.args, list(leaves)), **_fill(point.kwargs, list(leaves)))
        # Outputs without a derivative are no rows of a Jacobian.
        return [part for part in flatten(y)[0] if part.dtype.kind in "fc"] if isinstance(y, tuple | list) else y

    with np.errstate(all="ignore"):
        entries = nonzero(f, *point.leaves)
        in_run = pattern(f, *point.leaves)
        if rule.label in DECIDED:
            with pytest.raises(ConversionError, match="pattern='all'"):
                pattern(f, *point.leaves, exact=False)
            in_all = in_run
        else:
            in_all = pattern(f, *point.leaves, exact=False)
    assert in_run.shape == entries.shape
    assert not np.any(entries & ~in_run), "too small for the run"
    assert not np.any(in_run & ~in_all), "too small for all runs"
    if isinstance(rule, WithArguments) and rule.function in EXACT:
        assert not np.any(in_run & ~entries), "not exact"


DECIDED = {"np.trim_zeros"}
"""Functions whose shape is another in every run."""


def test_every_rule_is_accounted_for() -> None:
    """A function that is new in the table of rules must be given a family, be it `dense`."""
    silent = [rule.label for rule in RULED if isinstance(rule, WithArguments) and family_of(rule) is families.dense]
    assert silent == [rule.label for rule in RULED if DENSE.get(rule.function) is families.dense]
    ruled = {rule.function for rule in RULED if isinstance(rule, WithArguments)}
    assert not [function for function in (*EXACT, *DENSE) if function not in ruled]
    assert not EXACT.keys() & DENSE.keys()
    assert not SCIPY.keys() - {rule.label for rule in RULED}
    assert all(isinstance(rule, Elementwise | Composed | WithArguments) for rule in RULED)
