"""Products with several numbers become products with one: -(0.1 x) · 2 is -0.2 x, and waits for one product less.

Only where all but one of the numbers are powers of two, signs included: then the product is the same to the last bit,
unless it comes near the largest or smallest numbers there are on the way. Part of `vectormath`.
"""

from __future__ import annotations

import math

from retrograde.compiler.form import Block, Op
from retrograde.compiler.program import Program
from retrograde.compiler.types import FLOAT, Operand
from retrograde.compiler.walks import blocks_of

LARGEST = 1e100


def scale_once(program: Program) -> None:
    _Scaling(program).block(program.body, {})


class _Scaling:
    def __init__(self, program: Program) -> None:
        self.program = program

    def block(self, block: Block, known: dict[str, tuple[str, float]]) -> None:
        """Go through a block, where some values are `known` to be multiples of others."""
        for s in block:
            if isinstance(s, Op) and self.program.types[s.dst] == FLOAT:
                found = self.multiple(s, known)
                if found is not None:
                    known[s.dst] = found
                    if s.fn == "*":
                        s.args = found
            for inner in blocks_of(s):
                self.block(inner, dict(known))

    def multiple(self, s: Op, known: dict[str, tuple[str, float]]) -> tuple[str, float] | None:
        """What an operation is a multiple of."""
        if s.fn == "neg":
            x, factor = s.args[0], -1.0
        elif s.fn == "*" and _is_number(s.args[1]):
            x, factor = s.args[0], float(s.args[1])
        elif s.fn == "*" and _is_number(s.args[0]):
            x, factor = s.args[1], float(s.args[0])
        elif s.fn == "/" and _is_number(s.args[1]) and _is_power_of_two(s.args[1]):
            x, factor = s.args[0], 1.0 / s.args[1]
        else:
            return None
        if not isinstance(x, str) or self.program.types[x] != FLOAT:
            return None
        base, before = known.get(x, (x, 1.0))
        if not (_is_power_of_two(before) or _is_power_of_two(factor)):
            base, before = x, 1.0
        product = before * factor
        return (base, product) if 1 / LARGEST < abs(product) < LARGEST else None


def _is_number(x: Operand) -> bool:
    return type(x) is float or (type(x) is int and abs(x) < 2**53)


def _is_power_of_two(x: float) -> bool:
    return abs(math.frexp(x)[0]) == 0.5


__all__ = ["scale_once"]
