"""In an innermost loop, what is added to one and the same place is added up in a local variable and stored once."""

from __future__ import annotations

from retrograde.compiler.alias import Memory
from retrograde.compiler.form import Add, Block, For, Get, If, Increase, Op, Set, While
from retrograde.compiler.program import Program
from retrograde.compiler.types import BOOL, zero_of
from retrograde.compiler.walks import defs, names_in, walk


def accumulate(program: Program) -> None:
    memory = Memory(program)

    def of_block(block: Block) -> Block:
        out: Block = []
        for s in block:
            for f in s.blocks:
                setattr(s, f, of_block(getattr(s, f)))
            out += of_loop(s) if isinstance(s, For) else [s]
        return out

    def of_loop(loop: For) -> Block:
        if any(isinstance(x, For | While | If) for x in walk(loop.body)):
            return [loop]
        inside = {name for x in walk([loop]) for name in defs(x)}
        before: Block = []
        after: Block = []
        body: Block = []
        for x in loop.body:
            if not isinstance(x, Increase) or not is_alone(x, loop.body) or not is_fixed(x, inside):
                body.append(x)
                continue
            type = program.types[x.array].element
            cell, total = program.new(f"{x.array}_sum", type), program.new("t", type)
            before.append(Set(cell, zero_of(type), at=x.at))
            body.append(Add(cell, x.value, at=x.at))
            after += [Get(total, cell, at=x.at), Increase(x.array, x.index, total, at=x.at)]
        if not before:
            return [loop]
        loop.body = body
        # A loop that does not run must not touch a place that may not exist.
        return [*before, loop, *guarded(loop, after)]

    def is_alone(x: Increase, body: Block) -> bool:
        root = memory.root(x.array)
        return all(y is x or root not in memory.reads(y) | memory.writes(y) for y in body)

    def is_fixed(x: Increase, inside: set[str]) -> bool:
        return program.types[x.array].is_inexact and not any(name in inside for name in names_in((x.array, x.index)))

    def guarded(loop: For, after: Block) -> Block:
        if not isinstance(loop.low, str) and not isinstance(loop.high, str) and loop.low < loop.high:
            return after

        runs = program.new("runs", BOOL)
        return [Op(runs, "<", (loop.low, loop.high)), If(runs, after, [])]

    program.body = of_block(program.body)
