"""checkpointed: the same derivatives, with one part of the tape in memory at a time."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
from truth import close, differences

from retrograde import (
    Buffer,
    Params,
    PullbackError,
    RetrogradeError,
    back,
    checkpointed,
    grad,
    gradient,
    hessian,
    hook,
    ignore,
    istracked,
    jacobian,
    jvp,
    param,
    pullback,
    showgrad,
)

X = np.array([0.5, 1.5])


def test_a_checkpoint_changes_neither_value_nor_gradient():
    f = lambda x: np.sum(np.sin(x) * x)
    y, pull = pullback(lambda x: checkpointed(f, x) ** 2, X)
    want = 2 * f(X) * (np.cos(X) * X + np.sin(X))
    close(y, f(X) ** 2)
    close(pull(1.0)[0], want)
    close(pull(2.0)[0], 2 * want)


def test_outside_of_transforms_a_checkpoint_is_a_call():
    assert checkpointed(lambda x, *, n: x * n, 2.0, n=3) == 6.0


def test_the_part_runs_once_forward_and_once_in_every_sweep():
    runs = []

    def f(x):
        runs.append(istracked(x))
        return x * x

    _, pull = pullback(lambda x: checkpointed(f, x), 3.0)
    assert len(runs) == 1
    assert pull(1.0) == (6.0,)
    assert len(runs) == 2
    pull(1.0)
    assert len(runs) == 3


def test_outputs_of_every_structure_come_back():
    def block(x):
        a = np.sin(x)
        return {"a": a, "pair": (a * x, 3.0, "text", None), "n": 2}

    def f(x):
        out = checkpointed(block, x)
        assert out["pair"][1:] == (3.0, "text", None)
        assert out["n"] == 2
        return np.sum(out["a"]) + np.sum(out["pair"][0] ** 2)

    s, c = np.sin(X), np.cos(X)
    close(gradient(f, X)[0], c + 2 * X * s * (s + X * c))


def test_an_output_that_is_not_used_or_is_the_argument_itself():
    assert gradient(lambda x: checkpointed(lambda x: (x * x, x * 3), x)[1], 2.0) == (3.0,)
    assert gradient(lambda x: checkpointed(lambda x: x, x) * x, 2.0) == (4.0,)
    assert gradient(lambda x: checkpointed(lambda x: (x, x), x)[0] * x, 2.0) == (4.0,)
    assert gradient(lambda x: checkpointed(lambda x: 3.0, x) * x, 2.0) == (3.0,)
    assert gradient(lambda x, y: checkpointed(lambda x: x * x, x) * 1.0, 2.0, 3.0) == (4.0, None)


def test_arguments_of_every_structure_go_in():
    def f(d, y):
        return checkpointed(lambda d, *, y, n: d["a"] * d["b"][0] * y**n, d, y=y, n=2)

    d_bar, y_bar = gradient(f, {"a": 2.0, "b": [3.0]}, 5.0)
    assert d_bar == {"a": 75.0, "b": [50.0]}
    assert y_bar == 60.0


def test_closures_over_traced_values_are_handled_right():
    def f(x, y):
        z = x * y
        return checkpointed(lambda x: x * z * y, x)

    # x² y²
    assert gradient(f, 2.0, 3.0) == (36.0, 24.0)


def test_a_part_without_arguments_that_closes_over_everything():
    assert gradient(lambda x, y: checkpointed(lambda: x * x * y), 2.0, 3.0) == (12.0, 4.0)


def test_closures_over_parameters_are_handled_right():
    w, v = param(2.0), param(3.0)
    back(checkpointed(lambda: w * w * v))
    close(w.grad, 12.0)
    close(v.grad, 4.0)
    grads = gradient(lambda: checkpointed(lambda x: x * w * w, v), Params([w, v]))
    assert (grads[w], grads[v]) == (12.0, 4.0)


def test_a_checkpoint_of_parameters_may_be_swept_again_and_shared():
    w = param(2.0)
    y = checkpointed(lambda w: w * w * w, w)
    a, b = y * 2, y * y
    back(a, once=False)
    close(w.grad, 24.0)
    back(b)
    close(w.grad, 24.0 + 2 * 8 * 12)
    back(a)
    close(w.grad, 48.0 + 2 * 8 * 12)


def test_a_parameter_that_is_updated_between_the_runs_is_noticed_or_harmless():
    w = param(2.0)
    y = checkpointed(lambda: w * w)
    with ignore():
        w -= 1.0
    try:
        back(y)
    except PullbackError:
        close(w.grad, 0.0)
    else:
        close(w.grad, 4.0)


def test_checkpoints_nest():
    def inner(x):
        return np.sin(x) * x

    def outer(x):
        return checkpointed(inner, checkpointed(inner, x)) * x

    plain = lambda x: np.sum(inner(inner(x)) * x)
    close(gradient(lambda x: np.sum(checkpointed(outer, x)), X)[0], gradient(plain, X)[0])
    runs = []

    def counted(x):
        runs.append(1)
        return x * x

    assert gradient(lambda x: checkpointed(lambda x: checkpointed(counted, x) * x, x), 2.0) == (12.0,)
    # Forward, in the second run of the outer part, and again in the sweep of that.
    assert len(runs) == 3


@pytest.mark.parametrize("depth", [2, 3, 5])
def test_deep_nests_of_checkpoints_are_right(depth):
    def f(x):
        g = lambda x: x * x
        for _ in range(depth):
            g = lambda x, g=g: checkpointed(g, x) * 1.5
        return g(x)

    assert gradient(f, 2.0)[0] == pytest.approx(4.0 * 1.5**depth)


def test_recursive_checkpointing_of_a_long_chain_is_right():
    def chain(x, n):
        if n == 1:
            return np.sin(x)
        return checkpointed(chain, checkpointed(chain, x, n // 2), n - n // 2)

    def plain(x):
        slope = 1.0
        for _ in range(32):
            x, slope = np.sin(x), slope * np.cos(x)
        return slope

    close(grad(chain)(0.7, 32), plain(0.7))


def test_in_forward_mode_a_checkpoint_is_transparent():
    assert jvp(lambda x: checkpointed(lambda x: x**3, x), (2.0,), (1.0,)) == (8.0, 12.0)


def test_second_derivatives_go_through_a_checkpoint():
    f = lambda x: checkpointed(lambda x: np.sum(np.sin(x) * x), x)
    want = np.diag(2 * np.cos(X) - X * np.sin(X))
    close(hessian(f, X), want)
    close(jacobian(lambda x: gradient(f, x)[0], X), want)
    assert gradient(lambda x: gradient(lambda x: checkpointed(lambda x: x**3, x), x)[0], 2.0) == (12.0,)
    assert gradient(lambda x: checkpointed(lambda x: gradient(lambda y: y**3, x)[0], x), 2.0) == (12.0,)


def test_a_closure_of_an_outer_level_is_right_at_every_order():
    def f(x):
        # d/dy of x y² is 2 x y, whose derivative in x at y = 3 is 6.
        return gradient(lambda y: checkpointed(lambda y: x * y * y, y), 3.0)[0]

    assert gradient(f, 2.0) == (6.0,)
    assert jvp(f, (2.0,), (1.0,)) == (12.0, 6.0)


def test_a_part_that_is_random_is_refused_in_its_second_run():
    rng = np.random.default_rng(0)
    with pytest.raises(PullbackError, match="other values") as caught:
        gradient(lambda x: checkpointed(lambda x: x * rng.normal(), x), 2.0)
    assert "arguments" in str(caught.value)
    assert gradient(lambda x: x * x, 3.0) == (6.0,)


def test_an_error_in_the_second_run_passes_and_leaves_everything_right():
    runs = []

    def fails_again(x):
        runs.append(1)
        if len(runs) == 2:
            raise KeyError("second run")
        return x * x

    _, pull = pullback(lambda x: checkpointed(fails_again, x), 3.0)
    with pytest.raises(KeyError, match="second run"):
        pull(1.0)
    assert pull(1.0) == (6.0,)
    assert gradient(lambda x: checkpointed(lambda x: x * x, x), 3.0) == (6.0,)


def test_a_value_of_the_part_that_leaks_out_of_it_is_not_silently_constant():
    kept = []

    def part(x):
        kept.append(x * x)
        return x * 3.0

    def f(x):
        return checkpointed(part, x) + kept[0]

    # 3 + 2x is right, an error is honest, 3 is the silent loss of a derivative.
    try:
        (x_bar,) = gradient(f, 2.0)
    except Exception as error:
        assert "checkpoint" in str(error)  # noqa: PT017
    else:
        assert x_bar == 7.0


def test_a_checkpoint_inside_ignore_records_nothing():
    def f(x):
        with ignore():
            y = checkpointed(lambda x: x * x, x)
        assert not istracked(y)
        return y * x

    assert gradient(f, 3.0) == (9.0,)


def test_a_hook_inside_a_checkpoint_sees_one_cotangent_a_sweep():
    seen = []

    def part(x):
        return hook(lambda bar: seen.append(float(bar)), x * x) * 2.0

    _, pull = pullback(lambda x: checkpointed(part, x), 3.0)
    assert pull(1.0) == (12.0,)
    assert seen == [2.0]
    pull(10.0)
    assert seen == [2.0, 20.0]


def test_a_hook_inside_a_checkpoint_is_called_once_though_a_partial_is_infinite():
    seen = []

    def part(x):
        return np.sum(np.sqrt(hook(lambda bar: seen.append(bar), x))[1:])

    (x_bar,) = gradient(lambda x: checkpointed(part, x), np.array([0.0, 4.0]))
    close(x_bar, [0.0, 0.25])
    assert len(seen) == 1


def test_showgrad_inside_a_checkpoint_prints_reached_and_unreached(capsys):
    def part(a, b):
        showgrad(b)
        return showgrad(a) * 2.0

    assert gradient(lambda a, b: checkpointed(part, a, b) * b, 3.0, 5.0) == (10.0, 6.0)
    assert sorted(capsys.readouterr().out.splitlines()) == ["∂(a) = 10.0", "∂(b) = None"]


def test_a_checkpoint_keeps_no_intermediate_value():
    alive = []

    def block(x):
        kept = np.full(1000, 1.01)
        alive.append(weakref.ref(kept))
        return x * kept * kept

    def f(x):
        for _ in range(5):
            x = checkpointed(block, x)
        return np.sum(x)

    _, pull = pullback(f, np.ones(1000))
    gc.collect()
    assert not any(ref() is not None for ref in alive)
    close(pull(1.0)[0], np.full(1000, 1.01**10))


def test_a_sweep_over_checkpoints_holds_one_part_at_a_time():
    alive, most = [], []

    def block(x):
        kept = np.full(1000, 1.01)
        alive.append(weakref.ref(kept))
        most.append(sum(ref() is not None for ref in alive))
        return x * kept

    def f(x):
        for _ in range(5):
            x = checkpointed(block, x)
        return np.sum(x)

    gradient(f, np.ones(1000))
    assert max(most) == 1


def test_integers_and_float32_pass_through_a_checkpoint():
    x = np.array([1.0, 2.0], np.float32)
    (x_bar,) = gradient(lambda x: np.sum(checkpointed(lambda x: x * 2, x)), x)
    assert x_bar.dtype == np.float32

    def count(x, n):
        for _ in range(n):
            x = x * 2.0
        return x

    assert gradient(lambda x, n: checkpointed(count, x, n), 1.0, 3) == (8.0, None)


def test_a_part_may_fill_a_buffer_of_its_own():
    def part(x):
        b = Buffer(x, 3)
        b[0] = x[0] * x[1]
        for i in (1, 2):
            b[i] = b[i - 1] * x[0]
        b[1:] *= 2.0
        return b.copy()

    plain = lambda x: np.sum(np.array([x[0] * x[1], 2 * x[0] ** 2 * x[1], 2 * x[0] ** 3 * x[1]]) * np.arange(1.0, 4.0))
    f = lambda x: np.sum(checkpointed(part, x) * np.arange(1.0, 4.0))
    close(gradient(f, X)[0], differences(plain, X), 1e-8)
    close(jvp(f, (X,), (X,))[1], differences(plain, X) @ X, 1e-8)
    w = param(X)
    back(f(w))
    close(w.grad, differences(plain, X), 1e-8)


def test_a_part_that_writes_into_a_buffer_from_outside_is_right_or_refused():
    def f(x):
        b = Buffer(x)
        checkpointed(lambda: b.__setitem__(0, x[0] * 3.0))
        return b.copy()[0] * x[1]

    try:
        (x_bar,) = gradient(f, X)
    except RetrogradeError as error:
        assert "checkpointed" in str(error)  # noqa: PT017
    else:
        close(x_bar, [3 * X[1], 3 * X[0]])


def test_a_gradient_taken_inside_a_part_may_fill_a_buffer_of_its_own():
    def square(y):
        b = Buffer([0.0], 1)
        b[0] = y
        return b.copy()[0] ** 2

    inner = lambda x: gradient(square, x)[0]
    assert gradient(lambda x: checkpointed(inner, x), 3.0) == (2.0,)
    w = param(3.0)
    back(checkpointed(lambda: inner(w) * w))
    close(w.grad, 12.0)
