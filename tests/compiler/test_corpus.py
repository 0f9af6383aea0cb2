"""Every program of the corpus, in every mode, under every switch.

The texts of the programs run as plain Python here, and some through numba. With RETROGRADE_LONG set, all of them do,
under each switch.
"""

from __future__ import annotations

import os

import compiler.corpus_speed  # noqa: F401
import pytest
from compiler import (  # noqa: F401  register their programs
    corpus_arrays,
    corpus_complex,
    corpus_linalg,
    corpus_parallel,
    corpus_recursion,
    corpus_special,
    corpus_stores,
)
from compiler.corpus import CASES
from compiler.harness import check, check_against_eager

from retrograde.compiler.optimise import PASSES
from retrograde.compiler.options import Options

LONG = "RETROGRADE_LONG" in os.environ

ALL_OFF = Options(careful=True, recompute=False, repeat=False, rectangular=False, passes=())
SWITCHES = {
    "careful": Options(careful=True),
    "everything taped": Options(recompute=False),
    "last words written again": Options(last_words=False),
    "two sweeps": Options(one_sweep=False),
    "nothing run again": Options(repeat=False),
    "all run again": Options(repeat=True),
    "in segments of two": Options(checkpoint=2),
    "on stacks": Options(rectangular=False),
    "everything on stacks": Options(recompute=False, rectangular=False),
    "without passes": Options(passes=()),
    **{f"without {name}": Options(passes=tuple(p for p in PASSES if p != name)) for name in PASSES},
}

# Programs that the eager engine does not take, or whose outputs are arrays that they write into.
NOT_EAGER = {
    "in_place_argument",
    "single_precision",
    "result_is_the_argument",
    "nothing_returned",
    "no_path",
    "argument_changed_after_its_loop",
    "argument_scaled_by_a_sum",
    "state_in_place",
    "argument_shifted_by_a_constant",
    "source_that_changes_before_the_array_is_read",
    "source_that_changes_while_the_array_is_read",
    "source_that_changes_by_another_name",
    "elements_that_change_in_the_loop_by_another_name",
    "costly_elements_read_behind_a_change",
    "functions_of_cmath",
    "complex_in_place",
    "single_precision_complex",
    "vector_of_rows_made_from_elements_outside",
}

THROUGH_NUMBA = (
    "elementary_functions branches_in_a_loop newton_in_a_while_loop triangular_loops return_from_nested_loops "
    "views_write_through reductions_with_axes masks_and_gathers swapped_buffers calls_of_helpers named_tuples mixture "
    "matrix_that_changes_in_a_loop swapped_complex_buffers"
).split()


@pytest.mark.parametrize("name", CASES)
def test_programs_agree_with_differences(name):
    check(*CASES[name])


@pytest.mark.parametrize("name", CASES)
def test_programs_agree_with_differences_when_everything_is_switched_off(name):
    check(*CASES[name], options=ALL_OFF, second=False)


@pytest.mark.parametrize("name", CASES)
def test_programs_agree_with_the_eager_engine(name):
    assert check_against_eager(*CASES[name]) is (name not in NOT_EAGER)


@pytest.mark.parametrize("name", THROUGH_NUMBA)
def test_programs_through_numba_agree_with_differences(name):
    pytest.importorskip("numba")
    check(*CASES[name], plain=False, forward=False)


@pytest.mark.skipif(not LONG, reason="RETROGRADE_LONG is not set")
@pytest.mark.parametrize("name", CASES)
def test_all_programs_under_all_switches(name):
    pytest.importorskip("numba")
    check(*CASES[name], plain=False)
    for options in SWITCHES.values():
        check(*CASES[name], options=options)
