"""Programs of linear algebra, in the manner of corpus.py."""

from __future__ import annotations

import numpy as np
from compiler.corpus import numbers, program

REGULAR = np.array([[2.0, 0.3, 0.5], [0.1, 1.5, 0.4], [0.2, 0.6, 1.8]])
SYMMETRIC = numbers(3, 3) + np.diag([2.0, 3.0, 4.5])


@program(REGULAR, numbers(3), numbers(3, 2))
def linear_systems(a, b, c):
    x = np.linalg.solve(a, b)
    y = np.linalg.solve(a.T, c)
    return np.sum(x * x) * y + np.linalg.inv(a)[0, 1]


@program(REGULAR)
def determinants(a):
    s, l = np.linalg.slogdet(a)
    return np.linalg.det(a) * l * s + np.linalg.det(a[:2, :2])


@program(SYMMETRIC)
def cholesky_factor(a):
    l = np.linalg.cholesky(a)
    return l * 2.0


@program(SYMMETRIC)
def eigenvalues(a):
    w, v = np.linalg.eigh(a)
    return w * w + np.linalg.eigvalsh(a)[0], (v * np.exp(-w)) @ v.T


@program(numbers(4, 3), numbers(3, 3))
def singular_values(a, c):
    u, s, vh = np.linalg.svd(a, full_matrices=False)
    f = (u * np.log(s)) @ vh
    u2, s2, v2 = np.linalg.svd(c)
    return f, s, s2, (u2 * np.sqrt(s2)) @ v2


@program(numbers(2, 4))
def wide_singular_values(a):
    u, s, vh = np.linalg.svd(a, full_matrices=False)
    return (u * np.log(s)) @ vh


@program(numbers(4, 3))
def orthogonal_factors(a):
    q, r = np.linalg.qr(a)
    return q[0, 1] * np.abs(r), np.outer(q[:, 0], q[:, 0])


@program(REGULAR, numbers(3), 3)
def systems_in_a_loop(a, b, n):
    x = b
    for _ in range(n):
        x = np.linalg.solve(a, x) + b * 0.1
    return x


@program(REGULAR, numbers(3), 3)
def matrix_that_changes_in_a_loop(a, b, n):
    m = a.copy()
    s = 0.0
    for _ in range(n):
        x = np.linalg.solve(m, b)
        for i in range(3):
            m[i, i] += x[i] * x[0]
        x[0] = 2.0 * x[1]
        s += x[0] * x[2] + s * x[1]
    return s


@program(REGULAR, numbers(3))
def systems_until_they_converge(a, b):
    x = b * 1.0
    k = 0
    while k < 5 and x[0] > 0.01:
        if k % 2 == 0:
            x = np.linalg.solve(a, x)
        k += 1
    return x


@program(numbers(4, 3, 3) + 2 * np.eye(3), numbers(4, 3))
def a_system_for_each_point(a, b):
    s = 0.0
    for i in range(4):
        x = np.linalg.solve(a[i], b[i])
        s += np.sum(x * x * x)
    return s


@program(REGULAR, numbers(3))
def system_overwritten(a, b):
    m = a * 2.0
    x = np.linalg.solve(m, b)
    m[0, 0] = x[1]
    x[1] = 3.0 * x[0]
    if b[0] > 0:
        y = np.linalg.solve(m, x)
        s = y[0] * y[1]
    else:
        s = 0.0
    m[1, 1] = s
    return np.linalg.det(m) * x


@program(numbers(2, 2) + np.eye(2), numbers(2, 2), numbers(5, 2))
def kalman_filter(f, q, z):
    x = np.zeros(2)
    p = np.eye(2)
    ll = 0.0
    for k in range(5):
        x = f @ x
        p = f @ p @ f.T + q @ q.T
        e = z[k] - x
        s = p + np.eye(2) * 0.5
        g = p @ np.linalg.inv(s)
        _, ld = np.linalg.slogdet(s)
        ll -= 0.5 * (ld + np.dot(e, np.linalg.solve(s, e)))
        x = x + g @ e
        p = p - g @ p
    return ll


@program(numbers(3, 2), numbers(2, 3, seed=3), REGULAR)
def powers_and_pseudo_inverses(a, b, c):
    p, q = np.linalg.pinv(a), np.linalg.pinv(b)
    d = np.linalg.matrix_power(c, 3) @ np.linalg.matrix_power(c, -1)
    return p @ q * 2.0, d @ np.linalg.matrix_power(c, 0)


@program(np.stack((REGULAR, REGULAR.T + np.eye(3))), numbers(3, 2), numbers(3))
def stacks_of_matrices(a, b, c):
    symmetric = a @ np.swapaxes(a, 1, 2)
    x = np.linalg.solve(a, b) + np.linalg.inv(a)[:, :, :2] * np.linalg.det(a)[0]
    y = np.linalg.eigh(symmetric)[0] * np.linalg.slogdet(a)[1].sum() + np.linalg.svdvals(a)
    z = np.linalg.cholesky(symmetric)[1] @ c + np.linalg.qr(a)[1][0, :, 1] ** 2
    return x, y * np.linalg.solve(a[0], c) + z


@program(numbers(4, 2), numbers(4), numbers(4, 2, seed=5))
def least_squares(a, b, c):
    x, residuals, rank, s = np.linalg.lstsq(a, b)
    y = np.linalg.lstsq(a[:2].T @ a[:2] + np.eye(2), c[:2], rcond=1e-6)[0]
    return x * rank, y * residuals[0], s * np.sum(np.linalg.lstsq(a, c)[1])


@program(numbers(2, 4), numbers(2))
def least_squares_of_few_equations(a, b):
    x, residuals, rank, s = np.linalg.lstsq(a, b)
    return x * s[1] + np.sum(residuals) + rank
