"""Index keys, made safe to keep."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy import ndarray

from retrograde.originals import np
from retrograde.trace.handle import MAPPED, is_traced, plain
from retrograde.trace.undecided import decide

_SIMPLE = frozenset({int, type(None), type(Ellipsis)})
_BOUNDS = frozenset({int, type(None)})


class BatchedKey(Exception):
    """An index that is different for each example of a batch: reading with it is a function of its own."""


def fixed_key(key: Any) -> Any:
    """The same key in plain values that nobody else can change: nodes keep it until the sweep.

    Raises:
        IndexError: a traced value that is neither integer nor boolean.
        BatchedKey: a batched value.
    """
    if type(key) in _SIMPLE:
        return key
    if type(key) is slice:
        bounds = (key.start, key.stop, key.step)
        # An array without axes may be a bound, and change.
        if _BOUNDS.issuperset(map(type, bounds)):
            return key
        return slice(*(bound.copy() if type(bound) is ndarray else bound for bound in bounds))
    if isinstance(key, tuple):
        return tuple([fixed_key(k) for k in key])
    if is_traced(key):
        decide(key, "which elements an index or a mask takes")
        key = plain(key)
        if not isinstance(key, int) and getattr(key, "dtype", np.dtype(float)).kind not in "iub":
            raise IndexError("an index must be an integer or a mask; this traced value is neither")
        if type(key) in MAPPED:
            raise BatchedKey
    if isinstance(key, list):
        return np.array([fixed_key(k) for k in key], dtype=None if key else int)
    if isinstance(key, np.ndarray):
        return key.copy()
    # Other sequences (`range`) are arrays to NumPy, too.
    if isinstance(key, Sequence) and not isinstance(key, str | bytes):
        return np.array(key, dtype=None if len(key) else int)
    return key
