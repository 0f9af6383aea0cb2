"""Other Python functions, inlined at their call: arrays alias as they do in Python, and loops fuse across the call."""

from __future__ import annotations

import ast
import inspect
import types
from typing import Any, NamedTuple

from retrograde.compiler.known import Constant
from retrograde.compiler.liveness import find_live_names, names_bound
from retrograde.compiler.lower.descriptions import describe
from retrograde.compiler.lower.flow import Flow
from retrograde.compiler.lower.frame import Frame
from retrograde.compiler.lower.values import Closure, Lazy
from retrograde.compiler.normalise import normalise
from retrograde.compiler.program import Program
from retrograde.compiler.source import Source, python_function, source_of
from retrograde.trace.running import Ruled

MOST_CALLS_DEEP = 40


class Calls(Flow):
    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self.hints = {}
        self.array_names = set()
        self.cell_keys = {}
        self.unbound = {}
        self.borrowed = []
        self.user_names = {}
        self.written = set()
        self.constants = {}
        self.read_only = set()
        self.structures = []
        self.reached = {}
        self.frames = []
        self.detachments = []
        self.returned_parts = []
        self.writes = []
        self.wanted_result = []
        self.attached = set()

    # The functions that are called, in the order of their first call.
    reached: dict[types.FunctionType, None]

    def call_python(self, f: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
        if isinstance(f, type) and issubclass(f, tuple) and hasattr(f, "_fields"):
            return self.make_named_tuple(f, args, kwargs)
        if isinstance(f, Ruled):
            return self.call_ruled(f, args, kwargs)
        function = python_function(f)
        if function is None:
            name = describe(self, Constant(f))
            raise self.refuse(f"a call of {name}, which compile does not know", *_ways_for(f))
        if (function.__module__ or "").split(".")[0] in ("scipy", "numpy", "numba"):
            raise self.refuse(
                f"a call of {function.__module__}.{function.__name__}, which compile does not know", *_ways_for(f)
            )
        source = source_of(function)
        if isinstance(f, types.FunctionType):
            self.reached[function] = None
        if any(frame.source.function is function for frame in self.frames):
            bound = self.bind_arguments(source.name, inspect.signature(function), args, kwargs)
            return self.call_procedure(source, bound)
        bound = self.bind_arguments(source.name, inspect.signature(function), args, kwargs)
        return self.called(source, bound, None)

    def call_procedure(self, source: Source, bound: dict[str, Any]) -> Any:
        raise NotImplementedError

    def call_ruled(self, f: Ruled, args: list[Any], kwargs: dict[str, Any]) -> Any:
        raise NotImplementedError

    def call_closure(self, f: Closure, args: list[Any], kwargs: dict[str, Any]) -> Any:
        name = f.source.tree.name
        if any(frame.source.tree is f.source.tree for frame in self.frames):
            raise self.refuse(f"{name} calls itself", "a function of its own, outside")
        bound = self.bind_arguments(name, _signature(f), args, kwargs)
        return self.called(f.source, bound, f.frame)

    def called(self, source: Source, bound: dict[str, Any], outer: Frame | None) -> Any:
        """The result of a function, written in at its call."""
        if len(self.frames) > MOST_CALLS_DEEP:
            raise self.refuse(f"calls more than {MOST_CALLS_DEEP} deep")
        assert self.at is not None
        frame = Frame(source, (*self.frame.path, (self.at.file, self.at.line, self.at.column)), outer)
        outer_at = self.at
        self.enter(frame, bound)
        self.leave()
        self.at = outer_at
        return frame.result

    def enter(self, frame: Frame, bound: dict[str, Any]) -> None:
        """Lower a function's body with its parameters bound."""
        body, results = normalise(frame.source.tree)
        find_live_names(body)
        self.frames.append(frame)
        self.source = frame.source
        frame.trusted = frozenset(results)
        frame.bound = names_bound(body) | set(bound)
        for name, value in bound.items():
            frame.env[name] = self.in_memory(value, name) if isinstance(value, Lazy) else value
        self.statements(body)

    def leave(self) -> None:
        self.frames.pop()
        self.source = self.frame.source

    def bind_arguments(
        self, function: str, signature: inspect.Signature, args: list[Any], kwargs: dict[str, Any]
    ) -> dict[str, Any]:
        """The values of a function's parameters."""
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise self.refuse(f"{function}: {error}") from None
        values: dict[str, Any] = {}
        for name, parameter in signature.parameters.items():
            if name in bound.arguments:
                values[name] = bound.arguments[name]
                if parameter.kind is parameter.VAR_KEYWORD:
                    raise self.refuse(f"** in the parameters of {function}", "parameters of their own")
            elif parameter.default is not parameter.empty:
                default = parameter.default
                values[name] = default.value if isinstance(default, _Lowered) else self.outside(default, name)
            elif parameter.kind is parameter.VAR_POSITIONAL:
                values[name] = ()
        return values

    def make_named_tuple(self, cls: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
        parts = [self.in_memory(a) if isinstance(a, Lazy) else a for a in args]
        named = {k: self.in_memory(a) if isinstance(a, Lazy) else a for k, a in kwargs.items()}
        try:
            return cls(*parts, **named)
        except TypeError as error:
            raise self.refuse(str(error)) from None


class _Lowered(NamedTuple):
    """A default that has been lowered already."""

    value: Any


def _signature(f: Closure) -> inspect.Signature:
    """The parameters of a function that is defined inside."""
    arguments = f.source.tree.args
    kinds: list[tuple[ast.arg | None, Any]] = [
        *((a, inspect.Parameter.POSITIONAL_ONLY) for a in arguments.posonlyargs),
        *((a, inspect.Parameter.POSITIONAL_OR_KEYWORD) for a in arguments.args),
        (arguments.vararg, inspect.Parameter.VAR_POSITIONAL),
        *((a, inspect.Parameter.KEYWORD_ONLY) for a in arguments.kwonlyargs),
        (arguments.kwarg, inspect.Parameter.VAR_KEYWORD),
    ]
    return inspect.Signature(
        [
            inspect.Parameter(
                a.arg, kind, default=_Lowered(f.defaults[a.arg]) if a.arg in f.defaults else inspect.Parameter.empty
            )
            for a, kind in kinds
            if a is not None
        ]
    )


def _ways_for(f: Any) -> tuple[str, ...]:
    name = getattr(f, "__name__", "")
    if name in ("print", "input"):
        return ("a print outside of the compiled function",)
    if name in ("list", "dict", "set", "tuple"):
        return ("an array",)
    return ("a function written in Python", "the call outside of the compiled function")
