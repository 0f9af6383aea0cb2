"""Owns the traced value: the one place where Python's operators and NumPy's protocols meet the rules.

Must not know how a tape is swept or a tangent seeded: which mode runs is a property of the level of a value.
"""

from retrograde.trace import indexing, mapped, operators, protocols

__all__ = ["indexing", "mapped", "operators", "protocols"]
