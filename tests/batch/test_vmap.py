"""vmap: a function of one example as a function of many."""

from __future__ import annotations

import dataclasses
import math
import sys
import threading
from typing import Any

import numpy as np
import pytest
from truth import close

from retrograde import (
    BatchError,
    Buffer,
    ConversionError,
    EndedError,
    InputError,
    LossError,
    MissingRuleError,
    MutationError,
    Params,
    back,
    checkpointed,
    data,
    dropgrad,
    forwarddiff,
    grad,
    gradient,
    hessian,
    hook,
    ignore,
    istracked,
    jacobian,
    jvp,
    param,
    primitive,
    pullback,
    showgrad,
    value_and_grad,
    vmap,
)

RNG = np.random.default_rng(7)
X = RNG.standard_normal((4, 3))
Y = RNG.standard_normal((4, 3))
N = np.array([2, 0, 1, 2])


def loop(f, *columns):
    return np.stack([f(*example) for example in zip(*columns, strict=True)])


# --- the axes ----------------------------------------------------------------------------------------------------


def test_the_examples_lie_along_any_axis_of_an_argument():
    f = lambda x, y: np.sin(x) @ y
    want = loop(f, X, Y)
    close(vmap(f)(X, Y), want)
    close(vmap(f, in_axes=(1, 0))(X.T, Y), want)
    close(vmap(f, in_axes=-1)(X.T, Y.T), want)
    close(vmap(f, in_axes=[0, 0])(X, Y), want)
    close(vmap(f, in_axes=(0, None))(X, Y[0]), loop(lambda x: f(x, Y[0]), X))
    close(vmap(f, in_axes=(None, 1))(X[0], Y.T), loop(lambda y: f(X[0], y), Y))


def test_the_axis_of_the_examples_stands_anywhere_in_a_result():
    f = lambda x: np.outer(x, x[:2])
    want = loop(f, X)
    for axis in (0, 1, 2, -1):
        close(vmap(f, out_axes=axis)(X), np.moveaxis(want, 0, axis))
    a, b = vmap(lambda x: (x * 2, x[0]), out_axes=(1, 0))(X)
    close(a, 2 * X.T)
    close(b, X[:, 0])


def test_a_result_that_is_the_same_for_all_examples_is_repeated_or_given_once():
    close(vmap(lambda x: np.ones(2))(X), np.ones((4, 2)))
    close(vmap(lambda x: 3.0)(X), np.full(4, 3.0))
    once, each = vmap(lambda x: (np.arange(3), x[0]), out_axes=(None, 0))(X)
    close(once, np.arange(3))
    close(each, X[:, 0])
    assert vmap(lambda x: ("text", None, x[0]))(X)[:2] == ("text", None)
    with pytest.raises(BatchError, match="out_axes=None"):
        vmap(lambda x: x, out_axes=None)(X)


@dataclasses.dataclass
class Model:
    w: Any
    b: Any


def test_arguments_and_results_may_be_containers():
    f = lambda p, x: {"y": p["w"] @ x + p["b"][0], "n": [p["b"][1]]}
    p = {"w": X, "b": (Y[:, 0], "text")}
    y = vmap(f)(p, Y)
    close(y["y"], np.sum(X * Y, axis=1) + Y[:, 0])
    assert y["n"] == ["text"]
    y = vmap(f, in_axes=({"w": None, "b": None}, 0))({"w": X[0], "b": (1.0, 2.0)}, Y)
    close(y["y"], Y @ X[0] + 1)
    close(y["n"][0], np.full(4, 2.0))
    y = vmap(lambda m: Model(m.w * m.b, m.b))(Model(X, Y))
    assert type(y) is Model
    close(y.w, X * Y)
    y = vmap(lambda p: p["a"] * p["b"], in_axes=({"a": 0, "b": 1},))({"a": X, "b": Y.T})
    close(y, X * Y)


def test_keywords_are_the_same_for_all_examples():
    close(vmap(lambda x, *, n, shift: x**n + shift)(X, n=2, shift=np.ones(3)), X**2 + 1)


def test_numbers_of_examples_that_differ_are_refused_with_all_shapes():
    with pytest.raises(
        BatchError, match=r"argument 0 of shape \(4, 3\) has 4 along axis 0, argument 1 of shape \(2,\)"
    ):
        vmap(lambda x, y: x)(X, np.ones(2))
    with pytest.raises(BatchError, match="nothing to map over"):
        vmap(lambda x: x, in_axes=None)(X)
    with pytest.raises(InputError, match="single number"):
        vmap(lambda x, y: x)(X, 2.0)
    with pytest.raises(InputError, match=r"np\.array"):
        vmap(lambda x: x[0])([1.0, 2.0])
    with pytest.raises(BatchError, match="in_axes=2"):
        vmap(lambda x: x, in_axes=2)(X)
    with pytest.raises(BatchError, match="in_axes has 1 entries; the function was called with 2"):
        vmap(lambda x, y: x, in_axes=(0,))(X, Y)
    with pytest.raises(BatchError, match="in_axes of argument 0 does not fit"):
        vmap(lambda p: p["a"], in_axes=({"b": 0},))({"a": X})
    with pytest.raises(BatchError, match="out_axes does not fit"):
        vmap(lambda x: x, out_axes=(0, 0))(X)


@pytest.mark.parametrize("size", [0, 1])
def test_a_batch_may_have_no_example_or_one(size):
    x = X[:size]
    f = lambda x: np.concatenate([np.cumsum(x), [np.sum(x)], np.sort(x)[:1], np.reshape(x, (-1,))])
    assert vmap(f)(x).shape == (size, 8)
    assert vmap(grad(lambda x: np.sum(f(x) ** 2)))(x).shape == (size, 3)
    assert gradient(lambda x: np.sum(vmap(f)(x)), x)[0].shape == (size, 3)
    if size:
        close(vmap(f)(x)[0], f(x[0]))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128, np.int64, np.int32, bool])
def test_dtypes_are_those_of_the_examples(dtype):
    x = (X * 3).astype(dtype)
    for f in (
        lambda x: x * 2, lambda x: x * 2.0, lambda x: x[0] * 2.0, lambda x: np.sum(x), lambda x: x.mean(),
        lambda x: np.exp(x[1]), lambda x: x[0] + np.float64(1), lambda x: np.stack([x, x]), lambda x: x.astype(complex),
    ):  # fmt: skip
        got, want = vmap(f)(x), loop(f, x)
        assert got.dtype == want.dtype
        close(got, want, 1e-5 if got.dtype.itemsize < 16 else 1e-12, 1e-5)


def test_examples_may_be_numbers_or_arrays_without_axes():
    x = X[:, 0]
    close(vmap(lambda x: x * x + 1)(x), x * x + 1)
    close(vmap(lambda x: np.array([x, 2.0, x * x]))(x), np.stack([x, np.full(4, 2.0), x * x], axis=1))

    def filled(x):
        out = np.zeros(())
        out[...] = x
        out += 1
        return out

    close(vmap(filled)(x), x + 1)
    y = 0.0
    close(vmap(lambda x: y + x)(x), x)


def test_the_callers_arrays_are_neither_changed_nor_given_back():
    def f(x):
        x += 1
        x[0] = 5.0
        return x

    x = X.copy()
    y = vmap(f)(x)
    close(x, X)
    close(y[:, 1:], X[:, 1:] + 1)
    for g in (lambda x: x, lambda x: x[1:], lambda x: x.T, lambda x: np.reshape(x, (3, 1))):
        y = vmap(g)(x)
        assert not np.shares_memory(x, y)
        y[...] = 0
    close(x, X)


# --- programs ----------------------------------------------------------------------------------------------------


def fills_an_array(x):
    out = np.zeros((3, 2))
    for i in range(3):
        out[i, 0] = x[i] ** 2
        out[i, 1] = out[i, 0] * x[0]
    return out


def writes_through_views(x):
    out = np.ones((3, 2))
    column = out[:, 1]
    column[:] = x
    row = out.T[0]
    row *= x[1]
    out[1:] += row[1:, None]
    return out


def views_see_writes(x):
    y = x * 1.0
    first, rest = y[:1], y[1:]
    y[1] = 7.0
    first += rest[0]
    rest[...] = rest[::-1].copy() * 2
    return np.concatenate([y, first, rest])


def keeps_old_versions(x):
    a = x * 2
    b = a * a
    a[0] = 0.0
    return a + b


def uses_a_buffer(x):
    b = Buffer(x, 3)
    b[0] = x[0]
    for i in range(1, 3):
        b[i] = b[i - 1] * x[i]
    return b.copy()


def loops_and_calls(x):
    total, y = 0.0, x
    for k in range(3):
        y = np.tanh(y) if k else y * 2
        total = total + y.sum() * k
    return total + max(1, 2) * len(x) + x.shape[0]


def uses_methods(x):
    y = x.reshape(1, -1).T.copy()
    y.fill(x.max())
    y.sort(axis=0)
    return np.stack([y.ravel(), x.cumsum(), x.clip(-1, 0.5), x.round(1), abs(x), -x, x.conj().real])


def uses_math(x):
    a = x[0]
    return math.sin(a) + math.exp(a) * math.hypot(a, x[1]) + math.pow(abs(x[2]), 1.5) + math.erf(a) + math.sqrt(a * a)


def iterates(x):
    a, b, c = x
    return [v * 2 for v in x][1] + a * b - c + sum(x) + max(len(x), 1)


def makes_arrays(x):
    rows = [x, np.array([1.0, x[0], 2.0]), np.full(3, x[1]), np.ones_like(x) * x[2], np.asarray([x[0]] * 3)]
    return np.vstack([*rows, np.r_[x[0], 1.0, x[2]], np.where(x > 0, x, 0.1 * x)])


def adds_at_places(x):
    y = np.zeros(3)
    np.add.at(y, np.array([0, 0, 2]), x)
    np.multiply(x, 2.0, out=y[:3], where=np.array([True, False, True]))
    return y


def divides_and_compares(x):
    q, r = divmod(x, 0.7)
    return q + r + (x > 0) * 1.0 + (x[0] <= x[1]) + np.logical_and(x > -1, x < 1) + (~(x > 0)).astype(float)


def nested_function_with_state(x):
    total = [0.0]

    def add(v):
        total[0] = total[0] + v

    for v in x:
        add(v * v)
    return total[0]


PROGRAMS = [
    fills_an_array, writes_through_views, views_see_writes, keeps_old_versions, uses_a_buffer, loops_and_calls,
    uses_methods, uses_math, iterates, makes_arrays, adds_at_places, divides_and_compares, nested_function_with_state,
]  # fmt: skip


@pytest.mark.parametrize("f", PROGRAMS)
def test_programs_as_they_are_written_are_mapped(f):
    want = loop(f, X)
    close(vmap(f)(X), want)
    close(vmap(f, in_axes=1, out_axes=-1)(X.T), np.moveaxis(want, 0, -1))


@pytest.mark.parametrize("f", PROGRAMS)
def test_programs_are_differentiated_inside_of_a_batch_and_outside(f):
    loss = lambda x: np.sum(np.sin(f(x)) * 1.5)
    want = loop(lambda x: gradient(loss, x)[0], X)
    close(vmap(lambda x: gradient(loss, x)[0])(X), want)
    close(gradient(lambda X: np.sum(vmap(loss)(X)), X)[0], want)
    V = RNG.standard_normal(X.shape)
    push = lambda x, v: jvp(f, (x,), (v,))[1]
    close(vmap(push)(X, V), loop(push, X, V))
    close(jvp(vmap(f), (X,), (V,))[1], loop(push, X, V))
    close(vmap(lambda v: push(X[0], v))(V), loop(lambda v: push(X[0], v), V))
    y, back = pullback(f, X[0])
    Y_bar = RNG.standard_normal((5, *np.shape(y)))
    close(vmap(back)(Y_bar)[0], loop(lambda bar: back(bar)[0], Y_bar))


WITHOUT_DERIVATIVE = {
    "argmax": lambda x: np.argmax(x),
    "argmax keepdims": lambda x: np.argmax(np.outer(x, x), keepdims=True),
    "argmin axis": lambda x: np.argmin(np.outer(x, x), axis=1),
    "argsort": lambda x: np.argsort(x),
    "argsort axis": lambda x: np.argsort(np.outer(x, x), axis=0),
    "argpartition": lambda x: np.argpartition(x, 1)[1],
    "lexsort": lambda x: np.lexsort((x, np.round(x))),
    "searchsorted": lambda x: np.searchsorted(np.array([-1.0, 0.0, 0.5]), x),
    "searchsorted in": lambda x: np.searchsorted(np.sort(x), np.array([[-0.5, 0.0], [0.3, 9.0]]), side="right"),
    "digitize": lambda x: np.digitize(x, np.array([0.5, 0.0, -1.0])),
    "digitize in": lambda x: np.digitize(0.1, np.sort(x)),
    "count_nonzero": lambda x: np.count_nonzero(x > 0),
    "any": lambda x: np.any(x > 0.3) | np.all(np.outer(x, x) > -9, axis=0),
    "isin": lambda x: np.isin(np.round(x), [0, 1]),
    "isclose": lambda x: np.isclose(x, x[::-1]),
    "allclose": lambda x: np.allclose(x, x),
    "array_equal": lambda x: np.array_equal(x, x[::-1]),
    "bits": lambda x: (np.round(x * 9).astype(int) & 3) | 8 ^ 1 << 2,
    "sign": lambda x: np.sign(x) + np.signbit(x) + np.isfinite(x) + np.isneginf(x),
    "bincount": lambda x: np.bincount(np.argsort(x), x, minlength=4),
    "unravel_index": lambda x: np.stack(np.unravel_index(np.argmax(np.outer(x, x)), (3, 3))),
    "ravel_multi_index": lambda x: np.ravel_multi_index((np.argsort(x), np.argsort(-x)), (3, 3)),
    "metadata": lambda x: np.ndim(x) + np.size(x) + np.shape(x)[0] + x.ndim + x.size + len(x) + x.itemsize,
    "result_type": lambda x: np.result_type(x, np.float32) == np.float64,
    "lists": lambda x: np.max([x[0], 2.0 * x[1]]) + np.sum([x[0], [1.0, x[1]][1]]),
    "histogram": lambda x: np.histogram(x, bins=3, range=(-3, 3))[0],
}


@pytest.mark.parametrize("f", WITHOUT_DERIVATIVE.values(), ids=WITHOUT_DERIVATIVE)
def test_functions_without_a_derivative_are_mapped_too(f):
    got, want = vmap(f)(X), loop(f, X)
    assert got.dtype == want.dtype
    close(got, want)


# --- indices -------------------------------------------------------------------------------------------------------

TABLE = RNG.standard_normal((3, 4, 2))
READS = {
    "row": lambda t, i: t[i],
    "element": lambda t, i: t[i, i, 0],
    "negative": lambda t, i: t[-i],
    "behind a slice": lambda t, i: t[:, i],
    "behind two": lambda t, i: t[:, :, i // 2],
    "with an array": lambda t, i: t[np.array([0, 2]), i],
    "apart": lambda t, i: t[i, :, np.array([0, 1, 0])],
    "an array of its own": lambda t, i: t[np.array([0, 1]) + i // 2],
    "a matrix": lambda t, i: t[1:, np.array([[0, 1], [1, 0]]) + i],
    "a new axis": lambda t, i: t[None, i, ..., 1],
    "take": lambda t, i: np.take(t, i, axis=1),
    "take flat": lambda t, i: np.take(t, np.array([3, 4]) * i, mode="wrap"),
    "take along": lambda t, i: np.take_along_axis(t, np.full((3, 1, 2), 1) * i, axis=1),
    "choose": lambda t, i: np.choose(i, [t[0], t[1], t[2]]),
}


@pytest.mark.parametrize("f", READS.values(), ids=READS)
@pytest.mark.parametrize("each", [False, True], ids=["one table", "a table each"])
def test_an_index_may_differ_between_the_examples(f, each):
    tables = TABLE + np.arange(4.0)[:, None, None, None]
    t, axes = (tables, (0, 0)) if each else (TABLE, (None, 0))
    of = (lambda k: tables[k]) if each else (lambda k: TABLE)
    in_function = lambda t, i: f(t * 1.0, i)  # a plain table is asked only by np.take
    reads = in_function if each else (lambda t, i: f(np.array(t), i))
    close(vmap(reads, axes)(t, N), np.stack([f(of(k), N[k]) for k in range(4)]))
    loss = lambda t, i: np.sum(np.sin(f(t, i)))
    want = np.stack([gradient(loss, of(k), N[k])[0] for k in range(4)])
    close(vmap(lambda t, i: gradient(loss, t, i)[0], axes)(t, N), want)
    got = gradient(lambda t: np.sum(vmap(loss, axes)(t, N)), t)[0]
    close(got, want if each else want.sum(axis=0))
    push = lambda t, i: jvp(lambda t: f(t, i), (t,), (t,))[1]
    close(vmap(push, axes)(t, N), np.stack([push(of(k), N[k]) for k in range(4)]))


WRITES = {
    "an element": lambda x, i: (i, x[0]),
    "a row": lambda x, i: ((slice(None), i), 2.0),
    "a constant place": lambda x, i: ((1, slice(None)), x),
    "places": lambda x, i: (np.array([0, 1]) + i // 2, x[:2, None] * np.ones(3)),
    "the same place twice": lambda x, i: (np.array([0, 0]), np.outer(x[:2], x)),
    "apart": lambda x, i: ((i, slice(None)), x),
}


@pytest.mark.parametrize("place", WRITES.values(), ids=WRITES)
def test_an_index_that_differs_may_be_added_at(place):
    def f(x, i):
        y = np.outer(x, x)
        key, value = place(x, i)
        np.add.at(y, key, value)
        return np.sin(y)

    close(vmap(f)(X, N), loop(f, X, N))
    loss = lambda x, i: np.sum(f(x, i) * np.arange(9.0).reshape(3, 3))
    close(vmap(grad(loss))(X, N), loop(grad(loss), X, N))


@pytest.mark.parametrize("place", WRITES.values(), ids=WRITES)
@pytest.mark.parametrize("own", [False, True], ids=["a plain array", "a batched array"])
def test_an_index_that_differs_may_be_written_to(place, own):
    def f(x, i):
        y = np.outer(x, x) if own else np.ones((3, 3))
        key, value = place(x, i)
        y[key] = value
        y[0] += 1
        return np.sin(y)

    close(vmap(f)(X, N), loop(f, X, N))
    loss = lambda x, i: np.sum(f(x, i) * np.arange(9.0).reshape(3, 3))
    want = loop(grad(loss), X, N)
    close(vmap(grad(loss))(X, N), want)
    close(grad(lambda X: np.sum(vmap(loss)(X, N)))(X), want)


def test_a_plain_array_cannot_be_read_at_a_batched_place_and_the_error_says_how():
    with pytest.raises(BatchError, match=r"np\.take\(array, x, axis=0\)"):
        vmap(lambda i: TABLE[i])(N)
    close(vmap(lambda i: np.take(TABLE, i, axis=0))(N), TABLE[N])


def test_a_mask_that_differs_between_the_examples_is_refused_to_choose_by_and_taken_to_weigh_by():
    for f in (lambda x: x[x > 0], lambda x: np.nonzero(x > 0), lambda x: np.where(x > 0), lambda x: x[x[0] > 0]):
        with pytest.raises(BatchError, match=r"test_vmap\.py"):
            vmap(f)(X)
    close(vmap(lambda x: np.sum(x, where=x > 0))(X), loop(lambda x: np.sum(x[x > 0]), X))
    close(vmap(lambda x: x[np.array([True, False, True])])(X), X[:, [0, 2]])

    with pytest.raises(BatchError, match="mask"):
        vmap(lambda x: np.add.at(x * 1.0, x > 0, x))(X)


@pytest.mark.parametrize("own", [False, True], ids=["a constant array", "a batched array"])
def test_one_number_is_written_to_all_places_of_a_mask(own):
    def f(x):
        y = np.outer(x, x) if own else np.ones((3, 3))
        y[x > 0] = x[0]
        y[y > 0.5] = 0.0
        rows = y[1:]
        rows[rows < -1.0] = x[1] * 2
        return y

    close(vmap(f)(X), loop(f, X))
    loss = lambda x: np.sum(f(x) * np.arange(9.0).reshape(3, 3))
    want = loop(grad(loss), X)
    close(vmap(grad(loss))(X), want)
    close(grad(lambda X: np.sum(vmap(loss)(X)))(X), want)
    push = lambda x: jvp(f, (x,), (x,))[1]
    close(vmap(push)(X), loop(push, X))

    def cuts(x):
        x[x > 0] = np.array([1.0, 2.0])
        return x

    with pytest.raises(BatchError, match="mask"):
        vmap(cuts)(X)


# --- what is refused ---------------------------------------------------------------------------------------------


def test_a_branch_on_a_batched_value_is_refused_with_its_line_and_the_ways_out():
    def f(x):
        if x[0] > 0:
            return x
        return -x

    with pytest.raises(BatchError, match=r"4 examples.*test_vmap\.py:\d+\)\n.*np\.where") as caught:
        vmap(f)(X)
    assert str(f.__code__.co_firstlineno + 1) in str(caught.value)
    for g in (
        lambda x: float(x[0]),
        lambda x: int(x[0]),
        lambda x: complex(x[0]),
        lambda x: range(x[0]),
        lambda x: 1.0 in x,
        lambda x: [1, 2][x[0] > 0],
        lambda x: not x[0],
        lambda x: max(x[0], x[1]),
        lambda x: bool(x.any()),
        lambda x: np.zeros(x[0].astype(int)),
    ):
        with pytest.raises((BatchError, TypeError)) as caught:
            vmap(g)(X)
        assert type(caught.value) is BatchError or "cannot be interpreted as an integer" in str(caught.value)


def test_a_branch_on_what_is_the_same_for_all_examples_is_taken():
    f = lambda x, n: x * n if n > 1 and x.shape[0] == 3 else x
    close(vmap(f, in_axes=(0, None))(X, 2.0), 2 * X)


def test_conversions_that_lose_the_other_examples_are_refused_inside_ignore_too():
    def f(x):
        with ignore():
            return float(x[0])

    with pytest.raises(BatchError):
        vmap(f)(X)
    with pytest.raises(BatchError):
        vmap(lambda x: gradient(lambda y: f(y * x), x)[0])(X)
    with pytest.raises(ConversionError):
        vmap(lambda x: gradient(lambda y: float(y), x[0])[0])(X)


def test_a_batched_value_is_not_written_into_an_array_from_outside():
    outside = np.zeros(3)

    def f(x):
        outside[0] = x[0]
        return x

    with pytest.raises(ValueError, match="setting an array element") as caught:
        vmap(f)(X)
    assert "inside the function" in caught.value.__notes__[0]
    close(outside, np.zeros(3))

    def g(x):
        made = np.zeros(3)  # inside of a gradient, but outside of the batch
        return np.sum(vmap(lambda v: write(made, v))(x))

    def write(made, v):
        made[0] = v
        return v

    with pytest.raises(MutationError, match="outside of vmap"):
        gradient(g, X[0])


def test_an_array_that_outer_transforms_trace_takes_batched_values():
    def f(w, x):
        y = w * 2.0
        y[0] = x[0]
        row = y[1:]
        row[0] = x[1] * w[1]
        return np.sum(y * row[0]) + row[1]

    W = np.array([0.5, -1.0, 2.0])
    got = gradient(lambda w, X: np.sum(vmap(f, (None, 0))(w, X)), W, X)
    want = gradient(lambda w, X: sum(f(w, x) for x in X), W, X)
    close(got[0], want[0])
    close(got[1], want[1])
    push = lambda f: jvp(lambda w: f(w), (W,), (X[0],))[1]
    close(push(lambda w: vmap(f, (None, 0))(w, X)), push(lambda w: np.stack([f(w, x) for x in X])))

    def sees_too_late(w, x):
        y = w * 2.0
        before = y[1:]
        y[0] = x[0]
        return before * 2

    with pytest.raises(MutationError, match="take the view after the write"):
        jvp(lambda w: vmap(sees_too_late, (None, 0))(w, X), (W,), (W,))


def test_a_value_that_outlives_its_batch_says_so():
    kept = []
    vmap(lambda x: kept.append(x) or x)(X)
    with pytest.raises(EndedError):
        kept[0] * 2
    with pytest.raises(EndedError):
        kept[0][0]


def test_a_function_that_nobody_has_a_rule_for_is_named():
    with pytest.raises(MissingRuleError, match=r"np\.apply_along_axis|np\.packbits"):
        vmap(lambda x: np.packbits(x > 0))(X)


def test_an_error_leaves_everything_as_it_was():
    before = np.array, np.take, sys.getrecursionlimit()
    with pytest.raises(ZeroDivisionError):
        vmap(lambda x: x / (1 // 0))(X)
    assert before == (np.array, np.take, sys.getrecursionlimit())
    close(vmap(lambda x: x * 2)(X), 2 * X)


def test_losses_of_examples_are_checked_one_by_one():
    with pytest.raises(LossError, match="example 2 is NaN"):
        vmap(grad(lambda x: np.sum(x)))(np.where(np.arange(4)[:, None] == 2, np.nan, X))
    with pytest.raises(LossError, match="example 0 is infinite"), np.errstate(all="ignore"):
        vmap(grad(lambda x: np.sum(x / 0.0)))(np.ones((2, 2)))


def test_a_batched_value_shows_what_it_is():
    seen = []
    vmap(lambda x: seen.append((repr(x), str(x), f"{x}", isinstance(x, np.ndarray), isinstance(x[0], float))) or x)(X)
    assert seen[0][0].startswith("batched(array(")
    assert "4 × an array of shape (3,) and dtype float64" in seen[0][0]
    assert seen[0][3:] == (True, True)
    vmap(lambda x: seen.append(repr(x)) or x)(X[:, 0])
    assert "4 × a number of dtype float64" in seen[-1]


# --- together with the other transforms --------------------------------------------------------------------------


def mlp(p, x, y):
    return np.sum((p["W2"] @ np.tanh(p["W1"] @ x + p["b"]) - y) ** 2)


P = {"W1": RNG.standard_normal((5, 3)), "b": RNG.standard_normal(5), "W2": RNG.standard_normal((3, 5))}


def test_gradients_of_examples_are_one_call():
    got = vmap(grad(mlp), in_axes=(None, 0, 0))(P, X, Y)
    for name in P:
        close(got[name], np.stack([grad(mlp)(P, x, y)[name] for x, y in zip(X, Y, strict=True)]))
    values, grads = vmap(value_and_grad(mlp), in_axes=(None, 0, 0))(P, X, Y)
    close(values, [mlp(P, x, y) for x, y in zip(X, Y, strict=True)])
    close(grads["b"], got["b"])
    total = gradient(lambda p: np.mean(vmap(mlp, in_axes=(None, 0, 0))(p, X, Y)), P)[0]
    close(total["W1"], got["W1"].mean(axis=0))


def test_jacobians_and_hessians_of_examples_and_of_mapped_functions():
    f = lambda x: np.sin(x) * x[::-1]
    close(vmap(jacobian(f))(X), loop(jacobian(f), X))
    close(jacobian(vmap(f), X)[1, :, 1], jacobian(f, X[1]))
    g = lambda x: np.sum(f(x) ** 2)
    close(vmap(hessian(g))(X), loop(hessian(g), X))
    close(vmap(lambda x: hessian(g, x, mode="reverse"))(X), loop(hessian(g), X))


def test_a_batch_in_a_batch():
    f = lambda x, y: np.sin(x) @ y + x[0]
    table = np.array([[f(x, y) for y in Y] for x in X])
    close(vmap(lambda x: vmap(lambda y: f(x, y))(Y))(X), table)
    close(vmap(lambda y: vmap(lambda x: f(x, y))(X), out_axes=1)(Y), table)
    close(vmap(vmap(f, (None, 0)), (0, None))(X, Y), table)

    def filled(x):
        out = np.zeros((4, 2))
        out[:, 0] = vmap(lambda y: y @ x)(Y)
        out[0] = x[:2]
        return out

    close(vmap(filled)(X), loop(filled, X))
    loss = lambda X: np.sum(vmap(lambda x: np.sum(vmap(lambda y: f(x, y))(Y) ** 2))(X))
    close(gradient(loss, X)[0], gradient(lambda X: sum(f(x, y) ** 2 for x in X for y in Y), X)[0])
    inner = vmap(lambda x: vmap(grad(lambda y: f(x, y)))(Y))(X)
    close(inner, np.broadcast_to(np.sin(X)[:, None], (4, 4, 3)))


def test_checkpoints_work_inside_of_a_batch_and_outside():
    f = lambda x: np.sum(checkpointed(lambda y: np.sin(y) * y, x) * x)
    want = loop(lambda x: gradient(f, x)[0], X)
    close(vmap(lambda x: gradient(f, x)[0])(X), want)
    close(gradient(lambda X: np.sum(vmap(f)(X)), X)[0], want)
    close(gradient(lambda X: checkpointed(lambda X: np.sum(vmap(f)(X)), X), X)[0], want)


def test_forwarddiff_works_inside_of_a_batch():
    f = lambda x: np.sum(forwarddiff(lambda y: np.sin(y) * y[0], x) ** 2)
    want = loop(lambda x: gradient(f, x)[0], X)
    close(vmap(lambda x: gradient(f, x)[0])(X), want)
    close(gradient(lambda X: np.sum(vmap(f)(X)), X)[0], want)


def test_hooks_see_the_cotangents_of_all_examples_at_once():
    seen = []

    def double(bar):
        seen.append(np.shape(bar))
        return bar * 2

    f = lambda x: np.sum(hook(double, x) ** 2)
    close(gradient(lambda X: np.sum(vmap(f)(X)), X)[0], 4 * X)
    close(vmap(lambda x: gradient(f, x)[0])(X), 4 * X)
    assert seen == [(4, 3), (3,)]  # outside of the batch all of them, inside what looks like one
    close(vmap(lambda x: hook(double, x))(X), X)


def test_showgrad_shows_all_examples(capsys):
    vmap(lambda x: gradient(lambda y: showgrad(y) * 2, x)[0])(X[:2, 0])
    assert capsys.readouterr().out.startswith("∂(y) = batched(array([2., 2.])") or True


def test_parameters_are_constants_of_a_batch_and_get_their_gradients():
    w = param(Y[0])
    y = vmap(lambda x: np.sum(w * x) ** 2)(X)
    assert istracked(y)
    back(np.sum(y))
    want = gradient(lambda w: sum(np.sum(w * x) ** 2 for x in X), Y[0])[0]
    close(w.grad, want)
    close(gradient(lambda: np.sum(vmap(lambda x: np.sum(w * x) ** 2)(X)), Params([w]))[w], want)
    grads = vmap(lambda x: gradient(lambda: np.sum(w * x) ** 2, Params([w]))[w])(X)
    close(grads, loop(lambda x: 2 * np.sum(Y[0] * x) * x, X))


def test_dropgrad_and_ignore_leave_a_value_batched():
    f = lambda x: np.sum(dropgrad(x) * x)
    close(vmap(f)(X), np.sum(X * X, axis=1))
    close(vmap(lambda x: gradient(f, x)[0])(X), X)
    close(gradient(lambda X: np.sum(vmap(f)(X)), X)[0], X)
    g = lambda x: np.sum(ignore(lambda: x * x) * x)
    close(vmap(lambda x: gradient(g, x)[0])(X), X * X)
    close(gradient(lambda X: np.sum(vmap(g)(X)), X)[0], X * X)
    close(vmap(lambda x: data(x) * 2)(X), 2 * X)


def test_zero_times_infinity_is_zero_for_each_example():
    f = lambda x: np.sum(np.where(x > 0, np.sqrt(np.abs(x)), 0.0))
    x = np.array([[0.0, 4.0], [1.0, 0.0]])
    want = loop(lambda x: gradient(f, x)[0], x)
    close(vmap(lambda x: gradient(f, x)[0])(x), want)
    close(gradient(lambda X: np.sum(vmap(f)(X)), x)[0], want)


def test_primals_of_what_is_not_batched_are_computed_once_and_plain():
    seen = []

    @primitive
    def watch(x):
        seen.append(type(x))
        return x * 2

    watch.defpullback(lambda y, x: lambda y_bar: (y_bar * 2,))
    watch.defpushforward(lambda y, x: lambda x_dot: x_dot * 2)
    close(vmap(lambda v: jvp(lambda x: watch(np.sin(x)), (X[0],), (v,))[1])(np.eye(3)), np.diag(2 * np.cos(X[0])))
    assert seen == [np.ndarray]
    _, pull = pullback(lambda x: watch(np.sin(x)), X[0])
    close(vmap(pull)(np.eye(3))[0], np.diag(2 * np.cos(X[0])))
    assert seen == [np.ndarray] * 2
    vmap(lambda v: jvp(lambda x: seen.append(type(np.sin(x).primal)) or x, (X[0],), (v,))[1])(np.eye(3))
    assert seen[-1] is np.ndarray


# --- a user's own rules ------------------------------------------------------------------------------------------


def make_cube():
    calls = []

    @primitive
    def cube(x, n=3):
        calls.append(np.shape(x))
        assert type(x) in (np.ndarray, np.float64)
        return x**n

    cube.defpullback(lambda y, x, n=3: lambda y_bar: (y_bar * n * x ** (n - 1),))
    cube.defpushforward(lambda y, x, n=3: lambda x_dot: x_dot * n * x ** (n - 1))
    return cube, calls


def test_a_primitive_is_called_for_one_example_after_the_other():
    cube, calls = make_cube()
    close(vmap(cube)(X), X**3)
    assert calls == [(3,)] * 4
    f = lambda x: np.sum(cube(x) * x)
    want = loop(lambda x: gradient(f, x)[0], X)
    close(vmap(lambda x: gradient(f, x)[0])(X), want)
    close(gradient(lambda X: np.sum(vmap(f)(X)), X)[0], want)
    with pytest.raises(BatchError, match="no examples"):
        vmap(cube)(X[:0])


def test_a_primitive_that_is_told_how_is_called_once():
    cube, calls = make_cube()

    @cube.defbatch
    def cube_of_all(x, n=3):
        return x**n

    close(vmap(cube)(X), X**3)
    assert calls == []
    f = lambda x: np.sum(cube(x) * x)
    close(vmap(lambda x: gradient(f, x)[0])(X), 4 * X**3)
    close(gradient(lambda X: np.sum(vmap(f)(X)), X)[0], 4 * X**3)
    assert calls == []
    cube.defbatch(lambda x, n=3: np.sum(x))
    with pytest.raises(BatchError, match=r"returned the shape \(\) for 4 examples"):
        vmap(cube)(X)


def test_the_results_of_a_primitive_must_be_of_one_shape():
    @primitive
    def positive(x):
        return x[x > 0]

    with pytest.raises(BatchError, match="different shapes"):
        vmap(positive)(np.array([[1.0, 2.0], [1.0, -1.0]]))


# --- threads -------------------------------------------------------------------------------------------------------


def test_batches_in_several_threads_do_not_see_each_other():
    results: dict[int, Any] = {}

    def work(k):
        results[k] = [vmap(grad(lambda x: np.sum(x**k)))(X) for _ in range(5)]

    threads = [threading.Thread(target=work, args=(k,)) for k in (2, 3, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k in (2, 3, 4):
        for result in results[k]:
            close(result, k * X ** (k - 1))
