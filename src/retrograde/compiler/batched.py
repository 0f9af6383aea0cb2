"""A compiled function of all examples of a batch as one operation, for transforms and batches outside of the batch.

Its derivatives are those of one example, taken in a batch of their own: they run natively for all examples as well.
What all examples share gets the sum of their cotangents.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from retrograde.rules.table import General
from retrograde.trace.handle import is_traced
from retrograde.trace.running import run

if TYPE_CHECKING:
    from retrograde.trace.level import Level


class OfOne(NamedTuple):
    """The function of one example, with its derivatives, of leaves and tuples of them.

    Attributes:
        pull: from results, arguments and cotangents to a cotangent or None for each argument.
        push: from results, arguments and tangents to the tangents of the results.
        source: the user's function.
    """

    function: Callable[..., Any]
    pull: Callable[[Sequence[Any], Sequence[Any], Sequence[Any]], Sequence[Any]]
    push: Callable[[Sequence[Any], Sequence[Any], Sequence[Any]], Sequence[Any]]
    source: Callable[..., Any]


def of_all(one: OfOne, level: Level, held: Sequence[bool]) -> General:
    """The rule of the function of all examples.

    Args:
        level: a batch with as many examples.
        held: which arguments differ between examples.
    """
    batch = _Batch(level, one.source)

    def function(*args: Any) -> Any:
        return tuple(batch.run(one.function, (args, held)))

    function.__name__ = one.function.__name__

    def pullback(y: Sequence[Any], *args: Any) -> Any:
        every = [True] * len(y)

        def pull(y_bar: Sequence[Any]) -> tuple[Any, ...]:
            def of_one(*given: Any) -> Any:
                return one.pull(given[: len(y)], given[len(y) : -len(y)], given[-len(y) :])

            bars = batch.run(of_one, (y, every), (args, held), (y_bar, every))
            return tuple(b if b is None or h else np.sum(b, axis=0) for b, h in zip(bars, held, strict=True))

        return pull

    def pushforward(y: Sequence[Any], *args: Any) -> Any:
        def push(*dots: Any) -> Any:
            def of_one(*given: Any) -> Any:
                rest = given[len(y) :]
                return one.push(given[: len(y)], rest[: len(args)], rest[len(args) :])

            return tuple(batch.run(of_one, (y, [True] * len(y)), (args, held), (dots, held)))

        return push

    return General(function, slice(0, None), pullback, pushforward, joins_all=True)


class _Batch:
    def __init__(self, level: Level, source: Callable[..., Any]) -> None:
        self.kind, self.size = type(level), level.size  # type: ignore[attr-defined]
        self.source = source

    def run(self, function: Callable[..., Any], *parts: tuple[Sequence[Any], Sequence[bool]]) -> list[Any]:
        """The results of a function of one example, for all of them."""
        level = self.kind(self.size)  # type: ignore[call-arg]
        given = [level.wrap(x) if h else x for xs, held in parts for x, h in zip(xs, held, strict=True)]  # type: ignore[attr-defined]
        found = run(level, lambda: function(*given), self.source)
        return [None if x is None else level.each(x) for x in found]  # type: ignore[attr-defined]


MOST_ELEMENTS = 4_000_000
"""So large may an array become that holds something of one batch for each pair."""


class Pairs(NamedTuple):
    """The examples of a batch inside of another one, as one batch: each of the one with each of the other.

    Attributes:
        values: the arguments; those that differ between examples have one axis for the pairs in front.
        held: which those are.
    """

    inner: Any
    outer: Any
    values: list[Any]
    held: list[bool]

    @property
    def size(self) -> int:
        return self.inner.size * self.outer.size  # type: ignore[no-any-return]

    @classmethod
    def of(cls, inner: Any, outer: Any, values: Sequence[Any], held: Sequence[bool]) -> Pairs | None:
        """None where a third level is around, without examples, or where much would be copied."""
        size, values, of_outer = outer.examples(tuple(values))
        if size == 0 or inner.size == 0:
            return None
        pairs: list[Any] = []
        for x, in_inner, in_outer in zip(values, held, of_outer, strict=True):
            if is_traced(x):
                return None
            if in_inner or in_outer:
                x = np.asarray(x)
                x = x if in_outer else x[None]
                x = x if in_inner else x[:, None]
                rest = x.shape[2:]
                x = np.broadcast_to(x, (size, inner.size, *rest))
                if x.size > MOST_ELEMENTS:
                    return None
                x = x.reshape(size * inner.size, *rest)
            pairs.append(x)
        return cls(inner, outer, pairs, [a or b for a, b in zip(held, of_outer, strict=True)])

    def wrap(self, x: Any) -> Any:
        return self.inner.wrap(self.outer.wrap(x.reshape(self.outer.size, self.inner.size, *x.shape[1:])))


__all__ = ["OfOne", "Pairs", "of_all"]
