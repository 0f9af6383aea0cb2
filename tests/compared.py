"""Functions that write into arrays, held in every mode against the same function run on plain arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from truth import close, differences

from retrograde import gradient, hvp, jvp, pullback, withgradient

X = np.array([0.5, -1.0, 2.0])
W = np.array([1.0, 10.0, 100.0])
M = np.sin(np.arange(1.0, 13.0)).reshape(3, 4)
WM = np.cos(np.arange(12.0)).reshape(3, 4)
for _shared in (X, W, M, WM):
    _shared.flags.writeable = False


def lying(x: Any, how: str) -> Any:
    """The array `x` with its elements lying in memory in another way."""
    if how == "F":
        y = np.zeros(x.shape, x.dtype, order="F")
    elif how == "strided":
        y = np.zeros((*x.shape[:-1], 2 * x.shape[-1]), x.dtype)[..., ::2]
    elif how == "reversed":
        y = np.zeros(x.shape, x.dtype)[::-1]
    else:
        y = np.zeros(x.shape, x.dtype)
    y[...] = x
    return y


def each(text: str) -> list[str]:
    """The lines of a text."""
    return [line.strip() for line in text.strip().splitlines()]


def joined(bars: Any, xs: Any) -> Any:
    """Cotangents of arrays as one vector; None is zero."""
    return np.concatenate([np.zeros(x.size) if bar is None else bar.ravel() for bar, x in zip(bars, xs, strict=True)])


def agrees(f: Callable[..., Any], *xs: Any, how: str = "C", analytic: bool = True, second: bool = True) -> None:
    """Value and derivatives of the real function `f` are those of the same function run on plain arrays."""
    shapes = [x.shape for x in xs]
    flat = np.concatenate([x.ravel() for x in xs])

    def plain(z: Any) -> Any:
        parts = np.split(z, np.cumsum([x.size for x in xs])[:-1])
        return f(*[lying(p.reshape(s), how) for p, s in zip(parts, shapes, strict=True)])

    def slope(z: Any, v: Any) -> Any:
        if analytic:
            return np.imag(plain(z + 1e-30j * v)) / 1e-30
        return differences(lambda t: plain(z + t[0] * v), np.zeros(1))[0]

    value = plain(flat)
    wanted = np.array([slope(flat, e) for e in np.eye(flat.size)])
    v = np.sin(1.0 + 2.0 * np.arange(flat.size))
    w = np.cos(0.5 + 3.0 * np.arange(flat.size))
    parts = [p.reshape(s) for p, s in zip(np.split(v, np.cumsum([x.size for x in xs])[:-1]), shapes, strict=True)]
    laid = [lying(x, how) for x in xs]
    rtol, atol = (1e-9, 1e-9) if analytic else (1e-6, 1e-6)

    got = withgradient(f, *laid)
    close(got.val, value, 1e-12)
    close(joined(got.grad, xs), wanted, rtol, atol)
    y, pull = pullback(f, *laid)
    close(y, value, 1e-12)
    for seed in (1.0, -2.0):
        bars = pull(seed)
        close(joined(bars, xs), seed * wanted, rtol, atol)
    y, y_dot = jvp(f, tuple(laid), tuple(parts))
    close(y, value, 1e-12)
    close(y_dot, wanted @ v, rtol, atol)
    if second:
        bent = differences(lambda t: slope(flat + t[0] * v, w), np.zeros(1))[0]
        product = hvp(lambda zs: f(*zs), laid, parts)
        close(np.concatenate([p.ravel() for p in product]) @ w, bent, 1e-5, 1e-5)

        def along(*zs: Any) -> Any:
            return sum(np.sum(g * p) for g, p in zip(gradient(f, *zs), parts, strict=True) if g is not None)

        twice = gradient(along, *laid)
        close(joined(twice, xs) @ w, bent, 1e-5, 1e-5)
    for x, given in zip(laid, xs, strict=True):
        close(x, given, 0.0, 0.0)
