"""Filling an array from its own earlier entries: `B[i] = B[i - 1] * 0.5 + x[i]`, forward and reverse, in µs a write.

A write must cost what it writes; a copy of the array for every version of it makes the loop quadratic. PyTorch writes
in place into a clone, JAX makes a new array with `at[i].set`; autograd has no way to write at all.

The second part mixes such writes with augmented ones, writes at integer arrays, writes through views that are made in
each turn, and reads of views that were made before the first write; in reverse mode, in forward mode, and to second
order (forward over reverse).

Targets: twice the elements cost at most 2.3× as much, at 10³, 10⁴ and 10⁵, in all of these; at 10⁴ at least 6× faster
than PyTorch. The peers run only where they end in seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .harness import BY_HAND, OURS, Case, Report, faster, growth, measure
from .read_loop import race

OURS_AS_WRITTEN = f"{OURS}, np.zeros"


def fill(b: Any, x: Any) -> Any:
    b[0] = x[0]
    for i in range(1, len(x)):
        b[i] = b[i - 1] * 0.5 + x[i]
    return b


def by_hand(x: np.ndarray) -> Callable[[], Any]:
    def gradient() -> Any:
        b_bar = 2.0 * fill(np.zeros_like(x), x)
        for i in range(len(x) - 1, 0, -1):
            b_bar[i - 1] += 0.5 * b_bar[i]
        return b_bar

    return gradient


def with_buffer(x: np.ndarray) -> Callable[[], Any]:
    import retrograde

    def loss(x: Any) -> Any:
        b = fill(retrograde.Buffer(x, len(x)), x).copy()
        return np.sum(b * b)

    return lambda: retrograde.gradient(loss, x)[0]


def as_written(x: np.ndarray) -> Callable[[], Any]:
    import retrograde

    def loss(x: Any) -> Any:
        b = fill(np.zeros(len(x)), x)
        return np.sum(b * b)

    return lambda: retrograde.gradient(loss, x)[0]


def with_mygrad(x: np.ndarray) -> Callable[[], Any]:
    import mygrad

    def gradient() -> Any:
        leaf = mygrad.tensor(x)
        b = fill(mygrad.zeros(len(x), dtype=float), leaf)
        mygrad.sum(b * b).backward()
        return leaf.grad

    return gradient


def with_torch(x: np.ndarray) -> Callable[[], Any]:
    import torch

    def gradient() -> Any:
        leaf = torch.tensor(x, requires_grad=True)
        b = fill(leaf.clone(), leaf)
        (b * b).sum().backward()
        return leaf.grad

    return gradient


def with_jax(x: np.ndarray) -> Callable[[], Any]:
    import jax

    jax.config.update("jax_enable_x64", True)

    def loss(x: Any) -> Any:
        b = jax.numpy.zeros_like(x).at[0].set(x[0])
        for i in range(1, len(x)):
            b = b.at[i].set(b[i - 1] * 0.5 + x[i])
        return (b * b).sum()

    gradient = jax.grad(loss)
    value = jax.numpy.asarray(x)
    return lambda: gradient(value).block_until_ready()


def mixed(x: Any) -> Any:
    b = np.zeros(len(x))
    evens, backwards = b[::2], b[::-1]
    b[0] = x[0]
    for i in range(1, len(x) - 1):
        b[i] = b[i - 1] * 0.5 + x[i]
        if i % 4 == 1:
            pair = b[i : i + 2]
            pair += 0.1 * x[i]
        elif i % 4 == 2:
            b[i] *= x[i - 1]
        elif i % 4 == 3:
            backwards[-1 - i] -= 0.5 * evens[i // 2]
        elif i % 8 == 4:
            np.add.at(b, [i, i - 1, i], 0.1 * x[i])
        else:
            b[[i, i - 1]] *= 0.5
    return np.sum(b * b)


def in_reverse(x: np.ndarray) -> Callable[[], Any]:
    import retrograde

    return lambda: retrograde.gradient(mixed, x)[0]


def in_forward(x: np.ndarray) -> Callable[[], Any]:
    import retrograde

    return lambda: retrograde.jvp(mixed, (x,), (np.ones_like(x),))


def to_second_order(x: np.ndarray) -> Callable[[], Any]:
    import retrograde

    return lambda: retrograde.hvp(mixed, x, np.ones_like(x))


MODES = {"reverse": in_reverse, "forward": in_forward, "second order": to_second_order}


def race_of_mode(mode: str, n: int) -> str:
    return f"mixed, {mode}, {race(n)}"


# Each with the largest n that it is given.
MAKERS = {
    BY_HAND: (by_hand, 10**6),
    OURS: (with_buffer, 10**6),
    OURS_AS_WRITTEN: (as_written, 10**6),
    "MyGrad": (with_mygrad, 2 * 10**3),
    "PyTorch": (with_torch, 2 * 10**4),
    "JAX, no jit": (with_jax, 10**3),
}


def run(quick: bool) -> Report:
    sizes = (10**3, 10**4) if quick else (10**3, 10**4, 10**5)
    x = np.random.default_rng(0).standard_normal(2 * sizes[-1])
    cases = [
        Case(race(n), name, lambda maker=maker, n=n: maker(x[:n]), "µs/write", 1e6 / n)
        for size in sizes
        for n in (size, 2 * size)
        for name, (maker, largest) in MAKERS.items()
        if n <= largest and not (quick and n * 2 > largest)
    ]
    cases += [
        Case(race_of_mode(mode, n), OURS, lambda maker=maker, n=n: maker(x[:n]), "µs/write", 1e6 / n)
        for mode, maker in MODES.items()
        for size in sizes
        for n in (size, 2 * size)
    ]
    targets = [growth(race(n), race(2 * n), 2.3, name) for name in (OURS, OURS_AS_WRITTEN) for n in sizes]
    targets += [growth(race_of_mode(mode, n), race_of_mode(mode, 2 * n), 2.3) for mode in MODES for n in sizes]
    targets.append(faster(race(10**4), "PyTorch", 6))
    return Report("Filling in a loop: B[i] = B[i - 1] * 0.5 + x[i]", measure(cases, quick), targets)
