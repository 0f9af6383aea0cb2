"""Colourings: which columns (or rows) of a sparse matrix can be found in one product with it.

Two columns share a colour if no row has entries in both, so that every entry of their sum is an entry of one of them.
For symmetric matrices a star colouring needs fewer colours, since an entry may be read on either side of the diagonal.
All are greedy, take time linear in the entries (the colours around a node are one integer, bit by bit), and try two
orders: as the columns come, which is best for bands, and those with most neighbours first.

Source: Gebremedhin, Manne, Pothen (2005), "What color is your Jacobian? Graph coloring for computing derivatives",
SIAM Review 47; for star colourings Gebremedhin, Tarafdar, Manne, Pothen (2007), "New acyclic and star coloring
algorithms with application to computing Hessians", SIAM Journal on Scientific Computing 29.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from retrograde.originals import np
from retrograde.sparse.pattern import Pattern


def column_colours(pattern: Pattern) -> Any:
    """A colour for each column, counted from 0, −1 for those without entries: no row has two entries of one colour."""
    if not pattern.nnz:
        return np.full(pattern.shape[1], -1)
    flipped = pattern.transposed()
    fewest = int(np.max(np.diff(pattern.indptr), initial=0))

    def greedy(order: Any) -> Any:
        used = [0] * pattern.shape[0]  # the colours in each row, as bits
        colours = [-1] * pattern.shape[1]
        for column, rows in flipped.lists(order):
            if not rows:
                continue
            taken = 0
            for row in rows:
                taken |= used[row]
            bit = ~taken & (taken + 1)
            colours[column] = bit.bit_length() - 1
            for row in rows:
                used[row] |= bit
        return np.array(colours, int)

    return _better(greedy, pattern.shape[1], lambda: _neighbours(pattern, flipped), fewest)


def star_colours(pattern: Pattern) -> Any:
    """A colour for each row and column of a symmetric pattern, −1 for those without entries.

    Neighbours have different colours, and every path of four nodes has three. So of the entries (i, j) and (j, i) one
    is the only entry of its colour in its row, which `readable` finds.
    """

    def greedy(order: Any) -> Any:
        n = pattern.shape[0]
        neighbours_of = [[j for j in row if j != i] for i, row in pattern.lists(range(n))]
        colours = [-1] * n
        once = [0] * n  # the colours around a node, as bits
        twice = [0] * n  # those that stand around it more than once
        first: list[dict[int, int]] = [{} for _ in range(n)]  # for each colour around a node, the first that has it
        # The colours of those around a node that have another neighbour of this node's colour.
        ends = [0] * n
        for v in order:
            neighbours = neighbours_of[v]
            taken = once[v]
            for w in neighbours:
                if colours[w] >= 0:
                    taken |= ends[w]
                    if twice[v] >> colours[w] & 1:
                        # v would lie in the middle: w and another of w's colour on either side.
                        taken |= once[w]
            bit = ~taken & (taken + 1)
            colour = colours[v] = bit.bit_length() - 1
            for w in neighbours:
                own = 1 << colours[w] if colours[w] >= 0 else 0
                if not once[w] & bit:
                    once[w] |= bit
                    first[w][colour] = v
                else:
                    if not twice[w] & bit:
                        twice[w] |= bit
                        ends[first[w][colour]] |= own
                    ends[v] |= own
                if own and twice[v] & own:
                    ends[w] |= bit
        empty = np.diff(pattern.indptr) == 0
        return np.where(empty, -1, np.array(colours, int))

    return _better(greedy, pattern.shape[0], lambda: np.diff(pattern.indptr), 0)


def _better(greedy: Callable[[Iterable[int]], Any], n: int, neighbours: Callable[[], Any], fewest: int) -> Any:
    """The better of two colourings; the second is tried only where the first may not be the best."""
    as_they_come = greedy(range(n))
    if count(as_they_come) <= fewest:
        return as_they_come
    most_first = greedy(np.argsort(-neighbours(), kind="stable").tolist())
    return most_first if count(most_first) < count(as_they_come) else as_they_come


def count(colours: Any) -> int:
    return int(np.max(colours, initial=-1)) + 1


def _neighbours(pattern: Pattern, flipped: Pattern) -> Any:
    """For each column the number of entries in its rows."""
    lengths = np.diff(pattern.indptr)
    totals = np.concatenate([[0], np.cumsum(lengths[flipped.indices])])
    return totals[flipped.indptr[1:]] - totals[flipped.indptr[:-1]]


def dense_rows(pattern: Pattern) -> Any:
    """Rows that are better found by themselves: the fullest ones, as many as lower the number of colours most.

    A row of n entries needs n colours of columns, and one of rows. Nothing is chosen where that does not save at least
    a third.
    """
    lengths = np.diff(pattern.indptr)
    order = np.argsort(-lengths, kind="stable")
    longest = np.append(lengths[order], 0)
    # With the k fullest rows apart, at least k + the length of the next one.
    estimates = np.arange(len(longest)) + longest
    k = int(np.argmin(estimates))
    return np.sort(order[:k]) if 3 * estimates[k] <= 2 * longest[0] else order[:0]


def readable(pattern: Pattern, colours: Any) -> tuple[Any, Any]:
    """Where each entry of a symmetric matrix is read, as `(row, colour)`: in its own row, or in its mirror image's.

    An entry and its mirror image are read in the same place, so that the matrix comes out symmetric to the last digit.
    """
    rows, columns = pattern.rows(), pattern.indices
    keys = rows * (count(colours) + 1) + colours[columns]
    in_order = np.sort(keys)
    low, high = np.minimum(rows, columns), np.maximum(rows, columns)
    key = low * (count(colours) + 1) + colours[high]
    alone = np.searchsorted(in_order, key, "right") - np.searchsorted(in_order, key, "left") == 1
    return np.where(alone, low, high), np.where(alone, colours[high], colours[low])
