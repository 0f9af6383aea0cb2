"""An array whose elements are read once each is never stored: they are computed where they are read.

    for i in …: w[i] = a[i] + h * b[i]                 for j in …: z[j] = x[j] * (a[j] + h * b[j])
    for j in …: z[j] = x[j] * w[j]              →

So a stage of a simulation needs no array for its argument, and its derivative no shadow of one: less to write, to clear
and to read again. Costly elements move into straight loops only, which can be vectorised as well as their own.
"""

from __future__ import annotations

from typing import NamedTuple

from retrograde.compiler.alias import Memory, left_out, outward
from retrograde.compiler.form import (
    Add,
    Alloc,
    Block,
    For,
    Get,
    Increase,
    Index,
    Load,
    Op,
    Slice,
    Statement,
    Store,
    View,
)
from retrograde.compiler.ops import is_expensive
from retrograde.compiler.optimise.unsigned import NonNegative
from retrograde.compiler.program import Program
from retrograde.compiler.reexecute import renaming
from retrograde.compiler.types import INT, Operand
from retrograde.compiler.walks import blocks_of, clone, place_of, uses, walk

MOST_OPERATIONS = 60


class Maker(NamedTuple):
    """A nest of loops that writes every element of an array: the loops, and their bodies without the store."""

    array: str
    loops: tuple[For, ...]
    body: Block
    value: Operand


class Reader(NamedTuple):
    """Where an element is read: the load, the loops around it, its block, and its place in the array itself.

    `made` computes that place.
    """

    load: Load
    loops: tuple[For, ...]
    block: Block
    place: Index
    made: Block


def inline(program: Program) -> bool:
    """Compute elements where they are read. Says if there are any of that kind."""
    return _Inlining(program).run()


class _Inlining:
    def __init__(self, program: Program) -> None:
        self.program = program

    def run(self) -> bool:
        found = False
        while self.look():
            found = True
        return found

    def look(self) -> bool:
        """Inline the arrays that are found in one look over the program; whether there were any."""
        program = self.program
        self.memory = Memory(program)
        self.known = NonNegative(program)
        self.views = {s.dst: s for s in walk(program.body) if isinstance(s, View)}
        self.users: dict[str, Block] = {}
        for s in walk(program.body):
            if isinstance(s, View | Alloc) or (isinstance(s, Op) and s.fn == "shape"):
                continue
            for name in uses(s):
                if self.memory.is_array(name):
                    self.users.setdefault(self.memory.root(name), []).append(s)
        return self.in_block(program.body)

    def in_block(self, block: Block) -> bool:
        for place, s in enumerate(block):
            if any(self.in_block(inner) for inner in blocks_of(s)):
                return True
            maker = self.maker(s)
            if maker is not None and self.try_inline(maker, block, place):
                return True
        return False

    def maker(self, s: Statement) -> Maker | None:
        loops: list[For] = []
        body: Block = []
        while isinstance(s, For) and s.body:
            loops.append(s)
            *before, s = s.body
            body += before
        if not loops or not isinstance(s, Store):
            return None
        store = s
        array = store.array
        if array in self.views or array in self.program.params or len(self.users[array]) != 2:
            return None
        is_whole = len(store.index) == len(loops) and all(
            i == loop.var and loop.low == 0 and loop.high == n and not loop.parallel
            for i, loop, n in zip(store.index, loops, self.program.dims[array], strict=True)
        )
        is_simple = len(body) <= MOST_OPERATIONS and all(isinstance(x, Load | Get | Op) for x in body)
        same_type = self.program.type_of(store.value) == self.program.types[array].element
        return Maker(array, tuple(loops), body, store.value) if is_whole and is_simple and same_type else None

    def try_inline(self, maker: Maker, block: Block, place: int) -> bool:
        load = next((s for s in self.users[maker.array] if not isinstance(s, Store)), None)
        for later in range(place + 1, len(block)):
            if isinstance(load, Load) and any(x is load for x in walk([block[later]])):
                reader = self.reader(load, maker.array, block[later])
                if reader is None or not self.stays_fast(maker, reader):
                    return False
                if self.is_unchanged(maker, reader, block[place + 1 : later], block[later]):
                    self.move(maker, reader)
                    return True
        return False

    def reader(self, load: Load, array: str, s: Statement) -> Reader | None:
        """How an element is read, if each element is read at most once."""
        loops: list[For] = []
        while isinstance(s, For) and not s.parallel:
            loops.append(s)
            if any(x is load for x in s.body):
                break
            s = next(x for x in s.body if any(y is load for y in walk([x])))
        if not loops or not any(x is load for x in loops[-1].body):
            return None
        variables = [loop.var for loop in loops]
        if sorted(i for i in load.index if isinstance(i, str)) != sorted(variables):
            return None
        if not all(self.known.holds(i) for i in load.index):
            return None
        made: Block = []
        index: Index | None = load.index
        name = load.array
        while index is not None and name != array:
            view = self.views[name]
            index, name = self.outward(view, index, made), view.array
        return None if index is None else Reader(load, tuple(loops), loops[-1].body, index, made)

    def outward(self, view: View, index: Index, made: Block) -> Index | None:
        """The index in an array of an element of a view of it; what computes it is added to `made`."""
        for i in view.index:
            if isinstance(i, Slice):
                if left_out(i) is None:
                    return None
            elif i is not None and (self.memory.is_array(i) or isinstance(i, tuple) or not self.known.holds(i)):
                return None
        found = outward(view, index, lambda i, s: self.shifted(i, left_out(s) or 0, made))
        return None if found is None else tuple(found)

    def shifted(self, i: Operand, by: int, made: Block) -> Operand:
        if by == 0 or not isinstance(i, str):
            return i + by if not isinstance(i, str) else i
        name = self.program.new(i, INT)
        made.append(Op(name, "+", (i, by)))
        return name

    def is_unchanged(self, maker: Maker, reader: Reader, between: Block, consumer: Statement) -> bool:
        """Whether what elements are made of is the same where they are read.

        The loops that read may write there, if each iteration writes only what it has read itself.
        """
        memory = self.memory
        read = memory.all_reads(maker.body)
        if read & memory.all_writes(between):
            return False
        names = self.names(maker, reader)
        ours = {
            (x.array, tuple(names.get(i, i) if isinstance(i, str) else i for i in x.index))
            for x in maker.body
            if isinstance(x, Load)
        }
        place = place_of(reader.block, reader.load)
        after = {id(x) for x in reader.block[place + 1 :]}
        for s in walk([consumer]):
            met = read & memory.writes(s)
            if not met:
                continue
            if not isinstance(s, Store | Increase) or id(s) not in after:
                return False
            root = memory.root(s.array)
            if any(memory.root(array) == root and (array, index) != (s.array, s.index) for array, index in ours):
                return False
            if not all(loop.var in s.index for loop in reader.loops):
                return False
        return True

    def stays_fast(self, maker: Maker, reader: Reader) -> bool:
        """Whether costly elements are as cheap where they are read."""
        if not any(isinstance(x, Op) and is_expensive(x.fn) for x in maker.body):
            return True
        return all(isinstance(x, Op | Load | Get | Store | Increase | Add) for x in reader.block)

    def names(self, maker: Maker, reader: Reader) -> dict[str, Operand]:
        return {loop.var: i for loop, i in zip(maker.loops, reader.place, strict=True)}

    def move(self, maker: Maker, reader: Reader) -> None:
        """Compute an element in place of reading it."""
        own = renaming(self.program, maker.body)
        names: dict[str, Operand] = {**own, **self.names(maker, reader)}
        body = clone(maker.body, lambda n: names.get(n, n), lambda n: own[n])
        value = names.get(maker.value, maker.value) if isinstance(maker.value, str) else maker.value
        place = place_of(reader.block, reader.load)
        reader.block[place : place + 1] = [
            *reader.made,
            *body,
            Op(reader.load.dst, "id", (value,), at=reader.load.at),
        ]
        maker.loops[-1].body.clear()


__all__ = ["inline"]
