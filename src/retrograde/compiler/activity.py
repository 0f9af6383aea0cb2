"""Which values depend on the differentiated inputs *and* reach the outputs: only those have derivatives.

Names of temps and cells (`$c`) and roots of arrays are nodes; a statement is an edge from what it reads to what it
writes. Both directions are closures over the whole program, loops included, and so are right in any order of execution.
"""

from __future__ import annotations

from retrograde.compiler import ops
from retrograde.compiler.alias import Memory
from retrograde.compiler.form import (
    Add,
    Call,
    Copy,
    Get,
    Increase,
    Load,
    Op,
    Pop,
    PopArray,
    Push,
    Return,
    Set,
    Statement,
    Store,
    Swap,
    Whole,
)
from retrograde.compiler.program import Program
from retrograde.compiler.types import Operand
from retrograde.compiler.walks import names_in, walk


class Activity:
    """Attributes:
    varied: nodes that depend on the inputs.
    active: those of them that reach the outputs as well: results, and arrays that the caller gave.
    reaching: those of them that reach a result.
    """

    def __init__(self, program: Program, inputs: set[str], memory: Memory) -> None:
        self.program = program
        self.memory = memory
        edges = [edge for s in walk(program.body) for edge in self.edges(s)]
        self.forward = [(source, target) for target, source in edges if self.can_vary(target)]
        self.varied = _closure(inputs, self.forward)
        results = {self.node(v) for s in walk(program.body) if isinstance(s, Return) for v in names_in(s.values)}
        self.reaching = self.varied & _closure(results, edges)
        outputs = results | {p for p in program.params if program.types[p].is_array}
        self.active = self.varied & _closure(outputs, edges)

    def varied_from(self, name: str) -> set[str]:
        """The nodes that depend on one of the inputs."""
        return _closure({name}, self.forward)

    def node(self, name: str) -> str:
        return self.memory.root(name) if self.memory.is_array(name) else name

    def can_vary(self, node: str) -> bool:
        return self.program.types[node.lstrip("$")].is_inexact

    def edges(self, s: Statement) -> list[tuple[str, str]]:
        """Pairs (what is written, what it is made of)."""
        node = self.node
        if isinstance(s, Op):
            return [(s.dst, a) for a in names_in(s.args)] if ops.has_derivative(s.fn) else []
        if isinstance(s, Load):
            return [(s.dst, node(s.array))]
        if isinstance(s, Store | Increase):
            return [(node(s.array), v) for v in names_in(s.value)]
        if isinstance(s, Copy):
            return [(s.dst, node(s.array))]
        if isinstance(s, Get):
            return [(s.dst, f"${s.cell}")]
        if isinstance(s, Set | Add):
            return [(f"${s.cell}", v) for v in names_in(s.value)]
        if isinstance(s, Push):
            return [(s.stack, node(v)) for v in names_in(s.value)]
        if isinstance(s, Pop | PopArray):
            return [(s.dst, s.stack)]
        if isinstance(s, Whole):
            return [(o, node(a)) for o in s.outs for a in names_in(s.args)]
        if isinstance(s, Swap):
            return [(node(t), node(v)) for t, v in zip(s.targets, s.sources, strict=True)]
        if isinstance(s, Call):
            return [(o, node(a)) for o in {*s.dsts, *self.memory.writes(s)} for a in names_in(s.args)]
        return []

    def is_active(self, operand: Operand) -> bool:
        """Whether an operand, an array or (with `$`) a cell has a derivative here."""
        return isinstance(operand, str) and (operand in self.active or self.node(operand) in self.active)


def _closure(start: set[str], edges: list[tuple[str, str]]) -> set[str]:
    """Everything that the pairs (from, to) lead to."""
    following: dict[str, list[str]] = {}
    for a, b in edges:
        following.setdefault(a, []).append(b)
    found, todo = set(start), list(start)
    while todo:
        for b in following.get(todo.pop(), ()):
            if b not in found:
                found.add(b)
                todo.append(b)
    return found
