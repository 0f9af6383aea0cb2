"""The derivatives that a user gave a function, as programs: his formulas are lowered as his functions are.

The function itself is a procedure. Its pullback runs it once more, and then what the user's pullback says of its
arguments and result; its pushforward likewise. Both are programs of the form, with derivatives of their own. Where he
gave no pushforward, it is what is adjoint to his pullback.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from retrograde.compiler.arguments import flat_types
from retrograde.compiler.form import Alloc, Call, Op, Return
from retrograde.compiler.known import Constant
from retrograde.compiler.lower.arrays import Arrays
from retrograde.compiler.lower.builder import Builder
from retrograde.compiler.lower.formulas import Formulas
from retrograde.compiler.lower.values import NONE, Closure, Lazy
from retrograde.compiler.program import Program
from retrograde.compiler.source import python_function
from retrograde.compiler.types import Operand, Type, zero_of
from retrograde.errors import PullbackError
from retrograde.trace.running import OwnRule


class OwnFormulas(Formulas):
    """Formulas of a user's, which are watched as all his code is."""

    guard_equal = Builder.guard_equal
    detached = Arrays.detached

    def check_settled(self) -> None:
        self.check_detached()
        self.check_borrowed()

    def called_with(self, function: Any, args: tuple[Any, ...]) -> Any:
        self.detachments, self.writes, self.borrowed, self.written = [], [], [], set()
        found = python_function(function)
        if found is None:
            raise self.refuse("a derivative that is no Python function", "a def")
        closure = super().called_with(found, args)
        if not isinstance(closure, Closure):
            raise self.refuse(f"the formula {found.__name__} does not return a function", "lambda y_bar: (…,)")
        return closure


def pullback(caller: Program, fn: str, careful: bool) -> Program:
    """The program (arguments, cotangents of the arrays among them, those of the results) → (numbers among the
    results, cotangents of the numbers among the arguments).
    """
    write = _Writer(caller, fn, f"{fn}_pullback", careful)
    rule, program = write.rule, write.program
    if rule.pullback is None:
        raise rule.missing("pullback")
    inputs = [p for p in write.params if program.types[p].is_inexact]
    shadows = {p: write.param(f"{p}_bar", program.types[p]) for p in inputs if program.types[p].is_array}
    seeds = [write.param(f"{o}_bar", program.types[o]) if program.types[o].is_inexact else NONE for o in write.outs]
    program.effects = frozenset(i for i, p in enumerate(program.params) if p in shadows.values())
    program.adds = program.effects
    args, outs = write.arguments(), write.result(write.outs)
    found = write.formulas.derived(rule.pullback, (outs, *args), [write.result(seeds)])
    if len(found) != len(args):
        raise PullbackError(
            f"the pullback of {rule.name} returned {len(found)} cotangents for {len(args)} arguments",
            "one for each argument, None where there is none",
        )
    bars: dict[str, Operand] = dict.fromkeys(inputs, 0.0)
    for arg, bar in zip(args, found, strict=True):
        write.take(arg, bar, shadows, bars)
    numbers = [o for o in write.outs if not program.types[o].is_array]
    results = [*numbers, *(write.named(bars[p], p) for p in inputs if not program.types[p].is_array)]
    return write.returned(results)


def pushforward(caller: Program, fn: str, careful: bool) -> Program:
    """The program (arguments, tangents of the inexact ones) → (results, tangents of the inexact ones)."""
    write = _Writer(caller, fn, f"{fn}_pushforward", careful)
    rule, program = write.rule, write.program
    if rule.pushforward is None and rule.pullback is None:
        raise rule.missing("pushforward")
    dots: dict[str, Operand] = {}
    for p in write.params:
        is_inexact = program.types[p].is_inexact
        dots[p] = write.param(f"{p}_dot", program.types[p]) if is_inexact else write.zero_like(p)
    if rule.pushforward is None:
        return write.returned([*write.outs, *_transposed(write, caller, fn, dots, careful)])
    along = [_mapped(arg, dots) for arg in write.arguments()]
    found = write.formulas.derived(rule.pushforward, (write.result(write.outs), *write.arguments()), along)
    is_one = isinstance(write.given.structure, Type)
    flat = list(_leaves(found[0] if is_one and len(found) == 1 else found))
    if len(flat) != len(write.outs):
        raise PullbackError(
            f"the pushforward of {rule.name} returned {len(flat)} tangents for {len(write.outs)} results",
            "return the tangent of the result, in its structure",
        )
    tangents = [write.tangent(o, dot) for o, dot in zip(write.outs, flat, strict=True) if program.types[o].is_inexact]
    return write.returned([*write.outs, *tangents])


def _transposed(write: _Writer, caller: Program, fn: str, dots: dict[str, Operand], careful: bool) -> list[str]:
    """The tangents of the results, by the pullback of the pullback.

    The pullback x̄ = Jᵀ ȳ is linear in ȳ. So what pulls ẋ for x̄ back to ȳ, wherever ȳ is, is J ẋ.
    """
    from retrograde.compiler.optimise import tidy
    from retrograde.compiler.options import Options
    from retrograde.compiler.reverse import Reverse  # which calls for the pullbacks of this file

    procedures, program, formulas = caller.procedures, write.program, write.formulas
    name = f"{fn}_pullback"
    if name not in procedures:
        procedures[name] = pullback(caller, fn, careful)
    types = program.types
    inputs = [p for p in write.params if types[p].is_inexact]
    arrays = [p for p in inputs if types[p].is_array]
    outs = [o for o in write.outs if types[o].is_inexact]
    first = len(write.params)
    transposed = f"{name}_transposed"
    if transposed not in procedures:
        made = caller.procedure(transposed, name, procedures[name].effects)
        bars = made.params[first:]
        shadowed = sum(made.types[bar].is_array for bar in bars)
        made.effects |= set(range(len(made.params), len(made.params) + shadowed))
        made.adds = frozenset()
        Reverse(made, bars, Options(careful=careful)).build()
        tidy(made)

    def zeros(like: str) -> str:
        return formulas.alloc(f"{like}_bar", program.dims[like], types[like].element, zero=True)

    x_bars = [zeros(p) for p in arrays]
    y_bars: list[Operand] = [zeros(o) if types[o].is_array else zero_of(types[o]) for o in outs]
    seeds: list[Operand] = [formulas.copied(dots[p]) for p in arrays]
    y_dots = {o: zeros(o) for o in outs if types[o].is_array}
    numbers = [o for o in write.outs if not types[o].is_array]
    of_results = [zero_of(types[o]) for o in numbers if types[o].is_inexact]
    of_results += [dots[p] for p in inputs if not types[p].is_array]
    idle = [program.new("value", type) for type in procedures[name].result_types()]
    y_dots |= {o: program.new(f"{o}_dot", types[o]) for o in outs if not types[o].is_array}
    found = [y_dots[o] for o in outs if not types[o].is_array]
    array_dots = [y_dots[o] for o in outs if types[o].is_array]
    args = (*write.params, *x_bars, *y_bars, *seeds, *array_dots, *of_results)
    formulas.emit(Call((*idle, *found), transposed, args))
    return [y_dots[o] for o in outs]


class _Writer:
    """A program that begins with a call of the function itself."""

    def __init__(self, caller: Program, fn: str, name: str, careful: bool) -> None:
        callee = caller.procedures[fn]
        self.given = callee.rule
        self.rule: OwnRule = self.given.function._own_rule()
        self.program = program = Program(name, [], callee.taken)
        program.procedures = caller.procedures
        self.formulas = OwnFormulas(program, careful)
        self.params = [self.param(p, callee.types[p]) for p in callee.params]
        self.outs: list[str] = []
        for type in flat_types(self.given.structure):
            self.outs.append(program.new("out", type))
        self.formulas.emit(Call(tuple(self.outs), fn, tuple(self.params)))
        for o in self.outs:
            self.measure(o)

    def param(self, base: str, type: Type) -> str:
        name = self.program.new(base, type)
        self.program.params.append(name)
        self.measure(name)
        return name

    def measure(self, name: str) -> None:
        """The sizes of an array, as operands."""
        type = self.program.types[name]
        if type.is_array:
            self.program.set_dims(name, tuple(self.formulas.op("shape", name, axis) for axis in range(type.ndim)))

    def arguments(self) -> list[Any]:
        """What the user's formula is given."""
        rest = iter(self.params)
        return [_structured(kind, rest) for kind in self.given.kinds]

    def result(self, leaves: Any) -> Any:
        return _structured(self.given.structure, iter(leaves))

    def take(self, arg: Any, bar: Any, shadows: dict[str, str], bars: dict[str, Operand]) -> None:
        """Add a cotangent that the formula gave."""
        if bar is NONE or isinstance(arg, Constant):
            return
        if isinstance(arg, tuple):
            for a, b in zip(arg, bar, strict=True):
                self.take(a, b, shadows, bars)
        elif arg in shadows:
            if self.formulas.is_array(bar):
                for n, m in zip(self.formulas.shape(arg), self.formulas.shape(bar), strict=False):
                    self.formulas.guard_equal(n, m)
            if len(self.formulas.shape(bar)) not in (0, len(self.formulas.shape(arg))):
                raise PullbackError(
                    f"the pullback of {self.rule.name} returned an array of {len(self.formulas.shape(bar))} axes for "
                    f"one of {len(self.formulas.shape(arg))}",
                    "a cotangent of the shape of its argument",
                )
            self.formulas.add_elements(shadows[arg], bar)
        elif arg in bars:
            if self.formulas.is_array(bar):
                raise PullbackError(f"the pullback of {self.rule.name} returned an array for a number", "np.sum of it")
            bars[arg] = bar

    def tangent(self, out: str, dot: Any) -> str:
        """A tangent as a result of its own."""
        type = self.program.types[out]
        if not type.is_array:
            return self.named(0.0 if dot is NONE else dot, out)
        made = self.program.new(f"{out}_dot", type, self.program.dims[out])
        self.formulas.emit(Alloc(made, self.program.dims[out], True))
        if dot is not NONE:
            self.formulas.assign_elements(made, dot)
        return made

    def zero_like(self, name: str) -> Operand:
        type = self.program.types[name]
        if not type.is_array:
            return 0.0
        return self.formulas.force(Lazy(self.program.dims[name], lambda index: 0.0, Type("float64")))

    def named(self, value: Operand, like: str) -> str:
        name = self.program.new("result", self.program.types[like])
        self.formulas.emit(Op(name, "id", (value,)))
        return name

    def returned(self, results: list[str]) -> Program:
        self.formulas.emit(Return(tuple(results)))
        return self.program


def _structured(kind: Any, leaves: Iterator[Any]) -> Any:
    if isinstance(kind, Type):
        return next(leaves)
    if isinstance(kind, tuple):
        parts = [_structured(k, leaves) for k in kind]
        return type(kind)(*parts) if hasattr(kind, "_fields") else tuple(parts)
    return kind if isinstance(kind, Constant) else NONE


def _mapped(arg: Any, dots: dict[str, Operand]) -> Any:
    if isinstance(arg, tuple):
        return tuple(_mapped(a, dots) for a in arg)
    return NONE if isinstance(arg, Constant) else dots[arg]


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, tuple):
        for v in value:
            yield from _leaves(v)
    else:
        yield value
