"""From the form to Python text that a person can read: the user's names, and his lines as comments.

A temp that is used once is written where it is used, if nothing it reads changes in between.
"""

from __future__ import annotations

import math
import os
from typing import Any

from retrograde.compiler import ops
from retrograde.compiler.alias import Memory
from retrograde.compiler.form import (
    Add,
    Alloc,
    Block,
    Call,
    Copy,
    Fill,
    For,
    Get,
    If,
    Increase,
    Load,
    Op,
    Pop,
    PopArray,
    Push,
    Raise,
    Reshaped,
    Return,
    Set,
    Slice,
    Stack,
    Statement,
    Store,
    Swap,
    Text,
    View,
    While,
    Whole,
)
from retrograde.compiler.program import Program
from retrograde.compiler.source import At
from retrograde.compiler.types import Operand
from retrograde.compiler.walks import uses, walk

LONGEST = 100
"""Expressions longer than this get a line of their own."""


def emit(program: Program, comments: bool = True) -> str:
    """The text of a program, and of the procedures that it calls, as Python functions."""
    return "\n\n".join(_Emitter(p, comments).text() for p in program.with_called())


class _Emitter:
    def __init__(self, program: Program, comments: bool) -> None:
        self.program = program
        self.comments = comments
        self.memory = Memory(program)
        self.lines: list[str] = []
        self.depth = 1
        self.at: tuple[str, int] | None = None
        self.counts: dict[str, int] = {}
        # What a `while` tests is written after its statements; it cannot wait.
        self.tested = {s.cond for s in walk(program.body) if isinstance(s, While) and isinstance(s.cond, str)}
        for s in walk(program.body):
            for name in uses(s):
                self.counts[name] = self.counts.get(name, 0) + 1
        # Temps that wait for their one use: their text, and what memory it reads.
        self.waiting: dict[str, tuple[str, frozenset[str]]] = {}

    def text(self) -> str:
        self.block(self.program.body)
        if not self.lines:
            self.line("pass")
        head = f"def {self.program.name}({', '.join(self.program.params)}):"
        return "\n".join([head, *self.lines]) + "\n"

    # --- lines ---------------------------------------------------------------------------------------------------

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def place(self, at: At | None) -> None:
        """A comment with the user's line, where a new one begins."""
        if not self.comments or at is None or not at.text.strip() or self.at == (at.file, at.line):
            return
        self.at = (at.file, at.line)
        self.line(f"# {os.path.basename(at.file)}:{at.line}  {at.text.strip()}")

    def block(self, block: Block) -> None:
        for s in block:
            self.statement(s)
        self.flush()

    def nested(self, block: Block) -> None:
        self.depth += 1
        start = len(self.lines)
        self.block(block)
        if all(line.lstrip().startswith("#") for line in self.lines[start:]):
            self.line("pass")
        self.depth -= 1

    def flush(self, memory: str | None = None) -> None:
        """Write out the temps that wait: all, or those that read some memory that is about to change."""
        for name in [n for n, (_, reads) in self.waiting.items() if memory is None or memory in reads]:
            if name in self.waiting:
                text, _ = self.waiting.pop(name)
                self.line(f"{name} = {_bare(text)}")

    # --- operands ------------------------------------------------------------------------------------------------

    def operand(self, x: Operand) -> str:
        if isinstance(x, str):
            return self.waiting.pop(x)[0] if x in self.waiting else x
        if isinstance(x, float):
            if math.isnan(x):
                return "np.nan"
            if math.isinf(x):
                return "np.inf" if x > 0 else "(-np.inf)"
        if isinstance(x, complex):
            is_plain = str(x.real) == "0.0" and math.isfinite(x.imag) and not str(x.imag).startswith("-")
            return f"({x.imag!r}j)" if is_plain else f"complex({self.bare(x.real)}, {self.bare(x.imag)})"
        if isinstance(x, Text):
            return repr(x.value)
        return f"({x!r})" if not isinstance(x, bool) and (x < 0 or str(x) == "-0.0") else repr(x)

    def bare(self, x: Operand) -> str:
        return _bare(self.operand(x))

    def index(self, index: Any) -> str:
        return ", ".join(self.item(i) for i in index)

    def item(self, i: Any) -> str:
        if isinstance(i, Slice):
            parts = ["" if b is None else self.bare(b) for b in i]
            return ":".join(parts[:2] if i.step is None else parts)
        return "None" if i is None else self.bare(i)

    def reads_of(self, s: Statement) -> frozenset[str]:
        """The memory that the text of a temp will read (see alias.py): by the array, not the element."""
        reads: set[str] = set()
        for name in uses(s):
            if name in self.waiting:
                reads |= self.waiting[name][1]
        if isinstance(s, Load):
            reads.add(self.memory.root(s.array))
        elif isinstance(s, Get):
            reads.add(f"${s.cell}")
        return frozenset(reads)

    def expression(self, s: Op | Load | Get) -> str:
        if isinstance(s, Get):
            return s.cell
        if isinstance(s, Load):
            return f"{s.array}[{self.index(s.index)}]"
        args = [self.operand(a) for a in s.args]
        fn = s.fn
        if fn == "/" and self.program.types[s.dst].is_complex:
            return f"np.divide({', '.join(map(_bare, args))})"  # which raises nothing
        if fn in ("real", "imag"):
            return f"{args[0]}.{fn}"
        if fn == "conj":
            return f"{args[0]}.conjugate()"
        if fn in ops.ARITHMETIC or fn in ops.COMPARISONS or (fn in ops.BITS and fn != "~") or fn in ("and", "or"):
            return f"({args[0]} {fn} {args[1]})"
        if fn in ("neg", "not", "~"):
            return f"({'-' if fn == 'neg' else 'not ' if fn == 'not' else '~'}{args[0]})"
        if fn in ("id", "value"):
            return args[0]
        if fn == "keep":
            return args[0]
        if fn == "squared":
            return f"({args[0]} * {args[0]})"
        if fn == "root":
            return f"np.sqrt({_bare(args[0])})"
        if fn == "where":
            return f"({args[1]} if {args[0]} else {args[2]})"
        if fn == "shape":
            return f"{args[0]}.shape[{args[1]}]"
        if fn == "size":
            return f"max({_bare(args[1])}{'' if args[0] == '0' else f' - {args[0]}'}, 0)"
        if fn == "threads":
            return "threads()"
        if fn.startswith("cast:"):
            return f"{_CASTS.get(fn[5:], 'np.' + fn[5:])}({_bare(args[0])})"
        return f"{fn}({', '.join(map(_bare, args))})"

    # --- statements ----------------------------------------------------------------------------------------------

    def statement(self, s: Statement) -> None:
        if isinstance(s, Op | Load | Get):
            self.temp(s)
            return
        if not isinstance(s, If | For | While):
            self.place(s.at)
        method = getattr(self, f"on_{type(s).__name__}")
        method(s)

    def temp(self, s: Op | Load | Get) -> None:
        reads = self.reads_of(s)
        text = self.expression(s)
        if self.counts.get(s.dst, 0) == 1 and len(text) < LONGEST and s.dst not in self.tested:
            self.waiting[s.dst] = (text, reads)
        else:
            self.place(s.at)
            self.line(f"{s.dst} = {_bare(text)}")

    def on_Store(self, s: Store) -> None:
        index, value = self.index(s.index), self.bare(s.value)
        self.flush(self.memory.root(s.array))
        self.line(f"{s.array}[{index}] = {value}")

    def on_Increase(self, s: Increase) -> None:
        index, value = self.index(s.index), self.bare(s.value)
        self.flush(self.memory.root(s.array))
        self.line(f"{s.array}[{index}] += {value}")

    def on_Set(self, s: Set) -> None:
        value = self.bare(s.value)
        self.flush(f"${s.cell}")
        self.line(f"{s.cell} = {value}")

    def on_Add(self, s: Add) -> None:
        value = self.bare(s.value)
        self.flush(f"${s.cell}")
        self.line(f"{s.cell} += {value}")

    def on_View(self, s: View) -> None:
        if s.index and isinstance(s.index[0], Reshaped):
            shape = ", ".join(map(self.bare, s.index[0].shape))
            text = f"{s.array}.reshape(({shape}{',' * (len(s.index[0].shape) == 1)}))"
        else:
            text = f"{s.array}.T" if s.transposed else f"{s.array}[{self.index(s.index)}]"
        self.line(f"{s.dst} = {text}")

    def on_Alloc(self, s: Alloc) -> None:
        shape = ", ".join(map(self.bare, s.shape))
        dtype = self.program.types[s.dst].dtype
        kind = "" if dtype == "float64" else f", {_dtype(dtype)}"
        self.line(f"{s.dst} = np.{'zeros' if s.zero else 'empty'}(({shape}{',' if len(s.shape) == 1 else ''}){kind})")

    def on_Copy(self, s: Copy) -> None:
        self.line(f"{s.dst} = {s.array}.copy()")

    def on_Fill(self, s: Fill) -> None:
        self.flush(self.memory.root(s.array))
        self.fill(s.array)

    def fill(self, array: str) -> None:
        """Zeros by loops: numba's assignment to a slice takes longer than most loops."""
        ndim = self.program.types[array].ndim
        index = [f"e{k}" for k in range(ndim)]
        while self.program.taken.intersection(index):
            index = [f"{e}_" for e in index]
        for k, e in enumerate(index):
            self.line(f"for {e} in range({array}.shape[{k}]):")
            self.depth += 1
        self.line(f"{array}[{', '.join(index) or '()'}] = 0")
        self.depth -= ndim

    def on_Swap(self, s: Swap) -> None:
        self.flush()
        self.line(f"{', '.join(s.targets)} = {', '.join(s.sources)}")

    def on_Stack(self, s: Stack) -> None:
        dtype = self.program.types[s.stack].dtype
        kind = "" if dtype == "float64" else f", {_dtype(dtype)}"
        self.line(f"{s.stack} = np.empty(64{kind})")
        self.line(f"{s.stack}_top = 0")

    def on_Push(self, s: Push) -> None:
        value = self.bare(s.value)
        if self.program.is_array(s.value):
            self.line(f"{s.stack} = with_elements({s.stack}, {s.stack}_top, {value})")
            self.line(f"{s.stack}_top += {value}.size")
            return
        self.line(f"if {s.stack}_top == {s.stack}.shape[0]:")
        self.line(f"    {s.stack} = grown({s.stack})")
        self.line(f"{s.stack}[{s.stack}_top] = {value}")
        self.line(f"{s.stack}_top += 1")

    def on_Pop(self, s: Pop) -> None:
        self.line(f"{s.stack}_top -= 1")
        self.line(f"{s.dst} = {s.stack}[{s.stack}_top]")

    def on_PopArray(self, s: PopArray) -> None:
        shape = [self.operand(n) for n in s.shape]
        top = f"{s.stack}_top"
        self.line(f"{top} -= {' * '.join(shape)}")
        part = f"{s.stack}[{top}:{top} + {' * '.join(shape)}].copy()"
        self.line(f"{s.dst} = {part}" + (f".reshape(({', '.join(map(_bare, shape))}))" if len(shape) > 1 else ""))

    def on_Call(self, s: Call) -> None:
        args = ", ".join(map(self.bare, s.args))
        self.flush()
        dsts = f"{', '.join(s.dsts)}{',' * (len(s.dsts) == 1)} = " if s.dsts else ""
        self.line(f"{dsts}{s.fn}({args})")

    def on_Whole(self, s: Whole) -> None:
        args = ", ".join(map(self.bare, s.args))
        self.line(f"{', '.join(s.outs)} = {s.fn}({args})")

    def on_Raise(self, s: Raise) -> None:
        self.line(f"raise {s.error}({s.message!r})")

    def on_Return(self, s: Return) -> None:
        values = ", ".join(map(self.bare, s.values))
        self.flush()
        self.line(f"return {values}{',' if len(s.values) == 1 else ''}" if values else "return ()")

    def on_If(self, s: If) -> None:
        cond = self.operand(s.cond)
        self.flush()
        self.place(s.at)
        if s.then:
            self.line(f"if {_bare(cond)}:")
            self.nested(s.then)
            if s.orelse:
                self.line("else:")
                self.nested(s.orelse)
        elif s.orelse:
            self.line(f"if not {cond}:")
            self.nested(s.orelse)

    def on_For(self, s: For) -> None:
        low, high = self.bare(s.low), self.bare(s.high)
        self.flush()
        self.place(s.at)
        if s.down:
            last = str(int(high) - 1) if high.isdigit() else f"{self._wrapped(high)} - 1"
            stop = str(int(low) - 1) if low.isdigit() else f"{self._wrapped(low)} - 1"
            bounds = f"{last}, {stop}, -1"
        else:
            bounds = high if low == "0" else f"{low}, {high}"
        self.line(f"for {s.var} in {'prange' if s.parallel else 'range'}({bounds}):")
        self.nested(s.body)

    def _wrapped(self, text: str) -> str:
        return text if text.isidentifier() else f"({text})"

    def on_While(self, s: While) -> None:
        self.flush()
        self.place(s.at)
        self.line("while True:")
        self.depth += 1
        self.block(s.test)
        self.line(f"if not {self.operand(s.cond)}:")
        self.line("    break")
        self.block(s.body)
        self.depth -= 1


_CASTS = {"float64": "float", "int64": "int", "bool": "bool", "complex128": "complex"}


def _dtype(dtype: str) -> str:
    return "np.bool_" if dtype == "bool" else f"np.{dtype}"


def _bare(text: str) -> str:
    """Without the parentheses around the whole."""
    if not (text.startswith("(") and text.endswith(")")):
        return text
    depth = 0
    for i, c in enumerate(text):
        depth += (c == "(") - (c == ")")
        if depth == 0 and i < len(text) - 1:
            return text
    return text[1:-1]


__all__ = ["emit"]
