"""Sorting, searching and interpolation: the order is found without derivatives, the elements are then read by it."""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograde.compiler import ops
from retrograde.compiler.form import Index, Text
from retrograde.compiler.known import Constant
from retrograde.compiler.lower.functions.arguments import as_array
from retrograde.compiler.lower.functions.lanes import along_axis
from retrograde.compiler.lower.functions.linalg import called
from retrograde.compiler.lower.functions.registry import handles
from retrograde.compiler.lower.indexing import Indexing
from retrograde.compiler.lower.values import NONE, Lazy
from retrograde.compiler.types import FLOAT, INT, Operand


@handles(np.argsort, methods="argsort")
def argsort(lower: Indexing, a: Any, axis: Any = -1) -> Any:
    return along_axis(lower, _array(lower, a), axis, lambda x: _order(lower, lower.force(x)), is_vector=True)


@handles(np.sort)
def sort(lower: Indexing, a: Any, axis: Any = -1) -> Any:
    def in_order(x: Any) -> str:
        x = lower.force(x)
        return lower.force(lower.subscript(x, [_order(lower, x)]), "sorted")

    return along_axis(lower, _array(lower, a), axis, in_order, is_vector=True)


def _order(lower: Indexing, a: str) -> str:
    return called(lower, "np.argsort", (a,), ("order", INT, lower.shape(a)))[0]


def _array(lower: Indexing, a: Any) -> Any:
    a = as_array(lower, a)
    if not lower.is_array(a):
        raise lower.refuse("a number where an array is wanted")
    if lower.is_complex(a):
        raise lower.undefined("<", (lower.element_type(a),))
    return a


def sort_in_place(a: Any, axis: Any = -1) -> None:
    """What the method `sort` does."""


@handles(sort_in_place, methods="sort")
def sorted_in_place(lower: Indexing, a: Any, axis: Any = -1) -> Any:
    lower.assign_subscript(a, [Constant(...)], sort(lower, a, axis))
    return NONE


@handles(np.median)
def median(lower: Indexing, a: Any, axis: Any = None) -> Any:
    def of_vector(x: Any) -> Operand:
        in_order = sort(lower, x)
        (n,) = lower.shape(in_order)
        lower.guard_not_empty((n,))
        below = lower.load(in_order, (lower.op("//", lower.op("-", n, 1), 2),))
        above = lower.load(in_order, (lower.op("//", n, 2),))
        return lower.op("*", 0.5, lower.op("+", below, above))

    return along_axis(lower, _array(lower, a), axis, of_vector)


@handles(np.quantile)
def quantile(lower: Indexing, a: Any, q: Any, axis: Any = None) -> Any:
    """Between the two nearest elements in order their straight line."""
    if lower.is_array(q) or isinstance(q, tuple):
        raise lower.refuse("several quantiles at once", "a loop over them")

    def of_vector(x: Any) -> Operand:
        in_order = sort(lower, x)
        (n,) = lower.shape(in_order)
        lower.guard_not_empty((n,))
        last = lower.op("-", n, 1)
        place = lower.op("*", q, last)
        low = lower.op("min", lower.op("cast:int64", lower.op("np.floor", place)), last)
        below = lower.load(in_order, (low,))
        above = lower.load(in_order, (lower.op("min", lower.op("+", low, 1), last),))
        step = lower.op("*", lower.op("-", place, low), lower.op("-", above, below))
        return lower.op("+", below, step)

    return along_axis(lower, _array(lower, a), axis, of_vector)


@handles(np.percentile)
def percentile(lower: Indexing, a: Any, q: Any, axis: Any = None) -> Any:
    return quantile(lower, a, q if isinstance(q, tuple) else lower.elementwise("/", q, 100.0), axis)


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
        is_right = lower.op(">", here, right)  # only beyond the last knot
        # At the last knot its own value, to the last bit, and the slope of the line that ends there.
        inside = lower.op("keep", lower.op("where", lower.op("==", here, right), high, inside), inside)
        return lower.op("where", is_left, low, lower.op("where", is_right, high, inside))

    if not lower.is_array(x):
        return element(())
    type = ops.common(FLOAT, lower.element_type(fp))
    return Lazy(lower.shape(x), element, type, frozenset([x, xp, fp, places]), False)
