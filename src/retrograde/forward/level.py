"""The level of forward mode: what it knows of a value is its tangent."""

from __future__ import annotations

from typing import Any

from retrograde.trace.call import Binding, Operand, distribute
from retrograde.trace.handle import make
from retrograde.trace.level import Level, Node, is_recorded, some_are_asked


class ForwardLevel(Level):
    """A level whose values carry tangents of their own shape and dtype."""

    __slots__ = ()

    def follow(self, y: Any, node: Node) -> Any:
        if some_are_asked() and not is_recorded(self, ()):
            return y
        return make(y, node[1].push(node, y), self)

    def apply(self, binding: Binding, active: list[Operand]) -> Any:
        y = binding.y
        if some_are_asked() and not is_recorded(self, ()):
            return y
        y_dot = binding.matched(binding.push(binding.tangents(active)))
        if not isinstance(y, tuple | list):
            return make(y, y_dot, self)
        return distribute(y, lambda i, value: make(value, y_dot[i], self))
