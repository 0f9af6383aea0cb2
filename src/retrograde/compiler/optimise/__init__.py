"""Passes over the form: each keeps what a program computes, each is one file, and each can be switched off.

forward.py      a value that is at hand is not read again; equal operations are done once
dead.py         what nothing depends on goes
overwritten.py  writes of cells that nobody reads go
hoist.py        what does not change in a loop moves in front of it; after differentiation allocations do, too
accumulate.py   what a loop adds to one place is added up in a local variable
"""

from __future__ import annotations

from collections.abc import Collection

from retrograde.compiler.form import Program
from retrograde.compiler.optimise.accumulate import accumulate
from retrograde.compiler.optimise.dead import drop_dead
from retrograde.compiler.optimise.forward import forward
from retrograde.compiler.optimise.hoist import hoist
from retrograde.compiler.optimise.overwritten import drop_overwritten

PASSES = ("forward", "overwritten", "dead", "hoist", "accumulate")


def tidy(program: Program, passes: Collection[str] = PASSES) -> Program:
    """Clean a program that will be differentiated further."""
    if "forward" in passes:
        forward(program)
    if "overwritten" in passes:
        drop_overwritten(program)
    if "dead" in passes:
        drop_dead(program, keep_sizes=True)
    if "hoist" in passes:
        hoist(program, allocations=False)
    if "forward" in passes:
        forward(program)
    return program


def finish(program: Program, passes: Collection[str] = PASSES) -> Program:
    """Make a program ready to be written out; it cannot be differentiated afterwards."""
    if "forward" in passes:
        forward(program)
    if "overwritten" in passes:
        drop_overwritten(program)
    if "dead" in passes:
        drop_dead(program, keep_sizes=False)
    if "hoist" in passes:
        hoist(program, allocations=True)
    if "forward" in passes:
        forward(program)
    if "accumulate" in passes:
        accumulate(program)
    if "overwritten" in passes:
        drop_overwritten(program)
    if "dead" in passes:
        drop_dead(program, keep_sizes=False)
    return program
