"""NumPy's two protocols: every NumPy function that is given a traced value comes through here."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from numpy import ndarray

from retrograde.errors import MissingRuleError, UnsupportedArgumentError
from retrograde.originals import np
from retrograde.rules.table import RULES, WITH_KEYWORD, NoGradient, WithArguments
from retrograde.trace.call import call, call_rule, dispatch
from retrograde.trace.callers import calling_frame
from retrograde.trace.constant import CONSTANT, of_constants, writable
from retrograde.trace.elements import called_on_objects, takes_objects
from retrograde.trace.handle import HANDLES, MAPPED, Traced, plain
from retrograde.trace.indexing import check_apart
from retrograde.trace.layout import laid_out
from retrograde.trace.operators import GENERATED
from retrograde.trace.structure import plain_tree
from retrograde.trace.write_functions import (
    WRITERS,
    at,
    check_out_shape,
    store,
    taken_over,
    without_out,
    write_by,
)


def array_ufunc(self: Traced, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """`ufunc(…)`, `ufunc.reduce(…)` and the like, with a traced value among the arguments."""
    if method == "__call__":
        if not kwargs:
            generated = GENERATED[ufunc]
            if generated is not None:
                return generated(*inputs)
        else:
            return call_with_keywords(ufunc, inputs, kwargs)
        return _call(self, ufunc, inputs, {})
    if method == "at":
        rule = RULES.get(ufunc)
        if rule is None or isinstance(rule, NoGradient):
            raise missing_rule(ufunc.at)
        return at(ufunc, *inputs)
    function = getattr(ufunc, method)
    if "out" in kwargs:
        return into(function, inputs, kwargs, kwargs.pop("out"))
    return _call(self, function, inputs, kwargs)


def call_with_keywords(ufunc: np.ufunc, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A ufunc with `dtype=`, `where=`, `out=` or `order=`; a generalised one with its own keywords."""
    out = kwargs.pop("out", None)
    where = kwargs.pop("where", True)
    order = kwargs.pop("order", "K")
    name = f"np.{ufunc.__name__}"
    kwargs.pop("subok", None)  # a traced value is of no subclass
    inputs = _as_the_loop_takes_them(ufunc, inputs, kwargs)
    if ufunc.signature is not None:
        y = dispatch(ufunc, inputs, kwargs) if out is None else into(ufunc, inputs, kwargs, out)
        return y if out is not None or order == "K" else laid_out(y, ufunc, inputs, kwargs | {"order": order})
    if kwargs:
        raise UnsupportedArgumentError(f"{name} of a traced value does not take {next(iter(kwargs))}=")
    if where is not True:
        return _where(ufunc, inputs, where, out)
    if out is None:
        y = ufunc(*inputs)
        return y if order == "K" else laid_out(y, ufunc, inputs, {"order": order})
    if len(out) == 1 and type(out[0]) not in HANDLES:
        y = ufunc(*inputs)
        rebound = taken_over(out[0], y)
        return store(name, y, out) if rebound is None else rebound
    return into(ufunc, inputs, {}, out)


def _where(ufunc: np.ufunc, inputs: tuple[Any, ...], where: Any, out: Any) -> Any:
    """A ufunc of the elements that a mask chooses, and of no others."""
    if out is None or out[0] is None:
        raise UnsupportedArgumentError(
            f"np.{ufunc.__name__}(..., where=mask) without out= leaves the other elements unset",
            "np.where(mask, f(x), other): it has a derivative and says what stands elsewhere",
        )
    shape = out[0].shape
    if type(plain(where)) in MAPPED:
        with np.errstate(all="ignore"):  # where nobody has asked for it
            y = ufunc(*inputs)
        return store(f"np.{ufunc.__name__}", np.where(where, y, out[0]), out)
    mask = np.broadcast_to(np.asarray(plain(where), bool), shape)
    return store(f"np.{ufunc.__name__}", ufunc(*(np.broadcast_to(x, shape)[mask] for x in inputs)), out, mask)


def _as_the_loop_takes_them(ufunc: np.ufunc, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """The arguments of a ufunc in the dtypes of the loop that `dtype=`, `signature=` and `casting=` choose.

    Raises:
        TypeError: NumPy's own, where there is no such loop, or the casting forbids it.
    """
    dtype, casting = kwargs.pop("dtype", None), kwargs.pop("casting", "same_kind")
    signature = kwargs.pop("signature", None) or kwargs.pop("sig", None)
    if signature is None and casting == "same_kind":
        if dtype is None:
            return inputs
        return tuple(_in_dtype(ufunc, x, place, np.dtype(dtype)) for place, x in enumerate(inputs))
    if dtype is not None:
        if signature is not None:
            raise TypeError("cannot specify both 'signature' and 'dtype'")
        signature = (*(None,) * ufunc.nin, *(np.dtype(dtype),) * ufunc.nout)
    given = (*map(_dtype_of, inputs), *(None,) * ufunc.nout)
    if casting == "equiv" and int in given:
        # NumPy refuses it itself, and crashes where it is asked for the loop.
        raise UnsupportedArgumentError(
            f"np.{ufunc.__name__} of a traced value does not take casting='equiv' beside an int",
            f"np.{ufunc.__name__} with 1.0 for 1",
        )
    chosen = {} if signature is None else {"signature": signature}
    loop = ufunc.resolve_dtypes(given, casting=casting, **chosen)  # type: ignore[attr-defined]
    wanted = zip(inputs, given, loop, strict=False)
    return tuple(x if has == takes else _cast(x, takes) for x, has, takes in wanted)


def _dtype_of(x: Any) -> Any:
    """The dtype of an argument; of a number of Python's, which takes on that of others, its type."""
    kind = type(plain(x))
    return kind if kind in (int, float, complex) else np.result_type(x)


def _cast(x: Any, dtype: np.dtype[Any]) -> Any:
    return x.astype(dtype) if hasattr(x, "astype") else np.asarray(x, dtype)


def _in_dtype(ufunc: np.ufunc, x: Any, place: int, dtype: np.dtype[Any]) -> Any:
    """Argument number `place` as the loop that `dtype=` chooses takes it."""
    if ufunc is np.ldexp and place == 1:
        return x
    if dtype.kind != "c" and np.iscomplexobj(x):
        dtype = np.result_type(dtype, np.complex64)  # np.absolute(z, dtype=float): the dtype of its result
    return _cast(x, dtype)


def into(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Any:
    """A call with `out=`: the function without it, and a write."""
    if function in _WRITES_BEFORE_IT_READS:
        check_apart(_name(function), [plain(x) for x in _handles(args)], out)
    y = function(*args, **kwargs)
    check_out_shape(y, out, lambda o: _plainly(function, args, kwargs | {"out": o}))
    return store(RULES[function].label if function in RULES else _name(function), y, out)


# NumPy makes sure of all others that what they read is not written over before.
_WRITES_BEFORE_IT_READS = frozenset({np.concatenate, np.stack})


def _plainly(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call of plain values alone."""
    return function(*map(plain_tree, args), **{name: plain_tree(value) for name, value in kwargs.items()})


def array_function(self: Traced, function: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A NumPy function that is not a ufunc."""
    if function in WRITERS or "out" in kwargs or len(args) > 2 or (args and args[-1] is None):
        y, args, kwargs = written(function, args, kwargs)
        if y is not NOTHING_WRITTEN:
            return y
    if function in _MAKERS:
        return made(function, call(function, args, kwargs))
    if self.level is not CONSTANT and not (kwargs and function in WITH_KEYWORD):
        rule = RULES.get(function)
        if isinstance(rule, WithArguments):
            return call_rule(rule, args, kwargs)  # as nearly all are
    return _call(self, function, args, kwargs)


def _call(self: Traced, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if self.level is CONSTANT:
        y = _of_constants(function, args, kwargs)
        if y is not _UNKNOWN:
            return of_constants(y, function.__name__)
    if function in RULES:
        return call(function, args, kwargs)
    return _without_rule(function, args, kwargs)


def written(
    function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """What a call gives that writes into one of its arguments, NOTHING_WRITTEN for all others; and its arguments,
    without an `out` that says None."""
    if function in WRITERS:
        return write_by(function, args, kwargs), args, kwargs
    if "out" in kwargs or len(args) > 2 or (args and args[-1] is None):
        kwargs = dict(kwargs)
        out, args = without_out(function, args, kwargs)
        if out is not None:
            return into(function, args, kwargs, out), args, kwargs
    return NOTHING_WRITTEN, args, kwargs


NOTHING_WRITTEN = object()


def made(function: Any, y: Any) -> Any:
    """The result of a function, ready to be written to if that is a new array to be filled."""
    if function not in _MAKERS or type(y) in HANDLES:
        return y
    name = function.__name__
    return writable(y, calling_frame(name, "flatten"), name, "flatten")


# Functions that make a new array like their argument, to be filled.
_MAKERS = frozenset({np.zeros_like, np.ones_like, np.empty_like, np.full_like, np.copy, np.astype})

_UNKNOWN = object()


def _of_constants(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The plain result of a call in which no value is traced yet; not for results that are views of the arguments."""
    plain_args = []
    for x in args:
        kind = type(x)
        if kind in HANDLES:
            if x.level is not CONSTANT:
                return _UNKNOWN
            x = x.memory
        elif kind is list or kind is tuple:
            if any(y.level is not CONSTANT for y in _handles(x)):
                return _UNKNOWN
            x = plain_tree(x)
        plain_args.append(x)
    if kwargs:
        if any(y.level is not CONSTANT for y in _handles([*kwargs.values()])):
            return _UNKNOWN
        kwargs = {name: plain_tree(value) for name, value in kwargs.items()}
    y = function(*plain_args, **kwargs)
    return y if _is_new(y, (plain_args, [*kwargs.values()])) else _UNKNOWN


def _is_new(y: Any, given: Any) -> bool:
    """Whether the arrays of a result have memory of their own; seldom one is an argument as it came."""
    if type(y) is ndarray:
        return not _touches(given, y, y.base is not None)
    if not isinstance(y, list | tuple):
        return True
    return all(_is_new(part, (given, y[i + 1 :])) for i, part in enumerate(y))


def _touches(tree: Any, array: Any, is_part: bool) -> bool:
    """Whether an array, which is part of another or whole, is one of the arrays in a tree, or shares memory with it."""
    if isinstance(tree, list | tuple):
        return any(_touches(part, array, is_part) for part in tree)
    if tree is array:
        return True
    if type(tree) is not ndarray or not (is_part or tree.base is not None):
        return False
    return np.may_share_memory(tree, array)


def _without_rule(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run NumPy's own Python code of a function on the traced values: it may consist of functions that have rules."""
    if takes_objects(function):
        return called_on_objects(function, args)
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


def _name(function: Any) -> str:
    name: str = function.__name__
    if getattr(np, name, None) is function:
        return f"np.{name}"
    for module in ("scipy.special", "scipy.special._ufuncs"):
        if getattr(sys.modules.get(module), name, None) is function:
            return f"scipy.special.{name}"
    home: str = getattr(function, "__module__", None) or type(function).__module__
    return f"{home.replace('numpy', 'np', 1)}.{name}"


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
