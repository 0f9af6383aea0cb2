"""A function for one set of argument types: its programs, made and compiled when they are first asked for."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy import ndarray, zeros  # NumPy's own, whatever transform is running

from retrograde.compiler import kept, native
from retrograde.compiler.each import run_each, run_none
from retrograde.compiler.examples import Examples, Loop, Room, new_array
from retrograde.compiler.fingerprint import Fingerprint
from retrograde.compiler.known import BROADCAST, NOTHING, SHORT, UNEQUAL, Known
from retrograde.compiler.outside import Outside
from retrograde.compiler.parameters import Call, Found, base, in_field, parameters
from retrograde.compiler.settings import USUAL, Settings
from retrograde.compiler.source import Source
from retrograde.compiler.types import Type
from retrograde.compiler.variant import Finished, Variant, Wanted, Which
from retrograde.errors import InputError
from retrograde.rules.products import has_nan
from retrograde.trace.interception import originals

if TYPE_CHECKING:
    from retrograde.compiler.derivatives import Role
    from retrograde.compiler.explain import Explanation
    from retrograde.compiler.lower.function import Lowered
    from retrograde.compiler.options import Options
    from retrograde.rules.table import General

Leaves = Sequence[Any]
SINGLES = (Type("float32"), Type("complex64"))


def chosen(options: Options | None, settings: Settings) -> Options | None:
    """How derivatives are made, with what the user's settings say of it."""
    if not settings.parallel and not settings.checkpoint:
        return options
    from retrograde.compiler.options import Options

    made = options or Options()
    passes = (*made.passes, "parallel") if settings.parallel else made.passes
    return replace(made, passes=passes, checkpoint=settings.checkpoint or made.checkpoint)


class Gradient(NamedTuple):
    """What is known of the gradient with respect to some of the arguments.

    Attributes:
        wanted: the numbers of their leaves; None if those are all that have derivatives.
        has_path: for each leaf, whether a path leads from it to the result.
    """

    wanted: Wanted
    has_path: list[bool]


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
        shared: the results that may have the memory of an argument or of each other (see shared.py).
        sizes: the shapes, or the values, of the leaves in the last call.
        leaves, result_roles: the roles of the leaves of the arguments, and of the results that have derivatives.
        output_roles: those of the latter, and of the finals.
        paths: for those of them to which no path leads from some inputs, the leaves from which one does.
        is_smooth: whether all results have derivatives, and nothing is written into an argument.
        is_one_number: whether there is one result besides, a real number.
        rule: for calls whose derivative has been computed with the value (see at_once.py).
        is_flat: whether each argument is one leaf.
        usual: the programs for arguments of which nothing is known beside their types.
        gradients: what is known of them, by the places of the arguments; None where the result is no real number.
        tangents: the roles of those of arguments, likewise; None where a transform has to trace the function.
        is_plain: run the text as plain Python instead of compiling it.
        is_beyond_numba: numba cannot compile the function as it is written.
    """

    def __init__(
        self,
        source: Source,
        arguments: dict[str, Any],
        settings: Settings = USUAL,
        options: Options | None = None,
        fingerprint: Fingerprint | None = None,
        outside: Outside | None = None,
    ) -> None:
        self.source = source
        self.arguments = arguments
        self.settings = settings
        self.options = chosen(options, settings)
        self.options_lanes = None if self.options is None else self.options.lanes
        self.fingerprint = fingerprint
        self.outside = outside or Outside(source.function)
        self.is_flat = all(isinstance(kind, Type) for kind in arguments.values())
        self.is_plain = False
        self.is_beyond_numba = False
        self.stretches = False
        self.clips = False
        self.differs = False
        self.sizes: dict[str, Any] = {}
        self.variants: dict[Known, Variant] = {}
        self.gradients: dict[tuple[int, ...], Gradient | None] = {}
        self.tangents: dict[tuple[int, ...], list[Role] | None] = {}
        self.usual = self.variant()
        interface = self.usual.interface
        self.params, self.types = interface.params, interface.types
        self.structure, self.result_types = interface.structure, interface.result_types
        self.leaves: list[Role] = [("x", i) for i in range(len(self.params))]
        self.inputs = [i for i, t in enumerate(self.types) if t.is_inexact]
        self.outputs = [j for j, t in enumerate(self.result_types) if t.is_inexact]
        self.written, self.shared = interface.written, interface.shared
        self.finals = [i for i in self.written if self.types[i].is_inexact]
        self.result_roles: list[Role] = [("y", j) for j in self.outputs]
        self.is_smooth = not self.written and len(self.outputs) == len(self.result_types) > 0
        kinds = [(t.kind, t.is_array) for t in self.result_types]
        self.is_one_number = self.is_smooth and kinds == [("f", False)]
        self.output_roles: list[Role] = [*self.result_roles, *(("x", i) for i in self.finals)]
        every = frozenset(self.inputs)
        self.paths = {role: path for role in self.output_roles if (path := interface.paths[role]) != every}
        self.rule: General | None = None

    # --- programs ------------------------------------------------------------------------------------------------

    def variant(self, known: Known = NOTHING) -> Variant:
        """The programs for arguments of whose shapes that much is known."""
        if known not in self.variants:
            key = None
            if self.fingerprint is not None and self.fingerprint.key is not None:
                parts = self.settings, repr(self.options), _described(tuple(self.arguments.items()))
                key = kept.key_of(self.fingerprint.key, parts, known.ones, known.clips, known.differs)
            lower = functools.partial(self._lower, known)
            self.variants[known] = Variant(lower, self.options, key, self.settings, self.outside, self._has_key)
        return self.variants[known]

    def _has_key(self) -> bool:
        """Whether the key that the fingerprint gives is still that of the function."""
        return self.fingerprint is not None and self.fingerprint.is_as_it_was(self.source.function)

    def _lower(self, known: Known) -> Lowered:
        from retrograde.compiler.lower.function import lower_function

        self.outside.check()
        return lower_function(self.source, self.arguments, known, checks_indices=self.settings.boundscheck)

    def program(self, which: Which) -> Finished:
        return self.variant().program(which)

    def text(self, kind: str, order: int) -> str:
        return self.program(Which(kind, order)).text

    def explanation(self) -> Explanation:
        """What the pullback keeps and does again (see explain.py), for the sizes of the last call."""
        from retrograde.compiler.explain import explained

        variant = self.variant()
        names = (names_of(self.source.tree) - counters_of(self.source.tree)) | set(self.params)
        vectormath = self.settings.vectormath
        return explained(variant.derived(Which("T", 0)), variant.options.passes, vectormath, names, self.sizes)

    def reached(self) -> tuple[Any, ...]:
        """The Python functions that the function calls."""
        if self.fingerprint is not None and self.fingerprint.key is not None:
            return tuple(f for f in self.fingerprint.functions if f is not self.source.function)
        return self.variant().lowered.reached

    def native(self, variant: Variant, which: Which) -> Callable[..., Any]:
        if which not in variant.natives:
            made = variant.program(which)
            # What numba loads on its way must find NumPy's own functions, whatever transform is running.
            with originals():
                variant.natives[which] = self._of_kernel(variant, which, made) or self._of_text(variant, which, made)
        return variant.natives[which]

    def _of_text(self, variant: Variant, which: Which, made: Finished) -> Any:
        return self._loaded(variant, which, made.text, made.name, self.title(which))

    def _of_kernel(self, variant: Variant, which: Which, made: Finished) -> Any:
        """The program as numba takes it from its text for LLVM; None where it has none."""
        if self.is_plain or made.kernel is None:
            return None
        key = variant.key_of(("kernel", which))
        found = native.load_kernel(made.kernel, made.name, made.params, self.title(which), self.settings, key)
        otherwise = functools.partial(self._of_text, variant, which, made)
        return native.Guarded(found, self.title(which), lambda: otherwise().dispatcher, bool(made.kernel.looked_at))

    def native_loop(self, variant: Variant, which: Which, loop: Loop) -> Callable[..., Any]:
        """The loop over groups of examples (see examples.py)."""
        key = which, loop
        if key not in variant.loops:
            inner = self.native(variant, which)
            called = inner.dispatcher if isinstance(inner, native.Guarded) else inner
            title = f"{self.title(which)}, for each example"
            variant.loops[key] = self._loaded(variant, key, loop.text(), loop.name, title, {loop.program: called})
        return variant.loops[key]

    def _loaded(
        self, variant: Variant, part: Any, text: str, name: str, title: str, names: dict[str, Any] | None = None
    ) -> Callable[..., Any]:
        if self.is_plain or (isinstance(part, Which) and part.kind == "S"):
            return native.load(text, name, title, None, names)  # type: ignore[no-any-return]
        decorate = native.derivative_decorator(self.settings, name, variant.key_of(("code", part)))
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
        if examples is not None and examples.size == 0:
            return run_none(self, Which(kind, order, False, wanted), given, examples)
        if self.written:
            first = examples.first(given) if examples else given
            self.check_overlaps([first[role] for role in self.leaves])
        along = tuple([self._along(number, given) for number in range(order)])
        which = Which(kind, order, False, wanted, along if any(a is not None for a in along) else ())
        results = run_each(self, which, given, examples) if examples else self.run(which, given)
        is_derivative = order > 0 or kind == "T"
        seen = results.clean
        if is_derivative and any(has_nan(v) for role, v in results.items() if role[0] != "y" and role not in seen):
            which = which._replace(careful=True)
            results = run_each(self, which, given, examples) if examples else self.run(which, given)
        return results

    def _along(self, number: int, given: dict[Role, Any]) -> Wanted:
        """The leaves that a direction is given for."""
        found = frozenset(i for i in self.inputs if given.get(("dot", number, ("x", i))) is not None)
        return None if found.issuperset(self.inputs) else found

    def run(self, which: Which, given: dict[Role, Any], room: Room = new_array) -> Found:
        """What the results of a program stand for, and the arrays that it writes.

        Args:
            room: gives the array that is to hold what the program writes, with the contents that it begins with.
        """
        call = self.call(self.variant_for(given), which)
        self.note_sizes([given[role] for role in self.leaves])
        args: list[Any] = []
        results = Found()
        for p in call.parameters:
            value = given.get(p.role)
            if value is not None:
                if p.dtype is not None:
                    value = in_field(p.dtype, value)
                if p.is_out:
                    value = results[p.role] = room(p.role, value, True, False)
                elif type(value) is ndarray and value.ndim == 0:
                    value = value[()]
            elif p.constant is not None:
                value = p.constant
            elif p.like is None:
                value = p.zero
            else:
                like = given[p.like]
                if p.is_out:
                    value = results[p.role] = room(p.role, like, False, p.is_filled(like.shape, given))
                else:
                    value = zeros(like.shape, like.dtype)
            args.append(value)
        try:
            values = call.code(*args)
        except ValueError as error:
            if SHORT in str(error) and not self.clips:
                self.clips = True
            elif UNEQUAL in str(error) and not self.differs:
                self.differs = True
            elif BROADCAST in str(error) and not self.stretches and self.ones(given):
                self.stretches = True
            else:
                raise
            return self.run(which, given, room)
        count = len(call.results)
        results.update(zip(call.results, values[:count] if values else (), strict=True))
        if values and values[count:] == (0,):
            results.clean = frozenset(role for role in call.looked_at if given.get(role) is None)
        for role, kind in call.singles:
            results[role] = kind(results[role])
        return results

    def call(self, variant: Variant, which: Which) -> Call:
        """How a program is called."""
        found = variant.calls.get(which)
        if found is None:
            program = variant.program(which)
            roles = zip(program.roles, program.params, strict=True)
            outs = frozenset(role for role, name in roles if name in program.written and self.is_out(which, role))
            given = parameters(program, self.types, self.result_types, variant.interface.constants, outs)
            singles = tuple(
                (role, np.dtype(type.dtype).type)
                for role, type in zip(program.results, program.types, strict=True)
                if type in SINGLES
            )
            seen = () if program.kernel is None else program.kernel.looked_at
            looked_at = frozenset(program.roles[k] for k in seen)
            found = Call(given, program.results, singles, self.native(variant, which), looked_at)
            variant.calls[which] = found
        return found

    def is_out(self, which: Which, role: Role) -> bool:
        """Whether what a program writes into a parameter is a result: not where it makes a copy of its own first.

        The function itself writes integers into the very arrays that it is given.
        """
        if role[0] != "x":
            return True
        return which.kind == "J" and (which.order > 0 or role[1] in self.finals)

    def note_sizes(self, leaves: Leaves) -> None:
        self.sizes = {p: getattr(leaf, "shape", leaf) for p, leaf in zip(self.params, leaves, strict=True)}

    def variant_for(self, given: dict[Role, Any]) -> Variant:
        """The programs for some arguments."""
        return self.usual if self.is_usual else self.variant(self.known(given))

    @property
    def is_usual(self) -> bool:
        """Whether nothing has turned out that asks for other programs than the usual ones."""
        return not (self.stretches or self.clips or self.differs)

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

    def zeros(self, role: Role, given: dict[Role, Any]) -> Any:
        """Zeros for a derivative of an argument."""
        number = base(role)[1]
        type, like = self.types[number], given["x", number]
        return zeros(like.shape, like.dtype) if type.is_array else 0j if type.is_complex else 0.0

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


def names_of(tree: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def counters_of(tree: ast.AST) -> set[str]:
    """The names that only ever count the iterations of a loop."""
    loops = [n for n in ast.walk(tree) if isinstance(n, ast.For) and _counts(n.iter)]
    counting = [n.target.id for n in loops if isinstance(n.target, ast.Name)]
    bound = [n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    return {name for name in counting if counting.count(name) == bound.count(name)}


def _counts(items: ast.expr) -> bool:
    """Whether a loop is over `range` or `prange`."""
    called = items.func if isinstance(items, ast.Call) else None
    return getattr(called, "id", getattr(called, "attr", "")) in ("range", "prange")


def nested(subset: int, role: Role) -> Role:
    """The derivative of a role along the directions of which `subset` has the bits."""
    for number in range(subset.bit_length()):
        if subset >> number & 1:
            role = ("dot", number, role)
    return role


def _described(kind: Any) -> Any:
    """The types of arguments as parts of a key, in which named tuples of different classes differ."""
    if isinstance(kind, tuple) and not isinstance(kind, Type):
        fields = getattr(kind, "_fields", ())
        return (f"{type(kind).__module__}.{type(kind).__qualname__}", fields, *map(_described, kind))
    return repr(kind)
