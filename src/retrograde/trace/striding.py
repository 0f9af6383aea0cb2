"""Views of any shape and strides: `as_strided` of a traced array."""

from __future__ import annotations

from typing import Any

from numpy.lib.stride_tricks import as_strided

from retrograde.errors import BatchError, UnsupportedArgumentError
from retrograde.originals import np
from retrograde.trace.handle import HANDLES, MAPPED, Traced, plain
from retrograde.trace.indexing import read_at
from retrograde.trace.views import View, view_of


def strided(x: Traced, shape: Any = None, strides: Any = None, first: int = 0) -> Any:
    """`as_strided(x, shape, strides)`, of the elements that `x` has; read-only if some of them stand in two places.

    Of a view it may reach the other elements of the array that `x` is a part of.

    Args:
        first: where it starts, in bytes from the first element of `x`.

    Raises:
        BatchError: `x` is a value of a batch.
        UnsupportedArgumentError: there would be memory in it that belongs to another array.
    """
    array = plain(x)
    if type(array) in MAPPED:
        raise BatchError(
            "as_strided cannot be mapped over a batch: its strides are those of one example's memory",
            "np.lib.stride_tricks.sliding_window_view, or slices",
            "np.stack([f(x) for x in xs]), a loop over the examples in place of vmap",
        )
    shape = array.shape if shape is None else tuple(np.atleast_1d(shape).tolist())
    strides = array.strides if strides is None else tuple(np.atleast_1d(strides).tolist())
    places = _places(array, shape, strides, first)
    if places is None:
        if type(x) is View:
            return strided(x.base, shape, strides, _address(plain(x.memory)) - _address(plain(x.base)))
        raise UnsupportedArgumentError(
            f"as_strided(x, {shape}, {strides}) reaches memory that is not in x, which has the shape {array.shape} and "
            f"the strides {array.strides}",
            "np.lib.stride_tricks.sliding_window_view, or slices",
        )
    start = tuple(slice(i, None) for i in np.unravel_index(places.flat[0], array.shape)) if first else ...
    writeable = np.unique(places).size == places.size

    def step(v: Any) -> Any:
        if type(v) in HANDLES:
            return strided(v, shape, strides, first)
        if type(v) is np.ndarray and (v.strides, v.itemsize) == (array_strides, itemsize):
            return as_strided(v[start], shape, strides, writeable=writeable and v.flags.writeable)
        # Another array of the same shape lies in memory in another way: its elements, in their places.
        return np.reshape(v, -1)[places]

    array_strides, itemsize = array.strides, array.itemsize
    del array
    path, base = (x.path, x.base) if type(x) is View else ((), x)
    return view_of(x, step, lambda: read_at(base, (*path, step), ..., step(x.memory)))


def _places(
    array: np.ndarray[Any, Any], shape: tuple[int, ...], strides: tuple[int, ...], first: int
) -> np.ndarray[Any, Any] | None:
    """The positions in the flattened `array` of the elements of the view; None where some are not in it."""
    have = _offsets(array.shape, array.strides).reshape(-1)
    want = _offsets(shape, strides) + first
    order = np.argsort(have, kind="stable")
    found = np.searchsorted(have[order], want)
    if np.any(found >= have.size) or np.any(have[order][np.minimum(found, have.size - 1)] != want):
        return None
    return order[found]


def _address(array: np.ndarray[Any, Any]) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


def _offsets(shape: tuple[int, ...], strides: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Where the elements of an array of this shape lie, in bytes from the first."""
    offsets = np.zeros(shape, np.int64)
    for axis, (n, stride) in enumerate(zip(shape, strides, strict=True)):
        offsets += (stride * np.arange(n)).reshape(-1, *(1,) * (len(shape) - 1 - axis))
    return offsets


__all__ = ["strided"]
