"""Functions of Python's `math` that NumPy does not have."""

from __future__ import annotations

import math
from typing import Any

from retrograde.errors import MissingExtraError
from retrograde.originals import np
from retrograde.rules.points import real
from retrograde.rules.table import elementwise


def _digamma(x: Any) -> Any:
    try:
        from scipy.special import digamma
    except ImportError:
        raise MissingExtraError(
            "the derivatives of math.gamma and math.lgamma are made of SciPy's digamma, and SciPy is not installed",
            "pip install '.[scipy]' in the folder of retrograde",
        ) from None
    return digamma(x)


elementwise(math.erf, lambda x: 2 / math.sqrt(math.pi) * np.exp(-x * x), at=[real(-2, 2)])
elementwise(math.erfc, lambda x: -2 / math.sqrt(math.pi) * np.exp(-x * x), at=[real(-2, 2)])
elementwise(math.gamma, lambda y, x: y * _digamma(x), at=[real(0.5, 4)])
elementwise(math.lgamma, lambda x: _digamma(x), at=[real(0.5, 4)])
