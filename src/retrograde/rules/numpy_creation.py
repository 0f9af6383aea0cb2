"""Arrays made after others or between two ends."""

from __future__ import annotations

from typing import Any

from retrograde.errors import MutationError
from retrograde.originals import np
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
            y_dot = times(np.expand_dims(_with_ndim(start_dot, ndim), axis), (1 - t) * _relative(y, start, axis))
        if stop_dot is not None:
            y_dot = y_dot + times(np.expand_dims(_with_ndim(stop_dot, ndim), axis), t * _relative(y, stop, axis))
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
