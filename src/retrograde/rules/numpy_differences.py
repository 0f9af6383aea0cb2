"""Derivatives of NumPy's differences and of what is made of them: numerical slopes and the trapezoidal rule."""

from __future__ import annotations

from typing import Any

from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from retrograde.originals import np
from retrograde.rules.dispatching import dispatched
from retrograde.rules.numpy_scans import Axis, cut
from retrograde.rules.points import call, complex_, distinct, real
from retrograde.rules.table import Like, composed, linear

_NONE = np._NoValue


@dispatched
def steps(x: Any, axis: Axis) -> Any:
    """x[i+1] − x[i] along an axis."""
    return cut(x, axis, 1) - cut(x, axis, None, -1)


@dispatched
def steps_back(y: Any, axis: Axis) -> Any:
    """y[i−1] − y[i] along an axis, where what stands outside of y is zero: the adjoint of `steps`."""
    z = np.empty((*y.shape[:axis], y.shape[axis] + 1, *y.shape[axis + 1 :]), y.dtype)
    if y.shape[axis] == 0:
        return np.zeros_like(z)
    cut(z, axis, None, 1)[...] = -cut(y, axis, None, 1)
    cut(z, axis, -1)[...] = cut(y, axis, -1)
    np.subtract(cut(y, axis, None, -1), cut(y, axis, 1), out=cut(z, axis, 1, -1))
    return z


def steps_adjoint(y_bar: Any, x: Like, axis: Axis) -> Any:
    return steps_back(y_bar, axis) if x.shape[axis] else np.zeros(x.shape)


def steps_back_adjoint(y_bar: Any, y: Like, axis: Axis) -> Any:
    return steps(y_bar, axis)


_STEPS = [call(real(-1, 1, 4), 0), call(complex_(-1, 1, 2, 3), 1), call(real(-1, 1, 1, 2), 0)]
linear(steps, steps_adjoint, at=[*_STEPS, call(real(-1, 1, 0, 2), 0)])
linear(steps_back, steps_back_adjoint, at=[*_STEPS, call(real(-1, 1, 0), 0)])


def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = _NONE, append: Any = _NONE) -> Any:
    """np.diff, differentiable in `prepend` and `append` too."""
    if n == 0:
        return a
    if n < 0:
        raise ValueError(f"order must be non-negative but got {n!r}")
    if not hasattr(a, "shape"):
        a = np.asarray(a)
    along = normalize_axis_index(axis, a.ndim)
    row = (*a.shape[:along], 1, *a.shape[along + 1 :])
    parts = [np.broadcast_to(x, row) if np.ndim(x) == 0 else x for x in (prepend, a, append) if x is not _NONE]
    x = np.concatenate(parts, axis=along) if len(parts) > 1 else a
    for _ in range(n):
        x = steps(x, along)
    return x


composed(
    np.diff,
    diff,
    at=[
        call(real(-1, 1, 4)),
        call(real(-1, 1, 3, 2), axis=0),
        call(real(-1, 1, 2, 5), 2),
        call(real(-1, 1, 2, 5), 3, 1),
        call(real(-1, 1, 2, 3), n=0),
        call(real(-1, 1, 2, 3), n=5),
        call(real(-1, 1, 2, 3), prepend=real(-1, 1), append=real(-1, 1, 2, 2)),
        call(real(-1, 1, 2, 3), axis=0, append=0.5),
        call(complex_(-1, 1, 2, 3), n=2),
    ],
)


def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    parts = [np.diff(np.ravel(ary))]
    if to_begin is not None:
        parts.insert(0, np.ravel(to_begin))
    if to_end is not None:
        parts.append(np.ravel(to_end))
    return np.concatenate(parts) if len(parts) > 1 else parts[0]


composed(
    np.ediff1d,
    ediff1d,
    at=[call(real(-1, 1, 2, 3)), call(real(-1, 1, 4), to_begin=real(-1, 1), to_end=real(-1, 1, 2))],
)


def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """np.gradient, differentiable in the values and in the spacings or coordinates."""
    if not hasattr(f, "shape") or f.dtype.kind in "iub":
        f = np.asarray(f, dtype=float)
    axes = range(f.ndim) if axis is None else normalize_axis_tuple(axis, f.ndim)
    spacings = varargs or (1.0,)
    if len(spacings) == 1 and np.ndim(spacings[0]) == 0:
        spacings *= len(axes)
    if len(spacings) != len(axes):
        raise TypeError("invalid number of arguments")
    slopes = [_slopes(f, h, i, edge_order) for h, i in zip(spacings, axes, strict=True)]
    slopes = [slope if slope.dtype == f.dtype or f.dtype.kind == "O" else _of(slope, f.dtype) for slope in slopes]
    return slopes[0] if len(slopes) == 1 else tuple(slopes)


def _of(slope: Any, dtype: Any) -> Any:
    """NumPy writes the slopes into an array like that of the values; what would lose digits of a complex one stays."""
    return slope.astype(dtype) if slope.dtype.kind == dtype.kind else slope


def _slopes(f: Any, spacing: Any, axis: Axis, edge_order: int) -> Any:
    """Three-point slopes inside, slopes of order `edge_order` at the two ends.

    Equal coordinates get no formula of their own, as NumPy has it: its derivative would reach the first two only.
    """
    if edge_order not in (1, 2):
        raise ValueError("'edge_order' greater than 2 not supported")
    if f.shape[axis] < edge_order + 1:
        raise ValueError(
            "Shape of array too small to calculate a numerical gradient, "
            "at least (edge_order + 1) elements are required."
        )
    left, middle, right = cut(f, axis, None, -2), cut(f, axis, 1, -1), cut(f, axis, 2)
    if np.ndim(spacing) == 0:
        first = last = spacing, spacing
        inside = (right - left) / (2.0 * spacing)
    else:
        if np.shape(spacing) != (f.shape[axis],):
            raise ValueError("when 1d, distances must match the length of the corresponding dimension")
        steps = np.reshape(np.diff(spacing), (1,) * axis + (-1,) + (1,) * (f.ndim - axis - 1))
        first = cut(steps, axis, None, 1), cut(steps, axis, 1, 2)
        last = cut(steps, axis, -1), cut(steps, axis, -2, -1)
        d, e = cut(steps, axis, None, -1), cut(steps, axis, 1)
        inside = -e / (d * (d + e)) * left + (e - d) / (d * e) * middle + d / (e * (d + e)) * right
    begin = _end_slope(cut(f, axis, None, 1), cut(f, axis, 1, 2), cut(f, axis, 2, 3), *first, edge_order)
    end = _end_slope(cut(f, axis, -1), cut(f, axis, -2, -1), cut(f, axis, -3, -2), *last, edge_order)
    return np.concatenate([begin, inside, -end], axis=axis)


def _end_slope(f0: Any, f1: Any, f2: Any, d: Any, e: Any, edge_order: int) -> Any:
    """The slope at f0, away from the end, from the next two values at the distances d and d + e."""
    if edge_order == 1:
        return (f1 - f0) / d
    return -(2.0 * d + e) / (d * (d + e)) * f0 + (d + e) / (d * e) * f1 - d / (e * (d + e)) * f2


composed(
    np.gradient,
    gradient,
    at=[
        call(real(-1, 1, 5)),
        call(real(-1, 1, 3, 4)),
        call(real(-1, 1, 3, 4), real(0.5, 1), axis=1),
        call(real(-1, 1, 3, 4), 0.5, distinct(0, 3, 4), edge_order=2),
        call(real(-1, 1, 4), np.array([0.0, 1.0, 3.0, 4.0]), edge_order=2),
        call(real(-1, 1, 2, 4), real(0.5, 1), axis=-1, edge_order=2),
        call(real(-1, 1, 2), distinct(0, 3, 2)),
    ],
)


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    ndim = np.ndim(y)
    along = normalize_axis_index(axis, ndim)
    if not hasattr(y, "shape"):
        y = np.asarray(y)
    if x is None:
        steps = dx
    elif np.ndim(x) == 1:
        steps = np.reshape(np.diff(x), (1,) * along + (-1,) + (1,) * (ndim - along - 1))
    else:
        steps = np.diff(x, axis=axis)
    return np.sum(steps * (cut(y, along, 1) + cut(y, along, None, -1)) / 2.0, axis=axis)


composed(
    np.trapezoid,
    trapezoid,
    at=[
        call(real(-1, 1, 4)),
        call(real(-1, 1, 2, 4), dx=real(0.5, 1)),
        call(real(-1, 1, 4, 2), real(0, 1, 4), axis=0),
        call(real(-1, 1, 2, 4), x=real(0, 1, 2, 4)),
        call(complex_(-1, 1, 4)),
    ],
)
