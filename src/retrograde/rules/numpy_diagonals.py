"""Triangles and diagonals of matrices."""

from __future__ import annotations

from typing import Any

from retrograde.originals import np
from retrograde.rules.numpy_indexing import scatter
from retrograde.rules.points import call, complex_, real
from retrograde.rules.products import unbroadcast
from retrograde.rules.table import Like, composed, linear


def tril_adjoint(y_bar: Any, m: Like, k: int = 0) -> Any:
    return unbroadcast(np.tril(y_bar, k), m.shape)


def triu_adjoint(y_bar: Any, m: Like, k: int = 0) -> Any:
    return unbroadcast(np.triu(y_bar, k), m.shape)


def _on_diagonal(values: Any, shape: tuple[int, ...], offset: int, axis1: int, axis2: int) -> Any:
    """Zeros of `shape` with `values` (…, diagonal) on a diagonal of two axes: the adjoint of reading it.

    In the flattened matrix a diagonal is every (columns + 1)-th element, so that a slice names it.
    """
    axis1, axis2 = axis1 % len(shape), axis2 % len(shape)
    rows, columns = shape[axis1], shape[axis2]
    batch = tuple(n for axis, n in enumerate(shape) if axis not in (axis1, axis2))
    start = offset if offset >= 0 else -offset * columns
    places = slice(start, start + np.shape(values)[-1] * (columns + 1), columns + 1)
    flat = scatter(values, (Ellipsis, places), (*batch, rows * columns))
    return np.moveaxis(np.reshape(flat, (*batch, rows, columns)), (-2, -1), (axis1, axis2))


def diag_adjoint(y_bar: Any, v: Like, k: int = 0) -> Any:
    return np.diagonal(y_bar, k) if v.ndim == 1 else _on_diagonal(y_bar, v.shape, k, 0, 1)


def diagflat_adjoint(y_bar: Any, v: Like, k: int = 0) -> Any:
    return np.reshape(np.diagonal(y_bar, k), v.shape)


def diagonal_adjoint(y_bar: Any, a: Like, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    return _on_diagonal(y_bar, a.shape, offset, axis1, axis2)


def trace_adjoint(y_bar: Any, a: Like, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    rows, columns = a.shape[axis1], a.shape[axis2]
    length = max(0, min(rows + min(offset, 0), columns - max(offset, 0)))
    along = np.broadcast_to(np.expand_dims(y_bar, -1), (*np.shape(y_bar), length))
    return _on_diagonal(along, a.shape, offset, axis1, axis2)


_TRIANGLE_POINTS = [
    call(complex_(-1, 1, 3, 2)),
    call(real(-1, 1, 2, 3), 1),
    call(real(-1, 1, 2, 3, 3), k=-1),
    call(real(-1, 1, 3)),  # one dimension is broadcast to a square matrix
]
_DIAGONAL_POINTS = [
    call(complex_(-1, 1, 3, 3)),
    call(real(-1, 1, 2, 4), 1),
    call(real(-1, 1, 4, 2), -2),
    call(real(-1, 1, 2, 3), 3),
    call(real(-1, 1, 2, 3, 4), offset=-1, axis1=-1, axis2=0),
    call(real(-1, 1, 2, 3, 3), 0, 1, 2),
]
linear(np.tril, tril_adjoint, at=_TRIANGLE_POINTS)
linear(np.triu, triu_adjoint, at=_TRIANGLE_POINTS)
linear(
    np.diag,
    diag_adjoint,
    at=[
        call(complex_(-1, 1, 3)),
        call(real(-1, 1, 2), -1),
        call(complex_(-1, 1, 3, 3)),
        call(real(-1, 1, 2, 4), k=2),
        call(real(-1, 1, 4, 2), -1),
    ],
)
linear(np.diagflat, diagflat_adjoint, at=[call(complex_(-1, 1, 2, 2)), call(real(-1, 1, 2), 1), call(real(-1, 1), -1)])
linear(np.diagonal, diagonal_adjoint, at=_DIAGONAL_POINTS)


def linalg_diagonal_body(x: Any, /, *, offset: int = 0) -> Any:
    return np.diagonal(x, offset, axis1=-2, axis2=-1)


composed(
    np.linalg.diagonal,
    linalg_diagonal_body,
    at=[call(real(-1, 1, 3, 3)), call(real(-1, 1, 2, 3, 4), offset=1)],
)
linear(np.trace, trace_adjoint, at=_DIAGONAL_POINTS)
