"""Elements chosen by conditions and bounds."""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograde.compiler.lower.functions.arguments import as_array
from retrograde.compiler.lower.functions.registry import handles, truth
from retrograde.compiler.lower.indexing import Indexing


@handles(np.where)
def where(lower: Indexing, condition: Any, x: Any = None, y: Any = None) -> Any:
    if x is None or y is None:
        raise lower.refuse("np.where with one argument", "a mask, or a loop with an if")
    return lower.elementwise("where", truth(lower, as_array(lower, condition)), as_array(lower, x), as_array(lower, y))


@handles(np.clip, methods="clip")
def clip(lower: Indexing, a: Any, a_min: Any = None, a_max: Any = None) -> Any:
    if a_min is not None:
        a = lower.elementwise("np.maximum", a, a_min)
    if a_max is not None:
        a = lower.elementwise("np.minimum", a, a_max)
    return a
