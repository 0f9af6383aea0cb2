"""The program of a pullback, written in the way that is likely to be the fastest."""

from __future__ import annotations

from retrograde.compiler.cost import cost, shares
from retrograde.compiler.optimise import tidy, tidy_roughly
from retrograde.compiler.options import Options
from retrograde.compiler.program import Program
from retrograde.compiler.reverse import Reverse
from retrograde.compiler.walks import walk

SMALL = 0.05
"""The part of a program's cost below which it does not pay to weigh the ways of writing a derivative."""
MOST = 3
"""How many loops are weighed, each of which takes as long as writing the whole program: those that cost the most."""
LONGEST = 600
"""How many statements may be differentiated for that; of a longer program fewer loops are weighed."""


def pullback_program(program: Program, inputs: list[str], name: str, options: Options) -> Program:
    """The program of the pullback with respect to some of the parameters, cleaned.

    Where a loop that matters may run again or be taped, both are written out, and the cheaper is taken.
    """
    part = shares(program)

    def written(choices: dict[int, bool]) -> tuple[Program, dict[int, bool]]:
        reverse = Reverse(program.derived(name), inputs, options, choices)
        return tidy_roughly(reverse.build(), options.passes), reverse.open

    best, choices = written({})
    lowest = cost(best)
    # Inner loops first: whether an outer one is to run again depends on what is best inside.
    weighed = sorted((number for number in choices if part[number] > SMALL), key=lambda number: -part[number])
    most = min(MOST, LONGEST // sum(1 for _ in walk(program.body)) - 1)
    for loop in sorted(weighed[: max(most, 1)], reverse=True):
        others = choices | {loop: not choices[loop]}
        other, _ = written(others)
        if cost(other) < lowest:
            best, lowest, choices = other, cost(other), others
    return tidy(best, options.passes)
