"""The reverse sweep: a loop over nodes, last to first, that carries cotangents from the output to the leaves.

The cotangents live in a list (or a dictionary) of the sweep itself, outside the graph. That alone makes sweeps
repeatable, re-entrant, concurrent, and safe under exceptions and Ctrl-C.

Zero times infinity is NaN in floating point and zero in our rules. Products that check for it (`Op.careful`) cost a
fifth more on large arrays, and would double the time of small ones. Therefore:

- A sweep over small arrays is first run with plain products, and run again with careful ones if a NaN arrives at a
  leaf. It cannot get lost on the way: pullbacks are linear, so it arrives, or is dropped together with whatever would
  have stood there.
- A sweep over large arrays is careful at once. So it never comes back, and frees each node when it has passed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from retrograde.trace.writing import Accumulator
from retrograde.trace.arithmetic import shows_nan
from retrograde.trace.level import Node
from retrograde.trace.ops import REACHED

Cotangents = Any  # a list indexed by number, or a dictionary, with None for "no path so far"


def sweep(nodes: list[Node], start: Callable[[], Cotangents], leaves: list[int], repeatable: bool) -> Cotangents:
    """The cotangents after a sweep over `nodes` (in their order of recording) from what `start()` returns.

    Args:
        leaves: the numbers at which results are read.
        repeatable: whether the sweep may be run twice; false where hooks must be called once.
    """
    # A partial may well be infinite where its cotangent is zero; that is no news to the user.
    with np.errstate(all="ignore"):
        cotangents = start()
        run_nodes(nodes, cotangents, careful=not repeatable)
        if repeatable and any(shows_nan(_array(cotangents[leaf])) for leaf in leaves):
            cotangents = start()
            run_nodes(nodes, cotangents, careful=True)
    return cotangents


def sweep_and_free(nodes: list[Node], cotangents: Cotangents) -> Cotangents:
    """The cotangents after one careful sweep, which empties `nodes`."""
    with np.errstate(all="ignore"):
        while nodes:
            number, op = nodes[-1][:2]
            if cotangents[number] is None:
                nodes.pop()
            else:
                # No name here holds the node or its cotangent: what nobody else holds either is overwritten.
                op.careful(cotangents, nodes.pop(), _taken(cotangents, number, op.owns))
    return cotangents


def run_nodes(nodes: list[Node], cotangents: Cotangents, careful: bool) -> None:
    """Pull back through the nodes, last to first."""
    for node in reversed(nodes):
        number = node[0]
        if cotangents[number] is None:
            continue
        op = node[1]
        y_bar = cotangents[number]
        cotangents[number] = None
        if type(y_bar) is Accumulator and not op.owns:
            y_bar = y_bar.value
        if careful:
            op.careful(cotangents, node, y_bar)
        else:
            op.pull(cotangents, node, y_bar)


def _taken(cotangents: Cotangents, number: int, as_accumulator: bool) -> Any:
    """The cotangent at a number, whose place is empty afterwards."""
    x_bar = cotangents[number]
    cotangents[number] = None
    return x_bar.value if type(x_bar) is Accumulator and not as_accumulator else x_bar


def tell_unreached(hooks: list[Node], cotangents: Cotangents) -> None:
    """Call the hooks that want to know that a sweep did not come to them."""
    for node in hooks:
        if cotangents[node[0]] is not REACHED:
            node[-1](None)


def result(cotangents: Cotangents, number: int) -> Any:
    """The cotangent at a leaf, taken out of the sweep."""
    return _taken(cotangents, number, as_accumulator=False)


def _array(x_bar: Any) -> Any:
    return 0.0 if x_bar is None else x_bar.value if type(x_bar) is Accumulator else x_bar
