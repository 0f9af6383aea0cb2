"""Arrays made after others or between two ends, and polynomials as arrays of coefficients."""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograde.errors import MutationError
from retrograde.rules.points import call, complex_, real
from retrograde.rules.products import conj, times, unbroadcast
from retrograde.rules.table import Like, composed, general, linear, no_gradient

no_gradient(
    np.zeros_like, np.ones_like, np.empty_like, why="it takes only the shape and dtype of its argument", reads=False
)


def full_like_body(
    a: Any,
    fill_value: Any,
    dtype: Any = None,
    order: str = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: str | None = None,
) -> Any:
    dtype = np.result_type(a) if dtype is None else np.dtype(dtype)
    if dtype.kind not in "fc" and np.result_type(fill_value).kind in "fc":
        raise MutationError(
            f"np.full_like would truncate a {np.result_type(fill_value)} to {dtype}, which loses its derivative",
            "dtype=float",
        )
    filled = np.copy(np.broadcast_to(fill_value, np.shape(a) if shape is None else shape))
    return filled if filled.dtype == dtype else np.astype(filled, dtype)


composed(
    np.full_like,
    full_like_body,
    at=[
        call(np.ones((2, 3)), real(-1, 1)),
        call(np.ones((2, 3), complex), complex_(-1, 1, 3)),
        call(np.ones(2, int), real(-1, 1), float, shape=(3,)),
        call(real(-1, 1, 2), 1.5),
    ],
)


# --- between two ends ------------------------------------------------------------------------------------------------


def _fractions(y_shape: tuple[int, ...], num: int, endpoint: bool, axis: int) -> Any:
    """How far along each sample lies, from 0 to 1, shaped to broadcast along `axis` of the result."""
    t = np.arange(num) / max(num - 1 if endpoint else num, 1)
    return np.reshape(t, (-1,) + (1,) * (len(y_shape) - 1 - axis % len(y_shape)))


def linspace_start_adjoint(
    y_bar: Any, start: Like, stop: Like, num: int = 50, endpoint: bool = True, retstep: bool = False, *, axis: int = 0
) -> Any:
    samples_bar, step_bar = _linspace_bars(y_bar, start, stop, num, endpoint, retstep, axis)
    t = _fractions(np.shape(samples_bar), num, endpoint, axis)
    return unbroadcast(np.sum((1 - t) * samples_bar, axis) - step_bar, start.shape)


def linspace_stop_adjoint(
    y_bar: Any, start: Like, stop: Like, num: int = 50, endpoint: bool = True, retstep: bool = False, *, axis: int = 0
) -> Any:
    samples_bar, step_bar = _linspace_bars(y_bar, start, stop, num, endpoint, retstep, axis)
    t = _fractions(np.shape(samples_bar), num, endpoint, axis)
    return unbroadcast(np.sum(t * samples_bar, axis) + step_bar, stop.shape)


def _linspace_bars(
    y_bar: Any, start: Like, stop: Like, num: int, endpoint: bool, retstep: bool, axis: int
) -> tuple[Any, Any]:
    """The cotangents of the samples and of stop - start, by way of the step; no step is there of a single sample."""
    if not retstep:
        return y_bar, 0.0
    samples_bar, step_bar = y_bar
    if samples_bar is None:
        shape = np.broadcast_shapes(start.shape, stop.shape)
        samples_bar = np.zeros((*shape[: axis % (len(shape) + 1)], num, *shape[axis % (len(shape) + 1) :]))
    steps = num - 1 if endpoint else num
    return samples_bar, 0.0 if step_bar is None or steps <= 0 else step_bar / steps


def logspace_body(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: Any = 10.0, *, axis: int = 0
) -> Any:
    if np.ndim(base):
        # The ends come to the base's dimensions, since an axis is counted in the whole.
        ndim = max(np.ndim(start), np.ndim(stop), np.ndim(base))
        start, stop, base = (_with_ndim(a, ndim) for a in (start, stop, base))
        base = np.expand_dims(base, axis)
    return np.power(base, np.linspace(start, stop, num, endpoint, axis=axis))


def _with_ndim(a: Any, ndim: int) -> Any:
    shape = np.shape(a)
    return np.reshape(a, (1,) * (ndim - len(shape)) + shape)


def geomspace_pullback(y: Any, start: Any, stop: Any, num: int = 50, endpoint: bool = True, *, axis: int = 0) -> Any:
    """y = start (stop/start)ᵗ, so ∂y/∂start = (1 - t) y/start and ∂y/∂stop = t y/stop."""
    t = _fractions(np.shape(y), num, endpoint, axis)
    to_start, to_stop = _relative(y, start, axis), _relative(y, stop, axis)
    start_shape, stop_shape = np.shape(start), np.shape(stop)

    def pull(y_bar: Any) -> tuple[Any, Any]:
        return (
            lambda: unbroadcast(np.sum(times(y_bar, (1 - t) * conj(to_start)), axis), start_shape),
            lambda: unbroadcast(np.sum(times(y_bar, t * conj(to_stop)), axis), stop_shape),
        )

    return pull


def geomspace_pushforward(y: Any, start: Any, stop: Any, num: int = 50, endpoint: bool = True, *, axis: int = 0) -> Any:
    t = _fractions(np.shape(y), num, endpoint, axis)
    ndim = np.ndim(y) - 1

    def push(start_dot: Any, stop_dot: Any) -> Any:
        y_dot = 0.0
        if start_dot is not None:
            y_dot = (1 - t) * _relative(y, start, axis) * np.expand_dims(_with_ndim(start_dot, ndim), axis)
        if stop_dot is not None:
            y_dot = y_dot + t * _relative(y, stop, axis) * np.expand_dims(_with_ndim(stop_dot, ndim), axis)
        return y_dot

    return push


def _relative(y: Any, end: Any, axis: int) -> Any:
    return y / np.expand_dims(_with_ndim(end, np.ndim(y) - 1), axis)


_SPACE_POINTS = [
    call(real(0.5, 1), real(2, 3), 4),
    call(real(0.5, 1, 2, 1), real(2, 3, 3), num=3, axis=-1),
    call(real(0.5, 1, 2), real(2, 3), 3, False, axis=1),
    call(real(0.5, 1), 2.0, 1),
    call(0.5, real(2, 3, 2), 3, endpoint=False),
    call(real(0.5, 1), real(2, 3), 0),
]
linear(
    np.linspace,
    linspace_start_adjoint,
    linspace_stop_adjoint,
    args=(0, 1),
    at=[
        *_SPACE_POINTS,
        call(complex_(-1, 1), real(-1, 1, 2), 3),
        call(real(-1, 1, 2), real(-1, 1), 3, True, True, axis=-1),
    ],
)
composed(
    np.logspace,
    logspace_body,
    at=[
        *_SPACE_POINTS,
        call(real(-1, 1), real(-1, 1), 3, base=real(1, 2)),
        call(real(-1, 1), real(-1, 1, 2), 3, True, real(1, 2, 2, 1), axis=-1),
    ],
)
general(
    np.geomspace,
    pullback=geomspace_pullback,
    pushforward=geomspace_pushforward,
    args=(0, 1),
    at=[
        *_SPACE_POINTS,
        call(real(-3, -2), real(-1, -0.5), 3),
        call(complex_(0.5, 1), complex_(1, 2, 2), 3),
    ],
)


# --- polynomials -----------------------------------------------------------------------------------------------------
# Coefficients stand from the highest degree to the lowest. They may come in a list whose members are traced, so that
# the bodies read them one by one or stack them, and never convert them.


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
    p = p.coeffs if isinstance(p, np.poly1d) else p
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
