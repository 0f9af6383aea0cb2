"""Hand-worked numbers for systems, inverses, determinants and powers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograde.rules.numpy_linalg as rules
from retrograde.rules.table import RULES, Composed, General


def pull(function: Any, y_bar: Any, *args: Any, **kwargs: Any) -> Any:
    """The cotangents of all differentiable arguments; the cotangent itself where there is one."""
    rule = RULES[function]
    assert isinstance(rule, General)
    bars = rule.pullback(function(*args, **kwargs), *args, **kwargs)(y_bar)
    bars = tuple(bar() if callable(bar) else bar for bar in bars)
    return bars[0] if len(bars) == 1 else bars


def push(function: Any, dots: tuple[Any, ...], *args: Any, **kwargs: Any) -> Any:
    rule = RULES[function]
    assert isinstance(rule, General)
    return rule.pushforward(function(*args, **kwargs), *args, **kwargs)(*dots)


def body(function: Any, *args: Any, **kwargs: Any) -> Any:
    rule = RULES[function]
    assert isinstance(rule, Composed)
    return rule.body(*args, **kwargs)


# --- solve, inv ----------


def test_solve_of_a_diagonal_system() -> None:
    a_bar, b_bar = pull(np.linalg.solve, np.array([1.0, 1.0]), np.diag([2.0, 4.0]), np.array([6.0, 8.0]))
    np.testing.assert_array_equal(b_bar, [0.5, 0.25])  # y = (3, 2)
    np.testing.assert_array_equal(a_bar, [[-1.5, -1.0], [-0.75, -0.5]])


def test_solve_takes_b_for_a_vector_only_if_it_has_one_dimension() -> None:
    stack = np.stack([np.diag([2.0, 4.0]), np.diag([1.0, 1.0])])
    a_bar, b_bar = pull(np.linalg.solve, np.ones((2, 2)), stack, np.array([6.0, 8.0]))
    np.testing.assert_array_equal(b_bar, [1.5, 1.25])
    np.testing.assert_array_equal(a_bar, [[[-1.5, -1.0], [-0.75, -0.5]], [[-6, -8], [-6, -8]]])
    a_bar, b_bar = pull(np.linalg.solve, np.ones((2, 2)), np.diag([2.0, 4.0]), np.eye(2))
    np.testing.assert_array_equal(b_bar, [[0.5, 0.5], [0.25, 0.25]])
    np.testing.assert_array_equal(a_bar, [[-0.25, -0.125], [-0.125, -0.0625]])


def test_solve_forward_with_only_one_tangent() -> None:
    a, b = np.diag([2.0, 4.0]), np.array([6.0, 8.0])
    np.testing.assert_array_equal(push(np.linalg.solve, (None, np.array([2.0, 4.0])), a, b), [1, 1])
    np.testing.assert_array_equal(push(np.linalg.solve, (np.ones((2, 2)), None), a, b), [-2.5, -1.25])


def test_inv_of_a_number_in_brackets() -> None:
    np.testing.assert_array_equal(pull(np.linalg.inv, np.array([[3.0]]), np.array([[2.0]])), [[-0.75]])
    np.testing.assert_array_equal(push(np.linalg.inv, (np.array([[3.0]]),), np.array([[2j]])), [[0.75]])


# --- det ----------


def cofactor_matrix(a: Any) -> Any:
    n = len(a)
    minors = [[np.delete(np.delete(a, i, 0), j, 1) for j in range(n)] for i in range(n)]
    return np.array([[(-1) ** (i + j) * np.linalg.det(minors[i][j]) for j in range(n)] for i in range(n)])


@pytest.mark.parametrize(
    "a",
    [
        np.arange(1.0, 10).reshape(3, 3),
        np.array([[0.0, 0, 0], [0, 1, 2], [0, 3, 4]]),
        np.diag([1.0, 1.0, 0.0, 1.0]),
        1e5 * np.outer([1.0, 2, 3, 4], [1.0, -1, 2, 0]) + np.diag([0, 1e5, -1e5, 0]),
        np.array([[1.0, 2, 3], [2, 4, 6], [1, 1, 1j]]),
    ],
)
def test_gradient_of_a_singular_determinant_is_the_cofactor_matrix(a: Any) -> None:
    want = cofactor_matrix(a)
    got = pull(np.linalg.det, 2.0, a)
    np.testing.assert_allclose(got, 2 * np.conj(want), rtol=0, atol=1e-13 * np.max(np.abs(want)))
    dot = np.sqrt(np.arange(a.size)).reshape(a.shape)
    np.testing.assert_allclose(push(np.linalg.det, (dot,), a), np.sum(want * dot), rtol=1e-12)


@pytest.mark.parametrize("n", [3, 4, 12])
def test_gradient_of_a_determinant_is_zero_below_rank_n_minus_one(n: int) -> None:
    np.testing.assert_allclose(pull(np.linalg.det, 1.0, np.ones((n, n))), 0, atol=1e-14)
    np.testing.assert_array_equal(pull(np.linalg.det, 1.0, np.zeros((n, n))), np.zeros((n, n)))


def test_small_determinants_are_exact() -> None:
    np.testing.assert_array_equal(pull(np.linalg.det, 3.0, np.array([[0.0]])), [[3]])
    np.testing.assert_array_equal(pull(np.linalg.det, 1.0, np.array([[1.0, 2.0], [2.0, 4.0]])), [[4, -2], [-2, 1]])
    assert pull(np.linalg.det, 1.0, np.ones((0, 0))).shape == (0, 0)


def test_stack_of_regular_and_singular_determinants() -> None:
    stack = np.stack([np.eye(3), np.diag([1.0, 2.0, 0.0]), np.zeros((3, 3))])
    got = pull(np.linalg.det, np.array([1.0, 2.0, 3.0]), stack)
    np.testing.assert_allclose(got, [np.eye(3), np.diag([0, 0, 4.0]), np.zeros((3, 3))], atol=1e-15)


def test_masked_determinant_of_nan_gives_zero() -> None:
    stack = np.stack([np.eye(3), np.full((3, 3), np.nan)])
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(pull(np.linalg.det, np.array([1.0, 0.0]), stack)[1], np.zeros((3, 3)))


def test_cofactors_of_a_singular_matrix_are_right_nearby_too() -> None:
    """The formula is an identity, and not only true at the singular matrix: otherwise its derivative would be wrong."""
    a = np.arange(1.0, 10).reshape(3, 3)
    for shift in (1e-12, 1e-9, 1e-3):
        near = a + shift * np.eye(3)
        np.testing.assert_allclose(rules.cofactors(near, np.linalg.det(near)), cofactor_matrix(near), rtol=1e-12)


# --- slogdet ----------


def test_slogdet_of_a_diagonal_matrix() -> None:
    np.testing.assert_array_equal(
        pull(np.linalg.slogdet, (None, np.float64(1.0)), np.diag([2.0, -4.0])), np.diag([0.5, -0.25])
    )


def test_sign_of_a_complex_determinant_turns() -> None:
    # sign(2i + ε) = i + ε / 2, up to a real part
    a = np.array([[2j]])
    np.testing.assert_allclose(pull(np.linalg.slogdet, (1.0 + 0j, None), a), [[0.5]])
    sign_dot, log_dot = push(np.linalg.slogdet, (np.array([[1.0 + 0j]]),), a)
    assert sign_dot == 0.5
    assert log_dot == 0


def test_slogdet_of_a_singular_matrix_raises_where_it_is_used() -> None:
    stack = np.stack([np.eye(2), np.ones((2, 2))])
    with pytest.raises(np.linalg.LinAlgError, match="Singular"):
        pull(np.linalg.slogdet, (None, np.array([1.0, 1.0])), stack)
    got = pull(np.linalg.slogdet, (None, np.array([1.0, 0.0])), stack)
    np.testing.assert_array_equal(got, [np.eye(2), np.zeros((2, 2))])


# --- pinv, lstsq ----------


def test_pinv_of_a_vector() -> None:
    # For a column a, P = aᵀ / |a|²; at a = (1, 0): dP = (−da₀, da₁).
    got = pull(np.linalg.pinv, np.array([[5.0, 7.0]]), np.array([[1.0], [0.0]]))
    np.testing.assert_allclose(got, [[-5], [7]], atol=1e-15)


def test_pinv_of_a_constant_rank_below_full() -> None:
    # P(t) = R(t) diag(½, 0) R(t)ᵀ for a turning a = R diag(2, 0) Rᵀ, so that Ṗ = ½ (r ṙᵀ + ṙ rᵀ).
    a, a_dot = np.diag([2.0, 0.0]), np.array([[0.0, 2.0], [2.0, 0.0]])
    np.testing.assert_allclose(push(np.linalg.pinv, (a_dot,), a), [[0, 0.5], [0.5, 0]], atol=1e-15)


def test_pinv_of_a_hermitian_matrix_reads_its_lower_triangle() -> None:
    a = np.array([[2.0, 99.0], [0.0, 4.0]])
    got = pull(np.linalg.pinv, np.ones((2, 2)), a, hermitian=True)
    np.testing.assert_allclose(got, [[-0.25, 0], [-0.25, -0.0625]], atol=1e-15)


def test_lstsq_fits_a_constant() -> None:
    # x is the mean of b, and the residual its scatter: its gradient is 2 (b − x).
    a, b = np.ones((3, 1)), np.array([1.0, 2.0, 6.0])
    _, b_bar = pull(np.linalg.lstsq, (np.array([3.0]), None, None, None), a, b)
    np.testing.assert_allclose(b_bar, [1, 1, 1])
    a_bar, b_bar = pull(np.linalg.lstsq, (None, np.array([1.0]), None, None), a, b)
    np.testing.assert_allclose(b_bar, [-4, -2, 6], atol=1e-14)
    np.testing.assert_allclose(a_bar, [[12], [6], [-18]], atol=1e-14)
    a_bar, b_bar = pull(np.linalg.lstsq, (None, None, None, np.array([np.sqrt(3)])), a, b)
    np.testing.assert_allclose(a_bar, np.ones((3, 1)))
    np.testing.assert_array_equal(b_bar, np.zeros(3))


# --- what is made of the others ----------


def test_matrix_power_takes_few_products(monkeypatch: pytest.MonkeyPatch) -> None:
    a, calls = np.array([[1.0, 1.0], [1.0, 0.0]]), []
    true_matmul = np.matmul

    def counting(*args: Any) -> Any:
        calls.append(1)
        return true_matmul(*args)

    monkeypatch.setattr(rules.np, "matmul", counting)
    np.testing.assert_array_equal(body(np.linalg.matrix_power, a, 10), [[89, 55], [55, 34]])
    assert len(calls) == 4  # 2, 4, 8 and 8 + 2
    np.testing.assert_array_equal(body(np.linalg.matrix_power, a, 0), np.eye(2))
    np.testing.assert_array_equal(body(np.linalg.matrix_power, a, -1), [[0, 1], [1, -1]])


def test_chain_of_matrices_is_multiplied_in_the_cheapest_order() -> None:
    # The example of Cormen et al.: ((A₁ (A₂ A₃)) ((A₄ A₅) A₆)).
    splits = rules._best_splits([30, 35, 15, 5, 10, 20, 25])
    assert splits[0, 5] == 2
    assert splits[0, 2] == 0
    assert splits[3, 5] == 4
    vector = np.array([1.0, 2.0])
    assert body(np.linalg.multi_dot, [vector, np.eye(2), np.eye(2), vector]) == 5
    np.testing.assert_array_equal(body(np.linalg.multi_dot, (vector, 2 * np.eye(2))), [2, 4])


@pytest.mark.parametrize("p", [None, 2, -2, 1, np.inf, "fro"])
def test_condition_numbers(p: Any) -> None:
    a = np.array([[3.0, 1.0], [0.5, 2.0]])
    np.testing.assert_allclose(body(np.linalg.cond, a, p), np.linalg.cond(a, p))


def test_trace_of_an_offset_diagonal() -> None:
    rule = RULES[np.linalg.trace]
    bar = rule.adjoints[0](2.0, rules.Like((2, 3), np.dtype(float)), offset=1)  # type: ignore[attr-defined]
    np.testing.assert_array_equal(bar, [[0, 2, 0], [0, 0, 2]])
