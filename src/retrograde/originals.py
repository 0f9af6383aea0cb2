"""NumPy as our own code calls it: every function is NumPy's, whatever stands in its place for a while.

A program may put a function of its own in the place of one of NumPy's (`mock.patch("numpy.exp", mine)`), and gets it
where *it* asks for that function. A formula of ours that asks for the exponential means the exponential. Besides, while
a transform runs, NumPy's own module answers for some functions with stand-ins for lists of traced values
(trace/interception.py), which formulas do not need.
"""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
else:
    import numpy

    def _copy(module: ModuleType) -> Any:
        """A module of the same names."""
        twin = ModuleType(module.__name__, module.__doc__)
        vars(twin).update(vars(module))
        return twin

    np = _copy(numpy)
    for _name in ("linalg", "fft", "emath", "polynomial", "lib"):
        setattr(np, _name, _copy(getattr(numpy, _name)))
    np.lib.stride_tricks = _copy(numpy.lib.stride_tricks)

__all__ = ["np"]
