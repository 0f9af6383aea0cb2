"""What Taylor mode asks of a rule beside its formulas."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from retrograde.originals import np
from retrograde.rules.table import Elementwise
from retrograde.trace.handle import HANDLES

AFFINE = frozenset({np.sum, np.add.reduce})
"""Functions whose rules are `general` for the sake of an argument, and which are linear but for a constant."""

MULTILINEAR = frozenset({np.einsum})
"""Functions whose rules are `general`, for the sake of an argument, and which are products."""


@functools.cache
def parameters_of(partial: Callable[..., Any]) -> tuple[str, ...]:
    """What a partial derivative is made of: `y` the result, `a`, `b`, `c` the operands."""
    return tuple("a" if name == "x" else name for name in inspect.signature(partial).parameters)


@functools.cache
def has_constant_partials(rule: Elementwise, active: tuple[bool, ...]) -> bool:
    """Whether the partial derivatives in the active arguments are made of the others alone, as those of a sum are."""
    constants = {name for name, is_active in zip("abc", active, strict=False) if not is_active}
    return all(
        not callable(partial) or constants.issuperset(parameters_of(partial))
        for partial, is_active in zip(rule.partials, active, strict=True)
        if is_active
    )


def constant_partial(partial: Any, values: dict[str, Any]) -> Any:
    """A partial derivative that is made of constant operands; `values` are theirs."""
    return partial(*(values[name] for name in parameters_of(partial))) if callable(partial) else partial


# Integer exponents up to this are products of squares; beyond, a zero base is left to the partial derivatives.
_MOST = 1 << 10


def is_natural(exponent: Any) -> bool:
    """Whether a power is a product: of one whole number, which no transform differentiates."""
    if type(exponent) in HANDLES or np.ndim(exponent):
        return False
    return bool(0 <= np.real(exponent) <= _MOST and exponent == np.rint(np.real(exponent)))


def repeated_product(x: Any, n: int, product: Callable[[Any, Any], Any]) -> Any:
    """xⁿ for n > 0, by squares, so that no zero of x disturbs it."""
    result = None
    while True:
        if n & 1:
            result = x if result is None else product(result, x)
        n >>= 1
        if not n:
            return result
        x = product(x, x)
