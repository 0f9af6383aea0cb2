"""What is in the sets: inner nodes of their graph are eliminated until only edges from outputs to inputs are left.

Eliminating a node joins each node above it with each one below. A node with one neighbour on either side costs nothing;
taking the cheapest first (Markowitz 1957, as in the accumulation of Jacobians: Griewank and Walther 2008, "Evaluating
Derivatives", ch. 9) keeps the graph small: a chain of n steps is folded in log n rounds, and a sum that everything is
divided by does not turn n sets of two into n sets of n, unless that is the answer.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from retrograde.errors import InputError
from retrograde.originals import np
from retrograde.sparse.sets import Sets, distinct

# Edges, and entries of a pattern, from which on it is not sparse (twenty gigabytes).
_TOO_MANY = 2**31


def contents(sets: Sets, outputs: Any) -> tuple[Any, Any]:
    """The inputs in each of the sets `outputs`, counted from 0, as `(indptr, indices)` of a CSR matrix.

    Raises:
        InputError: there are too many for a sparse matrix.
    """
    wanted = distinct(outputs)
    places = np.searchsorted(wanted, outputs)
    rows, columns = _eliminated(_part_behind(sets, wanted))
    lengths = np.bincount(rows, minlength=len(wanted))
    total = int(lengths[places].sum())
    if total > _TOO_MANY:
        raise _not_sparse(total)
    # The rows in the order of the outputs.
    starts = np.cumsum(lengths) - lengths
    indptr = np.concatenate([[0], np.cumsum(lengths[places])])
    return indptr, columns[_ranges(starts[places], lengths[places])]


class _Graph(NamedTuple):
    """Edges from `above` to `below`; nodes are numbered inputs first, then inner nodes, then outputs."""

    above: Any
    below: Any
    n_inputs: int
    n_inner: int


def _part_behind(sets: Sets, wanted: Any) -> _Graph:
    """The part of the graph that the `wanted` sets are made of, with an output above each of these."""
    children, counts = sets.graph()
    starts = np.cumsum(counts) - counts
    n = sets.n
    reached = np.zeros(sets.next, bool)
    front = wanted[wanted > n]
    reached[front] = True
    parts_above, parts_below = [], []
    while len(front):
        node = front - n - 1
        below = children[_ranges(starts[node], counts[node])]
        parts_above.append(np.repeat(front, counts[node]))
        parts_below.append(below)
        front = distinct(below[(below > n) & ~reached[below]])
        reached[front] = True
    inner = np.flatnonzero(reached)
    number = np.arange(-1, sets.next - 1)
    number[inner] = n + np.arange(len(inner))
    above = np.concatenate([*(number[part] for part in parts_above), n + len(inner) + np.arange(len(wanted))])
    below = np.concatenate([*(number[part] for part in parts_below), number[wanted]])
    there = below >= 0  # not the empty set
    return _Graph(above[there], below[there], n, len(inner))


def _eliminated(graph: _Graph) -> tuple[Any, Any]:
    """The edges from outputs (counted from 0) to inputs, sorted, once every inner node is eliminated."""
    n, last = graph.n_inputs, graph.n_inputs + graph.n_inner
    size = int(graph.above.max(initial=last)) + 1
    edges = distinct(graph.above * size + graph.below)
    rng = np.random.default_rng(0)
    heights = None
    while True:
        above, below = np.divmod(edges, size)
        is_inner = below >= n
        if not is_inner.any():
            return above - last, below
        ups = np.bincount(below[is_inner], minlength=last)
        downs = np.bincount(above[above < last], minlength=last)
        cost = ups * downs - ups - downs
        there = ups > 0
        cost[~there] = np.iinfo(cost.dtype).max
        limit, order = int(cost.min()), rng.permutation(last)
        if limit > 0:
            # Whole steps of a loop at once: every other height first. Not only the cheapest, so that rounds are few.
            heights = _heights(above, below, n, last) if heights is None else heights
            _, rank = np.unique(heights[there], return_inverse=True)
            order[there] += rank % 2 * last
            limit = max(2 * limit, int(np.median(cost[there])))
        chosen = _independent(cost <= max(0, limit), order, above, below)
        entering = is_inner & chosen[np.minimum(below, last)]
        leaving = (above < last) & chosen[np.minimum(above, last)]
        joined = _joined(above, below, entering, leaving, size)
        edges = distinct(np.concatenate([edges[~(entering | leaving)], joined]))


def _joined(above: Any, below: Any, entering: Any, leaving: Any, size: int) -> Any:
    """An edge from each node above an eliminated one to each below it."""
    from scipy.sparse import csr_array

    # Edges are sorted by `above`, so that those that leave a node stand side by side.
    starts = np.searchsorted(above[leaving], np.arange(size + 1))
    steps = int((starts[below[entering] + 1] - starts[below[entering]]).sum())
    if steps > _TOO_MANY:
        raise _not_sparse(steps)
    down = csr_array((np.ones(starts[-1], bool), below[leaving], starts), (size, size))
    starts = np.searchsorted(above[entering], np.arange(size + 1))
    up = csr_array((np.ones(starts[-1], bool), below[entering], starts), (size, size))
    product = up @ down
    return np.repeat(np.arange(size), np.diff(product.indptr)) * size + product.indices


def _independent(candidates: Any, order: Any, above: Any, below: Any) -> Any:
    """Candidates of which no two are neighbours: those that come first in the order, among the candidates around them.

    One place more stands for all nodes that are no inner ones.
    """
    chosen = np.append(candidates, False)
    last = len(candidates)
    u, v = np.minimum(above, last), np.minimum(below, last)
    both = chosen[u] & chosen[v]
    u, v = u[both], v[both]
    chosen[np.where(order[u] < order[v], v, u)] = False
    return chosen


def _heights(above: Any, below: Any, n: int, last: int) -> Any:
    """The number of steps from each inner node down to the inputs, along the longest way."""
    between = below >= n
    between &= above < last
    u, v = above[between], below[between]
    by_child = np.argsort(v, kind="stable")
    parents = u[by_child]
    ends = np.cumsum(np.bincount(v, minlength=last))
    starts = np.concatenate([[0], ends[:-1]])
    waiting = np.bincount(u, minlength=last)  # children whose height is not known yet
    heights = np.zeros(last, int)
    front = np.flatnonzero(waiting == 0)
    height = 0
    while len(front):
        heights[front] = height
        height += 1
        reached = np.sort(parents[_ranges(starts[front], ends[front] - starts[front])])
        first = np.flatnonzero(np.diff(reached, prepend=-1))
        parent = reached[first]
        waiting[parent] -= np.diff(np.append(first, len(reached)))
        front = parent[waiting[parent] == 0]
    return heights


def _ranges(starts: Any, lengths: Any) -> Any:
    """The positions from each start on, as many as its length says, in one row."""
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    return np.arange(total) + np.repeat(starts - (ends - lengths), lengths)


def _not_sparse(count: int) -> InputError:
    return InputError(
        f"the pattern would have {count} entries or more, as many as a dense matrix",
        "sparsity=, a pattern of your own, where it is smaller in truth (a function of your own counts as dense)",
        "linear_operator(f, x), which forms no matrix",
    )
