"""Hand tracking: a skinned hand posed by 26 numbers, against measured points. Derivative: the Jacobian, by columns.

`theta` holds the global rotation (3), the translation (3), and four angles a finger. A point lies in a triangle
of the surface, at barycentric coordinates `us` of its own: their Jacobian is one block of 3 × 2 a point, and so two
directions (all first coordinates, all second ones) are enough for all of it: 28 directions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

from .. import native_code

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


@njit(error_model="numpy")
def times(a, b):  # type: ignore[no-untyped-def]
    """The product of two small matrices."""
    c = np.zeros((a.shape[0], b.shape[1]))
    for i in range(a.shape[0]):
        for k in range(a.shape[1]):
            for j in range(b.shape[1]):
                c[i, j] += a[i, k] * b[k, j]
    return c


@njit(error_model="numpy")
def turned(angles, moving):  # type: ignore[no-untyped-def]
    """Rotations about x, then y, then z (see `joint`); of the axis `moving` the derivative by its angle."""
    cos, sin = np.cos(angles), np.sin(angles)
    one = 1.0
    if moving >= 0:
        cos[moving], sin[moving] = -sin[moving], cos[moving]
        one = 0.0
    cx, cz, cy = cos
    sx, sz, sy = sin
    # Products of the axes that do not move lack the factor 1 where the others are differentiated.
    t = np.zeros((4, 4))
    t[0, 0] = cz * cy * (one if moving == 0 else 1.0)
    t[0, 1] = cz * sy * sx - sz * cx * (one if moving == 2 else 1.0)
    t[0, 2] = cz * sy * cx + sz * sx * (one if moving == 2 else 1.0)
    t[1, 0] = sz * cy * (one if moving == 0 else 1.0)
    t[1, 1] = sz * sy * sx + cz * cx * (one if moving == 2 else 1.0)
    t[1, 2] = sz * sy * cx - cz * sx * (one if moving == 2 else 1.0)
    t[2, 0] = -sy * (one if moving in (0, 1) else 1.0)
    t[2, 1] = cy * sx * (one if moving == 1 else 1.0)
    t[2, 2] = cy * cx * (one if moving == 1 else 1.0)
    t[3, 3] = one
    return t


@njit(error_model="numpy")
def axis_rotation_by_hand(vector, moving):  # type: ignore[no-untyped-def]
    """Rodrigues' rotation, or its derivative by the coordinate `moving` of its vector."""
    angle = math.sqrt(vector[0] ** 2 + vector[1] ** 2 + vector[2] ** 2)
    r = np.zeros((3, 3))
    if angle < 0.0001:
        if moving < 0:
            r[0, 0] = r[1, 1] = r[2, 2] = 1.0
        return r
    x = vector / angle
    s, c = math.sin(angle), math.cos(angle)
    x_dot = np.zeros(3)
    s_dot, c_dot = s, c
    if moving >= 0:
        x_dot[:] = -x * x[moving] / angle
        x_dot[moving] += 1 / angle
        s_dot, c_dot = c * x[moving], -s * x[moving]
    for i in range(3):
        for j in range(3):
            if moving < 0:
                r[i, j] = x[i] * x[j] * (1 - c)
            else:
                r[i, j] = (x_dot[i] * x[j] + x[i] * x_dot[j]) * (1 - c) - x[i] * x[j] * c_dot
        r[i, i] += c_dot
    for i in range(3):
        a, b = (i + 1) % 3, (i + 2) % 3
        # The cross product with x: r[b, a] has + x[i], r[a, b] has - x[i].
        turn = x[i] * s_dot + x_dot[i] * s
        r[b, a] += turn
        r[a, b] -= turn
    return r


@njit(error_model="numpy")
def add_moved(positions, transform, base_positions, weights):  # type: ignore[no-untyped-def]
    """What a bone contributes to the positions of the vertices."""
    for j in range(3):
        row = positions[j]
        t0, t1, t2, t3 = transform[j, 0], transform[j, 1], transform[j, 2], transform[j, 3]
        b0, b1, b2, b3 = base_positions[0], base_positions[1], base_positions[2], base_positions[3]
        for v in range(weights.size):
            row[v] += (t0 * b0[v] + t1 * b1[v] + t2 * b2[v] + t3 * b3[v]) * weights[v]


@njit(error_model="numpy")
def store_errors(errors, positions, us, triangles, owners):  # type: ignore[no-untyped-def]
    """The derivatives of the errors along one direction of theta, from those of the positions."""
    for i in range(owners.size):
        triangle = triangles[owners[i]]
        u, v = us[i, 0], us[i, 1]
        for j in range(3):
            row = positions[j]
            errors[i, j] = -(u * row[triangle[0]] + v * row[triangle[1]] + (1 - u - v) * row[triangle[2]])


@njit(error_model="numpy")
def by_hand(
    theta,
    us,
    parents,
    base_relatives,
    inverse_base_absolutes,
    base_positions,
    weights,
    triangles,
    owners,
    points,
    knows_the_hand=False,
):  # type: ignore[no-untyped-def]
    """The Jacobian in theta (points, 3, 26), and the derivatives along all first, and all second, coordinates of us.

    Forward mode: the hand is posed once, and then moved along one direction after the other.

    Args:
        knows_the_hand: an angle moves the bones behind its joint, one to four of 22; the others are left out. That is
            no derivative of the program but of what is known about hands.
    """
    n_bones, n_vertices = parents.size, base_positions.shape[1]
    angles = np.zeros((n_bones, 3))
    relatives = np.empty((n_bones, 4, 4))
    absolutes = np.empty((n_bones, 4, 4))
    skinned = np.zeros((3, n_vertices))
    for finger in range(5):
        bone, place = 2 + 4 * finger, 6 + 4 * finger
        angles[bone, 0], angles[bone, 1] = theta[place], theta[place + 1]
        angles[bone + 1, 0], angles[bone + 2, 0] = theta[place + 2], theta[place + 3]
    for bone in range(n_bones):
        relatives[bone] = times(base_relatives[bone], turned(angles[bone], -1))
        parent = parents[bone]
        absolutes[bone] = relatives[bone] if parent == -1 else times(absolutes[parent], relatives[bone])
        add_moved(skinned, times(absolutes[bone], inverse_base_absolutes[bone]), base_positions, weights[bone])
    turn = axis_rotation_by_hand(theta[:3], -1)
    jacobian = np.empty((owners.size, 3, theta.size))
    along = np.empty((owners.size, 3))
    for k in range(3):
        store_errors(along, times(axis_rotation_by_hand(theta[:3], k), skinned), us, triangles, owners)
        jacobian[:, :, k] = along
    jacobian[:, :, 3:6] = 0.0
    for j in range(3):
        jacobian[:, j, 3 + j] = -1.0
    absolutes_dot = np.empty((n_bones, 4, 4))
    moves = np.empty(n_bones, np.bool_)
    for k in range(6, theta.size):
        finger, number = (k - 6) // 4, (k - 6) % 4
        first = 2 + 4 * finger + max(number - 1, 0)
        moves[:] = False
        positions_dot = np.zeros((3, n_vertices))
        for bone in range(first if knows_the_hand else 0, n_bones):
            parent = parents[bone]
            if bone < first:
                absolutes_dot[bone] = 0.0
            elif bone == first:
                relative_dot = times(base_relatives[bone], turned(angles[bone], 1 if number == 1 else 0))
                absolutes_dot[bone] = relative_dot if parent == -1 else times(absolutes[parent], relative_dot)
            elif parent >= 0 and (moves[parent] or not knows_the_hand):
                absolutes_dot[bone] = times(absolutes_dot[parent], relatives[bone])
            else:
                continue
            moves[bone] = True
            transform_dot = times(absolutes_dot[bone], inverse_base_absolutes[bone])
            add_moved(positions_dot, transform_dot, base_positions, weights[bone])
        store_errors(along, times(turn, positions_dot), us, triangles, owners)
        jacobian[:, :, k] = along
    positions = times(turn, skinned)
    of_us = np.empty((2, owners.size, 3))
    for i in range(owners.size):
        triangle = triangles[owners[i]]
        for j in range(3):
            of_us[0, i, j] = positions[j, triangle[2]] - positions[j, triangle[0]]
            of_us[1, i, j] = positions[j, triangle[2]] - positions[j, triangle[1]]
    return jacobian, of_us


def in_cpp() -> Callable[..., Any]:
    derivative = native_code.derivative("ht")

    def jacobian(*args: Any, knows_the_hand: bool = False) -> Any:
        theta, _, parents, _, _, base_positions, _, _, owners, _ = args
        columns, along = np.empty((owners.size, 3, theta.size)), np.empty((2, owners.size, 3))
        derivative(*args[:9], parents.size, base_positions.shape[1], owners.size, knows_the_hand, columns, along)
        return columns, along

    return jacobian


def hand(
    lib: Any,
    theta: Any,
    us: Any,
    parents: Any,
    base_relatives: Any,
    inverse_base_absolutes: Any,
    base_positions: Any,
    weights: Any,
    triangles: Any,
    owners: Any,
    points: Any,
) -> Any:
    """The program in whole arrays, of JAX's, autograd's or PyTorch's functions: `lib` has those that differ."""
    zero, one = 0 * theta[0], 1 + 0 * theta[0]

    def matrix(entries: Any) -> Any:
        return lib.stack([lib.stack(row) for row in entries])

    def joint(x: Any, z: Any, y: Any) -> Any:
        (cx, sx), (cz, sz), (cy, sy) = ((lib.cos(a), lib.sin(a)) for a in (x, z, y))
        return matrix(
            [
                [cz * cy, cz * sy * sx - sz * cx, cz * sy * cx + sz * sx, zero],
                [sz * cy, sz * sy * sx + cz * cx, sz * sy * cx - cz * sx, zero],
                [-sy, cy * sx, cy * cx, zero],
                [zero, zero, zero, one],
            ]
        )

    angles = [(zero, zero, zero)] * len(parents)
    for finger in range(5):
        bone, place = 2 + 4 * finger, 6 + 4 * finger
        angles[bone] = theta[place], theta[place + 1], zero
        angles[bone + 1], angles[bone + 2] = ((theta[place + k], zero, zero) for k in (2, 3))
    absolutes: list[Any] = []
    for bone, parent in enumerate(parents.tolist()):
        relative = base_relatives[bone] @ joint(*angles[bone])
        absolutes.append(relative if parent == -1 else absolutes[parent] @ relative)
    transforms = lib.stack(absolutes) @ inverse_base_absolutes
    # Each vertex has a transformation of its own, the mean of those of the bones: one product of matrices.
    blended = (transforms[:, :3].reshape(-1, 12).T @ weights).reshape(3, 4, -1)
    positions = (blended * base_positions).sum(1)
    angle = (theta[:3] ** 2).sum() ** 0.5
    x, y, z = theta[:3] / angle
    s, c = lib.sin(angle), lib.cos(angle)
    turn = matrix(
        [
            [x * x + (1 - x * x) * c, x * y * (1 - c) - z * s, x * z * (1 - c) + y * s],
            [x * y * (1 - c) + z * s, y * y + (1 - y * y) * c, y * z * (1 - c) - x * s],
            [x * z * (1 - c) - y * s, z * y * (1 - c) + x * s, z * z + (1 - z * z) * c],
        ]
    )
    corners = (turn @ positions)[:, triangles[owners]]
    u, v = us[:, 0], us[:, 1]
    here = u * corners[:, :, 0] + v * corners[:, :, 1] + (1 - u - v) * corners[:, :, 2]
    return points - here.T - theta[3:6]


def columns(us: Any) -> Any:
    """The directions of all first, and all second, coordinates of the points in their triangles."""
    seeds = np.zeros((2, *us.shape))
    seeds[0, :, 0] = seeds[1, :, 1] = 1
    return seeds


def in_jax() -> Callable[..., Any]:
    import jax
    import jax.numpy as jnp

    def jacobian(theta: Any, us: Any, parents: Any, *rest: Any) -> Any:
        def errors(theta: Any, us: Any) -> Any:
            return hand(jnp, theta, us, parents, *rest)

        along = jax.vmap(lambda seed: jax.jvp(lambda us: errors(theta, us), (us,), (seed,))[1])
        return jax.jacfwd(errors)(theta, us), along(columns(us))

    def derivative(theta: Any, us: Any, parents: Any, *rest: Any) -> Any:
        if "jitted" not in made:
            bones = np.asarray(parents)  # how the bones hang together decides what is compiled
            made["jitted"] = jax.jit(lambda theta, us, *rest: jacobian(theta, us, bones, *rest))
        return made["jitted"](theta, us, *rest)

    made: dict[str, Any] = {}
    return derivative


def in_autograd() -> Callable[..., Any]:
    """In forward mode, one direction after the other."""
    import autograd.numpy as anp
    from autograd import make_jvp

    def derivative(theta: Any, us: Any, *rest: Any) -> Any:
        of_theta = make_jvp(lambda theta: hand(anp, theta, us, *rest))(theta)
        of_us = make_jvp(lambda us: hand(anp, theta, us, *rest))(us)
        along_theta = [of_theta(direction)[1] for direction in np.eye(theta.size)]
        return np.stack(along_theta, -1), np.stack([of_us(direction)[1] for direction in columns(us)])

    return derivative


def in_torch() -> Callable[..., Any]:
    """In forward mode, all directions at once."""
    import torch

    def derivative(*args: Any) -> Any:
        theta, us, *rest = map(torch.from_numpy, args)

        def errors(theta: Any, us: Any) -> Any:
            return hand(torch, theta, us, *rest)

        along = torch.vmap(lambda seed: torch.func.jvp(lambda us: errors(theta, us), (us,), (seed,))[1])
        found = torch.func.jacfwd(errors)(theta, us), along(torch.from_numpy(columns(us)))
        return tuple(part.detach().numpy() for part in found)

    return derivative
