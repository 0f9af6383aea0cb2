"""Patterns that a user declares of a function of his own."""

from __future__ import annotations

from typing import Any

from retrograde.errors import InputError
from retrograde.originals import np
from retrograde.sparse.families import Case, aligned, leaves, map_tree
from retrograde.sparse.pattern import Pattern
from retrograde.sparse.sets import Numbers
from retrograde.trace.handle import plain


def declared(case: Case, sparsity: Any) -> Any:
    """The numbers of the result by what was declared: "elementwise", or a formula that gives patterns (see primitive).

    Raises:
        InputError: what was declared does not fit the call.
    """
    label = case.binding.rule.label
    parts = [np.shape(plain(part)) for part in leaves(case.binding.y)]
    if sparsity == "elementwise":
        shapes = [np.shape(plain(x)) for x in leaves(list(case.binding.args))]
        if not _are_elementwise(shapes, parts):
            raise InputError(
                f"the primitive {label} is declared elementwise; of shapes {shapes} it made {parts}",
                f"{label}.defsparsity(lambda out, *args: ...), a pattern for each argument",
            )
        return aligned(case)
    args = [map_tree(plain, x) for x in case.binding.args]
    patterns = sparsity(map_tree(plain, case.binding.y), *args, **case.binding.kwargs)
    if not isinstance(patterns, tuple) or len(patterns) != len(args):
        raise InputError(
            f"the sparsity of {label} returned no tuple of {len(args)} patterns, one for each argument",
            "None in the place of an argument that nothing depends on",
        )
    rows = sum(int(np.prod(shape)) for shape in parts)
    united: Numbers = np.zeros(rows, int)
    for pattern, numbers in zip(patterns, case.numbers, strict=True):
        if pattern is None or numbers is None:
            continue
        members = np.concatenate([np.ravel(part) for part in leaves(numbers)])
        found = Pattern.of(pattern, (rows, len(members)), f"pattern of an argument of {label}")
        united = case.sets.union(united, case.sets.grouped(members[found.indices], found.rows(), rows))
    ends = np.cumsum([int(np.prod(shape)) for shape in parts]).tolist()
    split = [united[end - int(np.prod(shape)) : end].reshape(shape)[()] for end, shape in zip(ends, parts, strict=True)]
    return split if isinstance(case.binding.y, tuple | list) else split[0]


def _are_elementwise(shapes: list[tuple[int, ...]], parts: list[tuple[int, ...]]) -> bool:
    try:
        shape = np.broadcast_shapes(*shapes)
    except ValueError:
        return False
    return all(part == shape for part in parts)
