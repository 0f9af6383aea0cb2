"""One native loop over many examples: the calls of a batch, and the directions of a Jacobian or a Hessian.

The loop calls the very program that a single call uses, whose types are the same; it only reads the examples of its
arguments, and stores results, along an axis in front.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from retrograde.compiler.form import Type

if TYPE_CHECKING:
    from retrograde.compiler.derivatives import Role


class Examples(NamedTuple):
    """Which values differ from one example to the next.

    Attributes:
        size: how many examples there are.
        roles: the roles whose values have the axis of the examples in front.
    """

    size: int
    roles: frozenset[Role]

    def first(self, given: dict[Role, Any]) -> dict[Role, Any]:
        """The values of the first example."""
        return {role: value[0] if role in self.roles else value for role, value in given.items()}

    def spread(self, value: Any) -> Any:
        """A value that is the same for all, as an array of its own for each."""
        return np.array(np.broadcast_to(value, (self.size, *np.shape(value))))


def loop_text(program: str, params: Sequence[str], types: Sequence[Type], mapped: Collection[str]) -> tuple[str, str]:
    """The name and the text of the loop over a program.

    Its parameters are the range of examples, those of the program (the `mapped` ones with the axis of the examples in
    front), and an array for each result.
    """
    name = f"each_{program}"
    args = ", ".join(f"{p}[k_]" if p in mapped else p for p in params)
    outs = [f"out_{j}" for j in range(len(types))]
    results = [f"result_{j}" for j in range(len(types))]
    lines = [
        f"def {name}({', '.join(['start', 'stop', *params, *outs])}):",
        "    for k_ in range(start, stop):",
    ]
    if not types:
        lines.append(f"        {program}({args})")
    else:
        lines.append(f"        {', '.join(results)}, = {program}({args})")
    for out, result, type in zip(outs, results, types, strict=True):
        depth = 2
        index = [f"i_{axis}" for axis in range(max(type.ndim, 0))]
        for axis, i in enumerate(index):
            lines.append("    " * depth + f"for {i} in range({result}.shape[{axis}]):")
            depth += 1
        read = f"{result}[{', '.join(index)}]" if index else result
        lines.append("    " * depth + f"{out}[{', '.join(['k_', *index])}] = {read}")
    return name, "\n".join(lines) + "\n"
