"""Where the elements of a result lie in memory, for functions that are computed by other functions than NumPy's own.

What `ravel` or `reshape` of a result is, a view or a copy, goes by its order in memory, and so does whether a later
write is seen through it. NumPy keeps the order of its arguments in most functions; a body need not.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from numpy import ndarray

from retrograde.originals import np
from retrograde.trace.handle import Traced, example_of
from retrograde.trace.structure import plain_tree
from retrograde.trace.views import shares_memory


def laid_out(y: Any, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result `y` of a body, in the order in which `function` itself lays it out.

    NumPy is asked only where that is in doubt: where the result or an array among the arguments is not in C order, or
    an order is asked for. Functions that call others are not called a second time. What the body has made a view of an
    argument stays one.
    """
    if kwargs.get("order") is None:
        for x in (y, *args, *kwargs.values()):
            value = x.primal if type(x) is Traced else x
            if type(value) is ndarray:
                if not value.flags.c_contiguous:
                    break
            elif type(value) not in _WITHOUT_ORDER:
                break
        else:
            return y
    given = _leaves([*args, *kwargs.values()])
    if kwargs.get("order") is None and not any(map(_is_in_other_order, (*_leaves([y]), *given))):
        return y
    if any(map(callable, [*args, *kwargs.values()])):
        return y
    with np.errstate(all="ignore"):
        lying = functools.partial(plain_tree, leaf=_asked_with)
        model = function(*map(lying, args), **{name: lying(value) for name, value in kwargs.items()})
    like = functools.partial(_like, arguments=given)
    if isinstance(y, tuple) and isinstance(model, tuple):
        parts = map(like, y, model)
        return type(y)(*parts) if hasattr(y, "_fields") else tuple(parts)
    return like(y, model)


_WITHOUT_ORDER = frozenset({int, float, bool, str, type(None), np.float64})


def _asked_with(x: Any) -> Any:
    """In a list of functions, which np.piecewise has, a number stands for each: the user's are called once."""
    return 0.0 if callable(x) else example_of(x)


def _leaves(tree: Any) -> list[Any]:
    return [leaf for item in tree for leaf in _leaves(item)] if isinstance(tree, list | tuple) else [tree]


def _is_in_other_order(x: Any) -> bool:
    x = example_of(x)
    return type(x) is ndarray and x.ndim > 1 and not x.flags.c_contiguous


def _like(y: Any, model: Any, arguments: list[Any]) -> Any:
    """A copy of `y` in the order of `model`; `y` itself where it lies so already, or is a view of an argument."""
    array = example_of(y)
    if not isinstance(array, np.ndarray) or not isinstance(model, np.ndarray) or array.shape != model.shape:
        return y
    if _order(array) == _order(model) or any(y is x or shares_memory(y, x) for x in arguments):
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
    """The axes of an array, those with the longest steps first; a step along an axis of length 1 means nothing."""
    steps = [abs(stride) if size > 1 else 0 for stride, size in zip(x.strides, x.shape, strict=True)]
    axes: list[int] = np.argsort([-step for step in steps], kind="stable").tolist()
    return axes
