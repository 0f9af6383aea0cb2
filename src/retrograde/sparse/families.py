"""How each function carries dependence from its arguments to its result: one entry a function, by family.

A family takes a `Case`, one call of a function, and returns for the result, element by element, the number of the set
that it depends on. Elementwise functions need no entry (see level.py), nor do those that are composed of others. A
function without an entry is taken to be dense: every element of the result depends on every element of the arguments.
That is never too small.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from numpy._core import umath

from retrograde.originals import np
from retrograde.rules.table import WithArguments
from retrograde.sparse.sets import Numbers, Sets
from retrograde.trace.call import Binding
from retrograde.trace.handle import plain


@dataclass(frozen=True, slots=True)
class Case:
    """One call of a function with a rule.

    Attributes:
        sets: of the run.
        binding: the rule, the result, and all arguments.
        numbers: for each differentiable argument those of its elements (a list of arrays where the argument is a
            sequence), None where it is a constant.
        exact: whether the pattern is that of this very run, or of every run.
        zeros_hold: whether the zeros of constants are zeros in every run that counts.
    """

    sets: Sets
    binding: Binding
    numbers: tuple[Any, ...]
    exact: bool
    zeros_hold: bool = True

    @property
    def y(self) -> Any:
        return plain(self.binding.y)

    @property
    def x(self) -> Any:
        """The first differentiable argument."""
        return self.binding.args[self.binding.positions[0]]

    def argument(self, name: str, default: Any = None) -> Any:
        """An argument by the name that the rule's formula has for it."""
        signature = _signature(self.binding.rule)
        bound = signature.bind(None, *self.binding.args, **self.binding.kwargs)
        bound.apply_defaults()
        return bound.arguments.get(name, default)

    def filled(self, slot: int) -> Any:
        """The numbers of an argument, all 0 where it is a constant."""
        if self.numbers[slot] is not None:
            return self.numbers[slot]
        return map_tree(
            lambda x: np.zeros(np.shape(plain(x)), int)[()], self.binding.args[self.binding.positions[slot]]
        )


Family = Callable[[Case], Any]

SELECTIONS = frozenset({np.maximum, np.minimum, np.fmax, np.fmin, umath.clip})
"""Elementwise functions that choose between their arguments: in one run an element depends on the chosen ones only."""
RECORDS = (np.maximum.accumulate, np.minimum.accumulate, np.fmax.accumulate, np.fmin.accumulate)
"""The largest or smallest so far."""


@functools.cache
def _signature(rule: WithArguments) -> inspect.Signature:
    return inspect.signature(rule.formula)


def map_tree(function: Callable[[Any], Any], tree: Any) -> Any:
    if tree is None:
        return None
    return [map_tree(function, item) for item in tree] if isinstance(tree, list | tuple) else function(tree)


def leaves(tree: Any) -> Iterator[Any]:
    """What nested sequences hold, None left out."""
    if isinstance(tree, list | tuple):
        for item in tree:
            yield from leaves(item)
    elif tree is not None:
        yield tree


# --- families ----------------------------------------------------------------------------------------------------


def dense(case: Case) -> Any:
    """Every element of every output depends on every element of the differentiable arguments."""
    members = [np.ravel(numbers) for numbers in leaves(case.numbers)]
    whole = _union_of_all(case.sets, np.concatenate(members))
    return _outputs(case, lambda y: np.full(np.shape(y), whole)[()])


def moved(case: Case) -> Any:
    """The elements of the arguments in other places, or several times, and constants: the function moves the numbers.

    Functions of several outputs included. Exact.
    """
    args = list(case.binding.args)
    for slot, position in enumerate(case.binding.positions):
        args[position] = case.filled(slot)
    return map_tree(
        lambda numbers: np.asarray(numbers).astype(int)[()], case.binding.rule.function(*args, **case.binding.kwargs)
    )


def same(case: Case) -> Any:
    """Each element of (each output of) the result depends on the element in its place. Exact."""
    return _outputs(case, lambda y: case.numbers[0])


def none(case: Case) -> Any:
    """Constant between its jumps. Exact."""
    return _outputs(case, lambda y: np.zeros(np.shape(y), int)[()])


def imaginary(case: Case) -> Any:
    """Zero for real numbers. Exact."""
    return same(case) if np.iscomplexobj(plain(case.x)) else none(case)


def signs(case: Case) -> Any:
    """Constant for real numbers; for complex ones the direction. Exact."""
    return same(case) if np.iscomplexobj(case.y) else none(case)


def aligned(case: Case) -> Any:
    """Elementwise functions of several arguments and outputs: all broadcast against each other. Exact."""
    united: Numbers = 0
    for numbers in case.numbers:
        if numbers is not None:
            united = case.sets.union(united, numbers)
    shape = np.shape(case.y[0] if isinstance(case.y, tuple | list) else case.y)
    try:
        united = np.broadcast_to(united, shape)
    except ValueError:
        return dense(case)
    return _outputs(case, lambda y: united)


def along(axes: tuple[int, ...] | None = None) -> Family:
    """Each element of the result depends on all elements of one line (or plane …) of the argument. Exact for sums.

    Args:
        axes: for functions that have no argument `axis`.
    """

    def reduced(case: Case) -> Any:
        numbers = case.numbers[0]
        if len(case.numbers) > 1:  # weights
            weights = case.numbers[1]
            numbers = weights if numbers is None else numbers if weights is None else case.sets.union(numbers, weights)
            numbers = np.broadcast_to(numbers, np.broadcast_shapes(np.shape(numbers), np.shape(plain(case.x))))
        where = case.argument("where", True)
        numbers = numbers if where is True else np.where(where, numbers, 0)
        united = _reduced(case.sets, numbers, axes or case.argument("axis"))
        return _outputs(case, lambda y: np.reshape(united, np.shape(y))[()])

    return reduced


def extreme(case: Case) -> Any:
    """The largest or smallest along an axis: in this run those that attain it, in every run any. Exact."""
    if not case.exact:
        return along()(case)
    numbers, axis, y = case.numbers[0], case.argument("axis"), case.y
    where = case.argument("where", True)
    if not case.argument("keepdims"):
        y = np.expand_dims(y, _axes(axis, np.ndim(numbers)))
    attained = _equal(plain(case.x), y) & where
    return np.reshape(_reduced(case.sets, np.where(attained, numbers, 0), axis), np.shape(case.y))[()]


def spread(case: Case) -> Any:
    """Every element of the result depends on the whole line of the argument, along an axis, that it lies in.

    Exact for transforms of lines.
    """
    numbers, axis = case.numbers[0], case.argument("axis")
    length = case.argument("n")
    if length is not None:
        numbers = np.take(numbers, np.arange(min(np.shape(numbers)[axis], length)), axis)
    lines = _reduced(case.sets, numbers, axis)
    if axis is None:
        return np.full(np.shape(case.y), lines)[()]
    return np.broadcast_to(np.expand_dims(lines, _axes(axis, np.ndim(numbers))), np.shape(case.y))


def scanned(case: Case) -> Any:
    """Each element of the result depends on the elements up to its place along an axis. Exact."""
    numbers, axis = np.asarray(case.numbers[0]), case.argument("axis")
    if axis is None:
        numbers, axis = np.ravel(numbers), 0
    begins: Any = False
    if case.binding.rule.function in RECORDS and case.exact:
        # Until a new extreme is reached, those that tie for the old one share it.
        x, y = plain(case.x), case.y
        numbers = np.where(_equal(x, y), numbers, 0)
        y = np.moveaxis(y, axis, -1)
        begins = ~_equal(y, np.concatenate([y[..., :1], y[..., :-1]], axis=-1))
    united = np.moveaxis(case.sets.running(np.moveaxis(numbers, axis, -1), begins), -1, axis)
    if case.argument("include_initial"):
        united = np.concatenate([np.zeros_like(np.take(united, [], axis), shape=_with_one(united, axis)), united], axis)
    return united


def neighbours(case: Case) -> Any:
    """Differences of successive elements along an axis. Exact."""
    numbers, axis = np.moveaxis(case.numbers[0], case.argument("axis"), 0), case.argument("axis")
    return np.moveaxis(case.sets.union(numbers[1:], numbers[:-1]), 0, axis)


def neighbours_back(case: Case) -> Any:
    """The adjoint of those: there is one element more, and what would stand outside of the argument is zero. Exact."""
    numbers, axis = np.moveaxis(case.numbers[0], case.argument("axis"), 0), case.argument("axis")
    outside = np.zeros_like(numbers, shape=(1, *numbers.shape[1:]))
    ends = np.concatenate([outside, numbers, outside])
    return np.moveaxis(case.sets.union(ends[1:], ends[:-1]), 0, axis)


def segments(case: Case) -> Any:
    """`reduceat`: one element from each index to the next one, or the indexed one alone. Exact."""
    numbers, axis = np.moveaxis(case.numbers[0], case.argument("axis"), 0), case.argument("axis")
    indices = np.asarray(case.argument("indices"))
    ends = np.append(indices[1:], len(numbers))
    parts = [np.arange(i, max(i + 1, end)) for i, end in zip(indices, ends, strict=True)]
    groups = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    rest = math.prod(numbers.shape[1:])
    members = numbers.reshape(len(numbers), rest)[np.concatenate([*parts, np.zeros(0, int)])]
    groups = groups[:, None] * rest + np.arange(rest)
    united = case.sets.grouped(members, groups, len(parts) * rest)
    return np.moveaxis(united.reshape(len(parts), *numbers.shape[1:]), 0, axis)


def core(ins: tuple[int, ...], outs: tuple[int, ...]) -> Family:
    """Linear algebra on stacks: within each member of the stack everything depends on everything.

    Args:
        ins: how many axes, the last ones, of each argument make one member.
        outs: the same for each output.
    """

    def stacked(case: Case) -> Any:
        united: Numbers = 0
        for numbers, n in zip(case.numbers, ins, strict=False):
            if numbers is not None:
                united = case.sets.union(united, _reduced(case.sets, numbers, range(-n, 0)))
        axes = iter(outs)
        return _outputs(case, lambda y: _behind(united, next(axes), np.shape(y)))

    return stacked


def factored(case: Case) -> Any:
    """`qr`, of which a mode gives the one factor or both."""
    return core((2,), (2, 2))(case)


def solved(case: Case) -> Any:
    """`solve(a, b)`: each right-hand side by itself. One of one axis is one vector. Exact."""
    matrices, sides = case.numbers
    united: Numbers = 0 if matrices is None else _reduced(case.sets, matrices, (-2, -1))
    if np.ndim(plain(case.argument("b"))) == 1:
        united = united if sides is None else case.sets.union(united, _reduced(case.sets, sides, -1))
        return _behind(united, 1, np.shape(case.y))
    united = np.expand_dims(united, -1)
    united = united if sides is None else case.sets.union(united, _reduced(case.sets, sides, -2))
    return np.broadcast_to(np.expand_dims(united, -2), np.shape(case.y))


def traced_diagonal(case: Case) -> Any:
    """Sums along a diagonal. Exact."""
    ndim = np.ndim(plain(case.x))
    axes = case.argument("axis1", ndim - 2), case.argument("axis2", ndim - 1)
    diagonals = np.diagonal(case.numbers[0], case.argument("offset"), *axes)
    return _reduced(case.sets, diagonals, -1)


def placed(case: Case, places: Any, shape: tuple[int, ...]) -> Any:
    """Zeros of `shape` to which each element is added at one of the `places`."""
    numbers = np.broadcast_to(case.numbers[0], np.shape(places))
    return case.sets.grouped(numbers, places, math.prod(shape)).reshape(shape)


def scattered(case: Case) -> Any:
    """Exact."""
    shape = case.argument("shape")
    return placed(case, np.arange(math.prod(shape)).reshape(shape)[case.argument("key")], shape)


def folded(case: Case) -> Any:
    """Exact."""
    shape = case.argument("shape")
    windows = np.lib.stride_tricks.sliding_window_view(
        np.arange(math.prod(shape)).reshape(shape), case.argument("window_shape"), case.argument("axis")
    )
    return placed(case, windows, shape)


def counted(case: Case) -> Any:
    """Exact."""
    return placed(case, np.asarray(case.argument("x"), int), np.shape(case.y))


def chosen(case: Case) -> Any:
    """A choice between arguments: in this run the one that was chosen, in every run any. Exact."""
    if case.exact:
        return moved(case)
    united: Numbers = 0
    # np.choose has one argument of all choices, in a sequence or along the first axis.
    for numbers in case.numbers if len(case.numbers) > 1 else case.numbers[0]:
        united = united if numbers is None else case.sets.union(united, numbers)
    return np.broadcast_to(united, np.shape(case.y))


def ordered(case: Case) -> Any:
    """Sorted along an axis: in this run the elements in their order, in every run any of the line. Exact."""
    axis = case.argument("axis")
    if not case.exact:
        return spread(case)
    x, numbers = np.asarray(plain(case.x)), case.numbers[0]
    if axis is None:
        x, numbers, axis = x.reshape(-1), np.ravel(numbers), 0
    return np.take_along_axis(numbers, np.argsort(x, axis, kind="stable"), axis)


def picked(case: Case) -> Any:
    """Elements at places that the values have decided: in this run those, in every run any. Exact."""
    return moved(case) if case.exact else dense(case)


def statistic(case: Case) -> Any:
    """Medians and quantiles: any of the line."""
    united = _reduced(case.sets, case.numbers[0], case.argument("axis"))
    places = np.ndim(case.argument("q", 0.5))
    return np.broadcast_to(united.reshape(np.shape(case.y)[places:]), np.shape(case.y))[()]


def between(case: Case) -> Any:
    """`linspace`, `geomspace`: everything between two values depends on both."""
    axis = case.argument("axis")
    united = case.sets.union(*(case.filled(slot) for slot in range(2)))
    united = np.broadcast_to(united, np.broadcast_shapes(*(np.shape(plain(x)) for x in case.binding.args[:2])))
    if isinstance(case.y, tuple):
        return [np.broadcast_to(np.expand_dims(united, axis), np.shape(case.y[0])), united]
    return np.broadcast_to(np.expand_dims(united, axis), np.shape(case.y))


# --- words that families share -----------------------------------------------------------------------------------


def _outputs(case: Case, numbers_of: Callable[[Any], Any]) -> Any:
    """The numbers of the result, or of each of its outputs."""
    y = case.binding.y
    return [numbers_of(part) for part in y] if isinstance(y, tuple | list) else numbers_of(y)


def _axes(axis: Any, ndim: int) -> tuple[int, ...]:
    if axis is None or not ndim:  # a number has an axis 0 to NumPy's reductions
        return tuple(range(ndim))
    return tuple(i % ndim for i in (axis if isinstance(axis, tuple | list | range) else (axis,)))


def _reduced(sets: Sets, numbers: Any, axis: Any) -> Any:
    """The union along axes, which go."""
    shape = np.shape(numbers)
    axes = _axes(axis, len(shape))
    rest = tuple(n for i, n in enumerate(shape) if i not in axes)
    ones = tuple(1 if i in axes else n for i, n in enumerate(shape))
    groups = np.broadcast_to(np.arange(math.prod(rest)).reshape(ones), shape)
    return sets.grouped(numbers, groups, math.prod(rest)).reshape(rest)


def _behind(numbers: Any, n: int, shape: tuple[int, ...]) -> Any:
    """Repeated along n axes more, behind those that there are."""
    return np.broadcast_to(np.reshape(numbers, np.shape(numbers) + (1,) * n), shape)[()]


def _union_of_all(sets: Sets, numbers: Any) -> Any:
    return sets.grouped(numbers, np.zeros(len(numbers), int), 1)[0]


def _equal(x: Any, y: Any) -> Any:
    """Equal, or both no numbers."""
    return (x == y) | ((x != x) & (y != y))


def _with_one(a: Any, axis: int) -> tuple[int, ...]:
    shape = list(a.shape)
    shape[axis] = 1
    return tuple(shape)
