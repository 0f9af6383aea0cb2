"""Passes over the form: each keeps what a program computes, each is one file, and each can be switched off.

forward.py      a value that is at hand is not read again; equal operations are done once
dead.py         what nothing depends on goes
overwritten.py  writes of cells that nobody reads go
hoist.py        what does not change in a loop moves in front of it; after differentiation allocations do, too
accumulate.py   what a loop adds to one place is added up in a local variable
parallel.py     loops over `prange` in parts, one for each thread; only where the user wants it
"""

from __future__ import annotations

from collections.abc import Collection

from retrograde.compiler.form import Program
from retrograde.compiler.optimise.accumulate import accumulate
from retrograde.compiler.optimise.dead import drop_dead
from retrograde.compiler.optimise.forward import forward
from retrograde.compiler.optimise.hoist import hoist
from retrograde.compiler.optimise.overwritten import drop_overwritten
from retrograde.compiler.optimise.parallel import parallelise

PASSES = ("forward", "overwritten", "dead", "hoist", "accumulate")


def tidy(program: Program, passes: Collection[str] = PASSES) -> Program:
    """Clean a program that will be differentiated further."""
    return _run(program, passes, ("forward", "overwritten", "dead", "hoist", "forward"), is_last=False)


def finish(program: Program, passes: Collection[str] = PASSES) -> Program:
    """Make a program ready to be written out; it cannot be differentiated afterwards."""
    order = ("forward", "overwritten", "dead", "parallel", "hoist", "forward", "accumulate", "overwritten", "dead")
    return _run(program, passes, order, is_last=True)


def _run(program: Program, passes: Collection[str], order: tuple[str, ...], is_last: bool) -> Program:
    last = len(order) - 1 if is_last else None
    for place, name in enumerate(order):
        if name not in passes:
            continue
        if name == "forward":
            forward(program)
        elif name == "overwritten":
            drop_overwritten(program)
        elif name == "dead":
            drop_dead(program, keep_sizes=place != last)  # passes ask for the sizes of arrays
        elif name == "parallel":
            parallelise(program)
        elif name == "hoist":
            hoist(program, allocations=is_last)
        else:
            accumulate(program)
    return program
