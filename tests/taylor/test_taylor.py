"""Taylor coefficients against closed forms, and whatever a program may do while they are computed."""

from __future__ import annotations

import functools
import gc
import math
import threading
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy import special
from truth import close

import retrograde as rg
from retrograde import Buffer, data, gradient, jvp, taylor
from retrograde.taylor import series
from retrograde.taylor.series import Series

# --- closed forms, to order 20 -----------------------------------------------------------------------------------

CLOSED: dict[str, tuple[Callable[..., Any], Callable[..., Any], float]] = {
    "exp": (np.exp, mpmath.exp, 0.3),
    "exp2": (np.exp2, lambda x: mpmath.mpf(2) ** x, 0.3),
    "expm1": (np.expm1, mpmath.expm1, 0.3),
    "log": (np.log, mpmath.log, 1.3),
    "log2": (np.log2, lambda x: mpmath.log(x, 2), 1.3),
    "log10": (np.log10, mpmath.log10, 1.3),
    "log1p": (np.log1p, mpmath.log1p, 0.3),
    "sqrt": (np.sqrt, mpmath.sqrt, 1.3),
    "cbrt": (np.cbrt, mpmath.cbrt, 1.3),
    "reciprocal": (np.reciprocal, lambda x: 1 / x, 1.3),
    "quotient": (lambda x: (1 + x) / (2 + x * x), lambda x: (1 + x) / (2 + x * x), 0.7),
    "integer power": (lambda x: x**7, lambda x: x**7, 1.3),
    "negative power": (lambda x: x**-3, lambda x: x**-3, 1.3),
    "real power": (lambda x: x**1.5, lambda x: x ** mpmath.mpf(1.5), 1.3),
    "power of a number": (lambda x: 3.0**x, lambda x: mpmath.mpf(3) ** x, 0.7),
    "power of itself": (lambda x: x**x, lambda x: x**x, 1.3),
    "sin": (np.sin, mpmath.sin, 0.7),
    "cos": (np.cos, mpmath.cos, 0.7),
    "tan": (np.tan, mpmath.tan, 0.7),
    "sinh": (np.sinh, mpmath.sinh, 0.7),
    "cosh": (np.cosh, mpmath.cosh, 0.7),
    "tanh": (np.tanh, mpmath.tanh, 0.7),
    "arcsin": (np.arcsin, mpmath.asin, 0.4),
    "arccos": (np.arccos, mpmath.acos, 0.4),
    "arctan": (np.arctan, mpmath.atan, 0.4),
    "arcsinh": (np.arcsinh, mpmath.asinh, 0.4),
    "arccosh": (np.arccosh, mpmath.acosh, 1.4),
    "arctanh": (np.arctanh, mpmath.atanh, 0.4),
    "hypot": (lambda x: np.hypot(x, 1 + x * x), lambda x: mpmath.sqrt(x * x + (1 + x * x) ** 2), 0.7),
    "softplus": (lambda x: np.logaddexp(0.0, x), lambda x: mpmath.log(1 + mpmath.exp(x)), 0.7),
    "sinc at zero": (np.sinc, mpmath.sincpi, 0.0),
    "i0": (np.i0, lambda x: mpmath.besseli(0, x), 0.7),
    "erf": (special.erf, mpmath.erf, 0.4),
    "gammaln": (special.gammaln, lambda x: mpmath.log(mpmath.gamma(x)), 2.4),
    "gamma": (special.gamma, mpmath.gamma, 2.4),
    "airy": (lambda x: special.airy(x)[0], mpmath.airyai, 0.4),
    "jv": (lambda x: special.jv(1.5, x), lambda x: mpmath.besselj(1.5, x), 2.4),
    "expit": (special.expit, lambda x: 1 / (1 + mpmath.exp(-x)), 0.4),
    "composed": (
        lambda x: np.sin(x) * np.exp(x * x) / (1 + x**2),
        lambda x: mpmath.sin(x) * mpmath.exp(x * x) / (1 + x**2),
        0.4,
    ),
}


@functools.cache
def _closed(name: str, order: int) -> list[float]:
    _, truth, x = CLOSED[name]
    with mpmath.workdps(60):
        return [float(c) for c in mpmath.taylor(truth, mpmath.mpf(x), order)]


@pytest.mark.parametrize("name", CLOSED)
def test_coefficients_to_order_20_are_those_of_the_closed_form(name: str) -> None:
    f, _, x = CLOSED[name]
    got, want = taylor(f, x, 1.0, 20), _closed(name, 20)
    # Against the size of the coefficients beside it, since those of even and odd order may vanish in turn.
    for k, (g, w) in enumerate(zip(got, want, strict=True)):
        size = max(abs(c) for c in want[max(0, k - 1) : k + 2])
        assert abs(g - w) <= 1e-12 * size + 1e-300, f"coefficient {k} is {g}, not {w}"


@pytest.mark.parametrize("name", ["log", "tan", "arctan", "sqrt"])
def test_coefficients_grow_as_the_radius_of_convergence_says(name: str) -> None:
    """|yₖ|^(-1/k) tends to the distance of the next singularity."""
    f, _, x = CLOSED[name]
    radius = {"log": x, "sqrt": x, "tan": math.pi / 2 - x, "arctan": abs(x - 1j)}[name]
    c = taylor(f, x, 1.0, 120)
    estimate = max(abs(c[k]) for k in (119, 120)) ** (-1 / 120)
    assert abs(estimate / radius - 1) < 0.08


def test_the_series_sums_to_the_function() -> None:
    c = taylor(lambda x: np.exp(np.sin(x)), 0.5, 1.0, 20)
    close(float(np.polyval(c[::-1], 0.25)), math.exp(math.sin(0.75)), rtol=1e-14)


def test_each_element_of_an_array_has_its_own_series() -> None:
    x = np.array([[0.3, 1.2], [0.7, 2.0]])
    v = np.array([[1.0, -2.0], [0.5, 0.0]])
    got = taylor(lambda x: np.exp(x) * np.log(1 + x), x, v, 6)
    for i in np.ndindex(2, 2):
        one = taylor(lambda x: np.exp(x) * np.log(1 + x), float(x[i]), float(v[i]), 6)
        close(np.array([c[i] for c in got]), np.array(one), rtol=1e-13)


def test_large_arrays_give_what_small_ones_give() -> None:
    x = np.linspace(0.1, 2, 5000)
    got = taylor(lambda x: x * np.sin(x) ** 2 / (1 + x), x, np.ones(5000), 5)
    few = taylor(lambda x: x * np.sin(x) ** 2 / (1 + x), x[::1000], np.ones(5), 5)
    for g, w in zip(got, few, strict=True):
        close(g[::1000], w, rtol=1e-12)


# --- what goes in and comes out ----------------------------------------------------------------------------------


def test_order_zero_is_the_value_alone_and_order_one_that_of_jvp() -> None:
    def f(x: Any) -> Any:
        return np.linalg.solve(np.array([[2.0, x], [x, 3.0]]), np.array([1.0, x]))

    (value,) = taylor(f, 0.5, 1.0, 0)
    y, y_dot = jvp(f, (0.5,), (1.0,))
    close(value, y)
    for got, want in zip(taylor(f, 0.5, 1.0, 1), (y, y_dot), strict=True):
        close(got, want)


def test_containers_go_in_and_come_out() -> None:
    def f(model: Any) -> Any:
        return {"product": model["a"] * model["b"][0], "constant": 2.0, "name": "linear"}

    x, v = {"a": 2.0, "b": [np.ones(2)]}, {"a": 1.0, "b": [np.array([1.0, 0.0])]}
    first, second, third = taylor(f, x, v, 2)
    close(first["product"], [2.0, 2.0])
    close(second["product"], [3.0, 1.0])
    close(third["product"], [1.0, 0.0])
    assert (first["constant"], second["constant"], third["constant"]) == (2.0, 0.0, 0.0)
    assert (first["name"], second["name"]) == ("linear", None)


def test_a_direction_of_none_is_zero() -> None:
    got = taylor(lambda xy: xy[0] * xy[1], [2.0, 3.0], [1.0, None], 2)
    assert got == [6.0, 3.0, 0.0]


def test_integers_count_as_floats() -> None:
    got = taylor(lambda x: x * x + 1, 3, 1, 3)
    assert got == [10.0, 6.0, 1.0, 0.0]
    assert all(type(c) is float for c in got)


def test_types_are_those_of_the_value() -> None:
    for dtype in (np.float32, np.complex64, np.complex128):
        x = np.array([0.5, 1.0], dtype)
        assert [c.dtype for c in taylor(lambda x: np.exp(x) * np.sqrt(1 + x), x, x, 3)] == [np.dtype(dtype)] * 4
    assert [np.shape(c) for c in taylor(np.exp, np.array(0.5), np.array(1.0), 2)] == [()] * 3
    assert [c.shape for c in taylor(np.exp, np.zeros((0, 2)), np.zeros((0, 2)), 2)] == [(0, 2)] * 3


def test_complex_functions_have_complex_series() -> None:
    got = taylor(lambda z: np.exp(1j * z), 1 + 1j, 1j, 4)
    want = [np.exp(1j * (1 + 1j)) * (1j * 1j) ** k / math.factorial(k) for k in range(5)]
    close(np.array(got), np.array(want), rtol=1e-14)


def test_the_modulus_of_a_complex_number_has_a_real_series() -> None:
    got = taylor(np.abs, 3 + 4j, 1j, 4)
    with mpmath.workdps(40):
        want = [float(c) for c in mpmath.taylor(lambda t: mpmath.sqrt(9 + (4 + t) ** 2), 0, 4)]
    close(np.array(got), np.array(want), rtol=1e-14)


def test_with_the_function_alone_taylor_waits_for_the_rest() -> None:
    assert taylor(lambda x: x * x)(3.0, 1.0, 2) == [9.0, 6.0, 1.0]
    assert taylor(lambda x, scale: scale * x * x, order=1, scale=2.0)(3.0, 1.0) == [18.0, 12.0]


def test_the_callers_arrays_stay_as_they_are() -> None:
    x, v = np.array([1.0, 2.0]), np.array([1.0, 0.0])

    def f(x: Any) -> Any:
        x *= 3
        x[0] = 0.0
        return x

    y = taylor(f, x, v, 1)
    close(x, [1.0, 2.0])
    close(v, [1.0, 0.0])
    y[0][:] = 7.0
    close(x, [1.0, 2.0])


# --- errors ------------------------------------------------------------------------------------------------------


def test_a_negative_order_is_refused() -> None:
    with pytest.raises(rg.OrderError, match="0 or more; -1 was given") as caught:
        taylor(np.sin, 1.0, 1.0, -1)
    assert isinstance(caught.value, ValueError)
    assert "test_taylor.py" in str(caught.value)


@pytest.mark.parametrize("order", [2.0, "three"])
def test_an_order_that_is_no_integer_is_refused(order: Any) -> None:
    with pytest.raises(rg.InputError, match="an integer"):
        taylor(np.sin, 1.0, 1.0, order)


def test_an_order_that_is_missing_is_refused() -> None:
    with pytest.raises(rg.InputError, match="no order"):
        taylor(np.sin, 1.0, 1.0)


def test_a_direction_of_another_shape_is_refused() -> None:
    with pytest.raises(rg.SeedError, match=r"\(2,\); the primal has shape \(3,\)"):
        taylor(np.sin, np.ones(3), np.ones(2), 2)
    with pytest.raises(rg.SeedError, match="structure"):
        taylor(lambda x: x[0], [1.0, 2.0], [1.0], 2)
    with pytest.raises(rg.SeedError, match="complex"):
        taylor(np.sin, 1.0, 1j, 2)


def test_a_value_that_leaves_its_series_behind_is_refused() -> None:
    with pytest.raises(rg.ConversionError, match="would lose the derivative"):
        taylor(lambda x: float(x), 1.0, 1.0, 3)
    with pytest.raises(rg.MissingRuleError):
        taylor(lambda x: np.power.reduce(np.array([1.0, x])), 1.0, 1.0, 3)
    kept = []
    taylor(lambda x: kept.append(x) or x, 1.0, 1.0, 3)
    with pytest.raises(rg.EndedError):
        _ = kept[0] * 2


def test_an_exception_of_the_function_passes_and_leaves_nothing_behind() -> None:
    def f(x: Any) -> Any:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        taylor(f, 1.0, 1.0, 3)
    assert taylor(lambda x: x * x, 1.0, 1.0, 2) == [1.0, 2.0, 1.0]


# --- where derivatives end ---------------------------------------------------------------------------------------


def test_integer_powers_are_exact_at_zero() -> None:
    for n in range(6):
        want = [0.0] * 6
        want[n] = 1.0
        assert [float(c) for c in taylor(lambda x, n=n: x**n, 0.0, 1.0, 5)] == want
    exponents = np.arange(6)
    got = np.array(taylor(lambda x: x**exponents, np.zeros(6), np.ones(6), 5))
    close(got, np.eye(6))


def test_a_large_integer_power_is_that_of_the_closed_form() -> None:
    got = taylor(lambda x: x**1000, 1.01, 1.0, 3)
    close(np.array(got), np.array([math.comb(1000, k) * 1.01 ** (1000 - k) for k in range(4)]), rtol=1e-11)


@pytest.mark.parametrize(
    ("f", "want"),
    [
        (np.sqrt, [0, np.inf, -np.inf, np.inf]),
        (lambda x: x**1.5, [0, 0, np.inf, -np.inf]),
        (np.log, [-np.inf, np.inf, -np.inf, np.inf]),
        (lambda x: np.divide(1.0, x), [np.inf, -np.inf, np.inf, -np.inf]),
    ],
)
def test_at_a_singularity_coefficients_are_infinite(f: Any, want: list[float]) -> None:
    with np.errstate(all="ignore"):
        assert [float(c) for c in taylor(f, 0.0, 1.0, 3)] == want


def test_a_root_of_both_signs_has_no_finite_coefficient_at_zero() -> None:
    value, *others = taylor(np.cbrt, 0.0, 1.0, 3)
    assert value == 0
    assert others[0] == np.inf
    assert not np.any(np.isfinite(others))


def test_a_singularity_that_nothing_moves_towards_is_a_constant() -> None:
    x, v = np.array([0.0, 4.0]), np.array([0.0, 1.0])
    for got, want in zip(taylor(np.sqrt, x, v, 2), ([0.0, 2.0], [0.0, 0.25], [0.0, -1 / 64]), strict=True):
        close(got, want)


def test_a_nan_stays_in_its_place() -> None:
    got = taylor(lambda x: np.exp(x) / x, np.array([np.nan, 1.0]), np.ones(2), 3)
    one = taylor(lambda x: np.exp(x) / x, 1.0, 1.0, 3)
    for g, w in zip(got, one, strict=True):
        assert math.isnan(g[0])
        close(g[1], w, rtol=1e-14)


def test_zero_times_infinity_is_zero_as_in_every_rule() -> None:
    # The direction leaves the second element alone, where the logarithm is infinite.
    got = taylor(lambda x: np.log(x) * np.array([1.0, 0.0]), np.array([1.0, 1.0]), np.array([1.0, 0.0]), 2)
    close(np.array(got), [[0.0, 0.0], [1.0, 0.0], [-0.5, 0.0]])
    with np.errstate(all="ignore"):
        masked = taylor(
            lambda x: np.where(x > 0, np.log(np.where(x > 0, x, 1.0)), 0.0), np.array([0.0, 1.0]), np.ones(2), 2
        )
    close(np.array(masked), [[0.0, 0.0], [0.0, 1.0], [0.0, -0.5]])


def test_branches_are_those_of_the_primal() -> None:
    x = np.array([-2.0, 0.5, 3.0])
    for f, want in (
        (np.abs, [[2, 0.5, 3], [-1, 1, 1], [0, 0, 0]]),
        (lambda x: np.maximum(x * x, 1.0), [[4, 1, 9], [-4, 0, 6], [1, 0, 1]]),
        (lambda x: np.minimum(x * x, x), [[-2, 0.25, 3], [1, 1, 1], [0, 1, 0]]),
        (lambda x: np.clip(x * x, 1.0, 5.0), [[4, 1, 5], [-4, 0, 0], [1, 0, 0]]),
        (lambda x: np.where(x > 1, x * x, -x), [[2, -0.5, 9], [-1, -1, 6], [0, 0, 1]]),
        (lambda x: x if np.sum(x) > 1 else x * x, [[-2, 0.5, 3], [1, 1, 1], [0, 0, 0]]),
        (lambda x: np.floor(x) * x, [[4, 0, 9], [-2, 0, 3], [0, 0, 0]]),
    ):
        close(np.array(taylor(f, x, np.ones(3), 2)), np.array(want, float))


def test_ties_share_every_coefficient() -> None:
    got = taylor(lambda x: np.maximum(x, 3 * x * x), 0.0, 1.0, 2)
    close(np.array(got), [0.0, 0.5, 1.5])


# --- programs ----------------------------------------------------------------------------------------------------


def test_arrays_made_inside_are_filled_with_series() -> None:
    def powers(x: Any) -> Any:
        y = np.ones(5)
        for i in range(1, 5):
            y[i] = y[i - 1] * x
        return y

    for k, got in enumerate(taylor(powers, 2.0, 1.0, 4)):
        close(got, [math.comb(n, k) * 2.0 ** (n - k) if n >= k else 0.0 for n in range(5)])


def test_writes_through_views_and_in_place_operators() -> None:
    def f(x: Any) -> Any:
        y = x.reshape(2, 3)
        before = x * 1.0
        y[0] *= x[3:]
        y.T[1, 1] = x[0] ** 2
        x[2:4] = 7.0
        x[::5] += before[1]
        return x + 0 * before

    def plain(x: Any, v: Any) -> Any:
        a, b = x, v
        rows = [np.array([a[i], b[i]]) for i in range(6)]

        def times(p: Any, q: Any) -> Any:
            return np.convolve(p, q)

        out = [times(rows[0], rows[3]), times(rows[1], rows[4]), np.array([7.0]), np.array([7.0])]
        first = out[0]
        out += [times(first, first), rows[5]]
        out[0] = np.polyadd(out[0][::-1], rows[1][::-1])[::-1]
        out[5] = out[5] + rows[1]
        return out

    x, v = np.arange(1.0, 7.0), np.array([1.0, -1.0, 2.0, 0.5, 3.0, 1.0])
    got = np.array(taylor(f, x, v, 4))
    for i, want in enumerate(plain(x, v)):
        close(got[:, i], np.pad(want, (0, 5 - len(want))))


def test_a_value_that_was_read_keeps_its_series_when_the_array_changes() -> None:
    def f(x: Any) -> Any:
        first = x[0]
        whole = x * 1
        view = x[1:]
        x[0] = x[1] ** 3
        x[1] = 0.0
        return [first, whole, view, x]

    got = taylor(f, np.array([2.0, 3.0]), np.array([1.0, 1.0]), 3)
    close(np.array([c[0] for c in got]), [2.0, 1.0, 0.0, 0.0])
    close(np.array([c[1] for c in got]), [[2.0, 3.0], [1.0, 1.0], [0.0, 0.0], [0.0, 0.0]])
    close(np.array([c[2] for c in got]), [[0.0], [0.0], [0.0], [0.0]])
    close(np.array([c[3] for c in got]), [[27.0, 0.0], [27.0, 0.0], [9.0, 0.0], [1.0, 0.0]])


def test_repeated_sines_of_a_value_that_was_written_to_are_new_ones() -> None:
    def f(x: Any) -> Any:
        before = np.sin(x)
        x[0] = x[0] * 2
        return before + np.cos(x)

    got = taylor(f, np.array([0.3]), np.array([1.0]), 5)
    with mpmath.workdps(40):
        want = [float(c) for c in mpmath.taylor(lambda x: mpmath.sin(x) + mpmath.cos(2 * x), 0.3, 5)]
    close(np.array(got)[:, 0], np.array(want), rtol=1e-13)


def test_buffers_and_scatter_carry_series() -> None:
    def f(x: Any) -> Any:
        b = Buffer(x, 3)
        b[0] = x[0]
        b[1:] = [x[1] ** 2, 2.0]
        y = b.copy()
        return y[np.array([0, 1, 1])]

    close(np.array(taylor(f, np.array([1.0, 3.0]), np.ones(2), 2)), [[1, 9, 9], [1, 6, 6], [0, 1, 1]])


def test_dropgrad_and_ignore_drop_the_series() -> None:
    got = taylor(lambda x: x * rg.dropgrad(x) + rg.ignore(lambda: float(x) ** 2), 3.0, 1.0, 2)
    assert got == [18.0, 3.0, 0.0]
    assert taylor(lambda x: x * float(data(x)), 3.0, 1.0, 2) == [9.0, 3.0, 0.0]


def test_a_users_own_rule_is_differentiated_again_and_run_once() -> None:
    calls = []

    @rg.primitive
    def cube(x: Any) -> Any:
        return x**3

    @cube.defpushforward
    def push_cube(out: Any, x: Any) -> Any:
        calls.append(x)
        return lambda x_dot: 3 * x * x * x_dot

    got = taylor(lambda x: cube(np.sin(x)), 0.4, 1.0, 5)
    close(np.array(got), np.array(taylor(lambda x: np.sin(x) ** 3, 0.4, 1.0, 5)), rtol=1e-13)
    assert len(calls) == 1


def test_a_primitive_without_a_pushforward_is_refused() -> None:
    @rg.primitive
    def opaque(x: Any) -> Any:
        return x**3

    with pytest.raises(rg.MissingRuleError, match="pushforward"):
        taylor(opaque, 1.0, 1.0, 2)


def test_linear_algebra_has_series() -> None:
    a, b = np.array([[3.0, 1.0], [1.0, 2.0]]), np.array([[0.0, 1.0], [1.0, -1.0]])

    with mpmath.workdps(40):
        det = [float(c) for c in mpmath.taylor(lambda t: (3 + 0 * t) * (2 - t) - (1 + t) ** 2, 0, 4)]
        low = [
            float(c)
            for c in mpmath.taylor(
                lambda t: ((5 - t) - mpmath.sqrt((1 + t) ** 2 + 4 * (1 + t) ** 2)) / 2, 0, 4, singular=False
            )
        ]
    close(np.array(taylor(np.linalg.det, a, b, 4)), np.array(det), atol=1e-13)
    close(np.array(taylor(lambda a: np.linalg.eigvalsh(a)[0], a, b, 4)), np.array(low), atol=1e-13)
    inverse = taylor(np.linalg.inv, a, b, 5)
    # (a + t·b)⁻¹ = a⁻¹ - t·a⁻¹ba⁻¹ + …
    power = np.linalg.inv(a)
    for c in inverse:
        close(c, power, atol=1e-13)
        power = -power @ b @ np.linalg.inv(a)


def test_no_series_costs_more_than_a_power_of_the_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bessel functions, elliptic integrals and products lead to each other; shared, they do not multiply."""
    made = []
    start = series.Series.__init__

    def counting(self: Any, *args: Any, **kwargs: Any) -> None:
        made.append(1)
        start(self, *args, **kwargs)

    monkeypatch.setattr(series.Series, "__init__", counting)
    matrix = np.array([[3.0, 1.0], [1.0, 2.0]])
    for f, x in (
        (lambda x: special.jv(1.5, x), 2.0),
        (special.ellipk, 0.3),
        (special.kve, None),
        (np.prod, np.array([1.0, 2.0, 3.0])),
        (np.linalg.inv, matrix),
        (lambda a: np.linalg.eigh(a)[1], matrix),
        (lambda x: np.einsum("i,i,i->", x, x, x), np.ones(3)),
    ):
        if x is None:
            f, x = (lambda x: special.kve(0.5, x)), 2.0
        counts = []
        for order in (8, 16):
            made.clear()
            taylor(f, x, np.ones(np.shape(x))[()], order)
            counts.append(len(made))
        assert counts[1] <= 9 * counts[0], f"{counts} series at orders 8 and 16"


def test_threads_do_not_see_each_others_series() -> None:
    results: dict[int, Any] = {}

    def work(i: int) -> None:
        results[i] = taylor(lambda x: np.sin(x) * np.exp(i * x), 0.3, 1.0, 8)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i in range(4):
        close(np.array(results[i]), np.array(taylor(lambda x, i=i: np.sin(x) * np.exp(i * x), 0.3, 1.0, 8)), rtol=1e-14)


def test_what_a_transform_made_is_freed_without_the_collector() -> None:
    gc.collect()
    gc.disable()
    try:
        before = sum(type(x) is Series for x in gc.get_objects())
        taylor(
            lambda x: np.tanh(np.linalg.inv(x)) @ np.sin(x) + special.jv(0.5, x) ** np.logaddexp(x, 1.0),
            np.eye(2) + 1,
            np.eye(2),
            5,
        )
        assert sum(type(x) is Series for x in gc.get_objects()) == before
    finally:
        gc.enable()


# --- nested in other transforms, and they in it (all mixtures: tests/test_nesting_modes.py) ------------------------


def wave(x: Any) -> Any:
    return np.sin(x) * np.exp(x * x)


WAVE = taylor(wave, 0.3, 1.0, 9)


def test_the_gradient_of_a_coefficient_is_the_next_coefficient() -> None:
    for k in range(6):
        (got,) = gradient(lambda x, k=k: taylor(wave, x, 1.0, k)[k], 0.3)
        close(got, (k + 1) * WAVE[k + 1], rtol=1e-12)


def test_the_series_of_a_gradient_is_the_derivative_of_the_series() -> None:
    got = taylor(lambda x: gradient(wave, x)[0], 0.3, 1.0, 6)
    close(np.array(got), np.array([(k + 1) * WAVE[k + 1] for k in range(7)]), rtol=1e-12)


def test_a_series_of_a_coefficient_is_no_confusion_of_the_two() -> None:
    got = taylor(lambda x: taylor(wave, x, 1.0, 3)[3], 0.3, 1.0, 4)
    close(np.array(got), np.array([math.comb(3 + k, 3) * WAVE[3 + k] for k in range(5)]), rtol=1e-12)
    mixed = taylor(lambda x: x * taylor(lambda y: x * y * y, 2.0, 1.0, 2)[1], 3.0, 1.0, 2)
    close(np.array(mixed), [36.0, 24.0, 4.0])


def test_coefficients_have_gradients_in_the_direction_and_in_what_is_closed_over() -> None:
    (got,) = gradient(lambda v: taylor(lambda x: np.sum(x**3), np.ones(2), v, 2)[2], np.array([1.0, 2.0]))
    close(got, [6.0, 12.0])
    # ∂/∂a of a (a - 1) / 2 · 2^(a - 2) at a = 3
    (got,) = gradient(lambda a: taylor(lambda x: np.power(x, a), 2.0, 1.0, 2)[2], 3.0)
    close(got, 2.5 * 2 + 3 * 2 * math.log(2), rtol=1e-13)


def test_parameters_reach_through_a_series() -> None:
    w = rg.param(np.array([0.5, 2.0]))
    loss = taylor(lambda x: np.sum(np.exp(w * x)), 1.0, 1.0, 3)[3]
    rg.back(loss)
    # ∂/∂w of w³ eʷ / 6
    value = np.array([0.5, 2.0])
    close(w.grad, (3 * value**2 + value**3) * np.exp(value) / 6, rtol=1e-13)
