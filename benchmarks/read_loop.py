"""Reading one element at a time: `s += x[i] * x[i + 1]`, forward and reverse, in µs an iteration.

An indexed read must cost what it reads, not what the array holds; a cotangent as long as the array for every read makes
the loop quadratic.

Targets: twice the elements cost at most 2.3× as much, at 10³, 10⁴ and 10⁵; at 10⁴ at least 8× faster than PyTorch and
20× faster than autograd. The peers run only where they end in seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from .harness import BY_HAND, OURS, Case, Report, faster, growth, measure


def products(x: Any) -> Any:
    s = 0.0
    for i in range(len(x) - 1):
        s += x[i] * x[i + 1]
    return s


def by_hand(x: np.ndarray) -> Callable[[], Any]:
    def gradient() -> Any:
        # As a person would write it for a loop over elements, and not as np.roll.
        x_bar = np.zeros_like(x)
        s = 0.0
        for i in range(len(x) - 1):
            s += x[i] * x[i + 1]
        for i in range(len(x) - 1):
            x_bar[i] += x[i + 1]
            x_bar[i + 1] += x[i]
        return x_bar

    return gradient


def with_retrograde(x: np.ndarray) -> Callable[[], Any]:
    import retrograde

    return lambda: retrograde.gradient(products, x)[0]


def with_autograd(x: np.ndarray) -> Callable[[], Any]:
    import autograd

    return partial(autograd.grad(products), x)


def with_mygrad(x: np.ndarray) -> Callable[[], Any]:
    import mygrad

    def gradient() -> Any:
        leaf = mygrad.tensor(x)
        products(leaf).backward()
        return leaf.grad

    return gradient


def with_torch(x: np.ndarray) -> Callable[[], Any]:
    import torch

    def gradient() -> Any:
        leaf = torch.tensor(x, requires_grad=True)
        products(leaf).backward()
        return leaf.grad

    return gradient


def with_jax(x: np.ndarray) -> Callable[[], Any]:
    import jax

    jax.config.update("jax_enable_x64", True)
    gradient = jax.grad(products)
    value = jax.numpy.asarray(x)
    return lambda: gradient(value).block_until_ready()


# Each with the largest n that it is given.
MAKERS = {
    BY_HAND: (by_hand, 10**6),
    OURS: (with_retrograde, 10**6),
    "autograd": (with_autograd, 10**4),
    "MyGrad": (with_mygrad, 10**4),
    "PyTorch": (with_torch, 2 * 10**4),
    "JAX, no jit": (with_jax, 10**3),
}


def race(n: int) -> str:
    return f"n = {n:,}"


def run(quick: bool) -> Report:
    rng = np.random.default_rng(0)
    sizes = (10**3, 10**4) if quick else (10**3, 10**4, 10**5)
    x = rng.standard_normal(2 * sizes[-1])
    cases = [
        Case(race(n), name, lambda maker=maker, n=n: maker(x[:n]), "µs/iteration", 1e6 / n)
        for size in sizes
        for n in (size, 2 * size)
        for name, (maker, largest) in MAKERS.items()
        if n <= largest and not (quick and n * 10 > largest)
    ]
    targets = [growth(race(n), race(2 * n), 2.3) for n in sizes]
    targets += [faster(race(10**4), "PyTorch", 8), faster(race(10**4), "autograd", 20)]
    return Report("Reading in a loop: s += x[i] * x[i + 1]", measure(cases, quick), targets)
