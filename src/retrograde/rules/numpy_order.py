"""Derivatives of what depends on order: sorting and order statistics.

All of it is linear in the elements while their order stays as it is. Which element goes where is found by a stable
sort, so that of equal elements the first counts as the smallest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.lib.array_utils import normalize_axis_index

from retrograde.originals import np
from retrograde.rules.numpy_indexing import summed_at
from retrograde.rules.numpy_reductions import from_rows, is_plain, rows, split_axes
from retrograde.rules.points import call, complex_, distinct
from retrograde.rules.products import everything, has_nan, somewhere
from retrograde.rules.table import composed, general, no_gradient

no_gradient(
    np.argmax,
    np.argmin,
    np.nanargmax,
    np.nanargmin,
    np.argsort,
    np.argpartition,
    np.lexsort,
    np.searchsorted,
    np.digitize,
    why="the result is made of positions",
)
no_gradient(np.count_nonzero, why="the result is a number of elements")
no_gradient(np.any, np.all, np.isin, np.logical_and.reduce, np.logical_or.reduce, why="the result is boolean")


# --- sort and partition: y is a permutation of a ---------------------------------------------------------------------


def _stable_order(a: Any, axis: int) -> Any:
    return np.argsort(a, axis=axis, kind="stable")


def _unsort(y_bar: Any, order: Any, axis: int) -> Any:
    """The adjoint of `np.take_along_axis(x, order, axis)` for permutations."""
    if type(y_bar) is np.ndarray and type(order) is np.ndarray:
        x_bar = np.empty_like(y_bar)
        np.put_along_axis(x_bar, order, y_bar, axis)
        return x_bar
    return np.take_along_axis(y_bar, _ranks(order, axis), axis)


def _ranks(order: Any, axis: int) -> Any:
    """The inverse of the permutations along `axis`."""
    if type(order) is not np.ndarray:
        return np.argsort(order, axis=axis)
    places = np.arange(order.shape[axis]).reshape((-1,) + (1,) * (order.ndim - axis - 1))
    return _unsort(np.broadcast_to(places, order.shape), order, axis)


def sort_pullback(y: Any, a: Any, axis: Any = -1, kind: Any = None, *, stable: Any = None) -> Any:
    shape = np.shape(a)

    def pull_sort(y_bar: Any) -> Any:
        along, flat = _along(a, axis)
        return (np.reshape(_unsort(y_bar, _stable_order(flat, along), along), shape),)

    return pull_sort


def sort_together(a: Any, axis: Any = -1, kind: Any = None, *, stable: Any = None) -> Any:
    """One search for the order instead of two. It need not be a stable one where no elements are equal."""
    along, flat = _along(a, axis)
    order = np.argsort(flat, axis=along)
    y = np.take_along_axis(flat, order, along)
    if not _all_differ(y, along):
        order = _stable_order(flat, along)
        y = np.take_along_axis(flat, order, along)
    if not flat.flags.c_contiguous:
        laid_out = np.empty_like(flat)  # np.sort keeps the order in memory
        laid_out[...] = y
        y = laid_out

    def pull_sort(y_bar: Any) -> Any:
        return (np.reshape(_unsort(y_bar, order, along), np.shape(a)),)

    return y, pull_sort


def _all_differ(y: Any, axis: int) -> bool:
    """Whether no two elements of a sorted array are equal, and none is NaN."""
    along = (slice(None),) * axis
    return not (np.any(y[(*along, slice(1, None))] == y[(*along, slice(None, -1))]) or np.any(np.isnan(y)))


def sort_pushforward(y: Any, a: Any, axis: Any = -1, kind: Any = None, *, stable: Any = None) -> Any:
    def push_sort(a_dot: Any) -> Any:
        along, flat = _along(a, axis)
        return np.take_along_axis(np.reshape(a_dot, flat.shape), _stable_order(flat, along), along)

    return push_sort


def _along(a: Any, axis: Any) -> tuple[int, Any]:
    """The axis as a non-negative number, and the array that it is an axis of."""
    return (0, np.ravel(a)) if axis is None else (normalize_axis_index(axis, a.ndim), a)


def partition_pullback(y: Any, a: Any, kth: Any, axis: Any = -1, kind: Any = "introselect") -> Any:
    """Which element NumPy has put where is found by sorting result and argument: equal ranks, equal elements."""
    shape = np.shape(a)

    def pull_partition(y_bar: Any) -> Any:
        along, flat = _along(a, axis)
        source = np.take_along_axis(_stable_order(y, along), _ranks(_stable_order(flat, along), along), along)
        return (np.reshape(np.take_along_axis(y_bar, source, along), shape),)

    return pull_partition


def partition_pushforward(y: Any, a: Any, kth: Any, axis: Any = -1, kind: Any = "introselect") -> Any:
    def push_partition(a_dot: Any) -> Any:
        along, flat = _along(a, axis)
        source = np.take_along_axis(_stable_order(flat, along), _ranks(_stable_order(y, along), along), along)
        return np.take_along_axis(np.reshape(a_dot, flat.shape), source, along)

    return push_partition


general(
    np.sort,
    pullback=sort_pullback,
    pushforward=sort_pushforward,
    together=sort_together,
    at=[
        call(distinct(-1, 1, 5)),
        call(distinct(-1, 1, 3, 2), 0, "stable"),
        call(distinct(-1, 1, 2, 3), axis=None),
        call(distinct(-1, 1, 2, 3, 2), axis=-2, stable=True),
        call(complex_(-1, 1, 4)),
    ],
)


def sort_complex(a: Any) -> Any:
    y = np.sort(a)
    return y if np.iscomplexobj(a) else y.astype(np.clongdouble if y.dtype == np.longdouble else np.complex128)


composed(np.sort_complex, sort_complex, at=[call(distinct(-1, 1, 5)), call(complex_(-1, 1, 2, 3))])
general(
    np.partition,
    pullback=partition_pullback,
    pushforward=partition_pushforward,
    at=[
        call(distinct(-1, 1, 7), 3),
        call(distinct(-1, 1, 5, 2), [1, 3], axis=0),
        call(distinct(-1, 1, 2, 3), 2, axis=None),
    ],
)


# --- order statistics ------------------------------------------------------------------------------------------------
#
# A median or quantile interpolates between two neighbours among the sorted elements, at a position that their number
# alone decides. NumPy's own quantile of 0, 1, …, n-1 *is* that position, for every method and, in double precision, to
# the last bit.

Positions = Callable[[int], Any]
"""The number of elements → the positions of the statistics among the sorted elements, of the shape of `q`."""


def _median_position(n: int) -> Any:
    return np.asarray((n - 1) / 2)


def _neighbours(x: Any, positions: Positions, skip_nan: bool) -> tuple[Any, Any, Any, Any]:
    """What the statistics of each row interpolate between, all of shape (statistics, rows).

    Returns: in which columns the lower and the upper neighbour stand, and the weights of the two.
    """
    height, width = x.shape
    if skip_nan:
        found = np.count_nonzero(~np.isnan(x), axis=1)
        some = found > 0
        # One row of positions for each number of elements that there is.
        numbers = np.unique(everything(found))
        of_number = np.stack([np.ravel(positions(max(m, 1))) for m in numbers.tolist()])
        at = np.transpose(np.take(of_number, np.searchsorted(numbers, found), axis=0))
    else:
        some = True
        at = np.repeat(np.reshape(positions(width), (-1, 1)), height, axis=1)
    low, high = np.floor(at).astype(np.intp), np.ceil(at).astype(np.intp)
    ranks = np.unique([low, high]) if is_plain(x) else None
    if ranks is None or len(ranks) > _FEW:
        ordered = _stable_order(x, 1)
    else:
        ordered = _columns_of(x, ranks)
        low, high = np.searchsorted(ranks, low), np.searchsorted(ranks, high)
    weight = at - np.floor(at)
    return (
        np.take_along_axis(ordered, low.T, axis=1).T,
        np.take_along_axis(ordered, high.T, axis=1).T,
        np.where(some, 1 - weight, 0),
        np.where(some, weight, 0),
    )


_FEW = 8
"""Up to so many order statistics are selected one by one, in linear time; for more, everything is sorted."""


def _columns_of(x: Any, ranks: Any) -> Any:
    """The columns of the elements of these ranks in each row, as a stable sort would have them: (rows, ranks)."""
    columns = np.argpartition(x, ranks, axis=1)[:, ranks]
    for j, rank in enumerate(ranks):
        value = np.take_along_axis(x, columns[:, j : j + 1], axis=1)
        tied = x == value
        is_number = value == value
        if np.count_nonzero(tied) > np.count_nonzero(is_number):
            # Of equal elements a partition takes any, a stable sort the one with as many equals before it.
            equals_before = rank - np.count_nonzero(x < value, axis=1)[:, None]
            stable = np.argmax(np.cumsum(tied, axis=1) > equals_before, axis=1)
            columns[:, j] = np.where(is_number[:, 0], stable, columns[:, j])
    return columns


def pull_statistic(a: Any, axis: Any, positions: Positions, skip_nan: bool) -> Callable[[Any], tuple[Any]]:
    shape = np.shape(a)

    def pull_order_statistic(y_bar: Any) -> tuple[Any]:
        if 0 in shape:
            return (np.zeros(shape),)
        x = rows(a, axis)
        x_bar = _pulled_to_rows(y_bar, x.shape, *_neighbours(x, positions, skip_nan))
        return (from_rows(x_bar, shape, axis),)

    return pull_order_statistic


def _pulled_to_rows(y_bar: Any, shape: tuple[int, int], low: Any, high: Any, low_weight: Any, high_weight: Any) -> Any:
    first = np.arange(shape[0]) * shape[1]
    y_bar = np.reshape(y_bar, low.shape)
    places, values = low + first, y_bar * low_weight
    if somewhere(high_weight):
        places, values = np.stack([places, high + first]), np.stack([values, y_bar * high_weight])
    return summed_at(values, places, shape[0] * shape[1])


def push_statistic(y: Any, a: Any, axis: Any, positions: Positions, skip_nan: bool) -> Callable[[Any], Any]:
    shape = np.shape(y)

    def push_order_statistic(a_dot: Any) -> Any:
        if 0 in np.shape(a):
            return np.zeros(shape)
        low, high, low_weight, high_weight = _neighbours(rows(a, axis), positions, skip_nan)
        x_dot = rows(a_dot, axis)
        lower = np.transpose(np.take_along_axis(x_dot, low.T, axis=1))
        upper = np.transpose(np.take_along_axis(x_dot, high.T, axis=1))
        return np.reshape(lower * low_weight + upper * high_weight, shape)

    return push_order_statistic


def _median_rule(skip_nan: bool) -> tuple[Callable[..., Any], Callable[..., Any]]:
    def median_pullback(y: Any, a: Any, axis: Any = None, *, keepdims: Any = False) -> Any:
        return pull_statistic(a, axis, _median_position, skip_nan)

    def median_pushforward(y: Any, a: Any, axis: Any = None, *, keepdims: Any = False) -> Any:
        return push_statistic(y, a, axis, _median_position, skip_nan)

    return median_pullback, median_pushforward


def median_together(a: Any, axis: Any = None, *, keepdims: Any = False) -> Any:
    """One partition instead of two; as np.median has it, the mean of the two elements in the middle."""
    shape = np.shape(a)
    if 0 in shape or a.dtype not in (np.float64, np.float32) or has_nan(a):
        y = np.median(a, axis=axis, keepdims=keepdims)
        return y, pull_statistic(a, axis, _median_position, False)
    x = rows(a, axis)
    low, high, low_weight, high_weight = _neighbours(x, _median_position, False)
    all_rows = np.arange(len(x))
    y = x[all_rows, low[0]]
    if np.any(high_weight):
        y = (y + x[all_rows, high[0]]) / 2
    left, removed = split_axes(len(shape), axis)
    y = np.reshape(y, [1 if i in removed else shape[i] for i in range(len(shape)) if keepdims or i in left])
    y = y if keepdims else y[()]

    def pull_median(y_bar: Any) -> tuple[Any]:
        return (from_rows(_pulled_to_rows(y_bar, x.shape, low, high, low_weight, high_weight), shape, axis),)

    return y, pull_median


def _quantile_rule(quantile: Any, skip_nan: bool) -> tuple[Callable[..., Any], Callable[..., Any]]:
    def positions(a: Any, q: Any, method: str) -> Positions:
        def of_number(n: int) -> Any:
            fine = quantile(np.arange(float(n)), q, method=method)
            dtype = np.result_type(a)  # a number has none of its own
            if dtype.kind != "f" or dtype == np.float64:
                return fine
            # Among elements of another precision NumPy may round q, and come out at another place where a method jumps.
            coarse = quantile(np.arange(n, dtype=dtype), q, method=method)
            return np.where(np.abs(fine - coarse) <= 2 * np.spacing(coarse), fine, coarse)

        return of_number

    def quantile_pullback(
        y: Any, a: Any, q: Any, axis: Any = None, *, method: str = "linear", keepdims: Any = False
    ) -> Any:
        return pull_statistic(a, axis, positions(a, q, method), skip_nan)

    def quantile_pushforward(
        y: Any, a: Any, q: Any, axis: Any = None, *, method: str = "linear", keepdims: Any = False
    ) -> Any:
        return push_statistic(y, a, axis, positions(a, q, method), skip_nan)

    return quantile_pullback, quantile_pushforward


_MEDIANS = [
    call(distinct(-1, 1, 5)),
    call(distinct(-1, 1, 2, 3)),
    call(distinct(-1, 1, 3, 4), axis=1),
    call(distinct(-1, 1, 3, 2, 2), axis=(0, -1)),
    call(distinct(-1, 1, 3, 2, 2), axis=(2, 0), keepdims=True),
]
_METHODS = (
    "inverted_cdf",
    "averaged_inverted_cdf",
    "closest_observation",
    "interpolated_inverted_cdf",
    "hazen",
    "weibull",
    "linear",
    "median_unbiased",
    "normal_unbiased",
    "lower",
    "higher",
    "midpoint",
    "nearest",
)


def _quantiles(scale: float) -> list[Any]:
    several = np.array([0.1, 0.5, 0.97]) * scale
    return [
        call(distinct(-1, 1, 5), 0.3 * scale),
        call(distinct(-1, 1, 2, 3), several),
        call(distinct(-1, 1, 3, 4), several, axis=1),
        call(distinct(-1, 1, 3, 4), 0.6 * scale, axis=0, keepdims=True),
        call(distinct(-1, 1, 3, 2, 2), several, axis=(0, 2), keepdims=True),
        call(distinct(-1, 1, 9), np.linspace(0, scale, 15)),
        *(call(distinct(-1, 1, 2, 5), several, axis=-1, method=method) for method in _METHODS),
    ]


for _function, _skip_nan in ((np.median, False), (np.nanmedian, True)):
    _pullback, _pushforward = _median_rule(_skip_nan)
    general(
        _function,
        pullback=_pullback,
        pushforward=_pushforward,
        together=None if _skip_nan else median_together,
        at=_MEDIANS,
    )
for _function, _of_places, _skip_nan, _scale in (
    (np.quantile, np.quantile, False, 1.0),
    (np.nanquantile, np.quantile, True, 1.0),
    (np.percentile, np.percentile, False, 100.0),
    (np.nanpercentile, np.percentile, True, 100.0),
):
    _pullback, _pushforward = _quantile_rule(_of_places, _skip_nan)
    general(_function, pullback=_pullback, pushforward=_pushforward, at=_quantiles(_scale))
