"""Emitting statements: the layer under everything that lowers."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from retrograde.compiler import ops
from retrograde.compiler.form import (
    Alloc,
    Block,
    For,
    Get,
    If,
    Increase,
    Index,
    Load,
    Op,
    Raise,
    Reshaped,
    Set,
    Slice,
    Statement,
    Store,
    View,
)
from retrograde.compiler.known import BROADCAST, NOTHING, SHORT
from retrograde.compiler.program import Program
from retrograde.compiler.source import At, Source, refusal
from retrograde.compiler.types import BOOL, INT, Operand, Type, zero_of
from retrograde.errors import LanguageError

_OF_EQUALS = {"==": True, "<=": True, ">=": True, "!=": False, "<": False, ">": False, "min": None, "max": None}


SMALL = 4
"""The length up to which a vector is worth being known to be that long."""


class Restart(Exception):
    """A cell turned out to need a wider type than it was given; lowering starts again and knows it."""


class NotYetKnown(Exception):
    """A call of a function that is being lowered, before it is known what it returns."""


class Builder:
    """A program under construction, and the place in the source that is being lowered.

    Attributes:
        program: what is built.
        block: the statements at whose end new ones are added.
        at: where in the source they come from.
        equal: pairs of sizes that a guard has found equal.
        parents: the array that each view is a part of.
        known: what is known of the shapes of the arguments.
    """

    # Whether formulas of rules are lowered, which are never run as they stand.
    is_derived = False
    # Whether the user wants every index to be compared with the length of its axis.
    checks_indices = False
    # How many writes there were when the outermost loop began; None outside of loops.
    before_loop: int | None = None

    def __init__(self, program: Program) -> None:
        self.program = program
        self.block: Block = program.body
        self.at: At | None = None
        self.source: Source | None = None
        self.equal: set[tuple[Operand, Operand]] = set()
        self.parents: dict[str, str] = {}
        self.known = NOTHING
        # Axes that reach at least to a bound, or in which an index lies, as guards have found.
        self.long_enough: set[tuple[Operand, Operand]] = set()

    # --- places --------------------------------------------------------------------------------------------------

    @contextmanager
    def placed(self, node: ast.AST) -> Iterator[None]:
        """Statements emitted inside come from this node."""
        before = self.at
        assert self.source is not None
        self.at = self.source.at(node)
        yield  # an error keeps the place at which it arose
        self.at = before

    def refuse(self, fact: str, *ways: str) -> LanguageError:
        """The error for what is being lowered just now."""
        return refusal(self.at, fact, *ways)

    def undefined(self, fn: str, types: tuple[Type, ...]) -> LanguageError:
        """The error for an operation that does not take its operands."""
        are_complex = any(t.is_complex for t in types)
        if are_complex and fn in ops.IN_ORDER:
            return self.refuse(f"{fn} of complex numbers, which have no order", "z.real", "abs(z)")
        if are_complex and fn.startswith("cast:"):
            return self.refuse(f"a complex number where a {fn[5:]} is wanted", "z.real", "abs(z)")
        return self.refuse(f"{fn} is not defined for {' and '.join(map(str, types))}")

    # --- statements ----------------------------------------------------------------------------------------------

    def emit(self, s: Statement) -> None:
        s.at = self.at
        self.block.append(s)

    def inside(self, body: Callable[[], Any]) -> Block:
        """The statements that the body emits, as a block of their own."""
        outer, equal, long_enough = self.block, self.equal, self.long_enough
        self.block, self.equal, self.long_enough = [], set(equal), set(long_enough)
        try:
            body()
            return self.block
        finally:
            self.block, self.equal, self.long_enough = outer, equal, long_enough

    def op(self, fn: str, *args: Operand) -> Operand:
        """An operation on scalars; folded where all operands are literals."""
        value = ops.folded(fn, args)
        if value is not None:
            return value
        if fn in _OF_EQUALS and args[0] == args[1] and isinstance(args[0], str) and self.type_of(args[0]).kind in "iu":
            return args[0] if fn in ("min", "max") else _OF_EQUALS[fn]
        if fn == "size" and args[0] == 0 and self.program.is_size(args[1]):
            return args[1]
        if fn == "*" and args[1] == 1 and type(args[1]) is int and self.type_of(args[0]).kind in "fi":
            return args[0]
        if fn == "*" and args[0] == 1 and type(args[0]) is int and self.type_of(args[1]).kind in "fi":
            return args[1]
        if fn == "+" and args[0] == 0 and type(args[0]) is int and self.type_of(args[1]).kind in "fi":
            return args[1]
        if fn in ("+", "-") and args[1] == 0 and type(args[1]) is int and self.type_of(args[0]).kind in "fi":
            return args[0]
        if fn in ("real", "conj") and not self.type_of(args[0]).is_complex:
            return args[0]
        if fn == "imag" and not self.type_of(args[0]).is_complex:
            return zero_of(self.type_of(args[0]))
        types = tuple(self.type_of(a) for a in args)
        try:
            result = ops.result_type(fn, types)
        except TypeError:
            raise self.undefined(fn, types) from None
        dst = self.program.new("t", result)
        self.emit(Op(dst, fn, args))
        return dst

    def type_of(self, operand: Operand) -> Type:
        return self.program.type_of(operand)

    def is_array_name(self, value: Any) -> bool:
        return isinstance(value, str) and self.program.types[value].is_array

    def load(self, array: str, index: Index) -> Operand:
        dst = self.program.new(array, self.program.types[array].element)
        self.emit(Load(dst, array, index))
        return dst

    def store(self, array: str, index: Index, value: Operand) -> None:
        self.emit(Store(array, index, self.cast(value, self.program.types[array].element)))

    def increase(self, array: str, index: Index, value: Operand) -> None:
        self.emit(Increase(array, index, value))

    def get(self, cell: str) -> Operand:
        dst = self.program.new(cell, self.program.types[cell])
        self.emit(Get(dst, cell))
        return dst

    def new_cell(self, base: str, type: Type, value: Operand) -> str:
        cell = self.program.new(base, type)
        self.emit(Set(cell, value))
        return cell

    def cast(self, value: Operand, type: Type) -> Operand:
        """The value in another type, where that can lose something; a wider type needs no word."""
        have = self.type_of(value)
        if have == type or (have.kind == type.kind and type.is_inexact):
            return value
        if not isinstance(value, str) and type.is_inexact and not have.is_complex:
            return complex(value) if type.is_complex else float(value)
        if have.is_complex or type.is_complex or (have.kind == "f" and type.kind in "iub"):
            return self.op(f"cast:{type.dtype}", value)
        return value

    def alloc(self, base: str, shape: tuple[Operand, ...], type: Type, zero: bool = False) -> str:
        name = self.program.new(base, Type(type.dtype, len(shape)), shape)
        self.emit(Alloc(name, shape, zero))
        return name

    def view(self, array: str, index: Index, base: str = "") -> str:
        """A view by integers, slices and new axes. Its sizes are asked of the view itself, as NumPy clips slices."""
        used = sum(i is not None for i in index)
        index = (*index, *(Slice() for _ in range(self.program.types[array].ndim - used)))
        index = self.simplified(array, index)
        kept = [i for i in index if i is None or isinstance(i, Slice)]
        name = self.program.new(base or array, Type(self.program.types[array].dtype, len(kept)))
        self.emit(View(name, array, index))
        self.parents[name] = array
        dims: list[Operand] = []
        axis = 0
        for i in index:
            size = None if i is None else self.program.dims[array][axis]
            axis += i is not None
            if i is None:
                dims.append(1)
            elif i == Slice():
                dims.append(size)
            elif isinstance(i, Slice):
                known = self.length(i, size)
                dims.append(self.op("shape", name, len(dims)) if known is None else known)
        self.program.set_dims(name, tuple(dims))
        return name

    def reshaped(self, array: str, shape: tuple[Operand, ...]) -> str:
        """A view of all elements in another shape."""
        name = self.program.new(array, Type(self.program.types[array].dtype, len(shape)), shape)
        self.emit(View(name, array, (Reshaped(shape),)))
        self.parents[name] = array
        return name

    def simplified(self, array: str, index: Index) -> Index:
        """The index with slices of whole axes written as such."""
        sizes = iter(self.program.dims[array])
        items: list[Any] = []
        for i in index:
            n = None if i is None else next(sizes)
            is_all = isinstance(i, Slice) and i.low in (None, 0) and i.high in (None, n) and i.step in (None, 1)
            items.append(Slice() if is_all else i)
        return tuple(items)

    def length(self, s: Slice, size: Operand) -> Operand:
        """The length of a slice of an axis as an expression of the axis, so that equal slices are known to be equal.

        None where it depends on signs that are not known.
        """
        low, high = 0 if s.low is None else s.low, s.high
        known = _length(s, size)
        if known is not None or s.step is not None or isinstance(low, str):
            return known
        if high is None:
            return self.op("size", low, size) if low >= 0 else self.op("min", -low, size)
        if not isinstance(high, str) and high < 0:
            return self.op("size", low - high, size) if low >= 0 else None
        if not self.program.is_size(high) or low < 0:
            return None
        if not isinstance(high, str) and low < high <= low + SMALL and not self.known.clips:
            self.guard_reaches(size, high)
            return high - low
        end = self.op("min", high, size)
        return end if low == 0 else self.op("size", low, end)

    def transposed(self, array: str) -> str:
        dims = self.program.dims[array]
        if len(dims) < 2:
            return array
        name = self.program.new(array, self.program.types[array], dims[::-1])
        self.emit(View(name, array, (), True))
        self.parents[name] = array
        return name

    # --- control -------------------------------------------------------------------------------------------------

    def loop(self, low: Operand, high: Operand, body: Callable[[str], Any], base: str = "i") -> None:
        """`for var in range(low, high)`."""
        var = self.program.new(base, INT)
        self.emit(For(var, low, high, self.inside(lambda: body(var))))

    def nest(self, shape: tuple[Operand, ...], body: Callable[[Index], Any], index: Index = ()) -> None:
        """One loop for each axis; an axis of length 1 needs none."""
        if not shape:
            body(index)
        elif shape[0] == 1 and type(shape[0]) is int:
            self.nest(shape[1:], body, (*index, 0))
        else:
            self.loop(0, shape[0], lambda var: self.nest(shape[1:], body, (*index, var)))

    def branch(self, cond: Operand, then: Callable[[], Any], orelse: Callable[[], Any] | None = None) -> None:
        self.emit(If(cond, self.inside(then), self.inside(orelse) if orelse else []))

    def guard_equal(self, a: Operand, b: Operand, message: str = BROADCAST, kind: str = "ValueError") -> None:
        """Raise at run time where two sizes differ."""
        if a == b or (a, b) in self.equal:
            return
        differs = self.op("!=", a, b)
        if differs is False:
            return
        if differs is True:
            raise self.refuse(f"{message}: lengths {a} and {b}")
        self.branch(differs, lambda: self.emit(Raise(kind, f"{message}{self.where()}")))
        self.equal |= {(a, b), (b, a)}

    def guard_reaches(self, size: Operand, bound: int) -> None:
        """Raise at run time where an axis is shorter than a slice of it."""
        if (size, bound) in self.long_enough:
            return
        is_short = self.op("<", size, bound)
        self.branch(is_short, lambda: self.emit(Raise("ValueError", f"{SHORT}{self.where()}")))
        self.long_enough |= {(size, n) for n in range(bound + 1)}

    def guard_index(self, index: Operand, size: Operand) -> None:
        """Raise at run time where an integer is no place of an axis.

        numba does not look, so what is always compared is what costs nothing: numbers in the text, outside of loops.
        """
        is_free = not isinstance(index, str) and self.before_loop is None
        if self.is_derived or not (is_free or self.checks_indices):
            return
        bound = index if isinstance(index, str) else index + 1 if index >= 0 else -index
        if (size, bound) in self.long_enough:
            return
        is_outside = self.op("<", size, bound)
        if isinstance(index, str):
            before = self.op("<", index, self.op("neg", size))
            is_outside = self.op("or", before, self.op("<=", size, index))
        what = "index" if isinstance(index, str) else f"index {index}"
        error = Raise("IndexError", f"{what} is out of bounds{self.where()}")
        if is_outside is True:
            self.emit(error)
        elif is_outside is not False:
            self.branch(is_outside, lambda: self.emit(error))
        self.long_enough.add((size, bound))

    def guard_not_zero(self, n: Operand, kind: str, message: str) -> None:
        """Raise at run time where an integer is zero: derivative programs divide without a word."""
        is_zero = self.op("==", n, 0)
        if is_zero is not False:
            self.branch(is_zero, lambda: self.emit(Raise(kind, f"{message}{self.where()}")))

    def where(self) -> str:
        """`  (file.py:12)`, for messages of errors at run time."""
        if self.at is None or not self.at.file:
            return ""
        return f"  ({self.at.file.replace(chr(92), '/').rpartition('/')[2]}:{self.at.line})"

    def root(self, array: str) -> str:
        """The buffer that a view is a part of."""
        while array in self.parents:
            array = self.parents[array]
        return array

    def is_true(self, value: Operand) -> Operand:
        """The truth of a scalar."""
        if not isinstance(value, str):
            return bool(value)
        return value if self.type_of(value) == BOOL else self.op("!=", value, 0)


def _length(s: Slice, size: Operand) -> int | None:
    """The length of a slice where all of it is known."""
    bounds = (s.low, s.high, s.step)
    if type(size) is not int or any(isinstance(b, str) for b in bounds):
        return None
    return len(range(*slice(*bounds).indices(size)))
