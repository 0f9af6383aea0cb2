"""Hand tracking: a skinned hand posed by 26 numbers, against measured points. Derivative: the Jacobian, by columns.

`theta` holds the global rotation (3), the translation (3), and four angles a finger. A point lies in a triangle
of the surface, at barycentric coordinates `us` of its own: their Jacobian is one block of 3 × 2 a point, and so two
directions (all first coordinates, all second ones) are enough for all of it: 28 directions.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

WRT = (0, 1)
# (bones, vertices, points)
SIZES = {"tiny": (22, 6, 4), "small c100": (22, 544, 100), "big c800": (22, 10_000, 800)}


def axis_rotation(vector):  # type: ignore[no-untyped-def]
    angle = math.sqrt(vector[0] ** 2 + vector[1] ** 2 + vector[2] ** 2)
    r = np.eye(3)
    if angle < 0.0001:
        return r
    x, y, z = vector[0] / angle, vector[1] / angle, vector[2] / angle
    s, c = math.sin(angle), math.cos(angle)
    r[0, 0] = x * x + (1 - x * x) * c
    r[0, 1] = x * y * (1 - c) - z * s
    r[0, 2] = x * z * (1 - c) + y * s
    r[1, 0] = x * y * (1 - c) + z * s
    r[1, 1] = y * y + (1 - y * y) * c
    r[1, 2] = y * z * (1 - c) - x * s
    r[2, 0] = x * z * (1 - c) - y * s
    r[2, 1] = z * y * (1 - c) + x * s
    r[2, 2] = z * z + (1 - z * z) * c
    return r


def joint(angles):  # type: ignore[no-untyped-def]
    """Rotations about x, then y, then z, as a transformation of homogeneous coordinates."""
    cx, sx = math.cos(angles[0]), math.sin(angles[0])
    cz, sz = math.cos(angles[1]), math.sin(angles[1])
    cy, sy = math.cos(angles[2]), math.sin(angles[2])
    t = np.eye(4)
    t[0, 0] = cz * cy
    t[0, 1] = cz * sy * sx - sz * cx
    t[0, 2] = cz * sy * cx + sz * sx
    t[1, 0] = sz * cy
    t[1, 1] = sz * sy * sx + cz * cx
    t[1, 2] = sz * sy * cx - cz * sx
    t[2, 0] = -sy
    t[2, 1] = cy * sx
    t[2, 2] = cy * cx
    return t


def poses(theta, n_bones):  # type: ignore[no-untyped-def]
    """The angles of each bone: a finger bends in three joints, and turns sideways in the first."""
    angles = np.zeros((n_bones, 3))
    place = 6
    for finger in range(5):
        bone = 2 + 4 * finger
        angles[bone, 0] = theta[place]
        angles[bone, 1] = theta[place + 1]
        angles[bone + 1, 0] = theta[place + 2]
        angles[bone + 2, 0] = theta[place + 3]
        place += 4
    return angles


def program(
    theta, us, parents, base_relatives, inverse_base_absolutes, base_positions, weights, triangles, owners, points
):  # type: ignore[no-untyped-def]
    n_bones = parents.size
    angles = poses(theta, n_bones)
    absolutes = np.empty((n_bones, 4, 4))
    transforms = np.empty((n_bones, 4, 4))
    for bone in range(n_bones):
        relative = base_relatives[bone] @ joint(angles[bone])
        if parents[bone] == -1:
            absolutes[bone] = relative
        else:
            absolutes[bone] = absolutes[parents[bone]] @ relative
        transforms[bone] = absolutes[bone] @ inverse_base_absolutes[bone]
    n_vertices = base_positions.shape[1]
    positions = np.zeros((3, n_vertices))
    for bone in range(n_bones):
        moved = transforms[bone] @ base_positions
        positions += moved[:3] * weights[bone]
    positions = axis_rotation(theta[:3]) @ positions
    errors = np.empty((owners.size, 3))
    for i in range(owners.size):
        first, second, third = triangles[owners[i], 0], triangles[owners[i], 1], triangles[owners[i], 2]
        u, v = us[i, 0], us[i, 1]
        for j in range(3):
            here = u * positions[j, first] + v * positions[j, second] + (1 - u - v) * positions[j, third]
            errors[i, j] = points[i, j] - here - theta[3 + j]
    return errors


def inputs(size: str) -> tuple[Any, ...]:
    n_bones, n_vertices, n_points = SIZES[size]
    rng = np.random.default_rng(0)
    parents = np.array(
        [-1, 0] + [parent for finger in range(5) for parent in (0, *range(2 + 4 * finger, 5 + 4 * finger))]
    )
    base = np.zeros((n_bones, 4, 4))
    base[:] = np.eye(4)
    base[:, :3, 3] = rng.normal(size=(n_bones, 3))
    inverse = np.zeros((n_bones, 4, 4))
    inverse[:] = np.eye(4)
    inverse[:, :3, 3] = rng.normal(size=(n_bones, 3))
    positions = np.ones((4, n_vertices))
    positions[:3] = rng.normal(size=(3, n_vertices))
    weights = rng.uniform(0, 1, (n_bones, n_vertices))
    weights /= weights.sum(0)
    triangles = rng.integers(0, n_vertices, (2 * n_vertices, 3))
    owners = rng.integers(0, 2 * n_vertices, n_points)
    return (
        rng.uniform(-0.5, 0.5, 26),
        rng.uniform(0, 0.5, (n_points, 2)),
        parents,
        base,
        inverse,
        positions,
        weights,
        triangles,
        owners,
        rng.normal(size=(n_points, 3)),
    )
