"""How often functions that call themselves run: once for the value and the derivative, where that can be."""

from __future__ import annotations

import functools
import re
import threading
from typing import Any

import numpy as np
import pytest
from compiler import corpus_recursion
from compiler.harness import specialised
from truth import close

import retrograde as rg
from retrograde.compiler.options import Options


def calls(function: Any, args: tuple[Any, ...], name: str, order: int = 0, **options: Any) -> list[str]:
    """The procedures that the pullback of a procedure calls, as its text has them."""
    text = specialised(function, args, options=Options(**options)).text("T", order)
    (body,) = re.findall(rf"^def {name}\(.*\n((?: .*\n|\n)+)", text, re.MULTILINE)
    return re.findall(r"= (\w+_call\w*)\(", body)


LINEAR = [
    (corpus_recursion.determinant_by_minors, (np.ones((3, 3)),), "minor", 1),
    (corpus_recursion.integral_by_halving, (np.ones(2), 0.2), "integral", 2),
    (corpus_recursion.polynomial_by_recursion, (np.ones(3), 0.7), "horner", 1),
    (corpus_recursion.marks_left_by_recursion_that_is_summed, (np.ones(3),), "summed_up", 1),
]


@pytest.mark.parametrize(("function", "args", "name", "count"), LINEAR)
def test_recursion_that_is_used_linearly_runs_once(function, args, name, count):
    pullback = f"{name}_call_pullback"
    assert calls(function, args, pullback) == [pullback] * count
    assert calls(function, args, f"{pullback}_pushforward", order=1) == [f"{pullback}_pushforward"] * count
    assert f"{name}_call" in calls(function, args, pullback, one_sweep=False)


def test_of_two_calls_whose_values_are_multiplied_one_runs_once():
    found = calls(corpus_recursion.recursion_whose_parts_are_multiplied, (0.5,), "grown_call_pullback")
    assert sorted(found) == ["grown_call"] * 2 + ["grown_call_pullback"] * 3


def test_what_a_pullback_would_leave_otherwise_in_its_arguments_is_called_apart():
    # The loop is run again behind a write, so that the marks are not those of the function.
    found = calls(corpus_recursion.marks_left_by_recursion_that_is_squared, (np.ones(3),), "wandering_call_pullback")
    assert sorted(set(found)) == ["wandering_call", "wandering_call_pullback"]


def weighed(x, n):
    if n == 0:
        return np.sin(x)
    return x * 0.999 + 0.5 * weighed(x * 0.9999, n - 1) * x


def along_even_steps(x, n):
    return x if n == 0 else 0.5 * along_odd_steps(x * x, n - 1)


def along_odd_steps(x, n):
    return x * along_even_steps(0.9 * x, n - 1)


def in_a_thread(function: Any, stack: int) -> Any:
    """What a function returns, or the error that it raises, in a thread of its own."""
    found = []

    def run() -> None:
        try:
            found.append(function())
        except Exception as error:
            found.append(error)

    before = threading.stack_size(stack)
    thread = threading.Thread(target=run)
    thread.start()
    threading.stack_size(before)
    thread.join()
    return found[0]


@pytest.mark.parametrize("function", [weighed, along_even_steps])
def test_derivatives_of_recursion_that_is_too_deep_raise_and_those_of_the_next_call_are_right(function):
    pytest.importorskip("numba")
    compiled = rg.compile(function, cache=False)
    wanted = rg.grad(function)(0.7, 100)
    for stack in (1 << 18, 1 << 22):
        for _ in range(2):
            for derivative in (rg.grad(compiled), lambda x, n: rg.hessian(lambda x: compiled(x, n), x)):
                error = in_a_thread(functools.partial(derivative, 0.7, 10_000_000), stack)
                assert isinstance(error, RecursionError), error
                assert "stack" in str(error)
        close(in_a_thread(lambda: rg.grad(compiled)(0.7, 100), stack), wanted)
    with pytest.raises(RecursionError):
        rg.grad(compiled)(0.7, 10_000_000)
    close(rg.grad(compiled)(0.7, 100), wanted)
