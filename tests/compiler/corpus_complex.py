"""Programs with complex numbers, in the manner of corpus.py."""

from __future__ import annotations

import cmath
from typing import Any, NamedTuple

import numpy as np
from compiler.corpus import numbers, program, signed


def plane(*shape: int, seed: int = 0) -> Any:
    """Complex numbers in all quadrants, away from the axes."""
    found = signed(*shape, seed=seed) + 1j * signed(*shape, seed=seed + 31)
    return found if shape else complex(found)


HADAMARD = np.array([[1.0, 1.0], [1.0, -1.0]], dtype=np.complex128) / np.sqrt(2.0)


@program(0.7 - 0.4j, 1.3 + 0.8j, 0.9)
def complex_arithmetic(z, w, x):
    a = z * w - z / w + x * z - w / x + 2.0 / z
    b = a**2 + z**3 + w**-1 + z**0.5 + x**z + z**w + 2 * w
    return -b + (a + 1j) * 3 - (1 + 2j)


@program(0.4 + 0.3j)
def complex_elementary_functions(z):
    a = np.sin(z) + np.cos(z) * np.tan(z) + np.exp(-z) + np.log(z) + np.sqrt(z) + np.tanh(z)
    b = np.arcsin(z) + np.arccos(z) + np.arctan(z) + np.sinh(z) + np.cosh(z) + np.expm1(z) + np.log1p(z)
    c = np.log2(z) + np.log10(z) + np.exp2(z) + np.square(z) + np.reciprocal(z) + np.arcsinh(z) + np.arctanh(z)
    return a * b + c + np.arccosh(z) * np.power(z, 1.5) + np.positive(z)


@program(0.4 - 0.3j, 0.8)
def functions_of_cmath(z, x):
    r, phi = cmath.polar(z)
    a = cmath.exp(z) * cmath.log(z) + cmath.sqrt(-x) + cmath.rect(r, phi * x) + cmath.log(z, 2.0)
    b = cmath.sin(z) + cmath.cos(z) * cmath.tanh(z) + cmath.atan(z) + cmath.acosh(z)
    c = complex(x, 0.3 * x) + complex(x * x) * np.complex128(z)
    return a * b * c * cmath.phase(z) if cmath.isfinite(z) else a


@program(-0.6 + 0.8j, 1.1, 0.3)
def parts_of_complex_numbers(z, x, y):
    w = (x + 1j * y) * z.conjugate() + x
    a = abs(w) * np.angle(z) + w.real * z.imag + np.real(w) - np.imag(w * z)
    b = np.abs(z) ** 2 + (z * np.conj(z)).real + np.absolute(w) + x.real * y.conjugate() + x.imag
    return a * b, np.sign(z) * w, np.angle(w)


@program(plane(4), numbers(4))
def complex_arrays(z, x):
    w = z.conj() * x + z.real - 1j * z.imag
    w[1] = x[0]
    w[2] += x[1] * z[0]
    w[3] -= 1j
    w *= np.exp(1j * x)
    v = np.ones(4, dtype=np.complex128)
    v[::2] = w[:2]
    v[1:3] += x[:2]
    return np.sum(np.abs(v) ** 2) + np.prod(w).real, np.mean(v), v * z[::-1]


@program(0.9 + 0.8j)
def smooth_escape(c):
    z = 0j
    n = 0
    while abs(z) < 50.0 and n < 200:
        z = z * z + c
        n += 1
    return n + 1 - np.log(np.log(abs(z))) / np.log(2.0)


@program(plane(2, 3), -0.7 + 0.27j)
def julia_distances(points, c):
    total = 0.0
    for i in range(points.shape[0]):
        for j in range(points.shape[1]):
            z = points[i, j]
            dz = 1.0 + 0j
            for _ in range(6):
                dz = 2.0 * z * dz
                z = z**2 + c
                if abs(z) > 4.0:
                    break
            r = abs(z)
            total += r * np.log(r) / abs(dz)
    return total


@program(numbers(3), numbers(2), np.array([0.2, 0.9, 2.1]))
def transfer_function(b, a, omegas):
    loss = 0.0
    for k in range(omegas.shape[0]):
        shift = np.exp(-1j * omegas[k])
        top = 0j
        power = 1 + 0j
        for i in range(b.shape[0]):
            top += b[i] * power
            power *= shift
        bottom = 1 + 0j
        power = shift
        for i in range(a.shape[0]):
            bottom += a[i] * power
            power = power * shift
        h = top / bottom
        loss += (abs(h) ** 2 - 0.5) ** 2 + np.angle(h)
    return loss


def tridiagonal_solution(lower, diagonal, upper, right):
    n = right.shape[0]
    c = np.zeros(n, np.complex128)
    d = np.zeros(n, np.complex128)
    c[0] = upper / diagonal[0]
    d[0] = right[0] / diagonal[0]
    for i in range(1, n):
        m = diagonal[i] - lower * c[i - 1]
        c[i] = upper / m
        d[i] = (right[i] - lower * d[i - 1]) / m
    x = np.zeros(n, np.complex128)
    x[n - 1] = d[n - 1]
    for i in range(n - 2, -1, -1):
        x[i] = d[i] - c[i] * x[i + 1]
    return x


@program(plane(3), numbers(3), 0.05, 2)
def crank_nicolson(psi, potential, dt, steps):
    n = psi.shape[0]
    psi = psi / np.sqrt(np.sum(np.abs(psi) ** 2))
    r = 0.25j * dt
    diagonal = 1.0 + 2.0 * r + 0.5j * dt * potential
    for _ in range(steps):
        right = np.zeros(n, np.complex128)
        for i in range(n):
            right[i] = diagonal[i].conjugate() * psi[i]
            if i > 0:
                right[i] += r * psi[i - 1]
            if i < n - 1:
                right[i] += r * psi[i + 1]
        psi = tridiagonal_solution(-r, diagonal, -r, right)
    centre = 0.0
    for i in range(n):
        centre += i * (psi[i].real ** 2 + psi[i].imag ** 2)
    return centre, psi


@program(numbers(3), numbers(3, seed=2), numbers(3, seed=3), 50.0)
def impedance_network(r, l, c, f):
    w = 2.0 * np.pi * f * 1e-2
    z = 1e-3 + 0j
    for k in range(r.shape[0]):
        series = r[k] + 1j * w * l[k]
        shunt = 1.0 / (1j * w * c[k])
        z = series + 1.0 / (1.0 / shunt + 1.0 / (z + 1.0))
    reflected = (z - 50.0) / (z + 50.0)
    return 20.0 * np.log10(abs(reflected)), z


@program(plane(4), 0.9 + 0.7j)
def complex_newton(coefficients, start):
    z = start
    for _ in range(30):
        p = 0j
        dp = 0j
        for c in coefficients:
            dp = dp * z + p
            p = p * z + c
        step = p / dp
        z -= step
        if abs(step) < 1e-13:
            break
    return z


@program(plane(5))
def fourier_transform_by_loops(x):
    n = x.shape[0]
    out = np.zeros(n, dtype=np.complex128)
    for k in range(n):
        s = 0j
        for j in range(n):
            s += x[j] * np.exp(-2j * np.pi * j * k / n)
        out[k] = s
    return np.sum(np.abs(out) ** 2 * np.arange(n)), out


@program(signed(3, 3))
def characteristic_polynomial(a):
    n = a.shape[0]
    c = np.zeros(n + 1, np.complex128)
    c[n] = 1.0
    m = np.zeros((n, n), np.complex128)
    z = 0.3 + 1.1j
    b = a.astype(np.complex128)
    for k in range(1, n + 1):
        m = b @ m + c[n - k + 1] * np.eye(n)
        c[n - k] = -np.trace(b @ m) / k
    value = 0j
    for k in range(n, -1, -1):
        value = value * z + c[k]
    return value


class Gate(NamedTuple):
    theta: float
    phase: complex


@program(numbers(3), Gate(0.4, 0.6 + 0.8j))
def quantum_gates(angles, gate):
    state = np.zeros(4, np.complex128)
    state[0] = 1.0
    for theta in angles:
        u = np.zeros((2, 2), np.complex128)
        u[0, 0] = np.cos(theta / 2)
        u[1, 1] = np.exp(1j * theta) * np.cos(theta / 2)
        u[0, 1] = -1j * np.sin(theta / 2)
        u[1, 0] = -1j * np.sin(theta / 2)
        u = HADAMARD @ u @ HADAMARD
        full = np.kron(u, HADAMARD) @ np.diag(np.array([1.0, 1.0, 1.0, gate.phase]))
        state = full @ state
    z = np.array([1.0 + 0j, -1.0, 1.0, -1.0])
    return np.vdot(state, z * state).real + gate.theta * np.linalg.norm(state)


@program(numbers(4), numbers(4, seed=1), 0.7)
def exponential_sum(amplitudes, frequencies, t):
    s = 0j
    for a, w in zip(amplitudes, frequencies):
        s += a * np.exp(1j * w * t)
    return s.real**2 + 2.0 * s.imag


@program(plane(3, 2), plane(2, 3), plane(2))
def products_of_complex_matrices(a, b, x):
    c = a @ b
    y = np.dot(a, x)
    s = np.dot(x, x) + np.vdot(x, b[:, 1]) + np.trace(c.conj().T)
    return np.sum(np.abs(c)) + abs(s), y @ c, np.outer(x, x.conj()), np.cross(y, c[0])


@program(plane(3, 3), plane(3), plane(3, 2))
def complex_linear_algebra(a, b, c):
    a = a + 3.0 * np.eye(3)
    x = np.linalg.solve(a, b)
    y = np.linalg.solve(a, c)
    s, logdet = np.linalg.slogdet(a)
    return np.sum(np.linalg.inv(a) @ y), np.linalg.det(a) * s, logdet, x


@program(plane(3, 3))
def hermitian_matrices(a):
    h = a @ a.conj().T + 2.0 * np.eye(3)
    factor = np.linalg.cholesky(h)
    values, vectors = np.linalg.eigh(h)
    return np.sum(factor.real) * np.abs(factor[2, 0]), values, np.abs(vectors[0, 1])


@program(plane(3, 2))
def complex_singular_values(a):
    u, s, v = np.linalg.svd(a, full_matrices=False)
    return np.sum(s**2) * s[1], np.abs(u[:, 0]), np.abs(v[1]), np.linalg.svdvals(a[:2])


@program(plane(3, 2), plane(2, 2))
def complex_factors_and_inverses(a, b):
    q, r = np.linalg.qr(a)
    square_q, square_r = np.linalg.qr(b)
    return np.abs(q[1]) * np.abs(r[0]), (square_q @ square_r)[0] * square_r[1, 1].real, np.linalg.pinv(a)[1]


@program(0.6 * plane(4))
def vectors_of_complex_functions(z):
    a = np.exp(z) * np.sin(z) + np.log(z) * np.tanh(z) + np.cos(z) ** z + z**3 + np.sqrt(z) + 1 / z
    b = np.expm1(z) * np.log1p(z) + np.arcsin(z) + np.arctan(z) * np.cosh(z) + z**-2.5 + np.exp2(z)
    s = 0j
    for v in z:
        s += np.exp(v) / np.tan(v) + np.sinh(v) * np.log10(v) + abs(v) ** 1.5
    return np.sum(a * b), np.abs(a) + np.angle(b), s


@program(plane(5), plane(5, seed=3))
def reductions_of_complex_arrays(z, w):
    a = np.cumsum(z) * np.cumprod(w)
    b = np.concatenate((z, w.real + 0j))
    m = np.stack((z, w))
    c = np.sum(m, axis=0) * np.mean(m, axis=1)[0] + np.prod(m, axis=0)
    d = np.where(z.real > 0, w, 1j) + np.diff(b)[:5] + np.roll(w, 2)
    e = np.std(z) + np.var(w) + np.linalg.norm(z) + np.linalg.norm(w, 1) + np.sum(np.angle(z))
    return np.sum(a * c), d, e, np.max(np.abs(z)), b[np.array([0, 7, 3])]


@program(plane(4), plane(4, seed=2), 2)
def swapped_complex_buffers(z, w, n):
    a, b = z.copy(), w * 0.5
    for i in range(n):
        for k in range(4):
            b[k] = a[k] * a[(k + 1) % 4] + 0.1j * i
        a, b = b, a
        b[0] = b[0] * 2.0
    return np.sum(a * np.conj(b))


@program(plane(4), numbers(4))
def complex_in_place(z, x):
    for i in range(1, 4):
        z[i] = z[i] * z[i - 1] + x[i]
        x[i] = abs(z[i]) * x[i - 1]
    z[:2] *= 1j


def power(z, n):
    if n == 0:
        return 1.0 + 0j
    half = power(z, n // 2)
    return half * half * z if n % 2 else half * half


@program(0.8 - 0.6j, 5)
def complex_recursion(z, n):
    return power(z, n) + power(z.conjugate(), 3)


@program(plane(3), 0.5)
def number_or_complex(z, x):
    s = 0.0
    t = 1
    for i in range(3):
        if x > 0.2:
            s = s * x + z[i]
        t = t * (1.0 + z[i] * 0.1)
        w = x if i == 1 else z[i] * x
        s += w
    return s if x > 1.0 else s * t


@program(0.7 + 0.4j, 0.3)
def choices_by_complex_numbers(z, x):
    a = z if z == 5.0 else 2 * z
    b = x if z != 0 else z
    c = (1 + 1j) if x > 1 else z * x
    d = 1.0 if z and not z.imag < 0 else 0j
    return a * b + c * d


@program(plane(3).astype(np.complex64), numbers(3).astype(np.float32))
def single_precision_complex(z, x):
    w = z * x + z.conj()
    return np.sum(np.abs(w)), w[0] * w[1]
