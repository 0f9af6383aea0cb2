"""Sparse Jacobians and Hessians: the pattern is found, coloured, and filled by a few products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from retrograde.errors import InputError
from retrograde.tools.prepared_sparse import PreparedSparse, SparseHessian, SparseJacobian, SparseOptions
from retrograde.trace.running import interruptible


def sparse_jacobian(
    f: Callable[..., Any],
    /,
    *args: Any,
    pattern: str = "run",
    sparsity: Any = None,
    mode: str = "auto",
    check: bool = True,
    chunk: int | None = None,
    format: str = "csr",
    **kwargs: Any,
) -> Any:
    """The Jacobian of `f` as a `scipy.sparse` array, at the cost of a few passes however many columns it has.

    One run of `f` finds which output depends on which input. Columns that share no row are found by one pass together
    (a colour), and so are rows, in reverse mode. Rows and columns are the numbers of the output and of an argument,
    leaf after leaf, each in C order.

    Args:
        f: returns a number, an array or a nested container of these.
        *args: numbers, arrays, and nested containers. None at all: a function of them, with a method `prepare`.
        pattern: "run", the pattern of this very run: of `np.maximum`, `np.where`, sorting and the like only what was
            chosen counts. Or "all", which holds for every run: whatever could have been chosen counts, and branches by
            values are refused.
        sparsity: the pattern, where you know it: a sparse matrix or an array, of which entries that are not zero count.
            One for each argument, in a tuple, where there are several.
        mode: "forward" (one pass a colour of columns), "reverse" (of rows), "both" (the fullest rows in reverse mode,
            the rest in forward mode), or "auto": the fewest passes.
        check: compare with one pass more, along a random direction, so that a wrong pattern cannot pass.
        chunk: how many passes are made at once. None: as many as make arrays of a few megabytes.
        format: of the result, as `scipy.sparse` names them.
        **kwargs: passed to `f`.

    Returns:
        A `csr_array` of shape (size of the output, size of the argument), a tuple of these for several arguments. The
        entries of the pattern are stored, zero or not.

    Raises:
        SparsityError: the Jacobian has entries outside of the pattern.
        MissingExtraError: SciPy is not installed.
        InputError: an argument is traced (sparse matrices hold plain numbers).
        ConversionError: with pattern="all", the function branches by the values of its arguments.

    Where it is wanted at many points, pattern and colours are found once: `jac = sparse_jacobian(f).prepare(x)`, then
    `jac(x)`. Its attributes `sparsity`, `passes` and `mode` say what was found.

    >>> sparse_jacobian(lambda x: x[1:] * x[:-1], np.array([1.0, 2.0, 3.0])).toarray()
    array([[2., 1., 0.],
           [0., 3., 2.]])
    """
    if mode not in ("auto", "forward", "reverse", "both"):
        raise InputError(f"mode={mode!r} is none of 'auto', 'forward', 'reverse' and 'both'")
    return _called(
        SparseFunction(SparseJacobian, f, SparseOptions(pattern, sparsity, mode, check, chunk, format), kwargs), args
    )


def sparse_hessian(
    f: Callable[..., Any],
    /,
    *args: Any,
    pattern: str = "run",
    sparsity: Any = None,
    check: bool = True,
    chunk: int | None = None,
    format: str = "csr",
    **kwargs: Any,
) -> Any:
    """The Hessian of `f` as a `scipy.sparse` array, at the cost of a few products with it.

    The pattern is that of the gradient's dependence, found by one run of `gradient`; products are forward over reverse
    (reverse over reverse where a rule has no pushforward); symmetry is used, so that a star colouring is enough.

    Args:
        f: returns one finite real number.
        *args, pattern, sparsity, check, chunk, format, **kwargs: as for `sparse_jacobian`.

    Returns:
        A square `csr_array`, symmetric to the last digit; for several arguments a tuple of tuples of blocks.

    Raises: as `sparse_jacobian`.

    >>> sparse_hessian(lambda x: np.sum(x[1:] * x[:-1] ** 2), np.array([1.0, 2.0, 3.0])).toarray()
    array([[4., 2., 0.],
           [2., 6., 4.],
           [0., 4., 0.]])
    """
    options = SparseOptions(pattern, sparsity, "forward", check, chunk, format)
    return _called(SparseFunction(SparseHessian, f, options, kwargs), args)


class SparseFunction:
    """A function that computes a sparse derivative: `sparse_jacobian(f)`, `sparse_hessian(f)`."""

    __slots__ = ("_f", "_kind", "_kwargs", "_options")

    def __init__(
        self, kind: type[PreparedSparse], f: Callable[..., Any], options: SparseOptions, kwargs: dict[str, Any]
    ) -> None:
        self._kind = kind
        self._f = f
        self._options = options
        self._kwargs = kwargs

    @interruptible
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.prepare(*args, **kwargs)(*args)

    @interruptible
    def prepare(self, *args: Any, **kwargs: Any) -> PreparedSparse:
        """The same with pattern and colours found once, here, to be called at many points."""
        if not args:
            raise InputError(f"{self._kind.name} is prepared at a point; no argument was given")
        return self._kind(self._f, self._options, args, self._kwargs | kwargs)

    def __repr__(self) -> str:
        return f"<{self._kind.name} of {getattr(self._f, '__name__', self._f)!r}>"


def _called(function: SparseFunction, args: tuple[Any, ...]) -> Any:
    return function(*args) if args else function
