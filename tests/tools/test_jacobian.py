"""jacobian, withjacobian, hessian and diaghessian."""

from __future__ import annotations

import dataclasses
import sys
from typing import Any

import numpy as np
import pytest
from truth import close, differences

from retrograde import (
    InputError,
    MissingExtraError,
    MissingRuleError,
    ScalarError,
    back,
    data,
    diaghessian,
    grad,
    gradient,
    hessian,
    hook,
    hvp,
    istracked,
    jacobian,
    jvp,
    param,
    primitive,
    withjacobian,
)

X = np.array([0.5, -1.0, 2.0])
A = np.array([[1.0, 2.0, -1.0], [0.5, -0.3, 4.0]])


# --- jacobian ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("f", "x"),
    [
        (lambda x: x * x, X),
        (lambda x: A @ np.sin(x), X),
        (lambda x: A.T @ np.sin(x[:2]), X),
        (lambda x: np.outer(x, x), X),
        (lambda x: np.sum(x**3), X),
        (lambda x: np.array([x, x**2]), 1.5),
        (lambda x: x**2, 1.5),
        (lambda x: x.T @ x, A),
        (lambda x: np.linalg.norm(x), A),
        (lambda x: x[0], A),
        (lambda x: x * 2, np.array(3.0)),
        (lambda x: x[:0], X),
    ],
)
def test_the_jacobian_has_the_shape_of_the_output_and_then_of_the_input(f, x):
    J = jacobian(f, x)
    want = differences(lambda x: np.asarray(f(x if np.ndim(x) else x[()])), x)
    assert np.shape(J) == np.shape(f(x)) + np.shape(x)
    close(J, want, 1e-8, 1e-9)


def test_several_arguments_give_a_tuple():
    Jx, Jy = jacobian(lambda x, y: x * y**2, X, 2.0)
    close(Jx, 4 * np.eye(3))
    close(Jy, 4 * X)


def test_keywords_go_to_the_function_and_the_function_alone_gives_a_function():
    close(jacobian(lambda x, *, n: x**n, X, n=2), np.diag(2 * X))
    close(jacobian(lambda x: x**2)(X), np.diag(2 * X))
    close(jacobian(lambda x, f: x * f, X, f=3.0), 3 * np.eye(3))


def test_no_path_gives_zeros():
    close(jacobian(lambda x: np.ones((2, 2)), X), np.zeros((2, 2, 3)))
    close(jacobian(lambda x: 3.0, X), np.zeros(3))
    _, Jy = jacobian(lambda x, y: x * 1.0, X, np.ones(2))
    close(Jy, np.zeros((3, 2)))


def test_empty_inputs_and_outputs_give_empty_jacobians():
    close(jacobian(lambda x: np.ones(2) * np.sum(x), np.zeros(0)), np.zeros((2, 0)))
    close(jacobian(lambda x: x[:0], X), np.zeros((0, 3)))
    close(jacobian(lambda x: x, np.zeros(0)), np.zeros((0, 0)))


def test_a_flat_list_is_a_vector():
    close(jacobian(lambda ab: ab[0] * ab[1], [2, 3]), [3.0, 2.0])
    close(jacobian(lambda ab: [ab[0] * ab[1], ab[0]], [2.0, 3.0]), [[3.0, 2.0], [1.0, 0.0]])

    def unpacks(ab):
        a, b = ab
        return a**b

    close(jacobian(unpacks, [2.0, 3.0]), [12.0, 8 * np.log(2)])


@dataclasses.dataclass
class Model:
    w: Any
    b: Any


def test_a_container_gives_a_container_of_jacobians():
    J = jacobian(lambda m: A @ m.w + m.b, Model(X, np.ones(2)))
    assert type(J) is Model
    close(J.w, A)
    close(J.b, np.eye(2))
    J = jacobian(lambda d: d["x"] * d["y"][0], {"x": X, "y": (2.0, "text")})
    close(J["x"], 2 * np.eye(3))
    close(J["y"][0], X)
    assert J["y"][1] is None


def test_the_dtype_is_that_of_the_values():
    x = X.astype(np.float32)
    assert jacobian(lambda x: x * x, x).dtype == np.float32
    assert jacobian(lambda x: np.concatenate([x, x]) ** 2, x).dtype == np.float32
    assert jacobian(lambda x: x * x, np.array([1, 2])).dtype == np.float64
    close(jacobian(lambda x: x * x, np.array([1, 2])), np.diag([2.0, 4.0]))


@pytest.mark.parametrize("outputs", [1, 3, 5])
def test_a_complex_jacobian_is_that_of_the_holomorphic_function_by_rows_and_by_columns(outputs):
    z = np.array([1 + 2j, 0.5 - 1j, 2.0])
    M = (np.arange(outputs * 3) + 1j).reshape(outputs, 3)
    close(jacobian(lambda z: M @ (z * z), z), M * 2 * z)


@pytest.mark.parametrize("outputs", [1, 3, 5])
def test_the_jacobian_of_a_complex_function_of_real_numbers_is_complex(outputs):
    M = (np.arange(outputs * 3) + 1.0).reshape(outputs, 3)
    close(jacobian(lambda x: M @ np.exp(1j * x), X), M * 1j * np.exp(1j * X))


def test_what_is_no_array_is_refused_as_an_output():
    with pytest.raises(InputError, match="str"):
        jacobian(lambda x: {"a": "text"}, X)
    with pytest.raises(InputError, match="None"):
        jacobian(lambda x: None, X)


def test_a_container_of_results_gives_a_container_of_jacobians():
    val, J = withjacobian(lambda x, y: {"a": x * y, "b": (np.sum(x), [y, y])}, X, 2.0)
    close(val["a"], 2 * X)
    close(J["a"][0], 2 * np.eye(3))
    close(J["a"][1], X)
    close(J["b"][0][0], np.ones(3))
    close(J["b"][1][0][0], np.zeros(3))
    close(J["b"][1][1][1], 1.0)
    J = jacobian(lambda m: Model(A @ m.w, m.b * m.w[0]), Model(X, 2.0))
    close(J.w.w, A)
    close(J.w.b, np.zeros(2))
    close(J.b.w, [2.0, 0.0, 0.0])


@pytest.mark.parametrize("mode", ["auto", "forward", "reverse"])
@pytest.mark.parametrize("chunk", [None, 1, 2, 100])
def test_every_mode_and_chunk_gives_the_same_jacobian(mode, chunk):
    def f(x, y):
        return np.outer(np.sin(x), y) + np.sum(x * x)

    Y = np.array([[1.0, 2.0], [3.0, 4.0]])
    Jx, Jy = jacobian(f, X, Y, mode=mode, chunk=chunk)
    close(Jx, differences(lambda x: f(x, Y), X), 1e-8, 1e-9)
    close(Jy, differences(lambda y: f(X, y), Y), 1e-8, 1e-9)
    H = hessian(lambda x: np.sum(f(x, Y) ** 2), X, mode=mode, chunk=chunk)
    close(H, jacobian(grad(lambda x: np.sum(f(x, Y) ** 2)), X))
    close(diaghessian(lambda x: np.sum(f(x, Y) ** 2), X, chunk=chunk), np.diag(H))


def test_a_mode_or_a_chunk_that_there_is_not_is_refused():
    with pytest.raises(InputError, match="mode='backward'"):
        jacobian(lambda x: x, X, mode="backward")
    for chunk in (0, -1, 2.5, True):
        with pytest.raises(InputError, match=f"chunk={chunk}"):
            jacobian(lambda x: x, X, chunk=chunk)


def test_the_function_may_branch_on_its_values_which_are_the_same_for_all_directions():
    runs = []

    def f(x):
        runs.append(type(float(data(x[0]))))
        return x * x if x[0] > 0 else -x

    close(jacobian(f, X, mode="forward"), np.diag(2 * X))
    assert runs == [float]  # all directions in one run
    close(jacobian(f, -X), -np.eye(3))


def test_what_cannot_be_mapped_is_done_one_direction_at_a_time():
    import scipy.fft  # compiled code, which takes plain arrays only

    @primitive
    def transform(x):
        return scipy.fft.dct(x)

    M = np.array([scipy.fft.dct(e) for e in np.eye(3)]).T
    transform.defpullback(lambda y, x: lambda y_bar: (plain_only(M.T, y_bar),))
    transform.defpushforward(lambda y, x: lambda x_dot: plain_only(M, x_dot))

    def plain_only(m, v):
        assert type(v) is np.ndarray
        return m @ v

    close(jacobian(transform, X, mode="reverse"), M)
    close(jacobian(transform, X, mode="forward"), M)


def test_a_hook_sees_one_row_after_the_other():
    seen = []
    jacobian(lambda x: hook(lambda bar: seen.append(bar.copy()), x) * 2, X, mode="reverse")
    close(np.array(seen), 2 * np.eye(3))


def test_progress_is_shown_on_request(capsys):
    close(jacobian(lambda x: x * x, X, progress=True, chunk=1), np.diag(2 * X))
    assert "3/3" in capsys.readouterr().err
    close(hessian(lambda x: np.sum(x**3), X, progress=True), np.diag(6 * X))
    close(diaghessian(lambda x: np.sum(x**3), X, progress=True), 6 * X)


def test_progress_without_the_package_that_shows_it_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    with pytest.raises(MissingExtraError, match="tqdm"):
        jacobian(lambda x: x * x, X, progress=True)


def test_a_promise_saves_the_check_whether_a_function_is_holomorphic():
    z = np.array([1 + 2j, 0.5 - 1j])
    runs = []
    f = lambda z: runs.append(0) or z * z
    close(jacobian(f, z, holomorphic=True, mode="forward"), np.diag(2 * z))
    assert len(runs) == 1
    with pytest.raises(InputError, match="holomorphic"):
        jacobian(lambda z: np.abs(z), z)


def test_withjacobian_gives_the_value_too():
    val, J = withjacobian(lambda x: A @ x, X)
    close(val, A @ X)
    close(J, A)
    result = withjacobian(lambda x, y: x * y, X, 2.0)
    close(result.val, 2 * X)
    close(result.grad[1], X)
    assert withjacobian(lambda x: x * x)(3.0) == (9.0, 6.0)


def test_a_function_is_differentiated_by_rows_where_a_rule_has_no_pushforward():
    @primitive
    def double(x):
        return np.concatenate([x, x])

    double.defpullback(lambda y, x: lambda y_bar: (y_bar[: len(x)] + y_bar[len(x) :],))
    close(jacobian(double, X), np.concatenate([np.eye(3), np.eye(3)]))
    with pytest.raises(MissingRuleError, match="pushforward"):
        jvp(double, (X,), (X,))


# --- hessian -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("f", "x"),
    [
        (lambda x: np.sum(x**3) + x[0] * x[1] * x[2], X),
        (lambda x: np.prod(x) + np.max(x) ** 2, X),
        (lambda x: np.sum(np.sin(x[:, None] * x)), X),
        (lambda x: np.log(np.sum(np.exp(x))), X),
        (lambda x: np.linalg.norm(x) ** 3, X),
        (lambda x: np.sum(x @ x.T @ x), A[:, :2]),
        (lambda x: np.linalg.slogdet(np.outer(x, x) + 2 * np.eye(3))[1], X),
        (lambda x: sum(x[i] * x[i + 1] ** 2 for i in range(2)), X),
        (lambda x: x**4, 1.5),
        (lambda x: np.cos(x) * x, np.array(0.7)),
    ],
)
def test_the_hessian_agrees_with_differences_of_the_gradient_by_differences(f, x):
    H = hessian(f, x)
    assert np.shape(H) == 2 * np.shape(x)
    plain = lambda x: f(x if np.ndim(x) else x[()])
    want = differences(lambda x: differences(plain, x, 2e-2), x, 2e-2)
    close(H, want, 1e-5, 1e-5)


def test_the_hessian_of_a_flat_list_is_a_matrix():
    close(hessian(lambda ab: ab[0] * ab[1], [2, 3]), [[0.0, 1.0], [1.0, 0.0]])
    close(hessian(lambda ab: sum(a**3 for a in ab), [2.0, 3.0]), np.diag([12.0, 18.0]))


def test_several_arguments_give_blocks():
    H = hessian(lambda x, y: np.sum(x**2) * y**3, X, 2.0)
    close(H[0][0], 16 * np.eye(3))
    close(H[0][1], 24 * X)
    close(H[1][0], 24 * X)
    close(H[1][1], 12 * np.sum(X**2))


def test_keywords_and_currying_work_for_the_hessian():
    close(hessian(lambda x, *, n: np.sum(x**n), X, n=3), np.diag(6 * X))
    close(hessian(lambda x: np.sum(x**3))(X), np.diag(6 * X))
    close(hessian(lambda x, f: np.sum(x**2) * f, X, f=3.0), 6 * np.eye(3))


def test_a_hessian_without_a_path_is_zeros():
    close(hessian(np.sum, X), np.zeros((3, 3)))
    close(hessian(lambda x: 3.0, X), np.zeros((3, 3)))
    close(hessian(lambda x: x[0] * 2, X), np.zeros((3, 3)))
    H = hessian(lambda x, y: np.sum(x**2), X, 1.0)
    close(H[0][1], np.zeros(3))
    close(H[1][1], 0.0)
    close(H[1][0], np.zeros(3))
    close(hessian(np.sum, np.zeros(0)), np.zeros((0, 0)))


def test_a_hessian_is_of_a_real_scalar():
    with pytest.raises(ScalarError):
        hessian(lambda x: x * x, X)
    with pytest.raises(ValueError, match="NaN"):
        hessian(lambda x: np.sum(x) * np.nan, X)


def test_a_hessian_in_float32_is_float32():
    H = hessian(lambda x: np.sum(x**3), X.astype(np.float32))
    assert H.dtype == np.float32
    close(H, np.diag(6 * X), 1e-6)


def test_reverse_over_reverse_serves_where_a_rule_has_no_pushforward():
    @primitive
    def cube(x):
        return x**3

    cube.defpullback(lambda y, x: lambda y_bar: (y_bar * 3 * square(x),))

    @primitive
    def square(x):
        return x**2

    square.defpullback(lambda y, x: lambda y_bar: (y_bar * 2 * x,))
    close(hessian(lambda x: np.sum(cube(x)), X), np.diag(6 * X))


# --- diaghessian -----------------------------------------------------------------------------------------------------


def f(x):
    return np.sum(np.sin(x) * x[::-1] ** 2)


def test_the_diagonal_is_that_of_the_hessian():
    close(diaghessian(f, X), np.diag(hessian(f, X)))
    close(diaghessian(lambda x: np.sum(x**3))(X), 6 * X)
    close(diaghessian(lambda x: np.sum(x @ x.T), A), np.full((2, 3), 2.0) * 1.0)
    assert diaghessian(lambda x: x**3, 2.0) == 12.0
    dx, dy = diaghessian(lambda x, y: np.sum(x**2) * y**3, X, 2.0)
    close(dx, np.full(3, 16.0))
    close(dy, 12 * np.sum(X**2))


def test_the_diagonal_of_an_empty_argument_is_empty():
    close(diaghessian(np.sum, np.zeros(0)), np.zeros(0))


# --- nesting -----------------------------------------------------------------------------------------------------


def test_jacobians_and_hessians_are_differentiated_themselves():
    close(gradient(lambda x: np.sum(jacobian(lambda y: y**3, x)), X)[0], 6 * X)
    close(gradient(lambda x: np.sum(hessian(lambda y: np.sum(y**4), x)), X)[0], 24 * X)
    close(jacobian(lambda x: np.diagonal(hessian(lambda y: np.sum(y**4), x)), X), np.diag(24 * X))
    close(jvp(lambda x: hvp(lambda y: np.sum(y**3), x, x), (X,), (np.ones(3),))[1], 12 * X)
    close(hessian(lambda x: np.sum(jacobian(lambda y: y**3, x)), X), 6 * np.eye(3))
    close(jacobian(jacobian(lambda x: x**3), 2.0), 12.0)
    close(grad(lambda a: hessian(lambda x: a * x**3, 2.0))(1.0), 12.0)


def test_a_jacobian_of_a_function_of_a_parameter_is_tracked():
    w = param(2.0)
    J = jacobian(lambda x: w * x * x, X)
    assert istracked(J)
    back(np.sum(J))
    close(w.grad, np.sum(2 * X))


def test_nothing_of_the_caller_is_changed():
    x = X.copy()
    jacobian(lambda x: x * x, x)
    hessian(lambda x: np.sum(x**3), x)
    hvp(lambda x: np.sum(x**3), x, x)
    close(x, X)
