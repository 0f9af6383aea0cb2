"""The form that every pass reads and writes: structured statements whose operands are names or literals.

Three kinds of storage:

temps     scalars that are defined by one statement; a name always means the value of its last execution
cells     scalars that change: `Get`, `Set` and `Add` (an `Add` needs no old value and no order)
buffers   arrays; a name always means the same memory, and a `View` is another name for a part of it

An operand is a name (a str) or a number. A derivative of a program of this form is a program of this form.
Every statement knows the place in the user's source that it comes from.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

from retrograde.compiler.source import At
from retrograde.compiler.types import Operand


@dataclass(frozen=True, slots=True)
class Text:
    """A text as an argument of a `Whole`."""

    value: str


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
