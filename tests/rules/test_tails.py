"""Relative accuracy of first and second derivatives over the whole range of doubles, against mpmath."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

mp = pytest.importorskip("mpmath")

from retrograde import grad, jvp  # noqa: E402

try:
    from scipy import special
except ImportError:  # the functions of NumPy are tested all the same
    special = None


@pytest.fixture(autouse=True)
def _many_digits() -> Iterator[None]:
    with mp.workdps(120), np.errstate(all="ignore"):
        yield


def normal(x: Any) -> Any:
    return mp.erfc(-x / mp.sqrt(2)) / 2


EVERYWHERE = (-700.0, -40.0, -7.3, -1.3, -1e-3, -1e-9, 1e-9, 1e-3, 0.3, 1.5, 8.0, 40.0, 700.0)
POSITIVE = (1e-300, 1e-9, 0.3, 1.0001, 8.0, 1e9, 1e300)
INSIDE = (-1 + 1e-12, -0.9, -0.3, -1e-9, 1e-9, 0.3, 0.9, 1 - 1e-12)
SHARE = (1e-300, 1e-9, 0.3, 0.7, 1 - 1e-12)

OF_NUMPY: dict[str, tuple[Callable[[Any], Any], tuple[float, ...]]] = {
    "exp": (mp.exp, EVERYWHERE),
    "exp2": (lambda x: mp.mpf(2) ** x, EVERYWHERE),
    "expm1": (mp.expm1, EVERYWHERE),
    "log": (mp.log, POSITIVE),
    "log2": (lambda x: mp.log(x, 2), POSITIVE),
    "log10": (mp.log10, POSITIVE),
    "log1p": (mp.log1p, (-1 + 1e-12, -0.5, -1e-9, *POSITIVE)),
    "sinh": (mp.sinh, EVERYWHERE),
    "cosh": (mp.cosh, EVERYWHERE),
    "tanh": (mp.tanh, EVERYWHERE),
    "arcsinh": (mp.asinh, (*EVERYWHERE, 1e150, -1e150)),
    "arccosh": (mp.acosh, (1 + 1e-12, 1.5, 8.0, 1e150)),
    "arctanh": (mp.atanh, INSIDE),
    "arcsin": (mp.asin, INSIDE),
    "arccos": (mp.acos, INSIDE),
    "arctan": (mp.atan, (*EVERYWHERE, 1e150)),
    "sqrt": (mp.sqrt, POSITIVE),
    "cbrt": (lambda x: mp.sign(x) * mp.cbrt(abs(x)), (*EVERYWHERE, *POSITIVE)),
    "reciprocal": (lambda x: 1 / x, (*EVERYWHERE, 1e100)),
    "i0": (lambda x: mp.besseli(0, x), EVERYWHERE),
}
OF_SCIPY: dict[str, tuple[Callable[[Any], Any], tuple[float, ...]]] = {
    "expit": (lambda x: 1 / (1 + mp.exp(-x)), tuple(x for x in EVERYWHERE if abs(x) > 1e-6)),
    "log_expit": (lambda x: -mp.log1p(mp.exp(-x)), EVERYWHERE),
    "logit": (lambda x: mp.log(x / (1 - x)), (*SHARE[:1], *SHARE[2:])),
    "erfc": (mp.erfc, (-8.0, -1.3, 1e-9, 0.3, 8.0, 20.0)),
    "erfcx": (lambda x: mp.exp(x * x) * mp.erfc(x), (-8.0, -1e-9, 0.3, 8.0, 40.0, 1e9)),
    "dawsn": (lambda x: mp.sqrt(mp.pi) / 2 * mp.exp(-x * x) * mp.erfi(x), (1e-9, 0.3, 8.0, 40.0)),
    "ndtr": (normal, (-30.0, -8.0, 0.3, 8.0, 30.0)),
    "log_ndtr": (lambda x: mp.log(normal(x)), (-700.0, -40.0, -8.0, 0.3, 8.0, 30.0)),
    "entr": (lambda x: -x * mp.log(x), POSITIVE[:-1]),
    "gammaln": (mp.loggamma, (1e-300, 1e-9, 0.3, 8.0, 1e9)),
    "xlog1py": (lambda x: mp.mpf(2) * mp.log1p(x), (-0.5, 1e-9, 8.0, 1e9)),
}


def second(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: jvp(grad(f), (x,), (1.0,))[1]


def check(f: Callable[[Any], Any], exact: Callable[[Any], Any], places: tuple[float, ...]) -> None:
    for x in places:
        step = mp.mpf(abs(x)) * mp.mpf(10) ** -30
        slopes = [mp.re(mp.diff(exact, mp.mpf(x), n, h=step)) for n in (1, 2, 3)]
        for got, n in ((grad(f)(x), 1), (second(f)(x), 2), (grad(grad(f))(x), 2)):
            want = slopes[n - 1]
            if 1e-290 < abs(want) < 1e290:
                # How much the rounding of x alone changes the result.
                condition = float(abs(x * slopes[n] / want))
                assert_allclose(float(got), float(want), rtol=2e-13 * (1 + condition), err_msg=f"order {n} at {x}")


@pytest.mark.parametrize("name", OF_NUMPY)
def test_derivatives_of_numpys_functions_keep_their_digits_in_the_tails(name: str) -> None:
    check(lambda x: getattr(np, name)(x), *OF_NUMPY[name])


@pytest.mark.parametrize("name", OF_SCIPY)
def test_derivatives_of_special_functions_keep_their_digits_in_the_tails(name: str) -> None:
    if special is None:
        pytest.skip("SciPy is not installed")
    f = getattr(special, name)
    check((lambda x: f(2.0, x)) if name == "xlog1py" else lambda x: f(x), *OF_SCIPY[name])


def test_tanh_of_arrays_and_of_complex_numbers_keeps_its_digits_too() -> None:
    x = np.array([-300.0, -20.0, 0.0, 3.0, 30.0])
    want = [float(mp.sech(mp.mpf(float(t))) ** 2) for t in x]
    assert_allclose(grad(lambda x: np.sum(np.tanh(x)))(x), want, rtol=1e-13)
    z = np.array([20.0 + 1.0j, -20.0 + 0.5j, 0.3j])
    exact = [complex(mp.sech(mp.mpc(complex(t))) ** 2) for t in z]
    assert_allclose(jvp(np.tanh, (z,), (np.ones(3, complex),))[1], exact, rtol=1e-13)
    assert np.isnan(jvp(np.tanh, (np.nan,), (1.0,))[1])
    assert grad(np.tanh)(np.inf) == grad(np.tanh)(-np.inf) == 0
    assert_allclose(grad(np.tanh)(np.array(5.0)), float(mp.sech(5) ** 2), rtol=1e-13)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.longdouble])
def test_tanh_keeps_the_digits_of_its_precision(dtype: type) -> None:
    x = np.linspace(-4, 4, 2001).astype(dtype)
    want = [float(mp.sech(mp.mpf(float(t))) ** 2) for t in x]
    assert_allclose(grad(lambda x: np.sum(np.tanh(x)))(x), want, rtol=100 * max(np.finfo(dtype).eps, 2e-16))


def test_removable_singularities_are_right_to_fourth_order() -> None:
    """Taylor coefficients times n!: sinc x = Σ (−1)ᵏ π²ᵏ x²ᵏ / (2k + 1)!"""
    f = np.sinc
    for want in (0.0, -(np.pi**2) / 3, 0.0, np.pi**4 / 5):
        f = grad(f)
        assert_allclose(f(0.0), want, rtol=1e-13, atol=1e-15)
        near = 1e-5
        assert_allclose(f(near), f(-near) * (1 if want else -1), rtol=1e-9)
