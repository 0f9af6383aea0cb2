"""Loops over elements that hold an exp, log, tanh … use functions that are computed for several elements at once.

That pays only where LLVM can vectorise the loop: it is innermost, holds no branch, and no iteration needs what another
one computed. A sum in such a loop would keep it scalar, as its order may not change; so the loop runs in blocks, whose
terms are computed first and then added up in the order in which they were.

The last pass: what it writes has no derivatives.
"""

from __future__ import annotations

from retrograde.compiler.alias import Memory
from retrograde.compiler.form import (
    FLOAT,
    INT,
    Add,
    Alloc,
    Block,
    For,
    Load,
    Op,
    Operand,
    Program,
    Statement,
    Store,
    Type,
)
from retrograde.compiler.optimise.upward import are_independent, sums_of

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
BLOCK = 256  # elements; their terms stay in the fastest cache


def vectorise(program: Program) -> None:
    """Use the functions of vectormath.py in the loops that can be vectorised."""
    memory = Memory(program)
    terms: list[str] = []  # the arrays for the terms of a block, shared by all loops

    def of_block(block: Block, is_shared: bool) -> Block:
        """A block; one of a parallel loop is shared by threads, which would need terms of their own."""
        out: Block = []
        for s in block:
            for f in s.blocks:
                setattr(s, f, of_block(getattr(s, f), is_shared or (isinstance(s, For) and s.parallel)))
            if (
                isinstance(s, For)
                and any(_vector(program, x) for x in s.body)
                and is_vectorisable(s, memory, is_shared or s.parallel)
            ):
                out += _rewritten(program, s, terms)
            else:
                out.append(s)
        return out

    body = of_block(program.body, False)
    program.body = [*(Alloc(name, (BLOCK,), False) for name in terms), *body]


def _vector(program: Program, s: Statement) -> str | None:
    """The function of vectormath.py that does what an operation does."""
    if not isinstance(s, Op) or program.types[s.dst] != FLOAT:
        return None
    if any(program.type_of(a) != FLOAT for a in s.args):
        return None
    if s.fn in ("**", "np.power"):
        is_whole = not isinstance(s.args[1], str) and float(s.args[1]).is_integer()
        return None if is_whole else "pow"
    return FUNCTIONS.get(s.fn)


def is_vectorisable(loop: For, memory: Memory, is_shared: bool) -> bool:
    """Whether nothing in the loop keeps its iterations from running side by side, but for sums in cells."""
    return (
        is_counted_from_zero(loop)
        and are_independent(loop, memory)
        and not ((loop.down or is_shared) and sums_of(loop))
    )


def is_counted_from_zero(loop: For) -> bool:
    """Whether indices are known not to be negative; otherwise each access has a branch."""
    return not isinstance(loop.low, str) and loop.low >= 0


def _rewritten(program: Program, loop: For, terms: list[str]) -> Block:
    for x in loop.body:
        name = _vector(program, x)
        if name is not None and isinstance(x, Op):
            x.fn = f"vectormath.{name}"
    sums = [x for x in loop.body if isinstance(x, Add)]
    if not sums:
        return [loop]
    if any(program.types[x.cell] != FLOAT for x in sums):
        return [loop]
    return _in_blocks(program, loop, sums, terms)


def _in_blocks(program: Program, loop: For, sums: list[Add], terms: list[str]) -> Block:
    """The loop in blocks: first all but the sums, then these."""
    at = loop.at
    while len(terms) < len(sums):
        terms.append(program.new("terms", Type("float64", 1), (BLOCK,)))
    new = program.new
    made: Block = []

    def op(fn: str, *args: Operand) -> str:
        name = new("t", INT)
        made.append(Op(name, fn, args, at=at))
        return name

    if loop.low == 0:
        length: Operand = loop.high
    else:
        length = op("-", loop.high, loop.low)
    count = op("//", op("+", length, BLOCK - 1), BLOCK)
    before, made = made, []
    number = new("block", INT)
    start: Operand = op("*", number, BLOCK)
    if loop.low != 0:
        start = op("+", start, loop.low)
    end = op("min", op("+", start, BLOCK), loop.high)
    first = [x for x in loop.body if not isinstance(x, Add)]
    place, again, var = new("k", INT), new("k", INT), new(loop.var, INT)
    first.append(Op(place, "-", (loop.var, start), at=at))
    second: Block = [Op(again, "-", (var, start), at=at)]
    for x, array in zip(sums, terms, strict=False):
        term = new("term", FLOAT)
        first.append(Store(array, (place,), x.value, at=x.at))
        second += [Load(term, array, (again,), at=x.at), Add(x.cell, term, at=x.at)]
    inner: Block = [*made, For(loop.var, start, end, first, at=at), For(var, start, end, second, at=at)]
    return [*before, For(number, 0, count, inner, at=at)]


__all__ = ["vectorise"]
