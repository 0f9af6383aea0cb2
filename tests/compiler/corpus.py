"""Programs in the language of `compile`, each with arguments: what every pass and every mode must get right.

`@program(...)` gives the arguments; functions that are called by others stand as they are. Numbers are chosen away from
kinks, and small enough for differences.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Case(NamedTuple):
    function: Callable[..., Any]
    args: tuple[Any, ...]


CASES: dict[str, Case] = {}


def program(*args: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def register(f: Callable[..., Any]) -> Callable[..., Any]:
        CASES[f.__name__] = Case(f, args)
        return f

    return register


def numbers(*shape: int, seed: int = 0, low: float = 0.3, high: float = 1.7) -> np.ndarray:
    return np.random.default_rng(seed + 17 * len(shape)).uniform(low, high, shape)


def signed(*shape: int, seed: int = 0) -> np.ndarray:
    x = numbers(*shape, seed=seed)
    x[np.random.default_rng(seed + 5).random(shape) < 0.5] *= -1
    return x


# --- scalars and loops -------------------------------------------------------------------------------------------


@program(0.7, 1.3)
def arithmetic(x, y):
    a = x * y - x / y
    b = a**2 + x**3 + 2.0**y + x**y
    return -b + (a + 1) * 3 - 4 // 3 + y % 0.7


@program(0.7)
def elementary_functions(x):
    a = np.sin(x) + np.cos(x) * np.tan(x) + np.exp(-x) + np.log(x) + np.sqrt(x) + np.tanh(x)
    b = np.arcsin(x) + np.arccos(x) + np.arctan(x) + np.sinh(x) + np.cosh(x) + np.expm1(x) + np.log1p(x)
    c = math.sin(x) + math.exp(x) * math.log(x) + math.sqrt(x) + math.atan2(x, 2.0) + math.hypot(x, 3.0) + math.erf(x)
    d = np.log2(x) + np.log10(x) + np.exp2(x) + np.square(x) + np.reciprocal(x) + np.arcsinh(x) + np.arctanh(x)
    e = abs(-x) + np.abs(x - 3) + math.pow(x, 1.5) + np.maximum(x, 0.2) + np.minimum(x, 0.1) + np.logaddexp(x, 2.0)
    return a * b + c * d - e * math.erfc(x) + np.floor(x) + np.sign(x) + math.floor(x) + np.fmax(x, 0.1)


@program(signed(6))
def sum_of_squares(x):
    s = 0.0
    for i in range(x.shape[0]):
        s += x[i] * x[i]
    return s


@program(signed(7), 0.8)
def branches_in_a_loop(x, w):
    s = 0.0
    for i in range(len(x)):
        if x[i] > 0.5:
            s += x[i] * w
        elif x[i] > 0:
            s = s * 0.9 + x[i]
        else:
            t = np.exp(x[i]) * s
            s = t - w / x[i]
    return s


@program(0.6)
def newton_in_a_while_loop(a):
    x = 1.0
    n = 0
    while abs(x * x - a) > 1e-12 and n < 50:
        x = 0.5 * (x + a / x)
        n += 1
    return x


@program(numbers(5), 3)
def steps_of_all_kinds(x, k):
    s = 0.0
    for i in range(4, -1, -1):
        s = s * 0.7 + x[i]
    for i in range(0, 5, 2):
        s += x[i] ** 2
    for i in range(3, 0, -2):
        s *= x[i]
    for i in range(1, 5, k):
        s -= x[i] * s
    for i in range(5, -1, -k):
        s += x[min(i, 4)]
    for i in range(3, 3):
        s *= 100.0
    return s


@program(numbers(4, 5))
def triangular_loops(a):
    s = 0.0
    for i in range(a.shape[0]):
        for j in range(i, a.shape[1]):
            s = s * 0.9 + a[i, j] * a[i, i] * np.sin(s)
    return s


@program(numbers(6))
def triangular_with_a_bound_below_zero(x):
    s = 0.1
    for i in range(3):
        for j in range(i - 2, 2):
            s = np.sin(s) * x[j + 2] + x[i]
    return s


@program(numbers(4))
def empty_inner_loops(x):
    s = 1.0
    for i in range(4):
        for j in range(i - 2):
            s = s * x[j] + x[i]
    return s


@program(signed(9))
def break_and_continue(x):
    s = 0.0
    for i in range(x.shape[0]):
        if x[i] < -1.0:
            continue
        if s > 3.0:
            break
        s += x[i] ** 2 * (1.0 + 0.1 * s)
    return s


@program(numbers(8))
def loop_with_else(x):
    s = 1.0
    for i in range(8):
        if x[i] > 100.0:
            s = s * x[i]
            break
        s += x[i] * s * 0.1
    else:
        s = s * s
    for i in range(8):
        if x[i] > 0.9:
            s = s + x[i] ** 3
            break
    else:
        s = -1.0
    return s


@program(numbers(5, seed=4))
def jumps_behind_an_inner_loop(x):
    y = x.copy()
    total = 0.0
    for i in range(x.size):
        for k in range(2):
            y[k] = np.sin(y[k] + x[i])
            if y[k] < 0.2:
                break
        else:
            if i > 2:
                break
            total += y[0] * x[i]
            continue
        total -= y[1]
    k = 0
    while k < 5:
        k += 1
        j = 0
        while j < k:
            j += 1
            total = total * x[j - 1] + 0.1
        else:
            if total < 0.9:
                continue
            else:
                for j in range(2):
                    total += y[j]
                else:
                    break
        total += x[k - 1] ** 2
    return total


@program(numbers(8))
def nested_break(x):
    s = 0.0
    for i in range(4):
        t = 1.0
        for j in range(8):
            t = t * x[j]
            if t < 0.5:
                break
            if j == i:
                continue
            t = t + 0.1
        s += t * x[i]
    return s


@program(signed(6))
def early_return(x):
    if x[0] > 10.0:
        return x[0]
    s = 0.0
    for i in range(6):
        s += x[i] ** 2
        if s > 2.5:
            return s * x[i]
    return -s


@program(0.4, numbers(3))
def early_return_of_several(t, x):
    if t > 0:
        y = x[0] * t
        return y, x[1] * x[2]
    return t, x[0]


@program(numbers(5))
def return_from_nested_loops(x):
    for i in range(5):
        for j in range(5):
            if x[i] * x[j] > 1.3:
                return x[i] * x[j] ** 2
            if i + j > 7:
                return x[0]
    return x[1]


@program(numbers(5))
def return_from_an_endless_loop(x):
    for i in range(5):
        y = x[i]
        while True:
            y = y * 0.3 * x[0]
            if y < 0.2:
                if i < 2:
                    break
                return y * x[i], y
            if y > 100:
                raise ValueError("grows")
    return x[0], x[1]


@program(0.9, 2)
def endless_loops_behind_a_branch(x, n):
    if x > 2:
        while 1:
            x = x / 3
            if x < 1:
                return x
    else:
        while True:
            n += 1
            while True:
                x = x * x
                if x < 0.1:
                    return n * x
                if x < 0.8:
                    break


@program(numbers(5), 3)
def arrays_born_in_loops(x, n):
    total = 0.0
    for k in range(n):
        for i in range(3):
            y = np.sin(x * i) * x[k]
            part = x[1:4]
        total += y[1] * np.sum(y) + part[0]
    while n < 6:
        n += 1
        z = x[::2] * n
        w = np.zeros((len(x), 2))
        for j in range(len(x)):
            w[j] = x[j] * x[:2]
    y[0] += 2.0 * total
    return y * total, z * z[0] + part[0], w[1]


@program(numbers(5))
def array_born_in_a_loop_that_is_left(x):
    for v in x:
        y = x * v
        if y[0] > 0.8:
            break
    else:
        y = x + 1.0
    return np.sum(y * y)


@program(numbers(5))
def while_with_break_and_continue(x):
    i = 0
    s = 0.5
    while True:
        i += 1
        if i > 4:
            break
        if x[i] < 0.8:
            continue
        s = s * x[i] + 0.3
    return s


@program(0.3, 0.9)
def conditional_expressions(a, b):
    c = a if a > b else b * b
    d = (a + b if a < b else a - b) * c
    return d if not (a > 0 and b > 0) or c > 10 else d * 2


@program(numbers(4))
def short_circuit_around_a_load(x):
    s = 0.0
    for i in range(-1, 6):
        if i >= 0 and i < 4 and x[i] > 0.5:
            s += x[i] ** 2
        if i < 0 or i >= 4 or x[i] < 0.5:
            s *= 1.1
    return s


@program(1.2)
def pythons_min_and_max(x):
    return max(x, 1.0) * min(x * x, 3.0, 2.0 * x) + max(0.0, x - 5.0)


@program(numbers(3), 4)
def scalars_that_start_as_integers(x, n):
    s = 0
    k = 1
    for i in range(n):
        s = s + x[i % 3] * k
        k = k * 2
    return s / k


@program(numbers(4))
def chained_comparisons_and_tuples(x):
    a, b = x[0], x[1]
    a, b = b, a * 2.0
    t = (a, b, x[2])
    s = t[0] * t[2]
    if 0.0 < a < 5.0:
        s += t[1]
    (c, d), e = (a, s), b
    return c * d + e


@program(0.5, 0.25)
def reassigned_parameter(x, y):
    x = x * y
    y = x + y
    x = x * x
    for _ in range(3):
        x = x * y + 0.1
    return x - y


@program(numbers(5))
def variable_read_after_its_loop(x):
    last = 0.0
    for i in range(5):
        last = x[i] * x[i]
    return last * x[i]


@program(numbers(6))
def carried_in_order(x):
    p, q = 1.0, 2.0
    for i in range(6):
        p, q = q * x[i], p + q * 0.5
    return p + q


@program(numbers(5))
def enumerate_and_zip(x):
    s = 0.0
    for i, v in enumerate(x):
        s += v * (i + 1)
    for i, v in enumerate(x[1:], 2):
        s *= 1.0 + 0.01 * v * i
    for a, b in zip(x[:-1], x[1:]):
        s += a * b
    for k in (1, 3):
        s -= x[k] ** k
    return s


# --- arrays ------------------------------------------------------------------------------------------------------


@program(numbers(5), 0.5)
def fill_and_read(x, c):
    y = np.zeros(5)
    y[0] = x[0]
    for i in range(1, 5):
        y[i] = y[i - 1] * c + x[i]
    return np.sum(y * y)


@program(numbers(5))
def overwritten_elements(x):
    y = np.zeros(5)
    for i in range(5):
        y[0] = x[i] * (y[0] + 1.0)
        y[i] = y[0] * x[0]
    y[2] *= x[1]
    y[3] -= y[2] * y[3]
    y[-1] /= x[2]
    return y


@program(numbers(6), numbers(6, seed=3))
def in_place_argument(x, out):
    for i in range(6):
        out[i] = out[i] * x[i] + out[i - 1]
    return out[3]


@program(numbers(6))
def views_write_through(x):
    y = np.zeros((3, 2))
    row = y[1]
    row[0] = x[0]
    col = y[:, 1]
    col[2] = x[1] * row[0]
    row[1] = col[2] * x[2]
    t = y.T
    t[0, 2] = x[3]
    y[0] = x[4]
    y[2, :] += x[5]
    return np.sum(y * y) * row[1] + t[1, 1]


@program(numbers(8))
def slices_with_steps(x):
    y = x[1:7:2] * x[::3] + x[-3:]
    z = np.zeros(8)
    z[::2] = x[4:]
    z[1::2] = y[0] * x[:4]
    z[5:1:-1] *= 2.0
    return z[::-1] * x


@program(numbers(3, 4), numbers(4, seed=1), numbers(3, 1, seed=2))
def broadcasting(a, b, c):
    d = a * b + c
    e = (a - b[None, :]) ** 2 / c
    return d * np.exp(-e) + b[1] * 2


@program(numbers(3, 4))
def reductions_with_axes(a):
    r = np.sum(a, axis=0)
    c = a.mean(axis=1, keepdims=True)
    d = (a - c) ** 2
    return np.sum(r) * d.sum() + np.prod(a[0]) + np.mean(a) + np.var(a) + a.std() + np.sum(np.max(a, axis=1)) + a.min()


@program(signed(7))
def extremes(x):
    m = np.max(x)
    y = np.exp(x - m)
    k = np.argmax(x)
    return m + np.log(np.sum(y)) + x[k] * np.min(x) + x[np.argmin(x)] + max(x)


@program(np.array([1.0, 2.0, 2.0, 0.5]))
def log_sum_exp(x):
    m = np.max(x)
    return m + np.log(np.sum(np.exp(x - m)))


@program(signed(6))
def masks_and_gathers(x):
    pos = x > 0
    a = x[pos]
    s = np.sum(a * a)
    idx = np.array([0, 2, 2, 5])
    b = x[idx] * s
    y = x.copy()
    y[x < 0] = s
    y[idx] += b
    z = np.zeros(6)
    z[pos] = a * 2.0
    return y + np.where(pos, x * z, np.sin(x))


@program(numbers(4, 3), np.array([2, 0, 1, 2]))
def integer_arrays_as_arguments(a, k):
    s = 0.0
    for i in range(4):
        s += a[i, k[i]] ** 2 * k[i]
    return s * a[k, k][1] + np.sum(a[k])


@program(numbers(5), numbers(5, seed=2), 3)
def rebinding_in_a_loop(x, v, n):
    y = x
    for k in range(n):
        y = y * v + np.sin(y)
    return np.sum(y)


@program(numbers(5), 4)
def leapfrog(x, n):
    previous = x
    current = x * 1.1
    for k in range(n):
        new = 2.0 * current - previous - 0.1 * np.sin(current)
        previous = current
        current = new
    return current * previous


@program(numbers(5), numbers(5, seed=1), 5)
def swapped_buffers(x, y, n):
    a = x.copy()
    b = y.copy()
    for k in range(n):
        for i in range(1, 4):
            b[i] = 0.3 * a[i - 1] + 0.4 * a[i] ** 2 + 0.2 * a[i + 1]
        a, b = b, a
    return a * 2.0 + b


@program(numbers(4), numbers(4, seed=1))
def swapped_once(x, y):
    a, b = x, y
    a, b = b, a
    c = a + 2.0 * b
    a, c = c, a
    return a * c


@program(numbers(4))
def alias_survives_a_rebinding(x):
    y = x * 2.0
    z = y
    y = y + 1.0
    z[0] = x[1]
    return y * z


@program(numbers(4))
def rebinding_in_a_branch(x):
    y = x * 1.0
    if x[0] > 0:
        y = y * y
    else:
        y = y + 1.0
    if x[1] < 0:
        y = x + y
    return y


@program(numbers(3), 3)
def scratch_array_in_a_loop(x, n):
    s = 0.0
    for k in range(n):
        t = np.zeros(3)
        for i in range(3):
            t[i] = x[i] * (k + 1) + s
        s += np.sum(t * t) * 0.1
    return s


@program(numbers(3), 3)
def scratch_array_that_only_looks_private(x, n):
    t = np.zeros(3)
    s = 0.0
    for k in range(n):
        for i in range(2):
            t[i] = x[i] * (s + t[2])
        s += t[0] * t[1] + t[2]
        t[2] = s * x[2]
    return s


@program(numbers(6))
def allocated_with_another_size(x):
    s = 0.0
    for n in range(1, 4):
        w = np.zeros(2 * n)
        for i in range(2 * n):
            w[i] = x[i] * s + x[0]
        s += np.sum(w) * w[n]
    return s


@program(numbers(5))
def reload_after_a_write_through_a_view(x):
    y = x.copy()
    v = y[1:]
    a = y[1]
    v[0] = a * a
    b = y[1]
    v[:] = v * b
    return a * b + y[1] * np.sum(y)


@program(numbers(4, 4))
def cholesky_by_hand(a):
    n = a.shape[0]
    l = np.zeros((n, n))
    for i in range(n):
        for j in range(i + 1):
            s = a[i, j] * a[j, i]
            if i == j:
                s += 8.0
            for k in range(j):
                s -= l[i, k] * l[j, k]
            if i == j:
                l[i, j] = np.sqrt(s)
            else:
                l[i, j] = s / l[j, j]
    return l


@program(numbers(3, 4), numbers(4, 2, seed=1), numbers(3, seed=2), numbers(4, seed=3))
def products(a, b, u, v):
    c = a @ b
    d = np.dot(a, v) * u
    e = u @ a
    return np.sum(c * c) + np.dot(d, u) * np.sum(e * v) + np.outer(u, v)[1, 2] + np.trace(a) + np.linalg.norm(v)


@program(numbers(3), numbers(3, seed=4))
def vectors_of_three(a, b):
    c = np.cross(a, b)
    d = np.array([a[0], b[1], c[2] * a[1]])
    m = np.array([[a[0], 1.0], [c[0], b[2]]])
    return np.sum(c * d) * m[1, 0] + m[0, 1] + len(d)


@program(numbers(6))
def joining_and_reshaping(x):
    a = x.reshape(2, 3)
    b = np.concatenate((x[:2], x[3:] * 2.0))
    c = np.stack((a[0], a[1] ** 2), axis=1)
    d = np.cumsum(x)
    e = np.diff(x)
    return np.sum(c) * b[3] + d[-1] * np.sum(d * x) + np.sum(e * e) + a.ravel()[4] * np.sum(np.transpose(a)[2])


@program(signed(5))
def clipping(x):
    return np.clip(x, -1.0, 0.8) * np.minimum(np.abs(x), 1.0) + np.sum(np.where(x > 0, np.log(np.abs(x)), x))


@program(0.3, 5)
def creation(x, n):
    a = np.full(n, x)
    b = np.arange(n) * x
    c = np.linspace(x, 2.0, n)
    d = np.ones((2, n)) * x
    e = np.eye(n)[1] * x + np.zeros_like(a) + np.ones_like(b)
    f = np.arange(0.0, 1.0, 0.25)
    return a * b + c * d[1] + e * f[2]


@program(numbers(3, 3))
def rows_of_a_matrix(a):
    s = 0.0
    for row in a:
        s += np.sum(row * row) * row[0]
    for i, row in enumerate(a):
        row_sum = 0.0
        for v in row:
            row_sum += v * (i + 1)
        s *= row_sum
    return s


@program(numbers(4), 0.6)
def scalar_set_again_before_an_inner_loop(x, w):
    s = 0.0
    for i in range(3):
        s = w * i
        for v in x:
            s = s * v + w
    return s


@program(numbers(3, 3))
def copy_of_an_argument_in_a_loop(a):
    s = 1.0
    for i in range(len(a)):
        b = a.copy()
        s *= b[i, i]
    return s


@program(numbers(3), 0.5)
def argument_shifted_by_a_constant(x, w):
    x += 0.5
    return w * w


@program(numbers(3), 0.4)
def copy_of_zeros_written_into(x, w):
    y = np.zeros(3)
    z = y.copy()
    z[1] = w
    return z * x


@program(numbers(2), 4)
def arrays_of_which_two_have_derivatives_swapped(x, n):
    a, b, c, d = x * 1.0, x * x, np.ones(2), np.zeros(2)
    for i in range(n):
        a, b, c, d = b, a, d, c
        a[0] += b[1] * c[0]
    return a * b + d


@program(numbers(3), 0.4, 3)
def views_of_swapped_arrays(x, w, n):
    a, b = x.copy(), x * w
    a[1:] += w
    for i in range(n):
        a, b = b, a
        a[1:] *= w
        b[:2] += a[::2] * b[0]
    c = a[1:]
    return np.sum(c * c) + b[-1] * np.sum(a[1:])


OUTSIDE = np.array([0.9, 0.6])


@program(numbers(2), 3)
def array_from_outside_swapped(x, n):
    a, b = OUTSIDE, x * 1.0
    s = 0.0
    for i in range(n):
        a, b = b, a
        s = s * a[0] + b[1]
    return s * (a + b)


# --- calls -------------------------------------------------------------------------------------------------------


def helper(x, scale=2.0, *, shift=0.0):
    if x < 0:
        return -x * scale
    return x * scale + shift


def fills(out, x):
    for i in range(len(out)):
        out[i] += x * (i + 1)


def several(x, y):
    s = x * y
    return s, s + x, y


def in_the_middle(x, first):
    a = x[0] * first
    return a * x


@program(0.8, numbers(4))
def calls_of_helpers(x, y):
    a = helper(x) + helper(-x, 3.0) * helper(x, shift=x)
    out = np.zeros(4)
    fills(out, a)
    fills(out[1:3], x * x)
    b, c, d = several(a, x)
    return np.sum(out * y) * b + c * d + np.sum(in_the_middle(y, a))


@program(numbers(4))
def same_array_passed_twice(x):
    y = x.copy()
    adds_into(y, y)
    adds_into(y, x)
    return y


def adds_into(out, x):
    for i in range(len(out)):
        out[i] += x[len(x) - 1 - i] * x[i]


@program(numbers(5))
def call_that_writes_inside_an_expression(x):
    y = x.copy()
    return (y + 1.0) * doubles(y) + y


def doubles(y):
    for i in range(len(y)):
        y[i] = y[i] * 2.0
    return y[0]


def scaled_by(factor, shift=0.5):
    def scaled(v, *, power=2):
        return factor * v**power + shift

    return scaled


@program(0.8, numbers(4))
def functions_defined_inside(a, x):
    y = 1.0

    def step(v):
        return v * a + y

    square = lambda v, by=a: v * v * by
    s = 0.0
    for i in range(4):
        s += step(x[i]) + square(s)
        y = y * x[i]
    outer = scaled_by(a)
    return s * outer(y) + scaled_by(y, shift=s)(a, power=3)


FACTOR = 1.5
TABLE = np.array([1.0, 0.5, 2.0])


def make_closure():
    inner = 0.25

    def closes_over(x):
        s = 0.0
        for i in range(3):
            s += x[i] * TABLE[i] * inner
        return s * FACTOR

    return closes_over


program(numbers(3))(make_closure())


class Model(NamedTuple):
    weights: Any
    bias: Any
    count: int


@program(Model(numbers(3), 0.5, 2), numbers(3, seed=1))
def named_tuples(model, x):
    s = model.bias
    for _ in range(model.count):
        s += np.sum(model.weights * x) * s
    return s


@program((0.5, numbers(2)), 1.5)
def tuples_as_arguments(pair, k):
    a, x = pair
    return (a * x[0] * k, (x * a, k))


@program(numbers(4), None, "sum")
def constants_as_arguments(x, scale, kind):
    s = 1.0 if scale is None else scale
    if kind == "sum":
        return np.sum(x) * s
    return np.prod(x)


@program(numbers(3), True, 2)
def integers_and_truth_values(x, flag, n):
    s = 0.0
    if flag:
        s += x[n] * n
    m = n // 2 + n % 2
    return s * m, n + 1, s > 0


@program(np.array([0.5, 0.25, 1.5], dtype=np.float32), np.float32(0.75))
def single_precision(x, w):
    s = np.float32(0.0)
    for i in range(3):
        s += x[i] * w * x[i]
    return s + np.sum(np.tanh(x))


@program(numbers(3))
def result_is_the_argument(x):
    x[0] = x[1] * x[2]
    return x


@program(numbers(3))
def nothing_returned(x):
    x[0] = x[1] * x[0]
    x[:] = x * x[0]


@program(numbers(4), 0.53)
def no_path(x, w):
    n = int(w * 10)
    return x[n % 4] * 2.0


@program(numbers(4))
def constant_result(x):
    return 3.0


# --- whole algorithms --------------------------------------------------------------------------------------------


@program(numbers(4), 3)
def runge_kutta(x, n):
    def_dt = 2.0 / n
    y = np.zeros(4)
    k1 = np.zeros(4)
    k2 = np.zeros(4)
    t = np.zeros(4)
    for _ in range(n):
        slope(x, y, k1)
        for i in range(4):
            t[i] = y[i] + def_dt * k1[i] / 2.0
        slope(x, t, k2)
        y += def_dt * (k1 + k2) / 2.0
    return y[3]


def slope(x, y, out):
    out[0] = x[0]
    out[1:] = x[1:] * y[:-1]


@program(numbers(2, 4, 3), numbers(2, 3, seed=1), numbers(5, 3, seed=2))
def recurrent_cell(w, state, inputs):
    h = state.copy()
    loss = 0.0
    for t in range(inputs.shape[0]):
        x = inputs[t]
        for l in range(2):
            f = 1.0 / (1.0 + np.exp(-(x * w[l, 0] + w[l, 1])))
            o = np.tanh(h[l] * w[l, 2] + w[l, 3])
            h[l] = f * h[l] + (1.0 - f) * o
            x = h[l] * 1.0
        loss += np.sum(x * x)
    return loss


@program(signed(5, 2), signed(3, 2, seed=9))
def k_means(points, centers):
    total = 0.0
    for i in range(points.shape[0]):
        best = np.inf
        for k in range(centers.shape[0]):
            d = 0.0
            for j in range(points.shape[1]):
                e = points[i, j] - centers[k, j]
                d += e * e
            if d < best:
                best = d
        total += best
    return total


@program(numbers(3), numbers(3, 2, seed=1), numbers(4, 2, seed=2))
def mixture(alphas, means, points):
    total = 0.0
    for i in range(points.shape[0]):
        terms = np.empty(alphas.shape[0])
        for k in range(alphas.shape[0]):
            d = points[i] - means[k]
            terms[k] = alphas[k] - 0.5 * np.sum(d * d)
        m = np.max(terms)
        total += m + np.log(np.sum(np.exp(terms - m)))
    return total - points.shape[0] * np.log(np.sum(np.exp(alphas)))


@program(numbers(6), 3)
def heat_equation(u0, n):
    u = u0.copy()
    for _ in range(n):
        un = u.copy()
        u[1:-1] = un[1:-1] + 0.1 * (un[2:] - 2.0 * un[1:-1] + un[:-2]) * un[1:-1]
    return np.sum(u**2)


@program(numbers(3, 3))
def gaussian_elimination(a):
    m = a.copy()
    for i in range(3):
        m[i, i] += 3.0
    det = 1.0
    for k in range(3):
        p = m[k, k]
        det *= p
        for i in range(k + 1, 3):
            f = m[i, k] / p
            for j in range(k, 3):
                m[i, j] -= f * m[k, j]
    return np.log(det)


@program(numbers(5), numbers(3, seed=2))
def convolution(x, k):
    y = np.zeros(5)
    for i in range(5):
        for j in range(3):
            p = i + j - 1
            if p >= 0 and p < 5:
                y[i] += x[p] * k[j]
    return np.tanh(y)


@program(numbers(4))
def bisection(x):
    lo, hi = 0.0, 10.0
    for _ in range(60):
        mid = 0.5 * (lo + hi)
        if mid * mid < x[0]:
            lo = mid
        else:
            hi = mid
    y = hi
    for _ in range(2):
        y = y - (y * y - x[0]) / (2 * y)
    return y * x[1]


@program(np.array([1.0, 2.0, -3.0]))
def zero_cotangent_that_changes(x):
    s = 0.0
    for i in range(3):
        t = 0.0
        for j in range(3):
            t += x[j] * (i + 1)
        if t < 10.0:
            s = t
    return s * s


# --- independent and dependent iterations: what may run again, in which order, and what must be kept ------------------


@program(np.array([0.4, 0.9, 1.3]), np.array([1.1, 0.6, 0.8]))
def argument_changed_after_its_loop(x, y):
    s = 0.0
    for i in range(3):
        t = 0.0
        for j in range(3):
            t += x[j] * y[i] * np.sin(x[j])
        s += t * t
    x[1] = s * x[1]
    return s + x[1] * x[2]


@program(np.array([0.4, 0.9, 1.3]), np.array([1.1, 0.6, 0.8]))
def sum_that_decides(x, y):
    s = 0.0
    for i in range(3):
        t = 0.0
        for j in range(3):
            t += x[j] * y[i]
        s += t * t
    if s > 0.1:
        r = s * x[0]
    else:
        r = s
    for i in range(3):
        for j in range(2):
            r += y[j] * s * x[i]
    return r


@program(np.array([0.4, 0.9, 1.3]), np.array([1.1, 0.6, 0.8]))
def filled_then_read(x, y):
    out = np.zeros(3)
    for i in range(3):
        t = 1.0
        for j in range(3):
            t = t * x[j] + y[i]
        out[i] = t * t
    return np.sum(out * out) * out[1]


@program(np.array([0.4, 0.9, 1.3]), np.array([1.1, 0.6, 0.8]))
def last_of_all_iterations(x, y):
    last = 0.0
    for i in range(3):
        t = 0.0
        for j in range(i + 1):
            t += x[j] * y[i]
        last = t * t
    return last * x[0]


@program(np.array([0.4, 0.9, 1.3]), np.array([1.1, 0.6, 0.8]))
def one_element_written_again(x, y):
    out = np.zeros(2)
    for i in range(3):
        t = 0.0
        for j in range(3):
            t += x[j] * y[i]
        out[0] = t * t
        out[i % 2] = t
    return out[0] * out[1] + out[1] ** 2


@program(np.array([0.4, 0.9, 1.3]), np.array([1.1, 0.6, 0.8]))
def scratch_filled_in_part(x, y):
    w = np.zeros(3)
    s = 0.0
    for i in range(3):
        for j in range(i, 3):
            w[j] = x[j] * y[i]
        for j in range(3):
            s += w[j] * w[j] * y[j]
    return s


@program(np.array([0.4, 0.9, 1.3]), np.array([1.1, 0.6, 0.8]))
def scratch_read_after_its_loop(x, y):
    w = np.empty(3)
    s = 0.0
    for i in range(3):
        for j in range(3):
            w[j] = x[j] * y[i]
        for j in range(3):
            s += w[j] * w[j]
    return s * w[1] * w[2]


@program(np.array([0.4, 0.9, 1.3]), np.array([1.1, 0.6, 0.8]))
def while_inside_of_for(x, y):
    s = 0.0
    for i in range(3):
        t = x[i]
        while t < 3.0:
            t = t * 1.7 + y[i]
        s += t * t
    return np.log(s)


@program(np.array([0.4, 0.9, 1.3]), np.array([1.1, 0.6, 0.8]))
def loop_in_a_branch_in_a_loop(x, y):
    s = 0.0
    for i in range(3):
        if x[i] > 0.5:
            t = 0.0
            for j in range(3):
                t += x[j] * np.exp(y[i])
            s += t
        else:
            s += x[i] * 3.0
    return s * s


@program(np.array([0.4, 0.9, 1.3]), np.array([1.1, 0.6, 0.8]))
def several_sums(x, y):
    s = 0.0
    p = 0.0
    for i in range(3):
        t = 0.0
        for j in range(3):
            t += x[j] * y[i]
        s += t
        p += t * t
    q = 0.0
    for i in range(3):
        t = 0.0
        for j in range(3):
            t += x[j] + y[i]
        q += t * t
    return s * p / q + s


@program(np.array([0.4, 0.9, 1.3]), np.array([1.1, 0.6, 0.8]))
def argument_scaled_by_a_sum(x, y):
    for i in range(3):
        t = 0.0
        for j in range(3):
            t += y[j] * (i + 1)
        x[i] = x[i] * t
    return np.sum(x * y)


@program(np.array([0.4, 0.9, 1.3]), np.array([1.1, 0.6, 0.8]))
def rows_and_columns_as_views(x, y):
    a = np.zeros((3, 3))
    for i in range(3):
        row = a[i]
        for j in range(3):
            row[j] = x[j] * y[i]
    s = 0.0
    for i in range(3):
        r = a[i]
        c = a[:, i]
        for j in range(3):
            s += r[j] * c[j]
    return s


@program(np.array([0.4, 0.9, 1.3]), np.array([1.1, 0.6, 0.8]))
def carried_through_an_array(x, y):
    w = x.copy()
    s = 0.0
    for i in range(3):
        t = 0.0
        for j in range(3):
            t += w[j] * y[i]
        w[i] = t * 0.5
        s += t
    return s * w[0]


@program(np.array([0.4, 0.9, 1.3]), np.array([1.1, 0.6, 0.8]))
def three_deep_with_an_extreme(x, y):
    s = 0.0
    for i in range(3):
        u = np.zeros(3)
        for j in range(3):
            v = 0.0
            for k in range(3):
                v += x[k] * y[j] * (i + 1)
            u[j] = v * v
        m = np.max(u)
        s += m + np.log(np.sum(np.exp(u - m)))
    return s


@program(np.array([0.4, 0.9, 1.3]), np.array([1.1, 0.6, 0.8]))
def break_inside_of_an_independent_loop(x, y):
    s = 0.0
    for i in range(3):
        t = 0.0
        for j in range(3):
            t += x[j] * y[i]
            if t > 1.2:
                break
        s += t * t
    return s


@program(np.array([0.4, 0.9, 1.3]), np.array([1.1, 0.6, 0.8]))
def return_from_a_loop_of_loops(x, y):
    s = 0.0
    for i in range(3):
        t = 0.0
        for j in range(3):
            t += x[j] * y[i]
        if t > 100.0:
            return s
        s += t * t
    return s * s


@program(np.array([0.4, 0.9, 1.3]), np.array([1.1, 0.6, 0.8]))
def scalar_changed_between_loops(x, y):
    a = x[0] * 2.0
    s = 0.0
    for i in range(3):
        for j in range(3):
            s += a * x[j] * y[i]
    a = a * s
    for i in range(3):
        for j in range(3):
            s += a * x[j] * y[i]
    return s


@program(np.array([0.4, 0.9, 1.3]), np.array([1.1, 0.6, 0.8]))
def outer_loop_that_does_not_run(x, y):
    s = x[0]
    for i in range(0):
        for j in range(3):
            s += x[j]
    return s * y[0]


@program(np.array([0.4, 0.9, 1.3]), np.array([1.1, 0.6, 0.8]))
def rebound_to_its_own_reverse(x, y):
    z = x * 1.0
    for k in range(3):
        z = z[::-1] * y + z
    return z


@program(np.array([0.4, 0.9, 1.3]), np.array([1.1, 0.6, 0.8]))
def scalars_swapped_in_two_loops(x, y):
    a = x[0]
    b = y[0]
    for i in range(3):
        for j in range(2):
            a, b = b * x[i], a + y[j]
    return a * b


@program(np.array([0.4, 0.9, 1.3]), np.array([1.1, 0.6, 0.8]))
def overlapping_views_added_to(x, y):
    z = np.zeros(4)
    z[1:] += x
    z[:-1] += y
    z[1:] = z[:-1] * z[1:]
    return z


@program(np.array([0.4, 0.9, 1.3]), np.array([1.1, 0.6, 0.8]))
def slices_on_both_sides(x, y):
    z = x.copy()
    z[1:] += z[:-1]
    z[:-1] = z[1:] * y[1:]
    return z


@program(np.array([0.4, 0.9, 1.3]), np.array([1.1, 0.6, 0.8]))
def overwritten_only_sometimes(x, y):
    s = 1.0
    for i in range(3):
        t = s * x[i]
        if t > 1.0:
            s = t
            t = y[i]
        s = s + t
    return s


@program(numbers(6))
def reshaped_and_written(x):
    y = np.zeros(6)
    z = y.reshape(2, 3)
    z[0, 1] = x[0]
    y[2] = x[1] * z[0, 1]
    flat = z.ravel()
    flat[5] = x[2] * y[2]
    copy = z.flatten()
    copy[0] = 100.0 * x[3]
    s = 0.0
    for i in range(2):
        row = x[3 * i : 3 * i + 3] * 1.0
        column = row.reshape((3, 1))
        column[i, 0] = s * x[i]
        s += np.sum(row * row)
    return np.sum(y * y) * s + z[1, 2] * copy[1]


def longer_or_shorter(x, n):
    if n > 2:
        return x * x
    y = np.zeros(n)
    for i in range(n):
        y[i] = x[i] * 3.0
    return y


@program(numbers(4), 3)
def arrays_born_in_branches(x, n):
    if x[0] > 0.0:
        y = np.zeros(4)
        for i in range(4):
            y[i] = x[i] ** 2
    elif n > 5:
        y = x * 3.0
    else:
        y = x[:2]
    s = 0.0
    for k in range(3):
        if k == 1:
            t = y * x[k]
        else:
            t = x + s
        t[k] *= 2.0
        s += np.sum(t * t) * 0.1
    z = x if n > 5 else y * s
    u = longer_or_shorter(x, n) * z + np.sum(longer_or_shorter(y, 2))
    return u * s


@program(2.7, 12)
def numbers_made_whole(x, n):
    q, r = divmod(x, 0.7)
    k = math.gcd(n, 8) + math.trunc(x) + round(x) + np.bitwise_and(n, 5) + (n >> 1)
    return r * k + q + math.log(x, 2.0) * math.ldexp(x, 2) + np.round(x) * x + np.lcm(n, 8)


@program(numbers(3), numbers(3, 3, seed=1))
def names_exchanged_with_a_new_array(x, a):
    last = x
    tail = x[1:]
    for _ in range(3):
        new = a @ x * 0.3
        x, new = new, x
        x, tail = x + new * 0.1, x[:2]
        (last, s), x = (x, new[0]), x * s_of(x)
    return np.sum(last * x) * s + tail[1]


def s_of(x):
    return x[0] * 0.5


@program(signed(4), 0.6)
def functions_defined_in_a_loop(x, w):
    s = 0.0
    for i in range(len(x)):

        def scaled(v, k=2.0):
            for j in range(3):
                if v * j > 1.5:
                    return v * k
            return v * w * x[i]  # noqa: B023

        s += scaled(x[i]) + scaled(s, k=0.1)
        if s > 50.0:
            break
    return s


@program(signed(5), 3)
def state_made_anew_in_each_step(u, steps):
    previous = u
    for t in range(steps):
        new = np.zeros_like(u)
        for i in range(1, len(u) - 1):
            new[i] = u[i] + 0.3 * (u[i - 1] - 2.0 * u[i] + u[i + 1]) * previous[0]
        new[0] = np.sin(new[1])
        u = new
    return u, np.sum(u * previous)


@program(signed(4))
def loops_over_places(x):
    a = np.outer(x, x)
    s = 0.0
    for i, j in np.ndindex(3, 2):
        s += a[i, j] * (i + 1)
    for (i, j), v in np.ndenumerate(a):
        s += v * (i - j)
    for k in reversed(range(1, 4)):
        s = s * 0.9 + x[k]
    for v in reversed(x):
        s = s * 0.9 + v * v
    for v in a.flat:
        s += v**2
    return s


@program(signed(4), 0.7)
def loop_over_a_tuple_that_is_left(x, w):
    s = 0.0
    y = x * 1.0
    for v in (x[0], w * 2.0, np.sin(x[1]), x[2]):
        if v < -0.9:
            continue
        s = s * 0.5 + v * w
        y = y * v
        if s > 0.8:
            break
    else:
        s *= 3.0
    return s, y
