"""Python's own library on traced values: right, or refused with the way out."""

from __future__ import annotations

import array
import bisect
import collections
import contextlib
import fractions
import functools
import graphlib
import heapq
import itertools
import math
import operator
import random
import statistics
import types
import weakref

import numpy as np
import pytest
from truth import agree, close

from retrograde import ConversionError, gradient, jvp

X = np.array([0.5, -1.2, 2.0])

FUNCTIONS = {
    "zip, enumerate, reversed": lambda x: sum(
        (i + 1) * a * b for i, (a, b) in enumerate(zip(x, reversed(x), strict=True))
    ),
    "map and filter": lambda x: sum(map(lambda a, b: a * b**2, x, filter(lambda v: v > -5, x))),
    "functools.reduce": lambda x: functools.reduce(lambda a, b: a * b + b, x, x[2]),
    "itertools.accumulate": lambda x: sum(itertools.accumulate(x, operator.mul)) + [*itertools.accumulate(x)][1] ** 2,
    "itertools.product": lambda x: sum(a * b for a, b in itertools.product(x, repeat=2)),
    "itertools.combinations": lambda x: sum((a - b) ** 2 for a, b in itertools.combinations(x, 2)),
    "itertools.permutations": lambda x: sum(a * b**2 for a, b, _ in itertools.permutations(x)),
    "itertools.pairwise": lambda x: sum(a * b for a, b in itertools.pairwise(x)),
    "itertools.chain and islice": lambda x: sum(v**2 for v in itertools.islice(itertools.chain(x, x * 2), 1, None, 2)),
    "itertools.takewhile": lambda x: sum(itertools.takewhile(lambda v: v < 1, x)) * x[2],
    "itertools.starmap": lambda x: sum(itertools.starmap(operator.mul, [(x[0], x[1]), (x[1], x[2])])),
    "itertools.groupby": lambda x: sum(sum(g) ** 2 for _, g in itertools.groupby(x, key=lambda v: v > 0)),
    "itertools.tee and zip_longest": lambda x: sum(
        a * b for a, b in itertools.zip_longest(*itertools.tee(iter(x)), fillvalue=x[0])
    ),
    "itertools.cycle": lambda x: sum(v * i for i, v in zip(range(7), itertools.cycle(x))),
    "itertools.compress": lambda x: sum(itertools.compress(x, [1, 0, 1])) * x[1],
    "itertools.batched by hand": lambda x: sum(a * b for a, b in zip(*[iter([*x, x[0]])] * 2)),
    "sorted by a key": lambda x: functools.reduce(lambda a, b: a * 2 + b, sorted(x, key=lambda v: v * v)),
    "functools.cmp_to_key": lambda x: sorted(x, key=functools.cmp_to_key(lambda a, b: b - a))[0] ** 2,
    "min and max": lambda x: max(x) * min(x) + max(x[0], x[1], key=abs) + min([x[0] ** 2, 1.0]) + max((), default=x[0]),
    "sum, any and all": lambda x: sum(x) + sum(x, x[0]) * any(x > 1) + all(v for v in x) * x[2],
    "abs, round, divmod and pow": lambda x: (
        abs(x[1]) + round(x[0], 1) + divmod(x[2], 0.7)[1] + pow(x[2], 3) + pow(x[2], x[0])
    ),
    "operator": lambda x: (
        operator.add(x[0], x[1])
        * operator.itemgetter(2)(x)
        * operator.attrgetter("T.size")(x)
        * operator.methodcaller("sum")(x)
        + operator.matmul(x, x)
        - operator.neg(x[0])
        + operator.truediv(x[1], x[2])
        + operator.getitem(x, 0) * operator.iadd(x[1], 2.0)
    ),
    "heapq": lambda x: (
        heapq.nsmallest(1, x)[0] * heapq.nlargest(2, x)[1]
        + sum(v * i for i, v in enumerate(heapq.merge(sorted(x), [x[0] * x[1]])))
        + heapq.heappushpop([x[0]], x[1]) ** 2
    ),
    "a priority queue of pairs": lambda x: _shortest(x),
    "bisect": lambda x: _sorted_insert(x) + bisect.bisect([-2.0, 0.0, 1.0], x[2]) * x[0],
    "statistics.median": lambda x: statistics.median(x) * statistics.median_low(x * x),
    "collections.UserList": lambda x: sum(collections.UserList([*x, x[0] * x[1]])[1:]),
    "types.SimpleNamespace": lambda x: types.SimpleNamespace(a=x[0], b=x[1]).a * x[2],
    "types.MappingProxyType": lambda x: types.MappingProxyType({"a": x[0]})["a"] ** 2,
    "graphlib": lambda x: _in_order(x),
    "contextlib.closing": lambda x: _closed(x),
    "random numbers beside traced ones": lambda x: (
        random.Random(0).gauss(0.0, 1.0) * x[0] + x[1] * random.Random(1).random()
    ),
    "random.choice and shuffle": lambda x: (
        random.Random(0).choice(x) + _shuffled(x) + random.Random(3).uniform(x[0], x[2])
    ),
    "array.array as an operand": lambda x: np.sum(x * np.asarray(array.array("d", [1.0, 2.0, 3.0]))),
    "range and slices": lambda x: sum(x[i] for i in range(2, -1, -1)) + x[slice(0, 2)].sum() * x[-1],
    "weak references": lambda x: weakref.ref(x)().sum() ** 2,
    "vars and setattr": lambda x: _set(x),
    "iter with a sentinel": lambda x: sum(iter(functools.partial(next, iter([x[0], x[2], None])), None)),
    "string keys and getattr": lambda x: getattr(x, "su" + "m")() * getattr(np, "prod")(x),  # noqa: B009
    "fractions": lambda x: fractions.Fraction(1, 3) * x[0].item() + x[1] / fractions.Fraction(2) - x[2],
    "math": lambda x: (
        math.sin(x[0]) * math.hypot(x[0], x[2]) + math.exp(x[1]) ** math.log(x[2]) + math.fsum(x) * math.pi
    ),
    "eval and exec": lambda x: eval("x[0] * x[1] ** 2") + eval("y * 2", {"y": x[2]}),
    "a lambda table": lambda x: {"square": lambda v: v * v, "half": lambda v: v / 2}["square"](x[2]) * x[0],
    "print as a hook": lambda x: [x.sum() ** 2, contextlib.redirect_stdout(None)][0],
}  # fmt: skip


def _shortest(x):
    """Dijkstra's algorithm, whose queue holds traced lengths."""
    lengths = {("a", "b"): x[0], ("b", "c"): x[2] ** 2, ("a", "c"): x[0] + x[2] ** 3}
    queue, found = [(0.0, "a")], {}
    while queue:
        length, node = heapq.heappop(queue)
        if node not in found:
            found[node] = length
            for (start, end), step in lengths.items():
                if start == node:
                    heapq.heappush(queue, (length + step, end))
    return found["c"] * found["b"]


def _sorted_insert(x):
    values = [-5.0, 0.0, 5.0]
    for v in x:
        bisect.insort(values, v)
    return sum(v * i for i, v in enumerate(values))


def _in_order(x):
    order = graphlib.TopologicalSorter({"c": {"a", "b"}, "b": {"a"}}).static_order()
    return sum(v * (i + 1) for (i, _), v in zip(enumerate(order), x))


def _closed(x):
    def values():
        try:
            yield from x
        finally:
            kept.append(x[2])

    kept = []
    with contextlib.closing(values()) as g:
        first = next(g)
    return first * kept[0]


def _shuffled(x):
    values = list(x)
    random.Random(0).shuffle(values)
    return sum(v * i for i, v in enumerate(random.Random(1).sample(values, 2)))


def _set(x):
    thing = types.SimpleNamespace()
    setattr(thing, "w", x[0] * x[1])
    vars(thing)["v"] = x[2]
    return math.prod(vars(thing).values())


@pytest.mark.parametrize("name", FUNCTIONS)
def test_pythons_library_works_on_traced_values(name):
    agree(FUNCTIONS[name], X)


def test_ties_and_order_are_those_of_the_values():
    # The first of two that are equal, as Python's max gives it; the second derivative path is not taken.
    assert gradient(lambda a, b: max(a, b), 1.0, 1.0) == (1.0, None)
    assert gradient(lambda a, b: sorted([a, b])[0], 1.0, 1.0) == (1.0, None)


STATISTICS = [
    (lambda x: statistics.mean(x), "np.mean, which"),
    (lambda x: statistics.pstdev(x), "np.std, which"),
    (lambda x: statistics.variance(list(x)), "np.var(x, ddof=1), which"),
]


@pytest.mark.parametrize(("f", "way"), STATISTICS)
def test_exact_fractions_inside_of_statistics_are_refused_with_the_function_of_numpy(f, way):
    for transform in (lambda: gradient(f, X), lambda: jvp(f, (X,), (X,))):
        with pytest.raises(ConversionError) as caught:
            transform()
        assert "called from test_python_as_written_library.py:" in str(caught.value)
        assert way in str(caught.value)


def test_random_numbers_with_traced_parameters_are_right_or_refused():
    draw = lambda x: random.Random(0).gauss(x[0], x[2])
    close(gradient(draw, X)[0], [1.0, 0.0, random.Random(0).gauss(0.0, 1.0)])
    with pytest.raises(ConversionError, match="gammavariate"):
        gradient(lambda x: random.Random(0).gammavariate(x, 1.0), 2.5)
