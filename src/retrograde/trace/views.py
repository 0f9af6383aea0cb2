"""Views: traced arrays that share the memory of another one, as NumPy's slices and transposes do.

A view looks at its base whenever it is used: its contents, and the node that reads them, are those of the base's newest
version. A write through a view is a write into the base. So both see what the other does, at no cost to values that
are not views.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from numpy import float64, ndarray

from retrograde.errors import MutationError
from retrograde.originals import np
from retrograde.trace.constant import CONSTANT, released
from retrograde.trace.handle import HANDLES, MAPPED, SIMPLE, VIEWS, Traced, like_of, make
from retrograde.trace.level import Level
from retrograde.trace.memory import READ_ONLY, copied, is_lent, is_read_only, lend, owned, owner_of, set_read_only
from retrograde.trace.structure import map_leaves
from retrograde.trace.writing import NOWHERE, READ, Path, Step, follow


class View(Traced):
    """What stands at the end of a path from `base`, a handle that is no view itself."""

    __slots__ = ("base", "key", "path", "read", "version")

    base: Traced
    path: Path
    # The index of which this is the value, if it is one.
    key: Any
    # The last reading, and the link that the base had then.
    read: Traced
    version: Any

    level = property(operator.attrgetter("base.level"))  # type: ignore[assignment]

    @property
    def primal(self) -> Any:  # type: ignore[override]
        return self.latest().primal

    @property
    def link(self) -> Any:  # type: ignore[override]
        return self.latest().link

    @property
    def memory(self) -> Any:
        """The value that lies in the base's memory, to be looked at and not to be kept."""
        return follow(self.base.primal, self.path)

    def reading(self) -> Traced:
        # Not the last reading itself: what the caller writes into it would be read by all others.
        latest = self.latest()
        return make(latest.primal, latest.link, latest.level)

    def latest(self) -> Traced:
        """The view's present value, in a handle that is kept until the base changes, and must not be written to."""
        base = self.base
        link = base.link
        if link is self.version and link is not NOWHERE:
            return self.read
        level = base.level
        if level is CONSTANT:
            return make(self.memory, None, level)
        if level.maps:
            raise MutationError(
                "this view is of an array that was the same for all examples of a batch, and was written to since",
                "take the view after the write, or write through it",
            )
        if not level.records:
            # Not kept: holding a part of the buffers would make the base copy them at its next write.
            return make(self.memory, level.part(link, self.path), level)
        node = (level.number(), READ, link, self.path, ..., *like_of(base.primal))
        level.append(node)
        # The base is being written to; a copy leaves its buffer to it alone.
        self.read = make(owned(self.memory), node, level)
        self.version = link
        return self.read

    def lent(self) -> Any:
        return follow(lend(self.base), self.path)

    def owned(self) -> Traced:
        level = self.level
        if level.records:
            return self.reading()
        if level is CONSTANT:
            return make(owned(self.memory), None, level)
        return make(owned(self.memory), owned(level.part(self.base.link, self.path)), level)

    # What is the same in every version is asked of the memory, so that nothing is recorded.
    shape = property(lambda v: v.memory.shape, Traced.shape.fset)  # type: ignore[assignment, attr-defined]
    ndim = property(lambda v: v.memory.ndim)
    size = property(lambda v: v.memory.size)
    dtype = property(lambda v: v.memory.dtype)
    strides = property(lambda v: v.memory.strides)


for _kinds in (HANDLES, SIMPLE, VIEWS):
    _kinds.add(View)

_NEVER = object()
"""No link is this: a view that holds it reads when it is first used. (Not itself, which would be a cycle.)"""


VIEW_OF_MAPPED: type[View] = View  # set by mapped.py


def view_of(x: Any, step: Step, read: Callable[[], Any], key: Any = None) -> Any:
    """The view that `step` makes of `x`, which is `x[key]` if there is a key.

    `read()` records its present value in the ordinary way.
    """
    v: View = VIEW_OF_MAPPED() if type(x) in MAPPED else View()
    v.key = key
    if READ_ONLY and is_read_only(x):
        set_read_only(v, True)
    if type(x) in VIEWS:
        v.base, v.path = x.base, (*x.path, step)
    else:
        v.base, v.path = x, (step,)
    link = v.base.link
    if v.base.level.records and not link[1].owns:
        # Nobody has written to the base yet, nor will in most programs: read it now, as if there were no views.
        value = read()
        if type(value) not in HANDLES or (type(value) in MAPPED and value.level is not v.base.level):
            return value  # not recorded, inside of `ignore()`
        v.read, v.version = value, link
    else:
        v.version = _NEVER
    return v


def shares_memory(part: Any, whole: Any) -> bool:
    """Whether `part`, computed of `whole`, is a view of it; for traced values of a lower level: a View."""
    if type(part) is ndarray:
        base = part.base
        if base is None or type(whole) is not ndarray:
            return False
        # Some views (windows, broadcasts) have a base of another kind.
        return base is whole or base is whole.base or np.may_share_memory(part, whole)
    if type(part) not in VIEWS:
        return False
    # A function that is made of others may have looked into something that it computed itself.
    return part.base is (whole.base if type(whole) in VIEWS else whole)


def is_same_part(x: Traced, key: Any, value: Any) -> bool:
    """Whether `value` is the very view `x[key]`, which `x[key] += ...` writes back to where it lies."""
    if type(value) is not View or value.key is not key or (type(key) is not slice and not _is_fixed(key)):
        return False
    if type(x) is View:
        steps = value.path[:-1]
        return value.base is x.base and len(steps) == len(x.path) and all(map(operator.is_, steps, x.path))
    return value.base is x and len(value.path) == 1


def _is_fixed(key: Any) -> bool:
    """Whether a key consists of integers, slices and the like, which nobody can change."""
    return all(map(_FIXED.__contains__, map(type, key))) if type(key) is tuple else type(key) in _FIXED


_FIXED = frozenset({int, slice, type(...), type(None), np.int64})


def snapshot(x: Any) -> Any:
    """A value as it is now, for nodes to keep: later writes to the handle `x` do not reach it."""
    kind = type(x)
    if kind not in HANDLES:
        return x
    if x.level is CONSTANT:
        # Of memory that others have, too, a copy: writes to it are made in place.
        return copied(x.primal) if is_lent(x.base if kind in VIEWS else x) else x.primal
    return x.reading()


def kept(x: Any, level: Level) -> Any:
    """A constant operand as nodes of `level` keep it: whoever changes the array itself does not change the gradient.

    Small arrays are copied. Large ones are made read-only until the function has ended, if its sweep follows at once;
    so is the array that they are a view of, and parts of a larger one are copied, since others may write to the rest.
    """
    if type(x) is not ndarray:
        return snapshot(x)
    if not level.records:
        # Nothing is kept but by views, which are taken again when they are read.
        return x.copy(order="K") if x.nbytes <= _SMALL else x
    if x.nbytes <= _SMALL or level.borrowed is None:
        return x.copy(order="K")
    arrays = [x]
    while arrays[-1].base is not None and isinstance(owner := owner_of(arrays[-1]), ndarray):
        arrays.append(owner)
    if arrays[-1].nbytes > x.nbytes:
        return x.copy(order="K")
    for array in arrays:
        if array.flags.writeable:
            level.borrowed.append(array)
            array.flags.writeable = False
    return x


_SMALL = 2**16  # bytes


def settled(tree: Any) -> Any:
    """Outputs of a function, with views read for the last time while their level still runs."""
    kind = type(tree)
    if kind in VIEWS:
        tree = tree.reading()
        kind = type(tree)
    if kind is Traced:
        return released(tree) if tree.level is CONSTANT else tree
    if kind is float or kind is ndarray or kind is float64:
        return tree
    return map_leaves(lambda leaf: released(leaf.reading() if type(leaf) in VIEWS else leaf), tree)
