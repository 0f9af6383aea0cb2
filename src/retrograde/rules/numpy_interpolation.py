"""Repairs and interpolation of sampled functions: nan_to_num, unwrap, interp."""

from __future__ import annotations

import math
from typing import Any

from retrograde.originals import np
from retrograde.rules.points import call, complex_, distinct, real
from retrograde.rules.products import somewhere
from retrograde.rules.table import composed, general

# --- nan_to_num ------------------------------------------------------------------------------------------
#
# Without `copy`: False would write into the caller's array.


def _only_finite(x: Any) -> Any:
    """A function that keeps a (co)tangent where x is finite; each part of a complex number is replaced by itself."""
    if not np.iscomplexobj(x):
        finite = np.isfinite(x)

        def keep(v: Any) -> Any:
            return np.where(finite, v, 0.0)

        return keep
    finite_real, finite_imag = np.isfinite(np.real(x)), np.isfinite(np.imag(x))

    def keep_parts(v: Any) -> Any:
        return np.where(finite_real, np.real(v), 0.0) + 1j * np.where(finite_imag, np.imag(v), 0.0)

    return keep_parts


def nan_to_num_pullback(y: Any, x: Any, *, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    keep = _only_finite(x)

    def pull(y_bar: Any) -> Any:
        return (keep(y_bar),)

    return pull


def nan_to_num_pushforward(y: Any, x: Any, *, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    return _only_finite(x)


general(
    np.nan_to_num,
    pullback=nan_to_num_pullback,
    pushforward=nan_to_num_pushforward,
    at=[call(real(-1, 1, 2, 3)), call(complex_(-1, 1, 3), nan=1.0, posinf=2.0, neginf=-2.0), call(real(-1, 1))],
)


# --- unwrap --------------------------------------------------------------------------------------------


def unwrap_pullback(y: Any, p: Any, discont: Any = None, axis: int = -1, *, period: float = 2 * math.pi) -> Any:
    """Whole periods are added, and how many is constant between jumps."""

    def pull(y_bar: Any) -> Any:
        return (y_bar,)

    return pull


def unwrap_pushforward(y: Any, p: Any, discont: Any = None, axis: int = -1, *, period: float = 2 * math.pi) -> Any:
    def push(p_dot: Any) -> Any:
        return p_dot

    return push


general(
    np.unwrap,
    pullback=unwrap_pullback,
    pushforward=unwrap_pushforward,
    at=[
        call(distinct(0, 20, 5)),
        call(distinct(0, 20, 4, 2), axis=0),
        call(distinct(0, 9, 2, 4), 4.0, period=3.0),
    ],
)


# --- interp --------------------------------------------------------------------------------------------


def _double(x: Any) -> Any:
    """`x` in double precision at most."""
    if x.dtype == np.longdouble:
        return x.astype(np.float64)
    return x.astype(np.complex128) if x.dtype == np.clongdouble else x


def interp_body(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    """Straight lines through the points (xp, fp), constant outside of them.

    At an inner xp the line to the right holds, at the last one the line to the left. NumPy computes in double
    precision, whatever it is given.
    """
    one = np.float64(1.0)
    x, xp, fp = (_double(np.multiply(each, one)) for each in (x, xp, fp))
    if np.ndim(xp) != 1 or np.ndim(fp) != 1 or np.size(xp) != np.size(fp) or np.size(xp) == 0:
        raise ValueError(
            f"xp and fp must be one-dimensional, equally long and not empty; their shapes are {xp.shape} and {fp.shape}"
        )
    if period is not None:
        if somewhere(period == 0):
            raise ValueError("period must be a non-zero value")
        period, left, right = np.abs(period), None, None
        x, xp = np.remainder(x, period), np.remainder(xp, period)
        order = np.argsort(xp)
        xp, fp = np.take(xp, order), np.take(fp, order)
        xp = np.concatenate((xp[-1:] - period, xp, xp[:1] + period))
        fp = np.concatenate((fp[-1:], fp, fp[:1]))
    last = np.size(xp) - 1
    below = np.clip(np.searchsorted(xp, x, side="right") - 1, 0, max(last - 1, 0))
    above = np.minimum(below + 1, last)
    x_below, f_below = np.take(xp, below), np.take(fp, below)
    width = np.take(xp, above) - x_below
    slope = (np.take(fp, above) - f_below) / np.where(width == 0, 1.0, width)
    y = slope * (x - x_below) + f_below
    y = np.where(x < xp[0], fp[0] if left is None else left, y)
    return np.where(x > xp[last], fp[last] if right is None else right, y)[()]


_KNOTS = np.array([0.0, 1.0, 1.5, 3.0])

composed(
    np.interp,
    interp_body,
    at=[
        call(real(-1, 4, 2, 5), _KNOTS, real(-1, 1, 4)),
        call(real(0.2, 0.8), _KNOTS, [1.0, 3.0, 2.0, 0.0]),
        call(real(-1, 4, 7), [0.0, 1.0, 1.5, 3.0], complex_(-1, 1, 4), left=real(1, 2), right=real(1, 2)),
        call(real(-9, 9, 7), np.array([0.5, -2.0, 3.0]), real(-1, 1, 3), period=real(4, 5)),
        call(real(-1, 1, 7), np.zeros(1), real(-1, 1, 1)),
    ],
)
