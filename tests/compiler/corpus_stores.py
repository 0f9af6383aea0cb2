"""Programs with arrays that need not be stored, cleared or written, and such that only look like it."""

from __future__ import annotations

import numpy as np
from compiler.corpus import numbers, program, signed


def stage(x, y):
    z = np.empty_like(y)
    z[0] = x[0] * x[0]
    z[1:] = x[1:] * y[:-1]
    return z


@program(numbers(5), 3)
def steps_with_stages(x, steps):
    y = np.zeros_like(x)
    for _ in range(steps):
        k1 = stage(x, y)
        k2 = stage(x, y + 0.3 * k1)
        y = y + 0.1 * (k1 + 2 * k2 * y)
    return y[-1] + np.sum(y * y)


@program(numbers(1), 2)
def steps_with_one_element(x, steps):
    y = np.zeros_like(x)
    for _ in range(steps):
        k1 = stage(x, y)
        k2 = stage(x, y + 0.3 * k1)
        y = y + 0.1 * (k1 + k2 * y)
    return y[-1]


@program(numbers(4), 0)
def no_steps(x, steps):
    y = x * 2
    for _ in range(steps):
        k = stage(x, y)
        y = y + k * y
    return np.sum(y * x)


@program(numbers(5), 3)
def zeros_that_stay(x, steps):
    y = x * 1.5
    for _ in range(steps):
        z = np.zeros_like(x)
        z[2:] = x[2:] * y[:-2]
        y = y + z * np.roll(y, 1)
    return np.sum(y * y)


@program(numbers(5), 2)
def zeros_that_are_read_before_they_are_overwritten(x, steps):
    total = 0.0
    for _ in range(steps):
        z = np.zeros(x.size)
        total += z[1] + x[0]
        for i in range(x.size):
            z[i] += x[i] * total
        total += z[1] * z[2]
    return total


@program(numbers(5), 2)
def added_to_in_the_wrong_order(x, steps):
    total = 0.0
    for _ in range(steps):
        z = np.zeros(x.size)
        for i in range(x.size):
            z[i] += x[i] * x[i]
            z[x.size - 1 - i] += x[i] * (1 + total)
        for k in range(2):
            for i in range(x.size):
                z[i] += x[i] * k
        total += np.sum(z * z)
    return total


@program(numbers(6), numbers(6, seed=2))
def source_that_changes_before_the_array_is_read(a, b):
    w = a * b
    a[2] = a[2] * 3
    y = np.empty(6)
    for i in range(6):
        y[i] = w[i] + a[i]
    return np.sum(y * y)


@program(numbers(6), numbers(6, seed=2))
def source_that_changes_while_the_array_is_read(a, b):
    n = a.size
    w = a * b
    for i in range(n - 1):
        a[i + 1] = w[i] * a[i]
    u = a + b
    for i in range(n):
        a[n - 1 - i] = u[i] * 2
    v = a * a
    for i in range(n):
        a[i] = v[i] + b[i]
    return np.sum(a * b)


@program(numbers(6), numbers(6, seed=2))
def source_that_changes_by_another_name(a, b):
    other = a[1:]
    w = a * b
    for i in range(5):
        other[i] = w[i] * b[i]
    u = a[:-1] + b[1:]
    back = a[::-1]
    for i in range(5):
        back[i] = u[i] * 0.5
    return np.sum(a * a)


@program(numbers(4, 3), numbers(3, seed=2))
def arrays_that_are_read_in_other_ways(a, b):
    w = a * b
    t = w.T
    total = 0.0
    for i in range(3):
        for j in range(4):
            total += t[i, j] * (i + 1)
    u = a + b
    for i in range(3):
        total += u[1, i] * b[i]
    v = np.sin(b) * 2
    p = b * 3
    for i in range(4):
        for j in range(3):
            total += v[j] * a[i, j] * p[j]
    q = a * 2
    row = q[2]
    for j in range(1, 3):
        total += row[j] * q[j, 0]
    return total


@program(numbers(5), 3)
def state_that_is_read_after_it_is_written(x, steps):
    y = x * 1.0
    total = 0.0
    for _ in range(steps):
        for i in range(y.size):
            y[i] = y[i] * x[i] + 0.2
        total += np.sum(y * y)
    return total


@program(numbers(5), 3)
def state_of_neighbours(x, steps):
    y = x * 1.0
    z = np.zeros(5)
    for _ in range(steps):
        for i in range(1, y.size):
            y[i] = y[i] * y[i - 1] + 0.1
        w = y[1:]
        for i in range(w.size):
            z[i] = z[i] + w[i] * x[i]
        for i in range(y.size):
            if i % 2 == 0:
                y[i] = y[i] * 0.9
    return np.sum(z) * y[2]


@program(numbers(5), 3)
def state_in_two_parts(x, steps):
    y = x * 1.0
    low = y[:2]
    high = y[2:]
    for _ in range(steps):
        a = low[0] * high[0]
        b = np.sum(high) * a
        for i in range(2):
            low[i] = low[i] + 0.1 * b
        for i in range(3):
            high[i] = high[i] * (1 - 0.2 * a)
    return np.sum(y * x)


@program(numbers(3, 4), 3)
def state_of_two_axes(x, steps):
    y = x * 1.0
    for _ in range(steps):
        mean = np.sum(y, axis=0)
        for i in range(3):
            for j in range(4):
                y[i, j] = y[i, j] * 0.5 + mean[j] * x[i, j]
    return np.sum(y * y)


@program(numbers(5), 2, 3)
def state_that_is_written_twice(x, steps, rounds):
    y = x * 1.0
    for _ in range(steps):
        for _ in range(rounds):
            for i in range(y.size):
                y[i] = y[i] * x[i] + 0.1 * y[i] * y[i]
    return np.sum(y)


@program(numbers(4), np.array([2, 0, 1, 0, 0, 0]))
def elements_that_do_not_exist_where_the_loop_does_not_run(x, counts):
    total = 0.0
    for i in range(counts.size):
        for _ in range(counts[i]):
            total += x[i] * x[i]
    return total


@program(numbers(4))
def elements_that_change_in_the_loop_by_another_name(x):
    y = x[:]
    for j in range(x.size):
        for i in range(x.size):
            y[i] = y[i] + 0.1 * x[j] * x[j]
    return np.sum(x)


@program(signed(4, 5))
def largest_of_rows(x):
    total = 0.0
    for i in range(4):
        total += np.exp(np.max(x[i]) - np.min(x)) * np.max(x[i] * x[i])
    return total


@program(numbers(3, 4), signed(4), 3)
def gates_of_a_recurrent_network(w, x, steps):
    hidden = np.zeros(4)
    cell = x * 0.5
    for _ in range(steps):
        forget = 1 / (1 + np.exp(-(x * w[0])))
        ingate = 1 / (1 + np.exp(-(hidden * w[1])))
        change = np.tanh(hidden * w[2] + x)
        cell = cell * forget + ingate * change
        hidden[:] = ingate * np.tanh(3 * cell)
    return np.sum(hidden * x) + cell[1]


@program(signed(6))
def choices_between_costly_formulas(x):
    total = 0.0
    state = 0.3
    for i in range(x.size):
        a = np.exp(x[i]) * x[i] if x[i] > 0.1 else x[i] * x[i]
        b = np.where(x[i] > 0.1, np.sin(a) + a, np.cos(a * x[i]))
        state = np.tanh(state * 9 + b)
        total += state * a
    return total


@program(signed(6))
def costly_elements_read_behind_a_change(x):
    n = x.size
    w = np.exp(x) * 0.1
    for i in range(n):
        x[i] = w[i] + x[i]
    u = np.tanh(x)
    for i in range(n - 1):
        x[i + 1] = u[i] * x[i]
    v = np.sin(x)
    total = 0.0
    for i in range(n):
        if x[i] > 0:
            total += v[i]
    return total * np.sum(x)
