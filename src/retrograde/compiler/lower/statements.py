"""Simple statements: assignments, returns, assertions, exceptions."""

from __future__ import annotations

import ast
from typing import Any

from retrograde.compiler import ops
from retrograde.compiler.arguments import flat_types
from retrograde.compiler.form import Add, Alloc, Op, Raise, Return, Swap
from retrograde.compiler.lower import functions
from retrograde.compiler.lower.builder import Restart
from retrograde.compiler.lower.descriptions import describe
from retrograde.compiler.lower.indexing import items_of
from retrograde.compiler.lower.names import Names
from retrograde.compiler.lower.operators import OPERATORS
from retrograde.compiler.lower.values import NONE, InCell, Lazy, Object, is_field
from retrograde.compiler.types import BOOL, Operand, Type


class Statements(Names):
    def statements(self, body: list[ast.stmt]) -> None:
        for s in body:
            if self.frame.returned:
                return
            method = getattr(self, f"on_{type(s).__name__}", None)
            with self.placed(s):
                if method is None:
                    raise self.refuse(*_REFUSED.get(type(s).__name__, (f"this {type(s).__name__} statement",)))
                method(s)

    # --- simple statements ---------------------------------------------------------------------------------------

    def on_Expr(self, s: ast.Expr) -> None:
        if isinstance(s.value, ast.Constant):
            return  # a docstring
        self.expr(s.value)

    def on_Pass(self, s: ast.Pass) -> None:
        return

    def on_Assert(self, s: ast.Assert) -> None:
        cond = self.truth_of(s.test)
        text = s.msg.value if isinstance(s.msg, ast.Constant) else ""
        if cond is False:
            self.emit(Raise("AssertionError", str(text)))
        elif isinstance(cond, str):
            self.branch(self.op("not", cond), lambda: self.emit(Raise("AssertionError", str(text))))

    def on_Raise(self, s: ast.Raise) -> None:
        node = s.exc
        call = node if isinstance(node, ast.Call) else None
        kind = self.constant_of(call.func if call else node) if node is not None else None
        if not (isinstance(kind, type) and issubclass(kind, Exception) and kind.__module__ == "builtins"):
            raise self.refuse("raising something else than one of Python's own exceptions", "raise ValueError(...)")
        args = call.args if call else []
        if any(not isinstance(a, ast.Constant) for a in args) or len(args) > 1 or (call and call.keywords):
            raise self.refuse("an exception with something else than one text", 'raise ValueError("...")')
        self.emit(Raise(kind.__name__, str(args[0].value) if args else ""))  # type: ignore[attr-defined]

    def on_Return(self, s: ast.Return) -> None:
        self.frame.result = NONE if s.value is None else self.expr(s.value)
        self.frame.returned = True
        if not self.frame.path:
            self.return_values(self.frame.result)

    def return_values(self, value: Any) -> None:
        """Return the scalars and arrays of a value; the structure around them is kept in `structure`."""
        leaves: list[Operand] = []

        def take(v: Any) -> Any:
            if isinstance(v, tuple):
                parts = [take(x) for x in v]
                return type(v)(*parts) if hasattr(v, "_fields") else tuple(parts)
            if v is NONE:
                return None
            if isinstance(v, Object):
                raise self.refuse(f"{describe(self, v)} as a result")
            leaf = self.force(v, "result") if isinstance(v, Lazy) else v
            if is_field(v):
                self.returned_parts.append((leaf, v.part_of))
            number = len(leaves)
            if not self.is_array(leaf) and self.wanted_result and self.type_of(leaf) != self.wanted_result[number]:
                leaf = self.op(f"cast:{self.wanted_result[number].dtype}", leaf)
            if not isinstance(leaf, str):
                self.emit(Op(name := self.program.new("result", self.type_of(leaf)), "id", (leaf,)))
                leaf = name
            leaves.append(leaf)
            return self.program.types[leaf]

        structure = take(value)
        if self.structures and self.structures[0] != structure:
            self.widen_result(self.structures[0], structure)
            raise self.refuse("results of different structures or types on different paths", "one kind of result")
        self.structures.append(structure)
        if leaves:
            self.emit(Return(tuple(leaves)))

    def widen_result(self, a: Any, b: Any) -> None:
        """Start again with results that hold both, if they differ in the types of numbers only."""
        types = [list(flat_types(s)) for s in (a, b)]
        if not isinstance(a, type(b)) or [t.ndim for t in types[0]] != [t.ndim for t in types[1]]:
            return
        if any(s != t and (s.is_array or "bool" in (s.dtype, t.dtype)) for s, t in zip(*types, strict=True)):
            return
        self.wanted_result[:] = [s if s == t else ops.common(s, t) for s, t in zip(*types, strict=True)]
        raise Restart

    # Results in memory of their own where NumPy's are views, and of what.
    returned_parts: list[tuple[str, str]]
    # The types of the leaves of the result, where the paths do not agree on them.
    wanted_result: list[Type]

    # The structures of the results, with types as leaves.
    structures: list[Any]

    def on_FunctionDef(self, s: ast.FunctionDef) -> None:
        if s.decorator_list:
            raise self.refuse("a decorator inside a compiled function", "the function without it")
        if any(isinstance(n, ast.Nonlocal | ast.Global) for n in ast.walk(s)):
            raise self.refuse("a function defined inside that binds names outside of it", "arguments and results")
        self.bind(s.name, self.closure(s))

    # --- assignment ----------------------------------------------------------------------------------------------

    def on_Assign(self, s: ast.Assign) -> None:
        first = s.targets[0]
        if isinstance(first, ast.Tuple) and isinstance(s.value, ast.Tuple) and self.swap(first, s.value):
            return
        before = len(self.block)
        value = self.expr(s.value)
        if len(s.targets) > 1 and isinstance(value, Lazy):
            value = self.in_memory(value)
        if len(s.targets) == 1 and isinstance(s.targets[0], ast.Name):
            value = self.renamed(value, s.targets[0].id, before)
        if len(s.targets) == 1 and isinstance(first, ast.Name):
            self.wanted = s.wanted  # type: ignore[attr-defined]
        for target in s.targets:
            self.assign(target, value)
        self.wanted = None

    def on_AnnAssign(self, s: ast.AnnAssign) -> None:
        if s.value is not None:
            self.assign(s.target, self.expr(s.value))

    def assign(self, target: ast.expr, value: Any) -> None:
        with self.placed(target):
            if isinstance(target, ast.Name):
                self.bind(target.id, value)
            elif isinstance(target, ast.Tuple | ast.List):
                for t, v in zip(target.elts, self.kept_parts(target, self.parts(value, target)), strict=True):
                    self.assign(t, v)
            elif isinstance(target, ast.Subscript):
                array = self.expr(target.value)
                self.assign_subscript(array, self.exprs(items_of(target.slice)), self.assignable(value))
            else:
                raise self.refuse("an assignment to an attribute", "a name, or an element of an array")

    def parts(self, value: Any, target: ast.Tuple | ast.List) -> tuple[Any, ...]:
        """The values that are unpacked."""
        if any(isinstance(t, ast.Starred) for t in target.elts):
            raise self.refuse("* on the left of an assignment", "slices")
        n = len(target.elts)
        if self.is_array(value):
            self.guard_equal(self.shape(value)[0], n, "an array unpacked into another number of names")
            array = self.in_memory(value)
            return tuple(self.subscript(array, [i]) for i in range(n))
        if not isinstance(value, tuple):
            raise self.refuse(f"unpacking {describe(self, value)}")
        if len(value) != n:
            raise self.refuse(f"{len(value)} values for {n} names")
        # Each is computed before the first name changes.
        return tuple(self.in_memory(v) if isinstance(v, Lazy) else v for v in value)

    def kept_parts(self, target: ast.Tuple | ast.List, parts: tuple[Any, ...]) -> list[Any]:
        """The parts, in memory of their own where they are in a slot that is bound anew before they are assigned."""
        kept: list[Any] = []
        slots: list[str] = []
        for t, v in zip(target.elts, parts, strict=True):
            kept.append(self.kept_from(slots, v))
            slots += [
                self.frame.slots[n.id] for n in ast.walk(t) if isinstance(n, ast.Name) and n.id in self.frame.slots
            ]
        return kept

    def kept_from(self, slots: list[str], value: Any) -> Any:
        if isinstance(value, tuple):
            parts = [self.kept_from(slots, v) for v in value]
            return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
        is_gone = self.is_array_name(value) and any(self.touches(value, slot) for slot in slots)
        return self.copied(value) if is_gone else value

    def assignable(self, value: Any) -> Any:
        """What can be stored into an array."""
        if isinstance(value, tuple):
            return functions.as_array(self, value)
        if isinstance(value, Object):
            raise self.refuse(f"{describe(self, value)} stored into an array")
        return value

    def renamed(self, value: Any, name: str, before: int) -> Any:
        """A temporary that was just computed takes the user's name, for the reader's sake.

        Args:
            before: how many statements there were before it was computed.
        """
        last = self.block[-1] if len(self.block) > before else None
        if (
            not isinstance(last, Op | Alloc)
            or last.dst != value
            or name in self.frame.cells
            or self.program.is_size(value)
        ):
            return value
        last.dst = self.program.new(name, self.program.types[value], self.program.dims.pop(value, None))
        return last.dst

    def on_AugAssign(self, s: ast.AugAssign) -> None:
        target = s.target
        if isinstance(s.op, ast.MatMult):
            raise self.refuse("@=", "x = x @ y")
        sign = OPERATORS[type(s.op)]
        if isinstance(target, ast.Subscript):
            array = self.expr(target.value)
            items = self.exprs(items_of(target.slice))
            self.assign_subscript(array, items, self.assignable(self.expr(s.value)), sign)
            return
        if not isinstance(target, ast.Name):
            raise self.refuse("an assignment to an attribute", "a name, or an element of an array")
        old = self.frame.env.get(target.id)
        if isinstance(old, InCell) and sign in "+-":
            self.add_to_cell(target.id, sign, s.value)
            return
        left = self.expr(ast.copy_location(ast.Name(target.id, ast.Load()), target))
        value = self.expr(s.value)
        if self.is_array_name(left):
            self.note_write(left)
            value = self.safe_from(left, self.assignable(value))
            if len(self.shape(value)) > len(self.shape(left)):
                raise self.refuse("an in-place operation whose result has more axes than its target")
            self.assign_elements(left, value, sign)
            return
        self.bind(target.id, self.binary(sign, left, value))

    def add_to_cell(self, name: str, sign: str, node: ast.expr) -> None:
        """`s += v`: an addition needs no look at the old value."""
        value = self.expr(node)
        if self.is_array(value) or isinstance(value, tuple | Object):
            self.bind(name, self.binary(sign, self.read_cell(name, self.frame.cells[name]), value))
            return
        cell = self.frame.cells[name]
        if self.program.types[cell] == BOOL or (cell in self.unbound and cell not in self.frame.surely):
            self.bind(name, self.binary(sign, self.read_cell(name, cell), value))
            return
        self.widen(cell, value)
        self.emit(Add(cell, value if sign == "+" else self.op("neg", value)))

    def swap(self, target: ast.Tuple, value: ast.Tuple) -> bool:
        """`a, b = b, a` of arrays in slots changes their names, not their elements. Whether that is what it was."""
        names = [t.id for t in target.elts if isinstance(t, ast.Name)]
        sources = [v.id for v in value.elts if isinstance(v, ast.Name)]
        slots = self.frame.slots
        if len(names) != len(target.elts) or sorted(names) != sorted(sources) or len(set(names)) != len(names):
            return False
        if not all(n in slots and self.frame.env.get(n) == slots[n] for n in names):
            return False
        pairs = [(slots[n], slots[v]) for n, v in zip(names, sources, strict=True) if n != v]
        for a, b in pairs:
            if self.program.types[a] != self.program.types[b]:
                return False
            for n, m in zip(self.shape(a), self.shape(b), strict=True):
                self.guard_equal(n, m, "arrays of different shapes swapped in a loop, which compile does not take")
        moved = [a for a, _ in pairs]
        for borrower in [b for b in self.borrowed if b[0] in moved]:
            self.borrowed += [(slot, *borrower[1:]) for slot in moved]
        for name in names:
            self.make_stale(slots[name], name)
        self.emit(Swap(tuple(a for a, _ in pairs), tuple(b for _, b in pairs)))
        return True


_REFUSED = {
    "With": ("`with`",),
    "Try": ("`try`", "a test before what could fail"),
    "ClassDef": ("a class defined inside a compiled function",),
    "Delete": ("`del`",),
    "Global": ("`global`", "an argument and a result"),
    "Nonlocal": ("`nonlocal`", "an argument and a result"),
    "Import": ("an import inside a compiled function", "the import at the top of the file"),
    "ImportFrom": ("an import inside a compiled function", "the import at the top of the file"),
    "Match": ("`match`", "if and elif"),
    "AsyncFor": ("`async`",),
    "AsyncWith": ("`async`",),
}
