"""What in a program depends on its seeds: the directions or the cotangents that a derivative program is given."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from retrograde.compiler.alias import Memory
from retrograde.compiler.form import Call, For, If, Op, Return, Statement, Swap, View, While
from retrograde.compiler.program import Program
from retrograde.compiler.types import Operand
from retrograde.compiler.walks import defs, names_in, uses, walk


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
