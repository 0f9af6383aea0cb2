"""The same elements in another shape or order, and arrays joined."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from retrograde.compiler import ops
from retrograde.compiler.form import Index, Slice
from retrograde.compiler.lower.functions.arguments import as_array, axes_of, sequence_of, shape_of
from retrograde.compiler.lower.functions.registry import handles
from retrograde.compiler.lower.indexing import Indexing
from retrograde.compiler.lower.values import NONE, Lazy, is_field
from retrograde.compiler.types import Operand


@handles(np.transpose, methods="transpose")
def transpose(lower: Indexing, a: Any, axes: Any = None) -> Any:
    ndim = len(lower.shape(a))
    if axes is not None:
        order = axes_of(lower, axes, ndim) or ()
        if sorted(order) != list(range(ndim)):
            raise lower.refuse(f"axes {axes} for an array of {ndim} axes")
        if order != tuple(reversed(range(ndim))):
            return _permuted(lower, a, order)
    if is_field(a):
        return lower.field(lower.transposed(a.part_of), a.field)
    if isinstance(a, Lazy):
        return lower.lazily(a, a.shape[::-1], lambda index: a.element(index[::-1]))
    return lower.transposed(a)


def _permuted(lower: Indexing, a: Any, order: tuple[int, ...]) -> Any:
    """Axes in another order: a copy, unless somebody could tell it from a view."""
    if order == tuple(range(len(order))):
        return a
    if is_field(a):
        return lower.field(_permuted(lower, a.part_of, order), a.field)
    shape = lower.shape(a)

    def element(index: Index) -> Operand:
        return lower.element(a, tuple(index[order.index(axis)] for axis in range(len(order))))

    made = lower.lazily(a, tuple(shape[axis] for axis in order), element)
    return lower.detached(made, a) if isinstance(a, str) else made


@handles(np.swapaxes, methods="swapaxes")
def swapaxes(lower: Indexing, a: Any, axis1: Any, axis2: Any) -> Any:
    n = len(lower.shape(a))
    (i,), (j,) = axes_of(lower, axis1, n) or (0,), axes_of(lower, axis2, n) or (0,)
    order = list(range(n))
    order[i], order[j] = j, i
    return transpose(lower, a, tuple(order))


@handles(np.moveaxis)
def moveaxis(lower: Indexing, a: Any, source: Any, destination: Any) -> Any:
    n = len(lower.shape(a))
    moved = dict(zip(axes_of(lower, destination, n) or (), axes_of(lower, source, n) or (), strict=True))
    rest = iter(axis for axis in range(n) if axis not in moved.values())
    return transpose(lower, a, tuple(moved[axis] if axis in moved else next(rest) for axis in range(n)))


@handles(np.matrix_transpose, np.linalg.matrix_transpose)
def matrix_transpose(lower: Indexing, x: Any) -> Any:
    return swapaxes(lower, x, -1, -2)


@handles(np.shape)
def shape(lower: Indexing, a: Any) -> Any:
    return tuple(lower.shape(as_array(lower, a)))


@handles(np.ndim)
def ndim(lower: Indexing, a: Any) -> Any:
    return len(lower.shape(as_array(lower, a)))


@handles(np.size)
def size(lower: Indexing, a: Any) -> Any:
    return lower.size_of(lower.shape(as_array(lower, a)))


@handles(np.ravel, methods="ravel")
def ravel(lower: Indexing, a: Any) -> Any:
    return a if len(lower.shape(a)) == 1 else reshape(lower, a, -1)


def flatten(a: Any) -> Any:
    """What the method of that name does."""


@handles(flatten, methods="flatten")
def flattened(lower: Indexing, a: Any) -> Any:
    return lower.copied(a) if len(lower.shape(a)) == 1 else reshape(lower, lower.copied(a), -1)


@handles(np.reshape, methods="reshape")
def reshape(lower: Indexing, a: Any, shape: Any) -> Any:
    """The elements in another shape: a copy, unless somebody could tell it from a view."""
    if is_field(a):
        return lower.field(reshape(lower, a.part_of, shape), a.field)
    old = lower.shape(a)
    total = lower.size_of(old)
    sizes = list(shape_of(lower, shape))
    if any(type(n) is int and n == -1 for n in sizes):
        k = next(j for j, n in enumerate(sizes) if type(n) is int and n == -1)
        rest = lower.size_of(tuple(n for j, n in enumerate(sizes) if j != k))
        sizes[k] = total if rest == 1 and type(rest) is int else lower.op("//", total, lower.op("max", rest, 1))
    new = tuple(sizes)
    lower.guard_equal(lower.size_of(new), total, "cannot reshape array: the numbers of elements differ")
    source = lower.force(a)
    if lower.must_be_a_view():
        return lower.reshaped(source, new)

    def element(index: Index) -> Operand:
        flat: Operand = 0
        for i, n in zip(index, new, strict=True):
            flat = lower.op("+", lower.op("*", flat, n), i)
        places: list[Operand] = []
        for n in reversed(old[1:]):
            places.append(lower.op("%", flat, n))
            flat = lower.op("//", flat, n)
        return lower.load(source, (flat, *reversed(places)))

    return lower.detached(lower.lazily(source, new, element), source)


@handles(np.concatenate)
def concatenate(lower: Indexing, arrays: Any, axis: Any = 0) -> Any:
    parts = [as_array(lower, a) for a in sequence_of(lower, arrays)]
    (k,) = axes_of(lower, axis, len(lower.shape(parts[0]))) or (0,)
    for p in parts[1:]:
        for j, (n, m) in enumerate(zip(lower.shape(parts[0]), lower.shape(p), strict=True)):
            if j != k:
                lower.guard_equal(n, m, "all the input array dimensions must match")
    starts: list[Operand] = [0]
    for p in parts:
        starts.append(lower.op("+", starts[-1], lower.shape(p)[k]))
    shape = (*lower.shape(parts[0])[:k], starts[-1], *lower.shape(parts[0])[k + 1 :])
    made = lower.alloc("w", shape, ops.common(*(lower.element_type(p) for p in parts)))
    for p, start in zip(parts, starts, strict=False):

        def put(index: Index, p: Any = p, start: Operand = start) -> None:
            place = (*index[:k], lower.op("+", start, index[k]), *index[k + 1 :])
            lower.store(made, place, lower.element(p, index))

        lower.nest(lower.shape(p), put)
    return made


@handles(np.stack)
def stack(lower: Indexing, arrays: Any, axis: Any = 0) -> Any:
    parts = [as_array(lower, a) for a in sequence_of(lower, arrays)]
    ndim = len(lower.shape(parts[0])) + 1
    (k,) = axes_of(lower, axis, ndim) or (0,)
    for p in parts[1:]:
        for n, m in zip(lower.shape(parts[0]), lower.shape(p), strict=True):
            lower.guard_equal(n, m, "all input arrays must have the same shape")
    inner = lower.shape(parts[0])
    made = lower.alloc("w", (*inner[:k], len(parts), *inner[k:]), ops.common(*(lower.element_type(p) for p in parts)))
    for number, p in enumerate(parts):

        def put(index: Index, p: Any = p, number: int = number) -> None:
            lower.store(made, (*index[:k], number, *index[k:]), lower.element(p, index))

        lower.nest(inner, put)
    return made


@handles(np.hstack)
def hstack(lower: Indexing, tup: Any) -> Any:
    parts = sequence_of(lower, tup)
    return concatenate(lower, parts, 0 if len(lower.shape(as_array(lower, parts[0]))) == 1 else 1)


@handles(np.vstack)
def vstack(lower: Indexing, tup: Any) -> Any:
    parts = [as_array(lower, a) for a in sequence_of(lower, tup)]
    rows = [lower.subscript(a, [NONE, Slice()]) if len(lower.shape(a)) == 1 else a for a in parts]
    return concatenate(lower, tuple(rows), 0)


@handles(np.column_stack)
def column_stack(lower: Indexing, tup: Any) -> Any:
    parts = [as_array(lower, a) for a in sequence_of(lower, tup)]
    columns = [lower.subscript(a, [Slice(), NONE]) if len(lower.shape(a)) == 1 else a for a in parts]
    return concatenate(lower, tuple(columns), 1)


def _always(x: Operand, index: Index) -> Operand:
    return x


@handles(np.append)
def append(lower: Indexing, arr: Any, values: Any, axis: Any = None) -> Any:
    if axis is not None:
        return concatenate(lower, (arr, values), axis)
    parts = []
    for x in (as_array(lower, arr), as_array(lower, values)):
        parts.append(
            ravel(lower, x) if lower.is_array(x) else Lazy((1,), functools.partial(_always, x), lower.type_of(x))
        )
    return concatenate(lower, tuple(parts), 0)


@handles(np.expand_dims)
def expand_dims(lower: Indexing, a: Any, axis: Any) -> Any:
    n = len(lower.shape(a)) + 1
    if type(axis) is not int or not -n <= axis < n:
        raise lower.refuse("np.expand_dims with an axis that is not written as a number", "x[:, None]")
    return lower.subscript(a, [NONE if k == axis % n else Slice() for k in range(n)])


@handles(np.broadcast_to)
def broadcast_to(lower: Indexing, array: Any, shape: Any) -> Any:
    array, wanted = as_array(lower, array), shape_of(lower, shape)
    if is_field(array):
        return lower.field(broadcast_to(lower, array.part_of, shape), array.field)
    for n, m in zip(reversed(wanted), reversed(lower.shape(array)), strict=False):
        if not (type(m) is int and m == 1):
            lower.guard_equal(n, m)
    made = Lazy(wanted, lambda index: lower.element(array, index), lower.element_type(array), lower.reads(array))
    return lower.detached(made, array) if isinstance(array, str) and lower.is_array(array) else made


BACKWARDS = Slice(None, None, -1)


@handles(np.flip)
def flip(lower: Indexing, m: Any, axis: Any = None) -> Any:
    ndim = len(lower.shape(m))
    axes = axes_of(lower, axis, ndim)
    return lower.subscript(m, [BACKWARDS if axes is None or k in axes else Slice() for k in range(ndim)])


@handles(np.flipud)
def flipud(lower: Indexing, m: Any) -> Any:
    return lower.subscript(m, [BACKWARDS])


@handles(np.fliplr)
def fliplr(lower: Indexing, m: Any) -> Any:
    return lower.subscript(m, [Slice(), BACKWARDS])


@handles(np.roll)
def roll(lower: Indexing, a: Any, shift: Any, axis: Any = None) -> Any:
    a = as_array(lower, a)
    shape = lower.shape(a)
    if isinstance(shift, tuple) or isinstance(axis, tuple):
        raise lower.refuse("np.roll along several axes", "one axis after the other")
    if axis is None and len(shape) != 1:
        return reshape(lower, roll(lower, ravel(lower, a), shift), shape)
    (k,) = axes_of(lower, 0 if axis is None else axis, len(shape)) or (0,)

    def element(index: Index) -> Operand:
        from_there = lower.op("%", lower.op("-", index[k], shift), shape[k])
        return lower.element(a, (*index[:k], from_there, *index[k + 1 :]))

    return lower.lazily(a, shape, element)


@handles(np.repeat, methods="repeat")
def repeat(lower: Indexing, a: Any, repeats: Any, axis: Any = None) -> Any:
    a = as_array(lower, a)
    if lower.is_array(repeats) or isinstance(repeats, tuple) or not lower.is_array(a):
        raise lower.refuse("np.repeat of a number, or with an array of counts", "a loop that fills an array")
    a = ravel(lower, a) if axis is None else a
    shape = lower.shape(a)
    (k,) = axes_of(lower, 0 if axis is None else axis, len(shape)) or (0,)
    longer = (*shape[:k], lower.op("*", shape[k], repeats), *shape[k + 1 :])

    def element(index: Index) -> Operand:
        return lower.element(a, (*index[:k], lower.op("//", index[k], repeats), *index[k + 1 :]))

    return lower.lazily(a, longer, element)


@handles(np.tile)
def tile(lower: Indexing, A: Any, reps: Any) -> Any:
    a = as_array(lower, A)
    counts = shape_of(lower, reps)
    ndim = max(len(counts), len(lower.shape(a)))
    shape = (*(1,) * (ndim - len(lower.shape(a))), *lower.shape(a))
    counts = (*(1,) * (ndim - len(counts)), *counts)
    longer = tuple(lower.op("*", n, m) for n, m in zip(shape, counts, strict=True))

    def element(index: Index) -> Operand:
        places = tuple(i if m == 1 else lower.op("%", i, n) for i, n, m in zip(index, shape, counts, strict=True))
        return lower.element(a, places[ndim - len(lower.shape(a)) :])

    return lower.lazily(a, longer, element)


@handles(np.take, methods="take")
def take(lower: Indexing, a: Any, indices: Any, axis: Any = None) -> Any:
    a, indices = as_array(lower, a), as_array(lower, indices)
    if axis is None:
        return lower.subscript(ravel(lower, a), [indices])
    (k,) = axes_of(lower, axis, len(lower.shape(a))) or (0,)
    return lower.subscript(a, [*(Slice() for _ in range(k)), indices])


@handles(np.kron)
def kron(lower: Indexing, a: Any, b: Any) -> Any:
    a, b = as_array(lower, a), as_array(lower, b)
    if len(lower.shape(a)) != 2 or len(lower.shape(b)) != 2:
        raise lower.refuse("np.kron of something else than two matrices", "a loop")
    (n, m), (p, q) = lower.shape(a), lower.shape(b)

    def element(index: Index) -> Operand:
        i, j = index
        left = lower.element(a, (lower.op("//", i, p), lower.op("//", j, q)))
        return lower.op("*", left, lower.element(b, (lower.op("%", i, p), lower.op("%", j, q))))

    type = ops.common(lower.element_type(a), lower.element_type(b))
    return Lazy((lower.op("*", n, p), lower.op("*", m, q)), element, type, lower.reads(a) | lower.reads(b))
