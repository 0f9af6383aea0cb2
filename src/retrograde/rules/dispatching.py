"""How a function of our own lets a traced value take its call over, as NumPy's functions do."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from numpy import float64, ndarray


def dispatched(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let an argument take the call over by `__array_function__`, as NumPy does it for its own functions."""

    @functools.wraps(function)
    def public(*args: Any, **kwargs: Any) -> Any:
        owner = _owner(args)
        if owner is not None:
            return owner.__array_function__(public, (type(owner),), args, kwargs)
        return function(*args, **kwargs)

    return public


_PLAIN = frozenset({ndarray, float, int, str, slice, type(None), float64})


def _owner(args: tuple[Any, ...]) -> Any:
    """The argument (or entry of a key) that takes a call over: of several the one with the highest priority."""
    owner: Any = None
    for x in args:
        kind = type(x)
        if kind in _PLAIN or (kind is tuple and _PLAIN.issuperset(map(type, x))):
            continue
        # A subclass of ndarray inherits the protocol, which would call us again.
        if issubclass(type(x), ndarray):
            continue
        found = _owner(x) if type(x) is tuple else x if hasattr(x, "__array_function__") else None
        if found is not None and (owner is None or found.__array_priority__ > owner.__array_priority__):
            owner = found
    return owner
