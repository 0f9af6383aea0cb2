"""Running a user's function under a level, with everything restored however it ends."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from retrograde.errors import RetrogradeError, without_our_frames
from retrograde.trace.callers import package_of
from retrograde.trace.handle import Traced
from retrograde.trace.interception import replace_in_globals
from retrograde.trace.level import ACTIVE, CONTEXT, Level, begin, finish

P = ParamSpec("P")
R = TypeVar("R")


def run(level: Level, work: Callable[[], Any], f: Callable[..., Any], leaves: dict[int, Traced] | None = None) -> Any:
    """`work()`, which calls the user's `f`, while `level` is running.

    Args:
        leaves: parameters that the level takes for its own leaves, by identity.
    """
    context = CONTEXT.get()
    inside = context._replace(
        levels=(*context.levels, level), leaves=context.leaves | leaves if leaves else context.leaves
    )
    try:
        CONTEXT.set(inside)
        begin(level)
        replace_in_globals(f)
        return work()
    except Exception as error:
        _explain(error, bool(level.borrowed))
        raise
    finally:
        CONTEXT.set(context)
        # Here and not in `finish`, on whose way an interrupt may come.
        ACTIVE.pop(id(level), None)
        finish(level)
        while level.borrowed:
            # The last first: a view becomes writable only if its base is.
            level.borrowed.pop().flags.writeable = True


_WRITTEN = """retrograde: a traced value was written into a plain array, which would lose its derivative.
Plain is what was made outside of the function, or of plain arrays (zeros_like(plain), np.ones(3) * 2).
  1. make the array inside the function by its shape, np.zeros(shape), or copy a plain one, np.array(plain)
  2. np.array([...]) or np.stack([...]) of the values
  3. b = Buffer(x, n), which can be written to: b[i] = ..., then b.copy()"""
_BORROWED = """retrograde: an operation on a traced value still needs the contents of this array.
  1. write into a copy of it, or use np.copy(array) in the operation
  2. make the array inside the function: np.zeros(n), np.array(...)"""
_COMPILED = """retrograde: compiled code of SciPy takes no traced values. If it was given one:
  1. primitive(function).defpullback(...), to give the function of SciPy a derivative rule
  2. dropgrad(x) as its argument, where its derivative is not wanted"""


def _explain(error: Exception, borrowed: bool) -> None:
    """Add the ways out to what others say when they meet a traced value."""
    if isinstance(error, RetrogradeError) or any(
        note in getattr(error, "__notes__", ()) for note in (_WRITTEN, _COMPILED)
    ):
        return
    if isinstance(error, ValueError) and "setting an array element with a sequence" in str(error):
        error.add_note(_WRITTEN)
        return
    if isinstance(error, ValueError) and "read-only" in str(error) and borrowed:
        error.add_note(_BORROWED)
        return
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is not None and package_of(trace.tb_frame) == "scipy":
        error.add_note(_COMPILED)


def interruptible(transform: Callable[P, R]) -> Callable[P, R]:
    """A transform that Ctrl-C leaves with a short traceback: the user's frames, and one of ours."""

    @functools.wraps(transform)
    def interruptible_transform(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return transform(*args, **kwargs)
        except KeyboardInterrupt as stop:
            raise stop.with_traceback(without_our_frames(stop.__traceback__)) from None

    return interruptible_transform
