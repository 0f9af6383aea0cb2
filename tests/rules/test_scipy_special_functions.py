"""How functions of scipy.special are met: in every mode, by any name, and only where SciPy is used."""

from __future__ import annotations

import inspect
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from sampling import Point, points
from truth import differences

special = pytest.importorskip("scipy.special")

from scipy.special import logsumexp, softmax, spherical_jn  # noqa: E402

import retrograde.rules  # noqa: E402
from retrograde import data, gradient, hessian, ignore, jacobian, jvp, options  # noqa: E402
from retrograde.rules.table import RULES, NoGradient, Rule  # noqa: E402

retrograde.rules.load_scipy()
UFUNCS = {f for f in vars(special).values() if isinstance(f, np.ufunc)}


def in_fresh_python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


# --- Functions written in Python ----------------------------------------------------------------------------


def test_functions_imported_by_name_are_differentiated() -> None:
    x = np.array([1.0, 2.0, -1.0])
    np.testing.assert_allclose(gradient(lambda x: logsumexp(x), x)[0], special.softmax(x), rtol=1e-14)
    y = softmax(x)
    np.testing.assert_allclose(jacobian(softmax, x), np.diag(y) - np.outer(y, y), atol=1e-15)


def test_a_function_can_be_given_to_a_transform_as_it_is() -> None:
    x = np.array([1.0, 2.0])
    np.testing.assert_allclose(gradient(logsumexp, x)[0], special.softmax(x), rtol=1e-14)


@pytest.mark.parametrize(
    ("f", "x"),
    [
        (lambda x: special.logsumexp(x, axis=1)[0], np.array([[1.0, 2.0], [0.5, -1.0]])),
        (lambda x: special.log_softmax(x)[0], np.array([1.0, 2.0])),
        (lambda x: special.polygamma(1, x), 2.0),
        (lambda x: special.multigammaln(x, 3), 2.0),
        (lambda x: special.zeta(x), 2.0),
        (lambda x: special.zeta(3.0, x), 2.0),
        (lambda x: special.spherical_jn(2, x), 2.0),
        (lambda x: special.spherical_kn(2, x, derivative=True), 2.0),
        (lambda x: special.jvp(1.5, x, 2), 2.0),
        (lambda x: special.comb(x, 2.0), 5.5),
        (lambda x: special.factorial(x), 2.5),
        (lambda x: np.real(special.lambertw(x)), 2.0),
        (lambda x: special.diric(x, 3), 2.0),
    ],
)
def test_a_function_written_in_python_has_first_and_second_derivatives(f: Any, x: Any) -> None:
    np.testing.assert_allclose(gradient(f, x)[0], differences(f, x), rtol=1e-9, atol=1e-10)

    def slope(x: Any) -> Any:
        return gradient(f, x)[0]

    np.testing.assert_allclose(hessian(f, x), differences(slope, x), rtol=1e-8, atol=1e-9)


@pytest.mark.skipif(not hasattr(special, "sph_harm_y"), reason="this SciPy has no sph_harm_y")
def test_spherical_harmonics_are_differentiated_at_the_poles_too() -> None:
    def f(x: Any) -> Any:
        return np.real(special.sph_harm_y(3, 2, x[0], x[1])) + special.legendre_p(3, x[1])[0]

    x = np.array([0.7, 0.4])
    np.testing.assert_allclose(gradient(f, x)[0], differences(f, x), atol=1e-10)
    np.testing.assert_allclose(hessian(f, x), differences(lambda x: gradient(f, x)[0], x), atol=1e-9)
    # Y₃² = √(105/(32π)) sin²θ cos θ exp(2iφ)
    curvature = hessian(f, np.array([0.0, 0.4]))[0, 0]
    assert curvature == pytest.approx(2 * np.sqrt(105 / (32 * np.pi)) * np.cos(0.8), rel=1e-12)


def test_lists_of_traced_values_are_arrays_to_them() -> None:
    assert gradient(lambda x, y: special.logsumexp([x, y, 1.0]), 1.0, 1.0) == pytest.approx((1 / 3, 1 / 3))


def test_forward_mode_and_several_outputs() -> None:
    ai, ai_slope, _, _ = special.airy(1.0)
    y, y_dot = jvp(lambda x: special.airy(x)[:2], (1.0,), (1.0,))
    np.testing.assert_allclose(y, (ai, ai_slope), rtol=1e-15)
    np.testing.assert_allclose(y_dot, (ai_slope, ai), rtol=1e-14)


def test_outside_of_a_transform_the_functions_are_scipys_own() -> None:
    before = special.logsumexp
    seen = []

    def f(x: Any) -> Any:
        seen.append(special.logsumexp)
        assert special.logsumexp([1.0, 2.0]) == before([1.0, 2.0])
        assert spherical_jn(1, 2.0) == special.spherical_jn(1, 2.0)
        return x * special.logsumexp(np.ones(2))

    gradient(f, 1.0)
    assert special.logsumexp is before
    assert logsumexp is before
    assert seen[0] is not before
    assert inspect.signature(seen[0]) == inspect.signature(before)


def test_under_ignore_they_take_plain_values() -> None:
    def f(x: Any) -> Any:
        with ignore():
            shift = special.logsumexp(data(x))
        return np.sum(x) * shift

    x = np.array([1.0, 2.0])
    np.testing.assert_allclose(gradient(f, x)[0], special.logsumexp(x) * np.ones(2))


def test_without_interception_they_refuse_a_traced_value() -> None:
    options.intercept = False
    try:
        with pytest.raises(Exception, match=r"retrograde|traced|array"):
            gradient(lambda x: special.logsumexp(x), np.ones(2))
        # Ufuncs need no interception.
        assert gradient(special.erf, 0.0) == pytest.approx((2 / np.sqrt(np.pi),))
    finally:
        options.intercept = True


# --- Loading ---------------------------------------------------------------------------------------------------


def test_rules_load_when_a_function_of_scipy_is_met_and_not_before() -> None:
    code = """
import sys, retrograde, numpy as np
retrograde.gradient(np.sin, 1.0)
assert "scipy" not in sys.modules
import scipy.special
retrograde.gradient(np.sin, 1.0)
loaded = [m for m in sys.modules if m.startswith("retrograde.rules.scipy_")]
assert not loaded, loaded
print(*retrograde.gradient(scipy.special.erf, 0.0), *retrograde.gradient(scipy.special.logsumexp, np.zeros(1)))
"""
    assert in_fresh_python(code) == "1.1283791670955126 [1.]"


def test_loading_while_a_transform_runs_finds_the_functions_themselves() -> None:
    code = """
import retrograde, numpy as np, scipy.special
original = [scipy.special.logsumexp]
def f(x):
    assert scipy.special.logsumexp is not original[0]
    return scipy.special.erf(x) + scipy.special.logsumexp(x)
print(round(*retrograde.gradient(f, 0.0), 9), scipy.special.logsumexp is original[0])
print(*retrograde.gradient(retrograde.grad(f), 0.0))
"""
    assert in_fresh_python(code) == "2.128379167 True\n0.0"


def test_loading_twice_changes_nothing() -> None:
    before = dict(RULES)
    retrograde.rules.load_scipy()
    assert before == RULES


# --- Second derivatives of all of them ----------------------------------------------------------------------------


def is_of_scipy(rule: Rule) -> bool:
    return rule.function in UFUNCS or "special" in (getattr(rule.function, "__module__", None) or "")


def second_order_points(rule: Rule) -> list[Point]:
    real = [p for p in points(rule) if p.leaves and not p.single and not any(map(np.iscomplexobj, p.leaves))]
    return real[1:2] or real[:1]


WITH_POINTS = sorted(
    (r for r in RULES.values() if is_of_scipy(r) and not isinstance(r, NoGradient)), key=lambda r: r.name
)
EXCEPT = {"assoc_legendre", "assoc_legendre_p"}  # two derivatives are all that SciPy has of them
if abs(special.ncfdtr(3.0, 5.0, 1.5, 0.8) - 0.3073397528585429) > 1e-12:
    # Until SciPy 1.15 the noncentral distributions have six to ten digits.
    EXCEPT |= {"ncfdtr", "ncfdtri", "nctdtr", "nctdtrit", "nctdtridf"}


def loss(rule: Rule, point: Point) -> Any:
    """A function of the point's leaves: all outputs weighted into one number."""

    def total(*leaves: Any) -> Any:
        args = [leaves[a.index] if hasattr(a, "index") and not isinstance(a, tuple | list) else a for a in point.args]
        kwargs = {k: leaves[v.index] if type(v).__name__ == "Slot" else v for k, v in point.kwargs.items()}
        y = rule.function(*args, **kwargs)
        result: Any = 0.0
        for k, part in enumerate(y if isinstance(y, tuple | list) else [y]):
            weight = np.cos(1.0 + k + np.arange(np.size(data(part)))).reshape(np.shape(data(part)))
            result = result + np.sum(np.real(part) * weight) + np.sum(np.imag(part) * weight)
        return result

    return total


@pytest.mark.parametrize(
    ("rule", "point"),
    [
        pytest.param(r, p, id=f"{r.name}: {p.label}")
        for r in WITH_POINTS
        if r.name not in EXCEPT
        for p in second_order_points(r)
    ],
)
def test_forward_over_reverse_agrees_with_differences_of_the_gradient(rule: Rule, point: Point) -> None:
    f = loss(rule, point)
    leaves = [np.array(x, float) for x in point.leaves]
    dots = [np.cos(3.0 + np.arange(x.size)).reshape(x.shape) for x in leaves]

    def slopes(*leaves: Any) -> Any:
        return np.concatenate([np.reshape(g, -1) for g in gradient(f, *leaves)])

    def along(t: Any) -> Any:
        return slopes(*(x + t[0] * d for x, d in zip(leaves, dots, strict=True)))

    with np.errstate(all="ignore"):
        _, got = jvp(lambda *leaves: gradient(f, *leaves), tuple(leaves), tuple(dots))
        want = differences(along, np.zeros(1), h=1e-4)[:, 0]
    got = np.concatenate([np.reshape(g, -1) for g in got])
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-7 * (1 + np.max(np.abs(want))))
