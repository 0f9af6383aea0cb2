"""Which function converted a traced value, as the user's line names it, and what to write instead.

Looked up only when an error is made.
"""

from __future__ import annotations

import ast
import math
import sys
from types import FrameType, FunctionType, TracebackType
from typing import Any, NamedTuple

import numpy as np

from retrograde.errors import ConversionError, MutationError, callers_frame, is_ours, user_frame, users_entry
from retrograde.rules.table import RULES
from retrograde.trace.callers import Statement, called_name, statement_of

_DROP = (
    "data(x), dropgrad(x), or a block `with ignore():`, where the derivative is not wanted (to print, plot or save x)"
)
WAYS_TO_WRITE = (
    "make the array inside the function: np.zeros(shape), np.zeros_like(array), np.full(shape, value)",
    "copy what was made elsewhere: np.copy(array), np.array(expression)",
    "np.array([...]) or np.stack([...]) of the values; a Buffer",
)
_KEEP = "np.* and math.* functions, and Python's operators: they take traced values as they are"
_OWN_RULE = "primitive(function).defpullback(...), to give the function a derivative rule"
_LISTS = "np.array([...]) around a list: it works on traced values, {0}(np.array([a, b]))"
_RANDOM = "a draw from the standard distribution, scaled and shifted: mu + sigma * rng.normal()"


class Culprit(NamedTuple):
    """A function that a line of the user's calls."""

    # As it stands in the line.
    text: str
    # The function itself; None where it is not known.
    value: Any


def conversion_error(what: str, x: str, ways: tuple[str, ...]) -> ConversionError | MutationError:
    """The error for a conversion that would lose a derivative.

    Args:
        what: the conversion.
        x: the traced value, described.
        ways: what to write instead, if the user's own line converts.
    """
    frame = callers_frame(user_frame())
    if frame is not None and statement_of(frame) is Statement.ASSIGNMENT:
        return MutationError(f"{x} would be written into a plain array and lose its derivative", *WAYS_TO_WRITE)
    culprit = None if frame is None else _culprit(frame, frame)
    if culprit is None or _is_builtin(culprit.value):
        return ConversionError(f"{what} would lose the derivative of {x}", *ways, _DROP)
    if isinstance(culprit.value, type) and issubclass(culprit.value, np.generic):
        kept = f"x.astype({culprit.text}), or x as it is"
        return ConversionError(f"{culprit.text}(x) would lose the derivative of {x}", kept, _DROP)
    fact = f"{what} in {culprit.text}(...) would lose the derivative of {x}"
    return ConversionError(fact, *_instead(culprit, ways, "array" in what), _DROP)


def note_on(trace: TracebackType | None, place: str, sure: bool, given: Any = None) -> str:
    """What is added to an exception that others raise because of a traced value.

    Args:
        place: the user's line.
        sure: whether it is certain that a traced value is the cause.
        given: the function whose derivative was asked for, which is to blame where no line of the user's ran.
    """
    entry = users_entry(trace)
    if entry is not None:
        culprit = _culprit(entry, entry.tb_frame)
    else:
        name = getattr(given, "__name__", None)
        culprit = None if name is None or isinstance(given, FunctionType) else Culprit(name, given)
    if culprit is None or _is_builtin(culprit.value):
        fact, ways = "a traced value came to code that knows plain numbers and arrays only", [_KEEP, _OWN_RULE]
    else:
        fact = f"{culprit.text}(...) is compiled, or calls what is, and takes no traced values"
        fact += "" if sure else "; if it was given one"
        ways = _instead(culprit, (), False)
    numbered = "\n".join(f"  {number}. {way}" for number, way in enumerate([*ways, _DROP], 1))
    return f"retrograde: {fact}  ({place})\n{numbered}"


def _culprit(place: FrameType | TracebackType, frame: FrameType) -> Culprit | None:
    """The function that the instruction at which a frame is (or an entry of a traceback) calls."""
    import executing  # a tenth of a second, for those who make mistakes

    node = executing.Source.executing(place).node
    if isinstance(node, ast.Call):
        value = _value(node.func, frame)
        if str(getattr(value, "__module__", None)).startswith("retrograde"):
            return _given(place)  # gradient(scipy.linalg.norm, x)
        return Culprit(_short(ast.unparse(node.func)), value)
    position = place.tb_lasti if isinstance(place, TracebackType) else place.f_lasti
    name = called_name(frame.f_code, position) if node is None else None
    return Culprit(name, _named(name, frame)) if name else None


def _given(place: FrameType | TracebackType) -> Culprit | None:
    """The function of another package that was itself given to a transform."""
    frame = user_frame(strictly=False) if isinstance(place, FrameType) else None
    while frame is not None and frame.f_back is not None and not is_ours(frame.f_back):
        frame = frame.f_back
    if frame is None or frame is place:
        return None
    name = frame.f_code.co_name
    return Culprit(name, frame.f_globals.get(name))


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 60 else f"{text[:57]}..."


def _value(node: ast.expr, frame: FrameType) -> Any:
    """What a name, or an attribute of one, stands for; nothing is called to find it."""
    if isinstance(node, ast.Name):
        return _named(node.id, frame)
    if isinstance(node, ast.Attribute):
        return getattr(_value(node.value, frame), node.attr, None)
    if isinstance(node, ast.Call):  # np.vectorize(f)(x)
        made_by = _value(node.func, frame)
        return made_by if isinstance(made_by, type) else None
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        table = _value(node.value, frame)
        return table.get(node.slice.value) if type(table) is dict else None
    return None


def _named(name: str, frame: FrameType) -> Any:
    for scope in (frame.f_locals, frame.f_globals, frame.f_builtins):
        if name in scope:
            return scope[name]
    return None


def _is_builtin(value: Any) -> bool:
    """Whether it is one of Python's own conversions, which `what` names already."""
    return (getattr(value, "__module__", None) == "builtins" and not hasattr(value, "__self__")) or value in _BUILTINS


_BUILTINS = (abs, bin, chr, divmod, format, hex, max, min, next, oct, pow, range, round, sorted, sum, iter, print)


def _instead(culprit: Culprit, ways: tuple[str, ...], is_array: bool) -> list[str]:
    """What to write instead of a function that converts, where that can be known."""
    text, function = culprit
    owner = getattr(function, "__self__", None)
    module = str(getattr(function, "__module__", None) or type(owner if owner is not None else function).__module__)
    name = str(getattr(function, "__name__", text.rpartition(".")[2]))
    if any(m.startswith(("numpy.random", "random")) for m in (module, type(owner).__module__)):
        return [_RANDOM, _own_rule(text)]
    if function is np.vectorize or isinstance(function, np.vectorize):
        return ["a loop: np.array([f(v) for v in x])"]
    if function in _BUFFERS:
        return [f"x itself, x.reshape(...), x.view() or a slice, which share memory, too, in place of {text}(x)"]
    if hasattr(function, "py_func"):
        return [f"retrograde.compile({text}), which has native derivatives, too", f"{text}.py_func(x)", _own_rule(text)]
    early = _early(function, name)
    if early is not None:
        return [early]
    if isinstance(function, np.ufunc) or (
        is_array and module.startswith("numpy") and not module.startswith("numpy.linalg")
    ):
        return [_LISTS.format(text), *([] if isinstance(function, np.ufunc) else [_own_rule(text)])]
    same = _same_in_numpy(name, function)
    return [*([f"{same}, which has a derivative rule"] if same else []), *ways, _own_rule(text)]


def _own_rule(text: str) -> str:
    return f"primitive({text}).defpullback(...), to give it a derivative rule"


def _early(function: Any, name: str) -> str | None:
    """The way out of a function that is taken over as an attribute of its module, and was bound before."""
    from retrograde.trace.interception import options, stand_in  # which need the traced value

    if stand_in(function) is None:
        return None
    if not options.intercept:
        return "retrograde.options.intercept = True, with which such functions take traced values"
    module = "math" if getattr(math, name, None) is not None and hasattr(math, name) and not hasattr(np, name) else "np"
    also = f"math.{name}(x) or np.{name}(x)" if hasattr(math, name) and hasattr(np, name) else f"{module}.{name}(x)"
    return (
        f"{also}: a function that was bound early (`from … import {name}` in another module, a default argument) is "
        "taken over as an attribute of its module only"
    )


_BUFFERS = (np.ndarray, np.frombuffer, memoryview, bytes, bytearray)

_STATISTICS = {
    "fmean": "np.mean",
    "pstdev": "np.std",
    "pvariance": "np.var",
    "stdev": "np.std(x, ddof=1)",
    "variance": "np.var(x, ddof=1)",
}


def _same_in_numpy(name: str, function: Any) -> str | None:
    """A function of that name that has a rule."""
    if getattr(function, "__module__", None) == "statistics" and name in _STATISTICS:
        return _STATISTICS[name]
    for prefix, module in (("np.linalg", np.linalg), ("np", np), ("scipy.special", sys.modules.get("scipy.special"))):
        same = getattr(module, name, None)
        if same is not None and same is not function and getattr(same, "__wrapped__", same) in RULES:
            return f"{prefix}.{name}"
    return None
