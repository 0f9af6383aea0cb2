"""The adjoints of loops: a loop over tapes the other way, or one that runs each iteration again."""

from __future__ import annotations

from collections.abc import Container

from retrograde.compiler.alias import Changes
from retrograde.compiler.cost import loops_of
from retrograde.compiler.elements import copied
from retrograde.compiler.form import (
    Add,
    Alloc,
    Block,
    Call,
    Copy,
    For,
    Get,
    If,
    Load,
    Op,
    Pop,
    PopArray,
    Set,
    Slice,
    Statement,
    Store,
    View,
    While,
)
from retrograde.compiler.one_sweep import Pair
from retrograde.compiler.options import Options
from retrograde.compiler.program import Note, Program
from retrograde.compiler.reexecute import Iterations, is_worth_repeating, last_words, renaming
from retrograde.compiler.source import At
from retrograde.compiler.tapes import Loops, Tapes
from retrograde.compiler.types import BOOL, INT, Operand, Type
from retrograde.compiler.walks import clone, defs, uses, walk, without


class OfLoops(Tapes):
    """Attributes:
    choices: which loops run again, by their numbers, where that is chosen.
    open: those that might or might not, and what was done.
    pairs: statements of the forward sweep whose work their adjoints do as well.
    reruns: the adjoints that run a loop again.
    idle: stores (by their ids) that do not run when an iteration runs again.
    """

    def __init__(
        self, program: Program, inputs: list[str], options: Options, choices: dict[int, bool] | None = None
    ) -> None:
        super().__init__(program, inputs, options)
        self.choices = choices or {}
        self.open: dict[int, bool] = {}
        self.pairs: list[Pair] = []
        self.reruns: list[For] = []
        self.idle: dict[int, Statement] = {}
        self.numbers = {id(s): i for i, s in enumerate(loops_of(program))}
        # Whether there are branches that decide what counts.
        self.is_chosen = any(
            isinstance(x, Set) and self.is_active(f"${x.cell}")
            for s in walk(program.body)
            if isinstance(s, If)
            for x in walk(s.then + s.orelse)
        )

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
        return Iterations(self.program, s, self.memory, self.changes, self.around, self.is_active)

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
        self.open[number] = self.choices.get(number, self.first_guess(s, iterations))
        return self.open[number]

    def first_guess(self, s: For, iterations: Iterations) -> bool:
        if iterations.run_forwards and any(isinstance(x, Call) and self.has_adjoint(x) for x in walk(s.body)):
            return True  # a call's adjoint runs it again in any case
        return is_worth_repeating(s) and not iterations.carried

    def repeated(self, s: For, iterations: Iterations) -> Block:
        """The adjoint of a loop that runs each iteration again, and then its adjoint; what stands for it forward."""
        carried = sorted(iterations.carried)
        keep, put_back = self.state(carried, s.at) if iterations.run_forwards else ([], [])
        # Iterations that run again one after the other take their state from the one before.
        last = {} if iterations.run_forwards else self.last_words(s, iterations.carried)
        allocated, kept, restored, again = self.snapshots(s, [] if iterations.run_forwards else carried, last)
        names = renaming(self.program, s.body)
        instead = names | again
        body = clone(s.body, lambda n: instead.get(n, n), lambda n: names[n])
        for was, now in zip(walk(s.body), walk(body), strict=True):
            if id(was) in self.numbers:
                self.numbers[id(now)] = self.numbers[id(was)]
            if id(was) in self.idle or any(id(was) in stores for stores in last.values()):
                self.idle[id(now)] = now
        for old, new in names.items():
            if self.activity.is_active(old):
                self.activity.active.add(new)
        for x in walk(restored + body):
            for name in defs(x):
                self.definition[name] = x
            if isinstance(x, View):
                self.memory.parents[x.dst] = x.array
        out, outer = self.out, (self.changes, self.loops)
        around = self.around
        inside = {id(x) for x in walk(s.body)}
        self.around = [*(x for x in around if id(x) not in inside), *walk(body)]
        self.changes, self.loops = Changes(body, self.memory, self.idle), Loops()
        forward, backward = self.block(body)
        forward = without(forward, self.idle)
        (self.changes, self.loops), self.around = outer, around
        self.out, self.at = out, s.at
        self.program.notes.append(Note("runs again", s.var, s.at))
        if not backward:
            return [s]
        down = not (iterations.are_unordered or iterations.run_forwards)
        adjoint = For(s.var, s.low, s.high, restored + forward + backward, down, s.parallel)
        for x in (*put_back, adjoint):
            self.emit(x)
        self.reruns.append(adjoint)
        if kept:
            return [*allocated, For(s.var, s.low, s.high, kept + s.body, s.down, s.parallel, at=s.at)]
        if iterations.run_forwards:
            self.pairs.append(Pair(s, adjoint, tuple(put_back)))
        return [*keep, s]

    def state(self, carried: list[str], at: At | None) -> tuple[Block, Block]:
        """What keeps the state at the start of a loop, and puts it back."""
        program = self.program
        keep: Block = []
        put_back: Block = []
        for root in carried:
            name = root.lstrip("$")
            then = program.new(name, program.types[name], program.dims.get(name))
            if program.is_array(name):
                keep.append(Copy(then, name, at=at))
                put_back += copied(program, name, then, program.dims[name])
            else:
                keep.append(Get(then, name, at=at))
                put_back.append(Set(name, then))
        return keep, put_back

    def last_words(self, s: For, carried: set[str]) -> dict[str, set[int]]:
        return last_words(s, carried - self.swapped, self.memory) if self.options.last_words else {}

    def snapshots(
        self, s: For, carried: list[str], unwritten: Container[str]
    ) -> tuple[Block, Block, Block, dict[str, str]]:
        """What makes room for the state at the start of each iteration, keeps it, and puts it back.

        An array that is not written when an iteration runs again is read where it is kept, by names of its own.
        """
        again: dict[str, str] = {}
        if not carried:
            return [], [], [], again
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
                kept += copied(program, tape, name, shape, before=(place,))
                if root in unwritten:
                    restored += self.where_kept(s, name, tape, place, again)
                else:
                    restored += copied(program, name, tape, shape, within=(place,))
            else:
                now, then = program.new(name, type), program.new(name, type)
                kept += [Get(now, name, at=s.at), Store(tape, (place,), now, at=s.at)]
                restored += [Load(then, tape, (place,), at=s.at), Set(name, then, at=s.at)]
            program.notes.append(Note("taped", tape, s.at))
        self.out = outer
        return allocated, kept, restored, again

    def where_kept(self, s: For, array: str, tape: str, place: Operand, again: dict[str, str]) -> Block:
        """Views of a tape in place of an array, and of its views that were made outside of a loop."""
        program, inside = self.program, {name for x in walk(s.body) for name in defs(x)}
        used = {name for x in walk(s.body) for name in uses(x)} - inside
        wanted = [name for name in self.memory.parents if name in used and self.memory.root(name) == array]
        chain: list[str] = []
        for name in wanted:
            around: list[str] = []
            while name != array and name not in chain:
                around.append(name)
                name = self.memory.parents[name]
            chain += reversed(around)
        made: Block = []
        for name in (array, *chain):
            again[name] = program.new(name, program.types[name], program.dims[name])
            view = self.definition.get(name)
            if name == array:
                index = (place, *(Slice() for _ in program.dims[array]))
                made.append(View(again[name], tape, index, at=s.at))
            else:
                assert isinstance(view, View)
                made.append(View(again[name], again[view.array], view.index, view.transposed, at=s.at))
            if self.is_active(array):
                self.bars[again[name]] = self.bar(name)
                self.activity.active.add(tape)
        return made

    # --- what Reverse has ----------------------------------------------------------------------------------------

    def block(self, block: Block) -> tuple[Block, Block]:
        raise NotImplementedError

    def has_adjoint(self, s: Call) -> bool:
        raise NotImplementedError


def _pops(block: Block) -> bool:
    return any(isinstance(s, Pop | PopArray) for s in walk(block))
