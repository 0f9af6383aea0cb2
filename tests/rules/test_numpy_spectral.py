"""Hand-worked numbers for `eigh` and `svd`, above all where values are equal."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograde.rules.numpy_spectral as rules
from retrograde.errors import UnsupportedArgumentError
from retrograde.rules.table import RULES, Composed, General

W = np.array([[1.0, 2.0, -1.0], [0.5, 3.0, 4.0], [-2.0, 1.5, -3.0]])
W_SYMMETRIC = (W + W.T) / 2
TURN = np.linalg.qr(np.array([[1.0, 2, 0], [0, 1, 1], [1, 0, 1]]))[0]


def pull_eigh(y_bar: Any, a: Any, *args: Any) -> Any:
    return rules.eigh_pullback(np.linalg.eigh(a, *args), a, *args)(y_bar)[0]


def pull_svd(y_bar: Any, a: Any, full_matrices: bool = True) -> Any:
    return rules.svd_pullback(np.linalg.svd(a, full_matrices), a, full_matrices)(y_bar)[0]


def symmetric(lower: Any) -> Any:
    """The symmetric gradient behind one that stands in the lower triangle."""
    return (lower + lower.T) / 2


def eigh_bars(a: Any, f: Any, slope: Any) -> tuple[Any, Any]:
    """The cotangents that ⟨W, V f(w) Vᵀ⟩ sends to w and V."""
    w, v = np.linalg.eigh(a)
    return slope(w) * np.sum(v * (W_SYMMETRIC @ v), axis=0), 2 * W_SYMMETRIC @ v * f(w)


def svd_bars(a: Any, f: Any, slope: Any) -> tuple[Any, Any, Any]:
    """The cotangents that ⟨W, U f(s) Vᵀ⟩ sends to U, s and Vᵀ."""
    u, s, vh = np.linalg.svd(a)
    return W @ vh.T * f(s), slope(s) * np.sum(u * (W @ vh.T), axis=0), (W.T @ u * f(s)).T


# --- eigh ----------


def test_eigenvalues_of_two_by_two() -> None:
    # w = ∓b for [[0, b], [b, 0]]: the vectors are (1, ∓1) / √2.
    got = pull_eigh((np.array([1.0, 0.0]), None), np.array([[0.0, 2.0], [2.0, 0.0]]))
    np.testing.assert_allclose(got, [[0.5, 0], [-1, 0.5]])


def test_upper_triangle_is_read_on_demand() -> None:
    a = np.array([[0.0, 2.0], [99.0, 0.0]])
    np.testing.assert_allclose(pull_eigh((np.array([1.0, 0.0]), None), a, "U"), [[0.5, -1], [0, 0.5]])
    np.testing.assert_allclose(pull_eigh((np.array([1.0, 0.0]), None), a, "u"), [[0.5, -1], [0, 0.5]])


def test_vectors_turn_by_the_inverse_gap() -> None:
    # In diag(1, 3) with off-diagonal element b, the first vector is (1, −b / 2) to first order.
    v = np.linalg.eigh(np.diag([1.0, 3.0]))[1]
    v_bar = np.array([[0.0, 0.0], [v[0, 0], 0.0]])
    np.testing.assert_allclose(pull_eigh((None, v_bar), np.diag([1.0, 3.0])), [[0, 0], [-0.5, 0]])


MATRICES = {
    "identity": np.eye(3),
    "two equal on the diagonal": np.diag([2.0, 2.0, 5.0]),
    "two equal": TURN @ np.diag([2.0, 2.0, -1.0]) @ TURN.T,
    "three equal up to rounding": TURN @ np.diag([3.0, 3.0, 3.0]) @ TURN.T,
    "nearly equal": np.diag([1.0, 1.0 + 1e-13, 4.0]),
    "rank one up to rounding": np.outer([1.0, 2.0, 3.0], [1.0, 2.0, 3.0]),
    "distinct": np.diag([1.0, 2.0, 4.0]) + 0.1 * W_SYMMETRIC,
}


@pytest.mark.parametrize("name", MATRICES)
def test_matrix_rebuilt_from_its_eigenvalues(name: str) -> None:
    a = (MATRICES[name] + MATRICES[name].T) / 2
    got = pull_eigh(eigh_bars(a, lambda w: w, np.ones_like), a)
    np.testing.assert_allclose(symmetric(got), W_SYMMETRIC, atol=1e-9)


@pytest.mark.parametrize("name", MATRICES)
def test_square_of_a_matrix_by_its_eigenvalues(name: str) -> None:
    a = (MATRICES[name] + MATRICES[name].T) / 2
    got = pull_eigh(eigh_bars(a, np.square, lambda w: 2 * w), a)
    np.testing.assert_allclose(symmetric(got), a @ W_SYMMETRIC + W_SYMMETRIC @ a, atol=1e-9)


def test_exponential_of_a_zero_matrix() -> None:
    zero = np.zeros((3, 3))
    np.testing.assert_allclose(symmetric(pull_eigh(eigh_bars(zero, np.exp, np.exp), zero)), W_SYMMETRIC)


def test_sum_over_equal_eigenvalues_needs_no_vectors() -> None:
    np.testing.assert_array_equal(pull_eigh((np.array([3.0, 3.0, 3.0]), None), np.eye(3)), 3 * np.eye(3))


def test_projection_on_equal_eigenvalues_is_differentiable() -> None:
    # P = v₀v₀ᵀ + v₁v₁ᵀ of diag(2, 2, 5): Ṗ = −(ȧ_i2 / 3) in the rows and columns that meet, 0 elsewhere.
    a = np.diag([2.0, 2.0, 5.0])
    v = np.linalg.eigh(a)[1]
    got = pull_eigh((None, 2 * W_SYMMETRIC @ v * [1, 1, 0]), a)
    want = np.zeros((3, 3))
    want[2, :2] = want[:2, 2] = -W_SYMMETRIC[2, :2] / 3
    np.testing.assert_allclose(symmetric(got), want, atol=1e-15)


def test_one_vector_of_equal_eigenvalues_raises() -> None:
    v_bar = np.zeros((3, 3))
    v_bar[1, 0] = 1.0
    with pytest.raises(np.linalg.LinAlgError, match="one by one"):
        pull_eigh((None, v_bar), np.eye(3))


def test_what_the_cotangents_do_not_determine_raises() -> None:
    zero = np.zeros((3, 3))  # where f(w) = w vanishes, the vectors of the rebuilt matrix have no cotangent
    with pytest.raises(np.linalg.LinAlgError, match="eigvalsh"):
        pull_eigh(eigh_bars(zero, lambda w: w, np.ones_like), zero)
    w_bar, v_bar = eigh_bars(np.eye(3), lambda w: w, np.ones_like)
    with pytest.raises(np.linalg.LinAlgError, match="a decomposition of its own"):
        pull_eigh((w_bar + 1, v_bar), np.eye(3))


def test_zero_cotangents_of_equal_eigenvalues_give_zero() -> None:
    np.testing.assert_array_equal(pull_eigh((np.zeros(3), np.zeros((3, 3))), np.eye(3)), np.zeros((3, 3)))


def test_stack_with_equal_eigenvalues_in_one_matrix() -> None:
    stack = np.stack([np.eye(3), np.diag([1.0, 2.0, 4.0])])
    bars = [eigh_bars(a, np.exp, np.exp) for a in stack]
    got = pull_eigh((np.stack([b[0] for b in bars]), np.stack([b[1] for b in bars])), stack)
    for part, bar, a in zip(got, bars, stack, strict=True):
        np.testing.assert_allclose(part, pull_eigh(bar, a))


def test_phase_of_a_complex_eigenvector_raises() -> None:
    a = np.array([[1.0, 1j], [-1j, 3.0]])
    v = np.linalg.eigh(a)[1]
    with pytest.raises(np.linalg.LinAlgError, match="phases"):
        pull_eigh((None, 1j * v), a)
    pull_eigh((None, v), a)  # the length is another matter


def test_absolute_values_of_complex_eigenvectors() -> None:
    a = np.array([[1.0, 0.5j, 0.2], [-0.5j, 3.0, 1 - 1j], [0.2, 1 + 1j, -2.0]])
    a_dot = np.array([[0.3, -1j, 0.5], [1j, 0.1, 2j], [0.5, -2j, 0.4]])

    def weighted(a: Any) -> Any:
        return np.sum(W * np.abs(np.linalg.eigh(a)[1]) ** 2)

    v = np.linalg.eigh(a)[1]
    want = (weighted(a + 1e-6 * a_dot) - weighted(a - 1e-6 * a_dot)) / 2e-6
    a_bar = pull_eigh((None, 2 * W * v), a)
    np.testing.assert_allclose(np.vdot(a_bar, a_dot).real, want, rtol=1e-8)
    v_dot = rules.eigh_pushforward(np.linalg.eigh(a), a)(a_dot)[1]
    np.testing.assert_allclose(np.vdot(2 * W * v, v_dot).real, want, rtol=1e-8)


def test_tangents_where_eigenvalues_are_equal() -> None:
    w_dot, v_dot = rules.eigh_pushforward(np.linalg.eigh(np.eye(2)), np.eye(2))(np.array([[1.0, 0.0], [2.0, 3.0]]))
    np.testing.assert_array_equal(w_dot, [1, 3])
    assert np.isnan(v_dot).all()
    w_dot, v_dot = rules.eigh_pushforward(np.linalg.eigh(np.eye(2)), np.eye(2))(np.diag([1.0, 3.0]))
    np.testing.assert_array_equal(v_dot, np.zeros((2, 2)))


# --- svd ----------


@pytest.mark.parametrize("name", MATRICES)
def test_matrix_rebuilt_from_its_singular_values(name: str) -> None:
    a = MATRICES[name]
    np.testing.assert_allclose(pull_svd(svd_bars(a, lambda s: s, np.ones_like), a), W, atol=1e-9)


def test_nearest_orthogonal_matrix_at_equal_singular_values() -> None:
    # U Vᵀ at 2·1 turns with the skew part of ȧ only.
    got = pull_svd(svd_bars(2 * np.eye(3), np.ones_like, np.zeros_like), 2 * np.eye(3))
    np.testing.assert_allclose(got, (W - W.T) / 4, atol=1e-15)


def test_cubes_of_equal_singular_values() -> None:
    # U s³ Vᵀ = a aᵀ a, whose derivative at a = 2·1 is 4 (ȧ + ȧᵀ + ȧ).
    got = pull_svd(svd_bars(2 * np.eye(3), lambda s: s**3, lambda s: 3 * s**2), 2 * np.eye(3))
    np.testing.assert_allclose(got, 4 * (2 * W + W.T))


def test_nuclear_norm_at_equal_singular_values() -> None:
    np.testing.assert_allclose(pull_svd((None, np.ones(3), None), 5 * TURN), TURN, atol=1e-15)


def test_wide_and_tall_matrices_leave_the_space_of_their_vectors() -> None:
    # The left vector of (1, 0)ᵀ s turns with ȧ₁ / s, and so does the right vector of its transpose.
    tall = np.array([[2.0], [0.0]])
    u, _, vh = np.linalg.svd(tall, full_matrices=False)
    np.testing.assert_allclose(pull_svd((u[::-1], None, None), tall, False), [[0.0], [0.5 * u[0, 0] ** 2]])
    u, _, vh = np.linalg.svd(tall.T, full_matrices=False)
    np.testing.assert_allclose(pull_svd((None, None, vh[:, ::-1]), tall.T, False), [[0.0, 0.5 * vh[0, 0] ** 2]])


def test_rows_that_complete_a_basis_have_no_derivative() -> None:
    wide = np.array([[2.0, 0.0]])
    vh = np.linalg.svd(wide)[2]
    used = vh * [[1.0], [0.0]]
    np.testing.assert_allclose(pull_svd((None, None, used[:, ::-1]), wide), [[0.0, 0.5]], atol=1e-15)
    with pytest.raises(UnsupportedArgumentError, match="full_matrices=False"):
        pull_svd((None, None, vh), wide)
    vh_dot = rules.svd_pushforward(np.linalg.svd(wide), wide)(np.array([[0.0, 2.0]]))[2]
    np.testing.assert_allclose(vh_dot[0], [0, vh[0, 0]])
    assert np.isnan(vh_dot[1]).all()


def test_vectors_of_singular_values_of_zero_raise() -> None:
    tall = np.zeros((2, 1))
    with pytest.raises(np.linalg.LinAlgError, match="zero"):
        pull_svd((np.array([[0.0], [1.0]]), None, None), tall, False)
    with pytest.raises(np.linalg.LinAlgError, match="svdvals"):
        pull_svd((np.zeros((2, 1)), np.ones(1), np.zeros((1, 1))), tall, False)
    np.testing.assert_array_equal(pull_svd((None, np.ones(1), None), tall, False), np.eye(2)[:, :1])
    with pytest.raises(np.linalg.LinAlgError, match="zero"):
        pull_svd(svd_bars(np.diag([1.0, 0, 0]), np.exp, np.exp), np.diag([1.0, 0, 0]))


def test_one_singular_value_of_zero_in_a_square_matrix_is_like_any_other() -> None:
    a = np.diag([2.0, 1.0, 0.0])
    np.testing.assert_allclose(pull_svd(svd_bars(a, lambda s: s, np.ones_like), a), W, atol=1e-15)


def test_common_phase_of_complex_singular_vectors_raises() -> None:
    a = np.array([[1.0, 1j], [0.5, 3.0]])
    u, _, vh = np.linalg.svd(a)
    with pytest.raises(np.linalg.LinAlgError, match="phases"):
        pull_svd((1j * u, None, None), a)
    weights = np.array([[1.0, 2j], [-1j, 0.5]])  # ⟨weights, U Vᴴ⟩ does not change with a common phase
    a_bar = pull_svd((weights @ vh.conj().T, None, u.conj().T @ weights), a)
    step = 1e-6 * np.array([[1.0, 1j], [-2.0, 0.3j]])

    def polar(a: Any) -> Any:
        u, _, vh = np.linalg.svd(a)
        return np.vdot(weights, u @ vh).real

    np.testing.assert_allclose(np.vdot(a_bar, step).real, (polar(a + step) - polar(a - step)) / 2, rtol=1e-8)


def test_values_alone_have_the_same_body() -> None:
    rule = RULES[np.linalg.svd]
    assert isinstance(rule, Composed)
    np.testing.assert_allclose(rule.body(W, compute_uv=False), np.linalg.svd(W, compute_uv=False))
    assert isinstance(RULES[rules.svd], General)
