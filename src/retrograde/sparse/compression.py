"""Compressed derivatives: which products with a sparse matrix hold all of its entries, and where each is read."""

from __future__ import annotations

from typing import Any

from retrograde.originals import np
from retrograde.sparse.colouring import column_colours, count, dense_rows, readable, star_colours
from retrograde.sparse.pattern import Pattern


class Compression:
    """A pattern with the directions that find it.

    Attributes:
        pattern: which entries there are.
        columns: a colour for each column, −1 for those that no product J v is needed for.
        rows: a colour for each row, −1 for those that no product uᵀJ is needed for.
        counts: how many products J v and how many products uᵀJ there are.
    """

    __slots__ = ("_places", "_sorted", "columns", "counts", "pattern", "rows")

    def __init__(self, pattern: Pattern, columns: Any, rows: Any, places: Any) -> None:
        self.pattern = pattern
        self.columns = columns
        self.rows = rows
        # The position of each entry in all products, one row after the other.
        self._places = places
        self._sorted: tuple[Any, Any] | None = None
        self.counts = count(columns), count(rows)

    @staticmethod
    def of_jacobian(pattern: Pattern, mode: str) -> Compression:
        """By products J v ("forward"), uᵀJ ("reverse"), J v and a few uᵀJ ("both"), or whatever is least ("auto")."""
        if mode != "auto":
            return _by_parts(pattern, mode)
        best = _by_parts(pattern, "forward")
        # A column needs as many colours of rows as it has entries.
        if best.passes > np.max(np.bincount(pattern.indices), initial=0):
            best = min(best, _by_parts(pattern, "reverse"), key=lambda each: each.passes)
        if best.passes > 3:
            apart = _by_parts(pattern, "both")
            best = apart if 3 * apart.passes <= 2 * best.passes else best
        return best

    @staticmethod
    def of_hessian(pattern: Pattern) -> Compression:
        """By products H v; the pattern is symmetric."""
        colours = star_colours(pattern)
        rows, colour = readable(pattern, colours)
        return Compression(pattern, colours, np.full(pattern.shape[0], -1), colour * pattern.shape[0] + rows)

    @property
    def passes(self) -> int:
        """The number of products."""
        return sum(self.counts)

    @property
    def mode(self) -> str:
        forward, reverse = self.counts
        return "forward" if not reverse else "both" if forward else "reverse"

    def directions(self, start: int, stop: int) -> Any:
        """The directions v from number `start` to `stop`, one a row."""
        return _indicators(self.columns, start, stop)

    def seeds(self, start: int, stop: int) -> Any:
        """The directions u from number `start` to `stop`, one a row."""
        return _indicators(self.rows, start, stop)

    def fill(self, entries: Any, products: Any, start: int, is_reverse: bool) -> None:
        """Write the entries that are read from some products, one a row, in the order of the pattern.

        Args:
            products: those of the directions (or of the seeds, if `is_reverse`) from number `start` on.
        """
        m, n = self.pattern.shape
        first = self.counts[0] * m + start * n if is_reverse else start * m
        if len(products) == self.passes:
            entries[:] = products.reshape(-1)[self._places]
            return
        if self._sorted is None:
            order = np.argsort(self._places, kind="stable")
            self._sorted = order, self._places[order]
        order, places = self._sorted
        begin, end = np.searchsorted(places, [first, first + products.size])
        entries[order[begin:end]] = products.reshape(-1)[places[begin:end] - first]


def _by_parts(pattern: Pattern, mode: str) -> Compression:
    """Rows by products uᵀJ: none, all, or the fullest ones; the rest by products J v."""
    m, n = pattern.shape
    apart = np.full(m, mode == "reverse")
    if mode == "both":
        apart[dense_rows(pattern)] = True
    columns = column_colours(pattern.part(~apart))
    rows = column_colours(pattern.part(apart).transposed())
    row, column = pattern.rows(), pattern.indices
    places = np.where(rows[row] < 0, columns[column] * m + row, count(columns) * m + rows[row] * n + column)
    return Compression(pattern, columns, rows, places)


def _indicators(colours: Any, start: int, stop: int) -> Any:
    return (colours == np.arange(start, stop)[:, None]).astype(float)
