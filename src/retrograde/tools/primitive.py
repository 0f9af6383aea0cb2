"""A user's own rules: any function becomes a primitive with a pullback and a pushforward."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from retrograde.errors import MissingRuleError
from retrograde.rules.table import General
from retrograde.trace.call import call_rule
from retrograde.trace.handle import is_traced, like_of
from retrograde.trace.structure import flatten

Formula = Callable[..., Callable[..., Any]]


class primitive:
    """A function whose derivative is given by its user, not found in its body.

    The function sees plain values only, so it may call code of any kind. `defpullback` gives reverse mode,
    `defpushforward` forward mode; formulas of NumPy functions can be differentiated again.

    >>> @primitive
    ... def cube(x):
    ...     return x ** 3
    >>> @cube.defpullback
    ... def cube_pullback(y, x):
    ...     return lambda y_bar: (y_bar * 3 * x ** 2,)
    >>> gradient(cube, 2.0)
    (12.0,)
    """

    def __init__(self, f: Callable[..., Any]) -> None:
        self._f = f
        self._pullback: Formula | None = None
        self._pushforward: Formula | None = None
        functools.update_wrapper(self, f)

    def defpullback(self, formula: Formula) -> Formula:
        """Set the pullback: `formula(out, *args)` returns `pull(y_bar)` → a tuple with one cotangent an argument.

        None stands for an argument that has none. Usable as a decorator.
        """
        self._pullback = formula
        return formula

    def defpushforward(self, formula: Formula) -> Formula:
        """Set the pushforward: `formula(out, *args)` returns `push(*dots)` → the tangent of the result.

        There is one tangent an argument, zeros where there is no path. Usable as a decorator.
        """
        self._pushforward = formula
        return formula

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not any(is_traced(leaf) for arg in args for leaf in _leaves(arg)):
            return self._f(*args, **kwargs)
        rule = General(self, slice(0, None), self._checked_pullback, self._checked_pushforward, repeatable=False)
        return call_rule(rule, args, kwargs)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def _checked_pullback(self, y: Any, *args: Any) -> Callable[[Any], Any]:
        if self._pullback is None:
            raise self._missing("reverse", "pullback")
        return self._pullback(y, *args)

    def _checked_pushforward(self, y: Any, *args: Any) -> Callable[..., Any]:
        if self._pushforward is None:
            raise self._missing("forward", "pushforward")
        push = self._pushforward(y, *args)

        def push_with_zeros(*dots: Any) -> Any:
            return push(*(np.zeros(*like_of(x))[()] if dot is None else dot for dot, x in zip(dots, args, strict=True)))

        return push_with_zeros

    def _missing(self, mode: str, what: str) -> MissingRuleError:
        name = getattr(self, "__name__", "f")
        return MissingRuleError(
            f"the primitive {name} has no {what}, which {mode} mode needs",
            f"{name}.def{what}(lambda out, *args: ...)",
        )

    def __reduce__(self) -> str:
        # Found again by its name, like a plain function.
        return self.__qualname__  # type: ignore[attr-defined, no-any-return]

    def __repr__(self) -> str:
        return f"<primitive {getattr(self, '__name__', self._f)!r}>"


def _leaves(arg: Any) -> list[Any]:
    return flatten(arg)[0] if isinstance(arg, list | tuple | dict) else [arg]
