"""Many examples in one native loop: batches of calls, and the directions of Jacobians and Hessians."""

from __future__ import annotations

import numpy as np
import pytest
from truth import close

import retrograde as rg
from retrograde.compiler.specialisation import Specialisation

pytest.importorskip("numba")

XS = np.linspace(-1.0, 2.0, 12).reshape(4, 3)
MANY = np.random.default_rng(0).uniform(-1, 1, (11, 3))
V = np.array([0.3, -1.0, 0.5])


@rg.compile
def both(x, w, k):
    y = np.zeros((2, len(x)))
    for i in range(len(x)):
        y[0, i] = np.sin(x[i]) * w
        y[1, i] = y[0, i] * x[i - 1] ** k
    return y, np.sum(y) * w, k + 1


@rg.compile
def smooth(u, out):
    for i in range(len(u)):
        out[i] += u[i] * u[i - 1]
    return out[0] * u[1]


@rg.compile
def root(x):
    return np.sum(np.sqrt(x) * x)


def test_a_batch_of_calls_is_what_the_calls_are():
    arrays, numbers, counts = rg.vmap(lambda x: both(x, 0.5, 2))(XS)
    for k, x in enumerate(XS):
        y, s, n = both(x, 0.5, 2)
        close(arrays[k], y)
        close(numbers[k], s)
        assert counts[k] == n
    weights = np.arange(4.0)
    close(rg.vmap(lambda x, w: both(x, w, 2)[1])(XS, weights), [both(x, w, 2)[1] for x, w in zip(XS, weights)])


def test_a_batch_of_one_and_of_examples_that_are_no_rows():
    close(rg.vmap(lambda x: both(x, 0.5, 2)[1])(XS[:1]), [both(XS[0], 0.5, 2)[1]])
    close(rg.vmap(lambda x: both(x, 0.5, 2)[1], in_axes=1)(XS.T), [both(x, 0.5, 2)[1] for x in XS])
    frozen = np.broadcast_to(XS[0], (3, 3))
    close(rg.vmap(lambda x: both(x, 0.5, 2)[1])(frozen), [both(XS[0], 0.5, 2)[1]] * 3)


@pytest.mark.usefixtures("as_plain_python")
def test_a_batch_of_derivatives_is_what_the_derivatives_are():
    def loss(x):
        return both(x, 0.5, 2)[1]

    close(rg.vmap(lambda x: rg.gradient(loss, x)[0])(XS), [rg.gradient(loss, x)[0] for x in XS])
    close(rg.vmap(lambda x: rg.jvp(loss, (x,), (V,))[1])(XS), [rg.jvp(loss, (x,), (V,))[1] for x in XS])
    close(rg.vmap(lambda x: rg.hvp(loss, x, V))(XS), [rg.hvp(loss, x, V) for x in XS])


@pytest.mark.usefixtures("as_plain_python")
def test_jacobians_and_hessians_are_those_of_the_function_as_written():
    def array(f):
        return lambda x: f(x, 0.5, 3)[0]

    for mode in ("forward", "reverse"):
        close(rg.jacobian(array(both), XS[1], mode=mode), rg.jacobian(array(both.__wrapped__), XS[1]))

    def number(f):
        return lambda x, w: f(x, w, 3)[1]

    for got, want in zip(
        rg.hessian(number(both), XS[1], 0.7), rg.hessian(number(both.__wrapped__), XS[1], 0.7), strict=True
    ):
        for a, b in zip(got, want, strict=True):
            close(a, b)


@pytest.mark.usefixtures("as_plain_python")
def test_each_example_writes_into_an_array_of_its_own():
    def filled(smooth):
        def f(u):
            out = np.zeros(3)
            out[:] = 1.0
            smooth(u, out)
            smooth(u * 2.0, out)
            return out * u

        return f

    close(rg.vmap(filled(smooth))(XS), [filled(smooth)(u) for u in XS])
    for mode in ("forward", "reverse"):
        close(rg.jacobian(filled(smooth), XS[2], mode=mode), rg.jacobian(filled(smooth.__wrapped__), XS[2]))


@pytest.mark.usefixtures("as_plain_python")
def test_zero_times_infinity_is_zero_in_each_example():
    x = np.array([[0.0, 4.0], [1.0, 0.0], [1.0, 1.0]])
    bars = rg.vmap(lambda x: rg.gradient(root, x)[0])(x)
    close(bars, [rg.gradient(root.__wrapped__, row)[0] for row in x])


def test_an_exception_of_one_example_is_raised():
    @rg.compile
    def checked(x):
        if x < 0.0:
            raise ValueError("negative")
        return x * x

    with pytest.raises(ValueError, match="negative"):
        rg.vmap(checked)(np.array([1.0, 2.0, -1.0]))


@pytest.mark.usefixtures("as_plain_python")
def test_products_with_hessians_are_one_native_program():
    @rg.compile
    def energy(x, w):
        s = 0.0
        for i in range(1, len(x)):
            s += np.sin(x[i] * w) * x[i - 1] ** 2
        return s

    x, w = XS[1], 0.7
    plain = energy.__wrapped__
    close(rg.hvp(energy, x, V, w=w), rg.hvp(plain, x, V, w=w))
    for got, want in zip(rg.hessian(energy, x, w), rg.hessian(plain, x, w), strict=True):
        for a, b in zip(got, want, strict=True):
            close(a, b)
    close(rg.hessian(energy, x, w=w, chunk=2), rg.hessian(plain, x, w=w))
    close(rg.hvp(rg.compile(lambda w: w**3), 2.0, 1.5), 18.0)
    specialisation = next(iter(energy._specialisations.values()))
    assert {which.kind for which in specialisation.variant().natives} == {"T"}


def test_products_with_hessians_say_what_is_wrong_as_transforms_do():
    square = rg.compile(lambda x: np.sum(x * x))
    with pytest.raises(rg.SeedError):
        rg.hvp(square, XS[0], np.ones(2))
    with pytest.raises(rg.LossError):
        rg.hvp(square, np.array([np.inf]), np.ones(1))
    with pytest.raises(rg.ScalarError):
        rg.hessian(rg.compile(lambda x: x * x), XS[0])
    with pytest.raises(rg.InputError, match="takes integers for data"):
        rg.hvp(rg.compile(lambda x: x * x), 3, 1.0)


def weighed(x, w, n):
    s = 0.0
    for i in range(len(x)):
        s += np.sin(x[i] * w[i]) * x[0] ** n
    return s, x * w[1] * s


compiled_weighed = rg.compile(weighed)


def over_a_batch(function):
    """A function of a batch and of weights that are the same for all of it."""

    def loss(xs, w):
        s, ys = rg.vmap(lambda x: function(x, w, 2))(xs)
        return np.sum(s**2) + np.sum(ys[:, 1])

    return loss


def with_compiled(derivative):
    """A derivative with the function and with its compiled form, and how often programs were run for the latter."""
    with pytest.MonkeyPatch.context() as patch:
        runs: list[str] = []
        evaluate = Specialisation.evaluate

        def counted(*args, **kwargs):
            runs.append(args[1])
            return evaluate(*args, **kwargs)

        patch.setattr(Specialisation, "evaluate", counted)
        return derivative(weighed), derivative(compiled_weighed), len(runs)


@pytest.mark.usefixtures("as_plain_python")
@pytest.mark.parametrize(
    "derivative",
    [
        lambda f: rg.gradient(over_a_batch(f), MANY, V),
        lambda f: rg.jvp(over_a_batch(f), (MANY, V), (MANY + 1, V * 2)),
        lambda f: rg.hvp(lambda w: over_a_batch(f)(MANY, w), V, V + 1),
        lambda f: rg.hessian(lambda w: over_a_batch(f)(MANY, w), V),
        lambda f: rg.gradient(lambda w: np.sum(rg.gradient(over_a_batch(f), MANY, w)[0] ** 2), V)[0],
        lambda f: rg.vmap(lambda w: rg.gradient(over_a_batch(f), MANY, w)[1])(XS),
        lambda f: rg.vmap(lambda w: rg.vmap(lambda x: f(x, w, 2)[0])(MANY))(XS),
    ],
)
def test_derivatives_of_a_batch_take_all_examples_at_once(derivative):
    want, got, runs = with_compiled(derivative)
    for a, b in zip(
        got if isinstance(got, tuple) else (got,), want if isinstance(want, tuple) else (want,), strict=True
    ):
        close(a, b, rtol=1e-11, atol=1e-11)
    assert runs < len(MANY)


def test_batches_of_batches_without_examples_have_the_shape_of_one():
    made = rg.vmap(lambda w: rg.vmap(lambda x: compiled_weighed(x, w, 2)[0])(XS))(np.zeros((0, 3)))
    assert made.shape == (0, len(XS))
    with pytest.raises(rg.BatchError, match="no examples"):
        rg.vmap(lambda w: rg.vmap(lambda x: compiled_weighed(x, w, 2)[0])(XS[:0]))(np.ones((2, 3)))
