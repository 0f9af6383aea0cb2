"""Reads by index: `getitem`, its adjoint `scatter`, and NumPy's gathers, which are written with them.

`getitem(x, key)` and `scatter(values, key, shape)` are functions of our own, because what a subscript does has no name
in NumPy. Each is the other's adjoint, so a derivative of any order of either is made of the two.
"""

from __future__ import annotations

import math
from typing import Any

from numpy import empty, zeros
from numpy.lib.array_utils import normalize_axis_index

from retrograde.originals import np
from retrograde.rules.dispatching import dispatched
from retrograde.rules.points import call, complex_, real
from retrograde.rules.products import unbroadcast
from retrograde.rules.table import Like, linear, no_gradient


@dispatched
def getitem(x: Any, key: Any) -> Any:
    """`x[key]`, with a key of any kind that NumPy knows."""
    return x[key]


@dispatched
def scatter(values: Any, key: Any, shape: tuple[int, ...]) -> Any:
    """Zeros of `shape` with `values` added at `key`, as often as the key names a place."""
    if type(key) is tuple and len(key) == 1 and type(key[0]) is np.ndarray:
        (key,) = key
    if len(shape) == 1 and type(key) is np.ndarray and key.dtype.kind == "i" and _is_counted(values, key):
        return np.bincount(key.reshape(-1), values.reshape(-1), shape[0])
    dtype = values.dtype if type(values) is np.ndarray else np.result_type(values)
    if type(values) is np.ndarray and values.size >= _LARGE and math.prod(shape) < 2 * values.size:
        ranges = _ranges(key, shape)
        if ranges is not None:
            return _bordered(values, ranges, shape)
    z = zeros(shape, dtype)
    if may_repeat(key):
        add_at(z, key, values)
    else:
        z[key] = values
    return z


_LARGE = 2**15  # elements


def _ranges(key: Any, shape: tuple[int, ...]) -> list[tuple[int, int]] | None:
    """From where to where a key of slices reaches along each axis; None for any other key."""
    key = key if type(key) is tuple else (key,)
    if len(key) > len(shape):
        return None
    ranges = []
    for entry, n in zip(key, shape, strict=False):
        if type(entry) is not slice:
            return None
        start, stop, step = entry.indices(n)
        if step != 1:
            return None
        ranges.append((start, max(start, stop)))
    return ranges


def _bordered(values: Any, ranges: list[tuple[int, int]], shape: tuple[int, ...]) -> Any:
    """An array with `values` inside of the ranges and zeros around them, without zeros that are written over."""
    z = empty(shape, values.dtype)
    z[tuple([slice(start, stop) for start, stop in ranges])] = values
    for axis, (start, stop) in enumerate(ranges):
        before = (slice(None),) * axis
        if start:
            z[(*before, slice(start))] = 0
        if stop < shape[axis]:
            z[(*before, slice(stop, None))] = 0
    return z


def summed_at(values: Any, index: Any, size: int) -> Any:
    """A vector of zeros with `values` added at `index`, by the quickest way there is for their dtype."""
    values, index = np.ravel(values), np.ravel(index)
    dtype = np.result_type(values)
    if dtype.kind == "c" or dtype.itemsize > 8 or not values.size:  # (of no values NumPy counts integers)
        return scatter(values, index, (size,))
    return np.bincount(index, values, size)


def _is_counted(values: Any, places: np.ndarray[Any, Any]) -> bool:
    """Whether `np.bincount` adds these values: twice as fast as `np.add.at`, but not at places from the end."""
    if type(values) is not np.ndarray or values.dtype != np.float64 or values.shape != places.shape:
        return False
    return bool(places.size) and int(places.min()) >= 0


def add_at(z: np.ndarray[Any, Any], key: Any, values: Any) -> None:
    """`z[key] += values` in place, where a place that the key names twice receives both.

    `np.add.at` is as quick as a plain assignment for an array of one dimension and several times slower for any other,
    so the key is flattened where the flat positions cost no more than the values themselves.
    """
    if not may_repeat(key):
        z[key] += values
        return
    if z.ndim > 1 and z.flags.c_contiguous:
        places = _flat_places(z, key, np.size(values))
        if places is not None:
            np.add.at(z.reshape(-1), places.reshape(-1), np.broadcast_to(values, places.shape).reshape(-1))
            return
    np.add.at(z, key, values)


def may_repeat(key: Any) -> bool:
    """Whether the key may name a place twice: slices and integers cannot, and nor can masks."""
    if type(key) is slice or (type(key) is tuple and _SLICES.issuperset(map(type, key))):
        return False
    if type(key) is not tuple:
        return not _is_distinct(key)
    return not all(map(_is_distinct, key))


_SLICES = frozenset({int, slice})


def _is_distinct(entry: Any) -> bool:
    if entry is None or entry is Ellipsis or isinstance(entry, (int, slice, np.integer, np.bool_)):
        return True
    return isinstance(entry, np.ndarray) and (entry.dtype == bool or entry.ndim == 0)


def _flat_places(z: np.ndarray[Any, Any], key: Any, count: int) -> np.ndarray[Any, Any] | None:
    """The positions in the flattened `z` that the key names, or None where finding them costs more than it saves."""
    entries = key if isinstance(key, tuple) else (key,)
    if len(entries) == z.ndim and all(isinstance(entry, np.ndarray) and entry.dtype != bool for entry in entries):
        # In range, as the forward read has shown; "wrap" is for the negative ones.
        return np.asarray(np.ravel_multi_index(entries, z.shape, mode="wrap"))
    if z.size <= 8 * count:
        return np.asarray(np.arange(z.size).reshape(z.shape)[key])
    return None


def getitem_adjoint(y_bar: Any, x: Like, key: Any) -> Any:
    return scatter(y_bar, key, x.shape)


def scatter_adjoint(y_bar: Any, values: Like, key: Any, shape: tuple[int, ...]) -> Any:
    return unbroadcast(y_bar[key], values.shape)


@dispatched
def placed(x: Any, key: Any, value: Any) -> Any:
    """A copy of `x` with `value` at `key`: what `x[key] = value` leaves."""
    z = np.array(x, np.result_type(x))
    z[key] = value
    return z


def over_rows(mask: Any, ndim: int) -> Any:
    """A mask of the first axes, so that it broadcasts against an array of `ndim` dimensions."""
    return np.reshape(mask, (*np.shape(mask), *(1,) * (ndim - np.ndim(mask))))


def placed_adjoint_x(y_bar: Any, x: Like, key: Any, value: Like) -> Any:
    return placed(y_bar, key, np.zeros((), y_bar.dtype))


def placed_adjoint_value(y_bar: Any, x: Like, key: Any, value: Like) -> Any:
    """Of values that the key puts in one place, only the last has stayed; a number goes to all places of a mask."""
    if not value.shape and getattr(key, "dtype", np.dtype(int)).kind == "b":
        return np.sum(np.where(over_rows(key, x.ndim), y_bar, 0.0))
    bar = y_bar[key]
    order = np.arange(bar.size).reshape(bar.shape)
    stayed = placed(np.full(x.shape, -1), key, order)[key] == order
    return unbroadcast(np.where(stayed, bar, 0.0), value.shape)


linear(
    getitem,
    getitem_adjoint,
    at=[
        call(real(-1, 1, 3), 1),
        call(real(-1, 1, 3), -1),
        call(real(-1, 1), ()),
        call(real(-1, 1, 3, 4), (slice(None, None, -2), slice(1, 3))),
        call(real(-1, 1, 3, 4), (Ellipsis, None, 2)),
        call(complex_(-1, 1, 3, 4), (1, -2)),
        call(complex_(-1, 1, 3, 4), [2, 0, 2]),
        call(real(-1, 1, 5), np.array([[4, 0], [0, -1]])),
        call(real(-1, 1, 3, 4), np.array([True, False, True])),
        call(real(-1, 1, 2, 2), np.array([[True, False], [True, True]])),
        call(real(-1, 1, 2), True),
        call(real(-1, 1, 3, 4), (np.array([0, 0, 2]), np.array([1, 1, -1]))),
        call(real(-1, 1, 3, 4), (slice(1, None), np.array([3, 0, 3]))),
        call(real(-1, 1, 2, 3, 2), (np.array([0, 0]), slice(None), np.array([1, 1]))),
        call(real(-1, 1, 2, 3), (np.array([True, False]), np.array([1, 1, 0]))),
        call(real(-1, 1, 3, 2), np.array(1)),
        call(real(-1, 1, 3), np.array([], int)),
        call(real(-1, 1, 3), slice(2, 2)),
    ],
)
linear(
    scatter,
    scatter_adjoint,
    at=[
        call(real(-1, 1), 1, (3,)),
        call(real(-1, 1, 2, 2), (slice(None, None, 2), slice(1, 3)), (3, 4)),
        call(real(-1, 1, 4), np.array([0, 2, 2, -1]), (3,)),
        call(complex_(-1, 1, 3, 2), np.array([1, 1, 0]), (2, 2)),
        call(real(-1, 1, 2), np.array([1, 1, 0]), (2, 2)),
        call(real(-1, 1, 2), np.array([True, False, True]), (3,)),
        call(real(-1, 1), slice(None), (3,)),
        call(real(-1, 1, 3), (np.array([0, 1, 0]), np.array([1, -1, 1])), (2, 2)),
        call(real(-1, 1, 2, 3), (slice(None), np.array([4, 0, 4])), (2, 5)),
    ],
)


linear(
    placed,
    placed_adjoint_x,
    placed_adjoint_value,
    args=(0, 2),
    at=[
        call(real(-1, 1, 3, 4), (slice(None), np.array([0, 2])), real(-1, 1, 3, 2)),
        call(real(-1, 1, 3), np.array([1, 1, 0]), real(-1, 1, 3)),
        call(complex_(-1, 1, 3), 1, complex_(-1, 1)),
        call(real(-1, 1, 2, 3), np.array([True, False]), real(-1, 1)),
    ],
)


def along(a: Like, axis: int | None) -> tuple[tuple[int, ...], int]:
    """The shape and the axis that a function along one axis goes by: without an axis, or of a number, those of the
    flattened array."""
    return ((a.size,), 0) if axis is None or not a.shape else (a.shape, axis % a.ndim)


def take_body(a: Any, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> Any:
    """`np.take` by an index, for positions that NumPy would make an array of."""
    if axis is None or not np.ndim(a):
        # NumPy lets a number be read along the axis that it does not have.
        axis = 0 if axis is None else normalize_axis_index(axis, 1)
        a = np.ravel(a)
    axis = normalize_axis_index(axis, np.ndim(a))
    n = np.shape(a)[axis]
    if indices.dtype.kind == "b":
        indices = indices.astype(np.intp)
    if mode == "wrap":
        indices = np.remainder(indices, n)
    elif mode == "clip":
        indices = np.minimum(np.maximum(indices, 0), n - 1)
    return getitem(a, (*(slice(None),) * axis, indices))


def take_adjoint(y_bar: Any, a: Like, indices: Any, axis: int | None = None, *, mode: str = "raise") -> Any:
    """Take is `a[:, …, indices]`; with `axis=None`, of the flattened array."""
    shape, axis = along(a, axis)
    places = np.asarray(indices, np.intp)
    if mode == "wrap":
        places = places % shape[axis]
    elif mode == "clip":
        places = np.clip(places, 0, shape[axis] - 1)
    return np.reshape(scatter(y_bar, (slice(None),) * axis + (places,), shape), a.shape)


linear(
    np.take,
    take_adjoint,
    at=[
        call(real(-1, 1, 5), [0, 2, 2, -1]),
        call(real(-1, 1, 2, 3), np.array([[5, 0], [1, 1]])),
        call(real(-1, 1, 2, 3), 1, axis=1),
        call(complex_(-1, 1, 2, 3), [1, 1, 0], axis=-1),
        call(real(-1, 1, 2, 3, 2), np.array([[0, 2], [2, 1]]), 1),
        call(real(-1, 1, 3), [-4, 4, 2], mode="wrap"),
        call(real(-1, 1, 3, 2), [-4, 4, 2], 0, mode="clip"),
        call(real(-1, 1), [0, 0]),
        call(real(-1, 1, 2, 3), [], axis=0),
    ],
)


def take_along_axis_adjoint(y_bar: Any, arr: Like, indices: Any, axis: int | None = -1) -> Any:
    """Every other axis of the key is an open range, against which `indices` broadcasts."""
    if axis is None:
        return np.reshape(scatter(y_bar, (indices,), (arr.size,)), arr.shape)
    axis %= arr.ndim
    ranges: Any = np.ix_(*map(np.arange, arr.shape))
    return scatter(y_bar, (*ranges[:axis], indices, *ranges[axis + 1 :]), arr.shape)


linear(
    np.take_along_axis,
    take_along_axis_adjoint,
    at=[
        call(real(-1, 1, 2, 3), np.array([[2, 0, 1], [1, 1, -1]]), axis=1),
        call(complex_(-1, 1, 2, 3), np.array([[1, 0, 1]]), axis=0),
        call(real(-1, 1, 2, 3), np.array([[0, 0]]), axis=-1),
        call(real(-1, 1, 1, 3), np.array([[0, 2], [1, 1]]), axis=1),
        call(real(-1, 1, 2, 3), np.array([5, 0, 0]), axis=None),
    ],
)

no_gradient(
    np.nonzero,
    np.flatnonzero,
    np.argwhere,
    np.ix_,
    np.unravel_index,
    np.ravel_multi_index,
    np.diag_indices_from,
    np.tril_indices_from,
    np.triu_indices_from,
    why="its output is integer positions",
)
