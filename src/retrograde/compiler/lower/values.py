"""What an expression can be while it is lowered.

A scalar is an operand: a name (str) or a number. An array in memory is a name too; the program's table of types tells
them apart. A tuple is a tuple of values. The rest are the classes below.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeGuard

from retrograde.compiler.known import Constant
from retrograde.compiler.source import At, Source
from retrograde.compiler.types import Operand, Type

if TYPE_CHECKING:
    from retrograde.compiler.lower.frame import Frame


@dataclass(frozen=True, slots=True)
class InCell:
    """A scalar that has to be read from its cell when it is used."""

    cell: str


@dataclass(frozen=True, slots=True)
class Stale:
    """A name whose array has been bound anew behind its back."""

    owner: str
    at: At | None


@dataclass(frozen=True, slots=True)
class PerhapsBound:
    """The array of a name that is bound in a loop alone, and the cell that says whether the loop ever ran."""

    array: str
    flag: str


@dataclass(frozen=True, slots=True)
class Range:
    """`range(low, high, step)`, or `prange`."""

    low: Operand
    high: Operand
    step: Operand
    parallel: bool = False


@dataclass(frozen=True, slots=True)
class Enumerated:
    """`enumerate(items, start)`."""

    items: Any
    start: Operand


@dataclass(frozen=True, slots=True)
class Zipped:
    """`zip(*items)`."""

    items: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Places:
    """`np.ndindex(*shape)`."""

    shape: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Lazy:
    """An array that is not in memory: its elements are computed where they are used.

    Attributes:
        shape: one operand an axis.
        element: `element(index)` emits what computes one element.
        type: the type of an element.
        reads: the arrays in memory that it looks at.
        is_cheap: whether computing an element twice costs less than keeping it.
        part_of: the complex array of which NumPy makes a view here: z.real.
        field: "real" or "imag" then.
    """

    shape: tuple[Operand, ...]
    element: Callable[[tuple[Operand, ...]], Operand]
    type: Type
    reads: frozenset[str] = field(default=frozenset())
    is_cheap: bool = True
    part_of: str = ""
    field: str = ""


def is_field(value: Any) -> TypeGuard[Lazy]:
    """Whether a value is the real or imaginary part of a complex array in memory."""
    return isinstance(value, Lazy) and bool(value.part_of)


@dataclass(frozen=True, slots=True)
class Bound:
    """A method of an array or a complex number: `x.sum`, `z.conjugate`."""

    array: Any
    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Closure:
    """A function that is defined inside of another one.

    Attributes:
        source: its own `def` or lambda.
        frame: the function in which it was defined, whose names it sees.
        defaults: the values of its defaults, by the names of its parameters.
    """

    source: Source
    frame: Frame
    defaults: dict[str, Any]


# What is no number, array or tuple, and is known when the function is compiled.
Object = Constant | Bound | Range | Enumerated | Zipped | Places | Closure

NONE = Constant(None)
ELLIPSIS = Constant(...)
