"""Which names are still wanted at each loop and branch: only those must survive where paths meet.

Afterwards every `for`, `while` and `if` of a normalised body has the attributes

assigned   the names that are bound somewhere inside of it
wanted     for a branch the names that may be read after it; for a loop also those that its next iteration may read
"""

from __future__ import annotations

import ast
from typing import Any


def find_live_names(body: list[ast.stmt]) -> None:
    _before(body, frozenset())


def names_read(node: ast.AST | None) -> set[str]:
    if node is None:
        return set()
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}


def names_bound(statements: list[ast.stmt]) -> set[str]:
    """The names that the statements bind. `x[i] = …` binds nothing; `x += …` does."""
    return {name for s in statements for name in _bound(s)}


def _bound(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def _note(s: Any, assigned: set[str], wanted: frozenset[str]) -> None:
    s.assigned, s.wanted = assigned, wanted


def _before(statements: list[ast.stmt], after: frozenset[str]) -> frozenset[str]:
    """The names that may be read from the start of the statements on, if those in `after` may be read behind them."""
    live = after
    for s in reversed(statements):
        live = _before_one(s, live)
    return live


def _before_one(s: Any, after: frozenset[str]) -> frozenset[str]:
    if isinstance(s, ast.If):
        _note(s, names_bound([s]), after)
        return _before(s.body, after) | _before(s.orelse, after) | names_read(s.test)
    if isinstance(s, ast.For | ast.While):
        targets = (
            {n.id for n in ast.walk(s.target) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
            if isinstance(s, ast.For)
            else set()
        )
        test = names_read(s.test) if isinstance(s, ast.While) else set()
        broke: str = getattr(s, "broke", "")
        if broke:
            test = test | {broke}
        head = after | test
        for _ in range(2):  # once more, for what an iteration reads of the one before
            head = head | (_before(s.body, frozenset(head)) - targets)
        _note(s, names_bound([s]), frozenset(head))
        return frozenset(head) | (names_read(s.iter) if isinstance(s, ast.For) else set())
    if isinstance(s, ast.Return):
        return frozenset(names_read(s.value))
    read = names_read(s)
    if isinstance(s, ast.AugAssign) and isinstance(s.target, ast.Name):
        read.add(s.target.id)
    return (after - _bound(s)) | read
