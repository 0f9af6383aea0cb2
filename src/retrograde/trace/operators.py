"""Elementwise functions on traced values: code generated from the table of rules, one function a rule.

`x * y` and `np.multiply(x, y)` end in the same generated function. Each rule gets its own because an eager program
spends its time here: a generic `apply(rule, *args)` costs five times as much. The two templates below are the whole of
it: they compute the primal, choose the op (see ops.py), make the node and the new traced value.
"""

from __future__ import annotations

import functools
import math
import numbers
import operator
from collections.abc import Callable
from typing import Any

import numpy as np  # (that of the program: its np.array takes lists of traced values)
from numpy import ndarray

from retrograde.rules import find
from retrograde.rules.numpy_arithmetic import POWER_OF_NUMBER
from retrograde.rules.table import RULES, Elementwise
from retrograde.trace import warning_places
from retrograde.trace.elementwise_ops import elementwise_op, residuals
from retrograde.trace.handle import FLOAT64, HANDLES, Traced, like_of, plain
from retrograde.trace.level import VARYING
from retrograde.trace.structure import of_numpy
from retrograde.trace.undecided import undecided
from retrograde.trace.views import kept, snapshot

# Scalars that take part in float64 arithmetic as they are.
NUMBERS = frozenset({float, int, bool, np.float64})
# Operands that need no look before they are used; everything else passes through `operand`.
_OPERANDS = frozenset(
    {float, int, bool, complex, np.ndarray, np.float64, np.float32, np.int64, np.bool_, np.complex128}
)

_RECORD = """
    if level.quick:
        level.append(node)
        z = Traced(); z.primal = r; z.link = node; z.level = level
        return z
    return level.follow(r, node)
"""

# `x` is a traced operand with primal `p`, `o` the other operand (its primal, where it is traced at the same level).
_BINARY = (
    """
def {name}(x, o):
    level = x.level
    p = x.primal
    kind = type(o)
    if kind is Traced or kind in HANDLES:
        other = o.level
        if other is level:
            {same}
            y = o; o = y.primal
            r = {apply}
            if type(p) is ndarray:
                shape = p.shape
                is_plain = type(o) is ndarray and o.shape == shape and p.dtype is FLOAT64 and o.dtype is FLOAT64
            else:
                is_plain = type(p) in NUMBERS and type(o) in NUMBERS or type(p) in HANDLES and is_plain_pair(p, o, True)
            if is_plain:
                node = (level.number(), BOTH, {links}, {keep_both})
            else:
                node = (level.number(), BOTH_FITTED, {links}, {keep_both} {likes})
            """
    + _RECORD.replace("\n", "\n        ").strip()
    + """
        if other.depth > level.depth:
            return other.map(ufunc, ({order}), {{}}) if other.maps else {mirror}(o, x)
        # A handle may be written to later; the node keeps what it holds now.
        o = snapshot(o)
        kind = type(o)
    elif kind not in OPERANDS:
        o = operand(o, p)
        if o is NotImplemented:
            return o
        if type(o) in HANDLES:
            return {name}(x, o)
    r = {apply}{keep_other}
    if type(p) is ndarray:
        is_plain = p.dtype is FLOAT64 and (
            kind in NUMBERS or kind is ndarray and o.dtype is FLOAT64 and o.shape == p.shape)
    else:
        is_plain = type(p) in NUMBERS and type(o) in NUMBERS or type(p) in HANDLES and is_plain_pair(p, o, False)
    if is_plain:
        node = (level.number(), ONE, x.link, {keep_one})
    else:
        node = (level.number(), ONE_FITTED, x.link, {keep_one} like_of(p))
"""
    + _RECORD
)

_UNARY = (
    """
def {name}(x):
    level = x.level
    p = x.primal
    r = {apply}
    if p.dtype is FLOAT64 if type(p) is ndarray else type(p) in NUMBERS or is_float64(p):
        node = (level.number(), ONE, x.link, {keep_one})
    else:
        node = (level.number(), ONE_FITTED, x.link, {keep_one} like_of(p))
"""
    + _RECORD
)


def unary(rule: Elementwise, apply: str = "function({})", function: Callable[..., Any] | None = None) -> Any:
    """The generated function of a rule with one argument. `apply` says how the primal is computed."""
    keep = _kept(rule, (True,), {"y": "r", "a": "p"})
    source = _UNARY.format(name=_identifier(rule), apply=apply.format("p"), keep_one=keep)
    scope = _scope(rule, function)
    scope |= {"ONE": elementwise_op(rule, (True,), False), "ONE_FITTED": elementwise_op(rule, (True,), True)}
    exec(compile(source, f"<retrograde {rule.name}>", "exec"), scope)
    return scope[_identifier(rule)]


def binary(
    rule: Elementwise, apply: str = "function({}, {})", function: Callable[..., Any] | None = None
) -> tuple[Any, Any]:
    """The generated functions `left(x, other)` and `right(x, other)`, where the traced `x` stands left or right."""
    left = _identifier(rule)
    right = left + "_reflected"
    scope = _scope(rule, function)
    scope |= {
        "BOTH": elementwise_op(rule, (True, True), False),
        "BOTH_FITTED": elementwise_op(rule, (True, True), True),
    }
    for name, mirror, a, b in ((left, right, "p", "o"), (right, left, "o", "p")):
        is_left = name == left
        one = (is_left, not is_left)
        here = {"y": "r", "a": a, "b": b}
        source = _BINARY.format(
            name=name,
            mirror=mirror,
            order="x, o" if is_left else "o, x",
            apply=apply.format(a, b),
            same="if o is x: return square(x)" if rule.function is np.multiply else "",
            links="x.link, y.link" if is_left else "y.link, x.link",
            likes="like_of(p), like_of(o)" if is_left else "like_of(o), like_of(p)",
            keep_both=_kept(rule, (True, True), here),
            keep_one=_kept(rule, one, here),
            keep_other="\n    if kind is ndarray: o = kept(o, level)" if "o, " in _kept(rule, one, here) else "",
        )
        suffix = "" if is_left else "_REFLECTED"
        source = source.replace(" ONE", f" ONE{suffix}")
        if rule.function is np.multiply:
            # A square has one partial where a product has two.
            scope["square"] = unary(_rule(np.square), "{} * {}".format("{0}", "{0}"))
        scope |= {
            f"ONE{suffix}": elementwise_op(rule, one, False),
            f"ONE{suffix}_FITTED": elementwise_op(rule, one, True),
        }
        exec(compile(source, f"<retrograde {rule.name}>", "exec"), scope)
    return scope[left], scope[right]


def _identifier(rule: Elementwise) -> str:
    return rule.name.replace(".", "_")


def _kept(rule: Elementwise, active: tuple[bool, ...], names: dict[str, str]) -> str:
    return "".join(f"{names[n]}, " for n in residuals(rule, active))


def _scope(rule: Elementwise, function: Callable[..., Any] | None) -> dict[str, Any]:
    warning_places.install()
    return warning_places.EVERY_TIME | {
        "function": function or rule.function,
        "ufunc": rule.function,
        "math": math,
        "Traced": Traced,
        "HANDLES": HANDLES,
        "FLOAT64": FLOAT64,
        "NUMBERS": NUMBERS,
        "OPERANDS": _OPERANDS,
        "ndarray": np.ndarray,
        "operand": operand,
        "like_of": like_of,
        "is_float64": is_float64,
        "snapshot": snapshot,
        "kept": kept,
        "is_plain_pair": is_plain_pair,
    }


def is_float64(p: Any) -> bool:
    """Whether a value is float64 (or a Python number) below all levels that trace it."""
    value = plain(p)
    return type(value) in NUMBERS or (type(value) is ndarray and value.dtype is FLOAT64)


def is_plain_pair(p: Any, o: Any, both: bool) -> bool:
    """Whether both values are float64 and of one shape, below all levels that trace them.

    A number goes with an array as well, unless `both` are differentiated: its cotangent is a sum.
    """
    a, b = plain(p), plain(o)
    if type(a) is ndarray:
        if a.dtype is not FLOAT64:
            return False
        return b.dtype is FLOAT64 and b.shape == a.shape if type(b) is ndarray else not both and type(b) in NUMBERS
    return type(a) in NUMBERS and type(b) in NUMBERS


def operand(o: Any, p: Any) -> Any:
    """The other operand of a traced value with primal `p`, or NotImplemented: then Python asks that operand itself."""
    if issubclass(type(o), ndarray):
        return of_numpy(o)
    if isinstance(o, np.generic | int | float | complex):
        return o
    if isinstance(o, list | tuple) and not isinstance(plain(p), int | float | complex):
        return np.array(o)
    if isinstance(o, numbers.Rational):
        return float(o)  # as Python does it beside a float
    return NotImplemented


class _Generated(dict[Any, Any]):
    """Functions of traced values by ufunc, generated when first asked for; None where the rule is of another kind."""

    def __missing__(self, function: Any) -> Any:
        rule = find(function)
        made = None
        if function is np.invert:
            rule = _rule(np.floor)
        elif any(function is bits for bits, _ in _BIT_OPERATORS.values()):
            rule = _rule(np.floor_divide)
        if isinstance(rule, Elementwise):
            if len(rule.partials) == 1:
                made = unary(rule, function=function)
            elif len(rule.partials) == 2:
                left, right = binary(rule, function=function)

                def made(x: Any, y: Any) -> Any:
                    return left(x, y) if type(x) in HANDLES else right(y, x)

        self[function] = made
        return made


GENERATED = _Generated()


# --- Python's operators ------------------------------------------------------------------------------------------

_UNARY_OPERATORS = {
    "__neg__": (np.negative, "-{}"),
    "__pos__": (np.positive, "+{}"),
    # These give integers, as Python's do, with a path to the output on which every derivative is zero.
    "__floor__": (np.floor, "math.floor({})"),
    "__ceil__": (np.ceil, "math.ceil({})"),
    "__trunc__": (np.trunc, "math.trunc({})"),
}
_BINARY_OPERATORS = {
    "add": (np.add, "{} + {}"),
    "sub": (np.subtract, "{} - {}"),
    "mul": (np.multiply, "{} * {}"),
    "truediv": (np.divide, "{} / {}"),
    "floordiv": (np.floor_divide, "{} // {}"),
    "mod": (np.remainder, "{} % {}"),
    "pow": (np.power, "{} ** {}"),
}


# Bits of integers: steps, as `n // 2` is, with a path to the output on which every derivative is zero.
_BIT_OPERATORS = {
    "and": (np.bitwise_and, "{} & {}"),
    "or": (np.bitwise_or, "{} | {}"),
    "xor": (np.bitwise_xor, "{} ^ {}"),
    "lshift": (np.left_shift, "{} << {}"),
    "rshift": (np.right_shift, "{} >> {}"),
}


def _install_lazily(name: str, build: Callable[[], None]) -> None:
    """Put a stand-in under `name` that builds the real method at its first use: imports stay quick."""

    def first_use(x: Any, *others: Any) -> Any:
        build()
        return getattr(Traced, name)(x, *others)

    first_use.__name__ = name
    setattr(Traced, name, first_use)


def _install_operators() -> None:
    for name, (ufunc, text) in _UNARY_OPERATORS.items():

        def build_unary(name: str = name, ufunc: Any = ufunc, text: str = text) -> None:
            setattr(Traced, name, unary(_rule(ufunc), text))

        _install_lazily(name, build_unary)
    for name, (ufunc, text) in _BINARY_OPERATORS.items():

        def build_binary(name: str = name, ufunc: Any = ufunc, text: str = text) -> None:
            left, right = binary(_rule(ufunc), text)
            setattr(Traced, f"__{name}__", _power(left) if name == "pow" else left)
            setattr(Traced, f"__r{name}__", right)
            setattr(Traced, f"__i{name}__", _in_place(left, getattr(Traced, f"__i{name}__")))

        _install_lazily(f"__{name}__", build_binary)
        _install_lazily(f"__r{name}__", build_binary)
    for name in ("lt", "le", "eq", "ne", "gt", "ge"):
        setattr(Traced, f"__{name}__", _on_plain(getattr(operator, name)))
    for name, (_, text) in _BIT_OPERATORS.items():

        def build_bits(name: str = name, text: str = text) -> None:
            left, right = binary(_rule(np.floor_divide), text)
            setattr(Traced, f"__{name}__", left)
            setattr(Traced, f"__r{name}__", right)

        _install_lazily(f"__{name}__", build_bits)
        _install_lazily(f"__r{name}__", build_bits)
    _install_lazily("__invert__", lambda: setattr(Traced, "__invert__", unary(_rule(np.floor), "~{}")))
    setattr(Traced, "__abs__", lambda x: np.absolute(x))
    setattr(Traced, "__divmod__", lambda x, y: (x // y, x % y))
    setattr(Traced, "__rdivmod__", lambda x, y: (y // x, y % x))
    setattr(Traced, "__matmul__", _matmul)
    setattr(Traced, "__rmatmul__", lambda x, y: _matmul(y, x))
    setattr(Traced, "__round__", _round)


def _rule(ufunc: Any) -> Elementwise:
    rule = RULES[ufunc]
    assert isinstance(rule, Elementwise)
    return rule


def _in_place(left: Callable[[Any, Any], Any], update: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """`x += y`, which for numbers is `x = x + y`; `update` is the one of arrays."""

    def in_place(x: Any, y: Any) -> Any:
        return left(x, y) if type(x.primal) in NUMBERS else update(x, y)

    return in_place


def _power(left: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """`x ** y`, where numbers as exponents have cheaper rules of the same value."""
    square = unary(_rule(np.square), "{} ** 2")
    of_number, _ = binary(POWER_OF_NUMBER, "{} ** {}")

    def power(x: Any, y: Any, modulus: Any = None) -> Any:
        if modulus is not None:
            return pow(plain(x), plain(y), plain(modulus))
        if type(y) is int or type(y) is float:
            return square(x) if y == 2 else of_number(x, y)
        return left(x, y)

    return power


def _matmul(x: Any, y: Any) -> Any:
    other = y if type(x) in HANDLES else x
    if type(other) not in HANDLES and operand(other, plain(x)) is NotImplemented:
        return NotImplemented
    return np.matmul(x, y)


def _round(x: Any, digits: Any = None) -> Any:
    if isinstance(plain(x), np.ndarray | np.generic):
        return np.round(x, digits or 0)
    return _python_round(digits)(x)


@functools.cache
def _python_round(digits: int | None) -> Any:
    """`round` of Python numbers, whose last digit is not always NumPy's."""
    return unary(_rule(np.rint), f"round({{}}, {digits})" if digits is not None else "round({})")


def _on_plain(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """A comparison: its result has no derivative, so that it is computed on plain values."""

    def compare(x: Any, y: Any) -> Any:
        truth = function(plain(x), plain(y))
        return undecided(truth, x, y) if VARYING else truth

    return compare


_install_operators()

__all__ = ["GENERATED", "NUMBERS", "operand"]
