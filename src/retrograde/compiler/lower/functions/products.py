"""Products of vectors and matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograde.compiler import ops
from retrograde.compiler.form import INT, Operand, Set
from retrograde.compiler.lower.functions.arguments import as_array
from retrograde.compiler.lower.functions.reductions import array_max, array_min, array_sum, squared_length
from retrograde.compiler.lower.functions.registry import handles
from retrograde.compiler.lower.functions.shape import ravel
from retrograde.compiler.lower.indexing import Indexing
from retrograde.compiler.lower.values import ELLIPSIS, Constant


@handles(np.dot, np.matmul, methods="dot")
def product(lower: Indexing, a: Any, b: Any, out: Any = None) -> Any:
    made = dot(lower, a, b)
    if out is None:
        return made
    lower.assign_subscript(out, [ELLIPSIS], made)
    return out


@handles(np.vdot)
def vdot(lower: Indexing, a: Any, b: Any) -> Any:
    a, b = (ravel(lower, as_array(lower, x)) for x in (a, b))
    return dot(lower, lower.elementwise("conj", a), b)


def dot(lower: Indexing, a: Any, b: Any) -> Any:
    a, b = as_array(lower, a), as_array(lower, b)
    ndims = len(lower.shape(a)), len(lower.shape(b))
    if 0 in ndims:
        return lower.elementwise("*", a, b)
    if len({lower.element_type(x).is_complex for x in (a, b)}) > 1 and not lower.is_derived:
        raise lower.refuse(
            "a product of a complex array and one of real numbers, which numba does not take",
            "….astype(np.complex128)",
        )
    if max(ndims) > 2:
        raise lower.refuse("a product of arrays of more than two axes", "a loop over the first axis")
    lower.guard_equal(lower.shape(a)[-1], lower.shape(b)[0], "shapes are not aligned")
    if ndims == (1, 1):
        shape = lower.shape(a)
        return lower.fold_sum(shape, lambda index: lower.op("*", lower.element(a, index), lower.element(b, index)))
    a, b = lower.force(a), lower.force(b)
    type = ops.common(lower.element_type(a), lower.element_type(b))
    if type.kind in "iub":
        type = INT
    rows = lower.shape(a)[:-1]
    columns = lower.shape(b)[1:]
    inner = lower.shape(b)[0]
    made = lower.alloc("w", (*rows, *columns), type, zero=True)
    if ndims == (2, 1):  # a row of a at a time

        def row(i: str) -> None:
            total = lower.fold_sum((inner,), lambda k: lower.op("*", lower.load(a, (i, *k)), lower.load(b, k)))
            lower.store(made, (i,), total)

        lower.loop(0, rows[0], row)
        return made

    def accumulate(i: tuple[str, ...], k: str, j: str) -> None:
        lower.increase(made, (*i, j), lower.op("*", lower.load(a, (*i, k)), lower.load(b, (k, j))))

    def over_inner(i: tuple[str, ...]) -> None:
        lower.loop(0, inner, lambda k: lower.loop(0, columns[0], lambda j: accumulate(i, k, j)))

    if ndims == (1, 2):
        over_inner(())
    else:
        lower.loop(0, rows[0], lambda i: over_inner((i,)))
    return made


@handles(np.cross)
def cross(lower: Indexing, a: Any, b: Any) -> Any:
    a, b = as_array(lower, a), as_array(lower, b)
    for x in (a, b):
        if len(lower.shape(x)) != 1:
            raise lower.refuse("a cross product of arrays of several axes", "a loop over the vectors")
        lower.guard_equal(lower.shape(x)[0], 3, "incompatible dimensions for cross product (dimension must be 3)")

    def part(i: int, j: int) -> Operand:
        left = lower.op("*", lower.element(a, (i,)), lower.element(b, (j,)))
        return lower.op("-", left, lower.op("*", lower.element(a, (j,)), lower.element(b, (i,))))

    return as_array(lower, (part(1, 2), part(2, 0), part(0, 1)))


@handles(np.linalg.norm)
def norm(lower: Indexing, x: Any, ord: Any = None) -> Any:
    x = as_array(lower, x)
    is_vector = len(lower.shape(x)) == 1
    if is_vector and ord in (1, np.inf, -np.inf):
        sizes = lower.elementwise("np.absolute", x)
        return (array_sum if ord == 1 else array_max if ord > 0 else array_min)(lower, sizes)
    is_fro = isinstance(ord, Constant) and ord.value == "fro" and not is_vector
    if not (ord is None or is_fro or (is_vector and ord == 2)):
        raise lower.refuse("this kind of norm", "the norm by its formula")
    return _euclidean(lower, x)


def _euclidean(lower: Indexing, x: Any) -> Any:
    """√Σ|x|²; at the origin the sum of the squares itself, whose derivative there is zero, and not 0 times infinity."""
    squares = lower.reduce(
        x,
        None,
        False,
        lambda shape, element: lower.fold_sum(shape, lambda index: squared_length(lower, element(index))),
    )
    result = lower.new_cell("norm", lower.type_of(squares), squares)
    lower.branch(lower.op(">", squares, 0.0), lambda: lower.emit(Set(result, lower.op("np.sqrt", squares))))
    return lower.get(result)


@handles(np.trace, methods="trace")
def trace(lower: Indexing, a: Any) -> Any:
    n, m = lower.shape(a)
    return lower.fold_sum((lower.op("min", n, m),), lambda index: lower.element(a, (*index, *index)))


@handles(np.outer)
def outer(lower: Indexing, a: Any, b: Any) -> Any:
    a, b = (ravel(lower, x) if len(lower.shape(x)) != 1 else x for x in (as_array(lower, a), as_array(lower, b)))
    shape = (lower.shape(a)[0], lower.shape(b)[0])
    column = lower.lazily(a, (shape[0], 1), lambda index: lower.element(a, index[:1]))
    return lower.elementwise("*", column, b)
