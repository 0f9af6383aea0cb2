"""Squared distances of points to their nearest centroids. Derivative: the gradient, and the diagonal of the Hessian.

The Hessian is diagonal, so that one product with a vector of ones gives it whole.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit, prange

from .. import native_code

WRT = (1,)
SIZES = {"tiny": (3, 9, 2), "k100 n10000 d8": (100, 10_000, 8), "k1000 n10000 d16": (1_000, 10_000, 16)}


def program(points, centroids):  # type: ignore[no-untyped-def]
    cost = 0.0
    for i in prange(points.shape[0]):
        closest = np.inf
        for j in range(centroids.shape[0]):
            distance = 0.0
            for a in range(points.shape[1]):
                distance += (points[i, a] - centroids[j, a]) ** 2
            closest = min(closest, distance)
        cost += closest
    return cost


def inputs(size: str) -> tuple[Any, ...]:
    k, n, d = SIZES[size]
    rng = np.random.default_rng(0)
    return rng.uniform(0, 1, (n, d)), rng.uniform(0, 1, (k, d))


@njit(error_model="numpy")
def by_hand(points, centroids):  # type: ignore[no-untyped-def]
    """(gradient, diagonal of the Hessian)."""
    n, d = points.shape
    k = centroids.shape[0]
    first = np.zeros((k, d))
    second = np.zeros((k, d))
    for i in range(n):
        point = points[i]
        closest = np.inf
        nearest = 0
        for j in range(k):
            centroid = centroids[j]
            distance = 0.0
            for a in range(d):
                distance += (point[a] - centroid[a]) * (point[a] - centroid[a])
            if distance < closest:
                closest = distance
                nearest = j
        for a in range(d):
            first[nearest, a] += 2 * (centroids[nearest, a] - point[a])
            second[nearest, a] += 2
    return first, second


def in_cpp() -> Callable[..., Any]:
    derivative = native_code.derivative("kmeans")

    def both(points: Any, centroids: Any) -> Any:
        first, second = np.empty_like(centroids), np.empty_like(centroids)
        derivative(points, *points.shape, centroids, centroids.shape[0], first, second)
        return first, second

    return both


def in_jax() -> Callable[..., Any]:
    import jax
    import jax.numpy as jnp

    def cost(points: Any, centroids: Any) -> Any:
        a = jnp.sum(points**2, 1)[:, None]
        b = jnp.sum(centroids**2, 1)[None, :]
        return jnp.sum(jnp.min(a + b - 2 * points @ centroids.T, 1))

    def both(points: Any, centroids: Any) -> Any:
        gradient = jax.grad(cost, 1)
        return jax.jvp(lambda c: gradient(points, c), (centroids,), (jnp.ones_like(centroids),))

    return jax.jit(both)


def in_autograd() -> Callable[..., Any]:
    import autograd
    import autograd.numpy as anp

    def cost(points: Any, centroids: Any) -> Any:
        a = anp.sum(points**2, 1)[:, None]
        b = anp.sum(centroids**2, 1)[None, :]
        return anp.sum(anp.min(a + b - 2 * anp.dot(points, centroids.T), 1))

    gradient = autograd.grad(cost, 1)
    diagonal = autograd.hessian_vector_product(cost, 1)
    return lambda points, centroids: (gradient(points, centroids), diagonal(points, centroids, np.ones_like(centroids)))


def in_torch() -> Callable[..., Any]:
    import torch

    def cost(points: Any, centroids: Any) -> Any:
        a = torch.sum(points**2, 1)[:, None]
        b = torch.sum(centroids**2, 1)[None, :]
        return torch.sum(torch.min(a + b - 2 * points @ centroids.T, 1)[0])

    def both(points: Any, centroids: Any) -> Any:
        points, centroids = torch.from_numpy(points), torch.from_numpy(centroids).requires_grad_()
        (gradient,) = torch.autograd.grad(cost(points, centroids), centroids, create_graph=True)
        # The Hessian is symmetric, so that a row vector times it is the product in question.
        (diagonal,) = torch.autograd.grad(gradient, centroids, torch.ones_like(centroids))
        return gradient.detach().numpy(), diagonal.numpy()

    return both
