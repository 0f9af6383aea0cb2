"""Loops over prange: in parts where that is right, in one thread elsewhere. Plain Python plays two threads."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from compiler.corpus import CASES
from compiler.corpus_parallel import parallel_kmeans, prange
from compiler.harness import check, specialised

from retrograde import compile, gradient
from retrograde.compiler.options import Options

numba = pytest.importorskip("numba")
IN_PARTS = replace(Options(), passes=(*Options().passes, "parallel"))
PARALLEL = [name for name in CASES if name.startswith("parallel")]
X = np.array([0.5, 1.5, 2.5, -0.5])


def text(function, *args):
    return specialised(function, args, options=IN_PARTS).text("T", 0)


@pytest.mark.parametrize("name", PARALLEL)
def test_loops_in_parts_agree_with_differences(name):
    check(*CASES[name], options=IN_PARTS)
    check(*CASES[name], options=replace(IN_PARTS, repeat=False, recompute=False), second=False)
    assert "threads()" in text(CASES[name].function, *CASES[name].args)


def recurrence(x):
    s = 1.0
    for i in prange(len(x)):
        s = s * x[i]
    return s


def meeting_stores(x):
    y = np.zeros(2)
    for i in prange(len(x)):
        y[i % 2] = x[i] ** 2
    return np.sum(y)


def neighbours(x):
    y = x.copy()
    for i in prange(1, len(x)):
        y[i] = y[i - 1] * x[i]
    return y[3]


def scratch_that_is_read_afterwards(x):
    s = 0.0
    scratch = np.zeros(2)
    for _ in range(2):
        for i in prange(len(x)):
            for j in range(2):
                scratch[j] = x[i] ** 2
            s += scratch[0] * scratch[1]
        s += scratch[0]
    return s


def shared_scratch(x):
    s = 0.0
    scratch = np.zeros(2)
    for i in prange(len(x)):
        scratch[0] = x[i] ** 2
        s += scratch[0] * scratch[1]
        scratch[1] = x[i]
    return s


def compares_sizes_on_one_path(x):
    s = 0.0
    for i in prange(len(x)):
        if x[i] > 100.0:
            s += np.sum(x * x[1:])
        s += np.exp(x[i]) * s_of(x)
    return s


def s_of(x):
    return x[0] * 0.5


def may_raise(x):
    s = 0.0
    for i in prange(len(x)):
        for _ in range(i):
            if x[i] > 100.0:
                raise ValueError("large")
            s += np.exp(x[i])
    return s


@pytest.mark.parametrize(
    "function",
    [
        recurrence,
        meeting_stores,
        neighbours,
        scratch_that_is_read_afterwards,
        shared_scratch,
        may_raise,
        compares_sizes_on_one_path,
    ],
)
def test_loops_whose_iterations_may_meet_run_in_one_thread(function):
    check(function, (X,), options=IN_PARTS, second=False)
    assert "threads()" not in text(function, X)


def test_compiled_loops_on_several_threads_agree_with_one():
    rng = np.random.default_rng(0)
    points, centroids = rng.random((50, 3)), rng.random((4, 3))
    several, one = compile(parallel_kmeans, parallel=True), compile(parallel_kmeans)
    for got, want in zip(gradient(several, points, centroids), gradient(one, points, centroids), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12)
