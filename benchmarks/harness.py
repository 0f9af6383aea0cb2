"""How everything here is measured: cases in interleaved rounds, one process, one run; ratios decide.

A machine that other programs share is fast in one second and slow in the next. So no case is timed by itself: a round
times every case once, in an order of its own, and rounds are repeated; the minimum says what the code costs, the median
how it felt. A case whose answer differs from that of the first case of its race is not timed at all.
"""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import numpy as np

OURS = "retrograde"
BY_HAND = "by hand"


@dataclass(frozen=True)
class Case:
    """One contender of one race."""

    race: str
    name: str
    make: Callable[[], Callable[[], Any]]
    """Imports its library, prepares, and returns what is timed; that returns the gradient (a primal returns None)."""
    unit: str = "ms"
    scale: float = 1e3
    """From seconds a call to the unit: `1e6 / n` for µs an operation of n."""
    shown: Callable[[Any], Any] = lambda answer: answer
    """What of its answer is compared with those of others, which may lie in memory in another way."""


@dataclass
class Row:
    """One line of a table: figures, or a note saying why there are none."""

    race: str
    name: str
    unit: str
    best: float | None = None
    median: float | None = None
    rounds: int = 0
    note: str = ""


@dataclass(frozen=True)
class Target:
    """A bound on `factor · best(numerator) / best(denominator)`, each a (race, name), or on the numerator alone."""

    text: str
    numerator: tuple[str, str]
    denominator: tuple[str, str] | None
    at_least: float | None = None
    at_most: float | None = None
    factor: float = 1.0

    def verdict(self, rows: list[Row]) -> Verdict:
        best = {(row.race, row.name): row.best for row in rows}
        above = best.get(self.numerator)
        below = best.get(self.denominator) if self.denominator else 1.0
        if above is None or below is None:
            return Verdict(self, None, None)
        # What is printed is what is judged: a few kilobytes on top of exactly 1.5× are no miss.
        value = round(self.factor * above / below, 2)
        reached = value >= self.at_least if self.at_least is not None else value <= self.at_most
        return Verdict(self, value, reached)

    @property
    def bound(self) -> str:
        return f"≥ {self.at_least:g}" if self.at_least is not None else f"≤ {self.at_most:g}"


@dataclass(frozen=True)
class Verdict:
    target: Target
    value: float | None
    reached: bool | None
    """None where a contender is missing."""


@dataclass(frozen=True)
class Table:
    """How a report is shown where one line for each row would not be read."""

    header: tuple[str, ...]
    lines: list[tuple[str, ...]]
    numbers: tuple[int, ...]
    """The columns that are aligned to the right."""


@dataclass
class Report:
    title: str
    rows: list[Row]
    targets: list[Target]
    notes: list[str] = field(default_factory=list)
    table: Table | None = None

    def verdicts(self) -> list[Verdict]:
        return [target.verdict(self.rows) for target in self.targets]

    def ratio_to_ours(self, row: Row) -> float | None:
        ours = next((r.best for r in self.rows if (r.race, r.name) == (row.race, OURS)), None)
        return row.best / ours if row.best is not None and ours else None


def faster(race: str, than: str, by: float, name: str = OURS) -> Target:
    return Target(f"{race}: {than} / {name}", (race, than), (race, name), at_least=by)


def within(race: str, times: float, of: str) -> Target:
    return Target(f"{race}: {OURS} / {of}", (race, OURS), (race, of), at_most=times)


def limit(race: str, at_most: float) -> Target:
    """A bound on our own figure, in its unit."""
    return Target(f"{race}: {OURS}", (race, OURS), None, at_most=at_most)


def growth(race: str, doubled: str, times: float, name: str = OURS) -> Target:
    """For figures that are per element: twice the elements may cost at most so many times as much."""
    text = f"{doubled} / {race}: {name}, in total"
    return Target(text, (doubled, name), (race, name), at_most=times, factor=2.0)


def leaves(answer: Any) -> Iterator[np.ndarray]:
    """The arrays of a gradient, whatever containers it came in."""
    if isinstance(answer, (list, tuple)):
        for part in answer:
            yield from leaves(part)
    else:
        yield np.asarray(answer)


def same(answer: Any, right: Any) -> bool:
    pairs = list(zip(leaves(answer), leaves(right), strict=True))
    return all(a.shape == b.shape and np.allclose(a, b, rtol=1e-6, atol=1e-9) for a, b in pairs)


def seconds(run: Callable[[], Any], loops: int = 1) -> float:
    start = time.perf_counter()
    for _ in range(loops):
        run()
    return (time.perf_counter() - start) / loops


def prepare(case: Case, right: dict[str, Any]) -> Callable[[], Any] | str:
    """What is to be timed, or the reason why it cannot be."""
    try:
        run = case.make()
        answer = run()
        answer = None if answer is None else case.shown(answer)
    except ImportError as error:
        # Without a path, the module itself was not found; with one, it is there and broken.
        return f"skipped: {error.name} is not installed" if error.path is None else f"failed: {error}"
    except Exception as error:
        return f"failed: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    if answer is not None and not same(answer, right.setdefault(case.race, answer)):
        return "failed: its answer differs"
    return run


def measure(cases: list[Case], quick: bool = False) -> list[Row]:
    """Time all cases in interleaved rounds; one row a case, in the order given."""
    rounds, fewest, budget, shortest = (3, 1, 0.3, 0.005) if quick else (15, 3, 4.0, 0.02)
    rows = [Row(case.race, case.name, case.unit) for case in cases]
    right: dict[str, Any] = {}
    running = []
    for case, row in zip(cases, rows, strict=True):
        run = prepare(case, right)
        if isinstance(run, str):
            row.note = run
            continue
        once = seconds(run)
        loops = max(1, int(shortest / once))
        row.rounds = max(fewest if once < budget else 1, min(rounds, int(budget / (once * loops))))
        running.append((case, row, run, loops))

    # The thousands of objects that the libraries' imports left would otherwise be walked by every full collection, and
    # so be paid for by whoever allocates most Python objects.
    gc.collect()
    gc.freeze()
    samples: list[list[float]] = [[] for _ in running]
    shuffle = random.Random(0).shuffle
    for turn in range(rounds):
        # A case that is too slow for every round takes part in rounds that are spread over the whole time.
        order = [
            i
            for i, (_, row, _, _) in enumerate(running)
            if turn * row.rounds // rounds != (turn - 1) * row.rounds // rounds
        ]
        shuffle(order)
        for i in order:
            _, _, run, loops = running[i]
            gc.collect()
            samples[i].append(seconds(run, loops))
    gc.unfreeze()
    for (case, row, _, _), times in zip(running, samples, strict=True):
        row.best = case.scale * min(times)
        row.median = case.scale * median(times)
    return rows
