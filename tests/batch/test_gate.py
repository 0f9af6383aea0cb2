"""The gate: every function that has a rule maps over a batch, or is refused with the reason.

`python tests/batch/test_gate.py` prints the lists that docs/batches.md shows.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

import retrograde.rules
from retrograde import vmap  # noqa: F401  (fills the table of mappings)
from retrograde.batch.table import REFUSED, how
from retrograde.rules.table import RULES

if importlib.util.find_spec("scipy") is not None:
    retrograde.rules.load_scipy()

PAGE = Path(__file__).resolve().parents[2] / "docs" / "batches.md"


def listed() -> list[str]:
    """The lines of the page that say what does not map at once."""
    loops = sorted(f"`{RULES[f].label}`" for f in RULES if how(f) == "a loop")
    lines = ["One example after the other: " + ", ".join(loops) + "."]
    for why in dict.fromkeys(REFUSED.values()):
        names = sorted(f"`{RULES[f].label}`" for f in REFUSED if REFUSED[f] == why and f in RULES)
        lines.append(f"- {', '.join(names)}: {why}.")
    return lines


@pytest.mark.parametrize("function", RULES, ids=lambda f: RULES[f].label)
def test_every_function_with_a_rule_maps_or_says_why_not(function):
    kind = how(function)
    assert kind in ("at once", "by a body", "by its body", "a loop", "refused"), "declare it in batch/mappings/"
    if kind == "refused":
        assert len(REFUSED[function].split()) > 2


def test_few_functions_are_refused_or_looped():
    kinds = [how(function) for function in RULES]
    assert kinds.count("a loop") <= 3
    # The results of these have another shape in each example: there is no array for them.
    by_size = [function for function, why in REFUSED.items() if "differs between the examples" in why]
    assert kinds.count("refused") - len([f for f in by_size if f in RULES]) <= 3


def test_the_page_lists_what_does_not_map_at_once():
    text = PAGE.read_text(encoding="utf-8")
    assert [line for line in listed() if line not in text.splitlines()] == []


if __name__ == "__main__":
    print("\n".join(listed()))
