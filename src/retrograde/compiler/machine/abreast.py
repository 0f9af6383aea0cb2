"""Loops of which several iterations run side by side, in LLVM's text (see optimise/abreast.py).

What differs among the iterations is a vector, one lane for each. An array of which each iteration has its own has all
lanes of an element next to each other, so that an element is one vector. An element of another array whose place
differs is read and written lane by lane. Where only some iterations take a branch, it runs if any does, and what it
changes stays as it was in the lanes of the others. The last iteration is repeated in the lanes that are left over at
the end of the loop: they read and write what it does, and are left out of sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograde.compiler.form import (
    Abreast,
    Add,
    Block,
    Fill,
    For,
    Get,
    If,
    Increase,
    Index,
    Load,
    Op,
    Set,
    Statement,
    Store,
    View,
)
from retrograde.compiler.machine.frame import Shared
from retrograde.compiler.machine.memory import ON_STACK, Array
from retrograde.compiler.machine.scalars import Unwritable, in_memory, kind, literal
from retrograde.compiler.machine.vectors import BYTE, INSTRUCTIONS, Call, Vectors, vector, vector_of
from retrograde.compiler.optimise.abreast import WIDTH, Differing
from retrograde.compiler.program import Program
from retrograde.compiler.types import BOOL, INT, Type
from retrograde.compiler.walks import defs, uses


class Function(Vectors):
    """Writes a function.

    Attributes:
        alive: the lanes that are no repetition.
        counting: the number of the iteration in each lane, and
        at_top: the bytes that this makes with a stride, computed where the loop's body begins, in line `top`.
        vectors: where the cells are that each iteration has for its own, or a part of.
        done: statements (their ids) that were written together with another one.
        nowhere: a place for what lanes read and write that do not run.
        seen: for each type a sum in each lane of what is stored where a NaN is looked for: it is NaN if one was.
    """

    def __init__(self, program: Program, shared: Shared, is_main: bool) -> None:
        super().__init__(program, shared, is_main)
        self.alive = ""
        self.counting: tuple[str, ...] = ()
        self.top = 0
        self.at_top: dict[str, tuple[str, ...]] = {}
        self.vectors: dict[str, str] = {}
        self.done: set[int] = set()
        self.nowhere = ""
        self.seen: dict[Type, str] = {}

    # --- statements ----------------------------------------------------------------------------------------------

    def on_For(self, s: For) -> None:
        if s.abreast is None or not self.shared.abreast:
            super().on_For(s)
            return
        side = Differing(self.program, s, self.known.memory, s.abreast)
        if not side.are_possible:
            raise Unwritable("iterations that do not run side by side")
        low, high = self.operand(s.low, INT), self.operand(s.high, INT)
        loop = self.label("abreast")
        some = self.new(f"icmp slt i64 {low}, {high}")
        self.write(f"br i1 {some}, label %{loop}.some, label %{loop}.end")
        self.begin(f"{loop}.some")
        mark = len(self.undo)
        self.make_room(side, s.abreast)
        last = self.add(high, "-1")
        self.jump(f"{loop}.begin")
        self.begin(f"{loop}.begin")
        self.jump(loop)
        self.begin(loop)
        self.write(f"%{loop}.i = phi i64 [{low}, %{loop}.begin], [%{loop}.next, %{loop}.latch]")
        self.side = side
        self.loops += 1
        self.count_lanes(f"%{loop}.i", high, last)
        self.define(s.var, self.put_together(self.counting, INT))
        self.block(s.body)
        self.loops -= 1
        self.side = None
        self.forget(mark)
        self.jump(f"{loop}.latch")
        self.begin(f"{loop}.latch")
        self.write(f"%{loop}.next = add nsw i64 %{loop}.i, {WIDTH}")
        more = self.new(f"icmp slt i64 %{loop}.next, {high}")
        self.write(f"br i1 {more}, label %{loop}, label %{loop}.done")
        self.begin(f"{loop}.done")
        self.add_sums(s.abreast)
        self.tell_of_nan()
        self.jump(f"{loop}.end")
        self.begin(f"{loop}.end")

    def make_room(self, side: Differing, abreast: Abreast) -> None:
        """What each iteration has for its own: arrays, and vectors for cells."""
        for root in sorted(side.names & abreast.own):
            self.bind(self.arrays, root, self.own_lanes(root, root in abreast.zero))
        for cell in sorted({n[1:] for n in side.names if n.startswith("$")} | abreast.sums):
            type = self.type_of(cell)
            self.vectors[cell] = self.slot(vector(type), "zeroinitializer")
            self.write(f"store {vector(type)} zeroinitializer, ptr {self.vectors[cell]}")

    def count_lanes(self, first: str, high: str, last: str) -> None:
        """The number of the iteration in each lane."""
        numbers = [self.add(first, str(k)) for k in range(WIDTH)]
        self.counting = tuple(self.smaller(n, last) for n in numbers)
        ends = self.repeated(high, INT)
        self.alive = self.new(f"icmp slt {vector(INT)} {self.put_together(numbers, INT)}, {ends}")
        self.top, self.at_top = len(self.lines), {}

    def add_sums(self, abreast: Abreast) -> None:
        for cell in sorted(abreast.sums):
            type = self.type_of(cell)
            total = self.summed(self.new(f"load {vector(type)}, ptr {self.vectors[cell]}"), type)
            old = self.new(f"load {kind(type)}, ptr {self.cell(cell)}")
            self.write(f"store {kind(type)} {self.increased_by(old, type, total, type)}, ptr {self.cell(cell)}")
        self.vectors = {}

    def own_lanes(self, root: str, zero: bool) -> Array:
        """An array for each iteration: the lanes of an element lie next to each other."""
        type, dims = self.type_of(root), self.array(root).dims
        name = f"{root} of each"
        size = self.bytes((*dims, str(WIDTH)), type)
        if size.isdigit() and int(size) <= ON_STACK and self.on_stack + int(size) <= self.room_on_stack:
            self.on_stack += int(size)
            self.count += 1
            pointer = f"%s{self.count}"
            self.entry.append(f"  {pointer} = alloca [{size} x i8], align 64")
        else:
            pointer = self.own(name, (*dims, str(WIDTH)), type)
        if zero:
            self.write(f"call void @llvm.memset.p0.i64(ptr {pointer}, i8 0, i64 {size}, i1 false)")
        return Array(pointer, dims, self.strides((*dims, str(WIDTH)), type)[:-1], False)

    def block(self, block: Block) -> None:
        if self.side is None:
            super().block(block)
            return
        mark = len(self.undo)
        for k, s in enumerate(block):
            if id(s) in self.done:
                continue
            if isinstance(s, Op) and self.is_function(s):
                self.functions(s, block[k + 1 :])
            else:
                self.statement(s)
        self.forget(mark)

    def statement(self, s: Statement) -> None:
        method = getattr(self, f"in_lanes_{type(s).__name__}", None)
        if self.side is not None and method is not None and self.is_for_lanes(s):
            method(s)
        else:
            super().statement(s)

    def is_for_lanes(self, s: Statement) -> bool:
        """Whether what a statement makes or changes differs among the iterations."""
        side = self.side
        assert side is not None
        if isinstance(s, Op | Load | Get):
            return side.has(s.dst)
        if isinstance(s, View):
            return s.dst in side.names
        if isinstance(s, Set | Add):
            return s.cell in self.vectors
        if isinstance(s, Store | Increase | Fill):
            is_added = isinstance(s, Increase) and side.memory.root(s.array) in side.abreast.added
            return is_added or side.has(s.array) or any(map(side.has, getattr(s, "index", ())))
        return isinstance(s, If) and side.has(s.cond)

    def is_function(self, s: Op) -> bool:
        """Whether an operation is a function that is computed lane by lane."""
        if not self.differs(s.dst) or s.fn in (*INSTRUCTIONS, "np.square"):
            return False
        return s.fn.startswith(("np.", "math.", "special."))

    def functions(self, s: Op, following: Block) -> None:
        """An elementary function, and those of the same block that can be computed together with it."""
        later = {s.dst, *(name for x in following for name in defs(x))}
        together = [s]
        for x in following:
            if isinstance(x, Op) and self.is_function(x) and not later.intersection(uses(x)):
                together.append(x)
                self.done.add(id(x))
        calls: list[Call] = []
        with self.in_lanes():
            for x in together:
                types = tuple(map(self.type_of, x.args))
                calls.append((x.fn, types, tuple(map(self.operand, x.args)), self.type_of(x.dst)))
            found = self.lane_by_lane(calls)
        for x, text in zip(together, found, strict=True):
            self.define(x.dst, text)

    def in_lanes_Op(self, s: Op) -> None:
        with self.in_lanes():
            text = self.operation(s.fn, s.args, self.type_of(s.dst))
        self.define(s.dst, text)

    def in_lanes_Get(self, s: Get) -> None:
        type = self.type_of(s.cell)
        text = self.new(f"load {vector(type)}, ptr {self.vectors[s.cell]}")
        with self.in_lanes():
            text = self.converted(text, type, self.type_of(s.dst))
        self.define(s.dst, text)

    def in_lanes_Set(self, s: Set) -> None:
        type, place = self.type_of(s.cell), self.vectors[s.cell]
        with self.in_lanes():
            text = self.operand(s.value, type)
        if self.mask is not None:
            text = self.where(self.mask, text, self.new(f"load {vector(type)}, ptr {place}"), type)
        self.write(f"store {vector(type)} {text}, ptr {place}")

    def in_lanes_Add(self, s: Add) -> None:
        assert self.side is not None
        type, place = self.type_of(s.cell), self.vectors[s.cell]
        old = self.new(f"load {vector(type)}, ptr {place}")
        with self.in_lanes():
            text = self.increased(old, type, s.value)
        mask = self.both(self.mask, self.alive) if s.cell in self.side.abreast.sums else self.mask
        self.write(f"store {vector(type)} {self.where(mask, text, old, type)}, ptr {place}")

    def in_lanes_If(self, s: If) -> None:
        with self.in_lanes():
            test = self.truth(s.cond)
        otherwise = self.new(f"xor <{WIDTH} x i1> {test}, {vector_of('true', BOOL)}") if s.orelse else ""
        around = self.mask
        for part, mask in ((s.then, test), (s.orelse, otherwise)):
            if not part:
                continue
            self.mask = self.both(around, mask)
            then, end = self.label("then"), self.label("end")
            self.write(f"br i1 {self.over_lanes('or', self.mask, BOOL)}, label %{then}, label %{end}")
            self.begin(then)
            self.block(part)
            self.jump(end)
            self.begin(end)
        self.mask = around

    # --- arrays --------------------------------------------------------------------------------------------------

    def in_lanes_View(self, s: View) -> None:
        array = self.array(s.array)
        items = tuple(0 if isinstance(i, str) and self.differs(i) else i for i in s.index)
        made = self.transposed(array) if s.transposed else self.part(array, items, self.type_of(s.array))
        places = [i for i in s.index if i is not None]
        self.define_array(s.dst, made._replace(lanes=self.moved_lanes(array, places)))

    def moved_lanes(self, array: Array, places: Sequence[Any]) -> tuple[str, ...] | None:
        """The bytes behind an array's pointer at which each lane is, for places that may differ."""
        found = array.lanes
        for i, n, stride in zip(places, array.dims, array.strides, strict=False):
            if isinstance(i, str) and self.differs(i):
                more = self.offsets(i, n, stride)
                found = more if found is None else tuple(map(self.add, found, more))
        return found

    def offsets(self, index: str, length: str, stride: str) -> tuple[str, ...]:
        assert self.side is not None
        if index != self.side.loop.var:
            return tuple(self.times(self.from_end(t, index, length), stride) for t in self.each(index))
        if not self.is_not_negative(index) or not (stride.isdigit() or stride.startswith("%p")):
            return tuple(self.times(self.from_end(t, index, length), stride) for t in self.counting)
        if stride not in self.at_top:
            rest = self.lines[self.top :]
            del self.lines[self.top :]
            self.at_top[stride] = tuple(self.times(t, stride) for t in self.counting)
            self.lines += rest
        return self.at_top[stride]

    def each(self, index: str) -> list[str]:
        """An index in each lane."""
        with self.in_lanes():
            text = self.operand(index, INT)
        return self.taken_out(text, INT)

    def from_end(self, text: str, index: str, length: str) -> str:
        if self.is_not_negative(index):
            return text
        below = self.new(f"icmp slt i64 {text}, 0")
        return self.new(f"select i1 {below}, i64 {self.add(text, length)}, i64 {text}")

    def places(self, name: str, index: Index) -> str | list[str]:
        """The pointer to an element's lanes, or to each of them where they are not next to each other."""
        assert self.side is not None
        array = self.array(name)
        offsets = self.moved_lanes(array, index)
        pointer = self.element(name, tuple(0 if self.differs(i) else i for i in index))
        if offsets is None:
            return pointer
        if self.side.has_own(name):
            size = np.dtype(self.type_of(name).dtype).itemsize
            offsets = tuple(self.add(o, str(k * size)) for k, o in enumerate(offsets))
        pointers = [self.new(f"getelementptr i8, ptr {pointer}, i64 {o}") for o in offsets]
        if self.mask is None:
            return pointers
        if not self.nowhere:
            self.nowhere = self.slot("i64", "0")
        tests = self.taken_out(self.mask, BOOL)
        return [self.new(f"select i1 {t}, ptr {p}, ptr {self.nowhere}") for t, p in zip(tests, pointers, strict=True)]

    def gathered(self, pointers: Sequence[str], type: Type) -> str:
        texts = [self.new(f"load {in_memory(type)}, ptr {p}") for p in pointers]
        if type.dtype == "bool":
            return self.as_truth(self.put_together(texts, BYTE))
        return self.put_together(texts, type)

    def scattered(self, pointers: Sequence[str], text: str, type: Type) -> None:
        for p, t in zip(pointers, self.taken_out(text, type), strict=True):
            self.put(p, t, type)

    def in_lanes_Load(self, s: Load) -> None:
        type = self.type_of(s.array).element
        where = self.places(s.array, s.index)
        text = self.vector_at(where, type) if isinstance(where, str) else self.gathered(where, type)
        with self.in_lanes():
            text = self.converted(text, type, self.type_of(s.dst))
        self.define(s.dst, text)

    def in_lanes_Store(self, s: Store) -> None:
        type = self.type_of(s.array).element
        with self.in_lanes():
            text = self.operand(s.value, type)
        where = self.places(s.array, s.index)
        self.store(where, text, type)
        self.look_for_nan(s, text, type)

    def look_for_nan(self, s: Store, text: str, type: Type) -> None:
        """Note what is stored in an array of the caller's, who would have to read all of it again for a NaN."""
        assert self.side is not None
        root = self.side.memory.root(s.array)
        if not self.is_of_caller(root) or type.kind != "f" or self.shared.fast:
            return
        if type not in self.seen:
            self.seen[type] = self.slot(vector(type), "zeroinitializer")
        before = self.new(f"load {vector(type)}, ptr {self.seen[type]}")
        after = self.new(f"fadd {vector(type)} {before}, {text}")
        self.write(f"store {vector(type)} {self.where(self.mask, after, before, type)}, ptr {self.seen[type]}")
        self.shared.looked_at.add(id(s))

    def tell_of_nan(self) -> None:
        """Infinities of both signs add up to NaN, too: the caller looks for himself then."""
        for type, place in self.seen.items():
            total = self.new(f"load {vector(type)}, ptr {place}")
            tests = self.new(f"fcmp uno {vector(type)} {total}, {total}")
            note, go_on = self.label("note"), self.label("go")
            self.write(f"br i1 {self.over_lanes('or', tests, BOOL)}, label %{note}, label %{go_on}")
            self.begin(note)
            self.write("store i64 1, ptr %nan")
            self.jump(go_on)
            self.begin(go_on)
        self.seen = {}

    def store(self, where: str | list[str], text: str, type: Type) -> None:
        if not isinstance(where, str):
            self.scattered(where, text, type)
            return
        if self.mask is not None:
            text = self.where(self.mask, text, self.vector_at(where, type), type)
        self.put_vector(where, text, type)

    def in_lanes_Increase(self, s: Increase) -> None:
        assert self.side is not None
        type, given = self.type_of(s.array).element, self.type_of(s.value)
        with self.in_lanes():
            by = self.operand(s.value)
        where = self.places(s.array, s.index)
        if self.side.memory.root(s.array) in self.side.abreast.added:
            self.add_all(where, by, type, given)
            return
        old = self.vector_at(where, type) if isinstance(where, str) else self.gathered(where, type)
        with self.in_lanes():
            text = self.increased_by(old, type, by, given)
        self.store(where, text, type)

    def add_all(self, where: str | list[str], by: str, type: Type, given: Type) -> None:
        """Add what all iterations give to the same place, or to places of which some may be the same."""
        mask = self.both(self.mask, self.alive)
        if given.kind not in "fiu":
            with self.in_lanes():
                by, given = self.converted(by, given, type), type
        none = vector_of(literal(-0.0, given) if given.kind == "f" else "0", given)
        by = self.where(mask, by, none, given)
        if isinstance(where, str):
            self.put(where, self.increased_by(self.read(where, type), type, self.summed(by, given), given), type)
            return
        for p, t in zip(where, self.taken_out(by, given), strict=True):
            self.put(p, self.increased_by(self.read(p, type), type, t, given), type)

    def in_lanes_Fill(self, s: Fill) -> None:
        array, type = self.array(s.array), self.type_of(s.array)
        if array.lanes is not None:
            raise Unwritable("zeros at several places")
        places, loops = self.for_each(array.dims)
        self.store(self.at(array, places, type), "zeroinitializer", type.element)
        self.end_each(loops)


__all__ = ["Function"]
