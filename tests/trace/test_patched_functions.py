"""Functions of NumPy and `math` in whose place a program has put its own: they are called where Python would call them.

What they do inside is NumPy and traces itself. Our own formulas go on meaning NumPy's functions.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from truth import close, differences

import retrograde as rg
from retrograde import gradient, hvp, jvp, taylor, vmap

SOURCE = Path(rg.__file__).parent
X = np.array([0.3, -1.2, 2.0])
NAMES = [(np, "sum"), (np, "mean"), (np, "array"), (np, "exp"), (np.linalg, "norm"), (math, "sin"), (math, "exp")]
ORIGINALS = [getattr(module, name) for module, name in NAMES]


@pytest.fixture(autouse=True)
def _nothing_is_left() -> Iterator[None]:
    yield
    assert [getattr(module, name) for module, name in NAMES] == ORIGINALS


numpys_sum, numpys_exp, numpys_array, sine = np.sum, np.exp, np.array, math.sin


def half_sum(x: Any, axis: Any = None) -> Any:
    return 0.5 * numpys_sum(x, axis=axis)


def in_every_mode(f: Any, x: Any = X) -> None:
    """Value and derivatives are those of the function as Python runs it just now."""
    slopes = differences(f, x)
    value, (bar,) = rg.withgradient(f, x)
    close(value, f(x))
    close(bar, slopes, 1e-8)
    v = np.cos(np.arange(x.size))
    close(jvp(f, (x,), (v,))[1], np.dot(slopes, v), 1e-8)
    close(taylor(f, x, v, 1)[1], np.dot(slopes, v), 1e-8)
    close(hvp(f, x, v), np.dot(differences(rg.grad(f), x), v), 1e-6, 1e-8)
    close(vmap(rg.grad(f))(np.stack([x, x]))[1], slopes, 1e-8)


def test_a_function_patched_before_a_transform_is_called_in_it() -> None:
    with mock.patch("numpy.sum", half_sum):
        in_every_mode(lambda x: np.sum(x * x))
        in_every_mode(lambda x: np.sum(np.array([x[0] ** 2, x[1], 3.0])))  # the others are still taken over
        assert np.sum is half_sum
    in_every_mode(lambda x: np.sum(x * x))
    close(gradient(lambda x: np.sum(x * x), X)[0], 2 * X)


def test_the_same_of_functions_that_nobody_takes_over_and_of_math() -> None:
    with (
        mock.patch("numpy.exp", lambda x: 2 * numpys_exp(x)),
        mock.patch.object(math, "sin", lambda x: x**3),
        mock.patch.object(np.linalg, "norm", lambda x: half_sum(x * x)),
    ):
        in_every_mode(lambda x: numpys_sum(np.exp(x)) + math.sin(x[0]) + np.linalg.norm(x))


def test_our_formulas_go_on_meaning_numpys_functions() -> None:
    def wrong(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("this is no formula")

    names = "exp log sum mean where take cos sqrt reshape broadcast_to zeros ones zeros_like sign abs".split()

    def f(x: Any) -> Any:
        y = numpys_expm1(x) * numpys_tanh(x[::-1]) + x**2 / (1 + x * x)
        return numpys_sum(y) + numpys_var(x) + numpys_solve(numpys_outer(x, x) + 3 * eye, x)[0] + numpys_sort(x)[1]

    numpys_expm1, numpys_tanh, numpys_var, numpys_sort, eye = np.expm1, np.tanh, np.var, np.sort, np.eye(3)
    numpys_solve, numpys_outer = np.linalg.solve, np.outer
    want, curvature = gradient(f, X)[0], jvp(rg.grad(f), (X,), (X,))[1]
    with mock.patch.multiple(np, **dict.fromkeys(names, wrong)):
        close(gradient(f, X)[0], want)
        close(jvp(rg.grad(f), (X,), (X,))[1], curvature)
        tangent = jvp(f, (X,), (X,))[1]
        batch = vmap(rg.grad(f))(X[None])[0]
    close(tangent, want @ X)
    close(batch, want)
    close(want, differences(f, X), 1e-8)


def test_a_patch_within_a_transform_is_as_everywhere() -> None:
    def f(x: Any) -> Any:
        with mock.patch("numpy.sum", half_sum):
            y = np.sum(x * x)
        return y + np.sum([x[0], x[1]])

    in_every_mode(f)
    close(gradient(f, X)[0], X + [1.0, 1.0, 0.0])


def test_what_is_put_there_within_a_transform_stays_afterwards() -> None:
    def f(x: Any) -> Any:
        np.mean = half_sum  # type: ignore[assignment]
        return np.mean(x * x)

    before = np.mean
    try:
        close(gradient(f, X)[0], X)
        assert np.mean is half_sum
        close(gradient(lambda x: np.mean(x**3), X)[0], 1.5 * X**2)
    finally:
        np.mean = before
    close(gradient(lambda x: np.mean(x * x), X)[0], 2 * X / 3)


def test_a_patch_that_begins_in_a_transform_may_end_after_it() -> None:
    patch = mock.patch("numpy.sum", half_sum)

    def f(x: Any) -> Any:
        patch.start()
        return np.sum(x * x)

    try:
        close(gradient(f, X)[0], X)
        close(gradient(lambda x: np.sum(x * x), X)[0], X)
    finally:
        patch.stop()
    assert np.sum is numpys_sum
    close(gradient(lambda x: np.sum([x[0], x[0]]), X)[0], [2.0, 0.0, 0.0])


def test_a_patch_may_end_in_a_transform() -> None:
    patch = mock.patch("numpy.sum", half_sum)
    patch.start()

    def f(x: Any) -> Any:
        y = np.sum(x * x)
        patch.stop()
        return y + np.sum([x[0], x[1]])  # a list of traced numbers: taken over again

    close(gradient(f, X)[0], X + [1.0, 1.0, 0.0])
    assert np.sum is numpys_sum


def test_nested_transforms_and_errors_leave_patches_as_they_are() -> None:
    with mock.patch("numpy.sum", half_sum):
        close(gradient(lambda x: np.sum(gradient(lambda y: np.sum(y * y * x), x)[0]), X)[0], X)

        def fails(x: Any) -> Any:
            np.sum(x)
            raise KeyError

        for _ in range(2):
            with pytest.raises(KeyError):
                gradient(fails, X)
            assert np.sum is half_sum
    assert np.sum is numpys_sum


def test_a_patch_of_another_thread_is_seen() -> None:
    inside, patched = threading.Event(), threading.Event()

    def f(x: Any) -> Any:
        inside.set()
        assert patched.wait(10)
        return np.sum(x * x)

    def patches() -> None:
        assert inside.wait(10)
        np.sum = half_sum  # type: ignore[assignment]
        patched.set()

    other = threading.Thread(target=patches)
    other.start()
    try:
        close(gradient(f, X)[0], X)
    finally:
        other.join()
        np.sum = numpys_sum
    close(gradient(lambda x: np.sum(x * x), X)[0], 2 * X)


def test_a_name_of_the_users_own_module_may_be_patched_too() -> None:
    with mock.patch(f"{__name__}.sine", lambda x: x * x):
        close(gradient(lambda x: sine(x), 3.0)[0], 6.0)
    close(gradient(lambda x: sine(x), 3.0)[0], math.cos(3.0))


def test_a_function_that_was_deleted_is_not_there() -> None:
    del np.mean
    try:
        with pytest.raises(AttributeError, match="mean"):
            gradient(lambda x: np.mean(x), X)
        with pytest.raises(AttributeError, match="mean"):
            np.mean
    finally:
        np.mean = ORIGINALS[1]
    close(gradient(lambda x: np.mean(x), X)[0], np.full(3, 1 / 3))


FORMULAS = ("rules", "batch", "taylor", "forward", "reverse", "sparse")


@pytest.mark.parametrize("part", FORMULAS)
def test_formulas_are_written_with_the_copy_of_numpys_names(part: str) -> None:
    for path in (SOURCE / part).rglob("*.py"):
        assert "\nimport numpy as np\n" not in path.read_text(), f"{path}: from retrograde.originals import np"


def test_a_function_of_scipy_may_be_patched_too() -> None:
    special = pytest.importorskip("scipy.special")
    close(gradient(lambda x: special.expit(x), 0.0)[0], 0.25)
    with mock.patch("scipy.special.expit", lambda x: x**2), mock.patch("scipy.special.logsumexp", half_sum):
        close(gradient(lambda x: special.expit(x), 3.0)[0], 6.0)
        close(gradient(lambda x: special.logsumexp(x), X)[0], [0.5] * 3)
    close(gradient(lambda x: special.logsumexp(x), np.zeros(2))[0], [0.5, 0.5])
