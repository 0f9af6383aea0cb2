"""From the form to the text of LLVM: statements, loops and branches.

The same program as in emit.py's Python text, for the same results to the last bit where that is compiled without
fastmath. It is an eighth of the work for numba, and half of it for LLVM: names have types already, arrays are no
structures with counted references, and that arrays of a program do not overlap is said.

Raises `Unwritable` for what has no text here.
"""

from __future__ import annotations

from retrograde.compiler import ops
from retrograde.compiler.form import (
    Add,
    Alloc,
    Block,
    Copy,
    Fill,
    For,
    Get,
    If,
    Increase,
    Load,
    Op,
    Raise,
    Return,
    Set,
    Statement,
    Store,
    Swap,
    View,
    While,
)
from retrograde.compiler.machine.memory import Array
from retrograde.compiler.machine.scalars import Unwritable, in_memory, kind
from retrograde.compiler.machine.threads import Threads
from retrograde.compiler.types import INT, Operand, Type


class Function(Threads):
    """Writes a function."""

    def block(self, block: Block) -> None:
        mark = len(self.undo)
        for s in block:
            self.statement(s)
        self.forget(mark)

    def statement(self, s: Statement) -> None:
        method = getattr(self, f"on_{type(s).__name__}", None)
        if method is None:
            raise Unwritable(type(s).__name__)
        method(s)

    def on_Op(self, s: Op) -> None:
        if s.fn == "shape":
            self.define(s.dst, self.array(s.args[0]).dims[s.args[1]])
        elif s.fn == "threads":
            self.count_threads(s)
        else:
            self.define(s.dst, self.operation(s.fn, s.args, self.type_of(s.dst)))

    def on_Load(self, s: Load) -> None:
        type = self.type_of(s.array).element
        text = self.read(self.element(s.array, s.index), type)
        self.define(s.dst, self.converted(text, type, self.type_of(s.dst)))

    def on_Store(self, s: Store) -> None:
        type = self.type_of(s.array).element
        text = self.operand(s.value, type)
        self.put(self.element(s.array, s.index), text, type)

    def on_Increase(self, s: Increase) -> None:
        type = self.type_of(s.array).element
        where = self.element(s.array, s.index)
        self.put(where, self.increased(self.read(where, type), type, s.value), type)

    def increased(self, old: str, type: Type, by: Operand) -> str:
        """The sum of a text and an operand, of the text's type."""
        return self.increased_by(old, type, self.operand(by), self.type_of(by))

    def increased_by(self, old: str, type: Type, by: str, given: Type) -> str:
        wide = ops.result_type("+", (type, given))
        a = self.converted(old, type, wide)
        if wide.kind in "fiu":
            b = self.converted(by, given, wide)
            made = self.new(f"{f'fadd{self.fast}' if wide.kind == 'f' else 'add'} {self.kind(wide)} {a}, {b}")
        else:
            made = self.call("+", (type, given), (old, by), wide)
        return self.converted(made, wide, type)

    def on_View(self, s: View) -> None:
        array = self.array(s.array)
        made = self.transposed(array) if s.transposed else self.part(array, s.index, self.type_of(s.array))
        if len(made.dims) != self.type_of(s.dst).ndim:
            raise Unwritable("a part of another number of axes")
        self.define_array(s.dst, made)

    def on_Alloc(self, s: Alloc) -> None:
        self.define_array(s.dst, self.allocated(s.dst, s.shape, s.zero))

    def on_Copy(self, s: Copy) -> None:
        source = self.array(s.array)
        type = self.type_of(s.dst)
        pointer = (
            self.to_return(s.dst, source.dims, type) if s.dst in self.returned else self.own(s.dst, source.dims, type)
        )
        made = Array(pointer, source.dims, self.strides(source.dims, type), True)
        self.copy(made, source, type)
        self.define_array(s.dst, made)

    def on_Fill(self, s: Fill) -> None:
        self.fill(self.array(s.array), self.type_of(s.array))

    def on_Get(self, s: Get) -> None:
        type = self.type_of(s.cell)
        text = self.new(f"load {kind(type)}, ptr {self.cell(s.cell)}")
        self.define(s.dst, self.converted(text, type, self.type_of(s.dst)))

    def on_Set(self, s: Set) -> None:
        type = self.type_of(s.cell)
        text = self.operand(s.value, type)
        self.write(f"store {kind(type)} {text}, ptr {self.cell(s.cell)}")

    def on_Add(self, s: Add) -> None:
        type = self.type_of(s.cell)
        cell = self.cell(s.cell)
        text = self.increased(self.new(f"load {kind(type)}, ptr {cell}"), type, s.value)
        self.write(f"store {kind(type)} {text}, ptr {cell}")

    def on_If(self, s: If) -> None:
        test = self.truth(s.cond)
        then, orelse, end = self.label("then"), self.label("else"), self.label("end")
        self.write(f"br i1 {test}, label %{then}, label %{orelse if s.orelse else end}")
        self.begin(then)
        self.block(s.then)
        self.jump(end)
        if s.orelse:
            self.begin(orelse)
            self.block(s.orelse)
            self.jump(end)
        self.begin(end)

    def on_For(self, s: For) -> None:
        if s.parallel:
            self.on_threads(s)
            return
        low, high = self.operand(s.low, INT), self.operand(s.high, INT)
        loop = self.label("loop")
        some = self.new(f"icmp slt i64 {low}, {high}")
        self.write(f"br i1 {some}, label %{loop}.begin, label %{loop}.end")
        self.begin(f"{loop}.begin")
        first = self.add(high, "-1") if s.down else low
        self.jump(loop)
        self.begin(loop)
        self.write(f"%{loop}.i = phi i64 [{first}, %{loop}.begin], [%{loop}.next, %{loop}.latch]")
        mark = len(self.undo)
        self.loops += 1
        self.define(s.var, f"%{loop}.i")
        self.block(s.body)
        self.loops -= 1
        self.forget(mark)
        self.jump(f"{loop}.latch")
        self.begin(f"{loop}.latch")
        self.write(f"%{loop}.next = add nsw i64 %{loop}.i, {-1 if s.down else 1}")
        more = self.new(f"icmp {'sge' if s.down else 'slt'} i64 %{loop}.next, {low if s.down else high}")
        self.write(f"br i1 {more}, label %{loop}, label %{loop}.end")
        self.begin(f"{loop}.end")

    def on_While(self, s: While) -> None:
        loop = self.label("while")
        self.jump(loop)
        self.begin(loop)
        mark = len(self.undo)
        self.loops += 1
        for x in s.test:
            self.statement(x)
        self.write(f"br i1 {self.truth(s.cond)}, label %{loop}.body, label %{loop}.end")
        self.begin(f"{loop}.body")
        self.block(s.body)
        self.loops -= 1
        self.forget(mark)
        self.jump(loop)
        self.begin(f"{loop}.end")

    def on_Swap(self, s: Swap) -> None:
        if set(s.targets) != set(s.sources):
            raise Unwritable("a buffer that loses its name")
        if any(n not in self.slots or n not in self.owned for n in s.sources):
            raise Unwritable("a buffer that changes its name before it is made")
        for places in (self.owned, {n: self.slots[n][0] for n in s.sources}):
            found = [self.new(f"load ptr, ptr {places[n]}") for n in s.sources]
            for target, text in zip(s.targets, found, strict=True):
                self.write(f"store ptr {text}, ptr {places[target]}")

    def on_Raise(self, s: Raise) -> None:
        self.write(f"store i32 {self.shared.number(s.error, s.message)}, ptr %status")
        self.jump("exit")
        self.begin(self.label("never"))

    def on_Return(self, s: Return) -> None:
        if len(s.values) != len(self.results):
            raise Unwritable("other results than before")
        for j, (x, type) in enumerate(zip(s.values, self.results, strict=True)):
            if not type.is_array:
                self.write(f"store {in_memory(type)} {self._stored(self.operand(x, type), type)}, ptr %r{j}")
                continue
            array = self.array(x)
            info = self.new(f"load ptr, ptr {self.owned[x]}")
            for place, text in enumerate((f"ptr {info}", f"ptr {array.pointer}", *(f"i64 {d}" for d in array.dims))):
                self.write(f"store {text}, ptr {self.new(f'getelementptr i64, ptr %r{j}, i64 {place}')}")
            self.write(f"store ptr null, ptr {self.owned[x]}")
        self.jump("exit")
        self.begin(self.label("never"))

    def _stored(self, text: str, type: Type) -> str:
        return self.new(f"zext i1 {text} to i8") if type.dtype == "bool" else text


__all__ = ["Function"]
