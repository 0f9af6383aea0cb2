"""Derivatives of NumPy's scans: cumulative sums and products, `ufunc.accumulate` and `ufunc.reduceat`.

One helper solves them all where a cumulative sum is not enough: `recurrence`, a first-order linear recurrence.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.lib.array_utils import normalize_axis_index

from retrograde.originals import np
from retrograde.rules.numpy_reductions import is_normal, is_plain
from retrograde.rules.numpy_statistics import without_nan
from retrograde.rules.points import call, complex_, distinct, real
from retrograde.rules.products import conj, times
from retrograde.rules.table import Like, composed, general, linear

Axis = int


def cut(x: Any, axis: Axis, start: int | None = None, stop: int | None = None, step: int | None = None) -> Any:
    """`x[start:stop:step]` along a non-negative axis."""
    return x[(slice(None),) * axis + (slice(start, stop, step),)]


def one_axis(axis: Any, ndim: int) -> Axis:
    """The axis of an accumulation as a number from zero; the ufuncs' methods take a tuple of one, and None of one."""
    if axis is None:
        axis = range(ndim)
    if isinstance(axis, tuple | range):
        (axis,) = axis
    return normalize_axis_index(axis, ndim)


def recurrence(b: Any, a: Any, axis: Axis) -> Any:
    """t of t[0] = b[0] and t[i] = b[i] + a[i] t[i-1], along `axis`.

    By doubling: ⌈log₂ n⌉ rounds, after each of which a[i], b[i] describe twice as many steps at once (Hillis and
    Steele, 1986, "Data parallel algorithms"). Made of products and sums alone, so zeros need no special case in it
    or in its derivatives.
    """
    step = 1
    n = b.shape[axis]
    while step < n:
        later = cut(b, axis, step) + times(cut(b, axis, None, -step), cut(a, axis, step))
        b = np.concatenate([cut(b, axis, None, step), later], axis=axis)
        if 2 * step < n:
            a = np.concatenate([cut(a, axis, None, step), cut(a, axis, step) * cut(a, axis, None, -step)], axis=axis)
        step *= 2
    return b


def reverse_recurrence(b: Any, a: Any, axis: Axis) -> Any:
    """t of t[n-1] = b[n-1] and t[i] = b[i] + a[i+1] t[i+1]: what `recurrence` pulls b back from."""
    following = np.concatenate([cut(a, axis, None, 1), cut(a, axis, None, 0, -1)], axis=axis)
    return cut(recurrence(cut(b, axis, None, None, -1), following, axis), axis, None, None, -1)


# --- cumulative sum --------------------------------------------------------------------------------------------------


def cumsum_adjoint(y_bar: Any, a: Like, axis: Any = None, dtype: Any = None) -> Any:
    if axis is None or not a.shape:
        return np.reshape(_sums_from_end(y_bar, 0), a.shape)
    return _sums_from_end(y_bar, one_axis(axis, a.ndim))


def _sums_from_end(x: Any, axis: Axis, out: Any = None) -> Any:
    """Σ x[k] over k ≥ i; a plain result lies in memory in its own order, so that nobody copies it."""
    turned = cut(x, axis, None, None, -1)
    if type(x) is not np.ndarray:
        return cut(np.cumsum(turned, axis=axis), axis, None, None, -1)
    out = np.empty_like(x) if out is None else out
    np.cumsum(turned, axis=axis, out=cut(out, axis, None, None, -1))
    return out


def add_accumulate_adjoint(y_bar: Any, array: Like, axis: Any = 0, dtype: Any = None) -> Any:
    return cumsum_adjoint(y_bar, array, one_axis(axis, array.ndim))


def cumulative_sum_adjoint(
    y_bar: Any, x: Like, /, *, axis: Any = None, dtype: Any = None, include_initial: bool = False
) -> Any:
    axis = one_axis(axis, y_bar.ndim)
    y_bar = cut(y_bar, axis, 1) if include_initial else y_bar
    return np.reshape(cumsum_adjoint(y_bar, Like(y_bar.shape, x.dtype), axis), x.shape)


_ALONG = [
    call(real(-1, 1, 2, 3), axis=1),
    call(real(-1, 1, 3), axis=0),
    call(real(-1, 1, 3, 2), 0),
    call(real(-1, 1, 2, 5, 2), axis=-2),
    call(complex_(-1, 1, 2, 3), axis=-1),
    call(real(-1, 1, 0), axis=0),
]
_FLAT = [call(real(-1, 1, 2, 3)), call(real(-1, 1)), call(complex_(-1, 1, 3))]
_INITIAL = [
    call(real(-1, 1, 3)),
    call(real(-1, 1, 3), include_initial=True),
    call(real(-1, 1, 2, 3), axis=-1, include_initial=True),
    call(real(-1, 1, 2, 3), axis=0),
]

linear(np.cumsum, cumsum_adjoint, at=[*_FLAT, *_ALONG, call(real(-1, 1, 2, 3), axis=1, dtype=complex)])
linear(np.add.accumulate, add_accumulate_adjoint, at=_ALONG)
linear(np.cumulative_sum, cumulative_sum_adjoint, at=_INITIAL)


def nancumsum(a: Any, axis: Any = None, dtype: Any = None) -> Any:
    return np.cumsum(without_nan(a, 0), axis=axis, dtype=dtype)


composed(np.nancumsum, nancumsum, at=[*_FLAT, *_ALONG])


# --- accumulate: y[0] = x[0], y[i] = f(y[i-1], x[i]) ------------------------------------------------------------------
#
# With the partials p[i] = ∂f/∂y[i-1] and q[i] = ∂f/∂x[i], the tangents follow ẏ[i] = p[i] ẏ[i-1] + q[i] ẋ[i], and
# the cotangents the same recurrence from the other end.

Partials = Callable[[Any, Any, Axis], tuple[Any, Any]]


def accumulation(partials: Partials) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The pullback and the pushforward of `f.accumulate`, from `partials(y, x, axis)` → p, q."""

    def pullback(y: Any, array: Any, axis: Any = 0) -> Any:
        def pull_accumulate(y_bar: Any) -> Any:
            along = one_axis(axis, np.ndim(array))
            p, q = partials(y, array, along)
            return (times(reverse_recurrence(y_bar, conj(p), along), conj(q)),)

        return pull_accumulate

    def pushforward(y: Any, array: Any, axis: Any = 0) -> Any:
        def push_accumulate(array_dot: Any) -> Any:
            along = one_axis(axis, np.ndim(array))
            p, q = partials(y, array, along)
            return recurrence(times(array_dot, q), p, along)

        return push_accumulate

    return pullback, pushforward


def _before(y: Any, axis: Axis, first: Any) -> Any:
    """y[i-1], and `first` at i = 0."""
    head = np.full(np.shape(cut(y, axis, None, 1)), first, np.result_type(y.dtype, np.float16))
    return np.concatenate([head, cut(y, axis, None, -1)], axis=axis)


def multiply_partials(y: Any, x: Any, axis: Axis) -> tuple[Any, Any]:
    return x, _before(y, axis, 1)


def extreme_partials(y: Any, x: Any, axis: Axis) -> tuple[Any, Any]:
    """All elements so far that tie for the extreme share equally: c of them make p = (c-1)/c and q = 1/c."""
    tied = x == y
    fresh = y != _before(y, axis, np.nan)  # a new extreme; the elements before it do not count any more
    ties = np.cumsum(tied, axis=axis)
    c = np.maximum(ties - np.maximum.accumulate(np.where(fresh, ties - 1, 0), axis=axis), 1)
    return np.where(fresh, 0, np.where(tied, (c - 1) / c, 1)), tied / c


def logaddexp_partials(y: Any, x: Any, axis: Axis) -> tuple[Any, Any]:
    """exp(y[i-1] - y[i]) and exp(x[i] - y[i]); a sum that is zero (y = -inf) has no slope."""
    safe = np.where(y == -np.inf, 0, y)
    return np.exp(_before(y, axis, -np.inf) - safe), np.exp(x - safe)


_DISTINCT = [call(distinct(-1, 1, 2, 5), axis=1), call(distinct(-1, 1, 6)), call(distinct(-1, 1, 3, 2), axis=-2)]

for _ufunc in (np.maximum, np.minimum, np.fmax, np.fmin):
    _pullback, _pushforward = accumulation(extreme_partials)
    general(_ufunc.accumulate, pullback=_pullback, pushforward=_pushforward, at=_DISTINCT)
_pullback, _pushforward = accumulation(logaddexp_partials)
general(np.logaddexp.accumulate, pullback=_pullback, pushforward=_pushforward, at=_DISTINCT)


# --- cumulative product ----------------------------------------------------------------------------------------------

_pull_product, _push_product = accumulation(multiply_partials)


def multiply_accumulate_pullback(y: Any, array: Any, axis: Any = 0, dtype: Any = None) -> Any:
    """x̄[i] = Σ ȳ[k] y[k]/x[i] over k ≥ i, in one pass where nothing is zero, subnormal or infinite.

    Not where something is going to differentiate it, as in `numpy_reductions._products_of_others`.
    """

    def pull_cumprod(y_bar: Any) -> Any:
        if is_plain(array) and is_plain(y_bar) and is_normal(y):
            terms = y_bar * conj(y)
            if is_normal(terms) or is_normal(np.where(y_bar == 0, 1, terms)):
                # In place: the terms are an array that nobody else holds.
                x_bar = _sums_from_end(terms, one_axis(axis, array.ndim), out=terms)
                x_bar /= conj(array)
                return (x_bar,)
        return _pull_product(y, array, axis)(y_bar)

    return pull_cumprod


def multiply_accumulate_pushforward(y: Any, array: Any, axis: Any = 0, dtype: Any = None) -> Any:
    def push_cumprod(array_dot: Any) -> Any:
        if is_plain(array) and is_plain(array_dot) and is_normal(y):
            terms = array_dot / array
            if is_normal(terms) or is_normal(np.where(array_dot == 0, 1, terms)):
                return y * np.cumsum(terms, axis=one_axis(axis, terms.ndim))
        return _push_product(y, array, axis)(array_dot)

    return push_cumprod


def _line(a: Any, axis: Any) -> tuple[Any, Axis]:
    return (np.reshape(a, -1), 0) if axis is None or not np.ndim(a) else (a, axis)


def cumprod_pullback(y: Any, a: Any, axis: Any = None, dtype: Any = None) -> Any:
    shape = np.shape(a)
    flat, along = _line(a, axis)
    pull_flat = multiply_accumulate_pullback(y, flat, along)

    def pull_cumprod(y_bar: Any) -> Any:
        return (np.reshape(pull_flat(y_bar)[0], shape),)

    return pull_cumprod


def cumprod_pushforward(y: Any, a: Any, axis: Any = None, dtype: Any = None) -> Any:
    flat, along = _line(a, axis)
    push_flat = multiply_accumulate_pushforward(y, flat, along)

    def push_cumprod(a_dot: Any) -> Any:
        return push_flat(np.reshape(a_dot, flat.shape))

    return push_cumprod


def cumulative_prod(x: Any, /, *, axis: Any = None, dtype: Any = None, include_initial: bool = False) -> Any:
    if axis is None and np.ndim(x) > 1:
        raise ValueError("For arrays which have more than one dimension ``axis`` argument is required.")
    along = one_axis(axis, max(np.ndim(x), 1))
    y = np.cumprod(x, axis=along, dtype=dtype)
    if not include_initial:
        return y
    return np.concatenate([np.ones(np.shape(cut(y, along, None, 1)), y.dtype), y], axis=along)


def nancumprod(a: Any, axis: Any = None, dtype: Any = None) -> Any:
    return np.cumprod(without_nan(a, 1), axis=axis, dtype=dtype)


general(np.cumprod, pullback=cumprod_pullback, pushforward=cumprod_pushforward, at=[*_FLAT, *_ALONG[:-1]])
general(
    np.multiply.accumulate,
    pullback=multiply_accumulate_pullback,
    pushforward=multiply_accumulate_pushforward,
    at=_ALONG[:-1],
)
composed(np.cumulative_prod, cumulative_prod, at=_INITIAL)
composed(np.nancumprod, nancumprod, at=[*_FLAT, *_ALONG[:-1]])


# --- reduceat: y[k] reduces array[indices[k]:indices[k+1]], or is array[indices[k]] where that slice is empty ---------


def _segments(indices: Any, n: int) -> tuple[Any, Any]:
    """Which element stands at each place when all slices are laid end to end, and in which slice that place is."""
    starts = np.asarray(indices, dtype=np.intp)
    lengths = np.maximum(np.append(starts[1:], n) - starts, 1)
    segment = np.repeat(np.arange(len(starts)), lengths)
    place = np.arange(len(segment)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return starts[segment] + place, segment


def add_at(terms: Any, positions: Any, n: int, axis: Axis) -> Any:
    """The adjoint of `np.take(x, positions, axis)` for x of length n: terms of equal position are added."""
    order = np.argsort(positions, kind="stable")
    positions = positions[order]
    first = np.flatnonzero(np.diff(positions, prepend=-1))
    lookup = np.full(n, len(first))
    lookup[positions[first]] = np.arange(len(first))
    zero = np.zeros((*terms.shape[:axis], 1, *terms.shape[axis + 1 :]), terms.dtype)
    if len(first) == len(positions):
        sums = np.take(terms, order, axis=axis)
    else:
        sums = np.add.reduceat(np.take(terms, order, axis=axis), first, axis=axis)
    return np.take(np.concatenate([sums, zero], axis=axis), lookup, axis=axis)


def add_reduceat_adjoint(y_bar: Any, array: Like, indices: Any, axis: Any = 0) -> Any:
    axis = one_axis(axis, array.ndim)
    n = array.shape[axis]
    positions, segment = _segments(indices, n)
    return add_at(np.take(y_bar, segment, axis=axis), positions, n, axis)


def _others_in_segment(array: Any, positions: Any, segment: Any, axis: Axis) -> Any:
    """For each place of the slices laid end to end, the product of all other elements of its slice."""
    x = np.take(array, positions, axis=axis)
    fresh = np.diff(segment, prepend=-1) != 0
    last = np.append(fresh[1:], True)
    shape = (1,) * axis + (-1,) + (1,) * (x.ndim - axis - 1)
    fresh, last = np.reshape(fresh, shape), np.reshape(last, shape)
    before = recurrence(np.broadcast_to(fresh * 1.0, x.shape), np.where(fresh, 0, _before(x, axis, 1)), axis)
    after = cut(_before(cut(x, axis, None, None, -1), axis, 1), axis, None, None, -1)
    backwards = recurrence(
        cut(np.broadcast_to(last * 1.0, x.shape), axis, None, None, -1),
        cut(np.where(last, 0, after), axis, None, None, -1),
        axis,
    )
    return before * cut(backwards, axis, None, None, -1)


def multiply_reduceat_pullback(y: Any, array: Any, indices: Any, axis: Any = 0) -> Any:
    def pull_reduceat(y_bar: Any) -> Any:
        along = one_axis(axis, array.ndim)
        positions, segment = _segments(indices, array.shape[along])
        others = _others_in_segment(array, positions, segment, along)
        terms = times(np.take(y_bar, segment, axis=along), conj(others))
        return (add_at(terms, positions, array.shape[along], along),)

    return pull_reduceat


def multiply_reduceat_pushforward(y: Any, array: Any, indices: Any, axis: Any = 0) -> Any:
    def push_reduceat(array_dot: Any) -> Any:
        along = one_axis(axis, array.ndim)
        positions, segment = _segments(indices, array.shape[along])
        terms = times(np.take(array_dot, positions, axis=along), _others_in_segment(array, positions, segment, along))
        return np.add.reduceat(terms, np.flatnonzero(np.diff(segment, prepend=-1)), axis=along)

    return push_reduceat


_SLICES = [
    call(real(-1, 1, 6), [0, 2, 5]),
    call(real(-1, 1, 6), [1, 4]),
    call(real(-1, 1, 6), [0, 4, 1, 5, 2, 2]),
    call(real(-1, 1, 2, 5), [3, 0, 2], axis=1),
    call(complex_(-1, 1, 4, 2), np.array([0, 3]), 0),
]

linear(np.add.reduceat, add_reduceat_adjoint, at=_SLICES)
general(
    np.multiply.reduceat,
    pullback=multiply_reduceat_pullback,
    pushforward=multiply_reduceat_pushforward,
    at=_SLICES,
)
