"""What rules say that a finite result proves, of which the sweep then makes no check (`proven`, `shows`)."""

import inspect
import itertools

import numpy as np
import pytest

from retrograde import gradient
from retrograde.rules.table import RULES, Chained, Elementwise, Multiple, Reciprocal

AWKWARD = [
    *(0.0, -0.0, 1.0, -1.0, 0.5, -2.0, 3.7, np.pi, np.inf, -np.inf, np.nan, 5e-324, -5e-324, 2.3e-308, 1e-200, -1e-160),
    *(1e-16, 1 - 1e-16, 30.0, -745.0, 709.7, 1e16, 1e154, -1e160, 1e308, -1.7e308),
]
LARGE = 2**16

PROVING = [rule for rule in RULES.values() if isinstance(rule, Elementwise) and (rule.proven or rule.shows)]


def calls(rule):
    """Every combination of awkward arguments of which the result is finite, with that."""
    for args in itertools.product(AWKWARD, repeat=len(rule.partials)):
        args = tuple(map(np.float64, args))
        y = rule.function(*args)
        if np.isfinite(y):
            yield y, args


def value_of(partial, y, args):
    """A partial at one point; of one that is divided by, the divisor."""
    names = dict(zip("abc", args, strict=False)) | {"x": args[0], "y": y}
    if isinstance(partial, Multiple):
        partial = partial.partial
    if isinstance(partial, Chained):
        return value_of(partial.second, y, args)
    function = partial.divisor if isinstance(partial, Reciprocal) else partial
    return function(*(names[name] for name in inspect.signature(partial).parameters)), isinstance(partial, Reciprocal)


@pytest.mark.parametrize("rule", [rule for rule in PROVING if rule.proven], ids=lambda rule: rule.name)
def test_partials_are_finite_where_the_result_is(rule):
    with np.errstate(all="ignore"):
        for y, args in calls(rule):
            for partial in rule.partials:
                if callable(partial):
                    value, divides = value_of(partial, y, args)
                    assert not np.isnan(value), args
                    assert value != 0 if divides else np.isfinite(value), args


@pytest.mark.parametrize("rule", [rule for rule in PROVING if rule.shows], ids=lambda rule: rule.name)
def test_arguments_are_finite_where_the_result_is(rule):
    with np.errstate(all="ignore"):
        for _, args in calls(rule):
            assert np.all(np.isfinite(args)), args


@pytest.mark.parametrize(
    "function", [rule.function for rule in RULES.values() if getattr(rule, "args", None) and rule.shows]
)
@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("other", [0.0, 1.0, -np.inf])
def test_a_reduction_is_finite_only_if_every_element_is(function, bad, other):
    for n, place in [(1, 0), (7, 3), (1000, 999), (100_000, 50_001)]:
        x, y = np.ones(n), np.full(n, other)
        x[place] = bad
        with np.errstate(all="ignore"):
            value = function(x, y) if len(RULES[function].args) == 2 else function(x)
        assert not np.isfinite(value)


def stepped(n=LARGE):
    x = np.full(n, 0.5)
    x[::3] = 0.0
    return x


@pytest.mark.parametrize(
    ("loss", "slope"),
    [
        (lambda x: np.sum(np.sqrt(x) * (x > 0)), lambda x: 0.5 / np.sqrt(x)),
        (lambda x: np.vdot(np.where(x > 0, np.log(x), 0.0), np.ones(LARGE)), lambda x: 1 / x),
        (lambda x: np.sum(np.log(x), where=x > 0), lambda x: 1 / x),
        (lambda x: np.mean(np.maximum(np.log(x), -1.0)) * LARGE, lambda x: 1 / x),
        (lambda x: np.nansum(x * np.where(x > 0, 1.0, np.nan)), lambda x: 1.0),
        (lambda x: np.sum(np.exp(np.log(x))), lambda x: 1.0),
        (lambda x: np.sum(x ** np.where(x > 0, 2.0, 0.0)), lambda x: 2 * x),
        (lambda x: np.sum(1.0 / (1.0 / x)), lambda x: 1.0),
        (lambda x: np.sum(np.tanh(np.log(x)) * x), lambda x: np.tanh(np.log(x)) + (1 - np.tanh(np.log(x)) ** 2)),
    ],
)
def test_what_a_finite_loss_does_not_prove_is_checked(loss, slope):
    x = stepped()
    with np.errstate(all="ignore"):
        (x_bar,) = gradient(loss, x)
        expected = np.broadcast_to(slope(x), x.shape)
    assert np.allclose(x_bar[x > 0], expected[x > 0])
    assert not np.any(np.isnan(x_bar))
