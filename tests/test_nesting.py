"""Transforms inside transforms: every mixture of modes keeps its perturbations apart."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
from truth import close, differences

from retrograde import (
    Buffer,
    Params,
    back,
    checkpointed,
    data,
    diaghessian,
    dropgrad,
    forwarddiff,
    grad,
    gradient,
    hessian,
    hook,
    hvp,
    istracked,
    jacobian,
    jvp,
    param,
    pullback,
    taylor,
    value_and_grad,
    vmap,
)

Derivative = Callable[[Callable[[Any], Any], Any], Any]


def by_params(f, x):
    w = param(data(x)) if not istracked(x) else None
    if w is None:
        # A parameter has no derivative in its value; a traced point needs another mode.
        return gradient(f, x)[0]
    return gradient(lambda: f(w), Params([w]))[w]


def by_buffer(f, x):
    def through(x):
        b = Buffer([0.0], 2)
        b[0] = x
        b[1] = b[0] * 1.0
        return f(b.copy()[1])

    return gradient(through, x)[0]


# Each computes df/dx at x, for a number x, by another way through the library.
MODES: dict[str, Derivative] = {
    "reverse": lambda f, x: gradient(f, x)[0],
    "forward": lambda f, x: jvp(f, (x,), (1.0,))[1],
    "pullback": lambda f, x: pullback(f, x)[1](1.0)[0],
    "grad": lambda f, x: grad(f)(x),
    "value_and_grad": lambda f, x: value_and_grad(f)(x)[1],
    "jacobian": lambda f, x: jacobian(f, x),
    "checkpoint": lambda f, x: gradient(lambda x: checkpointed(f, x), x)[0],
    "checkpoint in forward": lambda f, x: jvp(lambda x: checkpointed(f, x), (x,), (1.0,))[1],
    "batch of gradients": lambda f, x: vmap(lambda y: gradient(f, y)[0])(np.stack([x - 0.25, x, x + 0.5]))[1],
    "gradient of a batch": lambda f, x: gradient(lambda x: vmap(f)(np.stack([x, x * 0.5 + 0.25]))[0], x)[0],
    "hook": lambda f, x: gradient(lambda x: f(hook(lambda bar: bar * 1.0, x)), x)[0],
    "buffer": by_buffer,
    "parameters": by_params,
    "array": lambda f, x: gradient(lambda v: f(v[0]), np.array([x, 7.0]))[0][0] if not istracked(x) else gradient(
        lambda v: f(v[0]), [x, 7.0])[0][0],
}  # fmt: skip


# --- two levels --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("inner", MODES.values(), ids=MODES.keys())
@pytest.mark.parametrize("outer", MODES.values(), ids=MODES.keys())
def test_the_inner_derivative_does_not_see_the_outer_perturbation(outer, inner):
    # The example of Siskind and Pearlmutter: d/dx (x · d/dy (x + y)) = 1, and not 2.
    close(outer(lambda x: x * inner(lambda y: x + y, 1.0), 1.0), 1.0)
    # d/dx (x · d/dy (x y²)) at y = 3 is 12 x.
    close(outer(lambda x: x * inner(lambda y: x * y * y, 3.0), 5.0), 60.0)
    # The inner point depends on the outer variable: d/dx (d/dy y³ at y = x²) = d/dx 3 x⁴.
    close(outer(lambda x: inner(lambda y: y**3, x * x), 2.0), 96.0)
    # Both at once.
    close(outer(lambda x: inner(lambda y: np.sin(x * y), x), 0.7), 2 * 0.7 * -np.sin(0.49) * 0.7 + np.cos(0.49))


@pytest.mark.parametrize("inner", MODES.values(), ids=MODES.keys())
def test_parameters_stand_below_every_transform(inner):
    w = param(5.0)
    back(w * inner(lambda y: w * y * y, 3.0))
    close(w.grad, 60.0)
    w.zero_grad()
    back(w * inner(lambda y: w + y, 1.0))
    close(w.grad, 1.0)


# --- three levels ------------------------------------------------------------------------------------------------


def h(x, y, z, sin=np.sin):
    return sin(x * y * z) + z * z * x + y * z


def truth_of_three_levels(a, b, c):
    """d/dx x·d/dy (x y · d/dz h(x, y, z) at c) at b, at a, with 40 digits."""
    with mpmath.workdps(60):
        inner = lambda x, y: mpmath.diff(lambda z: h(x, y, z, mpmath.sin), mpmath.mpf(c))
        middle = lambda x: mpmath.diff(lambda y: x * y * inner(x, y), mpmath.mpf(b))
        return float(mpmath.diff(lambda x: x * middle(x), mpmath.mpf(a)))


POINT = (0.7, 1.3, -0.4)
TRUTH = truth_of_three_levels(*POINT)


@pytest.mark.parametrize("middle", MODES.values(), ids=MODES.keys())
@pytest.mark.parametrize("outer", MODES.values(), ids=MODES.keys())
def test_three_levels_of_every_mixture_agree_with_mathematics(outer, middle):
    a, b, c = POINT
    for name, inner in MODES.items():
        got = outer(lambda x, inner=inner: x * middle(lambda y: x * y * inner(lambda z: h(x, y, z), c), b), a)
        assert np.asarray(got) == pytest.approx(TRUTH, rel=1e-11), name


@pytest.mark.parametrize("middle", MODES.values(), ids=MODES.keys())
def test_three_levels_with_parameters_outermost(middle):
    a, b, c = POINT
    for name, inner in MODES.items():
        w = param(a)
        back(w * middle(lambda y, w=w, inner=inner: w * y * inner(lambda z: h(w, y, z), c), b))
        assert w.grad == pytest.approx(TRUTH, rel=1e-11), name


@pytest.mark.parametrize("modes", list(itertools.product(["reverse", "forward"], repeat=4)), ids="-".join)
def test_derivatives_of_derivatives_to_the_fourth_order(modes):
    f = lambda x: np.exp(-(x**2))
    for mode in modes:
        f = lambda x, f=f, mode=mode: MODES[mode](f, x)
    assert f(0.0) == pytest.approx(12.0)
    x = 0.6
    assert f(x) == pytest.approx((16 * x**4 - 48 * x**2 + 12) * np.exp(-(x**2)))


@pytest.mark.parametrize("mode", ["reverse", "forward"])
def test_derivatives_of_the_fifth_order_need_no_flag(mode):
    derivative = MODES[mode]
    f = lambda x: x**5 + np.sin(x)
    for _ in range(5):
        f = lambda x, f=f: derivative(f, x)
    assert f(0.3) == pytest.approx(120 + np.cos(0.3))


def test_a_function_that_is_differentiated_inside_itself():
    def f(x, depth):
        if depth == 0:
            return x**3
        return x * gradient(lambda y: f(y, depth - 1) * x, x)[0]

    # f₁ = x · x · 3x² = 3 x⁴; f₂ = x · x · 12 x³ = 12 x⁵.
    close(gradient(lambda x: f(x, 2), 1.5)[0], 60 * 1.5**4)


# --- arrays ------------------------------------------------------------------------------------------------------

X = np.array([0.5, -1.0, 2.0])


def test_the_gradient_of_the_norm_of_a_gradient():
    A = np.array([[1.0, 2.0], [-0.5, 3.0]])
    x = np.array([0.3, -1.0])
    v = (A + A.T) @ x
    for inner in (
        lambda A: gradient(lambda x: x @ A @ x, x)[0],
        lambda A: grad(lambda x: x @ A @ x)(x),
        lambda A: pullback(lambda x: x @ A @ x, x)[1](1.0)[0],
        lambda A: jacobian(lambda x: x @ A @ x, x),
    ):
        close(gradient(lambda A, inner=inner: np.sum(inner(A) ** 2), A)[0], 2 * (np.outer(v, x) + np.outer(x, v)))


@pytest.mark.parametrize(
    "wrap",
    [
        lambda f: f,
        lambda f: lambda x: checkpointed(f, x),
        lambda f: lambda x: checkpointed(lambda x: checkpointed(f, x) * 1.0, x),
        lambda f: lambda x: f(hook(lambda bar: None, x)),
        lambda f: lambda x: hook(lambda bar: bar * 1.0, f(x)),
        lambda f: lambda x: forwarddiff(f, x),
        lambda f: lambda x: forwarddiff(lambda x: checkpointed(f, x), x),
        lambda f: lambda x: checkpointed(lambda x: forwarddiff(f, x), x),
    ],
    ids=[
        "plain",
        "checkpoint",
        "nested checkpoints",
        "hook before",
        "hook after",
        "forwarddiff",
        "both",
        "both turned",
    ],
)
@pytest.mark.parametrize(
    "second",
    [
        hessian,
        lambda f, x: jacobian(lambda x: gradient(f, x)[0], x),
        lambda f, x: jacobian(grad(f), x),
        lambda f, x: np.stack([hvp(f, x, e) for e in np.eye(3)]),
        lambda f, x: np.stack([gradient(lambda x, i=i: gradient(f, x)[0][i], x)[0] for i in range(3)]),
        lambda f, x: np.stack([gradient(lambda x, e=e: jvp(f, (x,), (e,))[1], x)[0] for e in np.eye(3)]),
        lambda f, x: np.stack([jvp(lambda x: grad(f)(x), (x,), (e,))[1] for e in np.eye(3)]),
        lambda f, x: np.array(
            [[jvp(lambda x, a=a: jvp(f, (x,), (a,))[1], (x,), (b,))[1] for b in np.eye(3)] for a in np.eye(3)]
        ),
    ],
    ids=["hessian", "jacobian of gradient", "jacobian of grad", "hvp", "rr", "rf", "fr", "ff"],
)
def test_second_derivatives_through_every_tool(wrap, second):
    f = lambda x: np.sum(np.sin(x) * x[::-1] ** 2) + x[0] * x[1] * x[2]
    want = differences(lambda x: differences(f, x, 2e-2), X, 2e-2)
    close(second(wrap(f), X), want, 1e-6, 1e-6)


@pytest.mark.parametrize("second", [hessian, lambda f, x: jacobian(lambda x: gradient(f, x)[0], x)])
def test_second_derivatives_through_a_buffer(second):
    def f(x):
        b = Buffer(x, 4)
        b[0] = 1.0
        for i in range(3):
            b[i + 1] = b[i] * np.sin(x[i])
        b[1:3] *= x[:2]
        b.append(x[2] * b[1])
        return np.sum(b.copy() ** 2)

    def plain(x):
        b = [1.0]
        for i in range(3):
            b.append(b[i] * np.sin(x[i]))
        b[1], b[2] = b[1] * x[0], b[2] * x[1]
        b.append(x[2] * b[1])
        return sum(v * v for v in b)

    want = differences(lambda x: differences(plain, x, 2e-2), X, 2e-2)
    close(second(f, X), want, 1e-6, 1e-6)
    close(diaghessian(f, X), np.diag(want), 1e-6, 1e-6)


def test_third_derivatives_of_a_vector_function():
    close(
        jacobian(lambda x: hessian(lambda y: np.sum(y**4) / 24, x), X), np.einsum("ij,jk,k->ijk", *[np.eye(3)] * 2, X)
    )


def test_unrolled_descent_is_differentiated_with_respect_to_the_data():
    def objective(y, w):
        return np.sum((w[0] * y - w[1]) ** 2)

    def outer(y):
        w = [np.array([1.0, 2.0]), np.array([0.5, -0.5])]
        for _ in range(3):
            slopes = gradient(lambda w: objective(y, w), w)[0]
            w = [wi - 0.1 * slope for wi, slope in zip(w, slopes, strict=True)]
        return objective(y, w)

    def plain(y):
        a, b = np.array([1.0, 2.0]), np.array([0.5, -0.5])
        for _ in range(3):
            r = a * y - b
            a, b = a - 0.2 * r * y, b + 0.2 * r
        return np.sum((a * y - b) ** 2)

    y = np.array([0.7, -1.1])
    close(gradient(outer, y)[0], differences(plain, y), 1e-7)


# --- parameters --------------------------------------------------------------------------------------------------


def test_the_gradient_of_a_gradient_of_parameters():
    w = param(X)
    params = Params([w])
    outer = gradient(lambda: np.sum(gradient(lambda: np.sum(w**3), params)[w] ** 2), params)
    # Σ (3 w²)² = 9 Σ w⁴
    close(outer[w], 36 * X**3)
    assert not w.grad.any()


def test_gradients_of_parameters_nest_to_three_levels():
    w = param(0.7)
    params = Params([w])
    f = lambda: np.sin(w) * w
    first = lambda: gradient(f, params)[w]
    second = lambda: gradient(first, params)[w]
    third = gradient(second, params)[w]
    with mpmath.workdps(40):
        want = float(mpmath.diff(lambda x: mpmath.sin(x) * x, 0.7, 3))
    close(third, want)


def test_an_inner_gradient_of_other_parameters_than_the_outer():
    w, v = param(2.0), param(3.0)
    inner = lambda: gradient(lambda: w * w * v * v, Params([v]))[v]
    # 2 w² v, whose derivatives are 4 w v and 2 w².
    assert gradient(inner, Params([w]))[w] == 24.0
    assert gradient(inner, Params([w, v]))[v] == 8.0
    grads = gradient(lambda: inner() * w, Params([v, w]))
    assert (grads[v], grads[w]) == (16.0, 6 * 4 * 3.0)
    back(inner())
    close(w.grad, 24.0)


def test_parameters_and_arguments_mix_in_every_order():
    w = param(2.0)
    params = Params([w])
    # d/dx d/dw (w² x³) = 6 w x²
    mixed = gradient(lambda x: gradient(lambda: w * w * x**3, params)[w], 3.0)[0]
    close(data(mixed), 6 * 2.0 * 9.0)
    mixed = gradient(lambda: gradient(lambda x: w * w * x**3, 3.0)[0], params)[w]
    close(mixed, 6 * 2.0 * 9.0)
    value, slope = jvp(lambda x: gradient(lambda: w * w * x**3, params)[w], (3.0,), (1.0,))
    close(data(value), 4.0 * 27.0)
    close(data(slope), 108.0)
    slope = gradient(lambda: jvp(lambda x: w * w * x**3, (3.0,), (1.0,))[1], params)[w]
    close(slope, 108.0)


def test_a_parameter_inside_a_transform_that_does_not_name_it_stays_tracked():
    w = param(2.0)
    value, slope = jvp(lambda x: w * w * x, (3.0,), (1.0,))
    assert istracked(value)
    assert istracked(slope)
    back(slope)
    close(w.grad, 4.0)


def test_a_pullback_of_parameters_used_inside_another_transform():
    w = param(2.0)

    def f(x):
        y, pull = pullback(lambda: w * w * x, Params([w]))
        return pull(1.0)[w] * y

    # 2 w x · w² x = 2 w³ x², whose derivative in x is 4 w³ x.
    (x_bar,) = gradient(f, 3.0)
    close(data(x_bar), 4 * 8 * 3.0)


# --- what an inner transform returns -----------------------------------------------------------------------------


def test_a_value_of_an_outer_level_that_an_inner_function_returns_untouched():
    # Constant for the inner transform, a variable for the outer one.
    assert gradient(lambda x: x * 1.0 + (gradient(lambda y: x * 2, 3.0)[0] or 0.0), 5.0) == (1.0,)
    assert gradient(lambda x: pullback(lambda y: x * y, 3.0)[0], 5.0) == (3.0,)
    assert jvp(lambda x: pullback(lambda y: x * y, 3.0)[0], (5.0,), (1.0,)) == (15.0, 3.0)


def test_a_seed_of_an_outer_level():
    _, pull = pullback(lambda y: y**3, 2.0)
    assert gradient(lambda s: pull(s)[0], 5.0) == (12.0,)
    assert jvp(lambda s: pull(s)[0], (5.0,), (1.0,)) == (60.0, 12.0)
    y, push = jvp(lambda s: jvp(lambda y: y**3, (2.0,), (s,))[1], (5.0,), (1.0,))
    assert (y, push) == (60.0, 12.0)


def test_dropping_inside_nested_transforms_drops_every_level():
    assert gradient(lambda x: x * gradient(lambda y: dropgrad(x) * y * y, 3.0)[0], 2.0) == (12.0,)


def test_the_integers_of_outer_levels_are_still_integers_inside():
    def f(n, x):
        return gradient(lambda y: sum(y**i for i in range(n)) * x, 2.0)[0]

    # d/dy (1 + y + y²) = 1 + 2y = 5 at y = 2.
    assert gradient(f, 3, 7.0) == (None, 5.0)


def test_comparisons_and_branches_on_values_of_two_levels():
    def f(x):
        def g(y):
            if x * y > 1:
                return x * y**2
            return y

        return gradient(g, 3.0)[0]

    assert gradient(f, 2.0) == (6.0,)
    assert gradient(f, 0.1) == (None,)


def test_containers_and_named_results_through_two_levels():
    def f(p):
        (inner,) = gradient(lambda q: np.sum(q["w"] ** 2) * p["s"] ** 3, {"w": p["w"], "b": 1.0})
        assert inner["b"] is None
        return np.sum(inner["w"])

    (bar,) = gradient(f, {"w": X, "s": 2.0})
    close(bar["w"], np.full(3, 16.0))
    close(bar["s"], 2 * np.sum(X) * 3 * 4.0)


def test_a_view_that_an_inner_gradient_writes_to_keeps_its_value_for_the_outer_ones():
    def fourth_power(u):
        part = u[:]
        part *= u
        return np.sum(u * u)

    def loss(x):
        # Of a view of x: 16 Σ x⁶, whose Hessian is 480 x⁴.
        return np.sum(gradient(fourth_power, x[:])[0] ** 2)

    x, v = np.array([0.6, -1.1]), np.array([0.3, 0.5])
    want = 480 * x**4 * v
    close(hvp(loss, x, v), want)
    close(gradient(lambda x: jvp(loss, (x,), (v,))[1], x)[0], want)
    close(gradient(lambda x: np.sum(gradient(loss, x)[0] * v), x)[0], want)
    close(gradient(lambda x: taylor(loss, x, v, 1)[1], x)[0], want)
