"""Where one number is all that is differentiated, its cotangent is made of a derivative along it, without a tape."""

from __future__ import annotations

import numpy as np
import pytest
from compiler import corpus_recursion, corpus_special, corpus_speed  # noqa: F401  register their programs
from compiler.corpus import CASES
from compiler.harness import check, specialised

from retrograde.compiler.options import Options

OF_ONE_NUMBER = [
    name
    for name, case in CASES.items()
    if [type(a) for a in case.args if not isinstance(a, int)] == [float]
    and "corpus_speed" not in case.function.__module__
]


def steps(x):
    y, v = x, 0.0
    while y > 0.1:
        v += 0.1 * y * x
        y -= 0.1 * v
    return y * y, v


def several_returns(x, n):
    if n > 3:
        return 1.0
    for i in range(n):
        if x * i > 1.0:
            return x * i
    return np.sin(x)


def counted(x):
    return int(x * 3), x**2


def scaled(x, factors):
    factors[0] = x
    return factors[0] * factors[1]


@pytest.mark.parametrize("name", OF_ONE_NUMBER)
def test_programs_of_one_number_agree_with_differences(name):
    check(*CASES[name], one_number=True)


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (steps, (1.3,)),
        (several_returns, (0.7, 3)),
        (several_returns, (0.3, 3)),
        (several_returns, (0.3, 4)),
        (counted, (1.5,)),
        (scaled, (1.5, np.array([2.0, 3.0]))),
    ],
)
def test_further_functions_of_one_number_agree_with_differences(function, args):
    check(function, args, one_number=True)
    check(function, args, one_number=True, options=Options(careful=True, passes=()))


def test_no_tape_is_kept_for_one_number():
    assert "tape" not in specialised(steps, (1.3,), one_number=True).text("T", 0)
    assert "tape" in specialised(steps, (1.3,)).text("T", 0)
