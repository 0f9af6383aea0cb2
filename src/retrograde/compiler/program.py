"""A function in the form, with what is known of its names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from retrograde.compiler.form import Block, Call, Return
from retrograde.compiler.source import At
from retrograde.compiler.types import Operand, Type, type_of_number
from retrograde.compiler.walks import clone, names_in, stem, walk


class Note(NamedTuple):
    """What a pass decided.

    Attributes:
        kind: "active", "taped", "again" (computed again), "runs again" (a loop), or "one thread" (a parallel loop).
        name: of the value, of its tape, or of the loop's variable; or why it has one thread.
        at: the place in the user's source.
    """

    kind: str
    name: str
    at: At | None


class Program:
    """A function in the form.

    Attributes:
        name: what the emitted text calls it.
        params: the names of its parameters.
        body: its statements.
        types: the type of every temp, cell and buffer.
        dims: for each buffer the operands that are its shape.
        taken: names that no new name may have.
        notes: what derivative passes decided, for `explain()`.
        reached: the inputs of a derivative program from which a path leads to a result.
        procedures: the programs that it calls, by name; one table for it and all of them.
        zeros: arrays among the parameters that come in with zeros.
        filled: those of them that need none if their axes have certain lengths, as the program then writes each element
            before it reads it: for each axis an (integer,), an (integer parameter,) or the (array parameter, axis) of
            which it has the length.
        effects: as a procedure, the positions of the parameters that it writes into.
        adds: those of them that it only adds to.
        is_faithful: as the pullback of a procedure, whether it leaves its parameters as the procedure does.
        rule: as a procedure, the derivative that its user gave it (own_rules.py).
    """

    def __init__(self, name: str, params: list[str], taken: Iterable[str] = ()) -> None:
        self.name = name
        self.params = params
        self.body: Block = []
        self.types: dict[str, Type] = {}
        self.dims: dict[str, tuple[Operand, ...]] = {}
        self.taken: set[str] = set(taken)
        self.notes: list[Note] = []
        self.reached: frozenset[str] = frozenset()
        self.procedures: dict[str, Program] = {}
        self.effects: frozenset[int] = frozenset()
        self.zeros: frozenset[str] = frozenset()
        self.filled: dict[str, tuple[tuple[Any, ...], ...]] = {}
        self.adds: frozenset[int] = frozenset()
        self.is_faithful = True
        self.rule: Any = None
        self.sizes: set[str] = set()
        self._counts: dict[str, int] = {}

    def derived(self, name: str) -> Program:
        """A copy under another name, whose statements can be changed."""
        copy = Program(name, list(self.params), self.taken)
        copy.body = clone(self.body)
        copy.types = dict(self.types)
        copy.dims = dict(self.dims)
        copy.sizes = set(self.sizes)
        copy._counts = dict(self._counts)
        copy.procedures = dict(self.procedures)
        copy.effects = self.effects
        copy.zeros = self.zeros
        copy.adds = self.adds
        return copy

    def procedure(self, name: str, of: str, effects: frozenset[int]) -> Program:
        """A copy of a procedure under a new name, to be changed, in the same table."""
        made = self.procedures[of].derived(name)
        made.procedures = self.procedures
        made.effects = effects
        self.procedures[name] = made
        return made

    def with_called(self) -> list[Program]:
        """The program and the procedures that are called from it, and from these."""
        programs = [self]
        for p in programs:
            called = dict.fromkeys(s.fn for s in walk(p.body) if isinstance(s, Call))
            programs += [p.procedures[fn] for fn in called if p.procedures[fn] not in programs]
        return programs

    def result_types(self) -> list[Type]:
        """The types of the leaves of the result."""
        first = next((s for s in walk(self.body) if isinstance(s, Return)), None)
        return [self.types[v] for v in names_in(first.values)] if first else []

    def new(self, base: str, type: Type, dims: tuple[Operand, ...] | None = None) -> str:
        """A name that is not taken yet, made of the base."""
        plain = stem(base)
        name, number = plain, self._counts.get(plain, 0)
        while name in self.taken:
            number += 1
            name = f"{plain}_{number}"
        self._counts[plain] = number
        self.taken.add(name)
        self.types[name] = type
        if dims is not None:
            self.set_dims(name, dims)
        return name

    def companion(self, name: str, suffix: str) -> str:
        """A new name for what goes with a temp, cell or array: its tangent, or its cotangent, of the same size."""
        plain = name.lstrip("$")
        made = self.new(f"{plain}_{suffix}", self.types[plain])
        if plain in self.dims:
            self.dims[made] = self.dims[plain]
        return made

    def set_dims(self, name: str, dims: tuple[Operand, ...]) -> None:
        self.dims[name] = dims
        self.sizes.update(d for d in dims if isinstance(d, str))

    def is_size(self, operand: Operand) -> bool:
        """Whether an operand is known to be the length of an axis, and so not negative."""
        return operand in self.sizes if isinstance(operand, str) else operand >= 0

    def type_of(self, operand: Operand) -> Type:
        return self.types[operand] if isinstance(operand, str) else type_of_number(operand)

    def is_array(self, operand: Operand) -> bool:
        return isinstance(operand, str) and self.types[operand].is_array

    def is_active_type(self, operand: Operand) -> bool:
        return isinstance(operand, str) and self.types[operand].is_inexact
