"""Writes under a mask that is another one for each example."""

import numpy as np
import pytest
from truth import close, differences

from retrograde import jacobian, vmap

XS = np.array([[1.1, -2.0, 3.0, 0.5], [-1.2, 2.0, -0.3, 4.0], [-1.5, -0.2, -1.4, -2.0]])


def multiplied(x):
    y = x * x
    np.multiply(y, x, out=y, where=x > 0)
    return y


def logarithm_where_there_is_one(x):
    y = np.zeros(4)
    np.log(x, out=y, where=x > 0)
    return y * x


def quotient_of_constants(x):
    return np.divide(np.ones(4), 4.0, out=np.zeros_like(x), where=x > 0.6) * x


def placed(x):
    y = 2.0 * x
    np.place(y, x > 0, np.array([10.0, 20.0, 30.0]) * x[0])
    return y


def placed_constants(x):
    y = np.zeros((2, 2))
    np.place(y, np.reshape(x > 0, (2, 2)), [1.0, 2.0])
    return y.ravel() * x


def placed_in_a_part(x):
    y = np.zeros(4)
    np.place(y[1:], x[1:] > 0, x)
    return y * x


def put(x):
    y = 2.0 * x
    np.putmask(y, x > 0, np.array([10.0, 20.0, 30.0]) * x[0])
    return y


def copied(x):
    y = np.zeros(4)
    np.copyto(y, x, where=x > 0)
    return y * x


@pytest.mark.parametrize(
    "f",
    [
        multiplied,
        logarithm_where_there_is_one,
        quotient_of_constants,
        placed,
        placed_constants,
        placed_in_a_part,
        put,
        copied,
    ],
)
@pytest.mark.filterwarnings("error")
def test_a_write_under_a_mask_is_that_of_each_example(f):
    values = np.stack([f(x) for x in XS])
    slopes = np.stack([jacobian(f, x) for x in XS])
    close(slopes, [differences(f, x) for x in XS], 1e-5, 1e-6)
    close(vmap(f)(XS), values)
    close(vmap(lambda x: jacobian(f, x))(XS), slopes)
    close(jacobian(vmap(f), XS), np.einsum("aij,ab->aibj", slopes, np.eye(3)))
