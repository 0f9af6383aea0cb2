"""The level of Taylor mode: what it knows of a value is its power series.

An operation of a program is carried out on whole series at once. What its rule says of the derivative, y′ = p·a′ or
y′ = push(a′), is turned into the next coefficient of y by running the formula once on series whose coefficients are
computed as they are asked for: coefficient k of y needs those of p up to k - 1 only, which need no more of y itself. So
it ends, though p may be made of y, and of functions whose derivatives lead on without end (see docs/decisions).
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator
from hashlib import blake2b
from sys import getrefcount
from typing import Any

from retrograde.originals import np
from retrograde.rules.table import Elementwise, General, Linear, Multilinear
from retrograde.taylor.at_once import at_once
from retrograde.taylor.recurrences import ELEMENTARY, over
from retrograde.taylor.rules import AFFINE, MULTILINEAR, parameters_of
from retrograde.taylor.series import Series, added, convolved, scaled, workshop
from retrograde.trace.call import Binding, Operand, distribute
from retrograde.trace.constant import constant, released
from retrograde.trace.handle import HANDLES, Traced, like_of, make
from retrograde.trace.level import Level, Node, set_aside, some_are_asked
from retrograde.trace.writing import Path, follow, write, write_part


class TaylorLevel(Level):
    """A level whose values carry the coefficients of their power series up to `order`."""

    __slots__ = ("order",)

    def __init__(self, order: int) -> None:
        super().__init__()
        self.order = order

    def follow(self, y: Any, node: Node) -> Any:
        aside = set_aside(self, ()) if some_are_asked() else None
        if aside is not None:
            return aside(y)
        return make(y, self.carried_node(y, node), self)

    def apply(self, binding: Binding, active: list[Operand]) -> Any:
        self.number()  # raises, once the transform has ended
        y = binding.y
        aside = set_aside(self, ()) if some_are_asked() else None
        if aside is not None:
            return aside(y)
        repeatable = getattr(binding.rule, "repeatable", True)
        series = self.carried(lambda: self.series_of_call(binding, active), repeatable)
        if not isinstance(y, tuple | list):
            return make(y, series, self)
        return distribute(y, lambda i, value: make(value, series[i], self))

    def carried_node(self, y: Any, node: Node) -> Series:
        """The series of a node. Most are had at once; what cannot be is carried out as any other operation."""
        return at_once(y, node, self.order) or self.carried(lambda: self.series_of_node(y, node), True)

    def carried(self, work: Callable[[], Any], repeatable: bool) -> Any:
        """The series that `work` defines, with all their coefficients; a user's own rule is not `repeatable`."""
        # A partial may well be infinite where its tangent is zero; that is no news to the user.
        with np.errstate(all="ignore"):
            if repeatable:
                with workshop(careful=False):
                    series = completed(work())
                parts = [series] if type(series) is Series else series
                if not any(part is not None and part.shows_nan() for part in parts):
                    return series
            with workshop(careful=True):
                return completed(work())

    # --- elementwise functions and reads ---

    def series_of_node(self, y: Any, node: Node) -> Series:
        op = node[1]
        if op.rule is None:
            return self.read(y, node)
        operands: list[Any] = [None] * len(op.active)
        places = [i for i, is_active in enumerate(op.active) if is_active]
        for i, link in zip(places, node[2:], strict=False):
            operands[i] = link
        values = dict(zip(op.kept, node[2 + len(places) :], strict=False))
        for i, name in enumerate("abc"[: len(operands)]):
            if operands[i] is None:
                operands[i] = values.get(name)
        return self.elementwise(y, op.rule, op.active, operands)

    def elementwise(self, y: Any, rule: Elementwise, active: tuple[bool, ...], operands: list[Any]) -> Series:
        """The series of an elementwise function; `operands` are series where they are `active`."""
        series = Series(y, self.order)
        if not self.order:
            return series
        recurrence = ELEMENTARY.get(rule.function)
        step = recurrence(series, *operands) if recurrence is not None else None
        if type(step) is Series:
            return step
        if step is not None:
            series.step = step  # type: ignore[assignment]
            return series
        terms = self.terms(y, series, rule, active, operands)
        series.step = lambda k: step_of_terms(terms, k)
        return series

    def terms(
        self, y: Any, series: Series, rule: Elementwise, active: tuple[bool, ...], operands: list[Any]
    ) -> list[tuple[Any, bool, Series]]:
        """For each active operand its partial derivative, whether that is a series, and the operand."""
        inner = InnerLevel.of(self)
        values = {"y": make(y, series, inner)}
        for name, operand in zip("abc", operands, strict=False):
            values[name] = make(operand.first, operand, inner) if type(operand) is Series else operand
        terms = []
        for partial, is_active, operand in zip(rule.partials, active, operands, strict=True):
            if is_active:
                p = partial(*(values[name] for name in parameters_of(partial))) if callable(partial) else partial
                p = inner.released(p)
                terms.append((p, type(p) is Series, operand))
        return terms

    def read(self, y: Any, node: Node) -> Series:
        """The series of a node that is linear in its one link: a read."""
        op, x = node[1], node[2]
        series = Series(y, self.order)

        def step(k: int) -> Any:
            c = x.at(k)
            return None if c is None else op.push((*node[:2], c, *node[3:]), y)

        series.step = step
        return series

    # --- all other rules ---

    def series_of_call(self, binding: Binding, active: list[Operand]) -> Any:
        """The series of the result, or one for each output."""
        y, rule = binding.y, binding.rule
        links = [operand.traced.link for operand in active]
        if rule.function in MULTILINEAR or (isinstance(rule, Multilinear) and len(active) > 1):
            return Series(y, self.order, lambda k: products(binding, active, links, k))
        if isinstance(rule, Linear) or rule.function in AFFINE:
            return self.mapped(binding, active, links)
        return self.pushed(binding, active, links)

    def mapped(self, binding: Binding, active: list[Operand], links: list[Series]) -> Any:
        """Of a linear function: the function of each coefficient."""

        rule = binding.rule
        push = rule.pushforward(binding.y, *binding.args, **binding.kwargs) if isinstance(rule, General) else None

        @functools.cache
        def coefficient(k: int) -> Any:
            if all(x.at(k) is None for x in links):
                return None
            dots = binding.tangents(active, [x.value(k) for x in links])
            return binding.push(dots) if push is None else push(*dots)

        return self.outputs(binding.y, coefficient)

    def pushed(self, binding: Binding, active: list[Operand], links: list[Series]) -> Any:
        """Of any function: k·yₖ is coefficient k - 1 of the pushforward of the operands' derivatives."""
        inner = InnerLevel.of(self)

        @functools.cache
        def tangent() -> Any:
            args = binding.args
            for operand, x in zip(active, links, strict=True):
                args = binding.replaced(args, operand, make(x.first, x, inner))
            y = binding.y
            if isinstance(y, tuple | list):
                y = distribute(y, lambda i, value: make(value, series[i], inner))
            else:
                y = make(y, series, inner)
            lifted = Binding(binding.rule, y, args, binding.kwargs, binding.positions)
            dots = [make(x.slope.first, x.slope, inner) for x in links]
            y_dot = lifted.push(lifted.tangents(active, dots))
            return (
                [inner.released(dot) for dot in y_dot] if isinstance(binding.y, tuple | list) else inner.released(y_dot)
            )

        def coefficient(k: int) -> Any:
            y_dot = tangent()
            return [part(dot, k) for dot in y_dot] if isinstance(y_dot, list) else part(y_dot, k)

        def part(y_dot: Any, k: int) -> Any:
            if type(y_dot) is Series:
                return over(y_dot.at(k - 1), k)
            return y_dot if k == 1 else None

        series = self.outputs(binding.y, coefficient)
        return series

    def outputs(self, y: Any, coefficient: Callable[[int], Any]) -> Any:
        """The series of a result, or of each of its outputs, from a function that gives the coefficients of all."""
        if not isinstance(y, tuple | list):
            return Series(y, self.order, coefficient)

        def output(i: int) -> Series:
            def step(k: int) -> Any:
                whole = coefficient(k)
                return None if whole is None else whole[i]

            return Series(y[i], self.order, step)

        return [output(i) if getattr(part, "dtype", np.dtype(float)).kind in "fc" else None for i, part in enumerate(y)]

    # --- what writes and views need (see trace/writing.py) ---

    def still(self, x: Any) -> Series:
        """The series of a constant."""
        return Series(x, self.order, lambda k: None).complete()

    def part(self, series: Series, path: Path) -> Series:
        """The series of the view at the end of a path."""

        def step(k: int) -> Any:
            c = series.at(k)
            return None if c is None else follow(c, path)

        part = Series(follow(series.first, path), self.order, step)
        return part.complete() if series.known == self.order else part

    def write_link(self, x: Traced, path: Path, key: Any, value: Any) -> None:
        here = type(value) in HANDLES and value.level is self
        rows = value.link.c if here else [value, *(None,) * self.order]
        is_free = _links(x) == _ALONE and _buffers(x.link) == _OWN
        series, x.link = x.link, None
        try:
            if is_free:
                series.forget()
            else:
                series = series.copy()
            if series.is_stacked and (type(rows) is np.ndarray or type(rows[0]) not in HANDLES):
                for k in range(self.order + 1):
                    row = rows[k]
                    write_part(series.c, (operator.itemgetter(k), *path), key, 0.0 if row is None else row)
            else:
                self.write_rows(series, path, key, rows)
        finally:
            x.link = series

    def write_rows(self, series: Series, path: Path, key: Any, rows: Any) -> None:
        """Write coefficients of which some are traced, each by itself."""
        if series.is_stacked:
            series.unstack()
        c = series.c
        for k in range(self.order + 1):
            if c[k] is None:
                if rows[k] is None:
                    continue
                c[k] = np.zeros(*like_of(c[0]))
            handle = c[k].reading() if type(c[k]) in HANDLES else constant(np.asarray(c[k]))
            c[k] = None
            try:
                write(handle, path, key, 0.0 if rows[k] is None else rows[k])
            finally:
                c[k] = released(handle)

    def shows_nan(self, series: Series) -> bool:
        return series.shows_nan()


# The reference counts of what nobody else holds, as this interpreter counts them (see trace/writing.py).


def _links(x: Traced) -> int:
    return getrefcount(x.link)


def _buffers(series: Series) -> int:
    return getrefcount(series.c)


def _calibrate() -> tuple[int, int]:
    x = make(0.0, Series(0.0, 0), None)  # type: ignore[arg-type]
    return _links(x), _buffers(x.link)


_ALONE, _OWN = _calibrate()


class InnerLevel(TaylorLevel):
    """The level on which formulas are run: its series are computed as far as they are asked for.

    A function that is applied to the same operands twice is one series, since the derivatives of special functions lead
    to each other: those of Bessel functions would be 2ᵏ series at order k instead of k²/2.
    """

    __slots__ = ("shared",)

    def __init__(self, order: int) -> None:
        super().__init__(order)
        self.shared: dict[Any, tuple[Any, Any]] = {}

    @staticmethod
    def of(level: TaylorLevel) -> InnerLevel:
        return level if isinstance(level, InnerLevel) else InnerLevel(level.order)

    def carried_node(self, y: Any, node: Node) -> Series:
        return self.series_of_node(y, node)

    def carried(self, work: Callable[[], Any], repeatable: bool) -> Any:
        return work()

    def released(self, x: Any) -> Any:
        """A series of this level, or a constant."""
        return x.link if type(x) in HANDLES and x.level is self else x

    def elementwise(self, y: Any, rule: Elementwise, active: tuple[bool, ...], operands: list[Any]) -> Series:
        # What the rule does not keep of the other operands shows in the result.
        key = [*operands, y] if any(x is None for x in operands) else operands
        return self.once((rule, active), key, lambda: self.one_elementwise(y, rule, active, operands))

    def one_elementwise(self, y: Any, rule: Elementwise, active: tuple[bool, ...], operands: list[Any]) -> Series:
        series = Series(y, self.order)
        recurrence = ELEMENTARY.get(rule.function)
        step = recurrence(series, *operands) if recurrence is not None else None
        if type(step) is Series:
            return step

        @functools.cache
        def terms() -> list[tuple[Any, bool, Series]]:
            return self.terms(y, series, rule, active, operands)

        series.step = step or (lambda k: step_of_terms(terms(), k))  # type: ignore[assignment]
        return series

    def series_of_call(self, binding: Binding, active: list[Operand]) -> Any:
        operands = [*self.flat(binding.args, active), *binding.kwargs.items()]
        return self.once(binding.rule, operands, lambda: super(InnerLevel, self).series_of_call(binding, active))

    def flat(self, args: tuple[Any, ...], active: list[Operand]) -> Iterator[Any]:
        for i, operand in enumerate(active):
            yield from (i, operand.slot, operand.path, operand.traced.link)
        yield args

    def once(self, function: Any, operands: list[Any], compute: Callable[[], Any]) -> Any:
        """What `compute` gives, computed once for the same function of the same operands."""
        key = (function, *map(identity, operands))
        found = self.shared.get(key)
        if found is None:
            # The operands are kept, so that no other object takes their identity.
            found = self.shared[key] = compute(), operands
        return found[0]


def identity(x: Any) -> Any:
    """What tells an operand from others: the value of a constant, and the series itself."""
    kind = type(x)
    if kind is np.ndarray:
        contents = x.tobytes()
        return x.shape, x.dtype.str, contents if len(contents) <= _SMALL else blake2b(contents).digest()
    if kind is tuple or kind is list:
        return (kind, *map(identity, x))
    if kind is Traced or kind is Series:
        return id(x)
    # Numbers by their text, since 0.0 is not -0.0; of a NaN it says what it is.
    return (kind, repr(x)) if isinstance(x, int | float | complex | np.generic) else id(x)


_SMALL = 512  # bytes


# --- steps ---------------------------------------------------------------------------------------------------------


def completed(series: Any) -> Any:
    """One series, or several, with all coefficients."""
    if type(series) is Series:
        return series.complete()
    return [None if part is None else part.complete() for part in series]


def step_of_terms(terms: list[tuple[Any, bool, Series]], k: int) -> Any:
    """Coefficient k of ∫ Σ p·a′."""
    total = None
    for p, is_series, x in terms:
        term = over(convolved(x.slope, p, 0, k - 1, k - 1), k) if is_series else scaled(x.at(k), p)
        total = added(total, term)
    return total


def products(binding: Binding, active: list[Operand], links: list[Series], k: int) -> Any:
    """Coefficient k of a function that is linear in each operand: the sum over all k₁ + k₂ + … = k."""
    total = None
    for numbers in compositions(k, len(links)):
        if any(x.is_zero(j) and j >= x.solid for x, j in zip(links, numbers, strict=True)):
            continue
        args = binding.args
        for operand, x, j in zip(active, links, numbers, strict=True):
            args = binding.replaced(args, operand, x.value(j))
        total = added(total, binding.rule.function(*args, **binding.kwargs))
    return total


@functools.cache
def compositions(k: int, parts: int) -> tuple[tuple[int, ...], ...]:
    """All tuples of `parts` numbers that sum to k."""
    if parts == 1:
        return ((k,),)
    return tuple((j, *rest) for j in range(k + 1) for rest in compositions(k - j, parts - 1))
