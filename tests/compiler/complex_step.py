"""Running real programs with complex numbers: the imaginary part of a tiny step is the derivative, to the last digits.

Names of `np`, `math` and Python mean here what they do to real numbers, continued to complex ones: choices look at real
parts, and arrays of floats hold complex numbers. Where a choice is nearly a tie, the program is no test: `Tie`.
"""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

STEP = 1e-40
CLOSEST = 1e-7


class Tie(Exception):
    """Two values between which a program chooses are nearly the same."""


def _apart(gap: Any) -> None:
    if np.any(np.abs(gap) < CLOSEST):
        raise Tie


def _absolute(x: Any) -> Any:
    _apart(np.real(x))
    return x * np.sign(np.real(x))


def _chosen(x: Any, y: Any, sign: int) -> Any:
    _apart(np.real(x) - np.real(y))
    return np.where(sign * (np.real(x) - np.real(y)) > 0, x, y)[()]


def _extreme(sign: int) -> Any:
    def extreme(x: Any, *more: Any, axis: Any = None) -> Any:
        if more:
            return x if sign * (np.real(x) - np.real(more[0])) >= 0 else more[0]
        assert axis is None
        ranked = np.sort(np.real(np.ravel(x)))[::-sign]
        _apart(ranked[:1] - ranked[1:2])
        return np.ravel(x)[np.argmax(sign * np.real(np.ravel(x)))]

    return extreme


def _wide(make: Any) -> Any:
    """A function that makes arrays, of complex numbers where it would give floats."""

    def made(*args: Any, **kwargs: Any) -> Any:
        array = make(*args, **kwargs)
        return array.astype(complex) if array.dtype.kind == "f" else array

    return made


class _Numpy:
    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    zeros, empty, full, array = (staticmethod(_wide(f)) for f in (np.zeros, np.zeros, np.full, np.array))
    absolute = abs = fabs = staticmethod(_absolute)
    maximum = staticmethod(lambda x, y: _chosen(x, y, 1))
    minimum = staticmethod(lambda x, y: _chosen(x, y, -1))
    max, min = staticmethod(_extreme(1)), staticmethod(_extreme(-1))
    sign = staticmethod(lambda x: np.sign(np.real(x)))


NAMES: dict[str, Any] = {
    "np": _Numpy(),
    "math": np,
    "abs": _absolute,
    "max": _extreme(1),
    "min": _extreme(-1),
    "int": lambda x: builtins.int(np.real(x)),
    "float": lambda x: x,
}


def stepped(x: Any, v: Any) -> Any:
    """A point moved by an imaginary step along a direction."""
    return x + 1j * STEP * v if isinstance(x, np.ndarray) else np.complex128(x + 1j * STEP * v)


def slope(y: Any) -> Any:
    """The derivative along the direction of the step."""
    return np.imag(y) / STEP
