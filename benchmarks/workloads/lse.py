"""log Σ exp x, safe from overflow. Derivative: the gradient."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

from .. import native_code, torch_code

WRT = (0,)
SIZES = {"tiny": 7, "160k": 160_000, "1.28M": 1_280_000}


def program(x):  # type: ignore[no-untyped-def]
    shift = np.max(x)
    return shift + np.log(np.sum(np.exp(x - shift)))


def inputs(size: str) -> tuple[Any, ...]:
    return (np.random.default_rng(0).uniform(-5, 5, SIZES[size]),)


@njit(error_model="numpy")
def by_hand(x):  # type: ignore[no-untyped-def]
    n = x.size
    shift = x[0]
    for i in range(1, n):
        if x[i] > shift:
            shift = x[i]
    x_bar = np.empty(n)
    total = 0.0
    for i in range(n):
        x_bar[i] = math.exp(x[i] - shift)
        total += x_bar[i]
    for i in range(n):
        x_bar[i] /= total
    return x_bar


def in_cpp() -> Callable[..., Any]:
    derivative = native_code.derivative("lse")

    def gradient(x: Any) -> Any:
        x_bar = np.empty_like(x)
        derivative(x, x.size, x_bar)
        return x_bar

    return gradient


def in_jax() -> Callable[..., Any]:
    import jax
    import jax.numpy as jnp

    def log_sum_exp(x: Any) -> Any:
        shift = jnp.max(x)
        return shift + jnp.log(jnp.sum(jnp.exp(x - shift)))

    return jax.jit(jax.grad(log_sum_exp))


def in_autograd() -> Callable[..., Any]:
    import autograd
    import autograd.numpy as anp

    def log_sum_exp(x: Any) -> Any:
        shift = anp.max(x)
        return shift + anp.log(anp.sum(anp.exp(x - shift)))

    return autograd.grad(log_sum_exp)


def in_torch() -> Callable[..., Any]:
    import torch

    return torch_code.gradient(lambda x: torch.logsumexp(x, 0), WRT)
