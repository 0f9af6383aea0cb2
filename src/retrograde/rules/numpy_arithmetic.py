"""Arithmetic: sums, products, quotients, remainders, powers and roots."""

from __future__ import annotations

from typing import Any

from retrograde.originals import np
from retrograde.rules.contractions import constant
from retrograde.rules.lengths import over_length
from retrograde.rules.numpy_reductions import is_normal, is_nowhere_zero, is_plain
from retrograde.rules.points import call, real
from retrograde.rules.products import has_nan, is_finite, somewhere, times_own
from retrograde.rules.table import Elementwise, applied, chained, composed, elementwise, multiple, one_over, overwriting

elementwise(np.add, 1.0, 1.0, at=[real(-3, 3), real(-3, 3)], shows=True)
elementwise(np.subtract, 1.0, -1.0, at=[real(-3, 3), real(-3, 3)], shows=True)
elementwise(np.multiply, lambda b: b, lambda a: a, at=[real(-3, 3), real(-3, 3)], proven=True, shows=True)
_inverse = one_over(lambda b: b)
elementwise(
    np.divide,
    _inverse,
    chained(_inverse, multiple(-1.0, lambda y: y)),
    at=[real(-3, 3), real(0.5, 3)],
    proven=True,  # but not `shows`: x / ∞ is finite
)
elementwise(np.negative, -1.0, at=[real(-3, 3)], shows=True)
elementwise(np.positive, 1.0, at=[real(-3, 3)], shows=True)
elementwise(np.reciprocal, lambda y: -y * y, at=[real(0.5, 3)])
elementwise(np.square, multiple(2.0, lambda x: x), at=[real(-3, 3)], proven=True, shows=True)
elementwise(np.sqrt, multiple(0.5, one_over(lambda y: y)), at=[real(0.1, 9)])
elementwise(np.cbrt, one_over(lambda y: 3 * y * y), at=[real(0.1, 9)])


# --- Remainders: a = quotient · b + remainder, and the quotient is constant between its jumps ----------

# The points keep a / b between 2 and 3, away from the jumps.
elementwise(np.remainder, 1.0, lambda a, b: -np.floor_divide(a, b), at=[real(2.3, 2.8), real(1, 1.1)])
# The quotient that fmod itself used: a / b, when rounded first, can reach the next integer.
elementwise(np.fmod, 1.0, lambda y, a, b: np.rint(np.divide(y - a, b)), at=[real(-2.8, -2.3), real(1, 1.1)])
elementwise(np.floor_divide, 0.0, 0.0, at=[real(2.3, 2.8), real(1, 1.1)])


def divmod_body(x1: Any, x2: Any) -> Any:
    return np.floor_divide(x1, x2), np.remainder(x1, x2)


composed(np.divmod, divmod_body, at=[call(real(2.3, 2.8, 2, 3), real(1, 1.1, 3)), call(real(-2.8, -2.3, 2), 1.0)])


# --- Powers --------------------------------------------------------------------------------------------


def power_in_base(y: Any, a: Any, b: Any, may_write: bool = False) -> Any:
    """∂aᵇ/∂a = b·aᵇ⁻¹ = b·y/a, with 0·0⁻¹ = 0, so that a⁰ is a constant at zero too.

    The quotient needs no second power. It is used on plain arrays only, as in `numpy_reductions._products_of_others`.
    """
    if type(b) is int or type(b) is float:
        return power_of_number(a, b)
    if is_plain(a) and is_plain(b) and is_normal(y):
        if may_write:
            slope = np.multiply(b, y, out=y)
            slope /= a
        else:
            slope = b * y / a
        if not has_nan(slope):  # as at 0⁰
            return slope
    constant = (a == 0) & (b == 0)
    return b * np.power(np.where(constant, 1.0, a), np.where(constant, 1.0, b - 1.0))


def power_of_number(a: Any, b: Any) -> Any:
    """∂aᵇ/∂a for an exponent that is a Python number, a constant whatever is being differentiated, and the commonest.

    Low powers need no general one. `b - 1.0` keeps integers off NumPy's integer powers, which take no negative
    exponent.
    """
    if b == 0:
        return 0.0
    if b == 1:
        return 1.0
    if b == 2:
        return 2 * a
    if b == 3:
        return 3 * (a * a)
    return b * np.power(a, b - 1.0)


def power_in_exponent(y: Any, a: Any, b: Any) -> Any:
    """∂aᵇ/∂b = aᵇ·log a, where 0ᵇ stays 0 for b > 0; the same is said of the corner 0⁰."""
    if is_plain(a) and is_nowhere_zero(a):
        return y * np.log(a)
    return y * np.log(np.where((a == 0) & (np.real(b) >= 0), 1.0, a))


def power_at_once(bar: Any, y: Any, a: Any, b: Any, may_write: bool) -> Any:
    """Both cotangents of aᵇ from bar·aᵇ, where no power is near zero or negative, and all comes out finite."""
    if not np.min(y) >= np.finfo(y.dtype).tiny:
        return None
    a_bar = np.multiply(bar, y, out=y if may_write else None)
    b_bar = np.log(a)
    b_bar *= a_bar
    a_bar *= b
    a_bar /= a
    if is_finite(a_bar) and is_finite(b_bar):
        return a_bar, b_bar
    if may_write:
        np.power(a, b, out=y)
    return None


POWER_OF_NUMBER = Elementwise(np.power, (power_of_number, 0.0))
"""The rule of `a ** 3`, which does not keep the result as that of `np.power` does."""

elementwise(
    np.power,
    overwriting(power_in_base),
    power_in_exponent,
    at=[real(0.3, 2), real(-2, 3)],
    at_once=power_at_once,
)
elementwise(np.float_power, overwriting(power_in_base), power_in_exponent, at=[real(0.3, 2), real(-2, 3)])


# --- Lengths -------------------------------------------------------------------------------------------


def _cosine(y: Any, a: Any, may_write: bool = False) -> Any:
    """a / y, and 0 at the origin, where the length has a kink."""
    if is_plain(y) and is_nowhere_zero(y):
        return np.divide(a, y, out=y) if may_write else a / y
    origin = y == 0
    return np.where(origin, 0.0, a / np.where(origin, 1.0, y))


def _times_cosine(bar: Any, y: Any, a: Any, may_write: bool = False) -> Any:
    """`bar * a / y`, of which a derivative at the origin is not lost."""
    if is_plain(y) or not somewhere(constant(y) == 0):
        return times_own(bar, _cosine(y, a, may_write))
    return over_length(bar, a, y)


elementwise(
    np.hypot,
    applied(lambda y, a: _cosine(y, a), overwriting(_times_cosine)),
    applied(lambda y, b: _cosine(y, b), overwriting(_times_cosine)),
    at=[real(-3, 3), real(0.2, 3)],
)
