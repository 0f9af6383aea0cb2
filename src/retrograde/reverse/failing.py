"""Which operation's derivative has raised, said in a note on the exception.

A sweep runs after the function has returned, so that the user's line is in no traceback. Looked up only when something
has raised: it costs nothing before, but for lines, which are noted if the user wants them (`options.lines`).
"""

from __future__ import annotations

from types import FrameType
from typing import Any

from retrograde.errors import PullbackError
from retrograde.trace.handle import shape_of
from retrograde.trace.ops import general_pull

_RULE = "<retrograde rule "


def name_operation(error: Exception, lines: dict[int, str] | None) -> None:
    """Add a note that names the operation, unless the error does; what a user's own rule raises is left as it is.

    Args:
        lines: where the operations stand, by the numbers of their nodes, if that was noted.
    """
    if isinstance(error, PullbackError) or any(note.startswith("retrograde: ") for note in _notes(error)):
        return
    number: int | None = None
    trace = error.__traceback__
    while trace is not None:
        frame = trace.tb_frame
        if frame.f_code.co_name in ("run_nodes", "sweep_and_free"):
            number = frame.f_locals.get("number")
        operation = _operation_of(frame)
        if operation is not None:
            break
        trace = trace.tb_next
    else:
        return
    place = lines.get(number or 0, "") if lines else ""
    note = f"retrograde: raised by the derivative of {operation}" + (f"  ({place})" if place else "")
    if lines is None:
        note += "\n  1. retrograde.options.lines = True before the transform: then this note names the line"
    error.add_note(note)


def _notes(error: Exception) -> list[str]:
    return getattr(error, "__notes__", [])


def _operation_of(frame: FrameType) -> str | None:
    """The operation that a frame pulls back, if it does."""
    if frame.f_code is general_pull.__code__:
        node = frame.f_locals["node"]
        if not node[1].repeatable:
            return None
        targets = node[-1]
        return f"{targets.name}, of {_shapes([like[0] for _, _, like in targets.places])}"
    if frame.f_code.co_filename.startswith(_RULE):
        name = frame.f_code.co_filename.removeprefix(_RULE).rstrip(">")
        return f"{name}, of {_shapes([shape_of(frame.f_locals.get('y_bar'))])}"
    return None


def _shapes(shapes: list[Any]) -> str:
    several = f"arguments of shapes {', '.join(map(str, shapes))}"
    return f"an argument of shape {shapes[0]}" if len(shapes) == 1 else several
