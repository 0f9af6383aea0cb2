"""The slope of a length y = |x|, which is x / y, and the second derivative at zero, which must not be lost.

Where x = 0 the slope is set to zero, and so x̄ = ȳ x / y is zero. Its own derivative there is ȳ / y, which no value at
the point itself tells: for |x|² it is 2, for |x| infinite. A rule that differentiated the zero which stands there would
say 0 to both. Here it is NaN or infinite, unless ȳ is a plain zero: then nothing depends on the length.
"""

from __future__ import annotations

from typing import Any

from retrograde.originals import np
from retrograde.rules.contractions import constant
from retrograde.rules.numpy_reductions import is_plain
from retrograde.rules.points import real
from retrograde.rules.products import along, somewhere, times
from retrograde.rules.table import applied, elementwise

# Where x is 0 nothing comes of a change of the ratio, though that be infinite or NaN.
elementwise(
    along,
    lambda b: b,
    applied(lambda a: a, lambda bar, a: times(a, bar)),
    at=[real(0.5, 1), real(0.5, 1)],
)


def over_length(bar: Any, x: Any, y: Any) -> Any:
    """`bar * x / y` for y = |x|: the cotangent of x from that of y, or the terms of ẏ from the tangent of x."""
    if is_plain(y):
        return times(bar / np.where(y == 0, np.inf, y), x)
    zero = constant(y) == 0
    if not somewhere(zero):
        return times(bar / y, x)
    unused = zero & (bar == 0) if is_plain(bar) else False
    return along(x, np.where(unused, 0.0, bar / np.where(unused, 1.0, y)))
