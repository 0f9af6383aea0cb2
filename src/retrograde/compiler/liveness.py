"""Which names are still wanted at each loop and branch: only those must survive where paths meet.

What a function defined inside reads may be read whenever that is called, and so is wanted everywhere.

Afterwards every `for`, `while` and `if` of a normalised body has the attributes

assigned   the names that are bound somewhere inside of it
wanted     for a branch the names that may be read after it; for a loop also those that its next iteration may read

and every assignment the names that may be `wanted` after it.
"""

from __future__ import annotations

import ast
import functools
from typing import Any


def find_live_names(body: list[ast.stmt]) -> None:
    inner = (f for s in body for f in ast.walk(s) if isinstance(f, ast.FunctionDef | ast.Lambda))
    _Liveness(frozenset(name for f in inner for name in names_read(f))).before(body, frozenset())


def names_read(node: ast.AST | None) -> set[str]:
    if node is None:
        return set()
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}


def names_bound(statements: list[ast.stmt]) -> set[str]:
    """The names that the statements bind. `x[i] = …` binds nothing; `x += …` does."""
    return {name for s in statements for name in _bound(s)}


def names_bound_anew(node: ast.For) -> set[str]:
    """The names to which a loop may give other arrays; `x += …` changes the array that `x` means."""
    return _bound(node, in_place=False)


def _bound(node: ast.AST, in_place: bool = True) -> set[str]:
    found: set[str] = set()
    waiting = [node]
    while waiting:
        n = waiting.pop()
        if isinstance(n, ast.Name):
            if isinstance(n.ctx, ast.Store):
                found.add(n.id)
        elif isinstance(n, ast.FunctionDef):
            found.add(n.name)  # its own names are its own
        elif not (isinstance(n, ast.Lambda) or (isinstance(n, ast.AugAssign) and not in_place)):
            waiting += ast.iter_child_nodes(n)
    return found


class _Liveness:
    """Goes through a body from its end; `always` are the names that are wanted everywhere."""

    def __init__(self, always: frozenset[str]) -> None:
        self.always = always
        # Loops are gone through again and again.
        self.bound = functools.cache(_bound)
        self.read = functools.cache(lambda node: frozenset(names_read(node)))

    def before(self, statements: list[ast.stmt], after: frozenset[str]) -> frozenset[str]:
        """The names that may be read from the start of the statements on, if `after` may be read behind them."""
        live = after
        for s in reversed(statements):
            live = self.before_one(s, live) | self.always
        return live

    def before_one(self, s: Any, after: frozenset[str]) -> frozenset[str]:
        if isinstance(s, ast.If):
            self.note(s, after)
            return self.before(s.body, after) | self.before(s.orelse, after) | self.read(s.test)
        if isinstance(s, ast.For | ast.While):
            return self.before_loop(s, after)
        if isinstance(s, ast.Return):
            return self.read(s.value)
        if isinstance(s, ast.Assign):
            s.wanted = after | self.always  # type: ignore[attr-defined]
        live = (after - self.bound(s)) | self.read(s)
        return live | {s.target.id} if isinstance(s, ast.AugAssign) and isinstance(s.target, ast.Name) else live

    def before_loop(self, s: Any, after: frozenset[str]) -> frozenset[str]:
        is_for = isinstance(s, ast.For)
        targets = self.bound(s.target) if is_for else set()
        test = frozenset() if is_for else self.read(s.test)
        if getattr(s, "broke", ""):
            test = test | {s.broke}
        head = after | test
        for _ in range(2):  # once more, for what an iteration reads of the one before
            head = head | (self.before(s.body, head) - targets)
        self.note(s, head)
        return head | (self.read(s.iter) if is_for else set())

    def note(self, s: Any, wanted: frozenset[str]) -> None:
        s.assigned, s.wanted = set(self.bound(s)), wanted | self.always
