"""Functions of installed packages, unmodified: each derivative is right in both modes, or refused with the way out.

`python tests/test_other_peoples_code.py` writes the table of docs/other-peoples-code.md anew.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from corpus import PACKAGES, Case, Package, version
from truth import close, differences

from retrograde import RetrogradeError, gradient, jvp

PAGE = Path(__file__).resolve().parent.parent / "docs" / "other-peoples-code.md"
TABLES = "<!-- written by tests/test_other_peoples_code.py -->\n"
INSTALLED = [package for package in PACKAGES if version(package.module)]


@contextmanager
def quietly() -> Iterator[None]:
    """What other packages warn of is their affair."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def found(package: Package) -> list[Case]:
    with quietly():
        return list(package.cases())


CASES = {case.name: case for package in INSTALLED for case in found(package)}


def modes(case: Case) -> dict[str, Callable[[], Any]]:
    v = np.cos(1.0 + np.arange(np.size(case.x))).reshape(np.shape(case.x))
    return {"reverse": lambda: gradient(case.f, case.x)[0], "forward": lambda: jvp(case.f, (case.x,), (v,))[1]}


def error_of(transform: Callable[[], Any]) -> Exception | None:
    try:
        transform()
    except Exception as error:
        return error
    return None


def is_clear(error: Exception) -> bool:
    """Whether an error says where it comes from, and what to write instead."""
    text = "\n".join([str(error), *getattr(error, "__notes__", ())])
    ours = isinstance(error, RetrogradeError) or "retrograde: " in text
    return ours and "corpus.py:" in text and "  1. " in text


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.title)
def test_the_package_is_installed(package):
    if version(package.module) is None:
        pytest.skip(f"{package.module} is not installed: its functions are not tried")
    assert len(found(package)) >= 4


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if not case.refused])
def test_a_function_of_somebody_else_has_the_right_derivative(name):
    case = CASES[name]
    with quietly():
        want = differences(case.like or case.f, case.x)
        v = np.cos(1.0 + np.arange(np.size(case.x))).reshape(np.shape(case.x))
        (x_bar,) = gradient(case.f, case.x)
        y, y_dot = jvp(case.f, (case.x,), (v,))
        close(x_bar, want, 1e-6, 1e-7)
        close(float(y), float(case.f(case.x)), 1e-12)
        close(float(y_dot), float(np.sum(want * v)), 1e-6, 1e-7)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.refused])
def test_a_function_that_loses_the_derivative_is_refused_with_the_way_out(name):
    for transform in modes(CASES[name]).values():
        with quietly():
            error = error_of(transform)
        assert error is not None, f"{name} works by now: it belongs to those that are right"
        assert is_clear(error), "\n".join([repr(error), *getattr(error, "__notes__", ())])


def test_most_of_what_is_written_in_python_is_right():
    right = [name for name, case in CASES.items() if not case.refused]
    assert len(right) >= (100 if len(INSTALLED) == len(PACKAGES) else 25)


# --- the page ----------------------------------------------------------------------------------------------------


def tables() -> str:
    """The tables of the page, by what `corpus.py` says and the tests above have tried."""
    lines = [f"With {', '.join(f'{name} {version(name)}' for name in sorted({p.module for p in PACKAGES}))}.\n"]
    for package in PACKAGES:
        lines += [f"### {package.title}\n", "| function | derivative |", "|---|---|"]
        for case in found(package):
            lines.append(f"| {_code(case.name)} | {f'refused: {case.refused}' if case.refused else 'right'} |")
        lines.append("")
    return "\n".join(lines)


def _code(name: str) -> str:
    """The function in type of its own, what is said of it in words."""
    first, comma, rest = name.partition(", of ")
    return f"`{first}`{comma}{rest}"


def test_the_page_shows_what_the_tests_have_found():
    missing = sorted({package.module for package in PACKAGES if version(package.module) is None})
    if missing:
        pytest.skip(f"the page is compared where all packages are installed; {', '.join(missing)} is missing")
    shown = PAGE.read_text(encoding="utf-8").partition(TABLES)[2]
    drop_versions = lambda text: text.strip().partition("\n")[2].strip()
    assert drop_versions(shown) == drop_versions(tables()), "run tests/test_other_peoples_code.py"


if __name__ == "__main__":
    sys.stdout.reconfigure(encoding="utf-8")
    before = PAGE.read_text(encoding="utf-8").partition(TABLES)[0]
    PAGE.write_text(before + TABLES + "\n" + tables(), encoding="utf-8")
