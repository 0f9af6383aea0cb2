"""The arguments of a function as the rows and columns of its matrices of derivatives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from retrograde.errors import InputError
from retrograde.reverse.gradient import checked_argnums, places_of
from retrograde.reverse.params import Grads, Params
from retrograde.trace.creation import array_of
from retrograde.trace.handle import is_traced, like_of, shape_of
from retrograde.trace.structure import flatten, is_variable, unflatten


class Arguments:
    """The variables among the arguments of a function: numbers, arrays, and flat lists of numbers, taken as vectors.

    Args:
        args: the arguments; a single `Params` stands for the parameters that a function without arguments closes over.
        argnums: the numbers of those that count (an integer or a tuple); None for all.
        name: what errors call the transform.

    Attributes:
        xs: the variables, integers as floats.
        params: the `Params`, if that is what was given.
        places: which arguments the variables are, where each is an argument as it was given; None otherwise.
    """

    __slots__ = ("_args", "_flat", "_is_one", "params", "places", "xs")

    def __init__(self, args: tuple[Any, ...], argnums: Any, name: str) -> None:
        self.params = args[0] if isinstance(args[0], Params) else None
        self.places: tuple[int, ...] | None = None
        if self.params is not None:
            if len(args) > 1 or argnums is not None:
                raise InputError(
                    f"{name}(f, params) takes nothing beside the parameters", f"{name}(lambda: f(x, y), params)"
                )
            self.xs = tuple(_as_floats(p.value) for p in self.params)
            return
        if argnums is not None:
            argnums = checked_argnums(name, argnums)
        places = range(len(args)) if argnums is None else places_of(argnums, len(args))
        self._is_one = len(args) == 1 if argnums is None else isinstance(argnums, int)
        self._args = args
        self._flat = {i: _taken_apart(args[i]) for i in places}
        self.xs = tuple(_as_floats(leaf) for leaves, _ in self._flat.values() for leaf in leaves if _counts(leaf))
        is_plain = len(self.xs) == len(places) and all(x is args[i] for x, i in zip(self.xs, places, strict=True))
        self.places = tuple(places) if is_plain else None

    def filled(self, values: Sequence[Any]) -> list[Any]:
        """The arguments with other values in the places of the variables."""
        if self.params is not None:
            return []
        rest = iter(values)
        args = list(self._args)
        for i, (leaves, structure) in self._flat.items():
            args[i] = unflatten(structure, [_as_given(rest, leaf) for leaf in leaves])
        return args

    def in_structures(self, row: Sequence[Any]) -> Any:
        """Something for each variable, in the structure of the arguments; None stands for constants."""
        if self.params is not None:
            return Grads(self.params, row)
        rest = iter(row)
        results = [
            unflatten(structure, [next(rest) if _counts(leaf) else None for leaf in leaves])
            for leaves, structure in self._flat.values()
        ]
        return results[0] if self._is_one else tuple(results)

    def check_real(self) -> None:
        """Refuse what has no Hessian."""
        for leaves, _ in () if self.params is not None else self._flat.values():
            if not any(_counts(leaf) for leaf in leaves):
                raise InputError(
                    "a Hessian needs numbers and arrays; an argument holds none"
                    + (f", but a {type(leaves[0]).__name__}" if leaves else ""),
                    "argnums=, the numbers of the arguments that count",
                    "pass it as a keyword argument or through a closure, if it is a constant",
                )
        if any(like_of(x)[1].kind == "c" for x in self.xs):
            raise InputError(
                "a real function of complex numbers has no complex Hessian",
                "hessian of a function of the real and the imaginary part, f(a + 1j * b)",
                "hvp(f, z, v), the change of the gradient along v",
            )


def _counts(leaf: Any) -> bool:
    return is_vector(leaf) or is_variable(leaf)


def _taken_apart(arg: Any) -> tuple[list[Any], Any]:
    if is_vector(arg):
        return [arg], None
    return flatten(arg)


def is_vector(arg: Any) -> bool:
    """Whether it is a flat list of numbers, which stands for a vector."""
    return (
        isinstance(arg, list)
        and bool(arg)
        and all(not isinstance(a, list | tuple | dict) and not shape_of(a) for a in arg)
    )


def _as_floats(arg: Any) -> Any:
    """A flat list as the vector that it stands for; integers as floats."""
    x = array_of(arg) if isinstance(arg, list) else arg
    if is_traced(x):
        return x
    return x.astype(like_of(x)[1]) if isinstance(x, np.ndarray) and x.dtype.kind in "iu" else x


def _as_given(values: Iterator[Any], leaf: Any) -> Any:
    """The next value, as a list again if that is what the user's function takes; a constant as it is."""
    if is_vector(leaf):
        return list(next(values))
    return next(values) if is_variable(leaf) else leaf
