"""hook and showgrad: looking at cotangents and changing them."""

from __future__ import annotations

import operator

import numpy as np
import pytest
from truth import close

import retrograde as rg
from retrograde import (
    InputError,
    Params,
    PullbackError,
    back,
    dropgrad,
    gradient,
    hessian,
    hook,
    ignore,
    istracked,
    jvp,
    param,
    pullback,
    showgrad,
)

X = np.array([1.0, 2.0])


# --- hook --------------------------------------------------------------------------------------------------------


def test_a_hook_sees_the_cotangent_and_leaves_the_value_alone():
    seen = []
    y, pull = pullback(lambda x: hook(seen.append, x * 3) ** 2, X)
    close(y, 9 * X**2)
    close(pull(np.ones(2))[0], 18 * X)
    assert len(seen) == 1
    close(seen[0], 6 * X)


def test_what_a_hook_returns_goes_on_in_place_of_the_cotangent():
    assert gradient(lambda a, b: hook(operator.neg, a) * b, 2.0, 3.0) == (-3.0, 2.0)
    close(gradient(lambda x: np.sum(hook(lambda bar: bar * 10, x) * x), X)[0], 11 * X)
    assert gradient(lambda x: hook(lambda bar: 0.0, x) * 5, 2.0) == (0.0,)


def test_none_leaves_the_cotangent_unchanged_and_zero_does_not():
    assert gradient(lambda x: hook(lambda bar: None, x) * 5, 2.0) == (5.0,)
    assert gradient(lambda x: hook(lambda bar: 0, x) * 5, 2.0) == (0.0,)


def test_a_hook_is_called_once_a_sweep_with_the_summed_cotangent():
    seen = []

    def f(x):
        y = hook(lambda bar: seen.append(float(bar)), x)
        return y * 3 + y * 4 + y * y

    assert gradient(f, 2.0) == (11.0,)
    assert seen == [11.0]


def test_a_hook_acts_on_its_own_use_of_the_value_alone():
    seen = []
    assert gradient(lambda x: hook(lambda bar: seen.append(float(bar)), x) * x, 3.0) == (6.0,)
    assert seen == [3.0]


def test_a_hook_is_not_called_if_the_sweep_does_not_come_there():
    seen = []

    def f(a, b):
        hook(seen.append, a)
        hook(seen.append, a * 2)
        return a * b

    assert gradient(f, 2.0, 3.0) == (3.0, 2.0)
    assert seen == []


def test_a_hook_is_called_once_in_every_sweep():
    seen = []
    _, pull = pullback(lambda x: hook(lambda bar: seen.append(float(bar)), x) * 2, 1.0)
    pull(1.0)
    pull(5.0)
    assert seen == [2.0, 10.0]


def test_a_hook_is_called_once_though_zero_meets_infinity():
    seen = []

    def f(x):
        y = np.sqrt(hook(lambda bar: seen.append(bar.copy()), x))
        return np.sum(y[1:])

    close(gradient(f, np.array([0.0, 4.0]))[0], [0.0, 0.25])
    assert len(seen) == 1
    close(seen[0], [0.0, 0.25])


def test_hooks_of_hooks_act_in_order():
    order = []

    def f(x):
        x = hook(lambda bar: order.append(("first", float(bar))), x)
        return hook(lambda bar: (order.append(("second", float(bar))), bar * 2)[1], x) * 3

    assert gradient(f, 1.0) == (6.0,)
    assert order == [("second", 3.0), ("first", 6.0)]


def test_a_hook_cannot_change_the_cotangent_in_place_by_accident():
    def damage(bar):
        with pytest.raises(ValueError, match="read-only"):
            bar[0] = 99.0

    close(gradient(lambda x: np.sum(hook(damage, x) * X), X)[0], X)


def test_a_hook_may_keep_the_cotangent():
    kept = []

    def f(x):
        y = hook(kept.append, x)
        return y[0] * 2 + y[1] * 3 + np.sum(y)

    close(gradient(f, X)[0], [3.0, 4.0])
    close(np.array(kept[0]), [3.0, 4.0])


@pytest.mark.parametrize("result", [1.0, np.ones(3), np.ones((1, 2)), [[1.0]]])
def test_a_result_of_another_shape_is_refused_with_both_shapes(result):
    with pytest.raises(PullbackError) as caught:
        gradient(lambda x: np.sum(hook(lambda bar: result, x)), X)
    assert str(np.shape(result)) in str(caught.value)
    assert "(2,)" in str(caught.value)


def test_a_result_is_cast_to_the_dtype_of_the_value():
    x = X.astype(np.float32)
    (x_bar,) = gradient(lambda x: np.sum(hook(lambda bar: [1, 2], x)), x)
    assert x_bar.dtype == np.float32
    close(x_bar, [1.0, 2.0])


def test_the_cotangent_has_the_dtype_of_the_value():
    kinds = []
    gradient(lambda x: np.sum(hook(lambda bar: kinds.append(bar.dtype), x) * 2.0), X.astype(np.float32))
    gradient(lambda z: np.abs(np.sum(hook(lambda bar: kinds.append(bar.dtype), z))), X * 1j)
    assert kinds == [np.float32, np.complex128]


def test_what_is_not_traced_passes_through_a_hook():
    seen = []
    for plain in (3.0, X, "text", None):
        assert hook(seen.append, plain) is plain
    assert gradient(lambda x: hook(seen.append, dropgrad(x)) * x, 2.0) == (2.0,)
    assert seen == []


def test_a_hook_of_a_container_of_traced_values_is_refused():
    with pytest.raises(InputError, match="container"):
        gradient(lambda x: hook(print, [x, x])[0] * 1.0, 2.0)
    with pytest.raises(InputError, match="container"):
        gradient(lambda x: hook(print, {"a": x})["a"] * 1.0, 2.0)


def test_a_hook_is_the_identity_in_forward_mode():
    seen = []
    assert jvp(lambda x: hook(seen.append, x) * x, (3.0,), (1.0,)) == (9.0, 6.0)
    assert jvp(lambda x: hook(operator.neg, x) * 2, (3.0,), (1.0,)) == (6.0, 2.0)
    assert seen == []


def test_a_hook_acts_on_the_level_at_which_its_value_is_traced():
    seen = []

    def f(x):
        # x belongs to the outer level: the inner sweep must not call the hook.
        x = hook(lambda bar: seen.append("outer"), x)
        (slope,) = gradient(lambda y: x * y * y, 3.0)
        assert seen == []
        return slope

    assert gradient(f, 2.0) == (6.0,)
    assert seen == ["outer"]
    seen.clear()

    def g(x):
        (slope,) = gradient(lambda y: hook(lambda bar: seen.append("inner"), y) ** 2 * x, 3.0)
        assert seen == ["inner"]
        return slope

    assert gradient(g, 2.0) == (6.0,)
    assert seen == ["inner"]


def test_a_hook_of_an_inner_level_sees_a_traced_cotangent_that_it_may_use():
    def f(x):
        return gradient(lambda y: hook(lambda bar: bar * bar, y) * x, 3.0)[0]

    # The cotangent is x, the hook makes it x².
    assert gradient(f, 5.0) == (10.0,)


def test_second_derivatives_go_through_a_hook():
    close(hessian(lambda x: np.sum(hook(lambda bar: None, x) ** 3), X), np.diag(6 * X))
    close(hessian(lambda x: np.sum(hook(operator.neg, x) ** 3), X), np.diag(-6 * X))


def test_a_hook_works_on_parameters_and_in_back():
    w = param([1.0, 2.0])
    seen = []
    y = hook(lambda bar: (seen.append(bar.tolist()), bar * 10)[1], w * w)
    back(np.sum(y), once=False)
    close(w.grad, 20 * X)
    back(np.sum(y))
    close(w.grad, 40 * X)
    assert seen == [[1.0, 1.0], [1.0, 1.0]]
    back(np.sum(hook(operator.neg, w)))
    close(w.grad, 40 * X - 1)


def test_a_hook_works_in_a_gradient_of_parameters():
    w = param([1.0, 2.0])
    grads = gradient(lambda: np.sum(hook(operator.neg, w) * 3), Params([w]))
    close(grads[w], [-3.0, -3.0])


def test_an_exception_of_a_hook_passes_unchanged():
    error = LookupError("mine")

    def fail(bar):
        raise error

    with pytest.raises(LookupError) as caught:
        gradient(lambda x: hook(fail, x) * 2, 1.0)
    assert caught.value is error
    assert error.__cause__ is None
    assert gradient(lambda x: x * 2, 1.0) == (2.0,)


def test_a_hook_may_take_gradients_itself():
    def clip(bar):
        return gradient(lambda b: np.sum(b**2) / 2, bar)[0]

    close(gradient(lambda x: np.sum(hook(clip, x) * 3), X)[0], [3.0, 3.0])


def test_a_hook_inside_ignore_is_not_recorded():
    seen = []

    def f(x):
        with ignore():
            y = hook(seen.append, x)
            assert not istracked(y * 2)
        return x * 2.0

    assert gradient(f, 1.0) == (2.0,)
    assert seen == []


def test_a_gradient_taken_inside_ignore_calls_its_hooks():
    seen = []
    with ignore():
        result = gradient(lambda x: hook(lambda bar: seen.append(float(bar)), x) * 2, 1.0)
    assert result == (2.0,)
    assert seen == [2.0]


# --- showgrad ----------------------------------------------------------------------------------------------------


def printed(capsys, f, *args):
    result = gradient(f, *args)
    return result, capsys.readouterr().out


def test_showgrad_prints_the_name_of_its_argument(capsys):
    assert printed(capsys, lambda a, b: showgrad(a) * b, 2.0, 3.0) == ((3.0, 2.0), "∂(a) = 3.0\n")


def test_the_gradient_shown_is_that_of_the_use(capsys):
    assert printed(capsys, lambda a: showgrad(a) * a, 2.0) == ((4.0,), "∂(a) = 2.0\n")


def test_an_unused_value_shows_none_at_the_end_of_the_sweep(capsys):
    def f(a, b):
        showgrad(a)
        return showgrad(b) * a

    assert printed(capsys, f, 2.0, 3.0) == ((3.0, 2.0), "∂(b) = 2.0\n∂(a) = None\n")


def test_nothing_is_printed_before_the_sweep(capsys):
    _, pull = pullback(lambda a: showgrad(a) * 2, 1.0)
    assert capsys.readouterr().out == ""
    pull(1.0)
    pull(3.0)
    assert capsys.readouterr().out == "∂(a) = 2.0\n∂(a) = 6.0\n"


def test_an_unused_value_shows_none_in_every_sweep(capsys):
    def f(a):
        showgrad(a)
        return a * 2

    _, pull = pullback(f, 1.0)
    pull(1.0)
    pull(1.0)
    assert capsys.readouterr().out == "∂(a) = None\n∂(a) = None\n"


@pytest.mark.parametrize(
    ("f", "text"),
    [
        (lambda d: showgrad(d["a"]) * 2, 'd["a"]'),
        (lambda d: showgrad(d["a"] * 3) * 2, 'd["a"] * 3'),
        (lambda d: showgrad(x=d["a"]) * 2, 'd["a"]'),
        (lambda d: rg.showgrad(d["a"]) * 2, 'd["a"]'),
        (lambda d: rg.showgrad(np.sin(d["a"])) * 2, 'np.sin(d["a"])'),
        (lambda d: sum(showgrad(v) for v in d.values()) * 2, "v"),
        (
            lambda d: showgrad(
                d["a"]
                + 1
            ) * 2,
            'd["a"] + 1',
        ),
        (lambda d: showgrad(showgrad(d["a"])) * 2, 'showgrad(d["a"])'),
    ],
)  # fmt: skip
def test_the_text_is_the_callers_own(capsys, f, text):
    _, out = printed(capsys, f, {"a": 1.0})
    assert out.splitlines()[0] == f"∂({text}) = 2.0"


def test_two_calls_in_one_line_are_told_apart(capsys):
    _, out = printed(capsys, lambda a, b: showgrad(a) * showgrad(b), 2.0, 3.0)
    assert sorted(out.splitlines()) == ["∂(a) = 3.0", "∂(b) = 2.0"]


def test_a_call_without_source_shows_something_all_the_same(capsys):
    f = eval("lambda a: showgrad(a) * 2", {"showgrad": showgrad})
    result, out = printed(capsys, f, 1.0)
    assert result == (2.0,)
    assert out.startswith("∂(")
    assert out.endswith(") = 2.0\n")


@pytest.mark.parametrize(
    ("x", "shown"),
    [
        (1.0, "2.0"),
        (1, "2.0"),
        (np.float64(1), "2.0"),
        (np.float32(1), "2.0"),
        (np.array(1.0), "2.0"),
        (np.array([1.0, 1.0]), "[2. 2.]"),
        (np.ones((2, 2)), "[[2. 2.]\n [2. 2.]]"),
        (np.ones(2, np.float32), "[2. 2.]"),
    ],
)
def test_the_value_is_printed_as_str_shows_it(capsys, x, shown):
    _, out = printed(capsys, lambda a: np.sum(showgrad(a) * 2), x)
    assert out == f"∂(a) = {shown}\n"


def test_showgrad_of_what_is_not_traced_is_the_value():
    assert showgrad(3.0) == 3.0
    assert showgrad("text") == "text"


def test_showgrad_in_forward_mode_prints_nothing(capsys):
    assert jvp(lambda a: showgrad(a) * 2, (1.0,), (1.0,)) == (2.0, 2.0)
    assert capsys.readouterr().out == ""


def test_showgrad_in_back_prints(capsys):
    w = param(2.0)
    back(showgrad(w) * w)
    close(w.grad, 4.0)
    assert capsys.readouterr().out == "∂(w) = 2.0\n"


def test_showgrad_in_a_gradient_of_parameters_prints(capsys):
    w, v = param(2.0), param(3.0)

    def f():
        showgrad(v)
        return showgrad(w) * w

    gradient(f, Params([w, v]))
    assert capsys.readouterr().out == "∂(w) = 2.0\n∂(v) = None\n"


def test_showgrad_in_nested_gradients_prints_plain_values(capsys):
    result = gradient(lambda x: gradient(lambda a: showgrad(a) * x * a, 3.0)[0], 5.0)
    assert result == (6.0,)
    assert capsys.readouterr().out == "∂(a) = 15.0\n"


def test_an_unreached_value_shows_none_in_a_gradient_that_is_taken_inside_ignore(capsys):
    def f(a, b):
        showgrad(a)
        return b * 2.0

    with ignore():
        assert gradient(f, 1.0, 1.0) == (None, 2.0)
    assert capsys.readouterr().out == "∂(a) = None\n"


def test_showgrad_keeps_no_graph_of_parameters_alive():
    import gc
    import weakref

    w = param(np.ones(3))
    kept = np.full(3, 2.0)
    alive = weakref.ref(kept)
    y = showgrad(w * kept)
    del kept, y
    gc.collect()
    assert alive() is None
