"""`compiled.explain()`: what a pullback keeps, what it does again, and the memory that it takes."""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from retrograde.compiler import ops
from retrograde.compiler.derivatives import Derivative, finished
from retrograde.compiler.form import Alloc, Block, Copy, For, If, Op, Slice, Stack, View, While
from retrograde.compiler.optimise.abreast import WIDTH
from retrograde.compiler.program import Program
from retrograde.compiler.types import Operand
from retrograde.compiler.walks import stem, walk


@dataclass(frozen=True)
class Tape:
    """Values of a loop that are kept until the reverse sweep.

    Attributes:
        name: of the value in `source("pullback")`.
        line: of the user's source, and its text.
        length: how many values there are: a text in the user's names, such as `steps * len(x)`.
        count: the same for the sizes of the last call; None where it is not known beforehand.
        nbytes: of one value.
    """

    name: str
    line: int
    text: str
    length: str
    count: int | None
    nbytes: int


@dataclass(frozen=True)
class Explanation:
    """What `explain` found; `print` it.

    Attributes:
        name: of the function.
        active: names that have a derivative.
        tapes: what is kept.
        again: lines of which values are computed again in the reverse sweep.
        loops: the lines of loops whose iterations run again in the reverse sweep, one by one.
        threads: the lines of parallel loops that have one thread, and why.
        nbytes: the memory of all arrays that the pullback makes, for the sizes of the last call; None if not known.
        grows: what the memory grows with that is not known beforehand.
    """

    name: str
    file: str
    active: tuple[str, ...]
    tapes: tuple[Tape, ...]
    again: tuple[tuple[int, str], ...]
    loops: tuple[tuple[int, str], ...]
    threads: tuple[tuple[int, str, str], ...]
    nbytes: int | None
    grows: tuple[str, ...]

    @property
    def taped(self) -> int | None:
        """How many bytes the tapes hold; None if that is not known beforehand."""
        counts = [tape.count for tape in self.tapes]
        if any(count is None for count in counts):
            return None
        return sum(tape.nbytes * tape.count for tape in self.tapes if tape.count is not None)

    def __str__(self) -> str:
        file = os.path.basename(self.file)
        lines = [f"the pullback of {self.name}", f"  active      {', '.join(self.active) or 'nothing'}"]
        for title, places in (("runs again", self.loops), ("computed again", self.again)):
            lines += [f"  {title:<11} {file}:{line}  {text}" for line, text in places]
        for tape in self.tapes:
            size = "as many as the loop makes" if tape.count is None else f"{tape.length} = {tape.count:,}"
            lines.append(f"  taped       {file}:{tape.line}  {tape.text}    {tape.name}: {size} of {tape.nbytes} bytes")
        if self.taped is not None:
            lines.append(f"  tapes       {self.taped:,} bytes")
        lines += [f"  one thread  {file}:{line}  {text}    as {why}" for line, text, why in self.threads]
        if self.nbytes is not None:
            lines.append(f"  memory      {self.nbytes:,} bytes, with copies and shadows")
        else:
            lines.append(f"  memory      grows with {', '.join(self.grows)}")
        return "\n".join(lines)


def explained(
    d: Derivative, passes: tuple[str, ...], vectormath: bool, names: Collection[str], sizes: Mapping[str, Any]
) -> Explanation:
    """What a pullback does.

    Args:
        vectormath: functions and iterations may run in the lanes of vectors.
        names: the user's.
        sizes: the shapes of the array parameters and the values of the integer ones, by name.
    """
    program = d.program
    measure = _Measure(program, sizes)
    tapes = []
    loops: dict[tuple[int, str], None] = {}
    again: dict[tuple[int, str], None] = {}
    active: dict[str, None] = {}
    for note in program.notes:
        place = (note.at.line, note.at.text.strip()) if note.at else (0, "")
        if note.kind == "taped":
            type = program.types[note.name]
            dims = program.dims.get(note.name)
            count = None if dims is None else measure.product(dims)
            length = "" if dims is None else " * ".join(map(measure.text, dims))
            nbytes = np.dtype(type.dtype).itemsize
            tapes.append(Tape(note.name.removesuffix("_tape"), *place, length, count, nbytes))
        elif note.kind == "runs again":
            loops[place] = None
        elif note.kind == "again":
            again[place] = None
        elif note.kind == "active" and program.types[note.name].is_inexact and stem(note.name) in names:
            active[stem(note.name)] = None
    made = finished(d, passes, vectormath=vectormath)
    file = next((note.at.file for note in program.notes if note.at), "")
    name = program.name.removesuffix("_pullback")
    threads = {
        (note.at.line, note.at.text.strip(), note.name): None
        for note in made.notes
        if note.kind == "one thread" and note.at
    }
    nbytes, grows = _Measure(made, sizes).memory()
    return Explanation(
        name, file, tuple(active), tuple(tapes), tuple(again), tuple(loops), tuple(threads), nbytes, tuple(grows)
    )


class _Measure:
    """Sizes of arrays: as numbers, and as texts."""

    def __init__(self, program: Program, sizes: Mapping[str, Any]) -> None:
        self.program = program
        self.sizes = sizes
        self.definition = {s.dst: s for s in walk(program.body) if isinstance(s, Op)}
        self.views = {s.dst: s for s in walk(program.body) if isinstance(s, View)}

    def number(self, operand: Operand) -> Any:
        """The value of a number that depends on nothing but sizes and integers among the arguments; None for others."""
        if not isinstance(operand, str):
            return None if operand is None else int(operand)
        if operand in self.sizes:
            value = self.sizes[operand]
            return None if isinstance(value, tuple) else int(value)
        s = self.definition.get(operand)
        if s is None:
            return None
        if s.fn == "shape":
            shape = self.shape(s.args[0])
            return None if shape is None else shape[s.args[1]]
        args = [self.number(a) for a in (self.longest(s) or s.args)]
        if any(a is None for a in args):
            return None
        compute = _INTEGERS.get(s.fn) or ops.FOLDABLE.get(s.fn)
        return None if compute is None else compute(*args)

    def longest(self, s: Op) -> tuple[Operand, ...] | None:
        """The bounds of a segment of a loop: `low` to `min(low + length, …)` is from 0 to `length`."""
        high = self.definition.get(s.args[1]) if s.fn == "size" and isinstance(s.args[1], str) else None
        if high is None or high.fn != "min":
            return None
        end = self.definition.get(high.args[0])
        return (0, end.args[1]) if end is not None and end.fn == "+" and end.args[0] == s.args[0] else None

    def shape(self, array: str) -> tuple[int, ...] | None:
        if array in self.sizes:
            return tuple(self.sizes[array])
        view = self.views.get(array)
        if view is None:
            sizes = self.program.dims.get(array, (None,))
            if any(self.is_asked_of(n, array) for n in sizes):
                return None
            dims = [self.number(n) for n in sizes]
            return None if None in dims else tuple(n for n in dims if n is not None)
        base = self.shape(view.array)
        if base is None:
            return None
        if view.transposed:
            return base[::-1]
        rest = iter(base)
        shape = []
        for i in view.index:
            if i is None:
                shape.append(1)
                continue
            n = next(rest)
            if isinstance(i, Slice):
                bounds = [None if bound is None else self.number(bound) for bound in i]
                if any(given is not None and found is None for given, found in zip(i, bounds, strict=True)):
                    return None
                shape.append(len(range(*slice(*bounds).indices(n))))
        return tuple(shape)

    def is_asked_of(self, size: Operand, array: str) -> bool:
        """Whether a size of an array is known by asking the array alone, as with that which a procedure returns."""
        s = self.definition.get(size) if isinstance(size, str) else None
        return s is not None and s.fn == "shape" and s.args[0] == array

    def product(self, dims: tuple[Operand, ...]) -> int | None:
        numbers = [self.number(n) for n in dims]
        return None if any(n is None for n in numbers) else math.prod(n for n in numbers if n is not None)

    def text(self, operand: Operand) -> str:
        """An integer in the user's names."""
        s = self.definition.get(operand) if isinstance(operand, str) else None
        if s is None:
            return str(operand)
        args = [a if s.fn == "shape" else self.text(a) for a in (self.longest(s) or s.args)]
        if s.fn == "shape":
            return f"len({args[0]})" if args[1] == 0 else f"{args[0]}.shape[{args[1]}]"
        if s.fn == "size":
            return args[1] if args[0] == "0" else f"({args[1]} - {args[0]})"
        if s.fn in ops.ARITHMETIC:
            return f"({args[0]} {s.fn} {args[1]})"
        return f"{'int' if s.fn.startswith('cast:int') else s.fn}({', '.join(args)})"

    def memory(self) -> tuple[int | None, list[str]]:
        """The bytes of all arrays that a program makes, and what is not known of them; arrays of a loop count once."""
        total = 0
        unknown: dict[str, None] = {}
        side_by_side = [s.abreast for s in walk(self.program.body) if isinstance(s, For) and s.abreast is not None]
        of_lanes = frozenset().union(*(abreast.own for abreast in side_by_side))
        for s in _once(self.program.body):
            if isinstance(s, Stack):
                unknown["the steps of the loop"] = None
                continue
            shape = s.shape if isinstance(s, Alloc) else self.program.dims.get(s.dst)
            count = None if shape is None else self.product(shape)
            if count is not None:
                lanes = WIDTH if s.dst in of_lanes else 1
                total += lanes * count * np.dtype(self.program.types[s.dst].dtype).itemsize
            elif shape is None:
                unknown[f"the size of {stem(s.dst)}"] = None
            else:
                unknown |= {self.text(n): None for n in shape if self.number(n) is None}
        return (None if unknown else total), list(unknown)


_INTEGERS: dict[str, Any] = {
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "np.sqrt": math.sqrt,
    "cast:int64": int,
}


def _once(block: Block) -> list[Alloc | Copy | Stack]:
    found: list[Alloc | Copy | Stack] = []
    for s in block:
        if isinstance(s, Alloc | Copy | Stack):
            found.append(s)
        elif isinstance(s, For | While):
            found += _once(s.body)
        elif isinstance(s, If):
            found += _once(s.then) + _once(s.orelse)
    return found
