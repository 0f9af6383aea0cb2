"""The attributes and methods that a traced value shares with ndarray.

Each method calls the NumPy function of the same name, so that its derivative stands in one place. What changes an array
in place computes the new contents and writes them with `self[...] = `.

All names stand here one by one: a `__getattr__` for those that have no derivative would make every read of a slot
(`x.primal`) three times slower, since Python specialises none in a class that has one.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from retrograde.errors import ConversionError, MissingAttributeError, MutationError, UnsupportedArgumentError
from retrograde.trace.conversions import describe, plainly


def _shape_arguments(args: tuple[Any, ...]) -> Any:
    """`x.reshape(2, 3)` and `x.reshape((2, 3))` are the same."""
    return args[0] if len(args) == 1 else args


class Attributes:
    """ndarray's face; a base of `Traced`."""

    __slots__ = ()

    if TYPE_CHECKING:
        primal: Any

        level: Any

        def without_derivatives(self) -> Any: ...
        def lent(self) -> Any: ...

        def is_free(self) -> bool: ...
        def __getitem__(self, key: Any) -> Any: ...
        def __setitem__(self, key: Any, value: Any) -> None: ...
        def __iter__(self) -> Iterator[Any]: ...

    # A Python number has none of these; but a traced one answers like the 0-d value that NumPy would make of it, so
    # that rules need not ask which they were given.
    @property
    def shape(self) -> tuple[int, ...]:
        return getattr(self.primal, "shape", ())

    @shape.setter
    def shape(self, shape: Any) -> None:
        raise MutationError("x.shape = ... would change the shape of a traced array in place", "x = x.reshape(...)")

    ndim = property(lambda x: getattr(x.primal, "ndim", 0))
    size = property(lambda x: getattr(x.primal, "size", 1))
    dtype = property(lambda x: x.primal.dtype if hasattr(x.primal, "dtype") else np.dtype(type(x.primal)))
    itemsize = property(lambda x: x.dtype.itemsize)
    nbytes = property(lambda x: x.size * x.dtype.itemsize)
    strides = property(lambda x: x.primal.strides)
    device = "cpu"

    # Of an array that is no view (a view has another).
    base: Any = None

    @property
    def __array_namespace__(self) -> Any:
        """What gives the functions that the code which asks takes for arrays: NumPy's, or a wrapper of them."""
        frame = sys._getframe(1)
        if frame.f_code.co_name == "is_writeable_array" and not isinstance(self, np.ndarray):
            raise AttributeError("__array_namespace__")  # a number cannot be written to
        wrapper, is_wrapped, _ = str(frame.f_globals.get("__name__")).partition(".array_api_compat.")
        functions = importlib.import_module(f"{wrapper}.array_api_compat.numpy") if is_wrapped else np
        return lambda *, api_version=None: functions

    @property
    def flags(self) -> Any:
        """How the array lies in memory, and whether it may be written to."""
        return Flags(self)

    def layout(self) -> Any:
        """NumPy's flags, of a view that nobody else has."""
        value = self.without_derivatives()
        # A batched value answers for one example.
        return value.layout() if isinstance(value, Attributes) else np.asarray(value).view().flags

    T = property(lambda x: np.transpose(x))
    mT = property(lambda x: np.matrix_transpose(x))

    @property
    def real(self) -> Any:
        return np.real(self)

    @real.setter
    def real(self, value: Any) -> None:
        self[...] = value + 1j * self.imag if self.dtype.kind == "c" else value

    @property
    def imag(self) -> Any:
        return np.imag(self)

    @imag.setter
    def imag(self, value: Any) -> None:
        self[...] = self.real + 1j * value

    @property
    def flat(self) -> Flat:
        return Flat(self)

    @flat.setter
    def flat(self, value: Any) -> None:
        Flat(self)[:] = value

    def reshape(self, *shape: Any, order: str = "C") -> Any:
        return np.reshape(self, _shape_arguments(shape), order=order)

    def transpose(self, *axes: Any) -> Any:
        return np.transpose(self, _shape_arguments(axes) if axes else None)

    def astype(
        self, dtype: Any, order: str = "K", casting: str = "unsafe", subok: bool = True, copy: bool = True
    ) -> Any:
        dtype = np.dtype(dtype)
        value = self.without_derivatives()
        if casting != "unsafe" and not np.can_cast(self.dtype, dtype, casting):  # type: ignore[arg-type]
            return np.asarray(value).astype(dtype, casting=casting)  # type: ignore[arg-type]  # NumPy says what is wrong
        if dtype.kind not in "fc" and dtype != self.dtype:
            if self.dtype.kind in "fc" and not self.is_free():
                raise ConversionError(
                    f"x.astype({dtype}) would lose the derivative of a traced {self.dtype}",
                    *(("np.trunc(x) or np.rint(x), which keep a (zero) derivative",) if dtype.kind in "iu" else ()),
                    "dropgrad(x).astype(...), where the derivative is not wanted",
                )
            return np.asarray(value).astype(dtype)[()]
        if not copy and dtype == self.dtype:
            return self
        if not isinstance(value, np.ndarray | np.generic):
            return np.astype(np.reshape(self, ()), dtype)[()]  # type: ignore[arg-type]
        return np.astype(self, dtype)  # type: ignore[arg-type]

    def view(self, dtype: Any = None, type: Any = None) -> Any:
        is_same = dtype is None or dtype is np.ndarray or np.dtype(dtype) == self.dtype
        if not is_same or type not in (None, np.ndarray):
            raise UnsupportedArgumentError(
                f"x.view({dtype or type}) would take the bytes of {describe(self)} for something else",
                "x.astype(dtype), x.real and x.imag, or a slice of x",
            )
        return self[...] if isinstance(self.without_derivatives(), np.ndarray) else self

    def copy(self, order: str = "C") -> Any:
        return np.copy(self, order=order)

    def flatten(self, order: str = "C") -> Any:
        # Not a view, whatever the layout.
        return np.ravel(self, order=order).copy()  # type: ignore[arg-type]

    def dot(self, b: Any, out: Any = None) -> Any:
        return np.dot(self, b) if out is None else np.dot(self, b, out)

    def item(self, *index: Any) -> Any:
        if len(index) == 1 and not isinstance(index[0], tuple):
            return self.flat[index[0]]
        if index:
            return self[index if len(index) > 1 else index[0]]
        if self.size != 1:
            raise ValueError("can only convert an array of size 1 to a Python scalar")
        return self[(0,) * self.ndim] if isinstance(self.without_derivatives(), np.ndarray) else self

    def tolist(self) -> Any:
        return [row.tolist() for row in self] if self.ndim else self.item()

    def compress(self, condition: Any, axis: Any = None) -> Any:
        return np.compress(condition, self, axis=axis)

    def conjugate(self) -> Any:
        # The method gives what is real itself, where the function gives a copy.
        return np.conjugate(self) if self.dtype.kind == "c" else self

    def is_integer(self) -> bool:
        return bool(self.primal.is_integer())

    def __dir__(self) -> list[str]:
        return [name for name in dir(type(self)) if name not in _ELSEWHERE]

    # Changes in place.

    def fill(self, value: Any) -> None:
        if isinstance(value, list | tuple) or np.ndim(value):
            raise ValueError("setting an array element with a sequence.")
        self[...] = value

    def sort(self, axis: int = -1, kind: Any = None, order: Any = None, *, stable: bool | None = None) -> None:
        self[...] = np.sort(self, axis=axis, kind=kind, order=order, stable=stable)  # type: ignore[call-overload]

    def partition(self, kth: Any, axis: int = -1, kind: Any = "introselect", order: Any = None) -> None:
        self[...] = np.partition(self, kth, axis=axis, kind=kind, order=order)  # type: ignore[call-overload]

    def put(self, indices: Any, values: Any, mode: str = "raise") -> None:
        from retrograde.trace.creation import array_of  # which needs the class that this one is a base of

        indices = np.ravel(plainly(indices))
        if mode == "wrap":
            indices = indices % self.size
        elif mode == "clip":
            indices = np.clip(indices, 0, self.size - 1)
        values = array_of(values)
        # Not the array itself while it is written to.
        self.flat[indices] = np.copy(values) if np.ndim(values) else values

    def resize(self, *shape: Any, refcheck: bool = True) -> None:
        raise MutationError(
            "x.resize(...) would change the shape of a traced array in place", "x = np.resize(x, shape)"
        )

    def setflags(self, write: Any = None, align: Any = None, uic: Any = None) -> None:
        if align is not None:
            self.flags.aligned = align
        if uic is not None:
            self.flags.writebackifcopy = uic
        if write is not None:
            self.flags.writeable = write


def _method(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return function(self, *args, **kwargs)

    method.__name__ = name
    method.__doc__ = f"`np.{function.__name__}` of this value."
    return method


# Methods whose arguments are those of the NumPy function after its first.
for _name in (
    "all any argmax argmin argpartition argsort clip cumprod cumsum diagonal max mean min nonzero prod ravel repeat "
    "round searchsorted squeeze std sum swapaxes take trace var"
).split():
    setattr(Attributes, _name, _method(_name, getattr(np, _name)))
setattr(Attributes, "conj", Attributes.conjugate)
setattr(Attributes, "choose", _method("choose", np.choose))


class Flags:
    """`x.flags`: NumPy's own, to read; and whether the array may be written to, which can be set."""

    __slots__ = ("array",)

    array: Any

    def __init__(self, array: Any) -> None:
        object.__setattr__(self, "array", array)

    @property
    def writeable(self) -> bool:
        from retrograde.trace.memory import is_read_only  # which needs the class that `Attributes` is a base of

        return self.array.layout().writeable and not is_read_only(self.array)

    @writeable.setter
    def writeable(self, value: Any) -> None:
        from retrograde.trace.memory import set_read_only

        set_read_only(self.array, not value)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.array.layout(), name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "writeable":
            object.__setattr__(self, name, value)
        else:
            setattr(self.array.layout(), name, value)

    def __getitem__(self, name: str) -> Any:
        return self.writeable if name in _WRITEABLE else self.array.layout()[name]

    def __setitem__(self, name: str, value: Any) -> None:
        if name in _WRITEABLE:
            self.writeable = value
        else:
            self.array.layout()[name] = value

    def __eq__(self, other: object) -> bool:
        return self.array.layout() == (other.array.layout() if isinstance(other, Flags) else other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        layout = self.array.layout()
        if layout.writeable and not self.writeable:
            layout.writeable = False
        return repr(layout)


_WRITEABLE = ("WRITEABLE", "W")


class Flat:
    """`x.flat`: the elements of an array in one row, to read, to go through and to write to.

    Positions are turned into indices of the array, so that a single element costs what it costs by its own index.
    """

    __slots__ = ("base", "index")

    def __init__(self, base: Any) -> None:
        self.base = base
        self.index = 0  # of the element that `next` gives

    @property
    def coords(self) -> tuple[int, ...]:
        """The indices in the array of the element that `next` gives."""
        indices = np.unravel_index(self.index, self.base.shape) if self.index < len(self) and self.base.shape else ()
        return tuple(map(int, indices))

    def __len__(self) -> int:
        size: int = self.base.size
        return size

    def __iter__(self) -> Flat:
        return self

    def __next__(self) -> Any:
        if self.index >= len(self):
            raise StopIteration
        value = self.base[self.coords]
        self.index += 1
        return value

    def __getitem__(self, key: Any) -> Any:
        # A copy, as NumPy's: what an array of indices gives is never a view.
        self.index = 0
        return self.base[self._indices(key)]

    def __setitem__(self, key: Any, values: Any) -> None:
        indices = self._indices(key)
        # Where NumPy's iterator is afterwards: at the start, or at the last of many places.
        self.index = 0
        if isinstance(key, list | np.ndarray) and np.size(key) and np.asarray(key).dtype.kind in "iu" and indices:
            self.index = int(np.ravel_multi_index([np.ravel(i)[-1] for i in indices], self.base.shape))
        count = np.size(indices[0]) if indices else 1
        if isinstance(values, list | tuple) or np.ndim(values):
            from retrograde.trace.creation import array_of  # which needs the class that `Attributes` is a base of

            values = array_of(values)
            value = plainly(values)
            if isinstance(value, np.ndarray) and np.may_share_memory(value, plainly(self.base)):
                raise MutationError(
                    "x.flat[...] = values would write over values that it has not read yet: they share memory with x",
                    "x.flat[...] = np.copy(values)",
                )
            if not value.size:
                return
            del value
            # Values that are too few are repeated, as NumPy does it.
            values = np.reshape(np.resize(values, count), np.shape(indices[0]) if indices else ())
        self.base[indices] = values

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.ravel(self.base).__array__(dtype, copy)

    def copy(self) -> Any:
        """The elements, in an array of their own."""
        return self.base.flatten()

    def _indices(self, key: Any) -> tuple[Any, ...]:
        places: Any
        try:
            # No row of all positions for a single element.
            places = range(len(self))[key]
        except TypeError:
            places = np.arange(len(self))[key]
        except IndexError:
            raise IndexError(f"index {key} is out of bounds for size {len(self)}") from None
        # An empty range would be an array of floats.
        return np.unravel_index(np.asarray(places, np.intp), self.base.shape) if self.base.shape else ()


# What arrays (and numbers) have beyond this. It would hand out the memory itself, or a plain value; so only those have
# it that are plain in truth, and integers, which stay what they are.
_ELSEWHERE = {
    "__dlpack__": "data(x), the plain value, for a library that only reads",
    "__dlpack_device__": "data(x), the plain value, for a library that only reads",
    "byteswap": "data(x).byteswap()",
    "ctypes": "data(x).ctypes, for compiled code that only reads; primitive, to give that code a derivative rule",
    "data": "data(x), Retrograde's function: the plain value",
    "dump": "np.save(file, data(x))",
    "dumps": "pickle.dumps(data(x))",
    "getfield": "x.real and x.imag, or a slice of x",
    "setfield": "x.real = ..., x.imag = ..., or x[...] = ...",
    "to_device": "x as it is",
    "tobytes": "data(x).tobytes()",
    "tofile": "data(x).tofile(file)",
    "numerator": "data(x).numerator",
    "denominator": "data(x).denominator",
    "bit_length": "data(x).bit_length()",
    "bit_count": "data(x).bit_count()",
    "to_bytes": "data(x).to_bytes()",
}


def _missing(name: str, way: str) -> property:
    def missing(self: Any) -> Any:
        value = self.lent() if self.level.depth < 0 else self.without_derivatives()
        if value is self:  # of a batch
            value = self.example()
        held = getattr(value, name)  # Python's own error, where the value has no such attribute
        if self.is_free() or isinstance(value, int | np.integer):
            return held
        raise MissingAttributeError(f"{describe(self)} has no attribute {name!r}: that belongs to the plain value", way)

    return property(missing)


for _name, _way in _ELSEWHERE.items():
    setattr(Attributes, _name, _missing(_name, _way))
