"""The nested minimisations of Siskind and Pearlmutter (examples/nested_minimisation.py), in every mixture of modes."""

from __future__ import annotations

import importlib.util
import itertools
import os
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

EXAMPLE = Path(__file__).resolve().parent.parent / "examples" / "nested_minimisation.py"
MIXTURES = list(itertools.product("RF", repeat=2))
# What the longer steps leave of the way.
NEAR = {"particle": 1e-3, "saddle": 2e-3}


@pytest.fixture(scope="module")
def example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("nested_minimisation", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def by_differences(f: Any, x: list[float]) -> list[float]:
    """A gradient that knows nothing of this library."""
    h = 1e-5
    return [
        (f([a + h * (i == j) for j, a in enumerate(x)]) - f([a - h * (i == j) for j, a in enumerate(x)])) / (2 * h)
        for i in range(len(x))
    ]


@pytest.mark.parametrize("problem", ["particle", "saddle"])
def test_the_four_mixtures_of_modes_agree_with_each_other_and_with_the_published_place(
    example: ModuleType, problem: str
) -> None:
    solve, quick = getattr(example, problem), example.QUICK[problem]
    results = [solve(example.MODES[outer], example.MODES[inner], **quick) for outer, inner in MIXTURES]
    for result in results[1:]:
        assert result == pytest.approx(results[0], rel=1e-10)
    assert results[0] == pytest.approx(example.PUBLISHED[problem], abs=NEAR[problem])
    if problem == "particle":
        assert solve(by_differences, by_differences, **quick) == pytest.approx(results[0], rel=1e-4)


@pytest.mark.skipif(not os.environ.get("RETROGRADE_LONG"), reason="takes minutes: RETROGRADE_LONG=1")
@pytest.mark.parametrize("problem", ["particle", "saddle"])
@pytest.mark.parametrize(("outer", "inner"), MIXTURES)
def test_the_published_values_come_out(example: ModuleType, problem: str, outer: str, inner: str) -> None:
    result = getattr(example, problem)(example.MODES[outer], example.MODES[inner])
    assert result == pytest.approx(example.PUBLISHED[problem], rel=1e-13)
