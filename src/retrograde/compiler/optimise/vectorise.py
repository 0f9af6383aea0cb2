"""Loops that hold an exp, log, tanh …, a sum or a search for the largest element run for several elements at once.

LLVM vectorises a loop that is innermost, holds no branch, and of which no iteration needs what another one computed.
Two things that stand in the way are written in its words. Elementary functions are those of vectormath.py. Sums are
told that their order does not matter: they are then added up in several partial sums, as NumPy and XLA do, whose
rounding errors have a smaller bound than those of one long sum. And where only the largest element is wanted, and not
its place, it is the `maximum` of all.

The last pass but for indices: what it writes has no derivatives.
"""

from __future__ import annotations

from retrograde.compiler.alias import Memory
from retrograde.compiler.form import Add, Block, For, Get, If, Op, Set, Statement
from retrograde.compiler.optimise.unsigned import NonNegative
from retrograde.compiler.optimise.upward import are_independent, sums_of
from retrograde.compiler.program import Program
from retrograde.compiler.types import FLOAT
from retrograde.compiler.walks import walk

FUNCTIONS = {
    "np.exp": "exp",
    "np.expm1": "expm1",
    "np.log": "log",
    "np.log1p": "log1p",
    "np.tanh": "tanh",
    "np.sin": "sin",
    "np.cos": "cos",
    "math.erf": "erf",
    "math.erfc": "erfc",
}
EXTREMES = {">": "vectormath.maximum", "<": "vectormath.minimum"}


def vectorise(program: Program) -> set[int]:
    """Use the functions of vectormath.py in the loops that can be vectorised.

    Returns: these loops, by their ids.
    """
    found: set[int] = set()
    sums: set[str] = set()  # of iterations that run side by side
    memory, known = Memory(program), NonNegative(program)
    for s in walk(program.body):
        if not isinstance(s, For):
            continue
        s.body = _without_search(program, s.body)
        if s.abreast is not None:
            sums |= s.abreast.sums
            for x in walk(s.body):
                _with_function(program, x)
        if is_vectorisable(s, memory, known):
            s.body = [y for x in s.body for y in _vectorised(program, x, sums)]
            s.down = False
            found.add(id(s))
    return found


def is_vectorisable(loop: For, memory: Memory, known: NonNegative) -> bool:
    """Whether nothing in the loop keeps its iterations from running side by side, but for sums in cells.

    Indices must be known not to be negative; otherwise each access has a branch.
    """
    return (
        not isinstance(loop.low, str)
        and known.holds(loop.low)
        and are_independent(loop, memory)
        and not (loop.parallel and sums_of(loop))
    )


def _with_function(program: Program, s: Statement) -> None:
    if isinstance(s, Op) and (name := _vector(program, s)) is not None:
        s.fn = f"vectormath.{name}"


def _vectorised(program: Program, s: Statement, sums: set[str]) -> Block:
    """
    Args:
        sums: the cells that iterations around, which run side by side, add to; they have a sum in each lane.
    """
    _with_function(program, s)
    if isinstance(s, Add) and s.cell not in sums and program.types[s.cell] == program.type_of(s.value) == FLOAT:
        old, total = program.new("t", FLOAT), program.new("t", FLOAT)
        plus = Op(total, "vectormath.plus", (old, s.value), at=s.at)
        return [Get(old, s.cell, at=s.at), plus, Set(s.cell, total, at=s.at)]
    return [s]


def _vector(program: Program, s: Op) -> str | None:
    """The function of vectormath.py that does what an operation does."""
    if program.types[s.dst] != FLOAT:
        return None
    if any(program.type_of(a) != FLOAT for a in s.args):
        return None
    if s.fn in ("**", "np.power"):
        is_whole = not isinstance(s.args[1], str) and float(s.args[1]).is_integer()
        return None if is_whole else "pow"
    return FUNCTIONS.get(s.fn)


def _without_search(program: Program, body: Block) -> Block:
    """`best = maximum(best, x)` in place of `if x > best or x != x: best = x`."""
    made = {s.dst: s for s in body if isinstance(s, Op | Get)}
    out: Block = []
    for s in body:
        cell = _largest(program, s, made)
        if cell is None or not isinstance(s, If):
            out.append(s)
            continue
        best, sign, x = cell
        old, found = program.new(best, FLOAT), program.new("t", FLOAT)
        out += [
            Get(old, best, at=s.at),
            Op(found, EXTREMES[sign], (old, x), at=s.at),
            Set(best, found, at=s.at),
        ]
    return out


def _largest(program: Program, s: Statement, made: dict[str, Op | Get]) -> tuple[str, str, str] | None:
    """(best, sign, x) where a statement is `if x sign best or x != x: best = x`."""
    if not isinstance(s, If) or s.orelse or len(s.then) != 1 or not isinstance(s.then[0], Set):
        return None
    best, x = s.then[0].cell, s.then[0].value
    either = made.get(s.cond) if isinstance(s.cond, str) else None
    if not isinstance(either, Op) or either.fn != "or" or not isinstance(x, str):
        return None
    better, is_nan = (made.get(a) if isinstance(a, str) else None for a in either.args)
    if not isinstance(better, Op) or better.fn not in EXTREMES or better.args[0] != x:
        return None
    if not isinstance(is_nan, Op) or is_nan.fn != "!=" or is_nan.args != (x, x):
        return None
    old = made.get(better.args[1]) if isinstance(better.args[1], str) else None
    is_it = isinstance(old, Get) and old.cell == best and program.types[best] == program.types[x] == FLOAT
    return (best, better.fn, x) if is_it else None


__all__ = ["vectorise"]
