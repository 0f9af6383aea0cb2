"""A compiled function called in forward mode: its tangent program, run at once.

Most calls with tangents are of one transform, whose values are plain, or those of one batch around it (`vmap` of
`jvp`, the columns of a Jacobian). They need nothing of what a call by a rule does for every nesting of transforms: the
program gives values and tangents for all examples, and these become values of the transform.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from numpy import may_share_memory, ndarray

from retrograde.compiler.examples import Examples
from retrograde.trace.constant import CONSTANT
from retrograde.trace.handle import HANDLES, make, plain
from retrograde.trace.level import some_are_asked

if TYPE_CHECKING:
    from retrograde.compiler.derivatives import Role
    from retrograde.compiler.specialisation import Specialisation


def pushed(of: Specialisation, leaves: list[Any]) -> list[Any] | None:
    """The results of a function all of whose results have derivatives, and which writes into no argument.

    Args:
        leaves: those of the arguments.

    Returns:
        One value of the transform for each result. None where the call is no such one: it takes the bridge (bridge.py).
    """
    given = None if some_are_asked() else _given(of, leaves)
    if given is None:
        return None
    level, batch, values, mapped = given
    level.number()  # raises, once the transform has ended
    examples = None if batch is None else Examples(batch.size, frozenset(mapped))
    found = of.evaluate("J", 1, values, examples=examples)
    results = []
    for role in of.result_roles:
        y, y_dot = found[role], found["dot", 0, role]
        if examples is not None and examples.reach(role):
            y = batch.wrap(y)
        elif type(y) is ndarray and _is_part(y, values):
            return None
        if examples is not None and examples.reach(("dot", 0, role)):
            y_dot = batch.wrap(y_dot)
        results.append(make(y, y_dot, level))
    return results


class _Given(NamedTuple):
    """What a call is given.

    Attributes:
        level: the transform.
        batch: the batch around it that some of the values belong to; None if there is none.
        values: plain ones, by roles.
        mapped: the roles whose values differ between the examples of the batch.
    """

    level: Any
    batch: Any
    values: dict[Role, Any]
    mapped: list[Role]


def _given(of: Specialisation, leaves: list[Any]) -> _Given | None:
    """The values and tangents of some leaves; None where there is another level than those of `_Given` among them."""
    level = batch = None
    values: dict[Role, Any] = {}
    mapped: list[Role] = []
    for role, leaf in zip(of.leaves, leaves, strict=True):
        parts: tuple[tuple[Role, Any], ...] = ((role, leaf),)
        if type(leaf) in HANDLES:
            if leaf.level is CONSTANT:
                values[role] = plain(leaf)
                continue
            if leaf.level.pushes:
                if (level is not None and leaf.level is not level) or role[1] not in of.inputs:
                    return None
                level = leaf.level
                parts = (role, leaf.primal), (("dot", 0, role), leaf.link)
        for place, value in parts:
            if type(value) in HANDLES:
                if not value.level.maps or (batch is not None and value.level is not batch):
                    return None
                batch = value.level
                value = value.primal
                if type(value) in HANDLES:
                    return None
                mapped.append(place)
            values[place] = value
    if level is None or (batch is not None and batch.depth > level.depth):
        return None
    return _Given(level, batch, values, mapped)


def _is_part(y: Any, values: dict[Role, Any]) -> bool:
    """Whether a result has the memory of an argument, of which it is to be a view then."""
    return any(type(x) is ndarray and may_share_memory(y, x) for x in values.values())
