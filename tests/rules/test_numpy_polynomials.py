"""Polynomials: NumPy's older functions at awkward points, and all of `numpy.polynomial`, which is made of others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from truth import close, differences

from retrograde import gradient, hessian, jacobian
from retrograde.testing import check_gradient

BASES = {
    "poly": (np.polynomial.polynomial, np.polynomial.Polynomial),
    "cheb": (np.polynomial.chebyshev, np.polynomial.Chebyshev),
    "leg": (np.polynomial.legendre, np.polynomial.Legendre),
    "herm": (np.polynomial.hermite, np.polynomial.Hermite),
    "herme": (np.polynomial.hermite_e, np.polynomial.HermiteE),
    "lag": (np.polynomial.laguerre, np.polynomial.Laguerre),
}
C = np.array([1.0, 2.0, -0.5, 0.3])
X = np.array([0.1, 0.5])
PLACES = np.arange(4.0)

# Of each function of a module: how it is called with coefficients, or with places.
OF_COEFFICIENTS: dict[str, Callable[[Any, Any], Any]] = {
    "val": lambda f, c: f(X, c),
    "val2d": lambda f, c: f(X, X, np.outer(c, c)),
    "val3d": lambda f, c: f(X, X, X, np.multiply.outer(np.outer(c, c), c)),
    "grid2d": lambda f, c: f(X, X, np.outer(c, c)),
    "grid3d": lambda f, c: f(X, X, X, np.multiply.outer(np.outer(c, c), c)),
    "der": lambda f, c: f(c, 2, scl=1.5),
    "int": lambda f, c: f(c, 2, k=[c[0], 1.0], lbnd=0.5),
    "add": lambda f, c: f(c, [1.0, 2.0]),
    "sub": lambda f, c: f([1.0, 2.0], c),
    "mul": lambda f, c: f(c, c[:2]),
    "mulx": lambda f, c: f(c),
    "div": lambda f, c: f(c, c[:2]),
    "pow": lambda f, c: f(c, 2),
    "line": lambda f, c: f(c[0], c[1]),
    "trim": lambda f, c: f(c),
    "companion": lambda f, c: f(c),
    "roots": lambda f, c: np.abs(f(c)),
    "fit": lambda f, c: f(PLACES, c, 2),
    "2poly": lambda f, c: f(c),
    "from": lambda f, c: f(c),  # poly2cheb and its like
}
OF_PLACES: dict[str, Callable[[Any, Any], Any]] = {
    "val": lambda f, x: f(x, C),
    "vander": lambda f, x: f(x, 3),
    "vander2d": lambda f, x: f(x, x[::-1], [1, 2]),
    "vander3d": lambda f, x: f(x, x, x[::-1], [1, 1, 1]),
    "fromroots": lambda f, x: f(x),
    "fit": lambda f, x: f(np.concatenate([x, x + 1.0]), C, 2),
}
OF_CLASSES: dict[str, Callable[[Any, Any], Any]] = {
    "value": lambda K, c: K(c)(X),
    "place": lambda K, c: K(C)(c),
    "domain": lambda K, c: K(C, domain=c[:2], window=[0.0, 1.0])(X),
    "arithmetic": lambda K, c: (2 * K(c) / 3 + K(c) * K(c[:2]) - K([1.0, 2.0]) ** 2)(X),
    "quotient": lambda K, c: (K(c) // K(c[:2]))(X) + (K(c) % K(c[:2]))(X),
    "derivative": lambda K, c: K(c).deriv()(X),
    "integral": lambda K, c: K(c).integ(lbnd=0.5)(X),
    "roots": lambda K, c: np.abs(K(c).roots()),
    "from roots": lambda K, c: K.fromroots(c)(X),
    "fit": lambda K, c: K.fit(PLACES, c, 2)(X),
    "conversion": lambda K, c: K(c).convert(kind=np.polynomial.Polynomial).coef,
    "cast": lambda K, c: np.polynomial.Chebyshev.cast(K(c)).coef,
    "linspace": lambda K, c: K(c).linspace(3)[1],
}
# Of the modules: makes no derivative, or is a constant.
NOT_CALLED = {"gauss", "weight", "interpolate", "pts1", "pts2", "valfromroots"}


def _functions(prefix: str) -> dict[str, Any]:
    module = BASES[prefix][0]
    found = {name: f for name, f in vars(module).items() if name in module.__all__ and callable(f)}
    found = {name: f for name, f in found.items() if not isinstance(f, type)}
    short = {}
    for name, f in found.items():
        short["from" if name == f"poly2{prefix}" else name.removeprefix(prefix)] = f
    return short


FUNCTIONS = [
    pytest.param(f, how, at, id=f"{prefix} {name} of {what}")
    for prefix in BASES
    for name, f in _functions(prefix).items()
    for what, table, at in (("coefficients", OF_COEFFICIENTS, C), ("places", OF_PLACES, X))
    if (how := table.get(name)) is not None
]


@pytest.mark.parametrize(("f", "how", "at"), FUNCTIONS)
def test_functions_of_numpy_polynomial_are_differentiated(f: Any, how: Any, at: Any) -> None:
    check_gradient(lambda v: how(f, v), at)


@pytest.mark.parametrize("how", [pytest.param(how, id=name) for name, how in OF_CLASSES.items()])
@pytest.mark.parametrize("K", [pytest.param(K, id=K.__name__) for _, K in BASES.values()])
def test_classes_of_numpy_polynomial_are_differentiated(K: Any, how: Any) -> None:
    check_gradient(lambda c: how(K, c), C)


def test_no_function_of_numpy_polynomial_is_left_out() -> None:
    known = OF_COEFFICIENTS.keys() | OF_PLACES.keys() | NOT_CALLED
    assert {prefix: sorted(_functions(prefix).keys() - known) for prefix in BASES} == {prefix: [] for prefix in BASES}


def test_interpolation_and_values_from_roots() -> None:
    check_gradient(lambda a: np.polynomial.chebyshev.chebinterpolate(lambda x: np.exp(a * x), 3), 0.7)
    check_gradient(lambda x: np.polynomial.polynomial.polyvalfromroots(X, x), X + 1)


# --- the older functions --------------------------------------------------------------------------------------------


def test_roots_move_as_their_equation_says() -> None:
    """x² − s x + q: the roots r have ∂r/∂s = r/(2r − s) and ∂r/∂q = −1/(2r − s)."""
    s, q = 5.0, 6.0
    got = jacobian(lambda v: np.roots(np.stack([1.0, -v[0], v[1]])), np.array([s, q]))
    r = np.roots([1, -s, q])
    close(got, np.stack([r / (2 * r - s), -1 / (2 * r - s)], axis=1))


def test_a_double_root_has_an_infinite_slope_in_what_parts_it() -> None:
    with np.errstate(all="ignore"):
        slope = jacobian(lambda q: np.roots(np.stack([1.0, -2.0, q])), 1.0)
    assert not np.any(np.isfinite(slope))


def test_roots_at_zero_follow_the_last_coefficients() -> None:
    close(jacobian(np.roots, np.array([1.0, 2.0, 0.0])), [[2.0, -1.0, 0.5], [0.0, 0.0, -0.5]])


def test_the_characteristic_polynomial_is_right_where_eigenvalues_are_equal() -> None:
    for a in (np.eye(3), np.array([[2.0, 1.0], [0.0, 2.0]]), np.zeros((2, 2))):
        close(jacobian(np.poly, a), differences(np.poly, a), rtol=1e-6, atol=1e-6)
    # λ² − (a + d) λ + ad − bc
    close(hessian(lambda a: np.poly(a)[2], np.eye(2)).reshape(4, 4), np.fliplr(np.diag([1, -1, -1, 1])))


def test_a_polynomial_of_roots_in_pairs_is_real() -> None:
    (z_bar,) = gradient(lambda z: np.sum(np.poly(np.stack([z, np.conj(z)]))), 1.0 + 2.0j)
    close(z_bar, -2 + 2 * (1 + 2j))  # x² − 2 Re(z) x + |z|²


def test_a_fit_through_all_points_gives_the_interpolating_coefficients() -> None:
    x = np.array([0.0, 1.0, 2.0])
    close(jacobian(lambda y: np.polyfit(x, y, 2), np.array([1.0, 0.0, 2.0])), np.linalg.inv(np.vander(x)), atol=1e-12)
