"""back: sweeps into the gradients of parameters; repeated, shared, failing and nested ones."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
from truth import close

from retrograde import (
    AlreadyUsedError,
    InputError,
    LossError,
    PullbackError,
    ScalarError,
    SeedError,
    back,
    gradient,
    hook,
    ignore,
    istracked,
    param,
    primitive,
)


def test_back_adds_into_the_same_buffer_in_place():
    w = param([1.0, 2.0])
    grad = w.grad
    assert back(np.sum(w * w)) is None
    assert w.grad is grad
    close(grad, [2.0, 4.0])


def test_several_backs_accumulate():
    w = param([1.0, 2.0])
    for n in range(1, 4):
        back(np.sum(w * w))
        close(w.grad, n * np.array([2.0, 4.0]))


def test_back_reaches_every_parameter_and_leaves_the_others_alone():
    w, b, other = param([1.0, 2.0]), param(3.0), param([7.0])
    back(np.sum(w) * b)
    close(w.grad, [3.0, 3.0])
    close(b.grad, 3.0)
    close(other.grad, [0.0])


def test_a_parameter_used_in_many_places_gets_the_sum():
    w = param(2.0)
    y = w * w
    back(y * y + w + np.sin(w))
    close(w.grad, 4 * 8.0 + 1 + np.cos(2.0))


@pytest.mark.parametrize("untracked", [3.0, np.ones(3), None, "text", np.array([np.nan])])
def test_back_of_something_untracked_does_nothing(untracked):
    assert back(untracked) is None
    assert back(untracked, np.ones(2)) is None


def test_back_of_a_parameter_adds_the_seed():
    w, v = param(2.0), param([1.0, 2.0])
    back(w)
    back(w)
    close(w.grad, 2.0)
    back(v, np.array([3.0, 4.0]))
    back(v, np.array([1.0, 1.0]))
    close(v.grad, [4.0, 5.0])


# --- the seed ----------------------------------------------------------------------------------------------------


def test_a_seed_weights_the_outputs():
    w = param([1.0, 2.0])
    back(w * w, np.array([1.0, 10.0]))
    close(w.grad, [2.0, 40.0])
    back(np.sum(w), 5.0)
    close(w.grad, [7.0, 45.0])
    back(w * 1, [1, 2])
    close(w.grad, [8.0, 47.0])


@pytest.mark.parametrize("seed", [1.0, np.ones(3), np.ones((1, 2)), np.ones((2, 1))])
def test_a_seed_of_the_wrong_shape_is_refused(seed):
    w = param([1.0, 2.0])
    y = w * w
    with pytest.raises(SeedError) as caught:
        back(y, seed)
    assert isinstance(caught.value, ValueError)
    assert str(np.shape(seed)) in str(caught.value)
    assert "(2,)" in str(caught.value)
    assert "(test_back.py:" in str(caught.value)
    close(w.grad, [0.0, 0.0])
    back(y, np.ones(2))
    close(w.grad, [2.0, 4.0])


def test_a_seed_is_neither_changed_nor_kept():
    w = param([1.0, 2.0])
    seed = np.array([1.0, 2.0])
    back(w + 0, seed)
    back(w, seed)
    back(w[::-1] + w, seed)
    close(seed, [1.0, 2.0])
    seed.fill(9.0)
    close(w.grad, [5.0, 7.0])


# --- the loss ----------------------------------------------------------------------------------------------------


def test_without_a_seed_the_loss_is_checked():
    w = param([1.0, 0.0])
    with pytest.raises(ScalarError, match=r"shape \(2,\)"):
        back(w * w)
    with pytest.raises(ScalarError, match="complex"):
        back(np.sum(w) * 1j)
    with np.errstate(divide="ignore"), pytest.raises(LossError, match="infinite"):
        back(np.sum(1 / w))
    with pytest.raises(LossError, match="NaN"):
        back(np.sum(w) * np.nan)
    close(w.grad, [0.0, 0.0])


def test_a_one_element_array_is_told_how_to_become_a_scalar():
    w = param([2.0])
    with pytest.raises(ScalarError, match=r"item\(\)"):
        back(w * w)
    back((w * w).item())
    close(w.grad, [4.0])


def test_a_refused_loss_may_be_swept_afterwards_with_a_seed():
    w = param([1.0, 2.0])
    y = w * w
    with pytest.raises(ScalarError):
        back(y)
    back(y, np.ones(2))
    close(w.grad, [2.0, 4.0])


# --- once --------------------------------------------------------------------------------------------------------


def test_a_second_back_says_already_used():
    w = param([1.0, 2.0])
    y = np.sum(w * w)
    back(y)
    with pytest.raises(AlreadyUsedError) as caught:
        back(y)
    assert isinstance(caught.value, RuntimeError)
    assert "already used" in str(caught.value)
    assert "once=False" in str(caught.value)
    assert "(test_back.py:" in str(caught.value)
    close(w.grad, [2.0, 4.0])


def test_once_false_may_be_repeated_and_then_freed():
    w = param([1.0, 2.0])
    y = np.sum(np.exp(w) * w)
    want = np.exp([1.0, 2.0]) * np.array([2.0, 3.0])
    for n in (1, 2, 3):
        back(y, once=False)
        close(w.grad, n * want)
    back(y)
    close(w.grad, 4 * want)
    with pytest.raises(AlreadyUsedError):
        back(y, once=False)


def test_the_value_can_still_be_read_after_its_graph_was_freed():
    w = param([1.0, 2.0])
    y = np.sum(w * w)
    back(y)
    assert f"{y:.1f}" == "5.0"
    assert y == 5.0
    assert istracked(y)


def test_what_is_computed_of_a_used_value_is_refused_and_not_silently_constant():
    w = param([1.0, 2.0])
    y = np.sum(w * w)
    back(y)
    z = y * 2 + np.sum(w)
    with pytest.raises(AlreadyUsedError, match="already used"):
        back(z)
    close(w.grad, [2.0, 4.0])


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
@pytest.mark.parametrize("once", [True, False])
def test_two_outputs_that_share_intermediates_work_in_either_order(order, once):
    w = param([1.0, 2.0])
    shared = np.exp(w) * w
    outputs = (np.sum(shared * shared), np.sum(np.sin(shared)) + shared[0])
    e = np.exp([1.0, 2.0])
    value, slope = e * np.array([1.0, 2.0]), e * np.array([2.0, 3.0])
    wanted = (2 * value * slope, (np.cos(value) + np.array([1.0, 0.0])) * slope)
    back(outputs[order[0]], once=once)
    close(w.grad, wanted[order[0]])
    back(outputs[order[1]], once=once)
    close(w.grad, wanted[0] + wanted[1])


def test_an_intermediate_may_be_swept_after_the_output_that_used_it():
    w = param(2.0)
    y = w * w
    z = y * y
    back(z)
    close(w.grad, 32.0)
    back(y)
    close(w.grad, 36.0)


def test_an_output_may_be_swept_after_its_intermediate():
    w = param(2.0)
    y = w * w
    z = y * y
    back(y, once=False)
    back(z)
    close(w.grad, 36.0)


def test_once_frees_what_the_graph_held():
    w = param(np.ones(1000))
    kept = w * 2.0
    alive = weakref.ref(kept.primal)
    y = np.sum(w * kept)
    del kept
    assert alive() is not None
    back(y)
    gc.collect()
    assert alive() is None


def test_once_frees_the_graph_while_it_is_swept():
    w = param(np.ones(10))
    seen = []
    kept = np.full(10, 2.0)
    alive = weakref.ref(kept)
    y = np.sum(hook(lambda bar: seen.append(alive() is None), w * 1.0) * kept)
    del kept
    back(y)
    assert seen == [True]


def test_a_dropped_graph_is_freed_without_the_collector():
    gc.collect()
    gc.disable()
    try:
        w = param(np.ones(10))
        kept = np.full(10, 2.0)
        alive = weakref.ref(kept)
        y = np.sum(np.sin(w * kept)) ** 2
        del kept
        del y
        assert alive() is None
    finally:
        gc.enable()


# --- a failing sweep (the first TODO of back.jl) -----------------------------------------------------------------


class Broken(Exception):
    pass


def _failing_hook():
    """A hook that raises in its first sweep only."""
    calls = []

    def fails_once(y_bar):
        calls.append(y_bar)
        if len(calls) == 1:
            raise Broken("hook")

    return lambda x: hook(fails_once, x)


def _failing_rule():
    """A primitive whose pullback raises in its first sweep only."""
    calls = []

    @primitive
    def triple(x):
        return x * 3.0

    @triple.defpullback
    def triple_pullback(y, x):
        def pull(y_bar):
            calls.append(y_bar)
            if len(calls) == 1:
                raise Broken("rule")
            return (y_bar * 3.0,)

        return pull

    return lambda x: triple(x) / 3.0


@pytest.mark.parametrize("make", [_failing_hook, _failing_rule])
def test_after_an_error_in_a_sweep_every_later_sweep_is_right(make):
    fails_once = make()
    w, v = param([1.0, 2.0]), param([3.0, 4.0])
    shared = w * w * v
    y = np.sum(fails_once(shared) + shared)
    z = np.sum(shared) * 10
    with pytest.raises(Broken):
        back(y, once=False)
    close(w.grad, [0.0, 0.0])
    close(v.grad, [0.0, 0.0])
    # Not only the same output: also one that shares its intermediate values, and one that is made later.
    back(y, once=False)
    close(w.grad, [12.0, 32.0])
    close(v.grad, [2.0, 8.0])
    back(z)
    close(w.grad, [72.0, 192.0])
    back(np.sum(shared))
    close(w.grad, [78.0, 208.0])
    close(v.grad, [13.0, 52.0])


@pytest.mark.parametrize("make", [_failing_hook, _failing_rule])
def test_a_failed_sweep_changes_no_gradient_at_all(make):
    # `reached` gets its cotangent before the error, `other` would get it after.
    reached, other = param(2.0), param(3.0)
    back(reached * 1.0)
    y = make()(other * 2.0) * reached
    with pytest.raises(Broken):
        back(y)
    close(reached.grad, 1.0)
    close(other.grad, 0.0)


@pytest.mark.parametrize("make", [_failing_hook, _failing_rule])
def test_after_a_failed_sweep_that_frees_the_graph_is_swept_again_or_refused(make):
    w = param(2.0)
    y = make()(w * w)
    with pytest.raises(Broken):
        back(y, once=True)
    try:
        back(y)
    except AlreadyUsedError:
        close(w.grad, 0.0)
    else:
        close(w.grad, 4.0)


def test_an_error_of_a_users_hook_or_rule_passes_unchanged():
    error = Broken("mine")

    def fail(y_bar):
        raise error

    w = param(2.0)
    with pytest.raises(Broken) as caught:
        back(hook(fail, w * w))
    assert caught.value is error
    assert error.__cause__ is None


def test_a_wrong_number_of_cotangents_names_both_numbers_and_changes_nothing():
    @primitive
    def product(a, b):
        return a * b

    product.defpullback(lambda out, a, b: lambda y_bar: (y_bar * b,))
    a, b = param(2.0), param(3.0)
    with pytest.raises(PullbackError, match=r"1 .*2 arguments") as caught:
        back(product(a, b))
    assert isinstance(caught.value, ValueError)
    close(a.grad, 0.0)
    close(b.grad, 0.0)


# --- back inside a pullback (the second TODO of back.jl) ---------------------------------------------------------


def test_back_called_from_inside_a_hook_is_right():
    w, inner = param([1.0, 2.0]), param([3.0, 4.0])

    def sweep_something_else(y_bar):
        back(np.sum(inner * inner * y_bar))

    y = hook(sweep_something_else, w * w)
    back(np.sum(y * np.array([1.0, 10.0])) + np.sum(w))
    close(w.grad, [3.0, 41.0])
    close(inner.grad, [6.0, 80.0])


def test_back_called_from_inside_a_pullback_over_the_same_graph_is_right():
    w = param([1.0, 2.0])
    shared = w * w
    total = np.sum(shared)

    @primitive
    def double(x):
        return 2 * x

    @double.defpullback
    def double_pullback(y, x):
        def pull(y_bar):
            # The inner sweep adds 2w; the outer one goes on as if nothing had happened.
            back(total, once=False)
            return (2 * y_bar,)

        return pull

    back(np.sum(double(shared) * shared))
    close(w.grad, np.array([8.0, 64.0]) + np.array([2.0, 4.0]))
    back(total)
    close(w.grad, np.array([8.0, 64.0]) + 2 * np.array([2.0, 4.0]))


def test_a_sweep_of_the_value_that_is_being_swept_is_right():
    w = param(3.0)
    depth = []

    def again(y_bar):
        if not depth:
            depth.append(1)
            back(y, once=False)

    y = hook(again, w * w) * 2.0
    back(y, once=False)
    close(w.grad, 24.0)


def test_an_inner_sweep_that_fails_leaves_the_outer_one_right():
    w, inner = param(3.0), param(2.0)

    def fail(y_bar):
        raise Broken

    def try_another(y_bar):
        with pytest.raises(Broken):
            back(hook(fail, inner * inner))

    back(hook(try_another, w * w) * 2.0)
    close(w.grad, 12.0)
    close(inner.grad, 0.0)
    back(inner * inner)
    close(inner.grad, 4.0)


# --- surroundings ------------------------------------------------------------------------------------------------


def test_back_of_a_value_of_a_running_transform_is_refused():
    w = param(2.0)

    def f(x):
        y = x * w
        with pytest.raises(InputError, match="transform"):
            back(y)
        return y * 1.0

    (x_bar,) = gradient(f, 3.0)
    back(x_bar)
    close(w.grad, 1.0)


def test_back_of_parameters_alone_works_inside_a_transform():
    w = param(2.0)

    def f(x):
        back(w * w)
        return x * 3.0

    assert gradient(f, 1.0) == (3.0,)
    close(w.grad, 4.0)


def test_nothing_is_recorded_inside_ignore():
    w = param(2.0)
    with ignore():
        y = w * w
    assert not istracked(y)
    back(y)
    close(w.grad, 0.0)
    back(w * w)
    close(w.grad, 4.0)


def test_back_may_be_called_inside_ignore():
    w = param(2.0)
    y = w * w
    with ignore():
        back(y)
    close(w.grad, 4.0)


def test_float32_and_complex_parameters_accumulate_in_their_own_dtype():
    w = param(np.ones(2, np.float32))
    back(np.sum(w * 2.0))
    assert w.grad.dtype == np.float32
    z = param(1 + 2j)
    back(np.abs(z) ** 2)
    close(z.grad, 2 * (1 + 2j))


def test_an_empty_parameter_is_a_parameter():
    w = param(np.zeros(0))
    back(np.sum(w * w))
    close(w.grad, np.zeros(0))


def test_indexed_reads_of_a_parameter_accumulate_where_they_read():
    w = param(np.arange(5.0))
    total = 0.0
    for i in (0, 2, 2, 4):
        total = total + w[i] * w[i]
    back(total + np.sum(w[1:3]))
    close(w.grad, [0.0, 1.0, 9.0, 0.0, 8.0])


def test_zero_times_infinity_is_zero_in_back():
    w = param([0.0, 4.0])
    back(np.sum(np.sqrt(w)[1:]))
    close(w.grad, [0.0, 0.25])
