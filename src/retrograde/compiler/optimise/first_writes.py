"""What is added to an element that is still zero is stored there: the zero need not be read.

Shadows of arguments come in as zeros, and so do arrays that are made as such. In the first loop that touches such an
array, `x̄[i, 3] += v` finds a zero if no other iteration, and nothing before it in the same one, has touched
that element. Where such stores reach every element, nobody need have put zeros there: an array of the program's own is
made without, and for one that comes in it is noted which lengths its axes must have for that (`Program.filled`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

from retrograde.compiler.alias import Memory, left_out, outward
from retrograde.compiler.form import (
    Alloc,
    Block,
    Fill,
    For,
    If,
    Increase,
    Load,
    Op,
    Slice,
    Statement,
    Store,
    View,
    While,
)
from retrograde.compiler.program import Program
from retrograde.compiler.types import Operand
from retrograde.compiler.walks import blocks_of, uses, walk

MOST = 100
"""Loops that touch an array more often than this are not looked at."""


class Access(NamedTuple):
    """A statement that reads or writes one element.

    Attributes:
        block, place: where the statement stands.
        element: the element, by axes: a number, a name, or None for what is not known.
        loops: the loops around it, the outermost first.
        branches: which arms of branches it stands in, by the ids of these.
    """

    block: Block
    place: int
    element: tuple[Any, ...]
    loops: tuple[For | While, ...]
    branches: dict[int, int]

    @property
    def statement(self) -> Statement:
        return self.block[self.place]


def store_first_writes(program: Program) -> None:
    _FirstWrites(program).of_block(program.body, set(program.zeros))


class _FirstWrites:
    """Attributes:
    makers: the arrays that are zero since they were made, with what made them; None for those that came in.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.memory = Memory(program)
        self.views = {s.dst: s for s in walk(program.body) if isinstance(s, View)}
        self.sizes = {s.dst: s.args for s in program.body if isinstance(s, Op) and s.fn == "shape"}
        self.makers: dict[str, Alloc | None] = dict.fromkeys(program.zeros)
        self.roots: dict[Statement, set[str]] = {}

    def of_block(self, block: Block, zero: set[str]) -> None:
        """Look at a block at whose start some arrays are zero."""
        for s in list(block):
            touched = zero & self.touched(s) if zero else set()
            if isinstance(s, For):
                for root in touched:
                    self.of_loop(s, root)
            zero -= touched
            for inner in blocks_of(s):
                self.of_block(inner, set())
            if isinstance(s, Alloc) and s.zero:
                zero.add(s.dst)
                self.makers[s.dst] = s
            elif isinstance(s, Fill) and s.array == self.memory.root(s.array):
                zero.add(s.array)
                self.makers.pop(s.array, None)

    def touched(self, s: Statement) -> set[str]:
        """The roots of the arrays that a statement, and what is nested in it, may read or write."""
        found = self.roots.get(s)
        if found is None:
            is_access = not (type(s) is View or (isinstance(s, Op) and s.fn == "shape"))
            found = self.roots[s] = self.memory.roots(uses(s)) if is_access else set()
            for inner in blocks_of(s):
                found.update(*map(self.touched, inner))
        return found

    def of_loop(self, loop: For, root: str) -> None:
        accesses: list[Access] = []
        if not self.collect([loop], root, (), {}, accesses) or len(accesses) > MOST:
            return
        for number, access in enumerate(accesses):
            s = access.statement
            if isinstance(s, Increase) and self.is_first(access, accesses[:number], accesses[number + 1 :]):
                access.block[access.place] = Store(s.array, s.index, s.value, at=s.at)
        firsts = [
            access
            for number, access in enumerate(accesses)
            if isinstance(access.statement, Store)
            and not access.branches
            and self.is_first(access, accesses[:number], accesses[number + 1 :])
        ]
        if root in self.makers:
            for lengths in _filled(firsts):
                self.note_filled(root, lengths)

    def note_filled(self, root: str, lengths: tuple[Operand, ...]) -> None:
        """Take notice that a loop writes every element of an array of such a shape before anything reads it."""
        maker = self.makers[root]
        if maker is not None:
            maker.zero &= maker.shape != lengths
            return
        found = [self.sizes.get(n, (n,)) if isinstance(n, str) else (n,) for n in lengths]
        if all(type(f[0]) is int or f[0] in self.program.params for f in found):
            self.program.filled[root] = tuple(found)

    def collect(
        self, block: Block, root: str, loops: tuple[For | While, ...], branches: dict[int, int], found: list[Access]
    ) -> bool:
        """All accesses of an array in a block, in the order of the program; False where they are not all known."""
        for place, s in enumerate(block):
            if isinstance(s, Load | Store | Increase):
                if self.memory.root(s.array) == root:
                    found.append(Access(block, place, self.element_of(s.array, s.index), loops, branches))
            elif isinstance(s, For) and s.parallel:
                if not self.collect_shares(s, root, loops, branches, found):
                    return False
            elif blocks_of(s):
                around = (*loops, s) if isinstance(s, For | While) else loops
                for number, inner in enumerate(blocks_of(s)):
                    here = branches | {id(s): number} if isinstance(s, If) else branches
                    if not self.collect(inner, root, around, here, found):
                        return False
            elif root in self.touched(s) or root in self.memory.writes(s):
                return False
        return True

    def collect_shares(
        self, s: For, root: str, loops: tuple[For | While, ...], branches: dict[int, int], found: list[Access]
    ) -> bool:
        """The same in a loop over threads: all shares of a loop are the loop."""
        for x in s.body:
            if isinstance(x, For) and x.share_of:
                low, high = x.share_of
                whole = For(x.var, low, high, x.body, x.down, at=x.at)
                if not self.collect(x.body, root, (*loops, whole), branches, found):
                    return False
            elif root in self.touched(x) or root in self.memory.writes(x):
                return False
        return True

    def element_of(self, array: str, index: tuple[Any, ...]) -> tuple[Any, ...]:
        """The index, in the root of a view, of an element of the view."""
        found = list(index)
        while array in self.views:
            further, array = outward(self.views[array], found, _shifted), self.views[array].array
            if further is None:
                return ()
            found = further
        return tuple(i if isinstance(i, str) or (type(i) is int and i >= 0) else None for i in found)

    def is_first(self, access: Access, before: list[Access], after: list[Access]) -> bool:
        """Whether each execution of an access finds an element that nothing has touched before."""
        if not all(isinstance(x, For) and self.counts_up(x) and x.var in access.element for x in access.loops):
            return False
        return all(
            _are_apart(access, x) or (_meet_in_one_iteration(access, x) and _are_alternatives(access, x))
            for x in before
        ) and all(_are_apart(access, x) or _meet_in_one_iteration(access, x) for x in after)

    def counts_up(self, loop: For) -> bool:
        """Whether a loop's variable is not negative, so that different values are different places."""
        return self.program.is_size(loop.low)


def _filled(stores: list[Access]) -> Iterator[tuple[Operand, ...]]:
    """The shapes of an array of which some stores write every element, if it has one of them."""
    groups: dict[tuple[Any, ...], set[tuple[int, ...]]] = {}
    for access in stores:
        lengths = {x.var: x.high for x in access.loops if isinstance(x, For) and type(x.low) is int and x.low == 0}
        counters = [i for i in access.element if type(i) is not int]
        if not lengths.keys() >= set(counters) or len(set(counters)) < len(counters):
            continue
        axes = tuple(lengths.get(i) if type(i) is str else None for i in access.element)
        groups.setdefault(axes, set()).add(tuple(i for i in access.element if type(i) is int))
    for axes, places in groups.items():
        counts = [max(i) + 1 for i in zip(*places, strict=True)]
        if len(places) == math.prod(counts):
            rest = iter(counts)
            yield tuple(next(rest) if n is None else n for n in axes)


def _shifted(index: Any, part: Slice) -> Any:
    """The index in an axis of what is at an index in a slice of it; None where it is not known."""
    first = left_out(part)
    if first == 0:
        return index
    is_known = first is not None and type(index) is int and index >= 0
    return first + index if is_known else None


def _are_apart(a: Access, b: Access) -> bool:
    """Whether two accesses never touch the same element."""
    return any(type(i) is int and type(j) is int and i != j for i, j in zip(a.element, b.element, strict=False))


def _meet_in_one_iteration(a: Access, b: Access) -> bool:
    """Whether two accesses touch the same element only in the same iteration of all loops that are around both."""
    common = [x for x, y in zip(a.loops, b.loops, strict=False) if x is y]
    return all(
        any(i == j == x.var for i, j in zip(a.element, b.element, strict=False)) for x in common if isinstance(x, For)
    ) and not any(isinstance(x, While) for x in common)


def _are_alternatives(a: Access, b: Access) -> bool:
    """Whether two accesses stand in different branches of one statement."""
    return any(b.branches.get(s, branch) != branch for s, branch in a.branches.items())
