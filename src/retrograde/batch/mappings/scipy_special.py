"""SciPy's special functions that are no ufuncs, and our own functions that their derivatives are written with."""

from __future__ import annotations

import functools
from typing import Any

from retrograde.batch.arguments import array, behind
from retrograde.batch.mappings.elementwise import elementwise
from retrograde.batch.table import Mapping, mapped
from retrograde.originals import np
from retrograde.rules import load_scipy
from retrograde.rules.scipy_special_dispatch import named
from retrograde.rules.scipy_special_elliptic import carlson
from retrograde.rules.scipy_special_slopes import slope
from retrograde.rules.table import RULES, General

load_scipy()


@mapped(slope, carlson)
def _after_two(function: Any, level: Any, first: Any, second: Any, *args: Any) -> Any:
    """Elementwise in the arguments behind the first two, which say what is computed."""
    return elementwise(functools.partial(function, first, second), level, *args)


for _function, _rule in list(RULES.items()):
    # Under these names there are functions for several kinds of Bessel functions.
    if isinstance(_rule, General) and _rule.name in {"spherical", "harmonic", "assoc_legendre"}:
        mapped(_function)(elementwise)

for _name in ("multigammaln", "lambertw"):
    if named(_name) is not None:
        mapped(named(_name))(elementwise)


def _softmax(function: Any, level: Any, x: Any, axis: Any = None) -> Any:
    return function(x.primal, tuple(range(1, x.ndim + 1)) if axis is None else behind(axis, x.ndim))


def _logsumexp(
    function: Any,
    level: Any,
    a: Any,
    axis: Any = None,
    b: Any = None,
    keepdims: bool = False,
    return_sign: bool = False,
) -> Any:
    a = array(a)
    ndim = max(a.ndim, 0 if b is None else np.ndim(b))
    axes = tuple(range(1, ndim + 1)) if axis is None else behind(axis, ndim)
    if not level.holds(a):
        a = level.wrap(level.each(a))
    return function(
        level.aligned(a, ndim),
        axes,
        None if b is None else level.aligned(b, ndim),
        keepdims=keepdims,
        return_sign=return_sign,
    )


mapped(named("softmax"), named("log_softmax"))(_softmax)
mapped(named("logsumexp"))(_logsumexp)

__all__ = ["Mapping"]
