"""SciPy's special functions of real numbers, as plain Python in numba's subset: native code has no way to SciPy's own.

Each is that of `scipy.special` of its name, to a few units in the last place. Their derivatives are the rules of those.
"""

from __future__ import annotations

import math

import numpy as np

# B_2k / (2k)! of the asymptotic series of ψ and its derivatives.
BERNOULLI = (
    1 / 12,
    -1 / 720,
    1 / 30240,
    -1 / 1209600,
    1 / 47900160,
    -691 / 1307674368000,
    1 / 74724249600,
    -3617 / 10670622842880000,
)
FAR = 12.0  # from here on the series is exact to the last bits


def erf(x: float) -> float:
    return math.erf(x)


def erfc(x: float) -> float:
    return math.erfc(x)


def gamma(x: float) -> float:
    if x == 0.0:
        return math.copysign(math.inf, x)
    if x > 171.7:
        return math.inf
    if x < 0.0 and x == np.floor(x):
        return math.nan
    return math.gamma(x)


def gammaln(x: float) -> float:
    if x <= 0.0 and x == np.floor(x):
        return math.inf
    return math.lgamma(x)


def digamma(x: float) -> float:
    return polygamma(0, x)


def psi(x: float) -> float:
    return polygamma(0, x)


def polygamma(n: int, x: float) -> float:
    """ψ⁽ⁿ⁾(x): upwards by the recurrence ψ⁽ⁿ⁾(x) = ψ⁽ⁿ⁾(x + 1) − (−1)ⁿ n! / xⁿ⁺¹, then the asymptotic series.

    Source: Abramowitz and Stegun (1964), 6.3.18, 6.4.6 and 6.4.11; ψ(x) of negative x by reflection, 6.3.7.
    """
    if x == 0.0 and n == 0:
        return -math.copysign(math.inf, x)
    if x <= 0.0 and x == np.floor(x):
        return math.nan if n == 0 else math.inf if n % 2 else -math.inf
    reflected = 0.0
    if x < 0.0 and n == 0:
        reflected = -math.pi / math.tan(math.pi * x)
        x = 1.0 - x
    sign = 1.0 if n % 2 else -1.0  # (−1)ⁿ⁺¹
    factorial = 1.0  # n!
    for k in range(2, n + 1):
        factorial *= k
    total = 0.0
    while x < FAR + n:
        total += factorial / x ** (n + 1)
        x += 1.0
    total += factorial / (2.0 * x ** (n + 1))
    # (2k + n − 1)! / x^(2k + n), from k = 1 on.
    power = factorial * (n + 1) / x ** (n + 2) if n > 0 else 1.0 / x**2
    for k in range(len(BERNOULLI)):
        total += BERNOULLI[k] * power
        power *= (2 * k + 2 + n) * (2 * k + 3 + n) / (x * x)
    if n == 0:
        return math.log(x) - total + reflected
    return sign * (total + factorial / n / x**n)


def expit(x: float) -> float:
    if x >= 0.0:
        return 1.0 / (1.0 + math.exp(-x))
    e = math.exp(x)
    return e / (1.0 + e)


def logit(x: float) -> float:
    if x == 0.0:
        return -math.inf
    if x == 1.0:
        return math.inf
    if x < 0.0 or x > 1.0:
        return math.nan
    return math.log(x / (1.0 - x))


def log_expit(x: float) -> float:
    return -math.log1p(math.exp(-x)) if x >= 0.0 else x - math.log1p(math.exp(x))


def xlogy(x: float, y: float) -> float:
    if x == 0.0 and y == y:
        return 0.0
    if y == 0.0:
        return -math.inf if x > 0.0 else math.inf if x < 0.0 else math.nan
    return x * math.log(y) if y > 0.0 else math.nan


def xlog1py(x: float, y: float) -> float:
    if x == 0.0 and y == y:
        return 0.0
    if y == -1.0:
        return -math.inf if x > 0.0 else math.inf if x < 0.0 else math.nan
    return x * math.log1p(y) if y > -1.0 else math.nan


def entr(x: float) -> float:
    if x == 0.0:
        return 0.0
    return -x * math.log(x) if x > 0.0 else -math.inf if x < 0.0 else math.nan


def ndtr(x: float) -> float:
    return 0.5 * math.erfc(-x / math.sqrt(2.0))


def expm1(x: float) -> float:
    return math.expm1(x)


def log1p(x: float) -> float:
    if x > -1.0:
        return math.log1p(x)
    return -math.inf if x == -1.0 else math.nan


def cbrt(x: float) -> float:
    if x == 0.0 or x - x != 0.0:
        return x
    root = math.copysign(math.exp(math.log(abs(x)) / 3.0), x)
    return root - (root - x / (root * root)) / 3.0


def exp2(x: float) -> float:
    return 2.0**x


def exp10(x: float) -> float:
    return 10.0**x


# Those that stand for a ufunc of scipy.special.
UFUNCS = (
    "erf erfc gamma gammaln digamma psi expit logit log_expit xlogy xlog1py entr ndtr expm1 log1p cbrt exp2 exp10"
).split()
