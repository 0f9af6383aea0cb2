"""forwarddiff: a part of a function differentiated in forward mode."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from truth import close, differences

from retrograde import (
    Buffer,
    DroppedGradientWarning,
    Params,
    RetrogradeWarning,
    back,
    checkpointed,
    forwarddiff,
    gradient,
    hessian,
    istracked,
    jacobian,
    jvp,
    param,
    pullback,
)

X = np.array([0.5, -1.0, 2.0])


@pytest.mark.parametrize(
    ("f", "x"),
    [
        (lambda x: x**3, 2.0),
        (lambda x: np.array([x, x * x, 1.0]), 2.0),
        (lambda x: np.stack([np.sin(x), x * x]), 0.3),
        (lambda x: np.sum(x**2), X),
        (lambda x: x[0] * x[1], X),
        (lambda x: x * x[::-1], X),
        (lambda x: np.outer(x, x), X),
        (lambda x: np.outer(x, x)[:, :2], X),
        (lambda x: x @ x.T, np.arange(6.0).reshape(2, 3) / 3),
        (lambda x: np.sin(x), np.array(0.5)),
        (lambda x: x.reshape(1, 3, 1), X),
        (lambda x: 5.0, X),
    ],
)
def test_scalars_and_arrays_go_in_and_come_out(f, x):
    weigh = lambda y: np.sum(np.cos(np.arange(np.size(y))).reshape(np.shape(y)) * y)
    y, pull = pullback(lambda x: weigh(forwarddiff(f, x)), x)
    want = differences(lambda x: weigh(np.asarray(f(x if np.ndim(x) else x[()]))), x)
    assert y == pytest.approx(float(weigh(np.asarray(f(x)))))
    (x_bar,) = pull(1.0)
    if x_bar is None:
        assert not want.any()
    else:
        close(x_bar, want, 1e-8, 1e-9)


def test_the_value_is_that_of_the_function():
    assert forwarddiff(lambda x: x**2, 3.0) == 9.0
    close(forwarddiff(lambda x: x * 2, X), 2 * X)
    assert forwarddiff(lambda ab: ab[0] * ab[1], [2.0, 3.0]) == 6.0


def test_a_list_is_passed_on_as_a_list_and_each_member_gets_its_gradient():
    def product(ab):
        assert type(ab) is list
        a, b = ab
        return a * b

    assert gradient(lambda a, b: forwarddiff(product, [a, b]), 2.0, 3.0) == (3.0, 2.0)


def test_members_of_a_list_may_be_arrays_and_constants():
    f = lambda a, x: forwarddiff(lambda l: l[0] * np.sum(l[1]) * l[2], [a, x, 10.0])
    a_bar, x_bar = gradient(f, 2.0, X)
    close(a_bar, 15.0)
    close(x_bar, [20.0, 20.0, 20.0])


def test_float32_stays_float32():
    x = X.astype(np.float32)
    (x_bar,) = gradient(lambda x: np.sum(forwarddiff(lambda x: x * x, x)), x)
    assert x_bar.dtype == np.float32
    close(x_bar, 2 * x)


def test_an_integer_may_be_passed():
    assert gradient(lambda x: forwarddiff(lambda x: x * x, x), 5) == (10.0,)


def test_complex_values_go_through():
    z = 1.0 + 2.0j
    (z_bar,) = gradient(lambda z: np.real(forwarddiff(lambda z: z * z * z, z)), z)
    close(z_bar, np.conj(3 * z * z))


def test_an_empty_array_goes_through():
    (x_bar,) = gradient(lambda x: np.sum(forwarddiff(lambda x: x * x, x)), np.zeros(0))
    assert x_bar is None or x_bar.shape == (0,)


# --- what is closed over -----------------------------------------------------------------------------------------


def test_a_closed_over_value_gets_no_gradient_and_a_warning_says_how_to_pass_it():
    def f(a, b):
        return forwarddiff(lambda a: a * b, a)

    with pytest.warns(DroppedGradientWarning) as caught:
        result = gradient(f, 2.0, 3.0)
    assert result == (3.0, None)
    assert len(caught) == 1
    assert issubclass(DroppedGradientWarning, RetrogradeWarning)
    message = str(caught[0].message)
    assert "closes over" in message
    assert "[a, b]" in message
    assert caught[0].filename == __file__


def test_without_a_closed_over_value_there_is_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scale = 3.0
        assert gradient(lambda a, b: forwarddiff(lambda a: a * scale, a) * b, 2.0, 3.0) == (9.0, 6.0)


def test_a_closed_over_array_element_and_a_parameter_are_dropped_with_a_warning():
    w = param(3.0)
    with pytest.warns(DroppedGradientWarning):
        grads = gradient(lambda: forwarddiff(lambda a: a * w, w * 2), Params([w]))
    # d/dw (2 w · w₀) = 2 w₀
    assert grads[w] == 6.0
    with pytest.warns(DroppedGradientWarning):
        (x_bar,) = gradient(lambda x: forwarddiff(lambda a: a * x[1], x[0]), X)
    close(x_bar, [X[1], 0.0, 0.0])


def test_a_function_that_uses_only_what_it_closes_over_is_a_constant():
    with pytest.warns(DroppedGradientWarning):
        assert gradient(lambda a, b: forwarddiff(lambda a: b * b, a) * a, 2.0, 3.0) == (9.0, None)


# --- modes -------------------------------------------------------------------------------------------------------


def test_second_derivatives_go_through():
    f = lambda x: forwarddiff(lambda x: np.sum(np.sin(x) * x), x)
    want = np.diag(2 * np.cos(X) - X * np.sin(X))
    close(hessian(f, X), want)
    close(jacobian(lambda x: gradient(f, x)[0], X), want)
    assert gradient(lambda x: gradient(lambda x: forwarddiff(lambda x: x**4, x), x)[0], 2.0) == (48.0,)


def test_in_forward_mode_it_is_a_call():
    assert jvp(lambda x: forwarddiff(lambda x: x**2, x), (3.0,), (1.0,)) == (9.0, 6.0)


def test_it_nests_in_itself():
    assert gradient(lambda x: forwarddiff(lambda x: forwarddiff(lambda x: x**3, x) * x, x), 2.0) == (32.0,)


def test_gradients_may_be_taken_inside():
    assert gradient(lambda x: forwarddiff(lambda x: gradient(lambda y: y**3, x)[0], x), 2.0) == (12.0,)


def test_it_works_inside_a_checkpoint_and_a_checkpoint_inside_it():
    assert gradient(lambda x: checkpointed(lambda x: forwarddiff(lambda x: x**3, x), x), 2.0) == (12.0,)
    assert gradient(lambda x: forwarddiff(lambda x: checkpointed(lambda x: x**3, x), x), 2.0) == (12.0,)


def test_it_works_in_back():
    w = param(3.0)
    y = forwarddiff(lambda x: x**2, w)
    assert istracked(y)
    back(y)
    close(w.grad, 6.0)


def test_nothing_of_its_inside_is_kept():
    import gc
    import weakref

    alive = []

    def inside(x):
        y = x
        for _ in range(10):
            kept = np.full(100, 1.5)
            alive.append(weakref.ref(kept))
            y = y + np.sum(kept * x)
        return y

    _, pull = pullback(lambda x: forwarddiff(inside, x), 2.0)
    gc.collect()
    assert not any(ref() is not None for ref in alive)
    assert pull(1.0) == (1501.0,)


def test_an_error_inside_passes_and_leaves_everything_right():
    def fail(x):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        gradient(lambda x: forwarddiff(fail, x), 1.0)
    assert gradient(lambda x: x * x, 3.0) == (6.0,)


def test_its_function_may_fill_a_buffer_of_its_own():
    def inside(x):
        b = Buffer(x, 2)
        b[0] = x[0] * x[1]
        b[1] = b[0] * x[2]
        b[0] = b[0] * 2.0
        return b.copy()

    f = lambda x: np.sum(forwarddiff(inside, x) * np.array([1.0, 10.0]))
    plain = lambda x: 2 * x[0] * x[1] + 10 * x[0] * x[1] * x[2]
    close(gradient(f, X)[0], differences(plain, X), 1e-8)
    close(hessian(f, X), differences(lambda x: differences(plain, x, 1e-2), X, 1e-2), 1e-6, 1e-6)
