"""A whole function: from its source and the types of its arguments to a program."""

from __future__ import annotations

import functools
import types
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from retrograde.compiler.form import Load, View
from retrograde.compiler.known import NOTHING, NOTHING_SHARED, Constant, Known, Shared
from retrograde.compiler.lower.builder import NotYetKnown, Restart
from retrograde.compiler.lower.frame import Frame
from retrograde.compiler.lower.procedures import Procedure, Procedures
from retrograde.compiler.lower.shared import shared_results
from retrograde.compiler.lower.values import NONE
from retrograde.compiler.program import Program
from retrograde.compiler.source import Source
from retrograde.compiler.types import Operand, Type
from retrograde.compiler.walks import clone, defs, map_names, stem, walk

MOST_ATTEMPTS = 200


@dataclass(frozen=True)
class Lowered:
    """A program with what the caller must know.

    Attributes:
        program: its parameters are the leaves of the arguments, then the arrays from outside the function.
        structure: the structure of the result, with types as leaves.
        constants: the arrays from outside.
        written: which parameters the function writes into.
        reached: the other Python functions that it calls, directly or not.
        shared: which results may have the memory of an argument or of each other.
    """

    program: Program
    structure: Any
    constants: tuple[np.ndarray, ...]
    written: frozenset[str]
    reached: tuple[types.FunctionType, ...]
    known: Known = NOTHING
    shared: Shared = NOTHING_SHARED


def lower_function(
    source: Source,
    arguments: dict[str, Any],
    known: Known = NOTHING,
    procedures: dict[Any, Procedure] | None = None,
    checks_indices: bool = False,
) -> Lowered:
    """The program of a function.

    Args:
        source: the function.
        arguments: for each parameter its type, a tuple of these, or a `Constant`.
        known: what is known of the shapes.
        procedures: the functions that call themselves, as far as they are known.
        checks_indices: compare every index with the length of its axis.
    """
    found = Findings(procedures={} if procedures is None else procedures)
    for _ in range(MOST_ATTEMPTS):
        lower = _Lower(source, arguments, known, found, checks_indices)
        try:
            return lower.lowered()
        except Restart:
            pass
    raise AssertionError(f"the types of {source.name} do not settle")


@dataclass
class Findings:
    """What an attempt found out too late, for the next one.

    Attributes:
        hints: the types that cells need, by the places where they are made.
        array_names: names that were first thought to be scalars.
        attached: the places of calls whose results must be views.
        result: the structure of the results, where they are numbers of several types.
        procedures: the functions that call themselves.
    """

    hints: dict[Any, Type] = field(default_factory=dict)
    array_names: set[Any] = field(default_factory=set)
    attached: set[Any] = field(default_factory=set)
    result: list[Any] = field(default_factory=list)
    procedures: dict[Any, Procedure] = field(default_factory=dict)


class _Lower(Procedures):
    def __init__(
        self,
        source: Source,
        arguments: dict[str, Any],
        known: Known,
        found: Findings,
        checks_indices: bool,
    ) -> None:
        super().__init__(Program(source.name, [], RESERVED))
        self.hints, self.array_names, self.attached = found.hints, found.array_names, found.attached
        self.wanted_result = found.result
        self.procedures = found.procedures
        self.checks_indices = checks_indices
        self.lower = functools.partial(lower_function, checks_indices=checks_indices)
        self.arguments = arguments
        self.known = known
        self.own = source
        # The user's names are his: no name of ours may be one of them by accident.
        self.program.taken |= {source.name}

    def lowered(self) -> Lowered:
        frame = Frame(self.own, ())
        self.source = self.own
        self.at = self.own.at(self.own.tree)
        self.enter(frame, {name: self.parameter(name, kind) for name, kind in self.arguments.items()})
        if not frame.returned:
            self.return_values(NONE)
        self.check_detached()
        self.check_borrowed()
        program = self.program
        written = frozenset(p for p in program.params if p in self.written)
        links = [(copy, original) for copy, original, *_ in (*self.detachments, *self.borrowed)]
        shared = shared_results(program, (*links, *self.returned_parts))
        for name, _ in self.constants.values():
            if name in self.written:
                raise self.refuse(f"the array {name} from outside the function is written into", "an argument")
        program.params += [name for name, _ in self.constants.values()]
        program.procedures = {p.name: p.program for p in self.procedures.values() if p.program is not None}
        for procedure in program.procedures.values():
            procedure.procedures = program.procedures
        if not self.structures:
            raise NotYetKnown
        made = {name for s in walk(program.body) for name in defs(s)}
        self.rename({old: new for old, new in self.user_names.items() if old in made and stem(old) != new})
        return Lowered(
            program,
            self.structures[0],
            tuple(a for _, a in self.constants.values()),
            written,
            tuple(self.reached),
            self.known,
            shared,
        )

    def rename(self, called: dict[str, str]) -> None:
        """Give temps and arrays the names that the user gave them."""
        program = self.program
        names = {old: program.new(new, program.types[old]) for old, new in called.items()}
        for s in walk(program.body):
            # What is read of an array, or a part of it, is called after it.
            if isinstance(s, Load | View) and s.array in names and s.dst not in names and stem(s.dst) == stem(s.array):
                names[s.dst] = program.new(names[s.array], program.types[s.dst])

        def renamed(name: str) -> str:
            return names.get(name, name)

        program.body = clone(program.body, renamed, renamed)
        for array, dims in list(program.dims.items()):
            program.set_dims(renamed(array), map_names(dims, renamed))

    def parameter(self, name: str, kind: Any) -> Any:
        """The value of a parameter: its leaves become parameters of the program."""
        if isinstance(kind, Type):
            return self.leaf(name, kind)
        if isinstance(kind, Constant):
            return NONE if kind.value is None else kind
        fields = getattr(kind, "_fields", range(len(kind)))
        parts = [self.parameter(f"{name}_{field}", k) for field, k in zip(fields, kind, strict=True)]
        return type(kind)(*parts) if hasattr(kind, "_fields") else tuple(parts)

    def leaf(self, name: str, type: Type) -> str:
        program = self.program
        param = program.new(name, type)
        program.params.append(param)
        if type.is_array:
            dims: list[Operand] = []
            for axis in range(type.ndim):
                dims.append(1 if (param, axis) in self.known.ones else self.op("shape", param, axis))
            program.set_dims(param, tuple(dims))
        return param


# What emitted text uses itself.
RESERVED = frozenset(
    "np math numba range len abs min max int float bool complex and as assert async await break class continue def del "
    "elif else except finally for from global if import in is lambda nonlocal not or pass raise return try while with "
    "yield True False None ValueError IndexError TypeError".split()
)
