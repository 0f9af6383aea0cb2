"""Places, counts and comparisons: functions whose results are integers or truth values, and have no derivative."""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograde.compiler.form import Index, Slice
from retrograde.compiler.known import Constant
from retrograde.compiler.lower.functions.arguments import as_array
from retrograde.compiler.lower.functions.order import searchsorted
from retrograde.compiler.lower.functions.reductions import array_all, array_max
from retrograde.compiler.lower.functions.registry import handles, truth
from retrograde.compiler.lower.functions.shape import ravel
from retrograde.compiler.lower.indexing import Indexing
from retrograde.compiler.types import INT


@handles(np.nonzero, methods="nonzero")
def nonzero(lower: Indexing, a: Any) -> Any:
    a = as_array(lower, a)
    places = lower.true_places(truth(lower, a))
    return tuple(lower.view(places, (Slice(), axis)) for axis in range(len(lower.shape(a))))


@handles(np.flatnonzero)
def flatnonzero(lower: Indexing, a: Any) -> Any:
    return nonzero(lower, ravel(lower, as_array(lower, a)))[0]


@handles(np.argwhere)
def argwhere(lower: Indexing, a: Any) -> Any:
    return lower.true_places(truth(lower, as_array(lower, a)))


@handles(np.digitize)
def digitize(lower: Indexing, x: Any, bins: Any, right: Any = False) -> Any:
    """The number of the bin of each element, for bins that increase."""
    if type(right) is not bool:
        raise lower.refuse("right= that is not written as True or False")
    return searchsorted(lower, bins, x, Constant("left" if right else "right"))


@handles(np.bincount)
def bincount(lower: Indexing, x: Any, weights: Any = None, minlength: Any = 0) -> Any:
    x = lower.force(as_array(lower, x))
    if lower.element_type(x).kind not in "iu":
        raise lower.refuse("np.bincount of something that is no array of integers")
    weights = None if weights is None else as_array(lower, weights)
    count = lower.op("max", lower.op("+", array_max(lower, x), 1), minlength)
    made = lower.alloc("w", (count,), INT if weights is None else lower.element_type(weights), zero=True)
    if weights is not None:
        lower.guard_equal(lower.shape(x)[0], lower.shape(weights)[0], "the weights and list have different lengths")

    def add(index: Index) -> None:
        lower.increase(made, (lower.load(x, index),), 1 if weights is None else lower.element(weights, index))

    lower.nest(lower.shape(x), add)
    return made


@handles(np.isclose)
def isclose(lower: Indexing, a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8) -> Any:
    a, b = as_array(lower, a), as_array(lower, b)
    gap = lower.elementwise("np.absolute", lower.elementwise("-", a, b))
    size = lower.elementwise("np.absolute", b)
    near = lower.elementwise("<=", gap, lower.elementwise("+", atol, lower.elementwise("*", rtol, size)))
    # An infinity is close to none but itself.
    near = lower.elementwise("and", near, lower.elementwise("np.isfinite", size))
    return lower.elementwise("or", near, lower.elementwise("==", a, b))


@handles(np.allclose)
def allclose(lower: Indexing, a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8) -> Any:
    near = isclose(lower, a, b, rtol, atol)
    return array_all(lower, near) if lower.is_array(near) else near
