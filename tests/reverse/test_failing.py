"""Errors that rules raise in a sweep: their notes say of which function the derivative was, and in which line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import retrograde as rg
from retrograde import Params, back, gradient, hessian, param, primitive, pullback
from retrograde.rules.table import Elementwise
from retrograde.trace.elementwise_ops import elementwise_op


@pytest.fixture
def lines() -> Iterator[None]:
    rg.options.lines = True
    try:
        yield
    finally:
        rg.options.lines = False


def vectors(a: Any) -> Any:
    b = a @ a.T
    return np.linalg.eigh(b)[1][1, 0]  # this line


def line_of(function: Any) -> int:
    return int(function.__code__.co_firstlineno) + 2


def note_of(run: Any) -> str:
    with pytest.raises(np.linalg.LinAlgError, match="no derivative") as caught:
        run()
    (note,) = caught.value.__notes__
    return str(note)


W = param(np.eye(2))
RUNS: dict[str, Any] = {
    "gradient": lambda: gradient(vectors, np.eye(2)),
    "hessian": lambda: hessian(vectors, np.eye(2)),
    "large": lambda: gradient(lambda a: vectors(a) + 0.0 * np.sum(a), np.eye(200)),
    "pullback": lambda: pullback(vectors, np.eye(2))[1](1.0),
    "params": lambda: gradient(lambda: vectors(W), Params([W])),
    "back": lambda: back(vectors(W)),
}


@pytest.mark.parametrize("name", RUNS)
def test_the_note_names_the_function_and_its_shape(name: str) -> None:
    n = 200 if name == "large" else 2
    assert f"raised by the derivative of np.linalg.eigh, of an argument of shape ({n}, {n})" in note_of(RUNS[name])


@pytest.mark.usefixtures("lines")
@pytest.mark.parametrize("name", [name for name in RUNS if name != "back"])
def test_with_lines_the_note_names_the_users_line(name: str) -> None:
    assert note_of(RUNS[name]).endswith(f"(test_failing.py:{line_of(vectors)})")


@pytest.mark.usefixtures("lines")
def test_lines_change_no_gradient() -> None:
    def f(x: Any) -> Any:
        y = np.sin(x) * x[::-1] + np.linalg.norm(x)
        y[0] = x[1] ** 2
        return np.sum(y)

    x = np.array([1.0, 2.0, 3.0])
    noted = gradient(f, x)[0]
    rg.options.lines = False
    np.testing.assert_array_equal(noted, gradient(f, x)[0])


def test_an_error_of_an_elementwise_rule_names_the_function() -> None:
    def failing(x: Any) -> Any:
        raise FloatingPointError("no slope")

    op = elementwise_op(Elementwise(np.sin, (failing,)), (True,), False)

    def f(x: Any) -> Any:
        return x.level.follow(np.float64(1.0), (x.level.number(), op, x.link, 1.0))

    with pytest.raises(FloatingPointError) as caught:
        gradient(f, 1.0)
    assert "raised by the derivative of sin, of an argument of shape ()" in caught.value.__notes__[0]


def test_what_a_users_own_rule_raises_is_left_as_it_is() -> None:
    @primitive
    def f(x: Any) -> Any:
        return 2.0 * x

    def pull(out: Any, x: Any) -> Any:
        def back_of(y_bar: Any) -> Any:
            raise KeyError("mine")

        return back_of

    f.defpullback(pull)
    with pytest.raises(KeyError) as caught:
        gradient(f, 1.0)
    assert not getattr(caught.value, "__notes__", [])
