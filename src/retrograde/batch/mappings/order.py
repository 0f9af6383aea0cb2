"""Positions among sorted values, bins, and what cannot be mapped since its shape depends on the values."""

from __future__ import annotations

from typing import Any

from retrograde.batch.arguments import array
from retrograde.batch.table import by_body, mapped, refused
from retrograde.errors import BatchError
from retrograde.originals import np

_SIZES = "how many there are depends on the values, and differs between the examples"

refused(np.nonzero, np.flatnonzero, np.argwhere, np.extract, np.trim_zeros, np.unique, why=_SIZES)
refused(np.unique_all, np.unique_counts, np.unique_inverse, np.unique_values, why=_SIZES)
refused(np.union1d, np.intersect1d, np.setdiff1d, np.setxor1d, why=_SIZES)


@mapped(np.searchsorted)
def _searchsorted(function: Any, level: Any, a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    a, v = array(a), array(v)
    if sorter is not None:
        a = np.take(a, sorter)
    if not level.holds(a):
        return np.searchsorted(a, v.primal, side=side)
    # How many elements are below (or not above) a value is where it belongs.
    below = np.less if side == "left" else np.less_equal
    rows = np.reshape(a.primal, (level.size, *(1,) * v.ndim, a.size))
    values = level.each(v)[..., None]
    if a.dtype.kind in "fc" and np.any(np.isnan(rows)):
        raise BatchError("np.searchsorted cannot be mapped over sorted arrays with NaN", "np.nan_to_num(a)")
    return np.sum(below(rows, values), axis=-1)


@by_body(np.digitize)
def _digitize(function: Any, level: Any, x: Any, bins: Any, right: bool = False) -> Any:
    bins = array(bins)
    if level.holds(bins):
        rising = np.searchsorted(bins, x, side="left" if right else "right")
        falling = bins.shape[0] - np.searchsorted(np.flip(bins), x, side="right" if right else "left")
        return np.where(bins[0] <= bins[-1], rising, falling)
    if bins.size and bins[0] > bins[-1]:
        return bins.size - np.searchsorted(bins[::-1], x, side="right" if right else "left")
    return np.searchsorted(bins, x, side="left" if right else "right")


@mapped(np.bincount)
def _bincount(function: Any, level: Any, x: Any, weights: Any = None, minlength: int = 0) -> Any:
    x = array(x)
    places = level.each(x)
    length = max(int(np.max(places, initial=-1)) + 1, minlength) if not level.holds(x) else minlength
    if np.any(places >= length):
        raise BatchError(
            "np.bincount cannot be mapped over positions that differ between the examples without minlength=: the "
            "length of the result would depend on them",
            "np.bincount(x, weights, minlength=n), with an n that is large enough for all",
        )
    flat = np.reshape(places + length * np.arange(level.size)[:, None], -1)
    if weights is not None:
        weights = np.reshape(level.each(weights), -1)
    counts = np.bincount(flat, weights, level.size * length)
    return np.reshape(counts, (level.size, length))


@by_body(np.isin)
def _isin(function: Any, level: Any, element: Any, test_elements: Any, *args: Any, **kwargs: Any) -> Any:
    tests = np.ravel(array(test_elements))
    found = np.any(np.reshape(array(element), (*np.shape(element), 1)) == tests, axis=-1)
    invert = args[1] if len(args) > 1 else kwargs.get("invert", False)
    return np.logical_not(found) if invert else found


refused(np.real_if_close, why="whether the result is complex depends on the values")
