"""Every pair and every triple of modes, nested in every order, against exact values.

A mode here is an operator that makes a function of R³ → R³ into another one: a product with the Jacobian or its
transpose, a Taylor coefficient, a sum over a batch. Of a sum of exponentials c·exp(b·x) each of them is a sum of
exponentials again, with other c and b. So the truth of any nesting is written down without a derivative.

`MODES` is the one table: a mode that is added to it is nested with all others. What cannot be nested is in `REFUSED`,
with what the error says.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from truth import close

from retrograde import (
    RetrogradeError,
    checkpointed,
    compile,
    gradient,
    jvp,
    pullback,
    sparse_hessian,
    sparse_jacobian,
    taylor,
    vmap,
)

Function = Callable[[Any], Any]

# --- sums of exponentials ----------------------------------------------------------------------------------------


class Term(NamedTuple):
    """c·exp(b·x)"""

    c: float
    b: np.ndarray


Sums = list[list[Term]]
"""For each output the terms of its sum."""


def value(sums: Sums, x: np.ndarray) -> np.ndarray:
    return np.array([sum(term.c * np.exp(term.b @ x) for term in terms) for terms in sums])


def mapped(sums: Sums, change: Callable[[Term], Term]) -> Sums:
    return [[change(term) for term in terms] for terms in sums]


B = np.array([[0.5, -0.3, 0.0], [0.2, 0.4, -0.6], [0.0, 0.7, 0.3]])
START: Sums = [[Term(1.0, row), Term(2.0, -row)] for row in B]


def start(x: Any) -> Any:
    """START as a program: a product, a loop, an array that is written to, views and in-place operators."""
    exponents = B @ x
    out = np.zeros(3)
    for i in range(3):
        out[i] = np.exp(exponents[i])
    rest = out[::-1]
    rest += 2 / np.exp(exponents[::-1])
    return out


# --- modes -------------------------------------------------------------------------------------------------------


class Mode(NamedTuple):
    """What a mode makes of a function, run by the library, and of sums, exactly; both along a given vector."""

    of_function: Callable[[Function, np.ndarray], Function]
    of_sums: Callable[[Sums, np.ndarray], Sums]


def transposed(sums: Sums, w: np.ndarray) -> Sums:
    """Jᵀw."""
    return [
        [Term(weight * term.c * term.b[j], term.b) for weight, terms in zip(w, sums, strict=True) for term in terms]
        for j in range(3)
    ]


MODES: dict[str, Mode] = {
    "reverse": Mode(
        lambda f, w: lambda x: gradient(lambda x: np.sum(w * f(x)), x)[0],
        transposed,
    ),
    "forward": Mode(
        lambda f, v: lambda x: jvp(f, (x,), (v,))[1],
        lambda sums, v: mapped(sums, lambda t: Term(t.c * (t.b @ v), t.b)),
    ),
    "Taylor": Mode(
        lambda f, v: lambda x: taylor(f, x, v, 2)[2],
        lambda sums, v: mapped(sums, lambda t: Term(t.c * (t.b @ v) ** 2 / 2, t.b)),
    ),
    "sparse": Mode(
        lambda f, v: lambda x: sparse_jacobian(f, x) @ v,
        lambda sums, v: mapped(sums, lambda t: Term(t.c * (t.b @ v), t.b)),
    ),
    "sparse, second": Mode(
        lambda f, v: lambda x: sparse_hessian(lambda x: np.sum(v * f(x)), x) @ v,
        lambda sums, v: transposed(mapped(sums, lambda t: Term(t.c * (t.b @ v), t.b)), v),
    ),
    "batch": Mode(
        lambda f, v: lambda x: np.array([1.0, 0.5]) @ vmap(f)(np.stack([x, x + v])),
        lambda sums, v: [terms + [Term(0.5 * t.c * np.exp(t.b @ v), t.b) for t in terms] for terms in sums],
    ),
    "batch of tangents": Mode(
        lambda f, v: lambda x: np.sum(vmap(lambda u: jvp(f, (x,), (u,))[1])(np.stack([v, -0.5 * v])), axis=0),
        lambda sums, v: mapped(sums, lambda t: Term(0.5 * t.c * (t.b @ v), t.b)),
    ),
    "batch of cotangents": Mode(
        lambda f, w: lambda x: np.sum(vmap(pullback(f, x)[1])(np.stack([w, 0.5 * w]))[0], axis=0),
        lambda sums, w: transposed(sums, 1.5 * w),
    ),
    "checkpointed": Mode(
        lambda f, v: lambda x: checkpointed(f, x),
        lambda sums, v: sums,
    ),
}

REFUSED: dict[tuple[str, str], str] = {
    (outer, inner): "traced.* a sparse matrix of SciPy, which holds plain numbers"
    for outer in MODES
    for inner in ("sparse", "sparse, second")
    if outer != "checkpointed"
}
"""(outer, inner) → what the error says."""

X = np.array([0.3, -0.5, 0.8])
SHIFT = np.array([0.1, 0.4, -0.2])


def vector(depth: int) -> np.ndarray:
    """A vector for each depth, so that directions which are mixed up give other numbers."""
    return np.random.default_rng(depth).uniform(0.5, 1.5, 3)


def nested(names: tuple[str, ...], closing: bool, leaf: Function = start) -> tuple[Function, Sums]:
    """The modes around `leaf`, which computes START, the first outermost.

    Args:
        closing: whether the inner modes differentiate in a variable of their own, of a function that closes over the
            outer one, so that the two could be confused.
    """
    function, sums = leaf, START
    for depth, name in reversed(list(enumerate(names))):
        mode, v = MODES[name], vector(depth)
        sums = mode.of_sums(sums, v)
        if closing and depth:
            inside = function

            def function(x: Any, inside: Function = inside, mode: Mode = mode, v: np.ndarray = v) -> Any:
                return mode.of_function(lambda y: inside(x + y), v)(SHIFT)

            sums = mapped(sums, lambda t: Term(t.c * np.exp(t.b @ SHIFT), t.b))
        else:
            function = mode.of_function(function, v)
    return function, sums


def refusal(names: tuple[str, ...]) -> str | None:
    for pair in itertools.combinations(names, 2):
        if pair in REFUSED:
            return REFUSED[pair]
    return None


NESTINGS = [names for count in (1, 2, 3) for names in itertools.product(MODES, repeat=count)]


@pytest.mark.parametrize("closing", [False, True], ids=["passed", "closed over"])
@pytest.mark.parametrize("names", NESTINGS, ids=" of ".join)
def test_a_nesting_of_modes_is_exact_or_refused(names: tuple[str, ...], closing: bool) -> None:
    function, sums = nested(names, closing)
    said = refusal(names)
    if said is not None:
        with pytest.raises(RetrogradeError, match=said):
            function(X)
        return
    close(function(X), value(sums, X), rtol=1e-9, atol=1e-9)


def test_every_kind_of_mode_is_in_the_table_and_the_sparse_ones_alone_are_refused() -> None:
    kinds = ("reverse", "forward", "batch", "Taylor", "sparse", "checkpointed")
    assert set(kinds) <= set(MODES)
    assert len(NESTINGS) == sum(len(MODES) ** count for count in (1, 2, 3))
    assert {inner for _, inner in REFUSED} == {"sparse", "sparse, second"}
    assert {outer for outer, _ in REFUSED} == {*MODES} - {"checkpointed"}


@pytest.fixture(scope="module")
def compiled_start() -> Function:
    pytest.importorskip("numba")

    def program(x: Any, exponents: Any) -> Any:
        out = np.zeros(3)
        for i in range(3):
            s = 0.0
            for j in range(3):
                s += exponents[i, j] * x[j]
            out[i] = np.exp(s) + 2 * np.exp(-s)
        return out

    native = compile(program)
    return lambda x: native(x, B)


# Each kind by itself, and the pairs of those whose native programs are of the second order at most.
OF_COMPILED = [
    *((name,) for name in MODES),
    *itertools.product(("reverse", "forward", "batch", "checkpointed"), repeat=2),
    *itertools.product(("sparse", "sparse, second", "Taylor"), ("batch", "checkpointed")),
]


@pytest.mark.parametrize("names", OF_COMPILED, ids=" of ".join)
def test_modes_nest_around_a_compiled_function(names: tuple[str, ...], compiled_start: Function) -> None:
    function, sums = nested(names, False, compiled_start)
    close(function(X), value(sums, X), rtol=1e-9, atol=1e-9)


def test_the_program_is_the_sum_that_it_is_compared_with() -> None:
    close(start(X), value(START, X), rtol=1e-14)
