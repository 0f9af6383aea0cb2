"""How a program is called: what each of its parameters is given, found out once for all calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from retrograde.compiler.types import Type

if TYPE_CHECKING:
    from retrograde.compiler.derivatives import Role
    from retrograde.compiler.variant import Finished


class Parameter(NamedTuple):
    """A parameter of a program.

    Attributes:
        role: what it stands for.
        is_out: whether what the program writes into it is a result.
        constant: the array from outside that it is; None for all others.
        like: the role of the argument whose shape it has, of an array; None of a number.
        zero: what stands for it where nothing is given, if it is a number.
        dtype: that of complex values, for real ones that are given; None for real types.
        lengths: where the program writes each element before it reads it, if the axes have these lengths: for each axis
            an integer, or the role and the axis (None of a number) that tell it. None where it needs what it is given.
    """

    role: Role
    is_out: bool
    constant: Any
    like: Role | None
    zero: Any
    dtype: str | None
    lengths: tuple[Any, ...] | None

    def is_filled(self, shape: tuple[int, ...], given: dict[Role, Any]) -> bool:
        """Whether the program writes each element of an array of this shape before it reads it."""
        if self.lengths is None or len(self.lengths) != len(shape):
            return False
        for n, length in zip(shape, self.lengths, strict=True):
            if type(length) is tuple:
                role, axis = length
                told = given.get(role)
                length = told if axis is None or told is None else told.shape[axis]
            if n != length:
                return False
        return True


class Call(NamedTuple):
    """All that there is to know for calling a program.

    Attributes:
        parameters: in the order in which the code takes them.
        results: what those of the code stand for.
        singles: those that are numbers in single precision, of which native code makes Python's own; and their types.
        code: native, or plain Python.
        looked_at: the roles of the arrays in which native code looks for a NaN as it writes them. It says, as one more
            result, whether it saw one; what takes its place where numba refuses it does not.
    """

    parameters: tuple[Parameter, ...]
    results: tuple[Role, ...]
    singles: tuple[tuple[Role, Callable[[Any], Any]], ...]
    code: Callable[..., Any]
    looked_at: frozenset[Role] = frozenset()


class Found(dict["Role", Any]):
    """What the results of a program stand for, and the arrays that it wrote.

    Attributes:
        clean: the roles of those arrays that have no NaN, as the program has seen.
    """

    clean: frozenset[Role] = frozenset()


def base(role: Role) -> Role:
    """What a role is a derivative of, or has several lanes of."""
    while role[0] in ("dot", "lane"):
        role = role[2]
    return role


def in_field(dtype: str, value: Any) -> Any:
    """Real numbers as complex ones, where those are wanted, as of seeds."""
    return value if np.iscomplexobj(value) else np.asarray(value, dtype)[()]


def parameters(
    program: Finished,
    types: tuple[Type, ...],
    result_types: tuple[Type, ...],
    constants: tuple[Any, ...],
    outs: frozenset[Role],
) -> tuple[Parameter, ...]:
    """Those of a program.

    Args:
        types, result_types: of the leaves of the arguments and of the results.
        constants: the arrays from outside.
        outs: those roles whose parameters are results.
    """
    roles = dict(zip(program.params, program.roles, strict=True))

    def length(told: tuple[Any, ...]) -> Any:
        first, *axis = told
        return first if type(first) is int else (roles[first], axis[0] if axis else None)

    def parameter(name: str, role: Role) -> Parameter:
        kind, number = base(role)[:2]
        if kind == "constant":
            return Parameter(role, role in outs, constants[number], None, None, None, None)
        if kind == "kept":
            return Parameter(role, role in outs, None, None, None, None, None)
        type = (types if kind in ("x", "x_bar") else result_types)[number]
        return Parameter(
            role,
            role in outs,
            None,
            ("x", number) if type.is_array and kind in ("x", "x_bar") else None,
            None if type.is_array else 0j if type.is_complex else 0.0,
            type.dtype if type.is_complex else None,
            tuple(map(length, program.filled[name])) if name in program.filled else None,
        )

    return tuple(parameter(name, role) for name, role in roles.items())
