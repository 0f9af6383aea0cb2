"""The incomplete gamma and beta functions, their inverses, and the distribution functions made of the former.

In the argument they have their densities; in the shapes, for which DLMF has no finite formula, they are
differentiated by `slope`, on the side of the smaller tail, so that the tails keep their relative accuracy.
Inverse functions follow from the implicit function theorem.
"""

from __future__ import annotations

import math
from typing import Any

from scipy import special

from retrograde.originals import np
from retrograde.rules.points import real
from retrograde.rules.scipy_special_dispatch import each, integer
from retrograde.rules.scipy_special_elementary import polynomial
from retrograde.rules.scipy_special_slopes import slope

Array = Any

# --- Densities ---------------------------------------------------------------------------------------------
#
# The plain formula is the exponential of a difference of numbers as large as a log a. For large a, Γ(a) is
# √(2π/a) (a/e)ᵃ exp Δ(a) with Stirling's series Δ (DLMF 5.11.1), and what stands in the exponent is small near the mode
# (Loader (2000), "Fast and accurate computation of binomial probabilities").

_LARGE = 20.0
_STIRLING = [1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156]
_DEVIANCE = [(-1) ** k / (k + 2) for k in range(34)]


def _stirling(a: Array) -> Array:
    return polynomial(_STIRLING, 1 / (a * a)) / a


def _deviance(w: Array) -> Array:
    """w − log(1 + w)."""
    near = np.abs(w) < 0.3
    small, far = np.where(near, w, 0.0), np.where(near, 0.0, w)
    return np.where(near, small * small * polynomial(_DEVIANCE, small), far - np.log1p(far))


def gamma_density(a: Array, x: Array) -> Array:
    """xᵃ⁻¹ e⁻ˣ / Γ(a)."""
    large = (a > _LARGE) & (x > 0)
    b, z = np.where(large, a, 1.0), np.where(large, x, 1.0)
    by_stirling = np.sqrt(b / (2 * math.pi)) / z * np.exp(-b * _deviance((z - b) / b) - _stirling(b))
    c, u = np.where(large, 1.0, a), np.where(large, 1.0, x)
    return np.where(large, by_stirling, np.exp(special.xlogy(c - 1, u) - u - special.gammaln(c)))


def beta_density(a: Array, b: Array, x: Array, rest: Array) -> Array:
    """xᵃ⁻¹ (1 − x)ᵇ⁻¹ / B(a, b), where `rest` is 1 − x, to all its digits."""
    large = (a > _LARGE) & (b > _LARGE) & (x > 0) & (rest > 0)
    p, q = np.where(large, a, 1.0), np.where(large, b, 1.0)
    u, v = np.where(large, x, 0.5), np.where(large, rest, 0.5)
    n = p + q
    # x − a/(a + b), with the digits of whichever of x and 1 − x is small
    gap = np.where(u < 0.5, u - p / n, q / n - v)
    exponent = _stirling(n) - _stirling(p) - _stirling(q) - p * _deviance(gap * n / p) - q * _deviance(-gap * n / q)
    by_stirling = np.sqrt(p * q / (2 * math.pi * n)) / (u * v) * np.exp(exponent)
    c, d = np.where(large, 1.0, a), np.where(large, 1.0, b)
    direct = special.xlogy(c - 1, np.where(large, 0.5, x)) + special.xlogy(d - 1, np.where(large, 0.5, rest))
    return np.where(large, by_stirling, np.exp(direct - special.betaln(c, d)))


# --- Derivatives in the shapes -----------------------------------------------------------------------------


def gamma_tail(a: Array, x: Array, upper: Array) -> Array:
    """P(a, x), or what differs from it by a constant: −Q(a, x), where `upper` says so."""
    return np.where(upper, -special.gammaincc(a, x), special.gammainc(a, x))


def gamma_in_shape(a: Array, x: Array) -> Array:
    """∂P(a, x)/∂a, where P = 1 − Q is the regularised lower function (DLMF 8.2.4)."""
    return slope(gamma_tail, (1, 0, 0), a, x, np.greater(x, a))


def beta_tail(a: Array, b: Array, x: Array, rest: Array, upper: Array) -> Array:
    """Iₓ(a, b), or what differs from it by a constant: −I₁₋ₓ(b, a) (DLMF 8.17.4)."""
    return np.where(upper, -special.betainc(b, a, rest), special.betainc(a, b, x))


def beta_in_shape(i: int, a: Array, b: Array, x: Array, rest: Array) -> Array:
    """The derivative of Iₓ(a, b) in its first or second shape."""
    orders = (1, 0, 0, 0, 0) if i == 0 else (0, 1, 0, 0, 0)
    return slope(beta_tail, orders, a, b, x, rest, np.greater(x * (a + b), a))


# --- The incomplete gamma function (DLMF 8.2) ------------------------------------------------------------------

SHAPE = real(0.5, 5)

each(
    "gammainc",
    lambda a, b: gamma_in_shape(a, b),
    lambda a, b: gamma_density(a, b),
    at=[SHAPE, real(0.3, 6)],
)
each(
    "gammaincc",
    lambda a, b: -gamma_in_shape(a, b),
    lambda a, b: -gamma_density(a, b),
    at=[SHAPE, real(0.3, 6)],
)
each(
    "gammaincinv",
    lambda y, a: -gamma_in_shape(a, y) / gamma_density(a, y),
    lambda y, a: 1 / gamma_density(a, y),
    at=[SHAPE, real(0.1, 0.9)],
)
each(
    "gammainccinv",
    lambda y, a: -gamma_in_shape(a, y) / gamma_density(a, y),
    lambda y, a: -1 / gamma_density(a, y),
    at=[SHAPE, real(0.1, 0.9)],
)

# --- χ²: P(v/2, x/2) ---------------------------------------------------------------------------------------------


def chi_in_freedom(v: Array, x: Array) -> Array:
    return 0.5 * gamma_in_shape(0.5 * v, 0.5 * x)


def chi_density(v: Array, x: Array) -> Array:
    return 0.5 * gamma_density(0.5 * v, 0.5 * x)


each("chdtr", lambda a, b: chi_in_freedom(a, b), lambda a, b: chi_density(a, b), at=[real(1, 6), real(0.5, 9)])
each("chdtrc", lambda a, b: -chi_in_freedom(a, b), lambda a, b: -chi_density(a, b), at=[real(1, 6), real(0.5, 9)])
each(
    "chdtri",
    lambda y, a: -chi_in_freedom(a, y) / chi_density(a, y),
    lambda y, a: -1 / chi_density(a, y),
    at=[real(1, 6), real(0.1, 0.9)],
)
each(
    "chdtriv",
    lambda y, b: 1 / chi_in_freedom(y, b),
    lambda y, b: -chi_density(y, b) / chi_in_freedom(y, b),
    at=[real(0.1, 0.9), real(2, 9)],
)

# --- The gamma distribution of rate a and shape b: P(b, a x) ------------------------------------------------------

each(
    "gdtr",
    lambda a, b, c: c * gamma_density(b, a * c),
    lambda a, b, c: gamma_in_shape(b, a * c),
    lambda a, b, c: a * gamma_density(b, a * c),
    at=[real(0.5, 2), SHAPE, real(0.3, 4)],
)
each(
    "gdtrc",
    lambda a, b, c: -c * gamma_density(b, a * c),
    lambda a, b, c: -gamma_in_shape(b, a * c),
    lambda a, b, c: -a * gamma_density(b, a * c),
    at=[real(0.5, 2), SHAPE, real(0.3, 4)],
)
each(
    "gdtria",  # of p, b and x
    lambda y, b, c: 1 / (c * gamma_density(b, y * c)),
    lambda y, b, c: -gamma_in_shape(b, y * c) / (c * gamma_density(b, y * c)),
    lambda y, c: -y / c,
    at=[real(0.1, 0.9), SHAPE, real(0.3, 4)],
)
each(
    "gdtrib",  # of a, p and x
    lambda y, a, c: -c * gamma_density(y, a * c) / gamma_in_shape(y, a * c),
    lambda y, a, c: 1 / gamma_in_shape(y, a * c),
    lambda y, a, c: -a * gamma_density(y, a * c) / gamma_in_shape(y, a * c),
    at=[real(0.5, 2), real(0.1, 0.9), real(1, 4)],
)
each(
    "gdtrix",  # of a, b and p
    lambda y, a: -y / a,
    lambda y, a, b: -gamma_in_shape(b, a * y) / (a * gamma_density(b, a * y)),
    lambda y, a, b: 1 / (a * gamma_density(b, a * y)),
    at=[real(0.5, 2), SHAPE, real(0.1, 0.9)],
)

# --- Poisson: Q(⌊k⌋ + 1, m), a step function of k; its inverse pdtrik goes through all real k -----------------


def poisson_probability(k: Any, m: Array) -> Array:
    return gamma_density(np.floor(k) + 1, m)


each("pdtr", 0.0, lambda a, b: -poisson_probability(a, b), at=[real(2.1, 2.9), real(0.5, 5)])
each("pdtrc", 0.0, lambda a, b: poisson_probability(a, b), at=[real(2.1, 2.9), real(0.5, 5)])
each("pdtri", integer("pdtri", "k"), lambda y, a: -1 / poisson_probability(a, y), at=[2, real(0.1, 0.9)])
each(
    "pdtrik",  # of p and m
    lambda y, b: -1 / gamma_in_shape(y + 1, b),
    lambda y, b: -gamma_density(y + 1, b) / gamma_in_shape(y + 1, b),
    at=[real(0.3, 0.9), real(3, 6)],
)

# --- The incomplete beta function (DLMF 8.17) --------------------------------------------------------------------

SHARE = real(0.1, 0.9)

each(
    "betainc",
    lambda a, b, c: beta_in_shape(0, a, b, c, 1 - c),
    lambda a, b, c: beta_in_shape(1, a, b, c, 1 - c),
    lambda a, b, c: beta_density(a, b, c, 1 - c),
    at=[SHAPE, SHAPE, SHARE],
)
each(
    "betaincc",
    lambda a, b, c: -beta_in_shape(0, a, b, c, 1 - c),
    lambda a, b, c: -beta_in_shape(1, a, b, c, 1 - c),
    lambda a, b, c: -beta_density(a, b, c, 1 - c),
    at=[SHAPE, SHAPE, SHARE],
)
each(
    "betaincinv",
    lambda y, a, b: -beta_in_shape(0, a, b, y, 1 - y) / beta_density(a, b, y, 1 - y),
    lambda y, a, b: -beta_in_shape(1, a, b, y, 1 - y) / beta_density(a, b, y, 1 - y),
    lambda y, a, b: 1 / beta_density(a, b, y, 1 - y),
    at=[SHAPE, SHAPE, SHARE],
)
each(
    "betainccinv",
    lambda y, a, b: -beta_in_shape(0, a, b, y, 1 - y) / beta_density(a, b, y, 1 - y),
    lambda y, a, b: -beta_in_shape(1, a, b, y, 1 - y) / beta_density(a, b, y, 1 - y),
    lambda y, a, b: -1 / beta_density(a, b, y, 1 - y),
    at=[SHAPE, SHAPE, SHARE],
)
each(
    "btdtria",  # of p, b and x
    lambda y, b, c: 1 / beta_in_shape(0, y, b, c, 1 - c),
    lambda y, b, c: -beta_in_shape(1, y, b, c, 1 - c) / beta_in_shape(0, y, b, c, 1 - c),
    lambda y, b, c: -beta_density(y, b, c, 1 - c) / beta_in_shape(0, y, b, c, 1 - c),
    at=[real(0.3, 0.9), SHAPE, real(0.3, 0.7)],
)
each(
    "btdtrib",  # of a, p and x
    lambda y, a, c: -beta_in_shape(0, a, y, c, 1 - c) / beta_in_shape(1, a, y, c, 1 - c),
    lambda y, a, c: 1 / beta_in_shape(1, a, y, c, 1 - c),
    lambda y, a, c: -beta_density(a, y, c, 1 - c) / beta_in_shape(1, a, y, c, 1 - c),
    at=[SHAPE, real(0.3, 0.9), real(0.3, 0.7)],
)
