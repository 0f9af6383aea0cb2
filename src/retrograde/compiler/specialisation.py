"""A function for one set of argument types: its programs, made and compiled when they are first asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from retrograde.compiler import derivatives, native
from retrograde.compiler.derivatives import Derivative, Role, Wanted, finished
from retrograde.compiler.emit import emit
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
        self.natives: dict[Which, Callable[..., Any]] = {}

    def program(self, which: Which) -> Derivative:
        """J or T of some order (see derivatives.py)."""
        if (which.kind, which.order) == ("J", 0):
            return self.j0
        if which not in self.programs:
            options = replace(self.options, careful=which.careful or self.options.careful)
            if which.order == 0:
                made = derivatives.pullback(self.j0, options, which.wanted)
            else:
                before = which._replace(order=which.order - 1)
                made = derivatives.tangent(self.program(before), before.order, options)
            self.programs[which] = made
        return self.programs[which]

    def text(self, which: Which) -> str:
        made = self.program(which)
        # The function itself writes into its arguments, as the user wrote it.
        return emit(finished(made, self.options.passes, copies=made is not self.j0))


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

    def evaluate(self, kind: str, order: int, given: dict[Role, Any], wanted: Wanted = None) -> dict[Role, Any]:
        """Run a program; `given` has what its parameters stand for, without what is zero.

        Returns: what its results stand for, and the arrays that it writes.
        """
        self.check_overlaps([given["x", i] for i in range(len(self.types))])
        which = Which(kind, order, False, wanted)
        results = self.run(which, given)
        if order or kind == "T":
            derived = (v for role, v in results.items() if role[0] != "y")
            if any(has_nan(v) for v in derived):
                results = self.run(which._replace(careful=True), given)
        return results

    def run(self, which: Which, given: dict[Role, Any]) -> dict[Role, Any]:
        variant = self.variant(self.ones(given) if self.stretches else frozenset())
        derivative = variant.program(which)
        program = derivative.program
        written = derivatives.written_params(program)
        args: list[Any] = []
        results: dict[Role, Any] = {}
        for role, name in zip(derivative.params, program.params, strict=True):
            value = given.get(role)
            if role[0] == "constant":
                value = variant.lowered.constants[role[1]]
            elif value is None:
                value = self.zeros(role, given)
            elif name in written and role[0] != "x":
                value = np.array(value)
            elif isinstance(value, np.ndarray) and value.ndim == 0:
                value = value[()]
            if name in written and role[0] != "x":
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
