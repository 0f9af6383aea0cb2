"""Reading a traced array by index."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from retrograde.trace.handle import FLOAT64, Traced, like_of, plain
from retrograde.trace.keys import fixed_key
from retrograde.trace.mutable import READ


def getitem(x: Traced, key: Any) -> Any:
    """`x[key]` for a key of any kind that NumPy knows."""
    if type(key) is not int:
        key = fixed_key(key)
    primal = x.primal
    y = primal[key]
    level = x.level
    if type(primal) is np.ndarray and primal.dtype is FLOAT64:
        node = (level.number(), READ, x.link, key, primal.shape, FLOAT64)
    else:
        node = (level.number(), READ, x.link, key, *like_of(primal))
    if level.quick:
        level.append(node)
        z = Traced()
        z.primal = y
        z.link = node
        z.level = level
        return z
    return level.follow(y, node)


def iterate(x: Traced) -> Iterator[Any]:
    """The elements along the first axis, as NumPy's iteration gives them."""
    for i in range(len(plain(x))):
        yield getitem(x, i)


setattr(Traced, "__getitem__", getitem)
setattr(Traced, "__iter__", iterate)
