"""NumPy's functions that write into an argument: `np.copyto` and its like, `ufunc.at`, and `out=` of everything.

Each is written with `x[key] = value`, so that views, versions and modes are not its business.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from sys import getrefcount
from typing import Any

from retrograde.errors import BatchError, MutationError
from retrograde.originals import np
from retrograde.rules.numpy_indexing import may_repeat, scatter, take_body
from retrograde.trace.call import dispatch
from retrograde.trace.callers import Statement, frame_of_user, statement_of
from retrograde.trace.constant import constant_here
from retrograde.trace.creation import array_of
from retrograde.trace.handle import HANDLES, MAPPED, is_traced, plain
from retrograde.trace.indexing import check_apart, setitem
from retrograde.trace.keys import BatchedKey, fixed_key
from retrograde.trace.places import places_of

_MADE_INSIDE = (
    "an array that the function makes: np.zeros(shape), np.zeros_like(array), np.copy(array), np.array(expression)"
)


def must_be_ours(x: Any, name: str, *ways: str) -> None:
    """Refuse a plain array as the place of traced values.

    Raises:
        MutationError: the array is plain.
    """
    if type(x) not in HANDLES:
        raise MutationError(
            f"{name} would write a traced value into a plain array and lose its derivative", *ways, _MADE_INSIDE
        )


# --- functions whose first argument is written to ----------------------------------------------------------------


def _copyto(dst: Any, src: Any, casting: Any = "same_kind", where: Any = True) -> None:
    src = array_of(src)
    if not np.can_cast(np.result_type(plain(src)), dst.dtype, casting):
        np.copyto(plain(dst).copy(), plain(src), casting)  # NumPy says what is wrong
    if where is True:
        setitem(dst, ..., src)
        return
    if _is_batched(where):
        setitem(dst, ..., np.where(where, src, dst))
        return
    mask = np.broadcast_to(np.asarray(plain(where), bool), dst.shape)
    setitem(dst, mask, np.broadcast_to(src, dst.shape)[mask])


def _put(a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    a.put(ind, v, mode)


def _fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    np.fill_diagonal._implementation(a, val, wrap)  # type: ignore[attr-defined]


def _is_batched(mask: Any) -> bool:
    """Whether a mask is another one for each example of a batch: then all elements are computed, and some are taken."""
    return type(plain(mask)) in MAPPED


def _by_source(function: Callable[..., Any], a: Any, values: Any, *others: Any) -> None:
    """A function that chooses for some elements of `a` one of `values`: NumPy itself says which goes where."""
    values = array_of(values)
    source = np.full(a.shape, -1)
    function(source, *others, np.arange(np.size(values)).reshape(np.shape(values)))
    mask = source >= 0
    setitem(a, mask, np.reshape(values, -1)[source[mask]])


def _place(arr: Any, mask: Any, vals: Any) -> None:
    check_apart("np.place", [plain(vals)], arr)
    if _is_batched(mask):
        # The values one after the other, at the places that the mask chooses.
        vals = np.reshape(array_of(vals), -1)
        turn = (np.cumsum(mask) - 1) % np.size(vals)
        setitem(arr, ..., np.where(mask, np.reshape(take_body(vals, plain(turn)), arr.shape), arr))
        return
    _by_source(np.place, arr, vals, plain(mask))


def _putmask(a: Any, mask: Any, values: Any) -> None:
    if _is_batched(mask):
        setitem(a, ..., np.where(mask, np.resize(values, a.shape), a))
        return
    _by_source(np.putmask, a, values, plain(mask))


def _put_along_axis(arr: Any, indices: Any, values: Any, axis: Any) -> None:
    indices = plain(indices)
    if axis is None:
        _by_source(lambda source, numbers: np.put_along_axis(source, indices, numbers, None), arr, values)
        return
    axis = range(arr.ndim)[axis]
    ranges: list[Any] = [np.arange(n).reshape(-1, *(1,) * (arr.ndim - 1 - i)) for i, n in enumerate(arr.shape)]
    setitem(arr, (*ranges[:axis], indices, *ranges[axis + 1 :]), values)


def _nan_to_num(x: Any, copy: Any = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    y = dispatch(np.nan_to_num, (x,), {"nan": nan, "posinf": posinf, "neginf": neginf})
    return y if copy else store("np.nan_to_num", y, x)


WRITERS: dict[Any, Callable[..., Any]] = {
    np.copyto: _copyto,
    np.fill_diagonal: _fill_diagonal,
    np.nan_to_num: _nan_to_num,
    np.place: _place,
    np.put: _put,
    np.put_along_axis: _put_along_axis,
    np.putmask: _putmask,
}


def write_by(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call one of WRITERS' functions with a traced value among its arguments."""
    bound = inspect.signature(function).bind(*args, **kwargs)
    target, *values = bound.arguments.values()
    if type(target) not in HANDLES:
        if any(is_traced(v) and not v.is_free() for v in _members(values)):
            must_be_ours(target, f"np.{function.__name__}", "x[...] = values, for an array made inside the function")
        return function(target, *map(plain, values))
    return WRITERS[function](*bound.args, **bound.kwargs)


def _members(tree: Any) -> Iterator[Any]:
    if isinstance(tree, list | tuple):
        for item in tree:
            yield from _members(item)
    else:
        yield tree


# --- ufunc.at --------------------------------------------------------------------------------------------------------


def at(ufunc: np.ufunc, x: Any, key: Any, *values: Any) -> None:
    """`ufunc.at(x, key, values)`: an element that is named twice is changed twice, one after the other."""
    name = f"np.{ufunc.__name__}.at"
    if type(x) not in HANDLES:
        must_be_ours(x, name, *(["np.bincount(key, values), a new array"] if ufunc is np.add else []))
    try:
        key = fixed_key(key)
    except BatchedKey:
        _at_batched_places(ufunc, x, key, *values)
        return
    value: Any = array_of(values[0]) if values else None
    here = x[key]
    if not may_repeat(key):
        setitem(x, key, ufunc(here) if value is None else ufunc(here, value))
        return
    places = places_of(key, x.shape)
    if not places.codes.size:
        return
    if value is not None:
        value = places.drawn_out(np.broadcast_to(value, here.shape))
    if ufunc is np.add or ufunc is np.subtract:
        first, number = places.once()
        shape = (*value.shape[: places.axis], len(first), *value.shape[places.axis + 1 :])
        total = scatter(value, (*(slice(None),) * places.axis, number), shape)
        key = places.key(first)
        setitem(x, key, ufunc(x[key], total))
        return
    for turn in places.rounds():
        key = places.key(turn)
        setitem(x, key, ufunc(x[key]) if value is None else ufunc(x[key], places.chosen(value, turn)))


def _at_batched_places(ufunc: np.ufunc, x: Any, key: Any, *values: Any) -> None:
    """The same where the places differ between the examples of a batch."""
    if ufunc is not np.add and ufunc is not np.subtract:
        raise BatchError(
            f"np.{ufunc.__name__}.at cannot be mapped over places that differ between the examples of a batch",
            "np.add.at, or np.subtract.at",
        )
    # Broadcast first: scatter needs one value for each place.
    added = scatter(array_of(values[0]) * np.ones(x[key].shape), key, x.shape)
    setitem(x, ..., ufunc(x, added))


# --- out= ------------------------------------------------------------------------------------------------------------


@functools.cache
def position_of_out(function: Any) -> int:
    """The position of the argument `out` of a NumPy function; one that no call reaches if it has none."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return _NOWHERE
    kind = getattr(parameters.get("out"), "kind", None)
    return list(parameters).index("out") if kind is inspect.Parameter.POSITIONAL_OR_KEYWORD else _NOWHERE


_NOWHERE = 10**6


def without_out(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, tuple[Any, ...]]:
    """The argument `out` of a call, taken out of the keywords or of the positional arguments; None if not given."""
    if "out" in kwargs:
        return kwargs.pop("out"), args
    position = position_of_out(function)
    if len(args) <= position:
        return None, args
    # What stands behind it goes by its name.
    names = list(inspect.signature(function).parameters)
    kwargs.update(zip(names[position + 1 :], args[position + 1 :], strict=False))
    return args[position], args[:position]


def store(name: str, y: Any, out: Any, key: Any = ...) -> Any:
    """`out[key] = y`, and `out`; for several results one array, or None, for each."""
    if isinstance(out, tuple):
        ys = y if isinstance(y, tuple | list) else (y,)
        stored = tuple(part if o is None else store(name, part, o, key) for part, o in zip(ys, out, strict=True))
        return stored if isinstance(y, tuple | list) else stored[0]
    if type(out) in HANDLES:
        setitem(out, key, y)
    else:
        if is_traced(y) and not y.is_free():
            must_be_ours(out, f"{name}(..., out=array)", "y = f(x), a new value")
        out[key] = plain(y)
    return out


def taken_over(array: Any, y: Any) -> Any:
    """What `array += x` gives where the name alone holds the plain `array`: a traced one, which the name is then given.

    None where it is no such statement, or where somebody else would go without the change.
    """
    count = getrefcount(array)
    if not is_traced(y) or y.is_free():
        return None
    frame = frame_of_user()
    if frame is None or statement_of(frame) is not Statement.IN_PLACE:
        return None
    if count > _HELD_BY_A_NAME or array.base is not None or not array.flags.writeable:
        must_be_ours(array, "array += x", "array = array + x, a new array")
    taken = constant_here(array)
    setitem(taken, ..., y)
    return taken


class _Probe:
    """What takes part in `array += probe`, to count the references of an array that one name holds."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> int:
        out = kwargs.pop("out", None)
        return _count_out(out[0], self)


def _count_out(array: Any, y: Any) -> int:
    return getrefcount(array)


def _count_held_by_a_name() -> int:
    array: Any = np.zeros(1)
    array += _Probe()
    return int(array)


_HELD_BY_A_NAME = _count_held_by_a_name()


def check_out_shape(y: Any, out: Any, ask: Callable[[Any], Any]) -> None:
    """Where a result does not have the shape of `out`, let NumPy say whether it may: `ask(copy of out)` calls it."""
    ys = y if isinstance(y, tuple | list) else (y,)
    outs = out if isinstance(out, tuple) else (out,)
    if any(o is not None and np.shape(part) != o.shape for part, o in zip(ys, outs, strict=False)):
        copies = tuple(None if o is None else np.array(plain(o)) for o in outs)
        ask(copies if isinstance(out, tuple) else copies[0])


__all__ = [
    "WRITERS",
    "at",
    "check_apart",
    "check_out_shape",
    "must_be_ours",
    "store",
    "taken_over",
    "without_out",
    "write_by",
]
