"""What only one arm of a choice needs is computed where that arm is chosen, if it is costly.

    y = f(exp(x)) if c else z         →        if c: y = f(exp(x))    else: y = z

Partials that must not lose digits near a pole choose between two formulas, and hardly ever the costly one. A loop that
LLVM vectorises keeps the choice, as a branch would stop it.
"""

from __future__ import annotations

from collections.abc import Container

from retrograde.compiler.form import Block, Get, If, Op, Set
from retrograde.compiler.ops import is_expensive
from retrograde.compiler.program import Program
from retrograde.compiler.types import Operand
from retrograde.compiler.walks import names_in, place_of, uses, walk


def sink(program: Program, vectorised: Container[int]) -> None:
    """Args:
    vectorised: the loops (their ids) that are left alone.
    """
    counts: dict[str, int] = {}
    for s in walk(program.body):
        for name in uses(s):
            counts[name] = counts.get(name, 0) + 1

    def of_block(block: Block) -> Block:
        for s in block:
            for f in s.blocks if id(s) not in vectorised else ():
                setattr(s, f, of_block(getattr(s, f)))
        for choice in [s for s in block if isinstance(s, Op) and s.fn == "where" and isinstance(s.args[0], str)]:
            block = _sunk(program, block, choice, counts)
        return block

    program.body = of_block(program.body)


def _sunk(program: Program, block: Block, choice: Op, counts: dict[str, int]) -> Block:
    """The block with a branch in place of a choice, if one of its arms is costly."""
    condition, then, orelse = choice.args
    if then == orelse:
        return block
    arms = [_only_for(block, choice, x, counts) for x in (then, orelse)]
    if not any(is_expensive(s.fn) for arm in arms for s in arm):
        return block
    moved = {id(s) for arm in arms for s in arm}
    cell = program.new(choice.dst, program.types[choice.dst])
    for arm, place in zip(arms, (1, 2), strict=True):
        for s in arm:
            if s.fn == "where" and s.args[0] == condition:
                s.fn, s.args = "id", (s.args[place],)
    branch = If(
        condition,
        [*arms[0], Set(cell, then, at=choice.at)],
        [*arms[1], Set(cell, orelse, at=choice.at)],
        at=choice.at,
    )
    return [
        x
        for s in block
        if id(s) not in moved
        for x in ([branch, Get(choice.dst, cell, at=choice.at)] if s is choice else [s])
    ]


def _only_for(block: Block, choice: Op, arm: Operand, counts: dict[str, int]) -> list[Op]:
    """The operations of a block, in order, that nothing but one arm of a choice needs."""
    wanted = {arm: 1} if isinstance(arm, str) and choice.args[0] != arm else {}
    found: list[Op] = []
    place = place_of(block, choice)
    for s in reversed(block[:place]):
        if isinstance(s, Op) and s.dst in wanted and wanted[s.dst] == counts.get(s.dst, 0):
            found.append(s)
            for name in names_in(s.args):
                wanted[name] = wanted.get(name, 0) + 1
    return found[::-1]


__all__ = ["sink"]
