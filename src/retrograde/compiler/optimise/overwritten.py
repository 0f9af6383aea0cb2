"""A write of a cell that nothing reads before the next write, or before the end, goes."""

from __future__ import annotations

from retrograde.compiler.form import Add, Block, For, Get, If, Set, While
from retrograde.compiler.program import Program
from retrograde.compiler.walks import walk

Live = frozenset[str]


def drop_overwritten(program: Program) -> None:
    program.body, _ = _block(program.body, frozenset())


def _block(block: Block, live: Live) -> tuple[Block, Live]:
    """The block without idle writes, and the cells that are wanted at its start if `live` are wanted at its end."""
    kept: Block = []
    for s in reversed(block):
        if type(s) is Add or type(s) is Set:
            if s.cell not in live:
                continue
            if type(s) is Set:
                live = live - {s.cell}
        elif type(s) is Get:
            live = live | {s.cell}
        elif type(s) is If:
            s.then, after_then = _block(s.then, live)
            s.orelse, after_else = _block(s.orelse, live)
            live = after_then | after_else
        elif type(s) is For or type(s) is While:
            # What one iteration leaves the next one may read.
            live = live | {x.cell for x in walk([s]) if type(x) is Get}
            s.body, first = _block(s.body, live)
            live = live | first
            if type(s) is While:
                s.test, first = _block(s.test, live)
                live = live | first
        kept.append(s)
    return kept[::-1], live
