"""Random programs with complex numbers, in every mode, against differences along a direction and the eager engine."""

from __future__ import annotations

import itertools
import os
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from compiler.harness import drawn, inner, specialised
from compiler.random_complex_programs import SIZE, random_complex_program
from compiler.test_corpus import SWITCHES
from compiler.test_random_programs import Text, Unfit, function_of
from truth import close

from retrograde import InputError, LanguageError, RetrogradeError, pullback
from retrograde.compiler.arguments import leaves_of, replaced
from retrograde.compiler.bridge import Bridge

LONG = "RETROGRADE_LONG" in os.environ
COUNT = 2000 if LONG else 40
STATEMENTS = 9 if LONG else 7
THROUGH_NUMBA = 50 if LONG else 2
STATEMENTS_THROUGH_NUMBA = 9 if LONG else 3
LARGEST = 1e3

# Weights of the central difference of order six.
WEIGHTS = ((1, 3 / 4), (2, -3 / 20), (3, 1 / 60))


class Trial:
    """A random program with its outputs and their derivative along `v`, by differences."""

    def __init__(self, seed: int, size: int) -> None:
        text = random_complex_program(seed, size)
        self.source = text
        self.function = function_of(Text(text, ()), f"<random complex program {seed}>", {"np": np})
        rng = np.random.default_rng(seed)
        self.x = [drawn(rng, -1, 1j)[()], float(rng.uniform(0.2, 1.5)), drawn(rng, -1, np.ones(SIZE) * 1j)]
        self.x = [complex(self.x[0]), *self.x[1:], rng.uniform(-1.5, 1.5, SIZE)]
        self.v = [drawn(rng, -1, a) for a in self.x]
        try:
            self.of = specialised(self.function, tuple(self.x))
        except (LanguageError, InputError) as error:
            raise Unfit(str(error)) from None
        self.y = self.outputs(0.0)
        self.y_bar = [drawn(rng, 0.5, y)[()] for y in self.y]
        self.dots = self.difference(self.outputs)

    def moved(self, t: float) -> list[Any]:
        moved = [a + t * v for a, v in zip(self.x, self.v, strict=True)]
        return [complex(moved[0]), float(moved[1]), *moved[2:]]

    def outputs(self, t: float) -> list[Any]:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                found = list(leaves_of(self.function(*self.moved(t)), self.of.structure))
            except (OverflowError, ZeroDivisionError):
                raise Unfit("large") from None
        if not all(np.all(np.abs(y) < LARGEST) for y in found):
            raise Unfit("large")
        return [np.asarray(y) for y in found]

    def difference(self, f: Any) -> list[Any]:
        """The derivative along `v`; where a jump or kink is near, two steps do not agree on it."""
        coarse, fine = (self.central(f, h) for h in (2e-3, 1e-3))
        for a, b in zip(coarse, fine, strict=True):
            if not np.allclose(a, b, 1e-7, 1e-8):
                raise Unfit("near a kink")
        return fine

    def central(self, f: Any, h: float) -> list[Any]:
        pairs = [(w, f(k * h), f(-k * h)) for k, w in WEIGHTS]
        return [sum(w * (ahead[j] - behind[j]) for w, ahead, behind in pairs) / h for j in range(len(pairs[0][1]))]

    def check(self, of: Any) -> list[Any]:
        """The programs of a specialisation; returns the cotangents."""
        bridge = Bridge(of)
        tol = {"rtol": 1e-6, "atol": 1e-7}
        for got, want in zip(bridge.j_plain(None, self.x), self.y, strict=True):
            close(np.asarray(got), want, 1e-12, 1e-12)
        for got, want in zip(bridge.j(self.x, (self.v,)), self.dots, strict=True):
            close(np.asarray(got), want, **tol)
        bars = bridge.t(self.x, self.y_bar, ())
        assert [np.iscomplexobj(bar) for bar in bars] == [True, False, True, False]
        close(inner(bars, self.v), inner(self.y_bar, self.dots), **tol)
        try:
            wanted = self.difference(lambda t: [np.asarray(bar) for bar in bridge.t(self.moved(t), self.y_bar, ())])
        except Unfit:
            return bars
        for got, want in zip(bridge.t(self.x, self.y_bar, (self.v,)), wanted, strict=True):
            close(np.asarray(got), want, 1e-5, 1e-5)
        return bars

    def check_against_eager(self, bars: list[Any]) -> bool:
        """The cotangents against those of the eager engine; whether it takes the program."""
        try:
            y, back = pullback(self.function, *self.x)
            wanted = back(replaced(y, self.of.structure, iter(self.y_bar)))
        except (RetrogradeError, TypeError, ValueError, AttributeError):
            return False
        for got, want, x in zip(bars, wanted, self.x, strict=True):
            close(np.asarray(got), np.zeros_like(x) if want is None else want, 1e-8, 1e-8)
        return True


def trials(start: int, count: int, size: int) -> Iterator[tuple[int, Trial]]:
    found = 0
    for seed in itertools.count(start):
        try:
            trial = Trial(seed, size)
        except Unfit:
            continue
        yield seed, trial
        found += 1
        if found == count:
            return


@pytest.fixture(autouse=True)
def _as_numba_does() -> Iterator[None]:
    """NumPy's numbers divide by zero as numba's do."""
    with np.errstate(all="ignore"):
        yield


def test_random_complex_programs_agree_with_differences_and_the_eager_engine():
    taken = 0
    names = list(SWITCHES)
    for seed, trial in trials(0, COUNT, STATEMENTS):
        try:
            bars = trial.check(trial.of)
            other = specialised(trial.function, tuple(trial.x), options=SWITCHES[names[seed % len(names)]])
            for a, b in zip(Bridge(other).t(trial.x, trial.y_bar, ()), bars, strict=True):
                close(np.asarray(a), np.asarray(b), 1e-9, 1e-10)
            taken += trial.check_against_eager(bars)
        except Exception as error:
            error.add_note(f"seed {seed}, without {names[seed % len(names)]}\n{trial.source}")
            raise
    assert taken > COUNT // 4


def test_random_complex_programs_through_numba_agree_with_the_same_as_plain_python():
    pytest.importorskip("numba")
    for seed, trial in trials(500_000, THROUGH_NUMBA, STATEMENTS_THROUGH_NUMBA):
        bars = Bridge(trial.of).t(trial.x, trial.y_bar, ())
        others = Bridge(specialised(trial.function, tuple(trial.x), plain=False)).t(trial.x, trial.y_bar, ())
        for a, b in zip(others, bars, strict=True):
            close(np.asarray(a), np.asarray(b), 1e-9, 1e-10)
        assert seed >= 500_000
