"""What is kept on disk: another process calls derivatives without compiling, and nothing stale or damaged is used."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import retrograde as rg
from retrograde.compiler.fingerprint import Fingerprint
from retrograde.compiler.lower import function as lowering

pytest.importorskip("numba")

ENERGIES = """
import sys
import numpy as np
import retrograde as rg
from kept_helpers import helper

FACTORS = np.array([1.0, {factor}])

@rg.compile{options}
def energy(x, n):
    s = 0.0
    for _ in range(n):
        s += helper(x[0]) * FACTORS[1] + x[1]
    return s

if __name__ == "__main__":
    print(rg.gradient(energy, np.array([0.5, 2.0]), 3)[0].tolist(), energy(np.array([0.5, 2.0]), 3))
    makers = "form", "lower", "reverse", "optimise", "emit", "machine.text"
    print(any("retrograde.compiler." + part in sys.modules for part in makers))
"""
X = np.array([0.5, 2.0])


class Project:
    """Two modules, a compiled function and what it calls, with a cache of their own."""

    def __init__(self, path: Any) -> None:
        self.path = path
        self.folder = path / "kept" / "retrograde"

    def energy(self, power: str = "x * x", factor: float = 2.0, options: str = "") -> Any:
        """The compiled function, as a process sees it that has just begun."""
        (self.path / "kept_helpers.py").write_text(f"def helper(x):\n    return {power}\n")
        (self.path / "kept_energies.py").write_text(ENERGIES.format(factor=factor, options=options))
        return self.imported().energy

    def imported(self) -> ModuleType:
        for name in ("kept_helpers", "kept_energies"):
            sys.modules.pop(name, None)
        importlib.invalidate_caches()
        return importlib.import_module("kept_energies")

    def start(self) -> subprocess.Popen[str]:
        environment = dict(os.environ) | {"PYTHONPATH": os.pathsep.join(sys.path)}
        command = [sys.executable, str(self.path / "kept_energies.py")]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "kept"))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(str(tmp_path))
    return Project(tmp_path)


def slope(energy: Any) -> float:
    return float(rg.gradient(energy, X, 3)[0][0])


def lowered(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of functions that are lowered from now on."""
    names: list[str] = []
    lower = lowering.lower_function
    monkeypatch.setattr(
        lowering, "lower_function", lambda source, *args: names.append(source.name) or lower(source, *args)
    )
    return names


def test_what_was_compiled_once_is_not_compiled_again(project, monkeypatch):
    assert slope(project.energy()) == 6.0
    names = lowered(monkeypatch)
    again = project.energy()
    assert slope(again) == 6.0
    assert again(X, 3) == 7.5
    assert names == []
    specialisation = next(iter(again._specialisations.values()))
    (made,) = specialisation.variant().natives.values()
    assert sum(made.dispatcher.stats.cache_hits.values()) == 1
    assert sum(made.dispatcher.stats.cache_misses.values()) == 0


def test_a_change_of_anything_that_is_reached_is_seen(project):
    assert slope(project.energy()) == 6.0
    assert slope(project.energy(power="x * 5.0")) == 30.0
    assert slope(project.energy(factor=3.0)) == 9.0
    assert slope(project.energy(options="(fastmath=True)")) == 6.0
    assert slope(project.energy()) == 6.0


def test_nothing_is_kept_where_that_is_not_wanted(project):
    assert slope(project.energy(options="(cache=False)")) == 6.0
    assert not project.folder.exists()


def test_damaged_files_are_made_anew(project, monkeypatch):
    assert slope(project.energy()) == 6.0
    for file in project.folder.iterdir():
        file.write_bytes(b"nonsense")
    assert slope(project.energy()) == 6.0
    names = lowered(monkeypatch)
    assert slope(project.energy()) == 6.0
    assert names == []


def test_a_folder_that_cannot_be_written_is_done_without(project, monkeypatch):
    (project.path / "file").write_text("")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(project.path / "file"))
    assert slope(project.energy()) == 6.0


def test_processes_share_what_is_kept(project):
    project.energy()
    first = [project.start(), project.start()]
    printed = [process.communicate()[0] for process in first]
    # One of them may have been that much later that it found what the other one has kept.
    assert sorted(printed)[-1] == "[6.0, 3.0] 7.5\nTrue\n"
    assert {lines.splitlines()[0] for lines in printed} == {"[6.0, 3.0] 7.5"}
    assert project.start().communicate()[0] == "[6.0, 3.0] 7.5\nFalse\n"
    assert not [file for file in project.folder.iterdir() if "tmp" in file.name]


def test_functions_that_reach_what_can_change_have_no_key():
    things = {"a": 1.0}

    def reads_a_dictionary(x):
        return x * things["a"]

    def calls_itself(n):
        return 1.0 if n < 1 else calls_itself(n - 1)

    assert Fingerprint(reads_a_dictionary).key is None
    assert Fingerprint(calls_itself).key is not None


def test_keys_tell_values_apart_that_are_equal():
    def closing_over(value):
        def f(x):
            return x * value

        return f

    assert Fingerprint(closing_over(object())).key is None
    rule = rg.primitive(np.sin)
    before = Fingerprint(closing_over(rule)).key
    rule.defpullback(lambda y, x: lambda y_bar: (y_bar * np.cos(x),))
    assert Fingerprint(closing_over(rule)).key not in (None, before)
    values = (1, 1.0, True, np.float64(1), np.float32(1), np.ones(1), np.ones((1, 1)), (1,), "1", None, np.sin, X.dtype)
    assert len({Fingerprint(closing_over(value)).key for value in values}) == len(values)
    assert Fingerprint(closing_over(np.ones(2))).key == Fingerprint(closing_over(np.ones(2))).key


RECURSION = """
import numpy as np
import retrograde as rg

def power(x, n):
    return 1.0 if n == 0 else x[0] * power(x, n - 1)

@rg.compile
def cube(x):
    return power(x, 3)

if __name__ == "__main__":
    print(cube(np.array([2.0])), rg.gradient(cube, np.array([2.0]))[0].tolist())
"""


def test_functions_that_call_themselves_run_in_other_processes(project):
    (project.path / "kept_energies.py").write_text(RECURSION)
    for _ in range(2):
        assert project.start().communicate()[0] == "8.0 [12.0]\n"
