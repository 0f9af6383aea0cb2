"""Linear algebra in compiled programs: what a run meets where the formulas are not written for it."""

from __future__ import annotations

import numpy as np
import pytest
from compiler.harness import specialised

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
