"""What statements use, define and hold; copies of them with other names."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Container, Iterable
from dataclasses import fields
from typing import Any

from retrograde.compiler.form import Add, Block, Set, Statement
from retrograde.compiler.types import Operand


def names_in(x: Any) -> list[str]:
    """The names in an operand, an index or a tuple of these."""
    found: list[str] = []
    _add_names(x, found)
    return found


def _add_names(x: Any, found: list[str]) -> None:
    if type(x) is str:
        found.append(x)
    elif isinstance(x, tuple):
        for y in x:
            if type(y) is str:
                found.append(y)
            elif isinstance(y, tuple):
                _add_names(y, found)


def uses(s: Statement) -> list[str]:
    return _names_of(s, s.reads)


def defs(s: Statement) -> list[str]:
    if s.defines == ("dst",):  # as of most that define anything
        return [s.dst]  # type: ignore[attr-defined]
    return _names_of(s, s.defines) if s.defines else []


def _names_of(s: Statement, fields: tuple[str, ...]) -> list[str]:
    found: list[str] = []
    for f in fields:
        x = getattr(s, f)
        if type(x) is str:
            found.append(x)
        elif type(x) is tuple:
            for y in x:
                if type(y) is str:
                    found.append(y)
                elif isinstance(y, tuple):
                    _add_names(y, found)
    return found


def blocks_of(s: Statement) -> list[Block]:
    return [getattr(s, f) for f in s.blocks]


def walk(block: Iterable[Statement]) -> list[Statement]:
    """All statements in program order, the nested ones behind the one that holds them."""
    found: list[Statement] = []
    _add_nested(block, found)
    return found


def _add_nested(block: Iterable[Statement], found: list[Statement]) -> None:
    for s in block:
        found.append(s)
        for f in s.blocks:
            _add_nested(getattr(s, f), found)


def map_names(x: Any, function: Callable[[str], Operand]) -> Any:
    """An operand, an index or a tuple with every name replaced."""
    if type(x) is str:
        return function(x)
    if not isinstance(x, tuple):
        return x
    made = [function(y) if type(y) is str else map_names(y, function) if isinstance(y, tuple) else y for y in x]
    return tuple(made) if type(x) is tuple else type(x)(*made)


def same(name: str) -> str:
    return name


def clone(
    block: Block,
    use: Callable[[str], Operand] = same,
    define: Callable[[str], str] = same,
    cell: Callable[[str], str] = same,
) -> Block:
    """A copy of a block in which used names, defined names and cells are replaced."""
    copied: Block = []
    for s in block:
        kind: Any = type(s)
        made = object.__new__(kind)
        for f, role in _roles(kind):
            x = getattr(s, f)
            if role == "reads":
                x = x if use is same else map_names(x, use)
            elif role == "defines":
                x = x if define is same else map_names(x, define)
            elif role == "blocks":
                x = clone(x, use, define, cell)
            elif role == "cell":
                x = cell(x)
            setattr(made, f, x)
        copied.append(made)
    return copied


@functools.cache
def _roles(kind: Any) -> list[tuple[str, str]]:
    """The fields of a kind of statement, and what is in each."""
    roles = {f: role for role in ("reads", "defines", "blocks") for f in getattr(kind, role)}
    return [(f.name, roles.get(f.name, f.name)) for f in fields(kind)]


def substitute(block: Block, names: dict[str, Operand]) -> Block:
    return clone(block, lambda name: names.get(name, name)) if names else block


def free_names(block: Block) -> list[str]:
    """The names that a block uses and does not define, in the order of their first use."""
    defined = {name for s in walk(block) for name in defs(s)}
    return list(dict.fromkeys(name for s in walk(block) for name in uses(s) if name not in defined))


def place_of(block: Block, s: Statement) -> int:
    """Where a statement stands in a block."""
    return next(k for k, x in enumerate(block) if x is s)


def without(block: Block, gone: Container[int]) -> Block:
    """A block without some statements (their ids), nested ones as well."""
    kept = [s for s in block if id(s) not in gone]
    for s in kept:
        for f in s.blocks:
            setattr(s, f, without(getattr(s, f), gone))
    return kept


def is_number(x: Operand, number: int) -> bool:
    """Whether an operand is a literal with this value."""
    return type(x) in (int, float) and x == number


def cells_written(block: Iterable[Statement]) -> set[str]:
    return {s.cell for s in walk(block) if isinstance(s, Set | Add)}


_NUMBERED = re.compile(r"(_\d+)+$")


@functools.lru_cache(4096)
def stem(name: str) -> str:
    """A name without its number."""
    return _NUMBERED.sub("", name) or "t"
