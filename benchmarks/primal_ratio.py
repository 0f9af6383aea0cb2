"""What a gradient costs over the plain NumPy function, in time and in memory, where the work is in the arrays.

Expressions that the memory bounds, on 10⁶ elements, and a network that matrix products bound (batch 256,
784-512-512-10, tanh, cross-entropy). Beside each stands value and gradient as a person would write them in NumPy, which
says how much of the ratio is the mathematics' own.

Targets: the gradient costs at most 3× the primal for the expressions and 3.5× for the network; its peak memory is at
most 1.5× that of the one written by hand. Memory is what tracemalloc sees, so only of libraries that allocate in NumPy.
"""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from .harness import BY_HAND, OURS, Case, Report, Row, measure, prepare, within

PRIMAL = "primal"
Loss = Callable[..., Any]


def polynomial(xp: Any, x: Any, y: Any) -> Any:
    return xp.sum(x * x * x - 2.0 * x * y + y)


def polynomial_by_hand(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, ...]:
    xx = x * x
    np.sum(xx * x - 2.0 * x * y + y)
    return 3.0 * xx - 2.0 * y, 1.0 - 2.0 * x


def distance(xp: Any, x: Any, y: Any) -> Any:
    return xp.sqrt(xp.sum((x - y) ** 2))


def distance_by_hand(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, ...]:
    d = x - y
    value = np.sqrt(np.sum(d**2))
    x_bar = d / value
    return x_bar, -x_bar


def average(xp: Any, w: Any, x: Any) -> Any:
    return xp.sum(w * x) / xp.sum(w)


def average_by_hand(w: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, ...]:
    total = np.sum(w)
    value = np.sum(w * x) / total
    return (x - value) / total, w / total


def smoothness(xp: Any, x: Any) -> Any:
    return xp.sum((x[1:] - x[:-1]) ** 2)


def smoothness_by_hand(x: np.ndarray) -> tuple[np.ndarray, ...]:
    d = x[1:] - x[:-1]
    np.sum(d**2)
    d *= 2.0
    x_bar = np.zeros_like(x)
    x_bar[1:] = d
    x_bar[:-1] -= d
    return (x_bar,)


def network(xp: Any, layers: Any, inputs: np.ndarray, labels: np.ndarray) -> Any:
    h = inputs
    for weights, bias in layers[:-1]:
        h = xp.tanh(h @ weights + bias)
    weights, bias = layers[-1]
    logits = h @ weights + bias
    z = logits - xp.max(logits, axis=1, keepdims=True)
    return xp.mean(xp.log(xp.sum(xp.exp(z), axis=1)) - z[np.arange(len(labels)), labels])


def network_by_hand(layers: Any, inputs: np.ndarray, labels: np.ndarray) -> Any:
    hs = [inputs]
    for weights, bias in layers[:-1]:
        hs.append(np.tanh(hs[-1] @ weights + bias))
    weights, bias = layers[-1]
    logits = hs[-1] @ weights + bias
    z = logits - np.max(logits, axis=1, keepdims=True)
    rows = np.arange(len(labels))
    p = np.exp(z)
    total = np.sum(p, axis=1, keepdims=True)
    np.mean(np.log(total[:, 0]) - z[rows, labels])
    bar = p / total
    bar[rows, labels] -= 1.0
    bar /= len(labels)
    gradient = []
    for k in range(len(layers) - 1, -1, -1):
        gradient.append((hs[k].T @ bar, bar.sum(axis=0)))
        if k:
            bar = (bar @ layers[k][0].T) * (1.0 - hs[k] * hs[k])
    return gradient[::-1]


def with_primal(loss: Loss, args: tuple[Any, ...]) -> Callable[[], None]:
    def run() -> None:
        loss(np, *args)

    return run


def with_retrograde(loss: Loss, args: tuple[Any, ...]) -> Callable[[], Any]:
    import retrograde

    f = partial(loss, np)
    return lambda: retrograde.gradient(f, *args)


def with_autograd(loss: Loss, args: tuple[Any, ...]) -> Callable[[], Any]:
    import autograd
    import autograd.numpy as anp

    gradient = autograd.grad(partial(loss, anp), argnum=tuple(range(len(args))))
    return lambda: gradient(*args)


def with_mygrad(loss: Loss, args: tuple[Any, ...]) -> Callable[[], Any]:
    import mygrad

    def gradient() -> Any:
        leaves = [mygrad.tensor(x, copy=False) for x in args]
        loss(mygrad, *leaves).backward()
        return [leaf.grad for leaf in leaves]

    return gradient


def with_torch(loss: Loss, args: tuple[Any, ...]) -> Callable[[], Any]:
    import torch

    leaves = [torch.from_numpy(x).requires_grad_() for x in args]
    return lambda: torch.autograd.grad(loss(torch, *leaves), leaves)


def with_jax(loss: Loss, args: tuple[Any, ...]) -> Callable[[], Any]:
    import jax

    jax.config.update("jax_enable_x64", True)
    gradient = jax.grad(partial(loss, jax.numpy), argnums=tuple(range(len(args))))
    values = jax.tree.map(jax.numpy.asarray, args)
    return lambda: jax.block_until_ready(gradient(*values))


def torch_network(layers: Any, inputs: np.ndarray, labels: np.ndarray) -> Callable[[], Any]:
    import torch

    leaves = [torch.from_numpy(x).requires_grad_() for layer in layers for x in layer]
    data, target = torch.from_numpy(inputs), torch.from_numpy(labels)

    def gradient() -> Any:
        h = data
        for k in range(0, len(leaves) - 2, 2):
            h = torch.tanh(h @ leaves[k] + leaves[k + 1])
        loss = torch.nn.functional.cross_entropy(h @ leaves[-2] + leaves[-1], target)
        return torch.autograd.grad(loss, leaves)

    return gradient


NETWORK = "network"
PEERS = {"autograd": with_autograd, "MyGrad": with_mygrad, "PyTorch": with_torch, "JAX, no jit": with_jax}
# The libraries whose arrays tracemalloc sees.
TRACED = (BY_HAND, OURS, "autograd", "MyGrad")


def expression_cases(n: int) -> list[Case]:
    rng = np.random.default_rng(0)
    x, y = rng.uniform(0.5, 1.5, n), rng.uniform(0.5, 1.5, n)
    cases = []
    for loss, hand, args in [
        (polynomial, polynomial_by_hand, (x, y)),
        (distance, distance_by_hand, (x, y)),
        (average, average_by_hand, (x, y)),
        (smoothness, smoothness_by_hand, (x,)),
    ]:
        makers = {
            BY_HAND: lambda loss, args, hand=hand: partial(hand, *args),
            PRIMAL: with_primal,
            OURS: with_retrograde,
            **PEERS,
        }
        cases += [Case(loss.__name__, name, partial(maker, loss, args)) for name, maker in makers.items()]
    return cases


def network_cases(batch: int, sizes: tuple[int, ...]) -> list[Case]:
    rng = np.random.default_rng(1)
    layers = [(rng.standard_normal((m, n)) / np.sqrt(m), np.zeros(n)) for m, n in pairwise(sizes)]
    inputs, labels = rng.standard_normal((batch, sizes[0])), rng.integers(0, sizes[-1], batch)

    def loss(xp: Any, layers: Any) -> Any:
        return network(xp, layers, inputs, labels)

    makers = {
        BY_HAND: lambda: lambda: (network_by_hand(layers, inputs, labels),),
        PRIMAL: lambda: with_primal(loss, (layers,)),
        OURS: lambda: with_retrograde(loss, (layers,)),
        "autograd": lambda: with_autograd(loss, (layers,)),
        "PyTorch": lambda: torch_network(layers, inputs, labels),
        "JAX, no jit": lambda: with_jax(loss, (layers,)),
    }
    return [Case(NETWORK, name, make) for name, make in makers.items()]


def peak_memory(case: Case) -> Row:
    row = Row(f"{case.race}, memory", case.name, "MB at peak")
    run = prepare(case, {})
    if isinstance(run, str):
        row.note = run
        return row
    gc.collect()
    tracemalloc.start()
    run()
    row.best = row.median = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    row.rounds = 1
    return row


def run(quick: bool) -> Report:
    cases = expression_cases(10**5 if quick else 10**6)
    cases += network_cases(64, (784, 128, 128, 10)) if quick else network_cases(256, (784, 512, 512, 10))
    rows = measure(cases, quick)
    rows += [peak_memory(case) for case in cases if case.name in TRACED]
    races = list(dict.fromkeys(case.race for case in cases))
    targets = [within(race, 3.5 if race == NETWORK else 3.0, PRIMAL) for race in races]
    targets += [within(f"{race}, memory", 1.5, BY_HAND) for race in races]
    return Report("The gradient over the primal, where the work is in the arrays", rows, targets)
