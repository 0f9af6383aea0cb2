"""How derivative programs are made."""

from __future__ import annotations

from dataclasses import dataclass

from retrograde.compiler.optimise import PASSES


@dataclass(frozen=True)
class Options:
    """How derivatives are made; each switch can be turned for cross-checks.

    Attributes:
        careful: zero times infinity is zero.
        recompute: compute values again in the reverse sweep where that is cheap; otherwise tape them all.
        repeat: run the iterations of a loop again in the reverse sweep, wherever that is possible (True), nowhere
            (False), or where it is likely to be cheaper than a tape (None).
        last_words: run iterations again without writing what only the next one reads.
        one_sweep: leave such a loop out of the forward sweep, where only the value needs it.
        rectangular: tapes of known size are arrays; otherwise all are stacks.
        single: where one number is all that is differentiated, take the derivative along it, without a reverse sweep.
        passes: the passes of optimise/ that are on.
        checkpoint: the length of the segments of loops with a state (see segments.py); True for a root of the whole.
        lanes: how many directions or cotangents a program takes at once, where it can; None for what is likely to be
            best.
        parts: compute apart, and once, what many directions or cotangents share (see parts.py); None where there are
            enough of them.
        machine: numba takes programs as LLVM's text, where they can be written so; otherwise as Python.
    """

    careful: bool = False
    recompute: bool = True
    repeat: bool | None = None
    last_words: bool = True
    one_sweep: bool = True
    rectangular: bool = True
    single: bool = True
    passes: tuple[str, ...] = PASSES
    checkpoint: bool | int = False
    lanes: int | None = None
    parts: bool | None = None
    machine: bool = True
