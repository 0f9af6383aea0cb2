"""Reductions over axes, and the positions of extremes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from retrograde.compiler.form import Index, Set, Slice
from retrograde.compiler.lower.functions.arguments import as_array, axes_of, flag_of
from retrograde.compiler.lower.functions.lanes import along_axis
from retrograde.compiler.lower.functions.registry import handles, truth
from retrograde.compiler.lower.indexing import Indexing
from retrograde.compiler.lower.values import NONE
from retrograde.compiler.types import INT, Operand


@handles(np.sum, methods="sum")
def array_sum(
    lower: Indexing, a: Any, axis: Any = None, keepdims: Any = False, initial: Any = None, where: Any = None
) -> Any:
    if where is not None:
        a = lower.elementwise("where", truth(lower, as_array(lower, where)), as_array(lower, a), 0)
    total = reduced(lower, a, axis, keepdims, lower.fold_sum)
    return total if initial is None else lower.elementwise("+", total, initial)


@handles(np.prod, methods="prod")
def array_prod(lower: Indexing, a: Any, axis: Any = None, keepdims: Any = False) -> Any:
    return reduced(lower, a, axis, keepdims, lambda shape, element: lower.fold_with("*", 1, shape, element))


@handles(np.mean, methods="mean")
def array_mean(lower: Indexing, a: Any, axis: Any = None, keepdims: Any = False) -> Any:
    def fold(shape: Any, element: Any) -> Operand:
        return lower.op("/", lower.fold_sum(shape, element), lower.size_of(shape))

    return reduced(lower, a, axis, keepdims, fold)


@handles(np.var, methods="var")
def array_var(lower: Indexing, a: Any, axis: Any = None, ddof: Any = 0, keepdims: Any = False) -> Any:
    return _spread(lower, a, axis, ddof, keepdims, lambda d: squared_length(lower, d))


@handles(np.std, methods="std")
def array_std(lower: Indexing, a: Any, axis: Any = None, ddof: Any = 0, keepdims: Any = False) -> Any:
    return lower.elementwise(
        "root", _spread(lower, a, axis, ddof, keepdims, lambda d: squared_length(lower, d, "squared"))
    )


def _spread(lower: Indexing, a: Any, axis: Any, ddof: Any, keepdims: Any, square: Callable[[Operand], Operand]) -> Any:
    """The mean of the squares of the deviations."""

    def fold(shape: Any, element: Any) -> Operand:
        size = lower.size_of(shape)
        mean = lower.op("/", lower.fold_sum(shape, element), size)
        total = lower.fold_sum(shape, lambda index: square(lower.op("-", element(index), mean)))
        return lower.op("/", total, lower.op("-", size, ddof))

    return reduced(lower, a, axis, keepdims, fold)


@handles(np.max, np.amax, methods="max")
def array_max(lower: Indexing, a: Any, axis: Any = None, keepdims: Any = False, initial: Any = None) -> Any:
    found = reduced(lower, a, axis, keepdims, lambda shape, element: lower.fold_extreme(">", shape, element))
    return found if initial is None else lower.elementwise("np.maximum", found, initial)


@handles(np.min, np.amin, methods="min")
def array_min(lower: Indexing, a: Any, axis: Any = None, keepdims: Any = False, initial: Any = None) -> Any:
    found = reduced(lower, a, axis, keepdims, lambda shape, element: lower.fold_extreme("<", shape, element))
    return found if initial is None else lower.elementwise("np.minimum", found, initial)


@handles(np.all, methods="all")
def array_all(lower: Indexing, a: Any, axis: Any = None, keepdims: Any = False) -> Any:
    return reduced(lower, a, axis, keepdims, lambda shape, element: lower.fold_truth(True, shape, element))


@handles(np.any, methods="any")
def array_any(lower: Indexing, a: Any, axis: Any = None, keepdims: Any = False) -> Any:
    return reduced(lower, a, axis, keepdims, lambda shape, element: lower.fold_truth(False, shape, element))


def squared_length(lower: Indexing, x: Operand, fn: str = "*") -> Operand:
    """|x|², without the root; `squared` as fn where the root will be taken."""
    parts = [lower.op(name, x) for name in ("real", "imag")] if lower.type_of(x).is_complex else [x]
    squares = [lower.op(fn, *[part] * (1 if fn == "squared" else 2)) for part in parts]
    return squares[0] if len(squares) == 1 else lower.op("+", *squares)


def reduced(lower: Indexing, a: Any, axis: Any, keepdims: Any, fold: Callable[[Any, Any], Any]) -> Any:
    a = as_array(lower, a)
    if not lower.is_array(a):
        raise lower.refuse("a reduction of a scalar", "the scalar itself")
    return lower.reduce(a, axes_of(lower, axis, len(lower.shape(a))), flag_of(lower, keepdims, "keepdims"), fold)


@handles(np.argmax, methods="argmax")
def argmax(lower: Indexing, a: Any, axis: Any = None) -> Any:
    return along_axis(lower, as_array(lower, a), axis, lambda x: _position(lower, x, ">"))


@handles(np.argmin, methods="argmin")
def argmin(lower: Indexing, a: Any, axis: Any = None) -> Any:
    return along_axis(lower, as_array(lower, a), axis, lambda x: _position(lower, x, "<"))


def _position(lower: Indexing, a: Any, sign: str) -> Operand:
    shape = lower.shape(a)
    if lower.element_type(a).is_complex:
        raise lower.undefined(sign, (lower.element_type(a),))
    lower.guard_not_empty(shape)
    best = lower.new_cell("best", lower.element_type(a), lower.value_only(lower.element(a, (0,))))
    place = lower.new_cell("place", INT, 0)

    def look(i: str) -> None:
        x = lower.value_only(lower.element(a, (i,)))
        found = lower.get(best)
        is_better = lower.op(sign, x, found)
        if lower.element_type(a).kind == "f":
            is_nan = lower.op("and", lower.op("!=", x, x), lower.op("==", found, found))
            is_better = lower.op("or", is_better, is_nan)

        def better() -> None:
            lower.emit(Set(best, x))
            lower.emit(Set(place, i))

        lower.branch(is_better, better)

    lower.loop(1, shape[0], look)
    return lower.get(place)


@handles(np.ptp)
def ptp(lower: Indexing, a: Any, axis: Any = None) -> Any:
    return lower.elementwise("-", array_max(lower, a, axis), array_min(lower, a, axis))


@handles(np.count_nonzero)
def count_nonzero(lower: Indexing, a: Any, axis: Any = None) -> Any:
    return array_sum(lower, truth(lower, as_array(lower, a)), axis)


@handles(np.nansum)
def nansum(lower: Indexing, a: Any, axis: Any = None, keepdims: Any = False) -> Any:
    return array_sum(lower, _in_place_of_nan(lower, a, 0.0), axis, keepdims)


@handles(np.nanprod)
def nanprod(lower: Indexing, a: Any, axis: Any = None, keepdims: Any = False) -> Any:
    return array_prod(lower, _in_place_of_nan(lower, a, 1.0), axis, keepdims)


@handles(np.nanmean)
def nanmean(lower: Indexing, a: Any, axis: Any = None, keepdims: Any = False) -> Any:
    return lower.elementwise("/", nansum(lower, a, axis, keepdims), _count(lower, a, axis, keepdims))


@handles(np.nanvar)
def nanvar(lower: Indexing, a: Any, axis: Any = None, ddof: Any = 0, keepdims: Any = False) -> Any:
    return _nanspread(lower, a, axis, ddof, keepdims, "*")


@handles(np.nanstd)
def nanstd(lower: Indexing, a: Any, axis: Any = None, ddof: Any = 0, keepdims: Any = False) -> Any:
    return lower.elementwise("root", _nanspread(lower, a, axis, ddof, keepdims, "squared"))


def _nanspread(lower: Indexing, a: Any, axis: Any, ddof: Any, keepdims: Any, fn: str) -> Any:
    a = as_array(lower, a)
    deviations = _in_place_of_nan(lower, lower.elementwise("-", a, nanmean(lower, a, axis, True)), 0.0)
    squares = lower.elementwise(fn, *[deviations] * (1 if fn == "squared" else 2))
    freedom = lower.elementwise("-", _count(lower, a, axis, keepdims), ddof)
    return lower.elementwise("/", array_sum(lower, squares, axis, keepdims), freedom)


@handles(np.nanmax)
def nanmax(lower: Indexing, a: Any, axis: Any = None, keepdims: Any = False) -> Any:
    found = array_max(lower, _in_place_of_nan(lower, a, -np.inf), axis, keepdims)
    return _where_counted(lower, a, axis, keepdims, found)


@handles(np.nanmin)
def nanmin(lower: Indexing, a: Any, axis: Any = None, keepdims: Any = False) -> Any:
    found = array_min(lower, _in_place_of_nan(lower, a, np.inf), axis, keepdims)
    return _where_counted(lower, a, axis, keepdims, found)


def _in_place_of_nan(lower: Indexing, a: Any, value: float) -> Any:
    a = as_array(lower, a)
    return lower.elementwise("where", lower.elementwise("np.isnan", a), value, a)


def _count(lower: Indexing, a: Any, axis: Any, keepdims: Any) -> Any:
    there = lower.elementwise("not", lower.elementwise("np.isnan", as_array(lower, a)))
    return array_sum(lower, there, axis, keepdims)


def _where_counted(lower: Indexing, a: Any, axis: Any, keepdims: Any, found: Any) -> Any:
    """The extreme, and NaN where there is nothing else."""
    is_there = lower.elementwise(">", _count(lower, a, axis, keepdims), 0)
    return lower.elementwise("where", is_there, found, np.nan)


@handles(np.average)
def average(lower: Indexing, a: Any, axis: Any = None, weights: Any = None, keepdims: Any = False) -> Any:
    if weights is None:
        return array_mean(lower, a, axis, keepdims)
    a, weights = as_array(lower, a), as_array(lower, weights)
    if len(lower.shape(weights)) != len(lower.shape(a)):
        (k,) = axes_of(lower, axis, len(lower.shape(a))) or (0,)
        total = array_sum(lower, weights)
        weights = lower.subscript(weights, [Slice() if j == k else NONE for j in range(len(lower.shape(a)))])
    else:
        total = array_sum(lower, weights, axis, keepdims)
    return lower.elementwise("/", array_sum(lower, lower.elementwise("*", a, weights), axis, keepdims), total)


@handles(sum)
def builtin_sum(lower: Indexing, iterable: Any, start: Any = 0) -> Any:
    if not isinstance(iterable, tuple) and not (lower.is_array(iterable) and len(lower.shape(iterable)) == 1):
        raise lower.refuse("sum of something that is no tuple or array of one axis", "np.sum(x), np.sum(x, axis=0)")
    items = iterable if isinstance(iterable, tuple) else (array_sum(lower, iterable),)
    for item in items:
        start = lower.elementwise("+", start, item)
    return start


@handles(np.trapezoid)
def trapezoid(lower: Indexing, y: Any, x: Any = None, dx: Any = 1.0, axis: Any = -1) -> Any:
    x = None if x is None else as_array(lower, x)
    if x is not None and len(lower.shape(x)) != 1:
        raise lower.refuse("np.trapezoid with an x of several axes", "a loop over the rows")
    return along_axis(lower, as_array(lower, y), axis, lambda lane: _trapezoid(lower, lane, x, dx))


def _trapezoid(lower: Indexing, y: Any, x: Any, dx: Any) -> Operand:
    (n,) = lower.shape(y)
    if x is not None:
        lower.guard_equal(n, lower.shape(x)[0])

    def piece(index: Index) -> Operand:
        after = (lower.op("+", index[0], 1),)
        width = dx if x is None else lower.op("-", lower.element(x, after), lower.element(x, index))
        return lower.op("*", width, lower.op("+", lower.element(y, index), lower.element(y, after)))

    return lower.op("*", 0.5, lower.fold_sum((lower.op("max", lower.op("-", n, 1), 0),), piece))
