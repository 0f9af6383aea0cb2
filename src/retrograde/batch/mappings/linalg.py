"""Linear algebra: NumPy computes stacks of matrices, and the examples are one more axis of the stack."""

from __future__ import annotations

from typing import Any

from retrograde.batch.arguments import array, behind
from retrograde.batch.table import by_body, mapped
from retrograde.originals import np
from retrograde.rules.numpy_spectral import svd


@mapped(
    np.linalg.inv, np.linalg.det, np.linalg.slogdet, np.linalg.cholesky, np.linalg.qr, np.linalg.eig,
    np.linalg.eigvals, np.linalg.eigh, np.linalg.eigvalsh, np.linalg.svd, np.linalg.svdvals, np.linalg.pinv,
    np.linalg.matrix_power, np.linalg.cond, np.linalg.matrix_norm, np.linalg.matrix_rank, svd,
)  # fmt: skip
def _of_stacks(function: Any, level: Any, a: Any, *args: Any, **kwargs: Any) -> Any:
    if a.ndim < 2:
        return function(np.zeros(a.shape), *args, **kwargs)  # NumPy says what is wrong with it
    return function(a.primal, *args, **kwargs)


@mapped(np.linalg.solve)
def _solve(function: Any, level: Any, a: Any, b: Any) -> Any:
    a, b = array(a), array(b)
    if not level.holds(a) and a.ndim == 2 and b.ndim <= 2:
        # One factorisation: the right sides of all examples stand side by side.
        raw = b.primal
        if b.ndim == 1:
            return np.transpose(np.linalg.solve(a, np.transpose(raw)))
        n, k = b.shape
        side_by_side = np.reshape(np.moveaxis(raw, 0, 1), (n, level.size * k))
        return np.moveaxis(np.reshape(np.linalg.solve(a, side_by_side), (n, level.size, k)), 1, 0)
    is_vector = b.ndim == 1
    if is_vector:
        b = b[:, None]
    ndim = max(a.ndim, b.ndim)
    y = np.linalg.solve(level.aligned(a, ndim), level.aligned(b, ndim))
    return y[..., 0] if is_vector else y


def norm_over(level: Any, x: Any, ord: Any, axis: Any, keepdims: bool) -> Any:
    """`np.linalg.norm`, which flattens if it is told neither an order nor axes."""
    if axis is None:
        if ord is None or x.ndim == 1 or (ord in ("f", "fro") and x.ndim == 2) or (ord == 2 and x.ndim == 1):
            flat = np.ravel(x)
            y = level.wrap(np.linalg.norm(flat.primal, None if ord in ("f", "fro") else ord, axis=1))
            return np.reshape(y, (1,) * x.ndim) if keepdims else y
        axis = tuple(range(x.ndim))
    return level.wrap(np.linalg.norm(x.primal, ord, behind(axis, x.ndim), keepdims))


@mapped(np.linalg.vector_norm)
def _vector_norm(
    function: Any, level: Any, x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2
) -> Any:
    if axis is None:
        flat = np.reshape(x.primal, (level.size, x.size))
        y = np.linalg.vector_norm(flat, axis=1, ord=ord)
        return np.reshape(y, (level.size, *(1,) * x.ndim)) if keepdims else y
    return np.linalg.vector_norm(x.primal, axis=behind(axis, x.ndim), keepdims=keepdims, ord=ord)


@by_body(np.linalg.vecdot)
def _vecdot(function: Any, level: Any, x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    return np.vecdot(x1, x2, axis=axis)


@by_body(np.linalg.tensorinv)
def _tensorinv(function: Any, level: Any, a: Any, ind: int = 2) -> Any:
    size = int(np.prod(a.shape[ind:]))
    inverse = np.linalg.inv(np.reshape(a, (size, size)))
    return np.reshape(inverse, a.shape[ind:] + a.shape[:ind])
