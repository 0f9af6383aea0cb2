"""Random programs of writes, views and arithmetic: every mode agrees with plain NumPy's own differences."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import hypothesis
import numpy as np
import programs
import pytest
from hypothesis import strategies as st
from programs import BUFFERED, COMPLEX, MAKERS, PLAIN, TRACED, Program, draw_program

from retrograde import (
    MutationError,
    back,
    checkpointed,
    data,
    forwarddiff,
    gradient,
    hessian,
    hvp,
    jvp,
    param,
    pullback,
    taylor,
)

LONG = "RETROGRADE_LONG" in os.environ
"""A night's run: forty times as many programs, and other ones every night."""


def drawn(examples: int) -> hypothesis.settings:
    return hypothesis.settings(
        max_examples=40 * examples if LONG else examples,
        derandomize=not LONG,
        database=None,
        deadline=None,
        print_blob=False,
        # Programs come from a seed, so that no two are alike; a failing one is made smaller by leaving statements out.
        phases=(hypothesis.Phase.generate,),
        suppress_health_check=list(hypothesis.HealthCheck),
    )


@st.composite
def some_program(draw: Any, kinds: dict[str, int], layouts: tuple[str, ...] = ("C", "C", "Fortran")) -> Program:
    random = draw(st.randoms(use_true_random=True))
    return draw_program(random.randrange, kinds, layouts)


# --- the truth -----------------------------------------------------------------------------------------------------


class Truth:
    """Value and derivatives of a program by plain NumPy: a complex step where every operation is analytic, else
    differences of order six; second derivatives along two directions by differences of those."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.f = program.function(PLAIN)
        self.complex_f = program.function(COMPLEX)
        self.x = np.concatenate([np.ravel(a.values) for a in program.arguments])
        self.v = np.sin(1.0 + 2.0 * np.arange(self.x.size))
        self.w = np.cos(0.5 + 3.0 * np.arange(self.x.size))
        self.value = self.at(self.x)
        self.second = functools.cache(self._second)
        # A first derivative is as good as the step is: exact, or to the noise of a difference.
        self.tolerance = 1e-8 if program.analytic else 1e-6

    def at(self, x: Any) -> Any:
        f = self.complex_f if np.iscomplexobj(x) else self.f
        return f(*[a.array(part) for a, part in zip(self.program.arguments, self.parts(x), strict=True)])

    def parts(self, x: Any) -> list[Any]:
        parts, start = [], 0
        for argument in self.program.arguments:
            shape, size = argument.values.shape, argument.values.size
            parts.append(x[start : start + size].reshape(shape))
            start += size
        return parts

    def along(self, x: Any, v: Any, h: float = 1e-3) -> float:
        """The derivative of the program at `x` along `v`."""
        if self.program.analytic:
            return float(np.imag(self.at(x + 1e-30j * v)) / 1e-30)
        return _difference(lambda t: self.at(x + t * v), h)

    def gradient(self) -> Any:
        return np.array([self.along(self.x, direction) for direction in np.eye(self.x.size)])

    def _second(self, h: float = 1e-3) -> float:
        """wᵀ H v."""
        return _difference(lambda t: self.along(self.x + t * self.v, self.w), h)

    def is_reliable(self) -> bool:
        """Whether differences of two step lengths agree: no step crosses a branch, nothing bends too sharply."""
        if not self.program.analytic:
            a, b = self.along(self.x, self.v), self.along(self.x, self.v, 7e-4)
            if not abs(a - b) < 1e-7 * (1.0 + abs(a)):
                return False
        a, b = self.second(), self.second(7e-4)
        return abs(a - b) < 1e-6 * (1.0 + abs(a))


def _difference(f: Callable[[float], float], h: float) -> float:
    terms = ((1, 3 / 4), (2, -3 / 20), (3, 1 / 60))
    return float(sum(weight * (f(k * h) - f(-k * h)) for k, weight in terms) / h)


# --- the modes -----------------------------------------------------------------------------------------------------


def _flat(bars: Any, program: Program) -> Any:
    """Cotangents of the arguments as one vector; None is zero."""
    return np.concatenate(
        [
            np.zeros(a.values.size) if bar is None else np.ravel(bar)
            for bar, a in zip(bars, program.arguments, strict=True)
        ]
    )


def _dot(bars: Any, directions: list[Any]) -> Any:
    return sum(np.sum(bar * v) for bar, v in zip(bars, directions, strict=True) if bar is not None)


def _own(x: Any) -> Any:
    """A copy of an array; numbers are what they are."""
    return np.copy(x) if isinstance(data(x), np.ndarray) else 1.0 * x


class Modes:
    """What the library says of a program: each method gives (what it is, got, wanted) as often as it likes."""

    def __init__(self, program: Program, truth: Truth, made_of: dict[str, Any]) -> None:
        self.program, self.truth, self.made_of = program, truth, made_of
        self.f = program.function(made_of)
        self.xs = program.arrays()
        self.v, self.w = truth.parts(truth.v), truth.parts(truth.w)
        self.wanted = truth.gradient()

    def reverse(self) -> Any:
        y, pull = pullback(self.f, *self.xs)
        yield "value", y, self.truth.value
        first = pull(1.0)
        yield "gradient", _flat(first, self.program), self.wanted
        yield "second pullback", _flat(pull(2.0), self.program), 2 * self.wanted
        yield "gradient", _flat(gradient(self.f, *self.xs), self.program), self.wanted

    def forward(self) -> Any:
        y, y_dot = jvp(self.f, tuple(self.xs), tuple(self.v))
        yield "value in jvp", y, self.truth.value
        yield "jvp", y_dot, self.wanted @ self.truth.v
        some = tuple(v if k else None for k, v in enumerate(self.v))
        rest = np.concatenate([np.ravel(v) * (k > 0) for k, v in enumerate(self.v)])
        if len(self.v) > 1:
            yield "jvp with a constant argument", jvp(self.f, tuple(self.xs), some)[1], self.wanted @ rest

    def forward_over_reverse(self) -> Any:
        product = hvp(lambda xs: self.f(*xs), self.xs, self.v)
        yield "hvp", _dot(product, self.w), self.truth.second()
        if len(self.xs) == 1 and np.size(self.xs[0]) <= 4:
            h = hessian(self.f, *self.xs).reshape(self.truth.x.size, -1)
            yield "hessian", self.truth.w @ h @ self.truth.v, self.truth.second()
            yield "hessian and its transpose", h, h.T

    def reverse_over_reverse(self) -> Any:
        g = gradient(lambda *xs: _dot(gradient(self.f, *xs), self.v), *self.xs)
        yield "gradient of gradient", _flat(g, self.program) @ self.truth.w, self.truth.second()

    def reverse_over_forward(self) -> Any:
        g = gradient(lambda *xs: jvp(self.f, xs, tuple(self.v))[1] * 1.0, *self.xs)
        yield "gradient of jvp", _flat(g, self.program) @ self.truth.w, self.truth.second()

    def forward_over_forward(self) -> Any:
        y_dot = jvp(lambda *xs: jvp(self.f, xs, tuple(self.v))[1], tuple(self.xs), tuple(self.w))[1]
        yield "jvp of jvp", y_dot, self.truth.second()

    def series(self) -> Any:
        y, slope, bend = self._taylor(self.v)
        yield "value in taylor", y, self.truth.value
        yield "taylor", slope, self.wanted @ self.truth.v
        both = self._taylor([np.add(v, w) for v, w in zip(self.v, self.w, strict=True)])[2]
        yield "bend of taylor", both - bend - self._taylor(self.w)[2], self.truth.second()

    def _taylor(self, v: Any) -> Any:
        return taylor(lambda xs: self.f(*xs), self.xs, list(v), 2)

    def reverse_over_series(self) -> Any:
        g = gradient(lambda *xs: taylor(lambda xs: self.f(*xs), list(xs), self.v, 2)[1] * 1.0, *self.xs)
        yield "gradient of taylor", _flat(g, self.program) @ self.truth.w, self.truth.second()

    def series_over_reverse(self) -> Any:
        coefficients = taylor(lambda xs: _dot(gradient(self.f, *xs), self.w), self.xs, self.v, 1)
        yield "taylor of gradient", coefficients[1], self.truth.second()

    # The arguments of these are not the function's own, so that it writes into copies. A copy of what does not lie
    # densely does, and NumPy then gives other views of it.

    def parameters(self) -> Any:
        held = [param(x) for x in self.xs]
        # Outside of a transform what NumPy makes stays plain, and cannot take what is computed of parameters.
        plain_if_outside = rf"[-+*/]= \[|np\.({'|'.join(MAKERS)})(_like)?\("
        if any(re.search(plain_if_outside, statement) for statement in self.program.body):
            return
        # Outside of a transform NumPy makes arrays of lists, and np.array refuses parameters.
        body = tuple(re.sub(r"np\.array\((\w+)\)", r"np.copy(\1)", statement) for statement in self.program.body)
        y = replace(self.program, body=body).function(self.made_of)(*[_own(p) for p in held])
        back(y, once=False)
        back(y)
        yield "back, twice", np.concatenate([np.ravel(p.grad) for p in held]), 2 * self.wanted

    def in_checkpoint(self) -> Any:
        def f(*xs: Any) -> Any:
            return self.f(*[_own(x) for x in xs])

        g = gradient(lambda *xs: checkpointed(f, *xs), *self.xs)
        yield "gradient through a checkpoint", _flat(g, self.program), self.wanted
        product = hvp(lambda xs: checkpointed(f, *xs), self.xs, self.v)
        yield "hvp through a checkpoint", _dot(product, self.w), self.truth.second()

    def in_forwarddiff(self) -> Any:
        g = gradient(lambda *xs: forwarddiff(lambda xs: self.f(*[_own(x) for x in xs]), list(xs)), *self.xs)
        yield "gradient through forwarddiff", _flat(g, self.program), self.wanted


DENSE = ("parameters", "in_checkpoint", "in_forwarddiff")
PURE = (
    "reverse",
    "forward",
    "forward_over_reverse",
    "reverse_over_reverse",
    "reverse_over_forward",
    "forward_over_forward",
    "series",
    "reverse_over_series",
    "series_over_reverse",
)


# What NumPy does only because there are no elements; and what depends on the order in which it goes through memory.
_RIGHTLY_REFUSED = ("would be cut", "has not read yet")


def what_is_wrong(program: Program, names: tuple[str, ...], made_of: dict[str, Any] = TRACED) -> list[str]:
    """Where these modes give other derivatives than the program's, fail, or change its arguments."""
    truth = Truth(program)
    if not truth.is_reliable():
        return []
    modes = Modes(program, truth, made_of)
    size = 1.0 + abs(truth.value) + np.max(np.abs(modes.wanted))
    wrong = []
    for name in names:
        try:
            for what, got, wanted in getattr(modes, name)():
                # The noise of differences of differences is that of the first, over another step.
                tolerance = truth.tolerance if "hvp" not in what and "of" not in what and what != "hessian" else 1e-5
                if not np.allclose(got, wanted, rtol=tolerance, atol=tolerance * size):
                    wrong.append(f"{what}: {got}, but {wanted} is right")
        except Exception as error:  # whatever it is, the report says which program
            if isinstance(error, ValueError) and "read-only" in str(error):
                # NumPy itself writes through a read-only view in `ufunc.at`; to refuse it is no wrong number.
                continue
            if isinstance(error, MutationError) and any(text in str(error) for text in _RIGHTLY_REFUSED):
                continue
            wrong.append(f"{name}: {type(error).__name__}: {error}")
        for x, argument in zip(modes.xs, program.arguments, strict=True):
            if not np.array_equal(x, argument.values):
                wrong.append(f"{name} changed the caller's argument to {x}")
    return wrong


def shortened(program: Program, names: tuple[str, ...], made_of: dict[str, Any]) -> Program:
    """What is left of a program that fails when every statement without which it still does is left out."""
    for i in range(len(program.body) - 1):
        shorter = replace(program, body=program.body[:i] + program.body[i + 1 :])
        try:
            with programs.strictly():
                shorter.function(PLAIN)(*shorter.arrays())
            fails = bool(what_is_wrong(shorter, names, made_of))
        except Exception:  # a name that nobody gave a value
            fails = False
        if fails:
            return shortened(shorter, names, made_of)
    return program


def agrees(program: Program, names: tuple[str, ...], made_of: dict[str, Any] = TRACED) -> None:
    """Every mode of these names gives the program's derivatives and leaves its arguments as they were."""
    if what_is_wrong(program, names, made_of):
        program = shortened(program, names, made_of)
        pytest.fail(f"\n{program}\n" + "\n".join(what_is_wrong(program, names, made_of)), pytrace=False)


# --- tests ---------------------------------------------------------------------------------------------------------


@drawn(280)
@hypothesis.given(some_program(programs.KINDS))
def test_every_mode_agrees_with_numpy_on_random_programs(program):
    agrees(program, PURE + DENSE)


@drawn(50)
@hypothesis.given(some_program(programs.KINDS, ("strided", "reversed", "Fortran")))
def test_every_mode_agrees_with_numpy_on_arguments_that_lie_scattered_in_memory(program):
    agrees(program, PURE)


@drawn(80)
@hypothesis.given(some_program(programs.COMPLEX_KINDS))
def test_every_mode_agrees_with_numpy_on_random_programs_with_complex_arrays(program):
    agrees(program, PURE + DENSE)


@drawn(40)
@hypothesis.given(some_program(programs.NESTED_KINDS))
def test_gradients_inside_random_programs_agree_with_differences(program):
    agrees(program, ("reverse", "forward", "parameters"))


@drawn(50)
@hypothesis.given(some_program(programs.BUFFER_KINDS, ("C",)))
def test_random_programs_in_buffers_agree_with_the_same_on_arrays(program):
    # A Buffer reads all of the right-hand side before it writes; NumPy writes the items of a list one by one, and a
    # later item may be a view of what an earlier one has overwritten.
    hypothesis.assume(not any(re.search(r"^(\w+)\[.*\] = \[.*\b\1\[", statement) for statement in program.body))
    agrees(program, PURE + DENSE)
    agrees(program, PURE + DENSE, BUFFERED)


def test_the_programs_contain_everything_that_they_are_meant_to():
    """A generator whose statements are all dropped would test nothing."""
    rng = np.random.default_rng(0)
    texts = []
    for kinds in (programs.KINDS, programs.COMPLEX_KINDS, programs.NESTED_KINDS, programs.BUFFER_KINDS):
        texts += [draw_program(lambda n: int(rng.integers(n)), kinds).source for _ in range(100)]
    together = "\n".join(texts)
    parts = """
        ::-1] =;None;above(;np.array([[;np.ix_;+=;-=;*=;/=;**=;.T;.reshape(;.ravel();order='F';swapaxes;diagonal
        .real;.imag;out=;.at(;for row in;if above;[...] =;inner(;start(;.copy();np.where;array_split
        np.copyto;np.put(;.put(;np.place;np.putmask;np.put_along_axis;.fill(;.flat[;fill_diagonal;.sort(;multiply.at
        np.zeros(;np.eye;zeros_like;np.empty;linalg.solve;np.full(;np.sum(;maximum.at;np.clip;where=np.array
    """
    for part in re.split(r";|\n", parts.strip()):
        part = part.strip()
        assert part in together, f"no program has {part!r}"
    assert sum(text.count("\n") for text in texts) > 6 * len(texts)


if __name__ == "__main__":
    pytest.main([__file__])
