"""What the adjoint of a block in a loop needs of the block: computed again, or taped.

The adjoint of a block names the block's temps freely. Outside of loops they are still there. Inside of a loop each
iteration overwrites them, so at the start of the adjoint of each block in a loop `resolve` gives every one back: it is
computed again from what is at hand (`Recompute`), or else taped.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from retrograde.compiler.cotangents import Cotangents
from retrograde.compiler.form import (
    Alloc,
    Block,
    For,
    Get,
    Index,
    Load,
    Op,
    Pop,
    PopArray,
    Push,
    Stack,
    Statement,
    Store,
    While,
)
from retrograde.compiler.options import Options
from retrograde.compiler.program import Note, Program
from retrograde.compiler.recompute import Recompute
from retrograde.compiler.types import Operand, Type
from retrograde.compiler.walks import defs, free_names, substitute, uses, walk


@dataclass
class Loops:
    """The loops around the block that is being reversed, and the tapes of what is in them."""

    chain: list[For | While] = field(default_factory=list)
    inside: set[str] = field(default_factory=set)  # all names that are defined inside the outermost
    before: Block = field(default_factory=list)  # stands before the outermost: makes the tapes
    is_rectangular: bool = True


class Tapes(Cotangents):
    """Attributes:
    added: what the forward sweep defines besides the program's own names, by the block in which it stands: how often
        `while` loops ran, and copies of arrays.
    """

    def __init__(self, program: Program, inputs: list[str], options: Options) -> None:
        super().__init__(program, inputs, options)
        self.loops = Loops()
        self.added: dict[int, set[str]] = {}

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
