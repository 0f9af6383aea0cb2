"""Mathieu functions and spheroidal wave functions.

Each comes with its derivative in the argument, of which the differential equation gives the next. The parameter (q or
c) is differentiated by `slope`.
"""

from __future__ import annotations

import math
from typing import Any

from scipy import special

from retrograde.errors import MissingRuleError
from retrograde.originals import np
from retrograde.rules.points import call, real
from retrograde.rules.scipy_special_dispatch import each, integer, several
from retrograde.rules.scipy_special_slopes import slope

Array = Any

DEGREE = math.pi / 180


def _in_parameter(name: str, place: int, count: int, low: float = -np.inf) -> Any:
    """The derivatives of both outputs in argument `place`, which SciPy takes down to `low`."""
    function = getattr(special, name)
    orders = tuple(int(i == place) for i in range(count))

    def value(*args: Any) -> Any:
        return np.where(args[place] < low, np.nan, function(*args)[0])

    def derivative(*args: Any) -> Any:
        return np.where(args[place] < low, np.nan, function(*args)[1])

    return lambda y, *args: (slope(value, orders, *args), slope(derivative, orders, *args))


# --- Mathieu (DLMF 28.2.1 and 28.20.1) ---------------------------------------------------------------------------

ORDER = np.array([[1], [2]])

each("mathieu_a", integer("mathieu_a", "m"), lambda a, b: slope(special.mathieu_a, (0, 1), a, b), at=[2, real(0.5, 3)])
each("mathieu_b", integer("mathieu_b", "m"), lambda a, b: slope(special.mathieu_b, (0, 1), a, b), at=[2, real(0.5, 3)])


def _mathieu_in_x(characteristic: Any) -> Any:
    """The derivatives of w and w′ for x in degrees: w″ = −(a − 2q cos 2x) w."""

    def in_x(y: Any, m: Any, q: Any, x: Any) -> tuple[Any, Any]:
        w, w_slope = y
        return DEGREE * w_slope, -DEGREE * (characteristic(m, q) - 2 * q * np.cos(2 * DEGREE * x)) * w

    return in_x


def _modified_in_x(characteristic: Any) -> Any:
    """w″ = (a − 2q cosh 2x) w."""

    def in_x(y: Any, m: Any, q: Any, x: Any) -> tuple[Any, Any]:
        w, w_slope = y
        return w_slope, (characteristic(m, q) - 2 * q * np.cosh(2 * x)) * w

    return in_x


for _name, _in_x, _angles in (
    ("mathieu_cem", _mathieu_in_x(special.mathieu_a), real(5, 85, 3)),
    ("mathieu_sem", _mathieu_in_x(special.mathieu_b), real(5, 85, 3)),
    ("mathieu_modcem1", _modified_in_x(special.mathieu_a), real(0.2, 1, 3)),
    ("mathieu_modcem2", _modified_in_x(special.mathieu_a), real(0.2, 1, 3)),
    ("mathieu_modsem1", _modified_in_x(special.mathieu_b), real(0.2, 1, 3)),
    ("mathieu_modsem2", _modified_in_x(special.mathieu_b), real(0.2, 1, 3)),
):
    several(
        _name,
        integer(_name, "m"),
        _in_parameter(_name, 1, 3),
        _in_x,
        at=[call(ORDER, real(0.5, 3, 2, 1), _angles)],
    )

# --- Spheroidal functions (DLMF 30.2.1) -----------------------------------------------------------------------------

# Of the tested order and degree; as doubles, since SciPy does not return from a call that is all in single precision.
ONE, TWO = np.float64(1), np.float64(2)


def prolate_in_x(y: Any, m: Any, c: Any, characteristic: Any, x: Any) -> tuple[Any, Any]:
    """(1 − x²) w″ = 2x w′ − (λ − c²x² − m²/(1 − x²)) w, for angles and, beyond 1, for radii."""
    w, w_slope = y
    square = (1 - x) * (1 + x)
    return w_slope, (2 * x * w_slope - (characteristic - c * c * x * x - m * m / square) * w) / square


def oblate_in_angle(y: Any, m: Any, c: Any, characteristic: Any, x: Any) -> tuple[Any, Any]:
    """The same with −c² for c²."""
    w, w_slope = y
    square = (1 - x) * (1 + x)
    return w_slope, (2 * x * w_slope - (characteristic + c * c * x * x - m * m / square) * w) / square


def oblate_in_radius(y: Any, m: Any, c: Any, characteristic: Any, x: Any) -> tuple[Any, Any]:
    """And with ix for x (DLMF 30.14)."""
    w, w_slope = y
    square = 1 + x * x
    return w_slope, ((characteristic - c * c * x * x - m * m / square) * w - 2 * x * w_slope) / square


def _tied(name: str, argument: str) -> Any:
    """A characteristic value that is given must be that of c: neither can change alone."""

    def refuse(y: Any, *args: Any) -> Any:
        raise MissingRuleError(
            f"scipy.special.{name} has no derivative in {argument}, since c and cv determine each other",
            f"scipy.special.{name.removesuffix('_cv')}, which finds cv itself",
            f"dropgrad({argument}), where its derivative is not wanted",
        )

    return refuse


def _spheroidal(name: str, characteristic: Any, in_x: Any, arguments: Any) -> None:
    def in_argument(y: Any, m: Any, n: Any, c: Any, x: Any) -> tuple[Any, Any]:
        return in_x(y, m, c, characteristic(m, n, c), x)

    several(
        name,
        integer(name, "m"),
        integer(name, "n"),
        _in_parameter(name, 2, 4, low=0),
        in_argument,
        at=[call(ONE, TWO, real(1, 2, 2, 1), arguments)],
    )

    def in_argument_given_cv(y: Any, m: Any, n: Any, c: Any, cv: Any, x: Any) -> tuple[Any, Any]:
        return in_x(y, m, c, cv, x)

    given = name + "_cv"
    several(
        given,
        integer(given, "m"),
        integer(given, "n"),
        _tied(given, "c"),
        _tied(given, "cv"),
        in_argument_given_cv,
        at=[call(ONE, TWO, 1.5, characteristic(1, 2, 1.5), arguments)],
    )


each(
    "pro_cv",
    integer("pro_cv", "m"),
    integer("pro_cv", "n"),
    lambda a, b, c: slope(special.pro_cv, (0, 0, 1), a, b, c),
    at=[ONE, TWO, real(0.5, 2)],
)
each(
    "obl_cv",
    integer("obl_cv", "m"),
    integer("obl_cv", "n"),
    lambda a, b, c: slope(special.obl_cv, (0, 0, 1), a, b, c),
    at=[ONE, TWO, real(0.5, 2)],
)
_spheroidal("pro_ang1", special.pro_cv, prolate_in_x, real(-0.8, 0.8, 3))
_spheroidal("pro_rad1", special.pro_cv, prolate_in_x, real(1.2, 2, 3))
# SciPy gives the second kind few digits at small radii.
_spheroidal("pro_rad2", special.pro_cv, prolate_in_x, real(3, 4, 3))
_spheroidal("obl_ang1", special.obl_cv, oblate_in_angle, real(-0.8, 0.8, 3))
_spheroidal("obl_rad1", special.obl_cv, oblate_in_radius, real(0.5, 1.5, 3))
_spheroidal("obl_rad2", special.obl_cv, oblate_in_radius, real(3, 4, 3))
