"""Checkpoints: long loops in segments, so that the memory of a reverse sweep grows with the root of their lengths.

    for t in range(low, high): step          for segment in range(count):
                                                 for t in range(low + segment * length, …): step

The reverse sweep runs a segment again from what its first step found (reexecute.py), and only then tapes it: of n steps
in segments of √n, it keeps √n states and the tape of √n steps. The steps run once more for that.

Source: Griewank, Walther (2008), "Evaluating Derivatives", chapter 12: checkpoints at equal distances.
"""

from __future__ import annotations

from retrograde.compiler.alias import Changes, Memory
from retrograde.compiler.form import Block, For, Increase, Load, Op, Store, View
from retrograde.compiler.program import Program
from retrograde.compiler.reexecute import Iterations
from retrograde.compiler.types import FLOAT, INT, Operand
from retrograde.compiler.walks import defs, names_in, uses, walk


def in_segments(program: Program, checkpoint: bool | int) -> Program:
    """The program with its outermost loops that take a state from one iteration to the next in segments.

    Args:
        checkpoint: the length of a segment; True for the root of the number of iterations.
    """
    made = program.derived(program.name)
    memory = Memory(made)
    changes, around = Changes(made.body, memory), walk(made.body)
    body: Block = []
    for s in made.body:
        if isinstance(s, For) and has_small_state(Iterations(made, s, memory, changes, around)):
            body += _in_segments(made, s, checkpoint)
        else:
            body.append(s)
    made.body = body
    return made


def has_small_state(iterations: Iterations) -> bool:
    """Whether iterations take over a state, of a size that has nothing to do with their number.

    An array of which each iteration touches other elements (`u[t + 1] = f(u[t])`) is as long as the loop: keeping it at
    each checkpoint would take more than a tape.
    """
    carried = iterations.carried
    if not carried or not iterations.are_repeatable:
        return False
    program, memory, loop = iterations.program, iterations.memory, iterations.loop
    counted = {loop.var}
    for s in walk(loop.body):
        if isinstance(s, Op | For) and counted & set(uses(s)):
            counted |= set(defs(s))
        if not isinstance(s, Load | Store | Increase | View) or memory.root(s.array) not in carried:
            continue
        is_short = all(isinstance(n, int) for n in program.dims[memory.root(s.array)])
        if not is_short and counted & set(names_in(s.index)):
            return False
    return True


def _in_segments(program: Program, loop: For, checkpoint: bool | int) -> Block:
    made: Block = []

    def op(block: Block, fn: str, *args: Operand) -> str:
        name = program.new("segment", INT)
        block.append(Op(name, fn, args, at=loop.at))
        return name

    number = op(made, "size", loop.low, loop.high)
    length: Operand
    if checkpoint is True:
        root = program.new("segment", FLOAT)
        made.append(Op(root, "np.sqrt", (number,), at=loop.at))
        length = op(made, "+", op(made, "cast:int64", root), 1)
    else:
        length = int(checkpoint)
    rounded = op(made, "+", number, op(made, "-", length, 1))
    count = op(made, "//", rounded, length)
    segment = program.new("segment", INT)
    inner: Block = []
    low = op(inner, "*", segment, length)
    if loop.low != 0:
        low = op(inner, "+", low, loop.low)
    high = op(inner, "min", op(inner, "+", low, length), loop.high)
    inner.append(For(loop.var, low, high, loop.body, at=loop.at))
    made.append(For(segment, 0, count, inner, at=loop.at, again=True))
    return made
