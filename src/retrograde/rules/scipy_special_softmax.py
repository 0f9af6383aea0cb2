"""Functions of SciPy's that are written in Python: logsumexp and softmax, Lambert's W, Dirichlet's kernel."""

from __future__ import annotations

from typing import Any

from scipy import special

from retrograde.errors import UnsupportedArgumentError
from retrograde.originals import np
from retrograde.rules.contractions import constant
from retrograde.rules.numpy_reductions import is_plain
from retrograde.rules.numpy_shares import from_mean, shares, without_share
from retrograde.rules.points import call, complex_, real
from retrograde.rules.products import conj, somewhere, times, unbroadcast
from retrograde.rules.scipy_special_dispatch import named
from retrograde.rules.table import composed, general

Array = Any

# --- log Σ b exp(a) -----------------------------------------------------------------------------------------


def _kept(y: Array, ndim: int, axis: Any, keepdims: bool) -> Array:
    """A result with its reduced axes as axes of length one."""
    if keepdims:
        return y
    return np.reshape(y, (1,) * ndim) if axis is None else np.expand_dims(y, axis)


def _ratios(y: Array, a: Array, axis: Any) -> Array:
    """exp(a − y); where y is infinite the elements that are as infinite share it equally, as in a tie."""
    infinite = np.isinf(y)
    gap = np.where(infinite, 0.0, a) - np.where(infinite, 0.0, y)
    if not somewhere(infinite):
        return np.exp(gap)
    tied = infinite & (a == y)
    share = tied / np.maximum(np.sum(tied, axis=axis, keepdims=True), 1)
    return np.where(infinite, share, np.exp(gap))


def _logsumexp_slopes(y: Any, a: Any, axis: Any, b: Any, keepdims: bool, return_sign: bool) -> tuple[Any, Any, Any]:
    """The derivatives in a and in b, broadcast together, and how many axes are summed over."""
    if return_sign and np.iscomplexobj(a):
        raise UnsupportedArgumentError(
            "scipy.special.logsumexp(..., return_sign=True) of complex numbers has no derivative rule",
            "np.log(np.sum(np.exp(a)))",
        )
    value, sign = y if return_sign else (y, 1.0)
    shape = np.broadcast_shapes(np.shape(a), () if b is None else np.shape(b))
    whole = _kept(value, len(shape), axis, keepdims)
    if b is None and not (is_plain(a) or np.iscomplexobj(a) or somewhere(np.isinf(constant(a)))):
        ratios = shares(a, axis)
    else:
        ratios = _ratios(whole, a if b is None else np.broadcast_to(a, shape), axis)
    if return_sign:
        ratios = ratios * _kept(sign, len(shape), axis, keepdims)
    in_a = ratios if b is None else np.where(b == 0, 0.0, b) * np.where(b == 0, 0.0, ratios)
    return in_a, ratios, len(shape)


def logsumexp_pullback(
    y: Any, a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False
) -> Any:
    def pull(y_bar: Any) -> tuple[Any, Any]:
        in_a, in_b, ndim = _logsumexp_slopes(y, a, axis, b, keepdims, return_sign)
        value_bar = y_bar[0] if return_sign else y_bar
        if value_bar is None:  # only the sign was used, which is constant
            return np.zeros(np.shape(a)), np.zeros(np.shape(b))
        spread = _kept(value_bar, ndim, axis, keepdims)
        return (
            unbroadcast(times(spread, conj(in_a)), np.shape(a)),
            lambda: unbroadcast(times(spread, conj(in_b)), np.shape(b)),
        )

    return pull


def logsumexp_pushforward(
    y: Any, a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False
) -> Any:
    def push(a_dot: Any, b_dot: Any = None) -> Any:
        in_a, in_b, _ = _logsumexp_slopes(y, a, axis, b, keepdims, return_sign)
        terms = [times(dot, slope) for dot, slope in ((a_dot, in_a), (b_dot, in_b)) if dot is not None]
        y_dot = np.sum(sum(terms[1:], start=terms[0]), axis=axis, keepdims=keepdims)
        return (y_dot, np.zeros(np.shape(y[1]))) if return_sign else y_dot

    return push


general(
    named("logsumexp"),
    args=(0, 2),
    pullback=logsumexp_pullback,
    pushforward=logsumexp_pushforward,
    at=[
        call(real(-3, 3, 2, 3)),
        call(real(-3, 3, 2, 3), axis=1),
        call(real(-3, 3, 2, 3), axis=-2, keepdims=True),
        call(real(-3, 3, 2, 3, 2), axis=(0, 2)),
        call(real(-3, 3, 2, 3), 1, real(0.5, 2, 3)),
        call(real(-3, 3, 3), b=real(0.5, 2, 2, 3), keepdims=True),
        call(real(-3, 3, 2, 3), 1, np.array([1.0, 0.0, -0.5]), False, True),
        call(real(-1, 1)),
        call(complex_(-1, 1, 2, 3), axis=0),
    ],
)

# --- Softmax ----------------------------------------------------------------------------------------------------


def softmax_pullback(y: Any, x: Any, axis: Any = None) -> Any:
    def pull(y_bar: Any) -> tuple[Any]:
        return (times(from_mean(y_bar, y, axis), y),)

    return pull


def softmax_pushforward(y: Any, x: Any, axis: Any = None) -> Any:
    def push(x_dot: Any) -> Any:
        return times(from_mean(x_dot, y, axis), y)

    return push


def _shares_again(y: Any, x: Any, axis: Any) -> Any:
    """The softmax of x from its logarithm y; where it will be differentiated, by a function that knows how."""
    if is_plain(x) or somewhere(np.isinf(constant(x))):
        return np.exp(y)
    return shares(x, axis)


def log_softmax_pullback(y: Any, x: Any, axis: Any = None) -> Any:
    def pull(y_bar: Any) -> tuple[Any]:
        return (without_share(y_bar, _shares_again(y, x, axis), axis),)

    return pull


def log_softmax_pushforward(y: Any, x: Any, axis: Any = None) -> Any:
    def push(x_dot: Any) -> Any:
        return from_mean(x_dot, _shares_again(y, x, axis), axis)

    return push


SOFTMAX_POINTS = [
    call(real(-3, 3, 2, 3)),
    call(real(-3, 3, 2, 3), axis=1),
    call(real(-3, 3, 2, 3), -2),
    call(real(-3, 3, 2, 3, 2), axis=(0, 2)),
]
general(named("softmax"), pullback=softmax_pullback, pushforward=softmax_pushforward, at=SOFTMAX_POINTS)
general(named("log_softmax"), pullback=log_softmax_pullback, pushforward=log_softmax_pushforward, at=SOFTMAX_POINTS)

# --- Lambert's W (DLMF 4.13.4) -----------------------------------------------------------------------------------


def lambertw_slope(w: Array) -> Array:
    """e⁻ʷ / (1 + w), regular at W(0) = 0."""
    return np.exp(-w) / (1 + w)


def lambertw_pullback(y: Any, z: Any, k: Any = 0, tol: float = 1e-8) -> Any:
    shape = np.shape(z)

    def pull(y_bar: Any) -> tuple[Any]:
        return (unbroadcast(times(y_bar, conj(lambertw_slope(y))), shape),)

    return pull


def lambertw_pushforward(y: Any, z: Any, k: Any = 0, tol: float = 1e-8) -> Any:
    def push(z_dot: Any) -> Any:
        return times(z_dot, lambertw_slope(y))

    return push


general(
    named("lambertw"),
    pullback=lambertw_pullback,
    pushforward=lambertw_pushforward,
    at=[
        call(real(-0.2, 3, 2, 3)),
        call(complex_(-1, 2, 3), np.array([-1, 0, 1])),
        call(real(-0.3, -0.1, 2), k=-1, tol=1e-12),
    ],
)

# --- Dirichlet's kernel --------------------------------------------------------------------------------------------


def diric_body(x: Any, n: Any) -> Any:
    """sin(nx/2) / (n sin(x/2)) as U_{n−1}(cos x/2) / n (DLMF 18.5.2), which is regular at the multiples of 2π."""
    n = np.asarray(n)
    valid = (n > 0) & (n == np.floor(n))
    whole = np.where(valid, n, 1).astype(int)
    return np.where(valid, special.eval_chebyu(whole - 1, np.cos(0.5 * x)) / whole, np.nan)


composed(named("diric"), diric_body, at=[call(real(-4, 4, 2, 3), 4), call(real(-9, 9), np.arange(1, 4))])
