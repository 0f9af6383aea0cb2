"""Small vectors of constant size are numbers: no memory, no loops of three iterations, nothing to tape by elements.

A loop of a few iterations over such an array is written out; an array whose every access then has constant indices
becomes one cell for each element. Views and whole-array operations keep an array in memory.
"""

from __future__ import annotations

import itertools
import math

from retrograde.compiler.form import (
    Add,
    Alloc,
    Block,
    Fill,
    For,
    Get,
    Increase,
    Index,
    Load,
    Operand,
    Program,
    Set,
    Statement,
    Store,
    While,
    clone,
    names_in,
    substitute,
    uses,
    walk,
    zero_of,
)
from retrograde.compiler.reexecute import renaming

MOST_ELEMENTS = 16
MOST_ITERATIONS = 4
LONGEST = 40  # statements of a loop that is written out


def keep_small_in_cells(program: Program) -> None:
    """Write out the loops over small arrays, and keep these in cells."""
    arrays = {s.dst: s for s in walk(program.body) if isinstance(s, Alloc) and is_small(program, s.dst)}
    if not arrays:
        return
    arrays = {name: s for name, s in arrays.items() if name not in _held(program)}
    program.body = _written_out(program, program.body, set(arrays))
    moving = {
        s.array
        for s in walk(program.body)
        if isinstance(s, Load | Store | Increase) and not _is_inside(s.index, program.dims[s.array])
    }
    program.body = _in_cells(program, program.body, {name: {} for name in arrays if name not in moving})


def is_small(program: Program, array: str) -> bool:
    dims = program.dims[array]
    return all(isinstance(n, int) for n in dims) and 0 < math.prod(dims) <= MOST_ELEMENTS


def _held(program: Program) -> set[str]:
    """The arrays that are used otherwise than by their elements, and those that are allocated twice."""
    held: set[str] = set()
    allocated: set[str] = set()
    for s in walk(program.body):
        if isinstance(s, Load | Store | Increase | Fill):
            continue
        held.update(uses(s))
        if isinstance(s, Alloc):
            held.update({s.dst} & allocated)
            allocated.add(s.dst)
    return held


def _written_out(program: Program, block: Block, arrays: set[str]) -> Block:
    out: Block = []
    for s in block:
        for f in s.blocks:
            setattr(s, f, _written_out(program, getattr(s, f), arrays))
        if isinstance(s, For) and _is_over_elements(s, arrays):
            out += _iterations(program, s)
        else:
            out.append(s)
    return out


def _is_over_elements(loop: For, arrays: set[str]) -> bool:
    """Whether a loop is short and reaches the elements of a small array by its variable."""
    if isinstance(loop.low, str) or isinstance(loop.high, str) or loop.high - loop.low > MOST_ITERATIONS:
        return False
    inner = list(walk(loop.body))
    if len(inner) > LONGEST or any(isinstance(s, For | While) for s in inner):
        return False
    return any(
        isinstance(s, Load | Store | Increase) and s.array in arrays and loop.var in names_in(s.index) for s in inner
    )


def _iterations(program: Program, loop: For) -> Block:
    out: Block = []
    numbers = range(loop.low, loop.high)
    for i in reversed(numbers) if loop.down else numbers:
        out += substitute(_renewed(program, loop.body), {loop.var: i})
    return out


def _renewed(program: Program, block: Block) -> Block:
    """A copy of a block with new names for all that it defines."""
    names = renaming(program, block)
    return clone(block, lambda n: names.get(n, n), lambda n: names[n])


def _is_inside(index: Index, dims: tuple[Operand, ...]) -> bool:
    return all(
        type(i) is int and type(n) is int and -n <= i < n for i, n in itertools.zip_longest(index, dims, fillvalue="")
    )


def _in_cells(program: Program, block: Block, cells: dict[str, dict[Index, str]]) -> Block:
    """The block with the elements of the arrays in cells."""

    def cell(array: str, index: Index) -> str:
        dims = program.dims[array]
        place = tuple(i % n for i, n in zip(index, dims, strict=True))
        if place not in cells[array]:
            cells[array][place] = program.new(array, program.types[array].element)
        return cells[array][place]

    def zeros(array: str, s: Statement) -> Block:
        zero = zero_of(program.types[array])
        ranges = [range(n) for n in program.dims[array]]
        return [Set(cell(array, place), zero, at=s.at) for place in itertools.product(*ranges)]

    out: Block = []
    for s in block:
        for f in s.blocks:
            setattr(s, f, _in_cells(program, getattr(s, f), cells))
        array = s.dst if isinstance(s, Alloc) else getattr(s, "array", None)
        if array not in cells:
            out.append(s)
        elif isinstance(s, Alloc | Fill):
            out += zeros(array, s)
        elif isinstance(s, Load):
            out.append(Get(s.dst, cell(array, s.index), at=s.at))
        elif isinstance(s, Store):
            out.append(Set(cell(array, s.index), s.value, at=s.at))
        elif isinstance(s, Increase):
            out.append(Add(cell(array, s.index), s.value, at=s.at))
    return out


__all__ = ["keep_small_in_cells"]
