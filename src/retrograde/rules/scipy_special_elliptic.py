"""Elliptic integrals, complete, incomplete and symmetric, Jacobi's functions and the arithmetic-geometric mean.

Carlson's symmetric integrals are closed under differentiation without any cancellation, so that all derivatives in
the parameter m are written with them (DLMF 19.25) and not with differences of Legendre's (DLMF 19.4).
"""

from __future__ import annotations

import functools
import math
from typing import Any

from scipy import special

from retrograde.originals import np
from retrograde.rules.points import call, complex_, real
from retrograde.rules.products import somewhere
from retrograde.rules.scipy_special_dispatch import each, over_arguments, overridable, pushed, several
from retrograde.rules.scipy_special_slopes import slope
from retrograde.rules.table import general

Array = Any

# --- Carlson's integrals ---------------------------------------------------------------------------------

_STEP = 0.5  # of log t; with it the midpoint rule is exact to 1e-17 for positive arguments
_DEPTH = 40.0  # how many powers of e an integrand falls before it is left out
_BLOCK = 1 << 12


@overridable
def carlson(power: int, exponents: tuple[float, ...], *args: Any) -> Array:
    """∫₀^∞ t^power Π (t + zᵢ)^(−exponentsᵢ) dt: Carlson's multivariate R (DLMF 19.16.9) without its factor.

    The midpoint rule in log t, which for an integrand analytic in the strip |Im log t| < π − |arg zᵢ| converges
    geometrically (Trefethen and Weideman (2014), "The exponentially convergent trapezoidal rule", theorem 5.1).
    Good to 1e-14 relative for |arg zᵢ| ≤ π/2; at most some of the arguments may be 0.
    """
    dtype = np.result_type(*args, np.float64)
    shape = np.broadcast_shapes(*map(np.shape, args))
    flat = [np.broadcast_to(np.asarray(z, dtype), shape).reshape(-1) for z in args]
    with np.errstate(all="ignore"):
        blocks = [
            _carlson_of_block(power, exponents, [z[start : start + _BLOCK] for z in flat])
            for start in range(0, max(flat[0].size, 1), _BLOCK)
        ]
    return np.concatenate(blocks).reshape(shape)[()]


def _carlson_of_block(power: int, exponents: tuple[float, ...], args: list[Array]) -> Array:
    if not args[0].size:
        return args[0]
    sizes = np.abs(np.stack(args))
    zero = sizes == 0
    rise = power + 1 - np.array(exponents) @ zero
    fall = sum(exponents) - power - 1
    low = np.log(np.min(np.where(zero, np.inf, sizes), axis=0)) - _DEPTH / np.where(rise > 0, rise, 1.0)
    high = np.log(np.max(sizes, axis=0)) + _DEPTH / fall
    valid = np.isfinite(low) & np.isfinite(high)
    low, high = np.where(valid, low, 0.0), np.where(valid, high, 1.0)
    step = _STEP / 2 if np.iscomplexobj(args[0]) else _STEP
    count = math.ceil(np.max(high - low) / step)
    width = (high - low) / count
    t = np.exp(low + width * (np.arange(count)[:, None] + 0.5))
    integrand = t ** (power + 1)
    for z, exponent in zip(args, exponents, strict=True):
        integrand = integrand / np.power(t + z, exponent)
    total = width * np.sum(integrand, axis=0)
    return np.where(valid, np.where(rise > 0, total, np.inf), np.nan)


def _carlson_in(i: int, power: int, exponents: tuple[float, ...], *args: Any) -> Any:
    raised = (*exponents[:i], exponents[i] + 1, *exponents[i + 1 :])
    return -exponents[i] * carlson(power, raised, *args)


def _carlson_slopes(power: int, exponents: tuple[float, ...]) -> list[Any]:
    return [functools.partial(_carlson_in, i, power, exponents) for i in range(len(exponents))]


def carlson_pullback(y: Any, power: int, exponents: tuple[float, ...], *args: Any) -> Any:
    def pull(y_bar: Any) -> tuple[Any, ...]:
        return over_arguments(y_bar, _carlson_slopes(power, exponents), args)

    return pull


def carlson_pushforward(y: Any, power: int, exponents: tuple[float, ...], *args: Any) -> Any:
    def push(*dots: Any) -> Any:
        return pushed(dots, _carlson_slopes(power, exponents), args, np.shape(y))

    return push


general(
    carlson,
    args=slice(2, None),
    pullback=carlson_pullback,
    pushforward=carlson_pushforward,
    at=[
        call(0, (0.5, 0.5, 0.5), real(0.5, 3, 2, 1), real(0.5, 3, 3), real(0.5, 3)),
        call(1, (1.5, 0.5, 0.5), real(0.5, 3, 3), complex_(0.5, 3, 3), 0.0),
    ],
)


def _below_cut(y: Array) -> Array:
    """Whether the Cauchy principal value is meant."""
    return (np.imag(y) == 0) & (np.real(y) < 0)


def _elliprc_gap(x: Array, y: Array) -> tuple[Array, Array, Array]:
    """Where y < 0, with x and y that are safe elsewhere."""
    cut = _below_cut(y)
    return cut, np.where(cut, x, 1.0), np.where(cut, y, -1.0)


def elliprc_in_x(value: Array, x: Array, y: Array) -> Array:
    """−R_D(y, y, x)/6, and for y < 0 what solves 2(y − x) ∂R_C/∂x = R_C − 1/√x (from DLMF 19.2.17)."""
    cut, u, v = _elliprc_gap(x, y)
    return np.where(cut, 0.5 * (value - 1 / np.sqrt(u)) / (v - u), _elliprd_or(cut, y, y, x) / -6)


def elliprc_in_y(value: Array, x: Array, y: Array) -> Array:
    cut, u, v = _elliprc_gap(x, y)
    return np.where(cut, 0.5 * (np.sqrt(u) / v - value) / (v - u), _elliprd_or(cut, x, y, y) / -3)


def _elliprd_or(skip: Array, x: Array, y: Array, z: Array) -> Array:
    return special.elliprd(*(np.where(skip, 1.0, argument) for argument in (x, y, z)))


each(
    "elliprc",
    lambda y, a, b: elliprc_in_x(y, a, b),
    lambda y, a, b: elliprc_in_y(y, a, b),
    at=[real(0.5, 3), real(0.5, 3)],
)
# DLMF 19.18.1, and 19.16.5 under the integral sign
each(
    "elliprf",
    lambda a, b, c: special.elliprd(b, c, a) / -6,
    lambda a, b, c: special.elliprd(a, c, b) / -6,
    lambda a, b, c: special.elliprd(a, b, c) / -6,
    at=[real(0.5, 3), real(0.5, 3), real(0.5, 3)],
)
each(
    "elliprd",
    lambda a, b, c: -0.75 * carlson(0, (1.5, 0.5, 1.5), a, b, c),
    lambda a, b, c: -0.75 * carlson(0, (0.5, 1.5, 1.5), a, b, c),
    lambda a, b, c: -2.25 * carlson(0, (0.5, 0.5, 2.5), a, b, c),
    at=[real(0.5, 3), real(0.5, 3), real(0.5, 3)],
)
# R_G is R_{1/2}(½, ½, ½; x, y, z), and so (DLMF 19.16.9 and 19.18.4)
# ∂R_G/∂x = ⅛ ∫ t (t + x)^(−3/2) (t + y)^(−1/2) (t + z)^(−1/2) dt.
each(
    "elliprg",
    lambda a, b, c: 0.125 * carlson(1, (1.5, 0.5, 0.5), a, b, c),
    lambda a, b, c: 0.125 * carlson(1, (0.5, 1.5, 0.5), a, b, c),
    lambda a, b, c: 0.125 * carlson(1, (0.5, 0.5, 1.5), a, b, c),
    at=[real(0.5, 3), real(0.5, 3), real(0.5, 3)],
)


def _elliprj_in(i: int, factor: float) -> Any:
    orders = tuple(int(j == i) for j in range(4))
    exponents = tuple(e + o for e, o in zip((0.5, 0.5, 0.5, 1.0), orders, strict=True))

    def in_argument(y: Any, *args: Any) -> Any:
        """Under the integral sign, and for p < 0, where a principal value is meant, by interpolation."""
        cut = _below_cut(args[3])
        regular = factor * carlson(0, exponents, *args[:3], np.where(cut, 1.0, args[3]))
        if not somewhere(cut):
            return regular
        principal = slope(special.elliprj, orders, *args[:3], np.where(cut, args[3], -1.0))
        return np.where(cut, principal, regular)

    return in_argument


several(
    "elliprj",
    *(_elliprj_in(i, -0.75 if i < 3 else -1.5) for i in range(4)),
    at=[
        call(real(0.5, 3, 2, 3), real(0.5, 3, 3), real(0.5, 3), real(0.5, 3, 3)),
        call(real(0.5, 3, 2), 1.0, 2.0, real(-2, -1, 2)),
    ],
)

# --- Complete integrals ------------------------------------------------------------------------------------
#
# K(m) = R_F(0, 1 − m, 1) and K − E = (m/3) R_D(0, 1 − m, 1) (DLMF 19.25.1), so that dK/dm = R_D(0, 1, 1 − m)/6 and
# dE/dm = (E − K)/(2m) = −R_D(0, 1 − m, 1)/6.


def ellipk_slope(complement: Array) -> Array:
    return special.elliprd(0.0, 1.0, complement) / 6


def ellipe_slope(complement: Array) -> Array:
    return special.elliprd(0.0, complement, 1.0) / -6


each("ellipk", lambda x: ellipk_slope(1 - x), at=[real(-2, 0.9)])
each("ellipkm1", lambda x: -ellipk_slope(x), at=[real(0.1, 2)])
each("ellipe", lambda x: ellipe_slope(1 - x), at=[real(-2, 0.9)])


def agm_in_a(y: Array, a: Array, b: Array) -> Array:
    """agm = π / (2 R_F(0, a², b²)) (DLMF 19.8.5 with 19.25.1), hence ∂/∂a = 2/(3π) agm² |a| R_D(0, b², a²)."""
    return y * y * np.abs(a) * special.elliprd(0.0, b * b, a * a) * (2 / (3 * math.pi))


each("agm", lambda y, a, b: agm_in_a(y, a, b), lambda y, a, b: agm_in_a(y, b, a), at=[real(0.5, 3), real(0.5, 3)])

# --- Incomplete integrals ------------------------------------------------------------------------------------
#
# For |φ| ≤ π/2, F = s R_F(c², 1 − m s², 1) and F − E = (m/3) s³ R_D(c², 1 − m s², 1) with s = sin φ, c = cos φ
# (DLMF 19.25.5 and 19.25.9). Beyond, both grow by twice the complete integral for each half turn (19.2.10).


def _reduced(phi: Array, m: Array) -> tuple[Array, Array, Array, Array]:
    """Half turns, and s, c², 1 − m s² of what is left of the angle."""
    turns = np.rint(phi / math.pi)
    rest = phi - turns * math.pi
    s, c = np.sin(rest), np.cos(rest)
    return turns, s, c * c, 1 - m * s * s


def _whole_turns(turns: Array, whole: Any, m: Array) -> Array:
    """2 · turns · whole(1 − m), without its infinity at m = 1 where there are no turns."""
    none = turns == 0
    return np.where(none, 0.0, 2 * turns * whole(np.where(none, 1.0, 1 - m)))


def ellipkinc_in_m(phi: Array, m: Array) -> Array:
    turns, s, square, delta = _reduced(phi, m)
    return s**3 / 6 * special.elliprd(square, 1.0, delta) + _whole_turns(turns, ellipk_slope, m)


def ellipeinc_in_m(phi: Array, m: Array) -> Array:
    turns, s, square, delta = _reduced(phi, m)
    return s**3 / -6 * special.elliprd(square, delta, 1.0) + _whole_turns(turns, ellipe_slope, m)


def _delta(phi: Array, m: Array) -> Array:
    s = np.sin(phi)
    return np.sqrt(1 - m * s * s)


each(
    "ellipkinc",
    lambda a, b: 1 / _delta(a, b),
    lambda a, b: ellipkinc_in_m(a, b),
    at=[real(-5, 5), real(-2, 0.9)],
)
each(
    "ellipeinc",
    lambda a, b: _delta(a, b),
    lambda a, b: ellipeinc_in_m(a, b),
    at=[real(-5, 5), real(-2, 0.9)],
)

# --- Jacobi's functions --------------------------------------------------------------------------------------


def ellipj_in_u(y: Any, u: Array, m: Array) -> tuple[Array, ...]:
    """DLMF table 22.13.1 and 22.16.3."""
    sn, cn, dn, _ = y
    return cn * dn, -sn * dn, -m * sn * cn, dn


def ellipj_in_m(y: Any, u: Array, m: Array) -> tuple[Array, ...]:
    """From F(φ, m) = u with u fixed: ∂φ/∂m = −dn ∂F/∂m; the others are functions of φ = am(u, m)."""
    sn, cn, dn, phi = y
    in_m = -dn * ellipkinc_in_m(phi, m)
    return cn * in_m, -sn * in_m, -sn * (0.5 * sn + m * cn * in_m) / dn, in_m


several(
    "ellipj",
    ellipj_in_u,
    ellipj_in_m,
    at=[call(real(-3, 3, 2, 3), real(0.1, 0.9, 3)), call(real(4, 9), real(0.1, 0.9))],
)
