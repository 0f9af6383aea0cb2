"""NumPy's functions and array methods: what each becomes in the form.

A handler is registered for the function itself, with the parameters that it knows:

    @handles(np.sum, "a", axis=None, keepdims=False)
    def array_sum(lower, a, axis, keepdims): ...

An argument that is not listed is refused where it is written. Elementwise functions need no handler: the table of
operations has them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from retrograde.compiler import ops
from retrograde.compiler.form import BOOL, FLOAT, INT, Add, Index, Operand, Set, Slice, Type
from retrograde.compiler.lower.indexing import Indexing
from retrograde.compiler.lower.values import NONE, Constant, Enumerated, Lazy, Range, Zipped


class Handler(NamedTuple):
    parameters: tuple[str, ...]
    defaults: dict[str, Any]
    lower: Callable[..., Any]


HANDLERS: dict[Any, Handler] = {}
METHODS: dict[str, Any] = {}


def handles(*functions: Any, methods: str = "") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a handler; its own parameters behind `lower` name the arguments that it knows."""

    def register(handler: Callable[..., Any]) -> Callable[..., Any]:
        import inspect

        parameters = list(inspect.signature(handler).parameters.values())[1:]
        defaults = {p.name: p.default for p in parameters if p.default is not p.empty}
        for function in functions:
            HANDLERS[function] = Handler(tuple(p.name for p in parameters), defaults, handler)
        for name in methods.split():
            METHODS[name] = functions[0]
        return handler

    return register


def call_function(lower: Indexing, function: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """The value of a call of a known function, or None where it is not known."""
    function = ops.SAME_AS.get(function, function)
    if function in ops.AS_OPERATOR or function in ops.NAMES:
        handler = HANDLERS.get(function)
        if handler is None:
            if kwargs:
                raise lower.refuse(f"{function.__name__} with the argument {next(iter(kwargs))}=", "leave it out")
            wanted = function.nin if isinstance(function, np.ufunc) else 1
            if len(args) != wanted:
                raise lower.refuse(f"{function.__name__} with {len(args)} arguments")
            return elementwise(lower, function, args)
    handler = HANDLERS.get(function)
    if handler is None:
        return None
    if len(args) > len(handler.parameters):
        raise lower.refuse(f"{_name(function)} with {len(args)} arguments")
    bound = dict(zip(handler.parameters, args, strict=False))
    for name, value in kwargs.items():
        if name not in handler.parameters or name in bound:
            if value is NONE:
                continue
            raise lower.refuse(f"{_name(function)} with the argument {name}=", "leave it out")
        bound[name] = value
    missing = [p for p in handler.parameters if p not in bound and p not in handler.defaults]
    if missing:
        raise lower.refuse(f"{_name(function)} without its argument {missing[0]}")
    bound = {name: None if value is NONE else value for name, value in bound.items()}
    return handler.lower(lower, **bound)


def elementwise(lower: Indexing, function: Any, args: list[Any]) -> Any:
    args = [as_array(lower, a) if isinstance(a, tuple) else a for a in args]
    for a in args:
        if isinstance(a, Constant):
            raise lower.refuse(f"{a.value!r} as an argument of {_name(function)}")
    name = ops.AS_OPERATOR.get(function) or ops.NAMES[function]
    if name in ("np.logical_and", "np.logical_or", "np.logical_not"):
        name = name[11:]
        args = [truth(lower, a) for a in args]
    return lower.elementwise(name, *args)


def truth(lower: Indexing, value: Any) -> Any:
    """The truth of each element."""
    if not lower.is_array(value):
        return lower.is_true(value)
    return value if lower.element_type(value) == BOOL else lower.elementwise("!=", value, 0)


def _name(function: Any) -> str:
    module = (getattr(function, "__module__", "") or "").split(".")[0]
    name = getattr(function, "__name__", str(function))
    return f"np.{name}" if module == "numpy" or isinstance(function, np.ufunc) else name


# --- arguments ---------------------------------------------------------------------------------------------------


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


# --- creation ----------------------------------------------------------------------------------------------------


@handles(np.zeros)
def zeros(lower: Indexing, shape: Any, dtype: Any = None) -> Any:
    type = FLOAT if dtype is None else dtype_of(lower, dtype)
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
    if dtype is not None and dtype_of(lower, dtype) != lower.element_type(made):
        return astype(lower, made, dtype)
    return made if isinstance(object, tuple) else lower.copied(made)


@handles(np.asarray, np.ascontiguousarray)
def asarray(lower: Indexing, a: Any, dtype: Any = None) -> Any:
    made = as_array(lower, a)
    if dtype is not None and dtype_of(lower, dtype) != lower.element_type(made):
        return astype(lower, made, dtype)
    return made


@handles(np.copy, methods="copy")
def copy(lower: Indexing, a: Any) -> Any:
    return lower.copied(as_array(lower, a))


@handles(np.astype, methods="astype")
def astype(lower: Indexing, x: Any, dtype: Any) -> Any:
    type = dtype_of(lower, dtype)
    return lower.elementwise(f"cast:{type.dtype}", x)


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


@handles(np.linspace)
def linspace(lower: Indexing, start: Any, stop: Any, num: Any = 50) -> Any:
    parts = lower.op("-", num, 1)
    step = lower.op("/", lower.op("-", stop, start), lower.op("max", parts, 1))

    def element(index: Index) -> Operand:
        inner = lower.op("+", lower.op("*", index[0], step), start)
        return lower.op("where", lower.op("and", lower.op("==", index[0], parts), lower.op(">", parts, 0)), stop, inner)

    return Lazy((num,), element, FLOAT)


@handles(np.eye, np.identity)
def eye(lower: Indexing, N: Any) -> Any:
    return Lazy((N, N), lambda index: lower.op("where", lower.op("==", index[0], index[1]), 1.0, 0.0), FLOAT)


# --- shape -------------------------------------------------------------------------------------------------------


@handles(np.transpose, methods="transpose")
def transpose(lower: Indexing, a: Any) -> Any:
    if isinstance(a, Lazy):
        return lower.lazily(a, a.shape[::-1], lambda index: a.element(index[::-1]))
    return lower.transposed(a)


@handles(np.ravel, methods="ravel flatten")
def ravel(lower: Indexing, a: Any) -> Any:
    return reshape(lower, a, -1)


@handles(np.reshape, methods="reshape")
def reshape(lower: Indexing, a: Any, shape: Any) -> Any:
    """A copy of the elements in another shape."""
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

    def element(index: Index) -> Operand:
        flat: Operand = 0
        for i, n in zip(index, new, strict=True):
            flat = lower.op("+", lower.op("*", flat, n), i)
        places: list[Operand] = []
        for n in reversed(old[1:]):
            places.append(lower.op("%", flat, n))
            flat = lower.op("//", flat, n)
        return lower.load(source, (flat, *reversed(places)))

    made = lower.alloc("w", new, lower.element_type(a))
    lower.assign_elements(made, lower.lazily(source, new, element))
    return made


@handles(np.concatenate)
def concatenate(lower: Indexing, arrays: Any, axis: Any = 0) -> Any:
    parts = [as_array(lower, a) for a in _sequence(lower, arrays)]
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
    parts = [as_array(lower, a) for a in _sequence(lower, arrays)]
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


def _sequence(lower: Indexing, arrays: Any) -> tuple[Any, ...]:
    if not isinstance(arrays, tuple) or not arrays:
        raise lower.refuse("something else than a tuple or list of arrays")
    return arrays


@handles(np.outer)
def outer(lower: Indexing, a: Any, b: Any) -> Any:
    a, b = (ravel(lower, x) if len(lower.shape(x)) != 1 else x for x in (as_array(lower, a), as_array(lower, b)))
    shape = (lower.shape(a)[0], lower.shape(b)[0])
    column = lower.lazily(a, (shape[0], 1), lambda index: lower.element(a, index[:1]))
    return lower.elementwise("*", column, b)


@handles(np.diff)
def diff(lower: Indexing, a: Any) -> Any:
    ndim = len(lower.shape(a))
    ahead = lower.subscript(a, [*(Slice() for _ in range(ndim - 1)), Slice(1)])
    behind = lower.subscript(a, [*(Slice() for _ in range(ndim - 1)), Slice(None, -1)])
    return lower.elementwise("-", ahead, behind)


# --- reductions --------------------------------------------------------------------------------------------------


@handles(np.sum, methods="sum")
def array_sum(lower: Indexing, a: Any, axis: Any = None, keepdims: Any = False) -> Any:
    return _reduced(lower, a, axis, keepdims, lower.fold_sum)


@handles(np.prod, methods="prod")
def array_prod(lower: Indexing, a: Any, axis: Any = None, keepdims: Any = False) -> Any:
    return _reduced(lower, a, axis, keepdims, lambda shape, element: lower.fold_with("*", 1, shape, element))


@handles(np.mean, methods="mean")
def array_mean(lower: Indexing, a: Any, axis: Any = None, keepdims: Any = False) -> Any:
    def fold(shape: Any, element: Any) -> Operand:
        return lower.op("/", lower.fold_sum(shape, element), lower.size_of(shape))

    return _reduced(lower, a, axis, keepdims, fold)


@handles(np.var, methods="var")
def array_var(lower: Indexing, a: Any, axis: Any = None, ddof: Any = 0, keepdims: Any = False) -> Any:
    def fold(shape: Any, element: Any) -> Operand:
        size = lower.size_of(shape)
        mean = lower.op("/", lower.fold_sum(shape, element), size)

        def square(index: Index) -> Operand:
            d = lower.op("-", element(index), mean)
            return lower.op("*", d, d)

        return lower.op("/", lower.fold_sum(shape, square), lower.op("-", size, ddof))

    return _reduced(lower, a, axis, keepdims, fold)


@handles(np.std, methods="std")
def array_std(lower: Indexing, a: Any, axis: Any = None, ddof: Any = 0, keepdims: Any = False) -> Any:
    return elementwise(lower, np.sqrt, [array_var(lower, a, axis, ddof, keepdims)])


@handles(np.max, np.amax, methods="max")
def array_max(lower: Indexing, a: Any, axis: Any = None, keepdims: Any = False) -> Any:
    return _reduced(lower, a, axis, keepdims, lambda shape, element: lower.fold_extreme(">", shape, element))


@handles(np.min, np.amin, methods="min")
def array_min(lower: Indexing, a: Any, axis: Any = None, keepdims: Any = False) -> Any:
    return _reduced(lower, a, axis, keepdims, lambda shape, element: lower.fold_extreme("<", shape, element))


@handles(np.all, methods="all")
def array_all(lower: Indexing, a: Any, axis: Any = None, keepdims: Any = False) -> Any:
    return _reduced(lower, a, axis, keepdims, lambda shape, element: lower.fold_truth(True, shape, element))


@handles(np.any, methods="any")
def array_any(lower: Indexing, a: Any, axis: Any = None, keepdims: Any = False) -> Any:
    return _reduced(lower, a, axis, keepdims, lambda shape, element: lower.fold_truth(False, shape, element))


def _reduced(lower: Indexing, a: Any, axis: Any, keepdims: Any, fold: Callable[[Any, Any], Any]) -> Any:
    a = as_array(lower, a)
    if not lower.is_array(a):
        raise lower.refuse("a reduction of a scalar", "the scalar itself")
    return lower.reduce(a, axes_of(lower, axis, len(lower.shape(a))), flag_of(lower, keepdims, "keepdims"), fold)


@handles(np.argmax, methods="argmax")
def argmax(lower: Indexing, a: Any) -> Any:
    return _position(lower, a, ">")


@handles(np.argmin, methods="argmin")
def argmin(lower: Indexing, a: Any) -> Any:
    return _position(lower, a, "<")


def _position(lower: Indexing, a: Any, sign: str) -> Operand:
    a = as_array(lower, a)
    shape = lower.shape(a)
    if len(shape) != 1:
        a = ravel(lower, a)
        shape = lower.shape(a)
    lower.guard_not_empty(shape)
    best = lower.new_cell("best", lower.element_type(a), lower.value_only(lower.element(a, (0,))))
    place = lower.new_cell("place", INT, 0)

    def look(i: str) -> None:
        x = lower.value_only(lower.element(a, (i,)))
        found = lower.get(best)
        is_better = lower.op(sign, x, found)
        if lower.element_type(a).kind == "f":
            is_nan = lower.op("and", lower.op("!=", x, x), lower.op("==", found, found))
            is_better = lower.op("or", is_better, is_nan)

        def better() -> None:
            lower.emit(Set(best, x))
            lower.emit(Set(place, i))

        lower.branch(is_better, better)

    lower.loop(1, shape[0], look)
    return lower.get(place)


@handles(np.cumsum, methods="cumsum")
def cumsum(lower: Indexing, a: Any) -> Any:
    return _scan(lower, a, "+", 0)


@handles(np.cumprod, methods="cumprod")
def cumprod(lower: Indexing, a: Any) -> Any:
    return _scan(lower, a, "*", 1)


def _scan(lower: Indexing, a: Any, fn: str, start: int) -> Any:
    if len(lower.shape(a)) != 1:
        raise lower.refuse("a scan of an array of several axes", "a loop over the rows")
    type = lower.element_type(a)
    type = INT if type.kind in "bu" else type
    made = lower.alloc("w", lower.shape(a), type)
    cell = lower.new_cell("s", type, float(start) if type.kind == "f" else start)

    def step(i: str) -> None:
        if fn == "+":
            lower.emit(Add(cell, lower.element(a, (i,))))
        else:
            lower.emit(Set(cell, lower.op(fn, lower.get(cell), lower.element(a, (i,)))))
        lower.store(made, (i,), lower.get(cell))

    lower.loop(0, lower.shape(a)[0], step)
    return made


# --- choices -----------------------------------------------------------------------------------------------------


@handles(np.where)
def where(lower: Indexing, condition: Any, x: Any = None, y: Any = None) -> Any:
    if x is None or y is None:
        raise lower.refuse("np.where with one argument", "a mask, or a loop with an if")
    return lower.elementwise("where", truth(lower, as_array(lower, condition)), as_array(lower, x), as_array(lower, y))


@handles(np.clip, methods="clip")
def clip(lower: Indexing, a: Any, a_min: Any = None, a_max: Any = None) -> Any:
    if a_min is not None:
        a = lower.elementwise("np.maximum", a, a_min)
    if a_max is not None:
        a = lower.elementwise("np.minimum", a, a_max)
    return a


# --- products ----------------------------------------------------------------------------------------------------


@handles(np.dot, np.matmul, methods="dot")
def dot(lower: Indexing, a: Any, b: Any) -> Any:
    a, b = as_array(lower, a), as_array(lower, b)
    ndims = len(lower.shape(a)), len(lower.shape(b))
    if 0 in ndims:
        return lower.elementwise("*", a, b)
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
def norm(lower: Indexing, x: Any) -> Any:
    """√Σx²; at the origin the sum of the squares itself, whose derivative there is zero, and not 0 times infinity."""
    squares = array_sum(lower, lower.elementwise("*", x, x))
    result = lower.new_cell("norm", lower.type_of(squares), squares)
    lower.branch(lower.op(">", squares, 0.0), lambda: lower.emit(Set(result, lower.op("np.sqrt", squares))))
    return lower.get(result)


@handles(np.trace, methods="trace")
def trace(lower: Indexing, a: Any) -> Any:
    n, m = lower.shape(a)
    return lower.fold_sum((lower.op("min", n, m),), lambda index: lower.element(a, (*index, *index)))


# --- Python ------------------------------------------------------------------------------------------------------


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
        if lower.is_array(bound) or isinstance(bound, Constant | tuple) or lower.type_of(bound).kind not in "iub":
            raise lower.refuse("range of something that is no integer", "int(n)")
    if type(step) is int and step == 0:
        raise lower.refuse("range() arg 3 must not be zero")
    return Range(low, high, step)


@handles(enumerate)
def enumerate_of(lower: Indexing, iterable: Any, start: Any = 0) -> Any:
    return Enumerated(iterable, start)


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


@handles(math.sqrt)
def square_root(lower: Indexing, x: Any) -> Any:
    return lower.op("np.sqrt", x)


def extreme_of_arguments(lower: Indexing, name: str, args: list[Any]) -> Any:
    """Python's min and max of several scalars, or of a tuple."""
    if len(args) == 1 and isinstance(args[0], tuple):
        args = list(args[0])
    if len(args) == 1 and lower.is_array(args[0]) and len(lower.shape(args[0])) == 1:
        return array_max(lower, args[0]) if name == "max" else array_min(lower, args[0])
    if any(lower.is_array(a) or isinstance(a, Constant | tuple) for a in args):
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
}

__all__ = ["HANDLERS", "METHODS", "VARIADIC", "call_function"]
