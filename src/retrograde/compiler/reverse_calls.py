"""The adjoints of what is called and not written out: functions of whole arrays, and procedures.

Both read arrays in the reverse sweep as they were when they were called. Where an array may have changed since, or be
another one, a copy is kept, which goes on a tape if the call stands in a loop.
"""

from __future__ import annotations

from typing import Any

from retrograde.compiler import own_rules
from retrograde.compiler.form import Alloc, Block, Call, Copy, Statement, Whole
from retrograde.compiler.lower.formulas import Formulas
from retrograde.compiler.lower.values import NONE
from retrograde.compiler.one_sweep import Pair
from retrograde.compiler.optimise import tidy
from retrograde.compiler.options import Options
from retrograde.compiler.program import Program
from retrograde.compiler.reverse_loops import OfLoops
from retrograde.compiler.source import At
from retrograde.compiler.types import Operand, zero_of
from retrograde.compiler.walks import defs, free_names, substitute


class OfCalls(OfLoops):
    def __init__(
        self, program: Program, inputs: list[str], options: Options, choices: dict[int, bool] | None = None
    ) -> None:
        super().__init__(program, inputs, options, choices)
        self.formulas = Formulas(program, options.careful)

    def of_whole(self, s: Whole) -> Block:
        """The adjoint of a function of whole arrays, by the formula of its rule. Returns its forward code."""
        bars: list[Any] = []
        for o in s.outs:
            found = (self.bar(o) if self.program.is_array(o) else self.cotangent(o)) if self.is_active(o) else None
            bars.append(NONE if found is None else found)
        if all(bar is NONE for bar in bars):
            return [s]
        self.formulas.write(self.out, s.at)
        shadows = {a: self.bar(a) for a in s.args if self.program.is_array(a) and self.is_active(a)}
        self.formulas.add_cotangents(s, tuple(bars), shadows)
        # What the formula reads of the arguments and results must be what they were then.
        before: Block = []
        after: Block = []
        kept: dict[str, Operand] = {}
        for name in free_names(self.out):
            if name in (*s.args, *s.outs) and self.program.is_array(name) and self.may_be_gone(name, s):
                kept[name] = self.kept_copy(name, before if name in s.args else after, s.at)
        self.out[:] = substitute(self.out, kept)
        return [*before, s, *after]

    def of_call(self, s: Call) -> Block:
        """The adjoint of a call: a call of the procedure's own pullback. Returns its forward code."""
        program = self.program
        callee = program.procedures[s.fn]
        inputs = [i for i, p in enumerate(callee.params) if callee.types[p].is_inexact]
        if not self.has_adjoint(s):
            return [s]
        before: Block = []
        args = list(s.args)
        for i, a in enumerate(args):
            # The pullback runs the procedure again, on what it was given then.
            if program.is_array(a) and (i in callee.effects or self.may_be_gone(a, s)):
                args[i] = self.kept_copy(a, before, s.at)
        shadows = [self.shadow_of(s.args[i]) for i in inputs if program.is_array(s.args[i])]
        seeds: list[Operand] = []
        values: list[str] = []
        for name in s.dsts:
            type = program.types[name]
            if not type.is_array:
                values.append(program.new(name, type))
            if type.is_array and type.is_inexact:
                seeds.append(self.shadow_of(name))
            elif type.is_inexact:
                g = self.cotangent(name) if self.is_active(name) else None
                seeds.append(zero_of(type) if g is None else g)
        scalars = [i for i in inputs if not callee.types[callee.params[i]].is_array]
        bars = [program.new("g", callee.types[callee.params[i]]) for i in scalars]
        pullback = self.pullback_of(s.fn, inputs)
        adjoint = Call((*values, *bars), pullback, (*args, *shadows, *seeds))
        self.emit(adjoint)
        if len(values) == len(s.dsts) and (not callee.effects or program.procedures[pullback].is_faithful):
            self.pairs.append(Pair(s, adjoint))
        for i, bar in zip(scalars, bars, strict=True):
            self.contribute(s.args[i], bar)
        return [*before, s]

    def has_adjoint(self, s: Call) -> bool:
        return any(map(self.is_active, (*s.dsts, *self.memory.writes(s))))

    def shadow_of(self, array: str) -> str:
        """The shadow of an array; one that nobody reads, if it has none."""
        if self.is_active(array):
            return self.bar(array)
        idle = self.program.companion(array, "bar")
        self.emit(Alloc(idle, self.program.dims[array], True))
        return idle

    def pullback_of(self, fn: str, inputs: list[int]) -> str:
        """The name of the pullback of a procedure, which is made when it is first wanted."""
        name = f"{fn}_pullback"
        procedures = self.program.procedures
        if name not in procedures:
            if procedures[fn].rule is not None:
                procedures[name] = own_rules.pullback(self.program, fn, self.options.careful)
                return name
            there = set(procedures)
            if not self.make_pullback(name, fn, inputs, is_faithful=True):
                for made in set(procedures) - there:
                    del procedures[made]  # they may rely on it
                self.make_pullback(name, fn, inputs, is_faithful=False)
        return name

    def make_pullback(self, name: str, fn: str, inputs: list[int], is_faithful: bool) -> bool:
        """Make the pullback of a procedure. Returns whether it leaves its parameters as the procedure does.

        Args:
            is_faithful: what calls of it in itself, and in what it calls, take for granted.
        """
        callee = self.program.procedures[fn]
        shadows = [i for i in inputs if callee.types[callee.params[i]].is_array]
        first = len(callee.params)
        made = self.program.procedure(name, fn, callee.effects | set(range(first, first + len(shadows))))
        made.adds = frozenset(first + k for k, i in enumerate(shadows) if i not in callee.effects)
        made.is_faithful = is_faithful
        is_faithful = self.reverse(made, [made.params[i] for i in inputs])
        tidy(made, self.options.passes)
        return is_faithful

    def may_be_gone(self, array: str, s: Statement) -> bool:
        """Whether an array may have other contents, or be another one, when the reverse sweep comes to a statement."""
        root = self.memory.root(array)
        if self.loops.chain and root in self.loops.inside:
            return array not in defs(s)  # what it makes itself is taped
        return self.changes.may_change_after(root, s)

    def kept_copy(self, array: str, block: Block, at: At | None) -> str:
        program = self.program
        copy = program.new(array, program.types[array], program.dims[array])
        made = Copy(copy, array, at=at)
        block.append(made)
        self.definition[copy] = made
        self.block_of[copy] = self.blocks[-1]
        self.added.setdefault(self.blocks[-1], set()).add(copy)
        return copy

    # --- what Reverse has ----------------------------------------------------------------------------------------

    def reverse(self, procedure: Program, inputs: list[str]) -> bool:
        raise NotImplementedError
