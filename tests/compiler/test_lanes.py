"""Several directions or cotangents in one program: each lane is what a program of one gives.

Programs of one direction are compared with differences in test_corpus.py.
"""

from __future__ import annotations

import os
from typing import Any

import compiler.corpus_speed  # noqa: F401
import numpy as np
import pytest
from compiler import corpus_arrays, corpus_linalg, corpus_parallel, corpus_recursion, corpus_special  # noqa: F401  register their programs
from compiler.corpus import CASES, signed
from compiler.harness import Truth, specialised
from truth import close, differences

import retrograde as rg
from retrograde.compiler import each, parts
from retrograde.compiler.bridge import Bridge, Kind
from retrograde.compiler.examples import Examples, Weights, lanes_for
from retrograde.compiler.optimise import PASSES
from retrograde.compiler.options import Options
from retrograde.compiler.variant import Which

LONG = "RETROGRADE_LONG" in os.environ

# Programs that call themselves, and formulas that look at a tangent before they go on, have one direction at a time.
ONE_BY_ONE = {name for name, case in CASES.items() if case.function.__module__.endswith("corpus_recursion")}
ONE_BY_ONE -= {"pseudorandom_visits", "sums_over_a_list_that_changes"}  # loops
ONE_BY_ONE |= {"singular_values", "wide_singular_values", "complex_singular_values", "hermitian_matrices"}
ONE_BY_ONE |= {"complex_recursion"}

SOME = (
    "branches_in_a_loop newton_in_a_while_loop triangular_loops return_from_nested_loops views_write_through "
    "masks_and_gathers swapped_buffers named_tuples in_place_argument single_precision result_is_the_argument "
    "state_in_place argument_scaled_by_a_sum matrix_that_changes_in_a_loop calls_of_helpers"
).split()
SOME += ["chain_of_bodies", "products_with_short_inner_axes", "multiples_read_after_their_loop"]
SOME += ["parallel_rows", "parallel_with_tapes_of_unknown_length", "recursive_power"]


@pytest.fixture(autouse=True)
def _loops_over_few_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(each, "ENOUGH_FOR_A_LOOP", 2)


def half_sparse(values: Any, rng: np.random.Generator) -> Any:
    """The first half of some directions with zeros in most places, as those of a basis have."""
    half = len(values) // 2
    values[:half] *= rng.random(values[:half].shape) < 0.2
    return values


class Trial:
    """Derivatives of a program of the corpus along several directions."""

    def __init__(self, name: str, lanes: int, size: int, *, plain: bool = True, **options: Any) -> None:
        function, args = CASES[name]
        self.size = size
        self.of = specialised(function, args, plain=plain, options=Options(lanes=lanes, **options))
        self.truth = Truth(function, args, self.of)
        self.x = self.truth.leaves
        self.bridge = Bridge(self.of)
        rng = np.random.default_rng(11)
        shapes = [np.shape(y) for y in self.truth.outputs(self.x)]
        self.bars = [half_sparse(rng.uniform(0.5, 1.5, (size, *shape)), rng) for shape in shapes]
        self.dots = [
            half_sparse(rng.uniform(-1, 1, (size, *np.shape(a))), rng) if i in self.of.inputs else None
            for i, a in enumerate(self.x)
        ]
        single = any(t.dtype == "float32" for t in (*self.of.types, *self.of.result_types))
        self.tolerance = {"rtol": 1e-3, "atol": 1e-4} if single else {"rtol": 1e-10, "atol": 1e-11}

    def one(self, values: list[Any], k: int) -> list[Any]:
        return [None if v is None else v[k] for v in values]

    def check(self) -> None:
        """J₁ along directions, T₀ with cotangents, T₁ along directions and with cotangents."""
        along = frozenset(("dot", 0, ("x", i)) for i in self.of.inputs)
        bars = [("y_bar", j) for j in self.of.outputs] + [("x_bar", i) for i in self.of.finals]
        seeds = frozenset(bars)
        x, bridge = self.x, self.bridge
        one_bar, one_dot = self.one(self.bars, 0), self.one(self.dots, 0)
        self.agree(Kind("J", 1), (x, self.dots), along, lambda k: bridge.js(x, (self.one(self.dots, k),)))
        self.agree(Kind("T", 0), (x, self.bars), seeds, lambda k: bridge.ts(x, self.one(self.bars, k), ()))
        t1 = Kind("T", 1)
        self.agree(t1, (x, one_bar, self.dots), along, lambda k: bridge.ts(x, one_bar, (self.one(self.dots, k),)))
        self.agree(t1, (x, self.bars, one_dot), seeds, lambda k: bridge.ts(x, self.one(self.bars, k), (one_dot,)))

    def agree(self, kind: Kind, vectors: Any, roles: Any, single: Any) -> None:
        examples = Examples(self.size, roles)
        plain = self.bridge.j_plain if kind.name == "J" else self.bridge.t_plain
        got = plain(kind, *vectors, examples=examples)
        want = [[part for subset in single(k) for part in subset] for k in range(self.size)]
        for i, part in enumerate(got):
            for k in range(self.size):
                here = part[k] if np.shape(part) != np.shape(want[k][i]) else part
                close(np.asarray(here), np.asarray(want[k][i]), **self.tolerance)

    def widths(self) -> set[int]:
        """How many lanes the programs had."""
        natives = [which for v in self.of.variants.values() for which in v.natives]
        return {which.lanes for which in natives if which.mapped and which.part != "shared"} or {1}

    def parts(self) -> set[str]:
        return {which.part for v in self.of.variants.values() for which in v.natives if which.part}


def checked(name: str, lanes: int, size: int, **options: Any) -> None:
    trial = Trial(name, lanes, size, **options)
    trial.check()
    if trial.of.inputs and (trial.of.outputs or trial.of.finals):
        assert trial.widths() == ({1} if name in ONE_BY_ONE else {lanes})


@pytest.mark.parametrize("name", SOME)
def test_each_lane_is_what_a_program_of_one_gives(name):
    checked(name, 3, 8)


PARTED = (
    "chain_of_bodies mixture state_of_a_simulation triangular_loops newton_in_a_while_loop views_write_through "
    "masks_and_gathers named_tuples products_with_short_inner_axes reductions_with_axes"
).split()


@pytest.fixture
def _worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "WORTH", np.inf)


@pytest.mark.usefixtures("_worth_it")
@pytest.mark.parametrize("name", PARTED)
def test_what_directions_share_can_be_computed_apart(name):
    for lanes in (1, 2):
        trial = Trial(name, lanes, 4, parts=True)
        trial.check()
        assert trial.parts() == {"shared", "rest"}
        assert trial.widths() == {lanes} or name in ONE_BY_ONE


@pytest.mark.skipif(not LONG, reason="RETROGRADE_LONG is not set")
@pytest.mark.usefixtures("_worth_it")
@pytest.mark.parametrize("name", CASES)
def test_what_directions_share_can_be_computed_apart_in_all_programs(name):
    Trial(name, 1, 4, parts=True).check()
    Trial(name, 2, 4, parts=True, passes=()).check()
    Trial(name, 1, 4, parts=True, recompute=False, repeat=False).check()


@pytest.mark.skipif(not LONG, reason="RETROGRADE_LONG is not set")
@pytest.mark.parametrize("name", CASES)
def test_each_lane_of_all_programs_is_what_a_program_of_one_gives(name):
    checked(name, 3, 8)
    checked(name, 2, 3, passes=())
    checked(name, 2, 3, careful=True, recompute=False, repeat=False, rectangular=False)
    checked(name, 2, 3, checkpoint=2)


@pytest.mark.parametrize("name", ["triangular_loops", "in_place_argument", "parallel_rows"])
def test_lanes_under_switches(name):
    checked(name, 2, 3, passes=())
    checked(name, 2, 3, careful=True, recompute=False, repeat=False, rectangular=False)
    checked(name, 2, 3, checkpoint=2)
    checked(name, 2, 3, passes=(*PASSES, "parallel"))


@pytest.mark.parametrize("name", ["branches_in_a_loop", "reductions_with_axes"])
def test_lanes_through_numba(name):
    pytest.importorskip("numba")
    checked(name, 2, 7, plain=False)


@pytest.mark.parametrize("lanes", [1, 2, 4, None])
def test_jacobians_agree_with_differences_however_many_lanes_there_are(lanes):
    def f(x, w):
        y = np.zeros((2, len(x)))
        state = x.copy()
        for i in range(len(x)):
            if x[i] > 0.5:
                state[i - 1] += np.sin(x[i]) * w
            y[0, i] = state[i] * state[i - 1]
        for i in range(len(x)):
            y[1, i] = np.exp(y[0, i]) * x[i]
        return y

    x, w = np.array([0.7, -0.3, 1.2, 0.4, 0.9]), 0.8
    of = specialised(f, (x, w), options=Options(lanes=lanes))
    bridge = Bridge(of)
    slope = differences(lambda x: f(x, w), x)
    units = np.eye(5)
    columns = bridge.j_plain(
        Kind("J", 1), [x, w], [units, None], examples=Examples(5, frozenset({("dot", 0, ("x", 0))}))
    )
    close(np.moveaxis(columns[1], 0, -1), slope, rtol=1e-7, atol=1e-9)
    rows = bridge.t_plain(
        Kind("T", 0), [x, w], [np.eye(10).reshape(10, 2, 5)], examples=Examples(10, frozenset({("y_bar", 0)}))
    )
    close(rows[0].reshape(2, 5, 5), slope, rtol=1e-7, atol=1e-9)
    close(rows[1].reshape(2, 5), differences(lambda w: f(x, float(w)), w), rtol=1e-7, atol=1e-9)


def test_what_all_lanes_have_in_common_is_done_once():
    def f(x, w):
        s = 0.0
        for i in range(len(x)):
            s += np.exp(x[i]) * w[i]
        return s

    of = specialised(f, (np.ones(3), np.ones(3)), options=Options(lanes=4))
    Bridge(of).j_plain(
        Kind("J", 1),
        [np.ones(3), np.ones(3)],
        [None, np.eye(3)],
        examples=Examples(3, frozenset({("dot", 0, ("x", 1))})),
    )
    (text,) = (p.text for which, p in of.variant().finished.items() if which.lanes == 4)
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    assert sum("np.exp(" in line for line in lines) == 1
    assert sum("for " in line for line in lines) == 1


@pytest.mark.usefixtures("as_plain_python")
def test_batches_of_seeds_give_what_each_of_them_gives():
    pytest.importorskip("numba")

    @rg.compile(cache=False)
    def f(x, w):
        y = np.empty(len(x))
        for i in range(len(x)):
            y[i] = np.tanh(x[i] * w) * x[i - 1]
        return y, np.sum(y)

    plain = f.__wrapped__
    x, w = np.array([0.7, -0.3, 1.2]), 0.8
    seeds = np.random.default_rng(0).normal(size=(9, 3))
    numbers = np.arange(9.0)
    _, back = rg.pullback(f, x, w)
    _, plain_back = rg.pullback(plain, x, w)
    got = rg.vmap(lambda a, b: back((a, b)))(seeds, numbers)
    want = [plain_back((a, b)) for a, b in zip(seeds, numbers, strict=True)]
    close(got[0], np.stack([x_bar for x_bar, _ in want]))
    close(got[1], np.stack([w_bar for _, w_bar in want]))
    _, push = rg.pushforward(f, x, w)
    got = rg.vmap(lambda v: push(v, 0.0))(seeds)
    close(got[0], np.stack([rg.jvp(plain, (x, w), (v, 0.0))[1][0] for v in seeds]))

    def number(g):
        return lambda x: g(x, w)[1] ** 2

    close(rg.vmap(lambda v: rg.hvp(number(f), x, v))(seeds), np.stack([rg.hvp(number(plain), x, v) for v in seeds]))


def test_a_function_may_branch_on_its_value_whatever_the_directions_are():
    pytest.importorskip("numba")

    @rg.compile(cache=False)
    def f(x):
        return np.sum(x * x)

    def g(f):
        return lambda x: f(x) * x if f(x) > 1.0 else x

    x = np.array([0.7, -0.3, 1.2])
    close(rg.jacobian(g(f), x, mode="forward"), rg.jacobian(g(f.__wrapped__), x))
    close(rg.jacobian(g(f), x, mode="reverse"), rg.jacobian(g(f.__wrapped__), x))


def test_lanes_are_as_many_as_pay():
    cheap_to_share = Weights(shared=100.0, lane=10.0, shared_length=50, lane_length=20)
    assert lanes_for(None, 10) == 1
    assert lanes_for(cheap_to_share, 1) == 1
    assert lanes_for(cheap_to_share, 2) == 2
    assert lanes_for(cheap_to_share, 3) == 3
    assert lanes_for(cheap_to_share, 100) == 8
    assert lanes_for(Weights(50.0, 50.0, 50, 20), 100) == 3
    assert lanes_for(Weights(1.0, 100.0, 10, 10), 100) == 1
    assert lanes_for(Weights(100.0, 10.0, 500, 10_000), 100) == 1


def moved(theta, x, parents):
    """Points on a chain of bodies, each of which turns about its joint."""
    places = np.zeros((2, x.shape[1]))
    turns = np.empty((len(theta), 2, 2))
    for k in range(len(theta)):
        c, s = np.cos(theta[k]), np.sin(theta[k])
        own = np.array([[c, -s], [s, c]])
        turns[k] = own if parents[k] < 0 else turns[parents[k]] @ own
    for k in range(len(theta)):
        places += (turns[k] @ x) * (1.0 + k)
    return places


CHAIN = (np.array([0.3, -0.8, 1.1, 0.6]), signed(2, 5), np.array([-1, 0, -1, 2]))


def test_loops_that_add_multiples_of_zero_are_left_out_of_directions_of_a_basis(monkeypatch):
    of = specialised(moved, CHAIN, plain=True, options=Options(lanes=2))
    which = Which("J", 1, along=(frozenset([0]),), lanes=2, mapped=frozenset([("dot", 0, ("x", 0))]))
    text = of.program(which).text
    assert "!= 0.0" in text
    bridge = Bridge(of)
    basis = np.eye(4)
    examples = Examples(4, frozenset([("dot", 0, ("x", 0))]))
    _, got = bridge.j_plain(Kind("J", 1), CHAIN, (basis, None, None), examples=examples)
    want = differences(lambda theta: moved(theta, *CHAIN[1:]), CHAIN[0])
    close(np.moveaxis(got, 0, -1), want, rtol=1e-7, atol=1e-8)


def test_zero_times_infinity_is_zero_where_a_loop_is_left_out_and_where_it_is_not():
    x = CHAIN[1].copy()
    x[0, 3] = np.inf
    compiled = rg.compile(moved, cache=False)
    found = [rg.jacobian(lambda theta: compiled(theta, x, CHAIN[2]), CHAIN[0], mode=m) for m in ("forward", "reverse")]
    for jacobian in found:
        assert np.isfinite(jacobian[:, [0, 1, 2, 4]]).all()
    close(found[0][:, [0, 1, 2, 4]], found[1][:, [0, 1, 2, 4]])


def parts_of_rows(x, w):
    """What is shared is taken from slices that may be short."""
    squares = np.zeros(len(w))
    for i in range(len(w)):
        for j in range(len(x)):
            squares[i] += np.exp(np.sin(x[j] * w[i])) * np.cos(x[j] - w[i]) * np.tanh(w[i])
    y = np.zeros(len(x))
    y[:4] += x[:4] * 2.0
    for i in range(len(w)):
        y[0] += x[i % len(x)] * squares[i]
    return y


@pytest.mark.usefixtures("_worth_it")
@pytest.mark.parametrize("n", [6, 3])
def test_shared_parts_of_shapes_that_were_not_expected(n, monkeypatch):
    monkeypatch.setattr(each, "ENOUGH_FOR_PARTS", 2)
    x, w = signed(n), signed(4, seed=2)
    compiled = rg.compile(parts_of_rows, cache=False)
    found = rg.jacobian(compiled, x, w, argnums=1, mode="forward")
    close(found, differences(lambda w: parts_of_rows(x, w), w), rtol=1e-6, atol=1e-7)
    y, found = rg.withjacobian(compiled, x, w, argnums=0, mode="forward")
    close(y, parts_of_rows(x, w))
    close(found, differences(lambda x: parts_of_rows(x, w), x), rtol=1e-6, atol=1e-7)


@pytest.mark.usefixtures("_worth_it")
def test_what_the_directions_of_a_hessian_share_is_computed_once():
    def energy(x):
        total = 0.0
        for i in range(len(x)):
            for j in range(i):
                total += np.exp(-((x[i] - x[j]) ** 2)) * np.sin(x[i])
        return total

    x = signed(10)
    compiled = rg.compile(energy, cache=False)
    close(rg.hessian(compiled, x), rg.hessian(energy, x), rtol=1e-9, atol=1e-11)
