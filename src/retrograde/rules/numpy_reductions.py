"""Derivatives of NumPy's reductions: sums, means, products, extremes, and `np.logaddexp.reduce`.

A pullback views its cotangent at the shape of the argument (`spread`) or with the reduced axes kept (`kept`); a
pushforward sums over the reduced axes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from numpy import zeros
from numpy.lib.array_utils import normalize_axis_tuple

from retrograde.originals import np
from retrograde.rules.numpy_indexing import scatter
from retrograde.rules.numpy_shares import shares
from retrograde.rules.points import call, complex_, distinct, real
from retrograde.rules.products import at_shape, conj, everything, everywhere, has_nan, times
from retrograde.rules.table import Like, composed, general, linear

_MASK = np.array([[True, False, True], [False, True, True]])


def spread(y_bar: Any, shape: tuple[int, ...], axis: Any = None, keepdims: Any = False) -> Any:
    """View what a reduction of `shape` over `axis` has left at that shape, without a copy."""
    if type(y_bar) is float or type(y_bar) is np.float64:
        # np.broadcast_to in an eighth of its time, for the cotangent of a loss. A scalar's buffer is read-only.
        return np.ndarray(shape, np.float64, np.float64(y_bar), 0, (0,) * len(shape))
    # NumPy lets what has no axes be reduced over the first or the last.
    return at_shape(kept(y_bar, axis, keepdims), shape) if shape else y_bar


def kept(y: Any, axis: Any, keepdims: Any = False) -> Any:
    """A result with the reduced axes kept, so that it broadcasts against the argument."""
    if axis is None or keepdims or type(y) is float:
        return y
    if type(axis) is int:
        index = (slice(None),) * axis + (None,) if axis >= 0 else (..., None) + (slice(None),) * (-1 - axis)
        return y[index]
    return np.expand_dims(y, axis)


def over(a: Any, axis: Any) -> Any:
    """The axis of a reduction of `a`: NumPy lets a 0-d array be reduced over axis 0 and -1, as over all it has."""
    return axis if (a.ndim if type(a) is np.ndarray else np.ndim(a)) else None


def split_axes(ndim: int, axis: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The axes that a reduction over `axis` leaves, and those that it removes."""
    removed = tuple(range(ndim)) if axis is None else tuple(sorted(normalize_axis_tuple(axis, ndim)))
    return tuple(i for i in range(ndim) if i not in removed), removed


def rows(a: Any, axis: Any) -> Any:
    """A matrix with the elements of one reduction in each row."""
    shape = np.shape(a)
    left, removed = split_axes(len(shape), axis)
    return np.reshape(
        np.transpose(a, left + removed), (math.prod(shape[i] for i in left), math.prod(shape[i] for i in removed))
    )


def from_rows(matrix: Any, shape: tuple[int, ...], axis: Any) -> Any:
    """Undo `rows`, for an array of `shape`."""
    left, removed = split_axes(len(shape), axis)
    order = left + removed
    array = np.reshape(matrix, tuple(shape[i] for i in order))
    return np.transpose(array, tuple(order.index(i) for i in range(len(shape))))


def count(shape: tuple[int, ...], axis: Any, where: Any = True) -> Any:
    """How many elements a result of a reduction is made of; with a mask, for each result, the reduced axes kept."""
    if where is True:
        if axis is None:
            return math.prod(shape)
        return math.prod(shape[i] for i in axis) if isinstance(axis, tuple) else shape[axis]
    return np.sum(np.broadcast_to(where, shape), axis=axis, keepdims=True, dtype=float)


def masked(x: Any, where: Any) -> Any:
    """`x`, with zeros where an element takes no part in the reduction."""
    return x if where is True else np.where(where, x, 0)


def for_method(formula: Callable[..., Any]) -> Callable[..., Any]:
    """A formula of `np.sum` as one of `np.add.reduce`, which calls its argument `array` and reduces axis 0."""

    def method(
        y: Any,
        array: Any,
        axis: Any = 0,
        dtype: Any = None,
        *,
        keepdims: Any = False,
        initial: Any = None,
        where: Any = True,
    ) -> Any:
        return formula(y, array, axis, dtype, keepdims=keepdims, initial=initial, where=where)

    return method


def of_array(ufunc: np.ufunc) -> Callable[..., Any]:
    """`np.sum` and the like of a plain array: what it comes to when NumPy has looked at all that could be given."""
    reduce = ufunc.reduce

    def reduction(a: Any, axis: Any = None, dtype: Any = None, **kwargs: Any) -> Any:
        return reduce(a, axis, dtype, None, **kwargs)

    return reduction


# --- sum and mean ----------------------------------------------------------------------------------------------------
#
# A sum is `general`, not `linear`, since with `initial` it is only affine.


def sum_pullback(
    y: Any,
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    *,
    keepdims: Any = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    shape = a.shape if type(a) is np.ndarray else np.shape(a)

    def pull_sum(y_bar: Any) -> Any:
        a_bar = spread(y_bar, shape, axis, keepdims)
        return (a_bar if where is True else masked(a_bar, where),)

    return pull_sum


def sum_pushforward(
    y: Any,
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    *,
    keepdims: Any = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    def push_sum(a_dot: Any) -> Any:
        return np.sum(a_dot, axis=axis, dtype=dtype, keepdims=keepdims, where=where)

    return push_sum


_ALONG = [
    call(real(-1, 1, 2, 3), axis=0),
    call(real(-1, 1, 2, 3), -1, keepdims=True),
    call(real(-1, 1, 2, 3, 2), axis=-2),
    call(real(-1, 1, 2, 3, 2), axis=(0, -1)),
    call(real(-1, 1, 2, 3, 2), axis=(2, 0), keepdims=True),
    call(real(-1, 1, 2, 3), axis=(), where=_MASK),
    call(real(-1, 1, 2, 3), axis=1, where=_MASK, initial=2.0),
    call(real(-1, 1, 2, 3), axis=None, keepdims=True, where=np.array([True, False, True])),
    call(real(-1, 1, 0, 3), axis=0),
    call(complex_(-1, 1, 2, 3), axis=1),
    call(complex_(-1, 1, 2, 3, 2), axis=(0, 2), keepdims=True),
]
_WHOLE = [call(real(-1, 1, 2, 3)), call(real(-1, 1)), call(real(-1, 1, 2, 3), initial=3.0), call(complex_(-1, 1, 2))]

general(
    np.sum,
    pullback=sum_pullback,
    pushforward=sum_pushforward,
    at=[*_WHOLE, *_ALONG, call(real(-1, 1, 2, 3), axis=0, dtype=complex)],
    shows=True,
    of_array=of_array(np.add),
)
general(np.add.reduce, pullback=for_method(sum_pullback), pushforward=for_method(sum_pushforward), at=_ALONG)


def mean_adjoint(
    y_bar: Any, a: Like, axis: Any = None, dtype: Any = None, *, keepdims: Any = False, where: Any = True
) -> Any:
    n = count(a.shape, axis, where)
    if where is True:
        return spread(y_bar / max(n, 1), a.shape, axis, keepdims)
    return masked(kept(y_bar, axis, keepdims) / np.maximum(n, 1), np.broadcast_to(where, a.shape))


_MEANS = [
    call(real(-1, 1, 2, 3)),
    call(real(-1, 1, 2, 3), axis=0),
    call(real(-1, 1, 2, 3), axis=-1, keepdims=True),
    call(real(-1, 1, 2, 3, 2), axis=(0, -1)),
    call(real(-1, 1, 2, 3), axis=1, where=_MASK),
    call(real(-1, 1, 2, 3), where=_MASK[0], keepdims=True),
    call(complex_(-1, 1, 2, 3), axis=0),
]

linear(np.mean, mean_adjoint, at=[*_MEANS, call(real(-1, 1)), call(real(-1, 1, 2, 3), dtype=complex)], shows=True)


# --- product ---------------------------------------------------------------------------------------------------------


def prod_pullback(
    y: Any,
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    *,
    keepdims: Any = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    axis = over(a, axis)

    def pull_prod(y_bar: Any) -> Any:
        others = _products_of_others(y, a, axis, keepdims, initial, where)
        return (masked(times(kept(y_bar, axis, keepdims), conj(others)), where),)

    return pull_prod


def prod_pushforward(
    y: Any,
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    *,
    keepdims: Any = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    axis = over(a, axis)

    def push_prod(a_dot: Any) -> Any:
        others = _products_of_others(y, a, axis, keepdims, initial, where)
        return np.sum(masked(times(a_dot, others), where), axis=axis, keepdims=keepdims)

    return push_prod


def _products_of_others(y: Any, a: Any, axis: Any, keepdims: Any, initial: Any, where: Any) -> Any:
    """∂y/∂a of a product: for each element the product of all the others.

    y/a is that product where no factor is zero and nothing under- or overflowed. It is used on plain arrays only:
    its derivative by the element itself, which is zero, would come out as a difference of two large numbers. The
    products of what stands before and of what stands after an element are exact, and so are their derivatives.
    """
    shape = np.shape(a)
    if where is not True:
        a = np.where(where, a, 1)
    if is_plain(a) and is_plain(y) and is_normal(y):
        return kept(y, axis, keepdims) / a
    if 0 in shape:
        return np.zeros(shape)
    x = rows(a, axis)
    one = np.ones((x.shape[0], 1), x.dtype)
    before = np.cumprod(np.concatenate([one, x[:, :-1]], axis=1), axis=1)
    after = np.cumprod(np.concatenate([one, x[:, :0:-1]], axis=1), axis=1)[:, ::-1]
    others = from_rows(before * after, shape, axis)
    return others if initial is None else others * initial


def is_plain(x: Any) -> bool:
    """Whether `x` is NumPy's own, so that nothing is going to differentiate what is done with it."""
    # Not isinstance, which asks a traced value for its class.
    return type(x) is np.ndarray or issubclass(type(x), np.generic | int | float | complex)


def is_nowhere_zero(x: Any) -> bool:
    """Whether no element is zero."""
    if type(x) is np.ndarray and x.dtype.kind == "f" and x.size and np.min(x) > 0:
        return True  # what is positive throughout shows it in a fifth of the time
    return bool(np.all(x))


def is_normal(x: Any) -> bool:
    """Whether no element is zero, subnormal, infinite or NaN."""
    x = np.asarray(x)
    if not x.size:
        return True
    tiny = np.finfo(x.dtype).tiny if x.dtype.kind in "fc" else 1
    if x.dtype.kind == "c":
        x = np.abs(x)
    least, most = np.min(x), np.max(x)
    if not (-math.inf < least and most < math.inf):
        return False
    if least >= tiny or most <= -tiny:
        return True
    if least >= 0 or most <= 0:
        return False
    # In pieces, which stay in the cache.
    pieces = np.array_split(x.reshape(-1), -(-x.size // _PIECE)) if x.flags.c_contiguous else [x]
    return all(np.min(np.abs(piece)) >= tiny for piece in pieces)


_PIECE = 2**15  # elements


general(
    np.prod,
    pullback=prod_pullback,
    pushforward=prod_pushforward,
    at=[*_WHOLE, *_ALONG],
    of_array=of_array(np.multiply),
)
general(np.multiply.reduce, pullback=for_method(prod_pullback), pushforward=for_method(prod_pushforward), at=_ALONG)


# --- extremes --------------------------------------------------------------------------------------------------------


def extreme_pullback(
    y: Any, a: Any, axis: Any = None, *, keepdims: Any = False, initial: Any = None, where: Any = True
) -> Any:
    """Elements that tie for the extreme share its cotangent equally; `initial` counts as one of them."""
    axis = over(a, axis)

    def pull_extreme(y_bar: Any) -> Any:
        tied, number = _ties(kept(y, axis, keepdims), a, axis, initial, where)
        bar = kept(y_bar, axis, keepdims)
        if tied.size < _LARGE or number is not ONE_EACH or not is_plain(tied):
            return (np.where(tied, bar / number, 0),)
        return (_put_at(tied, bar, axis),)

    return pull_extreme


def _put_at(mask: np.ndarray[Any, Any], bar: Any, axis: Any) -> Any:
    """`np.where(mask, bar, 0)` for a mask with one element in each reduction, whose places are found quickly."""
    axes = axis if isinstance(axis, tuple) else (axis,)
    if not is_plain(bar) or len(axes) > 1:
        places = np.flatnonzero(mask)
        values = np.broadcast_to(bar, mask.shape)[np.unravel_index(places, mask.shape)]
        return np.reshape(scatter(values, places, (mask.size,)), mask.shape)
    x_bar = zeros(mask.shape, bar.dtype if type(bar) is np.ndarray else np.result_type(bar))
    if axis is None:
        place = np.argmax(mask)
        x_bar.reshape(-1)[place : place + 1] = np.reshape(bar, -1)
    elif axes[0] in (-1, mask.ndim - 1):
        # One in each row, so that they come in the order of the results.
        x_bar.reshape(-1)[mask.reshape(-1).nonzero()[0]] = bar.reshape(-1)
    else:
        np.put_along_axis(x_bar, np.argmax(mask, axis=axes[0], keepdims=True), bar, axes[0])
    return x_bar


def extreme_pushforward(
    y: Any, a: Any, axis: Any = None, *, keepdims: Any = False, initial: Any = None, where: Any = True
) -> Any:
    axis = over(a, axis)

    def push_extreme(a_dot: Any) -> Any:
        tied, number = _ties(kept(y, axis, keepdims), a, axis, initial, where)
        return np.sum(np.where(tied, a_dot, 0) / number, axis=axis, keepdims=keepdims)

    return push_extreme


def _ties(y: Any, a: Any, axis: Any, initial: Any, where: Any) -> tuple[Any, Any]:
    """Where elements equal their extreme, and how many they are (one number, or the reduced axes kept)."""
    tied = a == y
    if where is not True:
        tied = tied & where
    if initial is None and not has_nan(y):
        # Each result has its element, but for a NaN.
        if type(tied) is np.ndarray and type(y) is np.ndarray:
            number, results = int(np.count_nonzero(tied)), y.size
        else:
            number, results = int(np.count_nonzero(everything(tied))), np.size(everything(y))
        if number == results:
            return tied, ONE_EACH  # so none has two: the usual case
        if results == 1:
            return tied, number
    return tied, np.maximum(np.sum(tied, axis=axis, keepdims=True) + (False if initial is None else y == initial), 1)


ONE_EACH = 1
_LARGE = 2**15  # elements


def for_extreme_method(formula: Callable[..., Any]) -> Callable[..., Any]:
    """A formula of `np.max` as one of `np.maximum.reduce`."""

    def method(
        y: Any, array: Any, axis: Any = 0, *, keepdims: Any = False, initial: Any = None, where: Any = True
    ) -> Any:
        return formula(y, array, axis, keepdims=keepdims, initial=initial, where=where)

    return method


_EXTREMES = [
    call(distinct(-1, 1, 2, 3), axis=0),
    call(distinct(-1, 1, 2, 3), axis=-1, keepdims=True),
    call(distinct(-1, 1, 2, 3, 2), axis=(0, -1)),
    call(distinct(-1, 1, 2, 3), axis=1, where=_MASK, initial=0.0),
    call(distinct(-1, 1, 2, 3), axis=None, keepdims=True, initial=0.0),
]
_EXTREME = [call(distinct(-1, 1, 2, 3)), call(distinct(-1, 1))]

for _function, _ufunc in (
    (np.max, np.maximum),
    (np.amax, np.maximum),
    (np.min, np.minimum),
    (np.amin, np.minimum),
    (np.nanmax, None),
    (np.nanmin, None),
):
    # A NaN equals nothing, so that what the last two skip gets nothing.
    general(
        _function,
        pullback=extreme_pullback,
        pushforward=extreme_pushforward,
        at=[*_EXTREME, *_EXTREMES],
        of_array=of_array(_ufunc) if _ufunc else None,
    )
for _ufunc in (np.maximum, np.minimum, np.fmax, np.fmin):
    general(
        _ufunc.reduce,
        pullback=for_extreme_method(extreme_pullback),
        pushforward=for_extreme_method(extreme_pushforward),
        at=_EXTREMES,
    )


def ptp(a: Any, axis: Any = None, *, keepdims: Any = False) -> Any:
    return np.max(a, axis=axis, keepdims=keepdims) - np.min(a, axis=axis, keepdims=keepdims)


composed(np.ptp, ptp, at=[*_EXTREME, *_EXTREMES[:3]])


# --- logarithm of a sum of exponentials ------------------------------------------------------------------------------


def logaddexp_pullback(
    y: Any, array: Any, axis: Any = 0, *, keepdims: Any = False, initial: Any = None, where: Any = True
) -> Any:
    axis = over(array, axis)

    def pull_logaddexp(y_bar: Any) -> Any:
        slope = _slope(kept(y, axis, keepdims), array, axis, initial, where)
        return (masked(times(kept(y_bar, axis, keepdims), slope), where),)

    return pull_logaddexp


def logaddexp_pushforward(
    y: Any, array: Any, axis: Any = 0, *, keepdims: Any = False, initial: Any = None, where: Any = True
) -> Any:
    axis = over(array, axis)

    def push_logaddexp(array_dot: Any) -> Any:
        terms = times(array_dot, _slope(kept(y, axis, keepdims), array, axis, initial, where))
        return np.sum(masked(terms, where), axis=axis, keepdims=keepdims)

    return push_logaddexp


def _slope(y: Any, a: Any, axis: Any, initial: Any, where: Any) -> Any:
    """exp(a - y), by a function that knows how to differentiate it where that will be done.

    A sum that is infinite has its slope at the infinite terms; one that is zero has none.
    """
    finite = np.isfinite(y)
    if not is_plain(a) and initial is None and where is True and everywhere(finite) and everywhere(np.isfinite(a)):
        return shares(a, axis)
    return np.where(finite, np.exp(np.where(finite, a - np.where(finite, y, 0), 0)), (a == y) & (y > 0))


general(
    np.logaddexp.reduce,
    pullback=logaddexp_pullback,
    pushforward=logaddexp_pushforward,
    at=[*_ALONG[:5], *_ALONG[6:8]],
)
