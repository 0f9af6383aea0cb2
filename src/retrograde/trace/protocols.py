"""NumPy's two protocols: every NumPy function that is given a traced value comes through here."""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograde.errors import MissingRuleError, UnsupportedArgumentError
from retrograde.rules.table import RULES
from retrograde.trace.call import call
from retrograde.trace.handle import HANDLES, Traced
from retrograde.trace.operators import GENERATED

_DEFAULTS = {"casting": "same_kind", "order": "K", "subok": True, "where": True, "dtype": None, "signature": None}


def array_ufunc(self: Traced, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """`ufunc(…)`, `ufunc.reduce(…)` and the like, with a traced value among the arguments."""
    if method == "__call__":
        if kwargs:
            inputs = _plain_call(ufunc, inputs, kwargs)
        generated = GENERATED[ufunc]
        if generated is not None:
            return generated(*inputs)
        return call(ufunc, inputs, {})
    return call(getattr(ufunc, method), inputs, kwargs)


def _plain_call(ufunc: np.ufunc, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """The inputs of an equivalent call without keywords; what has none is refused."""
    for name, value in kwargs.items():
        if name == "dtype" and value is not None:
            inputs = tuple(x.astype(value) if hasattr(x, "astype") else np.dtype(value).type(x) for x in inputs)
        elif name == "out" and all(out is None for out in value):
            continue
        elif name not in _DEFAULTS or value is not _DEFAULTS[name]:
            raise UnsupportedArgumentError(
                f"np.{ufunc.__name__} of a traced value does not take {name}=",
                *_UFUNC_WAYS.get(name, ()),
            )
    return inputs


_UFUNC_WAYS = {
    "where": ("np.where(mask, f(x), other): it has a derivative and says what stands elsewhere",),
    "out": ("y = f(x), a new value", "a Buffer, which can be written to: b[:] = f(x)"),
}


def array_function(self: Traced, function: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A NumPy function that is not a ufunc."""
    if function in RULES:
        return call(function, args, kwargs)
    return _without_rule(function, args, kwargs)


def _without_rule(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run NumPy's own Python code of a function on the traced values: it may consist of functions that have rules."""
    body = getattr(function, "_implementation", None)
    if body is not None and hasattr(body, "__code__"):
        try:
            return body(*args, **kwargs)
        except MissingRuleError:
            raise
        except Exception as error:
            raise missing_rule(function) from error
    raise missing_rule(function)


def missing_rule(function: Any) -> MissingRuleError:
    name = f"{function.__module__}.{function.__name__}"
    return MissingRuleError(
        f"{name} has no derivative rule",
        "write it with NumPy functions that have one (docs: supported functions)",
        f"primitive({name}).defpullback(...), to give it a rule of your own",
        f"dropgrad(x) as its argument, or `with ignore():`, where its derivative is not wanted",
    )


setattr(Traced, "__array_ufunc__", array_ufunc)
setattr(Traced, "__array_function__", array_function)

__all__ = ["HANDLES", "missing_rule"]
