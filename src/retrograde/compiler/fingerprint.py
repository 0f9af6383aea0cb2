"""What compiled code of a function depends on, as one key: the code of all functions that it reaches, and all values.

A name that a function reads is looked up as Python would: in its closure, its globals, and in modules that it reads.
More names may be found than it needs; that costs a compilation after a change, and never a wrong result. Where a value
has no key of its own (an object that can change, or of a class that is not known here) the function has none either.
"""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import sys
import types
from collections.abc import Iterator
from typing import Any

import numpy as np

from retrograde.compiler.source import python_function
from retrograde.trace.running import Ruled


class NoKeyError(Exception):
    """Something has no key."""


class Fingerprint:
    """The key of a function.

    Attributes:
        key: a digest, or None where there is none.
        functions: the Python functions that were found on the way.
    """

    def __init__(self, function: types.FunctionType) -> None:
        self.functions: dict[types.FunctionType, int] = {}
        self._hash = hashlib.sha256(environment().encode())
        self.key: str | None
        try:
            self._function(function)
            self.key = self._hash.hexdigest()
        except NoKeyError:
            self.key = None

    def is_as_it_was(self, function: types.FunctionType) -> bool:
        """Whether the key of the function is still the same."""
        return self.key is not None and Fingerprint(function).key == self.key

    def _add(self, *parts: Any) -> None:
        self._hash.update(repr(parts).encode())

    def _function(self, function: types.FunctionType) -> None:
        if function in self.functions:
            self._add("again", self.functions[function])
            return
        self.functions[function] = len(self.functions)
        code = function.__code__
        self._add("function", function.__qualname__, os.path.basename(code.co_filename))
        self._code(code)
        self._value(function.__defaults__)
        for name, value in (function.__kwdefaults__ or {}).items():
            self._add(name)
            self._value(value)
        cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
        names = set(_names(code))
        for name in sorted(names | set(cells)):
            self._add(name)
            if name in cells:
                try:
                    self._value(cells[name].cell_contents, names)
                except ValueError:  # not bound yet
                    self._add("unbound")
            elif name in function.__globals__:
                self._value(function.__globals__[name], names)

    def _code(self, code: types.CodeType) -> None:
        self._add(code.co_code, code.co_names, code.co_varnames, code.co_linetable, code.co_firstlineno)
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                self._code(constant)
            else:
                self._add(type(constant).__name__, constant)

    def _value(self, value: Any, names: set[str] = frozenset()) -> None:  # type: ignore[assignment]
        """Add a value; of a module those attributes that have one of the names."""
        kind = type(value)
        if value is None or kind in (int, float, complex, bool, str, bytes):
            self._add(kind.__name__, value)
        elif isinstance(value, tuple):
            self._add("tuple", kind.__qualname__, len(value))
            for item in value:
                self._value(item)
        elif isinstance(value, np.ndarray):
            self._array(value)
        elif isinstance(value, np.generic):
            self._add(value.dtype.str, value.tobytes())
        elif isinstance(value, types.ModuleType):
            self._module(value, names)
        elif isinstance(value, np.dtype):
            self._add("dtype", value.str, str(value.fields))
        elif isinstance(value, types.BuiltinFunctionType):
            self._add(value.__module__, value.__qualname__)
        elif isinstance(value, type) and issubclass(value, tuple) and hasattr(value, "_fields"):
            self._add("named tuple", value.__module__, value.__qualname__, value._fields)
            self._value(tuple(value._field_defaults.items()))  # type: ignore[attr-defined]
        elif isinstance(value, Ruled):
            self._add("primitive")
            for formula in value._own_rule()[1:]:
                self._value(formula)
        elif (inner := python_function(value)) is not None:
            self._add(kind.__qualname__, str(getattr(value, "targetoptions", "")))
            self._function(inner)
        elif _is_of_a_package(value):
            self._add("known", getattr(value, "__module__", ""), value.__name__)
        else:
            raise NoKeyError

    def _array(self, array: np.ndarray) -> None:
        if array.dtype.hasobject:
            raise NoKeyError
        self._add("array", array.dtype.str, array.shape, array.flags.c_contiguous, array.flags.f_contiguous)
        self._hash.update(np.ascontiguousarray(array).tobytes())

    def _module(self, module: types.ModuleType, names: set[str]) -> None:
        self._add("module", module.__name__)
        if is_known(module):
            return
        for attribute in sorted(names):
            if attribute in vars(module):
                self._add(attribute)
                self._value(vars(module)[attribute], names)


# Packages whose functions are known by their names, and their versions.
_KNOWN = frozenset({"numpy", "scipy", "numba", "retrograde", *sys.stdlib_module_names})


def _is_of_a_package(value: Any) -> bool:
    """Whether a function or class is known by its name."""
    module, name = getattr(value, "__module__", None), getattr(value, "__name__", None)
    if isinstance(value, np.ufunc):
        return any(getattr(sys.modules.get(m), value.__name__, None) is value for m in ("numpy", "scipy.special"))
    if not isinstance(module, str) or not isinstance(name, str) or module.partition(".")[0] not in _KNOWN:
        return False
    return getattr(sys.modules.get(module), name, None) is value


def is_known(value: Any) -> bool:
    """Whether a module, function or class is known by its name."""
    if isinstance(value, types.ModuleType):
        return value.__name__.partition(".")[0] in _KNOWN
    return _is_of_a_package(value)


def _names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


@functools.cache
def environment() -> str:
    """Versions, and the state of the compiler's own files and of the rules."""
    parts: list[Any] = [sys.version, platform.machine()]
    for package in ("numpy", "numba", "llvmlite", "scipy"):  # what has not been imported has no part in it
        parts.append(getattr(sys.modules.get(package), "__version__", None))
    compiler = os.path.dirname(os.path.abspath(__file__))
    for folder in (compiler, os.path.join(os.path.dirname(compiler), "rules")):
        for path, folders, files in os.walk(folder):
            folders[:] = sorted(f for f in folders if not f.startswith("_"))
            for file in sorted(f for f in files if f.endswith(".py")):
                state = os.stat(os.path.join(path, file))
                parts.append((file, state.st_size, state.st_mtime_ns))
    return repr(parts)
