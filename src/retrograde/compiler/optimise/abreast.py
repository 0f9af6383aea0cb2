"""Iterations of an outer loop run side by side, in the lanes of vectors, where that pays.

    for i in range(n):                    for i in range(0, n, 8):          eight iterations at a time
        z[:] = 0                              z[:, 8] = 0                   its own arrays: one for each lane
        for k in range(m):          →         for k in range(m):            the same for all of them
            z[k] += w[k] * x[i]                   z[k, :] += w[k] * x[i : i + 8]
            s += z[k]                             s += sum of z[k, :]       sums: once for all lanes

LLVM vectorises innermost loops. Where those are short, or where an iteration is one long straight line with branches,
that is nothing; side by side, every operation that differs among iterations takes eight numbers, and what does not
(weights, indices, tests of sizes) is done once for eight. That is right wherever the iterations may run on several
threads, which parallel.py finds out, and where all of them run the same inner loops. Sums change their order.

A row x[i, :] that inner loops read again and again is copied first, so that each lane has its own: elements of eight
rows do not lie next to each other, and putting each into its lane takes as long as several operations.

Only the marks are set here, and rows copied. machine/abreast.py writes the vectors; the Python text shows the loop as
it is.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

from retrograde.compiler.alias import Memory
from retrograde.compiler.elements import copied
from retrograde.compiler.form import (
    Abreast,
    Add,
    Alloc,
    Block,
    Fill,
    For,
    Get,
    If,
    Increase,
    Load,
    Op,
    Reshaped,
    Set,
    Slice,
    Statement,
    Store,
    View,
    While,
)
from retrograde.compiler.ops import is_cheap, is_expensive
from retrograde.compiler.optimise.parallel import Plan, raised_before
from retrograde.compiler.optimise.upward import are_independent
from retrograde.compiler.program import Program
from retrograde.compiler.types import Type
from retrograde.compiler.walks import blocks_of, cells_written, names_in, uses, walk

WIDTH = 8
"""How many iterations run at once: as many float64s as the widest registers hold, or two of the half or four of the
quarter, which keeps those busy while they wait for a result."""

TRIPS = 16.0
"""How often an inner loop of unknown length is taken to run. Long ones are vectorised as they are."""

VECTORISED, SHORT = 4.0, 2.0
"""What LLVM gains in an innermost loop, with its remainders; and in one that gets shorter with the loop around it."""

WORTH = 0.7
"""The part of the time of iterations one by one that eight at once may take at most."""

CALL = 30.0
PLACE = 2.5  # an element that has to be put into a lane, or taken out of it
SUM = 10.0  # over all lanes
KINDS = "fiub"


def run_abreast(program: Program) -> None:
    """Mark the outermost loops whose iterations are to run side by side."""
    memory = Memory(program)

    def of_block(block: Block) -> Block:
        out: Block = []
        for s in block:
            if isinstance(s, For):
                out += _marked(program, s, memory)
            elif isinstance(s, If):
                s.then, s.orelse = of_block(s.then), of_block(s.orelse)
            out.append(s)
        return out

    program.body = of_block(program.body)


def _marked(program: Program, loop: For, memory: Memory) -> Block:
    """Mark a loop if its iterations can run side by side and should; what is to stand in front of it."""
    if loop.parallel or _is_short(loop) or not all(map(_is_known, _without_guards(loop.body))):
        return []
    if are_independent(loop, memory):
        return []  # LLVM vectorises it
    before = raised_before(program, loop)
    plan = Plan(program, loop, memory)
    if plan.reason:
        return before
    own = frozenset((*plan.private_arrays, *plan.zero_arrays))
    found = Abreast(frozenset(plan.added_cells), frozenset(plan.added_arrays), own, frozenset(plan.zero_arrays))
    differing = Differing(program, loop, memory, found)
    if differing.are_possible and differing.are_worth_it():
        rows = _copied_rows(program, loop, differing.rows)
        loop.abreast = found._replace(own=own.union(s.dst for s in rows))
        loop.down = False
        before += rows
    return before


def _is_short(loop: For) -> bool:
    """Whether a loop is known to have fewer iterations than run side by side."""
    return type(loop.low) is int and type(loop.high) is int and loop.high - loop.low < WIDTH


def _copied_rows(program: Program, loop: For, loads: list[Load]) -> list[Alloc]:
    """Read from copies of rows; what is to stand in front of the loop."""
    made: dict[str, Alloc] = {}
    copies: Block = []
    for s in loads:
        if s.array not in made:
            dims = program.dims[s.array][1:]
            row = program.new(f"{s.array}_row", Type(program.types[s.array].dtype, len(dims)), dims)
            made[s.array] = Alloc(row, dims, False, at=s.at)
            copies += copied(program, row, s.array, dims, within=(loop.var,), at=s.at)
        s.array, s.index = made[s.array].dst, s.index[1:]
    loop.body = copies + loop.body
    return list(made.values())


def _without_guards(block: Block) -> Iterator[Statement]:
    return (s for s in walk(block) if type(s).__name__ != "Raise")


def _is_known(s: Statement) -> bool:
    return isinstance(s, Op | Load | Store | Increase | View | Fill | Get | Set | Add | For | While | If)


class Differing:
    """What differs among the iterations of a loop that run side by side.

    Attributes:
        names: temps, cells (with `$`), views whose place differs, and the arrays of which each iteration has its own.
        rows: the reads of rows that are worth a copy.
        are_possible: whether all of it can be done in lanes.
    """

    def __init__(self, program: Program, loop: For, memory: Memory, abreast: Abreast) -> None:
        self.program, self.loop, self.memory, self.abreast = program, loop, memory, abreast
        self.cells = cells_written(loop.body) - abreast.sums
        self.names: set[str] = {loop.var}
        before = 0
        while len(self.names) > before:
            before = len(self.names)
            self.block(loop.body, False)
        counting = {s.var for s in walk(loop.body) if isinstance(s, For)}
        computed = [s for s in walk(loop.body) if isinstance(s, Op) and counting.intersection(uses(s))]
        self.moving = counting | {s.dst for s in computed}  # what inner loops count, and what is next to it
        self.are_possible = all(map(self.is_possible, walk(loop.body)))

    def has(self, x: object) -> bool:
        """Whether an operand or an array differs, or where an array stands."""
        return isinstance(x, str) and (x in self.names or self.has_own(x))

    def has_own(self, array: str) -> bool:
        """Whether each iteration has a part of its own of an array."""
        return self.memory.is_array(array) and self.memory.root(array) in self.names & self.abreast.own

    def block(self, block: Block, is_chosen: bool) -> None:
        """Args:
        is_chosen: some iterations may not run the block.
        """
        for s in block:
            if isinstance(s, Op | Load | View):
                differs = any(map(self.has, uses(s)))
                if isinstance(s, Op) and s.fn == "shape":
                    differs = False
                elif isinstance(s, View):
                    differs = s.array in self.names - self.abreast.own or any(map(self.has, names_in(s.index)))
                if differs:
                    self.names.add(s.dst)
            elif isinstance(s, Get):
                if f"${s.cell}" in self.names:
                    self.names.add(s.dst)
            elif isinstance(s, Set | Add):
                if s.cell in self.cells and (is_chosen or self.has(s.value)):
                    self.names.add(f"${s.cell}")
            elif isinstance(s, Store | Increase | Fill):
                root = self.memory.root(s.array)
                if root in self.abreast.own and (is_chosen or any(map(self.has, uses(s)))):
                    self.names.add(root)
            chosen = is_chosen or (isinstance(s, If) and self.has(s.cond))
            for part in blocks_of(s):
                self.block(part, chosen)

    def is_possible(self, s: Statement) -> bool:
        program = self.program
        if isinstance(s, For):
            return not self.has(s.low) and not self.has(s.high) and s.abreast is None
        if isinstance(s, While):
            return not self.has(s.cond)
        if isinstance(s, View):
            bounds = names_in(tuple(i for i in s.index if isinstance(i, Slice | Reshaped)))
            is_other_shape = bool(s.index) and isinstance(s.index[0], Reshaped)
            return not any(map(self.has, bounds)) and not (is_other_shape and self.has_own(s.array))
        if isinstance(s, Fill):
            return s.array not in self.names or s.array in self.abreast.own
        if isinstance(s, Op):
            return not self.has(s.dst) or all(program.type_of(x).kind in KINDS for x in (s.dst, *s.args))
        if isinstance(s, Load | Store | Increase):
            return program.types[s.array].kind in KINDS
        if isinstance(s, Get | Set | Add):
            return program.types[s.cell].kind in KINDS
        return True

    # --- rows ----------------------------------------------------------------------------------------------------

    @functools.cached_property
    def rows(self) -> list[Load]:
        written = self.memory.all_writes(self.loop.body)
        found: list[Load] = []

        def look(block: Block, loops: tuple[For, ...]) -> None:
            for s in block:
                if isinstance(s, Load) and s.array not in written and self.is_row(s, loops):
                    found.append(s)
                for part in blocks_of(s):
                    look(part, (*loops, s) if isinstance(s, For) else loops)

        look(self.loop.body, ())
        return found

    def is_row(self, s: Load, loops: tuple[For, ...]) -> bool:
        """Whether inner loops read a whole row of the iteration, and more than once."""
        if self.memory.root(s.array) != s.array or len(s.index) < 2 or s.index[0] != self.loop.var:
            return False
        ranges = {x.var: (x.low, x.high) for x in loops}
        rest = [ranges.get(i) if isinstance(i, str) else None for i in s.index[1:]]
        is_whole = rest == [(0, n) for n in self.program.dims.get(s.array, ())[1:]]
        return is_whole and len(set(s.index[1:])) < len(loops)

    # --- what it costs -------------------------------------------------------------------------------------------

    def are_worth_it(self) -> bool:
        one, abreast = self.costs(self.loop.body)
        for s in {s.array: s for s in self.rows}.values():
            abreast += PLACE * TRIPS ** (len(s.index) - 1)
        return abreast < WORTH * one

    def costs(self, block: Block) -> tuple[float, float]:
        """What a block costs in an iteration by itself, and its part of the cost of all that run side by side."""
        one = abreast = 0.0
        for s in block:
            if isinstance(s, For):
                a, b = self.costs(s.body)
                trips = TRIPS if isinstance(s.low, str) or isinstance(s.high, str) else max(s.high - s.low, 0)
                if are_independent(s, self.memory):
                    is_short = any(x in self.moving for x in (s.low, s.high))
                    a /= SHORT if is_short else VECTORISED
                one, abreast = one + trips * (1 + a), abreast + trips * (1 / WIDTH + b)
                continue
            for part in blocks_of(s):
                a, b = self.costs(part)
                one, abreast = one + a, abreast + b
            a, b = self.cost(s)
            one, abreast = one + a, abreast + b
        return one, abreast

    def cost(self, s: Statement) -> tuple[float, float]:
        if isinstance(s, Op):
            cost = CALL if is_expensive(s.fn) else 1.0 if is_cheap(s.fn) else 4.0
            return cost, cost / WIDTH
        if isinstance(s, Load | Store | Increase):
            cost = 3.0 if isinstance(s, Increase) else 1.0
            is_own = self.has_own(s.array)
            if isinstance(s, Load) and any(s is row for row in self.rows):
                return cost, cost / WIDTH
            if any(map(self.has, s.index)) or (s.array in self.names and not is_own):
                return cost, cost * PLACE
            if isinstance(s, Increase) and not is_own:
                return cost, (cost + SUM) / WIDTH
            return cost, cost / WIDTH
        return 1.0, 1 / WIDTH


__all__ = ["WIDTH", "Differing", "run_abreast"]
