"""Hand-worked numbers for the transforms, above all for those of real signals, where half a spectrum stands for all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograde.rules.numpy_fft  # noqa: F401  defines the rules
from retrograde.rules.table import RULES, Composed, Like, Linear


def adjoint(function: Any, y_bar: Any, *shape: int, **kwargs: Any) -> Any:
    rule = RULES[function]
    assert isinstance(rule, Linear)
    return rule.adjoints[0](np.asarray(y_bar), Like(shape, np.dtype(float)), **kwargs)


def body(function: Any, *args: Any, **kwargs: Any) -> Any:
    rule = RULES[function]
    assert isinstance(rule, Composed)
    return rule.body(*args, **kwargs)


def close(got: Any, want: Any) -> None:
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-14)


def test_fft_pulls_back_by_the_conjugate_matrix() -> None:
    close(adjoint(np.fft.fft, [0, 1, 0, 0], 4), [1, 1j, -1, -1j])


def test_ifft_pulls_back_by_the_conjugate_matrix() -> None:
    close(adjoint(np.fft.ifft, [0, 4, 0, 0], 4), [1, -1j, -1, 1j])


@pytest.mark.parametrize(("norm", "factor"), [(None, 1), ("backward", 1), ("ortho", 1 / 2), ("forward", 1 / 4)])
def test_norm_scales_the_adjoint_as_it_scales_the_transform(norm: Any, factor: float) -> None:
    close(adjoint(np.fft.fft, [1, 0, 0, 0], 4, norm=norm), np.full(4, factor))
    close(adjoint(np.fft.rfft, [1, 0, 0], 4, norm=norm), np.full(4, factor))


def test_crop_pulls_back_to_zeros_and_padding_to_a_crop() -> None:
    close(adjoint(np.fft.fft, [1, 0], 3, n=2), [1, 1, 0])
    close(adjoint(np.fft.fft, [1, 0, 0], 2, n=3), [1, 1])


def test_rfft_pulls_back_each_frequency_once() -> None:
    """Y₁ = Σ xⱼ exp(-2πi j/4), so its real part pulls back to cos(2πj/4), not to twice that."""
    close(adjoint(np.fft.rfft, [0, 1, 0], 4), [1, 0, -1, 0])
    close(adjoint(np.fft.rfft, [0, 1j, 0], 4), [0, -1, 0, 1])
    close(adjoint(np.fft.rfft, [0, 0, 1], 4), [1, -1, 1, -1])


def test_rfft_of_odd_length_has_no_lone_last_frequency() -> None:
    close(adjoint(np.fft.rfft, [0, 1], 3), [1, -1 / 2, -1 / 2])


def test_imaginary_parts_that_are_always_zero_pull_back_to_zero() -> None:
    close(adjoint(np.fft.rfft, [1j, 0, 1j], 4), [0, 0, 0, 0])


def test_irfft_reads_the_middle_frequencies_twice() -> None:
    close(adjoint(np.fft.irfft, [4.0, 0, 0, 0], 3), [1, 2, 1])
    close(adjoint(np.fft.irfft, [3.0, 0, 0], 2, n=3), [1, 2])


def test_irfft_does_not_read_what_it_crops() -> None:
    close(adjoint(np.fft.irfft, [2.0, 0], 3, n=2), [1, 1, 0])


def test_single_precision_stays_single() -> None:
    assert adjoint(np.fft.rfft, np.ones(3, np.complex64), 4).dtype == np.float32
    assert adjoint(np.fft.irfft, np.ones(4, np.float32), 3).dtype == np.complex64


def test_shift_of_odd_length_is_undone_by_the_other_shift() -> None:
    close(adjoint(np.fft.fftshift, [1, 2, 3], 3), [2, 3, 1])
    close(adjoint(np.fft.ifftshift, [1, 2, 3], 3), [3, 1, 2])


@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn"])
@pytest.mark.parametrize(
    "kwargs",
    [{"axes": (1, 0)}, {"axes": (0, 0)}, {"axes": (1,)}, {"s": (4, 2), "axes": (1, 0)}, {"s": (-1,), "axes": [0]}],
)
def test_transforms_of_several_dimensions_are_numpys(name: str, kwargs: Any) -> None:
    function = getattr(np.fft, name)
    x = np.random.default_rng(0).uniform(size=(3, 4))
    if name == "irfftn":
        x = x + 1j
    close(body(function, x, **kwargs), function(x, **kwargs))


def test_lengths_and_axes_must_match() -> None:
    with pytest.raises(ValueError, match="different lengths"):
        body(np.fft.fft2, np.ones((2, 2)), s=(2,))
