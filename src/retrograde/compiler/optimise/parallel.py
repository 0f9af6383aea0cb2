"""Loops over `prange` run on several threads: each thread takes a run of neighbouring iterations.

    for i in prange(n):                        for part in prange(threads):
        s += f(x[i])                               own sum = 0, own shadow = 0
        x_bar[i] += …                  →           for i in range(first of part, first of the next):
        w_bar[j] += …                                  own sum += …; x_bar[i] += …; own shadow[j] += …
                                               s += sums of the parts;  w_bar += shadows of the parts

That is done only where no two iterations can meet: whatever the loop writes is either added to and never read (each
thread adds to one of its own), or an iteration's own (its index is the loop's variable), or zero before and after each
iteration, or private (each iteration writes it before it reads it, and nobody does afterwards). In all other cases the
loop runs in one thread.
"""

from __future__ import annotations

import functools

from retrograde.compiler.alias import Memory
from retrograde.compiler.elements import copied, index_of, loops_over
from retrograde.compiler.form import (
    Add,
    Alloc,
    Block,
    Fill,
    For,
    Get,
    If,
    Increase,
    Load,
    Op,
    Raise,
    Set,
    Stack,
    Statement,
    Store,
    Swap,
    View,
    While,
)
from retrograde.compiler.known import SHORT, UNEQUAL
from retrograde.compiler.ops import is_cheap
from retrograde.compiler.program import Note, Program
from retrograde.compiler.reexecute import NOT_AGAIN, carried, filled_by
from retrograde.compiler.types import BOOL, INT, Operand, Type, zero_of
from retrograde.compiler.walks import blocks_of, clone, defs, uses, walk


def parallelise(program: Program) -> None:
    _Parallel(program).run()


class _Parallel:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.memory = Memory(program)
        self.out: Block = []

    def run(self) -> None:
        self.program.body = self.block(self.program.body)

    def block(self, block: Block) -> Block:
        outer, self.out = self.out, []
        for s in block:
            if isinstance(s, For) and s.parallel:
                self.loop(s)
                continue
            for f in s.blocks:
                setattr(s, f, self.block(getattr(s, f)))
            self.out.append(s)
        made, self.out = self.out, outer
        return made

    def loop(self, s: For) -> None:
        """The loop in parts, or as it is where that cannot be shown to be right."""
        self.out += raised_before(self.program, s)
        plan = Plan(self.program, s, self.memory)
        s.parallel = False
        if plan.reason:
            self.program.notes.append(Note("one thread", plan.reason, s.at))
            self.out.append(s)
        else:
            self.parts(s, plan)

    # --- a loop in parts -------------------------------------------------------------------------------------------

    def parts(self, s: For, plan: Plan) -> None:
        program = self.program
        threads, n = self.op("threads"), self.op("size", s.low, s.high)
        part = program.new("part", INT)
        names: dict[str, str] = {}
        zero_first = (*plan.added_cells, *plan.zero_cells)
        cells = {c: program.new(f"{c}_own", program.types[c]) for c in (*zero_first, *plan.private_cells)}
        start: Block = [Set(cells[c], zero_of(program.types[c])) for c in zero_first]
        end: Block = []
        after: Block = []
        for array in plan.added_arrays:
            type, dims = program.types[array], program.dims[array]
            shared = program.new(f"{array}_parts", Type(type.dtype, type.ndim + 1), (threads, *dims))
            own = names[array] = program.new(f"{array}_own", type, dims)
            self.out.append(Alloc(shared, (threads, *dims), False))
            start.append(Alloc(own, dims, True))
            # Handed over at the end: threads that wrote next to each other would wait for each other's cache lines.
            end += copied(program, shared, own, dims, before=(part,))
            after.append(self.added(array, shared, threads))
        for array in (*plan.private_arrays, *plan.zero_arrays):
            names[array] = program.new(f"{array}_own", program.types[array], program.dims[array])
            start.append(Alloc(names[array], program.dims[array], array in plan.zero_arrays))
        for cell in plan.added_cells:
            shared = program.new(f"{cell}_parts", Type(program.types[cell].dtype, 1), (threads,))
            self.out.append(Alloc(shared, (threads,), True))
            own, t, k = (program.new("t", type) for type in (program.types[cell], program.types[cell], INT))
            end += [Get(own, cells[cell]), Store(shared, (part,), own)]
            after.append(For(k, 0, threads, [Load(t, shared, (k,)), Add(cell, t)]))
        body = clone(s.body, lambda name: names.get(name, name), cell=lambda cell: cells.get(cell, cell))
        first = self.bound(part, n, threads, s.low, start)
        following = program.new("t", INT)
        start.append(Op(following, "+", (part, 1)))
        bound = self.bound(following, n, threads, s.low, start)
        inner = For(s.var, first, bound, body, s.down, share_of=(s.low, s.high), at=s.at)
        for x in (*start, *end):
            x.at = s.at
        self.out.append(For(part, 0, threads, [*start, inner, *end], parallel=True, at=s.at))
        self.out += after

    def bound(self, part: Operand, n: Operand, threads: Operand, low: Operand, out: Block) -> Operand:
        """The first iteration of a part: low + part * n // threads."""

        def op(fn: str, *args: Operand) -> str:
            out.append(Op(self.program.new("t", INT), fn, args))
            return out[-1].dst  # type: ignore[attr-defined]

        first = op("//", op("*", part, n), threads)
        if low != 0:
            first = op("+", first, low)
        # Says that the iterations' indices are not negative, which a loop from 0 says by itself.
        return op("max", first, 0) if self.program.is_size(low) else first

    def added(self, array: str, shared: str, threads: Operand) -> Statement:
        """`array += the sum of its parts`."""
        program, dims = self.program, self.program.dims[array]
        index, k, t = index_of(program, dims), program.new("k", INT), program.new("t", program.types[array].element)
        return For(k, 0, threads, loops_over(index, dims, [Load(t, shared, (k, *index)), Increase(array, index, t)]))

    def op(self, fn: str, *args: Operand) -> str:
        name = self.program.new("t", INT)
        self.out.append(Op(name, fn, args))
        return name


def raised_before(program: Program, s: For) -> Block:
    """Take comparisons of sizes that do not change out of a loop; what is to stand in front of it.

    Those in a branch stay, as nobody knows whether it is taken. So do those in an inner loop, which may not run, but
    for those that only ask for another variant of the program.
    """
    inside = {name for x in walk([s]) for name in defs(x)}
    before: Block = []
    guards: Block = []

    def without_guards(block: Block, is_inner: bool = False) -> Block:
        kept: Block = []
        for x in block:
            if isinstance(x, For):
                x.body = without_guards(x.body, True)
            if _is_guard(x, is_inner) and inside.isdisjoint(uses(x)):
                guards.append(x)
            elif isinstance(x, Op) and inside.isdisjoint(uses(x)) and is_cheap(x.fn):
                before.append(x)
                inside.discard(x.dst)
            else:
                kept.append(x)
        return kept

    s.body = without_guards(s.body)
    if guards:
        runs = program.new("t", BOOL)
        before += [Op(runs, "<", (s.low, s.high)), If(runs, guards, [], at=s.at)]
    return before


def _is_guard(s: Statement, is_inner: bool) -> bool:
    if not isinstance(s, If) or s.orelse or len(s.then) != 1 or not isinstance(s.then[0], Raise):
        return False
    message = s.then[0].message
    return not is_inner or SHORT in message or UNEQUAL in message


class Plan:
    """What the parts of a loop share and what each has of its own; or the reason why there are none."""

    def __init__(self, program: Program, loop: For, memory: Memory) -> None:
        self.program, self.loop, self.memory = program, loop, memory
        self.inside = walk(loop.body)
        self.added_cells: list[str] = []
        self.added_arrays: list[str] = []
        self.zero_cells: list[str] = []
        self.private_cells: list[str] = []
        self.private_arrays: list[str] = []
        self.zero_arrays: list[str] = []
        self.reason = self.found()

    def found(self) -> str:
        program, loop, memory = self.program, self.loop, self.memory
        stacks = {s.stack for s in self.inside if isinstance(s, Stack)}  # an iteration's own
        if any(type(s) in _IN_ORDER and stacks.isdisjoint((*uses(s), *defs(s))) for s in self.inside):
            return "it may end early, or needs its iterations in order"
        own = {name for s in self.inside for name in defs(s)}
        own_roots = {memory.root(name) for name in own if program.types[name].is_array} & own | stacks
        inside = {loop, *self.inside}
        around = [s for s in walk(program.body) if s not in inside]
        # A sweep back counts with the names of the sweep forward.
        values = own.difference(s.var for s in around if isinstance(s, For))
        if not all(values.isdisjoint(uses(s)) for s in around):
            return "its last values are used behind it"
        read_outside = {root for s in around for root in memory.reads(s)}
        read = memory.all_reads(loop.body)
        private: set[str] = set()
        zero: list[str] = []
        for root in sorted(memory.all_writes(loop.body) - own_roots):
            if not root.startswith("$") and self.is_spread(root):
                continue
            if self.is_zero_between(root):
                zero.append(root)
                continue
            if root not in read and all(isinstance(s, Add | Increase) for s in self.writers[root]):
                if root.startswith("$"):
                    self.added_cells.append(root[1:])
                elif self.is_accessed_here(root, own):
                    self.added_arrays.append(root)
                else:
                    return f"{root} is added to through a view"
            elif root not in read_outside and root not in program.params:
                private.add(root)
            else:
                return f"{root.lstrip('$')} is shared by its iterations"
        if carried(loop.body, private, memory):
            return "an iteration may read what another one wrote"
        self.private_cells = sorted(root[1:] for root in private if root.startswith("$"))
        self.private_arrays = sorted(root for root in private if not root.startswith("$"))
        self.zero_cells = [root[1:] for root in zero if root.startswith("$")]
        self.zero_arrays = [root for root in zero if not root.startswith("$")]
        if not all(self.is_accessed_here(root, own) for root in (*self.private_arrays, *self.zero_arrays)):
            return "a view of what each iteration needs for itself is made in front of it"
        return ""

    @functools.cached_property
    def writers(self) -> dict[str, list[Statement]]:
        """The statements of the loop that write a root."""
        found: dict[str, list[Statement]] = {}
        for s in self.inside:
            for root in self.memory.writes(s):
                found.setdefault(root, []).append(s)
        return found

    @functools.cached_property
    def accesses(self) -> dict[str, dict[Statement, set[str]]]:
        """The statements of the loop that name an array with a root, and the names that they have for it."""
        found: dict[str, dict[Statement, set[str]]] = {}
        for s in self.inside:
            for name in (*uses(s), *defs(s)):
                if self.memory.is_array(name):
                    found.setdefault(self.memory.root(name), {}).setdefault(s, set()).add(name)
        return found

    def is_zero_between(self, root: str) -> bool:
        """Whether a cell or a buffer is zero when an iteration starts and when it ends, as cotangents are."""
        if root in self.program.params or not any(map(_writes_zero, self.writers[root])):
            return False
        before: list[bool] = []

        def after(block: Block, is_zero: bool) -> bool:
            for s in block:
                if s is self.loop:
                    before.append(is_zero)
                if root not in self.memory.written_in(s):
                    continue
                if isinstance(s, If):
                    is_zero = after(s.then, is_zero) & after(s.orelse, is_zero)
                elif isinstance(s, For) and self.zeroes(s, root):
                    is_zero = True
                elif isinstance(s, For | While):
                    stays = is_zero and all(after(inner, True) for inner in blocks_of(s))
                    if not stays:  # what follows in the loop may then find something else, from the second time on
                        is_zero = False
                        for inner in blocks_of(s):
                            after(inner, False)
                else:
                    is_zero = self.leaves_zero(s, root, is_zero)
            return is_zero

        after(self.program.body, False)
        return bool(before) and all(before) and after(self.loop.body, True)

    def leaves_zero(self, s: Statement, root: str, is_zero: bool) -> bool:
        """Whether a cell or buffer is zero behind a statement that writes it."""
        if isinstance(s, Set):
            return _is_zero(s.value)
        if isinstance(s, Alloc):
            return s.zero
        if isinstance(s, Fill):
            return is_zero or s.array == root
        return isinstance(s, Store) and _is_zero(s.value) and is_zero

    def zeroes(self, loop: For, root: str) -> bool:
        """Whether a nest of loops writes zero into every element of a buffer, and nothing else into it."""
        writers = [s for s in walk([loop]) if root in self.memory.writes(s)]
        if not writers or not all(isinstance(s, Store) and _is_zero(s.value) for s in writers):
            return False
        return root in filled_by(loop, self.memory)

    def is_accessed_here(self, root: str, own: set[str]) -> bool:
        """Whether a buffer is accessed by its name, or by views that are made in the loop."""
        return all(name == root or name in own for names in self.accesses.get(root, {}).values() for name in names)

    def is_spread(self, root: str) -> bool:
        """Whether each iteration touches elements of its own: on one axis the index is always the loop's variable."""
        axes: set[int] | None = None
        views = {s.dst for s in self.inside if isinstance(s, View)}
        for s, names in self.accesses.get(root, {}).items():
            if isinstance(s, Load | Store | Increase | View) and s.array == root:
                if isinstance(s, View) and (s.transposed or None in s.index):
                    return False
                found = {k for k, i in enumerate(s.index) if i == self.loop.var}
                axes = found if axes is None else axes & found
            elif not names <= views:
                return False
        return bool(axes)


_IN_ORDER = frozenset((Raise, Swap, *NOT_AGAIN))


def _writes_zero(s: Statement) -> bool:
    return isinstance(s, Fill) or (isinstance(s, Set | Store) and _is_zero(s.value))


def _is_zero(value: Operand) -> bool:
    return not isinstance(value, str) and value == 0
