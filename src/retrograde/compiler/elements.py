"""Loops over the elements of arrays, as statements of the form."""

from __future__ import annotations

from retrograde.compiler.form import Block, For, Index, Load, Store
from retrograde.compiler.program import Program
from retrograde.compiler.source import At
from retrograde.compiler.types import INT, Operand


def index_of(program: Program, dims: tuple[Operand, ...]) -> tuple[str, ...]:
    """New variables for the axes of an array."""
    return tuple(program.new("e", INT) for _ in dims)


def loops_over(index: tuple[str, ...], dims: tuple[Operand, ...], block: Block, at: At | None = None) -> Block:
    """A block for each element."""
    for var, n in zip(reversed(index), reversed(dims), strict=True):
        block = [For(var, 0, n, block, at=at)]
    return block


def copied(
    program: Program,
    to: str,
    array: str,
    dims: tuple[Operand, ...],
    before: Index = (),
    within: Index = (),
    at: At | None = None,
) -> Block:
    """`to[before] = array[within]`, of what has `dims`."""
    index = index_of(program, dims)
    t = program.new("t", program.types[array].element)
    return loops_over(
        index, dims, [Load(t, array, (*within, *index), at=at), Store(to, (*before, *index), t, at=at)], at
    )
