"""SciPy's elementary functions: exponentials, powers, circular functions in degrees, logistic and entropy functions."""

from __future__ import annotations

import math
from typing import Any

from scipy import special

from retrograde.originals import np
from retrograde.rules.numpy_arithmetic import power_in_base, power_in_exponent
from retrograde.rules.points import real
from retrograde.rules.products import over
from retrograde.rules.scipy_special_dispatch import each
from retrograde.rules.table import one_over

Array = Any

LN_10 = math.log(10)
DEGREE = math.pi / 180

# --- Powers, exponentials and circular functions ---------------------------------------------------------

each("cbrt", lambda y: 1 / (3 * y * y), at=[real(0.1, 9)])
each("exp2", lambda y: math.log(2) * y, at=[real(-3, 3)])
each("exp10", lambda y: LN_10 * y, at=[real(-2, 2)])
each("expm1", lambda x: np.exp(x), at=[real(-3, 3)])
each("log1p", one_over(lambda x: 1 + x), at=[real(-0.9, 9)])
each("cosm1", lambda x: -np.sin(x), at=[real(-3, 3)])
each(
    "powm1",
    lambda a, b: power_in_base(np.power(a, b), a, b),
    lambda a, b: power_in_exponent(np.power(a, b), a, b),
    at=[real(0.3, 2), real(-2, 3)],
)
each("sindg", lambda x: DEGREE * special.cosdg(x), at=[real(-200, 200)])
each("cosdg", lambda x: -DEGREE * special.sindg(x), at=[real(-200, 200)])
each("tandg", lambda y: DEGREE * (1 + y * y), at=[real(-60, 60)])
each("cotdg", lambda y: -DEGREE * (1 + y * y), at=[real(30, 150)])
each("radian", DEGREE, DEGREE / 60, DEGREE / 3600, at=[real(0, 90), real(0, 60), real(0, 60)])
each("round", 0.0, at=[real(1.6, 2.4)])


def polynomial(coefficients: Any, x: Array) -> Array:
    """c₀ + c₁ x + c₂ x² + …"""
    total = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        total = total * x + c
    return total


# exprel(x) = Σ xᵏ / (k + 1)!, so that exprel′ has these coefficients; the first left out is below 1e-17 at |x| = 1.
_EXPREL_SLOPE = [(k + 1) / math.factorial(k + 2) for k in range(18)]


def exprel_slope(x: Array) -> Array:
    """The derivative of (eˣ − 1) / x, from the series where the closed form cancels."""
    near = np.abs(x) < 1
    far = np.where(near, 1.0, x)
    return np.where(near, polynomial(_EXPREL_SLOPE, np.where(near, x, 0.0)), (np.exp(far) - special.exprel(far)) / far)


each("exprel", lambda x: exprel_slope(x), at=[real(-3, 3)])

# log(1 + w) / w = Σ (−w)ᵏ / (k + 1); at |w| = 0.3 the first term left out is below 1e-17, of the slope too.
_LOG_RATIO = [(-1) ** k / (k + 1) for k in range(34)]
_LOG_RATIO_SLOPE = [(k + 1) * _LOG_RATIO[k + 1] for k in range(33)]


def log1p_ratio(w: Array) -> Array:
    """log(1 + w) / w, which is 1 at 0, with derivatives that do not cancel there."""
    near = np.abs(w) < 0.3
    far = np.where(near, 1.0, w)
    return np.where(near, polynomial(_LOG_RATIO, np.where(near, w, 0.0)), np.log1p(far) / far)


def log1p_ratio_slope(w: Array) -> Array:
    """The derivative of log(1 + w) / w."""
    near = np.abs(w) < 0.3
    far = np.where(near, 1.0, w)
    closed = (over(1.0, 1 + far) - np.log1p(far) / far) / far
    return np.where(near, polynomial(_LOG_RATIO_SLOPE, np.where(near, w, 0.0)), closed)


# spence(z) = −∫₁ᶻ log t / (t − 1) dt (DLMF 25.12.2, of 1 − z)
each("spence", lambda x: -log1p_ratio(x - 1), at=[real(0.2, 4)])

# --- Box and Cox's transformation ------------------------------------------------------------------------
#
# boxcox(x, λ) = (x^λ − 1) / λ = L exprel(λ L) with L = log x, which holds at λ = 0 too.


def boxcox_in_exponent(log_x: Array, exponent: Array) -> Array:
    """∂/∂λ of (x^λ − 1) / λ. At x = 0 the value is −1/λ for λ > 0."""
    zero = np.isneginf(log_x)
    safe = np.where(zero, 0.0, log_x)
    at_zero = np.where(exponent > 0, 1 / np.where(zero & (exponent > 0), exponent, 1.0) ** 2, np.nan)
    return np.where(zero, at_zero, safe * safe * exprel_slope(exponent * safe))


def _log(x: Array) -> Array:
    """log x, without a warning at zero, for which the callers have a value of their own."""
    return np.where(x == 0, -np.inf, np.log(np.where(x == 0, 1.0, x)))


each(
    "boxcox",
    lambda a, b: np.power(a, b - 1.0),
    lambda a, b: boxcox_in_exponent(_log(a), b),
    at=[real(0.3, 3), real(-2, 2)],
)
each(
    "boxcox1p",
    lambda a, b: np.power(1 + a, b - 1.0),
    lambda a, b: boxcox_in_exponent(np.where(a == -1, -np.inf, np.log1p(np.where(a == -1, 0.0, a))), b),
    at=[real(-0.7, 2), real(-2, 2)],
)
# x = (1 + λ y)^(1/λ) = exp(y log(1 + λ y) / (λ y))
each(
    "inv_boxcox",
    lambda y, a, b: y / (1 + a * b),
    lambda y, a, b: y * a * a * log1p_ratio_slope(a * b),
    at=[real(-0.4, 2), real(-0.4, 2)],
)
each(
    "inv_boxcox1p",
    lambda y, a, b: (y + 1) / (1 + a * b),
    lambda y, a, b: (y + 1) * a * a * log1p_ratio_slope(a * b),
    at=[real(-0.4, 2), real(-0.4, 2)],
)

# --- Logistic functions ----------------------------------------------------------------------------------

# The product keeps all digits in both tails, and so do its derivatives.
each("expit", lambda x: special.expit(x) * special.expit(-x), at=[real(-4, 4)])
each("logit", one_over(lambda x: x * (1 - x)), at=[real(0.1, 0.9)])
each("log_expit", lambda x: special.expit(-x), at=[real(-4, 4)])
each("softplus", lambda x: special.expit(x), at=[real(-4, 4)])

# --- Products with logarithms, entropies -----------------------------------------------------------------


def quotient_or_zero(a: Array, b: Array) -> Array:
    """a / b, and 0 where a is: what multiplies log b has its zero for all b."""
    return a / np.where(a == 0, 1.0, b)


def log_quotient(a: Array, b: Array) -> Array:
    """log(a / b), to all digits near a = b."""
    near = np.abs(a - b) < 0.5 * np.abs(b)
    close = np.log1p(np.where(near, a - b, 0.0) / np.where(near, b, 1.0))
    return np.where(near, close, np.log(np.where(near, 1.0, a)) - np.log(np.where(near, 1.0, b)))


each("xlogy", lambda b: np.log(b), lambda a, b: quotient_or_zero(a, b), at=[real(0.3, 3), real(0.3, 3)])
each("xlog1py", lambda b: np.log1p(b), lambda a, b: quotient_or_zero(a, 1 + b), at=[real(0.3, 3), real(-0.7, 3)])
each("entr", lambda x: -np.log(x) - 1, at=[real(0.3, 3)])
each(
    "rel_entr",
    lambda a, b: log_quotient(a, b) + 1,
    lambda a, b: -quotient_or_zero(a, b),
    at=[real(0.3, 3), real(0.3, 3)],
)
each(
    "kl_div",
    lambda a, b: log_quotient(a, b),
    lambda a, b: np.where(a == 0, 1.0, (b - a) / np.where(a == 0, 1.0, b)),
    at=[real(0.3, 3), real(0.3, 3)],
)

# --- Huber's losses ----------------------------------------------------------------------------------------

each(
    "huber",
    lambda a, b: np.maximum(np.abs(b) - a, 0.0),
    lambda a, b: np.where(np.abs(b) <= a, b, a * np.sign(b)),
    at=[real(0.5, 1), real(-3, 3)],
)


def pseudo_huber_in_delta(delta: Array, r: Array) -> Array:
    """∂/∂δ of δ²(√(1 + (r/δ)²) − 1), which is r⁴ / (h (δ + h)²) with h = √(δ² + r²), without cancellation."""
    h = np.hypot(delta, r)
    square = r / np.where(h == 0, 1.0, delta + h)
    return quotient_or_zero(r * r * square * square, h)


each(
    "pseudo_huber",
    lambda a, b: pseudo_huber_in_delta(a, b),
    lambda a, b: quotient_or_zero(a * b, np.hypot(a, b)),
    at=[real(0.5, 2), real(-3, 3)],
)
