"""The level of patterns: what it knows of a value is which inputs each element depends on."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from retrograde.originals import np
from retrograde.rules.table import Elementwise
from retrograde.sparse.families import SELECTIONS, Case, dense, map_tree
from retrograde.sparse.sets import Numbers, Sets
from retrograde.sparse.table import family_of
from retrograde.trace.call import Binding, Operand, distribute
from retrograde.trace.elementwise_ops import residuals
from retrograde.trace.handle import Traced, is_traced, make, plain, shape_of
from retrograde.trace.level import Level, Node, set_aside, some_are_asked
from retrograde.trace.ops import Op
from retrograde.trace.writing import Path, follow, write_array


class PatternLevel(Level):
    """A level whose values carry, element by element, the number of the set of inputs that they depend on.

    The numbers lie in an array of the value's shape, as a tangent does, and so are read and written like one. Complex
    values carry one number in the real and one in the imaginary part, so that `z.imag` is a view of both alike.

    Args:
        n: the number of inputs.
        exact: whether the pattern is that of this very run; otherwise of every run: nothing is decided by values.
    """

    __slots__ = ("_is_decided", "_zeros_hold", "exact", "sets", "varies")

    def __init__(self, n: int, exact: bool) -> None:
        super().__init__()
        self.sets = Sets(n)
        self.exact = exact
        self.varies = not exact
        # Whether code of ours has decided, just now, which elements the next operation takes; and whether it never has,
        # so that constants are the same in every run and their zeros count.
        self._is_decided = False
        self._zeros_hold = True

    def lift(self, primal: Any, numbers: Numbers) -> Any:
        """A value with the numbers of its elements."""
        return make(primal, _as_link(numbers, primal), self)

    def follow(self, y: Any, node: Node) -> Any:
        aside = set_aside(self, ()) if some_are_asked() else None
        if aside is not None:
            return aside(y)
        op = node[1]
        if op.rule is None:
            # A read. Where code of ours has decided which elements, it may be any.
            return make(y, op.push(node, y), self) if not self._is_decided else self._from_anywhere(y, node)
        return self.lift(y, self._united(node, shape_of(y)))

    def apply(self, binding: Binding, active: list[Operand]) -> Any:
        self.number()  # raises, once the transform has ended
        y = binding.y
        aside = set_aside(self, ()) if some_are_asked() else None
        if aside is not None:
            return aside(y)
        numbers = tuple(
            map_tree(self.numbers, tree)
            for tree in binding.tangents(active, [operand.traced.link for operand in active])
        )
        family = dense if self._is_decided else family_of(binding.rule)
        self._is_decided = False
        found = family(Case(self.sets, binding, numbers, self.exact, self._zeros_hold))
        if not isinstance(y, tuple | list):
            return self.lift(y, found)
        return distribute(y, lambda i, value: self.lift(value, found[i]))

    def decided(self) -> None:
        self._is_decided = True
        self._zeros_hold = False

    def _from_anywhere(self, y: Any, node: Node) -> Any:
        self._is_decided = False
        numbers = np.ravel(self.numbers(node[2]))
        whole = self.sets.grouped(numbers, np.zeros(len(numbers), int), 1)[0]
        return self.lift(y, np.full(np.shape(y), whole)[()])

    def still(self, x: Any) -> Any:
        return _as_link(np.zeros(np.shape(plain(x)), int), x)

    def part(self, link: Any, path: Path) -> Any:
        return follow(link, path)

    def write_link(self, x: Traced, path: Path, key: Any, value: Any) -> None:
        write_array(x, path, key, value.link if is_traced(value) and value.level is self else 0)

    def numbers(self, link: Any) -> Numbers:
        """The numbers of the sets of a value, without the complex form of a link."""
        kind = type(link)
        if kind is int or kind is np.int64 or (kind is np.ndarray and link.dtype.kind == "i"):
            return link
        if np.iscomplexobj(link):
            return self.sets.union(_integers(np.real(link)), _integers(np.imag(link)))
        return _integers(link)

    def _united(self, node: Node, shape: tuple[int, ...]) -> Numbers:
        """What the result of an elementwise function depends on: the union over its operands that have a partial."""
        op: Op = node[1]
        assert op.rule is not None
        united: Numbers = 0
        values = node[2 + op.parents :]
        for link, use in zip(node[2 : 2 + op.parents], _uses(op.rule, op.active), strict=True):
            if use.is_never:
                continue
            numbers = self.numbers(link)
            if use.is_always or not (self.exact or (use.is_constant and self._zeros_hold)):
                united = self.sets.union(united, numbers)
                continue
            assert use.partial is not None
            with np.errstate(all="ignore"):
                partial = use.partial(*(plain(values[i]) for i in use.needs))
            united = self.sets.union(united, _where(partial != 0, numbers))
        return united if shape_of(united) == shape else np.broadcast_to(united, shape)


class _Use(NamedTuple):
    """How an elementwise function depends on one of its operands."""

    is_never: bool  # the derivative is zero everywhere
    is_always: bool
    is_constant: bool  # whether the partial is computed of constants alone, so that its zeros hold in every run
    partial: Callable[..., Any] | None
    needs: tuple[int, ...]  # which of the residuals


@functools.cache
def _uses(rule: Elementwise, active: tuple[bool, ...]) -> list[_Use]:
    """One for each operand that is traced at the level."""
    kept = residuals(rule, active)
    uses = []
    for partial, is_active in zip(rule.partials, active, strict=True):
        if not is_active:
            continue
        if not callable(partial):
            uses.append(_Use(partial == 0, partial != 0, True, None, ()))
            continue
        names = ["a" if name == "x" else name for name in _names(partial)]
        constants = {name for name, is_other in zip("abc", active, strict=False) if not is_other}
        is_constant = bool(names) and set(names) <= constants
        depends = is_constant or rule.function in SELECTIONS
        uses.append(_Use(False, not depends, is_constant, partial, tuple(kept.index(name) for name in names)))
    return uses


def _names(partial: Callable[..., Any]) -> list[str]:
    return [*inspect.signature(partial).parameters]


def _integers(x: Any) -> Any:
    return np.asarray(x).astype(int)[()]


def _as_link(numbers: Numbers, primal: Any) -> Any:
    """What a handle carries: the numbers, once for the real and once for the imaginary part of complex values."""
    value = plain(primal)
    if type(numbers) is int:
        numbers = np.int64(numbers)  # which has the indices of an array without axes
    return numbers * (1 + 1j) if type(value) is not np.float64 and np.iscomplexobj(value) else numbers


def _where(mask: Any, numbers: Numbers) -> Numbers:
    if np.ndim(mask) == 0:
        return numbers if mask else 0
    return numbers if mask.all() else np.where(mask, numbers, 0)
