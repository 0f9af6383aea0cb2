"""A power law through measurements of which some are wrong, by the likelihood of Student's t with its exact Hessian.

The data are scikit-learn's measurements of cell nuclei. The area should grow as the square of the radius; to make it
hard, one area in twelve is put down in the wrong unit. The degrees of freedom of the t distribution are estimated too,
through SciPy's gammaln.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import gammaln
from sklearn.datasets import load_breast_cancer

from retrograde import grad, hessian


def gaussian_loss(theta: Any, u: np.ndarray, v: np.ndarray) -> Any:
    residual = (v - theta[0] - theta[1] * u) / np.exp(theta[2])
    return np.mean(residual**2) / 2 + theta[2] + np.log(2 * np.pi) / 2


def student_loss(theta: Any, u: np.ndarray, v: np.ndarray) -> Any:
    """Minus the log-likelihood, for each observation: intercept, slope, and the logarithms of scale and freedom."""
    freedom = np.exp(theta[3])
    residual = (v - theta[0] - theta[1] * u) / np.exp(theta[2])
    constant = gammaln((freedom + 1) / 2) - gammaln(freedom / 2) - np.log(np.pi * freedom) / 2 - theta[2]
    return (freedom + 1) / 2 * np.mean(np.log1p(residual**2 / freedom)) - constant


def main() -> None:
    rng = np.random.default_rng(0)
    data = load_breast_cancer()
    radius = data.data[:, list(data.feature_names).index("mean radius")]
    area = data.data[:, list(data.feature_names).index("mean area")]
    area = np.where(rng.random(len(area)) < 1 / 12, area * 25.4, area)
    # In logarithms a power law is a straight line; centred, its two parameters hardly depend on each other.
    u, v = np.log(radius) - np.log(radius).mean(), np.log(area)
    print(f"{len(u)} nuclei; the exponent of a smooth outline would be 2\n")
    for name, loss, start in [
        ("least squares", gaussian_loss, np.array([v.mean(), 1.0, 0.0])),
        ("Student's t", student_loss, np.array([np.median(v), 1.0, 0.0, 1.0])),
    ]:
        loss = functools.partial(loss, u=u, v=v)
        found = minimize(loss, start, jac=grad(loss), hess=hessian(loss), method="trust-exact")
        errors = np.sqrt(np.diag(np.linalg.inv(len(u) * hessian(loss, found.x))))
        print(
            f"{name:13}  area ∝ radius^({found.x[1]:.3f} ± {errors[1]:.3f})   scale {np.exp(found.x[2]):.4f}"
            f"   {found.nit} steps, |gradient| {np.linalg.norm(found.jac):.0e}"
        )
    print(f"\nfreedom of the t distribution: {np.exp(found.x[3]):.2f} ± {np.exp(found.x[3]) * errors[3]:.2f}")


if __name__ == "__main__":
    main()
