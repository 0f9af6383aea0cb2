"""SciPy's sparse matrices times traced values, against the same with the dense matrix."""

import numpy as np
import pytest

import retrograde as rg
from retrograde import back, gradient, hessian, jacobian, jvp, param, vmap

sparse = pytest.importorskip("scipy.sparse")

DENSE = np.array([[1.0, 0.0, -2.0], [0.0, 0.0, 0.5], [3.0, 4.0, 0.0], [0.0, 0.0, 0.0]])
X = np.array([0.3, -0.7, 1.1])
Z = np.array([0.2, 0.9, -0.4, 0.6])
FORMATS = ["bsr", "coo", "csc", "csr", "dia", "dok", "lil"]

PRODUCTS = {
    "A @ x": (lambda A, x: A @ x, X),
    "A @ X": (lambda A, x: A @ x, np.outer(X, [1.0, 2.0])),
    "A.T @ x": (lambda A, x: A.T @ x, Z),
    "x @ A": (lambda A, x: x @ A, Z),
    "X @ A": (lambda A, x: x @ A, np.outer([1.0, 2.0], Z)),
    # An array does not ask what it is multiplied by.
    "A.dot(x)": (lambda A, x: A @ x if type(A) is np.ndarray else A.dot(x), X),
}
MODES = {
    "gradient": lambda f, x: gradient(lambda x: np.sum(np.sin(f(x))), x)[0],
    "jvp": lambda f, x: jvp(f, (x,), (np.cos(x),))[1],
    "hessian": lambda f, x: hessian(lambda x: np.sum(np.sin(f(x))), x),
    "jacobian, forward": lambda f, x: jacobian(f, x, mode="forward"),
    "jacobian, reverse": lambda f, x: jacobian(f, x, mode="reverse"),
    "taylor": lambda f, x: rg.taylor(lambda x: np.sin(f(x)), x, np.cos(x), 3)[3],
    "vmap": lambda f, x: vmap(f)(np.stack([x, 2.0 * x])),
    "gradient of vmap": lambda f, x: gradient(lambda x: np.sum(vmap(f)(np.stack([x, x * x]))), x)[0],
    "vmap of gradient": lambda f, x: vmap(lambda x: gradient(lambda x: np.sum(f(x) ** 2), x)[0])(np.stack([x, -x])),
    "complex": lambda f, x: gradient(lambda x: np.sum(np.abs(f(x * (1 + 2j)))), x)[0],
    "float32": lambda f, x: gradient(lambda x: np.sum(f(x)), x.astype(np.float32))[0],
}


@pytest.mark.parametrize("kind", ["array", "matrix"])
@pytest.mark.parametrize("name", FORMATS)
def test_a_constant_sparse_matrix_times_a_traced_array_is_that_of_the_dense_one(name, kind):
    A = getattr(sparse, f"{name}_{kind}")(DENSE)
    for product, (multiply, x) in PRODUCTS.items():
        for mode in ("gradient", "hessian", "vmap"):
            got, wanted = (MODES[mode](lambda x, B=B, by=multiply: by(B, x), x) for B in (A, DENSE))
            np.testing.assert_allclose(got, wanted, err_msg=f"{mode} of {product}")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("product", PRODUCTS)
def test_every_mode_knows_products_of_sparse_matrices(product, mode):
    multiply, x = PRODUCTS[product]
    A = sparse.csr_array(DENSE)
    got, wanted = (MODES[mode](lambda x, B=B: multiply(B, x), x) for B in (A, DENSE))
    np.testing.assert_allclose(got, wanted, rtol=1e-6)
    assert got.dtype == wanted.dtype


def test_the_star_of_sparse_matrices_is_their_product():
    A = sparse.csr_matrix(DENSE)
    np.testing.assert_allclose(jacobian(lambda x: A * x, X), DENSE)
    np.testing.assert_allclose(jacobian(lambda x: x * A, Z), DENSE.T)


def test_complex_sparse_matrices_follow_the_convention_of_dense_ones():
    A = sparse.csc_array(DENSE * (1.0 + 0.5j))
    for x in (X, X * (1.0 - 2.0j)):
        got, wanted = (gradient(lambda x, B=B: np.sum(np.abs(B @ x) ** 2), x)[0] for B in (A, A.toarray()))
        np.testing.assert_allclose(got, wanted)
        assert got.dtype == wanted.dtype


@pytest.mark.parametrize("name", ["csr", "csc", "coo"])
def test_the_numbers_of_a_sparse_matrix_can_be_traced(name):
    A = getattr(sparse, f"{name}_array")(DENSE)
    places = A.coords if name == "coo" else (A.indices, A.indptr)

    def f(x, scale, make):
        B = make(np.sin(x[0] * A.data))
        return np.sum(((scale * B) @ x) ** 2)

    def stored(data):
        numbers = (data, places) if name == "coo" else (data, *places)
        return type(A)(numbers, shape=A.shape)

    def dense(data):
        B = np.zeros(DENSE.shape)
        B[A.tocoo().coords] = data
        return B

    for got, wanted in zip(gradient(f, X, 2.0, stored), gradient(f, X, 2.0, dense), strict=True):
        if wanted is not None:
            np.testing.assert_allclose(got, wanted)
    mapped = vmap(lambda d: stored(d) @ X)(np.stack([A.data, 2.0 * A.data]))
    np.testing.assert_allclose(mapped, [DENSE @ X, 2.0 * DENSE @ X])
    mapped = vmap(lambda d, x: stored(d) @ x)(np.stack([A.data, 2.0 * A.data]), np.stack([X, -X]))
    np.testing.assert_allclose(mapped, [DENSE @ X, -2.0 * DENSE @ X])
    pattern = rg.sparse_jacobian(lambda d: stored(d) @ X, A.data).toarray()
    np.testing.assert_allclose(pattern, jacobian(lambda d: dense(d) @ X, A.data))


def test_the_pattern_of_a_product_is_that_of_the_matrix():
    n = 50
    A = sparse.diags_array([np.ones(n), -np.ones(n - 1)], offsets=[0, 1])
    J = rg.sparse_jacobian(lambda x: A @ np.sin(x), np.linspace(0.0, 1.0, n))
    assert J.nnz == 2 * n - 1
    np.testing.assert_allclose(J.toarray(), A.toarray() * np.cos(np.linspace(0.0, 1.0, n)))


def test_a_sparse_matrix_that_is_changed_after_its_use_does_not_change_the_gradient():
    def f(x):
        A = sparse.csr_array(DENSE)
        y = A @ x
        A.data[:] = 0.0
        return np.sum(y * y)

    np.testing.assert_allclose(gradient(f, X)[0], 2.0 * DENSE.T @ DENSE @ X)


def test_what_is_wrong_is_said_by_scipy():
    A = sparse.csr_array(DENSE)
    with pytest.raises(ValueError, match="mismatch"):
        gradient(lambda x: np.sum(A @ x[:2]), X)
    with pytest.raises(ValueError, match="Scalar operands"):
        gradient(lambda x: np.sum(A @ x[0]), X)


def test_constants_parameters_and_ignored_values_are_multiplied_as_ever():
    A = sparse.csr_array(DENSE)
    np.testing.assert_allclose(gradient(lambda x: np.sum(A @ np.ones(3)) * x[0], X)[0], [DENSE.sum(), 0.0, 0.0])
    np.testing.assert_allclose(gradient(lambda x: np.sum(A @ rg.data(x)) * x[0], X)[0], [np.sum(DENSE @ X), 0.0, 0.0])
    W = param(X)
    back(np.sum(A @ W))
    np.testing.assert_allclose(W.grad, DENSE.sum(0))
    np.testing.assert_array_equal(A @ X, DENSE @ X)
