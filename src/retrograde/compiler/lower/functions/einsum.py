"""Sums of products over named axes: `np.einsum`, and the products that are such."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograde.compiler import ops
from retrograde.compiler.known import Constant
from retrograde.compiler.lower.functions.arguments import as_array
from retrograde.compiler.lower.functions.registry import handles
from retrograde.compiler.lower.indexing import Indexing
from retrograde.compiler.types import INT, Operand


def contracted(lower: Indexing, names: Sequence[str], result: str, arrays: Sequence[Any]) -> Any:
    """The sum over all axes that the result does not have of the product of the arrays, whose axes have names."""
    arrays = [lower.force(a) if lower.is_array(a) else a for a in arrays]
    sizes: dict[str, Operand] = {}
    for letters, a in zip(names, arrays, strict=True):
        for letter, n in zip(letters, lower.shape(a), strict=True):
            if letter in sizes:
                lower.guard_equal(sizes[letter], n)
            sizes.setdefault(letter, n)
    summed = [letter for letter in sizes if letter not in result]
    inner = tuple(sizes[letter] for letter in summed)
    type = ops.common(*(lower.element_type(a) for a in arrays))
    type = INT if type.kind in "bu" else type

    def term(places: dict[str, Operand]) -> Operand:
        factors = [
            lower.element(a, tuple(places[letter] for letter in letters))
            for letters, a in zip(names, arrays, strict=True)
        ]
        product = factors[0]
        for factor in factors[1:]:
            product = lower.op("*", product, factor)
        return product

    def total(index: tuple[Operand, ...]) -> Operand:
        outer = dict(zip(result, index, strict=True))
        return lower.fold_sum(inner, lambda within: term(outer | dict(zip(summed, within, strict=True))))

    shape = tuple(sizes[letter] for letter in result)
    if not shape:
        return total(())
    made = lower.alloc("w", shape, type)
    lower.nest(shape, lambda index: lower.store(made, index, total(index)))
    return made


def einsum(lower: Indexing, args: list[Any]) -> Any:
    """`np.einsum("ij,jk->ik", a, b)`."""
    text = args[0].value if args and isinstance(args[0], Constant) else None
    if not isinstance(text, str):
        raise lower.refuse("np.einsum without a text in front", 'np.einsum("ij,jk->ik", a, b)')
    left, arrow, result = text.replace(" ", "").partition("->")
    names, arrays = left.split(","), [as_array(lower, a) for a in args[1:]]
    if "." in text:
        raise lower.refuse("... in np.einsum", "names for all axes")
    if not arrow:
        letters = left.replace(",", "")
        result = "".join(sorted(x for x in set(letters) if letters.count(x) == 1))
    if len(names) != len(arrays) or any(len(x) != len(lower.shape(a)) for x, a in zip(names, arrays, strict=False)):
        raise lower.refuse(f"np.einsum of {text!r} with arrays of other numbers of axes")
    if len(set(result)) < len(result) or not set(result) <= set(left):
        raise lower.refuse(f"{result!r} as the axes of a result of np.einsum")
    return contracted(lower, names, result, arrays)


@handles(np.tensordot)
def tensordot(lower: Indexing, a: Any, b: Any, axes: Any = 2) -> Any:
    a, b = as_array(lower, a), as_array(lower, b)
    n, m = len(lower.shape(a)), len(lower.shape(b))
    pairs: list[Any] = [(None, None)]
    if type(axes) is int:
        pairs = [(n - axes + k, k) for k in range(axes)]
    elif isinstance(axes, tuple) and len(axes) == 2:
        left, right = (x if isinstance(x, tuple) else (x,) for x in axes)
        pairs = list(zip(left, right, strict=True))
    if any(type(i) is not int or type(j) is not int for i, j in pairs):
        raise lower.refuse("axes of np.tensordot that are not written as numbers", "axes=1, axes=((1,), (0,))")
    of_a, of_b = list(_LETTERS[:n]), list(_LETTERS[n : n + m])
    for i, j in pairs:
        of_b[j] = of_a[i]
    kept = [x for x in (*of_a, *of_b) if not (x in of_a and x in of_b)]
    return contracted(lower, ["".join(of_a), "".join(of_b)], "".join(kept), [a, b])


@handles(np.inner)
def inner(lower: Indexing, a: Any, b: Any) -> Any:
    a, b = as_array(lower, a), as_array(lower, b)
    if not lower.shape(a) or not lower.shape(b):
        return lower.elementwise("*", a, b)
    return tensordot(lower, a, b, ((-1,), (-1,)))


_LETTERS = "abcdefghijklmnopqrstuvwxyz"
