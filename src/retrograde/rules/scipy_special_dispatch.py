"""How rules for SciPy's functions are written where the table's kinds do not reach.

`overridable`  lets any argument of a function of our own take the call over, as NumPy's protocols do
`several`      defines an elementwise function of any number of arguments and outputs
`integer`      stands for the derivative in an argument that only takes integers
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from scipy import special

from retrograde.errors import MissingRuleError
from retrograde.originals import np
from retrograde.rules.products import conj, times, unbroadcast
from retrograde.rules.table import elementwise, general


def overridable(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let any argument take the call over by `__array_function__`, as NumPy lets the arguments of its functions."""

    @functools.wraps(function)
    def public(*args: Any, **kwargs: Any) -> Any:
        for x in (*args, *kwargs.values()) if kwargs else args:
            if not issubclass(type(x), np.ndarray) and hasattr(type(x), "__array_function__"):
                return x.__array_function__(public, (type(x),), args, kwargs)
        return function(*args, **kwargs)

    return public


@functools.cache
def named(name: str) -> Any:
    """The function of scipy.special to which a rule of this name belongs, or None in a SciPy that does not have it.

    Ufuncs let their arguments take a call over. Functions written in Python do not: `overridable` makes one of them
    that does. They are replaced while a transform runs, which may be when these rules are loaded: the original is
    meant.
    """
    function = getattr(special, name, None)
    # With SCIPY_ARRAY_API a ufunc is wrapped in a function that chooses it for arrays of NumPy's.
    for ufunc in (function, getattr(function, "__wrapped__", None)):
        if isinstance(ufunc, np.ufunc):
            return ufunc
    if function is None:
        return None
    public = overridable(getattr(function, "original", function))
    public.__module__ = special.__name__  # as messages name it, and not the file inside
    return public


def each(names: str, *partials: Any, at: Sequence[Any]) -> None:
    """`elementwise` for every function of these names that this SciPy has; names may stand for one function."""
    for function in dict.fromkeys(map(named, names.split())):
        if function is not None:
            elementwise(function, *partials, at=at)


def integer(name: str, argument: str) -> Callable[[], Any]:
    """The partial derivative in an argument that takes integers: there is none."""

    def refuse(*values: Any) -> Any:
        raise MissingRuleError(
            f"scipy.special.{name} has no derivative with respect to {argument}, which is an integer",
            f"a plain integer as {argument}",
            f"dropgrad({argument}), where its derivative is not wanted",
        )

    # It needs to know nothing, and nothing is kept for it.
    refuse.__signature__ = inspect.Signature()  # type: ignore[attr-defined]
    return refuse


Slope = Callable[..., Any]


def several(name: str, *slopes: Slope, at: Sequence[Any]) -> None:
    """Define an elementwise function that has several outputs or more than three arguments.

    `slopes[j](y, *args)` is the derivative in argument j: a tuple with one entry for each output where there are
    several. As in `elementwise`, complex arguments are taken to be holomorphic.
    """
    function = named(name)
    if function is None:
        return

    def pullback(y: Any, *args: Any) -> Any:
        def pull(y_bar: Any) -> tuple[Any, ...]:
            return over_arguments(y_bar, [functools.partial(s, y) for s in slopes], args)

        return pull

    def pushforward(y: Any, *args: Any) -> Any:
        shape = np.shape(y[0] if isinstance(y, tuple) else y)

        def push(*dots: Any) -> Any:
            return pushed(dots, [functools.partial(s, y) for s in slopes], args, shape)

        return push

    general(function, args=slice(0, None), pullback=pullback, pushforward=pushforward, at=at)


def over_arguments(y_bar: Any, slopes: Sequence[Slope], args: tuple[Any, ...]) -> tuple[Any, ...]:
    """One cotangent for each argument, computed when it is asked for."""

    def cotangent(slope: Slope, x: Any) -> Any:
        shape = np.shape(x)  # before the others are forgotten

        def compute() -> Any:
            partial = slope(*args)
            if not isinstance(partial, tuple):
                return unbroadcast(times(y_bar, conj(partial)), shape)
            terms = [times(bar, conj(p)) for bar, p in zip(y_bar, partial, strict=True) if bar is not None]
            return unbroadcast(sum(terms[1:], start=terms[0]), shape)

        return compute

    return tuple(cotangent(slope, x) for slope, x in zip(slopes, args, strict=True))


def pushed(dots: Sequence[Any], slopes: Sequence[Slope], args: tuple[Any, ...], shape: tuple[int, ...]) -> Any:
    """The tangent of the result, or of each of several."""
    total: Any = None
    for dot, slope in zip(dots, slopes, strict=True):
        if dot is None:
            continue
        partial = slope(*args)
        if isinstance(partial, tuple):
            term: Any = [times(dot, p) for p in partial]
            total = term if total is None else [a + b for a, b in zip(total, term, strict=True)]
        else:
            term = times(dot, partial)
            total = term if total is None else total + term
    if isinstance(total, list):
        return tuple(_in_shape(part, shape) for part in total)
    return _in_shape(total, shape)


def _in_shape(y_dot: Any, shape: tuple[int, ...]) -> Any:
    return y_dot if np.shape(y_dot) == shape else np.broadcast_to(y_dot, shape)
