"""Random programs, in every mode and under switches drawn at random, against complex steps and the eager engine.

300 of them run as plain Python, and the pullbacks of a few small ones through numba; with RETROGRADE_LONG set 10,000
larger ones, and 300 through numba in every mode.
"""

from __future__ import annotations

import itertools
import linecache
import math
import os
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from compiler.complex_step import NAMES, Tie, slope, stepped
from compiler.harness import specialised
from compiler.random_programs import Text, random_program
from compiler.test_corpus import SWITCHES
from truth import close

from retrograde import InputError, LanguageError, RetrogradeError, pullback
from retrograde.compiler import native
from retrograde.compiler.arguments import leaves_of, replaced
from retrograde.compiler.bridge import Bridge
from retrograde.compiler.options import Options
from retrograde.compiler.specialisation import Specialisation
from retrograde.compiler.variant import Which

special = pytest.importorskip("scipy.special")

LONG = "RETROGRADE_LONG" in os.environ
LARGEST = 1e4

GROUPS = 10
IN_A_GROUP = 1000 if LONG else 30
SIZE = 9 if LONG else 7
ONCE_REFUSED_OR_WRONG = (715, 401_367, 701_410, 855_172, 903_775, 951_722)  # of SIZE 9
THROUGH_NUMBA = 300 if LONG else 8
SIZE_THROUGH_NUMBA = 9 if LONG else 4


class Unfit(Exception):
    """A program that is no test: refused, too large, or with a tie."""


def function_of(text: Text, file: str, names: dict[str, Any]) -> Any:
    linecache.cache[file] = (len(text.source), None, text.source.splitlines(keepends=True), file)
    module = {"__name__": "random_program", **names}
    exec(compile(text.source, file, "exec"), module)
    return module["program"]


def arguments_of(text: Text, seed: int) -> list[Any]:
    rng = np.random.default_rng(seed)
    made: list[Any] = []
    for shape in text.shapes:
        signed = rng.uniform(0.2, 1.5, () if shape == "int" else shape) * rng.choice((1, 1, -1))
        made.append(2 if shape == "int" else float(signed) if shape == () else signed)
    return made


class Trial:
    """A random program with what is true of it at some point.

    Attributes:
        outputs: its inexact results and the final contents of the arrays that it writes.
        dots: their derivatives along `v`.
    """

    def __init__(self, seed: int, size: int) -> None:
        self.text = random_program(seed, size)
        self.file = f"<random program {seed}>"
        self.args = arguments_of(self.text, seed)
        self.function = function_of(self.text, self.file, {"np": np, "math": math, "special": special})
        rng = np.random.default_rng(seed + 1)
        self.v = [None if isinstance(a, int) else rng.uniform(-1, 1, np.shape(a))[()] for a in self.args]
        try:
            self.of = specialised(self.function, tuple(self.args))
        except (LanguageError, InputError) as error:
            raise Unfit(str(error)) from None
        self.outputs = self.run(self.function, self.args)
        if not all(np.all(np.abs(y) < LARGEST) for y in self.outputs):
            raise Unfit("large")
        moved = [a if v is None else stepped(a, v) for a, v in zip(self.args, self.v, strict=True)]
        continued = self.run(function_of(self.text, self.file, NAMES), moved)
        for y, z in zip(self.outputs, continued, strict=True):
            close(np.real(z), y, 1e-9, 1e-9)
        self.dots = [slope(z) for z in continued]
        if not all(np.all(np.abs(y) < LARGEST) for y in self.dots):
            raise Unfit("large")
        self.y_bar = [rng.uniform(0.5, 1.5, np.shape(y)) for y in self.outputs]

    def run(self, function: Any, args: list[Any]) -> list[Any]:
        own = [np.array(a) if isinstance(a, np.ndarray) else a for a in args]
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                result = function(*own)
            except Tie:
                raise Unfit("tie") from None
            except (ValueError, OverflowError):  # numbers that became too large
                raise Unfit("large") from None
        flat = list(leaves_of(result, self.of.structure))
        return [np.array(flat[j]) for j in self.of.outputs] + [own[i] for i in self.of.finals]

    def check(self, of: Specialisation) -> list[Any]:
        """All programs of a specialisation; returns the cotangents."""
        bridge = Bridge(of)
        for y, want in zip(bridge.j(self.args, ()), self.outputs, strict=True):
            close(np.asarray(y), want, 1e-12, 1e-12)
        for dot, want in zip(bridge.j(self.args, (self.v,)), self.dots, strict=True):
            close(np.asarray(dot), want, 1e-8, 1e-9)
        bars = bridge.t(self.args, self.y_bar, ())
        along = sum(float(np.sum(bars[i] * self.v[i])) for i in of.inputs)
        close(along, sum(float(np.sum(b * d)) for b, d in zip(self.y_bar, self.dots, strict=True)), 1e-8, 1e-8)
        bars_dot = bridge.t(self.args, self.y_bar, (self.v,))
        for i, want in self.slopes_of_bars(of):
            if np.all(np.abs(want) < LARGEST):
                close(np.asarray(bars_dot[i], float), want, 1e-7, 1e-7)
        return bars

    def slopes_of_bars(self, of: Specialisation) -> Iterator[tuple[int, Any]]:
        """The derivative of each cotangent along `v`: the text of the pullback run with a complex step."""
        which = Which("T", 0)
        # The variant that the pullback has just been computed with: sizes may differ that were taken to be equal.
        variant = of.variant(of.known({("x", i): a for i, a in enumerate(self.args)}))
        program = variant.program(which)
        pulled = native.load(program.text, program.name, "pullback", None)
        names = dict(pulled.__globals__)
        names.update(NAMES)
        exec(program.text, names)
        given: dict[Any, Any] = {}
        for i, (a, v) in enumerate(zip(self.args, self.v, strict=True)):
            given["x", i] = a if v is None else stepped(a, v)
            given["x_bar", i] = np.zeros(np.shape(a), complex)
        bars = iter(self.y_bar)
        given |= {("y_bar", j): np.array(next(bars))[()] for j in of.outputs}
        given |= {("x_bar", i): np.array(next(bars), complex) for i in of.finals}
        given |= {
            ("constant", i): a.astype(complex) if a.dtype.kind == "f" else a
            for i, a in enumerate(variant.interface.constants)
        }
        try:
            results = names[program.name](*(given[role] for role in program.roles))
        except Tie:
            raise Unfit("tie") from None
        given.update(zip(program.results, results, strict=True))
        for i in of.inputs:
            yield i, slope(given["x_bar", i])

    def check_against_eager(self, bars: list[Any]) -> bool:
        """The cotangents against those of the eager engine; whether it takes the program."""
        if self.of.finals:
            return False
        seeds = iter([b[()] for b in self.y_bar])
        try:
            y, back = pullback(self.function, *self.args)
            wanted = back(replaced(y, self.of.structure, seeds))
        except (RetrogradeError, TypeError, ValueError):
            return False
        for i in self.of.inputs:
            want = np.zeros(np.shape(self.args[i])) if wanted[i] is None else wanted[i]
            close(np.asarray(bars[i], float), want, 1e-9, 1e-9)
        return True


def trials(start: int, count: int, size: int) -> Iterator[tuple[int, Trial]]:
    """Programs that are fit, beginning at a seed."""
    for seed in itertools.count(start):
        try:
            trial = Trial(seed, size)
        except Unfit:
            continue
        yield seed, trial
        count -= 1
        if count <= 0:
            return


def switched(seed: int) -> Options:
    names = list(SWITCHES)
    return SWITCHES[names[seed % len(names)]]


def try_one(seed: int, trial: Trial, eager: bool = True) -> bool:
    """Everything about one program; whether the eager engine took it."""
    try:
        bars = trial.check(trial.of)
        other = specialised(trial.function, tuple(trial.args), options=switched(seed))
        others = trial.check(other) if LONG else Bridge(other).t(trial.args, trial.y_bar, ())
        for a, b in zip(others, bars, strict=True):
            if a is not None:
                close(np.asarray(a, float), np.asarray(b, float), 1e-9, 1e-10)
        return eager and trial.check_against_eager(bars)
    except Unfit:
        return False
    except Exception as error:
        error.add_note(f"seed {seed}, switches {switched(seed)}\n{trial.text.source}")
        raise


@pytest.mark.parametrize("group", range(GROUPS))
def test_random_programs_agree_with_complex_steps_and_the_eager_engine(group):
    taken = 0
    for seed, trial in trials(100_000 * group, IN_A_GROUP, SIZE):
        taken += try_one(seed, trial, eager=LONG or seed % 3 == 0)
    assert taken > 0


@pytest.mark.parametrize("seed", ONCE_REFUSED_OR_WRONG)
def test_random_programs_that_were_refused_or_wrong_once(seed):
    try_one(seed, Trial(seed, 9))


def test_random_programs_through_numba_agree_with_the_same_as_plain_python():
    pytest.importorskip("numba")
    for seed, trial in trials(7_000_000, THROUGH_NUMBA, SIZE_THROUGH_NUMBA):
        bars = Bridge(trial.of).t(trial.args, trial.y_bar, ())
        native_one = specialised(trial.function, tuple(trial.args), plain=False)
        try:
            others = trial.check(native_one) if LONG else Bridge(native_one).t(trial.args, trial.y_bar, ())
            for a, b in zip(others, bars, strict=True):
                if a is not None:
                    close(np.asarray(a, float), np.asarray(b, float), 1e-9, 1e-10)
        except Unfit:
            pass
        except Exception as error:
            error.add_note(f"seed {seed}\n{trial.text.source}")
            raise
