"""Derivatives of scipy.special in all arguments, shapes and orders included, against mpmath at 30 digits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

mp = pytest.importorskip("mpmath")
special = pytest.importorskip("scipy.special")

from retrograde import gradient  # noqa: E402

# The bound of the documentation; most are a thousand times better.
RTOL = 1e-9


@pytest.fixture(autouse=True)
def _thirty_digits() -> Iterator[None]:
    with mp.workdps(30), np.errstate(all="ignore"):
        yield


def lower_gamma(a: Any, x: Any) -> Any:
    return mp.gammainc(a, 0, x, regularized=True)


def upper_gamma(a: Any, x: Any) -> Any:
    return mp.gammainc(a, x, mp.inf, regularized=True)


def beta_share(a: Any, b: Any, x: Any) -> Any:
    return mp.betainc(a, b, 0, x, regularized=True)


def student(df: Any, t: Any) -> Any:
    tail = beta_share(df / 2, mp.mpf(1) / 2, df / (df + t * t)) / 2
    return tail if t < 0 else 1 - tail


def fisher(n: Any, d: Any, f: Any) -> Any:
    return beta_share(n / 2, d / 2, n * f / (d + n * f))


def noncentral_chi(x: Any, df: Any, nc: Any) -> Any:
    return mp.fsum(
        mp.exp(-nc / 2) * (nc / 2) ** j / mp.factorial(j) * lower_gamma(df / 2 + j, x / 2) for j in range(50)
    )


def noncentral_f(n: Any, d: Any, nc: Any, f: Any) -> Any:
    share = n * f / (d + n * f)
    return mp.fsum(
        mp.exp(-nc / 2) * (nc / 2) ** j / mp.factorial(j) * beta_share(n / 2 + j, d / 2, share) for j in range(40)
    )


def voigt(x: Any, sigma: Any, gamma: Any) -> Any:
    z = mp.mpc(x, gamma) / (sigma * mp.sqrt(2))
    return mp.re(mp.exp(-z * z) * mp.erfc(-1j * z)) / (sigma * mp.sqrt(2 * mp.pi))


def owens_t(h: Any, a: Any) -> Any:
    return mp.quad(lambda t: mp.exp(-h * h * (1 + t * t) / 2) / (1 + t * t), [0, a]) / (2 * mp.pi)


def wright(a: Any, b: Any, x: Any) -> Any:
    return mp.nsum(lambda k: x**k / mp.factorial(k) * mp.rgamma(a * k + b), [0, mp.inf])


# Of each: SciPy's name, the same function in mpmath, and points; all arguments are differentiated.
CASES: list[tuple[str, Callable[..., Any], list[tuple[float, ...]]]] = [
    ("gammainc", lower_gamma, [(2.5, 1.7), (0.01, 0.3), (30.0, 9.0), (0.7, 1e-8)]),
    ("gammaincc", upper_gamma, [(2.5, 1.7), (3.0, 60.0), (200.0, 210.0)]),
    ("betainc", beta_share, [(2.5, 1.7, 0.4), (0.3, 20.0, 0.001), (50.0, 60.0, 0.3), (3.0, 0.2, 0.999)]),
    ("stdtr", student, [(3.0, 0.7), (1.5, -20.0), (60.0, 2.0)]),
    ("fdtr", fisher, [(3.0, 5.0, 0.8), (10.0, 2.0, 6.0)]),
    ("chndtr", noncentral_chi, [(4.0, 2.5, 1.5), (9.0, 3.0, 0.1)]),
    ("ncfdtr", noncentral_f, [(3.0, 5.0, 1.5, 0.8)]),
    ("jv", mp.besselj, [(0.3, 0.7), (2.0, 30.0), (40.0, 20.0), (-1.3, 2.0), (0.0, 1.0)]),
    ("yv", mp.bessely, [(0.3, 0.7), (10.2, 3.0), (0.0, 1.0)]),
    ("iv", mp.besseli, [(0.3, 0.7), (2.0, 30.0), (10.5, 3.0)]),
    ("kv", mp.besselk, [(0.3, 0.7), (2.0, 30.0), (10.5, 3.0)]),
    ("kve", lambda v, x: mp.exp(x) * mp.besselk(v, x), [(0.3, 0.7), (2.5, 400.0)]),
    ("struve", mp.struveh, [(0.3, 0.7), (2.5, 9.0)]),
    ("modstruve", mp.struvel, [(0.3, 0.7), (2.5, 9.0)]),
    ("hyp0f1", mp.hyp0f1, [(1.2, -2.5), (2.5, 8.0)]),
    ("hyp1f1", mp.hyp1f1, [(0.3, 1.2, 0.7), (2.5, 1.5, -9.0), (-1.3, 2.2, 4.0), (1.0, 2.0, 20.0)]),
    ("hyp2f1", mp.hyp2f1, [(0.3, 1.2, 1.7, 0.5), (1.0, 2.0, 4.0, -3.0), (2.5, 1.5, 4.0, 0.95)]),
    ("hyperu", mp.hyperu, [(0.3, 1.2, 0.7), (2.5, 1.5, 3.0), (-1.5, 0.7, 2.0)]),
    ("wright_bessel", wright, [(0.7, 1.2, 1.1)]),
    ("zeta", mp.zeta, [(2.5, 0.7), (1.1, 8.0)]),
    ("beta", mp.beta, [(2.5, 0.7), (0.01, 30.0)]),
    ("betaln", lambda a, b: mp.log(mp.beta(a, b)), [(2.5, 0.7), (1e6, 1.0)]),
    ("binom", mp.binomial, [(7.3, 2.2), (-2.5, 1.5), (3.0, 5.5)]),
    ("poch", mp.rf, [(7.3, 2.2), (-2.5, 1.2)]),
    ("eval_legendre", mp.legendre, [(2.5, 0.3), (3.0, -0.9)]),
    ("eval_jacobi", mp.jacobi, [(2.5, 0.7, 1.2, 0.3), (3.0, 1.0, 2.0, -0.9)]),
    ("eval_gegenbauer", mp.gegenbauer, [(2.5, 0.7, 0.3), (3.0, 1.0, -0.9)]),
    ("eval_genlaguerre", mp.laguerre, [(2.5, 0.7, 1.3), (3.0, 1.0, 4.0)]),
    ("eval_chebyt", mp.chebyt, [(2.5, 0.3)]),
    ("eval_chebyu", mp.chebyu, [(2.5, 0.3)]),
    ("ellipkinc", mp.ellipf, [(0.7, 0.6), (-4.0, -2.0), (9.0, 0.99)]),
    ("ellipeinc", mp.ellipe, [(0.7, 0.6), (-4.0, -2.0)]),
    ("elliprf", mp.elliprf, [(0.5, 1.0, 2.0), (1e-3, 1e3, 1.0)]),
    ("elliprd", mp.elliprd, [(0.5, 1.0, 2.0), (1.0, 1.0, 1.0)]),
    ("elliprg", mp.elliprg, [(0.5, 1.0, 2.0), (1.0, 1.0, 1.0)]),
    ("elliprj", mp.elliprj, [(0.5, 1.0, 2.0, 1.5), (1.0, 1.0, 1.0, 1.0)]),
    ("elliprc", mp.elliprc, [(0.5, 2.0), (1.0, 1.0)]),
    ("agm", mp.agm, [(0.5, 2.0), (1.0, 1.0)]),
    ("voigt_profile", voigt, [(0.5, 1.0, 2.0), (4.0, 0.05, 1.0)]),
    ("owens_t", owens_t, [(0.5, 2.0), (-3.0, 0.2)]),
    ("lpmv", lambda v, x: mp.legenp(v, 1, x), [(2.5, 0.3), (1.2, -0.4)]),
    ("pbdv", mp.pcfd, [(0.3, 0.7), (-1.3, -2.0), (2.0, 3.0)]),
    ("pbvv", lambda v, x: mp.pcfv(-v - 0.5, x), [(0.3, 0.7), (-1.3, -2.0), (2.0, 3.0)]),
    ("pbwa", mp.pcfw, [(0.3, 0.7), (-1.3, -2.0)]),
]
# How SciPy is called where it takes more, or gives more, than is differentiated.
CALLS: dict[str, Callable[..., Any]] = {
    "lpmv": lambda v, x: special.lpmv(1, v, x),
    "pbdv": lambda v, x: special.pbdv(v, x)[0],
    "pbvv": lambda v, x: special.pbvv(v, x)[0],
    "pbwa": lambda a, x: special.pbwa(a, x)[0],
    "zeta": lambda x, q: special.zeta(x, q),
}


def difference(f: Callable[..., Any], point: tuple[float, ...], i: int) -> float:
    """∂f/∂(argument i), by mpmath's differences at raised precision."""
    args = [mp.mpf(x) for x in point]

    def along(p: Any) -> Any:
        return f(*args[:i], p, *args[i + 1 :])

    return float(mp.diff(along, args[i], h=mp.mpf(10) ** -10 * max(abs(args[i]), mp.mpf("0.01"))))


@pytest.mark.parametrize(
    ("name", "exact", "point"), [pytest.param(n, f, p, id=f"{n}{p}") for n, f, points in CASES for p in points]
)
def test_all_partial_derivatives_are_those_of_mpmath(name: str, exact: Any, point: tuple[float, ...]) -> None:
    function = CALLS.get(name) or getattr(special, name)
    value = float(exact(*map(mp.mpf, point)))
    if abs(function(*point) - value) > 1e-12 * abs(value):
        pytest.skip(f"this SciPy's {name} is not accurate here itself")
    got = gradient(function, *point)
    want = [difference(exact, point, i) for i in range(len(point))]
    np.testing.assert_allclose(got, want, rtol=RTOL, atol=1e-300)


@pytest.mark.parametrize(
    ("inverse", "forward", "places"),
    [
        # f(…, inverse(…, p, …), …) = p: the value of the inverse goes to one place, p comes from another.
        ("gammaincinv", lambda y, a, p: (special.gammainc(a, y), p), (2.5, 0.4)),
        ("gammainccinv", lambda y, a, p: (special.gammaincc(a, y), p), (2.5, 0.4)),
        ("betaincinv", lambda y, a, b, p: (special.betainc(a, b, y), p), (2.5, 1.5, 0.4)),
        ("chdtri", lambda y, v, p: (special.chdtrc(v, y), p), (2.5, 0.4)),
        ("chdtriv", lambda y, p, x: (special.chdtr(y, x), p), (0.4, 3.0)),
        ("stdtrit", lambda y, df, p: (special.stdtr(df, y), p), (2.5, 0.3)),
        ("fdtri", lambda y, n, d, p: (special.fdtr(n, d, y), p), (2.5, 4.0, 0.3)),
        ("btdtria", lambda y, p, b, x: (special.betainc(y, b, x), p), (0.4, 1.5, 0.6)),
        ("btdtrib", lambda y, a, p, x: (special.betainc(a, y, x), p), (1.5, 0.4, 0.6)),
        ("pdtrik", lambda y, p, m: (special.gammaincc(y + 1, m), p), (0.6, 4.0)),
        ("bdtrik", lambda y, p, n, s: (special.betainc(n - y, y + 1, 1 - s), p), (0.6, 7.0, 0.4)),
        ("nbdtrik", lambda y, p, n, s: (special.betainc(n, y + 1, s), p), (0.6, 4.0, 0.4)),
        ("chndtrix", lambda y, p, df, nc: (special.chndtr(y, df, nc), p), (0.4, 2.5, 1.5)),
        ("ncfdtri", lambda y, n, d, nc, p: (special.ncfdtr(n, d, nc, y), p), (3.0, 5.0, 1.5, 0.4)),
        ("ncfdtridfd", lambda y, n, p, nc, f: (special.ncfdtr(n, y, nc, f), p), (4.5, 0.72, 1.0, 2.1)),
        ("ncfdtridfn", lambda y, p, d, nc, f: (special.ncfdtr(y, d, nc, f), p), (0.55, 4.5, 1.0, 1.25)),
        ("ncfdtrinc", lambda y, n, d, p, f: (special.ncfdtr(n, d, y, f), p), (4.0, 4.0, 0.4, 2.5)),
        ("nctdtrit", lambda y, df, nc, p: (special.nctdtr(df, nc, y), p), (3.0, 0.5, 0.4)),
        ("nctdtrinc", lambda y, df, p, t: (special.nctdtr(df, y, t), p), (3.0, 0.4, 0.5)),
    ],
)
def test_an_inverse_put_into_its_function_has_no_other_derivative_than_one(
    inverse: str, forward: Any, places: tuple[float, ...]
) -> None:
    def remainder(*args: Any) -> Any:
        value, p = forward(getattr(special, inverse)(*args), *args)
        return value - p

    np.testing.assert_allclose(gradient(remainder, *places), 0, atol=1e-9)


@pytest.mark.parametrize("z", [2.0 + 1.0j, 9.0 - 3.0j])
@pytest.mark.parametrize(("name", "exact"), [("jv", mp.besselj), ("kv", mp.besselk), ("hankel1", mp.hankel1)])
def test_the_order_is_differentiated_for_complex_arguments_too(name: str, exact: Any, z: complex) -> None:
    function = getattr(special, name)
    (got,) = gradient(lambda v: np.real(function(v, z)), 1.3)
    want = mp.diff(lambda v: mp.re(exact(v, mp.mpc(z))), mp.mpf(1.3))
    assert got == pytest.approx(float(want), rel=1e-11)
