"""Linear systems, inverses, determinants and powers of matrices.

Giles (2008) is "An extended collection of matrix derivative results for forward and reverse mode algorithmic
differentiation". Every formula takes stacks of matrices where NumPy does, and complex ones, for which a transpose of
the source is a conjugate transpose here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from retrograde.originals import np
from retrograde.rules.contractions import as_array, constant, matmul, matmul_from_left, outer
from retrograde.rules.numpy_diagonals import trace_adjoint
from retrograde.rules.points import call, complex_, invertible, real
from retrograde.rules.products import conj, everywhere, hermitian, somewhere, times, unbroadcast
from retrograde.rules.table import Like, composed, general, linear, no_gradient
from retrograde.rules.triangles import from_triangle, to_triangle

# --- solve, inv ------------------------------------------------------------------------------------------------------


def _solve_vectors(a: Any, b: Any) -> Any:
    """`a⁻¹ b` for vectors b (…, n): NumPy takes b for a vector only if it has one dimension."""
    return np.linalg.solve(a, b) if np.ndim(b) == 1 else np.linalg.solve(a, b[..., None])[..., 0]


def solve_pullback(y: Any, a: Any, b: Any) -> Any:
    """Pull a cotangent of y = a⁻¹ b back to a and b: b̄ = a⁻ᴴ ȳ, ā = −b̄ yᴴ.

    Shapes:  a (…, n, n); b (…, n, k) or (n,); y and y_bar like b, with the stack of both.
    Source:  Giles (2008), 2.3.1.
    """
    a, b_shape = as_array(a), np.shape(b)

    def pull(y_bar: Any) -> Any:
        if len(b_shape) == 1:
            b_bar = _solve_vectors(hermitian(a), y_bar)
            return lambda: unbroadcast(-outer(b_bar, conj(y)), a.shape), lambda: unbroadcast(b_bar, b_shape)
        b_bar = np.linalg.solve(hermitian(a), y_bar)
        return lambda: unbroadcast(-matmul(b_bar, hermitian(y)), a.shape), lambda: unbroadcast(b_bar, b_shape)

    return pull


def solve_pushforward(y: Any, a: Any, b: Any) -> Any:
    """ẏ = a⁻¹ (ḃ − ȧ y)."""
    a, is_vector = as_array(a), np.ndim(b) == 1

    def push(a_dot: Any, b_dot: Any) -> Any:
        if a_dot is None:
            return np.linalg.solve(a, b_dot)
        moved = np.matmul(a_dot, y[..., None])[..., 0] if is_vector else np.matmul(a_dot, y)
        right = -moved if b_dot is None else b_dot - moved
        return _solve_vectors(a, right) if is_vector else np.linalg.solve(a, right)

    return push


def inv_pullback(y: Any, a: Any) -> Any:
    """ā = −yᴴ ȳ yᴴ.  Source: Giles (2008), 2.2.3."""

    def pull(y_bar: Any) -> tuple[Any]:
        y_h = hermitian(y)
        return (-matmul(matmul_from_left(y_h, y_bar), y_h),)

    return pull


def inv_pushforward(y: Any, a: Any) -> Any:
    def push(a_dot: Any) -> Any:
        return -np.matmul(np.matmul(y, a_dot), y)

    return push


general(
    np.linalg.solve,
    pullback=solve_pullback,
    pushforward=solve_pushforward,
    args=(0, 1),
    at=[
        call(invertible(3), real(-1, 1, 3)),
        call(invertible(3), complex_(-1, 1, 3, 2)),
        call(invertible(2, 3, 3), real(-1, 1, 3)),
        call(invertible(2, 3, 3), real(-1, 1, 2, 3, 2)),
        call(invertible(3), real(-1, 1, 2, 3, 2)),
        call(invertible(2, 1, 2, 2), real(-1, 1, 3, 2, 1)),
        call(complex_(-1, 1, 2, 2), complex_(-1, 1, 2)),
    ],
)
_INVERTIBLES = [call(invertible(3)), call(invertible(2, 2, 2)), call(complex_(-1, 1, 2, 2))]
general(np.linalg.inv, pullback=inv_pullback, pushforward=inv_pushforward, at=_INVERTIBLES)


# --- pinv, lstsq -----------------------------------------------------------------------------------------------------


def pinv_pullback(y: Any, a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Any:
    """Pull back through the pseudo-inverse P of a matrix A whose rank stays what it is.

    dP = −P dA P + P Pᴴ dAᴴ (1 − A P) + (1 − P A) dAᴴ Pᴴ P.

    Source: Golub and Pereyra (1973), "The differentiation of pseudo-inverses and nonlinear least squares problems
            whose variables separate", (4.12).
    """
    is_hermitian = hermitian

    def pull(y_bar: Any) -> tuple[Any]:
        full = from_triangle(a) if is_hermitian else as_array(a)
        y_h, y_bar_h = _hermitian(y), _hermitian(y_bar)
        # The matrix that is square of the longer side is never made: products take the way through the shorter one.
        if full.shape[-2] > full.shape[-1]:
            unreached = y_bar_h - matmul_from_left(full, np.matmul(y, y_bar_h))
            unseen = np.matmul(y_bar_h, np.eye(full.shape[-1]) - np.matmul(y, full))
            a_bar = matmul(unreached, np.matmul(y, y_h)) + matmul_from_left(y_h, np.matmul(y, unseen))
            a_bar = a_bar - matmul_from_left(y_h, matmul(y_bar, y_h))
        else:
            unreached = np.matmul(np.eye(full.shape[-2]) - np.matmul(full, y), y_bar_h)
            unseen = y_bar_h - matmul(np.matmul(y_bar_h, y), full)
            a_bar = matmul(np.matmul(unreached, y), y_h) + matmul_from_left(np.matmul(y_h, y), unseen)
            a_bar = a_bar - matmul(matmul_from_left(y_h, y_bar), y_h)
        return (to_triangle(a_bar) if is_hermitian else a_bar,)

    return pull


def pinv_pushforward(y: Any, a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Any:
    is_hermitian = hermitian

    def push(a_dot: Any) -> Any:
        full = from_triangle(a) if is_hermitian else as_array(a)
        dot = from_triangle(a_dot) if is_hermitian else a_dot
        y_h, left, right = _pinv_parts(y, full)
        dot_h = _hermitian(dot)
        return -y @ dot @ y + (y @ y_h) @ dot_h @ left + right @ dot_h @ (y_h @ y)

    return push


_hermitian = hermitian  # `np.linalg.pinv` has a parameter of this name


def _pinv_parts(y: Any, a: Any) -> tuple[Any, Any, Any]:
    """Pᴴ, and the projections 1 − A P and 1 − P A on what a does not reach and does not see."""
    m, n = a.shape[-2:]
    return _hermitian(y), np.eye(m) - np.matmul(a, y), np.eye(n) - np.matmul(y, a)


def lstsq_pullback(y: Any, a: Any, b: Any, rcond: Any = None) -> Any:
    """Pull back through the solution x = P b of least squares, the sums of squared residuals and the singular values.

    x follows from the derivative of the pseudo-inverse P, with r = b − A x; the residuals are stationary in x.

    Shapes:  a (m, n); b (m,) or (m, k); x (n,) or (n, k).
    Source:  Golub and Pereyra (1973), (4.12).
    """
    a, b = as_array(a), as_array(b)
    x, residuals, _, _ = y

    def pull(y_bar: Any) -> tuple[Any, Any]:
        x_bar, residuals_bar, _, s_bar = y_bar
        solution, target = _column(x), _column(b)
        left_over = target - np.matmul(a, solution)
        a_bar, b_bar = np.zeros(a.shape), np.zeros(target.shape)
        if x_bar is not None:
            inverse = np.linalg.pinv(a, rtol=_cutoff(rcond, a))
            inverse_h, column_bar = hermitian(inverse), _column(x_bar)
            b_bar = np.matmul(inverse_h, column_bar)
            unseen = column_bar - np.matmul(hermitian(a), b_bar)
            a_bar = (
                -np.matmul(b_bar, hermitian(solution))
                + np.matmul(left_over, hermitian(np.matmul(inverse, b_bar)))
                + np.matmul(np.matmul(inverse_h, solution), hermitian(unseen))
            )
        if residuals_bar is not None and np.size(residuals):
            weighted = times(2 * residuals_bar, left_over)
            b_bar = b_bar + weighted
            a_bar = a_bar - np.matmul(weighted, hermitian(solution))
        if s_bar is not None:
            u, _, vh = np.linalg.svd(a, full_matrices=False)
            a_bar = a_bar + np.matmul(u * s_bar, vh)
        return a_bar, np.reshape(b_bar, b.shape)

    return pull


def lstsq_pushforward(y: Any, a: Any, b: Any, rcond: Any = None) -> Any:
    a, b = as_array(a), as_array(b)
    x, residuals, _, s = y

    def push(a_dot: Any, b_dot: Any) -> tuple[Any, Any, None, Any]:
        solution, target = _column(x), _column(b)
        left_over = target - np.matmul(a, solution)
        inverse = np.linalg.pinv(a, rtol=_cutoff(rcond, a))
        change = np.zeros(target.shape) if b_dot is None else _column(b_dot)
        x_dot = np.matmul(inverse, change)
        s_dot = np.zeros(np.shape(s))
        if a_dot is not None:
            inverse_h, a_dot_h = hermitian(inverse), hermitian(a_dot)
            change = change - np.matmul(a_dot, solution)
            free = np.matmul(a_dot_h, np.matmul(inverse_h, solution))
            x_dot = (
                np.matmul(inverse, change)
                + np.matmul(inverse, np.matmul(inverse_h, np.matmul(a_dot_h, left_over)))
                + free
                - np.matmul(inverse, np.matmul(a, free))
            )
            u, _, vh = np.linalg.svd(a, full_matrices=False)
            s_dot = np.real(np.sum(conj(u) * np.matmul(a_dot, hermitian(vh)), axis=0))
        residuals_dot = 2 * np.real(np.sum(conj(left_over) * change, axis=0))
        return (
            np.reshape(x_dot, np.shape(x)),
            residuals_dot if np.size(residuals) else np.zeros(np.shape(residuals)),
            None,
            s_dot,
        )

    return push


def _column(x: Any) -> Any:
    return x[:, None] if x.ndim == 1 else x


def _cutoff(rcond: Any, a: Any) -> Any:
    """The relative size below which `np.linalg.lstsq` takes a singular value for zero."""
    eps = np.finfo(np.result_type(a.dtype, np.float32)).eps
    return eps * max(a.shape) if rcond is None else eps if rcond == -1 else rcond


_PINVS = [
    call(real(-1, 1, 3, 2)),
    call(real(-1, 1, 2, 3)),
    call(invertible(2)),
    call(complex_(-1, 1, 2, 3, 2)),
    call(real(-1, 1, 2, 3), rtol=1e-9),
    call(real(-1, 1, 3, 2), 1e-9),
    call(real(-1, 1, 3, 3), hermitian=True),
]
general(np.linalg.pinv, pullback=pinv_pullback, pushforward=pinv_pushforward, at=_PINVS)
general(
    np.linalg.lstsq,
    pullback=lstsq_pullback,
    pushforward=lstsq_pushforward,
    args=(0, 1),
    at=[
        call(real(-1, 1, 4, 2), real(-1, 1, 4)),
        call(real(-1, 1, 4, 2), real(-1, 1, 4, 3), rcond=None),
        call(real(-1, 1, 2, 3), real(-1, 1, 2)),
        call(complex_(-1, 1, 3, 2), complex_(-1, 1, 3, 2), 1e-9),
    ],
)


# --- det, slogdet ----------------------------------------------------------------------------------------------------


def det_pullback(y: Any, a: Any) -> Any:
    """ā = ȳ adj(a)ᴴ, the matrix of cofactors, which is smooth where a is singular too.

    Source: Giles (2008), 2.2.4, where a has an inverse; see `cofactors`.
    """
    a = as_array(a)

    def pull(y_bar: Any) -> tuple[Any]:
        return (times(_over_matrices(y_bar, a), conj(cofactors(a, y))),)

    return pull


def det_pushforward(y: Any, a: Any) -> Any:
    a = as_array(a)

    def push(a_dot: Any) -> Any:
        return np.sum(cofactors(a, y) * a_dot, axis=(-2, -1))

    return push


def _over_matrices(value: Any, a: Any) -> Any:
    """One number a matrix of the stack `a`, to be multiplied with them."""
    return value[..., None, None] if a.ndim > 2 else value


def cofactors(a: Any, det: Any) -> Any:
    """∂det/∂a = adj(a)ᵀ (…, n, n), exact for a singular matrix and differentiable as often as wanted.

    det · a⁻ᵀ loses as many digits, once differentiated, as a has lost to being nearly singular. So for such a matrix
    its null directions U, V of the k smallest singular values (constants) are filled in first: with B = a + U Vᴴ,

        det(a) = det(B) det(K),   K = 1 − Vᴴ B⁻¹ U  (k × k),

    which holds for any U and V (matrix determinant lemma), and whose derivative needs no inverse but that of B:

        adj(a) = det(B) (det(K) B⁻¹ + B⁻¹ U adj(K) Vᴴ B⁻¹).
    """
    n = a.shape[-1]
    if n <= 2:
        return a[..., ::-1, ::-1] * np.array([[1.0, -1.0], [-1.0, 1.0]]) if n == 2 else np.ones(a.shape)
    eps = np.finfo(np.result_type(a.dtype, np.float32)).eps
    try:
        inverse = np.linalg.inv(a)
    except np.linalg.LinAlgError:
        pass
    else:
        condition = np.linalg.norm(constant(a), axis=(-2, -1)) * np.linalg.norm(constant(inverse), axis=(-2, -1))
        if not somewhere(condition >= eps**-0.5):
            return _over_matrices(det, a) * np.swapaxes(inverse, -1, -2)

    u, s, vh = np.linalg.svd(constant(a))
    largest = s[..., :1]
    k = max(1, int(np.max(np.sum(s <= 10 * eps**0.5 * largest, axis=-1))))
    u, vh = u[..., -k:] * np.where(largest == 0, 1.0, largest)[..., None], vh[..., -k:, :]
    filled = a + np.matmul(u, vh)
    inverse = np.linalg.inv(filled)
    to_u, from_v = np.matmul(inverse, u), np.matmul(vh, inverse)
    small = np.eye(k) - np.matmul(vh, to_u)
    det_small, adjugate_small = _over_matrices(np.linalg.det(small), a), np.swapaxes(_minors(small), -1, -2)
    adjugate = det_small * inverse + np.matmul(np.matmul(to_u, adjugate_small), from_v)
    return _over_matrices(np.linalg.det(filled), a) * np.swapaxes(adjugate, -1, -2)


def _minors(a: Any) -> Any:
    """The cofactors of small matrices (…, k, k) that are nearly zero, from their minors."""
    k = a.shape[-1]
    if k == 1:
        return np.ones(a.shape)
    if k > 8:  # products of seven vanishing numbers or more, and so are their first six derivatives
        return 0.0 * a
    rest = np.array([[j for j in range(k) if j != i] for i in range(k)])
    minors = np.linalg.det(a[..., rest[:, None, :, None], rest[None, :, None, :]])
    return minors * (-1.0) ** np.add.outer(np.arange(k), np.arange(k))


def slogdet_pullback(y: Any, a: Any) -> Any:
    """With t = tr(a⁻¹ da), d log|det| = Re t and d sign = i sign Im t: ā = (loḡ + i Im(sign̄ conj(sign))) a⁻ᴴ.

    Raises:  LinAlgError where a is singular, unless its cotangents are zero.
    Source:  Giles (2008), 2.2.4.
    """
    a, (sign, _) = as_array(a), y

    def pull(y_bar: Any) -> tuple[Any]:
        sign_bar, log_bar = y_bar
        weight = 0.0 if log_bar is None else log_bar
        if sign_bar is not None and np.iscomplexobj(sign):
            weight = weight + 1j * np.imag(sign_bar * conj(sign))
        weight = weight + np.zeros(a.shape[:-2])
        return (_over_matrices(weight, a) * hermitian(_inverse_where(weight != 0, a)),)

    return pull


def slogdet_pushforward(y: Any, a: Any) -> Any:
    a, (sign, _) = as_array(a), y

    def push(a_dot: Any) -> tuple[Any, Any]:
        trace = np.sum(np.swapaxes(np.linalg.inv(a), -1, -2) * a_dot, axis=(-2, -1))
        return 1j * sign * np.imag(trace) if np.iscomplexobj(sign) else 0.0 * sign, np.real(trace)

    return push


def _inverse_where(wanted: Any, a: Any) -> Any:
    """The inverses, where only the `wanted` ones of a stack have to exist."""
    if not everywhere(wanted):
        a = np.where(_over_matrices(wanted, a), a, np.eye(a.shape[-1]))
    return np.linalg.inv(a)


general(np.linalg.det, pullback=det_pullback, pushforward=det_pushforward, at=[*_INVERTIBLES, call(real(-1, 1, 1, 1))])
general(np.linalg.slogdet, pullback=slogdet_pullback, pushforward=slogdet_pushforward, at=_INVERTIBLES)


# --- what is made of the others --------------------------------------------------------------------------------------


def tensorsolve_body(a: Any, b: Any, axes: Sequence[int] | None = None) -> Any:
    a = as_array(a)
    if axes is not None:
        a = np.moveaxis(a, axes, range(-len(axes), 0))
    x_shape = a.shape[np.ndim(b) :]
    size = math.prod(x_shape)
    return np.reshape(np.linalg.solve(np.reshape(a, (size, size)), np.ravel(b)), x_shape)


def tensorinv_body(a: Any, ind: int = 2) -> Any:
    a = as_array(a)
    size = math.prod(a.shape[ind:])
    return np.reshape(np.linalg.inv(np.reshape(a, (size, size))), a.shape[ind:] + a.shape[:ind])


def matrix_power_body(a: Any, n: int) -> Any:
    if n == 0:
        return np.where(False, a, np.eye(np.shape(a)[-1], dtype=as_array(a).dtype))  # constant, but still a path
    base, power = (a, n) if n > 0 else (np.linalg.inv(a), -n)
    result = None
    while True:
        if power % 2:
            result = base if result is None else np.matmul(result, base)
        power //= 2
        if not power:
            return result
        base = np.matmul(base, base)


def multi_dot_body(arrays: Sequence[Any]) -> Any:
    """The product in the order that costs least; the first and the last may be vectors."""
    arrays = [as_array(a) for a in arrays]
    first, last = arrays[0].ndim == 1, arrays[-1].ndim == 1
    if first:
        arrays[0] = arrays[0][None, :]
    if last:
        arrays[-1] = arrays[-1][:, None]
    lengths = [arrays[0].shape[0], *(a.shape[1] for a in arrays)]
    product = _chain(arrays, _best_splits(lengths), 0, len(arrays) - 1)
    if first:
        product = product[0]
    return product[0 if first else (..., 0)] if last else product


def _best_splits(lengths: Sequence[int]) -> dict[tuple[int, int], int]:
    """Where to cut each run of a chain of matrices (lengths[i], lengths[i + 1]).

    Source: Cormen et al., "Introduction to Algorithms", matrix-chain multiplication.
    """
    count = len(lengths) - 1
    cost = {(i, i): 0 for i in range(count)}
    splits = {}
    for width in range(1, count):
        for i in range(count - width):
            j = i + width
            cost[i, j], splits[i, j] = min(
                (cost[i, k] + cost[k + 1, j] + lengths[i] * lengths[k + 1] * lengths[j + 1], k) for k in range(i, j)
            )
    return splits


def _chain(arrays: Sequence[Any], splits: dict[tuple[int, int], int], i: int, j: int) -> Any:
    if i == j:
        return arrays[i]
    k = splits[i, j]
    return np.matmul(_chain(arrays, splits, i, k), _chain(arrays, splits, k + 1, j))


def cond_body(x: Any, p: Any = None) -> Any:
    if p is None or p in (2, -2):
        s = np.linalg.svdvals(x)
        return s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
    return np.linalg.norm(x, p, axis=(-2, -1)) * np.linalg.norm(np.linalg.inv(x), p, axis=(-2, -1))


def linalg_trace_adjoint(y_bar: Any, x: Like, *, offset: int = 0) -> Any:
    return trace_adjoint(y_bar, x, offset, -2, -1)


composed(
    np.linalg.tensorsolve,
    tensorsolve_body,
    at=[
        call(real(-1, 1, 2, 3, 6), real(-1, 1, 2, 3)),
        call(real(-1, 1, 2, 6, 3), real(-1, 1, 2, 3), axes=(1,)),
    ],
)
composed(np.linalg.tensorinv, tensorinv_body, at=[call(real(-1, 1, 2, 3, 6)), call(real(-1, 1, 6, 3, 2), ind=1)])
composed(
    np.linalg.matrix_power,
    matrix_power_body,
    at=[
        call(complex_(-1, 1, 2, 2), 3),
        call(invertible(2), -2),
        call(real(-1, 1, 2, 2, 2), 6),
        call(real(-1, 1, 2, 2), 0),
        call(real(-1, 1, 2, 2), 1),
    ],
)
composed(
    np.linalg.multi_dot,
    multi_dot_body,
    at=[
        call([real(-1, 1, 2, 3), complex_(-1, 1, 3, 1), real(-1, 1, 1, 2)]),
        call([real(-1, 1, 2), real(-1, 1, 2, 3), real(-1, 1, 3, 2), real(-1, 1, 2)]),
        call([real(-1, 1, 2, 2), real(-1, 1, 2, 2)]),
    ],
)
composed(
    np.linalg.cond,
    cond_body,
    at=[call(invertible(3)), call(invertible(2, 2, 2), -2), call(invertible(2), 1), call(invertible(2), "fro")],
)
linear(
    np.linalg.trace,
    linalg_trace_adjoint,
    at=[call(complex_(-1, 1, 2, 3, 3)), call(real(-1, 1, 2, 3), offset=1), call(real(-1, 1, 3, 2), offset=-1)],
)
no_gradient(np.linalg.matrix_rank, why="its output is integers")
