"""Numbers in LLVM's text: their types, literals, conversions, and the operations that are an instruction or two.

What is no single instruction has numba's own meaning: it is called by a name, and kernel.py asks numba for its code.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from retrograde.compiler.machine.written import Called
from retrograde.compiler.types import BOOL, FLOAT, INT, Operand, Type

KINDS = {
    "float64": "double",
    "float32": "float",
    "int64": "i64",
    "uint64": "i64",
    "int32": "i32",
    "uint32": "i32",
    "int16": "i16",
    "uint16": "i16",
    "int8": "i8",
    "uint8": "i8",
    "bool": "i1",
    "complex128": "{double, double}",
    "complex64": "{float, float}",
}
SUFFIXES = {"double": "f64", "float": "f32", "i1": "i1"} | {f"i{n}": f"i{n}" for n in (8, 16, 32, 64)}
_ARITHMETIC = {"+": "add", "-": "sub", "*": "mul"}
_FLOAT_TESTS = {"<": "olt", "<=": "ole", ">": "ogt", ">=": "oge", "==": "oeq", "!=": "une"}
_INT_TESTS = {"<": "slt", "<=": "sle", ">": "sgt", ">=": "sge", "==": "eq", "!=": "ne"}
MOST_UNROLLED = 0x10000  # the exponents up to which numba writes multiplications


class Unwritable(Exception):
    """Something that has no text here; numba compiles the program from its Python text instead."""


def kind(type: Type) -> str:
    try:
        return KINDS[type.dtype]
    except KeyError:
        raise Unwritable(type.dtype) from None


def in_memory(type: Type) -> str:
    return "i8" if type.dtype == "bool" else kind(type)


def literal(x: Any, type: Type) -> str:
    """A number as a literal of some type."""
    letter = type.kind
    if letter == "b":
        return "true" if x else "false"
    if letter in "iu":
        return str(int(x))
    if letter == "f":
        value = float(np.float32(x)) if type.dtype == "float32" else float(x)
        return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"
    part = Type("float64" if type.dtype == "complex128" else "float32")
    return f"{{{kind(part)} {literal(complex(x).real, part)}, {kind(part)} {literal(complex(x).imag, part)}}}"


def nothing(type: Type) -> str:
    """Zero of a type."""
    return "zeroinitializer" if type.kind == "c" else literal(0, type)


class Scalars:
    """Writes the instructions of a function that compute numbers.

    Args:
        fast: LLVM's flags of floating-point instructions.
        called: the operations that are called by a name; shared by all functions of a text.

    Attributes:
        lanes: of the numbers that are being written (see vectors.py); 0 of single ones.
    """

    lanes = 0

    def __init__(self, fast: str, called: dict[Any, Called]) -> None:
        self.fast = fast
        self.called = called
        self.lines: list[str] = []
        self.count = 0

    # --- what a function tells -----------------------------------------------------------------------------------

    def type_of(self, x: Operand) -> Type:
        raise NotImplementedError

    def value(self, x: str) -> str:
        raise NotImplementedError

    def kind(self, type: Type) -> str:
        """LLVM's name of a type of numbers."""
        return kind(type)

    def literal(self, x: Any, type: Type) -> str:
        return literal(x, type)

    def intrinsic(self, name: str, type: Type) -> str:
        """The symbol of what LLVM knows by a name, for a type."""
        return f"@llvm.{name}.{SUFFIXES[kind(type)]}"

    # --- instructions --------------------------------------------------------------------------------------------

    def write(self, text: str) -> None:
        self.lines.append(f"  {text}")

    def new(self, text: str) -> str:
        """The name of what an instruction gives."""
        self.count += 1
        name = f"%v{self.count}"
        self.lines.append(f"  {name} = {text}")
        return name

    def operand(self, x: Operand, wanted: Type | None = None) -> str:
        """A name or a number, as one of the type that is wanted."""
        if not isinstance(x, str):
            type = self.type_of(x)
            if wanted is not None and type.kind in "ib" and wanted.kind in "iufcb":
                return self.literal(x, wanted)
            if wanted is not None and type == FLOAT and wanted.kind in "fc":
                return self.literal(x, wanted)
            return self.converted(self.literal(x, type), type, wanted or type)
        type = self.type_of(x)
        return self.converted(self.value(x), type, wanted or type)

    def converted(self, text: str, given: Type, wanted: Type) -> str:
        """As numba casts."""
        if given.dtype == wanted.dtype:
            return text
        a, b = given.kind, wanted.kind
        source, target = self.kind(given), self.kind(wanted)
        if b == "b":
            if a == "f":
                return self.new(f"fcmp une {source} {text}, {self.literal(0.0, given)}")
            if a in "iu":
                return self.new(f"icmp ne {source} {text}, {self.literal(0, given)}")
        elif a == "b" and b in "iu":
            return self.new(f"zext {self.kind(BOOL)} {text} to {target}")
        elif a == "b" and b == "f":
            return self.new(f"uitofp {self.kind(BOOL)} {text} to {target}")
        elif a in "iu" and b in "iu":
            if source == target:
                return text
            narrower = np.dtype(given.dtype).itemsize > np.dtype(wanted.dtype).itemsize
            how = "trunc" if narrower else "sext" if a == "i" else "zext"
            return self.new(f"{how} {source} {text} to {target}")
        elif a in "iu" and b == "f":
            return self.new(f"{'sitofp' if a == 'i' else 'uitofp'} {source} {text} to {target}")
        elif a == "f" and b == "f":
            return self.new(f"{'fptrunc' if wanted.dtype == 'float32' else 'fpext'} {source} {text} to {target}")
        elif a == "f" and b in "iu":
            return self.new(f"{'fptosi' if b == 'i' else 'fptoui'} {source} {text} to {target}")
        return self.call("id", (given,), (text,), wanted)

    def truth(self, x: Operand) -> str:
        return self.operand(x, BOOL)

    def add(self, a: str, b: str) -> str:
        """a + b of integers, of which literals are added here."""
        if a == "0" or b == "0":
            return b if a == "0" else a
        if _is_digits(a) and _is_digits(b):
            return str(int(a) + int(b))
        return self.new(f"add {self.kind(INT)} {a}, {b}")

    def minus(self, a: str, b: str) -> str:
        if b == "0":
            return a
        if _is_digits(a) and _is_digits(b):
            return str(int(a) - int(b))
        return self.new(f"sub {self.kind(INT)} {a}, {b}")

    def times(self, a: str, b: str) -> str:
        if a == "1" or b == "1":
            return b if a == "1" else a
        if a == "0" or b == "0":
            return "0"
        if _is_digits(a) and _is_digits(b):
            return str(int(a) * int(b))
        return self.new(f"mul {self.kind(INT)} {a}, {b}")

    def smaller(self, a: str, b: str) -> str:
        return a if a == b else self.extreme("smin", a, b)

    def larger(self, a: str, b: str) -> str:
        return a if a == b else self.extreme("smax", a, b)

    def extreme(self, name: str, a: str, b: str) -> str:
        word = self.kind(INT)
        return self.new(f"call {word} {self.intrinsic(name, INT)}({word} {a}, {word} {b})")

    # --- operations ----------------------------------------------------------------------------------------------

    def operation(self, fn: str, args: tuple[Operand, ...], result: Type) -> str:
        """The value of an operation of the table ops.py."""
        if fn in ("id", "value", "keep") or fn.startswith("cast:"):
            return self.operand(args[0], result)
        types = tuple(map(self.type_of, args))
        if fn in _ARITHMETIC and _is_plain(types, result):
            a, b = (self.operand(x, result) for x in args)
            if result.kind == "f":
                return self.new(f"f{_ARITHMETIC[fn]}{self.fast} {self.kind(result)} {a}, {b}")
            return {"+": self.add, "-": self.minus, "*": self.times}[fn](a, b)
        if fn == "/" and result == FLOAT and all(t in (FLOAT, INT) for t in types):
            a, b = (self.operand(x, FLOAT) for x in args)
            return self.new(f"fdiv{self.fast} {self.kind(FLOAT)} {a}, {b}")
        if fn in _FLOAT_TESTS and types == (INT, INT):
            a, b = map(self.operand, args)
            return self.new(f"icmp {_INT_TESTS[fn]} {self.kind(INT)} {a}, {b}")
        if fn in _FLOAT_TESTS and FLOAT in types and all(t in (FLOAT, INT) for t in types):
            a, b = (self.operand(x, FLOAT) for x in args)
            return self.new(f"fcmp{self.fast} {_FLOAT_TESTS[fn]} {self.kind(FLOAT)} {a}, {b}")
        if fn == "neg" and types[0] == result and result.kind == "f":
            return self.new(f"fneg{self.fast} {self.kind(result)} {self.operand(args[0])}")
        if fn == "neg" and types[0] == result == INT:
            return self.minus(self.literal(0, INT), self.operand(args[0]))
        if fn in ("and", "or") and types == (BOOL, BOOL):
            a, b = map(self.operand, args)
            return self.new(f"{fn} {self.kind(BOOL)} {a}, {b}")
        if fn == "not":
            return self.new(f"xor {self.kind(BOOL)} {self.truth(args[0])}, {self.literal(True, BOOL)}")
        if fn == "where":
            test = self.truth(args[0])
            a, b = (self.operand(x, result) for x in args[1:])
            return self.choice(test, a, b, result)
        if fn in ("min", "max") and result == INT and types == (INT, INT):
            return (self.smaller if fn == "min" else self.larger)(*map(self.operand, args))
        if fn in ("min", "max") and result == FLOAT and all(t in (FLOAT, INT) for t in types):
            a, b = (self.operand(x, FLOAT) for x in args)
            other = self.new(f"fcmp{self.fast} {'olt' if fn == 'min' else 'ogt'} {self.kind(FLOAT)} {b}, {a}")
            return self.choice(other, b, a, FLOAT)
        if fn == "size":
            low, high = (self.operand(x, INT) for x in args)
            return self.larger(self.minus(high, low), self.literal(0, INT))
        if fn == "times" and result == FLOAT and types == (FLOAT, FLOAT):
            return self._times(*map(self.operand, args))
        if fn == "root":
            return self._called("np.sqrt", args, types, result)
        if fn == "squared" and result == FLOAT == types[0]:
            x = self.operand(args[0])
            return self.new(f"fmul{self.fast} {self.kind(FLOAT)} {x}, {x}")
        if fn in ("per", "over", "along") and result == FLOAT and types == (FLOAT, FLOAT):
            return self._of_length(fn, *map(self.operand, args))
        return self._called(fn, args, types, result)

    def _of_length(self, fn: str, a: str, b: str) -> str:
        """The operations of lengths (see ops.py)."""
        zero, double, truth = self.literal(0.0, FLOAT), self.kind(FLOAT), self.kind(BOOL)
        if fn != "along":
            quotient = self.new(f"fdiv{self.fast} {double} {a}, {b}")
            if fn == "per":
                return quotient
            return self.choice(self.new(f"fcmp oeq {double} {a}, {zero}"), zero, quotient, FLOAT)
        product = self.new(f"fmul{self.fast} {double} {a}, {b}")
        lost = self.new(f"fcmp uno {double} {product}, {product}")
        first, second = (self.new(f"fcmp oeq {double} {x}, {zero}") for x in (a, b))
        either = self.new(f"or {truth} {first}, {second}")
        return self.choice(self.new(f"and {truth} {either}, {lost}"), zero, product, FLOAT)

    def _times(self, g: str, partial: str) -> str:
        """The product, which is zero where g is zero, though the partial be infinite or NaN."""
        zero, double = self.literal(0.0, FLOAT), self.kind(FLOAT)
        product = self.new(f"fmul{self.fast} {double} {g}, {partial}")
        none = self.new(f"fcmp oeq {double} {g}, {zero}")
        lost = self.new(f"fcmp uno {double} {product}, {product}")
        return self.choice(self.new(f"and {self.kind(BOOL)} {none}, {lost}"), zero, product, FLOAT)

    def choice(self, test: str, a: str, b: str, type: Type) -> str:
        return self.new(f"select {self.kind(BOOL)} {test}, {self.kind(type)} {a}, {self.kind(type)} {b}")

    def _called(self, fn: str, args: tuple[Operand, ...], types: tuple[Type, ...], result: Type) -> str:
        if fn in _OF_THE_FORM:
            raise Unwritable(fn)
        if fn == "**" and type(args[1]) is int and types[0] == result and _is_unrolled(args[1], result):
            return self._power(self.operand(args[0]), args[1], result)
        if fn == "//" and types == (INT, INT) and type(args[1]) is int and args[1] > 0 and args[1].bit_count() == 1:
            return self.new(
                f"ashr {self.kind(INT)} {self.operand(args[0])}, {self.literal(args[1].bit_length() - 1, INT)}"
            )
        return self.call(fn, types, tuple(map(self.operand, args)), result)

    def _power(self, x: str, exponent: int, type: Type) -> str:
        """By multiplications, in the order in which numba does them where it knows the exponent."""
        how = f"fmul{self.fast}" if type.kind == "f" else "mul"
        power = ""
        left = abs(exponent)
        while left:
            if left & 1:
                power = self.new(f"{how} {self.kind(type)} {power}, {x}") if power else x
            left >>= 1
            if left:
                x = self.new(f"{how} {self.kind(type)} {x}, {x}")
        if not power:
            return self.literal(1, type)
        return (
            self.new(f"fdiv{self.fast} {self.kind(type)} {self.literal(1, type)}, {power}") if exponent < 0 else power
        )

    def call(self, fn: str, types: tuple[Type, ...], args: tuple[str, ...], result: Type) -> str:
        """A call of an operation of numba's."""
        key = fn, tuple(t.dtype for t in types), result.dtype, self.fast
        if key not in self.called:
            symbol = f"retrograde.{fn}({','.join(key[1])}){key[2]}{key[3]}".replace(" ", ".")
            self.called[key] = Called(symbol, fn, key[1], result.dtype)
        text = ", ".join(f"{kind(t)} {a}" for t, a in zip(types, args, strict=True))
        return self.new(f'call {kind(result)} @"{self.called[key].symbol}"({text})')

    def declarations(self) -> list[str]:
        return [
            f'declare {KINDS[c.result]} @"{c.symbol}"({", ".join(KINDS[a] for a in c.args)})'
            for c in self.called.values()
        ]


def _is_unrolled(exponent: int, type: Type) -> bool:
    return abs(exponent) <= MOST_UNROLLED and (type.kind == "f" or (type == INT and exponent >= 0))


def _is_digits(text: str) -> bool:
    return text.lstrip("-").isdigit()


def _is_plain(types: tuple[Type, ...], result: Type) -> bool:
    """Whether an operation on some types converts its arguments to the type of its result, and is one instruction."""
    if result == FLOAT:
        return all(t in (FLOAT, INT) for t in types) and FLOAT in types
    return result.dtype in ("int64", "uint64", "float32") and all(t == result for t in types)


__all__ = ["KINDS", "Scalars", "Unwritable", "in_memory", "kind", "literal", "nothing"]


# What has no text for types that are not handled above.
_OF_THE_FORM = frozenset("shape threads and or times min max real imag conj complex squared per over along".split())
