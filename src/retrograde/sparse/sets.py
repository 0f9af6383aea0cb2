"""Sets of inputs as numbers: 0 is the empty set, 1 … n are the inputs, and every further number is a union.

A union is a node of a graph that names the sets it is made of; what is in it is found only at the end, and only of
those that the output is made of (see elimination.py). So a union costs the same whether its sets have two elements or
a million; values that are moved, copied, written or read carry their numbers along; and functions of one argument,
whose result depends on what the argument depends on, cost nothing.
"""

from __future__ import annotations

from typing import Any

from retrograde.originals import np

Numbers = Any  # an array of numbers of sets, or a single one


class Sets:
    """The sets of one run; n is the number of inputs."""

    __slots__ = ("_children", "_counts", "_first", "_single", "n", "next")

    def __init__(self, n: int) -> None:
        self.n = n
        self.next = n + 1
        # The graph, in the order of the numbers: all children in one row, and how many each node has.
        self._children: list[Any] = []
        self._counts: list[Any] = []
        # Nodes of two children that were made one by one since the last piece of the row.
        self._single: list[int] = []

    def union(self, a: Numbers, b: Numbers) -> Numbers:
        """The unions of the sets at each place; broadcasts."""
        if a is b:
            return a
        if type(a) is not np.ndarray and type(b) is not np.ndarray:
            return self._union_of_two(int(a), int(b))
        a, b = np.broadcast_arrays(a, b)
        united = np.where(a == 0, b, a)
        fresh = (a != 0) & (b != 0) & (a != b)
        if fresh.any():
            pairs = np.stack([a[fresh], b[fresh]], axis=1)
            united[fresh] = self._add(pairs.reshape(-1), np.full(len(pairs), 2))
        return united

    def _union_of_two(self, a: int, b: int) -> int:
        if a == b or b == 0:
            return a
        if a == 0:
            return b
        self._single += (a, b)
        self.next += 1
        return self.next - 1

    def grouped(self, members: Numbers, groups: Any, count: int) -> Numbers:
        """For each of `count` groups the union of the members that belong to it."""
        members, groups = np.ravel(members), np.ravel(groups)
        there = members != 0
        keys = distinct(groups[there] * self.next + members[there])
        groups, members = np.divmod(keys, self.next)
        sizes = np.bincount(groups, minlength=count)
        united = np.zeros(count, int)
        alone = sizes[groups] == 1
        united[groups[alone]] = members[alone]
        several = sizes > 1
        united[several] = self._add(members[~alone], sizes[several])
        return united

    def running(self, rows: Numbers, begins: Any = False) -> Numbers:
        """For each place of each row the union of everything up to it, from the last place on that `begins` anew.

        The rows are the last axis.
        """
        if rows.shape[-1] < 2 or not rows.size:
            return rows
        shape = (*rows.shape[:-1], rows.shape[-1] - 1)
        size = rows.size // rows.shape[-1] * shape[-1]
        united = np.arange(self._numbered(), self.next + size).reshape(shape)
        before = np.concatenate([rows[..., :1], united[..., :-1]], axis=-1)
        if begins is not False:
            before = np.where(begins[..., 1:], 0, before)
        self._add(np.stack([before, rows[..., 1:]], axis=-1).reshape(-1), np.full(size, 2))
        return np.concatenate([rows[..., :1], united], axis=-1)

    def _add(self, children: Any, counts: Any) -> Any:
        """Numbers of new unions, each of the next so many children."""
        first = self._numbered()
        self._children.append(children)
        self._counts.append(counts)
        self.next = first + len(counts)
        return np.arange(first, self.next)

    def _numbered(self) -> int:
        """The next number, with all that were made one by one in the row."""
        if self._single:
            self._children.append(np.array(self._single))
            self._counts.append(np.full(len(self._single) // 2, 2))
            self._single = []
        return self.next

    def graph(self) -> tuple[Any, Any]:
        """The children of all unions in one row, and how many each union has."""
        self._numbered()
        empty = np.zeros(0, int)
        return np.concatenate([empty, *self._children]), np.concatenate([empty, *self._counts])


def distinct(keys: Any) -> Any:
    """The different ones of an array of integers, sorted. (`np.unique` hashes them, and is ten times slower.)"""
    keys = np.sort(keys)
    fresh = np.ones(len(keys), bool)
    np.not_equal(keys[1:], keys[:-1], out=fresh[1:])
    return keys[fresh]
