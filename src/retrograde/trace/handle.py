"""The traced value itself: three slots. What it can do is in the modules beside this one.

operators.py    Python's operators, generated from the table of rules
attributes.py   ndarray's attributes and methods
conversions.py  leaving the traced world: allowed, or refused with the way out
protocols.py    NumPy's ufunc and function protocols
"""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING, Any

from numpy import generic, ndarray

from retrograde.originals import np
from retrograde.trace.attributes import Attributes
from retrograde.trace.conversions import Conversions

if TYPE_CHECKING:
    from retrograde.trace.level import Level


class Traced(Attributes, Conversions):
    """A value of the program together with what one transform knows of it.

    Attributes:
        primal: the value: a number, an array, or a traced value of a lower level.
        link: in reverse mode the node that made it, in forward mode its tangent.
        level: the transform that it belongs to.
    """

    __slots__ = ("__weakref__", "level", "link", "primal")

    primal: Any
    link: Any
    level: Level

    # NumPy's operators ask us first.
    __array_priority__ = 1000

    @property
    def memory(self) -> Any:
        """The primal, to be looked at and not to be kept: for a view, without a record that it was read."""
        return self.primal

    @property
    def telling(self) -> Any:
        """What shows whether there is a NaN in it: of a value that is zero elsewhere for good, the rest."""
        return self.primal

    def reading(self) -> Traced:
        """The present value, as a handle of its own that later writes do not reach."""
        return make(self.primal, self.link, self.level)

    def lent(self) -> Any:
        """The plain value of a constant, for others to keep: they see later writes, as those of NumPy do."""
        if type(self.primal) is not ndarray:
            return self.primal
        from retrograde.trace.memory import lend  # which needs this class

        return lend(self)

    def owned(self) -> Traced:
        """The same, without a hold on the memory of the array that a view is a part of."""
        return self.reading()

    @property  # type: ignore[misc]
    def __class__(self) -> type:  # type: ignore[override]
        """What `isinstance` sees: a traced value takes the branches of its primal; `type` tells the truth."""
        value = self.without_derivatives()
        # A batched value answers for itself.
        kind: type = value.__class__
        return kind

    def without_derivatives(self) -> Any:
        """The plain value; a batched one stays batched."""
        return plain(self)


# From NumPy 2.5 on, an array matches `[first, *rest]`. The flag of its type says so; an abstract class that has it
# hands it on to what is registered, and for `isinstance` that is no Sequence.
_SEQUENCE = 1 << 5
if np.ndarray.__flags__ & _SEQUENCE:
    abc.ABCMeta("_Matching", (), {"__abc_tpflags__": _SEQUENCE}).register(Traced)


HANDLES: set[type] = {Traced}
"""Every class of traced values; `type(x) in HANDLES` is the quickest question there is."""
SIMPLE: set[type] = {Traced}
"""Those whose values always belong to a level of derivatives or are constants: `primal` looks like the value itself."""
MAPPED: set[type] = set()
"""Those whose values may belong to a batch: then `primal` has one axis more than the value itself (see mapped.py)."""
VIEWS: set[type] = set()
"""Those that look into the memory of another value."""


def make(primal: Any, link: Any, level: Level) -> Traced:
    """A traced value."""
    x = Traced()
    x.primal = primal
    x.link = link
    x.level = level
    return x


def is_traced(x: Any) -> bool:
    """Whether `x` is a handle (containers are not looked into)."""
    return type(x) in HANDLES


def data(x: Any) -> Any:
    """The plain value of a traced value, whatever its nesting; anything else is returned as it is.

    An array is returned as a read-only view: graphs that were recorded earlier still need its contents. A batched value
    stays batched, with plain numbers in it.
    """
    if type(x) not in HANDLES:
        return x
    x = x.lent() if x.level.depth < 0 else plain(x)
    if isinstance(x, np.ndarray) and type(x) not in HANDLES:
        x = x.view()
        x.flags.writeable = False
    return x


def plain(x: Any) -> Any:
    """The value without the derivatives that levels know of it; a batched value stays batched."""
    while type(x) in SIMPLE:
        x = x.primal if type(x) is Traced else x.memory
    return x.without_derivatives() if type(x) in MAPPED else x


def example_of(x: Any) -> Any:
    """The plain value as it lies in memory; of a batched one that of an example, none of whose numbers may matter."""
    x = plain(x)
    return x.example() if type(x) in MAPPED else x


def contents(x: Any) -> Any:
    """The bare numbers of a value, those of all examples of a batch at once."""
    while type(x) in HANDLES:
        x = x.primal if type(x) is Traced else x.memory
    return x


def shape_of(x: Any) -> tuple[int, ...]:
    """The shape; empty for numbers."""
    return () if type(x) is float else getattr(x, "shape", ())


def like_of(x: Any) -> tuple[tuple[int, ...], Any]:
    """The shape and the dtype of a cotangent for `x`: its own, or float64 for integers."""
    kind = type(x)
    if kind in HANDLES:
        x = plain(x)
        kind = type(x)
    if kind is ndarray or isinstance(x, generic) or kind in HANDLES:
        dtype = x.dtype
        return x.shape, dtype if dtype.kind in "fc" else FLOAT64
    return (), COMPLEX128 if kind is complex else FLOAT64


FLOAT64 = np.dtype(np.float64)
COMPLEX128 = np.dtype(np.complex128)

__all__ = [
    "HANDLES",
    "MAPPED",
    "SIMPLE",
    "VIEWS",
    "Traced",
    "contents",
    "data",
    "is_traced",
    "like_of",
    "make",
    "plain",
    "shape_of",
]
