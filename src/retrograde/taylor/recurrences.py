"""The series of the elementary functions: how each coefficient follows from those before it.

Each function here takes the series under construction, whose first coefficient is the primal, and the operands: a
Series where they are differentiated, otherwise the value, or None where no formula of the rule needs it. It returns the
step of the series, or None where the partial derivatives of the rule serve as well (see elementwise.py).

Source: Griewank & Walther (2008), "Evaluating Derivatives", 2nd edition, section 13.2 and table 13.2; the steps cost
O(k) each and a function therefore O(order²). With x′ₖ = (k + 1)·xₖ₊₁ most of them read y′ = p·x′, so that
yₖ = (1/k) Σ x′ⱼ pₖ₋₁₋ⱼ, where p is made of x and y itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from retrograde.originals import np
from retrograde.rules.numpy_transcendental import LN_2, LN_10, sech_square, softmax2_of_two, softmax_of_two
from retrograde.rules.products import somewhere
from retrograde.rules.table import Function
from retrograde.taylor.rules import is_natural, repeated_product
from retrograde.taylor.series import Series, Step, added, convolved, quotient, scaled
from retrograde.trace.handle import plain

# A recurrence may also know the whole series already.
Recurrence = Callable[..., Step | Series | None]


def is_series(x: Any) -> bool:
    return type(x) is Series


def along(k: int, x: Series, p: Series) -> Any:
    """Coefficient k of ∫ p·x′."""
    return over(convolved(x.slope, p, 0, k - 1, k - 1), k)


def over(x: Any, k: int) -> Any:
    return None if x is None else x / k


# --- Products and quotients ----------------------------------------------------------------------------


def multiply(y: Series, a: Any, b: Any) -> Step | None:
    if not (is_series(a) and is_series(b)):
        return None
    return lambda k: convolved(a, b, 0, k, k)


def square(y: Series, x: Series) -> Step:
    return lambda k: convolved(x, x, 0, k, k)


def divide(y: Series, a: Any, b: Any) -> Step | None:
    """y·b = a."""
    if not is_series(b):
        return None

    def step(k: int) -> Any:
        numerator = a.at(k) if is_series(a) else None
        return quotient(added(numerator, scaled(convolved(b, y, 1, k, k), -1.0)), b.first)

    return step


def reciprocal(y: Series, x: Series) -> Step:
    return divide(y, None, x)  # type: ignore[return-value]


# --- Powers and roots ----------------------------------------------------------------------------------


def sqrt(y: Series, x: Series) -> Step:
    """y² = x."""

    def step(k: int) -> Any:
        return quotient(added(x.at(k), scaled(convolved(y, y, 1, k - 1, k), -1.0)), 2 * y.first)

    return step


def cbrt(y: Series, x: Series) -> Step | None:
    return power_of_constant(y, x, 1 / 3)


def power(y: Series, a: Any, b: Any) -> Step | None:
    if not is_series(b):
        if is_natural(b):
            return power_of_integer(a, int(np.real(b)))
        return power_of_constant(y, a, b)
    base = plain(a.first if is_series(a) else a)
    if somewhere(base == 0):
        return None
    if is_series(a):
        logarithm = Series(np.log(a.first), a.order)
        logarithm.step = log(logarithm, a)
        exponent = Series(b.first * logarithm.first, b.order)
        exponent.step = multiply(exponent, b, logarithm)
    else:
        factor = np.log(a)
        exponent = Series(b.first * factor, b.order, lambda k: scaled(b.at(k), factor))
    return exp(y, exponent)


def power_of_integer(x: Series, n: int) -> Step:
    return repeated_product(x, n, _product).at if n else lambda k: None


def _product(a: Series, b: Series) -> Series:
    return Series(a.first * b.first, a.order, lambda k: convolved(a, b, 0, k, k))


def power_of_constant(y: Series, x: Series, exponent: Any) -> Step | None:
    """x·y′ = r·y·x′: k·x₀·yₖ = Σ (j·r - (k - j))·xⱼ·yₖ₋ⱼ. A zero base is left to the partial derivatives."""
    if somewhere(plain(x.first) == 0):
        return None

    def step(k: int) -> Any:
        # Σ j·xⱼ·yₖ₋ⱼ and Σ xⱼ·(k - j)·yₖ₋ⱼ
        rising = convolved(x.slope, y, 0, k - 1, k - 1)
        falling = convolved(y.slope, x, 0, k - 2, k - 1) if k > 1 else None
        return over(quotient(added(scaled(rising, exponent), scaled(falling, -1.0)), x.first), k)

    return step


# --- Exponentials and logarithms -----------------------------------------------------------------------


def exp(y: Series, x: Series) -> Step:
    return lambda k: along(k, x, y)


def exp2(y: Series, x: Series) -> Step:
    return lambda k: scaled(along(k, x, y), LN_2)


def expm1(y: Series, x: Series) -> Step:
    """All but the first coefficient are those of exp x."""
    shifted = Series(np.exp(x.first), x.order)
    shifted.step = exp(shifted, x)
    return shifted.at


def _logarithm(scale: float, shift: float) -> Callable[[Series, Series], Step]:
    """log(x + shift) · scale."""

    def logarithm(y: Series, x: Series) -> Step:
        # (x + shift)·y′ = x′
        base = x.first + shift if shift else x.first

        def step(k: int) -> Any:
            tail = convolved(y.slope, x, 0, k - 2, k - 1) if k > 1 else None
            if scale == 1:
                return quotient(added(x.at(k), scaled(over(tail, k), -1.0)), base)
            return quotient(added(scaled(x.at(k), scale), scaled(over(tail, k), -1.0)), base)

        return step

    return logarithm


log = _logarithm(1.0, 0.0)


def logaddexp_of(weight: Function, rate: float) -> Recurrence:
    """y′ = s·a′ + (1 - s)·b′ with s = eᵃ / (eᵃ + eᵇ), for which s′ = s·(1 - s)·(a - b)′."""

    def logaddexp(y: Series, a: Any, b: Any) -> Step:
        order = y.order
        one = weight(_first(a), _first(b))
        other = weight(_first(b), _first(a))
        share, rest, product = Series(one, order), Series(other, order), Series(one * other, order)

        def share_step(k: int) -> Any:
            rise = along(k, a, product) if is_series(a) else None
            fall = along(k, b, product) if is_series(b) else None
            return scaled(added(rise, scaled(fall, -1.0)), rate)

        share.step = share_step
        rest.step = lambda k: scaled(share.at(k), -1.0)
        product.step = lambda k: convolved(share, rest, 0, k, k)

        def step(k: int) -> Any:
            left = along(k, a, share) if is_series(a) else None
            right = along(k, b, rest) if is_series(b) else None
            return added(left, right)

        return step

    return logaddexp


def _first(x: Any) -> Any:
    return x.first if is_series(x) else x


# --- Circular and hyperbolic functions -----------------------------------------------------------------


def _pair(one: Function, other: Function, signs: tuple[float, float]) -> tuple[Recurrence, Recurrence]:
    """Two functions of which each is the derivative of the other, but for `signs`; one brings the other."""

    def both(x: Series) -> tuple[Series, Series]:
        first, second = Series(one(x.first), x.order), Series(other(x.first), x.order)
        first.step = lambda k: scaled(along(k, x, second), signs[0])
        second.step = lambda k: scaled(along(k, x, first), signs[1])
        if x.known == x.order:
            second.at(x.order)
            return first.complete(), second.complete()
        return first, second

    return lambda y, x: x.partner(one, both)[0], lambda y, x: x.partner(one, both)[1]


sin, cos = _pair(np.sin, np.cos, (1.0, -1.0))
sinh, cosh = _pair(np.sinh, np.cosh, (1.0, 1.0))


def tan(y: Series, x: Series) -> Step:
    """y′ = (1 + y²)·x′."""
    return _along_square(y, x, 1 + y.first * y.first, 1.0)


def tanh(y: Series, x: Series) -> Step:
    """y′ = (1 - y²)·x′, whose first coefficient keeps its digits where y nears ±1; the others have theirs by it."""
    return _along_square(y, x, sech_square(y.first, x.first), -1.0)


def _along_square(y: Series, x: Series, first: Any, sign: float) -> Step:
    p = Series(first, y.order, lambda k: scaled(convolved(y, y, 0, k, k), sign))
    return lambda k: along(k, x, p)


# --- Lengths -------------------------------------------------------------------------------------------


def hypot(y: Series, a: Any, b: Any) -> Step:
    """y² = a² + b², written so that no square of a primal overflows; 0 at the origin, where y has a kink."""
    legs = [x for x in (a, b) if is_series(x)]
    origin = np.equal(plain(y.first), 0)
    has_origin = somewhere(origin)
    length = np.where(origin, 1.0, y.first) if has_origin else y.first
    cosines = [x.first / length for x in legs]

    def step(k: int) -> Any:
        bend = scaled(convolved(y, y, 1, k - 1, k), -1.0)
        bend = added(bend, *(convolved(x, x, 1, k - 1, k) for x in legs))
        rise = added(quotient(bend, 2 * length), *(scaled(x.at(k), c) for x, c in zip(legs, cosines, strict=True)))
        return np.where(origin, 0.0, rise) if has_origin and rise is not None else rise

    return step


ELEMENTARY: dict[Function, Recurrence] = {
    np.multiply: multiply,
    np.divide: divide,
    np.reciprocal: reciprocal,
    np.square: square,
    np.sqrt: sqrt,
    np.cbrt: cbrt,
    np.power: power,
    np.float_power: power,
    np.exp: exp,
    np.exp2: exp2,
    np.expm1: expm1,
    np.log: log,
    np.log2: _logarithm(1 / LN_2, 0.0),
    np.log10: _logarithm(1 / LN_10, 0.0),
    np.log1p: _logarithm(1.0, 1.0),
    np.logaddexp: logaddexp_of(softmax_of_two, 1.0),
    np.logaddexp2: logaddexp_of(softmax2_of_two, math.log(2)),
    np.sin: sin,
    np.cos: cos,
    np.sinh: sinh,
    np.cosh: cosh,
    np.tan: tan,
    np.tanh: tanh,
    np.hypot: hypot,
}
"""What is not here (inverse functions, special functions, whatever has a partial derivative) goes by its rule."""
