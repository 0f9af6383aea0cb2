"""Operators, comparisons, and choices between values."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Sequence
from typing import Any

from retrograde.compiler import ops
from retrograde.compiler.form import Block, Get, If, Op, Set
from retrograde.compiler.known import Constant
from retrograde.compiler.lower import functions
from retrograde.compiler.lower.builder import NotYetKnown
from retrograde.compiler.lower.descriptions import describe
from retrograde.compiler.lower.frame import Frame
from retrograde.compiler.lower.indexing import Indexing
from retrograde.compiler.lower.values import NONE, InCell, Object
from retrograde.compiler.types import BOOL, Operand

OPERATORS: dict[type, str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
}


class Operators(Indexing):
    # The functions that are being lowered, the one that is called last at the end.
    frames: list[Frame]

    @property
    def frame(self) -> Frame:
        return self.frames[-1]

    def scalar(self, node: ast.expr, what: str = "a number") -> Operand:
        value = self.expr(node)
        if self.is_array(value) or isinstance(value, tuple | Object):
            with self.placed(node):
                raise self.refuse(f"{describe(self, value)} where {what} is wanted")
        return value

    def on_BinOp(self, node: ast.BinOp) -> Any:
        left, right = self.exprs([node.left, node.right])
        if isinstance(node.op, ast.MatMult):
            return functions.matmul(self, left, right)
        return self.binary(OPERATORS[type(node.op)], left, right)

    def binary(self, sign: str, left: Any, right: Any) -> Any:
        if isinstance(left, tuple) and isinstance(right, tuple) and sign == "+":
            return left + right
        if isinstance(left, tuple) and type(right) is int and sign == "*":
            return left * right
        for side in (left, right):
            if isinstance(side, tuple | Object):
                raise self.refuse(f"{sign} of {describe(self, side)}")
        if sign in ("//", "%") and all(self.is_whole_number(side) for side in (left, right)):
            self.guard_not_zero(right, "ZeroDivisionError", "integer division or modulo by zero")
        return self.elementwise(sign, left, right)

    def is_whole_number(self, value: Any) -> bool:
        return not self.is_array(value) and self.element_type(value).kind in "iub"

    def on_UnaryOp(self, node: ast.UnaryOp) -> Any:
        value = self.expr(node.operand)
        if isinstance(value, tuple | Object):
            if isinstance(node.op, ast.Not) and value is NONE:
                return True
            raise self.refuse(f"a sign before {describe(self, value)}")
        if isinstance(node.op, ast.UAdd):
            return value
        if isinstance(node.op, ast.USub):
            return self.elementwise("neg", value)
        if isinstance(node.op, ast.Not):
            if self.is_array(value):
                raise self.refuse("the truth of an array", "np.all(x), np.any(x), ~mask")
            return self.op("not", self.is_true(value))
        if self.element_type(value) == BOOL:
            return self.elementwise("not", value)
        return self.elementwise("~", value)

    def on_Compare(self, node: ast.Compare) -> Any:
        left, right = self.exprs([node.left, node.comparators[0]])
        first = self.compare(node.ops[0], left, right)
        if len(node.ops) == 1:
            return first
        if self.is_array(first):
            raise self.refuse("a chained comparison of arrays", "(a < x) & (x < b)")
        values = [right]

        def part(k: int) -> Operand:
            if k == 0:
                return self.is_true(first)
            values.append(self.scalar(node.comparators[k]))
            return self.is_true(self.compare(node.ops[k], values[k - 1], values[k]))

        return self.decided(True, [functools.partial(part, k) for k in range(len(node.ops))])

    def compare(self, sign: ast.cmpop, left: Any, right: Any) -> Any:
        if isinstance(sign, ast.Is | ast.IsNot):
            constants = [v for v in (left, right) if isinstance(v, Constant)]
            if not constants:
                raise self.refuse("`is` between values", "==")
            is_same = len(constants) == 2 and left.value is right.value
            return is_same if isinstance(sign, ast.Is) else not is_same
        if isinstance(sign, ast.In | ast.NotIn):
            if not isinstance(right, tuple):
                raise self.refuse("`in` something that is no tuple", "a loop, or np.any(x == v)")
            found: Operand = False
            for item in right:
                found = self.op("or", found, self.compare(ast.Eq(), left, item))
            return found if isinstance(sign, ast.In) else self.op("not", found)
        if isinstance(left, Constant) and isinstance(right, Constant) and isinstance(sign, ast.Eq | ast.NotEq):
            return (left.value == right.value) is isinstance(sign, ast.Eq)
        for side in (left, right):
            if isinstance(side, tuple | Object):
                raise self.refuse(f"a comparison of {describe(self, side)}")
        return self.elementwise(OPERATORS[type(sign)], left, right)

    def on_BoolOp(self, node: ast.BoolOp) -> Any:
        truths = [functools.partial(self.truth_of, value) for value in node.values]
        return self.decided(isinstance(node.op, ast.And), truths)

    def decided(self, is_and: bool, truths: Sequence[Callable[[], Operand]]) -> Operand:
        """`and`, `or`: what stands on the right runs only if the left leaves it open."""
        result = truths[0]()
        for truth in truths[1:]:
            if not isinstance(result, str):
                if result is not is_and:
                    return result
                result = truth()
                continue
            found: list[Operand] = []
            right = self.inside(functools.partial(_collect, found, truth))
            if all(isinstance(s, Get) or (isinstance(s, Op) and ops.is_cheap(s.fn)) for s in right):
                self.block += right
                result = self.op("and" if is_and else "or", result, found[0])
                continue
            cell = self.new_cell("both" if is_and else "either", BOOL, result)
            right.append(Set(cell, found[0], at=self.at))
            self.emit(If(result if is_and else self.op("not", result), right, []))
            result = self.get(cell)
        return result

    def truth_of(self, node: ast.expr) -> Operand:
        """The truth of a test."""
        value = self.expr(node)
        with self.placed(node):
            if value is NONE:
                return False
            if self.is_array(value):
                raise self.refuse("the truth of an array", "np.all(x), np.any(x), or its size")
            if isinstance(value, tuple | Object):
                raise self.refuse(f"the truth of {describe(self, value)}")
            return self.is_true(value)

    def on_IfExp(self, node: ast.IfExp) -> Any:
        cond = self.truth_of(node.test)
        if not isinstance(cond, str):
            return self.expr(node.body if cond else node.orelse)
        values: list[Any] = []
        blocks = []
        for n in (node.body, node.orelse):
            made = self.attempted(functools.partial(_collect, values, functools.partial(self.expr, n)))
            if made is not None:
                blocks.append(made)
        if not blocks:
            raise NotYetKnown
        if len(blocks) == 1:
            self.block += blocks[0]
            return values[0]
        if not any(blocks) and not any(self.is_array(v) or isinstance(v, tuple | Object) for v in values):
            return self.op("where", cond, *values)
        branch = If(cond, blocks[0], blocks[1], at=self.at)
        seen = [*self.frame.env.values(), *self.seen_outside()]
        joined = self.joined(branch, values[0], values[1], "choice", [seen, seen])
        self.emit(branch)
        return self.read_cells(joined)

    def attempted(self, body: Callable[[], Any]) -> Block | None:
        """The statements that the body emits; None where it calls a function whose result is not known yet."""
        at, source, depth = self.at, self.source, len(self.frames)
        try:
            return self.inside(body)
        except NotYetKnown:
            del self.frames[depth:]
            self.at, self.source = at, source
            return None

    def seen_outside(self) -> list[Any]:
        """The values of all names but those of the innermost function."""
        return [v for frame in self.frames[:-1] for v in frame.env.values()]

    def read_cells(self, value: Any) -> Any:
        if isinstance(value, tuple):
            parts = [self.read_cells(v) for v in value]
            return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
        return self.get(value.cell) if isinstance(value, InCell) else value

    # --- what Expressions and Flow have ---------------------------------------------------------------------------

    def expr(self, node: ast.expr) -> Any:
        raise NotImplementedError

    def exprs(self, nodes: list[ast.expr]) -> list[Any]:
        raise NotImplementedError

    def joined(self, made: If, a: Any, b: Any, base: str, seen: Any) -> Any:
        raise NotImplementedError


def _collect(into: list[Any], make: Callable[[], Any]) -> None:
    into.append(make())


__all__ = ["OPERATORS", "Operators"]
