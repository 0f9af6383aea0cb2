"""A derivative runs one native program, which has on its way what the others would compute."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from truth import close

import retrograde as rg
from retrograde.compiler.specialisation import Specialisation

pytest.importorskip("numba")
pytestmark = pytest.mark.usefixtures("as_plain_python")

X = np.array([0.5, -1.2, 2.0])
V = np.array([1.0, 0.5, -0.3])


@rg.compile
def energy(x, w):
    s = 0.0
    for i in range(len(x)):
        s += np.sin(x[i] * w) * x[i - 1] ** 2
    return s


@rg.compile
def curve(x, w):
    y = np.empty(len(x))
    for i in range(len(x)):
        y[i] = np.exp(x[i] * w) * x[i - 1]
    return y


@rg.compile
def root(x):
    return np.sum(np.sqrt(x) * x)


@rg.compile
def shifted(x, out):
    for i in range(len(x)):
        out[i] += x[i] * x[i - 1] * out[i - 1]
    return out[0] * x[1]


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The programs that have run."""
    ran: list[str] = []
    run = Specialisation.run

    def noted(self: Any, which: Any, *args: Any) -> Any:
        ran.append(f"{which.kind}{which.order}")
        return run(self, which, *args)

    monkeypatch.setattr(Specialisation, "run", noted)
    return ran


def loss(f):
    return lambda x: f(x, 0.7)


def squared(f):
    return lambda x: f(x, 0.7) ** 2 + x[0]


def total(f):
    return lambda x: np.sum(f(x, 0.7) * x)


def test_each_derivative_of_a_number_runs_the_one_program_that_has_all_of_it(runs):
    for make in (loss, squared):
        ours, plain = make(energy), make(energy.__wrapped__)
        for transform, program in (
            (lambda f: rg.gradient(f, X)[0], "T0"),
            (lambda f: rg.value_and_grad(f)(X)[1], "T0"),
            (lambda f: rg.jvp(f, (X,), (V,))[1], "J1"),
            (lambda f: rg.jvp(rg.grad(f), (X,), (V,))[1], "T1"),
            (lambda f: rg.jvp(rg.grad(f), (X,), (V,))[0], "T1"),
            (lambda f: rg.hvp(f, X, V), "T1"),
        ):
            runs.clear()
            close(transform(ours), transform(plain))
            assert runs == [program]


def test_the_value_of_an_array_comes_with_its_tangent(runs):
    ours, plain = total(curve), total(curve.__wrapped__)
    close(np.array(rg.jvp(ours, (X,), (V,))), rg.jvp(plain, (X,), (V,)))
    assert runs == ["J1"]
    runs.clear()
    close(rg.jacobian(loss(curve), X, mode="forward"), rg.jacobian(loss(curve.__wrapped__), X))
    assert "J0" not in runs
    runs.clear()
    close(rg.gradient(ours, X)[0], rg.gradient(plain, X)[0])
    assert runs == ["J0", "T0"]


def test_tangents_of_tangents_are_one_program(runs):
    def second(f):
        return rg.jvp(lambda x: rg.jvp(f, (x,), (V * x,))[1], (X,), (V,))[1]

    for make, f in ((squared, energy), (total, curve)):
        runs.clear()
        close(second(make(f)), second(make(f.__wrapped__)))
        assert "J0" not in runs
        assert runs[0] == "J2"


@pytest.mark.parametrize("make", [squared, total], ids=["of a number", "of an array"])
def test_third_derivatives_in_every_order_of_modes(make):
    f = energy if make is squared else curve
    ours, plain = make(f), make(f.__wrapped__)

    def push(g):
        return lambda x: rg.jvp(g, (x,), (V,))[1]

    def pull(g):
        return lambda x: np.sum(rg.grad(g)(x) * V * x[0])

    for a in (push, pull):
        for b in (push, pull):
            for c in (push, pull):
                close(a(b(c(ours)))(X), a(b(c(plain)))(X), rtol=1e-8)


def test_directions_that_are_zero_have_no_program_of_their_own_weight():
    def f(x):
        return energy(x, 0.7)

    def g(w):
        return energy(X, w)

    rg.jvp(f, (X,), (V,))
    rg.jvp(g, (0.7,), (1.0,))
    specialisation = next(iter(energy._specialisations.values()))
    texts = {w.along: p.text for w, p in specialisation.variant().finished.items() if (w.kind, w.order) == ("J", 1)}
    of_x, of_w = texts[(frozenset({0}),)], texts[(frozenset({1}),)]
    assert "w_dot" not in of_x
    assert "x_dot" not in of_w


def test_cotangents_that_nobody_asked_for_are_not_computed():
    rg.gradient(lambda w: energy(X, w) * 2.0, 0.7)
    specialisation = next(iter(energy._specialisations.values()))
    wanted = [w.wanted for w in specialisation.variant().finished if (w.kind, w.order) == ("T", 0)]
    assert frozenset({1}) in wanted


def test_zero_times_infinity_is_zero_also_for_a_factor_of_a_gradient():
    x = np.array([0.0, 1.0])
    _, ours = rg.pullback(root, x)
    _, plain = rg.pullback(root.__wrapped__, x)
    for seed in (0.0, 1.0, 2.5):
        close(ours(seed)[0], plain(seed)[0])
    logarithm = rg.compile(lambda x: np.sum(np.log(x)))
    close(rg.pullback(logarithm, x)[1](0.0)[0], [0.0, 0.0])


def test_what_a_function_writes_comes_with_the_tangent():
    def filled(f):
        def g(x):
            out = x * 0.0 + 1.0
            s = f(x, out)
            return np.sum(out * x) * s

        return g

    ours, plain = filled(shifted), filled(shifted.__wrapped__)
    close(np.array(rg.jvp(ours, (X,), (V,))), rg.jvp(plain, (X,), (V,)))
    close(rg.gradient(ours, X)[0], rg.gradient(plain, X)[0])
    close(rg.hvp(ours, X, V), rg.hvp(plain, X, V))
    close(rg.hessian(ours, X), rg.hessian(plain, X))


def test_a_parameter_outside_of_transforms_costs_no_gradient(runs):
    x = rg.param(X)
    y = energy(x, 0.7)
    assert runs == ["J0"]
    rg.back(y)
    close(x.grad, rg.gradient(loss(energy.__wrapped__), X)[0])
