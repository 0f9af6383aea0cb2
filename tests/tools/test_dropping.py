"""dropgrad and ignore: derivatives that are left out because the user said so."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import threading
from typing import Any

import numpy as np
import pytest
from truth import close

from retrograde import (
    ConversionError,
    MutationError,
    Params,
    back,
    data,
    dropgrad,
    grad,
    gradient,
    hessian,
    ignore,
    istracked,
    jvp,
    param,
    pullback,
)

X = np.array([1.0, 2.0])


# --- dropgrad ----------------------------------------------------------------------------------------------------


def test_dropgrad_is_a_constant_on_the_way_back():
    assert gradient(lambda a, b: dropgrad(a) * b, 2.0, 3.0) == (None, 2.0)
    assert gradient(lambda x: dropgrad(x) * x, 3.0) == (3.0,)
    close(gradient(lambda x: np.sum(x**2) + np.sum(dropgrad(x**3)), X)[0], 2 * X)


def test_dropgrad_gives_the_plain_value():
    def f(x):
        y = dropgrad(x * 2)
        assert not istracked(y)
        assert type(y) is np.ndarray
        close(y, 2 * X)
        return np.sum(x)

    gradient(f, X)


def test_an_array_that_was_dropped_cannot_be_written_to():
    def f(x):
        with pytest.raises(ValueError, match="read-only"):
            dropgrad(x)[0] = 5.0
        return np.sum(x * x)

    close(gradient(f, X)[0], 2 * X)


def test_dropgrad_acts_on_every_level():
    assert gradient(lambda x: gradient(lambda y: dropgrad(x * y) * y, 3.0)[0], 2.0) == (None,)
    assert jvp(lambda x: dropgrad(x) * x, (3.0,), (1.0,)) == (9.0, 3.0)
    close(hessian(lambda x: np.sum(dropgrad(x) * x * x), X), np.diag(2 * X))


@dataclasses.dataclass
class Pair:
    a: Any
    b: str


def test_dropgrad_takes_containers_leaf_by_leaf():
    def f(x):
        dropped = dropgrad({"list": [x, 3.0], "pair": Pair(x, "text"), "none": None})
        assert not istracked(dropped["list"][0])
        assert not istracked(dropped["pair"].a)
        assert dropped["pair"].b == "text"
        assert dropped["none"] is None
        return dropped["list"][0] * dropped["pair"].a * x

    assert gradient(f, 2.0) == (4.0,)


@pytest.mark.parametrize("plain", [3.0, "text", None, X, object()])
def test_dropgrad_of_plain_things_is_themselves(plain):
    assert dropgrad(plain) is plain


def test_dropgrad_of_a_parameter_is_its_value():
    w = param([1.0, 2.0])
    y = np.sum(dropgrad(w) * w)
    back(y)
    close(w.grad, X)


# --- ignore ------------------------------------------------------------------------------------------------------


def test_ignore_runs_code_that_is_not_differentiated():
    seen = []

    def f(x):
        with ignore():
            seen.append(x * 2)
            assert not istracked(seen[0])
        return x * x

    assert gradient(f, 3.0) == (6.0,)
    assert seen == [6.0]


def test_ignore_of_a_function_returns_plain_values():
    def f(x):
        y = ignore(lambda a, *, b: {"y": a * x, "b": b}, x, b=x)
        assert not istracked(y["y"])
        assert not istracked(y["b"])
        return y["y"] * x

    assert gradient(f, 3.0) == (9.0,)
    assert ignore(lambda: 5) == 5


def test_an_argument_that_an_ignored_function_returns_untouched_is_dropped():
    assert gradient(lambda x: ignore(lambda x: x, x) * x, 3.0) == (3.0,)


def test_values_recorded_before_the_block_convert_freely_inside():
    def f(x):
        with ignore():
            assert float(x[0]) == 1.0
            assert int(x[1]) == 2
            assert complex(x[0]) == 1.0
            assert math.sin(x[0]) == math.sin(1.0)
            assert type(np.asarray(x)) is np.ndarray
            assert type(np.array([x[0], 1.0])) is np.ndarray
            assert f"{float(np.sum(x)):.1f}" == "3.0"
            assert x.tolist() == [1.0, 2.0]
            assert hash(float(x[0])) == hash(1.0)
        return np.sum(x * x)

    close(gradient(f, X)[0], 2 * X)


@pytest.mark.parametrize("mode", ["reverse", "forward", "both"])
def test_values_of_every_level_convert_inside(mode):
    def f(x):
        with ignore():
            return float(x) * x

    if mode == "reverse":
        assert gradient(lambda x: f(x) * x, 3.0) == (9.0,)
    elif mode == "forward":
        assert jvp(lambda x: f(x) * x, (3.0,), (1.0,)) == (27.0, 9.0)
    else:
        assert gradient(lambda x: jvp(lambda y: f(x * y) * y, (2.0,), (1.0,))[1], 3.0) == (None,)


def test_a_gradient_taken_inside_the_block_is_not_affected():
    def f(x):
        with ignore():
            inner = gradient(lambda y: y * y * x, 3.0)[0]
            assert not istracked(inner)
            assert inner == 12.0
            assert jvp(lambda y: y * y, (3.0,), (1.0,)) == (9.0, 6.0)
        return x * inner

    assert gradient(f, 2.0) == (12.0,)


def test_the_block_ends_where_it_ends():
    def f(x):
        with ignore():
            pass
        y = x * x
        with ignore():
            y * y
            with ignore():
                y * x
            z = y * 2
            assert not istracked(z)
        return y * x

    assert gradient(f, 2.0) == (12.0,)


def test_an_exception_ends_the_block():
    def f(x):
        try:
            with ignore():
                raise KeyError
        except KeyError:
            pass
        try:
            ignore(lambda: 1 / 0)
        except ZeroDivisionError:
            pass
        return x * x

    assert gradient(f, 2.0) == (4.0,)


def test_ignore_around_a_transform_does_not_disturb_it():
    with ignore():
        assert gradient(lambda x: x * x, 3.0) == (6.0,)
        _, pull = pullback(lambda x: x * x, 3.0)
    assert pull(1.0) == (6.0,)
    with ignore():
        assert pull(1.0) == (6.0,)
        assert grad(lambda x: x**3)(2.0) == 12.0


def test_ignore_in_a_function_of_parameters():
    w = param(3.0)

    def f():
        with ignore():
            scale = float(w)
        return w * scale

    assert gradient(f, Params([w]))[w] == 3.0
    back(f())
    close(w.grad, 3.0)


def test_what_is_computed_of_parameters_inside_the_block_is_plain():
    w = param(X)
    with ignore():
        y = np.sum(w * w)
    assert not istracked(y)
    assert y == 5.0
    assert istracked(np.sum(w * w))


def test_other_threads_are_not_ignored():
    w = param(2.0)
    inside, done = threading.Event(), threading.Event()
    tracked = []

    def other():
        inside.wait()
        tracked.append(istracked(w * w))
        tracked.append(gradient(lambda x: x * x * data(w), 3.0))
        done.set()

    thread = threading.Thread(target=other)
    thread.start()
    with ignore():
        inside.set()
        assert done.wait(10)
        assert not istracked(w * w)
    thread.join()
    assert tracked == [True, (12.0,)]


def test_the_block_can_be_used_as_a_decorator_or_stacked():
    from contextlib import ExitStack

    def f(x):
        with ExitStack() as stack:
            stack.enter_context(ignore())
            y = x * 2
        return y * x

    assert gradient(f, 3.0) == (6.0,)


def test_two_generators_that_leave_their_blocks_out_of_order_restore_everything():
    w = param(2.0)

    def block():
        with ignore():
            yield

    first, second = block(), block()
    next(first)
    next(second)
    for generator in (first, second):
        next(generator, None)
    with pytest.raises(MutationError):
        w -= 1.0
    assert istracked(w * w)
    assert gradient(lambda x: x * x, 3.0) == (6.0,)
    back(w * w)
    close(w.grad, 4.0)


def test_a_generator_inside_ignore_does_not_ignore_what_its_caller_does():
    def values(x):
        with ignore():
            yield float(x[0])
            yield x * 2.0
            assert float(x[1]) == 1.0

    def f(x):
        total = 0.0
        for factor in values(x):
            total = total + np.sum(x * factor)
            assert istracked(total)
            with pytest.raises(ConversionError):
                float(x[0])
        made = np.zeros(2)
        made[0] = x[0]
        return total + made[0]

    x = np.array([0.5, 1.0])
    # x₀ and 2x are constants: ∂/∂x of Σ x (x₀ + 2 x) + x₀.
    close(gradient(f, x)[0], 0.5 + 2 * x + [1.0, 0.0])


def test_a_context_manager_of_the_users_hands_the_block_on():
    @contextlib.contextmanager
    def quietly():
        with ignore():
            yield

    def f(x):
        with quietly():
            factor = float(x) * x
        with contextlib.ExitStack() as stack:
            stack.enter_context(quietly())
            factor += float(x)
        return factor * x

    assert gradient(f, 3.0) == (12.0,)


def test_a_generator_inside_ignore_that_is_left_alone_ends_its_block():
    def values(x):
        with ignore():
            yield from x

    def f(x):
        first = next(values(x))
        rest = values(x)
        second = next(rest) * x[0]
        third = sum(v * x[1] for v in rest)
        return first * x[0] + second + third

    x = np.array([0.5, 1.0, 3.0])
    close(gradient(f, x)[0], [0.5 + 0.5, 1.0 + 3.0, 0.0])
