"""Functions of arrays in scipy.special, by their names: SciPy is not imported for them."""

from __future__ import annotations

from typing import Any

from retrograde.compiler.lower.functions.arguments import as_array
from retrograde.compiler.lower.functions.reductions import array_max, array_sum, reduced
from retrograde.compiler.lower.functions.registry import handles_special
from retrograde.compiler.lower.indexing import Indexing
from retrograde.compiler.types import Operand


@handles_special
def logsumexp(lower: Indexing, a: Any, axis: Any = None, b: Any = None, keepdims: Any = False) -> Any:
    """log Σ exp a, with a shift by the largest that has no derivative."""
    if b is not None:
        raise lower.refuse("logsumexp with weights", "logsumexp(a + np.log(b)), for positive ones")

    def fold(shape: Any, element: Any) -> Operand:
        largest = _shift(lower, lower.fold_extreme(">", shape, lambda index: lower.value_only(element(index))))
        total = lower.fold_sum(shape, lambda index: lower.op("np.exp", lower.op("-", element(index), largest)))
        return lower.op("+", lower.op("np.log", total), largest)

    return reduced(lower, a, axis, keepdims, fold)


@handles_special
def softmax(lower: Indexing, x: Any, axis: Any = None) -> Any:
    x = as_array(lower, x)
    values = lower.elementwise("value", x)
    largest = array_max(lower, values, axis, True)
    largest = lower.elementwise("where", lower.elementwise("np.isfinite", largest), largest, 0.0)
    raised = lower.force(lower.elementwise("np.exp", lower.elementwise("-", x, largest)))
    return lower.elementwise("/", raised, array_sum(lower, raised, axis, True))


@handles_special
def log_softmax(lower: Indexing, x: Any, axis: Any = None) -> Any:
    x = as_array(lower, x)
    return lower.elementwise("-", x, logsumexp(lower, x, axis, keepdims=True))


def _shift(lower: Indexing, largest: Operand) -> Operand:
    """The largest element, unless it is infinite."""
    return lower.value_only(lower.op("where", lower.op("np.isfinite", largest), largest, 0.0))
