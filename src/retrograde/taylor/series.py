"""Truncated power series: the coefficients of a value along one direction, and how they are multiplied.

A series is known up to some coefficient and says how the next one follows from those before it. So a series may be
defined by its own beginning, as y = exp x is by y′ = y·x′, and so may two series by each other: whoever asks for a
coefficient gets those computed that it needs. Each is computed once.

The coefficients stand in one array, their number first, so that a product of series is a sum over that axis. Where one
of them is traced by an outer transform they stand in a list, and each product is recorded by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

from retrograde.originals import np
from retrograde.rules.products import has_nan
from retrograde.trace.handle import HANDLES, like_of
from retrograde.trace.ops import match, shows_nan, times

# A coefficient from those before it; None says that it is zero.
Step = Callable[[int], Any]


class Series:
    """The coefficients of one value.

    Attributes:
        c: the coefficients; None in a list stands for zero.
        order: the number of the last one.
        known: the number of the last one that is known.
        step: computes the one after it.
        solid: the first coefficient whose zero is a zero whatever it is multiplied with. That of a tangent is, that of
            a value is not.
    """

    __slots__ = ("_flags", "_partners", "_slope", "c", "known", "order", "solid", "step")

    def __init__(self, first: Any, order: int, step: Step | None = None, solid: int = 1) -> None:
        self.order = order
        self.known = 0
        self.step = step
        self.solid = solid
        self._flags: list[bool] = []
        self._slope: Series | None = None
        # Those that were made on the way to a result, to be released when it stands.
        workshop = _WORKSHOP.get(None)
        if workshop is not None:
            workshop.made.append(self)
        self._partners: dict[Any, Any] | None = None
        self.c: Any
        if type(first) in HANDLES:
            self.c = [first]
        else:
            shape, dtype = like_of(first)
            self.c = np.zeros((order + 1, *shape), dtype)
            self.c[0] = first

    @staticmethod
    def complete_with(c: np.ndarray[Any, Any]) -> Series:
        """The series of all these coefficients, in an array that is its own."""
        series = Series.__new__(Series)
        series.order = series.known = len(c) - 1
        series.step, series.solid, series._flags, series._slope, series._partners = None, 1, [], None, None
        series.c = c
        return series

    @property
    def is_stacked(self) -> bool:
        return type(self.c) is np.ndarray

    @property
    def first(self) -> Any:
        return self.c[0]

    def at(self, k: int) -> Any:
        """Coefficient `k`, computed if it has to be; None for zero."""
        while self.known < k:
            assert self.step is not None
            self._append(self.known + 1, self.step(self.known + 1))
        return self.c[k]

    def value(self, k: int) -> Any:
        """Coefficient `k`, with zeros for a zero."""
        c = self.at(k)
        return self._zero() if c is None else c

    def complete(self) -> Series:
        """The series with all coefficients known. How they followed is forgotten, and with it what that held."""
        self.at(self.order)
        self.release()
        return self

    def release(self) -> None:
        """Forget how coefficients follow. It refers to this series itself, which only the collector could free."""
        self.step = None
        self._slope = None

    def fill(self, coefficients: np.ndarray[Any, Any]) -> Series:
        """Take all coefficients but the first from an array, which is broadcast and cast."""
        if self.c.dtype.kind != "c" and coefficients.dtype.kind == "c":
            coefficients = coefficients.real
        self.c[1:] = aligned(coefficients, self.c.ndim)[1:]
        self.known = self.order
        return self

    def _append(self, k: int, coefficient: Any) -> None:
        if self.is_stacked:
            if type(coefficient) in HANDLES:
                self.unstack()
            else:
                if coefficient is not None:
                    if self.c.dtype.kind != "c" and np.iscomplexobj(coefficient):
                        coefficient = np.real(coefficient)
                    self.c[k] = coefficient
                self.known = k
                return
        if coefficient is not None:
            coefficient = match(coefficient, self.c[0])
            if type(coefficient) not in HANDLES and not np.any(coefficient):
                coefficient = None
        self.c.append(coefficient)
        self.known = k

    def unstack(self) -> None:
        """Keep the coefficients in a list from now on."""
        self.c = [self.c[0], *(c if np.any(c) else None for c in self.c[1 : self.known + 1])]

    def _zero(self) -> Any:
        shape, dtype = like_of(self.c[0])
        return np.zeros(shape, dtype)[()]

    def is_zero(self, k: int) -> bool:
        """Whether a coefficient is zero throughout and no outer transform can see it change."""
        while len(self._flags) <= k:
            c = self.at(len(self._flags))
            self._flags.append(c is None or (type(c) not in HANDLES and not np.any(c)))
        return self._flags[k]

    @property
    def slope(self) -> Series:
        """The series of the derivative, y′ₖ = (k + 1)·yₖ₊₁. Asks for coefficient 1."""
        if self._slope is not None:
            return self._slope
        slope = Series(self.value(1), self.order - 1, self._slope_step, solid=0)
        if self.known == self.order:
            if self.is_stacked:
                numbers = np.arange(1, self.order + 1, dtype=self.c.real.dtype)
                slope.fill(self.c[1:] * numbers.reshape(-1, *(1,) * (self.c.ndim - 1)))
            slope.complete()
        self._slope = slope
        return slope

    def _slope_step(self, k: int) -> Any:
        c = self.at(k + 1)
        return None if c is None else (k + 1) * c

    def partner(self, name: Any, make_partners: Callable[[Series], Any]) -> Any:
        """What belongs to this series (the sine and the cosine), made when it is first asked for."""
        if self._partners is None:
            self._partners = {}
        key = name, is_careful()
        if key not in self._partners:
            self._partners[key] = make_partners(self)
        return self._partners[key]

    def shows_nan(self) -> bool:
        """Whether a NaN may be among the coefficients; infinities of both signs look like one."""
        if self.is_stacked:
            higher = self.c[1:]
            if higher.size < _SMALL:
                flat = higher.reshape(-1)
                total = flat.dot(flat)
            else:
                total = higher.sum()
            return bool(total != total)
        return any(c is not None and shows_nan(c) for c in self.c)

    def copy(self) -> Series:
        """A series of the same coefficients, all known, that may be written to."""
        new = Series(self.c[0], self.order)
        new.known = self.known
        new.c = self.c.copy() if self.is_stacked else [_same(c) for c in self.c]
        return new

    def forget(self) -> None:
        """Forget what was derived of the coefficients: they have changed."""
        self._flags, self._slope, self._partners = [], None, None


class Workshop(NamedTuple):
    """What the series of one operation have in common while they are computed.

    Attributes:
        made: all of them, to be released at the end.
        careful: whether products are looked through for zero times infinity, which is zero in every rule. That costs as
            much as the products; so an operation is carried out without it, and again if a NaN comes out.
    """

    made: list[Series]
    careful: bool


_WORKSHOP: ContextVar[Workshop] = ContextVar("retrograde series in progress")


@contextmanager
def workshop(careful: bool) -> Iterator[None]:
    """A time in which the series of one operation are computed."""
    made: list[Series] = []
    token = _WORKSHOP.set(Workshop(made, careful))
    try:
        yield
    finally:
        _WORKSHOP.reset(token)
        for series in made:
            series.release()


def is_careful() -> bool:
    return _WORKSHOP.get().careful


_SMALL = 1 << 12  # beyond, the sum is as quick, and starts no threads


def _same(x: Any) -> Any:
    return x.reading() if type(x) in HANDLES else x


def aligned(c: np.ndarray[Any, Any], ndim: int) -> np.ndarray[Any, Any]:
    """Coefficients with axes of length 1 after the first, so that what they number broadcasts as it should."""
    return c if c.ndim >= ndim else c.reshape(c.shape[0], *(1,) * (ndim - c.ndim), *c.shape[1:])


def convolved(a: Series, b: Series, low: int, high: int, k: int) -> Any:
    """Σ aⱼ·bₖ₋ⱼ for j from `low` to `high`; None for zero.

    As in every rule, the zero of a tangent times something infinite or NaN is zero.
    """
    if high < low:
        return None
    a.at(high)
    b.at(k - low)
    if not (a.is_stacked and b.is_stacked):
        return _sum_of_products(a, b, low, high, k)
    x = a.c[low : high + 1]
    stop = k - high - 1
    y = b.c[k - low : stop if stop >= 0 else None : -1]
    if x.ndim == 1 and y.ndim == 1:
        total = x.dot(y)
        if total == total or not is_careful():
            return total
    else:
        ndim = max(x.ndim, y.ndim)
        x, y = aligned(x, ndim), aligned(y, ndim)
        total = np.einsum("k...,k...->...", x, y)
        if not (is_careful() and has_nan(total)):
            return total
    # Terms that are zero by one of their factors are left out.
    products = x * y
    numbers = np.arange(low, high + 1).reshape(-1, *(1,) * (products.ndim - 1))
    vanishing = ((x == 0) & (numbers >= a.solid)) | ((y == 0) & (k - numbers >= b.solid))
    return np.where(vanishing, 0.0, products).sum(axis=0)


def _sum_of_products(a: Series, b: Series, low: int, high: int, k: int) -> Any:
    total = None
    for j in range(low, high + 1):
        if (j >= a.solid and a.is_zero(j)) or (k - j >= b.solid and b.is_zero(k - j)):
            continue
        x, y = a.c[j], b.c[k - j]
        if x is None or y is None:
            continue
        # The first factor of `times` is the one whose zero counts.
        product = times(x, y) if j >= a.solid else times(y, x)
        total = product if total is None else total + product
    return total


def quotient(numerator: Any, denominator: Any) -> Any:
    """The quotient, where a zero over zero is zero: the numerator is a sum of tangents."""
    if numerator is None:
        return None
    q = numerator / denominator
    if (type(q) not in HANDLES and not is_careful()) or not shows_nan(q):
        return q
    is_zero = np.equal(numerator, 0.0)
    return np.where(is_zero, 0.0, np.divide(numerator, np.where(is_zero, 1.0, denominator)))


def added(*terms: Any) -> Any:
    """The sum of terms of which some are None."""
    total = None
    for term in terms:
        if term is not None:
            total = term if total is None else total + term
    return total


def scaled(x: Any, factor: Any) -> Any:
    """A coefficient times a constant; zero where the coefficient is."""
    return None if x is None else x * factor if type(factor) is float else times(x, factor)
