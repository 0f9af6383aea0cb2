"""A user's own numba functions beside transforms."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

pytest.importorskip("numba")


def test_numba_compiles_inside_of_a_transform_as_outside():
    """In a Python of its own, since numba keeps what it has once found under the names of NumPy's functions."""
    code = """
        import numpy as np
        from numba import njit
        from retrograde import grad

        @njit
        def inside(d):
            return np.sort(np.zeros(3) + d)

        @njit
        def later(d):
            return np.zeros(3) + np.sum(np.empty_like(d) * 0 + d)

        d = np.arange(3.0)
        print(grad(lambda x: np.sum(x * inside(d)))(np.ones(3)), later(d))
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "[0. 1. 2.] [3. 3. 3.]", done.stderr
