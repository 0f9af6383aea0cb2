"""Forwarding: a cell or an element whose value is at hand is not read again, and equal operations are done once.

Works along straight lines; what a branch or loop writes is forgotten behind it, and what a loop writes already at its
start. What an arm of a branch computes is known in later branches on the same condition: in the reverse sweep's, of
what the forward sweep's computed. Whether memory may have changed is a question to alias.py.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any

from retrograde.compiler import ops
from retrograde.compiler.alias import Memory
from retrograde.compiler.form import (
    Add,
    Block,
    For,
    Get,
    If,
    Load,
    Op,
    Return,
    Set,
    Statement,
    Store,
    Swap,
    View,
    While,
)
from retrograde.compiler.program import Program
from retrograde.compiler.types import FLOAT, Operand, Type
from retrograde.compiler.walks import is_number, map_names, walk


def forward(program: Program, is_last: bool = False) -> None:
    """Forward values.

    Args:
        is_last: no derivative of the program will be taken, so that values with other derivatives are just values.
    """
    _Forwarding(program, is_last).run()


class _Known:
    """What is known at one point: the values of cells, and the names of values that were computed or loaded."""

    def __init__(self) -> None:
        self.cells: dict[str, Operand] = {}
        self.values: dict[Any, Operand] = {}
        self.loads: dict[str, dict[Any, Operand]] = {}  # by the roots that they read
        self.chosen: dict[tuple[Operand, bool], dict[Any, Operand]] = {}  # what each arm of a condition computed

    def copy(self) -> _Known:
        other = _Known()
        other.cells, other.values, other.chosen = dict(self.cells), dict(self.values), dict(self.chosen)
        other.loads = {root: dict(loads) for root, loads in self.loads.items()}
        return other

    def forget_views(self) -> None:
        self.values = {key: found for key, found in self.values.items() if key[0] != "view"}

    def forget(self, written: Iterable[str]) -> None:
        for root in written:
            if root.startswith("$"):
                self.cells.pop(root[1:], None)
            else:
                self.loads.pop(root, None)


class _Forwarding:
    def __init__(self, program: Program, is_last: bool) -> None:
        self.program = program
        self.is_last = is_last
        self.memory = Memory(program)
        self.has_swaps = any(type(s) is Swap for s in walk(program.body))
        self.undifferentiated: dict[str, Operand] = {}  # temps of the operation `keep`, and their values
        self.instead: dict[str, Operand] = {}  # what stands for a name that is gone

    def run(self) -> None:
        program = self.program
        program.body = self.block(program.body, _Known())
        for name, dims in program.dims.items():
            program.set_dims(name, map_names(dims, self.replacement))

    def replacement(self, name: str) -> Operand:
        return self.instead.get(name, name)

    def block(self, block: Block, known: _Known) -> Block:
        out: Block = []
        for s in block:
            for f in s.reads:
                x = getattr(s, f)
                if type(x) is str:
                    if x in self.instead:
                        setattr(s, f, self.instead[x])
                elif type(x) is tuple and (type(s) is View or not self.instead.keys().isdisjoint(x)):
                    setattr(s, f, map_names(x, self.replacement))
            _OF.get(type(s), _Forwarding.of_other)(self, s, known, out)
        return out

    def of_other(self, s: Statement, known: _Known, out: Block) -> None:
        known.forget(self.memory.writes(s))
        out.append(s)

    def of_load(self, s: Load, known: _Known, out: Block) -> None:
        key = (s.array, _typed(s.index))
        loads = known.loads.setdefault(self.memory.root(s.array), {})
        if key in loads:
            self.instead[s.dst] = loads[key]
        else:
            loads[key] = s.dst
            out.append(s)

    def of_store(self, s: Store, known: _Known, out: Block) -> None:
        self.of_other(s, known, out)
        if self.type_of(s.value) == self.program.types[s.array].element:
            known.loads[self.memory.root(s.array)] = {(s.array, _typed(s.index)): s.value}

    def of_view(self, s: View, known: _Known, out: Block) -> None:
        key = ("view", s.array, _typed(s.index), s.transposed)
        if key in known.values and self.is_same_shape(s.dst, known.values[key]):
            self.instead[s.dst] = known.values[key]
        else:
            known.values[key] = s.dst
            out.append(s)

    def of_set(self, s: Set, known: _Known, out: Block) -> None:
        self.of_other(s, known, out)
        if self.type_of(s.value) == self.program.types[s.cell]:
            known.cells[s.cell] = s.value

    def of_return(self, s: Return, known: _Known, out: Block) -> None:
        s.values = tuple(v if isinstance(v, str) else self.named(v, out) for v in s.values)
        self.of_other(s, known, out)

    def of_swap(self, s: Swap, known: _Known, out: Block) -> None:
        self.of_other(s, known, out)
        known.forget_views()

    def named(self, value: Operand, out: Block) -> str:
        """A name for a literal result: each result has one."""
        name = self.program.new("result", self.type_of(value))
        out.append(Op(name, "id", (value,)))
        return name

    def is_same_shape(self, a: str, b: str) -> bool:
        return len(self.program.dims[a]) == len(self.program.dims[b])

    def type_of(self, operand: Operand) -> Type:
        return self.program.type_of(operand)

    def of_get(self, s: Get, known: _Known, out: Block) -> None:
        if s.cell in known.cells:
            self.instead[s.dst] = known.cells[s.cell]
        else:
            known.cells[s.cell] = s.dst
            out.append(s)

    def of_add(self, s: Add, known: _Known, out: Block) -> None:
        """An addition to a known value is a `Set`."""
        if s.cell not in known.cells:
            self.of_other(s, known, out)
            return
        old = known.cells[s.cell]
        if not isinstance(old, str) and old == 0 and self.type_of(s.value) == self.program.types[s.cell]:
            total = s.value
        else:
            fn_type = ops.common(self.type_of(old), self.type_of(s.value))
            total = self.program.new("t", fn_type)
            out.append(Op(total, "+", (old, s.value), at=s.at))
        self.of_set(Set(s.cell, total, at=s.at), known, out)

    def of_op(self, s: Op, known: _Known, out: Block) -> None:
        if s.fn == "value" and s.args[0] in self.undifferentiated:
            s.args = (self.undifferentiated[s.args[0]],)
        args = s.args
        numbers = [a for a in args if type(a) is not str]
        if s.fn in _SIMPLE or len(numbers) == len(args):
            value = self.simplified(s)
            if value is not None:
                self.instead[s.dst] = value
                return
        if s.fn == "keep":
            self.undifferentiated[s.dst] = args[0]
        if numbers and s.fn in ops.ARITHMETIC and self.program.types[s.dst] == FLOAT:
            args = tuple(float(a) if type(a) is int else a for a in args)  # 1 / x is 1.0 / x
        key = (s.fn, _typed(args) if numbers else args)
        if key in known.values:
            self.instead[s.dst] = known.values[key]
        else:
            known.values[key] = s.dst
            out.append(s)

    def simplified(self, s: Op) -> Operand:
        """What an operation is equal to, to the last bit and of the same type; None if it is to be done."""
        own, args = self.program.types[s.dst], s.args
        value = ops.folded(s.fn, args)
        if value is not None and self.type_of(value) == own:
            return value
        if s.fn == "id" and self.type_of(args[0]) == own:
            return args[0]
        if s.fn in ("keep", "value") and self.is_last and self.type_of(args[0]) == own:
            return args[0]
        if s.fn == "where" and type(args[0]) is bool:
            chosen = args[1] if args[0] else args[2]
            return chosen if self.type_of(chosen) == own else None
        if s.fn in ("*", "/") and is_number(args[1], 1) and self.type_of(args[0]) == own and own.kind == "f":
            return args[0]
        if s.fn == "*" and is_number(args[0], 1) and self.type_of(args[1]) == own and own.kind == "f":
            return args[1]
        if s.fn == "size" and is_number(args[0], 0) and self.program.is_size(args[1]):
            return args[1]
        if s.fn in ("==", "!=") and args[0] == args[1] and self.type_of(args[0]).kind in "iub":
            return s.fn == "=="
        return None

    def of_branch(self, s: If, known: _Known, out: Block) -> None:
        if not isinstance(s.cond, str):
            out += self.block(s.then if s.cond else s.orelse, known)
            return
        written = self.before_nested(s, known)
        s.then = self.arm(s, True, known)
        s.orelse = self.arm(s, False, known)
        known.forget(written)
        out.append(s)

    def of_loop(self, s: For | While, known: _Known, out: Block) -> None:
        written = self.before_nested(s, known)
        known.forget(written)
        if isinstance(s, While):
            s.test = self.block(s.test, known.copy())
            s.cond = map_names(s.cond, self.replacement)
        s.body = self.block(s.body, known.copy())
        known.forget(written)
        out.append(s)

    def before_nested(self, s: For | While | If, known: _Known) -> Collection[str]:
        """What is written in a statement that holds others; what it may swap has no known views from here on."""
        if self.has_swaps and any(type(x) is Swap for x in walk([s])):
            known.forget_views()
        return self.memory.written_in(s)

    def arm(self, s: If, holds: bool, known: _Known) -> Block:
        """An arm of a branch, which knows what was computed where the same condition was met before."""
        inner, key = known.copy(), (s.cond, holds)
        if self.is_last:
            inner.values.update(known.chosen.get(key, {}))
        made = self.block(s.then if holds else s.orelse, inner)
        if self.is_last:
            known.chosen[key] = {k: v for k, v in inner.values.items() if k[0] != "view" and k not in known.values}
        return made


_OF: dict[type, Callable[[_Forwarding, Any, _Known, Block], None]] = {
    Op: _Forwarding.of_op,
    Load: _Forwarding.of_load,
    Store: _Forwarding.of_store,
    View: _Forwarding.of_view,
    Get: _Forwarding.of_get,
    Set: _Forwarding.of_set,
    Add: _Forwarding.of_add,
    Swap: _Forwarding.of_swap,
    Return: _Forwarding.of_return,
    If: _Forwarding.of_branch,
    For: _Forwarding.of_loop,
    While: _Forwarding.of_loop,
}
_SIMPLE = frozenset(("id", "keep", "value", "where", "*", "/", "size", "==", "!="))
"""The operations of which `simplified` knows more than their values for numbers."""


def _typed(operands: tuple[Any, ...]) -> Any:
    """Operands as a key in which 1, 1.0 and True differ."""
    return tuple([o if type(o) is str else _typed(o) if isinstance(o, tuple) else _number(o) for o in operands])


def _number(o: Any) -> Any:
    return type(o), o if o == o else "nan", str(o) if o == 0 else ""


__all__ = ["forward"]
