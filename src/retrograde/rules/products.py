"""Products that rules are written with: zero times infinity is zero, and sums that undo a broadcast."""

from __future__ import annotations

import math
from typing import Any

from numpy import float64, ndarray

from retrograde.originals import np
from retrograde.rules.dispatching import dispatched


def times(x_bar: Any, partial: Any) -> Any:
    """`x_bar * partial`, where a zero of `x_bar` gives zero though the partial be infinite or NaN.

    The masked product is made only when the plain one shows a NaN, since that is rare and the check is cheap.
    Broadcasts; differentiable in both arguments, since it is made of NumPy functions.
    """
    if (type(x_bar) is float or type(x_bar) is np.float64) and x_bar != 0:
        # The cotangent of a loss is one.
        is_one = x_bar == 1 and getattr(partial, "dtype", None) == np.float64
        return partial if is_one else x_bar * partial
    product = x_bar * partial
    if type(x_bar) is np.ndarray and 8 * x_bar.size < np.size(product) and np.all(x_bar):
        # One cotangent for many elements, as that of a reduction: the check is made where there are fewer.
        return product
    if not has_nan(product):
        return product
    return along(x_bar, partial)


@dispatched
def along(x: Any, ratio: Any) -> Any:
    """x · ratio, and 0 where x is 0, though the ratio be infinite or NaN there; in its derivatives it stays so.

    A zero that a constant mask put in the ratio's place would also be its derivative by x, and silently wrong: of
    √(s²) there, for example. (Its rule is in `lengths`.)
    """
    return np.multiply(x, np.where(x == 0, 0.0, ratio))


def times_own(x_bar: Any, partial: Any) -> Any:
    """`times`, for a partial that the formula has made itself and does not need any more: it is written over."""
    if (
        type(partial) is not np.ndarray
        or partial.nbytes < _LARGE
        or (type(x_bar) is not np.ndarray and not isinstance(x_bar, float))
        or np.result_type(x_bar) != partial.dtype
        or np.broadcast_shapes(np.shape(x_bar), partial.shape) != partial.shape
    ):
        return times(x_bar, partial)
    product = np.multiply(x_bar, partial, out=partial)
    if (np.size(x_bar) < product.size and np.all(x_bar)) or not has_nan(product):
        return product
    return np.where(x_bar == 0, 0.0, product)


def selected(x_bar: Any, condition: Any) -> Any:
    """`np.where(condition, x_bar, 0)`; broadcasts.

    NumPy branches at every element, so that for a mask without a pattern the product is five times as fast. It needs a
    cotangent without infinities and NaN, and its zeros may be negative, which a large array hides.
    """
    if (
        type(x_bar) is np.ndarray
        and x_bar.nbytes >= _LARGE
        and x_bar.dtype.kind == "f"
        and type(condition) is np.ndarray
        and condition.dtype == bool
        and is_finite(x_bar)
    ):
        return x_bar * condition
    return np.where(condition, x_bar, 0)


_LARGE = 2**18  # bytes


def over(x_bar: Any, divisor: Any) -> Any:
    """`x_bar / divisor`, infinite or NaN at zero also for Python floats, of which the operator alone would raise.

    `np.divide` always gives that, but costs a Python float twenty times as much.
    """
    try:
        return x_bar / divisor
    except ZeroDivisionError:
        return np.divide(x_bar, divisor)


def has_nan(x: Any) -> bool:
    """Whether any element is NaN."""
    kind = type(x)
    if kind is float or kind is float64:
        return bool(x != x)
    if kind is not ndarray:
        x = everything(x)
    if type(x) is ndarray and x.dtype.kind == "f" and x.flags.c_contiguous:
        # The squares sum to NaN exactly if there is one; several times cheaper than isnan and any.
        flat = x.reshape(-1)
        total = flat.dot(flat)
        return bool(total != total)
    return somewhere(np.isnan(x))


def somewhere(mask: Any) -> bool:
    """Whether a mask is true anywhere: for a decision that a formula takes for all of a batch at once."""
    return bool(np.any(everything(mask)))


def everywhere(mask: Any) -> bool:
    """Whether a mask is true everywhere, likewise."""
    return bool(np.all(everything(mask)))


def everything(x: Any) -> Any:
    """The bare numbers of `x`, those of all examples where it is batched."""
    if issubclass(type(x), np.ndarray) or not hasattr(x, "__array_function__"):
        return x
    return x.__array_function__(everything, (type(x),), (x,), {})


def is_finite(x: Any) -> bool:
    """Whether a large array surely has no infinite and no NaN element; with very large ones it may say no."""
    if x.dtype.kind == "f" and x.flags.c_contiguous:
        flat = x.reshape(-1)
        return math.isfinite(flat.dot(flat))
    return bool(np.all(np.isfinite(x)))


def unbroadcast(x_bar: Any, shape: tuple[int, ...]) -> Any:
    """Sum a cotangent over the axes along which an argument of `shape` was broadcast."""
    have = x_bar.shape if type(x_bar) is ndarray else np.shape(x_bar)
    if have == shape:
        return x_bar
    extra = len(have) - len(shape)
    axes = [*range(extra)]
    for i, n in enumerate(shape):
        if n == 1 and have[extra + i] != 1:
            axes.append(extra + i)
    # (The method of the ufunc, without NumPy's Python code around it.)
    total = np.add.reduce(x_bar, axis=tuple(axes)) if type(x_bar) is ndarray else np.sum(x_bar, axis=tuple(axes))
    return reshaped(total, shape)


def at_shape(x: Any, shape: Any) -> Any:
    """`np.broadcast_to(x, shape)`, made at once where `x` lies in memory in order."""
    if type(x) is not ndarray or type(shape) is not tuple or not x.flags.c_contiguous or not x.size:
        return np.broadcast_to(x, shape)
    extra = len(shape) - x.ndim
    if extra < 0:
        return np.broadcast_to(x, shape)  # which refuses it, as below
    strides = [0] * extra
    for n, stride, wanted in zip(x.shape, x.strides, shape[extra:], strict=True):
        if n != 1 and n != wanted:
            return np.broadcast_to(x, shape)
        strides.append(0 if n == 1 else stride)
    view: Any = ndarray(shape, x.dtype, x, 0, strides)
    view.flags.writeable = False
    return view


def reshaped(x: Any, shape: tuple[int, ...]) -> Any:
    """`np.reshape(x, shape)`, asked only where the shape is another one."""
    return x if type(x) is np.ndarray and x.shape == shape else np.reshape(x, shape)


def shape_of(x: Any) -> Any:
    """`np.shape(x)`, which is not asked for arrays."""
    return x.shape if type(x) is np.ndarray else np.shape(x)


def size_of(shape: tuple[int, ...], axis: Any) -> int:
    """The number of elements along `axis` (None, an integer or a tuple) of an array of `shape`."""
    axes = range(len(shape)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    return math.prod(shape[i] for i in axes)


def conj(x: Any) -> Any:
    """The complex conjugate; a real array is returned as it is, without the copy that `np.conj` makes."""
    return np.conj(x) if np.iscomplexobj(x) else x


def transpose(a: Any) -> Any:
    """The matrix transpose: the last two axes swapped."""
    return np.swapaxes(a, -1, -2)


def hermitian(a: Any) -> Any:
    """The conjugate matrix transpose."""
    return conj(transpose(a))
