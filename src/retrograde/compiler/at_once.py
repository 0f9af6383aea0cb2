"""A compiled function called inside of a transform: its derivative program, run at once.

Most calls are of one transform of plain values: of forward mode, of reverse mode with a number as the result, or of
the latter inside of the former (products with Hessians). There may be one batch around them, of examples or of
directions. Such a call needs nothing of what one by a rule does for every nesting of transforms: one program gives
the values and derivatives for all examples, and these become values of the transforms.

In reverse mode the gradient is there before anybody asks for it. It is what its pullback multiplies, so that neither
arguments nor results are kept.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from numpy import errstate, float64, isfinite, ndarray  # NumPy's own, whatever transform is running

from retrograde.compiler.examples import Examples
from retrograde.rules.products import is_finite
from retrograde.rules.table import General
from retrograde.trace.call import Binding, Operand
from retrograde.trace.constant import CONSTANT
from retrograde.trace.handle import HANDLES, make, plain
from retrograde.trace.level import some_are_asked
from retrograde.trace.views import snapshot

if TYPE_CHECKING:
    from retrograde.compiler.derivatives import Role
    from retrograde.compiler.specialisation import Specialisation


def at_once(of: Specialisation, leaves: list[Any]) -> list[Any] | None:
    """The results of a function that writes into no argument; all have derivatives, and memory of their own.

    Args:
        leaves: those of the arguments.

    Returns:
        One value of the transform for each result. None where the call is no such one: it takes the bridge (bridge.py).
    """
    if some_are_asked():
        return None
    given = _Given()
    if not given.take(of, leaves):
        return None
    for level in given.levels:
        level.number()  # raises, once it has ended
    # A partial may well be infinite where what it is multiplied with is zero; that is no news to the user.
    with errstate(all="ignore"):
        if given.tape is None:
            return _pushed(of, given)
        y = _recorded(of, given) if of.is_one_number else None
        return None if y is None else [y]


class _Given:
    """What a call is given.

    Attributes:
        tape, push: the transforms of reverse and of forward mode; None without one.
        batch: the batch around them that some of the values belong to; None without one.
        values: plain ones, by roles.
        mapped: the roles whose values differ between the examples of the batch.
        recorded: the leaves that are values of the tape.
    """

    __slots__ = ("batch", "mapped", "push", "recorded", "tape", "values")

    def __init__(self) -> None:
        self.tape: Any = None
        self.push: Any = None
        self.batch: Any = None
        self.values: dict[Role, Any] = {}
        self.mapped: list[Role] = []
        self.recorded: list[Operand] = []

    def take(self, of: Specialisation, leaves: list[Any]) -> bool:
        """Take the leaves apart; False where there are other levels among them than there is room for."""
        for role, x in zip(of.leaves, leaves, strict=True):
            if type(x) in HANDLES:
                if x.level is CONSTANT:
                    x = plain(x)
                elif not self.take_traced(role, x, role[1] in of.inputs):
                    return False
                else:
                    continue
            self.values[role] = x
        if self.tape is None and self.push is None:
            return False
        return all(a.depth < b.depth for a, b in pairwise(self.levels))

    @property
    def levels(self) -> list[Any]:
        """From the outermost."""
        return [level for level in (self.batch, self.push, self.tape) if level is not None]

    def take_traced(self, role: Role, x: Any, is_input: bool) -> bool:
        level = x.level
        if level.is_swept:
            if (self.tape is not None and level is not self.tape) or not is_input:
                return False
            self.tape = level
            self.recorded.append(Operand(role[1], (), x))
            x = x.primal
            if type(x) not in HANDLES:
                self.values[role] = x
                return True
            level = x.level
        if level.pushes:
            if (self.push is not None and level is not self.push) or not is_input:
                return False
            self.push = level
            return self.take_mapped(role, x.primal) and self.take_mapped(("dot", 0, role), x.link)
        return self.take_mapped(role, x)

    def take_mapped(self, role: Role, x: Any) -> bool:
        if type(x) in HANDLES:
            if not x.level.maps or (self.batch is not None and x.level is not self.batch):
                return False
            self.batch = x.level
            x = x.primal
            if type(x) in HANDLES:
                return False
            self.mapped.append(role)
        self.values[role] = x
        return True

    @property
    def examples(self) -> Examples | None:
        return None if self.batch is None else Examples(self.batch.size, frozenset(self.mapped))


def _pushed(of: Specialisation, given: _Given) -> list[Any] | None:
    examples = given.examples
    found = of.evaluate("J", 1, given.values, examples=examples)
    results = []
    for role in of.result_roles:
        results.append(_of_push(found, role, given, examples))
    return results


def _of_push(found: dict[Role, Any], role: Role, given: _Given, examples: Examples | None) -> Any:
    """What has been found for a role, as a value of the transform of forward mode if there is one."""
    x = found[role]
    if examples is not None and examples.reach(role):
        x = given.batch.wrap(x)
    if given.push is None:
        return x
    x_dot = found["dot", 0, role]
    if examples is not None and examples.reach(("dot", 0, role)):
        x_dot = given.batch.wrap(x_dot)
    return make(x, x_dot, given.push)


def _recorded(of: Specialisation, given: _Given) -> Any:
    """The one number that is the result, on the tape with its gradient; None where that is infinite or NaN."""
    examples = given.examples
    places = [operand.slot for operand in given.recorded]
    wanted = None if len(places) >= len(of.inputs) else frozenset(places)
    values = given.values
    values["y_bar", 0] = 1.0
    found = of.evaluate("T", 0 if given.push is None else 1, values, wanted, examples)
    bars: list[Any] = [None] * len(of.leaves)
    for place in places:
        role: Role = ("x_bar", place)
        for r in (role,) if given.push is None else (role, ("dot", 0, role)):
            # Zero times these is not zero: a sweep looks after that by the bridge.
            if r not in found or not _is_finite(found[r]):
                return None
        bars[place] = _of_push(found, role, given, examples)
    y = _of_push(found, ("y", 0), given, examples)
    args: list[Any] = [None] * len(bars)
    for operand in given.recorded:
        args[operand.slot] = operand.traced.primal
    binding = Binding(_rule(of), y, tuple(args), {}, tuple(range(len(bars))), _scaling(bars))
    return given.tape.apply(binding, given.recorded)


def _is_finite(x: Any) -> bool:
    return is_finite(x) if type(x) is ndarray else bool(isfinite(x))


def _scaling(gradient: list[Any]) -> Callable[[Any], tuple[Any, ...]]:
    """The pullback of a number whose gradient is known."""

    def pull(y_bar: Any) -> tuple[Any, ...]:
        if (type(y_bar) is float or type(y_bar) is float64) and y_bar == 1.0:
            return tuple(map(snapshot, gradient))
        return tuple([None if g is None else y_bar * g for g in gradient])

    return pull


def _rule(of: Specialisation) -> General:
    """The function as a rule, for what a tape wants to know of one."""
    if of.rule is None:

        def function(*args: Any) -> Any:
            raise AssertionError("value and pullback have been given")

        function.__name__ = of.source.name
        of.rule = General(function, slice(0, None), function, function, joins_all=True)
    return of.rule
