"""Several directions or cotangents in one program: what depends on them has a copy for each, all else is shared.

A derivative program depends on its seeds only in its derivative part: they decide no branch, no number of iterations
and no index. So each temp, cell and array that depends on a seed becomes one for each lane, under a name of its own,
and the loops and branches around hold all of them. Elementary functions, searches, tapes of values, reads of the
arguments: all that is done once. Arrays keep their layout, so that loops are vectorised as they were.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

from retrograde.compiler.alias import Memory
from retrograde.compiler.cost import cost
from retrograde.compiler.examples import Weights
from retrograde.compiler.form import (
    BOOL,
    Block,
    Call,
    For,
    If,
    Op,
    Operand,
    Program,
    Return,
    Statement,
    Swap,
    View,
    While,
    clone,
    defs,
    names_in,
    uses,
    walk,
)


class Laned(NamedTuple):
    """A program of several lanes.

    Attributes:
        program: the program.
        params, results: for each of its parameters and results the number of that of the original, and the lane of
            which it is; None for what they share.
    """

    program: Program
    params: list[tuple[int, int | None]]
    results: list[tuple[int, int | None]]


class Dependence:
    """What in a program depends on some of its parameters, whatever their values do.

    Attributes:
        nodes: names of temps, cells (with `$`) and roots of arrays.
        is_separable: whether all of it can be done for several seeds at once.
    """

    def __init__(self, program: Program, seeds: Collection[str]) -> None:
        self.program = program
        self.memory = Memory(program)
        self.nodes = set(seeds)
        following: dict[str, set[str]] = {}
        for s in walk(program.body):
            for source, target in self.edges(s):
                following.setdefault(source, set()).add(target)
        todo = list(self.nodes)
        while todo:
            for target in following.get(todo.pop(), set()) - self.nodes:
                self.nodes.add(target)
                todo.append(target)
        self.is_separable = all(map(self.separates, walk(program.body)))

    def node(self, name: str) -> str:
        return self.memory.root(name) if self.memory.is_array(name) else name

    def edges(self, s: Statement) -> Iterator[tuple[str, str]]:
        """Pairs (what is read, what is made of it)."""
        if isinstance(s, For | While | If | Return | View) or (isinstance(s, Op) and s.fn == "shape"):
            return
        if isinstance(s, Swap):
            yield from ((self.node(v), self.node(t)) for t, v in zip(s.targets, s.sources, strict=True))
            return
        targets = {*map(self.node, defs(s)), *self.memory.writes(s)}
        sources = {*map(self.node, uses(s)), *self.memory.reads(s)}
        yield from ((source, target) for source in sources for target in targets)

    def has(self, operand: Operand) -> bool:
        return isinstance(operand, str) and self.node(operand) in self.nodes

    def of(self, s: Statement) -> bool:
        """Whether a statement makes or changes something that depends."""
        return any(self.node(name) in self.nodes for name in defs(s)) or not self.nodes.isdisjoint(
            self.memory.writes(s)
        )

    def separates(self, s: Statement) -> bool:
        """Whether a statement decides nothing by what depends."""
        if isinstance(s, For):
            return not (self.has(s.low) or self.has(s.high) or self.has(s.var))
        if isinstance(s, While):
            return not self.has(s.cond)
        if isinstance(s, If):
            return s.shortcut or not self.has(s.cond)
        if isinstance(s, Call):
            return not self.of(s) and not any(map(self.has, uses(s)))
        places = names_in((getattr(s, "index", ()), getattr(s, "shape", ())))
        return not any(map(self.has, places))


class _Lanes:
    """Writes the program of several lanes; the first has the names of the original."""

    def __init__(self, program: Program, dependence: Dependence, count: int) -> None:
        self.program = program
        self.dependence = dependence
        self.count = count
        self.names: list[dict[str, str]] = [{} for _ in range(count)]

    def name(self, name: str, lane: int) -> str:
        """What stands for a temp or an array in a lane."""
        return self.renamed(name, lane) if self.dependence.has(name) else name

    def cell(self, name: str, lane: int) -> str:
        return self.renamed(name, lane) if f"${name}" in self.dependence.nodes else name

    def renamed(self, name: str, lane: int) -> str:
        if lane == 0:
            return name
        names = self.names[lane]
        if name not in names:
            names[name] = self.program.new(name, self.program.types[name], self.program.dims.get(name))
        return names[name]

    def block(self, block: Block) -> Block:
        made: Block = []
        together: Block = []  # statements that are done lane by lane
        for s in block:
            if self.dependence.of(s) and not isinstance(s, Swap):
                together.append(s)
                continue
            made += self.in_each(together)
            together = []
            made += self.shared(s)
        return made + self.in_each(together)

    def in_each(self, block: Block) -> Block:
        return [
            s
            for lane in range(self.count if block else 0)
            for s in clone(
                block,
                lambda name, lane=lane: self.name(name, lane),  # type: ignore[misc]
                lambda name, lane=lane: self.name(name, lane),  # type: ignore[misc]
                lambda name, lane=lane: self.cell(name, lane),  # type: ignore[misc]
            )
        ]

    def shared(self, s: Statement) -> Block:
        for f in s.blocks:
            setattr(s, f, self.block(getattr(s, f)))
        if isinstance(s, If) and self.dependence.has(s.cond):
            made, s.cond = self.any_of(s)
            return [*made, s]
        if isinstance(s, Swap):
            pairs = [pair for t, v in zip(s.targets, s.sources, strict=True) for pair in self.copies((t, v))]
            s.targets, s.sources = tuple(t for t, _ in pairs), tuple(v for _, v in pairs)
        elif isinstance(s, Return):
            s.values = tuple(v for value in s.values for (v,) in self.copies((value,)))
        return [s]

    def any_of(self, s: If) -> tuple[Block, str]:
        """Whether a condition holds in any lane; a shortcut may run where it need not."""
        made: Block = []
        found = s.cond
        for lane in range(1, self.count):
            either = self.program.new(s.cond, BOOL)
            made.append(Op(either, "or", (found, self.name(s.cond, lane)), at=s.at))
            found = either
        return made, found

    def copies(self, names: tuple[Operand, ...]) -> list[tuple[Operand, ...]]:
        """Some operands in each lane, or once if they are shared."""
        if not any(map(self.dependence.has, names)):
            return [names]
        return [tuple(self.name(n, lane) for n in names) for lane in range(self.count)]

    def places(self, names: tuple[Operand, ...]) -> list[tuple[int, int | None]]:
        """For each copy of some parameters or results the number of the original, and the lane."""
        return [
            (i, lane)
            for i, name in enumerate(names)
            for lane in (range(self.count) if self.dependence.has(name) else (None,))
        ]


def in_lanes(program: Program, seeds: Collection[str], count: int) -> Laned | None:
    """The program for several values of some parameters at once; None where they decide what is done.

    Args:
        seeds: the parameters.
        count: how many values of each.
    """
    made = program.derived(f"{program.name}_{count}")
    dependence = Dependence(made, seeds)
    if not dependence.is_separable:
        return None
    lanes = _Lanes(made, dependence, count)
    first = next((s for s in walk(made.body) if isinstance(s, Return)), None)
    params, results = lanes.places(tuple(made.params)), lanes.places(first.values if first else ())
    made.zeros = frozenset(name for p in program.zeros for (name,) in lanes.copies((p,)))
    made.params = [lanes.name(made.params[i], lane or 0) for i, lane in params]
    made.body = lanes.block(made.body)
    made.reached = program.reached
    return Laned(made, params, results)


def weights(program: Program, seeds: Collection[str]) -> Weights | None:
    """What a lane costs, and what all have in common; None where there can be no lanes."""
    two = in_lanes(program, seeds, 2)
    if two is None:
        return None
    one, both = cost(program), cost(two.program)
    length, longer = (sum(1 for _ in walk(p.body)) for p in (program, two.program))
    return Weights(max(2 * one - both, 0.0), both - one, 2 * length - longer, longer - length)
