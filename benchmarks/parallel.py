"""What two threads gain: derivatives of programs with independent iterations, with `parallel=True` and without.

The outer loops of the programs run over `numba.prange`, which is `range` where nothing is parallel. Target: at least
1.6 times as fast, on two cores that have nothing else to do.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from typing import Any

from .compiled import derivative
from .harness import OURS, Case, Report, faster, measure

ONE_THREAD = "one thread"
RACES = (
    ("kmeans", "k100 n10000 d8"),
    ("gmm", "d10 k25 n10000"),
    ("ba", "204,472"),
    ("saddle", "10,000 starts"),
)
QUICK = (("kmeans", "tiny"), ("saddle", "tiny"))


def case(name: str, size: str, parallel: bool) -> Case:
    def make() -> Callable[[], Any]:
        import retrograde as rg

        module = importlib.import_module(f"benchmarks.workloads.{name}")
        args = module.inputs(size)
        compiled = rg.compile(module.program, cache=False, parallel=parallel)
        return derivative(name, module, args, compiled)

    return Case(f"{name} {size}", OURS if parallel else ONE_THREAD, make)


def run(quick: bool) -> Report:
    import numba

    races = QUICK if quick else RACES
    cases = [case(*race, parallel) for race in races for parallel in (False, True)]
    before = numba.get_num_threads()
    numba.set_num_threads(min(2, numba.config.NUMBA_NUM_THREADS))
    rows = [row for first in range(0, len(cases), 2) for row in measure(cases[first : first + 2], quick)]
    numba.set_num_threads(before)
    goals = [faster(f"{name} {size}", ONE_THREAD, by=1.6) for name, size in races]
    notes = [f"{os.cpu_count()} cores"]
    return Report("Two threads", rows, goals, notes)
