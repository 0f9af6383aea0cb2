"""How far a function that calls itself may go: RecursionError where the stack ends, and not the end of the process.

The function that is called from outside asks where the stack of its thread ends and tells it to all others; each looks
where it stands. What it asks is the C library's; of a library that is not known to answer, nothing is asked.
"""

from __future__ import annotations

import platform
import sys

from retrograde.compiler.form import Call
from retrograde.compiler.program import Program
from retrograde.compiler.walks import walk

MARGIN = 1 << 18
"""The bytes that are left for what such functions call; of a small stack a quarter."""
TOO_DEEP = ("RecursionError", "maximum recursion depth exceeded: the stack of this thread is full")


def is_recursive(program: Program) -> bool:
    """Whether anything that is called from a program calls itself, directly or not."""
    calls = {p.name: {s.fn for s in walk(p.body) if isinstance(s, Call)} for p in program.procedures.values()}
    leading = dict(calls)
    while True:
        # Functions without calls of functions that are left are no part of a circle.
        left = {name: fns for name, fns in leading.items() if any(fn in leading for fn in fns)}
        if len(left) == len(leading):
            return bool(left)
        leading = left


CHECKED = """\
  %stack.here = alloca i8
  %stack.at = ptrtoint ptr %stack.here to i64
  %stack.over = icmp ult i64 %stack.at, %stack.end
  br i1 %stack.over, label %stack.full, label %stack.fine
stack.full:
  ret i32 {number}
stack.fine:"""
"""The begin of a function that is called from others."""

ASKED = """\
  %stack.here = alloca i8
  %stack.end = call i64 @retrograde.stack(ptr %stack.here)"""
"""The begin of the function that is called from outside."""

# The stack of the first thread is looked for in a file of the system's, which takes longer than a short program: where
# it is, once found, is kept. Of other threads the library knows.
_LINUX = """\
@retrograde.stack.low = internal global i64 0
@retrograde.stack.high = internal global i64 0
declare i64 @pthread_self()
declare i32 @pthread_getattr_np(i64, ptr)
declare i32 @pthread_attr_getstack(ptr, ptr, ptr)
declare i32 @pthread_attr_destroy(ptr)
declare i32 @getpid()
declare i64 @syscall(i64, ...)
define internal i64 @retrograde.stack(ptr %here) noinline {{
  %at = ptrtoint ptr %here to i64
  %low = load i64, ptr @retrograde.stack.low
  %high = load i64, ptr @retrograde.stack.high
  %above = icmp ugt i64 %at, %low
  %below = icmp ult i64 %at, %high
  %known = and i1 %above, %below
  br i1 %known, label %kept, label %ask
kept:
  ret i64 %low
ask:
  %attributes = alloca [16 x i64]
  %start = alloca i64
  %size = alloca i64
  %self = call i64 @pthread_self()
  %failed = call i32 @pthread_getattr_np(i64 %self, ptr %attributes)
  %none = icmp ne i32 %failed, 0
  br i1 %none, label %unknown, label %found
unknown:
  ret i64 0
found:
  %done = call i32 @pthread_attr_getstack(ptr %attributes, ptr %start, ptr %size)
  %gone = call i32 @pthread_attr_destroy(ptr %attributes)
  %from = load i64, ptr %start
  %bytes = load i64, ptr %size
  %quarter = lshr i64 %bytes, 2
  %margin = call i64 @llvm.smin.i64(i64 %quarter, i64 {margin})
  %end = add i64 %from, %margin
  %top = add i64 %from, %bytes
  %process = call i32 @getpid()
  %thread = call i64 (i64, ...) @syscall(i64 {gettid})
  %narrow = trunc i64 %thread to i32
  %first = icmp eq i32 %process, %narrow
  br i1 %first, label %keep, label %give
keep:
  store i64 %end, ptr @retrograde.stack.low
  store i64 %top, ptr @retrograde.stack.high
  br label %give
give:
  ret i64 %end
}}"""

_MAC = f"""\
declare i64 @pthread_self()
declare i64 @pthread_get_stackaddr_np(i64)
declare i64 @pthread_get_stacksize_np(i64)
define internal i64 @retrograde.stack(ptr %here) noinline {{
  %self = call i64 @pthread_self()
  %top = call i64 @pthread_get_stackaddr_np(i64 %self)
  %bytes = call i64 @pthread_get_stacksize_np(i64 %self)
  %quarter = lshr i64 %bytes, 2
  %margin = call i64 @llvm.smin.i64(i64 %quarter, i64 {MARGIN})
  %low = sub i64 %top, %bytes
  %end = add i64 %low, %margin
  ret i64 %end
}}"""

_OTHERS = """\
define internal i64 @retrograde.stack(ptr %here) {
  ret i64 0
}"""


_GETTID = {"x86_64": 186, "aarch64": 178, "riscv64": 178, "ppc64le": 207, "s390x": 236}
"""The number of the system's call that tells a thread its name, which for the first thread is that of the process."""


def asking() -> str:
    """The function that says where the stack of this thread ends, as an address; 0 where that is not known."""
    if sys.platform == "linux":
        return _LINUX.format(gettid=_GETTID.get(platform.machine(), -1), margin=MARGIN)
    return _MAC if sys.platform == "darwin" else _OTHERS
