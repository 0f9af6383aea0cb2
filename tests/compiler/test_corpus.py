"""Every program of the corpus, in every mode, under every switch."""

from __future__ import annotations

import os

import pytest
from compiler.corpus import CASES
from compiler.harness import check

from retrograde.compiler.optimise import PASSES
from retrograde.compiler.reverse import Options

SWITCHES = {
    "as it comes": Options(),
    "careful": Options(careful=True),
    "everything taped": Options(recompute=False),
    "on stacks": Options(rectangular=False),
    "everything on stacks": Options(recompute=False, rectangular=False),
    "without passes": Options(passes=()),
    **{f"without {name}": Options(passes=tuple(p for p in PASSES if p != name)) for name in PASSES},
}


@pytest.mark.parametrize("name", CASES)
def test_programs_agree_with_differences(name):
    case = CASES[name]
    check(case.function, case.args)


@pytest.mark.parametrize("name", CASES)
def test_no_switch_changes_a_derivative(name):
    case = CASES[name]
    for options in SWITCHES.values():
        check(case.function, case.args, options=options, second=False)


LONG = "RETROGRADE_LONG" in os.environ


@pytest.mark.parametrize("name", list(CASES) if LONG else list(CASES)[::3])
def test_programs_through_numba_agree_with_differences(name):
    case = CASES[name]
    check(case.function, case.args, plain=False, second=LONG)
