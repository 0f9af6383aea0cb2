"""Statements: what names mean, and where paths meet.

A scalar that is bound on straight lines is just the operand that it was bound to. Only where paths meet (a loop, a
branch) does a name that is still wanted need a place that all paths write: a cell for a scalar, a slot for an array.

A slot is a buffer of its own into which every array that the name is bound to is copied. That is right as long as
nobody can tell: no write goes through a name that shares its array with another one. Where the code might tell, it is
refused (`_check_borrowed`).
"""

from __future__ import annotations

import ast
import functools
from typing import Any

from retrograde.compiler import ops
from retrograde.compiler.form import (
    BOOL,
    INT,
    Add,
    Alloc,
    At,
    Block,
    For,
    If,
    Increase,
    Op,
    Operand,
    Raise,
    Return,
    Set,
    Store,
    Swap,
    Type,
    While,
    defs,
    walk,
)
from retrograde.compiler.lower import functions
from retrograde.compiler.lower.builder import Restart
from retrograde.compiler.lower.expressions import OPERATORS, Expressions, _describe
from retrograde.compiler.lower.indexing import items_of
from retrograde.compiler.lower.values import NONE, Bound, Constant, Enumerated, InCell, Lazy, Range, Stale, Zipped


class Statements(Expressions):
    # What an earlier attempt found out about cells: the type that each needs, by the place where it is made.
    hints: dict[Any, Type]
    # Slots that hold an array which another name may share: (slot, the other buffer, name, place).
    borrowed: list[tuple[str, str, str, At | None]]

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
            if isinstance(v, Constant | Bound | Range | Enumerated | Zipped):
                raise self.refuse(f"{_describe(self, v)} as a result")
            leaf = self.force(v, "result") if isinstance(v, Lazy) else v
            if not isinstance(leaf, str):
                leaf = self.program.new("result", self.type_of(v))
                self.emit(Op(leaf, "id", (v,)))
            leaves.append(leaf)
            return self.program.types[leaf]

        structure = take(value)
        if self.structures and self.structures[0] != structure:
            raise self.refuse("results of different structures or types on different paths", "one kind of result")
        self.structures.append(structure)
        if leaves:
            self.emit(Return(tuple(leaves)))

    # The structures of the results, with types as leaves.
    structures: list[Any]

    # --- assignment ----------------------------------------------------------------------------------------------

    def on_Assign(self, s: ast.Assign) -> None:
        first = s.targets[0]
        if isinstance(first, ast.Tuple) and isinstance(s.value, ast.Tuple) and self.swap(first, s.value):
            return
        before = len(self.block)
        value = self.expr(s.value)
        if len(s.targets) > 1 and isinstance(value, Lazy):
            value = self.force(value)
        if len(s.targets) == 1 and isinstance(s.targets[0], ast.Name):
            value = self.renamed(value, s.targets[0].id, before)
        for target in s.targets:
            self.assign(target, value)

    def on_AnnAssign(self, s: ast.AnnAssign) -> None:
        if s.value is not None:
            self.assign(s.target, self.expr(s.value))

    def assign(self, target: ast.expr, value: Any) -> None:
        with self.placed(target):
            if isinstance(target, ast.Name):
                self.bind(target.id, value)
            elif isinstance(target, ast.Tuple | ast.List):
                parts = self.parts(value, target)
                for t, v in zip(target.elts, parts, strict=True):
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
            array = self.force(value)
            return tuple(self.subscript(array, [i]) for i in range(n))
        if not isinstance(value, tuple):
            raise self.refuse(f"unpacking {_describe(self, value)}")
        if len(value) != n:
            raise self.refuse(f"{len(value)} values for {n} names")
        # Each is computed before the first name changes.
        return tuple(self.force(v) if isinstance(v, Lazy) else v for v in value)

    def assignable(self, value: Any) -> Any:
        """What can be stored into an array."""
        if isinstance(value, tuple):
            return functions.as_array(self, value)
        if isinstance(value, Constant | Bound):
            raise self.refuse(f"{_describe(self, value)} stored into an array")
        return value

    def bind(self, name: str, value: Any) -> None:
        """`name = value`."""
        frame = self.frame
        if name in frame.fixed:
            if value == frame.env.get(name):
                return
            raise self.refuse(
                f"{name} is {_describe(self, frame.env[name])} before a loop or branch and something else after it",
                "names of their own"
                if not isinstance(frame.env[name], Constant)
                else f"a number or an array for {name} from the start",
            )
        if isinstance(value, tuple):
            self.bind_tuple(name, value)
        elif isinstance(value, Lazy) or self.is_array_name(value):
            self.bind_array(name, value)
        elif isinstance(value, Constant | Bound | Range | Enumerated | Zipped):
            if name in frame.cells or name in frame.slots:
                raise self.refuse(
                    f"{name} is bound to a number or an array and to {_describe(self, value)}", "two names"
                )
            frame.env[name] = value
        elif name in frame.slots:
            raise self.refuse(f"{name} is bound to an array and to a number", "two names")
        else:
            frame.env[name] = self.set_cell(name, value) if name in frame.cells else value

    def bind_array(self, name: str, value: Any) -> None:
        frame = self.frame
        if name in frame.cells:
            cell = frame.cells[name]
            if cell in self.unbound:  # it was thought to be a scalar, as nothing else was known
                self.array_names.add(self.cell_keys[cell])
                raise Restart
            raise self.refuse(f"{name} is bound to a number and to an array", "two names")
        if name in frame.slots:
            if self.is_array_name(value) and self.is_reachable(value):
                self.borrowed.append((frame.slots[name], self.root(value), name, self.at))
            self.rebind(name, value)
        else:
            frame.env[name] = self.force(value, name)

    def bind_tuple(self, name: str, value: tuple[Any, ...]) -> None:
        # The parts of a tuple that changes along a loop would each need a place; names of their own have one.
        if name in self.frame.cells or name in self.frame.slots:
            raise self.refuse(f"the tuple {name} is bound in a loop or branch and used after it", "names for its parts")
        parts = [self.force(v) if isinstance(v, Lazy) else v for v in value]
        self.frame.env[name] = type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)

    def is_reachable(self, array: str) -> bool:
        """Whether some name of the user's means this array or a part of it."""
        root = self.root(array)
        return root in self.program.params or any(
            self.touches(v, root) for frame in self.frames for v in frame.env.values()
        )

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

    def set_cell(self, name: str, value: Operand) -> Operand:
        """Write a scalar into the cell of its name; the cell's type must hold it."""
        cell = self.frame.cells[name]
        self.widen(cell, value)
        value = self.cast(value, self.program.types[cell])
        self.emit(Set(cell, value))
        if cell in self.unbound:
            self.emit(Set(self.unbound[cell], True))
            self.frame.surely.add(cell)
        return value

    def widen(self, cell: str, value: Operand) -> None:
        type = self.program.types[cell]
        wanted = ops.common(type, self.type_of(value))
        if wanted != type:
            self.hints[self.cell_keys[cell]] = wanted
            raise Restart

    cell_keys: dict[str, Any]

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
            self.written.add(self.root(left))
            value = self.safe_from(left, self.assignable(value))
            if len(self.shape(value)) > len(self.shape(left)):
                raise self.refuse("an in-place operation whose result has more axes than its target")
            self.assign_elements(left, value, sign)
            return
        self.bind(target.id, self.binary(sign, left, value))

    def add_to_cell(self, name: str, sign: str, node: ast.expr) -> None:
        """`s += v`: an addition needs no look at the old value."""
        value = self.expr(node)
        if self.is_array(value) or isinstance(value, tuple | Constant | Bound):
            self.bind(name, self.binary(sign, self.read_cell(name, self.frame.cells[name]), value))
            return
        cell = self.frame.cells[name]
        if self.program.types[cell] == BOOL or (cell in self.unbound and cell not in self.frame.surely):
            self.bind(name, self.binary(sign, self.read_cell(name, cell), value))
            return
        self.widen(cell, value)
        self.emit(Add(cell, value if sign == "+" else self.op("neg", value)))

    # --- slots ---------------------------------------------------------------------------------------------------

    def rebind(self, name: str, value: Any) -> None:
        """`name = value` for a name whose array lives in a slot: the elements are copied into the slot."""
        slot = self.frame.slots[name]
        if value == slot:
            return
        if len(self.shape(value)) != len(self.shape(slot)):
            raise self.refuse(f"{name} is bound to arrays of different numbers of axes", "two names")
        if ops.common(self.element_type(value), self.element_type(slot)) != self.element_type(slot):
            raise self.refuse(
                f"{name} is bound to an array of {self.element_type(slot)} and to one of {self.element_type(value)}",
                "one dtype from the start",
            )
        for n, m in zip(self.shape(slot), self.shape(value), strict=True):
            self.guard_equal(n, m, f"{name} changes its shape in a loop or branch, which compile does not take")
        value = self.safe_from(slot, value)
        self.make_stale(slot, name)
        self.nest(self.shape(slot), lambda index: self.store(slot, index, self.element(value, index)))
        self.frame.env[name] = slot

    def make_stale(self, slot: str, owner: str) -> None:
        """Other names for an array that is about to be bound anew no longer mean what they meant."""
        for other, value in self.frame.env.items():
            if other != owner and self.touches(value, slot):
                self.frame.env[other] = Stale(owner, self.at)

    def touches(self, value: Any, slot: str) -> bool:
        if isinstance(value, tuple):
            return any(self.touches(v, slot) for v in value)
        if isinstance(value, Bound):
            return self.touches(value.array, slot)
        return self.is_array_name(value) and self.root(value) == self.root(slot)

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

    def check_borrowed(self) -> None:
        """Refuse writes through names that share an array with a name that is bound anew in a loop."""
        for slot, other, name, at in self.borrowed:
            if {slot, other} & self.written:
                self.at = at
                raise self.refuse(
                    f"{name} shares its array with another name here, is bound anew in a loop or branch, and one of "
                    "them is written into",
                    f"{name} = ….copy(), so that it has an array of its own",
                )

    # --- where paths meet ----------------------------------------------------------------------------------------

    def open_merge(self, node: Any) -> tuple[Any, ...]:
        """Give every name that must survive a loop or branch its place. Returns what `close_merge` puts back."""
        frame = self.frame
        saved = dict(frame.cells), dict(frame.slots), frame.fixed
        for name in sorted(node.assigned & node.wanted):
            value: Any = frame.env.get(name)
            if name in frame.cells or name in frame.slots or isinstance(value, Stale):
                continue
            if isinstance(value, Constant | tuple | Bound | Range | Enumerated | Zipped):
                frame.fixed = frame.fixed | {name}
            elif self.is_array_name(value):
                self.make_slot(name, value)
            elif value is not None or self.key_of(name, node) not in self.array_names:
                self.make_cell(name, value, node)
        for name in node.assigned & frame.slots.keys():
            self.make_stale(frame.slots[name], name)
        return saved

    def key_of(self, name: str, node: Any) -> Any:
        return self.frame.path, name, node.lineno, node.col_offset, isinstance(node, ast.If)

    def close_merge(self, node: Any, saved: tuple[Any, ...]) -> None:
        """Behind a loop or branch: names mean what is in their places; those without a place are gone."""
        frame = self.frame
        cells, slots, fixed = saved
        for name in sorted(node.assigned):
            if name in frame.slots:
                frame.env[name] = frame.slots[name]
            elif name in cells:
                frame.env[name] = InCell(frame.cells[name])
            elif name in frame.cells:
                cell = frame.cells[name]
                is_bound = cell not in self.unbound or cell in frame.surely or name in frame.trusted
                frame.env[name] = self.get(cell) if is_bound else InCell(cell)
            elif name not in frame.fixed:
                frame.env.pop(name, None)
        # The buffer of a slot is the array of its name from now on.
        frame.cells, frame.slots, frame.fixed = cells, slots, fixed

    def make_cell(self, name: str, value: Operand | None, node: Any) -> None:
        key = self.key_of(name, node)
        flag: Operand = False
        if isinstance(value, InCell):  # perhaps bound by an earlier loop or branch
            flag = self.get(self.unbound[value.cell])
            value = self.get(value.cell)
        type = BOOL if value is None else self.type_of(value)
        type = INT if type.kind in "iu" else type
        if key in self.hints:
            type = ops.common(type, self.hints[key])
        cell = self.program.new(name, type)
        self.cell_keys[cell] = key
        start: Operand = {"b": False, "f": 0.0}.get(type.kind, 0) if value is None else value
        self.emit(Set(cell, self.cast(start, type)))
        self.frame.cells[name] = cell
        self.frame.env[name] = InCell(cell)
        if value is None or flag is not False:
            self.unbound[cell] = self.new_cell(f"{name}_is_bound", BOOL, flag)

    # Names that were first thought to be scalars: by the places where they would get their cells.
    array_names: set[Any]

    def make_slot(self, name: str, value: str) -> None:
        self.frame.env.pop(name)
        if self.root(value) != value or self.is_reachable(value):
            slot = self.copied(value, name)
            self.borrowed.append((slot, self.root(value), name, self.at))
        else:
            slot = value  # nobody else knows it
        self.frame.slots[name] = slot
        self.frame.env[name] = slot

    # --- branches ------------------------------------------------------------------------------------------------

    def on_If(self, s: Any) -> None:
        cond = self.truth_of(s.test)
        if not isinstance(cond, str):
            self.statements(s.body if cond else s.orelse)
            return
        frame = self.frame
        saved = self.open_merge(s)
        env = dict(frame.env)
        blocks, results = [], []
        surely = frame.surely
        paths: list[set[str]] = []
        for body in (s.body, s.orelse):
            frame.env = dict(env)
            frame.surely = set(surely)
            frame.returned = False
            blocks.append(self.inside(functools.partial(self.statements, body)))
            results.append((frame.returned, frame.result, frame.env))
            paths.append(frame.surely)
        frame.surely = paths[0] & paths[1]
        made = If(cond, blocks[0], blocks[1])
        self.emit(made)
        then_returned, else_returned = (r[0] for r in results)
        if frame.path and (then_returned or else_returned):
            self.join_results(made, results)
        frame.returned = then_returned or else_returned  # what follows stands in the other branch already
        if then_returned != else_returned and not frame.path:
            # The other path falls off the end of the function.
            made_block = made.orelse if then_returned else made.then
            outer, self.block = self.block, made_block
            self.return_values(NONE)
            self.block = outer
        frame.env = _joined(env, [e for _, _, e in results])
        self.close_merge(s, saved)

    def join_results(self, made: If, results: list[Any]) -> None:
        """An inlined function that returns on both sides of a branch: its scalar results meet in cells."""
        values = [result if returned else NONE for returned, result, _ in results]

        def join(a: Any, b: Any) -> Any:
            if isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b):
                parts = [join(x, y) for x, y in zip(a, b, strict=True)]
                return type(a)(*parts) if hasattr(a, "_fields") else tuple(parts)
            if a is b and isinstance(a, Constant):
                return a
            if a == b and self.is_array_name(a):
                return a
            if any(self.is_array(v) or isinstance(v, tuple | Constant | Bound) for v in (a, b)):
                raise self.refuse(
                    "a called function that returns different arrays or kinds of results on its paths",
                    "one array that is written on every path",
                )
            cell = self.program.new("result", ops.common(self.type_of(a), self.type_of(b)))
            for block, value in ((made.then, a), (made.orelse, b)):
                block.append(Set(cell, self.cast(value, self.program.types[cell]), at=self.at))
            return InCell(cell)

        self.frame.result = self.read_cells(join(*values))

    def read_cells(self, value: Any) -> Any:
        if isinstance(value, tuple):
            parts = [self.read_cells(v) for v in value]
            return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
        return self.get(value.cell) if isinstance(value, InCell) else value

    # --- loops ---------------------------------------------------------------------------------------------------

    def on_While(self, s: Any) -> None:
        saved = self.open_merge(s)
        env, surely = dict(self.frame.env), set(self.frame.surely)
        cond: list[Operand] = []
        test = self.inside(lambda: cond.append(self.truth_of(s.test)))
        self.check_test(test, s.test)
        self.frame.env, self.frame.surely = dict(env), set(surely)
        body = self.inside(lambda: self.statements(s.body))
        self.frame.env = _joined(env, [env, self.frame.env])
        self.frame.surely = surely
        self.emit(While(test, cond[0], body))
        self.close_merge(s, saved)

    def check_test(self, test: Block, node: ast.expr) -> None:
        """Refuse a test that writes into arrays that are not its own."""
        own = {name for s in walk(test) for name in defs(s)}
        for s in walk(test):
            if isinstance(s, Store | Increase | Swap) and (isinstance(s, Swap) or self.root(s.array) not in own):
                with self.placed(node):
                    raise self.refuse(
                        "the test of a `while` writes into an array",
                        "while True: with the call and an `if …: break` inside",
                    )

    def on_For(self, s: Any) -> None:
        items = self.expr(s.iter)
        if isinstance(items, tuple):
            self.unroll(s, items)
            return
        if isinstance(items, Range) and items.step == 1 and type(items.step) is int and not getattr(s, "broke", ""):
            low, high, item = items.low, items.high, _itself
        else:
            low = 0
            high, item = self.iteration(items, s.iter)
        saved = self.open_merge(s)
        env, surely = dict(self.frame.env), set(self.frame.surely)
        if getattr(s, "broke", ""):
            self.for_with_break(s, high, item)
        else:
            var = self.program.new(s.target.id if isinstance(s.target, ast.Name) else "k", INT)

            def body() -> None:
                self.assign(s.target, item(var))
                self.statements(s.body)

            self.emit(For(var, low, high, self.inside(body)))
        self.frame.surely = surely
        self.frame.env = _joined(env, [env, self.frame.env])
        self.close_merge(s, saved)

    def iteration(self, items: Any, node: ast.expr) -> tuple[Operand, Any]:
        """How often a loop runs, and what its target is bound to in iteration k, counted from 0."""
        with self.placed(node):
            if isinstance(items, Range):
                count = functions.trip_count(self, items.low, items.high, items.step)
                return count, lambda k: self.op("+", self.op("*", k, items.step), items.low)
            if isinstance(items, Enumerated):
                count, inner = self.iteration(items.items, node)
                start = items.start
                return count, lambda k: (self.op("+", k, start), inner(k))
            if isinstance(items, Zipped):
                pairs = [self.iteration(i, node) for i in items.items]
                count = pairs[0][0]
                for other, _ in pairs[1:]:
                    count = count if other == count else self.op("min", count, other)
                return count, lambda k: tuple(item(k) for _, item in pairs)
            if self.is_array(items):
                array = self.force(items)
                return self.shape(array)[0], lambda k: self.subscript(array, [k])
            raise self.refuse(f"a loop over {_describe(self, items)}", "for i in range(n)")

    def for_with_break(self, s: Any, count: Operand, item: Any) -> None:
        """A loop that may be left early: a `while` that counts."""
        counter = self.new_cell("k", INT, 0)
        broke = self.frame.cells[s.broke]
        going: list[Operand] = []

        def test() -> None:
            more = self.op("<", self.get(counter), count)
            going.append(self.op("and", self.op("not", self.get(broke)), more))

        def body() -> None:
            k = self.get(counter)
            self.emit(Add(counter, 1))
            self.assign(s.target, item(k))
            self.statements(s.body)

        tested = self.inside(test)
        self.emit(While(tested, going[0], self.inside(body)))

    def unroll(self, s: Any, items: tuple[Any, ...]) -> None:
        """A loop over a tuple: its body once for each member."""
        if getattr(s, "broke", ""):
            raise self.refuse("a break out of a loop over a tuple", "an array instead of the tuple")
        for value in items:
            self.assign(s.target, value)
            self.statements(s.body)


def _itself(k: Operand) -> Operand:
    return k


def _joined(before: dict[str, Any], paths: list[dict[str, Any]]) -> dict[str, Any]:
    """What names mean where paths meet: what they meant before, unless a path made that stale."""
    joined = dict(before)
    for path in paths:
        for name, value in path.items():
            if isinstance(value, Stale):
                joined[name] = value
    return joined


_REFUSED = {
    "With": ("`with`",),
    "Try": ("`try`", "a test before what could fail"),
    "FunctionDef": ("a function defined inside a compiled function", "a function of its own, outside"),
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
