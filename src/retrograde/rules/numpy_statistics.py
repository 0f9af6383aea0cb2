"""Derivatives of NumPy's statistics: averages, variances, covariances, and the reductions that skip NaN."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from retrograde.originals import np
from retrograde.rules.contractions import as_array
from retrograde.rules.lengths import over_length
from retrograde.rules.numpy_deviations import is_one_line, scaled_pull, variance
from retrograde.rules.numpy_reductions import count, is_plain, kept, masked
from retrograde.rules.points import call, complex_, real
from retrograde.rules.products import conj, somewhere, times, times_own
from retrograde.rules.table import composed, general

_MASK = np.array([[True, False, True], [False, True, True]])

# --- variance and standard deviation ---------------------------------------------------------------------------------
#
# The mean's own derivative drops out, since deviations sum to zero: ∂/∂aᵢ Σ|a - m|² = 2 (aᵢ - m). What is kept is `a`
# alone; the deviations are computed again when they are wanted. For complex elements they are already the adjoint.


def _deviations(a: Any, axis: Any, dtype: Any, where: Any) -> Any:
    return _centred(a, np.mean(a, axis=axis, dtype=dtype, keepdims=True, where=where), where)


def _centred(a: Any, mean: Any, where: Any) -> Any:
    return masked(a - mean, where)


def _inverse_freedom(shape: tuple[int, ...], axis: Any, where: Any, ddof: Any) -> Any:
    freedom = count(shape, axis, where) - ddof
    if where is True:
        return 1 / freedom if freedom > 0 else math.inf  # a Python number leaves float32 as it is
    return np.true_divide(1, np.maximum(freedom, 0))


def _real(y_bar: Any) -> Any:
    """The cotangent of a variance, which is a real number though dtype=complex makes it a complex one."""
    return np.real(y_bar) if np.iscomplexobj(y_bar) else y_bar


def _inner(a: Any, b: Any) -> Any:
    """The terms of the real inner product, Re conj(a) b, where b is a tangent."""
    product = times(b, conj(a))
    return np.real(product) if np.iscomplexobj(product) else product


def var_pullback(
    y: Any,
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    *,
    ddof: Any = 0,
    keepdims: Any = False,
    where: Any = True,
    correction: Any = 0,
) -> Any:
    def pull_var(y_bar: Any) -> Any:
        scale = 2 * _inverse_freedom(np.shape(a), axis, where, ddof + correction)
        bar = _real(kept(y_bar, axis, keepdims))
        return (times_own(times(bar, scale), _deviations(a, axis, dtype, where)),)

    return pull_var


def var_pushforward(
    y: Any,
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    *,
    ddof: Any = 0,
    keepdims: Any = False,
    where: Any = True,
    correction: Any = 0,
) -> Any:
    def push_var(a_dot: Any) -> Any:
        scale = 2 * _inverse_freedom(np.shape(a), axis, where, ddof + correction)
        terms = times(_inner(_deviations(a, axis, dtype, where), a_dot), scale)
        return np.sum(terms, axis=axis, keepdims=keepdims)

    return push_var


def _std_parts(y: Any, a: Any, axis: Any, dtype: Any, ddof: Any, keepdims: Any, where: Any) -> tuple[Any, Any, Any]:
    """The deviations, y with the reduced axes kept, and 1 / freedom, of a standard deviation y.

    Rounding can put the mean of equal elements beside them: y is then tiny instead of zero, and so are the deviations,
    all alike. Taking away their mean once more leaves exact zeros; it is not worth a pass where y is no such thing.
    """
    mean = np.mean(a, axis=axis, dtype=dtype, keepdims=True, where=where)
    deviations = _centred(a, mean, where)
    y = kept(y, axis, keepdims)
    if not (is_plain(a) and np.all(np.abs(mean) < 16 * y)):
        deviations = _centred(deviations, np.mean(deviations, axis=axis, keepdims=True, where=where), where)
    return deviations, y, _inverse_freedom(np.shape(a), axis, where, ddof)


def _inverse_length(y: Any, scale: Any) -> Any:
    """1/(freedom · y), by which the deviations are multiplied for ∂y/∂a; 0 where all elements are equal."""
    return scale / np.where(y == 0, math.inf, y)


def std_pullback(
    y: Any,
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    *,
    ddof: Any = 0,
    keepdims: Any = False,
    where: Any = True,
    correction: Any = 0,
) -> Any:
    def pull_std(y_bar: Any) -> Any:
        deviations, length, scale = _std_parts(y, a, axis, dtype, ddof + correction, keepdims, where)
        bar = _real(kept(y_bar, axis, keepdims))
        if is_plain(length):
            return (times_own(times(bar, _inverse_length(length, scale)), deviations),)
        return (over_length(bar * scale, deviations, length),)

    return pull_std


def std_pushforward(
    y: Any,
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    *,
    ddof: Any = 0,
    keepdims: Any = False,
    where: Any = True,
    correction: Any = 0,
) -> Any:
    def push_std(a_dot: Any) -> Any:
        deviations, length, scale = _std_parts(y, a, axis, dtype, ddof + correction, keepdims, where)
        if is_plain(length):
            terms = times(_inner(deviations, a_dot), _inverse_length(length, scale))
        else:
            terms = np.real(over_length(a_dot * scale, conj(deviations), length))
        return np.sum(terms, axis=axis, keepdims=keepdims)

    return push_std


_MEANS = [
    call(real(-1, 1, 2, 3)),
    call(real(-1, 1, 2, 3), axis=0),
    call(real(-1, 1, 2, 3), axis=-1, keepdims=True),
    call(real(-1, 1, 2, 3, 2), axis=(0, -1)),
    call(real(-1, 1, 2, 3), axis=1, where=_MASK),
    call(real(-1, 1, 2, 3), where=_MASK[0], keepdims=True),
    call(complex_(-1, 1, 2, 3), axis=0),
]
_SCATTERS = [
    *_MEANS,
    call(real(-1, 1, 2, 3), axis=1, ddof=1),
    call(real(-1, 1, 2, 3), correction=1),
    call(real(-1, 1, 2, 3), axis=1, where=_MASK, ddof=0.5, keepdims=True),
]


def _together(scatter: Any, pullback: Any, of_line: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """A value with its pull: by `of_line(a, freedom lost)` where they share work, one after the other elsewhere."""

    def together(
        a: Any,
        axis: Any = None,
        dtype: Any = None,
        *,
        ddof: Any = 0,
        keepdims: Any = False,
        where: Any = True,
        correction: Any = 0,
    ) -> Any:
        lost = ddof + correction
        if (ddof and correction) or not is_one_line(a, axis, dtype, lost, keepdims, where):
            given = {"correction": correction} if correction else {}  # NumPy refuses it beside `ddof`
            y = scatter(a, axis, dtype, ddof=ddof, keepdims=keepdims, where=where, **given)
            return y, pullback(y, a, axis, dtype, ddof=lost, keepdims=keepdims, where=where)
        return of_line(a, lost)

    return together


def _var_of_line(a: Any, lost: Any) -> Any:
    # The cotangent of a loss is one, so that there is nothing left to multiply by.
    y, _, slope = variance(a, lost, 2 / (a.size - lost))
    return y, scaled_pull(slope, 1.0)


def _std_of_line(a: Any, lost: Any) -> Any:
    square, mean, deviations = variance(a, lost)
    y = np.sqrt(square)
    if not abs(mean) < 16 * y:  # as in `_std_parts`
        deviations -= np.mean(deviations)
    return y, scaled_pull(deviations, _inverse_length(y, 1 / (a.size - lost))[()])


var_together = _together(np.var, var_pullback, _var_of_line)
std_together = _together(np.std, std_pullback, _std_of_line)
general(np.var, pullback=var_pullback, pushforward=var_pushforward, together=var_together, at=_SCATTERS)
general(np.std, pullback=std_pullback, pushforward=std_pushforward, together=std_together, at=_SCATTERS)


# --- average and covariance ------------------------------------------------------------------------------------------


def average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: Any = False) -> Any:
    """np.average as means and sums; the weights are differentiable too."""
    if isinstance(axis, list):
        axis = tuple(axis)
    if weights is None:
        mean = np.mean(a, axis=axis, keepdims=keepdims)
        total: Any = np.float64(np.size(a) / np.size(mean))
    else:
        shape = np.shape(a)
        if np.shape(weights) != shape:
            weights = weights_along(weights, shape, axis)
        total = np.sum(weights, axis=axis, keepdims=keepdims)
        if somewhere(total == 0):
            raise ZeroDivisionError("Weights sum to zero, can't be normalized")
        mean = np.sum(np.multiply(a, weights), axis=axis, keepdims=keepdims) / total
    if not returned:
        return mean
    return mean, total if np.shape(total) == np.shape(mean) else np.broadcast_to(total, np.shape(mean))


def weights_along(weights: Any, shape: tuple[int, ...], axis: Any) -> Any:
    """Weights of the reduced axes only, in a shape that broadcasts against the whole array."""
    if axis is None:
        raise TypeError("Axis must be specified when shapes of a and weights differ.")
    axes = normalize_axis_tuple(axis, len(shape))
    if np.shape(weights) != tuple(shape[i] for i in axes):
        raise ValueError("Shape of weights must be consistent with shape of a along specified axis.")
    ordered = np.transpose(weights, tuple(int(i) for i in np.argsort(axes)))
    return np.reshape(ordered, tuple(n if i in axes else 1 for i, n in enumerate(shape)))


composed(
    np.average,
    average,
    at=[
        call(real(-1, 1, 2, 3)),
        call(real(-1, 1, 2, 3), axis=1, keepdims=True),
        call(real(-1, 1, 2, 3), weights=real(0.5, 2, 2, 3)),
        call(real(-1, 1, 2, 3), 1, real(0.5, 2, 3)),
        call(real(-1, 1, 2, 3, 4), axis=(2, 0), weights=real(0.5, 2, 4, 2)),
        call(real(-1, 1, 2, 3), axis=0, weights=real(0.5, 2, 2), returned=True),
    ],
)


def cov(
    m: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: Any = None,
    fweights: Any = None,
    aweights: Any = None,
) -> Any:
    """np.cov, differentiable in the observations and in `aweights`."""
    # NumPy computes in double precision at least.
    dtype = np.result_type(as_array(m).dtype, *([] if y is None else [as_array(y).dtype]), np.float64)
    x = _variables(m, not rowvar, dtype)
    if x.shape[0] == 0:
        return np.zeros((0, 0))
    if y is not None:
        # NumPy takes a single row for one variable, whatever `rowvar` says.
        x = np.concatenate([x, _variables(y, not rowvar and np.shape(y)[0] != 1, dtype)], axis=0)
    if ddof is None:
        ddof = 0 if bias else 1
    weights = _frequencies(fweights, x.shape[1])
    if aweights is not None:
        if np.shape(aweights) != x.shape[1:]:
            raise RuntimeError("incompatible numbers of samples and aweights")
        if somewhere(np.less(aweights, 0)):
            raise ValueError("aweights cannot be negative")
        aweights = as_array(aweights).astype(float)
        weights = aweights if weights is None else weights * aweights
    freedom: Any
    if weights is None:
        deviations = x - np.mean(x, axis=1, keepdims=True)
        weighted = deviations
        freedom = x.shape[1] - ddof
    else:
        total = np.sum(weights)
        deviations = x - np.sum(x * weights, axis=1, keepdims=True) / total
        weighted = deviations * weights
        freedom = total
        if ddof != 0:
            freedom = total - (ddof if aweights is None else ddof * np.sum(np.multiply(weights, aweights)) / total)
    if somewhere(np.less_equal(freedom, 0)):
        warnings.warn("Degrees of freedom <= 0 for slice", RuntimeWarning, stacklevel=3)
        freedom = np.where(np.less_equal(freedom, 0), 0.0, freedom)
    return np.squeeze(np.dot(deviations, conj(np.transpose(weighted))) * np.true_divide(1, freedom))


def _variables(m: Any, transpose: bool, dtype: Any) -> Any:
    """The observations as a matrix with one variable a row."""
    m = as_array(m)
    m = m if m.dtype == dtype else m.astype(dtype)
    if np.ndim(m) > 2:
        raise ValueError("m has more than 2 dimensions")
    if np.ndim(m) < 2:
        return np.reshape(m, (1, -1))
    return np.transpose(m) if transpose else np.reshape(m, np.shape(m))


def _frequencies(fweights: Any, observations: int) -> Any:
    """`fweights` as floats, with the checks that np.cov makes."""
    if fweights is None:
        return None
    fweights = np.asarray(fweights, dtype=float)
    if somewhere(fweights != np.around(fweights)):
        raise TypeError("fweights must be integer")
    if fweights.shape != (observations,):
        raise RuntimeError("incompatible numbers of samples and fweights")
    if somewhere(fweights < 0):
        raise ValueError("fweights cannot be negative")
    return fweights


def corrcoef(x: Any, y: Any = None, rowvar: bool = True) -> Any:
    c = cov(x, y, rowvar)
    if np.ndim(c) == 0:
        return c / c
    deviations = np.sqrt(np.real(np.diagonal(c)))
    c = c / deviations[:, None] / deviations[None, :]
    if np.iscomplexobj(c):
        return _at_most_one(np.real(c)) + 1j * _at_most_one(np.imag(c))
    return _at_most_one(c)


def _at_most_one(c: Any) -> Any:
    """Rounding that went past ±1 is cut off. What is ±1 keeps its derivative, which `np.clip` would halve."""
    return np.where(np.abs(c) > 1, np.sign(c), c)


_OBSERVATIONS = [
    call(real(-1, 1, 3, 5)),
    call(real(-1, 1, 4)),
    call(real(-1, 1, 2, 5), real(-1, 1, 5)),
    call(real(-1, 1, 5, 2), real(-1, 1, 5, 3), rowvar=False),
    call(complex_(-1, 1, 2, 5)),
]

composed(
    np.cov,
    cov,
    at=[
        *_OBSERVATIONS,
        call(real(-1, 1, 2, 5), bias=True),
        call(real(-1, 1, 2, 5), ddof=2, fweights=[1, 2, 0, 1, 3]),
        call(real(-1, 1, 2, 5), aweights=real(0.5, 2, 5)),
        call(real(-1, 1, 2, 5), fweights=[1, 2, 0, 1, 3], aweights=real(0.5, 2, 5)),
        call(real(-1, 1, 2, 5), ddof=0, aweights=real(0.5, 2, 5)),
    ],
)
composed(np.corrcoef, corrcoef, at=_OBSERVATIONS)


# --- reductions that skip NaN ----------------------------------------------------------------------------------------


def nansum(
    a: Any, axis: Any = None, dtype: Any = None, *, keepdims: Any = False, initial: Any = 0, where: Any = True
) -> Any:
    return np.sum(without_nan(a, 0), axis=axis, dtype=dtype, keepdims=keepdims, initial=initial, where=where)


def nanprod(
    a: Any, axis: Any = None, dtype: Any = None, *, keepdims: Any = False, initial: Any = 1, where: Any = True
) -> Any:
    return np.prod(without_nan(a, 1), axis=axis, dtype=dtype, keepdims=keepdims, initial=initial, where=where)


def nanmean(a: Any, axis: Any = None, dtype: Any = None, *, keepdims: Any = False, where: Any = True) -> Any:
    total = np.sum(without_nan(a, 0), axis=axis, dtype=dtype, keepdims=keepdims, where=where)
    number = np.sum(~np.isnan(a), axis=axis, keepdims=keepdims, where=where)
    precision = np.finfo(np.result_type(total.dtype, np.float16)).dtype  # that of the sum, as NumPy has it
    return total / number.astype(precision)


def nanvar(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    *,
    ddof: Any = 0,
    keepdims: Any = False,
    where: Any = True,
    mean: Any = None,
    correction: Any = 0,
) -> Any:
    there, axis = ~np.isnan(a) & where, _axis_of_nan(a, axis)
    return np.var(a, axis=axis, dtype=dtype, ddof=ddof + correction, keepdims=keepdims, where=there, mean=mean)


def nanstd(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    *,
    ddof: Any = 0,
    keepdims: Any = False,
    where: Any = True,
    mean: Any = None,
    correction: Any = 0,
) -> Any:
    there, axis = ~np.isnan(a) & where, _axis_of_nan(a, axis)
    return np.std(a, axis=axis, dtype=dtype, ddof=ddof + correction, keepdims=keepdims, where=there, mean=mean)


def _axis_of_nan(a: Any, axis: Any) -> Any:
    """The axis to reduce: those that skip NaN let a number be reduced over the axis that it does not have."""
    if np.ndim(a) or not isinstance(axis, int | np.integer):
        return axis
    normalize_axis_index(axis, 1)
    return None


def without_nan(a: Any, instead: int) -> Any:
    return np.where(np.isnan(a), instead, a)


composed(np.nansum, nansum, at=_MEANS)
composed(np.nanprod, nanprod, at=_MEANS)
composed(np.nanmean, nanmean, at=_MEANS)
composed(np.nanvar, nanvar, at=_SCATTERS)
composed(np.nanstd, nanstd, at=_SCATTERS)
