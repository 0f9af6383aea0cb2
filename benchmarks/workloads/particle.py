"""A charged particle steered to the origin: a field by differentiation inside of a path that is itself differentiated.

Siskind and Pearlmutter (2008), "Using programming language theory to make automatic differentiation sound and
efficient", section 4. The outer derivative is with respect to `w`, the place of one of the charges.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from typing import Any

from numba import njit

from .. import native_code, torch_code

WRT = (0,)
SIZES = {"tiny": 0.1, "dt 1e-4": 1e-4}


def potential(x, y, w):  # type: ignore[no-untyped-def]
    return 1 / math.sqrt((x - 10) ** 2 + (y - 10 + w) ** 2) + 1 / math.sqrt((x - 10) ** 2 + y**2)


def field(x, y, w):  # type: ignore[no-untyped-def]
    """The slope of the potential in x and y, as a user without a library writes it."""
    a = ((x - 10) ** 2 + (y - 10 + w) ** 2) ** -1.5
    b = ((x - 10) ** 2 + y**2) ** -1.5
    return -(x - 10) * (a + b), -(y - 10 + w) * a - y * b


def program(w, dt):  # type: ignore[no-untyped-def]
    """The square of where the particle crosses the axis, by Euler's steps and a last one of its own length."""
    x, y = 0.0, 8.0
    vx, vy = 0.75, 0.0
    while y + dt * vy > 0:
        gx, gy = field(x, y, w)
        x = x + dt * vx
        y = y + dt * vy
        vx = vx - dt * gx
        vy = vy - dt * gy
    rest = -y / vy
    return (x + rest * vx) ** 2


def inputs(size: str) -> tuple[Any, ...]:
    return 0.5, SIZES[size]


@njit(error_model="numpy")
def by_hand(w, dt):  # type: ignore[no-untyped-def]
    """Forward, with one tangent: there is one input."""
    x, y, vx, vy = 0.0, 8.0, 0.75, 0.0
    x_dot = y_dot = vx_dot = vy_dot = 0.0
    while y + dt * vy > 0:
        dx, dy, dz = x - 10, y - 10 + w, y
        dy_dot, dz_dot = y_dot + 1, y_dot
        r, s = dx * dx + dy * dy, dx * dx + dz * dz
        a, b = r**-1.5, s**-1.5
        a_dot = -3 * a / r * (dx * x_dot + dy * dy_dot)
        b_dot = -3 * b / s * (dx * x_dot + dz * dz_dot)
        gx, gy = -dx * (a + b), -dy * a - dz * b
        gx_dot = -x_dot * (a + b) - dx * (a_dot + b_dot)
        gy_dot = -dy_dot * a - dy * a_dot - dz_dot * b - dz * b_dot
        x, x_dot = x + dt * vx, x_dot + dt * vx_dot
        y, y_dot = y + dt * vy, y_dot + dt * vy_dot
        vx, vx_dot = vx - dt * gx, vx_dot - dt * gx_dot
        vy, vy_dot = vy - dt * gy, vy_dot - dt * gy_dot
    rest = -y / vy
    rest_dot = (-y_dot - rest * vy_dot) / vy
    end = x + rest * vx
    return 2 * end * (x_dot + rest_dot * vx + rest * vx_dot)


def in_cpp() -> Callable[..., Any]:
    return native_code.derivative("particle", ctypes.c_double)


def in_jax() -> Callable[..., Any]:
    """In forward mode, as reverse mode has no loops of unknown length."""
    import jax

    def end(w: Any, dt: Any) -> Any:
        def step(z: Any) -> Any:
            x, y, vx, vy = z
            gx, gy = field(x, y, w)
            return x + dt * vx, y + dt * vy, vx - dt * gx, vy - dt * gy

        x, y, vx, vy = jax.lax.while_loop(lambda z: z[1] + dt * z[3] > 0, step, (0.0, 8.0, 0.75, 0.0))
        return (x - y / vy * vx) ** 2

    return jax.jit(jax.jacfwd(end))


def in_autograd() -> Callable[..., Any]:
    import autograd

    return autograd.grad(program)


def in_torch() -> Callable[..., Any]:
    return torch_code.gradient(program, WRT)
