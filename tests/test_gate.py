"""The completeness gate: every public function of NumPy has a rule, has no gradient, writes into its argument in a way
that is followed, or is listed with a reason.

Functions that are new in a later NumPy fail here until somebody decides which of the three they are.
Classes are not functions and are not walked (`np.float64`, `np.vectorize`, …). `numpy.polynomial` has no rules: all of
it is Python that runs on traced values (tests/rules/test_numpy_polynomials.py).
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from unsupported import LISTED

import retrograde.rules  # noqa: F401  (fills the table)
from retrograde.rules.table import RULES, NoGradient
from retrograde.trace.handle import Traced
from retrograde.trace.write_functions import WRITERS

PLACES = {
    "": np,
    "linalg.": np.linalg,
    "fft.": np.fft,
    "emath.": np.emath,
    "lib.stride_tricks.": np.lib.stride_tricks,
}


def public_functions() -> Iterator[tuple[str, Any]]:
    """Names as a user writes them after `np.`, with the functions."""
    for prefix, place in PLACES.items():
        for name in dir(place):
            function = getattr(place, name)
            if name.startswith("_") or not callable(function) or inspect.isclass(function):
                continue
            yield prefix + name, function


def ufunc_methods() -> Iterator[tuple[str, Any]]:
    """`add.reduce` and its like: the methods that a ufunc of this many arguments has."""
    for name, function in public_functions():
        if not isinstance(function, np.ufunc) or function.signature is not None or function.__name__ != name:
            continue
        methods = ["at"]
        if function.nin == 2 and function.nout == 1:
            methods += ["reduce", "accumulate", "reduceat", "outer"]
        for method in methods if function.nout == 1 else []:
            yield f"{name}.{method}", getattr(function, method)


ACCOUNTABLE = dict([*public_functions(), *ufunc_methods()])


def listed(name: str) -> bool:
    return name in LISTED


def is_accounted_for(name: str) -> bool:
    function = ACCOUNTABLE[name]
    # Whatever a ufunc without a derivative is applied by (np.equal.outer), there is still none.
    owner = getattr(function, "__self__", None)
    if isinstance(owner, np.ufunc):
        rule = RULES.get(owner)
        if isinstance(rule, NoGradient) or (function.__name__ == "at" and rule is not None):
            return True
    return function in RULES or function in WRITERS


def missing() -> list[str]:
    """The names that nobody has decided about."""
    return [name for name in ACCOUNTABLE if not is_accounted_for(name) and not listed(name)]


def test_every_public_function_of_numpy_is_accounted_for() -> None:
    assert missing() == [], "give each a rule, no_gradient, or a reason in tests/unsupported.py"


def test_nothing_that_has_a_rule_is_listed() -> None:
    assert [name for name in LISTED if name in ACCOUNTABLE and is_accounted_for(name)] == []


def test_every_listed_name_is_of_some_numpy() -> None:
    """A name may be missing from the NumPy at hand (an older or a newer one), but not be misspelt."""
    unknown = [name for name in LISTED if name not in ACCOUNTABLE]
    assert [name for name in unknown if name.partition(".")[0] not in {"row_stack", "in1d", "trapz"}] == []


def test_every_listed_name_has_a_reason() -> None:
    assert [name for name, reason in LISTED.items() if len(reason.split()) < 2] == []


@pytest.mark.parametrize("name", ["sin", "linalg.solve", "fft.fft", "add.reduce", "maximum.at"])
def test_the_gate_walks_functions_of_every_kind(name: str) -> None:
    assert name in ACCOUNTABLE


def test_every_attribute_of_arrays_is_one_of_traced_values() -> None:
    """Those that a traced value cannot have say so, and what to write instead (trace/attributes.py)."""
    assert [name for name in dir(np.ndarray) if not name.startswith("_") and not hasattr(Traced, name)] == []
