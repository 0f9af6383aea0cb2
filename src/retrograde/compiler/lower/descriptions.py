"""What messages call the values of a program that is being lowered."""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograde.compiler.known import Constant
from retrograde.compiler.lower.indexing import Indexing
from retrograde.compiler.lower.values import Bound, Closure, Object, Range


def describe(lower: Indexing, value: Any) -> str:
    if isinstance(value, Constant):
        v = value.value
        if v is None:
            return "None"
        if isinstance(v, str):
            return f"the text {v!r}"
        name, module = getattr(v, "__name__", ""), getattr(v, "__module__", None) or ""
        if callable(v) and name and module.split(".")[0] in ("numpy", "math", "scipy"):
            return f"{module.replace('numpy', 'np')}.{name}"
        if isinstance(v, np.ufunc):
            return f"np.{name}" if getattr(np, name, None) is v else f"scipy.special.{name}"
        return f"the object {name or type(v).__name__}"
    if isinstance(value, tuple):
        return "a tuple"
    if isinstance(value, Bound):
        return f"the method {value.name}"
    if isinstance(value, Closure):
        return f"the function {value.source.tree.name}"
    if isinstance(value, Object):
        return "a range" if isinstance(value, Range) else f"the {type(value).__name__.lower()} items of a loop"
    if lower.is_array(value):
        return f"an array of {len(lower.shape(value))} axes"
    return "a number"


__all__ = ["describe"]
