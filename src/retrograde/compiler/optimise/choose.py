"""A loop that looks for the smallest or largest of some values looks first, and differentiates only what it found.

    for j in …: v = …; best = min(best, v)             or            if v < best: best = v; place = j

All iterations but one have no derivative. So the search runs on values alone, and the iteration that it ends with runs
once more afterwards: the derivative of the nearest of a thousand centres costs that of one.
"""

from __future__ import annotations

from typing import NamedTuple

from retrograde.compiler.alias import Changes, Memory
from retrograde.compiler.form import Block, For, Get, If, Op, Set, Statement, Swap
from retrograde.compiler.program import Program
from retrograde.compiler.reexecute import Iterations, renaming
from retrograde.compiler.types import BOOL, INT
from retrograde.compiler.walks import cells_written, clone, defs, uses, walk

_ORDER = {"min": "<", "max": ">"}
_MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


class Choice(NamedTuple):
    """Where a loop compares a value with the best so far.

    `cell` holds the best; `places` are the statements that do the comparing: they read the cell as `old`, and take the
    `value` where `value sign old`, together with what stands in `others`.
    """

    cell: str
    old: str
    value: str
    sign: str
    is_negated: bool
    others: Block
    places: tuple[Statement, ...]


def choose(program: Program) -> None:
    """Rewrite every loop of the program that only chooses."""

    def of_block(block: Block) -> Block:
        out: Block = []
        for s in block:
            for f in s.blocks:
                setattr(s, f, of_block(getattr(s, f)))
            choice = found(program, s) if isinstance(s, For) else None
            out += rewritten(program, s, choice) if isinstance(s, For) and choice else [s]
        return out

    program.body = of_block(program.body)


def found(program: Program, loop: For) -> Choice | None:
    """The choice that a loop makes, if it does nothing else that is seen outside of it."""
    counts: dict[str, int] = {}
    for s in walk(loop.body):
        for name in uses(s):
            counts[name] = counts.get(name, 0) + 1
    definition = {name: s for s in loop.body for name in defs(s)}
    for s in loop.body:
        if isinstance(s, Set):
            choice = _by_function(s, definition, counts)
        elif isinstance(s, If) and not s.orelse:
            choice = _by_branch(s, definition, counts)
        else:
            choice = None
        if choice is not None and program.types[choice.cell].kind == "f" and _is_all(program, loop, choice):
            return choice
    return None


def _by_function(s: Set, definition: dict[str, Statement], counts: dict[str, int]) -> Choice | None:
    """`best = min(best, v)`."""
    op = definition.get(s.value) if isinstance(s.value, str) else None
    if not isinstance(op, Op) or op.fn not in _ORDER or counts[op.dst] != 1:
        return None
    for old, value, is_first in ((op.args[0], op.args[1], True), (op.args[1], op.args[0], False)):
        get = definition.get(old) if isinstance(old, str) else None
        if isinstance(get, Get) and get.cell == s.cell and counts[get.dst] == 1 and value in definition:
            # The first of equals is taken: min(v, best) keeps v unless best < v.
            sign = _ORDER[op.fn] if is_first else _MIRRORED[_ORDER[op.fn]]
            return Choice(s.cell, get.dst, value, sign, not is_first, [], (get, op, s))
    return None


def _by_branch(s: If, definition: dict[str, Statement], counts: dict[str, int]) -> Choice | None:
    """`if v < best: best = v`, where all else in the branch sets cells."""
    op = definition.get(s.cond) if isinstance(s.cond, str) else None
    if not isinstance(op, Op) or op.fn not in _MIRRORED or counts[op.dst] != 1:
        return None
    for value, old, sign in ((*op.args, op.fn), (*op.args[::-1], _MIRRORED[op.fn])):
        get = definition.get(old) if isinstance(old, str) else None
        if not isinstance(get, Get) or counts[get.dst] != 1 or value not in definition:
            continue
        sets = [x for x in s.then if isinstance(x, Set) and x.cell == get.cell]
        others = [x for x in s.then if x not in sets]
        if len(sets) == 1 and sets[0].value == value and all(isinstance(x, Set) for x in others):
            return Choice(get.cell, get.dst, value, sign, False, others, (get, op, s))
    return None


def _is_all(program: Program, loop: For, choice: Choice) -> bool:
    """Whether the best and inactive cells are all that the loop leaves behind, and iterations share nothing else."""
    inside = {id(s) for s in walk(loop.body)}
    cell = choice.cell
    touching = [s for s in walk(loop.body) if getattr(s, "cell", None) == cell]
    if len(touching) != 2:  # the Get and the Set
        return False
    chosen = {id(s) for s in choice.places} | {id(s) for s in choice.others}
    rest = [s for s in loop.body if id(s) not in chosen]
    other_cells = {s.cell for s in choice.others if isinstance(s, Set)}
    if any(program.types[c].kind in "fc" for c in other_cells):
        return False
    if any(isinstance(s, Swap) for s in walk(rest)) or any(getattr(s, "cell", None) in other_cells for s in walk(rest)):
        return False
    memory = Memory(program)
    around = walk(program.body)
    trial = For(loop.var, loop.low, loop.high, rest, loop.down)
    iterations = Iterations(program, trial, memory, Changes([trial], memory), around)
    if iterations.carried:
        return False
    written = memory.all_writes(rest) - iterations.own
    seen = {root for s in around if id(s) not in inside for root in memory.reads(s)}
    return not written & seen and not written & set(program.params)


def rewritten(program: Program, loop: For, choice: Choice) -> Block:
    """The search, and the iteration that it found."""
    at, type = loop.at, program.types[choice.cell]
    best = program.new(f"{choice.cell}_found", type)
    place = program.new(f"{loop.var}_found", INT)
    is_found = program.new("is_found", BOOL)
    start, start_value = program.new(choice.cell, type), program.new("t", type)
    before: Block = [
        Get(start, choice.cell, at=at),
        Op(start_value, "value", (start,), at=at),
        Set(best, start_value, at=at),
        Set(place, 0, at=at),
        Set(is_found, False, at=at),
    ]
    rest = [s for s in loop.body if all(s is not p for p in choice.places)]
    names = renaming(program, rest)
    # Cells of its own: those of the search have no derivatives.
    cells = {c: program.new(c, program.types[c]) for c in sorted(cells_written(rest))}
    again = clone(rest, lambda n: names.get(n, n), lambda n: names[n], lambda c: cells.get(c, c))
    body: Block = []
    for s in loop.body:
        if s is not choice.places[-1]:
            body += [s] if all(s is not p for p in choice.places) else []
            continue
        body += _comparison(program, choice, best, [Set(place, loop.var, at=s.at), Set(is_found, True, at=s.at)], s)
    loop.body = body
    was_found, where = program.new("is_found", BOOL), program.new(loop.var, INT)
    instead = {loop.var: where}
    again = clone(again, lambda n: instead.get(n, n))
    take: Block = [Get(where, place, at=at), *again, Set(choice.cell, names[choice.value], at=at)]
    return [*before, loop, Get(was_found, is_found, at=at), If(was_found, take, [], at=at)]


def _comparison(program: Program, choice: Choice, best: str, note: Block, s: Statement) -> Block:
    """What stands in the loop in place of the choice."""
    old = program.new(best, program.types[best])
    value = program.new("t", program.types[choice.value])
    is_better = program.new("is_better", BOOL)
    made: Block = [Get(old, best), Op(value, "value", (choice.value,)), Op(is_better, choice.sign, (value, old))]
    if choice.is_negated:
        # min(v, best) is v unless best < v.
        kept = is_better
        is_better = program.new("is_better", BOOL)
        made[-1] = Op(kept, _MIRRORED[choice.sign], (old, value))
        made.append(Op(is_better, "not", (kept,)))
    made.append(If(is_better, [Set(best, value), *note, *choice.others], []))
    for x in walk(made):
        x.at = x.at or s.at
    return made


__all__ = ["choose"]
