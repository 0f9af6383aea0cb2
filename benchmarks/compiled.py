"""What compiled derivatives cost: against derivatives by hand, JAX jit, PyTorch and autograd, and the primal.

The programs of `benchmarks/workloads/`, as a user writes them. By hand is once in numba and once in C++; PyTorch is
eager, on one thread. The primal is numba's own code of the program; the others give the derivative that the workload
asks for: a gradient; for ba the blocks of a Jacobian, by a pullback of two seeds at once; for kmeans the gradient and
the diagonal of the Hessian; for ht the Jacobian, along 26 + 2 directions. The ratio to the primal is that of one seed
or direction where there are several (`SEVERAL`); what these have in common counts once for all. A Hessian–vector
product is one along ones, with respect to all that is differentiated. Compiling is measured cold, from the source to
the first derivative, and set beside the first call of JAX's function; both in seconds of the processor, as they run
long and only once.

Targets, over all workloads that can be measured: see `TARGETS` and the bounds on each.
"""

from __future__ import annotations

import functools
import importlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import geometric_mean
from typing import Any

import numpy as np

from .harness import BY_HAND, OURS, Case, Report, Row, Table, Target, measure

PRIMAL, CPP, JAX, TORCH, AUTOGRAD = "primal", "C++", "JAX jit", "PyTorch", "autograd"
HVP = "Hessian–vector"
COMPILE, COMPILE_JAX, TRANSFORM = "compile", "compile, XLA", "transform"
ALL = "all"

# Workloads and sizes, small ones and large ones.
RACES = (
    ("lse", "160k"),
    ("llsq", "m128 n16392"),
    ("ode", "n1000 s100"),
    ("ode", "n10000 s100"),
    ("kmeans", "k100 n10000 d8"),
    ("det", "ℓ=7"),
    ("ba", "31,843"),
    ("gmm", "d2 k5 n1000"),
    ("gmm", "d10 k25 n1000"),
    ("lstm", "l2 c1024 b14"),
    ("ht", "small c100"),
    ("particle", "dt 1e-4"),
    ("saddle", "100 starts"),
    ("lse", "1.28M"),
    ("kmeans", "k1000 n10000 d16"),
    ("det", "ℓ=9"),
    ("ba", "204,472"),
    ("gmm", "d32 k50 n1000"),
    ("lstm", "l4 c4096 b14"),
    ("ht", "big c800"),
)
SEVERAL = {"ba": 2, "ht": 28}
"""How many seeds or directions a derivative consists of."""
QUICK = (("lse", "tiny"), ("llsq", "tiny"), ("ode", "tiny"))
NO_HVP = {"ba": "has several outputs", "ht": "has several outputs", "kmeans": "is part of the derivative itself"}
ABSENT = {
    ("det", JAX): "not measured: unrolled, it takes XLA minutes to compile",
    ("lstm l4 c4096 b14", TORCH): "not measured: it takes 12 seconds",
    ("det ℓ=9", TORCH): "not measured: it takes minutes",
    ("particle", TORCH): "not measured: it takes ten minutes",
    ("lstm l4 c4096 b14", AUTOGRAD): "not measured: it takes 19 seconds",
    ("det ℓ=9", AUTOGRAD): "not measured: it takes minutes",
    ("particle", AUTOGRAD): "not measured: it takes half an hour",
}


@dataclass(frozen=True)
class Mean(Target):
    """A bound on the geometric mean of `best(numerator) / best(denominator)` over the races that have both."""

    def verdict(self, rows: list[Row]) -> Any:
        above, below = self.numerator[1], self.denominator[1] if self.denominator else ""
        ratios = [
            ratio for race in dict.fromkeys(r.race for r in rows) if (ratio := quotient(rows, race, above, below))
        ]
        mean = geometric_mean(ratios) if ratios else None
        made = Target(self.text, (ALL, above), None, self.at_least, self.at_most)
        return made.verdict([Row(ALL, above, "", mean, mean)] if mean else [])


def quotient(rows: list[Row], race: str, above: str, below: str) -> float | None:
    best = {row.name: row.best for row in rows if row.race == race}
    a, b = best.get(above), best.get(below)
    return a / b / several(race, above, below) if a and b else None


def several(race: str, above: str, below: str) -> int:
    """How many seeds or directions a quotient counts for one."""
    return SEVERAL.get(race.split()[0], 1) if (above, below) == (OURS, PRIMAL) else 1


def mean(above: str, below: str, *, at_most: float | None = None, at_least: float | None = None) -> Target:
    return Mean(f"{ALL}: {above} / {below}", (ALL, above), (ALL, below), at_least, at_most)


def each(race: str, above: str, below: str, *, at_most: float | None = None, at_least: float | None = None) -> Target:
    count = several(race, above, below)
    what = f"{race}: {above} / {below}" + (f", of {count} each" if count > 1 else "")
    return Target(what, (race, above), (race, below), at_least, at_most, 1 / count)


MEANS = [
    mean(OURS, BY_HAND, at_most=1.15),
    mean(OURS, CPP, at_most=1.1),
    mean(JAX, OURS, at_least=2.5),
    mean(TORCH, OURS, at_least=5),
    mean(AUTOGRAD, OURS, at_least=15),
    mean(OURS, PRIMAL, at_most=3.5),
    mean(HVP, PRIMAL, at_most=8),
    mean(COMPILE, COMPILE_JAX, at_most=1.5),
]


def targets(race: str) -> list[Target]:
    return [
        each(race, OURS, BY_HAND, at_most=1.5),
        *([each(race, OURS, CPP, at_most=3)] if race.startswith("ht ") else []),
        each(race, JAX, OURS, at_least=0.9),
        each(race, TORCH, OURS, at_least=1),
        each(race, AUTOGRAD, OURS, at_least=1),
        each(race, OURS, PRIMAL, at_most=5),
        Target(f"{race}: {COMPILE}", (race, COMPILE), None, at_most=5),
        Target(f"{race}: {TRANSFORM}", (race, TRANSFORM), None, at_most=0.2),
    ]


# --- the contenders --------------------------------------------------------------------------------------------------


def varied(module: Any, args: tuple[Any, ...], compiled: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """The compiled program as a function of the arguments that it is differentiated in, and those."""

    def program(*xs: Any) -> Any:
        given = list(args)
        for position, x in zip(module.WRT, xs, strict=True):
            given[position] = x
        return compiled(*given)

    return program, tuple(args[i] for i in module.WRT)


def derivative(name: str, module: Any, args: tuple[Any, ...], compiled: Any) -> Callable[[], Any]:
    import retrograde as rg

    program, xs = varied(module, args, compiled)
    if name == "ba":
        seeds = np.zeros((2, args[2].size, 2))
        seeds[0, :, 0] = seeds[1, :, 1] = 1

        def blocks() -> Any:
            _, back = rg.pullback(program, *xs)
            return rg.vmap(back)(seeds)

        return blocks
    if name == "kmeans":
        ones = np.ones_like(xs[0])
        return lambda: rg.jvp(rg.grad(program), xs, (ones,))
    if name == "ht":
        # The Jacobian in `us` is a block of 3 × 2 a point: two directions have all of it.
        seeds = np.zeros((2, *args[1].shape))
        seeds[0, :, 0] = seeds[1, :, 1] = 1

        def columns() -> Any:
            theta = rg.jacobian(compiled, *args, argnums=0, mode="forward")
            us = rg.vmap(lambda seed: rg.jvp(lambda us: program(xs[0], us), xs[1:], (seed,))[1])(seeds)
            return theta, us

        return columns
    gradient = rg.grad(compiled, argnums=module.WRT if len(module.WRT) > 1 else module.WRT[0])
    return lambda: gradient(*args)


def hessian_vector(module: Any, args: tuple[Any, ...], compiled: Any) -> Callable[[], Any]:
    import retrograde as rg

    program, xs = varied(module, args, compiled)
    ones = tuple(np.ones_like(x)[()] for x in xs)
    gradient = rg.grad(program, argnums=tuple(range(len(xs))))
    return lambda: rg.jvp(gradient, xs, ones)[1]


class Race:
    """The contenders on one workload, and what compiling took."""

    def __init__(self, name: str, size: str) -> None:
        self.name, self.size = name, size
        self.title = f"{name} {size}"
        self.module = importlib.import_module(f"benchmarks.workloads.{name}")
        self.args = self.module.inputs(size)
        self.seconds: dict[str, float] = {}

    def compiled(self) -> Any:
        import retrograde as rg

        return rg.compile(self.module.program, cache=False)

    def cases(self) -> list[Case]:
        made = [self.case(BY_HAND, self.by_hand)] if hasattr(self.module, "by_hand") else []
        made += [self.case(OURS, self.ours), self.case(PRIMAL, self.primal), self.case(CPP, self.in_cpp)]
        peers = {JAX: self.in_jax, TORCH: self.in_torch, AUTOGRAD: self.in_autograd}
        made += [self.case(name, make) for name, make in peers.items() if not self.lacks(name)]
        if self.name not in NO_HVP:
            made.append(self.case(HVP, self.hvp))
        return made

    def lacks(self, contender: str) -> bool:
        return not {(self.name, contender), (self.title, contender)}.isdisjoint(ABSENT)

    def case(self, name: str, make: Callable[[], Callable[[], Any]]) -> Case:
        shown = getattr(self.module, "shown", None)
        return Case(self.title, name, make, shown=shown) if shown else Case(self.title, name, make)

    def by_hand(self) -> Callable[[], Any]:
        return lambda: self.module.by_hand(*self.args)

    def primal(self) -> Callable[[], None]:
        compiled = self.compiled()

        def run() -> None:
            compiled(*self.args)

        return run

    def ours(self) -> Callable[[], Any]:
        start = time.process_time()
        compiled = self.compiled()
        compiled.source("pullback", *self.args)
        self.seconds[TRANSFORM] = time.process_time() - start
        start = time.process_time()
        run = derivative(self.name, self.module, self.args, compiled)
        run()
        self.seconds[COMPILE] = self.seconds[TRANSFORM] + time.process_time() - start
        return run

    def hvp(self) -> Callable[[], None]:
        run = hessian_vector(self.module, self.args, self.compiled())

        def product() -> None:
            run()

        return product

    def in_jax(self) -> Callable[[], Any]:
        import jax

        jax.config.update("jax_enable_x64", True)
        function = self.module.in_jax()
        moved = tuple(jax.device_put(a) if isinstance(a, np.ndarray) else a for a in self.args)
        start = time.process_time()
        jax.block_until_ready(function(*moved))
        self.seconds[COMPILE_JAX] = time.process_time() - start
        return lambda: jax.block_until_ready(function(*moved))

    def in_cpp(self) -> Callable[[], Any]:
        return functools.partial(self.module.in_cpp(), *self.args)

    def in_torch(self) -> Callable[[], Any]:
        return functools.partial(self.module.in_torch(), *self.args)

    def in_autograd(self) -> Callable[[], Any]:
        return functools.partial(self.module.in_autograd(), *self.args)


def warm_up() -> None:
    """What the first compilation of a process costs, whatever is compiled, and its first large arrays.

    Once 32 MB have been given back, the C library keeps freed memory for the next array. Before, each large array is
    made of new pages, which can cost more than all that is computed in it, for every contender.
    """
    np.empty(4_000_000)
    race = Race("lse", "tiny")
    race.ours()()
    race.primal()()
    try:
        race.in_jax()()
    except ImportError:
        pass


# --- the report ------------------------------------------------------------------------------------------------------

COLUMNS = (BY_HAND, CPP, OURS, PRIMAL, JAX, TORCH, AUTOGRAD)
RATIOS = (
    ("÷hand", OURS, BY_HAND),
    ("÷C++", OURS, CPP),
    ("JAX÷", JAX, OURS),
    ("÷primal", OURS, PRIMAL),
    ("hvp", HVP, PRIMAL),
)


def table(rows: list[Row], races: list[Race]) -> Table:
    def shown(value: float | None) -> str:
        return "–" if value is None else f"{value:.3g}"

    lines = []
    for race in races:
        best = {row.name: row.best for row in rows if row.race == race.title}
        ratios = [quotient(rows, race.title, above, below) for _, above, below in RATIOS]
        seconds = [race.seconds.get(name) for name in (COMPILE, COMPILE_JAX)]
        lines.append((race.title, *(shown(best.get(c)) for c in COLUMNS), *map(shown, ratios), *map(shown, seconds)))
    header = ("ms", "hand", "C++", "ours", "primal", "JAX", "torch", "autogr.", *(r[0] for r in RATIOS), "s", "XLA s")
    return Table(header, lines, tuple(range(1, len(header))))


def run(quick: bool) -> Report:
    warm_up()
    races = [Race(*race) for race in (QUICK if quick else RACES)]
    rows: list[Row] = []
    for race in races:
        rows += measure(race.cases(), quick)
        for name, value in race.seconds.items():
            rows.append(Row(race.title, name, "s", value, value))
    goals = MEANS + [target for race in races for target in targets(race.title)]
    notes = [f"{name}: {contender} {why}" for (name, contender), why in ABSENT.items()]
    return Report("Compiled derivatives", rows, goals, notes, table(rows, races))
