"""Writing into traced arrays: `x[key] = value`, through views too.

A write changes the buffer and gives the handle a new node, so that the graph knows the array as a chain of versions, of
which only the newest exists in memory. Nodes hold nodes, never handles; so what was computed of an earlier version
keeps it. The buffer is copied only if somebody else holds it: a residual, another handle, the caller. Who holds it is
asked of the reference count, so that operations which never write pay nothing.

One function serves every mode and every depth: the primal of a handle may be a handle of a lower level, and in forward
mode the tangent is written in the same way.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from numpy import float64, ndarray

from retrograde.errors import MutationError
from retrograde.originals import np
from retrograde.rules.numpy_indexing import add_at, may_repeat, scatter
from retrograde.trace.constant import CONSTANT, constant, released
from retrograde.trace.handle import (
    FLOAT64,
    HANDLES,
    MAPPED,
    Traced,
    contents,
    is_traced,
    like_of,
    plain,
    shape_of,
)
from retrograde.trace.keys import fixed_key
from retrograde.trace.level import CONTEXT, Node, set_aside, some_are_asked
from retrograde.trace.memory import check_not_lent, is_exclusive, owned, part_from_others
from retrograde.trace.ops import LEAF, Op, deposit, fit, no_push
from retrograde.trace.places import places_of

# A path leads from an array to a view of it, step by step: `np.transpose`, then `operator.itemgetter(0)`.
Step = Callable[[Any], Any]
Path = tuple[Step, ...]

# The link of contents that no path leads to. No node has the number 0, so what is added there is thrown away.
NOWHERE: Node = (0, LEAF, None)


def follow(x: Any, path: Path) -> Any:
    """The view of `x` at the end of a path."""
    for step in path:
        x = step(x)
    return x


def write(x: Traced, path: Path, key: Any, value: Any) -> None:
    """`follow(x, path)[key] = value`, for a handle `x` that is no view itself.

    Raises:
        MutationError: NumPy would cut the value (a float for integers) and its derivative would be lost; or the write
            stands where it cannot be recorded.
    """
    if type(x) is not Traced and type(x) not in MAPPED:
        raise MutationError(
            "a write through a view of a parameter would make it a computed value",
            "with ignore(): W[...] = ..., which changes the parameter itself",
            "y = np.copy(W), and write into that",
        )
    value = released(value)
    key = fixed_key(key)
    if some_are_asked():
        _check_recordable(x.level)
        value = _as_set_aside(value)
    traced = is_traced(value)
    if traced:
        if type(value.primal) is not float64 or type(x.primal) is not ndarray or x.primal.dtype is not FLOAT64:
            _check_castable(value, x)
        if value.level.depth > x.level.depth:
            _raise_to(x, value.level)
    level = x.level
    here = traced and value.level is level
    number = level.number()
    if level.maps:
        _write_primal(x, *level.place(x, path, key, value))
        return
    node: Node = ()
    if level.records:
        if here:
            node = (number, SET, x.link, value.link, path, key, *like_of(value.primal))
        else:
            node = (number, OVERWRITE, x.link, path, key)
    _write_primal(x, path, key, value.primal if here else value)
    if level is CONSTANT:
        return
    if level.records:
        level.append(node)
        x.link = node
    else:
        level.write_link(x, path, key, value)


def write_array(x: Traced, path: Path, key: Any, value: Any) -> None:
    """`follow(x.link, path)[key] = value`, for levels whose links are arrays of the shapes of their values."""
    link = x.link.reading() if is_traced(x.link) else constant(np.asarray(x.link))
    x.link = None
    try:
        write(link, path, key, value)
    finally:
        x.link = released(link)


def _write_primal(x: Traced, path: Path, key: Any, value: Any) -> None:
    lower = x.primal
    if is_traced(lower):
        # Residuals may hold that handle, and must not see the write.
        x.primal = lower = lower.reading()
        write(lower, path, key, value)
    elif is_traced(value):
        x.primal = None
        lower = constant(lower)
        try:
            write(lower, path, key, value)
        finally:
            x.primal = released(lower)
    else:
        if type(lower) is not ndarray:
            # The sum of a sweep over an array without axes is a number.
            x.primal = np.array(lower)
        del lower
        if not is_exclusive(x):
            part_from_others(x)
        if path:
            write_part(x.primal, path, key, value)
        else:
            x.primal[key] = value


def write_part(whole: np.ndarray[Any, Any], path: Path, key: Any, value: Any) -> None:
    part = follow(whole, path)
    if part is whole or np.may_share_memory(part, whole):
        part[key] = value
    else:
        # A tangent may lie in memory in another order than its primal, of which the path gives a view.
        path, key = _places(whole, path, key)
        follow(whole, path)[key] = value


def _places(whole: np.ndarray[Any, Any], path: Path, key: Any) -> tuple[Path, Any]:
    """The place of `follow(whole, path)[key]` by a path and a key that give a view, where this path may give none.

    The path then leads to the real or the imaginary part, at most; the key has an index for each axis.
    """
    numbers = np.arange(whole.size).reshape(whole.shape)
    short: Path = ()
    if whole.dtype.kind != "c":
        found = follow(numbers, path)
    else:
        # Even numbers for real parts, odd ones for imaginary parts.
        found = follow(2 * numbers + 1j * (2 * numbers + 1), path)
        if found.dtype.kind != "c":
            short = (np.imag if found.size and found.flat[0] % 2 else np.real,)
        found = (found.real // 2).astype(int)
    if not whole.ndim:
        return (*short, operator.itemgetter(None)), (found[key],)
    return short, np.unravel_index(found[key], whole.shape)


def _raise_to(x: Traced, level: Any) -> None:
    """Make `x` a variable of a deeper level, in place. To that level its contents are constants so far."""
    if x.level is CONSTANT:
        check_not_lent(x)
    if level.maps:
        level.spread_in_place(x)
        return
    x.primal = x.primal if x.level is CONSTANT else x.reading()
    x.level = level
    x.link = NOWHERE if level.records else level.still(x.primal)


def _check_castable(value: Traced, x: Traced) -> None:
    have, want = value.dtype, plain(x).dtype
    if not np.can_cast(have, want, "same_kind"):
        raise MutationError(
            f"a traced {have} cannot be written into an array of {want}: it would be cut, and its derivative lost",
            f"an array of dtype {have}, e.g. x.astype({have})",
        )


def _as_set_aside(value: Any) -> Any:
    """A value as an operation gives it while its level does not record: plain inside `ignore()`, for example."""
    while is_traced(value):
        aside = set_aside(value.level, (value.link,))
        if aside is None:
            return value
        held = aside(value.primal)
        if is_traced(held) and held is not value.primal:
            return held
        value = held
    return value


def _check_recordable(level: Any) -> None:
    if any(suspension.level is level for suspension in CONTEXT.get().suspended):
        raise MutationError(
            "checkpointed(f, ...) and forwarddiff(f, ...) run f more than once; f wrote into an array from outside",
            "write into a copy: x = np.copy(x)",
            "return the new values instead",
        )


# --- cotangents that a sweep owns --------------------------------------------------------------------------------


class Accumulator:
    """A cotangent that a sweep owns and adds into in place.

    Made at the first indexed read of an array, so that n reads of single elements cost O(n) and not n whole arrays.
    Rules never see one: an op that can use it says so (`Op.owns`); all others get its `value`.
    """

    __slots__ = ("contents",)

    def __init__(self, contents: Any) -> None:
        # A plain array, or a handle that is traced by an outer transform.
        self.contents = contents

    @staticmethod
    def at(cotangents: Any, index: int, shape: tuple[int, ...], dtype: Any) -> Accumulator:
        """The accumulator at `cotangents[index]`, made of what stands there."""
        held = cotangents[index]
        if type(held) is not Accumulator:
            held = Accumulator(np.zeros(shape, dtype)) if held is None else Accumulator.of(held)
            cotangents[index] = held
        return held

    @staticmethod
    def of(y_bar: Any) -> Accumulator:
        """An accumulator with the contents of a cotangent, which others may hold."""
        if type(y_bar) is Accumulator:
            return y_bar
        return Accumulator(y_bar.reading() if is_traced(y_bar) else np.array(y_bar, order="C"))

    @property
    def value(self) -> Any:
        return self.contents

    def add(self, path: Path, key: Any, y_bar: Any) -> None:
        """Add at `follow(..., path)[key]`; an element that is named twice gets both."""
        contents = self.contents
        if not is_traced(contents) and not is_traced(y_bar):
            if type(key) is int and not path:
                contents[key] += y_bar
                return
            part = follow(contents, path)
            if path and not _is_window(part, contents):
                path, key = _places(contents, path, key)
                part = follow(contents, path)
            if may_repeat(key):
                add_at(part, key, y_bar)
            else:
                _add_into(part, key, y_bar)
            return
        path, key = self._window(path, key)
        if may_repeat(key):
            places = places_of(key, np.shape(follow(contents, path)))
            first, number = places.once()
            key = places.key(first)
            shape = np.shape(follow(contents, path)[key])
            y_bar = scatter(places.drawn_out(y_bar), (*(slice(None),) * places.axis, number), shape)
        self._write(path, key, follow(contents, path)[key] + y_bar)

    def take(self, path: Path, key: Any) -> Any:
        """The elements at `follow(..., path)[key]`, which are zero afterwards."""
        contents = self.contents
        if type(key) is int and not path and type(contents) is ndarray and contents.ndim == 1:
            taken = contents[key]
            contents[key] = 0.0
            return taken
        if is_traced(contents):
            path, key = self._window(path, key)
            taken = follow(contents, path)[key]
            taken = owned(taken)
            self._write(path, key, 0.0)
            return taken
        part = follow(contents, path)
        if path and not _is_window(part, contents):
            path, key = _places(contents, path, key)
            part = follow(contents, path)
        taken = part[key]
        if type(taken) is ndarray:
            taken = taken.copy()
        part[key] = 0
        return taken

    def _window(self, path: Path, key: Any) -> tuple[Path, Any]:
        """The same place of traced contents, reached so that it can be written to."""
        value = plain(self.contents)
        if not path or _is_window(follow(value, path), value):
            return path, key
        return _places(value, path, key)

    def _write(self, path: Path, key: Any, value: Any) -> None:
        handle = self.contents if is_traced(self.contents) else constant(self.contents)
        self.contents = None
        write(handle, path, key, value)
        self.contents = released(handle)

    def __add__(self, x_bar: Any) -> Accumulator:
        if type(x_bar) is Accumulator:
            x_bar = x_bar.contents
        if not is_traced(self.contents) and not is_traced(x_bar):
            self.contents += x_bar
            return self
        return Accumulator((self.contents + x_bar).reading())


def _is_window(part: Any, whole: np.ndarray[Any, Any]) -> bool:
    """Whether a change of `part` changes `whole`: it is a view, and not of one element in many places."""
    if type(part) in MAPPED:
        part, whole = contents(part), contents(whole)
    return type(part) is ndarray and part.flags.writeable and np.may_share_memory(part, whole)


def _add_into(x: np.ndarray[Any, Any], key: Any, value: Any) -> None:
    """`x[key] += value`, without the copy of the part onto itself that Python's statement ends with."""
    part = x[key]
    # Not every result with a base is a view of x: NumPy transposes what it gathers.
    if type(part) is ndarray and np.may_share_memory(part, x):
        np.add(part, value, out=part)
    else:
        x[key] += value


# --- ops ---------------------------------------------------------------------------------------------------------


def _read_pull(cotangents: Any, node: Node, y_bar: Any) -> None:
    _, _, link, path, key, shape, dtype = node
    if cotangents[link[0]] is None and not path and type(y_bar) is ndarray and y_bar.dtype == dtype:
        cotangents[link[0]] = Accumulator(scatter(y_bar, key, shape))
        return
    Accumulator.at(cotangents, link[0], shape, dtype).add(path, key, y_bar)


def _read_subtract(cotangents: Any, node: Node, y_bar: Any) -> None:
    _, _, link, path, key, shape, dtype = node
    mine = Accumulator.at(cotangents, link[0], shape, dtype)
    part = mine.contents[key] if not path and type(mine.contents) is ndarray and not may_repeat(key) else None
    if type(part) is ndarray and np.may_share_memory(part, mine.contents):
        np.subtract(part, y_bar, out=part)
    else:
        mine.add(path, key, -y_bar)


def _read_push(node: Node, y: Any) -> Any:
    return follow(node[2], node[3])[node[4]]


def _read_one_pull(cotangents: Any, node: Node, y_bar: Any) -> None:
    _, _, link, key, shape = node
    held = cotangents[link[0]]
    if type(held) is Accumulator and type(held.contents) is ndarray and type(y_bar) not in HANDLES:
        held.contents[key] += y_bar
    else:
        Accumulator.at(cotangents, link[0], shape, FLOAT64).add((), key, y_bar)


def _read_one_push(node: Node, y: Any) -> Any:
    return node[2][node[3]]


def _set_pull(cotangents: Any, node: Node, y_bar: Any) -> None:
    _, _, before, written, path, key, shape, dtype = node
    mine = Accumulator.of(y_bar)
    value_bar = mine.take(path, key)
    if may_repeat(key):
        # Of values that were written to one place the last stayed.
        is_last = places_of(key, np.shape(follow(mine.contents, path))).is_last(np.ndim(value_bar))
        value_bar = value_bar if is_last is None else value_bar * is_last
    if shape or type(value_bar) is not float64:
        # NumPy lets a value have axes of length 1 in front that the place does not have.
        shorter = shape[max(0, len(shape) - len(shape_of(value_bar))) :]
        value_bar = fit(value_bar, (shorter, dtype))
        value_bar = value_bar if shorter == shape else np.reshape(value_bar, shape)
    deposit(cotangents, written[0], value_bar)
    _pass_on(cotangents, before, mine)


def _overwrite_pull(cotangents: Any, node: Node, y_bar: Any) -> None:
    _, _, before, path, key = node
    mine = Accumulator.of(y_bar)
    mine.take(path, key)
    _pass_on(cotangents, before, mine)


def _pass_on(cotangents: Any, before: Node, mine: Accumulator) -> None:
    if before is not NOWHERE:
        held = cotangents[before[0]]
        cotangents[before[0]] = mine if held is None else mine + held


READ = Op("read", 1, _read_pull, _read_push, subtract=_read_subtract)
"""`follow(x, path)[key]`: `(number, op, link, path, key, shape, dtype)`, those of the cotangent of x."""
READ_ONE = Op("read", 1, _read_one_pull, _read_one_push)
"""`x[i]` of a float64 vector: `(number, op, link, i, shape)`."""
SET = Op("set", 2, _set_pull, no_push, owns=True)
"""`follow(x, path)[key] = value`: `(number, op, link before, link of value, path, key, shape, dtype)`, the value's."""
OVERWRITE = Op("overwrite", 1, _overwrite_pull, no_push, owns=True)
"""The same with a constant value: `(number, op, link before, path, key)`."""
