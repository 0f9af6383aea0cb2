"""The level of arrays that are written to but do not depend on anything traced, yet."""

from __future__ import annotations

import sys
from types import FrameType
from typing import TYPE_CHECKING, Any

import numpy as np

from retrograde.trace.handle import HANDLES, Traced, make
from retrograde.trace.level import CONTEXT, Level, Node

if TYPE_CHECKING:
    from retrograde.trace.call import Binding, Operand


class ConstantLevel(Level):
    """Below all others: operations on its values give plain values; the first traced write makes them traced."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__()
        self.depth = -1
        self.number = int  # nothing counts nodes here

    def follow(self, y: Any, node: Node) -> Any:
        return y

    def apply(self, binding: Binding, active: list[Operand]) -> Any:
        return binding.y


CONSTANT = ConstantLevel()

# Packages whose compiled code checks for arrays by their type, and this one; what they make for themselves stays a plain
# array.
_PLAIN_MAKERS = frozenset(
    {"retrograde", "numpy", "scipy", "sklearn", "pandas", "numba", "matplotlib", "torch", "jax", "optree"}
)
# The modules through which a call by the user comes here.
_ON_THE_WAY = frozenset(
    {__name__, "retrograde.trace.interception", "retrograde.trace.protocols", "retrograde.trace.call"}
)


def constant(array: Any) -> Traced:
    """A handle of a plain array that this handle alone holds."""
    return make(array, None, CONSTANT)


def writable(array: Any) -> Any:
    """An array that was made just now, inside a transform, as a handle that traced values can be written to."""
    if type(array) is not np.ndarray or array.dtype.kind not in "fciub" or not CONTEXT.get().levels:
        return array
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__") in _ON_THE_WAY:
        frame = frame.f_back
    package = frame.f_globals.get("__name__", "").partition(".")[0] if frame is not None else ""
    return array if package in _PLAIN_MAKERS else constant(array)


def released(x: Any) -> Any:
    """What a handle that was written to has become: a traced value, or the plain array if it is constant still."""
    return x.primal if type(x) in HANDLES and x.level is CONSTANT else x
