"""Loops whose iterations the reverse sweep runs again, one at a time, instead of taping what they computed.

An iteration can be run again if it reads what it read the first time. That is so if nothing it reads has been written
since, but for cells and buffers that each iteration writes before it reads them. Such loops over points, observations
or samples then need no tape of a length that grows with their number. What an iteration takes over from the one before
is kept as it was at the start of each (a snapshot), and put back before the iteration runs again: the state of a
simulation, say, and not all that a step computes on the way.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from collections.abc import Set as AbstractSet

from retrograde.compiler.alias import Changes, Memory
from retrograde.compiler.form import (
    Add,
    Alloc,
    Block,
    Call,
    Copy,
    Fill,
    For,
    If,
    Increase,
    Load,
    Pop,
    PopArray,
    Push,
    Set,
    Stack,
    Statement,
    Store,
    While,
    Whole,
)
from retrograde.compiler.program import Program
from retrograde.compiler.types import Operand
from retrograde.compiler.walks import blocks_of, defs, names_in, walk

NOT_AGAIN = (Push, Pop, PopArray, Stack)


class Iterations:
    """What the iterations of a loop share; `around` are the statements among which it stands.

    Attributes:
        inside: all statements of the loop.
        carried: the roots that an iteration may read before it has written them, and that are written in the loop.
        are_repeatable: whether each can be run again, on its own, in the reverse sweep, given what is carried.
        are_unordered: whether their adjoints may run in any order.
        run_forwards: whether each adjoint may run directly behind its iteration: what is carried has no derivative.
    """

    def __init__(
        self,
        program: Program,
        loop: For,
        memory: Memory,
        changes: Changes,
        around: list[Statement],
        is_active: Callable[[str], bool] = lambda _: True,
    ) -> None:
        self.program = program
        self.loop = loop
        self.memory = memory
        self.changes = changes
        self.around = around
        self.is_active = is_active
        self.inside = walk(loop.body)
        self.own = {name for s in self.inside if isinstance(s, Alloc | Copy | Whole | Call) for name in defs(s)}
        self.written = {root for s in self.inside for root in memory.writes(s)} - self.own
        self.carried = carried(loop.body, self.written, memory)
        self.can_be_again = not any(isinstance(s, NOT_AGAIN) for s in self.inside)

    @functools.cached_property
    def are_repeatable(self) -> bool:
        read = {root for s in self.inside for root in self.memory.reads(s)} - self.own
        return (
            self.can_be_again
            and all(self.can_be_kept(root) for root in self.carried)
            and not any(self.changes.may_change_after(root, self.loop) for root in read - self.written)
        )

    @functools.cached_property
    def are_unordered(self) -> bool:
        return self.can_be_again and not self.carried and self.can_reorder(self.written)

    @functools.cached_property
    def run_forwards(self) -> bool:
        active = {root for root in self.written if self.is_active(root)}
        return self.can_be_again and not active & self.carried and self.can_reorder(active)

    def can_be_kept(self, root: str) -> bool:
        """Whether a snapshot of a cell or an array has a size that is known before the loop."""
        if root.startswith("$"):
            return True
        inside = {self.loop.var}.union(*map(defs, self.inside))
        return root in self.program.dims and not inside.intersection((root, *names_in(self.program.dims[root])))

    def can_reorder(self, roots: set[str]) -> bool:
        """Whether no place in some memory that is written gets its last value from a certain iteration."""
        summed: set[str] = set()
        stored: set[str] = set()
        for s in self.inside:
            (summed if isinstance(s, Add | Increase) else stored).update(self.memory.writes(s))
        for root in roots - (summed - stored):  # sums commute
            if root.startswith("$"):
                if root in self.read_outside:
                    return False
            elif (root in self.program.params or root in self.read_outside) and not self.is_spread(root):
                return False
        return True

    @functools.cached_property
    def read_outside(self) -> set[str]:
        own = set(self.inside)
        return {root for s in self.around if s not in own for root in self.memory.reads(s)}

    def is_spread(self, root: str) -> bool:
        """Whether each iteration touches elements of its own: all accesses have the loop's variable at one axis."""
        touching = [s for s in self.inside if root in self.memory.reads(s) | self.memory.writes(s)]
        places = [(s.array, s.index) for s in touching if isinstance(s, Load | Store | Increase)]
        if len(places) < len(touching) or len({array for array, _ in places}) != 1:
            return False
        axes = range(min(len(index) for _, index in places))
        return any(all(index[axis] == self.loop.var for _, index in places) for axis in axes)


def carried(body: Block, written: AbstractSet[str], memory: Memory) -> set[str]:
    """The roots of some that are written which the body of a loop may read before it has written them in full."""
    found: set[str] = set()

    def look(block: Block, before: set[str]) -> set[str]:
        """Note what a block reads too early; what it has surely written in full, with what was before."""
        done = set(before)
        for s in block:
            for root in memory.reads(s):
                if root in written and root not in done:
                    found.add(root)
            if isinstance(s, Set):
                done.add(f"${s.cell}")
            elif isinstance(s, Fill) and s.array == memory.root(s.array):
                done.add(s.array)
            elif s.blocks:
                inner = [look(b, done) for b in blocks_of(s)]
                if isinstance(s, If):
                    done |= inner[0] & inner[1]
                elif isinstance(s, For):
                    done |= filled_by(s, memory)
        return done

    look(body, set())
    return found


def filled_by(loop: For, memory: Memory) -> set[str]:
    """The buffers of which a nest of loops writes every element."""
    filled: set[str] = set()

    def look(block: Block, loops: tuple[For, ...]) -> None:
        for s in block:
            if isinstance(s, Store) and s.array == memory.root(s.array):
                dims = memory.program.dims[s.array]
                if len(dims) == len(loops) and all(
                    i == x.var and x.low == 0 and x.high == n for i, x, n in zip(s.index, loops, dims, strict=True)
                ):
                    filled.add(s.array)
            elif isinstance(s, For):
                look(s.body, (*loops, s))

    look(loop.body, (loop,))
    return filled


def last_words(loop: For, carried: set[str], memory: Memory) -> dict[str, set[int]]:
    """The arrays that an iteration reads first and writes last, with the statements (their ids) that write them.

    What it leaves to the next iteration is known when it runs again, so that it need not be written then, and the state
    that it starts from stays as it was. That holds for arrays that are written by stores alone, each of which stands
    behind all reads; in a loop of its own an element may be read before it is written.
    """
    found: dict[str, set[int]] = {}
    changes = Changes(loop.body, memory)
    everything = walk(loop.body)
    loops: dict[int, Statement] = {id(s): s for s in everything if isinstance(s, For | While)}
    for root in carried:
        if root.startswith("$"):
            continue
        stores = [s for s in everything if root in memory.writes(s)]
        reads = [s for s in everything if root in memory.reads(s)]
        if all(
            isinstance(s, Store) and isinstance(r, Load) and _is_behind(s, r, changes, loops)
            for s in stores
            for r in reads
        ):
            found[root] = {id(s) for s in stores}
    return found


def _is_behind(store: Store, read: Load, changes: Changes, loops: dict[int, Statement]) -> bool:
    """Whether a store comes after each reading of what it writes."""
    if changes.position[id(read)] > changes.position[id(store)]:
        return False
    around, common = changes.loops[id(store)], set(changes.loops[id(read)])
    if not common.intersection(around):
        return True
    if (read.array, read.index) != (store.array, store.index):
        return False
    # In each iteration of the common loops, and of those around the store alone, it is another element.
    return all(isinstance(x, For) and x.var in store.index for x in (loops[i] for i in around))


def is_worth_repeating(loop: For) -> bool:
    """Whether running an iteration again is likely to cost less than its tape."""
    return any(isinstance(s, For | While | Alloc | Copy | Whole | Call) for s in walk(loop.body))


def renaming(program: Program, block: Block) -> dict[str, str]:
    """New names for all that a block defines."""
    names: dict[str, str] = {}
    for s in walk(block):
        for name in defs(s):
            names[name] = program.new(name, program.types[name])
    for name, new in names.items():
        if name in program.dims:
            program.set_dims(new, tuple(_renamed(n, names) for n in program.dims[name]))
    return names


def _renamed(operand: Operand, names: dict[str, str]) -> Operand:
    return names.get(operand, operand) if isinstance(operand, str) else operand
