"""While a compiler asks for the originals: its own thread gets them, and transforms of other threads go on."""

from __future__ import annotations

import contextlib
import math
import threading
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from truth import close

from retrograde import gradient
from retrograde.trace.interception import originals

X = np.array([0.5, 2.0, 1.0])
ORIGINALS = np.array, np.sum, np.linalg.norm, math.sin
"""As they are while no transform runs."""


def now() -> tuple[Any, ...]:
    return np.array, np.sum, np.linalg.norm, math.sin


def loss(x):
    """Needs the stand-ins of three modules."""
    return np.sum([x[0], x[1]]) * math.sin(x[2]) + np.linalg.norm([x[0], x[1]])


def slope() -> Any:
    n = np.sqrt(X[0] ** 2 + X[1] ** 2)
    s = np.sin(X[2])
    return np.array([s + X[0] / n, s + X[1] / n, (X[0] + X[1]) * np.cos(X[2])])


class Compiling:
    """A thread that is inside of `originals` until it is told to leave."""

    def __init__(self) -> None:
        self.begun, self.may_end = threading.Event(), threading.Event()
        self.found: list[tuple[Any, ...]] = []
        self.vars: list[Any] = []
        self.thread = threading.Thread(target=self._run)
        self.thread.start()
        assert self.begun.wait(10)

    def _run(self) -> None:
        with originals():
            self.found.append(now())
            self.begun.set()
            self.may_end.wait(10)
            self.found.append(now())
            self.vars.append(vars(np)["sum"])

    def end(self) -> None:
        self.may_end.set()
        self.thread.join(10)
        assert not self.thread.is_alive()


@contextlib.contextmanager
def compiling() -> Iterator[Compiling]:
    other = Compiling()
    try:
        yield other
    finally:
        other.end()


@pytest.mark.parametrize("settled", [False, True])
def test_a_transform_goes_on_while_another_thread_compiles(settled):
    def f(x):
        if settled:
            vars(np), vars(math)  # now the stand-ins are in the modules themselves
        with compiling() as other:
            y = loss(x)
        assert other.found == [ORIGINALS, ORIGINALS]
        assert other.vars == [ORIGINALS[1]]
        assert not set(map(id, now())) & set(map(id, ORIGINALS))
        return y + loss(x)

    close(gradient(f, X)[0], 2 * slope())
    assert now() == ORIGINALS
    assert isinstance(np, types.ModuleType)


def test_a_transform_may_begin_and_end_while_another_thread_compiles():
    with compiling() as other:
        for _ in range(2):
            close(gradient(loss, X)[0], slope())
            assert now() == ORIGINALS
    assert other.found == [ORIGINALS, ORIGINALS]

    def f(x):
        return loss(x) + (loss(x) if threads.append(Compiling()) is None else 0.0)

    threads: list[Compiling] = []
    close(gradient(f, X)[0], 2 * slope())  # ends before the compiler does
    assert now() == ORIGINALS
    close(gradient(loss, X)[0], slope())
    threads[0].end()
    assert threads[0].found == [ORIGINALS, ORIGINALS]
    close(gradient(loss, X)[0], slope())
    assert isinstance(np, types.ModuleType)


def test_threads_that_compile_may_end_in_any_order():
    def f(x):
        first, second = Compiling(), Compiling()
        y = loss(x)
        first.end()
        y = y + loss(x)
        second.end()
        assert first.found == second.found == [ORIGINALS, ORIGINALS]
        with originals():
            with originals():
                assert now() == ORIGINALS
            assert now() == ORIGINALS
        return y + loss(x)

    close(gradient(f, X)[0], 3 * slope())
    assert now() == ORIGINALS


def test_what_somebody_puts_into_a_module_meanwhile_stays_there():
    def replaced(put: Callable[[], None], read: Callable[[], Any]) -> Any:
        with compiling():
            put()
            return read()

    def f(x):
        assert replaced(lambda: setattr(np, "of_a_test", 3), lambda: np.of_a_test) == 3
        assert vars(np)["of_a_test"] == 3
        replaced(lambda: delattr(np, "of_a_test"), lambda: None)
        return loss(x)

    close(gradient(f, X)[0], slope())
    assert not hasattr(np, "of_a_test")
