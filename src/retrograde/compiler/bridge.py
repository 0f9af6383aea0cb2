"""A compiled function as a primitive of the eager engine, in every mode, nesting and order.

With the programs of derivatives.py,

    J_k(x; v1 … vk)      = D_v1 … D_vk f(x)
    T_k(x, ȳ; v1 … vk)   = ∇_x D_v1 … D_vk ⟨ȳ, f(x)⟩

the derivative of each is made of others of them, since mixed derivatives do not depend on their order:

    J_k pushed along (ẋ, v̇)        J_{k+1}(x; v, ẋ) + Σ_j J_k(x; v with v̇_j for v_j)
    J_k pulled with ȳ               x: T_k(x, ȳ; v)            v_j: T_{k-1}(x, ȳ; v without v_j)
    T_k pushed along (ẋ, ȳ̇, v̇)     T_{k+1}(x, ȳ; v, ẋ) + T_k(x, ȳ̇; v) + Σ_j T_k(x, ȳ; v with v̇_j for v_j)
    T_k pulled with w               x: T_{k+1}(x, ȳ; v, w)     ȳ: J_{k+1}(x; v, w)     v_j: T_k(x, ȳ; v with w for v_j)

x, v, w hold one entry for each leaf of the arguments (None for those without derivatives), y and ȳ one for each
result with a derivative and then one for the final contents of each array that the function writes into.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from retrograde.compiler.derivatives import Role
from retrograde.compiler.examples import Examples
from retrograde.compiler.specialisation import Specialisation, nested
from retrograde.rules.table import General
from retrograde.trace.call import call_rule, highest_level
from retrograde.trace.handle import is_traced

Vector = Sequence[Any]
Vectors = tuple[Vector, ...]


class Bridge:
    """The primitives of one specialisation."""

    def __init__(self, specialisation: Specialisation) -> None:
        self.of = specialisation

    def value(self, x: Vector) -> list[Any]:
        """The results with derivatives and final contents of written arrays, for leaves that may be traced."""
        return self.j(x, ())

    # --- J -------------------------------------------------------------------------------------------------------

    def j(self, x: Vector, v: Vectors) -> list[Any]:
        """J_k(x; v)."""
        return self.apply(self.j_plain, self.j_pull, self.j_push, self.roles("J", v), (x, *v))

    def j_plain(self, x: Vector, *v: Vector, examples: Examples | None = None) -> list[Any]:
        of, order = self.of, len(v)
        given: dict[Any, Any] = {("x", i): leaf for i, leaf in enumerate(x)}
        if order == 0:
            for i in set(of.written) - set(of.finals):
                given["x", i] = np.array(given["x", i])
        for number, direction in enumerate(v):
            given |= {("dot", number, ("x", i)): direction[i] for i in of.inputs}
        found = of.evaluate("J", order, given, examples=examples)
        results = [found[nested(order, ("y", j))] for j in of.outputs]
        return results + [self.final(found, nested(order, ("x", i)), given, examples) for i in of.finals]

    def final(self, found: dict[Any, Any], role: Any, given: dict[Any, Any], examples: Examples | None) -> Any:
        """What an array or its derivative holds at the end; what no statement writes goes out as it came in."""
        if role in found:
            return found[role]
        if examples is not None and role not in examples.roles:
            return examples.spread(self.final(found, role, examples.first(given), None))
        return self.of.zeros(role, given) if given.get(role) is None else np.array(given[role])

    def j_pull(self, y: Any, x: Vector, *v: Vector) -> Callable[[Vector], list[Vector]]:
        def pull(y_bar: Vector) -> list[Vector]:
            y_bar = self.filled(y_bar, y)
            parts = [self.t(x, y_bar, v)]
            return parts + [self.t(x, y_bar, (*v[:j], *v[j + 1 :])) for j in range(len(v))]

        return pull

    def j_push(self, y: Any, x: Vector, *v: Vector) -> Callable[..., list[Any]]:
        def push(x_dot: Vector, *v_dot: Vector) -> list[Any]:
            terms = []
            if _some(x_dot):
                terms.append(self.j(x, (*v, self.direction(x_dot, x))))
            for j, d in enumerate(v_dot):
                if _some(d):
                    terms.append(self.j(x, (*v[:j], self.direction(d, x), *v[j + 1 :])))
            return _sum(terms)

        return push

    # --- T -------------------------------------------------------------------------------------------------------

    def t(self, x: Vector, y_bar: Vector, v: Vectors) -> list[Any]:
        """T_k(x, ȳ; v): one entry for each leaf, None for those without derivatives."""
        found = iter(self.apply(self.t_plain, self.t_pull, self.t_push, self.roles("T", v), (x, y_bar, *v)))
        return [next(found) if i in self.of.inputs else None for i in range(len(x))]

    def t_plain(self, x: Vector, y_bar: Vector, *v: Vector, examples: Examples | None = None) -> list[Any]:
        of, order = self.of, len(v)
        given: dict[Any, Any] = {("x", i): leaf for i, leaf in enumerate(x)}
        given |= {("y_bar", j): bar for j, bar in zip(of.outputs, y_bar, strict=False)}
        given |= {("x_bar", i): bar for i, bar in zip(of.finals, y_bar[len(of.outputs) :], strict=True)}
        for number, direction in enumerate(v):
            given |= {("dot", number, ("x", i)): direction[i] for i in of.inputs}
        found = of.evaluate("T", order, given, examples=examples)
        return [self.final(found, nested(order, ("x_bar", i)), given, examples) for i in of.inputs]

    def t_pull(self, y: Any, x: Vector, y_bar: Vector, *v: Vector) -> Callable[[Vector], list[Vector]]:
        def pull(w: Vector) -> list[Vector]:
            bars = iter(w)
            w = self.direction([next(bars) if i in self.of.inputs else None for i in range(len(x))], x)
            parts = [self.t(x, y_bar, (*v, w)), self.j(x, (*v, w))]
            return parts + [self.t(x, y_bar, (*v[:j], w, *v[j + 1 :])) for j in range(len(v))]

        return pull

    def t_push(self, y: Any, x: Vector, y_bar: Vector, *v: Vector) -> Callable[..., list[Any]]:
        def push(x_dot: Vector, y_bar_dot: Vector, *v_dot: Vector) -> list[Any]:
            terms = []
            if _some(x_dot):
                terms.append(self.t(x, y_bar, (*v, self.direction(x_dot, x))))
            if _some(y_bar_dot):
                terms.append(self.t(x, self.filled(y_bar_dot, y_bar), v))
            for j, d in enumerate(v_dot):
                if _some(d):
                    terms.append(self.t(x, y_bar, (*v[:j], self.direction(d, x), *v[j + 1 :])))
            return [bar for bar in _sum(terms) if bar is not None]

        return push

    # --- the engine's rule ---------------------------------------------------------------------------------------

    def roles(self, kind: str, v: Vectors) -> list[Role]:
        """What the leaves of x, ȳ (for T) and v stand for, in this order."""
        of = self.of
        leaves: list[Role] = [("x", i) for i in range(len(of.types))]
        seeds: list[Role] = [("y_bar", j) for j in of.outputs] + [("x_bar", i) for i in of.finals]
        directions: list[Role] = [("dot", number, role) for number in range(len(v)) for role in leaves]
        return leaves + (seeds if kind == "T" else []) + directions

    def apply(self, plain: Any, pull: Any, push: Any, roles: list[Role], vectors: Vectors) -> list[Any]:
        """`plain(*vectors)`, with derivatives where there are traced values among them."""
        lengths = [len(vector) for vector in vectors]

        def function(*flat: Any) -> Any:
            parts = _split(flat, lengths)
            if any(is_traced(leaf) for leaf in flat):
                return tuple(self.apply(plain, pull, push, roles, parts))
            return tuple(plain(*parts))

        def pullback(y: Any, *flat: Any) -> Any:
            inner = pull(y, *_split(flat, lengths))
            return lambda y_bar: tuple(bar for part in inner(y_bar) for bar in part)

        def pushforward(y: Any, *flat: Any) -> Any:
            inner = push(y, *_split(flat, lengths))
            return lambda *dots: tuple(inner(*_split(dots, lengths)))

        function.__name__ = self.of.source.name
        flat = tuple(leaf for vector in vectors for leaf in vector)
        level = highest_level(flat)
        if level is None:
            return list(plain(*vectors))
        if level.maps:
            size, values, held = level.examples(flat)
            if size == 0 or any(map(is_traced, values)):
                return list(level.one_by_one(function, flat, {}))
            examples = Examples(size, frozenset(role for role, h in zip(roles, held, strict=True) if h))
            return list(level.wrap(tuple(plain(*_split(values, lengths), examples=examples))))
        return list(call_rule(General(function, slice(0, None), pullback, pushforward), flat, {}))

    def direction(self, v: Vector, x: Vector) -> list[Any]:
        """A direction with zeros where there is none."""
        return [
            None if i not in self.of.inputs else self.of.zeros(("x", i), {("x", i): x[i]}) if d is None else d
            for i, d in enumerate(v)
        ]

    def filled(self, y_bar: Vector, y: Vector) -> list[Any]:
        """A cotangent with zeros where there is none."""
        return [_zeros_like(like) if bar is None else bar for bar, like in zip(y_bar, y, strict=True)]


def _zeros_like(y: Any) -> Any:
    return np.zeros(np.shape(y), complex if np.iscomplexobj(y) else float)[()]


def _split(flat: Sequence[Any], lengths: list[int]) -> Vectors:
    parts, start = [], 0
    for n in lengths:
        parts.append(flat[start : start + n])
        start += n
    return tuple(parts)


def _some(v: Vector) -> bool:
    return any(d is not None for d in v)


def _sum(terms: list[list[Any]]) -> list[Any]:
    total = terms[0]
    for term in terms[1:]:
        total = [a if b is None else b if a is None else a + b for a, b in zip(total, term, strict=True)]
    return total
