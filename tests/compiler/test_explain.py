"""What `explain` says of a pullback, and the names that `source` uses."""

from __future__ import annotations

import numpy as np
import pytest
from compiler.test_abreast import mixture

import retrograde as rg

numba = pytest.importorskip("numba")


@rg.compile
def chain(x, steps):
    s = 1.0
    unused = 0.0
    for _ in range(steps):
        for v in x:
            s = np.sin(s * v)
        unused += 1.0
    return s


@rg.compile
def errors(points, centre):
    total = 0.0
    for i in range(len(points)):
        difference = points[i] - centre
        total += np.sqrt(np.sum(difference * difference))
    return total


@rg.compile
def until_small(x, rate):
    while x > 0.1:
        x = np.sin(x) * rate
    return x


def test_taped_values_are_counted_for_the_sizes_that_are_given_or_were_last():
    found = chain.explain(np.ones(5), 7)
    (tape,) = found.tapes
    assert tape.count == 35
    assert tape.nbytes == 8
    assert tape.text == "s = np.sin(s * v)"
    assert tape.length == "steps * len(x)"
    assert found.taped == 280
    rg.gradient(chain, np.ones(3), 4)
    assert chain.explain().taped == 96
    assert f"test_explain.py:{tape.line}  s = np.sin(s * v)" in str(found)


def test_active_names_are_the_users_and_no_others():
    assert chain.explain(np.ones(2), 1).active == ("s", "v", "x")


def test_loops_that_run_again_are_named_by_their_lines():
    found = errors.explain(np.ones((6, 2)), np.ones(2))
    assert [text for _, text in found.loops] == ["for i in range(len(points)):"]
    assert found.taped == 0


def test_memory_is_that_of_all_arrays_that_the_pullback_makes():
    n = 1000
    text = chain.source("pullback", np.ones(n), 3)
    assert text.count("np.empty(") == 1
    assert chain.explain(np.ones(n), 3).nbytes == 3 * n * 8


def test_what_is_not_known_beforehand_is_none():
    found = until_small.explain(1.0, 0.9)
    assert found.taped is None
    assert found.nbytes is None
    assert "as many as the loop makes" in str(found)
    assert "memory      grows with the steps of the loop" in str(found)


@rg.compile
def kept_positive(x):
    y = x[x > 0.0]
    z = y * y
    for t in range(len(z)):
        z[t] = np.sin(z[t] * 2.0 + 1.0)
    return np.sum(z * y)


def test_loop_counters_are_not_active_and_sizes_that_depend_on_values_are_named():
    found = kept_positive.explain(np.ones(3))
    assert set(found.active) == {"x", "y", "z"}
    assert found.nbytes is None
    assert found.grows
    assert f"grows with {found.grows[0]}" in str(found)


@rg.compile(parallel=True)
def last_of_all(x):
    total = 0.0
    last = 0.0
    for i in numba.prange(len(x)):
        total += x[i] ** 2
        last = last * 0.5 + x[i]
    return total + last


def test_a_parallel_loop_that_has_one_thread_is_said_to_and_why():
    found = last_of_all.explain(np.ones(3))
    assert found.threads
    line, text, why = found.threads[0]
    assert text == "for i in numba.prange(len(x)):"
    assert f"one thread  test_explain.py:{line}  {text}    as {why}" in str(found)


def halves(x, n):
    if n == 0:
        return x * 0.5
    return np.sin(halves(x, n - 1))


@rg.compile
def by_recursion(x):
    y = halves(x, 3)
    for i in range(3):
        y[i] = y[i] ** 2
    return np.sum(y)


def test_arrays_of_which_only_the_call_knows_the_size_can_be_explained():
    assert "grows with" in str(by_recursion.explain(np.ones(3)))


def test_arguments_are_needed_before_the_first_call():
    with pytest.raises(rg.InputError, match="types of the arguments are not known"):
        rg.compile(lambda x: x * x).explain()


def test_arrays_and_numbers_keep_the_users_names():
    @rg.compile
    def simulate(start, dt):
        u = start.copy()
        force = np.sin(u[:-2] - u[2:])
        push = dt * 2.0 + 1.0
        inner = u[1:-1]
        inner += push * force
        return np.sum(u * push)

    for kind in ("primal", "pullback", "jvp", "hvp"):
        text = simulate.source(kind, np.ones(5), 0.1)
        assert "u = start.copy()" in text
        assert "inner = u[1:-1]" in text
        assert "push = dt * 2.0 + 1.0" in text


def test_arrays_of_iterations_that_run_side_by_side_count_for_each_of_them():
    args = np.ones((90, 6)), np.ones((4, 6)), np.ones((4, 6))
    side_by_side = rg.compile(mixture).explain(*args).nbytes
    one_by_one = rg.compile(mixture, vectormath=False).explain(*args).nbytes
    assert 4 * one_by_one < side_by_side < 12 * one_by_one
