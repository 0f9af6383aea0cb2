"""What stands for the functions of `math` while a transform runs: they call `float`, which a traced value refuses."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from typing import Any

from retrograde.originals import np
from retrograde.rules.table import RULES, Elementwise
from retrograde.trace.call import dispatch
from retrograde.trace.creation import contains_traced
from retrograde.trace.handle import HANDLES, MAPPED, plain
from retrograde.trace.operators import binary, unary
from retrograde.trace.stand_ins import STAND_INS, Table, replaces
from retrograde.trace.undecided import undecided

MATH: Table = {}

# Functions of `math` whose derivative is that of a NumPy function; the value is computed by `math` all the same.
_ONE = {
    "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh, "atan": np.arctan,
    "atanh": np.arctanh, "cbrt": np.cbrt, "cos": np.cos, "cosh": np.cosh, "degrees": np.degrees, "erf": math.erf,
    "erfc": math.erfc, "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "gamma": math.gamma, "lgamma": math.lgamma,
    "log10": np.log10, "log1p": np.log1p, "log2": np.log2, "radians": np.radians, "sin": np.sin, "sinh": np.sinh,
    "sqrt": np.sqrt, "tan": np.tan, "tanh": np.tanh,
}  # fmt: skip
_TWO = {"atan2": np.arctan2, "copysign": np.copysign, "fmod": np.fmod, "pow": np.power}
_PLAIN = ("isnan", "isinf", "isfinite", "isclose")  # floor, ceil and trunc ask the traced value themselves


def _scalar(x: Any) -> Any:
    """A traced value as `math` takes it: an array of one element is its element."""
    value = plain(x)
    if type(value) is not np.ndarray:
        return x
    if value.size != 1:
        float(value)  # NumPy says what is wrong with it
    return x.item()


def _elementwise(function: Any) -> Elementwise:
    rule = RULES[function]
    assert isinstance(rule, Elementwise)
    return rule


def _one(name: str, function: Any) -> Callable[[Any], Any]:
    original = getattr(math, name)

    @functools.wraps(original)
    def replaced(x: Any, /) -> Any:
        if type(x) not in HANDLES:
            return original(x)
        if type(x) in MAPPED and x.level.maps:
            # Of all examples at once, as NumPy computes it.
            return x.level.map(function, (_scalar(x),), {})
        return _generated_one(name, function)(_scalar(x))

    return replaced


def _two(name: str, function: Any) -> Callable[[Any, Any], Any]:
    original = getattr(math, name)

    @functools.wraps(original)
    def replaced(x: Any, y: Any, /) -> Any:
        if type(x) in MAPPED or type(y) in MAPPED:
            return dispatch(function, (_scalar(x), _scalar(y)), {})
        if type(x) in HANDLES:
            return _generated_two(name, function)[0](_scalar(x), y)
        return _generated_two(name, function)[1](_scalar(y), x) if type(y) in HANDLES else original(x, y)

    return replaced


def _on_plain(name: str) -> Callable[..., Any]:
    original = getattr(math, name)

    @functools.wraps(original)
    def replaced(*args: Any, **kwargs: Any) -> Any:
        values = tuple(map(plain, args))
        if not MAPPED.isdisjoint(map(type, values)):
            return getattr(np, name)(*args, **kwargs)
        return undecided(original(*values, **kwargs), *args)

    return replaced


@functools.cache
def _generated_one(name: str, function: Any) -> Any:
    # The primal is computed by the replacement, since it may be traced by an outer transform.
    return unary(_elementwise(function), function=MATH[name])


@functools.cache
def _generated_two(name: str, function: Any) -> Any:
    return binary(_elementwise(function), function=MATH[name])


def _take_over() -> None:
    # exp2 and cbrt came with Python 3.11, others may come later.
    made: dict[str, Callable[..., Any]] = {name: _one(name, function) for name, function in _ONE.items()}
    made |= {name: _two(name, function) for name, function in _TWO.items()}
    made |= {name: _on_plain(name) for name in _PLAIN}
    for name, replaced in made.items():
        MATH[name] = replaced
        STAND_INS[id(getattr(math, name))] = replaced


_take_over()


@replaces(math, "log", MATH)
def _log(original: Any, x: Any, *base: Any) -> Any:
    if type(x) not in HANDLES and not (base and type(base[0]) in HANDLES):
        return original(x, *base)
    if base:
        return MATH["log"](x) / MATH["log"](base[0])
    if type(x) in MAPPED:
        return np.log(_scalar(x))
    return _generated_one("log", np.log)(_scalar(x))


@replaces(math, "fabs", MATH)
def _fabs(original: Any, x: Any) -> Any:
    return abs(_scalar(x)) * 1.0 if type(x) in HANDLES else original(x)


@replaces(math, "frexp", MATH)
def _frexp(original: Any, x: Any) -> Any:
    if type(x) not in HANDLES:
        return original(x)
    exponent = original(plain(x))[1]
    # In two steps, since a power of two that big does not exist.
    half = exponent // 2
    return _scalar(x) * 2.0**-half * 2.0 ** (half - exponent), exponent


@replaces(math, "hypot", MATH)
def _hypot(original: Any, *coordinates: Any) -> Any:
    if not contains_traced(coordinates):
        return original(*coordinates)
    return functools.reduce(np.hypot, coordinates) if len(coordinates) > 1 else abs(coordinates[0])


@replaces(math, "ldexp", MATH)
def _ldexp(original: Any, x: Any, i: Any) -> Any:
    return _scalar(x) * 2.0 ** plain(i) if type(x) in HANDLES else original(x, plain(i))


@replaces(math, "modf", MATH)
def _modf(original: Any, x: Any) -> Any:
    if type(x) not in HANDLES:
        return original(x)
    x = _scalar(x)
    whole = np.trunc(x)
    return x - whole, whole


@replaces(math, "remainder", MATH)
def _remainder(original: Any, x: Any, y: Any) -> Any:
    if not contains_traced([x, y]):
        return original(x, y)
    x, y = _scalar(x), _scalar(y)
    return x - y * round((plain(x) - original(plain(x), plain(y))) / plain(y))


@replaces(math, "dist", MATH)
def _dist(original: Any, p: Any, q: Any) -> Any:
    if not contains_traced([*p, *q]):
        return original(p, q)
    return MATH["hypot"](*(a - b for a, b in zip(p, q, strict=True)))


@replaces(math, "fsum", MATH)
def _fsum(original: Any, values: Any) -> Any:
    values = list(values)
    return sum(values[1:], start=values[0]) if contains_traced(values) else original(values)


@replaces(math, "prod", MATH)
def _prod(original: Any, values: Any, *, start: Any = 1) -> Any:
    values = list(values)
    if not contains_traced([*values, start]):
        return original(values, start=start)
    return functools.reduce(operator.mul, values, start)
