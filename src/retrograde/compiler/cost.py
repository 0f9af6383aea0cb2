"""What a program costs, roughly: to choose between ways of writing a derivative, not to predict seconds.

The unit is one addition in a loop that is vectorised (some 30 ps). Loops of unknown length count as `TRIPS` iterations.
"""

from __future__ import annotations

from retrograde.compiler.form import (
    Alloc,
    Block,
    Call,
    Copy,
    Fill,
    For,
    If,
    Increase,
    Load,
    Op,
    Pop,
    PopArray,
    Push,
    Statement,
    Store,
    While,
    Whole,
)
from retrograde.compiler.ops import is_cheap, is_expensive
from retrograde.compiler.program import Program
from retrograde.compiler.types import Operand
from retrograde.compiler.walks import blocks_of, walk

TRIPS = 50
EXPENSIVE, MODERATE = 80.0, 4.0
ALLOCATION = 40.0
STACK = 8.0
WHOLE = 2.0 * TRIPS**2
CALL = 10.0 * TRIPS
LARGE = 50 * TRIPS  # elements; arrays from here on do not stay in the cache
FROM_MEMORY = 25.0


def cost(program: Program) -> float:
    """An estimate of the time that a program takes."""
    return _Costs(program).of_block(program.body)


def loops_of(program: Program) -> list[For]:
    """The loops of a program, in its order."""
    return [s for s in walk(program.body) if isinstance(s, For)]


def shares(program: Program) -> list[float]:
    """The part of the cost that each loop has."""
    costs = _Costs(program)
    total = max(costs.of_block(program.body), 1.0)
    times: dict[int, float] = {}

    def count(block: Block, runs: float) -> None:
        for s in block:
            if isinstance(s, For | While):
                times[id(s)] = runs
            inner = runs * (trips(s.low, s.high) if isinstance(s, For) else TRIPS if isinstance(s, While) else 1.0)
            for part in blocks_of(s):
                count(part, inner)

    count(program.body, 1.0)
    return [times[id(s)] * costs.of(s) / total for s in loops_of(program)]


class _Costs:
    def __init__(self, program: Program) -> None:
        self.program = program

    def of_block(self, block: Block) -> float:
        return sum(map(self.of, block))

    def of(self, s: Statement) -> float:
        if isinstance(s, Op):
            return EXPENSIVE if is_expensive(s.fn) else 1.0 if is_cheap(s.fn) else MODERATE
        if isinstance(s, Load | Store):
            return self.access(s.array)
        if isinstance(s, Increase):
            return 2 * self.access(s.array)
        if isinstance(s, For):
            return trips(s.low, s.high) * (1.0 + self.of_block(s.body))
        if isinstance(s, While):
            return TRIPS * (1.0 + self.of_block(s.test) + self.of_block(s.body))
        if isinstance(s, If):
            return 1.0 + max(self.of_block(s.then), self.of_block(s.orelse))
        if isinstance(s, Alloc):
            return ALLOCATION + (self.size(s.dst) * self.access(s.dst) if s.zero else 0.0)
        if isinstance(s, Copy):
            return ALLOCATION + 2 * self.size(s.dst) * self.access(s.dst)
        if isinstance(s, Fill):
            return self.size(s.array) * self.access(s.array)
        if isinstance(s, Whole):
            return WHOLE
        if isinstance(s, Call):
            return CALL
        if isinstance(s, Push | Pop | PopArray):
            return STACK
        return sum(map(self.of_block, blocks_of(s)))

    def size(self, array: str) -> float:
        found = 1.0
        for n in self.program.dims.get(array, ()):
            found *= TRIPS if isinstance(n, str) else n
        return found

    def access(self, array: str) -> float:
        """Reading or writing an element."""
        return FROM_MEMORY if self.size(array) >= LARGE else 1.0


def trips(low: Operand, high: Operand) -> float:
    """How often a loop runs."""
    return TRIPS if isinstance(low, str) or isinstance(high, str) else max(high - low, 0)
