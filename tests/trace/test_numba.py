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


def test_all_that_numba_compiles_is_compiled_inside_of_a_transform_as_outside():
    """Each of numba's decorators, where its function is first compiled: at its definition, or at its first call."""
    code = """
        import math
        import numba
        import numpy as np
        from retrograde import gradient

        d = np.arange(4.0)

        @numba.vectorize
        def lazy(a):
            return math.sin(a) + np.cos(a)

        @numba.stencil
        def neighbours(a):
            return a[0] + math.sqrt(a[1])

        def loss(x):
            @numba.vectorize(["f8(f8)"])
            def eager(a):
                return math.sin(a) + np.cos(a)

            @numba.guvectorize(["(f8[:],f8[:])"], "(n)->()")
            def total(a, out):
                out[0] = np.sum(a) + np.linalg.norm(np.ones(1))

            @numba.cfunc("f8(f8)")
            def callback(a):
                return math.exp(a) + np.sum(np.array([a, 1.0]))

            @numba.njit("f8(f8)")
            def jitted(a):
                return np.sum(np.array([a, 1.0]))

            parts = lazy(0.0), eager(0.0), total(d), callback.ctypes(0.0), jitted(1.0), np.sum(neighbours(d))
            print(*[round(float(p), 6) for p in parts])
            return x * sum(parts)

        print(round(gradient(loss, 1.0)[0], 6))
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False)
    neighbours = 0 + 1 + 2 + 1 + 2**0.5 + 3**0.5
    assert done.stdout.split() == [*"1.0 1.0 7.0 2.0 2.0".split(), f"{neighbours:.6f}", f"{13 + neighbours:.6f}"], (
        done.stderr
    )


def test_the_first_function_that_is_compiled_at_all_may_be_compiled_inside_of_a_transform(tmp_path):
    """numba loads the half of itself then, and looks NumPy's functions up as it does."""
    file = tmp_path / "first.py"
    code = """
        import numpy as np
        from retrograde import compile, hessian, jvp

        @compile(cache=False)
        def either(x, w):
            if x[0] > 0:
                return x
            return w

        x, w = np.array([1.0, 2.0]), np.array([3.0, 4.0])
        print(jvp(lambda x: either(x, w), (x,), (w,))[1], hessian(lambda x: np.sum(either(x, w) ** 2), x).tolist())
    """
    file.write_text(textwrap.dedent(code))
    done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "[3. 4.] [[2.0, 0.0], [0.0, 2.0]]", done.stderr
