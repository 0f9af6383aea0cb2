"""Forward mode inside reverse mode."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from retrograde.errors import DroppedGradientWarning, InputError
from retrograde.rules.table import General
from retrograde.tools.directions import Passes, columns
from retrograde.tools.jacobian import check_holomorphic
from retrograde.trace.call import call_rule
from retrograde.trace.handle import is_traced, plain, shape_of
from retrograde.trace.level import CONTEXT
from retrograde.trace.recording import PARAMS, blindly
from retrograde.trace.structure import flatten, unflatten


def forwarddiff(f: Callable[[Any], Any], x: Any) -> Any:
    """`f(x)`, differentiated by forward mode while the rest of the program is differentiated by reverse mode.

    Args:
        f: takes `x`, returns a number or an array.
        x: a number, an array, or a list of these (which `f` receives as a list).

    Time grows with the number of elements of `x`, memory does not: quick for functions of few numbers with many
    operations. Traced values that `f` closes over get no gradient; a DroppedGradientWarning says so.

    >>> gradient(lambda a: forwarddiff(lambda a: a ** 2, a), 5.0)
    (10.0,)
    """
    leaves, structure = flatten(x)
    context = CONTEXT.get()
    traced = [leaf.level for leaf in leaves if is_traced(leaf)]
    level = max(traced, key=lambda level: level.depth) if traced else context.levels[-1] if context.levels else PARAMS
    if not level.records:
        return f(x)
    here = [is_traced(leaf) and leaf.level is level for leaf in leaves]
    below = [leaf.primal if mine else leaf for leaf, mine in zip(leaves, here, strict=True)]

    def of_variables(*variables: Any) -> Any:
        rest = iter(variables)
        y = f(unflatten(structure, [next(rest) if mine else value for value, mine in zip(below, here, strict=True)]))
        if isinstance(y, tuple | list | dict):
            raise InputError(
                f"forwarddiff takes functions that return a number or an array; this one returned a {type(y).__name__}",
                "return one array, e.g. np.array([...])",
            )
        return y

    variables = tuple(value for value, mine in zip(below, here, strict=True) if mine)
    with blindly(level) as (suspension, blind):
        if any(np.iscomplexobj(plain(value)) for value in variables):
            check_holomorphic(of_variables, variables)
        if variables:
            ys, rows = columns(lambda *given: [of_variables(*given)], variables, Passes())
            y, blocks = ys[0], rows[0]
        else:
            y, blocks = f(x), []
        known = _Known(blind.released(y), [blind.released(block) for block in blocks])
    if suspension.met:
        warnings.warn(
            "forwarddiff dropped the gradient of a traced value that its function closes over; "
            "pass it as a part of x, e.g. forwarddiff(lambda ab: f(*ab), [a, b])",
            DroppedGradientWarning,
            stacklevel=2,
        )
    if not variables:
        return known.y
    return call_rule(_LINEARISED, (known, *(leaf for leaf, mine in zip(leaves, here, strict=True) if mine)), {})


@dataclass(frozen=True)
class _Known:
    """A value and its Jacobian blocks, one for each variable."""

    y: Any
    blocks: list[Any]


def _value(known: _Known, *xs: Any) -> Any:
    return known.y


def _pullback(y: Any, known: _Known, *xs: Any) -> Callable[[Any], tuple[Any, ...]]:
    blocks, ndim = known.blocks, len(shape_of(y))

    def linearised_pull(y_bar: Any) -> tuple[Any, ...]:
        return tuple(np.tensordot(y_bar, np.conj(block), ndim) for block in blocks)

    return linearised_pull


def _pushforward(y: Any, known: _Known, *xs: Any) -> Callable[..., Any]:
    blocks = known.blocks

    def linearised_push(*dots: Any) -> Any:
        terms = [
            np.tensordot(block, dot, len(shape_of(dot)))
            for block, dot in zip(blocks, dots, strict=True)
            if dot is not None
        ]
        return sum(terms[1:], start=terms[0])

    return linearised_push


_LINEARISED = General(_value, slice(1, None), _pullback, _pushforward)
