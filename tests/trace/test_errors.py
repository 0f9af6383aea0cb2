"""The tree of errors: what each is caught as, what it says and where."""

from __future__ import annotations

import copy
import operator
import pickle
import traceback
import warnings

import numpy as np
import pytest
from truth import differences

import retrograde as rg
from retrograde import errors, gradient, jvp
from retrograde.errors import ConversionError

TREE = {
    "ScalarError": TypeError,
    "LossError": ValueError,
    "SeedError": ValueError,
    "AlreadyUsedError": RuntimeError,
    "EndedError": RuntimeError,
    "ConversionError": TypeError,
    "MutationError": TypeError,
    "FrozenBufferError": RuntimeError,
    "InputError": TypeError,
    "MissingRuleError": NotImplementedError,
    "UnsupportedArgumentError": TypeError,
    "PullbackError": ValueError,
    "HashError": TypeError,
    "PickleError": TypeError,
    "MissingExtraError": ImportError,
}


@pytest.mark.parametrize(("name", "base"), TREE.items())
def test_each_error_is_ours_and_a_builtin_one(name, base):
    error = getattr(rg, name)
    assert issubclass(error, rg.RetrogradeError)
    assert issubclass(error, base)
    assert error.__doc__
    assert f"{name} " in errors.__doc__


def test_the_tree_in_the_docstring_is_complete():
    defined = {n for n, v in vars(errors).items() if isinstance(v, type) and issubclass(v, (Exception, Warning))}
    for name in defined:
        assert name in errors.__doc__
        assert name in rg.__all__


def test_warnings_have_a_root_of_their_own():
    assert issubclass(rg.DroppedGradientWarning, rg.RetrogradeWarning)
    assert issubclass(rg.RetrogradeWarning, UserWarning)


def test_a_message_is_a_fact_a_place_and_numbered_ways_out():
    with pytest.raises(rg.ScalarError) as caught:
        gradient(lambda x: x**2, np.ones(3))
    first, *ways = str(caught.value).splitlines()
    assert first.startswith("gradient needs a real scalar; f returned an array of shape (3,)  (test_errors.py:")
    assert [way[:5] for way in ways] == [f"  {n}. " for n in range(1, len(ways) + 1)]
    assert len(ways) >= 2


@pytest.mark.parametrize(
    ("name", "transform"),
    [
        ("gradient", lambda f: gradient(f, np.ones(3))),
        ("withgradient", lambda f: rg.withgradient(f, np.ones(3))),
        ("grad", lambda f: rg.grad(f)(np.ones(3))),
        ("value_and_grad", lambda f: rg.value_and_grad(f)(np.ones(3))),
    ],
)
def test_a_message_names_the_function_that_was_called(name, transform):
    with pytest.raises(rg.ScalarError, match=rf"^{name} needs"):
        transform(lambda x: x)


def _line():
    import sys

    return sys._getframe(1).f_lineno


def test_the_place_is_the_users_line_and_not_ours():
    def inner(x):
        return float(x)

    with pytest.raises(rg.ConversionError) as caught:
        gradient(inner, 1.0)
    assert f"(test_errors.py:{inner.__code__.co_firstlineno + 1})" in str(caught.value)

    here = _line() + 2
    with pytest.raises(rg.InputError) as caught:
        gradient(lambda x: x, np.ma.masked_array([1.0]))
    assert f"(test_errors.py:{here})" in str(caught.value)

    here = _line() + 3
    _, back = rg.pullback(lambda x: x, np.ones(3))
    with pytest.raises(rg.SeedError) as caught:
        back(np.ones(2))
    assert f"(test_errors.py:{here})" in str(caught.value)


def test_a_function_of_numpy_between_us_and_the_user_is_not_the_place():
    def f(x):
        return np.apply_along_axis(lambda v: v[:1], 0, x[:, None]) * np.nanmedian(np.unwrap(np.trim_zeros(x)))

    try:
        gradient(lambda x: np.sum(f(x)), np.ones(3))
    except rg.RetrogradeError as error:
        assert "(test_errors.py:" in str(error)  # noqa: PT017


def test_the_traceback_ends_near_the_users_line():
    with pytest.raises(rg.ConversionError) as caught:
        gradient(lambda x: float(x), 1.0)
    frames = traceback.extract_tb(caught.value.__traceback__)
    last_of_user = max(i for i, frame in enumerate(frames) if frame.filename == __file__)
    assert len(frames) - last_of_user <= 4


@pytest.mark.parametrize("name", TREE)
def test_errors_pickle_and_copy_with_their_text(name):
    error = getattr(rg, name)("a fact", "first way", "second way")
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert type(again) is type(error)
        assert str(again) == str(error)
        assert again.fact == "a fact"
        assert again.ways == ("first way", "second way")


def test_an_argument_that_a_rule_does_not_know_is_refused_with_its_name():
    with pytest.raises(rg.UnsupportedArgumentError) as caught:
        gradient(lambda x: np.sum(np.sin(x, where=[True, False, True])), np.ones(3))
    assert isinstance(caught.value, TypeError)
    assert "where" in str(caught.value)
    assert "np.where" in str(caught.value)
    assert "(test_errors.py:" in str(caught.value)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.sin(x, casting="unsafe"),
        lambda x: np.sin(x, order="F"),
        lambda x: np.add(x, 1.0, subok=False),
        lambda x: np.add(x, x, dtype=np.float32),
        lambda x: np.multiply(x, 2.0, where=True),
        lambda x: np.sum(x, dtype=np.float32),
        lambda x: np.sum(x, where=np.array([True, False, True])),
        lambda x: np.max(x, initial=0.5),
        lambda x: np.mean(x, where=[True, True, False]),
        lambda x: np.cumsum(x, dtype=np.float64),
        lambda x: np.exp(x, where=np.array([True, True, False]), out=np.zeros(3)),
    ],
)
def test_keywords_of_numpy_are_right_or_refused_but_never_ignored(f):
    x = np.array([0.5, 1.0, 2.0])
    weights = np.array([1.0, 10.0, 100.0])
    weigh = lambda x: np.sum(f(x) * (weights if np.shape(f(x)) else 1.0))
    try:
        (x_bar,) = gradient(weigh, x)
        _, slope = jvp(weigh, (x,), (weights,))
    except rg.RetrogradeError as error:
        assert any(word in str(error) for word in ("where", "casting", "order", "subok", "dtype", "out", "initial"))  # noqa: PT017
        return
    want = differences(lambda x: np.sum(f(x) * (weights if np.shape(f(x)) else 1.0), dtype=float), x, 1e-2)
    np.testing.assert_allclose(x_bar, want, rtol=1e-3)
    np.testing.assert_allclose(slope, want @ weights, rtol=1e-3)


def test_a_function_without_a_rule_says_so_and_does_not_guess():
    with pytest.raises(rg.MissingRuleError, match="has no derivative rule"):
        gradient(lambda x: np.power.reduce(x), np.ones(3))
    for f in (np.frexp, np.nextafter, np.modf):
        try:
            gradient(lambda x, f=f: np.sum(f(x, x) if f is np.nextafter else f(x)[0]), np.ones(3) * 1.5)
        except (rg.MissingRuleError, rg.UnsupportedArgumentError) as error:
            assert "(test_errors.py:" in str(error)  # noqa: PT017


def test_an_error_inside_a_function_of_numpys_is_not_masked_by_ours():
    for f in (
        lambda x: np.reshape(x, (2, 2)),
        lambda x: np.concatenate([x, np.ones((2, 2))]),
        lambda x: x @ np.ones(4),
        lambda x: np.sum(x, axis=3),
        lambda x: x[7],
        lambda x: x + np.ones(4),
        lambda x: np.linalg.inv(np.outer(x, x) * 0),
        lambda x: np.einsum("ij->i", x),
    ):
        try:
            f(np.ones(3))
        except Exception as error:
            kind = type(error)
        with pytest.raises(kind) as caught:
            gradient(lambda x, f=f: np.sum(f(x)), np.ones(3))
        assert not isinstance(caught.value, rg.RetrogradeError)
    assert gradient(lambda x: x * x, 3.0) == (6.0,)


def test_derivatives_raise_no_warnings_of_their_own():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x = np.array([0.0, 1.0, 4.0])
        gradient(lambda x: np.sum(np.sqrt(x)[1:]), x)
        gradient(lambda x: np.sum(np.sqrt(x)), x)
        gradient(lambda x: np.linalg.norm(x * 0), x)
        gradient(lambda x: np.sum(np.where(x > 0, np.log(np.where(x > 0, x, 1.0)), 0.0)), x)
        gradient(lambda x: np.sum(x**0.0), x)
        gradient(lambda b: np.sum(x**b), 2.0)


def test_tangents_raise_no_warnings_of_their_own():
    x = np.array([0.0, 1.0, 4.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _, slope = jvp(lambda x: np.sum(np.sqrt(x)[1:]), (x,), (np.ones(3),))
    assert slope == 0.75


def test_warnings_of_the_users_own_computation_stay():
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        rg.pullback(lambda x: np.log(x), np.array([0.0]))


def test_inside_of_an_installed_package_the_line_that_called_it_is_named_too(tmp_path, monkeypatch):
    package = tmp_path / "site-packages"
    package.mkdir()
    (package / "installed_elsewhere.py").write_text("def convert(x):\n    return float(x)\n")
    monkeypatch.syspath_prepend(package)
    import installed_elsewhere

    with pytest.raises(rg.ConversionError, match=r"installed_elsewhere.py:2, called from test_errors.py:\d+"):
        gradient(lambda x: x * installed_elsewhere.convert(x), 2.0)


# --- calls that do not fit ---------------------------------------------------------------------------------------


def test_a_function_without_arguments_given_some_is_told_of_params():
    W, b = rg.param(np.ones(2)), rg.param(1.0)
    loss = lambda: np.sum(W * b)
    for transform in (
        lambda: gradient(loss, [W, b]),
        lambda: gradient(loss, W, b),
        lambda: rg.withgradient(loss, [W, b]),
        lambda: rg.pullback(loss, [W, b]),
        lambda: jvp(loss, (1.0,), (1.0,)),
        lambda: rg.grad(loss)(1.0),
    ):
        with pytest.raises(TypeError, match="takes 0 positional arguments") as caught:
            transform()
        (note,) = caught.value.__notes__
        assert "f takes none" in note
        assert "  1. Params instead of these arguments, gradient(f, Params([W, b]))" in note


def test_a_function_of_arguments_given_params_is_told_to_close_over_them():
    W = rg.param(np.ones(2))
    for transform in (
        lambda: gradient(lambda x: np.sum(W * x), rg.Params([W])),
        lambda: rg.pullback(lambda x: np.sum(W * x), rg.Params([W])),
    ):
        with pytest.raises(TypeError, match="missing 1 required positional argument") as caught:
            transform()
        (note,) = caught.value.__notes__
        assert "  1. gradient(lambda: f(x), Params([W, b]))" in note


def test_a_type_error_of_the_functions_own_gets_no_note():
    def f(x):
        return (lambda: x)(1)

    for transform in (lambda: gradient(f, 1.0), lambda: gradient(lambda x, y: x * y, 1.0)):
        with pytest.raises(TypeError) as caught:
            transform()
        assert not hasattr(caught.value, "__notes__")


# --- places of warnings ------------------------------------------------------------------------------------------


def test_a_warning_of_numpys_names_the_users_line_once_for_each_line():
    def f(x):
        for _ in range(3):
            y = np.log(x[0])
        z = np.divide(1.0, x[0])
        return x[1] + 0.0 * (y < z)

    w = rg.param(0.0)
    first = f.__code__.co_firstlineno
    for compute in (lambda: gradient(f, np.array([0.0, 1.0])), lambda: jvp(f, (np.zeros(2),), (np.ones(2),))):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("default")
            compute()
        assert [(w.filename, w.lineno - first) for w in caught] == [(__file__, 2), (__file__, 3)]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        np.log(w)
    assert [w.filename for w in caught] == [__file__]


def test_filters_of_warnings_go_by_the_users_module():
    f = lambda x: np.exp(-np.log(x))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.filterwarnings("ignore", module=__name__.replace(".", r"\."))
        jvp(f, (0.0,), (1.0,))
    assert caught == []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning):
            gradient(f, 0.0)


VECTOR = np.array([1.0, 2.0, 3.0])

# --- compiled code -----------------------------------------------------------------------------------------------


def test_elements_cannot_be_deleted_in_the_words_of_numpy():
    for y in (VECTOR, np.ones(3)):
        with pytest.raises(ValueError, match="cannot delete array elements"):
            gradient(lambda x, y=y: operator.delitem(x * y, 0), VECTOR)
    with pytest.raises(TypeError, match="support item deletion"):
        gradient(lambda x: operator.delitem(x, 0), 1.0)


@pytest.mark.parametrize("name", ["brentq", "bisect", "ridder", "root_scalar"])
def test_a_compiled_search_for_a_root_raises_the_error_of_the_conversion(name):
    optimize = pytest.importorskip("scipy.optimize")
    how = {"bracket": (0.0, 3.0)} if name == "root_scalar" else {"a": 0.0, "b": 3.0}
    search = getattr(optimize, name)
    with pytest.raises(ConversionError, match=r"float\(x\) in search\(\.\.\.\) would lose the derivative"):
        gradient(lambda x: search(lambda s: s * s - x, **how), 2.0)


@pytest.mark.parametrize("make", [np.frombuffer, lambda x: np.ndarray((3,), buffer=x), memoryview])
def test_what_wants_the_bytes_of_an_array_is_told_of_views(make):
    with pytest.raises(TypeError) as caught:
        gradient(lambda x: np.sum(make(x)), VECTOR)
    assert "no traced values" in caught.value.__notes__[0] or "plain numbers and arrays" in caught.value.__notes__[0]


def test_a_function_of_numba_is_told_of_compile():
    numba = pytest.importorskip("numba")
    jitted = numba.njit(lambda a: a[0] * a[1])
    with pytest.raises(TypeError) as caught:
        gradient(lambda x: jitted(x), VECTOR)
    assert "1. retrograde.compile(jitted), which has native derivatives" in caught.value.__notes__[0]


class OtherArray(np.ndarray):
    """A subclass that may do anything."""


FOREIGN = {
    "masked": np.ma.array([1.0, 2.0, 3.0], mask=[False, True, False]),
    "other": np.array([1.0, 2.0, 3.0]).view(OtherArray),
}


@pytest.mark.parametrize("name", FOREIGN)
@pytest.mark.parametrize(
    "f",
    [
        lambda x, c: x * c,
        lambda x, c: np.hypot(x, c),
        lambda x, c: np.maximum(c, x),
        lambda x, c: np.clip(x, c, 9.0),
        lambda x, c: np.add(x, c, out=np.zeros(3) * x),
    ],
    ids=["*", "hypot", "maximum", "clip", "out"],
)
@pytest.mark.parametrize("transform", [gradient, lambda f, x: jvp(f, (x,), (x,))], ids=["reverse", "forward"])
def test_arrays_with_operations_of_their_own_are_refused_beside_traced_ones(name, f, transform):
    c = FOREIGN[name]
    with pytest.raises(errors.RetrogradeError, match=type(c).__name__):
        transform(lambda x: np.sum(f(x, c)), np.ones(3))


def test_masked_arrays_select_elements_as_they_do_in_numpy():
    c = FOREIGN["masked"]
    (x_bar,) = gradient(lambda x: np.sum(x[c > 1.5] ** 2), np.array([1.0, 2.0, 3.0]))
    np.testing.assert_array_equal(x_bar, [0, 4, 6])
    (x_bar,) = gradient(lambda x: np.sum(x**2, where=c > 1.5), np.array([1.0, 2.0, 3.0]))
    np.testing.assert_array_equal(x_bar, [0, 4, 6])
