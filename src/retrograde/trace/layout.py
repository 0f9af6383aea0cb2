"""Where the elements of a result lie in memory, for functions that are computed by other functions than NumPy's own.

What `ravel` or `reshape` of a result is, a view or a copy, goes by its order in memory, and so does whether a later
write is seen through it. NumPy keeps the order of its arguments in most functions; a body need not.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from retrograde.trace.handle import example_of
from retrograde.trace.structure import plain_tree


def laid_out(y: Any, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result `y` of a body, in the order in which `function` itself lays it out.

    NumPy is asked only where that is in doubt: where an array among the arguments is not in C order, or an order is
    asked for. Functions that call others are not called a second time.
    """
    given = [*args, *kwargs.values()]
    if not (kwargs.get("order") is not None or any(map(_is_in_other_order, given))):
        return y
    if any(map(callable, given)):
        return y
    with np.errstate(all="ignore"):
        lying = functools.partial(plain_tree, leaf=example_of)
        model = function(*map(lying, args), **{name: lying(value) for name, value in kwargs.items()})
    if isinstance(y, tuple) and isinstance(model, tuple):
        parts = [_like(part, other) for part, other in zip(y, model, strict=True)]
        return type(y)(*parts) if hasattr(y, "_fields") else tuple(parts)
    return _like(y, model)


def _is_in_other_order(x: Any) -> bool:
    if isinstance(x, list | tuple):
        return any(map(_is_in_other_order, x))
    x = example_of(x)
    return type(x) is np.ndarray and x.ndim > 1 and not x.flags.c_contiguous


def _like(y: Any, model: Any) -> Any:
    """A copy of `y` in the order of `model`, an array of its shape; `y` where it is so already."""
    array = example_of(y)
    if not isinstance(array, np.ndarray) or not isinstance(model, np.ndarray) or array.shape != model.shape:
        return y
    if _order(array) == _order(model):
        return y
    if array is y:
        made = np.empty_like(model, y.dtype)
        made[...] = y
        return made
    if model.flags.c_contiguous or model.flags.f_contiguous:
        return np.copy(y, order="C" if model.flags.c_contiguous else "F")
    axes = _axes(model)
    return np.copy(np.transpose(np.copy(np.transpose(y, axes), order="C"), np.argsort(axes)), order="K")


def _order(x: np.ndarray[Any, Any]) -> Any:
    """What decides which of its reshapes are views."""
    flags = (x.flags.c_contiguous, x.flags.f_contiguous)
    return flags if any(flags) else _axes(x)


def _axes(x: np.ndarray[Any, Any]) -> list[int]:
    """The axes of an array, those with the longest steps first."""
    axes: list[int] = np.argsort([-abs(stride) for stride in x.strides], kind="stable").tolist()
    return axes
