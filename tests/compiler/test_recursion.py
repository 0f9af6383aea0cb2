"""How often functions that call themselves run: once for the value and the derivative, where that can be."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from compiler import corpus_recursion
from compiler.harness import specialised

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
