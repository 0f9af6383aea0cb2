"""Functions that NumPy's protocols do not cover, taken over while a transform runs.

`np.array([x[0], 2.0])`, `np.sum([x[0], x[1]])` and `math.sin(x)` never ask a traced value what to do. They are
therefore replaced as attributes of their modules for as long as some transform runs, and in the globals of the user's
own modules, where they were imported by name. With arguments that are not traced a replacement calls the original at
once, whoever called it. Rejected: an ndarray subclass that poisons its buffer (not reliably loud), and rewriting the
user's source (does not reach what it calls). See docs/decisions.
"""

from __future__ import annotations

import contextvars
import functools
import gc
import math
import operator
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import thread
from contextlib import contextmanager
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial import polyutils

from retrograde.rules.numpy_indexing import take_body
from retrograde.rules.table import RULES, Elementwise
from retrograde.trace import early_bound, fourier, sparse_matrices, special
from retrograde.trace import level as levels
from retrograde.trace.call import dispatch
from retrograde.trace.callers import calling_frame
from retrograde.trace.constant import CONSTANT, writable
from retrograde.trace.creation import array_of, contains_traced
from retrograde.trace.elements import vectorize_call, vectorized
from retrograde.trace.handle import HANDLES, MAPPED, VIEWS, contents, data, plain
from retrograde.trace.iteration import Iterator as ArrayIterator
from retrograde.trace.iteration import enumerate_init, enumerated
from retrograde.trace.operators import binary, unary
from retrograde.trace.striding import strided
from retrograde.trace.undecided import undecided


class Options:
    """What can be switched in the library.

    Attributes:
        intercept: take over `np.array`, `np.asarray`, `math.*` and the like while a transform runs. Switched off,
            they raise an error when they are given a traced value.
        lines: note the line of every operation, so that an error in the derivative of one names it. It makes each
            operation several times as slow, and is meant for finding such an error.
    """

    __slots__ = ("intercept", "lines")

    def __init__(self) -> None:
        self.intercept = True
        self.lines = False

    def __repr__(self) -> str:
        return f"Options(intercept={self.intercept}, lines={self.lines})"


options = Options()

_originals: dict[int, Callable[..., Any]] = {}
_numpy: dict[str, Callable[..., Any]] = {}
_linalg: dict[str, Callable[..., Any]] = {}
_math: dict[str, Callable[..., Any]] = {}
_strides: dict[str, Callable[..., Any]] = {}


def _replaces(
    module: Any, name: str, table: dict[str, Callable[..., Any]], makes: bool = False
) -> Callable[[Any], Any]:
    """Decorate the replacement of a function. The replacement gets the original as its first argument.

    What is new in the memory of a plain array can be written to if the function always `makes` one.
    """

    def decorate(replacement: Callable[..., Any]) -> Callable[..., Any]:
        original = getattr(module, name)

        @functools.wraps(original)
        def replaced(*args: Any, **kwargs: Any) -> Any:
            if not levels.ACTIVE:
                return original(*args, **kwargs)  # where it was bound by name
            made = replacement(original, *args, **kwargs)
            if makes and type(made) is np.ndarray:
                return writable(made, sys._getframe(1), name)
            if module is np and type(made) in HANDLES and made.level.depth >= 0 and calling_frame(name) is None:
                # Compiled code takes what it gets for an array; the original refuses the traced value.
                return original(*args, **kwargs)
            return made

        table[name] = replaced
        _originals[id(original)] = replaced
        return replaced

    return decorate


# --- making arrays -----------------------------------------------------------------------------------------------


@_replaces(np, "array", _numpy)
def _array(
    original: Any,
    object: Any,
    dtype: Any = None,
    *,
    copy: Any = True,
    order: Any = "K",
    subok: bool = False,
    ndmin: int = 0,
    like: Any = None,
) -> Any:
    object = _outside_ignore(object)
    if not contains_traced(object):
        made = original(object, dtype, copy=copy, order=order, subok=subok, ndmin=ndmin, like=like)
        return writable(made, calling_frame("array"), "array") if made.base is None and made is not object else made
    x = _as_array(object, dtype)
    if copy is True and x is object:
        x = np.copy(x)
    x = _laid_out(x, order)
    if ndmin > x.ndim:
        x = np.reshape(x, (1,) * (ndmin - x.ndim) + x.shape)
    return _for_caller(x, "array", x is not object)


def _as_array_replacement(
    original: Any,
    a: Any,
    dtype: Any = None,
    order: Any = None,
    *,
    device: Any = None,
    copy: Any = None,
    like: Any = None,
) -> Any:
    a = _outside_ignore(a)
    if not contains_traced(a):
        # Not all of them have all these arguments.
        given = {"order": order, "device": device, "copy": copy, "like": like}
        made = original(a, dtype, **{name: value for name, value in given.items() if value is not None})
        name = original.__name__
        return writable(made, calling_frame(name), name) if isinstance(a, list | tuple) else made
    x = _as_array(a, dtype)
    if copy and x is a:
        x = np.copy(x)
    if x.ndim == 0:
        # Contiguous arrays have an axis.
        x = np.reshape(x, original(0.0).shape)
    x = _laid_out(x, _LAYOUTS.get(original.__name__, order))
    return _for_caller(x, original.__name__, x is not a)


@_replaces(np, "require", _numpy)
def _require(original: Any, a: Any, dtype: Any = None, requirements: Any = None, **kwargs: Any) -> Any:
    if not contains_traced(a):
        return original(a, dtype, requirements, **kwargs)
    wanted = {str(name).upper()[:1] for name in requirements or ()}
    return _laid_out(_as_array(a, dtype), "F" if "F" in wanted else "C" if "C" in wanted else None)


_LAYOUTS = {"ascontiguousarray": "C", "asfortranarray": "F"}

for _name in ("asarray", "asanyarray", "ascontiguousarray", "asfortranarray"):
    _replaces(np, _name, _numpy)(_as_array_replacement)


def _for_caller(x: Any, name: str, is_new: bool) -> Any:
    """A constant array as the caller of the function `name` needs it: plain, or ready to be written to."""
    if type(x) not in HANDLES or x.level is not CONSTANT:
        return writable(x, calling_frame(name), name)
    array = x.primal
    made = writable(array, calling_frame(name), name)
    if type(made) in HANDLES:
        return x
    # Plain, and its memory is that of an array which may become traced, unless it was made for this call.
    return array if is_new and type(x) not in VIEWS else x.lent()


def _laid_out(x: Any, order: Any) -> Any:
    """`x`, or a copy if its elements do not lie in memory in that order. It decides which results are views."""
    flags = contents(x).flags
    if (order == "C" and not flags.c_contiguous) or (order == "F" and not flags.f_contiguous):
        return np.copy(x, order=order)
    return x


def _outside_ignore(tree: Any) -> Any:
    """The same with plain values for those that an `ignore()` block lets go."""
    if not levels.CONTEXT.get().ignored:
        return tree
    if isinstance(tree, list | tuple):
        return [_outside_ignore(item) for item in tree]
    return data(tree) if type(tree) in HANDLES and levels.is_ignored(tree.level) else tree


def _as_array(tree: Any, dtype: Any) -> Any:
    x = array_of(tree)
    if not isinstance(plain(x), np.ndarray):
        x = np.copy(x)  # an array without axes; np.reshape leaves a number of NumPy's a number
    return x if dtype is None or np.dtype(dtype) == x.dtype else x.astype(dtype)


def _sized(original: Any, *args: Any, **kwargs: Any) -> Any:
    """A function of sizes, which a traced integer may be."""
    return original(*map(_integer, args), **{name: _integer(value) for name, value in kwargs.items()})


def _integer(tree: Any) -> Any:
    if isinstance(tree, list | tuple):
        return type(tree)(_integer(item) for item in tree)
    return operator.index(tree) if type(tree) in HANDLES and isinstance(plain(tree), int | np.integer) else tree


for _name in ("empty", "eye", "identity", "indices", "ones", "tri", "zeros"):
    _replaces(np, _name, _numpy, makes=True)(_sized)


def _like_others(original: Any, *args: Any, **kwargs: Any) -> Any:
    """A function that makes a new array of others, or of numbers."""
    return original(*args, **kwargs)


for _name in (
    "copy", "empty_like", "geomspace", "linspace", "logspace", "ones_like", "repeat", "tile", "zeros_like",
):  # fmt: skip
    _replaces(np, _name, _numpy, makes=True)(_like_others)


@_replaces(np, "arange", _numpy, makes=True)
def _arange(original: Any, *args: Any, **kwargs: Any) -> Any:
    """start + k step; of a traced stop only the number of elements depends, which is an integer."""
    args, kwargs = tuple(map(_integer, args)), {name: _integer(value) for name, value in kwargs.items()}
    if not contains_traced(args) and not contains_traced([*kwargs.values()]):
        return original(*args, **kwargs)
    made = original(*map(data, args), **{name: data(value) for name, value in kwargs.items()})
    given = dict(zip(("start", "stop", "step", "dtype"), args, strict=False)) | kwargs
    start, step = (given.get("start", 0), given.get("step", 1)) if given.get("stop") is not None else (0, 1)
    return start + np.arange(made.size).astype(made.dtype) * step if contains_traced([start, step]) else made


@_replaces(np, "kaiser", _numpy)
def _kaiser(original: Any, M: Any, beta: Any) -> Any:
    if not contains_traced(beta):
        return original(_integer(M), beta)
    points = len(original(_integer(M), 0.0))
    places = np.linspace(-1, 1, points) if points > 1 else np.zeros(points)
    return np.i0(beta * np.sqrt(1 - places**2)) / np.i0(beta)


@_replaces(np, "full", _numpy, makes=True)
def _full(original: Any, shape: Any, fill_value: Any, dtype: Any = None, **kwargs: Any) -> Any:
    if not contains_traced(fill_value):
        return original(_integer(shape), fill_value, dtype, **kwargs)
    filled = np.broadcast_to(_as_array(fill_value, dtype), _integer(shape))
    return np.copy(filled)


@_replaces(np, "full_like", _numpy, makes=True)
def _full_like(original: Any, a: Any, fill_value: Any, dtype: Any = None, **kwargs: Any) -> Any:
    if not contains_traced(fill_value):
        return original(a, fill_value, dtype, **kwargs)
    return dispatch(original, (np.asarray(a) if isinstance(a, list | tuple) else a, fill_value, dtype), kwargs)


# --- polynomials -------------------------------------------------------------------------------------------------

_polyutils: dict[str, Callable[..., Any]] = {}


@_replaces(polyutils, "trimseq", _polyutils)
def _trimseq(original: Any, seq: Any) -> Any:
    """Coefficients without zeros at the end. One that is traced stays: it is zero here, and its slope need not be."""
    return seq if type(seq) in HANDLES and not seq.is_free() else original(seq)


# --- lists of traced values --------------------------------------------------------------------------------------

# Functions that are called with lists: NumPy makes an array of a list before it asks anybody. No more of them, since
# each costs every transform 50 ns; the others raise, and the error says `np.array([...])`. So do ufuncs, which programs
# tell by their identity and whose methods they use.
_TAKE_LISTS = (
    "sum prod mean std var max min median average sort argsort argmax argmin dot inner outer cross cumsum cumprod diff "
    "interp clip where"
)
# Only the first argument is an array; the others are shapes and the like, which may hold traced integers.
_TAKE_ONE_LIST = "shape reshape"
_TAKE_LISTS_OF_LISTS = "concatenate stack hstack vstack column_stack"
_LINALG_TAKE_LISTS = "norm det inv solve"

_SEQUENCES = (list, tuple)


def _array_if_traced(arg: Any) -> Any:
    return array_of(arg) if issubclass(type(arg), _SEQUENCES) and contains_traced(arg) else arg


def _arrays_if_traced(arg: Any) -> Any:
    return [_array_if_traced(member) for member in arg] if issubclass(type(arg), _SEQUENCES) else arg


def _take_lists(
    module: Any,
    names: str,
    table: dict[str, Any],
    take: Callable[[Any], Any],
    count: int | None = None,
    makes: bool = False,
) -> None:
    """Replace functions by themselves after `take` of their first `count` arguments (None: of all).

    What they give can be written to if a function `makes` a new array (and no view of another).
    """
    for name in names.split():
        original = getattr(module, name)
        table[name] = _originals[id(original)] = _taking_lists(original, take, count, makes)


def _taking_lists(
    original: Callable[..., Any], take: Callable[[Any], Any], count: int | None, makes: bool
) -> Callable[..., Any]:
    @functools.wraps(original)
    def replaced(*args: Any, **kwargs: Any) -> Any:
        for arg in args:
            # Not isinstance, which asks a traced value for its class.
            if issubclass(type(arg), _SEQUENCES):
                args = (*map(take, args[:count]), *(args[count:] if count else ()))
                break
        if kwargs and count is None:
            kwargs = {name: take(value) for name, value in kwargs.items()}
        y = original(*args, **kwargs)
        if makes and type(y) is np.ndarray and y.base is None:
            return writable(y, sys._getframe(1), original.__name__)
        return y

    return replaced


_take_lists(np, _TAKE_LISTS, _numpy, _array_if_traced)
_take_lists(np, _TAKE_ONE_LIST, _numpy, _array_if_traced, 1)
_take_lists(np, "diag", _numpy, _array_if_traced, 1, makes=True)
_take_lists(np, _TAKE_LISTS_OF_LISTS, _numpy, _arrays_if_traced, makes=True)
_take_lists(np.linalg, _LINALG_TAKE_LISTS, _linalg, _array_if_traced)


@_replaces(np.lib.stride_tricks, "as_strided", _strides)
def _as_strided(original: Any, x: Any, shape: Any = None, strides: Any = None, *args: Any, **kwargs: Any) -> Any:
    if type(x) not in HANDLES:
        return original(x, shape, strides, *args, **kwargs)
    return strided(x, shape, strides)


_numpy["nditer"] = _originals[id(np.nditer)] = ArrayIterator


@_replaces(np, "take", _numpy)
def _take(original: Any, a: Any, indices: Any, *args: Any, **kwargs: Any) -> Any:
    places = plain(indices)
    if type(places) in MAPPED:
        return take_body(a, places, *args, **kwargs)
    return original(a, indices, *args, **kwargs)


# --- math --------------------------------------------------------------------------------------------------------

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
    return unary(_elementwise(function), function=_math[name])


@functools.cache
def _generated_two(name: str, function: Any) -> Any:
    return binary(_elementwise(function), function=_math[name])


def _take_over_math() -> None:
    # exp2 and cbrt came with Python 3.11, others may come later.
    made: dict[str, Callable[..., Any]] = {name: _one(name, function) for name, function in _ONE.items()}
    made |= {name: _two(name, function) for name, function in _TWO.items()}
    made |= {name: _on_plain(name) for name in _PLAIN}
    for name, replaced in made.items():
        _math[name] = replaced
        _originals[id(getattr(math, name))] = replaced


_take_over_math()


@_replaces(math, "log", _math)
def _log(original: Any, x: Any, *base: Any) -> Any:
    if type(x) not in HANDLES and not (base and type(base[0]) in HANDLES):
        return original(x, *base)
    if base:
        return _math["log"](x) / _math["log"](base[0])
    if type(x) in MAPPED:
        return np.log(_scalar(x))
    return _generated_one("log", np.log)(_scalar(x))


@_replaces(math, "fabs", _math)
def _fabs(original: Any, x: Any) -> Any:
    return abs(_scalar(x)) * 1.0 if type(x) in HANDLES else original(x)


@_replaces(math, "frexp", _math)
def _frexp(original: Any, x: Any) -> Any:
    if type(x) not in HANDLES:
        return original(x)
    exponent = original(plain(x))[1]
    # In two steps, since a power of two that big does not exist.
    half = exponent // 2
    return _scalar(x) * 2.0**-half * 2.0 ** (half - exponent), exponent


@_replaces(math, "hypot", _math)
def _hypot(original: Any, *coordinates: Any) -> Any:
    if not contains_traced(coordinates):
        return original(*coordinates)
    return functools.reduce(np.hypot, coordinates) if len(coordinates) > 1 else abs(coordinates[0])


@_replaces(math, "ldexp", _math)
def _ldexp(original: Any, x: Any, i: Any) -> Any:
    return _scalar(x) * 2.0 ** plain(i) if type(x) in HANDLES else original(x, plain(i))


@_replaces(math, "modf", _math)
def _modf(original: Any, x: Any) -> Any:
    if type(x) not in HANDLES:
        return original(x)
    x = _scalar(x)
    whole = np.trunc(x)
    return x - whole, whole


@_replaces(math, "remainder", _math)
def _remainder(original: Any, x: Any, y: Any) -> Any:
    if not contains_traced([x, y]):
        return original(x, y)
    x, y = _scalar(x), _scalar(y)
    return x - y * round((plain(x) - original(plain(x), plain(y))) / plain(y))


@_replaces(math, "dist", _math)
def _dist(original: Any, p: Any, q: Any) -> Any:
    if not contains_traced([*p, *q]):
        return original(p, q)
    return _math["hypot"](*(a - b for a, b in zip(p, q, strict=True)))


@_replaces(math, "fsum", _math)
def _fsum(original: Any, values: Any) -> Any:
    values = list(values)
    return sum(values[1:], start=values[0]) if contains_traced(values) else original(values)


@_replaces(math, "prod", _math)
def _prod(original: Any, values: Any, *, start: Any = 1) -> Any:
    values = list(values)
    if not contains_traced([*values, start]):
        return original(values, start=start)
    return functools.reduce(operator.mul, values, start)


# --- switching ---------------------------------------------------------------------------------------------------


class _Switch(NamedTuple):
    """The functions of one module that are replaced, prepared so that a transform costs two updates of a dictionary."""

    names: dict[str, Any]
    table: dict[str, Any]
    before: dict[str, Any]
    # What stands in `names` unless somebody else has replaced it, too; and how that is seen.
    values: Any
    read: Callable[[dict[str, Any]], Any]


def _switch(names: dict[str, Any], table: dict[str, Any]) -> _Switch:
    # Names that are one object with the dictionary's are found twice as fast.
    table = {sys.intern(name): function for name, function in table.items()}
    read = operator.itemgetter(*table)
    return _Switch(names, table, {name: names[name] for name in table}, read(names), read)


_switches = [
    _switch(vars(np), _numpy),
    _switch(vars(np.linalg), _linalg),
    _switch(vars(math), _math),
    _switch(vars(polyutils), _polyutils),
    # `np.r_[x, 1.0]` and `np.c_` are objects, whose class uses the name as NumPy's own module knows it.
    _switch(type(np.r_).__getitem__.__globals__, {"array": _numpy["array"]}),
    _switch(vars(np.lib.stride_tricks), _strides),
]

# What was replaced, to be put back: (dictionary, originals) for each.
_replaced: list[tuple[dict[str, Any], dict[str, Any]]] = []
_found: dict[int, tuple[int, tuple[str, ...]]] = {}
_thresholds: tuple[int, int, int] | None = None  # as they were before, while they are raised
_PATIENT = 100_000  # allocations between two collections while a transform runs
_submit = thread.ThreadPoolExecutor.submit


def _submit_in_context(self: Any, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
    """`submit`, whose work knows the levels, parameters and `ignore` blocks of the thread that submits it."""
    return _submit(self, contextvars.copy_context().run, fn, *args, **kwargs)


_start = threading.Thread.start
# Whose threads wait for work of everybody, who hands his context on with it.
_POOLS = ("concurrent.futures", "multiprocessing", "joblib")


def _start_in_context(self: threading.Thread) -> None:
    """`Thread.start`, whose target knows the levels, parameters and `ignore` blocks of the thread that starts it."""
    target = getattr(self, "_target", None)
    if not str(getattr(target, "__module__", None)).startswith(_POOLS):
        context, run = contextvars.copy_context(), self.run

        def run_in_context() -> None:
            del self.run  # type: ignore[method-assign]
            context.run(run)

        self.run = run_in_context  # type: ignore[method-assign]
    _start(self)


# Modules of SciPy that somebody may import some day, with what makes their replacements then.
_AWAITED: dict[str, Callable[[Any], dict[str, Any]]] = {
    "scipy.special": special.replacements,
    "scipy.fft": fourier.replacements,
    "scipy.sparse": sparse_matrices.replacements,
}
_noticing = threading.Lock()


def _notice_scipy() -> None:
    """Prepare the functions of SciPy's modules for being replaced, once somebody has imported these."""
    for name in tuple(_AWAITED):
        module = sys.modules.get(name)
        if module is None or getattr(module.__spec__, "_initializing", False):
            continue
        with _noticing:
            replacements = _AWAITED.pop(name, None)
            if replacements is None:
                continue
            table = replacements(module)
            if not table:
                continue
            _originals.update((id(function.original), function) for function in table.values())
            _switches.append(_switch(vars(module), table))
            _found.clear()
            early_bound.look(_originals, again=True)


def install() -> None:
    """Take the functions over. Called when the first transform begins."""
    uninstall()  # what an interrupt may have left of an earlier one
    if _AWAITED:
        _notice_scipy()
    if options.intercept:
        # Asked here, since nearly all transforms find nothing new.
        if early_bound.looked_at != (len(sys.modules), next(reversed(sys.modules.values()))):
            early_bound.look(_originals)
        for names, table, before, values, read in _switches:
            # Noted before it is done: an interrupt in between restores what is there anyway.
            _replaced.append((names, before if read(names) == values else {name: names[name] for name in table}))
            names.update(table)
        np.vectorize.__call__ = vectorized  # type: ignore[method-assign]
        np.ndenumerate.__init__ = enumerated  # type: ignore[method-assign]
        for module in early_bound.own:
            try:
                unchanged = all(map(operator.is_, module.read(module.names), module.values))
            except KeyError:
                unchanged = False
            if unchanged:
                _replaced.append((module.names, module.before))
                module.names.update(module.table)
            else:
                _replace_names(module.names, tuple(module.before))
    if "numba.core.dispatcher" in sys.modules:
        _let_numba_compile()
    thread.ThreadPoolExecutor.submit = _submit_in_context  # type: ignore[method-assign]
    threading.Thread.start = _start_in_context  # type: ignore[method-assign]
    # A growing tape is all alive: collections find nothing and cost as much as the program itself.
    global _thresholds
    _thresholds = gc.get_threshold()
    gc.set_threshold(max(_thresholds[0], _PATIENT), *_thresholds[1:])


def uninstall() -> None:
    """Put the originals back. Called when the last transform has ended."""
    global _thresholds
    thread.ThreadPoolExecutor.submit = _submit  # type: ignore[method-assign]
    threading.Thread.start = _start  # type: ignore[method-assign]
    np.vectorize.__call__ = vectorize_call  # type: ignore[method-assign]
    np.ndenumerate.__init__ = enumerate_init  # type: ignore[method-assign]
    if _thresholds is not None:
        gc.set_threshold(*_thresholds)
        _thresholds = None
    while _replaced:
        names, before = _replaced[-1]
        names.update(before)
        _replaced.pop()


@contextmanager
def originals() -> Iterator[None]:
    """Put the originals back for a moment, for a compiler that looks functions up by their names."""
    with levels._switching:
        taken = [(names, {name: names[name] for name in before}) for names, before in _replaced]
        for names, before in reversed(_replaced):
            names.update(before)
    try:
        yield
    finally:
        with levels._switching:
            # Unless the last transform, of another thread, has ended meanwhile.
            for names, table in taken if _replaced else ():
                names.update(table)


def _let_numba_compile() -> None:
    """Let numba, once it is loaded, compile with the originals in place: it looks NumPy's functions up by their names,
    and keeps for good which function it found."""
    dispatcher = getattr(sys.modules.get("numba.core.dispatcher"), "Dispatcher", None)
    if dispatcher is None or hasattr(dispatcher.compile, "_of_numba"):
        return
    of_numba = dispatcher.compile

    def compile_with_originals(self: Any, sig: Any) -> Any:
        with originals():
            return of_numba(self, sig)

    compile_with_originals._of_numba = of_numba  # type: ignore[attr-defined]
    dispatcher.compile = compile_with_originals


def traceable(f: Callable[..., Any]) -> Callable[..., Any]:
    """`f`, or what stands for it while a transform runs (`gradient(math.sin, x)`)."""
    if _AWAITED:
        _notice_scipy()
    return _originals.get(id(f), f) if options.intercept else f


def stand_in(function: Any) -> Callable[..., Any] | None:
    """What stands for a function while a transform runs; None if it is not taken over."""
    return _originals.get(id(function))


def replace_in_globals(f: Any) -> None:
    """Take over what the module of `f` imported by name (`from math import sin`)."""
    while not isinstance(f, FunctionType):
        inner = getattr(f, "func", None) or getattr(f, "__func__", None) or getattr(f, "__wrapped__", None)
        if inner is None:
            call = getattr(type(f), "__call__", None)  # noqa: B004  (the function itself is wanted)
            if not isinstance(call, FunctionType):
                return
            inner = call
        f = inner
    names = f.__globals__
    count, found = _found.get(id(names), (-1, ()))
    if count != len(names):
        found = tuple(name for name, value in names.items() if id(value) in _originals)
        _found[id(names)] = (len(names), found)
    if found and options.intercept:
        _replace_names(names, found)


def _replace_names(names: dict[str, Any], found: tuple[str, ...]) -> None:
    table = {name: _originals[id(names[name])] for name in found if id(names.get(name)) in _originals}
    if table:
        _replaced.append((names, {name: names[name] for name in table}))
        names.update(table)


levels.on_first_transform = install
levels.on_last_transform = uninstall
