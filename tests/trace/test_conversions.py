"""Leaving the traced world: what works, and what raises with the way out, at the user's line."""

from __future__ import annotations

import cmath
import decimal
import fractions
import json
import pickle
import struct

import numpy as np
import pytest
import scipy.integrate
import scipy.interpolate
import scipy.linalg
import scipy.optimize
import scipy.special
from truth import close, differences

from retrograde import (
    ConversionError,
    EndedError,
    HashError,
    MissingRuleError,
    PickleError,
    RetrogradeError,
    data,
    gradient,
    ignore,
    jvp,
    param,
)

X = np.array([0.5, 1.0, 2.0])


def line_of(f):
    return f.__code__.co_firstlineno


def raises_at(f, x, error=ConversionError, *words):
    """`f(x)` raises in both modes, names a way out, and says in which line of this file."""
    for transform in (lambda: gradient(f, x), lambda: jvp(f, (x,), (np.ones(np.shape(x)),))):
        with pytest.raises(error) as caught:
            transform()
        message = str(caught.value)
        assert f"(test_conversions.py:{line_of(f)})" in message, message
        assert "\n  1. " in message
        for word in words:
            assert word in message, message


@pytest.mark.parametrize(
    ("f", "what"),
    [
        (lambda x: float(x) * x, "float(x)"),
        (lambda x: int(x) * x, "int(x)"),
        (lambda x: complex(x) * x, "complex(x)"),
        (lambda x: float(x * 2 + 1), "float(x)"),
        (lambda x: "%f" % x, "float(x)"),  # noqa: UP031
        (lambda x: np.float64(x) * x, "x"),
        (lambda x: cmath.exp(x), "x"),
        (lambda x: fractions.Fraction(float(x)), "float(x)"),
        (lambda x: decimal.Decimal(float(x)), "float(x)"),
        (lambda x: range(x), "index"),
        (lambda x: [1, 2, 3][x], "index"),
        (lambda x: X.item(x), "x"),
        (lambda x: X.repeat(x), "x"),
    ],
)
def test_a_conversion_that_would_lose_the_derivative_raises(f, what):
    raises_at(f, 1.0, ConversionError, what, "dropgrad(x)")


@pytest.mark.parametrize(
    "f",
    [
        lambda x: "%d" % x,  # noqa: UP031
        lambda x: struct.pack("d", x),
        lambda x: fractions.Fraction(x),
    ],
)
def test_conversions_in_which_python_does_not_ask_us_raise_too(f):
    for transform in (lambda: gradient(f, 1.0), lambda: jvp(f, (1.0,), (1.0,))):
        with pytest.raises((TypeError, AttributeError, struct.error)):
            transform()


@pytest.mark.parametrize(
    "f",
    [
        lambda x: float(x),
        lambda x: int(x[0]),
        lambda x: complex(np.sum(x)),
        lambda x: np.fromiter(x, float),
        lambda x: list(map(float, x)),
        lambda x: memoryview(x),
    ],
)
def test_conversions_of_arrays_raise_too(f):
    with pytest.raises((TypeError, ValueError)):
        gradient(lambda x: f(x) and 0.0, X)
    with pytest.raises((TypeError, ValueError)):
        jvp(lambda x: f(x) and 0.0, (X,), (X,))


def test_the_error_is_a_type_error_and_names_the_value():
    with pytest.raises(TypeError, match=r"number 2\.5"):
        gradient(lambda x: float(x), 2.5)
    with pytest.raises(TypeError, match=r"shape \(3,\)"):
        gradient(lambda x: float(x), X)


def test_integers_convert_to_integers():
    def f(n, x):
        assert int(n) == 3
        assert type(int(n)) is int
        assert [10, 20, 30, 40][n] == 40
        assert list(range(n)) == [0, 1, 2]
        return x * int(n)

    gradient(f, 3, 2.0)


def test_writing_a_traced_value_into_a_plain_array_made_outside_raises():
    target = np.zeros(3)
    plain_list = [0.0, 0.0]

    def scalar(x):
        target[0] = x
        return x * 1.0

    def element(x):
        target[0] = x[0] * 2
        return x[0]

    def whole(x):
        target[:] = x
        return x[0]

    for f, x in ((scalar, 2.0), (element, X), (whole, X)):
        for transform in (lambda f=f, x=x: gradient(f, x), lambda f=f, x=x: jvp(f, (x,), (np.ones(np.shape(x)),))):
            with pytest.raises((TypeError, ValueError)) as caught:
                transform()
            text = str(caught.value) + "".join(getattr(caught.value, "__notes__", [])) + str(caught.value.__cause__)
            assert "derivative" in text
            assert any(way in text for way in ("np.array", "np.stack", "Buffer"))
            assert not target.any()

    def into_a_list(x):
        plain_list[0] = x
        return plain_list[0] * 2

    assert gradient(into_a_list, 2.0) == (2.0,)


@pytest.mark.parametrize("dtype", [int, np.int8, np.uint32])
def test_a_traced_float_written_into_an_integer_array_raises(dtype):
    outside = np.zeros(2, dtype)

    def into_one_made_inside(n, x):
        a = np.zeros(2, dtype)
        a[0] = x
        return np.sum(a) * 1.0

    def after_a_traced_integer(n, x):
        a = np.zeros(2, dtype)
        a[0] = n
        a[1] = x
        return np.sum(a) * 1.0

    def into_one_made_outside(n, x):
        outside[0] = x
        return np.sum(outside) * 1.0

    for f in (into_one_made_inside, after_a_traced_integer, into_one_made_outside):
        with pytest.raises((TypeError, ValueError)):
            gradient(f, 1, 2.5)
        with pytest.raises((TypeError, ValueError)):
            jvp(f, (1, 2.5), (1.0, 1.0))
    assert not outside.any()


def test_an_array_kept_from_one_call_to_the_next_is_right_or_raises():
    kept = {}

    def f(x):
        if "scratch" not in kept:
            kept["scratch"] = np.zeros(2)
        scratch = kept["scratch"]
        scratch[0] = x * x
        return scratch[0] * 3.0

    assert gradient(f, 2.0) == (12.0,)
    try:
        assert gradient(f, 2.0) == (12.0,)
    except EndedError as error:
        assert "ended" in str(error)  # noqa: PT017


def test_out_into_a_plain_array_made_outside_raises():
    target = np.zeros(3)
    for f in (
        lambda x: np.exp(x, out=target),
        lambda x: np.add(x, 1.0, target),
        lambda x: np.sum(x[None], axis=0, out=target),
        lambda x: np.matmul(np.eye(3), x, out=target),
    ):
        with pytest.raises(RetrogradeError) as caught:
            gradient(lambda x, f=f: np.sum(f(x)), X)
        assert "out" in str(caught.value)
        assert not target.any()


def test_an_augmented_assignment_to_a_plain_array_never_loses_a_derivative():
    shared = np.ones(3)
    alias = shared

    def f(x):
        total = shared
        total += x
        return np.sum(total * X)

    try:
        (x_bar,) = gradient(f, X)
    except (TypeError, ValueError):
        pass
    else:
        close(x_bar, X)
    assert (alias == 1.0).all()


# --- C code of others --------------------------------------------------------------------------------------------


def brentq(x):
    return scipy.optimize.brentq(lambda t: t - x[0], -5, 5)


ROUTINES = [
    lambda x: scipy.special.zeta(x[0] + 1.5),
    lambda x: scipy.special.ellipkm1(x)[0],
    lambda x: scipy.linalg.expm(np.outer(x, x))[0, 0],
    lambda x: scipy.linalg.sqrtm(np.outer(x, x) + np.eye(3))[0, 0],
    lambda x: scipy.linalg.lu_factor(np.outer(x, x) + np.eye(3))[0][0, 0],
    lambda x: scipy.interpolate.CubicSpline(np.arange(3.0), x)(0.5),
    lambda x: scipy.interpolate.make_interp_spline(np.arange(3.0), x, k=1)(0.5),
    lambda x: scipy.integrate.quad(lambda t: t * x[0], 0, 1)[0],
    brentq,
    lambda x: scipy.optimize.fsolve(lambda t: t - x[:1], [0.0])[0],
    lambda x: scipy.optimize.minimize(lambda t: np.sum((t - x) ** 2), np.zeros(3)).fun,
    lambda x: scipy.integrate.solve_ivp(lambda t, y: -y * x, (0, 1), [1.0, 1.0, 1.0]).y[0, -1],
]


def error_chain(f):
    """The error of the gradient of f and all errors behind it; None where the gradient is right."""
    try:
        (x_bar,) = gradient(f, X)
    except Exception as error:
        chain = [error]
        # A function that is called again while an error is set may close the chain to a ring.
        while (behind := chain[-1].__cause__ or chain[-1].__context__) and behind not in chain:
            chain.append(behind)
        return chain
    # The true derivative is nowhere zero, so neither None nor zeros would be right.
    assert x_bar is not None
    close(x_bar, differences(f, X), 1e-5, 1e-6)
    return None


@pytest.mark.parametrize("f", ROUTINES)
def test_a_routine_of_scipy_is_right_or_raises_and_never_drops_a_derivative(f):
    error_chain(f)


# brentq calls the function again while an error is set, and which error comes out of that is Python's chance.
@pytest.mark.parametrize("f", [f for f in ROUTINES if f is not brentq])
def test_what_a_routine_of_scipy_raises_has_our_text(f):
    chain = error_chain(f) or []
    text = "".join(str(error) + "".join(getattr(error, "__notes__", [])) for error in chain)
    assert not chain or "  1. " in text


@pytest.mark.parametrize("f", ROUTINES)
def test_what_a_routine_of_scipy_raises_names_the_users_line_and_not_scipys(f):
    chain = error_chain(f) or []
    for error in chain:
        if isinstance(error, RetrogradeError):
            assert "(test_conversions.py:" in str(error)


def test_a_missing_rule_names_the_function_and_the_ways_out():
    with pytest.raises(MissingRuleError) as caught:
        gradient(lambda x: np.power.reduce(x), np.ones(3))
    assert isinstance(caught.value, NotImplementedError)
    message = str(caught.value)
    assert "np.power.reduce" in message
    assert "primitive" in message
    assert "dropgrad" in message
    assert "(test_conversions.py:" in message


# --- random numbers ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "draw",
    [
        lambda rng, t: rng.normal(t, 1.0),
        lambda rng, t: rng.normal(0.0, t),
        lambda rng, t: rng.uniform(0.0, t),
        lambda rng, t: rng.exponential(t),
        lambda rng, t: rng.gamma(t),
        lambda rng, t: rng.poisson(t),
        lambda rng, t: rng.binomial(10, t / 10),
        lambda rng, t: rng.multivariate_normal(np.array([t, t]), np.eye(2))[0],
        lambda rng, t: rng.choice(3, p=np.array([t / 4, 1 - t / 2, t / 4])),
    ],
)
@pytest.mark.parametrize("make", [np.random.default_rng, np.random.RandomState])
def test_a_traced_parameter_of_a_random_number_is_reparameterised_exactly_or_refused(draw, make):
    def sample(t):
        return draw(make(0), t) * 1.0

    t, h = 1.5, 1e-6
    try:
        (t_bar,) = gradient(sample, t)
    except RetrogradeError:
        return
    slope = (sample(t + h) - sample(t - h)) / (2 * h)
    close(t_bar, slope, 1e-5)


def test_random_numbers_without_traced_parameters_are_constants():
    rng = np.random.default_rng(0)
    noise = np.random.default_rng(0).normal(size=3)
    close(gradient(lambda x: np.sum(x * rng.normal(size=3)), X)[0], noise)


# --- keys, pickles, files ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "f",
    [
        lambda x: hash(x),
        lambda x: {x: 1},
        lambda x: {x},
        lambda x: {1.0: 2.0}[x],
        lambda x: {1.0: 2.0}.get(x),
        lambda x: x in {1.0},
        lambda x: hash((x, 1)),
        lambda x: frozenset([x]),
    ],
)
def test_a_traced_value_has_no_hash_and_the_error_names_data(f):
    raises_at(f, 1.0, HashError, "data(x)")


@pytest.mark.parametrize("f", [lambda x: pickle.dumps(x), lambda x: pickle.dumps({"a": [x]})])
def test_a_traced_value_does_not_pickle_and_says_so(f):
    raises_at(f, 1.0, PickleError, "running transform", "data(x)")


def test_a_traced_value_inside_a_json_document_raises():
    with pytest.raises(TypeError):
        gradient(lambda x: json.dumps({"loss": x}), 1.0)
    assert gradient(lambda x: (json.dumps({"loss": data(x)}), x * x)[1], 3.0) == (6.0,)


def test_a_traced_array_is_not_saved_as_a_constant(tmp_path):
    with pytest.raises(RetrogradeError):
        gradient(lambda x: np.save(tmp_path / "x.npy", x), X)
    with ignore():
        gradient(lambda x: np.sum(x), X)
    gradient(lambda x: (np.save(tmp_path / "x.npy", data(x)), np.sum(x))[1], X)
    close(np.load(tmp_path / "x.npy"), X)


# --- after the end -----------------------------------------------------------------------------------------------


def leaked(transform):
    kept = []
    transform(lambda x: (kept.append(x), x * 2.0)[1])
    return kept[0]


@pytest.mark.parametrize("transform", [lambda f: gradient(f, 3.0), lambda f: jvp(f, (3.0,), (1.0,))])
def test_a_value_that_outlives_its_transform_raises_when_it_is_used(transform):
    x = leaked(transform)
    for use in (
        lambda: x * 2,
        lambda: 2 + x,
        lambda: np.sin(x),
        lambda: x**2,
        lambda: np.stack([x, x]),
        lambda: -x,
        lambda: np.sum(x),
    ):
        with pytest.raises(EndedError, match="ended") as caught:
            use()
        assert isinstance(caught.value, RuntimeError)
        assert "(test_conversions.py:" in str(caught.value)
    assert data(x) == 3.0
    assert f"{x}" == "3.0"
    assert "3.0" in repr(x)


def test_a_leaked_value_raises_in_a_later_transform_too():
    x = leaked(lambda f: gradient(f, 3.0))
    for later in (lambda: gradient(lambda y: x * y, 2.0), lambda: jvp(lambda y: y + x, (2.0,), (1.0,))):
        with pytest.raises(EndedError, match="ended"):
            later()
    x = leaked(lambda f: jvp(f, (3.0,), (1.0,)))
    with pytest.raises(EndedError, match="ended"):
        gradient(lambda y: x * y, 2.0)


def test_an_array_read_from_a_leaked_array_raises():
    kept = []
    gradient(lambda x: (kept.append(x), np.sum(x))[1], X)
    with pytest.raises(EndedError):
        kept[0][0]
    with pytest.raises(EndedError):
        kept[0].sum()
    with pytest.raises(EndedError):
        for _ in kept[0]:
            pass


def test_a_parameter_never_ends():
    w = param(2.0)
    gradient(lambda x: x * w, 1.0)
    assert data(w * w) == 4.0


# --- astype ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [int, np.int32, np.uint8, bool, "i4"])
def test_astype_to_what_has_no_derivative_raises(dtype):
    with pytest.raises(ConversionError, match="astype") as caught:
        gradient(lambda x: np.sum(x.astype(dtype)) * 1.0, X)
    assert "dropgrad" in str(caught.value)


def test_astype_between_floats_keeps_the_derivative():
    (x_bar,) = gradient(lambda x: np.sum(x.astype(np.float32).astype(np.float64) ** 2), X)
    close(x_bar, 2 * X)
    (x_bar,) = gradient(lambda x: np.sum(x.astype("f4")), X)
    close(x_bar, np.ones(3))


def test_astype_of_an_integer_to_a_float_keeps_the_path():
    (n_bar,) = gradient(lambda n: np.sum(n.astype(float) ** 2), np.array([1, 2]))
    close(n_bar, [2.0, 4.0])
