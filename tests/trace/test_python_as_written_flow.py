"""Loops, branches, exceptions, functions and classes: the statements that Python has, with traced values in them."""

from __future__ import annotations

import asyncio
import collections
import collections.abc
import contextlib
import contextvars
import dataclasses
import enum
import functools
import threading
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any, NamedTuple

import numpy as np
import pytest
from truth import agree, close

import retrograde as rg
from retrograde import (
    HashError,
    Params,
    data,
    dropgrad,
    gradient,
    hessian,
    jvp,
    param,
)

X = np.array([0.5, -1.2, 2.0])


# --- loops and branches ------------------------------------------------------------------------------------------


def while_on_a_traced_condition(x):
    total, n = x[0], 0
    while total * total < 30.0:
        total = total * 1.5 + x[2]
        n += 1
    return total * n


def newton_until_it_stands(x):
    root = 1.0
    while abs(root * root - x[2]) > 1e-13:
        root = root - (root * root - x[2]) / (2 * root)
    return root


def loop_with_break_continue_and_else(x):
    total = 0.0
    for v in x:
        if v < 0:
            continue
        total += v * v
        if total > 100:
            break
    else:
        total = total * x[0]
    return total


def nested_loops(x):
    total = 0.0
    for i, a in enumerate(x):
        for b in x[i:]:
            total += a * b * (i + 1)
    return total


def comparison_chains(x):
    return x[0] ** 2 if -1 < x[0] < 1 <= x[2] != 3 else x[1]


def conditional_expressions_and_short_circuits(x):
    a = x[0] and x[1]
    b = x[1] or x[0]
    c = not x[2]
    return a * b + (x[2] if c else x[2] ** 2)


def walrus(x):
    total = 0.0
    while (total := total + x[2] ** 2) < 9.0:
        pass
    return total * (y := x[0]) + y


def unpacking(x):
    a, b, c = x
    (d, (e, *f)), g = (a, (b, c, a)), b
    first, *rest = x
    *_, last = x * 2
    return a * b + c * d * e * f[0] * f[1] + g + first * sum(rest) + last


def rows_of_a_matrix(x):
    A = np.outer(x, x)
    total = 0.0
    for row in A:
        for v in row:
            total += v**3
    (p, _, _), (_, q, _), _ = A
    return total + p * q


def swaps_and_chained_assignment(x):
    a, b = x[0], x[1]
    a, b = b, a * b
    c = d = a + x[2]
    c *= b
    return a * b + c - d


def deletion_and_slices_of_lists(x):
    values = [*x, x[0] * x[1]]
    del values[1]
    values[1:2] = [x[2], x[2] * 2]
    return sum(v * i for i, v in enumerate(values[::-1]))


@pytest.mark.parametrize(
    "f",
    [
        while_on_a_traced_condition,
        newton_until_it_stands,
        loop_with_break_continue_and_else,
        nested_loops,
        comparison_chains,
        conditional_expressions_and_short_circuits,
        walrus,
        unpacking,
        rows_of_a_matrix,
        swaps_and_chained_assignment,
        deletion_and_slices_of_lists,
    ],
)
def test_loops_branches_and_assignments_are_pythons(f):
    agree(f, X)


def test_membership_compares_values():
    def f(x):
        assert 0.5 in x
        assert 7.0 not in x
        assert x[1] in [x[0], x[1]]
        assert x[2] not in (x[0], 1.0)
        return x[0] if x[2] in x else x[1]

    assert gradient(f, X)[0].tolist() == [1.0, 0.0, 0.0]


# --- containers --------------------------------------------------------------------------------------------------


def lists(x):
    values = []
    for v in x:
        values.append(v * v)
    values.extend([x[0], 1.0])
    values.insert(1, x[1] * x[2])
    values.reverse()
    last = values.pop()
    return sum(v * (i + 1) for i, v in enumerate(values)) * last + values.index(1.0) + len(values)


def sorted_lists(x):
    values = [*x, x[0] * x[2]]
    values.sort()
    ranked = sorted(values, key=lambda v: -abs(v))
    return values[0] * values[-1] + ranked[0] ** 2 + sorted(x, reverse=True)[1]


def dictionaries(x):
    weights = {"a": x[0], "b": x[1]}
    weights |= {"c": x[2]}
    weights["a"] += weights.pop("b") * 3
    weights.setdefault("d", x[0] * x[1])
    weights.update(e=x[2] ** 2)
    total = collections.defaultdict(float)
    for name, w in weights.items():
        total[name > "b"] += w * w
    return total[True] * total[False] + sum(weights.values()) + weights.get("z", x[1])


def deques(x):
    window = collections.deque(maxlen=2)
    total = 0.0
    for v in x:
        window.append(v)
        window.rotate(1)
        total += window[0] * window[-1]
    window.appendleft(x[0])
    return total + window.popleft() ** 2


def comprehensions(x):
    squares = [v * v for v in x if v > -1]
    table = {i: v * v for i, v in enumerate(x)}
    pairs = [(a, b) for a in squares for b in x]
    return sum(a * b for a, b in pairs) + table[1] * len({i % 2 for i in range(3)})


def chain_maps_counters_and_ordered_dicts(x):
    maps = collections.ChainMap({"a": x[0]}, {"a": x[1], "b": x[2]})
    order = collections.OrderedDict(a=x[0], b=x[1])
    order.move_to_end("a")
    count = collections.Counter("aab")
    return maps["a"] * maps["b"] + list(order.values())[-1] * count["a"] + x[1] * count["b"]


class Point(NamedTuple):
    a: Any
    b: Any = 2.0


def named_tuples(x):
    p = Point(x[0])._replace(b=x[1] * x[2])
    q = collections.namedtuple("q", "u v")(*p)
    return p.a * p.b + q.u**2 + sum(p) + p._asdict()["b"]


@pytest.mark.parametrize(
    "f",
    [
        lists,
        sorted_lists,
        dictionaries,
        deques,
        comprehensions,
        chain_maps_counters_and_ordered_dicts,
        named_tuples,
    ],
)
def test_traced_values_stand_in_containers_like_any_other(f):
    agree(f, X)


# --- functions ---------------------------------------------------------------------------------------------------


def recursion(x):
    def binomial(n, k):
        return x[0] if k in (0, n) else binomial(n - 1, k - 1) * x[2] + binomial(n - 1, k)

    return binomial(6, 3)


def closures_that_write(x):
    total, count = 0.0, 0

    def add(v):
        nonlocal total, count
        total += v * count
        count += 1

    for v in x:
        add(v)
    return total


def adder(*values, scale=1.0, **named):
    return scale * sum(values) + sum(v**2 for v in named.values())


def star_arguments(x):
    return adder(*x, **{"scale": x[0], "b": x[1]}) + adder(x[2], c=x[0]) * adder(*x[:2])


def decorated(x):
    def twice(f):
        @functools.wraps(f)
        def wrapper(*args, **kwargs):
            return f(*args, **kwargs) * f(*args, **kwargs)

        return wrapper

    @twice
    def scaled(v, by=2.0):
        return v * by

    return scaled(x[0]) + scaled(x[1], by=x[2])


def partials_and_single_dispatch(x):
    @functools.singledispatch
    def size(v):
        return 0.0

    @size.register
    def _(v: float):
        return v * v

    @size.register
    def _(v: np.ndarray):
        return np.sum(v**3)

    @size.register
    def _(v: list):
        return sum(size(u) for u in v)

    half = functools.partial(lambda a, b, c=1.0: a * b * c, x[0], c=x[1])
    return half(x[2]) + size(x) + size([x[0], x[1]]) + size("text")


def cached_functions_of_constants(x):
    @functools.cache
    def coefficient(n):
        return 1.0 / (n + 1)

    @functools.lru_cache
    def power(n):
        return x[0] if n == 1 else power(n - 1) * x[2]

    return sum(coefficient(i % 2) * v for i, v in enumerate(x)) + power(4)


@pytest.mark.parametrize(
    "f",
    [
        recursion,
        closures_that_write,
        star_arguments,
        decorated,
        partials_and_single_dispatch,
        cached_functions_of_constants,
    ],
)
def test_functions_are_called_as_python_calls_them(f):
    agree(f, X)


def test_a_cache_keyed_by_a_traced_value_is_refused_at_the_callers_line():
    @functools.lru_cache
    def square(v):
        return v * v

    for transform in (lambda: gradient(square, 2.0), lambda: jvp(square, (2.0,), (1.0,))):
        with pytest.raises(HashError, match="no hash") as caught:
            transform()
        assert "test_python_as_written_flow.py:" in str(caught.value)
        assert "lru_cache" in str(caught.value)
    assert gradient(lambda x: x * square(2.0), 3.0) == (4.0,)
    assert gradient(lambda x: x * square(dropgrad(x) * 1.0), 3.0) == (9.0,)


# --- generators and coroutines -----------------------------------------------------------------------------------


def generators(x):
    def powers(v, n):
        p = v
        for _ in range(n):
            yield p
            p = p * v

    def all_powers():
        for v in x:
            yield from powers(v, 3)

    return sum(all_powers()) + next(powers(x[0], 1)) * max(powers(x[2], 4))


def generators_as_coroutines(x):
    def mean():
        total, n = 0.0, 0
        value = None
        while True:
            value = yield value
            total = total + value
            n += 1
            value = total / n

    averager = mean()
    next(averager)
    last = [averager.send(v * v) for v in x]
    averager.close()
    return last[0] * last[1] * last[2]


def a_generator_that_returns_and_catches(x):
    def work():
        total = 0.0
        try:
            while True:
                total += (yield total) ** 2
        except KeyError:
            return total * x[1]

    def outer():
        result = yield from work()
        yield result

    g = outer()
    next(g)
    for v in x:
        g.send(v)
    return g.throw(KeyError("done"))


def coroutines(x):
    async def part(v, name):
        await asyncio.sleep(0)
        return v * v if name else v

    async def stream():
        for v in x:
            await asyncio.sleep(0)
            yield v

    async def main():
        parts = await asyncio.gather(*(part(v, i) for i, v in enumerate(x)))
        async with contextlib.AsyncExitStack():
            async for v in stream():
                parts.append(v * 2)
        return sum(p * (i + 1) for i, p in enumerate(parts))

    return asyncio.run(main())


@pytest.mark.parametrize("f", [generators, generators_as_coroutines, a_generator_that_returns_and_catches, coroutines])
def test_generators_and_coroutines_carry_traced_values(f):
    agree(f, X)


# --- exceptions and context managers -----------------------------------------------------------------------------


def exceptions_branch(x):
    try:
        y = x[0] / 0 if isinstance(x, list) else {}["missing"]
    except KeyError:
        y = x[0] * x[1]
    else:
        y = x[2]
    finally:
        y = y * x[2]
    return y


def an_exception_that_carries_a_value(x):
    class Found(Exception):
        pass

    def search():
        for v in x:
            if v < 0:
                raise Found(v * v, x[0])

    try:
        search()
    except Found as found:
        value, first = found.args
        return value * first
    return 0.0


def an_exception_half_way_through_a_write(x):
    y = np.zeros(3)
    try:
        for i in range(5):
            y[i] = x[i % 3] * (i + 1)
    except IndexError:
        y[0] *= x[2]
    return np.sum(y * y)


def groups_of_exceptions(x):
    total = x[0]
    try:
        raise ExceptionGroup("both", [ValueError(1), KeyError(2)])
    except* ValueError:
        total = total * x[1]
    except* KeyError:
        total = total + x[2] ** 2
    return total


def context_managers(x):
    log = []

    @contextlib.contextmanager
    def scaled(by):
        log.append(by)
        yield x[0] * by
        log.append(by * by)

    with scaled(x[1]) as a, contextlib.suppress(KeyError), contextlib.ExitStack() as stack:
        stack.callback(log.append, x[2])
        log.append(a)
        raise KeyError
    with contextlib.nullcontext(x[2]) as b, np.errstate(all="raise"), np.printoptions(precision=2):
        log.append(b)
    return sum(v * (i + 1) for i, v in enumerate(log))


@pytest.mark.parametrize(
    "f",
    [
        exceptions_branch,
        an_exception_that_carries_a_value,
        an_exception_half_way_through_a_write,
        groups_of_exceptions,
        context_managers,
    ],
)
def test_exceptions_take_their_branch_and_lose_nothing(f):
    agree(f, X)


def test_numbers_that_divide_by_zero_raise_as_pythons_do():
    f = lambda a, b: a / b if b else a
    assert gradient(f, 3.0, 0.0) == (1.0, None)

    def caught(a, b):
        try:
            return a / b
        except ZeroDivisionError:
            return a * 5

    assert gradient(caught, 3.0, 0.0) == (5.0, None)
    assert jvp(caught, (3.0, 0.0), (1.0, 1.0)) == (15.0, 5.0)


def test_a_floating_point_error_that_the_user_asks_for_is_raised_and_may_be_caught():
    def f(x):
        with np.errstate(all="raise"):
            try:
                return np.sum(np.log(x - 0.5))
            except FloatingPointError:
                return np.sum(np.abs(x))

    close(gradient(f, X)[0], np.sign(X))
    close(jvp(f, (X,), (X,))[1], np.sum(np.abs(X)))
    with pytest.raises(FloatingPointError):
        gradient(lambda x: f(x) if x[0] < 0 else np.errstate(divide="raise")(np.log)(x[0] - 0.5), X)


def test_assertions_see_values():
    def f(x):
        assert x[0] > 0
        assert np.all(np.isfinite(x)), x
        assert x[0] == 0.5 == data(x)[0]
        return np.sum(x**2)

    close(gradient(f, X)[0], 2 * X)
    with pytest.raises(AssertionError, match=r"0\.5"):
        gradient(lambda x: exec("assert x[0] < 0, x[0]", {"x": x}), X)


# --- pattern matching --------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Circle:
    radius: Any


@dataclasses.dataclass
class Box:
    width: Any
    height: Any


class Colour(enum.Enum):
    RED = 0.5
    BLUE = 2.0


def area(shape):
    match shape:
        case Circle(radius=r) if r > 1:
            return 3.0 * r * r
        case Circle(r):
            return r * r
        case Box(width, height):
            return width * height
        case {"kind": "triangle", "base": b, "height": h, **rest}:
            return b * h / 2 + sum(rest.values())
        case [first, *others]:
            return first * sum(others)
        case float() as x:
            return x**3
        case np.ndarray(shape=(n,)) if n > 2:
            return np.sum(shape) * n
        case np.ndarray():
            return np.sum(shape**2)
        case None | "none":
            return 0.0
    raise AssertionError(shape)


def class_and_mapping_patterns(x):
    shapes = [
        Circle(x[2]),
        Circle(x[0]),
        Box(x[0], x[1]),
        {"kind": "triangle", "base": x[2], "height": x[0], "more": x[1]},
        [x[0], x[1], x[2]],
        (x[0], x[2]),
        x[1],
        x,
        x[:2],
        None,
    ]
    return sum(area(shape) * (i + 1) for i, shape in enumerate(shapes))


def value_patterns(x):
    total = x[1] * x[0].item()
    for v in (x[0], x[2]):
        match v:
            case 0.5:
                total = total * v
            case Colour.BLUE.value:
                total = total + v**2
            case _:
                raise AssertionError
    return total


def sequence_patterns_of_tuples(x):
    match (x[0], (x[1], x[2])):
        case (a, (b, 2.0 as c)) if b < a:
            return a * b * c
    raise AssertionError


def test_patterns_match_as_they_match_the_primal():
    agree(class_and_mapping_patterns, X)
    agree(value_patterns, X, lambda x: x[1] * x[0] ** 2 + x[2] ** 2)
    agree(sequence_patterns_of_tuples, X, np.prod)


def test_a_number_matches_no_sequence():
    def f(x):
        match x:
            case []:
                return 1.0
            case [a]:
                return a
            case [a, b, *_]:
                return a * b
            case float() | int():
                return x * x
        return 0.0

    for number in (3.0, np.float64(3.0)):
        assert gradient(f, number) == (6.0,)
        assert jvp(f, (number,), (1.0,)) == (9.0, 6.0)
    with pytest.raises(TypeError, match="no len"):
        gradient(len, 3.0)


def test_an_array_matches_a_sequence_exactly_where_numpys_does():
    def f(x):
        match x:
            case [first, *others]:
                return first * sum(others)
        return np.sum(x**2)

    agree(f, X)
    assert not any(isinstance(x, collections.abc.Sequence) for x in (param(X), param(X) * 2))


# --- classes -----------------------------------------------------------------------------------------------------


class Particle:
    """Attributes that methods update, properties, class attributes, operators and a call."""

    drag = 0.1
    __slots__ = ("_v", "history", "x")

    def __init__(self, x, v):
        self.x, self._v, self.history = x, v, []

    @property
    def v(self):
        return self._v

    @v.setter
    def v(self, v):
        self.history.append(self._v)
        self._v = v

    @functools.cached_property
    def unused(self):
        raise AssertionError

    @classmethod
    def at_rest(cls, x):
        return cls(x, 0.0)

    @staticmethod
    def force(x):
        return -x

    def step(self, dt=0.1):
        self.v += dt * (self.force(self.x) - self.drag * self.v)
        self.x += dt * self.v

    def __call__(self, n):
        for _ in range(n):
            self.step()
        return self

    def __matmul__(self, other):
        return self.x * other.x + self.v * other.v

    def __iter__(self):
        yield from (self.x, self.v)

    def __getitem__(self, key):
        return getattr(self, key)

    def __bool__(self):
        return bool(self.x > 0)

    def __lt__(self, other):
        return self.x < other.x


def a_class_with_state(x):
    p, q = Particle(x[0], x[1]), Particle.at_rest(x[2])
    p(5)
    q(3)
    low, high = sorted([q, p])
    return p @ q + sum(p) * p["x"] + sum(p.history) + low.x * high.v + (p.x if p else q.x)


class Layer:
    def __init__(self, W, b):
        self.W, self.b = W, b

    def __call__(self, x):
        return np.tanh(x @ self.W + self.b)


class Network:
    def __init__(self, *layers):
        self.layers = list(layers)
        self.calls = 0

    def __call__(self, x):
        self.calls += 1
        for layer in self.layers:
            x = layer(x)
        return x


def a_network_of_objects(x):
    W = np.outer(x, x) / 3
    net = Network(Layer(W, x[0]), Layer(W.T, x))
    return np.sum(net(x) + net(net(x))) * net.calls


class Descriptor:
    def __set_name__(self, owner, name):
        self.name = "_" + name

    def __get__(self, instance, owner=None):
        return getattr(instance, self.name) * 2

    def __set__(self, instance, value):
        setattr(instance, self.name, value + 1)


class Described:
    value = Descriptor()

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return self._value * len(name)


def descriptors_and_getattr(x):
    d = Described()
    d.value = x[0]
    d.value *= x[1]
    return d.value * d.three + d.ab * x[2]


@dataclasses.dataclass(frozen=True, slots=True)
class State:
    x: Any
    v: Any
    t: float = 0.0
    tags: list = dataclasses.field(default_factory=list, compare=False)

    def moved(self, dt):
        return dataclasses.replace(self, x=self.x + dt * self.v, v=self.v - dt * self.x, t=self.t + dt)


def dataclasses_replaced(x):
    s = State(x[0], x[1])
    for _ in range(4):
        s = s.moved(0.1)
    asdict = dataclasses.asdict(State(x[2], 1.0))
    a, b, *_ = dataclasses.astuple(s)
    return s.x * s.v * s.t + asdict["x"] ** 2 + a * b


@pytest.mark.parametrize("f", [a_class_with_state, a_network_of_objects, descriptors_and_getattr, dataclasses_replaced])
def test_objects_hold_traced_values_and_change_them(f):
    agree(f, X)


# --- threads -----------------------------------------------------------------------------------------------------


def work_in_a_pool(x):
    def part(i):
        out = np.zeros(2)
        out[0] = x[i] * i
        out[1] = out[0] ** 2
        return out

    with ThreadPoolExecutor(3) as pool:
        parts = list(pool.map(part, range(3)))
        later = [pool.submit(part, i) for i in range(3)]
        total = sum(np.sum(done.result()) for done in as_completed(later))
    return np.sum(np.stack(parts)) * total


def test_a_pool_of_threads_computes_traced_values():
    agree(work_in_a_pool, X)


def test_a_pool_made_before_the_transform_knows_it_too():
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(abs, range(4)))
        agree(lambda x: sum(pool.map(lambda v: np.sum(np.array([v, 1.0]) ** 2), x)), X)


def test_parameters_in_a_pool_are_the_leaves_of_the_transform():
    W = param(X)
    with ThreadPoolExecutor(2) as pool:
        grads = gradient(lambda: sum(pool.map(lambda i: W[i] ** 2, range(3))), Params([W]))
    close(grads[W], 2 * X)


def test_a_thread_that_the_function_starts_works_as_the_function_itself():
    class Worker(threading.Thread):
        def __init__(self, x):
            super().__init__(name="worker")
            self.x = x

        def run(self):
            self.out = np.zeros(2)
            self.out[0] = self.x[0] * self.x[1]

    def f(x):
        results = []

        def work(factor):
            out = np.zeros(2)
            out[0] = x[0] * x[1] * factor
            results.append(out[0] * x[2])

        threads = [threading.Thread(target=work, args=(factor,)) for factor in (1.0, 2.0)] + [Worker(x)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return results[0] + results[1] + threads[2].out[0]

    agree(f, X)
    assert "run" not in vars(Worker(X))

    def of_parameters():
        loss = []
        thread = threading.Thread(target=lambda: loss.append(W * W))
        thread.start()
        thread.join()
        return loss[0]

    W = param(3.0)
    assert gradient(of_parameters, Params([W]))[W] == 6.0

    def started_in_ignore(x):
        seen = []
        with rg.ignore():
            thread = threading.Thread(target=lambda: seen.append(float(x[0])))
            thread.start()
        thread.join()
        return x[0] * seen[0]

    close(gradient(started_in_ignore, X)[0], [X[0], 0.0, 0.0])

    def in_context(x):
        results = []
        work = lambda: results.append(np.sum(np.array([x[0] * x[1], 1.0]) * x[2]))
        thread = threading.Thread(target=contextvars.copy_context().run, args=(work,))
        thread.start()
        thread.join()
        return results[0]

    agree(in_context, X)


# --- higher orders -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "f",
    [lists, deques, closures_that_write, generators_as_coroutines, exceptions_branch, a_class_with_state, recursion],
)
def test_second_derivatives_of_python_as_written(f):
    from truth import differences

    close(hessian(f, X), differences(lambda x: gradient(f, x)[0], X), 1e-7, 1e-8)
