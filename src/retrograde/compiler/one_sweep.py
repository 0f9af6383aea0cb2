"""One sweep where two would do the same work twice.

The forward sweep runs a loop, a branch or a call; its adjoint, in the reverse sweep, runs it again if it is a loop
whose iterations are not taped, or a procedure's pullback, which computes the procedure's value as well. Where nothing
stands against it, the two become one statement: what makes the cotangents that the adjoint starts from runs before it,
and what the forward sweep makes of its results behind it. That is so where the rest of the program is linear in those
results, or only the value needs it: sums over points, a determinant by minors, an integral by halving.

All statements of a block, of both sweeps, are brought into an order in which each stands behind what it depends on. A
pair is joined if there still is such an order with the two as one.
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

from retrograde.compiler.alias import Memory
from retrograde.compiler.form import (
    Add,
    Block,
    Call,
    For,
    Get,
    If,
    Increase,
    Load,
    Op,
    Pop,
    Raise,
    Return,
    Statement,
    Store,
    Swap,
    View,
    While,
    Whole,
)
from retrograde.compiler.program import Program
from retrograde.compiler.walks import blocks_of, defs, names_in, uses, walk

_FIXED = {Swap, Return}
_FETCHING = {Load, Get, Pop, Call, Whole}
_UNKNOWN = {While, Call, Whole}
_PLACED = {Load, Store, Increase, View}
READ, ADD, WRITE = "read", "add", "write"  # reads have no order among themselves, and sums have none


class Pair(NamedTuple):
    """A statement of the forward sweep, and its adjoint, which does the same work as well.

    `between` puts back the state from which the adjoint starts; joined, it finds that state there.
    """

    first: Statement
    adjoint: Statement
    between: tuple[Statement, ...] = ()


class Facts(NamedTuple):
    """What a statement, with all that is nested in it, defines and uses from outside, and of what kinds it is.

    Attributes:
        needs_guards: whether it may touch an array beyond its ends if what raises before it had not run. Places that
            are counted by loops are as right before as behind; those that are found in data may be wrong.
    """

    own: set[str]
    used: set[str]
    kinds: set[type]
    needs_guards: bool


Access = dict[str, str]
"""How roots are touched: READ, ADD or WRITE."""


def in_one_sweep(program: Program, pairs: list[Pair]) -> set[Statement]:
    """Join the pairs that can be joined. Returns the adjoints that were."""
    joining = _Joining(program, pairs)
    program.body = joining.joined(program.body)
    return joining.done


class _Joining:
    """Attributes:
    pairs: by their first statements.
    done: the adjoints that are joined, or taken to be in an attempt.
    """

    def __init__(self, program: Program, pairs: list[Pair]) -> None:
        self.memory = Memory(program)
        self.procedures = program.procedures
        self.pairs = {pair.first: pair for pair in pairs}
        self.firsts = {pair.adjoint: pair.first for pair in pairs}
        self.dropped = {s: pair.adjoint for pair in pairs for s in pair.between}
        self.done: set[Statement] = set()
        self.from_data = _from_data(program)
        self.facts: dict[Statement, Facts] = {}
        self.parts: dict[Statement, tuple[Access, Block]] = {}

    def joined(self, block: Block) -> Block:
        """A block in which those of the pairs are joined that can be."""
        pairs = self.pairs_in(block)
        here = set(block) if pairs else set()
        made: dict[Statement, Statement] = {}  # what stands for a pair, by its first statement
        order = block
        for pair in pairs:
            if pair.adjoint in here:
                for all_inside in (True, False) if isinstance(pair.first, If) else (False,):
                    found = self.attempt(pair, block, all_inside)
                    if found is not None:
                        made[pair.first], order = found
                        break
        return [made[s] if s in made else self.inside(s) for s in order]

    def pairs_in(self, block: Block) -> list[Pair]:
        """Those that a block has; branches count if there are some in them."""
        pairs = [self.pairs[s] for s in block if s in self.pairs]
        return [p for p in pairs if not isinstance(p.first, If) or any(map(self.pairs_in, blocks_of(p.first)))]

    def attempt(self, pair: Pair, block: Block, all_inside: bool) -> tuple[Statement, Block] | None:
        """Join a pair. Returns what stands for it, and the order of the block, or None if that cannot be.

        Args:
            all_inside: for branches: if the pairs in them can be joined as well, which leaves more freedom here.
        """
        before = set(self.done)
        self.done.add(pair.adjoint)
        hidden = self.adjoints_inside(pair.first) if all_inside else set()
        self.done |= hidden
        order = _Order(block, self).sorted()
        self.done -= hidden
        if order is not None:
            one = self.one(pair)
            if hidden <= self.done:
                return one, [block[i] for i in order]
        self.done = before
        return None

    def adjoints_inside(self, s: Statement) -> set[Statement]:
        pairs = [pair for inner in blocks_of(s) for pair in self.pairs_in(inner)]
        return {p.adjoint for p in pairs}.union(
            *(self.adjoints_inside(p.first) for p in pairs if isinstance(p.first, If))
        )

    def inside(self, s: Statement) -> Statement:
        """A statement that is not joined, with what is inside of it."""
        if isinstance(s, For):
            s.body = self.joined(s.body)
        elif isinstance(s, If):
            s.then, s.orelse = self.joined(s.then), self.joined(s.orelse)
        return s

    def one(self, pair: Pair) -> Statement:
        first, adjoint = pair.first, pair.adjoint
        if isinstance(first, If) and isinstance(adjoint, If):
            then, orelse = first.then + adjoint.then, first.orelse + adjoint.orelse
            return If(first.cond, self.joined(then), self.joined(orelse), at=first.at)
        if isinstance(first, Call) and isinstance(adjoint, Call):
            dsts = (*first.dsts, *adjoint.dsts[len(first.dsts) :])
            return Call(dsts, adjoint.fn, (*first.args, *adjoint.args[len(first.args) :]), at=first.at)
        assert isinstance(adjoint, For)
        return self.inside(adjoint)

    # --- what statements need of one another -----------------------------------------------------------------------

    def is_gone(self, s: Statement) -> bool:
        return s in self.dropped and self.dropped[s] in self.done

    def facts_of(self, s: Statement) -> Facts:
        found = self.facts.get(s)
        if found is None:
            inside = walk([s])
            own = {name for x in inside for name in defs(x)}
            used = {name for x in inside for name in uses(x)} - own
            found = self.facts[s] = Facts(own, used, set(map(type, inside)), any(map(self.may_go_astray, inside)))
        return found

    def may_go_astray(self, x: Statement) -> bool:
        return type(x) in _UNKNOWN or (type(x) in _PLACED and not self.from_data.isdisjoint(names_in(x.index)))  # type: ignore[attr-defined]

    def access(self, s: Statement) -> Access:
        """How a statement, with all that is nested in it, touches memory."""
        if self.is_gone(s):
            return {}
        found, open = self.parts_of(s)
        is_one = s in self.done and not isinstance(s, If)
        if open or is_one:
            found = dict(found)
            for x in open:
                _merge(found, self.access(x))
            for root in self.access(self.firsts[s]) if is_one else ():
                found.pop(root, None)  # it is touched once, where the first of the pair does
        return found

    def parts_of(self, s: Statement) -> tuple[Access, Block]:
        """How a statement touches memory whatever is joined, and which of those in it may do more or less."""
        found = self.parts.get(s)
        if found is None:
            certain, open = self.own_access(s), list[Statement]()
            for x in [x for block in blocks_of(s) for x in block]:
                inner, is_open = self.parts_of(x) if x.blocks else (self.own_access(x), [])
                if is_open or x in self.firsts or x in self.dropped:
                    open.append(x)
                elif inner:
                    _merge(certain, inner)
            found = self.parts[s] = certain, open
        return found

    def own_access(self, s: Statement) -> Access:
        memory = self.memory
        reads, writes, adds = memory.reads(s), memory.writes(s), set[str]()
        if not (reads or writes):
            return {}
        if isinstance(s, Add | Increase):
            writes, adds = adds, writes
        elif isinstance(s, Call):
            callee = self.procedures[s.fn]
            adds = {memory.root(s.args[i]) for i in callee.adds}
            reads = {memory.root(a) for i, a in enumerate(s.args) if memory.is_array(a) and i not in callee.adds}
            writes = {memory.root(s.args[i]) for i in callee.effects - callee.adds}
            writes |= {name for name in s.dsts if memory.is_array(name)}
        shared = (reads & adds) | writes
        return dict.fromkeys(reads, READ) | dict.fromkeys(adds, ADD) | dict.fromkeys(shared, WRITE)


def _from_data(program: Program) -> set[str]:
    """The integers that a program reads from memory, and what it makes of them."""
    found: set[str] = set()
    for s in walk(program.body):
        if type(s) in _FETCHING or (type(s) is Op and not found.isdisjoint(s.args)):
            found.update(name for name in defs(s) if program.types[name].kind in "iu")
    return found


def _merge(into: Access, more: Access) -> None:
    for root, kind in more.items():
        into[root] = kind if into.get(root, kind) == kind else WRITE


class _Order:
    """Which statements of a block stand behind which others, where some are one."""

    def __init__(self, block: Block, joining: _Joining) -> None:
        places = {s: i for i, s in enumerate(block)}
        self.one = list(range(len(block)))  # each statement, or the first of those that it is one with
        for i, s in enumerate(block):
            pair = joining.pairs.get(s)
            if pair is not None and pair.adjoint in joining.done and pair.adjoint in places:
                for x in (*pair.between, pair.adjoint):
                    self.one[places[x]] = i
        self.before: list[set[int]] = [set() for _ in block]
        maker: dict[str, int] = {}
        # How a root was touched last, by which statements, and by which before that in another manner.
        touched: dict[str, tuple[str, list[int], list[int]]] = {}
        fixed: list[int] = []  # what gives arrays other names, or ends the program
        raising: list[int] = []
        is_guarded: list[bool] = []
        for i, s in enumerate(block):
            if joining.is_gone(s):
                is_guarded.append(False)
                continue
            before = self.before[i]
            facts = joining.facts_of(s)
            before.update(maker[name] for name in facts.used if name in maker)
            for root, kind in joining.access(s).items():
                last, now, then = touched.get(root, (kind, [], []))
                if kind != last or kind == WRITE:
                    now, then = [], now
                before.update(then)
                now.append(i)
                touched[root] = kind, now, then
            maker.update(dict.fromkeys(facts.own, i))
            ends = not _FIXED.isdisjoint(facts.kinds)
            if ends:
                before.update(range(i))
            before.update(fixed[-1:])
            # What may raise guards what comes behind it; where a pair is one, it does so in the place of its first.
            is_own = self.one[i] == i
            may_raise = is_own and Raise in facts.kinds
            is_guarded.append(is_own and (may_raise or facts.needs_guards))
            if may_raise:
                before.update(j for j in range(i) if is_guarded[j])
            elif is_guarded[-1]:
                before.update(raising[-1:])
            if ends:
                fixed.append(i)
            if may_raise:
                raising.append(i)

    def sorted(self) -> list[int] | None:
        """An order, as near to that of the program as can be; None if there is none."""
        waiting: dict[int, set[int]] = {i: set() for i in set(self.one)}
        behind: dict[int, set[int]] = {i: set() for i in waiting}
        for i, before in enumerate(self.before):
            here = self.one[i]
            for j in before:
                there = self.one[j]
                if there != here:
                    waiting[here].add(there)
                    behind[there].add(here)
        ready = [i for i, before in waiting.items() if not before]
        heapq.heapify(ready)
        order: list[int] = []
        while ready:
            i = heapq.heappop(ready)
            order.append(i)
            for j in behind[i]:
                waiting[j].discard(i)
                if not waiting[j]:
                    heapq.heappush(ready, j)
        return order if len(order) == len(waiting) else None
