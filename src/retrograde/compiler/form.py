"""The form that every pass reads and writes: structured statements whose operands are names or literals.

Three kinds of storage:

temps     scalars that are defined by one statement; a name always means the value of its last execution
cells     scalars that change: `Get`, `Set` and `Add` (an `Add` needs no old value and no order)
buffers   arrays; a name always means the same memory, and a `View` is another name for a part of it

An operand is a name (a str) or a number. A derivative of a program of this form is a program of this form.
Every statement knows the place in the user's source that it comes from.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, NamedTuple

import numpy as np

BROADCAST = "operands could not be broadcast together"
SHORT = "a slice reaches beyond the end of its axis"
UNEQUAL = "sizes differ that were taken to be equal"
"""What a program says at run time where an axis of length 1 would have to stretch."""

Operand = Any  # str | int | float | bool | complex


class At(NamedTuple):
    """A place in the user's source."""

    file: str
    line: int
    column: int = 0
    end: int = 0
    text: str = ""


@functools.cache
def _kind(dtype: str) -> str:
    return np.dtype(dtype).kind


class Type(NamedTuple):
    """The type of a name: a dtype by NumPy's name, and for arrays the number of axes."""

    dtype: str
    ndim: int = -1

    @property
    def is_array(self) -> bool:
        return self.ndim >= 0

    @property
    def kind(self) -> str:
        """NumPy's letter: f, c, i, u or b."""
        return _kind(self.dtype)

    @property
    def is_inexact(self) -> bool:
        """Whether a value of this type can carry a derivative."""
        return self.kind in "fc"

    @property
    def is_complex(self) -> bool:
        return self.kind == "c"

    @property
    def element(self) -> Type:
        return Type(self.dtype)

    def __str__(self) -> str:
        return f"{self.dtype} array of {self.ndim} axes" if self.is_array else self.dtype


FLOAT = Type("float64")
INT = Type("int64")
BOOL = Type("bool")


def zero_of(type: Type) -> Operand:
    """The literal zero of a type, of which a cell or temp of the type starts."""
    return {"f": 0.0, "c": 0j, "b": False}.get(type.kind, 0)


def type_of_number(x: Any) -> Type:
    """The type of a literal, as numba types it."""
    if isinstance(x, bool | np.bool_):
        return BOOL
    if isinstance(x, np.generic):
        return Type(x.dtype.name)
    if isinstance(x, int):
        return INT
    return FLOAT if isinstance(x, float) else Type("complex128")


@dataclass(frozen=True, slots=True)
class Text:
    """A text as an argument of a `Whole`."""

    value: str


class Known(NamedTuple):
    """What is known of the shapes of the arguments of a function, beside their types.

    Attributes:
        ones: axes of parameters, as (name of the leaf, axis), of length 1.
        clips: whether slices with constant bounds may reach beyond the end of an axis.
        differs: whether sizes that the program compares somewhere may differ at its start.
    """

    ones: frozenset[tuple[str, int]] = frozenset()
    clips: bool = False
    differs: bool = False


NOTHING = Known()


class Slice(NamedTuple):
    """A slice inside the index of a `View`; each bound an operand or None."""

    low: Operand = None
    high: Operand = None
    step: Operand = None


class Reshaped(NamedTuple):
    """The one item in the index of a `View` of all elements in another shape."""

    shape: tuple[Operand, ...]


class Abreast(NamedTuple):
    """What the iterations of a loop need for running side by side (see optimise/abreast.py).

    Attributes:
        sums: the cells that they add to, and read not.
        added: the arrays of which that holds.
        own: the arrays of which each has its own.
        zero: those of them that hold zeros where an iteration begins.
    """

    sums: frozenset[str]
    added: frozenset[str]
    own: frozenset[str]
    zero: frozenset[str]


Index = tuple[Any, ...]  # operands; in a View also Slice and None (a new axis), or one Reshaped


@dataclass(slots=True, eq=False)
class Statement:
    """What all statements share. The class variables name the fields that define, use, and hold other statements."""

    defines: ClassVar[tuple[str, ...]] = ()
    reads: ClassVar[tuple[str, ...]] = ()
    blocks: ClassVar[tuple[str, ...]] = ()

    at: At | None = field(default=None, kw_only=True)


Block = list[Statement]


@dataclass(slots=True, eq=False)
class Op(Statement):
    """`dst = fn(*args)`: a pure operation on scalars, of the table in ops.py."""

    defines: ClassVar = ("dst",)
    reads: ClassVar = ("args",)
    dst: str
    fn: str
    args: tuple[Operand, ...]


@dataclass(slots=True, eq=False)
class Load(Statement):
    """`dst = array[index]`."""

    defines: ClassVar = ("dst",)
    reads: ClassVar = ("array", "index")
    dst: str
    array: str
    index: Index


@dataclass(slots=True, eq=False)
class Store(Statement):
    """`array[index] = value`."""

    reads: ClassVar = ("array", "index", "value")
    array: str
    index: Index
    value: Operand


@dataclass(slots=True, eq=False)
class Increase(Statement):
    """`array[index] += value`."""

    reads: ClassVar = ("array", "index", "value")
    array: str
    index: Index
    value: Operand


@dataclass(slots=True, eq=False)
class View(Statement):
    """`dst = array[index]`, another name for a part of the array; `transposed` reverses the axes instead."""

    defines: ClassVar = ("dst",)
    reads: ClassVar = ("array", "index")
    dst: str
    array: str
    index: Index
    transposed: bool = False


@dataclass(slots=True, eq=False)
class Alloc(Statement):
    """`dst = np.empty(shape)`, or zeros."""

    defines: ClassVar = ("dst",)
    reads: ClassVar = ("shape",)
    dst: str
    shape: tuple[Operand, ...]
    zero: bool


@dataclass(slots=True, eq=False)
class Copy(Statement):
    """`dst = array.copy()`."""

    defines: ClassVar = ("dst",)
    reads: ClassVar = ("array",)
    dst: str
    array: str


@dataclass(slots=True, eq=False)
class Fill(Statement):
    """`array[...] = 0`."""

    reads: ClassVar = ("array",)
    array: str


@dataclass(slots=True, eq=False)
class Get(Statement):
    """`dst = cell`."""

    defines: ClassVar = ("dst",)
    dst: str
    cell: str


@dataclass(slots=True, eq=False)
class Set(Statement):
    """`cell = value`."""

    reads: ClassVar = ("value",)
    cell: str
    value: Operand


@dataclass(slots=True, eq=False)
class Add(Statement):
    """`cell += value`."""

    reads: ClassVar = ("value",)
    cell: str
    value: Operand


@dataclass(slots=True, eq=False)
class For(Statement):
    """`for var in range(low, high)`, or from the last to the first where `down`.

    `parallel`: the user says that the iterations may run at the same time; optimise/parallel.py finds out how.
    `again`: the reverse sweep is to run each iteration again, from what it found, in place of a tape of all.
    `abreast`: several iterations are to run at once, in the lanes of vectors; what they need for that.
    `share_of`: where it is one thread's share of a loop, (low, high) of the whole; the threads are the loop around it.
    """

    defines: ClassVar = ("var",)
    reads: ClassVar = ("low", "high", "share_of")
    blocks: ClassVar = ("body",)
    var: str
    low: Operand
    high: Operand
    body: Block
    down: bool = False
    parallel: bool = False
    again: bool = False
    abreast: Abreast | None = None
    share_of: tuple[Operand, ...] = ()


@dataclass(slots=True, eq=False)
class While(Statement):
    """`test` computes `cond`; as long as it is true, the body runs and the test again."""

    reads: ClassVar = ("cond",)
    blocks: ClassVar = ("test", "body")
    test: Block
    cond: Operand
    body: Block


@dataclass(slots=True, eq=False)
class If(Statement):
    """`shortcut` says that without the test the result were the same: the body adds multiples of zero otherwise.

    That holds for the value and not for its derivative, so the test has no place in a tangent.
    """

    reads: ClassVar = ("cond",)
    blocks: ClassVar = ("then", "orelse")
    cond: Operand
    then: Block
    orelse: Block
    shortcut: bool = False


@dataclass(slots=True, eq=False)
class Whole(Statement):
    """`outs = fn(*args)`: a function of whole arrays, of the table in whole.py; it makes new arrays and scalars."""

    defines: ClassVar = ("outs",)
    reads: ClassVar = ("args",)
    outs: tuple[str, ...]
    fn: str
    args: tuple[Operand, ...]


@dataclass(slots=True, eq=False)
class Call(Statement):
    """`dsts = fn(*args)`: a call of another program (a recursive function, or a derivative of one)."""

    defines: ClassVar = ("dsts",)
    reads: ClassVar = ("args",)
    dsts: tuple[str, ...]
    fn: str
    args: tuple[Operand, ...]


@dataclass(slots=True, eq=False)
class Swap(Statement):
    """`a, b, … = b, a, …`: buffers of one shape change their contents by changing their names."""

    reads: ClassVar = ("targets", "sources")
    targets: tuple[str, ...]
    sources: tuple[str, ...]


@dataclass(slots=True, eq=False)
class Raise(Statement):
    """`raise error(message)`."""

    error: str
    message: str


@dataclass(slots=True, eq=False)
class Stack(Statement):
    """A tape of scalars whose length is not known beforehand."""

    defines: ClassVar = ("stack",)
    stack: str


@dataclass(slots=True, eq=False)
class Push(Statement):
    """Put a scalar, or all elements of an array, onto a stack."""

    reads: ClassVar = ("stack", "value")
    stack: str
    value: Operand


@dataclass(slots=True, eq=False)
class Pop(Statement):
    """`dst = ` the scalar that was pushed last."""

    defines: ClassVar = ("dst",)
    reads: ClassVar = ("stack",)
    dst: str
    stack: str


@dataclass(slots=True, eq=False)
class PopArray(Statement):
    """`dst = ` the array that was pushed last, of the given shape."""

    defines: ClassVar = ("dst",)
    reads: ClassVar = ("stack", "shape")
    dst: str
    stack: str
    shape: tuple[Operand, ...]


@dataclass(slots=True, eq=False)
class Return(Statement):
    reads: ClassVar = ("values",)
    values: tuple[Operand, ...]


# --- traversal ---------------------------------------------------------------------------------------------------


def names_in(x: Any) -> list[str]:
    """The names in an operand, an index or a tuple of these."""
    found: list[str] = []
    _add_names(x, found)
    return found


def _add_names(x: Any, found: list[str]) -> None:
    if type(x) is str:
        found.append(x)
    elif isinstance(x, tuple):
        for y in x:
            if type(y) is str:
                found.append(y)
            elif isinstance(y, tuple):
                _add_names(y, found)


def uses(s: Statement) -> list[str]:
    return _names_of(s, s.reads)


def defs(s: Statement) -> list[str]:
    if s.defines == ("dst",):  # as of most that define anything
        return [s.dst]  # type: ignore[attr-defined]
    return _names_of(s, s.defines) if s.defines else []


def _names_of(s: Statement, fields: tuple[str, ...]) -> list[str]:
    found: list[str] = []
    for f in fields:
        x = getattr(s, f)
        if type(x) is str:
            found.append(x)
        elif type(x) is tuple:
            for y in x:
                if type(y) is str:
                    found.append(y)
                elif isinstance(y, tuple):
                    _add_names(y, found)
    return found


def blocks_of(s: Statement) -> list[Block]:
    return [getattr(s, f) for f in s.blocks]


def walk(block: Iterable[Statement]) -> list[Statement]:
    """All statements in program order, the nested ones behind the one that holds them."""
    found: list[Statement] = []
    _add_nested(block, found)
    return found


def _add_nested(block: Iterable[Statement], found: list[Statement]) -> None:
    for s in block:
        found.append(s)
        for f in s.blocks:
            _add_nested(getattr(s, f), found)


def map_names(x: Any, function: Callable[[str], Operand]) -> Any:
    """An operand, an index or a tuple with every name replaced."""
    if type(x) is str:
        return function(x)
    if not isinstance(x, tuple):
        return x
    made = [function(y) if type(y) is str else map_names(y, function) if isinstance(y, tuple) else y for y in x]
    return tuple(made) if type(x) is tuple else type(x)(*made)


def same(name: str) -> str:
    return name


def clone(
    block: Block,
    use: Callable[[str], Operand] = same,
    define: Callable[[str], str] = same,
    cell: Callable[[str], str] = same,
) -> Block:
    """A copy of a block in which used names, defined names and cells are replaced."""
    copied: Block = []
    for s in block:
        kind: Any = type(s)
        made = object.__new__(kind)
        for f, role in _roles(kind):
            x = getattr(s, f)
            if role == "reads":
                x = x if use is same else map_names(x, use)
            elif role == "defines":
                x = x if define is same else map_names(x, define)
            elif role == "blocks":
                x = clone(x, use, define, cell)
            elif role == "cell":
                x = cell(x)
            setattr(made, f, x)
        copied.append(made)
    return copied


@functools.cache
def _roles(kind: Any) -> list[tuple[str, str]]:
    """The fields of a kind of statement, and what is in each."""
    roles = {f: role for role in ("reads", "defines", "blocks") for f in getattr(kind, role)}
    return [(f.name, roles.get(f.name, f.name)) for f in fields(kind)]


def substitute(block: Block, names: dict[str, Operand]) -> Block:
    return clone(block, lambda name: names.get(name, name)) if names else block


def free_names(block: Block) -> list[str]:
    """The names that a block uses and does not define, in the order of their first use."""
    defined = {name for s in walk(block) for name in defs(s)}
    return list(dict.fromkeys(name for s in walk(block) for name in uses(s) if name not in defined))


def place_of(block: Block, s: Statement) -> int:
    """Where a statement stands in a block."""
    return next(k for k, x in enumerate(block) if x is s)


def without(block: Block, gone: Container[int]) -> Block:
    """A block without some statements (their ids), nested ones as well."""
    kept = [s for s in block if id(s) not in gone]
    for s in kept:
        for f in s.blocks:
            setattr(s, f, without(getattr(s, f), gone))
    return kept


def is_number(x: Operand, number: int) -> bool:
    """Whether an operand is a literal with this value."""
    return type(x) in (int, float) and x == number


def cells_written(block: Iterable[Statement]) -> set[str]:
    return {s.cell for s in walk(block) if isinstance(s, Set | Add)}


_NUMBERED = re.compile(r"(_\d+)+$")


@functools.lru_cache(4096)
def stem(name: str) -> str:
    """A name without its number."""
    return _NUMBERED.sub("", name) or "t"


# --- programs ----------------------------------------------------------------------------------------------------


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
