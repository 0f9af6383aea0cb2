"""How the examples of a batch lie in memory: each as the array would lie that the function makes for it alone.

Whether `ravel` and `reshape` give a view, into which one can write, depends on it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograde.trace.handle import contents


def apart(raw: Any) -> Any:
    """New values of all examples, with each example in a piece of memory of its own.

    NumPy lays a result out like its operands, and in these the examples may be interleaved.
    """
    memory = contents(raw)
    if memory.ndim < 2 or not memory.size:
        return raw
    step, *steps = map(abs, memory.strides)
    # Steps along axes of length 1 mean nothing, and one that is the same for all examples lies as it should.
    if not 0 < step < max([n for n, size in zip(steps, memory.shape[1:], strict=True) if size > 1], default=0):
        return raw
    order = sorted(range(1, memory.ndim), key=lambda axis: -steps[axis - 1])
    moved = np.copy(np.transpose(raw, (0, *order)), order="C")
    return np.transpose(moved, (0, *(1 + np.argsort(order)).tolist()))


def spread(x: Any, size: int) -> Any:
    """Values of so many examples, all of them copies of `x`."""
    whole = np.broadcast_to(x, (size, *np.shape(x)))
    return np.copy(whole, order="C") if np.asarray(contents(x)).flags.c_contiguous else apart(np.copy(whole))


__all__ = ["apart", "spread"]
