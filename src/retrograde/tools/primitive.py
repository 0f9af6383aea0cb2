"""A user's own rules: any function becomes a primitive with a pullback and a pushforward."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from retrograde.batch.level import BatchLevel
from retrograde.errors import BatchError, InputError, PullbackError
from retrograde.rules.table import General
from retrograde.trace.call import call_rule, highest_level
from retrograde.trace.handle import is_traced, like_of
from retrograde.trace.level import Level
from retrograde.trace.running import OwnRule, Ruled
from retrograde.trace.structure import flatten, map_leaves

Formula = Callable[..., Callable[..., Any]]


class primitive(Ruled):
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
        self._batch: Callable[..., Any] | None = None
        self._sparsity: Any = None
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

    def defbatch(self, formula: Callable[..., Any]) -> Callable[..., Any]:
        """Set how the function maps over a batch: `formula(*args)` → the results of all examples.

        Every number and array among the arguments has an axis of examples in front, and so has what is returned.
        Without it `vmap` calls the function for one example after the other. Usable as a decorator.
        """
        self._batch = formula
        return formula

    def defsparsity(self, sparsity: Any) -> Any:
        """Set which elements of the result depend on which of the arguments, for `sparse_jacobian` and its like.

        Args:
            sparsity: "elementwise", where each element of the result depends on the elements in its own place, the
                arguments being broadcast against each other. Or `formula(out, *args)`, which returns a tuple with one
                pattern an argument: a sparse matrix or an array of shape (size of the result, size of the argument), of
                which entries that are not zero count; None where nothing depends on the argument.

        It holds for every run. Without it every element of the result counts as depending on every element of the
        arguments, which is never wrong and costs as many passes as there are columns (or rows). One that is too small
        is found by the check of the sparse transforms. Usable as a decorator.
        """
        if sparsity != "elementwise" and not callable(sparsity):
            raise InputError(
                f"{sparsity!r} is no sparsity of the primitive {self._name}",
                '"elementwise"',
                "a function of the result and the arguments that returns one pattern an argument",
            )
        self._sparsity = sparsity
        return sparsity

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        traced = [arg for arg in args if any(is_traced(leaf) for leaf in _leaves(arg))]
        if not traced:
            return self._f(*args, **kwargs)
        if any(isinstance(arg, dict) for arg in traced):
            raise InputError(
                f"the primitive {self._name} was given a dictionary with traced values",
                "pass its values: numbers, arrays, and lists or tuples of these",
            )
        level = highest_level((args, *kwargs.values()))
        if level is not None and level.maps:
            return self._mapped(level, args, kwargs)
        run = functools.partial(self._on_primals)
        run.__name__ = self._name  # type: ignore[attr-defined]
        rule = General(
            run,
            slice(0, None),
            self._checked_pullback,
            self._checked_pushforward,
            repeatable=False,
            sparsity=self._sparsity,
        )
        return call_rule(rule, args, kwargs)

    def _mapped(self, level: Level, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self._batch is None:
            return level.one_by_one(self, args, kwargs)
        assert isinstance(level, BatchLevel)
        y = self._batch(*(map_leaves(level.each, arg) for arg in args), **kwargs)
        for part in y if isinstance(y, tuple | list) else [y]:
            if np.shape(part)[:1] != (level.size,):
                raise BatchError(
                    f"the batch formula of {self._name} returned the shape {np.shape(part)} for {level.size} examples",
                    "return all results in one array, with the axis of the examples in front",
                )
        return level.wrap(y)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    @property
    def _name(self) -> str:
        return getattr(self, "__name__", "f")

    def _on_primals(self, *args: Any, **kwargs: Any) -> Any:
        # Read-only, since they are the caller's own arrays.
        return self(*(_read_only(arg) for arg in args), **kwargs)

    def _checked_pullback(self, y: Any, *args: Any, **kwargs: Any) -> Callable[[Any], Any]:
        if self._pullback is None:
            raise self._own_rule().missing("pullback")
        pull = _bound(self._pullback, y, args, kwargs)
        if not isinstance(y, tuple | list):
            return pull

        def pull_with_zeros(y_bars: Any) -> Any:
            return pull(
                [np.zeros(*like_of(part))[()] if bar is None else bar for bar, part in zip(y_bars, y, strict=True)]
            )

        return pull_with_zeros

    def _checked_pushforward(self, y: Any, *args: Any, **kwargs: Any) -> Callable[..., Any]:
        if self._pushforward is None:
            raise self._own_rule().missing("pushforward")
        push = _bound(self._pushforward, y, args, kwargs)

        def push_with_zeros(*dots: Any) -> Any:
            y_dot = push(
                *(np.zeros(*like_of(x))[()] if dot is None else dot for dot, x in zip(dots, args, strict=True))
            )
            if not isinstance(y, tuple | list) and (isinstance(y_dot, tuple | list) or np.shape(y_dot) != np.shape(y)):
                found = (
                    f"a {type(y_dot).__name__}" if isinstance(y_dot, tuple | list) else f"the shape {np.shape(y_dot)}"
                )
                raise PullbackError(
                    f"the pushforward of {self._name} returned {found} for a result of shape {np.shape(y)}",
                    "return the tangent of the result, in its shape",
                )
            return y_dot

        return push_with_zeros

    def _own_rule(self) -> OwnRule:
        return OwnRule(self._name, self._f, self._pullback, self._pushforward)

    @property
    def _numba_type_(self) -> Any:
        """What numba takes the object for inside of other functions: its own code of the function."""
        from retrograde.compiler.native import numba

        return numba().typeof(self._code)

    @functools.cached_property
    def _code(self) -> Any:
        from retrograde.compiler.native import numba

        return self._f if hasattr(self._f, "py_func") else numba().njit(self._f)

    def __reduce__(self) -> str:
        # Found again by its name, like a plain function.
        return self.__qualname__  # type: ignore[attr-defined, no-any-return]

    def __repr__(self) -> str:
        return f"<primitive {getattr(self, '__name__', self._f)!r}>"


def _bound(formula: Formula, y: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Callable[..., Any]:
    """`formula(y, *args)`, which for batched values goes by one example after the other where it has to."""
    bound, failure = _tried(lambda: formula(y, *args, **kwargs), (y, args))

    def applied(*given: Any) -> Any:
        if failure is None:
            found, failed = _tried(lambda: bound(*given), (y, args, given))
            if failed is None:
                return found
        level = highest_level((y, args, given))
        assert level is not None
        return level.one_by_one(lambda y, args, given: _bound(formula, y, args, kwargs)(*given), (y, args, given), {})

    return applied


def _tried(run: Callable[[], Any], values: Any) -> tuple[Any, Exception | None]:
    """What `run` returns, or the error that it raised of batched values: code from elsewhere says in many ways that it
    takes plain arrays only. An error of the formula itself is raised again of the first example."""
    level = highest_level(values)
    if level is None or not level.maps:
        return run(), None
    try:
        return run(), None
    except Exception as error:
        return None, error


def _read_only(arg: Any) -> Any:
    """An array as a read-only view; anything else as it is."""
    if type(arg) is not np.ndarray:
        return arg
    view = arg.view()
    view.flags.writeable = False
    return view


def _leaves(arg: Any) -> list[Any]:
    return flatten(arg)[0] if isinstance(arg, list | tuple | dict) else [arg]
