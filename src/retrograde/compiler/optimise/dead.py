"""Dead code: what neither a result, nor an array of the caller, nor an error depends on.

Marks from what must stay and sweeps the rest, so that cycles of dead cells go as well. Blind to the order of
statements: a cell that is read keeps every write of it.
"""

from __future__ import annotations

from collections.abc import Iterable

from retrograde.compiler.alias import Memory
from retrograde.compiler.form import Block, Get, Raise, Return, Statement, While
from retrograde.compiler.program import Program
from retrograde.compiler.walks import defs, names_in, uses, walk


def drop_dead(program: Program, keep_sizes: bool) -> None:
    """Remove dead statements.

    Args:
        keep_sizes: keep what computes the shapes of live arrays, which a derivative will need.
    """
    _Marking(program, keep_sizes).run()


_STAYING = frozenset((Return, Raise))


class _Marking:
    def __init__(self, program: Program, keep_sizes: bool) -> None:
        self.program = program
        self.keep_sizes = keep_sizes
        self.memory = Memory(program)
        self.callers_own = {p for p in program.params if program.types[p].is_array}
        self.parent: dict[Statement, Statement | None] = {}
        self.defined: dict[Statement, list[str]] = {}
        self.makers: dict[str, list[Statement]] = {}  # what defines a name
        self.writers: dict[str, list[Statement]] = {}  # what writes a root
        self.live: set[Statement] = set()
        self.todo: list[Statement] = []
        self.needed: set[str] = set()

    def run(self) -> None:
        program = self.program
        self.scan(program.body, None)
        if self.keep_sizes:
            for p in self.callers_own:
                self.need_sizes(p)
        while self.todo:
            self.follow(self.todo.pop())
        program.body = self.swept(program.body)

    def scan(self, block: Block, parent: Statement | None) -> None:
        """Note what each statement makes and writes, and mark those that must stay."""
        for s in block:
            self.parent[s] = parent
            self.defined[s] = defs(s)
            for name in self.defined[s]:
                self.makers.setdefault(name, []).append(s)
            written = self.memory.writes(s)
            for root in written:
                self.writers.setdefault(root, []).append(s)
            if type(s) in _STAYING or not self.callers_own.isdisjoint(written):
                self.mark(s)
            for f in s.blocks:
                self.scan(getattr(s, f), s)

    def mark(self, s: Statement | None) -> None:
        if s is not None and s not in self.live:
            self.live.add(s)
            self.todo.append(s)

    def need(self, names: Iterable[str]) -> None:
        for name in names:
            if name not in self.needed:
                self.needed.add(name)
                for s in self.makers.get(name, ()):
                    self.mark(s)
                if self.keep_sizes and name in self.program.dims:
                    self.need_sizes(name)

    def need_sizes(self, array: str) -> None:
        for name in names_in(self.program.dims.get(array, ())):
            for s in self.makers.get(name, ()):
                self.mark(s)

    def need_contents(self, root: str) -> None:
        """Keep all that writes into an array, or a cell."""
        for s in self.writers.pop(root, ()):
            self.mark(s)

    def follow(self, s: Statement) -> None:
        self.mark(self.parent[s])
        self.need(uses(s))
        self.need(self.defined[s])
        for root in self.memory.reads(s):
            self.need_contents(root)
        if isinstance(s, While):
            # A loop that stays must end as it did.
            for x in walk(s.test):
                if not isinstance(x, Get) and self.memory.writes(x):
                    self.mark(x)

    def swept(self, block: Block) -> Block:
        kept: Block = []
        for s in block:
            if s in self.live:
                for f in s.blocks:
                    setattr(s, f, self.swept(getattr(s, f)))
                kept.append(s)
        return kept
