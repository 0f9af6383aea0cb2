"""Buffer: an array that can be written to while derivatives are taken."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from retrograde.errors import FrozenBufferError, NotAnArrayError
from retrograde.trace.constant import constant_here, released
from retrograde.trace.creation import array_of
from retrograde.trace.handle import VIEWS, is_traced, plain
from retrograde.trace.writing import write


class Buffer:
    """A mutable array like `xs`, of `shape` if one is given, filled with zeros.

    Args:
        xs: an array, a list or a traced value; gives the dtype, and the shape where none is given.
        *shape: integers, or one tuple.

    Reading gives copies, with NumPy's indexing of every kind; so does writing, augmented assignment included. `copy()`
    ends the writing and returns the array without copying it. A Buffer is no array: arithmetic with it is a TypeError,
    so that nothing can hold on to contents that still change. A loop of n reads and writes costs O(n).

    Raises:
        FrozenBufferError: a write after `copy()`.
        MutationError: a traced float written into integers.

    >>> def cubes(x):
    ...     b = Buffer(x, 3)
    ...     b[0] = x[0]
    ...     for i in range(1, 3):
    ...         b[i] = b[i - 1] * x[0]
    ...     return b.copy()
    >>> jacobian(cubes, np.array([2.0]))
    array([[ 1.],
           [ 4.],
           [12.]])
    """

    __slots__ = ("_frozen", "_has_room", "_length", "_whole")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, xs: Any, *shape: Any) -> None:
        like = array_of(xs)
        like = like if is_traced(like) else np.asarray(like)
        given = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple | list) else shape or like.shape
        sizes = tuple(operator.index(n) for n in given)
        # The contents may be longer than the Buffer, so that n appended rows cost O(n).
        self._whole = constant_here(np.zeros(sizes, like.dtype))
        self._length = sizes[0] if sizes else 0
        self._has_room = False
        self._frozen = False

    # --- contents

    @property
    def shape(self) -> tuple[int, ...]:
        shape: tuple[int, ...] = self._whole.shape
        return (self._length, *shape[1:]) if shape else ()

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._whole.dtype  # type: ignore[no-any-return]

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a 0-d Buffer")
        return self._length

    def __getitem__(self, key: Any) -> Any:
        value = self._contents()[key]
        return np.copy(value) if type(value) in VIEWS else value

    def __setitem__(self, key: Any, value: Any) -> None:
        if self._frozen:
            self._refuse_write()
        contents = self._contents()
        write(self._whole, contents.path if type(contents) in VIEWS else (), key, self._value(value))

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def append(self, value: Any) -> None:
        """Add one element (or row) at the end of the first axis. The first row of an empty Buffer gives the shape."""
        self.extend([value])

    def extend(self, values: Iterable[Any]) -> None:
        """Add elements (or rows) at the end of the first axis."""
        if self._frozen:
            self._refuse_write()
        for item in values:
            value = self._value(item)
            row = np.shape(plain(value))
            if self.shape == (0,) and row:
                self._whole = constant_here(np.zeros((0, *row), self.dtype))
            if not self.shape or row != self.shape[1:]:
                raise ValueError(f"a value of shape {row} cannot be appended to a Buffer of shape {self.shape}")
            self._make_room()
            write(self._whole, (), self._length, value)
            self._length += 1
            self._has_room = self._length < self._whole.shape[0]

    def copy(self) -> Any:
        """The contents as an array (traced, if traced values were written). The Buffer is frozen then."""
        self._frozen = True
        contents = self._contents()
        if type(contents) in VIEWS:
            return np.copy(contents)
        return released(contents.reading())

    def __copy__(self) -> Any:
        return self.copy()

    def __repr__(self) -> str:
        state = "frozen, " if self._frozen else ""
        return f"Buffer({state}{plain(self._contents())!r})"

    def _contents(self) -> Any:
        return self._whole[: self._length] if self._has_room else self._whole

    def _make_room(self) -> None:
        if self._length < self._whole.shape[0]:
            return
        longer = constant_here(np.zeros((2 * self._length + 4, *self._whole.shape[1:]), self.dtype))
        if self._length:
            write(longer, (), slice(0, self._length), self._whole)
        self._whole = longer

    def _refuse_write(self) -> None:
        raise FrozenBufferError(
            "this Buffer was copied before; its contents are an array now and cannot be written to",
            "write everything first, then copy",
            "a new Buffer: b = Buffer(array); b[:] = array",
        )

    def _value(self, value: Any) -> Any:
        if type(value) is list or type(value) is tuple:
            return array_of(value)
        return value[...] if type(value) is Buffer else value

    # --- everything that would take it for an array

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise NotAnArrayError(
            "a Buffer is not an array: NumPy functions and operators do not take it",
            "b.copy(), the array (the Buffer is frozen then)",
            "b[:], a copy of what it holds now",
        )

    __array__ = __array_ufunc__ = __array_function__ = __float__ = __int__ = __bool__ = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refuse
    __matmul__ = __rmatmul__ = __pow__ = __rpow__ = __mod__ = __rmod__ = __floordiv__ = __rfloordiv__ = _refuse
    __neg__ = __pos__ = __abs__ = __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __iadd__ = __isub__ = __imul__ = __itruediv__ = __ipow__ = __imatmul__ = _refuse
