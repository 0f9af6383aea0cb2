"""Sets of values: `np.unique` and the set functions.

Which values are in the result is decided on bare numbers; each of them is then read from a place that it came from,
the first one that has it. So the derivative is that of a read.
"""

from __future__ import annotations

from typing import Any

from retrograde.originals import np
from retrograde.rules.contractions import constant
from retrograde.rules.dispatching import dispatched
from retrograde.rules.numpy_indexing import summed_at
from retrograde.rules.points import call, complex_, distinct, real
from retrograde.rules.table import Like, composed, linear


@dispatched
def picked(x: Any, places: Any) -> Any:
    """The elements of `x`, flat, at places that its values have decided: in another run they may be others."""
    return np.take(x, places)


def picked_adjoint(y_bar: Any, x: Like, places: Any) -> Any:
    return np.reshape(summed_at(y_bar, places, x.size), x.shape)


linear(
    picked, picked_adjoint, at=[call(real(-1, 1, 2, 2), np.array([3, 0, 3])), call(complex_(-1, 1, 3), np.array([1]))]
)


def _read(numbers: Any, x: Any) -> Any:
    """The result of a set function, its values read from where they are in `x`; both may be large, one sort does."""
    flat = np.ravel(x)
    plain = constant(flat)
    if np.size(numbers) == 0:
        return flat[:0]
    order = np.argsort(plain, kind="stable")
    return picked(flat, order[np.searchsorted(plain[order], numbers)])


def _joined(ar1: Any, ar2: Any) -> Any:
    return np.concatenate((ar1, ar2), axis=None)


def unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: Any = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,
) -> Any:
    """Each value (with `axis`, each slice) is read from the first place that has it."""
    options: dict[str, Any] = {"axis": axis, "equal_nan": equal_nan}
    if not sorted:
        options["sorted"] = False  # NumPy 2.3
    if not (return_index or return_inverse or return_counts or sorted) and axis is None:
        return _read(np.unique(constant(ar), **options), ar)
    found = np.unique(constant(ar), True, return_inverse, return_counts, **options)
    places = found[1]
    if axis is None:
        values = picked(ar, places)
    else:
        # As in NumPy the slices lie one after the other in memory.
        slices = np.moveaxis(np.reshape(np.arange(np.size(ar)), np.shape(ar)), axis, 0)
        values = np.moveaxis(picked(ar, slices[places]), 0, axis)
    others = found[1:] if return_index else found[2:]
    return (values, *others) if others else values


def unique_all(x: Any, /) -> Any:
    found = np.unique_all(constant(x))
    return found._replace(values=picked(x, found.indices))


def unique_counts(x: Any, /) -> Any:
    return np.unique_counts(constant(x))._replace(values=np.unique(x, equal_nan=False))


def unique_inverse(x: Any, /) -> Any:
    return np.unique_inverse(constant(x))._replace(values=np.unique(x, equal_nan=False))


def unique_values(x: Any, /) -> Any:
    """In the order in which NumPy gives them, which is not the sorted one in all its versions."""
    return _read(np.unique_values(constant(x)), x)


def union1d(ar1: Any, ar2: Any) -> Any:
    return np.unique(_joined(ar1, ar2))


def setxor1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Any:
    return _read(np.setxor1d(constant(ar1), constant(ar2), assume_unique), _joined(ar1, ar2))


def setdiff1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Any:
    return _read(np.setdiff1d(constant(ar1), constant(ar2), assume_unique), ar1)


def intersect1d(ar1: Any, ar2: Any, assume_unique: bool = False, return_indices: bool = False) -> Any:
    """A value that is in both is read from the first, in the dtype of both together."""
    found, first, second = np.intersect1d(constant(ar1), constant(ar2), assume_unique, return_indices=True)
    values = picked(ar1, first)
    values = values if values.dtype == found.dtype else values.astype(found.dtype)
    return (values, first, second) if return_indices else values


_POINTS = [call(distinct(-1, 1, 5)), call(distinct(-1, 1, 2, 3))]
_PAIRS = [
    call(distinct(-1, 1, 5), np.array([9.0, 7.0])),
    call(distinct(-1, 1, 2, 2), distinct(2, 3, 3)),
]

composed(
    np.unique,
    unique,
    at=[
        *_POINTS,
        call(complex_(-1, 1, 3), equal_nan=False),
        call(distinct(-1, 1, 2, 3), True, True, True),
        call(distinct(-1, 1, 3, 2), axis=-1, return_counts=True),
        call(distinct(-1, 1, 3, 2), False, True, axis=0),
    ],
)
composed(np.unique_all, unique_all, at=_POINTS)
composed(np.unique_counts, unique_counts, at=_POINTS)
composed(np.unique_inverse, unique_inverse, at=_POINTS)
composed(np.unique_values, unique_values, at=_POINTS)
composed(np.union1d, union1d, at=_PAIRS)
composed(np.setxor1d, setxor1d, at=_PAIRS)
composed(np.setdiff1d, setdiff1d, at=_PAIRS)
composed(np.intersect1d, intersect1d, at=[*_PAIRS, call(distinct(-1, 1, 3), distinct(2, 3, 2), return_indices=True)])
