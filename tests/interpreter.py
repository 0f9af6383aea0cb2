"""A plain interpreter of each kind of rule: what an engine does with it, without one."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sampling import Point, Slot, dtype_of, locked, slots

from retrograde.rules.products import times, unbroadcast
from retrograde.rules.table import RULES, Composed, Elementwise, General, Like, Linear, Multilinear, Rule, WithArguments


def push(rule: Rule, point: Point, dots: Sequence[Any]) -> Any:
    """The tangent of the output; `dots` has one tangent for each leaf, or None."""
    args, kwargs = point.call()
    if isinstance(rule, Elementwise):
        y = rule.function(*args)
        terms = [
            times(dots[template.index], partial_value(partial, y, args))
            for partial, template in zip(rule.partials, point.args, strict=True)
            if isinstance(template, Slot) and dots[template.index] is not None
        ]
        y_dot = sum(terms) if np.iscomplexobj(y) else np.real(sum(terms))
        return np.broadcast_to(y_dot, np.shape(y))
    if isinstance(rule, General):
        y = rule.function(*args, **kwargs)
        return rule.pushforward(y, *args, **kwargs)(*[_tangent(rule, point, k, dots) for k in _places(rule, args)])
    if isinstance(rule, Multilinear):
        total: Any = None
        for k in _places(rule, args):
            dot = _tangent(rule, point, k, dots)
            if dot is not None:
                term = _call_with(rule, rule.function, args, kwargs, {k: dot})
                total = term if total is None else add(total, term)
        return total
    if isinstance(rule, Linear):
        tangents = {k: _tangent(rule, point, k, dots) for k in _places(rule, args)}
        for k, dot in tangents.items():
            argument = _argument(rule, args, kwargs, k)
            tangents[k] = zeros(argument) if dot is None and argument is not _ABSENT else dot
        return _call_with(rule, rule.function, args, kwargs, tangents)
    raise TypeError(f"{rule.name} has no pushforward of its own")


def puller(rule: Rule, point: Point) -> Callable[[Any], list[Any]]:
    """A function from a cotangent of the output to one for each leaf, as the formulas give them."""
    args, kwargs = point.call()
    y = locked(rule.function(*args, **kwargs))

    if isinstance(rule, Elementwise):
        # A partial in an argument without a derivative may refuse to be computed.
        wanted = [isinstance(template, Slot) for template in point.args]
        partials = [
            partial_value(partial, y, args) if is_wanted else None
            for partial, is_wanted in zip(rule.partials, wanted, strict=True)
        ]

        def pull_elementwise(y_bar: Any) -> list[Any]:
            result: list[Any] = [None] * len(point.leaves)
            for partial, template in zip(partials, point.args, strict=True):
                if isinstance(template, Slot):
                    x_bar = np.broadcast_to(times(y_bar, np.conj(partial)), np.shape(y))
                    result[template.index] = unbroadcast(x_bar, np.shape(point.leaves[template.index]))
            return result

        return pull_elementwise

    if isinstance(rule, General):
        pull = rule.pullback(y, *args, **kwargs)

        def pull_general(y_bar: Any) -> list[Any]:
            result = pull(y_bar)
            assert isinstance(result, tuple), f"pull returned {type(result).__name__}, not a tuple"
            count = len(_places(rule, args))
            assert len(result) == count, f"pull returned {len(result)} cotangents for {count} arguments"
            return _by_leaf(rule, point, result)

        return pull_general

    if isinstance(rule, Linear):
        alone = isinstance(rule, Multilinear)

        def pull_linear(y_bar: Any) -> list[Any]:
            result = []
            for k, adjoint in zip(_places(rule, args), rule.adjoints, strict=True):
                if _argument(rule, args, kwargs, k) is _ABSENT:
                    result.append(None)
                    continue
                unseen = [k] if alone else _places(rule, args)
                likes = {j: _like(_argument(rule, args, kwargs, j)) for j in unseen}
                result.append(
                    lambda adjoint=adjoint, likes=likes: _call_with(rule, adjoint, args, kwargs, likes, first=y_bar)
                )
            return _by_leaf(rule, point, result)

        return pull_linear

    raise TypeError(f"{rule.name} has no pullback of its own")


def partial_value(partial: Any, y: Any, args: tuple[Any, ...]) -> Any:
    if not callable(partial):
        return partial
    have = {"y": y, "x": args[0], **dict(zip("abc", args, strict=False))}
    return partial(*[have[name] for name in inspect.signature(partial).parameters])


_ABSENT = object()


def _places(rule: WithArguments, args: tuple[Any, ...]) -> tuple[int, ...]:
    """Where the differentiable arguments stand; a slice of them says: from here on, however many there are."""
    return tuple(range(len(args)))[rule.args] if isinstance(rule.args, slice) else rule.args


def _argument(rule: WithArguments, args: tuple[Any, ...], kwargs: dict[str, Any], k: int) -> Any:
    """Argument number `k` of the rule's own parameters; all that is left, where it is the variadic one."""
    if isinstance(rule.args, slice):
        return args[k]
    parameter = rule.parameters[k]
    if parameter.kind is parameter.VAR_POSITIONAL:
        return args[k:]
    if k < len(args) and parameter.kind is not parameter.KEYWORD_ONLY:
        return args[k]
    return kwargs.get(parameter.name, _ABSENT)


def _call_with(
    rule: WithArguments, function: Any, args: Any, kwargs: Any, changes: dict[int, Any], first: Any = _ABSENT
) -> Any:
    """Call a function with some arguments replaced, and `first` before all others."""
    args, kwargs = list(args), dict(kwargs)
    for k, value in changes.items():
        if isinstance(rule.args, slice):
            args[k] = value
            continue
        parameter = rule.parameters[k]
        if value is _ABSENT:
            continue
        if parameter.kind is parameter.VAR_POSITIONAL:
            args[k:] = value
        elif k < len(args) and parameter.kind is not parameter.KEYWORD_ONLY:
            args[k] = value
        elif parameter.name in kwargs:
            kwargs[parameter.name] = value
    return function(*args, **kwargs) if first is _ABSENT else function(first, *args, **kwargs)


def _tangent(rule: WithArguments, point: Point, k: int, dots: Sequence[Any]) -> Any:
    """The tangent of argument `k`; None where none of it is given; zeros for what a sequence holds besides."""
    template = _argument(rule, point.args, point.kwargs, k)
    if all(dots[i] is None for i in slots(template)):
        return None

    def tangent(part: Any) -> Any:
        if isinstance(part, Slot):
            return zeros(point.leaves[part.index]) if dots[part.index] is None else dots[part.index]
        return type(part)(tangent(p) for p in part) if type(part) in (tuple, list) else zeros(part)

    return tangent(template)


def _by_leaf(rule: WithArguments, point: Point, cotangents: Sequence[Any]) -> list[Any]:
    result: list[Any] = [None] * len(point.leaves)

    def place(template: Any, x_bar: Any) -> None:
        if isinstance(template, Slot):
            result[template.index] = x_bar
        elif type(template) in (tuple, list) and slots(template):
            assert len(x_bar) == len(template), f"{len(x_bar)} cotangents for a sequence of {len(template)}"
            for part, part_bar in zip(template, x_bar, strict=True):
                place(part, part_bar)

    for k, x_bar in zip(_places(rule, point.args), cotangents, strict=True):
        template = _argument(rule, point.args, point.kwargs, k)
        if slots(template):
            place(template, x_bar() if callable(x_bar) else x_bar)
    return result


def zeros(x: Any) -> Any:
    if type(x) in (tuple, list):
        return type(x)(zeros(part) for part in x)
    return np.zeros(np.shape(x), np.result_type(dtype_of(x), np.float32) if x is not None else float)


def _like(x: Any) -> Any:
    if type(x) in (tuple, list):
        return [_like(part) for part in x]
    return Like(np.shape(x), dtype_of(x)) if x is not _ABSENT else x


# --- Outputs: one array, or several ----------


def outputs(y: Any) -> list[Any]:
    return [part for parts in y for part in outputs(parts)] if isinstance(y, (tuple, list)) else [y]


def map_outputs(function: Callable[..., Any], y: Any, *others: Any) -> Any:
    """Over the arrays of an output; several outputs become a plain tuple."""
    if isinstance(y, (tuple, list)):
        return tuple(map_outputs(function, *parts) for parts in zip(y, *others, strict=True))
    return function(y, *others)


def add(y: Any, z: Any) -> Any:
    return map_outputs(lambda a, b: a + b, y, z)


def is_differentiable(y: Any) -> bool:
    return dtype_of(y).kind in "fc"


# --- one rule at one point, for tests that know the answer ------------------------------------------------------------


def pulled(function: Any, a: Any, *args: Any, y_bar: Any = None, **kwargs: Any) -> Any:
    """The cotangent of `a` for `y_bar` (ones if not given)."""
    a = _floating(a)
    y_bar = np.ones_like(function(a, *args, **kwargs)) if y_bar is None else _floating(y_bar)
    return puller(RULES[function], Point("", (Slot(0), *args), kwargs, (a,)))(y_bar[()])[0]


def pushed(function: Any, a: Any, a_dot: Any, *args: Any, **kwargs: Any) -> Any:
    """The tangent of the result for the tangent of `a`."""
    a = _floating(a)
    rule = RULES[function]
    assert isinstance(rule, General)
    return rule.pushforward(function(a, *args, **kwargs), a, *args, **kwargs)(_floating(a_dot))


def body(function: Any, *args: Any, **kwargs: Any) -> Any:
    """The value of the composed function that stands for `function`."""
    rule = RULES[function]
    assert isinstance(rule, Composed)
    return rule.body(*args, **kwargs)


def _floating(x: Any) -> np.ndarray[Any, Any]:
    return np.asarray(x) if np.iscomplexobj(x) else np.asarray(x, float)
