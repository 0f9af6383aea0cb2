"""The attributes and methods that a traced value shares with ndarray.

Each method calls the NumPy function of the same name, so that its derivative stands in one place; the methods that
would change an array in place are in `mutation.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from retrograde.errors import ConversionError


def _shape_arguments(args: tuple[Any, ...]) -> Any:
    """`x.reshape(2, 3)` and `x.reshape((2, 3))` are the same."""
    return args[0] if len(args) == 1 else args


class Attributes:
    """ndarray's face; a base of `Traced`."""

    __slots__ = ()

    if TYPE_CHECKING:
        primal: Any

    # A Python number has none of these; but a traced one answers like the 0-d value that NumPy would make of it, so that
    # rules need not ask which they were given.
    shape = property(lambda x: getattr(x.primal, "shape", ()))
    ndim = property(lambda x: getattr(x.primal, "ndim", 0))
    size = property(lambda x: getattr(x.primal, "size", 1))
    dtype = property(lambda x: x.primal.dtype if hasattr(x.primal, "dtype") else np.dtype(type(x.primal)))
    itemsize = property(lambda x: x.dtype.itemsize)
    nbytes = property(lambda x: x.size * x.dtype.itemsize)
    strides = property(lambda x: x.primal.strides)
    T = property(lambda x: np.transpose(x))
    mT = property(lambda x: np.matrix_transpose(x))
    real = property(lambda x: np.real(x))
    imag = property(lambda x: np.imag(x))

    def reshape(self, *shape: Any, order: str = "C") -> Any:
        return np.reshape(self, _shape_arguments(shape), order=order)

    def transpose(self, *axes: Any) -> Any:
        return np.transpose(self, _shape_arguments(axes) if axes else None)

    def astype(self, dtype: Any, order: str = "K", casting: str = "unsafe", subok: bool = True, copy: bool = True) -> Any:
        if np.dtype(dtype).kind in "iub" and np.dtype(dtype) != self.dtype:
            raise ConversionError(
                f"x.astype({np.dtype(dtype)}) would lose the derivative of a traced {self.dtype}",
                "np.trunc(x) or np.rint(x), which keep a (zero) derivative",
                "dropgrad(x).astype(...), where the derivative is not wanted",
            )
        return np.astype(self, np.dtype(dtype))

    def flatten(self, order: str = "C") -> Any:
        return np.ravel(self, order=order)

    def dot(self, b: Any) -> Any:
        return np.dot(self, b)

    def item(self, *index: Any) -> Any:
        if not index:
            return np.reshape(self, ())[()]
        return self[index] if len(index) > 1 else np.ravel(self)[index[0]]  # type: ignore[index]

    def tolist(self) -> Any:
        return [row.tolist() for row in self] if self.ndim else self.item()  # type: ignore[attr-defined]

    def compress(self, condition: Any, axis: Any = None) -> Any:
        return np.compress(condition, self, axis=axis)

    def conjugate(self) -> Any:
        return np.conjugate(self)

    def is_integer(self) -> bool:
        return bool(self.primal.is_integer())


def _method(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return function(self, *args, **kwargs)

    method.__name__ = name
    method.__doc__ = f"`np.{function.__name__}` of this value."
    return method


# Methods whose arguments are those of the NumPy function after its first.
for _name in (
    "all any argmax argmin argpartition argsort clip cumprod cumsum diagonal max mean min nonzero prod ravel repeat "
    "round searchsorted squeeze std sum swapaxes take trace var"
).split():
    setattr(Attributes, _name, _method(_name, getattr(np, _name)))
setattr(Attributes, "conj", Attributes.conjugate)
setattr(Attributes, "choose", _method("choose", np.choose))
setattr(Attributes, "copy", _method("copy", np.copy))
