"""Iterations that run side by side give what they give one after the other, whatever their number."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from compiler.harness import specialised
from truth import close

import retrograde as rg
from retrograde.compiler.bridge import Bridge
from retrograde.compiler.optimise import abreast
from retrograde.compiler.options import Options
from retrograde.compiler.specialisation import Which

pytest.importorskip("numba")

SIZES = (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 19)


def mixture(x, means, scales):
    total = 0.0
    terms, z = np.empty(means.shape[0]), np.empty(x.shape[1])
    for i in range(x.shape[0]):
        for c in range(means.shape[0]):
            z[:] = scales[c, 0] * (x[i] - means[c])
            for a in range(x.shape[1]):
                for b in range(a + 1, x.shape[1]):
                    z[b] += scales[c, b] * (x[i, a] - means[c, a])
            terms[c] = -0.5 * np.sum(z * z)
        shift = np.max(terms)
        total += shift + np.log(np.sum(np.exp(terms - shift)))
    return total


def branches(x, y):
    out = np.zeros(x.shape[0])
    last = 0.0
    for i in range(x.shape[0]):
        s = 0.0
        if x[i] > 0.5:
            s = x[i] * y[i]
            if y[i] > 0.5:
                out[i] = np.sin(s) * y[i]
            for k in range(3):
                s += x[i] ** k
        elif x[i] < 0.2:
            out[i] = np.exp(x[i]) - s
        else:
            s -= math.sqrt(x[i])
        if i > 0:
            s += x[i - 1] * y[i]
        last += s * s
    return out, last


def tables(x, k, weights):
    """Elements whose places are data: they are read anywhere, and several iterations add to the same."""
    total = 0.0
    scratch = np.zeros(weights.shape[0])
    for i in range(x.shape[0]):
        for j in range(weights.shape[0]):
            scratch[j] = np.sin(x[i]) * weights[j] + np.cos(x[i])
        best, where = np.inf, 0
        for j in range(weights.shape[0]):
            distance = (x[i] - weights[j]) ** 2
            if distance < best:
                best, where = distance, j
        total += best * weights[where] + scratch[k[i]] * scratch[-1 - where] + weights[k[i]]
    return total


def nearest(points, centroids):
    """Rows that are read again and again."""
    cost = 0.0
    for i in range(points.shape[0]):
        closest = np.inf
        for j in range(centroids.shape[0]):
            distance = 0.0
            for a in range(points.shape[1]):
                distance += (points[i, a] - centroids[j, a]) ** 2
            closest = min(closest, distance)
        cost += closest
    return cost


def single(x, w):
    s = np.float32(0)
    for i in range(x.shape[0]):
        row = np.zeros(3, np.float32)
        for j in range(3):
            row[j] = x[i] * w[j]
        for j in range(3):
            s += row[j] * row[2 - j] if x[i] > 0.3 else row[j] / w[j]
    return s


def counted(x, flags, small):
    n = 0
    s = 0.0
    for i in range(x.shape[0]):
        z = x[i]
        if flags[i] and not x[i] < 0.4:
            n += i
        for k in range(3):
            z = z * small[i] + min(z, 0.5) * max(k, i) if flags[i] else z / (k + 1.5)
        s += z * (i // 2) + abs(z - 0.3) * (i % 3)
    return s * n


def backwards(x, w, c):
    y = np.empty(x.shape[0])
    for i in range(x.shape[0]):
        total = c[-1 - i]
        for j in range(w.shape[0]):
            total += np.tanh(x[i] * w[-1 - j]) * c[-1 - i]
        y[i] = total
    return y


def written(x, w):
    """An argument is read and written, a part of it through a view."""
    for i in range(x.shape[0]):
        row = x[i]
        for k in range(2):
            row[0] += w[k] * row[1]
            row[1] *= w[k]
    return np.sum(w)


def drawn(n: int, *shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed + n).uniform(0.05, 0.95, (n, *shape))


PROGRAMS: dict[Any, Any] = {
    mixture: lambda n: (drawn(n, 3), drawn(4, 3), drawn(4, 3, seed=1)),
    branches: lambda n: (drawn(n), drawn(n, seed=2)),
    tables: lambda n: (drawn(n), np.arange(n) * 7 % 5, drawn(5, seed=3)),
    nearest: lambda n: (drawn(n, 3), drawn(4, 3, seed=10)),
    single: lambda n: (drawn(n).astype(np.float32), drawn(3, seed=4).astype(np.float32)),
    counted: lambda n: (drawn(n), drawn(n, seed=5) > 0.3, drawn(n, seed=6)),
    backwards: lambda n: (drawn(n), drawn(3, seed=7), drawn(n, seed=9)),
    written: lambda n: (drawn(n, 2), drawn(2, seed=8)),
}


@pytest.fixture
def _always(monkeypatch):
    """Whether it pays or not."""
    monkeypatch.setattr(abreast, "WORTH", math.inf)


def is_taken(of: Any, which: Which) -> bool:
    kernel = of.program(which).kernel
    return kernel is not None and "abreast" in kernel.text


@pytest.mark.usefixtures("_always")
@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_side_by_side_is_one_after_the_other(function):
    arguments = PROGRAMS[function]
    of = specialised(function, arguments(5), plain=False)
    assert is_taken(of, Which("T", 0))
    plain = specialised(function, arguments(5))
    tol = {"rtol": 2e-5, "atol": 2e-5} if function is single else {"rtol": 1e-12, "atol": 1e-13}
    for n in SIZES:
        args = list(arguments(n))
        y_bar = [drawn(max(np.size(y), 1), seed=20)[: np.size(y)].reshape(np.shape(y)) + 0.5 for y in outputs(of, args)]
        got, want = (Bridge(each).t(args, y_bar, ()) for each in (of, plain))
        for a, b in zip(got, want, strict=True):
            if b is not None:
                close(a, b, **tol)


def outputs(of: Any, args: list[Any]) -> list[Any]:
    own = [np.array(a) for a in args]
    result = of.source.function(*own)
    results = result if isinstance(result, tuple) else (result,)
    return [*results, *(own[i] for i in of.finals)]


@pytest.mark.usefixtures("_always")
@pytest.mark.parametrize("function", [branches, written])
def test_tangents_of_iterations_side_by_side(function):
    arguments = PROGRAMS[function]
    of = specialised(function, arguments(5), plain=False)
    assert is_taken(of, Which("J", 1))
    plain = specialised(function, arguments(5))
    for n in (1, 6, 11):
        v = [drawn(*np.shape(a), seed=30) for a in arguments(n)]
        got, want = (Bridge(each).j([np.array(a) for a in arguments(n)], (v,)) for each in (of, plain))
        for a, b in zip(got, want, strict=True):
            close(a, b, rtol=1e-12, atol=1e-13)


def weighted(x, w, limit):
    """The test of sizes stands in the loop; what is infinite or NaN stays in its own iteration."""
    total = 0.0
    parts = np.empty(w.shape[0])
    for i in range(x.shape[0]):
        for j in range(w.shape[0]):
            parts[j] = x[i] / w[j] if x[i] > limit else w[j] / x[i]
        total += np.max(parts) * x[i]
    return total


@pytest.mark.usefixtures("_always")
def test_what_is_infinite_or_nan_stays_in_its_iteration():
    x = drawn(11)
    args = (x, drawn(3, seed=1), 0.5)
    of, plain = specialised(weighted, args, plain=False), specialised(weighted, args)
    assert is_taken(of, Which("T", 0))
    for bad in (np.inf, -np.inf, np.nan, 0.0):
        x[4] = bad
        with np.errstate(all="ignore"):
            got, want = (Bridge(each).t(list(args), [1.0], ()) for each in (of, plain))
        for a, b in zip(got[:2], want[:2], strict=True):
            close(a, b, rtol=1e-13, atol=1e-14)


@pytest.mark.usefixtures("_always")
def test_a_loop_that_raises_does_so():
    compiled = rg.compile(weighted, cache=False)
    with pytest.raises(ValueError, match="zero-size array to reduction"):
        rg.grad(compiled, argnums=(0, 1))(drawn(3), np.empty(0), 0.5)
    for a in rg.grad(compiled, argnums=(0, 1))(np.empty(0), np.empty(0), 0.5):
        assert a.shape == (0,)


def refused(x, w):
    total = 0.0
    for i in range(x.shape[0]):
        if x[i] < 0:
            raise ValueError("a negative number")
        for j in range(w.shape[0]):
            total += math.sqrt(x[i] * w[j])
    return total


@pytest.mark.usefixtures("_always")
def test_a_loop_that_numbers_may_end_keeps_its_order():
    assert not is_taken(specialised(refused, (drawn(3), drawn(2)), plain=False), Which("T", 0))


@pytest.mark.usefixtures("_always")
def test_the_same_array_may_be_given_twice():
    x = drawn(9)
    compiled = rg.compile(branches, cache=False)

    def scalar(a, b):
        out, last = compiled(a, b)
        return np.sum(out) + last

    first, second = rg.grad(scalar, argnums=(0, 1))(x, x)
    apart, other = rg.grad(scalar, argnums=(0, 1))(x, x.copy())
    np.testing.assert_array_equal(first, apart)
    np.testing.assert_array_equal(second, other)
    every_other = rg.grad(scalar, argnums=(0, 1))(np.repeat(x, 2)[::2], x[::-1].copy()[::-1])
    close(every_other[0], first, rtol=1e-14)


def test_short_triangles_and_long_lines_are_taken_and_products_with_rows_are_not():
    def product(a, x):
        total = 0.0
        for i in range(a.shape[0]):
            s = 0.0
            for j in range(a.shape[1]):
                s += a[i, j] * x[j]
            total += s * s
        return total

    taken = specialised(mixture, PROGRAMS[mixture](5), plain=False)
    assert is_taken(taken, Which("T", 0))
    of_rows = specialised(nearest, PROGRAMS[nearest](5), plain=False)
    assert is_taken(of_rows, Which("T", 0))
    assert "points_row" in of_rows.program(Which("T", 0)).text
    assert not is_taken(specialised(product, (drawn(4, 3), drawn(3)), plain=False), Which("T", 0))
    off = Options(passes=tuple(p for p in Options().passes if p != "abreast"))
    assert not is_taken(specialised(mixture, PROGRAMS[mixture](5), plain=False, options=off), Which("T", 0))


@pytest.mark.usefixtures("_always")
def test_without_vector_math_every_sum_keeps_its_order():
    args = PROGRAMS[mixture](11)
    in_order = rg.compile(mixture, cache=False, vectormath=False)
    plain = Bridge(specialised(mixture, args)).t(list(args), [1.0], ())
    for a, b in zip(rg.grad(in_order, argnums=(0, 1, 2))(*args), plain, strict=True):
        close(a, b, rtol=1e-14, atol=1e-15)
    of = specialised(mixture, args, plain=False)
    assert is_taken(of, Which("T", 0))
    assert "vectormath" not in in_order.source("pullback", *args)
