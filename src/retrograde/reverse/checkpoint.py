"""Checkpoints: a part of a function that is run again during the sweep instead of being recorded.

On the first run the level records nothing; only the values of it that the part used are noted, whether they were
passed or closed over. When the sweep comes to the part, the level is opened again, the part is run on the same traced
values, and the nodes that it records now are swept at once, into the same cotangents. So memory holds one part at a
time, and closures need no special care.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from functools import cache
from itertools import count
from types import CellType
from typing import Any

from retrograde.errors import PullbackError
from retrograde.originals import np
from retrograde.reverse.graph import nodes_behind
from retrograde.reverse.tape import run_nodes, tell_unreached
from retrograde.trace.handle import MAPPED, VIEWS, Traced, contents, is_traced, make
from retrograde.trace.level import ACTIVE, CONTEXT, Level, Node, begin, finish
from retrograde.trace.ops import OUTPUT, Op, deposit, no_push
from retrograde.trace.recording import PARAMS, blindly
from retrograde.trace.structure import flatten, is_variable, map_leaves, unflatten
from retrograde.trace.views import settled

# Reopening a level changes it for everybody who holds it; sweeps over checkpoints take turns.
_reopening = threading.RLock()


def checkpointed(f: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """`f(*args, **kwargs)`, of which reverse mode keeps the arguments only and computes the rest again in its sweep.

    Costs one more run of `f`, saves the memory of its intermediate values; may be nested. `f` must return the same
    values when it is run again, so random numbers must be passed to it as arguments.

    Raises:
        PullbackError: (by the sweep) `f` returned other values in its second run.
    """
    levels = CONTEXT.get().levels
    level = levels[-1] if levels else PARAMS
    if not level.records:
        return f(*args, **kwargs)
    with blindly(level) as (suspension, blind):
        ys, structure = flatten(settled(f(*args, **kwargs)))
        ys = [blind.released(y) for y in ys]
    # Traced values that f returns untouched are outputs like all others.
    for y in ys:
        if _at(y, level):
            suspension.met[id(y.link)] = y.link
    if not suspension.met:
        return unflatten(structure, ys)
    values = [y.primal if _at(y, level) else y for y in ys]
    links = tuple(suspension.met.values())
    kept = tuple(map_leaves(_same_value, arg) for arg in args)
    part = _Part(level, f, kept, kwargs, values, CONTEXT.get().leaves)
    whole = (level.number(), _checkpoint_op(len(links), suspension.repeatable), *links, part)
    level.append(whole)
    level.repeatable &= suspension.repeatable

    def output(position: int, value: Any) -> Traced:
        node = (level.number(), OUTPUT, whole, position, len(values))
        level.append(node)
        return make(value, node, level)

    return unflatten(structure, [output(i, v) if is_variable(v) else v for i, v in enumerate(values)])


def _same_value(x: Any) -> Any:
    """A handle that later writes to `x` do not reach."""
    return x.reading() if type(x) is Traced or type(x) in VIEWS or type(x) in MAPPED else x


class _Part:
    """What a checkpoint keeps."""

    __slots__ = ("args", "cells", "f", "kwargs", "leaves", "level", "values")

    def __init__(
        self,
        level: Level,
        f: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        values: list[Any],
        leaves: dict[int, Traced],
    ) -> None:
        self.level = level
        self.f = f
        self.args = args
        self.kwargs = kwargs
        self.values = values
        self.leaves = leaves
        # What f closes over, as it is now: a loop variable will have moved on by the time of the sweep.
        self.cells = [(cell, cell.cell_contents) for cell in getattr(f, "__closure__", None) or () if _is_full(cell)]

    def run_again(self, first_number: int) -> list[Any]:
        """The outputs of `f`, recorded this time with numbers from `first_number` on."""
        level = self.level
        context = CONTEXT.get()
        CONTEXT.set(context._replace(levels=(*context.levels, level), leaves=context.leaves | self.leaves))
        ended = level.number
        now: list[tuple[CellType, Any]] = []
        try:
            if level is not PARAMS:
                level.number = count(first_number).__next__
                level.append = deque[Node](maxlen=0).append
                begin(level)
            now = [(cell, cell.cell_contents) for cell, _ in self.cells if _is_full(cell)]
            for cell, contents in self.cells:
                cell.cell_contents = contents
            ys = flatten(settled(self.f(*self.args, **self.kwargs)))[0]
        finally:
            for cell, contents in now:
                cell.cell_contents = contents
            CONTEXT.set(context)
            if level is not PARAMS:
                ACTIVE.pop(id(level), None)
                finish(level)
                level.number = ended
        self._check_same(ys)
        return ys

    def _check_same(self, ys: list[Any]) -> None:
        same = len(ys) == len(self.values) and all(
            _is_close(contents(y), contents(value)) if is_variable(value) else True
            for y, value in zip(ys, self.values, strict=True)
        )
        if not same:
            raise PullbackError(
                f"checkpointed({getattr(self.f, '__name__', 'f')}, ...) returned other values when it was run again",
                "pass random numbers and everything that changes as arguments",
                "call f directly, without a checkpoint",
            )


def _is_close(y: Any, value: Any) -> bool:
    """Whether a value is that of the first run, but for the rounding of arrays that lie in memory in another way."""
    size = np.max(np.abs(value), initial=0.0, where=np.isfinite(value))
    return np.shape(y) == np.shape(value) and bool(np.allclose(y, value, 1e-10, 1e-10 * size, equal_nan=True))


def _is_full(cell: CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


@cache
def _checkpoint_op(parents: int, repeatable: bool) -> Op:
    """The op of nodes `(number, op, *links of the values that were used, part)`."""
    return Op(
        "checkpoint",
        parents,
        lambda cotangents, node, bars: _pull(cotangents, node, bars, careful=False),
        no_push,
        lambda cotangents, node, bars: _pull(cotangents, node, bars, careful=True),
        repeatable=repeatable,
    )


def _pull(cotangents: Any, node: Node, bars: list[Any], careful: bool) -> None:
    part: _Part = node[-1]
    with _reopening:
        size = len(cotangents)
        first_number = size if isinstance(cotangents, list) else 0
        before = PARAMS.number() if part.level is PARAMS else first_number - 1
        hooks = part.level.hooks
        hooks_before = len(hooks)
        ys = part.run_again(first_number)
        seeds = [(y.link, bar) for y, bar in zip(ys, bars, strict=True) if bar is not None and _at(y, part.level)]
        nodes, _ = nodes_behind([link for link, _ in seeds], after=before)
        if isinstance(cotangents, list):
            last = max((n[0] for n in (*nodes, *hooks[hooks_before:])), default=size)
            cotangents += [None] * (last + 1 - size)
        else:
            cotangents.update((n[0], None) for n in nodes)
        for link, bar in seeds:
            deposit(cotangents, link[0], bar)
        run_nodes(nodes, cotangents, careful)
        tell_unreached(hooks[hooks_before:], cotangents)
        del hooks[hooks_before:]
        if isinstance(cotangents, list):
            del cotangents[size:]


def _at(y: Any, level: Level) -> bool:
    return is_traced(y) and y.level is level
