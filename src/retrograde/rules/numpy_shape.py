"""Functions that rearrange or repeat elements: reshapes, transpositions, flips, tiles, windows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from numpy.lib.stride_tricks import sliding_window_view

from retrograde.errors import UnsupportedArgumentError
from retrograde.originals import np
from retrograde.rules.dispatching import dispatched
from retrograde.rules.numpy_indexing import along, scatter
from retrograde.rules.points import call, complex_, real
from retrograde.rules.products import at_shape, shape_of, transpose, unbroadcast
from retrograde.rules.table import Like, composed, general, linear, no_gradient

Ints = int | Sequence[int]
Axes = int | tuple[int, ...] | None

no_gradient(np.ndim, np.shape, np.size, np.result_type, why="it describes an array and does not read it", reads=False)


# --- the same elements in another shape ------------------------------------------------------------------------------
# These two are not `linear`, although they are, because with order "A" or "K" a tangent of another memory layout would
# be read in another order than the primal was; the formula is the place to refuse that, in either mode.


def _explicit(order: str) -> Any:
    if order in ("C", "F", "c", "f"):
        return order
    raise UnsupportedArgumentError(
        f"order={order!r} reads the elements as they happen to lie in memory, which a derivative does not know",
        "order='C' or order='F'",
    )


def reshape_pullback(y: Any, a: Any, shape: Ints, order: Any = "C", *, copy: bool | None = None) -> Any:
    a_shape, order = shape_of(a), _explicit(order)

    def pull(y_bar: Any) -> tuple[Any]:
        # (The method, without NumPy's Python code around it.)
        a_bar = y_bar.reshape(a_shape, order=order) if type(y_bar) is np.ndarray else np.reshape(y_bar, a_shape, order)
        return (a_bar,)

    return pull


def _reshaped_array(a: Any, shape: Ints, order: Any = "C", *, copy: bool | None = None) -> Any:
    return a.reshape(shape, order=order) if copy is None else np.reshape(a, shape, order, copy=copy)


def reshape_pushforward(y: Any, a: Any, shape: Ints, order: Any = "C", *, copy: bool | None = None) -> Any:
    y_shape, order = shape_of(y), _explicit(order)

    def push(a_dot: Any) -> Any:
        return np.reshape(a_dot, y_shape, order)

    return push


def ravel_pullback(y: Any, a: Any, order: Any = "C") -> Any:
    return reshape_pullback(y, a, -1, order)


def ravel_pushforward(y: Any, a: Any, order: Any = "C") -> Any:
    return reshape_pushforward(y, a, -1, order)


general(
    np.reshape,
    pullback=reshape_pullback,
    pushforward=reshape_pushforward,
    of_array=_reshaped_array,
    at=[
        call(real(-1, 1, 2, 3), (3, 2)),
        call(complex_(-1, 1, 2, 3), -1),
        call(real(-1, 1, 2, 3), (3, -1), "F"),
        call(real(-1, 1), (1, 1), copy=True),
        call(real(-1, 1, 1), ()),
        call(real(-1, 1, 0, 3), (3, 0)),
    ],
)
general(
    np.ravel,
    pullback=ravel_pullback,
    pushforward=ravel_pushforward,
    at=[call(real(-1, 1, 2, 3)), call(complex_(-1, 1, 2, 3), order="F"), call(real(-1, 1)), call(real(-1, 1, 0))],
)


def expand_dims_adjoint(y_bar: Any, a: Like, axis: Ints) -> Any:
    return np.reshape(y_bar, a.shape)


def squeeze_adjoint(y_bar: Any, a: Like, axis: Axes = None) -> Any:
    return np.reshape(y_bar, a.shape)


linear(
    np.expand_dims,
    expand_dims_adjoint,
    at=[call(real(-1, 1, 2, 3), 1), call(complex_(-1, 1, 2), (0, -1)), call(real(-1, 1), axis=0)],
)
linear(
    np.squeeze,
    squeeze_adjoint,
    at=[call(real(-1, 1, 1, 2, 1)), call(complex_(-1, 1, 1, 2, 1), axis=-1), call(real(-1, 1, 1, 1), (0, 1))],
)


def _at_least(a: Any, shape_of: Callable[..., tuple[int, ...]]) -> Any:
    """`a` reshaped to what `shape_of(*lengths)` says of its lengths; an array that has that shape comes back itself."""
    shape = np.shape(a)
    wanted = shape_of(*shape)
    return a if wanted == shape and not isinstance(a, (list, tuple)) else np.reshape(a, wanted)


def _shape_1d(*shape: int) -> tuple[int, ...]:
    return shape or (1,)


def _shape_2d(*shape: int) -> tuple[int, ...]:
    return (1,) * (2 - len(shape)) + shape


def _shape_3d(*shape: int) -> tuple[int, ...]:
    """One dimension goes to the middle, two go to the front."""
    return {0: (1, 1, 1), 1: (1, *shape, 1), 2: (*shape, 1)}.get(len(shape), shape)


def _one_or_all(results: list[Any]) -> Any:
    return results[0] if len(results) == 1 else tuple(results)


def atleast_1d_body(*arys: Any) -> Any:
    return _one_or_all([_at_least(a, _shape_1d) for a in arys])


def atleast_2d_body(*arys: Any) -> Any:
    return _one_or_all([_at_least(a, _shape_2d) for a in arys])


def atleast_3d_body(*arys: Any) -> Any:
    return _one_or_all([_at_least(a, _shape_3d) for a in arys])


_AT_LEAST_POINTS = [
    call(real(-1, 1)),
    call(real(-1, 1, 2)),
    call(complex_(-1, 1, 2, 3)),
    call(real(-1, 1, 2, 1, 2)),
    call(real(-1, 1), real(-1, 1, 2), 1.5),
]
composed(np.atleast_1d, atleast_1d_body, at=_AT_LEAST_POINTS)
composed(np.atleast_2d, atleast_2d_body, at=_AT_LEAST_POINTS)
composed(np.atleast_3d, atleast_3d_body, at=_AT_LEAST_POINTS)


# --- axes in another order -------------------------------------------------------------------------------------------


def transpose_adjoint(y_bar: Any, a: Like, axes: Axes = None) -> Any:
    if axes is None:
        return np.transpose(y_bar)
    if isinstance(axes, int):
        axes = (axes,)
    return np.transpose(y_bar, np.argsort([axis % a.ndim for axis in axes]))


def matrix_transpose_adjoint(y_bar: Any, x: Like, /) -> Any:
    return transpose(y_bar)


def swapaxes_adjoint(y_bar: Any, a: Like, axis1: int, axis2: int) -> Any:
    return np.swapaxes(y_bar, axis1, axis2)


def moveaxis_adjoint(y_bar: Any, a: Like, source: Ints, destination: Ints) -> Any:
    return np.moveaxis(y_bar, destination, source)


def rollaxis_body(a: Any, axis: int, start: int = 0) -> Any:
    """The axis goes *before* the one that is at `start` now, which moves up if the axis came from below it."""
    ndim = np.ndim(a)
    axis, start = (n + ndim if n < 0 else n for n in (axis, start))
    return np.moveaxis(a, axis, start - 1 if axis < start else start)


linear(
    np.transpose,
    transpose_adjoint,
    at=[
        call(complex_(-1, 1, 2, 3)),
        call(real(-1, 1, 2, 3, 4), (2, 0, 1)),
        call(real(-1, 1, 2, 3, 4), axes=[-1, 0, -2]),
        call(real(-1, 1, 3)),
        call(real(-1, 1)),
    ],
)
_MATRIX_POINTS = [call(complex_(-1, 1, 2, 3)), call(real(-1, 1, 2, 3, 4))]
linear(np.matrix_transpose, matrix_transpose_adjoint, at=_MATRIX_POINTS)
linear(np.linalg.matrix_transpose, matrix_transpose_adjoint, at=_MATRIX_POINTS)
linear(np.swapaxes, swapaxes_adjoint, at=[call(complex_(-1, 1, 2, 3), 0, 1), call(real(-1, 1, 2, 3, 4), 0, -1)])
linear(
    np.moveaxis,
    moveaxis_adjoint,
    at=[call(complex_(-1, 1, 2, 3, 4), 0, -1), call(real(-1, 1, 2, 3, 4), (0, 1), (-1, 0))],
)
composed(
    np.rollaxis,
    rollaxis_body,
    at=[
        call(complex_(-1, 1, 2, 3, 4), 2),
        call(real(-1, 1, 2, 3, 4), 0, 3),
        call(real(-1, 1, 2, 3, 4), -1, 1),
        call(real(-1, 1, 2, 3, 4), 0, -1),
        call(real(-1, 1, 2, 3, 4), 1, 1),
    ],
)


# --- elements in another order ---------------------------------------------------------------------------------------


def flip_adjoint(y_bar: Any, m: Like, axis: Axes = None) -> Any:
    return np.flip(y_bar, axis)


def fliplr_adjoint(y_bar: Any, m: Like) -> Any:
    return np.fliplr(y_bar)


def flipud_adjoint(y_bar: Any, m: Like) -> Any:
    return np.flipud(y_bar)


def rot90_adjoint(y_bar: Any, m: Like, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Any:
    return np.rot90(y_bar, -k, axes)


def roll_adjoint(y_bar: Any, a: Like, shift: Ints, axis: Axes = None) -> Any:
    return np.roll(y_bar, np.negative(shift), axis)


linear(
    np.flip,
    flip_adjoint,
    at=[call(complex_(-1, 1, 2, 3)), call(real(-1, 1, 2, 3), -1), call(real(-1, 1, 2, 3, 2), axis=(0, 2))],
)
linear(np.fliplr, fliplr_adjoint, at=[call(complex_(-1, 1, 2, 3))])
linear(np.flipud, flipud_adjoint, at=[call(complex_(-1, 1, 2, 3)), call(real(-1, 1, 3))])
linear(
    np.rot90,
    rot90_adjoint,
    at=[call(complex_(-1, 1, 2, 3)), call(real(-1, 1, 2, 3), 2), call(real(-1, 1, 2, 3, 4), -1, axes=(2, 0))],
)
linear(
    np.roll,
    roll_adjoint,
    at=[
        call(complex_(-1, 1, 2, 3), 2),
        call(real(-1, 1, 2, 3), -4, axis=1),
        call(real(-1, 1, 2, 3), (1, 2), (0, -1)),
        call(real(-1, 1, 2, 3), 1, axis=(0, 0)),
        call(real(-1, 1, 0), 1),
    ],
)


# --- elements repeated -----------------------------------------------------------------------------------------------


def broadcast_to_adjoint(y_bar: Any, array: Like, shape: Ints) -> Any:
    return unbroadcast(y_bar, array.shape)


def broadcast_arrays_body(*args: Any) -> tuple[Any, ...]:
    shape = np.broadcast_shapes(*map(np.shape, args))
    return tuple(np.broadcast_to(a, shape) for a in args)


def repeat_adjoint(y_bar: Any, a: Like, repeats: Ints, axis: int | None = None) -> Any:
    """Sum each element's copies, which lie side by side; with `axis=None`, of the flattened array."""
    shape, axis = along(a, axis)
    if np.size(repeats) == 1:
        count: Any = np.ravel(repeats)[0]
        side_by_side = np.reshape(y_bar, (*shape[: axis + 1], count, *shape[axis + 1 :]))
        return np.reshape(_sum_of_few(side_by_side, axis + 1), a.shape)
    sources: Any = np.repeat(np.arange(shape[axis]), repeats)
    return np.reshape(scatter(y_bar, (slice(None),) * axis + (sources,), shape), a.shape)


def _sum_of_few(x: Any, axis: int) -> Any:
    """`np.sum(x, axis)`, slice by slice where they are few: NumPy takes eighty times as long to sum pairs."""
    number = x.shape[axis]
    if not 0 < number <= _FEW:
        return np.sum(x, axis=axis)
    before = (slice(None),) * axis
    total = x[(*before, 0)] if number == 1 else x[(*before, 0)] + x[(*before, 1)]
    for i in range(2, number):
        total = total + x[(*before, i)]
    return total


_FEW = 8


def tile_adjoint(y_bar: Any, A: Like, reps: Any) -> Any:
    """Split each axis of y into (copies, length), and sum over the copies."""
    counts: Any = (reps,) if np.ndim(reps) == 0 else tuple(reps)
    ndim = max(len(counts), A.ndim)
    counts = (1,) * (ndim - len(counts)) + counts
    lengths = (1,) * (ndim - A.ndim) + A.shape
    split = [n for pair in zip(counts, lengths, strict=True) for n in pair]
    y_bar = np.reshape(y_bar, split)
    for i in reversed(range(ndim)):
        y_bar = _sum_of_few(y_bar, 2 * i)
    return np.reshape(y_bar, A.shape)


def resize_adjoint(y_bar: Any, a: Like, new_shape: Ints) -> Any:
    """The flattened `a` fills y again and again; the last time perhaps in part, which is completed with zeros."""
    if a.size == 0 or np.size(y_bar) == 0:
        return np.zeros(a.shape, a.dtype)
    y_bar = np.ravel(y_bar)
    rows = math.ceil(y_bar.size / a.size)
    whole = scatter(y_bar, slice(y_bar.size), (rows * a.size,))
    return np.reshape(np.sum(np.reshape(whole, (rows, a.size)), axis=0), a.shape)


linear(
    np.broadcast_to,
    broadcast_to_adjoint,
    at=[
        call(complex_(-1, 1, 3, 1), (2, 3, 2)),
        call(real(-1, 1), (2, 2)),
        call(real(-1, 1, 3), (3,)),
        call(real(-1, 1), 3),
        call(real(-1, 1, 1, 2), (0, 2)),
    ],
    of_array=at_shape,
)
composed(
    np.broadcast_arrays,
    broadcast_arrays_body,
    at=[call(complex_(-1, 1, 3, 1), real(-1, 1, 2), 1.5), call(real(-1, 1, 2)), call(real(-1, 1), real(-1, 1, 2, 1))],
)
linear(
    np.repeat,
    repeat_adjoint,
    at=[
        call(complex_(-1, 1, 2, 3), 2),
        call(real(-1, 1, 2, 3), 3, axis=1),
        call(real(-1, 1, 2, 3), [2, 0, 1], axis=-1),
        call(real(-1, 1, 2, 2), np.array([1, 0, 3, 2])),
        call(real(-1, 1, 2, 3), [2], axis=0),
        call(real(-1, 1), 3),
        call(real(-1, 1, 2), 0),
    ],
)
linear(
    np.tile,
    tile_adjoint,
    at=[
        call(complex_(-1, 1, 2, 3), 2),
        call(real(-1, 1, 2), (3, 2)),
        call(real(-1, 1, 2, 3, 2), [2, 1]),
        call(real(-1, 1), 3),
        call(real(-1, 1, 2, 3), (0, 2)),
        call(real(-1, 1, 2), ()),
    ],
)
linear(
    np.resize,
    resize_adjoint,
    at=[
        call(complex_(-1, 1, 2, 2), (3, 3)),
        call(real(-1, 1, 3), 2),
        call(real(-1, 1), (2, 2)),
        call(real(-1, 1, 2, 2), (2, 4)),
        call(real(-1, 1, 2), (0, 3)),
    ],
)


# --- trims, copies, casts --------------------------------------------------------------------------------------------


def trim_zeros_body(filt: Any, trim: str = "fb", axis: Axes = None) -> Any:
    """The slice between the first and the last value that is not zero; where the bounds are is not differentiated."""
    trim = trim.lower()
    if trim not in ("fb", "bf", "f", "b"):
        raise ValueError(f"unexpected character(s) in `trim`: {trim!r}")
    ndim = np.ndim(filt)
    axes = range(ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
    places: Any = np.nonzero(filt)
    key = [slice(None)] * ndim
    for each in axes:
        if places[each].size == 0:
            key[each] = slice(0, 0)
        else:
            start = places[each].min() if "f" in trim else None
            key[each] = slice(start, places[each].max() + 1 if "b" in trim else None)
    return filt[tuple(key)]


def copy_adjoint(y_bar: Any, a: Like, order: str = "K") -> Any:
    return y_bar


def astype_pullback(y: Any, x: Any, dtype: Any, /, *, copy: bool = True, device: str | None = None) -> Any:
    """The cast back is the engine's. Integers are reached by truncation, whose derivative is zero."""
    shape = None if _is_inexact(y) else np.shape(x)

    def pull(y_bar: Any) -> tuple[Any]:
        return (y_bar if shape is None else np.zeros(shape),)

    return pull


def astype_pushforward(y: Any, x: Any, dtype: Any, /, *, copy: bool = True, device: str | None = None) -> Any:
    shape, dtype = np.shape(y), y.dtype
    drops_imaginary = np.iscomplexobj(x) and not np.iscomplexobj(y)
    inexact = _is_inexact(y)

    def push(x_dot: Any) -> Any:
        if not inexact:
            return np.zeros(shape)
        return np.astype(np.real(x_dot) if drops_imaginary else x_dot, dtype)

    return push


def _is_inexact(x: Any) -> bool:
    return x.dtype.kind in "fc"


composed(
    np.trim_zeros,
    trim_zeros_body,
    at=[call(real(0.5, 1, 3)), call(real(0.5, 1, 3), "f"), call(complex_(0.5, 1, 2), trim="B")],
)
linear(np.copy, copy_adjoint, at=[call(complex_(-1, 1, 2, 3)), call(real(-1, 1, 2, 3), "F"), call(real(-1, 1))])
general(
    np.astype,
    pullback=astype_pullback,
    pushforward=astype_pushforward,
    at=[
        call(real(-1, 1, 2, 3), np.float64),
        call(real(-1, 1, 2, 3), "float64", copy=False),
        call(real(-1, 1, 2), np.complex128),
        call(complex_(-1, 1, 2), complex),
    ],
)


# --- windows ---------------------------------------------------------------------------------------------------------


@dispatched
def fold_windows(windows: Any, shape: tuple[int, ...], window_shape: Ints, axis: Axes = None) -> Any:
    """Zeros of `shape` with all overlapping windows added in their places: the adjoint of `sliding_window_view`.

    Through a window view of the result: the elements at one place in all windows are different elements of it, so
    that the loop goes over the places in one window, not over the windows.
    """
    z = np.zeros(shape, windows.dtype)
    view = sliding_window_view(z, window_shape, axis, writeable=True)
    for place in np.ndindex(view.shape[len(shape) :]):
        view[(Ellipsis, *place)] += windows[(Ellipsis, *place)]
    return z


def sliding_window_view_adjoint(y_bar: Any, x: Like, window_shape: Ints, axis: Axes = None) -> Any:
    return fold_windows(y_bar, x.shape, window_shape, axis)


def fold_windows_adjoint(
    y_bar: Any, windows: Like, shape: tuple[int, ...], window_shape: Ints, axis: Axes = None
) -> Any:
    return sliding_window_view(y_bar, window_shape, axis)


linear(
    sliding_window_view,
    sliding_window_view_adjoint,
    at=[
        call(complex_(-1, 1, 5), 3),
        call(real(-1, 1, 3, 4), (2, 2)),
        call(real(-1, 1, 3, 4), 2, axis=-1),
        call(real(-1, 1, 5), (2, 3), (0, 0)),
    ],
)
linear(
    fold_windows,
    fold_windows_adjoint,
    at=[call(complex_(-1, 1, 3, 3), (5,), 3), call(real(-1, 1, 2, 3, 2, 2), (3, 4), (2, 2))],
)
