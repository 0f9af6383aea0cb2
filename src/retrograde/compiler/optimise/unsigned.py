"""Indices that cannot be negative are unsigned.

For each index that may be negative numba asks whether it counts from the end. In an innermost loop that question costs
more than the access, and keeps the loop from being vectorised. The variables of loops answer it by themselves; what is
computed of them does not. The last pass: nothing looks at indices after it.
"""

from __future__ import annotations

from retrograde.compiler.alias import Memory
from retrograde.compiler.form import (
    Add,
    Alloc,
    Block,
    Call,
    Copy,
    For,
    Get,
    If,
    Increase,
    Load,
    Op,
    Set,
    Statement,
    Store,
    View,
    While,
    Whole,
)
from retrograde.compiler.program import Program
from retrograde.compiler.types import Operand, Type
from retrograde.compiler.walks import defs, uses, walk

UNSIGNED = Type("uint64")
_WRITES = frozenset((Set, Add, Store, Increase))
_BY_ELEMENTS = frozenset((Load, Store, Increase, View, Alloc))


class NonNegative:
    """Which integers of a program are known not to be negative.

    Cells and arrays of its own are taken to hold none until something is found that might put one into them.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.memory = Memory(program)
        everything = walk(program.body)
        self.definitions: dict[str, list[Statement]] = {}
        for s in everything:
            for name in defs(s):
                self.definitions.setdefault(name, []).append(s)
        self.offsets: set[str] = set()  # the variable of a loop around, less where it begins
        self.find_offsets(program.body, {})
        self.names: dict[str, bool] = {}
        writes: list[Statement] = [s for s in everything if type(s) in _WRITES]
        self.cells = {s.cell for s in writes if isinstance(s, Set | Add) and self.is_integer(s.cell)}
        self.arrays = {s.dst for s in everything if type(s) is Alloc and self.is_integer(s.dst)}
        if self.arrays:
            others = [name for s in everything if type(s) not in _BY_ELEMENTS for name in uses(s)]
            self.arrays -= self.memory.roots(others)
        while self.shrunk(writes):
            pass

    def find_offsets(self, block: Block, lows: dict[str, Operand]) -> None:
        for s in block:
            if isinstance(s, Op) and s.fn == "-" and s.args[0] in lows and lows[s.args[0]] == s.args[1]:
                self.offsets.add(s.dst)
            for f in s.blocks:
                self.find_offsets(getattr(s, f), {**lows, s.var: s.low} if isinstance(s, For) else lows)

    def is_integer(self, name: str) -> bool:
        return self.program.types[name].kind in "iu"

    def shrunk(self, writes: list[Statement]) -> bool:
        """Leave out what may get something negative; whether there was any."""
        self.names = {}
        before = len(self.cells) + len(self.arrays)
        for s in writes:
            if isinstance(s, Set | Add):
                if s.cell in self.cells and not self.holds(s.value):
                    self.cells.discard(s.cell)
            elif isinstance(s, Store | Increase):
                root = self.memory.root(s.array)
                if root in self.arrays and not self.holds(s.value):
                    self.arrays.discard(root)
        return len(self.cells) + len(self.arrays) < before

    def holds(self, operand: Operand) -> bool:
        if not isinstance(operand, str):
            return not isinstance(operand, complex) and operand >= 0
        if operand not in self.names:
            self.names[operand] = False  # of itself nothing follows
            made = self.definitions.get(operand, ())
            self.names[operand] = bool(made) and all(self.follows(operand, s) for s in made)
        return self.names[operand]

    def follows(self, name: str, s: Statement) -> bool:
        """Whether what defines a name gives nothing negative."""
        if isinstance(s, For):
            return self.holds(s.low)
        if isinstance(s, Get):
            return s.cell in self.cells
        if isinstance(s, Load):
            return self.memory.root(s.array) in self.arrays
        if not isinstance(s, Op) or not self.is_integer(name):
            return False
        if s.fn in ("size", "shape"):
            return True
        if s.fn == "max":
            return any(map(self.holds, s.args))
        if s.fn == "where":
            return self.holds(s.args[1]) and self.holds(s.args[2])
        if s.fn == "-":
            return name in self.offsets
        return s.fn in ("+", "*", "id", "min") and all(map(self.holds, s.args))


def make_unsigned(program: Program) -> None:
    """Make the computed indices of innermost loops unsigned."""
    known = NonNegative(program)

    def of_block(block: Block) -> None:
        for s in block:
            for f in s.blocks:
                of_block(getattr(s, f))
            if isinstance(s, For) and not any(isinstance(x, For | While | If | Call | Whole | Copy) for x in s.body):
                s.body = of_innermost(s.body)

    def of_innermost(body: Block) -> Block:
        computed = {x.dst for x in body if isinstance(x, Op)}
        unsigned: dict[str, str] = {}
        out: Block = []
        for x in body:
            if isinstance(x, Load | Store | Increase):
                for i in x.index:
                    if isinstance(i, str) and i in computed and i not in unsigned and known.holds(i):
                        unsigned[i] = program.new(i, UNSIGNED)
                        out.append(Op(unsigned[i], "cast:uint64", (i,), at=x.at))
                x.index = tuple(unsigned.get(i, i) if isinstance(i, str) else i for i in x.index)
            out.append(x)
        return out

    of_block(program.body)


__all__ = ["NonNegative", "make_unsigned"]
