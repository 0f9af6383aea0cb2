"""Hand-worked numbers for Cholesky, QR and general eigenvalues."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograde.rules.numpy_decompositions as rules
from retrograde.errors import UnsupportedArgumentError
from retrograde.rules.table import RULES, General


def pull(function: Any, y_bar: Any, *args: Any, **kwargs: Any) -> Any:
    rule = RULES[function]
    assert isinstance(rule, General)
    return rule.pullback(function(*args, **kwargs), *args, **kwargs)(y_bar)[0]


def push(function: Any, a_dot: Any, *args: Any, **kwargs: Any) -> Any:
    rule = RULES[function]
    assert isinstance(rule, General)
    return rule.pushforward(function(*args, **kwargs), *args, **kwargs)(a_dot)


# --- Cholesky ----------


def test_cholesky_of_two_by_two() -> None:
    # L = [[√a, 0], [b/√a, √(c − b²/a)]] at a = 4, b = 2, c = 5: L = [[2, 0], [1, 2]].
    a = np.array([[4.0, 2.0], [2.0, 5.0]])
    np.testing.assert_allclose(pull(np.linalg.cholesky, np.array([[1.0, 0], [0, 0]]), a), [[0.25, 0], [0, 0]])
    np.testing.assert_allclose(pull(np.linalg.cholesky, np.array([[0, 0], [1.0, 0]]), a), [[-0.125, 0], [0.5, 0]])
    np.testing.assert_allclose(pull(np.linalg.cholesky, np.array([[0, 0], [0, 1.0]]), a), [[1 / 16, 0], [-0.25, 0.25]])


def test_cholesky_reads_one_triangle_and_ignores_the_cotangent_of_zeros() -> None:
    a = np.array([[4.0, 99.0], [2.0, 5.0]])
    got = pull(np.linalg.cholesky, np.array([[0, np.inf], [1.0, 0]]), a)
    np.testing.assert_allclose(got, [[-0.125, 0], [0.5, 0]])
    got = pull(np.linalg.cholesky, np.array([[0, 1.0], [np.inf, 0]]), a.T, upper=True)
    np.testing.assert_allclose(got, [[-0.125, 0.5], [0, 0]])
    np.testing.assert_array_equal(push(np.linalg.cholesky, np.array([[0, 7.0], [0, 0]]), a), np.zeros((2, 2)))


def test_log_determinant_by_cholesky_of_a_symmetric_path() -> None:
    # d log det(a) = tr(a⁻¹ ȧ): the gradient in the lower triangle is twice the symmetric one.
    a = np.array([[4.0, 2.0], [2.0, 5.0]])
    got = pull(np.linalg.cholesky, np.diag(2 / np.diag(np.linalg.cholesky(a))), a)
    inverse = np.linalg.inv(a)
    np.testing.assert_allclose(got, np.tril(2 * inverse) - np.diag(np.diag(inverse)), atol=1e-15)


def test_cholesky_of_a_complex_matrix() -> None:
    a, a_dot = np.array([[4.0, -2j], [2j, 5.0]]), np.array([[0, 0], [1j, 0]])
    np.testing.assert_allclose(push(np.linalg.cholesky, a_dot, a), [[0, 0], [0.5j, -0.25]])
    got = pull(np.linalg.cholesky, np.array([[0, 0], [0, 1.0]]), a)
    np.testing.assert_allclose(got, [[1 / 16, 0], [-0.25j, 0.25]])


# --- QR ----------


def test_qr_of_a_vector_is_its_direction_and_length() -> None:
    a = np.array([[3.0], [4.0]])  # LAPACK: r = −5, q = −a / 5
    np.testing.assert_allclose(pull(np.linalg.qr, (None, np.array([[1.0]])), a), [[-0.6], [-0.8]])
    np.testing.assert_allclose(pull(np.linalg.qr, (np.array([[5.0], [0.0]]), None), a), [[-0.64], [0.48]])
    np.testing.assert_allclose(pull(np.linalg.qr, np.array([[1.0]]), a, "r"), [[-0.6], [-0.8]])


def test_columns_that_complete_a_basis_have_no_derivative() -> None:
    a = np.array([[3.0], [4.0]])
    used = (np.array([[5.0, 0.0], [0.0, 0.0]]), None)
    np.testing.assert_allclose(pull(np.linalg.qr, used, a, "complete"), [[-0.64], [0.48]])
    with pytest.raises(UnsupportedArgumentError, match="mode='reduced' in qr"):
        pull(np.linalg.qr, (np.ones((2, 2)), None), a, "complete")
    q_dot, r_dot = push(np.linalg.qr, np.array([[0.0], [5.0]]), a, "complete")
    np.testing.assert_allclose(q_dot[:, 0], [0.48, -0.36])
    assert np.isnan(q_dot[:, 1]).all()
    np.testing.assert_allclose(r_dot, [[-4], [0]], atol=1e-15)


def test_raw_mode_of_qr_is_refused() -> None:
    with pytest.raises(UnsupportedArgumentError, match="raw"):
        RULES[np.linalg.qr].pullback(None, np.eye(2), "raw")  # type: ignore[attr-defined]


def test_qr_of_a_singular_matrix_raises() -> None:
    with pytest.raises(np.linalg.LinAlgError):
        pull(np.linalg.qr, (np.eye(2), None), np.zeros((2, 2)))


# --- eig, eigvals ----------

TRIANGULAR = np.array([[1.0, 2.0], [0.0, 3.0]])  # w = (1, 3), v = (1, 0), (1, 1) / √2


def test_eigenvalue_of_a_triangular_matrix() -> None:
    # The left eigenvectors are (1, −1) and (0, 1): ∂w₀/∂a = (1, −1)ᵀ (1, 0).
    np.testing.assert_allclose(pull(np.linalg.eigvals, np.array([1.0, 0]), TRIANGULAR), [[1, 0], [-1, 0]], atol=1e-15)
    got = pull(np.linalg.eig, (np.array([0, 1.0]), None), TRIANGULAR)
    np.testing.assert_allclose(got, [[0, 0], [1, 1]], atol=1e-15)


def test_eigenvectors_keep_length_one() -> None:
    v_dot = push(np.linalg.eig, np.array([[0.0, 0], [1, 0]]), TRIANGULAR)[1]
    v = np.linalg.eig(TRIANGULAR)[1]
    np.testing.assert_allclose(np.sum(v * v_dot, axis=0), 0, atol=1e-15)
    np.testing.assert_allclose(pull(np.linalg.eig, (None, v), TRIANGULAR), 0, atol=1e-15)  # the cotangent of ½ |v|²


def test_rotation_has_complex_eigenvalues() -> None:
    # w = a ± i b for [[a, −b], [b, a]]: the real part's gradient is ½ 1, the imaginary part's ±½ [[0, −1], [1, 0]].
    a = np.array([[1.0, -2.0], [2.0, 1.0]])
    w = np.linalg.eigvals(a)
    np.testing.assert_allclose(np.real(pull(np.linalg.eigvals, np.array([1.0, 0]), a)), np.eye(2) / 2, atol=1e-15)
    got = np.real(pull(np.linalg.eigvals, np.array([1j, 0]), a))
    np.testing.assert_allclose(got, np.sign(w[0].imag) * np.array([[0, -1], [1, 0]]) / 2, atol=1e-15)


def test_trace_by_equal_eigenvalues() -> None:
    np.testing.assert_array_equal(pull(np.linalg.eigvals, np.ones(2), np.eye(2)), np.eye(2))
    np.testing.assert_array_equal(pull(np.linalg.eig, (np.ones(2), None), np.eye(2)), np.eye(2))


def test_vectors_of_equal_eigenvalues_raise_unless_their_cotangents_are_zero() -> None:
    with pytest.raises(np.linalg.LinAlgError, match="eigvals for the eigenvalues alone"):
        pull(np.linalg.eig, (np.ones(2), np.zeros((2, 2))), np.eye(2))
    stack, v_bar = np.stack([np.eye(2), TRIANGULAR]), np.zeros((2, 2, 2))
    v_bar[1, 0, 1] = 1.0
    got = pull(np.linalg.eig, (None, v_bar), stack)
    np.testing.assert_array_equal(got[0], np.zeros((2, 2)))
    np.testing.assert_allclose(got[1], pull(np.linalg.eig, (None, v_bar[1]), TRIANGULAR))


def test_tangents_of_vectors_of_equal_eigenvalues_are_nan() -> None:
    w_dot, v_dot = push(np.linalg.eig, np.array([[1.0, 2.0], [0.0, 3.0]]), np.eye(2))
    np.testing.assert_array_equal(w_dot, [1, 3])
    assert np.isnan(v_dot).any()


def test_defective_matrix_raises() -> None:
    defective = np.array([[1.0, 1.0], [0.0, 1.0]])
    with pytest.raises(np.linalg.LinAlgError, match="defective"):
        pull(np.linalg.eigvals, np.ones(2), defective)
    with pytest.raises(np.linalg.LinAlgError, match="defective"):
        push(np.linalg.eig, np.ones((2, 2)), defective)


def test_eigenvalues_are_matched_whatever_their_order() -> None:
    y = np.array([3.0, 1 + 1j, 1 - 1j, 2.0])
    w = np.array([1 - 1j, 2.0 + 1e-15, 3.0, 1 + 1j])
    np.testing.assert_array_equal(rules._matching(y, w), [2, 3, 0, 1])
    np.testing.assert_array_equal(rules._matching(np.array([1.0, 1.0, 2.0]), np.array([2.0, 1.0, 1.0])), [2, 0, 1])
    stack = np.array([[1.0, 1.0], [1.0, 2.0]])
    np.testing.assert_array_equal(rules._matching(stack, stack[:, ::-1]), [[0, 1], [1, 0]])
