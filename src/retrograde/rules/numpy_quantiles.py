"""Weighted quantiles: `weights=` of np.quantile, np.percentile, and those that skip NaN.

NumPy knows one kind, the inverse of the weighted distribution function: a quantile *is* one of the elements, and has
the slope 1 in it. Which one it is jumps with the weights, of which it is a step function: no derivative comes back to
them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from retrograde.originals import np
from retrograde.rules.numpy_reductions import rows, split_axes
from retrograde.rules.numpy_statistics import weights_along
from retrograde.rules.products import everywhere, somewhere
from retrograde.rules.table import with_keyword


def _weighted(name: str, scale: float, skips_nan: bool) -> Callable[..., Any]:
    def weighted(
        a: Any,
        q: Any,
        axis: Any = None,
        *,
        method: str = "linear",
        keepdims: Any = False,
        overwrite_input: bool = False,
        weights: Any,
    ) -> Any:
        if method != "inverted_cdf":
            raise ValueError(f"Only method 'inverted_cdf' supports weights. Got: {method}.")
        fractions = np.true_divide(q, scale) if scale != 1 else np.asarray(q)
        if not everywhere((fractions >= 0) & (fractions <= 1)):
            raise ValueError(f"{name} must be in the range [0, {scale:g}]")
        shape = np.shape(a)
        if np.shape(weights) != shape:
            weights = np.broadcast_to(weights_along(weights, shape, axis), shape)
        if somewhere(np.less(weights, 0)):
            raise ValueError("Weights must be non-negative.")
        x = rows(a, axis)
        places = _places(x, rows(weights, axis), fractions, skips_nan)
        y = np.transpose(np.take_along_axis(x, np.transpose(places), axis=1))
        left, _ = split_axes(len(shape), axis)
        over = [
            n if i in left else 1
            for i, n in enumerate(shape)
            if i in left or (keepdims is not np._NoValue and keepdims)
        ]
        return np.reshape(y, (*np.shape(fractions), *over))

    return weighted


def _places(x: Any, weights: Any, fractions: Any, skips_nan: bool) -> Any:
    """In which column of each row the quantiles stand: (fractions, rows)."""
    order = np.argsort(x, axis=1, kind="stable")
    ordered = np.take_along_axis(weights, order, axis=1)
    is_number = ~np.isnan(np.take_along_axis(x, order, axis=1))  # what is none stands at the end
    if skips_nan:
        ordered = np.where(is_number, ordered, 0.0)
    sums = np.cumsum(ordered, axis=1, dtype=np.float64)
    total = sums[:, -1:]
    some = np.any(is_number, axis=1)
    if somewhere((some | (not skips_nan)) & ~((total > 0) & (total < np.inf))[:, 0]):
        raise ValueError("Weights included NaN, inf or were all zero.")
    with np.errstate(invalid="ignore"):
        sums = sums / total
    if fractions.dtype.kind == "f":
        sums = sums.astype(fractions.dtype)
    # A weight of zero at the beginning has no part in the distribution.
    sums = np.where(sums == 0, -1.0, sums)
    last = np.count_nonzero(is_number, axis=1) - 1 if skips_nan else np.full(x.shape[0], x.shape[1] - 1)
    ranks = [np.minimum(np.count_nonzero(sums < fraction, axis=1), last) for fraction in np.ravel(fractions)]
    columns = np.stack([np.take_along_axis(order, rank[:, None], axis=1)[:, 0] for rank in ranks])
    # Where one element is NaN, so is the quantile; and where all are.
    spoilt = ~np.all(is_number, axis=1) if not skips_nan else ~some
    return np.where(spoilt, order[:, -1], columns)


for _function, _name, _scale, _skips_nan in (
    (np.quantile, "Quantiles", 1, False),
    (np.nanquantile, "Quantiles", 1, True),
    (np.percentile, "Percentiles", 100, False),
    (np.nanpercentile, "Percentiles", 100, True),
):
    with_keyword(_function, "weights", _weighted(_name, _scale, _skips_nan))
