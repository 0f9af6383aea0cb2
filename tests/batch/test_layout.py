"""Examples lie in memory as the arrays of one call do: where NumPy gives a view to write into, a batch does."""

import numpy as np
import pytest

from retrograde import gradient, hessian, vmap
from retrograde.errors import BatchError

ROWS = np.array([[0.7, -0.4, 1.3, 0.2], [0.8, -0.5, 1.4, 0.3], [1.7, 0.6, 2.3, 1.2]])
WEIGHTS = np.arange(1.0, 17.0).reshape(4, 4)


def a_matrix_that_is_filled(x):
    A = np.zeros((4, 4))
    A[:] = np.outer(x, x)
    v = A.ravel()
    v[0] = 5.0
    np.ravel(A)[7] = x[1]
    return np.sum(A * A * WEIGHTS)


def by_rows(x):
    A = np.empty((4, 4))
    for i in range(4):
        A[i] = x * (i + 1)
    A.T.ravel(order="F")[2] = 7.0
    A.T.ravel()[3] = 8.0
    return np.sum(A * A * WEIGHTS)


def by_columns(x):
    A = np.zeros((4, 4), order="F")
    A[:] = np.outer(x, x * x)
    A.ravel(order="F")[1] = 5.0
    A.ravel()[2] = 7.0
    return np.sum(A * A * WEIGHTS)


def a_copy_by_columns(x):
    A = np.asfortranarray(np.outer(x, x * x))
    A.ravel(order="F")[1] = 5.0
    A.ravel()[2] = 7.0
    B = A * 2.0
    B.ravel(order="F")[3] = x[0]
    C = np.zeros_like(A)
    C += np.outer(x, x)
    C.ravel()[4] = 9.0
    return np.sum((A * A + B + C * C) * WEIGHTS)


def computed(x):
    y = x * 2.0
    y.ravel()[0] = 5.0
    z = np.sin(x)
    A = z.reshape(2, 2)
    A.T.ravel()[0] = 4.0
    A.ravel()[1] = 8.0
    return np.sum(y * y) + np.sum(z * z * z)


def parts(x):
    y = (x * 1.0)[::2]
    y.ravel()[0] = 5.0
    y.reshape(-1)[1] = 7.0
    return np.sum(y * y * y * x[:2])


def changed_in_place(x):
    A = np.outer(x, x).T
    B = A
    A += np.outer(x, np.ones(4))
    A.ravel(order="F")[1] = 5.0
    return np.sum(A * B * WEIGHTS)


def a_decision_by_layout(x):
    A = np.outer(x, x).T
    return np.sum(A * WEIGHTS) * (2.0 if A.flags.f_contiguous else 3.0) * (5.0 if np.isfortran(A) else 7.0)


PROGRAMS = [
    a_matrix_that_is_filled,
    by_rows,
    by_columns,
    a_copy_by_columns,
    computed,
    parts,
    changed_in_place,
    a_decision_by_layout,
]
BATCHES = {
    "by rows": (ROWS, 0),
    "by columns": (np.asfortranarray(ROWS), 0),
    "along the second axis": (np.ascontiguousarray(ROWS.T), 1),
    "along the second axis, by columns": (ROWS.T, 1),
}


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_writes_through_flattened_arrays_reach_what_they_reach_in_one_example(f, batch):
    X, axis = BATCHES[batch]
    wanted = [f(x.copy()) for x in ROWS]
    slopes = np.array([gradient(f, x)[0] for x in ROWS])
    steps = [[(f(x + h) - f(x - h)) / 2e-6 for h in 1e-6 * np.eye(4)] for x in ROWS]
    np.testing.assert_allclose(slopes, steps, rtol=1e-6, atol=1e-5)
    np.testing.assert_allclose(vmap(f, in_axes=axis)(X), wanted)
    np.testing.assert_allclose(vmap(lambda x: gradient(f, x)[0], in_axes=axis)(X), slopes)
    (of_all,) = gradient(lambda X: np.sum(vmap(f, in_axes=axis)(X)), X)
    np.testing.assert_allclose(np.moveaxis(of_all, axis, 0), slopes)


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_second_derivatives_in_many_directions_at_once_reach_the_same(f):
    x = ROWS[0]
    steps = [(gradient(f, x + h)[0] - gradient(f, x - h)[0]) / 2e-6 for h in 1e-6 * np.eye(4)]
    np.testing.assert_allclose(hessian(f, x), steps, rtol=1e-6, atol=1e-5)


def test_strides_of_ones_own_are_refused():
    with pytest.raises(BatchError, match="as_strided cannot be mapped"):
        vmap(lambda x: np.sum(np.lib.stride_tricks.as_strided(x * 1.0, (3, 2), (8, 8))))(ROWS)
