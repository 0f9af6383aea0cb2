"""Reading and writing by index, with an index that is the same for all examples or different."""

from __future__ import annotations

from typing import Any

from numpy import take  # (ours is a stand-in, see trace/stand_ins.py)

from retrograde.batch.arguments import array, behind
from retrograde.batch.keys import arranged, entries_of, is_place, raw_key, raw_read, target_of
from retrograde.batch.layout import spread
from retrograde.batch.table import by_body, mapped
from retrograde.errors import BatchError
from retrograde.originals import np
from retrograde.rules.numpy_indexing import getitem, over_rows, placed, scatter, take_body
from retrograde.rules.numpy_sets import picked

_WAYS = (
    "np.where(mask, x, other), which keeps the shape",
    "np.sum(x, where=mask), for a sum of the chosen elements",
    "np.stack([f(x) for x in xs]), a loop over the examples in place of vmap",
)


@mapped(getitem)
def _getitem(function: Any, level: Any, x: Any, key: Any) -> Any:
    entries = entries_of(key)
    if any(level.holds(entry) for entry in entries):
        return _gathered(level, x, entries)
    return raw_read(x, key)


@mapped(scatter)
def _scatter(function: Any, level: Any, values: Any, key: Any, shape: tuple[int, ...]) -> Any:
    entries = entries_of(key)
    if any(level.holds(entry) for entry in entries):
        made, arrange = _batched_key(level, entries, shape, True)
        return scatter(arrange(values), made, (level.size, *shape))
    made, front = raw_key(key, len(shape))
    target = target_of(shape, key)
    return scatter(arranged(level, values, target, front), made, (level.size, *shape))


@mapped(placed)
def _placed(function: Any, level: Any, x: Any, key: Any, value: Any) -> Any:
    entries = entries_of(key)
    x = array(x)
    dtype = np.result_type(x)
    if level.holds(key) and key.dtype == bool and not np.ndim(value):
        # The one write by a mask that needs no number of places.
        return level.each(np.astype(np.where(over_rows(key, x.ndim), value, x), dtype))
    if any(level.holds(entry) for entry in entries):
        made, arrange = _batched_key(level, entries, x.shape, True)
        return placed(_each_of(level, x, dtype), made, arrange(value))
    made, front = raw_key(key, x.ndim)
    target = target_of(x.shape, key)
    return placed(_each_of(level, x, dtype), made, arranged(level, value, target, front))


def _each_of(level: Any, x: Any, dtype: Any) -> Any:
    return x.primal if level.holds(x) else spread(x, level.size)


# --- an index that differs between the examples ----------------------------------------------------------------------


def _layout(level: Any, entries: tuple[Any, ...], ndim: int) -> tuple[list[Any], int, int, bool]:
    """The entries with the ellipsis written out, the dimensions of the positions, how many axes stand before them in
    what one example gives, and whether NumPy moves them to the front there."""
    for entry in entries:
        if level.holds(entry) and entry.dtype == bool:
            raise BatchError(
                "a mask that differs between the examples of a batch chooses a different number of elements in each",
                *_WAYS,
            )
    consumed = sum(_consumes(entry) for entry in entries)
    if not any(entry is Ellipsis for entry in entries):
        entries = (*entries, Ellipsis)
    full: list[Any] = []
    for entry in entries:
        if entry is Ellipsis:
            full += [slice(None)] * (ndim - consumed)
        elif isinstance(entry, np.ndarray) and entry.dtype == bool:
            full += list(np.nonzero(entry))
        else:
            full.append(entry)
    places = [i for i, entry in enumerate(full) if is_place(entry)]
    together = places[-1] - places[0] + 1 == len(places)
    before = places[0] if together else 0
    count = len(np.broadcast_shapes(*(np.shape(full[i]) for i in places)))
    return full, count, before, together


def _consumes(entry: Any) -> int:
    if entry is None or entry is Ellipsis:
        return 0
    return entry.ndim if isinstance(entry, np.ndarray) and entry.dtype == bool else 1


def _gathered(level: Any, x: Any, entries: tuple[Any, ...]) -> Any:
    x = array(x)
    full, count, before, together = _layout(level, entries, x.ndim)
    if not level.holds(x):
        # Each example reads the same array: its positions are all that differs.
        made = tuple(level.aligned(entry, count) for entry in full)
        return np.moveaxis(x[made], before if together else 0, 0)
    made = (_examples(level, count), *(level.aligned(entry, count) for entry in full))
    y = x.primal[made]
    if together and before:
        y = np.moveaxis(y, range(1, 1 + count), range(1 + before, 1 + before + count))
    return y


def _examples(level: Any, count: int) -> Any:
    return np.arange(level.size).reshape((level.size, *(1,) * count))


def _batched_key(level: Any, entries: tuple[Any, ...], shape: tuple[int, ...], is_write: bool) -> Any:
    """The key of all examples, and what brings a value into the order of axes that NumPy has there."""
    full, count, before, together = _layout(level, entries, len(shape))
    made = (_examples(level, count), *(level.aligned(entry, count) for entry in full))

    def arrange(value: Any) -> Any:
        # The shape of the place in one example.
        dummy = np.broadcast_to(np.empty((), bool), shape)
        key = tuple(np.zeros(entry.shape, int) if level.holds(entry) else entry for entry in full)
        target = dummy[key].shape
        raw = level.each(np.broadcast_to(value, target))
        if together and before:
            raw = np.moveaxis(raw, range(1 + before, 1 + before + count), range(1, 1 + count))
        return raw

    return made, arrange


# --- NumPy's gathers -------------------------------------------------------------------------------------------------


@by_body(take)
def _take(
    function: Any, level: Any, a: Any, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise"
) -> Any:
    indices = array(indices)
    if not level.holds(indices) and indices.size == 0:
        indices = indices.astype(int)
    return take_body(array(a), indices, axis, None, mode)


@by_body(picked)
def _picked(function: Any, level: Any, x: Any, places: Any) -> Any:
    return np.take(np.ravel(array(x)), places)


@by_body(np.take_along_axis)
def _take_along_axis(function: Any, level: Any, arr: Any, indices: Any, axis: Any = -1) -> Any:
    arr, indices = array(arr), array(indices)
    if axis is None:
        arr, axis = np.ravel(arr), 0
    axis = behind(axis, arr.ndim) - 1
    ranges: list[Any] = []
    for i, n in enumerate(arr.shape):
        shape = [1] * arr.ndim
        shape[i] = n
        ranges.append(np.arange(n).reshape(shape))
    ranges[axis] = indices
    return getitem(arr, tuple(ranges))


@by_body(np.ravel_multi_index)
def _ravel_multi_index(
    function: Any, level: Any, multi_index: Any, dims: Any, mode: Any = "raise", order: str = "C"
) -> Any:
    place: Any = 0
    pairs = list(zip(multi_index, dims, strict=True))
    for index, n in pairs if order == "C" else pairs[::-1]:
        if mode == "wrap":
            index = np.remainder(index, n)
        elif mode == "clip":
            index = np.minimum(np.maximum(index, 0), n - 1)
        place = place * n + index
    return place


@by_body(np.ix_)
def _ix(function: Any, level: Any, *args: Any) -> Any:
    made = []
    for i, arg in enumerate(args):
        shape = [1] * len(args)
        arg = array(arg)
        shape[i] = arg.size
        made.append(np.reshape(arg, tuple(shape)))
    return tuple(made)
