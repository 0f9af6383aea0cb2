"""Other modules inside a transform: names that they bound early, arrays that they make, what they ask of an array."""

from __future__ import annotations

import contextvars
import importlib
import math
import sys
import textwrap
import threading

import numpy as np
import pytest
import scipy.fft
import scipy.integrate
import scipy.interpolate
import scipy.optimize
import scipy.stats
from truth import agree, close

from retrograde import gradient, hessian, ignore, istracked, jvp, options

X = np.array([0.5, -1.2, 2.0])

CODE = """
    import numpy as np
    from math import sin as sine, hypot
    from numpy import array, asarray, zeros, sum as total, stack
    from scipy.special import logsumexp

    TABLE = {"sine": sine}

    def smooth(x):
        x = asarray(x)
        out = zeros(x.shape)
        for i in range(len(x)):
            out[i] = sine(x[i]) * hypot(x[0], 1.0)
        return total([out[0], out[-1]]) + logsumexp(x)

    def mapped(x, y):
        x, y = map(asarray, (x, y))
        first, *rest = [v * y for v in map(array, x)]
        return total(stack(list(map(asarray, rest)))) * first

    def made(x):
        return zeros(3)

    class Stage:
        def __init__(self, x):
            self.x = x
            self.work = np.empty(len(x))

        def run(self):
            room = np.zeros((2, len(self.x)))
            for k in range(2):
                room[k] = self.x * (k + 1)
            self.work[:] = room[0] * room[1]
            return np.sum(self.work)
"""


@pytest.fixture(params=["installed", "own"])
def module(request, tmp_path, monkeypatch):
    """A module that bound names early: of an installed package, and of the user's own."""
    folder = tmp_path / ("site-packages" if request.param == "installed" else "project")
    folder.mkdir()
    name = f"early_{request.param}"
    (folder / f"{name}.py").write_text(textwrap.dedent(CODE))
    monkeypatch.syspath_prepend(folder)
    yield importlib.import_module(name)
    sys.modules.pop(name)


def test_names_that_another_module_bound_early_take_traced_values(module):
    agree(lambda x: module.smooth(x), X)
    agree(lambda x: module.mapped(x, x[2]), X)
    agree(lambda x: module.Stage(x * x).run(), X)
    close(hessian(lambda x: module.Stage(x).run(), X), 4.0 * np.eye(3))


def test_the_users_own_modules_are_put_back(module):
    before = dict(vars(module))
    gradient(lambda x: module.smooth(x), X)
    if module.__name__ == "early_own":
        assert {name: vars(module)[name] for name in before} == before


def test_what_the_user_has_changed_in_a_module_of_his_own_is_left_alone(module):
    gradient(lambda x: module.smooth(x), X)
    module.sine = lambda v: v * 7.0
    agree(lambda x: module.smooth(x), X)
    assert module.sine(1.0) == 7.0
    del module.stack
    agree(lambda x: module.smooth(x), X)
    assert not hasattr(module, "stack")


def test_outside_of_transforms_a_stand_in_is_the_original(module):
    plain = module.smooth(X)
    gradient(lambda x: module.smooth(x), X)
    close(module.smooth(X), plain, 0, 0)
    assert type(module.zeros(3)) is np.ndarray
    assert module.asarray(X) is X
    assert module.zeros.__name__ == "zeros"
    assert type(module.array([1.0])) is np.ndarray
    with pytest.raises(TypeError):
        module.zeros()


def test_another_thread_gets_plain_arrays_of_it_meanwhile(module):
    seen = []

    def work():
        seen.extend([type(module.zeros(3)) is np.ndarray, type(module.sine(1.0)) is float, module.asarray(X) is X])

    def f(x):
        y = module.smooth(x)
        thread = threading.Thread(target=contextvars.Context().run, args=(work,))
        thread.start()
        thread.join()
        return y

    gradient(f, X)
    assert seen == [True] * 3


def test_a_module_that_is_imported_in_the_middle_of_a_transform_works(tmp_path, monkeypatch):
    (tmp_path / "imported_late.py").write_text(
        "from math import sin\nfrom numpy import array\nf = lambda x: array([sin(x)])"
    )
    monkeypatch.syspath_prepend(tmp_path)

    def f(x):
        import imported_late

        return np.sum(imported_late.f(x))

    for _ in range(2):
        close(gradient(f, 0.3)[0], math.cos(0.3))
    assert type(sys.modules.pop("imported_late").f(0.3)) is np.ndarray


def test_switched_off_the_names_in_the_users_modules_stay(module):
    options.intercept = False
    try:
        if module.__name__ == "early_own":
            with pytest.raises(TypeError, match="derivative"):
                gradient(lambda x: module.smooth(x), X)
    finally:
        options.intercept = True


# --- arrays that packages make -----------------------------------------------------------------------------------


def test_packages_that_see_no_traced_value_make_plain_arrays():
    def f(x):
        # Compiled code of SciPy and of NumPy fills what is made in between.
        spline = scipy.interpolate.CubicSpline(np.arange(4.0), np.arange(4.0) ** 2)
        draws = np.random.default_rng(0).normal(size=3)
        result = scipy.optimize.least_squares(lambda t: t - 1.0, np.zeros(2))
        kernel = scipy.stats.gaussian_kde(np.arange(5.0))
        solution = scipy.integrate.solve_ivp(lambda t, y: -y, (0, 1), [1.0], method="LSODA")
        values = [spline(1.5), kernel(0.0)[0], solution.y[0, -1], result.x[0], draws[0]]
        assert not any(map(istracked, values))
        return np.sum(x) * sum(values)

    factor = f(X) / np.sum(X)
    close(gradient(f, X)[0], np.full(3, factor), 1e-12)
    close(jvp(f, (X,), (X,))[1], np.sum(X) * factor, 1e-12)


def test_inside_of_ignore_packages_make_plain_arrays():
    def f(x):
        with ignore():
            root = scipy.stats.zscore(x)
        assert type(root) is np.ndarray
        return np.sum(x * root)

    close(gradient(f, X)[0], scipy.stats.zscore(X))


# --- what they ask -----------------------------------------------------------------------------------------------


def test_a_traced_array_names_numpy_as_its_namespace():
    def f(x):
        xp = x.__array_namespace__(api_version="2024.12")
        assert xp is np
        assert xp is x[0].__array_namespace__()
        assert x.base is None
        assert not np.may_share_memory(x, x * 1.0)
        return xp.sum(x**2)

    close(gradient(f, X)[0], 2 * X)


def test_an_array_of_a_number_is_an_array_without_axes():
    def f(x):
        for number in (x[0], np.sum(x), x[0].item()):
            for make in (np.array, np.asarray, np.copy):
                made = make(number)
                assert made.shape == ()
                assert isinstance(made, np.ndarray)
                made[...] = x[1] * 2
                assert made == -2.4
        return np.sum(np.array(x[0])) * x[2]

    close(gradient(f, X)[0], [2.0, 0.0, 0.5])


def test_require_gives_the_layout():
    def f(x):
        A = np.require(np.outer(x, x).T, dtype=float, requirements=["C", "W"])
        assert A.flags.c_contiguous
        assert np.require(A, requirements="F").flags.f_contiguous
        assert np.require(x) is x
        return np.sum(A[0] * A[1])

    agree(f, X)
    assert np.require([1, 2], float).dtype == float


FOURIER = {
    "fft": (), "ifft": (4,), "rfft": (4, 0), "fft2": ((2, 3),), "fftn": (None, (0, 1), "ortho"), "ifftn": (),
    "rfftn": (), "ihfft": (3,), "rfft2": (),
}  # fmt: skip


@pytest.mark.parametrize("name", FOURIER)
def test_fourier_transforms_of_scipy_are_those_of_numpy(name):
    of, args = getattr(scipy.fft, name), FOURIER[name]
    M = np.outer(X, [1.0, 0.3])
    agree(lambda x: np.sum(np.abs(getattr(scipy.fft, name)(np.outer(x, [1.0, 0.3]), *args)) ** 3), X)
    assert gradient(lambda x: np.sum(x) * np.abs(of(M, *args)).sum(), X)[0][0] == pytest.approx(
        np.abs(of(M, *args)).sum()
    )


def test_inverse_fourier_transforms_and_their_keywords():
    agree(lambda x: np.sum(scipy.fft.irfft(scipy.fft.rfft(x, n=5), workers=1, overwrite_x=True) ** 3), X)
    agree(lambda x: np.sum(scipy.fft.hfft(x, norm="forward") ** 3) + scipy.fft.irfftn(x.reshape(1, 3))[0, 1] ** 2, X)
    with pytest.raises(TypeError, match="plan="):
        gradient(lambda x: np.abs(scipy.fft.fft(x, plan=1))[0], X)
