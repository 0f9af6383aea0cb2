"""Functions that other modules imported by name (`from numpy import asarray`), found and taken over.

What is taken over as an attribute of its module is still the original where it was bound by name before. In modules of
installed packages the stand-in takes its place for good, when the first transform finds it: there are a hundred of
them where SciPy is in use, and to go there and back would cost as much as a transform; outside of transforms the
stand-in is the original and one question. In the user's own modules it stands only while a transform runs.
"""

from __future__ import annotations

import operator
import sys
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple

from retrograde.errors import is_in_package, is_installed_file

Names = dict[str, Any]

# Packages that have their own opinion of these functions: NumPy, whose code our rules call; compilers, which look at
# globals; other tools that differentiate.
_NEVER = frozenset(
    "retrograde numpy numba llvmlite jax jaxlib torch tensorflow autograd mygrad dask cupy pytest _pytest".split()
)
# Modules that are taken over by a table of their own, or belong to one.
_ELSEWHERE = ("scipy.special", "scipy.fft")

looked_at: tuple[int, Any] = (0, None)
"""How many modules there were when they were looked at, and the youngest: what is cheap to compare."""
_seen: dict[str, Any] = {}
_looking = threading.Lock()


class Own(NamedTuple):
    """A module of the user's own, prepared so that a transform calls nothing in Python for it."""

    names: Names
    # The stand-ins and the originals, by the names that the module has for them.
    table: Names
    before: Names
    # What stands there unless the user has changed it, and how that is seen.
    values: tuple[Any, ...]
    read: Callable[[Names], tuple[Any, ...]]


own: list[Own] = []
"""The user's modules that bound such functions."""


def look(originals: dict[int, Callable[..., Any]], again: bool = False) -> None:
    """Take over what modules that are new since the last look have bound.

    Args:
        originals: the stand-ins, by the identity of what they stand for.
        again: look at all modules, since there are new stand-ins.
    """
    global looked_at
    with _looking:
        if again:
            _seen.clear()
            own.clear()
        looked_at = len(sys.modules), next(reversed(sys.modules.values()))
        for name, module in tuple(sys.modules.items()):
            if _seen.get(name) is module or not _is_ready(module):
                continue
            _seen[name] = module
            if name.partition(".")[0] not in _NEVER and not name.startswith(_ELSEWHERE):
                _take_over(module, originals)


def _is_ready(module: Any) -> bool:
    spec = getattr(module, "__spec__", None)
    return isinstance(module, ModuleType) and not getattr(spec, "_initializing", False)


def _take_over(module: ModuleType, originals: dict[int, Callable[..., Any]]) -> None:
    names = vars(module)
    found = tuple([name for name, value in tuple(names.items()) if id(value) in originals])
    if not found:
        return
    path = str(getattr(module, "__file__", None))
    if is_in_package(path):
        names.update({name: originals[id(names[name])] for name in found})
    elif not is_installed_file(path):
        before = {name: names[name] for name in found}
        # Twice, so that it is a tuple of one name, too.
        read = operator.itemgetter(*found, found[0])
        own.append(Own(names, {n: originals[id(f)] for n, f in before.items()}, before, read(names), read))
    # Python's own library is left alone: its random numbers are no differentiable functions of their parameters.
