"""`np.emath`: elementary functions that become complex where a real result does not exist."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from retrograde.originals import np
from retrograde.rules.contractions import as_array
from retrograde.rules.points import call, complex_, real
from retrograde.rules.products import somewhere
from retrograde.rules.table import composed


def _negative(x: Any) -> Any:
    return np.isreal(x) & (np.real(x) < 0)


def _beyond_one(x: Any) -> Any:
    return np.isreal(x) & (np.abs(x) > 1)


def widened(x: Any, outside: Callable[[Any], Any]) -> Any:
    """`x`, as complex numbers if any element lies `outside` of where the function is real: of NumPy's choice, single
    or double."""
    if np.iscomplexobj(x) or not somewhere(outside(x)):
        return x if hasattr(x, "shape") else np.asarray(x)[()]
    return x.astype(np.complex64 if x.dtype == np.float32 else np.complex128) if hasattr(x, "dtype") else x + 0j


def emath(name: str, outside: Callable[[Any], Any]) -> Callable[[Any], Any]:
    function = getattr(np, name)

    def body(x: Any) -> Any:
        return function(widened(x, outside))

    return body


def logn(n: Any, x: Any) -> Any:
    return np.log(widened(x, _negative)) / np.log(widened(n, _negative))


def power(x: Any, p: Any) -> Any:
    x = widened(x, _negative)
    p = as_array(p)
    return np.power(x, p * 1.0 if somewhere(np.real(p) < 0) else p)


_REAL = [call(real(0.2, 0.8, 2, 3)), call(complex_(0.2, 0.8, 3))]

for _name in ("sqrt", "log", "log2", "log10"):
    composed(getattr(np.emath, _name), emath(_name, _negative), at=[*_REAL, call(real(-2, -1, 3)), call(real(-2, -1))])
for _name in ("arcsin", "arccos", "arctanh"):
    composed(
        getattr(np.emath, _name), emath(_name, _beyond_one), at=[*_REAL, call(real(1.5, 2, 3)), call(real(1.5, 2))]
    )
composed(np.emath.logn, logn, at=[call(real(2, 3), real(0.2, 0.8, 3)), call(2.0, real(-2, -1, 3))])
composed(
    np.emath.power,
    power,
    at=[call(real(0.2, 0.8, 3), real(-1, 1)), call(real(-2, -1, 3), 0.5), call(real(-2, -1, 2), np.array([2, -1]))],
)
