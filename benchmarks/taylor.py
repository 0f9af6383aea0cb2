"""Taylor coefficients along a direction, against nested derivatives and JAX's own Taylor mode, in ms.

Nesting runs the function again inside each derivative, so that order n costs about 2ⁿ; a power series costs n². Nested
forward mode is the cheapest nesting; nested gradients are what users of reverse mode write. JAX's `experimental.jet`
propagates series as well; it is run without jit, as we are, and with it.

Targets: at order 8 at least 50× faster than nested `jvp` and than nested `gradient`; order 20 at most 8× order 8.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .harness import OURS, Case, Report, Target, faster, measure

W = np.random.default_rng(0).standard_normal((20, 20)) / 5


def scalar(x: Any, np: Any) -> Any:
    return np.sin(x) * np.exp(x * x) / (1 + x * x)


def network(x: Any, np: Any) -> Any:
    return np.sum(np.tanh(W @ np.tanh(W @ x)) ** 2)


PROBLEMS: dict[str, tuple[Callable[..., Any], Any]] = {
    "a number": (scalar, 0.3),
    "a network of 20 inputs": (network, np.linspace(0.1, 0.5, 20)),
    "an array of 1,000": (scalar, np.linspace(0.1, 0.5, 1000)),
}


def race(problem: str, order: int) -> str:
    return f"{problem}, order {order}"


def direction(x: Any) -> Any:
    return np.ones(np.shape(x))[()]


def ours(problem: str, order: int) -> Callable[[], Any]:
    import retrograde

    f, x = PROBLEMS[problem]
    v = direction(x)
    return lambda: np.sum(retrograde.taylor(lambda x: f(x, np), x, v, order)[order])


def nested(problem: str, order: int, derivative: Callable[[Any], Any]) -> Callable[[], Any]:
    """The last coefficient by `derivative` of `derivative` of …, of a function of one number."""
    f, x = PROBLEMS[problem]
    v = direction(x)

    def along(t: Any) -> Any:
        return np.sum(f(x + t * v, np))

    for _ in range(order):
        along = derivative(along)
    return lambda: along(0.0) / math.factorial(order)


def nested_jvp(problem: str, order: int) -> Callable[[], Any]:
    import retrograde

    return nested(problem, order, lambda f: lambda t: retrograde.jvp(f, (t,), (1.0,))[1])


def nested_gradient(problem: str, order: int) -> Callable[[], Any]:
    import retrograde

    return nested(problem, order, retrograde.grad)


def with_jax(problem: str, order: int, jit: bool) -> Callable[[], Any]:
    import jax
    from jax.experimental import jet

    jax.config.update("jax_enable_x64", True)
    f, x = PROBLEMS[problem]
    zero = np.zeros(np.shape(x))

    def coefficient(x: Any) -> Any:
        # jet takes and gives derivatives, not coefficients.
        series = [zero + 1.0] + [zero] * (order - 1)
        _, derivatives = jet.jet(lambda x: jax.numpy.sum(f(x, jax.numpy)), (x,), (series,))
        return derivatives[-1] / math.factorial(order)

    function = jax.jit(coefficient) if jit else coefficient
    value = jax.numpy.asarray(x)
    return lambda: function(value).block_until_ready()


def run(quick: bool) -> Report:
    orders = (4, 8) if quick else (8, 20)
    low, high = orders
    cases = [
        Case(race(problem, order), name, lambda make=make, problem=problem, order=order: make(problem, order))
        for problem in PROBLEMS
        for order in orders
        for name, make in (
            (OURS, ours),
            ("nested jvp", nested_jvp),
            ("nested gradient", nested_gradient),
            ("JAX jet, no jit", lambda problem, order: with_jax(problem, order, jit=False)),
            ("JAX jet, jit", lambda problem, order: with_jax(problem, order, jit=True)),
        )
        if not (name == "nested jvp" and order > 8)
        and not (name == "nested gradient" and (order > 8 or problem != "a number"))
        and not (name.startswith("JAX") and order > 8)
    ]
    targets = [faster(race(problem, 8), "nested jvp", 50) for problem in PROBLEMS]
    targets.append(faster(race("a number", 8), "nested gradient", 50))
    targets += [
        Target(
            f"{problem}: order {high} / order {low}",
            (race(problem, high), OURS),
            (race(problem, low), OURS),
            at_most=8,
        )
        for problem in PROBLEMS
    ]
    notes = [
        "Nested gradients of order 8 are run for a number alone, JAX's jet to order 8, since both take seconds beyond."
    ]
    return Report("Taylor coefficients along a direction", measure(cases, quick), targets, notes)
