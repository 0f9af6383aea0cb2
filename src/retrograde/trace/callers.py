"""Who calls a function that was taken over: Python code, or compiled code that must be given a real array.

Compiled modules look NumPy's functions up as attributes too (`numpy.random` fills what `np.empty` returns) and use the
memory of the result without a look at its type. They have no frame; what is seen is the Python frame that called them.
So a frame counts as the caller only if the instruction that it is executing is a call of that very function.
"""

from __future__ import annotations

import dis
import enum
import sys
from types import CodeType, FrameType

_PACKAGE = __name__.partition(".")[0]

# The modules through which a call comes here.
_ON_THE_WAY = frozenset(
    f"{_PACKAGE}.trace.{name}"
    for name in (
        "attributes",
        "call",
        "callers",
        "constant",
        "conversions",
        "interception",
        "mapped",
        "protocols",
        "stand_ins",
        "stand_ins_for_math",
        "write_functions",
    )
)

_verified: dict[tuple[int, int], tuple[CodeType, str | None]] = {}


def calling_frame(*names: str) -> FrameType | None:
    """The frame of Python code that is calling a function of one of these names, or None if compiled code does."""
    frame = frame_of_user()
    return frame if frame is not None and is_calling(frame, names) else None


def is_calling(frame: FrameType, names: tuple[str, ...]) -> bool:
    """Whether the instruction that a frame is executing is a call of a function of one of these names."""
    code, position = frame.f_code, frame.f_lasti
    found = _verified.get((id(code), position))
    if found is None:
        # The code is kept, so that its id stays its own.
        found = _verified[id(code), position] = (code, called_name(code, position))
    called = found[1]
    if called is None or called == ANY or called in names or called in _ITERATORS:
        return called is not None
    # Under another name: `from numpy import zeros as z`.
    value = frame.f_globals.get(called) or frame.f_locals.get(called)
    return getattr(value, "__name__", None) in names


def frame_of_user(start: FrameType | None = None) -> FrameType | None:
    """The frame of Python code from which a call has come to this package, above that of `start`."""
    frame: FrameType | None = start or sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__") in _ON_THE_WAY:
        frame = frame.f_back
    return frame


def frame_of_operator(start: FrameType) -> FrameType | None:
    """The frame of the code in which an operator stands, above `start`."""
    frame = frame_of_user(start)
    # Two, where an operator is used for the first time.
    while frame is not None and frame.f_globals.get("__name__") == f"{_PACKAGE}.trace.operators":
        frame = frame_of_user(frame.f_back)
    return frame


class Statement(enum.Enum):
    """What a frame is executing, as far as it matters here."""

    ASSIGNMENT = enum.auto()  # x[i] = y
    IN_PLACE = enum.auto()  # x += y
    OPERATOR = enum.auto()  # x + y
    OTHER = enum.auto()


def statement_of(frame: FrameType) -> Statement:
    """The kind of statement that a frame is executing."""
    code, position = frame.f_code, frame.f_lasti
    found = _statements.get((id(code), position))
    if found is None:
        # The code is kept, so that its id stays its own.
        found = _statements[id(code), position] = (code, _statement(code, position))
    return found[1]


def _statement(code: CodeType, position: int) -> Statement:
    for instruction in dis.get_instructions(code):
        if instruction.offset == position:
            if instruction.opname in ("STORE_SUBSCR", "STORE_SLICE"):
                return Statement.ASSIGNMENT
            if instruction.opname == "BINARY_OP":
                return Statement.IN_PLACE if instruction.argrepr.endswith("=") else Statement.OPERATOR
            if instruction.opname.startswith("UNARY_"):
                return Statement.OPERATOR
    return Statement.OTHER


_statements: dict[tuple[int, int], tuple[CodeType, Statement]] = {}


def package_of(frame: FrameType) -> str:
    """The top-level package whose code a frame runs."""
    name: str = frame.f_globals.get("__name__", "")
    return name.partition(".")[0]


def called_name(code: CodeType, position: int) -> str | None:
    """The name of the function that the instruction at `position` calls; None where it is not a simple call."""
    instructions = [i for i in dis.get_instructions(code) if i.offset <= position and i.opname not in _UNCOUNTED]
    call = instructions.pop()
    if call.opname in _ITERATING:
        return ANY
    # 3.11 runs a call of a class of C's, once it is specialised, in the instruction before it.
    if call.opname not in ("CALL", "CALL_KW", "CALL_FUNCTION_EX", "PRECALL") or call.arg is None:
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


def matched_length(frame: FrameType) -> int | None:
    """The length that a pattern asks for (`case [a, b]`), where that is what a frame is executing."""
    after = [i for i in dis.get_instructions(frame.f_code) if i.offset >= frame.f_lasti and i.opname not in _UNCOUNTED]
    if len(after) < 2 or after[0].opname != "GET_LEN" or not isinstance(after[1].argval, int):
        return None
    return after[1].argval


# `a, b = map(asarray, (x, y))`: what takes the elements of an iterator calls whatever makes them, in C.
ANY = "*"
_ITERATING = ("FOR_ITER", "UNPACK_SEQUENCE", "UNPACK_EX", "LIST_EXTEND", "SET_UPDATE", "YIELD_FROM", "SEND")
_ITERATORS = frozenset(
    {"all", "any", "dict", "enumerate", "list", "max", "min", "next", "sorted", "sum", "tuple", "zip"}
)

_UNCOUNTED = ("CACHE", "EXTENDED_ARG")
