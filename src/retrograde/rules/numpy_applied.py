"""Functions of NumPy that call a Python function along an axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from retrograde.originals import np
from retrograde.rules.contractions import as_array
from retrograde.rules.points import call, complex_, real
from retrograde.rules.table import composed


def apply_along_axis(func1d: Callable[..., Any], axis: int, arr: Any, *args: Any, **kwargs: Any) -> Any:
    """What `func1d` returns stands in place of the axis; each line is a read, and all results are joined."""
    arr = as_array(arr)
    axis = range(np.ndim(arr))[axis]
    lines = np.moveaxis(arr, axis, -1)
    around = np.shape(lines)[:-1]
    if 0 in around:
        raise ValueError("Cannot apply_along_axis when any iteration dimensions are 0")
    results = np.stack([func1d(lines[index], *args, **kwargs) for index in np.ndindex(around)])
    results = np.reshape(results, around + np.shape(results)[1:])
    own = np.ndim(results) - len(around)
    return np.moveaxis(results, tuple(range(len(around), len(around) + own)), tuple(range(axis, axis + own)))


def apply_over_axes(func: Callable[[Any, int], Any], a: Any, axes: Any) -> Any:
    a = as_array(a)
    ndim = np.ndim(a)
    for axis in (axes,) if np.ndim(axes) == 0 else axes:
        axis = range(ndim)[axis]
        y = func(a, axis)
        a = y if np.ndim(y) == ndim else np.expand_dims(y, axis)
        if np.ndim(a) != ndim:
            raise ValueError("function is not returning an array of the correct shape")
    return a


def _both_ends(line: Any) -> Any:
    return np.stack([line[:2], line[-2:]])


def _weighted(line: Any, weight: float, *, power: int) -> Any:
    return weight * np.sum(line**power)


composed(
    np.apply_along_axis,
    apply_along_axis,
    at=[
        call(np.cumsum, 0, real(-1, 1, 3, 2)),
        call(_both_ends, -1, complex_(-1, 1, 2, 2, 3)),
        call(_both_ends, 0, real(-1, 1, 3, 2, 2)),
        call(_weighted, 1, real(-1, 1, 2, 3), 2.0, power=3),
        call(np.sum, 0, real(-1, 1, 3)),
    ],
)
composed(
    np.apply_over_axes,
    apply_over_axes,
    at=[call(np.sum, real(-1, 1, 2, 3, 2), [0, -1]), call(np.cumsum, real(-1, 1, 2, 3), 1)],
)
