"""Linear algebra in compiled programs: what a run meets where the formulas are not written for it."""

from __future__ import annotations

import numpy as np
import pytest
from compiler.harness import specialised
from truth import close

import retrograde as rg
from retrograde.compiler.bridge import Bridge


def pulled(f, *args):
    of = specialised(f, args)
    y_bar = [np.ones(np.shape(y))[()] for y in Bridge(of).j(args, ())]
    return Bridge(of).t(args, y_bar, ())


def eigenvector(a):
    return np.linalg.eigh(a)[1][0]


def eigenvalue(a):
    return np.linalg.eigh(a)[0][0]


def test_equal_eigenvalues_whose_vectors_are_used_raise():
    with pytest.raises(np.linalg.LinAlgError, match=r"eigenvalues are equal.*test_linalg\.py:\d+"):
        pulled(eigenvector, np.eye(2))


def test_eigenvalues_alone_may_be_equal():
    assert np.sum(pulled(eigenvalue, np.eye(2))[0]) == 1.0


def determinant(a):
    return np.linalg.det(a)


def test_the_determinant_of_a_singular_matrix_raises():
    for a in (np.ones((3, 3)), np.diag([1.0, 1.0, 1e-9])):
        with pytest.raises(np.linalg.LinAlgError, match=r"[Ss]ingular"):
            pulled(determinant, a)


def factors(a):
    return np.linalg.qr(a)[1]


def test_qr_of_a_wide_matrix_raises():
    with pytest.raises(np.linalg.LinAlgError, match="more columns than rows"):
        pulled(factors, np.ones((2, 3)))


def completed(a):
    return np.linalg.svd(a)[0][:, 2]


def test_columns_that_complete_a_basis_raise():
    with pytest.raises(np.linalg.LinAlgError, match="complete an orthonormal basis"):
        pulled(completed, np.arange(6.0).reshape(3, 2))


def test_shapes_are_compared():
    def solved(a, b):
        return np.linalg.solve(a, b)

    with pytest.raises(ValueError, match="must be square"):
        pulled(solved, np.ones((2, 3)), np.ones(2))


def fitted(a, b):
    return np.linalg.lstsq(a, b)[0]


def misfit(a, b):
    x, residuals, rank, s = np.linalg.lstsq(a, b, 1e-9)
    return np.sum(x * x * x) * rank + np.sum(residuals * residuals) + np.sum(s**3)


@pytest.mark.usefixtures("as_plain_python")
@pytest.mark.parametrize("shapes", [((5, 3), (5,)), ((5, 3), (5, 2)), ((3, 3), (3,)), ((2, 4), (2,))])
def test_least_squares_have_the_derivatives_of_the_eager_engine(shapes):
    rng = np.random.default_rng(0)
    a, b, u, v = (rng.normal(size=shape) for shape in shapes * 2)
    c = rg.compile(misfit, cache=False)
    for got, want in zip(rg.gradient(c, a, b), rg.gradient(misfit, a, b), strict=True):
        close(got, want, rtol=1e-8)
    close(rg.jvp(c, (a, b), (u, v))[1], rg.jvp(misfit, (a, b), (u, v))[1], rtol=1e-8)


def test_the_normal_equations_hold_for_the_derivative_of_a_solution_of_least_squares():
    rng = np.random.default_rng(1)
    a, b, u = rng.normal(size=(6, 3)), rng.normal(size=6), rng.normal(size=(6, 3))
    c = rg.compile(fitted, cache=False)
    x, x_dot = rg.jvp(lambda a: c(a, b), (a,), (u,))
    close(a.T @ (a @ x - b), np.zeros(3), atol=1e-12)
    close(u.T @ (a @ x - b) + a.T @ (u @ x + a @ x_dot), np.zeros(3), atol=1e-11)


@pytest.mark.usefixtures("as_plain_python")
def test_least_squares_of_a_matrix_without_full_rank_raise():
    c = rg.compile(fitted, cache=False)
    a = np.array([[1.0, 2.0, 3.0], [0.0, 1.0, 1.0], [2.0, 0.0, 2.0], [1.0, 1.0, 2.0]])
    for bad in (a, a.T, np.zeros((3, 2))):
        with pytest.raises(np.linalg.LinAlgError, match=r"rank is not full.*test_linalg\.py:\d+"):
            rg.gradient(lambda a: np.sum(c(a, np.ones(len(bad)))), bad)  # noqa: B023
    with pytest.raises(ValueError, match="differ in their first axis"):
        rg.gradient(lambda a: np.sum(c(a, np.ones(2))), a)


def test_what_is_written_into_a_decomposition_of_constants_has_a_derivative():
    def f(x):
        m = np.eye(3) * 2.0
        y = np.linalg.solve(m, np.ones(3))
        w, _ = np.linalg.eigh(m + np.diag(np.arange(3.0)))
        q = np.linalg.inv(m)
        y[1] *= x[0] ** 2
        w[2] = x[1] * w[2]
        q[0, 0] += x[2]
        return np.sum(y) + np.sum(w**2) + np.sum(q**3)

    compiled = rg.compile(f, cache=False)
    x = np.array([0.5, 1.5, 2.0])
    np.testing.assert_allclose(rg.gradient(compiled, x)[0], [0.5, 48.0, 18.75])
    np.testing.assert_allclose(rg.jvp(compiled, (x,), (x,))[1], 0.25 + 72.0 + 37.5)
    np.testing.assert_allclose(rg.hvp(compiled, x, x), [0.5, 48.0, 30.0])
