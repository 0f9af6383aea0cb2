"""What is known when a function is compiled, beside types: objects, shapes of arguments, and memory that is shared.

A program says at run time where these are not what they were taken for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

BROADCAST = "operands could not be broadcast together"
SHORT = "a slice reaches beyond the end of its axis"
UNEQUAL = "sizes differ that were taken to be equal"
"""What a program says at run time where an axis of length 1 would have to stretch."""
RAGGED = "the results of the examples differ in shape"


class Known(NamedTuple):
    """What is known of the shapes of the arguments of a function, beside their types.

    Attributes:
        ones: axes of parameters, as (name of the leaf, axis), of length 1.
        clips: whether slices with constant bounds may reach beyond the end of an axis.
        differs: whether sizes that the program compares somewhere may differ at its start.
    """

    ones: frozenset[tuple[str, int]] = frozenset()
    clips: bool = False
    differs: bool = False


NOTHING = Known()


@dataclass(frozen=True, slots=True)
class Constant:
    """A Python object that is known when the function is compiled: a module, a function, a dtype, None, a text."""

    value: Any


class Shared(NamedTuple):
    """What is known of the results when the function is compiled.

    Attributes:
        results: the numbers of those that may share memory.
        arguments: for some of them the parameter that they are on every path.
    """

    results: frozenset[int]
    arguments: dict[int, int]


NOTHING_SHARED = Shared(frozenset(), {})
