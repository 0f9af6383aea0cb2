"""Pushforwards: the value of a function, and its derivative along directions of its arguments."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from retrograde.forward.level import ForwardLevel
from retrograde.trace.directions import directions_of
from retrograde.trace.handle import Traced, is_traced, make
from retrograde.trace.interception import traceable
from retrograde.trace.running import interruptible, run
from retrograde.trace.structure import Inputs, finished, flatten, is_variable, unflatten, zero_like
from retrograde.trace.views import settled, snapshot


@interruptible
def jvp(f: Callable[..., Any], /, primals: Any = None, tangents: Any = None, **kwargs: Any) -> Any:
    """The value of `f` and its derivative along `tangents`: `y, y_dot = jvp(f, primals, tangents)`.

    Args:
        f: returns a number, an array or a nested container of these.
        primals: the tuple of arguments of `f`.
        tangents: a tuple of the same structure and shapes; None for a leaf stands for zeros.
        **kwargs: passed to `f`.

    Returns:
        `y`, and `y_dot` in the structure and shapes of `y`; zeros where no path leads to the output.

    Raises:
        SeedError: the tangents do not fit the primals.

    >>> jvp(lambda x: x * x, (3.0,), (1.0,))
    (9.0, 6.0)
    """
    if primals is None:
        return functools.partial(jvp, f, **kwargs)
    return _push(f, tuple(primals), tuple(tangents), kwargs)


@interruptible
def pushforward(f: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """The value of `f` and its pushforward: `y, push = pushforward(f, *args)`.

    `push(*tangents)` runs `f` once more and returns the tangent of `y`.
    """
    if not args:
        return functools.partial(pushforward, f, **kwargs)

    def push(*tangents: Any) -> Any:
        return _push(f, args, tangents, kwargs)[1]

    # By a run of its own, since `f` may write into its arguments and must not change the caller's.
    return _push(f, args, (None,) * len(args), kwargs)[0], push


def _push(f: Callable[..., Any], primals: tuple[Any, ...], tangents: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    level = ForwardLevel()
    directions = iter(directions_of(primals, tangents))

    def lift(primal: Any) -> Traced:
        return make(snapshot(primal), next(directions), level)

    inputs = Inputs(primals, lift)
    f = traceable(f)
    outputs = run(level, lambda: settled(f(*inputs.args, **kwargs)), f)
    ys, structure = flatten(outputs)
    values, dots = [], []
    for y in ys:
        traced = is_traced(y) and y.level is level
        values.append(finished(y.primal, y.primal) if traced else y)
        dots.append(finished(y.link, y.primal) if traced else zero_like(y) if is_variable(y) else None)
    return unflatten(structure, values), unflatten(structure, dots)
