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


@program(signed(3, 4), signed(2, 3, 2, seed=3))
def along_axes(a, s):
    b = np.cumsum(a, axis=0) * np.cumprod(a, axis=1) + np.sort(a, axis=0) * np.argsort(a, axis=1)
    c = np.median(a, axis=1) * np.trapezoid(a, axis=1) + np.quantile(a, 0.3, axis=1) * np.argmax(a, axis=1)
    d = np.roll(a, 1, axis=1) * np.flip(a, axis=0) + np.take(a, np.array([0, 0, 2]), axis=0)
    e = np.repeat(a, 2, axis=0)[1] * np.tile(a[0], 2)[2:6] + np.diff(a, axis=0)[1]
    f = np.transpose(s, (2, 0, 1)) * 2.0 + np.moveaxis(s, 2, 0) * np.swapaxes(s, 0, 2).sum()
    g = s * 1.5
    g.sort(axis=1)
    return np.sum(b * d) * c, e * np.linalg.norm(a, axis=0), f, g[:, 1]


@program(np.array([[0.4, np.nan, 1.3], [2.0, 0.7, -0.6], [np.nan, -1.1, 0.9]]), signed(3))
def missing_values(a, w):
    b = np.nansum(a, axis=0) * np.nanprod(a, axis=1) + np.nanmean(a, axis=1)
    c = np.nanmax(a, axis=0) * np.nanmin(a, axis=1) + np.nanvar(a, axis=0) * np.nanstd(a, axis=1, ddof=1)
    return (b + c) * np.sum(np.nan_to_num(a) * w, where=w > 0.0) + np.average(w, weights=w * w + 0.5)


@program(signed(2, 3), signed(3, 4), signed(2, 2, 3), signed(3))
def products_over_named_axes(a, b, s, x):
    c = np.einsum("ij,jk->ki", a, b) @ (s @ x)[0] + np.einsum("ij,j", a, x)[0]
    d = np.tensordot(s, b, axes=1).sum() + np.inner(a, x)[1] + np.einsum("bij->", s * 0.1)
    e = (s @ b)[1, 0] * np.matmul(s, a.T)[0, 1, 1] + np.convolve(x, b[0])[1:5] * np.correlate(x, x)[0]
    return c * d + e * np.cross(a, s[0])[1, 2] + np.convolve(b[0], x, "same") * np.convolve(x, b[1], "valid")[0]


@program(signed(4), signed(3, 4))
def parts_by_masks_and_lists(x, a):
    rows = a[:, 0] > -5.0
    b = a[rows].sum(axis=0) * a[1:, np.array([2, 0])][0, 1] + a[[0, 2], 1][0] * a[rows, 2].sum()
    positive = np.flatnonzero(x > 0.0)
    c = x[positive].sum() + x[np.nonzero(x < 0.0)[0]].sum() ** 2 + x[np.where(x > 0.0)[0][0]]
    y = a * 1.0
    y[rows] *= 2.0
    y[rows, 1] = x[0]
    y[:2, np.array([3, 1])] += c
    d = np.bincount(np.array([0, 2, 2, 1]), x) * np.heaviside(x[:3], 0.5) + np.digitize(x, np.array([0.0]))[0]
    return b * c + np.sum(y * y) * d[2], sum(x) * np.vander(x[:2], 3)[1] @ np.eye(3, k=1)


@program(numbers(2, 2))
def loops_over_arrays_that_are_bound_anew_inside(x):
    y = x * 2
    for i, r in enumerate(y):
        y = y - (np.cos(y.T) + (y - r)) * (i + 1)
    for _ in range(2):
        for v in y[:, 1]:
            y = np.sin(y) * v
    for r in y.T:
        if r[0] > 0.0:
            y = np.tanh(y) + r
    return y


@program(numbers(2, 2))
def loops_over_two_arrays_that_change_places(x):
    y = x * 2
    z = x * 3
    for r, s in zip(y, z):
        y, z = np.sin(z * r), np.cos(y * s)
    for v, w in zip(y.flat, z.flat):
        z = z + np.sin(v * y)
        y = np.tanh(y * w)
    return y, z


@program(numbers(2, 2))
def loops_over_an_array_that_changes_in_place(x):
    y = x * 2
    for r in y:
        y += np.sin(r)
        y[1, 0] *= r[1]
    return y
