"""Results lie in memory as NumPy's do: what is a view of them, and what a copy, goes by it, and so do later writes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sampling import Point, _fill
from test_rules_in_the_engine import POINTS, _function

from retrograde import data, gradient, hvp, jvp, pullback, vmap
from retrograde.rules.table import Rule


def _orders(y: Any) -> list[Any]:
    """For each array among the results whether it is in C order, and whether in Fortran's."""
    parts = y if isinstance(y, tuple | list) else [y]
    arrays = [np.asarray(data(part)) for part in parts if part is not None]
    return [(array.flags.c_contiguous, array.flags.f_contiguous) for array in arrays if array.ndim > 1]


# The counts of np.histogramdd are a part of a larger array, so that `ravel` copies them; ours are not.
FRESH = {"np.histogramdd"}
LAID_OUT = [(r, p) for r, p in POINTS if max(map(np.ndim, p.leaves)) > 1 and r.label not in FRESH]


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize(("rule", "point"), [pytest.param(r, p, id=f"{r.label}: {p.label}") for r, p in LAID_OUT])
def test_a_result_lies_in_memory_as_numpys(rule: Rule, point: Point, order: Any) -> None:
    seen = []

    def f(*leaves: Any) -> Any:
        y = _function(rule)(*_fill(point.args, list(leaves)), **_fill(point.kwargs, list(leaves)))
        seen.append(_orders(y))
        return 0.0

    leaves = [np.copy(x, order=order)[()] for x in point.leaves]
    with np.errstate(all="ignore"):
        f(*leaves)
        pullback(f, *leaves)
        jvp(f, tuple(leaves), tuple(leaves))
    assert seen[1] == seen[2] == seen[0]


A = np.arange(24.0).reshape(2, 3, 4).transpose(1, 2, 0) / 10
V = np.cos(np.arange(24.0)).reshape(2, 3, 4).transpose(1, 2, 0)  # in the same order: sums with it are, too


@pytest.mark.parametrize(
    "make",
    [
        lambda a: np.full_like(a, 0.5),
        lambda a: np.full_like(a, a[0, 0, 0]),
        lambda a: np.full_like(a, a[0, 0, 0], order="F"),
        lambda a: np.sort(a, 1),
        lambda a: np.pad(a, 1),
        lambda a: np.insert(a, 1, 0.5, axis=0),
    ],
)
def test_writes_are_seen_through_a_ravel_of_a_result_where_numpys_are(make):
    def f(a):
        y = make(a)
        flat, fortran = np.ravel(y), y.ravel(order="F")
        y *= np.sin(a[0, 1, 1])
        return np.sum(y) + np.sum(np.cos(flat)) + np.sum(np.arange(fortran.size) * fortran)

    def slope(f, h=1e-5):
        return (f(A + h * V) - f(A - h * V)) / (2 * h)

    close = pytest.approx
    assert np.sum(gradient(f, A)[0] * V) == close(slope(f), rel=1e-6)
    assert jvp(f, (A,), (V,))[1] == close(slope(f), rel=1e-6)
    assert np.sum(hvp(f, A, V) * V) == close(slope(lambda a: np.sum(gradient(f, a)[0] * V)), rel=1e-6, abs=1e-6)
    many = np.stack([A, A + V])
    for examples in (many, np.asfortranarray(many), many.transpose(0, 3, 1, 2).copy().transpose(0, 2, 3, 1)):
        assert vmap(f)(examples) == close(np.array([f(example) for example in examples]), rel=1e-12)


@pytest.mark.parametrize(
    "view", [np.atleast_2d, np.atleast_3d, lambda a: np.moveaxis(a[None], 0, 1), lambda a: np.asarray(a)]
)
def test_a_view_of_an_argument_that_lies_scattered_stays_a_view(view):
    x = np.arange(12.0)[::2]

    def f(a):
        seen = view(a)
        a[...] = a[0] * np.cos(a[1])
        return np.sum(seen.flatten() ** 2)

    assert gradient(f, x)[0] == pytest.approx(gradient(lambda a: 6 * (a[0] * np.cos(a[1])) ** 2, x)[0])
    assert f(x.copy()[:]) == pullback(f, x)[0]


def test_the_functions_of_piecewise_are_called_once_whatever_the_order():
    calls = []

    def square(a):
        calls.append(len(a))
        return a * a

    x = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    (slope,) = gradient(lambda a: np.sum(np.piecewise(a, [a > 2], [square])), x)
    assert calls == [3]
    assert np.array_equal(slope, np.where(x > 2, 2 * x, 0))
