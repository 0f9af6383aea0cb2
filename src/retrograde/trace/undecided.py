"""Levels whose values stand for those of every run, so that nothing may be decided by them.

What a comparison of such values gives is a value of the level, too: it may be multiplied with, or be the condition of
`np.where`. Where it would decide which code runs or which element is read, the user's code is refused. Code of this
library decides all the same: by branches only what is no matter of the derivative (whether there is a NaN), by indices
what the level is told (in which order to sort), and then the next result depends on everything.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from retrograde.errors import ConversionError, is_ours
from retrograde.originals import np
from retrograde.trace.handle import HANDLES, make
from retrograde.trace.level import VARYING, Level


@contextmanager
def varying(level: Level) -> Iterator[None]:
    """While `level`, which varies, is running."""
    key = id(level)
    try:
        VARYING[key] = weakref.ref(level, lambda _: VARYING.pop(key, None))
        yield
    finally:
        VARYING.pop(key, None)


def undecided(y: Any, *operands: Any) -> Any:
    """The truth or the integers `y` that were found by the plain values of the operands, as a value of their level."""
    if not VARYING:
        return y
    level = _level_of(operands)
    return y if level is None else _held(y, level)


def decide(x: Any, what: str, branches: bool = False) -> None:
    """Called where the plain value of `x` is to decide something; refuses if that is another in every run.

    Args:
        branches: whether it decides which code runs, and not which elements are taken.

    Raises:
        ConversionError: the user's own code would decide.
    """
    if not VARYING:
        return
    level = _level_of((x,))
    if level is None:
        return
    if not _is_library(sys._getframe(1)):
        raise ConversionError(
            f"{what} depends on the values of the inputs, and the pattern of every run was asked for (pattern='all')",
            "np.where(condition, a, b), of which both are counted",
            "pattern='run', the pattern of one run, which is checked wherever it is used",
            "sparsity=, a pattern of your own",
        )
    if not branches:
        level.decided()


def _level_of(tree: Any) -> Level | None:
    """The level of this kind that a value among nested sequences belongs to, below other levels or not."""
    while type(tree) in HANDLES:
        if tree.level.varies:
            return tree.level  # type: ignore[no-any-return]
        tree = tree.primal
    if isinstance(tree, list | tuple):
        return next((level for item in tree if (level := _level_of(item)) is not None), None)
    return None


def _held(y: Any, level: Level) -> Any:
    if isinstance(y, list | tuple):
        return type(y)(_held(part, level) for part in y)
    if isinstance(y, bool | int | np.generic | np.ndarray):
        return make(y, level.still(y), level)
    return y


def _is_library(frame: FrameType | None) -> bool:
    """Whether code of this library has come here, by way of the traced values and NumPy, and not the user's."""
    while frame is not None and _is_on_the_way(frame):
        frame = frame.f_back
    return frame is not None and is_ours(frame)


def _is_on_the_way(frame: FrameType) -> bool:
    name: str = frame.f_globals.get("__name__") or ""
    return name.startswith(_ON_THE_WAY) or frame.f_code.co_filename.startswith("<retrograde")


_ON_THE_WAY = (__name__.rpartition(".")[0] + ".", "numpy.")
