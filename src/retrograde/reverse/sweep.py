"""The reverse sweep: a loop over nodes, last to first, that carries cotangents from the output to the leaves.

The cotangents live in a list (or a dictionary) of the sweep itself, outside the graph. That alone makes sweeps
repeatable, re-entrant, concurrent, and safe under exceptions and Ctrl-C.

A sweep is first run with plain products. Zero times infinity is NaN in floating point and zero in our rules; so
if a NaN arrives at a leaf, the sweep is run again with products that check (`Op.careful`). A NaN cannot get lost on the
way: pullbacks are linear, so that it arrives, or is dropped together with whatever would have stood there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from retrograde.trace.writing import Accumulator
from retrograde.trace.handle import HANDLES
from retrograde.trace.level import Node

Cotangents = Any  # a list indexed by number, or a dictionary, with None for "no path so far"


def sweep(
    nodes: list[Node],
    start: Callable[[], Cotangents],
    leaves: Iterable[int],
    repeatable: bool,
) -> Cotangents:
    """The cotangents after a sweep over `nodes` (in their order of recording) from what `start()` returns.

    Args:
        leaves: the numbers at which results are read.
        repeatable: whether the sweep may be run twice; false where hooks or users' rules must run once.
    """
    cotangents = start()
    # A partial may well be infinite where its cotangent is zero; that is no news to the user.
    with np.errstate(all="ignore"):
        run_nodes(nodes, cotangents, careful=not repeatable)
        if repeatable and any(_shows_nan(cotangents[leaf]) for leaf in leaves):
            cotangents = start()
            run_nodes(nodes, cotangents, careful=True)
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


def result(cotangents: Cotangents, number: int) -> Any:
    """The cotangent at a leaf, taken out of the sweep."""
    x_bar = cotangents[number]
    cotangents[number] = None
    return x_bar.value if type(x_bar) is Accumulator else x_bar


def _shows_nan(x: Any) -> bool:
    """Whether there is a NaN in a cotangent, or in any tangent that an outer forward level carries with it."""
    if x is None:
        return False
    if type(x) is Accumulator:
        x = x.value
    if type(x) in HANDLES:
        return _shows_nan(x.primal) or (not x.level.records and _shows_nan(x.link))
    if type(x) is float:
        return x != x
    if isinstance(x, np.ndarray) and x.dtype.kind == "f" and x.size:
        # The squares sum to NaN exactly if there is one; several times cheaper than isnan and any.
        flat = x.ravel()
        total = flat.dot(flat)
        return bool(total != total)
    return bool(np.isnan(x).any())
