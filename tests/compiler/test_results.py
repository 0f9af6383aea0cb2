"""Results that are one thing on one path and another on the next: an argument, a part of one, a new array."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from truth import close

import retrograde as rg

pytest.importorskip("numba")

X, W = np.array([1.0, 2.0, -3.0]), np.array([3.0, 4.0, 5.0])
AT = {"first": X, "second": X * [-1.0, 1.0, 1.0], "third": X * [-1.0, -1.0, 1.0]}


def arguments(x, w):
    if x[0] > 0:
        return x
    return w


def argument_and_part(x, w):
    if x[0] > 0:
        return x
    return w[::-1]


def parts_and_constant(x, w):
    if x[0] > 0:
        return x[::-1]
    elif x[1] > 0:
        return w[:]
    else:
        return np.ones(3)


def new_and_argument(x, w):
    if x[0] > 0:
        return w
    return x * w


def several(x, w):
    if x[0] > 0:
        return x, w, 1.0
    if x[1] > 0:
        return w * w, x, x[0]
    return np.ones(3), w[::-1], w[2] * x[1]


def with_integer(x, w):
    if x[0] > 0:
        return 1, x
    return 2, w[::-1]


def matrices(x, w):
    if x[0] > 0:
        return np.outer(x, w)
    return np.outer(w, w * x).T


ALL = [arguments, argument_and_part, parts_and_constant, new_and_argument, several, with_integer, matrices]


def loss_of(f: Any) -> Any:
    def loss(x, w):
        y = f(x, w)
        total = 0.0
        for k, part in enumerate(y if isinstance(y, tuple) else (y,)):
            total = total + np.sum(part * part * (k + 1.0 + np.arange(np.size(part)).reshape(np.shape(part))))
        return total

    return loss


def derivatives(f: Any, x: Any, w: Any) -> Any:
    """Those in which several directions or levels go through one call."""
    loss = loss_of(f)
    v = np.array([-1.0, 0.5, 2.0])

    def of_x(x):
        return loss(x, w)

    return {
        "jvp": rg.jvp(lambda x: f(x, w), (x,), (v,))[1],
        "hessian": rg.hessian(loss, x, w),
        "jacobian": rg.jacobian(of_x, x, mode="forward"),
        "jacobian twice": rg.jacobian(lambda x: rg.jacobian(of_x, x, mode="forward"), x, mode="forward"),
        "jacobian of grad": rg.jacobian(rg.grad(of_x), x, mode="forward"),
        "hvp": rg.hvp(of_x, x, v),
        "directions": rg.vmap(lambda v: rg.jvp(lambda x: f(x, w), (x,), (v,))[1])(np.stack([v, -v, x] * 3)),
    }


@pytest.mark.usefixtures("as_plain_python")
@pytest.mark.parametrize("path", AT)
@pytest.mark.parametrize("f", ALL)
def test_results_of_another_kind_on_each_path_have_the_derivatives_of_the_path_that_is_taken(f, path):
    got, want = derivatives(rg.compile(f, cache=False), AT[path], W), derivatives(f, AT[path], W)
    for name, value in want.items():
        found, leaves = flat(got[name]), flat(value)
        assert len(found) == len(leaves), name
        for a, b in zip(found, leaves, strict=True):
            close(a, b)


def flat(tree: Any) -> list[Any]:
    return [leaf for part in tree for leaf in flat(part)] if isinstance(tree, tuple) else [tree]


@pytest.mark.parametrize("count", [2, 3, 7])
def test_several_directions_go_through_numba_where_only_one_path_depends_on_them(count):
    c = rg.compile(argument_and_part, cache=False)
    v = np.random.default_rng(count).normal(size=(count, 3))
    close(rg.vmap(lambda v: rg.jvp(lambda x: c(x, W), (X,), (v,))[1])(v), v)
    close(rg.vmap(lambda v: rg.jvp(lambda x: c(x, W), (AT["third"],), (v,))[1])(v), np.zeros((count, 3)))


@pytest.mark.usefixtures("as_plain_python")
@pytest.mark.parametrize("f", [arguments, argument_and_part, parts_and_constant])
def test_a_result_stays_the_part_of_the_argument_that_it_was_when_values_decide_otherwise_later(f):
    """Which part it is was decided in the call: neither what is written later nor a tangent decides it anew."""
    c = rg.compile(f, cache=False)

    def written(g, place):
        def loss(x):
            x = x * 1.0
            y = g(x, W)
            x[0] = -(x[1] ** 2)
            y[place] = x[2] * x[1]
            return np.sum(y * y * W) + np.sum(x**3)

        return loss

    for place in range(3):
        plain, native = written(f, place), written(c, place)
        assert native(X) == plain(X)
        close(rg.gradient(native, X)[0], rg.gradient(plain, X)[0])
        close(rg.jvp(native, (X,), (W,))[1], rg.jvp(plain, (X,), (W,))[1])
        close(rg.jacobian(native, X, mode="forward"), rg.jacobian(plain, X, mode="forward"))
        close(rg.hessian(native, X), rg.hessian(plain, X))
