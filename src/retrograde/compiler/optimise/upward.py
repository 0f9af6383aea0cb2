"""A loop that runs downwards, and whose iterations are independent, runs upwards: so it can be vectorised."""

from __future__ import annotations

from retrograde.compiler.alias import Memory
from retrograde.compiler.form import Add, Block, For, Get, Increase, Load, Op, Store
from retrograde.compiler.program import Program
from retrograde.compiler.walks import defs, names_in


def turn_upwards(program: Program) -> None:
    memory = Memory(program)

    def of_block(block: Block) -> None:
        for s in block:
            for f in s.blocks:
                of_block(getattr(s, f))
            if isinstance(s, For) and s.down and are_independent(s, memory) and not sums_of(s):
                s.down = False

    of_block(program.body)


def are_independent(loop: For, memory: Memory) -> bool:
    """Whether no iteration of an innermost loop needs what another one did, but for sums in cells."""
    moving = {loop.var}
    for x in loop.body:
        if isinstance(x, Op) and x.fn in ("+", "-") and moving.intersection(names_in(x.args)):
            moving.update(defs(x))
    added = sums_of(loop)
    places: dict[str, set[object]] = {}
    for x in loop.body:
        if isinstance(x, Store | Increase):
            if loop.var not in x.index and not any(_is_shifted(i, loop, moving) for i in x.index):
                return False
            places.setdefault(memory.root(x.array), set()).add((x.array, x.index))
        elif isinstance(x, Get):
            if x.cell in added:
                return False
        elif not isinstance(x, Op | Load | Add):
            return False
    # What is written may be read in the same iteration only.
    for x in loop.body:
        if isinstance(x, Load) and memory.root(x.array) in places:
            places[memory.root(x.array)].add((x.array, x.index))
    return all(len(found) == 1 for found in places.values())


def _is_shifted(i: object, loop: For, moving: set[str]) -> bool:
    """Whether an index is the loop's variable plus or minus what stays the same in the loop."""
    definition = next((x for x in loop.body if isinstance(x, Op) and x.dst == i and x.fn in ("+", "-")), None)
    if definition is None:
        return False
    inside = {name for x in loop.body for name in defs(x)}
    moved = [a for a in definition.args if a in moving or a in inside]
    return moved == [loop.var]


def sums_of(loop: For) -> set[str]:
    """The cells that a loop adds to."""
    return {x.cell for x in loop.body if isinstance(x, Add)}


__all__ = ["are_independent", "sums_of", "turn_upwards"]
