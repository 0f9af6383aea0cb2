"""Every law over every rule's points, and the checker itself over wrong rules."""

from __future__ import annotations

import importlib.util
from typing import Any

import laws
import numpy as np
import pytest
from sampling import Point, points

import retrograde.rules
from retrograde.rules.points import call, complex_, real
from retrograde.rules.products import conj
from retrograde.rules.table import RULES, Composed, Elementwise, General, Linear, Multilinear, NoGradient, Rule

HAS_SCIPY = importlib.util.find_spec("scipy") is not None
SPECIAL: set[Any] = set()
if HAS_SCIPY:
    retrograde.rules.load_scipy()
    SPECIAL = {f for f in vars(importlib.import_module("scipy.special")).values() if isinstance(f, np.ufunc)}


def _name(rule: Rule) -> str:
    module = getattr(rule.function, "__module__", None) or "numpy"
    if rule.function in SPECIAL or "special" in module:
        return f"special.{rule.name}"
    package = module.removeprefix("numpy").strip("._")
    return f"{package}.{rule.name}" if package in ("linalg", "fft", "math") else rule.name


RULED = sorted((r for r in RULES.values() if not isinstance(r, NoGradient)), key=_name)
POINTS = [(rule, point) for rule in RULED for point in points(rule)]


@pytest.mark.parametrize("rule", [pytest.param(r, id=_name(r)) for r in RULED])
def test_rule_has_the_form_of_its_function(rule: Rule) -> None:
    laws.check_form(rule)


@pytest.mark.parametrize(("rule", "point"), [pytest.param(r, p, id=f"{_name(r)}: {p.label}") for r, p in POINTS])
def test_rule_obeys_every_law(rule: Rule, point: Point) -> None:
    laws.check(rule, point)


def test_rules_of_scipy_are_among_them() -> None:
    if not HAS_SCIPY:
        pytest.skip("SciPy is not installed: the laws did not run over its rules")
    assert sum(_name(rule).startswith("special.") for rule in RULED) > 250


# The laws that need the engine (both modes, second order) are in test_rules_in_the_engine.py.


def test_whatever_has_no_gradient_says_why() -> None:
    assert [r.name for r in RULES.values() if isinstance(r, NoGradient) and not r.why.strip()] == []


# --- The checker catches wrong rules ----------


def multiply_pullback(y: Any, x1: Any, x2: Any) -> Any:
    def pull(y_bar: Any) -> Any:
        return (y_bar * conj(x2),)

    return pull


def multiply_pushforward(y: Any, x1: Any, x2: Any) -> Any:
    def push(x1_dot: Any) -> Any:
        return x1_dot * x2

    return push


def pullback_that_writes(y: Any, x: Any) -> Any:
    def pull(y_bar: Any) -> Any:
        y_bar *= 2 * x
        return (y_bar,)

    return pull


def pullback_that_is_used_up(y: Any, x: Any) -> Any:
    residuals = [2 * x]

    def pull(y_bar: Any) -> Any:
        return (y_bar * residuals.pop(),) if residuals else (y_bar * 0,)

    return pull


def pullback_that_divides(y: Any, x: Any) -> Any:
    def pull(y_bar: Any) -> Any:
        return (y_bar * y_bar * 2 * x / y_bar,)

    return pull


def square_pullback(y: Any, x: Any) -> Any:
    def pull(y_bar: Any) -> Any:
        return (y_bar * 2 * conj(x),)

    return pull


def square_pushforward(y: Any, x: Any) -> Any:
    def push(x_dot: Any) -> Any:
        return 2 * x * x_dot

    return push


def two_cotangents_for_one(y: Any, x: Any) -> Any:
    def pull(y_bar: Any) -> Any:
        return y_bar * 2 * x, y_bar

    return pull


unary = [call(real(1, 2, 3))]
LINES = [call(real(-1, 1, 2, 3))]
PAIRS = [call(real(1, 2, 2, 3), np.ones((4, 2, 3)) * 2)]

WRONG = {
    "wrong sign": (
        Elementwise(np.cos, (lambda x: np.sin(x),), at=[real(1, 2)]),
        "pushforward_agrees_with_differences",
    ),
    "partial that ignores its argument": (
        Elementwise(np.multiply, (lambda b: b, lambda b: b), at=[real(1, 2), real(3, 4)]),
        "pushforward_agrees_with_differences",
    ),
    "right partials in the wrong order": (
        Elementwise(np.subtract, (-1.0, 1.0), at=[real(1, 2), real(3, 4)]),
        "pushforward_agrees_with_differences",
    ),
    "right only to eight digits": (
        Elementwise(np.exp, (lambda y: y * (1 + 3e-9),), at=[real(1, 2)]),
        "pushforward_agrees_with_differences",
    ),
    "right on real numbers only": (
        Elementwise(np.exp, (lambda x: np.exp(np.real(x)),), at=[real(1, 2)]),
        "pushforward_agrees_with_differences",
    ),
    "partial too few": (Elementwise(np.add, (1.0,), at=[real(0, 1)]), "partials_fit_the_function"),
    "partial of an unknown name": (
        Elementwise(np.exp, (lambda out: out,), at=[real(0, 1)]),
        "partials_fit_the_function",
    ),
    "missing conj": (
        Multilinear(
            np.matmul,
            (0, 1),
            (lambda y_bar, x1, x2: y_bar @ x2.T, lambda y_bar, x1, x2: conj(x1).T @ y_bar),
            at=[call(complex_(-1, 1, 2, 2), complex_(-1, 1, 2, 2))],
        ),
        "pullback_is_the_adjoint_of_the_pushforward",
    ),
    "missing conj in a linear rule": (
        Linear(np.conjugate, (0,), (lambda y_bar, x: y_bar,), at=[call(complex_(-1, 1, 3))]),
        "pullback_is_the_adjoint_of_the_pushforward",
    ),
    "missing unbroadcast": (
        General(np.multiply, (0,), multiply_pullback, multiply_pushforward, at=PAIRS),
        "cotangents_have_the_shapes_of_the_arguments",
    ),
    "pushforward that disagrees with its pullback": (
        General(np.square, (0,), square_pullback, lambda y, x: lambda x_dot: x * x_dot, at=unary),
        "pullback_is_the_adjoint_of_the_pushforward",
    ),
    "pullback that disagrees with its pushforward": (
        General(np.square, (0,), lambda y, x: lambda y_bar: (y_bar * x,), square_pushforward, at=unary),
        "pullback_is_the_adjoint_of_the_pushforward",
    ),
    "affine, not linear": (
        Linear(
            np.sum,
            (0,),
            (lambda y_bar, a, axis=None, initial=0: np.broadcast_to(y_bar, a.shape),),
            at=[call(real(0, 1, 3), initial=5.0)],
        ),
        "pushforward_agrees_with_differences",
    ),
    "axis that is ignored": (
        Linear(
            np.flip,
            (0,),
            (lambda y_bar, m, axis=None: np.flip(y_bar),),
            at=[call(real(-1, 1, 2, 3), axis=0)],
        ),
        "pullback_is_the_adjoint_of_the_pushforward",
    ),
    "argument that is not differentiated": (
        Linear(np.append, (0,), (lambda y_bar, arr, values: y_bar[:3],), at=[call(real(0, 1, 3), real(0, 1, 2))]),
        "cotangents_have_the_shapes_of_the_arguments",
    ),
    "write into the cotangent": (
        General(np.square, (0,), pullback_that_writes, square_pushforward, at=unary),
        "inputs_are_not_changed",
    ),
    "residual that is used up": (
        General(np.square, (0,), pullback_that_is_used_up, square_pushforward, at=unary),
        "pull_can_be_called_twice",
    ),
    "zero over zero": (
        General(np.square, (0,), pullback_that_divides, square_pushforward, at=unary),
        "zero_cotangent_gives_zero",
    ),
    "a cotangent too many": (
        General(np.square, (0,), two_cotangents_for_one, square_pushforward, at=unary),
        "cotangents_have_the_shapes_of_the_arguments",
    ),
    "together with a function of another value": (
        General(
            np.square, (0,), square_pullback, square_pushforward, lambda x: (x, square_pullback(x * x, x)), at=unary
        ),
        "together_is_the_function_and_its_pullback",
    ),
    "together with another pullback": (
        General(
            np.square, (0,), square_pullback, square_pushforward, lambda x: (x * x, lambda y_bar: (y_bar,)), at=unary
        ),
        "together_is_the_function_and_its_pullback",
    ),
    "parameter of another name": (
        Linear(np.flip, (0,), (lambda y_bar, a, axis=None: np.flip(y_bar, axis),), at=LINES),
        "formulas_name_the_functions_parameters",
    ),
    "parameter in another place": (
        Linear(np.cumsum, (0,), (lambda y_bar, a, dtype=None, axis=None: y_bar,), at=LINES),
        "formulas_name_the_functions_parameters",
    ),
    "another default": (
        Linear(np.flip, (0,), (lambda y_bar, m, axis=0: np.flip(y_bar, axis),), at=LINES),
        "formulas_name_the_functions_parameters",
    ),
    "everything swallowed": (
        Linear(np.flip, (0,), (lambda y_bar, m, **kwargs: np.flip(y_bar),), at=LINES),
        "formulas_name_the_functions_parameters",
    ),
    "body of another value": (
        Composed(np.var, lambda a, axis=None: np.mean(a * a, axis), at=[call(real(1, 2, 3))]),
        "value_of_the_body_is_the_functions",
    ),
    "argument that no formula has": (
        Linear(np.flip, (1,), (lambda y_bar, m: np.flip(y_bar),), at=LINES),
        "differentiable_arguments_exist",
    ),
    "no points": (Linear(np.flip, (0,), (lambda y_bar, m: np.flip(y_bar),), at=[]), "it_is_tested_somewhere"),
}

RIGHT = {
    "elementwise": Elementwise(np.multiply, (lambda b: b, lambda a: a), at=[real(-1, 1), real(-1, 1)]),
    "linear": Linear(np.flip, (0,), (lambda y_bar, m, axis=None: np.flip(y_bar, axis),), at=LINES),
    "general": General(np.square, (0,), square_pullback, square_pushforward, at=unary),
    "composed": Composed(np.var, lambda a, axis=None: np.mean((a - np.mean(a, axis)) ** 2, axis), at=unary),
    "sequence": Linear(
        np.concatenate,
        (0,),
        (lambda y_bar, arrays: np.split(y_bar, np.cumsum([a.shape[0] for a in arrays])[:-1]),),
        at=[call([real(0, 1, 2), real(0, 1, 3)]), call((real(0, 1, 2), np.zeros(1)))],
    ),
}


@pytest.mark.parametrize("kind", WRONG)
def test_wrong_rule_is_caught_by_the_law_that_it_breaks(kind: str) -> None:
    rule, law = WRONG[kind]
    assert law in laws.broken(rule)


@pytest.mark.parametrize("kind", RIGHT)
def test_right_rule_breaks_no_law(kind: str) -> None:
    assert laws.broken(RIGHT[kind]) == set()
