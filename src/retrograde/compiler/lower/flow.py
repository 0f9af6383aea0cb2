"""Branches and loops."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Sequence
from typing import Any

from retrograde.compiler import ops
from retrograde.compiler.form import Add, Block, For, If, Increase, Index, Op, Set, Store, Swap, View, While
from retrograde.compiler.known import Constant
from retrograde.compiler.liveness import names_bound_anew
from retrograde.compiler.lower import functions
from retrograde.compiler.lower.builder import NotYetKnown
from retrograde.compiler.lower.descriptions import describe
from retrograde.compiler.lower.statements import Statements
from retrograde.compiler.lower.values import (
    NONE,
    Enumerated,
    InCell,
    Object,
    PerhapsBound,
    Places,
    Range,
    Stale,
    Zipped,
    is_field,
)
from retrograde.compiler.types import BOOL, INT, Operand
from retrograde.compiler.walks import defs, names_in, uses, walk

Seen = Sequence[Sequence[Any]]
"""For each side of a branch the values that names have."""


class Flow(Statements):
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
            blocks.append(self.side(functools.partial(self.statements, body)))
            results.append((frame.returned, frame.result, frame.env))
            paths.append(frame.surely)
        frame.surely = paths[0] & paths[1]
        made = If(cond, blocks[0], blocks[1], at=self.at)
        then_returned, else_returned = (r[0] for r in results)
        joined: Any = None
        born: dict[str, str] = {}
        if frame.path and (then_returned or else_returned):
            values = [result if returned else NONE for returned, result, _ in results]
            joined = self.joined(made, values[0], values[1], "result", [self.seen_outside()] * 2)
        elif not (then_returned or else_returned):
            born = self.born_in(made, s, env, [e for _, _, e in results])
        self.emit(made)
        if joined is not None:
            frame.result = self.read_cells(joined)
        frame.returned = then_returned or else_returned  # what follows stands in the other branch already
        if then_returned != else_returned and not frame.path:
            # The other path falls off the end of the function.
            made_block = made.orelse if then_returned else made.then
            outer, self.block = self.block, made_block
            self.return_values(NONE)
            self.block = outer
        frame.env = _joined(env, [e for _, _, e in results])
        self.close_merge(s, saved)
        frame.env |= born

    def side(self, body: Callable[[], Any]) -> Block:
        """One side of a branch. One that calls a function whose result is not known yet counts as one that returns."""
        made = self.attempted(body)
        if made is None:
            if self.frame.path:
                raise NotYetKnown
            self.frame.returned = True
        return made or []

    def joined(self, made: If, a: Any, b: Any, base: str, seen: Seen) -> Any:
        """One value for those of the two sides of a branch: scalars meet in cells, arrays in a new one.

        Args:
            seen: for each side the names by which an array can still be seen.
        """
        if isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b):
            parts = [self.joined(made, x, y, base, seen) for x, y in zip(a, b, strict=True)]
            return type(a)(*parts) if hasattr(a, "_fields") else tuple(parts)
        if (a is b and isinstance(a, Constant)) or (self.is_array_name(a) and a == b):
            return a
        if self.is_array(a) and self.is_array(b):
            return self.joined_arrays(made, a, b, base, seen)
        if any(self.is_array(v) or isinstance(v, tuple | Object) for v in (a, b)):
            raise self.refuse("results of different kinds on the two sides of a branch", "one kind of result")
        cell = self.program.new(base, ops.common(self.type_of(a), self.type_of(b)))
        for block, value in ((made.then, a), (made.orelse, b)):
            block.append(Set(cell, self.cast(value, self.program.types[cell]), at=self.at))
        return InCell(cell)

    def joined_arrays(self, made: If, a: Any, b: Any, base: str, seen: Seen) -> str:
        """An array in front of a branch, into which each side copies its own."""
        shapes = self.shape(a), self.shape(b)
        self.compute_before((made.then, made.orelse), set(names_in(shapes)))
        inside = {name for s in walk([made]) for name in defs(s)}
        if len(shapes[0]) != len(shapes[1]) or self.element_type(a) != self.element_type(b):
            raise self.refuse(
                f"{base} is an array of {len(shapes[0])} axes of {self.element_type(a)} on one side of a branch, of "
                f"{len(shapes[1])} axes of {self.element_type(b)} on the other",
                "arrays of one kind",
            )
        if inside & set(names_in(shapes)):
            raise self.refuse(
                f"{base} is bound to an array whose size is only known inside of a branch, and read after it",
                f"{base} = np.empty(shape) before it, and {base}[:] = … inside",
            )
        shape = tuple(self.op("where", made.cond, n, m) if n != m else n for n, m in zip(*shapes, strict=True))
        array = self.alloc(base, shape, self.element_type(a))
        for block, value, names in zip((made.then, made.orelse), (a, b), seen, strict=True):
            if is_field(value):
                self.note_detached(array, value.part_of)
            elif self.is_array_name(value) and self.is_seen(value, names):
                self.note_detached(array, value)
            outer, self.block = self.block, block
            self.nest(self.shape(value), functools.partial(self.copy_element, array, value))
            self.block = outer
        return array

    def compute_before(self, blocks: tuple[Block, ...], names: set[str], counter: str = "") -> None:
        """Move what computes some names in front of a branch or loop, if that is nothing but sizes and slices."""
        for block in blocks:
            wanted = set(names)
            for s in reversed(block):
                if wanted & set(defs(s)):
                    wanted |= set(uses(s))
            later = {counter, *(name for s in walk(block) for name in defs(s))}
            for s in list(block):
                is_slice = isinstance(s, View) and not any(isinstance(i, str | int) for i in s.index)
                is_free = is_slice or (isinstance(s, Op) and ops.is_cheap(s.fn))
                if wanted & set(defs(s)) and is_free and not later & set(uses(s)):
                    block.remove(s)
                    self.block.append(s)
                    later -= set(defs(s))

    def copy_element(self, array: str, value: Any, index: Index) -> None:
        self.store(array, index, self.element(value, index))

    def born_in(self, made: If, node: Any, before: dict[str, Any], paths: list[dict[str, Any]]) -> dict[str, str]:
        """The names that both sides of a branch bind to an array, and that meant nothing before it."""
        frame = self.frame
        found: dict[str, str] = {}
        for name in sorted(node.assigned & node.wanted - frame.cells.keys() - frame.slots.keys() - frame.fixed):
            values = [env.get(name) for env in paths]
            if name not in before and all(self.is_array_name(v) for v in values):
                others = [{n: v for n, v in env.items() if n != name} for env in paths]
                seen = [[*others[k].values(), *self.seen_outside()] for k in (0, 1)]
                found[name] = self.joined(made, values[0], values[1], name, seen)
        return found

    # --- loops ---------------------------------------------------------------------------------------------------

    def in_loop(self, body: Callable[[], Any]) -> Block:
        """The statements of a loop's body."""
        outer = self.before_loop
        self.before_loop = len(self.writes) if outer is None else outer
        made = self.inside(body)
        self.before_loop = outer
        return made

    def on_While(self, s: Any) -> None:
        saved = self.open_merge(s)
        env, surely = dict(self.frame.env), set(self.frame.surely)
        cond: list[Operand] = []
        test = self.in_loop(lambda: cond.append(self.truth_of(s.test)))
        self.check_test(test, s.test)
        self.frame.env, self.frame.surely = dict(env), set(surely)
        body = self.in_loop(lambda: self.statements(s.body))
        born = self.born_in_loop(body, s, env)
        self.frame.env = _joined(env, [env, self.frame.env])
        self.frame.surely = surely
        self.emit(While(test, cond[0], body))
        self.close_merge(s, saved)
        self.frame.env |= born

    def born_in_loop(
        self, body: Block, node: Any, before: dict[str, Any], counter: str = "", runs: bool = False
    ) -> dict[str, Any]:
        """The names that a loop binds to an array, that meant nothing before it and are read after it.

        Each gets an array in front of the loop, into which every iteration copies its own.

        Args:
            counter: what counts its iterations.
            runs: it is known to run at least once.
        """
        frame = self.frame
        found: dict[str, Any] = {}
        for name in sorted(node.assigned & node.wanted - frame.cells.keys() - frame.slots.keys() - frame.fixed):
            value: Any = frame.env.get(name)
            if name in before or not self.is_array_name(value):
                continue
            shape = self.shape(value)
            self.compute_before((body,), set(names_in(shape)), counter)
            if {counter, *(n for s in walk(body) for n in defs(s))} & set(names_in(shape)):
                raise self.refuse(
                    f"{name} is bound to an array in a loop, whose size may change with it, and read after it",
                    f"{name} = np.empty(shape) before it, and {name}[:] = … inside",
                )
            array = self.alloc(name, shape, self.element_type(value))
            if self.is_seen(value, [*(v for n, v in frame.env.items() if n != name), *self.seen_outside()]):
                self.note_detached(array, value)
            flag = "" if runs else self.new_cell(f"{name}_is_bound", BOOL, False)
            outer, self.block = self.block, body
            self.nest(shape, functools.partial(self.copy_element, array, value))
            if flag:
                self.emit(Set(flag, True))
            self.block = outer
            found[name] = PerhapsBound(array, flag) if flag else array
        return found

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
            high, item = self.iteration(self.lasting(items, names_bound_anew(s)), s.iter)
        saved = self.open_merge(s)
        env, surely = dict(self.frame.env), set(self.frame.surely)
        if getattr(s, "broke", ""):
            born = self.for_with_break(s, high, item, env)
        else:
            var = self.program.new(s.target.id if isinstance(s.target, ast.Name) else "k", INT)

            def body() -> None:
                self.assign(s.target, item(var))
                self.statements(s.body)

            parallel = isinstance(items, Range) and items.parallel
            made = self.in_loop(body)
            runs = not isinstance(low, str) and not isinstance(high, str) and low < high
            born = {} if parallel else self.born_in_loop(made, s, env, var, runs)
            self.emit(For(var, low, high, made, parallel=parallel))
        self.frame.surely = surely
        self.frame.env = _joined(env, [env, self.frame.env])
        self.close_merge(s, saved)
        self.frame.env |= born

    def lasting(self, items: Any, names: set[str]) -> Any:
        """What a loop runs over, where its body binds names of it anew, whose arrays are then overwritten."""
        if isinstance(items, Enumerated):
            return Enumerated(self.lasting(items.items, names), items.start)
        if isinstance(items, Zipped):
            return Zipped(tuple(self.lasting(i, names) for i in items.items))
        if not self.is_array_name(items):
            return items
        shared = [name for name in sorted(names) if self.touches(self.frame.env.get(name), items)]
        if not shared:
            return items
        own = self.copied(items)
        self.borrowed += [(own, self.root(items), name, self.at) for name in shared]
        return own

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
            if isinstance(items, Places):
                return self.size_of(items.shape), lambda k: self.place_of(k, items.shape)
            if isinstance(items, Zipped):
                pairs = [self.iteration(i, node) for i in items.items]
                count = pairs[0][0]
                for other, _ in pairs[1:]:
                    count = count if other == count else self.op("min", count, other)
                return count, lambda k: tuple(item(k) for _, item in pairs)
            if self.is_array(items):
                array = self.in_memory(items)
                return self.shape(array)[0], lambda k: self.subscript(array, [k])
            raise self.refuse(f"a loop over {describe(self, items)}", "for i in range(n)")

    def place_of(self, k: Operand, shape: tuple[Operand, ...]) -> tuple[Operand, ...]:
        """The indices of element k of an array of this shape."""
        places: list[Operand] = []
        for n in reversed(shape[1:]):
            places.append(self.op("%", k, n))
            k = self.op("//", k, n)
        return (k, *reversed(places))

    def for_with_break(self, s: Any, count: Operand, item: Any, env: dict[str, Any]) -> dict[str, Any]:
        """A loop that may be left early: a `while` that counts. Returns the arrays that are born in it."""
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
        made = self.in_loop(body)
        born = self.born_in_loop(made, s, env)
        self.emit(While(tested, going[0], made))
        return born

    def unroll(self, s: Any, items: tuple[Any, ...]) -> None:
        """A loop over a tuple: its body once for each member."""
        if getattr(s, "broke", ""):
            self.unroll_with_break(s, items)
            return
        for value in items:
            self.assign(s.target, value)
            self.statements(s.body)

    def unroll_with_break(self, s: Any, items: tuple[Any, ...]) -> None:
        """The body once for each member, as long as the loop has not been left."""
        saved = self.open_merge(s)
        env, surely = dict(self.frame.env), set(self.frame.surely)
        broke = self.frame.cells[s.broke]
        for value in items:
            going = self.op("not", self.get(broke))
            self.frame.env, self.frame.surely = dict(env), set(surely)

            def body(value: Any = value) -> None:
                self.assign(s.target, value)
                self.statements(s.body)

            self.emit(If(going, self.in_loop(body), []))
            self.frame.env = _joined(env, [env, self.frame.env])
            env = dict(self.frame.env)
        self.frame.surely = surely
        self.close_merge(s, saved)


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
