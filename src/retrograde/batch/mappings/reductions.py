"""Reductions: over all axes of one example, or over some."""

from __future__ import annotations

from typing import Any

from retrograde.batch.arguments import array, behind, call, named
from retrograde.batch.table import by_body, looped, mapped
from retrograde.originals import np
from retrograde.rules.numpy_polynomials import characteristic
from retrograde.rules.numpy_shares import shares

_OVER_ALL = (
    np.sum, np.prod, np.max, np.amax, np.min, np.amin, np.mean, np.var, np.std, np.nanmax, np.nanmin, np.nansum,
    np.nanprod, np.nanmean, np.any, np.all, np.count_nonzero, np.median, np.nanmedian,
)  # fmt: skip
_OVER_THE_FIRST = (
    np.add.reduce, np.multiply.reduce, np.maximum.reduce, np.minimum.reduce, np.fmax.reduce, np.fmin.reduce,
    np.logaddexp.reduce, np.logical_and.reduce, np.logical_or.reduce,
)  # fmt: skip
_WITH_INITIAL = {np.sum: np.add, np.prod: np.multiply, np.max: np.maximum, np.amax: np.maximum, np.min: np.minimum,
                 np.amin: np.minimum}  # fmt: skip


def _reduced(function: Any, level: Any, given: dict[str, Any], default: Any) -> Any:
    name = next(iter(given))
    a = array(given[name])
    where = given.get("where")
    ndim = a.ndim
    if not level.holds(a):
        # The mask is what differs.
        a = level.wrap(level.each(a))
    axis = given.pop("axis", default)
    raw = a.primal
    if ndim == 0:
        # The one element is reduced, over an axis that is made for it.
        if axis not in (None, ()):
            function(np.zeros((), a.dtype), axis=axis)  # NumPy lets some functions have the axis 0 here, and others not
        given[name], given["axis"], ndim = raw[:, None], 1, 1
        given.pop("keepdims", None)
    else:
        given[name] = raw
        given["axis"] = tuple(range(1, ndim + 1)) if axis is None else behind(axis, ndim)
    if where is not None:
        given["where"] = level.aligned(where, ndim)
    if level.holds(given.get("mean")):
        given["mean"] = level.aligned(given["mean"], ndim)
    initial: Any = given.get("initial")
    if level.holds(initial) and function in _WITH_INITIAL:
        given.pop("initial")
        y = call(function, given)
        return _WITH_INITIAL[function](y, initial.primal.reshape((-1, *(1,) * (y.ndim - 1))))
    return call(function, given)


@mapped(*_OVER_ALL)
def _over_all(function: Any, level: Any, *args: Any, **kwargs: Any) -> Any:
    return _reduced(function, level, named(function, args, kwargs), None)


@mapped(*_OVER_THE_FIRST)
def _over_the_first(function: Any, level: Any, *args: Any, **kwargs: Any) -> Any:
    return _reduced(function, level, named(function, args, kwargs), 0)


@mapped(np.argmax, np.argmin, np.nanargmax, np.nanargmin)
def _places(function: Any, level: Any, *args: Any, **kwargs: Any) -> Any:
    given = named(function, args, kwargs)
    a, axis, keepdims = given["a"], given.get("axis"), given.get("keepdims", False)
    raw = a.primal
    if axis is not None:
        return function(raw, axis=behind(axis, a.ndim), keepdims=keepdims)
    y = function(np.reshape(raw, (level.size, a.size)), axis=1)
    return np.reshape(y, (level.size, *(1,) * a.ndim)) if keepdims else y


@mapped(np.quantile, np.nanquantile, np.percentile, np.nanpercentile)
def _quantile(function: Any, level: Any, *args: Any, **kwargs: Any) -> Any:
    given = named(function, args, kwargs)
    a, q = array(given["a"]), given["q"]
    if level.holds(q) or given.get("weights") is not None:
        from retrograde.batch.table import one_by_one

        return one_by_one(function, level, args, kwargs).primal
    if not a.size and function in (np.nanquantile, np.nanpercentile):
        # NumPy answers with the mean of nothing, whatever and however many the fractions are.
        of_mean = {name: given[name] for name in ("axis", "keepdims") if name in given}
        return _reduced(np.nanmean, level, {"a": a} | of_mean, None)
    y = _reduced(function, level, given | {"a": a}, None)
    return np.moveaxis(y, np.ndim(q), 0)


@mapped(shares)
def _shares(function: Any, level: Any, a: Any, axis: Any = None) -> Any:
    return shares(a.primal, tuple(range(1, a.ndim + 1)) if axis is None else behind(axis, a.ndim))


looped(np.linalg.lstsq, np.roots, characteristic)


@by_body(np.linalg.norm)
def _norm(function: Any, level: Any, x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    from retrograde.batch.mappings.linalg import norm_over

    return norm_over(level, x, ord, axis, keepdims)


@by_body(np.allclose, np.array_equal, np.array_equiv)
def _same(function: Any, level: Any, a: Any, b: Any, *args: Any, **kwargs: Any) -> Any:
    a, b = array(a), array(b)
    name = function.__name__
    if name == "array_equal" and a.shape != b.shape:
        return False
    if name == "allclose":
        return np.all(np.isclose(a, b, *args, **kwargs))
    equal = a == b
    if kwargs.get("equal_nan"):
        equal = equal | (np.isnan(a) & np.isnan(b))
    return np.all(equal)
