"""Hand-worked numbers for einsum."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograde.rules.numpy_einsum  # noqa: F401  defines the rules
from retrograde.rules.table import RULES, General

A = np.arange(1.0, 10).reshape(3, 3)


def bars(y_bar: Any, *operands: Any, **kwargs: Any) -> list[Any]:
    rule = RULES[np.einsum]
    assert isinstance(rule, General)
    pull = rule.pullback(np.einsum(*operands, **kwargs), *operands, **kwargs)
    return [bar() for bar in pull(np.asarray(y_bar)) if bar is not None]


def test_trace_and_diagonal() -> None:
    np.testing.assert_array_equal(bars(2.0, "ii->", A)[0], 2 * np.eye(3))
    np.testing.assert_array_equal(bars(2.0, "ii", A)[0], 2 * np.eye(3))
    np.testing.assert_array_equal(bars([1.0, 2.0, 3.0], "ii->i", A)[0], np.diag([1, 2, 3]))


def test_implicit_output_is_in_alphabetical_order() -> None:
    y_bar = np.arange(6.0).reshape(3, 2)
    np.testing.assert_array_equal(bars(y_bar, "ba", np.ones((2, 3)))[0], y_bar.T)
    assert bars(np.ones((2, 3)), "aB", np.ones((3, 2)))[0].shape == (3, 2)  # capitals come first


def test_index_that_only_one_operand_has_is_repeated() -> None:
    a_bar, b_bar = bars([1.0, 2.0], "ij,k->k", np.ones((2, 3)), np.array([5.0, 7.0]))
    np.testing.assert_array_equal(a_bar, np.full((2, 3), 19))
    np.testing.assert_array_equal(b_bar, [6, 12])


def test_label_of_length_one_is_summed_and_repeated() -> None:
    a_bar, b_bar = bars(1.0, "ij,ij->", np.ones((2, 3)), np.array([[1.0, 2.0, 3.0]]))
    np.testing.assert_array_equal(a_bar, [[1, 2, 3], [1, 2, 3]])
    np.testing.assert_array_equal(b_bar, [[2, 2, 2]])


def test_ellipsis_is_broadcast() -> None:
    a, b = np.ones((2, 1, 3)), np.ones((4, 3))
    a_bar, b_bar = bars(np.ones((2, 4)), "...i,...i", a, b)
    np.testing.assert_array_equal(a_bar, np.full((2, 1, 3), 4))
    np.testing.assert_array_equal(b_bar, np.full((4, 3), 2))


def test_ellipsis_of_no_dimensions() -> None:
    assert bars(np.ones(3), "...,...i->...i", 2.0, np.array([1.0, 2.0, 3.0]))[0] == 6


def test_lists_of_labels_instead_of_a_string() -> None:
    y_bar = np.arange(4.0).reshape(2, 2)
    got = bars(y_bar, A[:2], [0, 1], A[:, :2], [1, 9], [9, 0])
    np.testing.assert_array_equal(got[0], y_bar.T @ A[:, :2].T)
    np.testing.assert_array_equal(got[1], A[:2].T @ y_bar.T)
    got = bars(y_bar, A[:2], [Ellipsis, 3], A[:, :2], [3, 4])
    np.testing.assert_array_equal(got[0], y_bar @ A[:, :2].T)


@pytest.mark.parametrize("optimize", [False, True, "greedy", "optimal", ["einsum_path", (0, 2), (0, 1)]])
def test_plan_does_not_change_the_cotangents(optimize: Any) -> None:
    got = bars(np.ones(3), "ij,jk,k->i", A, A, A[0], optimize=optimize)
    np.testing.assert_allclose(got[0], np.broadcast_to(A @ A[0], (3, 3)))
    np.testing.assert_allclose(got[1], np.outer(A.sum(0), A[0]))
    np.testing.assert_allclose(got[2], A.T @ A.sum(0))


def test_other_operands_are_conjugated() -> None:
    a_bar, b_bar = bars([1j], "i,i->i", np.array([2 + 1j]), np.array([1 - 3j]))
    np.testing.assert_array_equal(a_bar, [1j * (1 + 3j)])
    np.testing.assert_array_equal(b_bar, [1j * (2 - 1j)])


def test_masked_cotangent_hides_an_infinity() -> None:
    with np.errstate(invalid="ignore"):
        a_bar = bars([0.0, 1.0], "ij,ij->i", np.ones((2, 2)), np.array([[np.inf, 1.0], [2.0, 3.0]]))[0]
        np.testing.assert_array_equal(a_bar, [[0, 0], [2, 3]])
        a_bar = bars([0.0, 1.0], "j,ij->i", np.ones(2), np.array([[np.inf, 1.0], [2.0, 3.0]]))[0]
        np.testing.assert_array_equal(a_bar, [2, 3])


def test_large_products_are_planned_and_small_ones_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    from retrograde.rules import numpy_einsum

    plans = []
    monkeypatch.setattr(numpy_einsum.np, "einsum", lambda *a, optimize: plans.append(optimize) or np.ones((2, 2)))
    numpy_einsum._contract("ij,jk->ik", False, np.ones((2, 2)), [np.ones((2, 2))])
    numpy_einsum._contract("ij,jk->ik", False, np.ones((80, 80)), [np.ones((80, 80))])
    assert plans == [False, True]
