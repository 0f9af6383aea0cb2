"""Functions that are constant or straight between jumps and kinks: rounding, extremes, parts of a float.

Whatever is constant between its jumps has a derivative, zero, and is therefore a path: its gradient is an array of
zeros and not `None`. Arguments that tie for an extreme share its derivative equally.
"""

from __future__ import annotations

from typing import Any

from numpy._core import umath

from retrograde.originals import np
from retrograde.rules.numpy_reductions import is_plain
from retrograde.rules.points import call, distinct, real
from retrograde.rules.products import times
from retrograde.rules.table import composed, elementwise, general, shared

# --- Rounding ------------------------------------------------------------------------------------------

elementwise(np.floor, 0.0, at=[real(1.1, 1.9)])
elementwise(np.ceil, 0.0, at=[real(1.1, 1.9)])
elementwise(np.trunc, 0.0, at=[real(1.1, 1.9)])
elementwise(np.fix, 0.0, at=[real(-1.9, -1.1)])
elementwise(np.rint, 0.0, at=[real(1.6, 2.4)])


def round_pullback(y: Any, a: Any, decimals: int = 0) -> Any:
    shape = np.shape(y)

    def pull(y_bar: Any) -> Any:
        return (np.zeros(shape),)

    return pull


def round_pushforward(y: Any, a: Any, decimals: int = 0) -> Any:
    shape = np.shape(y)

    def push(a_dot: Any) -> Any:
        return np.zeros(shape)

    return push


for _round in (np.round, np.around):
    general(
        _round,
        pullback=round_pullback,
        pushforward=round_pushforward,
        at=[call(real(1.6, 2.4, 2, 3)), call(real(0.16, 0.24, 3), decimals=1), call(real(12, 14), -1)],
    )


# --- Parts of a float ----------------------------------------------------------------------------------


def modf_body(x: Any) -> Any:
    whole = np.trunc(x)
    return np.where(np.isinf(x), 0.0, x - whole)[()], whole


composed(np.modf, modf_body, at=[call(real(1.1, 1.9)), call(real(-2.9, -2.1, 2, 3))])


def frexp_pullback(y: Any, x: Any) -> Any:
    """x = mantissa · 2ᵉ; the exponent is an integer, whose cotangent means nothing."""
    exponent = y[1]

    def pull(y_bar: Any) -> Any:
        return (times(y_bar[0], np.ldexp(1.0, -exponent)),)

    return pull


def frexp_pushforward(y: Any, x: Any) -> Any:
    exponent = y[1]

    def push(x_dot: Any) -> Any:
        return times(x_dot, np.ldexp(1.0, -exponent)), np.zeros(np.shape(exponent))

    return push


general(
    np.frexp,
    pullback=frexp_pullback,
    pushforward=frexp_pushforward,
    at=[call(real(2.1, 3.9)), call(real(-0.9, -0.6, 2, 3))],
)

elementwise(np.ldexp, lambda b: np.ldexp(1.0, b), 0.0, at=[real(-3, 3), 3])
elementwise(np.copysign, lambda a, b: np.sign(a) * np.copysign(1.0, b), 0.0, at=[real(-2, -0.5), real(0.5, 2)])
elementwise(np.nextafter, 1.0, 0.0, at=[real(-2, -0.5), real(0.5, 2)])
elementwise(np.spacing, 0.0, at=[real(1.1, 1.9)])
elementwise(np.heaviside, 0.0, lambda a: np.where(a == 0, 1.0, 0.0), at=[real(0.5, 2), real(-1, 1)])


# --- Extremes ------------------------------------------------------------------------------------------
#
# maximum and minimum give a NaN if there is one, and its derivative is that of the argument that holds it; fmax and
# fmin give the other argument. (x != x says that x is NaN, of Python floats too.)


def greater(a: Any, b: Any) -> Any:
    """∂ maximum(a, b) / ∂a."""
    above = np.greater(a, b)
    return above if _is_decided(above, np.less(a, b)) else np.where(a == b, 0.5, above | (a != a))


def less(a: Any, b: Any) -> Any:
    """∂ minimum(a, b) / ∂a."""
    below = np.less(a, b)
    return below if _is_decided(below, np.greater(a, b)) else np.where(a == b, 0.5, below | (a != a))


def itself(share: Any) -> Any:
    return share


def rest(share: Any) -> Any:
    """What one of two arguments leaves to the other."""
    return ~share if type(share) is np.ndarray and share.dtype == bool else 1.0 - share


def between(a: Any, b: Any, c: Any) -> Any:
    """∂ clip(a, b, c) / ∂a."""
    inside = np.greater(a, b) & np.less(a, c)
    if _is_decided(inside, np.less(a, b) | np.greater(a, c)):
        return inside
    return greater(a, b) * less(np.maximum(a, b), c)


def _is_decided(yes: Any, no: Any) -> bool:
    """Whether each element is one of the two: there is no tie and no NaN, and a mask says it all."""
    return is_plain(yes) and bool(np.count_nonzero(yes) + np.count_nonzero(no) == np.size(yes))


def greater_number(a: Any, b: Any) -> Any:
    """∂ fmax(a, b) / ∂a."""
    return np.where(a == b, 0.5, np.greater(a, b) | (b != b))


def less_number(a: Any, b: Any) -> Any:
    """∂ fmin(a, b) / ∂a."""
    return np.where(a == b, 0.5, np.less(a, b) | (b != b))


elementwise(np.maximum, shared(greater, itself), shared(greater, rest), at=[real(-3, 3), real(-3, 3)])
elementwise(np.minimum, shared(less, itself), shared(less, rest), at=[real(-3, 3), real(-3, 3)])
elementwise(
    np.fmax, lambda a, b: greater_number(a, b), lambda a, b: greater_number(b, a), at=[real(-3, 3), real(-3, 3)]
)
elementwise(np.fmin, lambda a, b: less_number(a, b), lambda a, b: less_number(b, a), at=[real(-3, 3), real(-3, 3)])


def clip_body(a: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None) -> Any:
    """The lower bound first, as NumPy does: where the bounds cross, the upper one holds."""
    low = min if a_min is None else a_min
    high = max if a_max is None else a_max
    if low is None:
        return np.positive(a) if high is None else np.minimum(a, high)
    return np.maximum(a, low) if high is None else umath.clip(a, low, high)


composed(
    np.clip,
    clip_body,
    at=[
        call(distinct(-2, 2, 2, 3), -1.0, 1.0),
        call(distinct(-2, 2, 2, 3), real(-1, 0, 3), real(0, 1, 2, 1)),
        call(distinct(-2, 2, 5), None, real(-1, 1)),
        call(distinct(-2, 2, 5), a_min=real(-1, 1, 5), a_max=None),
        call(distinct(-2, 2, 5), min=real(-1, 0)),
        call(distinct(-2, 2, 5), min=real(0.5, 1), max=real(-1, -0.5)),
        call(distinct(-2, 2, 5), max=0.25),
    ],
)

# What `ndarray.clip` calls, so that it is met where only a bound is traced.
elementwise(
    umath.clip,
    lambda a, b, c: between(a, b, c),
    lambda a, b, c: greater(b, a) * less(np.maximum(a, b), c),
    lambda a, b, c: less(c, np.maximum(a, b)),
    at=[real(-2, 2), real(-1, 0), real(0, 1)],
)
