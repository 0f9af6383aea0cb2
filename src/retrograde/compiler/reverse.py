"""Reverse mode: from a program to the program of its pullback, of the same form.

    forward sweep: the program, which also puts on tapes what the reverse sweep will need
    reverse sweep: each statement's adjoint, last statement first

Arrays have shadows (`x_bar`) with the aliasing of the arrays themselves, so that views and writes are no special
cases: a store reverses to `v̄ += x̄[i]; x̄[i] = 0`. Tapes keep values; memory is never restored.

The adjoint of a block names the block's temps freely. Outside of loops they are still there. Inside of a loop each
iteration overwrites them, so at the start of the adjoint of each block in a loop `resolve` gives every one back: it is
computed again from what is at hand (`Recompute`), or else taped.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from retrograde.compiler.activity import Activity
from retrograde.compiler.alias import Changes, Memory
from retrograde.compiler.cost import cost, loops_of, shares
from retrograde.compiler.form import (
    BOOL,
    INT,
    Add,
    Alloc,
    At,
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
    Note,
    Op,
    Operand,
    Pop,
    PopArray,
    Program,
    Push,
    Raise,
    Return,
    Set,
    Stack,
    Statement,
    Store,
    Swap,
    Type,
    View,
    While,
    Whole,
    clone,
    defs,
    free_names,
    substitute,
    uses,
    walk,
)
from retrograde.compiler.one_sweep import Again, without_first_runs
from retrograde.compiler.ops import has_derivative
from retrograde.compiler.optimise import PASSES, tidy
from retrograde.compiler.partials import partials
from retrograde.compiler.recompute import Recompute
from retrograde.compiler.reexecute import Iterations, is_worth_repeating, renaming
from retrograde.compiler.reverse_calls import OfCalls


@dataclass(frozen=True)
class Options:
    """How derivatives are made; each switch can be turned for cross-checks.

    Attributes:
        careful: zero times infinity is zero.
        recompute: compute values again in the reverse sweep where that is cheap; otherwise tape them all.
        repeat: run the iterations of a loop again in the reverse sweep, wherever that is possible (True), nowhere
            (False), or where it is likely to be cheaper than a tape (None).
        one_sweep: leave such a loop out of the forward sweep, where only the value needs it.
        rectangular: tapes of known size are arrays; otherwise all are stacks.
        passes: the passes of optimise/ that are on.
        checkpoint: the length of the segments of loops with a state (see segments.py); True for a root of the whole.
    """

    careful: bool = False
    recompute: bool = True
    repeat: bool | None = None
    one_sweep: bool = True
    rectangular: bool = True
    passes: tuple[str, ...] = PASSES
    checkpoint: bool | int = False


@dataclass
class Loops:
    """The loops around the block that is being reversed, and the tapes of what is in them."""

    chain: list[For | While] = field(default_factory=list)
    inside: set[str] = field(default_factory=set)  # all names that are defined inside the outermost
    before: Block = field(default_factory=list)  # stands before the outermost: makes the tapes
    is_rectangular: bool = True


SMALL = 0.05
"""The part of a program's cost below which it does not pay to weigh the ways of writing a derivative."""


class Reverse(OfCalls):
    def __init__(
        self, program: Program, inputs: list[str], options: Options, choices: dict[int, bool] | None = None
    ) -> None:
        super().__init__(program, options.careful)
        self.options = options
        self.choices = choices or {}  # which loops run again, by their numbers, where that is chosen
        self.open: dict[int, bool] = {}  # those that might or might not, and what was done
        self.numbers = {id(s): i for i, s in enumerate(loops_of(program))}
        self.inputs = inputs
        self.memory = Memory(program)
        self.activity = Activity(program, set(inputs), self.memory)
        self.changes = Changes(program.body, self.memory)
        self.loops = Loops()
        self.bars: dict[str, str] = {}
        self.block_of: dict[str, int] = {}  # where each temp is defined
        self.blocks: list[int] = []
        self.started: set[str] = set()  # temps whose cotangent has a value
        self.zeroed: dict[int, Block] = {}  # cotangents that start at zero, by the block
        self.seeds: dict[int, str] = {}
        self.results: dict[int, str] = {}
        # What the forward sweep defines besides the program's own names, by the block in which it stands: how often
        # `while` loops ran, and copies of arrays.
        self.added: dict[int, set[str]] = {}
        self.again: list[Again] = []
        self.around = list(walk(program.body))  # the statements among which loops stand
        # Whether there are branches that decide what counts.
        self.is_chosen = any(
            isinstance(x, Set) and self.is_active(f"${x.cell}")
            for s in walk(program.body)
            if isinstance(s, If)
            for x in walk(s.then + s.orelse)
        )
        self.swapped = {name for s in walk(program.body) if isinstance(s, Swap) for name in s.targets}
        self.definition = {name: s for s in walk(program.body) for name in defs(s)}

    # --- the whole program ---------------------------------------------------------------------------------------

    def build(self) -> Program:
        """The program `(params, shadows of active arrays, seeds) → (scalar results, cotangents of scalars)`.

        The shadow of an array comes in with the cotangent of its final contents and goes out with that of its first.
        """
        program = self.program
        primal_params = list(program.params)
        shadows = [self.bar(p) for p in self.inputs if program.types[p].is_array]
        body = program.body
        self.make_seeds(body)
        for p in primal_params:
            self.block_of[p] = id(body)
        forward, backward = self.block(body)
        program.reached = frozenset(p for p in self.inputs if p in self.activity.reaching)
        program.notes += [Note("active", node.lstrip("$"), None) for node in sorted(self.activity.active)]
        forward, late = without_first_runs(forward, backward, self.again, set(self.results.values()))
        cells = [Set(bar, 0.0) for node, bar in self.bars.items() if node.startswith("$")]
        last: Block = late
        values: list[Operand] = []
        for cell in self.results.values():
            t = program.new(cell, program.types[cell])
            last.append(Get(t, cell))
            values.append(t)
        for p in self.inputs:
            if not program.types[p].is_array:
                t = program.new(self.bar(p), program.types[p])
                last.append(Get(t, self.bars[p]) if p in self.started else Op(t, "id", (0.0,)))
                values.append(t)
        program.params = primal_params + shadows + list(self.seeds.values())
        program.body = forward + cells + backward + last + [Return(tuple(values))]
        return program

    def reverse(self, procedure: Program, inputs: list[str]) -> None:
        """Make a procedure the program of its own pullback."""
        Reverse(procedure, inputs, self.options).build()

    def make_seeds(self, body: Block) -> None:
        """One seed for each inexact result; the scalar results are kept in cells, as there may be several returns."""
        first = next((s for s in walk(body) if isinstance(s, Return)), None)
        for i, v in enumerate(first.values if first else ()):
            type = self.program.type_of(v)
            if not type.is_array:
                self.results[i] = self.program.new("value", type)
            if type.is_inexact:
                self.seeds[i] = self.program.new("y_bar", type)

    # --- names ---------------------------------------------------------------------------------------------------

    def bar(self, name: str) -> str:
        """The cotangent of a temp or cell (a cell), or the shadow of an array."""
        definition = self.definition.get(name)
        if isinstance(definition, View) and self.memory.root(name) in self.swapped:
            # Of an array that changes its name it is a part of what has the name just now.
            now = self.program.companion(name, "bar")
            self.emit(View(now, self.bar(definition.array), definition.index, definition.transposed))
            return now
        if name not in self.bars:
            self.bars[name] = self.program.companion(name, "bar")
        return self.bars[name]

    def is_active(self, operand: Operand) -> bool:
        return self.activity.is_active(operand)

    def cotangent(self, name: str) -> Operand:
        """The value of the cotangent of a temp, or None if nothing has reached it."""
        if name not in self.started:
            return None
        return self.get(self.bar(name))

    def get(self, cell: str) -> str:
        t = self.program.new("g", self.program.types[cell])
        self.emit(Get(t, cell))
        return t

    def load(self, array: str, index: Index) -> str:
        t = self.program.new("g", self.program.types[array].element)
        self.emit(Load(t, array, index))
        return t

    def contribute(self, operand: Operand, x: Operand) -> None:
        """Add to the cotangent of a temp."""
        if not self.is_active(operand):
            return
        bar, block = self.bar(operand), self.block_of[operand]
        if operand in self.started:
            self.emit(Add(bar, x))
        elif block == self.blocks[-1]:
            self.emit(Set(bar, x))
        else:  # from inside of a loop or branch
            self.zeroed.setdefault(block, []).append(Set(bar, 0.0))
            self.emit(Add(bar, x))
        self.started.add(operand)

    # --- blocks --------------------------------------------------------------------------------------------------

    def block(self, block: Block) -> tuple[Block, Block]:
        """The forward code and the adjoint of a block."""
        self.blocks.append(id(block))
        for s in block:
            for name in defs(s):
                self.block_of[name] = id(block)
        forward: Block = []
        backward: Block = []
        first: Block = []  # shadows of what the block defines
        outer = self.out
        for s in reversed(block):
            self.out = []
            self.at = s.at
            kept, shadows = self.statement(s)
            backward += self.out
            forward = kept + forward
            first = shadows + first
        self.out = outer
        self.blocks.pop()
        backward = self.zeroed.pop(id(block), []) + first + backward
        if self.loops.chain:
            forward, backward = self.resolve(block, forward, backward)
        return forward, backward

    def statement(self, s: Statement) -> tuple[Block, Block]:
        """Write the adjoint of a statement.

        Returns: what stands for it in the forward sweep, and what makes the shadows of the arrays that it defines.
        """
        if isinstance(s, For | While):
            return self.loop(s), []
        if isinstance(s, If):
            return self.branch(s), []
        if isinstance(s, Return):
            return self.returned(s), []
        if isinstance(s, View | Alloc | Copy):
            return [s], self.shadow(s)
        if isinstance(s, Call):
            return self.of_call(s), [m for o in s.dsts if self.program.is_array(o) for m in self.zeros(o, s.at)]
        if isinstance(s, Whole):
            return self.of_whole(s), [made for o in s.outs if self.program.is_array(o) for made in self.zeros(o, s.at)]
        handler = _ADJOINTS.get(type(s))
        if handler is not None:
            handler(self, s)
        elif not isinstance(s, Raise):
            raise NotImplementedError(type(s).__name__)
        return [s], []

    def of_op(self, s: Op) -> None:
        if not self.is_active(s.dst) or not has_derivative(s.fn):
            return
        g = self.cotangent(s.dst)
        if g is None:
            return
        wanted = tuple(self.is_active(a) for a in s.args)
        for a, p in zip(s.args, partials(s.fn, s.args, s.dst, wanted, self.op), strict=True):
            if p is not None:
                self.contribute(a, self.times(g, p))

    def of_load(self, s: Load) -> None:
        g = self.cotangent(s.dst) if self.is_active(s.dst) else None
        if g is not None:
            self.emit(Increase(self.bar(s.array), s.index, g))

    def of_store(self, s: Store) -> None:
        if not self.is_active(s.array):
            return
        shadow = self.bar(s.array)
        g = self.load(shadow, s.index) if self.is_active(s.value) else None
        self.emit(Store(shadow, s.index, 0.0))
        if g is not None:
            self.contribute(s.value, g)

    def of_increase(self, s: Increase) -> None:
        if self.is_active(s.array) and self.is_active(s.value):
            self.contribute(s.value, self.load(self.bar(s.array), s.index))

    def of_fill(self, s: Fill) -> None:
        if self.is_active(s.array):
            self.emit(Fill(self.bar(s.array)))

    def of_get(self, s: Get) -> None:
        g = self.cotangent(s.dst) if self.is_active(s.dst) else None
        if g is not None:
            self.emit(Add(self.bar(f"${s.cell}"), g))

    def of_set(self, s: Set) -> None:
        if not self.is_active(f"${s.cell}"):
            return
        bar = self.bar(f"${s.cell}")
        g = self.get(bar) if self.is_active(s.value) else None
        self.emit(Set(bar, 0.0))
        if g is not None:
            self.contribute(s.value, g)

    def of_add(self, s: Add) -> None:
        if self.is_active(f"${s.cell}") and self.is_active(s.value):
            self.contribute(s.value, self.get(self.bar(f"${s.cell}")))

    def of_swap(self, s: Swap) -> None:
        # Cycle by cycle, all or none.
        pairs = [(v, t) for t, v in zip(s.targets, s.sources, strict=True) if self.is_active(t)]
        if pairs:
            self.emit(Swap(tuple(self.bar(v) for v, _ in pairs), tuple(self.bar(t) for _, t in pairs)))

    def shadow(self, s: View | Alloc | Copy) -> Block:
        """What makes the shadow of an array; a copy's is given back to what was copied."""
        if not self.is_active(s.dst) or (isinstance(s, View) and self.memory.root(s.dst) in self.swapped):
            return []
        bar = self.bar(s.dst)
        if isinstance(s, View):
            return [View(bar, self.bar(s.array), s.index, s.transposed, at=s.at)]
        if isinstance(s, Copy) and self.is_active(s.array):
            self.add_elements(self.bar(s.array), bar, self.program.dims[s.dst])
        return self.zeros(s.dst, s.at)

    def zeros(self, array: str, at: At | None) -> Block:
        """What makes the shadow of a new array."""
        return [Alloc(self.bar(array), self.program.dims[array], True, at=at)] if self.is_active(array) else []

    def add_elements(self, to: str, array: str, shape: tuple[Operand, ...], index: Index = ()) -> None:
        """`to += array`, by a loop over the elements."""
        if len(index) == len(shape):
            self.emit(Increase(to, index, self.load(array, index)))
            return
        var = self.program.new("e", INT)
        outer, self.out = self.out, []
        self.add_elements(to, array, shape, (*index, var))
        inner, self.out = self.out, outer
        self.emit(For(var, 0, shape[len(index)], inner))

    def returned(self, s: Return) -> Block:
        kept: Block = []
        for i, v in enumerate(s.values):
            if i in self.results:
                keep = Set(self.results[i], v)
                keep.at = s.at
                kept.append(keep)
            if not self.is_active(v):
                continue
            seed = self.seeds[i]
            if self.program.is_array(v):
                self.add_elements(self.bar(v), seed, self.program.dims[v])
            else:
                self.contribute(v, seed)
        return kept

    def branch(self, s: If) -> Block:
        out = self.out
        then, then_back = self.block(s.then)
        orelse, else_back = self.block(s.orelse)
        self.out, self.at = out, s.at
        if then_back or else_back:
            self.emit(If(s.cond, then_back, else_back))
        made = If(s.cond, then, orelse)
        made.at = s.at
        return [made]

    # --- loops ---------------------------------------------------------------------------------------------------

    def loop(self, s: For | While) -> Block:
        out = self.out
        is_outermost = not self.loops.chain
        if is_outermost and isinstance(s, For) and self.options.repeat is not False:
            iterations = self.iterations(s)
            if iterations.are_repeatable and self.is_to_run_again(s, iterations):
                return self.repeated(s, iterations)
        if is_outermost:
            inside = {name for x in walk([s]) for name in defs(x)}
            self.loops = Loops([], inside, [], self.options.rectangular and self.is_rectangular(s, inside))
        self.loops.chain.append(s)
        forward, backward = self.block(s.body)
        self.loops.chain.pop()
        self.out, self.at = out, s.at
        made: Block
        if isinstance(s, For):
            run: Statement = For(s.var, s.low, s.high, forward, s.down, s.parallel)
            made = [run]
            if backward:
                down = _pops(backward) or not (self.loops.is_rectangular and self.iterations(s).are_unordered)
                self.unless_zero(s, For(s.var, s.low, s.high, backward, down, s.parallel, at=s.at))
        else:
            counter, count = self.program.new("count", INT), self.program.new("count", INT)
            run = While(s.test, s.cond, [*forward, Add(counter, 1)])
            counted = Get(count, counter)
            made = [Set(counter, 0), run, counted]
            self.define_here(count, counted, s)
            if backward:
                self.emit(For(self.program.new("k", INT), 0, count, backward, True))
        run.at = s.at
        if is_outermost:
            made = self.loops.before + made
            self.loops = Loops()
        return made

    def iterations(self, s: For) -> Iterations:
        return Iterations(self.program, s, self.memory, self.changes, self.around)

    def unless_zero(self, s: For, adjoint: For) -> None:
        """The adjoint of a loop. Where one cell is all that the loop writes, a zero cotangent of it needs no adjoint.

        That pays where a branch decides whether the cell counts: the distance to a centre that is not the nearest.
        """
        written = {root for x in walk(s.body) for root in self.memory.writes(x) if self.is_active(root)}
        sums = {f"${x.cell}" for x in walk(s.body) if isinstance(x, Add)}
        others = [x for x in walk(s.body) if isinstance(x, Set) and f"${x.cell}" in written]
        # A stack must be emptied all the same.
        if len(written) != 1 or not written <= sums or others or _pops([adjoint]) or not self.is_chosen:
            self.emit(adjoint)
            return
        matters = self.program.new("matters", BOOL)
        self.emit(Op(matters, "!=", (self.get(self.bar(written.pop())), 0.0)))
        self.emit(If(matters, [adjoint], [], shortcut=True))

    def is_to_run_again(self, s: For, iterations: Iterations) -> bool:
        """Whether a loop that can be repeated is: as was chosen, or by a first guess."""
        if self.options.repeat or s.again:
            return True
        number = self.numbers.get(id(s), -1)
        if number < 0:
            return False
        self.open[number] = self.choices.get(number, is_worth_repeating(s) and not iterations.carried)
        return self.open[number]

    def repeated(self, s: For, iterations: Iterations) -> Block:
        """The adjoint of a loop that runs each iteration again, and then its adjoint; what stands for it forward."""
        allocated, kept, restored = self.snapshots(s, sorted(iterations.carried))
        names = renaming(self.program, s.body)
        body = clone(s.body, lambda n: names.get(n, n), lambda n: names[n])
        for old_loop, new_loop in zip(walk(s.body), walk(body), strict=True):
            if id(old_loop) in self.numbers:
                self.numbers[id(new_loop)] = self.numbers[id(old_loop)]
        for old, new in names.items():
            if self.activity.is_active(old):
                self.activity.active.add(new)
        for x in walk(body):
            for name in defs(x):
                self.definition[name] = x
            if isinstance(x, View):
                self.memory.parents[x.dst] = x.array
        out, outer = self.out, (self.changes, self.loops)
        around = self.around
        inside = {id(x) for x in walk(s.body)}
        self.around = [*(x for x in around if id(x) not in inside), *walk(body)]
        self.changes, self.loops = Changes(body, self.memory), Loops()
        forward, backward = self.block(body)
        (self.changes, self.loops), self.around = outer, around
        self.out, self.at = out, s.at
        self.program.notes.append(Note("runs again", s.var, s.at))
        if not backward:
            return [s]
        adjoint = For(s.var, s.low, s.high, restored + forward + backward, not iterations.are_unordered, s.parallel)
        self.emit(adjoint)
        if kept:
            return [*allocated, For(s.var, s.low, s.high, kept + s.body, s.down, s.parallel, at=s.at)]
        sums = iterations.sums()
        if iterations.are_unordered and sums is not None and self.options.one_sweep:
            self.again.append(Again(s, adjoint, sums))
        return [s]

    def snapshots(self, s: For, carried: list[str]) -> tuple[Block, Block, Block]:
        """What makes room for the state at the start of each iteration, keeps it, and puts it back."""
        program = self.program
        outer, self.out = self.out, []
        place = s.var if s.low == 0 else self.op("-", s.var, s.low)
        finding, self.out = self.out, []
        length = self.op("size", s.low, s.high)
        allocated, self.out = self.out, []
        kept: Block = list(finding)
        restored: Block = list(finding)
        for root in carried:
            name = root.lstrip("$")
            type = program.types[name]
            shape = program.dims[name] if type.is_array else ()
            tape = program.new(f"{name}_kept", Type(type.dtype, len(shape) + 1), (length, *shape))
            allocated.append(Alloc(tape, (length, *shape), False, at=s.at))
            if type.is_array:
                kept += self.copied_elements(tape, (place,), name, (), shape)
                restored += self.copied_elements(name, (), tape, (place,), shape)
            else:
                now, then = program.new(name, type), program.new(name, type)
                kept += [Get(now, name, at=s.at), Store(tape, (place,), now, at=s.at)]
                restored += [Load(then, tape, (place,), at=s.at), Set(name, then, at=s.at)]
            program.notes.append(Note("taped", tape, s.at))
        self.out = outer
        return allocated, kept, restored

    def copied_elements(self, to: str, before: Index, array: str, within: Index, shape: tuple[Operand, ...]) -> Block:
        """`to[before] = array[within]`, by loops over the elements."""
        index = tuple(self.program.new("e", INT) for _ in shape)
        t = self.program.new("t", self.program.types[array].element)
        made: Block = [Load(t, array, (*within, *index)), Store(to, (*before, *index), t)]
        for var, n in zip(reversed(index), reversed(shape), strict=True):
            made = [For(var, 0, n, made)]
        return made

    def is_rectangular(self, s: For | While, inside: set[str]) -> bool:
        """Whether the number of iterations of all loops inside is known before the outermost begins."""
        loops = [x for x in walk([s]) if isinstance(x, For | While)]
        return all(isinstance(x, For) and self.room_of(x, inside) is not None for x in loops)

    def room_of(self, loop: For, inside: set[str]) -> tuple[Operand, Operand] | None:
        """Between which numbers the variable of a loop stays, as known before the outermost begins.

        The inner loop of a triangle gets the room of the square around it.
        """
        if loop.low not in inside and loop.high not in inside:
            return loop.low, loop.high
        high = self.bound_of(loop.high, inside)
        return None if high is None or not self.is_not_negative(loop.low) else (0, high)

    def bound_of(self, operand: Operand, inside: set[str]) -> Operand:
        """A number that is not less than an integer, known before the outermost loop begins; None if there is none."""
        if operand not in inside:
            return operand
        definition = self.definition[operand]
        if isinstance(definition, For):
            return self.bound_of(definition.high, inside)
        if isinstance(definition, Op) and definition.fn == "+" and definition.args[1] == 1:
            loop = self.definition.get(definition.args[0])  # i + 1 is at most the end of the loop over i
            return self.bound_of(loop.high, inside) if isinstance(loop, For) else None
        return None

    def is_not_negative(self, operand: Operand) -> bool:
        if not isinstance(operand, str):
            return bool(operand >= 0)
        definition = self.definition.get(operand)
        if isinstance(definition, For):
            return self.is_not_negative(definition.low)
        if isinstance(definition, Op) and definition.fn == "+":
            return all(map(self.is_not_negative, definition.args))
        return self.program.is_size(operand)

    def define_here(self, name: str, definition: Get, loop: Statement) -> None:
        """Make a new temp of the forward sweep known: it stands directly behind a loop."""
        self.block_of[name] = self.blocks[-1]
        self.definition[name] = definition
        self.added.setdefault(self.blocks[-1], set()).add(name)
        # Its cell is written again with each run of the loops around.
        self.changes.position[id(definition)] = self.changes.position[id(loop)]
        self.changes.loops[id(definition)] = self.changes.loops[id(loop)]
        self.changes.written.setdefault(f"${definition.cell}", []).append(
            (self.changes.position[id(loop)], self.changes.loops[id(loop)])
        )

    # --- what the adjoint of a block in a loop needs of the block ---------------------------------------------------

    def resolve(self, block: Block, forward: Block, backward: Block) -> tuple[Block, Block]:
        """Give the adjoint of a block in a loop the temps that it names."""
        here = {name for s in block for name in defs(s)} | self.added.pop(id(block), set())
        needed = [name for name in free_names(backward) if name in here]
        if not needed:
            return forward, backward
        plan = Recompute(self, here, needed)
        again, names = plan.statements, plan.names
        for name in plan.names:
            if isinstance(self.definition[name], Op | Load):
                self.program.notes.append(Note("again", name, self.definition[name].at))
        keep: dict[str, Block] = {}
        fetch: Block = []
        arrays: Block = []
        for name in plan.taped:
            store, load, new = self.tape(name)
            keep[name] = store
            if self.program.is_array(name):
                arrays += load
            else:
                fetch += load
            names[name] = new
        taped_forward: Block = []
        for s in forward:
            taped_forward.append(s)
            for name in defs(s):
                taped_forward += keep.pop(name, [])
        assert not keep, keep
        # Arrays come off their tapes once their sizes are there; views of them follow.
        views = _made_of(again, {name for name in plan.taped if self.program.is_array(name)}, names)
        again = [s for s in again if s not in views]
        return taped_forward, fetch + substitute(again + arrays + views + backward, names)

    def tape(self, name: str) -> tuple[Block, Block, str]:
        """What puts a temp on a tape, what takes it off again, and its name there."""
        program, loops = self.program, self.loops
        type = program.types[name]
        new = program.new(name, type, program.dims.get(name))
        outer, self.out = self.out, []
        before: Block
        store: Block
        load: Block
        if type.is_array:
            tape = program.new(f"{name}_tape", type.element)
            before = [Stack(tape)]
            store = [Push(tape, name)]
            load = [PopArray(new, tape, program.dims[name])]
        elif loops.is_rectangular:
            sizes = []
            for loop in loops.chain:
                assert isinstance(loop, For)
                room = self.room_of(loop, loops.inside)
                assert room is not None
                sizes.append(self.op("size", *room))
            before = self.out
            tape = program.new(f"{name}_tape", Type(type.dtype, len(sizes)), tuple(sizes))
            before.append(Alloc(tape, tuple(sizes), False))
            self.out = []
            store = [*self.place(), Store(tape, self.index, name)]
            self.out = []
            load = [*self.place(), Load(new, tape, self.index)]
        else:
            tape = program.new(f"{name}_tape", type)
            before = [Stack(tape)]
            store = [Push(tape, name)]
            load = [Pop(new, tape)]
        self.out = outer
        loops.before += before
        program.notes.append(Note("taped", tape, self.definition[name].at))
        return store, load, new

    index: Index = ()

    def place(self) -> Block:
        """Where in a tape the current iteration writes: `index`, and the statements that compute it."""
        places: list[Operand] = []
        for loop in self.loops.chain:
            assert isinstance(loop, For)
            room = self.room_of(loop, self.loops.inside)
            assert room is not None
            places.append(loop.var if room[0] == 0 else self.op("-", loop.var, room[0]))
        self.index = tuple(places)
        return self.out


def _made_of(block: Block, arrays: set[str], names: dict[str, str]) -> Block:
    """The statements of a block that depend on some arrays; `names` are what they will be called."""
    arrays = set(arrays)
    own = {new: old for old, new in names.items()}
    found: Block = []
    for s in block:
        if arrays & set(uses(s)):
            found.append(s)
            arrays |= {own.get(name, name) for name in defs(s)}
    return found


def _pops(block: Block) -> bool:
    return any(isinstance(s, Pop | PopArray) for s in walk(block))


_ADJOINTS: dict[type, Callable[..., None]] = {
    Op: Reverse.of_op,
    Load: Reverse.of_load,
    Store: Reverse.of_store,
    Increase: Reverse.of_increase,
    Fill: Reverse.of_fill,
    Get: Reverse.of_get,
    Set: Reverse.of_set,
    Add: Reverse.of_add,
    Swap: Reverse.of_swap,
}


def pullback_program(program: Program, inputs: list[str], name: str, options: Options) -> Program:
    """The program of the pullback with respect to some of the parameters, cleaned.

    Where a loop that matters may run again or be taped, both are written out, and the cheaper is taken.
    """
    part = shares(program)

    def written(choices: dict[int, bool]) -> tuple[Program, dict[int, bool]]:
        reverse = Reverse(program.derived(name), inputs, options, choices)
        return tidy(reverse.build(), options.passes), reverse.open

    best, choices = written({})
    lowest = cost(best)
    for loop in [number for number in choices if part[number] > SMALL]:
        others = choices | {loop: not choices[loop]}
        other, _ = written(others)
        if cost(other) < lowest:
            best, lowest, choices = other, cost(other), others
    return best
