"""Python's own functions, and those of `math` that are no elementwise functions of NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from retrograde.compiler.lower.functions.arguments import as_array, shape_of
from retrograde.compiler.lower.functions.einsum import einsum
from retrograde.compiler.lower.functions.reductions import array_max, array_min
from retrograde.compiler.lower.functions.registry import handles, truth
from retrograde.compiler.lower.functions.shape import flip, ravel
from retrograde.compiler.lower.indexing import Indexing
from retrograde.compiler.lower.values import Enumerated, Object, Places, Range, Zipped
from retrograde.compiler.types import Operand


@handles(len)
def length(lower: Indexing, obj: Any) -> Any:
    if isinstance(obj, tuple):
        return len(obj)
    if not lower.is_array(obj):
        raise lower.refuse("len of something that is no array or tuple")
    return lower.shape(obj)[0]


@handles(range)
def range_of(lower: Indexing, start: Any, stop: Any = None, step: Any = 1) -> Any:
    low, high = (0, start) if stop is None else (start, stop)
    for bound in (low, high, step):
        if lower.is_array(bound) or isinstance(bound, tuple | Object) or lower.type_of(bound).kind not in "iub":
            raise lower.refuse("range of something that is no integer", "int(n)")
    if type(step) is int and step == 0:
        raise lower.refuse("range() arg 3 must not be zero")
    if isinstance(step, str):
        lower.guard_not_zero(step, "ValueError", "range() arg 3 must not be zero")
    return Range(low, high, step)


def trip_count(lower: Indexing, low: Operand, high: Operand, step: Operand) -> Operand:
    """The length of range(low, high, step)."""
    if step == 1 and type(step) is int:
        return lower.op("size", low, high)
    if type(step) is int and step != 0:
        span = lower.op("-", high, low) if step > 0 else lower.op("-", low, high)
        return lower.op("max", lower.op("//", lower.op("+", span, abs(step) - 1), abs(step)), 0)
    # The sign is known at run time only: ceil((high - low) / step), in integers.
    down = lower.op("-", 0, lower.op("//", lower.op("-", low, high), step))
    return lower.op("max", down, 0)


@handles(enumerate)
def enumerate_of(lower: Indexing, iterable: Any, start: Any = 0) -> Any:
    return Enumerated(iterable, start)


@handles(reversed)
def reversed_of(lower: Indexing, sequence: Any) -> Any:
    if isinstance(sequence, Range):
        count = trip_count(lower, sequence.low, sequence.high, sequence.step)
        last = lower.op("+", sequence.low, lower.op("*", lower.op("-", count, 1), sequence.step))
        return Range(last, lower.op("-", sequence.low, sequence.step), lower.op("-", 0, sequence.step))
    if isinstance(sequence, tuple):
        return sequence[::-1]
    if not lower.is_array(sequence):
        raise lower.refuse("reversed of something that is no range, tuple or array")
    return flip(lower, sequence, 0)


@handles(np.ndenumerate)
def ndenumerate(lower: Indexing, arr: Any) -> Any:
    return Zipped((Places(lower.shape(arr)), ravel(lower, arr)))


def ndindex(lower: Indexing, args: list[Any]) -> Any:
    return Places(shape_of(lower, args[0] if len(args) == 1 and isinstance(args[0], tuple) else tuple(args)))


@handles(float, np.float64)
def to_float(lower: Indexing, x: Any) -> Any:
    return lower.elementwise("cast:float64", x)


@handles(np.float32)
def to_float32(lower: Indexing, x: Any) -> Any:
    return lower.elementwise("cast:float32", x)


@handles(int, np.int64)
def to_int(lower: Indexing, x: Any) -> Any:
    return lower.elementwise("cast:int64", x)


@handles(bool, np.bool_)
def to_bool(lower: Indexing, x: Any) -> Any:
    return truth(lower, x)


@handles(math.floor)
def floor_to_int(lower: Indexing, x: Any) -> Any:
    return lower.op("cast:int64", lower.op("np.floor", x)) if lower.type_of(x).kind == "f" else x


@handles(math.ceil)
def ceil_to_int(lower: Indexing, x: Any) -> Any:
    return lower.op("cast:int64", lower.op("np.ceil", x)) if lower.type_of(x).kind == "f" else x


@handles(math.trunc)
def trunc_to_int(lower: Indexing, x: Any) -> Any:
    return lower.op("cast:int64", x) if lower.type_of(x).kind == "f" else x


@handles(round)
def rounded(lower: Indexing, number: Any, ndigits: Any = None) -> Any:
    if ndigits is not None:
        raise lower.refuse("round with a number of digits", "np.rint(x * 100.0) / 100.0")
    if lower.is_complex(number):
        raise lower.refuse("a complex number that is rounded", "np.rint(z)")
    return lower.op("cast:int64", lower.op("np.rint", number)) if lower.type_of(number).kind == "f" else number


@handles(np.round, np.around, methods="round")
def rounded_array(lower: Indexing, a: Any, decimals: Any = 0) -> Any:
    if type(decimals) is not int or decimals != 0:
        raise lower.refuse("np.round with decimals", "np.rint(x * 100.0) / 100.0")
    return lower.elementwise("np.rint", as_array(lower, a))


@handles(divmod, np.divmod)
def quotient_and_remainder(lower: Indexing, x: Any, y: Any) -> Any:
    return lower.elementwise("//", x, y), lower.elementwise("%", x, y)


@handles(math.ldexp, np.ldexp)
def scaled(lower: Indexing, x: Any, i: Any) -> Any:
    return lower.elementwise("*", x, lower.elementwise("**", 2.0, i))


@handles(math.log)
def logarithm(lower: Indexing, x: Any, base: Any = None) -> Any:
    found = lower.op("np.log", x)
    return found if base is None else lower.op("/", found, lower.op("np.log", base))


@handles(math.sqrt)
def square_root(lower: Indexing, x: Any) -> Any:
    return lower.op("np.sqrt", x)


def extreme_of_arguments(lower: Indexing, name: str, args: list[Any]) -> Any:
    """Python's min and max of several scalars, or of a tuple."""
    if len(args) == 1 and isinstance(args[0], tuple):
        args = list(args[0])
    if len(args) == 1 and lower.is_array(args[0]) and len(lower.shape(args[0])) == 1:
        return array_max(lower, args[0]) if name == "max" else array_min(lower, args[0])
    if any(lower.is_array(a) or isinstance(a, tuple | Object) for a in args):
        raise lower.refuse(f"{name} of something that is no number", f"np.{name}imum")
    result = args[0]
    for a in args[1:]:
        result = lower.op(name, result, a)
    return result


def zipped(lower: Indexing, args: list[Any]) -> Any:
    return Zipped(tuple(args))


# Functions of any number of arguments.
VARIADIC: dict[Any, Callable[[Indexing, list[Any]], Any]] = {
    max: lambda lower, args: extreme_of_arguments(lower, "max", args),
    min: lambda lower, args: extreme_of_arguments(lower, "min", args),
    zip: zipped,
    np.einsum: einsum,
    np.ndindex: ndindex,
}

# Functions of dtypes, whose values are known when the function is compiled.
OF_CONSTANTS = frozenset({np.finfo, np.iinfo, np.dtype, np.result_type, np.promote_types})
