"""Exponentials, logarithms, circular and hyperbolic functions, their inverses, and two special functions."""

from __future__ import annotations

import math
from typing import Any

from retrograde.originals import np
from retrograde.rules.dispatching import dispatched
from retrograde.rules.numpy_reductions import is_normal, is_plain
from retrograde.rules.points import call, real
from retrograde.rules.products import has_nan, is_finite
from retrograde.rules.table import composed, elementwise, multiple, one_over, overwriting, shared

LN_2 = math.log(2)
LN_10 = math.log(10)
DEGREE = math.pi / 180

# --- Exponentials and logarithms -----------------------------------------------------------------------

elementwise(np.exp, lambda y: y, at=[real(-3, 3)], proven=True)
elementwise(np.exp2, multiple(LN_2, lambda y: y), at=[real(-3, 3)], proven=True)
elementwise(np.expm1, lambda x: np.exp(x), at=[real(-3, 3)])  # y + 1 loses all digits where x is very negative
elementwise(np.log, one_over(lambda x: x), at=[real(0.1, 9)], proven=True, shows=True)
elementwise(np.log2, multiple(1 / LN_2, one_over(lambda x: x)), at=[real(0.1, 9)], proven=True, shows=True)
elementwise(np.log10, multiple(1 / LN_10, one_over(lambda x: x)), at=[real(0.1, 9)], proven=True, shows=True)
elementwise(np.log1p, one_over(lambda x: 1 + x), at=[real(-0.9, 9)])


def _gap(a: Any, b: Any) -> Any:
    """b - a, and 0 between equal infinities."""
    if is_plain(a) and is_plain(b):
        gap = b - a
        if not has_nan(gap):
            return gap
    tied = np.isinf(a) & (a == b)
    return np.where(tied, 0.0, b) - np.where(tied, 0.0, a)


def _shares_of_two(exp: Any, logaddexp: Any) -> tuple[Any, Any, Any]:
    """eᵃ / (eᵃ + eᵇ), eᵇ / (eᵃ + eᵇ), and what they share, for a base e of which `exp` gives the powers.

    Nothing overflows in them that is not right, nor in any derivative of them.
    """

    def ratio(a: Any, b: Any) -> Any:
        """eᵇ⁻ᵃ; but (b - a,) where something is going to differentiate it, since that could not stand an overflow."""
        gap = _gap(a, b)
        if not (is_plain(a) and is_plain(b)):
            return (gap,)
        return exp(gap, out=gap if type(gap) is np.ndarray and gap.dtype.kind == "f" else None)

    def first(ratio: Any, may_write: bool = False) -> Any:
        if type(ratio) is tuple:
            return exp(-logaddexp(0.0, ratio[0]))
        return _reciprocal(np.add(1.0, ratio, out=ratio) if may_write else 1.0 + ratio)

    def second(ratio: Any, may_write: bool = False) -> Any:
        if type(ratio) is tuple:
            return exp(-logaddexp(0.0, -ratio[0]))
        ratio = _reciprocal(ratio) if may_write else np.divide(1.0, ratio)
        ratio += 1.0
        return _reciprocal(ratio)

    return ratio, overwriting(first), overwriting(second)


def _reciprocal(own: Any) -> Any:
    """1 / x, written over x."""
    return np.divide(1.0, own, out=own if type(own) is np.ndarray else None)


_ratio, _first, _second = _shares_of_two(np.exp, np.logaddexp)
_ratio2, _first2, _second2 = _shares_of_two(np.exp2, np.logaddexp2)


def softmax_of_two(a: Any, b: Any) -> Any:
    """eᵃ / (eᵃ + eᵇ)."""
    return _first(_ratio(a, b))


def softmax2_of_two(a: Any, b: Any) -> Any:
    """The same to the base 2."""
    return _first2(_ratio2(a, b))


elementwise(np.logaddexp, shared(_ratio, _first), shared(_ratio, _second), at=[real(-3, 3), real(-3, 3)])
elementwise(np.logaddexp2, shared(_ratio2, _first2), shared(_ratio2, _second2), at=[real(-3, 3), real(-3, 3)])

# --- Circular functions --------------------------------------------------------------------------------


def one_minus_square(x: Any) -> Any:
    """1 - x² as (1 - x)(1 + x), which keeps the digits near ±1; its derivative loses them near 0, so not there."""
    product = (1 - x) * (1 + x)
    return product if is_plain(x) else np.where(np.abs(x) < 0.5, 1 - x * x, product)


def root_of_one_minus_square(x: Any) -> Any:
    """√(1 - x²), the cosine of arcsin x; on the cuts beyond ±1 the sign of a zero imaginary part says which side."""
    square = one_minus_square(x)
    if not np.iscomplexobj(x):
        return np.sqrt(square)
    cut = (np.imag(x) == 0) & (np.abs(np.real(x)) > 1)
    side = np.where(np.signbit(np.real(x)) == np.signbit(np.imag(x)), -1j, 1j)
    on_cut = side * np.sqrt(np.where(cut, -square, 1.0))
    return np.where(cut, on_cut, np.sqrt(np.where(cut, 1.0, square)))


elementwise(np.sin, lambda x: np.cos(x), at=[real(-4, 4)], proven=True, shows=True)
elementwise(np.cos, lambda x: -np.sin(x), at=[real(-4, 4)], proven=True, shows=True)
elementwise(np.tan, lambda y: 1 + y * y, at=[real(-1.2, 1.2)])
elementwise(np.arcsin, one_over(lambda x: root_of_one_minus_square(x)), at=[real(-0.9, 0.9)])
elementwise(np.arccos, one_over(lambda x: -root_of_one_minus_square(x)), at=[real(-0.9, 0.9)])
elementwise(np.arctan, one_over(lambda x: 1 + x * x), at=[real(-3, 3)], proven=True)


def square_length(a: Any, b: Any) -> Any:
    """a² + b²; two factors of it where the squares over- or underflow, infinite at the origin."""
    if is_plain(a) and is_plain(b) and np.isrealobj(a):
        square = a * a + b * b
        if is_normal(square):
            return square
    radius = np.hypot(a, b)
    radius = np.where(radius == 0, np.inf, radius)
    return radius, radius


def _over_square(square: Any, x: Any, may_write: bool = False) -> Any:
    if type(square) is tuple:
        first, second = square
        return x / first / second
    return np.divide(x, square, out=square) if may_write else x / square


def _angle_at_once(bar: Any, a: Any, b: Any, may_write: bool) -> Any:
    """Both cotangents of arctan2(a, b) from bar / (a² + b²), where that is far from overflow and underflow."""
    square = a * a
    square += b * b
    if not is_normal(square):
        return None
    b_bar = np.divide(bar, square, out=square)
    if not is_finite(b_bar):
        return None
    a_bar = b_bar * b
    b_bar *= a
    return a_bar, np.negative(b_bar, out=b_bar)


elementwise(
    np.arctan2,
    shared(square_length, overwriting(lambda s, b, may_write=False: _over_square(s, b, may_write))),
    multiple(-1.0, shared(square_length, overwriting(lambda s, a, may_write=False: _over_square(s, a, may_write)))),
    at=[real(-3, 3), real(0.2, 3)],
    at_once=_angle_at_once,
)

elementwise(np.deg2rad, DEGREE, at=[real(-200, 200)])
elementwise(np.radians, DEGREE, at=[real(-200, 200)])
elementwise(np.rad2deg, 1 / DEGREE, at=[real(-3, 3)])
elementwise(np.degrees, 1 / DEGREE, at=[real(-3, 3)])

# --- Hyperbolic functions ------------------------------------------------------------------------------


def _root_of_one_plus_square(x: Any) -> Any:
    """√(1 + x²); for real x also where x² overflows."""
    return np.sqrt(1 + x * x) if np.iscomplexobj(x) else np.hypot(1.0, x)


def sech_square(y: Any, x: Any, may_write: bool = False) -> Any:
    """tanh′: 1 - y², which loses its digits where y nears ±1; there 4e/(1 + e)² with e = exp(-2|x|), of either sign."""
    if not is_plain(y):
        return sech_square_of_any(y, x)
    if type(y) is np.ndarray and y.ndim:
        slope = np.multiply(y, y, out=y if may_write else None)
        return _with_tail(np.subtract(1.0, slope, out=slope), x)
    slope = 1 - y * y
    if type(slope) is float or type(slope) is np.float64:
        return slope if slope > _TAIL or slope != slope else _sech_square_in_tail(x)
    return _with_tail(slope, x)


@dispatched
def sech_square_of_any(y: Any, x: Any) -> Any:
    """The same, which a batch computes of bare arrays, if it has such."""
    return sech_square(y, x)


def _with_tail(slope: Any, x: Any) -> Any:
    if type(slope) is np.ndarray and type(x) is np.ndarray and slope.ndim and slope.shape == x.shape:
        if slope.dtype == np.float64 == x.dtype and slope.flags.c_contiguous:
            places = (slope < _TAIL).reshape(-1).nonzero()[0]
            if places.size:
                slope.reshape(-1)[places] = _sech_square_in_tail(x.take(places))
            return slope
        tail = np.nonzero((slope if slope.dtype.kind == "f" else np.abs(slope)) < _tail(slope))
        if tail[0].size:
            slope[tail] = _sech_square_in_tail(x[tail])
        return slope
    tail = np.abs(slope) < _tail(slope)
    if is_plain(tail) and not np.any(tail):
        return slope
    return np.where(tail, _sech_square_in_tail(np.where(tail, x, 1.0)), slope)


# Outside of the tails nothing depends on x.
composed(
    sech_square_of_any, lambda y, x: _with_tail(1 - y * y, x), at=[call(real(-0.9, 0.9, 3), np.array([-0.3, 0.5, 1.2]))]
)

# Up to here 1 - y² is right to 50 units in the last place. Each place where it is computed again costs as much as 30
# where it is not.
_TAIL = 0.02
_TAILS = {"e": 0.3, "f": 0.1, "F": 0.1}  # of halves and singles, which have fewer digits to lose


def _tail(slope: Any) -> float:
    return _TAILS.get(slope.dtype.char, _TAIL) if hasattr(slope, "dtype") else _TAIL


def _sech_square_in_tail(x: Any) -> Any:
    if type(x) is np.ndarray and x.ndim and x.dtype == np.float64:
        e = np.abs(x)
        e *= -2.0
        np.exp(e, out=e)
        square = 1 + e
        square *= square
        e *= 4
        return np.divide(e, square, out=e)
    e = np.exp(np.where(np.real(x) > 0, -2.0, 2.0) * x)
    return 4 * e / ((1 + e) * (1 + e))


elementwise(np.sinh, lambda x: np.cosh(x), at=[real(-3, 3)])
elementwise(np.cosh, lambda x: np.sinh(x), at=[real(-3, 3)])
elementwise(
    np.tanh, overwriting(lambda y, x, may_write=False: sech_square(y, x, may_write)), at=[real(-4, 4)], proven=True
)
elementwise(np.arcsinh, one_over(lambda x: _root_of_one_plus_square(x)), at=[real(-3, 3)])
elementwise(np.arccosh, one_over(lambda x: np.sqrt(x - 1) * np.sqrt(x + 1)), at=[real(1.2, 5)])
elementwise(np.arctanh, one_over(lambda x: one_minus_square(x)), at=[real(-0.9, 0.9)])

# --- Special functions ---------------------------------------------------------------------------------

# sinc′(x) = Σ cₖ x²ᵏ⁻¹ with these cₖ, k = 1, 2, …; at |x| = ½ the first one left out is below 1e-17.
_SINC_SERIES = [(-1) ** k * math.pi ** (2 * k) * 2 * k / math.factorial(2 * k + 1) for k in range(1, 13)]


def sinc_slope(x: Any) -> Any:
    """sinc′(x) = (cos πx - sinc x) / x, and its Taylor series where that cancels.

    The n-th derivative of the closed form loses n + 1 powers of x in accuracy, so the series reaches out to ½. Each
    branch sees only arguments that it can stand, so that no NaN of the other one enters a derivative.
    """
    near = np.abs(x) < 0.5
    x_near = np.where(near, x, 0.0)
    x_far = np.where(near, 1.0, x)
    square = x_near * x_near
    series: Any = _SINC_SERIES[-1]
    for coefficient in reversed(_SINC_SERIES[:-1]):
        series = series * square + coefficient
    angle = math.pi * x_far
    closed = (np.cos(angle) - np.sin(angle) / angle) / x_far
    return np.where(near, x_near * series, closed)


elementwise(np.sinc, lambda x: sinc_slope(x), at=[real(-3, 3)])

# Midpoints of a quarter circle. Of a periodic function the midpoint rule converges faster than any power; 64 points
# leave less than 1e-16 up to x = 713, where i0 overflows.
_COSINES = np.cos((np.arange(64) + 0.5) * (math.pi / 128))


def bessel_i1(x: Any) -> Any:
    """I₁ = I₀′, from I₁(x) = 2/π ∫ cos θ sinh(x cos θ) dθ over a quarter circle.

    All terms have the sign of x, so that nothing cancels; the derivatives of the sum are those of I₁ to any order.
    """
    return np.sum(_COSINES * np.sinh(np.expand_dims(x, -1) * _COSINES), axis=-1) / 64


elementwise(np.i0, lambda x: bessel_i1(x), at=[real(-5, 5)])
