"""Indices outside of an axis: looked for outside of loops, and everywhere where the user asks for it."""

from __future__ import annotations

import re

import numpy as np
import pytest
from compiler.harness import specialised

import retrograde as rg
from retrograde.compiler.bridge import Bridge

X = np.array([0.5, -1.0, 2.0])


def ends(x):
    return x[0] * x[-2] + np.sum(x)


@pytest.mark.parametrize("n", [0, 1])
def test_numbers_as_indices_are_compared_with_the_axis(n):
    bridge = Bridge(specialised(ends, (X,), plain=True))
    with pytest.raises(IndexError, match=rf"index {-2 if n else 0} is out of bounds  \(test_bounds.py:"):
        bridge.t([np.ones(n)], [1.0], ())
    with pytest.raises(IndexError):
        bridge.j([np.ones(n)], ([np.ones(n)],))
    np.testing.assert_array_equal(bridge.t([np.ones(2)], [1.0], ())[0], [3.0, 1.0])


def written(x):
    y = np.zeros(len(x))
    y[3] = x[0]
    return np.sum(y)


def test_a_write_beyond_the_end_is_none():
    with pytest.raises(IndexError, match="index 3"):
        Bridge(specialised(written, (X,))).t([X], [1.0], ())


def behind_a_test(x, n):
    s = 0.0
    if n > 3:
        s = x[3]
    return s + x[1]


def test_an_index_that_is_not_used_is_not_looked_at():
    x_bar = Bridge(specialised(behind_a_test, (X, 2))).t([X, 2], [1.0], ())[0]
    np.testing.assert_array_equal(x_bar, [0.0, 1.0, 0.0])
    with pytest.raises(IndexError):
        Bridge(specialised(behind_a_test, (X, 2))).t([X, 4], [1.0], ())


def neighbours(x, n, m):
    s = 0.0
    for i in range(n, m):
        s += x[i] * x[i + 1]
    return s


def rows(a, n):
    b = np.sin(a)
    return np.sum(b[n] * a[:, n])


def gathered(x, places):
    y = x[places] * 2.0
    z = np.zeros(3)
    z[places] += y
    return np.sum(z * z)


def nested(x, k):
    return x[k] if k == 2 else x[k] * nested(x, k + 1)


CHECKED = [
    (neighbours, (X, 0, 2), (X, 0, 3)),
    (neighbours, (X, -3, 2), (X, -4, 0)),
    (rows, (np.outer(X, X), 2), (np.outer(X, X), 3)),
    (rows, (np.outer(X, X), -3), (np.outer(X, X), -4)),
    (gathered, (X, np.array([2, 0, -3])), (X, np.array([2, 3]))),
    (nested, (X, 0), (X, 3)),
]


@pytest.mark.usefixtures("as_plain_python")
@pytest.mark.parametrize(("function", "inside", "outside"), CHECKED)
def test_every_index_is_compared_where_the_user_asks_for_it(function, inside, outside):
    compiled = rg.compile(function, boundscheck=True, cache=False)
    wanted = rg.gradient(function, *inside)[0]
    np.testing.assert_allclose(rg.gradient(compiled, *inside)[0], wanted, rtol=1e-14)
    for derivative in (
        lambda: rg.gradient(compiled, *outside),
        lambda: rg.jvp(lambda x: compiled(x, *outside[1:]), (outside[0],), (outside[0],)),
        lambda: rg.hessian(lambda x: compiled(x, *outside[1:]), outside[0]),
    ):
        with pytest.raises(IndexError):
            derivative()


def test_native_code_is_checked_where_the_user_asks_for_it():
    pytest.importorskip("numba")
    compiled = rg.compile(neighbours, boundscheck=True, cache=False)
    assert compiled(X, 0, 2) == neighbours(X, 0, 2)
    with pytest.raises(IndexError):
        compiled(X, 0, 3)
    np.testing.assert_array_equal(rg.gradient(compiled, X, 0, 2)[0], rg.gradient(neighbours, X, 0, 2)[0])
    with pytest.raises(IndexError, match="out of bounds"):
        rg.gradient(compiled, X, 0, 3)
    assert re.search(r"if .*:\n *raise IndexError", compiled.source("pullback", X, 0, 2))
