"""Sparse derivatives: a tridiagonal Jacobian and an arrow-shaped Hessian, against what one does by hand.

"prepared" is one call of what `prepare` gave, with its check; "from nothing" finds the pattern and the colours as well.
By hand the derivatives are written down and assembled as `scipy.sparse` arrays. SciPy's differences are those of its
optimisers, with the pattern and its groups given (two points a derivative, good to eight digits).

Targets: a constant number of passes; twice the elements cost at most 2.3× as much, in time and in memory.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np

from .harness import BY_HAND, OURS, Case, Report, Row, growth, limit, measure

PREPARED, FROM_NOTHING = OURS, f"{OURS}, from nothing"
SCIPY = "SciPy, differences"


def tridiagonal(x: Any) -> Any:
    """Broyden's tridiagonal function."""
    r = (3 - x) * x + 1
    r[1:] -= x[:-1]
    r[:-1] -= 2 * x[1:]
    return r


def arrow(x: Any) -> Any:
    return np.sum(x**4) + x[0] * np.sum(x[1:] ** 2)


def jacobian_by_hand(x: np.ndarray) -> Any:
    from scipy.sparse import diags_array

    n = len(x)
    return diags_array([np.full(n - 1, -1.0), 3 - 2 * x, np.full(n - 1, -2.0)], offsets=[-1, 0, 1], format="csr")


def hessian_by_hand(x: np.ndarray) -> Any:
    from scipy.sparse import coo_array

    n = len(x)
    others, first = np.arange(1, n), np.zeros(n - 1, int)
    diagonal = 12 * x**2 + 2 * x[0]
    diagonal[0] = 12 * x[0] ** 2
    data = np.concatenate([diagonal, 2 * x[1:], 2 * x[1:]])
    rows, columns = np.concatenate([np.arange(n), first, others]), np.concatenate([np.arange(n), others, first])
    return coo_array((data, (rows, columns)), (n, n)).tocsr()


def entries(matrix: Any) -> Any:
    matrix.sort_indices()
    return matrix.data


def transform(kind: str) -> tuple[Any, Any]:
    """Ours, and the function that it is tried on."""
    from retrograde import sparse_hessian, sparse_jacobian

    return (sparse_jacobian, tridiagonal) if kind == JACOBIAN else (sparse_hessian, arrow)


def prepared(kind: str, x: np.ndarray) -> Callable[[], Any]:
    ours, f = transform(kind)
    derivative = ours(f).prepare(x)
    return lambda: entries(derivative(x))


def from_nothing(kind: str, x: np.ndarray) -> Callable[[], Any]:
    ours, f = transform(kind)
    return lambda: entries(ours(f, x))


def by_hand(kind: str, x: np.ndarray) -> Callable[[], Any]:
    assemble = jacobian_by_hand if kind == JACOBIAN else hessian_by_hand
    return lambda: entries(assemble(x))


def differences(kind: str, x: np.ndarray) -> Callable[[], Any]:
    from scipy.optimize._numdiff import approx_derivative, group_columns

    pattern = jacobian_by_hand(x)
    groups = group_columns(pattern)

    def jacobian() -> None:
        # Not compared: its last digits are missing.
        approx_derivative(tridiagonal, x, method="2-point", sparsity=(pattern, groups))

    return jacobian


JACOBIAN, HESSIAN = "tridiagonal Jacobian", "arrow Hessian"
MAKERS = {BY_HAND: by_hand, PREPARED: prepared, FROM_NOTHING: from_nothing, SCIPY: differences}


def race(kind: str, n: int) -> str:
    return f"{kind}, n = {n}"


def peak(kind: str, name: str, x: np.ndarray) -> Row:
    """The most memory that a call holds at one time, an entry of the matrix."""
    row = Row(f"memory of a {race(kind, len(x))}", name, "bytes/entry", rounds=1)
    run = MAKERS[name](kind, x)
    count = len(run())
    tracemalloc.start()
    run()
    row.best = row.median = tracemalloc.get_traced_memory()[1] / count
    tracemalloc.stop()
    return row


def passes(kind: str, x: np.ndarray) -> Row:
    ours, f = transform(kind)
    row = Row(f"passes of a {race(kind, len(x))}", OURS, "passes", rounds=1)
    row.best = row.median = float(ours(f).prepare(x).passes)
    return row


def run(quick: bool) -> Report:
    sizes = {JACOBIAN: 10**4 if quick else 10**5, HESSIAN: 10**3 if quick else 10**4}
    x = np.random.default_rng(0).uniform(0.5, 1.5, 2 * max(sizes.values()))
    points = [(kind, x[: k * n]) for kind, n in sizes.items() for k in (1, 2)]
    cases = [
        Case(race(kind, len(x)), name, lambda maker=maker, kind=kind, x=x: maker(kind, x), "ns/row", 1e9 / len(x))
        for kind, x in points
        for name, maker in MAKERS.items()
        # An arrow has as many groups of columns as columns: differences that know no symmetry take a run for each.
        if name != SCIPY or kind == JACOBIAN
    ]
    rows = measure(cases, quick)
    rows += [peak(kind, name, x) for kind, x in points for name in (BY_HAND, PREPARED, FROM_NOTHING)]
    rows += [passes(kind, x) for kind, x in points]
    targets = []
    for kind, n in sizes.items():
        targets += [growth(race(kind, n), race(kind, 2 * n), 2.3, name) for name in (PREPARED, FROM_NOTHING)]
        targets += [
            growth(f"memory of a {race(kind, n)}", f"memory of a {race(kind, 2 * n)}", 2.3, name)
            for name in (PREPARED, FROM_NOTHING)
        ]
        targets += [limit(f"passes of a {race(kind, k * n)}", {JACOBIAN: 3, HESSIAN: 2}[kind]) for k in (1, 2)]
    return Report("Sparse derivatives: found, coloured, filled", rows, targets)
