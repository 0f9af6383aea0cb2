"""NumPy's two protocols: every NumPy function that is given a traced value comes through here."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from retrograde.errors import MissingRuleError, MutationError, UnsupportedArgumentError
from retrograde.rules.numpy_indexing import scatter
from retrograde.rules.table import RULES
from retrograde.trace.call import call
from retrograde.trace.constant import CONSTANT, released, writable
from retrograde.trace.handle import HANDLES, Traced, plain
from retrograde.trace.indexing import setitem
from retrograde.trace.keys import fixed_key
from retrograde.trace.operators import GENERATED

_DEFAULTS = {"casting": "same_kind", "order": "K", "subok": True, "signature": None}


def array_ufunc(self: Traced, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """`ufunc(…)`, `ufunc.reduce(…)` and the like, with a traced value among the arguments."""
    if method == "__call__":
        if not kwargs:
            generated = GENERATED[ufunc]
            if generated is not None:
                return generated(*inputs)
        else:
            return _call_with_keywords(ufunc, inputs, kwargs)
        return call(ufunc, inputs, {}) if ufunc in RULES else _without_rule(ufunc, inputs, {})
    if method == "at":
        return _at(ufunc, *inputs)
    function = getattr(ufunc, method)
    return call(function, inputs, kwargs) if function in RULES else _without_rule(function, inputs, kwargs)


def _call_with_keywords(ufunc: np.ufunc, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A ufunc with `dtype=`, `where=` or `out=`; a generalised one with its own keywords."""
    out = kwargs.pop("out", None)
    where = kwargs.pop("where", True)
    dtype = kwargs.pop("dtype", None)
    if out is not None:
        inputs = (*inputs, *(o for o in out if o is not None))[: ufunc.nin]
        out = next((o for o in out if o is not None), None)
    if ufunc.signature is not None:
        y = call(ufunc, inputs, kwargs)
    else:
        for name, value in kwargs.items():
            if value is not _DEFAULTS.get(name, kwargs) and value != _DEFAULTS.get(name, kwargs):
                raise UnsupportedArgumentError(f"np.{ufunc.__name__} of a traced value does not take {name}=")
        if dtype is not None:
            inputs = tuple(x.astype(dtype) if hasattr(x, "astype") else np.dtype(dtype).type(x) for x in inputs)
        y = ufunc(*inputs)
    if where is not True:
        if out is None:
            raise UnsupportedArgumentError(
                f"np.{ufunc.__name__}(..., where=mask) without out= leaves the other elements unset",
                "np.where(mask, f(x), other): it has a derivative and says what stands elsewhere",
            )
        y = np.where(where, y, out)
    return y if out is None else _store(ufunc, y, out)


def _store(ufunc: np.ufunc, y: Any, out: Any) -> Any:
    """`out[...] = y`, and `out`."""
    if type(out) not in HANDLES:
        if type(y) in HANDLES:
            raise MutationError(
                f"np.{ufunc.__name__}(..., out=array) would write a traced value into a plain array and lose "
                "its derivative",
                "y = f(x), a new value",
                "make the array of a traced one, e.g. np.zeros_like(x), or take a Buffer",
            )
        out[...] = y
        return out
    if np.broadcast_shapes(np.shape(y), out.shape) != out.shape:
        raise ValueError(f"non-broadcastable output operand with shape {out.shape} for a result of shape {np.shape(y)}")
    setitem(out, ..., y)
    return out


def _at(ufunc: np.ufunc, x: Any, key: Any, *values: Any) -> None:
    """`ufunc.at(x, key, values)`: for sums, an element that is named twice gets both."""
    if ufunc is np.add or ufunc is np.subtract:
        if type(x) not in HANDLES:
            raise MutationError(
                f"np.{ufunc.__name__}.at would write traced values into a plain array and lose their derivative",
                "np.bincount(key, values), a new array",
            )
        # Broadcast first: scatter needs one value for each place.
        added = scatter(values[0] * np.ones(np.shape(plain(x)[fixed_key(key)])), fixed_key(key), x.shape)
        setitem(x, ..., x + added if ufunc is np.add else x - added)
        return
    raise missing_rule(ufunc.at)


def array_function(self: Traced, function: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A NumPy function that is not a ufunc."""
    if function in _MAKERS:
        y = call(function, args, kwargs)
        return y if type(y) in HANDLES else writable(y, function.__name__)
    if function in RULES:
        return call(function, args, kwargs)
    return _without_rule(function, args, kwargs)


# Functions that make a new array like their argument, to be filled.
_MAKERS = frozenset({np.zeros_like, np.ones_like, np.empty_like, np.full_like, np.copy})


def _without_rule(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run NumPy's own Python code of a function on the traced values: it may consist of functions that have rules."""
    if all(x.level is CONSTANT for x in _handles((args, *kwargs.values()))):
        return function(*map(_released, args), **{name: _released(value) for name, value in kwargs.items()})
    body = getattr(function, "_implementation", None)
    if body is not None and hasattr(body, "__code__"):
        try:
            return body(*args, **kwargs)
        except MissingRuleError:
            raise
        except Exception as error:
            raise missing_rule(function) from error
    raise missing_rule(function)


def _handles(tree: Any) -> Iterator[Traced]:
    if type(tree) in HANDLES:
        yield tree
    elif isinstance(tree, list | tuple):
        for item in tree:
            yield from _handles(item)


def _released(tree: Any) -> Any:
    if isinstance(tree, list | tuple):
        return type(tree)(_released(item) for item in tree)
    return released(tree)


def _name(function: Any) -> str:
    name: str = function.__name__
    if getattr(np, name, None) is function:
        return f"np.{name}"
    for module in ("scipy.special", "scipy.special._ufuncs"):
        if getattr(sys.modules.get(module), name, None) is function:
            return f"scipy.special.{name}"
    return f"{getattr(function, '__module__', None) or type(function).__module__}.{name}"


def missing_rule(function: Any) -> MissingRuleError:
    owner = getattr(function, "__self__", None)
    name = f"np.{owner.__name__}.{function.__name__}" if isinstance(owner, np.ufunc) else _name(function)
    return MissingRuleError(
        f"{name} has no derivative rule",
        "write it with NumPy functions that have one (docs/limits.md)",
        f"primitive({name}).defpullback(...), to give it a rule of your own",
        "dropgrad(x) as its argument, or `with ignore():`, where its derivative is not wanted",
    )


setattr(Traced, "__array_ufunc__", array_ufunc)
setattr(Traced, "__array_function__", array_function)
