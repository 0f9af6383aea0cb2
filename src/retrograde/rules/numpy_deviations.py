"""Variances of large arrays together with the deviations that their derivatives are made of.

NumPy makes the deviations and squares them where they stand. Made here instead, they are kept for the pullback, and
the squares are added up piece by piece while they are in the cache, in NumPy's own order: the value is NumPy's to the
last bit.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from retrograde.originals import np
from retrograde.rules.products import times
from retrograde.rules.table import Spendable

_LARGE = 2**18  # bytes
_PIECE = 2**15  # elements; with their squares they fit into the cache of a core


def is_one_line(a: Any, axis: Any, dtype: Any, freedom_lost: Any, keepdims: Any, where: Any) -> bool:
    """Whether all elements of a large array, which lie one after the other, are reduced to one number."""
    return (
        dtype is None
        and type(a) is np.ndarray
        and (axis is None or (a.ndim == 1 and type(axis) is int))
        and a.dtype in (np.float64, np.float32)
        and a.nbytes >= _LARGE
        and a.flags.c_contiguous
        and where is True
        and not keepdims
        and a.size > freedom_lost
        and is_added_in_pairs(a.dtype)
    )


def variance(a: Any, ddof: Any, factor: Any = None) -> tuple[Any, Any, Any]:
    """np.var(a, ddof=ddof) of what `is_one_line`, the mean, and the deviations from it, times `factor`."""
    n = np.intp(a.size)
    # As numpy._core._methods._var: the quotients are float64's, rounded once.
    mean = np.add.reduce(a, axis=None, keepdims=True)
    np.true_divide(mean, n, out=mean, casting="unsafe")
    deviations = np.empty_like(a)
    flat, line, number = deviations.reshape(-1), a.reshape(-1), mean.reshape(-1)
    squares = np.empty(_PIECE, a.dtype)

    def add(start: int, stop: int) -> Any:
        piece = np.subtract(line[start:stop], number, out=flat[start:stop])
        total = np.add.reduce(np.square(piece, out=squares[: stop - start]))
        if factor is not None:
            np.multiply(piece, factor, out=piece)
        return total

    total = _added_in_pairs(add, 0, a.size)
    return total.dtype.type(total / np.maximum(n - ddof, 0)), mean.flat[0], deviations


def _added_in_pairs(add: Callable[[int, int], Any], start: int, stop: int) -> Any:
    """The sum of the elements from `start` to `stop`, as NumPy adds a long line of them: the sum of two halves."""
    n = stop - start
    if n <= _PIECE:
        return add(start, stop)
    half = n // 2
    half -= half % 8
    return _added_in_pairs(add, start, start + half) + _added_in_pairs(add, start + half, stop)


@cache
def is_added_in_pairs(dtype: np.dtype[Any]) -> bool:
    """Whether this NumPy does so."""
    line = np.random.default_rng(0).random(5 * _PIECE + 777).astype(dtype)
    return bool(np.add.reduce(line) == _added_in_pairs(lambda i, j: np.add.reduce(line[i:j]), 0, line.size))


def scaled_pull(deviations: Any, factor: Any) -> Spendable:
    """The pull of a number whose derivative by the elements is `factor · deviations`."""

    def pull(y_bar: Any) -> Any:
        return (times(times(y_bar, factor), deviations),)

    def last(y_bar: Any) -> Any:
        number = times(y_bar, factor)
        if not isinstance(number, float | np.floating) or number == 0:
            return pull(y_bar)
        return (deviations if number == 1 else np.multiply(deviations, number, out=deviations),)

    return Spendable(pull, last)
