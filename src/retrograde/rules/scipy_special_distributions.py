"""Distribution functions made of the incomplete beta function, and the normal and Tukey's lambda distributions."""

from __future__ import annotations

from typing import Any

from scipy import special

from retrograde.originals import np
from retrograde.rules.points import real
from retrograde.rules.scipy_special_dispatch import each, integer
from retrograde.rules.scipy_special_elementary import boxcox_in_exponent
from retrograde.rules.scipy_special_error_functions import normal_density
from retrograde.rules.scipy_special_incomplete import beta_density, beta_in_shape
from retrograde.rules.scipy_special_slopes import slope

Array = Any

SHARE = real(0.1, 0.9)
FIVE = np.int64(5)  # an integer also beside single precision, where SciPy warns of any other number of trials

# --- Student's t (Abramowitz and Stegun (1964), 26.7.1) -------------------------------------------------------------


def t_tail(df: Array, t: Array, upper: Array) -> Array:
    """The distribution function, or what differs from it by a constant: minus the upper tail."""
    return np.where(upper, -special.stdtr(df, -t), special.stdtr(df, t))


def t_in_freedom(df: Array, t: Array) -> Array:
    return slope(t_tail, (1, 0, 0), df, t, np.greater(t, 0))


def t_density(df: Array, t: Array) -> Array:
    normal = np.isinf(df)
    v = np.where(normal, 1.0, df)
    density = np.exp(-0.5 * (v + 1) * np.log1p(t * t / v) - special.betaln(0.5 * v, 0.5)) / np.sqrt(v)
    return np.where(normal, normal_density(t), density)


each("stdtr", lambda a, b: t_in_freedom(a, b), lambda a, b: t_density(a, b), at=[real(1, 9), real(-3, 3)])
each(
    "stdtrit",
    lambda y, a: -t_in_freedom(a, y) / t_density(a, y),
    lambda y, a: 1 / t_density(a, y),
    at=[real(1, 9), real(0.1, 0.9)],
)
each(
    "stdtridf",  # of p and t
    lambda y, b: 1 / t_in_freedom(y, b),
    lambda y, b: -t_density(y, b) / t_in_freedom(y, b),
    at=[real(0.7, 0.72), real(0.65, 0.7)],
)

# --- Fisher's F: Iₓ(n/2, d/2) at x = n f/(d + n f) (ibid., 26.6.2) ---------------------------------------------------


def f_tail(dfn: Array, dfd: Array, f: Array, upper: Array) -> Array:
    return np.where(upper, -special.fdtrc(dfn, dfd, f), special.fdtr(dfn, dfd, f))


def f_in_freedom(i: int, dfn: Array, dfd: Array, f: Array) -> Array:
    return slope(f_tail, (1, 0, 0, 0) if i == 0 else (0, 1, 0, 0), dfn, dfd, f, np.greater(f, 1))


def f_density(dfn: Array, dfd: Array, f: Array) -> Array:
    whole = dfd + dfn * f
    share = dfd / whole
    return beta_density(0.5 * dfn, 0.5 * dfd, dfn * f / whole, share) * share * dfn / whole


each(
    "fdtr",
    lambda a, b, c: f_in_freedom(0, a, b, c),
    lambda a, b, c: f_in_freedom(1, a, b, c),
    lambda a, b, c: f_density(a, b, c),
    at=[real(1, 6), real(1, 6), real(0.3, 3)],
)
each(
    "fdtrc",
    lambda a, b, c: -f_in_freedom(0, a, b, c),
    lambda a, b, c: -f_in_freedom(1, a, b, c),
    lambda a, b, c: -f_density(a, b, c),
    at=[real(1, 6), real(1, 6), real(0.3, 3)],
)
each(
    "fdtri",
    lambda y, a, b: -f_in_freedom(0, a, b, y) / f_density(a, b, y),
    lambda y, a, b: -f_in_freedom(1, a, b, y) / f_density(a, b, y),
    lambda y, a, b: 1 / f_density(a, b, y),
    at=[real(1, 6), real(1, 6), real(0.1, 0.9)],
)
each(
    "fdtridfd",  # of dfn, p and f
    lambda y, a, c: -f_in_freedom(0, a, y, c) / f_in_freedom(1, a, y, c),
    lambda y, a, c: 1 / f_in_freedom(1, a, y, c),
    lambda y, a, c: -f_density(a, y, c) / f_in_freedom(1, a, y, c),
    at=[real(4, 6), real(0.86, 0.89), real(2.3, 2.5)],
)

# --- Binomial: I₁₋ₚ(n − ⌊k⌋, ⌊k⌋ + 1) (DLMF 8.17.5); the inverses bdtrik and bdtrin go through all real numbers -------


def binomial_density(k: Any, n: Any, p: Array) -> Array:
    """−∂/∂p of the distribution function."""
    return beta_density(n - k, k + 1.0, 1 - p, p)


def binomial_in_k(k: Array, n: Array, p: Array) -> Array:
    a, b = n - k, k + 1
    return beta_in_shape(1, a, b, 1 - p, p) - beta_in_shape(0, a, b, 1 - p, p)


def binomial_in_n(k: Array, n: Array, p: Array) -> Array:
    return beta_in_shape(0, n - k, k + 1, 1 - p, p)


each(
    "bdtr",
    0.0,
    integer("bdtr", "n"),
    lambda a, b, c: -binomial_density(np.floor(a), b, c),
    at=[real(2.1, 2.9), FIVE, SHARE],
)
each(
    "bdtrc",
    0.0,
    integer("bdtrc", "n"),
    lambda a, b, c: binomial_density(np.floor(a), b, c),
    at=[real(2.1, 2.9), FIVE, SHARE],
)
each(
    "bdtri",
    0.0,
    integer("bdtri", "n"),
    lambda y, a, b: -1 / binomial_density(np.floor(a), b, y),
    at=[real(2.1, 2.9), FIVE, SHARE],
)
each(
    "bdtrik",  # of y, n and p
    lambda y, b, c: 1 / binomial_in_k(y, b, c),
    lambda y, b, c: -binomial_in_n(y, b, c) / binomial_in_k(y, b, c),
    lambda y, b, c: binomial_density(y, b, c) / binomial_in_k(y, b, c),
    at=[real(0.5, 0.9), real(5, 9), real(0.3, 0.7)],
)
each(
    "bdtrin",  # of k, y and p
    lambda y, a, c: -binomial_in_k(a, y, c) / binomial_in_n(a, y, c),
    lambda y, a, c: 1 / binomial_in_n(a, y, c),
    lambda y, a, c: binomial_density(a, y, c) / binomial_in_n(a, y, c),
    at=[real(2, 4), real(0.3, 0.7), real(0.3, 0.7)],
)

# --- Negative binomial: Iₚ(n, k + 1) --------------------------------------------------------------------------------


def negative_density(k: Any, n: Any, p: Array) -> Array:
    return beta_density(n * 1.0, k + 1.0, p, 1 - p)


def negative_in(i: int, k: Array, n: Array, p: Array) -> Array:
    """The derivative in n (0) or in k (1)."""
    return beta_in_shape(i, n, k + 1, p, 1 - p)


each(
    "nbdtr",
    integer("nbdtr", "k"),
    integer("nbdtr", "n"),
    lambda a, b, c: negative_density(a, b, c),
    at=[2, 3, SHARE],
)
each(
    "nbdtrc",
    integer("nbdtrc", "k"),
    integer("nbdtrc", "n"),
    lambda a, b, c: -negative_density(a, b, c),
    at=[2, 3, SHARE],
)
each(
    "nbdtri",
    integer("nbdtri", "k"),
    integer("nbdtri", "n"),
    lambda y, a, b: 1 / negative_density(a, b, y),
    at=[2, 3, SHARE],
)
each(
    "nbdtrik",  # of y, n and p
    lambda y, b, c: 1 / negative_in(1, y, b, c),
    lambda y, b, c: -negative_in(0, y, b, c) / negative_in(1, y, b, c),
    lambda y, b, c: -negative_density(y, b, c) / negative_in(1, y, b, c),
    at=[real(0.5, 0.9), real(3, 6), real(0.3, 0.5)],
)
each(
    "nbdtrin",  # of k, y and p
    lambda y, a, c: -negative_in(1, a, y, c) / negative_in(0, a, y, c),
    lambda y, a, c: 1 / negative_in(0, a, y, c),
    lambda y, a, c: -negative_density(a, y, c) / negative_in(0, a, y, c),
    at=[real(3, 6), real(0.3, 0.7), real(0.3, 0.5)],
)

# --- Normal: the mean and the deviation that give a probability -------------------------------------------------------


def standardised(mean: Array, deviation: Array, x: Array) -> Array:
    return (x - mean) / deviation


each(
    "nrdtrimn",  # of p, the deviation and x
    lambda y, b, c: -b / normal_density(standardised(y, b, c)),
    lambda y, b, c: -standardised(y, b, c),
    1.0,
    at=[SHARE, real(0.5, 2), real(-2, 2)],
)
each(
    "nrdtrisd",  # of the mean, p and x
    lambda y, a, c: -y / (c - a),
    lambda y, a, c: -y * y / ((c - a) * normal_density(standardised(a, y, c))),
    lambda y, a, c: y / (c - a),
    at=[real(-2, 0), real(0.6, 0.9), real(1, 2)],
)

# --- Tukey's lambda: the inverse of x = boxcox(p, λ) − boxcox(1 − p, λ) ------------------------------------------


def _tukey_inside(p: Array) -> tuple[Array, Array]:
    """Whether x is inside the support, and a p that is safe elsewhere."""
    inside = (p > 0) & (p < 1)
    return inside, np.where(inside, p, 0.5)


def tukey_in_x(y: Array, shape: Array) -> Array:
    inside, p = _tukey_inside(y)
    return np.where(inside, 1 / (np.power(p, shape - 1.0) + np.power(1 - p, shape - 1.0)), 0.0)


def tukey_in_shape(y: Array, shape: Array) -> Array:
    inside, p = _tukey_inside(y)
    change = boxcox_in_exponent(np.log(p), shape) - boxcox_in_exponent(np.log1p(-p), shape)
    return np.where(inside, -change * tukey_in_x(p, shape), 0.0)


each("tklmbda", lambda y, b: tukey_in_x(y, b), lambda y, b: tukey_in_shape(y, b), at=[real(-0.8, 0.8), real(-1, 1)])
