"""Saddle points by gradient descent in which each step looks for the maximum below it: loops that end when done.

Siskind and Pearlmutter (2008), "Using programming language theory to make automatic differentiation sound and
efficient", section 4. Derivative: that of where the descents end, with respect to where they start.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit, prange

from .. import native_code, torch_code

WRT = (0,)
SIZES = {"tiny": 2, "100 starts": 100, "10,000 starts": 10_000}
CLOSE = 1e-2  # where a slope counts as zero
STEP = 0.1


def slopes(x1, y1, x2, y2):  # type: ignore[no-untyped-def]
    """Those of x1² + y1² - x2² - y2² + (x1 x2 + y1 y2) / 4 in its four variables, as a user writes them."""
    return 2 * x1 + x2 / 4, 2 * y1 + y2 / 4, x1 / 4 - 2 * x2, y1 / 4 - 2 * y2


def descent(x1, y1, x2, y2):  # type: ignore[no-untyped-def]
    """Where the descent in (x1, y1) ends, of the maximum over (x2, y2)."""
    moved = 1.0
    while moved > CLOSE * CLOSE:
        climbed = 1.0
        while climbed > CLOSE * CLOSE:
            _, _, up, across = slopes(x1, y1, x2, y2)
            x2 = x2 + STEP * up
            y2 = y2 + STEP * across
            climbed = up * up + across * across
        down, along, _, _ = slopes(x1, y1, x2, y2)
        x1 = x1 - STEP * down
        y1 = y1 - STEP * along
        moved = down * down + along * along
    return x1, y1, x2, y2


def program(starts):  # type: ignore[no-untyped-def]
    total = 0.0
    for i in prange(starts.shape[0]):
        x1, y1, x2, y2 = descent(starts[i, 0], starts[i, 1], starts[i, 2], starts[i, 3])
        total += x1 + 2 * y1 - x2 * y2
    return total


def inputs(size: str) -> tuple[Any, ...]:
    return (np.random.default_rng(0).uniform(1, 3, (SIZES[size], 4)),)


@njit(error_model="numpy")
def by_hand(starts):  # type: ignore[no-untyped-def]
    """The steps are linear: counting them is all that the way back needs."""
    starts_bar = np.empty_like(starts)
    climbs = np.empty(64, np.int64)
    for i in range(starts.shape[0]):
        x1, y1, x2, y2 = starts[i, 0], starts[i, 1], starts[i, 2], starts[i, 3]
        moved = 1.0
        steps = 0
        while moved > CLOSE * CLOSE:
            climbed = 1.0
            count = 0
            while climbed > CLOSE * CLOSE:
                up, across = x1 / 4 - 2 * x2, y1 / 4 - 2 * y2
                x2 += STEP * up
                y2 += STEP * across
                climbed = up * up + across * across
                count += 1
            if steps == climbs.size:
                longer = np.empty(2 * steps, np.int64)
                longer[:steps] = climbs
                climbs = longer
            climbs[steps] = count
            steps += 1
            down, along = 2 * x1 + x2 / 4, 2 * y1 + y2 / 4
            x1 -= STEP * down
            y1 -= STEP * along
            moved = down * down + along * along
        a, b, c, d = 1.0, 2.0, -y2, -x2
        for step in range(steps - 1, -1, -1):
            a, c = a - STEP * 2 * a, c - STEP / 4 * a
            b, d = b - STEP * 2 * b, d - STEP / 4 * b
            for _ in range(climbs[step]):
                a, c = a + STEP / 4 * c, c - STEP * 2 * c
                b, d = b + STEP / 4 * d, d - STEP * 2 * d
        starts_bar[i, 0], starts_bar[i, 1], starts_bar[i, 2], starts_bar[i, 3] = a, b, c, d
    return starts_bar


def in_cpp() -> Callable[..., Any]:
    derivative = native_code.derivative("saddle")

    def gradient(starts: Any) -> Any:
        starts_bar = np.empty_like(starts)
        derivative(starts, starts.shape[0], starts_bar)
        return starts_bar

    return gradient


def in_jax() -> Callable[..., Any]:
    """In forward mode, as reverse mode has no loops of unknown length; all starts at once."""
    import jax
    import jax.numpy as jnp

    def slopes(z: Any) -> Any:
        return jnp.stack([2 * z[0] + z[2] / 4, 2 * z[1] + z[3] / 4, z[0] / 4 - 2 * z[2], z[1] / 4 - 2 * z[3]])

    def climb(carried: Any) -> Any:
        z, _ = carried
        up = slopes(z)[2:]
        return z.at[2:].add(STEP * up), jnp.sum(up**2)

    def descend(carried: Any) -> Any:
        z, _ = carried
        z, _ = jax.lax.while_loop(lambda c: c[1] > CLOSE * CLOSE, climb, (z, 1.0))
        down = slopes(z)[:2]
        return z.at[:2].add(-STEP * down), jnp.sum(down**2)

    def end(z: Any) -> Any:
        z, _ = jax.lax.while_loop(lambda c: c[1] > CLOSE * CLOSE, descend, (z, 1.0))
        return z[0] + 2 * z[1] - z[2] * z[3]

    return jax.jit(jax.vmap(jax.jacfwd(end)))


def in_autograd() -> Callable[..., Any]:
    import autograd

    return autograd.grad(program)


def in_torch() -> Callable[..., Any]:
    return torch_code.gradient(program, WRT)
