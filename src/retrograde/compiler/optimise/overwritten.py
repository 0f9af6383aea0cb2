"""A write of a cell that nothing reads before the next write, or before the end, goes."""

from __future__ import annotations

from retrograde.compiler.form import Add, Block, For, Get, If, Program, Set, While, walk

Live = frozenset[str]


def drop_overwritten(program: Program) -> None:
    program.body, _ = _block(program.body, frozenset())


def _block(block: Block, live: Live) -> tuple[Block, Live]:
    """The block without idle writes, and the cells that are wanted at its start if `live` are wanted at its end."""
    kept: Block = []
    for s in reversed(block):
        if isinstance(s, Set | Add):
            if s.cell not in live:
                continue
            if isinstance(s, Set):
                live = live - {s.cell}
        elif isinstance(s, Get):
            live = live | {s.cell}
        elif isinstance(s, If):
            s.then, after_then = _block(s.then, live)
            s.orelse, after_else = _block(s.orelse, live)
            live = after_then | after_else
        elif isinstance(s, For | While):
            # What one iteration leaves the next one may read.
            live = live | {x.cell for x in walk([s]) if isinstance(x, Get)}
            s.body, first = _block(s.body, live)
            live = live | first
            if isinstance(s, While):
                s.test, first = _block(s.test, live)
                live = live | first
        kept.append(s)
    return kept[::-1], live
