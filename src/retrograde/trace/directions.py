"""Directions: tangents as users give them, checked against the values that they belong to."""

from __future__ import annotations

from typing import Any

from retrograde.errors import SeedError
from retrograde.originals import np
from retrograde.trace.handle import is_traced, like_of, shape_of
from retrograde.trace.structure import flatten, is_variable, leaves_like, zero_like


def directions_of(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> list[Any]:
    """One tangent for each variable among the leaves of the primals."""
    if len(primals) != len(tangents):
        raise SeedError(f"{len(primals)} primals were given {len(tangents)} tangents", "one tangent for each primal")
    directions = []
    for primal, tangent in zip(primals, tangents, strict=True):
        leaves, structure = flatten(primal)
        if structure is None:
            dots = [tangent]
        elif tangent is None:
            dots = [None] * len(leaves)
        else:
            dots = leaves_like(tangent, primal, "tangent", "primal")
        directions += [_checked(dot, leaf) for dot, leaf in zip(dots, leaves, strict=True) if is_variable(leaf)]
    return directions


def _checked(dot: Any, primal: Any) -> Any:
    if dot is None:
        return zero_like(primal)
    if not is_traced(dot):
        dot = np.asarray(dot)[()]
    shape, dtype = like_of(primal)
    if shape_of(dot) != shape:
        raise SeedError(f"the tangent has shape {shape_of(dot)}; the primal has shape {shape}")
    have = like_of(dot)[1]
    if have.kind == "c" and dtype.kind != "c":
        raise SeedError(f"the tangent is complex; the primal is real ({dtype})", "np.real(tangent)")
    return dot if getattr(dot, "dtype", None) == dtype else dot.astype(dtype)
