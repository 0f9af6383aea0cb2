"""Large arrays: sweeps over them use memory again and take shorter ways, and must give what small ones give.

What is large begins at a quarter of a megabyte (`trace/ops.py`); an array of 40 000 floats is.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from retrograde import data, gradient, hook, pullback, withgradient
from retrograde.rules.points import Domain
from retrograde.rules.table import RULES, Elementwise

N = 40_000
SMALL = 100

ELEMENTWISE = [
    rule
    for rule in RULES.values()
    if isinstance(rule, Elementwise)
    and getattr(np, rule.name, None) is rule.function
    and isinstance(rule.function, np.ufunc)
    and all(isinstance(domain, Domain) for domain in rule.at)
]


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(1)


def in_pieces(f: Any, args: tuple[Any, ...], w: Any) -> tuple[Any, ...]:
    """The gradient of Σ w f(args), computed piece by piece."""
    bars = [
        gradient(lambda *piece, w=w[i : i + SMALL]: np.sum(w * f(*piece)), *(x[i : i + SMALL] for x in args))
        for i in range(0, N, SMALL)
    ]
    return tuple(np.concatenate(parts) for parts in zip(*bars, strict=True))


@pytest.mark.parametrize("rule", [pytest.param(rule, id=rule.name) for rule in ELEMENTWISE])
def test_elementwise_functions_have_the_gradients_of_their_pieces(rule: Elementwise, rng: Any) -> None:
    f, args, w = rule.function, [domain.sample(rng, (N,)) for domain in rule.at], rng.standard_normal(N)
    w[::7] = 0.0
    wanted = in_pieces(f, tuple(args), w)
    for loss in (
        lambda *args: np.vdot(f(*args), w),
        lambda *args: np.sum(w * f(*args)),
        lambda *args: np.sum(f(*args) * w * 1.0),
    ):
        for got, want in zip(gradient(loss, *args), wanted, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-13, atol=1e-300)
    # Of a cotangent that is one everywhere.
    for got, want in zip(
        gradient(lambda *args: np.sum(f(*args)), *args), in_pieces(f, tuple(args), np.ones(N)), strict=True
    ):
        np.testing.assert_allclose(got, want, rtol=1e-13, atol=1e-300)


@pytest.mark.parametrize("f", [np.maximum, np.minimum, np.fmax, np.fmin])
def test_ties_share_and_nan_goes_to_its_holder_among_many(f: Any, rng: Any) -> None:
    a, b = rng.integers(0, 3, N) * 1.0, rng.integers(0, 3, N) * 1.0
    wanted = in_pieces(f, (a, b), np.ones(N))
    assert 0.5 in wanted[0]
    for got, want in zip(gradient(lambda a, b: np.sum(f(a, b)), a, b), wanted, strict=True):
        np.testing.assert_array_equal(got, want)
    a[5] = b[6] = np.nan
    _, back = pullback(f, a, b)
    _, back_small = pullback(f, a[:10], b[:10])
    for got, want in zip(back(np.ones(N)), back_small(np.ones(10)), strict=True):
        np.testing.assert_array_equal(got[:10], want)


def test_clip_has_half_slopes_at_its_bounds_among_many(rng: Any) -> None:
    x = rng.integers(-3, 4, N) * 1.0
    (x_bar,) = gradient(lambda x: np.sum(np.clip(x, -2.0, 1.0)), x)
    np.testing.assert_array_equal(x_bar, np.select([np.abs(x + 0.5) < 1.5, np.abs(x + 0.5) == 1.5], [1.0, 0.5], 0.0))


@pytest.mark.parametrize("axis", [None, 0, 1, -1, (0, 2)])
@pytest.mark.parametrize("keepdims", [False, True])
def test_maxima_of_many_are_found_where_they_stand(axis: Any, keepdims: bool, rng: Any) -> None:
    x = rng.permutation(N).reshape(20, 50, 40) * 1.0
    w = rng.standard_normal(np.shape(np.max(x, axis=axis, keepdims=keepdims)))
    (x_bar,) = gradient(lambda x: np.sum(w * np.max(x, axis=axis, keepdims=keepdims)), x)
    whole = np.max(x, axis=axis, keepdims=True)
    np.testing.assert_array_equal(x_bar, np.where(x == whole, np.reshape(w, np.shape(whole)), 0.0))


def test_maxima_of_many_share_among_ties() -> None:
    x = np.zeros((2, N))
    x[0, [3, 5, 7, 9]] = x[1, [0, N - 1]] = 1.0
    (x_bar,) = gradient(lambda x: np.sum(np.max(x, axis=1)), x)
    np.testing.assert_array_equal(x_bar, x / [[4.0], [2.0]])


@pytest.mark.parametrize("values", ["distinct", "tied", "with NaN"])
def test_sort_of_many_follows_the_stable_order(values: str, rng: Any) -> None:
    x = rng.permutation(N) * 1.0 if values == "distinct" else rng.integers(0, 50, N) * 1.0
    if values == "with NaN":
        x[[1, 17]] = np.nan
    w = rng.standard_normal(N)
    y, back = pullback(np.sort, x)
    np.testing.assert_array_equal(y, np.sort(x))
    want = np.empty(N)
    want[np.argsort(x, kind="stable")] = w
    np.testing.assert_array_equal(back(w)[0], want)


@pytest.mark.parametrize("key", ["places", "negative places", "mask", "slice", "column"])
def test_reads_of_many_are_added_where_they_came_from(key: str, rng: Any) -> None:
    x = rng.standard_normal((N, 2) if key == "column" else N)
    keys: dict[str, Any] = {
        "places": rng.integers(0, N, N),
        "negative places": rng.integers(-N, N, N),
        "mask": rng.random(N) < 0.5,
        "slice": slice(3, -2, 3),
        "column": (slice(None), 1),
    }
    k = keys[key]
    w = rng.standard_normal(np.shape(x[k]))
    want = np.zeros(x.shape)
    np.add.at(want, k, w)
    np.testing.assert_allclose(gradient(lambda x: np.sum(x[k] * w), x)[0], want, atol=1e-12)
    # Twice, so that one adds to what the other left.
    np.testing.assert_allclose(gradient(lambda x: np.sum(x[k] * w) + np.vdot(x[k], w), x)[0], 2 * want, atol=1e-12)


def test_where_hides_an_infinite_cotangent_of_the_branch_not_taken(rng: Any) -> None:
    x = rng.uniform(-1, 1, N)
    x[0] = 0.0
    with np.errstate(invalid="ignore"):
        (x_bar,) = gradient(lambda x: np.sum(np.where(x > 0, np.sqrt(x), 0.0)), x)
    np.testing.assert_array_equal(x_bar, np.where(x > 0, 0.5 / np.sqrt(np.where(x > 0, x, 1.0)), 0.0))


@pytest.mark.parametrize(
    "f",
    [
        lambda x, w: np.vdot(x, w),
        lambda x, w: np.sum(x * w),
        lambda x, w: np.sum((x + x) * w - x * w),
        lambda x, w: np.vdot(np.reshape(x, (200, 200)), w),
        lambda x, w: np.vdot(x[::-1], w) - np.vdot(np.exp(0.0 * x), w),
        lambda x, w: np.vdot(np.concatenate([x, x]), np.concatenate([w, w])),
    ],
)
def test_a_gradient_is_an_array_of_its_own_and_constants_stay_as_they_are(f: Any, rng: Any) -> None:
    x, w = rng.standard_normal(N), rng.standard_normal(N)
    before = x.copy(), w.copy()
    (x_bar,) = gradient(f, x, w=w)
    assert not np.shares_memory(x_bar, w)
    assert not np.shares_memory(x_bar, x)
    assert x_bar.flags.writeable
    x_bar[:] = 7.0
    np.testing.assert_array_equal(x, before[0])
    np.testing.assert_array_equal(w, before[1])


def test_two_gradients_do_not_share_their_memory(rng: Any) -> None:
    x, y, w = rng.standard_normal(N), rng.standard_normal(N), rng.standard_normal(N)
    x_bar, y_bar = gradient(lambda x, y: np.vdot(x + y, w), x, y)
    assert not np.shares_memory(x_bar, y_bar)
    np.testing.assert_array_equal(x_bar, w)
    np.testing.assert_array_equal(y_bar, w)


def test_what_a_hook_keeps_is_not_overwritten(rng: Any) -> None:
    x, w = rng.standard_normal(N), rng.standard_normal(N)
    seen: list[Any] = []
    (x_bar,) = gradient(lambda x: np.vdot(np.sin(hook(seen.append, np.exp(x))) * x, w), x)
    np.testing.assert_allclose(seen[0], w * x * np.cos(np.exp(x)), rtol=1e-12)
    np.testing.assert_allclose(x_bar, w * np.sin(np.exp(x)) + w * x * np.cos(np.exp(x)) * np.exp(x), rtol=1e-9)


# Partials that are written over the result, or over what two of them share.
OVERWRITING = {
    "tanh": lambda a, b: np.tanh(a - b),
    "power": lambda a, b: a**b,
    "hypot": lambda a, b: np.hypot(a, b),
    "arctan2": lambda a, b: np.arctan2(a, b),
    "logaddexp": lambda a, b: np.logaddexp(a, b),
    "logaddexp2": lambda a, b: np.logaddexp2(a, b),
    "cumprod": lambda a, b: np.cumprod(1 + 1e-5 * a * b),
}


@pytest.mark.parametrize("name", OVERWRITING)
@pytest.mark.parametrize("part", [slice(None), slice(3, None)], ids=["all", "a view"])
def test_a_result_that_the_caller_keeps_is_not_overwritten(name: str, part: slice, rng: Any) -> None:
    f, a, b, w = OVERWRITING[name], rng.uniform(0.2, 2, N), rng.uniform(0.2, 2, N), rng.standard_normal(N)
    kept: list[Any] = []

    def loss(a: Any, b: Any) -> Any:
        y = f(a, b)
        kept.append(data(y)[part])
        return np.vdot(y, w)

    kept_bars = gradient(loss, a, b)
    np.testing.assert_array_equal(kept[0], f(a, b)[part])
    for kept_bar, bar in zip(kept_bars, gradient(lambda a, b: np.vdot(f(a, b), w), a, b), strict=True):
        np.testing.assert_array_equal(kept_bar, bar)


@pytest.mark.parametrize("name", OVERWRITING)
def test_a_result_that_two_operations_need_is_right_for_both(name: str, rng: Any) -> None:
    f, a, b, w = OVERWRITING[name], rng.uniform(0.2, 2, N), rng.uniform(0.2, 2, N), rng.standard_normal(N)
    y, back = pullback(f, a, b)
    wanted = back(w * 2 * y), back(w * np.exp(y))

    def loss(a: Any, b: Any) -> Any:
        y = f(a, b)
        return np.vdot(y * y, w) + np.vdot(np.exp(y), w)

    for bar, first, second in zip(gradient(loss, a, b), *wanted, strict=True):
        np.testing.assert_allclose(bar, first + second, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", OVERWRITING)
def test_a_pullback_of_many_can_be_called_again(name: str, rng: Any) -> None:
    f, a, b, w = OVERWRITING[name], rng.uniform(0.2, 2, N), rng.uniform(0.2, 2, N), rng.standard_normal(N)
    y, back = pullback(f, a, b)
    before = y.copy(), w.copy()
    first, second = back(w), back(w)
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, other)
        assert not np.shares_memory(one, other)
    np.testing.assert_array_equal(y, before[0])
    np.testing.assert_array_equal(w, before[1])


@pytest.mark.parametrize("bad", [np.inf, np.nan])
def test_zero_cotangents_of_many_meet_no_infinity(bad: float, rng: Any) -> None:
    x, c, w = rng.standard_normal(N), rng.standard_normal(N), rng.standard_normal(N)
    c[::3], w[::3] = bad, 0.0
    for loss in (
        lambda x: np.sum((x * c) * w * 2.0, where=w != 0),
        lambda x: np.sum(np.where(w != 0, x * c * w, 0.0)),
        lambda x: np.sum(np.where(w != 0, np.divide(x, 1 / c), 0.0) * w),
    ):
        with np.errstate(all="ignore"):
            value, (x_bar,) = withgradient(loss, x)
        assert np.isfinite(value)
        assert np.all(x_bar[::3] == 0)
        assert np.all(np.isfinite(x_bar))
        assert np.all(x_bar[1::3] != 0)


def test_a_second_order_derivative_of_many_is_right(rng: Any) -> None:
    x, w = rng.uniform(0.5, 1.5, N), rng.standard_normal(N)

    def slope(x: Any) -> Any:
        return gradient(lambda x: np.sum(w * np.exp(x) * np.sqrt(x) / x), x)[0]

    (second,) = gradient(lambda x: np.sum(slope(x)), x)
    # e^x x^(-1/2) twice differentiated.
    np.testing.assert_allclose(second, w * np.exp(x) * (x**-0.5 - x**-1.5 + 0.75 * x**-2.5), rtol=1e-10)


@pytest.mark.parametrize("shape", [(N,), (100, 400)])
def test_a_reshaped_result_is_handed_over_contiguous(shape: tuple[int, ...], rng: Any) -> None:
    x, w = rng.standard_normal(shape), rng.standard_normal(N)
    (x_bar,) = gradient(lambda x: np.vdot(np.exp(np.reshape(x, -1)), w), x)
    assert x_bar.flags.c_contiguous
    np.testing.assert_allclose(x_bar, np.exp(x) * w.reshape(shape), rtol=1e-14)


@pytest.mark.parametrize("axis", [0, 1])
def test_differences_of_slices_have_the_gradient_of_their_pieces(axis: int, rng: Any) -> None:
    x, w = rng.standard_normal((N // 100, 100)), rng.standard_normal((N // 100, 100))

    def loss(x: Any, w: Any) -> Any:
        x = np.moveaxis(x, axis, 0)
        ahead, behind = x[1:], x[:-1]
        return np.sum((ahead - behind) ** 2) + np.vdot(behind, w[: len(behind), : x.shape[1]]) - np.sum(x[2:] - x[:-2])

    (x_bar,) = gradient(loss, x, w=w if axis == 0 else w.T.copy())
    moved, back = np.moveaxis(x, axis, 0), np.zeros_like(np.moveaxis(x, axis, 0))
    steps = moved[1:] - moved[:-1]
    back[1:] += 2 * steps
    back[:-1] += (w if axis == 0 else w.T)[: len(steps), : moved.shape[1]] - 2 * steps
    back[2:] -= 1.0
    back[:-2] += 1.0
    np.testing.assert_allclose(np.moveaxis(x_bar, axis, 0), back, atol=1e-12)


def test_a_slice_that_is_used_twice_gets_both_signs(rng: Any) -> None:
    x, w = rng.standard_normal(N), rng.standard_normal(N - 1)

    def loss(x: Any) -> Any:
        part = x[1:]
        return np.vdot((x[:-1] - part) * np.exp(part), w) - np.vdot(part, w)

    (x_bar,) = gradient(loss, x)
    want = np.zeros(N)
    want[:-1] += w * np.exp(x[1:])
    want[1:] += w * np.exp(x[1:]) * (x[:-1] - x[1:] - 1.0) - w
    np.testing.assert_allclose(x_bar, want, rtol=1e-12, atol=1e-12)
