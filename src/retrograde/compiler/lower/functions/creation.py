"""Arrays that are made: filled, copied from others, or counted off."""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograde.compiler import ops
from retrograde.compiler.form import Index
from retrograde.compiler.known import Constant
from retrograde.compiler.lower.functions.arguments import as_array, dtype_of, flag_of, shape_of
from retrograde.compiler.lower.functions.python import trip_count
from retrograde.compiler.lower.functions.registry import handles
from retrograde.compiler.lower.indexing import Indexing
from retrograde.compiler.lower.values import Lazy
from retrograde.compiler.types import BOOL, FLOAT, INT, Operand, Type, zero_of


@handles(np.zeros)
def zeros(lower: Indexing, shape: Any, dtype: Any = None) -> Any:
    type = FLOAT if dtype is None else dtype_of(lower, dtype)
    if shape == ():
        return zero_of(type)
    return lower.alloc("w", shape_of(lower, shape), type, zero=True)


@handles(np.empty)
def empty(lower: Indexing, shape: Any, dtype: Any = None) -> Any:
    # Zeros, as garbage would make derivatives of what is never written depend on chance.
    return zeros(lower, shape, dtype)


@handles(np.ones)
def ones(lower: Indexing, shape: Any, dtype: Any = None) -> Any:
    type = FLOAT if dtype is None else dtype_of(lower, dtype)
    return _constant_array(lower, shape_of(lower, shape), 1.0 if type.kind in "fc" else 1, type)


@handles(np.full)
def full(lower: Indexing, shape: Any, fill_value: Any, dtype: Any = None) -> Any:
    type = lower.element_type(fill_value) if dtype is None else dtype_of(lower, dtype)
    return _constant_array(lower, shape_of(lower, shape), fill_value, type)


def _constant_array(lower: Indexing, shape: tuple[Operand, ...], value: Operand, type: Type) -> Any:
    return Lazy(shape, lambda index: lower.cast(value, type), type)


@handles(np.zeros_like, np.empty_like)
def zeros_like(lower: Indexing, a: Any, dtype: Any = None) -> Any:
    type = lower.element_type(a) if dtype is None else dtype_of(lower, dtype)
    return lower.alloc("w", lower.shape(a), type, zero=True)


@handles(np.ones_like)
def ones_like(lower: Indexing, a: Any, dtype: Any = None) -> Any:
    type = lower.element_type(a) if dtype is None else dtype_of(lower, dtype)
    return _constant_array(lower, lower.shape(a), 1.0 if type.kind in "fc" else 1, type)


@handles(np.full_like)
def full_like(lower: Indexing, a: Any, fill_value: Any, dtype: Any = None) -> Any:
    type = lower.element_type(a) if dtype is None else dtype_of(lower, dtype)
    return _constant_array(lower, lower.shape(a), fill_value, type)


@handles(np.array)
def array(lower: Indexing, object: Any, dtype: Any = None) -> Any:
    made = as_array(lower, object)
    if not lower.is_array(made):
        raise lower.refuse("an array without axes", "a number")
    if dtype is not None and (type := dtype_of(lower, dtype)) != lower.element_type(made):
        return lower.elementwise(f"cast:{type.dtype}", made)
    return made if isinstance(object, tuple) else lower.copied(made)


@handles(np.asarray, np.ascontiguousarray)
def asarray(lower: Indexing, a: Any, dtype: Any = None) -> Any:
    made = as_array(lower, a)
    _check_known(lower, dtype)
    if dtype is not None and dtype_of(lower, dtype) != lower.element_type(made):
        return astype(lower, made, dtype)
    return made


@handles(np.copy, methods="copy")
def copy(lower: Indexing, a: Any) -> Any:
    return lower.copied(as_array(lower, a))


@handles(np.astype, methods="astype")
def astype(lower: Indexing, x: Any, dtype: Any) -> Any:
    type = dtype_of(lower, dtype)
    _check_known(lower, dtype)
    return lower.elementwise(f"cast:{type.dtype}", x)


def _check_known(lower: Indexing, dtype: Any) -> None:
    """Refuse Python's own `complex` where numba does not take it, or for something else."""
    if isinstance(dtype, Constant) and dtype.value is complex and not lower.is_derived:
        raise lower.refuse("complex as a dtype here, which numba does not know", "np.complex128")


@handles(np.arange)
def arange(lower: Indexing, start: Any, stop: Any = None, step: Any = None) -> Any:
    low, high, by = (0, start, 1) if stop is None else (start, stop, 1 if step is None else step)
    types = [lower.type_of(x) for x in (low, high, by)]
    if all(t.kind in "iu" for t in types):
        n = trip_count(lower, low, high, by)
        return Lazy((n,), lambda index: lower.op("+", low, lower.op("*", index[0], by)), INT)
    span = lower.op("/", lower.op("-", high, low), by)
    n = lower.op("cast:int64", lower.op("np.ceil", span))
    n = lower.op("max", n, 0)
    return Lazy((n,), lambda index: lower.op("+", lower.op("*", index[0], by), low), FLOAT)


@handles(np.linspace)
def linspace(lower: Indexing, start: Any, stop: Any, num: Any = 50) -> Any:
    parts = lower.op("-", num, 1)
    step = lower.op("/", lower.op("-", stop, start), lower.op("max", parts, 1))

    def element(index: Index) -> Operand:
        inner = lower.op("+", lower.op("*", index[0], step), start)
        return lower.op("where", lower.op("and", lower.op("==", index[0], parts), lower.op(">", parts, 0)), stop, inner)

    return Lazy((num,), element, ops.common(FLOAT, *map(lower.type_of, (start, stop))))


@handles(np.identity)
def identity(lower: Indexing, n: Any, dtype: Any = None) -> Any:
    return eye(lower, n, dtype=dtype)


@handles(np.eye)
def eye(lower: Indexing, N: Any, M: Any = None, k: Any = 0, dtype: Any = None) -> Any:
    _check_known(lower, dtype)
    type = FLOAT if dtype is None else dtype_of(lower, dtype)
    shape = shape_of(lower, (N, N if M is None else M))

    def is_on_it(index: Index) -> Operand:
        return lower.op("==", lower.op("+", index[0], k), index[1])

    if type == BOOL:
        return Lazy(shape, is_on_it, BOOL)
    one, zero = lower.cast(1, type), zero_of(type)
    return Lazy(shape, lambda index: lower.op("where", is_on_it(index), one, zero), type)


@handles(np.tri)
def tri(lower: Indexing, N: Any, M: Any = None, k: Any = 0) -> Any:
    def element(index: Index) -> Operand:
        return lower.op("where", lower.op("<=", index[1], lower.op("+", index[0], k)), 1.0, 0.0)

    return Lazy(shape_of(lower, (N, N if M is None else M)), element, FLOAT)


@handles(np.vander)
def vander(lower: Indexing, x: Any, N: Any = None, increasing: Any = False) -> Any:
    x = as_array(lower, x)
    (n,) = lower.shape(x)
    columns = n if N is None else N
    is_up = flag_of(lower, increasing, "increasing")

    def element(index: Index) -> Operand:
        power = index[1] if is_up else lower.op("-", lower.op("-", columns, 1), index[1])
        return lower.op("**", lower.element(x, index[:1]), power)

    type = lower.element_type(x)
    return Lazy((n, columns), element, type, lower.reads(x), False)
