"""The derivatives of whole-array functions: the source of a rule of the table is lowered as a user's function is.

A rule's pullback is plain Python: it takes the result and the arguments and returns a function of the cotangent.
Called here with names of arrays of a derivative program, it becomes statements of that program. So the formula is
written once, for the eager modes and for compiled code.

What a formula decides by the numbers that it meets is decided here beforehand, for the usual case, and a guard raises
where a run meets another one. Words of the rules that stand for such decisions have handlers of their own below.
"""

from __future__ import annotations

import functools
import inspect
from typing import Any

import numpy as np

from retrograde.compiler.form import Alloc, Block, Index, Op, Raise, Set, Slice, Whole
from retrograde.compiler.lower import functions
from retrograde.compiler.lower.builder import Restart
from retrograde.compiler.lower.calls import Calls
from retrograde.compiler.lower.frame import Frame
from retrograde.compiler.lower.functions.registry import handles
from retrograde.compiler.lower.values import NONE, Closure, Lazy
from retrograde.compiler.program import Program
from retrograde.compiler.source import At, source_of
from retrograde.compiler.types import Operand
from retrograde.compiler.whole import rule_of
from retrograde.rules import contractions, numpy_decompositions, numpy_linalg, numpy_spectral, products

MOST_ATTEMPTS = 50


class Formulas(Calls):
    """Writes the formulas of rules into a derivative program.

    Attributes:
        careful: products check, as zero times infinity is zero.
        user: the place in the user's code that is differentiated.
        facts: operations whose results are known, as (function, *operands).
        fn: the function whose formula is written.
    """

    is_derived = True

    def __init__(self, program: Program, careful: bool) -> None:
        super().__init__(program)
        self.careful = careful
        self.user: At | None = None
        self.facts: dict[tuple[Any, ...], Operand] = {}
        self.fn = ""

    def op(self, fn: str, *args: Operand) -> Operand:
        known = self.facts.get((fn, *args))
        return super().op(fn, *args) if known is None else known

    def assume(self, s: Whole) -> None:
        """Take the usual shapes for granted, behind a guard."""
        self.facts, self.fn = {}, s.fn
        if s.fn == "np.linalg.qr":
            m, n = self.shape(s.args[0])
            self.unless(self.op("<", m, n), "the derivative of qr of a matrix with more columns than rows is not there")
            self.facts = {("<", m, n): False, ("min", m, n): n}

    def add_cotangents(self, s: Whole, bars: tuple[Any, ...], shadows: dict[str, str]) -> None:
        """Add the cotangents of the arguments to their shadows.

        Args:
            bars: the cotangent of each result, or NONE.
            shadows: the shadow of each argument that has one.
        """
        self.assume(s)
        for a, found in zip(self.differentiable(s), self.pulled(s.fn, s.outs, s.args, bars), strict=True):
            if a in shadows:
                value = self.call_closure(found, [], {}) if isinstance(found, Closure) else found
                self.add_elements(shadows[a], value)

    def add_elements(self, shadow: str, value: Any) -> None:
        self.nest(self.shape(shadow), lambda index: self.increase(shadow, index, self.element(value, index)))

    def set_tangents(self, s: Whole, dots: dict[str, str], outs: tuple[str | None, ...]) -> None:
        """Compute the tangents of the results.

        Args:
            dots: the tangent of each argument that has one.
            outs: the names of the tangents of the results, None where none is wanted.
        """
        self.assume(s)
        known = tuple(dots.get(a, NONE) for a in self.differentiable(s))
        # Of constants alone it has none yet: what has a derivative is written into the result later.
        values = self.pushed(s.fn, s.outs, s.args, known) if dots else (NONE,) * len(outs)
        for dot, value in zip(outs, values, strict=True):
            if dot is None:
                continue
            value = 0.0 if value is NONE else value
            if self.program.is_array(dot):
                self.emit(Alloc(dot, self.shape(dot), False))
                self.assign_elements(dot, value)
            else:
                self.emit(Op(dot, "id", (value,)))

    def differentiable(self, s: Whole) -> tuple[str, ...]:
        """The arguments that the rule gives cotangents of."""
        places = rule_of(s.fn).args
        return s.args[places] if isinstance(places, slice) else tuple(s.args[i] for i in places)

    def pulled(self, fn: str, outs: tuple[Any, ...], args: tuple[Any, ...], bars: tuple[Any, ...]) -> tuple[Any, ...]:
        """The cotangents of the arguments (None, a value, or a closure that gives it) from those of the results."""
        return self.derived(rule_of(fn).pullback, (_one_or_all(outs), *args), [_one_or_all(bars)])

    def pushed(self, fn: str, outs: tuple[Any, ...], args: tuple[Any, ...], dots: tuple[Any, ...]) -> tuple[Any, ...]:
        """The tangents of the results from those of the arguments that have derivatives."""
        return self.derived(rule_of(fn).pushforward, (_one_or_all(outs), *args), list(dots))

    def derived(self, formula: Any, args: tuple[Any, ...], directions: list[Any]) -> tuple[Any, ...]:
        """`formula(*args)(*directions)`, written again where it turns out that a name stands for an array."""
        block, start = self.block, len(self.block)
        for _ in range(MOST_ATTEMPTS):
            try:
                found = self.call_closure(self.called_with(formula, args), directions, {})
                self.check_settled()
                return found if isinstance(found, tuple) else (found,)
            except Restart:
                self.block = block
                del block[start:]
        raise AssertionError(f"the types of {formula.__name__} do not settle")

    def check_settled(self) -> None:
        """Rules write into nothing that anything else could see."""

    def called_with(self, function: Any, args: tuple[Any, ...]) -> Any:
        source = source_of(function)
        self.at = source.at(source.tree)
        self.frames = [Frame(source, ("a rule",))]
        self.source = source
        bound = self.bind_arguments(source.name, inspect.signature(function), list(args), {})
        return self.called(source, bound, None)

    def write(self, block: Block, at: At | None) -> None:
        """Write at the end of a block from now on, for a place in the user's code."""
        self.block, self.user, self.equal = block, at, set()

    def guard_equal(self, *args: Any, **kwargs: Any) -> None:
        """Shapes have been compared where the function itself was lowered."""

    def detached(self, value: Lazy, original: str) -> Any:
        return value  # formulas write into nothing

    def where(self) -> str:
        self.at, at = self.user, self.at
        text = super().where()
        self.at = at
        return text

    def unless(self, is_unusual: Operand, message: str) -> None:
        """Raise where a run meets what the formula is not written for."""
        if is_unusual is not False:
            text = f"{message}{self.where()}"
            self.branch(is_unusual, lambda: self.emit(Raise("np.linalg.LinAlgError", text)))


def _one_or_all(values: tuple[Any, ...]) -> Any:
    return values[0] if len(values) == 1 else values


# --- what rules decide by numbers ----------------------------------------------------------------------------------

UNUSUAL = "here the derivative needs a case distinction that compiled code does not make; call the function uncompiled"
EQUAL = (
    "{} and the function depends on their vectors one by one; where it depends on all of them together, call "
    "it uncompiled, which finds that derivative"
)
OF_FUNCTIONS = {
    "np.linalg.eigh": EQUAL.format("eigenvalues are equal"),
    "np.linalg.svd": EQUAL.format("singular values are equal, or one is zero,"),
}


@handles(products.somewhere)
def somewhere(lower: Formulas, mask: Any) -> bool:
    return _decided(lower, mask, False)


@handles(products.everywhere)
def everywhere(lower: Formulas, mask: Any) -> bool:
    return _decided(lower, mask, True)


def _decided(lower: Formulas, mask: Any, usual: bool) -> bool:
    if isinstance(mask, bool):
        return mask
    if lower.is_array(mask):
        shape = lower.shape(mask)
        found = lower.fold_truth(usual, shape, lambda index: lower.element(mask, index))
    else:
        found = lower.is_true(mask)
    lower.unless(lower.op("not", found) if usual else found, OF_FUNCTIONS.get(lower.fn, UNUSUAL))
    return usual


@handles(products.has_nan)
def has_nan(lower: Formulas, x: Any) -> bool:
    return False  # where there is one, all is done again in careful products


@handles(products.everything, contractions.constant)
def constant(lower: Formulas, x: Any) -> Any:
    return x


@handles(products.times)
def times(lower: Formulas, x_bar: Any, partial: Any) -> Any:
    return lower.elementwise("times" if lower.careful else "*", x_bar, partial)


@handles(products.unbroadcast)
def unbroadcast(lower: Formulas, x_bar: Any, shape: Any) -> Any:
    return x_bar  # a function of the table broadcasts nothing


@handles(contractions.outer)
def outer(lower: Formulas, y_bar: Any, x: Any) -> Any:
    column = lower.subscript(y_bar, [Slice(), NONE])
    return times(lower, column, lower.subscript(x, [NONE, Slice()]))


@handles(contractions.as_array)
def as_array(lower: Formulas, x: Any) -> Any:
    return functions.as_array(lower, x)


@handles(numpy_decompositions.only_unique)
def only_unique(lower: Formulas, bar: Any, k: Any) -> Any:
    n, count = lower.shape(bar)
    if count == k:
        return bar
    beyond = lower.new_cell("beyond", lower.type_of(True), False)

    def look(index: Index) -> None:
        place = (index[0], lower.op("+", index[1], k))
        is_used = lower.op("!=", lower.element(bar, place), 0.0)
        lower.emit(Set(beyond, lower.op("or", lower.get(beyond), is_used)))

    lower.nest((n, lower.op("-", count, k)), look)
    lower.unless(
        lower.get(beyond),
        f"the columns from {k} on complete an orthonormal basis and are not unique, so they have no derivative",
    )
    return lower.lazily(bar, (n, k), lambda index: lower.element(bar, index))


@handles(numpy_linalg.cofactors)
def cofactors(lower: Formulas, a: Any, det: Any) -> Any:
    """det · a⁻ᵀ, as in the rule for a matrix that is far from singular."""
    lower.unless(lower.op("==", det, 0.0), SINGULAR)
    inverse = functions.call_function(lower, np.linalg.inv, [a], {})
    size = [functions.call_function(lower, np.linalg.norm, [x], {}) for x in (a, inverse)]
    eps = float(np.finfo(np.float64).eps)
    lower.unless(lower.op(">=", lower.op("*", *size), eps**-0.5), SINGULAR)
    return lower.elementwise("*", det, functions.transpose(lower, inverse))


SINGULAR = "the determinant of a matrix that is singular or nearly so has no derivative in compiled code"


@handles(numpy_linalg._inverse_where)
def inverse_where(lower: Formulas, wanted: Any, a: Any) -> Any:
    return functions.call_function(lower, np.linalg.inv, [a], {})


@handles(numpy_spectral._lengths)
def lengths(lower: Formulas, columns: Any) -> Any:
    parts = [functions.part(lower, columns, name) for name in ("real", "imag")]
    squares = [lower.elementwise("*", part, part) for part in parts[: 1 + lower.element_type(columns).is_complex]]
    total = functools.reduce(functools.partial(lower.elementwise, "+"), squares)
    return lower.elementwise("np.sqrt", functions.call_function(lower, np.sum, [total], {"axis": 0}))


@handles(numpy_spectral._with_unknown)
def with_unknown(lower: Formulas, columns: Any, count: Any) -> Any:
    """Further columns, of NaN, up to a number."""
    n, have = lower.shape(columns)
    if have == count:
        return columns

    def element(index: Index) -> Operand:
        there = lower.element(columns, (index[0], lower.op("min", index[1], lower.op("-", have, 1))))
        return lower.op("where", lower.op("<", index[1], have), there, float("nan"))

    return lower.lazily(columns, (n, count), element)
