"""The derivatives of scalar operations, from the one table of rules.

A partial is plain NumPy: `lambda y: 1 - y * y`. Called with symbols instead of numbers it writes itself down in the
form, so a formula serves here as it does in the eager modes.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from retrograde.compiler import ops
from retrograde.compiler.program import Program
from retrograde.compiler.types import Operand
from retrograde.errors import MissingRuleError
from retrograde.rules.table import RULES, Composed, Elementwise

Emit = Callable[..., Operand]
"""`emit(fn, *args)` writes an operation and returns its result."""


class Scribe(Protocol):
    """What writes operations (see calculus.py)."""

    program: Program

    def op(self, fn: str, *args: Operand) -> Operand: ...


@dataclass(frozen=True, slots=True)
class Product:
    """A partial that a cotangent or tangent is multiplied by in a way of its own.

    Attributes:
        of: `of(g, conj)` writes the product; what it multiplies g by goes through `conj` first.
        is_conjugate: whether it is the conjugate of a partial, by which cotangents are multiplied.
    """

    of: Callable[[Operand, Callable[[Operand], Operand]], Operand]
    is_conjugate: bool = False

    def conjugate(self) -> Product:
        return replace(self, is_conjugate=not self.is_conjugate)


def partials(fn: str, args: tuple[Operand, ...], y: Operand, wanted: tuple[bool, ...], writer: Scribe) -> list[Any]:
    """∂y/∂arg of `y = fn(*args)` for each argument, an operand or a `Product`; None where it is zero or not wanted.

    Of complex numbers the derivative along ẋ is partial · ẋ, and its real part where y is real.
    """
    own = _OF_THE_FORM.get(fn) or (_cast if fn.startswith("cast:") else None)
    if fn == "np.absolute" and writer.program.type_of(args[0]).is_complex:
        own = _length
    if own is not None:
        return [p if w else None for p, w in zip(own(args, y, writer.op), wanted, strict=True)]
    rule = RULES[ops.ARITHMETIC.get(fn) or (np.negative if fn == "neg" else ops.FUNCTIONS[fn])]
    if not isinstance(rule, Elementwise):
        raise MissingRuleError(f"{fn} has no elementwise rule")
    values = {"y": y, "x": args[0], **dict(zip("abc", args, strict=False))}
    found: list[Any] = []
    for partial, want in zip(rule.partials, wanted, strict=True):
        if not want:
            found.append(None)
        elif callable(partial):
            found.append(_operand(partial(*(_symbol(values[n], writer) for n in _parameters(partial)))))
        else:
            found.append(None if partial == 0 else partial)
    return found


@functools.cache
def _parameters(partial: Callable[..., Any]) -> tuple[str, ...]:
    return tuple(inspect.signature(partial).parameters)


def _cast(args: tuple[Operand, ...], y: Operand, emit: Emit) -> list[Any]:
    return [1.0]


def _length(args: tuple[Operand, ...], y: Operand, emit: Emit) -> list[Any]:
    """∂|z|: conj(z) / |z|, and zero at zero; of which a second derivative at zero is not lost, but infinite or NaN."""
    return [Product(lambda g, conj: emit("along", conj(emit("conj", args[0])), emit("over", g, y)))]


_OF_THE_FORM: dict[str, Callable[[tuple[Operand, ...], Operand, Emit], list[Any]]] = {
    "id": lambda args, y, emit: [1.0],
    # Where g is zero nothing comes of a change of the partial, though that be infinite or NaN.
    "times": lambda args, y, emit: [args[1], Product(lambda p_dot, conj: emit("times", conj(args[0]), p_dot))],
    "keep": lambda args, y, emit: [None, 1.0],
    "real": lambda args, y, emit: [1.0],
    "imag": lambda args, y, emit: [-1j],
    "complex": lambda args, y, emit: [1.0, 1j],
    "where": lambda args, y, emit: [None, emit("where", args[0], 1.0, 0.0), emit("where", args[0], 0.0, 1.0)],
    # The first of equals is what Python returns.
    "max": lambda args, y, emit: _picked(emit, emit(">", args[1], args[0])),
    "min": lambda args, y, emit: _picked(emit, emit("<", args[1], args[0])),
    # Lengths, as in rules/lengths.py: at the origin the slope is zero, and the derivative of the slope is not lost.
    "squared": lambda args, y, emit: [Product(lambda g, conj: emit("along", args[0], emit("*", 2.0, g)))],
    "root": lambda args, y, emit: [Product(lambda g, conj: emit("over", g, emit("*", 2.0, y)))],
    "over": lambda args, y, emit: [
        _per(args, emit),
        Product(lambda y_dot, conj: emit("times", y, _rate(args, y_dot, emit))),
    ],
    "per": lambda args, y, emit: [
        _per(args, emit),
        Product(lambda y_dot, conj: emit("*", y, _rate(args, y_dot, emit))),
    ],
    "along": lambda args, y, emit: [args[1], Product(lambda r_dot, conj: emit("along", args[0], r_dot))],
    "np.hypot": lambda args, y, emit: [_cosine(x, y, emit) for x in args],
}


def _per(args: tuple[Operand, ...], emit: Emit) -> Product:
    return Product(lambda g_dot, conj: emit("per", g_dot, args[1]))


def _rate(args: tuple[Operand, ...], length_dot: Operand, emit: Emit) -> Operand:
    return emit("neg", emit("/", length_dot, args[1]))


def _cosine(x: Operand, y: Operand, emit: Emit) -> Product:
    return Product(lambda g, conj: emit("along", x, emit("over", g, y)))


def _picked(emit: Emit, second: Operand) -> list[Operand]:
    return [emit("where", second, 0.0, 1.0), emit("where", second, 1.0, 0.0)]


def _symbol(operand: Operand, writer: Scribe) -> Any:
    return Symbol(operand, writer) if isinstance(operand, str) else operand


def _operand(value: Any) -> Operand:
    if isinstance(value, Symbol):
        return value.operand
    return value.item() if isinstance(value, np.generic | np.ndarray) else value


class Symbol:
    """A name in a formula that is being written down."""

    __slots__ = ("operand", "writer")
    __array_priority__ = 1000

    def __init__(self, operand: Operand, writer: Scribe) -> None:
        self.operand = operand
        self.writer = writer

    def _apply(self, fn: str, *args: Any) -> Symbol | Any:
        result = self.writer.op(fn, *(_operand(a) for a in args))
        return Symbol(result, self.writer) if isinstance(result, str) else result

    @property
    def is_complex(self) -> bool:
        return self.writer.program.type_of(self.operand).is_complex

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        ops.know(ufunc)
        name = ops.AS_OPERATOR.get(ufunc) or ops.NAMES.get(ufunc) or _OTHERS.get(ufunc)
        if name is None or method != "__call__" or kwargs:
            raise MissingRuleError(f"{ufunc.__name__} in a partial derivative, which compile does not know")
        if ufunc is np.positive:
            return self
        if ufunc is np.conjugate:
            return self.conjugate()
        return self._apply(name, *inputs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if function is np.where and not kwargs:
            return self._apply("where", *args)
        if function is np.iscomplexobj:
            return args[0].is_complex
        if function is np.any:
            return True  # for all that is known here
        if function is np.real:
            return self._apply("real", self) if self.is_complex else self
        if function is np.imag:
            return self._apply("imag", self) if self.is_complex else 0.0
        rule = RULES.get(function)
        if isinstance(rule, Composed):
            return rule.body(*args, **kwargs)
        if function in ops.NAMES and not kwargs:
            return self._apply(ops.NAMES[function], *args)
        raise MissingRuleError(f"{function.__name__} in a partial derivative, which compile does not know")

    def conjugate(self) -> Symbol | Any:
        return self._apply("conj", self) if self.is_complex else self

    conj = conjugate

    def __bool__(self) -> bool:
        raise MissingRuleError("a branch in a partial derivative, which compile does not know")

    def __neg__(self) -> Any:
        return self._apply("neg", self)

    def __pos__(self) -> Any:
        return self

    def __hash__(self) -> int:
        return hash(self.operand)


_OTHERS = {np.bitwise_and: "and", np.bitwise_or: "or", np.invert: "not", np.conjugate: "conj"}


def _binary(fn: str) -> tuple[Any, Any]:
    def forward(self: Symbol, other: Any) -> Any:
        return self._apply(fn, self, other)

    def backward(self: Symbol, other: Any) -> Any:
        return self._apply(fn, other, self)

    return forward, backward


for _sign, _method in (
    *(("+", "add"), ("-", "sub"), ("*", "mul"), ("/", "truediv"), ("//", "floordiv"), ("%", "mod"), ("**", "pow")),
    *(("and", "and"), ("or", "or")),
):
    _forward, _backward = _binary(_sign)
    setattr(Symbol, f"__{_method}__", _forward)
    setattr(Symbol, f"__r{_method}__", _backward)
for _sign, _method in (("<", "lt"), ("<=", "le"), (">", "gt"), (">=", "ge"), ("==", "eq"), ("!=", "ne")):
    setattr(Symbol, f"__{_method}__", _binary(_sign)[0])


def is_finite(x: Any) -> bool:
    return isinstance(x, int | float) and math.isfinite(x)
