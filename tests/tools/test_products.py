"""hvp, vhp, linearize and linear_operator."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from truth import close

from retrograde import (
    InputError,
    MissingExtraError,
    MissingRuleError,
    SeedError,
    checkpointed,
    dropgrad,
    grad,
    gradient,
    hessian,
    hook,
    hvp,
    jacobian,
    jvp,
    linear_operator,
    linearize,
    primitive,
    vhp,
)

X = np.array([0.5, -1.0, 2.0])
V = np.array([1.0, -2.0, 0.5])


@dataclasses.dataclass
class Model:
    w: Any
    b: Any
    name: str = "model"


def f(x):
    return np.sum(np.sin(x) * x[::-1] ** 2)


# The Hessian of f, by hand: -sin(x) r² + 2 sin(r) on the diagonal, 2 (cos(x) r + cos(r) x) on the other one.
HESSIAN = np.diag(-np.sin(X) * X[::-1] ** 2 + 2 * np.sin(X[::-1]))
HESSIAN += 2 * (np.cos(X) * X[::-1] + np.cos(X[::-1]) * X) * np.eye(3)[::-1]

both = pytest.mark.parametrize("product", [hvp, vhp])


@both
def test_the_product_is_the_hessian_times_the_vector(product):
    close(product(f, X, V), HESSIAN @ V)
    close(product(f, X, V), hessian(f, X) @ V)
    close(product(f)(X, V), HESSIAN @ V)
    close(product(lambda x, *, n: np.sum(x**n), X, V, n=3), 6 * X * V)
    assert product(lambda x: x**3, 2.0, 5.0) == 60.0


@both
def test_the_product_has_the_structure_of_its_argument(product):
    model = Model(X, 2.0)
    found = product(lambda m: np.sum(m.w**2) * m.b**2, model, Model(np.ones(3), 1.0))
    assert type(found) is Model
    close(found.w, 2 * 4.0 * np.ones(3) + 4 * 2.0 * X)
    close(found.b, 2 * np.sum(X**2) + 4 * 2.0 * np.sum(X))


@both
def test_a_product_without_a_path_is_zeros(product):
    close(product(np.sum, X, X), np.zeros(3))
    close(product(lambda x: 3.0, X, X), np.zeros(3))
    found = product(lambda m: np.sum(m.w**2), Model(X, 2.0), Model(V, 1.0))
    close(found.w, 2 * V)
    assert found.b == 0.0


@both
def test_a_direction_that_does_not_fit_is_refused(product):
    with pytest.raises(SeedError, match=r"shape \(2,\).*shape \(3,\)"):
        product(f, X, np.ones(2))
    with pytest.raises(SeedError, match="structure"):
        product(lambda m: np.sum(m.w**2), Model(X, 2.0), [X, 1.0])


@both
def test_products_are_differentiated_themselves(product):
    close(gradient(lambda x: np.sum(product(lambda y: np.sum(y**4), x, x)), X)[0], 36 * X**2)
    close(jvp(lambda v: product(f, X, v), (V,), (X,))[1], HESSIAN @ X)
    close(grad(lambda a: product(lambda x: a * x**3, 2.0, 1.0))(1.0), 12.0)


def test_only_vhp_does_without_pushforwards():
    @primitive
    def cube(x):
        return x**3

    cube.defpullback(lambda y, x: lambda y_bar: (3 * y_bar * square(x),))

    @primitive
    def square(x):
        return x**2

    square.defpullback(lambda y, x: lambda y_bar: (2 * y_bar * x,))
    close(vhp(lambda x: np.sum(cube(x)), X, V), 6 * X * V)
    with pytest.raises(MissingRuleError, match="forward mode"):
        hvp(lambda x: np.sum(cube(x)), X, V)


# --- linearize ---------------------------------------------------------------------------------------------------

A = np.array([[1.0, 2.0, -1.0], [0.5, -0.3, 4.0]])


def filled(x):
    """A function that writes into an array of its own, through a view too."""
    r = np.zeros(4)
    r[0] = x[0] * x[1]
    r[1:] = x**2
    tail = r[2:]
    tail *= x[0]
    return r


LINEARISED = {
    "product": lambda x: A @ np.sin(x),
    "writes": filled,
    "scalar": lambda x: np.sum(x**3),
    "constant": lambda x: np.ones(2),
    "some unused": lambda x: x[1:] * 2,
    "linear algebra": lambda x: np.linalg.solve(np.outer(x, x) + 3 * np.eye(3), x),
    "loop": lambda x: np.array([x[i] * x[i - 1] for i in range(3)]),
    "gradient": lambda x: gradient(f, x)[0],
    "checkpoint": lambda x: checkpointed(lambda x: np.exp(np.sin(x)), x),
}


@pytest.mark.parametrize("name", LINEARISED)
def test_a_linearised_function_pushes_as_the_function_itself(name):
    function = LINEARISED[name]
    y, push = linearize(function, X)
    close(y, function(X))
    for v in (V, np.zeros(3), -X):
        close(push(v), jvp(function, (X,), (v,))[1], 1e-12, 1e-14)


def test_a_linearised_function_is_run_once():
    runs = []

    def counted(x):
        runs.append(1)
        return np.sin(x) * x

    _, push = linearize(counted, X)
    for v in np.eye(3):
        close(push(v), (np.cos(X) * X + np.sin(X)) * v)
    assert len(runs) == 1


def test_linearize_takes_and_gives_containers():
    def model(p, k):
        return {"a": p["w"] @ k, "b": (np.sum(p["b"] ** 2), "text")}

    args, tangents = ({"w": A, "b": 2.0}, X), ({"w": A, "b": 1.0}, V)
    y, push = linearize(model, *args)
    y_dot = push(*tangents)
    want = jvp(model, args, tangents)[1]
    close(y_dot["a"], want["a"])
    close(y_dot["b"][0], 4.0)
    assert y["b"][1] == "text"
    assert y_dot["b"][1] is None
    close(push(None, V)["a"], A @ V)
    close(linearize(lambda x, *, n: x**n)(X, n=2)[1](V), 2 * X * V)
    assert linearize(lambda x: x * x, 3.0)[1](2.0) == 12.0


def test_linearize_refuses_tangents_that_do_not_fit():
    _, push = linearize(lambda x: x * x, X)
    with pytest.raises(SeedError, match=r"shape \(2,\).*shape \(3,\)"):
        push(np.ones(2))
    with pytest.raises(SeedError, match="1 primals were given 2 tangents"):
        push(V, V)


def test_a_linearised_complex_function_pushes_complex_tangents():
    z = np.array([1 + 2j, 0.5 - 1j])
    _, push = linearize(lambda z: z**2 * z[0], z)
    v = np.array([1j, 2.0 - 1j])
    close(push(v), jvp(lambda z: z**2 * z[0], (z,), (v,))[1])


def test_hooks_are_the_identity_in_a_linearised_function():
    seen = []
    _, push = linearize(lambda x: hook(lambda x_bar: seen.append(x_bar) or 2 * x_bar, x) ** 2, X)
    close(push(V), 2 * X * V)
    assert seen == []


def test_an_infinite_partial_is_no_news_where_the_tangent_is_zero():
    x = np.array([0.0, 4.0])
    _, push = linearize(np.sqrt, x)
    close(push(np.array([0.0, 1.0])), [0.0, 0.25])


def test_linearised_functions_are_differentiated_themselves():
    close(gradient(lambda a: linearize(lambda x: a * x**2, 3.0)[1](1.0), 2.0)[0], 6.0)
    close(gradient(lambda a: linearize(lambda x: x**3, a)[1](1.0), 2.0)[0], 12.0)
    close(jvp(lambda x: linearize(lambda y: y**3, x)[1](V), (X,), (V,))[1], 6 * X * V * V)
    _, push = linearize(np.sin, X)
    close(gradient(lambda v: np.sum(push(v)), V)[0], np.cos(X))


def test_the_arrays_of_the_caller_may_change_after_linearize():
    x = X.copy()
    _, push = linearize(lambda x: x * x, x)
    x[:] = 0
    close(push(V), 2 * X * V)


# --- linear_operator ---------------------------------------------------------------------------------------------

N = 40


def chain(x):
    """Residuals of a chain of springs that are not linear."""
    return np.diff(x, prepend=0.0, append=0.0) + 0.1 * np.diff(x, prepend=0.0, append=0.0) ** 3


def energy(x):
    return np.sum(chain(x) ** 2) / 2 + np.sum(np.cosh(x))


POINT = np.linspace(-1.0, 1.5, N)


def test_an_operator_of_a_jacobian_multiplies_from_both_sides():
    op = linear_operator(chain, POINT)
    J = jacobian(chain, POINT)
    rng = np.random.default_rng(0)
    v, u, V, U = (rng.standard_normal(shape) for shape in ((N,), (N + 1,), (N, 3), (N + 1, 2)))
    assert op.shape == (N + 1, N)
    assert op.dtype == np.float64
    close(op.matvec(v), J @ v)
    close(op.matvec(v[:, None]), J @ v[:, None])
    close(op.rmatvec(u), J.T @ u)
    close(op.matmat(V), J @ V)
    close(op.rmatmat(U), J.T @ U)
    close(op @ v, J @ v)
    close(op.T @ u, J.T @ u)
    close(op.H @ U, J.T @ U)
    close((2 * op) @ v, 2 * J @ v)
    close(op @ (v + 1j * v), J @ (v + 1j * v))
    close(op @ np.zeros((N, 0)), np.zeros((N + 1, 0)))


def test_an_operator_of_a_hessian_is_symmetric():
    op = linear_operator(energy, POINT, kind="hessian")
    H = hessian(energy, POINT)
    close(op @ np.eye(N), H, 1e-9, 1e-12)
    close(op.T @ np.eye(N), H, 1e-9, 1e-12)


def test_an_operator_of_gauss_newton_leaves_second_derivatives_of_the_residuals_out():
    J = jacobian(chain, POINT)
    close(linear_operator(chain, POINT, kind="gauss_newton") @ np.eye(N), J.T @ J)

    def loss(r):
        return np.sum(np.log1p(r**2))

    op = linear_operator(chain, POINT, kind="gauss_newton", loss=loss)
    close(op @ np.eye(N), J.T @ hessian(loss, chain(POINT)) @ J, 1e-9, 1e-12)
    close(op.H @ np.eye(N), op @ np.eye(N))


def test_containers_are_vectors_to_an_operator():
    x = {"w": A, "b": 2.0, "name": "text"}

    def model(p):
        return [p["w"] @ X * p["b"], np.sum(p["w"])]

    op = linear_operator(model, x)
    assert op.shape == (3, 7)
    # The leaves of a dictionary stand in the order of its sorted keys: b, then w.
    want = np.zeros((3, 7))
    want[:2, 0] = A @ X
    want[0, 1:4] = want[1, 4:] = 2 * X
    want[2, 1:] = 1
    close(op @ np.eye(7), want)
    close(op.T @ np.eye(3), want.T)
    assert linear_operator(lambda x: x**2, 3.0).matvec([2.0]) == 12.0
    close(linear_operator(lambda x: x**2)(np.ones((2, 2))) @ np.ones(4), np.full(4, 2.0))
    close(linear_operator(lambda x: np.float32(2) * x, np.ones(2, np.float32)) @ np.ones(2), [2.0, 2.0])


def test_operators_of_holomorphic_functions_are_complex():
    z = np.array([1 + 2j, 0.5 - 1j])
    op = linear_operator(lambda z: z**2 * z[0], z)
    J = np.array([[3 * z[0] ** 2, 0], [z[1] ** 2, 2 * z[1] * z[0]]])
    assert op.dtype == np.complex128
    close(op @ np.eye(2), J)
    close(op.H @ np.eye(2), J.conj().T)
    with pytest.raises(InputError, match="not holomorphic"):
        linear_operator(np.conj, z)
    with pytest.raises(InputError, match="real numbers to complex ones"):
        linear_operator(lambda x: x * 1j, X)
    with pytest.raises(InputError, match="no complex Hessian"):
        linear_operator(lambda z: np.sum(np.abs(z) ** 2), z, kind="hessian")
    J = jacobian(lambda x: np.exp(1j * x), X)
    close(
        linear_operator(lambda x: np.exp(1j * x), X, kind="gauss_newton") @ np.eye(3),
        np.real(J.conj().T @ J),
        1e-9,
        1e-12,
    )


def test_the_solvers_of_scipy_take_the_operators():
    linalg = pytest.importorskip("scipy.sparse.linalg")
    rng = np.random.default_rng(0)
    J, H = jacobian(chain, POINT), hessian(energy, POINT)
    b, c = rng.standard_normal(N), rng.standard_normal(N + 1)
    op, curvature = linear_operator(chain, POINT), linear_operator(energy, POINT, kind="hessian")
    close(linalg.cg(curvature, b, rtol=1e-12)[0], np.linalg.solve(H, b), 1e-7, 1e-9)
    close(linalg.lsmr(op, c, atol=1e-12, btol=1e-12)[0], np.linalg.lstsq(J, c)[0], 1e-5, 1e-7)
    close(np.sort(linalg.eigsh(curvature, 3, v0=b)[0]), np.linalg.eigvalsh(H)[-3:], 1e-8, 1e-9)
    close(np.sort(linalg.svds(op, 3, v0=b, return_singular_vectors=False)), np.linalg.svdvals(J)[2::-1], 1e-8, 1e-9)
    gauss_newton = linear_operator(chain, POINT, kind="gauss_newton")
    close(linalg.cg(gauss_newton, b, rtol=1e-12)[0], np.linalg.solve(J.T @ J, b), 1e-6, 1e-9)


def test_an_operator_refuses_what_it_cannot_hold():
    with pytest.raises(InputError, match="traced argument"):
        gradient(lambda x: np.sum(linear_operator(lambda y: y * y, x) @ V), X)
    with pytest.raises(InputError, match="closes over a traced value"):
        gradient(lambda a: np.sum(linear_operator(lambda y: a * y * y, X) @ V), 2.0)
    with pytest.raises(InputError, match="'hesse' is none of"):
        linear_operator(energy, POINT, kind="hesse")
    with pytest.raises(InputError, match="loss= belongs to"):
        linear_operator(energy, POINT, kind="hessian", loss=energy)
    with pytest.raises(InputError, match="returned a set"):
        linear_operator(lambda x: {1, 2}, X)
    close(gradient(lambda x: np.sum(x * (linear_operator(np.sin, dropgrad(x)) @ V)), X)[0], np.cos(X) * V)


def test_an_operator_without_scipy_says_what_to_install(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "scipy.sparse.linalg", None)
    with pytest.raises(MissingExtraError, match=r"'\.\[scipy\]'"):
        linear_operator(chain, POINT)
