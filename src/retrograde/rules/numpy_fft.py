"""`np.fft`. Four linear rules, one-dimensional; everything else is composed of them, as NumPy itself does it.

With Y = F x, the discrete Fourier transform of length n, the adjoint is Fᴴ, the inverse transform without its 1/n. The
`norm` that has this factor is the other one: what "backward" is for a transform, "forward" is for its inverse.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

from retrograde.originals import np
from retrograde.rules.numpy_indexing import scatter
from retrograde.rules.points import call, complex_, real
from retrograde.rules.table import Like, composed, linear

Norm = Literal["backward", "ortho", "forward"] | None
_OPPOSITE: dict[Norm, Norm] = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}


def _fit(x: Any, n: int, axis: int) -> Any:
    """Crop or pad with zeros to length `n` along `axis`: the adjoint of the padding or cropping that `n=` asks for."""
    shape = np.shape(x)
    have = shape[axis]
    if have == n:
        return x
    before = (slice(None),) * (axis % len(shape))
    if have > n:
        return x[(*before, slice(n))]
    return scatter(x, (*before, slice(have)), (*shape[: len(before)], n, *shape[len(before) + 1 :]))


def _scale_interior(x: Any, n: int, axis: int, factor: float) -> Any:
    """Multiply the frequencies of a half spectrum that have a conjugate twin in the full one of length `n`.

    All have but the first and, where `n` is even, the last (the Nyquist frequency).
    """
    weights: Any = np.full(n // 2 + 1, factor, np.float32)  # exact, and widens nothing
    weights[0] = 1
    if n % 2 == 0:
        weights[-1] = 1
    return x * np.expand_dims(weights, tuple(range(1, np.ndim(x) - axis % np.ndim(x))))


def fft_adjoint(y_bar: Any, a: Like, n: int | None = None, axis: int = -1, norm: Norm = None) -> Any:
    return _fit(np.fft.ifft(y_bar, axis=axis, norm=_OPPOSITE[norm]), a.shape[axis], axis)


def ifft_adjoint(y_bar: Any, a: Like, n: int | None = None, axis: int = -1, norm: Norm = None) -> Any:
    return _fit(np.fft.fft(y_bar, axis=axis, norm=_OPPOSITE[norm]), a.shape[axis], axis)


def rfft_adjoint(y_bar: Any, a: Like, n: int | None = None, axis: int = -1, norm: Norm = None) -> Any:
    """x̄ⱼ = Re Σₖ Ȳₖ exp(2πi jk/n) over the half spectrum.

    `irfft` sums over the full spectrum, in which all but the first and the Nyquist frequency stand twice; so these
    are halved before.
    """
    n = a.shape[axis] if n is None else n
    halved = _scale_interior(y_bar, n, axis, 0.5)
    return _fit(np.fft.irfft(halved, n, axis, _OPPOSITE[norm]), a.shape[axis], axis)


def irfft_adjoint(y_bar: Any, a: Like, n: int | None = None, axis: int = -1, norm: Norm = None) -> Any:
    """The adjoint of the above: a frequency that stands twice in the full spectrum receives twice its cotangent."""
    n = np.shape(y_bar)[axis]
    doubled = _scale_interior(np.fft.rfft(y_bar, axis=axis, norm=_OPPOSITE[norm]), n, axis, 2.0)
    return _fit(doubled, a.shape[axis], axis)


linear(
    np.fft.fft,
    fft_adjoint,
    at=[
        call(complex_(-1, 1, 3)),
        call(real(-1, 1, 4)),
        call(complex_(-1, 1, 2, 3), axis=0),
        call(complex_(-1, 1, 2, 3), 2, norm="ortho"),
        call(complex_(-1, 1, 2, 3), n=4, axis=1, norm="forward"),
        call(real(-1, 1, 3, 2), 5, -2, "backward"),
    ],
)
linear(
    np.fft.ifft,
    ifft_adjoint,
    at=[
        call(complex_(-1, 1, 3)),
        call(real(-1, 1, 4)),
        call(complex_(-1, 1, 2, 3), axis=0),
        call(complex_(-1, 1, 2, 3), 2, norm="ortho"),
        call(complex_(-1, 1, 2, 3), n=4, axis=1, norm="forward"),
        call(real(-1, 1, 3, 2), 5, -2, "backward"),
    ],
)
linear(
    np.fft.rfft,
    rfft_adjoint,
    at=[
        call(real(-1, 1, 1)),
        call(real(-1, 1, 4)),
        call(real(-1, 1, 5)),
        call(real(-1, 1, 2, 3), axis=0),
        call(real(-1, 1, 2, 5), 4, norm="ortho"),
        call(real(-1, 1, 2, 3), n=4, axis=1, norm="forward"),
        call(real(-1, 1, 3, 2), 5, -2, "backward"),
    ],
)
linear(
    np.fft.irfft,
    irfft_adjoint,
    at=[
        call(complex_(-1, 1, 3)),
        call(complex_(-1, 1, 3), 5),
        call(real(-1, 1, 3)),
        call(complex_(-1, 1, 2, 3), axis=0),
        call(complex_(-1, 1, 2, 5), 4, norm="ortho"),
        call(complex_(-1, 1, 2, 3), n=7, axis=1, norm="forward"),
        call(complex_(-1, 1, 3, 2), 3, -2, "backward"),
        call(complex_(-1, 1, 2), 1),
    ],
)


# --- composed: the Hermitian transforms and those of several dimensions ----------------------------------------------


def hfft_body(a: Any, n: int | None = None, axis: int = -1, norm: Norm = None) -> Any:
    n = (np.shape(a)[axis] - 1) * 2 if n is None else n
    return np.fft.irfft(np.conj(a), n, axis, _OPPOSITE[norm])


def ihfft_body(a: Any, n: int | None = None, axis: int = -1, norm: Norm = None) -> Any:
    return np.conj(np.fft.rfft(a, n, axis, _OPPOSITE[norm]))


composed(np.fft.hfft, hfft_body, at=[call(complex_(-1, 1, 3)), call(complex_(-1, 1, 3, 2), 5, 0, "ortho")])
composed(np.fft.ihfft, ihfft_body, at=[call(real(-1, 1, 4)), call(real(-1, 1, 3, 2), 5, 0, "ortho")])

Lengths = Sequence[int] | None
Axes = Sequence[int] | None


def _plan(a: Any, s: Lengths, axes: Axes) -> list[tuple[int, int]]:
    """The length and axis of each one-dimensional transform; -1 in `s` is the axis's own length."""
    shape = np.shape(a)
    if axes is None:
        axes = range(-len(shape if s is None else s), 0)
    if s is None:
        s = [-1] * len(axes)
    if len(s) != len(axes):
        raise ValueError("Shape and axes have different lengths.")
    return [(shape[axis] if n in (-1, None) else n, axis) for n, axis in zip(s, axes, strict=True)]


def _along_each(transform: Callable[..., Any], a: Any, plan: list[tuple[int, int]], norm: Norm) -> Any:
    for n, axis in plan:
        a = transform(a, n, axis, norm)
    return a if plan else np.reshape(a, np.shape(a))  # a number is an array then, as NumPy has it


def fftn_body(a: Any, s: Lengths = None, axes: Axes = None, norm: Norm = None) -> Any:
    return _along_each(np.fft.fft, a, _plan(a, s, axes)[::-1], norm)


def ifftn_body(a: Any, s: Lengths = None, axes: Axes = None, norm: Norm = None) -> Any:
    return _along_each(np.fft.ifft, a, _plan(a, s, axes)[::-1], norm)


def rfftn_body(a: Any, s: Lengths = None, axes: Axes = None, norm: Norm = None) -> Any:
    *others, last = _plan(a, s, axes)
    return _along_each(np.fft.fft, np.fft.rfft(a, *last, norm), others[::-1], norm)


def irfftn_body(a: Any, s: Lengths = None, axes: Axes = None, norm: Norm = None) -> Any:
    *others, (n, axis) = _plan(a, s, axes)
    if s is None:
        n = 2 * (n - 1)
    return np.fft.irfft(_along_each(np.fft.ifft, a, others, norm), n, axis, norm)


def fft2_body(a: Any, s: Lengths = None, axes: Axes = (-2, -1), norm: Norm = None) -> Any:
    return fftn_body(a, s, axes, norm)


def ifft2_body(a: Any, s: Lengths = None, axes: Axes = (-2, -1), norm: Norm = None) -> Any:
    return ifftn_body(a, s, axes, norm)


def rfft2_body(a: Any, s: Lengths = None, axes: Axes = (-2, -1), norm: Norm = None) -> Any:
    return rfftn_body(a, s, axes, norm)


def irfft2_body(a: Any, s: Lengths = None, axes: Axes = (-2, -1), norm: Norm = None) -> Any:
    return irfftn_body(a, s, axes, norm)


_COMPLEX_POINTS = [
    call(complex_(-1, 1, 2, 3)),
    call(real(-1, 1, 2, 3), norm="forward"),
    call(complex_(-1, 1, 2, 3, 2), axes=(2, 0)),
    call(complex_(-1, 1, 2, 3), (3, 2), (0, 1), "ortho"),
    call(complex_(-1, 1, 2, 3), s=(-1, 4), axes=(0, -1)),
]
_REAL_POINTS = [
    call(real(-1, 1, 2, 3)),
    call(real(-1, 1, 3, 4), norm="forward"),
    call(real(-1, 1, 2, 3, 2), axes=(2, 0)),
    call(real(-1, 1, 2, 3), (3, 5), (0, 1), "ortho"),
    call(real(-1, 1, 2, 3), s=(3, -1), axes=(0, -1)),
]
_HERMITIAN_POINTS = [
    call(complex_(-1, 1, 2, 3)),
    call(complex_(-1, 1, 3, 2), norm="forward"),
    call(complex_(-1, 1, 3, 3, 2), axes=(2, 0)),
    call(complex_(-1, 1, 2, 3), (3, 5), (0, 1), "ortho"),
    call(complex_(-1, 1, 2, 3), s=(-1, 4), axes=(0, -1)),
]

composed(np.fft.fftn, fftn_body, at=_COMPLEX_POINTS)
composed(np.fft.ifftn, ifftn_body, at=_COMPLEX_POINTS)
composed(np.fft.fft2, fft2_body, at=_COMPLEX_POINTS)
composed(np.fft.ifft2, ifft2_body, at=_COMPLEX_POINTS)
composed(np.fft.rfftn, rfftn_body, at=_REAL_POINTS)
composed(np.fft.rfft2, rfft2_body, at=_REAL_POINTS)
composed(np.fft.irfftn, irfftn_body, at=_HERMITIAN_POINTS)
composed(np.fft.irfft2, irfft2_body, at=_HERMITIAN_POINTS)


# --- shifts ----------------------------------------------------------------------------------------------------------


def fftshift_adjoint(y_bar: Any, x: Like, axes: int | Axes = None) -> Any:
    return np.fft.ifftshift(y_bar, axes)


def ifftshift_adjoint(y_bar: Any, x: Like, axes: int | Axes = None) -> Any:
    return np.fft.fftshift(y_bar, axes)


_SHIFT_POINTS = [
    call(complex_(-1, 1, 5)),
    call(real(-1, 1, 2, 3)),
    call(real(-1, 1, 2, 3), axes=(1,)),
    call(real(-1, 1, 3), 0),
]
linear(np.fft.fftshift, fftshift_adjoint, at=_SHIFT_POINTS)
linear(np.fft.ifftshift, ifftshift_adjoint, at=_SHIFT_POINTS)
