"""A call of a compiled function that numba's code of it does not answer: with traced values, or beyond numba.

It must be what a call of the function itself is: what is written where, which results share memory, which are plain.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from numpy import array, array_equal, ndarray  # NumPy's own, whatever transform is running

from retrograde.compiler.arguments import leaves_of, replaced, structured
from retrograde.compiler.at_once import at_once
from retrograde.compiler.bridge import Bridge
from retrograde.compiler.shared import Places, places, plain_calls, views
from retrograde.compiler.specialisation import Specialisation
from retrograde.compiler.variant import Which
from retrograde.errors import BatchError, InputError, MutationError
from retrograde.trace.call import highest_level
from retrograde.trace.constant import CONSTANT, constant_here
from retrograde.trace.handle import HANDLES, example_of, is_traced, plain
from retrograde.trace.running import integers_are_data, is_integer

if TYPE_CHECKING:
    from retrograde.compiler.derivatives import Role

Leaves = list[Any]
Itself = Callable[[Leaves], Any]
"""The function itself, for plain arguments."""


def call_traced(
    of: Specialisation, bridge: Callable[[], Bridge], arguments: dict[str, Any], leaves: Leaves, itself: Itself
) -> Any:
    """The value of a call with traced values among the leaves of its arguments."""
    found = at_once(of, leaves) if of.is_smooth and not of.shared.results else None
    if found is not None:
        return structured(of.structure, iter(_without_idle_levels(of, leaves, found)))
    for i in of.written:
        if i not in of.finals and is_traced(leaves[i]):
            leaves[i] = plain(leaves[i])
    for name, leaf in zip(of.params, leaves, strict=True):
        if is_traced(leaf) and leaf.level is not CONSTANT and not leaf.level.maps and is_integer(plain(leaf)):
            raise InputError(*integers_are_data(of.source.name, name, plain(leaf)))
    x = [leaf if i in of.inputs else plain(leaf) for i, leaf in enumerate(leaves)]
    try:
        where = _places(of, arguments, leaves, itself)
        values = bridge().value(x)
    except Exception as error:
        if of.written:
            _check_untouched(of, arguments, leaves, itself, error)
        raise
    values = _without_idle_levels(of, x, values)
    results = dict(zip(of.outputs, values, strict=False))
    if len(results) < len(of.result_types) or set(of.written) - set(of.finals):
        results |= _exact(of, x, [j for j in range(len(of.result_types)) if j not in results])
    for i, final in zip(of.finals, values[len(of.outputs) :], strict=True):
        _write(of.source.name, leaves[i], final)
    return _given_back(of, where, leaves, results)


def call_beyond_numba(of: Specialisation, arguments: dict[str, Any], leaves: Leaves, itself: Itself) -> Any:
    """The value of a call by our own program of the function, where numba lacks something that is in it."""
    given: dict[Role, Any] = {("x", i): leaf for i, leaf in enumerate(leaves)}
    given |= {("x", i): array(leaves[i]) for i in of.written}
    of.check_overlaps(leaves)
    where = _places(of, arguments, leaves, itself)
    found = of.run(Which("J", 0), given)
    for i in of.written:
        leaves[i][...] = found.get(("x", i), given["x", i])
    return _given_back(of, where, leaves, {j: found["y", j] for j in range(len(of.result_types))})


# --- results ---------------------------------------------------------------------------------------------------------


def _places(of: Specialisation, arguments: dict[str, Any], leaves: Leaves, itself: Itself) -> Places:
    """Where the results lie that share memory with arguments or with each other."""

    def run(plains: Leaves) -> Leaves:
        return list(leaves_of(itself(by_argument(of, arguments, plains)), of.structure))

    asked = of.shared.results - _unchanged(of, leaves).keys()
    return places(run, leaves, of.written, asked) if asked else {}


def _unchanged(of: Specialisation, leaves: Leaves) -> dict[int, int]:
    """The results that are arguments on every path: without gaps, which `x.ravel()` and the like would copy."""
    return {j: i for j, i in of.shared.arguments.items() if example_of(leaves[i]).flags.c_contiguous}


def _given_back(of: Specialisation, where: Places, leaves: Leaves, results: dict[int, Any]) -> Any:
    """The result, in which what shares memory is what it is in NumPy."""
    results |= {j: leaves[i] for j, i in _unchanged(of, leaves).items()}
    results |= views(where, leaves, results)
    return structured(of.structure, iter([results[j] for j in range(len(of.result_types))]))


def _without_idle_levels(of: Specialisation, leaves: Leaves, values: Leaves) -> Leaves:
    """The outputs, those to which no path leads from what a transform differentiates without that transform."""
    if not of.paths:
        return values
    made = []
    for role, value in zip(of.output_roles, values, strict=True):
        if role in of.paths:
            level = highest_level([leaves[i] for i in of.paths[role]])
            depth = -1 if level is None else level.depth
            while type(value) in HANDLES and not value.level.maps and value.level.depth > depth:
                value = value.primal
            if role[0] == "y" and type(value) is ndarray:
                value = constant_here(value)  # it has been made inside of the function that is differentiated
        made.append(value)
    return made


def _exact(of: Specialisation, x: Leaves, missing: list[int]) -> dict[int, Any]:
    """The integers and truth values among the results; what is such in the arguments is written into them."""

    def exact(*leaves: Any) -> tuple[Any, ...]:
        found = of.run(Which("J", 0), {("x", i): a for i, a in enumerate(leaves)})
        return tuple(found["y", j] for j in missing)

    values = tuple(map(plain, x))
    level = highest_level(values)
    if level is None:
        return dict(zip(missing, exact(*values), strict=True))
    if set(of.written) - set(of.finals):
        raise BatchError(
            f"{of.source.name} writes integers or truth values into an argument, which cannot be mapped over a batch",
            "return an array that it makes itself",
            "np.stack([f(x) for x in xs]), a loop over the examples in place of vmap",
        )
    return dict(zip(missing, level.one_by_one(exact, values, {}), strict=True))


def _write(name: str, array: Any, final: Any) -> None:
    if is_traced(final) and not is_traced(array):
        raise MutationError(
            f"{name} would write traced values into a plain array, which would lose their derivative",
            "an array made inside the function that is differentiated: np.zeros(shape)",
        )
    array[...] = final


def _check_untouched(
    of: Specialisation, arguments: dict[str, Any], leaves: Leaves, itself: Itself, error: Exception
) -> None:
    """Where a call has raised, refuse to lose the derivative of what it had written into its arguments by then."""
    for values, given in plain_calls(leaves, of.written):
        with suppress(Exception):  # of the same call
            itself(by_argument(of, arguments, given))
        if not all(array_equal(given[i], values[i], equal_nan=given[i].dtype.kind in "fc") for i in of.written):
            raise MutationError(
                f"{of.source.name} raised {type(error).__name__} when it had written into an argument; the derivative "
                "of that would be lost",
                "what may raise in front of what writes",
                "the function uncompiled",
            ) from error


# --- structures ------------------------------------------------------------------------------------------------------


def by_argument(of: Specialisation, arguments: dict[str, Any], leaves: Leaves) -> list[Any]:
    """One entry for each leaf, in the structures of the arguments; None for constants."""
    rest = iter(leaves)
    return [replaced(value, of.arguments[name], rest) for name, value in arguments.items()]
