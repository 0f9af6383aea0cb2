"""Columns and rows of Jacobians: derivatives along many directions at once.

The directions are a batch (see `vmap`); the values of the function are the same for all of them. So they are computed
once and plain, and only tangents and cotangents have an axis of directions: the function may branch on its values, and
k directions cost one pass over arrays that are k times as large. Where some function cannot be mapped, it is done
again one direction at a time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from retrograde.batch.level import BatchLevel
from retrograde.batch.units import units
from retrograde.batch.vmap import mapped_over
from retrograde.errors import BatchError, InputError, MissingExtraError
from retrograde.forward.jvp import jvp
from retrograde.reverse.params import Params
from retrograde.reverse.pullback import pulled
from retrograde.reverse.tape import Tape
from retrograde.tools.hooks import HOOK
from retrograde.trace.creation import array_of
from retrograde.trace.handle import like_of, plain, shape_of
from retrograde.trace.mapped import hold

# Without `chunk`, so many directions at once that the largest array of them has this many bytes: small enough for the
# caches of a processor, and large enough that the time which Python takes does not count.
BYTES = 2**23

Blocks = list[list[Any]]
"""For each output one block for each input, of shape `y.shape + x.shape`."""


class Passes:
    """How directions are passed through a function.

    Args:
        chunk: how many at once; None for as many as fit into a few megabytes.
        progress: whether to show a bar.
        nbytes: how large the largest array of a pass may be without `chunk`.

    Attributes:
        at_once: False as soon as it has turned out that something cannot be mapped.
    """

    __slots__ = ("at_once", "chunk", "nbytes", "progress")

    def __init__(self, chunk: int | None = None, progress: bool = False, nbytes: int = BYTES) -> None:
        if chunk is not None and (isinstance(chunk, bool) or not isinstance(chunk, int) or chunk < 1):
            raise InputError(f"chunk={chunk!r} is no number of directions", "a positive integer, or None")
        self.chunk = chunk
        self.progress = progress
        self.nbytes = nbytes
        self.at_once = True

    def sizes(self, count: int, nbytes: int) -> Iterator[tuple[int, int]]:
        """The directions from `start` to `stop` of each pass; `nbytes` is the size of the largest array of one."""
        step = self.chunk or max(1, self.nbytes // max(nbytes, 1))
        return ((start, min(start + step, count)) for start in range(0, count, step))

    def look_at(self, tape: Tape) -> None:
        """Be told of the tape that seeds are going to be pulled back through: its hooks see one after the other."""
        if any(node[1] is HOOK for node in tape.nodes):
            self.at_once = False

    def along(self, push: Callable[[Any], Any], directions: Any) -> list[Any]:
        """What `push` returns for each direction, part by part, with the axis of the directions in front.

        Args:
            push: returns a sequence of arrays, or of None where nothing depends on the direction.
            directions: an array, or `Units`.
        """
        count = len(directions)
        if self.at_once and count > 1:
            level = BatchLevel(count)
            held = directions.held(level) if type(directions) is Units else hold(directions, level)
            try:
                return list(mapped_over(level, push, [held], {}, given=[directions]))
            except BatchError:
                self.at_once = False
        results = [push(direction) for direction in directions]
        return [None if parts[0] is None else _stacked(list(parts)) for parts in zip(*results, strict=True)]

    def bar(self, count: int) -> AbstractContextManager[Any]:
        """A progress bar over so many directions, with a method `update`."""
        if not self.progress:
            return nullcontext(_NoBar())
        try:
            from tqdm.auto import tqdm  # optional, and slow to import
        except ImportError:
            raise MissingExtraError(
                "progress=True shows its bar with tqdm, which is not installed",
                "pip install '.[viz]' in the folder of retrograde",
                "leave progress out",
            ) from None
        bar: AbstractContextManager[Any] = tqdm(total=count, unit="direction")
        return bar


class _NoBar:
    def update(self, count: int) -> None:
        """Nobody wants to see it."""


def columns(
    f: Callable[..., list[Any]],
    xs: tuple[Any, ...],
    passes: Passes,
    nbytes: int = 0,
    natively: Callable[[list[Any]], tuple[Any, list[Any]] | None] | None = None,
) -> tuple[list[Any], Blocks]:
    """The values of `f(*xs)` (a list of arrays) and the blocks of its Jacobian, by forward mode.

    Args:
        nbytes: the size of the largest array on the way, if it is known.
        natively: gives the values and their tangents along directions of `xs`, where native code has them.

    Raises:
        MissingRuleError: a rule has no pushforward.
    """
    ys: list[Any] = []
    by_input: list[list[Any]] = []
    nbytes = max(nbytes, *map(_nbytes, xs))
    with passes.bar(sum(map(_size, xs))) as bar:
        for j, x in enumerate(xs):

            def push(direction: Any, j: int = j) -> list[Any]:
                tangents = tuple(direction if i == j else None for i in range(len(xs)))
                ys[:], dots = jvp(f, xs, tangents)
                return dots  # type: ignore[no-any-return]

            gathered = Gathered(_size(x))
            for start, stop in passes.sizes(_size(x), nbytes):
                directions = Units(x, start, stop)
                found = None
                if natively is not None:
                    found = natively([directions.all() if i == j else None for i in range(len(xs))])
                if found is None:
                    dots = passes.along(push, directions)
                else:
                    ys[:], dots = found
                gathered.add(start, dots)
                bar.update(stop - start)
            by_input.append(gathered.parts())
    if not any(by_input):
        ys = list(f(*xs))
    return ys, [
        [_columns_block(parts[i] if parts else None, y, x) for parts, x in zip(by_input, xs, strict=True)]
        for i, y in enumerate(ys)
    ]


def _columns_block(dots: Any, y: Any, x: Any) -> Any:
    """The block of shape `y.shape + x.shape` from tangents with the axis of the directions in front."""
    shape, dtype = _block(y, x)
    if dots is None:
        return np.zeros(shape, dtype)
    return _cast(np.reshape(np.moveaxis(dots, 0, -1), shape) if shape_of(x) else dots[0], dtype)


def _block(y: Any, x: Any) -> tuple[tuple[int, ...], Any]:
    """The shape and the dtype of a block, which are the same by columns and by rows."""
    (outer, one), (inner, other) = like_of(y), like_of(x)
    return outer + inner, np.result_type(one, other)


def _cast(block: Any, dtype: Any) -> Any:
    return block if block.dtype == dtype else block.astype(dtype)


class Recorded:
    """A function of `xs` (or of none, which closes over `params`) recorded on a tape, whose rows are asked for later.

    Attributes:
        ys: its values.
        nbytes: the size of the largest array that the tape keeps.
    """

    __slots__ = ("_back", "_tape", "nbytes", "xs", "ys")

    def __init__(self, f: Callable[..., list[Any]], xs: tuple[Any, ...], params: Params | None = None) -> None:
        tape = Tape()
        self.xs = xs
        if params is None:
            self.ys, self._back = pulled(tape, f, xs, {})
        else:
            self.ys, back = pulled(tape, f, (params,), {})
            self._back = lambda seed: tuple(back(seed).values())
        self._tape = tape
        kept = (getattr(part, "nbytes", 0) for node in tape.nodes for part in node[2:])
        self.nbytes = max(*map(_nbytes, (*xs, *self.ys)), *kept, 0, 0)

    def rows(self, passes: Passes) -> Blocks:
        """The blocks of the Jacobian, by reverse mode."""
        passes.look_at(self._tape)
        with passes.bar(sum(map(_size, self.ys))) as bar:
            return [self._rows_of(i, y, passes, bar) for i, y in enumerate(self.ys)]

    def _rows_of(self, i: int, y: Any, passes: Passes, bar: Any) -> list[Any]:
        def back(seed: Any) -> Any:
            return self._back([seed if k == i else None for k in range(len(self.ys))])

        is_complex = np.iscomplexobj(plain(y))
        real, turned = Gathered(_size(y)), Gathered(_size(y))
        for start, stop in passes.sizes(_size(y), self.nbytes):
            real.add(start, passes.along(back, Units(y, start, stop)))
            if is_complex:
                turned.add(start, passes.along(back, Units(y, start, stop, 1j)))
            bar.update(stop - start)
        bars = real.parts()
        if not bars:
            return [_rows_block(None, None, y, x) for x in self.xs]
        others = turned.parts() if is_complex else bars
        return [_rows_block(bar, other, y, x) for bar, other, x in zip(bars, others, self.xs, strict=True)]


def _rows_block(bars: Any, turned: Any, y: Any, x: Any) -> Any:
    """The block of shape `y.shape + x.shape` from cotangents with the axis of the directions in front."""
    shape, dtype = _block(y, x)
    if bars is None and turned is None:
        return np.zeros(shape, dtype)
    is_complex = np.iscomplexobj(plain(y))
    if is_complex and like_of(x)[1].kind == "c":
        # A holomorphic function pulls back by the conjugate of its Jacobian.
        bars = np.conj(bars)
    elif is_complex:
        bars = (0.0 if bars is None else bars) + 1j * (0.0 if turned is None else turned)
    return _cast(np.reshape(bars, shape) if shape_of(y) else bars[0], dtype)


class Units:
    """The unit arrays in the shape and dtype of `x` from number `start` to `stop`, all times `factor`."""

    __slots__ = ("_dtype", "_factor", "_shape", "_start", "_stop")

    def __init__(self, x: Any, start: int, stop: int, factor: complex = 1.0) -> None:
        self._shape, self._dtype = like_of(x)
        self._start, self._stop, self._factor = start, stop, factor

    def __len__(self) -> int:
        return self._stop - self._start

    def __iter__(self) -> Iterator[Any]:
        for place in range(self._start, self._stop):
            unit = np.zeros(self._shape, self._dtype)
            unit.reshape(-1)[place] = self._factor
            yield unit[()]

    def all(self) -> Any:
        """All of them, with their axis in front."""
        made = np.zeros((len(self), math.prod(self._shape)), self._dtype)
        made[np.arange(len(self)), np.arange(self._start, self._stop)] = self._factor
        return made.reshape((len(self), *self._shape))

    def held(self, level: BatchLevel) -> Any:
        """All of them, as a value of a batch."""
        return units(self._shape, self._dtype, self._start, self._stop, self._factor, level)


def _stacked(parts: list[Any]) -> Any:
    return array_of(parts)


class Gathered:
    """What `count` directions give, part by part, put in its place as it comes: beside the whole there is one chunk."""

    __slots__ = ("_count", "_parts")

    def __init__(self, count: int) -> None:
        self._count = count
        self._parts: list[Any] = []

    def add(self, start: int, found: list[Any]) -> None:
        """Take what a chunk of directions from number `start` on has given: None where nothing depends on them."""
        self._parts = self._parts or [None] * len(found)
        for i, part in enumerate(found):
            if part is None or len(part) == self._count:
                self._parts[i] = part
            elif type(part) is not np.ndarray:
                self._parts[i] = [*(self._parts[i] or ()), part]  # traced: joined by a function that has a rule
            else:
                if self._parts[i] is None:
                    self._parts[i] = np.empty((self._count, *part.shape[1:]), part.dtype)
                self._parts[i][start : start + len(part)] = part

    def parts(self) -> list[Any]:
        """The parts, each with the axis of the directions in front."""
        return [np.concatenate(part) if type(part) is list else part for part in self._parts]


def _size(x: Any) -> int:
    return math.prod(shape_of(x))


def _nbytes(x: Any) -> int:
    shape, dtype = like_of(x)
    return math.prod(shape) * dtype.itemsize


def diagonal(f: Callable[[Any], Any], x: Any, passes: Passes) -> Any:
    """The diagonal of the Jacobian of `f` at `x`, whose value has the shape of `x`, by forward mode."""
    count = _size(x)
    entries = Gathered(count)

    def push(direction: Any) -> list[Any]:
        return [jvp(f, (x,), (direction,))[1]]

    with passes.bar(count) as bar:
        for start, stop in passes.sizes(count, _nbytes(x)):
            rows = np.reshape(passes.along(push, Units(x, start, stop))[0], (stop - start, count))
            entries.add(start, [rows[np.arange(stop - start), np.arange(start, stop)]])
            bar.update(stop - start)
    shape, dtype = like_of(x)
    found = entries.parts()
    if not found:
        return np.zeros(shape, dtype)
    return np.reshape(found[0], shape) if shape else found[0][0]
