"""The page of what is supported says what the table says."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("scipy.special")

from support_page import page, refused_arguments, versions

from retrograde.rules.scipy_special_dispatch import named
from retrograde.rules.table import RULES

PAGE = Path(__file__).parent.parent / "docs" / "support.md"


def test_the_support_page_is_that_of_the_table() -> None:
    written = PAGE.read_text()
    if versions() not in written:
        pytest.skip(f"the page is of other versions than {versions()}")
    assert written == page(), "PYTHONPATH=src:tests python tests/support_page.py > docs/support.md"


def test_arguments_that_have_no_derivative_are_found_in_every_kind_of_rule() -> None:
    assert refused_arguments(RULES[named("expn")]) == ["n"]
    assert refused_arguments(RULES[named("pro_ang1")]) == ["m", "n"]
    assert refused_arguments(RULES[named("betainc")]) == []
