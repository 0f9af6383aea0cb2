"""A function for one set of argument types: its programs, made and compiled when they are first asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from retrograde.compiler import derivatives, native
from retrograde.compiler.derivatives import Derivative, Role, Wanted, finished
from retrograde.compiler.emit import emit
from retrograde.compiler.examples import Examples, loop_text
from retrograde.compiler.form import Type
from retrograde.compiler.lower.builder import BROADCAST
from retrograde.compiler.lower.function import Lowered, lower_function
from retrograde.compiler.reverse import Options
from retrograde.compiler.settings import USUAL, Settings
from retrograde.compiler.source import Source
from retrograde.errors import InputError
from retrograde.rules.products import has_nan
from retrograde.trace.interception import originals

Leaves = Sequence[Any]
Ones = frozenset[tuple[str, int]]
DEFAULT = Options()


class Which(NamedTuple):
    """One of the programs of derivatives.py.

    Attributes:
        kind, order: J or T, and the number of directions.
        careful: with products in which zero times infinity is zero.
        wanted: the leaves whose cotangents are wanted; None for all.
    """

    kind: str
    order: int
    careful: bool = False
    wanted: Wanted = None


class Variant:
    """The programs of a function for one set of argument types.

    Attributes:
        lowered: the program of the function itself.
    """

    def __init__(self, lowered: Lowered, options: Options) -> None:
        self.lowered = lowered
        self.options = options
        self.j0 = derivatives.primal(lowered, options.passes)
        self.programs: dict[Which, Derivative] = {}
        self.texts: dict[Which, str] = {}
        self.natives: dict[Which, Callable[..., Any]] = {}
        self.loops: dict[tuple[Which, frozenset[str]], Callable[..., Any]] = {}

    def program(self, which: Which) -> Derivative:
        """J or T of some order (see derivatives.py)."""
        if (which.kind, which.order) == ("J", 0):
            return self.j0
        if which not in self.programs:
            with originals():  # rules are written down by NumPy's own functions, whatever transform is running
                self.programs[which] = self.derived(which)
        return self.programs[which]

    def derived(self, which: Which) -> Derivative:
        options = replace(self.options, careful=which.careful or self.options.careful)
        if which.order == 0:
            return derivatives.pullback(self.j0, options, which.wanted)
        before = which._replace(order=which.order - 1)
        return derivatives.tangent(self.program(before), before.order, options)

    def text(self, which: Which) -> str:
        if which not in self.texts:
            made = self.program(which)
            # The function itself writes into its arguments, as the user wrote it.
            self.texts[which] = emit(finished(made, self.options.passes, copies=made is not self.j0))
        return self.texts[which]


class Specialisation:
    """A function with the types of its arguments fixed.

    Shapes are not fixed, with one exception: where an axis of length 1 turns out to be stretched against a longer one,
    a variant is made in which the axes of length 1 are known, and is used for arguments of just these.

    Attributes:
        types: the type of each leaf of the arguments.
        inputs: the leaves that derivatives are taken of: floats and arrays of floats.
        outputs: the leaves of the result that have derivatives.
        written: the leaves that the function writes into; their final contents are outputs as well.
        finals: those of them that have derivatives.
        is_plain: run the text as plain Python instead of compiling it.
    """

    def __init__(
        self,
        source: Source,
        arguments: dict[str, Any],
        settings: Settings = USUAL,
        options: Options = DEFAULT,
    ) -> None:
        self.source = source
        self.arguments = arguments
        self.settings = settings
        self.options = options
        self.is_plain = False
        self.stretches = False
        self.variants: dict[Ones, Variant] = {}
        first = self.variant(frozenset())
        self.lowered = first.lowered
        j0 = first.j0
        program = j0.program
        self.params = program.params
        self.types = [program.types[p] for p, role in zip(program.params, j0.params, strict=True) if role[0] == "x"]
        self.inputs = [i for i, t in enumerate(self.types) if t.is_inexact]
        self.result_types: list[Type] = derivatives.result_types(program)
        self.outputs = [j for j, t in enumerate(self.result_types) if t.is_inexact]
        self.written = [i for i in range(len(self.types)) if program.params[i] in self.lowered.written]
        self.finals = [i for i in self.written if self.types[i].is_inexact]

    # --- programs ------------------------------------------------------------------------------------------------

    def variant(self, ones: Ones) -> Variant:
        """The programs for arguments whose axes of length 1 are those, or are not known (none)."""
        if ones not in self.variants:
            with originals():
                lowered = lower_function(self.source, self.arguments, ones)
            self.variants[ones] = Variant(lowered, self.options)
        return self.variants[ones]

    def program(self, which: Which) -> Derivative:
        return self.variant(frozenset()).program(which)

    def text(self, kind: str, order: int) -> str:
        return self.variant(frozenset()).text(Which(kind, order))

    def native(self, variant: Variant, which: Which) -> Callable[..., Any]:
        if which not in variant.natives:
            name = variant.program(which).program.name
            title = self.title(which.kind, which.order)
            decorate = None if self.is_plain else native.derivative_decorator(self.settings)
            made = native.load(variant.text(which), name, title, decorate)
            variant.natives[which] = made if self.is_plain else native.Guarded(made, title)
        return variant.natives[which]

    def title(self, kind: str, order: int) -> str:
        what = {
            ("J", 0): "value",
            ("J", 1): "pushforward",
            ("T", 0): "pullback",
            ("T", 1): "pullback along a direction",
        }
        return f"{what.get((kind, order), f'{kind}{order}')} of {self.source.name}"

    # --- values --------------------------------------------------------------------------------------------------

    def evaluate(
        self,
        kind: str,
        order: int,
        given: dict[Role, Any],
        wanted: Wanted = None,
        examples: Examples | None = None,
    ) -> dict[Role, Any]:
        """Run a program; `given` has what its parameters stand for, without what is zero.

        Args:
            examples: run it for each of these; what is returned then has the axis of the examples in front.

        Returns: what its results stand for, and the arrays that it writes.
        """
        first = examples.first(given) if examples else given
        self.check_overlaps([first["x", i] for i in range(len(self.types))])
        which = Which(kind, order, False, wanted)
        results = self.run_each(which, given, examples) if examples else self.run(which, given)
        if order or kind == "T":
            derived = (v for role, v in results.items() if role[0] != "y")
            if any(has_nan(v) for v in derived):
                which = which._replace(careful=True)
                results = self.run_each(which, given, examples) if examples else self.run(which, given)
        return results

    def run(self, which: Which, given: dict[Role, Any]) -> dict[Role, Any]:
        variant = self.variant(self.ones(given) if self.stretches else frozenset())
        derivative = variant.program(which)
        program = derivative.program
        written = derivatives.written_params(program)
        args: list[Any] = []
        results: dict[Role, Any] = {}
        for role, name in zip(derivative.params, program.params, strict=True):
            is_out = name in written and (role[0] != "x" or (derivative is variant.j0 and role[1] in self.finals))
            value = given.get(role)
            if role[0] == "constant":
                value = variant.lowered.constants[role[1]]
            elif value is None:
                value = self.zeros(role, given)
            elif is_out:
                value = np.array(value)
            elif isinstance(value, np.ndarray) and value.ndim == 0:
                value = value[()]
            if is_out:
                results[role] = value
            args.append(value)
        try:
            values = self.native(variant, which)(*args)
        except ValueError as error:
            if BROADCAST not in str(error) or self.stretches or not self.ones(given):
                raise
            self.stretches = True
            return self.run(which, given)
        results.update(zip(derivative.results, values or (), strict=True))
        return results

    def run_each(self, which: Which, given: dict[Role, Any], examples: Examples) -> dict[Role, Any]:
        """The program for each example: the first by itself, which shows the shapes, the others in a native loop."""
        first = examples.first(given)
        results = {role: examples.spread(value) for role, value in self.run(which, first).items()}
        if examples.size == 1:
            return results
        variant = self.variant(self.ones(first) if self.stretches else frozenset())
        derivative = variant.program(which)
        args: list[Any] = []
        mapped: set[str] = set()
        for role, name in zip(derivative.params, derivative.program.params, strict=True):
            value = given.get(role)
            if role[0] == "constant":
                value = variant.lowered.constants[role[1]]
            elif value is None:
                value = self.zeros(role, first)
            if role in results:
                # Written by each example, beginning with what it is given.
                value = value if role in examples.roles else np.broadcast_to(value, results[role].shape)
                results[role][1:] = value[1:]
                value = results[role]
                mapped.add(name)
            elif role in examples.roles:
                value = np.require(value, requirements=("C", "W"))
                mapped.add(name)
            elif isinstance(value, np.ndarray) and value.ndim == 0:
                value = value[()]
            args.append(value)
        outs = [results[role] for role in derivative.results]
        self.native_loop(variant, which, frozenset(mapped))(1, examples.size, *args, *outs)
        return results

    def native_loop(self, variant: Variant, which: Which, mapped: frozenset[str]) -> Callable[..., Any]:
        key = which, mapped
        if key not in variant.loops:
            inner = self.native(variant, which)
            derivative = variant.program(which)
            types = derivatives.result_types(derivative.program) if derivative.results else []
            name, text = loop_text(derivative, types, mapped)
            title = f"{self.title(which.kind, which.order)}, for each example"
            decorate = None if self.is_plain else native.derivative_decorator(self.settings)
            called = inner.dispatcher if isinstance(inner, native.Guarded) else inner
            made = native.load(text, name, title, decorate, {derivative.program.name: called})
            variant.loops[key] = made if self.is_plain else native.Guarded(made, title)
        return variant.loops[key]

    def ones(self, given: dict[Role, Any]) -> Ones:
        """The axes of length 1 of the arguments."""
        return frozenset(
            (self.params[i], axis)
            for i, t in enumerate(self.types)
            if t.is_array
            for axis, n in enumerate(given["x", i].shape)
            if n == 1
        )

    def zeros(self, role: Role, given: dict[Role, Any]) -> Any:
        """Zero for what a role stands for."""
        while role[0] == "dot":
            role = role[2]
        if role[0] in ("x", "x_bar"):
            like = given["x", role[1]]
            return np.zeros(like.shape, like.dtype) if self.types[role[1]].is_array else 0.0
        assert not self.result_types[role[1]].is_array, "an array of results has a cotangent of a known shape"
        return 0.0

    def check_overlaps(self, leaves: Leaves) -> None:
        """Refuse arguments that share memory with one that is written: to a program all are different arrays."""
        for i in self.written:
            for j, other in enumerate(leaves):
                if i != j and isinstance(other, np.ndarray) and np.shares_memory(leaves[i], other):
                    raise InputError(
                        f"{self.source.name} writes into its argument number {i + 1}, which shares memory with "
                        f"number {j + 1}",
                        "a copy of one of them",
                    )


def nested(order: int, role: Role) -> Role:
    """The derivative of a role along the directions 0 … order - 1."""
    for number in range(order):
        role = ("dot", number, role)
    return role
