"""What stands for NumPy's functions that its protocols do not cover, while a transform runs.

`np.array([x[0], 2.0])` and `np.sum([x[0], x[1]])` never ask a traced value what to do. With arguments that are not
traced a stand-in calls the original at once, whoever called it. (interception.py switches them on and off, those for
`math` are in stand_ins_for_math.py.)
"""

from __future__ import annotations

import functools
import operator
import sys
from collections.abc import Callable
from typing import Any

from numpy import ndarray
from numpy.polynomial import polyutils

from retrograde.originals import np
from retrograde.rules.numpy_indexing import take_body
from retrograde.trace import level as levels
from retrograde.trace.call import dispatch
from retrograde.trace.callers import calling_frame
from retrograde.trace.constant import CONSTANT, writable
from retrograde.trace.creation import array_of, contains_traced
from retrograde.trace.handle import HANDLES, MAPPED, VIEWS, Traced, contents, data, plain
from retrograde.trace.iteration import Iterator as ArrayIterator
from retrograde.trace.striding import strided

Table = dict[str, Callable[..., Any]]

STAND_INS: dict[int, Callable[..., Any]] = {}
"""All of them, by the identity of what they stand for."""
NUMPY: Table = {}
LINALG: Table = {}
STRIDES: Table = {}
POLYUTILS: Table = {}


def replaces(module: Any, name: str, table: Table, makes: bool = False) -> Callable[[Any], Any]:
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
            if makes and type(made) is ndarray:
                return writable(made, sys._getframe(1), name)
            if module is np and type(made) in HANDLES and made.level.depth >= 0 and calling_frame(name) is None:
                # Compiled code takes what it gets for an array; the original refuses the traced value.
                return original(*args, **kwargs)
            return made

        table[name] = replaced
        STAND_INS[id(original)] = replaced
        return replaced

    return decorate


# --- making arrays -----------------------------------------------------------------------------------------------


@replaces(np, "array", NUMPY)
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
    is_plain = type(object) is ndarray
    if not is_plain:
        object = _outside_ignore(object)
    if is_plain or not contains_traced(object):
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


@replaces(np, "require", NUMPY)
def _require(original: Any, a: Any, dtype: Any = None, requirements: Any = None, **kwargs: Any) -> Any:
    if not contains_traced(a):
        return original(a, dtype, requirements, **kwargs)
    wanted = {str(name).upper()[:1] for name in requirements or ()}
    return _laid_out(_as_array(a, dtype), "F" if "F" in wanted else "C" if "C" in wanted else None)


_LAYOUTS = {"ascontiguousarray": "C", "asfortranarray": "F"}

for _name in ("asarray", "asanyarray", "ascontiguousarray", "asfortranarray"):
    replaces(np, _name, NUMPY)(_as_array_replacement)


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
    replaces(np, _name, NUMPY, makes=True)(_sized)


def _like_others(original: Any, *args: Any, **kwargs: Any) -> Any:
    """A function that makes a new array of others, or of numbers."""
    return original(*args, **kwargs)


for _name in (
    "copy", "empty_like", "geomspace", "linspace", "logspace", "ones_like", "repeat", "tile", "zeros_like",
):  # fmt: skip
    replaces(np, _name, NUMPY, makes=True)(_like_others)


@replaces(np, "arange", NUMPY, makes=True)
def _arange(original: Any, *args: Any, **kwargs: Any) -> Any:
    """start + k step; of a traced stop only the number of elements depends, which is an integer."""
    args, kwargs = tuple(map(_integer, args)), {name: _integer(value) for name, value in kwargs.items()}
    if not contains_traced(args) and not contains_traced([*kwargs.values()]):
        return original(*args, **kwargs)
    made = original(*map(data, args), **{name: data(value) for name, value in kwargs.items()})
    given = dict(zip(("start", "stop", "step", "dtype"), args, strict=False)) | kwargs
    start, step = (given.get("start", 0), given.get("step", 1)) if given.get("stop") is not None else (0, 1)
    return start + np.arange(made.size).astype(made.dtype) * step if contains_traced([start, step]) else made


@replaces(np, "kaiser", NUMPY)
def _kaiser(original: Any, M: Any, beta: Any) -> Any:
    if not contains_traced(beta):
        return original(_integer(M), beta)
    points = len(original(_integer(M), 0.0))
    places = np.linspace(-1, 1, points) if points > 1 else np.zeros(points)
    return np.i0(beta * np.sqrt(1 - places**2)) / np.i0(beta)


@replaces(np, "full", NUMPY, makes=True)
def _full(original: Any, shape: Any, fill_value: Any, dtype: Any = None, **kwargs: Any) -> Any:
    if not contains_traced(fill_value):
        return original(_integer(shape), fill_value, dtype, **kwargs)
    filled = np.broadcast_to(_as_array(fill_value, dtype), _integer(shape))
    return np.copy(filled)


@replaces(np, "full_like", NUMPY, makes=True)
def _full_like(original: Any, a: Any, fill_value: Any, dtype: Any = None, **kwargs: Any) -> Any:
    if not contains_traced(fill_value):
        return original(a, fill_value, dtype, **kwargs)
    return dispatch(original, (np.asarray(a) if isinstance(a, list | tuple) else a, fill_value, dtype), kwargs)


# --- polynomials -------------------------------------------------------------------------------------------------


@replaces(polyutils, "trimseq", POLYUTILS)
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
    table: Table,
    take: Callable[[Any], Any],
    count: int | None = None,
    makes: bool = False,
) -> None:
    """Replace functions by themselves after `take` of their first `count` arguments (None: of all).

    What they give can be written to if a function `makes` a new array (and no view of another).
    """
    for name in names.split():
        original = getattr(module, name)
        table[name] = STAND_INS[id(original)] = _taking_lists(original, take, count, makes)


_TRACED = (Traced,)
_FORMS = frozenset({"axis", "keepdims"})


def _taking_lists(
    original: Callable[..., Any], take: Callable[[Any], Any], count: int | None, makes: bool
) -> Callable[..., Any]:
    @functools.wraps(original)
    def replaced(*args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and type(args[0]) is Traced and _FORMS.issuperset(kwargs):
            # As NumPy's dispatcher would call it, which asks more arguments than there are.
            return args[0].__array_function__(original, _TRACED, args, kwargs)  # type: ignore[attr-defined]
        for arg in args[:count]:
            # Not isinstance, which asks a traced value for its class.
            if issubclass(type(arg), _SEQUENCES):
                args = (*map(take, args[:count]), *(args[count:] if count else ()))
                break
        if kwargs and count is None:
            for value in kwargs.values():
                if issubclass(type(value), _SEQUENCES):
                    kwargs = {name: take(value) for name, value in kwargs.items()}
                    break
        y = original(*args, **kwargs)
        if makes and type(y) is ndarray and y.base is None:
            return writable(y, sys._getframe(1), original.__name__)
        return y

    return replaced


_take_lists(np, _TAKE_LISTS, NUMPY, _array_if_traced)
_take_lists(np, _TAKE_ONE_LIST, NUMPY, _array_if_traced, 1)
_take_lists(np, "diag", NUMPY, _array_if_traced, 1, makes=True)
_take_lists(np, _TAKE_LISTS_OF_LISTS, NUMPY, _arrays_if_traced, makes=True)
_take_lists(np.linalg, _LINALG_TAKE_LISTS, LINALG, _array_if_traced)


@replaces(np.lib.stride_tricks, "as_strided", STRIDES)
def _as_strided(original: Any, x: Any, shape: Any = None, strides: Any = None, *args: Any, **kwargs: Any) -> Any:
    if type(x) not in HANDLES:
        return original(x, shape, strides, *args, **kwargs)
    return strided(x, shape, strides)


NUMPY["nditer"] = STAND_INS[id(np.nditer)] = ArrayIterator


@replaces(np, "take", NUMPY)
def _take(original: Any, a: Any, indices: Any, *args: Any, **kwargs: Any) -> Any:
    places = plain(indices)
    if type(places) in MAPPED:
        return take_body(a, places, *args, **kwargs)
    return original(a, indices, *args, **kwargs)


# Formulas ask for these of values of a batch, too, which NumPy does not look at: places, and choices.
for _name in ("take", "asarray", "array"):
    setattr(np, _name, NUMPY[_name])
