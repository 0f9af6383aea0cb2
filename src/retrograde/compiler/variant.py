"""The programs of a function for one set of argument types, made when they are first asked for, or found on disk."""

from __future__ import annotations

import functools
import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from retrograde.compiler import kept
from retrograde.compiler.settings import Settings
from retrograde.compiler.types import Type
from retrograde.errors import BatchError
from retrograde.trace.interception import originals

if TYPE_CHECKING:
    from retrograde.compiler.derivatives import Derivative, Role
    from retrograde.compiler.examples import Loop, Weights
    from retrograde.compiler.known import Shared
    from retrograde.compiler.lower.function import Lowered
    from retrograde.compiler.machine.written import Kernel
    from retrograde.compiler.options import Options
    from retrograde.compiler.outside import Outside
    from retrograde.compiler.parameters import Call

# The passes are imported where they are used: what is kept on disk needs none of them.

Wanted = frozenset[int] | None
"""Numbers of leaves of the arguments; None for all that have derivatives."""


class Which(NamedTuple):
    """One of the programs of derivatives.py.

    Attributes:
        kind, order: J, T or S, and the number of directions.
        careful: with products in which zero times infinity is zero.
        wanted: the leaves whose cotangents are wanted; None for all.
        along: for each direction the leaves in which it is not zero; None for all.
        lanes: how many values it takes at once of what the `mapped` roles stand for.
        part: of a program in parts, the one that is "shared" by all values of what the `mapped` roles stand for, or the
            "rest", for each of them.
    """

    kind: str
    order: int
    careful: bool = False
    wanted: Wanted = None
    along: tuple[Wanted, ...] = ()
    lanes: int = 1
    mapped: frozenset[Role] = frozenset()
    part: str = ""

    @property
    def before(self) -> Which:
        """The program of which this is the derivative along the last direction."""
        return self._replace(order=self.order - 1, along=self.along[: self.order - 1])

    @property
    def of_one_lane(self) -> Which:
        return self._replace(lanes=1, mapped=self.mapped if self.part else frozenset())

    @property
    def whole(self) -> Which:
        """The program of which this is a part, or which is for several lanes here."""
        return self._replace(lanes=1, mapped=frozenset(), part="")


class Finished(NamedTuple):
    """A program as it is compiled, with what has to be known to call it.

    Attributes:
        name, text: of the function that was written.
        roles, params: what its parameters stand for, and their names.
        results: what its results stand for.
        types: of the results.
        written: the array parameters that it writes into.
        reached: the inputs from which a path leads to a result.
        filled: the arrays among its parameters that need no zeros where their axes have certain lengths (see form.py).
        kernel: the same program as LLVM's text, where it can be written.
    """

    name: str
    text: str
    roles: tuple[Role, ...]
    params: tuple[str, ...]
    results: tuple[Role, ...]
    types: tuple[Type, ...]
    written: frozenset[str]
    reached: frozenset[str]
    filled: dict[str, tuple[tuple[Any, ...], ...]]
    kernel: Kernel | None = None


class Interface(NamedTuple):
    """What a caller of the function has to know.

    Attributes:
        params, types: the names and types of the leaves of the arguments.
        structure: that of the result, with types as leaves.
        result_types: those of the leaves of the result.
        written: the leaves that the function writes into.
        constants: the arrays from outside of the function.
        shared: the results that may have the memory of an argument or of each other.
        paths: for each result, and each array among the leaves at the end, the leaves from which a path leads to it.
    """

    params: tuple[str, ...]
    types: tuple[Type, ...]
    structure: Any
    result_types: tuple[Type, ...]
    written: tuple[int, ...]
    constants: tuple[Any, ...]
    shared: Shared
    paths: dict[Role, frozenset[int]]


class Variant:
    """The programs of a function for one set of argument types.

    Args:
        lower: makes the program of the function itself.
        key: under which its results are kept on disk; None where they are not.
        settings: those of the user.
        outside: what the function reads from outside.
        has_key: whether the key is still that of the function: rules of a user's own may be defined at any time.
    """

    def __init__(
        self,
        lower: Callable[[], Lowered],
        options: Options | None,
        key: str | None,
        settings: Settings,
        outside: Outside,
        has_key: Callable[[], bool],
    ) -> None:
        self._lower = lower
        self._options = options
        self.key = key
        self.settings = settings
        self.outside = outside
        self._has_key = has_key
        self.programs: dict[Which, Derivative] = {}
        self.finished: dict[Which, Finished] = {}
        self.natives: dict[Which, Callable[..., Any]] = {}
        self._weights: dict[tuple[Which, frozenset[Role]], Weights | None] = {}
        self._has_parts: dict[tuple[Which, frozenset[Role]], bool] = {}
        self.loops: dict[tuple[Which, Loop], Callable[..., Any]] = {}
        self.calls: dict[Which, Call] = {}
        self.ways: dict[tuple[Any, ...], Any] = {}  # how many examples are gone through (see each.py)

    # --- made or found -------------------------------------------------------------------------------------------

    @functools.cached_property
    def interface(self) -> Interface:
        found = self._found_or_made("interface", self._interface)
        return found._replace(constants=self.outside.arrays_of(found.constants))  # type: ignore[no-any-return]

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
            # Rules are written down by NumPy's own functions, whatever transform is running.
            with originals(), patient():
                found = make()
            if key is not None and self._has_key():
                kept.save(key, found)
            else:
                self.key = None
        return found

    # --- made ----------------------------------------------------------------------------------------------------

    @functools.cached_property
    def lowered(self) -> Lowered:
        from retrograde.compiler.outside import frozen

        with originals():
            found = self._lower()
        return replace(found, constants=tuple(map(frozen, found.constants)))

    @functools.cached_property
    def options(self) -> Options:
        from retrograde.compiler.options import Options

        return self._options or Options()

    @functools.cached_property
    def j0(self) -> Derivative:
        from retrograde.compiler import derivatives

        return derivatives.primal(self.lowered, self.options.passes)

    @functools.cached_property
    def shapes(self) -> Derivative | None:
        from retrograde.compiler import derivatives

        return derivatives.shapes(self.j0)

    def unknown_shape(self) -> BatchError:
        """The error for a batch of no examples, where the shape of a result depends on their values."""
        name = self.lowered.program.name
        return BatchError(f"{name} is mapped over no examples; the shape of its result depends on the values of one")

    def derived(self, which: Which) -> Derivative:
        """The program in the form, from which others are derived."""
        from retrograde.compiler import derivatives

        if (which.kind, which.order) == ("J", 0):
            return self.j0
        if which.kind == "S":
            if self.shapes is None:
                raise self.unknown_shape()
            return self.shapes
        if which not in self.programs and which.lanes > 1:
            made = derivatives.laned(self.derived(which.of_one_lane), which.mapped, which.lanes)
            assert made is not None, "the weights say that there can be lanes"
            self.programs[which] = made
        if which not in self.programs and which.part:
            # Another variant may have been asked whether that is worth it.
            parts = derivatives.parted(self.derived(which.whole), which.mapped, anyway=True)
            assert parts is not None, "no variant decides by seeds what it does"
            for part, made in zip(("shared", "rest"), parts, strict=True):
                self.programs[which._replace(part=part)] = made
        if which not in self.programs:
            options = replace(self.options, careful=which.careful or self.options.careful)
            if which.order == 0:
                made = derivatives.pullback(self.j0, options, which.wanted)
            else:
                along = which.along[which.order - 1] if which.along else None
                made = derivatives.tangent(self.derived(which.before), which.order - 1, options, along)
            self.programs[which] = made
        return self.programs[which]

    def weights(self, which: Which, mapped: frozenset[Role]) -> Weights | None:
        """What lanes of a program cost that differ in what some roles stand for; None where there can be none."""
        if (which, mapped) not in self._weights:
            made = self._found_or_made(("weights", which, mapped), lambda: (self._weighed(which, mapped),))
            self._weights[which, mapped] = made[0]
        return self._weights[which, mapped]

    def has_parts(self, which: Which, mapped: frozenset[Role]) -> bool:
        """Whether a program is worth being written in parts."""
        if (which, mapped) not in self._has_parts:
            found = self._found_or_made(("parts", which, mapped), lambda: (self._is_parted(which, mapped),))
            self._has_parts[which, mapped] = found[0]
        return self._has_parts[which, mapped]

    def _is_parted(self, which: Which, mapped: frozenset[Role]) -> bool:
        from retrograde.compiler import derivatives

        parts = derivatives.parted(self.derived(which), mapped)
        for part, made in zip(("shared", "rest"), parts or (), strict=parts is not None):
            self.programs[which._replace(mapped=mapped, part=part)] = made
        return parts is not None

    def _weighed(self, which: Which, mapped: frozenset[Role]) -> Weights | None:
        from retrograde.compiler import derivatives, lanes

        made = self.derived(which)
        return lanes.weights(made.program, derivatives.seeds(made, mapped))

    def _finished(self, which: Which) -> Finished:
        from retrograde.compiler import derivatives
        from retrograde.compiler.emit import emit
        from retrograde.compiler.machine.text import kernel_of

        made = self.derived(which)
        program = made.program
        # A J writes into its arguments as the user wrote it (copies, except of the function itself).
        vectormath = self.settings.vectormath
        finished = derivatives.finished(made, self.options.passes, which.kind != "J", vectormath, which.mapped)
        text = emit(finished)
        return Finished(
            program.name,
            text,
            made.params,
            tuple(program.params),
            made.results,
            tuple(derivatives.result_types(program)) if made.results else (),
            frozenset(made.written),
            program.reached,
            finished.filled,
            kernel_of(finished, self.settings.fastmath) if self.options.machine and which.kind != "S" else None,
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
            tuple(i for i, p in enumerate(leaves) if p in self.j0.written),  # not those that get what they hold
            self.outside.names_of(self.lowered.constants),
            self.lowered.shared,
            derivatives.paths(self.j0),
        )


@contextmanager
def patient() -> Iterator[None]:
    """Without collections, which find nothing among the statements of programs and take up to a quarter of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
