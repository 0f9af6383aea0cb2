"""Troubles that users of other libraries have reported, each as a test of its kind, with the right answer.

Closed forms where there are some, otherwise differences of the plain function.
"""

from __future__ import annotations

import functools
import gc
import math
import pickle
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import mpmath
import numpy as np
import pytest
import scipy.optimize
from truth import close, differences

from retrograde import (
    Buffer,
    Params,
    RetrogradeError,
    ScalarError,
    checkpointed,
    dropgrad,
    gradient,
    hessian,
    hook,
    jacobian,
    jvp,
    param,
    pullback,
)

# --- functions of NumPy ------------------------------------------------------------------------------------------


def test_padding_with_uneven_widths_and_a_constant_that_is_not_zero():
    image = np.array([[0.5, -1.0], [2.0, 3.0], [1.5, 0.0]])
    kernel = np.linspace(-2.0, 3.0, 6 * 5).reshape(6, 5)

    def energy(image):
        framed = np.pad(image, ((1, 2), (3, 0)), constant_values=-0.75)
        return np.sum(kernel * framed**3)

    close(gradient(energy, image)[0], 3 * image**2 * kernel[1:4, 3:])


def test_einsum_over_a_diagonal_traces_it():
    A = np.linspace(-1.0, 2.0, 16).reshape(4, 4)
    close(gradient(lambda A: np.exp(np.einsum("kk", A)), A)[0], np.exp(np.trace(A)) * np.eye(4))
    weights = np.array([1.0, -2.0, 3.0, 0.5])
    close(gradient(lambda A: np.einsum("kk,k->", A**2, weights), A)[0], np.diag(2 * np.diag(A) * weights))
    close(gradient(lambda A: np.sum(weights * np.einsum("kk->k", A)), A)[0], np.diag(weights))


def test_tensordot_over_axes_in_another_order_than_they_stand():
    rng = np.random.default_rng(3)
    A, B, seed = rng.normal(size=(4, 2, 3)), rng.normal(size=(3, 5, 4)), rng.normal(size=(2, 5))
    A_bar, B_bar = gradient(lambda A, B: np.sum(seed * np.tensordot(A, B, axes=((2, 0), (0, 2)))), A, B)
    close(A_bar, np.einsum("jm,kmi->ijk", seed, B))
    close(B_bar, np.einsum("jm,ijk->kmi", seed, A))


def test_norms_of_a_matrix_that_pick_a_row_or_a_column():
    A = np.array([[2.0, -1.0], [-3.0, 0.5], [0.25, 4.0]])
    largest_column, largest_row = np.abs(A).sum(0).argmax(), np.abs(A).sum(1).argmax()
    by_column, by_row = np.zeros((3, 2)), np.zeros((3, 2))
    by_column[:, largest_column] = np.sign(A[:, largest_column])
    by_row[largest_row] = np.sign(A[largest_row])
    close(gradient(lambda A: np.linalg.norm(A, ord=1), A)[0], by_column)
    close(gradient(lambda A: np.linalg.norm(A, ord=np.inf), A)[0], by_row)


def test_a_vector_stacked_of_traced_numbers():
    def polar(p):
        r, angle = p
        return np.stack([r * np.cos(angle), r * np.sin(angle), r * r])

    r, angle = 2.0, 0.4
    c, s = math.cos(angle), math.sin(angle)
    close(jacobian(polar, np.array([r, angle])), [[c, -r * s], [s, r * c], [2 * r, 0.0]])


# --- awkward points ----------------------------------------------------------------------------------------------


def test_a_fourth_derivative_through_a_power():
    d = lambda f: lambda x: gradient(f, x)[0]
    f = lambda x: np.exp(-0.5 * x**2)
    hermite = lambda x: (x**4 - 6 * x**2 + 3) * math.exp(-0.5 * x * x)
    for x in (0.0, 0.8, -2.0):
        close(d(d(d(d(f))))(x), hermite(x), 1e-11, 1e-11)


def test_sinc_and_its_derivatives_at_zero_and_nearby():
    d = lambda f: lambda x: gradient(f, x)[0]
    for x in (0.0, 1e-9, 1e-4, 0.3):
        with mpmath.workdps(50):
            truth = lambda t: mpmath.sinc(mpmath.pi * t)
            first, second = (float(mpmath.diff(truth, mpmath.mpf(x), n)) for n in (1, 2))
        close(d(np.sinc)(x), first, 1e-9, 1e-12)
        close(d(d(np.sinc))(x), second, 1e-6, 1e-9)


def test_logaddexp_where_both_arguments_are_equal():
    assert gradient(np.logaddexp, 2.0, 2.0) == (0.5, 0.5)
    softplus = lambda x: np.sum(np.logaddexp(0.0, x))
    close(gradient(softplus, np.array([0.0, 800.0, -800.0]))[0], [0.5, 1.0, 0.0])
    close(gradient(lambda x: np.sum(np.logaddexp(-x, x)), np.array([0.0, -2.0]))[0], np.tanh([0.0, -2.0]))


def test_the_maximum_of_equal_elements_shares_its_gradient_equally():
    x = np.array([[3.0, 7.0, 7.0], [7.0, 1.0, 0.0]])
    close(gradient(np.max, x)[0], np.array([[0, 1, 1], [1, 0, 0]]) / 3)
    close(gradient(lambda x: np.sum(np.max(x, axis=1)), x)[0], [[0, 0.5, 0.5], [1, 0, 0]])
    close(gradient(lambda x: np.sum(np.min(-x, axis=0)), x)[0], [[0, -1, -1], [-1, 0, 0]])


def test_a_normalisation_by_the_extremes_reaches_the_extremes():
    x = np.array([1.1, -0.4, 0.8, 2.2, 0.05])

    def spread(x):
        scaled = (x - np.min(x)) / (np.max(x) - np.min(x))
        return np.sum(scaled**2) + scaled[0]

    close(gradient(spread, x)[0], differences(spread, x), 1e-8)


def test_a_product_with_zeros_among_its_factors():
    close(gradient(np.prod, np.array([5.0, 0.0, -2.0]))[0], [0.0, -10.0, 0.0])
    close(gradient(np.prod, np.array([5.0, 0.0, 0.0]))[0], [0.0, 0.0, 0.0])
    X = np.array([[0.0, 2.0, 3.0], [4.0, 0.0, 0.0], [1.0, 2.0, 3.0]])
    weights = np.array([1.0, 10.0, 100.0])
    want = [[6.0, 0.0, 0.0], [0.0, 0.0, 0.0], [600.0, 300.0, 200.0]]
    close(gradient(lambda X: np.sum(np.prod(X, axis=-1) * weights), X)[0], want)
    close(hessian(np.prod, np.array([5.0, 0.0, -2.0])), [[0, -2, 0], [-2, 0, 5], [0, 5, 0]])


def test_stairs_are_flat_inside_a_larger_expression():
    x = np.array([1.6, -0.7, 3.2])
    f = lambda x: np.sum(np.ceil(x) * x**2 + np.trunc(x) - np.sign(x) * np.sin(x) + np.rint(x) * 3)
    close(gradient(f, x)[0], 2 * np.ceil(x) * x - np.sign(x) * np.cos(x))


# --- complex numbers ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "overlap",
    [
        lambda x, c: x @ c,
        lambda x, c: np.dot(c, x),
        lambda x, c: np.sum(c * x),
        lambda x, c: np.tensordot(c, x, axes=1),
        lambda x, c: np.einsum("i,i", x, c),
        lambda x, c: np.inner(x, c),
        lambda x, c: (c[None] @ x[:, None])[0, 0],
    ],
)
def test_a_real_vector_in_a_complex_product_has_a_real_gradient(overlap):
    x, c = np.array([0.5, -1.5]), np.array([2.0 - 1.0j, 0.5j])
    (x_bar,) = gradient(lambda x: np.abs(overlap(x, c)) ** 2, x)
    assert x_bar.dtype == np.float64
    close(x_bar, 2 * np.real(np.conj(c @ x) * c))


# --- nesting -----------------------------------------------------------------------------------------------------


def test_the_perturbations_of_two_derivatives_are_not_confused():
    reverse = lambda f, x: gradient(f, x)[0]
    forward = lambda f, x: jvp(f, (x,), (1.0,))[1]
    for outer in (reverse, forward):
        for inner in (reverse, forward):
            # d/dx (x² · d/dy (x + 3 y)) = 6 x
            close(outer(lambda x, inner=inner: x**2 * inner(lambda y: x + 3 * y, 2.0), 4.0), 24.0)


def test_a_function_of_the_gradient_of_a_quadratic_form():
    A = np.array([[0.5, -1.0, 0.0], [2.0, 1.0, 0.3], [0.0, 0.7, -2.0]])
    x = np.array([1.0, -0.5, 2.0])

    def steepness(A):
        (slope,) = gradient(lambda x: x @ (A @ x) / 2, x)
        return slope @ slope

    # slope = (A + Aᵀ) x / 2, so the derivative is (slope xᵀ + x slopeᵀ).
    slope = (A + A.T) @ x / 2
    close(gradient(steepness, A)[0], np.outer(slope, x) + np.outer(x, slope))


def test_one_row_of_a_hessian_is_the_gradient_of_one_component():
    x = np.array([0.6, -1.1, 0.9])
    f = lambda x: np.cos(x[0] * x[1]) / x[2] + x[0] ** 2 * x[2]
    for i in range(3):
        row = gradient(lambda x, i=i: gradient(f, x)[0][i], x)[0]
        close(row, differences(lambda x: differences(f, x, 1e-2), x, 1e-2)[i], 1e-6, 1e-6)
        close(row, hessian(f, x)[i])


def test_gradients_of_gradients_with_respect_to_lists():
    def inner_loss(w, t):
        return w[0] ** 2 * t + np.sum(w[1] * w[1]) * t**2

    def outer(t):
        w = [1.5, np.array([0.5, -2.0])]
        for _ in range(2):
            (slopes,) = gradient(inner_loss, w, t=t)
            w = [a - 0.1 * s for a, s in zip(w, slopes, strict=True)]
        return inner_loss(w, t)

    def plain(t):
        a, b = 1.5, np.array([0.5, -2.0])
        for _ in range(2):
            a, b = a - 0.2 * a * t, b - 0.2 * b * t**2
        return a**2 * t + np.sum(b * b) * t**2

    close(gradient(outer, 0.7)[0], differences(plain, 0.7), 1e-9)


def test_an_inner_pullback_gives_the_same_value_inside_an_outer_one():
    centres = [np.zeros(2), np.array([1.0, -1.0])]

    def score(x):
        _, pull = pullback(lambda x: -sum(np.sum((x - c) ** 4) for c in centres), x)
        return np.sum(pull(1.0)[0])

    x = np.array([0.5, 2.0])
    value = -4 * sum(np.sum((x - c) ** 3) for c in centres)
    assert score(x) == pytest.approx(value)
    inside, pull = pullback(score, x)
    assert inside == pytest.approx(value)
    close(pull(1.0)[0], -12 * sum((x - c) ** 2 for c in centres))


# --- indexing and structures -------------------------------------------------------------------------------------


def test_a_gather_that_names_an_element_several_times_adds_up():
    table = np.linspace(0.0, 1.0, 10).reshape(5, 2)
    places = np.array([4, 4, 1, 4, -1])
    weights = np.array([1.0, 2.0, 4.0, 8.0, 16.0])
    want = np.zeros((5, 2))
    for place, weight in zip(places, weights, strict=True):
        want[place, 1] += 3 * weight * table[place, 1] ** 2
    close(gradient(lambda t: np.sum(weights * t[places, 1] ** 3), table)[0], want)
    close(gradient(lambda t: np.sum(weights * t[places, 1:][:, 0] ** 3), table)[0], want)


def test_reading_an_array_element_by_element_is_linear_in_its_length():
    def seconds(n):
        x = np.linspace(-1.0, 1.0, n)

        def polynomial(x):
            total = 0.0
            for i in range(n):
                total = total * 0.5 + x[i]
            return total

        start = time.process_time()
        gradient(polynomial, x)
        return time.process_time() - start

    seconds(100)
    short, long = min(seconds(1_500) for _ in range(3)), min(seconds(12_000) for _ in range(2))
    assert long < 8 * 3 * short + 0.05


def test_a_long_recurrence_needs_no_recursion():
    n, rate = 20_000, 1e-4

    def balance(start):
        for _ in range(n):
            start = start + rate * start
        return start

    close(gradient(balance, 100.0)[0], (1 + rate) ** n, 1e-9)


def test_a_dictionary_argument_that_an_inner_function_closes_over():
    settings = {"rate": 0.5, "profile": np.array([1.0, 3.0]), "name": "run"}

    def f(settings):
        def decay(t):
            return settings["profile"] * np.exp(-settings["rate"] * t)

        return np.sum(decay(2.0)) + np.sum(decay(0.0))

    (bar,) = gradient(f, settings)
    assert list(bar) == ["rate", "profile", "name"]
    close(bar["rate"], -2 * 4.0 * math.exp(-1.0))
    close(bar["profile"], np.full(2, 1 + math.exp(-1.0)))
    assert bar["name"] is None


def test_a_dictionary_of_parts_made_inside_and_summed():
    def f(x):
        parts = {"data": (x - 1) ** 2}
        parts["prior"] = parts["data"] * 0.1 + abs(x)
        parts.update(extra=x**3)
        return sum(parts.values()) + max(parts.values())

    # At x = 2: (1, 2.1, 8), so that the largest is x³.
    close(gradient(f, 2.0)[0], 2.0 + (0.2 + 1) + 2 * 12.0)


def test_the_branch_that_an_exception_chose_is_differentiated():
    def f(A):
        try:
            return np.sum(np.linalg.inv(A))
        except np.linalg.LinAlgError:
            return np.sum(A[0] ** 3)

    singular = np.array([[1.0, 2.0], [2.0, 4.0]])
    close(gradient(f, singular)[0], [[3.0, 12.0], [0.0, 0.0]])
    regular = np.array([[2.0, 1.0], [0.5, 3.0]])
    inverse = np.linalg.inv(regular)
    close(gradient(f, regular)[0], -np.outer(inverse.sum(0), inverse.sum(1)))


def test_a_parameter_reached_in_two_ways_counts_once_for_each_use():
    w = param([[1.0, -1.0], [0.5, 2.0]])

    class Layer:
        def __init__(self, weight):
            self.weight = weight

        def __call__(self, x):
            return self.weight @ x

    model = {"first": Layer(w), "second": Layer(w)}
    wrapped = Layer(model["first"].weight)
    grads = gradient(lambda: np.sum(wrapped(np.array([1.0, 3.0]))), Params([w, model["second"].weight]))
    assert len(grads) == 1
    close(grads[w], [[1.0, 3.0], [1.0, 3.0]])


def test_an_unused_argument_and_a_constant_function_are_no_trouble():
    x = np.arange(3.0)
    unused, used = gradient(lambda a, b: np.sum(b * 2), x, x)
    assert unused is None
    close(used, np.full(3, 2.0))
    assert gradient(lambda x: 1.0, x) == (None,)
    close(hessian(lambda x: np.dot(x, [1.0, 2.0, 3.0]), x), np.zeros((3, 3)))
    close(jacobian(lambda x: np.ones((2, 2)), x), np.zeros((2, 2, 3)))


def test_rows_stored_in_a_buffer_by_a_loop():
    P = np.array([[0.5, 1.0], [-1.0, 2.0], [3.0, 0.25], [1.0, 1.0]])

    def gram(P):
        out = Buffer(P, 4, 4)
        for i in range(4):
            for j in range(i, 4):
                out[i, j] = np.dot(P[i], P[j])
                out[j, i] = out[i, j] * 1.0
        return np.sum(out.copy() ** 2)

    close(gradient(gram, P)[0], differences(lambda P: np.sum((P @ P.T) ** 2), P), 1e-8)


def test_a_buffer_that_was_not_copied_does_not_drop_the_gradient():
    def f(x):
        b = Buffer(x)
        b[:] = x * x
        return np.dot(b, np.ones(2))

    with pytest.raises(TypeError, match="copy"):
        gradient(f, np.array([1.0, 2.0]))


# --- behaviour ---------------------------------------------------------------------------------------------------


def test_gradients_in_several_threads_at_once():
    x = np.array([0.2, -0.4, 0.6])

    def slope(k):
        def f(x):
            total = 0.0
            for _ in range(100):
                total = total + np.cos(k * x) * x
            return np.sum(total)

        return gradient(f, x)[0]

    with ThreadPoolExecutor(6) as pool:
        slopes = list(pool.map(slope, range(12)))
    for k, got in enumerate(slopes):
        close(got, 100 * (np.cos(k * x) - k * x * np.sin(k * x)))


def himmelblau(p):
    return (p[0] ** 2 + p[1] - 11) ** 2 + (p[0] + p[1] ** 2 - 7) ** 2


def test_the_gradient_of_a_function_of_a_module_pickles():
    again = pickle.loads(pickle.dumps(functools.partial(gradient, himmelblau)))
    close(again(np.array([3.0, 2.0]))[0], [0.0, 0.0])
    close(again(np.array([1.0, 1.0]))[0], [-46.0, -38.0])


def test_a_hook_reverses_a_gradient_and_is_the_identity_forward():
    seen = []

    def adversary(bar):
        seen.append(np.array(bar))
        return -0.5 * bar

    y, pull = pullback(lambda x: np.sum(np.exp(hook(adversary, x / 2))), np.array([0.0, 2.0]))
    close(y, 1 + math.e)
    close(pull(2.0)[0], -0.5 * np.array([1.0, math.e]))
    assert len(seen) == 1
    close(seen[0], 2 * np.array([1.0, math.e]))


def test_a_dropped_value_is_a_constant_though_it_is_used_elsewhere():
    x = np.array([0.5, -1.5])
    target = lambda x: np.sum((dropgrad(np.tanh(x)) - x) ** 2)
    close(gradient(target, x)[0], -2 * (np.tanh(x) - x))


def test_a_pullback_is_good_for_more_than_one_seed():
    x = np.array([1.0, 2.0])
    _, pull = pullback(lambda x: np.stack([x[0] * x[1], x[0] ** 2, np.sum(x)]), x)
    rows = [pull(seed)[0] for seed in np.eye(3)]
    rows += [pull(seed)[0] for seed in np.eye(3)]
    close(np.stack(rows[:3]), [[2.0, 1.0], [2.0, 0.0], [1.0, 1.0]])
    close(np.stack(rows[3:]), np.stack(rows[:3]))


def test_gradients_of_a_symmetric_function_are_separate_arrays():
    a, b, c = np.ones(3), np.zeros(3), np.full(3, 2.0)
    bars = gradient(lambda a, b, c: np.sum(a + b + c), a, b, c)
    for bar in bars:
        bar += 7.0
    for bar in bars:
        close(bar, np.full(3, 8.0))
    close(a, np.ones(3))


def test_an_integer_may_be_differentiated():
    assert gradient(lambda n: n**3 / 6, 2) == (2.0,)
    assert gradient(lambda n: 1 / n, np.int64(4)) == (-1 / 16,)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.mean(x),
        lambda x: np.max(x) - np.min(x),
        lambda x: np.std(x),
        lambda x: x[1, 0] * 3 + np.sum(x[:, 1]),
        lambda x: np.sum(np.log1p(x) * 0.5),
        lambda x: np.linalg.norm(x),
        lambda x: np.sum(x @ x.T),
        lambda x: np.prod(x / 2, axis=0)[1],
    ],
)
def test_single_precision_stays_single_precision(f):
    x = np.array([[1.0, 2.0], [4.0, 8.0]], np.float32)
    (x_bar,) = gradient(f, x)
    assert x_bar.dtype == np.float32
    close(x_bar, differences(f, x), 1e-5)


def test_math_functions_of_a_traced_number():
    x = np.array([0.2, 0.3])
    (x_bar,) = gradient(lambda x: math.log(math.cosh(x[0]) + math.sqrt(x @ x)), x)
    r = math.hypot(*x)
    inside = math.cosh(0.2) + r
    close(x_bar, np.array([math.sinh(0.2) + 0.2 / r, 0.3 / r]) / inside)


def test_a_vector_is_no_loss_and_the_error_names_the_jacobian():
    with pytest.raises(ScalarError, match="jacobian") as caught:
        gradient(lambda x: np.cumsum(x), np.ones(4))
    assert "scalar" in str(caught.value)


def test_what_is_printed_inside_the_function_shows_numbers():
    lines = []

    def f(x):
        lines.append(f"{x} {x[1]:.3f} {x * 10!r} {np.mean(x)}")
        return np.mean(x)

    gradient(f, np.array([0.25, 4.0]))
    for number in ("0.25", "4.000", "2.5", "2.125"):
        assert number in lines[0]


def test_a_checkpoint_of_a_function_that_returns_several_values():
    x = np.array([0.3, 0.9, -0.2])

    def part(x):
        y = np.exp(x)
        return [y, {"norm": np.sum(y * y), "n": len(x)}]

    def f(x):
        y, rest = checkpointed(part, x)
        return rest["norm"] * y[0] + np.sum(y) * rest["n"]

    e = np.exp(x)
    want = 2 * e * e * e[0] + 3 * e
    want[0] += np.sum(e * e) * e[0]
    close(gradient(f, x)[0], want)


def test_a_hundred_gradients_keep_no_memory_without_the_collector():
    x = np.ones(10_000)
    f = lambda x: np.sum(np.tanh(x) * x[::-1]) + np.sum(x[100:200] ** 2)
    gradient(f, x)
    gc.collect()
    gc.disable()
    try:
        tracemalloc.start()
        gradient(f, x)
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(100):
            gradient(f, x)
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
        gc.enable()
    assert grown < x.nbytes


@pytest.mark.parametrize(
    "convert",
    [
        np.asarray,
        np.array,
        np.asanyarray,
        np.ascontiguousarray,
        np.asfortranarray,
        lambda x: np.array(x, copy=True),
        lambda x: np.array([x[i] for i in range(len(x))]),
        lambda x: np.atleast_2d(x),
        lambda x: np.require(x, float),
        lambda x: np.float64(x[0]),
        lambda x: np.frombuffer(x),
    ],
)
def test_a_conversion_to_an_array_is_right_or_raises(convert):
    x = np.array([0.5, 2.0])
    try:
        (x_bar,) = gradient(lambda x: np.sum(convert(x) ** 2) + 0 * np.sum(x), x)
    except (RetrogradeError, TypeError, ValueError) as error:
        assert len(str(error)) > 20  # noqa: PT017
    else:
        close(x_bar, 2 * x)


def test_an_optimiser_of_scipy_converges_in_double_precision():
    def rosenbrock(x):
        return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)

    start = np.array([1.4, 0.6, 1.7, 0.9])
    slope = lambda x: gradient(rosenbrock, x)[0]
    assert slope(start).dtype == np.float64
    options = {"ftol": 1e-13, "maxiter": 500}
    found = scipy.optimize.minimize(rosenbrock, start, jac=slope, method="SLSQP", options=options)
    close(found.x, np.ones(4), 1e-3)
