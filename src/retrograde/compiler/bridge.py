"""A compiled function as a primitive of the eager engine, in every mode, nesting and order.

With the programs of derivatives.py,

    J_k(x; v1 … vk)      = D_v1 … D_vk f(x)
    T_k(x, ȳ; v1 … vk)   = ∇_x D_v1 … D_vk ⟨ȳ, f(x)⟩

the derivative of each is made of others of them, since mixed derivatives do not depend on their order:

    J_k pushed along (ẋ, v̇)        J_{k+1}(x; v, ẋ) + Σ_j J_k(x; v with v̇_j for v_j)
    J_k pulled with ȳ               x: T_k(x, ȳ; v)            v_j: T_{k-1}(x, ȳ; v without v_j)
    T_k pushed along (ẋ, ȳ̇, v̇)     T_{k+1}(x, ȳ; v, ẋ) + T_k(x, ȳ̇; v) + Σ_j T_k(x, ȳ; v with v̇_j for v_j)
    T_k pulled with w               x: T_{k+1}(x, ȳ; v, w)     ȳ: J_{k+1}(x; v, w)     v_j: T_k(x, ȳ; v with w for v_j)

A program of order k computes on its way what those of lower order do: D_S for all subsets S of its directions. All of
them are results of the primitive, so that nothing runs twice: the value comes with the tangent, and with the gradient
where there is one number to differentiate (its cotangent is a factor of the gradient then).

x, v, w hold one entry for each leaf of the arguments (None for those without derivatives), y and ȳ one for each
result with a derivative and then one for the final contents of each array that the function writes into. Subsets are
numbers, of which bit j says whether v_j is in them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from retrograde.compiler.batched import OfOne, Pairs, of_all
from retrograde.compiler.examples import Examples
from retrograde.compiler.specialisation import Specialisation, nested
from retrograde.compiler.variant import Wanted
from retrograde.rules.products import has_nan
from retrograde.rules.table import General
from retrograde.trace.call import call_rule, highest_level
from retrograde.trace.handle import is_traced

if TYPE_CHECKING:
    from retrograde.compiler.derivatives import Role

Vector = Sequence[Any]
Vectors = tuple[Vector, ...]


class Kind(NamedTuple):
    """One of the primitives: J, or T with the leaves whose cotangents are wanted."""

    name: str
    order: int
    wanted: Wanted = None


class Bridge:
    """The primitives of one specialisation."""

    def __init__(self, specialisation: Specialisation) -> None:
        of = self.of = specialisation
        self._primitives: dict[Kind, _Of] = {}
        self.width = len(of.outputs) + len(of.finals)
        # The results that a T gives as well.
        self.numbers = [j for j in of.outputs if not of.result_types[j].is_array]
        self.is_one_number = [t.kind for t in of.result_types] == ["f"] and bool(self.numbers) and not of.finals

    def primitive(self, kind: Kind) -> _Of:
        if kind not in self._primitives:
            self._primitives[kind] = _Of(self, kind)
        return self._primitives[kind]

    def value(self, x: Vector) -> list[Any]:
        """The results with derivatives and final contents of written arrays, for leaves that may be traced."""
        return self.j(x, ()) if self.width else []

    # --- J -------------------------------------------------------------------------------------------------------

    def j(self, x: Vector, v: Vectors) -> list[Any]:
        """J_k(x; v)."""
        return self.js(x, v)[-1]

    def js(self, x: Vector, v: Vectors) -> list[list[Any]]:
        """J along each subset of the directions."""
        return self.in_subsets(self.primitive(Kind("J", len(v))).apply((x, *v)))

    def in_subsets(self, flat: Sequence[Any]) -> list[list[Any]]:
        width = self.width
        return [list(flat[start : start + width]) for start in range(0, len(flat), width)]

    def j_plain(self, kind: Kind, x: Vector, *v: Vector, examples: Examples | None = None) -> list[Any]:
        of = self.of
        given: dict[Any, Any] = {("x", i): leaf for i, leaf in enumerate(x)}
        if not v:
            for i in set(of.written) - set(of.finals):
                given["x", i] = np.array(given["x", i])
        given |= _along(v)
        found = of.evaluate("J", len(v), given, examples=examples)
        made = []
        for subset in _subsets(len(v)):
            made += [found[nested(subset, ("y", j))] for j in of.outputs]
            made += [self.final(found, nested(subset, ("x", i)), given, examples) for i in of.finals]
        return made

    def final(self, found: dict[Any, Any], role: Any, given: dict[Any, Any], examples: Examples | None) -> Any:
        """What an array or its derivative holds at the end; what no statement writes goes out as it came in."""
        if role in found:
            return found[role]
        if examples is not None and role not in examples.roles:
            value = self.final(found, role, examples.first(given), None)
            return examples.spread(value) if examples.reach(role) else value
        return self.of.zeros(role, given) if given.get(role) is None else np.array(given[role])

    def j_pull(self, kind: Kind, y: Sequence[Any], traced: tuple[Wanted, ...], x: Vector, *v: Vector) -> Any:
        ys = self.in_subsets(y)

        def pull(y_bar: Vector) -> list[Vector]:
            parts: list[Any] = [None] * (1 + len(v))
            for subset, bars in enumerate(self.in_subsets(y_bar)):
                if _some(bars):
                    along = _chosen(v, subset)
                    self.pull_value(parts, self.filled(bars, ys[subset]), along, traced, x, v)
            return _filled_parts(parts, (x, *v))

        return pull

    def pull_value(
        self,
        parts: list[Any],
        y_bar: Vector,
        along: dict[int, Vector],
        traced: tuple[Wanted, ...],
        x: Vector,
        v: Vectors,
    ) -> None:
        """Add what ȳ, a cotangent of D_along f, gives to x and to the directions."""
        _add(parts, 0, self.t, x, y_bar, tuple(along.values()), traced[0])
        for j in along:
            _add(parts, 1 + j, self.t, x, y_bar, tuple(d for i, d in along.items() if i != j), traced[1 + j])

    def j_push(self, kind: Kind, y: Sequence[Any], dots: Vectors, x: Vector, *v: Vector) -> tuple[Any, Any]:
        x_dot, *v_dot = dots
        value = None
        total: list[Any] = [None] * (len(_subsets(len(v))) * self.width)
        if _some(x_dot):
            both = self.js(x, (*v, self.direction(x_dot)))
            half = len(both) // 2
            value = [part for subset in both[:half] for part in subset]
            total = [part for subset in both[half:] for part in subset]
        for j, d in enumerate(v_dot):
            if _some(d):
                found = self.js(x, (*v[:j], self.direction(d), *v[j + 1 :]))
                total = _sum(total, [part if s >> j & 1 else None for s, ys in enumerate(found) for part in ys])
        return value, total

    def together(self, wanted: Wanted, *x: Any) -> tuple[Any, Any]:
        """The value of a function of one number, and its pullback: the gradient, times a factor."""
        with np.errstate(all="ignore"):
            found = self.ts(x, [1.0], (), wanted)[0]
        y, gradient = found[0], found[1:]

        def pull(y_bar: Vector) -> list[Any]:
            factor = y_bar[0]
            if type(factor) in (float, np.float64) and factor == 1.0:
                bars = gradient
            elif any(has_nan(0.0 * g) for g in gradient):
                # No product: zero times infinity is zero.
                return self.t(x, [factor], (), wanted)
            else:
                bars = [factor * g for g in gradient]
            return self.by_leaf(bars, len(x), wanted)

        return (y,), pull

    # --- T -------------------------------------------------------------------------------------------------------

    def t(self, x: Vector, y_bar: Vector, v: Vectors, wanted: Wanted = None) -> list[Any]:
        """T_k(x, ȳ; v): one entry for each leaf, None for those without derivatives and those that are not wanted."""
        return self.by_leaf(self.ts(x, y_bar, v, wanted)[-1][len(self.numbers) :], len(x), wanted)

    def ts(self, x: Vector, y_bar: Vector, v: Vectors, wanted: Wanted = None) -> list[list[Any]]:
        """T along each subset of the directions: the results that are numbers, and the cotangents that are wanted."""
        flat = self.primitive(Kind("T", len(v), wanted)).apply((x, y_bar, *v))
        return self.of_ts(flat, wanted)

    def of_ts(self, flat: Sequence[Any], wanted: Wanted) -> list[list[Any]]:
        width = len(self.numbers) + len(self.leaves(wanted))
        return [list(flat[start : start + width]) for start in range(0, len(flat), width)]

    def leaves(self, wanted: Wanted) -> list[int]:
        """The leaves whose cotangents a T gives."""
        return [i for i in self.of.inputs if wanted is None or i in wanted]

    def by_leaf(self, bars: Sequence[Any], count: int, wanted: Wanted) -> list[Any]:
        by_leaf: list[Any] = [None] * count
        for i, bar in zip(self.leaves(wanted), bars, strict=True):
            by_leaf[i] = bar
        return by_leaf

    def t_plain(self, kind: Kind, x: Vector, y_bar: Vector, *v: Vector, examples: Examples | None = None) -> list[Any]:
        of = self.of
        given: dict[Any, Any] = {("x", i): leaf for i, leaf in enumerate(x)}
        given |= {("y_bar", j): bar for j, bar in zip(of.outputs, y_bar, strict=False)}
        given |= {("x_bar", i): bar for i, bar in zip(of.finals, y_bar[len(of.outputs) :], strict=True)}
        given |= _along(v)
        found = of.evaluate("T", len(v), given, kind.wanted, examples)
        made = []
        for subset in _subsets(len(v)):
            made += [found[nested(subset, ("y", j))] for j in self.numbers]
            leaves = self.leaves(kind.wanted)
            made += [self.final(found, nested(subset, ("x_bar", i)), given, examples) for i in leaves]
        return made

    def t_pull(self, kind: Kind, y: Any, traced: tuple[Wanted, ...], x: Vector, y_bar: Vector, *v: Vector) -> Any:
        numbers, outputs = len(self.numbers), self.of.outputs

        def pull(w: Vector) -> list[Vector]:
            parts: list[Any] = [None] * (2 + len(v))
            of_vectors = [parts[0], *parts[2:]]  # x and v, without ȳ
            traced_vectors = (traced[0], *traced[2:])
            for subset, bars in enumerate(self.of_ts(w, kind.wanted)):
                along = _chosen(v, subset)
                if _some(bars[numbers:]):
                    d = self.direction(self.by_leaf(bars[numbers:], len(x), kind.wanted))
                    _add(of_vectors, 0, self.t, x, y_bar, (*along.values(), d), traced_vectors[0])
                    if traced[1] is None or traced[1]:
                        parts[1] = _sum(parts[1], self.j(x, (*along.values(), d)))
                    for j in along:
                        others = tuple(d if i == j else u for i, u in along.items())
                        _add(of_vectors, 1 + j, self.t, x, y_bar, others, traced_vectors[1 + j])
                if _some(bars[:numbers]):
                    given = dict(zip(self.numbers, bars[:numbers], strict=True))
                    seed = [given.get(j) for j in outputs] + [None] * (len(y_bar) - len(outputs))
                    self.pull_value(of_vectors, self.filled(seed, y_bar), along, traced_vectors, x, v)
            return _filled_parts([of_vectors[0], parts[1], *of_vectors[1:]], (x, y_bar, *v))

        return pull

    def t_push(self, kind: Kind, y: Any, dots: Vectors, x: Vector, y_bar: Vector, *v: Vector) -> tuple[Any, Any]:
        x_dot, y_bar_dot, *v_dot = dots
        wanted, numbers = kind.wanted, len(self.numbers)
        value = None
        total: list[Any] = [None] * (len(_subsets(len(v))) * (numbers + len(self.leaves(wanted))))
        if _some(x_dot):
            both = self.ts(x, y_bar, (*v, self.direction(x_dot)), wanted)
            half = len(both) // 2
            value = [part for subset in both[:half] for part in subset]
            total = [part for subset in both[half:] for part in subset]
        if _some(y_bar_dot):
            found = self.ts(x, self.filled(y_bar_dot, y_bar), v, wanted)
            total = _sum(total, [None if i < numbers else part for parts in found for i, part in enumerate(parts)])
        for j, d in enumerate(v_dot):
            if _some(d):
                found = self.ts(x, y_bar, (*v[:j], self.direction(d), *v[j + 1 :]), wanted)
                total = _sum(total, [part if s >> j & 1 else None for s, parts in enumerate(found) for part in parts])
        return value, total

    # --- vectors -------------------------------------------------------------------------------------------------

    def roles(self, kind: Kind) -> list[Role]:
        """What the leaves of x, ȳ (for T) and v stand for, in this order."""
        of = self.of
        leaves: list[Role] = [("x", i) for i in range(len(of.types))]
        seeds: list[Role] = [("y_bar", j) for j in of.outputs] + [("x_bar", i) for i in of.finals]
        directions: list[Role] = [("dot", number, role) for number in range(kind.order) for role in leaves]
        return leaves + (seeds if kind.name == "T" else []) + directions

    def direction(self, v: Vector) -> list[Any]:
        """A direction, without what has no derivative."""
        return [d if i in self.of.inputs else None for i, d in enumerate(v)]

    def filled(self, y_bar: Vector, y: Vector) -> list[Any]:
        """A cotangent with zeros where there is none."""
        return [_zeros_like(like) if bar is None else bar for bar, like in zip(y_bar, y, strict=True)]


def _zeros_like(y: Any) -> Any:
    return np.zeros(np.shape(y), complex if np.iscomplexobj(y) else float)[()]


class _Of:
    """One of the primitives as the engine calls it: with all leaves of its vectors as arguments."""

    def __init__(self, bridge: Bridge, kind: Kind) -> None:
        self.bridge = bridge
        self.kind = kind
        self._rules: dict[tuple[Any, ...], General] = {}
        rules: Any = (
            (bridge.j_plain, bridge.j_pull, bridge.j_push)
            if kind.name == "J"
            else (bridge.t_plain, bridge.t_pull, bridge.t_push)
        )
        self.plain, self.pull, self.push = rules

    def apply(self, vectors: Vectors) -> list[Any]:
        """The results for some vectors, with derivatives where there are traced values among them."""
        flat = tuple(leaf for vector in vectors for leaf in vector)
        level = highest_level(flat)
        if level is None:
            return self.plain(self.kind, *vectors)
        lengths = tuple(map(len, vectors))
        if level.maps:
            return self.mapped(level, flat, lengths)
        key = lengths, tuple([self.traced(vector, level) for vector in vectors])
        if key not in self._rules:
            self._rules[key] = self.rule(*key)
        return list(call_rule(self._rules[key], flat, {}))

    def traced(self, vector: Vector, level: Any) -> Wanted:
        """The leaves that a level traces; None if those are all that have derivatives."""
        found = frozenset(i for i, leaf in enumerate(vector) if is_traced(leaf) and leaf.level is level)
        return None if found.issuperset(self.bridge.of.inputs) else found

    def mapped(self, level: Any, flat: tuple[Any, ...], lengths: tuple[int, ...]) -> list[Any]:
        size, values, held = level.examples(flat)
        outer, wrap = highest_level(values), level.wrap
        if outer is not None and outer.maps:
            pairs = Pairs.of(level, outer, values, held)
            if pairs is not None:
                size, values, held, wrap, outer = pairs.size, pairs.values, pairs.held, pairs.wrap, None
        if outer is not None and (outer.maps or size == 0):
            return list(level.one_by_one(self.function(lengths), flat, {}))
        if outer is not None:
            rule = of_all(self.of_one(lengths, values, outer), level, held)
            return [wrap(y) for y in call_rule(rule, tuple(values), {})]
        roles = self.bridge.roles(self.kind)
        examples = Examples(size, frozenset(role for role, h in zip(roles, held, strict=True) if h))
        found = self.plain(self.kind, *_split(values, lengths), examples=examples)
        return [wrap(value) if is_mapped else value for value, is_mapped in zip(found, self.which(examples))]

    def of_one(self, lengths: tuple[int, ...], values: Sequence[Any], outer: Any) -> OfOne:
        """The function of one example, for a transform outside of the batch."""
        traced = tuple([self.traced(vector, outer) for vector in _split(values, lengths)])

        def pull(y: Sequence[Any], args: Sequence[Any], y_bar: Sequence[Any]) -> list[Any]:
            inner = self.pull(self.kind, y, traced, *_split(args, lengths))
            return [bar for part in inner(y_bar) for bar in part]

        def push(y: Sequence[Any], args: Sequence[Any], dots: Sequence[Any]) -> Sequence[Any]:
            return _with_zeros(self.push(self.kind, y, _split(dots, lengths), *_split(args, lengths))[1], y)

        return OfOne(self.function(lengths), pull, push, self.bridge.of.source.function)

    def which(self, examples: Examples) -> list[bool]:
        """Which results differ from one example to the next."""
        of, bridge, kind = self.bridge.of, self.bridge, self.kind
        roles: list[Role] = [("y", j) for j in of.outputs] + [("x", i) for i in of.finals]
        if kind.name == "T":
            roles = [("y", j) for j in bridge.numbers] + [("x_bar", i) for i in bridge.leaves(kind.wanted)]
        return [examples.reach(nested(subset, role)) for subset in _subsets(kind.order) for role in roles]

    def function(self, lengths: tuple[int, ...]) -> Callable[..., Any]:
        def function(*flat: Any) -> Any:
            return tuple(self.apply(_split(flat, lengths)))

        function.__name__ = self.bridge.of.source.name
        return function

    def rule(self, lengths: tuple[int, ...], traced: tuple[Wanted, ...]) -> General:
        kind, bridge = self.kind, self.bridge

        def pullback(y: Any, *flat: Any) -> Any:
            inner = self.pull(kind, y, traced, *_split(flat, lengths))
            return lambda y_bar: tuple(bar for part in inner(y_bar) for bar in part)

        def pushforward(y: Any, *flat: Any) -> Any:
            def push(*dots: Any) -> Any:
                return _with_zeros(self.push(kind, y, _split(dots, lengths), *_split(flat, lengths))[1], y)

            return push

        def with_tangent(flat: Any, dots: Any) -> Any:
            vectors = _split(flat, lengths)
            y, y_dot = self.push(kind, (), _split(dots, lengths), *vectors)
            y = tuple(self.apply(vectors) if y is None else y)
            return y, _with_zeros(y_dot, y)

        def together(*flat: Any) -> Any:
            y, pull = bridge.together(traced[0], *flat)
            return y, lambda y_bar: tuple(pull(y_bar))

        is_joint = kind == ("J", 0, None) and bridge.is_one_number
        return General(
            self.function(lengths),
            slice(0, None),
            pullback,
            pushforward,
            together if is_joint else None,
            with_tangent,
            joins_all=True,
            gives_views=False,  # see shared.py
        )


def _split(flat: Sequence[Any], lengths: tuple[int, ...]) -> Vectors:
    parts, start = [], 0
    for n in lengths:
        parts.append(flat[start : start + n])
        start += n
    return tuple(parts)


def _subsets(order: int) -> range:
    return range(2**order)


def _chosen(v: Vectors, subset: int) -> dict[int, Vector]:
    """The directions of a subset, by their numbers."""
    return {j: d for j, d in enumerate(v) if subset >> j & 1}


def _along(v: Vectors) -> dict[Role, Any]:
    return {("dot", n, ("x", i)): d for n, direction in enumerate(v) for i, d in enumerate(direction) if d is not None}


def _some(v: Vector) -> bool:
    return any(d is not None for d in v)


def _add(parts: list[Any], place: int, t: Any, x: Vector, y_bar: Vector, v: Vectors, wanted: Wanted) -> None:
    """Add a T to what has been found for a vector, if any of it is wanted."""
    if wanted is None or wanted:
        parts[place] = _sum(parts[place], t(x, y_bar, v, wanted))


def _sum(total: list[Any] | None, term: list[Any]) -> list[Any]:
    if total is None:
        return term
    return [a if b is None else b if a is None else a + b for a, b in zip(total, term, strict=True)]


def _filled_parts(parts: list[Any], vectors: Vectors) -> list[Vector]:
    return [[None] * len(v) if part is None else part for part, v in zip(parts, vectors, strict=True)]


def _with_zeros(y_dot: list[Any], y: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(_zeros_like(like) if d is None else d for d, like in zip(y_dot, y, strict=True))
