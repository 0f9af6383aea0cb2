"""Who else holds the memory of an array that is written to.

It is asked of reference counts, and only at a write. Residuals and other handles need the old contents: for them a
write copies. Plain arrays that others have been given by an array which is constant so far share its memory, as in
NumPy, and must see the write: for them it is made in place, and refused where plain memory cannot hold it.
"""

from __future__ import annotations

import contextlib
import gc
import inspect
import sys
import weakref
from sys import getrefcount
from types import FrameType
from typing import Any

from numpy import ndarray
from numpy.lib.array_utils import byte_bounds

from retrograde.errors import MutationError, callers_frame, user_frame
from retrograde.originals import np
from retrograde.trace.handle import HANDLES, Traced
from retrograde.trace.ops import HELD_AS_BASE


def copied(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A copy that lies in memory as `x` does: where NumPy makes a view of x and where a copy must stay the same."""
    if x.flags.c_contiguous or x.flags.f_contiguous:
        return x.copy(order="K")
    low, high = byte_bounds(x)
    if not x.nbytes <= high - low <= _LOOSEST * x.nbytes:
        # Elements that share memory must be apart in a copy; a thin slice of something large is not worth its gaps.
        return x.copy(order="K")
    memory = np.empty(high - low, np.uint8)
    new = np.ndarray(x.shape, x.dtype, memory, x.__array_interface__["data"][0] - low, x.strides)
    new[...] = x
    return new


_LOOSEST = 8


def owned(x: Any) -> Any:
    """A value in memory of its own, which lies as it did."""
    if type(x) is ndarray:
        return copied(x)
    return x.owned() if type(x) in HANDLES else x


def _count(x: Traced) -> int:
    return getrefcount(x.primal)


def _handle(primal: Any) -> Traced:
    x = Traced()
    x.primal = primal
    return x


_EXCLUSIVE = _count(_handle(np.zeros(1)))


def is_exclusive(x: Traced, others: int = 0) -> bool:
    """Whether a plain primal is held by this handle alone, and `others` that are known, and may be changed in place."""
    if _count(x) != _EXCLUSIVE + others or not x.primal.flags.writeable:
        return False
    base = x.primal.base
    # The memory that `copied` made belongs to the array alone.
    return base is None or (type(base) is ndarray and base.base is None and getrefcount(base) == HELD_AS_BASE)


def part_from_others(x: Traced) -> None:
    """Let a write to the primal of `x`, which is not exclusive, reach nobody who needs the old contents.

    Raises:
        MutationError: somebody else needs the new ones.
    """
    if is_lent(x):
        if not is_exclusive(x, 1):
            raise MutationError(
                f"a write would not reach a plain array that shares the memory of this one of shape {x.primal.shape}",
                *_WAYS,
            )
        return
    x.primal = copied(x.primal)


# --- arrays that the user has made read-only ---------------------------------------------------------------------

READ_ONLY: dict[int, weakref.ref[Traced]] = {}
"""The handles of such arrays, by identity: few programs have any, so that a write asks first whether there are some.

The flag of a primal would not do: it is also set for arrays of the caller, which a transform may write to since it has
a version of its own.
"""


def set_read_only(x: Traced, is_so: bool) -> None:
    """Set or lift the mark of an array, and of the views of it that are made from now on.

    Raises:
        ValueError: NumPy's own, where it is a view of a read-only array that is to be lifted.
    """
    if is_so:
        key = id(x)
        READ_ONLY[key] = weakref.ref(x, lambda _: READ_ONLY.pop(key, None))
        return
    if x.base is not None and is_read_only(x.base):
        raise ValueError("cannot set WRITEABLE flag to True of this array")
    READ_ONLY.pop(id(x), None)


def is_read_only(x: Any) -> bool:
    """Whether the user has made an array read-only, or one that it is a view of before it was taken."""
    return id(x) in READ_ONLY


def check_writeable(x: Any) -> None:
    """Refuse a write into an array that is marked so, in NumPy's words."""
    if id(x) in READ_ONLY:
        raise ValueError("assignment destination is read-only")


# --- what a constant gives to others -----------------------------------------------------------------------------


def lend(x: Traced) -> np.ndarray[Any, Any]:
    """The plain array of a constant `x`, for others to keep, in the same memory.

    All who look into it hold it, since it is made over a memoryview (a view of a view would hold the owner alone). So
    a weak reference, which is the link of the constant, says whether anybody does.
    """
    lent = _lent(x)
    if lent is None:
        if not is_exclusive(x):
            x.primal = copied(x.primal)
        lent = np.asarray(memoryview(x.primal))
        x.link = weakref.ref(lent)
    return lent


def _lent(x: Traced) -> np.ndarray[Any, Any] | None:
    return None if x.link is None else x.link()


def owner_of(x: np.ndarray[Any, Any]) -> Any:
    """What `x` is a view of, be it that what was lent is one of the constant's own array."""
    base = x.base
    return base.obj if type(base) is memoryview else base


def is_lent(x: Traced) -> bool:
    """Whether somebody shares the memory of `x`, who was given a plain array of it while it was constant."""
    return x.level.depth < 0 and x.link is not None and x.link() is not None


def check_not_lent(x: Traced) -> None:
    """Refuse to make a constant traced while somebody else has its memory, who would keep the old contents.

    Raises:
        MutationError: somebody has.
    """
    if _lent(x) is None:
        return
    _forget_what_nobody_can_see(x)
    if _lent(x) is None:
        return
    raise MutationError(
        f"a traced value would be written into an array of shape {x.primal.shape} whose memory "
        f"{_holder(x.link())} has taken, and which would keep the old values",
        *_WAYS,
    )


def _forget_what_nobody_can_see(x: Traced) -> None:
    """Free what was lent of `x` if only garbage and the variables of calls that have failed hold it.

    An exception that is kept, or is being handled, holds the frames that it came through. They have ended; their
    variables are for debuggers.
    """
    gc.collect()
    if _lent(x) is None:
        return
    running = set()
    for frame in sys._current_frames().values():
        while frame is not None:
            running.add(id(frame))
            frame = frame.f_back  # type: ignore[assignment]
    for frame in gc.get_objects():
        if type(frame) is not FrameType or id(frame) in running or frame.f_code.co_flags & _CAN_GO_ON:
            continue
        if any(_looks_into(value, _lent(x)) for value in frame.f_locals.values()):
            # It may have begun to run in another thread.
            with contextlib.suppress(RuntimeError):
                frame.clear()
                frame.f_locals  # noqa: B018  (the copy that was made above is brought up to date)


_CAN_GO_ON = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


def _attributes(value: Any) -> tuple[Any, ...]:
    """What an object holds in its dictionary, without a word from its class."""
    try:
        held = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return ()
    return tuple(held.values()) if type(held) is dict else ()


def _looks_into(value: Any, lent: Any) -> bool:
    if lent is None:
        return False
    if type(value) in (list, tuple, dict):
        return any(_looks_into(part, lent) for part in (value.values() if type(value) is dict else value))
    # Only arrays are asked: the attributes of others may be code of their own, which may raise anything.
    return value is lent or (issubclass(type(value), np.ndarray) and value.base is lent)


_WAYS = (
    "fill the array first, and make of it what shares its memory (np.asarray, data, a SciPy object) afterwards",
    "give away a copy: np.array(y, copy=True), data(y).copy()",
)


def _holder(lent: np.ndarray[Any, Any]) -> str:
    """Who holds what was lent, as far as it can be found, for a message."""
    frame = callers_frame(user_frame())
    for name, value in {} if frame is None else tuple(frame.f_locals.items()):
        if _looks_into(value, lent):
            return f"`{name}`"
        if any(_looks_into(part, lent) for part in _attributes(value)):
            return f"`{name}` ({type(value).__name__})"
    return "something else"
