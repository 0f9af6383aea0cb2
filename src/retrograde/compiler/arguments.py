"""Arguments as callers give them: their types, which choose the specialisation, and their leaves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy import ndarray

from retrograde.compiler.known import Constant
from retrograde.compiler.types import BOOL, FLOAT, INT, Type
from retrograde.errors import InputError
from retrograde.trace.handle import HANDLES, MAPPED, plain

_DTYPES = frozenset(
    "float64 float32 complex128 complex64 int64 int32 int16 int8 uint64 uint32 uint16 uint8 bool".split()
)
# `dtype.name` is put together at each call; some types have two letters.
_NAMES = {char: name for char in np.typecodes["All"] if (name := np.dtype(char).name) in _DTYPES}

_NUMBERS = {float, int, bool, complex, *np.sctypeDict.values()}


def sort_of(value: Any) -> Any:
    """What tells the types of numbers and arrays apart, at little cost; None for other arguments."""
    kind = type(value)
    if kind in HANDLES:
        value = plain(value)
        kind = type(value)
        if kind in MAPPED:
            kind = value.dtype.type
            return (value.dtype, value.ndim) if value.is_array() else kind if kind in _NUMBERS else None
    if kind is ndarray:
        return value.dtype, value.ndim
    return kind if kind in _NUMBERS else None


def kind_of(value: Any, name: str) -> Any:
    """The type of an argument, a tuple of types, or a constant.

    Raises:
        InputError: for an argument that compiled code does not take.
    """
    kind = type(value)
    if kind is float:
        return FLOAT
    if kind is ndarray:
        name_of_dtype = _NAMES.get(value.dtype.char)
        if name_of_dtype is None or not value.dtype.isnative:
            raise InputError(
                f"the argument {name} is an array of dtype {value.dtype}, which compile does not take",
                f"{name}.astype({'complex' if value.dtype.kind == 'c' else 'float'})",
            )
        return Type(name_of_dtype, value.ndim or -1)
    if kind in MAPPED and value.level.maps:
        return kind_of(one_example(value), name)
    if kind in HANDLES:
        return kind_of(plain(value), name)
    if isinstance(value, bool | np.bool_):
        return BOOL
    if isinstance(value, int | np.integer):
        return INT
    if isinstance(value, float | complex | np.inexact):
        if np.dtype(type(value)).name not in _DTYPES:
            raise InputError(
                f"the argument {name} is a {type(value).__name__}, which compile does not take",
                f"{'complex' if np.iscomplexobj(value) else 'float'}({name})",
            )
        return Type(np.dtype(type(value)).name)
    if isinstance(value, tuple):
        return make_tuple(value, (kind_of(v, f"{name}[{i}]") for i, v in enumerate(value)))
    if value is None or isinstance(value, str):
        return Constant(value)
    if isinstance(value, list):
        raise InputError(
            f"the argument {name} is a list, which compile does not take", f"np.array({name})", f"tuple({name})"
        )
    raise InputError(
        f"the argument {name} is a {kind.__module__}.{kind.__qualname__}, which compile does not take",
        "numbers, arrays, and tuples and named tuples of these",
    )


def one_example(x: Any) -> Any:
    """Something of the type of one example of a batch."""
    zeros = np.zeros(x.shape, x.dtype)
    return zeros if x.is_array() else zeros[()]


def make_tuple(like: tuple[Any, ...], parts: Iterator[Any]) -> tuple[Any, ...]:
    """A tuple of other parts, of the same class if it is a named one."""
    return type(like)(*parts) if hasattr(like, "_fields") else tuple(parts)


def leaves_of(value: Any, kind: Any) -> Iterator[Any]:
    """The numbers and arrays in an argument, as its program's parameters take them."""
    if isinstance(kind, Type):
        yield value
    elif isinstance(kind, tuple):
        for v, k in zip(value, kind, strict=True):
            yield from leaves_of(v, k)


def replaced(value: Any, kind: Any, leaves: Iterator[Any]) -> Any:
    """The argument with other leaves."""
    if isinstance(kind, Type):
        return next(leaves)
    if isinstance(kind, tuple):
        return make_tuple(kind, (replaced(v, k, leaves) for v, k in zip(value, kind, strict=True)))
    return value


def structured(structure: Any, leaves: Iterator[Any], nothing: Any = None) -> Any:
    """The result of a function of which the leaves are given; `nothing` where it has none."""
    if isinstance(structure, Type):
        return next(leaves)
    if isinstance(structure, tuple):
        parts = [structured(s, leaves, nothing) for s in structure]
        return type(structure)(*parts) if hasattr(structure, "_fields") else tuple(parts)
    return nothing


def flat_types(kind: Any) -> Iterator[Type]:
    if isinstance(kind, Type):
        yield kind
    elif isinstance(kind, tuple):
        for k in kind:
            yield from flat_types(k)


def key_of(kind: Any) -> Any:
    """The same as a key of a dictionary, in which named tuples of different classes differ."""
    if isinstance(kind, tuple) and not isinstance(kind, Type):
        return (type(kind), *(key_of(k) for k in kind))
    return kind
