"""Long loops in segments: the same derivatives, from memory that grows with the root of the number of steps."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from compiler.harness import check, specialised
from truth import close

import retrograde as rg
from retrograde.compiler.bridge import Bridge
from retrograde.compiler.options import Options

X = np.array([0.5, 0.3])


def march(x, dt, steps):
    u = x.copy()
    total = 0.0
    for _ in range(steps):
        f = np.sin(u[0]) * total + u[1]
        u[0] += dt * u[1]
        u[1] -= dt * np.sin(u[0]) * 1.5
        total += u[0] * u[1] * f * dt
    return total + u[0]


def leapfrog(x, steps):
    before, now = x, x * 1.01
    for _ in range(2, steps):
        before, now = now, 2.0 * now - before - 0.01 * np.sin(now)
    return now * x


def trajectory(x, steps):
    u = np.zeros(steps + 1)
    u[0] = x
    for t in range(steps):
        u[t + 1] = np.sin(u[t]) * 1.1 + 0.1
    return np.sum(u * u)


def epochs(x, steps):
    s = 0.1
    for i in range(3):
        for _ in range(i, steps):
            s = np.sin(s * x[0]) + x[1]
    return s


@pytest.mark.parametrize("length", [True, 1, 2, 5, 100])
@pytest.mark.parametrize("steps", [0, 1, 2, 7])
def test_derivatives_do_not_depend_on_segments(steps, length):
    for f, args in ((march, (X, 0.1, steps)), (leapfrog, (X, steps)), (trajectory, (0.3, steps)), (epochs, (X, steps))):
        check(f, args, options=Options(checkpoint=length), second=steps == 7)


def peak(f, args, checkpoint):
    """The largest memory that the text of the pullback takes as plain Python."""
    bridge = Bridge(specialised(f, args, options=Options(checkpoint=checkpoint)))
    bridge.t(args, [np.array(1.0)], ())
    tracemalloc.start()
    try:
        bridge.t(args, [np.array(1.0)], ())
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_the_memory_of_long_loops_grows_with_the_root_of_their_lengths():
    assert peak(march, (X, 0.01, 900), False) > 900 * 40
    assert peak(march, (X, 0.01, 900), True) < 20_000


def test_a_million_steps_take_little_memory():
    pytest.importorskip("numba")
    compiled = rg.compile(march, checkpoint=True)
    found = compiled.explain(X, 1e-5, 1_000_000)
    assert found.nbytes < 200_000
    assert [text for _, text in found.loops] == ["for _ in range(steps):"]
    assert rg.compile(march).explain(X, 1e-5, 1_000_000).nbytes > 30_000_000
    want = rg.gradient(rg.compile(march), X, 1e-5, 100_000)
    for got, bar in zip(rg.gradient(compiled, X, 1e-5, 100_000)[:2], want[:2], strict=True):
        close(got, bar)


def test_a_loop_that_fills_an_array_of_its_own_length_is_taped():
    pytest.importorskip("numba")
    found = rg.compile(trajectory, checkpoint=True).explain(0.3, 1000)
    assert found.loops == ()
    assert found.nbytes < 100_000


def test_lengths_of_segments_that_are_none_are_refused():
    for wrong in (-1, 2.5, "yes"):
        with pytest.raises(rg.InputError, match="is no length of a segment"):
            rg.compile(march, checkpoint=wrong)
