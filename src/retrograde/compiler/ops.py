"""The table of scalar operations: how each is written, what type it gives, what it costs, and whose rule it has.

The derivative of an operation is that of a function in the table of rules; nothing is derived here.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from retrograde.compiler.special_functions import UFUNCS
from retrograde.compiler.types import BOOL, FLOAT, INT, Type
from retrograde.rules import load_scipy
from retrograde.rules.table import RULES

# Operators of Python, and the function whose rule each has.
ARITHMETIC: dict[str, Any] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "//": np.floor_divide,
    "%": np.remainder,
    "**": np.power,
}
COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")
LOGICAL = ("and", "or", "not")
BITS = ("&", "|", "^", "<<", ">>", "~")

# Elementwise functions that numba has and that have a rule, or no derivative at all.
_WITH_A_RULE = (
    "absolute add arccos arccosh arcsin arcsinh arctan arctan2 arctanh cbrt ceil copysign cos cosh deg2rad degrees "
    "divide exp exp2 expm1 fabs float_power floor floor_divide fmax fmin fmod hypot log log10 log1p log2 logaddexp "
    "logaddexp2 maximum minimum multiply negative positive power rad2deg radians reciprocal remainder rint sin sinh "
    "sinc sqrt square subtract tan tanh trunc"
).split()
_OF_TRUTH = (
    "isnan isinf isfinite signbit greater greater_equal less less_equal equal not_equal "
    "logical_and logical_or logical_not logical_xor"
).split()

FUNCTIONS: dict[str, Any] = {f"np.{name}": getattr(np, name) for name in (*_WITH_A_RULE, *_OF_TRUTH)}
FUNCTIONS |= {"np.sign": np.sign, "np.gcd": np.gcd, "np.lcm": np.lcm}
FUNCTIONS |= {f"math.{name}": getattr(math, name) for name in ("erf", "erfc", "gamma", "lgamma")}
NAMES: dict[Any, str] = {function: name for name, function in FUNCTIONS.items()}


def is_special(function: Any) -> bool:
    """Whether a function is one of scipy.special."""
    special = sys.modules.get("scipy.special")
    return special is not None and getattr(special, getattr(function, "__name__", ""), None) is function


def know(function: Any) -> None:
    """Take up the functions of scipy.special that have a native form, if a function may be one of them."""
    if "special.erf" not in FUNCTIONS and is_special(function):
        from retrograde.rules.scipy_special_dispatch import named
        from retrograde.rules.scipy_special_gamma import polygamma

        load_scipy()
        found = {f"special.{name}": named(name) for name in UFUNCS} | {"special.polygamma": polygamma}
        FUNCTIONS.update({name: f for name, f in found.items() if f in RULES})
        NAMES.update({f: name for name, f in FUNCTIONS.items() if f not in NAMES})


# Functions of `math` (and a few of Python) that are written as the NumPy function of the same value.
SAME_AS: dict[Any, Any] = {
    getattr(math, name): getattr(np, numpy_name)
    for name, numpy_name in (
        *(
            (n, n)
            for n in "cbrt cos cosh exp exp2 expm1 fabs fmod hypot log10 log1p log2 sin sinh sqrt tan tanh".split()
        ),
        *((n, f"arc{n[1:]}") for n in "acos acosh asin asinh atan atan2 atanh".split()),
        *((n, n) for n in "copysign degrees isfinite isinf isnan radians".split()),
        ("pow", "power"),
    )
    if hasattr(math, name)
} | {abs: np.absolute, pow: np.power, math.gcd: np.gcd, math.lcm: np.lcm}

# ufuncs that are written as an operator.
AS_OPERATOR: dict[Any, str] = {
    **{function: sign for sign, function in ARITHMETIC.items()},
    np.negative: "neg",
    np.greater: ">",
    np.greater_equal: ">=",
    np.less: "<",
    np.less_equal: "<=",
    np.equal: "==",
    np.not_equal: "!=",
    np.float_power: "**",
}

BITWISE: dict[Any, str] = {
    np.bitwise_and: "&",
    np.bitwise_or: "|",
    np.bitwise_xor: "^",
    np.left_shift: "<<",
    np.right_shift: ">>",
    np.invert: "~",
}

# The rest: pieces of the form itself.
#
# id          the same value                        where      cond, then, else
# neg         minus                                 shape      (array, axis)
# keep        (a, b): the value a, whose derivative is that of b
# times       (g, p): g * p, but zero where g is zero and p is infinite or NaN
# squared     x * x as a term of a square of a length, and
# root        √x as the length: at the origin its slope is zero, and the derivative of the slope is not
# per         (g, y): g / y for a length y
# over        the same, but zero where g is zero
# along       (x, r): x * r for such an r, but zero where one of them is zero, though the other be infinite or NaN
# value       the same value, without its derivative
# min, max    Python's own: the first of equals
# real, imag, conj
# complex     (re, im)
# cast:<dtype>
# size        (low, high): the length of range(low, high)
# threads     how many threads there are
CONSTANT_BETWEEN_JUMPS = frozenset(
    {"np.sign", "np.floor", "np.ceil", "np.trunc", "np.rint", "//", "np.floor_divide", "np.gcd", "np.lcm"}
    | {f"np.{name}" for name in _OF_TRUTH}
    | set(COMPARISONS)
    | set(LOGICAL)
    | set(BITS)
    | {"shape", "size", "value", "threads"}
)

CHEAP = frozenset(
    {
        "+",
        "-",
        "*",
        "neg",
        "id",
        "keep",
        "value",
        "times",
        "along",
        "squared",
        "where",
        "min",
        "max",
        "shape",
        "size",
        "np.absolute",
        "np.fabs",
        "real",
        "imag",
        "conj",
        "complex",
    }
) | {
    *COMPARISONS,
    *LOGICAL,
    *BITS,
}
# Division and roots take some cycles more: worth computing again rather than a place on the tape, not worth twice.
MODERATE = frozenset(
    {
        "/",
        "per",
        "over",
        "root",
        "np.sqrt",
        "//",
        "%",
        "np.floor",
        "np.maximum",
        "np.minimum",
        "np.square",
        "np.reciprocal",
    }
)


def is_cheap(fn: str) -> bool:
    return fn in CHEAP or fn.startswith("cast:")


def is_expensive(fn: str) -> bool:
    return not is_cheap(fn) and fn not in MODERATE


@functools.cache
def result_type(fn: str, types: tuple[Type, ...]) -> Type:
    """The type of an operation on scalars, as numba types it.

    Raises:
        TypeError: for types that the operation does not take.
    """
    if any(t.is_complex for t in types) and is_for_real(fn):
        raise TypeError
    if fn in COMPARISONS or fn in LOGICAL:
        return BOOL
    if fn in ("shape", "size", "threads"):
        return INT
    if fn.startswith("cast:"):
        return Type(fn[5:])
    if fn in ("id", "keep", "value", "neg", "squared", "root") and types[0].kind in "fc":
        return types[0]
    if fn in ("real", "imag"):
        return real_type(types[0])
    if fn == "complex":
        return Type("complex64" if {t.dtype for t in types} == {"float32"} else "complex128")
    if fn == "where":
        return common(types[1], types[2])
    if fn in BITS:
        return BOOL if all(t == BOOL for t in types) and fn != "~" else INT
    if fn == "root":
        return FLOAT
    if fn in ("/", "per", "over", "np.divide"):
        joined = common(*types)
        return joined if joined.kind in "fc" else FLOAT
    if fn in ("id", "keep", "value", "times", "along", "squared", "neg", "conj", "min", "max") or fn in ARITHMETIC:
        joined = common(*types)
        return INT if joined.kind in "bu" else joined
    dtypes = [np.dtype(t.dtype) for t in types]
    function = FUNCTIONS[fn]
    if not isinstance(function, np.ufunc):
        return FLOAT
    dtypes = [np.dtype("int64") if d.kind == "b" and function not in _TRUTH_UFUNCS else d for d in dtypes]
    found: Type = Type(function.resolve_dtypes((*dtypes, None))[-1].name)
    return FLOAT if found.dtype == "float16" else found


def real_type(type: Type) -> Type:
    """The type of the parts of a complex number; of other numbers their own."""
    return Type({"complex128": "float64", "complex64": "float32"}.get(type.dtype, type.dtype), type.ndim)


IN_ORDER = frozenset(
    {"<", "<=", ">", ">=", "min", "max"}
    | {f"np.{name}" for name in "greater greater_equal less less_equal maximum minimum fmax fmin".split()}
)
"""What asks which of two numbers comes first, as of complex ones neither does."""


def is_for_real(fn: str) -> bool:
    """Whether an operation does not take complex numbers, besides the functions of which NumPy itself says so."""
    into = fn[5:] if fn.startswith("cast:") else ""
    return (
        fn in IN_ORDER
        or fn in ("//", "%", "np.floor_divide", "np.remainder", "np.sign", "complex")
        or fn.startswith(("special.", "math."))
        or bool(into and into != "bool" and not Type(into).is_complex)
    )


_TRUTH_UFUNCS = frozenset(getattr(np, name) for name in _OF_TRUTH)


@functools.cache
def common(*types: Type) -> Type:
    """The scalar type that holds values of all the types."""
    dtype = np.dtype(types[0].dtype)
    for t in types[1:]:
        dtype = np.promote_types(dtype, np.dtype(t.dtype))
    if dtype.kind in "iu" and dtype.itemsize < 8:
        dtype = np.dtype("int64")
    return Type(dtype.name)


def has_derivative(fn: str) -> bool:
    """Whether a change of an argument can change the result by a proportional amount."""
    return fn not in CONSTANT_BETWEEN_JUMPS


FOLDABLE: dict[str, Callable[..., Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "neg": lambda a: -a,
    "id": lambda a: a,
    "min": min,
    "max": max,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "not": lambda a: not a,
    "and": lambda a, b: a and b,
    "or": lambda a, b: a or b,
    "real": lambda a: a.real,
    "imag": lambda a: a.imag,
    "conj": lambda a: a.conjugate(),
    "size": lambda low, high: max(high - low, 0),
}


def folded(fn: str, args: tuple[Any, ...]) -> Any:
    """The value of an operation on literals, or None where it is left to run."""
    for a in args:
        if type(a) is str:
            return None
    if fn in FOLDABLE:
        return FOLDABLE[fn](*args)
    if fn == "/" and args[1] != 0:
        return args[0] / args[1]
    if fn == "**" and args[0] != 0 and all(isinstance(a, int | float) for a in args) and not isinstance(args[1], bool):
        if isinstance(args[0], int) and isinstance(args[1], int) and args[1] < 0:
            return None
        try:
            value = args[0] ** args[1]
        except OverflowError:
            return None
        return None if isinstance(value, complex) else value
    return None
