"""Loops over threads, in LLVM's text.

    for part in prange(threads):
        f_part(part, x, …)

What the function takes beside the number of the part stands in a structure. numba's layer of threads calls, on each of
its threads, a function that reads it, with a run of neighbouring numbers; it hands these over as the place of a first
element and a count, for arrays that a function of NumPy's would run over. Here it is an array of single bytes at
address 0, which is not there: the place is the number.
"""

from __future__ import annotations

from retrograde.compiler.alias import Memory
from retrograde.compiler.form import Call, For, Op
from retrograde.compiler.machine.calls import Calls
from retrograde.compiler.machine.frame import Handed
from retrograde.compiler.machine.scalars import Unwritable, kind

LAYER = "numba_parallel_for"
COUNT = "get_num_threads"
DECLARED = (
    f"declare void @{LAYER}(ptr, ptr, ptr, ptr, ptr, i64, i64, i64)",
    f"declare i64 @{COUNT}()",
)


class Threads(Calls):
    def count_threads(self, s: Op) -> None:
        self.define(s.dst, self.new(f"call i64 @{COUNT}()"))

    def on_threads(self, s: For) -> None:
        call = s.body[-1]
        if not self.is_main or not isinstance(call, Call) or call.dsts or call.args[:1] != (s.var,) or s.low != 0:
            raise Unwritable("a loop over threads inside of another function")
        mark = len(self.undo)
        for x in s.body[:-1]:
            self.statement(x)
        fields = self.handed_over(call)
        status = self.slot("i32", "0")
        fields += ["ptr %nan", f"ptr {status}"]
        types = [field.split(" ", 1)[0] for field in fields]
        record = f"{{ {', '.join(types)} }}"
        data = self.room(record)
        for place, field in enumerate(fields):
            where = self.new(f"getelementptr {record}, ptr {data}, i32 0, i32 {place}")
            self.write(f"store {field}, ptr {where}")
        count = self.operand(s.high)
        args, length, step = self.slot("ptr", "null"), self.slot("i64", "0"), self.slot("i64", "1")
        self.write(f"store i64 {count}, ptr {length}")
        runner = f'@"retrograde.main.{call.fn}.on_threads"'
        given = f"ptr {runner}, ptr {args}, ptr {length}, ptr {step}, ptr {data}, i64 0, i64 1, i64 {count}"
        self.write(f"call void @{LAYER}({given})")
        found = self.new(f"load i32, ptr {status}")
        self.write(f"store i32 {found}, ptr %status")
        self.leave_if(self.new(f"icmp ne i32 {found}, 0"))
        self.forget(mark)
        self.shared.runners.append(_runner(runner, self.symbol(call.fn), record, types))

    def handed_over(self, call: Call) -> list[str]:
        """The values that the function of a part takes, with their types; how it takes arrays is noted for it."""
        part = self.program.procedures[call.fn]
        memory = Memory(self.program)
        roots = [memory.root(x) for x in call.args if self.program.is_array(x) and isinstance(x, str)]
        fields: list[str] = []
        how: dict[str, Handed] = {}
        for x, name in zip(call.args[1:], part.params[1:], strict=True):
            type = part.types[name]
            if not type.is_array:
                fields.append(f"{kind(type)} {self.operand(x, type)}")
                continue
            assert isinstance(x, str)
            array = self.array(x)
            number = self.program.params.index(x) if x in self.program.params else None
            is_dense = array.is_dense and array.needs is None
            how[name] = Handed(number, is_dense, roots.count(memory.root(x)) == 1)
            fields += [f"ptr {array.pointer}", *(f"i64 {t}" for t in array.dims)]
            if not is_dense:
                fields += [f"i64 {t}" for t in array.strides]
        self.shared.handed[call.fn] = how
        return fields

    def room(self, record: str) -> str:
        """Where a structure is, in the frame of the function."""
        self.count += 1
        name = f"%s{self.count}"
        self.entry.append(f"  {name} = alloca {record}")
        return name


def _runner(symbol: str, part: str, record: str, types: list[str]) -> str:
    """What a thread calls: the parts of a run, one after the other. The last field says where errors go."""
    lines = [
        f"define internal void {symbol}(ptr %args, ptr %length, ptr %steps, ptr %data) {{",
        "begin:",
        "  %place = load ptr, ptr %args",
        "  %first = ptrtoint ptr %place to i64",
        "  %count = load i64, ptr %length",
    ]
    for k, type in enumerate(types):
        lines += [
            f"  %w{k} = getelementptr {record}, ptr %data, i32 0, i32 {k}",
            f"  %f{k} = load {type}, ptr %w{k}",
        ]
    last = len(types) - 1
    given = ", ".join(["i64 %part", *(f"{type} %f{k}" for k, type in enumerate(types[:-1]))])
    lines += [
        "  %some = icmp sgt i64 %count, 0",
        "  br i1 %some, label %loop, label %end",
        "loop:",
        "  %k = phi i64 [0, %begin], [%next, %on]",
        "  %part = add i64 %first, %k",
        f"  %found = call i32 @{part}({given})",
        "  %bad = icmp ne i32 %found, 0",
        "  br i1 %bad, label %note, label %on",
        "note:",
        f"  store i32 %found, ptr %f{last}",
        "  br label %on",
        "on:",
        "  %next = add i64 %k, 1",
        "  %more = icmp slt i64 %next, %count",
        "  br i1 %more, label %loop, label %end",
        "end:",
        "  ret void",
        "}",
    ]
    return "\n".join(lines)


__all__ = ["COUNT", "DECLARED", "LAYER", "Threads"]
