"""`np.emath`: real where it can be, complex where it must be."""

from __future__ import annotations

import numpy as np
import pytest
from truth import close

from retrograde import gradient, jvp

CASES = {"sqrt": 4.0, "log": 2.0, "log2": 2.0, "log10": 2.0, "arcsin": 0.5, "arccos": 0.5, "arctanh": 0.5}


@pytest.mark.parametrize("name", CASES)
def test_values_are_numpys_in_both_worlds(name: str) -> None:
    f = getattr(np.emath, name)
    for x in (CASES[name], -CASES[name], 3.0, -3.0, np.array([0.3, -2.0]), np.float32(-2.0), 1.0 + 2.0j):
        with np.errstate(all="ignore"):
            got, want = jvp(f, (x,), (x,))[0], f(x)
        assert np.asarray(got).dtype == np.asarray(want).dtype
        np.testing.assert_allclose(got, want, rtol=1e-6)


def test_the_root_of_a_negative_number_has_an_imaginary_slope() -> None:
    close(gradient(lambda x: np.imag(np.emath.sqrt(x)), -4.0)[0], -0.25)
    close(gradient(lambda x: np.real(np.emath.sqrt(x)), -4.0)[0], 0.0)


def test_the_cuts_of_arcsin_and_arccos_have_the_slope_of_their_side() -> None:
    """arcsin(x) = π/2 + i arcosh(x) above the cut, for x > 1."""
    for x, side in ((2.0, 0.0), (2.0, -0.0), (-2.0, 0.0), (-2.0, -0.0)):
        z = complex(x, side)
        h = 1e-6
        want = (np.arcsin(complex(x + h, side)) - np.arcsin(complex(x - h, side))) / (2 * h)
        close(jvp(np.arcsin, (z,), (1 + 0j,))[1], want, rtol=1e-8, atol=1e-8)
        close(jvp(np.arccos, (z,), (1 + 0j,))[1], -want, rtol=1e-8, atol=1e-8)


def test_powers_and_logarithms_to_a_base() -> None:
    close(gradient(lambda x: np.abs(np.emath.power(x, 0.5)), -4.0)[0], -0.25)
    close(gradient(lambda x: np.emath.power(x, -2), 2.0)[0], -0.25)
    close(gradient(lambda n: np.emath.logn(n, 8.0), 2.0)[0], -np.log(8) / (2 * np.log(2) ** 2))
