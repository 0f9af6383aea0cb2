"""Calls of other functions of the text, and stacks, in LLVM's text."""

from __future__ import annotations

import numpy as np

from retrograde.compiler.form import Call, Pop, PopArray, Push, Stack
from retrograde.compiler.machine.frame import Frame
from retrograde.compiler.machine.memory import Array
from retrograde.compiler.machine.scalars import Unwritable, in_memory, kind, nothing
from retrograde.compiler.types import INT, Type


class Calls(Frame):
    def on_Call(self, s: Call) -> None:
        called = self.program.procedures[s.fn]
        args = ["i64 %stack.end"] if self.shared.is_recursive else []
        for x, name in zip(s.args, called.params, strict=True):
            type = called.types[name]
            if not type.is_array:
                args.append(f"{kind(type)} {self.operand(x, type)}")
                continue
            array = self.array(x)
            args += [f"ptr {array.pointer}", *(f"i64 {t}" for t in (*array.dims, *array.strides))]
        types = called.result_types()
        if any(t.is_array for t in types) or len(types) < len(s.dsts):
            raise Unwritable("an array as the result of a call")
        outs = [self.slot(in_memory(t), nothing(t) if t.dtype != "bool" else "0") for t in types]
        args += [f"ptr {out}" for out in outs]
        found = self.new(f"call i32 @{self.symbol(s.fn)}({', '.join(args)})")
        self.write(f"store i32 {found}, ptr %status")
        self.leave_if(self.new(f"icmp ne i32 {found}, 0"))
        for name, out, type in zip(s.dsts, outs, types, strict=False):
            self.define(name, self.converted(self.read(out, type), type, self.type_of(name)))

    # --- stacks ------------------------------------------------------------------------------------------------------

    def stack(self, name: str) -> tuple[str, str]:
        """The slots of how much is on a stack, and of how many bytes there is room for."""
        if name not in self.slots:
            self.owned[name] = self.slot("ptr", "null")
            self.slots[name] = self.slot("i64", "0"), self.slot("i64", "0")
        top, room = self.slots[name]
        return top, room

    def on_Stack(self, s: Stack) -> None:
        top, _ = self.stack(s.stack)
        self.write(f"store i64 0, ptr {top}")

    def on_Push(self, s: Push) -> None:
        type = self.type_of(s.stack).element
        if not self.program.is_array(s.value):
            text = self.operand(s.value, type)
            self.put(self.room_for(s.stack, "1", type), text, type)
            return
        source = self.array(s.value)
        if self.type_of(s.value).element != type:
            raise Unwritable("an array on a stack of another type")
        count = self.counted(source.dims)
        target = self.room_for(s.stack, count, type)
        self.copy(Array(target, source.dims, self.strides(source.dims, type), True), source, type)

    def room_for(self, stack: str, count: str, type: Type) -> str:
        """The pointer to room for some more elements, which are on the stack from now on."""
        top, room = self.stack(stack)
        size = np.dtype(type.dtype).itemsize
        before = self.new(f"load i64, ptr {top}")
        after = self.add(before, count)
        needed = self.times(after, str(size))
        has = self.new(f"load i64, ptr {room}")
        grow, go_on = self.label("grow"), self.label("go")
        self.write(f"br i1 {self.new(f'icmp sgt i64 {needed}, {has}')}, label %{grow}, label %{go_on}")
        self.begin(grow)
        wanted = self.larger(self.larger(self.times(has, "2"), needed), "512")
        old = self.new(f"load ptr, ptr {self.owned[stack]}")
        self.allocators.add(("new", 1))
        made = self.new(f"call noalias ptr @retrograde.new1(i64 {wanted}, i64 1, ptr %status)")
        self.leave_if(self.new(f"icmp eq ptr {made}, null"))
        self.write(f"call void @llvm.memcpy.p0.p0.i64(ptr {made}, ptr {old}, i64 {has}, i1 false)")
        self.write(f"call void @retrograde.free(ptr {old})")
        self.write(f"store ptr {made}, ptr {self.owned[stack]}")
        self.write(f"store i64 {wanted}, ptr {room}")
        self.jump(go_on)
        self.begin(go_on)
        self.write(f"store i64 {after}, ptr {top}")
        return self.on(stack, before, type)

    def on(self, stack: str, place: str, type: Type) -> str:
        start = self.new(f"load ptr, ptr {self.owned[stack]}")
        return self.new(f"getelementptr {in_memory(type)}, ptr {start}, i64 {place}")

    def lowered(self, stack: str, count: str) -> str:
        top, _ = self.stack(stack)
        place = self.minus(self.new(f"load i64, ptr {top}"), count)
        self.write(f"store i64 {place}, ptr {top}")
        return place

    def on_Pop(self, s: Pop) -> None:
        type = self.type_of(s.stack).element
        text = self.read(self.on(s.stack, self.lowered(s.stack, "1"), type), type)
        self.define(s.dst, self.converted(text, type, self.type_of(s.dst)))

    def on_PopArray(self, s: PopArray) -> None:
        type = self.type_of(s.stack).element
        dims = tuple(self.operand(n, INT) for n in s.shape)
        if self.type_of(s.dst).element != type or s.dst in self.returned:
            raise Unwritable("an array on a stack of another type")
        source = self.on(s.stack, self.lowered(s.stack, self.counted(dims)), type)
        made = Array(self.own(s.dst, dims, type), dims, self.strides(dims, type), True)
        size = self.bytes(dims, type)
        self.write(f"call void @llvm.memcpy.p0.p0.i64(ptr {made.pointer}, ptr {source}, i64 {size}, i1 false)")
        self.define_array(s.dst, made)

    def counted(self, dims: tuple[str, ...]) -> str:
        count = "1"
        for n in dims:
            count = self.times(count, n)
        return count


__all__ = ["Calls"]
