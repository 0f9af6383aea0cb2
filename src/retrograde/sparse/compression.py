"""Compressed derivatives: which products with a sparse matrix hold all of its entries, and where each is read."""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograde.sparse.colouring import column_colours, count, dense_rows, readable, star_colours
from retrograde.sparse.pattern import Pattern


class Compression:
    """A pattern with the directions that find it.

    Attributes:
        pattern: which entries there are.
        columns: a colour for each column, −1 for those that no product J v is needed for.
        rows: a colour for each row, −1 for those that no product uᵀJ is needed for.
    """

    __slots__ = ("_places", "columns", "pattern", "rows")

    def __init__(self, pattern: Pattern, columns: Any, rows: Any, places: Any) -> None:
        self.pattern = pattern
        self.columns = columns
        self.rows = rows
        # The position of each entry in all products, one row after the other.
        self._places = places

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
        return count(self.columns) + count(self.rows)

    @property
    def mode(self) -> str:
        return "forward" if not count(self.rows) else "both" if count(self.columns) else "reverse"

    def directions(self) -> Any:
        """The directions v, one a row."""
        return _indicators(self.columns)

    def seeds(self) -> Any:
        """The directions u, one a row."""
        return _indicators(self.rows)

    def entries(self, forward: Any, reverse: Any) -> Any:
        """The entries in the order of the pattern, from one row of products for each direction and for each seed."""
        products = [*forward, *reverse]
        return np.concatenate(products)[self._places] if products else np.zeros(0)


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


def _indicators(colours: Any) -> Any:
    return (colours == np.arange(count(colours))[:, None]).astype(float)
