"""Arrays made of several, and of bounds."""

from __future__ import annotations

from typing import Any

from numpy.lib.array_utils import normalize_axis_index

from retrograde.batch.arguments import array, behind
from retrograde.batch.table import by_body, mapped
from retrograde.originals import np
from retrograde.trace.creation import stacked


def _members(arrays: Any) -> list[Any]:
    return [array(arrays[i]) for i in range(len(arrays))] if hasattr(arrays, "shape") else [array(a) for a in arrays]


@mapped(np.concatenate)
def _concatenate(function: Any, level: Any, arrays: Any, axis: Any = 0, out: Any = None, **kwargs: Any) -> Any:
    members = _members(arrays)
    if axis is None:
        members, axis = [np.ravel(a) for a in members], 0
    ndim = max(a.ndim for a in members)
    if ndim == 0:
        raise ValueError("zero-dimensional arrays cannot be concatenated")
    return np.concatenate([level.each(a) for a in members], axis=behind(axis, ndim), **kwargs)


@mapped(np.stack)
def _stack(function: Any, level: Any, arrays: Any, axis: int = 0, out: Any = None, **kwargs: Any) -> Any:
    members = _members(arrays)
    return np.stack([level.each(a) for a in members], axis=behind(axis, members[0].ndim + 1), **kwargs)


@by_body(np.vstack, np.hstack, np.dstack, np.column_stack)
def _stack_of(function: Any, level: Any, tup: Any, **kwargs: Any) -> Any:
    members = _members(tup)
    name = function.__name__  # some functions have another in their place while a transform runs
    if name == "vstack":
        return np.concatenate([np.atleast_2d(a) for a in members], 0, **kwargs)
    if name == "dstack":
        return np.concatenate([np.atleast_3d(a) for a in members], 2)
    if name == "column_stack":
        return np.concatenate([a if a.ndim > 1 else np.reshape(a, (-1, 1)) for a in members], 1)
    members = [np.atleast_1d(a) for a in members]
    return np.concatenate(members, 0 if members[0].ndim == 1 else 1, **kwargs)


@mapped(stacked)
def _array(function: Any, level: Any, rows: Any) -> Any:
    shapes = {np.shape(row) for row in rows}
    if len(shapes) > 1:
        np.array([np.zeros(shape) for shape in shapes])  # NumPy says what is wrong with it
    return np.stack([level.each(row) for row in rows], axis=1)


@mapped(np.linspace, np.geomspace)
def _space(function: Any, level: Any, start: Any, stop: Any, num: int = 50, *args: Any, **kwargs: Any) -> Any:
    axis = kwargs.pop("axis", 0)
    ndim = max(np.ndim(start), np.ndim(stop))
    y = function(level.aligned(start, ndim), level.aligned(stop, ndim), num, *args, **kwargs)
    # The axis of the points came in front of that of the examples.
    target = normalize_axis_index(axis, ndim + 1) + 1
    if isinstance(y, tuple):
        return np.moveaxis(np.moveaxis(y[0], 1, 0), 1, target), y[1]
    return np.moveaxis(np.moveaxis(y, 1, 0), 1, target)
