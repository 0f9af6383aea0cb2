"""What reverse and forward mode share: writing operations on derivatives, and the product of two factors."""

from __future__ import annotations

from typing import Any

from retrograde.compiler import ops
from retrograde.compiler.form import Block, Op, Statement
from retrograde.compiler.partials import Product
from retrograde.compiler.program import Program
from retrograde.compiler.source import At
from retrograde.compiler.types import Operand, Type, zero_of
from retrograde.compiler.walks import is_number


class Writer:
    """Writes derivative code.

    Attributes:
        program: the derivative program.
        out: the block at whose end statements are added.
        at: the place in the user's source whose derivative is being written.
        careful: products check, as zero times infinity is zero (see docs/decisions/0004).
    """

    def __init__(self, program: Program, careful: bool) -> None:
        self.program = program
        self.out: Block = []
        self.at: At | None = None
        self.careful = careful
        self.made: dict[str, Op] = {}

    def emit(self, s: Statement) -> None:
        s.at = self.at
        self.out.append(s)

    def op(self, fn: str, *args: Operand) -> Operand:
        """An operation, simplified where that is exact."""
        value = ops.folded(fn, args)
        if value is not None:
            return value
        if fn == "size" and args[0] == 0 and self.program.is_size(args[1]):
            return args[1]
        if fn == "where" and type(args[0]) is bool:
            return args[1] if args[0] else args[2]
        if fn == "where" and args[1] == args[2] and type(args[1]) is type(args[2]):
            return args[1]
        if fn in ("+", "-") and is_number(args[1], 0):
            return args[0]
        if fn in ("*", "/") and is_number(args[1], 1) and self.is_inexact(args[0]):
            return args[0]
        if fn == "*" and is_number(args[0], 1) and self.is_inexact(args[1]):
            return args[1]
        if fn == "-" and is_number(args[0], 0):
            return self.op("neg", args[1])
        dst = self.program.new("t", ops.result_type(fn, tuple(self.program.type_of(a) for a in args)))
        s = Op(dst, fn, args)
        self.made[dst] = s
        self.emit(s)
        return dst

    def is_inexact(self, operand: Operand) -> bool:
        return self.program.type_of(operand).is_inexact

    def fitted(self, x: Operand, type: Type) -> Operand:
        """A derivative in the field of what it is the derivative of: of a real number it is the real part."""
        if self.program.type_of(x).is_complex == type.is_complex:
            return x
        if not type.is_complex:
            made = self.made.get(x) if isinstance(x, str) else None
            if made is not None and made.fn == "*" and made.args[1] == -1j:
                return self.op("imag", made.args[0])
            return self.op("real", x)
        return self.op(f"cast:{type.dtype}", x) if isinstance(x, str) else complex(x)

    def conj(self, x: Any) -> Any:
        """The complex conjugate, of factors where that costs nothing."""
        if isinstance(x, Product):
            return x.conjugate()
        if not self.program.type_of(x).is_complex:
            return x
        made = self.made.get(x) if isinstance(x, str) else None
        if made is not None and made.fn == "conj":
            return made.args[0]
        if made is not None and (made.fn == "neg" or (made.fn in ("*", "times", "/") and self.is_conjugate(made))):
            return self.op(made.fn, *map(self.conj, made.args))
        return self.op("conj", x)

    def is_conjugate(self, product: Op) -> bool:
        """Whether one factor is real, and the other one the conjugate of something or the divisor."""
        found = [self.made.get(a) for a in product.args if self.program.type_of(a).is_complex]
        return len(found) == 1 and (product.fn == "/" or (found[0] is not None and found[0].fn == "conj"))

    def times(self, g: Operand, partial: Operand | Product) -> Operand:
        """A cotangent or tangent times a partial derivative."""
        if isinstance(partial, Product):
            return partial.of(g, self.conj if partial.is_conjugate else _same)
        if not isinstance(partial, str):
            if partial == 1:
                return g
            if partial == 1j and not self.program.type_of(g).is_complex:
                return self.op("complex", 0.0, g)
            return self.op("neg", g) if partial == -1 else self.op("*", g, partial)
        made = self.made.get(partial)
        if made is not None and made.fn == "where" and not any(isinstance(a, str) for a in made.args[1:]):
            # A choice between constants is a choice between products.
            zero = zero_of(self.program.type_of(g))
            return self.op("where", made.args[0], *(zero if a == 0 else self.times(g, a) for a in made.args[1:]))
        if made is not None and made.fn == "neg":
            return self.op("neg", self.times(g, made.args[0]))
        if self.careful:
            return self.op("times", g, partial)
        if made is not None and made.fn == "/" and made.args[0] == 1:
            return self.op("/", g, made.args[1])
        return self.op("*", g, partial)


def _same(x: Operand) -> Operand:
    return x
