"""Polynomials as arrays of coefficients: NumPy's older functions. `numpy.polynomial` is made of other functions.

Coefficients stand from the highest degree to the lowest. They may come in a list whose members are traced, so that the
bodies read them one by one or stack them, and never convert them.
"""

from __future__ import annotations

import warnings
from typing import Any

from retrograde.errors import BatchError
from retrograde.originals import np
from retrograde.rules.contractions import as_array, constant
from retrograde.rules.dispatching import dispatched
from retrograde.rules.numpy_indexing import scatter
from retrograde.rules.points import call, complex_, real
from retrograde.rules.products import conj, everything, everywhere, hermitian, somewhere, times, unbroadcast
from retrograde.rules.table import composed, general


def _coefficients(p: Any) -> Any:
    """A list of coefficients, a polynomial, or a number, as an array of one dimension."""
    if isinstance(p, np.poly1d):
        return p.coeffs
    if isinstance(p, (list, tuple)):
        return np.stack(p) if p else np.zeros(0)
    return np.atleast_1d(p)


def vander_body(x: Any, N: int | None = None, increasing: bool = False) -> Any:
    if np.ndim(x) != 1:
        raise ValueError("x must be a one-dimensional array or sequence.")
    exponents = np.arange(np.size(x) if N is None else N)
    return np.power(np.expand_dims(_coefficients(x), 1), exponents if increasing else exponents[::-1])


def polyval_body(p: Any, x: Any) -> Any:
    """Horner's scheme."""
    p = _coefficients(p)
    y = np.zeros_like(x)
    for i in range(len(p)):
        y = y * x + p[i] if i else y + p[i]
    return y


def polyder_body(p: Any, m: int = 1) -> Any:
    if m < 0:
        raise ValueError("Order of derivative must be positive (see polyint)")
    p = _coefficients(p)
    for _ in range(m):
        p = p[:-1] * np.arange(np.size(p) - 1, 0, -1)
    return p


def polyint_body(p: Any, m: int = 1, k: Any = None) -> Any:
    """`k` are the constants of integration, that of the first integration first; one alone serves for all."""
    if m < 0:
        raise ValueError("Order of integral must be positive (see polyder)")
    p = _coefficients(p)
    k = np.zeros(m) if k is None else _coefficients(k)
    if np.size(k) == 1 and m > 1:
        k = np.broadcast_to(k, m)
    if np.size(k) < m:
        raise ValueError("k must be a scalar or a rank-1 array of length 1 or >m.")
    for i in range(m):
        p = np.concatenate((p / np.arange(np.size(p), 0, -1), k[i : i + 1]))
    return p


def polyadd_body(a1: Any, a2: Any) -> Any:
    a1, a2 = _coefficients(a1), _coefficients(a2)
    size = max(np.size(a1), np.size(a2))
    return _with_size(a1, size) + _with_size(a2, size)


def polysub_body(a1: Any, a2: Any) -> Any:
    a1, a2 = _coefficients(a1), _coefficients(a2)
    size = max(np.size(a1), np.size(a2))
    return _with_size(a1, size) - _with_size(a2, size)


def _with_size(p: Any, size: int) -> Any:
    missing = size - np.size(p)
    return np.concatenate((np.zeros(missing, p.dtype), p)) if missing else p


def polymul_body(a1: Any, a2: Any) -> Any:
    """The result has no leading zeros of its factors, and so depends on where they are, as in NumPy."""
    a1, a2 = (_without_leading_zeros(_coefficients(p)) for p in (a1, a2))
    return np.convolve(a1, a2)


def _without_leading_zeros(p: Any) -> Any:
    if np.size(p) and not somewhere(p[0] == 0):
        return p
    trimmed = np.trim_zeros(p, "f")
    return trimmed if np.size(trimmed) else p[:0] if np.size(p) == 0 else p[-1:]


composed(
    np.vander,
    vander_body,
    at=[call(complex_(0.5, 1, 3)), call(real(-1, 1, 2), 4), call(real(0.5, 1, 3), 2, increasing=True)],
)
composed(
    np.polyval,
    polyval_body,
    at=[
        call(real(-1, 1, 3), real(-1, 1, 2, 2)),
        call(complex_(-1, 1, 3), real(-1, 1)),
        call([real(-1, 1), 2.0], complex_(-1, 1, 2)),
        call(real(-1, 1, 1), 0.5),
        call(np.ones(1), real(-1, 1, 2)),
    ],
)
composed(np.polyder, polyder_body, at=[call(complex_(-1, 1, 4)), call(real(-1, 1, 4), 2), call(real(-1, 1, 2), m=3)])
composed(
    np.polyint,
    polyint_body,
    at=[
        call(complex_(-1, 1, 3)),
        call(real(-1, 1, 2), 2, real(-1, 1)),
        call(real(-1, 1, 2), m=2, k=[1.5, real(-1, 1)]),
        call(real(-1, 1, 2), 0),
    ],
)
_POLYNOMIAL_POINTS = [
    call(real(0.5, 1, 3), complex_(0.5, 1, 2)),
    call(real(0.5, 1), real(0.5, 1, 2)),
    call(np.array([0.0, 2.0, 0.0]), real(0.5, 1, 2)),
    call([real(0.5, 1), 2.0], real(0.5, 1, 2)),
]
composed(np.polyadd, polyadd_body, at=_POLYNOMIAL_POINTS)
composed(np.polysub, polysub_body, at=_POLYNOMIAL_POINTS)
composed(np.polymul, polymul_body, at=_POLYNOMIAL_POINTS)


# --- quotients -------------------------------------------------------------------------------------------------------


def polydiv_body(u: Any, v: Any) -> Any:
    """Long division; leading zeros of the remainder are left out, one number of it excepted."""
    u, v = _coefficients(u) + 0.0, _coefficients(v) + 0.0
    size, divisor = np.size(u), np.size(v)
    steps = max(size - divisor + 1, 0)
    quotient: list[Any] = []
    scale = 1.0 / v[0]  # as NumPy divides, to the last bit, since what is zero is left out
    remainder = np.astype(u, np.result_type(u, v)) if size else u
    for k in range(steps):
        quotient.append(scale * remainder[k])
        remainder = remainder - scatter(quotient[-1] * v, slice(k, k + divisor), (size,))
    first = 0
    while first < size - 1:
        is_zero = np.isclose(everything(constant(remainder[first])), 0, rtol=1e-14)
        if not np.any(is_zero):
            break
        if not np.all(is_zero):
            raise BatchError(
                "np.polydiv leaves out leading zeros of the remainder, and how many there are differs between the "
                "examples",
                "np.stack([f(x) for x in xs]), a loop over the examples in place of vmap",
            )
        first += 1
    return np.stack(quotient) if quotient else np.zeros(1, np.result_type(u, v)), remainder[first:]


def polyfit_body(
    x: Any, y: Any, deg: Any, rcond: Any = None, full: bool = False, w: Any = None, cov: Any = False
) -> Any:
    """Least squares on the Vandermonde matrix, its columns scaled to length one."""
    x, y = _coefficients(x) + 0.0, as_array(y) + 0.0
    order = int(deg) + 1
    if deg < 0:
        raise ValueError("expected deg >= 0")
    if np.ndim(x) != 1 or np.size(x) == 0 or np.ndim(y) not in (1, 2) or np.shape(y)[0] != np.size(x):
        raise TypeError("expected vectors x and y of the same length, or y with a column for each of several fits")
    if rcond is None:
        rcond = np.size(x) * np.finfo(x.dtype).eps
    left, right = np.vander(x, order), y
    if w is not None:
        w = as_array(w) + 0.0
        if np.shape(w) != np.shape(x):
            raise TypeError("expected a 1-d array for weights, of the length of y")
        left = left * np.expand_dims(w, 1)
        right = np.transpose(np.transpose(right) * w)
    scale = np.sqrt(np.sum(left * left, axis=0))
    left = left / scale
    c, residuals, rank, s = np.linalg.lstsq(left, right, rcond)
    c = np.transpose(np.transpose(c) / scale)
    if not full and somewhere(np.not_equal(rank, order)):
        warnings.warn("Polyfit may be poorly conditioned", np.exceptions.RankWarning, stacklevel=2)
    if full:
        return c, residuals, rank, s, rcond
    if not cov:
        return c
    base = np.linalg.inv(np.matmul(np.transpose(left), left)) / np.outer(scale, scale)
    if isinstance(cov, str) and cov == "unscaled":
        factor: Any = 1.0
    else:
        if np.size(x) <= order:
            raise ValueError("the number of data points must exceed order to scale the covariance matrix")
        factor = residuals / (np.size(x) - order)
    return c, base * factor if np.ndim(y) == 1 else np.expand_dims(base, 2) * factor


# --- roots -----------------------------------------------------------------------------------------------------------


def roots_pullback(y: Any, p: Any) -> Any:
    """From p(r) = 0: ṙ = −Σ ṗ_k r^(n−k) / p′(r). A root that is a double one has an infinite slope."""
    slopes = _root_slopes(y, _coefficients(p))
    shape = np.shape(p)

    def pull(y_bar: Any) -> tuple[Any]:
        return (unbroadcast(np.sum(times(np.expand_dims(y_bar, 1), conj(slopes)), axis=0), shape),)

    return pull


def roots_pushforward(y: Any, p: Any) -> Any:
    slopes = _root_slopes(y, _coefficients(p))

    def push(p_dot: Any) -> Any:
        return np.sum(times(np.atleast_1d(p_dot), slopes), axis=1)

    return push


def _root_slopes(y: Any, p: Any) -> Any:
    """∂y_i/∂p_k, of shape (roots, coefficients)."""
    powers = np.vander(y, np.size(p)) if np.size(p) else np.zeros((np.size(y), 0))
    return -powers / np.expand_dims(np.polyval(np.polyder(p), y), 1)


def poly_body(seq_of_zeros: Any) -> Any:
    """The product of x − r over the roots r, or the characteristic polynomial of a square matrix."""
    roots = _coefficients(seq_of_zeros)
    roots = roots.astype(float) if roots.dtype == np.float16 else roots
    if np.ndim(roots) == 2 and roots.shape[0] == roots.shape[1] != 0:
        return characteristic(roots)
    if np.ndim(roots) != 1:
        raise ValueError("input must be 1d or non-empty square 2d array.")
    y: Any = np.ones(1, roots.dtype)
    for i in range(np.size(roots)):
        y = np.convolve(y, np.stack([np.ones((), roots.dtype), -roots[i]]))
    numbers = constant(roots)
    if np.iscomplexobj(numbers) and everywhere(np.sort(numbers) == np.sort(np.conj(numbers))):
        return np.real(y)  # roots that are real or come in pairs
    return y


@dispatched
def characteristic(a: Any) -> Any:
    """The coefficients of det(λ − a)."""
    return np.poly(a)


def characteristic_pullback(y: Any, a: Any) -> Any:
    """ċ_k = −tr(B_(k−1) ȧ), where adj(λ − a) = Σ B_k λ^(n−1−k): right for equal eigenvalues, too.

    Source: Faddeev and Faddeeva (1963), "Computational Methods of Linear Algebra", § 47.
    """

    def pull(y_bar: Any) -> tuple[Any]:
        terms = [times(y_bar[k + 1], -hermitian(b)) for k, b in enumerate(_adjugate(y, a))]
        return (sum(terms[1:], start=terms[0]),)

    return pull


def characteristic_pushforward(y: Any, a: Any) -> Any:
    def push(a_dot: Any) -> Any:
        parts = [-np.trace(np.matmul(b, a_dot)) for b in _adjugate(y, a)]
        return np.stack([np.zeros_like(parts[0]), *parts])

    return push


def _adjugate(c: Any, a: Any) -> list[Any]:
    """B₀, …, B_(n−1) of the adjugate of λ − a, with the characteristic coefficients c: B_k = a B_(k−1) + c_k."""
    unit = np.eye(a.shape[0])
    matrices = [unit + 0.0 * a]
    for k in range(1, a.shape[0]):
        matrices.append(np.matmul(a, matrices[-1]) + c[k] * unit)
    return matrices


composed(
    np.polydiv,
    polydiv_body,
    at=[
        call(real(0.5, 1, 4), real(0.5, 1, 2)),
        call(complex_(0.5, 1, 3), real(0.5, 1, 3)),
        call(real(0.5, 1, 2), real(0.5, 1, 3)),
        call(real(0.5, 1, 3), np.array([2.0, 1.0])),
    ],
)
_PLACES = np.array([0.1, 0.4, 1.1, 1.7, 2.0])
composed(
    np.polyfit,
    polyfit_body,
    at=[
        call(real(-1, 1, 5), real(-1, 1, 5), 2),
        call(_PLACES, real(-1, 1, 5, 2), 1, w=real(0.5, 1, 5)),
        call(_PLACES, real(-1, 1, 5), 1, cov=True),
        call(_PLACES, real(-1, 1, 5), 1, None, True),
        call(_PLACES, real(-1, 1, 5, 2), 1, w=real(0.5, 1, 5), cov="unscaled"),
    ],
)
general(
    np.roots,
    pullback=roots_pullback,
    pushforward=roots_pushforward,
    at=[call(real(0.5, 1, 4)), call(complex_(0.5, 1, 3)), call(np.array([0.0, 2.0, 3.0])), call(real(0.5, 1, 2))],
)
composed(
    np.poly,
    poly_body,
    at=[
        call(real(-1, 1, 3)),
        call(complex_(-1, 1, 2)),
        call(real(-1, 1, 3, 3)),
        call([real(-1, 1), 2.0]),
    ],
)
general(
    characteristic,
    pullback=characteristic_pullback,
    pushforward=characteristic_pushforward,
    at=[call(real(-1, 1, 3, 3)), call(complex_(-1, 1, 2, 2))],
)
