"""A copy of an array of the caller's is not made where neither is written afterwards.

    for i in …: g[i] = y_bar[i]
    for i in …: x_bar[i] = 2 * x[i] * g[i]           →            for i in …: x_bar[i] = 2 * x[i] * y_bar[i]

A sweep consumes the cotangent that it is given, by clearing what it has read, and so works on a copy. Once stores.py
has found that nobody sees the zeros, the copy is all that is left of this.
"""

from __future__ import annotations

from retrograde.compiler.alias import Memory
from retrograde.compiler.form import Alloc, Block, For, Load, Statement, Store, Swap
from retrograde.compiler.optimise.unsigned import NonNegative
from retrograde.compiler.program import Program
from retrograde.compiler.types import Operand
from retrograde.compiler.walks import substitute, uses, walk


def use_originals(program: Program) -> None:
    memory = Memory(program)
    users: dict[str, Block] = {}
    written: set[str] = set()
    for s in walk(program.body):
        for name in uses(s):
            if memory.is_array(name):
                users.setdefault(name, []).append(s)
        if not isinstance(s, Alloc):
            written |= memory.writes(s)
    made = {s.dst: s for s in walk(program.body) if isinstance(s, Alloc) and not s.zero}
    swapped = {memory.root(name) for s in walk(program.body) if isinstance(s, Swap) for name in uses(s)}
    known = NonNegative(program)
    names: dict[str, Operand] = {}
    for s in walk(program.body):
        found = _copy(program, s)
        if found is None:
            continue
        store, original = found
        copy = store.array
        if original not in program.params or original in written or copy not in made or copy in swapped:
            continue
        if program.types[copy] == program.types[original] and _is_only_read(known, users[copy], store):
            names[copy] = original
            made.pop(copy)
            if original not in program.dims:  # as of a seed
                program.set_dims(original, program.dims[copy])
    if names:
        gone = set(names)
        program.body = substitute(_without(program, program.body, gone), names)


def _copy(program: Program, s: Statement) -> tuple[Store, str] | None:
    """The store, and the array that is read, of a nest of loops that does nothing but copy all of it."""
    loops: list[For] = []
    while isinstance(s, For) and not s.parallel and s.low == 0:
        loops.append(s)
        if len(s.body) == 2:
            load, store = s.body
            index = tuple(loop.var for loop in loops)
            if not isinstance(load, Load) or not isinstance(store, Store) or store.value != load.dst:
                return None
            is_whole = index == load.index == store.index
            is_whole = is_whole and tuple(loop.high for loop in loops) == program.dims.get(store.array)
            return (store, load.array) if is_whole else None
        if len(s.body) != 1:
            return None
        s = s.body[0]
    return None


def _is_only_read(known: NonNegative, users: Block, store: Store) -> bool:
    """Whether, but for the copying, only elements are read, whose places do not depend on the lengths of the axes."""
    return all(s is store or (isinstance(s, Load) and all(map(known.holds, s.index))) for s in users)


def _without(program: Program, block: Block, gone: set[str]) -> Block:
    """A block without the copies, and what makes them."""
    kept: Block = []
    for s in block:
        found = _copy(program, s)
        if (isinstance(s, Alloc) and s.dst in gone) or (found is not None and found[0].array in gone):
            continue
        for f in s.blocks:
            setattr(s, f, _without(program, getattr(s, f), gone))
        kept.append(s)
    return kept


__all__ = ["use_originals"]
