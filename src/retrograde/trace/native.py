"""Functions that know their own derivatives: a transform asks them before it traces."""

from __future__ import annotations

from typing import Any, NamedTuple

from retrograde.trace.creation import contains_traced


class NativeGradient(NamedTuple):
    """The value of a function that returned one number, and one entry for each positional argument."""

    value: Any
    bars: list[Any]


class Native:
    """A function with derivatives of its own, for arguments that are not traced."""

    def native_gradient(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> NativeGradient | None:
        """The value and the cotangents of the arguments in their structures, None where there is no path.

        None for the whole where the function does not return one real number.
        """
        raise NotImplementedError


def native_gradient(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> NativeGradient | None:
    """What `f` itself knows of its gradient; None where it has to be traced."""
    if not isinstance(f, Native) or any(map(contains_traced, (*args, *kwargs.values()))):
        return None
    return f.native_gradient(args, kwargs)
