"""Elements chosen by conditions and bounds."""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograde.compiler.lower.functions.arguments import as_array
from retrograde.compiler.lower.functions.registry import call_function, handles, truth
from retrograde.compiler.lower.indexing import Indexing


@handles(np.where)
def where(lower: Indexing, condition: Any, x: Any = None, y: Any = None) -> Any:
    if x is None and y is None:
        return call_function(lower, np.nonzero, [condition], {})
    return lower.elementwise("where", truth(lower, as_array(lower, condition)), as_array(lower, x), as_array(lower, y))


@handles(np.heaviside)
def heaviside(lower: Indexing, x1: Any, x2: Any) -> Any:
    x = as_array(lower, x1)
    step = lower.elementwise("where", lower.elementwise("<", x, 0.0), 0.0, 1.0)
    step = lower.elementwise("where", lower.elementwise("np.isnan", x), np.nan, step)
    return lower.elementwise("where", lower.elementwise("==", x, 0.0), as_array(lower, x2), step)


@handles(np.nan_to_num)
def nan_to_num(
    lower: Indexing, x: Any, copy: Any = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None
) -> Any:
    if copy is not True:
        raise lower.refuse("np.nan_to_num in place", "x[:] = np.nan_to_num(x)")
    x = as_array(lower, x)
    limits = np.finfo(lower.element_type(x).dtype if lower.element_type(x).is_inexact else float)
    high = float(limits.max) if posinf is None else posinf
    low = float(limits.min) if neginf is None else neginf
    found = lower.elementwise("where", lower.elementwise("np.isnan", x), nan, x)
    found = lower.elementwise("where", lower.elementwise("==", x, np.inf), high, found)
    return lower.elementwise("where", lower.elementwise("==", x, -np.inf), low, found)


@handles(np.clip, methods="clip")
def clip(lower: Indexing, a: Any, a_min: Any = None, a_max: Any = None) -> Any:
    if a_min is not None:
        a = lower.elementwise("np.maximum", a, a_min)
    if a_max is not None:
        a = lower.elementwise("np.minimum", a, a_max)
    return a
