"""A function for one set of argument types: its programs, made and compiled when they are first asked for."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from retrograde.compiler import kept, native
from retrograde.compiler.examples import Examples, loop_text
from retrograde.compiler.fingerprint import Fingerprint
from retrograde.compiler.form import BROADCAST, NOTHING, SHORT, UNEQUAL, Known, Type
from retrograde.compiler.settings import USUAL, Settings
from retrograde.compiler.source import Source
from retrograde.errors import InputError
from retrograde.rules.products import has_nan
from retrograde.trace.interception import originals

if TYPE_CHECKING:
    from retrograde.compiler.derivatives import Derivative, Role, Wanted
    from retrograde.compiler.explain import Explanation
    from retrograde.compiler.lower.function import Lowered
    from retrograde.compiler.options import Options

# The passes are imported where they are used: what is kept on disk needs none of them.

Leaves = Sequence[Any]


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


class Finished(NamedTuple):
    """A program as it is compiled, with what has to be known to call it.

    Attributes:
        name, text: of the function that was written.
        roles, params: what its parameters stand for, and their names.
        results: what its results stand for.
        types: of the results.
        written: the array parameters that it writes into.
        reached: the inputs from which a path leads to a result.
    """

    name: str
    text: str
    roles: tuple[Role, ...]
    params: tuple[str, ...]
    results: tuple[Role, ...]
    types: tuple[Type, ...]
    written: frozenset[str]
    reached: frozenset[str]


class Interface(NamedTuple):
    """What a caller of the function has to know.

    Attributes:
        params, types: the names and types of the leaves of the arguments.
        structure: that of the result, with types as leaves.
        result_types: those of the leaves of the result.
        written: the leaves that the function writes into.
        constants: the arrays from outside of the function.
    """

    params: tuple[str, ...]
    types: tuple[Type, ...]
    structure: Any
    result_types: tuple[Type, ...]
    written: tuple[int, ...]
    constants: tuple[Any, ...]


class Variant:
    """The programs of a function for one set of argument types.

    Args:
        lower: makes the program of the function itself.
        key: under which its results are kept on disk; None where they are not.
        settings: those of the user.
    """

    def __init__(
        self, lower: Callable[[], Lowered], options: Options | None, key: str | None, settings: Settings
    ) -> None:
        self._lower = lower
        self._options = options
        self.key = key
        self.settings = settings
        self.programs: dict[Which, Derivative] = {}
        self.finished: dict[Which, Finished] = {}
        self.natives: dict[Which, Callable[..., Any]] = {}
        self.loops: dict[tuple[Which, frozenset[str]], Callable[..., Any]] = {}

    # --- made or found -------------------------------------------------------------------------------------------

    @functools.cached_property
    def interface(self) -> Interface:
        return self._found_or_made("interface", self._interface)  # type: ignore[no-any-return]

    def program(self, which: Which) -> Finished:
        """J or T of some order (see derivatives.py), written out."""
        if which not in self.finished:
            self.finished[which] = self._found_or_made(which, lambda: self._finished(which))
        return self.finished[which]

    def key_of(self, part: Any) -> str | None:
        return None if self.key is None else kept.key_of(self.key, part)

    def _found_or_made(self, part: Any, make: Callable[[], Any]) -> Any:
        key = self.key_of(part)
        found = None if key is None else kept.load(key)
        if found is None:
            with originals():  # rules are written down by NumPy's own functions, whatever transform is running
                found = make()
            if key is not None:
                kept.save(key, found)
        return found

    # --- made ----------------------------------------------------------------------------------------------------

    @functools.cached_property
    def lowered(self) -> Lowered:
        with originals():
            return self._lower()

    @functools.cached_property
    def options(self) -> Options:
        from retrograde.compiler.options import Options

        return self._options or Options()

    @functools.cached_property
    def j0(self) -> Derivative:
        from retrograde.compiler import derivatives

        return derivatives.primal(self.lowered, self.options.passes)

    def derived(self, which: Which) -> Derivative:
        """The program in the form, from which others are derived."""
        from retrograde.compiler import derivatives

        if (which.kind, which.order) == ("J", 0):
            return self.j0
        if which not in self.programs:
            options = replace(self.options, careful=which.careful or self.options.careful)
            if which.order == 0:
                made = derivatives.pullback(self.j0, options, which.wanted)
            else:
                before = which._replace(order=which.order - 1)
                made = derivatives.tangent(self.derived(before), before.order, options)
            self.programs[which] = made
        return self.programs[which]

    def _finished(self, which: Which) -> Finished:
        from retrograde.compiler import derivatives
        from retrograde.compiler.emit import emit

        made = self.derived(which)
        program = made.program
        # The function itself writes into its arguments, as the user wrote it.
        text = emit(
            derivatives.finished(
                made, self.options.passes, made is not self.j0, self.settings.vectormath and made is not self.j0
            )
        )
        return Finished(
            program.name,
            text,
            made.params,
            tuple(program.params),
            made.results,
            tuple(derivatives.result_types(program)) if made.results else (),
            frozenset(made.written),
            program.reached,
        )

    def _interface(self) -> Interface:
        from retrograde.compiler import derivatives

        program, roles = self.j0.program, self.j0.params
        leaves = [p for p, role in zip(program.params, roles, strict=True) if role[0] == "x"]
        return Interface(
            tuple(leaves),
            tuple(program.types[p] for p in leaves),
            self.lowered.structure,
            tuple(derivatives.result_types(program)),
            tuple(i for i, p in enumerate(leaves) if p in self.lowered.written),
            self.lowered.constants,
        )


def chosen(options: Options | None, settings: Settings) -> Options | None:
    """How derivatives are made, with what the user's settings say of it."""
    if not settings.parallel and not settings.checkpoint:
        return options
    from retrograde.compiler.options import Options

    made = options or Options()
    passes = (*made.passes, "parallel") if settings.parallel else made.passes
    return replace(made, passes=passes, checkpoint=settings.checkpoint or made.checkpoint)


class Specialisation:
    """A function with the types of its arguments fixed.

    Shapes are not fixed, with two exceptions. Where an axis of length 1 turns out to be stretched against a longer one,
    a variant is made in which the axes of length 1 are known, and is used for arguments of just these. And short slices
    with constant bounds, x[3:6], are taken to lie inside of their axis, so that their length is known, and sizes that
    the program compares to be equal; where that turns out to be wrong, a variant is made and used from then on.

    Attributes:
        types: the type of each leaf of the arguments.
        structure: the structure of the result, with types as leaves.
        inputs: the leaves that derivatives are taken of: floats and arrays of floats.
        outputs: the leaves of the result that have derivatives.
        written: the leaves that the function writes into; their final contents are outputs as well.
        finals: those of them that have derivatives.
        sizes: the shapes, or the values, of the leaves in the last call.
        is_plain: run the text as plain Python instead of compiling it.
    """

    def __init__(
        self,
        source: Source,
        arguments: dict[str, Any],
        settings: Settings = USUAL,
        options: Options | None = None,
        fingerprint: Fingerprint | None = None,
    ) -> None:
        self.source = source
        self.arguments = arguments
        self.settings = settings
        self.options = chosen(options, settings)
        self.fingerprint = fingerprint
        self.is_plain = False
        self.stretches = False
        self.clips = False
        self.differs = False
        self.sizes: dict[str, Any] = {}
        self.variants: dict[Known, Variant] = {}
        interface = self.variant().interface
        self.params, self.types = interface.params, interface.types
        self.structure, self.result_types = interface.structure, interface.result_types
        self.inputs = [i for i, t in enumerate(self.types) if t.is_inexact]
        self.outputs = [j for j, t in enumerate(self.result_types) if t.is_inexact]
        self.written = interface.written
        self.finals = [i for i in self.written if self.types[i].is_inexact]

    # --- programs ------------------------------------------------------------------------------------------------

    def variant(self, known: Known = NOTHING) -> Variant:
        """The programs for arguments of whose shapes that much is known."""
        if known not in self.variants:
            key = None
            if self.fingerprint is not None and self.fingerprint.key is not None:
                parts = self.settings, repr(self.options), _described(tuple(self.arguments.items()))
                key = kept.key_of(self.fingerprint.key, parts, known.ones, known.clips, known.differs)
            lower = functools.partial(self._lower, known)
            self.variants[known] = Variant(lower, self.options, key, self.settings)
        return self.variants[known]

    def _lower(self, known: Known) -> Lowered:
        from retrograde.compiler.lower.function import lower_function

        return lower_function(self.source, self.arguments, known)

    def program(self, which: Which) -> Finished:
        return self.variant().program(which)

    def text(self, kind: str, order: int) -> str:
        return self.program(Which(kind, order)).text

    def explanation(self) -> Explanation:
        """What the pullback keeps and does again (see explain.py), for the sizes of the last call."""
        from retrograde.compiler.explain import explained

        variant = self.variant()
        names = {node.id for node in ast.walk(self.source.tree) if isinstance(node, ast.Name)} | set(self.params)
        return explained(variant.derived(Which("T", 0)), variant.options.passes, names, self.sizes)

    def reached(self) -> tuple[Any, ...]:
        """The Python functions that the function calls."""
        if self.fingerprint is not None and self.fingerprint.key is not None:
            return tuple(f for f in self.fingerprint.functions if f is not self.source.function)
        return self.variant().lowered.reached

    def native(self, variant: Variant, which: Which) -> Callable[..., Any]:
        if which not in variant.natives:
            made = variant.program(which)
            variant.natives[which] = self._loaded(variant, which, made.text, made.name, self.title(which))
        return variant.natives[which]

    def native_loop(self, variant: Variant, which: Which, mapped: frozenset[str]) -> Callable[..., Any]:
        """The loop over examples that differ in the parameters `mapped` (see examples.py)."""
        key = which, mapped
        if key not in variant.loops:
            inner = self.native(variant, which)
            made = variant.program(which)
            name, text = loop_text(made.name, made.params, made.types, mapped)
            called = inner.dispatcher if isinstance(inner, native.Guarded) else inner
            title = f"{self.title(which)}, for each example"
            part = which, mapped
            variant.loops[key] = self._loaded(variant, part, text, name, title, {made.name: called})
        return variant.loops[key]

    def _loaded(
        self, variant: Variant, part: Any, text: str, name: str, title: str, names: dict[str, Any] | None = None
    ) -> Callable[..., Any]:
        if self.is_plain:
            return native.load(text, name, title, None, names)  # type: ignore[no-any-return]
        decorate = native.derivative_decorator(self.settings, variant.key_of(("code", part)))
        return native.Guarded(native.load(text, name, title, decorate, names), title)

    def title(self, which: Which) -> str:
        kind, order = which.kind, which.order
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
        variant = self.variant(self.known(given))
        program = variant.program(which)
        self.note_sizes([given["x", i] for i in range(len(self.params))])
        is_value = (which.kind, which.order) == ("J", 0)
        args: list[Any] = []
        results: dict[Role, Any] = {}
        for role, name in zip(program.roles, program.params, strict=True):
            # The function itself writes into its arguments, its derivatives into copies.
            is_out = name in program.written and (role[0] != "x" or (is_value and role[1] in self.finals))
            value = given.get(role)
            if role[0] == "constant":
                value = variant.interface.constants[role[1]]
            elif value is None:
                value = self.zeros(role, given)
            elif is_out:
                value = np.array(value)
            elif isinstance(value, np.ndarray) and value.ndim == 0:
                value = value[()]
            value = self.in_field(role, value)
            if is_out:
                results[role] = value
            args.append(value)
        try:
            values = self.native(variant, which)(*args)
        except ValueError as error:
            if SHORT in str(error) and not self.clips:
                self.clips = True
            elif UNEQUAL in str(error) and not self.differs:
                self.differs = True
            elif BROADCAST in str(error) and not self.stretches and self.ones(given):
                self.stretches = True
            else:
                raise
            return self.run(which, given)
        results.update(zip(program.results, values or (), strict=True))
        return results

    def note_sizes(self, leaves: Leaves) -> None:
        self.sizes = {p: getattr(leaf, "shape", leaf) for p, leaf in zip(self.params, leaves, strict=True)}

    def run_each(self, which: Which, given: dict[Role, Any], examples: Examples) -> dict[Role, Any]:
        """The program for each example: the first by itself, which shows the shapes, the others in a native loop."""
        first = examples.first(given)
        results = {role: examples.spread(value) for role, value in self.run(which, first).items()}
        if examples.size == 1:
            return results
        variant = self.variant(self.known(first))
        program = variant.program(which)
        args: list[Any] = []
        mapped: set[str] = set()
        for role, name in zip(program.roles, program.params, strict=True):
            value = given.get(role)
            if role[0] == "constant":
                value = variant.interface.constants[role[1]]
            elif value is None:
                value = self.zeros(role, first)
            value = self.in_field(role, value)
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
        outs = [results[role] for role in program.results]
        self.native_loop(variant, which, frozenset(mapped))(1, examples.size, *args, *outs)
        return results

    def known(self, given: dict[Role, Any]) -> Known:
        return Known(self.ones(given) if self.stretches else frozenset(), self.clips, self.differs)

    def ones(self, given: dict[Role, Any]) -> frozenset[tuple[str, int]]:
        """The axes of length 1 of the arguments."""
        return frozenset(
            (self.params[i], axis)
            for i, t in enumerate(self.types)
            if t.is_array
            for axis, n in enumerate(given["x", i].shape)
            if n == 1
        )

    def type_of(self, role: Role) -> Type | None:
        """The type of what a role stands for; None for an array from outside."""
        while role[0] == "dot":
            role = role[2]
        if role[0] == "constant":
            return None
        return (self.types if role[0] in ("x", "x_bar") else self.result_types)[role[1]]

    def in_field(self, role: Role, value: Any) -> Any:
        """Real numbers as complex ones where those are wanted, as of seeds."""
        type = self.type_of(role)
        if type is None or not type.is_complex or np.iscomplexobj(value):
            return value
        return np.asarray(value, type.dtype)[()]

    def zeros(self, role: Role, given: dict[Role, Any]) -> Any:
        """Zero for what a role stands for."""
        type = self.type_of(role)
        while role[0] == "dot":
            role = role[2]
        if type is not None and type.is_array:
            assert role[0] in ("x", "x_bar"), "an array of results has a cotangent of a known shape"
            like = given["x", role[1]]
            return np.zeros(like.shape, like.dtype)
        return 0j if type is not None and type.is_complex else 0.0

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


def _described(kind: Any) -> Any:
    """The types of arguments as parts of a key, in which named tuples of different classes differ."""
    if isinstance(kind, tuple) and not isinstance(kind, Type):
        fields = getattr(kind, "_fields", ())
        return (f"{type(kind).__module__}.{type(kind).__qualname__}", fields, *map(_described, kind))
    return repr(kind)
