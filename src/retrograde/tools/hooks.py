"""Looking at cotangents, and changing them, on their way through a sweep."""

from __future__ import annotations

import ast
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np

from retrograde.errors import InputError, PullbackError, user_frame
from retrograde.trace.handle import data, is_traced, like_of, plain, shape_of
from retrograde.trace.level import suspension_of
from retrograde.trace.mapped import hold
from retrograde.trace.ops import REACHED, Op, deposit, fit, no_push
from retrograde.trace.recording import PARAMS
from retrograde.trace.structure import flatten
from retrograde.trace.views import snapshot


def hook(fn: Callable[[Any], Any], x: Any) -> Any:
    """`x`, whose cotangent is passed through `fn` in every sweep.

    `fn(x_bar)` is called once a sweep with the summed cotangent, and not at all if the sweep does not come here. What
    it returns goes on in its place; None leaves it unchanged. The identity in forward mode, and for what is not traced.

    Raises:
        PullbackError: (in the sweep) `fn` returned something of another shape.

    >>> gradient(lambda a, b: hook(lambda a_bar: -a_bar, a) * b, 2.0, 3.0)
    (-3.0, 2.0)
    """
    return _hooked(x, fn, None)


def showgrad(x: Any) -> Any:
    """`x`, whose cotangent is printed in every sweep as `∂(text of x) = value`; None if the sweep does not come here.

    The gradient shown is the one of this use of `x`, not the overall gradient.

    >>> gradient(lambda a, b: showgrad(a) * b, 2.0, 3.0)
    ∂(a) = 3.0
    (3.0, 2.0)
    """
    text = _argument_text(user_frame())

    def show(x_bar: Any) -> None:
        print(f"∂({text}) = {plain(x_bar)}")

    return _hooked(x, show, show)


def _hooked(x: Any, fn: Callable[[Any], Any], unreached: Callable[[Any], Any] | None) -> Any:
    if not is_traced(x):
        if any(is_traced(leaf) for leaf in (flatten(x)[0] if isinstance(x, list | tuple | dict) else ())):
            raise InputError("a hook watches one value; a container was given", "hook each of its members")
        return x
    level = x.level
    if level.maps:
        # A batch has no cotangents; those of what it is computed of come for all examples at once.
        x = snapshot(x)
        below = _hooked(x.primal, fn, unreached)
        return x if below is x.primal else hold(below, level, x.link)
    if not level.calls_hooks:
        return x
    node = (level.number(), HOOK, x.link, fn, like_of(x), unreached)
    # A hook acts on the world: sweeps over it are run exactly once.
    suspension = suspension_of(level)
    if suspension is not None:
        suspension.repeatable = False
    elif level is not PARAMS:
        level.repeatable = False
    y = level.follow(x.primal, node)
    if unreached is not None and level is not PARAMS and is_traced(y) and y.level is level:
        level.hooks.append(node)
    return y


def _hook_pull(cotangents: Any, node: tuple[Any, ...], y_bar: Any) -> None:
    number, _, link, fn, like, _ = node
    cotangents[number] = REACHED
    seen = data(y_bar) if not is_traced(y_bar) else y_bar
    if type(seen) is np.ndarray:
        # The sweep still needs these contents; a hook that wants others returns them.
        seen = seen.view()
        seen.flags.writeable = False
    changed = fn(seen)
    if changed is None:
        changed = y_bar
    else:
        if not is_traced(changed):
            changed = np.asarray(changed)[()]
        if shape_of(changed) != like[0]:
            raise PullbackError(
                f"a hook returned a cotangent of shape {shape_of(changed)} for a value of shape {like[0]}",
                "return an array of the value's shape, or None to leave it unchanged",
            )
        if like_of(changed)[1].kind == "c" and like[1].kind != "c":
            raise PullbackError("a hook returned a complex cotangent for a real value", "np.real(...) of it")
        changed = fit(changed, like)
    deposit(cotangents, link[0], changed)


HOOK = Op("hook", 1, _hook_pull, no_push, repeatable=False)
"""`(number, op, link, fn, like, what to call with None if the sweep does not come here)`."""


def _argument_text(frame: FrameType | None) -> str:
    """The source text of the first argument of the call that `frame` is executing; `?` where it cannot be known."""
    import executing  # a tenth of a second, for those who use it

    if frame is None:
        return "?"
    call = executing.Source.executing(frame).node
    if not isinstance(call, ast.Call) or not (call.args or call.keywords):
        return "?"
    argument = call.args[0] if call.args else call.keywords[0].value
    text = ast.get_source_segment(executing.Source.for_frame(frame).text, argument)
    return " ".join(text.split()) if text else "?"
