"""A sparse derivative at many points: its pattern and colours found once, its products at each of them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from retrograde.errors import InputError, MissingExtraError, MissingRuleError, RetrogradeError, SparsityError
from retrograde.forward.jvp import jvp, pushforward
from retrograde.reverse.gradient import grad
from retrograde.reverse.pullback import pullback, pulled
from retrograde.reverse.tape import Tape
from retrograde.sparse.compression import Compression
from retrograde.sparse.pattern import Pattern
from retrograde.tools.directions import Passes
from retrograde.tools.jacobian import check_holomorphic
from retrograde.tools.vectors import Layout, checked_output
from retrograde.trace.handle import is_traced
from retrograde.trace.running import interruptible
from retrograde.trace.structure import flatten

# A pass along one direction of so many bytes costs by its arrays, and not by the time that Python takes: of several at
# once it would be as slow, or slower.
_BYTES = 2**20


class SparseOptions:
    """Those of `sparse_jacobian` and `sparse_hessian`, whose docstrings say what each means."""

    __slots__ = ("check", "chunk", "exact", "format", "mode", "sparsity")

    def __init__(self, pattern: str, sparsity: Any, mode: str, check: bool, chunk: int | None, format: str) -> None:
        Passes(chunk)  # raises, if that is no number of directions
        if pattern not in ("run", "all"):
            raise InputError(f"pattern={pattern!r} is neither 'run' nor 'all'", "sparsity=, for a pattern of your own")
        self.exact = pattern == "run"
        self.sparsity = sparsity
        self.mode = mode
        self.check = check
        self.chunk = chunk
        self.format = format


class PreparedSparse:
    """A sparse derivative whose pattern and colours are found; call it at any point of the same shapes.

    Attributes:
        passes: how many passes one call costs, beside the check.
        mode: "forward", "reverse" or "both".
        sparsity: the pattern, a sparse array of booleans, over the numbers of all arguments.
    """

    name: str
    what: str

    def __init__(
        self, f: Callable[..., Any], options: SparseOptions, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        _require_scipy(self.name)
        _refuse_traced(self.name, args)
        self._f = f
        self._options = options
        self._kwargs = kwargs
        self._columns = Layout(args)
        self._compression = self._compressed(self._pattern(args))

    def _pattern(self, args: tuple[Any, ...]) -> Pattern:
        """The pattern at `args`, found or given, over the numbers of all arguments."""
        raise NotImplementedError

    def _compressed(self, pattern: Pattern) -> Compression:
        raise NotImplementedError

    def _pushing(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Callable[[Any], Any]:
        """The product J v with a direction, as a vector."""
        raise NotImplementedError

    def _pulling(self, args: tuple[Any, ...], kwargs: dict[str, Any], passes: Passes) -> Callable[[Any], Any]:
        """The product uᵀJ with a seed, as a vector."""
        raise NotImplementedError

    def _split(self, matrix: Any, places: list[slice]) -> Any:
        """The matrix of each argument; `places` are their columns."""
        raise NotImplementedError

    @property
    def sparsity(self) -> Any:
        from scipy.sparse import csr_array

        pattern = self._compression.pattern
        return csr_array((np.ones(pattern.nnz, bool), pattern.indices.copy(), pattern.indptr.copy()), pattern.shape)

    @property
    def passes(self) -> int:
        return self._compression.passes

    @property
    def mode(self) -> str:
        return self._compression.mode

    @interruptible
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        _refuse_traced(self.name, args)
        if Layout(args) != self._columns:
            raise InputError(
                f"{self.name} was prepared for arguments of other shapes or containers",
                f"{self.name}(f).prepare(...) at arguments of these shapes",
            )
        matrix = self._filled(args, self._kwargs | kwargs)
        ends = np.cumsum([Layout(arg).size for arg in args]).tolist()
        return self._split(matrix, [slice(start, end) for start, end in zip([0, *ends[:-1]], ends, strict=True)])

    def _filled(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The matrix over all arguments, as CSR."""
        from scipy.sparse import csr_array

        compression = self._compression
        pattern = compression.pattern
        forward, reverse = compression.counts
        by_columns = forward > 0 or not reverse
        random: Any = _random(pattern.shape[1 if by_columns else 0])[None] if self._options.check else None
        passes = Passes(self._options.chunk, nbytes=_BYTES)
        entries: Any = np.zeros(pattern.nnz, np.float16)  # until the dtype of the products is known
        checked: Any = None
        for is_reverse, count in ((False, forward), (True, reverse)):
            # The direction of the check goes along with the others.
            extra = random if random is not None and by_columns is not is_reverse else None
            if not count and extra is None:
                continue
            for start, products in self._products(args, kwargs, is_reverse, count, extra, passes):
                own = products[: count - start]
                if len(products) > len(own):
                    checked = products[-1]
                # Of one part after the other, so that never all products are there.
                entries = entries.astype(np.result_type(entries, products), copy=False)
                compression.fill(entries, own, start, is_reverse)
        if not compression.passes:
            entries = np.zeros(0)
        matrix = csr_array((entries, pattern.indices.copy(), pattern.indptr.copy()), pattern.shape)
        if checked is not None:

            def once_more(v: Any) -> Any:
                return (self._pushing(args, kwargs) if by_columns else self._pulling(args, kwargs, passes))(v)

            whole = matrix if by_columns else matrix.T.tocsr()
            is_within = functools.partial(self._is_within, args, kwargs)
            self._compare(whole, random[0], checked, once_more, is_within, by_columns)
        return matrix

    def _products(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        is_reverse: bool,
        count: int,
        extra: Any,
        passes: Passes,
    ) -> Iterator[tuple[int, Any]]:
        """The products with all directions, and with an `extra` one behind them: the first's number, and several."""
        compression = self._compression
        multiply = self._pulling(args, kwargs, passes) if is_reverse else self._pushing(args, kwargs)
        indicators = compression.seeds if is_reverse else compression.directions
        for start, stop in passes.sizes(count + (extra is not None), 8 * max(compression.pattern.shape)):
            directions = indicators(start, min(stop, count))
            if stop > count:
                directions = np.concatenate([directions, extra])
            products = passes.along(lambda v: [multiply(v)], directions)[0]
            self._check_products(products, compression.pattern.shape[1 if is_reverse else 0])
            yield start, products

    def _check_products(self, products: Any, size: int) -> None:
        if is_traced(products):
            raise _traced_error(self.name, "the function closes over a traced value")
        if products.shape[1] != size:
            raise InputError(
                f"the function of {self.name} returns {products.shape[1]} numbers now; its pattern has {size} rows",
                f"{self.name}(f).prepare(...) at this point",
            )

    def _is_within(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether the pattern that the function has at this point is a part of the one that is used."""
        pattern = self._compression.pattern
        try:
            found = self._found(args, kwargs)
        except RetrogradeError:
            return False
        width = pattern.shape[1]
        return bool(np.isin(found.rows() * width + found.indices, pattern.rows() * width + pattern.indices).all())

    def _found(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Pattern:
        raise NotImplementedError

    def _compare(
        self,
        matrix: Any,
        v: Any,
        product: Any,
        multiply: Callable[[Any], Any],
        is_within: Callable[[], bool],
        by_columns: bool,
    ) -> None:
        """Refuse a matrix whose product with a random direction is not that of the function, what `multiply` gives.

        Each line is measured by its own numbers, since lines may be of different units. Where what differs may be the
        rounding of terms that cancel, the pattern is found again to decide (`is_within`).
        """
        line = "row" if by_columns else "column"
        by_pattern = matrix @ v
        # Where the sum is not finite the entries themselves show it; where the product alone is not, one is missing.
        missing = np.isfinite(by_pattern) & ~np.isfinite(product)
        with np.errstate(invalid="ignore", divide="ignore"):
            difference = np.abs(by_pattern - product)
            scale = abs(matrix) @ np.abs(v)
            epsilon = np.finfo(product.dtype).eps
            # Rounding differs by far less; a missing entry by far more, unless it is nothing beside the others.
            allowed = epsilon**0.6 * scale
            wrong = missing | (difference > allowed)
            if wrong.any() and not missing.any():
                # Unless the function itself rounds by more: then the sum of two products is as far from one.
                part = np.where(np.arange(len(v)) % 2, v, v / 3)
                noise = np.abs(multiply(part) + multiply(v - part) - product)
                relative = _largest(noise / scale)
                wrong = difference > allowed + min(10 * relative, epsilon**0.4) * scale
                # Terms that cancel leave their rounding, of the size of that noise, or of derivatives of order one.
                small = epsilon**0.75 * max(_largest(scale), _largest(np.abs(v)))
                is_rounding = bool((difference[wrong] <= 1e3 * _largest(noise) + small).all())
                if wrong.any() and is_rounding:
                    # A function that draws random numbers gives another product each time.
                    again = np.abs(multiply(v) - product)
                    if (again <= 0.1 * difference + small)[wrong].all() and is_within():
                        return
        if not wrong.any():
            return
        worst = int(np.argmax(np.where(wrong, difference, -1)))
        count = int(wrong.sum())
        also = f", and {count - 1} {line}s more" if count > 1 else ""
        ways = (
            ("a larger sparsity=, or none: then it is found",)
            if self._options.sparsity is not None
            else (
                f"{self.name}(f).prepare(...) again at this point, if another branch was taken",
                "pattern='all', which holds whichever of its arguments np.maximum, np.where and the like choose",
                "the same value of f for the same argument, if it draws random numbers",
            )
        )
        raise SparsityError(
            f"the {self.what} has entries outside of its pattern in {line} {worst}{also}: "
            f"along a random direction it is {product[worst]:.6g}, by the pattern {by_pattern[worst]:.6g}",
            *ways,
        )


class SparseJacobian(PreparedSparse):
    name = "sparse_jacobian"
    what = "Jacobian"

    def _pattern(self, args: tuple[Any, ...]) -> Pattern:
        given = self._options.sparsity
        if given is None:
            return self._found(args, self._kwargs)
        rows = Layout(checked_output(pushforward(self._f, *args, **self._kwargs)[0], self.name))
        if len(args) == 1:
            return Pattern.of(given, (rows.size, self._columns.size), self.what)
        return Pattern.beside([Pattern.of(g, (rows.size, Layout(a).size), self.what) for g, a in _paired(given, args)])

    def _found(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Pattern:
        y, (indptr, indices) = _detected(self._f, args, kwargs, self._columns.size, self._options)
        rows = Layout(checked_output(y, self.name))
        return Pattern(indptr, indices, (rows.size, self._columns.size))

    def _compressed(self, pattern: Pattern) -> Compression:
        mode = self._options.mode
        if self._columns.dtype.kind == "c":
            if mode in ("reverse", "both"):
                raise InputError(f"mode={mode!r} is for real arguments", "mode='forward'")
            mode = "forward"
        return Compression.of_jacobian(pattern, mode)

    def _filled(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self._columns.dtype.kind == "c":
            check_holomorphic(
                lambda z: Layout(y := self._f(*self._columns.split(z), **kwargs)).join(y), (self._columns.join(args),)
            )
        try:
            return super()._filled(args, kwargs)
        except MissingRuleError:
            if self._options.mode != "auto" or not self._compression.counts[0]:
                raise
            # A rule without a pushforward: what is left is reverse mode.
            self._compression = Compression.of_jacobian(self._compression.pattern, "reverse")
            return super()._filled(args, kwargs)

    def _pushing(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Callable[[Any], Any]:
        columns = Layout(args)

        def push(v: Any) -> Any:
            y, y_dot = jvp(self._f, args, columns.seed(v), **kwargs)
            return Layout(y).join(y_dot)

        return push

    def _pulling(self, args: tuple[Any, ...], kwargs: dict[str, Any], passes: Passes) -> Callable[[Any], Any]:
        tape = Tape()
        y, back = pulled(tape, self._f, args, kwargs)
        passes.look_at(tape)
        columns, rows = Layout(args), Layout(y)
        if rows.dtype.kind == "c":
            raise InputError("mode='reverse' is for real functions; this one is complex", "mode='forward'")
        return lambda u: columns.join(back(rows.seed(u)))

    def _split(self, matrix: Any, places: list[slice]) -> Any:
        parts = tuple(matrix[:, place].asformat(self._options.format) for place in places)
        return parts[0] if len(parts) == 1 else parts


class SparseHessian(PreparedSparse):
    name = "sparse_hessian"
    what = "Hessian"

    def _found(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Pattern:
        # Second derivatives are those of the gradient. A linear part drops out: its pullback holds constants only.
        n, slopes = self._columns.size, self._gradient(kwargs, len(args))
        return Pattern(*_detected(slopes, args, {}, n, self._options)[1], (n, n)).symmetric()

    def _gradient(self, kwargs: dict[str, Any], n_args: int) -> Callable[..., Any]:
        slopes = grad(self._f, tuple(range(n_args)))
        return lambda *xs: slopes(*xs, **kwargs)

    def _pattern(self, args: tuple[Any, ...]) -> Pattern:
        if self._columns.dtype.kind == "c":
            raise InputError(
                "a real function of complex numbers has no complex Hessian",
                "sparse_hessian of a function of the real and the imaginary part, f(a + 1j * b)",
            )
        n, given = self._columns.size, self._options.sparsity
        if given is None:
            return self._found(args, self._kwargs)
        if len(args) > 1:
            sizes = [Layout(arg).size for arg in args]
            given_rows = [
                Pattern.beside([Pattern.of(g, (m, n), self.what) for g, n in zip(row, sizes, strict=True)])
                for row, m in zip((row for row, _ in _paired(given, args)), sizes, strict=True)
            ]
            pattern = Pattern.below(given_rows)
        else:
            pattern = Pattern.of(given, (n, n), self.what)
        symmetric = pattern.symmetric()
        if symmetric.nnz < pattern.nnz:
            raise InputError(
                f"sparsity= is not symmetric: {pattern.nnz - symmetric.nnz} entries have no mirror image",
                "sparsity + sparsity.T",
            )
        return pattern

    def _compressed(self, pattern: Pattern) -> Compression:
        return Compression.of_hessian(pattern)

    def _pushing(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Callable[[Any], Any]:
        columns, slopes = Layout(args), self._gradient(kwargs, len(args))
        backs: list[Callable[[Any], Any]] = []

        def push(v: Any) -> Any:
            if not backs:
                try:
                    return columns.join(jvp(slopes, args, columns.seed(v))[1])
                except MissingRuleError:
                    # A rule without a pushforward: what is left is reverse over reverse.
                    backs.append(pullback(slopes, *args)[1])
            return columns.join(backs[0](columns.seed(v)))

        return push

    def _split(self, matrix: Any, places: list[slice]) -> Any:
        form = self._options.format
        blocks = tuple(tuple(matrix[a, b].asformat(form) for b in places) for a in places)
        return blocks[0][0] if len(places) == 1 else blocks


def _detected(
    f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], n: int, options: SparseOptions
) -> tuple[Any, tuple[Any, Any]]:
    from retrograde.sparse.detect import detect  # the table of families, for those who use it

    return detect(f, args, kwargs, n, options.exact)


def _largest(numbers: Any) -> Any:
    """The largest of the finite ones among numbers that are not negative."""
    return np.max(numbers, initial=0, where=np.isfinite(numbers))


def _random(n: int) -> Any:
    """A direction of which no element is small, and the same each time."""
    rng = np.random.default_rng(n)
    return rng.uniform(0.5, 1.5, n) * rng.choice([-1.0, 1.0], n)


def _paired(given: Any, args: tuple[Any, ...]) -> list[tuple[Any, Any]]:
    """The patterns of several arguments, each with its argument."""
    if not isinstance(given, tuple | list) or len(given) != len(args):
        raise InputError(f"sparsity= needs one pattern for each of {len(args)} arguments, in a tuple")
    return list(zip(given, args, strict=True))


def _require_scipy(name: str) -> None:
    try:
        import scipy.sparse  # noqa: F401
    except ImportError:
        raise MissingExtraError(
            f"{name} makes a matrix of SciPy, which is not installed",
            "pip install '.[scipy]' in the folder of retrograde",
        ) from None


def _refuse_traced(name: str, args: tuple[Any, ...]) -> None:
    if any(is_traced(leaf) for leaf in flatten(args)[0]):
        raise _traced_error(name, "an argument is traced")


def _traced_error(name: str, fact: str) -> InputError:
    dense = name.removeprefix("sparse_")
    return InputError(
        f"{fact}, and the result of {name} is a sparse matrix of SciPy, which holds plain numbers",
        f"{dense}(f, x), jvp or hvp, which are differentiated themselves",
        "dropgrad(x), where the derivative of the matrix is not wanted",
    )
