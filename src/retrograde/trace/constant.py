"""The level of arrays that are written to but do not depend on anything traced, yet."""

from __future__ import annotations

import sys
from types import FrameType
from typing import TYPE_CHECKING, Any

from numpy import ndarray

from retrograde.trace.callers import Statement, frame_of_operator, is_calling, statement_of
from retrograde.trace.handle import HANDLES, Traced, make
from retrograde.trace.level import CONTEXT, Context, Level, Node, ignored_depth
from retrograde.trace.packages import wants_plain_arrays

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
        if type(y) is ndarray and node[1].rule is not None:
            # The caller is a generated function.
            return of_constants(y, node[1].rule.function.__name__, sys._getframe(2))
        return y

    def apply(self, binding: Binding, active: list[Operand]) -> Any:
        return binding.y


CONSTANT = ConstantLevel()


def constant(array: Any) -> Traced:
    """A handle of a plain array that this handle alone holds."""
    return make(array, None, CONSTANT)


def constant_here(array: Any) -> Traced:
    """The same for the user's own writing: inside of a batch, one to which batched values can be written."""
    new = constant(array)
    batch = batch_of(CONTEXT.get())
    if batch is not None:
        batch.prepare(new)
    return new


def batch_of(context: Context) -> Level | None:
    """A batch that is running here, if there is one."""
    return next((level for level in context.levels if level.maps), None)


def writable(array: Any, frame: FrameType | None, *names: str) -> Any:
    """An array that was made just now, as a handle to which traced values can be written.

    Outside of a transform, inside of `ignore()`, and for compiled callers it stays the plain array that it is; and so
    do integers, which could not hold what has a derivative, outside of a batch.

    Args:
        frame: the frame of Python code from which the call came.
        names: what the function is called that made it.
    """
    context = CONTEXT.get()
    if (
        not context.levels
        or (context.ignored and ignored_depth(context) >= 0)
        or type(array) is not ndarray
        or array.dtype.kind not in ("fc" if batch_of(context) is None else "fciub")
    ):
        return array
    if frame is None or not is_calling(frame, names) or wants_plain_arrays(frame):
        return array
    return constant_here(array)


def of_constants(y: Any, name: str, start: FrameType | None = None) -> Any:
    """What a function of this name has computed of constants: `2.0 * np.eye(3)`, `np.exp(np.zeros(3))`.

    Who made those has made that as well; traced values can be written to it.

    Args:
        start: a frame of this package above which the caller is looked for.
    """
    start = start or sys._getframe(1)
    if isinstance(y, list | tuple):
        parts = [of_constants(part, name, start) for part in y]
        # A named tuple (`np.linalg.eigh`) takes them one by one.
        return type(y)(*parts) if hasattr(y, "_fields") else type(y)(parts)
    if type(y) is not ndarray or y.dtype.kind not in "fc":
        return y
    context = CONTEXT.get()
    if context.levels and not (context.ignored and ignored_depth(context) >= 0):
        frame = frame_of_operator(start)
        if (
            frame is not None
            and (statement_of(frame) is Statement.OPERATOR or is_calling(frame, (name, _BUILTINS.get(name, name))))
            and not wants_plain_arrays(frame)
        ):
            return constant_here(y)
    return y


# What Python calls functions of NumPy's.
_BUILTINS = {
    "absolute": "abs", "rint": "round", "floor_divide": "divmod", "remainder": "divmod", "power": "pow"
}  # fmt: skip


def released(x: Any) -> Any:
    """What a handle that was written to has become: a traced value, or the plain array if it is constant still."""
    return x.primal if type(x) in HANDLES and x.level is CONSTANT else x
