"""Which results of a function may have the memory of an argument, or of another result: conservatively.

Its own program may well return a copy where NumPy returns a view; what is asked here is what NumPy does.
"""

from __future__ import annotations

from collections.abc import Iterable

from retrograde.compiler.alias import Memory
from retrograde.compiler.form import Return
from retrograde.compiler.known import Shared
from retrograde.compiler.program import Program
from retrograde.compiler.walks import walk


def shared_results(program: Program, links: Iterable[tuple[str, str]]) -> Shared:
    """The results of a program that may share memory.

    Args:
        links: pairs of arrays that have memory of their own in the program, and share it in NumPy.
    """
    memory = Memory(program)
    returns = [s.values for s in walk(program.body) if isinstance(s, Return)]
    arrays = [j for j, v in enumerate(returns[0]) if program.is_array(v)] if returns else []
    one_memory = _Classes()
    for a, b in links:
        one_memory.join(memory.root(a), memory.root(b))
    of_arguments = {one_memory.of(p) for p in program.params}
    found: set[int] = set()
    for values in returns:
        roots = {j: one_memory.of(memory.root(str(values[j]))) for j in arrays}
        seen = list(roots.values())
        found |= {j for j, root in roots.items() if root in of_arguments or seen.count(root) > 1}
    arguments = {}
    for j in found:
        (value, *others) = {values[j] for values in returns}
        if not others and value in program.params:
            arguments[j] = program.params.index(str(value))
    return Shared(frozenset(found), arguments)


class _Classes:
    """Names that have been joined with each other."""

    def __init__(self) -> None:
        self._parents: dict[str, str] = {}

    def of(self, name: str) -> str:
        while name in self._parents:
            name = self._parents[name]
        return name

    def join(self, a: str, b: str) -> None:
        a, b = self.of(a), self.of(b)
        if a != b:
            self._parents[a] = b
