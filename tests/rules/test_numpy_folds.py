"""Folds, scans and outer forms of ufuncs that have no formula of their own."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from truth import close, differences

from retrograde import gradient, jacobian, jvp

X = np.array([[8.3, 2.1, 0.55], [3.2, 1.45, 4.1]])
MASK = np.array([[True, False, True], [True, True, True]])


def check(f: Any, x: Any = X) -> None:
    y, y_dot = jvp(f, (x,), (np.ones(np.shape(x)),))
    np.testing.assert_allclose(y, f(x), rtol=1e-14)
    slope = differences(f, x)
    close(y_dot, np.sum(slope, axis=tuple(range(np.ndim(f(x)), np.ndim(slope)))), rtol=1e-7, atol=1e-9)
    close(jacobian(f, x), slope, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("ufunc", [np.subtract, np.divide, np.hypot, np.logaddexp2, np.fmod])
def test_a_fold_is_that_of_the_steps(ufunc: np.ufunc) -> None:
    check(lambda x: ufunc.reduce(x, axis=1))
    check(lambda x: ufunc.reduce(x, axis=0, keepdims=True))
    check(lambda x: ufunc.reduce(x, axis=1, initial=9.0))
    check(lambda x: ufunc.reduce(x, axis=1, initial=9.0, where=MASK))
    check(lambda x: ufunc.accumulate(x, axis=1))
    check(lambda x: ufunc.reduceat(x, [0, 2, 1], axis=1))
    check(lambda x: ufunc.outer(x, np.array([0.75, 3.0])))


def test_a_fold_over_several_axes_needs_an_order_that_does_not_matter() -> None:
    check(lambda x: np.hypot.reduce(x, axis=None))
    check(lambda x: np.logaddexp2.reduce(x, axis=(0, 1), keepdims=True))
    with pytest.raises(ValueError, match="reorderable"):
        gradient(lambda x: np.subtract.reduce(x, axis=None), X)


def test_a_mask_over_a_fold_without_an_identity_needs_an_initial_value() -> None:
    with pytest.raises(ValueError, match="initial"):
        gradient(lambda x: np.subtract.reduce(x, axis=None, where=MASK[0]), X[0])


def test_folds_of_one_element_and_of_none() -> None:
    close(gradient(lambda x: np.subtract.reduce(x), np.array([2.0]))[0], [1.0])
    close(gradient(lambda x: np.hypot.reduce(x), np.zeros(0))[0], np.zeros(0))
    with pytest.raises(ValueError, match="zero-size"):
        gradient(lambda x: np.subtract.reduce(x), np.zeros(0))


@pytest.mark.parametrize("ufunc", [np.maximum, np.minimum, np.fmax, np.fmin, np.logaddexp])
def test_slices_are_reduced_by_the_formula_of_the_reduction(ufunc: np.ufunc) -> None:
    check(lambda x: ufunc.reduceat(x, [0, 2, 1], axis=1))


def test_ties_in_a_slice_share_equally() -> None:
    close(gradient(lambda x: np.maximum.reduceat(x, [0, 2])[0], np.array([1.0, 1.0, 5.0]))[0], [0.5, 0.5, 0.0])


def test_a_fold_has_the_dtype_that_is_asked_for() -> None:
    y, y_dot = jvp(lambda x: np.hypot.reduce(x, dtype=np.float32), (X,), (X,))
    assert y.dtype == y_dot.dtype == np.float32


@pytest.mark.parametrize("shape", [(0, 3), (2, 0), (0,)])
def test_folds_of_nothing_have_the_shapes_of_numpys(shape):
    x = np.zeros(shape)
    for axis in range(len(shape)):
        with_start = partial(np.logaddexp2.reduce, axis=axis, initial=1.0)
        assert np.array_equal(jvp(with_start, (x,), (x,))[0], with_start(x))
        if shape[axis]:
            for f in (np.subtract.reduce, np.subtract.accumulate, lambda x, axis: np.subtract.reduceat(x, [0], axis)):
                y, y_dot = jvp(lambda x, f=f, axis=axis: f(x, axis=axis), (x,), (x,))
                assert np.shape(y) == np.shape(y_dot) == np.shape(f(x, axis=axis))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.longdouble])
def test_folds_keep_the_dtype_and_give_numbers(dtype):
    x = np.array([0.5, -1.0, 2.0], dtype)
    for f in (
        lambda x: np.logaddexp2.reduce(x, initial=0.25),
        lambda x: np.logaddexp2.reduce(x, where=np.array([True, False, True])),
        lambda x: np.subtract.reduce(x, initial=np.float64(0.25)),
        lambda x: np.logaddexp2.reduce(x[0], axis=None),
    ):
        y, y_dot = jvp(f, (x,), (np.ones(3, dtype),))
        assert type(y) is type(y_dot) is type(f(x)) is dtype
        assert y == f(x)
