"""The log-posterior of a Gaussian mixture with a Wishart prior. Derivative: the gradient in all parameters.

Component c has weight alpha[c], mean means[c] and an inverse covariance factor: a lower triangle with the diagonal
exp(log_diagonals[c]) and, column by column, the entries lower[c] below it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit, prange

from .. import native_code, torch_code

WRT = (0, 1, 2, 3)
SIZES = {
    "tiny": (2, 3, 5),
    "d2 k5 n1000": (2, 5, 1_000),
    "d10 k25 n1000": (10, 25, 1_000),
    "d10 k25 n10000": (10, 25, 10_000),
    "d32 k50 n1000": (32, 50, 1_000),
}


def log_sum_exp(x):  # type: ignore[no-untyped-def]
    shift = np.max(x)
    return shift + np.log(np.sum(np.exp(x - shift)))


def program(alpha, means, log_diagonals, lower, points, gamma, m):  # type: ignore[no-untyped-def]
    n, d = points.shape
    k = alpha.size
    diagonals = np.exp(log_diagonals)
    log_determinants = np.sum(log_diagonals, axis=1)
    total = 0.0
    for i in prange(n):
        terms = np.empty(k)
        z = np.empty(d)
        for c in range(k):
            centred = points[i] - means[c]
            z[:] = diagonals[c] * centred
            place = 0
            for a in range(d):
                for b in range(a + 1, d):
                    z[b] += lower[c, place] * centred[a]
                    place += 1
            terms[c] = alpha[c] + log_determinants[c] - 0.5 * np.sum(z * z)
        total += log_sum_exp(terms)
    prior = 0.0
    for c in range(k):
        squares = np.sum(diagonals[c] ** 2) + np.sum(lower[c] ** 2)
        prior += 0.5 * gamma * gamma * squares - m * log_determinants[c]
    return total - n * log_sum_exp(alpha) - prior + constant(n, d, k, gamma, m)


def constant(n, d, k, gamma, m):  # type: ignore[no-untyped-def]
    """What depends on no parameter."""
    degrees = d + m + 1
    log_gamma = 0.25 * d * (d - 1) * math.log(math.pi)
    for j in range(1, d + 1):
        log_gamma += math.lgamma(0.5 * degrees + 0.5 * (1 - j))
    per_component = degrees * d * (math.log(gamma) - 0.5 * math.log(2)) - log_gamma
    return k * per_component - 0.5 * n * d * math.log(2 * math.pi)


def inputs(size: str) -> tuple[Any, ...]:
    d, k, n = SIZES[size]
    rng = np.random.default_rng(0)
    return (
        rng.normal(size=k),
        rng.uniform(0, 1, (k, d)),
        rng.normal(size=(k, d)) * 0.3,
        rng.normal(size=(k, d * (d - 1) // 2)) * 0.3,
        rng.normal(size=(n, d)),
        1.0,
        0,
    )


@njit(error_model="numpy")
def by_hand(alpha, means, log_diagonals, lower, points, gamma, m):  # type: ignore[no-untyped-def]
    """(alpha_bar, means_bar, log_diagonals_bar, lower_bar)."""
    n, d = points.shape
    k = alpha.size
    diagonals = np.exp(log_diagonals)
    log_determinants = np.zeros(k)
    for c in range(k):
        for a in range(d):
            log_determinants[c] += log_diagonals[c, a]
    alpha_bar, means_bar = np.zeros(k), np.zeros((k, d))
    diagonals_bar, lower_bar = np.zeros((k, d)), np.zeros((k, lower.shape[1]))
    weight_sums = np.zeros(k)
    terms = np.empty(k)
    zs, centred = np.empty((k, d)), np.empty((k, d))
    x_bar = np.empty(d)
    for i in range(n):
        point = points[i]
        largest = -np.inf
        for c in range(k):
            z, x, mean, diagonal, low = zs[c], centred[c], means[c], diagonals[c], lower[c]
            for a in range(d):
                x[a] = point[a] - mean[a]
                z[a] = diagonal[a] * x[a]
            place = 0
            for a in range(d):
                column, below = low[place : place + d - 1 - a], z[a + 1 :]
                for b in range(d - 1 - a):
                    below[b] += column[b] * x[a]
                place += d - 1 - a
            squares = 0.0
            for a in range(d):
                squares += z[a] * z[a]
            terms[c] = alpha[c] + log_determinants[c] - 0.5 * squares
            if terms[c] > largest:
                largest = terms[c]
        total = 0.0
        for c in range(k):
            terms[c] = math.exp(terms[c] - largest)
            total += terms[c]
        for c in range(k):
            weight = terms[c] / total
            weight_sums[c] += weight
            z, x, diagonal, low = zs[c], centred[c], diagonals[c], lower[c]
            low_bar, diagonal_bar, mean_bar = lower_bar[c], diagonals_bar[c], means_bar[c]
            for a in range(d):
                z[a] *= -weight
                diagonal_bar[a] += z[a] * x[a]
                x_bar[a] = z[a] * diagonal[a]
            place = 0
            for a in range(d):
                column, column_bar = low[place : place + d - 1 - a], low_bar[place : place + d - 1 - a]
                below = z[a + 1 :]
                here = 0.0
                for b in range(d - 1 - a):
                    column_bar[b] += below[b] * x[a]
                    here += below[b] * column[b]
                x_bar[a] += here
                place += d - 1 - a
            for a in range(d):
                mean_bar[a] -= x_bar[a]
    largest = np.max(alpha)
    total = np.sum(np.exp(alpha - largest))
    for c in range(k):
        alpha_bar[c] = weight_sums[c] - n * math.exp(alpha[c] - largest) / total
        for a in range(d):
            diagonals_bar[c, a] -= gamma * gamma * diagonals[c, a]
            diagonals_bar[c, a] = diagonals_bar[c, a] * diagonals[c, a] + weight_sums[c] + m
        for place in range(lower.shape[1]):
            lower_bar[c, place] -= gamma * gamma * lower[c, place]
    return alpha_bar, means_bar, diagonals_bar, lower_bar


def in_cpp() -> Callable[..., Any]:
    derivative = native_code.derivative("gmm")

    def gradient(alpha: Any, means: Any, log_diagonals: Any, lower: Any, points: Any, gamma: float, m: int) -> Any:
        bars = [np.empty_like(x) for x in (alpha, means, log_diagonals, lower)]
        derivative(alpha, means, log_diagonals, lower, points, gamma, m, *points.shape, alpha.size, *bars)
        return tuple(bars)

    return gradient


def in_jax() -> Callable[..., Any]:
    import jax
    import jax.numpy as jnp
    from jax.scipy.special import logsumexp

    def log_posterior(alpha: Any, means: Any, log_diagonals: Any, lower: Any, points: Any, gamma: Any, m: int) -> Any:
        n, d = points.shape
        k = alpha.size
        columns, rows = np.triu_indices(d, 1)
        factors = jnp.zeros((k, d, d)).at[:, rows, columns].set(lower)
        factors = factors + jax.vmap(jnp.diag)(jnp.exp(log_diagonals))
        centred = points[:, None, :] - means[None]
        z = jnp.einsum("kab,nkb->nka", factors, centred)
        log_determinants = jnp.sum(log_diagonals, 1)
        terms = alpha + log_determinants - 0.5 * jnp.sum(z * z, 2)
        prior = 0.5 * gamma**2 * jnp.sum(factors**2) - m * jnp.sum(log_determinants)
        return jnp.sum(logsumexp(terms, axis=1)) - n * logsumexp(alpha) - prior

    return jax.jit(jax.grad(log_posterior, WRT), static_argnums=6)


def in_autograd() -> Callable[..., Any]:
    import autograd
    import autograd.numpy as anp
    from autograd.scipy.special import logsumexp

    def log_posterior(alpha: Any, means: Any, log_diagonals: Any, lower: Any, points: Any, gamma: Any, m: int) -> Any:
        n, d = points.shape
        k = alpha.size
        columns, rows = np.triu_indices(d, 1)
        place = np.zeros((d, d), int)  # of each entry of a factor in (diagonal, lower, 0)
        place[:] = d + lower.shape[1]
        place[np.arange(d), np.arange(d)] = np.arange(d)
        place[rows, columns] = d + np.arange(lower.shape[1])
        entries = anp.concatenate([anp.exp(log_diagonals), lower, np.zeros((k, 1))], 1)
        factors = entries[:, place]
        centred = points[:, None, :] - means[None]
        z = anp.einsum("kab,nkb->nka", factors, centred)
        log_determinants = anp.sum(log_diagonals, 1)
        terms = alpha + log_determinants - 0.5 * anp.sum(z * z, 2)
        prior = 0.5 * gamma**2 * anp.sum(factors**2) - m * anp.sum(log_determinants)
        return anp.sum(logsumexp(terms, axis=1)) - n * logsumexp(alpha) - prior

    return autograd.grad(log_posterior, WRT)


def in_torch() -> Callable[..., Any]:
    import torch

    def log_posterior(alpha: Any, means: Any, log_diagonals: Any, lower: Any, points: Any, gamma: Any, m: int) -> Any:
        n, d = points.shape
        k = alpha.numel()
        columns, rows = np.triu_indices(d, 1)
        strict = torch.zeros((k, d, d), dtype=alpha.dtype)
        strict[:, rows, columns] = lower
        factors = strict + torch.diag_embed(torch.exp(log_diagonals))
        centred = points[:, None, :] - means[None]
        z = torch.einsum("kab,nkb->nka", factors, centred)
        log_determinants = torch.sum(log_diagonals, 1)
        terms = alpha + log_determinants - 0.5 * torch.sum(z * z, 2)
        prior = 0.5 * gamma**2 * torch.sum(factors**2) - m * torch.sum(log_determinants)
        return torch.sum(torch.logsumexp(terms, 1)) - n * torch.logsumexp(alpha, 0) - prior

    return torch_code.gradient(log_posterior, WRT)
