"""Programs whose loops run on several threads, in the manner of corpus.py."""

from __future__ import annotations

import numpy as np
from compiler.corpus import numbers, program, signed

try:
    from numba import prange
except ImportError:
    prange = range


@program(numbers(7), 0.6)
def parallel_sum(x, w):
    s = 0.0
    for i in prange(len(x)):
        s += np.sin(x[i] * w)
    return s


@program(signed(5, 2), signed(3, 2))
def parallel_kmeans(points, centroids):
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


@program(numbers(5, 3), numbers(3), np.array([1, 0, 1, 2, 1]))
def parallel_rows(a, w, k):
    out = np.zeros((5, 3))
    for i in prange(5):
        row = a[i] * w
        total = np.sum(row)
        for j in range(3):
            out[i, j] = row[j] * total * w[k[i]]
    for i in prange(5):
        out[i, 0] *= out[i, 1]
    return out


@program(numbers(6), numbers(2, 2))
def parallel_with_scratch_arrays(x, m):
    s = 0.0
    for i in prange(1, 6):
        scratch = np.zeros(2)
        v = np.zeros(2)
        for j in range(2):
            scratch[j] = x[i] * m[j, 0]
        for j in range(2):
            v[j] = scratch[j] * x[i - 1] + m[1, j]
        s += v[0] * v[1]
    return s


@program(numbers(4, 3), numbers(3))
def parallel_with_sizes_to_compare(a, w):
    s = 0.0
    for i in prange(4):
        s += np.sum((a[i] - w) ** 2) * np.max(a[i] * w)
    return s


@program(numbers(4, 3))
def parallel_with_tapes_of_unknown_length(a):
    s = 0.0
    for i in prange(4):
        t = 1.0
        for j in range(3):
            for k in range(j, 3):
                t = np.sin(t) * a[i, j] + a[i, k]
        s += t
    return s


@program(numbers(5, 3), numbers(3), numbers(2))
def parallel_with_scratch_arrays_in_front(a, w, v):
    s = 0.0
    z = np.zeros(len(w))
    ends = np.zeros(len(v))
    for i in prange(5):
        for c in range(len(v)):
            for j in range(len(w)):
                z[j] = a[i, j] * w[j] + v[c]
            for j in range(1, len(w)):
                z[j] += z[j - 1] * w[0]
            ends[c] = np.sum(z * z)
        s += ends[0] * np.exp(-ends[1])
    return s


@program(numbers(4, 3), numbers(3), 0.7)
def parallel_inside_of_a_loop(a, w, c):
    s = 0.0
    for _ in range(2):
        for i in prange(4):
            t = np.sum(a[i] * w)
            s += np.sin(t) * c
        c = c + s * 0.1
    return s


@program(numbers(6))
def parallel_only_in_part(x):
    y = np.zeros(6)
    last = 0.0
    for i in prange(6):
        y[i] = x[i] * x[5 - i]
    for i in range(1, 6):
        y[i] += y[i - 1] * 0.5
    for i in prange(6):
        last = y[i] * x[0]
    return np.sum(y) * last


@program(signed(4) + 1j * numbers(4), numbers(2) * (0.5 - 1j))
def parallel_with_complex_numbers(z, w):
    s = 0j
    out = np.zeros(z.shape[0], np.complex128)
    for i in prange(z.shape[0]):
        t = z[i] * w[0] + w[1] * np.exp(1j * z[i].real)
        out[i] = t * t
        s += t
    return abs(s) ** 2 + np.sum(out.imag)
