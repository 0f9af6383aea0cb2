"""Writes that nobody sees go: zeros that are overwritten, what is stored last and never read, the same value again.

    w = zeros(n)                               w = empty(n)
    for i in …: w[i] += a[i]          →        for i in …: w[i] = a[i]
    for i in …: b[i] += w[i]; w[i] = 0         for i in …: b[i] += w[i]

The shadow of an array that a step of a simulation makes anew is zero at first and at last, and in between each element
of it is mostly added to once.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from retrograde.compiler.alias import Memory, Part, cover, part
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
    Set,
    Statement,
    Store,
    Swap,
    View,
)
from retrograde.compiler.program import Program
from retrograde.compiler.types import Operand
from retrograde.compiler.walks import blocks_of, is_number, names_in, place_of, walk, without


def drop_idle_stores(program: Program) -> None:
    _Stores(program).run()


class Nest(NamedTuple):
    """Where loops touch an array: the loops, and the statements of the innermost body that touch it."""

    loops: tuple[For, ...]
    touching: Block


class _Stores:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.memory = Memory(program)
        self.swapped = {name for s in walk(program.body) if isinstance(s, Swap) for name in names_in(s.targets)}
        self.own: dict[Statement, set[str]] = {}  # the roots that statements touch themselves
        self.touched: dict[Statement, set[str]] = {}  # and with what is nested in them, as long as nothing is dropped
        self.behind: dict[Alloc, int] = {}  # how many statements touch an array behind it, in its block
        self.total = self.count(program.body)

    def run(self) -> None:
        self.program.body = self.of_block(self.program.body)

    def count(self, block: Block) -> Counter[str]:
        """How many statements of a block, with those that are nested in it, touch each root."""
        found: Counter[str] = Counter()
        for s in reversed(block):
            if isinstance(s, Alloc):
                self.behind[s] = found[s.dst]
            found.update(self.roots(s))
            for inner in blocks_of(s):
                found.update(self.count(inner))
        return found

    def of_block(self, block: Block) -> Block:
        for s in block:
            for f in s.blocks:
                setattr(s, f, self.of_block(getattr(s, f)))
        for place, s in enumerate(block):
            if isinstance(s, Alloc) and s.dst not in self.swapped:
                rest = block[place + 1 :]
                if s.zero and self.is_overwritten(s.dst, rest):
                    s.zero = False
                if self.behind[s] == self.total[s.dst]:  # it does not live longer than the block runs
                    rest = self.without_last(s.dst, rest)
                block[place + 1 :] = rest
        return _Line(self.memory).run(block)

    def roots(self, s: Statement) -> set[str]:
        """The roots that a statement touches itself."""
        found = self.own.get(s)
        if found is None:
            found = self.own[s] = set() if type(s) is Alloc else {*self.memory.reads(s), *self.memory.writes(s)}
        return found

    def is_touched(self, root: str, s: Statement) -> bool:
        return root in self.touched_in(s)

    def touched_in(self, s: Statement) -> set[str]:
        if not s.blocks:
            return self.roots(s)
        found = self.touched.get(s)
        if found is None:
            found = self.touched[s] = set()
            for block in blocks_of(s):
                for x in block:
                    found |= self.touched_in(x)
        return found

    # --- zeros that are overwritten --------------------------------------------------------------------------------

    def is_overwritten(self, root: str, rest: Block) -> bool:
        """Whether every element is written before it is read; if so, first additions to zero become stores."""
        parts: list[Part] = []
        sums: list[tuple[Block, Increase]] = []
        for s in rest:
            if not self.is_touched(root, s):
                continue
            nest = self.nest(root, s)
            if nest is None:
                return False
            first = nest.touching[0]
            if not isinstance(first, Store | Increase) or not _are_of_one_element(nest):
                return False
            reached = part(self.memory, first.array, first.index, nest.loops)
            if isinstance(first, Increase):
                if any(reached.meets(p) for p in parts):
                    return False
                sums.append((nest.loops[-1].body if nest.loops else rest, first))
            if not reached.is_exact:
                return False
            parts.append(reached)
            if cover(parts):
                for block, x in sums:
                    _replace(block, x)
                self.touched.clear()
                return True
        return False

    def nest(self, root: str, s: Statement) -> Nest | None:
        """The loops in which a statement touches an array, if they do nothing else with it."""
        loops: list[For] = []
        touching = [s]
        while len(touching) == 1 and isinstance(touching[0], For):
            loop = touching[0]
            if loop.parallel:
                return None
            loops.append(loop)
            touching = [x for x in loop.body if self.is_touched(root, x)]
        if not all(isinstance(x, Load | Store | Increase) for x in touching):
            return None
        return Nest(tuple(loops), touching)

    # --- what is stored last ---------------------------------------------------------------------------------------

    def without_last(self, root: str, rest: Block) -> Block:
        """The rest of the block in which an array is made, without stores that nothing reads any more."""
        gone: set[int] = set()
        later: list[Part] = []  # what is read from here on
        for s in reversed(rest):
            if not self.is_touched(root, s):
                continue
            nest = self.nest(root, s)
            if nest is None:
                break
            found = [x for x in nest.touching if isinstance(x, Load | Store | Increase)]
            here = [part(self.memory, x.array, x.index, nest.loops) for x in found if not isinstance(x, Store)]
            for last in _last_of_each_element(nest, found):
                written = part(self.memory, last.array, last.index, nest.loops)
                if isinstance(last, Store) and not any(written.meets(p) for p in later):
                    gone.add(id(last))
            later += here
        if gone:
            self.touched.clear()
        return without(rest, gone) if gone else rest


def _are_of_one_element(nest: Nest) -> bool:
    """Whether all accesses in a body are to one element, another one in each iteration."""
    places = {(x.array, x.index) for x in nest.touching if isinstance(x, Load | Store | Increase)}
    return len(places) == 1 and all(loop.var in next(iter(places))[1] for loop in nest.loops)


def _last_of_each_element(nest: Nest, found: list[Load | Store | Increase]) -> list[Load | Store | Increase]:
    """The last accesses of elements that no other iteration touches, and no other access of the body."""
    if len(found) == 1:
        return found
    columns = list(zip(*(x.index for x in found), strict=True)) if len({x.array for x in found}) == 1 else []
    is_one_row = all(any(set(column) == {loop.var} for column in columns) for loop in nest.loops)
    are_apart = all(len(set(c)) == 1 or all(type(i) is int and i >= 0 for i in c) for c in columns)
    return list({x.index: x for x in found}.values()) if columns and is_one_row and are_apart else []


def _replace(block: Block, x: Increase) -> None:
    block[place_of(block, x)] = Store(x.array, x.index, x.value, at=x.at)


class _Line:
    """A straight line of statements: a store that is overwritten unread goes, and one of what is there already."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.there: dict[tuple[str, Index], Operand] = {}  # the values of elements in memory
        self.unread: dict[tuple[str, Index], tuple[Store, Operand]] = {}  # with what was there before

    def run(self, block: Block) -> Block:
        gone: set[int] = set()
        out: Block = []
        for s in block:
            if isinstance(s, Load):
                key = s.array, s.index
                self.forget_unread(s.array)
                self.there.setdefault(key, s.dst)
            elif isinstance(s, Store | Increase):
                made = self.of_write(s, gone)
                if made is None:
                    continue
                s = made
            elif not isinstance(s, Op | Get | Set | Add | View):
                self.there.clear()
                self.unread.clear()
            out.append(s)
        return [s for s in out if id(s) not in gone]

    def of_write(self, s: Store | Increase, gone: set[int]) -> Store | Increase | None:
        key = s.array, s.index
        before = self.there.get(key)
        if key in self.unread:
            old, was = self.unread[key]
            if isinstance(s, Store) or is_number(old.value, 0):
                gone.add(id(old))
                before = was
                s = s if isinstance(s, Store) else Store(s.array, s.index, s.value, at=s.at)
        self.forget(s.array)
        if isinstance(s, Store):
            self.there[key] = s.value
            if isinstance(s.value, str) and s.value == before:
                return None
            self.unread[key] = s, before
        return s

    def forget_unread(self, array: str) -> None:
        """An element of the array is read, by whatever name."""
        root = self.memory.root(array)
        self.unread = {key: found for key, found in self.unread.items() if self.memory.root(key[0]) != root}

    def forget(self, array: str) -> None:
        """An element of the array is written."""
        root = self.memory.root(array)
        self.forget_unread(array)
        self.there = {key: value for key, value in self.there.items() if self.memory.root(key[0]) != root}


__all__ = ["drop_idle_stores"]
