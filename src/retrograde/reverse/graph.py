"""The part of a graph that a value was computed of, found from the value itself."""

from __future__ import annotations

from collections.abc import Iterable

from retrograde.errors import AlreadyUsedError
from retrograde.trace.level import Node
from retrograde.trace.ops import LEAF

# What a value is linked to after its graph was freed.
FREED: Node = (0, LEAF, None)


def nodes_behind(ends: Iterable[Node], after: int = 0) -> tuple[list[Node], bool]:
    """The nodes that `ends` were computed of, themselves included, in the order of recording.

    Args:
        after: nodes with this number or a smaller one are left out.

    Returns:
        The nodes, and whether a sweep may run all of them twice.
    """
    seen = set()
    nodes = []
    for end in ends:
        if end[0] not in seen and end[0] > after:
            seen.add(end[0])
            nodes.append(end)
    repeatable = True
    for node in nodes:  # grows while it is read: breadth first
        op = node[1]
        repeatable &= op.repeatable
        for parent in node[2 : 2 + op.parents]:
            number = parent[0]
            if parent is FREED:
                raise AlreadyUsedError(
                    "a part of this value's graph was already used by back(...) and freed",
                    "back(y, once=False) in the earlier sweep, to keep the graph",
                    "compute the earlier value again",
                )
            if number not in seen and number > after:
                seen.add(number)
                nodes.append(parent)
    nodes.sort(key=_number)
    return nodes, repeatable


def _number(node: Node) -> int:
    return node[0]  # type: ignore[no-any-return]
