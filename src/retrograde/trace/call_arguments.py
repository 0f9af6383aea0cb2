"""The arguments of a call as a rule takes them: what is differentiated by position, all else known, and plain."""

from __future__ import annotations

import inspect
from typing import Any

from retrograde.errors import UnsupportedArgumentError
from retrograde.originals import np
from retrograde.rules.table import Composed, WithArguments
from retrograde.trace.handle import HANDLES, plain
from retrograde.trace.structure import rebuilt
from retrograde.trace.undecided import decide


def positions_of(rule: WithArguments, args: tuple[Any, ...]) -> tuple[int, ...]:
    if isinstance(rule.args, slice):
        return tuple(range(len(args)))[rule.args]
    if len(args) > rule.args[-1]:
        return rule.args
    return tuple(i for i in rule.args if i < len(args))


def normalised(
    rule: WithArguments, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any], tuple[int, ...]]:
    """Differentiable arguments by position, the others known to the formula and plain; and their positions."""
    form = len(args), *kwargs
    if form not in rule.usual_forms:
        args, kwargs = _by_position(rule, args, kwargs)
        if (len(args), *kwargs) == form and not rule.takes_all:
            rule.usual_forms.add(form)
    positions = rule.args
    if type(positions) is slice or len(args) <= positions[-1]:
        positions = positions_of(rule, args)
    for i, arg in enumerate(args):
        kind = type(arg)
        if kind not in _SIMPLE and i not in positions and not (kind is tuple and PARTS.issuperset(map(type, arg))):
            args = tuple([arg if i in positions else _constant(rule, i, arg) for i, arg in enumerate(args)])
            break
    if kwargs and not ATOMS.issuperset(map(type, kwargs.values())):
        # A wrapper may hand on NumPy's sign for an argument that was not given.
        known = {n: v for n, v in kwargs.items() if v is not np._NoValue}  # type: ignore[attr-defined]
        kwargs = {name: _constant(rule, name, value) for name, value in known.items()}
    return args, kwargs, positions


def _by_position(
    rule: WithArguments, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Differentiable arguments by position, the others known to the formula, whatever their values."""
    if len(args) > rule.most_positions:
        # The formula leaves out what it does not know (`out`), so what stands behind it goes by NumPy's names.
        known = int(rule.most_positions)
        numpys = [*inspect.signature(rule.function).parameters]
        kwargs = dict(zip(numpys[known:], args[known:], strict=False)) | kwargs
        args = args[:known]
    if kwargs:
        names = rule.parameter_names
        kwargs = {n: v for n, v in kwargs.items() if n in names or (v is not None and v is not np._NoValue)}  # type: ignore[attr-defined]
        if not rule.takes_all and not kwargs.keys() <= names.keys():
            unknown = next(name for name in kwargs if name not in names)
            raise UnsupportedArgumentError(
                f"the derivative of {rule.label} does not know the argument {unknown}=",
                "leave it out, or write the call without it",
                f"dropgrad(x) as the argument of {rule.label}, where its derivative is not wanted",
            )
        if not isinstance(rule.args, slice):
            last = max([i for name, i in names.items() if name in kwargs and i in rule.args], default=-1)
            while len(args) <= last:
                parameter = rule.parameters[len(args)]
                args = (*args, kwargs.pop(parameter.name, parameter.default))
    return args, kwargs


# Arguments of which only the truth counts.
_CONDITIONS = frozenset({"condition", "condlist"})


ATOMS = frozenset({int, float, bool, str, type(None), np.dtype, np.float64})
_SIMPLE = frozenset({int, float, bool, str, type(None), np.ndarray, np.float64})
PARTS = frozenset({int, slice})  # of which a shape, several axes or most indices are a tuple


def _constant(rule: WithArguments, name: int | str, value: Any) -> Any:
    """An argument without a derivative; a traced integer in it is taken for its value."""
    kind = type(value)
    if kind in _SIMPLE or (kind is tuple and PARTS.issuperset(map(type, value))):
        return value
    if kind in HANDLES:
        traced, value = value, plain(value)
        dtype = getattr(value, "dtype", None)
        is_condition = (
            rule.parameters[name].name if isinstance(name, int) and name < len(rule.parameters) else name
        ) in _CONDITIONS
        if isinstance(value, int) or (dtype is not None and dtype.kind in "iub"):
            if not is_condition:
                decide(traced, f"an argument of {rule.label}")
            return value
        if is_condition:
            return value
        which = f"{name}=" if isinstance(name, str) else f"number {name + 1}"
        raise UnsupportedArgumentError(
            f"{rule.label} has no derivative with respect to its argument {which}",
            "dropgrad(x) as that argument, where its derivative is not wanted",
        )
    if isinstance(value, list | tuple):
        return rebuilt(value, [_constant(rule, name, item) for item in value])
    return value


def known_keywords(rule: Composed, kwargs: dict[str, Any]) -> dict[str, Any]:
    """The keywords that the body of a rule knows; those that only say None are left out."""
    names = rule.names if kwargs else None
    if names is None:
        return kwargs
    known = {}
    for name, value in kwargs.items():
        if name in names:
            known[name] = value
        elif value is not None and value is not np._NoValue:  # type: ignore[attr-defined]
            raise UnsupportedArgumentError(
                f"the derivative of {rule.label} does not know the argument {name}=",
                "leave it out, or write the call without it",
            )
    return known
