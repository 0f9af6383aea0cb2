"""One sweep where two would do the same work twice.

A loop whose iterations the reverse sweep runs again, and which gives the forward sweep nothing but sums that only the
value needs, need not run in the forward sweep: the sums are complete when the reverse sweep has run, and what the value
needs of them is computed then.
"""

from __future__ import annotations

from typing import NamedTuple

from retrograde.compiler.form import Block, For, Get, Op, Set, Statement, cells_written, defs, names_in, uses, walk


class Again(NamedTuple):
    """A loop of the forward sweep, and that of the reverse sweep which runs its iterations again, in the same order.

    `sums` are the cells that it adds to; nothing else that it writes is read outside of it.
    """

    loop: Statement
    adjoint: For
    sums: frozenset[str]


def without_first_runs(forward: Block, backward: Block, loops: list[Again], results: set[str]) -> tuple[Block, Block]:
    """The forward sweep without the loops that need not run in it, and what is to run behind the reverse sweep.

    Args:
        results: the cells that keep the results.
    """
    late: set[int] = set()
    gone: set[int] = set()
    for again in loops:
        moved = _only_for_the_value(forward, backward, again, results)
        if moved is not None:
            gone.add(id(again.loop))
            late |= moved
    kept = [s for s in forward if id(s) not in gone | late]
    return kept, [s for s in forward if id(s) in late]


def _only_for_the_value(forward: Block, backward: Block, again: Again, results: set[str]) -> set[int] | None:
    """The statements (their ids) that compute the value from the sums, if nothing else needs these."""
    places = [i for i, s in enumerate(forward) if s is again.loop]
    if not places:
        return None
    moved: set[int] = set()
    names: set[str] = set()
    for s in forward[places[0] + 1 :]:
        reads_a_sum = isinstance(s, Get) and s.cell in again.sums
        if reads_a_sum or (isinstance(s, Op) and names & set(uses(s))):
            names |= set(defs(s))
            moved.add(id(s))
        elif isinstance(s, Set) and s.cell in results and names & set(names_in(s.value)):
            moved.add(id(s))
        elif names & {n for x in walk([s]) for n in uses(x)} or again.sums & _cells_of([s]):
            return None
    for s in walk(backward):
        if names & set(uses(s)):
            return None
    elsewhere = [s for s in backward if s is not again.adjoint]
    return None if again.sums & _cells_of(elsewhere) else moved


def _cells_of(block: Block) -> set[str]:
    """The cells that a block reads or writes."""
    return cells_written(block) | {s.cell for s in walk(block) if isinstance(s, Get)}
