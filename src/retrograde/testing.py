"""Checks of derivatives against finite differences, for users' own functions and rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from retrograde.forward.jvp import jvp
from retrograde.reverse.pullback import pullback
from retrograde.trace.handle import like_of
from retrograde.trace.structure import flatten, is_variable, map_leaves, unflatten

__all__ = ["check_gradient", "check_rule"]

# Central differences of sixth order: the error of the formula and of rounding meet near h = ε^(1/7).
_WEIGHTS = ((1, 3 / 4), (2, -3 / 20), (3, 1 / 60))
_STEP = {"f": {8: 2e-3, 4: 6e-2}, "c": {16: 2e-3, 8: 6e-2}}


def check_gradient(
    f: Callable[..., Any],
    *args: Any,
    order: int = 1,
    modes: tuple[str, ...] = ("reverse", "forward"),
    rtol: float = 1e-6,
    atol: float = 1e-8,
    seed: int = 0,
    **kwargs: Any,
) -> None:
    """Compare the derivatives of `f` at a point with finite differences, along random directions.

    Args:
        f: returns a number, an array, or a container of these.
        *args: the point: numbers, arrays, nested containers.
        order: 2 checks the derivative of the derivative as well.
        modes: "reverse", "forward" or both.
        rtol, atol: the tolerances. Differences are good to about 1e-10 in float64 where `f` is smooth at the scale of
            0.01; single precision needs about 1e-3.
        seed: of the random directions.
        **kwargs: passed to `f`.

    Raises:
        AssertionError: a derivative and the differences do not agree; says in which mode and by how much.

    >>> check_gradient(lambda x: np.sum(np.sin(x) ** 2), np.array([0.3, 1.2]), order=2)
    """
    rng = np.random.default_rng(seed)
    directions = tuple(_random_like(arg, rng) for arg in args)
    y = f(*args, **kwargs)
    y_bar = _random_like(y, rng)

    def along(t: float) -> Any:
        return f(*(_moved(arg, v, t) for arg, v in zip(args, directions, strict=True)), **kwargs)

    wanted = _inner(y_bar, _difference(along, args))
    found: dict[str, Any] = {}
    if "reverse" in modes:
        bars = pullback(f, *args, **kwargs)[1](y_bar)
        found["reverse"] = sum(_inner(bar, v) for bar, v in zip(bars, directions, strict=True))
    if "forward" in modes:
        found["forward"] = _inner(y_bar, jvp(f, args, directions, **kwargs)[1])
    for mode, value in found.items():
        what = f"the {mode}-mode derivative of order {order}, along a random direction,"
        _check_close(value, wanted, rtol, atol, what)
    if order > 1:

        def derivative(*xs: Any) -> Any:
            return jvp(f, xs, directions, **kwargs)[1] if "forward" in modes else pullback(f, *xs, **kwargs)[1](y_bar)

        check_gradient(derivative, *args, order=order - 1, modes=modes, rtol=rtol * 10, atol=atol * 10, seed=seed + 1)


def check_rule(f: Callable[..., Any], *args: Any, rtol: float = 1e-6, atol: float = 1e-8, seed: int = 0) -> None:
    """Check the rules of a primitive at a point.

    Its pullback and its pushforward agree with finite differences and with each other (⟨ȳ, J ẋ⟩ = ⟨Jᵀ ȳ, ẋ⟩), a
    pullback gives the same when it is called twice, cotangents have the shapes and dtypes of the arguments, and the
    arguments are not changed.

    Raises:
        AssertionError: a law is broken; says which.
    """
    before = [map_leaves(lambda x: np.array(x), arg) for arg in args]
    check_gradient(f, *args, modes=("reverse",), rtol=rtol, atol=atol, seed=seed)
    check_gradient(f, *args, modes=("forward",), rtol=rtol, atol=atol, seed=seed)
    rng = np.random.default_rng(seed)
    directions = tuple(_random_like(arg, rng) for arg in args)
    y, back = pullback(f, *args)
    y_bar = _random_like(y, rng)
    bars = back(y_bar)
    pulled = sum(_inner(bar, v) for bar, v in zip(bars, directions, strict=True))
    pushed = _inner(y_bar, jvp(f, args, directions)[1])
    _check_close(pulled, pushed, rtol, atol, "⟨Jᵀ ȳ, ẋ⟩ against ⟨ȳ, J ẋ⟩")
    for first, second in zip(flatten(bars)[0], flatten(back(y_bar))[0], strict=True):
        assert np.array_equal(first, second, equal_nan=True), (
            "the pullback gives something else when it is called again"
        )
    for arg, bar in zip(args, bars, strict=True):
        for x, x_bar in zip(flatten(arg)[0], flatten(bar)[0], strict=False):
            if is_variable(x):
                wanted, have = like_of(x), like_of(x_bar)
                assert have == wanted, f"a cotangent has shape and dtype {have}, its argument {wanted}"
    for arg, copy in zip(args, before, strict=True):
        for x, old in zip(flatten(arg)[0], flatten(copy)[0], strict=True):
            assert np.array_equal(x, old, equal_nan=np.asarray(old).dtype.kind in "fc"), "an argument was changed"


def _random_like(tree: Any, rng: np.random.Generator) -> Any:
    def direction(leaf: Any) -> Any:
        if not is_variable(leaf):
            return None
        shape, dtype = like_of(leaf)
        v = rng.standard_normal(shape)
        return np.asarray(v + 1j * rng.standard_normal(shape) if dtype.kind == "c" else v, dtype)[()]

    leaves, structure = flatten(tree)
    return unflatten(structure, [direction(leaf) for leaf in leaves])


def _moved(tree: Any, direction: Any, t: float) -> Any:
    leaves, structure = flatten(tree)
    steps = _leaves_of(direction, leaves)
    moved = [
        leaf if not is_variable(leaf) else np.asarray(leaf + np.asarray(t * v, like_of(leaf)[1]))[()]
        for leaf, v in zip(leaves, steps, strict=True)
    ]
    return unflatten(structure, moved)


def _leaves_of(tree: Any, like: list[Any]) -> list[Any]:
    """The leaves of a tree that holds None at constants, one for each of `like`."""
    variables = iter(flatten(tree)[0])
    return [next(variables) if is_variable(leaf) else None for leaf in like]


def _difference(along: Callable[[float], Any], args: tuple[Any, ...]) -> Any:
    dtypes = [like_of(leaf)[1] for arg in args for leaf in flatten(arg)[0] if is_variable(leaf)]
    h = max((_STEP[d.kind].get(d.itemsize, 2e-3) for d in dtypes), default=2e-3)
    total: list[Any] | None = None
    structure = None
    for k, weight in _WEIGHTS:
        ahead, structure = flatten(along(k * h))
        behind = flatten(along(-k * h))[0]
        terms = [weight / h * (a - b) if is_variable(a) else None for a, b in zip(ahead, behind, strict=True)]
        total = terms if total is None else [t if t is None else s + t for s, t in zip(total, terms, strict=True)]
    return unflatten(structure, total or [])


def _inner(a: Any, b: Any) -> float:
    """The real inner product Re Σ conj(a) b over all leaves; None counts as zero."""
    total = 0.0
    if a is None or b is None:
        return total
    for x, y in zip(flatten(a)[0], flatten(b)[0], strict=False):
        if x is not None and y is not None:
            total = total + np.sum(np.real(np.conj(x) * y))
    return total


def _check_close(found: Any, wanted: Any, rtol: float, atol: float, what: str) -> None:
    if not np.isclose(found, wanted, rtol=rtol, atol=atol, equal_nan=True):
        raise AssertionError(f"{what} is {found}; finite differences give {wanted} (off by {abs(found - wanted):.3g})")
