"""Reverse mode: from a program to the program of its pullback, of the same form.

    forward sweep: the program, which also puts on tapes what the reverse sweep will need
    reverse sweep: each statement's adjoint, last statement first

Arrays have shadows (`x_bar`) with the aliasing of the arrays themselves, so that views and writes are no special
cases: a store reverses to `v̄ += x̄[i]; x̄[i] = 0`. Tapes keep values; memory is never restored.
"""

from __future__ import annotations

from collections.abc import Callable

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
    Raise,
    Return,
    Set,
    Statement,
    Store,
    Swap,
    View,
    While,
    Whole,
)
from retrograde.compiler.one_sweep import Pair, in_one_sweep
from retrograde.compiler.ops import has_derivative
from retrograde.compiler.options import Options
from retrograde.compiler.partials import partials
from retrograde.compiler.program import Note, Program
from retrograde.compiler.reverse_calls import OfCalls
from retrograde.compiler.types import Operand, zero_of
from retrograde.compiler.walks import defs, walk


class Reverse(OfCalls):
    def __init__(
        self, program: Program, inputs: list[str], options: Options, choices: dict[int, bool] | None = None
    ) -> None:
        super().__init__(program, inputs, options, choices)
        self.seeds: dict[int, str] = {}
        self.results: dict[int, str] = {}

    # --- the whole program ---------------------------------------------------------------------------------------

    def build(self) -> Program:
        """The program `(params, shadows of active arrays, seeds) → (scalar results, cotangents of scalars)`.

        The shadow of an array comes in with the cotangent of its final contents and goes out with that of its first.
        """
        program = self.program
        primal_params = list(program.params)
        shadows = [self.bar(p) for p in self.inputs if program.types[p].is_array]
        body = program.body
        self.make_seeds(body)
        for p in primal_params:
            self.block_of[p] = id(body)
        forward, backward = self.block(body)
        program.reached = frozenset(p for p in self.inputs if p in self.activity.reaching)
        program.notes += [Note("active", node.lstrip("$"), None) for node in sorted(self.activity.active)]
        cells = [self.zero(bar) for node, bar in self.bars.items() if node.startswith("$")]
        last: Block = []
        values: list[Operand] = []
        for cell in self.results.values():
            t = program.new(cell, program.types[cell])
            last.append(Get(t, cell))
            values.append(t)
        for p in self.inputs:
            if not program.types[p].is_array:
                t = program.new(self.bar(p), program.types[p])
                zero = Op(t, "id", (zero_of(program.types[p]),))
                last.append(Get(t, self.bars[p]) if p in self.started else zero)
                values.append(t)
        program.params = primal_params + shadows + list(self.seeds.values())
        program.body = forward + cells + backward + last + [Return(tuple(values))]
        joined = in_one_sweep(program, self.pairs) if self.options.one_sweep else set()
        written = {root for s in self.reruns if s not in joined for root in self.memory.all_writes([s])}
        self.is_faithful = written.isdisjoint(primal_params)
        return program

    def reverse(self, procedure: Program, inputs: list[str]) -> bool:
        """Make a procedure the program of its own pullback.

        Returns: whether that leaves the parameters as the procedure does.
        """
        reverse = Reverse(procedure, inputs, self.options)
        reverse.build()
        return reverse.is_faithful

    def make_seeds(self, body: Block) -> None:
        """One seed for each inexact result; the scalar results are kept in cells, as there may be several returns."""
        first = next((s for s in walk(body) if isinstance(s, Return)), None)
        for i, v in enumerate(first.values if first else ()):
            type = self.program.type_of(v)
            if not type.is_array:
                self.results[i] = self.program.new("value", type)
            if type.is_inexact:
                self.seeds[i] = self.program.new("y_bar", type)

    # --- blocks --------------------------------------------------------------------------------------------------

    def block(self, block: Block) -> tuple[Block, Block]:
        """The forward code and the adjoint of a block."""
        self.blocks.append(id(block))
        for s in block:
            for name in defs(s):
                self.block_of[name] = id(block)
        forward: Block = []
        backward: Block = []
        first: Block = []  # shadows of what the block defines
        outer = self.out
        for s in reversed(block):
            self.out = []
            self.at = s.at
            kept, shadows = self.statement(s)
            backward += self.out
            forward = kept + forward
            first = shadows + first
        self.out = outer
        self.blocks.pop()
        backward = self.zeroed.pop(id(block), []) + first + backward
        if self.loops.chain:
            forward, backward = self.resolve(block, forward, backward)
        return forward, backward

    def statement(self, s: Statement) -> tuple[Block, Block]:
        """Write the adjoint of a statement.

        Returns: what stands for it in the forward sweep, and what makes the shadows of the arrays that it defines.
        """
        if isinstance(s, For | While):
            return self.loop(s), []
        if isinstance(s, If):
            return self.branch(s), []
        if isinstance(s, Return):
            return self.returned(s), []
        if isinstance(s, View | Alloc | Copy):
            return [s], self.shadow(s)
        if isinstance(s, Call):
            return self.of_call(s), [m for o in s.dsts if self.program.is_array(o) for m in self.zeros(o, s.at)]
        if isinstance(s, Whole):
            return self.of_whole(s), [made for o in s.outs if self.program.is_array(o) for made in self.zeros(o, s.at)]
        handler = _ADJOINTS.get(type(s))
        if handler is not None:
            handler(self, s)
        elif not isinstance(s, Raise):
            raise NotImplementedError(type(s).__name__)
        return [s], []

    def of_op(self, s: Op) -> None:
        if not self.is_active(s.dst) or not has_derivative(s.fn):
            return
        g = self.cotangent(s.dst)
        if g is None:
            return
        if s.fn == "conj":
            self.contribute(s.args[0], self.conj(g))
            return
        # The adjoint of ẋ ↦ partial · ẋ in the real inner product Re(conj(ȳ) ẏ).
        wanted = tuple(self.is_active(a) for a in s.args)
        for a, p in zip(s.args, partials(s.fn, s.args, s.dst, wanted, self), strict=True):
            if p is not None:
                self.contribute(a, self.times(g, self.conj(p)))

    def of_load(self, s: Load) -> None:
        g = self.cotangent(s.dst) if self.is_active(s.dst) else None
        if g is not None:
            self.emit(Increase(self.bar(s.array), s.index, g))

    def of_store(self, s: Store) -> None:
        if not self.is_active(s.array):
            return
        shadow = self.bar(s.array)
        g = self.load(shadow, s.index) if self.is_active(s.value) else None
        self.emit(Store(shadow, s.index, 0.0))
        if g is not None:
            self.contribute(s.value, g)

    def of_increase(self, s: Increase) -> None:
        if self.is_active(s.array) and self.is_active(s.value):
            self.contribute(s.value, self.load(self.bar(s.array), s.index))

    def of_fill(self, s: Fill) -> None:
        if self.is_active(s.array):
            self.emit(Fill(self.bar(s.array)))

    def of_get(self, s: Get) -> None:
        g = self.cotangent(s.dst) if self.is_active(s.dst) else None
        if g is not None:
            self.emit(Add(self.bar(f"${s.cell}"), g))

    def of_set(self, s: Set) -> None:
        if not self.is_active(f"${s.cell}"):
            return
        bar = self.bar(f"${s.cell}")
        g = self.get(bar) if self.is_active(s.value) else None
        self.emit(self.zero(bar))
        if g is not None:
            self.contribute(s.value, g)

    def of_add(self, s: Add) -> None:
        if self.is_active(f"${s.cell}") and self.is_active(s.value):
            self.contribute(s.value, self.get(self.bar(f"${s.cell}")))

    def of_swap(self, s: Swap) -> None:
        # Cycle by cycle, all or none.
        pairs = [(v, t) for t, v in zip(s.targets, s.sources, strict=True) if self.is_active(t)]
        if pairs:
            self.emit(Swap(tuple(self.bar(v) for v, _ in pairs), tuple(self.bar(t) for _, t in pairs)))

    def returned(self, s: Return) -> Block:
        kept: Block = []
        for i, v in enumerate(s.values):
            if i in self.results:
                keep = Set(self.results[i], v)
                keep.at = s.at
                kept.append(keep)
            if not self.is_active(v):
                continue
            seed = self.seeds[i]
            if self.program.is_array(v):
                self.add_elements(self.bar(v), seed, self.program.dims[v])
            else:
                self.contribute(v, seed)
        return kept

    def branch(self, s: If) -> Block:
        out = self.out
        then, then_back = self.block(s.then)
        orelse, else_back = self.block(s.orelse)
        self.out, self.at = out, s.at
        made = If(s.cond, then, orelse)
        if then_back or else_back:
            adjoint = If(s.cond, then_back, else_back)
            self.emit(adjoint)
            self.pairs.append(Pair(made, adjoint))
        made.at = s.at
        return [made]


_ADJOINTS: dict[type, Callable[..., None]] = {
    Op: Reverse.of_op,
    Load: Reverse.of_load,
    Store: Reverse.of_store,
    Increase: Reverse.of_increase,
    Fill: Reverse.of_fill,
    Get: Reverse.of_get,
    Set: Reverse.of_set,
    Add: Reverse.of_add,
    Swap: Reverse.of_swap,
}
