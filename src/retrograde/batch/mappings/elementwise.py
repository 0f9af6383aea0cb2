"""Functions of each element by itself, generalised ufuncs, and questions about shapes and types."""

from __future__ import annotations

import math
import re
from functools import cache
from typing import Any

from retrograde.batch.arguments import array, named
from retrograde.batch.arguments import call as call_named
from retrograde.batch.table import by_body, mapped
from retrograde.errors import BatchError, UnsupportedArgumentError
from retrograde.originals import np
from retrograde.rules.contractions import constant
from retrograde.rules.numpy_transcendental import sech_square_of_any
from retrograde.rules.products import everything
from retrograde.trace.handle import FLOAT64, HANDLES, MAPPED, contents, is_traced


def elementwise(function: Any, level: Any, *args: Any, **kwargs: Any) -> Any:
    """Bring the axes of one example under each other, and let broadcasting do the rest."""
    if not kwargs and len(args) == 2:
        raw = _as_they_are(level, *args)
        if raw is not None:
            return function(*raw)
    # Not isinstance, which asks a batched value for its class.
    args = tuple(array(x) if type(x) in _SEQUENCES else x for x in args)
    if kwargs:
        kwargs = {name: array(x) if type(x) in _SEQUENCES else x for name, x in kwargs.items()}
    ndim = max(map(_ndim, (*args, *kwargs.values())))
    return function(
        *[level.aligned(x, ndim) for x in args], **{name: level.aligned(x, ndim) for name, x in kwargs.items()}
    )


def _as_they_are(level: Any, x: Any, y: Any) -> tuple[Any, ...] | None:
    """The arrays of all examples, if their axes are under each other already; most calls are such."""
    held_x, held_y = type(x) in MAPPED and x.level is level, type(y) in MAPPED and y.level is level
    a, b = x.primal if held_x else x, y.primal if held_y else y
    if type(a) is not np.ndarray:
        return (a, b) if type(b) is np.ndarray and type(a) in _NUMBERS else None
    if type(b) in _NUMBERS:
        return a, b
    if type(b) is not np.ndarray:
        return None
    # Broadcasting finds the axes from behind; the examples' stands in front of the most.
    excess = a.ndim - b.ndim
    is_aligned = not excess if held_x and held_y else excess > 0 if held_x else excess < 0
    return (a, b) if is_aligned else None


_NUMBERS = frozenset({int, float, np.float64})


@mapped(np.multiply, is_new=True)
def _multiply(function: Any, level: Any, x: Any, y: Any) -> Any:
    """A column times a row in each example, as gradients of matrices are, is half as slow again by broadcasting."""
    if type(x) in MAPPED and type(y) in MAPPED and len(x.shape) == 2 and level.holds(x) and level.holds(y):
        a, b = x.primal, y.primal
        if type(a) is np.ndarray and type(b) is np.ndarray and a.ndim == b.ndim == 3 and a.dtype is b.dtype is FLOAT64:
            if a.shape[2] == 1 == b.shape[1]:
                return np.einsum("bi,bj->bij", a[:, :, 0], b[:, 0])
            if a.shape[1] == 1 == b.shape[2]:
                return np.einsum("bj,bi->bij", a[:, 0], b[:, :, 0])
    return elementwise(function, level, x, y)


_SEQUENCES = frozenset({list, tuple})


def _ndim(x: Any) -> int:
    return len(getattr(x, "shape", ()))


for _function in (
    np.real, np.imag, np.isreal, np.iscomplex, np.isneginf, np.isposinf, np.fix, np.nan_to_num, np.isclose, np.sinc,
    np.i0, sech_square_of_any,
):  # fmt: skip
    mapped(_function)(elementwise)


def _first(function: Any, level: Any, a: Any, *args: Any, **kwargs: Any) -> Any:
    """Functions of one array whose other arguments (digits, a dtype) are not arrays."""
    return function(a.primal, *args, **kwargs)


mapped(np.round, np.around, np.copy, np.unravel_index)(_first)


@mapped(np.astype)
def _astype(function: Any, level: Any, x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Any:
    raw = x.primal
    # A handle answers by itself, and refuses what would lose a derivative.
    return raw.astype(dtype, copy=copy)


@mapped(np.where)
def _where(function: Any, level: Any, condition: Any, *choices: Any) -> Any:
    if not choices:
        raise BatchError(
            "np.where(condition) alone finds places, whose number differs between the examples of a batch",
            "np.where(condition, a, b)",
        )
    return elementwise(function, level, condition, *choices)


@by_body(np.choose)
def _choose(function: Any, level: Any, a: Any, choices: Any, out: Any = None, mode: str = "raise") -> Any:
    a = array(a)
    options = [array(c) for c in choices]
    n = len(options)
    if mode == "wrap":
        a = np.remainder(a, n)
    elif mode == "clip":
        a = np.clip(a, 0, n - 1)
    elif np.any(contents(a) >= n) or np.any(contents(a) < 0):
        raise ValueError("invalid entry in choice array")
    y = options[0]
    for k in range(1, n):
        y = np.where(a == k, options[k], y)
    return np.copy(np.broadcast_to(y, np.broadcast_shapes(a.shape, y.shape))) if n == 1 else y


for _name in ("erf", "erfc", "gamma", "lgamma"):

    @mapped(getattr(math, _name))
    def _math(function: Any, level: Any, x: Any) -> Any:
        raw = x.primal
        replaced = getattr(math, function.__name__)
        values = [replaced(value) for value in raw.reshape(-1)]
        return np.reshape(np.stack(values), raw.shape) if values else np.zeros(raw.shape)


# --- questions that shape and dtype answer, the same for all examples ------------------------------------------------


def _of_one(x: Any) -> Any:
    """An array like one example, of whose numbers nothing may depend."""
    if type(x) not in HANDLES or not x.level.maps:
        return x
    if not x.is_array():
        return x.dtype.type()
    return x.example()


@by_body(
    np.ndim, np.shape, np.size, np.result_type, np.iscomplexobj, np.isrealobj, np.zeros_like, np.ones_like,
    np.empty_like, np.diag_indices_from, np.tril_indices_from, np.triu_indices_from,
)  # fmt: skip
def _asked_of_one(function: Any, level: Any, *args: Any, **kwargs: Any) -> Any:
    return function(*map(_of_one, args), **{name: _of_one(x) for name, x in kwargs.items()})


@by_body(np.can_cast, np.common_type, np.isscalar, np.iterable, np.isfortran, np.may_share_memory, np.shares_memory)
def _asked_of_memory(function: Any, level: Any, *args: Any, **kwargs: Any) -> Any:
    if function in (np.may_share_memory, np.shares_memory):
        return function(*map(contents, args), **kwargs)
    return function(*map(_of_one, args), **kwargs)


@by_body(constant)
def _constant(function: Any, level: Any, x: Any) -> Any:
    """The numbers that formulas decide by; a decision is one for all examples."""
    return x.without_derivatives()


@by_body(np.array2string, np.array_repr, np.array_str)
def _text(function: Any, level: Any, a: Any, *args: Any, **kwargs: Any) -> Any:
    return repr(a)


@by_body(everything)
def _everything(function: Any, level: Any, x: Any) -> Any:
    return contents(x)


# --- generalised ufuncs ----------------------------------------------------------------------------------------------


@cache
def _core_ndims(signature: str) -> tuple[int, ...]:
    inputs = signature.partition("->")[0]
    return tuple(len([n for n in group.split(",") if n.strip()]) for group in re.findall(r"\(([^)]*)\)", inputs))


def gufunc(function: np.ufunc, level: Any, *args: Any, **kwargs: Any) -> Any:
    """Bring the axes of the stacks under each other; the last ones are the function's own."""
    assert function.signature is not None
    axis = kwargs.pop("axis", None)
    given = [array(x) for x in args]
    cores = _core_ndims(function.signature)
    if axis is not None:
        # The axis counts in each argument by itself.
        given = [np.moveaxis(x, axis, -1) for x in given]
    if kwargs.get("axes") is not None or kwargs.get("keepdims"):
        raise UnsupportedArgumentError(f"np.{function.__name__} of a batched value takes neither axes= nor keepdims=")
    stack = max(x.ndim - core for x, core in zip(given, cores, strict=True))
    return function(*(level.aligned(x, stack + core) for x, core in zip(given, cores, strict=True)))


__all__ = ["call_named", "elementwise", "gufunc", "is_traced", "named"]
