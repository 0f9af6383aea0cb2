"""Which values of a loop's body the reverse sweep computes again, and which it has to tape.

A value is computed again if all that it is made of is at hand: defined outside of the loop, read from memory that
nothing has written since, or itself computed again or taped. Costly functions are taped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from retrograde.compiler.form import Block, For, Get, Load, Op, Statement, View
from retrograde.compiler.ops import is_expensive
from retrograde.compiler.walks import clone, names_in, uses

if TYPE_CHECKING:
    from retrograde.compiler.tapes import Tapes

DEEPEST = 60


class Recompute:
    """A plan for the temps of one block.

    Attributes:
        taped: the temps to be taped, in program order.
        statements: what computes the others again, in program order.
        names: what each of those is called in the reverse sweep.
    """

    def __init__(self, reverse: Tapes, here: set[str], needed: list[str]) -> None:
        self.reverse = reverse
        self.here = here
        self.taped: list[str] = []
        self.statements: Block = []
        self.names: dict[str, str] = {}
        self.needed = set(needed)
        self.possible: dict[str, bool] = {}
        order = {name: reverse.changes.position.get(id(reverse.definition[name]), 0) for name in needed}
        for name in sorted(needed, key=lambda n: order[n]):
            self.provide(name)

    def provide(self, name: str) -> None:
        """Tape a temp or plan its recomputation."""
        if name not in self.here or name in self.names or name in self.taped:
            return
        definition = self.reverse.definition[name]
        if isinstance(definition, For):
            return  # the reverse loop counts as well
        if isinstance(definition, View) or (self.reverse.options.recompute and self.can_be_recomputed(name)):
            self.again(name, definition)
        else:
            for size in names_in(self.reverse.program.dims.get(name, ())):
                self.provide(size)
            self.taped.append(name)

    def again(self, name: str, definition: Statement) -> None:
        for used in uses(definition):
            self.provide(used)
        program = self.reverse.program
        new = program.new(name, program.types[name])
        if name in program.dims:
            program.dims[new] = program.dims[name]
        self.names[name] = new
        # Names inside are replaced when the plan is complete.
        self.statements += clone([definition], define=lambda _: new)

    def can_be_recomputed(self, name: str, depth: int = 0) -> bool:
        """Whether a temp of this block can be had without a place on a tape of its own."""
        if name not in self.here or name in self.names or name in self.taped:
            return True
        if name not in self.possible:
            self.possible[name] = depth < DEEPEST and self._can_be(self.reverse.definition[name], depth)
        return self.possible[name]

    def _can_be(self, s: Statement, depth: int) -> bool:
        reverse = self.reverse
        if s not in reverse.changes:
            return False
        if isinstance(s, For):
            return True
        if isinstance(s, Op):
            if s.fn == "shape":
                return self.is_reachable(s.args[0])
            if is_expensive(s.fn):
                return False
            # From values that are taped for their own sake others come for free.
            return all(self.can_be_recomputed(a, depth + 1) or a in self.needed for a in names_in(s.args))
        if isinstance(s, Load):
            root = reverse.memory.root(s.array)
            return (
                not reverse.changes.may_change_after(root, s)
                and self.is_reachable(s.array)
                and all(self.can_be_recomputed(i, depth + 1) for i in names_in(s.index))
            )
        if isinstance(s, Get):
            return not reverse.changes.may_change_after(f"${s.cell}", s)
        return False

    def is_reachable(self, array: str) -> bool:
        """Whether an array of the forward sweep is still there: made outside of all loops, or a view of such a one."""
        reverse = self.reverse
        if reverse.memory.root(array) in reverse.loops.inside:
            return False
        while array in reverse.memory.parents:
            definition = reverse.definition[array]
            assert isinstance(definition, View)
            if array in self.here and not all(self.can_be_recomputed(i) for i in names_in(definition.index)):
                return False
            array = definition.array
        return True
