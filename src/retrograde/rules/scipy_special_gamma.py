"""The gamma function and what is made of it: digamma and polygamma, beta, binomials, zeta."""

from __future__ import annotations

import inspect
import math
from typing import Any

from scipy import special

from retrograde.errors import UnsupportedArgumentError
from retrograde.originals import np
from retrograde.rules.points import call, real
from retrograde.rules.products import times
from retrograde.rules.scipy_special_dispatch import each, integer, named, overridable
from retrograde.rules.scipy_special_elementary import polynomial
from retrograde.rules.scipy_special_slopes import slope
from retrograde.rules.table import composed, elementwise, general

Array = Any

# --- Gamma and its logarithmic derivatives -----------------------------------------------------------------

_HERE = 12  # where the asymptotic series below is used; ten terms leave less than 1e-17
_BERNOULLI = [1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330]


@overridable
def polygamma(n: Any, z: Array) -> Array:
    """ψ⁽ⁿ⁾(z) for n > 0; SciPy's polygamma for real arguments, and for complex ones

    ψ⁽ⁿ⁾(z) = (−1)ⁿ⁺¹ n! ζ(n + 1, z) (DLMF 25.11.12), with Euler and Maclaurin's sum for ζ (DLMF 25.11.7).
    """
    if not np.iscomplexobj(z):
        return special.polygamma(n, z)
    s = np.asarray(n) + 1
    z = np.asarray(z)
    steps = max(0, math.ceil(_HERE - np.min(z.real, initial=_HERE)))
    total: Any = np.zeros(np.broadcast_shapes(s.shape, z.shape), complex)
    for k in range(steps):
        total = total + 1 / (z + k) ** s
    far = z + steps
    total = total + far ** (1.0 - s) / (s - 1) + 0.5 / far**s
    term = s / (far ** (s + 1.0))
    for k, bernoulli in enumerate(_BERNOULLI, 1):
        total = total + bernoulli / math.factorial(2 * k) * term
        term = term * (s + 2 * k - 1) * (s + 2 * k) / far**2
    return ((-1.0) ** s * special.gamma(s) * total)[()]


elementwise(
    polygamma,
    integer("polygamma", "n"),
    lambda a, b: polygamma(a + 1, b),
    at=[1, real(0.5, 4)],
)
each("polygamma", integer("polygamma", "n"), lambda a, b: polygamma(a + 1, b), at=[2, real(0.5, 4)])

each("gamma", lambda y, x: y * special.digamma(x), at=[real(0.5, 4)])
each("gammaln", lambda x: special.digamma(x), at=[real(0.5, 4)])
each("loggamma", lambda x: special.digamma(x), at=[real(0.5, 4)])
each("digamma psi", lambda x: polygamma(1, x), at=[real(0.5, 4)])
each("gammasgn", 0.0, at=[real(-1.9, -1.1)])


def rgamma_slope(x: Array) -> Array:
    """(1/Γ)′ = −ψ/Γ; left of ½ by the reflection 1/Γ(x) = sin(πx) Γ(1 − x) / π, which knows no poles (DLMF 5.5.3)."""
    left = np.real(x) < 0.5
    mirrored = np.where(left, 1 - x, 1.0)
    reflected = special.gamma(mirrored) * (
        np.cos(math.pi * x) - np.sin(math.pi * x) / math.pi * special.digamma(mirrored)
    )
    right = np.where(left, 1.0, x)
    return np.where(left, reflected, -special.digamma(right) * special.rgamma(right))


each("rgamma", lambda x: rgamma_slope(x), at=[real(-2.5, 3)])


def is_pole(x: Array) -> Array:
    """Whether Γ has a pole at x."""
    return (x <= 0) & (x == np.floor(x))


def digamma_gap(a: Array, b: Array) -> Array:
    """ψ(a + b) − ψ(a), which keeps its digits where b is small beside a.

    ψ(x) = log x − 1/(2x) − Σ B₂ₖ / (2k x²ᵏ) (DLMF 5.11.2) for large arguments, the reflection
    ψ(1 − x) − ψ(x) = π cot πx (5.5.4) where both are poles.
    """
    c = a + b
    large = (a > _HERE) & (c > _HERE)
    poles = is_pole(a) & is_pole(c)
    u, v = np.where(large, a, 1.0), np.where(large, c, 1.0)
    change = np.where(large, b, 0.0)
    asymptotic = np.log1p(change / u) + change / (2 * u * v) + (_digamma_rest(v) - _digamma_rest(u))
    mirrored = special.digamma(np.where(poles, 1 - c, 1.0)) - special.digamma(np.where(poles, 1 - a, 1.0))
    plain = large | poles
    direct = special.digamma(np.where(plain, 1.0, c)) - special.digamma(np.where(plain, 1.0, a))
    return np.where(large, asymptotic, np.where(poles, mirrored, direct))


def _digamma_rest(x: Array) -> Array:
    square = 1 / (x * x)
    return -square * polynomial([b / (2 * k) for k, b in enumerate(_BERNOULLI, 1)], square)


def multigammaln_slope(a: Array, d: int) -> Array:
    """Σ ψ(a − j/2), from log Γ_d(a) = const + Σ log Γ(a − j/2) for j < d (DLMF 35.3.4)."""
    return sum(special.digamma(a - j / 2) for j in range(int(d)))


def multigammaln_pullback(y: Any, a: Any, d: Any) -> Any:
    def pull(y_bar: Any) -> Any:
        return (times(y_bar, multigammaln_slope(a, d)),)

    return pull


def multigammaln_pushforward(y: Any, a: Any, d: Any) -> Any:
    def push(a_dot: Any) -> Any:
        return times(a_dot, multigammaln_slope(a, d))

    return push


general(
    named("multigammaln"),
    pullback=multigammaln_pullback,
    pushforward=multigammaln_pushforward,
    at=[call(real(2, 4), 3), call(real(2, 4, 2, 3), 2)],
)

# --- Beta, binomials and Pochhammer's symbol -----------------------------------------------------------

each(
    "beta",
    lambda y, a, b: -y * digamma_gap(a, b),
    lambda y, a, b: -y * digamma_gap(b, a),
    at=[real(0.3, 4), real(0.3, 4)],
)
each(
    "betaln",
    lambda a, b: -digamma_gap(a, b),
    lambda a, b: -digamma_gap(b, a),
    at=[real(0.3, 4), real(0.3, 4)],
)


def gamma_over_pole(x: Array, pole: Array) -> Array:
    """Γ(x) (1/Γ)′(pole): the derivative of Γ(x)/Γ(p) in p where p is a pole of Γ, and the quotient therefore zero."""
    return special.gamma(x) * rgamma_slope(pole)


def binom_in_n(y: Array, n: Array, k: Array) -> Array:
    """∂/∂n of Γ(n + 1) / (Γ(k + 1) Γ(n − k + 1)) (DLMF 1.2.6, 5.2.4)."""
    m = n - k + 1
    zero = is_pole(m) & ~is_pole(n + 1)
    at_zero = gamma_over_pole(np.where(zero, n + 1, 1.0), np.where(zero, m, 0.0)) * special.rgamma(k + 1.0)
    return np.where(zero, at_zero, y * digamma_gap(np.where(zero, 1.0, m), np.where(zero, 1.0, k)))


def binom_in_k(y: Array, n: Array, k: Array) -> Array:
    """∂/∂k of the same."""
    m = n - k + 1
    above, below = is_pole(m) & ~is_pole(n + 1), is_pole(k + 1.0) & ~is_pole(n + 1)
    zero = above | below
    pole, other = np.where(above, m, k + 1.0), np.where(above, k + 1.0, m)
    at_zero = gamma_over_pole(np.where(zero, n + 1, 1.0), np.where(zero, pole, 0.0)) * special.rgamma(other)
    at_zero = np.where(above, -at_zero, at_zero)
    inner = y * digamma_gap(np.where(zero, 1.0, k + 1), np.where(zero, 1.0, n - 2 * k))
    return np.where(zero, at_zero, inner)


each(
    "binom",
    lambda y, a, b: binom_in_n(y, a, b),
    lambda y, a, b: binom_in_k(y, a, b),
    at=[real(3, 6), real(0.5, 2)],
)


def poch_in_z(y: Array, z: Array, m: Array) -> Array:
    """∂/∂z of Γ(z + m) / Γ(z) (DLMF 5.2.5)."""
    zero = is_pole(z) & ~is_pole(z + m)
    at_zero = gamma_over_pole(np.where(zero, z + m, 1.0), np.where(zero, z, 0.0))
    return np.where(zero, at_zero, y * digamma_gap(np.where(zero, 1.0, z), np.where(zero, 1.0, m)))


each(
    "poch",
    lambda y, a, b: poch_in_z(y, a, b),
    lambda y, a, b: y * special.digamma(a + b),
    at=[real(0.5, 4), real(-0.3, 3)],
)


def _refuse_exact(name: str) -> None:
    raise UnsupportedArgumentError(
        f"scipy.special.{name}(..., exact=True) counts in integers, which have no derivative",
        f"{name}(..., exact=False)",
        f"dropgrad(x) as the argument of {name}, where its derivative is not wanted",
    )


def comb_body(N: Any, k: Any, *, exact: bool = False, repetition: bool = False) -> Any:
    if exact:
        _refuse_exact("comb")
    if repetition:
        empty = np.equal(k, 0) & np.greater_equal(N, 0)
        chosen = np.where(empty, 1.0, special.binom(np.where(empty, 1.0, N + k - 1), k))
        return chosen
    inside = np.less_equal(k, N) & np.greater_equal(N, 0) & np.greater_equal(k, 0)
    return np.where(inside, special.binom(np.where(inside, N, 1.0), np.where(inside, k, 0.0)), 0.0)


def perm_body(N: Any, k: Any, exact: bool = False) -> Any:
    if exact:
        _refuse_exact("perm")
    inside = np.less_equal(k, N) & np.greater_equal(N, 0) & np.greater_equal(k, 0)
    return np.where(inside, special.poch(np.where(inside, N - k + 1.0, 1.0), np.where(inside, k, 0.0)), 0.0)


def factorial_body(n: Any, exact: bool = False, extend: str = "zero") -> Any:
    if exact:
        _refuse_exact("factorial")
    if extend != "zero":
        return special.gamma(n + 1.0)
    inside = np.greater_equal(n, 0)
    return np.where(inside, special.gamma(np.where(inside, n, 0.0) + 1), 0.0)


def factorial_body_until_1_14(n: Any, exact: bool = False) -> Any:
    return factorial_body(n, exact)


COMBINATORIAL_POINTS = [call(real(4, 6, 2), real(1, 2, 2)), call(real(4, 6), 2)]
composed(named("comb"), comb_body, at=[*COMBINATORIAL_POINTS, call(real(4, 6, 3), 2.0, repetition=True)])
composed(named("perm"), perm_body, at=COMBINATORIAL_POINTS)
composed(
    named("factorial"),
    factorial_body if "extend" in inspect.signature(special.factorial).parameters else factorial_body_until_1_14,
    at=[call(real(1, 4, 2, 3)), call(real(1, 4))],
)

# --- Zeta ------------------------------------------------------------------------------------------------

ZETA = named("zeta")


@overridable
def riemann_zeta(x: Array) -> Array:
    """ζ(x)."""
    return ZETA(x)


@overridable
def hurwitz_zeta(x: Array, q: Array) -> Array:
    """ζ(x, q)."""
    return ZETA(x, q)


elementwise(riemann_zeta, lambda x: slope(ZETA, (1,), x), at=[real(1.5, 4)])
elementwise(
    hurwitz_zeta,
    lambda a, b: slope(ZETA, (1, 0), a, b),
    lambda a, b: -a * hurwitz_zeta(a + 1, b),  # DLMF 25.11.17
    at=[real(2, 4), real(0.5, 3)],
)


def zeta_body(x: Any, q: Any = None) -> Any:
    return riemann_zeta(x) if q is None else hurwitz_zeta(x, q)


composed(ZETA, zeta_body, at=[call(real(1.5, 4, 2)), call(real(2, 4, 2), real(0.5, 3, 2)), call(2.5, q=real(0.5, 3))])
each("zetac", lambda x: slope(special.zetac, (1,), x), at=[real(1.5, 4)])
