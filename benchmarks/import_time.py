"""How long `import` takes beyond NumPy's own import, in fresh processes, in ms.

Target: at most 200 ms.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from statistics import median

from .harness import OURS, Report, Row, limit

RACE = "import"
MODULES = {OURS: "retrograde", "autograd": "autograd.numpy", "MyGrad": "mygrad", "PyTorch": "torch", "JAX": "jax"}
CODE = "import time, numpy; t = time.perf_counter(); import {}; print(time.perf_counter() - t)"


def milliseconds(module: str) -> float:
    command = [sys.executable, "-c", CODE.format(module)]
    # As an installed package is imported: from compiled modules, which the first run writes.
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": ""}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return 1e3 * float(done.stdout)


def run(quick: bool) -> Report:
    rows = [Row(RACE, name, "ms") for name in MODULES]
    there = []
    for row in rows:
        if importlib.util.find_spec(MODULES[row.name].partition(".")[0]) is None:
            row.note = f"skipped: {MODULES[row.name]} is not installed"
            continue
        # The first import writes compiled modules and reads the disk.
        try:
            milliseconds(MODULES[row.name])
        except subprocess.CalledProcessError as error:
            row.note = f"failed: {error.stderr.strip().splitlines()[-1]}"
        else:
            there.append((row, []))
    for _ in range(2 if quick else 5):
        for row, samples in there:
            samples.append(milliseconds(MODULES[row.name]))
    for row, samples in there:
        row.best, row.median, row.rounds = min(samples), median(samples), len(samples)
    return Report("Importing, beyond NumPy", rows, [limit(RACE, 200.0)])
