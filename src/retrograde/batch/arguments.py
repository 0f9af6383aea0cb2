"""The arguments of a call by their names, as mappings read and change them."""

from __future__ import annotations

import functools
import inspect
from typing import Any

from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from retrograde.errors import UnsupportedArgumentError
from retrograde.originals import np
from retrograde.rules.table import RULES, WithArguments
from retrograde.trace.creation import array_of


@functools.cache
def _parameters(function: Any) -> tuple[inspect.Parameter, ...]:
    try:
        return tuple(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        # Not every NumPy knows the signatures of its ufuncs' methods; the formulas' own parameters name the same.
        rule = RULES[function]
        assert isinstance(rule, WithArguments)
        return rule.parameters


def named(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments by name, without those that only say None; `out=` is refused."""
    names = [p.name for p in _parameters(function)]
    given = dict(zip(names, args, strict=False)) | {
        name: value
        for name, value in kwargs.items()
        if value is not np._NoValue  # type: ignore[attr-defined]
    }
    if given.pop("out", None) is not None:
        raise UnsupportedArgumentError(
            f"np.{getattr(function, '__name__', 'f')} of a batched value does not take out=", "y[...] = f(x)"
        )
    return given


def call(function: Any, given: dict[str, Any]) -> Any:
    """The call with these arguments, by position as long as there is no gap."""
    args, kwargs, is_gapless = [], {}, True
    for parameter in _parameters(function):
        if parameter.name not in given:
            is_gapless = False
        elif parameter.kind is parameter.KEYWORD_ONLY or not is_gapless:
            kwargs[parameter.name] = given[parameter.name]
        else:
            args.append(given[parameter.name])
    known = {parameter.name for parameter in _parameters(function)}
    kwargs.update((name, value) for name, value in given.items() if name not in known)
    return function(*args, **kwargs)


def array(x: Any) -> Any:
    """An argument as something that has a shape."""
    x = array_of(x)
    return x if hasattr(x, "shape") else np.asarray(x)


def behind(axis: Any, ndim: int) -> Any:
    """An axis (or several) of one example, as it is counted in the array of all examples."""
    if axis is None:
        return None
    if isinstance(axis, tuple | list | range):
        return tuple(i + 1 for i in normalize_axis_tuple(axis, ndim, allow_duplicate=True))
    return normalize_axis_index(int(axis), ndim) + 1
