"""What is the same in every iteration moves in front of the loop.

Pure operations, views by slices, and elements that exist for certain: a loop that does not run may have no such element
as it would read, so the index of one that moves is made of the variables of loops over the whole axes. After
differentiation allocations move as well: a buffer is then filled again in each iteration instead.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from retrograde.compiler.alias import Memory
from retrograde.compiler.elements import copied
from retrograde.compiler.form import (
    Alloc,
    Block,
    Copy,
    Fill,
    For,
    Get,
    Load,
    Op,
    Reshaped,
    Slice,
    Statement,
    Swap,
    View,
    While,
)
from retrograde.compiler.program import Program
from retrograde.compiler.types import Operand
from retrograde.compiler.walks import blocks_of, defs, uses, walk


def hoist(program: Program, allocations: bool) -> None:
    _Hoisting(program, allocations).run()


class _Hoisting:
    def __init__(self, program: Program, allocations: bool) -> None:
        self.program = program
        self.allocations = allocations
        self.memory = Memory(program)
        self.defined: dict[Statement, set[str]] = {}
        self.over: dict[str, set[tuple[Operand, Operand]]] = {}  # the ranges of the variables of loops
        self.swapped: set[str] = set()  # buffers that change their names: no iteration can be told from the next
        for s in walk(program.body):
            if type(s) is For:
                self.over.setdefault(s.var, set()).add((s.low, s.high))
            elif type(s) is Swap:
                self.swapped.update(s.targets, s.sources)

    def run(self) -> None:
        self.program.body = self.block(self.program.body)

    def block(self, block: Block) -> Block:
        out: Block = []
        for s in block:
            for f in s.blocks:
                setattr(s, f, self.block(getattr(s, f)))
            if type(s) is For or type(s) is While:
                self.loop(s, out)
            out.append(s)
        return out

    def loop(self, s: For | While, out: Block) -> None:
        """Move statements of the loop's body to `out`."""
        inside = set(self.defined_in(s))
        written = self.memory.written_in(s)
        is_parallel = isinstance(s, For) and s.parallel  # each iteration has buffers of its own
        body: Block = []
        for x in s.body:
            if not inside.isdisjoint(uses(x)):
                body.append(x)
            elif self.is_the_same(x, written):
                out.append(x)
                inside.difference_update(defs(x))
            elif self.allocations and not is_parallel and isinstance(x, Alloc | Copy) and x.dst not in self.swapped:
                body += self.without_allocation(x, out)
                inside.discard(x.dst)
            else:
                body.append(x)
        s.body = body

    def defined_in(self, s: Statement) -> set[str]:
        """The names that a statement and what is nested in it define, as they were when this was first asked."""
        found = self.defined.get(s)
        if found is None:
            found = self.defined[s] = set(defs(s))
            for block in blocks_of(s):
                for x in block:
                    found.update(self.defined_in(x) if x.blocks else defs(x))
        return found

    def is_the_same(self, x: Statement, written: AbstractSet[str]) -> bool:
        if isinstance(x, View):
            if self.memory.root(x.array) in self.swapped:
                return False
            return x.transposed or all(i is None or isinstance(i, Slice | Reshaped) for i in x.index)
        if isinstance(x, Load):
            return self.memory.root(x.array) not in written | self.swapped and self.is_there(x)
        return isinstance(x, Op) or (isinstance(x, Get) and f"${x.cell}" not in written)

    def is_there(self, x: Load) -> bool:
        """Whether an element exists wherever its index is known."""
        return all(map(self.is_on_axis, x.index, self.program.dims[x.array]))

    def is_on_axis(self, i: Operand, n: Operand) -> bool:
        """Whether an index lies inside of an axis of some length, wherever it is known."""
        ranges = self.over.get(i, ()) if isinstance(i, str) else ((i, i + 1),)
        return bool(ranges) and all(
            (low, high) == (0, n) or (type(n) is type(low) is type(high) is int and low >= 0 and high <= n)
            for low, high in ranges
        )

    def without_allocation(self, x: Alloc | Copy, out: Block) -> Block:
        """What an iteration does instead of allocating; the allocation itself goes to `out`."""
        if isinstance(x, Alloc):
            out.append(Alloc(x.dst, x.shape, False, at=x.at))
            return [Fill(x.dst, at=x.at)] if x.zero else []
        dims = self.program.dims[x.dst]
        out.append(Alloc(x.dst, dims, False, at=x.at))
        return copied(self.program, x.dst, x.array, dims, at=x.at)
