"""Code of other packages that makes arrays: whether these are to be ready for traced values.

What such code makes it may hand to compiled code, which wants a real array; or it may fill it with traced values. It
does the latter only where traced values have come to it: as arguments, or in the attributes of its objects.
"""

from __future__ import annotations

from types import FrameType, ModuleType
from typing import Any

from retrograde.trace.callers import package_of
from retrograde.trace.handle import HANDLES

# Whose compiled code checks for arrays by their type; and this package.
_PLAIN = frozenset({"retrograde", "numba", "matplotlib", "torch", "jax", "optree"})
# Which are half compiled, half Python on NumPy.
MIXED = frozenset({"numpy", "scipy", "sklearn", "statsmodels", "pandas"})


def wants_plain_arrays(frame: FrameType) -> bool:
    """Whether the code that a frame runs should get the plain arrays that it makes."""
    package = package_of(frame)
    if package in _PLAIN:
        return True
    # numpy.polynomial is plain Python that fills arrays.
    name: str = frame.f_globals.get("__name__", "")
    return package in MIXED and not name.startswith("numpy.polynomial.") and not _sees_traced(frame)


def _sees_traced(frame: FrameType | None) -> bool:
    """Whether a traced value has come to the code of a package, or to that of the package which called it."""
    package = None if frame is None else package_of(frame)
    while frame is not None and package_of(frame) == package:
        if any(_holds_traced(value) for value in frame.f_locals.values()):
            return True
        frame = frame.f_back
    return False


def _holds_traced(value: Any, inside: bool = True) -> bool:
    kind = type(value)
    if kind in HANDLES:
        return value.level.depth >= 0
    if kind is list or kind is tuple:
        return any(_holds_traced(item, False) for item in value)
    if not inside or isinstance(value, ModuleType | type):
        return False
    if kind is dict or kind.__module__.partition(".")[0] in MIXED:
        held = value if kind is dict else getattr(value, "__dict__", {})
        return any(_holds_traced(item, False) for item in tuple(held.values()))
    return False
