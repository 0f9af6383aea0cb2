"""Branches and loops."""

from __future__ import annotations

import ast
import functools
from typing import Any

from retrograde.compiler import ops
from retrograde.compiler.form import INT, Add, Block, For, If, Increase, Operand, Set, Store, Swap, While, defs, walk
from retrograde.compiler.lower import functions
from retrograde.compiler.lower.expressions import describe
from retrograde.compiler.lower.statements import Statements
from retrograde.compiler.lower.values import NONE, Constant, Enumerated, InCell, Object, Range, Stale, Zipped


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
            if any(self.is_array(v) or isinstance(v, tuple | Object) for v in (a, b)):
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
            raise self.refuse(f"a loop over {describe(self, items)}", "for i in range(n)")

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
