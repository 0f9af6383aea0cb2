"""Containers as vectors: what matrices, solvers and optimisers want in the place of nested arguments."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from retrograde.errors import InputError
from retrograde.trace.handle import like_of
from retrograde.trace.structure import flatten, is_variable, unflatten


class Layout:
    """The places that the numbers of a container have in one vector: leaf after leaf, each in C order.

    Attributes:
        size: the number of elements of all variables; constants (text, flags) have none.
        dtype: of the vector.
    """

    __slots__ = ("_leaves", "_likes", "_starts", "_structure", "dtype", "size")

    def __init__(self, tree: Any) -> None:
        self._leaves, self._structure = flatten(tree)
        self._likes = [like_of(leaf) if is_variable(leaf) else None for leaf in self._leaves]
        self._starts = [0]
        for like in self._likes:
            self._starts.append(self._starts[-1] + (math.prod(like[0]) if like else 0))
        self.size = self._starts[-1]
        self.dtype = np.result_type(*(like[1] for like in self._likes if like)) if self.size else np.dtype(float)

    def join(self, tree: Any) -> Any:
        """The numbers of a container of this layout as one vector. None, a leaf without a path, counts as zeros."""
        leaves = [tree] if self._structure is None else self._structure.flatten_up_to(tree)
        parts = [
            np.zeros(math.prod(like[0]), like[1]) if leaf is None else np.reshape(leaf, math.prod(like[0]))
            for leaf, like in zip(leaves, self._likes, strict=True)
            if like
        ]
        return parts[0] if len(parts) == 1 else np.concatenate(parts) if parts else np.zeros(0)

    def split(self, vector: Any) -> Any:
        """The container whose numbers a vector holds; constants stand where they stood, None for them in `seed`."""
        return unflatten(self._structure, self._parts(vector, self._leaves))

    def seed(self, vector: Any) -> Any:
        """As `split`, with None in the places of constants: a tangent or a cotangent."""
        return unflatten(self._structure, self._parts(vector, [None] * len(self._leaves)))

    def _parts(self, vector: Any, constants: list[Any]) -> list[Any]:
        return [
            np.reshape(vector[start : start + math.prod(like[0])], like[0]) if like else constant
            for like, start, constant in zip(self._likes, self._starts, constants, strict=False)
        ]

    def __eq__(self, other: object) -> bool:
        """Whether vectors of both mean the same: the containers and the shapes agree, whatever the dtypes."""
        return (
            isinstance(other, Layout)
            and self._structure == other._structure
            and [like and like[0] for like in self._likes] == [like and like[0] for like in other._likes]
        )

    __hash__ = None  # type: ignore[assignment]


def checked_output(y: Any, name: str) -> Any:
    """Refuse what is no number, array or container of them; `name` is the transform that was called."""
    leaves = flatten(y)[0]
    for leaf in leaves or [y]:
        try:
            is_constant = not is_variable(leaf)
        except InputError:
            is_constant = True
        # A constant (text, a flag) may stand beside numbers.
        if is_constant and (len(leaves) < 2 or not isinstance(leaf, bool | str | bytes | np.generic | np.ndarray)):
            raise InputError(
                f"{name} needs a function that returns numbers and arrays; it returned {_described(leaf)}",
                "return arrays, or a list, tuple or dictionary of them",
            )
    return y


def _described(leaf: Any) -> str:
    return "None" if leaf is None else f"a {type(leaf).__name__}"
