"""One function while its body is lowered: what its names mean just now."""

from __future__ import annotations

from typing import Any

from retrograde.compiler.lower.values import NONE
from retrograde.compiler.source import Source


class Frame:
    """One function while its body is lowered.

    Attributes:
        source: its source.
        outer: the function in which it is defined, whose names it sees.
        env: what each name means just now.
        cells: the names whose scalars live in a cell at this point.
        slots: the names whose arrays live in a slot at this point.
        path: the calls that lead here, as places; empty for the compiled function itself.
        result: what it returned, once `returned`.
        bound: the names that are bound anywhere in it.
        surely: cells that have been written on every path to this point.
        trusted: names that are read only where they have been bound.
        fixed: names that may not be bound to anything else inside the loop or branch that is being lowered.
    """

    def __init__(self, source: Source, path: tuple[Any, ...], outer: Frame | None = None) -> None:
        self.source = source
        self.outer = outer
        self.env: dict[str, Any] = {}
        self.cells: dict[str, str] = {}
        self.slots: dict[str, str] = {}
        self.path = path
        self.result: Any = NONE
        self.returned = False
        self.bound: set[str] = set()
        self.fixed: frozenset[str] = frozenset()
        self.surely: set[str] = set()
        self.trusted: frozenset[str] = frozenset()

    def owner_of(self, name: str) -> Frame | None:
        """The function, this or one around it, to which a name belongs; None for a global one."""
        frame: Frame | None = self
        while frame is not None and name not in frame.env and name not in frame.bound:
            frame = frame.outer
        return frame
