"""Derivatives in parameters for which there is no closed formula: the order of a Bessel function, a shape, a degree.

`slope(f, orders, *args)` differentiates a function `orders[i]` times in argument i: `f` is interpolated by a
Chebyshev polynomial in 16 points around the argument, which is differentiated exactly (Trefethen (2013),
"Approximation Theory and Approximation Practice", theorem 8.2 and chapter 21). Where `f` is analytic the error of this
falls geometrically, and what is left is the rounding of `f` itself, some hundred times amplified.

The half-width of the interval is found for each element, by an estimate of the error from the last coefficients. The
accuracy is 1e-11 of the larger of the derivative and the function, a hundredth of that as a rule, where SciPy's
function is good to 1e-14; each further order costs one or two digits. Where no width gives six digits the result is
NaN, and not a wrong number.

A derivative of `slope` is a `slope` of the next order, so that one rule serves all orders up to `MOST`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

from numpy.polynomial import chebyshev
from scipy import special

from retrograde.errors import MissingRuleError
from retrograde.originals import np
from retrograde.rules.points import call, real
from retrograde.rules.scipy_special_dispatch import over_arguments, overridable, pushed
from retrograde.rules.table import general

Array = Any

MOST = 4
_POINTS = 16
_GOOD = 5e-12  # the estimated relative error with which the search ends; the error itself is smaller
_BLOCK = 1 << 12  # elements that are computed at a time, to bound the memory


@overridable
def slope(function: Callable[..., Any], orders: tuple[int, ...], *args: Any) -> Array:
    """∂^orders function(*args), elementwise in broadcast arguments.

    Args:
        function: analytic in the arguments that are differentiated.
        orders: how often to differentiate in each argument.

    Raises:
        MissingRuleError: more than `MOST` derivatives.
    """
    if sum(orders) > MOST:
        raise MissingRuleError(
            f"{function.__name__} has no derivative of order {sum(orders)} in its parameters; {MOST} is the highest",
            "dropgrad(x) as its argument, where that derivative is not wanted",
        )
    varied = [i for i, order in enumerate(orders) if order]
    arrays = [_in_double(x) if i in varied else np.asarray(x) for i, x in enumerate(args)]
    shape = np.broadcast_shapes(*(x.shape for x in arrays))
    flat = [np.broadcast_to(x, shape).reshape(-1) for x in arrays]
    with np.errstate(all="ignore"):
        blocks = [
            _slope_of_block(function, orders, varied, [x[start : start + _BLOCK] for x in flat])
            for start in range(0, max(flat[0].size, 1), _BLOCK)
        ]
    return np.concatenate(blocks).reshape(shape)[()]


def _in_double(x: Any) -> Array:
    return np.asarray(x, np.result_type(x, np.float64))


def _slope_of_block(function: Any, orders: tuple[int, ...], varied: list[int], args: list[Array]) -> Array:
    """The derivative for flat arguments of one size."""
    found = [_one_slope(function, orders[i], i, args) for i in varied]
    if len(varied) == 1:
        return found[0][0]
    # Several arguments: a grid of points, with the widths that each argument has found for itself.
    grid = list(args)
    for axis, (i, (_, width)) in enumerate(zip(varied, found, strict=True)):
        points = _nodes().reshape((1,) * axis + (-1,) + (1,) * (len(varied) - axis))
        grid[i] = args[i] + width * points
    values = np.asarray(function(*grid))
    for i, (_, width) in zip(varied, found, strict=True):
        # The axes are used up from the front.
        values = np.tensordot(_weights(orders[i]), values, 1) / width ** orders[i]
    return values


def _one_slope(function: Any, order: int, i: int, args: list[Array]) -> tuple[Array, Array]:
    """The derivative in argument `i` alone, and the half-width that gave the smallest estimate of its error."""
    p = args[i]
    best = np.full(p.shape, np.inf)
    size = np.zeros(p.shape)
    width = np.full(p.shape, np.nan)
    result: Array = np.full(p.shape, np.nan)
    todo = np.arange(p.size)
    nodes, weights, last = _nodes(), _weights(order), _last(order)
    for h in _widths(p):
        some = [x[todo] for x in args]
        half = np.broadcast_to(h, p.shape)[todo]
        some[i] = some[i] + half * nodes[:, None]
        values = np.asarray(function(*some))
        scale = np.abs(half) ** order
        d = weights @ values / scale
        tail = np.abs(last @ values)
        rounding = np.abs(weights) @ np.abs(values) * np.finfo(float).eps
        error = np.where(np.isfinite(d), (rounding + tail.sum(axis=0)) / scale, np.inf)
        if np.iscomplexobj(d) and not np.iscomplexobj(result):
            result = result.astype(complex)
        better = error < best[todo]
        at = todo[better]
        best[at], result[at], width[at] = error[better], d[better], half[better]
        size[at] = np.max(np.abs(values[:, better]), axis=0, initial=0)
        todo = todo[~(best[todo] <= _GOOD * np.abs(result[todo]))]
        if not todo.size:
            break
    resolved = (best <= 1e-6 * np.abs(result)) | (best <= 1e-11 * size)
    return np.where(resolved, result, np.nan), width


def _widths(p: Array) -> Iterator[Array]:
    """Half-widths to try, the likeliest first; those in proportion to `p` serve where zero is a singularity."""
    yield from (0.5, 0.125, 2.0, 0.03125)
    near = np.abs(p)
    # The width of a distribution of mean p.
    yield 0.5 * np.sqrt(near)
    for share in (0.5, 0.125, 0.03125):
        yield np.where(near > 0, share * near, 2.0**-7)
    yield 8.0
    yield 2.0**-10


@functools.cache
def _nodes() -> Array:
    """Chebyshev's points of the first kind."""
    return np.cos((np.arange(_POINTS) + 0.5) * (np.pi / _POINTS))


@functools.cache
def _transform() -> Array:
    """The matrix from values at the nodes to Chebyshev coefficients."""
    k = np.arange(_POINTS)
    matrix = 2 / _POINTS * np.cos(np.outer(k, (k + 0.5) * (np.pi / _POINTS)))
    matrix[0] /= 2
    return matrix


@functools.cache
def _at_centre(order: int) -> Array:
    """The derivatives at 0 of T₀, T₁, …"""
    return np.array([chebyshev.chebval(0.0, chebyshev.chebder(row, order)) for row in np.eye(_POINTS)])


@functools.cache
def _weights(order: int) -> Array:
    """The derivative at the centre as a sum over the values at the nodes."""
    return _at_centre(order) @ _transform()


@functools.cache
def _last(order: int) -> Array:
    """What the last two coefficients add to the derivative; both, since every other one vanishes by symmetry."""
    size = np.max(np.abs(_at_centre(order)))
    return size * _transform()[-2:]


def slope_pullback(y: Any, function: Any, orders: tuple[int, ...], *args: Any) -> Any:
    def pull(y_bar: Any) -> tuple[Any, ...]:
        return over_arguments(y_bar, next_slopes(function, orders), args)

    return pull


def slope_pushforward(y: Any, function: Any, orders: tuple[int, ...], *args: Any) -> Any:
    def push(*dots: Any) -> Any:
        return pushed(dots, next_slopes(function, orders), args, np.shape(y))

    return push


def next_slopes(function: Any, orders: tuple[int, ...]) -> list[Any]:
    """The derivatives of a slope, one for each argument."""
    raised = [(*orders[:i], order + 1, *orders[i + 1 :]) for i, order in enumerate(orders)]
    return [functools.partial(slope, function, higher) for higher in raised]


general(
    slope,
    args=slice(2, None),
    pullback=slope_pullback,
    pushforward=slope_pushforward,
    at=[
        call(special.jv, (1, 0), real(0.5, 2, 2, 1), real(1, 3, 3)),
        call(special.hyp1f1, (0, 1, 0), real(0.5, 2, 2), real(1.5, 3, 2), real(-1, 1)),
    ],
)
