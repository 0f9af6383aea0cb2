"""Coefficients keep their relative accuracy where a function is nearly constant or nearly linear, against mpmath."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

mp = pytest.importorskip("mpmath")

from retrograde import grad, hvp, jvp, taylor, vmap  # noqa: E402

try:
    from scipy import special
except ImportError:  # the functions of NumPy are tested all the same
    special = None

PLACES = (-300.0, -100.0, -40.0, -25.0, -19.5, -8.0, -1.3, 0.3, 1.5, 8.0, 19.5, 25.0, 40.0, 100.0, 300.0)
ORDER = 5


def logistic(x: Any) -> Any:
    return 1 / (1 + mp.exp(-x))


def bell(x: Any) -> Any:
    return mp.exp(-x * x) * 2 / mp.sqrt(mp.pi)


def normal(x: Any) -> Any:
    return mp.exp(-x * x / 2) / mp.sqrt(2 * mp.pi)


# Each function, and its derivative: of that no digits are lost where the function is nearly constant.
Pair = tuple[Callable[[Any], Any], Callable[[Any], Any]]

OF_NUMPY: dict[str, Pair] = {
    "tanh": (lambda x: np.tanh(x), lambda x: mp.sech(x) ** 2),
    "math.tanh": (lambda x: math.tanh(x), lambda x: mp.sech(x) ** 2),
    "arctan": (lambda x: np.arctan(x), lambda x: 1 / (1 + x * x)),
    "arctan2": (lambda x: np.arctan2(x, 1.0), lambda x: 1 / (1 + x * x)),
    "arcsinh": (lambda x: np.arcsinh(x), lambda x: 1 / mp.sqrt(1 + x * x)),
    "exp": (lambda x: np.exp(x), mp.exp),
    "1 / (1 + exp(-x))": (lambda x: 1 / (1 + np.exp(-x)), lambda x: logistic(x) * logistic(-x)),
    "logaddexp": (lambda x: np.logaddexp(0.0, x), logistic),
    "logaddexp.reduce": (lambda x: np.logaddexp.reduce(np.stack([x, 0 * x])), logistic),
    "math.erf": (lambda x: math.erf(x), bell),
    "math.erfc": (lambda x: math.erfc(x), lambda x: -bell(x)),
}
OF_SCIPY: dict[str, Pair] = {
    "expit": (lambda x: special.expit(x), lambda x: logistic(x) * logistic(-x)),
    "log_expit": (lambda x: special.log_expit(x), lambda x: logistic(-x)),
    "erf": (lambda x: special.erf(x), bell),
    "erfc": (lambda x: special.erfc(x), lambda x: -bell(x)),
    "ndtr": (lambda x: special.ndtr(x), normal),
    "log_ndtr": (lambda x: special.log_ndtr(x), lambda x: 2 * normal(x) / mp.erfc(-x / mp.sqrt(2))),
    "logsumexp": (lambda x: special.logsumexp(np.stack([x, 0 * x])), logistic),
    "softmax": (lambda x: special.softmax(np.stack([x, 0 * x]))[0], lambda x: logistic(x) * logistic(-x)),
    "log_softmax": (lambda x: special.log_softmax(np.stack([x, 0 * x]))[0], lambda x: logistic(-x)),
}


def check(f: Callable[[Any], Any], slope: Callable[[Any], Any], order: int = ORDER) -> None:
    for x in PLACES:
        with mp.workdps(60):
            want = [c / (k + 1) for k, c in enumerate(mp.taylor(slope, mp.mpf(x), order - 1))]
        with np.errstate(all="ignore"):
            got = taylor(f, x, 1.0, order)[1:]  # the value itself is NumPy's own
        for k in range(order):
            if 1e-290 < abs(want[k]) < 1e290:  # a number that has no normal form has no digits
                assert_allclose(float(got[k]), float(want[k]), rtol=1e-10, err_msg=f"coefficient {k + 1} at {x}")


@pytest.mark.parametrize("name", OF_NUMPY)
def test_coefficients_of_numpys_functions_keep_their_digits_in_the_tails(name: str) -> None:
    check(*OF_NUMPY[name])


@pytest.mark.skipif(special is None, reason="SciPy is not installed")
@pytest.mark.parametrize("name", OF_SCIPY)
def test_coefficients_of_special_functions_keep_their_digits_in_the_tails(name: str) -> None:
    # The higher coefficients of log_ndtr are differences of far larger terms.
    check(*OF_SCIPY[name], order=3 if name == "log_ndtr" else ORDER)


def test_tanh_of_arrays_and_of_complex_numbers_has_its_tail_too() -> None:
    x = np.array([-30.0, 0.5, 25.0])
    with mp.workdps(60):
        want = [[float(c) for c in mp.taylor(mp.tanh, t, 3)] for t in x]
    assert_allclose(np.transpose(taylor(np.tanh, x, np.ones(3), 3)), want, rtol=1e-12)
    z = np.array([20.0 + 1.0j, 0.3j])
    slopes = [complex(mp.sech(mp.mpc(complex(t))) ** 2) for t in z]
    assert_allclose(taylor(np.tanh, z, np.ones(2, complex), 1)[1], slopes, rtol=1e-12)


LOGARITHMS_OF_SUMS = ["logaddexp.reduce", *(["logsumexp"] if special is not None else [])]


@pytest.mark.parametrize("name", LOGARITHMS_OF_SUMS)
def test_curvature_of_a_logarithm_of_a_sum_keeps_its_digits_in_every_mode(name: str) -> None:
    f = (OF_NUMPY | OF_SCIPY)[name][0]
    for x in (-40.0, 8.0, 40.0, 300.0):
        want = math.exp(-abs(x)) / (1 + math.exp(-abs(x))) ** 2
        for curvature in (
            grad(grad(f))(x),
            jvp(grad(f), (x,), (1.0,))[1],
            hvp(f, x, 1.0),
            vmap(grad(grad(f)))(np.array([x, 0.5]))[0],
            grad(lambda t: jvp(f, (t,), (1.0,))[1])(x),
        ):
            assert_allclose(curvature, want, rtol=1e-13)


@pytest.mark.skipif(special is None, reason="SciPy is not installed")
def test_gradient_of_log_softmax_keeps_the_share_of_the_others() -> None:
    x = np.array([[40.0, 0.0, 1.0], [0.3, -0.2, 0.1]])
    with mp.workdps(60):
        powers = [[mp.exp(t) for t in row] for row in x.tolist()]
        shares = [[p / mp.fsum(row) for p in row] for row in powers]
        want = [[float((j == 0) - s) for j, s in enumerate(row)] for row in shares]
    for f in (lambda x: np.sum(special.log_softmax(x, axis=1)[:, 0]), lambda x: special.log_softmax(x, 1)[:, 0].sum()):
        assert_allclose(grad(f)(x), want, rtol=1e-12)
        for i in range(3):
            unit = np.zeros((2, 3))
            unit[:, i] = 1.0
            assert_allclose(jvp(f, (x,), (unit,))[1], sum(row[i] for row in want), rtol=1e-12)
