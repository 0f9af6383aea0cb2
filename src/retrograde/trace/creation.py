"""Arrays made of traced values: `np.array([x[0], 2.0, [...]])`."""

from __future__ import annotations

from typing import Any

from retrograde.originals import np
from retrograde.rules.points import call as point
from retrograde.rules.points import real
from retrograde.rules.table import RULES, linear
from retrograde.trace.call import dispatch
from retrograde.trace.handle import HANDLES, is_traced


def contains_traced(tree: Any) -> bool:
    """Whether a traced value is in a nested list or tuple."""
    if type(tree) in HANDLES:
        return True
    if not isinstance(tree, (list, tuple)):
        return False
    # Long lists of numbers are looked through without a loop in Python.
    kinds = set(map(type, tree))
    if not kinds.isdisjoint(HANDLES):
        return True
    for kind in kinds:
        if issubclass(kind, (list, tuple)):
            return any(map(contains_traced, tree))
    return False


def array_of(tree: Any) -> Any:
    """`np.array(tree)` of nested lists and tuples in which traced values stand; a traced value as it is."""
    if type(tree) in HANDLES or not isinstance(tree, (list, tuple)):
        return tree
    rows = [array_of(item) for item in tree]
    if not any(is_traced(row) for row in rows):
        return np.array(rows)
    return dispatch(stacked, (rows,), {})


def stacked(rows: Any) -> Any:
    """The rows in one array, along a new first axis."""
    if contains_traced(rows):
        return dispatch(stacked, (rows,), {})
    return np.array(rows)


stacked.__name__ = "np.array"  # as messages name it


def _stacked_adjoint(y_bar: Any, rows: Any) -> list[Any]:
    return [y_bar[i] for i in range(len(rows))]


if stacked not in RULES:
    linear(stacked, _stacked_adjoint, at=[point([real(-1, 1), real(-1, 1)]), point([real(-1, 1, 2), real(-1, 1, 2)])])
