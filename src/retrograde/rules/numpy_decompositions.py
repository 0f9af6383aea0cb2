"""Cholesky, QR and the eigendecomposition of general matrices.

Outputs that a function did not use arrive as `None` in a cotangent of several outputs.
"""

from __future__ import annotations

from typing import Any

from retrograde.errors import UnsupportedArgumentError
from retrograde.originals import np
from retrograde.rules.contractions import as_array, constant
from retrograde.rules.points import call, complex_, invertible, real, spd
from retrograde.rules.products import conj, everywhere, hermitian, somewhere
from retrograde.rules.table import general
from retrograde.rules.triangles import from_triangle, halved_lower

# --- Cholesky --------------------------------------------------------------------------------------------------------


def cholesky_pullback(y: Any, a: Any, *, upper: bool = False) -> Any:
    """Pull a cotangent of L, where a = L Lᴴ, back to the triangle of a that NumPy reads.

    tril(ā) = Φ(L⁻ᴴ (P + Pᴴ) L⁻¹) with P = Φ(Lᴴ L̄); Φ takes the lower triangle and halves the diagonal. The upper
    factor is Lᴴ. `solve` finds Lᴴ triangular as it is, so that its elimination has nothing to do.

    Source: Murray (2016), "Differentiation of the Cholesky decomposition", (10).
    """

    def pull(y_bar: Any) -> tuple[Any]:
        factor, factor_bar = (hermitian(y), hermitian(y_bar)) if upper else (y, y_bar)
        phi, factor_h = halved_lower(factor.shape[-1]), hermitian(factor)
        p = phi * (factor_h @ np.tril(factor_bar))
        half_way = np.linalg.solve(factor_h, p + hermitian(p))
        a_bar = phi * hermitian(np.linalg.solve(factor_h, hermitian(half_way)))
        return (hermitian(a_bar) if upper else a_bar,)

    return pull


def cholesky_pushforward(y: Any, a: Any, *, upper: bool = False) -> Any:
    """L̇ = L Φ(L⁻¹ ȧ L⁻ᴴ).  Source: Murray (2016), (8)."""

    def push(a_dot: Any) -> Any:
        factor = hermitian(y) if upper else y
        half_way = np.linalg.solve(factor, from_triangle(a_dot, lower=not upper))
        factor_dot = factor @ (halved_lower(factor.shape[-1]) * np.linalg.solve(factor, hermitian(half_way)))
        return hermitian(factor_dot) if upper else factor_dot

    return push


general(
    np.linalg.cholesky,
    pullback=cholesky_pullback,
    pushforward=cholesky_pushforward,
    at=[call(spd(3)), call(spd(2, 2, 2)), call(spd(3), upper=True)],
)


# --- QR --------------------------------------------------------------------------------------------------------------


def qr_pullback(y: Any, a: Any, mode: str = "reduced") -> Any:
    """Pull cotangents of a = Q R back to a: ā = (Q̄ + Q S) R⁻ᴴ, S the Hermitian matrix of triu(R̄ Rᴴ − Qᴴ Q̄).

    A wide a = (a₁ a₂) has Q R₁ = a₁ and R₂ = Qᴴ a₂.

    Shapes:  a (…, m, n) of full rank; Q (…, m, k) and R (…, k, n) with k = min(m, n), or m in mode "complete".
    Source:  Walter and Lehmann (2018), "On the first-order derivatives of the QR decomposition", with the copying of
             a triangle made Hermitian for complex matrices, where LAPACK keeps the diagonal of R real.
    """
    mode = _known_mode(mode)
    a = as_array(a)
    m, n = a.shape[-2:]
    k = min(m, n)

    def pull(y_bar: Any) -> tuple[Any]:
        q, r = np.linalg.qr(a) if mode == "r" else y
        q_bar, r_bar = (None, y_bar) if mode == "r" else y_bar
        q, r = q[..., :k], r[..., :k, :]
        q_bar = np.zeros(q.shape) if q_bar is None else only_unique(q_bar, k)
        r_bar = np.zeros(r.shape) if r_bar is None else np.triu(r_bar[..., :k, :])
        if m < n:
            q_bar = q_bar + a[..., m:] @ hermitian(r_bar[..., m:])
            a_bar = _square_qr_bar(q, r[..., :m], q_bar, r_bar[..., :m])
            return (np.concatenate([a_bar, q @ r_bar[..., m:]], axis=-1),)
        return (_square_qr_bar(q, r, q_bar, r_bar),)

    return pull


def _square_qr_bar(q: Any, r: Any, q_bar: Any, r_bar: Any) -> Any:
    """The cotangent of Q R for a square R."""
    s = from_triangle(r_bar @ hermitian(r) - hermitian(q) @ q_bar, lower=False)
    return hermitian(np.linalg.solve(r, hermitian(q_bar + q @ s)))


def qr_pushforward(y: Any, a: Any, mode: str = "reduced") -> Any:
    """With X = Qᴴ ȧ R⁻¹ = (skew Hermitian) + Ṙ R⁻¹: the skew part is read off below X's diagonal.

    The columns that "complete" adds to Q are not unique, and so their tangent is NaN.
    """
    mode = _known_mode(mode)
    a = as_array(a)
    m, n = a.shape[-2:]
    k = min(m, n)

    def push(a_dot: Any) -> Any:
        q, r = np.linalg.qr(a) if mode == "r" else y
        q, r = q[..., :k], r[..., :k, :]
        scaled = hermitian(np.linalg.solve(hermitian(r[..., :k]), hermitian(a_dot[..., :k])))
        x = hermitian(q) @ scaled
        upper = np.triu(x, 1) + hermitian(np.tril(x, -1))
        upper = np.where(np.eye(k, dtype=bool), np.real(x), upper)
        q_dot, r_dot = scaled - q @ upper, upper @ r[..., :k]
        if m < n:
            r_dot = np.concatenate([r_dot, hermitian(q_dot) @ a[..., m:] + hermitian(q) @ a_dot[..., m:]], axis=-1)
        if mode == "r":
            return r_dot
        if mode == "complete" and m > n:
            q_dot = np.concatenate([q_dot, np.full((*q.shape[:-1], m - n), np.nan)], axis=-1)
            r_dot = np.concatenate([r_dot, np.zeros((*r.shape[:-2], m - n, n))], axis=-2)
        return q_dot, r_dot

    return push


def _known_mode(mode: str) -> str:
    """The name of a mode; "reduced" was called "full" once."""
    if mode in ("full", "f"):
        return "reduced"
    if mode not in ("reduced", "complete", "r"):
        raise UnsupportedArgumentError(f"np.linalg.qr has no derivative rule for mode={mode!r}", "use mode='reduced'")
    return mode


def only_unique(bar: Any, k: int) -> Any:
    """The cotangent of the first k columns; the others complete a basis in a way that is nobody's choice."""
    if bar.shape[-1] > k and somewhere(bar[..., k:] != 0):
        raise UnsupportedArgumentError(
            f"the columns from {k} on complete an orthonormal basis and are not unique, so they have no derivative",
            "use the columns that belong to the matrix: mode='reduced' in qr, full_matrices=False in svd",
        )
    return bar[..., :k]


general(
    np.linalg.qr,
    pullback=qr_pullback,
    pushforward=qr_pushforward,
    at=[
        call(invertible(3)),
        call(real(-1, 1, 3, 2)),
        call(real(-1, 1, 2, 3)),
        call(complex_(-1, 1, 3, 2)),
        call(complex_(-1, 1, 2, 3)),
        call(invertible(2, 2, 2)),
        call(invertible(2), "complete"),
        call(real(-1, 1, 3, 2), "r"),
        call(complex_(-1, 1, 2, 3), mode="r"),
    ],
)


# --- eig, eigvals ----------------------------------------------------------------------------------------------------


def eig_pullback(y: Any, a: Any) -> Any:
    """Pull cotangents of a V = V diag(w) back to a: ā = V⁻ᴴ (diag(w̄) + conj(F) ∘ Vᴴ V̄′) Vᴴ, F_ij = 1 / (w_j − w_i).

    V̄′ is V̄ without what changes only the length or the phase of a column: LAPACK makes its length one and its
    largest element real.

    Raises:  LinAlgError where a cannot be diagonalised, or where eigenvalues are equal and the vectors are used.
    Source:  Giles (2008), "An extended collection of matrix derivative results for forward and reverse mode
             algorithmic differentiation", 3.1, for the rest.
    """
    w, v = y

    def pull(y_bar: Any) -> tuple[Any]:
        w_bar, v_bar = y_bar
        inner = 0.0 if w_bar is None else w_bar[..., None, :] * np.eye(w.shape[-1])
        if v_bar is not None:
            gaps, same = _gaps(w)
            touched = np.any(v_bar != 0, axis=(-2, -1))
            if w_bar is not None:
                touched = touched | np.any(w_bar != 0, axis=-1)
            if somewhere(same & touched[..., None, None] & ~np.eye(w.shape[-1], dtype=bool)):
                raise np.linalg.LinAlgError(
                    "np.linalg.eig: eigenvalues are equal, so their eigenvectors are not unique and have no "
                    "derivative; use np.linalg.eigvals for the eigenvalues alone, np.linalg.eigh for a Hermitian matrix"
                )
            v_bar = _without_scale_adjoint(v, v_bar)
            inner = inner + np.where(same, 0.0, hermitian(v) @ v_bar / conj(gaps))
        return (_from_eigenbasis(v, inner),)

    return pull


def eig_pushforward(y: Any, a: Any) -> Any:
    """ẇ = diag(X), V̇ = V (F ∘ X) up to the scale of each column, X = V⁻¹ ȧ V."""
    w, v = y

    def push(a_dot: Any) -> tuple[Any, Any]:
        x = _to_eigenbasis(v, a_dot)
        gaps, same = _gaps(w)
        size = np.abs(constant(x))
        is_zero = size <= np.finfo(w.dtype).eps ** 0.5 * np.max(size, axis=(-2, -1), keepdims=True, initial=0)
        tied = np.where(is_zero | np.eye(w.shape[-1], dtype=bool), 0.0, np.nan)
        return np.diagonal(x, 0, -2, -1), _without_scale(v, v @ np.where(same, tied, x / gaps))

    return push


def eigvals_pullback(y: Any, a: Any) -> Any:
    """ā = V⁻ᴴ diag(ȳ) Vᴴ."""
    a = as_array(a)

    def pull(y_bar: Any) -> tuple[Any]:
        w, v = np.linalg.eig(a)
        w_bar = np.take_along_axis(y_bar, _matching(y, w), axis=-1)
        return (_from_eigenbasis(v, w_bar[..., None, :] * np.eye(w.shape[-1])),)

    return pull


def eigvals_pushforward(y: Any, a: Any) -> Any:
    a = as_array(a)

    def push(a_dot: Any) -> Any:
        w, v = np.linalg.eig(a)
        w_dot = np.diagonal(_to_eigenbasis(v, a_dot), 0, -2, -1)
        return np.take_along_axis(w_dot, np.argsort(_matching(y, w), axis=-1), axis=-1)

    return push


def _gaps(w: Any) -> tuple[Any, Any]:
    """w_j − w_i, but 1 where that is as good as zero; and where it is, the diagonal included."""
    gaps = w[..., None, :] - w[..., :, None]
    largest = np.max(np.abs(constant(w)), axis=-1, initial=0)[..., None, None]
    same = np.abs(constant(gaps)) <= np.finfo(w.dtype).eps ** (2 / 3) * largest
    return np.where(same, 1.0, gaps), same


def _from_eigenbasis(v: Any, inner: Any) -> Any:
    """V⁻ᴴ inner Vᴴ."""
    _check_diagonalisable(v)
    v_h = hermitian(v)
    return np.linalg.solve(v_h, inner @ v_h)


def _to_eigenbasis(v: Any, a_dot: Any) -> Any:
    """V⁻¹ ȧ V."""
    _check_diagonalisable(v)
    return np.linalg.solve(v, a_dot @ v)


def _check_diagonalisable(v: Any) -> None:
    v = constant(v)
    if v.size and somewhere(np.linalg.cond(v) > 0.01 / np.finfo(v.dtype).eps):
        raise np.linalg.LinAlgError(
            "the matrix has no full set of eigenvectors (it is defective), so its eigenvalues have no derivative"
        )


def _phase_element(v: Any) -> Any:
    """Where each column has the element that is kept real, as a mask: the largest of those that are."""
    v = constant(v)
    place = np.argmax(np.abs(v) + 2.0 * (v.imag == 0), axis=-2)
    return np.arange(v.shape[-2])[:, None] == place[..., None, :]


def _without_scale(v: Any, v_dot: Any) -> Any:
    """Columns v_dot changed by multiples of v such that lengths and phases stay as they are."""
    along = np.sum(conj(v) * v_dot, axis=-2, keepdims=True)
    if not np.iscomplexobj(v):
        return v_dot - v * along
    element = np.where(_phase_element(v), v, 0.0)
    turn = np.sum(np.imag(conj(element) * v_dot), axis=-2, keepdims=True)
    turn = turn / np.sum(np.real(conj(element) * element), axis=-2, keepdims=True)
    return v_dot - v * (np.real(along) + 1j * turn)


def _without_scale_adjoint(v: Any, v_bar: Any) -> Any:
    along = np.sum(conj(v) * v_bar, axis=-2, keepdims=True)
    if not np.iscomplexobj(v):
        return v_bar - v * along
    element = np.where(_phase_element(v), v, 0.0)
    size = np.sum(np.real(conj(element) * element), axis=-2, keepdims=True)
    return v_bar - v * np.real(along) - 1j * element * (np.imag(along) / size)


def _matching(y: Any, w: Any) -> Any:
    """For each eigenvalue in w its place in y: LAPACK may find the same ones in another order without the vectors."""
    n = w.shape[-1]
    nearest = np.argsort(np.abs(constant(w)[..., :, None] - constant(y)[..., None, :]), axis=-1, kind="stable")
    places = nearest[..., 0].copy()
    if everywhere(np.sort(places, axis=-1) == np.arange(n)):
        return places
    for stack in np.ndindex(places.shape[:-1]):
        free = set(range(n))
        for i in range(n):
            places[(*stack, i)] = next(j for j in nearest[(*stack, i)].tolist() if j in free)
            free.remove(int(places[(*stack, i)]))
    return places


_EIGENPROBLEMS = [
    call(spd(3)),
    call(real(-1, 1, 3, 3)),
    call(complex_(-1, 1, 3, 3)),
    call(real(-1, 1, 2, 2, 2)),
]
general(np.linalg.eig, pullback=eig_pullback, pushforward=eig_pushforward, at=_EIGENPROBLEMS)
general(np.linalg.eigvals, pullback=eigvals_pullback, pushforward=eigvals_pushforward, at=_EIGENPROBLEMS)
