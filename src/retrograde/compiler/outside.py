"""What a function reads from outside, a global or a name that it closes over, as it was when it was compiled first.

numba reads such values when it compiles the function, and keeps them; derivatives are compiled later, each when it is
first asked for. All of them must belong to the same values. So these are noted, and compared with what is there
whenever something else is compiled. Arrays that numba copies are copied here as well (`frozen`). Those that it reads
where they are, as they are large or have gaps, are read there by derivatives, too: nothing of them is old.
"""

from __future__ import annotations

import dis
import hashlib
import types
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from retrograde.compiler.fingerprint import is_known
from retrograde.compiler.source import python_function
from retrograde.errors import InputError
from retrograde.trace.interception import originals

Place = tuple[str, ...]
"""The names that lead to a value, from the function on."""

_MOST_BYTES_COPIED = 10**6  # by numba


class Live(NamedTuple):
    """An array that is read where it is."""

    place: Place


def is_live(array: np.ndarray) -> bool:
    """Whether numba reads an array from outside where it is."""
    return array.nbytes > _MOST_BYTES_COPIED or not (array.flags.c_contiguous or array.flags.f_contiguous)


def frozen(array: np.ndarray) -> np.ndarray:
    """An array from outside as compiled code reads it."""
    return array if is_live(array) else np.array(array)


class Outside:
    """What a function reads from outside.

    Attributes:
        functions: the function and all Python functions that it reaches.
        live: the arrays that are read where they are.
    """

    def __init__(self, function: types.FunctionType) -> None:
        self.function = function
        with originals():
            seen = _Reading(function)
        self._marks, self.live, self.functions = seen.marks, seen.live, seen.functions

    def check(self) -> None:
        """Before something is compiled that reads it.

        Raises:
            InputError: it is not what it was.
        """
        with originals():
            marks = _Reading(self.function).marks
        for place, mark in self._marks.items():
            now = marks.get(place)
            if mark != now:
                *_, reader, name = place
                changed = "has changed"
                if isinstance(mark, _Plain) and isinstance(now, _Plain):
                    changed = f"was {mark.text} and is {now.text}"
                raise InputError(
                    f"{name}, which {reader} reads from outside, {changed} since {self.function.__name__} was compiled "
                    "first; its value and its derivatives would not belong together",
                    "an argument in its place",
                    "compile the function anew after the change: compile(f) gives another one",
                )
        self._marks |= marks

    def names_of(self, arrays: tuple[Any, ...]) -> tuple[Any, ...]:
        """Arrays from outside as they are kept on disk: of those that are read where they are the places."""
        places = {id(array): place for place, array in self.live.items()}
        return tuple(Live(places[id(a)]) if id(a) in places else a for a in arrays)

    def arrays_of(self, names: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arrays of which `names_of` has made that."""
        return tuple(self.live[a.place] if isinstance(a, Live) else a for a in names)


def read_by(function: types.FunctionType) -> Any:
    """What a function itself reads from outside just now, to be compared."""
    with originals():
        return _Reading(function, is_deep=False).marks


class _Plain(NamedTuple):
    """A number, text or None; NaN is equal to itself here, and 0.0 is not -0.0."""

    kind: type
    text: str


class _Same:
    """An object of which it only matters whether it is the same one."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.value is self.value

    __hash__ = None  # type: ignore[assignment]


class _Reading:
    """What a function reads from outside just now, and (`is_deep`) what all that it calls reads."""

    def __init__(self, function: types.FunctionType, is_deep: bool = True) -> None:
        self.is_deep = is_deep
        self.marks: dict[Place, Any] = {}
        self.live: dict[Place, np.ndarray] = {}
        self.functions: set[types.FunctionType] = set()
        self._function(function, (function.__name__,))

    def _function(self, function: types.FunctionType, place: Place) -> None:
        if function in self.functions:
            return
        self.functions.add(function)
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        for first, *attributes in sorted(set(_names_read(function.__code__, frozenset(cells)))):
            try:
                value = cells[first].cell_contents if first in cells else function.__globals__[first]
            except (KeyError, ValueError):  # a builtin; or not bound yet
                continue
            name = first
            for attribute in attributes:
                if not isinstance(value, types.ModuleType | type) or is_known(value):
                    break
                name, value = f"{name}.{attribute}", getattr(value, attribute, None)
            if not is_known(value):
                self.marks[*place, name] = self._mark(value, (*place, name))

    def _mark(self, value: Any, place: Place) -> Any:
        kind = type(value)
        if value is None or kind in (bool, int, float, complex, str, bytes):
            return _Plain(kind, repr(value))
        if isinstance(value, np.generic):
            return value.dtype.str, value.tobytes()
        if isinstance(value, tuple):
            return kind, tuple([self._mark(item, (*place, str(i))) for i, item in enumerate(value)])
        if isinstance(value, np.ndarray) and not value.dtype.hasobject:
            if is_live(value):
                self.live[place] = value
                return _Same(value)
            order = "C" if value.flags.c_contiguous else "F"
            return value.dtype.str, value.shape, hashlib.sha256(value.tobytes(order)).digest()
        inner = python_function(value)
        if inner is None:
            return _Same(value)
        if self.is_deep:
            self._function(inner, place)
        return _Same(type(value)), inner.__code__


def _names_read(code: types.CodeType, free: frozenset[str]) -> Iterator[Place]:
    """The names from outside that code reads, with the attributes that it reads of them at once."""
    found: list[str] = []
    for instruction in dis.get_instructions(code):
        name, operation = instruction.argval, instruction.opname
        if found and operation in ("LOAD_ATTR", "LOAD_METHOD"):
            found.append(name)
            continue
        if found:
            yield tuple(found)
        is_global = operation == "LOAD_GLOBAL"
        found = [name] if is_global or (operation.startswith("LOAD_") and name in free) else []
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names_read(constant, free)


__all__ = ["Live", "Outside", "frozen", "read_by"]
