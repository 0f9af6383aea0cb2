"""The shift of a log-sum-exp is a constant to the derivative: e + log Σ exp(xᵢ - e) is the same for every e.

Its derivative would cancel to nothing but its rounding errors, and cost the derivative of a maximum.
"""

from __future__ import annotations

from retrograde.compiler.form import Add, Block, For, Get, Op, Set, Statement
from retrograde.compiler.program import Program
from retrograde.compiler.walks import defs, uses, walk


def fix_shifts(program: Program) -> None:
    """Take no derivative of the shift of any log-sum-exp."""
    everything = walk(program.body)
    readers: dict[str, list[Statement]] = {}
    for s in everything:
        for name in uses(s):
            readers.setdefault(name, []).append(s)
    definition = {name: s for s in everything for name in defs(s)}
    touching: dict[str, list[Statement]] = {}
    for s in everything:
        if isinstance(s, Get | Set | Add):
            touching.setdefault(s.cell, []).append(s)

    def only_reader(name: str) -> Statement | None:
        return readers[name][0] if len(readers.get(name, ())) == 1 else None

    def shifted(sum_of: Op) -> tuple[Op, list[Op]] | None:
        """The addition of the shift to this logarithm, and the subtractions of it from what is summed."""
        total = definition.get(sum_of.args[0]) if isinstance(sum_of.args[0], str) else None
        outer = only_reader(sum_of.dst)
        if not isinstance(total, Get) or only_reader(total.dst) is not sum_of:
            return None
        if not isinstance(outer, Op) or outer.fn != "+" or outer.args[0] == outer.args[1]:
            return None
        shift = outer.args[1] if outer.args[0] == sum_of.dst else outer.args[0]
        accesses = [s for s in touching[total.cell] if s is not total]
        sets = [s for s in accesses if isinstance(s, Set)]
        adds = [s for s in accesses if isinstance(s, Add)]
        if len(sets) != 1 or sets[0].value != 0 or len(adds) != 1 or len(accesses) != 2 or not isinstance(shift, str):
            return None
        if not _stand_together(program.body, sets[0], adds[0], total):
            return None
        inner = [_difference(s.value, definition, only_reader) for s in adds]
        if any(op is None or op.args[1] != shift for op in inner):
            return None
        return outer, [op for op in inner if op is not None]

    for s in everything:
        if isinstance(s, Op) and s.fn == "np.log":
            group = shifted(s)
            if group is not None:
                _fix(program, *group, s.dst)


def _difference(value: object, definition: dict[str, Statement], only_reader: object) -> Op | None:
    """The x - e of an exp(x - e) that nothing else reads."""
    exp = definition.get(value) if isinstance(value, str) else None
    if not isinstance(exp, Op) or exp.fn != "np.exp" or not isinstance(exp.args[0], str):
        return None
    difference = definition.get(exp.args[0])
    if not isinstance(difference, Op) or difference.fn != "-":
        return None
    alone = only_reader(exp.dst) is not None and only_reader(difference.dst) is exp  # type: ignore[operator]
    return difference if alone else None


def _stand_together(block: Block, first: Set, add: Add, last: Get) -> bool:
    """Whether the sum begins, runs in loops and is read in one block, so that the shift is the same throughout."""
    if any(s is first for s in block):
        places = {id(s): i for i, s in enumerate(block)}
        loops = [i for i, s in enumerate(block) if isinstance(s, For) and any(x is add for x in walk([s]))]
        return bool(loops) and id(last) in places and places[id(first)] < loops[0] < places[id(last)]
    return any(_stand_together(inner, first, add, last) for s in block for inner in (getattr(s, f) for f in s.blocks))


def _fix(program: Program, outer: Op, differences: list[Op], log: str) -> None:
    """Put the value of the shift, without its derivative, in its places."""
    for op in (outer, *differences):
        shift = op.args[1] if op is not outer or outer.args[0] == log else op.args[0]
        fixed = program.new("shift", program.types[shift])
        _insert_before(program.body, op, Op(fixed, "value", (shift,), at=op.at))
        op.args = tuple(fixed if a == shift else a for a in op.args)


def _insert_before(block: Block, place: Statement, s: Statement) -> bool:
    for i, x in enumerate(block):
        if x is place:
            block.insert(i, s)
            return True
        if any(_insert_before(getattr(x, f), place, s) for f in x.blocks):
            return True
    return False


__all__ = ["fix_shifts"]
