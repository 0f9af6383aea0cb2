"""What a primitive says of its pattern."""

from __future__ import annotations

import numpy as np
import pytest
from truth import close

from retrograde import InputError, SparsityError, hessian, jacobian, primitive, sparse_hessian, sparse_jacobian

sparse = pytest.importorskip("scipy.sparse")

N = 6
X = np.linspace(0.5, 1.5, N)


def cube():
    @primitive
    def cube(x):
        return x**3

    cube.defpullback(lambda y, x: lambda y_bar: (y_bar * 3 * x**2,))
    cube.defpushforward(lambda y, x: lambda x_dot: 3 * x**2 * x_dot)
    return cube


def steps():
    """y[i] = x[i + 1] · x[i] · a"""

    @primitive
    def steps(x, a):
        return x[1:] * x[:-1] * a

    def pull(y, x, a):
        def pull_steps(y_bar):
            bar = np.concatenate([[0.0], y_bar * x[:-1] * a]) + np.concatenate([y_bar * x[1:] * a, [0.0]])
            return bar, np.sum(y_bar * x[1:] * x[:-1])

        return pull_steps

    steps.defpullback(pull)
    steps.defpushforward(
        lambda y, x, a: lambda x_dot, a_dot: (x_dot[1:] * x[:-1] + x[1:] * x_dot[:-1]) * a + x[1:] * x[:-1] * a_dot
    )
    return steps


def test_a_primitive_that_says_nothing_counts_as_dense():
    f = cube()
    prepared = sparse_jacobian(f).prepare(X)
    assert prepared.sparsity.nnz == N * N
    close(prepared(X).toarray(), np.diag(3 * X**2))


def test_an_elementwise_primitive_has_a_diagonal():
    f = cube()
    assert f.defsparsity("elementwise") == "elementwise"
    prepared = sparse_jacobian(lambda x: f(x)[1:] * x[:-1]).prepare(X)
    assert (prepared.passes, prepared.sparsity.nnz) == (2, 2 * (N - 1))
    close(prepared(X).toarray(), jacobian(lambda x: x[1:] ** 3 * x[:-1], X))
    second = sparse_hessian(lambda x: np.sum(f(x) * x)).prepare(X)
    assert second.sparsity.nnz == N
    close(second(X).toarray(), hessian(lambda x: np.sum(x**4), X))
    close(sparse_jacobian(f, 2.0).toarray(), [[12.0]])
    assert sparse_jacobian(f, np.zeros((0, 2))).shape == (0, 0)


def test_a_pattern_for_each_argument_is_taken():
    f = steps()
    f.defsparsity(
        lambda y, x, a: (sparse.eye_array(len(y), len(x)) + sparse.eye_array(len(y), len(x), k=1), np.ones((len(y), 1)))
    )
    J, K = sparse_jacobian(f, X, 2.0)
    assert (J.nnz, K.nnz) == (2 * (N - 1), N - 1)
    want, ones = jacobian(lambda x, a: x[1:] * x[:-1] * a, X, 2.0)
    close(J.toarray(), want)
    close(K.toarray()[:, 0], ones)
    close(sparse_jacobian(lambda x: f(x, 2.0), X).toarray(), want)
    close(sparse_jacobian(lambda a: f(X, a), 2.0).toarray()[:, 0], ones)


def test_several_results_and_sequences_are_numbered_leaf_after_leaf():
    @primitive
    def swap(pair):
        return [pair[1] * 2, pair[0] * 3]

    swap.defpullback(lambda ys, pair: lambda bars: ([bars[1] * 3, bars[0] * 2],))
    swap.defpushforward(lambda ys, pair: lambda dots: [dots[1] * 2, dots[0] * 3])
    swap.defsparsity(lambda ys, pair: (np.kron([[0, 1], [1, 0]], np.eye(N)),))
    J = sparse_jacobian(lambda x, y: swap([x, y]), X, X)
    close(J[0].toarray(), np.concatenate([np.zeros((N, N)), 3 * np.eye(N)]))
    close(J[1].toarray(), np.concatenate([2 * np.eye(N), np.zeros((N, N))]))
    assert J[0].nnz == N


def test_a_pattern_that_is_too_small_is_noticed():
    f = steps()
    f.defsparsity(lambda y, x, a: (np.eye(len(y), len(x)), None))
    with pytest.raises(SparsityError, match="outside of its pattern"):
        sparse_jacobian(lambda x: f(x, 2.0), X)


def test_what_does_not_fit_is_refused():
    f = steps()
    with pytest.raises(InputError, match=r"'diagonal' is no sparsity(.|\n)*elementwise"):
        f.defsparsity("diagonal")
    f.defsparsity("elementwise")
    with pytest.raises(InputError, match=r"declared elementwise(.|\n)*\(5,\)"):
        sparse_jacobian(lambda x: f(x, 2.0), X)
    f.defsparsity(lambda y, x, a: np.eye(len(y), len(x)))
    with pytest.raises(InputError, match="no tuple of 2 patterns"):
        sparse_jacobian(lambda x: f(x, 2.0), X)
    f.defsparsity(lambda y, x, a: (np.eye(len(x)), None))
    with pytest.raises(InputError, match=r"has the shape \(6, 6\)"):
        sparse_jacobian(lambda x: f(x, 2.0), X)
