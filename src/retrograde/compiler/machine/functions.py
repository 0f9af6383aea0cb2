"""The functions of vectormath.py in LLVM's text, of one number or of one in each lane, straight from their source.

numba would find out their types first, at a quarter of a second each. They are straight lines of arithmetic on float64,
int64 and truth values, in which every choice is a selection, so that their source is read here as it stands: a name is
what was computed for it, a call is what the called function computes. Both give the same bits.
"""

from __future__ import annotations

import ast
import functools
import math
import operator
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from retrograde.compiler.machine.scalars import SUFFIXES, Unwritable, kind, literal
from retrograde.compiler.types import BOOL, FLOAT, INT, Type

SOURCE = Path(__file__).parent.parent / "vectormath.py"
TABLE = "retrograde.table."
_INTRINSICS = {
    "_floor": "floor",
    "_rint": "rint",
    "_fma": "fma",
    "_muladd": "fmuladd",
    "_maximum": "maximum",
    "_minimum": "minimum",
    "abs": "fabs",
}
_FLOATS: dict[type, str] = {ast.Add: "fadd", ast.Sub: "fsub", ast.Mult: "fmul", ast.Div: "fdiv"}
_INTS: dict[type, str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.LShift: "shl",
    ast.RShift: "ashr",
    ast.BitAnd: "and",
    ast.BitOr: "or",
}
_TRUTHS: dict[type, str] = {ast.BitAnd: "and", ast.BitOr: "or"}
_TESTS: dict[type, tuple[str, str]] = {
    ast.Lt: ("olt", "slt"),
    ast.LtE: ("ole", "sle"),
    ast.Gt: ("ogt", "sgt"),
    ast.GtE: ("oge", "sge"),
    ast.Eq: ("oeq", "eq"),
    ast.NotEq: ("une", "ne"),
}
_OF_CONSTANTS: dict[type, Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.USub: operator.neg,
}


class Value(NamedTuple):
    text: str
    type: Type


class Source(NamedTuple):
    """What vectormath.py defines: functions, and constants, tables among them."""

    functions: dict[str, ast.FunctionDef]
    constants: dict[str, Any]


@functools.cache
def source() -> Source:
    """What is made of numba's own functions is left out.

    Raises: Unwritable: where the package is no files.
    """
    functions: dict[str, ast.FunctionDef] = {}
    scope: dict[str, Any] = {"np": np, "math": math, "Any": Any}
    try:
        text = SOURCE.read_text(encoding="utf-8")
    except OSError as error:
        raise Unwritable("the functions of vectormath.py") from error
    for s in ast.parse(text).body:
        if isinstance(s, ast.FunctionDef) and s.decorator_list:
            functions[s.name] = s
        elif isinstance(s, ast.FunctionDef | ast.Assign) and not _is_of_numba(s):
            exec(compile(ast.Module([s], []), str(SOURCE), "exec"), scope)
    return Source(functions, scope)


def _is_of_numba(s: ast.stmt) -> bool:
    return any(
        isinstance(n, ast.Name) and n.id in ("types", "intrinsic", "ir", "_instruction", "_plus") for n in ast.walk(s)
    )


@functools.cache
def text_of(name: str, lanes: int) -> tuple[str, str, tuple[str, ...]]:
    """A function of vectormath.py: its symbol, its text, and what that takes to be declared."""
    return _Writer(lanes).function(name)


_DECLARATION = re.compile(rf'^@"{re.escape(TABLE)}(\w+)" = external .*$', re.MULTILINE)


def with_tables(text: str) -> str:
    """A text with the tables of numbers that it declares: of a size that is not kept on disk with every text."""
    return re.sub(
        rf'^@"{re.escape(TABLE)}(\w+)" = external .*$', lambda found: table_text(found[1]), text, flags=re.MULTILINE
    )


@functools.cache
def table_text(name: str) -> str:
    table = source().constants[name]
    numbers = ", ".join(f"double {literal(x, FLOAT)}" for x in table)
    return f'@"{TABLE}{name}" = internal constant [{len(table)} x double] [{numbers}]'


class _Writer:
    def __init__(self, lanes: int) -> None:
        self.lanes = lanes
        self.lines: list[str] = []
        self.declared: dict[str, None] = {}

    def function(self, name: str) -> tuple[str, str, tuple[str, ...]]:
        params = source().functions[name].args.args
        args = [Value(f"%x{k}", FLOAT) for k in range(len(params))]
        found = self.called(name, args)
        symbol = f'@"retrograde.vectormath.{name}{f".{self.lanes}" if self.lanes else ""}"'
        double = self.kind(FLOAT)
        given = ", ".join(f"{double} {a.text}" for a in args)
        head = f"define internal {double} {symbol}({given}) alwaysinline {{"
        return (
            symbol,
            "\n".join([head, *self.lines, f"  ret {double} {self.of(found).text}", "}"]),
            tuple(self.declared),
        )

    # --- instructions --------------------------------------------------------------------------------------------

    def kind(self, type: Type) -> str:
        return f"<{self.lanes} x {kind(type)}>" if self.lanes else kind(type)

    def new(self, text: str, type: Type) -> Value:
        name = f"%v{len(self.lines)}"
        self.lines.append(f"  {name} = {text}")
        return Value(name, type)

    def of(self, x: Any, type: Type | None = None) -> Value:
        """A number that is known, or a value."""
        if isinstance(x, Value):
            return x
        if type is None:
            type = BOOL if isinstance(x, bool) else INT if isinstance(x, int) else FLOAT
        text = literal(x, type)
        return Value(f"<{', '.join([f'{kind(type)} {text}'] * self.lanes)}>" if self.lanes else text, type)

    def alike(self, a: Any, b: Any) -> tuple[Value, Value]:
        """Two operands of one type: a number that is known takes that of the other."""
        type = next((x.type for x in (a, b) if isinstance(x, Value)), None)
        a, b = self.of(a, type), self.of(b, type)
        assert a.type == b.type, "the functions convert nothing"
        return a, b

    def intrinsic(self, name: str, args: list[Any]) -> Value:
        double = self.kind(FLOAT)
        symbol = f"@llvm.{name}.{f'v{self.lanes}' if self.lanes else ''}{SUFFIXES['double']}"
        self.declared[f"declare {double} {symbol}({', '.join([double] * len(args))})"] = None
        given = ", ".join(f"{double} {self.of(a, FLOAT).text}" for a in args)
        return self.new(f"call {double} {symbol}({given})", FLOAT)

    # --- functions and statements --------------------------------------------------------------------------------

    def called(self, name: str, args: list[Any]) -> Any:
        if name in _INTRINSICS:
            return self.intrinsic(_INTRINSICS[name], args)
        if name == "_bits":
            return self.new(f"bitcast {self.kind(FLOAT)} {self.of(args[0], FLOAT).text} to {self.kind(INT)}", INT)
        if name == "_float_of_bits":
            return self.new(f"bitcast {self.kind(INT)} {self.of(args[0], INT).text} to {self.kind(FLOAT)}", FLOAT)
        if name == "_reordered_sum":
            a, b = self.alike(*args)
            return self.new(f"fadd reassoc {self.kind(FLOAT)} {a.text}, {b.text}", FLOAT)
        function = source().functions[name]
        names = dict(zip((p.arg for p in function.args.args), args, strict=True))
        for s in function.body:
            if isinstance(s, ast.Return):
                return self.value(s.value, names)
            if isinstance(s, ast.Assign):
                (target,) = s.targets
                found = self.value(s.value, names)
                if isinstance(target, ast.Tuple):
                    names.update(zip((t.id for t in target.elts), found, strict=True))  # type: ignore[attr-defined]
                else:
                    names[target.id] = found  # type: ignore[attr-defined]
        raise AssertionError(f"{name} gives nothing")

    def value(self, e: Any, names: dict[str, Any]) -> Any:
        method: Any = getattr(self, f"of_{type(e).__name__}")
        return method(e, names)

    def of_Constant(self, e: ast.Constant, _names: dict[str, Any]) -> Any:
        return e.value

    def of_Name(self, e: ast.Name, names: dict[str, Any]) -> Any:
        return names[e.id] if e.id in names else source().constants[e.id]

    def of_Attribute(self, e: ast.Attribute, _names: dict[str, Any]) -> Any:
        return getattr(np, e.attr)

    def of_Tuple(self, e: ast.Tuple, names: dict[str, Any]) -> Any:
        return tuple(self.value(x, names) for x in e.elts)

    def of_Call(self, e: ast.Call, names: dict[str, Any]) -> Any:
        args = [self.value(a, names) for a in e.args]
        if isinstance(e.func, ast.Attribute):
            return args[0]  # an integer that is not negative, as one without a sign
        assert isinstance(e.func, ast.Name)
        return self.called(e.func.id, args)

    def of_UnaryOp(self, e: ast.UnaryOp, names: dict[str, Any]) -> Any:
        x = self.value(e.operand, names)
        if not isinstance(x, Value):
            return _OF_CONSTANTS[type(e.op)](x)
        if isinstance(e.op, ast.Not):
            return self.new(f"xor {self.kind(BOOL)} {x.text}, {self.of(True).text}", BOOL)
        if x.type == FLOAT:
            return self.new(f"fneg {self.kind(FLOAT)} {x.text}", FLOAT)
        return self.new(f"sub {self.kind(INT)} {self.of(0).text}, {x.text}", INT)

    def of_BinOp(self, e: ast.BinOp, names: dict[str, Any]) -> Any:
        x, y = self.value(e.left, names), self.value(e.right, names)
        if not isinstance(x, Value) and not isinstance(y, Value):
            return _OF_CONSTANTS[type(e.op)](x, y)
        a, b = self.alike(x, y)
        how = {FLOAT: _FLOATS, INT: _INTS, BOOL: _TRUTHS}[a.type][type(e.op)]
        return self.new(f"{how} {self.kind(a.type)} {a.text}, {b.text}", a.type)

    def of_Compare(self, e: ast.Compare, names: dict[str, Any]) -> Any:
        a, b = self.alike(self.value(e.left, names), self.value(e.comparators[0], names))
        real, whole = _TESTS[type(e.ops[0])]
        how = f"fcmp {real}" if a.type == FLOAT else f"icmp {whole}"
        return self.new(f"{how} {self.kind(a.type)} {a.text}, {b.text}", BOOL)

    def of_IfExp(self, e: ast.IfExp, names: dict[str, Any]) -> Any:
        test = self.value(e.test, names)
        if test.type == INT:
            test = self.new(f"icmp ne {self.kind(INT)} {test.text}, {self.of(0).text}", BOOL)
        a, b = self.alike(self.value(e.body, names), self.value(e.orelse, names))
        type = self.kind(a.type)
        return self.new(f"select {self.kind(BOOL)} {test.text}, {type} {a.text}, {type} {b.text}", a.type)

    def of_Subscript(self, e: ast.Subscript, names: dict[str, Any]) -> Any:
        """An element of a table."""
        assert isinstance(e.value, ast.Name)
        table = f'@"{TABLE}{e.value.id}"'
        self.declared[f"{table} = external constant [{len(source().constants[e.value.id])} x double]"] = None
        place = self.value(e.slice, names)
        if not self.lanes:
            return self.element(table, place.text)
        made = "poison"
        for k in range(self.lanes):
            one = self.new(f"extractelement {self.kind(INT)} {place.text}, i64 {k}", INT)
            x = self.element(table, one.text)
            made = self.new(f"insertelement {self.kind(FLOAT)} {made}, double {x.text}, i64 {k}", FLOAT).text
        return Value(made, FLOAT)

    def element(self, table: str, place: str) -> Value:
        pointer = self.new(f"getelementptr double, ptr {table}, i64 {place}", INT)
        return self.new(f"load double, ptr {pointer.text}", FLOAT)


__all__ = ["text_of", "with_tables"]
