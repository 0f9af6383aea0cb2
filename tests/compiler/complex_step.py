"""Running real programs with complex numbers: the imaginary part of a tiny step is the derivative, to the last digits.

Names of `np`, `math` and Python mean here what they do to real numbers, continued to complex ones: choices look at real
parts, and arrays of floats hold complex numbers. Where a choice is nearly a tie, the program is no test: `Tie`.
"""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np
from scipy import special

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


def _order(x: Any, axis: int) -> Any:
    ranked = np.sort(np.real(x), axis)
    _apart(np.diff(ranked, axis=axis))
    return np.argsort(np.real(x), axis)


def _furthest(x: Any, sign: int) -> Any:
    _order(x, -1)
    return np.argmax(sign * np.real(x))


class _Linalg:
    def __getattr__(self, name: str) -> Any:
        return getattr(np.linalg, name)

    norm = staticmethod(lambda x: np.sqrt(np.sum(x * x)))

    @staticmethod
    def slogdet(a: Any) -> Any:
        det = np.linalg.det(a)
        return np.sign(np.real(det)), np.log(det * np.sign(np.real(det)))

    @staticmethod
    def cholesky(a: Any) -> Any:
        """The factor of a symmetric matrix, without the conjugates of that of a Hermitian one."""
        low = np.zeros(a.shape, complex)
        for i in range(len(a)):
            for j in range(i + 1):
                rest = a[i, j] - np.sum(low[i, :j] * low[j, :j])
                low[i, j] = np.sqrt(rest) if i == j else rest / low[j, j]
        return low


class _Special:
    erf = staticmethod(lambda x: special.erf(x))
    digamma = psi = staticmethod(lambda x: special.digamma(x))
    gammaln = staticmethod(lambda x: special.loggamma(x))
    expit = staticmethod(lambda x: 1.0 / (1.0 + np.exp(-x)))
    logsumexp = staticmethod(lambda x: np.log(np.sum(np.exp(x))))
    softmax = staticmethod(lambda x, axis: np.exp(x) / np.sum(np.exp(x), axis=axis, keepdims=True))


class _Numpy:
    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    zeros, empty, full, array = (staticmethod(_wide(f)) for f in (np.zeros, np.zeros, np.full, np.array))
    absolute = abs = fabs = staticmethod(_absolute)
    maximum = staticmethod(lambda x, y: _chosen(x, y, 1))
    minimum = staticmethod(lambda x, y: _chosen(x, y, -1))
    max, min = staticmethod(_extreme(1)), staticmethod(_extreme(-1))
    sign = staticmethod(lambda x: np.sign(np.real(x)))
    zeros_like = empty_like = staticmethod(lambda x: np.zeros(np.shape(x), complex))
    sort = staticmethod(lambda x, axis=-1: np.take_along_axis(x, _order(x, axis), axis))
    argmax = staticmethod(lambda x: _furthest(x, 1))
    argmin = staticmethod(lambda x: _furthest(x, -1))
    median = staticmethod(lambda x: np.mean(np.sort_complex(x)[(len(x) - 1) // 2 : len(x) // 2 + 1]))
    var = staticmethod(lambda x: np.mean((x - np.mean(x)) ** 2))
    std = staticmethod(lambda x: np.sqrt(np.mean((x - np.mean(x)) ** 2)))
    hypot = staticmethod(lambda x, y: np.sqrt(x * x + y * y))
    linalg = _Linalg()

    @staticmethod
    def clip(x: Any, low: float, high: float) -> Any:
        return _chosen(_chosen(x, low, 1), high, -1)

    @staticmethod
    def searchsorted(a: Any, x: Any, side: Any = "left") -> Any:
        _apart(np.subtract.outer(np.real(x), a))
        return np.searchsorted(np.real(a), np.real(x), side)

    @staticmethod
    def interp(x: Any, xp: Any, fp: Any) -> Any:
        _apart(np.subtract.outer(np.real(x), xp))
        k = np.clip(np.searchsorted(xp, np.real(x)), 1, len(xp) - 1)
        inside = fp[k - 1] + (fp[k] - fp[k - 1]) / (xp[k] - xp[k - 1]) * (x - xp[k - 1])
        return np.where(np.real(x) < xp[0], fp[0], np.where(np.real(x) > xp[-1], fp[-1], inside))[()]


NAMES: dict[str, Any] = {
    "np": _Numpy(),
    "math": np,
    "special": _Special(),
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
