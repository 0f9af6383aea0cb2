"""What array loops become: fewer arrays, fewer writes, sums and searches that run side by side."""

from __future__ import annotations

import math

import numpy as np
import pytest

import retrograde as rg

pytest.importorskip("numba")


def log_sum_exp(x):
    shift = np.max(x)
    return shift + np.log(np.sum(np.exp(x - shift)))


def test_sums_of_derivatives_are_added_up_in_parts_and_at_least_as_exact():
    def squared(x):
        total = 0.0
        for i in range(x.size):
            total += x[i]
        return total * total

    x = np.random.default_rng(0).normal(size=100_003) * 10.0 ** np.random.default_rng(1).integers(-8, 8, 100_003)
    compiled, exact = rg.compile(squared), rg.compile(squared, vectormath=False)
    truth = 2 * math.fsum(x)
    bound = np.finfo(float).eps * x.size * np.sum(np.abs(x))
    assert abs(rg.grad(compiled)(x)[0] - truth) <= bound
    assert rg.grad(exact)(x)[0] == 2 * squared(x) ** 0.5 or abs(rg.grad(exact)(x)[0] - truth) <= bound
    assert "vectormath.plus" in compiled.source("pullback")
    assert "vectormath.plus" not in exact.source("pullback")
    assert compiled(x) == exact(x)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_largest_of_many_is_that_of_numpy(dtype):
    compiled = rg.compile(log_sum_exp)
    rng = np.random.default_rng(0)
    for n in (1, 2, 7, 8, 9, 33, 1000):
        x = rng.normal(size=n).astype(dtype)
        want = np.exp(x - np.max(x)) / np.sum(np.exp(x - np.max(x)))
        np.testing.assert_allclose(rg.grad(compiled)(x), want, rtol=1e-5 if dtype == "float32" else 1e-13)
    assert dtype == "float32" or "vectormath.maximum" in compiled.source("pullback")


def test_a_nan_is_larger_than_anything():
    compiled = rg.compile(log_sum_exp)
    for place in (0, 3, 19):
        x = np.linspace(0, 1, 20)
        x[place] = np.nan
        with np.errstate(invalid="ignore"):
            assert np.all(np.isnan(rg.pullback(compiled, x)[1](1.0)[0]))
    y, back = rg.pullback(compiled, np.array([-np.inf, 2.0, -np.inf]))
    assert y == 2.0
    np.testing.assert_array_equal(back(1.0)[0], [0, 1, 0])


def slope(x, y):
    z = np.empty_like(y)
    z[0] = x[0]
    z[1:] = x[1:] * y[:-1]
    return z


def two_stages(x, steps):
    y = np.zeros_like(x)
    for _ in range(steps):
        k1 = slope(x, y)
        k2 = slope(x, y + 0.5 * k1)
        y = y + 0.1 * (k1 + k2)
    return y[-1]


def test_a_stage_of_a_simulation_needs_one_array_and_clears_none():
    x = np.linspace(0.5, 1.5, 6)
    compiled = rg.compile(two_stages)
    made = compiled.source("primal", x, 3).count("np.empty(")
    assert made == 2, "k1 and k2; neither the argument of the second stage, nor the next y before it is one"
    pullback = compiled.source("pullback", x, 3)
    assert "= 0\n" not in pullback
    assert pullback.count("np.zeros(") == 2, "y, and its shadow"
    slopes = [(two_stages(x + 1e-6 * e, 3) - two_stages(x - 1e-6 * e, 3)) / 2e-6 for e in np.eye(6)]
    np.testing.assert_allclose(rg.grad(compiled)(x, 3), slopes, atol=1e-8)


def test_the_state_of_a_step_is_read_where_it_is_kept():
    x = np.linspace(0.5, 1.5, 6)
    pullback = rg.compile(two_stages).source("pullback", x, 3)
    assert "y_kept[_, :]" in pullback


def pairs(points, centres):
    total = 0.0
    z = np.zeros(points.shape[1])
    for i in range(points.shape[0]):
        for a in range(points.shape[1]):
            for b in range(a + 1, points.shape[1]):
                z[b] = z[b] * 0.5 + points[i, a] * centres[b]
        total += np.sum(z * z)
    return total


def test_an_element_that_exists_is_read_in_front_of_the_loop():
    points, centres = np.random.default_rng(0).normal(size=(2, 4, 4))
    text = rg.compile(pairs).source("primal", points, centres[0])
    code = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    (place,) = (i for i, line in enumerate(code) if "for b in" in line)
    assert "points[" in code[place - 2] + code[place - 1]
    assert "points[" not in code[place + 1]
