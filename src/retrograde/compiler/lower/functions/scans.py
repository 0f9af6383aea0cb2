"""Running sums and products, and differences of neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograde.compiler.form import Add, Set, Slice
from retrograde.compiler.lower.functions.arguments import as_array, axes_of
from retrograde.compiler.lower.functions.lanes import along_axis
from retrograde.compiler.lower.functions.registry import handles
from retrograde.compiler.lower.functions.shape import ravel
from retrograde.compiler.lower.indexing import Indexing
from retrograde.compiler.types import INT


@handles(np.cumsum, methods="cumsum")
def cumsum(lower: Indexing, a: Any, axis: Any = None) -> Any:
    return along_axis(lower, as_array(lower, a), axis, lambda x: _scan(lower, x, "+", 0), is_vector=True)


@handles(np.cumprod, methods="cumprod")
def cumprod(lower: Indexing, a: Any, axis: Any = None) -> Any:
    return along_axis(lower, as_array(lower, a), axis, lambda x: _scan(lower, x, "*", 1), is_vector=True)


def _scan(lower: Indexing, a: Any, fn: str, start: int) -> Any:
    type = lower.element_type(a)
    type = INT if type.kind in "bu" else type
    made = lower.alloc("w", lower.shape(a), type)
    cell = lower.new_cell("s", type, lower.cast(start, type))

    def step(i: str) -> None:
        if fn == "+":
            lower.emit(Add(cell, lower.element(a, (i,))))
        else:
            lower.emit(Set(cell, lower.op(fn, lower.get(cell), lower.element(a, (i,)))))
        lower.store(made, (i,), lower.get(cell))

    lower.loop(0, lower.shape(a)[0], step)
    return made


@handles(np.diff)
def diff(lower: Indexing, a: Any, n: Any = 1, axis: Any = -1) -> Any:
    a = as_array(lower, a)
    (k,) = axes_of(lower, axis, len(lower.shape(a))) or (0,)
    if type(n) is not int or n < 0:
        raise lower.refuse("np.diff with an n that is not written as a number")
    return a if n == 0 else diff(lower, _once(lower, a, k), n - 1, k)


@handles(np.ediff1d)
def ediff1d(lower: Indexing, ary: Any) -> Any:
    return diff(lower, ravel(lower, as_array(lower, ary)))


def _once(lower: Indexing, a: Any, k: int) -> Any:
    before = [Slice() for _ in range(k)]
    ahead = lower.subscript(a, [*before, Slice(1)])
    behind = lower.subscript(a, [*before, Slice(None, -1)])
    return lower.elementwise("-", ahead, behind)
