"""Compiled functions in a batch: native code runs for one example after the other, in every mode."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import retrograde as rg
from retrograde import BatchError, grad, gradient, hessian, jvp, pullback, vmap

pytest.importorskip("numba")

RNG = np.random.default_rng(3)
X, W = RNG.standard_normal((4, 3)), np.arange(1.0, 5.0)


@rg.compile
def weighted(x, w):
    s = 0.0
    for i in range(len(x)):
        s += np.sin(x[i]) * w * x[i]
    return s


def plain_weighted(x, w):
    return np.sum(np.sin(x) * w * x)


@rg.compile
def fill(x, out):
    for i in range(len(x)):
        out[i] = out[i] * x[i] ** 2
    return np.sum(out)


def plain_fill(x, out):
    out[:] = out * x**2
    return np.sum(out)


def loss_with_writes(fill):
    def loss(x):
        out = np.zeros(3)
        out[:] = x + 1.0
        total = fill(x, out)
        return np.sum(out * out * x) * total

    return loss


USES = {
    "values": lambda f: vmap(f)(X, W),
    "one argument": lambda f: vmap(f, in_axes=(None, 0))(X[0], W),
    "gradients inside": lambda f: vmap(lambda x, w: gradient(f, x, w))(X, W),
    "gradients of itself": lambda f: vmap(grad(f))(X, W),
    "gradient outside": lambda f: gradient(lambda xs, ws: np.sum(vmap(f)(xs, ws) ** 2), X, W),
    "Hessians": lambda f: vmap(lambda x: hessian(lambda x: f(x, 2.0), x))(X),
    "many tangents": lambda f: vmap(lambda v: jvp(lambda x: f(x, 2.0), (X[0],), (v,))[1])(np.eye(3)),
    "many cotangents": lambda f: vmap(pullback(lambda x: f(x, x[0]), X[0])[1])(W)[0],
    "a batch in a batch": lambda f: vmap(lambda x: vmap(lambda w: f(x, w))(W))(X),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_a_compiled_function_does_in_a_batch_what_the_plain_one_does(use):
    got, want = use(weighted), use(plain_weighted)
    pairs = zip(got, want, strict=True) if isinstance(want, tuple) else [(got, want)]
    for a, b in pairs:
        assert np.shape(a) == np.shape(b)
        np.testing.assert_allclose(a, b, 1e-10, 1e-12)


def test_a_compiled_function_writes_into_the_array_of_each_example():
    f, plain = loss_with_writes(fill), loss_with_writes(plain_fill)
    np.testing.assert_allclose(vmap(f)(X), vmap(plain)(X), 1e-10)
    np.testing.assert_allclose(vmap(grad(f))(X), vmap(grad(plain))(X), 1e-10)


def test_the_arrays_of_the_caller_stay_as_they_are():
    outs = np.ones((4, 3))
    np.testing.assert_allclose(vmap(fill)(X, outs), np.sum(X**2, axis=1), 1e-12)
    assert np.all(outs == 1)


def test_integers_among_the_results_are_those_of_each_example():
    @rg.compile
    def positive(x):
        n = 0
        for i in range(len(x)):
            if x[i] > 0:
                n += 1
        return n, x[0] * n

    count, scaled = vmap(positive)(X)
    assert count.dtype.kind == "i"
    np.testing.assert_array_equal(count, np.sum(X > 0, axis=1))
    np.testing.assert_allclose(scaled, X[:, 0] * count)


def test_writes_of_integers_are_refused():
    @rg.compile
    def tally(x, counts):
        for i in range(len(x)):
            if x[i] > 0:
                counts[i] += 1
        return x[0]

    with pytest.raises(BatchError, match="tally writes integers"):
        vmap(lambda x: tally(x, np.zeros(3, int)))(X)


NONE = np.zeros((0, 3))
OF_NONE = {
    "values": lambda f: vmap(f, in_axes=(0, None))(NONE, 2.0),
    "gradients": lambda f: vmap(grad(f, (0, 1)), in_axes=(0, None))(NONE, 2.0),
    "values and tangents": lambda f: vmap(lambda v: jvp(lambda x: f(x, 2.0), (X[0],), (v,)))(NONE),
    "cotangents": lambda f: vmap(pullback(f, X[0], 2.0)[1])(np.zeros(0)),
    "Hessians": lambda f: vmap(lambda x: hessian(lambda x: f(x, 2.0), x))(NONE),
    "a batch in a batch": lambda f: vmap(vmap(lambda x: f(x, 2.0)))(np.zeros((0, 2, 3))),
}


@pytest.mark.parametrize("use", OF_NONE.values(), ids=OF_NONE)
def test_no_examples_give_what_they_give_the_function_itself(use):
    got, want = use(weighted), use(plain_weighted)
    for a, b in zip(np.atleast_1d(got) if isinstance(got, np.ndarray) else got, want, strict=True):
        assert np.shape(a) == np.shape(b)
    if isinstance(got, np.ndarray):
        assert (got.shape, got.dtype) == (want.shape, want.dtype)


def test_shapes_of_no_examples_come_from_the_program():
    @rg.compile
    def table(x, n):
        y = np.zeros((n, len(x)), np.float32)
        if len(x) > 5:
            raise ValueError("too long")
        for i in range(n):
            for j in range(len(x)):
                y[i, j] = x[j] * i
        return y, x[0]

    table_of_none, first = vmap(lambda x: table(x, 4))(NONE)
    assert (table_of_none.shape, table_of_none.dtype, first.shape) == ((0, 4, 3), np.float32, (0,))
    with pytest.raises(ValueError, match="too long"):
        vmap(lambda x: table(x, 4))(np.zeros((0, 6)))

    @rg.compile
    def ones(x):
        return np.ones(int(x[0]))

    with pytest.raises(BatchError, match="ones is mapped over no examples; the shape of its result depends"):
        vmap(ones)(NONE)


_FIRST_CALL_INSIDE = """
import numpy as np, retrograde as rg
from test_compiled import fill, loss_with_writes, plain_fill
f, plain = loss_with_writes(fill), loss_with_writes(plain_fill)
x = np.array([0.5, -1.5, 2.0])
{compare}
"""


@pytest.mark.parametrize(
    "compare",
    [
        "np.testing.assert_allclose(rg.gradient(f, x)[0], rg.gradient(plain, x)[0], 1e-10)",
        "np.testing.assert_allclose(rg.vmap(f)(np.stack([x, x])), [plain(x.copy())] * 2, 1e-10)",
    ],
    ids=["gradient", "vmap"],
)
def test_a_function_may_be_compiled_first_while_a_transform_runs(compare):
    code = _FIRST_CALL_INSIDE.format(compare=compare)
    done = subprocess.run([sys.executable, "-c", code], cwd=__file__.rpartition("/")[0], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
