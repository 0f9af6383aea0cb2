"""The one place that knows which memory a statement touches, and that answers, conservatively,

    may these two overlap?      may this have changed since?      is this all of it?

Every transformation asks here. A wrong "no" is a wrong derivative; a wrong "yes" costs time only.

Memory is named by roots: a buffer's own name for arrays, `$c` for a cell `c`, the stack's name for stacks. Two
different roots never overlap: parameters that share memory are told apart before a program runs (compiled.py).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple

from retrograde.compiler.form import (
    Add,
    Alloc,
    Block,
    Call,
    Copy,
    Fill,
    For,
    Get,
    If,
    Increase,
    Index,
    Load,
    Pop,
    PopArray,
    Push,
    Reshaped,
    Return,
    Set,
    Slice,
    Statement,
    Store,
    Swap,
    View,
    Whole,
)
from retrograde.compiler.program import Program
from retrograde.compiler.walks import blocks_of, walk


class Memory:
    """The roots of the arrays of a program, and what its statements read and write."""

    def __init__(self, program: Program, body: Block | None = None) -> None:
        self.program = program
        self.views = {s.dst: s for s in walk(program.body if body is None else body) if type(s) is View}
        self.parents = {name: s.array for name, s in self.views.items()}
        self.procedures = program.procedures
        self.types = program.types
        self._written: dict[Statement, set[str]] = {}

    def root(self, array: str) -> str:
        """The buffer that a view is a part of."""
        parents = self.parents
        while array in parents:
            array = parents[array]
        return array

    def is_array(self, name: object) -> bool:
        type = self.types.get(name) if isinstance(name, str) else None
        return type is not None and type.ndim >= 0

    def reads(self, s: Statement) -> AbstractSet[str]:
        """The roots whose contents the statement itself reads (not what is nested in it)."""
        found = _READS.get(type(s))
        return found(self, s) if found else _NOTHING

    def writes(self, s: Statement) -> AbstractSet[str]:
        """The roots whose contents the statement itself may change."""
        found = _WRITES.get(type(s))
        return found(self, s) if found else _NOTHING

    def all_writes(self, block: Block) -> set[str]:
        return {root for s in walk(block) if type(s) in _WRITES for root in self.writes(s)}

    def written_in(self, s: Statement) -> AbstractSet[str]:
        """The roots that a statement and what is nested in it may change, as they were when this was first asked."""
        if not s.blocks:
            return self.writes(s)
        found = self._written.get(s)
        if found is None:
            found = self._written[s] = set()
            for block in blocks_of(s):
                for x in block:
                    found.update(self.written_in(x) if x.blocks else self.writes(x))
        return found

    def all_reads(self, block: Block) -> set[str]:
        return {root for s in walk(block) if type(s) in _READS for root in self.reads(s)}

    def roots(self, names: Iterable[object]) -> set[str]:
        """The roots of the arrays among some operands."""
        return {self.root(a) for a in names if self.is_array(a)}  # type: ignore[arg-type]


_NOTHING: frozenset[str] = frozenset()
# What statements read and write, by their types; most do neither.
_READS: dict[type, Callable[[Memory, Any], AbstractSet[str]]] = {
    Load: lambda memory, s: {memory.root(s.array)},
    Copy: lambda memory, s: {memory.root(s.array)},
    Get: lambda memory, s: {f"${s.cell}"},
    Whole: lambda memory, s: memory.roots(s.args),
    Call: lambda memory, s: memory.roots(s.args),
    Return: lambda memory, s: memory.roots(s.values),
    Swap: lambda memory, s: set(map(memory.root, s.sources)),
    Push: lambda memory, s: memory.roots((s.value,)),
    Pop: lambda memory, s: {s.stack},
    PopArray: lambda memory, s: {s.stack},
}
_WRITES: dict[type, Callable[[Memory, Any], AbstractSet[str]]] = {
    Store: lambda memory, s: {memory.root(s.array)},
    Increase: lambda memory, s: {memory.root(s.array)},
    Fill: lambda memory, s: {memory.root(s.array)},
    Set: lambda memory, s: {f"${s.cell}"},
    Add: lambda memory, s: {f"${s.cell}"},
    Whole: lambda memory, s: set(filter(memory.is_array, s.outs)),
    Call: lambda memory, s: {memory.root(s.args[i]) for i in memory.procedures[s.fn].effects}.union(
        filter(memory.is_array, s.dsts)
    ),
    Swap: lambda memory, s: set(map(memory.root, s.targets)),
    # The same name has other contents after each execution.
    Alloc: lambda memory, s: {s.dst},
    Copy: lambda memory, s: {s.dst},
    PopArray: lambda memory, s: {s.dst},
    Push: lambda memory, s: {s.stack},
    Pop: lambda memory, s: {s.stack},
}


class Part(NamedTuple):
    """Elements of an array by their number, from `low` up to `high` or to the end.

    `is_exact`: an access by a loop that runs reaches every one of them, and otherwise none but them.
    """

    low: int
    high: int | None
    is_exact: bool

    def meets(self, other: Part) -> bool:
        """Whether they may have an element in common."""
        return (other.high is None or self.low < other.high) and (self.high is None or other.low < self.high)


EVERYTHING = Part(0, None, False)


def outward(view: View, index: Sequence[Any], shifted: Callable[[Any, Slice], Any]) -> list[Any] | None:
    """The index, in an array, of an element of a view of it; None of a view in another shape.

    Args:
        shifted: the index in an axis of what is at an index in a slice of it.
    """
    if view.transposed:
        return list(reversed(index))
    if any(isinstance(i, Reshaped) for i in view.index):
        return None
    own = iter(index)
    found: list[Any] = []
    for i in view.index:
        if i is None:
            next(own)
        else:
            found.append(shifted(next(own), i) if isinstance(i, Slice) else i)
    return [*found, *own]


def left_out(s: Slice) -> int | None:
    """How many elements of an axis stand before a slice that has those behind them one by one; None of other slices."""
    if s.step not in (None, 1) or isinstance(s.low, str) or (s.low or 0) < 0:
        return None
    return s.low or 0


def part(memory: Memory, array: str, index: Index, loops: Sequence[For]) -> Part:
    """The part of its root that an access touches while the loops run."""
    program, views = memory.program, memory.views
    bounds = {loop.var: (loop.low, loop.high) for loop in loops}
    dims = program.dims[array]
    is_whole = len(index) == len(dims) and all(
        isinstance(i, str) and bounds.get(i) == (0, n) for i, n in zip(index, dims, strict=True)
    )
    if len(index) != 1:
        return Part(0, None, array not in views and is_whole and len(set(index)) == len(index))
    place: Any = 0
    is_open = True
    while array in views:
        view = views[array]
        if view.transposed or len(view.index) != 1 or not isinstance(view.index[0], Slice):
            return EVERYTHING
        (place,) = outward(view, (place,), _from_front) or (None,)
        if place is None:
            return EVERYTHING
        is_open = is_open and view.index[0].high is None
        array = view.array
    start: int = place
    (i,) = index
    if type(i) is int:
        return Part(start + i, start + i + 1, True) if i >= 0 else EVERYTHING
    if is_whole:
        return Part(start, None, is_open)
    return EVERYTHING


def _from_front(i: int, s: Slice) -> int | None:
    first = left_out(s)
    return None if first is None else i + first


def cover(parts: Iterable[Part]) -> bool:
    """Whether parts are all elements together."""
    reached = 0
    for low, high, is_exact in sorted(parts, key=lambda p: p.low):
        if low > reached or not is_exact:
            return False
        if high is None:
            return True
        reached = max(reached, high)
    return False


class Changes:
    """When memory is written, in the order in which a body runs.

    A statement is at a position; it runs again with each enclosing loop. What stands before it in a loop therefore
    runs after it as well.

    Args:
        idle: statements (their ids) that do not run, though they stand there.
    """

    def __init__(self, body: Block, memory: Memory, idle: Container[int] = ()) -> None:
        self.position: dict[int, int] = {}
        self.loops: dict[int, tuple[int, ...]] = {}
        self.written: dict[str, list[tuple[int, tuple[int, ...]]]] = {}
        self.memory = memory
        self.idle = idle
        self.note(body, ())

    def note(self, block: Block, loops: tuple[int, ...]) -> None:
        for s in block:
            here = id(s)
            position = self.position[here] = len(self.position)
            self.loops[here] = loops
            for root in () if here in self.idle else self.memory.writes(s):
                self.written.setdefault(root, []).append((position, loops))
            for f in s.blocks:
                self.note(getattr(s, f), loops if type(s) is If else (*loops, here))

    def __contains__(self, s: Statement) -> bool:
        return id(s) in self.position

    def may_change_after(self, root: str, s: Statement) -> bool:
        """Whether memory may be written after some execution of the statement."""
        here, loops = self.position[id(s)], self.loops[id(s)]
        return any(there > here or (loops and around[:1] == loops[:1]) for there, around in self.written.get(root, ()))

    def is_in_a_loop(self, s: Statement) -> bool:
        return bool(self.loops[id(s)])


__all__ = ["Changes", "Memory", "Part", "cover", "left_out", "outward", "part"]
