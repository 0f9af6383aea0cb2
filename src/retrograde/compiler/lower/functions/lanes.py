"""Functions of vectors along one axis of an array of several."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from retrograde.compiler.form import Index, Slice
from retrograde.compiler.lower.functions.arguments import axes_of
from retrograde.compiler.lower.functions.shape import ravel
from retrograde.compiler.lower.indexing import Indexing
from retrograde.compiler.types import Operand, Type


def along_axis(lower: Indexing, a: Any, axis: Any, function: Callable[[Any], Any], is_vector: bool = False) -> Any:
    """`function` of each vector along an axis; of all elements in one where the axis is None.

    Args:
        is_vector: whether it makes a vector of the same length of a vector; otherwise a number.
    """
    shape = lower.shape(a)
    if axis is None or len(shape) == 1:
        if axis is not None:
            axes_of(lower, axis, 1)
        return function(a if len(shape) == 1 else ravel(lower, a))
    found = axes_of(lower, axis, len(shape)) or ()
    if len(found) != 1:
        raise lower.refuse("several axes where one is wanted", "one axis after the other")
    k, a = found[0], lower.force(a)
    rest = (*shape[:k], *shape[k + 1 :])

    def lane(array: str, index: Index) -> Any:
        return lower.view(array, (*index[:k], Slice(), *index[k:]))

    made = lower.alloc("w", shape if is_vector else rest, element_of(lower, len(rest), lambda i: function(lane(a, i))))

    def put(index: Index) -> None:
        value = function(lane(a, index))
        if is_vector:
            lower.assign_elements(lane(made, index), value)
        else:
            lower.store(made, index, value)

    lower.nest(rest, put)
    return made


def element_of(lower: Indexing, depth: int, make: Callable[[Index], Any]) -> Type:
    """The type of the elements of what is made for each index, found in a block that is thrown away."""

    def element(index: Index) -> Operand:
        value = make(index)
        if lower.is_array(value):
            return lower.element(value, tuple(0 for _ in lower.shape(value)))
        return value

    return lower.probe_type((0,) * depth, element)
