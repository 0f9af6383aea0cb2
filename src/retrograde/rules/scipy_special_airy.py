"""Airy, Kelvin and Struve functions, and the integrals of Bessel, Airy and Struve functions."""

from __future__ import annotations

import math
from typing import Any

from scipy import special

from retrograde.errors import MissingRuleError
from retrograde.originals import np
from retrograde.rules.points import call, complex_, real
from retrograde.rules.scipy_special_dispatch import each, several
from retrograde.rules.scipy_special_elementary import polynomial
from retrograde.rules.scipy_special_slopes import slope

Array = Any

# --- Airy functions (DLMF 9.2.1: w″ = z w) -----------------------------------------------------------------


def airy_slopes(y: Any, z: Array) -> tuple[Array, ...]:
    ai, ai_slope, bi, bi_slope = y
    return ai_slope, z * ai, bi_slope, z * bi


def airye_slopes(y: Any, z: Array) -> tuple[Array, ...]:
    """Ai and Ai′ are scaled by exp(ζ), Bi and Bi′ by exp(−|Re ζ|), with ζ = ⅔ z^(3/2)."""
    if np.iscomplexobj(z):
        raise MissingRuleError(
            "scipy.special.airye of a complex argument is not holomorphic, and has no derivative rule",
            "scipy.special.airy(z), times a scale of your own",
        )
    ai, ai_slope, bi, bi_slope = y
    root = np.sqrt(np.maximum(z, 0.0))
    return ai_slope + root * ai, z * ai + root * ai_slope, bi_slope - root * bi, z * bi - root * bi_slope


several("airy", airy_slopes, at=[call(real(-3, 2, 2, 3)), call(complex_(-1, 1, 3))])
several("airye", airye_slopes, at=[call(real(0.5, 3, 2, 3))])


def itairy_slopes(y: Any, x: Array) -> tuple[Array, ...]:
    """∫₀ˣ of Ai(t), Bi(t), Ai(−t) and Bi(−t)."""
    ai, _, bi, _ = special.airy(x)
    ai_back, _, bi_back, _ = special.airy(-x)
    return ai, bi, ai_back, bi_back


# SciPy sums its series to five digits only, which at small arguments is enough for the laws.
several("itairy", itairy_slopes, at=[call(real(0.05, 0.2, 2, 3))])

# --- Kelvin functions --------------------------------------------------------------------------------------
#
# w = ber + i bei and w = ker + i kei solve w″ + w′/x = i w (DLMF 10.61.3, with n = 0).

# ber′/x and bei′/x near 0: ber + i bei = Σ (i x²/4)ᵏ / k!² (DLMF 10.65.1), of which the derivative is divided by x.
_RISE = [1j ** (k + 1) / (2 * 4**k * math.factorial(k) * math.factorial(k + 1)) for k in range(14)]


def _over_x(slope_of: Any, x: Array, part: str) -> Array:
    """ber′(x)/x or bei′(x)/x, right to all orders at 0."""
    near = np.abs(x) < 1
    coefficients = [float(getattr(c, part)) for c in _RISE]
    inside, outside = np.where(near, x, 0.0), np.where(near, 1.0, x)
    return np.where(near, polynomial(coefficients, inside * inside), slope_of(outside) / outside)


each("ber", lambda x: special.berp(x), at=[real(-3, 3)])
each("bei", lambda x: special.beip(x), at=[real(-3, 3)])
each("ker", lambda x: special.kerp(x), at=[real(0.3, 3)])
each("kei", lambda x: special.keip(x), at=[real(0.3, 3)])
each("berp", lambda x: -special.bei(x) - _over_x(special.berp, x, "real"), at=[real(-3, 3)])
each("beip", lambda x: special.ber(x) - _over_x(special.beip, x, "imag"), at=[real(-3, 3)])
each("kerp", lambda y, x: -special.kei(x) - y / x, at=[real(0.3, 3)])
each("keip", lambda y, x: special.ker(x) - y / x, at=[real(0.3, 3)])


def kelvin_slopes(y: Any, x: Array) -> tuple[Array, ...]:
    first, second, first_slope, second_slope = y
    return first_slope, second_slope, 1j * first - first_slope / x, 1j * second - second_slope / x


several("kelvin", kelvin_slopes, at=[call(real(0.5, 3, 2, 3))])

# --- Struve functions --------------------------------------------------------------------------------------


def _struve_term(v: Any, x: Array) -> Array:
    """(x/2)^ν / (√π Γ(ν + 3/2))."""
    return np.power(0.5 * x, v * 1.0) * special.rgamma(v + 1.5) / math.sqrt(math.pi)


def struve_in_x(v: Any, x: Array) -> Array:
    """DLMF 11.4.24 and 11.4.23."""
    return 0.5 * (special.struve(v - 1, x) - special.struve(v + 1, x) + _struve_term(v, x))


def modstruve_in_x(v: Any, x: Array) -> Array:
    """DLMF 11.4.26 and 11.4.25."""
    return 0.5 * (special.modstruve(v - 1, x) + special.modstruve(v + 1, x) + _struve_term(v, x))


each(
    "struve",
    lambda a, b: slope(special.struve, (1, 0), a, b),
    lambda a, b: struve_in_x(a, b),
    at=[real(-0.5, 3), real(0.5, 5)],
)
each(
    "modstruve",
    lambda a, b: slope(special.modstruve, (1, 0), a, b),
    lambda a, b: modstruve_in_x(a, b),
    at=[real(-0.5, 3), real(0.5, 3)],
)

# --- Integrals ---------------------------------------------------------------------------------------------

# (I₀(x) − 1)/x = Σ (x/2)²ᵏ / (k!² x) for k > 0, and with alternating signs (1 − J₀(x))/x (DLMF 10.25.2, 10.2.2).
_I0_REST = [1 / (4**k * math.factorial(k) ** 2) for k in range(1, 12)]
_J0_REST = [(-1) ** k * c for k, c in enumerate(_I0_REST)]


def _rest_over_x(coefficients: list[float], closed: Any, x: Array) -> Array:
    near = np.abs(x) < 1
    inside, outside = np.where(near, x, 0.0), np.where(near, 1.0, x)
    return np.where(near, inside * polynomial(coefficients, inside * inside), closed(outside) / outside)


several("itj0y0", lambda y, x: (special.j0(x), special.y0(x)), at=[call(real(0.3, 5, 2, 3))])
several("iti0k0", lambda y, x: (special.i0(x), special.k0(x)), at=[call(real(0.3, 3, 2, 3))])
several(
    "it2j0y0",  # ∫₀ˣ (1 − J₀(t))/t dt, ∫ₓ^∞ Y₀(t)/t dt
    lambda y, x: (_rest_over_x(_J0_REST, lambda t: 1 - special.j0(t), x), -special.y0(x) / x),
    at=[call(real(0.3, 5, 2, 3))],
)
several(
    "it2i0k0",  # ∫₀ˣ (I₀(t) − 1)/t dt, ∫ₓ^∞ K₀(t)/t dt
    lambda y, x: (_rest_over_x(_I0_REST, lambda t: special.i0(t) - 1, x), -special.k0(x) / x),
    at=[call(real(0.3, 3, 2, 3))],
)
each("itstruve0", lambda x: special.struve(0, x), at=[real(0.5, 5)])
each("itmodstruve0", lambda x: special.modstruve(0, x), at=[real(0.5, 3)])
each("it2struve0", lambda x: -special.struve(0, x) / x, at=[real(0.5, 5)])  # ∫ₓ^∞ H₀(t)/t dt


def besselpoly_in_a(a: Array, power: Array, v: Any) -> Array:
    """∂/∂a of ∫₀¹ x^λ J_ν(2ax) dx, where J_ν′ = ½ (J_{ν−1} − J_{ν+1})."""
    return special.besselpoly(a, power + 1, v - 1) - special.besselpoly(a, power + 1, v + 1)


each(
    "besselpoly",
    lambda a, b, c: besselpoly_in_a(a, b, c),
    lambda a, b, c: slope(special.besselpoly, (0, 1, 0), a, b, c),
    lambda a, b, c: slope(special.besselpoly, (0, 0, 1), a, b, c),
    at=[real(0.5, 2), real(0.2, 2), real(1.2, 3)],
)
