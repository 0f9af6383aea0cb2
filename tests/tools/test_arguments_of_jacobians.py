"""What jacobian and hessian differentiate in: containers, parameters, chosen arguments; and what they say otherwise."""

from __future__ import annotations

import tracemalloc
from typing import NamedTuple

import numpy as np
import pytest
from truth import close

from retrograde import (
    BatchError,
    Grads,
    InputError,
    Params,
    diaghessian,
    grad,
    gradient,
    hessian,
    jacobian,
    param,
    primitive,
    value_and_grad,
    vmap,
    withjacobian,
)

X = np.array([0.5, -1.0, 2.0])


class Line(NamedTuple):
    slope: np.ndarray
    offset: float


def cubic(p):
    return np.sum(p["a"] ** 3) * p["b"] + p["b"] ** 2


# --- containers --------------------------------------------------------------------------------------------------


def test_a_hessian_of_a_dictionary_has_blocks_in_dictionaries():
    H = hessian(cubic, {"a": X, "b": 3.0})
    close(H["a"]["a"], np.diag(18 * X))
    close(H["a"]["b"], 3 * X**2)
    close(H["b"]["a"], 3 * X**2)
    assert H["b"]["b"] == 2.0
    assert sorted(H) == sorted(H["a"]) == ["a", "b"]
    D = diaghessian(cubic, {"a": X, "b": 3.0})
    close(D["a"], 18 * X)
    assert D["b"] == 2.0


def test_a_hessian_of_several_containers_has_the_structure_of_the_gradient_outside():
    H = hessian(lambda line, x: np.sum((line.slope * x + line.offset) ** 2), Line(X, 1.0), X)
    assert type(H[0]) is Line
    assert type(H[1][0]) is Line
    close(H[0].slope[0].slope, np.diag(2 * X**2))
    close(H[0].slope[0].offset, 2 * X)
    close(H[0].offset[1], 2 * X)
    close(H[1][1], np.diag(2 * X**2))
    close(H[1][0].slope, np.diag(2 * (2 * X**2 + 1.0)))
    close(H[0].slope[1], np.diag(2 * (2 * X**2 + 1.0)))


def test_a_hessian_of_a_list_of_arrays_has_lists_of_blocks():
    H = hessian(lambda parts: np.sum(parts[0] ** 2 * parts[1]), [X, np.ones(3)])
    close(H[0][0], 2 * np.eye(3))
    close(H[0][1], np.diag(2 * X))
    close(H[1][1], np.zeros((3, 3)))


def test_constants_in_a_container_are_passed_on_and_have_none():
    H = hessian(lambda d: np.sum(d["x"] ** 2) if d["how"] == "square" else 0.0, {"x": X, "how": "square"})
    close(H["x"]["x"], 2 * np.eye(3))
    assert H["how"] is None
    assert H["x"]["how"] is None


def test_an_argument_without_numbers_has_no_hessian():
    with pytest.raises(InputError, match=r"holds none, but a str(.|\n)*argnums="):
        hessian(lambda x, how: np.sum(x**2), X, "square")
    close(hessian(lambda x, how: np.sum(x**2), X, "square", argnums=0), 2 * np.eye(3))


# --- parameters --------------------------------------------------------------------------------------------------


def test_parameters_have_jacobians_and_hessians_by_name():
    w, b = param(X), param(3.0)
    J = jacobian(lambda: np.concatenate([w * w, [b]]), Params([w, b]))
    assert type(J) is Grads
    close(J[w], np.concatenate([np.diag(2 * X), np.zeros((1, 3))]))
    close(J[b], [0, 0, 0, 1])
    assert withjacobian(lambda: b * b, Params([b])).val == 9.0
    H = hessian(lambda: np.sum(w**3) * b, Params([w, b]))
    close(H[w][w], np.diag(18 * X))
    close(H[w][b], 3 * X**2)
    close(H[b][w], 3 * X**2)
    close(H[b][b], 0.0)
    assert w.grad is None or not np.any(w.grad)


def test_what_parameters_do_not_have_is_refused():
    w = param(X)
    with pytest.raises(InputError, match=r"reverse mode only"):
        jacobian(lambda: w * 2, Params([w]), mode="forward")
    with pytest.raises(InputError, match="nothing beside the parameters"):
        hessian(lambda: np.sum(w), Params([w]), 2.0)
    with pytest.raises(InputError, match="not Params"):
        diaghessian(lambda: np.sum(w), Params([w]))


# --- chosen arguments --------------------------------------------------------------------------------------------


def test_argnums_choose_arguments():
    f = lambda x, y: np.sum(x**2) * y**3
    close(hessian(f, X, 2.0, argnums=0), 16 * np.eye(3))
    close(hessian(f, argnums=-1)(X, 2.0), 12 * np.sum(X**2))
    (yy, yx), (_, xx) = hessian(f, X, 2.0, argnums=(1, 0))
    close(yy, 12 * np.sum(X**2))
    close(yx, 24 * X)
    close(xx, 16 * np.eye(3))
    close(hessian(f, X, 2.0, argnums=(0,))[0][0], 16 * np.eye(3))
    close(jacobian(lambda x, y: x * y, X, 2.0, argnums=1), X)
    close(jacobian(lambda x, y: x * y, X, 2.0, argnums=(0,))[0], 2 * np.eye(3))
    close(diaghessian(f, X, 2.0, argnums=0), np.full(3, 16.0))
    close(withjacobian(lambda x, n: x**n, X, 2, argnums=0).grad, np.diag(2 * X))


@pytest.mark.parametrize("argnums", [3.0, X, {}, "x", (0, 1.5), np.ones(1)])
@pytest.mark.parametrize("transform", [grad, value_and_grad])
def test_an_argument_in_the_place_of_argnums_is_noticed_at_once(transform, argnums):
    with pytest.raises(InputError, match=r"argnums= of \w+ says by number(.|\n)*gradient\(f, x\), which evaluates"):
        transform(np.sum, argnums)


def test_argnums_may_be_any_integers():
    assert grad(lambda x, y: x * y, np.int64(1))(2.0, 3.0) == 2.0
    assert grad(lambda x, y: x * y, [0, 1])(2.0, 3.0) == (3.0, 2.0)
    for argnums in (2, -3, (0, 0)):
        with pytest.raises(InputError, match="names an argument"):
            hessian(lambda x, y: x * y, 2.0, 3.0, argnums=argnums)
    with pytest.raises(InputError, match="an integer, or a tuple"):
        jacobian(lambda x: x, 1.0, argnums=0.0)


# --- what is run, how often, in what memory ----------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["forward", "reverse", "auto"])
@pytest.mark.parametrize("error", [TypeError, ValueError, ZeroDivisionError, InputError])
def test_an_error_of_the_function_comes_out_of_its_first_run(mode, error):
    runs = []

    def f(x):
        runs.append(0)
        np.sin(x)
        raise error("mine")

    for transform, loss in ((jacobian, f), (hessian, f)):
        runs.clear()
        with pytest.raises(error, match="mine") as caught:
            transform(loss, X, mode=mode)
        assert len(runs) == 1
        assert any(entry.name == "f" for entry in caught.traceback)
        assert caught.value.__context__ is None


def test_an_error_in_a_rule_of_the_user_is_that_of_one_direction():
    @primitive
    def double(x):
        return 2 * x

    double.defpullback(lambda y, x: lambda y_bar: (y_bar * {}["factor"],))
    double.defpushforward(lambda y, x: lambda x_dot: x_dot * {}["factor"])
    for mode in ("forward", "reverse"):
        with pytest.raises(KeyError, match="factor"):
            jacobian(double, X, mode=mode)
    with pytest.raises(KeyError, match="factor"):
        vmap(grad(lambda x: np.sum(double(x))))(np.stack([X, X]))


def test_a_rule_of_the_user_for_plain_arrays_is_run_for_one_example_after_the_other():
    shapes = []

    @primitive
    def product(x, y):
        return x * y

    def times(a, b):
        assert type(a) is np.ndarray
        shapes.append(a.shape)
        return a * b

    product.defpullback(lambda out, x, y: lambda y_bar: (times(y_bar, y), None))
    product.defpushforward(lambda out, x, y: lambda x_dot, y_dot: times(x_dot, y))
    xs = np.stack([X, 2 * X, -X])
    close(jacobian(lambda x: product(x, X), X), np.diag(X))
    close(jacobian(lambda x: product(x, X), X, mode="forward"), np.diag(X))
    close(vmap(grad(lambda x: np.sum(product(x, X) ** 2)))(xs), 2 * xs * X**2)
    close(gradient(lambda x: np.sum(vmap(lambda x: product(x, X))(x)), xs)[0], np.stack([X, X, X]))
    assert {(3,)} <= set(shapes)


def test_a_chunk_bounds_the_memory():
    n = 400
    x = np.linspace(0.1, 1.0, n)
    f = lambda x: np.tanh(np.sin(np.exp(np.cumsum(x) / n) * x) + np.cos(x))
    whole = 8 * n * n  # the Jacobian itself

    def peak(**how):
        tracemalloc.start()
        J = jacobian(f, x, **how)
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return J, found

    want, most = peak()
    assert most > 2.5 * whole
    for mode in ("forward", "reverse"):
        J, least = peak(mode=mode, chunk=10)
        close(J, want)
        assert least < 1.5 * whole  # the Jacobian, and a chunk


@pytest.mark.parametrize("chunk", [1, 2, 3, 100])
@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_chunks_of_every_size_give_the_same(mode, chunk):
    f = lambda x: np.concatenate([[x @ x], np.sin(x) * x[::-1], x / (2 + x[0])])
    close(jacobian(f, X, mode=mode, chunk=chunk), jacobian(f, X))
    close(hessian(lambda x: np.sum(f(x) ** 2), X, mode=mode, chunk=chunk), hessian(lambda x: np.sum(f(x) ** 2), X))


def test_a_function_that_cannot_be_mapped_says_so_of_vmap_alone():
    """A batch of values has no branch, but a batch of directions runs on plain values."""
    f = lambda x: x**2 if x[0] > 0 else -x
    with pytest.raises(BatchError, match="branch"):
        vmap(f)(np.stack([X, X]))
    close(jacobian(f, X), np.diag(2 * X))


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_the_dtype_is_that_of_the_output_and_the_argument_together(mode):
    single = X.astype(np.float32)
    assert jacobian(lambda x: x * 2, single, mode=mode).dtype == np.float32
    assert jacobian(lambda x: x * X, single, mode=mode).dtype == np.float64
    assert jacobian(lambda x: x.astype(np.float32), X, mode=mode).dtype == np.float64
    assert jacobian(lambda x: np.ones(2), single, mode=mode).dtype == np.float64
    blocks = jacobian(lambda a, n: {"y": a * n, "z": 1j * a}, single, np.arange(3), mode=mode)
    assert [b.dtype for b in blocks["y"]] == [np.float64, np.float64]
    assert [b.dtype for b in blocks["z"]] == [np.complex64, np.complex128]


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_an_interrupt_closes_the_progress_bar_and_leaves_nothing_behind(mode, capsys):
    pytest.importorskip("tqdm")

    @primitive
    def stopping(x):
        return x * 2

    count = []

    def stop(v):
        count.append(0)
        if len(count) > 2:
            raise KeyboardInterrupt
        return v * 2

    stopping.defpullback(lambda y, x: lambda y_bar: (stop(y_bar),))
    stopping.defpushforward(lambda y, x: lambda x_dot: stop(x_dot))
    with pytest.raises(KeyboardInterrupt):
        jacobian(stopping, np.ones(8), mode=mode, chunk=2, progress=True)
    assert "4/8" in capsys.readouterr().err
    count.clear()
    close(jacobian(stopping, np.ones(2), mode=mode), 2 * np.eye(2))
    close(gradient(lambda x: np.sum(x * x), X)[0], 2 * X)
