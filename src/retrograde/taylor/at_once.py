"""All coefficients of a result at once: sums, multiples, products and reads, which most of a program is made of.

They need no formula that is run on series, and no look at each coefficient. Where they do not apply (a coefficient that
an outer transform traces, a NaN, whose cause may be a zero times infinity) the answer is None, and the operation is
carried out as any other.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

from retrograde.originals import np
from retrograde.taylor.rules import constant_partial, has_constant_partials, is_natural, repeated_product
from retrograde.taylor.series import Series, aligned
from retrograde.trace.handle import HANDLES, like_of
from retrograde.trace.level import Node
from retrograde.trace.ops import Op
from retrograde.trace.writing import READ, READ_ONE


class Plan(NamedTuple):
    """What can be done for an elementwise op.

    Attributes:
        number: that of the series among its operands.
        is_product: whether it is their product.
        is_power: whether it is a power of a constant exponent.
        partials: otherwise, where they are made of constant operands alone, the partial derivatives.
        names: those of the operands in the node, behind the series.
    """

    number: int
    is_product: bool
    is_power: bool
    partials: tuple[Any, ...] | None
    names: tuple[str, ...]


@functools.cache
def plan_of(op: Op) -> Plan | None:
    rule, active = op.rule, op.active
    assert rule is not None
    is_product = all(active) and rule.function in (np.multiply, np.square)
    is_power = rule.function in (np.power, np.float_power) and active == (True, False)
    partials = None
    if has_constant_partials(rule, active):
        partials = tuple(p for p, is_active in zip(rule.partials, active, strict=True) if is_active)
    if not (is_product or is_power) and partials is None:
        return None
    return Plan(sum(active), is_product, is_power, partials, op.kept)


def at_once(y: Any, node: Node, order: int) -> Series | None:
    """The series of the result `y` of a node, or None."""
    if type(y) in HANDLES:
        return None
    op = node[1]
    if op.rule is None:
        c = read(node)
    else:
        plan = plan_of(op)
        if plan is None:
            return None
        series = node[2 : 2 + plan.number]
        if not all(x.is_stacked for x in series):
            return None
        if plan.is_product:
            c = product(series[0].c, series[-1].c)
        elif plan.is_power:
            c = power(series[0].c, node[3 + plan.names.index("b")])
        else:
            c = combination(plan, series, node)
    shape, dtype = like_of(y)
    if c is None or c.dtype.kind != dtype.kind:
        return None
    if c.dtype != dtype:
        c = c.astype(dtype)
    if c.shape[1:] != shape:
        c = np.array(np.broadcast_to(aligned(c, len(shape) + 1), (order + 1, *shape)))
    c[0] = y
    result = Series.complete_with(c)
    return None if result.shows_nan() else result


def read(node: Node) -> np.ndarray[Any, Any] | None:
    """The coefficients of an element or a part, in an array of their own."""
    op, x = node[1], node[2]
    if not x.is_stacked:
        return None
    if op is READ_ONE:
        return x.c[:, node[3]].copy()  # type: ignore[no-any-return]
    if op is READ and not node[3] and is_basic(node[4]):
        key = node[4]
        return x.c[(slice(None), *(key if type(key) is tuple else (key,)))].copy()  # type: ignore[no-any-return]
    return None


def is_basic(key: Any) -> bool:
    """Whether an index is made of integers, slices, `...` and new axes."""
    if type(key) is tuple:
        return all(map(is_basic, key))
    return type(key) is int or key is Ellipsis or type(key) is slice or key is None


def combination(plan: Plan, series: tuple[Series, ...], node: Node) -> np.ndarray[Any, Any] | None:
    """Σ p·c with constants p, in an array of its own."""
    assert plan.partials is not None
    values = dict(zip(plan.names, node[2 + plan.number :], strict=False))
    total: Any = None
    for partial, x in zip(plan.partials, series, strict=True):
        p = constant_partial(partial, values)
        if type(p) in HANDLES:
            return None
        if type(p) is float and abs(p) == 1:
            if total is None:
                total = x.c.copy() if p == 1 else -x.c
                continue
            a, b = _together(total, x.c)
            total = a + b if p == 1 else a - b
        else:
            term = aligned(x.c, np.ndim(p) + 1) * p
            total = term if total is None else np.add(*_together(total, term))
    return total  # type: ignore[no-any-return]


def _together(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    ndim = max(a.ndim, b.ndim)
    return aligned(a, ndim), aligned(b, ndim)


def product(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> np.ndarray[Any, Any] | None:
    """The Cauchy product; None where it is quicker coefficient by coefficient."""
    count = len(x)
    if x.ndim == y.ndim == 1:
        return np.convolve(x, y)[:count].copy()
    x, y = _together(x, y)
    if max(x.size, y.size) > _MOST:
        return None
    # Row k of the matrix of one factor is xₖ, xₖ₋₁, …, x₀, 0, …: a window that moves back over zeros and x.
    padded = np.zeros((2 * count - 1, *x.shape[1:]), x.dtype)
    padded[count - 1 :] = x
    step = padded.strides[0]
    matrix: np.ndarray[Any, Any] = np.ndarray(
        (count, *x.shape), padded.dtype, padded, (count - 1) * step, (step, -step, *padded.strides[1:])
    )
    return np.einsum("kj...,j...->k...", matrix, y)  # type: ignore[no-any-return]


def power(x: np.ndarray[Any, Any], exponent: Any) -> np.ndarray[Any, Any] | None:
    """The power of a whole number that is small."""
    if not is_natural(exponent) or exponent == 0 or x.size > _MOST:
        return None
    c: np.ndarray[Any, Any] = repeated_product(x, int(np.real(exponent)), product)
    return c.copy() if c is x else c


_MOST = 1 << 12
"""Coefficients beyond which the zeros of the matrix cost more than the calls that it saves."""
