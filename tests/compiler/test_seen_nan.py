"""Programs that look for a NaN in what they write while they have it at hand: none is overlooked, wherever it is.

Where there is one, the derivative is computed again with products in which zero times infinity is zero.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import pytest
from truth import close

import retrograde as rg
from retrograde.compiler import specialisation
from retrograde.compiler.arguments import kind_of
from retrograde.compiler.settings import Settings
from retrograde.compiler.source import source_of
from retrograde.compiler.specialisation import Specialisation
from retrograde.compiler.variant import Which

pytest.importorskip("numba")


def turned(x, w):
    y = np.empty((x.shape[0], 2))
    for i in range(x.shape[0]):
        length = math.sqrt(x[i, 0] ** 2 + x[i, 1] ** 2 + x[i, 2] ** 2)
        slope = math.sin(length) * w[i]
        if slope > 0.5:
            slope = math.cos(slope)
        y[i, 0] = slope
        y[i, 1] = math.exp(-length) * w[i]
    return y


def drawn(n: int) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(n)
    return rng.normal(size=(n, 3)), rng.uniform(0.5, 2, n), rng.normal(size=(n, 2))


def gradient_of_one(x: Any, w: float, seed: Any) -> Any:
    """The derivatives of a row, by the formula."""
    length = math.sqrt(x @ x)
    slope = math.sin(length) * w
    slope_bar = -math.sin(slope) * seed[0] if slope > 0.5 else seed[0]
    length_bar = slope_bar * math.cos(length) * w - seed[1] * math.exp(-length) * w
    return length_bar * x / length, slope_bar * math.sin(length) + seed[1] * math.exp(-length)


@functools.cache
def compiled(parallel: bool = False) -> Any:
    return rg.compile(turned, cache=False, parallel=parallel)


@pytest.fixture
def runs(monkeypatch):
    """The arrays that are searched for a NaN from the outside."""
    searched: list[Any] = []
    search = specialisation.has_nan

    def noted(value: Any) -> bool:
        searched.append(value)
        return search(value)

    monkeypatch.setattr(specialisation, "has_nan", noted)
    return searched


@pytest.mark.parametrize("parallel", [False, True])
def test_all_that_is_written_is_looked_at(parallel):
    kinds = {name: kind_of(value, name) for name, value in zip("xw", drawn(9), strict=False)}
    of = Specialisation(source_of(turned), kinds, Settings(parallel=parallel))
    assert of.variant().program(Which("T", 0)).kernel.looked_at == {2, 3}


def test_arrays_in_which_no_nan_was_seen_are_not_searched(runs):
    x, w, seed = drawn(21)
    _, back = rg.pullback(compiled(), x, w)
    x_bar, w_bar = back(seed)
    assert runs == []
    for i in range(21):
        x_bar_i, w_bar_i = gradient_of_one(x[i], w[i], seed[i])
        close(x_bar[i], x_bar_i, rtol=1e-12)
        close(w_bar[i], w_bar_i, rtol=1e-12)


@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize("n", [1, 5, 8, 13, 16, 23])
def test_zero_times_infinity_is_zero_in_every_lane(n, parallel):
    x, w, seed = drawn(n)
    for i in range(n):
        point, seeds = x.copy(), seed.copy()
        point[i] = seeds[i] = 0
        x_bar, w_bar = rg.pullback(compiled(parallel), point, w)[1](seeds)
        want = [gradient_of_one(point[k], w[k], seeds[k]) if k != i else (np.zeros(3), 0.0) for k in range(n)]
        close(x_bar, np.array([a for a, _ in want]), rtol=1e-12)
        close(w_bar, np.array([b for _, b in want]), rtol=1e-12)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_bad_number_reaches_its_own_row_alone(bad):
    x, w, seed = drawn(19)
    x[11, 1] = bad
    seed[11] = 0
    _, back = rg.pullback(compiled(), x, w)
    x_bar, w_bar = back(seed)
    assert not np.isnan(np.delete(x_bar, 11, 0)).any()
    close(x_bar[11], np.zeros(3))
    close(w_bar[11], 0.0)
    seed[11] = 1
    x_bar, w_bar = back(seed)
    assert np.isnan(x_bar[11, 1])
    assert not np.isnan(np.delete(x_bar, 11, 0)).any()


def test_infinities_of_both_signs_are_no_nan():
    x, w, seed = drawn(17)
    seed[[3, 12], 1] = np.inf, -np.inf
    x_bar, _ = rg.pullback(compiled(), x, w)[1](seed)
    assert np.isinf(x_bar[[3, 12]]).all()
    assert np.isfinite(np.delete(x_bar, [3, 12], 0)).all()


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8, 20])
def test_each_of_many_seeds_is_looked_at(count, runs):
    x, w, _ = drawn(11)
    x[7] = 0
    seeds = np.random.default_rng(1).normal(size=(count, 11, 2))
    seeds[:, 7] = 0
    _, back = rg.pullback(compiled(), x, w)
    x_bar, w_bar = rg.vmap(back)(seeds)
    assert not np.isnan(x_bar).any()
    for k in range(count):
        one = back(seeds[k])
        close(x_bar[k], one[0], rtol=1e-13)
        close(w_bar[k], one[1], rtol=1e-13)
    seeds[count - 1, 7, 0] = 1
    assert np.isnan(rg.vmap(back)(seeds)[0][count - 1, 7]).all()


def test_single_precision_is_looked_at():
    x, w, seed = (a.astype(np.float32) for a in drawn(14))
    x[9] = seed[9] = 0
    y, back = rg.pullback(compiled(), x, w)
    x_bar, _ = back(seed.astype(y.dtype))
    assert x_bar.dtype == np.float32
    assert not np.isnan(x_bar).any()
    close(x_bar[9], np.zeros(3, np.float32))


def test_second_derivatives_are_looked_at():
    x, w, _ = drawn(10)
    weights = np.linspace(0.5, 1.5, 20).reshape(10, 2)
    weights[4] = 0

    def loss(x: Any) -> Any:
        return np.sum(weights * compiled()(x, w))

    direction = np.ones_like(x)
    want = rg.hvp(lambda x: np.sum(weights * turned(x, w)), x, direction)
    close(rg.hvp(loss, x, direction), want, rtol=1e-9)
    x[4] = 0
    found = rg.hvp(loss, x, direction)
    assert not np.isnan(np.delete(found, 4, 0)).any()
