"""Linear algebra for `rule_speed`: as in `rule_races`, of matrices with n rows.

Sources of the gradients by hand: Giles (2008), "An extended collection of matrix derivative results for forward and
reverse mode algorithmic differentiation"; Murray (2016), "Differentiation of the Cholesky decomposition"; Walter and
Lehmann (2018), "On the first-order derivatives of the QR decomposition"; Townsend (2016), "Differentiating the singular
value decomposition"; Golub and Pereyra (1973), "The differentiation of pseudo-inverses and nonlinear least squares
problems whose variables separate".
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .rule_races import Gradient, Race


def weighted(y: Any, w: np.ndarray) -> Any:
    """`Σ w y` of an array of any library; without a dot product, which autograd has of one shape only."""
    if type(y).__module__ == "torch":
        import torch

        return torch.sum(y * torch.from_numpy(w))
    return (y * w).sum()


def symmetric(a: Any) -> Any:
    # Which triangle is read, and so what belongs to the other one, is not the same everywhere.
    return (a + a.T) / 2.0


def linalg_races(n: int) -> list[Race]:
    rng = np.random.default_rng(4)
    a = rng.standard_normal((n, n)) / np.sqrt(n) + 2.0 * np.eye(n)
    near_one = np.eye(n) + 0.1 * rng.standard_normal((n, n)) / np.sqrt(n)
    b, w = rng.standard_normal(n), rng.standard_normal(n)
    w_square, w_other = rng.standard_normal((n, n)), rng.standard_normal((n, n))
    spd = a @ a.T + np.eye(n)
    tall, w_wide, b_tall = rng.standard_normal((2 * n, n)), rng.standard_normal((n, 2 * n)), rng.standard_normal(2 * n)

    def solve(a: Any, b: Any, w: Any) -> Gradient:
        x = np.linalg.solve(a, b)
        b_bar = np.linalg.solve(a.T, w)
        a_bar = np.outer(b_bar, x)
        return np.vdot(x, w), np.negative(a_bar, out=a_bar), b_bar

    def inv(a: Any, w: Any) -> Gradient:
        y = np.linalg.inv(a)
        a_bar = y.T @ w @ y.T
        return np.vdot(y, w), np.negative(a_bar, out=a_bar)

    def det(a: Any, w: Any) -> Gradient:
        y = np.linalg.det(a)
        a_bar = np.linalg.inv(a).T
        a_bar *= y
        return y, a_bar

    def slogdet(a: Any, w: Any) -> Gradient:
        return np.linalg.slogdet(a)[1], np.linalg.inv(a).T

    def cholesky(a: Any, w: Any) -> Gradient:
        factor = np.linalg.cholesky(symmetric(a))
        p = np.tril(factor.T @ np.tril(w))
        p[np.diag_indices_from(p)] *= 0.5
        half_way = np.linalg.solve(factor.T, p + p.T)
        return np.vdot(factor, w), 0.5 * np.linalg.solve(factor.T, half_way.T).T

    def eigh(a: Any, _: Any) -> Gradient:
        values, v = np.linalg.eigh(symmetric(a))
        value = np.vdot(values, w) + np.vdot(v * v, w_square)
        gaps = values - values[:, None]
        np.fill_diagonal(gaps, np.inf)
        inner = v.T @ (2.0 * v * w_square)
        inner /= gaps
        inner[np.diag_indices_from(inner)] = w
        return value, symmetric(v @ inner @ v.T)

    def svd(a: Any, _: Any) -> Gradient:
        u, s, vh = np.linalg.svd(a, full_matrices=False)
        value = np.vdot(u * u, w_square) + np.vdot(s, w) + np.vdot(vh * vh, w_other)
        x_u, x_v = u.T @ (2.0 * u * w_square), vh @ (2.0 * vh * w_other).T
        squares = s * s
        gaps = squares - squares[:, None]
        np.fill_diagonal(gaps, np.inf)
        inner = (x_u - x_u.T) / gaps
        inner *= s
        x_v -= x_v.T.copy()
        x_v /= gaps
        x_v *= s[:, None]
        inner += x_v
        inner[np.diag_indices_from(inner)] += w
        return value, u @ inner @ vh

    def qr(a: Any, _: Any) -> Gradient:
        q, r = np.linalg.qr(a)
        m = np.triu(w_other) @ r.T - q.T @ w_square
        m = np.triu(m) + np.triu(m, 1).T
        return np.vdot(q, w_square) + np.vdot(r, w_other), np.linalg.solve(r, (w_square + q @ m).T).T

    def pinv(a: Any, w: Any) -> Gradient:
        p = np.linalg.pinv(a)
        # The columns of a are independent, so that P a = 1 and one of the three terms drops out.
        moved = p @ p.T @ w
        moved -= moved @ a @ p
        a_bar = moved.T - p.T @ (w @ p.T)
        return np.vdot(p, w), a_bar

    def lstsq(a: Any, b: Any, w: Any) -> Gradient:
        x = np.linalg.lstsq(a, b)[0]
        p = np.linalg.pinv(a)
        b_bar = w @ p
        a_bar = np.outer(b - a @ x, p @ b_bar)
        a_bar -= np.outer(b_bar, x)
        return np.vdot(x, w), a_bar, b_bar

    def all_of_eigh(xp: Any, a: Any) -> Any:
        values, v = xp.linalg.eigh(symmetric(a))
        return weighted(values, w) + weighted(v * v, w_square)

    def all_of_svd(xp: Any, a: Any) -> Any:
        u, s, vh = xp.linalg.svd(a, full_matrices=False)
        return weighted(u * u, w_square) + weighted(s, w) + weighted(vh * vh, w_other)

    def all_of_qr(xp: Any, a: Any) -> Any:
        q, r = xp.linalg.qr(a)
        return weighted(q, w_square) + weighted(r, w_other)

    return [
        Race("solve", lambda xp, a, b: xp.linalg.solve(a, b), solve, (a, b), w),
        Race("inv", lambda xp, a: xp.linalg.inv(a), inv, (a,), w_square),
        Race("det", lambda xp, a: xp.linalg.det(a), det, (near_one,), None),
        Race("slogdet", lambda xp, a: xp.linalg.slogdet(a)[1], slogdet, (near_one,), None),
        Race("cholesky", lambda xp, a: xp.linalg.cholesky(symmetric(a)), cholesky, (spd,), w_square),
        Race("eigh", all_of_eigh, eigh, (spd,), None),
        Race("svd", all_of_svd, svd, (a,), None),
        Race("qr", all_of_qr, qr, (a,), None, peers=("PyTorch",)),
        Race("pinv", lambda xp, a: xp.linalg.pinv(a), pinv, (tall,), w_wide),
        Race("lstsq", lambda xp, a, b: xp.linalg.lstsq(a, b)[0], lstsq, (tall, b_tall), w,
             lambda torch, a, b: torch.linalg.lstsq(a, b[:, None])[0][:, 0], peers=("PyTorch",)),
    ]  # fmt: skip
