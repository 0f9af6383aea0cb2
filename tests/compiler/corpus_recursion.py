"""Programs that call themselves, in the manner of corpus.py."""

from __future__ import annotations

import numpy as np
from compiler.corpus import numbers, program


def power(x, n):
    return 1 if n == 0 else x * power(x, n - 1)


@program(0.8, 4)
def recursive_power(x, n):
    return power(x, n) + power(x * x, 2) * x


@program(0.7, 3)
def calls_itself(x, n):
    if n == 0:
        return x
    y = np.sin(x) * calls_itself(x * 1.1, n - 1)
    return y + calls_itself(y, n - 2) if n > 1 else y * x


def minor(a, size, row, next_column):
    n = a.shape[0]
    column = next_column[n]
    if size == 1:
        return a[row, column]
    total = 0.0
    sign = 1.0
    before = n
    for _ in range(size):
        next_column[before] = next_column[column]
        total += sign * a[row, column] * minor(a, size - 1, row + 1, next_column)
        next_column[before] = column
        before = column
        column = next_column[column]
        sign = -sign
    return total


@program(numbers(3, 3))
def determinant_by_minors(a):
    n = a.shape[0]
    next_column = np.arange(1, n + 2)
    next_column[n] = 0
    return minor(a, n, 0, next_column)


SCALE = np.array([0.5, 2.0, 1.5, 1.0])


def tree_sum(x, low, high):
    if high - low == 1:
        return x[low] ** 2 * SCALE[low], x[low]
    middle = (low + high) // 2
    s, p = tree_sum(x, low, middle)
    t, q = tree_sum(x, middle, high)
    return s + t * p, p * q


@program(numbers(4))
def divided_and_conquered(x):
    s, p = tree_sum(x, 0, len(x))
    return s * p


def transform(x):
    n = len(x)
    if n == 1:
        return x * 1.0
    even = transform(x[::2])
    odd = transform(x[1::2])
    out = np.empty(n)
    for k in range(n // 2):
        out[k] = even[k] + 0.5 * odd[k] * k
        out[k + n // 2] = even[k] * odd[k]
    return out


@program(numbers(4))
def arrays_returned_by_recursion(x):
    return transform(x * x)


def smoothed(x, n):
    if n > 0:
        for i in range(1, len(x)):
            x[i] += 0.3 * x[i - 1] ** 2
        smoothed(x, n - 1)
        x[0] *= x[1]


@program(numbers(3), 2)
def arrays_written_by_recursion(x, n):
    y = x.copy()
    for _ in range(2):
        smoothed(y, n)
        smoothed(y[1:], 1)
    return np.sum(y * y)


def is_even(x, n):
    return x if n == 0 else is_odd(x * x, n - 1)


def is_odd(x, n):
    return -x if n == 0 else is_even(np.cos(x), n - 1)


@program(0.6)
def mutual_recursion(x):
    return is_even(x, 3) * is_odd(x, 1)


def integral(w, a, b, n):
    m = (a + b) / 2
    if n == 0:
        return (b - a) * np.sin(w[0] * m) * w[1]
    return integral(w, a, m, n - 1) + integral(w, m, b, n - 1)


@program(numbers(2), 0.2)
def integral_by_halving(w, a):
    return integral(w, a, 1.5, 2)


def horner(c, x, i):
    return 0.0 if i == len(c) else c[i] + x * horner(c, x, i + 1)


@program(numbers(4), 0.7)
def polynomial_by_recursion(c, x):
    return np.exp(0.1 * horner(c, x, 0)) * x


def grown(x, n):
    return x if n < 2 else grown(x, n - 1) * grown(x, n - 2) + np.sin(grown(x, n - 2))


@program(0.8)
def recursion_whose_parts_are_multiplied(x):
    return grown(x, 4)


def wandering(x, marks, n):
    total = 0.0
    for i in range(2):
        marks[i] = marks[i] + marks[1 - i] + 1
        total += x[marks[i] % 3] * (wandering(x, marks, n - 1) if n > 0 else x[0])
    marks[0] = marks[0] % 2
    return total * total * x[1]


@program(numbers(3, low=0.5, high=1.1))
def marks_left_by_recursion_that_is_squared(x):
    marks = np.array([1, 2])
    y = wandering(x, marks, 2)
    return y * x[marks[0]] + wandering(x, marks, 1) * x[marks[1] % 3]


def summed_up(x, marks, n):
    total = 0.0
    for i in range(2):
        marks[i] = marks[i] + marks[1 - i] + 1
        total += x[marks[i] % 3] * (summed_up(x, marks, n - 1) if n > 0 else x[0])
    return total + x[marks[0] % 3]


@program(numbers(3))
def marks_left_by_recursion_that_is_summed(x):
    marks = np.array([1, 2])
    y = summed_up(x, marks, 2)
    return y * x[marks[0] % 3] + summed_up(x, marks, 1) * x[marks[1] % 3]


def path(x, state, n):
    if n == 0:
        return state[0] * x[0]
    state[0] = state[0] * x[n % 2] + 0.1
    return path(x, state, n - 1) * 0.5 + state[0]


@program(numbers(2))
def state_with_derivatives_in_an_argument_of_recursion(x):
    state = np.array([1.0, 2.0])
    return path(x, state, 3) + state[0] ** 2


@program(numbers(3), 7)
def pseudorandom_visits(x, seed):
    state = seed
    sign = 1.0
    total = 0.0
    for _ in range(4):
        state = (state * 5 + 3) % 16
        y = 1.0
        for j in range(2):
            y *= np.sin(x[(state + j) % 3])
        total += sign * y
        sign = -sign
    return total * total + state


@program(numbers(3))
def sums_over_a_list_that_changes(x):
    order = np.array([2, 0, 1])
    total = 0.0
    for k in range(3):
        first = order[k]
        order[k] = order[0]
        order[0] = first
        for j in range(2):
            total += x[order[j]] ** 2 * x[first]
    return total + order[1]
