"""Taylor coefficients of a function along a direction."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

from retrograde.errors import InputError, OrderError
from retrograde.taylor.level import TaylorLevel
from retrograde.taylor.series import Series
from retrograde.trace.directions import directions_of
from retrograde.trace.handle import Traced, is_traced, make
from retrograde.trace.interception import traceable
from retrograde.trace.running import interruptible, run
from retrograde.trace.structure import Inputs, finished, flatten, is_variable, unflatten, zero_like
from retrograde.trace.views import settled, snapshot


@interruptible
def taylor(f: Callable[..., Any], /, x: Any = None, v: Any = None, order: int | None = None, **kwargs: Any) -> Any:
    """The Taylor coefficients of `f` at `x` along `v`: `[y₀, …, yₙ]` with `f(x + t·v) = Σ yₖ·tᵏ` and n = `order`.

    So `yₖ` is the k-th directional derivative over k!. One run of `f` on power series cut off after tⁿ gives them all;
    its time grows with n², not with 2ⁿ as that of nested derivatives does.

    Args:
        f: returns a number, an array or a nested container of these.
        x: a number, an array or a nested container of these, the one argument of `f`.
        v: of the structure and shapes of `x`; None for a leaf stands for zeros.
        order: the number of the last coefficient, 0 or more.
        **kwargs: passed to `f`.

    Returns:
        A list of `order` + 1 values in the structure and shapes of `f(x)`; zeros where no path leads to the output.
        Where a derivative is infinite or does not exist, the coefficients from there on are infinite or NaN.

    Raises:
        SeedError: `v` does not fit `x`.
        OrderError: `order` is negative.
        InputError: `order` is no integer, or `x` cannot be differentiated.

    Source: Griewank & Walther (2008), "Evaluating Derivatives", chapter 13.

    >>> taylor(lambda x: x ** 3, 2.0, 1.0, 4)
    [8.0, 12.0, 6.0, 1.0, 0.0]
    """
    if x is None:
        return functools.partial(taylor, f, **({} if order is None else {"order": order}), **kwargs)
    n = _checked_order(order)
    level = TaylorLevel(n)
    directions = iter(directions_of((x,), (v,)))

    def lift(primal: Any) -> Traced:
        direction = next(directions)
        series = Series(primal, n, lambda k: direction if k == 1 else None).complete()
        return make(snapshot(primal), series, level)

    inputs = Inputs((x,), lift)
    f = traceable(f)
    outputs = run(level, lambda: settled(f(*inputs.args, **kwargs)), f)
    ys, structure = flatten(outputs)
    rows = [_coefficients(y, level) for y in ys]
    return [unflatten(structure, [row[k] for row in rows]) for k in range(n + 1)]


def _coefficients(y: Any, level: TaylorLevel) -> list[Any]:
    if is_traced(y) and y.level is level:
        higher = [finished(y.link.value(k), y.primal) for k in range(1, level.order + 1)]
        return [finished(y.primal, y.primal), *higher]
    return [y] + [zero_like(y) if is_variable(y) else None for _ in range(level.order)]


def _checked_order(order: Any) -> int:
    if order is None:
        raise InputError("taylor was given no order", "taylor(f, x, v, order)")
    try:
        n = operator.index(order)
    except TypeError:
        raise InputError(f"the order of a Taylor series is an integer; {order!r} was given") from None
    if n < 0:
        raise OrderError(f"the order of a Taylor series is 0 or more; {n} was given")
    return n
