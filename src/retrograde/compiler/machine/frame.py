"""The frame of a function in LLVM's text: its parameters, what its names stand for, and how it ends."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, Protocol

from retrograde.compiler.form import Add, Alloc, Block, Copy, For, Return, Set, Statement, Swap, While
from retrograde.compiler.machine.functions import text_of
from retrograde.compiler.machine.memory import ALL_ON_STACK, Array, Arrays
from retrograde.compiler.machine.scalars import Unwritable, kind, nothing
from retrograde.compiler.machine.stack import ASKED, CHECKED, TOO_DEEP
from retrograde.compiler.machine.written import Called, strides_of
from retrograde.compiler.optimise.unsigned import NonNegative
from retrograde.compiler.program import Program
from retrograde.compiler.types import FLOAT, Operand, Type
from retrograde.compiler.walks import blocks_of, defs, uses, walk


class Handed(NamedTuple):
    """How the function that each thread runs takes an array.

    Attributes:
        number: of the parameter of the main function that it is; None for other arrays.
        is_dense: whether it is dense for sure, so that no strides are given.
        is_alone: whether no other array that it takes may be in the same memory.
    """

    number: int | None
    is_dense: bool
    is_alone: bool


class Shared(Protocol):
    """What the functions of a text share.

    Attributes:
        runners: the texts of what threads call.
        handed: how the functions that threads run take their arrays, by their names and those of the parameters.
    """

    fast: str
    called: dict[Any, Called]
    allocators: set[tuple[str, int]]
    abreast: bool
    declared: dict[str, None]
    functions: dict[str, str]
    metadata: list[str]
    is_recursive: bool
    runners: list[str]
    handed: dict[str, dict[str, Handed]]
    looked_at: set[int]

    def number(self, error: str, message: str) -> int: ...


class Frame(Arrays):
    """Writes what stands around the statements of a function."""

    def __init__(self, program: Program, shared: Shared, is_main: bool) -> None:
        super().__init__(shared.fast, shared.called)
        self.program = program
        self.shared = shared
        self.allocators = shared.allocators
        self.is_main = is_main
        self.entry: list[str] = []
        self.names: dict[str, str] = {}
        self.arrays: dict[str, Array] = {}
        self.slots: dict[str, Any] = {}
        self.undo: list[tuple[dict[str, Any], str, Any]] = []
        self.owned: dict[str, str] = {}
        self.dense: set[str] = set()
        self.on_stack = 0
        self.room_on_stack = ALL_ON_STACK if is_main or program.name in shared.handed else 0
        self.loops = 0
        self.known = NonNegative(program)
        everything = walk(program.body)
        self.makers: dict[str, list[Statement]] = {}
        for s in everything:
            for name in defs(s):
                self.makers.setdefault(name, []).append(s)
        self.swapped = {n for s in everything if isinstance(s, Swap) for n in (*s.targets, *s.sources)}
        if any(isinstance(s, Set | Add) and s.cell in program.params for s in everything):
            raise Unwritable("a parameter that changes")
        if any(not self.is_made_here(n) for n in self.swapped):
            raise Unwritable("buffers of others change names")
        self.escaping = self.swapped | _escaping(program)
        self.types = tuple(program.types[p] for p in program.params)
        self.results = tuple(program.result_types())
        self.returned = frozenset(self._returned(everything))

    def is_made_here(self, name: str) -> bool:
        made = self.makers.get(name, ())
        return bool(made) and all(isinstance(s, Alloc | Copy) for s in made)

    def _returned(self, everything: Iterable[Statement]) -> list[str]:
        """The arrays that are results: made here, once, and each returned once."""
        found: list[str] = []
        for s in everything:
            if isinstance(s, Return):
                names = [v for v in s.values if self.program.is_array(v)]
                if names and not self.is_main:
                    raise Unwritable("an array as the result of a call")
                if len(names) > len(set(names)):
                    raise Unwritable("an array that is returned twice")
                found += names
        if any(not self.is_made_here(n) or len(self.makers[n]) > 1 or n in self.swapped for n in found):
            raise Unwritable("a result that is a part of another array")
        return found

    # --- what the writers of numbers and arrays ask ------------------------------------------------------------------

    def type_of(self, x: Operand) -> Type:
        return self.program.type_of(x)

    def is_not_negative(self, x: Operand) -> bool:
        return (isinstance(x, str) and self.program.types[x].kind == "u") or self.known.holds(x)

    @property
    def can_tell_of_nan(self) -> bool:
        return self.is_main or self.program.name in self.shared.handed

    def is_of_caller(self, array: str) -> bool:
        """Whether an array is one that the main function was given."""
        handed = self.shared.handed.get(self.program.name, {})
        return array in self.program.params if self.is_main else array in handed and handed[array].number is not None

    @property
    def may_run_again(self) -> bool:
        return self.loops > 0

    def value(self, x: str) -> str:
        if x in self.names:
            return self.names[x]
        if x in self.slots:
            return self.new(f"load {kind(self.type_of(x))}, ptr {self.slots[x]}")
        raise Unwritable(f"{x} before it has a value")

    def array(self, name: str) -> Array:
        if name in self.arrays:
            return self.arrays[name]
        if name not in self.slots:
            raise Unwritable(f"{name} before it has a value")
        pointer, dims, strides = self.slots[name]
        read = tuple(self.new(f"load i64, ptr {d}") for d in dims)
        where = self.new(f"load ptr, ptr {pointer}")
        if self.is_made_here(name):
            return Array(where, read, self.strides(read, self.type_of(name)), True)
        return Array(where, read, tuple(self.new(f"load i64, ptr {s}") for s in strides), False)

    def call(self, fn: str, types: tuple[Type, ...], args: tuple[str, ...], result: Type) -> str:
        module, _, name = fn.partition(".")
        if module != "vectormath":
            return super().call(fn, types, args, result)
        symbol, text, declared = text_of(name, self.lanes)
        self.shared.functions[symbol] = text
        self.shared.declared.update(dict.fromkeys(declared))
        double = self.kind(FLOAT)
        return self.new(f"call {double} {symbol}({', '.join(f'{double} {a}' for a in args)})")

    def leave_if(self, test: str) -> None:
        """Leave the function with the error whose number is noted."""
        go_on = self.label("go")
        self.write(f"br i1 {test}, label %exit, label %{go_on}")
        self.begin(go_on)

    # --- names -------------------------------------------------------------------------------------------------------

    def define(self, name: str, text: str) -> None:
        if name in self.escaping:
            type = self.type_of(name)
            if name not in self.slots:
                self.slots[name] = self.slot(kind(type), nothing(type))
            self.write(f"store {kind(type)} {text}, ptr {self.slots[name]}")
        else:
            self.bind(self.names, name, text)

    def define_array(self, name: str, array: Array) -> None:
        if name not in self.escaping:
            self.bind(self.arrays, name, array)
            return
        if array.needs is not None:
            array = array._replace(is_dense=False, needs=None)
        if array.lanes is not None:
            raise Unwritable("an array at several places that is used elsewhere")
        if name not in self.slots:
            n = range(len(array.dims))
            self.slots[name] = (
                self.slot("ptr", "null"),
                [self.slot("i64", "0") for _ in n],
                [self.slot("i64", "0") for _ in n],
            )
        pointer, dims, strides = self.slots[name]
        self.write(f"store ptr {array.pointer}, ptr {pointer}")
        for place, text in zip((*dims, *strides), (*array.dims, *array.strides), strict=True):
            self.write(f"store i64 {text}, ptr {place}")

    def bind(self, table: dict[str, Any], name: str, content: Any) -> None:
        self.undo.append((table, name, table.get(name)))
        table[name] = content

    def forget(self, mark: int) -> None:
        """Names that were bound since lose their meaning: where the text goes on, they may not have been computed."""
        while len(self.undo) > mark:
            table, name, before = self.undo.pop()
            if before is None:
                del table[name]
            else:
                table[name] = before

    def cell(self, name: str) -> str:
        if name not in self.slots:
            type = self.type_of(name)
            self.slots[name] = self.slot(kind(type), nothing(type))
        slot: str = self.slots[name]
        return slot

    def block(self, block: Block) -> None:
        raise NotImplementedError

    def statement(self, s: Statement) -> None:
        raise NotImplementedError

    # --- text --------------------------------------------------------------------------------------------------------

    def label(self, what: str) -> str:
        self.count += 1
        return f"{what}{self.count}"

    def begin(self, label: str) -> None:
        self.lines.append(f"{label}:")

    def jump(self, label: str) -> None:
        self.write(f"br label %{label}")

    def text(self) -> str:
        params, begin = self.on_the_stack()
        known: list[str] = []
        handed = self.shared.handed.get(self.program.name, {})
        mains = [h.number for h in handed.values() if h.number is not None]
        for k, (name, type) in enumerate(zip(self.program.params, self.types, strict=True)):
            how = Handed(k, False, True) if self.is_main else handed.get(name, Handed(None, False, False))
            # Arrays of the main function have the numbers that they have there, by which their strides are known.
            number = how.number if how.number is not None else k + max(mains, default=-1) + 1
            if not type.is_array:
                params.append(f"{kind(type)} %p{number}")
                self.names[name] = f"%p{number}"
                continue
            dims = tuple(f"%p{number}.d{i}" for i in range(type.ndim))
            strides = tuple(f"%p{number}.s{i}" for i in range(type.ndim))
            given = strides
            if how.number is not None:
                given = tuple(f"%p{number}.g{i}" for i in range(type.ndim))
                known.append(strides_of(number))
            params += [f"ptr{' noalias' * how.is_alone} nocapture %p{number}", *(f"i64 {d}" for d in dims)]
            if how.is_dense:
                self.arrays[name] = Array(f"%p{number}", dims, self.strides(dims, type), True)
            else:
                params += [f"i64 {x}" for x in given]
                of_main = how.number is not None
                self.arrays[name] = Array(f"%p{number}", dims, strides, of_main, name if of_main else None)
        params += [f"ptr noalias nocapture %r{j}" for j in range(len(self.results))]
        if self.can_tell_of_nan:
            params.append("ptr nocapture %nan")
        self.block(self.program.body)
        self.jump("exit")
        head = (
            "define weak_odr i32 @retrograde.main"
            if self.is_main
            else f"define internal i32 @{self.symbol(self.program.name)}"
        )
        return "\n".join(
            [
                f"{head}({', '.join(params)}) {{",
                *begin,
                "  %status = alloca i32",
                "  store i32 0, ptr %status",
                *known,
                *self.entry,
                *self.lines,
                *self.ending(),
                "}",
            ]
        )

    def on_the_stack(self) -> tuple[list[str], list[str]]:
        """The parameter, and the first lines, that keep functions which call themselves within the stack."""
        if not self.shared.is_recursive:
            return [], []
        if self.is_main or self.program.name in self.shared.handed:
            return [], [ASKED]  # each thread has a stack of its own
        return ["i64 %stack.end"], [CHECKED.format(number=self.shared.number(*TOO_DEEP))]

    def ending(self) -> list[str]:
        """Where all paths end: give back the memory."""
        lines = ["exit:"]
        for k, (name, slot) in enumerate(self.owned.items()):
            lines.append(f"  %o{k} = load ptr, ptr {slot}")
            if name in self.returned:
                lines += [
                    f"  %o{k}.none = icmp eq ptr %o{k}, null",
                    f"  br i1 %o{k}.none, label %o{k}.end, label %o{k}.free",
                    f"o{k}.free:",
                    f"  call void @NRT_MemInfo_release(ptr %o{k})",
                    f"  br label %o{k}.end",
                    f"o{k}.end:",
                ]
            else:
                lines.append(f"  call void @retrograde.free(ptr %o{k})")
        return [*lines, "  %found = load i32, ptr %status", "  ret i32 %found"]

    @staticmethod
    def symbol(procedure: str) -> str:
        return f'"retrograde.main.{procedure}"'


def _escaping(program: Program) -> set[str]:
    """The names that are used where the text does not show that they were computed before."""
    found: set[str] = set()
    given = set(program.params)

    def visit(block: Block, visible: set[str]) -> set[str]:
        visible = set(visible)
        for s in block:
            if isinstance(s, While):
                tested = visit(s.test, visible)
                found.update(n for n in uses(s) if n not in tested)
                visit(s.body, tested)
                continue
            found.update(n for n in uses(s) if n not in visible)
            inner = visible | {s.var} if isinstance(s, For) else visible
            for part in blocks_of(s):
                visit(part, inner)
            if not isinstance(s, For):
                visible.update(defs(s))
        return visible

    visit(program.body, given)
    return found - given


__all__ = ["Frame"]
