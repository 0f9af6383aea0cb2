"""A loop that only adds multiples of numbers to what is there does nothing where these are all zero.

    for v in …:                                      if t0 != 0 or t1 != 0:
        x[v] += s0 * a[v] + s1 * b[v]          →         for v in …: …
        y[v] += t0 * a[v] + t1 * b[v]                else:
                                                         for v in …: x[v] += s0 * a[v] + s1 * b[v]

A direction of a Jacobian is zero in all places but one, and so is most of what follows from it: in a chain of bodies an
angle moves only those behind its joint. Zero times infinity is zero here, as in every derivative.
"""

from __future__ import annotations

from collections.abc import Collection

from retrograde.compiler.dependence import Dependence
from retrograde.compiler.form import Add, Block, For, Get, If, Increase, Load, Op, Statement, View
from retrograde.compiler.program import Program
from retrograde.compiler.reexecute import renaming
from retrograde.compiler.types import BOOL, Operand
from retrograde.compiler.walks import clone, defs, is_number, uses, walk, without

MOST_FACTORS = 32
LONG = 16
"""Shorter loops are not worth a look at their factors."""

_OF_ALL = frozenset({"id", "neg", "+", "-", "real", "imag", "conj", "complex", "squared"})
_OF_THE_FIRST = frozenset({"/", "per", "over", "times", "keep"})
_OF_ONE = frozenset({"*", "along"})


def skip_zeros(program: Program, seeds: Collection[str]) -> None:
    """Args:
    seeds: the parameters that are likely to be zero in most places.
    """
    dependence = Dependence(program, seeds)
    if dependence.is_separable:
        program.body = _Skipping(program, dependence).block(program.body)


class _Skipping:
    def __init__(self, program: Program, dependence: Dependence) -> None:
        self.program = program
        self.dependence = dependence
        self.counts = _uses(program.body)

    def block(self, block: Block) -> Block:
        out: Block = []
        for s in block:
            factors = self.factors(s) if isinstance(s, For) and _is_long(s) else None
            if isinstance(s, For) and factors:
                out += self.skipped(s, factors)
                continue
            for f in s.blocks:
                setattr(s, f, self.block(getattr(s, f)))
            out.append(s)
        return out

    def factors(self, loop: For) -> list[str]:
        """The numbers from outside that all the loop adds is a multiple of; none where it does something else."""
        inside = {name for s in walk([loop]) for name in defs(s)}
        if any(self.counts.get(name, 0) > n for name, n in _uses([loop]).items() if name in inside):
            return []
        adding = _Adding(self.program, self.dependence, inside)
        holds = all(map(adding.is_multiple, walk(loop.body)))
        return list(adding.factors) if holds and len(adding.factors) <= MOST_FACTORS else []

    def skipped(self, loop: For, factors: list[str]) -> Block:
        """The loop where one of the factors is not zero, and what else it does where all are."""
        out: Block = []
        matters = ""
        for factor in factors:
            is_some = self.program.new("matters", BOOL)
            out.append(Op(is_some, "!=", (factor, 0.0), at=loop.at))
            if matters:
                either = self.program.new("matters", BOOL)
                out.append(Op(either, "or", (matters, is_some), at=loop.at))
                is_some = either
            matters = is_some
        names = renaming(self.program, [loop])
        rest = clone([loop], lambda n: names.get(n, n), lambda n: names[n])
        added = {
            id(copy)
            for s, copy in zip(walk([loop]), walk(rest), strict=True)
            if self.dependence.of(s) and not isinstance(s, View)
        }
        rest = without(rest, added)
        does_something = any(not isinstance(s, Op | Load | Get | View | For | If) for s in walk(rest))
        return [*out, If(matters, [loop], rest if does_something else [], at=loop.at)]


class _Adding:
    """Whether what depends on the seeds is a multiple of some factors, and is only added to something.

    Attributes:
        factors: the names of the numbers, in the order in which they were found.
    """

    def __init__(self, program: Program, dependence: Dependence, inside: set[str]) -> None:
        self.program = program
        self.dependence = dependence
        self.inside = inside
        self.multiples: set[str] = set()
        self.factors: dict[str, None] = {}

    def is_multiple(self, s: Statement) -> bool:
        if not self.dependence.of(s) or isinstance(s, View):
            return True
        if isinstance(s, Increase | Add):
            return self.is_zero(s.value)
        if isinstance(s, Op) and self.is_product(s):
            self.multiples.add(s.dst)
            return True
        return False

    def is_product(self, s: Op) -> bool:
        """Whether an operation gives zero where all factors are."""
        if s.fn in _OF_ALL or s.fn.startswith("cast:"):
            return all(map(self.is_zero, s.args))
        if s.fn in _OF_THE_FIRST:
            return self.is_zero(s.args[0]) and not any(map(self.dependence.has, s.args[1:]))
        if s.fn == "where":
            return self.is_zero(s.args[1]) and self.is_zero(s.args[2])
        return s.fn in _OF_ONE and any(self.dependence.has(a) and self.is_zero(a) for a in s.args)

    def is_zero(self, x: Operand) -> bool:
        if not isinstance(x, str):
            return is_number(x, 0)
        if x in self.multiples:
            return True
        if x in self.inside or not self.dependence.has(x) or self.program.types[x].kind != "f":
            return False
        self.factors[x] = None
        return True


def _is_long(loop: For) -> bool:
    """Whether a loop has many iterations, or not a known number of them."""
    return any(
        isinstance(s, For) and (isinstance(s.low, str) or isinstance(s.high, str) or s.high - s.low >= LONG)
        for s in walk([loop])
    )


def _uses(block: Block) -> dict[str, int]:
    counts: dict[str, int] = {}
    for s in walk(block):
        for name in uses(s):
            counts[name] = counts.get(name, 0) + 1
    return counts


__all__ = ["skip_zeros"]
