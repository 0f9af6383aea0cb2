"""Zeros, kinks, ties, infinities: there a derivative is a convention, and compiled code keeps that of the eager engine.

For every elementwise function and reduction that `compile` takes, at points where its value is finite. Where the eager
engine gives an infinity or NaN, compiled code must not give a number that looks like a derivative.
"""

from __future__ import annotations

import linecache
import math
import warnings
from typing import Any

import numpy as np
import pytest
from compiler.harness import specialised

from retrograde import compile as compiled
from retrograde import gradient, jacobian, jvp, pullback, vmap
from retrograde.compiler import ops
from retrograde.compiler.bridge import Bridge

special = pytest.importorskip("scipy.special")
ops.know(special.erf)

INF, NAN = math.inf, math.nan
SINGLES = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 1e-9, 40.0, -40.0, 710.0, -710.0, INF, -INF, NAN]
PAIRED = [0.0, -0.0, 1.0, -1.0, 2.0, 0.5, INF, -INF]
PAIRS = [(a, b) for a in PAIRED for b in PAIRED]


def is_differentiable(function: Any) -> bool:
    """Whether a function of floats gives floats."""
    if not isinstance(function, np.ufunc):
        return function in (np.sinc,)
    return any(t.startswith("d" * function.nin + "->d") for t in function.types)


ELEMENTWISE = [name for name, f in ops.FUNCTIONS.items() if name[:3] in ("np.", "spe") and is_differentiable(f)]
OPERATIONS = {
    **{f"{sign} of two": f"a {sign} b" for sign in ops.ARITHMETIC},
    **{f"power {p}": f"a ** {p}" for p in (0, 1, 2, 3, -1.0, 0.5, 1.5)},
    "power of two": "2.0 ** a",
    "clip": "np.clip(a, -1.0, 1.0)",
    "clip to the same": "np.clip(a, 1.0, 1.0)",
    "nan_to_num of finite": "np.where(np.isfinite(a), a, 0.0)",
    "abs": "abs(a)",
    "max with zero": "np.maximum(a, 0.0)",
    "min with one": "np.minimum(a, 1.0)",
    "root of what is positive": "np.where(a > 0, np.sqrt(np.abs(a)), 0.0)",
    "log of what is positive": "np.where(a > 0, np.log(np.abs(a)), a)",
    "quotient where it is one": "np.where(b != 0, a / b, 1.0)",
    "square of a length": "np.hypot(a, b) ** 2",
    "interpolation": "np.interp(a, np.array([-1.0, 0.0, 2.0]), np.array([0.0, 2.0, 1.0]))",
}

# Eager derivatives that are NaN in second order only because a partial that is constant, or zero at infinity, overflows
# on its way.
FINITE_ALL_THE_SAME = {"np.arctan2", "np.fmod", "np.divide", "/ of two"}


def function_of(expression: str, parameters: str) -> Any:
    text = f"def f({parameters}):\n    return {expression}\n"
    file = f"<{parameters}: {expression}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    names: dict[str, Any] = {"np": np, "math": math, "special": special}
    exec(compile(text, file, "exec"), names)
    return names["f"]


def value_of(f: Any, args: tuple[Any, ...]) -> Any:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.asarray(f(*args))


class Eager:
    """The derivatives of a function by the eager engine."""

    def __init__(self, f: Any, args: tuple[Any, ...], y_bar: Any) -> None:
        self.f, self.args, self.y_bar = f, args, y_bar

    def reverse(self, *args: Any) -> list[Any]:
        bars = pullback(self.f, *args)[1](self.y_bar)
        return [0.0 * a if b is None else b for a, b in zip(args, bars, strict=True)]

    def forward(self, v: list[Any]) -> Any:
        return jvp(self.f, self.args, tuple(v))[1]

    def second(self, v: list[Any]) -> list[Any]:
        return list(jvp(lambda *x: tuple(self.reverse(*x)), self.args, tuple(v))[1])


def agree(found: Any, wanted: Any, scale: Any, loose: bool) -> None:
    """Finite numbers are the same; what is not finite is not finite."""
    found, wanted = np.asarray(found, dtype=float), np.asarray(wanted, dtype=float)
    assert found.shape == wanted.shape
    same = np.abs(found - wanted) <= 1e-8 * np.abs(wanted) + 1e-13 * scale
    lost = ~np.isfinite(wanted) & (~np.isfinite(found) | loose)
    assert np.all(same | lost), f"compiled {found}, eager {wanted}"


def compare(f: Any, bridge: Bridge, args: tuple[Any, ...], loose: bool = False) -> None:
    y = value_of(f, args)
    y_bar = np.linspace(1.0, 1.5, y.size).reshape(y.shape)[()]
    eager = Eager(f, args, y_bar)
    x = list(args)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted = eager.reverse(*args)
        for found, want in zip(bridge.t(x, [y_bar], ()), wanted, strict=True):
            agree(found, want, 1.0, False)
        for k in range(len(args)):
            v = [np.ones(np.shape(a)) if k == i else np.zeros(np.shape(a)) for i, a in enumerate(args)]
            agree(bridge.j(x, (v,))[0], eager.forward(v), 1.0, False)
            for found, want in zip(bridge.t(x, [y_bar], (v,)), eager.second(v), strict=True):
                agree(found, want, 1.0, loose)


def arguments_of(f: Any, both: bool) -> tuple[Any, ...]:
    """The points at which the value is finite."""
    points = PAIRS if both else [(a,) for a in SINGLES]
    with np.errstate(all="ignore"):
        kept = [p for p in points if np.all(np.isfinite(value_of(f, tuple(np.array([c]) for c in p))))]
    return tuple(np.array(c) for c in zip(*kept, strict=True))


@pytest.mark.parametrize("name", [*ELEMENTWISE, *OPERATIONS])
@pytest.mark.parametrize("is_used", [True, False], ids=["used", "unused"])
def test_elementwise_functions_keep_the_eager_convention(name, is_used):
    if name in OPERATIONS:
        expression, both = OPERATIONS[name], "b" in OPERATIONS[name].replace("abs", "")
    else:
        both = getattr(ops.FUNCTIONS[name], "nin", 1) == 2
        expression = f"{name}(a, b)" if both else f"{name}(a)"
    if not is_used:
        expression = f"np.where(a > 1e308, {expression}, 0.5)"
    f = function_of(expression, "a, b" if both else "a")
    args = arguments_of(f, both)
    compare(f, Bridge(specialised(f, args)), args, loose=not is_used or name in FINITE_ALL_THE_SAME)


VECTORS = {
    "zeros": [0.0, 0.0, 0.0],
    "equal": [1.0, 1.0, 1.0],
    "equal but for rounding": [0.1, 0.1, 0.1],
    "one zero": [3.0, 0.0, -1.0],
    "two zeros": [0.0, 2.0, 0.0],
    "a tie": [3.0, -1.0, 3.0],
    "one": [2.0],
    "negative": [-1.0, -2.0, -1.0],
}
REDUCTIONS = [
    *(
        f"np.{name}(a)"
        for name in "sum mean prod var std max min ptp median sort cumsum cumprod nansum nanmean".split()
    ),
    *("np.linalg.norm(a)", "np.linalg.norm(a) ** 2", "np.std(a) ** 2", "np.max(a) ** 2", "np.sqrt(np.sum(a * a))"),
    *(
        "np.linalg.norm(a, 1)",
        "np.linalg.norm(a, np.inf)",
        "np.linalg.norm(a, -np.inf)",
        "a / (1.0 + np.linalg.norm(a))",
    ),
    *("np.dot(a, a)", "np.diff(a)", "np.trapezoid(a)", "a[np.argmax(a)]", "a[np.argmin(a)]", "a[np.argsort(a)] * a"),
    *("np.max(np.abs(a))", "np.sum(np.abs(a)) ** 2", "np.maximum(a, a[::-1])", "np.minimum(a, a[::-1]) ** 2"),
    *("np.fmax(a, a[::-1])", "np.max(np.outer(a, a), axis=1)", "np.min(np.stack((a, a)), axis=0)"),
    *("np.std(np.outer(a, a), axis=1)", "np.prod(np.outer(a, a), axis=0)", "np.linalg.norm(np.outer(a, a))"),
    *("np.where(a > 1e308, np.linalg.norm(a), 0.0)", "np.where(a > 1e308, np.std(a), 0.0)", "np.logaddexp(a, a)"),
    *("np.linalg.norm(np.outer(a, a), axis=0)", "np.var(a) * np.linalg.norm(a)", "np.cumsum(a) ** 0"),
]


@pytest.mark.parametrize("expression", REDUCTIONS)
def test_reductions_keep_the_eager_convention(expression):
    f = function_of(expression, "a")
    bridge = Bridge(specialised(f, (np.ones(3),)))
    for points in VECTORS.values():
        compare(f, bridge, (np.array(points),))


def test_the_second_derivative_of_a_squared_norm_at_the_origin_is_nan_and_not_zero():
    of = Bridge(specialised(function_of("np.linalg.norm(a) ** 2", "a"), (np.zeros(3),)))
    x, v = [np.zeros(3)], [np.array([1.0, 0.0, 0.0])]
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(of.t(x, [1.0], ())[0], np.zeros(3))
        assert np.isnan(of.t(x, [1.0], (v,))[0][0])


def test_the_gradient_of_the_standard_deviation_of_equal_values_is_zero():
    x = [np.full(4, 0.7)]
    of = Bridge(specialised(function_of("np.std(a)", "a"), (x[0],)))
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(of.t(x, [1.0], ())[0], np.zeros(4), atol=1e-15)


def product_of_numbers(x, w):
    return np.sqrt(x[0]) * w[0] + w[1] * np.sqrt(x[1])


def product_of_arrays(x, w):
    return np.sum(w * np.sqrt(x))


def product_with_a_literal(x, w):
    return np.log(2.0 + 0.0 * np.sqrt(x[0])) + np.sqrt(x[1]) * 0.0


def products_in_a_loop(x, w):
    s = 1.0
    for i in range(len(x)):
        s = s * np.exp(w[i] * np.sqrt(x[i]))
    return s


def product_of_vectors(x, w):
    return w @ np.sqrt(x)


def complex_product(x, w):
    return np.real((np.sqrt(x[0]) + 1j) * w[0])


PRODUCTS = [
    product_of_numbers,
    product_of_arrays,
    product_with_a_literal,
    products_in_a_loop,
    product_of_vectors,
    complex_product,
]


@pytest.mark.usefixtures("as_plain_python")
@pytest.mark.parametrize("f", PRODUCTS)
def test_of_a_factor_that_is_and_stays_zero_nothing_comes_though_a_tangent_be_infinite(f):
    c = compiled(f, cache=False)
    x, w, v = np.zeros(2), np.zeros(2), np.ones(2)
    assert jvp(lambda x: c(x, w), (x,), (v,))[1] == 0.0
    np.testing.assert_array_equal(jacobian(lambda x: c(x, w), x, mode="forward"), [0.0, 0.0])
    np.testing.assert_array_equal(vmap(lambda v: jvp(lambda x: c(x, w), (x,), (v,))[1])(np.eye(2)), [0.0, 0.0])
    np.testing.assert_array_equal(gradient(lambda x: c(x, w), x)[0], [0.0, 0.0])


def test_a_factor_that_leaves_zero_loses_no_infinite_tangent():
    """Of √x · w at the origin the products of its terms do not tell the derivative, and NaN says so."""
    c = compiled(product_of_arrays, cache=False)
    x, w = np.zeros(2), np.zeros(2)
    assert math.isnan(jvp(c, (x, w), (np.ones(2), np.ones(2)))[1])
    with np.errstate(all="ignore"):
        assert math.isnan(jvp(product_of_arrays, (x, w), (np.ones(2), np.ones(2)))[1])
    assert jvp(lambda x: c(x, w), (x,), (np.ones(2),))[1] == 0.0  # through numba
    assert jvp(lambda x: c(x, np.ones(2)), (x,), (np.ones(2),))[1] == INF
