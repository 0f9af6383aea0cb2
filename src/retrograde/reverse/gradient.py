"""Gradients of functions of explicit arguments, and of functions that close over parameters."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

from retrograde.errors import InputError, RetrogradeError
from retrograde.originals import np
from retrograde.reverse.graph import nodes_behind
from retrograde.reverse.loss import check_loss
from retrograde.reverse.params import Grads, Params
from retrograde.reverse.tape import Tape
from retrograde.trace.handle import HANDLES, is_traced
from retrograde.trace.recording import PARAMS
from retrograde.trace.running import Native, integers_are_data, interruptible, is_integer, native_gradient
from retrograde.trace.structure import Inputs, finished, flatten, is_variable, leaves_like, unflatten, zero_like


class WithGradient(NamedTuple):
    """The value of a function together with its gradient."""

    val: Any
    grad: Any


_with_gradient = functools.partial(tuple.__new__, WithGradient)  # without a frame of Python's


@interruptible
def gradient(f: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """The gradient of a real scalar function with respect to each positional argument.

    Args:
        f: returns one finite real number.
        *args: numbers, arrays of any shape, and nested containers of these. A single `Params` instead: `f` is then
            called without arguments, and differentiated with respect to the parameters that it closes over.
            None at all: `gradient(f)` is the function that computes the gradient.
        **kwargs: passed to `f`, never differentiated.

    Returns:
        A tuple with one entry for each argument, in its structure, shape and dtype (integers count as floats); None
        where no path leads from a leaf to the output. With `Params`, a `Grads`.

    Raises:
        ScalarError: the result is not one real number.
        LossError: the result is infinite or NaN.
        InputError: an argument that cannot be differentiated.

    >>> gradient(lambda x, y: x * x * y, 3.0, 2.0)
    (12.0, 9.0)
    """
    if not args:
        return functools.partial(gradient, f, **kwargs)
    return value_and_gradient("gradient", f, args, kwargs)[1]


@interruptible
def withgradient(f: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """The value and the gradient of a real scalar function: `(val, grad)`, with `grad` as from `gradient`."""
    if not args:
        return functools.partial(withgradient, f, **kwargs)
    return _with_gradient(value_and_gradient("withgradient", f, args, kwargs))


def value_and_gradient(
    name: str, f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, Any]:
    """The value of `f` and its gradient; `name` is what errors call the transform."""
    if isinstance(args[0], Params):
        if len(args) > 1:
            raise InputError(
                f"{name}(f, params) takes nothing beside the parameters; {len(args) - 1} more arguments were given",
                f"{name}(lambda: f(x, y), params)",
            )
        return _of_params(name, f, args[0], kwargs)
    native = native_gradient(f, args, kwargs, tuple(range(len(args)))) if isinstance(f, Native) else None
    if native is not None:
        check_loss(native.value, name)
        return native.value, tuple(native.bars)
    tape = Tape(swept_at_once=True)
    inputs = Inputs(args, tape.leaf)
    y = tape.record(f, inputs.args, kwargs)
    check_loss(y, name)
    value, bars = _sweep_loss(tape, y, inputs.links)
    for i, primal in enumerate(inputs.primals):
        if bars[i] is not None:
            bars[i] = finished(bars[i], primal)
    return value, inputs.collect(bars)


def _of_params(name: str, f: Callable[..., Any], params: Params, kwargs: dict[str, Any]) -> tuple[Any, Grads]:
    tape = Tape(swept_at_once=True)
    leaves = params.lifted(tape)
    links = [leaf.link for leaf in leaves.values()]
    y = tape.record(f, (), kwargs, leaves)
    check_loss(y, name)
    if is_traced(y) and y.level is PARAMS:
        _check_not_from_elsewhere(y, params)
    value, bars = _sweep_loss(tape, y, links)
    grads = [None if bar is None else finished(bar, p.value) for bar, p in zip(bars, params, strict=True)]
    return value, Grads(params, grads)


def _check_not_from_elsewhere(y: Any, params: Params) -> None:
    """Refuse a loss that another thread computed of the parameters: there they do not belong to the transform."""
    nodes, _ = nodes_behind([y.link])
    mine = {p.node[0] for p in params}
    if any(node[0] in mine for node in nodes):
        raise InputError(
            "the loss depends on the parameters through a thread that knows nothing of the transform",
            "ThreadPoolExecutor.submit: its work knows the transform in which it was submitted",
            "contextvars.copy_context().run as the target of a thread of your own",
        )


def _sweep_loss(tape: Tape, y: Any, links: list[Any]) -> tuple[Any, list[Any]]:
    """The value of a loss, which is known to be finite, and the cotangents of the leaves."""
    if type(y) not in HANDLES or y.level is not tape:
        return y, tape.sweep([], links, last=True)
    number = y.link[0]
    # A node holds its parents: without this the loss would keep the whole graph while it is swept.
    y.link = None
    return y.primal, tape.sweep([(number, 1.0)], links, last=True, finite={number})


# --- the transforms that users of autograd and JAX know --------------------------------------------------------------


def grad(f: Callable[..., Any], argnums: int | tuple[int, ...] = 0) -> Callable[..., Any]:
    """The function that computes the gradient of `f` with respect to the arguments `argnums`.

    Its result is one gradient where `argnums` is an integer, otherwise a tuple. Zeros stand where no path leads to
    the output (what SciPy's optimisers want); constants have None.

    >>> grad(lambda x: x ** 3)(2.0)
    12.0
    """
    return functools.partial(_grad, f, checked_argnums("grad", argnums))


def value_and_grad(f: Callable[..., Any], argnums: int | tuple[int, ...] = 0) -> Callable[..., Any]:
    """The function that computes `(value, gradient)` of `f`; otherwise as `grad`."""
    return functools.partial(_value_and_grad, f, checked_argnums("value_and_grad", argnums))


def checked_argnums(name: str, argnums: Any) -> int | tuple[int, ...]:
    """Refuse what names no arguments, such as an argument itself."""
    try:
        return tuple(map(operator.index, argnums)) if isinstance(argnums, tuple | list) else operator.index(argnums)
    except (TypeError, RetrogradeError):
        pass
    ways = (f"{name}(f)(x), for the gradient at x", "gradient(f, x), which evaluates at once")
    raise InputError(
        f"argnums= of {name} says by number which arguments count; a value of type {type(argnums).__name__} was given",
        *(ways if name in ("grad", "value_and_grad") else ("an integer, or a tuple of integers",)),
    )


def places_of(argnums: int | tuple[int, ...], count: int) -> list[int]:
    """The positions of the arguments that `argnums` names, of so many."""
    numbers = (argnums,) if isinstance(argnums, int) else argnums
    for number in numbers:
        if not -count <= number < count:
            raise InputError(f"argnums={argnums} names an argument that was not given; there are {count}")
    places = [number % count for number in numbers]
    if len(set(places)) < len(places):
        raise InputError(f"argnums={argnums} names an argument twice")
    return places


@interruptible
def _grad(f: Callable[..., Any], argnums: int | tuple[int, ...], /, *args: Any, **kwargs: Any) -> Any:
    return _with_zeros("grad", f, argnums, args, kwargs)[1]


@interruptible
def _value_and_grad(f: Callable[..., Any], argnums: int | tuple[int, ...], /, *args: Any, **kwargs: Any) -> Any:
    return _with_zeros("value_and_grad", f, argnums, args, kwargs)


def _with_zeros(
    name: str, f: Callable[..., Any], argnums: int | tuple[int, ...], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, Any]:
    """The value of `f` and its gradient, with zeros where no path leads to the output."""
    places = places_of(argnums, len(args))
    native = native_gradient(f, args, kwargs, tuple(places)) if isinstance(f, Native) else None
    if native is not None:
        check_loss(native.value, name)
        for i in places:
            if is_integer(args[i]):
                raise InputError(*integers_are_data(*f.described(i), args[i]))
        filled = [_zeros_for_none(native.bars[i], args[i]) for i in places]
        return native.value, filled[0] if isinstance(argnums, int) else tuple(filled)
    tape = Tape(swept_at_once=True)
    inputs = Inputs(tuple(args[i] for i in places), tape.leaf)
    lifted = list(args)
    for i, arg in zip(places, inputs.args, strict=True):
        lifted[i] = arg
    y = tape.record(f, tuple(lifted), kwargs)
    check_loss(y, name)
    value, bars = _sweep_loss(tape, y, inputs.links)
    for i, (link, primal) in enumerate(zip(inputs.links, inputs.primals, strict=True)):
        if link is not None:
            bars[i] = zero_like(primal) if bars[i] is None else finished(bars[i], primal)
    grads = inputs.collect(bars)
    return value, grads[0] if isinstance(argnums, int) else grads


def _zeros_for_none(bars: Any, arg: Any) -> Any:
    """The cotangents of an argument, with zeros where no path leads to the output."""
    if type(bars) is np.ndarray or type(bars) is float:
        return bars
    leaves, structure = flatten(arg)
    found = leaves_like(bars, arg, "gradient", "argument") if structure is not None else [bars]
    return unflatten(
        structure,
        [zero_like(x) if bar is None and is_variable(x) else bar for bar, x in zip(found, leaves, strict=True)],
    )
