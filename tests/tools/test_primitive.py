"""primitive: a user's own rules."""

from __future__ import annotations

import functools
import math
import pickle

import numpy as np
import pytest
from truth import close

from retrograde import (
    MissingRuleError,
    Params,
    PullbackError,
    back,
    checkpointed,
    gradient,
    hessian,
    istracked,
    jacobian,
    jvp,
    param,
    primitive,
    pullback,
)

X = np.array([0.5, 1.0, 2.0])


@primitive
def cube(x):
    assert not istracked(x)
    return x**3


@cube.defpullback
def cube_pullback(out, x):
    return lambda y_bar: (y_bar * 3 * x**2,)


@cube.defpushforward
def cube_pushforward(out, x):
    return lambda x_dot: 3 * x**2 * x_dot


@primitive
def product(a, b):
    return a * b


product.defpullback(lambda out, a, b: lambda y_bar: (y_bar * b, y_bar * a))
product.defpushforward(lambda out, a, b: lambda a_dot, b_dot: a_dot * b + a * b_dot)


def test_a_primitive_is_the_function_itself_outside_of_transforms():
    assert cube(2.0) == 8.0
    assert cube.__name__ == "cube"
    assert product(a=2.0, b=3.0) == 6.0


def test_its_rules_serve_both_modes():
    assert gradient(cube, 2.0) == (12.0,)
    close(gradient(lambda x: np.sum(cube(x) * X), X)[0], 3 * X**3)
    assert jvp(cube, (2.0,), (5.0,)) == (8.0, 60.0)
    assert gradient(product, 2.0, 3.0) == (3.0, 2.0)
    assert jvp(product, (2.0, 3.0), (1.0, 10.0)) == (6.0, 23.0)


def test_the_function_sees_plain_values_and_may_call_anything():
    @primitive
    def c_code(x):
        assert type(x) is float
        return math.lgamma(float(x))

    c_code.defpullback(lambda out, x: lambda y_bar: (y_bar * 0.42278433509846713,))
    assert gradient(lambda x: c_code(x) * 2, 2.0)[0] == pytest.approx(2 * 0.42278433509846713)


def test_the_rule_decides_and_not_the_body():
    @primitive
    def straight_through(x):
        return np.round(x)

    straight_through.defpullback(lambda out, x: lambda y_bar: (y_bar,))
    assert gradient(lambda x: straight_through(x) * 3, 2.4) == (3.0,)


def test_the_output_is_given_to_the_rule():
    @primitive
    def exp(x):
        return np.exp(x)

    @exp.defpullback
    def exp_pullback(out, x):
        assert out == np.exp(1.0)
        return lambda y_bar: (y_bar * out,)

    assert gradient(exp, 1.0) == (np.e,)


def test_only_some_arguments_need_be_traced():
    assert gradient(lambda a: product(a, 5.0), 2.0) == (5.0,)
    assert gradient(lambda b: product(5.0, b), 2.0) == (5.0,)
    assert jvp(lambda a: product(a, 5.0), (2.0,), (1.0,)) == (10.0, 5.0)
    assert jvp(lambda b: product(np.float64(5.0), b), (2.0,), (1.0,)) == (10.0, 5.0)


def test_none_stands_for_an_argument_without_a_cotangent():
    @primitive
    def scaled(x, factor):
        return x * factor

    scaled.defpullback(lambda out, x, factor: lambda y_bar: (y_bar * factor, None))
    assert gradient(scaled, 2.0, 3.0) == (3.0, None)


def test_arguments_that_are_no_numbers_are_passed_on():
    @primitive
    def named(x, name, options):
        assert (name, options) == ("text", {"n": 2})
        return x * 2

    named.defpullback(lambda out, x, name, options: lambda y_bar: (y_bar * 2, None, None))
    assert gradient(lambda x: named(x, "text", {"n": 2}), 3.0) == (2.0,)


def test_an_argument_may_be_a_list_of_arrays():
    @primitive
    def total(xs, scale):
        return sum(np.sum(x) for x in xs) * scale

    @total.defpullback
    def total_pullback(out, xs, scale):
        return lambda y_bar: ([y_bar * scale * np.ones_like(x) for x in xs], y_bar * out / scale)

    a_bar, b_bar = gradient(lambda a, b: total([a, b * 2], 3.0), X, X)
    close(a_bar, 3 * np.ones(3))
    close(b_bar, 6 * np.ones(3))


def test_the_cotangent_is_cast_to_the_arguments_dtype():
    (x_bar,) = gradient(lambda x: np.sum(cube(x)), X.astype(np.float32))
    assert x_bar.dtype == np.float32


# --- errors ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bars", "found"),
    [((1.0,), "1 cotangent"), ((1.0, 1.0, 1.0), "3 cotangents"), ((), "0 cotangents")],
)
def test_a_wrong_number_of_cotangents_names_both_numbers(bars, found):
    @primitive
    def two(a, b):
        return a * b

    two.defpullback(lambda out, a, b: lambda y_bar: bars)
    with pytest.raises(PullbackError) as caught:
        gradient(two, 2.0, 3.0)
    assert isinstance(caught.value, ValueError)
    assert found in str(caught.value)
    assert "2 arguments" in str(caught.value)
    assert "two" in str(caught.value)


@pytest.mark.parametrize("bars", [1.0, [1.0], X, None])
def test_what_is_no_tuple_is_refused(bars):
    @primitive
    def one(x):
        return np.sum(x)

    one.defpullback(lambda out, x: lambda y_bar: bars)
    with pytest.raises(PullbackError, match="tuple"):
        gradient(one, X)


def test_a_cotangent_of_another_shape_is_refused_with_both_shapes():
    @primitive
    def one(x):
        return np.sum(x)

    one.defpullback(lambda out, x: lambda y_bar: (np.ones(2),))
    with pytest.raises(PullbackError, match=r"\(2,\).*\(3,\)"):
        gradient(one, X)


def test_a_tangent_of_another_shape_is_refused():
    @primitive
    def one(x):
        return x * 2

    one.defpushforward(lambda out, x: lambda x_dot: np.ones(2))
    with pytest.raises(ValueError, match=r"shape"):
        jvp(one, (X,), (X,))


def test_a_missing_rule_is_named_with_the_way_to_give_it():
    @primitive
    def bare(x):
        return x * 2

    with pytest.raises(MissingRuleError, match=r"bare\.defpullback") as caught:
        gradient(bare, 1.0)
    assert isinstance(caught.value, NotImplementedError)
    with pytest.raises(MissingRuleError, match=r"bare\.defpushforward"):
        jvp(bare, (1.0,), (1.0,))


def test_an_exception_of_a_rule_passes_unchanged():
    error = RuntimeError("mine")

    @primitive
    def fails(x):
        return x * 2

    @fails.defpullback
    def fails_pullback(out, x):
        def pull(y_bar):
            raise error

        return pull

    with pytest.raises(RuntimeError) as caught:
        gradient(fails, 1.0)
    assert caught.value is error
    assert gradient(cube, 1.0) == (3.0,)


def test_a_keyword_goes_to_the_function_and_to_the_formulas():
    power = primitive(lambda a, n=2: a**n)
    power.defpullback(lambda y, a, n=2: lambda y_bar: (y_bar * n * a ** (n - 1),))
    assert gradient(lambda a: power(a, n=3), 2.0) == (12.0,)
    with pytest.raises(PullbackError, match="2 cotangents"):
        gradient(lambda a: product(a, b=5.0), 2.0)


def test_an_array_that_is_returned_as_it_came_has_the_pullback_that_was_given():
    reversal = primitive(lambda x: x)
    reversal.defpullback(lambda y, x: lambda y_bar: (-y_bar,))
    reversal.defpushforward(lambda y, x: lambda x_dot: -x_dot)
    close(gradient(lambda x: np.sum(reversal(x) * 3), X)[0], -3 * np.ones(3))
    close(jvp(lambda x: np.sum(reversal(x) * 3), (X,), (X,))[1], -3 * np.sum(X))


def test_a_function_that_writes_into_its_argument_is_stopped():
    doubled = primitive(lambda x: np.sum(np.multiply(x, 2, out=x)))
    doubled.defpullback(lambda y, x: lambda y_bar: (2 * y_bar * np.ones(3),))
    x = X.copy()
    with pytest.raises(ValueError, match="read-only"):
        gradient(doubled, x)
    close(x, X)


def test_outputs_that_are_not_used_have_zero_cotangents():
    both = primitive(lambda a: (a, a * a))
    both.defpullback(lambda y, a: lambda y_bar: (y_bar[0] + 2 * a * y_bar[1],))
    assert gradient(lambda x: both(x)[1], 3.0) == (6.0,)


# --- surroundings ------------------------------------------------------------------------------------------------


def test_rules_of_numpy_functions_are_differentiated_themselves():
    assert gradient(lambda x: gradient(cube, x)[0], 2.0) == (12.0,)
    assert jvp(lambda x: gradient(cube, x)[0], (2.0,), (1.0,)) == (12.0, 12.0)
    assert gradient(lambda x: jvp(cube, (x,), (1.0,))[1], 2.0) == (12.0,)
    assert jvp(lambda x: jvp(cube, (x,), (1.0,))[1], (2.0,), (1.0,)) == (12.0, 12.0)
    close(hessian(lambda x: np.sum(cube(x)), X), np.diag(6 * X))
    close(jacobian(cube, X), np.diag(3 * X**2))


def test_a_primitive_of_two_levels_is_right_in_each():
    # d/da (a · d/db (a b)) = 2a at b = 1.
    assert gradient(lambda a: a * gradient(lambda b: product(a, b), 1.0)[0], 3.0) == (6.0,)
    assert jvp(lambda a: a * jvp(lambda b: product(a, b), (1.0,), (1.0,))[1], (3.0,), (1.0,)) == (9.0, 6.0)


def test_primitives_work_with_parameters_checkpoints_and_pullbacks():
    w = param(2.0)
    back(cube(w))
    close(w.grad, 12.0)
    assert gradient(lambda: product(w, cube(w)), Params([w]))[w] == 32.0
    assert gradient(lambda x: checkpointed(cube, x) * x, 2.0) == (32.0,)
    _, pull = pullback(cube, X)
    close(pull(X)[0], 3 * X**3)
    close(pull(np.ones(3))[0], 3 * X**2)


def test_a_rule_runs_once_a_sweep_though_zero_meets_infinity():
    calls = []

    @primitive
    def watched(x):
        return x * 1.0

    @watched.defpullback
    def watched_pullback(out, x):
        def pull(y_bar):
            calls.append(y_bar.copy())
            return (y_bar,)

        return pull

    (x_bar,) = gradient(lambda x: np.sum(np.sqrt(watched(x))[1:]), np.array([0.0, 4.0]))
    close(x_bar, [0.0, 0.25])
    assert len(calls) == 1
    close(calls[0], [0.0, 0.25])


def test_a_primitive_may_have_several_outputs():
    @primitive
    def both(x):
        return np.sin(x), np.cos(x)

    @both.defpullback
    def both_pullback(out, x):
        s, c = out

        def pull(bars):
            s_bar, c_bar = bars
            return ((0.0 if s_bar is None else s_bar * c) - (0.0 if c_bar is None else c_bar * s),)

        return pull

    def f(x):
        s, c = both(x)
        return s * c

    close(gradient(f, 0.4)[0], np.cos(0.8))
    close(gradient(lambda x: both(x)[1], 0.4)[0], -np.sin(0.4))


def test_a_method_may_be_a_primitive():
    class Model:
        @primitive
        def scaled(self, x):
            return self.factor * x

        scaled.defpullback(lambda out, self, x: lambda y_bar: (None, y_bar * self.factor))

        def __init__(self, factor):
            self.factor = factor

    assert Model(3.0).scaled(2.0) == 6.0
    assert gradient(Model(3.0).scaled, 2.0) == (3.0,)


def test_a_callable_without_a_name_may_be_a_primitive():
    power = primitive(functools.partial(pow, exp=3))
    power.defpullback(lambda out, x: lambda y_bar: (3 * x**2 * y_bar,))
    assert gradient(power, 2.0) == (12.0,)
    assert "primitive" in repr(power)
    bare = primitive(functools.partial(abs))
    with pytest.raises(MissingRuleError):
        gradient(bare, 2.0)


def test_a_numpy_function_may_be_given_a_rule_of_ones_own():
    mine = primitive(np.sin)
    mine.defpullback(lambda out, x: lambda y_bar: (y_bar * 100.0,))
    assert gradient(mine, 0.0) == (100.0,)
    assert gradient(np.sin, 0.0) == (1.0,)


def test_a_primitive_pickles_by_its_name():
    assert pickle.loads(pickle.dumps(cube)) is cube


def test_a_primitive_may_be_decorated_with_its_rules_where_it_is_defined():
    assert cube_pullback(8.0, 2.0)(1.0) == (12.0,)
    assert cube_pushforward(8.0, 2.0)(1.0) == 12.0
    assert repr(cube) == "<primitive 'cube'>"
