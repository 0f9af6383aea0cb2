"""Products with several numbers, as one."""

from __future__ import annotations

import numpy as np
import pytest

from retrograde.compiler.emit import emit
from retrograde.compiler.form import For, Op, Return
from retrograde.compiler.optimise.scaled import scale_once
from retrograde.compiler.program import Program
from retrograde.compiler.types import FLOAT, INT


def chain(*steps):
    """A program that takes x through operations with numbers."""
    program = Program("chain", ["x"])
    program.types["x"] = FLOAT
    last = "x"
    for fn, *args in steps:
        t = program.new("t", FLOAT)
        program.body.append(Op(t, fn, tuple(last if a == "x" else a for a in args)))
        last = t
    program.body.append(Return((last,)))
    return program


def value(program, x):
    names = {"np": np}
    exec(emit(program), names)
    return names["chain"](x)[0]


@pytest.mark.parametrize(
    ("steps", "last"),
    [
        ([("*", "x", 0.1), ("neg", "x"), ("*", "x", 2)], ("x", -0.2)),
        ([("/", "x", 4), ("*", 0.3, "x")], ("x", 0.3 / 4)),
        ([("*", "x", -1.0), ("*", "x", 0.7)], ("x", -0.7)),
        ([("*", "x", 0.1), ("*", "x", 0.3)], ("t", 0.3)),
        ([("*", "x", 1e-90), ("*", "x", 2.0**-60)], ("t", 2.0**-60)),
        ([("*", "x", 0.0), ("*", "x", 2)], ("t", 2)),
        ([("*", "x", np.inf), ("*", "x", 2)], ("t", 2)),
    ],
)
def test_products_are_joined_where_that_changes_no_bit(steps, last):
    program = chain(*steps)
    want = [value(program, x) for x in (1.1, -0.3, np.pi, 0.0, -0.0, np.inf)]
    scale_once(program)
    assert program.body[-2].args == last
    got = [value(program, x) for x in (1.1, -0.3, np.pi, 0.0, -0.0, np.inf)]
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(np.signbit(got), np.signbit(want))


def test_what_a_loop_computes_is_not_known_behind_it():
    program = Program("f", ["x"])
    program.types |= {"x": FLOAT, "a": FLOAT, "b": FLOAT, "c": FLOAT, "i": INT}
    product = Op("b", "*", ("a", 2.0))
    behind = Op("c", "*", ("b", 2.0))
    program.body = [Op("a", "*", ("x", 0.1)), For("i", 0, 3, [product]), behind, Return(("c",))]
    scale_once(program)
    assert product.args == ("x", 0.2)
    assert behind.args == ("b", 2.0)
