"""Programs as LLVM's text: the same bits as from the Python text, the same errors, no memory lost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from compiler import corpus_recursion  # noqa: F401  register its programs
from compiler.corpus import CASES
from compiler.harness import specialised
from truth import close

import retrograde as rg
from retrograde.compiler.bridge import Bridge
from retrograde.compiler.options import Options
from retrograde.compiler.specialisation import Which

pytest.importorskip("numba")

WRITTEN = (
    "elementary_functions branches_in_a_loop newton_in_a_while_loop triangular_loops "
    "return_from_nested_loops steps_of_all_kinds views_write_through reductions_with_axes "
    "slices_with_steps swapped_buffers reshaped_and_written single_precision "
    "integers_and_truth_values rebinding_in_a_loop allocated_with_another_size "
    "overlapping_views_added_to"
).split()


def pulled(function: Any, args: tuple[Any, ...], machine: bool) -> list[Any]:
    """The value and the pullback, of machine code made in one of two ways."""
    of = specialised(function, args, plain=False, options=Options(machine=machine))
    bridge = Bridge(of)
    y = bridge.j([np.array(a) if isinstance(a, np.ndarray) else a for a in args], ())
    rng = np.random.default_rng(5)
    seeds = [rng.uniform(0.5, 1.5, np.shape(a)) for a in y]
    return [*y, *(bar for bar in bridge.t(list(args), seeds, ()) if bar is not None)]


@pytest.mark.parametrize("name", WRITTEN)
def test_a_pullback_has_a_text_for_llvm(name):
    function, args = CASES[name][:2]
    assert specialised(function, args).program(Which("T", 0)).kernel is not None


@pytest.mark.parametrize("name", ["pythons_min_and_max"])
def test_both_texts_give_the_same_bits(name):
    function, args = CASES[name][:2]
    for a, b in zip(pulled(function, args, True), pulled(function, args, False), strict=True):
        np.testing.assert_array_equal(a, b)


def powers_and_quotients(x, n, flags, small):
    total = 0.0
    for i in range(x.shape[0]):
        if flags[i]:
            total += x[i] ** 3 - x[i] ** -2 + (i // 2) * x[i] + (i % 3) * x[i] ** n
        else:
            total += max(x[i], 0.5) * min(x[i], n) + np.hypot(x[i], 1.0) * small[i]
        total -= x[-1 - i] / (i - n)
    return total


def test_operations_on_all_kinds_of_numbers_are_numbas():
    x = np.array([0.3, 1.7, 0.5, 2.0, 0.9])
    args = (x, 7, np.array([True, False, False, True, True]), np.array([1, 2, 3, 4, 5], np.float32))
    for a, b in zip(pulled(powers_and_quotients, args, True), pulled(powers_and_quotients, args, False), strict=True):
        np.testing.assert_array_equal(a, b)


def test_arrays_that_the_text_is_not_for_are_compiled_from_python():
    compiled = rg.compile(lambda x: np.sum(x[1:] * x[:-1]), cache=False)
    x = np.arange(12.0)
    for given in (x, x[::2], x[::-1], np.asarray(x, order="F")):
        got = rg.grad(compiled)(given)
        want = np.zeros(given.shape)
        want[1:] += given[:-1]
        want[:-1] += given[1:]
        np.testing.assert_array_equal(got, want)


def test_a_text_that_is_not_taken_leaves_the_python_text(monkeypatch):
    from retrograde.compiler.machine import kernel

    def refuse(*_: Any) -> None:
        raise RuntimeError("another version of LLVM")

    monkeypatch.setattr(kernel, "_add_text", refuse)
    compiled = rg.compile(lambda x: np.sum(np.sin(x)), cache=False)
    x = np.linspace(0, 1, 5)
    close(rg.grad(compiled)(x), np.cos(x))


def test_a_numba_with_another_way_to_allocate_gets_the_python_text(monkeypatch):
    from retrograde.compiler.machine import kernel

    monkeypatch.setattr(kernel.llvm, "address_of_symbol", lambda _name: None)
    compiled = rg.compile(lambda x: np.sum(x * x), cache=False)
    x = np.linspace(0, 1, 5)
    close(rg.grad(compiled)(x), 2 * x)


def sum_until_negative(x):
    parts = np.empty(x.shape[0])
    total = 0.0
    for i in range(x.shape[0]):
        inner = np.empty(i + 1)
        for k in range(i + 1):
            inner[k] = x[k] * x[i]
        if x[i] < 0:
            raise ValueError("a negative number")
        parts[i] = np.sum(inner)
        total += parts[i] * x[i]
    return total


def test_errors_of_a_program_are_raised_from_its_machine_code():
    compiled = rg.compile(sum_until_negative, cache=False)
    with pytest.raises(ValueError, match="a negative number"):
        rg.grad(compiled)(np.array([1.0, 2.0, -1.0]))
    x = np.array([1.0, 2.0, 3.0])
    h = 1e-6
    slopes = [(sum_until_negative(x + h * e) - sum_until_negative(x - h * e)) / (2 * h) for e in np.eye(3)]
    close(rg.grad(compiled)(x), np.array(slopes), rtol=1e-7, atol=1e-7)


def with_room(x, n):
    y = np.zeros((n, n))
    for i in range(x.shape[0]):
        y[0, i] = x[i] * x[i]
    return np.sum(y) * x[1]


def test_lengths_that_cannot_be_are_refused():
    compiled = rg.compile(with_room, cache=False)
    x = np.array([2.0, 3.0])
    np.testing.assert_array_equal(rg.grad(compiled)(x, 2), [12.0, 31.0])
    with pytest.raises(ValueError, match="negative dimensions"):
        rg.grad(compiled)(x, -1)
    with pytest.raises(MemoryError):
        rg.grad(compiled)(x, 2**40)


def test_all_memory_is_given_back():
    from numba.core.runtime import _nrt_python, rtsys

    _nrt_python.memsys_enable_stats()

    def used() -> int:
        stats = rtsys.get_allocation_stats()
        return int(stats.alloc - stats.free)

    compiled = rg.compile(sum_until_negative, cache=False)
    good, bad = np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, -1.0])
    rg.grad(compiled)(good)
    rg.jvp(compiled, (good,), (good,))
    before = used()
    for _ in range(3):
        rg.grad(compiled)(good)
        rg.jvp(compiled, (good,), (good,))
        with pytest.raises(ValueError, match="a negative number"):
            rg.grad(compiled)(bad)
    assert used() <= before + 3 * 2  # numba keeps the two arguments of a call that raises


def test_results_that_are_arrays_own_their_memory():
    @rg.compile(cache=False)
    def both(x):
        y = np.empty((2, x.shape[0]))
        z = np.zeros(x.shape[0])
        for i in range(x.shape[0]):
            y[0, i] = x[i] ** 2
            y[1, i] = 3 * x[i]
            z[i] = np.exp(x[i])
        return y, z

    x = np.linspace(0, 1, 4)
    (y, z), (y_dot, z_dot) = rg.jvp(both, (x,), (np.ones(4),))
    close(y, [x**2, 3 * x])
    close(z, np.exp(x))
    close(y_dot, [2 * x, 3 + 0 * x])
    close(z_dot, np.exp(x))
    y_dot += 1  # its own memory, and no view of another's
    close(z, np.exp(x))
