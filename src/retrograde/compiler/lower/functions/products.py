"""Products of vectors and matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograde.compiler import ops
from retrograde.compiler.form import Index, Slice
from retrograde.compiler.known import Constant
from retrograde.compiler.lower.builder import SMALL
from retrograde.compiler.lower.functions.arguments import as_array, axes_of, sequence_of
from retrograde.compiler.lower.functions.einsum import contracted
from retrograde.compiler.lower.functions.reductions import array_max, array_min, array_sum, reduced, squared_length
from retrograde.compiler.lower.functions.registry import handles
from retrograde.compiler.lower.functions.shape import ravel, stack
from retrograde.compiler.lower.indexing import Indexing
from retrograde.compiler.lower.values import ELLIPSIS, Lazy
from retrograde.compiler.types import INT, Operand, Type

FULL, VALID = Constant("full"), Constant("valid")


@handles(np.dot, methods="dot")
def product(lower: Indexing, a: Any, b: Any, out: Any = None) -> Any:
    return _given_out(lower, dot(lower, a, b), out)


@handles(np.matmul)
def matrix_product(lower: Indexing, a: Any, b: Any, out: Any = None) -> Any:
    return _given_out(lower, matmul(lower, a, b), out)


def _given_out(lower: Indexing, made: Any, out: Any) -> Any:
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
        raise lower.refuse("np.dot of arrays of more than two axes", "a @ b", "np.einsum")
    lower.guard_equal(lower.shape(a)[-1], lower.shape(b)[0], "shapes are not aligned")
    if ndims == (1, 1):
        shape = lower.shape(a)
        return lower.fold_sum(shape, lambda index: lower.op("*", lower.element(a, index), lower.element(b, index)))
    a, b = lower.force(a), lower.force(b)
    type = ops.common(lower.element_type(a), lower.element_type(b))
    length = next((n for n in (lower.shape(a)[-1], lower.shape(b)[0]) if isinstance(n, int)), 0)
    if 0 < length <= SMALL and type.is_inexact:
        return _of_short_sums(lower, a, b, length, type)
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


def _of_short_sums(lower: Indexing, a: str, b: str, length: int, type: Type) -> Lazy:
    """A product with a matrix whose elements are sums of so few terms that each is written out where it is wanted."""
    rows, columns = lower.shape(a)[:-1], lower.shape(b)[1:]

    def element(index: Index) -> Operand:
        i, j = index[: len(rows)], index[len(rows) :]
        total: Operand = None
        for k in range(length):
            term = lower.op("*", lower.load(a, (*i, k)), lower.load(b, (k, *j)))
            total = term if total is None else lower.op("+", total, term)
        return total

    return Lazy((*rows, *columns), element, type, frozenset([a, b]), is_cheap=False)


def matmul(lower: Indexing, a: Any, b: Any) -> Any:
    """`a @ b`, also of stacks of matrices."""
    a, b = as_array(lower, a), as_array(lower, b)
    ndims = len(lower.shape(a)), len(lower.shape(b))
    if max(ndims) <= 2 or 0 in ndims:
        return dot(lower, a, b)
    letters = "abcdefgh"
    left, right = ("k" if ndims[0] == 1 else "ik"), ("k" if ndims[1] == 1 else "kj")
    stacks = letters[: max(*ndims, 2) - 2]
    result = stacks + left[:-1] + right[1:]
    names = [stacks[len(stacks) - max(n - 2, 0) :] + x for n, x in zip(ndims, (left, right), strict=True)]
    return contracted(lower, names, result, [a, b])


@handles(np.vecdot, np.linalg.vecdot)
def vecdot(lower: Indexing, x1: Any, x2: Any) -> Any:
    return array_sum(lower, lower.elementwise("*", as_array(lower, x1), as_array(lower, x2)), -1)


@handles(np.matvec)
def matvec(lower: Indexing, x1: Any, x2: Any) -> Any:
    if len(lower.shape(x1)) == 2 and len(lower.shape(x2)) == 1:
        return dot(lower, x1, x2)
    raise lower.refuse("np.matvec of stacks", "np.einsum")


@handles(np.linalg.multi_dot)
def multi_dot(lower: Indexing, arrays: Any) -> Any:
    first, *rest = sequence_of(lower, arrays)
    for x in rest:
        first = dot(lower, first, x)
    return first


@handles(np.cross, np.linalg.cross)
def cross(lower: Indexing, a: Any, b: Any) -> Any:
    a, b = as_array(lower, a), as_array(lower, b)
    for x in (a, b):
        lower.guard_equal(lower.shape(x)[-1], 3, "incompatible dimensions for cross product (dimension must be 3)")
    if len(lower.shape(a)) == 1 == len(lower.shape(b)):
        u, v = ([lower.element(x, (i,)) for i in range(3)] for x in (a, b))
    else:
        u, v = ([lower.subscript(x, [ELLIPSIS, i]) for i in range(3)] for x in (a, b))

    def part(i: int, j: int) -> Any:
        return lower.elementwise("-", lower.elementwise("*", u[i], v[j]), lower.elementwise("*", u[j], v[i]))

    parts = part(1, 2), part(2, 0), part(0, 1)
    return stack(lower, parts, -1) if lower.is_array(parts[0]) else as_array(lower, parts)


@handles(np.convolve)
def convolve(lower: Indexing, a: Any, v: Any, mode: Any = FULL) -> Any:
    """Sums of a[i] v[k - i]; of them all, the middle ones, or those that lack no element."""
    a, v = lower.force(as_array(lower, a)), lower.force(as_array(lower, v))
    (n,), (m,) = lower.shape(a), lower.shape(v)
    lower.guard_not_empty((n, m))
    kind = mode.value if isinstance(mode, Constant) else ""
    if kind not in ("full", "same", "valid"):
        raise lower.refuse("np.convolve with a mode that is not written as a text", 'mode="same"')
    longer, shorter = lower.op("max", n, m), lower.op("min", n, m)
    rest = lower.op("-", shorter, 1)
    type = ops.common(lower.element_type(a), lower.element_type(v))
    made = lower.alloc("w", (lower.op("+", longer, rest),), type, zero=True)

    def add(index: Any) -> None:
        i, j = index
        lower.increase(made, (lower.op("+", i, j),), lower.op("*", lower.load(a, (i,)), lower.load(v, (j,))))

    lower.nest((n, m), add)
    if kind == "full":
        return made
    low = rest if kind == "valid" else lower.op("//", rest, 2)
    count = lower.op("-", longer, rest) if kind == "valid" else longer
    return lower.copied(lower.view(made, (Slice(low, lower.op("+", low, count)),)))


@handles(np.correlate)
def correlate(lower: Indexing, a: Any, v: Any, mode: Any = VALID) -> Any:
    return convolve(lower, a, lower.subscript(as_array(lower, v), [Slice(None, None, -1)]), mode)


@handles(np.linalg.norm)
def norm(lower: Indexing, x: Any, ord: Any = None, axis: Any = None, keepdims: Any = False) -> Any:
    x = as_array(lower, x)
    ndim = len(lower.shape(x))
    axes = axes_of(lower, axis, ndim)
    is_vector = ndim == 1 if axes is None else len(axes) == 1
    if is_vector and ord in (1, np.inf, -np.inf):
        sizes = lower.elementwise("np.absolute", x)
        return (array_sum if ord == 1 else array_max if ord > 0 else array_min)(lower, sizes, axis, keepdims)
    is_fro = isinstance(ord, Constant) and ord.value == "fro" and not is_vector
    if not (ord is None or is_fro or (is_vector and ord == 2)):
        raise lower.refuse("this kind of norm", "the norm by its formula")

    def squares(shape: Any, element: Any) -> Any:
        return lower.fold_sum(shape, lambda index: squared_length(lower, element(index), "squared"))

    return lower.elementwise("root", reduced(lower, x, axis, keepdims, squares))


@handles(np.trace, np.linalg.trace, methods="trace")
def trace(lower: Indexing, a: Any) -> Any:
    if len(lower.shape(a)) != 2:
        raise lower.refuse("the trace of an array that has not two axes", "np.einsum('...ii', a), with its axes named")
    n, m = lower.shape(a)
    return lower.fold_sum((lower.op("min", n, m),), lambda index: lower.element(a, (*index, *index)))


@handles(np.outer, np.linalg.outer)
def outer(lower: Indexing, a: Any, b: Any) -> Any:
    a, b = (ravel(lower, x) if len(lower.shape(x)) != 1 else x for x in (as_array(lower, a), as_array(lower, b)))
    shape = (lower.shape(a)[0], lower.shape(b)[0])
    column = lower.lazily(a, (shape[0], 1), lambda index: lower.element(a, index[:1]))
    return lower.elementwise("*", column, b)
