"""The table of handlers, and calls of the functions in it and of elementwise ones."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from retrograde.compiler import ops
from retrograde.compiler.known import Constant
from retrograde.compiler.lower.functions.arguments import as_array
from retrograde.compiler.lower.indexing import Indexing
from retrograde.compiler.lower.values import NONE
from retrograde.compiler.types import BOOL


class Handler(NamedTuple):
    parameters: tuple[str, ...]
    defaults: dict[str, Any]
    lower: Callable[..., Any]


HANDLERS: dict[Any, Handler] = {}
METHODS: dict[str, Any] = {}


def handles(*functions: Any, methods: str = "") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a handler; its own parameters behind `lower` name the arguments that it knows."""

    def register(handler: Callable[..., Any]) -> Callable[..., Any]:
        parameters = list(inspect.signature(handler).parameters.values())[1:]
        defaults = {p.name: p.default for p in parameters if p.default is not p.empty}
        for function in functions:
            HANDLERS[function] = Handler(tuple(p.name for p in parameters), defaults, handler)
        for name in methods.split():
            METHODS[name] = functions[0]
        return handler

    return register


SPECIAL: dict[str, Handler] = {}


def handles_special(handler: Callable[..., Any]) -> Callable[..., Any]:
    """Register a handler for the function of scipy.special of the same name."""
    function = object()
    handles(function)(handler)
    SPECIAL[handler.__name__] = HANDLERS.pop(function)
    return handler


def handler_of(function: Any) -> Handler | None:
    return SPECIAL.get(function.__name__) if ops.is_special(function) else HANDLERS.get(function)


def call_function(lower: Indexing, function: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """The value of a call of a known function, or None where it is not known."""
    if getattr(function, "__module__", "") == "math" and any(map(lower.is_complex, args)):
        name = ops.SAME_AS.get(function, function).__name__
        raise lower.refuse(f"math.{function.__name__} of a complex number", f"np.{name}", f"cmath.{function.__name__}")
    function = ops.SAME_AS.get(function, function)
    ops.know(function)
    if function in ops.AS_OPERATOR or function in ops.BITWISE or function in ops.NAMES:
        handler = HANDLERS.get(function)
        if handler is None:
            if kwargs:
                raise lower.refuse(f"{function.__name__} with the argument {next(iter(kwargs))}=", "leave it out")
            wanted = function.nin if isinstance(function, np.ufunc) else 1
            if len(args) != wanted:
                raise lower.refuse(f"{function.__name__} with {len(args)} arguments")
            return elementwise(lower, function, args)
    handler = handler_of(function)
    if handler is None:
        return None
    if len(args) > len(handler.parameters):
        raise lower.refuse(f"{name_of(function)} with {len(args)} arguments")
    bound = dict(zip(handler.parameters, args, strict=False))
    for name, value in kwargs.items():
        if name not in handler.parameters or name in bound:
            if value is NONE:
                continue
            raise lower.refuse(f"{name_of(function)} with the argument {name}=", "leave it out")
        bound[name] = value
    missing = [p for p in handler.parameters if p not in bound and p not in handler.defaults]
    if missing:
        raise lower.refuse(f"{name_of(function)} without its argument {missing[0]}")
    bound = {name: None if value is NONE else value for name, value in bound.items()}
    return handler.lower(lower, **bound)


def elementwise(lower: Indexing, function: Any, args: list[Any]) -> Any:
    args = [as_array(lower, a) if isinstance(a, tuple) else a for a in args]
    for a in args:
        if isinstance(a, Constant):
            raise lower.refuse(f"{a.value!r} as an argument of {name_of(function)}")
    name = ops.AS_OPERATOR.get(function) or ops.BITWISE.get(function) or ops.NAMES[function]
    if name in ("np.logical_and", "np.logical_or", "np.logical_not"):
        name = name[11:]
        args = [truth(lower, a) for a in args]
    return lower.elementwise(name, *args)


def truth(lower: Indexing, value: Any) -> Any:
    """The truth of each element."""
    if not lower.is_array(value):
        return lower.is_true(value)
    return value if lower.element_type(value) == BOOL else lower.elementwise("!=", value, 0)


def name_of(function: Any) -> str:
    module = (getattr(function, "__module__", "") or "").split(".")[0]
    name = getattr(function, "__name__", str(function))
    return f"np.{name}" if module == "numpy" or isinstance(function, np.ufunc) else name
