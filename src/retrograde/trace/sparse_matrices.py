"""Products of SciPy's sparse matrices with traced values: `A @ x`, `x @ A`, `A.dot(x)`, and `A * x` of matrices.

SciPy's operators hand an array to compiled code without a question. So what its classes do for `@` (and `*`) is taken
over, once a transform finds that SciPy's module is loaded: for a traced operand a product with a rule stands for it,
everything else goes where it went before. The rule has the numbers of the matrix in compressed form as arguments, so
that they are kept, mapped and differentiated like those of any other array: SciPy lets traced ones into matrices by
coordinates and in compressed form.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from retrograde.originals import np
from retrograde.rules.dispatching import dispatched
from retrograde.rules.points import call as point
from retrograde.rules.points import complex_, real
from retrograde.rules.table import RULES, multilinear
from retrograde.trace.handle import HANDLES

_CLASSES = "bsr coo csc csr dia dok lil"


def replacements(module: Any) -> dict[str, Callable[..., Any]]:
    """Let the classes of `scipy.sparse` multiply with traced values, for good; no function is replaced."""
    for name in _CLASSES.split():
        for kind in (getattr(module, f"{name}_array"), getattr(module, f"{name}_matrix")):
            for owner in kind.__mro__:
                for method, (takes_over, reflected) in _METHODS.items():
                    original = vars(owner).get(method)
                    # A `*` of sparse arrays goes by elements, and gives sparse arrays.
                    is_product = "matmul" in method or owner is module.spmatrix
                    if original is not None and is_product and not hasattr(original, "_of_scipy"):
                        setattr(owner, method, takes_over(original, reflected))
    return {}


def _product(original: Callable[[Any, Any], Any], reflected: bool) -> Callable[[Any, Any], Any]:
    @functools.wraps(original)
    def product(A: Any, x: Any) -> Any:
        if not (_is_followed(x) or (type(x) is np.ndarray and _is_followed(getattr(A, "data", None)))) or not x.ndim:
            return original(A, x)
        if A.ndim != 2 or x.ndim > 2 or x.shape[-1 if reflected else 0] != A.shape[0 if reflected else 1]:
            return original(A, np.zeros(x.shape))  # SciPy says what is wrong with the shapes
        if reflected:
            return np.transpose(_times(A.T, np.transpose(x)))
        return _times(A, x)

    product._of_scipy = original  # type: ignore[attr-defined]
    return product


def _is_followed(x: Any) -> bool:
    return type(x) in HANDLES and not x.is_free()


_METHODS = {
    "__matmul__": (_product, False),
    "__rmatmul__": (_product, True),
    "__mul__": (_product, False),
    "__rmul__": (_product, True),
}


def _times(A: Any, x: Any) -> Any:
    if A.format == "coo" and _is_followed(A.data):
        order = np.argsort(A.row, kind="stable")
        indptr = np.concatenate([[0], np.cumsum(np.bincount(A.row, minlength=A.shape[0]))])
        return by_rows(A.data[order], A.col[order], indptr, A.shape, x)
    if A.format != "csc":
        A = A.tocsr()
    function = by_columns if A.format == "csc" else by_rows
    return function(A.data, A.indices, A.indptr, A.shape, x)


@dispatched
def by_rows(data: Any, indices: Any, indptr: Any, shape: tuple[int, int], x: Any) -> Any:
    """A @ x, of the sparse matrix A that is stored row by row.

    Shapes: data, indices (k,); indptr (m + 1,); shape (m, n); x (n,) or (n, j).
    """
    from scipy.sparse import csr_array

    return csr_array((data, indices, indptr), shape=shape) @ x


@dispatched
def by_columns(data: Any, indices: Any, indptr: Any, shape: tuple[int, int], x: Any) -> Any:
    """A @ x, of the sparse matrix A that is stored column by column: `indptr` is (n + 1,)."""
    from scipy.sparse import csc_array

    return csc_array((data, indices, indptr), shape=shape) @ x


by_rows.__name__ = by_columns.__name__ = "scipy.sparse matrix @"  # as messages name them


def lines(indptr: Any) -> Any:
    """The row (or the column) of each stored number."""
    return np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))


def _data_adjoint(y_bar: Any, x: Any, rows: Any, columns: Any) -> Any:
    # ā_ij = Σ_k ȳ_ik x̄_jk, where a number is stored.
    products = np.take(y_bar, rows, 0) * np.conj(np.take(x, columns, 0))
    return np.sum(products, 1) if np.ndim(x) == 2 else products


def _by_rows_data(y_bar: Any, data: Any, indices: Any, indptr: Any, shape: tuple[int, int], x: Any) -> Any:
    return _data_adjoint(y_bar, x, lines(indptr), indices)


def _by_columns_data(y_bar: Any, data: Any, indices: Any, indptr: Any, shape: tuple[int, int], x: Any) -> Any:
    return _data_adjoint(y_bar, x, indices, lines(indptr))


# The rows of a matrix are the columns of its transpose: x̄ = Aᴴ ȳ.


def _by_rows_x(y_bar: Any, data: Any, indices: Any, indptr: Any, shape: tuple[int, int], x: Any) -> Any:
    return by_columns(np.conj(data), indices, indptr, shape[::-1], y_bar)


def _by_columns_x(y_bar: Any, data: Any, indices: Any, indptr: Any, shape: tuple[int, int], x: Any) -> Any:
    return by_rows(np.conj(data), indices, indptr, shape[::-1], y_bar)


# [[a, 0, b], [0, 0, c]], with c stored in two parts.
_PLACES = (np.array([0, 2, 2, 2]), np.array([0, 2, 4]), (2, 3))
_TRANSPOSED = (np.array([0, 2, 2, 2]), np.array([0, 2, 4]), (3, 2))

if by_rows not in RULES:
    multilinear(
        by_rows,
        _by_rows_data,
        _by_rows_x,
        args=(0, 4),
        at=[
            point(real(-1, 1, 4), *_PLACES, real(-1, 1, 3)),
            point(complex_(-1, 1, 4), *_PLACES, real(-1, 1, 3, 2)),
            point(real(-1, 1, 4), *_PLACES, complex_(-1, 1, 3)),
            point(real(-1, 1, 4), *_PLACES, real(-1, 1, 3, 0)),
        ],
    )
    multilinear(
        by_columns,
        _by_columns_data,
        _by_columns_x,
        args=(0, 4),
        at=[
            point(real(-1, 1, 4), *_TRANSPOSED, real(-1, 1, 2)),
            point(complex_(-1, 1, 4), *_TRANSPOSED, complex_(-1, 1, 2, 2)),
        ],
    )

__all__ = ["by_columns", "by_rows", "lines", "replacements"]
