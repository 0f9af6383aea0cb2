"""`np.einsum` in both of its forms: an operand's cotangent is an einsum of y's cotangent and the other operands."""

from __future__ import annotations

import math
import string
from functools import lru_cache
from typing import Any

from retrograde.originals import np
from retrograde.rules.contractions import without_zero_products
from retrograde.rules.numpy_indexing import scatter
from retrograde.rules.points import call, complex_, real
from retrograde.rules.products import conj, has_nan, unbroadcast
from retrograde.rules.table import general

_LETTERS = string.ascii_uppercase + string.ascii_lowercase  # in the order in which NumPy sorts an implicit output
_WORTH_PLANNING = 2**17  # multiplications from which a plan that uses BLAS pays for itself


@lru_cache(maxsize=1024)
def explicit(subscripts: str, ndims: tuple[int, ...]) -> tuple[tuple[str, ...], str]:
    """The labels of each operand and of the output, with a letter for every dimension of an ellipsis.

    >>> explicit("...i,ij", (2, 2))
    (('zi', 'ij'), 'zj')
    """
    subscripts = subscripts.replace(" ", "")
    left, arrow, right = subscripts.partition("->")
    spare = [letter for letter in _LETTERS if letter not in subscripts]
    inputs, longest = [], ""
    for labels, ndim in zip(left.split(","), ndims, strict=True):
        if "..." in labels:
            count = ndim - (len(labels) - 3)
            ellipsis = "".join(spare[len(spare) - count :])
            longest = max(longest, ellipsis, key=len)
            labels = labels.replace("...", ellipsis)
        inputs.append(labels)
    if arrow:
        return tuple(inputs), right.replace("...", longest)
    every = "".join(inputs)
    once = sorted(label for label in set(every) if every.count(label) == 1 and label not in longest)
    return tuple(inputs), longest + "".join(once)


def _sublist(labels: Any) -> str:
    return "".join("..." if label is Ellipsis else _LETTERS[int(label)] for label in labels)


def read(operands: tuple[Any, ...]) -> tuple[str, list[int]]:
    """The subscripts as a string, and the places of the arrays among the arguments, in either form of the call."""
    if isinstance(operands[0], str):
        return operands[0], list(range(1, len(operands)))
    places = list(range(0, len(operands) - 1, 2))
    subscripts = ",".join(_sublist(operands[place + 1]) for place in places)
    if len(operands) % 2:
        subscripts += "->" + _sublist(operands[-1])
    return subscripts, places


def einsum_pullback(y: Any, *operands: Any, optimize: Any = False) -> Any:
    """Sum y_bar times the other operands over the labels that this one does not have.

    A label that only this operand has was summed, so that its cotangent is repeated along it; a label that it has
    twice means its diagonal; where it was broadcast along a label, its cotangent is summed along it.

    Returns: y_bar -> a cotangent for each argument that is an array, `None` in the places of subscripts.
    """
    subscripts, places = read(operands)
    inputs, output = explicit(subscripts, tuple(np.ndim(operands[place]) for place in places))
    # A path was found for the operands in their order; the cotangent stands last, so that it has to be found again.
    plan = optimize if isinstance(optimize, (bool, str)) else True

    def pull(y_bar: Any) -> tuple[Any, ...]:
        bars: list[Any] = [None] * len(operands)
        for k, place in enumerate(places):
            bars[place] = lambda k=k: operand_bar(y_bar, k)
        return tuple(bars)

    def operand_bar(y_bar: Any, k: int) -> Any:
        shape, labels = np.shape(operands[places[k]]), "".join(dict.fromkeys(inputs[k]))
        others = [conj(operands[place]) for place in places[:k] + places[k + 1 :]]
        sources = (output, *inputs[:k], *inputs[k + 1 :])
        found = "".join(label for label in labels if any(label in source for source in sources))
        lengths = dict(zip(inputs[k], shape, strict=True))

        x_bar = _contract(f"{','.join(sources)}->{found}", plan, y_bar, others)
        x_bar = unbroadcast(x_bar, tuple(1 if lengths[label] == 1 else n for label, n in zip(found, x_bar.shape)))
        if len(found) < len(labels):
            have = iter(x_bar.shape)
            x_bar = np.reshape(x_bar, [next(have) if label in found else 1 for label in labels])
        wanted = tuple(lengths[label] for label in labels)
        if x_bar.shape != wanted:
            x_bar = np.broadcast_to(x_bar, wanted)
        return x_bar if len(labels) == len(inputs[k]) else _on_diagonal(x_bar, labels, inputs[k], shape)

    return pull


def _contract(subscripts: str, plan: bool | str, y_bar: Any, others: list[Any]) -> Any:
    if plan is False and len(others) == 1:
        # NumPy does not plan a product of two unless asked to, which is many times slower for large arrays that are
        # summed over, and twice as fast for others.
        inputs, output = subscripts.split("->")
        is_sum = not set(inputs) <= {*output, ","}
        plan = is_sum and math.prod(np.shape(y_bar)) * math.prod(np.shape(others[0])) > _WORTH_PLANNING

    def contract(*factors: Any) -> Any:
        return np.einsum(subscripts, *factors, optimize=plan)

    x_bar = contract(y_bar, *others)
    if type(y_bar) is np.ndarray and 8 * y_bar.size < np.size(x_bar) and np.all(y_bar):
        return x_bar  # where no cotangent is zero there is nothing to look for
    return without_zero_products(contract, x_bar, y_bar, *others) if has_nan(x_bar) else x_bar


def _on_diagonal(x_bar: Any, labels: str, repeated: str, shape: tuple[int, ...]) -> Any:
    """Zeros of `shape`, with x_bar, which has an axis for each of `labels`, where all axes of a label agree."""
    grid = np.ix_(*(np.arange(n) for n in x_bar.shape))
    return scatter(x_bar, tuple(grid[labels.index(label)] for label in repeated), shape)


def einsum_pushforward(y: Any, *operands: Any, optimize: Any = False) -> Any:
    def push(*dots: Any) -> Any:
        y_dot: Any = None
        # Behind the subscripts, or with a list of subscripts behind each of them.
        places = range(1, len(operands)) if isinstance(operands[0], str) else range(0, len(operands) - 1, 2)
        for k, x_dot in enumerate(dots):
            if x_dot is not None:
                others = [j for j in places if j != k]

                def product(x_dot: Any, *factors: Any, k: int = k, others: list[int] = others) -> Any:
                    members = list(operands)
                    for j, x in zip((k, *others), (x_dot, *factors), strict=True):
                        members[j] = x
                    return np.einsum(*members, optimize=optimize)

                factors = [operands[j] for j in others]
                term = product(x_dot, *factors)
                if has_nan(term):
                    term = without_zero_products(product, term, x_dot, *factors)
                y_dot = term if y_dot is None else y_dot + term
        return y_dot

    return push


general(
    np.einsum,
    pullback=einsum_pullback,
    pushforward=einsum_pushforward,
    args=slice(0, None),  # all positions that a call has
    at=[
        call("ij,jk->ik", complex_(-1, 1, 2, 3), complex_(-1, 1, 3, 2)),
        call("ij,jk", real(-1, 1, 2, 3), real(-1, 1, 3, 2)),
        call("ba", complex_(-1, 1, 2, 3)),
        call("ii", real(-1, 1, 3, 3)),
        call("ii->i", complex_(-1, 1, 3, 3)),
        call("iji->j", real(-1, 1, 2, 3, 2)),
        call("iji,j->i", complex_(-1, 1, 2, 3, 2), complex_(-1, 1, 3)),
        call("ij->i", real(-1, 1, 2, 3)),
        call("ij->", real(-1, 1, 2, 3)),
        call("ij,k->k", real(-1, 1, 2, 3), real(-1, 1, 2)),
        call("i,j,k->ki", complex_(-1, 1, 2), complex_(-1, 1, 3), complex_(-1, 1, 2)),
        call("ij,jk,kl->il", real(-1, 1, 2, 3), real(-1, 1, 3, 2), real(-1, 1, 2, 2), optimize=True),
        call("i,i->i", real(-1, 1, 3), real(-1, 1, 3), optimize="optimal"),
        call("ij,jk,k->i", *(real(-1, 1, 2, 2),) * 2, real(-1, 1, 2), optimize=["einsum_path", (1, 2), (0, 1)]),
        call("...ij,...jk", real(-1, 1, 2, 1, 2, 3), real(-1, 1, 4, 3, 2)),
        call("i...,i->...", real(-1, 1, 3, 2), real(-1, 1, 3)),
        call("...,...", real(-1, 1), complex_(-1, 1, 2, 3)),
        call("...ii->...", real(-1, 1, 2, 3, 3)),
        call("ij,ij->", real(-1, 1, 2, 3), real(-1, 1, 1, 3)),
        call("ij,ij->ij", real(-1, 1, 2, 1), real(-1, 1, 2, 3)),
        call(",ij", real(-1, 1), real(-1, 1, 2, 3)),
        call(complex_(-1, 1, 2, 3), [0, 1], complex_(-1, 1, 3, 2), [1, 2], [2, 0]),
        call(real(-1, 1, 2, 3), [Ellipsis, 7], real(-1, 1, 3), [7]),
    ],
)
