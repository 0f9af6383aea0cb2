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
    Set,
    Statement,
    Store,
    While,
)
from retrograde.compiler.program import Program
from retrograde.compiler.reexecute import renaming
from retrograde.compiler.types import Operand, zero_of
from retrograde.compiler.walks import blocks_of, clone, names_in, substitute, uses, walk

MOST_ELEMENTS = 16
MOST_ITERATIONS = 4
LONGEST = 40  # statements of a loop that is written out


def keep_small_in_cells(program: Program) -> bool:
    """Keep small arrays in cells, and write out the loops over their elements. Says if there are any."""
    arrays = {s.dst for s in walk(program.body) if isinstance(s, Alloc) and is_small(program, s.dst)}
    if arrays:
        arrays -= _held(program)
    while arrays:
        loops = _Short(arrays).loops(program.body)
        moving = {
            s.array
            for s in walk(program.body)
            if isinstance(s, Load | Store | Increase)
            and s.array in arrays
            and not _is_inside(s.index, program.dims[s.array], loops)
        }
        if not moving:
            break
        arrays -= moving
    if arrays:
        body = _written_out(program, program.body, loops)
        program.body = _in_cells(program, body, {name: {} for name in arrays})
    return bool(arrays)


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


class _Short:
    """The loops over elements of some arrays that are short enough to be written out."""

    def __init__(self, arrays: set[str]) -> None:
        self.arrays = arrays
        self.found: dict[str, range] = {}

    def loops(self, block: Block) -> dict[str, range]:
        """The numbers that the variable of each of them takes."""
        self.length(block)
        return self.found

    def length(self, block: Block) -> int:
        """How many statements a block has when they are written out."""
        total = 0
        for s in block:
            inner = sum(map(self.length, blocks_of(s)))
            if isinstance(s, For) and inner <= LONGEST and self.is_over_elements(s):
                numbers = range(s.low, s.high)
                self.found[s.var] = numbers[::-1] if s.down else numbers
                total += inner * len(numbers)
            else:
                total += 1 + inner
        return total

    def is_over_elements(self, loop: For) -> bool:
        """Whether a loop has few iterations, no other loop inside, and reaches the elements of an array."""
        if isinstance(loop.low, str) or isinstance(loop.high, str) or loop.high - loop.low > MOST_ITERATIONS:
            return False
        reaches = False
        for s in walk(loop.body):
            if isinstance(s, For | While) and not (isinstance(s, For) and s.var in self.found):
                return False
            if isinstance(s, Load | Store | Increase) and s.array in self.arrays and loop.var in names_in(s.index):
                reaches = True
        return reaches


def _written_out(program: Program, block: Block, loops: dict[str, range]) -> Block:
    out: Block = []
    for s in block:
        for f in s.blocks:
            setattr(s, f, _written_out(program, getattr(s, f), loops))
        if isinstance(s, For) and s.var in loops:
            for i in loops[s.var]:
                out += substitute(_renewed(program, s.body), {s.var: i})
        else:
            out.append(s)
    return out


def _renewed(program: Program, block: Block) -> Block:
    """A copy of a block with new names for all that it defines."""
    names = renaming(program, block)
    return clone(block, lambda n: names.get(n, n), lambda n: names[n])


def _is_inside(index: Index, dims: tuple[Operand, ...], loops: dict[str, range]) -> bool:
    """Whether an index is one of known elements once the loops are written out."""
    return len(index) == len(dims) and all(
        all(-n <= number < n for number in (loops.get(i, ()) if isinstance(i, str) else (i,)))
        and (not isinstance(i, str) or i in loops)
        for i, n in zip(index, dims, strict=True)
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
