"""Numbers of which there is one in each lane, for iterations that run side by side, in LLVM's text.

Inside of `in_lanes` the writers of scalars.py write vectors: only the names of types, literals, and what stands for an
operand change. Elementary functions have a text of vectors (functions.py); what has none is computed lane by lane.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from retrograde.compiler.machine import statements
from retrograde.compiler.machine.frame import Shared
from retrograde.compiler.machine.scalars import SUFFIXES, in_memory, kind, literal
from retrograde.compiler.optimise.abreast import WIDTH, Differing
from retrograde.compiler.program import Program
from retrograde.compiler.types import Operand, Type

BYTE = Type("uint8")
INSTRUCTIONS = {"np.sqrt": "sqrt", "np.absolute": "fabs", "np.fabs": "fabs"}
Call = tuple[str, tuple[Type, ...], tuple[str, ...], Type]


class Vectors(statements.Function):
    """Writes numbers.

    Attributes:
        side: what differs among the iterations that run side by side; None outside of such a loop.
        mask: the lanes that run; None for all.
    """

    def __init__(self, program: Program, shared: Shared, is_main: bool) -> None:
        super().__init__(program, shared, is_main)
        self.side: Differing | None = None
        self.mask: str | None = None

    # --- numbers -------------------------------------------------------------------------------------------------

    @contextmanager
    def in_lanes(self, lanes: int = WIDTH) -> Iterator[None]:
        before, self.lanes = self.lanes, lanes
        try:
            yield
        finally:
            self.lanes = before

    def differs(self, x: object) -> bool:
        return self.side is not None and self.side.has(x)

    def kind(self, type: Type) -> str:
        return f"<{self.lanes} x {kind(type)}>" if self.lanes else kind(type)

    def literal(self, x: Any, type: Type) -> str:
        text = literal(x, type)
        return f"<{', '.join([f'{kind(type)} {text}'] * self.lanes)}>" if self.lanes else text

    def operand(self, x: Operand, wanted: Type | None = None) -> str:
        if not self.lanes or not isinstance(x, str) or self.differs(x):
            return super().operand(x, wanted)
        with self.in_lanes(0):
            text = super().operand(x, wanted)
        return self.repeated(text, wanted or self.type_of(x))

    def repeated(self, text: str, type: Type) -> str:
        """A number in all lanes."""
        one = self.new(f"insertelement {vector(type)} poison, {kind(type)} {text}, i64 0")
        return self.new(f"shufflevector {vector(type)} {one}, {vector(type)} poison, <{WIDTH} x i32> zeroinitializer")

    def intrinsic(self, name: str, type: Type) -> str:
        if not self.lanes:
            return super().intrinsic(name, type)
        symbol = f"@llvm.{name}.v{WIDTH}{SUFFIXES[kind(type)]}"
        given = ", ".join([vector(type)] * (1 if name in INSTRUCTIONS.values() else 2))
        self.shared.declared[f"declare {vector(type)} {symbol}({given})"] = None
        return symbol

    def over_lanes(self, what: str, text: str, type: Type) -> str:
        """The sum of all lanes, or whether any is true."""
        symbol = f"@llvm.vector.reduce.{what}.v{WIDTH}{SUFFIXES[kind(type)]}"
        if what == "fadd":
            start = f"{kind(type)} {literal(-0.0, type)}, "
            self.shared.declared[f"declare {kind(type)} {symbol}({kind(type)}, {vector(type)})"] = None
            return self.new(f"call reassoc {kind(type)} {symbol}({start}{vector(type)} {text})")
        self.shared.declared[f"declare {kind(type)} {symbol}({vector(type)})"] = None
        return self.new(f"call {kind(type)} {symbol}({vector(type)} {text})")

    def summed(self, text: str, type: Type) -> str:
        return self.over_lanes("fadd" if type.kind == "f" else "add", text, type)

    def where(self, mask: str | None, a: str, b: str, type: Type) -> str:
        """In each lane a, or b where the mask is not set."""
        if mask is None:
            return a
        return self.new(f"select <{WIDTH} x i1> {mask}, {vector(type)} {a}, {vector(type)} {b}")

    def both(self, a: str | None, b: str) -> str:
        return b if a is None else self.new(f"and <{WIDTH} x i1> {a}, {b}")

    def taken_out(self, text: str, type: Type) -> list[str]:
        return [self.new(f"extractelement {vector(type)} {text}, i64 {k}") for k in range(WIDTH)]

    def put_together(self, texts: Sequence[str], type: Type) -> str:
        made = "poison"
        for k, text in enumerate(texts):
            made = self.new(f"insertelement {vector(type)} {made}, {kind(type)} {text}, i64 {k}")
        return made

    # --- operations ----------------------------------------------------------------------------------------------

    def call(self, fn: str, types: tuple[Type, ...], args: tuple[str, ...], result: Type) -> str:
        if not self.lanes or fn.startswith("vectormath."):
            return super().call(fn, types, args, result)
        if fn in INSTRUCTIONS and result.kind == "f" and all(t == result for t in types):
            given = ", ".join(f"{self.kind(result)} {a}" for a in args)
            return self.new(f"call {self.kind(result)} {self.intrinsic(INSTRUCTIONS[fn], result)}({given})")
        return self.lane_by_lane([(fn, types, args, result)])[0]

    def lane_by_lane(self, calls: Sequence[Call]) -> list[str]:
        """What some functions of single numbers give in each lane, in a loop."""
        places: dict[str, str] = {}
        for _, types, args, _ in calls:
            for type, text in zip(types, args, strict=True):
                if text not in places:
                    places[text] = self.slot(stored(type), "zeroinitializer")
                    self.put_vector(places[text], text, type)
        results = [self.slot(stored(result), "zeroinitializer") for *_, result in calls]
        loop = self.label("lanes")
        self.jump(f"{loop}.begin")
        self.begin(f"{loop}.begin")
        self.jump(loop)
        self.begin(loop)
        self.write(f"%{loop}.i = phi i64 [0, %{loop}.begin], [%{loop}.next, %{loop}]")
        with self.in_lanes(0):
            for (fn, types, args, result), place in zip(calls, results, strict=True):
                given = [self.read(self.lane(places[a], t, loop), t) for a, t in zip(args, types, strict=True)]
                self.put(self.lane(place, result, loop), self.call(fn, types, tuple(given), result), result)
        self.write(f"%{loop}.next = add nuw nsw i64 %{loop}.i, 1")
        more = self.new(f"icmp ult i64 %{loop}.next, {WIDTH}")
        self.write(f"br i1 {more}, label %{loop}, label %{loop}.end, !llvm.loop !{self.hint()}")
        self.begin(f"{loop}.end")
        return [self.vector_at(p, result) for p, (*_, result) in zip(results, calls, strict=True)]

    def lane(self, place: str, type: Type, loop: str) -> str:
        return self.new(f"getelementptr {in_memory(type)}, ptr {place}, i64 %{loop}.i")

    def hint(self) -> int:
        """The number of what LLVM is told of a loop over lanes: not to unroll it."""
        notes = self.shared.metadata
        if not notes:
            notes.append('!0 = !{!"llvm.loop.unroll.disable"}')
        number = len(notes)
        notes.append(f"!{number} = distinct !{{!{number}, !0}}")
        return number

    def put_vector(self, pointer: str, text: str, type: Type) -> None:
        if type.dtype == "bool":
            text = self.new(f"zext {vector(type)} {text} to {stored(type)}")
        self.write(f"store {stored(type)} {text}, ptr {pointer}, align {np.dtype(type.dtype).itemsize * WIDTH}")

    def vector_at(self, pointer: str, type: Type) -> str:
        text = self.new(f"load {stored(type)}, ptr {pointer}, align {np.dtype(type.dtype).itemsize * WIDTH}")
        return self.as_truth(text) if type.dtype == "bool" else text

    def as_truth(self, bytes: str) -> str:
        return self.new(f"icmp ne {vector(BYTE)} {bytes}, zeroinitializer")

    # --- names ---------------------------------------------------------------------------------------------------

    def define(self, name: str, text: str) -> None:
        if not self.differs(name):
            super().define(name, text)
            return
        if name not in self.escaping:
            self.bind(self.names, name, text)
            return
        type = self.type_of(name)
        if name not in self.slots:
            self.slots[name] = self.slot(vector(type), "zeroinitializer")
        old = self.new(f"load {vector(type)}, ptr {self.slots[name]}")
        self.write(f"store {vector(type)} {self.where(self.mask, text, old, type)}, ptr {self.slots[name]}")

    def value(self, x: str) -> str:
        if self.differs(x) and x not in self.names and x in self.slots:
            return self.new(f"load {vector(self.type_of(x))}, ptr {self.slots[x]}")
        return super().value(x)


def vector(type: Type) -> str:
    return f"<{WIDTH} x {kind(type)}>"


def stored(type: Type) -> str:
    return f"<{WIDTH} x {in_memory(type)}>"


def vector_of(text: str, type: Type) -> str:
    return f"<{', '.join([f'{kind(type)} {text}'] * WIDTH)}>"


__all__ = ["BYTE", "INSTRUCTIONS", "Call", "Vectors", "stored", "vector", "vector_of"]
