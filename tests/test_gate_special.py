"""The completeness gate for scipy.special, as test_gate.py is for NumPy."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

special = pytest.importorskip("scipy.special")

from unsupported_special import UNSUPPORTED_SPECIAL  # noqa: E402

import retrograde.rules  # noqa: E402
from retrograde.rules.scipy_special_dispatch import named  # noqa: E402
from retrograde.rules.table import RULES  # noqa: E402

retrograde.rules.load_scipy()


def public_functions() -> dict[str, Any]:
    """All that can be called and is neither a class nor a module."""
    found = {name: getattr(special, name) for name in special.__all__}
    return {name: f for name, f in found.items() if callable(f) and not inspect.isclass(f)}


FUNCTIONS = public_functions()


def is_accounted_for(name: str) -> bool:
    # sinc is NumPy's own.
    return named(name) in RULES or FUNCTIONS[name] in RULES


def test_every_public_function_is_accounted_for() -> None:
    missing = [name for name in FUNCTIONS if not is_accounted_for(name) and name not in UNSUPPORTED_SPECIAL]
    assert missing == [], "give each a rule, or a reason in tests/unsupported_special.py"


def test_every_ufunc_has_a_rule() -> None:
    assert [name for name, f in FUNCTIONS.items() if isinstance(f, np.ufunc) and not is_accounted_for(name)] == []


def test_nothing_that_has_a_rule_is_listed_as_unsupported() -> None:
    assert [name for name in UNSUPPORTED_SPECIAL if name in FUNCTIONS and is_accounted_for(name)] == []


def test_every_unsupported_name_has_a_reason() -> None:
    assert [name for name, reason in UNSUPPORTED_SPECIAL.items() if len(reason.split()) < 2] == []


@pytest.mark.parametrize("name", ["jv", "airy", "logsumexp", "sph_harm_y", "zeta"])
def test_the_gate_walks_functions_of_every_kind(name: str) -> None:
    if not hasattr(special, name):
        pytest.skip(f"this SciPy has no {name}")
    assert name in FUNCTIONS
