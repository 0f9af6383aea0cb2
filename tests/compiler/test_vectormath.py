"""The vectorisable functions against mpmath, in units in the last place, and against C's special values."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest

numba = pytest.importorskip("numba")
from retrograde.compiler import vectormath  # noqa: E402

# The largest error that the docstrings state, and the domain in which it is looked for.
ULPS = {
    "exp": 1,
    "expm1": 2,
    "tanh": 3,
    "log": 1,
    "log1p": 2,
    "sin": 1,
    "cos": 1,
    "erf": 2,
    "erfc": 5,
}
AWKWARD = (0.0, -0.0, math.inf, -math.inf, math.nan, 5e-324, -5e-324, 2.0**-1022, 1.0, -1.0, 710.0, -746.0, 1.7e308)


def looped(name: str) -> Callable[..., Any]:
    """The function over arrays, in a compiled loop: the way in which it is used."""
    function = getattr(vectormath, name)
    if name == "pow":

        @numba.njit(error_model="numpy")
        def loop_of_two(x, y, out):  # type: ignore[no-untyped-def]
            for i in range(x.size):
                out[i] = function(x[i], y[i])

        return loop_of_two

    @numba.njit(error_model="numpy")
    def loop(x, out):  # type: ignore[no-untyped-def]
        for i in range(x.size):
            out[i] = function(x[i])

    return loop


LOOPS = {name: looped(name) for name in (*ULPS, "pow")}


def values(name: str, *args: Any) -> Any:
    out = np.empty(len(args[0]))
    LOOPS[name](*(np.array(arg, dtype=float) for arg in args), out)
    return out


def ulps(got: float, want: Any) -> float:
    """The distance of a float from an exact number, in units in the last place of that number."""
    with mpmath.workprec(120):
        spacing = math.ulp(float(want))
        return float(abs((mpmath.mpf(float(got)) - want) / mpmath.mpf(spacing)))


def sample(name: str) -> Any:
    rng = np.random.default_rng(3)
    n = 150
    x = np.concatenate(
        [
            rng.choice([-1, 1], n) * np.exp(rng.uniform(-700, 700, n)),
            rng.normal(size=2 * n),
            rng.uniform(-27, 27, n),
            rng.uniform(-700, 700, n),
            rng.uniform(-1e-3, 1e-3, n),
        ]
    )
    inside = {
        "exp": abs(x) < 700,
        "expm1": abs(x) < 700,
        "log": x > 0,
        "log1p": x > -1,
        "erf": abs(x) < 700,
        "erfc": x < 26,  # beyond, the result is denormal
    }
    return x[inside[name]] if name in inside else x


def exactly(name: str, x: float) -> Any:
    if name in ("tanh", "erf", "erfc", "expm1") and abs(x) > 50:
        # mpmath would need as many digits as the distance from the limit has; no float64 sees it.
        limits = {"tanh": math.copysign(1, x), "erf": math.copysign(1, x), "erfc": 1 - math.copysign(1, x)}
        if name in limits:
            return mpmath.mpf(limits[name])
        if x < 0:
            return mpmath.mpf(-1)
    # A large angle needs all of its binary digits, and as many of π.
    with mpmath.workprec(1300 if name in ("sin", "cos") else 200):
        return getattr(mpmath, name)(mpmath.mpf(x))


@pytest.mark.parametrize("name", ULPS)
def test_a_function_is_as_accurate_as_it_says(name: str) -> None:
    xs = sample(name)
    worst = max((ulps(y, exactly(name, float(x))), float(x)) for x, y in zip(xs, values(name, xs), strict=True))
    assert worst[0] <= ULPS[name], worst


def test_pow_is_as_accurate_as_it_says() -> None:
    rng = np.random.default_rng(4)
    n = 300
    x = np.concatenate([np.exp(rng.uniform(-700, 700, n)), abs(rng.normal(size=n)), 1 + rng.uniform(-1e-3, 1e-3, n)])
    y = rng.uniform(-700, 700, x.size) / np.log(x)
    with mpmath.workprec(200):
        exact = [mpmath.mpf(float(a)) ** mpmath.mpf(float(b)) for a, b in zip(x, y, strict=True)]
    for got, want, a, b in zip(values("pow", x, y), exact, x, y, strict=True):
        assert ulps(got, want) <= 2, (a, b)


def same(got: float, want: float) -> bool:
    """Equal, with the sign of a zero; or both NaN."""
    return (got == want and math.copysign(1, got) == math.copysign(1, want)) or (math.isnan(got) and math.isnan(want))


@pytest.mark.parametrize("name", ULPS)
def test_infinities_nans_zeros_and_denormals_are_as_in_c(name: str) -> None:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        of_numpy = getattr(np, name, None) or np.vectorize(getattr(math, name))
        want = of_numpy(np.array(AWKWARD))
    for x, got, expected in zip(AWKWARD, values(name, AWKWARD), want, strict=True):
        ordinary = math.isfinite(expected) and expected != 0
        assert abs(got - expected) <= 5 * math.ulp(expected) if ordinary else same(got, float(expected)), x


def test_the_special_values_of_pow_are_as_in_c() -> None:
    numbers = (*AWKWARD, 2.0, -2.0, 0.5, -0.5, 3.0, -3.0, 2.0**53, 2.0**53 + 2, -(2.0**53), 1e300, 0.3, -0.3)
    xs, ys = zip(*itertools.product(numbers, numbers), strict=True)
    with np.errstate(all="ignore"):
        want = np.power(np.array(xs), np.array(ys))
    for x, y, got, expected in zip(xs, ys, values("pow", xs, ys), want, strict=True):
        ordinary = math.isfinite(expected) and expected != 0
        assert abs(got - expected) <= 2 * math.ulp(expected) if ordinary else same(got, float(expected)), (x, y)


def test_denormal_results_are_rounded_once() -> None:
    xs = np.linspace(-745, -709, 200)
    with mpmath.workprec(200):
        for x, y in zip(xs, values("exp", xs), strict=True):
            assert ulps(y, mpmath.exp(mpmath.mpf(float(x)))) <= 1


def test_odd_functions_are_odd_to_the_last_bit() -> None:
    x = abs(sample("tanh"))
    for name in ("sin", "tanh", "erf"):
        np.testing.assert_array_equal(values(name, -x), -values(name, x))


@pytest.mark.parametrize("name", [*ULPS, "pow"])
def test_a_loop_of_them_calls_nothing_and_is_vectorised(name: str) -> None:
    if "x86" not in __import__("platform").machine():
        pytest.skip("reads the assembly of x86")
    values(name, *([[1.0]] * (2 if name == "pow" else 1)))
    (assembly,) = LOOPS[name].inspect_asm().values()
    packed = sum("mulpd" in line or ("vfm" in line and "pd" in line) for line in assembly.splitlines())
    assert packed >= 5, assembly
    called = [line.split()[-1] for line in assembly.splitlines() if line.strip().startswith("call")]
    assert not {"exp", "log", "pow", "sin", "cos", "tanh"} & {target.strip("*%") for target in called}
