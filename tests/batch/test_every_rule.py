"""Every function with a rule, at the rule's points: mapped over a batch it does what a loop over the examples does.

Its values for batched arguments in several combinations; its derivatives inside of the mapped function and outside;
and its tangents and cotangents alone, along many directions at once. With RETROGRADE_LONG=1 at all points, and in all
combinations.
"""

from __future__ import annotations

import importlib.util
import itertools
import math
import os
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from sampling import Point, _fill, points

import retrograde.rules
from retrograde import BatchError, ConversionError, MissingRuleError, RetrogradeError, gradient, jvp, pullback, vmap
from retrograde.batch.table import REFUSED
from retrograde.rules.table import RULES, Composed, NoGradient, Rule

if importlib.util.find_spec("scipy") is not None:
    retrograde.rules.load_scipy()

LONG = "RETROGRADE_LONG" in os.environ
EXAMPLES = 3
RULED = [rule for rule in RULES.values() if not isinstance(rule, NoGradient)]

# Refused at this point alone: NumPy leaves out leading zeros, and so the length would depend on the values.
EXEMPT = {"np.polymul: float64 3, real 2"}
# Its vectors have an arbitrary length, and the loss that is used here is not the same for all.
NO_DERIVATIVE = {"np.linalg.eig", "np.linalg.eigvals"}


def function_of(rule: Rule) -> Callable[..., Any]:
    """The function as a module has it now: some are taken over while a transform runs."""
    if getattr(rule.function, "__module__", None) == "math":
        return lambda *args: getattr(math, rule.name)(*args)
    if rule.name == "full_like":
        return lambda *args, **kwargs: np.full_like(*args, **kwargs)
    return rule.function


def examples_of(leaf: Any) -> Any:
    """Several points near one, so that none leaves the domain."""
    x = np.asarray(leaf)
    return np.stack([x * (1 + 0.01 * i) if x.dtype.kind in "fc" else x for i in range(EXAMPLES)])


class Case:
    """A point with some of its arrays batched."""

    def __init__(self, rule: Rule, point: Point, batched: tuple[int, ...]) -> None:
        self.rule, self.point, self.batched = rule, point, batched
        self.axes = tuple(0 if k in batched else None for k in range(len(point.leaves)))
        self.leaves = [examples_of(x) if k in batched else x for k, x in enumerate(point.leaves)]
        self.function = function_of(rule)

    def f(self, *leaves: Any) -> Any:
        return self.function(*_fill(self.point.args, list(leaves)), **_fill(self.point.kwargs, list(leaves)))

    def loss(self, *leaves: Any) -> Any:
        """A real number that depends on every part of the result."""
        total = 0.0
        for k, part in enumerate(parts_of(self.f(*leaves))):
            if getattr(part, "dtype", np.dtype(float)).kind in "fc":
                total = total + np.sum(np.real(part) * 1.3) + np.sum(np.cos(np.real(part)))
                total = total + np.sum(np.imag(part)) * (k + 0.5)
        return total

    def example(self, i: int, leaves: Any = None) -> list[Any]:
        leaves = self.leaves if leaves is None else leaves
        return [x[i] if k in self.batched else x for k, x in enumerate(leaves)]

    def reaches(self) -> bool:
        """Whether NumPy asks these arguments: not where they stand in a list that it makes an array of by itself."""
        points, batched = self.point.leaves, self.batched

        def vary(*xs: Any) -> Any:
            return self.f(*(xs[batched.index(k)] if k in batched else x for k, x in enumerate(points)))

        some = tuple(points[k] for k in batched)
        try:
            jvp(vary, some, tuple(np.ones(np.shape(x)) for x in some))
        except (ConversionError, MissingRuleError, TypeError):
            return False
        return True


def cases(rule: Rule, every: bool) -> Iterator[Case]:
    """All points with all combinations of batched arguments, or of each point the largest and another one."""
    for number, point in enumerate(points(rule)):
        if not point.leaves or (point.single and isinstance(rule, Composed)):
            continue
        n = len(point.leaves)
        combinations = [c for size in range(1, n + 1) for c in itertools.combinations(range(n), size)]
        if not every:
            combinations = [combinations[-1], *combinations[number % n : number % n + 1][: n - 1]]
        for combination in combinations:
            yield Case(rule, point, combination)


def few(rule: Rule, count: int) -> list[Case]:
    """Some cases in double precision with everything batched; others for each rule, the same in every run."""
    found = [
        Case(rule, point, tuple(range(len(point.leaves))))
        for point in points(rule)
        if point.leaves and not point.single and f"{rule.label}: {point.label}" not in EXEMPT
    ]
    if LONG or len(found) <= count:
        return found
    start = zlib.crc32(rule.name.encode())
    return [found[(start + k * (len(found) // count)) % len(found)] for k in range(count)]


def parts_of(y: Any) -> list[Any]:
    return [part for item in y for part in parts_of(item)] if isinstance(y, tuple | list) else [y]


def filled(y: Any, leaves: Iterator[Any]) -> Any:
    """The containers of `y` with other leaves."""
    if not isinstance(y, tuple | list):
        return next(leaves)
    inner = [filled(item, leaves) for item in y]
    return type(y)(*inner) if hasattr(y, "_fields") else type(y)(inner)


def assert_same(got: Any, want: list[Any], label: str, single: bool = False) -> None:
    """Compare a mapped result with those of the examples."""
    rtol, atol = (1e-4, 1e-4) if single else (1e-8, 1e-10)
    columns = [parts_of(w) for w in want]
    for k, part in enumerate(parts_of(got)):
        if part is None:
            assert all(column[k] is None for column in columns), label
            continue
        expected = np.stack([np.asarray(column[k]) for column in columns])
        assert np.shape(part) == expected.shape, label
        assert np.asarray(part).dtype == expected.dtype, label
        np.testing.assert_allclose(np.asarray(part), expected, rtol, atol, err_msg=label)


MAPPABLE = [pytest.param(r, id=f"{r.label} {k}") for k, r in enumerate(RULED) if r.function not in REFUSED]
DIFFERENTIABLE = [p for p in MAPPABLE if p.values[0].label not in NO_DERIVATIVE and any(points(p.values[0]))]


@pytest.mark.parametrize("rule", MAPPABLE)
def test_a_mapped_function_has_the_values_of_a_loop(rule: Rule) -> None:
    with np.errstate(all="ignore"):
        for case in cases(rule, LONG):
            label = f"{rule.label}: {case.point.label} {case.axes}"
            want = [case.f(*case.example(i)) for i in range(EXAMPLES)]
            try:
                got = vmap(case.f, case.axes)(*case.leaves)
            except RetrogradeError:
                if label.rpartition(" (")[0] in EXEMPT or not case.reaches():
                    continue
                raise
            assert_same(got, want, label, case.point.single)


@pytest.mark.parametrize("rule", DIFFERENTIABLE)
def test_gradients_of_examples_are_those_of_a_loop(rule: Rule) -> None:
    with np.errstate(all="ignore"):
        for case in few(rule, 1):
            got = vmap(lambda *x, case=case: gradient(case.loss, *x), case.axes)(*case.leaves)
            assert_same(got, [gradient(case.loss, *case.example(i)) for i in range(EXAMPLES)], case.point.label)


@pytest.mark.parametrize("rule", DIFFERENTIABLE)
def test_pushforwards_of_examples_are_those_of_a_loop(rule: Rule) -> None:
    def push(case: Case, x: Any) -> Any:
        return jvp(case.f, tuple(x), tuple(np.full(np.shape(part), 0.3) for part in x))[1]

    with np.errstate(all="ignore"):
        for case in few(rule, 1):
            got = vmap(lambda *x, case=case: push(case, x), case.axes)(*case.leaves)
            assert_same(got, [push(case, case.example(i)) for i in range(EXAMPLES)], case.point.label)


@pytest.mark.parametrize("rule", DIFFERENTIABLE)
def test_the_gradient_of_a_mapped_function_is_that_of_a_loop(rule: Rule) -> None:
    with np.errstate(all="ignore"):
        for case in few(rule, 1):
            got = gradient(lambda *x, case=case: np.sum(vmap(case.loss, case.axes)(*x)), *case.leaves)
            want = gradient(
                lambda *x, case=case: sum(case.loss(*case.example(i, x)) for i in range(EXAMPLES)), *case.leaves
            )
            for a, b in zip(got, want, strict=True):
                if a is None or b is None:
                    assert a is b, case.point.label
                    continue
                np.testing.assert_allclose(a, b, 1e-8, 1e-10, err_msg=case.point.label)


@pytest.mark.parametrize("rule", DIFFERENTIABLE)
def test_many_tangents_at_once_are_pushed_as_one_by_one(rule: Rule) -> None:
    with np.errstate(all="ignore"):
        for case in few(rule, 1):
            x = tuple(case.point.leaves)
            dots = [np.stack([np.ones(np.shape(part)) * (i + 1) for i in range(EXAMPLES)]) for part in x]
            got = vmap(lambda *v, case=case, x=x: jvp(case.f, x, v)[1])(*dots)
            want = [jvp(case.f, x, tuple(dot[i] for dot in dots))[1] for i in range(EXAMPLES)]
            assert_same(got, want, case.point.label)


@pytest.mark.parametrize("rule", DIFFERENTIABLE)
def test_many_cotangents_at_once_are_pulled_back_as_one_by_one(rule: Rule) -> None:
    with np.errstate(all="ignore"):
        for case in few(rule, 1):
            y, back = pullback(case.f, *case.point.leaves)
            y_parts = parts_of(y)
            bars = [
                np.stack([np.asarray(part) * (i + 1.0) for i in range(EXAMPLES)])
                if getattr(part, "dtype", np.dtype(float)).kind in "fc"
                else None
                for part in y_parts
            ]

            def seeded(*bars: Any, y: Any = y, back: Any = back) -> Any:
                return back(filled(y, iter(bars)))

            got = vmap(seeded)(*bars)
            want = [seeded(*(None if bar is None else bar[i] for bar in bars)) for i in range(EXAMPLES)]
            assert_same(got, want, case.point.label)


@pytest.mark.parametrize("rule", [r for r in RULED if r.function in REFUSED], ids=lambda r: r.label)
def test_what_cannot_be_mapped_says_so_and_why(rule: Rule) -> None:
    case = next(cases(rule, False))
    with pytest.raises(BatchError, match=r"np\.stack") as caught:
        vmap(case.f, case.axes)(*case.leaves)
    assert REFUSED[rule.function] in str(caught.value)
    assert "test_every_rule.py" in str(caught.value)
