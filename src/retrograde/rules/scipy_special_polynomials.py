"""Orthogonal polynomials and Legendre functions in the argument, the degree and the parameters; spherical harmonics.

The derivative of an orthogonal polynomial in its argument is one of a lower degree (DLMF 18.9.15–27). The degree may
be any real number where SciPy's function says so, and then it is differentiated by `slope`, as are the parameters.
"""

from __future__ import annotations

import math
from typing import Any

from scipy import special

from retrograde.errors import MissingRuleError, UnsupportedArgumentError
from retrograde.originals import np
from retrograde.rules.points import call, complex_, real
from retrograde.rules.products import conj, times, unbroadcast
from retrograde.rules.scipy_special_dispatch import each, integer, named, overridable, several
from retrograde.rules.scipy_special_slopes import slope
from retrograde.rules.table import composed, general

Array = Any

# --- Jacobi's and Gegenbauer's polynomials and their special cases ----------------------------------------------


def _lower(n: Any) -> Any:
    """n − 1, and 0 for n = 0, where the factor before the polynomial is 0."""
    return np.where(np.equal(n, 0), 1, n) - 1


def _unless_constant(n: Any, derivative: Array) -> Array:
    return np.where(np.equal(n, 0), 0.0, derivative)


def in_degree(f: Any) -> Any:
    return lambda a, b: slope(f, (1, 0), a, b)


def legendre_in_x(n: Any, x: Array) -> Array:
    """P′ₙ = C⁽³ᐟ²⁾ₙ₋₁ (DLMF 18.9.19 with 18.7.9)."""
    return _unless_constant(n, special.eval_gegenbauer(_lower(n), 1.5, x))


def chebyt_in_x(n: Any, x: Array) -> Array:
    """T′ₙ = n Uₙ₋₁ (DLMF 18.9.21)."""
    return n * special.eval_chebyu(_lower(n), x)


def chebyu_in_x(n: Any, x: Array) -> Array:
    """U′ₙ = 2 C⁽²⁾ₙ₋₁ (DLMF 18.9.19 with 18.7.4)."""
    return _unless_constant(n, 2 * special.eval_gegenbauer(_lower(n), 2.0, x))


DEGREES = real(0.3, 4.7)
INSIDE = real(-0.9, 0.9)

each("eval_legendre", in_degree(special.eval_legendre), lambda a, b: legendre_in_x(a, b), at=[DEGREES, INSIDE])
each("eval_chebyt", in_degree(special.eval_chebyt), lambda a, b: chebyt_in_x(a, b), at=[DEGREES, INSIDE])
each("eval_chebyu", in_degree(special.eval_chebyu), lambda a, b: chebyu_in_x(a, b), at=[DEGREES, INSIDE])
# C(x) = 2 T(x/2), S(x) = U(x/2) (DLMF 18.1.3)
each(
    "eval_chebyc",
    in_degree(special.eval_chebyc),
    lambda a, b: chebyt_in_x(a, 0.5 * b),
    at=[DEGREES, real(-1.8, 1.8)],
)
each(
    "eval_chebys",
    in_degree(special.eval_chebys),
    lambda a, b: 0.5 * chebyu_in_x(a, 0.5 * b),
    at=[DEGREES, real(-1.8, 1.8)],
)
each(
    "eval_sh_legendre",
    in_degree(special.eval_sh_legendre),
    lambda a, b: 2 * legendre_in_x(a, 2 * b - 1),
    at=[DEGREES, real(0.05, 0.95)],
)
each(
    "eval_sh_chebyt",
    in_degree(special.eval_sh_chebyt),
    lambda a, b: 2 * chebyt_in_x(a, 2 * b - 1),
    at=[DEGREES, real(0.05, 0.95)],
)
each(
    "eval_sh_chebyu",
    in_degree(special.eval_sh_chebyu),
    lambda a, b: 2 * chebyu_in_x(a, 2 * b - 1),
    at=[DEGREES, real(0.05, 0.95)],
)
each(
    "eval_gegenbauer",
    lambda a, b, c: slope(special.eval_gegenbauer, (1, 0, 0), a, b, c),
    lambda a, b, c: slope(special.eval_gegenbauer, (0, 1, 0), a, b, c),
    lambda a, b, c: _unless_constant(a, 2 * b * special.eval_gegenbauer(_lower(a), b + 1, c)),  # DLMF 18.9.19
    at=[DEGREES, real(0.5, 2), INSIDE],
)


def _jacobi_in(f: Any, i: int) -> Any:
    orders = tuple(int(j == i) for j in range(4))
    return lambda y, n, p, q, x: slope(f, orders, n, p, q, x)


def jacobi_in_x(y: Any, n: Any, alpha: Any, beta: Any, x: Array) -> Array:
    """DLMF 18.9.15."""
    return _unless_constant(n, 0.5 * (n + alpha + beta + 1) * special.eval_jacobi(_lower(n), alpha + 1, beta + 1, x))


def sh_jacobi_in_x(y: Any, n: Any, p: Any, q: Any, x: Array) -> Array:
    """The same for the monic Gₙ(p, q, x) ∝ P⁽ᵖ⁻q, q⁻¹⁾ₙ(2x − 1) (DLMF 18.1.2)."""
    return n * special.eval_sh_jacobi(_lower(n), p + 2, q + 1, x)


several(
    "eval_jacobi",
    *(_jacobi_in(special.eval_jacobi, i) for i in range(3)),
    jacobi_in_x,
    at=[
        call(real(0.3, 3.7, 2, 3), real(0.2, 2, 3), real(0.2, 2), real(-0.9, 0.9, 3)),
        call(np.arange(3), 0.5, 1.5, real(-0.9, 0.9, 3)),
        call(3, real(0.2, 2), 1.5, complex_(-0.5, 0.5, 3)),
    ],
)
several(
    "eval_sh_jacobi",
    *(_jacobi_in(special.eval_sh_jacobi, i) for i in range(3)),
    sh_jacobi_in_x,
    at=[
        call(real(0.3, 3.7, 2, 3), real(2.2, 4, 3), real(0.5, 2), real(0.1, 0.9, 3)),
        call(np.arange(3), 2.5, 1.5, real(0.1, 0.9, 3)),
    ],
)

# --- Laguerre's and Hermite's polynomials -----------------------------------------------------------------------

each(
    "eval_laguerre",
    in_degree(special.eval_laguerre),
    lambda a, b: _unless_constant(a, -special.eval_genlaguerre(_lower(a), 1.0, b)),  # DLMF 18.9.23
    at=[DEGREES, real(0.3, 4)],
)
each(
    "eval_genlaguerre",
    lambda a, b, c: slope(special.eval_genlaguerre, (1, 0, 0), a, b, c),
    lambda a, b, c: slope(special.eval_genlaguerre, (0, 1, 0), a, b, c),
    lambda a, b, c: _unless_constant(a, -special.eval_genlaguerre(_lower(a), b + 1, c)),
    at=[DEGREES, real(0.2, 2), real(0.3, 4)],
)
each(
    "eval_hermite",
    integer("eval_hermite", "n"),
    lambda a, b: 2 * a * special.eval_hermite(_lower(a), b),  # DLMF 18.9.25
    at=[3, real(-2, 2)],
)
each(
    "eval_hermitenorm",
    integer("eval_hermitenorm", "n"),
    lambda a, b: a * special.eval_hermitenorm(_lower(a), b),  # DLMF 18.9.27
    at=[3, real(-2, 2)],
)


def assoc_laguerre_body(x: Any, n: Any, k: Any = 0.0) -> Any:
    return special.eval_genlaguerre(n, k, x)


composed(
    named("assoc_laguerre"),
    assoc_laguerre_body,
    at=[call(real(0.3, 4, 2, 3), 3), call(real(0.3, 4), 2.0, real(0.5, 2))],
)

# --- Legendre functions ------------------------------------------------------------------------------------------


def lpmv_in_x(y: Any, m: Any, v: Any, x: Array) -> Array:
    """Pᵐᵥ′ = −m x Pᵐᵥ/(1 − x²) − Pᵐ⁺¹ᵥ/√(1 − x²) (from DLMF 14.6.1); at x = 1, and m = 0, v(v + 1)/2.

    Other orders m > 0 have an infinite derivative or none at ±1.
    """
    edge = np.abs(x) == 1
    inside = np.where(edge, 0.0, x)
    square = (1 - inside) * (1 + inside)
    slope_inside = -m * inside * special.lpmv(m, v, inside) / square - special.lpmv(m + 1, v, inside) / np.sqrt(square)
    at_one = np.where((x == 1) & np.equal(m, 0), 0.5 * v * (v + 1), np.nan)
    return np.where(edge, at_one, slope_inside)


each(
    "lpmv",
    integer("lpmv", "m"),
    lambda a, b, c: slope(special.lpmv, (0, 1, 0), a, b, c),
    lambda y, a, b, c: lpmv_in_x(y, a, b, c),
    at=[1, real(0.3, 4), real(-0.8, 0.8)],
)


def double_factorial(k: int) -> int:
    """(2k − 1)!!"""
    return math.prod(range(1, 2 * k, 2))


def legendre_derivative(n: Any, z: Array, k: int) -> Array:
    """The k-th derivative of Pₙ: (2k − 1)!! C⁽ᵏ⁺½⁾ₙ₋ₖ (DLMF 18.9.19 again and again, with 18.7.9)."""
    if k == 0:
        return special.eval_legendre(n, z)
    short = np.less(n, k)
    value = special.eval_gegenbauer(np.where(short, 0, np.subtract(n, k)), k + 0.5, z)
    return np.where(short, 0.0, double_factorial(k) * value)


def legendre_p_body(n: Any, z: Any, *, diff_n: int = 0) -> Any:
    rows = [legendre_derivative(n, z, k) for k in range(diff_n + 1)]
    shape = np.broadcast_shapes(np.shape(n), np.shape(z))
    return np.stack([np.broadcast_to(row, shape) for row in rows])


def legendre_p_all_body(n: Any, z: Any, *, diff_n: int = 0) -> Any:
    return np.stack([np.stack([legendre_derivative(j, z, k) for j in range(n + 1)]) for k in range(diff_n + 1)])


if named("legendre_p") is not None:  # since SciPy 1.15
    composed(
        named("legendre_p"),
        legendre_p_body,
        at=[call(3, real(-0.9, 0.9, 2, 3)), call(np.arange(4), real(-0.9, 0.9), diff_n=2)],
    )
    composed(
        named("legendre_p_all"),
        legendre_p_all_body,
        at=[call(3, real(-0.9, 0.9, 2)), call(2, real(-0.9, 0.9), diff_n=2)],
    )

# --- Spherical harmonics -------------------------------------------------------------------------------------------


@overridable
def harmonic(n: Any, m: Any, theta: Array, phi: Array) -> Array:
    """Y_nᵐ(θ, φ), with the polar angle first."""
    if named("sph_harm_y") is not None:
        return named("sph_harm_y")(n, m, theta, phi)
    return special.sph_harm(m, n, phi, theta)  # before SciPy 1.15


def _steps(n: Any, m: Any) -> tuple[Array, Array]:
    """√((n − m)(n + m + 1)) and √((n + m)(n − m + 1)), the weights of the orders m ± 1."""
    n, m = np.asarray(n), np.asarray(m)
    return np.sqrt(np.maximum((n - m) * (n + m + 1.0), 0)), np.sqrt(np.maximum((n + m) * (n - m + 1.0), 0))


def harmonic_in_theta(n: Any, m: Any, theta: Array, phi: Array) -> Array:
    """½ (√((n − m)(n + m + 1)) e⁻ⁱᵠ Yᵐ⁺¹ − √((n + m)(n − m + 1)) eⁱᵠ Yᵐ⁻¹), regular at the poles.

    Source: the ladder operators L± of quantum mechanics, with the phase of DLMF 14.30.1.
    """
    up, down = _steps(n, m)
    turn = np.exp(1j * phi)
    # Where there is no next order, its weight is 0.
    above = harmonic(n, np.minimum(np.add(m, 1), n), theta, phi)
    below = harmonic(n, np.maximum(np.subtract(m, 1), np.negative(n)), theta, phi)
    return 0.5 * (up / turn * above - down * turn * below)


def harmonic_pullback(y: Any, n: Any, m: Any, theta: Any, phi: Any) -> Any:
    def pull(y_bar: Any) -> tuple[Any, Any]:
        def theta_bar() -> Any:
            return unbroadcast(times(y_bar, conj(harmonic_in_theta(n, m, theta, phi))), np.shape(theta))

        def phi_bar() -> Any:
            return unbroadcast(y_bar * conj(1j * np.asarray(m) * y), np.shape(phi))

        return theta_bar, phi_bar

    return pull


def harmonic_pushforward(y: Any, n: Any, m: Any, theta: Any, phi: Any) -> Any:
    def push(theta_dot: Any, phi_dot: Any) -> Any:
        total: Any = 0.0
        if theta_dot is not None:
            total = theta_dot * harmonic_in_theta(n, m, theta, phi)
        if phi_dot is not None:
            total = total + phi_dot * (1j * np.asarray(m) * y)
        return np.broadcast_to(total, np.shape(y))

    return push


ANGLES = [
    call(3, 2, real(0.3, 2.8, 2, 1), real(0.1, 6, 3)),
    call(3, np.array([-3, 0, 3]), real(0.3, 2.8, 3), real(0.1, 6)),
]
general(harmonic, pullback=harmonic_pullback, pushforward=harmonic_pushforward, args=(2, 3), at=ANGLES)


def _refuse_derivatives(name: str) -> None:
    raise UnsupportedArgumentError(
        f"the derivative of scipy.special.{name} does not know diff_n=, which asks for derivatives itself",
        f"{name}(...) without it, and let Retrograde differentiate",
    )


def sph_harm_y_body(n: Any, m: Any, theta: Any, phi: Any, *, diff_n: int = 0) -> Any:
    if diff_n:
        _refuse_derivatives("sph_harm_y")
    return harmonic(n, m, theta, phi)


def sph_legendre_p_body(n: Any, m: Any, theta: Any, *, diff_n: int = 0) -> Any:
    """The harmonic at φ = 0, with SciPy's leading axis for derivatives."""
    if diff_n:
        _refuse_derivatives("sph_legendre_p")
    return np.expand_dims(np.real(harmonic(n, m, theta, 0.0)), 0)


def sph_harm_slopes(y: Any, m: Any, n: Any, theta: Array, phi: Array) -> Array:
    return harmonic_in_theta(n, m, phi, theta)


# Until SciPy 1.16, with the azimuth before the polar angle.
several(
    "sph_harm",
    integer("sph_harm", "m"),
    integer("sph_harm", "n"),
    lambda y, m, n, theta, phi: 1j * np.asarray(m) * y,
    sph_harm_slopes,
    at=[call(2, 3, real(0.1, 6, 3), real(0.3, 2.8, 3))],
)


@overridable
def assoc_legendre(k: int, n: Any, m: Any, z: Array, branch_cut: Any, norm: bool) -> Array:
    """The k-th derivative in z of the associated Legendre function, as SciPy computes it."""
    return named("assoc_legendre_p")(n, m, z, branch_cut=branch_cut, norm=norm, diff_n=k)[k]


def _assoc_legendre_next(k: int, n: Any, m: Any, z: Any, branch_cut: Any, norm: bool) -> Any:
    if k == 2:
        raise MissingRuleError(
            "scipy.special.assoc_legendre_p has no derivatives beyond the second",
            "scipy.special.legendre_p, or lpmv, which have them",
        )
    return assoc_legendre(k + 1, n, m, z, branch_cut, norm)


def assoc_legendre_pullback(y: Any, k: int, n: Any, m: Any, z: Any, branch_cut: Any, norm: bool) -> Any:
    def pull(y_bar: Any) -> tuple[Any]:
        return (unbroadcast(times(y_bar, conj(_assoc_legendre_next(k, n, m, z, branch_cut, norm))), np.shape(z)),)

    return pull


def assoc_legendre_pushforward(y: Any, k: int, n: Any, m: Any, z: Any, branch_cut: Any, norm: bool) -> Any:
    def push(z_dot: Any) -> Any:
        return times(z_dot, _assoc_legendre_next(k, n, m, z, branch_cut, norm))

    return push


def assoc_legendre_p_body(n: Any, m: Any, z: Any, *, branch_cut: Any = 2, norm: bool = False, diff_n: int = 0) -> Any:
    return np.stack([assoc_legendre(k, n, m, z, branch_cut, norm) for k in range(diff_n + 1)])


if named("assoc_legendre_p") is not None:  # since SciPy 1.15
    general(
        assoc_legendre,
        pullback=assoc_legendre_pullback,
        pushforward=assoc_legendre_pushforward,
        args=(3,),
        at=[call(0, 3, 2, real(-0.9, 0.9, 2, 3), 2, False), call(1, 3, np.arange(3), complex_(1.5, 2, 3), 3, True)],
    )
    composed(
        named("assoc_legendre_p"),
        assoc_legendre_p_body,
        at=[call(3, 2, real(-0.9, 0.9, 2, 3)), call(3, 1, real(-0.9, 0.9), norm=True, diff_n=1)],
    )
    composed(named("sph_harm_y"), sph_harm_y_body, at=ANGLES)
    composed(named("sph_legendre_p"), sph_legendre_p_body, at=[call(3, 2, real(0.3, 2.8, 2, 3))])
