"""SciPy's Fourier transforms, whose compiled code does not ask: with traced values those of NumPy stand for them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from retrograde.errors import UnsupportedArgumentError
from retrograde.originals import np
from retrograde.trace.creation import array_of, contains_traced

_NAMES = "fft ifft rfft irfft hfft ihfft fft2 ifft2 rfft2 irfft2 fftn ifftn rfftn irfftn"


def replacements(module: Any) -> dict[str, Callable[..., Any]]:
    """The replacements of the functions of `scipy.fft`, by name; each knows its `original`."""
    return {name: _replacement(getattr(module, name), getattr(np.fft, name)) for name in _NAMES.split()}


def _replacement(original: Any, same: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def replaced(x: Any, *args: Any, **kwargs: Any) -> Any:
        if not contains_traced(x):
            return original(x, *args, **kwargs)
        if kwargs.pop("plan", None) is not None:
            raise UnsupportedArgumentError(f"scipy.fft.{original.__name__} of a traced value does not take plan=")
        # How many threads compute it, and whether x may be overwritten, does not change the result.
        kwargs.pop("workers", None)
        kwargs.pop("overwrite_x", None)
        return same(array_of(x), *args[:3], **kwargs)

    replaced.original = original  # type: ignore[attr-defined]
    return replaced
