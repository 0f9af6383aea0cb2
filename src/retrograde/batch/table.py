"""How each function maps over a batch: one table, filled by `mappings/`, a family of functions a file.

A mapping computes for all examples at once what the function computes of one. It is written with NumPy functions that
have rules, so that what it does can be differentiated, mapped and transformed itself. The kinds:

`mapped`   computes with the arrays that have the axis of the examples in front
`by_body`  computes with the batched values themselves, by functions that are mapped
`looped`   calls the function for one example after the other: where NumPy can do no better
`refused`  cannot be mapped, and why

A ufunc maps by itself, and so does a function whose rule is elementwise or composed of others.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from retrograde.errors import BatchError, MissingRuleError
from retrograde.originals import np
from retrograde.rules import find
from retrograde.rules.table import RULES, Composed, Elementwise, Rule
from retrograde.trace.protocols import missing_rule

Compute = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Mapping:
    """How one function maps.

    Attributes:
        compute: `compute(level, *args, **kwargs)`, with the arguments of the function.
        is_body: whether the result is that of the call, and not the array of all examples.
        is_new: whether the result never shares memory with an argument.
        kind: how the documentation calls it: "at once", "by a body" or "a loop".
    """

    compute: Compute
    is_body: bool = False
    is_new: bool = False
    kind: str = "at once"


MAPPINGS: dict[Any, Mapping] = {}
REFUSED: dict[Any, str] = {}


def mapped(*functions: Any, is_new: bool = False) -> Callable[[Compute], Compute]:
    """Declare how functions map: `compute(level, *args, **kwargs)` → the results of all examples in one array."""
    return _declare(functions, is_new=is_new)


def by_body(*functions: Any) -> Callable[[Compute], Compute]:
    """Declare that functions map by a body of others: `compute(level, *args, **kwargs)` → the result of the call."""
    return _declare(functions, is_body=True, kind="by a body")


def looped(*functions: Any) -> None:
    """Declare that functions are called for one example after the other."""
    for function in functions:
        MAPPINGS[function] = Mapping(functools.partial(_loop, function), is_body=True, kind="a loop")


def refused(*functions: Any, why: str) -> None:
    """Declare functions that cannot be mapped, and why."""
    REFUSED.update((function, why) for function in functions)


def _declare(functions: Iterable[Any], **how: Any) -> Callable[[Compute], Compute]:
    def declare(compute: Compute) -> Compute:
        for function in functions:
            if function in MAPPINGS:
                raise ValueError(f"{function} has a mapping already")
            MAPPINGS[function] = Mapping(functools.partial(compute, function), **how)
        return compute

    # The function itself comes first, then the level: a family shares one `compute`.
    return declare


@functools.cache
def _load_scipy() -> None:
    """Add the mappings of SciPy's functions, which import SciPy."""
    import_module("retrograde.batch.mappings.scipy_special")


def mapping_of(function: Any) -> Mapping | Composed | None:
    """How a function maps, or None where it does not."""
    found = MAPPINGS.get(function)
    if found is not None:
        return found
    if function in REFUSED:
        return None
    rule = find(function)
    if "scipy.special" in sys.modules:
        _load_scipy()
        if function in MAPPINGS:
            return MAPPINGS[function]
    made = _by_its_kind(function, rule)
    if isinstance(made, Mapping):
        MAPPINGS[function] = made
    return made


def how(function: Any) -> str | None:
    """How a function maps, in the words of the documentation; None where nobody has said."""
    if function in REFUSED:
        return "refused"
    mapping = mapping_of(function)
    if mapping is None:
        return None
    return "by its body" if isinstance(mapping, Composed) else mapping.kind


def _by_its_kind(function: Any, rule: Rule | None) -> Mapping | Composed | None:
    if isinstance(rule, Composed):
        return rule
    from retrograde.batch.mappings.elementwise import elementwise, gufunc

    if isinstance(function, np.ufunc):
        compute = elementwise if function.signature is None else gufunc
        return Mapping(functools.partial(compute, function), is_new=function.signature is None)
    return Mapping(functools.partial(elementwise, function)) if isinstance(rule, Elementwise) else None


def refusal(function: Any) -> BatchError | MissingRuleError:
    """The error that says why a function does not map."""
    why = REFUSED.get(function)
    if why is None and function not in RULES:
        return missing_rule(function)
    name = RULES[function].label if function in RULES else function.__name__
    return BatchError(
        f"{name} cannot be mapped over a batch: {why or 'nobody has said how'}",
        "np.stack([f(x) for x in xs]), a loop over the examples in place of vmap",
        "primitive(function).defbatch(...), to say it yourself",
    )


def _loop(function: Any, level: Any, *args: Any, **kwargs: Any) -> Any:
    return one_by_one(function, level, args, kwargs)


def one_by_one(function: Any, level: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The function of each example, one after the other, and the results in one array."""
    results = [
        function(*(_example(level, arg, i) for arg in args), **{k: _example(level, v, i) for k, v in kwargs.items()})
        for i in range(level.size)
    ]
    if not results:
        raise BatchError(
            f"{getattr(function, '__name__', 'f')} is mapped one example after the other; of no examples the shape of "
            "the result is not known"
        )
    return _joined(level, results)


def _example(level: Any, arg: Any, i: int) -> Any:
    if level.holds(arg):
        return arg.primal[i]
    if isinstance(arg, tuple | list):
        return type(arg)(_example(level, item, i) for item in arg)
    return arg


def _joined(level: Any, results: list[Any]) -> Any:
    first = results[0]
    if isinstance(first, tuple | list):
        parts = [_joined(level, list(each)) for each in zip(*results, strict=True)]
        return type(first)(*parts) if hasattr(first, "_fields") else type(first)(parts)
    if first is None:
        return None
    shapes = {np.shape(result) for result in results}
    if len(shapes) > 1:
        raise BatchError(f"the results of the examples have different shapes: {sorted(shapes)}")
    return level.wrap(np.stack(results))
