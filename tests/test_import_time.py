"""`import retrograde` is quick, and brings in no library that the user did not ask for."""

from __future__ import annotations

import os
import subprocess
import sys

# Seconds of processor time beyond NumPy's own import; the best of several runs, since others can only make one slower.
LIMIT = 0.2
RUNS = 5
UNWANTED = ("scipy", "matplotlib", "numba", "torch", "jax", "dask", "rich", "tqdm")


def in_fresh_python(code: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ | environment
    )
    return done.stdout.strip()


def test_import_is_quick(tmp_path):
    code = "import time, numpy; t = time.process_time(); import retrograde; print(time.process_time() - t)"
    # As an installed package is imported: from compiled modules, which the first run writes.
    compiled = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(tmp_path)}
    in_fresh_python(code, **compiled)
    assert min(float(in_fresh_python(code, **compiled)) for _ in range(RUNS)) < LIMIT


def test_import_brings_in_no_optional_library():
    code = f"import sys, retrograde; print(*sorted(set({UNWANTED!r}) & set(sys.modules)))"
    assert in_fresh_python(code) == ""
