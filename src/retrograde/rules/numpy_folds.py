"""The methods of ufuncs that have no formula of their own: folds, scans and outer forms, step by step.

`np.hypot.reduce`, `np.subtract.accumulate` and their like are run as loops of the ufunc along the axis, and their
derivatives are those of the steps. What folds fast has a formula in `numpy_reductions` and `numpy_scans`.
"""

from __future__ import annotations

import math
from typing import Any

from retrograde.originals import np
from retrograde.rules import numpy_arithmetic, numpy_products, numpy_rounding, numpy_transcendental
from retrograde.rules.contractions import as_array
from retrograde.rules.numpy_reductions import split_axes
from retrograde.rules.numpy_scans import one_axis
from retrograde.rules.points import call, distinct, real
from retrograde.rules.table import RULES, Elementwise, composed

# Their rules are those that are folded, and they come first to the methods that have formulas.
_BEFORE = (numpy_arithmetic, numpy_products, numpy_rounding, numpy_transcendental)

_UNSET: Any = np._NoValue  # type: ignore[attr-defined]


def _cast(x: Any, dtype: Any) -> Any:
    x = as_array(x)
    return x if dtype is None else x.astype(dtype)


def reduce_body(ufunc: np.ufunc) -> Any:
    def body(
        array: Any,
        axis: Any = 0,
        dtype: Any = None,
        *,
        keepdims: bool = False,
        initial: Any = _UNSET,
        where: Any = True,
    ) -> Any:
        x = _cast(array, dtype)
        shape = np.shape(x)
        left, removed = split_axes(len(shape), axis if shape else None)
        # For what NumPy says of several axes, of a mask without `initial`, of an empty axis.
        ufunc.reduce(np.ones(shape), axis=axis, where=where, **({} if initial is _UNSET else {"initial": 1.0}))
        around = tuple(shape[i] for i in left)
        folded = (math.prod(shape[i] for i in removed), *around)
        steps = np.reshape(np.transpose(x, removed + left), folded)
        mask: Any = True if where is True else np.broadcast_to(where, shape).transpose(removed + left).reshape(folded)
        start = 0
        if initial is _UNSET or initial is None:
            if len(steps) == 0:
                return _in_shape(np.sum(steps, axis=0) + ufunc.identity, shape, removed, keepdims)
            y, start = steps[0], 1
            if mask is not True:
                y = np.where(mask[0], y, ufunc.identity)
        else:
            y = np.broadcast_to(_cast(initial, x.dtype), around)
        for i in range(start, len(steps)):
            stepped = ufunc(y, steps[i])
            y = stepped if mask is True else np.where(mask[i], stepped, y)
        return _in_shape(y, shape, removed, keepdims)

    return body


def _in_shape(y: Any, shape: tuple[int, ...], removed: tuple[int, ...], keepdims: bool) -> Any:
    if keepdims:
        y = np.reshape(y, tuple(1 if i in removed else n for i, n in enumerate(shape)))
    return y if np.ndim(y) else y[()]


def accumulate_body(ufunc: np.ufunc) -> Any:
    def body(array: Any, axis: Any = 0, dtype: Any = None) -> Any:
        x = _cast(array, dtype)
        along = one_axis(axis, np.ndim(x))
        steps = np.moveaxis(x, along, 0)
        rows = [steps[0]] if len(steps) else []
        for i in range(1, len(steps)):
            rows.append(ufunc(rows[-1], steps[i]))
        return np.moveaxis(np.stack(rows), 0, along) if rows else x

    return body


def reduceat_body(ufunc: np.ufunc) -> Any:
    """Each slice by `reduce`; the element itself where a slice is empty."""

    def body(array: Any, indices: Any, axis: Any = 0, dtype: Any = None) -> Any:
        x = _cast(array, dtype)
        along = one_axis(axis, np.ndim(x))
        steps = np.moveaxis(x, along, 0)
        starts = [range(len(steps))[i] for i in np.asarray(indices).tolist()]
        ends = [*starts[1:], len(steps)]
        rows = [ufunc.reduce(steps[i:j]) if i < j else steps[i] for i, j in zip(starts, ends, strict=True)]
        return np.moveaxis(np.stack(rows), 0, along) if rows else np.take(x, [], axis=along)

    return body


def outer_body(ufunc: np.ufunc) -> Any:
    """By broadcasting."""

    def body(A: Any, B: Any) -> Any:
        return ufunc(np.reshape(A, (*np.shape(A), *(1 for _ in np.shape(B)))), B)

    return body


_HALVES = {np.copysign: real(0.5, 1), np.ldexp: np.array([1, 2])}
_LINES = [
    call(real(0.6, 1.9, 4)),
    call(real(0.6, 1.9, 2, 3), axis=1),
    call(real(0.6, 1.9, 2, 1)),
]
_SLICES = [call(distinct(0.6, 1.9, 6), [0, 2, 5]), call(distinct(0.6, 1.9, 2, 5), [3, 0, 2], axis=1)]
_FOLDED = [
    rule.function
    for rule in list(RULES.values())
    if isinstance(rule, Elementwise) and isinstance(rule.function, np.ufunc) and rule.function.nin == 2
]

# np.ldexp does not take its own result for an integer. On some processors NumPy folds the others in no order at all.
_UNFOLDABLE = (np.ldexp,)
_OUT_OF_ORDER = (np.ldexp, np.power, np.float_power, np.arctan2)
# These jump: a point at which all steps are far from that is enough.
_JUMPING = (np.remainder, np.fmod, np.floor_divide)

for _ufunc in _FOLDED:
    _number = 1 if _ufunc in _JUMPING else None
    for _method, _make, _points in (
        (_ufunc.reduce, reduce_body, [*_LINES, call(real(0.6, 1.9, 2, 3), 1, keepdims=True)]),
        (_ufunc.accumulate, accumulate_body, _LINES),
        (_ufunc.reduceat, reduceat_body, _SLICES),
    ):
        _without = _UNFOLDABLE if _make is accumulate_body else _OUT_OF_ORDER
        if _method not in RULES and _ufunc not in _without:
            composed(_method, _make(_ufunc), at=_points[:_number])
    if _ufunc.outer not in RULES:
        _right = _HALVES.get(_ufunc, real(1.1, 1.4, 3))
        composed(_ufunc.outer, outer_body(_ufunc), at=[call(real(2.3, 2.6, 2), _right)])
