"""From the text of a program to a function that numba can call, and that it takes for its own.

numba compiles a function of one statement, the call of the program: it takes the arguments from Python, gives the
results back, raises, and keeps the code on disk. The text goes into the same library of code, unseen by its front.
"""

from __future__ import annotations

import builtins
import functools
import math
import operator
from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba import extending
from numba.core import cgutils, typing
from numba.core import types as numba_types
from numba.core.errors import NumbaError, TypingError
from numba.np import arrayobj, numpy_support

from retrograde.compiler import special_functions
from retrograde.compiler.machine.functions import with_tables
from retrograde.compiler.machine.threads import COUNT, LAYER
from retrograde.compiler.machine.written import Called, Kernel, with_strides
from retrograde.compiler.types import Type

# numba's functions, of which mypy knows no types.
types: Any = numba_types
signature: Any = typing.signature  # type: ignore[attr-defined]
make_array: Any = arrayobj.make_array
populate_array: Any = arrayobj.populate_array
from_dtype: Any = numpy_support.from_dtype
alloca_once: Any = cgutils.alloca_once
alloca_once_value: Any = cgutils.alloca_once_value
unpack_tuple: Any = cgutils.unpack_tuple

POINTER = ir.IntType(8).as_pointer()
WORD = ir.IntType(64)
_OPERATORS: dict[str, Any] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": operator.pow,
    "neg": operator.neg,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "<<": operator.lshift,
    ">>": operator.rshift,
    "~": operator.invert,
}


_QUIET = ("np.", "special.")


def callable_in_numba(kernel: Kernel) -> Any:
    """What stands for the program in a function that numba compiles."""

    def made(*given: Any) -> Any:
        _check(kernel, given)
        results = [_numba_type(t) for t in kernel.results]
        if kernel.looked_at:
            results.append(types.int64)
        return signature(types.Tuple(results), *given), functools.partial(_generate, kernel)

    names = ", ".join(f"a{k}" for k in range(len(kernel.params)))
    scope: dict[str, Any] = {"made": made}
    exec(f"def program(context, {names}):\n    return made({names})", scope)
    return extending.intrinsic(scope["program"])


def _check(kernel: Kernel, given: tuple[Any, ...]) -> None:
    """Raises: TypingError: for arrays of a kind that the text is not for."""
    for i, (type, a) in enumerate(zip(kernel.params, given, strict=True)):
        if not type.is_array:
            if not isinstance(a, types.Number | types.Boolean):
                raise TypingError(f"argument {i} is no number")
            continue
        is_meant = isinstance(a, types.Array) and a.ndim == type.ndim and a.dtype == _numba_type(type.element)
        if not is_meant or not a.aligned or (i in kernel.dense and a.layout != "C"):
            raise TypingError(f"argument {i} is an array of another kind")


def _numba_type(type: Type) -> Any:
    element = from_dtype(np.dtype(type.dtype))
    return types.Array(element, type.ndim, "C") if type.is_array else element


def _generate(kernel: Kernel, context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """The call of the program, in a function of numba's.

    Raises:
        TypingError: this version of numba or LLVM does not take it; so the Python text is compiled.
    """
    try:
        return _called(kernel, context, builder, signature, args)
    except NumbaError:
        raise
    except Exception as error:
        raise TypingError(f"the program has no native text here: {error}") from error


def _called(kernel: Kernel, context: Any, builder: Any, signature: Any, args: Any) -> Any:
    given: list[Any] = []
    kernel = with_strides(kernel, tuple(getattr(kind, "layout", "N") for kind in signature.args))
    for type, kind, value in zip(kernel.params, signature.args, args, strict=True):
        if not type.is_array:
            given.append(context.cast(builder, value, kind, _numba_type(type)))
            continue
        array = make_array(kind)(context, builder, value)
        given.append(builder.bitcast(array.data, POINTER))
        given += unpack_tuple(builder, array.shape, type.ndim)
        given += unpack_tuple(builder, array.strides, type.ndim)
    places = [_place(context, builder, type) for type in kernel.results]
    has_nan = alloca_once_value(builder, WORD(0))
    given += [builder.bitcast(p, POINTER) for p in (*places, has_nan)]
    function = _declared(builder.module, kernel.symbol, ir.IntType(32), [a.type for a in given])
    status = builder.call(function, given)
    with builder.if_then(builder.icmp_unsigned("!=", status, status.type(0)), likely=False):
        for number, (error, message) in enumerate(kernel.errors, 1):
            with builder.if_then(builder.icmp_unsigned("==", status, status.type(number))):
                context.call_conv.return_user_exc(builder, getattr(builtins, error), (message,))
        builder.unreachable()
        builder.position_at_end(builder.append_basic_block("unreachable"))
    _add_text(kernel, context)
    for called in kernel.called:
        _define(called, context, builder.module)
    results = [_result(context, builder, *pair) for pair in zip(kernel.results, places, strict=True)]
    if kernel.looked_at:
        results.append(builder.load(has_nan))
    return context.make_tuple(builder, signature.return_type, results)


def _strides(builder: Any, dims: list[Any], size: int) -> list[Any]:
    stride = WORD(size)
    made = []
    for n in reversed(dims):
        made.append(stride)
        stride = builder.mul(stride, n)
    return made[::-1]


def _declared(module: Any, name: str, result: Any, args: list[Any]) -> Any:
    found = module.globals.get(name)
    return ir.Function(module, ir.FunctionType(result, args), name) if found is None else found


def _place(context: Any, builder: Any, type: Type) -> Any:
    """Where the program puts a result: a number, or the owner of an array's memory, a pointer, and lengths."""
    if type.is_array:
        return alloca_once(builder, WORD, 2 + type.ndim)
    return alloca_once(builder, context.get_data_type(_numba_type(type)))


def _result(context: Any, builder: Any, type: Type, place: Any) -> Any:
    kind = _numba_type(type)
    if not type.is_array:
        return context.unpack_value(builder, kind, place)
    info, data, *dims = (builder.load(builder.gep(place, [WORD(k)])) for k in range(2 + type.ndim))
    size = np.dtype(type.dtype).itemsize
    array = make_array(kind)(context, builder)
    populate_array(
        array,
        data=builder.inttoptr(data, array.data.type),
        shape=dims,
        strides=_strides(builder, dims, size),
        itemsize=context.get_constant(types.intp, size),
        meminfo=builder.inttoptr(info, POINTER),
    )
    return array._getvalue()


def _add_text(kernel: Kernel, context: Any) -> None:
    library = context.active_code_library
    module = llvm.parse_assembly(with_tables(kernel.text))
    module.name = kernel.symbol
    module.triple = library._final_module.triple
    module.verify()
    for function in module.functions:
        is_numbas = function.name.startswith("NRT_") or function.name in (LAYER, COUNT)
        if is_numbas and llvm.address_of_symbol(function.name) is None:
            raise TypingError(f"this version of numba has no {function.name}")
    library.add_llvm_module(module)


# --- operations that numba has the code of -------------------------------------------------------------------------


def _function(fn: str) -> Any:
    if fn in _OPERATORS:
        return _OPERATORS[fn]
    module, _, name = fn.rpartition(".")
    found: Any = {"np": np, "math": math, "special": special_functions}.get(module)
    if found is None or not hasattr(found, name):
        raise TypingError(f"numba knows no {fn}")
    return getattr(found, name)


def _define(called: Called, context: Any, module: Any) -> None:
    """A function that LLVM inlines, of the code that numba has for an operation on some types."""
    numbers = [from_dtype(np.dtype(a)) for a in called.args]
    result = from_dtype(np.dtype(called.result))
    generate, own, gives = _code(called, context, numbers)
    convention = context.call_conv
    # As a function of numba's own kind, since its code may want to raise.
    inner = ir.Function(module, convention.get_function_type(result, numbers), f"{called.symbol}.numba")
    builder = ir.IRBuilder(inner.append_basic_block())
    values = _arguments(context, builder, inner, numbers)
    args = [context.cast(builder, v, t, o) for v, t, o in zip(values, numbers, own, strict=True)]
    value = context.cast(builder, generate(builder, args), gives, result)
    ways_out = sum(b.is_terminated and b.terminator.opname == "ret" for b in inner.blocks)
    if ways_out and called.fn.startswith(_QUIET):
        ways_out = 0  # to where an error would be, which there is none with NumPy's error model
    if ways_out:
        raise TypingError(f"{called.fn} may raise")
    convention.return_value(builder, value)

    outer = _declared(
        module, called.symbol, context.get_value_type(result), [context.get_value_type(t) for t in numbers]
    )
    builder = ir.IRBuilder(outer.append_basic_block())
    _, value = convention.call_function(builder, inner, result, numbers, outer.args)
    builder.ret(value)
    for function in (inner, outer):
        function.linkage = "linkonce_odr"
        function.attributes.add("alwaysinline")


def _arguments(context: Any, builder: Any, function: Any, kinds: list[Any]) -> list[Any]:
    convention = context.call_conv
    packer = convention._get_arg_packer(kinds)
    found: list[Any] = packer.from_arguments(builder, convention.get_arguments(function))
    return found


def _code(called: Called, context: Any, given: list[Any]) -> tuple[Callable[..., Any], list[Any], Any]:
    """What generates the code, the types that it takes, and that which it gives."""
    if called.fn == "id":
        return lambda builder, args: args[0], given, given[0]
    typing = context.typing_context
    function = typing.resolve_value_type(_function(called.fn))
    if function is None:
        raise TypingError(f"numba knows no {called.fn}")
    found = function.get_call_type(typing, given, {})
    if found is None:
        raise TypingError(f"numba has no {called.fn} of {given}")
    return context.get_function(function, found), list(found.args), found.return_type


__all__ = ["callable_in_numba"]
