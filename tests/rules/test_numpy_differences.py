"""Hand-worked derivatives of differences, numerical slopes and the trapezoidal rule."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from interpreter import body

import retrograde
from retrograde.rules.table import RULES


def pulled(f: Any, x: Any, y_bar: Any) -> Any:
    _, back = retrograde.pullback(f, np.asarray(x, float))
    return back(np.asarray(y_bar, float))[0]


def equal(actual: Any, expected: Any) -> None:
    np.testing.assert_array_equal(actual, expected)


def test_difference_pulls_back_minus_the_difference() -> None:
    equal(pulled(np.diff, [0, 0, 0, 0], [1, 10, 100]), [-1, -9, -90, 100])
    equal(pulled(lambda a: np.diff(a, n=2), [0, 0, 0, 0], [1, 10]), [1, -2 + 10, 1 - 20, 10])
    equal(pulled(lambda a: np.diff(a, axis=0), [[0, 0], [0, 0]], [[1, 2]]), [[-1, -2], [1, 2]])


def test_difference_of_what_is_prepended_and_appended() -> None:
    def f(a: Any, before: Any, after: Any) -> Any:
        return np.diff(a, axis=1, prepend=before, append=after)

    _, back = retrograde.pullback(f, np.zeros((2, 2)), 0.0, np.zeros((2, 1)))
    a_bar, before_bar, after_bar = back(np.array([[1.0, 2, 3], [4, 5, 6]]))
    equal(a_bar, [[-1, -1], [-1, -1]])
    assert before_bar == -1 - 4
    equal(after_bar, [[3], [6]])


def test_difference_of_too_few_elements_is_empty() -> None:
    assert body(np.diff, np.ones(2), 5).shape == np.diff(np.ones(2), 5).shape == (0,)
    assert body(np.diff, np.ones((2, 3)), 0).shape == (2, 3)
    with pytest.raises(ValueError, match="non-negative"):
        body(np.diff, np.ones(2), -1)


def test_ediff1d_passes_its_ends_on() -> None:
    a_bar = pulled(lambda a: np.ediff1d(a, to_begin=a[0, 0], to_end=[7.0, 8.0]), [[1, 2]], [1, 10, 100, 1000])
    equal(a_bar, [[1 - 10, 10]])


def test_slopes_reach_every_coordinate_when_they_are_equally_spaced() -> None:
    # The middle slope of f over the coordinates x is (f₂-f₀)/(x₂-x₀) where the spacing is even, plus a term in x₁.
    f, x = np.array([0.0, 1, 8]), np.array([0.0, 1, 2])
    (x_bar,) = retrograde.gradient(lambda x: np.gradient(f, x)[1], x)
    step = 1e-6
    for i, slope in enumerate(x_bar):
        ahead, behind = x + step * (np.arange(3) == i), x - step * (np.arange(3) == i)
        rise = np.gradient(f, ahead)[1] - np.gradient(f, behind)[1]
        np.testing.assert_allclose(slope, rise / (2 * step), rtol=1e-8)


def test_slopes_by_hand() -> None:
    equal(pulled(np.gradient, [0, 0, 0], [1, 10, 100]), [-1 - 5, 1 - 100, 5 + 100])
    f_bar = pulled(lambda f: np.gradient(f, 2.0, edge_order=2), [0, 0, 0], [1, 0, 0])
    equal(f_bar, [-0.75, 1, -0.25])


@pytest.mark.parametrize("edge_order", [1, 2])
@pytest.mark.parametrize("spacing", [(), (0.5,), (2.0, 0.25), (0.5, [0.0, 1, 4, 5])])
def test_slopes_are_numpys(edge_order: int, spacing: Any) -> None:
    f = np.random.default_rng(0).normal(size=(3, 4))
    for mine, numpys in zip(
        body(np.gradient, f, *spacing, edge_order=edge_order),
        np.gradient(f, *spacing, edge_order=edge_order),
        strict=True,
    ):
        np.testing.assert_allclose(mine, numpys, rtol=1e-13)
    equal(body(np.gradient, [1, 2, 4]), np.gradient([1, 2, 4]))


@pytest.mark.parametrize(
    ("error", "args", "kwargs"),
    [
        (ValueError, (np.ones(1),), {}),
        (ValueError, (np.ones(2),), {"edge_order": 2}),
        (ValueError, (np.ones(4),), {"edge_order": 3}),
        (ValueError, (np.ones(4), np.arange(3.0)), {}),
        (TypeError, (np.ones((4, 4, 4)), 1.0, 2.0), {}),
    ],
)
def test_slopes_refuse_what_numpy_refuses(error: type[Exception], args: Any, kwargs: Any) -> None:
    for gradient in (np.gradient, RULES[np.gradient].body):
        with pytest.raises(error):
            gradient(*args, **kwargs)


def test_trapezoids_by_hand() -> None:
    y, x = np.array([1.0, 2, 6]), np.array([0.0, 1, 3])
    y_bar, x_bar = retrograde.gradient(np.trapezoid, y, x)
    equal(y_bar, [0.5, 1.5, 1])
    equal(x_bar, [-1.5, 1.5 - 4, 4])
    assert retrograde.gradient(lambda dx: np.trapezoid(y, dx=dx), 2.0)[0] == 1.5 + 4
    assert body(np.trapezoid, [1, 2, 6], [0, 1, 3]) == 9.5
