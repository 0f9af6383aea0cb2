"""hvp and vhp."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from truth import close

from retrograde import MissingRuleError, SeedError, grad, gradient, hessian, hvp, jvp, primitive, vhp

X = np.array([0.5, -1.0, 2.0])
V = np.array([1.0, -2.0, 0.5])


@dataclasses.dataclass
class Model:
    w: Any
    b: Any
    name: str = "model"


def f(x):
    return np.sum(np.sin(x) * x[::-1] ** 2)


# The Hessian of f, by hand: -sin(x) r² + 2 sin(r) on the diagonal, 2 (cos(x) r + cos(r) x) on the other one.
HESSIAN = np.diag(-np.sin(X) * X[::-1] ** 2 + 2 * np.sin(X[::-1]))
HESSIAN += 2 * (np.cos(X) * X[::-1] + np.cos(X[::-1]) * X) * np.eye(3)[::-1]

both = pytest.mark.parametrize("product", [hvp, vhp])


@both
def test_the_product_is_the_hessian_times_the_vector(product):
    close(product(f, X, V), HESSIAN @ V)
    close(product(f, X, V), hessian(f, X) @ V)
    close(product(f)(X, V), HESSIAN @ V)
    close(product(lambda x, *, n: np.sum(x**n), X, V, n=3), 6 * X * V)
    assert product(lambda x: x**3, 2.0, 5.0) == 60.0


@both
def test_the_product_has_the_structure_of_its_argument(product):
    model = Model(X, 2.0)
    found = product(lambda m: np.sum(m.w**2) * m.b**2, model, Model(np.ones(3), 1.0))
    assert type(found) is Model
    close(found.w, 2 * 4.0 * np.ones(3) + 4 * 2.0 * X)
    close(found.b, 2 * np.sum(X**2) + 4 * 2.0 * np.sum(X))


@both
def test_a_product_without_a_path_is_zeros(product):
    close(product(np.sum, X, X), np.zeros(3))
    close(product(lambda x: 3.0, X, X), np.zeros(3))
    found = product(lambda m: np.sum(m.w**2), Model(X, 2.0), Model(V, 1.0))
    close(found.w, 2 * V)
    assert found.b == 0.0


@both
def test_a_direction_that_does_not_fit_is_refused(product):
    with pytest.raises(SeedError, match=r"shape \(2,\).*shape \(3,\)"):
        product(f, X, np.ones(2))
    with pytest.raises(SeedError, match="structure"):
        product(lambda m: np.sum(m.w**2), Model(X, 2.0), [X, 1.0])


@both
def test_products_are_differentiated_themselves(product):
    close(gradient(lambda x: np.sum(product(lambda y: np.sum(y**4), x, x)), X)[0], 36 * X**2)
    close(jvp(lambda v: product(f, X, v), (V,), (X,))[1], HESSIAN @ X)
    close(grad(lambda a: product(lambda x: a * x**3, 2.0, 1.0))(1.0), 12.0)


def test_only_vhp_does_without_pushforwards():
    @primitive
    def cube(x):
        return x**3

    cube.defpullback(lambda y, x: lambda y_bar: (3 * y_bar * square(x),))

    @primitive
    def square(x):
        return x**2

    square.defpullback(lambda y, x: lambda y_bar: (2 * y_bar * x,))
    close(vhp(lambda x: np.sum(cube(x)), X, V), 6 * X * V)
    with pytest.raises(MissingRuleError, match="forward mode"):
        hvp(lambda x: np.sum(cube(x)), X, V)
