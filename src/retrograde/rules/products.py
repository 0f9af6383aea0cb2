"""Products that rules are written with: zero times infinity is zero, and sums that undo a broadcast."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def times(x_bar: Any, partial: Any) -> Any:
    """`x_bar * partial`, where a zero of `x_bar` gives zero though the partial be infinite or NaN.

    The masked product is made only when the plain one shows a NaN, since that is rare and the check is cheap.
    Broadcasts; differentiable in both arguments, since it is made of NumPy functions.
    """
    product = x_bar * partial
    if not has_nan(product):
        return product
    return np.multiply(x_bar, np.where(x_bar == 0, 0.0, partial))


def has_nan(x: Any) -> bool:
    """Whether any element is NaN."""
    if type(x) is float or type(x) is np.float64:
        return bool(x != x)
    if type(x) is np.ndarray and x.dtype.kind == "f" and x.flags.c_contiguous:
        # The squares sum to NaN exactly if there is one; several times cheaper than isnan and any.
        flat = x.reshape(-1)
        total = flat.dot(flat)
        return bool(total != total)
    return bool(np.any(np.isnan(x)))


def unbroadcast(x_bar: Any, shape: tuple[int, ...]) -> Any:
    """Sum a cotangent over the axes along which an argument of `shape` was broadcast."""
    have = np.shape(x_bar)
    if have == shape:
        return x_bar
    extra = len(have) - len(shape)
    axes = tuple(range(extra)) + tuple(extra + i for i, n in enumerate(shape) if n == 1 and have[extra + i] != 1)
    return np.reshape(np.sum(x_bar, axis=axes), shape)


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
