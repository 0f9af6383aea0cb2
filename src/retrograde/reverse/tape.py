"""The tape: the record of one run of a function; and the reverse sweep over it.

A sweep is a loop over nodes, last to first, that carries cotangents from the output to the leaves. They live in a list
(or a dictionary) of the sweep itself, outside the graph. That alone makes sweeps repeatable, re-entrant, concurrent,
and safe under exceptions and Ctrl-C.

Zero times infinity is NaN in floating point and zero in our rules. Products that check for it (`Op.careful`) cost a
fifth more on large arrays, and would double the time of small ones. Therefore:

- A sweep over small arrays is first run with plain products, and run again with careful ones if a NaN arrives at a
  leaf. It cannot get lost on the way: pullbacks are linear, so it arrives, or is dropped together with whatever would
  have stood there.
- A sweep over large arrays is careful at once. So it never comes back, and frees each node when it has passed.
  What a finite loss proves to be finite is not checked: all that it is a sum of, and what that was computed of.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, TypeVar

from retrograde.originals import np
from retrograde.reverse.failing import name_operation
from retrograde.trace.handle import HANDLES, Traced, is_traced, make
from retrograde.trace.interception import options, traceable
from retrograde.trace.level import Level, Node, examples
from retrograde.trace.ops import LEAF, REACHED, deposit, shows_nan
from retrograde.trace.recording import RecordingLevel
from retrograde.trace.running import run
from retrograde.trace.views import settled, snapshot
from retrograde.trace.writing import Accumulator

Work = TypeVar("Work", bound=Callable[..., Any])
Cotangents = Any  # a list indexed by number, or a dictionary, with None for "no path so far"


def _quietly(work: Work) -> Work:
    """`work`, which does not warn: a partial may well be infinite where its cotangent is zero."""
    # (As a decorator it is one frame of Python's, and three in a with statement.)
    return np.errstate(all="ignore")(work)  # type: ignore[no-any-return]


@_quietly
def sweep(nodes: list[Node], start: Callable[[], Cotangents], leaves: list[int], repeatable: bool) -> Cotangents:
    """The cotangents after a sweep over `nodes` (in their order of recording) from what `start()` returns.

    Args:
        leaves: the numbers at which results are read.
        repeatable: whether the sweep may be run twice; false where hooks must be called once.
    """
    cotangents = start()
    run_nodes(nodes, cotangents, careful=not repeatable)
    if repeatable and _has_other_products(nodes) and any(_shows_nan(cotangents[leaf]) for leaf in leaves):
        cotangents = start()
        run_nodes(nodes, cotangents, careful=True)
    return cotangents


def _has_other_products(nodes: list[Node]) -> bool:
    """Whether a careful sweep would do anything else: there are nodes that do not look after zeros themselves."""
    for node in nodes:  # noqa: SIM110  (a generator costs more than the question)
        if node[1].careful is not node[1].pull:
            return True
    return False


_number_of = operator.itemgetter(0)


@_quietly
def sweep_and_free(nodes: list[Node], cotangents: Cotangents, finite: set[int] | None = None) -> Cotangents:
    """The cotangents after one careful sweep, which empties `nodes`.

    Args:
        finite: the numbers of nodes whose values are known to be finite.
    """
    taken: list[Any] = []
    while nodes:
        number, op = nodes[-1][:2]
        if cotangents[number] is None:
            nodes.pop()
            continue
        # No name here holds the node or its cotangent: what nobody else holds either is overwritten.
        taken.append(cotangents[number])
        cotangents[number] = None
        if type(taken[0]) is Accumulator and not op.owns:
            taken[0] = taken[0].value
        if finite and number in finite:
            if op.shows:
                finite.update(map(_number_of, nodes[-1][2 : 2 + op.parents]))
            op.proven(cotangents, nodes.pop(), taken.pop())
        else:
            op.careful(cotangents, nodes.pop(), taken.pop())
    return cotangents


def run_nodes(nodes: list[Node], cotangents: Cotangents, careful: bool) -> None:
    """Pull back through the nodes, last to first."""
    for node in reversed(nodes):
        number = node[0]
        y_bar = cotangents[number]
        if y_bar is None:
            continue
        cotangents[number] = None
        op = node[1]
        if type(y_bar) is Accumulator and not op.owns:
            y_bar = y_bar.value
        if careful:
            op.careful(cotangents, node, y_bar)
        else:
            op.pull(cotangents, node, y_bar)


def tell_unreached(hooks: list[Node], cotangents: Cotangents) -> None:
    """Call the hooks that want to know that a sweep did not come to them."""
    for node in hooks:
        if cotangents[node[0]] is not REACHED:
            node[-1](None)


def result(cotangents: Cotangents, number: int) -> Any:
    """The cotangent at a leaf, taken out of the sweep."""
    x_bar = cotangents[number]
    cotangents[number] = None
    return x_bar.value if type(x_bar) is Accumulator else x_bar


def _shows_nan(x_bar: Any) -> bool:
    """Whether there is a NaN in what arrived at a leaf."""
    if type(x_bar) is Accumulator:
        x_bar = x_bar.value
    if x_bar is None or type(x_bar) is float:
        return x_bar != x_bar
    return shows_nan(x_bar) if type(x_bar) in HANDLES else bool(np.logical_or.reduce(np.isnan(x_bar), axis=None))


# --- the tape ------------------------------------------------------------------------------------------------------

# Leaves of more bytes make a large problem: its arrays cost more than the checks of its products.
_LARGE = 2**18


class Tape(RecordingLevel):
    """A level whose nodes are kept in a list, in the order of recording."""

    __slots__ = ("bytes", "nodes", "size")
    is_swept = True

    def __init__(self, swept_at_once: bool = False) -> None:
        self.nodes: list[Node] = []
        Level.__init__(self)  # (at once: each frame of Python's counts, see benchmarks/rule_speed.py)
        self.append = self.nodes.append
        self.borrowed = [] if swept_at_once else None
        if options.lines:
            self.lines = {}
        self.size = 0
        # The memory of the leaves, which tells small problems from large ones.
        self.bytes = 0

    def leaf(self, primal: Any) -> Traced:
        self.bytes += getattr(primal, "nbytes", 8)
        if type(primal) in HANDLES:
            primal = snapshot(primal)
        return make(primal, (self.number(), LEAF), self)

    def record(
        self,
        f: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        leaves: dict[int, Traced] | None = None,
    ) -> Any:
        """Run `f` and keep what its sweep needs."""
        counter = self.number
        f = traceable(f)

        def work() -> Any:
            y = f(*args, **kwargs)
            return y if type(y) is Traced and y.level is self else settled(y)

        y = run(self, work, f, leaves)
        self.size = counter()
        return y

    def owns(self, y: Any) -> bool:
        """Whether `y` was computed from this tape's leaves."""
        return is_traced(y) and y.level is self

    def sweep(
        self, seeds: list[tuple[int, Any]], links: list[Node | None], last: bool = False, finite: set[int] | None = None
    ) -> list[Any]:
        """The cotangents of the leaves, None where no path leads there.

        Args:
            seeds: the numbers of outputs, with their cotangents.
            links: nodes of leaves; entries that are None have the cotangent None.
            last: whether the tape is not needed any more.
            finite: the numbers of outputs that are known to be finite.
        """

        def start() -> list[Any]:
            cotangents: list[Any] = [None] * self.size
            for number, y_bar in seeds:
                if cotangents[number] is None:
                    cotangents[number] = y_bar
                else:
                    deposit(cotangents, number, y_bar)
            return cotangents

        try:
            if last and (self.bytes > _LARGE or not self.repeatable or self.bytes * examples() > _LARGE):
                cotangents = sweep_and_free(self.nodes, start(), finite)
            else:
                numbers = [link[0] for link in links if link is not None]
                cotangents = sweep(self.nodes, start, numbers, self.repeatable)
        except Exception as error:
            name_operation(error, self.lines)
            raise
        finally:
            if last:
                # A checkpoint's node holds traced values, and they this tape.
                self.nodes.clear()
        if self.hooks:
            tell_unreached(self.hooks, cotangents)
        bars: list[Any] = []
        for link in links:
            if link is None:
                bars.append(None)
                continue
            x_bar = cotangents[link[0]]
            cotangents[link[0]] = None
            bars.append(x_bar.value if type(x_bar) is Accumulator else x_bar)
            del x_bar  # whoever alone holds a cotangent need not copy it
        return bars
