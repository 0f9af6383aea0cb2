"""Races against the peers: `python -m benchmarks [names] [--quick]`.

Owns the measuring and the verdicts on the targets; must not be imported by the library or by its tests.
Every library runs on one thread, so that the overhead and not the number of cores is compared. That has to be said
before NumPy is imported, hence here.
"""

import os

# numba has more threads only where a function asks for them, as those of parallel.py do.
for _name in ("OMP", "OPENBLAS", "MKL", "VECLIB"):
    os.environ[f"{_name}_NUM_THREADS"] = "1"
# XLA sizes its pools by NPROC; the flag is for the matrix products.
os.environ["NPROC"] = "1"
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
os.environ["JAX_PLATFORMS"] = "cpu"
