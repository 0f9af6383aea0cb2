"""How the examples of a batch lie in memory: each as the array would lie that the function makes for it alone.

Whether `ravel` and `reshape` give a view, into which one can write, depends on it.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from retrograde.originals import np


def apart(raw: Any) -> Any:
    """New values of all examples, with each example in a piece of memory of its own.

    NumPy lays a result out like its operands, and in these the examples may be interleaved.
    """
    # In a batch of batches that of the outer ones is none of its axes.
    if raw.ndim < 2 or not raw.size:
        return raw
    step, *steps = map(abs, raw.strides)
    # Steps along axes of length 1 mean nothing, and one that is the same for all examples lies as it should.
    if not 0 < step < max([n for n, size in zip(steps, raw.shape[1:], strict=True) if size > 1], default=0):
        return raw
    order = sorted(range(1, raw.ndim), key=lambda axis: -steps[axis - 1])
    moved = np.copy(np.transpose(raw, (0, *order)), order="C")
    return np.transpose(moved, (0, *(1 + np.argsort(order)).tolist()))


def spread(x: Any, size: int) -> Any:
    """Values of so many examples, all of them copies of `x`."""
    whole = np.broadcast_to(x, (size, *np.shape(x)))
    is_by_rows = all(a >= b for a, b in pairwise(getattr(x, "strides", ())))
    return np.copy(whole, order="C") if is_by_rows else apart(np.copy(whole))


__all__ = ["apart", "spread"]
