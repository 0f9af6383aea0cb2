"""A Gaussian process with one length scale for each input, its seven hyperparameters found by their exact gradient.

The data are scikit-learn's: the progress of diabetes from four measurements. The kernel, the Cholesky factor and the
marginal likelihood are written as one would write them for NumPy alone.
"""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np
from scipy.optimize import minimize
from sklearn.datasets import load_diabetes
from threadpoolctl import threadpool_limits

from retrograde import gradient, value_and_grad

QUICK = bool(os.environ.get("RETROGRADE_QUICK"))
INPUTS = ("bmi", "bp", "s5", "age")


def kernel(A: Any, B: Any, scales: Any, height: Any) -> Any:
    """The squared exponential kernel between the rows of A and of B."""
    A, B = A / scales, B / scales
    distances = np.sum(A**2, axis=1)[:, None] + np.sum(B**2, axis=1) - 2 * A @ B.T
    return height**2 * np.exp(-distances / 2)


def unpacked(theta: Any) -> tuple[Any, Any, Any, Any]:
    """Length scales, height and noise (kept as logarithms, since they are positive), and the mean."""
    return np.exp(theta[:4]), np.exp(theta[4]), np.exp(theta[5]), theta[6]


def loss(theta: Any, X: np.ndarray, y: np.ndarray) -> Any:
    """Minus the log marginal likelihood, for each observation."""
    scales, height, noise, mean = unpacked(theta)
    L = np.linalg.cholesky(kernel(X, X, scales, height) + noise**2 * np.eye(len(X)))
    white = np.linalg.solve(L, y - mean)
    return (white @ white / 2 + np.sum(np.log(np.diag(L)))) / len(y) + np.log(2 * np.pi) / 2


def predicted(theta: np.ndarray, X: np.ndarray, y: np.ndarray, at: Any) -> Any:
    scales, height, noise, mean = unpacked(theta)
    K = kernel(X, X, scales, height) + noise**2 * np.eye(len(X))
    return mean + kernel(at, X, scales, height) @ np.linalg.solve(K, y - mean)


def main() -> None:
    data = load_diabetes()
    columns = [data.feature_names.index(name) for name in INPUTS]
    X = data.data[:, columns] / data.data[:, columns].std(axis=0)
    y = (data.target - data.target.mean()) / data.target.std()
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[: 80 if QUICK else 300], order[300:]

    start = time.perf_counter()
    # Matrices as small as these are quicker on one core, by far where other programs want the others.
    with threadpool_limits(1):
        found = minimize(value_and_grad(loss), np.zeros(7), args=(X[train], y[train]), jac=True, method="L-BFGS-B")
    elapsed = time.perf_counter() - start
    theta = found.x
    scales, height, noise, _ = unpacked(theta)
    print(f"{found.nfev} likelihoods with their gradients in {elapsed:.1f} s, to a loss of {found.fun:.4f}")
    print("length scales", *(f"{name} {scale:.1f}" for name, scale in zip(INPUTS, scales)), sep="  ")
    print(f"(a long one means that the input hardly matters); height {height:.2f}")

    residual = y[test] - predicted(theta, X[train], y[train], X[test])
    print(f"noise {noise:.2f}; error on {len(test)} patients that it has not seen {np.sqrt(np.mean(residual**2)):.2f}")

    # The fitted function can itself be differentiated: which measurement matters, for one patient.
    slopes = gradient(lambda x: predicted(theta, X[train], y[train], x[None])[0], X[test[0]])[0]
    print("slopes for one of them", *(f"{name} {slope:+.2f}" for name, slope in zip(INPUTS, slopes)), sep="  ")


if __name__ == "__main__":
    main()
