"""Which places a key names, and how often: for keys with arrays of integers, which may name a place twice.

All of it costs what the key names, not what the indexed array holds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

from retrograde.originals import np

Key = tuple[Any, ...]


class Places(NamedTuple):
    """A key of integer arrays (and slices and the like) with its arrays drawn out to one row.

    Attributes:
        entries: the key's entries; `arrays` says at which positions arrays stand, each a row of the same length.
        arrays: those positions.
        axis: where, in the result of the indexing, the axes of the arrays stand.
        shape: the shape of the arrays, which those axes have.
        codes: one number for each member of the row; equal ones name the same place.
    """

    entries: Key
    arrays: tuple[int, ...]
    axis: int
    shape: tuple[int, ...]
    codes: np.ndarray[Any, Any]

    def key(self, chosen: Any) -> Key:
        """The key of the chosen members of the row."""
        entries = list(self.entries)
        for i in self.arrays:
            entries[i] = entries[i][chosen]
        return tuple(entries)

    def drawn_out(self, values: Any) -> Any:
        """Values that fit the result of the indexing, with the arrays' axes drawn out to one."""
        shape = np.shape(values)
        end = self.axis + len(self.shape)
        return np.reshape(values, (*shape[: self.axis], self.codes.size, *shape[end:]))

    def chosen(self, values: Any, chosen: Any) -> Any:
        """Of values that are drawn out, those of the chosen members of the row."""
        return values[(*(slice(None),) * self.axis, chosen)]

    def once(self) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """One member of the row for each place, and for each member the number of its place among these."""
        _, first, number = np.unique(self.codes, return_index=True, return_inverse=True)
        return first, number

    def rounds(self) -> Iterator[np.ndarray[Any, Any]]:
        """The members of the row in as few parts as possible, none of which names a place twice, in their order."""
        order = np.argsort(self.codes, kind="stable")
        codes = self.codes[order]
        starts = np.flatnonzero(np.append(True, codes[1:] != codes[:-1]))
        counts = np.diff(np.append(starts, codes.size))
        turns = np.arange(codes.size) - np.repeat(starts, counts)
        by_turn = order[np.argsort(turns, kind="stable")]
        yield from np.split(by_turn, np.cumsum(np.bincount(turns))[:-1])

    def is_last(self, dims: int) -> np.ndarray[Any, Any] | None:
        """1.0 where a member is the last to name its place, else 0.0, so that it goes with results of `dims`
        dimensions; None if no place is named twice."""
        _, last = np.unique(self.codes[::-1], return_index=True)
        if last.size == self.codes.size:
            return None
        mask = np.zeros(self.codes.size)
        mask[self.codes.size - 1 - last] = 1.0
        return mask.reshape(self.shape + (1,) * (dims - self.axis - len(self.shape)))


def places_of(key: Any, shape: tuple[int, ...]) -> Places:
    """The places that a key names in an array of this shape, which must have them."""
    entries: list[Any] = []
    for entry in key if isinstance(key, tuple) else (key,):
        if isinstance(entry, bool | np.bool_):
            return _by_position(key, shape)
        if isinstance(entry, np.ndarray) and entry.dtype == bool:
            if entry.ndim == 0:
                return _by_position(key, shape)
            entries += entry.nonzero()
        else:
            entries.append(entry)
    arrays = tuple(i for i, entry in enumerate(entries) if isinstance(entry, np.ndarray) and entry.ndim)
    members = np.broadcast_arrays(*[entries[i] for i in arrays])
    advanced = [i for i, entry in enumerate(entries) if not (entry is None or entry is ... or type(entry) is slice)]
    # One axis of the array for each entry that is not a new axis; an ellipsis stands for the rest of them.
    rest = len(shape) - sum(entry is not None and entry is not ... for entry in entries)
    widths = [rest if entry is ... else int(entry is not None) for entry in entries]
    starts = np.cumsum([0, *widths]).tolist()
    is_one_block = advanced[-1] - advanced[0] + 1 == len(advanced)
    axis = sum(rest if entry is ... else 1 for entry in entries[: advanced[0]]) if is_one_block else 0
    flat = [member.reshape(-1) for member in members]
    # In range, as the read or the write itself has shown; "wrap" is for the negative ones.
    codes = np.ravel_multi_index(tuple(flat), tuple(shape[starts[i]] for i in arrays), mode="wrap")
    for i, row in zip(arrays, flat, strict=True):
        entries[i] = row
    return Places(tuple(entries), arrays, axis, members[0].shape, codes)


def _by_position(key: Any, shape: tuple[int, ...]) -> Places:
    """The same for keys of every kind, of the positions of all elements."""
    positions = np.arange(math.prod(shape)).reshape(shape)[key]
    row = positions.reshape(-1)
    return Places(np.unravel_index(row, shape), tuple(range(len(shape))), 0, positions.shape, row)


__all__ = ["Places", "places_of"]
