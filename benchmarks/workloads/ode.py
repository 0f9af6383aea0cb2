"""A chain of equations, y₀' = x₀ and yᵢ' = xᵢ yᵢ₋₁, by Runge and Kutta. Derivative: the gradient of the last yᵢ."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

from .. import native_code, torch_code

WRT = (0,)
SIZES = {"tiny": (4, 3), "n1000 s100": (1_000, 100), "n10000 s100": (10_000, 100)}


def slope(x, y):  # type: ignore[no-untyped-def]
    z = np.empty_like(y)
    z[0] = x[0]
    z[1:] = x[1:] * y[:-1]
    return z


def solution(x, steps):  # type: ignore[no-untyped-def]
    h = 2 / steps
    y = np.zeros_like(x)
    for _ in range(steps):
        k1 = slope(x, y)
        k2 = slope(x, y + h / 2 * k1)
        k3 = slope(x, y + h / 2 * k2)
        k4 = slope(x, y + h * k3)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return y


def program(x, steps):  # type: ignore[no-untyped-def]
    return solution(x, steps)[-1]


def inputs(size: str) -> tuple[Any, ...]:
    n, steps = SIZES[size]
    return np.random.default_rng(0).uniform(0.5, 1.5, n), steps


@njit(error_model="numpy")
def by_hand(x, steps):  # type: ignore[no-untyped-def]
    """Keeps y of every step and computes the four slopes again."""
    n = x.size
    h = 2 / steps
    ys = np.zeros((steps + 1, n))
    k1, k2, k3, k4 = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    for s in range(steps):
        _stages(x, ys[s], h, k1, k2, k3, k4)
        y, after = ys[s], ys[s + 1]
        for i in range(n):
            after[i] = y[i] + h / 6 * (k1[i] + 2 * k2[i] + 2 * k3[i] + k4[i])
    x_bar = np.zeros(n)
    y_bar = np.zeros(n)
    y_bar[n - 1] = 1.0
    b1, b2, b3, b4 = np.empty(n + 1), np.empty(n + 1), np.empty(n + 1), np.empty(n + 1)
    b1[n] = b2[n] = b3[n] = b4[n] = 0.0
    for s in range(steps - 1, -1, -1):
        y = ys[s]
        _stages(x, y, h, k1, k2, k3, k4)
        # slope pulls z_bar back to y as x[i + 1] · z_bar[i + 1]; from the last stage to the first.
        for i in range(n):
            b4[i] = h / 6 * y_bar[i]
        for i in range(n):
            into = x[i + 1] * b4[i + 1] if i + 1 < n else 0.0
            b3[i] = h / 3 * y_bar[i] + h * into
        for i in range(n):
            into = x[i + 1] * b3[i + 1] if i + 1 < n else 0.0
            b2[i] = h / 3 * y_bar[i] + h / 2 * into
        for i in range(n):
            into = x[i + 1] * b2[i + 1] if i + 1 < n else 0.0
            b1[i] = h / 6 * y_bar[i] + h / 2 * into
        for i in range(1, n):
            x_bar[i] += (
                b1[i] * y[i - 1]
                + b2[i] * (y[i - 1] + h / 2 * k1[i - 1])
                + b3[i] * (y[i - 1] + h / 2 * k2[i - 1])
                + b4[i] * (y[i - 1] + h * k3[i - 1])
            )
        x_bar[0] += b1[0] + b2[0] + b3[0] + b4[0]
        for i in range(n - 1):
            y_bar[i] += x[i + 1] * (b1[i + 1] + b2[i + 1] + b3[i + 1] + b4[i + 1])
    return x_bar


@njit(error_model="numpy")
def _stages(x, y, h, k1, k2, k3, k4):  # type: ignore[no-untyped-def]
    k1[0] = k2[0] = k3[0] = k4[0] = x[0]
    for i in range(1, x.size):
        k1[i] = x[i] * y[i - 1]
    for i in range(1, x.size):
        k2[i] = x[i] * (y[i - 1] + h / 2 * k1[i - 1])
    for i in range(1, x.size):
        k3[i] = x[i] * (y[i - 1] + h / 2 * k2[i - 1])
    for i in range(1, x.size):
        k4[i] = x[i] * (y[i - 1] + h * k3[i - 1])


def in_cpp() -> Callable[..., Any]:
    derivative = native_code.derivative("ode")

    def gradient(x: Any, steps: int) -> Any:
        x_bar = np.empty_like(x)
        derivative(x, x.size, steps, x_bar)
        return x_bar

    return gradient


def in_jax() -> Callable[..., Any]:
    import jax
    import jax.numpy as jnp

    def last(x: Any, steps: int) -> Any:
        h = 2 / steps

        def slope(y: Any) -> Any:
            return jnp.concatenate([x[:1], x[1:] * y[:-1]])

        def step(y: Any, _: Any) -> Any:
            k1 = slope(y)
            k2 = slope(y + h / 2 * k1)
            k3 = slope(y + h / 2 * k2)
            k4 = slope(y + h * k3)
            return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4), None

        return jax.lax.scan(step, jnp.zeros_like(x), None, length=steps)[0][-1]

    return jax.jit(jax.grad(last), static_argnums=1)


def in_whole_arrays(lib: Any) -> Callable[..., Any]:
    """The program without writes into arrays, for libraries that record each operation."""

    def last(x: Any, steps: int) -> Any:
        h = 2 / steps

        def slope(y: Any) -> Any:
            return lib.concatenate([x[:1], x[1:] * y[:-1]])

        y = lib.zeros_like(x)
        for _ in range(steps):
            k1 = slope(y)
            k2 = slope(y + h / 2 * k1)
            k3 = slope(y + h / 2 * k2)
            k4 = slope(y + h * k3)
            y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return y[-1]

    return last


def in_autograd() -> Callable[..., Any]:
    import autograd
    import autograd.numpy as anp

    return autograd.grad(in_whole_arrays(anp))


def in_torch() -> Callable[..., Any]:
    import torch

    return torch_code.gradient(in_whole_arrays(torch), WRT)
