"""Python functions that call themselves, made ready for numba, and those that it would not read again.

numba follows a call of a Python function that calls itself only if it finds a jitted one under that name. And it keeps
what it has once compiled of a function that it was taught, with the values that this read from outside. So such
functions, and those that lead to them, are copied, with jitted functions in place of the names.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Collection, Iterator
from typing import Any

MOST_FUNCTIONS = 500


def jitted(function: types.FunctionType, jit: Callable[[Any], Any], old: Collection[types.FunctionType] = ()) -> Any:
    """`jit(function)`, or that of its copy if it leads to functions that call themselves.

    Args:
        old: functions of which numba may know code that is not good any more.
    """
    leading = _leading_to(function, old)
    made: dict[types.FunctionType, Any] = {}
    scopes: dict[types.FunctionType, tuple[dict[str, Any], tuple[types.CellType, ...]]] = {}
    for f in leading:
        scopes[f] = dict(f.__globals__), tuple(types.CellType() for _ in f.__closure__ or ())
        copy = types.FunctionType(f.__code__, scopes[f][0], f.__name__, f.__defaults__, scopes[f][1])
        copy.__kwdefaults__, copy.__qualname__, copy.__module__ = f.__kwdefaults__, f.__qualname__, f.__module__
        made[f] = jit(copy)
    for f, (names, cells) in scopes.items():
        names |= {name: made[g] for name, g in _called_globally(f) if g in made}
        for own, cell in zip(f.__closure__ or (), cells, strict=True):
            content = _content(own)
            cell.cell_contents = made.get(content, content) if isinstance(content, types.FunctionType) else content
    return made[function] if function in made else jit(function)


def _leading_to(function: types.FunctionType, old: Collection[types.FunctionType]) -> list[types.FunctionType]:
    """Of the functions that a function reaches those from which calls lead in a circle, or to old ones."""
    calls: dict[types.FunctionType, list[types.FunctionType]] = {}
    todo = [function]
    while todo and len(calls) < MOST_FUNCTIONS:
        f = todo.pop()
        if f not in calls:
            calls[f] = [g for _, g in _called(f)]
            todo += calls[f]
    leading = [f for f in calls if f in old or f in _reached(calls, f)]
    return [f for f in calls if f in leading or any(g in leading for g in _reached(calls, f))]


def _reached(calls: dict[types.FunctionType, list[types.FunctionType]], start: types.FunctionType) -> set[Any]:
    found: set[Any] = set()
    todo = list(calls[start])
    while todo:
        f = todo.pop()
        if f not in found:
            found.add(f)
            todo += calls.get(f, ())
    return found


def _called(f: types.FunctionType) -> Iterator[tuple[str, types.FunctionType]]:
    """The Python functions that the code of a function names."""
    yield from _called_globally(f)
    for name, cell in zip(f.__code__.co_freevars, f.__closure__ or (), strict=True):
        if isinstance(content := _content(cell), types.FunctionType):
            yield name, content


def _called_globally(f: types.FunctionType) -> Iterator[tuple[str, types.FunctionType]]:
    for name in f.__code__.co_names:
        if isinstance(found := f.__globals__.get(name), types.FunctionType):
            yield name, found


def _content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # nothing is bound to the name yet
        return None
