"""Linear algebra: LAPACK is called, as NumPy and numba do, on matrices in memory."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from retrograde.compiler import ops
from retrograde.compiler.form import Index, Raise, Slice, Whole
from retrograde.compiler.lower.functions.arguments import as_array, flag_of
from retrograde.compiler.lower.functions.complex_numbers import part
from retrograde.compiler.lower.functions.creation import eye
from retrograde.compiler.lower.functions.products import dot
from retrograde.compiler.lower.functions.registry import call_function, handles
from retrograde.compiler.lower.indexing import Indexing
from retrograde.compiler.lower.values import NONE, Lazy
from retrograde.compiler.types import FLOAT, INT, Operand, Type

Output = tuple[str, Type, tuple[Operand, ...]]


@handles(np.linalg.solve)
def solve(lower: Indexing, a: Any, b: Any) -> Any:
    a, b = as_array(lower, a), as_array(lower, b)
    type = _common(lower, a, b)
    a, b = _matrices(lower, a, type), _in_memory(lower, b, type)
    n = _square(lower, a)
    own = 1 if len(lower.shape(b)) == 1 else 2  # axes of a right-hand side
    lower.guard_equal(n, lower.shape(b)[-own], "solve: the matrix and the right-hand side differ in their first axis")
    return for_each(lower, "np.linalg.solve", (a, b), (2, own), ("x", type, lower.shape(b)[-own:]))[0]


@handles(np.linalg.inv)
def inv(lower: Indexing, a: Any) -> Any:
    a = _matrices(lower, a)
    n = _square(lower, a)
    return for_each(lower, "np.linalg.inv", (a,), (2,), ("inverse", lower.element_type(a), (n, n)))[0]


@handles(np.linalg.det)
def det(lower: Indexing, a: Any) -> Any:
    a = _matrices(lower, a)
    _square(lower, a)
    return for_each(lower, "np.linalg.det", (a,), (2,), ("det", lower.element_type(a), ()))[0]


@handles(np.linalg.slogdet)
def slogdet(lower: Indexing, a: Any) -> Any:
    a = _matrices(lower, a)
    _square(lower, a)
    type = lower.element_type(a)
    return for_each(lower, "np.linalg.slogdet", (a,), (2,), ("sign", type, ()), ("logdet", ops.real_type(type), ()))


@handles(np.linalg.cholesky)
def cholesky(lower: Indexing, a: Any) -> Any:
    a = _matrices(lower, a)
    n = _square(lower, a)
    return for_each(lower, "np.linalg.cholesky", (a,), (2,), ("factor", lower.element_type(a), (n, n)))[0]


@handles(np.linalg.eigh)
def eigh(lower: Indexing, a: Any) -> Any:
    a = _matrices(lower, a)
    n, type = _square(lower, a), lower.element_type(a)
    return for_each(
        lower, "np.linalg.eigh", (a,), (2,), ("values", ops.real_type(type), (n,)), ("vectors", type, (n, n))
    )


@handles(np.linalg.eigvalsh)
def eigvalsh(lower: Indexing, a: Any) -> Any:
    return eigh(lower, a)[0]


@handles(np.linalg.svd)
def svd(lower: Indexing, a: Any, full_matrices: Any = True, compute_uv: Any = True) -> Any:
    a = _matrices(lower, a)
    m, n = lower.shape(a)[-2:]
    uv = flag_of(lower, compute_uv, "compute_uv")
    full = uv and flag_of(lower, full_matrices, "full_matrices")
    type, k = lower.element_type(a), lower.op("min", m, n)
    outs = (("u", type, (m, m if full else k)), ("s", ops.real_type(type), (k,)), ("vh", type, (n if full else k, n)))
    found = for_each(lower, "np.linalg.svd", (a, full), (2, 0), *outs)
    return found if uv else found[1]


@handles(np.linalg.svdvals)
def svdvals(lower: Indexing, x: Any) -> Any:
    return svd(lower, x, compute_uv=False)


@handles(np.linalg.qr)
def qr(lower: Indexing, a: Any) -> Any:
    a = _matrices(lower, a)
    m, n = lower.shape(a)[-2:]
    type, k = lower.element_type(a), lower.op("min", m, n)
    return for_each(lower, "np.linalg.qr", (a,), (2,), ("q", type, (m, k)), ("r", type, (k, n)))


@handles(np.linalg.pinv)
def pinv(lower: Indexing, a: Any) -> Any:
    a = _matrices(lower, a)
    m, n = lower.shape(a)[-2:]
    return for_each(lower, "np.linalg.pinv", (a,), (2,), ("inverse", lower.element_type(a), (n, m)))[0]


@handles(np.linalg.lstsq)
def lstsq(lower: Indexing, a: Any, b: Any, rcond: Any = None) -> Any:
    """By the pseudo-inverse of a matrix of full rank, x = P b, and from x the rest; so the derivatives are those of P.

    Shapes:  a (m, n); b (m,) or (m, k); x (n,) or (n, k).
    Raises:  (where it runs) LinAlgError, if the rank is lower: which singular values count would decide.
    Source:  Golub and Pereyra (1973), (4.12), by the rule of `np.linalg.pinv`.
    """
    a, b = as_array(lower, a), as_array(lower, b)
    type = _common(lower, a, b)
    a, b = _in_memory(lower, _matrix(lower, a), type), _in_memory(lower, b, type)
    m, n = lower.shape(a)
    if len(lower.shape(b)) > 2:
        raise lower.refuse("lstsq with a right-hand side of more than two axes", "a loop over its matrices")
    lower.guard_equal(m, lower.shape(b)[0], "lstsq: the matrix and the right-hand side differ in their first axis")
    s = svdvals(lower, a)
    rank = lower.op("min", m, n)
    lower.branch(lower.op(">", rank, 0), lambda: _guard_rank(lower, s, rank, _cutoff(lower, rcond, type, m, n)))
    x = lower.force(dot(lower, pinv(lower, a), b))
    over = lower.force(lower.elementwise("-", b, dot(lower, a, x)))
    parts = [part(lower, over, name) for name in ("real", "imag")[: 1 + type.is_complex]]
    squares = functools.reduce(functools.partial(lower.elementwise, "+"), [lower.elementwise("*", p, p) for p in parts])
    sums = call_function(lower, np.sum, [squares], {"axis": 0, "keepdims": len(lower.shape(b)) == 1})
    # NumPy gives none where they are zero.
    count = lower.op("where", lower.op(">", m, n), lower.shape(sums)[0], 0)
    return x, lower.lazily(sums, (count,), lambda index: lower.element(sums, index)), rank, s


def _cutoff(lower: Indexing, rcond: Any, type: Type, m: Operand, n: Operand) -> Operand:
    """The relative size below which a singular value is taken for zero, by lstsq or by pinv."""
    eps = float(np.finfo(type.dtype).eps)
    least = max(eps, _OF_PINV)
    if rcond is NONE or rcond is None:
        return lower.op("max", lower.op("*", lower.op("max", m, n), eps), least)
    return lower.op("max", rcond, least)


_OF_PINV = 1e-15


def _guard_rank(lower: Indexing, s: str, rank: Operand, cutoff: Operand) -> None:
    """Raise where the smallest of some singular values does not count."""
    smallest, largest = lower.element(s, (lower.op("-", rank, 1),)), lower.element(s, (0,))
    counts = lower.op(">", smallest, lower.op("*", cutoff, largest))
    message = f"lstsq of a matrix whose rank is not full has no derivative in compiled code{lower.where()}"
    lower.branch(lower.op("not", counts), lambda: lower.emit(Raise("np.linalg.LinAlgError", message)))


@handles(np.linalg.eig, np.linalg.eigvals)
def eig(lower: Indexing, a: Any) -> Any:
    raise lower.refuse(
        "eigenvalues of a matrix that may not be symmetric, which are complex numbers",
        "np.linalg.eigh of a symmetric one",
        "the call outside of the compiled function",
    )


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


def for_each(lower: Indexing, fn: str, args: tuple[Any, ...], ndims: tuple[int, ...], *outs: Output) -> tuple[str, ...]:
    """`called` for each example of a stack, where an argument has more axes than the function itself takes.

    Args:
        ndims: the number of axes that each argument has without the stack.
    """
    stacks = [lower.shape(a)[: len(lower.shape(a)) - n] for a, n in zip(args, ndims, strict=True)]
    if not any(stacks):
        return called(lower, fn, args, *outs)
    lead = lower.broadcast(tuple(Lazy(stack, lambda index: 0, INT) for stack in stacks))
    made = tuple(lower.alloc(base, (*lead, *shape), type) for base, type, shape in outs)

    def example(a: Any, n: int, stack: tuple[Operand, ...], index: Index) -> Any:
        own = [
            0 if type(m) is int and m == 1 else i for m, i in zip(stack, index[len(index) - len(stack) :], strict=True)
        ]
        return lower.view(a, (*own, *(Slice() for _ in range(n)))) if stack else a

    def one(index: Index) -> None:
        parts = tuple(example(a, n, s, index) for a, n, s in zip(args, ndims, stacks, strict=True))
        for whole, value in zip(made, called(lower, fn, parts, *outs), strict=True):
            if lower.is_array(value):
                lower.assign_elements(lower.view(whole, index), value)
            else:
                lower.store(whole, index, value)

    lower.nest(lead, one)
    return made


def _matrices(lower: Indexing, a: Any, type: Type | None = None) -> str:
    """An argument as a matrix of floats in memory, or a stack of such."""
    a = as_array(lower, a)
    if not lower.is_array(a) or len(lower.shape(a)) < 2:
        raise lower.refuse("linear algebra with something that is no matrix", "x[:, None]")
    return _in_memory(lower, a, type or _common(lower, a))


def _matrix(lower: Indexing, a: Any) -> str:
    a = _matrices(lower, a)
    if len(lower.shape(a)) != 2:
        raise lower.refuse("a stack of matrices here", "a loop over the matrices")
    return a


def _in_memory(lower: Indexing, a: Any, type: Type) -> str:
    return lower.force(a if lower.element_type(a) == type else lower.elementwise(f"cast:{type.dtype}", a))


def _common(lower: Indexing, *arrays: Any) -> Type:
    joined = ops.common(*(lower.element_type(a) for a in arrays))
    return joined if joined.is_inexact else FLOAT


def _square(lower: Indexing, a: str) -> Operand:
    n, m = lower.shape(a)[-2:]
    lower.guard_equal(n, m, "the matrix must be square")
    return n
