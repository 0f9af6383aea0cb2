"""Forward mode: from a program to the program that also computes its derivative along a direction, of the same form.

Each statement is followed by its tangent. Programs of reverse mode have tangents as well: applied to a pullback this
is forward over reverse, with which Hessians are made; applied again, a derivative of any order.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from retrograde.compiler import own_rules
from retrograde.compiler.activity import Activity
from retrograde.compiler.alias import Memory
from retrograde.compiler.calculus import Writer
from retrograde.compiler.form import (
    Add,
    Alloc,
    Block,
    Call,
    Copy,
    Fill,
    For,
    Get,
    If,
    Increase,
    Load,
    Op,
    Pop,
    PopArray,
    Push,
    Return,
    Set,
    Stack,
    Statement,
    Store,
    Swap,
    View,
    While,
    Whole,
)
from retrograde.compiler.lower.formulas import Formulas
from retrograde.compiler.ops import has_derivative
from retrograde.compiler.optimise import PASSES, tidy
from retrograde.compiler.partials import Product, partials
from retrograde.compiler.program import Program
from retrograde.compiler.types import Operand, Type, zero_of
from retrograde.compiler.walks import is_number


class Tangent(Writer):
    def __init__(self, program: Program, inputs: list[str], careful: bool, passes: Collection[str] = PASSES) -> None:
        super().__init__(program, careful)
        self.passes = passes
        self.inputs = inputs
        self.activity = Activity(program, set(inputs), Memory(program))
        self.dots: dict[str, Any] = {}  # names, or numbers for inputs along which the direction is known
        self.formulas = Formulas(program, careful)

    def build(self) -> Program:
        """The program `(params, tangents of inputs) → (results, tangents of the inexact results)`.

        The tangent of an array comes in for its first contents and goes out for its final ones.
        """
        program = self.program
        tangents = [self.dot(p) for p in self.inputs if p not in self.dots]
        body = self.block(program.body)
        cells: Block = [
            Set(dot, zero_of(program.types[dot])) for node, dot in self.dots.items() if node.startswith("$")
        ]
        program.params = [*program.params, *tangents]
        program.body = cells + body
        program.reached = frozenset(p for p in self.inputs if p in self.activity.reaching)
        return program

    def dot(self, name: str) -> Any:
        if name not in self.dots:
            self.dots[name] = self.program.companion(name, "dot")
        return self.dots[name]

    def is_active(self, operand: Operand) -> bool:
        return self.activity.is_active(operand)

    def dot_or_zero(self, operand: Operand, type: Type) -> Operand:
        """The tangent of what is put into a place of some type."""
        return self.fitted(self.dot(operand), type) if self.is_active(operand) else zero_of(type)

    def block(self, block: Block) -> Block:
        outer, self.out = self.out, []
        for s in block:
            self.at = s.at
            self.statement(s)
        made, self.out = self.out, outer
        return made

    def statement(self, s: Statement) -> None:
        if isinstance(s, For):
            self.emit(For(s.var, s.low, s.high, self.block(s.body), s.down, s.parallel))
        elif isinstance(s, While):
            self.emit(While(self.block(s.test), s.cond, self.block(s.body)))
        elif isinstance(s, If) and s.shortcut:
            self.out += self.block(s.then)
        elif isinstance(s, If):
            self.emit(If(s.cond, self.block(s.then), self.block(s.orelse)))
        elif isinstance(s, Return):
            dots = [self.tangent_of_result(v) for v in s.values if self.program.type_of(v).is_inexact]
            self.emit(Return((*s.values, *dots)))
        elif isinstance(s, Op):
            self.out.append(s)
            if self.is_active(s.dst) and has_derivative(s.fn):
                self.of_op(s)
        elif isinstance(s, Whole):
            self.out.append(s)
            self.of_whole(s)
        elif isinstance(s, Call):
            self.of_call(s)
        elif isinstance(s, Push) and self.program.is_array(s.value) and self.is_active(s.stack):
            self.out.append(s)
            self.emit(Push(self.dot(s.stack), self.tangent_of_result(s.value)))
        else:
            tangent = self.tangent_of(s)
            self.out.append(s)
            if tangent is not None:
                self.emit(tangent)

    def of_op(self, s: Op) -> None:
        if s.fn == "over" and self.is_active(s.args[0]):
            s.fn = "per"  # a zero that changes is not nothing: at the origin of a length it is better NaN than wrong
        wanted = tuple(self.is_active(a) for a in s.args)
        total: Operand = None
        type = self.program.types[s.dst]
        if s.fn == "conj":
            self.emit(Op(self.dot(s.dst), "conj", (self.dot(s.args[0]),)))
            return
        for a, p in zip(s.args, partials(s.fn, s.args, s.dst, wanted, self), strict=True):
            if p is not None:
                term = self.multiple(self.dot(a), p, s)
                total = term if total is None else self.op("+", total, term)
        self.emit(Op(self.dot(s.dst), "id", (zero_of(type) if total is None else self.fitted(total, type),)))

    def multiple(self, dot: Operand, partial: Operand | Product, s: Op) -> Operand:
        """A tangent times a partial; nothing comes of a factor that stays zero, though the tangent be infinite."""
        if self.careful and is_number(partial, 0):
            return 0.0
        if self.careful and isinstance(partial, str) and partial in s.args and not self.is_active(partial):
            return self.op("along", dot, partial)
        return self.times(dot, partial)

    def of_whole(self, s: Whole) -> None:
        outs = tuple(self.dot(o) if self.is_active(o) else None for o in s.outs)
        if any(outs):
            self.formulas.write(self.out, s.at)
            dots = {a: self.dot(a) for a in s.args if self.program.is_array(a) and self.is_active(a)}
            self.formulas.set_tangents(s, dots, outs)

    def of_call(self, s: Call) -> None:
        """A call of the procedure's own pushforward, instead."""
        program = self.program
        callee = program.procedures[s.fn]
        inputs = [i for i, p in enumerate(callee.params) if callee.types[p].is_inexact]
        outs = [*s.dsts, *Memory(program).writes(s)]
        if not any(map(self.is_active, outs)):
            self.out.append(s)
            return
        dots = [
            self.tangent_of_result(a) if program.is_array(a) else self.dot_or_zero(a, program.type_of(a))
            for i in inputs
            for a in [s.args[i]]
        ]
        results: list[str] = []
        for name, type in zip(s.dsts, callee.result_types(), strict=True):
            if type.is_inexact:
                results.append(self.dot(name) if self.is_active(name) else program.companion(name, "dot"))
        self.emit(Call((*s.dsts, *results), self.pushforward_of(s.fn, inputs), (*s.args, *dots)))

    def pushforward_of(self, fn: str, inputs: list[int]) -> str:
        """The name of the pushforward of a procedure, which is made when it is first wanted."""
        name = f"{fn}_pushforward"
        procedures = self.program.procedures
        if name not in procedures:
            callee = procedures[fn]
            if callee.rule is not None:
                procedures[name] = own_rules.pushforward(self.program, fn, self.careful)
                return name
            written = {len(callee.params) + k for k, i in enumerate(inputs) if i in callee.effects}
            made = self.program.procedure(name, fn, callee.effects | written)
            Tangent(made, [made.params[i] for i in inputs], self.careful, self.passes).build()
            tidy(made, self.passes)
        return name

    def tangent_of_result(self, value: str) -> str:
        if self.is_active(value):
            return self.dot(value)
        program = self.program
        zero = program.new(f"{value}_dot", program.types[value], program.dims.get(value))
        if program.is_array(value):
            self.emit(Alloc(zero, program.dims[value], True))
        else:
            self.emit(Op(zero, "id", (zero_of(program.types[value]),)))
        return zero

    def tangent_of(self, s: Statement) -> Statement | None:
        """The one statement that does to the tangents what the statement does to the values."""
        dot, is_active = self.dot, self.is_active
        if isinstance(s, Load) and is_active(s.dst):
            return Load(dot(s.dst), dot(s.array), s.index)
        if isinstance(s, Store) and is_active(s.array):
            return Store(dot(s.array), s.index, self.dot_or_zero(s.value, self.program.types[s.array].element))
        if isinstance(s, Increase) and is_active(s.array) and is_active(s.value):
            return Increase(dot(s.array), s.index, dot(s.value))
        if isinstance(s, View) and is_active(s.dst):
            return View(dot(s.dst), dot(s.array), s.index, s.transposed)
        if isinstance(s, Alloc) and is_active(s.dst):
            return Alloc(dot(s.dst), s.shape, s.zero)
        if isinstance(s, Copy) and is_active(s.dst):
            if is_active(s.array):
                return Copy(dot(s.dst), dot(s.array))
            return Alloc(dot(s.dst), self.program.dims[s.dst], True)
        if isinstance(s, Fill) and is_active(s.array):
            return Fill(dot(s.array))
        if isinstance(s, Get) and is_active(s.dst):
            return Get(dot(s.dst), dot(f"${s.cell}"))
        if isinstance(s, Set) and is_active(f"${s.cell}"):
            return Set(dot(f"${s.cell}"), self.dot_or_zero(s.value, self.program.types[s.cell]))
        if isinstance(s, Add) and is_active(f"${s.cell}") and is_active(s.value):
            return Add(dot(f"${s.cell}"), dot(s.value))
        if isinstance(s, Swap):
            # Cycle by cycle, all or none.
            moved = [(dot(t), dot(v)) for t, v in zip(s.targets, s.sources, strict=True) if is_active(t)]
            return Swap(tuple(t for t, _ in moved), tuple(v for _, v in moved)) if moved else None
        if isinstance(s, Stack) and is_active(s.stack):
            return Stack(dot(s.stack))
        if isinstance(s, Push) and is_active(s.stack):
            return Push(dot(s.stack), self.dot_or_zero(s.value, self.program.types[s.stack]))
        if isinstance(s, Pop) and is_active(s.stack):
            return Pop(dot(s.dst), dot(s.stack))
        if isinstance(s, PopArray) and is_active(s.stack):
            return PopArray(dot(s.dst), dot(s.stack), s.shape)
        return None


def tangent_program(
    program: Program, inputs: list[str], name: str, careful: bool = False, passes: Collection[str] = PASSES
) -> Program:
    """The program of the derivative along directions of some of the parameters."""
    return Tangent(program.derived(name), inputs, careful, passes).build()


def program_along_one(
    program: Program, number: str, name: str, careful: bool = False, passes: Collection[str] = PASSES
) -> Program:
    """The program of the pullback with respect to one number, `(params, seeds) → (results, cotangent)`.

    With one input and results that are numbers the cotangent is a product with the derivative along the input: one
    sweep does, and no tape.
    """
    tangent = Tangent(program.derived(name), [number], careful, passes)
    tangent.dots[number] = 1.0
    made = tangent.build()
    results = program.result_types()
    seeds = [made.new("y_bar", type) if type.is_inexact else None for type in results]

    def weighted(block: Block) -> Block:
        out: Block = []
        for s in block:
            for f in s.blocks:
                setattr(s, f, weighted(getattr(s, f)))
            if isinstance(s, Return):
                dots = iter(s.values[len(results) :])
                tangent.out, tangent.at = out, s.at
                total: Operand = 0.0
                for seed in filter(None, seeds):
                    term = tangent.times(seed, next(dots))
                    total = term if total == 0.0 else tangent.op("+", total, term)
                s = Return((*s.values[: len(results)], tangent.op("id", total)), at=s.at)
            out.append(s)
        return out

    made.body = weighted(made.body)
    made.params += [seed for seed in seeds if seed is not None]
    return made
