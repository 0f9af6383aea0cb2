"""Every elementwise rule that compiled code may need writes itself down in the form."""

from __future__ import annotations

import pytest

from retrograde.compiler import ops
from retrograde.compiler.calculus import Writer
from retrograde.compiler.partials import partials
from retrograde.compiler.program import Program
from retrograde.compiler.types import FLOAT
from retrograde.rules.table import RULES, Elementwise

# The order of polygamma is an integer, of which there is no derivative.
WITH_RULES = [
    fn for fn, f in ops.FUNCTIONS.items() if isinstance(RULES.get(f), Elementwise) and fn != "special.polygamma"
]


@pytest.mark.parametrize("fn", [*ops.ARITHMETIC, "neg", *WITH_RULES])
def test_the_partials_of_an_operation_become_operations(fn):
    function = ops.ARITHMETIC.get(fn) or ops.FUNCTIONS.get(fn)
    nin = 1 if fn == "neg" else getattr(function, "nin", 1)
    program = Program("f", [])
    args = tuple(program.new(name, FLOAT) for name in "ab"[:nin])
    writer = Writer(program, careful=False)
    found = partials(fn, args, program.new("y", FLOAT), (True,) * nin, writer)
    assert len(found) == nin
    assert all(p is None or program.type_of(p).is_inexact or isinstance(p, int) for p in found)
