"""jvp and pushforward: tangents along with the values."""

from __future__ import annotations

import collections
import dataclasses
from typing import Any

import numpy as np
import pytest
from truth import close, differences

from retrograde import InputError, SeedError, gradient, istracked, jvp, param, pushforward

X = np.array([1.0, 2.0, 3.0])
V = np.array([1.0, 0.0, -1.0])


def test_jvp_gives_the_value_and_the_derivative_along_the_tangents():
    assert jvp(lambda x: x * x, (3.0,), (1.0,)) == (9.0, 6.0)
    y, y_dot = jvp(lambda x, a: a * np.sin(x), (X, 2.0), (V, 3.0))
    close(y, 2 * np.sin(X))
    close(y_dot, 2 * np.cos(X) * V + 3 * np.sin(X))


def test_a_pushforward_may_be_called_again():
    y, push = pushforward(lambda x, a: a * np.sin(x), X, 2.0)
    close(y, 2 * np.sin(X))
    close(push(V, 0.0), 2 * np.cos(X) * V)
    close(push(np.zeros(3), 1.0), np.sin(X))
    close(push(V, 0.0), 2 * np.cos(X) * V)


def test_called_with_the_function_alone_both_return_a_function():
    assert jvp(lambda x: x * x)((3.0,), (1.0,)) == (9.0, 6.0)
    y, push = pushforward(lambda x: x * x)(3.0)
    assert (y, push(2.0)) == (9.0, 12.0)


def test_keywords_go_to_the_function():
    assert jvp(lambda x, *, n: x**n, (2.0,), (1.0,), n=3) == (8.0, 12.0)
    y, push = pushforward(lambda x, *, n: x**n, 2.0, n=3)
    assert (y, push(1.0)) == (8.0, 12.0)


@pytest.mark.parametrize("name", ["f", "args"])
def test_a_keyword_of_any_name_belongs_to_the_function(name):
    assert jvp(lambda x, **kwargs: x * kwargs[name], (2.0,), (1.0,), **{name: 3.0}) == (6.0, 3.0)
    assert pushforward(lambda x, **kwargs: x * kwargs[name], 2.0, **{name: 3.0})[1](1.0) == 3.0


@pytest.mark.parametrize("given", [list, tuple])
def test_primals_and_tangents_may_be_lists(given):
    assert jvp(lambda x, y: x * y, given([2.0, 3.0]), given([1.0, 1.0])) == (6.0, 5.0)


# --- types -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("x", "kind"),
    [
        (3.0, float),
        (3, float),
        (2 + 1j, complex),
        (np.float32(3), np.float32),
        (np.float64(3), np.float64),
        (np.int32(3), np.float64),
    ],
)
def test_the_tangent_of_a_number_is_a_number(x, kind):
    y_dot = jvp(lambda x: x * x, (x,), (1.0,))[1]
    assert isinstance(y_dot, kind)
    close(y_dot, 2 * x)


@pytest.mark.parametrize("dtype", ["float32", "float64", "longdouble", "complex64", "complex128"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 0), (2, 3)])
def test_the_tangent_of_an_array_has_its_shape_and_dtype(dtype, shape):
    x = np.ones(shape, dtype)
    y, y_dot = jvp(lambda x: np.exp(x) * 2, (x,), (np.ones(shape),))
    assert np.asarray(y_dot).dtype == x.dtype
    close(y_dot, np.exp(x) * 2, 1e-5)
    assert np.shape(y) == shape


def test_integers_have_float_tangents():
    _, y_dot = jvp(lambda x: x * x, (np.array([1, 2]),), (np.array([0.5, 0.5]),))
    close(y_dot, [1.0, 2.0])
    assert y_dot.dtype == np.float64
    assert jvp(lambda n, x: x**n, (3, 2.0), (None, 1.0)) == (8.0, 12.0)


def test_an_integer_keeps_its_value_inside():
    def f(x, n):
        total = 0.0
        for i in range(n):
            total = total + x[i]
        return total * n

    y, y_dot = jvp(f, (X, 2), (V, 1.0))
    assert (y, y_dot) == (6.0, 3.0 + 2.0)


def test_complex_tangents_are_holomorphic():
    z, v = 1 + 2j, 0.5 - 1j
    _, y_dot = jvp(lambda z: z**3, (z,), (v,))
    close(y_dot, 3 * z**2 * v)
    _, y_dot = jvp(lambda z: np.real(z) * 2, (z,), (v,))
    close(y_dot, 1.0)
    _, y_dot = jvp(lambda x: np.exp(1j * x), (0.3,), (1.0,))
    close(y_dot, 1j * np.exp(0.3j))


# --- structures --------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class State:
    position: Any
    velocity: Any
    name: str = "state"


def test_containers_go_in_and_come_out():
    def f(s, d):
        return {"sum": s.position + d["t"] * s.velocity, "pair": (s.velocity, [d["t"], s.name])}

    s = State(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    y, y_dot = jvp(f, (s, {"t": 2.0}), (State(np.ones(2), np.zeros(2), None), {"t": 1.0}))
    close(y["sum"], [7.0, 10.0])
    close(y_dot["sum"], [4.0, 5.0])
    close(y_dot["pair"][0], [0.0, 0.0])
    assert y_dot["pair"][1] == [1.0, None]
    assert y["pair"][1] == [2.0, "state"]


def test_none_in_the_tangents_stands_for_zeros():
    assert jvp(lambda x, y: x * y, (2.0, 3.0), (None, 1.0)) == (6.0, 2.0)
    _, y_dot = jvp(lambda d: d["a"] * d["b"], ({"a": 2.0, "b": 3.0},), ({"a": None, "b": 1.0},))
    assert y_dot == 2.0
    assert jvp(lambda d: d["a"] * d["b"], ({"a": 2.0, "b": 3.0},), (None,)) == (6.0, 0.0)


def test_no_path_gives_zeros_and_never_none():
    _, y_dot = jvp(lambda x: np.ones((2, 2)), (X,), (V,))
    close(y_dot, np.zeros((2, 2)))
    assert jvp(lambda x: 3.0, (X,), (V,)) == (3.0, 0.0)
    assert jvp(lambda x: 3, (X,), (V,)) == (3, 0.0)
    close(jvp(np.floor, (X,), (V,))[1], np.zeros(3))
    y_dot = jvp(lambda x: [x * 2, 5.0], (X,), (V,))[1]
    assert y_dot[1] == 0.0
    _, y_dot = jvp(lambda x: np.ones(2, np.float32), (X,), (V,))
    assert y_dot.dtype == np.float32


def test_constants_in_the_arguments_stay_constants():
    def f(x, text, flag):
        assert (text, flag) == ("text", True)
        return x * 2

    assert jvp(f, (1.0, "text", True), (1.0, None, None)) == (2.0, 2.0)


def test_the_identity_returns_the_tangent_but_not_the_callers_array():
    v = V.copy()
    _, y_dot = jvp(lambda x: x, (X,), (v,))
    close(y_dot, v)
    _, y_dot = jvp(lambda x: x.reshape(3) + 0, (X,), (v,))
    y_dot += 1
    close(v, V)


def test_nothing_of_the_caller_is_changed():
    x, v = X.copy(), V.copy()
    jvp(lambda x: np.cumsum(np.sort(x)[::-1]) * x, (x,), (v,))
    close(x, X)
    close(v, V)


# --- what is refused ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tangent", [1.0, np.ones(2), np.ones((3, 1)), [1.0]])
def test_a_tangent_of_another_shape_is_refused(tangent):
    with pytest.raises(SeedError) as caught:
        jvp(lambda x: x, (X,), (tangent,))
    assert isinstance(caught.value, ValueError)
    assert "(3,)" in str(caught.value)
    assert "(test_jvp.py:" in str(caught.value)


def test_the_number_of_tangents_must_be_that_of_the_primals():
    with pytest.raises(SeedError, match=r"2 primals.*1 tangent"):
        jvp(lambda x, y: x, (1.0, 2.0), (1.0,))
    with pytest.raises(SeedError):
        pushforward(lambda x: x, 1.0)[1](1.0, 2.0)
    with pytest.raises(SeedError):
        jvp(lambda d: d["a"], ({"a": 1.0, "b": 2.0},), ({"a": 1.0},))


def test_tangents_in_the_wrong_containers_are_refused():
    for tangent in ({"a": 1.0, "c": 1.0}, (1.0, 1.0)):
        with pytest.raises(SeedError):
            jvp(lambda d: d["a"] * d["b"], ({"a": 1.0, "b": 2.0},), (tangent,))


def test_a_complex_tangent_of_a_real_argument_is_refused():
    with pytest.raises(SeedError, match="complex"):
        jvp(lambda x: x, (1.0,), (1j,))


def test_arguments_that_cannot_be_differentiated_are_refused():
    with pytest.raises(InputError, match="MaskedArray"):
        jvp(lambda x: x, (np.ma.masked_array([1.0]),), (np.ones(1),))
    with pytest.raises(InputError, match="object"):
        pushforward(lambda x: x, np.array([1.0], object))[1](np.ones(1))


# --- against differences and with the other mode -----------------------------------------------------------------


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.cumsum(x) * x[::-1],
        lambda x: np.sort(-x)[1:] ** 2,
        lambda x: np.concatenate([x, [x[0] * x[1]]]) / np.sum(x),
        lambda x: np.array([x[0] * x[1], 2.0, np.sin(x[2])]),
        lambda x: np.where(x > 1.5, x**3, np.exp(x)),
        lambda x: np.linalg.solve(np.outer(x, x) + np.eye(3), x),
        lambda x: np.einsum("i,j->ij", x, x),
        lambda x: x[[0, 0, 2]] * x[:, None],
        lambda x: np.linalg.norm(x) + np.max(x) - np.var(x, ddof=1),
        lambda x: sum(x[i] * x[(i + 1) % 3] for i in range(3)),
    ],
)
def test_the_derivative_agrees_with_differences_and_with_reverse_mode(f):
    y, y_dot = jvp(f, (X,), (V,))
    jacobian = differences(f, X)
    close(y_dot, jacobian @ V, 1e-7, 1e-9)
    rng = np.random.default_rng(0)
    y_bar = rng.normal(size=np.shape(y))
    (x_bar,) = gradient(lambda x: np.sum(y_bar * f(x)), X)
    close(np.sum(x_bar * V), np.sum(y_bar * y_dot), 1e-9)


def test_parameters_inside_forward_mode_are_constants_and_the_result_is_tracked():
    w = param([1.0, 2.0, 3.0])
    y, y_dot = jvp(lambda x: np.sum(w * x * x), (X,), (V,))
    assert istracked(y)
    assert istracked(y_dot)


def test_many_operations_need_no_tape():
    def f(x):
        for _ in range(2000):
            x = x * 1.001
        return x

    _, y_dot = jvp(f, (2.0,), (1.0,))
    assert y_dot == pytest.approx(1.001**2000)


def test_ordered_dictionaries_keep_their_order_in_tangents():
    d = collections.OrderedDict([("z", 2.0), ("a", 3.0)])
    v = collections.OrderedDict([("z", 1.0), ("a", 0.0)])
    _, y_dot = jvp(lambda d: d, (d,), (v,))
    assert list(y_dot.items()) == [("z", 1.0), ("a", 0.0)]
