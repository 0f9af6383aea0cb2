"""What may be differentiated as a loss: one finite real number."""

from __future__ import annotations

import math
from typing import Any

from retrograde.errors import LossError, ScalarError
from retrograde.originals import np
from retrograde.rules.products import is_finite
from retrograde.trace.handle import HANDLES, MAPPED, Traced, contents, plain

# What else can be done with an output that is no loss, for transforms of a function and for `back`.
_WAYS = {
    False: ("jacobian(f, x)", "y, back = pullback(f, x); back(seed)"),
    True: ("back(y, y_bar), with a seed of the shape of y",),
}


def check_loss(y: Any, name: str) -> None:
    """Refuse what has no gradient; `name` is the transform that was called.

    Raises:
        ScalarError: `y` is not one real number.
        LossError: `y` is infinite or NaN.
    """
    value = y.primal if type(y) is Traced else y
    kind = type(value)
    if kind in HANDLES:
        value = plain(value)
        kind = type(value)
    is_mapped = kind in MAPPED
    if kind is not float and kind is not np.float64 and not (is_mapped and value.dtype.kind == "f" and not value.shape):
        _check_scalar(value, name)
    if is_mapped:
        _check_all(value, name)
    elif not math.isfinite(value):
        what = "NaN" if value != value else "infinite"
        raise LossError(
            f"{name} needs a finite loss; the loss is {what}",
            "look for the operation: np.seterr(all='raise') makes NumPy stop there",
            f"{_WAYS[name == 'back'][-1]}, which makes no such check",
        )


def _check_all(value: Any, name: str) -> None:
    """The same of the losses of all examples of a batch."""
    losses = contents(value)
    if is_finite(losses):
        return
    bad = np.flatnonzero(~np.isfinite(losses))
    if bad.size:
        what = "NaN" if np.isnan(losses.reshape(-1)[bad[0]]) else "infinite"
        raise LossError(
            f"{name} needs a finite loss; that of example {bad[0]} is {what}",
            "look for the operation: np.seterr(all='raise') makes NumPy stop there",
            f"{_WAYS[name == 'back'][-1]}, which makes no such check",
        )


def _check_scalar(value: Any, name: str) -> None:
    if type(value) is int:
        return  # however large
    is_back = name == "back"
    it_is = "y is" if is_back else "f returned"
    ways = _WAYS[is_back]
    shape = np.shape(value) if isinstance(value, np.ndarray | np.generic | float | int | complex) else None
    if shape is None:
        raise ScalarError(
            f"{name} needs a real scalar; {it_is} {_described(value)}", "return the loss alone from f", *ways
        )
    if shape != ():
        if np.size(value) == 1:
            ways = (f"take its one element, e.g. {'y' if is_back else 'f(x)'}.item()", *ways)
        reduction = f"reduce it, e.g. np.sum({'y' if is_back else 'f(x)'})"
        raise ScalarError(f"{name} needs a real scalar; {it_is} an array of shape {shape}", reduction, *ways)
    if np.iscomplexobj(value):
        raise ScalarError(
            f"{name} needs a real scalar; {it_is} the complex number {value}",
            "make it real, e.g. np.abs(y) ** 2",
            *ways,
        )
    if type(value) not in MAPPED and np.asarray(value).dtype.kind not in "fiub":
        raise ScalarError(f"{name} needs a real scalar; {it_is} {_described(value)}", *ways)


def _described(value: Any) -> str:
    return "None" if value is None else f"a {type(value).__name__}"
