"""Higher derivatives of the elementwise functions at their awkward points, through the public face, by hand."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from retrograde import gradient, jvp

pi = math.pi


@pytest.fixture(autouse=True)
def _no_floating_point_warnings() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


def forward(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x: jvp(f, (x,), (1.0,))[1]


def reverse(f: Callable[..., Any]) -> Callable[..., Any]:
    def derivative(x: Any) -> Any:
        (x_bar,) = gradient(f, x)
        return 0.0 if x_bar is None else x_bar  # the third derivative of a cube is no function of x

    return derivative


@pytest.mark.parametrize("mode", [forward, reverse])
@pytest.mark.parametrize(
    ("f", "x", "want"),
    [
        (lambda x: np.exp(-(x**2)), 0.0, [1, 0, -2, 0, 12]),
        (lambda x: np.exp(-np.power(x, 2.0)), 0.0, [1, 0, -2, 0, 12]),
        (lambda x: np.power(x, 3), 0.0, [0, 0, 0, 6, 0]),
        (lambda x: np.sum(np.power(x, np.arange(5))), 0.0, [1, 1, 2, 6, 24]),
        (lambda x: np.power(x, 3), -2.0, [-8, 12, -12, 6, 0]),
        (np.sinc, 0.0, [1, 0, -(pi**2) / 3, 0, pi**4 / 5]),
        (np.i0, 0.0, [1, 0, 1 / 2, 0, 3 / 8]),
        (lambda x: np.logaddexp(0.0, x), 0.0, [math.log(2), 1 / 2, 1 / 4, 0, -1 / 8]),
        (lambda x: np.logaddexp(x, 0.0), -800.0, [0, 0, 0, 0, 0]),
        (lambda x: np.logaddexp(x, 0.0), 800.0, [800, 1, 0, 0, 0]),
        (lambda x: np.logaddexp2(x, 0.0), 0.0, [1, 1 / 2, math.log(2) / 4, 0, -(math.log(2) ** 3) / 8]),
        (np.tanh, 0.0, [0, 1, 0, -2, 0]),
        (np.arcsinh, 0.0, [0, 1, 0, -1, 0]),
        (lambda x: np.hypot(x, 2.0), 0.0, [2, 0, 1 / 2, 0, -3 / 8]),
        (lambda x: np.arctan2(x, 2.0), 0.0, [0, 1 / 2, 0, -1 / 4, 0]),
        (lambda x: np.abs(x) ** 3, -2.0, [8, -12, 12, -6, 0]),
    ],
)
def test_derivatives_to_the_fourth_order_are_right(mode: Any, f: Any, x: float, want: list[float]) -> None:
    for value in want:
        assert f(x) == pytest.approx(value, rel=1e-12, abs=1e-12)
        f = mode(f)


@pytest.mark.parametrize("mode", [forward, reverse])
def test_expm1_keeps_all_its_derivatives_in_the_tail(mode: Any) -> None:
    f: Any = np.expm1
    for _ in range(3):
        f = mode(f)
        assert f(-40.0) == pytest.approx(math.exp(-40), rel=1e-14, abs=0)


def second(f: Any, a: Any, b: Any) -> list[list[float]]:
    """The matrix of second derivatives of f(a, b), forward over reverse."""
    directions = [(1.0, 0.0), (0.0, 1.0)]
    columns = [jvp(lambda a, b: gradient(f, a, b), (a, b), direction)[1] for direction in directions]
    return [[float(columns[j][i]) for j in range(2)] for i in range(2)]


@pytest.mark.parametrize(
    ("f", "a", "b", "want"),
    [
        (np.logaddexp, 0.0, 0.0, [[0.25, -0.25], [-0.25, 0.25]]),
        (np.logaddexp, -math.inf, 0.0, [[0, 0], [0, 0]]),
        (np.power, 0.0, 2.0, [[2, 0], [0, 0]]),
        (np.power, 2.0, 0.0, [[0, 0.5], [0.5, math.log(2) ** 2]]),
        (np.hypot, 0.0, 0.0, [[math.inf, 0], [0, math.inf]]),
        (np.hypot, 3.0, 4.0, [[16 / 125, -12 / 125], [-12 / 125, 9 / 125]]),
        (np.divide, 1.0, 2.0, [[0, -0.25], [-0.25, 0.25]]),
        (np.maximum, 1.0, 1.0, [[0, 0], [0, 0]]),
    ],
)
def test_second_derivatives_in_two_arguments_are_right(f: Any, a: float, b: float, want: Any) -> None:
    np.testing.assert_allclose(second(f, a, b), want, atol=1e-15)


def test_the_direction_of_a_complex_number_turns() -> None:
    """u = z / |z| changes by i·u·Im(ū·v) / |z|; here z = 3 + 4i and v = i."""
    _, turned = jvp(lambda z: gradient(np.abs, z)[0], (3 + 4j,), (1j,))
    assert turned == pytest.approx(-0.096 + 0.072j)


def test_absolute_of_a_complex_number_has_a_real_tangent() -> None:
    _, y_dot = jvp(np.abs, (3 + 4j,), (1 + 1j,))
    assert y_dot == pytest.approx(1.4)
    assert not np.iscomplexobj(y_dot)


@pytest.mark.parametrize("function", [np.floor, np.ceil, np.trunc, np.rint, np.fix, np.sign, np.round, np.spacing])
def test_a_step_is_a_path_with_a_gradient_of_zeros(function: Any) -> None:
    (x_bar,) = gradient(lambda x: np.sum(function(x)), np.array([0.5, 1.0]))
    np.testing.assert_array_equal(x_bar, [0, 0])


def test_comparisons_are_no_path() -> None:
    assert gradient(lambda x: np.sum(np.greater(x, 0) * 1.0), np.ones(2)) == (None,)


def test_a_masked_logarithm_at_zero_has_gradient_zero() -> None:
    assert gradient(lambda x: np.where(x > 0, np.log(x), 0.0), 0.0) == (0.0,)


def test_functions_of_two_outputs_have_gradients_in_both() -> None:
    def parts(x: Any) -> Any:
        fraction, whole = np.modf(x)
        mantissa, exponent = np.frexp(x)
        return fraction**2 + 3 * whole + mantissa * exponent

    # 3.25 = 3 + 0.25 = 0.8125 · 2²
    assert gradient(parts, 3.25) == (0.5 + 2 / 4,)


def test_divmod_has_gradients_in_both_arguments() -> None:
    def total(a: Any, b: Any) -> Any:
        quotient, remainder = np.divmod(a, b)
        return quotient + remainder

    assert gradient(total, 7.5, 2.0) == (1.0, -3.0)


def test_clip_is_differentiable_in_bounds_given_by_keyword() -> None:
    assert gradient(lambda a, low: np.clip(a, min=low), 1.0, 2.0) == (0.0, 1.0)
    assert gradient(lambda a, low, high: np.clip(a, low, high), 1.0, 1.0, 3.0) == (0.5, 0.5, 0.0)


def test_the_method_clip_of_an_array_is_differentiable_in_its_bounds() -> None:
    assert gradient(lambda low: np.sum(np.ones(3).clip(low, None)), 2.0) == (3.0,)


def test_interp_is_differentiable_in_everything() -> None:
    def f(x: Any, xp: Any, fp: Any) -> Any:
        return np.interp(x, xp, fp)

    x_bar, xp_bar, fp_bar = gradient(f, 1.5, np.array([0.0, 1, 2]), np.array([0.0, 1, 4]))
    assert x_bar == 3.0
    np.testing.assert_array_equal(xp_bar, [0, -1.5, -1.5])
    np.testing.assert_array_equal(fp_bar, [0, 0.5, 0.5])


def test_interp_is_differentiable_in_its_ends() -> None:
    def f(x: Any, left: Any) -> Any:
        return np.interp(x, [0.0, 1.0], [0.0, 1.0], left=left)

    assert gradient(f, -1.0, 7.0) == (0.0, 1.0)
