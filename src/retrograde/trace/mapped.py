"""Handles of batched values: they look like one example, and hold all of them along an axis in front.

A class of its own, so that the operators of other traced values need not ask whether they are in a batch: these here
ask. Arrays that are made inside of a batch are of this class too, since batched values may be written to them later;
until then, and for a value of a level of derivatives, it does what its base does.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterator
from typing import Any

from numpy import ndarray

from retrograde.errors import BatchError
from retrograde.originals import np
from retrograde.trace import protocols, views
from retrograde.trace.call import highest_level
from retrograde.trace.handle import HANDLES, MAPPED, VIEWS, Traced, contents, make, plain
from retrograde.trace.indexing import getitem, setitem
from retrograde.trace.memory import READ_ONLY, check_writeable, owned
from retrograde.trace.protocols import array_function, array_ufunc
from retrograde.trace.views import View
from retrograde.trace.write_functions import at
from retrograde.trace.writing import follow

_LOOP = "np.stack([f(x) for x in xs]), a loop over the examples in place of vmap"


class Mapped(Traced):
    """A value that belongs to a batch, or may come to belong to one.

    In a batch `primal` is an array with the axis of the examples in front, or a traced value of a lower level with
    one. `link` says whether an example without axes is an array all the same.
    """

    __slots__ = ()

    # NumPy asks the argument whose class is most special, and so do our own functions.
    __array_priority__ = 2000

    @property  # type: ignore[misc]
    def __class__(self) -> type:  # type: ignore[override]
        if not self.level.maps:
            kind: type = plain(self.memory).__class__
            return kind
        return ndarray if self.is_array() else self.dtype.type

    def is_array(self) -> bool:
        """Whether each example is an array, and not a number."""
        return len(self.memory.shape) > 1 or bool(self.link)

    def without_derivatives(self) -> Any:
        """This value with plain numbers in it."""
        below = plain(self.memory)
        if not self.level.maps:
            return below
        return self if below is self.primal else hold(below, self.level, self.is_array())

    def reading(self) -> Traced:
        return hold(self.primal, self.level, self.link) if self.level.maps else Traced.reading(self)

    # --- the attributes of one example

    @property
    def shape(self) -> tuple[int, ...]:
        shape: tuple[int, ...] = getattr(self.memory, "shape", ())
        return shape[1:] if self.level.maps else shape

    @shape.setter
    def shape(self, shape: Any) -> None:
        Traced.shape.fset(self, shape)  # type: ignore[attr-defined]

    ndim = property(lambda x: len(x.shape))
    dtype = property(lambda x: x.memory.dtype if hasattr(x.memory, "dtype") else np.dtype(type(x.memory)))
    size = property(lambda x: int(np.prod(x.shape)))

    @property
    def strides(self) -> tuple[int, ...]:
        strides: tuple[int, ...] = self.memory.strides
        return strides[1:] if self.level.maps else strides

    def layout(self) -> Any:
        return self.example().view().flags

    def example(self) -> np.ndarray[Any, Any]:
        """One of the examples as it lies in memory, of batches around this one, too; none of its numbers may matter."""
        whole = plain(self.memory)
        whole = whole.example() if type(whole) in MAPPED else np.asarray(whole)
        if not self.level.maps:
            return whole  # type: ignore[no-any-return]
        return whole[0, ...] if len(whole) else np.broadcast_to(np.empty((), whole.dtype), whole.shape[1:])

    def astype(
        self, dtype: Any, order: str = "K", casting: str = "unsafe", subok: bool = True, copy: bool = True
    ) -> Any:
        if not self.level.maps:
            return Traced.astype(self, dtype, order, casting, subok, copy)
        if casting != "unsafe" and not np.can_cast(self.dtype, dtype, casting):  # type: ignore[arg-type]
            np.empty(0, self.dtype).astype(dtype, casting=casting)  # type: ignore[arg-type]  # NumPy says what is wrong
        return self if not copy and self.dtype == np.dtype(dtype) else np.astype(self, dtype)  # type: ignore[arg-type]

    def item(self, *index: Any) -> Any:
        if self.level.maps and not index and not self.is_array():
            return self
        return Traced.item(self, *index)

    def is_free(self) -> bool:
        return not self.level.maps and Traced.is_free(self)

    # --- conversions: there is no one number, and no one truth

    def _number(self, what: str, *ways: str) -> BatchError:
        return BatchError(
            f"{what} needs one number; here are those of {self.level.size} examples at once (vmap), "
            f"each {described(self)}",
            *ways,
            _LOOP,
        )

    def __bool__(self) -> bool:
        if not self.level.maps:
            return Traced.__bool__(self)
        raise self._number(
            "a branch (if, while, and, or, not)",
            "np.where(condition, a, b), which takes for each example its own",
            "np.logical_and, np.logical_or, np.logical_not in place of and, or, not",
        )

    def __float__(self) -> float:
        if not self.level.maps:
            return Traced.__float__(self)
        raise self._number("float(x)", "keep x as it is: np.* and math.* functions take it")

    def __int__(self) -> int:
        if not self.level.maps:
            return Traced.__int__(self)
        raise self._number("int(x)", "np.trunc(x) or x.astype(int)")

    def __index__(self) -> int:
        if not self.level.maps:
            return Traced.__index__(self)
        raise self._number(
            "the use of x as a size, a count or an index of a plain array",
            "np.take(array, x, axis=0), for array[x] of a plain array",
            "in_axes=None for that argument, if it is the same for all examples",
        )

    def __complex__(self) -> complex:
        if not self.level.maps:
            return Traced.__complex__(self)
        raise self._number("complex(x)", "x + 0j")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        if not self.level.maps:
            return Traced.__array__(self, dtype, copy)
        raise self._number(
            "the conversion to a plain array (np.asarray(x), a function that makes one, or a write into one)",
            "a NumPy function of x: it works on batched values as they are",
            "np.take(array, x, axis=0), for array[x] of a plain array",
            "make the array that is written to inside of the mapped function, by its shape: np.zeros(shape)",
            "primitive(function).defbatch(...), for a function from elsewhere",
        )

    def __contains__(self, item: Any) -> bool:
        if not self.level.maps and not (type(item) in MAPPED and item.level.maps):
            return Traced.__contains__(self, item)
        raise self._number("x in y", "np.any(y == x)")

    def __len__(self) -> int:
        if not self.level.maps:
            return self.length(sys._getframe(1))
        if not self.shape:
            raise TypeError("len() of unsized object")
        self.check_not_shuffled(sys._getframe(1))
        return self.shape[0]

    def __format__(self, spec: str) -> str:
        return repr(self) if self.level.maps else Traced.__format__(self, spec)

    def __repr__(self) -> str:
        if not self.level.maps:
            return Traced.__repr__(self)
        return f"batched({contents(self)!r}, {self.level.size} × {described(self)})"

    def __str__(self) -> str:
        return repr(self) if self.level.maps else Traced.__str__(self)

    def __copy__(self) -> Any:
        return self.copy() if self.level.maps else Traced.__copy__(self)

    def __reduce_ex__(self, protocol: Any) -> Any:
        if not self.level.maps:
            return Traced.__reduce_ex__(self, protocol)
        raise self._number("pickling", "return it from the mapped function")

    # --- NumPy's protocols

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        level = _level_of(inputs) if not kwargs else highest_level((inputs, *kwargs.values()))
        if level is None or not level.maps:
            return array_ufunc(self, ufunc, method, *inputs, **kwargs)
        if method == "__call__":
            if kwargs:
                return protocols.call_with_keywords(ufunc, inputs, kwargs)
            return level.map(ufunc, inputs, {})
        if method == "at":
            return at(ufunc, *inputs)
        function = getattr(ufunc, method)
        if "out" in kwargs:
            return protocols.into(function, inputs, kwargs, kwargs.pop("out"))
        return level.map(function, inputs, kwargs)

    def __array_function__(self, function: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        level = highest_level((args, *kwargs.values()))
        if level is None or not level.maps:
            return array_function(self, function, types, args, kwargs)
        y, args, kwargs = protocols.written(function, args, kwargs)
        if y is not protocols.NOTHING_WRITTEN:
            return y
        return protocols.made(function, level.map(function, args, kwargs))

    # --- reading and writing

    def __getitem__(self, key: Any) -> Any:
        level = highest_level((self, key))
        if level is None or not level.maps:
            return getitem(self, key)
        return level.read(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        if self.level.maps and not self.is_array():
            raise TypeError(f"'{self.dtype.name}' object does not support item assignment")
        setitem(self, key, value)

    def __iter__(self) -> Iterator[Any]:
        for i in range(len(self)):
            yield self[i]


class MappedView(Mapped, View):
    """A view of a value of that class."""

    __slots__ = ()

    def is_array(self) -> bool:
        return True

    @property
    def primal(self) -> Any:  # type: ignore[override]
        base = self.base
        if not base.level.maps:
            return View.reading(self).primal
        whole = base.primal
        if self.version is not whole:
            # Whatever has the same memory sees the same writes; a write that copies leaves the base another array.
            self.read = follow(hold(whole, base.level, base.link), self.path).primal
            self.version = whole
        return self.read

    @property
    def link(self) -> Any:  # type: ignore[override]
        return True if self.base.level.maps else View.reading(self).link

    @property
    def memory(self) -> Any:
        return self.primal if self.base.level.maps else View.memory.fget(self)  # type: ignore[attr-defined]

    def reading(self) -> Traced:
        return hold(self.primal, self.base.level, True) if self.base.level.maps else View.reading(self)

    def owned(self) -> Traced:
        return hold(owned(self.primal), self.base.level, True) if self.base.level.maps else View.owned(self)


for _kinds in (HANDLES, MAPPED):
    _kinds.update((Mapped, MappedView))
VIEWS.add(MappedView)
views.VIEW_OF_MAPPED = MappedView


def hold(primal: Any, level: Any, link: Any = None) -> Mapped:
    """A value of a batch, with the axis of the examples in front."""
    x = Mapped()
    x.primal = primal
    x.link = link
    x.level = level
    return x


def become_mapped(x: Traced) -> None:
    """Make a handle of the common class one of `Mapped`, in place: whoever holds it sees the change."""
    if type(x) not in MAPPED:
        # The property of this name says what the value looks like; this is the real one.
        object.__dict__["__class__"].__set__(x, MappedView if type(x) is View else Mapped)


def _level_of(inputs: tuple[Any, ...]) -> Any:
    """The highest level among the arguments of a ufunc."""
    level = None
    for x in inputs:
        kind = type(x)
        if kind in HANDLES:
            if level is None or x.level.depth > level.depth:
                level = x.level
        elif issubclass(kind, list | tuple):
            return highest_level(inputs)
    return level


def described(x: Any) -> str:
    """One example, as error messages name it."""
    return f"an array of shape {x.shape} and dtype {x.dtype}" if x.shape else f"a number of dtype {x.dtype}"


# --- operators -------------------------------------------------------------------------------------------------------

_BINARY = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.divide, "floordiv": np.floor_divide,
    "mod": np.remainder, "pow": np.power, "matmul": np.matmul, "and": np.bitwise_and, "or": np.bitwise_or,
    "xor": np.bitwise_xor, "lshift": np.left_shift, "rshift": np.right_shift,
}  # fmt: skip
_COMPARISONS = {
    "lt": np.less, "le": np.less_equal, "eq": np.equal, "ne": np.not_equal, "gt": np.greater, "ge": np.greater_equal
}  # fmt: skip
_UNARY = {"neg": np.negative, "pos": np.positive, "invert": np.invert, "floor": np.floor, "ceil": np.ceil,
          "trunc": np.trunc}  # fmt: skip
_MIRRORED = {"lt": "gt", "le": "ge", "eq": "eq", "ne": "ne", "gt": "lt", "ge": "le"}


def _is_operand(x: Any) -> bool:
    return type(x) in HANDLES or isinstance(x, np.ndarray | np.generic | int | float | complex | list | tuple)


def _binary(name: str, mirrored: str, ufunc: np.ufunc, is_reflected: bool) -> Callable[[Any, Any], Any]:
    def method(x: Any, y: Any) -> Any:
        if not _is_operand(y):
            return NotImplemented
        level, other = x.level, y.level if type(y) in HANDLES else None
        if other is not None and other.depth > level.depth:
            level = other
        if level.maps:
            return level.map(ufunc, (y, x) if is_reflected else (x, y), {})
        if level is not x.level and type(y) not in MAPPED:
            return getattr(type(y), mirrored)(y, x)
        return getattr(Traced, name)(x, y)

    method.__name__ = name
    return method


def _unary(name: str, ufunc: np.ufunc) -> Callable[[Any], Any]:
    def method(x: Any) -> Any:
        return x.level.map(ufunc, (x,), {}) if x.level.maps else getattr(Traced, name)(x)

    return method


def _in_place(name: str, bare: str) -> Callable[[Any, Any], Any]:
    operate = getattr(operator, f"__{bare}__")

    def update(x: Any, other: Any) -> Any:
        level = highest_level((x, other))
        if level is None or not level.maps:
            return getattr(Traced, name)(x, other)
        y = operate(x, other)
        if x.level.maps and not x.is_array():
            return y  # numbers do not change: the name gets a new value
        if READ_ONLY:
            check_writeable(x)
        if np.shape(y) != np.shape(x) or not np.can_cast(y.dtype, x.dtype, "same_kind"):
            # Let NumPy say what is wrong with it.
            getattr(operator, f"i{bare}")(np.zeros(x.shape, x.dtype), np.zeros(y.shape, y.dtype))
        is_like = type(x) is Mapped and type(y) is Mapped and y.level is x.level and y.dtype == x.dtype
        # In-place operators leave an array as it lies in memory.
        if is_like and contents(x).strides == contents(y).strides:
            x.primal = y.primal
        else:
            setitem(x, ..., y if y.dtype == x.dtype else y.astype(x.dtype))
        return x

    return update


def _install() -> None:
    for name, ufunc in _BINARY.items():
        left, right = f"__{name}__", f"__r{name}__"
        setattr(Mapped, left, _binary(left, right, ufunc, False))
        setattr(Mapped, right, _binary(right, left, ufunc, True))
        in_place = f"__i{name}__"
        if hasattr(Traced, in_place):
            setattr(Mapped, in_place, _in_place(in_place, name))
    for name, ufunc in _COMPARISONS.items():
        method = f"__{name}__"
        setattr(Mapped, method, _binary(method, f"__{_MIRRORED[name]}__", ufunc, False))
    for name, ufunc in _UNARY.items():
        method = f"__{name}__"
        setattr(Mapped, method, _unary(method, ufunc))
    # A class that defines equality would lose the hash of its base.
    setattr(Mapped, "__hash__", Traced.__hash__)
    setattr(Mapped, "__abs__", lambda x: np.absolute(x))
    setattr(Mapped, "__divmod__", lambda x, y: (x // y, x % y))
    setattr(Mapped, "__rdivmod__", lambda x, y: (y // x, y % x))
    setattr(Mapped, "__round__", lambda x, digits=None: np.round(x, digits or 0))


_install()

__all__ = ["Mapped", "MappedView", "become_mapped", "described", "hold", "make"]
