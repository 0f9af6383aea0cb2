"""Random programs of arrays in single precision, some or all, against the same in double precision.

Those are compared with complex steps (test_random_programs.py). They also tell how much rounding matters: what
they say a little beside the point is as far off as single precision may be.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
from compiler.harness import specialised
from compiler.test_random_programs import Trial, Unfit, switched, trials

from retrograde import InputError, LanguageError
from retrograde.compiler.bridge import Bridge
from retrograde.compiler.options import Options

pytest.importorskip("scipy.special")

LONG = "RETROGRADE_LONG" in os.environ
COUNT = 1000 if LONG else 12
THROUGH_NUMBA = 60 if LONG else 1
SIZE = 9 if LONG else 5
ROUNDING = 1e-6  # some ulps of a number in single precision


def in_single(args: list[Any], number: int) -> list[Any]:
    """The arrays in single precision: all, or every other one."""
    arrays = [i for i, a in enumerate(args) if isinstance(a, np.ndarray)]
    chosen = arrays if number % 3 else arrays[number % 2 :: 2]
    return [a.astype(np.float32) if i in chosen else a for i, a in enumerate(args)]


def everything(bridge: Bridge, args: list[Any], v: list[Any], y_bar: list[Any]) -> dict[str, list[Any]]:
    """What the programs of first and second order say at a point."""
    given = [np.array(a) if isinstance(a, np.ndarray) else a for a in args]
    return {
        "y": bridge.j(given, ()),
        "y_dot": bridge.j(args, (v,)),
        "x_bar": bridge.t(args, y_bar, ()),
        "x_bar_dot": bridge.t(args, y_bar, (v,)),
    }


def check(trial: Trial, number: int, plain: bool = True, options: Options | None = None) -> None:
    """Raises: Unfit: there is no such program in single precision."""
    args = in_single(trial.args, number)
    try:
        of = specialised(trial.function, tuple(args), plain=plain, options=options)
    except (LanguageError, InputError) as error:  # two dtypes under one name
        raise Unfit(str(error)) from None
    rng = np.random.default_rng(number)
    exact = [a.astype(float) if isinstance(a, np.ndarray) else a for a in args]
    beside = [a if isinstance(a, int) else a * (1 + ROUNDING * rng.uniform(-1, 1, np.shape(a))) for a in exact]
    seeds = [bar.astype(t) for bar, t in zip(trial.y_bar, types_of(of), strict=True)]
    v = [None if d is None else np.asarray(d, np.asarray(a).dtype)[()] for d, a in zip(trial.v, args, strict=True)]
    double = Bridge(trial.of)
    got = everything(Bridge(of), args, v, seeds)
    want = everything(double, exact, v, [np.asarray(s, float) for s in seeds])
    moved = everything(double, beside, v, [np.asarray(s, float) for s in seeds])
    for what in want:
        for i, (a, b, c) in enumerate(zip(got[what], want[what], moved[what], strict=True)):
            if b is None:
                continue
            size = np.max(np.abs(b), initial=1.0)
            off = np.max(np.abs(np.subtract(b, c)), initial=0.0)
            if size < 1e6:
                allowed = 20 * ROUNDING * size + 50 * off
                np.testing.assert_allclose(np.asarray(a, float), b, rtol=0, atol=allowed, err_msg=f"{what}[{i}]")
    for a, bar in zip(args, got["x_bar"], strict=True):
        if isinstance(a, np.ndarray):
            assert bar.dtype == a.dtype


def types_of(of: Any) -> list[str]:
    """The dtypes of the results with derivatives and of the arrays that are written."""
    return [of.result_types[j].dtype for j in of.outputs] + [of.types[i].dtype for i in of.finals]


def check_some(start: int, count: int, size: int, plain: bool) -> int:
    taken = 0
    for seed, trial in trials(start, count, size):
        try:
            check(trial, seed, plain, None if seed % 2 else switched(seed))
            taken += 1
        except Unfit:
            pass
        except Exception as error:
            error.add_note(f"seed {seed}, switches {switched(seed)}\n{trial.text.source}")
            raise
    return taken


def test_random_programs_in_single_precision_agree_with_those_in_double():
    assert check_some(3_000_000, COUNT, SIZE, plain=True) > COUNT // 2


def test_random_programs_in_single_precision_through_numba_agree_with_those_in_double():
    pytest.importorskip("numba")
    check_some(3_100_000, THROUGH_NUMBA, 9 if LONG else 3, plain=False)
