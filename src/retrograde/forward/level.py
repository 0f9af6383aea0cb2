"""The level of forward mode: what it knows of a value is its tangent."""

from __future__ import annotations

from typing import Any

from retrograde.originals import np
from retrograde.trace.call import Binding, Operand, distribute
from retrograde.trace.handle import Traced, is_traced, like_of, make
from retrograde.trace.level import Level, Node, set_aside, some_are_asked
from retrograde.trace.ops import shows_nan
from retrograde.trace.writing import Path, follow, write_array


class ForwardLevel(Level):
    """A level whose values carry tangents of their own shape and dtype."""

    __slots__ = ()
    pushes = True

    def follow(self, y: Any, node: Node) -> Any:
        aside = set_aside(self, ()) if some_are_asked() else None
        if aside is not None:
            return aside(y)
        op = node[1]
        if op.is_quiet:
            return make(y, op.push(node, y), self)
        # A partial may well be infinite where its tangent is zero; that is no news to the user.
        with np.errstate(all="ignore"):
            return make(y, op.push(node, y), self)

    def apply(self, binding: Binding, active: list[Operand]) -> Any:
        self.number()  # raises, once the transform has ended
        y = binding.y
        aside = set_aside(self, ()) if some_are_asked() else None
        if aside is not None:
            return aside(y)
        with np.errstate(all="ignore"):
            y_dot = binding.matched(binding.push(binding.tangents(active, [operand.traced.link for operand in active])))
        if not isinstance(y, tuple | list):
            return make(y, y_dot, self)
        return distribute(y, lambda i, value: make(value, y_dot[i], self))

    def still(self, x: Any) -> Any:
        return np.zeros(*like_of(x))

    def part(self, link: Any, path: Path) -> Any:
        return follow(link, path)

    def write_link(self, x: Traced, path: Path, key: Any, value: Any) -> None:
        write_array(x, path, key, value.link if is_traced(value) and value.level is self else 0.0)

    def shows_nan(self, link: Any) -> bool:
        return shows_nan(link)
