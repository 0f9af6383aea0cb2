"""Arrays in LLVM's text: where their elements are, parts of them, and the memory that they own.

An array is a pointer, its lengths and its strides in bytes, each an operand by itself. Nothing of it stands in memory,
nothing counts references: what a function allocates it frees where it ends, or where it allocates anew.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from retrograde.compiler.form import Index, Reshaped, Slice
from retrograde.compiler.machine.scalars import Scalars, Unwritable, in_memory
from retrograde.compiler.types import INT, Operand, Type

ON_STACK = 2048  # bytes of an array of known size that needs no allocation
ALL_ON_STACK = 32768  # of a function that does not call itself
LINE = 64  # bytes; vectors that lie across two lines of the cache are slower to read


class Array(NamedTuple):
    """What is known of an array.

    Attributes:
        pointer: to its first element.
        dims, strides: its lengths, and the bytes from one element to the next along each axis.
        is_dense: whether its elements lie one behind the other in C order.
        needs: the parameter that has to be dense for that.
        lanes: where iterations run side by side, the bytes by which what each of them means lies behind the pointer.
    """

    pointer: str
    dims: tuple[str, ...]
    strides: tuple[str, ...]
    is_dense: bool
    needs: str | None = None
    lanes: tuple[str, ...] | None = None


class Arrays(Scalars):
    """Writes the instructions of a function that read, write and make arrays."""

    entry: list[str]
    owned: dict[str, str]
    returned: frozenset[str]
    dense: set[str]
    on_stack: int
    room_on_stack: int

    def array(self, name: str) -> Array:
        raise NotImplementedError

    def is_not_negative(self, x: Operand) -> bool:
        raise NotImplementedError

    def leave_if(self, test: str) -> None:
        raise NotImplementedError

    # --- elements ------------------------------------------------------------------------------------------------

    def place(self, index: Operand, length: str) -> str:
        """An index, which counts from the end if it is negative."""
        text = self.operand(index, INT)
        if self.is_not_negative(index):
            return text
        if not isinstance(index, str):
            return self.add(text, length)
        below = self.new(f"icmp slt i64 {text}, 0")
        return self.new(f"select i1 {below}, i64 {self.add(text, length)}, i64 {text}")

    def element(self, name: str, index: Index) -> str:
        """The pointer to an element."""
        array = self.array(name)
        if len(index) != len(array.dims):
            raise Unwritable("an index of too few axes")
        places = [self.place(i, n) for i, n in zip(index, array.dims, strict=True)]
        return self.at(array, places, self.type_of(name))

    def at(self, array: Array, places: list[str], type: Type) -> str:
        size = str(np.dtype(type.dtype).itemsize)
        if places and array.strides[-1] == size:
            row = self.moved(array.pointer, places[:-1], array.strides[:-1])
            return (
                row if places[-1] == "0" else self.new(f"getelementptr {in_memory(type)}, ptr {row}, i64 {places[-1]}")
            )
        return self.moved(array.pointer, places, array.strides)

    def moved(self, pointer: str, places: list[str], strides: tuple[str, ...]) -> str:
        offset = "0"
        for place, stride in zip(places, strides, strict=True):
            offset = self.add(offset, self.times(place, stride))
        return pointer if offset == "0" else self.new(f"getelementptr i8, ptr {pointer}, i64 {offset}")

    def read(self, pointer: str, type: Type) -> str:
        text = self.new(f"load {in_memory(type)}, ptr {pointer}")
        return self.new(f"icmp ne i8 {text}, 0") if type.dtype == "bool" else text

    def put(self, pointer: str, text: str, type: Type) -> None:
        if type.dtype == "bool":
            text = self.new(f"zext i1 {text} to i8")
        self.write(f"store {in_memory(type)} {text}, ptr {pointer}")

    # --- parts ---------------------------------------------------------------------------------------------------

    def transposed(self, array: Array) -> Array:
        is_dense = len(array.dims) <= 1 and array.is_dense
        return array._replace(dims=array.dims[::-1], strides=array.strides[::-1], is_dense=is_dense, needs=None)

    def part(self, array: Array, index: Index, type: Type) -> Array:
        if index and isinstance(index[0], Reshaped):
            return self.reshaped(array, index[0], type)
        offset = "0"
        dims: list[str] = []
        strides: list[str] = []
        axis = 0
        is_dense = array.is_dense
        for item in index:
            if item is None:
                dims.append("1")
                strides.append("0")
                is_dense = False
                continue
            length, stride = array.dims[axis], array.strides[axis]
            axis += 1
            if not isinstance(item, Slice):
                is_dense = is_dense and not dims
                offset = self.add(offset, self.times(self.place(item, length), stride))
                continue
            low, count, step = self.bounds(item, length)
            is_dense = is_dense and (item == Slice() or (not dims and step == 1))
            offset = self.add(offset, self.times(low, stride))
            dims.append(count)
            strides.append(self.times(stride, str(step)))
        dims += array.dims[axis:]
        strides += array.strides[axis:]
        pointer = array.pointer if offset == "0" else self.new(f"getelementptr i8, ptr {array.pointer}, i64 {offset}")
        return Array(pointer, tuple(dims), tuple(strides), is_dense, array.needs, array.lanes)

    def bounds(self, item: Slice, length: str) -> tuple[str, str, int]:
        """Where a slice begins, how many elements it has, and its step."""
        step = 1 if item.step is None else item.step
        if isinstance(step, str) or int(step) == 0:
            raise Unwritable("a step that is not known")
        step = int(step)
        lowest, highest = ("0", length) if step > 0 else ("-1", self.add(length, "-1"))
        low = self.bound(item.low, length, lowest, highest, lowest if step > 0 else highest)
        high = self.bound(item.high, length, lowest, highest, highest if step > 0 else lowest)
        if step == 1:
            count = self.minus(high, low)
        elif step > 0:
            count = self.new(f"sdiv i64 {self.add(self.minus(high, low), str(step - 1))}, {step}")
        else:
            count = self.new(f"sdiv i64 {self.add(self.minus(low, high), str(-step - 1))}, {-step}")
        whole = item.low in (None, 0) and item.high is None and step == 1
        return low, count if whole else self.larger(count, "0"), step

    def bound(self, x: Operand, length: str, lowest: str, highest: str, absent: str) -> str:
        if x is None:
            return absent
        if not isinstance(x, str) and x == 0 and lowest == "0":
            return "0"
        return self.smaller(self.larger(self.place(x, length), lowest), highest)

    def reshaped(self, array: Array, to: Reshaped, type: Type) -> Array:
        if not array.is_dense:
            raise Unwritable("another shape of what is not dense")
        if array.needs is not None:
            self.dense.add(array.needs)
        dims = tuple(self.operand(n, INT) for n in to.shape)
        if any(not isinstance(n, str) and n < 0 for n in to.shape):
            raise Unwritable("a length that follows from the others")
        return array._replace(dims=dims, strides=self.strides(dims, type))

    def strides(self, dims: tuple[str, ...], type: Type) -> tuple[str, ...]:
        """Those of an array that is dense."""
        stride = str(np.dtype(type.dtype).itemsize)
        made = []
        for n in reversed(dims):
            made.append(stride)
            if len(made) < len(dims):
                stride = self.times(stride, n)
        return tuple(reversed(made))

    def bytes(self, dims: tuple[str, ...], type: Type) -> str:
        size = str(np.dtype(type.dtype).itemsize)
        for n in dims:
            size = self.times(size, n)
        return size

    # --- memory --------------------------------------------------------------------------------------------------

    def slot(self, kind: str, start: str) -> str:
        """A place in the frame of the function, which holds something from its beginning."""
        self.count += 1
        name = f"%s{self.count}"
        self.entry.append(f"  {name} = alloca {kind}")
        self.entry.append(f"  store {kind} {start}, ptr {name}")
        return name

    def allocated(self, name: str, shape: tuple[Operand, ...], zero: bool) -> Array:
        type = self.type_of(name)
        dims = tuple(self.operand(n, INT) for n in shape)
        size = self.bytes(dims, type)
        if name in self.returned:
            pointer = self.to_return(name, dims, type)
        elif (
            size.isdigit()
            and int(size) <= ON_STACK
            and self.on_stack + int(size) <= self.room_on_stack
            and name not in self.swapped
        ):
            self.on_stack += int(size)
            self.count += 1
            pointer = f"%s{self.count}"
            self.entry.append(f"  {pointer} = alloca [{size} x i8], align 64")
        else:
            pointer = self.own(name, dims, type)
        if zero:
            self.write(f"call void @llvm.memset.p0.i64(ptr {pointer}, i8 0, i64 {size}, i1 false)")
        return Array(pointer, dims, self.strides(dims, type), True)

    swapped: set[str]

    def own(self, name: str, dims: tuple[str, ...], type: Type) -> str:
        """New memory, in place of what the name had."""
        if name not in self.owned:
            self.owned[name] = self.slot("ptr", "null")
        slot = self.owned[name]
        if self.may_run_again:
            self.write(f"call void @retrograde.free(ptr {self.new(f'load ptr, ptr {slot}')})")
            self.write(f"store ptr null, ptr {slot}")
        pointer = self.new(
            f"call noalias ptr @{self.allocator('new', len(dims))}({self.sizes(dims, type)}, ptr %status)"
        )
        self.write(f"store ptr {pointer}, ptr {slot}")
        self.leave_if(self.new(f"icmp eq ptr {pointer}, null"))
        return pointer

    @property
    def may_run_again(self) -> bool:
        raise NotImplementedError

    def to_return(self, name: str, dims: tuple[str, ...], type: Type) -> str:
        """New memory of numba's, with a count of references."""
        if self.may_run_again:
            raise Unwritable("a result that is made in a loop")
        slot = self.owned[name] = self.slot("ptr", "null")
        info = self.new(f"call noalias ptr @{self.allocator('info', len(dims))}({self.sizes(dims, type)}, ptr %status)")
        self.write(f"store ptr {info}, ptr {slot}")
        self.leave_if(self.new(f"icmp eq ptr {info}, null"))
        return self.new(f"call noalias ptr @NRT_MemInfo_data(ptr {info})")

    def sizes(self, dims: tuple[str, ...], type: Type) -> str:
        return ", ".join(f"i64 {n}" for n in (*dims, np.dtype(type.dtype).itemsize))

    def allocator(self, what: str, ndim: int) -> str:
        self.allocators.add((what, ndim))
        return f"retrograde.{what}{ndim}"

    allocators: set[tuple[str, int]]

    def for_each(self, dims: tuple[str, ...]) -> tuple[list[str], list[tuple[str, str, str, str]]]:
        """Begin loops over all places; `end_each` ends them."""
        places: list[str] = []
        loops = []
        for n in dims:
            self.count += 1
            k = self.count
            at, after, end = f"E{k}", f"E{k}.next", f"E{k}.end"
            some = self.new(f"icmp sgt i64 {n}, 0")
            self.write(f"br i1 {some}, label %E{k}.begin, label %{end}")
            self.lines.append(f"E{k}.begin:")
            self.write(f"br label %{at}")
            self.lines.append(f"{at}:")
            self.write(f"%e{k} = phi i64 [0, %E{k}.begin], [%e{k}.next, %{after}]")
            places.append(f"%e{k}")
            loops.append((str(k), n, at, end))
        return places, loops

    def end_each(self, loops: list[tuple[str, str, str, str]]) -> None:
        for k, n, at, end in reversed(loops):
            self.write(f"br label %E{k}.next")
            self.lines.append(f"E{k}.next:")
            self.write(f"%e{k}.next = add nuw nsw i64 %e{k}, 1")
            more = self.new(f"icmp slt i64 %e{k}.next, {n}")
            self.write(f"br i1 {more}, label %{at}, label %{end}")
            self.lines.append(f"{end}:")

    def copy(self, target: Array, source: Array, type: Type) -> None:
        places, loops = self.for_each(source.dims)
        self.put(self.at(target, places, type), self.read(self.at(source, places, type), type), type)
        self.end_each(loops)

    def fill(self, array: Array, type: Type) -> None:
        if array.is_dense and array.needs is None:
            size = self.bytes(array.dims, type)
            self.write(f"call void @llvm.memset.p0.i64(ptr {array.pointer}, i8 0, i64 {size}, i1 false)")
            return
        places, loops = self.for_each(array.dims)
        self.write(f"store {in_memory(type)} {_zero(type)}, ptr {self.at(array, places, type)}")
        self.end_each(loops)


def _zero(type: Type) -> str:
    return {"f": "0.0", "c": "zeroinitializer"}.get(type.kind, "0")


def allocator_text(what: str, ndim: int) -> str:
    """A function that checks lengths and allocates; null, with the error's number in `status`, where it cannot.

    What is given back (`new`) begins with a line of the cache, and behind the pointer to the memory that it is in.
    """
    dims = [f"%d{k}" for k in range(ndim)]
    given = "".join(f"i64 {d}, " for d in dims)
    lines = [
        f"define internal noalias ptr @retrograde.{what}{ndim}"
        f"({given}i64 %size, ptr nocapture writeonly %status) noinline {{",
        "  %f = sitofp i64 %size to double",
    ]
    negative, total, product = "false", "%size", "%f"
    for k, d in enumerate(dims):
        lines += [
            f"  %n{k} = icmp slt i64 {d}, 0",
            f"  %a{k} = or i1 {negative}, %n{k}",
            f"  %t{k} = mul i64 {total}, {d}",
            f"  %c{k} = sitofp i64 {d} to double",
            f"  %p{k} = fmul double {product}, %c{k}",
        ]
        negative, total, product = f"%a{k}", f"%t{k}", f"%p{k}"
    if what == "info":
        allocate, give = f"call ptr @NRT_MemInfo_alloc_aligned(i64 {total}, i32 64)", ["  ret ptr %p"]
    else:
        allocate = "call ptr @NRT_Allocate(i64 %more)"
        give = [
            f"  %behind = getelementptr i8, ptr %p, i64 {LINE + 8}",
            f"  %line = call ptr @llvm.ptrmask.p0.i64(ptr %behind, i64 {-LINE})",
            "  %before = getelementptr i8, ptr %line, i64 -8",
            "  store ptr %p, ptr %before",
            "  ret ptr %line",
        ]
    lines += [
        f"  br i1 {negative}, label %negative, label %positive",
        "negative:",
        "  store i32 1, ptr %status",
        "  ret ptr null",
        "positive:",
        f"  %large = fcmp ogt double {product}, 0x43D0000000000000",
        "  br i1 %large, label %none, label %possible",
        "possible:",
        f"  %more = add i64 {total}, {LINE + 8}",
        f"  %p = {allocate}",
        "  %failed = icmp eq ptr %p, null",
        "  br i1 %failed, label %none, label %done",
        "none:",
        "  store i32 2, ptr %status",
        "  ret ptr null",
        "done:",
        *give,
        "}",
    ]
    return "\n".join(lines)


FREE = """define internal void @retrograde.free(ptr nocapture %line) noinline {
  %none = icmp eq ptr %line, null
  br i1 %none, label %end, label %some
some:
  %before = getelementptr i8, ptr %line, i64 -8
  %p = load ptr, ptr %before
  call void @NRT_Free(ptr %p)
  br label %end
end:
  ret void
}"""


__all__ = ["FREE", "Array", "Arrays", "allocator_text"]
