"""Running a user's function under a level, with everything restored however it ends; or asking it, if it is native."""

from __future__ import annotations

import functools
import inspect
import struct
from collections.abc import Callable
from types import FrameType
from typing import Any, NamedTuple, ParamSpec, TypeVar

from retrograde.errors import (
    MissingRuleError,
    RetrogradeError,
    is_ours,
    location_in,
    user_location,
    without_our_frames,
)
from retrograde.trace.callers import package_of
from retrograde.trace.creation import contains_traced
from retrograde.trace.culprit import WAYS_TO_WRITE, note_on
from retrograde.trace.handle import HANDLES, Traced
from retrograde.trace.interception import replace_in_globals
from retrograde.trace.level import ACTIVE, CONTEXT, Context, Level, begin, finish
from retrograde.trace.packages import MIXED

P = ParamSpec("P")
R = TypeVar("R")


_new_context = functools.partial(tuple.__new__, Context)  # without a frame of Python's


def run(level: Level, work: Callable[[], Any], f: Callable[..., Any], leaves: dict[int, Traced] | None = None) -> Any:
    """`work()`, which calls the user's `f`, while `level` is running.

    Args:
        leaves: parameters that the level takes for its own leaves, by identity.
    """
    context = CONTEXT.get()
    running, ignored, suspended, known = context
    inside = _new_context(((*running, level), ignored, suspended, known | leaves if leaves else known))
    try:
        CONTEXT.set(inside)
        begin(level)
        replace_in_globals(f)
        return work()
    except Exception as error:
        cause = error.__cause__
        if isinstance(error, SystemError) and isinstance(cause, RetrogradeError):
            # Compiled code went on after a conversion had raised. Python makes its complaint the context of what it
            # came from: without this, a circle.
            error.__cause__ = error.__context__ = None
            raise cause from None
        if not _is_wrong_call(error, f, leaves is not None):
            _explain(error, bool(level.borrowed), f)
        raise
    finally:
        CONTEXT.set(context)
        # Here and not in `finish`, on whose way an interrupt may come.
        ACTIVE.pop(id(level), None)
        finish(level)
        while level.borrowed:
            # The last first: a view becomes writable only if its base is.
            level.borrowed.pop().flags.writeable = True


_WRITTEN = "\n".join(
    [
        "retrograde: a traced value was written into a plain array, which would lose its derivative.  ({})",
        "Plain is what was made outside of the function, or of plain arrays (plain.copy(), np.sort(plain)).",
        *(f"  {number}. {way}" for number, way in enumerate(WAYS_TO_WRITE, 1)),
    ]
)
_BORROWED = """retrograde: an operation on a traced value still needs the contents of this array.
  1. write into a copy of it, or use np.copy(array) in the operation
  2. make the array inside the function: np.zeros(n), np.array(...)"""
_NO_ARGUMENTS = """retrograde: a transform calls f with the arguments that follow it, and f takes none.
  1. Params instead of these arguments, gradient(f, Params([W, b])): f closes over parameters, W = param(...)
  2. a function of these arguments: lambda W, b: ..., or lambda Wb: ... for the one list [W, b]"""
_ARGUMENTS = """retrograde: with Params a transform calls f without arguments, and f takes some.
  1. gradient(lambda: f(x), Params([W, b])), where f closes over the parameters
  2. gradient(f, x), where the derivative with respect to x is wanted"""


def _is_wrong_call(error: Exception, f: Callable[..., Any], is_of_params: bool) -> bool:
    """Whether `f` takes arguments where it is given none, or the other way round; if so, the ways out are added."""
    if not isinstance(error, TypeError) or not is_ours(_innermost(error)):
        return False
    try:
        parameters = inspect.signature(f).parameters.values()
    except (TypeError, ValueError):
        return False
    by_position = [p for p in parameters if p.kind not in (p.KEYWORD_ONLY, p.VAR_KEYWORD)]
    if is_of_params != bool(by_position):
        return False
    error.add_note(_ARGUMENTS if is_of_params else _NO_ARGUMENTS)
    return True


def _explain(error: Exception, borrowed: bool, f: Callable[..., Any]) -> None:
    """Add the ways out to what others say when they meet a traced value."""
    if isinstance(error, RetrogradeError) or any(note.startswith("retrograde: ") for note in _notes(error)):
        return
    # Where no frame of the user's was entered, f itself is compiled: then it is the line that asked for its derivative.
    place = location_in(error.__traceback__) or user_location()
    if isinstance(error, ValueError) and "setting an array element with a sequence" in str(error):
        error.add_note(_WRITTEN.format(place))
    elif isinstance(error, ValueError) and "read-only" in str(error) and borrowed:
        error.add_note(_BORROWED)
    elif _is_foreign(error):
        error.add_note(note_on(error.__traceback__, place, sure=True, given=f))
    elif package_of(_innermost(error)) in MIXED:
        error.add_note(note_on(error.__traceback__, place, sure=False, given=f))


def _notes(error: Exception) -> list[str]:
    return getattr(error, "__notes__", [])


def _innermost(error: Exception) -> FrameType:
    trace = error.__traceback__
    assert trace is not None
    while trace.tb_next is not None:
        trace = trace.tb_next
    return trace.tb_frame


def _is_foreign(error: Exception) -> bool:
    """Whether it is sure that compiled code, or Python's own library, complains about a traced value."""
    text = str(error)
    if any(handle.__name__ in text for handle in HANDLES) or isinstance(error, struct.error):
        return True
    if text.startswith("can't unbox "):
        return True  # numba
    frame = _innermost(error)
    return (
        text.startswith("Object of type ")
        and frame.f_code.co_name == "default"
        and type(frame.f_locals.get("o")) in HANDLES
    )


def interruptible(transform: Callable[P, R]) -> Callable[P, R]:
    """A transform that Ctrl-C leaves with a short traceback: the user's frames, and one of ours."""

    @functools.wraps(transform)
    def interruptible_transform(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return transform(*args, **kwargs)
        except KeyboardInterrupt as stop:
            raise stop.with_traceback(without_our_frames(stop.__traceback__)) from None

    return interruptible_transform


# --- functions that know their own derivatives -------------------------------------------------------------------


class NativeGradient(NamedTuple):
    """The value of a function that returned one number, and one entry for each positional argument."""

    value: Any
    bars: list[Any]


class OwnRule(NamedTuple):
    """A function with the derivative that its user gave it; what is missing is None.

    Attributes:
        pullback: `pullback(y, *args)` → `pull(y_bar)` → a tuple of one cotangent an argument.
        pushforward: `pushforward(y, *args)` → `push(*dots)` → the tangent of the result.
    """

    name: str
    function: Callable[..., Any]
    pullback: Callable[..., Callable[..., Any]] | None
    pushforward: Callable[..., Callable[..., Any]] | None

    def missing(self, what: str) -> MissingRuleError:
        """The error for a "pullback" or "pushforward" that is wanted and not there."""
        mode = "reverse" if what == "pullback" else "forward"
        return MissingRuleError(
            f"the primitive {self.name} has no {what}, which {mode} mode needs",
            f"{self.name}.def{what}(lambda out, *args: ...)",
        )


class Ruled:
    """A function whose derivative is given by its user."""

    def _own_rule(self) -> OwnRule:
        """What was given, as it is just now."""
        raise NotImplementedError


class Native:
    """A function with derivatives of its own, for arguments that are not traced."""

    def described(self, place: int) -> tuple[str, str]:
        """The names of the function and of its positional argument number `place`."""
        raise NotImplementedError

    def native_gradient(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], places: tuple[int, ...]
    ) -> NativeGradient | None:
        """The value and the cotangents of the arguments in their structures, None where there is no path.

        Those of other arguments than the ones at the `places` are not wanted.

        None for the whole where the function does not return one real number.
        """
        raise NotImplementedError

    def native_products(self, args: tuple[Any, ...], kwargs: dict[str, Any], directions: list[Any]) -> list[Any] | None:
        """The derivatives of the gradient in numbers and arrays of floats, along many directions.

        Args:
            directions: for each argument an array with the axis of the directions in front, or None for zeros.

        Returns:
            For each argument the products of the Hessian with the directions, with the same axis in front. None where
            the function does not return one finite real number, or takes other arguments.
        """
        raise NotImplementedError

    def native_tangents(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], directions: dict[int, Any]
    ) -> tuple[Any, Any] | None:
        """The value, and its tangents along many directions.

        Args:
            directions: for some positional arguments an array with the axis of the directions in front.

        Returns:
            The value, and the tangents with the same axis in front. None where the function does not return one number
            or one array of floats, or an argument is neither.
        """
        raise NotImplementedError


def native_products(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any], directions: list[Any]) -> list[Any] | None:
    """What `f` itself knows of the products of its Hessian with directions; None where it has to be traced."""
    if not isinstance(f, Native) or any(map(contains_traced, (*args, *kwargs.values(), *directions))):
        return None
    return f.native_products(args, kwargs, directions)


def native_tangents(
    f: Any, args: tuple[Any, ...], kwargs: dict[str, Any], directions: dict[int, Any]
) -> tuple[Any, Any] | None:
    """What `f` itself knows of its tangents along many directions; None where it has to be traced."""
    if not isinstance(f, Native) or any(map(contains_traced, (*args, *kwargs.values(), *directions.values()))):
        return None
    return f.native_tangents(args, kwargs, directions)


def native_gradient(
    f: Any, args: tuple[Any, ...], kwargs: dict[str, Any], places: tuple[int, ...]
) -> NativeGradient | None:
    """What `f` itself knows of its gradient; None where it has to be traced."""
    if not isinstance(f, Native) or any(map(contains_traced, (*args, *kwargs.values()))):
        return None
    return f.native_gradient(args, kwargs, places)


def is_integer(x: Any) -> bool:
    """Whether a plain value is an integer or an array of such."""
    return type(x) is int or getattr(getattr(x, "dtype", None), "kind", None) in ("i", "u")


def integers_are_data(name: str, argument: str, value: Any) -> tuple[str, ...]:
    """What an error says of a native function that is to be differentiated in an integer, which transforms count as a
    float."""
    is_number = not getattr(value, "ndim", 0)
    given = f"{int(value)}" if is_number else f"an array of {value.dtype}"
    count = given if is_number else argument
    return (
        f"{name} is compiled and takes integers for data; its argument {argument} is {given} and to be differentiated",
        f"{argument}={count} as a keyword argument, or lambda …: {name}(…, {count}), where it is a count or an index",
        "argnums=0, or whichever arguments are meant, of jacobian, hessian and grad",
        f"{f'{given}.0 for {given}' if is_number else f'{argument}.astype(float)'}, where it is to have a derivative",
    )
