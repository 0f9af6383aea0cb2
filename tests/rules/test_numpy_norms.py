"""Hand-worked numbers for norms: every order, ties, and zero."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from truth import close

import retrograde.rules.numpy_norms  # noqa: F401  defines the rules
from retrograde import grad, hessian, jvp
from retrograde.rules.table import RULES, General


def pull(y_bar: Any, x: Any, *args: Any, function: Any = np.linalg.norm, **kwargs: Any) -> Any:
    rule = RULES[function]
    assert isinstance(rule, General)
    return rule.pullback(function(x, *args, **kwargs), x, *args, **kwargs)(y_bar)[0]


def push(x_dot: Any, x: Any, *args: Any, function: Any = np.linalg.norm, **kwargs: Any) -> Any:
    rule = RULES[function]
    assert isinstance(rule, General)
    return rule.pushforward(function(x, *args, **kwargs), x, *args, **kwargs)(x_dot)


def test_euclidean_norm_of_anything() -> None:
    np.testing.assert_array_equal(pull(10.0, np.array([3.0, 4.0])), [6, 8])
    np.testing.assert_array_equal(pull(10.0, np.array([[3.0], [4.0]])), [[6], [8]])
    np.testing.assert_array_equal(pull(10.0, np.array([[3.0], [4.0]]), "fro"), [[6], [8]])
    assert pull(2.0, np.float64(-3.0)) == -2
    np.testing.assert_array_equal(pull(10.0, np.array([3j, 4.0])), [6j, 8])
    np.testing.assert_array_equal(pull(10.0, [3.0, 4.0]), [6, 8])


@pytest.mark.parametrize("order", [None, 1, 2, 3, 2.5, 0.5, -1, -1.5, np.inf, -np.inf, 0])
def test_gradient_of_a_vector_norm_at_zero_is_zero(order: Any) -> None:
    zero = np.zeros(3)
    with np.errstate(divide="ignore"):  # NumPy's own, for negative orders
        np.testing.assert_array_equal(pull(1.0, zero, order), zero)
        assert push(np.ones(3), zero, order) == 0


@pytest.mark.parametrize("order", [None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf])
def test_gradient_of_a_matrix_norm_at_zero_is_zero(order: Any) -> None:
    zero = np.zeros((2, 3))
    np.testing.assert_array_equal(pull(1.0, zero, order), zero)


def test_one_row_of_zeros_does_not_spoil_the_others() -> None:
    x = np.array([[0.0, 0.0], [3.0, 4.0]])
    np.testing.assert_array_equal(pull(np.array([7.0, 10.0]), x, axis=-1), [[0, 0], [6, 8]])
    np.testing.assert_array_equal(pull(np.array([[7.0], [10.0]]), x, None, 1, True), [[0, 0], [6, 8]])


def test_tied_maxima_and_minima_share() -> None:
    x = np.array([3.0, -3.0, 1.0, -1.0])
    np.testing.assert_array_equal(pull(1.0, x, np.inf), [0.5, -0.5, 0, 0])
    np.testing.assert_array_equal(pull(1.0, x, -np.inf), [0, 0, 0.5, -0.5])


def test_powers() -> None:
    x = np.array([1.0, -2.0, 0.0])
    np.testing.assert_array_equal(pull(2.0, x, 1), [2, -2, 0])
    np.testing.assert_array_equal(pull(2.0, x, 0), [0, 0, 0])
    np.testing.assert_allclose(pull(1.0, x, 3), np.array([1, -4, 0]) / 9 ** (2 / 3))
    # (√1 + √2)², whose slope in the first is 1 + √2; the slope at the zero is infinite, and by convention zero
    np.testing.assert_allclose(pull(1.0, x, 0.5), [1 + np.sqrt(2), -(1 + 1 / np.sqrt(2)), 0])
    np.testing.assert_allclose(pull(1.0, x[:2], -1), [4 / 9, -1 / 9])  # y = 1 / (1 + ½)
    np.testing.assert_allclose(pull(1.0, 1e100 * x, 3), np.array([1, -4, 0]) / 9 ** (2 / 3))


def test_direction_of_a_complex_element() -> None:
    np.testing.assert_allclose(pull(1.0, np.array([3 + 4j, 0]), 1), [0.6 + 0.8j, 0])
    np.testing.assert_allclose(pull(1.0, np.array([3 + 4j, 0]), np.inf), [0.6 + 0.8j, 0])
    assert push(np.array([1j, 1j]), np.array([3 + 4j, 0]), 1) == 0.8


def test_largest_column_and_row_of_a_matrix() -> None:
    a = np.array([[1.0, -2.0, 0.5], [3.0, 1.0, -4.0]])
    np.testing.assert_array_equal(pull(1.0, a, 1), [[0, 0, 1], [0, 0, -1]])
    np.testing.assert_array_equal(pull(1.0, a, np.inf), [[0, 0, 0], [1, 1, -1]])
    np.testing.assert_array_equal(pull(1.0, a, -1), [[0, -1, 0], [0, 1, 0]])
    np.testing.assert_array_equal(pull(1.0, a, -np.inf), [[1, -1, 1], [0, 0, 0]])


def test_tied_columns_share() -> None:
    np.testing.assert_array_equal(pull(1.0, np.array([[1.0, -2.0], [2.0, 1.0]]), 1), [[0.5, -0.5], [0.5, 0.5]])


def test_norms_of_singular_values() -> None:
    a = np.diag([3.0, -2.0])
    np.testing.assert_allclose(pull(1.0, a, 2), np.diag([1, 0]), atol=1e-15)
    np.testing.assert_allclose(pull(1.0, a, -2), np.diag([0, -1]), atol=1e-15)
    np.testing.assert_allclose(pull(1.0, a, "nuc"), np.diag([1, -1]), atol=1e-15)


def test_tied_singular_values_share() -> None:
    turn = np.array([[0.6, -0.8], [0.8, 0.6]])
    np.testing.assert_allclose(pull(1.0, 5 * turn, 2), turn / 2, atol=1e-15)
    np.testing.assert_allclose(pull(1.0, 5 * turn, -2), turn / 2, atol=1e-15)


def test_nuclear_norm_counts_no_singular_value_of_zero() -> None:
    a = np.outer([3.0, 4.0], [1.0, 0.0])
    np.testing.assert_allclose(pull(1.0, a, "nuc"), a / 5, atol=1e-15)
    assert push(np.array([[0.0, 5.0], [0.0, 0.0]]), a, "nuc") == pytest.approx(0)


def test_matrix_norm_over_axes_in_any_order() -> None:
    a = np.arange(1.0, 13).reshape(2, 3, 2)
    columns_last = pull(np.ones(3), a, 1, (0, 2))
    np.testing.assert_array_equal(columns_last[:, 0], [[0, 1], [0, 1]])
    np.testing.assert_array_equal(pull(np.ones(3), a, np.inf, (2, 0)), columns_last)
    nuclear = pull(np.ones(3), a, "nuc", (-1, 0))
    np.testing.assert_allclose(nuclear[:, 1].T, pull(1.0, a[:, 1].T, "nuc"))


def test_vector_norm_flattens_and_matrix_norm_takes_the_last_axes() -> None:
    x = np.array([[[3.0, 0.0], [0.0, -4.0]]])
    np.testing.assert_array_equal(pull(1.0, x, function=np.linalg.vector_norm, ord=np.inf), [[[0, 0], [0, -1]]])
    np.testing.assert_array_equal(pull(5.0, x, function=np.linalg.vector_norm), x)
    np.testing.assert_array_equal(pull(np.array([5.0]), x, function=np.linalg.matrix_norm), x)
    got = pull(np.array([1.0]), x, function=np.linalg.matrix_norm, ord=1)
    np.testing.assert_array_equal(got, [[[0, 0], [0, -1]]])


def test_masked_norm_of_infinity_gives_zero() -> None:
    x = np.array([[np.inf, 1.0], [3.0, 4.0]])
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(pull(np.array([0.0, 5.0]), x, None, 1), [[0, 0], [3, 4]])
        np.testing.assert_array_equal(pull(np.array([0.0, 25.0]), x, 3, 1)[0], [0, 0])


LENGTHS: list[Any] = [
    np.linalg.norm,
    lambda x: np.hypot(x[0], x[1]),
    lambda x: np.abs(x[0] + 1j * x[1]),
]


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("length", LENGTHS)
def test_second_derivatives_of_a_length_at_zero_are_no_silent_zeros(length: Any, power: int) -> None:
    """That of the square exists, but no value at the point tells it; np.sum(x * x) has it."""

    def f(x: Any) -> Any:
        return length(x) ** power

    with np.errstate(all="ignore"):
        assert not np.any(np.isfinite(np.diag(hessian(f, np.zeros(2)))))
        assert not np.isfinite(grad(lambda t: grad(f)(t * np.array([1.0, 0.0]))[0])(0.0))
        assert not np.isfinite(jvp(lambda x: jvp(f, (x,), (np.ones(2),))[1], (np.zeros(2),), (np.ones(2),))[1])


@pytest.mark.parametrize("power", [1, 2, 4])
def test_the_second_derivative_of_a_root_that_was_taken_back_is_no_silent_zero(power: int) -> None:
    with np.errstate(all="ignore"):
        for f in (lambda s: np.sqrt(s) ** power, lambda s: np.cbrt(s) ** power):
            assert not np.isfinite(hessian(f, 0.0))
    # Where the branch is not taken, it is one.
    close(hessian(lambda s: np.where(s > 0, np.sqrt(s), 0.0) ** 2 + s * s, 0.0), 2.0)


def test_second_derivatives_of_lengths_elsewhere_are_right() -> None:
    for length in LENGTHS:
        close(hessian(length, np.array([3.0, 4.0])), [[16 / 125, -12 / 125], [-12 / 125, 9 / 125]])
        close(hessian(lambda x, f=length: f(x) ** 2, np.array([3.0, 4.0])), 2 * np.eye(2))


def test_second_derivatives_of_a_norm_that_is_not_used_at_zero_are_zero() -> None:
    def f(x: Any) -> Any:
        lengths = np.linalg.norm(x, axis=1)
        return np.sum(np.where(lengths > 0, lengths, 0.0))

    x = np.array([[0.0, 0.0], [3.0, 4.0]])
    got = hessian(f, x)
    np.testing.assert_array_equal(got[0], 0)
    np.testing.assert_allclose(got[1, :, 1, :], [[16 / 125, -12 / 125], [-12 / 125, 9 / 125]])
