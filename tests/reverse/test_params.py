"""param, data, istracked, Params and Grads: Tracker's way of holding parameters."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from truth import close

from retrograde import (
    Grads,
    InputError,
    MutationError,
    Params,
    RetrogradeError,
    back,
    data,
    gradient,
    ignore,
    istracked,
    param,
    pullback,
    pushforward,
    withgradient,
)

# --- param -------------------------------------------------------------------------------------------------------


def test_a_parameter_is_a_float_leaf_whose_gradient_starts_at_zeros():
    w = param([1, 2, 3])
    assert istracked(w)
    assert w.dtype == np.float64
    close(data(w), [1.0, 2.0, 3.0])
    close(w.grad, [0.0, 0.0, 0.0])


@pytest.mark.parametrize(
    ("value", "dtype", "shape"),
    [
        (3, "float64", ()),
        (3.0, "float64", ()),
        (2j, "complex128", ()),
        (np.float32(3), "float32", ()),
        (np.int64(3), "float64", ()),
        (np.array(3.0), "float64", ()),
        ([[1, 2], [3, 4]], "float64", (2, 2)),
        ((1.0, 2.0), "float64", (2,)),
        (np.ones((2, 3), np.float32), "float32", (2, 3)),
        (np.ones(2, np.int8), "float64", (2,)),
        (np.ones(2, complex), "complex128", (2,)),
        (np.zeros((0, 2)), "float64", (0, 2)),
        (np.zeros(2, np.longdouble), "longdouble", (2,)),
    ],
)
def test_a_parameter_has_the_shape_and_dtype_of_its_value(value, dtype, shape):
    w = param(value)
    assert (w.dtype, w.shape) == (np.dtype(dtype), shape)
    assert isinstance(w.grad, np.ndarray)
    assert (w.grad.dtype, w.grad.shape) == (np.dtype(dtype), shape)
    assert not w.grad.any()
    np.testing.assert_array_equal(data(w), value)


def test_a_parameter_copies_its_value():
    value = np.array([1.0, 2.0])
    w = param(value)
    value[0] = 9.0
    close(data(w), [1.0, 2.0])


@pytest.mark.parametrize(
    "value",
    [True, "text", None, [True, False], ["a"], [[1.0], [2.0, 3.0]], object(), {"a": 1.0}, np.array([1.0], object)],
)
def test_a_parameter_of_what_is_no_number_is_refused(value):
    with pytest.raises((InputError, ValueError)):
        param(value)


@pytest.mark.parametrize("value", [True, "text", None, [True, False], np.array([1.0], object)])
def test_the_refusal_names_what_was_given(value):
    with pytest.raises(InputError, match="param") as caught:
        param(value)
    assert "(test_params.py:" in str(caught.value)


def test_a_parameter_of_a_traced_value_would_lose_its_derivative():
    def f(x):
        return x * data(param(x))

    with pytest.raises(RetrogradeError):
        gradient(f, 2.0)


def test_a_parameter_of_a_parameter_is_another_parameter():
    w = param([1.0, 2.0])
    v = param(data(w))
    back((v * w).sum())
    close(w.grad, [1.0, 2.0])
    close(v.grad, [1.0, 2.0])


def test_what_is_computed_of_a_parameter_is_tracked_and_plain_values_are_not():
    w = param([1.0, 2.0])
    assert istracked(w * 2)
    assert istracked(np.sum(w))
    assert istracked(w[0])
    assert not istracked(data(w))
    assert not istracked(data(w * 2))
    assert not istracked(w > 1)
    for plain in (1.0, np.ones(2), "text", None, [w]):
        assert not istracked(plain)


def test_data_of_what_is_not_tracked_is_itself():
    x = np.ones(2)
    assert data(x) is x
    assert data(3) == 3
    assert data("text") == "text"


def test_data_shows_the_value_and_cannot_be_written_to():
    w = param([1.0, 2.0])
    value = data(w)
    with pytest.raises(ValueError, match="read-only"):
        value[0] = 5.0
    assert type(data(param(3.0))) is float
    close(data(w * w), [1.0, 4.0])


def test_data_strips_every_level():
    def f(x):
        def g(y):
            assert data(x * y) == 6.0
            assert type(data(x * y)) is float
            return x * y

        return gradient(g, 3.0)[0]

    assert gradient(f, 2.0) == (1.0,)


def test_a_parameter_shows_its_value_and_its_state():
    assert repr(param([1.0, 2.0])) == "param(array([1., 2.]))"
    assert repr(param(3.0)) == "param(3.0)"
    assert str(param([1.0, 2.0])) == "[1. 2.]"


def test_zero_grad_keeps_the_same_buffer():
    w = param([1.0, 2.0])
    grad = w.grad
    back((w * w).sum())
    close(grad, [2.0, 4.0])
    w.zero_grad()
    assert w.grad is grad
    close(grad, [0.0, 0.0])


def test_a_parameter_is_hashed_by_its_identity():
    w, v = param([1.0]), param([1.0])
    state = {w: "w", v: "v"}
    assert (state[w], state[v]) == ("w", "v")
    assert len({w, v, w}) == 2


def test_parameters_are_compared_by_value_like_arrays():
    w = param([1.0, 2.0])
    assert (w == np.array([1.0, 3.0])).tolist() == [True, False]
    assert (w < 2).tolist() == [True, False]
    assert bool(param(3.0) > 2)


# --- writing to a parameter --------------------------------------------------------------------------------------


def _subtract(w):
    w -= 1.0


def _multiply(w):
    w *= 2.0


def _divide(w):
    w /= 2.0


def _power(w):
    w **= 2


def _matmul(w):
    w @= np.eye(2)


def _element(w):
    w[0] = 5.0


def _slice(w):
    w[:] = 7.0


def _element_add(w):
    w[1] += 1.0


@pytest.mark.parametrize(
    ("write", "after"),
    [
        (_subtract, [0.0, 1.0]),
        (_multiply, [2.0, 4.0]),
        (_divide, [0.5, 1.0]),
        (_power, [1.0, 4.0]),
        (_matmul, [1.0, 2.0]),
        (_element, [5.0, 2.0]),
        (_slice, [7.0, 7.0]),
        (_element_add, [1.0, 3.0]),
    ],
)
def test_writing_to_a_parameter_raises_outside_ignore_and_works_inside(write, after):
    w = param([1.0, 2.0])
    with pytest.raises(MutationError, match="ignore") as caught:
        write(w)
    assert isinstance(caught.value, TypeError)
    assert "(test_params.py:" in str(caught.value)
    close(data(w), [1.0, 2.0])
    with ignore():
        write(w)
    close(data(w), after)
    back((w * w).sum())
    close(w.grad, 2 * np.array(after))


def test_a_parameter_that_was_updated_is_the_same_leaf():
    w = param([1.0, 2.0])
    before, grad = w, w.grad
    with ignore():
        w -= 0.5
        w[0] = 3.0
    assert w is before
    assert w.grad is grad
    number = param(2.0)
    with ignore():
        number *= 3
    assert data(number) == 6.0
    back(number * number)
    close(number.grad, 12.0)


def test_graphs_that_were_recorded_earlier_keep_the_old_value():
    w = param([1.0, 2.0])
    y = (w * w).sum()
    z = np.sum(np.exp(w))
    with ignore():
        w -= 10.0
        w[1] = 50.0
    back(y)
    close(w.grad, [2.0, 4.0])
    back(z)
    close(w.grad, [2.0 + np.e, 4.0 + np.e**2])
    close(data(w), [-9.0, 50.0])


def test_an_update_may_not_change_the_shape_of_a_parameter():
    w, number = param([1.0, 2.0]), param(1.0)
    with ignore():
        with pytest.raises(ValueError, match="broadcast"):
            w -= np.ones((2, 2))
        with pytest.raises((RetrogradeError, ValueError)):
            number -= np.ones(2)
    close(data(w), [1.0, 2.0])
    assert data(number) == 1.0


def test_an_update_keeps_the_dtype_of_a_parameter():
    w = param(np.ones(2, np.float32))
    number = param(np.float32(1))
    with ignore():
        w -= np.array([0.25, 0.5])
        number -= 0.25
    assert w.dtype == np.float32
    assert number.dtype == np.float32


def test_an_update_by_the_parameters_own_gradient_descends():
    w = param([1.0, -2.0])
    for _ in range(60):
        w.zero_grad()
        back(np.sum((w - np.array([3.0, 4.0])) ** 2))
        with ignore():
            w -= 0.2 * w.grad
    close(data(w), [3.0, 4.0], 1e-9)


# --- copies and pickles ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda w: pickle.loads(pickle.dumps(w))])
@pytest.mark.parametrize("value", [[1.0, 2.0], 3.0, np.float32(3)])
def test_a_duplicate_of_a_parameter_is_a_parameter_with_the_same_value_and_gradient(duplicate, value):
    w = param(value)
    back(np.sum(w * w))
    v = duplicate(w)
    assert type(v) is type(w)
    assert v is not w
    np.testing.assert_array_equal(data(v), data(w))
    np.testing.assert_array_equal(v.grad, w.grad)
    back(np.sum(v * 3.0))
    close(w.grad, 2 * np.asarray(value, w.dtype))
    close(v.grad, 2 * np.asarray(value, w.dtype) + 3)


def test_a_model_of_parameters_pickles_with_its_shared_members():
    w = param([1.0, 2.0])
    model = {"w": w, "tied": w, "grads": gradient(lambda: (w * w).sum(), Params([w])), "params": Params([w])}
    again = pickle.loads(pickle.dumps(model))
    assert again["w"] is again["tied"]
    assert again["w"] in again["params"]
    close(again["grads"][again["w"]], [2.0, 4.0])


# --- Params ------------------------------------------------------------------------------------------------------


def test_params_is_an_ordered_set_by_identity():
    a, b, c = param([1.0]), param([1.0]), param(2.0)
    params = Params([b, a, b, c, a])
    assert len(params) == 3
    members = list(params)
    assert members[0] is b
    assert members[1] is a
    assert members[2] is c
    assert a in params
    assert param([1.0]) not in params
    assert 3.0 not in params


def test_params_can_be_added_to_and_made_from_a_generator():
    a, b = param(1.0), param(2.0)
    params = Params(p for p in (a,))
    params.add(b)
    params.add(a)
    assert [data(p) for p in params] == [1.0, 2.0]
    assert len(Params()) == 0
    assert len(Params([])) == 0


@pytest.mark.parametrize("other", [1.0, np.ones(2), "text", [param(1.0)]])
def test_params_refuses_what_is_no_parameter(other):
    with pytest.raises(InputError, match="param"):
        Params([other])


def test_params_refuses_what_was_computed_of_a_parameter():
    with pytest.raises(InputError):
        Params([param(1.0) * 2])


def test_params_shows_its_members():
    assert repr(Params([param(1.0), param([2.0])])) == "Params([param(1.0), param(array([2.]))])"


# --- gradient with Params ----------------------------------------------------------------------------------------


def test_the_gradient_of_parameters_is_indexed_by_the_parameter():
    w, b, unused = param([1.0, 2.0]), param(3.0), param(4.0)
    grads = gradient(lambda: np.sum(w * w) * b, Params([w, b, unused]))
    assert isinstance(grads, Grads)
    close(grads[w], [6.0, 12.0])
    assert grads[b] == 5.0
    assert type(grads[b]) is float
    assert grads[unused] is None


def test_a_gradient_of_parameters_leaves_nothing_behind():
    w = param([1.0, 2.0])
    back((w * 5).sum())
    before = w.grad.copy()
    gradient(lambda: (w * w).sum(), Params([w]))
    withgradient(lambda: (w * w).sum(), Params([w]))
    pullback(lambda: w * w, Params([w]))[1](np.ones(2))
    close(w.grad, before)
    assert istracked(w)


def test_a_gradient_of_parameters_passes_keywords_and_takes_no_further_arguments():
    w = param(2.0)
    grads = gradient(lambda *, scale: w * w * scale, Params([w]), scale=10.0)
    assert grads[w] == 40.0
    for transform in (gradient, withgradient, pullback):
        with pytest.raises(InputError, match="param"):
            transform(lambda x: w * x, Params([w]), 3.0)


def test_a_parameter_named_twice_or_used_twice_counts_once():
    w = param([1.0, 2.0])
    grads = gradient(lambda: np.sum(w * 1.0) + np.sum(w * 1.0), Params([w, w]))
    assert len(grads) == 1
    close(grads[w], [2.0, 2.0])


def test_the_gradient_of_parameters_keeps_shapes_and_dtypes():
    w, z = param(np.ones((2, 1), np.float32)), param(np.array(2.0))
    grads = gradient(lambda: np.sum(w * 2) * z, Params([w, z]))
    assert grads[w].dtype == np.float32
    close(grads[w], np.full((2, 1), 4.0))
    assert isinstance(grads[z], np.ndarray)
    close(grads[z], 4.0)


def test_a_parameter_that_is_not_named_is_a_constant_of_the_transform_but_tracked_outside():
    w, v = param([1.0, 2.0]), param([3.0, 4.0])
    grads = gradient(lambda: np.sum(w * w * v), Params([w]))
    assert istracked(grads[w])
    close(data(grads[w]), [6.0, 16.0])
    back(np.sum(grads[w] * np.array([1.0, 10.0])))
    close(v.grad, [2.0, 40.0])


def test_a_gradient_that_depends_on_a_closed_over_parameter_is_tracked():
    w = param([3.0, 4.0])
    (x_bar,) = gradient(lambda x: np.sum(w * x * x), np.array([1.0, 2.0]))
    assert istracked(x_bar)
    back(x_bar.sum())
    close(w.grad, [2.0, 4.0])


def test_parameters_may_be_passed_as_arguments_like_other_values():
    w = param([1.0, 2.0])
    (w_bar,) = gradient(lambda w: np.sum(w**3), w)
    close(data(w_bar), [3.0, 12.0])
    back(w_bar.sum())
    close(w.grad, [6.0, 12.0])


def test_an_empty_set_of_parameters_has_an_empty_gradient():
    grads = gradient(lambda: 3.0, Params([]))
    assert len(grads) == 0
    assert list(grads) == []


def test_the_loss_of_parameters_is_checked_as_any_other():
    w = param([1.0, 0.0])
    with pytest.raises(TypeError, match="real scalar"):
        gradient(lambda: w, Params([w]))
    with pytest.raises(ValueError, match="infinite"), np.errstate(divide="ignore"):
        gradient(lambda: np.sum(1 / w), Params([w]))
    with pytest.raises(ValueError, match="NaN"):
        gradient(lambda: np.sum(w) * np.nan, Params([w]))
    assert gradient(lambda: 3.0, Params([w]))[w] is None


def test_a_value_of_the_transform_is_plain():
    w = param([1.0, 2.0])
    val, grads = withgradient(lambda: np.sum(w * w), Params([w]))
    assert val == 5.0
    assert not istracked(val)
    close(grads[w], [2.0, 4.0])


# --- Grads -------------------------------------------------------------------------------------------------------


@pytest.fixture
def model():
    w, b, unused = param([1.0, 2.0]), param(3.0), param([5.0])
    params = Params([w, b, unused])
    return w, b, unused, gradient(lambda: np.sum(w * w) * b, params)


def test_grads_iterates_over_its_parameters_in_order(model):
    w, b, unused, grads = model
    assert all(p is q for p, q in zip(grads, (w, b, unused), strict=True))
    assert all(p is q for p, q in zip(grads.keys(), (w, b, unused), strict=True))
    assert [p is q for (p, _), q in zip(grads.items(), (w, b, unused), strict=True)] == [True] * 3
    values = list(grads.values())
    close(values[0], [6.0, 12.0])
    assert values[1:] == [5.0, None]
    assert len(grads) == 3
    assert w in grads
    assert param([1.0, 2.0]) not in grads


def test_an_unknown_parameter_is_a_key_error(model):
    *_, grads = model
    for stranger in (param([1.0, 2.0]), 3.0, "w", None):
        with pytest.raises(KeyError):
            grads[stranger]


def test_grads_add_and_scale(model):
    w, b, unused, grads = model
    total = grads + grads * 2 + 0.5 * grads
    close(total[w], [21.0, 42.0])
    assert total[b] == 17.5
    assert total[unused] is None
    close((grads / 2)[w], [3.0, 6.0])
    close((grads - grads)[w], [0.0, 0.0])
    close((-grads)[w], [-6.0, -12.0])
    close(sum([grads, grads])[w], [12.0, 24.0])
    close(grads[w], [6.0, 12.0])


def test_an_unreached_gradient_counts_as_zero_in_a_sum():
    a, b = param(1.0), param(2.0)
    params = Params([a, b])
    first, second = gradient(lambda: a * 3, params), gradient(lambda: b * 4, params)
    total = first + second
    assert (total[a], total[b]) == (3.0, 4.0)
    assert (first + first)[b] is None


def test_grads_of_different_parameters_add_to_grads_of_all():
    a, b = param(1.0), param(2.0)
    total = gradient(lambda: a * 3, Params([a])) + gradient(lambda: b * 4, Params([b]))
    assert (total[a], total[b], len(total)) == (3.0, 4.0, 2)


def test_map_applies_to_every_gradient_that_is_there(model):
    w, b, unused, grads = model
    clipped = grads.map(lambda g: np.clip(g, -7, 7))
    close(clipped[w], [6.0, 7.0])
    assert clipped[b] == 5.0
    assert clipped[unused] is None
    close(grads[w], [6.0, 12.0])


def test_scaling_grads_changes_no_gradient_in_place(model):
    w, _, _, grads = model
    values = grads[w]
    scaled = grads
    scaled *= 2
    close(values, [6.0, 12.0])
    close(scaled[w], [12.0, 24.0])


def test_grads_do_not_mix_with_other_kinds(model):
    *_, grads = model
    for other in (1.0, "text", [1.0]):
        with pytest.raises(TypeError):
            grads + other
        with pytest.raises(TypeError):
            grads - other


def test_grads_pickle(model):
    grads = model[-1]
    again = pickle.loads(pickle.dumps(grads))
    assert [None if g is None else np.asarray(g).tolist() for g in again.values()] == [[6.0, 12.0], 5.0, None]
    assert [data(p) is not None for p in again] == [True, True, True]


def test_a_gradient_step_over_grads_trains_a_model():
    rng = np.random.default_rng(1)
    features = rng.normal(size=(30, 3))
    target = features @ np.array([1.0, -2.0, 0.5]) + 4.0
    w, b = param(np.zeros(3)), param(0.0)
    params = Params([w, b])
    for _ in range(300):
        grads = gradient(lambda: np.mean((features @ w + b - target) ** 2), params)
        with ignore():
            for p in params:
                p -= 0.1 * grads[p]
    close(data(w), [1.0, -2.0, 0.5], 1e-6)
    close(data(b), 4.0, 1e-6)


def test_a_numpy_number_scales_grads_from_the_left():
    w = param([1.0, 2.0])
    grads = gradient(lambda: np.sum(w**2), Params([w]))
    assert np.array_equal((np.float64(0.5) * grads)[w], [1.0, 2.0])
    with pytest.raises(TypeError, match="unsupported operand"):
        grads * grads
    with pytest.raises(TypeError, match="unsupported operand"):
        grads / grads


@pytest.mark.parametrize("value", ["a", None, [None], [True]])
def test_a_parameter_holds_numbers(value):
    with pytest.raises(InputError, match="a parameter needs numbers"):
        param(value)


def test_params_where_arguments_are_wanted_says_what_takes_them():
    w = param([1.0, 2.0])
    with pytest.raises(InputError, match="gradient, withgradient, pullback, jacobian and hessian take a Params"):
        pushforward(lambda: np.sum(w), Params([w]))
    with pytest.raises(InputError, match=r"optree\.tree_leaves"):
        Params([[w]])
