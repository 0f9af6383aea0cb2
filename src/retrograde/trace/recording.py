"""Levels of reverse mode: operations append their nodes, and a sweep reads them backwards."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from retrograde.trace.call import Binding, Operand, distribute
from retrograde.trace.handle import Traced, make
from retrograde.trace.level import Level, Node, is_recorded, never_ends
from retrograde.trace.ops import LEAF, OUTPUT, general_op


class RecordingLevel(Level):
    """A level of reverse mode."""

    __slots__ = ()

    records = True

    def __init__(self, append: Callable[[Node], None]) -> None:
        super().__init__()
        self.append = append

    def leaf(self, primal: Any) -> Traced:
        """An input of the tape."""
        return make(primal, (self.number(), LEAF), self)

    def follow(self, y: Any, node: Node) -> Any:
        if not is_recorded(self, node[2 : 2 + node[1].parents]):
            return y
        self.append(node)
        return make(y, node, self)

    def apply(self, binding: Binding, active: list[Operand]) -> Any:
        links = [operand.traced.link for operand in active]
        if not self.quick and not is_recorded(self, links):
            return binding.y
        pull = binding.pull({operand.slot for operand in active})
        node = (self.number(), general_op(len(links)), *links, pull, binding.targets(active))
        self.append(node)
        y = binding.y
        if not isinstance(y, tuple | list):
            return make(y, node, self)

        def output(position: int, value: Any) -> Any:
            part = (self.number(), OUTPUT, node, position, len(y))
            self.append(part)
            return make(value, part, self)

        return distribute(y, output)


def _parameter_level() -> RecordingLevel:
    level = RecordingLevel(deque(maxlen=0).append)
    level.depth = 0
    level.quick = True
    never_ends(level)
    return level


PARAMS = _parameter_level()
"""The level of parameters: below all others, never ended, and without a list of its nodes. `back` finds the graph from
its output, and what no output holds is freed."""
