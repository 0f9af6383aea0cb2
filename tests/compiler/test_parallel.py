"""Loops over prange: in parts where that is right, in one thread elsewhere. Plain Python plays two threads."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from compiler.corpus import CASES
from compiler.corpus_parallel import parallel_kmeans, prange
from compiler.harness import check, specialised

from retrograde import compile, gradient, jvp
from retrograde.compiler.options import Options
from retrograde.compiler.variant import Which

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


# --- in LLVM's text ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted({*PARALLEL} - {"parallel_with_complex_numbers"}))
def test_loops_over_threads_have_a_text_for_llvm(name):
    of = specialised(*CASES[name][:2], options=IN_PARTS)
    for which in (Which("T", 0), Which("J", 1), Which("T", 1)):
        assert of.program(which).kernel.has_threads


def rows_with_scratch(a, w, scale, skip, small):
    means = np.zeros(w.shape[0])
    for j in range(w.shape[0]):
        means[j] = np.sin(w[j])
    total = 0.0
    for i in prange(a.shape[0]):
        scratch = np.zeros(a.shape[1])
        for j in range(a.shape[1]):
            scratch[j] = a[i, j] * means[j] * scale
        if not skip:
            total += scratch[0] * scratch[1] + np.sum(scratch * w) * small
    for i in prange(a.shape[0]):
        total += a[i, 0] ** 2
    return total


@pytest.mark.parametrize("threads", [1, 2])
def test_threads_take_arrays_of_every_layout_numbers_and_own_arrays(threads):
    rng = np.random.default_rng(1)
    a, w = rng.random((7, 3)), rng.random(3)
    several, one = (compile(rows_with_scratch, parallel=p, cache=False) for p in (True, False))
    before = numba.get_num_threads()
    numba.set_num_threads(min(threads, before))
    try:
        for x in (a, np.asfortranarray(a), rng.random((14, 6))[::2, ::2], a[::-1], a[:0]):
            got = gradient(several, x, w, 2.0, False, np.float32(0.5))
            for g, h in zip(got, gradient(one, x, w, 2.0, False, np.float32(0.5)), strict=True):
                np.testing.assert_allclose(g, h, rtol=1e-12) if g is not None else h
            assert type(got[4]) is np.float32
            v = (np.ones_like(x), w, 1.0)
            f = [lambda x, w, s, c=c: c(x, w, s, False, np.float32(0.5)) for c in (several, one)]
            np.testing.assert_allclose(jvp(f[0], (x, w, 2.0), v)[1], jvp(f[1], (x, w, 2.0), v)[1], rtol=1e-12)
    finally:
        numba.set_num_threads(before)


def with_room(x, n):
    total = 0.0
    for i in prange(x.shape[0]):
        room = np.zeros(n + i)
        room[0] = x[i]
        total += np.sum(room * room)
    return total


def test_errors_on_threads_are_raised():
    compiled = compile(with_room, parallel=True, cache=False)
    np.testing.assert_allclose(gradient(compiled, X, 2)[0], 2 * X)
    with pytest.raises(ValueError, match="negative dimensions"):
        gradient(compiled, X, -9)


def test_a_numba_with_other_threads_gets_the_python_text(monkeypatch):
    from retrograde.compiler.machine import kernel

    there = kernel.llvm.address_of_symbol
    monkeypatch.setattr(kernel.llvm, "address_of_symbol", lambda n: None if n == kernel.LAYER else there(n))
    compiled = compile(with_room, parallel=True, cache=False)
    np.testing.assert_allclose(gradient(compiled, X, 2)[0], 2 * X)
