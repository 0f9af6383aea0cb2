"""Arithmetic on cotangents, as a careful sweep does it: zero times infinity is zero, and memory is used again.

Large arrays cost as much for the memory that they are written to as for the work. A cotangent or a partial that nobody
else holds is therefore overwritten by the product or the sum that it enters; the reference count says who holds it.
"""

from __future__ import annotations

from sys import getrefcount
from typing import Any

import numpy as np

from retrograde.rules.products import has_nan
from retrograde.rules.products import times as times_masked
from retrograde.trace.handle import HANDLES, plain

# Arrays of fewer bytes are not worth the look; NumPy's own expressions begin to reuse memory there.
_LARGE = 2**18


def times(x_bar: Any, partial: Any) -> Any:
    """`x_bar * partial`, where a zero of `x_bar` gives zero though the partial be infinite or NaN."""
    if type(partial) is np.ndarray and partial.nbytes >= _LARGE:
        return _large_product(x_bar, partial, getrefcount(partial) == _TEMPORARY)
    product = x_bar * partial
    return times_masked(x_bar, partial) if shows_nan(product) else product


def times_last(x_bar: Any, partial: Any) -> Any:
    """`times`, called where the caller's own name of the partial is used for the last time."""
    if type(partial) is np.ndarray and partial.nbytes >= _LARGE:
        return _large_product(x_bar, partial, getrefcount(partial) == _NAMED)
    product = x_bar * partial
    return times_masked(x_bar, partial) if shows_nan(product) else product


def _large_product(x_bar: Any, partial: np.ndarray[Any, Any], is_free: bool) -> Any:
    """`times` for a large partial, which is overwritten if it `is_free`."""
    if is_free and _is_like(x_bar, partial) and _is_own(partial):
        product = np.multiply(x_bar, partial, out=partial)
    else:
        product = x_bar * partial
    if _is_uniform(x_bar) and x_bar.flat[0] != 0:
        # The cotangent of a sum: there is no zero whose product could be NaN.
        return product
    return np.where(x_bar == 0, 0.0, product) if shows_nan(product) else product


def scaled(x_bar: Any, factor: float) -> Any:
    """`x_bar * factor`, called where the caller's own name of `x_bar` is used for the last time."""
    if type(x_bar) is np.ndarray and x_bar.nbytes >= _LARGE:
        if _is_uniform(x_bar):
            # A broadcast number stays one.
            return np.broadcast_to(x_bar.flat[0] * factor, x_bar.shape)
        if getrefcount(x_bar) == _NAMED and _is_own(x_bar):
            return np.multiply(x_bar, factor, out=x_bar)
    return -x_bar if factor == -1 else x_bar * factor


def deposit(cotangents: Any, index: int, x_bar: Any) -> None:
    """Add to the cotangent at `index`."""
    held = cotangents[index]
    if held is None:
        cotangents[index] = x_bar
        return
    if type(held) is np.ndarray and held.nbytes >= _LARGE and type(x_bar) is np.ndarray and _is_like(x_bar, held):
        if getrefcount(held) == _IN_SLOT and _is_own(held):
            np.add(held, x_bar, out=held)
            return
        if getrefcount(x_bar) == _TEMPORARY and _is_own(x_bar):
            cotangents[index] = np.add(held, x_bar, out=x_bar)
            return
    cotangents[index] = held + x_bar


def shows_nan(x: Any) -> bool:
    """Whether there is a NaN in a value, or in a tangent that an outer level of forward mode carries with it."""
    if type(x) in HANDLES:
        return shows_nan(x.primal) or (not x.level.records and shows_nan(x.link))
    return has_nan(x)


def conj(x: Any) -> Any:
    """The complex conjugate; what is real is returned as it is."""
    value = plain(x)
    return np.conj(x) if type(value) is not float and np.iscomplexobj(value) else x


def _is_uniform(x: Any) -> bool:
    """Whether an array is one number, broadcast."""
    return type(x) is np.ndarray and not any(x.strides)


def _is_own(x: np.ndarray[Any, Any]) -> bool:
    return x.base is None and x.flags.writeable


def _is_like(x: Any, y: np.ndarray[Any, Any]) -> bool:
    return type(x) is np.ndarray and x.shape == y.shape and x.dtype == y.dtype


# --- the reference counts of what nobody else holds, as this interpreter counts them ----------------------------------


def _count_temporary(x: Any) -> int:
    return getrefcount(x)


def _count_named() -> int:
    x = np.zeros(1)
    return _count_temporary(x)


def _count_in_slot(slots: list[Any]) -> int:
    held = slots[0]
    return getrefcount(held)


_TEMPORARY = _count_temporary(np.zeros(1) + 0)
_NAMED = _count_named()
_IN_SLOT = _count_in_slot([np.zeros(1)])
