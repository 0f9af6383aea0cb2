"""Hypergeometric functions, Wright's generalised Bessel function, parabolic cylinder functions: all parameters."""

from __future__ import annotations

from typing import Any

from scipy import special

from retrograde.originals import np
from retrograde.rules.points import call, complex_, real
from retrograde.rules.scipy_special_dispatch import each, several
from retrograde.rules.scipy_special_slopes import slope

Array = Any

# --- Generalised hypergeometric functions ------------------------------------------------------------------

each(
    "hyp0f1",
    lambda a, b: slope(special.hyp0f1, (1, 0), a, b),
    lambda a, b: special.hyp0f1(a + 1, b) / a,  # DLMF 16.3.1
    at=[real(0.5, 3), real(-2, 2)],
)
each(
    "hyp1f1",
    lambda a, b, c: slope(special.hyp1f1, (1, 0, 0), a, b, c),
    lambda a, b, c: slope(special.hyp1f1, (0, 1, 0), a, b, c),
    lambda a, b, c: a / b * special.hyp1f1(a + 1, b + 1, c),  # DLMF 13.3.15
    at=[real(-1.2, 2), real(0.7, 3), real(-2, 2)],
)


def hyp2f1_in_a(y: Any, a: Any, b: Any, c: Any, z: Any) -> Any:
    return slope(special.hyp2f1, (1, 0, 0, 0), a, b, c, z)


def hyp2f1_in_b(y: Any, a: Any, b: Any, c: Any, z: Any) -> Any:
    return slope(special.hyp2f1, (0, 1, 0, 0), a, b, c, z)


def hyp2f1_in_c(y: Any, a: Any, b: Any, c: Any, z: Any) -> Any:
    return slope(special.hyp2f1, (0, 0, 1, 0), a, b, c, z)


def hyp2f1_in_z(y: Any, a: Any, b: Any, c: Any, z: Any) -> Any:
    """DLMF 15.5.1."""
    return a * b / c * special.hyp2f1(a + 1, b + 1, c + 1, z)


several(
    "hyp2f1",
    hyp2f1_in_a,
    hyp2f1_in_b,
    hyp2f1_in_c,
    hyp2f1_in_z,
    at=[
        call(real(0.3, 2, 2, 3), real(0.3, 2, 3), real(0.7, 3), real(-0.8, 0.8, 3)),
        call(0.5, 1.0, 1.5, complex_(-0.4, 0.4, 3)),
    ],
)

# --- Tricomi's U -----------------------------------------------------------------------------------------

_NODES = 160
_DEPTH = 42.0  # how many powers of e the integrand falls at the ends


def tricomi(a: Array, b: Array, z: Array) -> Array:
    """U(a, b, z) for z > 0, good to 1e-12, which SciPy's hyperu is not everywhere (to 1e-8 for a < −5, b > 6, z < 0.1).

    For a ≥ 1 from Γ(a) U = ∫ exp(−zt) tᵃ⁻¹ (1 + t)ᵇ⁻ᵃ⁻¹ dt (DLMF 13.4.4) by the trapezoidal rule in log t, where
    nothing cancels; for smaller a by the recurrence downwards (13.3.7), in which U is dominant.
    """
    a, b, z = np.broadcast_arrays(*(np.asarray(x, float) for x in (a, b, z)))
    steps = np.maximum(np.ceil(1 - a), 0)
    top = a + steps
    upper, value = _tricomi_integral(top + 1, b, z), _tricomi_integral(top, b, z)
    for k in range(int(np.max(np.where(np.isfinite(steps), steps, 0), initial=0))):
        here = top - k
        lower = (2 * here - b + z) * value - here * (here - b + 1) * upper
        going = k < steps
        upper, value = np.where(going, value, upper), np.where(going, lower, value)
    return value


def _tricomi_integral(a: Array, b: Array, z: Array) -> Array:
    def log_integrand(u: Array) -> Array:
        return a * u - z * np.exp(u) + (b - a - 1) * np.logaddexp(0.0, u)

    # The peak solves z t² + (z − b + 1) t = a.
    linear = z - b + 1
    root = np.sqrt(linear * linear + 4 * a * z)
    peak = np.log(np.where(linear > 0, 2 * a / (linear + root), (root - linear) / (2 * z)))
    height = log_integrand(peak)
    ends = [peak + side * _distance(lambda d, side=side: height - log_integrand(peak + side * d)) for side in (-1, 1)]
    width = (ends[1] - ends[0]) / _NODES
    total = 0.0
    for k in range(_NODES + 1):
        total = total + np.exp(log_integrand(ends[0] + k * width) - height)
    return width * total * np.exp(height - special.gammaln(a))


def _distance(fall: Any) -> Array:
    """Where a growing function reaches `_DEPTH`, by bisection in the logarithm."""
    low, high = -12.0, 8.0
    for _ in range(24):
        middle = 0.5 * (low + high)
        beyond = fall(np.exp(middle)) > _DEPTH
        low, high = np.where(beyond, low, middle), np.where(beyond, middle, high)
    return np.exp(high)


each(
    "hyperu",
    lambda a, b, c: slope(tricomi, (1, 0, 0), a, b, c),
    lambda a, b, c: slope(tricomi, (0, 1, 0), a, b, c),
    lambda a, b, c: -a * special.hyperu(a + 1, b + 1, c),  # DLMF 13.3.22
    at=[real(0.5, 2), real(0.3, 0.8), real(0.5, 3)],
)

# --- Wright's generalised Bessel function Φ(a, b; x) = Σ xᵏ / (k! Γ(ak + b)) (DLMF 10.46.1) -----------------------

each(
    "wright_bessel",
    lambda a, b, c: slope(special.wright_bessel, (1, 0, 0), a, b, c),
    lambda a, b, c: slope(special.wright_bessel, (0, 1, 0), a, b, c),
    lambda a, b, c: special.wright_bessel(a, a + b, c),
    at=[real(0.5, 2), real(0.5, 2), real(0.5, 2)],
)
each(
    "log_wright_bessel",
    lambda a, b, c: slope(special.log_wright_bessel, (1, 0, 0), a, b, c),
    lambda a, b, c: slope(special.log_wright_bessel, (0, 1, 0), a, b, c),
    lambda y, a, b, c: np.exp(special.log_wright_bessel(a, a + b, c) - y),
    at=[real(1.2, 2), real(1.5, 2), real(0.5, 1)],
)

# --- Parabolic cylinder functions, each with its derivative -------------------------------------------------------


def pbdv_value(v: Any, x: Any) -> Any:
    return special.pbdv(v, x)[0]


def pbdv_derivative(v: Any, x: Any) -> Any:
    return special.pbdv(v, x)[1]


def pbvv_value(v: Any, x: Any) -> Any:
    return special.pbvv(v, x)[0]


def pbvv_derivative(v: Any, x: Any) -> Any:
    return special.pbvv(v, x)[1]


def pbwa_value(a: Any, x: Any) -> Any:
    return special.pbwa(a, x)[0]


def pbwa_derivative(a: Any, x: Any) -> Any:
    return special.pbwa(a, x)[1]


def pbdv_in_x(y: Any, v: Any, x: Any) -> tuple[Any, Any]:
    """D″ = (x²/4 − v − ½) D (DLMF 12.2.4), which V solves as well."""
    return y[1], (0.25 * x * x - v - 0.5) * y[0]


def pbwa_in_x(y: Any, a: Any, x: Any) -> tuple[Any, Any]:
    """W″ = (a − x²/4) W (DLMF 12.2.3)."""
    return y[1], (a - 0.25 * x * x) * y[0]


PARABOLIC = [call(real(-1.7, 2.8, 2, 3), real(-2, 2, 3)), call(1.5, real(-2, 2))]
several(
    "pbdv",
    lambda y, v, x: (slope(pbdv_value, (1, 0), v, x), slope(pbdv_derivative, (1, 0), v, x)),
    pbdv_in_x,
    at=PARABOLIC,
)
several(
    "pbvv",
    lambda y, v, x: (slope(pbvv_value, (1, 0), v, x), slope(pbvv_derivative, (1, 0), v, x)),
    pbdv_in_x,
    at=PARABOLIC,
)
several(
    "pbwa",
    lambda y, a, x: (slope(pbwa_value, (1, 0), a, x), slope(pbwa_derivative, (1, 0), a, x)),
    pbwa_in_x,
    at=PARABOLIC,
)
