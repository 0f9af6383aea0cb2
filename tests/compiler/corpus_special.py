"""Programs with special functions, in the manner of corpus.py."""

from __future__ import annotations

import math

import numpy as np
from compiler.corpus import numbers, program
from scipy import special
from scipy.special import expit, gammaln


@program(numbers(3), 0.6)
def special_functions(x, a):
    s = math.lgamma(a) * math.gamma(a + 1.0) + special.erf(a) * special.erfc(a)
    y = gammaln(x) * special.digamma(x + 1.0) + expit(x) * special.log_expit(-x)
    z = special.xlogy(x, x + 1.0) + special.xlog1py(a, x) + special.entr(x) + special.ndtr(x)
    return y * z + special.logit(expit(a)) * s + special.log1p(x) * special.expm1(a) * special.psi(a)


@program(numbers(2, 3))
def normalised_exponentials(a):
    b = special.softmax(a, axis=1) * special.log_softmax(a, axis=0)
    return b.sum(axis=0) * special.logsumexp(a) + special.logsumexp(a * 3.0, axis=0) * np.sinc(a[0])
