"""Parts of matrices: triangles and diagonals."""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograde.compiler.form import Index
from retrograde.compiler.lower.functions.arguments import as_array
from retrograde.compiler.lower.functions.registry import handles
from retrograde.compiler.lower.indexing import Indexing
from retrograde.compiler.lower.values import is_field
from retrograde.compiler.types import Operand, zero_of


@handles(np.tril)
def tril(lower: Indexing, m: Any, k: Any = 0) -> Any:
    return _triangle(lower, m, "<=", k)


@handles(np.triu)
def triu(lower: Indexing, m: Any, k: Any = 0) -> Any:
    return _triangle(lower, m, ">=", k)


def _triangle(lower: Indexing, m: Any, sign: str, k: Any) -> Any:
    """The elements of which the column is less (greater) than the row + k, and zeros."""
    m = as_array(lower, m)
    if len(lower.shape(m)) != 2:
        raise lower.refuse("a triangle of an array that has not two axes", "a loop over the matrices of a stack")
    zero = zero_of(lower.element_type(m))

    def element(index: Index) -> Operand:
        i, j = index
        return lower.op("where", lower.op(sign, j, lower.op("+", i, k)), lower.element(m, index), zero)

    return lower.lazily(m, lower.shape(m), element)


@handles(np.diagonal, np.linalg.diagonal, methods="diagonal")
def diagonal(lower: Indexing, a: Any, offset: Any = 0, axis1: Any = 0, axis2: Any = 1) -> Any:
    a = as_array(lower, a)
    if len(lower.shape(a)) != 2 or {axis1 % 2, axis2 % 2} != {0, 1}:
        raise lower.refuse("a diagonal of an array that has not two axes", "a loop over the matrices of a stack")
    return _diagonal(lower, a, -offset if axis1 % 2 else offset)


@handles(np.diag)
def diag(lower: Indexing, v: Any, k: Any = 0) -> Any:
    v = as_array(lower, v)
    shape = lower.shape(v)
    if len(shape) == 2:
        return _diagonal(lower, v, k)
    if len(shape) != 1 or type(k) is not int:
        raise lower.refuse("np.diag of an array of more than two axes, or with a k that is not written as a number")
    n = lower.op("+", shape[0], abs(k))
    made = lower.alloc("w", (n, n), lower.element_type(v), zero=True)
    below, right = max(-k, 0), max(k, 0)
    lower.nest(
        shape,
        lambda index: lower.store(
            made, (lower.op("+", index[0], below), lower.op("+", index[0], right)), lower.element(v, index)
        ),
    )
    return made


def _diagonal(lower: Indexing, a: Any, k: Any) -> Any:
    if type(k) is not int:
        raise lower.refuse("a diagonal that is not written as a number", "a loop")
    if is_field(a):
        return lower.field(_diagonal(lower, a.part_of, k), a.field)
    n, m = lower.shape(a)
    below, right = max(-k, 0), max(k, 0)
    length = lower.op("min", lower.op("-", n, below), lower.op("-", m, right))
    length = length if k == 0 else lower.op("max", length, 0)

    def element(index: Index) -> Operand:
        return lower.element(a, (lower.op("+", index[0], below), lower.op("+", index[0], right)))

    diagonal = lower.lazily(a, (length,), element)
    return lower.detached(diagonal, a) if isinstance(a, str) else diagonal
