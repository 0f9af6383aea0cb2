"""Products of arrays, which BLAS computes of all examples in one call where one factor is the same for all."""

from __future__ import annotations

import math
from typing import Any

from numpy.lib.array_utils import normalize_axis_index

from retrograde.batch.arguments import array
from retrograde.batch.table import by_body, mapped
from retrograde.originals import np
from retrograde.trace.sparse_matrices import by_columns, by_rows


@mapped(np.matmul, np.linalg.matmul)
def _matmul(function: Any, level: Any, a: Any, b: Any, /) -> Any:
    a, b = array(a), array(b)
    if a.ndim == 0 or b.ndim == 0:
        return np.matmul(np.zeros(a.shape), np.zeros(b.shape))  # NumPy says what is wrong with it
    held_a, held_b = level.holds(a), level.holds(b)
    if not held_b:
        raw = a.primal
        if a.ndim == 1:
            # One row an example: (examples, k) @ (…, k, m).
            return np.matmul(raw, b) if b.ndim <= 2 else _stacked(level, a, b)
        if b.ndim == 2 and a.ndim == 2:
            # All rows of all examples in one matrix.
            rows = np.matmul(np.reshape(raw, (level.size * a.shape[0], a.shape[1])), b)
            return np.reshape(rows, (level.size, a.shape[0], b.shape[1]))
        return np.matmul(raw, b) if b.ndim == 1 else _stacked(level, a, b)
    if not held_a:
        raw = b.primal
        if b.ndim == 1:
            # a @ x for each row x: X @ aᵀ.
            return np.matmul(raw, np.transpose(a)) if a.ndim <= 2 else _stacked(level, a, b)
        return _stacked(level, a, b)
    if a.ndim == b.ndim == 1:
        if a.shape != b.shape:
            return np.matmul(np.zeros(a.shape), np.zeros(b.shape))
        return np.einsum("bi,bi->b", a.primal, b.primal)
    return _stacked(level, a, b)


def _stacked(level: Any, a: Any, b: Any) -> Any:
    """Stacks of matrices, with vectors as matrices of one row or column."""
    ndim = max(a.ndim, b.ndim, 2)
    row, column = a.ndim == 1, b.ndim == 1
    left = _as_matrix(level, a, ndim, -2)
    right = _as_matrix(level, b, ndim, -1)
    y = np.matmul(left, right)
    if row:
        y = y[..., 0, :]
    return y[..., 0] if column else y


def _as_matrix(level: Any, x: Any, ndim: int, place: int) -> Any:
    if x.ndim == 1:
        x = np.expand_dims(x, place)
    return level.aligned(x, ndim)


@mapped(by_rows, by_columns)
def _sparse(function: Any, level: Any, data: Any, indices: Any, indptr: Any, shape: Any, x: Any) -> Any:
    x = array(x)
    if level.holds(data):
        # One matrix an example: their numbers one behind the other, as those of a matrix with blocks on its diagonal.
        return _of_blocks(function, level, data.primal, indices, indptr, shape, x)
    # All examples are columns of one matrix.
    raw = np.moveaxis(x.primal, 0, -1)
    y = function(data, indices, indptr, shape, np.reshape(raw, (shape[1], -1)))
    return np.moveaxis(np.reshape(y, (shape[0], *raw.shape[1:])), -1, 0)


def _of_blocks(function: Any, level: Any, data: Any, indices: Any, indptr: Any, shape: Any, x: Any) -> Any:
    n, (rows, columns), stored = level.size, shape, len(indices)
    across = columns if function is by_rows else rows
    indices = (np.asarray(indices) + across * np.arange(n)[:, None]).ravel()
    ends = (np.asarray(indptr)[1:] + stored * np.arange(n)[:, None]).ravel()
    raw = x.primal if level.holds(x) else np.broadcast_to(x, (n, *x.shape))
    y = function(
        np.reshape(data, -1),
        indices,
        np.concatenate([np.zeros(1, ends.dtype), ends]),
        (n * rows, n * columns),
        np.reshape(raw, (n * columns, *raw.shape[2:])),
    )
    return np.reshape(y, (n, rows, *raw.shape[2:]))


@by_body(np.dot)
def _dot(function: Any, level: Any, a: Any, b: Any, out: Any = None) -> Any:
    a, b = array(a), array(b)
    if a.ndim == 0 or b.ndim == 0:
        return a * b
    if a.ndim <= 2 and b.ndim <= 2:
        return np.matmul(a, b)
    return np.tensordot(a, b, ([a.ndim - 1], [max(b.ndim - 2, 0)]))


@by_body(np.inner)
def _inner(function: Any, level: Any, a: Any, b: Any, /) -> Any:
    a, b = array(a), array(b)
    return a * b if a.ndim == 0 or b.ndim == 0 else np.tensordot(a, b, ([a.ndim - 1], [b.ndim - 1]))


@by_body(np.vdot)
def _vdot(function: Any, level: Any, a: Any, b: Any, /) -> Any:
    a = np.ravel(array(a))
    return np.matmul(np.conjugate(a) if a.dtype.kind == "c" else a, np.ravel(array(b)))


@by_body(np.outer, np.linalg.outer)
def _outer(function: Any, level: Any, a: Any, b: Any, out: Any = None) -> Any:
    return np.ravel(array(a))[:, None] * np.ravel(array(b))[None, :]


@by_body(np.multiply.outer)
def _multiply_outer(function: Any, level: Any, A: Any, B: Any, **kwargs: Any) -> Any:
    A, B = array(A), array(B)
    return np.reshape(A, (*A.shape, *(1,) * B.ndim)) * B


@by_body(np.tensordot, np.linalg.tensordot)
def _tensordot(function: Any, level: Any, a: Any, b: Any, axes: Any = 2) -> Any:
    a, b = array(a), array(b)
    if np.ndim(axes) == 0 and not isinstance(axes, list | tuple):
        n = int(axes)
        of_a, of_b = list(range(a.ndim - n, a.ndim)), list(range(n))
    else:
        of_a, of_b = ([one] if np.ndim(one) == 0 else list(one) for one in axes)
        of_a = [normalize_axis_index(i, a.ndim) for i in of_a]
        of_b = [normalize_axis_index(i, b.ndim) for i in of_b]
    if [a.shape[i] for i in of_a] != [b.shape[i] for i in of_b]:
        raise ValueError("shape-mismatch for sum")
    free_a = [i for i in range(a.ndim) if i not in of_a]
    free_b = [i for i in range(b.ndim) if i not in of_b]
    summed = math.prod(a.shape[i] for i in of_a)
    shape_a, shape_b = tuple(a.shape[i] for i in free_a), tuple(b.shape[i] for i in free_b)
    left = np.reshape(np.transpose(a, free_a + of_a), (math.prod(shape_a), summed))
    right = np.reshape(np.transpose(b, of_b + free_b), (summed, math.prod(shape_b)))
    return np.reshape(np.matmul(left, right), shape_a + shape_b)


@by_body(np.kron)
def _kron(function: Any, level: Any, a: Any, b: Any) -> Any:
    a, b = array(a), array(b)
    ndim = max(a.ndim, b.ndim)
    shape_a, shape_b = (1,) * (ndim - a.ndim) + a.shape, (1,) * (ndim - b.ndim) + b.shape
    a = np.reshape(a, tuple(n for m in shape_a for n in (m, 1)))
    b = np.reshape(b, tuple(n for m in shape_b for n in (1, m)))
    return np.reshape(a * b, tuple(m * n for m, n in zip(shape_a, shape_b, strict=True)))


@mapped(np.cross, np.linalg.cross)
def _cross(
    function: Any, level: Any, a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: Any = None
) -> Any:
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = np.moveaxis(array(a), axisa, -1), np.moveaxis(array(b), axisb, -1)
    ndim = max(a.ndim, b.ndim)
    y = np.cross(level.aligned(a, ndim), level.aligned(b, ndim))
    return y if y.ndim <= ndim else np.moveaxis(y, -1, normalize_axis_index(axisc, ndim) + 1)


@mapped(np.einsum)
def _einsum(function: Any, level: Any, *operands: Any, optimize: Any = False, **kwargs: Any) -> Any:
    """One more letter, which all operands have that differ between the examples."""
    from retrograde.rules.numpy_einsum import explicit, read

    subscripts, places = read(operands)
    arrays = [array(operands[place]) for place in places]
    inputs, output = explicit(subscripts, tuple(a.ndim for a in arrays))
    used = set("".join(inputs))
    letter = next(x for x in "bcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZa" if x not in used)
    terms = [letter + labels if level.holds(a) else labels for labels, a in zip(inputs, arrays, strict=True)]
    raw = [a.primal if level.holds(a) else a for a in arrays]
    return np.einsum(f"{','.join(terms)}->{letter}{output}", *raw, optimize=optimize, **kwargs)


@by_body(np.convolve)
def _convolve(function: Any, level: Any, a: Any, v: Any, mode: str = "full") -> Any:
    """Each element of the result is the product of a window of the longer one with the shorter one, turned round."""
    a, v = np.ravel(array(a)), np.ravel(array(v))
    if v.size > a.size:
        a, v = v, a
    if v.size == 0:
        raise ValueError("v cannot be empty")
    m = v.size
    if mode == "same":
        before = m - 1 - (m - 1) // 2
        around = (before, m - 1 - before)
    else:
        around = {"full": (m - 1, m - 1), "valid": (0, 0)}[mode]
    padded = np.concatenate([np.zeros(around[0], a.dtype), a, np.zeros(around[1], a.dtype)])
    return np.matmul(np.lib.stride_tricks.sliding_window_view(padded, m), v[::-1])


@by_body(np.correlate)
def _correlate(function: Any, level: Any, a: Any, v: Any, mode: str = "valid") -> Any:
    a, v = np.ravel(array(a)), np.ravel(array(v))
    conjugate = np.conjugate(v) if v.dtype.kind == "c" else v
    if v.size <= a.size:
        return np.convolve(a, conjugate[::-1], mode)
    # NumPy correlates the shorter with the longer the other way round, and turns the result.
    return np.convolve(conjugate, a[::-1], mode)[::-1]
