"""What may be differentiated as a loss: one finite real number."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from retrograde.errors import LossError, ScalarError
from retrograde.trace.handle import plain


def check_loss(y: Any, name: str) -> None:
    """Refuse what has no gradient.

    Raises:
        ScalarError: `y` is not one real number.
        LossError: `y` is infinite or NaN.
    """
    value = plain(y)
    kind = type(value)
    if kind is not float and kind is not np.float64:
        _check_scalar(value, name)
    if not math.isfinite(value):
        what = "NaN" if value != value else "infinite"
        raise LossError(
            f"{name} needs a finite loss; the loss is {what}",
            "look for the operation: np.seterr(all='raise') makes NumPy stop there",
            "y, back = pullback(f, x); back(1.0), which makes no such check",
        )


def _check_scalar(value: Any, name: str) -> None:
    shape = np.shape(value) if isinstance(value, np.ndarray | np.generic | float | int | complex) else None
    if shape is None:
        raise ScalarError(
            f"{name} needs a real scalar; f returned {_described(value)}",
            "return the loss alone from f",
            "y, back = pullback(f, x), whose y may be a container of arrays",
        )
    if shape != ():
        ways = ["reduce it, e.g. np.sum(f(x))", "jacobian(f, x)", "y, back = pullback(f, x); back(seed)"]
        if np.size(value) == 1:
            ways.insert(0, "take its one element, e.g. f(x).item() or np.sum(f(x))")
        raise ScalarError(f"{name} needs a real scalar; f returned an array of shape {shape}", *ways)
    if np.iscomplexobj(value):
        raise ScalarError(
            f"{name} needs a real scalar; f returned the complex number {value}",
            "make it real, e.g. np.abs(f(x)) ** 2 or np.real(f(x))",
            "y, back = pullback(f, x); back(seed)",
        )
    if np.asarray(value).dtype.kind not in "fiub":
        raise ScalarError(f"{name} needs a real scalar; f returned {_described(value)}")


def _described(value: Any) -> str:
    return "None" if value is None else f"a {type(value).__name__}"
