"""A determinant, expanded by minors: recursion and index lists that change. Derivative: the gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

from .. import native_code, torch_code

WRT = (0,)
SIZES = {"tiny": 3, "ℓ=7": 7, "ℓ=9": 9}


def minor(a, size, row, next_column):  # type: ignore[no-untyped-def]
    """The determinant of the last `size` rows and those columns that the list still holds."""
    n = a.shape[0]
    column = next_column[n]
    if size == 1:
        return a[row, column]
    total = 0.0
    sign = 1.0
    before = n
    for _ in range(size):
        next_column[before] = next_column[column]
        total += sign * a[row, column] * minor(a, size - 1, row + 1, next_column)
        next_column[before] = column
        before = column
        column = next_column[column]
        sign = -sign
    return total


def program(a):  # type: ignore[no-untyped-def]
    n = a.shape[0]
    next_column = np.arange(1, n + 2)  # a list in an array: what follows each column; place n holds the first
    next_column[n] = 0
    return minor(a, n, 0, next_column)


def inputs(size: str) -> tuple[Any, ...]:
    n = SIZES[size]
    return (np.random.default_rng(0).uniform(-1, 1, (n, n)),)


@njit(error_model="numpy")
def _minor(a, size, row, next_column, scale, a_bar):  # type: ignore[no-untyped-def]
    """The minor, and `scale` times its gradient added to `a_bar`."""
    n = a.shape[0]
    column = next_column[n]
    if size == 1:
        a_bar[row, column] += scale
        return a[row, column]
    total = 0.0
    sign = 1.0
    before = n
    for _ in range(size):
        next_column[before] = next_column[column]
        below = _minor(a, size - 1, row + 1, next_column, scale * sign * a[row, column], a_bar)
        next_column[before] = column
        total += sign * a[row, column] * below
        a_bar[row, column] += scale * sign * below
        before = column
        column = next_column[column]
        sign = -sign
    return total


@njit(error_model="numpy")
def by_hand(a):  # type: ignore[no-untyped-def]
    n = a.shape[0]
    next_column = np.arange(1, n + 2)
    next_column[n] = 0
    a_bar = np.zeros((n, n))
    _minor(a, n, 0, next_column, 1.0, a_bar)
    return a_bar


def in_cpp() -> Callable[..., Any]:
    derivative = native_code.derivative("det")

    def gradient(a: Any) -> Any:
        a_bar = np.empty_like(a)
        derivative(a, a.shape[0], a_bar)
        return a_bar

    return gradient


def expanded(a: Any) -> Any:
    """The determinant as libraries without recursion on index lists can follow it."""

    def minor(row: int, columns: tuple[int, ...]) -> Any:
        if len(columns) == 1:
            return a[row, columns[0]]
        rest = [columns[:i] + columns[i + 1 :] for i in range(len(columns))]
        return sum((-1) ** i * a[row, columns[i]] * minor(row + 1, rest[i]) for i in range(len(columns)))

    return minor(0, tuple(range(a.shape[0])))


def in_jax() -> Callable[..., Any]:
    import jax

    return jax.jit(jax.grad(expanded))


def in_autograd() -> Callable[..., Any]:
    import autograd

    return autograd.grad(expanded)


def in_torch() -> Callable[..., Any]:
    return torch_code.gradient(expanded, WRT)
