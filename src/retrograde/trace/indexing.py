"""Reading a traced array by index, writing into it, and changing it in place."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

from numpy import float64, ndarray

from retrograde.errors import MutationError
from retrograde.originals import np
from retrograde.rules import numpy_indexing
from retrograde.trace.call import dispatch
from retrograde.trace.constant import CONSTANT, constant, constant_here
from retrograde.trace.creation import array_of
from retrograde.trace.handle import HANDLES, MAPPED, VIEWS, Traced, like_of, make, plain
from retrograde.trace.keys import BatchedKey, fixed_key
from retrograde.trace.memory import READ_ONLY, check_writeable, is_lent
from retrograde.trace.operators import NUMBERS
from retrograde.trace.views import is_same_part, shares_memory, view_of
from retrograde.trace.writing import READ, READ_ONE, Path, follow, write


def getitem(x: Any, key: Any) -> Any:
    """`x[key]` for a key of any kind that NumPy knows; a view where NumPy gives one."""
    if type(key) is int and type(x) is Traced:
        primal = x.primal
        if type(primal) is ndarray:
            y = primal[key]
            if type(y) is float64:
                # One number of a vector: the read that loops consist of.
                level = x.level
                node = (level.number(), READ_ONE, x.link, key, primal.shape)
                if level.quick:
                    level.append(node)
                    z = Traced()
                    z.primal = y
                    z.link = node
                    z.level = level
                    return z
                return level.follow(y, node)
    given = key
    if type(key) is not int:
        try:
            key = fixed_key(key)
        except BatchedKey:
            return dispatch(numpy_indexing.getitem, (x, key), {})
    if type(x) in VIEWS:
        path, base = x.path, x.base
        primal = follow(base.primal, path)
    else:
        path, base = (), x
        primal = base.primal
    y = primal[key]
    if (type(y) is ndarray or type(y) in VIEWS) and shares_memory(y, primal):
        return view_of(x, operator.itemgetter(key), lambda: read_at(base, path, key, y), given)
    return read_at(base, path, key, y)


def read_at(x: Traced, path: Path, key: Any, y: Any) -> Any:
    """The value `y` that stands at `follow(x, path)[key]`."""
    level = x.level
    if level is CONSTANT:
        # What is gathered of an array that the function made, it has made as well.
        if type(x) in MAPPED:
            return constant_here(y) if type(y) is ndarray else y
        return constant(y) if type(y) is ndarray and y.dtype.kind in "fc" else y
    node = (level.number(), READ, x.link, path, key, *like_of(x.primal))
    if level.quick:
        level.append(node)
        return make(y, node, level)
    return level.follow(y, node)


def iterate(x: Traced) -> Iterator[Any]:
    """The elements along the first axis, as NumPy's iteration gives them."""
    value = plain(x)
    iter(value)  # Python's own error for a number, now and not at the first element
    return _elements(x, len(value))


def _elements(x: Traced, count: int) -> Iterator[Any]:
    for i in range(count):
        yield getitem(x, i)


def setitem(x: Any, key: Any, value: Any) -> None:
    """`x[key] = value`, for a view too."""
    if not isinstance(plain(x), np.ndarray):
        raise TypeError(f"'{type(plain(x)).__name__}' object does not support item assignment")
    if READ_ONLY:
        check_writeable(x)
    if is_same_part(x, key, value):
        return
    if isinstance(value, list | tuple) and _holds_views(value, x) and _write_in_turn(x, key, value):
        return
    value = array_of(value)
    kind = type(x)
    if type(value) in HANDLES:
        if type(value) in VIEWS and _is_mask(key, x):
            check_apart("x[mask] = values", [plain(value)], x)
        if value.level.maps and kind not in MAPPED and x.level is CONSTANT:
            raise MutationError(
                "a batched value was written into an array that was made outside of vmap",
                "make the array inside of the mapped function: np.zeros(shape), np.copy(x)",
                "return the value from the mapped function, and write it outside",
            )
        # A view of x itself must be read before x changes, and must not hold its memory.
        value = value.primal if value.level is CONSTANT else value.owned()
    try:
        if kind is Traced:
            write(x, (), key, value)
        elif kind in VIEWS:
            write(x.base, x.path, key, value)
            if x.level.maps:
                x.level.prepare(x)
        elif kind in MAPPED:
            write(x, (), key, value)
        else:
            x[key] = value  # a parameter has its own opinion
    except BatchedKey:
        setitem(x, ..., dispatch(numpy_indexing.placed, (x, key, value), {}))


def delitem(x: Any, key: Any) -> None:
    """`del x[key]`, which arrays and numbers refuse in NumPy's words."""
    value = plain(x)
    del (value.view() if isinstance(value, np.ndarray) else value)[key]


def _is_mask(key: Any, x: Traced) -> bool:
    """Whether a key is one mask of the whole array: the only one that NumPy follows without a look at the memory."""
    if type(key) is tuple and len(key) == 1:
        key = key[0]
    key = plain(key)
    if isinstance(key, list):
        key = np.asarray(key)
    return isinstance(key, np.ndarray) and key.dtype == bool and key.ndim == x.ndim > 0


def check_apart(name: str, values: list[Any], target: Any) -> None:
    """Refuse what depends on the order in which NumPy reads and writes.

    Raises:
        MutationError: one of the values shares memory with the array that is written to.
    """
    if any(isinstance(value, np.ndarray) and np.may_share_memory(value, plain(target)) for value in values):
        raise MutationError(
            f"{name} would write over values that it has not read yet: they share memory with its target",
            "np.copy(values)",
        )


def _holds_views(values: Any, x: Any) -> bool:
    """Whether a view of the array `x` (or of that which x is a view of) stands in a nested list."""
    if isinstance(values, list | tuple):
        return any(_holds_views(value, x) for value in values)
    return type(values) in VIEWS and values.base is (x.base if type(x) in VIEWS else x)


def _write_in_turn(x: Any, key: Any, values: Any) -> bool:
    """`x[key] = [x[1], x[0]]` as NumPy does it, one after the other: what was written shows in what is read next."""
    part = x[key]
    if type(part) not in VIEWS or np.shape(array_of(values)) != part.shape:
        return False
    for i, value in enumerate(values):
        setitem(part, i, value)
    return True


def _replace(x: Traced, value: Any) -> None:
    """`x[...] = value` for a value of the same shape and dtype that was computed just now."""
    same_kind = type(x) is Traced and type(value) is Traced and value.level is x.level
    # In-place operators leave an array as it lies in memory.
    if not same_kind or _layout(x) != _layout(value) or is_lent(x):
        setitem(x, ..., value)
        return
    x.primal = value.primal
    x.link = value.link


def _layout(x: Any) -> Any:
    value = plain(x)
    return type(value), getattr(value, "strides", None)


def _in_place(operate: Callable[[Any, Any], Any]) -> Callable[[Traced, Any], Any]:
    bare = operate.__name__.strip("_")
    name = f"__{bare}__"

    def update(x: Traced, other: Any) -> Any:
        if type(x.primal) in NUMBERS or not isinstance(plain(x), np.ndarray):
            # Numbers do not change: the name gets a new value.
            return getattr(type(x), name)(x, other)
        if READ_ONLY:
            check_writeable(x)
        y = operate(x, other)
        shape, dtype = x.shape, x.dtype
        if np.shape(y) != shape or not np.can_cast(y.dtype, dtype, "same_kind"):
            # Let NumPy say what is wrong with it.
            operate_in_place = getattr(operator, f"i{bare}")
            operate_in_place(plain(x).copy(), plain(other))
        _replace(x, y if y.dtype == dtype else y.astype(dtype))
        return x

    return update


def _install() -> None:
    setattr(Traced, "__getitem__", getitem)
    setattr(Traced, "__setitem__", setitem)
    setattr(Traced, "__delitem__", delitem)
    setattr(Traced, "__iter__", iterate)
    names = "add sub mul truediv floordiv mod pow matmul and_ or_ xor lshift rshift"
    for name in names.split():
        setattr(Traced, f"__i{name.strip('_')}__", _in_place(getattr(operator, name)))


_install()
