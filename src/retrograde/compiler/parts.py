"""What many directions share, computed once: a program in two parts, one for all seeds and one for each.

    s = …   for i: x[i] = f(s, i)                    for all:    s = …   for i: x[i] = f(s, i)          → s, x
    for i: x_dot[i] = g(x[i]) * s_dot[i]             for each:   s, x →  for i: x_dot[i] = g(x[i]) * s_dot[i]

The second part is the program itself, in which arrays that depend on no seed, and are read only behind all that writes
them, come in from outside, so that nothing is left that computes them. A loop that does both kinds of work is there in
both parts, and does one of them in each; what an iteration hands on to its derivative is computed again.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from retrograde.compiler.cost import cost
from retrograde.compiler.dependence import Dependence
from retrograde.compiler.form import Add, Alloc, Block, Copy, Fill, Get, If, Increase, Return, Set, Store, Swap
from retrograde.compiler.optimise.dead import drop_dead
from retrograde.compiler.program import Program
from retrograde.compiler.walks import uses, walk, without

WORTH = 0.8
"""The part of a program's cost that its part for each seed may have, to be worth a program of its own."""


class Parts(NamedTuple):
    """A program in two parts.

    Attributes:
        shared: takes the parameters that are no seeds, and returns the results that depend on none, and what is kept.
        each: takes all parameters and what is kept, and returns the other results.
        kept: how many arrays and numbers are kept; these are the last results, and the last parameters.
        is_shared: for each result of the program whether it depends on no seed.
    """

    shared: Program
    each: Program
    kept: int
    is_shared: tuple[bool, ...]


def in_parts(program: Program, seeds: Collection[str], anyway: bool = False) -> Parts | None:
    """The program for some values of all parameters but the seeds, and for many of these; None where that cannot be.

    Args:
        seeds: parameters that decide what is done nowhere.
        anyway: also where it saves little.
    """
    dependence = Dependence(program, seeds)
    last = program.body[-1] if program.body else None
    returns = [s for s in walk(program.body) if isinstance(s, Return)]
    if not dependence.is_separable or returns != [last] or not isinstance(last, Return):
        return None
    if any(not dependence.has(p) for p in dependence.memory.all_writes(program.body).intersection(program.params)):
        return None  # each would find what the one before has written
    kept = _Keeping(program, dependence)
    each = kept.each()
    if not anyway and (not kept.roots or cost(each) > WORTH * cost(program)):
        return None
    return Parts(kept.shared(last), each, len(kept.roots), tuple(not dependence.has(v) for v in last.values))


class _Keeping:
    """Attributes:
    roots: the arrays and cells that are kept.
    """

    def __init__(self, program: Program, dependence: Dependence) -> None:
        self.program = program
        self.dependence = dependence
        self.memory = dependence.memory
        self.written: dict[str, int] = {}  # the place of the last of the outermost statements that write a root
        self.roots = sorted(self.candidates())

    def candidates(self) -> set[str]:
        """Arrays that are made once, outside of loops, and cells, none of which depends on a seed."""
        program, memory = self.program, self.memory
        made = {s.dst for s in program.body if isinstance(s, Alloc | Copy)}
        found = set[str]()
        others = set[str]()
        for place, outermost in enumerate(program.body):
            for s in walk([outermost]):
                for root in memory.writes(s):
                    self.written[root] = place
                    is_known = isinstance(s, Store | Increase | Fill | Set | Add) or (
                        isinstance(s, Alloc | Copy) and s is outermost
                    )
                    (found if is_known and (root in made or root.startswith("$")) else others).add(root)
                if isinstance(s, Swap):
                    others.update(memory.reads(s))
        return {root for root in found - others if root not in self.dependence.nodes}

    def each(self) -> Program:
        """The part for each seed, with as much kept as can be."""
        while True:
            made = self.program.derived(f"{self.program.name}_rest")
            places = {id(s): place for place, s in enumerate(made.body)}
            gone = {id(s) for s in walk(made.body) if not self.memory.writes(s).isdisjoint(self.roots)}
            made.body = without(made.body, gone)
            last = made.body[-1]
            assert isinstance(last, Return)
            last.values = tuple(v for v in last.values if self.dependence.has(v))
            coming = {root: self.coming(made, root) for root in self.roots}
            made.params += coming.values()
            drop_dead(made, keep_sizes=True)
            read_at: dict[str, int] = {}
            for outermost in reversed(made.body):
                for s in walk([outermost]):
                    read_at.update(dict.fromkeys(self.memory.reads(s), places[id(outermost)]))
            late = [root for root in self.roots if read_at.get(root, len(places)) > self.written[root]]
            if len(late) == len(self.roots):
                return self.without_idle(made, coming)
            self.roots = late

    def coming(self, made: Program, root: str) -> str:
        """The parameter by which a root comes in: an array under its own name."""
        if not root.startswith("$"):
            return root
        cell = root[1:]
        return made.new(f"{cell}_kept", made.types[cell])

    def without_idle(self, made: Program, coming: dict[str, str]) -> Program:
        """The part without parameters that it does not use, and with cells that hold what comes in."""
        used = set[str]()
        for s in walk(made.body):
            used.update(self.memory.reads(s))
            used.update(self.memory.root(name) for name in uses(s))
        idle = {root for root in self.roots if root not in used}
        self.roots = [root for root in self.roots if root not in idle]
        gone = {coming[root] for root in idle}
        made.params = [p for p in made.params if p not in gone]
        cells: Block = [Set(root[1:], coming[root]) for root in self.roots if root.startswith("$")]
        made.body = cells + made.body
        return made

    def shared(self, last: Return) -> Program:
        """The part for all seeds."""
        program, dependence = self.program, self.dependence
        made = program.derived(f"{program.name}_shared")
        body = self.without_shortcuts(made.body)
        made.body = without(body, {id(s) for s in walk(body) if dependence.of(s) or isinstance(s, Return)})
        made.params = [p for p in program.params if not dependence.has(p)]
        made.zeros = program.zeros.intersection(made.params)
        values = [v for v in last.values if not dependence.has(v)]
        for root in self.roots:
            if root.startswith("$"):
                value = made.new(root[1:], made.types[root[1:]])
                made.body.append(Get(value, root[1:]))
                values.append(value)
            else:
                values.append(root)
        made.body.append(Return(tuple(values), at=last.at))
        drop_dead(made, keep_sizes=True)
        return made

    def without_shortcuts(self, block: Block) -> Block:
        """A block in which what a seed may leave out is always done."""
        out: Block = []
        for s in block:
            for f in s.blocks:
                setattr(s, f, self.without_shortcuts(getattr(s, f)))
            out += s.then if isinstance(s, If) and self.dependence.has(s.cond) else [s]
        return out


__all__ = ["Parts", "in_parts"]
