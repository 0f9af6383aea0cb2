"""Many directions and many examples at once: dense Jacobians and Hessians, and gradients of examples.

A function ℝ²⁰⁰ → ℝ²⁰⁰ of two matrix products, the Hessian of a function of 200 variables, and the gradients of the loss
of a small network (64-64-1, tanh) for each of 1,000 examples. The peers call their own functions for it, JAX without
jit. "in a loop" is Retrograde, one direction or example after the other.

Targets: Jacobian and Hessian at least 10× faster than autograd and 3× faster than the loops, never slower than JAX; the
gradients of examples at least 20× faster than the loop, and at most twice the time of PyTorch's vmap(grad).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from .harness import OURS, Case, Report, faster, measure, within

JACOBIAN, HESSIAN, EXAMPLES = "Jacobian", "Hessian", "gradients of examples"
ROWS, COLUMNS, LOOP = "rows in a loop", "columns in a loop", "in a loop"


def function(xp: Any, a: Any, b: Any, x: Any) -> Any:
    h = xp.tanh(a @ x + b)
    return xp.sin(a.T @ h) * h + xp.exp(-x * x)


def scalar(xp: Any, a: Any, b: Any, x: Any) -> Any:
    h = xp.tanh(a @ x + b)
    return xp.sum(h * h) + xp.sum(xp.log(1 + x * x)) * xp.sum(xp.cos(h))


def loss(xp: Any, p: Any, x: Any, y: Any) -> Any:
    w, b, v, c = p
    return (v @ xp.tanh(w @ x + b) + c - y) ** 2


def data(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.standard_normal((n, n)) / np.sqrt(n), rng.standard_normal(n), rng.standard_normal(n)


def network(count: int, width: int = 64) -> tuple[tuple[Any, ...], np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    w, v = rng.standard_normal((width, width)) / np.sqrt(width), rng.standard_normal(width) / np.sqrt(width)
    p = (w, rng.standard_normal(width), v, np.array(0.1))
    return p, rng.standard_normal((count, width)), rng.standard_normal(count)


# --- Retrograde ------------------------------------------------------------------------------------------------------


def jacobian(n: int) -> Callable[[], Any]:
    import retrograde as rg

    a, b, x = data(n)
    f = partial(function, np, a, b)
    return lambda: rg.jacobian(f, x)


def rows_in_a_loop(n: int) -> Callable[[], Any]:
    import retrograde as rg

    a, b, x = data(n)
    f, units = partial(function, np, a, b), np.eye(n)

    def run() -> Any:
        _, back = rg.pullback(f, x)
        return np.stack([back(unit)[0] for unit in units])

    return run


def columns_in_a_loop(n: int) -> Callable[[], Any]:
    import retrograde as rg

    a, b, x = data(n)
    f, units = partial(function, np, a, b), np.eye(n)
    return lambda: np.stack([rg.jvp(f, (x,), (unit,))[1] for unit in units], axis=1)


def hessian(n: int) -> Callable[[], Any]:
    import retrograde as rg

    a, b, x = data(n)
    f = partial(scalar, np, a, b)
    return lambda: rg.hessian(f, x)


def hessian_in_a_loop(n: int) -> Callable[[], Any]:
    import retrograde as rg

    a, b, x = data(n)
    f, units = partial(scalar, np, a, b), np.eye(n)
    return lambda: np.stack([rg.hvp(f, x, unit) for unit in units])


def examples(count: int) -> Callable[[], Any]:
    import retrograde as rg

    p, x, y = network(count)
    gradients = rg.vmap(rg.grad(partial(loss, np)), in_axes=(None, 0, 0))
    return lambda: gradients(p, x, y)


def examples_in_a_loop(count: int) -> Callable[[], Any]:
    import retrograde as rg

    p, x, y = network(count)
    gradient = rg.grad(partial(loss, np))

    def run() -> Any:
        each = [gradient(p, *example) for example in zip(x, y, strict=True)]
        return tuple(np.stack(parts) for parts in zip(*each, strict=True))

    return run


# --- the peers -------------------------------------------------------------------------------------------------------


def autograd_jacobian(n: int) -> Callable[[], Any]:
    import autograd
    import autograd.numpy as anp

    a, b, x = data(n)
    f = autograd.jacobian(partial(function, anp, a, b))
    return lambda: f(x)


def autograd_hessian(n: int) -> Callable[[], Any]:
    import autograd
    import autograd.numpy as anp

    a, b, x = data(n)
    f = autograd.hessian(partial(scalar, anp, a, b))
    return lambda: f(x)


def jax_of(transform: str, f: Callable[..., Any], n: int) -> Callable[[], Any]:
    import jax

    jax.config.update("jax_enable_x64", True)
    a, b, x = (jax.numpy.array(part) for part in data(n))
    transformed = getattr(jax, transform)(partial(f, jax.numpy, a, b))
    return lambda: np.asarray(transformed(x))


def jax_examples(count: int) -> Callable[[], Any]:
    import jax

    jax.config.update("jax_enable_x64", True)
    p, x, y = jax.tree.map(jax.numpy.array, network(count))
    gradients = jax.vmap(jax.grad(partial(loss, jax.numpy)), in_axes=(None, 0, 0))
    return lambda: tuple(map(np.asarray, gradients(p, x, y)))


def torch_examples(count: int) -> Callable[[], Any]:
    import torch

    torch.set_num_threads(1)
    p, x, y = network(count)
    p, x, y = tuple(map(torch.tensor, p)), torch.tensor(x), torch.tensor(y)
    gradients = torch.func.vmap(torch.func.grad(partial(loss, torch)), in_dims=(None, 0, 0))
    return lambda: tuple(part.numpy() for part in gradients(p, x, y))


def run(quick: bool = False) -> Report:
    n, count = (50, 100) if quick else (200, 1000)
    cases = [
        Case(JACOBIAN, OURS, partial(jacobian, n)),
        Case(JACOBIAN, ROWS, partial(rows_in_a_loop, n)),
        Case(JACOBIAN, COLUMNS, partial(columns_in_a_loop, n)),
        Case(JACOBIAN, "autograd", partial(autograd_jacobian, n)),
        Case(JACOBIAN, "JAX, jacfwd", partial(jax_of, "jacfwd", function, n)),
        Case(JACOBIAN, "JAX, jacrev", partial(jax_of, "jacrev", function, n)),
        Case(HESSIAN, OURS, partial(hessian, n)),
        Case(HESSIAN, LOOP, partial(hessian_in_a_loop, n)),
        Case(HESSIAN, "autograd", partial(autograd_hessian, n)),
        Case(HESSIAN, "JAX", partial(jax_of, "hessian", scalar, n)),
        Case(EXAMPLES, OURS, partial(examples, count)),
        Case(EXAMPLES, LOOP, partial(examples_in_a_loop, count)),
        Case(EXAMPLES, "JAX", partial(jax_examples, count)),
        Case(EXAMPLES, "PyTorch", partial(torch_examples, count)),
    ]
    targets = [
        faster(JACOBIAN, "autograd", 10),
        faster(JACOBIAN, ROWS, 3),
        faster(JACOBIAN, COLUMNS, 3),
        within(JACOBIAN, 1, "JAX, jacfwd"),
        within(JACOBIAN, 1, "JAX, jacrev"),
        faster(HESSIAN, "autograd", 10),
        faster(HESSIAN, LOOP, 3),
        within(HESSIAN, 1, "JAX"),
        faster(EXAMPLES, LOOP, 20),
        within(EXAMPLES, 2, "PyTorch"),
    ]
    return Report("Jacobians, Hessians and gradients of examples", measure(cases, quick), targets)
