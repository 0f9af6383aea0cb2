"""Hares and lynxes: the parameters of a differential equation from twenty-one years of furs, with standard errors.

The Lotka–Volterra equations are integrated by a loop of Runge–Kutta steps in plain Python and NumPy, and the loop is
differentiated as it stands. The pelts (in thousands) are those that the Hudson's Bay Company traded from 1900 to 1920.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from scipy.optimize import minimize

from retrograde import hessian, value_and_grad

HARES = np.array([
    30.0, 47.2, 70.2, 77.4, 36.3, 20.6, 18.1, 21.4, 22.0, 25.4, 27.1,
    40.3, 57.0, 76.6, 52.3, 19.5, 11.2, 7.6, 14.6, 16.2, 24.7,
])  # fmt: skip
LYNXES = np.array([
    4.0, 6.1, 9.8, 35.2, 59.4, 41.7, 19.0, 13.0, 8.3, 9.1, 7.4,
    8.0, 12.3, 19.5, 45.7, 51.1, 29.7, 15.8, 9.7, 10.1, 8.6,
])  # fmt: skip
PELTS = np.log(np.stack([HARES, LYNXES], axis=1))
NAMES = ("birth of hares", "hares caught", "death of lynxes", "lynxes fed", "hares in 1900", "lynxes in 1900", "noise")
STEPS = 10  # a year


def rate(state: Any, rates: Any) -> Any:
    """The slopes of the logarithms of both populations."""
    hares, lynxes = np.exp(state)
    birth, caught, death, fed = rates
    return np.array([birth - caught * lynxes, fed * hares - death])


def solution(theta: Any) -> Any:
    """The logarithms of both populations in each year, for the logarithms of the parameters."""
    rates = np.exp(theta[:4])
    state = theta[4:6]
    years = [state]
    h = 1 / STEPS
    for _ in range(len(PELTS) - 1):
        for _ in range(STEPS):
            a = rate(state, rates)
            b = rate(state + h / 2 * a, rates)
            c = rate(state + h / 2 * b, rates)
            d = rate(state + h * c, rates)
            state = state + h / 6 * (a + 2 * b + 2 * c + d)
        years.append(state)
    return np.stack(years)


def loss(theta: Any) -> Any:
    """Minus the log-likelihood of logarithmic errors, up to a constant."""
    residual = (PELTS - solution(theta)) / np.exp(theta[6])
    return np.sum(residual**2) / 2 + PELTS.size * theta[6]


def main() -> None:
    start = np.log([0.5, 0.03, 0.9, 0.03, 30.0, 4.0, 0.5])
    begin = time.perf_counter()
    found = minimize(value_and_grad(loss), start, jac=True, method="BFGS")
    print(f"{found.nfev} solutions with their gradients in {time.perf_counter() - begin:.1f} s")
    # The parameters are logarithms, so that their errors are relative ones.
    errors = np.sqrt(np.diag(np.linalg.inv(hessian(loss, found.x))))
    for name, value, error in zip(NAMES, np.exp(found.x), errors):
        print(f"  {name:16} {value:7.3f} ± {value * error:.3f}")


if __name__ == "__main__":
    main()
