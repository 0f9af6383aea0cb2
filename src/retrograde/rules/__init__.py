"""Owns the formulas: one rule a function, with the points at which it is tested.

Knows arrays; must not know tapes, tangents' levels, or which mode is running.
"""

import functools
import sys
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from retrograde.rules.table import RULES, Rule

_NAMES = [module.name for module in iter_modules(__path__)]

for _name in _NAMES:
    if not _name.startswith("scipy_"):
        import_module(f"{__name__}.{_name}")


@functools.cache
def load_scipy() -> None:
    """Add the rules of SciPy's functions, which import SciPy. Repeating it costs nothing."""
    for name in _NAMES:
        if name.startswith("scipy_"):
            import_module(f"{__name__}.{name}")


def find(function: Any) -> Rule | None:
    """The rule of a function, for which SciPy's rules are loaded if it may be one of SciPy's."""
    rule = RULES.get(function)
    if rule is None and "scipy.special" in sys.modules:
        load_scipy()
        rule = RULES.get(function)
    return rule
