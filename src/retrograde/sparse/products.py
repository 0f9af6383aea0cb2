"""Sums of products: an element depends on what stands in a term whose other factors are not zero for good.

A factor is zero for good where it is constant and zero in this run: the zeros of a stencil matrix do not count.
All products are told as an einsum, whose labels say which elements meet.
"""

from __future__ import annotations

import math
import string
from collections.abc import Callable, Sequence
from typing import Any

from retrograde.originals import np
from retrograde.rules.numpy_einsum import explicit, read
from retrograde.sparse.families import Case, Family, core
from retrograde.sparse.sets import Numbers, Sets
from retrograde.trace.handle import plain
from retrograde.trace.sparse_matrices import lines


def einsum(case: Case) -> Any:
    subscripts, places = read(case.binding.args)
    operands = [_factor(case, case.binding.args[place], place) for place in places]
    labels, output = explicit(subscripts, tuple(np.ndim(factor.numbers) for factor in operands))
    return contracted(case.sets, labels, output, operands)


def by_rows(case: Case) -> Any:
    """A sparse matrix times an array: of the stored numbers, zeros or not. Exact."""
    indices, indptr = case.binding.args[1:3]
    return _stored(case, lines(indptr), np.asarray(indices))


def by_columns(case: Case) -> Any:
    """Exact."""
    indices, indptr = case.binding.args[1:3]
    return _stored(case, np.asarray(indices), lines(indptr))


def _stored(case: Case, rows: Any, columns: Any) -> Any:
    y, (of_data, of_x) = case.y, case.numbers
    rest = math.prod(np.shape(y)[1:])
    places = rows[:, None] * rest + np.arange(rest)
    members = np.zeros(places.shape, int)
    if of_x is not None:
        members = np.reshape(of_x, (len(of_x), rest))[columns]
    if of_data is not None:
        members = case.sets.union(members, np.asarray(of_data)[:, None])
    return case.sets.grouped(members, places, y.size).reshape(y.shape)


class Factor:
    """One factor of a product.

    Attributes:
        numbers: of the sets of its elements.
        there: which elements are not zero for good.
    """

    __slots__ = ("numbers", "there")

    def __init__(self, numbers: Any, there: Any) -> None:
        self.numbers = numbers
        self.there = there

    def map(self, move: Callable[[Any], Any]) -> Factor:
        return Factor(move(self.numbers), move(self.there))


def _factor(case: Case, value: Any, slot: int) -> Factor:
    value = np.asarray(plain(value))
    numbers = case.numbers[slot]
    if numbers is None:
        return Factor(np.zeros(value.shape, int), (value != 0) | (not case.zeros_hold))
    # A value without inputs may be another in another run: a mask.
    return Factor(np.asarray(numbers), (value != 0) | (numbers != 0) | (not case.exact))


def _two(case: Case) -> tuple[Factor, Factor]:
    a, b = (_factor(case, case.binding.args[i], i) for i in range(2))
    return a, b


def product(
    labels: Callable[[Case, int, int], str], move: Callable[[Case, Factor, Factor], Any] | None = None
) -> Family:
    """A product of two arrays as an einsum.

    Args:
        labels: the subscripts for a call, from the numbers of axes.
        move: brings the factors into that form first.
    """

    def multiplied(case: Case) -> Any:
        a, b = _two(case)
        if move is not None:
            a, b = move(case, a, b)
        subscripts, output = explicit(labels(case, a.numbers.ndim, b.numbers.ndim), (a.numbers.ndim, b.numbers.ndim))
        return np.reshape(contracted(case.sets, subscripts, output, [a, b]), np.shape(case.y))[()]

    return multiplied


def _matmul(case: Case, a: int, b: int) -> str:
    if a == 1:
        return "j,j->" if b == 1 else "j,...jk->...k"
    return "...ij,j->...i" if b == 1 else "...ij,...jk->...ik"


def _dot(case: Case, a: int, b: int) -> str:
    if not a or not b:
        return "...,...->..."
    return _tensordot_labels(a, b, [a - 1], [max(0, b - 2)])


def _tensordot(case: Case, a: int, b: int) -> str:
    axes = case.argument("axes")
    if np.ndim(axes) == 0:
        return _tensordot_labels(a, b, [*range(a - int(axes), a)], [*range(int(axes))])
    return _tensordot_labels(a, b, *([*np.ravel(side)] for side in axes))


def _tensordot_labels(a: int, b: int, axes_a: Sequence[int], axes_b: Sequence[int]) -> str:
    left = list(string.ascii_lowercase[:a])
    right = list(string.ascii_uppercase[:b])
    for i, j in zip(axes_a, axes_b, strict=True):
        right[j] = left[i]
    rest = [label for label in left if label not in right] + [label for label in right if label not in left]
    return f"{''.join(left)},{''.join(right)}->{''.join(rest)}"


def _inner(case: Case, a: int, b: int) -> str:
    return "...,...->..." if not a or not b else _tensordot_labels(a, b, [a - 1], [b - 1])


def _axis_last(case: Case, a: Factor, b: Factor) -> tuple[Factor, Factor]:
    axis = case.argument("axis")
    return a.map(lambda x: np.moveaxis(x, axis, -1)), b.map(lambda x: np.moveaxis(x, axis, -1))


def _raveled(case: Case, a: Factor, b: Factor) -> tuple[Factor, Factor]:
    return a.map(np.ravel), b.map(np.ravel)


def _side_by_side(case: Case, a: Factor, b: Factor) -> tuple[Factor, Factor]:
    """For the Kronecker product: each axis of y is an axis of a and then one of b."""
    ndim = max(a.numbers.ndim, b.numbers.ndim)

    def spread(x: Any, after: int) -> Any:
        shape = (1,) * (ndim - x.ndim) + x.shape
        return x.reshape([n for m in shape for n in ((m, 1) if after else (1, m))])

    return a.map(lambda x: spread(x, 1)), b.map(lambda x: spread(x, 0))


matmul = product(_matmul)
matvec = product(lambda case, a, b: "...ij,...j->...i")
vecmat = product(lambda case, a, b: "...i,...ij->...j")
vecdot = product(lambda case, a, b: "...i,...i->...", _axis_last)
dot = product(_dot)
inner = product(_inner)
vdot = product(lambda case, a, b: "i,i->", _raveled)
outer = product(lambda case, a, b: "i,j->ij", _raveled)
tensordot = product(_tensordot)
every_pair = product(lambda case, a, b: _tensordot_labels(a, b, [], []))
kron = product(lambda case, a, b: "...,...->...", _side_by_side)


def cross(case: Case) -> Any:
    """Each vector of the result depends on all of the two vectors."""
    axis = case.argument("axis")
    axes = [axis if axis is not None else case.argument(name, -1) for name in ("axisa", "axisb", "axisc")]
    ndim_y = np.ndim(case.y)
    is_vector = ndim_y == max(np.ndim(plain(x)) for x in case.binding.args[:2])

    def moved(x: Any, axis: int) -> Any:
        return None if x is None else np.moveaxis(x, axis, -1)

    args = tuple(moved(plain(x), axis) for x, axis in zip(case.binding.args[:2], axes, strict=False))
    y = np.moveaxis(case.y, axes[2], -1) if is_vector else case.y
    binding = type(case.binding)(case.binding.rule, y, args, {}, case.binding.positions)
    numbers = tuple(moved(x, axis) for x, axis in zip(case.numbers, axes, strict=False))
    united = core((1, 1), (1 if is_vector else 0,))(Case(case.sets, binding, numbers, case.exact))
    return np.moveaxis(united, -1, axes[2]) if is_vector else united


def convolve(case: Case) -> Any:
    """y[k] sums a[i] v[k - i]; a mode is a part of the longest result."""
    return _convolved(case, *(x.map(np.atleast_1d) for x in _two(case)))


def correlate(case: Case) -> Any:
    a, v = (x.map(np.atleast_1d) for x in _two(case))
    return _convolved(case, a, v.map(lambda x: x[::-1]))


def _convolved(case: Case, a: Factor, v: Factor) -> Any:
    n, m = len(a.numbers), len(v.numbers)
    start = {0: 0, 1: (min(n, m) - 1) // 2, 2: min(n, m) - 1}[_MODES[case.argument("mode")]]
    if case.binding.rule.function is np.correlate and m > n:
        # NumPy exchanges the two and turns the result around.
        start = n + m - 1 - start - np.size(case.y)
    members, groups = [], []
    for one, other in ((a, v), (v, a)):
        i, j = np.nonzero((one.numbers != 0)[:, None] & other.there)
        members.append(one.numbers[i])
        groups.append(i + j)
    united = case.sets.grouped(np.concatenate(members), np.concatenate(groups), n + m - 1)
    return united[start : start + np.size(case.y)]


_MODES = {"full": 0, "same": 1, "valid": 2, "f": 0, "s": 1, "v": 2, 0: 2, 1: 1, 2: 0}


# --- contraction -------------------------------------------------------------------------------------------------


def contracted(sets: Sets, labels: Sequence[str], output: str, factors: Sequence[Factor]) -> Numbers:
    """The numbers of an einsum with the labels of its factors and of its output."""
    lengths: dict[str, int] = {}
    for own, factor in zip(labels, factors, strict=True):
        for label, n in zip(own, factor.numbers.shape, strict=True):
            lengths[label] = n if lengths.get(label, 1) == 1 else lengths[label]
    known = [_on_labels(own, factor, lengths) for own, factor in zip(labels, factors, strict=True)]
    shape = tuple(lengths[label] for label in output)
    united: Numbers = np.zeros(shape, int)
    for k, (own, factor) in enumerate(known):
        if factor.numbers.any():
            united = sets.union(united, _terms(sets, own, factor.numbers, output, known[:k] + known[k + 1 :], lengths))
    return united[()]


def _on_labels(own: str, factor: Factor, lengths: dict[str, int]) -> tuple[str, Factor]:
    """The factor with one axis a label: diagonals where a label stands twice, no axis where it is broadcast."""
    once = "".join(dict.fromkeys(own))
    ids = [once.index(label) for label in own]
    factor = factor.map(lambda x: np.einsum(x.astype(int), ids, [*range(len(once))]) if len(once) < len(own) else x)
    stretched = tuple(i for i, label in enumerate(once) if factor.numbers.shape[i] == 1 and lengths[label] != 1)
    kept = "".join(label for i, label in enumerate(once) if i not in stretched)
    return kept, factor.map(lambda x: np.squeeze(x, stretched))


def _terms(
    sets: Sets, own: str, numbers: Any, output: str, others: list[tuple[str, Factor]], lengths: dict[str, int]
) -> Numbers:
    """What the output depends on through one factor: the elements in terms in which the others are there."""
    batch = [label for label in output if label in own]
    summed = [label for label in own if label not in output]
    new = [label for label in output if label not in own]
    n_batch, n_summed, n_new = (math.prod(lengths[label] for label in part) for part in (batch, summed, new))
    # A label that the factor was broadcast along and that nobody else has stands among `new`.
    numbers = np.transpose(numbers, [own.index(label) for label in (*batch, *summed)]).reshape(n_batch, n_summed)
    there = _meeting(others, batch, new, summed, lengths)
    if there is None:
        every = sets.grouped(numbers, np.repeat(np.arange(n_batch), n_summed), n_batch)
        united = np.broadcast_to(every[:, None], (n_batch, n_new))
    elif there.shape[0] == 1:
        # The same terms for each of the batch; what the lines of a matrix have in common is united once.
        patterns, which = _distinct(there[0])
        line, place = np.nonzero(patterns)
        groups = np.arange(n_batch)[:, None] * len(patterns) + line
        united = sets.grouped(numbers[:, place], groups, n_batch * len(patterns)).reshape(n_batch, -1)[:, which]
    else:
        b, line, place = np.nonzero(there)
        united = sets.grouped(numbers[b, place], b * n_new + line, n_batch * n_new).reshape(n_batch, n_new)
    united = united.reshape([lengths[label] for label in (*batch, *new)])
    order = [*batch, *new]
    return np.transpose(united, [order.index(label) for label in output])


def _meeting(
    others: list[tuple[str, Factor]], batch: list[str], new: list[str], summed: list[str], lengths: dict[str, int]
) -> Any:
    """Which terms there are, of shape (batch or 1, new, summed); None if all."""
    others = [(own, factor) for own, factor in others if not factor.there.all()]
    if not others:
        return None
    every = dict.fromkeys("".join(own for own, _ in others))
    found = [label for label in (*batch, *new, *summed) if label in every]
    number = {label: i for i, label in enumerate(every)}
    operands: list[Any] = []
    for own, factor in others:
        operands += [factor.there.astype(float), [number[label] for label in own]]
    there = np.einsum(*operands, [number[label] for label in found], optimize=len(others) > 2) > 0
    there = there.reshape([lengths[label] if label in found else 1 for label in (*batch, *new, *summed)])
    sizes = [lengths[label] for label in (*new, *summed)]
    in_batch = [lengths[label] for label in batch] if any(label in found for label in batch) else [1] * len(batch)
    there = np.broadcast_to(there, in_batch + sizes)
    return there.reshape(math.prod(in_batch), math.prod(sizes[: len(new)]), math.prod(sizes[len(new) :]))


def _distinct(rows: Any) -> tuple[Any, Any]:
    """The different rows of a matrix of booleans, and which of them each row is."""
    if 8 * np.count_nonzero(rows) < rows.size or not rows.shape[1]:
        return rows, np.arange(len(rows))  # so few that nothing is won
    packed = np.ascontiguousarray(np.packbits(rows, axis=1))
    _, first, which = np.unique(
        packed.view(np.dtype((np.void, packed.shape[1]))).reshape(-1), return_index=True, return_inverse=True
    )
    return rows[first], which
