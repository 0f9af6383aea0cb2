"""`np.vectorize` and `np.frompyfunc`: Python functions on the elements of traced arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from truth import close

from retrograde import Buffer, gradient, hessian, jvp
from retrograde.errors import ConversionError

X = np.array([1.0, 2.0, 3.0])


def branching(t: Any, scale: Any = 2.0) -> Any:
    return scale * t * t if t > 1 else t


v = np.vectorize(branching)
f = np.frompyfunc(lambda t, u: t * t * u, 2, 1)


def test_vectorize_takes_each_element_through_its_own_branch() -> None:
    close(gradient(lambda x: np.sum(v(x)), X)[0], [1, 8, 12])
    close(hessian(lambda x: np.sum(v(x)), X), np.diag([0.0, 4, 4]))
    close(jvp(v, (X,), (np.ones(3),))[1], [1, 8, 12])


def test_vectorize_broadcasts_and_takes_keywords() -> None:
    close(gradient(lambda x, s: np.sum(v(x[:, None], scale=s)), X, np.array([1.0, 2.0]))[1], [13, 13])


def test_vectorize_of_a_number_gives_an_array_without_axes() -> None:
    y, _ = jvp(v, (2.0,), (1.0,))
    assert np.shape(y) == np.shape(v(2.0))
    close(gradient(v, 2.0)[0], 8.0)


def test_vectorize_leaves_excluded_arguments_whole() -> None:
    dot = np.vectorize(lambda t, w: t * np.sum(w), excluded=["w"])
    close(gradient(lambda w: np.sum(dot(X, w=w)), X)[0], [6, 6, 6])
    close(gradient(lambda w: np.sum(np.vectorize(lambda t, w: t * np.sum(w), excluded={1})(X, w)), X)[0], [6, 6, 6])


def test_vectorize_with_a_signature_and_several_outputs() -> None:
    both = np.vectorize(lambda a, b: (a @ b, a * b), signature="(n),(n)->(),(n)")
    matrix = np.arange(6.0).reshape(2, 3)
    y, _ = jvp(lambda b: both(matrix, b), (X,), (X,))
    for got, want in zip(y, both(matrix, X), strict=True):
        np.testing.assert_array_equal(got, want)
    close(gradient(lambda b: np.sum(both(matrix, b)[0]) + np.sum(both(matrix, b)[1]), X)[0], 2 * matrix.sum(axis=0))


def test_vectorize_has_the_dtypes_that_it_was_given() -> None:
    y, _ = jvp(np.vectorize(branching, otypes=[np.float32]), (X,), (X,))
    assert y.dtype == np.float32


def test_a_first_result_that_is_an_integer_would_truncate_all_others() -> None:
    """As NumPy does it silently."""
    clipped = np.vectorize(lambda t: t if t > 1.5 else 0)
    assert clipped(X).dtype == int
    with pytest.raises(ConversionError, match=r"int64.*first"):
        gradient(lambda x: np.sum(clipped(x)), X)
    close(gradient(lambda x: np.sum(np.vectorize(lambda t: t if t > 1.5 else 0, otypes=[float])(x)), X)[0], [0, 1, 1])


def test_vectorize_of_nothing() -> None:
    with pytest.raises(ValueError, match="otypes"):
        gradient(lambda x: np.sum(v(x)), np.zeros(0))
    assert jvp(np.vectorize(branching, otypes=[float]), (np.zeros((0, 2)),), (np.zeros((0, 2)),))[0].shape == (0, 2)


def test_an_error_of_the_python_function_passes_unchanged() -> None:
    def fails(t: Any) -> Any:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        gradient(lambda x: np.sum(np.vectorize(fails)(x)), X)
    assert np.vectorize.__call__(v, X) is not None
    close(v(X), [1, 8, 18])  # NumPy's own again


def test_vectorize_of_plain_arrays_is_numpys_inside_a_transform() -> None:
    close(gradient(lambda x: np.sum(x * v(X)), X)[0], [1, 8, 18])


def test_ufuncs_of_python_functions() -> None:
    close(gradient(lambda x: np.sum(f(x, 2.0)), X)[0], [4, 8, 12])
    close(gradient(lambda x: np.sum(f(x[:, None], x)), X)[0], [26, 38, 50])
    close(jvp(lambda x: f(x, x), (X,), (np.ones(3),))[1], 3 * X**2)
    assert gradient(f, 2.0, 3.0) == (12.0, 4.0)
    two = np.frompyfunc(lambda t: (t * t, -t), 1, 2)
    close(gradient(lambda x: np.sum(two(x)[0] * two(x)[1]), X)[0], -3 * X**2)


def test_arange_is_differentiable_in_its_start_and_its_step() -> None:
    close(gradient(lambda a: np.sum(np.arange(a, 3.0)), 0.25)[0], 3.0)
    close(gradient(lambda h: np.sum(np.arange(0.0, 1.0, h)), 0.25)[0], 6.0)
    close(gradient(lambda a, h: np.sum(np.arange(a, step=h, stop=1.0) ** 2), 0.1, 0.5)[1], 2 * 0.6)
    close(gradient(lambda b: b * np.sum(np.arange(b)), 2.5)[0], 3.0)
    y, _ = jvp(lambda h: np.arange(0, 1, h), (np.float32(0.25),), (np.float32(1),))
    assert y.dtype == np.arange(0, 1, np.float32(0.25)).dtype


def test_what_numpy_polynomial_fills_is_not_what_compiled_callers_get() -> None:
    def fills(x: Any) -> Any:
        b = Buffer(x, 2)
        b[0] = np.polynomial.polynomial.polyder(np.stack([x, 2 * x, 3 * x]))[1]
        return np.sum(b.copy()) + 0.0 * np.random.default_rng(0).normal(size=2)[0]

    close(gradient(fills, 2.0)[0], 6.0)


def test_kaisers_window_is_differentiable_in_beta() -> None:
    for points in (0, 1, 2, 7):
        np.testing.assert_allclose(jvp(lambda b, n=points: np.kaiser(n, b), (2.5,), (1.0,))[0], np.kaiser(points, 2.5))
    h = 1e-5
    want = (np.kaiser(7, 2.5 + h) - np.kaiser(7, 2.5 - h)) / (2 * h)
    close(jvp(lambda b: np.kaiser(7, b), (2.5,), (1.0,))[1], want, rtol=1e-8, atol=1e-9)
