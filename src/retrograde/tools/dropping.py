"""Leaving derivatives out, because the user said so."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, TypeVar, overload

from retrograde.trace.handle import data
from retrograde.trace.level import ignoring
from retrograde.trace.structure import map_leaves

T = TypeVar("T")


def dropgrad(x: Any) -> Any:
    """The plain value of `x`, a constant to every transform; containers leaf by leaf. Arrays are read-only views.

    >>> gradient(lambda a, b: dropgrad(a) * b, 2.0, 3.0)
    (None, 2.0)
    """
    return map_leaves(data, x)


@overload
def ignore() -> AbstractContextManager[None]: ...
@overload
def ignore(f: Callable[..., T], *args: Any, **kwargs: Any) -> T: ...
def ignore(f: Callable[..., Any] | None = None, *args: Any, **kwargs: Any) -> Any:
    """Run code that no transform differentiates: `with ignore():`, or `ignore(f, *args)`.

    Operations inside give plain values, and values that were traced before the block convert freely (`float(x)`,
    `np.asarray(x)`, `math.sin(x)`). Parameters may be written to. A gradient that is taken inside the block is not
    affected.

    >>> gradient(lambda x: ignore(lambda: x * x) * x, 3.0)
    (9.0,)
    """
    if f is None:
        return ignoring()
    with ignoring():
        return dropgrad(f(*args, **kwargs))
