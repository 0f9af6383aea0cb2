"""Imports run one way: interop → tools → the modes | compiler → trace → rules → errors | originals.

`python tests/test_layers.py` prints what breaks this, one line a wrong import, and fails if there is any.
An import counts wherever it stands: inside a function, under TYPE_CHECKING, or through importlib with a literal name.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parent.parent / "src" / "retrograde"

# For each part of the package, the parts that it may import (and itself). "" is retrograde/__init__.py, whose import
# by a lower part would be a circle.
BELOW = {
    "errors": set(),
    "originals": set(),
    "rules": {"originals", "errors"},
    "trace": {"originals", "rules", "errors"},
    "reverse": {"originals", "trace", "rules", "errors"},
    "forward": {"originals", "trace", "rules", "errors"},
    "taylor": {"originals", "trace", "rules", "errors"},
    "batch": {"originals", "trace", "rules", "errors"},
    "sparse": {"originals", "trace", "rules", "errors"},
    "compiler": {"trace", "rules", "errors"},
    "tools": {"reverse", "forward", "taylor", "batch", "sparse", "compiler", "trace", "rules", "errors"},
    "scipy": {"trace", "rules", "errors"},
    "interop": {
        "",
        "scipy",
        "tools",
        "reverse",
        "forward",
        "taylor",
        "batch",
        "sparse",
        "compiler",
        "trace",
        "rules",
        "errors",
    },
    "testing": {"", "tools", "reverse", "forward", "taylor", "batch", "sparse", "compiler", "trace", "rules", "errors"},
    "": {"testing", "tools", "reverse", "forward", "taylor", "batch", "sparse", "compiler", "trace", "rules", "errors"},
}

# Where a library that not every user has may be imported: paths below retrograde/ that start with this.
HOME = {
    "numba": "compiler/",
    "llvmlite": "compiler/",
    "torch": "interop/torch",
    "jax": "interop/jax",
    "jaxlib": "interop/jax",
    "dask": "interop/dask",
}


def part_of(module: str) -> str:
    """`retrograde.rules.table` → `rules`; a name of the package's own `__init__` → ``."""
    names = module.split(".")
    return names[1] if len(names) > 1 and names[1] in BELOW else ""


def imports(tree: ast.AST, package: str) -> Iterator[tuple[int, str]]:
    """Each import in the tree as (line, absolute dotted name, down to the imported name); package is the importer's."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = package.split(".")
                base = ".".join(parents[: len(parents) - node.level + 1] + ([base] if base else []))
            for alias in node.names:
                yield node.lineno, f"{base}.{alias.name}"
        elif isinstance(node, ast.Call) and node.args:
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            name = node.args[0]
            if called in ("import_module", "__import__") and isinstance(name, ast.Constant):
                # The name is absolute or starts with the dots of a relative import, as in the statement.
                dots = len(name.value) - len(name.value.lstrip("."))
                parents = package.split(".")
                prefix = parents[: len(parents) - dots + 1] if dots else []
                yield node.lineno, ".".join([*prefix, name.value.lstrip(".")])


def wrong_imports(source: Path) -> list[str]:
    """One line for each import that runs against the order; source is the folder of the package."""
    wrong = []
    for path in sorted(source.rglob("*.py")):
        inside = path.relative_to(source)
        # A generated or cached copy is nobody's import.
        if "__pycache__" in inside.parts:
            continue
        names = inside.with_suffix("").parts
        own = names[0] if names[0] != "__init__" else ""
        package = ".".join(("retrograde", *names[:-1]))
        if own not in BELOW:
            wrong.append(f"{inside}: {own} has no place in the order; give it one in tests/test_layers.py")
            continue
        for line, module in imports(ast.parse(path.read_text(encoding="utf-8")), package):
            top = module.partition(".")[0]
            if top == "retrograde":
                part = part_of(module)
                if part != own and part not in BELOW[own]:
                    wrong.append(f"{inside}:{line}: {own or 'retrograde'} must not import {module}")
            elif top in HOME and not inside.as_posix().startswith(HOME[top]):
                wrong.append(f"{inside}:{line}: {top} belongs in {HOME[top]} alone")
    return wrong


def test_imports_run_one_way():
    assert wrong_imports(SOURCE) == []


@pytest.mark.parametrize(
    ("path", "text", "found"),
    [
        ("rules/table.py", "from retrograde.trace import value", "rules must not import retrograde.trace.value"),
        ("rules/table.py", "from ..trace import value", "rules must not import retrograde.trace.value"),
        ("rules/table.py", "from .. import trace", "rules must not import retrograde.trace"),
        ("rules/table.py", "import retrograde.trace.value", "rules must not import retrograde.trace.value"),
        (
            "rules/table.py",
            "def f():\n    from retrograde import gradient",
            "rules must not import retrograde.gradient",
        ),
        ("errors.py", "from .rules import table", "errors must not import retrograde.rules.table"),
        ("reverse/tape.py", "from retrograde.forward import jvp", "reverse must not import retrograde.forward.jvp"),
        ("forward/jvp.py", "def f():\n    import retrograde.reverse", "forward must not import retrograde.reverse"),
        (
            "trace/value.py",
            "import importlib\nimportlib.import_module('..tools.hook', __package__)",
            "retrograde.tools",
        ),
        ("scipy/special.py", "from retrograde.tools import hook", "scipy must not import retrograde.tools.hook"),
        ("tools/buffer.py", "from retrograde.interop import torch", "tools must not import retrograde.interop.torch"),
        ("reverse/tape.py", "def f():\n    import numba", "numba belongs in compiler/ alone"),
        ("interop/jax.py", "import torch", "torch belongs in interop/torch alone"),
        ("tools/buffer.py", "__import__('dask.array')", "dask belongs in interop/dask alone"),
        ("helpers/text.py", "", "helpers has no place in the order"),
    ],
)
def test_a_wrong_import_is_found(tmp_path, path, text, found):
    file = tmp_path / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    (report,) = wrong_imports(tmp_path)
    assert found in report


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("tools/hook.py", "from retrograde.reverse import tape\nfrom ..forward import jvp\nfrom . import buffer"),
        ("rules/scipy_special.py", "import scipy.special\nfrom .table import elementwise"),
        ("interop/torch.py", "import torch\nfrom retrograde import pullback"),
        ("compiler/lower.py", "import numba\nfrom retrograde.rules import table"),
        ("__init__.py", "from retrograde.tools.hook import hook"),
    ],
)
def test_a_right_import_passes(tmp_path, path, text):
    file = tmp_path / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    assert wrong_imports(tmp_path) == []


if __name__ == "__main__":
    problems = wrong_imports(SOURCE)
    print("\n".join(problems) or "imports run one way")
    sys.exit(bool(problems))
