"""The tape: the record of one run of a function, and its sweeps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from retrograde.reverse.sweep import result, sweep, sweep_and_free, tell_unreached
from retrograde.trace.handle import Traced, is_traced
from retrograde.trace.interception import traceable
from retrograde.trace.level import Node
from retrograde.trace.recording import RecordingLevel
from retrograde.trace.running import run
from retrograde.trace.views import settled, snapshot


# Leaves of more bytes make a large problem: its arrays cost more than the checks of its products.
_LARGE = 2**18


class Tape(RecordingLevel):
    """A level whose nodes are kept in a list, in the order of recording."""

    __slots__ = ("bytes", "nodes", "size")

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        super().__init__(self.nodes.append)
        self.size = 0
        # The memory of the leaves, which tells small problems from large ones.
        self.bytes = 0

    def leaf(self, primal: Any) -> Traced:
        self.bytes += getattr(primal, "nbytes", 8)
        return super().leaf(snapshot(primal))

    def record(
        self,
        f: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        leaves: dict[int, Traced] | None = None,
    ) -> Any:
        """Run `f` and keep what its sweep needs."""
        counter = self.number
        f = traceable(f)
        y = run(self, lambda: settled(f(*args, **kwargs)), f, leaves)
        self.size = counter()
        return y

    def owns(self, y: Any) -> bool:
        """Whether `y` was computed from this tape's leaves."""
        return is_traced(y) and y.level is self

    def sweep(self, seeds: list[tuple[int, Any]], links: list[Node | None], last: bool = False) -> list[Any]:
        """The cotangents of the leaves, None where no path leads there.

        Args:
            seeds: the numbers of outputs, with their cotangents.
            links: nodes of leaves; entries that are None have the cotangent None.
            last: whether the tape is not needed any more.
        """
        numbers = [link[0] for link in links if link is not None]

        def start() -> list[Any]:
            cotangents: list[Any] = [None] * self.size
            for number, y_bar in seeds:
                held = cotangents[number]
                cotangents[number] = y_bar if held is None else held + y_bar
            return cotangents

        if last and (self.bytes > _LARGE or not self.repeatable):
            cotangents = sweep_and_free(self.nodes, start())
        else:
            cotangents = sweep(self.nodes, start, numbers, self.repeatable)
        tell_unreached(self.hooks, cotangents)
        if last:
            # A checkpoint's node holds traced values, and they this tape.
            self.nodes.clear()
        return [None if link is None else result(cotangents, link[0]) for link in links]
