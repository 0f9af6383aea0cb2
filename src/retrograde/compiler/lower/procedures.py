"""Functions that call themselves: each becomes a procedure, a program of its own, that is called and not written in.

What such a function returns, and what it writes into, is found by lowering it again and again: first without the paths
on which it calls itself, then with what the time before found, until that does not change.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from retrograde.compiler.arguments import flat_types, key_of, structured
from retrograde.compiler.form import Call, Return, View
from retrograde.compiler.known import Constant, Known
from retrograde.compiler.lower.builder import NotYetKnown
from retrograde.compiler.lower.calls import Calls
from retrograde.compiler.lower.descriptions import describe
from retrograde.compiler.lower.values import NONE, Lazy, Object
from retrograde.compiler.program import Program
from retrograde.compiler.source import Source, python_function, source_of
from retrograde.compiler.types import Operand
from retrograde.compiler.walks import walk
from retrograde.trace.running import Ruled

MOST_ROUNDS = 10
_UNKNOWN = object()


@dataclass(frozen=True, eq=False)
class Given:
    """The derivative that a user gave a procedure.

    Attributes:
        function: knows it.
        kinds: the types of the arguments that it was called with.
        structure: that of its result, with types as leaves.
    """

    function: Ruled
    kinds: tuple[Any, ...]
    structure: Any


@dataclass(eq=False)
class Procedure:
    """A function that calls itself, for arguments of certain types.

    Attributes:
        structure: the structure of its result, with types as leaves.
        constants: the arrays from outside that it reads, which are handed to it behind its arguments.
        effects: the positions of the parameters that it writes into.
        program: None as long as it is being lowered.
    """

    name: str
    source: Source
    kinds: dict[str, Any]
    structure: Any = _UNKNOWN
    constants: tuple[np.ndarray, ...] = ()
    effects: frozenset[int] = frozenset()
    program: Program | None = None

    def known(self) -> Any:
        return self.structure, tuple(map(id, self.constants)), self.effects


class Procedures(Calls):
    procedures: dict[Any, Procedure]
    # lower_function
    lower: Callable[..., Any]

    def call_procedure(self, source: Source, bound: dict[str, Any]) -> Any:
        leaves: list[Operand] = []
        kinds = {name: self.kind(value, leaves) for name, value in bound.items()}
        key = (source.function, tuple(map(key_of, kinds.values())))
        if key not in self.procedures:
            self.lower_procedure(key, source, kinds)
        return self.call_of(self.procedures[key], leaves)

    def call_ruled(self, f: Ruled, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """A function whose derivative its user has given: a procedure with this derivative."""
        function = python_function(f._own_rule().function)
        if function is None:
            name = f._own_rule().name
            raise self.refuse(f"the primitive {name} of something that is no Python function", "a def")
        source = source_of(function)
        if kwargs:
            raise self.refuse(f"arguments of the primitive {source.name} by name", "arguments by position")
        bound = self.bind_arguments(source.name, inspect.signature(function), args, kwargs)
        leaves: list[Operand] = []
        kinds = {name: self.kind(value, leaves) for name, value in bound.items()}
        key = (f, tuple(map(key_of, kinds.values())))
        if key not in self.procedures:
            self.lower_procedure(key, source, kinds)
            procedure = self.procedures[key]
            assert procedure.program is not None
            if procedure.effects:
                raise self.refuse(f"the primitive {source.name} writes into its arguments", "a copy of them")
            procedure.program.rule = Given(f, tuple(kinds.values())[: len(args)], procedure.structure)
            self.reached[function] = None
        return self.call_of(self.procedures[key], leaves)

    def call_of(self, procedure: Procedure, leaves: list[Operand]) -> Any:
        source = procedure.source
        if procedure.structure is _UNKNOWN:
            raise NotYetKnown
        args = (*leaves, *(self.constant_array(a, "constant") for a in procedure.constants))
        self.check_arguments(procedure, args)
        types = list(flat_types(procedure.structure))
        names = [self.program.new(source.name, type) for type in types]
        self.emit(Call(tuple(names), procedure.name, args))
        for name, type in zip(names, types, strict=True):
            if type.is_array:
                self.program.set_dims(name, tuple(self.op("shape", name, axis) for axis in range(type.ndim)))
        return structured(procedure.structure, iter(names), NONE)

    def kind(self, value: Any, leaves: list[Operand]) -> Any:
        """The type of an argument; its numbers and arrays are added to the leaves."""
        if isinstance(value, Constant):
            return value
        if isinstance(value, tuple):
            parts = [self.kind(v, leaves) for v in value]
            return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
        if isinstance(value, Object):
            raise self.refuse(f"{describe(self, value)} as an argument of a function that calls itself")
        leaves.append(self.in_memory(value) if isinstance(value, Lazy) else value)
        return self.type_of(leaves[-1])

    def lower_procedure(self, key: Any, source: Source, kinds: dict[str, Any]) -> None:
        if any(p.program is None and p.source is source for p in self.procedures.values()):
            raise self.refuse(
                f"{source.name} calls itself with arguments of other types than its own",
                "float(n), or 0.0 in place of 0",
            )
        taken = {p.name for p in self.procedures.values()}
        name = next(n for k in range(1, 100) if (n := f"{source.name}_call{k if k > 1 else ''}") not in taken)
        procedure = self.procedures[key] = Procedure(name, source, kinds)
        at = self.at
        for _ in range(MOST_ROUNDS):
            before = procedure.known()
            try:
                lowered = self.lower(source, kinds, Known(clips=self.known.clips), self.procedures)
            except NotYetKnown:
                self.at = at
                raise self.refuse(f"{source.name} calls itself on every path", "a path that ends") from None
            program = lowered.program
            procedure.structure = lowered.structure
            procedure.constants = lowered.constants
            procedure.effects = frozenset(i for i, p in enumerate(program.params) if p in lowered.written)
            if procedure.known() == before:
                break
        else:
            raise self.refuse(f"the types of {source.name}, which calls itself, do not settle", "floats throughout")
        self.at = at
        what = "is a primitive" if isinstance(key[0], Ruled) else "calls itself"
        if _gives_back_arguments(program):
            raise self.refuse(f"{source.name} {what} and returns an array that it was given", "a copy of it")
        for f in lowered.reached:
            self.reached[f] = None
        program.name, program.effects = name, procedure.effects
        program.taken |= {name}
        procedure.program = program

    def check_arguments(self, procedure: Procedure, args: tuple[Operand, ...]) -> None:
        """Note what is written into; that must not be another argument as well."""
        for i in procedure.effects:
            self.note_write(args[i])
            if any(self.is_array_name(a) and self.root(a) == self.root(args[i]) for a in args[:i] + args[i + 1 :]):
                raise self.refuse(
                    f"{procedure.source.name} calls itself, and writes into an array that is two of its arguments",
                    "a copy for one of them",
                )


def _gives_back_arguments(program: Program) -> bool:
    parents = {s.dst: s.array for s in walk(program.body) if isinstance(s, View)}

    def root(name: str) -> str:
        while name in parents:
            name = parents[name]
        return name

    returned = [v for s in walk(program.body) if isinstance(s, Return) for v in s.values]
    return any(root(v) in program.params for v in returned if program.is_array(v))
