"""Sorting, searching and interpolation: the order is found without derivatives, the elements are then read by it."""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograde.compiler import ops
from retrograde.compiler.form import FLOAT, INT, Index, Operand, Text
from retrograde.compiler.lower.functions.arguments import as_array
from retrograde.compiler.lower.functions.linalg import called
from retrograde.compiler.lower.functions.registry import handles
from retrograde.compiler.lower.functions.shape import ravel
from retrograde.compiler.lower.indexing import Indexing
from retrograde.compiler.lower.values import NONE, Constant, Lazy


@handles(np.argsort, methods="argsort")
def argsort(lower: Indexing, a: Any) -> Any:
    a = lower.force(as_array(lower, a))
    if lower.is_complex(a):
        raise lower.undefined("<", (lower.element_type(a),))
    if not lower.is_array(a) or len(lower.shape(a)) != 1:
        raise lower.refuse("sorting an array of several axes", "a loop over the rows")
    return called(lower, "np.argsort", (a,), ("order", INT, lower.shape(a)))[0]


@handles(np.sort)
def sort(lower: Indexing, a: Any) -> Any:
    a = lower.force(as_array(lower, a))
    order = argsort(lower, a)
    return lower.force(lower.subscript(a, [order]), "sorted")


def sort_in_place(a: Any) -> None:
    """What the method `sort` does."""


@handles(sort_in_place, methods="sort")
def sorted_in_place(lower: Indexing, a: Any) -> Any:
    lower.assign_subscript(a, [Constant(...)], sort(lower, a))
    return NONE


@handles(np.median)
def median(lower: Indexing, a: Any) -> Any:
    a = as_array(lower, a)
    in_order = sort(lower, ravel(lower, a))
    (n,) = lower.shape(in_order)
    lower.guard_not_empty((n,))
    below = lower.load(in_order, (lower.op("//", lower.op("-", n, 1), 2),))
    above = lower.load(in_order, (lower.op("//", n, 2),))
    return lower.op("*", 0.5, lower.op("+", below, above))


LEFT = Constant("left")


@handles(np.searchsorted)
def searchsorted(lower: Indexing, a: Any, v: Any, side: Any = LEFT) -> Any:
    a, v = lower.force(as_array(lower, a)), lower.force(as_array(lower, v))
    if not isinstance(side, Constant) or side.value not in ("left", "right"):
        raise lower.refuse("np.searchsorted with a side that is not written as a text", 'side="right"')
    return called(lower, "np.searchsorted", (a, v, Text(side.value)), ("place", INT, lower.shape(v)))[0]


@handles(np.interp)
def interp(lower: Indexing, x: Any, xp: Any, fp: Any) -> Any:
    """Between two knots their straight line; outside the first and the last value."""
    x, xp, fp = (lower.force(as_array(lower, a)) for a in (x, xp, fp))
    lower.guard_equal(lower.shape(xp)[0], lower.shape(fp)[0], "fp and xp are not of the same length.")
    n = lower.shape(xp)[0]
    lower.guard_not_empty((n,))
    places = searchsorted(lower, xp, x, Constant("right"))

    def element(index: Index) -> Operand:
        here = lower.element(x, index)
        after = lower.op("min", lower.op("max", lower.element(places, index), 1), lower.op("-", n, 1))
        before = lower.op("max", lower.op("-", after, 1), 0)
        left, right = lower.load(xp, (before,)), lower.load(xp, (after,))
        low, high = lower.load(fp, (before,)), lower.load(fp, (after,))
        slope = lower.op("/", lower.op("-", high, low), lower.op("-", right, left))
        inside = lower.op("+", low, lower.op("*", slope, lower.op("-", here, left)))
        is_left = lower.op("<", here, left)  # only before the first knot
        is_right = lower.op(">=", here, right)  # only from the last knot on
        return lower.op("where", is_left, low, lower.op("where", is_right, high, inside))

    if not lower.is_array(x):
        return element(())
    type = ops.common(FLOAT, lower.element_type(fp))
    return Lazy(lower.shape(x), element, type, frozenset([x, xp, fp, places]), False)
