"""Products of vectors, matrices and tensors; einsum has a file of its own.

Every product here is linear in each of its two arguments by itself. The adjoints pass views (`swapaxes`) to BLAS and
copy nothing but what a complex conjugate must; vectors go through outer products and matrix-vector products.

Source: Giles (2008), "An extended collection of matrix derivative results for forward and reverse mode algorithmic
differentiation", 2.2.2: for C = A B, Ā = C̄ Bᴴ and B̄ = Aᴴ C̄.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from retrograde.originals import np
from retrograde.rules import products
from retrograde.rules.contractions import as_array, contracted, matmul, matmul_from_left, outer
from retrograde.rules.numpy_indexing import scatter
from retrograde.rules.points import call, complex_, real
from retrograde.rules.products import reshaped, size_of, times, unbroadcast
from retrograde.rules.table import Like, multilinear

# --- matmul, matvec, vecmat, vecdot ----------------------------------------------------------------------------------


def conj(x: Any) -> Any:
    """`products.conj`, which needs not be asked for real arrays."""
    is_real = type(x) is float or (type(x) is np.ndarray and x.dtype.kind == "f")
    return x if is_real else products.conj(x)


def hermitian(a: Any) -> Any:
    """The conjugate matrix transpose, likewise."""
    return a.mT if type(a) is np.ndarray and a.dtype.kind == "f" else products.hermitian(a)


def _matvec_adjoint_vector(y_bar: Any, matrix: Any, shape: tuple[int, ...]) -> Any:
    """matrixᴴ y_bar for a matrix (…, n, k) and y_bar (…, n), summed to the `shape` of a vector (…, k)."""
    if matrix.ndim == 2 and y_bar.ndim == 1:
        return matmul_from_left(hermitian(matrix), y_bar)
    x_bar = matmul_from_left(hermitian(matrix), y_bar[..., None])
    return unbroadcast(x_bar[..., 0], shape)


def matmul_adjoint_a(y_bar: Any, a: Like, b: Any) -> Any:
    """C̄ Bᴴ.

    Shapes:  a (…, n, k) or (k,); b (…, k, m) or (k,); y_bar (…, n, m), without the axis that a vector does not have.
    """
    b = as_array(b)
    if b.ndim == 1:
        return times(y_bar, conj(b)) if a.ndim == 1 else unbroadcast(outer(y_bar, conj(b)), a.shape)
    if a.ndim == 1:
        return _matvec_adjoint_vector(y_bar, hermitian(conj(b)), a.shape)
    return unbroadcast(matmul(y_bar, hermitian(b)), a.shape)


def matmul_adjoint_b(y_bar: Any, a: Any, b: Like) -> Any:
    """Aᴴ C̄, with the shapes of `matmul_adjoint_a`."""
    a = as_array(a)
    if a.ndim == 1:
        if b.ndim == 1:
            return times(y_bar, conj(a))
        b_bar = outer(y_bar, conj(a))
        return unbroadcast(np.swapaxes(b_bar, -1, -2), b.shape)
    if b.ndim == 1:
        return _matvec_adjoint_vector(y_bar, a, b.shape)
    if b.ndim == 2 and a.ndim > 2:
        # One product of tall matrices instead of a stack of small ones that would have to be summed.
        a = np.reshape(a, (size_of(a.shape[:-1], None), a.shape[-1]))
        y_bar = np.reshape(y_bar, (a.shape[0], b.shape[1]))
    return unbroadcast(matmul_from_left(hermitian(a), y_bar), b.shape)


def matvec_adjoint_matrix(y_bar: Any, x1: Like, x2: Any) -> Any:
    """The outer product of y_bar (…, n) and x2 (…, k)."""
    return unbroadcast(outer(y_bar, conj(as_array(x2))), x1.shape)


def matvec_adjoint_vector(y_bar: Any, x1: Any, x2: Like) -> Any:
    return _matvec_adjoint_vector(y_bar, as_array(x1), x2.shape)


def vecmat_adjoint_vector(y_bar: Any, x1: Like, x2: Any) -> Any:
    """y = x̄1 X2, so that x1_bar = X2 conj(y_bar): NumPy conjugates the vector."""
    return _matvec_adjoint_vector(conj(y_bar), hermitian(as_array(x2)), x1.shape)


def vecmat_adjoint_matrix(y_bar: Any, x1: Any, x2: Like) -> Any:
    return unbroadcast(np.swapaxes(outer(y_bar, as_array(x1)), -1, -2), x2.shape)


def vecdot_adjoint_a(y_bar: Any, x1: Like, x2: Any, *, axis: int = -1) -> Any:
    """y = Σ conj(x1) x2, so that x1_bar = conj(y_bar) x2: NumPy conjugates the first."""
    return _vecdot_adjoint(conj(y_bar), as_array(x2), x1.shape, axis)


def vecdot_adjoint_b(y_bar: Any, x1: Any, x2: Like, *, axis: int = -1) -> Any:
    return _vecdot_adjoint(y_bar, as_array(x1), x2.shape, axis)


def _vecdot_adjoint(y_bar: Any, other: Any, shape: tuple[int, ...], axis: int) -> Any:
    """y_bar times the other vector, in the `shape` of the one; `axis` counts in each of them by itself."""
    places = list(range(len(shape)))
    places.append(places.pop(axis))
    if np.ndim(y_bar):
        y_bar = y_bar[..., None]
    along_last = times(y_bar, np.moveaxis(other, axis, -1))
    return np.moveaxis(unbroadcast(along_last, tuple(shape[i] for i in places)), -1, axis)


_MATMULS = [
    call(real(-1, 1, 2, 3), real(-1, 1, 3, 4)),
    call(complex_(-1, 1, 2, 3), complex_(-1, 1, 3, 2)),
    call(real(-1, 1, 3), real(-1, 1, 3)),
    call(complex_(-1, 1, 3), complex_(-1, 1, 3, 2)),
    call(complex_(-1, 1, 2, 3), complex_(-1, 1, 3)),
    call(real(-1, 1, 2, 2, 3), real(-1, 1, 3)),
    call(real(-1, 1, 3), real(-1, 1, 2, 3, 2)),
    call(real(-1, 1, 2, 2, 3), real(-1, 1, 3, 2)),
    call(complex_(-1, 1, 2, 3), complex_(-1, 1, 2, 3, 2)),
    call(real(-1, 1, 2, 1, 2, 3), real(-1, 1, 3, 3, 2)),
    call(real(-1, 1, 0, 3), real(-1, 1, 3, 2)),
    call(real(-1, 1, 2, 0), real(-1, 1, 0, 2)),
    call(real(-1, 1, 2, 3), complex_(-1, 1, 3, 2)),
]
_VECDOTS = [
    call(complex_(-1, 1, 3), complex_(-1, 1, 3)),
    call(real(-1, 1, 2, 3), real(-1, 1, 3)),
    call(complex_(-1, 1, 2, 1, 3), complex_(-1, 1, 4, 3)),
    call(real(-1, 1, 3, 2), real(-1, 1, 2, 3, 2), axis=-2),
    call(real(-1, 1, 3, 1, 2), real(-1, 1, 3, 4, 1), axis=0),
]
multilinear(np.matmul, matmul_adjoint_a, matmul_adjoint_b, at=_MATMULS)
multilinear(np.linalg.matmul, matmul_adjoint_a, matmul_adjoint_b, at=[_MATMULS[1], _MATMULS[8]])
multilinear(np.vecdot, vecdot_adjoint_a, vecdot_adjoint_b, at=_VECDOTS)
multilinear(np.linalg.vecdot, vecdot_adjoint_a, vecdot_adjoint_b, at=_VECDOTS)
if hasattr(np, "matvec"):  # NumPy 2.2
    multilinear(
        np.matvec,
        matvec_adjoint_matrix,
        matvec_adjoint_vector,
        at=[
            call(complex_(-1, 1, 2, 3), complex_(-1, 1, 3)),
            call(real(-1, 1, 2, 2, 3), real(-1, 1, 3)),
            call(complex_(-1, 1, 2, 3), complex_(-1, 1, 4, 1, 3)),
        ],
    )
    multilinear(
        np.vecmat,
        vecmat_adjoint_vector,
        vecmat_adjoint_matrix,
        at=[
            call(complex_(-1, 1, 3), complex_(-1, 1, 3, 2)),
            call(real(-1, 1, 3), real(-1, 1, 2, 3, 2)),
            call(complex_(-1, 1, 4, 1, 3), complex_(-1, 1, 3, 2)),
        ],
    )


# --- tensordot, dot, inner, outer, kron ------------------------------------------------------------------------------


def _contracted_axes(axes: Any, a_ndim: int, b_ndim: int) -> tuple[list[int], list[int]]:
    """The axes that `np.tensordot` sums over, of each argument, in any form that it takes, as numbers from zero."""
    if np.ndim(axes) == 0 and not isinstance(axes, (list, tuple)):
        n = int(axes)
        return list(range(a_ndim - n, a_ndim)), list(range(n))
    of_a, of_b = ([one] if np.ndim(one) == 0 else list(one) for one in axes)
    return [i % a_ndim for i in of_a], [i % b_ndim for i in of_b]


def _free(axes: Sequence[int], ndim: int) -> list[int]:
    return [i for i in range(ndim) if i not in axes]


def _tensordot_adjoint_a(y_bar: Any, a_ndim: int, b: Any, of_a: Sequence[int], of_b: Sequence[int]) -> Any:
    """Contract y_bar (free axes of a, free axes of b) with the free axes of b, and put a's axes in their order."""
    free_a, free_b = _free(of_a, a_ndim), _free(of_b, b.ndim)
    axes = (range(len(free_a), len(free_a) + len(free_b)), free_b)
    a_bar = contracted(lambda y_bar, b: np.tensordot(y_bar, b, axes), y_bar, conj(b))
    order = free_a + [of_a[i] for i in np.argsort(of_b)]
    return np.transpose(a_bar, np.argsort(order).tolist())


def _tensordot_adjoint_b(y_bar: Any, a: Any, b_ndim: int, of_a: Sequence[int], of_b: Sequence[int]) -> Any:
    free_a, free_b = _free(of_a, a.ndim), _free(of_b, b_ndim)
    axes = (free_a, range(len(free_a)))
    b_bar = contracted(lambda y_bar, a: np.tensordot(a, y_bar, axes), y_bar, conj(a))
    order = [of_b[i] for i in np.argsort(of_a)] + free_b
    return np.transpose(b_bar, np.argsort(order).tolist())


def tensordot_adjoint_a(y_bar: Any, a: Like, b: Any, axes: Any = 2) -> Any:
    b = as_array(b)
    return _tensordot_adjoint_a(y_bar, a.ndim, b, *_contracted_axes(axes, a.ndim, b.ndim))


def tensordot_adjoint_b(y_bar: Any, a: Any, b: Like, axes: Any = 2) -> Any:
    a = as_array(a)
    return _tensordot_adjoint_b(y_bar, a, b.ndim, *_contracted_axes(axes, a.ndim, b.ndim))


def dot_adjoint_a(y_bar: Any, a: Like, b: Any) -> Any:
    """As `np.matmul` up to two dimensions; beyond, a's last axis with b's last but one; a number multiplies."""
    b = as_array(b)
    if a.ndim == 0 or b.ndim == 0:
        return unbroadcast(times(y_bar, conj(b)), a.shape)
    if a.ndim <= 2 and b.ndim <= 2:
        return matmul_adjoint_a(y_bar, a, b)
    return _tensordot_adjoint_a(y_bar, a.ndim, b, [a.ndim - 1], [max(b.ndim - 2, 0)])


def dot_adjoint_b(y_bar: Any, a: Any, b: Like) -> Any:
    a = as_array(a)
    if a.ndim == 0 or b.ndim == 0:
        return unbroadcast(times(y_bar, conj(a)), b.shape)
    if a.ndim <= 2 and b.ndim <= 2:
        return matmul_adjoint_b(y_bar, a, b)
    return _tensordot_adjoint_b(y_bar, a, b.ndim, [a.ndim - 1], [max(b.ndim - 2, 0)])


def inner_adjoint_a(y_bar: Any, a: Like, b: Any) -> Any:
    """The last axes with each other; a number multiplies."""
    b = as_array(b)
    if a.ndim == 0 or b.ndim == 0:
        return unbroadcast(times(y_bar, conj(b)), a.shape)
    if a.ndim == b.ndim == 2:
        return matmul(y_bar, conj(b))
    return _tensordot_adjoint_a(y_bar, a.ndim, b, [a.ndim - 1], [b.ndim - 1])


def inner_adjoint_b(y_bar: Any, a: Any, b: Like) -> Any:
    a = as_array(a)
    if a.ndim == 0 or b.ndim == 0:
        return unbroadcast(times(y_bar, conj(a)), b.shape)
    if a.ndim == b.ndim == 2:
        return matmul(np.swapaxes(y_bar, 0, 1), conj(a))
    # y's axes are a's before b's, so b_bar comes out with its summed axis first.
    return _tensordot_adjoint_b(y_bar, a, b.ndim, [a.ndim - 1], [b.ndim - 1])


def vdot_adjoint_a(y_bar: Any, a: Like, b: Any) -> Any:
    """y = Σ conj(a) b over all elements in order, whatever the shapes."""
    a_bar = times(y_bar if type(y_bar) is float else conj(y_bar), b)
    return a_bar if type(a_bar) is np.ndarray and a_bar.shape == a.shape else np.reshape(a_bar, a.shape)


def vdot_adjoint_b(y_bar: Any, a: Any, b: Like) -> Any:
    b_bar = times(y_bar, a)
    return b_bar if type(b_bar) is np.ndarray and b_bar.shape == b.shape else np.reshape(b_bar, b.shape)


def outer_adjoint_a(y_bar: Any, a: Like, b: Any) -> Any:
    """y (n, m) of all elements of a and of b."""
    return reshaped(matmul(y_bar, conj(_flat(b))), a.shape)


def outer_adjoint_b(y_bar: Any, a: Any, b: Like) -> Any:
    return reshaped(matmul(y_bar.T, conj(_flat(a))), b.shape)


def _flat(x: Any) -> Any:
    return x if type(x) is np.ndarray and x.ndim == 1 else np.ravel(x)


def multiply_outer_adjoint_a(y_bar: Any, A: Like, B: Any) -> Any:
    """y has A's axes and then B's."""
    return _tensordot_adjoint_a(y_bar, A.ndim, as_array(B), [], [])


def multiply_outer_adjoint_b(y_bar: Any, A: Any, B: Like) -> Any:
    return _tensordot_adjoint_b(y_bar, as_array(A), B.ndim, [], [])


def kron_adjoint_a(y_bar: Any, a: Like, b: Any) -> Any:
    """Reshaped, y has an axis of a and an axis of b in turn: the Kronecker product is an outer product."""
    b = as_array(b)
    pairs, b_shape = _kron_pairs(y_bar, a.shape, b.shape)
    axes = (range(1, 2 * len(b_shape), 2), range(len(b_shape)))
    a_bar = contracted(lambda y_bar, b: np.tensordot(y_bar, b, axes), pairs, conj(np.reshape(b, b_shape)))
    return np.reshape(a_bar, a.shape)


def kron_adjoint_b(y_bar: Any, a: Any, b: Like) -> Any:
    a = as_array(a)
    pairs = _kron_pairs(y_bar, a.shape, b.shape)[0]
    a_shape = pairs.shape[::2]
    axes = (range(0, 2 * len(a_shape), 2), range(len(a_shape)))
    b_bar = contracted(lambda y_bar, a: np.tensordot(y_bar, a, axes), pairs, conj(np.reshape(a, a_shape)))
    return np.reshape(b_bar, b.shape)


def _kron_pairs(y_bar: Any, a_shape: tuple[int, ...], b_shape: tuple[int, ...]) -> tuple[Any, tuple[int, ...]]:
    ndim = max(len(a_shape), len(b_shape))
    a_shape = (1,) * (ndim - len(a_shape)) + a_shape
    b_shape = (1,) * (ndim - len(b_shape)) + b_shape
    return np.reshape(y_bar, [n for pair in zip(a_shape, b_shape, strict=True) for n in pair]), b_shape


_TENSORDOTS = [
    call(real(-1, 1, 2, 3, 4), real(-1, 1, 3, 4, 2)),
    call(complex_(-1, 1, 2, 3, 4), complex_(-1, 1, 4, 2, 3), axes=([1, 2], [2, 0])),
    call(real(-1, 1, 2, 3), complex_(-1, 1, 2, 2), axes=(0, -1)),
    call(real(-1, 1, 2, 3), real(-1, 1, 2), axes=0),
    call(real(-1, 1, 3), real(-1, 1, 3, 2), axes=1),
    call(real(-1, 1, 2, 3), real(-1, 1, 3, 2), axes=((0, 1), (1, 0))),
]
_OUTERS = [
    call(complex_(-1, 1, 2), complex_(-1, 1, 3)),
    call(real(-1, 1, 2, 2), real(-1, 1, 3)),
    call(real(-1, 1), real(-1, 1, 2)),
]
multilinear(np.tensordot, tensordot_adjoint_a, tensordot_adjoint_b, at=_TENSORDOTS)
multilinear(np.linalg.tensordot, tensordot_adjoint_a, tensordot_adjoint_b, at=_TENSORDOTS[:2])
multilinear(
    np.dot,
    dot_adjoint_a,
    dot_adjoint_b,
    at=[
        call(complex_(-1, 1, 3), complex_(-1, 1, 3)),
        call(complex_(-1, 1, 2, 3), complex_(-1, 1, 3, 2)),
        call(real(-1, 1, 2, 3), real(-1, 1, 3)),
        call(real(-1, 1, 2), real(-1, 1, 2, 3)),
        call(real(-1, 1), complex_(-1, 1, 2, 3)),
        call(real(-1, 1, 2, 2), real(-1, 1)),
        call(complex_(-1, 1, 2, 2, 3), complex_(-1, 1, 2, 3, 2)),
        call(real(-1, 1, 2, 2, 3), real(-1, 1, 3)),
        call(real(-1, 1, 3), real(-1, 1, 2, 3, 2)),
    ],
    shows=True,
)
multilinear(
    np.inner,
    inner_adjoint_a,
    inner_adjoint_b,
    at=[
        call(complex_(-1, 1, 3), complex_(-1, 1, 3)),
        call(complex_(-1, 1, 2, 3), complex_(-1, 1, 4, 3)),
        call(real(-1, 1), complex_(-1, 1, 2, 3)),
        call(real(-1, 1, 2, 2, 3), real(-1, 1, 3)),
        call(real(-1, 1, 3), real(-1, 1, 2, 2, 3)),
    ],
)
multilinear(
    np.vdot,
    vdot_adjoint_a,
    vdot_adjoint_b,
    at=[
        call(complex_(-1, 1, 3), complex_(-1, 1, 3)),
        call(real(-1, 1, 2, 3), complex_(-1, 1, 2, 3)),
        call(real(-1, 1, 2, 3), real(-1, 1, 6)),
        call(complex_(-1, 1), complex_(-1, 1)),
    ],
    shows=True,
)
multilinear(np.outer, outer_adjoint_a, outer_adjoint_b, at=_OUTERS)
multilinear(np.linalg.outer, outer_adjoint_a, outer_adjoint_b, at=_OUTERS[:1])
multilinear(np.multiply.outer, multiply_outer_adjoint_a, multiply_outer_adjoint_b, at=_OUTERS)
multilinear(
    np.kron,
    kron_adjoint_a,
    kron_adjoint_b,
    at=[
        call(complex_(-1, 1, 2, 3), complex_(-1, 1, 3, 2)),
        call(real(-1, 1, 2), real(-1, 1, 2, 2)),
        call(real(-1, 1, 2, 1, 2), real(-1, 1, 3)),
        call(real(-1, 1), real(-1, 1, 2)),
    ],
)


# --- cross -----------------------------------------------------------------------------------------------------------


def cross_adjoint_a(
    y_bar: Any, a: Like, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> Any:
    """y_bar · (ȧ × b) = ȧ · (b × y_bar)."""
    if axis is not None:
        axisa = axisb = axisc = axis
    return _cross_adjoint(y_bar, a.shape, axisa, as_array(b), axisb, axisc)


def cross_adjoint_b(
    y_bar: Any, a: Any, b: Like, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> Any:
    """y_bar · (a × ḃ) = −ḃ · (a × y_bar)."""
    if axis is not None:
        axisa = axisb = axisc = axis
    return -_cross_adjoint(y_bar, b.shape, axisb, as_array(a), axisa, axisc)


def linalg_cross_adjoint_a(y_bar: Any, x1: Like, x2: Any, *, axis: int = -1) -> Any:
    return _cross_adjoint(y_bar, x1.shape, axis, as_array(x2), axis, axis)


def linalg_cross_adjoint_b(y_bar: Any, x1: Any, x2: Like, *, axis: int = -1) -> Any:
    return -_cross_adjoint(y_bar, x2.shape, axis, as_array(x1), axis, axis)


def _cross_adjoint(y_bar: Any, shape: tuple[int, ...], axis: int, other: Any, axis_other: int, axisc: int) -> Any:
    """`other` × y_bar for the argument of `shape`; vectors of two elements have a third that is zero."""
    other = np.moveaxis(other, axis_other, -1)
    if shape[axis] == other.shape[-1] == 2:  # then y has only the third element, and no axis for it
        y_bar = scatter(y_bar, (Ellipsis, 2), (*np.shape(y_bar), 3))
    else:
        y_bar = np.moveaxis(y_bar, axisc, -1)
    if other.shape[-1] == 2:
        other = scatter(other, (Ellipsis, slice(2)), (*other.shape[:-1], 3))
    ahead, behind = [1, 2, 0], [2, 0, 1]
    other = conj(other)
    bar = times(y_bar[..., behind], other[..., ahead]) - times(y_bar[..., ahead], other[..., behind])
    places = list(range(len(shape)))
    places.append(places.pop(axis))
    bar = unbroadcast(bar[..., : shape[axis]], tuple(shape[i] for i in places))
    return np.moveaxis(bar, -1, axis)


_CROSSES = [
    call(complex_(-1, 1, 3), complex_(-1, 1, 3)),
    call(real(-1, 1, 2, 3), real(-1, 1, 3)),
    call(real(-1, 1, 3, 2), complex_(-1, 1, 3, 1), axis=0),
]
multilinear(
    np.cross,
    cross_adjoint_a,
    cross_adjoint_b,
    at=[*_CROSSES, call(real(-1, 1, 3, 2), real(-1, 1, 4, 2, 3), axisa=0, axisb=-1, axisc=1)],
)
multilinear(np.linalg.cross, linalg_cross_adjoint_a, linalg_cross_adjoint_b, at=_CROSSES)
