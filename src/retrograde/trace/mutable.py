"""Arrays that one part of the library owns and writes to in place, traced or not.

Two things need them: what the user builds element by element (`Buffer`), and the cotangent of an array that is read
element by element. They are each other's derivative, so they stand together.

A write costs O(1) and makes a SET node: the graph knows the array as a chain of versions, of which only the newest
exists in memory. What is read is copied, so no residual sees a later write. In forward mode the tangent is a second
mutable array. Where an outer transform traces the contents too, they are a mutable array of *that* level: the same
code at every depth, and O(1) at every order of differentiation.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograde.errors import MutationError
from retrograde.rules.numpy_indexing import scatter
from retrograde.trace.handle import HANDLES, Traced, is_traced, like_of, make, plain, shape_of
from retrograde.trace.keys import fixed_key, is_basic
from retrograde.trace.level import Level, Node
from retrograde.trace.ops import LEAF, Op, fit

# The link of contents that no path leads to. No node has the number 0, so what is added there is thrown away.
NOWHERE: Node = (0, LEAF, None)


class Mutable:
    """A plain array that is written to and may grow.

    Attributes:
        array: the contents, a view of a buffer that may be longer along the first axis.
    """

    __slots__ = ("array", "buffer")

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = self.buffer = array

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    def read(self, key: Any) -> Any:
        """A copy of the elements at `key`."""
        value = self.array[key]
        return value.copy() if isinstance(value, np.ndarray) else value

    def grow(self, count: int) -> None:
        """Add `count` zeros at the end of the first axis; n of them cost O(n) in all."""
        length = len(self.array)
        if length + count > len(self.buffer):
            self.buffer = np.zeros((2 * (length + count), *self.shape[1:]), self.array.dtype)
            self.buffer[:length] = self.array
        self.array = self.buffer[: length + count]
        self.array[length:] = 0

    def value(self) -> Any:
        """The contents, not copied: whoever takes them must not write any more."""
        return self.array


class TracedMutable:
    """A mutable array whose contents are traced at one level.

    Attributes:
        primal: the contents below that level, a mutable array.
        link: in reverse mode the node of the last write, in forward mode the tangent, a mutable array.
        level: the level.
    """

    __slots__ = ("level", "link", "primal")

    def __init__(self, primal: Any, link: Any, level: Level) -> None:
        self.primal = primal
        self.link = link
        self.level = level

    @property
    def shape(self) -> tuple[int, ...]:
        return self.primal.shape  # type: ignore[no-any-return]

    def read(self, key: Any) -> Any:
        level, value = self.level, self.primal.read(key)
        if not level.records:
            return make(value, self.link.read(key), level)
        return level.follow(value, (level.number(), READ, self.link, key, *like_of(self.primal.value())))

    def grow(self, count: int) -> None:
        length = self.shape[0]
        self.primal.grow(count)
        if self.level.records:
            self._record((self.level.number(), _GROW, self.link, length))
        else:
            self.link.grow(count)

    def value(self) -> Any:
        return make(self.primal.value(), self.link if self.level.records else self.link.value(), self.level)

    def _record(self, node: Node) -> None:
        recorded = self.level.follow(None, node)
        if is_traced(recorded):
            self.link = recorded.link


def mutable_copy(x: Any) -> Any:
    """A mutable array with the contents of a plain or traced one."""
    if not is_traced(x):
        return Mutable(np.array(x))
    link = x.link if x.level.records else mutable_copy(x.link)
    return TracedMutable(mutable_copy(x.primal), link, x.level)


def write(target: Any, key: Any, value: Any) -> Any:
    """Write into a mutable array; returns it, or what it became since `value` belongs to a deeper level.

    Raises:
        MutationError: NumPy would cut the value (a float for an integer array) and its derivative would be lost.
    """
    traced = type(value) in HANDLES
    if traced and (isinstance(target, Mutable) or value.level.depth > target.level.depth):
        target = _raised(target, value)
    if isinstance(target, Mutable):
        target.array[key] = value
        return target
    level = target.level
    here = traced and value.level is level
    target.primal = write(target.primal, key, value.primal if here else value)
    if not level.records:
        target.link = write(target.link, key, value.link if here else 0.0)
    elif here:
        target._record((level.number(), _SET, target.link, value.link, key, *like_of(value.primal)))
    else:
        target._record((level.number(), _OVERWRITE, target.link, key))
    return target


def _raised(target: Any, value: Traced) -> TracedMutable:
    """The same contents as a variable of the deeper level of `value`, to which they are constants so far."""
    have, want = value.dtype, plain(target.value()).dtype
    if not np.can_cast(have, want, "same_kind"):
        raise MutationError(
            f"a traced {have} cannot be written into an array of {want}: it would be cut, and its derivative lost",
            f"an array of dtype {have}",
        )
    shape, dtype = like_of(target.value())
    return TracedMutable(target, NOWHERE if value.level.records else Mutable(np.zeros(shape, dtype)), value.level)


# --- cotangents that a sweep owns --------------------------------------------------------------------------------


class Accumulator:
    """A cotangent that a sweep owns and adds into in place.

    Made at the first indexed read of an array, so that n reads of single elements cost O(n) and not n whole arrays.
    Rules never see one: an op that can use it says so (`Op.owns`); all others get its `value`.
    """

    __slots__ = ("contents",)

    def __init__(self, contents: Any) -> None:
        # A plain array, or a mutable array of an outer level.
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
        return Accumulator(mutable_copy(y_bar) if is_traced(y_bar) else np.array(y_bar))

    @property
    def value(self) -> Any:
        return self.contents if isinstance(self.contents, np.ndarray) else self.contents.value()

    def add(self, key: Any, y_bar: Any) -> None:
        """Add at `key`; an element that is named twice gets both."""
        contents = self.contents
        if isinstance(contents, np.ndarray):
            if type(y_bar) not in HANDLES:
                if is_basic(key):
                    contents[key] += y_bar
                else:
                    np.add.at(contents, key, y_bar)
                return
            contents = Mutable(contents)
        if is_basic(key):
            self.contents = write(contents, key, contents.read(key) + y_bar)
        else:
            self.contents = mutable_copy(contents.value() + scatter(y_bar, key, contents.shape))

    def take(self, key: Any) -> Any:
        """The elements at `key`, which are zero afterwards."""
        contents = self.contents
        if isinstance(contents, np.ndarray):
            taken = contents[key]
            taken = taken.copy() if isinstance(taken, np.ndarray) else taken
            contents[key] = 0
            return taken
        taken = contents.read(key)
        self.contents = write(contents, key, 0.0)
        return taken

    def head(self, length: int) -> Accumulator:
        """The first `length` rows; the rest is given up."""
        if isinstance(self.contents, np.ndarray):
            return Accumulator(self.contents[:length])
        return Accumulator(mutable_copy(self.contents.value()[:length]))

    def __add__(self, x_bar: Any) -> Accumulator:
        if type(x_bar) is Accumulator:
            x_bar = x_bar.value
        if isinstance(self.contents, np.ndarray) and type(x_bar) not in HANDLES:
            self.contents += x_bar
            return self
        return Accumulator(mutable_copy(self.value + x_bar))


# --- ops ---------------------------------------------------------------------------------------------------------


def _read_pull(cotangents: Any, node: Node, y_bar: Any) -> None:
    _, _, link, key, shape, dtype = node
    Accumulator.at(cotangents, link[0], shape, dtype).add(key, y_bar)


def _read_push(node: Node, y: Any) -> Any:
    return node[2][node[3]]


def _set_pull(cotangents: Any, node: Node, y_bar: Any) -> None:
    _, _, before, written, key, shape, dtype = node
    mine = Accumulator.of(y_bar)
    value_bar = fit(mine.take(key), (shape, dtype))
    held = cotangents[written[0]]
    cotangents[written[0]] = value_bar if held is None else held + value_bar
    _pass_on(cotangents, before, mine)


def _overwrite_pull(cotangents: Any, node: Node, y_bar: Any) -> None:
    _, _, before, key = node
    mine = Accumulator.of(y_bar)
    mine.take(key)
    _pass_on(cotangents, before, mine)


def _grow_pull(cotangents: Any, node: Node, y_bar: Any) -> None:
    _, _, before, length = node
    _pass_on(cotangents, before, Accumulator.of(y_bar).head(length))


def _pass_on(cotangents: Any, before: Node, mine: Accumulator) -> None:
    if before is not NOWHERE:
        held = cotangents[before[0]]
        cotangents[before[0]] = mine if held is None else mine + held


def _never_pushed(node: Node, y: Any) -> Any:
    raise AssertionError("the tangents of mutable arrays are written directly")


READ = Op("read", 1, _read_pull, _read_push)
"""`x[key]`: `(number, op, link, key, shape, dtype)`, the shape and dtype of the cotangent of x."""
_SET = Op("set", 2, _set_pull, _never_pushed, owns=True)
"""`x[key] = value`: `(number, op, link before, link of value, key, shape, dtype)`, those of the value's cotangent."""
_OVERWRITE = Op("overwrite", 1, _overwrite_pull, _never_pushed, owns=True)
"""The same with a constant value: `(number, op, link before, key)`."""
_GROW = Op("grow", 1, _grow_pull, _never_pushed, owns=True)
"""Zeros added at the end: `(number, op, link before, length before)`."""

__all__ = ["READ", "Accumulator", "Mutable", "TracedMutable", "fixed_key", "mutable_copy", "write"]
