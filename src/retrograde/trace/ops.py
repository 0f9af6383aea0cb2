"""Ops: what one kind of node does in a reverse sweep and in a forward step.

A node is a tuple `(number, op, *links, *residuals)`: the links are those of its traced operands, the residuals what
the formulas need. For elementwise rules the code of an op is generated from the rule's partials, because a function
without loops and branches is several times faster than an interpreter of rules; `general_op` is that interpreter for
all the other kinds.

Four variants of an elementwise op exist, chosen when the node is made:

plain       operands and result are float64 and of one shape: no un-broadcasting, no conjugates, no casts
fitted      everything else; the node then also carries the shape and dtype of each traced operand
×
pull        multiplies by the partial as it is
careful     uses arithmetic.py: zero times infinity is zero, and large arrays are overwritten (see reverse/sweep.py)
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from retrograde.errors import PullbackError
from retrograde.rules.products import unbroadcast
from retrograde.rules.table import Elementwise
from retrograde.trace.arithmetic import conj, deposit, scaled, times, times_last
from retrograde.trace.handle import FLOAT64, like_of, shape_of

Pull = Callable[[Any, tuple[Any, ...], Any], None]


class Op:
    """What a kind of node does.

    Attributes:
        pull: `pull(cotangents, node, y_bar)` adds to the cotangents of the node's parents.
        careful: the same with zero times infinity taken as zero.
        push: `push(node, y)` is the tangent of the result `y`, the links being tangents.
        parents: how many links a node has.
        owns: whether `pull` takes an owned `Accumulator` as it is.
        repeatable: whether a sweep may run it twice; false for hooks and users' own rules.
        is_quiet: whether `push` computes nothing that could be infinite where the function is not.
    """

    __slots__ = ("careful", "is_quiet", "name", "owns", "parents", "pull", "push", "repeatable")

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
    ) -> None:
        self.name = name
        self.parents = parents
        self.pull = pull
        self.careful = careful or pull
        self.push = push
        self.owns = owns
        self.repeatable = repeatable
        self.is_quiet = is_quiet

    def __repr__(self) -> str:
        return f"<op {self.name}>"


def _no_pull(cotangents: Any, node: tuple[Any, ...], y_bar: Any) -> None:
    """A leaf has nobody to pass its cotangent to."""


def _no_push(node: tuple[Any, ...], y: Any) -> Any:
    raise AssertionError("a leaf is never pushed")


LEAF = Op("leaf", 0, _no_pull, _no_push)


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


# --- elementwise rules -------------------------------------------------------------------------------------------

_ARGUMENTS = ("a", "b", "c")


def residuals(rule: Elementwise, active: tuple[bool, ...]) -> tuple[str, ...]:
    """The names that the partials of the active operands need: `y`, and `a`, `b`, `c` for the operands."""
    needed = set()
    for partial, wanted in zip(rule.partials, active, strict=True):
        if wanted and callable(partial):
            needed.update("a" if name == "x" else name for name in inspect.signature(partial).parameters)
    return tuple(name for name in ("y", *_ARGUMENTS) if name in needed)


@cache
def elementwise_op(rule: Elementwise, active: tuple[bool, ...], fitted: bool) -> Op:
    """The op of an elementwise rule for one choice of traced operands."""
    wanted = [i for i, is_active in enumerate(active) if is_active]
    kept = residuals(rule, active)
    links = [f"link_{_ARGUMENTS[i]}" for i in wanted]
    likes = [f"like_{_ARGUMENTS[i]}" for i in wanted] if fitted else []
    names: dict[str, Any] = {
        "times": times, "times_last": times_last, "scaled": scaled, "fit": fit, "conj": conj, "match": match, "deposit": deposit,
    }  # fmt: skip
    partials = [_partial_text(rule.partials[i], f"partial_{_ARGUMENTS[i]}", names) for i in wanted]
    unpack = f"    _, _, {', '.join([*links, *kept, *likes])}, = node\n"

    def pull_text() -> str:
        text = f"def pull(cotangents, node, y_bar):\n{unpack}"
        for k, partial in enumerate(partials):
            x_bar = _product("y_bar", partial, "{} * {}", conjugate=fitted)
            if fitted:
                x_bar = f"fit({x_bar}, {likes[k]})"
            text += (
                f"    x_bar = {x_bar}\n    i = {links[k]}[0]\n    h = cotangents[i]\n"
                "    cotangents[i] = x_bar if h is None else h + x_bar\n"
            )
        return text

    def careful_text() -> str:
        # Without the node, residuals that nobody else holds may be overwritten.
        text = f"def careful(cotangents, node, y_bar):\n{unpack}    del node\n"
        for k, partial in enumerate(partials):
            is_last_use = isinstance(partial, str) and all(partial not in str(later) for later in partials[k + 1 :])
            product = "times_last({}, {})" if is_last_use and partial in kept else "times({}, {})"
            x_bar = _product("y_bar", partial, product, conjugate=fitted)
            if isinstance(partial, float) and partial != 1 and k + 1 == len(partials):
                x_bar = f"scaled(y_bar, {partial!r})"
            if fitted:
                x_bar = f"fit({x_bar}, {likes[k]})"
            text += f"    deposit(cotangents, {links[k]}[0], {x_bar})\n"
        return text

    total = " + ".join(_product(link, partial, "times({}, {})", conjugate=False) for link, partial in zip(links, partials, strict=True))
    push_text = f"def push(node, y_result):\n{unpack}    return {f'match({total}, y_result)' if fitted else total}\n"
    source = pull_text() + careful_text() + push_text
    exec(compile(source, f"<retrograde rule {rule.name}>", "exec"), names)
    is_quiet = all(isinstance(partial, float) or partial in kept for partial in partials)
    return Op(rule.name, len(links), names["pull"], names["push"], names["careful"], is_quiet=is_quiet)


def _partial_text(partial: Any, name: str, names: dict[str, Any]) -> str | float:
    """How generated code says a partial: a number, a residual's name, or a call."""
    if not callable(partial):
        return float(partial)
    parameters = ["a" if p == "x" else p for p in inspect.signature(partial).parameters]
    sentinels = [object() for _ in parameters]
    try:
        # `lambda b: b`, the partial of a product, needs no call.
        returned = partial(*sentinels)
    except Exception:  # whatever a formula says to arguments that are no numbers
        returned = None
    if any(returned is sentinel for sentinel in sentinels):
        return next(p for p, sentinel in zip(parameters, sentinels, strict=True) if sentinel is returned)
    names[name] = partial
    return f"{name}({', '.join(parameters)})"


def _product(x: str, partial: str | float, product: str, conjugate: bool) -> str:
    """The text of a cotangent times a partial; `product` says how two names are multiplied."""
    if isinstance(partial, float):
        if partial == 1:
            return x
        return f"-{x}" if partial == -1 else f"{x} * {partial!r}"
    return product.format(x, f"conj({partial})" if conjugate else partial)


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
def general_op(parents: int, repeatable: bool = True) -> Op:
    """The op of nodes `(number, op, *links, pull, targets)`.

    `pull(y_bar)` returns one cotangent for each differentiable argument; `targets` says where in that result the
    cotangent of each link stands.
    """
    return Op("general", parents, _general_pull, _no_push, repeatable=repeatable)


def _general_pull(cotangents: Any, node: tuple[Any, ...], y_bar: Any) -> None:
    pull, targets = node[-2:]
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
        if shape_of(bar) != like[0]:
            raise PullbackError(
                f"the pullback of {targets.name} returned a cotangent of shape {shape_of(bar)} "
                f"for argument number {position + 1} of shape {like[0]}"
            )
        deposit(cotangents, link[0], fit(bar, like))


def _count(bars: Any) -> str:
    return f"{len(bars)} cotangents" if isinstance(bars, tuple) else f"a {type(bars).__name__}"


def _output_pull(cotangents: Any, node: tuple[Any, ...], y_bar: Any) -> None:
    _, _, whole, position, count = node
    bars = cotangents[whole[0]]
    if bars is None:
        bars = cotangents[whole[0]] = [None] * count
    h = bars[position]
    bars[position] = y_bar if h is None else h + y_bar


OUTPUT = Op("output", 1, _output_pull, _no_push)
"""One output of a function that has several: `(number, op, link of the whole, position, count)`."""

__all__ = ["FLOAT64", "LEAF", "OUTPUT", "REACHED", "Op", "elementwise_op", "fit", "general_op", "match", "residuals"]
