"""An integer that each iteration raises by the same amount is an expression of the loop's variable.

    place += 1    becomes, inside of the loop,    place = start + (i - low)

So iterations share nothing through it, and the reverse sweep computes it again instead of taping it.
"""

from __future__ import annotations

from retrograde.compiler.form import Add, Block, For, Get, Op, Set, Statement
from retrograde.compiler.program import Program
from retrograde.compiler.types import INT, Operand
from retrograde.compiler.walks import defs, walk


def count_by_loops(program: Program) -> None:
    def of_block(block: Block) -> Block:
        out: Block = []
        for s in block:
            for f in s.blocks:
                setattr(s, f, of_block(getattr(s, f)))
            if isinstance(s, For):
                before, after = _freed(program, s)
                out += [*before, s, *after]
            else:
                out.append(s)
        return out

    program.body = of_block(program.body)


def _freed(program: Program, loop: For) -> tuple[Block, Block]:
    """Take the counters out of a loop; what stands before it and behind it instead."""
    touching: dict[str, list[Statement]] = {}
    for s in walk(loop.body):
        if isinstance(s, Get | Set | Add):
            touching.setdefault(s.cell, []).append(s)
    inside = {loop.var} | {name for s in walk(loop.body) for name in defs(s)}
    definition = {name: s for s in loop.body for name in defs(s)}
    before: Block = []
    after: Block = []
    for cell, accesses in touching.items():
        step = _step(accesses, loop.body, definition, inside)
        if program.types[cell] != INT or step is None or loop.down:
            continue
        get, old_set = accesses
        assert isinstance(get, Get)
        start = program.new(cell, INT)
        before.append(Get(start, cell, at=loop.at))
        made: Block = []
        count = loop.var if loop.low == 0 else _op(program, made, "-", loop.var, loop.low)
        made.append(Op(get.dst, "+", (start, _times(program, made, count, step)), at=get.at))
        loop.body = [x for s in loop.body if s is not old_set for x in (made if s is get else [s])]
        length = _op(program, after, "size", loop.low, loop.high)
        end = _op(program, after, "+", start, _times(program, after, length, step))
        after.append(Set(cell, end, at=loop.at))
    return before, after


def _step(accesses: list[Statement], body: Block, definition: dict[str, Statement], inside: set[str]) -> Operand:
    """By how much each iteration raises a cell; None if it does anything else to it."""
    if len(accesses) != 2 or not all(any(a is s for s in body) for a in accesses):
        return None
    get, last = accesses
    if not isinstance(get, Get) or not isinstance(last, Set):
        return None
    made = definition.get(last.value) if isinstance(last.value, str) else None
    if not isinstance(made, Op) or made.fn != "+":
        return None
    for old, step in (made.args, made.args[::-1]):
        if old == get.dst and (type(step) is int or (isinstance(step, str) and step not in inside)):
            return step
    return None


def _op(program: Program, block: Block, fn: str, *args: Operand) -> str:
    name = program.new("t", INT)
    block.append(Op(name, fn, args))
    return name


def _times(program: Program, block: Block, count: Operand, step: Operand) -> Operand:
    return count if type(step) is int and step == 1 else _op(program, block, "*", count, step)


__all__ = ["count_by_loops"]
