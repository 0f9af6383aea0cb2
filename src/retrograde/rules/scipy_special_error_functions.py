"""Error functions, the normal distribution, Fresnel, exponential, sine and cosine integrals."""

from __future__ import annotations

import math
from typing import Any

from scipy import special

from retrograde.originals import np
from retrograde.rules.points import call, complex_, real
from retrograde.rules.products import over
from retrograde.rules.scipy_special_dispatch import each, integer, several
from retrograde.rules.scipy_special_elementary import polynomial

Array = Any

ROOT_PI = math.sqrt(math.pi)
TWO_OVER_ROOT_PI = 2 / ROOT_PI
ROOT_HALF = math.sqrt(0.5)
ROOT_2_PI = math.sqrt(2 * math.pi)

# --- The error function and its relatives ----------------------------------------------------------------
#
# The derivative of erfcx is 2x erfcx(x) − 2/√π (DLMF 7.10.2), of which 2x² parts cancel for large x. The asymptotic
# series (DLMF 7.12.1) has no such trouble: erfcx(x) = 1/(√π x) Σ (−1)ᵐ (½)ₘ x⁻²ᵐ, from which, with the terms
# differentiated, erfcx′(x) = −1/(√π x²) Σ (2m + 1) (−1)ᵐ (½)ₘ x⁻²ᵐ. At |x| = 7 its thirtieth term is below 1e-18.

_FAR = 7.0
_RISING_HALVES = np.cumprod([1.0, *(np.arange(30) + 0.5)])
_SERIES = [float((2 * m + 1) * c) for m, c in enumerate(_RISING_HALVES)]
_ALTERNATING = [(-1) ** m * c for m, c in enumerate(_SERIES)]
_CURVATURE = [(2 * m + 2) * c for m, c in enumerate(_ALTERNATING)]


def erfcx_slope(z: Array) -> Array:
    """erfcx′, from the function at −z where Re z < 0, since erfcx(z) = 2 exp(z²) − erfcx(−z)."""
    left = np.real(z) < 0
    w = np.where(left, -z, z)
    far = np.abs(w) > _FAR
    near_w, far_w = np.where(far, 1.0, w), np.where(far, w, 1.0)
    closed = 2 * near_w * special.erfcx(near_w) - TWO_OVER_ROOT_PI
    square = 1 / (far_w * far_w)
    right = np.where(far, -square / ROOT_PI * polynomial(_ALTERNATING, square), closed)
    left_z = np.where(left, z, 0.0)
    return right + np.where(left, 4 * left_z * np.exp(left_z * left_z), 0.0)


def dawsn_slope(x: Array) -> Array:
    """1 − 2x F(x) (from DLMF 7.2.5), and −1/(2x²) Σ (2m + 1) (½)ₘ x⁻²ᵐ far out (7.12.1 turned by 90°).

    In the sectors around the imaginary axis F is large, and nothing cancels.
    """
    far = (np.abs(x) > _FAR) & (np.abs(np.imag(x)) < np.abs(np.real(x)))
    near_x, far_x = np.where(far, 0.0, x), np.where(far, x, 1.0)
    square = 1 / (far_x * far_x)
    return np.where(far, -0.5 * square * polynomial(_SERIES, square), 1 - 2 * near_x * special.dawsn(near_x))


each("erf", lambda x: TWO_OVER_ROOT_PI * np.exp(-x * x), at=[real(-2, 2)])
each("erfc", lambda x: -TWO_OVER_ROOT_PI * np.exp(-x * x), at=[real(-2, 2)])
each("erfi", lambda x: TWO_OVER_ROOT_PI * np.exp(x * x), at=[real(-1.5, 1.5)])
each("erfcx", lambda x: erfcx_slope(x), at=[real(-1, 9)])
each("dawsn", lambda x: dawsn_slope(x), at=[real(-9, 9)])
# w(z) = erfcx(−iz) (DLMF 7.2.3), complex also of real arguments.
several(
    "wofz",
    lambda y, z: -1j * erfcx_slope(-1j * z),
    at=[call(complex_(-2, 9, 2, 3)), call(real(-9, 9, 3))],
)
each("erfinv", lambda y: ROOT_PI / 2 * np.exp(y * y), at=[real(-0.9, 0.9)])
each("erfcinv", lambda y: -ROOT_PI / 2 * np.exp(y * y), at=[real(0.1, 1.9)])

# --- The normal distribution -----------------------------------------------------------------------------


def normal_density(x: Array) -> Array:
    """exp(−x²/2) / √(2π)."""
    return np.exp(-0.5 * x * x) / ROOT_2_PI


def inverse_mills(x: Array) -> Array:
    """φ(x) / Φ(x), by erfcx in the left tail, where both vanish, and as it stands on the right."""
    left = np.real(x) < 0
    tail = math.sqrt(2 / math.pi) / special.erfcx(np.where(left, x, 0.0) * -ROOT_HALF)
    right = np.where(left, 0.0, x)
    return np.where(left, tail, normal_density(right) / special.ndtr(right))


def mills(x: Array) -> Array:
    """Φ(x) / φ(x)."""
    return special.erfcx(-ROOT_HALF * x) * math.sqrt(math.pi / 2)


each("ndtr", lambda x: normal_density(x), at=[real(-3, 3)])
each("log_ndtr", lambda x: inverse_mills(x), at=[real(-9, 3)])
each("ndtri", lambda y: ROOT_2_PI * np.exp(0.5 * y * y), at=[real(0.05, 0.95)])
each("ndtri_exp", lambda y: mills(y), at=[real(-9, -0.1)])


def owens_t_in_h(h: Array, a: Array) -> Array:
    """Owen (1956), "Tables for computing bivariate normal probabilities": ∂T/∂h = −φ(h) (Φ(ah) − ½)."""
    return -0.5 * normal_density(h) * special.erf(ROOT_HALF * a * h)


def owens_t_in_a(h: Array, a: Array) -> Array:
    square = 1 + a * a
    return np.exp(-0.5 * h * h * square) / (2 * math.pi * square)


each("owens_t", lambda a, b: owens_t_in_h(a, b), lambda a, b: owens_t_in_a(a, b), at=[real(-2, 2), real(-2, 2)])

# --- Voigt's profile: a normal density with deviation σ, folded with a Cauchy density of half-width γ ---------
#
# V = Re w(z) / (σ √(2π)) with z = (x + iγ) / (σ √2) (DLMF 7.19.1), which solves ∂V/∂σ = σ ∂²V/∂x². At σ = 0 it is
# Cauchy's density −Im(1/(x + iγ)) / π.


def erfcx_curvature(z: Array) -> Array:
    """erfcx″ for Re z ≥ 0, as `erfcx_slope`."""
    far = np.abs(z) > _FAR
    near_z, far_z = np.where(far, 1.0, z), np.where(far, z, 1.0)
    closed = 2 * special.erfcx(near_z) + 2 * near_z * erfcx_slope(near_z)
    square = 1 / (far_z * far_z)
    return np.where(far, square / (far_z * ROOT_PI) * polynomial(_CURVATURE, square), closed)


def _voigt_argument(x: Array, sigma: Array, gamma: Array) -> tuple[Array, Array, Array, Array]:
    """Where σ = 0, a σ that is safe, −iz, and 1/(x + iγ)²."""
    still = sigma == 0
    s = np.where(still, 1.0, sigma)
    whole = x + 1j * gamma
    over = 1 / np.where(whole == 0, np.inf, whole)
    return still, s, whole * (-1j * ROOT_HALF) / s, over * over


def voigt_in_x(x: Array, sigma: Array, gamma: Array) -> Array:
    still, s, z, square = _voigt_argument(x, sigma, gamma)
    return np.where(still, np.imag(square) / math.pi, np.imag(erfcx_slope(z)) / (2 * ROOT_PI * s * s))


def voigt_in_gamma(x: Array, sigma: Array, gamma: Array) -> Array:
    still, s, z, square = _voigt_argument(x, sigma, gamma)
    return np.where(still, np.real(square) / math.pi, np.real(erfcx_slope(z)) / (2 * ROOT_PI * s * s))


def voigt_in_sigma(x: Array, sigma: Array, gamma: Array) -> Array:
    still, s, z, _ = _voigt_argument(x, sigma, gamma)
    return np.where(still, 0.0, -np.real(erfcx_curvature(z)) / (2 * ROOT_2_PI * s * s))


each(
    "voigt_profile",
    lambda a, b, c: voigt_in_x(a, b, c),
    lambda a, b, c: voigt_in_sigma(a, b, c),
    lambda a, b, c: voigt_in_gamma(a, b, c),
    at=[real(-2, 2), real(0.5, 2), real(0.5, 2)],
)

# --- Fresnel integrals (DLMF 7.2.7, 7.2.8) ----------------------------------------------------------------

several(
    "fresnel",
    lambda y, z: (np.sin(math.pi / 2 * z * z), np.cos(math.pi / 2 * z * z)),
    at=[call(real(-2, 2, 2, 3)), call(complex_(-1, 1, 3))],
)


def _modified_fresnel(sign: int) -> Any:
    """F±(x) = ∫ₓ exp(±it²) dt and K±(x) = ½ erfcx(x exp(∓iπ/4)) (Zhang and Jin (1996), 16.9)."""
    turn = complex(ROOT_HALF, -sign * ROOT_HALF)

    def slopes(y: Any, x: Array) -> tuple[Array, Array]:
        return -np.exp(sign * 1j * x * x), 0.5 * turn * erfcx_slope(turn * x)

    return slopes


several("modfresnelp", _modified_fresnel(1), at=[call(real(0.1, 2, 2, 3)), call(real(8, 9))])
several("modfresnelm", _modified_fresnel(-1), at=[call(real(0.1, 2, 2, 3)), call(real(8, 9))])

# --- Exponential, sine and cosine integrals -----------------------------------------------------------------


def sinhc(z: Array) -> Array:
    """sinh(z) / z by NumPy's sinc, whose derivatives are right at 0."""
    w = np.sinc(z * (1j / math.pi))
    return w if np.iscomplexobj(z) else np.real(w)


each("exp1", lambda x: over(-np.exp(-x), x), at=[real(0.3, 3)])  # DLMF 6.2.1
each("expi", lambda x: over(np.exp(x), x), at=[real(0.3, 3)])  # DLMF 6.2.5


def expn_slope(y: Array, n: Any, x: Array) -> Array:
    """−Eₙ₋₁ (DLMF 8.19.13), which for n = 0 is (exp(−x) + E₀) / x (8.19.12)."""
    first = np.less(n, 1)
    below = special.expn(np.maximum(np.subtract(n, 1), 0), np.where(first, 1.0, x))
    return -np.where(first, (np.exp(-x) + y) / np.where(first, x, 1.0), below)


each("expn", integer("expn", "n"), lambda y, a, b: expn_slope(y, a, b), at=[3, real(0.3, 3)])

several(
    "sici",
    lambda y, z: (np.sinc(z * (1 / math.pi)), over(np.cos(z), z)),  # DLMF 6.2.9, 6.2.11
    at=[call(real(0.3, 5, 2, 3)), call(complex_(0.3, 2, 3))],
)
several(
    "shichi",
    lambda y, z: (sinhc(z), over(np.cosh(z), z)),  # DLMF 6.2.15, 6.2.16
    at=[call(real(0.3, 3, 2, 3)), call(complex_(0.3, 2, 3))],
)

# --- Wright's ω ---------------------------------------------------------------------------

each("wrightomega", lambda y: y / (1 + y), at=[real(-2, 3)])  # Corless and Jeffrey (2002), "The Wright ω function", (7)
