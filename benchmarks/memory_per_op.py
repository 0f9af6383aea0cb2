"""What one recorded operation holds until the reverse sweep, in bytes: 99,999 of those of `eager_overhead`.

Measured as the growth of the process, since PyTorch's graph is in nobody's sight but the system's; each library in a
process of its own. The values themselves are part of it: 24 bytes a Python float, some 190 an array of 10.

Targets: at most 200 bytes on Python floats, and on arrays of 10 no more than PyTorch.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from .eager_overhead import chain
from .harness import OURS, Report, Row, faster, limit

FLOAT, TEN = "Python float", "array of 10"
POINTS = {FLOAT: 0.7, TEN: np.linspace(0.5, 1.0, 10)}
STEPS = 33_333
Grow = Callable[[Any, Callable[[Any], Any]], Any]


def with_retrograde(x: Any, grow: Grow) -> None:
    import retrograde

    retrograde.gradient(lambda x: np.sum(grow(x, np.sin)), x)


def with_autograd(x: Any, grow: Grow) -> None:
    import autograd
    import autograd.numpy as anp

    autograd.grad(lambda x: anp.sum(grow(x, anp.sin)))(x)


def with_mygrad(x: Any, grow: Grow) -> None:
    import mygrad

    mygrad.sum(grow(mygrad.tensor(x), mygrad.sin)).backward()


def with_torch(x: Any, grow: Grow) -> None:
    import torch

    grow(torch.tensor(x, dtype=torch.float64, requires_grad=True), torch.sin).sum().backward()


MAKERS = {OURS: with_retrograde, "autograd": with_autograd, "MyGrad": with_mygrad, "PyTorch": with_torch}


def resident() -> int:
    """The bytes of memory that the process occupies (Linux)."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


def report_growth(race: str, name: str) -> None:
    """In the subprocess: print the bytes an operation, and leave."""

    def grow(x: Any, sin: Callable[[Any], Any]) -> Any:
        before = resident()
        # The variable keeps the graph alive in those libraries that hold it by its last value.
        y = chain(x, sin, STEPS)
        print((resident() - before) / (3 * STEPS), flush=True)
        # Freeing a graph this deep, or sweeping it, is more than some libraries survive.
        os._exit(0 if y is not None else 1)

    # Once in small, so that what is loaded or allocated once is not counted.
    MAKERS[name](POINTS[race], lambda x, sin: chain(x, sin, 10))
    MAKERS[name](POINTS[race], grow)


def measured(race: str, name: str) -> Row:
    row = Row(race, name, "bytes/op")
    if not Path("/proc/self/statm").exists():
        row.note = "skipped: there is no /proc here to ask"
        return row
    command = [sys.executable, "-m", "benchmarks.memory_per_op", race, name]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[1], check=False)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        row.note = f"skipped: {last}" if last.startswith("ModuleNotFoundError") else f"failed: {last}"
    else:
        row.best = row.median = float(done.stdout)
        row.rounds = 1
    return row


def run(quick: bool) -> Report:
    rows = [measured(race, name) for race in ((FLOAT,) if quick else POINTS) for name in MAKERS]
    targets = [limit(FLOAT, 200.0)] + ([] if quick else [faster(TEN, "PyTorch", 1)])
    return Report("What a recorded operation holds", rows, targets)


if __name__ == "__main__":
    report_growth(*sys.argv[1:])
