"""Jumps become guards: afterwards `return` stands only where a function ends, and `break` and `continue` nowhere.

    for i in range(n):                      broke = False
        if x[i] < 0: break         →        for i in range(n) while not broke:
        s += x[i]                               if x[i] < 0: broke = True
                                                else: s += x[i]

What follows a branch that always jumps goes into the other branch; only where neither branch always jumps does a flag
guard what follows. A `for` that may be left early carries the name of its flag in the attribute `broke`; lowering
makes a loop with a test of it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

JUMPS = (ast.Return, ast.Break, ast.Continue)
LOOPS = (ast.For, ast.While)


def normalise(tree: ast.FunctionDef) -> tuple[list[ast.stmt], list[str]]:
    """The body of a function without jumps, and the names in which results are kept until it ends."""
    normaliser = _Normaliser(tree)
    return normaliser.body(), normaliser.results


class _Normaliser:
    def __init__(self, tree: ast.FunctionDef) -> None:
        self.tree = tree
        self.taken = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)} | {
            a.arg for a in ast.walk(tree) if isinstance(a, ast.arg)
        }
        self.returned = ""
        self.results: list[str] = []
        # Where every return gives a tuple of one length, each part is kept under a name of its own.
        widths = {len(n.value.elts) if isinstance(n.value, ast.Tuple) else -1 for n in _returns_of(tree)}
        self.width = widths.pop() if len(widths) == 1 else -1

    def body(self) -> list[ast.stmt]:
        statements = self.sequence(list(self.tree.body), "", "")
        return ([_assign(self.returned, False, self.tree)] if self.returned else []) + statements

    def name(self, base: str) -> str:
        name, number = base, 1
        while name in self.taken:
            number += 1
            name = f"{base}_{number}"
        self.taken.add(name)
        return name

    def sequence(self, statements: list[ast.stmt], broke: str, skip: str) -> list[ast.stmt]:
        """The statements without jumps.

        Args:
            broke: the flag that leaves the innermost loop; empty outside of loops.
            skip: the flag that a jump must set because statements follow that it passes over; or empty.
        """
        out: list[ast.stmt] = []
        for i, s in enumerate(statements):
            rest = statements[i + 1 :]
            if isinstance(s, JUMPS):
                return out + self.jump(s, broke, skip)
            if isinstance(s, ast.If) and _jumps(s):
                return out + self.branch(s, rest, broke, skip)
            if isinstance(s, ast.If):
                s = _like(s, body=self.sequence(s.body, broke, skip), orelse=self.sequence(s.orelse, broke, skip))
            elif isinstance(s, LOOPS):
                before, s, after = self.loop(s, broke)
                out += before
                if after:
                    out.append(s)
                    return out + self.sequence(after + rest, broke, skip)
            out.append(s)
        return out

    def jump(self, s: ast.stmt, broke: str, skip: str) -> list[ast.stmt]:
        set_skip = [_assign(skip, True, s)] if skip else []
        if isinstance(s, ast.Continue):
            return set_skip or [_at(ast.Pass(), s)]
        if isinstance(s, ast.Break):
            return [_assign(broke, True, s), *set_skip]
        assert isinstance(s, ast.Return)
        if not broke and not skip:
            return [s]
        return [*self.keep_result(s), *([_assign(broke, True, s)] if broke else []), *set_skip]

    def keep_result(self, s: ast.Return) -> list[ast.stmt]:
        """A return from inside a loop: the result is kept until the function ends."""
        if not self.returned:
            self.returned = self.name("returned")
            self.results = [self.name("result") for _ in range(max(self.width, 1))]
        values = s.value.elts if self.width > 0 else [s.value or _at(ast.Constant(None), s)]  # type: ignore[union-attr]
        kept = [
            _at(ast.Assign([_at(ast.Name(r, ast.Store()), s)], v), s) for r, v in zip(self.results, values, strict=True)
        ]
        return [*kept, _assign(self.returned, True, s)]

    def kept_result(self, s: ast.AST) -> ast.Return:
        names: list[ast.expr] = [_read(r, s) for r in self.results]
        value = _at(ast.Tuple(names, ast.Load()), s) if self.width > 0 else names[0]
        return _at(ast.Return(value), s)  # type: ignore[no-any-return]

    def branch(self, s: ast.If, rest: list[ast.stmt], broke: str, skip: str) -> list[ast.stmt]:
        then_jumps, else_jumps = _always_jumps(s.body), _always_jumps(s.orelse)
        if then_jumps or else_jumps:
            then = s.body if then_jumps else s.body + rest
            orelse = s.orelse if else_jumps else s.orelse + rest
            return [
                _like(
                    s,
                    body=self.sequence(then, broke, skip) or [_at(ast.Pass(), s)],
                    orelse=self.sequence(orelse, broke, skip),
                )
            ]
        flag = skip or self.name("skip")
        guarded = _like(s, body=self.sequence(s.body, broke, flag), orelse=self.sequence(s.orelse, broke, flag))
        before = [] if skip else [_assign(flag, False, s)]
        if not broke and not skip and _returns(s):
            # At the level of the function itself the flag says that the result is there.
            left: list[ast.stmt] = [self.kept_result(s)]
            return [*before, guarded, _at(ast.If(_read(flag, s), left, self.sequence(rest, broke, skip)), s)]
        following = self.sequence(rest, broke, flag if skip else "")
        if not following:
            return [*before, guarded]
        return [*before, guarded, _at(ast.If(_at(ast.UnaryOp(ast.Not(), _read(flag, s)), s), following, []), s)]

    def loop(self, s: Any, outer: str) -> tuple[list[ast.stmt], ast.stmt, list[ast.stmt]]:
        """A loop: what stands before it, itself, and what must follow it."""
        returns = any(_returns(x) for x in s.body)
        if not returns and not any(_breaks(x) for x in s.body):
            body = self.sequence(s.body, " ", "")  # no statement of the body names the flag
            return [], _like(s, body=body or [_at(ast.Pass(), s)], orelse=[]), list(s.orelse)
        broke = self.name("broke")
        made = _like(s, body=self.sequence(s.body, broke, "") or [_at(ast.Pass(), s)], orelse=[])
        if isinstance(s, ast.While):
            made.test = _at(ast.BoolOp(ast.And(), [_at(ast.UnaryOp(ast.Not(), _read(broke, s)), s), s.test]), s)
        else:
            made.broke = broke
        after: list[ast.stmt] = []
        if returns:
            leave = _at(ast.Break(), s) if outer else self.kept_result(s)
            if _never_ends(s):
                return [_assign(broke, False, s)], made, [leave]
            after.append(_at(ast.If(_read(self.returned, s), [leave], []), s))
        if s.orelse:
            after.append(_at(ast.If(_at(ast.UnaryOp(ast.Not(), _read(broke, s)), s), list(s.orelse), []), s))
        return [_assign(broke, False, s)], made, after


def _at(node: Any, like: ast.AST) -> Any:
    return ast.copy_location(node, like)


def _like(node: Any, **fields: Any) -> Any:
    """A copy of a node with other fields."""
    return ast.copy_location(type(node)(**{**dict(ast.iter_fields(node)), **fields}), node)


def _read(name: str, like: ast.AST) -> ast.Name:
    return _at(ast.Name(name, ast.Load()), like)


def _assign(name: str, value: bool, like: ast.AST) -> ast.stmt:
    return _at(ast.Assign([_at(ast.Name(name, ast.Store()), like)], _at(ast.Constant(value), like)), like)


def _children(s: ast.stmt) -> list[ast.stmt]:
    return [child for child in ast.iter_child_nodes(s) if isinstance(child, ast.stmt)]


def _jumps(s: ast.stmt) -> bool:
    """Whether a statement may jump out of itself."""
    if isinstance(s, LOOPS):
        # What stands behind a loop's `else` is outside of it.
        return _returns(s) or any(map(_jumps, s.orelse))
    if isinstance(s, ast.FunctionDef):
        return False
    return isinstance(s, JUMPS) or any(_jumps(child) for child in _children(s))


def _breaks(s: ast.stmt) -> bool:
    """Whether a statement may leave the loop in whose body it stands."""
    inside = s.orelse if isinstance(s, LOOPS) else _children(s)
    return isinstance(s, ast.Break) or any(map(_breaks, inside))


def _returns(s: ast.stmt) -> bool:
    return not isinstance(s, ast.FunctionDef) and any(True for _ in _returns_of(s))


def _returns_of(s: ast.AST) -> Iterator[ast.Return]:
    """The `return`s in a statement or function, but for those of functions that are defined inside."""
    if isinstance(s, ast.Return):
        yield s
    for child in ast.iter_child_nodes(s):
        if isinstance(child, ast.stmt) and not isinstance(child, ast.FunctionDef):
            yield from _returns_of(child)


def _never_ends(s: ast.stmt) -> bool:
    """Whether a loop is left by `return` or an error alone."""
    if not isinstance(s, ast.While) or not isinstance(s.test, ast.Constant) or not s.test.value:
        return False
    return not any(_breaks(x) for x in s.body)


def _always_jumps(statements: list[ast.stmt]) -> bool:
    if not statements:
        return False
    last = statements[-1]
    return (
        isinstance(last, (*JUMPS, ast.Raise))
        or _never_ends(last)
        or (isinstance(last, ast.If) and _always_jumps(last.body) and _always_jumps(last.orelse))
    )
