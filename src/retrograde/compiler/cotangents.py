"""Cotangents of temps and cells, which are cells, and shadows of arrays, which are arrays with their aliasing."""

from __future__ import annotations

from retrograde.compiler.activity import Activity
from retrograde.compiler.alias import Changes, Memory
from retrograde.compiler.calculus import Writer
from retrograde.compiler.form import Add, Alloc, Block, Copy, For, Get, Increase, Index, Load, Set, Swap, View
from retrograde.compiler.options import Options
from retrograde.compiler.program import Program
from retrograde.compiler.source import At
from retrograde.compiler.types import INT, Operand, zero_of
from retrograde.compiler.walks import defs, walk


class Cotangents(Writer):
    """A reverse transformation under way.

    Attributes:
        inputs: the parameters that are differentiated.
        block_of: where each temp is defined.
        blocks: those that are being reversed, the outermost first.
        started: the temps whose cotangent has a value.
        zeroed: cotangents that start at zero, by the block.
        definition: the statement that defines a name.
        around: the statements among which loops stand.
    """

    def __init__(self, program: Program, inputs: list[str], options: Options) -> None:
        super().__init__(program, options.careful)
        self.options = options
        self.inputs = inputs
        self.memory = Memory(program)
        self.activity = Activity(program, set(inputs), self.memory)
        self.changes = Changes(program.body, self.memory)
        self.bars: dict[str, str] = {}
        self.block_of: dict[str, int] = {}
        self.blocks: list[int] = []
        self.started: set[str] = set()
        self.zeroed: dict[int, Block] = {}
        self.around = walk(program.body)
        self.swapped = {name for s in walk(program.body) if isinstance(s, Swap) for name in s.targets}
        self.definition = {name: s for s in walk(program.body) for name in defs(s)}

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

    def zero(self, bar: str) -> Set:
        return Set(bar, zero_of(self.program.types[bar]))

    def contribute(self, operand: Operand, x: Operand) -> None:
        """Add to the cotangent of a temp."""
        if not self.is_active(operand):
            return
        x = self.fitted(x, self.program.types[operand])
        bar, block = self.bar(operand), self.block_of[operand]
        if operand in self.started:
            self.emit(Add(bar, x))
        elif block == self.blocks[-1]:
            self.emit(Set(bar, x))
        else:  # from inside of a loop or branch
            self.zeroed.setdefault(block, []).append(self.zero(bar))
            self.emit(Add(bar, x))
        self.started.add(operand)

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
