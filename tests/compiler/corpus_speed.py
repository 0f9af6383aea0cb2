"""Programs that optimisations look for, and such that only look like them."""

from __future__ import annotations

import math

import numpy as np
from compiler.corpus import numbers, program, signed


@program(numbers(5, 2), numbers(3, 2, seed=4))
def nearest_by_min(points, centres):
    cost = 0.0
    for i in range(points.shape[0]):
        closest = np.inf
        for j in range(centres.shape[0]):
            distance = 0.0
            for a in range(points.shape[1]):
                distance += (points[i, a] - centres[j, a]) ** 2
            closest = min(closest, distance)
        cost += closest * (1 + i)
    return cost


@program(numbers(5, 2), numbers(3, 2, seed=4))
def nearest_by_a_branch(points, centres):
    cost = 0.0
    counts = np.zeros(centres.shape[0])
    for i in range(points.shape[0]):
        closest = np.inf
        nearest = -1
        for j in range(centres.shape[0]):
            distance = abs(points[i, 0] - centres[j, 0]) + np.exp(points[i, 1] * centres[j, 1])
            if closest > distance:
                closest = distance
                nearest = j
        counts[nearest] += 1
        cost += closest * centres[nearest, 1]
    return cost + counts[0]


@program(signed(7), 0.2)
def largest_from_a_start(x, start):
    best = start
    for i in range(x.size):
        scaled = np.sin(x[i]) * 2
        best = max(scaled, best)
    return best * start


@program(numbers(6), 0.4)
def nothing_found(x, w):
    best = w
    for i in range(x.size):
        if x[i] + 10 < best:
            best = x[i] + 10
    return best * best


@program(signed(6))
def search_that_uses_its_best(x):
    best = 10.0
    total = 0.0
    for i in range(x.size):
        value = x[i] ** 2 + 0.1 * best
        best = min(best, value)
        total += best
    return best + total


@program(signed(6))
def search_whose_scratch_is_read_later(x):
    best = 10.0
    scratch = np.zeros(2)
    for i in range(x.size):
        scratch[0] = x[i] * 2
        scratch[1] = scratch[0] ** 2
        best = min(best, scratch[1])
    return best + scratch[0]


@program(signed(6))
def search_in_scratch_of_its_own(x):
    best = 10.0
    for i in range(x.size):
        pair = np.empty(2)
        pair[0] = x[i] * 2
        pair[1] = pair[0] ** 2
        best = min(best, pair[1] + pair[0])
    return best * best


@program(signed(4, 3))
def smallest_of_smallest(x):
    best = np.inf
    for i in range(x.shape[0]):
        row = 5.0
        for j in range(x.shape[1]):
            if np.cos(x[i, j]) < row:
                row = np.cos(x[i, j])
        best = min(best, row * x[i, 0])
    return best


@program(signed(6))
def log_sum_exp_and_its_shift(x):
    shift = np.max(x)
    total = 0.0
    for i in range(x.size):
        total += np.exp(x[i] - shift)
    return (shift + np.log(total)) * shift


@program(signed(6), 0.3)
def softmax_with_the_shift(x, w):
    shift = np.max(x) * w
    e = np.exp(x - shift)
    total = np.sum(e)
    return shift + np.log(total) + e[0]


@program(signed(6), 0.3)
def log_of_another_shift(x, w):
    total = 0.0
    for i in range(x.size):
        total += np.exp(x[i] - w * w)
    return w + np.log(total)


@program(signed(3, 4))
def log_sum_exp_of_rows(x):
    total = 0.0
    for i in range(x.shape[0]):
        shift = np.max(x[i])
        total += shift + np.log(np.sum(np.exp(x[i] - shift)))
    return total


@program(signed(4), 5)
def state_of_a_simulation(x, steps):
    y = np.zeros_like(x)
    v = 1.0
    for s in range(steps):
        k1 = y * x + v
        k2 = (y + 0.1 * k1) * x
        y = y + 0.05 * (k1 + k2)
        v = v * 0.9 + y[0] * 0.01
        if s % 2 == 0:
            y[1] = y[0] * v
    return y[-1] + v


@program(signed(4), signed(2, 4, seed=3), 4)
def state_in_place(x, noise, steps):
    y = x.copy()
    kept = np.zeros((steps, 4))
    for s in range(1, steps):
        for i in range(4):
            y[i] = y[i] * 0.9 + 0.1 * np.tanh(y[(i + 1) % 4]) + noise[s % 2, i]
        kept[s] = y
        noise[0, 0] = 0.5 * noise[0, 0] + y[1]
    return np.sum(kept) + np.sum(y * y)


@program(signed(3), 3)
def state_of_a_changing_size(x, n):
    total = np.zeros(3)
    s = 0.0
    for k in range(n):
        part = np.zeros(k + 1)
        part[k] = s + x[0]
        for i in range(k + 1):
            s += part[i] * x[i]
        total[k] = s
    return s * total[1]


@program(numbers(3, seed=2), numbers(3, seed=3))
def small_vectors(a, b):
    c = a[:3] / b[0]
    d = np.cross(c, b[:3]) + 2 * c
    e = np.zeros(3)
    for i in range(3):
        e[i] = d[i] * c[2 - i]
    e[0] += d[1]
    return e[0] * d[2] + math.sin(e[1]) * e[2] + np.sum(e * e)


@program(numbers(3, seed=2), numbers(5, 3, seed=3))
def small_vectors_in_a_loop(a, points):
    total = 0.0
    out = np.empty((points.shape[0], 2))
    for k in range(points.shape[0]):
        moved = points[k] - a[:3]
        angle = math.sqrt(moved[0] ** 2 + moved[1] ** 2 + moved[2] ** 2)
        axis = moved / angle
        turned = moved * math.cos(angle) + np.cross(axis, moved) * math.sin(angle) + axis * axis[0]
        out[k, 0] = turned[0] / turned[2]
        out[k, 1] = turned[1] / turned[2]
        total += out[k, 0]
    return total * out[1, 1]


@program(numbers(4), 2)
def small_vector_with_a_moving_index(x, n):
    a = np.zeros(3)
    b = np.empty(2)
    for i in range(n + 1):
        a[i] = x[i] * x[3]
    b[0] = a[0] * a[1]
    b[1] = a[-1]
    return b[0] + b[-1] ** 2 + a[n]


@program(numbers(4))
def small_vector_given_away(x):
    a = np.zeros(2)
    a[0] = x[0] * x[1]
    a[1] = x[2]
    b = a[1:]
    b[0] = b[0] * x[3]
    return a


@program(numbers(2, 2), numbers(2, seed=5))
def small_matrix(a, x):
    m = np.zeros((2, 2))
    for i in range(2):
        for j in range(2):
            m[i, j] = a[i, j] * x[j]
    return m[0, 0] * m[1, 1] - m[0, 1] * m[1, 0] + np.sum(m)


@program(signed(300))
def sums_in_blocks(x):
    y = np.empty(x.size)
    s = 0.0
    c = 0.0
    for i in range(3, x.size):
        e = np.exp(x[i])
        s += e
        c += np.cos(x[i]) * 0.1
        y[i] = np.tanh(e)
    return s * c + np.sum(y[3:])


@program(signed(9), np.array([0, 3, 3, 1]))
def exp_where_places_repeat(x, places):
    y = np.zeros(x.size)
    for k in range(places.size):
        y[places[k]] += np.exp(x[places[k]])
    for i in range(1, x.size):
        y[i] = np.sin(y[i - 1]) + np.exp(-x[i])
    return np.sum(y * y)


@program(signed(3, 2, 2), signed(2, 4, seed=3), signed(3, 4, seed=5), np.array([-1, 0, 1]))
def chain_of_bodies(turns, points, weights, parents):
    absolute = np.empty((3, 2, 2))
    places = np.zeros((2, points.shape[1]))
    for k in range(3):
        if parents[k] < 0:
            absolute[k] = turns[k]
        else:
            absolute[k] = absolute[parents[k]] @ turns[k]
        moved = absolute[k] @ points
        places += moved * weights[k]
    return places


@program(signed(4, 3), signed(3, 3, seed=2), signed(3, seed=4), 0.7)
def products_with_short_inner_axes(a, b, x, w):
    square = np.eye(3)
    square[0, 1] = w
    for _ in range(3):
        square = np.sin(square @ b)
        b = np.cos(b @ square) * 0.5
    rows = a[:, :3] @ square
    rows[1:, :] = np.exp(rows[:3] @ b * 0.1)
    y = x @ square + square @ x
    square[:] = square @ square.T
    tall = a[:, :2] @ a[:2, :2].T
    return rows @ y, np.sum(tall[:3] * rows[1:, 1:]) * square


@program(signed(5), signed(3, 5, seed=2), 0.4)
def multiples_read_after_their_loop(x, a, w):
    y = np.zeros(5)
    total = 0.0
    for i in range(a.shape[0]):
        scale = w * np.sin(x[i])
        last = 0.0
        for j in range(a.shape[1]):
            last = scale * a[i, j]
            y[j] += last
            total += scale * x[j] * 0.5
        y[i] += last * 2.0
    return y, total


@program(signed(4), numbers(4, seed=2))
def vector_of_rows_made_from_elements_outside(x, w):
    made = np.empty((4, 3))
    for i in range(4):
        first = x[i] * w[0]
        for j in range(3):
            made[i, j] = first * w[j] + x[j]
    w[1] = 5.0
    total = 0.0
    for i in range(4):
        for j in range(3):
            total += made[i, j] ** 2 * w[j]
    return total
