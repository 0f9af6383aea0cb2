"""Elementary functions that a loop can vectorise: branch-free, so that LLVM computes several elements at once.

numba's wheels call the scalar libm for `exp` and its like, which stops the vectorisation of every loop that holds one.
The functions here are straight-line arithmetic with selections at the end. Each takes and gives one float64 and is
meant to be inlined into the loop of a derivative program. Where that is written as LLVM's text, machine/functions.py
reads the source of these functions; it knows assignments, choices by `a if c else b`, and float64, int64 and truth.

Accuracy is stated per function in units in the last place (ulp) of the result, and tested against mpmath over the whole
range; infinities, NaN, signed zeros and denormal numbers give what C99 (Annex F) says.

Sources:
    Cody, Waite (1980), "Software Manual for the Elementary Functions": reduction of arguments by constants in parts.
    Payne, Hanek (1983), "Radian reduction for trigonometric functions": only those digits of 2/π matter that reach the
        fraction of x·2/π.
    Dekker (1971), "A floating-point technique for extending the available precision": sums and products with their
        rounding errors.
    Shepherd, Laframboise (1981), "Chebyshev approximation of (1 + 2x) exp(x²) erfc x in 0 ≤ x < ∞".
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit
from numba.core import types
from numba.extending import intrinsic


def _inlined(f: Any) -> Any:
    """A function that LLVM inlines where it is called."""
    return njit(error_model="numpy", forceinline=True)(f)


# --- bits and single instructions --------------------------------------------------------------------------------


def _bitcast(given: Any, wanted: Any, as_llvm: Any) -> Any:
    """The function that takes the bits of one type for the other."""

    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], as_llvm)

    return intrinsic(lambda _context, x: (wanted(given), generate))


_bits = _bitcast(types.float64, types.int64, ir.IntType(64))
_float_of_bits = _bitcast(types.int64, types.float64, ir.DoubleType())


def _instruction(name: str, arity: int) -> Any:
    """A function of float64s that LLVM knows by name."""

    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        double = ir.DoubleType()
        declared = builder.module.declare_intrinsic(name, [double], ir.FunctionType(double, [double] * arity))
        return builder.call(declared, args)

    if arity == 1:
        return intrinsic(lambda _context, a: (types.float64(types.float64), generate))
    if arity == 2:
        return intrinsic(lambda _context, a, b: (types.float64(types.float64, types.float64), generate))
    return intrinsic(lambda _context, a, b, c: (types.float64(types.float64, types.float64, types.float64), generate))


_floor = _instruction("llvm.floor", 1)
_rint = _instruction("llvm.rint", 1)
_fma = _instruction("llvm.fma", 3)  # a·b + c, rounded once
_muladd = _instruction("llvm.fmuladd", 3)  # a·b + c, rounded once where that is faster than twice


def _plus() -> Any:
    """a + b as a part of a sum whose order does not matter, which LLVM therefore may compute in several parts."""

    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.fadd(*args, flags=("reassoc",))

    return intrinsic(lambda _context, a, b: (types.float64(types.float64, types.float64), generate))


_reordered_sum = _plus()
_maximum = _instruction("llvm.maximum", 2)
_minimum = _instruction("llvm.minimum", 2)

# Adding 1.5·2⁵² leaves an integer in the low bits: the conversion between float64 and int64 that every vector unit has.
_SHIFT = 6755399441055744.0
_SHIFT_BITS = int(np.float64(_SHIFT).view(np.int64))


@_inlined
def plus(a, b):  # type: ignore[no-untyped-def]
    """a + b, in whatever order a loop adds up."""
    return _reordered_sum(a, b)


@_inlined
def maximum(a, b):  # type: ignore[no-untyped-def]
    """The larger number; NaN where one of them is."""
    return _maximum(a, b)


@_inlined
def minimum(a, b):  # type: ignore[no-untyped-def]
    """The smaller number; NaN where one of them is."""
    return _minimum(a, b)


@_inlined
def _int(x):  # type: ignore[no-untyped-def]
    """An integral float64 (|x| < 2⁵¹) as an int64."""
    return _bits(x + _SHIFT) - _SHIFT_BITS


@_inlined
def _float(n):  # type: ignore[no-untyped-def]
    """A small int64 as a float64."""
    return _float_of_bits(n + _SHIFT_BITS) - _SHIFT


@_inlined
def _power_of_two(n):  # type: ignore[no-untyped-def]
    """2ⁿ for −1022 ≤ n ≤ 1023."""
    return _float_of_bits((n + 1023) << 52)


@_inlined
def _times_power_of_two(x, n):  # type: ignore[no-untyped-def]
    """x·2ⁿ for |n| ≤ 2044, rounded once: the first factor is exact for an x near 1."""
    half = n >> 1
    return x * _power_of_two(half) * _power_of_two(n - half)


@_inlined
def _with_sign(x, sign):  # type: ignore[no-untyped-def]
    """|x| with the sign of `sign`."""
    return _float_of_bits((_bits(x) & 0x7FFFFFFFFFFFFFFF) | (_bits(sign) & -0x8000000000000000))


# --- exp, expm1, tanh --------------------------------------------------------------------------------------------

_LOG2_E = 1.4426950408889634
_LN2_HIGH = 0.6931471803691238  # 33 bits, so that n·_LN2_HIGH is exact
_LN2_LOW = 1.9082149292705877e-10


@_inlined
def _expm1_polynomial(r):  # type: ignore[no-untyped-def]
    """exp(r) − 1 for |r| ≤ ln 2 / 2, by its series: r¹⁴/14! is below 2⁻⁵⁷."""
    p = 1 / 6227020800.0
    p = _muladd(p, r, 1 / 479001600.0)
    p = _muladd(p, r, 1 / 39916800.0)
    p = _muladd(p, r, 1 / 3628800.0)
    p = _muladd(p, r, 1 / 362880.0)
    p = _muladd(p, r, 1 / 40320.0)
    p = _muladd(p, r, 1 / 5040.0)
    p = _muladd(p, r, 1 / 720.0)
    p = _muladd(p, r, 1 / 120.0)
    p = _muladd(p, r, 1 / 24.0)
    p = _muladd(p, r, 1 / 6.0)
    p = _muladd(p, r, 0.5)
    return _muladd(r * r, p, r)


@_inlined
def _exp_of_sum(x, tail):  # type: ignore[no-untyped-def]
    """exp(x + tail) for a small tail; x may be anything."""
    x = 710.0 if x > 710.0 else x  # both bounds are beyond overflow and underflow, and NaN passes
    x = -746.0 if x < -746.0 else x
    n = _rint(x * _LOG2_E)
    r = _muladd(-n, _LN2_LOW, x - n * _LN2_HIGH)
    return _times_power_of_two(1.0 + (_expm1_polynomial(r + tail)), _int(n))


@_inlined
def exp(x):  # type: ignore[no-untyped-def]
    """eˣ, to 1 ulp."""
    return _exp_of_sum(x, 0.0)


@_inlined
def expm1(x):  # type: ignore[no-untyped-def]
    """eˣ − 1, to 2 ulp."""
    bounded = 710.0 if x > 710.0 else x
    bounded = -50.0 if bounded < -50.0 else bounded
    n = _rint(bounded * _LOG2_E)
    p = _expm1_polynomial((bounded - n * _LN2_HIGH) - n * _LN2_LOW)
    # eˣ − 1 = 2ⁿ·p + (2ⁿ − 1); above 2⁶⁰ the 1 is not seen, and 2ⁿ may overflow before the product does.
    large = n > 60.0
    scale = _power_of_two(_int(60.0 if large else n))
    y = _times_power_of_two(1.0 + p, _int(n)) if large else scale * p + (scale - 1.0)
    return x if x == 0.0 else y


@_inlined
def tanh(x):  # type: ignore[no-untyped-def]
    """The hyperbolic tangent, to 3 ulp: −t / (t + 2) of t = exp(−2|x|) − 1, which does not cancel anywhere."""
    t = expm1(-2.0 * abs(x))
    return _with_sign(t / (t + 2.0), x)


# --- log, log1p --------------------------------------------------------------------------------------------------

_SQRT_HALF_BITS = int(np.float64(math.sqrt(0.5)).view(np.int64))
_SMALLEST_NORMAL = 2.2250738585072014e-308
_TWO_54 = 18014398509481984.0


@_inlined
def _split(x):  # type: ignore[no-untyped-def]
    """(m, k) with x = m·2ᵏ and √½ ≤ m < √2, for a positive finite x."""
    denormal = x < _SMALLEST_NORMAL
    bits = _bits(x * _TWO_54 if denormal else x)
    k = (bits - _SQRT_HALF_BITS) >> 52
    return _float_of_bits(bits - (k << 52)), _float(k) - (54.0 if denormal else 0.0)


@_inlined
def _atanh_rest(z):  # type: ignore[no-untyped-def]
    """2 (artanh(s) − s) / s for z = s² ≤ (√2 − 1)⁴ < 0.0295: z²³/23 is below 2⁻⁶⁰ of it."""
    p = 2 / 23.0
    p = _muladd(p, z, 2 / 21.0)
    p = _muladd(p, z, 2 / 19.0)
    p = _muladd(p, z, 2 / 17.0)
    p = _muladd(p, z, 2 / 15.0)
    p = _muladd(p, z, 2 / 13.0)
    p = _muladd(p, z, 2 / 11.0)
    p = _muladd(p, z, 2 / 9.0)
    p = _muladd(p, z, 2 / 7.0)
    p = _muladd(p, z, 2 / 5.0)
    p = _muladd(p, z, 2 / 3.0)
    return z * p


@_inlined
def _log_of_sum(x, tail):  # type: ignore[no-untyped-def]
    """log(x) + tail for a positive finite x: log(1 + f) = 2 artanh(s) of s = f / (2 + f), and 2s = f − s·f."""
    m, k = _split(x)
    f = m - 1.0
    s = f / (2.0 + f)
    half = 0.5 * f * f
    return k * _LN2_HIGH - ((half - (s * (half + _atanh_rest(s * s)) + (k * _LN2_LOW + tail))) - f)


@_inlined
def log(x):  # type: ignore[no-untyped-def]
    """The natural logarithm, to 1 ulp."""
    y = _log_of_sum(x, 0.0)
    y = -np.inf if x == 0.0 else y
    y = np.nan if x < 0.0 else y
    return y if x < np.inf else x + x


@_inlined
def log1p(x):  # type: ignore[no-untyped-def]
    """log(1 + x), to 2 ulp: the rounding of 1 + x comes back as a correction."""
    u = 1.0 + x
    lost = (1.0 - (u - x)) if x > 1.0 else (x - (u - 1.0))
    y = _log_of_sum(u, lost / u)
    y = x if x == 0.0 else y
    y = -np.inf if x == -1.0 else y
    y = np.nan if x < -1.0 else y
    return y if x < np.inf else x + x


# --- sin, cos ----------------------------------------------------------------------------------------------------

# 2/π·2ˢ modulo 4 in four parts, for the exponents s that the last bit of an argument may have. An argument is an
# integer times 2ˢ, so that multiples of 4 in the table change nothing: they turn by whole circles.
_LOWEST = -80


def _turns() -> np.ndarray[Any, np.dtype[np.float64]]:
    digits = 1400
    two_over_pi = (2 << (2 * digits)) // _pi_times_power_of_two(digits)
    table = np.empty((972 - _LOWEST, 4))
    for s in range(_LOWEST, 972):
        rest = (two_over_pi << (s - _LOWEST)) % (4 << (digits - _LOWEST))  # of 2/π·2ˢ, in units of 2^(_LOWEST − digits)
        for part in range(4):
            table[s - _LOWEST, part] = nearest = rest / (1 << (digits - _LOWEST))
            numerator, denominator = nearest.as_integer_ratio()
            rest -= (numerator << (digits - _LOWEST)) // denominator
    return np.ascontiguousarray(table.T)


def _pi_times_power_of_two(digits: int) -> int:
    """π·2^digits by Machin's formula, π/4 = 4 arctan(1/5) − arctan(1/239)."""
    one = 1 << (digits + 32)

    def arctan_of_inverse(n: int) -> int:
        power, total, k = one // n, 0, 0
        while power:
            total += (power if k % 2 == 0 else -power) // (2 * k + 1)
            power //= n * n
            k += 1
        return total

    return 4 * (4 * arctan_of_inverse(5) - arctan_of_inverse(239)) >> 32


_TURNS_1, _TURNS_2, _TURNS_3, _TURNS_4 = _turns()
_HALF_PI = 1.5707963267948966
_HALF_PI_LOW = 6.123233995736766e-17


@_inlined
def _two_sum(a, b):  # type: ignore[no-untyped-def]
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


@_inlined
def _reduced(x):  # type: ignore[no-untyped-def]
    """(r, tail, n) with x = n·π/2 + r + tail modulo 2π and |r| ≤ π/4, for a finite |x| ≥ 2⁻²⁷."""
    exponent = (_bits(x) >> 52) & 0x7FF
    s = exponent - 1075  # x = integer · 2ˢ
    s = _LOWEST if s < _LOWEST else s
    s = 971 if s > 971 else s
    place = np.uint64(s - _LOWEST)
    # The integer, exactly: two factors, since 2⁻ˢ alone may overflow or be denormal.
    half = s >> 1
    integer = x * _power_of_two(-half) * _power_of_two(half - s)
    c1, c2, c3, c4 = _TURNS_1[place], _TURNS_2[place], _TURNS_3[place], _TURNS_4[place]
    h1 = integer * c1
    l1 = _fma(integer, c1, -h1)
    h2 = integer * c2
    l2 = _fma(integer, c2, -h2)
    h3 = integer * c3
    l3 = _fma(integer, c3, -h3) + integer * c4
    h1 = h1 - 4.0 * _rint(0.25 * h1)
    # What is left is h1 + l1 + h2 + l2 + h3 + l3 turns by a right angle; the whole ones are n.
    a, e = _two_sum(h1, l1)
    n = _rint(a)
    a, e1 = _two_sum(a - n, h2)
    more = _rint(a)
    n = n + more
    a, e2 = _two_sum(a - more, e)
    a, e3 = _two_sum(a, h3)
    a, e = _two_sum(a, e1 + (e2 + (e3 + (l2 + l3))))
    r = a * _HALF_PI
    tail = _fma(a, _HALF_PI, -r) + (a * _HALF_PI_LOW + e * _HALF_PI)
    return r, tail, n


@_inlined
def _sin_polynomial(r, tail):  # type: ignore[no-untyped-def]
    """sin(r + tail) for |r| ≤ π/4, by its series."""
    z = r * r
    p = -1 / 121645100408832000.0
    p = _muladd(p, z, 1 / 355687428096000.0)
    p = _muladd(p, z, -1 / 1307674368000.0)
    p = _muladd(p, z, 1 / 6227020800.0)
    p = _muladd(p, z, -1 / 39916800.0)
    p = _muladd(p, z, 1 / 362880.0)
    p = _muladd(p, z, -1 / 5040.0)
    p = _muladd(p, z, 1 / 120.0)
    p = _muladd(p, z, -1 / 6.0)
    return r + (tail * (1.0 - 0.5 * z) + r * z * p)


@_inlined
def _cos_polynomial(r, tail):  # type: ignore[no-untyped-def]
    """cos(r + tail) for |r| ≤ π/4, by its series; 1 − z/2 with what its rounding lost."""
    z = r * r
    p = 1 / 6402373705728000.0 * -1
    p = _muladd(p, z, 1 / 20922789888000.0)
    p = _muladd(p, z, -1 / 87178291200.0)
    p = _muladd(p, z, 1 / 479001600.0)
    p = _muladd(p, z, -1 / 3628800.0)
    p = _muladd(p, z, 1 / 40320.0)
    p = _muladd(p, z, -1 / 720.0)
    p = _muladd(p, z, 1 / 24.0)
    half = 0.5 * z
    head = 1.0 - half
    return head + (((1.0 - head) - half) + (z * z * p - r * tail))


@_inlined
def _turned(x, quarter):  # type: ignore[no-untyped-def]
    """sin(x + quarter·π/2)."""
    r, tail, n = _reduced(x)
    k = _int(n) + quarter
    y = _cos_polynomial(r, tail) if k & 1 else _sin_polynomial(r, tail)
    return -y if k & 2 else y


@_inlined
def sin(x):  # type: ignore[no-untyped-def]
    """The sine, to 1 ulp for every finite argument."""
    y = x if abs(x) < 7.450580596923828e-09 else _turned(x, 0)
    return y if abs(x) < np.inf else np.nan


@_inlined
def cos(x):  # type: ignore[no-untyped-def]
    """The cosine, to 1 ulp for every finite argument."""
    y = 1.0 if abs(x) < 7.450580596923828e-09 else _turned(x, 1)
    return y if abs(x) < np.inf else np.nan


# --- pow ---------------------------------------------------------------------------------------------------------


@_inlined
def _long_log(x):  # type: ignore[no-untyped-def]
    """log(x) as high + low, to about 2⁻⁶⁵ of it, for a positive finite x."""
    m, k = _split(x)
    f = m - 1.0
    d = 2.0 + f
    d_low = f - (d - 2.0)
    s = f / d
    s_low = (_fma(-s, d, f) - s * d_low) / d
    z = s * s
    z_low = _fma(s, s, -z) + 2.0 * s * s_low
    # 2 artanh(s) = 2s + 2s·(z/3 + z²/5 + …); z/3 needs its low part, the rest does not.
    third = z * (1 / 3.0)
    third_low = _fma(z, 1 / 3.0, -third) + (z_low * (1 / 3.0) + z * 1.850371707708594e-17)
    p = 1 / 23.0
    p = _muladd(p, z, 1 / 21.0)
    p = _muladd(p, z, 1 / 19.0)
    p = _muladd(p, z, 1 / 17.0)
    p = _muladd(p, z, 1 / 15.0)
    p = _muladd(p, z, 1 / 13.0)
    p = _muladd(p, z, 1 / 11.0)
    p = _muladd(p, z, 1 / 9.0)
    p = _muladd(p, z, 1 / 7.0)
    p = _muladd(p, z, 1 / 5.0)
    third, e = _two_sum(third, z * z * p)
    third_low = third_low + e
    rest = 2.0 * s * third
    rest_low = _fma(2.0 * s, third, -rest) + 2.0 * (s * third_low + s_low * third)
    high, low = _two_sum(k * _LN2_HIGH, 2.0 * s)
    high, e = _two_sum(high, rest)
    return _two_sum(high, low + (e + (rest_low + (2.0 * s_low + k * _LN2_LOW))))


@_inlined
def pow(x, y):  # type: ignore[no-untyped-def]
    """xʸ, to 2 ulp, with the special values of C99."""
    magnitude = abs(x)
    high, low = _long_log(magnitude)
    ordinary = (magnitude > 0.0) & (magnitude < np.inf)
    high = high if ordinary else (-np.inf if magnitude == 0.0 else magnitude)  # log of 0, of ∞ and of NaN
    low = low if ordinary else 0.0
    exponent = y * high
    tail = _fma(y, high, -exponent) + y * low
    tail = tail if abs(exponent) < 800.0 else 0.0
    result = _exp_of_sum(exponent, tail)
    whole = _floor(y) == y
    half = 0.5 * y
    odd = whole & (_floor(half) != half)
    negative = _bits(x) < 0
    result = -result if negative & odd else result
    result = np.nan if (x < 0.0) & (magnitude < np.inf) & (not whole) else result
    result = 1.0 if (magnitude == 1.0) & (abs(y) == np.inf) else result
    return 1.0 if (y == 0.0) | (x == 1.0) else result


# --- erf, erfc ---------------------------------------------------------------------------------------------------


@_inlined
def _erf_series(x):  # type: ignore[no-untyped-def]
    """erf(x) for |x| ≤ 1, by its series."""
    z = x * x
    p = -1 / (121645100408832000.0 * 39)
    p = _muladd(p, z, 1 / (6402373705728000.0 * 37))
    p = _muladd(p, z, -1 / (355687428096000.0 * 35))
    p = _muladd(p, z, 1 / (20922789888000.0 * 33))
    p = _muladd(p, z, -1 / (1307674368000.0 * 31))
    p = _muladd(p, z, 1 / (87178291200.0 * 29))
    p = _muladd(p, z, -1 / (6227020800.0 * 27))
    p = _muladd(p, z, 1 / (479001600.0 * 25))
    p = _muladd(p, z, -1 / (39916800.0 * 23))
    p = _muladd(p, z, 1 / (3628800.0 * 21))
    p = _muladd(p, z, -1 / (362880.0 * 19))
    p = _muladd(p, z, 1 / (40320.0 * 17))
    p = _muladd(p, z, -1 / (5040.0 * 15))
    p = _muladd(p, z, 1 / (720.0 * 13))
    p = _muladd(p, z, -1 / (120.0 * 11))
    p = _muladd(p, z, 1 / (24.0 * 9))
    p = _muladd(p, z, -1 / (6.0 * 7))
    p = _muladd(p, z, 1 / (2.0 * 5))
    p = _muladd(p, z, -1 / 3.0)
    # 2/√π = 1.1283791670955126 = 1 + 0.1283791670955126, so that the leading term is exact.
    return x + (0.1283791670955126 * x + 1.1283791670955126 * (x * z * p))


@_inlined
def _erfc_positive(x):  # type: ignore[no-untyped-def]
    """erfc(x) for x ≥ ½: exp(−x²)·P(t) / (1 + 2x) of t = (x − 3.75) / (x + 3.75), the polynomial good to 5·10⁻¹⁷."""
    x = 30.0 if x > 30.0 else x
    t = (x - 3.75) / (x + 3.75)
    p = 3.2052623379289157e-10
    p = _muladd(p, t, -2.618520156503145e-09)
    p = _muladd(p, t, -3.798189797736207e-09)
    p = _muladd(p, t, 3.195398612057818e-08)
    p = _muladd(p, t, 2.3398534313040898e-08)
    p = _muladd(p, t, -2.4851108650210706e-07)
    p = _muladd(p, t, -5.741076073013916e-08)
    p = _muladd(p, t, 1.7419011945194367e-06)
    p = _muladd(p, t, -9.733875167494142e-07)
    p = _muladd(p, t, -1.1437980374495534e-05)
    p = _muladd(p, t, 2.2384138525656757e-05)
    p = _muladd(p, t, 5.164649341002877e-05)
    p = _muladd(p, t, -0.00029015404203352704)
    p = _muladd(p, t, 0.000293714390578856)
    p = _muladd(p, t, 0.001755625843431864)
    p = _muladd(p, t, -0.00974657968596217)
    p = _muladd(p, t, 0.028362277420377335)
    p = _muladd(p, t, -0.05869339857631061)
    p = _muladd(p, t, 0.09230432116025894)
    p = _muladd(p, t, -0.10880393014246645)
    p = _muladd(p, t, 0.08227673849014977)
    p = _muladd(p, t, 0.003585415485479575)
    p = _muladd(p, t, -0.14024059858554702)
    p = _muladd(p, t, 1.2375126308378275)
    square = x * x
    return _exp_of_sum(-square, _fma(-x, x, square)) * (p / (1.0 + 2.0 * x))


@_inlined
def erf(x):  # type: ignore[no-untyped-def]
    """The error function, to 2 ulp."""
    magnitude = abs(x)
    far = _with_sign(1.0 - _erfc_positive(magnitude), x)
    y = far if magnitude > 1.0 else _erf_series(x)
    return x if x == 0.0 else y


@_inlined
def erfc(x):  # type: ignore[no-untyped-def]
    """1 − erf(x), to 5 ulp, in its far tail as well; denormal results lose the digits that they do not have."""
    magnitude = abs(x)
    far = _erfc_positive(magnitude)
    far = 2.0 - far if x < 0.0 else far
    return far if magnitude > 0.5 else 1.0 - _erf_series(x)
