"""The order of statements where a loop and its adjoint are one."""

from __future__ import annotations

import numpy as np
import pytest
from compiler.harness import check, specialised

from retrograde.compiler.bridge import Bridge
from retrograde.compiler.options import Options

X = np.array([0.4, 1.1, 0.7])


def guarded(x, places):
    s = 0.0
    for i in range(len(places)):
        if places[i] >= len(x):
            raise ValueError("beyond the end")
        for _ in range(2):
            s += np.sin(x[places[i]])
    return s + 2.0 * x[places[0]] * x[0]


def test_what_a_loop_refuses_is_not_read_before_it():
    args = X, np.array([1, 2])
    check(guarded, args)
    for sweep in (True, False):
        of = Bridge(specialised(guarded, args, options=Options(one_sweep=sweep)))
        with pytest.raises(ValueError, match="beyond the end"):
            of.t((X, np.array([5, 1])), [np.array(1.0)], ())


def lines_with(words, function, options):
    text = specialised(function, (X,), options=options).text("T", 0)
    return sum(words in line for line in text.splitlines() if "#" not in line)


def summed(x):
    s = 0.0
    for i in range(len(x)):
        for _ in range(2):
            s += np.exp(x[i])
    return s


def squared(x):
    return summed(x) ** 2


def weighted(x):
    return 3.0 * summed(x) + x[0]


def with_signs(x):
    s = 0.0
    sign = 1.0
    for i in range(len(x)):
        for _ in range(2):
            s += sign * np.exp(x[i])
        sign = -sign
    return s


@pytest.mark.parametrize(
    ("function", "count"), [(summed, 1), (weighted, 1), (with_signs, 1), (squared, 2)], ids=lambda f: str(f)[10:20]
)
def test_a_loop_runs_once_where_what_follows_is_linear(function, count):
    check(function, (X,), options=Options(repeat=True))
    assert lines_with("np.exp(", function, Options(repeat=True)) == count


def last_of_all(x):
    out = np.zeros(2)
    for i in range(3):
        y = 1.0
        for _ in range(2):
            y *= np.sin(x[i])
        out[0] = y
    return out


def both_of_each(x):
    out = np.empty((3, 2))
    for i in range(3):
        for j in range(2):
            out[i, j] = np.exp(x[i] * j)
        out[i, 0] *= x[i]
    return out


def test_the_cotangent_of_a_place_goes_to_the_last_that_wrote_it():
    for options in (None, Options(repeat=True), Options(one_sweep=False)):
        check(last_of_all, (X,), options=options)
        check(both_of_each, (X,), options=options)
    assert lines_with("for i in range(3)", both_of_each, Options(repeat=True)) == 1
