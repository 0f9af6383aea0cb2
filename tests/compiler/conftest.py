"""What tests of compiled functions share."""

from __future__ import annotations

from typing import Any

import pytest

from retrograde.compiler import native
from retrograde.compiler.compiled import Compiled
from retrograde.compiler.specialisation import Specialisation


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
            monkeypatch.setattr(compiled, "_bridges", {})
