"""Programs of array functions, in the manner of corpus.py."""

from __future__ import annotations

import numpy as np
from compiler.corpus import numbers, program, signed


@program(signed(6), numbers(6))
def sorting(x, w):
    y = np.sort(x)
    order = np.argsort(x)
    z = x * w
    z.sort()
    return np.sum(y * w) + w[order] * z + np.median(x) * np.median(w[:5]) + np.ptp(x) * np.count_nonzero(x > 0)


@program(numbers(4), np.array([0.0, 0.5, 1.1, 2.0]), signed(4))
def interpolation(x, xp, fp):
    y = np.interp(x, xp, fp)
    inside = np.searchsorted(xp, x)
    s = np.interp(0.7, xp, fp) * xp[np.searchsorted(xp, x[0], side="right")]
    return y * xp[inside] + s + np.interp(np.array([-1.0, 0.2, 5.0, 1.3]), xp, fp)


@program(numbers(4), numbers(2, 3))
def joined_and_repeated(x, a):
    b = np.vstack((a, a[0] * 2.0))
    c = np.column_stack((x, x**2))
    d = np.hstack((x, x[:1])) * np.append(x, x[0] * 3.0)
    e = np.roll(x, 1) * np.flip(x) + np.repeat(x[:2], 2)
    f = np.take(x, np.array([3, 0, 0, 1])) * np.broadcast_to(x[1], (4,))
    g = np.kron(a[:, :2], a[:, 1:])
    h = np.fliplr(a) * np.flipud(a) + np.expand_dims(a[0], 0)
    return np.sum(b @ a.T) * c[1, 1] + d[4] * np.sum(e * f) + g[1, 2] * h[0, 1] + np.sum(np.triu(a) * np.tril(a, -1))


@program(numbers(5), numbers(2, 3))
def sums_of_other_kinds(x, a):
    b = np.cumsum(a) * np.cumprod(a.ravel())
    c = np.diff(x, n=2)
    d = np.trapezoid(x, dx=0.1) + np.trapezoid(x, np.cumsum(x))
    out = np.zeros((2, 2))
    np.dot(a, a.T, out)
    e = np.linalg.norm(x, 1) + np.linalg.norm(x, np.inf) + np.linalg.norm(a)
    f = np.vdot(a, a) + np.nansum(x) * np.nanmean(x)
    return np.sum(b) * c[1] + d * out[0, 1] + e * f + np.sum(np.diag(x)[1] * np.diag(out, 1)[0])
