"""Unit directions, which are diagonals as long as they can be, give what directions one by one give."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from truth import close

from retrograde import gradient, hessian, hook, jacobian, jvp, primitive, taylor, vmap
from retrograde.batch.level import BatchLevel
from retrograde.batch.units import Diagonal, units
from retrograde.trace.handle import contents

X = np.array([0.5, -1.0, 2.0])
M = np.array([[1.0, 2.0, 3.0], [0.0, 1.0, -1.0], [0.5, 1.0, 1.0]])


def written(x):
    y = x * 2
    y[..., :1] = y[..., -1:] * x[..., :1]
    y *= x
    return y


FUNCTIONS = {
    "a product": lambda x: x * x,
    "a quotient": lambda x: 2.0 / (x + 3),
    "a negative": lambda x: -x,
    "a positive": lambda x: +x,
    "itself": lambda x: x,
    "a sum of diagonals": lambda x: x + 2 * x,
    "a difference": lambda x: x - np.sin(x),
    "a difference from a batch": lambda x: np.cumsum(x * x) - np.ravel(x),
    "a sum with a batch": lambda x: np.reshape(np.cumsum(x * x), np.shape(x)) + x,
    "a sum of batch and diagonal": lambda x: x * 3 + np.reshape(np.cumsum(x * x), np.shape(x)),
    "a number": lambda x: np.sum(x),
    "a constant": lambda x: np.ones(2),
    "another order": lambda x: np.ravel(x)[::-1] * 2,
    "another shape": lambda x: np.reshape(x, -1),
    "more axes": lambda x: x * np.ones((2, *np.shape(x))),
    "every pair": lambda x: np.outer(x, x),
    "a choice": lambda x: np.where(np.reshape(np.arange(np.size(x)) % 2, np.shape(x)), x, 0.0),
    "a vector times a matrix": lambda x: np.ravel(x) @ np.ones((np.size(x), 2)),
    "a matrix times a vector": lambda x: np.arange(2.0 * np.size(x)).reshape(2, -1) @ np.ravel(x),
    "infinite numbers": lambda x: x * np.full(np.shape(x), np.inf),
    "writes": written,
}
SHAPES = [(), (0,), (1,), (3,), (2, 0), (1, 1), (2, 3)]


@pytest.mark.parametrize("dtype", [float, np.float32, complex])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_jacobian_is_the_same_by_columns_by_rows_and_one_by_one(name, dtype):
    f = FUNCTIONS[name]
    if dtype is complex and name.startswith("infinite"):
        pytest.skip("complex infinities are NaN to NumPy")
    for shape in SHAPES:
        if name == "writes" and not (shape and shape[-1]):
            continue
        x = (np.arange(1, 1 + int(np.prod(shape))).reshape(shape)).astype(dtype)
        with np.errstate(all="ignore"):
            want = jacobian(f, x, mode="forward", chunk=1)
            for mode, chunk in itertools.product(["forward", "reverse"], [None, 2]):
                found = jacobian(f, x, mode=mode, chunk=chunk)
                assert (np.shape(found), found.dtype) == (np.shape(want), want.dtype)
                np.testing.assert_allclose(found, want, rtol=1e-6)


def steep(x):
    return np.tanh(M @ (x * x) + 1) * x


NESTINGS = {
    "gradient of a Jacobian": lambda x, **how: gradient(lambda x: np.sum(jacobian(steep, x, **how) ** 2), x)[0],
    "Jacobian of a Jacobian": lambda x, **how: jacobian(lambda x: jacobian(steep, x, **how), x, **how),
    "batch of Jacobians": lambda x, **how: vmap(lambda x: jacobian(steep, x, **how))(np.stack([x, 2 * x])),
    "batch of Hessians": lambda x, **how: vmap(lambda x: hessian(lambda x: np.sum(steep(x)), x, **how))(
        np.stack([x, 2 * x])
    ),
    "Jacobian of a batch": lambda x, **how: jacobian(lambda x: vmap(lambda a: steep(a * x))(M), x, **how),
    "Jacobian of a coefficient": lambda x, **how: jacobian(lambda v: taylor(steep, x, v, 2)[2], x, **how),
    "coefficient of a Jacobian": lambda x, **how: taylor(lambda x: jacobian(steep, x, **how), x, x, 2)[2],
    "tangent of a Jacobian": lambda x, **how: jvp(lambda x: jacobian(steep, x, **how), (x,), (x,))[1],
    "Jacobian in a matrix": lambda x, **how: jacobian(lambda m: m @ np.sin(m @ x), M, **how),
    "Jacobian by a traced matrix": lambda x, **how: gradient(
        lambda m: np.sum(jacobian(lambda x: m @ (x * x), x, **how) ** 2), M
    )[0],
}


@pytest.mark.parametrize("mode", ["forward", "reverse"])
@pytest.mark.parametrize("name", NESTINGS)
def test_diagonals_nest(name, mode):
    close(NESTINGS[name](X, mode=mode), NESTINGS[name](X, mode=mode, chunk=1), 1e-10, 1e-12)


def test_a_zero_outside_of_the_diagonal_stays_zero():
    singular = np.array([[1.0, np.inf], [np.nan, 2.0]])
    for mode in ("forward", "reverse"):
        np.testing.assert_equal(jacobian(lambda x: singular @ x, np.ones(2), mode=mode), singular)
        np.testing.assert_equal(jacobian(np.sqrt, np.array([0.0, 4.0]), mode=mode), [[np.inf, 0], [0, 0.25]])


def test_a_function_that_does_not_know_of_diagonals_finds_arrays():
    seen = []

    @primitive
    def same(x):
        return x * 1.0

    same.defpullback(lambda y, x: lambda y_bar: (seen.append(contents(y_bar).copy()) or y_bar,))
    close(jacobian(lambda x: same(x) * 2, X, mode="reverse"), 2 * np.eye(3))
    close(seen[0], 2 * np.eye(3))
    rows = []
    jacobian(lambda x: hook(lambda bar: rows.append(np.array(bar)), x) * 2, X, mode="reverse")
    close(np.array(rows), 2 * np.eye(3))


def test_a_diagonal_is_what_its_arrays_are():
    level = BatchLevel(2)
    d = units((2, 2), np.float64, 1, 3, 2.0, level)
    assert type(d) is Diagonal
    assert (d.shape, d.ndim, d.size, d.dtype, len(d)) == ((2, 2), 2, 4, np.float64, 2)
    assert isinstance(d, np.ndarray)
    assert type(-d * M[:2, :2]) is Diagonal
    assert type(d + d) is Diagonal
    want = np.zeros((2, 2, 2))
    want[0, 0, 1] = want[1, 1, 0] = 2.0
    close(contents(d + 0.0), want)
    close(contents(d - 1.0), want - 1.0)
    close(contents(1.0 / (d + 1.0)), 1.0 / (want + 1.0))
    close(contents(d * d), want * want)
    close(contents(d[0]), want[:, 0])
    assert type(d) is not Diagonal  # its arrays have been asked for
    close(d.primal, want)


def test_writing_to_a_diagonal_makes_it_an_ordinary_value():
    def f(x):
        y = x * 3
        y[1] = 0.0
        return y

    close(jacobian(f, X, mode="forward"), np.diag([3.0, 0.0, 3.0]))
    level = BatchLevel(3)
    d = units((3,), np.float64, 0, 3, 1.0, level)
    d[0] = 5.0
    close(d.primal, [[5, 0, 0], [5, 1, 0], [5, 0, 1]])
