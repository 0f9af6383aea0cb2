"""What tests of compiled functions share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from retrograde.compiler import examples, native
from retrograde.compiler.compiled import Compiled
from retrograde.compiler.specialisation import Specialisation


@pytest.fixture(autouse=True)
def unset_results_are_nan(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays that are not zeroed, since a program is said to write each of their elements, hold NaN before it does."""
    zeros = examples.zeros

    def empty(shape: Any, dtype: Any) -> Any:
        return zeros(shape, dtype) + np.dtype(dtype).type(np.nan if np.dtype(dtype).kind in "fc" else 7)

    monkeypatch.setattr(examples, "empty", empty)


@pytest.fixture
def as_plain_python(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """The derivatives of a module's functions run as the plain Python that they are.

    For tests in which numba has nothing to add but its time.
    """

    def loaded(_self: Any, _variant: Any, _part: Any, text: str, name: str, title: str, names: Any = None) -> Any:
        return native.load(text, name, title, None, names)

    monkeypatch.setattr(Specialisation, "_loaded", loaded)
    monkeypatch.setattr(Specialisation, "_of_kernel", lambda *_: None)
    for compiled in vars(request.module).values():
        if isinstance(compiled, Compiled):
            monkeypatch.setattr(compiled, "_specialisations", {})
            monkeypatch.setattr(compiled, "_by_sorts", {})
            monkeypatch.setattr(compiled, "_bridges", {})
