"""Bundle adjustment: where cameras see points, against where they were seen. Derivative: the blocks of the Jacobian.

A camera is (rotation 3, centre 3, focal length, principal point 2, radial distortion 2). Each observation has a camera
and a point of its own here (as many copies as it takes), so that the Jacobian is a block of 2 × 15 an observation, and
two pullbacks give all of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit, prange

from .. import native_code

WRT = (0, 1, 2)
SIZES = {"tiny": 3, "31,843": 31_843, "204,472": 204_472}


def rotated(rotation, point):  # type: ignore[no-untyped-def]
    """A point turned about an axis by Rodrigues' formula."""
    square = rotation[0] ** 2 + rotation[1] ** 2 + rotation[2] ** 2
    if square == 0:
        return point + np.cross(rotation, point)
    angle = math.sqrt(square)
    axis = rotation / angle
    along = (axis[0] * point[0] + axis[1] * point[1] + axis[2] * point[2]) * (1 - math.cos(angle))
    return point * math.cos(angle) + np.cross(axis, point) * math.sin(angle) + axis * along


def projected(camera, point):  # type: ignore[no-untyped-def]
    seen = rotated(camera[:3], point - camera[3:6])
    u = seen[0] / seen[2]
    v = seen[1] / seen[2]
    r2 = u * u + v * v
    distortion = 1 + camera[9] * r2 + camera[10] * r2 * r2
    return u * distortion * camera[6] + camera[7], v * distortion * camera[6] + camera[8]


def program(cameras, points, weights, features):  # type: ignore[no-untyped-def]
    errors = np.empty((weights.size, 2))
    for i in prange(weights.size):
        u, v = projected(cameras[i], points[i])
        errors[i, 0] = weights[i] * (u - features[i, 0])
        errors[i, 1] = weights[i] * (v - features[i, 1])
    return errors


def inputs(size: str) -> tuple[Any, ...]:
    p = SIZES[size]
    rng = np.random.default_rng(0)
    cameras = np.empty((p, 11))
    cameras[:, :3] = rng.uniform(-0.5, 0.5, (p, 3))
    cameras[:, 3:6] = rng.uniform(-1, 1, (p, 3)) - np.array([0.0, 0.0, 10.0])
    cameras[:, 6] = rng.uniform(500, 600, p)
    cameras[:, 7:9] = rng.uniform(-1, 1, (p, 2))
    cameras[:, 9:] = rng.uniform(-0.1, 0.1, (p, 2))
    points = rng.uniform(-1, 1, (p, 3))
    return cameras, points, rng.uniform(0.5, 1.5, p), rng.uniform(-10, 10, (p, 2))


@njit(error_model="numpy")
def by_hand(cameras, points, weights, features):  # type: ignore[no-untyped-def]
    """Blocks (p, 2, 15): camera, point, weight."""
    p = weights.size
    blocks = np.empty((p, 2, 15))
    for i in range(p):
        c, block = cameras[i], blocks[i]
        x0, x1, x2 = points[i, 0] - c[3], points[i, 1] - c[4], points[i, 2] - c[5]
        square = c[0] * c[0] + c[1] * c[1] + c[2] * c[2]
        angle = math.sqrt(square)
        cos, sin = math.cos(angle), math.sin(angle)
        inverse = 1 / angle
        a0, a1, a2 = c[0] * inverse, c[1] * inverse, c[2] * inverse
        w0, w1, w2 = a1 * x2 - a2 * x1, a2 * x0 - a0 * x2, a0 * x1 - a1 * x0
        dot = a0 * x0 + a1 * x1 + a2 * x2
        along = dot * (1 - cos)
        s0 = x0 * cos + w0 * sin + a0 * along
        s1 = x1 * cos + w1 * sin + a1 * along
        s2 = x2 * cos + w2 * sin + a2 * along
        u, v = s0 / s2, s1 / s2
        r2 = u * u + v * v
        distortion = 1 + c[9] * r2 + c[10] * r2 * r2
        slope = c[9] + 2 * c[10] * r2  # ∂ distortion / ∂ r2
        f, weight = c[6], weights[i]
        for row in range(2):
            p_u = 1.0 if row == 0 else 0.0
            p_v = 1.0 - p_u
            here = u if row == 0 else v
            out = block[row]
            out[14] = here * distortion * f + c[7 + row] - features[i, row]
            out[6] = weight * here * distortion
            out[7] = weight * p_u
            out[8] = weight * p_v
            distortion_bar = weight * f * here
            out[9] = distortion_bar * r2
            out[10] = distortion_bar * r2 * r2
            r2_bar = distortion_bar * slope
            u_bar = weight * f * distortion * p_u + 2 * u * r2_bar
            v_bar = weight * f * distortion * p_v + 2 * v * r2_bar
            b0, b1 = u_bar / s2, v_bar / s2
            b2 = -(u_bar * u + v_bar * v) / s2
            # s = x cos + (a × x) sin + a along
            along_bar = b0 * a0 + b1 * a1 + b2 * a2
            dot_bar = along_bar * (1 - cos)
            cos_bar = b0 * x0 + b1 * x1 + b2 * x2 - along_bar * dot
            sin_bar = b0 * w0 + b1 * w1 + b2 * w2
            c0, c1, c2 = b0 * sin, b1 * sin, b2 * sin
            # w = a × x:  x_bar += c × a, a_bar += x × c
            x0_bar = b0 * cos + (c1 * a2 - c2 * a1) + dot_bar * a0
            x1_bar = b1 * cos + (c2 * a0 - c0 * a2) + dot_bar * a1
            x2_bar = b2 * cos + (c0 * a1 - c1 * a0) + dot_bar * a2
            a0_bar = b0 * along + (x1 * c2 - x2 * c1) + dot_bar * x0
            a1_bar = b1 * along + (x2 * c0 - x0 * c2) + dot_bar * x1
            a2_bar = b2 * along + (x0 * c1 - x1 * c0) + dot_bar * x2
            inverse_bar = a0_bar * c[0] + a1_bar * c[1] + a2_bar * c[2]
            angle_bar = sin_bar * cos - cos_bar * sin - inverse_bar * inverse * inverse
            out[0] = a0_bar * inverse + angle_bar * a0
            out[1] = a1_bar * inverse + angle_bar * a1
            out[2] = a2_bar * inverse + angle_bar * a2
            out[3], out[4], out[5] = -x0_bar, -x1_bar, -x2_bar
            out[11], out[12], out[13] = x0_bar, x1_bar, x2_bar
    return blocks


def shown(answer: Any) -> Any:
    """A derivative as blocks: pullbacks give the two rows of all cameras, of all points and of all weights."""
    if isinstance(answer, tuple):
        cameras, points, weights = answer
        return np.moveaxis(np.concatenate([cameras, points, weights[..., None]], 2), 0, 1)
    return answer


def in_cpp() -> Callable[..., Any]:
    derivative = native_code.derivative("ba")

    def jacobian(cameras: Any, points: Any, weights: Any, features: Any) -> Any:
        blocks = np.empty((weights.size, 2, 15))
        derivative(cameras, points, weights, features, weights.size, blocks)
        return blocks

    return jacobian


def in_jax() -> Callable[..., Any]:
    import jax
    import jax.numpy as jnp

    def rotated(rotation: Any, point: Any) -> Any:
        angle = jnp.sqrt(jnp.sum(rotation**2))
        axis = rotation / angle
        along = jnp.dot(axis, point) * (1 - jnp.cos(angle))
        return point * jnp.cos(angle) + jnp.cross(axis, point) * jnp.sin(angle) + axis * along

    def errors(unknowns: Any, feature: Any) -> Any:
        camera, point, weight = unknowns[:11], unknowns[11:14], unknowns[14]
        seen = rotated(camera[:3], point - camera[3:6])
        uv = seen[:2] / seen[2]
        r2 = jnp.sum(uv**2)
        return weight * (uv * (1 + camera[9] * r2 + camera[10] * r2 * r2) * camera[6] + camera[7:9] - feature)

    blocks = jax.vmap(jax.jacrev(errors))

    @jax.jit
    def derivative(cameras: Any, points: Any, weights: Any, features: Any) -> Any:
        return blocks(jnp.concatenate([cameras, points, weights[:, None]], 1), features)

    return derivative


def in_autograd() -> Callable[..., Any]:
    """All observations at once, and one sweep for each of the two rows of their blocks."""
    import autograd.numpy as anp
    from autograd import make_vjp

    def cross(a: Any, b: Any) -> Any:
        return anp.stack([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])

    def errors(unknowns: Any, features: Any) -> Any:
        rotation, centre, point = unknowns[:3], unknowns[3:6], unknowns[11:14]
        x = point - centre
        angle = anp.sqrt(anp.sum(rotation**2, 0))
        axis = rotation / angle
        along = anp.sum(axis * x, 0) * (1 - anp.cos(angle))
        seen = x * anp.cos(angle) + cross(axis, x) * anp.sin(angle) + axis * along
        uv = seen[:2] / seen[2]
        r2 = anp.sum(uv**2, 0)
        distortion = 1 + unknowns[9] * r2 + unknowns[10] * r2 * r2
        return unknowns[14] * (uv * distortion * unknowns[6] + unknowns[7:9] - features)

    def derivative(cameras: Any, points: Any, weights: Any, features: Any) -> Any:
        unknowns = np.concatenate([cameras, points, weights[:, None]], 1).T
        back, values = make_vjp(errors)(unknowns, features.T)
        rows = [back(np.repeat(np.eye(2)[row][:, None], values.shape[1], 1)) for row in range(2)]
        return np.transpose(np.stack(rows), (2, 0, 1))

    return derivative


def in_torch() -> Callable[..., Any]:
    """All observations at once, and one sweep for each of the two rows of their blocks."""
    import torch

    def errors(unknowns: Any, features: Any) -> Any:
        rotation, centre, point = unknowns[:3], unknowns[3:6], unknowns[11:14]
        x = point - centre
        angle = torch.sqrt(torch.sum(rotation**2, 0))
        axis = rotation / angle
        along = torch.sum(axis * x, 0) * (1 - torch.cos(angle))
        seen = x * torch.cos(angle) + torch.linalg.cross(axis, x, dim=0) * torch.sin(angle) + axis * along
        uv = seen[:2] / seen[2]
        r2 = torch.sum(uv**2, 0)
        distortion = 1 + unknowns[9] * r2 + unknowns[10] * r2 * r2
        return unknowns[14] * (uv * distortion * unknowns[6] + unknowns[7:9] - features)

    def derivative(cameras: Any, points: Any, weights: Any, features: Any) -> Any:
        unknowns = torch.from_numpy(np.concatenate([cameras, points, weights[:, None]], 1).T).requires_grad_()
        found = errors(unknowns, torch.from_numpy(features.T))
        rows = [torch.autograd.grad(found[row].sum(), unknowns, retain_graph=row == 0)[0] for row in range(2)]
        return np.transpose(torch.stack(rows).numpy(), (2, 0, 1))

    return derivative
