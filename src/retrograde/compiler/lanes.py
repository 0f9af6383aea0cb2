"""Several directions or cotangents in one program: what depends on them has a copy for each, all else is shared.

A derivative program depends on its seeds only in its derivative part: they decide no branch, no number of iterations
and no index. So each temp, cell and array that depends on a seed becomes one for each lane, under a name of its own,
and the loops and branches around hold all of them. Elementary functions, searches, tapes of values, reads of the
arguments: all that is done once. Arrays keep their layout, so that loops are vectorised as they were.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

from retrograde.compiler.cost import cost
from retrograde.compiler.dependence import Dependence
from retrograde.compiler.examples import Weights
from retrograde.compiler.form import Block, If, Op, Return, Statement, Swap
from retrograde.compiler.program import Program
from retrograde.compiler.types import BOOL, Operand
from retrograde.compiler.walks import clone, walk


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


class _Lanes:
    """Writes the program of several lanes; the first has the names of the original."""

    def __init__(self, program: Program, dependence: Dependence, count: int) -> None:
        self.program = program
        self.dependence = dependence
        self.count = count
        returned = [s.values for s in walk(program.body) if isinstance(s, Return)]
        # A result has lanes if it depends on a seed where one of the paths ends.
        self.results = [any(map(dependence.has, values)) for values in zip(*returned, strict=True)]
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
            values = zip(s.values, self.results, strict=True)
            s.values = tuple(v for value, has_lanes in values for v in self.result(value, has_lanes))
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

    def result(self, value: Operand, has_lanes: bool) -> list[Operand]:
        """A result in each lane, or once: where only other paths give it lanes, it is the same in all."""
        return [self.name(value, lane) for lane in range(self.count)] if has_lanes else [value]

    def places(self, have_lanes: Iterable[bool]) -> list[tuple[int, int | None]]:
        """For each copy of some parameters or results the number of the original, and the lane."""
        return [(i, lane) for i, many in enumerate(have_lanes) for lane in (range(self.count) if many else (None,))]


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
    params, results = lanes.places(map(dependence.has, made.params)), lanes.places(lanes.results)
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
