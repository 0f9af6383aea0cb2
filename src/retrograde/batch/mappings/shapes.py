"""The same elements in another shape, in another order, more often or in part."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.lib.stride_tricks import sliding_window_view

from retrograde.batch.arguments import array, behind
from retrograde.batch.table import by_body, mapped
from retrograde.originals import np
from retrograde.rules.numpy_shape import fold_windows
from retrograde.trace.handle import contents


def _sizes(shape: Any) -> tuple[int, ...]:
    return tuple(shape) if isinstance(shape, tuple | list) else tuple(np.ravel(shape).tolist())


@mapped(np.reshape)
def _reshape(function: Any, level: Any, a: Any, shape: Any, order: Any = "C", *, copy: Any = None) -> Any:
    sizes = _sizes(shape)
    # Of no examples NumPy could not tell how long an axis of -1 is.
    sizes = np.broadcast_to(np.empty(()), a.shape).reshape(sizes).shape
    raw = a.primal
    if order in ("C", "c"):
        return np.reshape(raw, (level.size, *sizes))
    # In the order of columns the axis of the examples belongs behind the others.
    last = np.reshape(np.moveaxis(raw, 0, -1), (*sizes, level.size), order=order)
    return np.moveaxis(last, -1, 0)


@by_body(np.ravel)
def _ravel(function: Any, level: Any, a: Any, order: Any = "C") -> Any:
    """A view where the elements of one example lie side by side in that order, otherwise a copy, as NumPy's."""
    numbers = contents(a)
    flags = numbers[0].flags if numbers.size else numbers.flags
    flat = np.reshape(a, (a.size,), order=order)
    return flat if (flags.f_contiguous if order in ("F", "f") else flags.c_contiguous) else np.copy(flat)


@mapped(np.transpose)
def _transpose(function: Any, level: Any, a: Any, axes: Any = None) -> Any:
    if axes is None:
        axes = tuple(range(a.ndim))[::-1]
    return np.transpose(a.primal, (0, *behind(tuple(np.ravel(axes).tolist()), a.ndim)))


@mapped(np.matrix_transpose, np.linalg.matrix_transpose)
def _matrix_transpose(function: Any, level: Any, x: Any, /) -> Any:
    if x.ndim < 2:
        return function(np.zeros(x.shape))  # NumPy says what is wrong with it
    return np.swapaxes(x.primal, -1, -2)


@mapped(np.swapaxes)
def _swapaxes(function: Any, level: Any, a: Any, axis1: int, axis2: int) -> Any:
    return np.swapaxes(a.primal, behind(axis1, a.ndim), behind(axis2, a.ndim))


@mapped(np.moveaxis)
def _moveaxis(function: Any, level: Any, a: Any, source: Any, destination: Any) -> Any:
    return np.moveaxis(a.primal, behind(source, a.ndim), behind(destination, a.ndim))


@mapped(np.expand_dims)
def _expand_dims(function: Any, level: Any, a: Any, axis: Any) -> Any:
    axes = axis if isinstance(axis, tuple | list) else (axis,)
    return np.expand_dims(a.primal, behind(tuple(axes), a.ndim + len(axes)))


@mapped(np.squeeze)
def _squeeze(function: Any, level: Any, a: Any, axis: Any = None) -> Any:
    if axis is None:
        axis = tuple(i for i, n in enumerate(a.shape) if n == 1)
    elif not a.ndim:
        np.squeeze(np.zeros(()), axis)  # NumPy lets a number have the axis 0
        axis = ()
    return np.squeeze(a.primal, behind(axis, a.ndim))


@mapped(np.broadcast_to)
def _broadcast_to(function: Any, level: Any, array: Any, shape: Any, subok: bool = False) -> Any:
    sizes = _sizes(shape)
    return np.broadcast_to(level.aligned(array, len(sizes)), (level.size, *sizes))


@by_body(np.fliplr, np.flipud)
def _flip_one(function: Any, level: Any, m: Any) -> Any:
    return np.flip(m, 1 if function.__name__ == "fliplr" else 0)


@mapped(np.rot90)
def _rot90(function: Any, level: Any, m: Any, k: int = 1, axes: Any = (0, 1)) -> Any:
    return np.rot90(m.primal, k, behind(tuple(axes), m.ndim))


@mapped(np.tile)
def _tile(function: Any, level: Any, A: Any, reps: Any) -> Any:
    counts = (reps,) if np.ndim(reps) == 0 else tuple(reps)
    return np.tile(level.aligned(A, len(counts)), (1, *(1,) * (A.ndim - len(counts)), *counts))


@by_body(np.resize)
def _resize(function: Any, level: Any, a: Any, new_shape: Any) -> Any:
    sizes = _sizes(new_shape)
    places = np.resize(np.arange(a.size), sizes)
    return np.zeros(sizes, a.dtype) if a.size == 0 else np.take(np.ravel(a), places)


# --- diagonals and triangles -----------------------------------------------------------------------------------------


@mapped(np.tril, np.triu)
def _triangle(function: Any, level: Any, m: Any, k: int = 0) -> Any:
    return function(m.primal if m.ndim > 1 else np.broadcast_to(m.primal[:, None], (level.size, *m.shape * 2)), k)


@mapped(np.diagonal)
def _diagonal(function: Any, level: Any, a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    return np.diagonal(a.primal, offset, behind(axis1, a.ndim), behind(axis2, a.ndim))


@mapped(np.trace)
def _trace(
    function: Any, level: Any, a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None
) -> Any:
    return np.trace(a.primal, offset, behind(axis1, a.ndim), behind(axis2, a.ndim), dtype)


@by_body(np.linalg.trace)
def _linalg_trace(function: Any, level: Any, x: Any, /, *, offset: int = 0, dtype: Any = None) -> Any:
    return np.trace(x, offset, -2, -1, dtype)


@by_body(np.diag, np.diagflat)
def _diag(function: Any, level: Any, v: Any, k: int = 0) -> Any:
    is_diag = function.__name__ == "diag"  # the function itself may have another in its place
    if is_diag and v.ndim == 2:
        return np.diagonal(v, k)
    if is_diag and v.ndim != 1:
        raise ValueError("Input must be 1- or 2-d.")
    v = np.ravel(v)
    n = v.size + abs(k)
    i = np.arange(v.size) + max(-k, 0)
    from retrograde.rules.numpy_indexing import scatter

    return scatter(v, (i, np.arange(v.size) + max(k, 0)), (n, n))


# --- windows and parts -----------------------------------------------------------------------------------------------


@mapped(sliding_window_view)
def _windows(
    function: Any,
    level: Any,
    x: Any,
    window_shape: Any,
    axis: Any = None,
    *,
    subok: bool = False,
    writeable: bool = False,
) -> Any:
    axes = tuple(range(1, x.ndim + 1)) if axis is None else behind(axis, x.ndim)
    sizes = window_shape if isinstance(window_shape, tuple | list) else (window_shape,)
    return sliding_window_view(x.primal, tuple(sizes), axes if isinstance(axes, tuple) else (axes,))


@mapped(fold_windows)
def _fold(function: Any, level: Any, windows: Any, shape: Any, window_shape: Any, axis: Any = None) -> Any:
    axes = tuple(range(1, len(shape) + 1)) if axis is None else behind(axis, len(shape))
    sizes = window_shape if isinstance(window_shape, tuple | list) else (window_shape,)
    return fold_windows(
        windows.primal, (level.size, *shape), tuple(sizes), axes if isinstance(axes, tuple) else (axes,)
    )


def _split(axis: int | None) -> Callable[..., Any]:
    def compute(function: Any, level: Any, ary: Any, indices_or_sections: Any, axis: int | None = axis) -> Any:
        if axis is None:
            axis = 0 if ary.ndim == 1 else 1  # hsplit
        split = np.array_split if function.__name__ == "array_split" else np.split
        return split(ary.primal, indices_or_sections, behind(axis, ary.ndim))

    return compute


mapped(np.split, np.array_split, np.vsplit)(_split(0))
mapped(np.hsplit)(_split(None))
mapped(np.dsplit)(_split(2))


@by_body(np.unstack)
def _unstack(function: Any, level: Any, x: Any, /, *, axis: int = 0) -> Any:
    x = np.moveaxis(array(x), axis, 0)
    return tuple(x[i] for i in range(x.shape[0]))
