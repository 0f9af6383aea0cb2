"""Large arrays have formulas and proofs of their own: their gradients are those of small ones, element by element."""

import itertools

import numpy as np
import pytest

from retrograde import gradient
from retrograde.errors import LossError
from retrograde.rules.table import RULES, Elementwise

AWKWARD = [
    *(0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -3.0, 3.7, np.inf, -np.inf, np.nan, 5e-324, -2e-308, 1e-200, -1e-160, 1e-16),
    *(1 - 1e-16, 30.0, -745.0, 709.7, 1e154, -1e160, 1e308),
]
USUAL = [0.25, 0.5, 0.75, 0.9]
LARGE = 2**15 + 64
RULES_OF_ARRAYS = [
    rule
    for rule in RULES.values()
    if isinstance(rule, Elementwise)
    and isinstance(rule.function, np.ufunc)
    and getattr(np, rule.function.__name__, None) is rule.function
    and rule.function is not np.ldexp
]


def tiled(points):
    """Each point many times over, as one array for each argument."""
    columns = np.array(points).T
    return [np.tile(column, -(-LARGE // len(column))) for column in columns]


def both(f, points, w):
    """The gradients of a loss at the points, and at the same points in large arrays."""
    small = gradient(lambda *args: f(args, w), *map(np.ascontiguousarray, np.array(points).T))
    arrays = tiled(points)
    large = gradient(lambda *args: f(args, np.tile(w, len(arrays[0]) // len(w))), *arrays)
    n = len(points)
    for a, b in zip(small, large, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            assert np.all((b[:n] == b[-n:]) | np.isnan(b[:n]))
            yield a, b[:n]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("rule", RULES_OF_ARRAYS, ids=lambda rule: rule.name)
@pytest.mark.parametrize("masked", [False, True])
def test_gradients_of_large_arrays_are_those_of_small_ones(rule, masked):
    function, rng = rule.function, np.random.default_rng(3)
    for values in (USUAL, [*USUAL, *AWKWARD]):
        points = list(itertools.product(values, repeat=len(rule.partials)))
        with np.errstate(all="ignore"):
            finite = np.isfinite(function(*np.array(points).T))
        if not masked:
            points = [point for point, is_finite in zip(points, finite, strict=True) if is_finite]
            finite = finite[finite]
        if not points:
            continue
        w = rng.uniform(-1, 1, len(points))
        w[::4] = 0.0
        mask = finite & (w != 0)

        def loss(args, w, mask=mask):
            y = function(*args)
            return np.vdot(np.where(np.tile(mask, len(w) // len(mask)), y, 0.0), w) if masked else np.vdot(y, w)

        with np.errstate(all="ignore"):
            try:
                pairs = list(both(loss, points, w))
            except LossError:  # the sum of what is finite need not be
                continue
        for small, large in pairs:
            assert np.allclose(small, large, rtol=1e-13, atol=0, equal_nan=True), function
