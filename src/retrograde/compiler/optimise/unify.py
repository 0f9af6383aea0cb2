"""Sizes that the program compares, and that must be equal, are one size.

A guard `if n != m: raise` stands where the sizes meet; if all such guards of the sizes of arguments stand at the start,
loops over the one and over the other are known to be of one length, and the guards inside of loops go. A program for
arguments of which some differ (they may be legal where a guard is not reached) is made when such arguments turn up.
"""

from __future__ import annotations

from retrograde.compiler.form import Block, If, Op, Raise
from retrograde.compiler.known import UNEQUAL
from retrograde.compiler.program import Program
from retrograde.compiler.types import BOOL, Operand
from retrograde.compiler.walks import defs, map_names, substitute, walk


def unify_sizes(program: Program) -> bool:
    """Take the sizes that guards compare for equal, after a look at the start. Says if there are any."""
    sizes = {
        s.dst: s
        for s in program.body
        if isinstance(s, Op) and s.fn == "shape" and s.args[0] in program.params and isinstance(s.args[1], int)
    }
    conditions = {name: s for s in walk(program.body) for name in defs(s) if isinstance(s, Op) and s.fn == "!="}
    instead: dict[str, Operand] = {}

    def found(operand: Operand) -> Operand:
        while operand in instead:
            operand = instead[operand]
        return operand

    pairs: list[tuple[str, Operand]] = []
    for s in walk(program.body):
        if not (isinstance(s, If) and not s.orelse and len(s.then) == 1 and isinstance(s.then[0], Raise)):
            continue
        compared = conditions.get(s.cond) if isinstance(s.cond, str) else None
        if compared is None or s.then[0].error != "ValueError":
            continue
        a, b = map(found, compared.args)
        if a not in sizes:
            a, b = b, a
        if a == b or a not in sizes or not (b in sizes or type(b) is int):
            continue
        instead[str(a)] = b
        pairs.append((str(a), b))
    if not pairs:
        return False
    names = {name: found(name) for name in instead}
    first: Block = list(sizes.values())
    for a, b in pairs:
        differs = program.new("differs", BOOL)
        first += [Op(differs, "!=", (a, b)), If(differs, [Raise("ValueError", UNEQUAL)], [])]
    moved = {id(s) for s in sizes.values()}
    program.body = first + substitute([s for s in program.body if id(s) not in moved], names)
    for array, dims in program.dims.items():
        program.set_dims(array, map_names(dims, lambda n: names.get(n, n)))
    return True


__all__ = ["unify_sizes"]
