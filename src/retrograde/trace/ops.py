"""Ops: what one kind of node does in a reverse sweep and in a forward step.

A node is a tuple `(number, op, *links, *residuals)`: the links are those of its traced operands, the residuals what
the formulas need. For elementwise rules the code of an op is generated (see elementwise_ops.py); `general_op` is the
interpreter of all the other kinds.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from sys import getrefcount
from typing import Any, NamedTuple

from numpy import ndarray

from retrograde.errors import PullbackError
from retrograde.originals import np
from retrograde.rules.products import along, has_nan, is_finite, over, unbroadcast
from retrograde.rules.products import times as times_masked
from retrograde.rules.table import Elementwise, Spendable
from retrograde.trace.handle import FLOAT64, HANDLES, like_of, plain, shape_of

Pull = Callable[[Any, tuple[Any, ...], Any], None]


class Op:
    """What a kind of node does.

    Attributes:
        pull: `pull(cotangents, node, y_bar)` adds to the cotangents of the node's parents.
        careful: the same with zero times infinity taken as zero.
        proven: `careful` where the node's value is known to be finite: checks that this makes needless are left out.
        shows: whether a finite value proves that those of the node's parents are finite.
        push: `push(node, y)` is the tangent of the result `y`, the links being tangents.
        parents: how many links a node has.
        owns: whether `pull` takes an owned `Accumulator` as it is.
        repeatable: whether a sweep may run it twice; false for hooks and users' own rules.
        subtract: for nodes that pass a cotangent on to a part of an array: `subtract(cotangents, node, y_bar)` is
            `pull` of -y_bar, which is not made for it.
        is_quiet: whether `push` computes nothing that could be infinite where the function is not.
        rule: the elementwise rule that this is the op of, if it is one.
        active: for each of the rule's arguments whether it is traced.
        kept: the names of the residuals.
    """

    __slots__ = (
        "active",
        "careful",
        "is_quiet",
        "kept",
        "name",
        "owns",
        "parents",
        "proven",
        "pull",
        "push",
        "repeatable",
        "rule",
        "shows",
        "subtract",
    )

    def __init__(
        self,
        name: str,
        parents: int,
        pull: Pull,
        push: Callable[[tuple[Any, ...], Any], Any],
        careful: Pull | None = None,
        owns: bool = False,
        repeatable: bool = True,
        is_quiet: bool = True,
        rule: Elementwise | None = None,
        active: tuple[bool, ...] = (),
        kept: tuple[str, ...] = (),
        subtract: Pull | None = None,
        proven: Pull | None = None,
        shows: bool = False,
    ) -> None:
        self.name = name
        self.parents = parents
        self.pull = pull
        self.careful = careful or pull
        self.proven = proven or self.careful
        self.shows = shows
        self.push = push
        self.owns = owns
        self.repeatable = repeatable
        self.is_quiet = is_quiet
        self.rule = rule
        self.active = active
        self.kept = kept
        self.subtract = subtract

    def __repr__(self) -> str:
        return f"<op {self.name}>"


def _no_pull(cotangents: Any, node: tuple[Any, ...], y_bar: Any) -> None:
    """A leaf has nobody to pass its cotangent to."""


def no_push(node: tuple[Any, ...], y: Any) -> Any:
    """The push of nodes that forward mode has no use for: their tangents are computed where the node would be made."""
    raise AssertionError(f"a node of the op {node[1].name} is never pushed")


LEAF = Op("leaf", 0, _no_pull, no_push)


REACHED = object()
"""What a hook's pull leaves in its own place among the cotangents, so that a sweep can tell whom it did not reach."""


def fit(x_bar: Any, like: tuple[tuple[int, ...], Any]) -> Any:
    """A cotangent in its operand's shape and dtype: broadcasting is summed, the real part taken, the dtype cast."""
    shape, dtype = like
    if shape_of(x_bar) != shape:
        x_bar = unbroadcast(x_bar, shape)
    have = like_of(x_bar)[1]
    if have is dtype or have == dtype:
        return x_bar
    if have.kind == "c" and dtype.kind != "c":
        x_bar = np.real(x_bar)
    return np.astype(x_bar, dtype) if shape else dtype.type(x_bar) if type(x_bar) is float else x_bar.astype(dtype)


def match(y_dot: Any, y: Any) -> Any:
    """A tangent in the shape and dtype of the result `y`."""
    shape, dtype = like_of(y)
    if shape_of(y_dot) != shape:
        y_dot = np.broadcast_to(y_dot, shape)
    have = like_of(y_dot)[1]
    if have != dtype:
        if have.kind == "c" and dtype.kind != "c":
            # A real result of complex arguments (abs): its tangent is the real part of partial times tangent.
            y_dot = np.real(y_dot)
        y_dot = y_dot.astype(dtype) if hasattr(y_dot, "astype") else dtype.type(y_dot)
    return y_dot


# --- arithmetic on cotangents ------------------------------------------------------------------------------------
#
# As a careful sweep does it: zero times infinity is zero, and memory is used again. Large arrays cost as much for the
# memory that they are written to as for the work. A cotangent or a partial that nobody else holds is therefore
# overwritten by the product or the sum that it enters; the reference count says who holds it.

# Arrays of fewer bytes are not worth the look; NumPy's own expressions begin to reuse memory there.
_LARGE = 2**18


def times(
    x_bar: Any,
    partial: Any,
    partial_spent: int | None = None,
    x_bar_spent: int = 0,
    is_constant: bool = False,
    is_proven: bool = False,
) -> Any:
    """`x_bar * partial`, where a zero of `x_bar` gives zero though the partial be infinite or NaN.

    Args:
        partial_spent: the reference count of a partial that nobody else holds: `SPENT` where the caller's own name of
            it is used for the last time; without it, that of a temporary value.
        x_bar_spent: `SPENT` where the caller's own name of `x_bar` is used for the last time.
        is_constant: whether the partial is an operand that is not differentiated, as a mask is. What that makes zero
            stays so, whatever slopes lie behind: the function does not change there.
        is_proven: whether it is known that no element of the partial is infinite or NaN.
    """
    if type(partial) is np.ndarray and partial.nbytes >= _LARGE:
        partial_is_free = getrefcount(partial) == (partial_spent or _TEMPORARY)
        product = _large_product(x_bar, partial, getrefcount(x_bar) == x_bar_spent, partial_is_free, is_proven)
        if not is_constant or product is x_bar or product is partial or not shows_nan(product):
            return product
    else:
        product = x_bar * partial
        if not shows_nan(product):
            return product
        product = times_masked(x_bar, partial)
    if not is_constant:
        return product
    is_zero = plain(partial) == 0
    if np.shape(product) == () and type(is_zero) in (bool, np.bool_):
        return np.float64(0.0) if is_zero else product
    return np.where(is_zero, 0.0, product)


def _large_product(
    x_bar: Any, partial: np.ndarray[Any, Any], x_bar_is_free: bool, partial_is_free: bool, is_proven: bool
) -> Any:
    """`times` for a large partial; what is free is overwritten."""
    if type(x_bar) is not np.ndarray:
        return times_masked(x_bar, partial)
    if partial.dtype == bool:
        # A mask is finite: there is no product to look after.
        is_free = x_bar_is_free and x_bar.shape == partial.shape and has_own_memory(x_bar)
        return np.multiply(x_bar, partial, out=x_bar if is_free else None)
    is_like = x_bar.shape == partial.shape and x_bar.dtype == partial.dtype
    if not any(x_bar.strides):  # one number, broadcast
        number = x_bar.flat[0]
        if number == 1 and is_like:
            return partial
        if number != 0:
            # The cotangent of a sum: there is no zero whose product could be NaN.
            is_free = is_like and partial_is_free and has_own_memory(partial)
            return np.multiply(x_bar, partial, out=partial if is_free else None)
    if is_like and partial_is_free and has_own_memory(partial):
        product = np.multiply(x_bar, partial, out=partial)
    elif x_bar_is_free and x_bar.shape == partial.shape and has_own_memory(x_bar) and (is_proven or is_finite(partial)):
        # After the check, since it could not be seen any more what was zero.
        return np.multiply(x_bar, partial, out=x_bar)
    else:
        product = x_bar * partial
    return np.where(x_bar == 0, 0.0, product) if not is_proven and shows_nan(product) else product


def divided(x_bar: Any, divisor: Any, divisor_spent: int | None = None, is_proven: bool = False) -> Any:
    """`x_bar / divisor`, where a zero of `x_bar` gives zero whatever the divisor; the counts are those of `times`.

    Args:
        is_proven: whether it is known that no element of the divisor is zero or NaN.
    """
    if type(divisor) is np.ndarray and divisor.nbytes >= _LARGE and type(x_bar) is np.ndarray:
        is_free = getrefcount(divisor) == (divisor_spent or _TEMPORARY) and has_own_memory(divisor)
        if _is_uniform(x_bar) and x_bar.flat[0] != 0 and x_bar.dtype == divisor.dtype:
            return np.divide(x_bar.flat[0], divisor, out=divisor if is_free else None)
        quotient = np.divide(x_bar, divisor, out=divisor if is_free and _is_like(x_bar, divisor) else None)
        if is_proven:
            return quotient
    else:
        quotient = over(x_bar, divisor)
        if (type(x_bar) in HANDLES or type(divisor) in HANDLES) and shows_nan(quotient):
            return along(x_bar, over(1.0, divisor))
    return np.where(x_bar == 0, 0.0, quotient) if shows_nan(quotient) else quotient


def scaled(x_bar: Any, factor: float, spent: int | None = None) -> Any:
    """`x_bar * factor`, where `x_bar` is a temporary value or, with `spent`, held by a name that is not used again."""
    if type(x_bar) is np.ndarray and x_bar.nbytes >= _LARGE:
        if not any(x_bar.strides):
            # A broadcast number stays one.
            return np.broadcast_to(x_bar.flat[0] * factor, x_bar.shape)
        if getrefcount(x_bar) <= (spent or _TEMPORARY) and has_own_memory(x_bar):
            return np.multiply(x_bar, factor, out=x_bar)
    return -x_bar if factor == -1 else x_bar * factor


def deposit(cotangents: Any, index: int, x_bar: Any) -> None:
    """Add to the cotangent at `index`."""
    held = cotangents[index]
    if held is None:
        cotangents[index] = x_bar
        return
    if type(held) is np.ndarray and held.nbytes >= _LARGE and type(x_bar) is np.ndarray and _is_like(x_bar, held):
        if getrefcount(held) == _IN_SLOT and has_own_memory(held):
            np.add(held, x_bar, out=held)
            return
        if getrefcount(x_bar) == _TEMPORARY and has_own_memory(x_bar):
            cotangents[index] = np.add(held, x_bar, out=x_bar)
            return
    cotangents[index] = held + x_bar


def deposit_negative(cotangents: Any, link: tuple[Any, ...], y_bar: Any) -> None:
    """Add -y_bar to the cotangent of a node, called where the caller's own name of `y_bar` is used for the last time.

    What was read from an array has its cotangent added into the array's at once.
    """
    subtract = link[1].subtract
    if subtract is not None and type(y_bar) is np.ndarray and y_bar.nbytes >= _LARGE and cotangents[link[0]] is None:
        subtract(cotangents, link, y_bar)
    else:
        deposit(cotangents, link[0], scaled(y_bar, -1.0, SPENT + 1))


def shows_nan(x: Any) -> bool:
    """Whether there is a NaN in a value, or in a tangent that an outer level of forward mode carries with it."""
    if type(x) in HANDLES:
        return shows_nan(x.telling) or (not x.level.records and x.level.shows_nan(x.link))
    return has_nan(x)


def is_unheld(x: Any, spent: int) -> bool:
    """Whether `x` is a large array that nobody holds but the caller, by a name for which `spent` is `SPENT`."""
    return (
        type(x) is np.ndarray and x.nbytes >= _LARGE and getrefcount(x) == spent and x.dtype.kind in "fc"
    ) and has_own_memory(x)


def are_large(*arrays: Any) -> bool:
    """Whether all are large plain arrays of one shape and dtype."""
    first = arrays[0]
    return type(first) is ndarray and first.nbytes >= _LARGE and all(_is_like(x, first) for x in arrays)


def conj(x: Any) -> Any:
    """The complex conjugate; what is real is returned as it is."""
    dtype = getattr(x, "dtype", None)
    is_complex = type(x) is complex if dtype is None else dtype.kind == "c"
    return np.conj(x) if is_complex else x


def _is_uniform(x: Any) -> bool:
    """Whether an array is one number, broadcast."""
    return type(x) is np.ndarray and not any(x.strides)


def _is_like(x: Any, y: np.ndarray[Any, Any]) -> bool:
    return type(x) is np.ndarray and x.shape == y.shape and x.dtype == y.dtype


# --- the reference counts of what nobody else holds, as this interpreter counts them ----------------------------------


def has_own_memory(x: np.ndarray[Any, Any]) -> bool:
    """Whether the memory of `x` may be written to and belongs to no other array; who holds `x` is another question.

    That is so of an array without a base, and of a contiguous view (a reshape) of a base that nobody else holds.
    """
    flags = x.flags
    if not flags.writeable:
        return False
    base = x.base
    if base is None:
        return True
    return (
        type(base) is np.ndarray
        and base.base is None
        and (flags.c_contiguous or flags.f_contiguous)
        and getrefcount(base) == HELD_AS_BASE
    )


def _count_base(x: np.ndarray[Any, Any]) -> int:
    base = x.base
    return getrefcount(base)


HELD_AS_BASE = _count_base(np.ndarray(1, np.uint8, np.empty(1, np.uint8)))
"""What `getrefcount(base)` gives of a local name `base = x.base`, where `x` alone has that base."""


def _count_temporary(x: Any) -> int:
    return getrefcount(x)


def _count_named() -> int:
    x = np.zeros(1)
    return _count_temporary(x)


def _count_in_slot(slots: list[Any]) -> int:
    held = slots[0]
    return getrefcount(held)


def _count_node(cotangents: Any, node: tuple[Any, ...], y_bar: Any) -> tuple[int, int]:
    pull, _targets = node[-2:]
    return getrefcount(node), getrefcount(pull)


def _popped() -> tuple[int, int]:
    nodes = [(object(), object())]
    return _count_node(None, nodes.pop(), _count_named())


_POPPED, _IN_NODE = _popped()
_TEMPORARY = _count_temporary(np.zeros(1) + 0)
SPENT = _count_named()
_IN_SLOT = _count_in_slot([np.zeros(1)])


# --- all other rules ---------------------------------------------------------------------------------------------


class Targets(NamedTuple):
    """Where the cotangents of a node's links stand in what its pull returns.

    `places` has `(position, path inside a sequence, shape and dtype)` for each link; `counts` are the numbers of
    cotangents that a pull may return: one for each argument that was given, or for each that may be.
    """

    name: str
    counts: tuple[int, ...]
    places: tuple[tuple[int, tuple[int, ...], tuple[tuple[int, ...], Any]], ...]


@cache
def general_op(parents: int, repeatable: bool = True, shows: bool = False) -> Op:
    """The op of nodes `(number, op, *links, pull, targets)`.

    `pull(y_bar)` returns one cotangent for each differentiable argument; `targets` says where in that result the
    cotangent of each link stands.
    """
    return Op("general", parents, general_pull, no_push, repeatable=repeatable, shows=shows)


def general_pull(cotangents: Any, node: tuple[Any, ...], y_bar: Any) -> None:
    pull, targets = node[-2:]
    if type(pull) is Spendable and getrefcount(node) == _POPPED and getrefcount(pull) == _IN_NODE:
        pull = pull.last
    bars = pull(y_bar)
    if not isinstance(bars, tuple) or len(bars) not in targets.counts:
        raise PullbackError(
            f"the pullback of {targets.name} returned {_count(bars)}; the function has {targets.counts[0]} arguments",
            f"return a tuple of {targets.counts[0]}, with None for an argument that has no cotangent",
        )
    bars = list(bars)
    for link, (position, path, like) in zip(node[2:-2], targets.places, strict=True):
        bar = bars[position]
        if callable(bar):
            bar = bars[position] = bar()
        for step in path:
            bar = bar[step]
        if bar is None:
            continue
        if type(bar) is not ndarray or bar.shape != like[0] or bar.dtype is not like[1]:
            if shape_of(bar) != like[0]:
                raise PullbackError(
                    f"the pullback of {targets.name} returned a cotangent of shape {shape_of(bar)} "
                    f"for argument number {position + 1} of shape {like[0]}"
                )
            bar = fit(bar, like)
        number = link[0]
        if cotangents[number] is None:
            cotangents[number] = bar
        else:
            deposit(cotangents, number, bar)


def _count(bars: Any) -> str:
    return f"{len(bars)} cotangents" if isinstance(bars, tuple) else f"a {type(bars).__name__}"


def _output_pull(cotangents: Any, node: tuple[Any, ...], y_bar: Any) -> None:
    _, _, whole, position, count = node
    bars = cotangents[whole[0]]
    if bars is None:
        bars = cotangents[whole[0]] = [None] * count
    h = bars[position]
    bars[position] = y_bar if h is None else h + y_bar


OUTPUT = Op("output", 1, _output_pull, no_push)
"""One output of a function that has several: `(number, op, link of the whole, position, count)`."""

__all__ = ["FLOAT64", "LEAF", "OUTPUT", "REACHED", "Op", "fit", "general_op", "match"]
