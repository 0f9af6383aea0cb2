"""Calls in forward mode, plain and in batches: what one native run gives for all is what a loop over examples gives."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from truth import close, differences

import retrograde as rg
from retrograde.compiler.bridge import Bridge
from retrograde.errors import EndedError, InputError

pytest.importorskip("numba")

XS = np.linspace(-1.0, 2.0, 12).reshape(4, 3)
VS = np.random.default_rng(1).normal(size=(4, 3))


@rg.compile
def wave(x, w, k):
    y = np.empty(len(x))
    for i in range(len(x)):
        y[i] = np.sin(w * x[i]) * x[i - k]
    return y


@rg.compile
def total(x):
    return np.sum(x * x * x)


@rg.compile
def scaled(x, factor):
    for i in range(len(x)):
        x[i] *= factor
    return np.sum(x)


@rg.compile
def rest(x):
    return x[1:]


@rg.compile
def itself(x, y):
    return x


@rg.compile
def count_and_sum(x):
    return len(x), np.sum(x * x)


@rg.compile
def root(x):
    if x[0] < 0:
        raise ValueError("negative")
    return np.sqrt(x)


def along(f, x, v):
    """By differences."""
    return differences(lambda t: f(x + t * v), 0.0)


@pytest.fixture
def no_bridge(monkeypatch):
    """Calls by the rules of the engine fail, so that a test says which way it went."""

    def fail(*args):
        raise AssertionError("a call by a rule")

    monkeypatch.setattr(Bridge, "value", fail)


@pytest.mark.usefixtures("no_bridge")
def test_a_tangent_is_that_of_differences():
    x, v = XS[1], VS[1]
    y, y_dot = rg.jvp(lambda x: wave(x, 0.7, 1), (x,), (v,))
    close(y, wave(x, 0.7, 1))
    close(y_dot, along(lambda x: wave(x, 0.7, 1), x, v), 1e-7)
    y, y_dot = rg.jvp(lambda x, w: wave(x, w, 1), (x, 0.7), (None, 1.0))
    close(y_dot, differences(lambda w: wave(x, w, 1), 0.7), 1e-7)


@pytest.mark.usefixtures("no_bridge")
def test_a_batch_of_tangents_is_what_a_loop_gives():
    def tangent(x, w, v, w_dot):
        return rg.jvp(lambda x, w: wave(x, w, 1), (x, w), (v, w_dot))

    ws, w_dots = np.arange(4.0), np.linspace(1.0, 2.0, 4)
    for xs, in_x in ((XS, 0), (XS.T.copy(), 1), (XS[2], None)):
        for weights, in_w in ((ws, 0), (0.7, None)):
            for vs, in_v in ((VS, 0), (VS[3], None)):
                y, y_dot = rg.vmap(tangent, (in_x, in_w, in_v, 0))(xs, weights, vs, w_dots)
                for k in range(4):
                    x = xs if in_x is None else np.take(xs, k, axis=in_x)
                    w = weights if in_w is None else weights[k]
                    v = vs if in_v is None else vs[k]
                    expected = wave.__wrapped__(x, w, 1)
                    close(y[k], expected)
                    close(y_dot[k], rg.jvp(lambda x, w: wave.__wrapped__(x, w, 1), (x, w), (v, w_dots[k]))[1])


@pytest.mark.usefixtures("no_bridge")
def test_what_all_examples_share_is_not_mapped():
    def tangent(v):
        y, y_dot = rg.jvp(lambda x: wave(x, 0.7, 1), (XS[0],), (v,))
        assert float(y[0]) == wave(XS[0], 0.7, 1)[0]  # a plain number, on which one may branch
        return y_dot

    close(rg.vmap(tangent)(VS), [tangent(v) for v in VS])


@pytest.mark.usefixtures("no_bridge")
@pytest.mark.parametrize("size", [0, 1, 9, 13])
def test_batches_of_any_size(size):
    vs = np.random.default_rng(size).normal(size=(size, 3))

    def tangent(v):
        return rg.jvp(lambda x: wave(x, 0.7, 1), (XS[0],), (v,))[1]

    found = rg.vmap(tangent)(vs)
    assert found.shape == (size, 3)
    for got, v in zip(found, vs, strict=True):
        close(got, along(lambda x: wave(x, 0.7, 1), XS[0], v), 1e-7)


@pytest.mark.usefixtures("no_bridge")
def test_single_precision_stays_single():
    x = XS[0].astype(np.float32)
    vs = VS.astype(np.float32)
    found = rg.vmap(lambda v: rg.jvp(total, (x,), (v,))[1])(vs)
    assert found.dtype == np.float32
    close(found, [3 * np.sum(x * x * v) for v in vs], 1e-5)
    y, y_dot = rg.jvp(total, (x,), (vs[0],))
    assert type(y) is type(y_dot) is np.float32


def test_integers_among_the_arguments_and_results():
    assert rg.jvp(lambda x: count_and_sum(x)[0] * count_and_sum(x)[1], (XS[1],), (VS[1],))[1] == pytest.approx(
        3 * 2 * XS[1] @ VS[1]
    )
    with pytest.raises(InputError, match="takes integers for data"):
        rg.jvp(wave, (XS[0], 0.7, 1), (VS[0], 0.0, 1.0))
    ks = np.arange(3)
    found = rg.vmap(lambda k: rg.jvp(lambda x: wave(x, 0.7, k), (XS[0],), (VS[0],))[1])(ks)
    close(found, [along(lambda x, k=k: wave(x, 0.7, k), XS[0], VS[0]) for k in ks], 1e-7)


def test_a_result_that_is_a_part_of_the_argument_is_a_view_of_it():
    def doubled(x):
        x = x + 0.0
        part = rest(x)
        part[0] *= 2.0
        return np.sum(x)

    y, y_dot = rg.jvp(doubled, (XS[1],), (VS[1],))
    close(y, np.sum(XS[1]) + XS[1, 1])
    close(y_dot, np.sum(VS[1]) + VS[1, 1])

    def first(x, constant):
        y = itself(constant, x)
        z = itself(x, constant)
        y = y * 1.0
        y[0] = 5.0
        return z * y

    constant = np.ones(3)
    before = XS[1].copy()
    y, y_dot = rg.jvp(lambda x: first(x, constant), (XS[1],), (VS[1],))
    close(y_dot, VS[1] * [5.0, 1.0, 1.0])
    close(constant, np.ones(3))
    close(XS[1], before)


def test_a_written_result_leaves_constants_alone():
    constant = np.ones(3)

    def f(x):
        y = itself(constant, x)
        y[0] = x[0]
        return np.sum(y)

    try:
        rg.jvp(f, (XS[1],), (VS[1],))
    except Exception:  # whichever it is: nothing is lost silently, and the constant is what it was
        pass
    close(constant, np.ones(3))


def test_arguments_that_are_written_to():
    def f(x):
        y = x * 1.0
        return scaled(y, 3.0) + y[0]

    close(rg.jvp(f, (XS[1],), (VS[1],))[1], 3 * np.sum(VS[1]) + 3 * VS[1, 0])
    close(rg.vmap(lambda v: rg.jvp(f, (XS[1],), (v,))[1])(VS), 3 * VS.sum(1) + 3 * VS[:, 0])


def test_arrays_made_inside_of_the_function():
    def f(x):
        y = np.zeros(3)
        z = wave(y, 0.7, 1)
        y[:] = x * 2.0
        return wave(y, 0.7, 1) + wave(y[::-1], x[1], 1) + z

    close(rg.jvp(f, (XS[1],), (VS[1],))[1], along(f, XS[1], VS[1]), 1e-7)
    close(rg.vmap(lambda v: rg.jvp(f, (XS[1],), (v,))[1])(VS), [along(f, XS[1], v) for v in VS], 1e-7)
    close(rg.vmap(lambda x: rg.jvp(f, (x,), (VS[1],))[1])(XS), [along(f, x, VS[1]) for x in XS], 1e-7)


def third(x, u, v, w):
    return 6 * np.sum(u * v * w)


def test_nested_transforms_keep_their_tangents_apart():
    x, u, v = XS[1], VS[0], VS[1]
    inner = lambda x: rg.jvp(total, (x,), (u,))[1]
    close(rg.jvp(inner, (x,), (v,))[1], 6 * np.sum(x * u * v))
    close(rg.jvp(lambda x: rg.jvp(inner, (x,), (v,))[1], (x,), (VS[2],))[1], third(x, u, v, VS[2]))
    # Two batches, of directions and of examples.
    found = rg.vmap(lambda x: rg.vmap(lambda v: rg.jvp(total, (x,), (v,))[1])(VS))(XS)
    close(found, [[3 * np.sum(x * x * v) for v in VS] for x in XS])
    close(rg.vmap(lambda x: rg.vmap(lambda v: rg.jvp(inner, (x,), (v,))[1])(VS))(XS)[2], 6 * (VS * XS[2] * u).sum(1))
    # A batch inside of the transform, whose values it has not seen.
    close(
        rg.jvp(lambda x: rg.vmap(lambda w: np.sum(wave(x, w, 1)))(np.arange(3.0)), (x,), (v,))[1],
        [np.sum(along(lambda x, w=w: wave(x, w, 1), x, v)) for w in range(3)],
        1e-7,
    )
    close(rg.jvp(rg.vmap(total), (XS,), (VS,))[1], 3 * (XS**2 * VS).sum(1))
    close(rg.hessian(lambda x: np.sum(rg.vmap(total)(x * XS)), x), np.diag(6 * x * (XS**3).sum(0)))
    close(rg.grad(lambda x: rg.jvp(total, (x,), (v,))[1])(x), 6 * x * v)
    close(rg.vmap(lambda v: rg.grad(lambda x: rg.jvp(total, (x,), (v,))[1])(x))(VS), 6 * x * VS)


def test_tangents_of_an_outer_transform_inside_of_an_inner_one():
    """d/dx (x · d/dy total(x + y)) at y = 0, which is x · 3x²."""

    def f(x):
        return x * rg.jvp(lambda y: total(x + y), (np.zeros(3),), (np.ones(3),))[1]

    # The inner derivative is the sum over all elements: 3 Σ x².
    x, v = XS[2], VS[2]
    close(rg.jvp(f, (x,), (v,))[1], v * 3 * np.sum(x * x) + x * 6 * np.sum(x * v))
    close(rg.vmap(lambda v: rg.jvp(f, (x,), (v,))[1])(VS)[2], v * 3 * np.sum(x * x) + x * 6 * np.sum(x * v))


def test_an_exception_in_the_middle_of_a_batch_leaves_everything_as_it_was():
    xs = np.array([[1.0, 2.0], [4.0, 5.0], [-1.0, 3.0]])
    tangents = rg.vmap(lambda x: rg.jvp(root, (x,), (np.ones(2),))[1])
    before = xs.copy()
    for _ in range(2):
        with pytest.raises(ValueError, match="negative"):
            tangents(xs)
        close(tangents(xs[:2]), 0.5 / np.sqrt(xs[:2]))
    close(xs, before)
    assert np.asarray.__module__ == "numpy"


def test_zero_tangents_of_infinite_slopes_are_zero():
    vs = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 0.0]])
    found = rg.vmap(lambda v: rg.jvp(root, (np.array([0.0, 4.0]),), (v,))[1])(vs)
    close(found, [[0.0, 0.25], [np.inf, 0.0], [0.0, 0.0]])


def test_what_is_not_differentiated_inside():
    def f(x):
        with rg.ignore():
            y = total(x)
        return total(x) * y + total(rg.dropgrad(x))

    x, v = XS[1], VS[1]
    close(rg.jvp(f, (x,), (v,))[1], 3 * np.sum(x * x * v) * np.sum(x**3))


def test_a_value_of_a_transform_that_has_ended_is_refused():
    kept = []
    rg.jvp(lambda x: kept.append(x) or x, (XS[0],), (VS[0],))
    with pytest.raises(EndedError):
        total(kept[0])
    rg.vmap(lambda x: kept.append(x) or x)(XS)
    rg.grad(lambda x: kept.append(x) or np.sum(x))(XS[0])
    for old in kept[1:]:
        with pytest.raises(EndedError):
            total(old)
        with pytest.raises(EndedError):
            rg.jvp(lambda x, old=old: energy(x, old[0], 3), (XS[1],), (VS[1],))


class Pair(NamedTuple):
    a: float
    b: np.ndarray


@rg.compile
def swapped(pair, flag):
    if flag:
        return pair.b * pair.a, pair.a**2
    return pair.b + pair.a, pair.a


def test_named_tuples_and_truth_values():
    def f(a, b):
        y, z = swapped(Pair(a, b), True)
        return y * z

    for k, v in enumerate(VS):
        found = rg.jvp(f, (2.0, XS[k]), (0.5, v))[1]
        close(found, along(lambda t, k=k, v=v: f(2.0 + 0.5 * t, XS[k] + t * v), 0.0, 1.0), 1e-6)
    close(rg.vmap(lambda v: rg.jvp(f, (2.0, XS[0]), (0.5, v))[1])(VS)[1], rg.jvp(f, (2.0, XS[0]), (0.5, VS[1]))[1])


def test_complex_tangents():
    @rg.compile
    def turned(z):
        return z * z * 1j

    z, v = np.array([1 + 2j, 0.5 - 1j]), np.array([0.3 - 1j, 2.0 + 0j])
    close(rg.jvp(turned, (z,), (v,))[1], 2j * z * v)
    close(rg.vmap(lambda v: rg.jvp(turned, (z,), (v,))[1])(np.stack([v, 1j * v])), [2j * z * v, -2 * z * v])


def test_a_jacobian_of_many_columns_is_that_of_differences():
    x = np.linspace(0.1, 2.0, 23)
    found = rg.jacobian(wave, x, 0.7, 1, argnums=0, mode="forward")
    close(found, np.stack([along(lambda x: wave(x, 0.7, 1), x, e) for e in np.eye(23)], 1), 1e-6)
    # Again for other sizes, by the same programs.
    found = rg.jacobian(wave, x[:17], 0.7, 1, argnums=0, mode="forward")
    close(found, np.stack([along(lambda x: wave(x, 0.7, 1), x[:17], e) for e in np.eye(17)], 1), 1e-6)


# --- reverse mode ----------------------------------------------------------------------------------------------------


@rg.compile
def energy(x, w, n):
    s = 0.0
    for i in range(n):
        s += np.sin(w * x[i]) * x[i - 1]
    return s


def slope(f, x):
    """The gradient by differences."""
    return differences(f, x)


@pytest.mark.usefixtures("no_bridge")
def test_a_gradient_of_what_is_around_a_call():
    def f(x, w):
        return 2.0 * energy(x * 2.0, w, 3) ** 2 + energy(x, 0.5, 2) + np.sum(x)

    x, w = XS[1], 0.7
    in_x, in_w = rg.gradient(f, x, w)
    close(in_x, slope(lambda x: f(x, w), x), 1e-7)
    close(in_w, slope(lambda w: f(x, w), w), 1e-7)
    assert type(in_w) is float
    close(rg.grad(lambda w: f(x, w))(w), in_w)


@pytest.mark.usefixtures("no_bridge")
def test_a_pullback_gives_the_same_as_often_as_it_is_called():
    def f(x):
        y = energy(x, 0.7, 3)
        return y + np.sum(x) + y * 2.0

    x = XS[1].copy()
    _, back = rg.pullback(f, x)
    x[:] = 99.0
    expected = slope(f, XS[1])
    for seed in (1.0, 1.0, -2.0, 0.0, 1.0):
        (found,) = back(seed)
        close(found, seed * expected, 1e-7)
        found[:] = 17.0
    close(rg.vmap(back)(np.array([1.0, 3.0]))[0], [expected, 3 * expected], 1e-7)

    _, back = rg.pullback(lambda x: energy(x, 0.7, 3), XS[1])
    for _ in range(2):
        (found,) = back(1.0)
        close(found, slope(lambda x: energy(x, 0.7, 3), XS[1]), 1e-7)
        found[:] = 17.0


@pytest.mark.usefixtures("no_bridge")
@pytest.mark.parametrize("size", [0, 1, 4, 11])
def test_a_batch_of_gradients_is_what_a_loop_gives(size):
    rng = np.random.default_rng(size)
    xs, ws, ns = rng.normal(size=(size, 3)), rng.normal(size=size), np.resize([3, 1, 2], size)

    def gradients(x, w, n):
        return rg.gradient(lambda x, w: energy(x, w, n) * 2.0, x, w)

    def by_hand(x, w, n):
        return rg.gradient(lambda x, w: energy.__wrapped__(x, w, n) * 2.0, x, w)

    for in_axes in ((0, 0, 0), (None, 0, 0), (0, None, None), (None, None, 0), (None, 0, None)):
        given = [a if axis == 0 else one for a, axis, one in zip((xs, ws, ns), in_axes, (XS[2], 0.3, 3), strict=True)]
        found = rg.vmap(gradients, in_axes)(*given)
        assert [np.shape(g) for g in found] == [(size, 3), (size,)]
        for k in range(size):
            expected = by_hand(*(a[k] if axis == 0 else a for a, axis in zip(given, in_axes, strict=True)))
            close(found[0][k], expected[0])
            close(found[1][k], expected[1])


def test_what_an_example_leaves_unset_is_zero_whatever_the_memory_held():
    x = np.linspace(0.1, 1.0, 300)
    ns = np.array([300, *([1] * 12)])
    for _ in range(3):
        junk = [np.full((13, 300), 7.0) for _ in range(20)]
        del junk
        found = rg.vmap(lambda n: rg.grad(lambda x: energy(x, 1.0, n))(x))(ns)
        for n, g in zip(ns[1:], found[1:], strict=True):
            close(g, rg.grad(lambda x, n=n: energy(x, 1.0, n))(x))


@pytest.mark.usefixtures("no_bridge")
def test_products_with_hessians_around_a_call():
    def f(x):
        return energy(x * x, 0.7, 3) + np.sum(x**3)

    x, v = XS[1], VS[1]
    expected = along(rg.grad(f), x, v)
    close(rg.jvp(rg.grad(f), (x,), (v,))[1], expected, 1e-7)
    close(rg.hvp(f, x, v), expected, 1e-7)
    close(rg.vmap(lambda v: rg.jvp(rg.grad(f), (x,), (v,))[1])(VS), [along(rg.grad(f), x, v) for v in VS], 1e-7)
    close(rg.vmap(lambda x: rg.hvp(f, x, v))(XS), [along(rg.grad(f), x, v) for x in XS], 1e-7)
    close(rg.hessian(f, x) @ v, expected, 1e-7)


def test_gradients_in_any_nesting():
    def f(x):
        return energy(x, 0.7, 3)

    x, v = XS[1], VS[1]
    product = along(rg.grad(f), x, v)
    close(rg.grad(lambda x: np.sum(rg.grad(f)(x) * v))(x), product, 1e-7)
    close(rg.grad(lambda x: rg.jvp(f, (x,), (v,))[1])(x), product, 1e-7)
    close(
        rg.jvp(lambda x: rg.jvp(rg.grad(f), (x,), (v,))[1], (x,), (v,))[1],
        along(lambda x: along(rg.grad(f), x, v), x, v),
        1e-4,
    )
    close(
        rg.hessian(lambda x: np.sum(rg.vmap(f)(x * XS)), x) @ v,
        along(rg.grad(lambda x: sum(f(x * y) for y in XS)), x, v),
        1e-6,
    )
    close(
        rg.vmap(lambda x: rg.vmap(lambda w: rg.grad(lambda x: energy(x, w, 3))(x))(np.arange(2.0)))(XS)[3, 1],
        rg.grad(lambda x: energy(x, 1.0, 3))(XS[3]),
    )
    # A tangent that the gradient's function closes over.
    close(
        rg.jvp(lambda w: rg.grad(lambda x: energy(x, w, 3))(x), (0.7,), (1.0,))[1],
        differences(lambda w: rg.grad(lambda x: energy(x, w, 3))(x), 0.7),
        1e-7,
    )


def test_linear_parts_are_replayed():
    def f(x):
        return energy(x, 0.7, 3) * 2.0

    _, push = rg.linearize(f, XS[1])
    for v in VS:
        close(push(v), along(f, XS[1], v), 1e-7)


def test_seeds_that_are_traced():
    _, back = rg.pullback(lambda x: energy(x, 0.7, 3), XS[1])
    expected = slope(lambda x: energy(x, 0.7, 3), XS[1])
    close(rg.jvp(lambda s: back(s)[0], (2.0,), (1.0,))[1], expected, 1e-7)
    close(rg.gradient(lambda s: np.sum(back(s)[0] * VS[0]), 2.0)[0], np.sum(expected * VS[0]), 1e-7)


def test_parameters_and_closures():
    w = rg.param(np.array(XS[1]))
    found = rg.gradient(lambda: 3.0 * energy(w, 0.7, 3), rg.Params([w]))
    close(found[w], 3 * slope(lambda x: energy(x, 0.7, 3), XS[1]), 1e-7)
    rg.back(energy(w, 0.7, 3))
    close(w.grad, slope(lambda x: energy(x, 0.7, 3), XS[1]), 1e-7)


@rg.compile
def norm(x):
    return np.sqrt(np.sum(x * x))


def test_infinite_slopes_times_zero_are_zero():
    assert rg.gradient(lambda x: 0.0 * norm(x), np.zeros(2))[0].tolist() == [0.0, 0.0]
    found = rg.vmap(rg.grad(lambda x: norm(x) ** 2))(np.array([[0.0, 0.0], [3.0, 4.0]]))
    close(found[1], [6.0, 8.0])
    close(found[0], rg.grad(lambda x: norm.__wrapped__(x) ** 2)(np.zeros(2)))


@rg.compile
def first_of(x, y):
    return 2.0 * x[0]


def test_arguments_without_a_path_and_single_precision():
    x = XS[1].astype(np.float32)
    in_x, in_y = rg.gradient(lambda x, y: 3.0 * first_of(x, y), x, XS[2])
    close(in_x, np.array([6.0, 0.0, 0.0], np.float32))
    assert in_x.dtype == np.float32
    assert in_y is None or not in_y.any()
    gs = rg.vmap(lambda x: rg.grad(lambda x: 3.0 * first_of(x, 1.0 * x))(x))(XS.astype(np.float32))
    assert gs.dtype == np.float32


def test_an_exception_of_a_gradient_in_a_batch():
    @rg.compile
    def careful(x):
        if x[0] < 0:
            raise ValueError("negative")
        return np.sum(np.sqrt(x))

    xs = np.ones((12, 2))
    xs[7, 0] = -1
    gradients = rg.vmap(lambda x: rg.grad(lambda x: 2.0 * careful(x))(x))
    for _ in range(2):
        with pytest.raises(ValueError, match="negative"):
            gradients(xs)
        close(gradients(np.abs(xs)), np.ones((12, 2)))


@pytest.mark.parametrize("counts", [[3, 1], [1, 3], [3, 2, 1, 1, 1, 1], [1, 2, 3, 4, 5, 6]])
@pytest.mark.parametrize("kind", [int, float])
def test_results_of_different_shapes_are_refused(counts, kind):
    head = rg.compile(lambda x, n: x[: int(n)] * 2.0, cache=False)
    x, ns = np.arange(1.0, 11.0), np.array(counts, kind)
    for of_one in (
        lambda n: head(x, n),
        lambda n: rg.jvp(lambda x: head(x, n), (x,), (x,))[1],
        lambda n: rg.gradient(lambda x: np.sum(head(x, n)), x)[0],
    ):
        with pytest.raises(rg.BatchError, match="differ in shape"):
            rg.vmap(of_one)(ns)
