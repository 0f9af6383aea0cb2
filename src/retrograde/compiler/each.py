"""A program run for each of many examples (see examples.py): in which form, by groups, and these in a native loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from numpy import array, asarray, broadcast_to, ndarray, ndim, require, shape, zeros  # NumPy's own

from retrograde.compiler.examples import Examples, Gathered, Loop, lanes_for, ragged
from retrograde.compiler.known import RAGGED
from retrograde.compiler.parameters import Found, Parameter, base, in_field
from retrograde.compiler.variant import Variant, Which

if TYPE_CHECKING:
    from collections.abc import Callable

    from retrograde.compiler.derivatives import Role
    from retrograde.compiler.specialisation import Specialisation

Given = dict["Role", Any]

ENOUGH_FOR_PARTS = 9
"""So many examples are worth a program of its own for what they share; fewer can go through one program at once."""
ENOUGH_FOR_A_LOOP = 5
"""So many groups of examples are worth the tenth of a second that it takes to compile a loop over them."""


def run_each(of: Specialisation, which: Which, given: Given, examples: Examples) -> Found:
    """What the results of a program stand for, with the axis of the examples in front where they differ."""
    given = given | {role: _in_order(given[role]) for role in examples.roles}
    found: Given = {}
    parts = _parts(of, _variant(of, given, examples), which, examples)
    if parts is not None:
        found = of.run(parts[0], examples.first(given))
        given |= {role: found.pop(role) for role in list(found) if role[0] == "kept"}
        which = parts[1]
    variant = _variant(of, given, examples)
    which = _in_lanes(of, variant, which, examples)
    whole = examples.size // which.lanes
    if whole >= ENOUGH_FOR_A_LOOP:
        gathered = Gathered(examples, which.lanes)
        gathered.share(found)
        if _begin(of, variant, which, given, gathered):
            try:
                run_loop(of, variant, which, given, gathered, (0, whole))
                return _finish(of, which, given, gathered, whole)
            except ValueError:
                # The sizes are not what they were taken for: the first group by itself finds out what is so.
                pass
    gathered = Gathered(examples, which.lanes)
    gathered.share(found)
    gathered.add(0, of.run(which, examples.group(given, 0, which.lanes), gathered.room(0)))
    done = 1
    if whole >= ENOUGH_FOR_A_LOOP:
        run_loop(of, _variant(of, given, examples), which, given, gathered, (1, whole))
        done = whole
    return _finish(of, which, given, gathered, done)


def _in_order(value: Any) -> Any:
    """Values of examples as native code takes them."""
    return value if type(value) is ndarray and value.flags.carray else require(value, requirements=("C", "W"))


def _finish(of: Specialisation, which: Which, given: Given, gathered: Gathered, done: int) -> Found:
    """All results, where the first groups are done."""
    examples, lanes = gathered.examples, which.lanes
    for number in range(done, -(-examples.size // lanes)):
        gathered.add(number, of.run(which, examples.group(given, number, lanes), gathered.room(number)))
    return gathered.all()


def run_none(of: Specialisation, which: Which, given: Given, examples: Examples) -> Given:
    """The program for no examples: arrays without elements, of the shapes that one example would give.

    Raises:
        BatchError: these depend on the values of an example.
    """
    one = examples.first(given)
    if examples.are_seeds:
        found = of.run(which, one)
        return {
            role: zeros((0, *shape(v)), asarray(v).dtype) if examples.reach(role) else v for role, v in found.items()
        }
    variant = of.variant_for(one)
    told = variant.program(Which("S", 0)).reached
    if any(role[0] == "x" and of.params[role[1]] in told and not ndim(one[role]) for role in examples.roles):
        raise variant.unknown_shape()
    lengths = of.run(Which("S", 0), one)

    def none(role: Role) -> Any:
        kind, number = base(role)
        if kind in ("x", "x_bar"):
            return zeros((0, *shape(one["x", number])), of.types[number].dtype)
        type = of.result_types[number]
        return zeros((0, *(lengths["shape", number, k] for k in range(max(type.ndim, 0)))), type.dtype)

    outs = [p.role for p in of.call(variant, which).parameters if p.is_out]
    return {role: none(role) for role in (*variant.program(which).results, *outs)}


# --- which programs ----------------------------------------------------------------------------------------------


def _variant(of: Specialisation, given: Given, examples: Examples) -> Variant:
    return of.usual if of.is_usual else of.variant_for(examples.first(given))


def _parts(of: Specialisation, variant: Variant, which: Which, examples: Examples) -> tuple[Which, Which] | None:
    """The programs of what all examples share and of the rest, where the former is to be one of its own."""
    wanted = None if of.options is None else of.options.parts
    if not examples.are_seeds or wanted is False or (wanted is None and examples.size < ENOUGH_FOR_PARTS):
        return None
    key = "parts", which, examples.roles
    if key not in variant.ways:
        shared = which._replace(mapped=examples.roles, part="shared")
        has_parts = variant.has_parts(which, examples.roles)
        variant.ways[key] = (shared, shared._replace(part="rest")) if has_parts else None
    return variant.ways[key]  # type: ignore[no-any-return]


def _in_lanes(of: Specialisation, variant: Variant, which: Which, examples: Examples) -> Which:
    """The program of several lanes, where that is likely to be faster."""
    if not examples.are_seeds or of.options_lanes == 1:
        return which
    key = "lanes", which, examples
    if key not in variant.ways:
        found = variant.weights(which, examples.roles)
        lanes = lanes_for(found, examples.size)
        if found is not None and of.options_lanes is not None:
            lanes = of.options_lanes
        variant.ways[key] = which if lanes == 1 else which._replace(lanes=lanes, mapped=examples.roles)
    return variant.ways[key]  # type: ignore[no-any-return]


# --- the native loop ---------------------------------------------------------------------------------------------


class Slot(NamedTuple):
    """A parameter of a loop.

    Attributes:
        parameter: that of the program of a group.
        role: what it stands for, of whichever lane.
        place: which example it is of in a group (0 also of what is the same for all lanes); None if it is not mapped,
            "group" where each group writes into one of its own.
        varies: whether it may depend on the example if the program writes each element before it reads it.
    """

    parameter: Parameter
    role: Role
    place: Any
    varies: bool


class Prepared(NamedTuple):
    """A loop over groups, ready to be called.

    Attributes:
        slots: its parameters.
        results: what it stores into arrays of all examples.
        code: native.
    """

    slots: tuple[Slot, ...]
    results: tuple[Role, ...]
    code: Callable[..., Any]


def prepared(of: Specialisation, variant: Variant, which: Which, gathered: Gathered) -> Prepared:
    """The loop over groups of some examples."""
    key = "loop", which, gathered.examples.roles
    found = variant.ways.get(key)
    if found is not None:
        return found  # type: ignore[no-any-return]
    slots = []
    for p in of.call(variant, which).parameters:
        role, example = gathered.place(p.role, 0)
        place: Any = "group" if p.is_out and example is None else example
        if not p.is_out:
            place = (example or 0) if role in gathered.examples.roles else None
        varies = any(type(n) is tuple and n[1] is None and n[0] in gathered.examples.roles for n in p.lengths or ())
        slots.append(Slot(p, role, place, varies))
    program = variant.program(which)
    to = [gathered.place(role, 0) for role in program.results]
    lanes, ndims = tuple(lane for _, lane in to), tuple(t.ndim for t in program.types)
    if getattr(of.native(variant, which), "tells_of_nan", False):
        lanes, ndims = (*lanes, None), (*ndims, -1)
    places = tuple(slot.place for slot in slots)
    loop = Loop(program.name, which.lanes, places, lanes, ndims)
    results = tuple(role for role, lane in to if lane is not None)
    made = variant.ways[key] = Prepared(tuple(slots), results, of.native_loop(variant, which, loop))
    return made


def run_loop(
    of: Specialisation, variant: Variant, which: Which, given: Given, gathered: Gathered, groups: tuple[int, int]
) -> None:
    """Some groups of examples in a native loop; the shapes of the results are known."""
    loop = prepared(of, variant, which, gathered)
    examples = gathered.examples
    args: list[Any] = []
    written: Given = {}
    for p, role, place, varies in loop.slots:
        value = given.get(role)
        is_begun = value is not None
        if p.constant is not None:
            value = p.constant
        elif value is None:
            value = p.zero if p.like is None else _zeros_of_one(given[p.like], p.like in examples.roles)
        elif p.dtype is not None:
            value = in_field(p.dtype, value)
        if p.is_out:
            # Written by each group, beginning with what it is given.
            if place == "group":
                value = array(broadcast_to(value, (groups[1], *getattr(value, "shape", ()))))
            else:
                if role not in written:
                    written[role] = gathered.found[role]
                    begun = groups[0] * which.lanes
                    if is_begun:
                        written[role][begun:] = value[begun:] if role in examples.roles else value
                    elif varies:
                        written[role][begun:] = 0
                value = written[role]
        elif place is None and type(value) is ndarray and value.ndim == 0:
            value = value[()]
        args.append(value)
    try:
        loop.code(*groups, *args, *[gathered.found[role] for role in loop.results])
    except ValueError as error:
        if RAGGED in str(error):
            raise ragged() from None
        raise


def _zeros_of_one(like: Any, is_mapped: bool) -> Any:
    return zeros(like.shape[1:] if is_mapped else like.shape, like.dtype)


def _begin(of: Specialisation, variant: Variant, which: Which, given: Given, gathered: Gathered) -> bool:
    """Make the arrays of all results, whose shapes the arguments and what all examples share tell; False where these do
    not."""
    examples = gathered.examples
    program = variant.program(which)
    for lane_role, type_ in zip(program.results, program.types, strict=True):
        role, place = gathered.place(lane_role, 0)
        if place is None and role not in gathered.found:
            return False  # the same for all, of which a loop keeps nothing
        if place is None:
            continue
        of_one: tuple[int, ...] = ()
        if type_.is_array:
            like = base(role)
            model = gathered.found.get(like)
            if model is None or like[0] != "y":
                return False
            of_one = model.shape
        gathered.begin(role, of_one, type_.dtype, is_filled=True)
    one = examples.first(given)
    for p in of.call(variant, which).parameters:
        role, place = gathered.place(p.role, 0)
        if p.is_out and place is None and role not in gathered.found:
            return False
        if p.is_out and place is not None:
            is_begun = given.get(role) is not None
            like = one[role if is_begun or p.like is None else p.like]
            gathered.begin(role, like.shape, p.dtype or like.dtype, is_begun or p.is_filled(like.shape, one))
    return True
