"""Norms: every order of `np.linalg.norm` for vectors and matrices, `vector_norm`, `matrix_norm`.

A norm is one number y for each vector or matrix x, so one array serves both modes: the gradient ∂y/∂x, with
x̄ = ȳ ∂y/∂x and ẏ = Re Σ conj(∂y/∂x) ẋ. Where a norm has a kink: its gradient is zero at zero, entries that are tied
for a maximum or a minimum share equally, and a singular value of zero counts nothing in the nuclear norm.
"""

from __future__ import annotations

from typing import Any

from retrograde.originals import np
from retrograde.rules.contractions import as_array, constant
from retrograde.rules.lengths import over_length
from retrograde.rules.numpy_reductions import is_plain
from retrograde.rules.points import call, complex_, distinct, invertible, real
from retrograde.rules.products import conj, times
from retrograde.rules.table import general

Axes = int | tuple[int, ...] | None


def vector_gradient(y: Any, x: Any, order: Any, axes: tuple[int, ...]) -> Any:
    """∂y/∂x for the vector norm y (with `axes` kept) of x along `axes`, of any order but 2."""
    if order == 0:
        return np.zeros(x.shape)
    if order == 1:
        return _direction(x)
    if order in (np.inf, -np.inf):
        tied = np.abs(x) == y
        return _direction(x) * (tied / np.sum(tied, axis=axes, keepdims=True))
    # x |x|^(p−2) y^(1−p), in terms of u = x / y so that no power overflows.
    flat = (x == 0) | (y == 0)
    u = np.where(flat, 1.0, x) / np.where(y == 0, 1.0, y)
    return np.where(flat, 0.0, u * np.abs(u) ** (order - 2))


def _direction(x: Any) -> Any:
    """x / |x|, and 0 at 0."""
    if not np.iscomplexobj(x):
        return np.sign(x)
    return np.where(x == 0, 0.0, x / np.abs(np.where(x == 0, 1.0, x)))


def matrix_gradient(y: Any, x: Any, order: Any, axes: tuple[int, ...]) -> Any:
    """∂y/∂x for a matrix norm y of x over `axes`, which are those of the rows and the columns, but for Frobenius'.

    Source: Giles (2008), "An extended collection of matrix derivative results for forward and reverse mode algorithmic
            differentiation", on the spectral norm.
    """
    rows, columns = axes
    if 0 in x.shape:
        return np.zeros(x.shape, x.dtype)  # of no elements NumPy knows the largest sum, zero
    if order in (1, -1):
        return _extreme_sum(x, order, summed=rows, compared=columns)
    if order in (np.inf, -np.inf):
        return _extreme_sum(x, order, summed=columns, compared=rows)
    # The others are functions of the singular values: U diag(weights) Vᴴ.
    u, s, vh = np.linalg.svd(np.moveaxis(x, axes, (-2, -1)), full_matrices=False)
    weights = _singular_weights(constant(s), order)
    return np.moveaxis(np.matmul(u * weights[..., None, :], vh), (-2, -1), axes)


def _extreme_sum(x: Any, order: float, *, summed: int, compared: int) -> Any:
    """The gradient of the largest (or with a negative order the smallest) of the sums of |x| over one axis."""
    sums = np.sum(np.abs(constant(x)), axis=summed, keepdims=True)
    extreme = np.max if order > 0 else np.min
    tied = sums == extreme(sums, axis=compared, keepdims=True)
    return _direction(x) * (tied / np.sum(tied, axis=compared, keepdims=True))


def _singular_weights(s: Any, order: Any) -> Any:
    """The derivative of the norm by each singular value; those that differ only by rounding are tied."""
    rounding = 4 * s.shape[-1] * np.finfo(s.dtype).eps * s[..., :1]
    if order == "nuc":
        return np.where(s > rounding, 1.0, 0.0)
    extreme = s[..., :1] if order == 2 else s[..., -1:]
    tied = (np.abs(s - extreme) <= rounding) & (extreme > 0)
    return tied / np.maximum(np.sum(tied, axis=-1, keepdims=True), 1)


def _layout(x: Any, axis: Axes) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The reduced axes as numbers from zero, and y's shape with them kept."""
    axes = tuple(range(x.ndim)) if axis is None else (axis,) if isinstance(axis, (int, np.integer)) else axis
    axes = tuple(int(i) % x.ndim for i in axes)
    return axes, tuple(1 if i in axes else n for i, n in enumerate(x.shape))


def _is_euclidean(order: Any, is_matrix: bool) -> bool:
    return order in (None, "fro", "f") if is_matrix else order in (None, 2)


def _pullback(y: Any, x: Any, order: Any, axis: Axes, *, is_matrix: bool) -> Any:
    axes, kept = _layout(x, axis)

    def pull(y_bar: Any) -> tuple[Any]:
        y_kept, y_bar = np.reshape(y, kept), np.reshape(y_bar, kept)
        if _is_euclidean(order, is_matrix):
            return (over_length(y_bar, x, y_kept),)
        gradient = matrix_gradient if is_matrix else vector_gradient
        return (times(y_bar, gradient(y_kept, x, order, axes)),)

    return pull


def _pushforward(y: Any, x: Any, order: Any, axis: Axes, *, is_matrix: bool) -> Any:
    axes, kept = _layout(x, axis)

    def push(x_dot: Any) -> Any:
        y_kept = np.reshape(y, kept)
        if _is_euclidean(order, is_matrix):
            if not is_plain(y_kept):
                return np.reshape(np.sum(np.real(over_length(x_dot, conj(x), y_kept)), axis=axes), np.shape(y))
            y_dot = np.sum(np.real(conj(x) * x_dot), axis=axes, keepdims=True) / np.where(y_kept == 0, np.inf, y_kept)
        else:
            gradient = matrix_gradient if is_matrix else vector_gradient
            y_dot = np.sum(np.real(conj(gradient(y_kept, x, order, axes)) * x_dot), axis=axes)
        return np.reshape(y_dot, np.shape(y))

    return push


def _is_matrix_norm(x: Any, order: Any, axis: Axes) -> bool:
    """How `np.linalg.norm` decides: two axes mean a matrix, but no order means all elements."""
    if axis is None:
        return order is not None and x.ndim == 2
    return not isinstance(axis, (int, np.integer)) and len(axis) == 2


def norm_pullback(y: Any, x: Any, ord: Any = None, axis: Axes = None, keepdims: bool = False) -> Any:
    x = as_array(x)
    return _pullback(y, x, ord, axis, is_matrix=_is_matrix_norm(x, ord, axis))


def norm_pushforward(y: Any, x: Any, ord: Any = None, axis: Axes = None, keepdims: bool = False) -> Any:
    x = as_array(x)
    return _pushforward(y, x, ord, axis, is_matrix=_is_matrix_norm(x, ord, axis))


def vector_norm_pullback(y: Any, x: Any, *, axis: Axes = None, keepdims: bool = False, ord: Any = 2) -> Any:
    return _pullback(y, as_array(x), ord, axis, is_matrix=False)


def vector_norm_pushforward(y: Any, x: Any, *, axis: Axes = None, keepdims: bool = False, ord: Any = 2) -> Any:
    return _pushforward(y, as_array(x), ord, axis, is_matrix=False)


def matrix_norm_pullback(y: Any, x: Any, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    return _pullback(y, as_array(x), ord, (-2, -1), is_matrix=True)


def matrix_norm_pushforward(y: Any, x: Any, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    return _pushforward(y, as_array(x), ord, (-2, -1), is_matrix=True)


_ORDERS_OF_VECTORS = (None, 0, 1, 2, 3, 2.5, -1.5, np.inf, -np.inf)
_ORDERS_OF_MATRICES = (None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf)
general(
    np.linalg.norm,
    pullback=norm_pullback,
    pushforward=norm_pushforward,
    at=[
        call(real(0.1, 1)),
        call(real(-1, 1, 2, 3)),
        call(complex_(-1, 1, 2, 3, 2)),
        call(complex_(-1, 1, 2, 3), 2, -1, True),
        call(real(-1, 1, 2, 3), keepdims=True),
        call(real(-1, 1, 2, 3), None, (0,)),
        call(real(-1, 1, 2, 3, 2), None, (2, 0)),
        *(call(distinct(0.1, 2, 4), order) for order in _ORDERS_OF_VECTORS),
        *(call(complex_(0.1, 1, 2, 3), order, 0) for order in _ORDERS_OF_VECTORS),
        *(call(distinct(0.1, 2, 2, 3), order) for order in _ORDERS_OF_MATRICES),
        *(call(complex_(-1, 1, 2, 3, 2), order, (-1, 0), True) for order in _ORDERS_OF_MATRICES),
    ],
)
general(
    np.linalg.vector_norm,
    pullback=vector_norm_pullback,
    pushforward=vector_norm_pushforward,
    at=[
        call(real(-1, 1, 2, 3)),
        call(complex_(-1, 1, 2, 3, 2), axis=(0, -1), ord=3),
        call(distinct(0.1, 2, 2, 3), axis=1, keepdims=True, ord=np.inf),
    ],
)
general(
    np.linalg.matrix_norm,
    pullback=matrix_norm_pullback,
    pushforward=matrix_norm_pushforward,
    at=[
        call(complex_(-1, 1, 2, 3)),
        call(real(-1, 1, 2, 3, 2), keepdims=True, ord=1),
        call(invertible(2, 3, 3), ord="nuc"),
    ],
)
