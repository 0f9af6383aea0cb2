"""Hand-worked numbers for arrays between two ends and for polynomials."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograde.rules.numpy_creation  # noqa: F401  defines the rules
from retrograde.errors import MutationError
from retrograde.rules.table import RULES, Composed, General, Like, Linear


def adjoint(function: Any, number: int, y_bar: Any, start: Any, stop: Any, *args: Any, **kwargs: Any) -> Any:
    rule = RULES[function]
    assert isinstance(rule, Linear)
    likes = (Like(shape, np.dtype(float)) for shape in (start, stop))
    return rule.adjoints[number](np.asarray(y_bar, float), *likes, *args, **kwargs)


def body(function: Any, *args: Any, **kwargs: Any) -> Any:
    rule = RULES[function]
    assert isinstance(rule, Composed)
    return rule.body(*args, **kwargs)


def test_linspace_shares_a_sample_between_its_ends_by_distance() -> None:
    y_bar = [1, 10, 100]
    assert adjoint(np.linspace, 0, y_bar, (), (), 3) == 1 + 5
    assert adjoint(np.linspace, 1, y_bar, (), (), 3) == 5 + 100


def test_linspace_without_its_endpoint_does_not_reach_it() -> None:
    assert adjoint(np.linspace, 1, [1, 1], (), (), 2, endpoint=False) == 0.5


def test_linspace_of_one_sample_is_its_start() -> None:
    assert adjoint(np.linspace, 0, [3], (), (), 1) == 3
    assert adjoint(np.linspace, 1, [3], (), (), 1) == 0


def test_linspace_sums_over_what_an_end_was_broadcast_to() -> None:
    y_bar = [[1, 2], [3, 4]]
    assert adjoint(np.linspace, 0, y_bar, (), (2,), 2) == 3
    np.testing.assert_array_equal(adjoint(np.linspace, 1, y_bar, (), (2,), 2), [3, 4])
    np.testing.assert_array_equal(adjoint(np.linspace, 1, y_bar, (), (2,), 2, axis=-1), [2, 4])


def test_linspace_pulls_its_step_back_to_both_ends() -> None:
    assert adjoint_of_step(0) == -0.5
    assert adjoint_of_step(1) == 0.5
    assert adjoint_of_step(0, num=1) == 0


def adjoint_of_step(number: int, num: int = 3) -> Any:
    rule = RULES[np.linspace]
    assert isinstance(rule, Linear)
    number_like = Like((), np.dtype(float))
    return rule.adjoints[number]([None, 1.0], number_like, number_like, num, retstep=True)


def test_geomspace_is_homogeneous_in_its_ends() -> None:
    """y = (1, 2, 4): ∂y/∂start = (1-t) y/start = (1, 1, 0) and ∂y/∂stop = t y/stop = (0, 1/4, 1)."""
    rule = RULES[np.geomspace]
    assert isinstance(rule, General)
    start_bar, stop_bar = rule.pullback(np.geomspace(1, 4, 3), 1.0, 4.0, 3)(np.array([1.0, 10.0, 100.0]))
    np.testing.assert_allclose(start_bar(), 11, rtol=1e-15)
    np.testing.assert_allclose(stop_bar(), 102.5, rtol=1e-15)
    push = rule.pushforward(np.geomspace(1, 4, 3), 1.0, 4.0, 3)
    np.testing.assert_allclose(push(None, 1.0), [0, 1 / 4, 1], rtol=1e-15)


def test_logspace_counts_its_axis_in_the_whole() -> None:
    args = (0.0, [1.0, 2.0], 3, True, np.array([[2.0], [3.0]]))
    for axis in (0, 1, -1):
        np.testing.assert_allclose(body(np.logspace, *args, axis=axis), np.logspace(*args, axis=axis), rtol=1e-15)


def test_full_like_takes_shape_and_dtype_of_its_first_argument() -> None:
    filled = body(np.full_like, np.zeros((2, 2), np.float32), np.array([1.0, 2.0]))
    np.testing.assert_array_equal(filled, [[1, 2], [1, 2]])
    assert filled.dtype == np.float32
    assert filled.flags.writeable


def test_full_like_of_integers_refuses_a_float() -> None:
    with pytest.raises(MutationError, match="truncate a float64 to int64"):
        body(np.full_like, np.zeros(2, np.int64), 0.5)


def test_polyval_starts_from_the_highest_degree() -> None:
    assert body(np.polyval, [2.0, 3.0, 4.0], 10.0) == 234
    assert body(np.polyval, np.poly1d([2.0, 3.0, 4.0]), 10.0) == 234


def test_polyval_of_a_constant_has_the_shape_of_its_argument() -> None:
    np.testing.assert_array_equal(body(np.polyval, [5.0], np.zeros(2)), [5, 5])
    np.testing.assert_array_equal(body(np.polyval, [], np.zeros(2)), [0, 0])


@pytest.mark.parametrize("m", [0, 1, 2, 3, 4])
def test_polyder_and_polyint_are_numpys(m: int) -> None:
    p = np.array([1.0, 2.0, 3.0])
    np.testing.assert_array_equal(body(np.polyder, p, m), np.polyder(p, m))
    np.testing.assert_allclose(body(np.polyint, p, m, 2.0), np.polyint(p, m, 2.0), rtol=1e-15)


def test_polyint_takes_one_constant_for_each_integration() -> None:
    np.testing.assert_array_equal(body(np.polyint, [6.0], 2, [1.0, 2.0]), [3, 1, 2])
    with pytest.raises(ValueError, match="k must be a scalar"):
        body(np.polyint, [6.0], 3, [1.0, 2.0])


def test_negative_orders_are_refused() -> None:
    with pytest.raises(ValueError, match="must be positive"):
        body(np.polyder, [1.0], -1)
    with pytest.raises(ValueError, match="must be positive"):
        body(np.polyint, [1.0], -1)


def test_sums_align_the_constant_terms() -> None:
    np.testing.assert_array_equal(body(np.polyadd, [1.0, 2.0, 3.0], 10.0), [1, 2, 13])
    np.testing.assert_array_equal(body(np.polysub, 10.0, [1.0, 2.0, 3.0]), [-1, -2, 7])


@pytest.mark.parametrize("a1", [[0.0, 0.0, 2.0, 1.0], [0.0, 0.0], [3.0]])
@pytest.mark.parametrize("a2", [[1.0, 1.0], [0.0, 5.0]])
def test_polymul_drops_leading_zeros_as_numpy_does(a1: Any, a2: Any) -> None:
    np.testing.assert_array_equal(body(np.polymul, np.array(a1), a2), np.polymul(a1, a2))


def test_vander_of_zero_to_the_power_zero_is_one() -> None:
    np.testing.assert_array_equal(body(np.vander, np.array([0.0, 2.0]), 3), [[0, 0, 1], [4, 2, 1]])


def test_vander_takes_one_dimension() -> None:
    with pytest.raises(ValueError, match="one-dimensional"):
        body(np.vander, np.ones((2, 2)))
