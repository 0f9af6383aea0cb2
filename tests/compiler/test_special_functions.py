"""Our own native code of SciPy's special functions, against SciPy and mpmath."""

from __future__ import annotations

import math
import sys

import mpmath
import numpy as np
import pytest
from compiler.corpus_special import special_functions
from scipy import special

from retrograde import LanguageError, MissingExtraError, compile, grad
from retrograde.compiler import special_functions as ours

POINTS = np.concatenate(
    [np.linspace(-5.3, 5.2, 60), np.linspace(5, 160, 20), np.logspace(-8, -1, 10), [-np.inf, np.inf]]
)
EDGES = [0.0, -0.0, 1.0, -1.0, 2.0, -3.0, 172.0, np.inf, -np.inf, np.nan]


@pytest.mark.parametrize("name", [n for n in ours.UFUNCS if getattr(special, n).nin == 1])
def test_values_are_those_of_scipy(name):
    own = np.array([getattr(ours, name)(float(x)) for x in POINTS if math.isfinite(x)])
    with np.errstate(all="ignore"):
        want = getattr(special, name)(POINTS[np.isfinite(POINTS)])
    # Near a zero of the function the error is absolute.
    np.testing.assert_allclose(own, want, rtol=1e-14, atol=3e-15)


@pytest.mark.parametrize("name", ["xlogy", "xlog1py"])
def test_products_with_logarithms_are_those_of_scipy_at_the_edges(name):
    for x in EDGES:
        for y in EDGES:
            with np.errstate(all="ignore"):
                want = getattr(special, name)(x, y)
            np.testing.assert_allclose(getattr(ours, name)(x, y), want, rtol=1e-15)


@pytest.mark.parametrize("n", range(5))
def test_polygamma_is_exact(n):
    for x in (1e-3, 0.3, 1.0, 1.4616, 2.5, 11.9, 40.0):
        want = float(mpmath.polygamma(n, mpmath.mpf(x)))
        assert ours.polygamma(n, x) == pytest.approx(want, rel=4e-15, abs=2e-15)
    assert ours.polygamma(0, -2.5) == pytest.approx(float(mpmath.digamma(-2.5)), rel=1e-14)
    for x in (0.0, -0.0, -1.0):
        np.testing.assert_equal(ours.polygamma(n, x), float(special.polygamma(n, x)) if n else special.digamma(x))


def test_values_of_compiled_functions_are_scipys():
    pytest.importorskip("numba")
    x = np.array([0.5, 1.5, 2.5])
    np.testing.assert_allclose(compile(special_functions)(x, 0.6), special_functions(x, 0.6), rtol=1e-13)


@pytest.mark.parametrize("transform", [lambda f: f, compile], ids=["eager", "compiled"])
def test_without_scipy_gamma_functions_have_values_and_their_derivatives_say_what_to_install(transform, monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.special", None)
    assert grad(transform(lambda x: x * math.lgamma(3.0)))(1.5) == pytest.approx(math.log(2.0), rel=1e-15)
    with pytest.raises(MissingExtraError, match=r"SciPy is not installed[\s\S]*'\.\[scipy\]'"):
        grad(transform(lambda x: math.lgamma(x)))(1.5)
    with pytest.raises(MissingExtraError, match=r"'\.\[scipy\]'"):
        grad(transform(lambda x: math.gamma(x)))(1.5)


def test_functions_of_scipy_without_native_code_are_refused():
    with pytest.raises(LanguageError, match=r"logsumexp with weights"):
        compile(lambda x: special.logsumexp(x, b=x)).source("pullback", np.ones(3))
    with pytest.raises(LanguageError, match="jv, which compile does not know"):
        compile(lambda x: special.jv(1, x)).source("pullback", 1.0)
