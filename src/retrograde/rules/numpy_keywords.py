"""Keywords with which NumPy could as well have been called in another way: each has a body that says in which.

A rule knows the arguments that its formula names and refuses the others. What stands here needs no formula: with
`np.concatenate(arrays, dtype=t)` the arrays are cast first, and `overwrite_input=True` is a permission, not an order.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from retrograde.errors import UnsupportedArgumentError
from retrograde.originals import np
from retrograde.rules.numpy_reductions import count, masked
from retrograde.rules.products import somewhere
from retrograde.rules.table import with_keyword

# --- what changes nothing --------------------------------------------------------------------------------------------


def _left_out(function: Callable[..., Any], name: str) -> None:
    def without_it(*args: Any, **kwargs: Any) -> Any:
        del kwargs[name]
        return function(*args, **kwargs)

    with_keyword(function, name, without_it)


# The input of the caller is never overwritten.
for _function in (np.median, np.nanmedian, np.quantile, np.nanquantile, np.percentile, np.nanpercentile):
    _left_out(_function, "overwrite_input")
# A traced value is of no subclass.
for _function in (np.broadcast_to, np.broadcast_arrays, np.copy, np.lib.stride_tricks.sliding_window_view):
    _left_out(_function, "subok")


def linspace_on(*args: Any, device: Any, **kwargs: Any) -> Any:
    if device != "cpu":
        raise ValueError(f'Device not understood. Only "cpu" is allowed, but received: {device}')
    return np.linspace(*args, **kwargs)


def windows_to_write(*args: Any, writeable: Any, **kwargs: Any) -> Any:
    if writeable:
        raise UnsupportedArgumentError(
            "the derivative of np.lib.stride_tricks.sliding_window_view does not know the argument writeable=True: "
            "one element stands in several windows",
            "write into the array itself",
        )
    return np.lib.stride_tricks.sliding_window_view(*args, **kwargs)


with_keyword(np.linspace, "device", linspace_on)
with_keyword(np.lib.stride_tricks.sliding_window_view, "writeable", windows_to_write)

# --- dtype=, where NumPy casts before it computes, or after -----------------------------------------------------------


def _cast(x: Any, dtype: Any) -> Any:
    return x.astype(dtype) if hasattr(x, "astype") else np.asarray(x, dtype)


def _of_cast(function: Callable[..., Any]) -> None:
    def of_cast(a: Any, *args: Any, dtype: Any, **kwargs: Any) -> Any:
        return function(_cast(a, dtype), *args, **kwargs)

    with_keyword(function, "dtype", of_cast)


for _ufunc in (np.maximum, np.minimum, np.fmax, np.fmin, np.logaddexp):
    _of_cast(_ufunc.reduce)
    _of_cast(_ufunc.accumulate)
for _function in (np.add.reduceat, np.multiply.reduceat, np.trace, np.linalg.trace):
    _of_cast(_function)


def _of_cast_members(function: Callable[..., Any]) -> None:
    def of_cast_members(arrays: Any, *args: Any, dtype: Any = None, casting: str = "same_kind", **kwargs: Any) -> Any:
        arrays = [x if hasattr(x, "dtype") else np.asarray(x) for x in arrays]
        wanted = np.result_type(*(x.dtype for x in arrays)) if dtype is None else np.dtype(dtype)
        for x in arrays:
            if not np.can_cast(x.dtype, wanted, casting):
                raise TypeError(
                    f"Cannot cast array data from {x.dtype!r} to {wanted!r} according to the rule {casting!r}"
                )
        return function([_cast(x, wanted) for x in arrays], *args, **kwargs)

    with_keyword(function, "dtype", of_cast_members)
    with_keyword(function, "casting", of_cast_members)


for _function in (np.concatenate, np.stack, np.hstack, np.vstack):
    _of_cast_members(_function)


def _cast_after(function: Callable[..., Any]) -> None:
    def cast_after(*args: Any, dtype: Any, **kwargs: Any) -> Any:
        y = function(*args, **kwargs)
        return (_cast(y[0], dtype), *y[1:]) if isinstance(y, tuple) else _cast(y, dtype)

    with_keyword(function, "dtype", cast_after)


for _function in (np.linspace, np.logspace, np.geomspace):
    _cast_after(_function)


def _of_cast_variables(function: Callable[..., Any]) -> None:
    def of_cast_variables(m: Any, y: Any = None, *args: Any, dtype: Any, **kwargs: Any) -> Any:
        return _cast(function(_cast(m, dtype), None if y is None else _cast(y, dtype), *args, **kwargs), dtype)

    with_keyword(function, "dtype", of_cast_variables)


_of_cast_variables(np.cov)
_of_cast_variables(np.corrcoef)

# --- axes ------------------------------------------------------------------------------------------------------------


def vecdot_keeping(x1: Any, x2: Any, *, keepdims: Any, axis: int = -1) -> Any:
    y = np.vecdot(x1, x2, axis=axis)
    return np.expand_dims(y, axis) if keepdims else y


with_keyword(np.vecdot, "keepdims", vecdot_keeping)

# --- variances about a mean that is given -----------------------------------------------------------------------------
#
# Then the mean is an argument like others, in which the slope is zero at the mean of the elements.


def _with_mean(function: Callable[..., Any], of: Callable[..., tuple[Any, Any]]) -> None:
    """Let `mean=` be an argument of a variance or its root: `of` gives the total and what it is divided by."""

    def about_mean(
        a: Any,
        axis: Any = None,
        dtype: Any = None,
        *,
        ddof: Any = 0,
        keepdims: Any = False,
        where: Any = True,
        mean: Any,
        correction: Any = None,
    ) -> Any:
        deviations, freedom = _about(mean, a, axis, ddof, where, correction)
        return _over(*of(deviations, freedom, axis, dtype), a, axis, keepdims)

    with_keyword(function, "mean", about_mean)


def _squares(deviations: Any, freedom: Any, axis: Any, dtype: Any) -> tuple[Any, Any]:
    squares = np.square(deviations)
    if np.iscomplexobj(deviations):
        squares = np.square(np.real(deviations)) + np.square(np.imag(deviations))
    return np.sum(squares, axis=axis, dtype=dtype, keepdims=True), freedom


def _length(deviations: Any, freedom: Any, axis: Any, dtype: Any) -> tuple[Any, Any]:
    """A length over the root of the freedom: so it has the slope 0 where it is zero, as other lengths have."""
    if dtype is not None:
        deviations = _cast(deviations, dtype)
    return np.linalg.vector_norm(deviations, axis=axis, keepdims=True), np.sqrt(freedom)


def _about(mean: Any, a: Any, axis: Any, ddof: Any, where: Any, correction: Any) -> tuple[Any, Any]:
    """The deviations from a mean, and the degrees of freedom."""
    if correction is not None and correction is not np._NoValue:  # type: ignore[attr-defined]
        if ddof != 0:
            raise ValueError("ddof and correction can't be provided simultaneously.")
        ddof = correction
    if where is None or where is np._NoValue:  # type: ignore[attr-defined]
        where = True
    freedom = count(np.shape(a), axis, where) - ddof
    if somewhere(np.less_equal(freedom, 0)):
        warnings.warn("Degrees of freedom <= 0 for slice", RuntimeWarning, stacklevel=3)
    return masked(np.subtract(a, mean), where), np.maximum(freedom, 0)


def _over(total: Any, divisor: Any, a: Any, axis: Any, keepdims: Any) -> Any:
    """The quotient, in the dtype of the total and the shape of a reduction of `a`; the total has the reduced axes."""
    y = np.true_divide(total, np.asarray(divisor, np.finfo(total.dtype).dtype))
    y = y if keepdims is True else np.squeeze(y, axis=axis)
    return y if np.ndim(y) else y[()]


_with_mean(np.var, _squares)
_with_mean(np.std, _length)
