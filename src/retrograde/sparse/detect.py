"""Finding the pattern of a function: one run, in which every element knows which inputs it depends on."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from retrograde.errors import InputError
from retrograde.originals import np
from retrograde.sparse.elimination import contents
from retrograde.sparse.level import PatternLevel
from retrograde.trace.handle import is_traced, shape_of
from retrograde.trace.interception import traceable
from retrograde.trace.running import run
from retrograde.trace.structure import Inputs, flatten, is_variable, unflatten
from retrograde.trace.undecided import varying
from retrograde.trace.views import settled, snapshot


def detect(
    f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], n: int, exact: bool
) -> tuple[Any, tuple[Any, Any]]:
    """The value of `f(*args, **kwargs)`, and its pattern as `(indptr, indices)` of a CSR matrix.

    Rows are the numbers of the value, columns the `n` numbers of the arguments, both leaf after leaf in C order.

    Args:
        exact: whether the pattern is that of this very run, in which `np.maximum` takes the one argument and not the
            other; otherwise of every run, and branches by values are refused.
    """
    level = PatternLevel(n, exact)
    first = 1

    def lift(primal: Any) -> Any:
        nonlocal first
        shape = shape_of(primal)
        size = int(np.prod(shape))
        numbers = np.arange(first, first + size).reshape(shape)[()]
        first += size
        return level.lift(snapshot(primal), numbers)

    inputs = Inputs(args, lift)
    f = traceable(f)
    with varying(level) if level.varies else nullcontext():
        outputs = run(level, lambda: settled(f(*inputs.args, **kwargs)), f)
    leaves, structure = flatten(outputs)
    rows = [_numbers(level, leaf) for leaf in leaves if _is_number(leaf)]
    values = [leaf.primal if is_traced(leaf) and leaf.level is level else leaf for leaf in leaves]
    return unflatten(structure, values), contents(level.sets, np.concatenate([np.zeros(0, int), *rows]))


def _is_number(leaf: Any) -> bool:
    try:
        return is_variable(leaf)
    except InputError:
        return False  # the caller says what is wrong with it


def _numbers(level: PatternLevel, leaf: Any) -> Any:
    if is_traced(leaf) and leaf.level is level:
        return np.ravel(level.numbers(leaf.link))
    return np.zeros(int(np.prod(shape_of(leaf))), int)
