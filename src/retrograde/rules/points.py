"""Where a rule is tested: domains to draw arguments from, and calls made of them.

The points stand beside the rule; `tests/test_rules.py` runs every law over all of them.
An elementwise rule lists one *domain* an argument, and is tried in several shapes, dtypes and broadcasts:

    elementwise(np.log, lambda x: 1 / x, at=[real(0.1, 9)])

Every other rule lists *calls*: a domain with a shape stands for a differentiable argument, the rest is passed as it is.

    at=[call(real(-1, 1, 3, 4), axis=0), call(spd(3), real(-1, 1, 3))]
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from retrograde.originals import np


@dataclass(frozen=True)
class Domain:
    """Numbers between `low` and `high` in an array of `shape`, drawn by `kind`."""

    low: float
    high: float
    shape: tuple[int, ...] = ()
    kind: str = "real"

    def sample(self, rng: np.random.Generator, shape: tuple[int, ...] | None = None) -> Any:
        """A float64 or complex128 array (a scalar where the shape is empty)."""
        shape = self.shape if shape is None else shape
        if self.kind == "spd":
            n = shape[-1]
            m = rng.standard_normal(shape)
            return m @ np.swapaxes(m, -1, -2) + n * np.eye(n)
        if self.kind == "invertible":
            return rng.standard_normal(shape) + shape[-1] * np.eye(shape[-1])
        if self.kind == "distinct":
            # At least one step between any two, so that no difference quotient crosses a tie.
            size = int(np.prod(shape))
            steps = rng.permutation(size) + rng.uniform(0.2, 0.4, size)
            return (self.low + (self.high - self.low) * steps / max(size, 1)).reshape(shape)
        x = rng.uniform(self.low, self.high, shape)
        if self.kind == "complex":
            x = x + 1j * rng.uniform(self.low, self.high, shape)
        return x


@dataclass(frozen=True)
class Call:
    """One call of a function: domains are drawn and differentiated, everything else is passed as it is."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict)


def call(*args: Any, **kwargs: Any) -> Call:
    return Call(args, kwargs)


def real(low: float, high: float, *shape: int) -> Domain:
    """Real numbers, uniform between the bounds."""
    return Domain(low, high, shape)


def complex_(low: float, high: float, *shape: int) -> Domain:
    """Complex numbers whose real and imaginary parts are uniform between the bounds."""
    return Domain(low, high, shape, "complex")


def distinct(low: float, high: float, *shape: int) -> Domain:
    """Real numbers that are well apart from each other, for sorting and extremes."""
    return Domain(low, high, shape, "distinct")


def spd(*shape: int) -> Domain:
    """Symmetric positive definite matrices; `spd(3)` is one of 3 × 3, `spd(2, 3, 3)` a stack of two."""
    return Domain(0, 0, shape if len(shape) > 1 else shape * 2, "spd")


def invertible(*shape: int) -> Domain:
    """Well-conditioned square matrices that are not symmetric."""
    return Domain(0, 0, shape if len(shape) > 1 else shape * 2, "invertible")
