"""Keys that are the same for all examples, as they are for the array of all of them."""

from __future__ import annotations

from typing import Any

from retrograde.batch.arguments import array
from retrograde.originals import np


def entries_of(key: Any) -> tuple[Any, ...]:
    entries = key if isinstance(key, tuple) else (key,)
    return tuple(array(e) if isinstance(e, list) else e for e in entries)


def _is_advanced(entry: Any) -> bool:
    return not (
        entry is None or entry is Ellipsis or (isinstance(entry, slice | int | np.integer) and type(entry) is not bool)
    )


def is_place(entry: Any) -> bool:
    """Whether an entry counts as an advanced one beside another: integers do."""
    return _is_advanced(entry) or isinstance(entry, int | np.integer)


def raw_key(key: Any, ndim: int) -> tuple[Any, int]:
    """The key of the array of all examples, and where the axis of the examples stands in what it reads.

    That is in front, unless slices stand between arrays of positions: then NumPy puts their axes before all others.
    """
    entries = entries_of(key)
    made = (slice(None), *entries)
    if not any(map(_is_advanced, entries)):
        return made, 0
    places = [i for i, entry in enumerate(entries) if is_place(entry)]
    if places[-1] - places[0] + 1 == len(places):
        return made, 0
    shapes = [_advanced_shape(entries[i]) for i in places]
    return made, len(np.broadcast_shapes(*shapes))


def _advanced_shape(entry: Any) -> tuple[int, ...]:
    if isinstance(entry, bool | np.bool_):
        return (int(entry),)
    if isinstance(entry, np.ndarray) and entry.dtype == bool:
        return (int(np.count_nonzero(entry)),)
    return np.shape(entry)


def raw_read(x: Any, key: Any) -> Any:
    """What `x[key]` reads in all examples."""
    made, front = raw_key(key, x.ndim)
    y = x.primal[made]
    y = np.moveaxis(y, front, 0) if front else y
    if type(y) is not np.ndarray or y.flags.c_contiguous or not any(map(_is_advanced, made)):
        return y
    # NumPy lays out what it gathers by axes; where one example would lie densely, each of these must too.
    return np.ascontiguousarray(y) if np.empty(x.shape, bool)[key].flags.c_contiguous else y


def raw_write(level: Any, shape: tuple[int, ...], key: Any, value: Any) -> tuple[Any, Any]:
    """The key and the value of `x[key] = value`, for an `x` of that shape in each example."""
    made, front = raw_key(key, len(shape))
    return made, arranged(level, value, target_of(shape, key), front)


def target_of(shape: tuple[int, ...], key: Any) -> tuple[int, ...]:
    """The shape of what a key names in an array of `shape`."""
    target: tuple[int, ...] = np.broadcast_to(np.empty((), bool), shape)[key].shape
    return target


def arranged(level: Any, value: Any, target: tuple[int, ...], front: int) -> Any:
    """A value for a place of the shape `target` in each example, for a write to all of them."""
    if not level.holds(value):
        if not front or not np.ndim(value):
            # NumPy lets a value have axes of length 1 in front that the place does not have.
            extra = np.ndim(value) - len(target)
            return np.reshape(value, np.shape(value)[extra:]) if extra > 0 else value
        value = level.wrap(level.each(value))
    while value.ndim > len(target):
        value = value[0]
    raw = level.aligned(value, len(target))
    return np.moveaxis(raw, 0, front) if front else raw
