"""The program of a pullback, written in the way that is likely to be the fastest."""

from __future__ import annotations

from retrograde.compiler.cost import cost, shares
from retrograde.compiler.form import (
    Program,
)
from retrograde.compiler.optimise import tidy
from retrograde.compiler.options import Options
from retrograde.compiler.reverse import Reverse

SMALL = 0.05
"""The part of a program's cost below which it does not pay to weigh the ways of writing a derivative."""


def pullback_program(program: Program, inputs: list[str], name: str, options: Options) -> Program:
    """The program of the pullback with respect to some of the parameters, cleaned.

    Where a loop that matters may run again or be taped, both are written out, and the cheaper is taken.
    """
    part = shares(program)

    def written(choices: dict[int, bool]) -> tuple[Program, dict[int, bool]]:
        reverse = Reverse(program.derived(name), inputs, options, choices)
        return tidy(reverse.build(), options.passes), reverse.open

    best, choices = written({})
    lowest = cost(best)
    # Inner loops first: whether an outer one is to run again depends on what is best inside.
    for loop in sorted((number for number in choices if part[number] > SMALL), reverse=True):
        others = choices | {loop: not choices[loop]}
        other, _ = written(others)
        if cost(other) < lowest:
            best, lowest, choices = other, cost(other), others
    return best
