"""The public names (`__all__`) and their parameters are those of public_api.txt.

To accept a change: `python tests/test_public_api.py > tests/public_api.txt`, and a line in CHANGELOG.md.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SNAPSHOT = Path(__file__).with_name("public_api.txt")
MODULES = ("retrograde", "retrograde.testing")


def parameters(f: Any) -> str:
    """`(x, *, n=1)`: names, kinds and defaults. How annotations print differs between versions of Python."""
    try:
        signature = inspect.signature(f)
    except (ValueError, TypeError):
        return "(…)"
    bare = [p.replace(annotation=inspect.Parameter.empty) for p in signature.parameters.values()]
    return str(signature.replace(parameters=bare, return_annotation=inspect.Signature.empty))


def members(owner: type) -> Iterator[str]:
    """The public methods and properties that a class defines itself."""
    for name, value in sorted(vars(owner).items()):
        if name.startswith("_"):
            continue
        if isinstance(value, (classmethod, staticmethod)):
            yield f"{name}{parameters(value.__func__)}"
        elif callable(value):
            yield f"{name}{parameters(value)}"
        else:
            yield name


def described() -> str:
    """One line a name, sorted, with the members of a class indented below it."""
    lines = []
    for module_name in MODULES:
        module = importlib.import_module(module_name)
        for name in sorted(module.__all__):
            value = getattr(module, name)
            if isinstance(value, type):
                bases = ", ".join(base.__name__ for base in value.__bases__)
                is_error = issubclass(value, BaseException)
                lines.append(
                    f"{module_name}.{name}({bases})" if is_error else f"{module_name}.{name}{parameters(value)}"
                )
                # The fields of an error are its base's business; all of them are made in one way.
                lines += [] if is_error else [f"    .{member}" for member in members(value)]
            elif callable(value):
                lines.append(f"{module_name}.{name}{parameters(value)}")
            else:
                lines.append(f"{module_name}.{name}: {type(value).__name__}")
    return "\n".join(lines) + "\n"


def test_the_public_interface_is_the_one_written_down():
    assert described() == SNAPSHOT.read_text(encoding="utf-8"), __doc__


if __name__ == "__main__":
    print(described(), end="")
