"""A pattern: which entries of a matrix may be other than zero, in the layout of scipy.sparse.csr_array."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from retrograde.errors import InputError
from retrograde.originals import np


class Pattern(NamedTuple):
    """Row i has entries in the columns `indices[indptr[i]:indptr[i + 1]]`, in rising order."""

    indptr: Any
    indices: Any
    shape: tuple[int, int]

    @staticmethod
    def of(given: Any, shape: tuple[int, int], what: str) -> Pattern:
        """The pattern that a user gives: the stored entries of a sparse matrix, or the non-zeros of an array.

        Raises:
            InputError: it has another shape.
        """
        from scipy.sparse import csr_array, issparse

        matrix = csr_array(given) if issparse(given) else csr_array(np.asarray(given) != 0)
        if matrix.shape != shape:
            raise InputError(f"sparsity= has the shape {matrix.shape}; the {what} has {shape}")
        matrix = matrix.copy()
        matrix.sum_duplicates()
        return Pattern(matrix.indptr, matrix.indices, shape)

    @staticmethod
    def beside(parts: Sequence[Pattern]) -> Pattern:
        """Blocks of the same rows in one pattern."""
        return Pattern.below([part.transposed() for part in parts]).transposed()

    @staticmethod
    def below(parts: Sequence[Pattern]) -> Pattern:
        """Blocks of the same columns in one pattern."""
        lengths = np.concatenate([np.diff(part.indptr) for part in parts])
        indices = np.concatenate([part.indices for part in parts])
        return Pattern(_pointers(lengths), indices, (len(lengths), parts[0].shape[1]))

    @property
    def nnz(self) -> int:
        return len(self.indices)

    def rows(self) -> Any:
        """The row of each entry."""
        return np.repeat(np.arange(self.shape[0]), np.diff(self.indptr))

    def lists(self, order: Iterable[int]) -> Iterator[tuple[int, list[int]]]:
        """Each row of `order` with its columns. One list at a time: a million would keep the garbage collector busy."""
        indices = self.indices.tolist()
        indptr = self.indptr.tolist()
        for row in order:
            yield row, indices[indptr[row] : indptr[row + 1]]

    def transposed(self) -> Pattern:
        order = np.argsort(self.indices, kind="stable")
        counts = np.bincount(self.indices, minlength=self.shape[1])
        return Pattern(_pointers(counts), self.rows()[order], self.shape[::-1])

    def part(self, rows: Any) -> Pattern:
        """The same without the entries of the rows for which the mask `rows` is false."""
        if rows.all():
            return self
        kept = rows[self.rows()]
        lengths = np.where(rows, np.diff(self.indptr), 0)
        return Pattern(_pointers(lengths), self.indices[kept], self.shape)

    def symmetric(self) -> Pattern:
        """The entries whose mirror images are there, too: a symmetric matrix has no others."""
        n = self.shape[0]
        rows, columns = self.rows(), self.indices
        keys, mirrored = rows * n + columns, columns * n + rows
        mirrored = np.sort(mirrored)
        places = np.minimum(np.searchsorted(mirrored, keys), max(0, len(keys) - 1))
        kept = mirrored[places] == keys if len(keys) else np.zeros(0, bool)
        lengths = np.bincount(rows[kept], minlength=n)
        return Pattern(_pointers(lengths), columns[kept], self.shape)


def _pointers(lengths: Any) -> Any:
    return np.concatenate([[0], np.cumsum(lengths)])
