"""Compare every program of a function with differences of the function itself."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from truth import close, differences

from retrograde import RetrogradeError, pullback
from retrograde.compiler.arguments import kind_of, leaves_of, replaced
from retrograde.compiler.bridge import Bridge
from retrograde.compiler.options import Options
from retrograde.compiler.settings import Settings
from retrograde.compiler.source import source_of
from retrograde.compiler.specialisation import Specialisation


def specialised(
    function: Any,
    args: tuple[Any, ...],
    *,
    plain: bool = True,
    options: Options | None = None,
    one_number: bool = False,
) -> Specialisation:
    """A function for some arguments; functions of one number are reversed as well, unless `one_number`."""
    bound = inspect.signature(function).bind(*args)
    bound.apply_defaults()
    kinds = {name: kind_of(value, name) for name, value in bound.arguments.items()}
    options = replace(options or Options(), single=one_number)
    made = Specialisation(source_of(function), kinds, Settings(vectormath=not plain), options)
    made.is_plain = plain
    return made


class Truth:
    """What the function itself says, by running it: its outputs as one vector of numbers."""

    def __init__(self, function: Any, args: tuple[Any, ...], of: Specialisation) -> None:
        self.function, self.args, self.of = function, args, of
        self.kinds = list(of.arguments.values())
        self.leaves = [leaf for a, k in zip(args, self.kinds, strict=False) for leaf in leaves_of(a, k)]

    def outputs(self, leaves: list[Any]) -> list[Any]:
        """The results that have derivatives, and the final contents of written arrays."""
        own = [np.array(leaf) if isinstance(leaf, np.ndarray) else leaf for leaf in leaves]
        rest = iter(own)
        args = [replaced(a, k, rest) for a, k in zip(self.args, self.kinds, strict=False)]
        result = self.function(*args)
        flat = list(leaves_of(result, self.of.structure)) if result is not None else []
        return [np.array(flat[j]) for j in self.of.outputs] + [own[i] for i in self.of.finals]

    def slope(self, f: Callable[[list[Any]], float], i: int, h: float) -> Any:
        """The derivative of a real function of the leaves by leaf i: ∂f/∂Re + i ∂f/∂Im where that is complex."""
        x = self.leaves[i]
        along_real = differences(lambda value: f(self.moved(self.leaves, i, value + np.imag(x) * 1j)), np.real(x), h=h)
        if not np.iscomplexobj(x):
            return along_real
        return along_real + 1j * differences(
            lambda value: f(self.moved(self.leaves, i, np.real(x) + value * 1j)), np.imag(x), h=h
        )

    def moved(self, leaves: list[Any], i: int, value: Any) -> list[Any]:
        kind = type(self.leaves[i])
        value = value if np.iscomplexobj(self.leaves[i]) else np.real(value)
        return [*leaves[:i], value if kind is np.ndarray else kind(value), *leaves[i + 1 :]]


def check(
    function: Any,
    args: tuple[Any, ...],
    *,
    plain: bool = True,
    options: Options | None = None,
    forward: bool = True,
    second: bool = True,
    one_number: bool = False,
) -> None:
    """Value, pushforward, pullback and pullback along a direction of a function, against differences."""
    of = specialised(function, args, plain=plain, options=options, one_number=one_number)
    truth = Truth(function, args, of)
    x = truth.leaves
    single = any(t.dtype in ("float32", "complex64") for t in of.types)
    tol = {"rtol": 2e-3, "atol": 2e-3} if single else {"rtol": 1e-7, "atol": 1e-8}
    h = 1e-2 if single else 1e-3
    rng = np.random.default_rng(3)
    bridge = Bridge(of)
    want = truth.outputs(x)
    if forward:
        got = bridge.j([np.array(a) if isinstance(a, np.ndarray) else a for a in x], ())
        for a, b in zip(got, want, strict=True):
            close(np.asarray(a), b, rtol=1e-5 if single else 1e-12)

    y_bar = [drawn(rng, 0.5, y) for y in want]
    v = [drawn(rng, -1, a) if i in of.inputs else None for i, a in enumerate(x)]

    def weighted(leaves: list[Any]) -> float:
        return inner(y_bar, truth.outputs(leaves))

    bars = bridge.t(x, y_bar, ())
    along = 0.0
    for i in of.inputs:
        slope = truth.slope(weighted, i, h)
        close(in_field(bars[i], x[i]), slope, **tol)
        along += inner([slope], [v[i]])
    if not forward:
        return
    dots = bridge.j(x, (v,))
    close(inner(y_bar, dots), along, **tol)
    if not second:
        return

    def pulled(t: float, i: int) -> Any:
        moved = list(x)
        for k in of.inputs:
            moved = truth.moved(moved, k, x[k] + t * v[k])
        return in_field(bridge.t(moved, y_bar, ())[i], x[i])

    bars_dot = bridge.t(x, y_bar, (v,))
    for i in of.inputs:
        close(in_field(bars_dot[i], x[i]), differences(lambda t, i=i: pulled(float(t), i), 0.0, h=h), **tol)


def drawn(rng: np.random.Generator, low: float, like: Any) -> Any:
    """Random numbers, of the shape and the field of something."""
    real = rng.uniform(low, low + (1 if low > 0 else 2), np.shape(like))
    return real + 1j * rng.uniform(-1, 1, np.shape(like)) if np.iscomplexobj(like) else real


def inner(a: list[Any], b: list[Any]) -> float:
    """The real inner product of lists of arrays."""
    return float(sum(np.sum(np.real(np.conj(x) * y)) for x, y in zip(a, b, strict=True)))


def in_field(derivative: Any, of: Any) -> Any:
    """A derivative as an array; that of a real number must be real."""
    return np.asarray(derivative, dtype=complex if np.iscomplexobj(of) else float)


def check_against_eager(function: Any, args: tuple[Any, ...]) -> bool:
    """The pullback against that of the eager engine on the same source; whether the eager engine takes it."""
    of = specialised(function, args)
    truth = Truth(function, args, of)
    if of.finals or not of.outputs or any(t.dtype in ("float32", "complex64") for t in of.types):
        return False
    rng = np.random.default_rng(4)
    y_bar = [drawn(rng, 0.5, y)[()] for y in truth.outputs(truth.leaves)]
    try:
        y, back = pullback(function, *args)
        rest = iter(y_bar)
        seeds = [next(rest) if t.is_inexact else None for t in of.result_types]
        bars = back(replaced(y, of.structure, iter(seeds)))
    except (RetrogradeError, TypeError, ValueError):
        return False
    wanted = [leaf for bar, kind in zip(bars, of.arguments.values(), strict=False) for leaf in leaves_of(bar, kind)]
    got = Bridge(of).t(truth.leaves, y_bar, ())
    for i in of.inputs:
        want = np.zeros(np.shape(truth.leaves[i])) if wanted[i] is None else wanted[i]
        close(in_field(got[i], truth.leaves[i]), want, rtol=1e-9, atol=1e-11)
    return True
