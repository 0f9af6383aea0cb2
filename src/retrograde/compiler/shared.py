"""Results of a compiled function that are views of its arguments, or share memory with each other, as in NumPy.

A derivative program computes each result by itself. Inside of a transform, what is written into `x` must be seen in the
result `x[1:]`, and the other way round. So where a result may lie in an argument (lower/shared.py says when), the
function itself is run on plain arrays and asked where its results are. They are made anew of the argument's traced
value then, by slices and other shapes, which are views in every mode.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Any, NamedTuple

from numpy import (  # NumPy's own, whatever transform is running
    arange,
    array,
    broadcast_to,
    concatenate,
    empty,
    may_share_memory,
    ndarray,
    ravel,
    uint8,
    zeros,
)
from numpy.lib.array_utils import byte_bounds
from numpy.lib.stride_tricks import as_strided

from retrograde.errors import ConversionError
from retrograde.trace.call import highest_level
from retrograde.trace.handle import plain


class Place(NamedTuple):
    """Where an array lies in the memory of another one; strides are in elements of that, and 0 for axes of length 1.

    Attributes:
        field: "real" or "imag", if it lies in these of complex numbers.
        whole, sizes: the shape and the strides of the array that has the memory.
        start: how many elements its first is in front of ours.
        shape, strides: our own.
    """

    field: str
    whole: tuple[int, ...]
    sizes: tuple[int, ...]
    start: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def is_whole(self) -> bool:
        return (self.start, self.shape, self.strides) == (0, self.whole, self.sizes)


Owner = tuple[str, Any]
"""("x", i) for the leaf i of the arguments, ("y", numbers) for memory that some results have in common."""

Places = dict[int, tuple[Owner, Place]]


# --- found -----------------------------------------------------------------------------------------------------------


def places(
    run: Callable[[list[Any]], Sequence[Any]], leaves: Sequence[Any], written: Sequence[int], asked: frozenset[int]
) -> Places:
    """Where those of some results lie that share memory.

    Args:
        run: gives the leaves of the results as the function itself makes them of plain leaves of its arguments.
        leaves: values of any transform. Results that are at different places for the examples of a batch are copies.
        written: the leaves that the function writes into.
        asked: the numbers of the results.
    """
    common: Places | None = None
    for _, given in plain_calls(leaves, written):
        found = _found(run(given), given, sorted(asked))
        common = found if common is None else {j: where for j, where in common.items() if found.get(j) == where}
    found = common or {}
    # Of results that share memory with each other all are copies, if one is at different places.
    return {
        j: (owner, place) for j, (owner, place) in found.items() if owner[0] == "x" or found.keys() >= set(owner[1])
    }


def plain_calls(leaves: Sequence[Any], written: Sequence[int]) -> Iterator[tuple[list[Any], list[Any]]]:
    """For each example the plain leaves, and what the function may be called with in their place, and write into."""
    for values in _examples([plain(x) for x in leaves]):
        yield values, [_by_itself(i, values, i in written) for i in range(len(values))]


def _examples(values: list[Any]) -> Iterator[list[Any]]:
    """Plain values: those themselves, or those of each example of all batches."""
    level = highest_level(values)
    if level is None:
        yield values
        return
    size, values, held = level.examples(tuple(values))
    for n in range(size):
        yield from _examples([plain(x[n]) if is_held else x for x, is_held in zip(values, held, strict=True)])


def _by_itself(i: int, values: Sequence[Any], is_written: bool) -> Any:
    """Value `i`; of an array one with the same gaps in memory of its own, that the function may write into."""
    x = values[i]
    if not isinstance(x, ndarray):
        return x
    others = (y for j, y in enumerate(values) if j != i and isinstance(y, ndarray))
    if not is_written and x.flags.writeable and not any(may_share_memory(x, y) for y in others):
        return x
    repeats = any(s == 0 and n > 1 for n, s in zip(x.shape, x.strides, strict=True))
    if x.flags.c_contiguous or x.flags.f_contiguous or repeats:
        return array(x, order="K")
    low, high = byte_bounds(x)
    new = ndarray(x.shape, x.dtype, empty(high - low, uint8), _address(x) - low, x.strides)
    new[...] = x
    return new


def _found(results: Sequence[Any], leaves: Sequence[Any], asked: Sequence[int]) -> Places:
    found: Places = {}
    rest: list[int] = []
    for j in asked:
        owner = next((i for i, x in enumerate(leaves) if isinstance(x, ndarray) and _meet(x, results[j])), None)
        if owner is None:
            rest.append(j)
        else:
            x = leaves[owner]
            found[j] = ("x", owner), place_in(_address(x), x.dtype, x.shape, _strides(x, x.itemsize), results[j])
    while rest:
        group = _meeting(results, rest)
        rest = [j for j in rest if j not in group]
        if len(group) > 1:
            found |= _in_common(results, group)
    return found


def _meet(x: Any, y: Any) -> bool:
    return y.size > 0 and may_share_memory(x, y)


def _meeting(results: Sequence[Any], rest: Sequence[int]) -> list[int]:
    """The first of some results, with those that share its memory, directly or not."""
    group = [rest[0]]
    for j in group:  # which grows
        group += [k for k in rest if k not in group and _meet(results[j], results[k])]
    return sorted(group)


def _in_common(results: Sequence[Any], group: list[int]) -> Places:
    """Places of results in the memory that they have in common: in one of them, or in all of it."""
    bounds = {j: byte_bounds(results[j]) for j in group}
    low, high = min(low for low, _ in bounds.values()), max(high for _, high in bounds.values())
    dtypes = {results[j].dtype for j in group}
    owner = "y", tuple(group)
    for j, x in ((j, results[j]) for j in group):
        if bounds[j] == (low, high) and (len(dtypes) == 1 or x.dtype.kind == "c"):
            sizes = _strides(x, x.itemsize)
            return {k: (owner, place_in(_address(x), x.dtype, x.shape, sizes, results[k])) for k in group}
    if len(dtypes) > 1:
        raise ConversionError(
            "results of a compiled function share memory, and some are parts of complex numbers that none of them has",
            "copies of them as results",
        )
    (dtype,) = dtypes
    count = (high - low) // dtype.itemsize
    return {j: (owner, place_in(low, dtype, (count,), (1,), results[j])) for j in group}


def place_in(first: int, dtype: Any, whole: tuple[int, ...], sizes: tuple[int, ...], y: Any) -> Place:
    """Where `y` lies in an array whose first element is at some address, and may be complex where `y` is real."""
    start, within = divmod(_address(y) - first, dtype.itemsize)
    field = "" if y.dtype == dtype else "imag" if within else "real"
    return Place(field, whole, sizes, start, y.shape, _strides(y, dtype.itemsize))


def _strides(x: Any, itemsize: int) -> tuple[int, ...]:
    """In numbers of elements, 0 for axes of length 1."""
    return tuple(0 if n == 1 else s // itemsize for n, s in zip(x.shape, x.strides, strict=True))


def _address(x: Any) -> int:
    return x.__array_interface__["data"][0]  # type: ignore[no-any-return]


# --- made ------------------------------------------------------------------------------------------------------------


def views(found: Places, leaves: Sequence[Any], results: dict[int, Any]) -> dict[int, Any]:
    """The results that share memory, as views.

    Args:
        leaves, results: values of any transform; the results may be copies.
    """
    made: dict[int, Any] = {}
    common: dict[Owner, Any] = {}
    for j, (owner, place) in found.items():
        if owner[0] == "x":
            memory = leaves[owner[1]]
        else:
            if owner not in common:
                common[owner] = _joined({k: found[k][1] for k in owner[1]}, results)
            memory = common[owner]
        made[j] = part(memory, place)
    return made


def _joined(group: dict[int, Place], results: dict[int, Any]) -> Any:
    """The memory that some results have in common."""
    for j, place in group.items():
        if place.is_whole and not place.field:
            return results[j]
    (count,) = next(iter(group.values())).whole
    index = zeros(count, int)
    begin = 0
    for place in group.values():
        size = prod(place.shape)
        strides = [index.itemsize * s for s in place.strides]
        positions = as_strided(arange(count)[place.start :], place.shape, strides)
        index[positions] = arange(begin, begin + size).reshape(place.shape)
        begin += size
    return concatenate([ravel(results[j]) for j in group])[index]


def part(x: Any, place: Place) -> Any:
    """What lies at a place of `x`, as a view of it."""
    if place.field:
        x = getattr(x, place.field)
    if place.is_whole:
        return x
    taken = _by_axes(x, place)
    return _by_rows(x, place) if taken is None else taken


def _by_axes(x: Any, place: Place) -> Any:
    """A part of which each axis goes along one of `x`; None where it is none."""
    sizes = place.sizes
    # The first element of x in its memory is the last along axes that go backwards.
    rest = place.start - sum((n - 1) * size for n, size in zip(place.whole, sizes, strict=True) if size < 0)
    key: list[Any] = [0] * len(sizes)
    for axis in sorted(range(len(sizes)), key=lambda axis: -abs(sizes[axis])):
        if sizes[axis]:
            key[axis], rest = divmod(rest, abs(sizes[axis]))
            key[axis] = key[axis] if sizes[axis] > 0 else place.whole[axis] - 1 - key[axis]
    if rest or any(not 0 <= k < n for k, n in zip(key, place.whole, strict=True)):
        return None
    axes: list[int] = []
    for n, stride in zip(place.shape, place.strides, strict=True):
        if stride == 0:
            continue
        along = [a for a in range(len(sizes)) if 0 < abs(sizes[a]) <= abs(stride)]
        if not along:
            return None
        axis = max(along, key=lambda a: abs(sizes[a]))
        step, other = divmod(stride, sizes[axis])
        last = -1 if axis in axes or other else key[axis] + (n - 1) * step
        if not 0 <= last < place.whole[axis]:
            return None
        end = last + (1 if step > 0 else -1)
        key[axis] = slice(key[axis], None if end < 0 else end, step)
        axes.append(axis)
    if not axes:
        one = x[(*key[:-1], slice(key[-1], key[-1] + 1))].reshape((1,) * len(place.shape))
        return one if one.shape == place.shape else broadcast_to(one, place.shape)
    return _arranged(x[tuple(key)], [sorted(axes).index(axis) for axis in axes], place)


def _by_rows(x: Any, place: Place) -> Any:
    """Any other part of an array without gaps, of its elements in one row as they lie in memory."""
    order = "C" if place.sizes == _dense(place.whole) else "F" if place.sizes[::-1] == _dense(place.whole[::-1]) else ""
    if not order:
        raise _beyond_slices(place.whole)
    row = (x if order == "C" else x.T).reshape(-1)
    axes = [(n, s) for n, s in zip(place.shape, place.strides, strict=True) if s]
    start = place.start + sum((n - 1) * s for n, s in axes if s < 0)
    falling = sorted(range(len(axes)), key=lambda axis: -abs(axes[axis][1]))
    y = _rows(row, place.whole, start, [(axes[axis][0], abs(axes[axis][1])) for axis in falling])
    y = y[tuple(slice(None, None, -1 if axes[axis][1] < 0 else 1) for axis in falling)]
    return _arranged(y, [falling.index(axis) for axis in range(len(axes))], place)


def _dense(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of an array in C order without gaps."""
    return tuple(0 if n == 1 else prod(shape[axis + 1 :]) for axis, n in enumerate(shape))


def _rows(x: Any, whole: tuple[int, ...], start: int, axes: list[tuple[int, int]]) -> Any:
    """Of the last axis of `x` the elements from `start` on, along axes of some lengths and falling strides."""
    (n, stride), *inner = axes
    if not inner:
        return x[..., start : start + (n - 1) * stride + 1 : stride]
    extent = 1 + sum((m - 1) * s for m, s in inner)
    for length in range(stride, extent - 1, -1):
        # Rows of that length, the first of which begins so many elements in front of ours.
        before = max(0, start + (n - 1) * stride + length - x.shape[-1])
        if stride % length == 0 and before <= min(length - extent, start):
            count = (n - 1) * (stride // length) + 1
            rows = x[..., start - before : start - before + count * length].reshape(*x.shape[:-1], count, length)
            return _rows(rows[..., :: stride // length, :], whole, before, inner)
    raise _beyond_slices(whole)


def _beyond_slices(whole: tuple[int, ...]) -> ConversionError:
    return ConversionError(
        f"a result of a compiled function is a part of an argument of shape {whole} that slices and shapes cannot give",
        "a copy of the part as the result",
    )


def _arranged(y: Any, order: list[int], place: Place) -> Any:
    """Axes in their order, with those of length 1 and those that repeat one element."""
    if order != sorted(order):
        y = y.transpose(order)
    if 0 in place.strides:
        y = y[tuple(slice(None) if stride else None for stride in place.strides)]
    return y if y.shape == place.shape else broadcast_to(y, place.shape)
