"""Functions of NumPy that call a Python function along an axis."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from truth import close, differences

from retrograde import gradient, jacobian, jvp

A = np.arange(1.0, 7.0).reshape(2, 3)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("f", [np.sum, np.cumprod, lambda v: np.outer(v, v), lambda v: v[::-1] * v[0], lambda v: 2.0])
def test_apply_along_axis_is_numpys(f: Any, axis: int) -> None:
    y, y_dot = jvp(lambda a: np.apply_along_axis(f, axis, a), (A,), (np.ones((2, 3)),))
    np.testing.assert_allclose(y, np.apply_along_axis(f, axis, A))
    slope = differences(lambda a: np.apply_along_axis(f, axis, a), A)
    close(y_dot, np.sum(slope, axis=(-2, -1)), rtol=1e-7, atol=1e-7)


def test_a_function_along_an_axis_may_have_parameters() -> None:
    def scaled(v: Any, k: float, *, by: float) -> Any:
        return np.sum(v * v) * k * by

    close(gradient(lambda a: np.sum(np.apply_along_axis(scaled, 1, a, 2.0, by=3.0)), A)[0], 12 * A)


def test_a_parameter_may_be_traced_too() -> None:
    close(gradient(lambda a, k: np.sum(np.apply_along_axis(lambda v, k: k * v, 0, a, k)), A, 2.0)[1], np.sum(A))


def test_lines_of_no_array_are_refused_as_numpy_does() -> None:
    with pytest.raises(ValueError, match="iteration dimensions are 0"):
        gradient(lambda a: np.sum(np.apply_along_axis(np.sum, 0, a)), np.zeros((2, 0)))


def test_apply_over_axes_keeps_the_dimensions() -> None:
    def f(a: Any) -> Any:
        return np.apply_over_axes(np.sum, a**2, [0, 1])

    assert jacobian(f, A).shape == (1, 1, 2, 3)
    close(jacobian(f, A)[0, 0], 2 * A)
