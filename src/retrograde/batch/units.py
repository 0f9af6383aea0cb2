"""A batch of directions that are each along one element: one number an example, until somebody needs the arrays.

Jacobians start from unit directions. What elementwise functions make of those is zero but for one element again, and
the product of a matrix with such a vector is a column of the matrix, scaled: n numbers are multiplied where all arrays
have n², and n² where their product has n³. So a diagonal stays one as long as it can; whatever does not know of it asks
for the `primal`, and finds a batch like any other.

A zero outside of the diagonal stays zero, whatever it is multiplied with, as it does in every rule.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from retrograde.batch.layout import apart
from retrograde.originals import np
from retrograde.trace.handle import HANDLES, MAPPED, Traced, is_traced, plain, shape_of
from retrograde.trace.level import Level
from retrograde.trace.mapped import Mapped, hold


class _Entries(NamedTuple):
    """Example k is zero but for its element number `start` + k, in C order, which is `scale[k]`."""

    scale: Any
    start: int
    shape: tuple[int, ...]

    @property
    def stop(self) -> int:
        return self.start + int(shape_of(self.scale)[0])

    def spread(self) -> Any:
        """The arrays of all examples."""
        count = self.stop - self.start
        if is_traced(self.scale):
            on = np.eye(count, math.prod(self.shape), self.start, dtype=bool)
            return np.reshape(np.where(on, self.scale[:, None], 0.0), (count, *self.shape))
        raw = np.zeros((count, math.prod(self.shape)), self.scale.dtype)
        raw[np.arange(count), np.arange(self.start, self.stop)] = self.scale
        return raw.reshape((count, *self.shape))


# Where the common class keeps its primal; here it holds the entries until that is asked for.
_slot: Any = Traced.__dict__["primal"]


def _become_common(x: Diagonal, primal: Any) -> None:
    object.__dict__["__class__"].__set__(x, Mapped)
    x.primal = primal


class Diagonal(Mapped):
    """A value of a batch that is a diagonal. It becomes an ordinary one, in place, when its arrays are asked for."""

    __slots__ = ()

    @property
    def entries(self) -> _Entries:
        found: _Entries = _slot.__get__(self)
        return found

    @property
    def primal(self) -> Any:  # type: ignore[override, misc]
        found = self.entries
        if type(found) is _Entries:  # no other thread was here before
            _become_common(self, found.spread())
        return _slot.__get__(self)

    @primal.setter
    def primal(self, primal: Any) -> None:
        _become_common(self, primal)

    @property
    def telling(self) -> Any:
        return self.entries.scale

    @property  # type: ignore[misc]
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return self.entries.shape

    @property
    def dtype(self) -> Any:
        dtype: Any = self.entries.scale.dtype
        return dtype

    def is_array(self) -> bool:
        return True

    def example(self) -> Any:
        return np.empty(self.shape, self.dtype)

    def without_derivatives(self) -> Any:
        entries = self.entries
        below = plain(entries.scale)
        return self if below is entries.scale else diagonal(entries._replace(scale=below), self.level)

    def reading(self) -> Traced:
        return diagonal(self.entries, self.level)


for _kinds in (HANDLES, MAPPED):
    _kinds.add(Diagonal)


def diagonal(entries: _Entries, level: Level) -> Diagonal:
    x = Diagonal()
    _slot.__set__(x, entries)
    x.link = None
    x.level = level
    return x


def units(shape: tuple[int, ...], dtype: Any, start: int, stop: int, factor: complex, level: Level) -> Mapped:
    """The unit arrays of that shape from number `start` to `stop`, times a factor, as a batch."""
    entries = _Entries(np.full(stop - start, factor, dtype), start, shape)
    return diagonal(entries, level) if shape else hold(entries.spread(), level)


# --- what keeps a diagonal one, or finds its product at once ---------------------------------------------------------


def is_diagonal(x: Any, level: Level) -> bool:
    return type(x) is Diagonal and x.level is level


def computed(function: Callable[..., Any], args: tuple[Any, ...], level: Level) -> Any:
    """The result of a call with diagonals among its arguments, or None where their arrays are needed."""
    compute = _COMPUTED.get(function)
    return None if compute is None else compute(function, args, level)


def _one(function: Any, args: tuple[Any, ...], level: Level) -> Any:
    entries = args[0].entries
    return diagonal(entries._replace(scale=function(entries.scale)), level)


def _is_held(x: Any, level: Level) -> bool:
    return type(x) in MAPPED and x.level is level


def _scaled(function: Any, args: tuple[Any, ...], level: Level) -> Any:
    """A product with, or a quotient by, what is the same for all examples."""
    place = 0 if is_diagonal(args[0], level) else 1
    entries, other = args[place].entries, args[1 - place]
    if _is_held(other, level) or (place and function is np.divide):
        return None
    if shape_of(other) == entries.shape:
        other = np.reshape(other, -1)[entries.start : entries.stop]
    elif shape_of(other):
        return None
    scale = function(other, entries.scale) if place else function(entries.scale, other)
    return diagonal(entries._replace(scale=scale), level)


def _sum(function: Any, args: tuple[Any, ...], level: Level) -> Any:
    """The sum (or difference) of two diagonals, or of one and a batch of arrays."""
    x, y = args
    if is_diagonal(x, level) and is_diagonal(y, level):
        a, b = x.entries, y.entries
        if (a.start, a.stop, a.shape) != (b.start, b.stop, b.shape):
            return None
        return diagonal(a._replace(scale=function(a.scale, b.scale)), level)
    if function is not np.add:
        return None
    (entries, other) = (x.entries, y) if is_diagonal(x, level) else (y.entries, x)
    raw: Any = other.primal if _is_held(other, level) else None
    if type(raw) is not np.ndarray or is_traced(entries.scale):
        return None
    if raw.shape[1:] != entries.shape or raw.dtype != entries.scale.dtype:
        return None
    total = raw.copy()
    count = entries.stop - entries.start
    total.reshape((count, -1))[np.arange(count), np.arange(entries.start, entries.stop)] += entries.scale
    return hold(total, level)


def _product(function: Any, args: tuple[Any, ...], level: Level) -> Any:
    """A matrix times a vector of which one element counts, or such a vector times a matrix: a column or a row."""
    place = 0 if is_diagonal(args[0], level) else 1
    entries, matrix = args[place].entries, args[1 - place]
    if _is_held(matrix, level) or len(shape_of(matrix)) != 2:
        return None
    rows = np.transpose(matrix) if place else matrix
    if rows.shape[:1] != entries.shape:
        return None
    lines = rows[entries.start : entries.stop]
    if type(lines) is np.ndarray and not is_traced(entries.scale):
        return hold(np.multiply(lines, entries.scale[:, None], order="C"), level)
    return hold(apart(lines * entries.scale[:, None]), level)


_COMPUTED: dict[Any, Callable[..., Any]] = {
    np.negative: _one,
    np.positive: _one,
    np.conjugate: _one,
    np.multiply: _scaled,
    np.divide: _scaled,
    np.add: _sum,
    np.subtract: _sum,
    np.matmul: _product,
}
