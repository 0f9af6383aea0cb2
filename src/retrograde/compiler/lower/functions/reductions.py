"""Reductions over axes, and the positions of extremes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from retrograde.compiler.form import INT, Index, Operand, Set
from retrograde.compiler.lower.functions.arguments import as_array, axes_of, flag_of
from retrograde.compiler.lower.functions.registry import elementwise, handles, truth
from retrograde.compiler.lower.functions.shape import ravel
from retrograde.compiler.lower.indexing import Indexing


@handles(np.sum, methods="sum")
def array_sum(lower: Indexing, a: Any, axis: Any = None, keepdims: Any = False) -> Any:
    return _reduced(lower, a, axis, keepdims, lower.fold_sum)


@handles(np.prod, methods="prod")
def array_prod(lower: Indexing, a: Any, axis: Any = None, keepdims: Any = False) -> Any:
    return _reduced(lower, a, axis, keepdims, lambda shape, element: lower.fold_with("*", 1, shape, element))


@handles(np.mean, methods="mean")
def array_mean(lower: Indexing, a: Any, axis: Any = None, keepdims: Any = False) -> Any:
    def fold(shape: Any, element: Any) -> Operand:
        return lower.op("/", lower.fold_sum(shape, element), lower.size_of(shape))

    return _reduced(lower, a, axis, keepdims, fold)


@handles(np.var, methods="var")
def array_var(lower: Indexing, a: Any, axis: Any = None, ddof: Any = 0, keepdims: Any = False) -> Any:
    def fold(shape: Any, element: Any) -> Operand:
        size = lower.size_of(shape)
        mean = lower.op("/", lower.fold_sum(shape, element), size)

        def square(index: Index) -> Operand:
            return squared_length(lower, lower.op("-", element(index), mean))

        return lower.op("/", lower.fold_sum(shape, square), lower.op("-", size, ddof))

    return _reduced(lower, a, axis, keepdims, fold)


@handles(np.std, methods="std")
def array_std(lower: Indexing, a: Any, axis: Any = None, ddof: Any = 0, keepdims: Any = False) -> Any:
    return elementwise(lower, np.sqrt, [array_var(lower, a, axis, ddof, keepdims)])


@handles(np.max, np.amax, methods="max")
def array_max(lower: Indexing, a: Any, axis: Any = None, keepdims: Any = False, initial: Any = None) -> Any:
    found = _reduced(lower, a, axis, keepdims, lambda shape, element: lower.fold_extreme(">", shape, element))
    return found if initial is None else lower.elementwise("np.maximum", found, initial)


@handles(np.min, np.amin, methods="min")
def array_min(lower: Indexing, a: Any, axis: Any = None, keepdims: Any = False, initial: Any = None) -> Any:
    found = _reduced(lower, a, axis, keepdims, lambda shape, element: lower.fold_extreme("<", shape, element))
    return found if initial is None else lower.elementwise("np.minimum", found, initial)


@handles(np.all, methods="all")
def array_all(lower: Indexing, a: Any, axis: Any = None, keepdims: Any = False) -> Any:
    return _reduced(lower, a, axis, keepdims, lambda shape, element: lower.fold_truth(True, shape, element))


@handles(np.any, methods="any")
def array_any(lower: Indexing, a: Any, axis: Any = None, keepdims: Any = False) -> Any:
    return _reduced(lower, a, axis, keepdims, lambda shape, element: lower.fold_truth(False, shape, element))


def squared_length(lower: Indexing, x: Operand) -> Operand:
    """|x|², without the root."""
    parts = [lower.op(name, x) for name in ("real", "imag")] if lower.type_of(x).is_complex else [x]
    squares = [lower.op("*", part, part) for part in parts]
    return squares[0] if len(squares) == 1 else lower.op("+", *squares)


def _reduced(lower: Indexing, a: Any, axis: Any, keepdims: Any, fold: Callable[[Any, Any], Any]) -> Any:
    a = as_array(lower, a)
    if not lower.is_array(a):
        raise lower.refuse("a reduction of a scalar", "the scalar itself")
    return lower.reduce(a, axes_of(lower, axis, len(lower.shape(a))), flag_of(lower, keepdims, "keepdims"), fold)


@handles(np.argmax, methods="argmax")
def argmax(lower: Indexing, a: Any) -> Any:
    return _position(lower, a, ">")


@handles(np.argmin, methods="argmin")
def argmin(lower: Indexing, a: Any) -> Any:
    return _position(lower, a, "<")


def _position(lower: Indexing, a: Any, sign: str) -> Operand:
    a = as_array(lower, a)
    shape = lower.shape(a)
    if len(shape) != 1:
        a = ravel(lower, a)
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
def nansum(lower: Indexing, a: Any) -> Any:
    a = as_array(lower, a)
    return array_sum(lower, lower.elementwise("where", lower.elementwise("np.isnan", a), 0.0, a))


@handles(np.nanmean)
def nanmean(lower: Indexing, a: Any) -> Any:
    a = as_array(lower, a)
    there = lower.elementwise("not", lower.elementwise("np.isnan", a))
    return lower.elementwise("/", nansum(lower, a), array_sum(lower, there))


@handles(np.trapezoid)
def trapezoid(lower: Indexing, y: Any, x: Any = None, dx: Any = 1.0) -> Any:
    y = as_array(lower, y)
    if len(lower.shape(y)) != 1:
        raise lower.refuse("np.trapezoid of an array of several axes", "a loop over the rows")
    (n,) = lower.shape(y)
    if x is not None:
        x = as_array(lower, x)
        lower.guard_equal(n, lower.shape(x)[0])

    def piece(index: Index) -> Operand:
        after = (lower.op("+", index[0], 1),)
        width = dx if x is None else lower.op("-", lower.element(x, after), lower.element(x, index))
        return lower.op("*", width, lower.op("+", lower.element(y, index), lower.element(y, after)))

    return lower.op("*", 0.5, lower.fold_sum((lower.op("max", lower.op("-", n, 1), 0),), piece))
