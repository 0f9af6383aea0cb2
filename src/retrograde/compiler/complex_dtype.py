"""`dtype=complex` for numba, which knows `np.complex128` only, where it takes `float` for `np.float64`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

# Functions that make arrays, and their parameters as numba knows them.
MAKERS: dict[Any, str] = {
    np.zeros: "shape, dtype=float",
    np.empty: "shape, dtype=float",
    np.ones: "shape, dtype=None",
    np.full: "shape, fill_value, dtype=None",
    np.zeros_like: "arr, dtype=None",
    np.empty_like: "arr, dtype=None",
    np.ones_like: "arr, dtype=None",
    np.full_like: "arr, fill_value, dtype=None",
    np.array: "object, dtype=None",
}


@functools.cache
def teach_complex_dtype(numba: Any) -> None:
    """Let numba compile calls of these functions with Python's own `complex` as the dtype."""
    for maker, parameters in MAKERS.items():
        numba.extending.overload(maker)(_overload(numba, maker, parameters))


def _overload(numba: Any, maker: Any, parameters: str) -> Callable[..., Any]:
    """What numba asks for the code of a call; None where the dtype is another one, which it knows itself."""
    names = [p.split("=")[0] for p in parameters.split(", ")]
    given = ", ".join("dtype=np.complex128" if name == "dtype" else f"{name}={name}" for name in names)
    if maker is np.array:
        given = "object, np.complex128"
    text = (
        f"def overload({parameters}):\n"
        f"    if is_complex(dtype):\n"
        f"        return lambda {parameters}: np.{maker.__name__}({given})\n"
    )
    namespace: dict[str, Any] = {"np": np, "is_complex": lambda dtype: _is_complex(numba, dtype)}
    exec(text, namespace)
    found: Callable[..., Any] = namespace["overload"]
    return found


def _is_complex(numba: Any, dtype: Any) -> bool:
    return isinstance(dtype, numba.types.Function) and dtype.typing_key is complex
