"""`np.convolve` and `np.correlate`: products of polynomials, forwards and backwards."""

from __future__ import annotations

from typing import Any

from retrograde.originals import np
from retrograde.rules.contractions import contracted
from retrograde.rules.numpy_indexing import scatter
from retrograde.rules.points import call, complex_, real
from retrograde.rules.products import conj
from retrograde.rules.table import Like, multilinear


def _line(x: Any) -> Any:
    """One dimension, as NumPy makes of a number."""
    return np.reshape(x, (np.size(x),))


def _in_full(y_bar: Any, n: int, m: int, mode: str, swapped: bool = False) -> Any:
    """The cotangent of a convolution of n and m elements, with zeros where `mode` left the full result out.

    `swapped`: NumPy correlates a shorter `a` with a longer `v` the other way round and turns the result.
    """
    full, length, short = n + m - 1, np.size(y_bar), min(n, m)
    start = {"full": 0, "same": (short - 1) // 2, "valid": short - 1}[mode]
    if swapped:
        start = full - length - start
    return y_bar if length == full else scatter(y_bar, slice(start, start + length), (full,))


def _correlate_valid(y_bar: Any, x: Any) -> Any:
    return np.correlate(y_bar, x, "valid")


def convolve_adjoint_a(y_bar: Any, a: Like, v: Any, mode: str = "full") -> Any:
    """y_n = Σ_k a_k v_{n−k}, so that a_bar_k = Σ_n y_bar_n conj(v_{n−k}): a correlation, which conjugates by itself."""
    v = _line(v)
    return np.reshape(contracted(_correlate_valid, _in_full(y_bar, a.size, v.size, mode), v), a.shape)


def convolve_adjoint_v(y_bar: Any, a: Any, v: Like, mode: str = "full") -> Any:
    return convolve_adjoint_a(y_bar, v, a, mode)


def correlate_adjoint_a(y_bar: Any, a: Like, v: Any, mode: str = "valid") -> Any:
    """The correlation with v is the convolution with w, which is v conjugated and turned."""
    w = conj(_line(v))[::-1]
    full = _in_full(y_bar, a.size, w.size, mode, swapped=a.size < w.size)
    return np.reshape(contracted(_correlate_valid, full, w), a.shape)


def correlate_adjoint_v(y_bar: Any, a: Any, v: Like, mode: str = "valid") -> Any:
    a = _line(a)
    w_bar = contracted(_correlate_valid, _in_full(y_bar, a.size, v.size, mode, swapped=a.size < v.size), a)
    return np.reshape(conj(w_bar[::-1]), v.shape)


_POINTS = [
    *(call(complex_(-1, 1, 5), complex_(-1, 1, 3), mode) for mode in ("full", "same", "valid")),
    *(call(complex_(-1, 1, 2), complex_(-1, 1, 4), mode) for mode in ("full", "same", "valid")),
    call(real(-1, 1, 4), real(-1, 1, 4), "same"),
    call(real(-1, 1, 3), complex_(-1, 1, 2)),
]
multilinear(np.convolve, convolve_adjoint_a, convolve_adjoint_v, at=[*_POINTS, call(real(-1, 1), real(-1, 1, 3))])
multilinear(np.correlate, correlate_adjoint_a, correlate_adjoint_v, at=_POINTS)
