"""Noncentral χ², F and t, the Kolmogorov-Smirnov distributions, and their inverses."""

from __future__ import annotations

import math
from typing import Any

from scipy import special

from retrograde.originals import np
from retrograde.rules.points import call, real
from retrograde.rules.scipy_special_dispatch import each, integer, several
from retrograde.rules.scipy_special_slopes import slope

Array = Any

# --- Noncentral χ² -------------------------------------------------------------------------------------------


def noncentral_chi_density(x: Array, df: Array, nc: Array) -> Array:
    """½ exp(−(x + λ)/2) (x/λ)^(ν/4 − ½) I_{ν/2−1}(√(λx)) (Johnson, Kotz and Balakrishnan (1995), 29.4).

    The Bessel function is written as a ₀F₁ (DLMF 10.39.9) where its argument is small, and λ may be 0.
    """
    small = nc * x < 100
    u, l = np.where(small, x, 1.0), np.where(small, nc, 1.0)
    log_factor = special.xlogy(0.5 * df - 1, 0.5 * u) - 0.5 * (u + l) - special.gammaln(0.5 * df)
    series = 0.5 * np.exp(log_factor) * special.hyp0f1(0.5 * df, 0.25 * u * l)
    u, l = np.where(small, 1.0, x), np.where(small, 1.0, nc)
    bessel = special.ive(0.5 * df - 1, np.sqrt(u * l))
    gap = np.sqrt(u) - np.sqrt(l)
    return np.where(small, series, 0.5 * np.exp(-0.5 * gap * gap) * np.power(u / l, 0.25 * df - 0.5) * bessel)


def chi_in_noncentrality(x: Array, df: Array, nc: Array) -> Array:
    """½ (F(x; ν + 2, λ) − F(x; ν, λ)) = −f(x; ν + 2, λ), from F as a Poisson mixture (ibid., 29.3)."""
    return -noncentral_chi_density(x, df + 2, nc)


def chi_in_freedom(x: Array, df: Array, nc: Array) -> Array:
    return slope(special.chndtr, (0, 1, 0), x, df, nc)


each(
    "chndtr",
    lambda a, b, c: noncentral_chi_density(a, b, c),
    lambda a, b, c: chi_in_freedom(a, b, c),
    lambda a, b, c: chi_in_noncentrality(a, b, c),
    at=[real(1, 9), real(1, 5), real(0.5, 5)],
)
each(
    "chndtrix",  # of p, the degrees of freedom and the noncentrality
    lambda y, b, c: 1 / noncentral_chi_density(y, b, c),
    lambda y, b, c: -chi_in_freedom(y, b, c) / noncentral_chi_density(y, b, c),
    lambda y, b, c: -chi_in_noncentrality(y, b, c) / noncentral_chi_density(y, b, c),
    at=[real(0.1, 0.9), real(1, 5), real(0.5, 5)],
)
each(
    "chndtridf",  # of x, p and the noncentrality
    lambda y, a, c: -noncentral_chi_density(a, y, c) / chi_in_freedom(a, y, c),
    lambda y, a, c: 1 / chi_in_freedom(a, y, c),
    lambda y, a, c: -chi_in_noncentrality(a, y, c) / chi_in_freedom(a, y, c),
    at=[real(5, 9), real(0.3, 0.7), real(0.5, 2)],
)
each(
    "chndtrinc",  # of x, the degrees of freedom and p
    lambda y, a, b: -noncentral_chi_density(a, b, y) / chi_in_noncentrality(a, b, y),
    lambda y, a, b: -chi_in_freedom(a, b, y) / chi_in_noncentrality(a, b, y),
    lambda y, a, b: 1 / chi_in_noncentrality(a, b, y),
    at=[real(7, 9), real(1, 3), real(0.3, 0.7)],
)

# --- Noncentral F and t: no density in SciPy's terms, so that every argument is differentiated by `slope` ---------


def _in(function: Any, i: int, *args: Any) -> Any:
    return slope(function, tuple(int(j == i) for j in range(len(args))), *args)


def noncentral(name: str, count: int, at: list[Any]) -> None:
    function = getattr(special, name)
    several(name, *(lambda y, *args, i=i: _in(function, i, *args) for i in range(count)), at=at)


def inverse_of(name: str, function: Any, solved: int, given: int, at: list[Any]) -> None:
    """The rule of an inverse: its value is argument `solved` of `function`, its argument `given` the probability.

    The others stand in the order in which `function` takes them.
    """

    def arguments(y: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
        whole = [x for j, x in enumerate(args) if j != given]
        whole.insert(solved, y)
        return tuple(whole)

    def slope_in(j: int) -> Any:
        def in_argument(y: Any, *args: Any) -> Any:
            whole = arguments(y, args)
            along = _in(function, solved, *whole)
            if j == given:
                return 1 / along
            place = j if j < given else j - 1
            return -_in(function, place if place < solved else place + 1, *whole) / along

        return in_argument

    several(name, *(slope_in(j) for j in range(len(at[0].args))), at=at)


noncentral("ncfdtr", 4, [call(real(2, 5, 2, 3), real(2, 5, 3), real(0.5, 2), real(0.5, 2, 3))])
noncentral("nctdtr", 3, [call(real(2, 5, 2, 3), real(-1, 2, 3), real(-2, 2, 3))])

P = real(0.3, 0.7, 3)
inverse_of("ncfdtri", special.ncfdtr, 3, 3, [call(real(2, 5, 2, 3), real(2, 5, 3), real(0.5, 2), P)])
inverse_of("nctdtrit", special.nctdtr, 2, 2, [call(real(2, 5, 2, 3), real(-1, 2, 3), P)])
inverse_of("nctdtridf", special.nctdtr, 0, 0, [call(real(0.8, 0.81, 3), real(0.4, 0.42, 3), real(1.5, 1.52, 3))])
# Of these SciPy finds eight digits, which no difference quotient survives; the tests put them into their inverses.
inverse_of("ncfdtridfd", special.ncfdtr, 1, 1, [call(4.5, 0.72, 1.0, 2.1)])
inverse_of("ncfdtridfn", special.ncfdtr, 0, 0, [call(0.55, 4.5, 1.0, 1.25)])
inverse_of("ncfdtrinc", special.ncfdtr, 2, 2, [call(4.0, 4.0, 0.4, 2.5)])
inverse_of("nctdtrinc", special.nctdtr, 1, 1, [call(3.0, 0.4, 0.5)])

# --- Kolmogorov and Smirnov ----------------------------------------------------------------------------------


def kolmogorov_slope(x: Array) -> Array:
    """K′ from K(x) = 2 Σ (−1)ᵏ⁻¹ exp(−2k²x²), or for small x from 1 − K = √(2π)/x Σ exp(−(2k − 1)²π²/(8x²)).

    Source: Kolmogorov (1933), and Jacobi's transformation of the theta function (DLMF 20.7.33).
    """
    empty, far = x < 0.04, x > 0.8
    u, v = np.where(far, x, 1.0), np.where(far | empty, 0.5, x)
    large = sum((-1) ** k * k * k * np.exp(-2 * k * k * u * u) for k in range(1, 8)) * (8 * u)
    squares = [((2 * k - 1) * math.pi) ** 2 / 8 for k in range(1, 5)]
    small = sum((1 - 2 * s / (v * v)) * np.exp(-s / (v * v)) for s in squares) * (math.sqrt(2 * math.pi) / (v * v))
    return np.where(far, large, np.where(empty, 0.0, small))


each("kolmogorov", lambda x: kolmogorov_slope(x), at=[real(0.3, 1.5)])
each("kolmogi", lambda y: 1 / kolmogorov_slope(y), at=[real(0.1, 0.9)])


def smirnov_slope(n: Any, d: Array) -> Array:
    """∂/∂d of d Σ C(n, j) (d + j/n)ʲ⁻¹ (1 − d − j/n)ⁿ⁻ʲ over 0 ≤ j ≤ n(1 − d).

    Source: Birnbaum and Tingey (1951), "One-sided confidence contours for probability distribution functions".
    """
    n = np.asarray(n, float)
    j = np.arange(1, max(int(np.max(n, initial=1)), 2))
    count, x = n[..., None], np.expand_dims(d, -1)
    share = j / count
    inside = (j < count) & (1 - x - share > 0)
    below, above = np.where(inside, x + share, 1.0), np.where(inside, 1 - x - share, 1.0)
    chosen = np.where(inside, j, 1.0)
    choices = special.gammaln(count + 1) - special.gammaln(chosen + 1) - special.gammaln(count - chosen + 1)
    term = np.exp(choices + (chosen - 1) * np.log(below) + (count - chosen) * np.log(above))
    factor = 1 + x * ((chosen - 1) / below - (count - chosen) / above)
    return np.sum(np.where(inside, term * factor, 0.0), axis=-1) - n * np.power(1 - d, n - 1)


each("smirnov", integer("smirnov", "n"), lambda a, b: smirnov_slope(a, b), at=[5, real(0.21, 0.39)])
each("smirnovi", integer("smirnovi", "n"), lambda y, a: 1 / smirnov_slope(a, y), at=[5, real(0.1, 0.2)])
