"""The ops of elementwise rules: code generated from a rule's partials.

A function without loops and branches is several times faster than an interpreter of rules. Four variants of an
elementwise op exist, chosen when the node is made:

plain       operands and result are float64 and of one shape: no un-broadcasting, no conjugates, no casts
fitted      everything else; the node then also carries the shape and dtype of each traced operand
×
pull        multiplies by the partial as it is
careful     checks: zero times infinity is zero, and large arrays are overwritten (see reverse/tape.py)
proven      does not check what the rule says to be finite where the result is
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from retrograde.rules.products import over
from retrograde.rules.table import Applied, Chained, Elementwise, Multiple, Overwriting, Reciprocal, Shared
from retrograde.trace.ops import (
    SPENT,
    Op,
    are_large,
    conj,
    deposit,
    deposit_negative,
    divided,
    fit,
    is_unheld,
    match,
    scaled,
    times,
)

_ARGUMENTS = ("a", "b", "c")


@cache
def residuals(rule: Elementwise, active: tuple[bool, ...]) -> tuple[str, ...]:
    """The names that the partials of the active operands need: `y`, and `a`, `b`, `c` for the operands."""
    needed: set[str] = set()
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
    helpers = (times, divided, over, scaled, fit, conj, match, deposit, deposit_negative, is_unheld, are_large)
    names: dict[str, Any] = {f.__name__: f for f in helpers} | {"SPENT": SPENT, "at_once": rule.at_once}
    steps, prepare = _steps([rule.partials[i] for i in wanted], names, fitted)
    constants = [name for name, is_active in zip(_ARGUMENTS, active, strict=False) if not is_active]
    steps = [s._replace(is_constant=s.how == "times" and s.partial in constants) for s in steps]
    unpack = f"    _, _, {', '.join([*links, *kept, *likes])}, = node\n"

    def fitted_to(x_bar: str, k: int) -> str:
        return f"fit({x_bar}, {likes[k]})" if fitted else x_bar

    def pull_text() -> str:
        text = f"def pull(cotangents, node, y_bar):\n{unpack}{prepare}"
        for step in steps:
            x_bar = step.product(_PLAIN.get(step.how, step.how + "({}, {})"), fitted)
            if step.into is not None:
                text += f"    {step.into} = {x_bar}\n"
                continue
            text += (
                f"    x_bar = {fitted_to(x_bar, step.link)}\n    i = {links[step.link]}[0]\n    h = cotangents[i]\n"
                "    cotangents[i] = x_bar if h is None else h + x_bar\n"
            )
        return text

    def careful_text(name: str, is_proven: bool) -> str:
        # Without the node, residuals that nobody else holds may be overwritten.
        text = f"def {name}(cotangents, node, y_bar):\n{unpack}    del node\n"
        if rule.at_once is not None and len(active) == 2 and all(active) and not fitted:
            text += (
                f"    if are_large(y_bar, {', '.join(kept)}):\n"
                f"        may_write = {'is_unheld(y, SPENT)' if 'y' in kept else 'False'}\n"
                f"        bars = at_once(y_bar, {', '.join(kept)}, may_write)\n"
                "        if bars is not None:\n"
                "            deposit(cotangents, link_a[0], bars[0])\n"
                "            deposit(cotangents, link_b[0], bars[1])\n"
                "            return\n"
            )
        text += prepare
        for number, step in enumerate(steps):
            later = {name for other in steps[number + 1 :] for name in (other.of, *other.names)}
            is_last = step.of not in later
            if step.over is not None and step.over not in later:
                text += f"    is_free = is_unheld({step.over}, SPENT)\n"
                if step.how in _PLAIN:
                    # The partial takes the name of what it is written over, which is not needed any more.
                    text += f"    {step.over} = {str(step.partial)[:-1]}, is_free)\n"
                    step = step._replace(partial=step.over)
                else:
                    step = step._replace(partial=f"{step.partial}, is_free")
            if step.partial == -1 and step.factor is None and is_last and not fitted and step.into is None:
                text += f"    deposit_negative(cotangents, {links[step.link]}, {step.of})\n"
                continue
            x_bar = step.careful_product(later, fitted, is_proven)
            if step.into is not None:
                text += f"    {step.into} = {x_bar}\n"
            else:
                text += f"    deposit(cotangents, {links[step.link]}[0], {fitted_to(x_bar, step.link)})\n"
        return text

    def push_text() -> str:
        # What partials have in common is multiplied by each link for itself: the links differ.
        terms = []
        for step in (step for step in steps if step.into is None):
            careful = "times({}, {}, is_constant=True)" if step.is_constant else step.how + "({}, {})"
            stem = next((other for other in steps if other.into == step.of), None)
            term = links[step.link]
            if stem is not None:
                term = stem._replace(of=term).product(stem.how + "({}, {})", conjugate=False)
            terms.append(step._replace(of=term).product(careful, conjugate=False))
        total = f"match({' + '.join(terms)}, y_result)" if fitted else " + ".join(terms)
        return f"def push(node, y_result):\n{unpack}{prepare}    return {total}\n"

    source = pull_text() + careful_text("careful", False) + push_text()
    has_proof = rule.proven and not fitted
    if has_proof:
        source += careful_text("proven", True)
    exec(compile(source, f"<retrograde rule {rule.name}>", "exec"), names)
    is_quiet = all(isinstance(step.partial, float) or (step.partial in kept and step.how == "times") for step in steps)
    return Op(
        rule.name,
        len(links),
        names["pull"],
        names["push"],
        names["careful"],
        is_quiet=is_quiet,
        rule=rule,
        active=active,
        kept=kept,
        proven=names["proven"] if has_proof else None,
        shows=rule.shows and not fitted,
    )


class _Step(NamedTuple):
    """One product of a cotangent and a partial, as generated code says it."""

    # The name of the cotangent.
    of: str
    # A number, a residual's name, a call, or the arguments of a product that is called; what is done with it; and a
    # number that the product is multiplied by.
    partial: str | float
    how: str
    factor: float | None
    # Where the product goes: to one of the links, or into a name for the steps that begin with it.
    link: int
    into: str | None = None
    # Whether the partial is an operand that is not differentiated.
    is_constant: bool = False
    # The name of what the partial can be written over.
    over: str | None = None

    @property
    def names(self) -> list[str]:
        """What the partial mentions."""
        return _NAME.findall(self.partial) if isinstance(self.partial, str) else []

    def product(self, text: str, conjugate: bool) -> str:
        """The product; `text` says how two names are multiplied."""
        x = self.of
        if isinstance(self.partial, float):
            if self.partial != 1:
                x = f"-{x}" if self.partial == -1 else f"{x} * {self.partial!r}"
        elif self.how in _PLAIN:
            x = text.format(x, f"conj({self.partial})" if conjugate else self.partial)
        else:
            # A product of its own, that conjugates nothing.
            x = f"conj({text.format(f'conj({x})', self.partial)})" if conjugate else text.format(x, self.partial)
        return x if self.factor is None else f"{x} * {self.factor!r}"

    def careful_product(self, later: set[str], conjugate: bool, is_proven: bool) -> str:
        """The product as a careful sweep makes it: what no later step needs may be overwritten."""
        is_last = self.of not in later
        if isinstance(self.partial, float):
            if self.partial == 1 or not is_last:
                return self.product("", conjugate)
            return f"scaled({self.of}, {self.partial!r}, SPENT)"
        spent = ", SPENT" if self.partial.isidentifier() and self.partial not in later else ", None"
        if self.how not in _PLAIN:
            spent = ""
        elif self.how == "times":
            spent += (", SPENT" if is_last else ", 0") + (", True" if self.is_constant else "")
        if is_proven and self.how in _PLAIN:
            spent += ", is_proven=True"
        x_bar = self._replace(factor=None).product(f"{self.how}({{}}, {{}}{spent})", conjugate)
        if self.factor is None:
            return x_bar
        # The product may be the partial or the cotangent itself, of which there are names here.
        is_spent = is_last and later.isdisjoint(self.names)
        return f"scaled({x_bar}, {self.factor!r}{', SPENT' if is_spent else ''})"


_NAME = re.compile(r"\w+")

# What a cotangent is multiplied or divided by, where zero times infinity need not be zero.
_PLAIN = {"times": "{} * {}", "divided": "over({}, {})"}


def _steps(partials: list[Any], names: dict[str, Any], fitted: bool) -> tuple[list[_Step], str]:
    """The products that pull a cotangent back, one of which may begin with another; and what is computed before them.

    Functions that the code calls are put into its `names`.
    """
    partials = [p.partial if isinstance(p, Applied) and not (p.everywhere or fitted) else p for p in partials]
    stems: dict[Callable[..., Any], str] = {}
    for partial in partials:
        if isinstance(partial, Chained):
            stems.setdefault(partial.first, f"bar_{len(stems)}")
    common: dict[Callable[..., Any], str] = {}
    prepare = ""
    for partial in partials:
        inner = partial.partial if isinstance(partial, Multiple) else partial
        if isinstance(inner, Shared) and inner.first not in common:
            name = common[inner.first] = f"common_{len(common)}"
            names[f"make_{name}"] = inner.first
            prepare += f"    {name} = make_{name}({', '.join(_parameters(inner.first))})\n"
    steps: list[_Step] = []
    made: set[str] = set()
    # What is overwritten is needed no more: the others come first.
    for k, partial in sorted(enumerate(partials), key=lambda item: _overwrites(item[1])):
        stem = partial.first if isinstance(partial, Chained) else partial
        of = stems.get(stem, "y_bar") if callable(stem) else "y_bar"
        if of != "y_bar":
            if of not in made:
                made.add(of)
                steps.append(_said(_Step("y_bar", 1.0, "times", None, k, of), stem, f"stem_{of}", common, names))
            partial = partial.second if isinstance(partial, Chained) else 1.0
        steps.append(_said(_Step(of, 1.0, "times", None, k), partial, f"partial_{k}", common, names))
    return steps, prepare


def _said(step: _Step, partial: Any, name: str, common: dict[Callable[..., Any], str], names: dict[str, Any]) -> _Step:
    """The step with its partial as generated code says it: a number, a residual's name, or a call of `name`."""
    if not callable(partial):
        return step._replace(partial=float(partial))
    if isinstance(partial, Multiple):
        step, partial = step._replace(factor=partial.factor), partial.partial
    if isinstance(partial, Applied):
        parameters = _parameters(partial)
        product, over = partial.product, None
        if isinstance(product, Overwriting):
            product, over = product.partial, parameters[0]
        names[f"apply_{name}"] = product
        return step._replace(partial=", ".join(parameters), how=f"apply_{name}", over=over)
    if isinstance(partial, Shared):
        parameters = [common[partial.first], *("a" if p == "x" else p for p in partial.names[1])]
        partial = partial.second
    else:
        if isinstance(partial, Reciprocal):
            step, partial = step._replace(how="divided"), partial.divisor
        parameters = _parameters(partial)
    if isinstance(partial, Overwriting):
        step, partial = step._replace(over=parameters[0]), partial.partial
    sentinels = [object() for _ in parameters]
    try:
        # `lambda b: b`, the partial of a product, needs no call.
        returned = partial(*sentinels)
    except Exception:  # whatever a formula says to arguments that are no numbers
        returned = None
    for said, sentinel in zip(parameters, sentinels, strict=True):
        if returned is sentinel:
            return step._replace(partial=said, over=None)
    names[name] = partial
    return step._replace(partial=f"{name}({', '.join(parameters)})")


def _overwrites(partial: Any) -> bool:
    for outer, inner in ((Multiple, "partial"), (Shared, "second"), (Applied, "product")):
        if isinstance(partial, outer):
            partial = getattr(partial, inner)
    return isinstance(partial, Overwriting)


def _parameters(partial: Callable[..., Any]) -> list[str]:
    return ["a" if p == "x" else p for p in inspect.signature(partial).parameters]
