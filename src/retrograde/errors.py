"""Every error and warning of the library.

RetrogradeError
├── ScalarError            (TypeError)            a loss that is not one real number
├── LossError              (ValueError)           an infinite or a NaN loss
├── SparsityError          (ValueError)           a derivative outside of its sparsity pattern
├── SeedError              (ValueError)           a seed whose shape is not the output's
├── AlreadyUsedError       (RuntimeError)         a second sweep of a graph that was freed
├── EndedError             (RuntimeError)         a traced value that outlived its transform
├── BatchError             (TypeError)            what cannot be done with all examples of a batch at once
├── ConversionError        (TypeError)            a conversion that would lose the derivative
├── MutationError          (TypeError)            a write that would lose the derivative
├── FrozenBufferError      (RuntimeError)         a write to a Buffer after its copy
├── NotAnArrayError        (TypeError)            a Buffer used as an array
├── OrderError             (ValueError)           a Taylor series of negative order
├── InputError             (TypeError)            an argument that cannot be differentiated
│   └── CompilationError                          a function that numba cannot compile as it is written
├── MissingRuleError       (NotImplementedError)  a function that has no derivative rule
├── MissingAttributeError  (AttributeError)       an attribute of arrays that a traced value cannot have
├── UnsupportedArgumentError (TypeError)          an argument that a rule does not know
├── PullbackError          (ValueError)           a rule that returned something impossible
├── LanguageError          (NotImplementedError)  a construct that compile does not take
├── HashError              (TypeError)            a traced value used as a dictionary key
├── PickleError            (TypeError)            a traced value sent to another process
└── MissingExtraError      (ImportError)          an optional package that is not installed

RetrogradeWarning          (UserWarning)
└── DroppedGradientWarning                        a gradient dropped because a tool is defined to drop it

Each message is one sentence of fact with the values seen, the user's file and line, and numbered ways out.
"""

from __future__ import annotations

import os
import sys
from types import FrameType, TracebackType

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep


class RetrogradeError(Exception):
    """The root of the library's own errors.

    Args:
        fact: one sentence, with the values that were seen.
        ways: what the user can write instead, most likely first.
    """

    def __init__(self, fact: str, *ways: str) -> None:
        self.fact = fact
        self.ways = ways
        place = user_location()
        text = f"{fact}  ({place})" if place else fact
        if ways:
            text += "\n" + "\n".join(f"  {number}. {way}" for number, way in enumerate(ways, 1))
        super().__init__(text)

    def __reduce__(self) -> tuple[object, ...]:
        # An error made in a worker process keeps its text (and so the worker's file and line).
        return _rebuild, (type(self), self.fact, self.ways, self.args[0])


def _rebuild(kind: type[RetrogradeError], fact: str, ways: tuple[str, ...], text: str) -> RetrogradeError:
    error = kind.__new__(kind)
    error.fact, error.ways, error.args = fact, ways, (text,)
    return error


class ScalarError(RetrogradeError, TypeError):
    """A gradient was asked of something that is not one real number."""


class LossError(RetrogradeError, ValueError):
    """The loss is infinite or NaN, so that no gradient of it means anything."""


class SeedError(RetrogradeError, ValueError):
    """A seed does not have the shape or the structure of the output."""


class SparsityError(RetrogradeError, ValueError):
    """A derivative has entries outside of the sparsity pattern that it was to be compressed by."""


class AlreadyUsedError(RetrogradeError, RuntimeError):
    """A graph was swept with once=True before and is gone."""


class EndedError(RetrogradeError, RuntimeError):
    """A traced value was used after the transform that made it had ended."""


class OrderError(RetrogradeError, ValueError):
    """The order of a Taylor series is negative."""


class ConversionError(RetrogradeError, TypeError):
    """A traced value was converted to something that cannot carry a derivative."""


class BatchError(RetrogradeError, TypeError):
    """Something that cannot be done with all examples of a batch at once."""


class MutationError(RetrogradeError, TypeError):
    """A write would lose a derivative."""


class FrozenBufferError(RetrogradeError, RuntimeError):
    """A Buffer was written to after it had been copied."""


class NotAnArrayError(RetrogradeError, TypeError):
    """A Buffer was used as an array."""


class InputError(RetrogradeError, TypeError):
    """An argument of a kind that cannot be differentiated."""


class CompilationError(InputError):
    """numba cannot compile a function."""


class MissingRuleError(RetrogradeError, NotImplementedError):
    """A function without a derivative rule was given a traced value."""


class MissingAttributeError(RetrogradeError, AttributeError):
    """An attribute or a method that arrays have and traced values cannot have."""


class UnsupportedArgumentError(RetrogradeError, TypeError):
    """A rule was given an argument that it does not know."""


class PullbackError(RetrogradeError, ValueError):
    """A pullback or pushforward returned the wrong number or shape of derivatives."""


class LanguageError(RetrogradeError, NotImplementedError):
    """A construct of the user's source that `compile` does not take, with its place.

    Attributes:
        file, line, column: where the construct stands; the column counts from 0.
    """

    def __init__(
        self, fact: str, *ways: str, file: str = "", line: int = 0, column: int = 0, end: int = 0, text: str = ""
    ) -> None:
        self.fact, self.ways, self.file, self.line, self.column = fact, ways, file, line, column
        fact = f"compile does not take this: {fact}"
        shown = f"{fact}  ({os.path.basename(file)}:{line}:{column + 1})" if file else fact
        if text.strip():
            margin = len(text) - len(text.lstrip())
            shown += f"\n    {text.strip()}\n    {' ' * (column - margin)}{'^' * max(end - column, 1)}"
        if ways:
            shown += "\n" + "\n".join(f"  {number}. {way}" for number, way in enumerate(ways, 1))
        Exception.__init__(self, shown)


class HashError(RetrogradeError, TypeError):
    """A traced value has no hash."""


class PickleError(RetrogradeError, TypeError):
    """A traced value inside a running transform cannot be pickled."""


class MissingExtraError(RetrogradeError, ImportError):
    """An optional dependency is not installed."""


class RetrogradeWarning(UserWarning):
    """The root of the library's own warnings."""


class DroppedGradientWarning(RetrogradeWarning):
    """A gradient was dropped, as the tool in use is defined to do."""


def is_ours(frame: FrameType) -> bool:
    """Whether the frame runs code of this package, generated code included."""
    return is_ours_file(frame.f_code.co_filename)


def is_ours_file(name: str) -> bool:
    """Whether code of that file name is this package's, generated code included."""
    return name.startswith((_PACKAGE, "<retrograde"))


def user_frame(strictly: bool = True) -> FrameType | None:
    """The innermost frame that is neither this library's nor (`strictly`) of those that stand between it and a user."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and (is_ours(frame) or (strictly and _package(frame) in _BETWEEN)):
        frame = frame.f_back
    return frame


_BETWEEN = ("numpy", "scipy", "numba", "functools")


def _package(frame: FrameType) -> str:
    name: str = frame.f_globals.get("__name__") or ""
    return name.partition(".")[0]


def callers_frame(frame: FrameType | None) -> FrameType | None:
    """The innermost frame from there outwards that is the user's own: of no installed package."""
    while frame is not None and (is_ours(frame) or _is_installed(frame)):
        frame = frame.f_back
    return frame


def user_location() -> str:
    """`file.py:12` of the user's innermost line, or an empty string.

    Inside of an installed package (or of Python's own library) the line that called it is named as well.
    """
    frame = user_frame()
    if frame is None:
        return ""
    caller = callers_frame(frame)
    if caller is None or caller is frame:
        return _line(frame)
    return f"{_line(frame)}, called from {_line(caller)}"


def users_entry(trace: TracebackType | None) -> TracebackType | None:
    """The innermost entry of a traceback that is the user's own line."""
    found = None
    while trace is not None:
        if not is_ours(trace.tb_frame) and not _is_installed(trace.tb_frame):
            found = trace
        trace = trace.tb_next
    return found


def location_in(trace: TracebackType | None) -> str:
    """`file.py:12` of the user's innermost line in a traceback, or an empty string."""
    entry = users_entry(trace)
    return "" if entry is None else f"{os.path.basename(entry.tb_frame.f_code.co_filename)}:{entry.tb_lineno}"


def _line(frame: FrameType) -> str:
    return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"


def _is_installed(frame: FrameType) -> bool:
    # The code of a compiled module names no path; its module does.
    return is_installed_file(frame.f_code.co_filename) or is_installed_file(str(frame.f_globals.get("__file__")))


def is_installed_file(path: str) -> bool:
    """Whether a file belongs to an installed package or to Python's own library."""
    return path.startswith(_PYTHON) or is_in_package(path)


def is_in_package(path: str) -> bool:
    """Whether a file belongs to an installed package."""
    return any(folder in path for folder in _INSTALLED)


_INSTALLED = tuple(f"{os.sep}{name}{os.sep}" for name in ("site-packages", "dist-packages"))
_PYTHON = (os.path.dirname(os.__file__) + os.sep, "<frozen ")


def without_our_frames(trace: TracebackType | None) -> TracebackType | None:
    """The same traceback with only the frames that are not this library's."""
    kept = []
    while trace is not None:
        if not is_ours(trace.tb_frame):
            kept.append(trace)
        trace = trace.tb_next
    result: TracebackType | None = None
    for entry in reversed(kept):
        result = TracebackType(result, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return result
