"""The types of the values of a program."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

Operand = Any  # str | int | float | bool | complex


@functools.cache
def _kind(dtype: str) -> str:
    return np.dtype(dtype).kind


class Type(NamedTuple):
    """The type of a name: a dtype by NumPy's name, and for arrays the number of axes."""

    dtype: str
    ndim: int = -1

    @property
    def is_array(self) -> bool:
        return self.ndim >= 0

    @property
    def kind(self) -> str:
        """NumPy's letter: f, c, i, u or b."""
        return _kind(self.dtype)

    @property
    def is_inexact(self) -> bool:
        """Whether a value of this type can carry a derivative."""
        return self.kind in "fc"

    @property
    def is_complex(self) -> bool:
        return self.kind == "c"

    @property
    def element(self) -> Type:
        return Type(self.dtype)

    def __str__(self) -> str:
        return f"{self.dtype} array of {self.ndim} axes" if self.is_array else self.dtype


FLOAT = Type("float64")
INT = Type("int64")
BOOL = Type("bool")


def zero_of(type: Type) -> Operand:
    """The literal zero of a type, of which a cell or temp of the type starts."""
    return {"f": 0.0, "c": 0j, "b": False}.get(type.kind, 0)


def type_of_number(x: Any) -> Type:
    """The type of a literal, as numba types it."""
    if isinstance(x, bool | np.bool_):
        return BOOL
    if isinstance(x, np.generic):
        return Type(x.dtype.name)
    if isinstance(x, int):
        return INT
    return FLOAT if isinstance(x, float) else Type("complex128")
