"""Linear algebra: LAPACK is called, as NumPy and numba do, on matrices in memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograde.compiler import ops
from retrograde.compiler.form import FLOAT, Operand, Type, Whole
from retrograde.compiler.lower.functions.arguments import as_array, flag_of
from retrograde.compiler.lower.functions.creation import eye
from retrograde.compiler.lower.functions.products import dot
from retrograde.compiler.lower.functions.registry import handles
from retrograde.compiler.lower.indexing import Indexing

Output = tuple[str, Type, tuple[Operand, ...]]


@handles(np.linalg.solve)
def solve(lower: Indexing, a: Any, b: Any) -> Any:
    a, b = as_array(lower, a), as_array(lower, b)
    if len(lower.shape(b)) not in (1, 2):
        raise lower.refuse("np.linalg.solve with right-hand sides of more than two axes", "a loop over the first axis")
    type = _common(lower, a, b)
    a, b = _matrix(lower, a, type), _in_memory(lower, b, type)
    n = _square(lower, a)
    lower.guard_equal(n, lower.shape(b)[0], "solve: the matrix and the right-hand side differ in their first axis")
    return called(lower, "np.linalg.solve", (a, b), ("x", type, lower.shape(b)))[0]


@handles(np.linalg.inv)
def inv(lower: Indexing, a: Any) -> Any:
    a = _matrix(lower, a)
    _square(lower, a)
    return called(lower, "np.linalg.inv", (a,), ("inverse", lower.element_type(a), lower.shape(a)))[0]


@handles(np.linalg.det)
def det(lower: Indexing, a: Any) -> Any:
    a = _matrix(lower, a)
    _square(lower, a)
    return called(lower, "np.linalg.det", (a,), ("det", lower.element_type(a), ()))[0]


@handles(np.linalg.slogdet)
def slogdet(lower: Indexing, a: Any) -> Any:
    a = _matrix(lower, a)
    _square(lower, a)
    type = lower.element_type(a)
    return called(lower, "np.linalg.slogdet", (a,), ("sign", type, ()), ("logdet", ops.real_type(type), ()))


@handles(np.linalg.cholesky)
def cholesky(lower: Indexing, a: Any) -> Any:
    a = _matrix(lower, a)
    _square(lower, a)
    return called(lower, "np.linalg.cholesky", (a,), ("factor", lower.element_type(a), lower.shape(a)))[0]


@handles(np.linalg.eigh)
def eigh(lower: Indexing, a: Any) -> Any:
    a = _matrix(lower, a)
    n, type = _square(lower, a), lower.element_type(a)
    return called(lower, "np.linalg.eigh", (a,), ("values", ops.real_type(type), (n,)), ("vectors", type, (n, n)))


@handles(np.linalg.eigvalsh)
def eigvalsh(lower: Indexing, a: Any) -> Any:
    return eigh(lower, a)[0]


@handles(np.linalg.svd)
def svd(lower: Indexing, a: Any, full_matrices: Any = True) -> Any:
    a = _matrix(lower, a)
    m, n = lower.shape(a)
    full = flag_of(lower, full_matrices, "full_matrices")
    type, k = lower.element_type(a), lower.op("min", m, n)
    outs = (("u", type, (m, m if full else k)), ("s", ops.real_type(type), (k,)), ("vh", type, (n if full else k, n)))
    return called(lower, "np.linalg.svd", (a, full), *outs)


@handles(np.linalg.qr)
def qr(lower: Indexing, a: Any) -> Any:
    a = _matrix(lower, a)
    m, n = lower.shape(a)
    type, k = lower.element_type(a), lower.op("min", m, n)
    return called(lower, "np.linalg.qr", (a,), ("q", type, (m, k)), ("r", type, (k, n)))


@handles(np.linalg.pinv)
def pinv(lower: Indexing, a: Any) -> Any:
    a = _matrix(lower, a)
    return called(lower, "np.linalg.pinv", (a,), ("inverse", lower.element_type(a), lower.shape(a)[::-1]))[0]


@handles(np.linalg.matrix_power)
def matrix_power(lower: Indexing, a: Any, n: Any) -> Any:
    """By squaring, as far as it is known how often."""
    a = _matrix(lower, a)
    size = _square(lower, a)
    if type(n) is not int:
        raise lower.refuse("a power of a matrix that is not written as a number", "a loop of products")
    if n == 0:
        return eye(lower, size)
    base, power = (a, n) if n > 0 else (inv(lower, a), -n)
    result = None
    while True:
        if power % 2:
            result = base if result is None else dot(lower, result, base)
        power //= 2
        if not power:
            return lower.copied(result)
        base = dot(lower, base, base)


def called(lower: Indexing, fn: str, args: tuple[Any, ...], *outs: Output) -> tuple[str, ...]:
    """The results of a function of the table in whole.py: for each a name to start from, an element type, a shape."""
    names = tuple(
        lower.program.new(base, Type(type.dtype, len(shape)) if shape else type, shape or None)
        for base, type, shape in outs
    )
    lower.emit(Whole(names, fn, args))
    return names


def _matrix(lower: Indexing, a: Any, type: Type | None = None) -> str:
    """An argument as a matrix of floats in memory."""
    a = as_array(lower, a)
    if not lower.is_array(a) or len(lower.shape(a)) != 2:
        raise lower.refuse("linear algebra with something else than one matrix", "a loop over the matrices of a stack")
    return _in_memory(lower, a, type or _common(lower, a))


def _in_memory(lower: Indexing, a: Any, type: Type) -> str:
    return lower.force(a if lower.element_type(a) == type else lower.elementwise(f"cast:{type.dtype}", a))


def _common(lower: Indexing, *arrays: Any) -> Type:
    joined = ops.common(*(lower.element_type(a) for a in arrays))
    return joined if joined.is_inexact else FLOAT


def _square(lower: Indexing, a: str) -> Operand:
    n, m = lower.shape(a)
    lower.guard_equal(n, m, "the matrix must be square")
    return n
