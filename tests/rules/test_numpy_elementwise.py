"""Hand-worked derivatives of the elementwise functions at their awkward points: zeros, ties, tails, infinities.

The laws of test_rules.py cannot see these, since differences are blind there. The formulas are evaluated directly.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from interpreter import puller
from numpy._core import umath
from sampling import Point, Slot

import retrograde.rules.numpy_arithmetic
import retrograde.rules.numpy_complex
import retrograde.rules.numpy_interpolation
import retrograde.rules.numpy_logic
import retrograde.rules.numpy_rounding
import retrograde.rules.numpy_transcendental  # noqa: F401
from retrograde import gradient
from retrograde.rules.table import RULES, Composed

inf, nan, pi = math.inf, math.nan, math.pi


@pytest.fixture(autouse=True)
def _no_floating_point_warnings() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


def slopes(function: Any, *args: Any, y_bar: Any = 1.0) -> tuple[Any, ...]:
    """The cotangents of all arguments."""
    point = Point("", tuple(Slot(i) for i in range(len(args))), {}, args)
    return tuple(puller(RULES[function], point)(y_bar))


def slope(function: Any, x: Any, y_bar: Any = 1.0) -> Any:
    return slopes(function, x, y_bar=y_bar)[0]


def body(function: Any, *args: Any, **kwargs: Any) -> Any:
    rule = RULES[function]
    assert isinstance(rule, Composed)
    return rule.body(*args, **kwargs)


# --- Arithmetic ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("function", [np.sqrt, np.cbrt, np.log, np.log2, np.log10])
@pytest.mark.parametrize("zero", [0.0, np.float64(0), np.zeros(())], ids=["float", "float64", "0-d array"])
def test_slope_at_zero_is_infinite_but_a_zero_cotangent_stays_zero(function: Any, zero: Any) -> None:
    assert slope(function, zero) == inf
    assert slope(function, zero, y_bar=0.0) == 0


def test_quotient_by_a_python_zero_has_infinite_slope() -> None:
    (a_bar, b_bar) = slopes(np.divide, np.float64(1), 0.0)
    assert (a_bar, b_bar) == (inf, -inf)
    assert slopes(np.divide, np.float64(1), 0.0, y_bar=0.0) == (0, 0)


@pytest.mark.parametrize(
    ("a", "b", "want"),
    [
        (0.0, 0, 0.0),
        (0.0, 0.0, 0.0),
        (0.0, 1, 1.0),
        (0.0, 1.0, 1.0),
        (0.0, 2, 0.0),
        (0.0, 3, 0.0),
        (0.0, 4, 0.0),
        (0.0, 0.5, inf),
        (0.0, -1, -inf),
        (3.0, 0, 0.0),
        (-2.0, 2, -4.0),
        (-2.0, 3, 12.0),
        (-2.0, 4, -32.0),
        (-2.0, -1, -0.25),
        (2, -1, -0.25),
        (2, -2, -0.25),
        (1 + 1j, 2, 2 + 2j),
        (0j, 3, 0j),
    ],
)
@pytest.mark.parametrize("as_array", [False, True], ids=["constant exponent", "array of exponents"])
def test_power_has_the_right_slope_in_its_base(a: Any, b: Any, want: Any, as_array: bool) -> None:
    exponent = np.array([float(b)]) if as_array else b
    with np.errstate(all="ignore"):
        y = np.power(a, exponent) if as_array else a**0.5  # which a constant exponent does not need
    partial = RULES[np.power].partials[0](y, a, exponent)  # type: ignore[attr-defined]
    np.testing.assert_allclose(partial, np.full(np.shape(exponent), want), rtol=1e-15)


def test_integer_exponents_in_an_array_are_right_at_zero_and_below() -> None:
    a, b = np.array([0.0, 0, 0, 0, -1.5, -2]), np.array([0, 1, 2, 3, 3, -1])
    partial = RULES[np.power].partials[0](a**b, a, b)  # type: ignore[attr-defined]
    np.testing.assert_allclose(partial, [0, 1, 0, 0, 6.75, -0.25])


@pytest.mark.parametrize(
    ("a", "b", "want"),
    [(0.0, 2.0, 0.0), (0.0, 0.5, 0.0), (0.0, 0.0, 0.0), (0.0, -1.0, -inf), (1.0, 7.0, 0.0), (2.0, 0.0, math.log(2))],
)
def test_power_has_the_right_slope_in_its_exponent(a: float, b: float, want: float) -> None:
    assert slopes(np.power, a, b)[1] == pytest.approx(want)


def test_float_power_of_integers_has_the_slope_of_power() -> None:
    assert slopes(np.float_power, 2, 3) == pytest.approx((12, 8 * math.log(2)))


@pytest.mark.parametrize(
    ("function", "a", "b", "want"),
    [
        (np.remainder, 7.0, 3.0, -2.0),
        (np.remainder, -7.0, 3.0, 3.0),
        (np.remainder, 7.0, -3.0, 3.0),
        (np.fmod, 7.0, 3.0, -2.0),
        (np.fmod, -7.0, 3.0, 2.0),
        # a / b rounds to 3, but the remainder was taken with the quotient 2
        (np.fmod, np.nextafter(0.3, 0), 0.1, -2.0),
    ],
)
def test_remainder_falls_with_its_divisor_as_often_as_that_fits(function: Any, a: Any, b: Any, want: float) -> None:
    assert slopes(function, a, b) == (1.0, want)


def test_divmod_consists_of_quotient_and_remainder() -> None:
    assert body(np.divmod, -7.0, 3.0) == divmod(-7.0, 3.0)


def test_hypot_has_slope_zero_at_its_kink() -> None:
    assert slopes(np.hypot, 0.0, 0.0) == (0, 0)
    assert slopes(np.hypot, 3.0, -4.0) == pytest.approx((0.6, -0.8))
    assert slopes(np.hypot, 3e-200, 4e-200) == pytest.approx((0.6, 0.8))


# --- Exponentials and logarithms ---------------------------------------------------------------------------


def test_expm1_keeps_its_slope_in_the_tail() -> None:
    assert slope(np.expm1, -50.0) == pytest.approx(math.exp(-50), rel=1e-15, abs=0)


@pytest.mark.parametrize(
    ("a", "b", "want"),
    [
        (0.0, 0.0, (0.5, 0.5)),
        (-1e300, -1e300, (0.5, 0.5)),
        (inf, inf, (0.5, 0.5)),
        (-inf, -inf, (0.5, 0.5)),
        (inf, -inf, (1, 0)),
        (inf, 3.0, (1, 0)),
        (-inf, 3.0, (0, 1)),
        (2000.0, 0.0, (1, 0)),
    ],
)
@pytest.mark.parametrize("function", [np.logaddexp, np.logaddexp2])
def test_logaddexp_divides_its_slope_between_its_arguments(function: Any, a: Any, b: Any, want: Any) -> None:
    assert slopes(function, a, b) == pytest.approx(want, abs=0)
    assert slopes(function, b, a) == pytest.approx(want[::-1], abs=0)


def test_softplus_keeps_its_slope_in_the_tail() -> None:
    assert slopes(np.logaddexp, 0.0, -700.0)[1] == pytest.approx(math.exp(-700), rel=1e-12, abs=0)
    assert slopes(np.logaddexp2, 0.0, -1000.0)[1] == pytest.approx(2.0**-1000, rel=1e-12, abs=0)


# --- Circular and hyperbolic functions ----------------------------------------------------------------------


def test_inverse_functions_keep_their_digits_near_the_ends_of_their_domains() -> None:
    near = 1 - 2.0**-40
    assert slope(np.arcsin, near) == pytest.approx(1 / math.sqrt(2.0**-39 - 2.0**-80), rel=1e-15)
    assert slope(np.arccos, -near) == pytest.approx(-1 / math.sqrt(2.0**-39 - 2.0**-80), rel=1e-15)
    assert slope(np.arctanh, near) == pytest.approx(1 / (2.0**-39 - 2.0**-80), rel=1e-15)
    assert slope(np.arccosh, 1 + 2.0**-40) == pytest.approx(1 / math.sqrt(2.0**-39 + 2.0**-80), rel=1e-15)


def test_inverse_functions_keep_their_slope_where_a_square_overflows() -> None:
    assert slope(np.arcsinh, 1e200) == pytest.approx(1e-200, abs=0)
    assert slope(np.arccosh, 1e200) == pytest.approx(1e-200, abs=0)
    assert slope(np.arctan, 1e200) == 0


@pytest.mark.parametrize("function", [np.arcsin, np.arctanh, np.arccosh])
def test_inverse_functions_have_infinite_slope_at_one(function: Any) -> None:
    assert slope(function, 1.0) == inf
    assert slope(function, 1.0, y_bar=0.0) == 0


def test_complex_inverse_functions_are_on_their_branch() -> None:
    z = -2 - 0.5j
    for function, inverse in [(np.arccosh, np.sinh), (np.arcsin, np.cos), (np.arctanh, lambda w: np.cosh(w) ** -2)]:
        w = function(z)
        partial = RULES[function].partials[0](z)  # type: ignore[attr-defined]
        np.testing.assert_allclose(partial, 1 / inverse(w), rtol=1e-13)


def test_arctan2_does_not_square_away_small_numbers() -> None:
    assert slopes(np.arctan2, 3e-160, 4e-160) == pytest.approx((1.6e159, -1.2e159))
    assert slopes(np.arctan2, 0.0, -2.0) == (-0.5, 0)
    assert slopes(np.arctan2, 0.0, 0.0) == (0, 0)


@pytest.mark.parametrize("function", [np.deg2rad, np.radians])
def test_degrees_become_radians_at_a_constant_rate(function: Any) -> None:
    assert slope(function, 90.0) == pytest.approx(pi / 180)


@pytest.mark.parametrize("function", [np.rad2deg, np.degrees])
def test_radians_become_degrees_at_a_constant_rate(function: Any) -> None:
    assert slope(function, 1.0) == pytest.approx(180 / pi)


# --- sinc and i0 --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("x", "want"),
    [
        (0.0, 0.0),
        (1e-8, -(pi**2) / 3 * 1e-8),
        (0.5, -4 / pi),
        (-0.5, 4 / pi),
        (1.0, -1.0),
        (2.0, 0.5),
    ],
)
def test_sinc_has_the_right_slope(x: float, want: float) -> None:
    assert slope(np.sinc, x) == pytest.approx(want, rel=1e-14, abs=0)


def test_the_two_branches_of_the_slope_of_sinc_meet() -> None:
    below, above = slope(np.sinc, np.nextafter(0.5, 0)), slope(np.sinc, 0.5)
    assert below == pytest.approx(above, rel=1e-15)


@pytest.mark.parametrize(
    ("x", "want"),
    [(0.0, 0.0), (1e-9, 5e-10), (1.0, 0.5651591039924851), (-1.0, -0.5651591039924851), (10.0, 2670.988303701255)],
)
def test_i0_has_the_slope_i1(x: float, want: float) -> None:
    assert slope(np.i0, x) == pytest.approx(want, rel=1e-14, abs=0)


def test_i0_has_a_slope_up_to_its_overflow() -> None:
    assert slope(np.i0, 700.0) / np.i0(700.0) == pytest.approx(1 - 1 / 1400 - 1 / 8 / 700**2, rel=1e-9)


# --- Rounding and parts ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "function", [np.floor, np.ceil, np.trunc, np.rint, np.fix, np.round, np.around, np.sign, np.spacing]
)
@pytest.mark.parametrize("x", [0.0, 1.0, -2.5])
def test_steps_have_slope_zero_everywhere(function: Any, x: float) -> None:
    assert slope(function, x) == 0


def test_heaviside_passes_its_second_argument_on_at_zero() -> None:
    assert slopes(np.heaviside, 0.0, 0.3) == (0, 1)
    assert slopes(np.heaviside, 2.0, 0.3) == (0, 0)
    assert slopes(np.heaviside, -2.0, 0.3) == (0, 0)


@pytest.mark.parametrize(("a", "b", "want"), [(2.0, -3.0, -1), (-2.0, -3.0, 1), (-2.0, 0.0, -1), (0.0, -1.0, 0)])
def test_copysign_has_the_slope_of_a_signed_absolute_value(a: float, b: float, want: float) -> None:
    assert slopes(np.copysign, a, b) == (want, 0)


def test_modf_of_infinity_has_no_fraction() -> None:
    fraction, whole = body(np.modf, np.array([-inf, 2.75, -2.75]))
    np.testing.assert_array_equal(fraction, [0, 0.75, -0.75])
    np.testing.assert_array_equal(whole, [-inf, 2, -2])


def test_frexp_scales_its_slope_by_the_exponent() -> None:
    assert slope(np.frexp, 3.0, y_bar=(1.0, None)) == 0.25  # 3 = 0.75 · 2²
    assert slope(np.frexp, 0.0, y_bar=(1.0, None)) == 1.0


def test_ldexp_is_linear_in_its_mantissa() -> None:
    partial = RULES[np.ldexp].partials[0](np.array([3, -1]))  # type: ignore[attr-defined]
    np.testing.assert_array_equal(partial, [8, 0.5])


# --- Extremes -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("function", [np.maximum, np.minimum, np.fmax, np.fmin])
@pytest.mark.parametrize("tie", [0.0, inf, -inf, 3])
def test_arguments_that_tie_for_an_extreme_share_equally(function: Any, tie: float) -> None:
    assert slopes(function, tie, tie) == (0.5, 0.5)


def test_maximum_and_minimum_follow_a_nan() -> None:
    for function in (np.maximum, np.minimum):
        assert slopes(function, nan, 1.0) == (1, 0)
        assert slopes(function, 1.0, nan) == (0, 1)


def test_fmax_and_fmin_avoid_a_nan() -> None:
    for function in (np.fmax, np.fmin):
        assert slopes(function, nan, 1.0) == (0, 1)
        assert slopes(function, 1.0, nan) == (1, 0)


@pytest.mark.parametrize(
    ("a", "low", "high", "want"),
    [
        (0.5, 0.0, 1.0, (1, 0, 0)),
        (-1.0, 0.0, 1.0, (0, 1, 0)),
        (2.0, 0.0, 1.0, (0, 0, 1)),
        (0.0, 0.0, 1.0, (0.5, 0.5, 0)),
        (1.0, 0.0, 1.0, (0.5, 0, 0.5)),
        (1.0, 1.0, 1.0, (0.25, 0.25, 0.5)),
        (0.5, 2.0, 1.0, (0, 0, 1)),
    ],
)
def test_clip_shares_equally_with_the_bound_that_it_touches(a: Any, low: Any, high: Any, want: Any) -> None:
    assert slopes(umath.clip, a, low, high) == want


def test_clip_shares_at_a_bound_though_other_bounds_cross() -> None:
    a, low, high = np.array([1.0, 1.0]), np.array([2.0, 1.0]), np.array([0.0, 4.0])
    a_bar, low_bar, high_bar = gradient(lambda a, low, high: np.sum(np.clip(a, low, high)), a, low, high)
    np.testing.assert_array_equal(a_bar, [0, 0.5])
    np.testing.assert_array_equal(low_bar, [0, 0.5])
    np.testing.assert_array_equal(high_bar, [1, 0])


def test_clip_takes_its_bounds_by_either_name() -> None:
    a = np.array([-1.0, 0.5, 2.0])
    np.testing.assert_array_equal(body(np.clip, a, min=0.0), [0, 0.5, 2])
    np.testing.assert_array_equal(body(np.clip, a, a_min=None, a_max=1.0), [-1, 0.5, 1])
    np.testing.assert_array_equal(body(np.clip, a, 0.0, 1.0), [0, 0.5, 1])
    np.testing.assert_array_equal(body(np.clip, a), a)


# --- Complex numbers --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("z", "want"), [(0.0, 0), (-3.0, -1), (0j, 0), (3 + 4j, 0.6 + 0.8j), (-2j, -1j), (3e-200 + 4e-200j, 0.6 + 0.8j)]
)
def test_absolute_has_the_gradient_sign(z: Any, want: Any) -> None:
    assert slope(np.absolute, z) == pytest.approx(want)


def test_absolute_of_nan_takes_no_zero_cotangent() -> None:
    assert slope(np.absolute, nan, y_bar=0.0) == 0


def test_fabs_has_slope_zero_at_its_kink() -> None:
    assert slope(np.fabs, 0.0) == 0


def test_complex_sign_turns_only_across_its_direction() -> None:
    z = 3 + 4j
    assert slope(np.sign, z, y_bar=z) == pytest.approx(0)
    assert slope(np.sign, z, y_bar=1j * z) == pytest.approx(1j * z / 5)
    assert slope(np.sign, 0j, y_bar=1 + 1j) == 0
    assert slope(np.sign, complex(nan, 0), y_bar=0j) == 0


def test_imaginary_part_of_a_real_number_has_slope_zero() -> None:
    assert slope(np.imag, 2.0) == 0
    assert slope(np.imag, 2 + 1j) == 1j
    assert slope(np.real, 2 + 1j) == 1
    assert slope(np.conjugate, 2 + 1j, y_bar=1 + 2j) == 1 - 2j


def test_angle_of_a_real_number_is_zero_or_pi() -> None:
    np.testing.assert_array_equal(body(np.angle, np.array([2.0, -2.0, 0.0])), [0, pi, 0])
    assert body(np.angle, 1j, deg=True) == 90


def test_real_if_close_looks_at_the_values() -> None:
    assert body(np.real_if_close, np.array([1 + 1e-15j])).dtype == float
    assert body(np.real_if_close, np.array([1 + 1e-3j])).dtype == complex
    assert body(np.real_if_close, np.array([1 + 1e-3j]), tol=0.1).dtype == float


# --- Repairs and interpolation ------------------------------------------------------------------------------------


def test_nan_to_num_passes_only_finite_numbers_on() -> None:
    np.testing.assert_array_equal(slope(np.nan_to_num, np.array([1.0, nan, inf]), y_bar=np.ones(3)), [1, 0, 0])
    assert slope(np.nan_to_num, complex(nan, 2.0), y_bar=1 + 1j) == 1j


@pytest.mark.parametrize("x", [-1.0, 0.0, 0.5, 1.0, 1.7, 2.0, 3.0, nan, [0.0, 2.0, 5.0]])
def test_interp_has_numpys_value_at_knots_and_beyond(x: Any) -> None:
    xp, fp = [0.0, 1.0, 2.0], [0.5, 3.0, -1.0]
    np.testing.assert_allclose(body(np.interp, x, xp, fp), np.interp(x, xp, fp), rtol=1e-15)
    np.testing.assert_allclose(body(np.interp, x, xp, fp, -7, 7), np.interp(x, xp, fp, -7, 7), rtol=1e-15)
    np.testing.assert_allclose(body(np.interp, x, xp, fp, period=2.5), np.interp(x, xp, fp, period=2.5), rtol=1e-14)


def test_interp_computes_in_double_precision() -> None:
    assert body(np.interp, np.float32(0.1), np.float32([0, 1]), np.float32([0, 1])).dtype == np.float64


@pytest.mark.parametrize(("xp", "fp"), [([0.0, 1.0], [1.0]), ([], []), ([[0.0]], [[1.0]])])
def test_interp_refuses_knots_that_do_not_fit(xp: Any, fp: Any) -> None:
    with pytest.raises(ValueError, match="one-dimensional"):
        body(np.interp, 0.5, xp, fp)


def test_interp_refuses_a_period_of_zero() -> None:
    with pytest.raises(ValueError, match="period"):
        body(np.interp, 0.5, [0.0, 1.0], [0.0, 1.0], period=0)
