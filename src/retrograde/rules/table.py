"""The one table of derivatives, and the kinds of rule that fill it.

A rule is plain data about one function. How a mode uses it (reverse, forward, later batched or compiled) is that
mode's business, so a derivative is written once. All formulas are plain NumPy: a rule that is given traced values of
an outer transform is thereby differentiated itself.

The kinds:

`elementwise`  a ufunc and one partial derivative for each of its arguments
`linear`       linear in some arguments *together*; its pushforward is the function itself
`multilinear`  linear in each of some arguments *by itself* (a product); its pushforward follows
`general`      a pullback and a pushforward, the only kind that is written twice
`composed`     a body of other functions that have rules
`no_gradient`  an output that has no derivative, and why
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from retrograde.originals import np
from retrograde.rules.products import over

Function = Callable[..., Any]
Partial = float | Callable[..., Any]


class Like(NamedTuple):
    """What an adjoint may know of the argument that it pulls back to: its shape and dtype, not its contents."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        size = 1
        for n in self.shape:
            size *= n
        return size


@dataclass(frozen=True, eq=False)
class Rule:
    """What every kind shares: the function, and where its laws are tested (see `rules.points`)."""

    function: Function
    at: Sequence[Any] = field(default=(), kw_only=True)

    @cached_property
    def name(self) -> str:
        owner = getattr(self.function, "__self__", None)  # np.add.reduce is a method of np.add
        name: str = getattr(self.function, "__name__", "f")
        return f"{owner.__name__}.{name}" if isinstance(owner, np.ufunc) else name

    @cached_property
    def label(self) -> str:
        """The function as messages name it: `np.sum`, `scipy.special.erf`, or a user's own name."""
        if isinstance(self.function, np.ufunc | type(np.add.reduce)) and self.name.split(".")[0] in dir(np):
            return f"np.{self.name}"
        module = getattr(self.function, "__module__", None) or ""
        package = module.partition(".")[0]
        return f"{module.replace('numpy', 'np', 1)}.{self.name}" if package in ("numpy", "scipy", "math") else self.name


@dataclass(frozen=True, eq=False)
class Elementwise(Rule):
    """A function that acts on each element by itself.

    `partials[i]` is ∂y/∂(argument i): a number, or a function whose parameter *names* say what it needs: `y` the
    result, `x` the only argument, or `a`, `b`, `c` the first, second and third. What no partial names is not kept.
    A function of complex arguments is taken to be holomorphic.

    `at_once(bar, y, a, b, may_write)` → the cotangents of both arguments, or None where the partials are to be asked:
    for large arrays of one shape, with what the partials name. It may use the memory of `y` if it may write, and leaves
    it as it was with None.

    Of real float64: `proven` is whether no partial is infinite or NaN where the result is finite, and no divisor zero
    or NaN; `shows` is whether the arguments are finite, too. (What a finite loss is a sum of need not be checked.)
    """

    partials: tuple[Partial, ...]
    proven: bool = False
    shows: bool = False
    at_once: Function | None = None


class Reciprocal:
    """A partial 1 / divisor, said by its divisor: a cotangent is divided by it, and no quotient is made."""

    def __init__(self, divisor: Callable[..., Any]) -> None:
        self.divisor = divisor
        self.__signature__ = inspect.signature(divisor)

    def __call__(self, *args: Any) -> Any:
        return over(1.0, self.divisor(*args))


class Multiple:
    """A partial that is a number times another one, which is multiplied last: no array is made of the two."""

    def __init__(self, factor: float, partial: Callable[..., Any]) -> None:
        self.factor = factor
        self.partial = partial
        self.__signature__ = inspect.signature(partial)

    def __call__(self, *args: Any) -> Any:
        return self.factor * self.partial(*args)


class Applied:
    """A partial that a cotangent is multiplied by in a way of its own, `product(bar, …)`, with its own parameters.

    For partials of which a derivative must know the cotangent that they meet. `everywhere` is false where only complex
    arguments need that.
    """

    def __init__(self, partial: Callable[..., Any], product: Callable[..., Any], everywhere: bool) -> None:
        self.partial = partial
        self.product = product
        self.everywhere = everywhere
        self.__signature__ = inspect.signature(partial)

    def __call__(self, *args: Any) -> Any:
        return self.partial(*args)


class Overwriting:
    """A partial that can write its result over its first parameter: its last parameter says whether it may.

    It may where that is a large array which nobody else holds and no other partial needs. (Of an `Applied` it is the
    product that overwrites, and the partial's first parameter that is overwritten.)
    """

    def __init__(self, partial: Callable[..., Any]) -> None:
        self.partial = partial
        signature = inspect.signature(partial)
        self.__signature__ = signature.replace(parameters=tuple(signature.parameters.values())[:-1])

    def __call__(self, *args: Any) -> Any:
        return self.partial(*args)


class _OfTwo:
    """A partial made of two functions, of which several partials of a rule may have the first in common.

    Then it is computed once for all of them, by whoever looks for it; to everybody else this is one function.
    """

    def __init__(self, first: Callable[..., Any], second: Callable[..., Any], skipped: int) -> None:
        self.first = first
        self.second = second
        self.names = tuple(inspect.signature(first).parameters), tuple(inspect.signature(second).parameters)[skipped:]
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        union = dict.fromkeys((*self.names[0], *self.names[1]))
        self.__signature__ = inspect.Signature([inspect.Parameter(name, kind) for name in union])

    def _split(self, args: tuple[Any, ...]) -> tuple[list[Any], list[Any]]:
        values = dict(zip(self.__signature__.parameters, args, strict=True))
        of_first, of_second = self.names
        return [values[name] for name in of_first], [values[name] for name in of_second]


class Chained(_OfTwo):
    """A partial `first · rest`: what `first` has made of a cotangent is multiplied by the rest."""

    def __init__(self, first: Callable[..., Any], rest: Callable[..., Any]) -> None:
        super().__init__(first, rest, 0)

    def __call__(self, *args: Any) -> Any:
        of_first, of_rest = self._split(args)
        return self.first(*of_first) * self.second(*of_rest)


class Shared(_OfTwo):
    """A partial that takes the result of another function, which it shares, for its first argument."""

    def __init__(self, first: Callable[..., Any], partial: Callable[..., Any]) -> None:
        super().__init__(first, partial, 1)

    def __call__(self, *args: Any) -> Any:
        of_first, of_partial = self._split(args)
        return self.second(self.first(*of_first), *of_partial)


@dataclass(frozen=True, eq=False)
class WithArguments(Rule):
    """The kinds that take their arguments as the function does.

    `args` are the positions of the differentiable arguments (a slice where their number varies); such an argument may
    be a sequence of arrays (`np.concatenate`), and then so is its cotangent and its tangent. The formulas' own
    parameters name the function's: an argument that a formula does not have is refused.
    """

    args: tuple[int, ...] | slice
    # Whether one finite number that comes of a call without a mask shows that all elements of `args` are finite.
    shows: bool = field(default=False, kw_only=True)
    # The same function of a plain array, for which NumPy's own Python code goes a longer way.
    of_array: Function | None = field(default=None, kw_only=True)

    @property
    def formula(self) -> Function:
        raise NotImplementedError

    @cached_property
    def of_plain(self) -> Function:
        """The function of plain arguments, without NumPy's question whether one of them takes the call over."""
        found: Function = getattr(self.function, "_implementation", self.function)
        return found

    @cached_property
    def parameters(self) -> tuple[inspect.Parameter, ...]:
        """The function's parameters as the formula names them, without the formula's own first one."""
        return tuple(inspect.signature(self.formula).parameters.values())[1:]

    @cached_property
    def parameter_names(self) -> dict[str, int]:
        """Their names, with their positions."""
        return {parameter.name: i for i, parameter in enumerate(self.parameters)}

    @cached_property
    def usual_forms(self) -> set[tuple[Any, ...]]:
        """Forms of calls (the number of arguments by position, and the names of the others) that the formula takes as
        they are: whoever has found that out makes a note here."""
        return set()

    @cached_property
    def takes_all(self) -> bool:
        """Whether the formula takes keywords of any name."""
        return any(parameter.kind is parameter.VAR_KEYWORD for parameter in self.parameters)

    @cached_property
    def most_positions(self) -> float:
        """How many arguments the formula takes by position."""
        kinds = [parameter.kind for parameter in self.parameters]
        if inspect.Parameter.VAR_POSITIONAL in kinds:
            return math.inf
        return sum(
            kind in (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.POSITIONAL_ONLY) for kind in kinds
        )


@dataclass(frozen=True, eq=False)
class Linear(WithArguments):
    """`adjoints[k](y_bar, *args, **kwargs)` → cotangent of argument `args[k]`.

    The differentiable arguments arrive as `Like`.
    """

    adjoints: tuple[Function, ...]

    @property
    def formula(self) -> Function:
        return self.adjoints[0]


@dataclass(frozen=True, eq=False)
class Multilinear(Linear):
    """As `Linear`, but in `adjoints[k]` only argument `args[k]` is a `Like`; the others have their values."""


@dataclass(frozen=True, eq=False)
class General(WithArguments):
    """`pullback(y, *args)` → `pull(y_bar)` → cotangents; `pushforward(y, *args)` → `push(*dots)` → y_dot.

    `pull` returns a tuple with one entry for each of `args`; an entry may be a function of no arguments, which is
    called only if that cotangent is wanted. `push` receives one tangent for each of `args`, `None` where there is none.

    `together(*args)` → `(y, pull)` is for functions that do on their way what the pullback would do again: the order
    that a sort finds. Reverse mode calls it instead of the function, on plain arrays only; with `joins_all` on
    anything, but only where a sweep is to come. `with_tangent(args, dots)` → `(y, y_dot)` is the same for forward mode.
    The pull may be `Spendable`.
    """

    pullback: Function
    pushforward: Function
    together: Function | None = None
    with_tangent: Function | None = None
    joins_all: bool = False
    # Whether results may be views of arguments.
    gives_views: bool = True
    # Whether a sweep may run the pull twice; a user's own is run once.
    repeatable: bool = True
    # What a user has declared of the pattern of his own.
    sparsity: Any = None

    @property
    def formula(self) -> Function:
        return self.pullback


class Spendable:
    """A pull that keeps a large array, and the same as the `last` one to be called, which may write over that array."""

    __slots__ = ("last", "pull")

    def __init__(self, pull: Callable[..., Any], last: Callable[..., Any]) -> None:
        self.pull = pull
        self.last = last

    def __call__(self, y_bar: Any) -> Any:
        return self.pull(y_bar)


@dataclass(frozen=True, eq=False)
class Composed(Rule):
    """A function whose `body` has the same value and consists of functions that have rules."""

    body: Function

    @cached_property
    def names(self) -> frozenset[str] | None:
        """The names of the body's parameters; None where it takes keywords of any name."""
        parameters = inspect.signature(self.body).parameters
        return None if any(p.kind is p.VAR_KEYWORD for p in parameters.values()) else frozenset(parameters)


@dataclass(frozen=True, eq=False)
class NoGradient(Rule):
    """A function whose output has no derivative (an integer, a boolean, a shape), and why.

    `reads` is whether the output depends on the values of the arguments, and not on their shapes and dtypes only.
    """

    why: str
    reads: bool = True


RULES: dict[Function, Rule] = {}

WITH_KEYWORD: dict[Function, dict[str, Function]] = {}
"""Bodies, of functions that have rules, for calls with a keyword (see `with_keyword`)."""


def elementwise(
    function: Function,
    *partials: Partial,
    at: Sequence[Any],
    proven: bool = False,
    shows: bool = False,
    at_once: Function | None = None,
) -> None:
    """Define the derivative of an elementwise function by its partial derivatives, in the order of its arguments."""
    _add(Elementwise(function, partials, proven, shows, at_once, at=at))


def one_over(divisor: Callable[..., Any]) -> Reciprocal:
    """The partial 1 / divisor; `divisor` names what it needs as a partial does."""
    return Reciprocal(divisor)


def multiple(factor: float, partial: Callable[..., Any]) -> Multiple:
    """The partial `factor · partial`."""
    return Multiple(factor, partial)


def applied(partial: Callable[..., Any], product: Callable[..., Any], everywhere: bool = True) -> Applied:
    """The `partial`, by which `product(bar, …)` multiplies a cotangent (or its conjugate); `…` are its parameters.

    Args:
        everywhere: false where only complex arguments need it.
    """
    return Applied(partial, product, everywhere)


def overwriting(partial: Callable[..., Any]) -> Overwriting:
    """The partial `partial(y, …, may_write=False)`, which may be asked to write its result over `y`."""
    return Overwriting(partial)


def chained(first: Callable[..., Any], rest: Callable[..., Any]) -> Chained:
    """The partial `first · rest`, where another argument's partial is `first`, or begins with it."""
    return Chained(first, rest)


def shared(first: Callable[..., Any], partial: Callable[..., Any]) -> Shared:
    """The partial `partial(s, …)` with s the result of `first`, which other partials of the rule share."""
    return Shared(first, partial)


def linear(
    function: Function,
    *adjoints: Function,
    args: tuple[int, ...] = (0,),
    at: Sequence[Any],
    shows: bool = False,
    of_array: Function | None = None,
) -> None:
    """Define the derivative of a function that is linear in `args` together (`np.where` in 1 and 2)."""
    _add(Linear(function, args, adjoints, at=at, shows=shows, of_array=of_array))


def multilinear(
    function: Function, *adjoints: Function, args: tuple[int, ...] = (0, 1), at: Sequence[Any], shows: bool = False
) -> None:
    """Define the derivative of a function that is linear in each of `args` by itself (`np.matmul`)."""
    _add(Multilinear(function, args, adjoints, at=at, shows=shows))


def general(
    function: Function,
    *,
    pullback: Function,
    pushforward: Function,
    together: Function | None = None,
    args: tuple[int, ...] | slice = (0,),
    at: Sequence[Any],
    shows: bool = False,
    of_array: Function | None = None,
) -> None:
    """Define the derivative of a function by its pullback and its pushforward."""
    _add(General(function, args, pullback, pushforward, together, at=at, shows=shows, of_array=of_array))


def composed(function: Function, body: Function, *, at: Sequence[Any]) -> None:
    """Define the derivative of a function by a body of the same value, made of functions that have rules."""
    _add(Composed(function, body, at=at))


def with_keyword(function: Function, name: str, body: Function) -> None:
    """Define what `function(*args, **kwargs)` is where the keyword `name` is given (and is not None).

    `body(*args, **kwargs)` has the same value and consists of functions that have rules, or of `function` without it.
    """
    WITH_KEYWORD.setdefault(function, {})[name] = body


def no_gradient(*functions: Function, why: str, reads: bool = True) -> None:
    """Declare functions whose outputs have no derivative."""
    for function in functions:
        _add(NoGradient(function, why, reads))


def _add(rule: Rule) -> None:
    if rule.function in RULES:
        raise ValueError(f"{rule.name} has a rule already")
    RULES[rule.function] = rule
