"""`back`: a sweep from a value that was computed of parameters, into their gradients."""

from __future__ import annotations

from typing import Any

from retrograde.errors import AlreadyUsedError, InputError
from retrograde.reverse.failing import name_operation
from retrograde.reverse.graph import FREED, nodes_behind
from retrograde.reverse.loss import check_loss
from retrograde.reverse.params import Cell, Param, accumulate
from retrograde.reverse.pullback import checked_leaf
from retrograde.reverse.tape import result, sweep, sweep_and_free
from retrograde.trace.handle import VIEWS, is_traced
from retrograde.trace.ops import LEAF
from retrograde.trace.recording import PARAMS
from retrograde.trace.running import interruptible


@interruptible
def back(y: Any, y_bar: Any = None, once: bool = True) -> None:
    """Sweep back from `y` and add to the `.grad` of every parameter that it was computed of, in place.

    Args:
        y: what was computed. Nothing happens if it is not tracked.
        y_bar: the seed, in the shape of `y`; without one, `y` must be a finite real number.
        once: free the graph while sweeping. Other outputs that share a part of it keep that part.

    Raises:
        AlreadyUsedError: `y` was swept with `once=True` before.
        ScalarError, LossError: as `gradient`, if no seed is given.
        SeedError: the seed has another shape than `y`.

    If anything raises, no `.grad` has changed; with `once=True` the graph is used up all the same.
    """
    if not is_traced(y):
        return
    if type(y) in VIEWS:
        y = y.reading()
    if y.level is not PARAMS:
        raise InputError(
            "back(y) needs a y that was computed of parameters outside of transforms; this one belongs to one",
            "gradient or pullback inside the function",
        )
    end = y.link
    if end is FREED:
        raise AlreadyUsedError(
            "this value's graph was already used by back(y) and freed",
            "back(y, once=False), to keep the graph for another sweep",
            "compute y again",
        )
    if y_bar is None:
        check_loss(y, "back")
        y_bar = 1.0
    else:
        y_bar = checked_leaf(y_bar, y.primal)
    nodes, repeatable = nodes_behind([end])
    leaves = [node for node in nodes if node[1] is LEAF]
    inner = [node for node in nodes if node[1] is not LEAF]
    number = end[0]
    numbers = [node[0] for node in nodes]

    def start() -> dict[int, Any]:
        cotangents = dict.fromkeys((0, *numbers), None)
        cotangents[number] = y_bar
        return cotangents

    if once and not isinstance(y, Param):
        y.link = FREED
    del nodes, end
    try:
        if once and not repeatable:
            cotangents = sweep_and_free(inner, start())
        else:
            cotangents = sweep(inner, start, [leaf[0] for leaf in leaves], repeatable)
    except Exception as error:
        name_operation(error, {})
        raise
    changes: list[tuple[Cell, Any]] = []
    for leaf in leaves:
        x_bar = result(cotangents, leaf[0])
        if x_bar is not None:
            changes.append((leaf[2], x_bar))
    accumulate(changes)
