"""Eigendecompositions of Hermitian matrices and singular values: `eigh`, `eigvalsh`, `svd`, `svdvals`.

Vectors are unique up to a sign (a phase) while values are distinct, and the textbook formulas divide by the gaps
between values. Where values are equal only functions that depend on the vectors of equal values together are
differentiable; `coupling` tells these from the others, which raise.

Outputs that a function did not use arrive as `None`, which is not the same as zeros: where values are equal, a
cotangent of zeros may stand for a function that needs the vectors and whose first derivative happens to vanish.

`eigvalsh` and `svdvals` are made of the full decompositions, so that values and vectors stay together: in a derivative
of a derivative the limits for equal values are found from both.
"""

from __future__ import annotations

from typing import Any

from retrograde.originals import np
from retrograde.rules.contractions import constant
from retrograde.rules.dispatching import dispatched
from retrograde.rules.numpy_decompositions import only_unique
from retrograde.rules.points import call, complex_, invertible, real, spd
from retrograde.rules.products import hermitian, somewhere
from retrograde.rules.table import composed, general
from retrograde.rules.triangles import from_triangle, to_triangle

# --- values that are equal -------------------------------------------------------------------------------------------


def coupling(turn: Any, stretch: Any, values: Any, values_bar: Any, size: Any) -> Any:
    """`turn` / (values_j − values_i) off the diagonal: how each pair of vectors turns into each other.

    For equal values that is 0 / 0 for every function that has a derivative, and the limit has to come from elsewhere.
    A function V f(w) Vᴴ (of singular vectors, U f(s) Vᴴ) with cotangent M in the basis of the vectors gives

        values_bar_i = f′ M_ii,   stretch_ij = c f M_ij,   turn_ij = c (f_j − f_i) M_ij,   limit_ij = f′ M_ij,

    so that limit_ij = ρ stretch_ij, where ρ is the ratio of values_bar to the diagonal of `stretch` among the equal
    values. A function of the values alone, or of a subspace, has a `stretch` of zero or a ρ of zero: its limit is zero.

    Shapes:  turn, stretch, result (…, n, n); values, values_bar, size (…, n), `size` the length of each vector's
             cotangent, which is what rounding is measured against.
    Raises:  LinAlgError where the function has no derivative, or none that the cotangents determine.
    """
    gaps = values[..., None, :] - values[..., :, None]
    tied = _tied(constant(values), constant(values_bar), constant(size))
    diagonal = np.eye(values.shape[-1], dtype=bool)
    plain = np.where(diagonal | tied, 0.0, turn) / np.where(diagonal | tied, 1.0, gaps)
    if not somewhere(tied):
        return plain
    among = (tied | diagonal) * 1.0
    weights = np.real(np.diagonal(stretch, 0, -2, -1))
    _check_ties(constant(turn), constant(stretch), tied, constant(weights), constant(values_bar), constant(size))
    norms = np.sum(among * (weights * weights)[..., None, :], axis=-1)
    ratio = np.sum(among * (values_bar * weights)[..., None, :], axis=-1) / np.where(norms == 0, 1.0, norms)
    # The square root of zero has no derivative: how the limit itself changes is not in the cotangents, so that a
    # further derivative through it comes out as NaN.
    limit = ratio[..., None] * stretch + np.sqrt(0.0 * gaps)
    return np.where(tied, limit, plain)


def _tied(values: Any, values_bar: Any, size: Any) -> Any:
    """The pairs whose quotient would be rounding error, off the diagonal.

    That they are close to each other is not enough: tiny singular values carry cotangents that are as tiny, and as
    exact, so that their quotients are good.
    """
    eps = np.finfo(values.dtype).eps
    gaps = np.abs(values[..., None, :] - values[..., :, None])
    largest = np.max(np.abs(values), axis=-1, initial=0)[..., None, None]
    close = (gaps <= eps ** (2 / 3) * largest) & ~np.eye(values.shape[-1], dtype=bool)
    if not somewhere(close):
        return close
    error = eps * (size[..., None, :] + size[..., :, None])
    longest = np.max(size, axis=-1)[..., None, None]
    scale = np.max(np.abs(values_bar), axis=-1)[..., None, None] + longest / np.where(largest == 0, 1.0, largest)
    return close & ((gaps == 0) | (error > eps ** (1 / 3) * gaps * scale))


def _check_ties(turn: Any, stretch: Any, tied: Any, weights: Any, values_bar: Any, size: Any) -> None:
    """Raise unless the limits of tied pairs can be known."""
    tolerance = np.finfo(weights.dtype).eps ** 0.5
    allowed = tolerance * (size[..., None, :] + size[..., :, None])
    if somewhere(tied & (np.abs(turn) > allowed)):
        raise np.linalg.LinAlgError(
            "values are equal and the function depends on their vectors one by one, so that it has no derivative; "
            "use only what depends on all of them together, such as the projection onto the space they span"
        )
    tied_with = tied | np.eye(tied.shape[-1], dtype=bool)
    needs_limit = np.any(tied & (np.abs(stretch) > allowed), axis=-1)
    # Among the values that are tied with i, along the last axis:
    weights, bars = weights[..., None, :] * tied_with, values_bar[..., None, :] * tied_with
    norms = np.sum(weights * weights, axis=-1, keepdims=True)
    ratio = np.sum(bars * weights, axis=-1, keepdims=True) / np.where(norms == 0, 1.0, norms)
    largest = np.max(np.abs(bars), axis=-1)
    off_ratio = np.max(np.abs(bars - ratio * weights), axis=-1) > 1e3 * tolerance * largest
    no_weights = np.max(np.abs(weights), axis=-1) <= tolerance * np.max(size, axis=-1, keepdims=True)
    uneven = np.max(np.abs(np.where(tied_with, values_bar[..., None, :] - values_bar[..., :, None], 0.0)), axis=-1)
    is_uneven = np.any(tied, axis=-1) & (uneven > 1e3 * tolerance * largest)
    if somewhere((needs_limit & (off_ratio | no_weights)) | (no_weights & is_uneven)):
        raise np.linalg.LinAlgError(
            "values are equal, and the function uses both them and their vectors in a way that does not determine its "
            "derivative; take what depends on the values alone from np.linalg.eigvalsh or np.linalg.svdvals, and give "
            "each function of the matrix a decomposition of its own"
        )


def _quotients(dot: Any, divisors: Any, values: Any, apart: bool) -> Any:
    """`dot / divisors` for a tangent; where a divisor is as good as zero, 0 if `dot` is too, else NaN.

    `apart`: the divisors are gaps between `values`, which count as zero long before they are.
    """
    eps = np.finfo(values.dtype).eps
    largest = np.max(np.abs(constant(values)), axis=-1, initial=0)[..., None, None]
    size = np.abs(constant(dot))
    is_zero = np.abs(constant(divisors)) <= (eps ** (2 / 3) * largest if apart else 0.0)
    negligible = size <= eps**0.5 * np.max(size, axis=(-2, -1), keepdims=True, initial=0)
    limit = np.where(negligible, 0.0, np.nan)
    return np.where(is_zero, limit, dot / np.where(is_zero, 1.0, divisors))


def _check_phase(phases: Any, size: Any) -> None:
    """Raise where a function of complex vectors depends on their phases, which LAPACK chooses as it likes."""
    if somewhere(np.abs(phases) > np.finfo(size.dtype).eps ** 0.5 * np.max(size, axis=-1, keepdims=True, initial=0)):
        raise np.linalg.LinAlgError(
            "the function depends on the phases of complex eigenvectors or singular vectors, which are arbitrary, so "
            "that it has no derivative; use what does not change with them, such as absolute values or v vᴴ"
        )


def _lengths(columns: Any) -> Any:
    columns = constant(columns)
    return np.sqrt(np.sum(np.real(columns * np.conj(columns)), axis=-2))


# --- eigh, eigvalsh --------------------------------------------------------------------------------------------------


def eigh_pullback(y: Any, a: Any, UPLO: str = "L") -> Any:
    """Pull cotangents of a V = V diag(w) back to the triangle of a that is read.

    ā = V (diag(w̄) + F ∘ Vᴴ V̄) Vᴴ, of which the Hermitian part counts; F_ij = 1 / (w_j − w_i).

    Raises:  LinAlgError where the function has no derivative; see `coupling`.
    Source:  Giles (2008), "An extended collection of matrix derivative results for forward and reverse mode
             algorithmic differentiation", 3.1.
    """
    w, v = y
    lower = UPLO.upper() == "L"

    def pull(y_bar: Any) -> tuple[Any]:
        w_bar, v_bar = y_bar
        if v_bar is None:
            return (to_triangle((v * w_bar[..., None, :]) @ hermitian(v), lower),)
        w_bar = np.zeros(w.shape) if w_bar is None else w_bar
        x, size = hermitian(v) @ v_bar, _lengths(v_bar)
        if np.iscomplexobj(v):
            _check_phase(np.imag(np.diagonal(constant(x), 0, -2, -1)), size)
        inner = coupling((x - hermitian(x)) / 2, (x + hermitian(x)) / 2, w, w_bar, size)
        inner = np.where(np.eye(w.shape[-1], dtype=bool), w_bar[..., None, :], inner)
        return (to_triangle(v @ inner @ hermitian(v), lower),)

    return pull


def eigh_pushforward(y: Any, a: Any, UPLO: str = "L") -> Any:
    """ẇ = diag(E), V̇ = V (F ∘ E) with E = Vᴴ ȧ V.  Source: Giles (2008), 3.1."""
    w, v = y
    lower = UPLO.upper() == "L"

    def push(a_dot: Any) -> tuple[Any, Any]:
        e = hermitian(v) @ from_triangle(a_dot, lower) @ v
        off_diagonal = np.where(np.eye(w.shape[-1], dtype=bool), 0.0, e)
        turn = _quotients(off_diagonal, w[..., None, :] - w[..., :, None], w, apart=True)
        return np.real(np.diagonal(e, 0, -2, -1)), v @ turn

    return push


def eigvalsh_body(a: Any, UPLO: str = "L") -> Any:
    """With the vectors at once: the derivative needs them, and its own derivative needs to know whose they are."""
    return np.linalg.eigh(a, UPLO)[0]


_SYMMETRIC = [call(real(-1, 1, 3, 3)), call(spd(2, 2, 2)), call(real(-1, 1, 3, 3), "U"), call(real(-1, 1, 1, 1))]
general(np.linalg.eigh, pullback=eigh_pullback, pushforward=eigh_pushforward, at=_SYMMETRIC)
composed(
    np.linalg.eigvalsh,
    eigvalsh_body,
    at=[*_SYMMETRIC, call(complex_(-1, 1, 3, 3)), call(complex_(-1, 1, 2, 2), UPLO="U")],
)


# --- svd, svdvals ----------------------------------------------------------------------------------------------------


@dispatched
def svd(a: Any, full_matrices: bool = True, hermitian: bool = False) -> Any:
    """`np.linalg.svd` with its vectors, which has one number of outputs and so a rule."""
    return np.linalg.svd(a, full_matrices, hermitian=hermitian)


def svd_pullback(y: Any, a: Any, full_matrices: bool = True, hermitian: bool = False) -> Any:
    """Pull cotangents of a = U diag(s) Vᴴ back to a.

    With turns K_U = ½(Uᴴ Ū − Ūᴴ U) and K_V likewise, ā = U G Vᴴ plus what leaves the spaces of U and of V, where

        G = diag(s̄) + (K_U + K_V)_ij / (s_j − s_i) + (K_U − K_V)_ij / (s_j + s_i),
        (1 − U Uᴴ) Ū S⁻¹ Vᴴ   and   U S⁻¹ V̄ᴴ (1 − V Vᴴ).

    Shapes:  a (…, m, n); k = min(m, n); U (…, m, k), s (…, k), Vᴴ (…, k, n). What full_matrices adds to U or Vᴴ is
             not unique, and may not be used.
    Raises:  LinAlgError where the function has no derivative; see `coupling`.
    Source:  Townsend (2016), "Differentiating the singular value decomposition", with its two differences of squares
             taken apart; for complex matrices Wan and Zhang (2019), "Automatic differentiation for complex valued SVD".
    """
    is_hermitian, (u, s, vh) = hermitian, y
    k = s.shape[-1]

    def pull(y_bar: Any) -> tuple[Any]:
        u_bar, s_bar, vh_bar = y_bar
        u_bar = None if u_bar is None else only_unique(u_bar, k)
        v_bar = None if vh_bar is None else only_unique(_hermitian(vh_bar), k)
        a_bar = _svd_bar(u[..., :k], s, _hermitian(vh)[..., :k], u_bar, s_bar, v_bar)
        return (to_triangle(a_bar) if is_hermitian else a_bar,)

    return pull


_hermitian = hermitian  # `np.linalg.svd` has a parameter of this name


def _svd_bar(u: Any, s: Any, v: Any, u_bar: Any, s_bar: Any, v_bar: Any) -> Any:
    """The cotangent of a, with V instead of Vᴴ."""
    if u_bar is None and v_bar is None:
        return (u * s_bar[..., None, :]) @ _hermitian(v)
    s_bar = np.zeros(s.shape) if s_bar is None else s_bar
    u_bar = np.zeros(u.shape) if u_bar is None else u_bar
    v_bar = np.zeros(v.shape) if v_bar is None else v_bar
    size = _lengths(u_bar) + _lengths(v_bar)
    x_u, x_v = _hermitian(u) @ u_bar, _hermitian(v) @ v_bar
    if np.iscomplexobj(u):
        _check_phase(np.imag(np.diagonal(constant(x_u + x_v), 0, -2, -1)), size)
    turn_u, turn_v = (x_u - _hermitian(x_u)) / 2, (x_v - _hermitian(x_v)) / 2
    stretch = (x_u + _hermitian(x_u) + x_v + _hermitian(x_v)) / 4
    sums = s[..., None, :] + s[..., :, None]
    is_wide_or_tall = u.shape[-2] != v.shape[-2]
    _check_zeros(constant(s), constant(s_bar), constant(turn_u - turn_v), is_wide_or_tall)

    inner = coupling(turn_u + turn_v, stretch, s, s_bar, size)
    inner = inner + np.where(sums == 0, 0.0, turn_u - turn_v) / np.where(sums == 0, 1.0, sums)
    inner = inner + np.where(np.eye(s.shape[-1], dtype=bool), s_bar[..., None, :], 0.0)
    a_bar = u @ inner @ _hermitian(v)
    if is_wide_or_tall:
        inverse = (1 / np.where(s == 0, np.inf, s))[..., None, :]
        if u.shape[-2] > v.shape[-2]:
            leaving = u_bar - u @ x_u
            _check_leaving(leaving, s, size)
            a_bar = a_bar + (leaving * inverse) @ _hermitian(v)
        else:
            leaving = v_bar - v @ x_v
            _check_leaving(leaving, s, size)
            a_bar = a_bar + u @ _hermitian(leaving * inverse)
    return a_bar


def _check_zeros(s: Any, s_bar: Any, differences: Any, is_wide_or_tall: bool) -> None:
    """Raise where singular values are zero, so that their vectors may turn freely, and the function depends on them."""
    zero = s == 0
    if not somewhere(zero):
        return
    several = np.sum(zero, axis=-1, keepdims=True) > 1
    free = zero & (several | is_wide_or_tall)
    tolerance = np.finfo(s.dtype).eps ** 0.5
    depends = np.abs(s_bar) > tolerance * np.max(np.abs(s_bar), axis=-1, keepdims=True)
    both = zero[..., None, :] & zero[..., :, None]
    turns = np.abs(differences) > tolerance * np.max(np.abs(differences), axis=(-2, -1), keepdims=True)
    if somewhere(free & depends) or somewhere(both & turns):
        raise np.linalg.LinAlgError(
            "singular values are zero, and the function uses both them and their vectors in a way that does not "
            "determine its derivative; take what depends on the values alone from np.linalg.svdvals"
        )


def _check_leaving(leaving: Any, s: Any, size: Any) -> None:
    s = constant(s)
    if somewhere((s == 0) & (_lengths(leaving) > np.finfo(s.dtype).eps ** 0.5 * np.max(size, axis=-1, keepdims=True))):
        raise np.linalg.LinAlgError(
            "singular values are zero and the function depends on their vectors, so that it has no derivative"
        )


def svd_pushforward(y: Any, a: Any, full_matrices: bool = True, hermitian: bool = False) -> Any:
    """With P = Uᴴ ȧ V: ṡ = diag(P); U and V turn by sym(P) / (s_j − s_i) ± skew(P) / (s_j + s_i).

    What full_matrices adds to U or Vᴴ is not unique, and so its tangent is NaN.
    """
    is_hermitian, (all_u, s, vh) = hermitian, y
    k = s.shape[-1]

    def push(a_dot: Any) -> Any:
        dot = from_triangle(a_dot) if is_hermitian else a_dot
        all_v = _hermitian(vh)
        u, v = all_u[..., :k], all_v[..., :k]
        p = _hermitian(u) @ dot @ v
        symmetric, skew = (p + _hermitian(p)) / 2, (p - _hermitian(p)) / 2
        symmetric = np.where(np.eye(k, dtype=bool), 0.0, symmetric)
        together = _quotients(symmetric, s[..., None, :] - s[..., :, None], s, apart=True)
        against = _quotients(skew, s[..., None, :] + s[..., :, None], s, apart=False)
        u_dot, v_dot = u @ (together + against), v @ (together - against)
        if u.shape[-2] > v.shape[-2]:
            moved = dot @ v
            u_dot = u_dot + _quotients(moved - u @ (_hermitian(u) @ moved), s[..., None, :], s, apart=False)
        elif u.shape[-2] < v.shape[-2]:
            moved = _hermitian(dot) @ u
            v_dot = v_dot + _quotients(moved - v @ (_hermitian(v) @ moved), s[..., None, :], s, apart=False)
        s_dot = np.real(np.diagonal(p, 0, -2, -1))
        return _with_unknown(u_dot, all_u.shape[-1]), s_dot, _hermitian(_with_unknown(v_dot, all_v.shape[-1]))

    return push


def _with_unknown(columns: Any, count: int) -> Any:
    have = columns.shape[-1]
    if have == count:
        return columns
    return np.concatenate([columns, np.full((*columns.shape[:-1], count - have), np.nan)], axis=-1)


def svd_body(a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    return svd(a, full_matrices, hermitian) if compute_uv else svd(a, False, hermitian)[1]


def svdvals_body(x: Any) -> Any:
    return svd(x, False)[1]


general(
    svd,
    pullback=svd_pullback,
    pushforward=svd_pushforward,
    at=[
        call(invertible(3)),
        call(real(-1, 1, 3, 2), full_matrices=False),
        call(real(-1, 1, 2, 3), False),
        call(invertible(2, 2, 2)),
        call(real(-1, 1, 3, 3), hermitian=True),
    ],
)
composed(
    np.linalg.svd,
    svd_body,
    at=[
        call(real(-1, 1, 3, 2), full_matrices=False),
        call(complex_(-1, 1, 3, 2), compute_uv=False),
        call(real(-1, 1, 3, 3), compute_uv=False, hermitian=True),
    ],
)
composed(
    np.linalg.svdvals, svdvals_body, at=[call(invertible(3)), call(complex_(-1, 1, 2, 3)), call(real(-1, 1, 2, 3, 2))]
)
