"""The text of a program and of all that it calls."""

from __future__ import annotations

import hashlib
from typing import Any

from retrograde.compiler.alias import Memory
from retrograde.compiler.form import Call, Statement
from retrograde.compiler.machine.abreast import Function
from retrograde.compiler.machine.frame import Handed
from retrograde.compiler.machine.memory import FREE, allocator_text
from retrograde.compiler.machine.scalars import Unwritable
from retrograde.compiler.machine.stack import asking, is_recursive
from retrograde.compiler.machine.threads import DECLARED
from retrograde.compiler.machine.written import Called, Kernel
from retrograde.compiler.program import Program
from retrograde.compiler.walks import walk

ERRORS = (
    ("ValueError", "negative dimensions not allowed"),
    ("MemoryError", "Allocation failed (probably too large)."),
)
"""The errors number 1 and 2; those of a program follow."""


def kernel_of(program: Program, fastmath: bool = False) -> Kernel | None:
    """The text of a finished program; None if something in it has no text."""
    for abreast in (True, False):
        try:
            return _Text(program, fastmath, abreast).kernel()
        except Unwritable:
            continue
    return None


class _Text:
    """What the functions of a text share."""

    def __init__(self, program: Program, fastmath: bool, abreast: bool) -> None:
        self.program = program
        self.abreast = abreast  # whether iterations run side by side where they are meant to
        self.fast = " fast" if fastmath else ""
        self.called: dict[Any, Called] = {}
        self.allocators: set[tuple[str, int]] = set()
        self.declared: dict[str, None] = {}
        self.functions: dict[str, str] = {}
        self.metadata: list[str] = []
        self.errors = list(ERRORS)
        self.is_recursive = is_recursive(program)
        self.runners: list[str] = []
        self.handed: dict[str, dict[str, Handed]] = {}
        self.looked_at: set[int] = set()

    def number(self, error: str, message: str) -> int:
        if (error, message) not in self.errors:
            self.errors.append((error, message))
        return self.errors.index((error, message)) + 1

    def kernel(self) -> Kernel:
        functions: list[Function] = []
        texts: list[str] = []
        for p in self.program.with_called():
            functions.append(Function(p, self, is_main=p is self.program))
            texts.append(functions[-1].text())
        main = functions[0]
        dense = set[str]().union(*(f.dense for f in functions if f is main or f.program.name in self.handed))
        texts += self.runners
        texts += [allocator_text(*a) for a in sorted(self.allocators)]
        texts += [asking()] if self.is_recursive else []
        declared = (*_DECLARED, *(DECLARED if self.runners else ()), *self.functions.values(), *self.declared)
        texts += [FREE, *main.declarations(), *declared, *self.metadata]
        text = "\n".join(texts)
        symbol = f"retrograde.{self.program.name}.{hashlib.sha256(text.encode()).hexdigest()[:16]}"
        return Kernel(
            symbol,
            text.replace("@retrograde.main", f'@"{symbol}"'),
            main.types,
            main.results,
            tuple(self.errors),
            tuple(self.called.values()),
            frozenset(i for i, p in enumerate(self.program.params) if p in dense),
            bool(self.runners),
            frozenset(i for i, p in enumerate(self.program.params) if self.is_looked_at(p, i)),
        )

    def is_looked_at(self, param: str, number: int) -> bool:
        """Whether a NaN is seen that any statement writes into a parameter of the main function."""
        parts = [(self.program.procedures[fn], how) for fn, how in self.handed.items()]
        names = [(self.program, param)]
        names += [(part, name) for part, how in parts for name, h in how.items() if h.number == number]
        writers = [s for program, name in names for s in self.writers(program, name)]
        return bool(writers) and self.looked_at.issuperset(map(id, writers))

    def writers(self, program: Program, root: str) -> list[Statement]:
        memory = Memory(program)
        on_threads = (s for s in walk(program.body) if not (isinstance(s, Call) and s.fn in self.handed))
        return [s for s in on_threads if root in memory.writes(s)]


_DECLARED = (
    "declare noalias ptr @NRT_Allocate(i64)",
    "declare void @NRT_Free(ptr nocapture)",
    "declare noalias ptr @NRT_MemInfo_alloc_aligned(i64, i32)",
    "declare ptr @NRT_MemInfo_data(ptr)",
    "declare void @NRT_MemInfo_release(ptr)",
    "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)",
    "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
    "declare ptr @llvm.ptrmask.p0.i64(ptr, i64)",
    "declare i64 @llvm.smax.i64(i64, i64)",
    "declare i64 @llvm.smin.i64(i64, i64)",
)

__all__ = ["kernel_of"]
