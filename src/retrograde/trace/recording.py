"""Levels of reverse mode: operations append their nodes, and a sweep reads them backwards."""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from numpy import float64, ndarray

from retrograde.errors import EndedError, user_location
from retrograde.trace.call import Binding, Operand, distribute
from retrograde.trace.handle import VIEWS, Traced, is_traced, like_of, make
from retrograde.trace.level import Level, Node, Suspension, never_ends, set_aside, suspended
from retrograde.trace.ops import LEAF, OUTPUT, Targets, general_op
from retrograde.trace.writing import NOWHERE

_targets = functools.partial(tuple.__new__, Targets)  # without a frame of Python's


class RecordingLevel(Level):
    """A level of reverse mode."""

    __slots__ = ()

    records = True
    calls_hooks = True

    def __init__(self, append: Callable[[Node], None]) -> None:
        super().__init__()
        self.append = append

    def leaf(self, primal: Any) -> Traced:
        """An input of the tape."""
        return make(primal, (self.number(), LEAF), self)

    def follow(self, y: Any, node: Node) -> Any:
        aside = set_aside(self, node[2 : 2 + node[1].parents])
        if aside is not None:
            return aside(y)
        self.append(node)
        if self.lines is not None:
            self.lines[node[0]] = user_location()
        return make(y, node, self)

    def apply(self, binding: Binding, active: list[Operand]) -> Any:
        if len(active) == 1:
            links = [active[0].traced.link]
        else:
            links = [operand.traced.link for operand in active]
        aside = None if self.quick else set_aside(self, links)
        if aside is not None:
            return aside(binding.y)
        pull = binding.pull(active)
        repeatable = getattr(binding.rule, "repeatable", True)
        if not repeatable and self is not PARAMS:
            self.repeatable = False
        y = binding.y
        # Such a rule has three arguments before a mask.
        shows = binding.rule.shows and type(y) is float64 and len(binding.args) <= 3 and "where" not in binding.kwargs
        op = general_op(len(links), repeatable, shows)
        places = []
        for slot, path, traced in active:
            primal = traced.primal if path else binding.args[binding.positions[slot]]
            is_float = type(primal) is ndarray and primal.dtype.kind == "f"
            places.append((slot, path, (primal.shape, primal.dtype) if is_float else like_of(primal)))
        given, allowed = len(binding.positions), binding.rule.args
        counts = (given,) if isinstance(allowed, slice) else (given, len(allowed))
        node = (self.number(), op, *links, pull, _targets((binding.rule.label, counts, tuple(places))))
        self.append(node)
        if self.lines is not None:
            self.lines[node[0]] = user_location()
        if type(y) is float64 or type(y) is ndarray or not isinstance(y, tuple | list):
            return make(y, node, self)

        def output(position: int, value: Any) -> Any:
            part = (self.number(), OUTPUT, node, position, len(y))
            self.append(part)
            return make(value, part, self)

        return distribute(y, output)


class BlindLevel(RecordingLevel):
    """The level of what is computed while another one is suspended: values without a past.

    They are traced, so that nothing converts them and loses a derivative for good; and they are useless after the
    suspension, so that one which leaks is an error.
    """

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(deque[Node](maxlen=0).append)

    def hold(self, y: Any) -> Any:
        """A primal (a number, an array, a list of arrays) as values of this level."""
        if isinstance(y, tuple | list):
            return distribute(y, lambda _, part: self.hold(part))
        if is_traced(y) and y.level is self:
            return y
        return make(y, NOWHERE, self)

    def follow(self, y: Any, node: Node) -> Any:
        return self.hold(y)

    def apply(self, binding: Binding, active: list[Operand]) -> Any:
        return self.hold(binding.y)

    def released(self, x: Any) -> Any:
        """A value of this level below it."""
        if type(x) in VIEWS:
            x = x.reading()
        return x.primal if is_traced(x) and x.level is self else x


@contextmanager
def blindly(level: Level) -> Iterator[tuple[Suspension, BlindLevel]]:
    """Suspend a level; what its operations give meanwhile belongs to a blind level."""
    blind = BlindLevel()
    try:
        with suspended(Suspension(level, blind.hold)) as suspension:
            yield suspension, blind
    finally:
        blind.number = _left


def _left() -> int:
    raise EndedError(
        "a value that was computed inside of checkpointed(f, ...) or forwarddiff(f, ...) was used outside of f",
        "return it from f",
        "call f directly, without checkpointed",
    )


def _parameter_level() -> RecordingLevel:
    level = RecordingLevel(deque[Node](maxlen=0).append)
    level.depth = 0
    level.quick = True
    never_ends(level)
    return level


PARAMS = _parameter_level()
"""The level of parameters: below all others, never ended, and without a list of its nodes. `back` finds the graph from
its output, and what no output holds is freed."""
