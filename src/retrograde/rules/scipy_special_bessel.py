"""Bessel functions, plain, scaled and spherical, in the argument and in the order.

The argument has closed formulas (DLMF 10.6 and 10.29). The order has none in functions of SciPy's; Bessel functions
are entire in it, and `slope` is good to 1e-11.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from scipy import special

from retrograde.originals import np
from retrograde.rules.points import call, complex_, real
from retrograde.rules.products import conj, times, unbroadcast
from retrograde.rules.scipy_special_dispatch import each, integer, named, overridable, several
from retrograde.rules.scipy_special_elementary import polynomial
from retrograde.rules.scipy_special_slopes import slope
from retrograde.rules.table import composed, general

Array = Any

ORDERS = real(-1.2, 3)
HANKEL_POINTS = [call(real(-1.2, 3, 2, 1), complex_(1, 3, 3)), call(real(-1.2, 3, 3), real(1, 5, 2, 3))]


def half_difference(f: Any, v: Any, z: Array) -> Array:
    """½ (f_{ν−1} − f_{ν+1}): the derivative of J, Y, H⁽¹⁾ and H⁽²⁾ (DLMF 10.6.1)."""
    return 0.5 * (f(v - 1, z) - f(v + 1, z))


def half_sum(f: Any, v: Any, z: Array) -> Array:
    """½ (f_{ν−1} + f_{ν+1}): the derivative of I, and of −K (DLMF 10.29.1)."""
    return 0.5 * (f(v - 1, z) + f(v + 1, z))


# --- Plain functions -------------------------------------------------------------------------------------

each(
    "jv jn",
    lambda a, b: slope(special.jv, (1, 0), a, b),
    lambda a, b: half_difference(special.jv, a, b),
    at=[ORDERS, real(0.5, 9)],
)
each(
    "yv",
    lambda a, b: slope(special.yv, (1, 0), a, b),
    lambda a, b: half_difference(special.yv, a, b),
    at=[ORDERS, real(1, 9)],
)
each(
    "iv",
    lambda a, b: slope(special.iv, (1, 0), a, b),
    lambda a, b: half_sum(special.iv, a, b),
    at=[ORDERS, real(0.5, 3)],
)
each(
    "kv",
    lambda a, b: slope(special.kv, (1, 0), a, b),
    lambda a, b: -half_sum(special.kv, a, b),
    at=[ORDERS, real(1, 3)],
)
# Of real arguments these are complex, which the rule of `elementwise` does not expect.
several(
    "hankel1",
    lambda y, v, z: slope(special.hankel1, (1, 0), v, z),
    lambda y, v, z: half_difference(special.hankel1, v, z),
    at=HANKEL_POINTS,
)
several(
    "hankel2",
    lambda y, v, z: slope(special.hankel2, (1, 0), v, z),
    lambda y, v, z: half_difference(special.hankel2, v, z),
    at=HANKEL_POINTS,
)
each("yn", integer("yn", "n"), lambda a, b: half_difference(special.yv, a, b), at=[2, real(1, 9)])
each("kn", integer("kn", "n"), lambda a, b: -half_sum(special.kv, a, b), at=[2, real(1, 3)])

each("j0", lambda x: -special.j1(x), at=[real(-5, 5)])
each("j1", lambda x: half_difference(special.jv, 1, x), at=[real(-5, 5)])
each("y0", lambda x: -special.y1(x), at=[real(0.5, 5)])
each("y1", lambda x: half_difference(special.yv, 1, x), at=[real(0.5, 5)])
each("i0", lambda x: special.i1(x), at=[real(-3, 3)])
each("i1", lambda x: half_sum(special.iv, 1, x), at=[real(-3, 3)])
each("k0", lambda x: -special.k1(x), at=[real(0.5, 3)])
each("k1", lambda x: -half_sum(special.kv, 1, x), at=[real(0.5, 3)])

# --- Scaled functions whose factor is analytic: K eᶻ, H⁽¹⁾ e⁻ⁱᶻ, H⁽²⁾ eⁱᶻ -----------------------------------------
#
# The derivative of the factor cancels that of the function all but for 1/(2z). Far out it is therefore taken from the
# asymptotic series K_ν(z) eᶻ ∝ z^(−1/2) Σ aₖ(ν) z⁻ᵏ (DLMF 10.40.2, 10.17.1), on which all the others depend:
# hankel1e(ν, z) ∝ kve(ν, −iz), hankel2e(ν, z) ∝ kve(ν, iz) (10.27.8), ive(ν, z) ~ Σ aₖ (−z)⁻ᵏ (10.40.1).


def is_far(v: Any, z: Array) -> Array:
    """Whether twenty terms of the series give all digits."""
    return np.abs(z) > 30 + v * v


def far_log_slope(v: Any, z: Array) -> Array:
    """(log(z^(−1/2) Σ aₖ(ν) z⁻ᵏ))′."""
    coefficients: list[Any] = [1.0]
    for k in range(1, 20):
        coefficients.append(coefficients[-1] * ((4 * v * v - (2 * k - 1) ** 2) / (8 * k)))
    x = 1 / z
    return -x * polynomial([(k + 0.5) * a for k, a in enumerate(coefficients)], x) / polynomial(coefficients, x)


def _scaled_in_z(y: Any, v: Any, z: Array, turn: complex | float, near: Callable[[Array], Array]) -> Array:
    """The derivative of a multiple of kve(ν, turn · z); `near` gives it where |z| is not large."""
    far = is_far(v, z)
    safe_v, safe_z = np.where(far, v, 0.0), turn * np.where(far, z, 1.0)
    return np.where(far, y * turn * far_log_slope(safe_v, safe_z), near(z))


each(
    "kve",
    lambda a, b: slope(special.kve, (1, 0), a, b),
    lambda y, a, b: _scaled_in_z(y, a, b, 1.0, lambda z: y - half_sum(special.kve, a, z)),
    at=[ORDERS, real(1, 3)],
)
several(
    "hankel1e",
    lambda y, v, z: slope(special.hankel1e, (1, 0), v, z),
    lambda y, v, z: _scaled_in_z(y, v, z, -1j, lambda z: half_difference(special.hankel1e, v, z) - 1j * y),
    at=HANKEL_POINTS,
)
several(
    "hankel2e",
    lambda y, v, z: slope(special.hankel2e, (1, 0), v, z),
    lambda y, v, z: _scaled_in_z(y, v, z, 1j, lambda z: half_difference(special.hankel2e, v, z) + 1j * y),
    at=HANKEL_POINTS,
)
each("k0e", lambda y, x: _scaled_in_z(y, 0, x, 1.0, lambda z: y - special.k1e(z)), at=[real(0.5, 3)])
each("k1e", lambda y, x: _scaled_in_z(y, 1, x, 1.0, lambda z: y - half_sum(special.kve, 1, z)), at=[real(0.5, 3)])


# --- Scaled functions whose factor is not: I e^−|Re z|, J and Y e^−|Im z| ------------------------------------------


def ive_in_real_z(y: Any, v: Any, z: Array) -> Array:
    """The derivative of I e^−|z| for real z; the kink at 0 counts as flat."""
    side, size = np.sign(z), np.abs(z)
    far = is_far(v, size)
    safe_v, safe_size = np.where(far, v, 0.0), np.where(far, size, 1.0)
    return np.where(far, -side * y * far_log_slope(safe_v, -safe_size), half_sum(special.ive, v, z) - side * y)


each("i0e", lambda y, x: ive_in_real_z(y, 0, x), at=[real(0.3, 3)])
each("i1e", lambda y, x: ive_in_real_z(y, 1, x), at=[real(-3, -0.3)])


def _scaled(function: Any, holomorphic: Any, of_real: Any, part: Any, unit: complex, phase: Any) -> None:
    """The rule of y = f(ν, z) e^−|part z|, where f is holomorphic in z: dy = f′ e^−|part z| dz − y d|part z|.

    Args:
        holomorphic: f′ e^−|part z|.
        of_real: the whole derivative for real z.
        unit: the direction in which |part z| grows: 1 for the real part, i for the imaginary one.
        phase: of z and the sign of part z; y e^(i phase) is holomorphic.
    """

    def turned(v: Any, z: Any, side: Any) -> Any:
        return function(v, z) * np.exp(1j * phase(z, side))

    def in_order(v: Any, z: Any) -> Any:
        if not np.iscomplexobj(z):
            return slope(function, (1, 0), v, z)
        # A slope is differentiated as a holomorphic function, so that its function must be one.
        side = np.where(np.greater(part(z), 0), 1.0, -1.0)
        return slope(turned, (1, 0, 0), v, z, side) * np.exp(-1j * phase(z, side))

    def pullback(y: Any, v: Any, z: Any) -> Any:
        def pull(y_bar: Any) -> tuple[Any, Any]:
            def v_bar() -> Any:
                return unbroadcast(times(y_bar, conj(in_order(v, z))), np.shape(v))

            def z_bar() -> Any:
                if not np.iscomplexobj(z):
                    return unbroadcast(times(y_bar, of_real(y, v, z)), np.shape(z))
                inward = np.real(conj(y) * y_bar) * np.sign(part(z))
                return unbroadcast(times(y_bar, conj(holomorphic(v, z))) - unit * inward, np.shape(z))

            return v_bar, z_bar

        return pull

    def pushforward(y: Any, v: Any, z: Any) -> Any:
        def push(v_dot: Any, z_dot: Any) -> Any:
            total: Any = 0.0
            if v_dot is not None:
                total = times(v_dot, in_order(v, z))
            if z_dot is not None and not np.iscomplexobj(z):
                total = total + times(z_dot, of_real(y, v, z))
            elif z_dot is not None:
                total = total + times(z_dot, holomorphic(v, z)) - y * (np.sign(part(z)) * part(z_dot))
            return np.broadcast_to(total, np.shape(y))

        return push

    orders = real(0.2, 3, 2, 3)
    general(
        function,
        pullback=pullback,
        pushforward=pushforward,
        args=(0, 1),
        at=[
            call(orders, real(0.5, 3, 3)),
            call(real(0.2, 3, 2, 1), complex_(0.5, 3, 3)),
            call(2, complex_(-3, -0.5, 2)),
        ],
    )


def _in_bessel(f: Any) -> Callable[[Any, Any], Any]:
    def holomorphic(v: Any, z: Any) -> Any:
        return half_difference(f, v, z)

    return holomorphic


def _ive_holomorphic(v: Any, z: Any) -> Any:
    return half_sum(special.ive, v, z)


def _ive_phase(z: Any, side: Any) -> Any:
    """I e^−|Re z| is I e^−z or I eᶻ but for this."""
    return -side * np.imag(z)


def _jve_phase(z: Any, side: Any) -> Any:
    """J e^−|Im z| is J eⁱᶻ or J e⁻ⁱᶻ but for this."""
    return side * np.real(z)


_scaled(special.ive, _ive_holomorphic, ive_in_real_z, np.real, 1.0, _ive_phase)
for _f in (special.jve, special.yve):
    _scaled(_f, _in_bessel(_f), lambda y, v, z, _f=_f: half_difference(_f, v, z), np.imag, 1j, _jve_phase)


# --- Spherical functions (DLMF 10.51.2 and 10.51.5) ----------------------------------------------------------


def _spherical(name: str, below: float, above: float) -> None:
    """(2n + 1) f′ₙ = below · n fₙ₋₁ + above · (n + 1) fₙ₊₁, which holds for the derivative's derivative too."""
    original = named(name)

    @overridable
    def spherical(n: Any, z: Array, derivative: bool) -> Array:
        return original(n, z, derivative)

    def in_z(n: Any, z: Any, derivative: bool) -> Any:
        down = spherical(np.maximum(np.subtract(n, 1), 0), z, derivative)
        up = spherical(np.add(n, 1), z, derivative)
        return (below * n * down + above * np.add(n, 1) * up) / (2 * np.add(n, 1) - 1)

    def pullback(y: Any, n: Any, z: Any, derivative: bool) -> Any:
        def pull(y_bar: Any) -> tuple[Any]:
            return (unbroadcast(times(y_bar, conj(in_z(n, z, derivative))), np.shape(z)),)

        return pull

    def pushforward(y: Any, n: Any, z: Any, derivative: bool) -> Any:
        def push(z_dot: Any) -> Any:
            return times(z_dot, in_z(n, z, derivative))

        return push

    def body(n: Any, z: Any, derivative: bool = False) -> Any:
        return spherical(n, z, derivative)

    points = [call(2, real(1, 4, 2, 3), False), call(np.array([[0], [3]]), real(1, 4, 3), True)]
    general(
        spherical,
        pullback=pullback,
        pushforward=pushforward,
        args=(1,),
        at=[*points, call(1, complex_(1, 2, 2), True)],
    )
    composed(original, body, at=[call(2, real(1, 4, 2, 3)), call(0, real(1, 4), derivative=True)])


_spherical("spherical_jn", 1.0, -1.0)
_spherical("spherical_yn", 1.0, -1.0)
_spherical("spherical_in", 1.0, 1.0)
_spherical("spherical_kn", -1.0, -1.0)


# --- Derivatives of Bessel functions as functions (DLMF 10.6.7 and 10.29.5) ---------------------------------


def _derivative_function(name: str, f: Any, phase: int, sign: int = 1) -> None:
    def body(v: Any, z: Any, n: int = 1) -> Any:
        terms = [phase**k * math.comb(n, k) * f(v - n + 2 * k, z) for k in range(n + 1)]
        return sum(terms[1:], start=terms[0]) * (sign**n / 2**n)

    points = [call(real(0.2, 3, 2, 1), real(1, 4, 3)), call(2.0, real(1, 4), 3), call(2.0, real(1, 4), n=0)]
    composed(named(name), body, at=points)


_derivative_function("jvp", special.jv, -1)
_derivative_function("yvp", special.yv, -1)
_derivative_function("h1vp", special.hankel1, -1)
_derivative_function("h2vp", special.hankel2, -1)
_derivative_function("ivp", special.iv, 1)
_derivative_function("kvp", special.kv, 1, -1)
