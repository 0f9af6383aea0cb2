"""Views: traced arrays that share the memory of another one, as NumPy's slices and transposes do.

A view looks at its base whenever it is used: its contents, and the node that reads them, are those of the base's newest
version. A write through a view is a write into the base. So both see what the other does, at no cost to values that
are not views.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from retrograde.trace.constant import CONSTANT, released
from retrograde.trace.handle import HANDLES, Traced, like_of, make
from retrograde.trace.level import Level
from retrograde.trace.structure import map_leaves
from retrograde.trace.writing import NOWHERE, READ, Path, Step, follow


class View(Traced):
    """What stands at the end of a path from `base`, a handle that is no view itself."""

    __slots__ = ("base", "path", "read", "version")

    base: Traced
    path: Path
    # The last reading, and the link that the base had then.
    read: Traced
    version: Any

    @property
    def level(self) -> Any:  # type: ignore[override]
        return self.base.level

    @property
    def primal(self) -> Any:  # type: ignore[override]
        return self.reading().primal

    @property
    def link(self) -> Any:  # type: ignore[override]
        return self.reading().link

    @property
    def memory(self) -> Any:
        """The value that lies in the base's memory, to be looked at and not to be kept."""
        return follow(self.base.primal, self.path)

    def reading(self) -> Traced:
        """The view's present value, as a handle of its own."""
        base = self.base
        link = base.link
        if link is self.version and link is not NOWHERE:
            return self.read
        level = base.level
        primal = self.memory
        if level is CONSTANT:
            return make(primal, None, level)
        if not level.records:
            # Not kept: holding a part of the buffers would make the base copy them at its next write.
            return make(primal, level.part(link, self.path), level)
        if type(primal) is np.ndarray:
            # The base is being written to; a copy leaves its buffer to it alone.
            primal = primal.copy(order="K")
        node = (level.number(), READ, link, self.path, ..., *like_of(base.primal))
        level.append(node)
        self.read = make(primal, node, level)
        self.version = link
        return self.read


HANDLES.add(View)


def view_of(x: Traced, step: Step, read: Callable[[], Any]) -> Any:
    """The view that `step` makes of `x`. `read()` records its present value in the ordinary way."""
    v = View()
    if type(x) is View:
        v.base, v.path = x.base, (*x.path, step)
    else:
        v.base, v.path = x, (step,)
    link = v.base.link
    if v.base.level.records and not link[1].owns:
        # Nobody has written to the base yet, nor will in most programs: read it now, as if there were no views.
        value = read()
        if type(value) not in HANDLES:
            return value
        v.read, v.version = value, link
    else:
        v.version = v  # no link is this, so that the first use reads
    return v


def shares_memory(part: Any, whole: Any) -> bool:
    """Whether `part`, computed of `whole`, is a view of it; for traced values of a lower level: a View."""
    if type(part) is np.ndarray:
        base = part.base
        if base is None or type(whole) is not np.ndarray:
            return False
        # Some views (windows, broadcasts) have a base of another kind.
        return base is whole or base is whole.base or np.may_share_memory(part, whole)
    return type(part) is View


def snapshot(x: Any) -> Any:
    """A value as it is now, for nodes to keep: later writes to the handle `x` do not reach it."""
    kind = type(x)
    if kind not in HANDLES:
        return x
    if x.level is CONSTANT:
        return x.primal
    return x.reading() if kind is View else make(x.primal, x.link, x.level)


def kept(x: Any, level: Level) -> Any:
    """A constant operand as nodes of `level` keep it: whoever changes the array itself does not change the gradient.

    Small arrays are copied. Large ones are made read-only until the function has ended, if its sweep follows at once.
    """
    if type(x) is not np.ndarray:
        return snapshot(x)
    if not level.records:
        return x
    if x.nbytes <= _SMALL or level.borrowed is None:
        return x.copy(order="K")
    if x.flags.writeable:
        level.borrowed.append(x)
        x.flags.writeable = False
    return x


_SMALL = 2**16  # bytes


def settled(tree: Any) -> Any:
    """Outputs of a function, with views read for the last time while their level still runs."""
    kind = type(tree)
    if kind is View:
        return tree.reading()
    if kind is Traced or kind is float or kind is np.ndarray or kind is np.float64:
        return tree
    return map_leaves(lambda leaf: released(leaf.reading() if type(leaf) is View else leaf), tree)
