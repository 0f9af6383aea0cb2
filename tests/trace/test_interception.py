"""np.array, np.asarray and math.* inside a transform; and everybody else undisturbed."""

from __future__ import annotations

import gc
import importlib
import math
import math as mathematics
import pickle
import sys
import textwrap
import threading
import types
from math import atan2, exp
from math import sin as sine

import mpmath
import numpy as np
import numpy as onp
import pytest
import scipy.linalg
from numpy import array as make_array
from numpy import asarray
from truth import close, differences

from retrograde import ConversionError, RetrogradeError, gradient, istracked, jacobian, jvp, options, param

X = np.array([0.5, -1.0, 2.0])
V = np.array([1.0, 0.5, -2.0])

# Bound before any transform runs, in a place that cannot be seen from the function's globals.
HIDDEN = {"array": np.array, "sin": math.sin}


# --- arrays of traced values -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        lambda x: np.array([x[0], 2.0, x[1] * x[2]]),
        lambda x: np.array([[x[0], 1], [x[1], x[2]], [3.0, x[0] * x[1]]]),
        lambda x: np.array(((x[0], x[1]), (x[2], 0.0))),
        lambda x: np.array([x, x * 2]),
        lambda x: np.array([x, [1.0, 2.0, 3.0], np.ones(3)]),
        lambda x: np.array([[[x[0]], [1.0]], [[2.0], [x[1]]]]),
        lambda x: np.array(x),
        lambda x: np.array([x]),
        lambda x: np.array(x[0]),
        lambda x: np.array([x[0]] * 4),
        lambda x: np.array(list(x)),
        lambda x: np.array(tuple(v * v for v in x)),
        lambda x: np.array([v * i for i, v in enumerate(x)]),
        lambda x: np.array([x[0], 1, True, np.float32(2), np.int64(3), np.array(4.0)]),
        lambda x: np.array([x[0], x[1]], dtype=float),
        lambda x: np.array([x[0], x[1]], float),
        lambda x: np.array(object=[x[0], 2.0]),
        lambda x: np.array([x[0], x[1]], ndmin=2),
        lambda x: np.array(x, copy=False),
        lambda x: np.array(x, copy=None),
        lambda x: np.array([x[0], x[1]], order="F"),
        lambda x: np.array([np.sum(x), np.mean(x)]),
        lambda x: np.array([float(3), x[2]]),
        lambda x: np.asarray([x[0], x[1] * 2]),
        lambda x: np.asarray(x),
        lambda x: np.asarray(x, dtype=float),
        lambda x: np.asarray(a=[x[0], 1.0]),
        lambda x: np.asanyarray(x),
        lambda x: np.ascontiguousarray(x),
        lambda x: np.ascontiguousarray(x[0]),
        lambda x: np.asfortranarray([[x[0], 1.0]]),
        lambda x: onp.array([x[0], x[1]]),
        lambda x: make_array([x[0], 2.0, x[1]]),
        lambda x: asarray([x[0], x[1] ** 2]),
        lambda x: np.atleast_1d(x[0]),
        lambda x: np.array([[x[0], x[1]], [x[1], x[2]]]) @ np.array([x[0], 1.0]),
    ],
)
def test_arrays_of_traced_values_are_made_as_numpy_makes_them(make):
    plain = make(X)
    weights = np.cos(np.arange(plain.size)).reshape(plain.shape)

    def f(x):
        y = make(x)
        if istracked(x):
            assert istracked(y)
            assert (y.shape, y.dtype) == (plain.shape, plain.dtype)
        return np.sum(weights * y)

    close(gradient(f, X)[0], differences(f, X), 1e-8, 1e-10)
    close(jvp(f, (X,), (V,))[1], differences(f, X) @ V, 1e-8, 1e-10)


@pytest.mark.parametrize(
    "make",
    [
        lambda x: np.r_[x, 1.0],
        lambda x: np.r_[x[0], x[1:]],
        lambda x: np.c_[x, x * 2],
        lambda x: np.array([v * (i + 1) for (i,), v in np.ndenumerate(x)]),
        lambda x: np.array([x[i] * 2 for i in np.ndindex(x.shape)]),
        lambda x: np.fromfunction(lambda i: i * x[0], (4,)),
        lambda x: np.piecewise(x, [x < 0], [lambda v: v * v, lambda v: v * 2]),
        lambda x: np.poly1d(x)(2.0) + np.polynomial.Polynomial(x)(3.0) + np.zeros(1),
    ],
)
def test_numpys_helpers_that_are_no_functions_work_too(make):
    plain = make(X)
    weights = np.cos(np.arange(plain.size)).reshape(plain.shape)
    f = lambda x: np.sum(weights * make(x))
    close(gradient(f, X)[0], differences(f, X), 1e-8, 1e-10)
    close(jvp(f, (X,), (V,))[1], differences(f, X) @ V, 1e-8, 1e-10)


def test_dtypes_of_what_is_made():
    def f(x, n):
        assert np.array([x[0], x[1]]).dtype == np.float32
        assert np.array([x[0], 1]).dtype == np.array([np.float32(1), 1]).dtype
        assert np.array([x[0], 1.0]).dtype == np.array([np.float32(1), 1.0]).dtype
        assert np.array([x[0], 1j]).dtype == np.array([np.float32(1), 1j]).dtype
        assert np.array([x[0]], dtype=np.float64).dtype == np.float64
        assert np.array([n, 2]).dtype == np.int64
        assert np.array([n, 2.5]).dtype == np.float64
        return np.sum(np.array([x[0], x[1]], dtype=np.float64) ** 2) + np.sum(np.array([n, 2.5]))

    x_bar, n_bar = gradient(f, np.array([1.0, 2.0], np.float32), 3)
    assert x_bar.dtype == np.float32
    close(x_bar, [2.0, 4.0])
    assert n_bar == 1.0


def test_integers_that_would_be_cut_raise():
    for f in (
        lambda x: np.array([x[0], 1.0], dtype=int),
        lambda x: np.asarray(x, int),
        lambda x: np.array(x, dtype="i4"),
    ):
        with pytest.raises(ConversionError) as caught:
            gradient(lambda x, f=f: np.sum(f(x)) * 1.0, X)
        assert "(test_interception.py:" in str(caught.value)


def test_ragged_lists_raise_as_in_numpy():
    for f in (lambda x: np.array([x, [1.0]]), lambda x: np.array([[x[0]], [x[1], x[2]]])):
        with pytest.raises(ValueError):  # noqa: PT011
            gradient(lambda x, f=f: np.sum(f(x)), X)


def test_an_array_of_arrays_of_two_levels_is_right_in_each():
    def f(x):
        return gradient(lambda y: np.sum(np.array([x * y, y * y, 1.0]) ** 2), 3.0)[0]

    # x² y² + y⁴ → 2 x² y + 4 y³ → 4 x y
    assert gradient(f, 2.0) == (24.0,)
    assert jvp(f, (2.0,), (1.0,)) == (24.0 + 108.0, 24.0)


def test_an_array_made_of_an_array_is_a_copy():
    def f(x):
        y = np.array(x)
        assert y is not x
        z = np.asarray(x)
        return np.sum(y * z)

    close(gradient(f, X)[0], 2 * X)


def test_a_list_of_traced_values_mixes_with_arrays():
    close(gradient(lambda x: np.sum([1.0, x[0], 2.0] * x), X)[0], [2 * X[0] * 0 + 1 + X[1], X[0], 2.0])
    close(gradient(lambda x: np.sum(x + [x[2], 0.0, 1.0]), X)[0], [1.0, 1.0, 2.0])


def test_arrays_of_constants_inside_a_transform_are_constants_and_convert_freely():
    def f(x):
        for made in (
            np.array([1.0, 2.0]),
            np.array([[1, 2], [3, 4]]),
            np.asarray([1.0]),
            np.array(3.0),
            np.asarray(X),
            np.array([], dtype=int),
            np.array(["a", "b"]),
            np.array([None, 1], dtype=object),
            np.array(range(3)),
            np.array({1: 2}),
        ):
            assert not istracked(made)
        assert float(np.array(3.0)) == 3.0
        assert int(np.array([1.0, 2.0])[1]) == 2
        assert np.array([1.0, 2.0]).tolist() == [1.0, 2.0]
        assert hash(np.array([1.0])[0]) == hash(1.0)
        assert scipy.linalg.expm(np.array([[0.0, 0.0], [0.0, 0.0]])).tolist() == [[1.0, 0.0], [0.0, 1.0]]
        assert pickle.loads(pickle.dumps(np.array([1.0, 2.0]))).tolist() == [1.0, 2.0]
        assert np.asarray(X) is X
        assert np.array([1.0, 2.0], ndmin=2, dtype=np.float32).shape == (1, 2)
        assert X[np.array([0, 2])].tolist() == [X[0], X[2]]
        target = np.zeros(3)
        target[:] = np.array([1.0, 2.0, 3.0])
        assert target.sum() == 6.0
        return x * 1.0

    assert gradient(f, 1.0) == (1.0,)


# --- math --------------------------------------------------------------------------------------------------------

ONE = {
    "acos": 0.3, "acosh": 1.7, "asin": 0.3, "asinh": 0.3, "atan": 0.3, "atanh": 0.3, "cbrt": 2.0, "cos": 0.3,
    "cosh": 0.3, "erf": 0.3, "erfc": 0.3, "exp": 0.3, "exp2": 0.3, "expm1": 0.3, "gamma": 2.3, "lgamma": 2.3,
    "log": 2.3, "log10": 2.3, "log1p": 0.3, "log2": 2.3, "sin": 0.3, "sinh": 0.3, "sqrt": 2.3, "tan": 0.3, "tanh": 0.3,
}  # fmt: skip
IN_MPMATH = {
    "cbrt": mpmath.cbrt, "exp2": lambda x: mpmath.mpf(2) ** x, "gamma": mpmath.gamma, "lgamma": mpmath.loggamma,
    "log2": lambda x: mpmath.log(x, 2),
}  # fmt: skip


@pytest.mark.parametrize(("name", "x"), ONE.items())
def test_functions_of_math_have_the_derivative_of_mathematics(name, x):
    with mpmath.workdps(40):
        truth = IN_MPMATH.get(name, getattr(mpmath, name, None))
        want = float(mpmath.diff(truth, mpmath.mpf(x)))
        second = float(mpmath.diff(truth, mpmath.mpf(x), 2))
    f = lambda x: getattr(math, name)(x)
    value, slope = jvp(f, (x,), (1.0,))
    assert value == getattr(math, name)(x)
    assert slope == pytest.approx(want, rel=1e-12)
    assert gradient(f, x)[0] == pytest.approx(want, rel=1e-12)
    if "gamma" not in name:  # whose derivative is a special function of its own
        assert gradient(lambda x: gradient(f, x)[0], x)[0] == pytest.approx(second, rel=1e-9)
    assert gradient(f, np.array([x]))[0] == pytest.approx([want], rel=1e-12)


@pytest.mark.parametrize(
    ("f", "x"),
    [
        (lambda x: math.degrees(x[0]) + math.radians(x[1]), X),
        (lambda x: math.pow(x[2], 3) + math.pow(2, x[0]) + math.pow(x[2], x[0]), X),
        (lambda x: math.atan2(x[0], x[1]) + math.atan2(1.0, x[0]) + math.atan2(x[0], 2.0), X),
        (lambda x: math.copysign(x[0], x[1]) + math.copysign(x[2], 1) + math.copysign(2.0, x[1]), X),
        (lambda x: math.fmod(x[2], x[0] + 0.3) + math.fmod(5.5, x[2]) + math.fmod(x[2], 0.7), X),
        (lambda x: math.log(x[2], x[0]) + math.log(x[2], 3) + math.log(3, x[2]), X),
        (lambda x: math.hypot(*x) + math.hypot(x[0]) + math.hypot(x[0], 3.0), X),
        (lambda x: math.dist(x, [1.0, 2.0, 3.0]) + math.dist([x[0], 1], (0, x[1])), X),
        (lambda x: math.fsum(x) + math.fsum([x[0], 1.0]) + math.fsum(v for v in x), X),
        (lambda x: math.prod(x) + math.prod([x[0], 2.0], start=3) + math.prod([2.0], start=x[0]), X),
        (lambda x: math.fabs(x[1]) + math.fabs(x[0]), X),
        (lambda x: math.sin(x[0] * math.pi) * math.e, X),
        (lambda x: math.sqrt(sum(v * v for v in x)), X),
        (lambda x: math.exp(np.dot(x, x)), X / 3),
        (lambda x: sine(x[0]) + exp(x[1]) + atan2(x[0], x[1]), X),
        (lambda x: mathematics.sin(x[0]), X),
        (lambda x: x[0] if math.isfinite(x[1]) and not math.isnan(x[0]) else 0.0, X),
        (lambda x: x[0] * math.isclose(x[2], 2.0), X),
    ],
)
def test_the_rest_of_math_agrees_with_differences(f, x):
    want = differences(lambda x: f(x), x)
    close(gradient(f, x)[0], want, 1e-8, 1e-10)
    close(jvp(f, (x,), (V,))[1], want @ V, 1e-8, 1e-10)


def test_functions_of_math_on_parameters_inside_a_transform():
    w = param(0.3)
    (x_bar,) = gradient(lambda x: x * math.sin(w), 2.0)
    assert istracked(x_bar)


def test_errors_of_math_are_its_own():
    for f in (lambda x: math.sqrt(x - 5), lambda x: math.log(x * 0), lambda x: math.acos(x + 5)):
        with pytest.raises(ValueError, match=r"math domain error|expected|positive"):
            gradient(f, 1.0)
    with pytest.raises(OverflowError):
        gradient(lambda x: math.exp(x * 1000), 1.0)
    with pytest.raises(TypeError):
        gradient(lambda x: math.sin(np.array([x, x])), 1.0)
    with pytest.raises(TypeError):
        gradient(lambda x: math.sin("text"), 1.0)


def test_functions_of_math_that_count_take_integers():
    def f(x, n):
        assert (math.factorial(n), math.comb(n, 2), math.gcd(n, 6), math.isqrt(n)) == (6, 3, 3, 1)
        return x * math.factorial(n)

    assert gradient(f, 2.0, 3) == (6.0, None)


def test_constants_in_math_functions_inside_a_transform_are_constants():
    assert gradient(lambda x: x * math.sin(2.0) + math.hypot(3.0, 4.0) + math.fsum([1.0]), 1.0) == (math.sin(2.0),)


# --- undisturbed surroundings ------------------------------------------------------------------------------------

WATCHED = {(np, name) for name in ("array", "asarray", "zeros", "ones", "empty", "full", "arange", "linspace")}
WATCHED |= {(math, name) for name in dir(math) if callable(getattr(math, name))}


def snapshot():
    here = sys.modules[__name__]
    mine = {(here, name) for name in ("make_array", "asarray", "sine", "exp", "atan2")}
    return {(module.__name__, name): getattr(module, name) for module, name in WATCHED | mine}


BEFORE = snapshot()


def test_after_a_transform_everything_is_as_it_was():
    assert snapshot() == BEFORE
    threshold = gc.get_threshold()
    gradient(lambda x: np.sum(np.array([x, sine(x)])), 1.0)
    jvp(lambda x: math.sin(x), (1.0,), (1.0,))
    jacobian(lambda x: np.array([x[0], 1.0]), X)
    assert snapshot() == BEFORE
    assert gc.get_threshold() == threshold
    for error in (KeyError, KeyboardInterrupt, SystemExit, GeneratorExit):

        def f(x, error=error):
            raise error

        with pytest.raises(error):
            gradient(f, 1.0)
        assert snapshot() == BEFORE
        assert gc.get_threshold() == threshold


def test_nested_transforms_restore_at_the_end_of_the_outermost():
    def f(x):
        gradient(lambda y: math.sin(y), 1.0)
        return math.sin(x) + np.sum(np.array([x, 1.0]))

    close(gradient(f, 0.3)[0], math.cos(0.3) + 1)
    assert snapshot() == BEFORE


def ask_often():
    return [getattr(np, name) for name in ("sin", "pi", "float64", "add", "exp", "ndarray") * 10]


def test_functions_are_taken_over_however_often_the_module_is_asked():
    def f(x):
        before = np.array([x[0], 1.0])
        ask_often()
        [math.pi for _ in range(50)]
        return np.sum(before) + np.sum(np.array([x[1], math.sin(x[2])]))

    close(gradient(f, X)[0], [1.0, 1.0, math.cos(X[2])])
    assert snapshot() == BEFORE


def test_a_module_is_a_module_while_a_transform_runs():
    def f(x):
        assert isinstance(np, types.ModuleType)
        assert np.__name__ == "numpy"
        assert "array" in dir(np)
        assert vars(math)["sin"] is math.sin
        assert pickle.loads(pickle.dumps(np.linalg)) is np.linalg
        with pytest.raises(AttributeError, match="nonsense"):
            np.nonsense
        from numpy import asarray, zeros  # noqa: F401

        return np.sum(np.array([x, 1.0]))

    assert gradient(f, 2.0) == (1.0,)
    assert isinstance(np, types.ModuleType)
    assert snapshot() == BEFORE


def test_what_is_set_in_a_module_while_a_transform_runs_is_seen_at_once_and_stays():
    def f(x):
        np.set_by_a_test = 3.0
        math.set_by_a_test = np.array
        assert math.set_by_a_test is np.array
        del math.set_by_a_test
        assert not hasattr(math, "set_by_a_test")
        return x * np.set_by_a_test

    try:
        assert gradient(f, 2.0) == (3.0,)
        assert np.set_by_a_test == 3.0
        assert snapshot() == BEFORE
    finally:
        del np.set_by_a_test


def test_a_module_of_a_class_of_its_own_keeps_it():
    class Mine(types.ModuleType):
        pass

    np.linalg.__class__ = Mine
    try:
        a = np.eye(2)
        close(gradient(lambda x: np.linalg.norm([x, 2.0 * x]), 1.0)[0], math.sqrt(5))
        close(gradient(lambda x: np.linalg.det(a * x), 3.0)[0], 6.0)
        assert type(np.linalg) is Mine
    finally:
        np.linalg.__class__ = types.ModuleType
    assert snapshot() == BEFORE


def test_threads_that_ask_while_transforms_begin_and_end_get_plain_results():
    done = threading.Event()
    wrong = []

    def bystander():
        while not done.is_set():
            made = np.array([1.0, 2.0])
            if type(made) is not np.ndarray or type(math.sin(1.0)) is not float or type(np.zeros(2)) is not np.ndarray:
                wrong.append(made)

    threads = [threading.Thread(target=bystander) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for often in [False, True] * 15:
            f = lambda x, often=often: (
                np.sum(np.array([x, math.sin(x)])) + np.sum([x, 1.0]) * len(ask_often() if often else ())
            )
            close(gradient(f, 0.3)[0], 1 + math.cos(0.3) + 60 * often)
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert not wrong
    assert snapshot() == BEFORE


def test_a_bystander_thread_gets_plain_results():
    running, checked = threading.Event(), threading.Event()
    seen = []

    def bystander():
        running.wait(10)
        try:
            made = np.array([1.0, 2.0])
            seen.append(type(made) is np.ndarray and made.flags.writeable)
            seen.append(type(np.zeros(3)) is np.ndarray)
            seen.append(type(np.asarray([1])) is np.ndarray)
            seen.append(type(math.sin(1.0)) is float)
            seen.append(type(np.arange(3.0)) is np.ndarray)
            filled = np.zeros(2)
            filled[0] = 5.0
            seen.append(type(filled) is np.ndarray and filled.tolist() == [5.0, 0.0])
        finally:
            checked.set()

    thread = threading.Thread(target=bystander)
    thread.start()

    def f(x):
        running.set()
        assert checked.wait(10)
        return math.sin(x)

    gradient(f, 1.0)
    thread.join()
    assert seen == [True] * 6


def test_what_a_function_leaves_behind_is_plain():
    kept = []

    def f(x):
        kept.extend([np.array([1.0, 2.0]), np.zeros(2), np.ones((2, 2)), np.arange(3)])
        return x * np.sum(kept[0])

    gradient(f, 1.0)
    for array in kept:
        assert np.asarray(array).dtype in (float, int)
        assert (np.asarray(array) + 1).shape == array.shape
    assert np.sum(kept[0]) == 3.0


# --- names bound early -------------------------------------------------------------------------------------------


def test_names_imported_into_the_functions_module_are_taken_over():
    def f(x):
        return sine(x) * exp(x) + np.sum(make_array([x, 2.0 * x])) + asarray([x])[0]

    close(gradient(f, 0.3)[0], np.exp(0.3) * (np.sin(0.3) + np.cos(0.3)) + 4)


def test_names_imported_inside_the_function_work():
    def f(x):
        from math import cos

        from numpy import array

        return cos(x) + np.sum(array([x, x]))

    close(gradient(f, 0.3)[0], 2 - math.sin(0.3))


@pytest.fixture
def other_module(tmp_path, monkeypatch):
    """A module of the user's own whose functions are called from elsewhere."""
    (tmp_path / "early_bound.py").write_text(
        textwrap.dedent("""
            from math import sin
            from numpy import array

            def f(x):
                return sin(x) * 2

            def g(x):
                return array([x, 1.0])

            class Model:
                def __call__(self, x):
                    return sin(x)

                def loss(self, x):
                    return sin(x) * 3
        """)
    )
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("early_bound")
    yield module
    sys.modules.pop("early_bound")


def test_the_functions_own_module_is_looked_at(other_module):
    before = other_module.sin
    close(gradient(other_module.f, 0.3)[0], 2 * math.cos(0.3))
    close(gradient(other_module.Model(), 0.3)[0], math.cos(0.3))
    close(gradient(other_module.Model().loss, 0.3)[0], 3 * math.cos(0.3))
    assert other_module.sin is before


def test_a_name_bound_where_we_cannot_see_it_is_right_or_raises_with_the_way_out(other_module):
    for f, slope in (
        (lambda x: other_module.f(x), 2 * math.cos(0.3)),
        (lambda x: HIDDEN["sin"](x), math.cos(0.3)),
        (lambda x, sin=math.sin: sin(x), math.cos(0.3)),
        (lambda x: np.sum(HIDDEN["array"]([x, 2.0])), 1.0),
        (lambda x: np.sum(other_module.g(x)), 1.0),
    ):
        try:
            (x_bar,) = gradient(f, 0.3)
        except RetrogradeError as error:
            assert "derivative" in str(error)  # noqa: PT017
            assert "np." in str(error)  # noqa: PT017
        else:
            close(x_bar, slope)


# --- switched off ------------------------------------------------------------------------------------------------


@pytest.fixture
def without_interception():
    options.intercept = False
    yield
    options.intercept = True


@pytest.mark.usefixtures("without_interception")
@pytest.mark.parametrize(
    "f",
    [
        lambda x: math.sin(x[0]),
        lambda x: sine(x[0]),
        lambda x: math.hypot(x[0], 1.0),
        lambda x: np.sum(np.array([x[0], 2.0])),
        lambda x: np.sum(np.asarray(x)),
        lambda x: np.sum(np.array(x)),
        lambda x: np.sum(np.array([x, x])),
        lambda x: np.sum(np.ascontiguousarray(x)),
    ],
)
def test_switched_off_each_raises_at_the_users_line_with_the_way_out(f):
    for transform in (lambda: gradient(f, X), lambda: jvp(f, (X,), (V,))):
        with pytest.raises((ConversionError, ValueError)) as caught:
            transform()
        text = str(caught.value) + "".join(getattr(caught.value, "__notes__", [])) + str(caught.value.__cause__)
        assert "derivative" in text
        assert "(test_interception.py:" in text
        assert "  1. " in text


@pytest.mark.usefixtures("without_interception")
def test_switched_off_nothing_is_replaced():
    def f(x):
        assert snapshot() == BEFORE
        return np.sin(x) * x

    close(gradient(f, 0.3)[0], math.sin(0.3) + 0.3 * math.cos(0.3))


def test_the_switch_is_a_documented_option():
    assert options.intercept is True
    assert "intercept" in type(options).__doc__
    assert repr(options) == "Options(intercept=True, lines=False)"
    with pytest.raises(AttributeError):
        options.nonsense = 1


def test_switching_during_a_transform_leaves_nothing_behind():
    def f(x):
        options.intercept = False
        try:
            return gradient(lambda y: y * x, 1.0)[0] * x
        finally:
            options.intercept = True

    assert gradient(f, 3.0) == (6.0,)
    assert snapshot() == BEFORE
