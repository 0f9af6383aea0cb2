"""What NumPy runs on numbers, arrays without axes or without elements, other byte orders, and arguments by position.

Each call is made in every mode: the value is NumPy's own to the sign of a zero, its dtype and its kind, and the
derivatives are those of differences.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from truth import close, differences

import retrograde as rg

VECTOR = np.array([2.0, 1.0, 5.0])
EMPTY = [np.zeros((0, 3)), np.zeros((3, 0))]
NUMBERS = [2.0, np.array(2.0), np.array(2.0, np.float32)]
SWAPPED = VECTOR.astype(VECTOR.dtype.newbyteorder())

Case = tuple[str, Callable[[Any], Any], list[Any]]

CASES: list[Case] = [
    # Largest and smallest sums of no elements.
    ("norm inf", lambda x: np.linalg.norm(x, np.inf), EMPTY[:1]),
    ("norm 1", lambda x: np.linalg.norm(x, 1), EMPTY),
    ("norm -inf", lambda x: np.linalg.norm(x, -np.inf), EMPTY[1:]),
    ("norm 1, columns first", lambda x: np.linalg.norm(x, 1, (1, 0), True), EMPTY[:1]),
    ("matrix_norm", lambda x: np.linalg.matrix_norm(x, ord=np.inf), [np.zeros((2, 0, 3)), np.zeros((0, 2, 3))]),
    ("norm of a vector", lambda x: np.linalg.norm(x, np.inf), [np.zeros(0)]),
    # The axis that a number does not have.
    ("take", lambda x: np.take(x, 0, axis=0), [*NUMBERS, VECTOR]),
    ("take twice", lambda x: np.take(x, [0, -1], axis=-1), [*NUMBERS, VECTOR]),
    ("take, clipped", lambda x: np.take(x, [5], axis=0, mode="clip"), NUMBERS),
    ("take, wrapped", lambda x: np.take(x, np.array([[3]]), axis=0, mode="wrap"), NUMBERS),
    ("take by a truth value", lambda x: np.take(x, True), [VECTOR]),
    ("repeat", lambda x: np.repeat(x, 3, axis=0), [*NUMBERS, VECTOR]),
    ("repeat in a list", lambda x: np.repeat(x, [2], axis=-1), NUMBERS),
    ("compress", lambda x: np.compress([True], x, axis=0), [*NUMBERS, VECTOR]),
    ("sum", lambda x: np.sum(x, axis=0), NUMBERS),
    ("prod", lambda x: np.prod(x, axis=-1, keepdims=True), NUMBERS),
    ("max", lambda x: np.max(x, axis=0), NUMBERS),
    ("nanvar", lambda x: np.nanvar(x, axis=0), NUMBERS),
    ("nanstd", lambda x: np.nanstd(x, axis=-1, keepdims=True), [*NUMBERS, VECTOR]),
    ("nanmean", lambda x: np.nanmean(x, axis=0), NUMBERS),
    ("squeeze", lambda x: np.squeeze(x, 0), NUMBERS),
    ("cumulative_sum", lambda x: np.cumulative_sum(x), [*NUMBERS, VECTOR]),
    ("quantile", lambda x: np.quantile(x, [0.25, 0.5]), [*NUMBERS, VECTOR]),
    ("quantiles of no fraction", lambda x: np.quantile(x, []), [*NUMBERS, VECTOR]),
    ("median", lambda x: np.median(x, keepdims=True), [*NUMBERS, VECTOR]),
    ("nanmedian", lambda x: np.nanmedian(x, axis=(), keepdims=True), NUMBERS),
    ("fftn", lambda x: np.fft.fftn(x), NUMBERS),
    ("histogram edges", lambda x: np.histogram_bin_edges(x, 2), [*NUMBERS, VECTOR]),
    ("choose", lambda x: np.choose([0], [x]), [*NUMBERS, VECTOR]),
    (
        "piecewise",
        lambda x: np.piecewise(x, [np.ones(x.shape, bool)], [lambda t: t * t, lambda t: -t]),
        [*EMPTY, SWAPPED],
    ),
    # Paddings.
    ("pad", lambda x: np.pad(x, 1), [*NUMBERS, VECTOR, SWAPPED]),
    ("pad with -0.0", lambda x: np.pad(x, 1, constant_values=-0.0), [*NUMBERS, VECTOR, SWAPPED]),
    ("pad with -0.0 behind", lambda x: np.pad(x, 1, constant_values=(0, np.float64(-0.0))), [VECTOR, SWAPPED]),
    ("pad with 1.5", lambda x: np.pad(x, 1, constant_values=1.5), [*NUMBERS, VECTOR, SWAPPED]),
    ("insert", lambda x: np.insert(x, 1, 3.0), [VECTOR, SWAPPED]),
    *(
        (f"pad by {mode}", lambda x, mode=mode: np.pad(x, (1, 2), mode), [*NUMBERS, VECTOR, SWAPPED])  # type: ignore[misc]
        for mode in ("edge", "linear_ramp", "maximum", "mean", "median", "minimum", "reflect", "symmetric", "wrap")
    ),
    # `out` and what stands behind it, by position.
    ("ptp, out=None", lambda x: np.ptp(x, None, None), [*NUMBERS, VECTOR]),
    ("ptp, keepdims", lambda x: np.ptp(x, 0, None, True), [*NUMBERS, VECTOR]),
    ("nansum", lambda x: np.nansum(x, None, None, None, True), [VECTOR]),
    ("nanvar by position", lambda x: np.nanvar(x, 0, None, None, 1), [VECTOR]),
    ("clip", lambda x: np.clip(x, 0.0, 1.5, None), [*NUMBERS, VECTOR]),
    ("fix", lambda x: np.fix(x, None), [VECTOR + 0.25]),
    ("compress, out=None", lambda x: np.compress([True], x, None, None), [*NUMBERS, VECTOR]),
    ("trace", lambda x: np.trace(x, 0, 0, 1, None, None), [np.eye(2), np.zeros((0, 3))]),
    ("quantile by position", lambda x: np.quantile(x, 0.3, None, None, False, "linear", True), [VECTOR]),
    ("median by position", lambda x: np.median(x, None, None, False, True), [VECTOR]),
]
CALLS = [pytest.param(f, x, id=f"{name}-{i}") for name, f, xs in CASES for i, x in enumerate(xs)]


def same(got: Any, want: Any) -> None:
    """Of one kind (a number or an array), dtype and shape, and equal to the sign of a zero."""
    assert isinstance(got, np.ndarray) == isinstance(want, np.ndarray), f"{type(got)} where {type(want)} is wanted"
    got, want = np.asarray(got), np.asarray(want)
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(np.signbit(got.real), np.signbit(want.real))


def squares(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: np.sum(np.real(f(x)) ** 2)


@pytest.mark.parametrize(("f", "x"), CALLS)
def test_value_is_numpys_in_every_mode(f: Callable[[Any], Any], x: Any) -> None:
    want = f(x)
    one = np.ones_like(x) if isinstance(x, np.ndarray) else 1.0
    same(rg.pullback(f, x)[0], want)
    same(rg.jvp(f, (x,), (one,))[0], want)
    same(rg.taylor(f, x, one, 1)[0], want)
    examples = np.stack([x, x])  # has the byte order of the machine
    batch = rg.vmap(f)(examples)
    same(batch, np.stack([f(example) for example in examples]))


@pytest.mark.parametrize(("f", "x"), CALLS)
def test_derivatives_are_those_of_differences(f: Callable[[Any], Any], x: Any) -> None:
    loss = squares(f)
    tolerance = 1e-5 if getattr(x, "dtype", None) == np.float32 else 1e-8
    exact = np.asarray(x, np.float64)
    want = differences(loss, exact) if exact.size else np.zeros(exact.shape)
    (bar,) = rg.gradient(loss, x)
    close(np.zeros(np.shape(x)) if bar is None else bar, want, tolerance, tolerance)
    direction: Any = np.cos(np.arange(exact.size)).reshape(exact.shape)
    if isinstance(x, np.ndarray):
        direction = direction.astype(x.dtype)
    _, y_dot = rg.jvp(loss, (x,), (direction if exact.shape else direction[()],))
    close(y_dot, np.sum(want * direction), tolerance, tolerance)
    second = differences(rg.grad(loss), exact) if exact.size else np.zeros(exact.shape * 2)
    close(rg.hvp(loss, x, direction), np.tensordot(second, direction, exact.ndim), 10 * tolerance, 10 * tolerance)


@pytest.mark.parametrize("mode", ["constant", "edge", "mean", "reflect"])
def test_padding_by_nothing_is_a_copy(mode: Any) -> None:
    def writes_into_the_padded(x: Any) -> Any:
        y = np.pad(x, 0, mode)
        y[0] = 10.0
        return np.sum(x * x) + np.sum(y)

    close(rg.gradient(writes_into_the_padded, VECTOR)[0], [4.0, 3.0, 11.0])


def test_average_of_nothing_divides_by_zero_as_in_numpy() -> None:
    for f in (np.average, rg.grad(lambda x: np.sum(np.average(x, axis=1)))):
        with pytest.raises(ZeroDivisionError):
            f(np.zeros((0, 3)), **({"axis": 1} if f is np.average else {}))


@pytest.mark.parametrize("function", [np.nanquantile, np.nanpercentile])
def test_quantiles_of_no_elements_are_one_number_in_a_batch_too(function: Any) -> None:
    def f(x: Any) -> Any:
        return function(x, [0.25, 0.5], axis=0, keepdims=True)

    with np.errstate(invalid="ignore"), pytest.warns(RuntimeWarning, match="empty"):
        same(rg.vmap(f)(np.zeros((2, 0, 3))), np.stack([f(np.zeros((0, 3)))] * 2))
