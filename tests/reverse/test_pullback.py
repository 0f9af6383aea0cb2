"""pullback: outputs of any structure, seeds of the same structure, as often as wanted."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np
import pytest
from truth import close

from retrograde import Grads, Params, SeedError, gradient, istracked, jvp, param, pullback

X = np.array([1.0, 2.0, 3.0])


def test_a_pullback_takes_seeds_of_the_outputs_shape():
    y, back = pullback(lambda x: x * x, X)
    close(y, [1.0, 4.0, 9.0])
    close(back(np.array([1.0, 10.0, 100.0]))[0], [2.0, 40.0, 600.0])


def test_a_pullback_may_be_called_again_and_gives_independent_answers():
    _, back = pullback(lambda x: x * x + 0 * x[0], X)
    first = back(np.array([1.0, 0.0, 0.0]))[0]
    second = back(np.array([0.0, 1.0, 1.0]))[0]
    third = back(np.array([1.0, 0.0, 0.0]))[0]
    close(first, [2.0, 0.0, 0.0])
    close(second, [0.0, 4.0, 6.0])
    close(third, first)
    first.fill(9.0)
    close(back(np.array([1.0, 0.0, 0.0]))[0], third)


def test_a_pullback_makes_no_demands_on_the_loss():
    y, back = pullback(lambda x: 1 / x, 0.5)
    assert (y, back(1.0)) == (2.0, (-4.0,))
    y, back = pullback(lambda x: x * np.inf, 1.0)
    assert y == np.inf
    assert back(1.0) == (np.inf,)
    y, back = pullback(lambda x: x * np.nan, 1.0)
    assert np.isnan(y)
    assert np.isnan(back(1.0)[0])


def test_every_argument_has_a_cotangent_and_keywords_have_none():
    y, back = pullback(lambda x, y, *, scale: x * y * scale, 2.0, 3.0, scale=10.0)
    assert y == 60.0
    assert back(1.0) == (30.0, 20.0)


@pytest.mark.parametrize("name", ["f", "args", "y_bar", "self"])
def test_a_keyword_of_any_name_belongs_to_the_function(name):
    _, back = pullback(lambda a, **kwargs: a * kwargs[name], 2.0, **{name: 3.0})
    assert back(1.0) == (3.0,)


def test_no_path_is_none_and_a_zero_derivative_is_zeros():
    _, back = pullback(lambda x, y: np.floor(x) * 1.0, X, 2.0)
    x_bar, y_bar = back(np.ones(3))
    close(x_bar, np.zeros(3))
    assert y_bar is None


def test_without_arguments_pullback_returns_a_function():
    y, back = pullback(lambda x: x * x)(3.0)
    assert (y, back(1.0)) == (9.0, (6.0,))


# --- outputs -----------------------------------------------------------------------------------------------------


class Pair(NamedTuple):
    a: Any
    b: Any


@dataclasses.dataclass
class Result:
    value: Any
    name: str


def test_outputs_come_as_plain_values_in_the_functions_own_containers():
    def f(x):
        return {"list": [x, 2 * x], "pair": Pair(x[0], "text"), "data": Result(np.sum(x), "name"), "n": None, "c": 3.0}

    y, back = pullback(f, X)
    assert type(y["pair"]) is Pair
    assert type(y["data"]) is Result
    assert y["pair"].b == "text"
    assert y["n"] is None
    assert y["c"] == 3.0
    close(y["list"][1], 2 * X)
    seed = {
        "list": [np.ones(3), np.array([0.0, 1.0, 0.0])],
        "pair": Pair(10.0, None),
        "data": Result(100.0, None),
        "n": None,
        "c": None,
    }
    close(back(seed)[0], [111.0, 103.0, 101.0])


def test_none_in_a_seed_stands_for_no_seed():
    _, back = pullback(lambda x, y: (x * 2, y * 3), 1.0, 1.0)
    assert back((1.0, None)) == (2.0, None)
    assert back((None, 1.0)) == (None, 3.0)
    assert back((None, None)) == (None, None)


def test_outputs_that_are_the_same_value_add_their_seeds():
    def f(x):
        y = x * x
        return y, y, x

    _, back = pullback(f, 3.0)
    assert back((1.0, 10.0, 100.0)) == (166.0,)


def test_an_output_that_is_an_argument_or_a_constant():
    y, back = pullback(lambda x: x, X)
    close(y, X)
    seed = np.array([1.0, 2.0, 3.0])
    (x_bar,) = back(seed)
    close(x_bar, seed)
    assert not np.shares_memory(x_bar, seed)
    y, back = pullback(lambda x: np.ones(2), X)
    assert back(np.ones(2)) == (None,)


def test_arguments_of_every_structure_get_their_cotangents_in_it():
    _, back = pullback(lambda d: d["a"] * d["b"][1], {"a": X, "b": (1.0, 2.0)})
    (bar,) = back(np.ones(3))
    close(bar["a"], [2.0, 2.0, 2.0])
    assert bar["b"] == (None, 6.0)


def test_an_integer_output_passes_its_cotangent_as_a_float():
    y, back = pullback(lambda n: n * n, 3)
    assert y == 9
    assert back(0.5) == (3.0,)


# --- seeds -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [1.0, np.ones(2), np.ones((3, 1)), np.ones((1, 3)), [1.0, 2.0]])
def test_a_seed_of_another_shape_is_refused_with_both_shapes(seed):
    _, back = pullback(lambda x: x * x, X)
    with pytest.raises(SeedError) as caught:
        back(seed)
    assert isinstance(caught.value, ValueError)
    assert str(np.shape(seed)) in str(caught.value)
    assert "(3,)" in str(caught.value)
    assert "(test_pullback.py:" in str(caught.value)
    close(back(np.ones(3))[0], 2 * X)


def test_a_seed_of_another_structure_is_refused():
    _, back = pullback(lambda x: (x, x), 1.0)
    for seed in (1.0, (1.0,), (1.0, 1.0, 1.0), [[1.0], 1.0, 2.0]):
        with pytest.raises(SeedError):
            back(seed)


def test_a_seed_in_the_wrong_kind_of_container_is_refused():
    _, back = pullback(lambda x: {"a": x, "b": 2 * x}, 1.0)
    for seed in ({"a": 1.0, "c": 1.0}, (1.0, 1.0)):
        with pytest.raises(SeedError):
            back(seed)


def test_a_seed_may_be_anything_that_numpy_takes_for_it():
    _, back = pullback(lambda x: x * x, X)
    for seed in ([1, 1, 1], (1.0, 1.0, 1.0), np.ones(3, int), np.ones(3, np.float32), np.array([True] * 3)):
        close(back(seed)[0], 2 * X)


def test_a_complex_seed_of_a_real_output_is_refused():
    _, back = pullback(lambda x: x * x, X)
    with pytest.raises(SeedError, match="complex"):
        back(np.ones(3) * 1j)


def test_a_complex_output_takes_complex_and_real_seeds():
    z = 1.0 + 2.0j
    _, back = pullback(lambda z: z * z, z)
    assert back(1.0) == (np.conj(2 * z),)
    assert back(1j) == (1j * np.conj(2 * z),)


def test_a_seed_is_never_changed():
    seed = np.array([1.0, 2.0, 3.0])
    _, back = pullback(lambda x: x[0] * x[1] + x + np.sum(x[::-1]), X)
    back(seed)
    close(seed, [1.0, 2.0, 3.0])
    _, back = pullback(lambda x: (x, x, x[0], x[1:]), X)
    back((seed, seed, 5.0, seed[1:]))
    close(seed, [1.0, 2.0, 3.0])


def test_a_cotangent_never_shares_memory_with_the_seed():
    seed = np.ones(3)
    for f in (lambda x: x, lambda x: x + 1, lambda x: x.reshape(3), lambda x: x.copy(), lambda x: x[:]):
        (x_bar,) = pullback(f, X)[1](seed)
        assert not np.shares_memory(x_bar, seed)
    a, b = pullback(lambda a, b: a + b, X, X)[1](seed)
    assert not np.shares_memory(a, b)


# --- parameters --------------------------------------------------------------------------------------------------


def test_with_parameters_the_pullback_gives_grads():
    w, b = param([1.0, 2.0]), param(3.0)
    y, back = pullback(lambda: w * w + b, Params([w, b]))
    close(y, [4.0, 7.0])
    grads = back(np.array([1.0, 10.0]))
    assert isinstance(grads, Grads)
    close(grads[w], [2.0, 40.0])
    assert grads[b] == 11.0
    close(back(np.array([0.0, 1.0]))[w], [0.0, 4.0])
    close(w.grad, [0.0, 0.0])


# --- nesting -----------------------------------------------------------------------------------------------------


def test_a_pullback_is_differentiated_with_respect_to_its_seed_and_its_point():
    def f(x, seed):
        _, back = pullback(lambda x: x**3, x)
        return back(seed)[0]

    assert gradient(f, 2.0, 5.0) == (60.0, 12.0)
    assert jvp(f, (2.0, 5.0), (1.0, 1.0)) == (60.0, 72.0)


def test_a_value_is_the_same_inside_an_outer_transform():
    def f(x):
        y, _ = pullback(lambda x: np.sum(x * x), x)
        return y

    assert f(X) == 14.0
    close(gradient(f, X)[0], 2 * X)


def test_a_pullback_made_inside_a_transform_may_be_used_after_it_for_its_own_level():
    kept = []

    def f(x):
        y, back = pullback(lambda z: z * 3.0, 2.0)
        kept.append(back)
        return x * y

    assert gradient(f, 1.0) == (6.0,)
    assert kept[0](1.0) == (3.0,)


def test_outputs_are_never_traced_by_their_own_transform():
    y, _ = pullback(lambda x: (x, [x + 1, np.sum(x)]), X)
    assert not any(istracked(v) for v in (y[0], *y[1]))
