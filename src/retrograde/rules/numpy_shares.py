"""The shares eᵃ / Σ eᵃ of terms in their sum, and the mean that they weigh: what logarithms of sums, and softmax,
have for derivatives.

Where one share has nearly all, a value minus the mean loses all digits in the place of that share, whatever the
derivative is made of. The mean is a weighted one, so it can be taken of the differences from the value in that place:
nothing is subtracted from itself then, and what remains is a sum of what the small shares contribute.
"""

from __future__ import annotations

from typing import Any

from retrograde.originals import np
from retrograde.rules.contractions import constant
from retrograde.rules.dispatching import dispatched
from retrograde.rules.points import call, real
from retrograde.rules.products import somewhere, times
from retrograde.rules.table import general

_NEARLY_ALL = 0.9
"""Of a share that is as large there is one, and 1 minus it has lost three bits at most where it is smaller."""


@dispatched
def shares(a: Any, axis: Any = None) -> Any:
    """eᵃ / Σ eᵃ along `axis`, of finite numbers."""
    powers = np.exp(a - np.max(a, axis=axis, keepdims=True))
    return powers / np.sum(powers, axis=axis, keepdims=True)


def from_mean(x: Any, share: Any, axis: Any) -> Any:
    """x - Σ share·x along `axis`."""
    x = from_leader(x, constant(share) > _NEARLY_ALL, axis)
    return x - np.sum(times(x, share), axis=axis, keepdims=True)


def from_leader(x: Any, leads: Any, axis: Any) -> Any:
    """x minus its value in the place that leads, if any does."""
    if not somewhere(leads):
        return x
    x = np.broadcast_to(x, np.shape(leads))
    return x - np.sum(np.where(leads, x, 0.0), axis=axis, keepdims=True)


def without_share(y_bar: Any, share: Any, axis: Any) -> Any:
    """y_bar - share·Σ y_bar along `axis`, the adjoint of `from_mean`."""
    plainly = y_bar - share * np.sum(y_bar, axis=axis, keepdims=True)
    leads = constant(share) > _NEARLY_ALL
    if not somewhere(leads):
        return plainly
    other_bars = np.sum(np.where(leads, 0.0, y_bar), axis=axis, keepdims=True)
    other_shares = np.sum(np.where(leads, 0.0, share), axis=axis, keepdims=True)
    return np.where(leads, other_shares * np.sum(y_bar, axis=axis, keepdims=True) - other_bars, plainly)


def shares_pullback(y: Any, a: Any, axis: Any = None) -> Any:
    def pull_shares(y_bar: Any) -> tuple[Any]:
        return (times(from_mean(y_bar, y, axis), y),)

    return pull_shares


def shares_pushforward(y: Any, a: Any, axis: Any = None) -> Any:
    def push_shares(a_dot: Any) -> Any:
        return times(from_mean(a_dot, y, axis), y)

    return push_shares


SHARES = [
    call(real(-3, 3, 2, 3)),
    call(real(-3, 3, 2, 3), axis=1),
    call(real(-3, 3, 2, 3), -2),
    call(real(-3, 3, 2, 3, 2), axis=(0, 2)),
]
general(shares, pullback=shares_pullback, pushforward=shares_pushforward, at=SHARES)
