"""Half the squared error of a polynomial fitted to a step. Derivative: the gradient in the coefficients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

from .. import native_code, torch_code

WRT = (0,)
SIZES = {"tiny": (4, 9), "m128 n16392": (128, 16_392)}


def program(x, n):  # type: ignore[no-untyped-def]
    total = 0.0
    for i in range(n):
        t = -1 + i * 2 / (n - 1)
        residual = np.sign(t)
        power = 1.0
        for j in range(x.size):
            residual -= x[j] * power
            power *= t
        total += residual * residual / 2
    return total


def inputs(size: str) -> tuple[Any, ...]:
    m, n = SIZES[size]
    return np.random.default_rng(0).uniform(-1, 1, m), n


@njit(error_model="numpy")
def by_hand(x, n):  # type: ignore[no-untyped-def]
    m = x.size
    x_bar = np.zeros(m)
    powers = np.empty(m)
    for i in range(n):
        t = -1 + i * 2 / (n - 1)
        residual = np.sign(t)
        power = 1.0
        for j in range(m):
            powers[j] = power
            residual -= x[j] * power
            power *= t
        for j in range(m):
            x_bar[j] -= residual * powers[j]
    return x_bar


def in_cpp() -> Callable[..., Any]:
    derivative = native_code.derivative("llsq")

    def gradient(x: Any, n: int) -> Any:
        x_bar = np.empty_like(x)
        derivative(x, x.size, n, x_bar)
        return x_bar

    return gradient


def in_jax() -> Callable[..., Any]:
    import jax
    import jax.numpy as jnp

    def squares(x: Any, n: int) -> Any:
        t = -1 + jnp.arange(n) * 2 / (n - 1)
        fitted = t[:, None] ** jnp.arange(x.size) @ x
        return jnp.sum((jnp.sign(t) - fitted) ** 2) / 2

    return jax.jit(jax.grad(squares), static_argnums=1)


def in_autograd() -> Callable[..., Any]:
    import autograd
    import autograd.numpy as anp

    def squares(x: Any, n: int) -> Any:
        t = -1 + anp.arange(n) * 2 / (n - 1)
        fitted = t[:, None] ** anp.arange(x.size) @ x
        return anp.sum((anp.sign(t) - fitted) ** 2) / 2

    return autograd.grad(squares)


def in_torch() -> Callable[..., Any]:
    import torch

    def squares(x: Any, n: int) -> Any:
        t = -1 + torch.arange(n, dtype=x.dtype) * 2 / (n - 1)
        fitted = t[:, None] ** torch.arange(x.numel()) @ x
        return torch.sum((torch.sign(t) - fitted) ** 2) / 2

    return torch_code.gradient(squares, WRT)
