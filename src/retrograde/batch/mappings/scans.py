"""Functions along one axis: running sums, sorting, Fourier transforms, repetition."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from retrograde.batch.arguments import array, behind, call, named
from retrograde.batch.table import by_body, mapped
from retrograde.originals import np
from retrograde.rules.numpy_differences import steps, steps_back


def _along(default: Any) -> Callable[..., Any]:
    """A mapping of functions of one array along `axis`; None flattens it first."""

    def compute(function: Any, level: Any, *args: Any, **kwargs: Any) -> Any:
        given = named(function, args, kwargs)
        name = next(iter(given))
        a = given[name]
        axis = given.pop("axis", default)
        raw = a.primal
        if axis is None:
            raw, axis = np.reshape(raw, (level.size, a.size)), 1
        elif isinstance(axis, int) and a.ndim == 0 and axis in (0, -1):
            # NumPy lets a number have an axis here and there.
            raw, axis = raw[:, None], 1
        else:
            axis = behind(axis, a.ndim)
        return call(function, given | {name: raw, "axis": axis})

    return compute


def _flat_or_only(function: Any, level: Any, *args: Any, **kwargs: Any) -> Any:
    """`np.cumulative_sum`, whose axis may be left out for one dimension."""
    given = named(function, args, kwargs)
    x = given["x"]
    axis = given.get("axis")
    if axis is None:
        if x.ndim > 1:
            return function(np.zeros(x.shape))  # NumPy says what is missing
        axis = 0
    raw = x.primal if x.ndim else x.primal[:, None]
    return call(function, given | {"x": raw, "axis": behind(axis, raw.ndim - 1)})


mapped(np.cumsum, np.cumprod, np.nancumsum, np.nancumprod, np.repeat)(_along(None))
mapped(np.cumulative_sum, np.cumulative_prod)(_flat_or_only)
mapped(np.sort, np.argsort, np.partition, np.argpartition, np.unwrap)(_along(-1))
mapped(np.fft.fft, np.fft.ifft, np.fft.rfft, np.fft.irfft, np.fft.hfft, np.fft.ihfft)(_along(-1))
mapped(
    np.add.accumulate, np.multiply.accumulate, np.maximum.accumulate, np.minimum.accumulate, np.fmax.accumulate,
    np.fmin.accumulate, np.logaddexp.accumulate, np.add.reduceat, np.multiply.reduceat,
)(_along(0))  # fmt: skip


@mapped(np.fft.fftshift, np.fft.ifftshift, np.flip)
def _over_axes(function: Any, level: Any, x: Any, axis: Any = None, *, axes: Any = None) -> Any:
    axis = axes if axis is None else axis
    return function(x.primal, tuple(range(1, x.ndim + 1)) if axis is None else behind(axis, x.ndim))


@mapped(np.roll)
def _roll(function: Any, level: Any, a: Any, shift: Any, axis: Any = None) -> Any:
    if axis is None:
        flat = np.roll(np.reshape(a.primal, (level.size, a.size)), shift, 1)
        return np.reshape(flat, (level.size, *a.shape))
    return np.roll(a.primal, shift, behind(axis, a.ndim))


@mapped(steps, steps_back)
def _steps(function: Any, level: Any, x: Any, axis: int) -> Any:
    return function(x.primal, axis + 1)


@by_body(np.lexsort)
def _lexsort(function: Any, level: Any, keys: Any, axis: int = -1) -> Any:
    keys = [keys[i] for i in range(len(keys))]
    order: Any = np.argsort(keys[0], axis=axis, kind="stable")
    for key in keys[1:]:
        again = np.argsort(np.take_along_axis(array(key), order, axis), axis=axis, kind="stable")
        order = np.take_along_axis(order, again, axis)
    return order
