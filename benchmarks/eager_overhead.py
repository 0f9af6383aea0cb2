"""What one recorded operation costs: y ← sin(y·x + x), 334 times, forward and reverse, in µs an operation.

Targets: a Python float at least 15× less than autograd and 6× less than PyTorch, through `np.sin` and through
`math.sin`; arrays of 1 and of 10 at least 6× less than autograd, 2× less than PyTorch, and within 2.5× of the
derivative written by hand without any tape. JAX runs without jit, as the others do.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .harness import BY_HAND, OURS, Case, Report, faster, measure, within

STEPS = 334
OPERATIONS = 3 * STEPS

FLOAT, ONE, TEN = "Python float", "array of 1", "array of 10"
OURS_MATH = f"{OURS}, math.sin"


def chain(x: Any, sin: Callable[[Any], Any], steps: int = STEPS) -> Any:
    y = x
    for _ in range(steps):
        y = sin(y * x + x)
    return y


def chain_of_math(x: Any, steps: int = STEPS) -> Any:
    # As people write it. Handed over as a value, math.sin would be C's own, which takes no traced number.
    y = x
    for _ in range(steps):
        y = math.sin(y * x + x)
    return y


def by_hand(x: Any) -> Callable[[], Any]:
    # The floor: what a person would write who knows the derivative, in the fastest arithmetic there is for x.
    sin, cos = (math.sin, math.cos) if isinstance(x, float) else (np.sin, np.cos)

    def gradient() -> Any:
        ys, us = [x], []
        for _ in range(STEPS):
            us.append(ys[-1] * x + x)
            ys.append(sin(us[-1]))
        y_bar = 1.0 if isinstance(x, float) else np.ones_like(x)
        x_bar = 0.0
        for k in range(STEPS - 1, -1, -1):
            u_bar = y_bar * cos(us[k])
            x_bar = x_bar + u_bar * (ys[k] + 1.0)
            y_bar = u_bar * x
        return x_bar + y_bar

    return gradient


def with_retrograde(x: Any) -> Callable[[], Any]:
    import retrograde

    def loss(x: Any) -> Any:
        y = chain(x, np.sin)
        return y if isinstance(x, float) or np.ndim(x) == 0 else np.sum(y)

    return lambda: retrograde.gradient(loss, x)[0]


def with_retrograde_and_math(x: float) -> Callable[[], Any]:
    import retrograde

    return lambda: retrograde.gradient(chain_of_math, x)[0]


def with_autograd(x: Any) -> Callable[[], Any]:
    import autograd
    import autograd.numpy as anp

    gradient = autograd.grad(lambda x: anp.sum(chain(x, anp.sin)))
    return lambda: gradient(x)


def with_mygrad(x: Any) -> Callable[[], Any]:
    import mygrad

    def gradient() -> Any:
        leaf = mygrad.tensor(x)
        mygrad.sum(chain(leaf, mygrad.sin)).backward()
        return leaf.grad

    return gradient


def with_torch(x: Any) -> Callable[[], Any]:
    import torch

    value = torch.tensor(x, dtype=torch.float64)

    def gradient() -> Any:
        leaf = value.clone().requires_grad_()
        chain(leaf, torch.sin).sum().backward()
        return leaf.grad

    return gradient


def with_jax(x: Any) -> Callable[[], Any]:
    import jax

    jax.config.update("jax_enable_x64", True)
    import jax.numpy as jnp

    gradient = jax.grad(lambda x: jnp.sum(chain(x, jnp.sin)))
    value = jnp.asarray(x)
    return lambda: gradient(value).block_until_ready()


PEERS = {"autograd": with_autograd, "MyGrad": with_mygrad, "PyTorch": with_torch, "JAX, no jit": with_jax}


def run(quick: bool) -> Report:
    rng = np.random.default_rng(0)
    points = {FLOAT: 0.7, ONE: rng.uniform(0.5, 1, 1), TEN: rng.uniform(0.5, 1, 10)}
    makers = {BY_HAND: by_hand, OURS: with_retrograde, **PEERS}
    cases = [
        Case(race, name, lambda maker=maker, x=x: maker(x), "µs/op", 1e6 / OPERATIONS)
        for race, x in points.items()
        for name, maker in makers.items()
    ]
    # No peer takes math.sin: this is set against what they need with a sin of their own.
    cases.insert(2, Case(FLOAT, OURS_MATH, lambda: with_retrograde_and_math(points[FLOAT]), "µs/op", 1e6 / OPERATIONS))
    targets = []
    for ours in (OURS, OURS_MATH):
        targets += [faster(FLOAT, "autograd", 15, ours), faster(FLOAT, "PyTorch", 6, ours)]
    for race in (ONE, TEN):
        targets += [faster(race, "autograd", 6), faster(race, "PyTorch", 2), within(race, 2.5, BY_HAND)]
    title = f"Eager overhead: forward and reverse, {OPERATIONS:,} operations mixing mul, add, sin"
    return Report(title, measure(cases, quick), targets)
