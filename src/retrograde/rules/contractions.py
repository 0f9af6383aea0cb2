"""Sums of products in which a zero cotangent counts as zero, whatever it is multiplied with.

Also the few words about matrices that the rules of linear algebra share.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from retrograde.originals import np
from retrograde.rules.dispatching import dispatched
from retrograde.rules.products import everything, everywhere, has_nan, somewhere, times
from retrograde.rules.table import no_gradient


def as_array(x: Any) -> Any:
    """An operand as something with a shape: NumPy takes lists and numbers wherever it takes arrays."""
    return x if hasattr(x, "shape") else np.asarray(x)


@dispatched
def constant(x: Any) -> Any:
    """The bare numbers of `x`, for decisions that a formula takes: no derivative comes back through them."""
    return x


no_gradient(constant, why="it is asked for numbers to decide by", reads=False)
no_gradient(everything, why="it is asked for numbers to decide by")


def contracted(contract: Callable[[Any, Any], Any], y_bar: Any, x: Any) -> Any:
    """`contract(y_bar, x)`, linear in both, where a zero of `y_bar` times an infinite or NaN `x` contributes zero.

    The plain contraction is kept unless it shows a NaN, since that is rare and the check is cheap.
    """
    x_bar = contract(y_bar, x)
    return without_zero_products(contract, x_bar, y_bar, x) if has_nan(x_bar) else x_bar


def without_zero_products(contract: Callable[..., Any], x_bar: Any, y_bar: Any, *factors: Any) -> Any:
    """`x_bar = contract(y_bar, *factors)` again, without the terms in which `y_bar` is zero and a factor is not finite.

    Costs two or three more contractions and no memory beyond them: such terms are left out of every element, and the
    elements to which another cotangent brings something infinite or NaN keep what they had.
    """
    finite = [np.isfinite(factor) for factor in factors]
    if all(everywhere(mask) for mask in finite) or not somewhere(y_bar == 0):
        return x_bar
    counts = np.where(y_bar == 0, 0.0, 1.0)
    terms = contract(counts, *(np.ones(np.shape(mask)) for mask in finite))
    finite_terms = contract(counts, *(np.where(mask, 1.0, 0.0) for mask in finite))
    cleaned = contract(y_bar, *(np.where(mask, x, 0.0) for mask, x in zip(finite, factors, strict=True)))
    return np.where(terms - finite_terms > 0.5, x_bar, cleaned)


def matmul(y_bar: Any, x: Any) -> Any:
    """`y_bar @ x`, where a zero of `y_bar` gives zero whatever it meets."""
    return contracted(np.matmul, y_bar, x)


def matmul_from_left(x: Any, y_bar: Any) -> Any:
    """`x @ y_bar`, likewise."""
    return contracted(_swapped_matmul, y_bar, x)


def _swapped_matmul(y_bar: Any, x: Any) -> Any:
    return np.matmul(x, y_bar)


def outer(y_bar: Any, x: Any) -> Any:
    """`y_bar[..., :, None] * x[..., None, :]`, likewise; the check is made on `x`, which is shorter."""
    column, row = y_bar[..., :, None], x[..., None, :]
    return column * row if everywhere(np.isfinite(x)) else times(column, row)
