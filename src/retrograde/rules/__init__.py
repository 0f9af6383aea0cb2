"""Owns the formulas: one rule a function, with the points at which it is tested.

Knows arrays; must not know tapes, tangents' levels, or which mode is running.
"""

from importlib import import_module
from pkgutil import iter_modules

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
