"""The level of arrays that are written to but do not depend on anything traced, yet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from retrograde.trace.handle import HANDLES, Traced, make
from retrograde.trace.level import Level, Node

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


def constant(array: Any) -> Traced:
    """A handle of a plain array that this handle alone holds."""
    return make(array, None, CONSTANT)


def released(x: Any) -> Any:
    """What a handle that was written to has become: a traced value, or the plain array if it is constant still."""
    return x.primal if type(x) in HANDLES and x.level is CONSTANT else x
