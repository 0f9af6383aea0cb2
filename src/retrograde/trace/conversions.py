"""Leaving the traced world: what converts, and what is refused because the derivative would be lost."""

from __future__ import annotations

import sys
from types import FrameType
from typing import TYPE_CHECKING, Any

from retrograde.errors import HashError, MutationError, PickleError, is_ours
from retrograde.originals import np
from retrograde.trace.callers import calling_frame, matched_length
from retrograde.trace.culprit import conversion_error
from retrograde.trace.level import VARYING, is_ignored

if TYPE_CHECKING:
    from retrograde.trace.level import Level


class Conversions:
    """The conversions of a traced value; a base of `Traced`."""

    __slots__ = ()

    if TYPE_CHECKING:
        primal: Any
        memory: Any

        def without_derivatives(self) -> Any: ...
        def lent(self) -> Any: ...

        link: Any
        ndim: Any
        level: Level

    def __float__(self) -> float:
        return float(self.release("float(x)", "keep x as it is: np.* and math.* functions take it"))

    def __int__(self) -> int:
        value = self.without_derivatives()
        if _is_integer(value):
            if VARYING:
                self.decide("int(x)")
            return int(value)
        return int(self.release("int(x)", "np.floor(x), np.trunc(x) or np.rint(x), which keep a (zero) derivative"))

    def __complex__(self) -> complex:
        return complex(self.release("complex(x)", "x + 0j, or x + 1j * y"))

    def as_integer_ratio(self) -> tuple[int, int]:
        ratio: tuple[int, int] = self.release("x.as_integer_ratio()").as_integer_ratio()
        return ratio

    def hex(self) -> str:
        return str(self.release("x.hex()").hex())

    def __index__(self) -> int:
        value = self.without_derivatives()
        if _is_integer(value):
            if VARYING:
                self.decide("the use of a value as an index, a size or a count")
            return int(value)
        return int(self.release("the use of x as an index", "an integer argument, which stays an integer"))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        value = self.without_derivatives()
        if VARYING and np.asarray(value).dtype.kind in "iub":
            self.decide("the use of a value as an index, a size or a count")
            return np.array(value, dtype=dtype)
        if isinstance(value, int):
            # An integer argument keeps its value: it may be a size or a count wherever NumPy takes one.
            return np.asarray(value, dtype=dtype)
        value = self.release(
            "the conversion to a plain array (np.asarray(x), or a function that makes one)",
            "a NumPy function of x: it works on traced values as they are; x.astype(np.float64), not np.float64(x)",
            "np.array([...]) around a list that a NumPy function is given, np.sin(np.array([a, b])); outside of "
            "transforms np.stack([...])",
        )
        if copy:
            return np.array(value, dtype=dtype)
        return np.asarray(self.lent() if self.level.depth < 0 else value, dtype=dtype)

    def release(self, what: str, *ways: str) -> Any:
        """The plain value where nothing is lost by that: inside `ignore()`, and for values without a derivative."""
        if not self.is_free():
            raise conversion_error(what, describe(self), ways)
        return self.without_derivatives()

    def decide(self, what: str, branches: bool = False) -> None:
        """Called where the plain value is to decide something, while some level has values that must not."""
        from retrograde.trace import undecided  # which needs the class that this one is a base of

        undecided.decide(self, what, branches)

    def is_free(self) -> bool:
        """Whether the plain value can be had without the loss of a derivative."""
        x: Any = self
        while isinstance(x, Conversions):
            if x.level.depth >= 0 and not is_ignored(x.level):
                return False
            x = x.memory
        return True

    def __hash__(self) -> int:
        raise HashError(
            f"{describe(self)} has no hash: two that are equal need not have the same derivative",
            "data(x) as the key of a dictionary or the member of a set",
            "the function itself (f.__wrapped__), where lru_cache or cache would look its arguments up",
        )

    def __reduce_ex__(self, protocol: Any) -> Any:
        if self.is_free():
            return self.without_derivatives().__reduce_ex__(protocol)
        raise PickleError(
            f"{describe(self)} belongs to a running transform and cannot be pickled",
            "data(x), the plain value",
            "take the gradient inside the worker: gradients of module-level functions do pickle",
        )

    def __copy__(self) -> Any:
        if self.level.depth < 0:
            from retrograde.trace.constant import constant  # which needs the class that this one is a base of

            return constant(self.without_derivatives().copy())
        return self.copy()  # type: ignore[attr-defined]

    def __deepcopy__(self, memo: Any) -> Any:
        return self.__copy__()

    def __bool__(self) -> bool:
        if VARYING:
            self.decide("a branch (if, while, and, or, not)", branches=True)
        return bool(self.without_derivatives())

    def __len__(self) -> int:
        return self.length(sys._getframe(1))

    def length(self, caller: FrameType) -> int:
        """`len(self)`, asked by a frame or by compiled code that the frame calls."""
        value = self.without_derivatives()
        self.check_not_shuffled(caller)
        if not hasattr(value, "__len__"):
            # A number does not match a sequence, though its class may (see handle.py).
            wanted = matched_length(caller)
            if wanted is not None:
                return int(wanted == 0)
        return len(value)

    def check_not_shuffled(self, caller: FrameType) -> None:
        # Our own code asks for the length as well, on behalf of calls of any name.
        if self.ndim > 1 and not is_ours(caller) and calling_frame("shuffle") is not None:
            # NumPy takes it for a list and swaps rows, which are views: some would be lost, and others be there twice.
            raise MutationError(
                f"shuffle would not mix {describe(self)}, but write rows over others",
                "x[...] = x[rng.permutation(len(x))]",
            )

    def __contains__(self, item: Any) -> bool:
        if VARYING:
            self.decide("`x in y`", branches=True)
        return plainly(item) in self.without_derivatives()

    def __format__(self, spec: str) -> str:
        return format(self.without_derivatives(), spec)

    def __str__(self) -> str:
        return str(self.without_derivatives())

    def __repr__(self) -> str:
        return f"traced({self.without_derivatives()!r})" if self.level.depth >= 0 else repr(self.without_derivatives())


def plainly(x: Any) -> Any:
    """The plain value of anything; a batched one stays batched."""
    return x.without_derivatives() if isinstance(x, Conversions) else x


def describe(x: Any) -> str:
    """A traced value as error messages name it."""
    value = x.without_derivatives()
    if isinstance(value, np.ndarray) and value.ndim:
        return f"a traced array of shape {value.shape} and dtype {value.dtype}"
    return f"the traced number {value}"


def _is_integer(value: Any) -> bool:
    """Whether a plain value is an integer, which a traced one may be used for: as a size, a count, an index."""
    return isinstance(value, int | np.integer) or (isinstance(value, np.ndarray) and value.dtype.kind in "iu")
