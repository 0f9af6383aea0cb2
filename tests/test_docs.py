"""Every line of code that a reader sees is run: the ```python blocks of the pages, and the examples.

The blocks of one page run in order in one namespace, in an empty folder. A page says what is to be seen like this:

    gradient(f, 3.0)             # → (6.0,)
    print(np.eye(2))
    # → [[1. 0.]
    #    [0. 1.]]
    np.sin(1.0)                  # → 0.8414…

The text after `# →`, with the lines below it that start with `#` and two blanks or more, is what the statement prints,
or else the `repr` or `str` of its value. Runs of blanks are as good as one, and `…` stands for anything. The arrow
belongs to a statement that is not indented; anywhere else it is an error, since nothing would check it.

The first line of a block may be `# raises SomeError: part of its message` (the text may be left out): the block must
raise just that. It may be `# needs torch`: where that library is missing, the block is left out, and the page's test is
skipped after its other blocks have passed.
"""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import io
import itertools
import linecache
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = [path for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))) if path.exists()]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))

ARROW = "# →"
FENCE = re.compile(r"^(?P<indent> *)```python *\n(?P<code>.*?)^(?P=indent)``` *$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    code: str
    line: int
    """The line of the page on which the code starts, from 1."""

    @property
    def padded(self) -> str:
        """The code at the line numbers that it has in the page."""
        return "\n" * (self.line - 1) + self.code

    def directive(self, word: str) -> str | None:
        """What follows `# word` in the first line, or None if that is not how the block starts."""
        found = re.match(rf"# {word} +(.+)", self.code)
        return found and found[1].strip()


def blocks(text: str) -> Iterator[Block]:
    for found in FENCE.finditer(text):
        code = textwrap.dedent(found["code"])
        yield Block(code, text.count("\n", 0, found.start("code")) + 1)


def expectations(block: Block) -> dict[int, str]:
    """Line of an arrow in the page → the text expected there, with the comment lines that continue it."""
    lines = block.code.splitlines()
    found = {}
    for number, line in enumerate(lines):
        if ARROW in line:
            continued = itertools.takewhile(lambda below: below.startswith("#  "), lines[number + 1 :])
            found[block.line + number] = "\n".join([line.partition(ARROW)[2], *(below[1:] for below in continued)])
    return found


def agrees(seen: str, expected: str) -> bool:
    pattern = r"\s+".join(re.escape(word).replace("…", ".*") for word in expected.split())
    return re.fullmatch(pattern, " ".join(seen.split()), re.DOTALL) is not None


def run(block: Block, namespace: dict[str, Any], filename: str) -> None:
    """Run a block statement by statement, and check each arrow against the statement that it belongs to."""
    expected = expectations(block)
    statements = ast.parse(block.padded, filename).body
    for number, statement in enumerate(statements):
        printed = io.StringIO()
        value: Any = None
        with contextlib.redirect_stdout(printed):
            # Without dont_inherit, the page would run under the __future__ imports of this file.
            if isinstance(statement, ast.Expr):
                expression = ast.Expression(statement.value)
                value = eval(compile(expression, filename, "eval", dont_inherit=True), namespace)
            else:
                exec(compile(ast.Module([statement], []), filename, "exec", dont_inherit=True), namespace)
        candidates = [printed.getvalue()] if printed.getvalue() else [repr(value), str(value)]
        # An arrow on the last line of a `def` or a `for` stands beside a statement inside it.
        first = statement.end_lineno + hasattr(statement, "body")
        end = statements[number + 1].lineno if number + 1 < len(statements) else sys.maxsize
        for line in [line for line in expected if first <= line < end]:
            text = expected.pop(line)
            assert any(agrees(seen, text) for seen in candidates), (
                f"{filename}:{line}: expected {text.strip()}, got {candidates[0].strip()}"
            )
    assert not expected, f"{filename}:{min(expected)}: this arrow belongs to no statement that is checked"


def check_page(text: str, filename: str) -> list[str]:
    """Run a page's blocks; return the missing libraries for whose sake some were left out."""
    # Whoever asks for a line's source (showgrad, compile, a traceback) is to find the page's code and nothing else.
    lines = [""] * (text.count("\n") + 1)
    for block in blocks(text):
        code = block.code.splitlines()
        lines[block.line - 1 : block.line - 1 + len(code)] = code
    linecache.cache[filename] = (len(text), None, [line + "\n" for line in lines], filename)

    namespace: dict[str, Any] = {"__name__": "__main__"}
    missing = []
    for block in blocks(text):
        needed = block.directive("needs")
        error = block.directive("raises")
        if needed and importlib.util.find_spec(needed) is None:
            missing.append(needed)
        elif error:
            check_error(block, namespace, filename, error)
        else:
            run(block, namespace, filename)
    return missing


def check_error(block: Block, namespace: dict[str, Any], filename: str, error: str) -> None:
    """Run a block that must raise: error is the name of the exception or of a base of it, `: `, part of its message."""
    name, _, message = (part.strip() for part in error.partition(":"))
    place = f"{filename}:{block.line}"
    try:
        run(block, namespace, filename)
    except Exception as exception:
        raised = exception
    else:
        raise AssertionError(f"{place}: did not raise {name}")
    kinds = [kind.__name__ for kind in type(raised).__mro__]
    assert name in kinds, f"{place}: raised {kinds[0]}, not {name}"
    assert agrees(str(raised), f"…{message}…"), f"{place}: raised {raised}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_the_code_of_a_page_runs_and_shows_what_it_says(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    missing = check_page(page.read_text(encoding="utf-8"), str(page))
    if missing:
        pytest.skip(f"left out the blocks that need {', '.join(sorted(set(missing)))}")


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_an_example_runs(example, tmp_path):
    # An example may do less where RETROGRADE_QUICK is set; its reader sees it run in full.
    environment = os.environ | {"RETROGRADE_QUICK": "1", "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        [sys.executable, str(example)], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr


def page_of(*codes: str) -> str:
    return "\n".join(f"text\n\n```python\n{code}\n```\n" for code in codes)


@pytest.mark.parametrize(
    "page",
    [
        page_of("x = 3", "x + 1  # → 4"),
        page_of("print('a  b')\nprint('c')  # → c"),
        page_of("for i in range(2):\n    print(i)\n# → 0\n#   1"),
        page_of("1 / 3  # → 0.333…"),
        page_of("max(\n    1,\n    2,\n)  # → 2"),
        page_of("1 + 1  # → 2\n2 + 2  # → 4"),
        page_of("'a'  # → a"),
        page_of("1 + 1  # → 2\n# a comment of its own\n"),
        page_of("import inspect\ndef f():\n    return 1", "inspect.getsource(f)  # → def f(): return 1"),
        page_of("# raises ZeroDivisionError\n1 / 0"),
        page_of("# raises ArithmeticError: by zero\n1 / 0"),
    ],
)
def test_a_page_that_tells_the_truth_passes(page):
    assert check_page(page, "page.md") == []


@pytest.mark.parametrize(
    ("page", "complaint"),
    [
        (page_of("1 + 1  # → 3"), "page.md:4: expected 3, got 2"),
        (page_of("x = 1", "x\n# → 1\n#   2"), r"page.md:11: expected 1\n +2, got 1"),
        (page_of("print(1)\nprint(2)  # → 1"), "expected 1, got 2"),
        (page_of("def f():\n    return 1  # → 1\nf()"), "page.md:5: this arrow belongs to no statement"),
        (page_of("# → 1"), "belongs to no statement"),
        (page_of("1 / 3  # → 0.334…"), "expected 0.334"),
        (page_of("# raises ValueError\n1 / 0"), "raised ZeroDivisionError, not ValueError"),
        (page_of("# raises ZeroDivisionError: by one\n1 / 0"), "raised division by zero"),
        (page_of("# raises ValueError\n1"), "did not raise ValueError"),
    ],
)
def test_a_page_that_tells_an_untruth_fails(page, complaint):
    with pytest.raises(AssertionError, match=complaint):
        check_page(page, "page.md")


def test_a_block_that_needs_a_missing_library_is_left_out_and_named():
    assert check_page(page_of("# needs no_such_library\nimport no_such_library"), "page.md") == ["no_such_library"]


def test_a_failing_block_points_to_the_line_of_the_page():
    with pytest.raises(ZeroDivisionError) as caught:
        check_page(page_of("x = 1", "y = 2\nx / 0"), "page.md")
    assert caught.traceback[-1].lineno == 10  # pytest counts from 0
