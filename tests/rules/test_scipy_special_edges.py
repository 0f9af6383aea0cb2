"""Functions of scipy.special in their tails, to the third derivative, and at their awkward points."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

mp = pytest.importorskip("mpmath")
special = pytest.importorskip("scipy.special")

from retrograde import grad, gradient, pullback  # noqa: E402
from retrograde.errors import MissingRuleError  # noqa: E402
from retrograde.rules.scipy_special_slopes import MOST, slope  # noqa: E402

inf, nan, pi = math.inf, math.nan, math.pi


@pytest.fixture(autouse=True)
def _no_floating_point_warnings() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


def slopes(function: Any, *args: float) -> list[float]:
    """All partial derivatives, also where the value is infinite."""
    return [float(x) for x in pullback(function, *args)[1](1.0)]


# --- Tails: relative accuracy of the first three derivatives -----------------------------------------------

TAILS: dict[str, tuple[Any, list[float], float]] = {
    "expit": (lambda x: 1 / (1 + mp.exp(-x)), [-300, -40, 1, 30, 200], 1e-14),
    "log_expit": (lambda x: -mp.log(1 + mp.exp(-x)), [-300, -40, 1, 30, 200], 1e-14),
    "erfcx": (lambda x: mp.exp(x * x) * mp.erfc(x), [-3, 0.1, 3, 6.9, 7.1, 30, 1e3, 1e5], 1e-10),
    "dawsn": (lambda x: mp.sqrt(mp.pi) / 2 * mp.exp(-x * x) * mp.erfi(x), [0.1, 3, 6.9, 7.1, 20], 1e-10),
    "log_ndtr": (lambda x: mp.log(mp.ncdf(x)), [-50, -10, -1, 1, 8, 20], 1e-11),
    "exprel": (lambda x: mp.expm1(x) / x, [-50, -1.1, -0.9, 1e-5, 0.9, 1.1, 50], 1e-13),
    "spence": (lambda x: mp.polylog(2, 1 - x), [0.01, 0.69, 0.71, 1 + 1e-5, 1.29, 1.31, 3], 1e-13),
    "i0e": (lambda x: mp.exp(-x) * mp.besseli(0, x), [0.1, 5, 29, 31, 1e4], 1e-10),
    "kolmogorov": (lambda x: 1 - mp.jtheta(4, 0, mp.exp(-2 * x * x)), [0.3, 0.79, 0.81, 2], 1e-12),
    "psi": (mp.digamma, [-20.3, -0.5, 0.1, 1e4], 1e-13),
    "rgamma": (mp.rgamma, [-2.3, 0.6, 5], 1e-12),
}


@pytest.mark.parametrize(("name", "x"), [(name, x) for name, (_, xs, _) in TAILS.items() for x in xs])
def test_three_derivatives_keep_their_digits_in_the_tails(name: str, x: float) -> None:
    exact, _, tolerance = TAILS[name]
    function = getattr(special, name)
    with mp.workdps(60):
        for order in (1, 2, 3):
            function = grad(function)
            want = float(mp.diff(exact, mp.mpf(x), order, h=mp.mpf(10) ** -12 * max(1, abs(x))))
            assert function(float(x)) == pytest.approx(want, rel=tolerance, abs=1e-300), order


@pytest.mark.parametrize(("order", "rel"), [(1, 1e-13), (2, 1e-11), (3, 1e-9)], ids=["first", "second", "third"])
@pytest.mark.parametrize("v", [-2.0, 0.0, 0.5, 30.0])
def test_derivatives_in_the_order_lose_two_digits_each(v: float, order: int, rel: float) -> None:
    with mp.workdps(40):
        want = mp.diff(lambda v: mp.besselj(v, 3), mp.mpf(v), order)
    assert slope(special.jv, (order, 0), v, 3.0) == pytest.approx(float(want), rel=rel)


def test_second_derivative_of_log_ndtr_reaches_minus_one_far_out() -> None:
    assert grad(grad(special.log_ndtr))(-1e8) == pytest.approx(-1)
    assert grad(grad(special.log_ndtr))(60.0) == 0


# --- Removable singularities, zeros, ends of a domain -----------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "args", "want"),
    [
        ("xlogy", (0, 2), [math.log(2), 0]),
        ("xlogy", (0, 0), [-inf, 0]),
        ("xlog1py", (0, -1), [-inf, 0]),
        ("entr", (0,), [inf]),
        ("kl_div", (0, 2), [-inf, 1]),
        ("kl_div", (2, 2), [0, 0]),
        ("rel_entr", (0, 2), [-inf, 0]),
        ("huber", (1, 0), [0, 0]),
        ("huber", (1, 1), [0, 1]),
        ("huber", (1, -3), [2, -1]),
        ("pseudo_huber", (0, 2), [2, 0]),
        ("pseudo_huber", (0, 0), [0, 0]),
        ("exprel", (0,), [0.5]),
        ("spence", (1,), [-1]),
        ("boxcox", (0, 2), [0, 0.25]),
        ("boxcox", (2, 0), [0.5, math.log(2) ** 2 / 2]),
        ("inv_boxcox", (1.5, 0), [math.exp(1.5), -math.exp(1.5) * 1.125]),
        ("powm1", (0, 2), [0, 0]),
        ("j1", (0,), [0.5]),
        ("i1", (0,), [0.5]),
        ("beip", (0,), [0.5]),
        ("jv", (0.5, 0), [0, inf]),
        ("rgamma", (-2,), [2]),
        ("binom", (5, 7), [-1 / 42, 1 / 42]),
        ("binom", (5, -1), [0, 1 / 6]),
        ("poch", (-2, 3), [2, 0]),
        ("ellipk", (0,), [pi / 8]),
        ("ellipe", (0,), [-pi / 8]),
        ("elliprc", (1, 1), [-1 / 6, -1 / 3]),
        ("gammainc", (2, 0), [0, 0]),
        ("gammainc", (1, 0), [0, 1]),
        ("gammainc", (2, 1e4), [0, 0]),
        ("betainc", (2, 3, 0), [0, 0, 0]),
        ("betainc", (1, 1, 1), [0, 0, 1]),
        ("stdtr", (1, 0), [0, 1 / pi]),
        ("stdtr", (inf, 1), [0, math.exp(-0.5) / math.sqrt(2 * pi)]),
        ("voigt_profile", (1, 0, 2), [-4 / (25 * pi), 0, -3 / (25 * pi)]),
        ("voigt_profile", (0, 1, 0), [0, -1 / math.sqrt(2 * pi), -1 / pi]),
        ("eval_legendre", (3, 1), [0, 6]),
        ("tklmbda", (2, 1), [0, 0]),
        ("kolmogorov", (0,), [0]),
        ("gammasgn", (-0.5,), [0]),
        ("ndtr", (40,), [0]),
    ],
)
def test_derivatives_at_an_awkward_point(function: str, args: tuple[float, ...], want: list[float]) -> None:
    got = slopes(getattr(special, function), *map(float, args))
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-13)


def test_constant_polynomials_and_degrees_below_the_derivative() -> None:
    for name in ("eval_legendre", "eval_chebyt", "eval_chebyu", "eval_laguerre", "eval_hermite", "eval_hermitenorm"):
        function = getattr(special, name)
        assert gradient(lambda x, f=function: f(0, x), 0.3) == (0,)
        assert grad(grad(lambda x, f=function: f(1, x)))(0.3) == 0


def test_step_functions_have_the_derivative_zero_and_a_path() -> None:
    assert gradient(special.pdtr, 2.5, 3.0) == pytest.approx((0, -math.exp(-3) * 4.5))
    assert gradient(lambda k: special.bdtr(k, 5, 0.3), 2.5) == (0,)


def test_large_shapes_keep_their_digits() -> None:
    a = 1e10
    assert slopes(special.gammainc, a, a)[0] == pytest.approx(-1 / math.sqrt(2 * pi * a), rel=1e-8)
    # ∂/∂ν of Student's distribution function approaches t (t² + 1) φ(t) / (4ν²).
    assert slopes(special.stdtr, 1e6, 1.0)[0] == pytest.approx(math.exp(-0.5) / math.sqrt(2 * pi) / 2e12, rel=1e-5)
    assert slopes(special.betaln, 1e6, 1.0)[0] == pytest.approx(-1e-6, rel=1e-14)


def test_zero_cotangent_of_an_infinite_slope_stays_zero() -> None:
    (x_bar,) = gradient(lambda x: np.sum(np.where([True, False], 1.0, special.logit(x))), np.array([0.0, 0.5]))
    assert x_bar.tolist() == [0, 4]


# --- logsumexp -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("a", "want"),
    [
        ([3.0, 3.0], [0.5, 0.5]),
        ([-inf, -inf], [0.5, 0.5]),
        ([inf, inf, 1.0], [0.5, 0.5, 0]),
        ([-inf, 1.0], [0, 1]),
        ([1000.0, 0.0], [1, 0]),
        ([5.0], [1]),
    ],
)
def test_logsumexp_shares_ties_and_infinities(a: list[float], want: list[float]) -> None:
    np.testing.assert_allclose(pullback(special.logsumexp, np.array(a))[1](1.0)[0], want, atol=1e-300)


def test_logsumexp_is_differentiated_in_its_weights_too() -> None:
    a, b = np.array([1.0, 2.0, -1.0]), np.array([0.5, 0.0, 2.0])
    total = np.sum(b * np.exp(a))
    a_bar, b_bar = gradient(lambda a, b: special.logsumexp(a, b=b), a, b)
    np.testing.assert_allclose(a_bar, b * np.exp(a) / total, rtol=1e-14)
    np.testing.assert_allclose(b_bar, np.exp(a) / total, rtol=1e-14)


# --- What cannot be differentiated --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda n: special.expn(n, 2.0), "n"),
        (lambda n: special.polygamma(n, 2.0), "n"),
        (lambda n: special.bdtr(2.0, n + 4, 0.3), "n"),
        (lambda m: special.mathieu_a(m, 0.3), "m"),
        (lambda m: special.lpmv(m, 2.5, 0.3), "m"),
        (lambda m: special.pro_ang1(m, 2.0, 1.5, 0.3)[0], "m"),
    ],
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::RuntimeWarning")
def test_an_integer_argument_is_refused_by_name(call: Any, argument: str) -> None:
    with pytest.raises(MissingRuleError, match=rf"no derivative with respect to {argument}, which is an integer"):
        gradient(call, 1.0)


def test_too_many_derivatives_in_a_parameter_are_refused() -> None:
    function: Any = lambda v: special.jv(v, 2.0)
    for _ in range(MOST):
        function = grad(function)
    assert math.isfinite(function(1.5))
    with pytest.raises(MissingRuleError, match=f"no derivative of order {MOST + 1}"):
        grad(function)(1.5)


def test_a_parameter_in_which_the_function_is_not_smooth_gives_nan_and_no_number() -> None:
    rough = np.vectorize(lambda v: math.sin(1e9 * v))
    assert math.isnan(slope(rough, (1,), 0.3))
    # J of a negative number is real for whole orders only.
    assert math.isnan(slopes(special.jv, 2.0, -1.5)[0])


def test_slopes_broadcast_and_go_by_blocks() -> None:
    v, x = np.linspace(0.1, 5, 90)[:, None], np.linspace(0.5, 9, 80)
    whole = slope(special.jv, (1, 0), v, x)
    assert whole.shape == (90, 80)
    assert whole[17, 33] == slope(special.jv, (1, 0), v[17, 0], x[33])
    assert slope(special.jv, (1, 0), np.zeros((0, 3)), 1.0).shape == (0, 3)
