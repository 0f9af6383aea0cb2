"""Arguments of NumPy's functions: axes, flags, dtypes, shapes, and lists where arrays are wanted."""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograde.compiler import ops
from retrograde.compiler.known import Constant
from retrograde.compiler.lower.indexing import Indexing
from retrograde.compiler.lower.values import Lazy
from retrograde.compiler.types import FLOAT, Operand, Type


def axes_of(lower: Indexing, axis: Any, ndim: int) -> tuple[int, ...] | None:
    """The axes of a reduction, counted from the front; None for all."""
    if axis is None:
        return None
    axes = axis if isinstance(axis, tuple) else (axis,)
    if any(type(a) is not int for a in axes):
        raise lower.refuse("an axis that is not written as a number", "axis=0")
    if any(not -ndim <= a < ndim for a in axes):
        raise lower.refuse(f"axis {axis} of an array of {ndim} axes")
    return tuple(a % ndim for a in axes)


def flag_of(lower: Indexing, value: Any, name: str) -> bool:
    if type(value) is not bool:
        raise lower.refuse(f"{name}= that is not written as True or False")
    return value


def dtype_of(lower: Indexing, dtype: Any) -> Type:
    """The element type that a dtype argument names."""
    if isinstance(dtype, Constant):
        try:
            return Type(np.dtype(dtype.value).name)
        except TypeError:
            pass
    raise lower.refuse("a dtype that is not known when the function is compiled", "np.float64")


def shape_of(lower: Indexing, shape: Any) -> tuple[Operand, ...]:
    """The shape that is given as an integer or a tuple of integers."""
    sizes = shape if isinstance(shape, tuple) else (shape,)
    for n in sizes:
        if isinstance(n, Constant | Lazy) or lower.is_array(n) or lower.type_of(n).kind not in "iu":
            raise lower.refuse("a shape that is not made of integers")
    return tuple(sizes)


def as_array(lower: Indexing, value: Any) -> Any:
    """A (nested) list or tuple as an array in memory; arrays and scalars as they are."""
    if not isinstance(value, tuple):
        if isinstance(value, Constant):
            raise lower.refuse(f"{value.value!r} where an array is wanted")
        return value
    shape = _literal_shape(lower, value)
    flat = list(_literal_elements(lower, value))
    type = ops.common(*(lower.element_type(x) for x in flat)) if flat else FLOAT
    tail = lower.shape(flat[0]) if flat else ()
    array = lower.alloc("w", (*shape, *tail), type)
    for index, x in zip(np.ndindex(*shape), flat, strict=True):
        if tail:
            lower.assign_elements(lower.view(array, tuple(index)), x)
        else:
            lower.store(array, tuple(int(i) for i in index), x)
    return array


def _literal_shape(lower: Indexing, value: Any) -> tuple[int, ...]:
    if not isinstance(value, tuple):
        return ()
    inner = {_literal_shape(lower, v) for v in value}
    if len(inner) > 1:
        raise lower.refuse("a nested list whose rows differ in length")
    return (len(value), *(inner.pop() if inner else ()))


def _literal_elements(lower: Indexing, value: Any) -> Any:
    if isinstance(value, tuple):
        for v in value:
            yield from _literal_elements(lower, v)
    elif isinstance(value, Constant):
        raise lower.refuse(f"{value.value!r} as an element of an array")
    else:
        yield value


def sequence_of(lower: Indexing, arrays: Any) -> tuple[Any, ...]:
    if not isinstance(arrays, tuple) or not arrays:
        raise lower.refuse("something else than a tuple or list of arrays")
    return arrays
