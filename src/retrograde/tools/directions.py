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

from retrograde.batch.vmap import vmap
from retrograde.errors import InputError, MissingExtraError
from retrograde.forward.jvp import jvp
from retrograde.reverse.pullback import pulled
from retrograde.reverse.tape import Tape
from retrograde.tools.hooks import HOOK
from retrograde.trace.creation import array_of
from retrograde.trace.handle import like_of, plain, shape_of

# Without `chunk`, so many directions at once that the largest array of them has this many bytes: small enough for the
# caches of a processor, and large enough that the time which Python takes does not count.
_BYTES = 2**23

Blocks = list[list[Any]]
"""For each output one block for each input, of shape `y.shape + x.shape`."""


class Passes:
    """How directions are passed through a function.

    Args:
        chunk: how many at once; None for as many as fit into a few megabytes.
        progress: whether to show a bar.

    Attributes:
        at_once: False as soon as it has turned out that something cannot be mapped.
    """

    __slots__ = ("at_once", "chunk", "progress")

    def __init__(self, chunk: int | None = None, progress: bool = False) -> None:
        if chunk is not None and (isinstance(chunk, bool) or not isinstance(chunk, int) or chunk < 1):
            raise InputError(f"chunk={chunk!r} is no number of directions", "a positive integer, or None")
        self.chunk = chunk
        self.progress = progress
        self.at_once = True

    def sizes(self, count: int, nbytes: int) -> Iterator[tuple[int, int]]:
        """The directions from `start` to `stop` of each pass; `nbytes` is the size of the largest array of one."""
        step = self.chunk or max(1, _BYTES // max(nbytes, 1))
        return ((start, min(start + step, count)) for start in range(0, count, step))

    def along(self, push: Callable[[Any], Any], directions: Any) -> list[Any]:
        """What `push` returns for each direction, part by part, with the axis of the directions in front."""
        if self.at_once and len(directions) > 1:
            try:
                return list(vmap(push)(directions))
            except Exception:  # compiled code and users' own rules say in many ways what they do not take
                self.at_once = False
        results = [push(directions[k]) for k in range(len(directions))]
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
                "pip install retrograde[viz]",
                "leave progress out",
            ) from None
        bar: AbstractContextManager[Any] = tqdm(total=count, unit="direction")
        return bar


class _NoBar:
    def update(self, count: int) -> None:
        """Nobody wants to see it."""


def columns(
    f: Callable[..., list[Any]], xs: tuple[Any, ...], passes: Passes, nbytes: int = 0
) -> tuple[list[Any], Blocks]:
    """The values of `f(*xs)` (a list of arrays) and the blocks of its Jacobian, by forward mode.

    Args:
        nbytes: the size of the largest array on the way, if it is known.

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

            chunks = []
            for start, stop in passes.sizes(_size(x), nbytes):
                chunks.append(passes.along(push, _units(x, start, stop)))
                bar.update(stop - start)
            by_input.append([_joined(list(parts)) for parts in zip(*chunks, strict=True)])
    if not any(by_input):
        ys = list(f(*xs))
    return ys, [
        [_columns_block(parts[i] if parts else None, y, x) for parts, x in zip(by_input, xs, strict=True)]
        for i, y in enumerate(ys)
    ]


def _columns_block(dots: Any, y: Any, x: Any) -> Any:
    """The block of shape `y.shape + x.shape` from tangents with the axis of the directions in front."""
    shape = shape_of(x)
    if dots is None:
        return np.zeros(shape_of(y) + shape, like_of(y)[1])
    if not shape:
        return dots[0]
    return np.reshape(np.moveaxis(dots, 0, -1), shape_of(y) + shape)


class Recorded:
    """A function recorded on a tape, whose rows are asked for later.

    Attributes:
        ys: its values.
        nbytes: the size of the largest array that the tape keeps.
    """

    __slots__ = ("_back", "_is_watched", "nbytes", "xs", "ys")

    def __init__(self, f: Callable[..., list[Any]], xs: tuple[Any, ...]) -> None:
        tape = Tape()
        self.xs = xs
        self.ys, self._back = pulled(tape, f, xs, {})
        # A hook sees one row after the other.
        self._is_watched = any(node[1] is HOOK for node in tape.nodes)
        kept = (getattr(part, "nbytes", 0) for node in tape.nodes for part in node[2:])
        self.nbytes = max(*map(_nbytes, (*xs, *self.ys)), *kept, 0, 0)

    def rows(self, passes: Passes) -> Blocks:
        """The blocks of the Jacobian, by reverse mode."""
        if self._is_watched:
            passes.at_once = False
        with passes.bar(sum(map(_size, self.ys))) as bar:
            return [self._rows_of(i, y, passes, bar) for i, y in enumerate(self.ys)]

    def _rows_of(self, i: int, y: Any, passes: Passes, bar: Any) -> list[Any]:
        def back(seed: Any) -> Any:
            return self._back([seed if k == i else None for k in range(len(self.ys))])

        is_complex = np.iscomplexobj(plain(y))
        chunks, imaginary = [], []
        for start, stop in passes.sizes(_size(y), self.nbytes):
            seeds = _units(y, start, stop)
            chunks.append(passes.along(back, seeds))
            if is_complex:
                imaginary.append(passes.along(back, 1j * seeds))
            bar.update(stop - start)
        if not chunks:
            return [_rows_block(None, None, y, x) for x in self.xs]
        real = [_joined(list(parts)) for parts in zip(*chunks, strict=True)]
        turned = [_joined(list(parts)) for parts in zip(*imaginary, strict=True)] if is_complex else real
        return [_rows_block(bars, other, y, x) for bars, other, x in zip(real, turned, self.xs, strict=True)]


def _rows_block(bars: Any, turned: Any, y: Any, x: Any) -> Any:
    """The block of shape `y.shape + x.shape` from cotangents with the axis of the directions in front."""
    shape, dtype = like_of(x)
    is_complex = np.iscomplexobj(plain(y))
    if bars is None and turned is None:
        return np.zeros(shape_of(y) + shape, np.result_type(dtype, like_of(y)[1]) if is_complex else dtype)
    if is_complex and dtype.kind == "c":
        # A holomorphic function pulls back by the conjugate of its Jacobian.
        bars = np.conj(bars)
    elif is_complex:
        bars = (0.0 if bars is None else bars) + 1j * (0.0 if turned is None else turned)
    return np.reshape(bars, shape_of(y) + shape) if shape_of(y) else bars[0]


def _units(x: Any, start: int, stop: int) -> Any:
    """The unit arrays in the shape and dtype of `x` from number `start` to `stop`."""
    shape, dtype = like_of(x)
    units = np.zeros((stop - start, math.prod(shape)), dtype)
    units[np.arange(stop - start), np.arange(start, stop)] = 1
    return units.reshape((stop - start, *shape))


def _stacked(parts: list[Any]) -> Any:
    return array_of(parts)


def _joined(parts: list[Any]) -> Any:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _size(x: Any) -> int:
    return math.prod(shape_of(x))


def _nbytes(x: Any) -> int:
    shape, dtype = like_of(x)
    return math.prod(shape) * dtype.itemsize


def diagonal(f: Callable[[Any], Any], x: Any, passes: Passes) -> Any:
    """The diagonal of the Jacobian of `f` at `x`, whose value has the shape of `x`, by forward mode."""
    count = _size(x)
    entries: list[Any] = []

    def push(direction: Any) -> list[Any]:
        return [jvp(f, (x,), (direction,))[1]]

    with passes.bar(count) as bar:
        for start, stop in passes.sizes(count, _nbytes(x)):
            rows = np.reshape(passes.along(push, _units(x, start, stop))[0], (stop - start, count))
            entries.append(rows[np.arange(stop - start), np.arange(start, stop)])
            bar.update(stop - start)
    shape, dtype = like_of(x)
    if not entries:
        return np.zeros(shape, dtype)
    return np.reshape(_joined(entries), shape) if shape else entries[0][0]
