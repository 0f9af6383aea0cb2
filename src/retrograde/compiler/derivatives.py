"""The family of derivative programs of one program, and what each of their parameters and results stands for.

    J_k   the k-th derivative of the function along k directions:     D_v1 … D_vk f(x)
    T_k   the gradient of the same, weighted with a cotangent ȳ:      ∇_x D_v1 … D_vk ⟨ȳ, f(x)⟩
    S     the shapes of the results of the function

J_0 is the function itself, J_1 its pushforward, T_0 its pullback, T_1 what Hessians are made of. Each is the tangent
of the one before it. All derivatives of any order and mixture of modes are values of these (see bridge.py).

Roles: ("x", i) the leaf i of the arguments, ("constant", i) an array from outside, ("x_bar", i), ("y", j) the leaf j
of the result, ("y_bar", j), ("dot", k, role) the derivative of any of these along the direction k, ("lane", k,
role) any of these in lane k of a program of several lanes, and ("shape", j, k) the length of axis k of the result j.
"""

from __future__ import annotations

import functools
from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from retrograde.compiler.activity import Activity
from retrograde.compiler.alias import Memory
from retrograde.compiler.form import Block, Copy, If, Op, Raise, Return
from retrograde.compiler.lanes import in_lanes
from retrograde.compiler.lower.function import Lowered
from retrograde.compiler.optimise import finish, prepare, tidy
from retrograde.compiler.optimise.dead import drop_dead
from retrograde.compiler.options import Options
from retrograde.compiler.parts import in_parts
from retrograde.compiler.program import Program
from retrograde.compiler.pullback import pullback_program
from retrograde.compiler.segments import in_segments
from retrograde.compiler.tangent import program_along_one, tangent_program
from retrograde.compiler.types import Operand
from retrograde.compiler.walks import substitute, uses, walk

if TYPE_CHECKING:
    from retrograde.compiler.variant import Wanted

Role = tuple[Any, ...]


@dataclass(frozen=True)
class Derivative:
    """A program with the roles of its parameters and results."""

    program: Program
    params: tuple[Role, ...]
    results: tuple[Role, ...]

    @functools.cached_property
    def written(self) -> set[str]:
        """The array parameters that the program writes into."""
        return written_params(self.program)

    def name_of(self, role: Role) -> str:
        return self.program.params[self.params.index(role)]


def primal(lowered: Lowered, passes: Collection[str]) -> Derivative:
    """J_0."""
    program = prepare(lowered.program, passes, lowered.known.differs)
    for called in program.procedures.values():
        tidy(called, passes)
    n = len(program.params) - len(lowered.constants)
    roles = [("x", i) for i in range(n)] + [("constant", i) for i in range(len(lowered.constants))]
    return Derivative(program, tuple(roles), tuple(("y", j) for j in range(len(result_types(program)))))


def result_types(program: Program) -> list[Any]:
    """The types of the leaves of the result."""
    return program.result_types()


def pullback(j0: Derivative, options: Options, wanted: Wanted = None) -> Derivative:
    """T_0, with the cotangents of all leaves or of those that are wanted (and of arrays that are written)."""
    program = in_segments(j0.program, options.checkpoint) if options.checkpoint else j0.program
    written = written_params(program)
    inputs = [
        (i, p)
        for i, p in enumerate(program.params)
        if j0.params[i][0] == "x" and program.types[p].is_inexact and (wanted is None or i in wanted or p in written)
    ]
    name = f"{program.name}_pullback"
    made = None
    if options.single and _is_along_one_number(program, [p for _, p in inputs]):
        made = program_along_one(j0.program, inputs[0][1], name, options.careful, options.passes)
        tidy(made, options.passes)
    if made is None:
        made = pullback_program(program, [p for _, p in inputs], name, options)
    arrays = [("x_bar", i) for i, p in inputs if program.types[p].is_array]
    # Shadows of arrays that are written come in with the cotangents of their final contents.
    shadows = made.params[len(j0.params) :]
    made.zeros = frozenset(
        bar for (_, i), bar in zip(arrays, shadows, strict=False) if program.params[i] not in written
    )
    scalars = [("x_bar", i) for i, p in inputs if not program.types[p].is_array]
    types = result_types(program)
    seeds = [("y_bar", j) for j, t in enumerate(types) if t.is_inexact]
    values = [("y", j) for j, t in enumerate(types) if not t.is_array]
    return Derivative(made, (*j0.params, *arrays, *seeds), (*values, *scalars))


def paths(j0: Derivative) -> dict[Role, frozenset[int]]:
    """For each result of J_0, and each array among the leaves at the end, the leaves from which a path leads to it."""
    program = j0.program
    names: dict[Role, set[str]] = {role: set() for role in j0.results}
    for s in walk(program.body):
        if isinstance(s, Return):
            for role, value in zip(j0.results, s.values, strict=True):
                names[role].add(str(value))
    leaves = {role: p for role, p in zip(j0.params, program.params, strict=True) if role[0] == "x"}
    names |= {role: {p} for role, p in leaves.items() if program.is_array(p)}
    inputs = {i: p for (_, i), p in leaves.items() if program.types[p].is_inexact}
    activity = Activity(program, set(inputs.values()), Memory(program))
    varied = {i: activity.varied_from(p) for i, p in inputs.items()}
    nodes = {role: set(map(activity.node, names[role])) for role in names}
    return {role: frozenset(i for i in varied if varied[i] & nodes[role]) for role in names}


def shapes(j0: Derivative) -> Derivative | None:
    """S, made of the shapes of the arguments and of numbers among them; None where it takes more."""
    program = j0.program.derived(f"{j0.program.name}_shapes")
    arrays = [(j, t) for j, t in enumerate(result_types(program)) if t.is_array]
    for s in walk(program.body):
        if isinstance(s, Return):
            names = [v for v in s.values if program.is_array(v)]
            if not program.dims.keys() >= set(names):
                return None
            s.values = tuple(n for name in names for n in program.dims[name])
    drop_dead(program, keep_sizes=False)
    if not all(isinstance(s, Op | If | Raise | Return) for s in walk(program.body)):
        return None
    program.reached = frozenset(name for s in walk(program.body) for name in uses(s)).intersection(program.params)
    return Derivative(program, j0.params, tuple(("shape", j, k) for j, t in arrays for k in range(t.ndim)))


def _is_along_one_number(program: Program, inputs: list[str]) -> bool:
    """Whether one real number is differentiated, all results are numbers, and all that is called has a pushforward."""
    types = result_types(program)
    if len(inputs) != 1 or any(t.is_array for t in types):
        return False
    if any(p.rule is not None and p.rule.function._own_rule().pushforward is None for p in program.with_called()):
        return False
    type = program.types[inputs[0]]
    return not type.is_array and type.kind == "f" and {t for t in types if t.is_inexact} == {type}


def tangent(d: Derivative, number: int, options: Options, along: Wanted = None) -> Derivative:
    """The derivative of a program along direction `number` of the arguments.

    Args:
        along: the leaves in which the direction may not be zero, beside those that are written; None for all.
    """
    program = d.program
    written = written_params(program)
    inputs = [
        (role, p)
        for role, p in zip(d.params, program.params, strict=True)
        if program.types[p].is_inexact
        and ((role[0] == "x" and (along is None or role[1] in along)) or (p in written and role[0] != "constant"))
    ]
    name = (
        f"{program.name}_along"
        if program.name.endswith("_pullback")
        else f"{program.name.removesuffix('_pushforward')}_pushforward"
    )
    made = tangent_program(program, [p for _, p in inputs], name, options.careful, options.passes)
    tangents = made.params[len(program.params) :]
    zeros = [dot for (_, p), dot in zip(inputs, tangents, strict=True) if p in program.zeros]
    made.zeros = program.zeros.union(zeros)
    tidy(made, options.passes)
    types = result_types(program) if d.results else []
    dots = [("dot", number, role) for role, t in zip(d.results, types, strict=True) if t.is_inexact]
    return Derivative(made, (*d.params, *(("dot", number, role) for role, _ in inputs)), (*d.results, *dots))


def laned(d: Derivative, mapped: Collection[Role], count: int) -> Derivative | None:
    """The program for several values of some parameters at once; None where that is not possible (see lanes.py)."""
    made = in_lanes(d.program, seeds(d, mapped), count)
    if made is None:
        return None
    params = tuple(in_lane(lane, d.params[i]) for i, lane in made.params)
    results = tuple(in_lane(lane, d.results[i]) for i, lane in made.results) if d.results else ()
    return Derivative(made.program, params, results)


def parted(d: Derivative, mapped: Collection[Role], anyway: bool = False) -> tuple[Derivative, Derivative] | None:
    """A program in what many values of some parameters share, and the rest (see parts.py)."""
    parts = in_parts(d.program, seeds(d, mapped), anyway)
    if parts is None:
        return None
    role_of = dict(zip(d.program.params, d.params, strict=True))
    kept = tuple(("kept", i) for i in range(parts.kept))
    common = tuple(role for role, is_common in zip(d.results, parts.is_shared, strict=bool(d.results)) if is_common)
    others = tuple(role for role, is_common in zip(d.results, parts.is_shared, strict=bool(d.results)) if not is_common)
    shared = Derivative(parts.shared, tuple(role_of[p] for p in parts.shared.params), (*common, *kept))
    return shared, Derivative(parts.each, (*d.params, *kept), others)


def seeds(d: Derivative, mapped: Collection[Role]) -> list[str]:
    """The parameters that have a value for each lane."""
    return [p for p, role in zip(d.program.params, d.params, strict=True) if role in mapped]


def in_lane(lane: int | None, role: Role) -> Role:
    return role if lane is None else ("lane", lane, role)


def written_params(program: Program) -> set[str]:
    """The array parameters that a program writes into."""
    return Memory(program).all_writes(program.body) & set(program.params)


def finished(
    d: Derivative,
    passes: Collection[str],
    copies: bool = True,
    vectormath: bool = False,
    mapped: Collection[Role] = (),
) -> Program:
    """The program as it is written out.

    Args:
        copies: copy the caller's own arrays before they are written.
        vectormath: use elementary functions that a loop can vectorise.
        mapped: what has many values, which are mostly those of a basis.
    """
    program = d.program.derived(d.program.name)
    if copies:
        made: Block = []
        names: dict[str, Operand] = {}
        written = written_params(program)
        for role, p in zip(d.params, d.program.params, strict=True):
            if p in written and role[0] == "x":
                own = program.new(f"{p}_own", program.types[p], program.dims.get(p))
                names[p] = own
                made.append(Copy(own, p))
        program.body = [*made, *substitute(program.body, names)]
    program.procedures = {name: p.derived(name) for name, p in program.procedures.items()}
    sparse = [p for role, p in zip(d.params, d.program.params, strict=True) if role in mapped or role[0] == "lane"]
    programs = [program, *program.procedures.values()]
    for each in programs:
        each.procedures = program.procedures
        finish(each, passes, vectormath, sparse if each is program else ())
        programs += [made for made in each.procedures.values() if made not in programs]
    return program
