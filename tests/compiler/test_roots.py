"""Powers by square roots against NumPy's own."""

from __future__ import annotations

import numpy as np
import pytest

from retrograde.compiler.emit import emit
from retrograde.compiler.form import Op, Return
from retrograde.compiler.optimise.roots import powers_by_roots
from retrograde.compiler.program import Program
from retrograde.compiler.types import FLOAT, Type


def power(exponent):
    program = Program("power", ["x"])
    program.types |= {"x": FLOAT, "y": FLOAT}
    program.body = [Op("y", "**", ("x", exponent)), Return(("y",))]
    powers_by_roots(program)
    names = {"np": np}
    exec(emit(program), names)
    return lambda x: names["power"](x)[0]


@pytest.mark.parametrize("exponent", [-4.5, -2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 4.5])
def test_a_power_by_a_root_is_the_power(exponent):
    f = power(exponent)
    awkward = [0.0, -0.0, np.inf, -np.inf, np.nan, -1.0, 5e-324, 1e-310, 1e-300, 1e-120, 1e120, 1e300, 1.7e308]
    with np.errstate(all="ignore"):
        for x in np.array([*awkward, *np.random.default_rng(0).lognormal(0, 20, 500)]):
            want, got = x**exponent, f(x)
            assert got == want or abs(got - want) <= 3 * np.spacing(abs(want)) or (got != got and want != want)
            assert np.signbit(got) == np.signbit(want) or got != got


@pytest.mark.parametrize(("exponent", "is_root"), [(2.5, True), (2.0, False), (0.3, False), (5.5, False), (3, False)])
def test_powers_with_halves_as_exponents_are_taken_by_roots(exponent, is_root):
    program = Program("power", ["x"])
    program.types |= {"x": FLOAT, "y": FLOAT}
    program.body = [Op("y", "**", ("x", exponent)), Return(("y",))]
    powers_by_roots(program)
    assert any(s.fn == "np.sqrt" for s in program.body if isinstance(s, Op)) is is_root


@pytest.mark.parametrize("exponent", [-8, -3, -2, 2, 3, 5.0, 7, 8])
def test_a_whole_power_of_complex_numbers_is_a_product(exponent):
    program = Program("power", ["x"])
    program.types |= dict.fromkeys("xy", Type("complex128"))
    program.body = [Op("y", "**", ("x", exponent)), Return(("y",))]
    powers_by_roots(program)
    text = emit(program)
    assert "**" not in text
    names = {"np": np}
    exec(text, names)
    for x in np.random.default_rng(0).normal(size=(100, 2)) @ np.array([1, 1j]):
        want = np.prod(np.full(int(abs(exponent)), x)) ** np.sign(exponent)
        assert abs(names["power"](x)[0] - want) <= 30 * np.spacing(abs(want))
