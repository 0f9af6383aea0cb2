"""The source of a function: its syntax tree with the places of the file, and what its free names mean."""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import linecache
import types
from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

from retrograde.errors import InputError, LanguageError


class At(NamedTuple):
    """A place in the user's source."""

    file: str
    line: int
    column: int = 0
    end: int = 0
    text: str = ""


@dataclass(eq=False)
class Source:
    """A function as written.

    Attributes:
        function: the Python function.
        tree: its `def`, or its lambda as a `def`, with the line numbers and columns of the file.
        file: where it is written.
    """

    function: types.FunctionType
    tree: ast.FunctionDef
    file: str

    @property
    def names(self) -> Mapping[str, Any]:
        """What its free names mean just now: closure, globals, builtins."""
        cells = zip(self.function.__code__.co_freevars, self.function.__closure__ or (), strict=True)
        return ChainMap(dict(_bound(cells)), self.function.__globals__, vars(builtins))

    @property
    def name(self) -> str:
        return self.function.__name__ if self.function.__name__ != "<lambda>" else "anonymous"

    def at(self, node: ast.AST) -> At:
        """The place of a node."""
        line = getattr(node, "lineno", self.tree.lineno)
        column = getattr(node, "col_offset", 0)
        one_line = getattr(node, "end_lineno", line) == line
        end = getattr(node, "end_col_offset", None) if one_line else None
        text = linecache.getline(self.file, line).rstrip("\n")
        raw = text.encode()  # the tree counts bytes
        start = len(raw[:column].decode(errors="replace"))
        return At(self.file, line, start, len(raw[:end].decode(errors="replace")), text)

    def refusal(self, node: ast.AST, fact: str, *ways: str) -> LanguageError:
        return refusal(self.at(node), fact, *ways)


def refusal(at: At | None, fact: str, *ways: str) -> LanguageError:
    """The error that says what is not in the language, and where."""
    at = at or At("", 0)
    return LanguageError(fact, *ways, file=at.file, line=at.line, column=at.column, end=at.end, text=at.text)


def python_function(f: Any) -> types.FunctionType | None:
    """The Python function behind a function, a numba dispatcher or a compiled function; None for anything else."""
    for attribute in ("py_func", "__wrapped_python__"):
        inner = getattr(f, attribute, None)
        if isinstance(inner, types.FunctionType):
            return inner
    return f if isinstance(f, types.FunctionType) else None


@functools.lru_cache(maxsize=512)
def source_of(function: types.FunctionType) -> Source:
    """The source of a function.

    Raises:
        InputError: it has none (it was typed into a plain interpreter, or made by exec), or not one that can be told
            from others on its line.
    """
    try:
        lines, first = inspect.getsourcelines(function)
        file = inspect.getsourcefile(function) or function.__code__.co_filename
    except (OSError, TypeError):
        raise InputError(
            f"the source of {function.__name__} cannot be read; compile works from the source",
            "define the function in a file or a notebook cell",
        ) from None
    text = "".join(lines)
    # An indented function is parsed inside an `if`, so that columns stay what they are in the file.
    indented = text[:1] in " \t"
    try:
        tree = ast.parse("if 1:\n" + text if indented else text)
    except SyntaxError:
        tree = _enclosing_statement(file, first)
        indented = False
        first = 1
    ast.increment_lineno(tree, first - 1 - indented)
    return Source(function, _definition(tree, function), file)


def _bound(cells: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    for name, cell in cells:
        with suppress(ValueError):  # not bound yet
            yield name, cell.cell_contents


def _enclosing_statement(file: str, line: int) -> ast.Module:
    """The module of a function whose own lines do not parse (a lambda in the middle of a call)."""
    try:
        return ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:
        raise InputError(
            f"the source of the lambda at {file}:{line} cannot be read", "a def instead of a lambda"
        ) from None


def _definition(tree: ast.Module, function: types.FunctionType) -> ast.FunctionDef:
    """The node of the function in the tree; a lambda becomes a def."""
    code = function.__code__
    candidates: list[ast.FunctionDef] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == code.co_name and _is_at(node, code.co_firstlineno):
            candidates.append(node)
        elif isinstance(node, ast.Lambda) and code.co_name == "<lambda>" and node.lineno == code.co_firstlineno:
            candidates.append(lambda_as_def(node))
    if len(candidates) > 1:
        candidates = [c for c in candidates if _column(code) in (None, c.body[0].value.col_offset)]  # type: ignore[attr-defined]
    if len(candidates) != 1:
        raise InputError(
            f"the source of {function.__name__} cannot be told from others on line {code.co_firstlineno}",
            "a def instead of a lambda",
        )
    return candidates[0]


def _is_at(node: ast.FunctionDef, line: int) -> bool:
    return line in (node.lineno, *(d.lineno for d in node.decorator_list))


def lambda_as_def(node: ast.Lambda) -> ast.FunctionDef:
    result = ast.copy_location(ast.Return(node.body), node.body)
    made = ast.FunctionDef("anonymous", node.args, [result], [], None, None)
    return ast.copy_location(made, node)


def _column(code: types.CodeType) -> int | None:
    """The column of the first expression that the code computes."""
    columns = [p[2] for p in code.co_positions() if p[0] is not None and p[2] is not None and p[1] is not None]
    own = [c for c in columns if c]
    return min(own) if own else None
