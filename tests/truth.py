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


def agree(f: Callable[[Any], Any], x: Any, plain: Any = None, rtol: float = 1e-7, atol: float = 1e-9) -> None:
    """The value of a real scalar function is the plain one, and its gradient in both modes that of differences.

    Args:
        plain: the function to take differences of, where `f` compares its values with exact ones.
    """
    from retrograde import jvp, withgradient

    want = differences(plain or f, x)
    value, (x_bar,) = withgradient(f, x)
    close(value, f(x), 1e-13, 1e-13)
    close(np.zeros(np.shape(x)) if x_bar is None else x_bar, want, rtol, atol)
    v = np.cos(1.0 + np.arange(np.size(x))).reshape(np.shape(x))
    y, y_dot = jvp(f, (x,), (v,))
    close(y, f(x), 1e-13, 1e-13)
    close(y_dot, np.sum(want * v), rtol, atol)
