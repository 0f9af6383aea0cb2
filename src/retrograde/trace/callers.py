"""Who calls a function that was taken over: Python code, or compiled code that must be given a real array.

Compiled modules look NumPy's functions up as attributes too (`numpy.random` fills what `np.empty` returns) and use the
memory of the result without a look at its type. They have no frame; what is seen is the Python frame that called them.
So a frame counts as the caller only if the instruction that it is executing is a call of that very function.
"""

from __future__ import annotations

import dis
import sys
from types import CodeType, FrameType

_PACKAGE = __name__.partition(".")[0]

# The modules through which a call comes here.
_ON_THE_WAY = frozenset(
    f"{_PACKAGE}.trace.{name}" for name in ("attributes", "callers", "constant", "interception", "protocols", "call")
)

_verified: dict[tuple[int, int], tuple[CodeType, str | None]] = {}


def calling_frame(name: str) -> FrameType | None:
    """The frame of Python code that is calling the function `name`, or None if compiled code does."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__") in _ON_THE_WAY:
        frame = frame.f_back
    if frame is None:
        return None
    code, position = frame.f_code, frame.f_lasti
    found = _verified.get((id(code), position))
    if found is None:
        # The code is kept, so that its id stays its own.
        found = _verified[id(code), position] = (code, called_name(code, position))
    called = found[1]
    if called is None or called == name:
        return frame if called else None
    # Under another name: `from numpy import zeros as z`.
    value = frame.f_globals.get(called) or frame.f_locals.get(called)
    return frame if getattr(value, "__name__", None) == name else None


def package_of(frame: FrameType) -> str:
    """The top-level package whose code a frame runs."""
    name: str = frame.f_globals.get("__name__", "")
    return name.partition(".")[0]


def called_name(code: CodeType, position: int) -> str | None:
    """The name of the function that the instruction at `position` calls; None where it is not a simple call."""
    instructions = [i for i in dis.get_instructions(code) if i.offset <= position and i.opname not in _UNCOUNTED]
    call = instructions.pop()
    if call.opname not in ("CALL", "CALL_KW", "CALL_FUNCTION_EX") or call.arg is None:
        return None
    while instructions and instructions[-1].opname in ("PRECALL", "KW_NAMES"):
        instructions.pop()
    # Walk back over what has pushed the arguments (and the tuple of their names).
    wanted = 1 + (call.arg & 1) if call.opname == "CALL_FUNCTION_EX" else call.arg + (call.opname == "CALL_KW")
    while instructions and wanted > 0:
        instruction = instructions.pop()
        try:
            wanted -= dis.stack_effect(instruction.opcode, instruction.arg)
        except ValueError:
            return None
    while instructions and instructions[-1].opname == "PUSH_NULL":
        instructions.pop()
    if wanted != 0 or not instructions or "LOAD_" not in instructions[-1].opname:
        return None
    # 3.12 and later say `name + NULL|self`; 3.13 loads two names, or stores one and loads another, in one instruction.
    pushed = instructions[-1].argval
    return str(pushed[-1] if isinstance(pushed, tuple) else pushed).partition(" ")[0]


_UNCOUNTED = ("CACHE", "EXTENDED_ARG")
