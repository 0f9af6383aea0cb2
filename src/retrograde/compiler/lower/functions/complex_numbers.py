"""Complex numbers: their parts, those made of real numbers, and the functions of the module cmath."""

from __future__ import annotations

import cmath
from typing import Any

import numpy as np

from retrograde.compiler.lower.functions.arguments import as_array, flag_of
from retrograde.compiler.lower.functions.registry import handles
from retrograde.compiler.lower.indexing import Indexing
from retrograde.compiler.lower.values import Object
from retrograde.compiler.types import Operand, Type


@handles(complex)
def to_complex(lower: Indexing, real: Any, imag: Any = None) -> Any:
    if imag is None:
        return lower.cast(_scalar(lower, real), COMPLEX)
    return lower.op("complex", _scalar(lower, real), _scalar(lower, imag))


@handles(np.complex128)
def to_complex128(lower: Indexing, x: Any) -> Any:
    return lower.cast(_scalar(lower, x), COMPLEX)


@handles(np.complex64)
def to_complex64(lower: Indexing, x: Any) -> Any:
    return lower.op("cast:complex64", _scalar(lower, x))


def _scalar(lower: Indexing, x: Any) -> Operand:
    if isinstance(x, tuple | Object) or lower.is_array(x):
        raise lower.refuse("a complex number made of something that is no number", "x.astype(np.complex128)")
    return x


COMPLEX = Type("complex128")


@handles(np.real)
def real(lower: Indexing, val: Any) -> Any:
    return part(lower, as_array(lower, val), "real")


@handles(np.imag)
def imag(lower: Indexing, val: Any) -> Any:
    return part(lower, as_array(lower, val), "imag")


def part(lower: Indexing, z: Any, name: str) -> Any:
    """The real or imaginary part: NumPy's view, until somebody could tell it from a copy."""
    if name == "real" and not lower.element_type(z).is_complex:
        return z
    return lower.field(z, name)


@handles(np.conj, methods="conj conjugate")
def conj(lower: Indexing, x: Any) -> Any:
    return lower.elementwise("conj", as_array(lower, x))


@handles(np.angle)
def angle(lower: Indexing, z: Any, deg: Any = False) -> Any:
    z = as_array(lower, z)
    found = lower.elementwise("np.arctan2", *(part(lower, z, name) for name in ("imag", "real")))
    return lower.elementwise("np.rad2deg", found) if flag_of(lower, deg, "deg") else found


@handles(np.sign)
def sign(lower: Indexing, x: Any) -> Any:
    """Of a complex number z / |z|, which changes with z."""
    x = as_array(lower, x)
    if not lower.element_type(x).is_complex:
        return lower.elementwise("np.sign", x)
    x = lower.force(x) if lower.is_array(x) else x
    length = lower.elementwise("np.absolute", x)
    return lower.elementwise("/", x, lower.elementwise("where", lower.elementwise("==", length, 0.0), 1.0, length))


@handles(np.iscomplexobj)
def iscomplexobj(lower: Indexing, x: Any) -> bool:
    return lower.element_type(x).kind == "c"


# --- cmath ---------------------------------------------------------------------------------------------------------

SAME = "acos acosh asin asinh atan atanh cos cosh exp log10 sin sinh sqrt tan tanh isfinite isinf isnan".split()


def _register(name: str) -> None:
    wanted = getattr(np, f"arc{name[1:]}" if name.startswith("a") else name)

    @handles(getattr(cmath, name))
    def function(lower: Indexing, z: Any) -> Any:
        return lower.op(f"np.{wanted.__name__}", to_complex(lower, z))


for _name in SAME:
    _register(_name)


@handles(cmath.log)
def logarithm(lower: Indexing, z: Any, base: Any = None) -> Any:
    found = lower.op("np.log", to_complex(lower, z))
    return found if base is None else lower.op("/", found, lower.op("np.log", to_complex(lower, base)))


@handles(cmath.phase)
def phase(lower: Indexing, z: Any) -> Any:
    return angle(lower, to_complex(lower, z))


@handles(cmath.polar)
def polar(lower: Indexing, z: Any) -> Any:
    z = to_complex(lower, z)
    return lower.op("np.absolute", z), angle(lower, z)


@handles(cmath.rect)
def rect(lower: Indexing, r: Any, phi: Any) -> Any:
    parts = [lower.op("*", r, lower.op(fn, phi)) for fn in ("np.cos", "np.sin")]
    return lower.op("complex", *parts)
