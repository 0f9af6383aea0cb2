"""What derivatives are compared with: differences of the plain function, and nothing of this library."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

# Weights of the central difference of order six.
_WEIGHTS = ((1, 3 / 4), (2, -3 / 20), (3, 1 / 60))


def differences(f: Callable[[Any], Any], x: Any, h: float = 1e-3) -> Any:
    """∂f/∂x by central differences of order six, of shape `f(x).shape + x.shape`; good to about 1e-10."""
    x = np.array(x, dtype=float)
    columns = []
    for i in range(x.size):
        column: Any = 0.0
        for k, weight in _WEIGHTS:
            ahead, behind = x.copy(), x.copy()
            ahead.flat[i] += k * h
            behind.flat[i] -= k * h
            column = column + weight * (np.asarray(f(ahead)) - np.asarray(f(behind)))
        columns.append(column / h)
    stacked = np.stack(columns)
    return np.moveaxis(stacked, 0, -1).reshape(stacked.shape[1:] + x.shape)


def close(got: Any, want: Any, rtol: float = 1e-9, atol: float = 1e-12) -> None:
    """Equal shapes, and values that agree; a traced value is never taken for a plain one."""
    assert isinstance(got, float | int | complex | np.ndarray | np.generic), f"{type(got).__name__}: {got!r}"
    want = np.asarray(want)
    assert np.shape(got) == want.shape, f"shape {np.shape(got)} where {want.shape} is wanted"
    np.testing.assert_allclose(got, want, rtol=rtol, atol=atol)
