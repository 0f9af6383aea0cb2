"""Functions whose derivative their user gave, called inside of compiled ones."""

from __future__ import annotations

import numpy as np
import pytest
from compiler.harness import check, specialised

from retrograde import LanguageError, MissingRuleError, PullbackError, compile, gradient, hessian, primitive
from retrograde.compiler.bridge import Bridge
from retrograde.compiler.options import Options

X = np.array([0.7, -1.3, 0.4])


@primitive
def cube(x):
    return x**3


cube.defpullback(lambda y, x: lambda y_bar: (y_bar * 3.0 * x**2,))
cube.defpushforward(lambda y, x: lambda x_dot: 3.0 * x**2 * x_dot)


@primitive
def weighted(a, w, n):
    return np.sum(a * w) * n, a * w


@weighted.defpullback
def weighted_pullback(y, a, w, n):
    def pull(y_bar):
        s_bar, v_bar = y_bar
        both = s_bar * n + v_bar
        return both * w, np.sum(both * a), None

    return pull


@weighted.defpushforward
def weighted_pushforward(y, a, w, n):
    def push(a_dot, w_dot, n_dot):
        v = a_dot * w + a * w_dot
        return np.sum(v) * n, v

    return push


@primitive
def clipped_slope(x):
    """Its derivative is not that of its body: it is seen that the user's is taken."""
    return x * x


clipped_slope.defpullback(lambda y, x: lambda y_bar: (y_bar * np.minimum(2.0 * x, 1.0),))


@primitive
def without_rules(x):
    return x * 2.0


@primitive
def wrong_count(x, y):
    return x * y


wrong_count.defpullback(lambda out, x, y: lambda out_bar: (out_bar * y,))


def of_numbers(x):
    s = 0.0
    for i in range(len(x)):
        s += cube(x[i]) * s + cube(np.sin(x[i]))
    return s


def of_arrays(x):
    y = cube(x)
    return np.sum(cube(y[1:]) * y[:-1])


def of_several(x, w):
    s, v = weighted(x, w, 2)
    for i in range(3):
        t, u = weighted(v, np.sin(s), i)
        s += t
        v = u * 0.5
    return s + np.sum(v * v)


@pytest.mark.parametrize(
    ("function", "args"), [(of_numbers, (X,)), (of_arrays, (X,)), (of_several, (X, 0.4))], ids=lambda f: str(f)[:20]
)
def test_derivatives_with_rules_of_the_users_agree_with_differences(function, args):
    check(function, args)


def test_the_derivative_that_the_user_gave_is_taken_and_not_that_of_the_body():
    def doubled(x):
        return clipped_slope(x) * 2.0

    bridge = Bridge(specialised(doubled, (3.0,)))
    assert bridge.t([3.0], [1.0], ()) == [2.0]


def test_a_derivative_that_is_missing_is_named_when_it_is_needed():
    def simple(x):
        return without_rules(x)

    bridge = Bridge(specialised(simple, (3.0,)))
    assert bridge.j([3.0], ()) == [6.0]
    with pytest.raises(MissingRuleError, match="without_rules has no pullback, which reverse mode needs"):
        bridge.t([3.0], [1.0], ())
    with pytest.raises(MissingRuleError, match="without_rules has no pushforward, which forward mode needs"):
        bridge.j([3.0], ([1.0],))


def test_a_pullback_is_all_that_a_gradient_in_one_number_needs():
    @primitive
    def leaky(x):
        return max(x, 0.0) + 0.1 * x

    @leaky.defpullback
    def leaky_pullback(y, x):
        return lambda y_bar: (y_bar * (1.1 if x > 0 else 0.1),)

    def squares(x):
        return leaky(x) * x

    bridge = Bridge(specialised(squares, (0.8,), options=Options()))
    assert bridge.t([0.8], [1.0], ()) == [pytest.approx(1.76)]


@primitive
def swung(x):
    return np.exp(np.sin(x))


swung.defpullback(lambda y, x: lambda y_bar: (y_bar * (y * np.cos(x)),))


@primitive
def mixed(a, w, n):
    return np.sum(a * w) * n, a * w


mixed.defpullback(weighted_pullback)


def of_pullbacks_alone(x, w):
    s, v = mixed(x, w, 2)
    for i in range(len(x)):
        t, v = mixed(v * 0.5, swung(x[i] * s), i)
        s += swung(t)
    return s + np.sum(swung(v[1:] * v[:-1]))


def test_what_has_a_pullback_alone_has_its_adjoint_for_a_pushforward():
    check(of_pullbacks_alone, (X, 0.4))


def test_hessians_of_what_has_a_pullback_alone_are_those_of_the_eager_engine():
    pytest.importorskip("numba")

    def chained(x):
        s = 0.3
        for i in range(len(x)):
            s += swung(x[i] * s) * x[i]
        return s

    compiled = compile(chained, cache=False)
    want = hessian(chained, X, mode="reverse")
    np.testing.assert_allclose(hessian(compiled, X, mode="reverse"), want, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(hessian(compiled, X), want, rtol=1e-11, atol=1e-12)


def test_a_pullback_of_the_wrong_number_of_cotangents_is_refused():
    def product(x):
        return wrong_count(x, 2.0)

    with pytest.raises(PullbackError, match="returned 1 cotangents for 2 arguments"):
        Bridge(specialised(product, (3.0,))).t([3.0], [1.0], ())


def test_a_primitive_that_writes_into_its_argument_is_refused():
    @primitive
    def zeroed(x):
        x[0] = 0.0
        return x * 1.0

    def f(x):
        return zeroed(x * 2.0)

    with pytest.raises(LanguageError, match="the primitive zeroed writes into its arguments"):
        specialised(f, (X,))


def test_primitives_run_through_numba_and_agree_with_the_eager_engine():
    pytest.importorskip("numba")
    compiled = compile(of_numbers, cache=False)
    assert compiled(X) == pytest.approx(of_numbers(X), rel=1e-14)
    np.testing.assert_allclose(gradient(compiled, X)[0], gradient(of_numbers, X)[0], rtol=1e-12)
    np.testing.assert_allclose(hessian(compiled, X), hessian(of_numbers, X), rtol=1e-11, atol=1e-12)
