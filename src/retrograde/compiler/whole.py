"""Functions of whole arrays that are called and not written out, and the rules of their derivatives.

A derivative of such a function is lowered from the source of its rule, as if the user had called that; see
lower/formulas.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograde.rules.numpy_spectral import svd
from retrograde.rules.table import RULES, General

# How the text calls a function, and the function whose rule it has.
FUNCTIONS: dict[str, Any] = {
    "np.linalg.solve": np.linalg.solve,
    "np.linalg.inv": np.linalg.inv,
    "np.linalg.det": np.linalg.det,
    "np.linalg.slogdet": np.linalg.slogdet,
    "np.linalg.cholesky": np.linalg.cholesky,
    "np.linalg.eigh": np.linalg.eigh,
    "np.linalg.svd": svd,
    "np.linalg.qr": np.linalg.qr,
    "np.linalg.pinv": np.linalg.pinv,
    # Their results are integers, which have no derivative.
    "np.argsort": np.argsort,
    "np.searchsorted": np.searchsorted,
}


def rule_of(name: str) -> General:
    """The rule of a function of the table."""
    rule = RULES[FUNCTIONS[name]]
    assert isinstance(rule, General), name
    return rule
