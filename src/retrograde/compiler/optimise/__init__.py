"""Passes over the form: each keeps what a program computes, each is one file, and each can be switched off.

forward.py      a value that is at hand is not read again; equal operations are done once
dead.py         what nothing depends on goes
overwritten.py  writes of cells that nobody reads go
hoist.py        what does not change in a loop moves in front of it; after differentiation allocations do, too
choose.py       a loop that looks for the smallest or largest value is differentiated only where it found it
small.py        small vectors of constant size become numbers
unify.py        sizes that must be equal are one size
upward.py       loops of independent iterations run upwards
unsigned.py     indices that cannot be negative are unsigned
roots.py        powers with halves as exponents become products with a square root
scaled.py       products with several numbers become products with one
sink.py         what only one arm of a choice needs is computed where that is chosen
vectorise.py    elementary functions that are computed for several elements at once
inline.py       arrays whose elements are read once each are not stored
stores.py       writes that nobody sees go: zeros that are overwritten, what is stored last
copies.py       a copy of an array that nobody writes is that array
shift.py        no derivative is taken of the shift inside of a log-sum-exp
counters.py     integers that count iterations become expressions of the loop's variable
zeros.py        loops that add multiples of zero are left out
first_writes.py what is added to an element that is still zero is stored there
accumulate.py   what a loop adds to one place is added up in a local variable
parallel.py     loops over `prange` in parts, one for each thread; only where the user wants it
outline.py      what each thread runs is a function of its own
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from retrograde.compiler.form import For
from retrograde.compiler.optimise.abreast import run_abreast
from retrograde.compiler.optimise.accumulate import accumulate
from retrograde.compiler.optimise.choose import choose
from retrograde.compiler.optimise.copies import use_originals
from retrograde.compiler.optimise.counters import count_by_loops
from retrograde.compiler.optimise.dead import drop_dead
from retrograde.compiler.optimise.first_writes import store_first_writes
from retrograde.compiler.optimise.forward import forward
from retrograde.compiler.optimise.hoist import hoist
from retrograde.compiler.optimise.inline import inline
from retrograde.compiler.optimise.outline import outline
from retrograde.compiler.optimise.overwritten import drop_overwritten
from retrograde.compiler.optimise.parallel import parallelise
from retrograde.compiler.optimise.roots import powers_by_roots
from retrograde.compiler.optimise.scaled import scale_once
from retrograde.compiler.optimise.shift import fix_shifts
from retrograde.compiler.optimise.sink import sink
from retrograde.compiler.optimise.small import keep_small_in_cells
from retrograde.compiler.optimise.stores import drop_idle_stores
from retrograde.compiler.optimise.unify import unify_sizes
from retrograde.compiler.optimise.unsigned import make_unsigned
from retrograde.compiler.optimise.upward import turn_upwards
from retrograde.compiler.optimise.vectorise import vectorise
from retrograde.compiler.optimise.zeros import skip_zeros
from retrograde.compiler.program import Program
from retrograde.compiler.walks import walk

PASSES = (
    "unify",
    "forward",
    "overwritten",
    "dead",
    "hoist",
    "small",
    "inline",
    "stores",
    "copies",
    "shift",
    "choose",
    "counters",
    "accumulate",
    "first",
    "upward",
    "abreast",
    "sink",
    "unsigned",
    "zeros",
)
CLEANING = ("forward", "overwritten", "dead", "hoist", "forward")
FINISHING = ("forward", "overwritten", "dead", "parallel", "hoist", "forward")


def prepare(program: Program, passes: Collection[str] = PASSES, differs: bool = False) -> Program:
    """Write a function anew in the form that has the cheaper derivatives.

    Args:
        differs: sizes that are compared somewhere may differ at the start.
    """
    if "parallel" not in passes:
        for s in walk(program.body):
            if isinstance(s, For):
                s.parallel = False
    return _run(
        program,
        passes,
        (
            *CLEANING,
            *(() if differs else ("unify",)),
            "small",
            "inline",
            "shift",
            "choose",
            "counters",
            "forward",
            "stores",
            "dead",
        ),
        is_last=False,
    )


def tidy(program: Program, passes: Collection[str] = PASSES) -> Program:
    """Clean a program that will be differentiated further."""
    return _run(program, passes, (*CLEANING, "stores", "copies", "dead"), is_last=False)


def tidy_roughly(program: Program, passes: Collection[str] = PASSES) -> Program:
    """As much of `tidy` as it takes to see what a program costs: half of the work, and much the same for all."""
    return _run(program, passes, ("forward", "overwritten", "dead", "hoist"), is_last=False)


def finish(
    program: Program, passes: Collection[str] = PASSES, vectormath: bool = False, sparse: Collection[str] = ()
) -> Program:
    """Make a program ready to be written out; it cannot be differentiated afterwards.

    What several threads run becomes procedures, which are still to be finished.

    Args:
        vectormath: use elementary functions that a loop can vectorise.
        sparse: parameters that are likely to be zero in most places.
    """
    if vectormath:
        powers_by_roots(program)
        scale_once(program)
    _run(program, passes, (*FINISHING, "accumulate", "first", "overwritten", "upward", "dead"), is_last=True)
    if sparse and "zeros" in passes:
        skip_zeros(program, sparse)
    if "parallel" in passes:
        outline(program)
    if "abreast" in passes and vectormath:
        run_abreast(program)
    vectorised = vectorise(program) if vectormath else set()
    if "sink" in passes:
        sink(program, vectorised)
    if "dead" in passes:
        drop_dead(program, keep_sizes=False)
    if "unsigned" in passes:
        make_unsigned(program)
    return program


def _run(program: Program, passes: Collection[str], order: tuple[str, ...], is_last: bool) -> Program:
    last = len(order) - 1 if is_last else None
    for place, name in enumerate(order):
        if name not in passes:
            continue
        if name == "dead":
            drop_dead(program, keep_sizes=place != last)  # passes ask for the sizes of arrays
        elif name == "parallel":
            parallelise(program)
        elif name == "hoist":
            hoist(program, allocations=is_last)
        elif name == "forward":
            forward(program, is_last)
        elif name in _REWRITING:
            if _REWRITING[name](program):
                _run(program, passes, CLEANING, is_last)
        else:
            _SIMPLE[name](program)
    return program


_REWRITING: dict[str, Callable[[Program], bool]] = {
    "unify": unify_sizes,
    "small": keep_small_in_cells,
    "inline": inline,
}
"""What says whether it has changed a program, which is then to be cleaned."""

_SIMPLE: dict[str, Callable[[Program], None]] = {
    "stores": drop_idle_stores,
    "copies": use_originals,
    "overwritten": drop_overwritten,
    "shift": fix_shifts,
    "choose": choose,
    "counters": count_by_loops,
    "accumulate": accumulate,
    "first": store_first_writes,
    "upward": turn_upwards,
}
