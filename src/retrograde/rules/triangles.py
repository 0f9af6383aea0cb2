"""Hermitian matrices of which NumPy reads one triangle.

`eigh`, `cholesky` and whatever takes `hermitian=True` read one triangle and the real part of the diagonal. The
derivative is that of the function as it is computed: it is zero in the triangle that is not read, and twice the
symmetric gradient below (above) the diagonal in the one that is. For a matrix that the caller builds symmetric the
two conventions come to the same.
"""

from __future__ import annotations

from typing import Any

from retrograde.originals import np
from retrograde.rules.products import hermitian, times


def halved_lower(n: int) -> Any:
    """Weights 1 below the diagonal, ½ on it and 0 above: the Φ of Murray (2016)."""
    return np.tril(np.ones((n, n)), -1) + 0.5 * np.eye(n)


def from_triangle(a: Any, lower: bool = True) -> Any:
    """The Hermitian matrix that NumPy sees in the lower or the upper triangle of `a`."""
    half = np.tril(a, -1) if lower else np.triu(a, 1)
    return np.where(np.eye(np.shape(a)[-1], dtype=bool), np.real(a), half + hermitian(half))


def to_triangle(h_bar: Any, lower: bool = True) -> Any:
    """The adjoint of `from_triangle`."""
    weights = halved_lower(np.shape(h_bar)[-1])
    return times(weights if lower else weights.T, h_bar + hermitian(h_bar))
