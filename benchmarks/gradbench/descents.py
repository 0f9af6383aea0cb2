"""Gradient descents through functions that take derivatives or descend themselves, with each mode in each place.

Siskind and Pearlmutter (2008), "Using programming language theory to make automatic differentiation sound and
efficient", section 4: the step grows twofold after ten that led down, and is halved when one does not.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import retrograde as rg

CLOSE = 1e-5
TIME_STEP = 0.1
Gradient = Callable[[Callable[[Any], Any], Any], Any]


def by_forward(f: Callable[[Any], Any], x: Any) -> Any:
    return np.array([rg.jvp(f, (x,), (direction,))[1] for direction in np.eye(len(x))])


def by_reverse(f: Callable[[Any], Any], x: Any) -> Any:
    return rg.grad(f)(x)


MODES: dict[str, Gradient] = {"f": by_forward, "r": by_reverse}


def length(v: Any) -> Any:
    return math.sqrt(sum(x * x for x in v))


def argmin(f: Callable[[Any], Any], x: Any, gradient: Gradient) -> Any:
    value, slope = f(x), gradient(f, x)
    step, downs = CLOSE, 0
    while length(slope) > CLOSE:
        if downs == 10:
            step, downs = 2 * step, 0
        moved = x - step * slope
        if length(x - moved) <= CLOSE:
            break
        value_there = f(moved)
        if value_there < value:
            x, value, slope = moved, value_there, gradient(f, moved)
            downs += 1
        else:
            step, downs = step / 2, 0
    return x


def argmax(f: Callable[[Any], Any], x: Any, gradient: Gradient) -> Any:
    return argmin(lambda x: -f(x), x, gradient)


def saddle(start: Any, modes: str) -> Any:
    """The point x that minimises the maximum over y of a function of both, and that y."""
    outer, inner = MODES[modes[0]], MODES[modes[1]]

    def f(x: Any, y: Any) -> Any:
        return (x[0] ** 2 + x[1] ** 2) - (y[0] ** 2 + y[1] ** 2)

    def highest(x: Any) -> Any:
        return f(x, argmax(lambda y: f(x, y), start, inner))

    x = argmin(highest, start, outer)
    return np.concatenate([x, argmax(lambda y: f(x, y), start, outer)])


def particle(w: float, modes: str) -> Any:
    """Where a charge has to be so that a particle in its field, and in that of another one, meets the origin."""
    outer, inner = MODES[modes[0]], MODES[modes[1]]

    def missed_by(w: Any) -> Any:
        def potential(x: Any) -> Any:
            near = 1 / ((x[0] - 10) ** 2 + (x[1] - 10 + w[0]) ** 2) ** 0.5
            return near + 1 / ((x[0] - 10) ** 2 + x[1] ** 2) ** 0.5

        x, velocity = np.array([0.0, 8.0]), np.array([0.75, 0.0])
        while True:
            acceleration = -inner(potential, x)
            there = x + TIME_STEP * velocity
            if there[1] <= 0:
                break
            x, velocity = there, velocity + TIME_STEP * acceleration
        rest = -x[1] / velocity[1]
        return (x[0] + rest * velocity[0]) ** 2

    return float(argmin(missed_by, np.array([w]), outer)[0])
