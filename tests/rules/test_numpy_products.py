"""Hand-worked numbers for products of vectors, matrices and tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograde.rules.numpy_products  # noqa: F401  defines the rules
from retrograde.rules.table import RULES, Composed, Like, Multilinear


def bars(function: Any, y_bar: Any, a: Any, b: Any, **kwargs: Any) -> tuple[Any, Any]:
    """The cotangents of both arguments."""
    rule = RULES[function]
    assert isinstance(rule, Multilinear)
    likes = [Like(np.shape(x), np.asarray(x).dtype) for x in (a, b)]
    return rule.adjoints[0](y_bar, likes[0], b, **kwargs), rule.adjoints[1](y_bar, a, likes[1], **kwargs)


A = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
B = np.array([[1.0, -1.0], [2.0, 0.5]])


def test_matmul_of_matrices() -> None:
    y_bar = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    a_bar, b_bar = bars(np.matmul, y_bar, A, B)
    np.testing.assert_array_equal(a_bar, [[1, 2], [-1, 0.5], [0, 2.5]])
    np.testing.assert_array_equal(b_bar, [[6, 8], [8, 10]])


def test_matmul_of_vectors_with_a_cotangent_that_is_a_float() -> None:
    a_bar, b_bar = bars(np.matmul, 2.0, np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    np.testing.assert_array_equal(a_bar, [6, 8])
    np.testing.assert_array_equal(b_bar, [2, 4])


def test_matmul_conjugates_the_other_factor() -> None:
    a_bar, b_bar = bars(np.matmul, np.array([[1j]]), np.array([[2 + 1j]]), np.array([[1 - 3j]]))
    assert a_bar == 1j * (1 + 3j)
    assert b_bar == (2 - 1j) * 1j


def test_matmul_sums_over_the_stack_that_a_matrix_was_broadcast_along() -> None:
    stack = np.stack([A, 2 * A])
    a_bar, b_bar = bars(np.matmul, np.ones((2, 3, 2)), stack, B)
    np.testing.assert_array_equal(a_bar, np.broadcast_to([0, 2.5], (2, 3, 2)))
    np.testing.assert_array_equal(b_bar, [[27, 27], [36, 36]])


def test_matmul_of_empty_sums_is_zero() -> None:
    a_bar, b_bar = bars(np.matmul, np.ones((2, 2)), np.ones((2, 0)), np.ones((0, 2)))
    assert a_bar.shape == (2, 0)
    assert b_bar.shape == (0, 2)
    a_bar, b_bar = bars(np.matmul, np.ones((0, 3, 2)), np.ones((0, 3, 4)), np.ones((4, 2)))
    assert a_bar.shape == (0, 3, 4)
    np.testing.assert_array_equal(b_bar, np.zeros((4, 2)))


def test_matmul_takes_a_list_for_its_other_factor() -> None:
    rule = RULES[np.matmul]
    assert isinstance(rule, Multilinear)
    np.testing.assert_array_equal(rule.adjoints[0](np.ones(2), Like((2,), np.dtype(float)), [[1, 2], [3, 4]]), [3, 7])


def test_masked_cotangent_hides_an_infinite_factor() -> None:
    infinite = np.array([[np.inf, 1.0], [2.0, 3.0]])
    with np.errstate(invalid="ignore"):
        a_bar, _ = bars(np.matmul, np.array([[0.0, 1.0]]), np.ones((1, 2)), infinite)
        np.testing.assert_array_equal(a_bar, [[1, 3]])
        _, b_bar = bars(np.matmul, np.array([0.0, 1.0]), infinite, np.ones(2))
        np.testing.assert_array_equal(b_bar, [2, 3])
        a_bar, _ = bars(np.dot, 0.0, np.ones(2), np.array([np.inf, 1.0]))
        np.testing.assert_array_equal(a_bar, [0, 0])


def test_vecdot_conjugates_its_first_argument() -> None:
    a, b = np.array([1 + 2j, 3.0]), np.array([1j, 2.0])
    a_bar, b_bar = bars(np.vecdot, 1j, a, b)
    np.testing.assert_array_equal(a_bar, -1j * b)
    np.testing.assert_array_equal(b_bar, 1j * a)


@pytest.mark.skipif(not hasattr(np, "vecmat"), reason="NumPy 2.2 has it")
def test_vecmat_conjugates_the_vector_and_matvec_does_not() -> None:
    vector, matrix = np.array([1j]), np.array([[2 + 1j]])
    vector_bar, matrix_bar = bars(np.vecmat, np.array([1 + 1j]), vector, matrix)
    np.testing.assert_array_equal(vector_bar, [(2 + 1j) * (1 - 1j)])
    np.testing.assert_array_equal(matrix_bar, [[1j * (1 + 1j)]])
    matrix_bar, vector_bar = bars(np.matvec, np.array([1 + 1j]), matrix, vector)
    np.testing.assert_array_equal(vector_bar, [(2 - 1j) * (1 + 1j)])
    np.testing.assert_array_equal(matrix_bar, [[-1j * (1 + 1j)]])


def test_dot_with_a_number_multiplies() -> None:
    a_bar, b_bar = bars(np.dot, np.array([1.0, 2.0]), 3.0, np.array([4.0, 5.0]))
    assert a_bar == 14
    np.testing.assert_array_equal(b_bar, [3, 6])


def test_dot_of_three_dimensions_uses_the_last_axis_but_one() -> None:
    a, b = np.arange(12.0).reshape(2, 2, 3), np.arange(12.0).reshape(2, 3, 2)
    w = np.arange(16.0).reshape(2, 2, 2, 2)
    a_bar, b_bar = bars(np.dot, w, a, b)
    np.testing.assert_array_equal(a_bar, np.einsum("ijkm,klm->ijl", w, b))
    np.testing.assert_array_equal(b_bar, np.einsum("ijkm,ijl->klm", w, a))


def test_inner_of_matrices() -> None:
    y_bar = np.array([[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]])
    a_bar, b_bar = bars(np.inner, y_bar, A, B)
    np.testing.assert_array_equal(a_bar, [[1, -1], [4, 1], [0, 0]])
    np.testing.assert_array_equal(b_bar, [[1, 2], [6, 8]])


def test_tensordot_puts_permuted_axes_back() -> None:
    rng = np.random.default_rng(0)
    a, b, w = rng.normal(size=(2, 3, 4)), rng.normal(size=(4, 5, 3)), rng.normal(size=(2, 5))
    a_bar, b_bar = bars(np.tensordot, w, a, b, axes=([1, -1], [2, 0]))
    np.testing.assert_allclose(a_bar, np.einsum("ik,cka->iac", w, b))
    np.testing.assert_allclose(b_bar, np.einsum("ik,iac->cka", w, a))


def test_vdot_takes_arrays_of_different_shapes() -> None:
    a_bar, b_bar = bars(np.vdot, 1j, np.array([[1j], [2.0]]), np.array([3.0, 4j]))
    np.testing.assert_array_equal(a_bar, [[-3j], [4.0]])
    np.testing.assert_array_equal(b_bar, [-1.0, 2j])


def test_outer_flattens_its_arguments() -> None:
    y_bar = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.0, 0.0]])
    a_bar, b_bar = bars(np.outer, y_bar, np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([5.0, 6.0]))
    np.testing.assert_array_equal(a_bar, [[5, 6], [11, 0]])
    np.testing.assert_array_equal(b_bar, [4, 5])


def test_outer_of_a_ufunc_keeps_the_axes_of_both() -> None:
    a, b = np.array([[1.0, 2.0]]), np.array([3.0, 4.0, 5.0])
    a_bar, b_bar = bars(np.multiply.outer, np.ones((1, 2, 3)), a, b)
    np.testing.assert_array_equal(a_bar, [[12, 12]])
    np.testing.assert_array_equal(b_bar, [3, 3, 3])
    rule = RULES[np.subtract.outer]
    assert isinstance(rule, Composed)
    np.testing.assert_array_equal(rule.body(a, b), np.subtract.outer(a, b))
    np.testing.assert_array_equal(rule.body(2.0, b), [-1, -2, -3])


def test_kron_of_matrices_pulls_back_block_by_block() -> None:
    y_bar = np.zeros((2, 4))
    y_bar[0, 2] = 1.0  # block (0, 1), element (0, 0)
    a_bar, b_bar = bars(np.kron, y_bar, np.array([[2.0, 3.0]]), np.array([[5.0, 6.0], [7.0, 8.0]]))
    np.testing.assert_array_equal(a_bar, [[0, 5]])
    np.testing.assert_array_equal(b_bar, [[3, 0], [0, 0]])


def test_cross_of_unit_vectors() -> None:
    x, y, z = np.eye(3)
    a_bar, b_bar = bars(np.cross, z, x, y)  # z · (a × b) has the gradients b × z and z × a
    np.testing.assert_array_equal(a_bar, x)
    np.testing.assert_array_equal(b_bar, y)
    a_bar, b_bar = bars(np.linalg.cross, np.stack([z, z], 1), x[:, None], np.stack([y, y], 1), axis=0)
    np.testing.assert_array_equal(a_bar, 2 * x[:, None])


def test_cross_of_two_elements_has_only_a_third() -> None:
    a_bar, b_bar = bars(np.cross, 2.0, np.array([1.0, 2.0]), np.array([3.0, 4.0]))  # 2 (a₀ b₁ − a₁ b₀)
    np.testing.assert_array_equal(a_bar, [8, -6])
    np.testing.assert_array_equal(b_bar, [-4, 2])
    a_bar, b_bar = bars(np.cross, np.array([1.0, 0.0, 0.0]), np.array([1.0, 2.0]), np.array([3.0, 4.0, 5.0]))
    np.testing.assert_array_equal(a_bar, [0, 5])  # a₁ b₂
    np.testing.assert_array_equal(b_bar, [0, 0, 2])


def test_cross_hides_an_infinity_behind_a_zero_cotangent() -> None:
    with np.errstate(invalid="ignore"):
        a_bar, _ = bars(np.cross, np.array([0.0, 0.0, 1.0]), np.ones(3), np.array([3.0, 4.0, np.inf]))
    np.testing.assert_array_equal(a_bar, [4, -3, 0])
