"""What the derivative of one function costs: value and gradient of 64 functions, over the function alone.

The functions of arrays take 10⁶ elements, those of linear algebra matrices of 200 rows. A result that is an array is
contracted with weights, `np.vdot(f(x), w)`, as a loss would do it; that is part of everybody's time. By hand stands for
the best plain NumPy that one would write who needs this value and this gradient (rule_races.py, linalg_races.py).

Target: no rule takes more than 1.3× the time of the gradient by hand.

Predicted was that a rule costs its arithmetic, and that 1.3× was near. Before anything was changed, 54 of 64 rules took
more, `arctan2` 9.7×. What was found, in the order of what it cost:

- Fresh memory. An array of 8 MB that the allocator has given back costs 1–2 ms to fault in again, more than most
  functions take; who holds three at a time where two would do pays for all three (docs/decisions/0011).
- The seed of a loss, 1.0, was multiplied into an array, and a quotient was made to be multiplied by.
- `np.where` branches at every element: 3.5 ms for a mask without a pattern, where the product takes 0.7. A sum over
  pairs takes 15 ms, two slices 0.2. `np.add.at` takes twice the time of `np.bincount`; an einsum that sums nothing is
  faster unplanned.
- Formulas that are right everywhere (`logaddexp`, `arctan2`, `power`, `hypot`) went the long way for every element.
- Orders were found twice, by `np.sort` and then for the pullback.

Later measured, and mended where it could be:

- Every row costs 0.1 to 0.4 ms more than its arithmetic. Predicted was a copy or a fill; there is none, and no page
  fault either. It is the Python of a transform, 0.04 ms for two operations where it runs again and again, and four to
  eight times that where arrays of 8 MB have emptied the caches in between: a quarter of it was putting 110 names in
  NumPy and `math` aside and back, which is not done any more (docs/decisions/0016); the rest is the code of the
  operations, spread evenly, about a µs for every function that is called.
- A check for a NaN in a product takes 0.06 ms where the product is in the cache, and 0.1 to 0.3 where other arrays have
  pushed it out. Checking piece by piece, while each is in the cache, gains nothing. What a finite loss proves needs no
  check (docs/decisions/0004): `multiply` went from 1.5 to 1.2, `divide` from 1.4 to 1.1.
- A Python function that is called costs 2 to 3 µs where arrays of 8 MB have emptied the caches, fifty times what it
  costs in a loop: a row pays for their number, and a comprehension counts as one. `sum` made 93 such calls and makes
  46, `pad` 241 and 93. Half were not needed: attributes of NumPy that were answered for in Python, named tuples, values
  that were kept and replaced at once, arguments that were brought into order in every call, NumPy's dispatchers and its
  own Python code, asked for a shape or for what a plain array's sum comes to.
- `x ** y` and `arctan2` made each cotangent for itself, and looked through it; both at once take two passes less each.
- Signatures of composed functions were looked up in every call, and pulls of general rules made twice.
- `max`, `maximum` and `clip` were compared with gradients by hand that gave the cotangent of what ties to one; these
  share it, too, now.
- `var` and `std` read the array four times for what the function itself does. They are computed with the deviations
  that the gradient needs, in pieces. By hand they were a dot product, which is three times as fast as NumPy's sum of
  squares in pairs and another number in its last digits; by hand, too, the value is NumPy's now.
- `tanh`: a boolean index took 4 ms, the same with positions 0.4. `divide`: the second cotangent is made of the first,
  as by hand. `arctan2`, `maximum`: what two partials share was computed twice. `std`: four arrays where one does.
- `tanh` again: predicted was that the tails could be looked for piece by piece, in the cache. That takes longer: of the
  0.5 ms that they cost, half goes by their number (finding a place, 32 ns each), and the calls for many pieces add up
  to the rest. They are fewer now, and their formula has half as many passes.
- Where an array is read but for its borders, zeros are written to the borders alone.
- Frames again, 52 to 44 for a sum along an axis: NumPy's question whether an argument takes the call over, asked for
  plain arrays; `np.errstate` in a `with` statement (three frames, and one as a decorator); helpers of one line.

What remains above the target is below the table, with its reason where there is one. Rows of half a millisecond pay for
the transform itself, 0.05 to 0.2 ms.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from .harness import BY_HAND, OURS, Case, Report, Row, Table, measure, within
from .linalg_races import linalg_races
from .rule_races import Race, elementwise_races, moving_races, product_races, reduction_races

PRIMAL = "primal"
ALLOWED = 1.3


def primal(race: Race) -> Callable[[], Any]:
    def run() -> None:
        y = race.f(np, *race.args)
        if race.w is not None:
            np.vdot(y, race.w)

    return run


def by_hand(race: Race) -> Callable[[], Any]:
    return partial(race.by_hand, *race.args, race.w)


def with_retrograde(race: Race) -> Callable[[], Any]:
    import retrograde

    def loss(*args: Any) -> Any:
        y = race.f(np, *args)
        return y if race.w is None else np.vdot(y, race.w)

    return lambda: retrograde.withgradient(loss, *race.args)


def with_autograd(race: Race) -> Callable[[], Any]:
    import autograd
    import autograd.numpy as anp

    w = None if race.w is None else race.w.reshape(-1)

    def loss(*args: Any) -> Any:
        y = race.f(anp, *args)
        # It has no vdot.
        return y if w is None else anp.dot(anp.reshape(y, (-1,)), w)

    gradient = autograd.value_and_grad(loss, argnum=tuple(range(len(race.args))))
    return lambda: gradient(*race.args)


def with_torch(race: Race) -> Callable[[], Any]:
    import torch

    torch.set_num_threads(1)
    leaves = [torch.from_numpy(x).requires_grad_() for x in race.args]
    w = None if race.w is None else torch.from_numpy(race.w).reshape(-1)
    f = race.torch or race.f

    def gradient() -> Any:
        y = f(torch, *leaves)
        value = y if w is None else torch.dot(y.reshape(-1), w)
        return value.detach(), torch.autograd.grad(value, leaves)

    return gradient


PEERS = {"autograd": with_autograd, "PyTorch": with_torch}


def cases_of(race: Race) -> list[Case]:
    makers = {BY_HAND: by_hand, PRIMAL: primal, OURS: with_retrograde}
    makers |= {name: make for name, make in PEERS.items() if name in race.peers}
    return [Case(race.name, name, partial(make, race)) for name, make in makers.items()]


def table(rows: list[Row]) -> Table:
    """One line a function: the primal in ms, and everybody's time over it."""
    best = {(row.race, row.name): row.best for row in rows}

    def ratio(race: str, above: str, below: str) -> str:
        a, b = best.get((race, above)), best.get((race, below))
        return f"{a / b:.2f}" if a and b else "–"

    lines = [
        (
            race,
            f"{best[race, PRIMAL]:.2f}",
            *(ratio(race, name, PRIMAL) for name in (BY_HAND, OURS, *PEERS)),
            ratio(race, OURS, BY_HAND),
        )
        for race in dict.fromkeys(row.race for row in rows)
        if best.get((race, PRIMAL)) is not None
    ]
    header = ("function", "primal, ms", BY_HAND, "ours", *PEERS, "ours / hand")
    return Table(header, lines, numbers=tuple(range(1, len(header))))


def run(quick: bool) -> Report:
    n = 10**5 if quick else 10**6
    races = [*elementwise_races(n), *reduction_races(n), *moving_races(n), *product_races(n)]
    races += linalg_races(50 if quick else 200)
    rows = measure([case for race in races for case in cases_of(race)], quick)
    title = f"Value and gradient over the function alone, {n:,} elements"
    targets = [within(race.name, ALLOWED, BY_HAND) for race in races]
    notes = [f"{race.name}: {race.more}" for race in races if race.more]
    return Report(title, rows, targets, notes, table=table(rows))
