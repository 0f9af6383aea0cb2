"""Many examples in native code: the calls of a batch, and the directions of a Jacobian or a Hessian.

Examples that differ only in their seeds go through the program several at once, in lanes (see lanes.py), and all of
them in groups of so many, one group after the other in a native loop. The loop calls the very program that a single
call uses, whose types are the same; it only reads the examples of its arguments, and stores results, along an axis in
front.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from numpy import array, asarray, broadcast_to, empty, shape, zeros  # NumPy's own, whatever transform is running

from retrograde.compiler.known import RAGGED
from retrograde.compiler.parameters import Found
from retrograde.errors import BatchError

if TYPE_CHECKING:
    from retrograde.compiler.derivatives import Role


Room = Callable[[Any, Any, bool, bool], Any]
"""From a role, an array, whether it has the contents to begin with (otherwise only the shape and dtype, for zeros), and
whether each element is written before it is read, so that zeros are not needed: an array to write into."""


def new_array(role: Role, like: Any, is_begun: bool, is_filled: bool) -> Any:
    if is_begun:
        return array(like)
    return empty(like.shape, like.dtype) if is_filled else zeros(like.shape, like.dtype)


class Examples(NamedTuple):
    """Which values differ from one example to the next.

    Attributes:
        size: how many examples there are.
        roles: the roles whose values have the axis of the examples in front.
    """

    size: int
    roles: frozenset[Role]

    @property
    def are_seeds(self) -> bool:
        """Whether the arguments of the function are the same for all."""
        return all(role[0] != "x" for role in self.roles)

    def first(self, given: dict[Role, Any]) -> dict[Role, Any]:
        """The values of the first example; zeros where there is none."""
        return {role: self.one(value) if role in self.roles else value for role, value in given.items()}

    def one(self, value: Any) -> Any:
        return value[0] if self.size else zeros(value.shape[1:], value.dtype)[()]

    def group(self, given: dict[Role, Any], number: int, lanes: int) -> dict[Role, Any]:
        """The values of a group of examples, by lanes; of the last example again where there are no more."""
        values: dict[Role, Any] = {}
        for role, value in given.items():
            if role not in self.roles:
                values[role] = value
            elif lanes == 1:
                values[role] = value[number]
            else:
                for lane in range(lanes):
                    values["lane", lane, role] = value[min(number * lanes + lane, self.size - 1)]
        return values

    def reach(self, role: Role) -> bool:
        """Whether what a role stands for may differ from one example to the next."""
        base, numbers = role, set()
        while base[0] == "dot":
            numbers.add(base[1])
            base = base[2]
        return any(
            r[0] == "x" or (r[0] == "dot" and r[1] in numbers) or (r[0] in ("y_bar", "x_bar") and base[0] == "x_bar")
            for r in self.roles
        )

    def spread(self, value: Any) -> Any:
        """A value that is the same for all, as an array of its own for each."""
        return array(broadcast_to(value, (self.size, *shape(value))))


class Weights(NamedTuple):
    """What a program costs (in the unit of cost.py), and how many statements it has.

    Attributes:
        shared, lane: what is done once, and what for each lane.
        shared_length, lane_length: the same in statements.
    """

    shared: float
    lane: float
    shared_length: int
    lane_length: int


COUNTS = (2, 3, 4, 8)
LONGEST = 900
"""So many statements a program of lanes may have: numba takes some 4 ms for one (570 in two lanes of bundle adjustment
took 2 s with the function itself), so that these are four seconds."""
GOOD_ENOUGH = 1.25
"""Fewer lanes are taken that cost at most so many times as much, as each makes the program longer."""


def lanes_for(found: Weights | None, examples: int) -> int:
    """How many lanes there should be for so many examples.

    There are few numbers to choose from, so that not every number of examples has a program of its own.
    """
    if found is None or examples < 2:
        return 1

    def time(count: int) -> float:
        return -(-examples // count) * (found.shared + count * found.lane)

    possible = [n for n in COUNTS if n <= examples and found.shared_length + n * found.lane_length <= LONGEST]
    if not possible:
        return 1
    fastest = min(map(time, possible))
    best = next(n for n in possible if time(n) <= GOOD_ENOUGH * fastest)
    return best if time(best) < 0.9 * examples * (found.shared + found.lane) else 1


class Gathered:
    """The results of all examples, with the axis of the examples in front.

    Attributes:
        found: by roles; of what is the same for all, the one value.
    """

    def __init__(self, examples: Examples, lanes: int) -> None:
        self.examples = examples
        self.lanes = lanes
        self.found = Found()
        self._shared: set[Role] = set()
        self._in_place: set[tuple[Role, int]] = set()
        self._unset: set[Role] = set()  # arrays that were not made of zeros
        self._clean: Counter[Role] = Counter()  # in how many examples of it there is no NaN

    def place(self, role: Role, number: int) -> tuple[Role, int | None]:
        """The role of which a result of a group is an example, and which; None for what all examples share."""
        if role[0] == "lane":
            return role[2], number * self.lanes + role[1]
        return role, number if self.lanes == 1 and self.examples.reach(role) else None

    def room(self, number: int) -> Room:
        """Where the program of a group writes, so that it writes into the arrays of all."""

        def room(role: Role, like: Any, is_begun: bool, is_filled: bool) -> Any:
            base, place = self.place(role, number)
            if place is None or place >= self.examples.size:
                return new_array(role, like, is_begun, is_filled)
            is_filled &= not is_begun
            if base not in self.found:
                self.found[base] = (empty if is_filled else zeros)((self.examples.size, *like.shape), like.dtype)
                if is_filled:
                    self._unset.add(base)
            part = self.found[base][place]
            if is_begun:
                part[...] = like
            elif not is_filled and base in self._unset:
                # Not the program that the array was made for.
                self._unset.remove(base)
                self.found[base][place:] = 0
            elif not is_filled and (base, place) in self._in_place:
                part[...] = 0
            self._in_place.add((base, place))
            return part

        return room

    def begin(self, role: Role, of_one: tuple[int, ...], dtype: Any, is_filled: bool) -> None:
        """Make the array of all results of a role, whose shape for one example is known."""
        if role not in self.found:
            self.found[role] = (empty if is_filled else zeros)((self.examples.size, *of_one), dtype)
            if is_filled:
                self._unset.add(role)

    def share(self, results: dict[Role, Any]) -> None:
        """Take results that are the same for all."""
        self.found |= results
        self._shared.update(results)

    def add(self, number: int, results: Found) -> None:
        """Take the results of a group."""
        to = (self.place(role, number) for role in results.clean)
        self._clean.update(base for base, place in to if place is not None and place < self.examples.size)
        for role, value in results.items():
            base, place = self.place(role, number)
            if place is None:
                self.share({base: value})
                continue
            if base not in self.found:
                of_one = asarray(value)
                self.found[base] = empty((self.examples.size, *of_one.shape), of_one.dtype)
            if place < self.examples.size and (base, place) not in self._in_place:
                if self.found[base].shape[1:] != shape(value):
                    raise ragged()
                self.found[base][place] = value

    def all(self) -> Found:
        """The results; those that turned out to be the same for all, though they need not be, for each."""
        for role in self._shared:
            if self.examples.reach(role):
                self.found[role] = self.examples.spread(self.found[role])
        self.found.clean = frozenset(role for role, count in self._clean.items() if count == self.examples.size)
        return self.found


def ragged() -> BatchError:
    return BatchError(RAGGED, "results of one shape, with zeros or a mask where there is nothing")


class Loop(NamedTuple):
    """What the text of a loop over groups depends on.

    Attributes:
        program: the name of the program of one group.
        lanes: how many examples a group has.
        params: for each of its parameters the lane, "group" for one that each group has for itself, or None.
        results: for each of its results the lane, or None for what is the same for all.
        ndims: the number of axes of each result, negative for a number.
    """

    program: str
    lanes: int
    params: tuple[Any, ...]
    results: tuple[int | None, ...]
    ndims: tuple[int, ...]

    @property
    def name(self) -> str:
        return f"each_{self.program}"

    def text(self) -> str:
        """The function of the range of groups, the program's parameters, and an array for each result of a lane.

        What differs has an axis of the examples, or of the groups, in front.
        """
        params = [f"p_{i}" for i in range(len(self.params))]
        args = [p + self.subscript(where) for p, where in zip(params, self.params, strict=True)]
        results = [f"r_{j}" for j in range(len(self.results))]
        outs = [f"out_{j}" for j, lane in enumerate(self.results) if lane is not None]
        call = f"{self.program}({', '.join(args)})"
        lines = [
            f"def {self.name}({', '.join(['start', 'stop', *params, *outs])}):",
            "    for k_ in range(start, stop):",
            f"        {', '.join(results)}, = {call}" if results else f"        {call}",
        ]
        for j, (lane, ndim) in enumerate(zip(self.results, self.ndims, strict=True)):
            if lane is not None:
                lines += self.stored(f"out_{j}", f"r_{j}", self.subscript(lane)[1:-1], ndim)
        return "\n".join(lines) + "\n"

    def subscript(self, where: Any) -> str:
        if where is None:
            return ""
        return "[k_]" if where == "group" or self.lanes == 1 else f"[{self.lanes} * k_ + {where}]"

    def stored(self, out: str, result: str, example: str, ndim: int) -> list[str]:
        lines = []
        index = [f"i_{axis}" for axis in range(max(ndim, 0))]
        if index:
            lines = [
                f"        if {result}.shape != {out}.shape[1:]:",
                f"            raise ValueError('{RAGGED}')",
            ]
        for axis, i in enumerate(index):
            lines.append("    " * (2 + axis) + f"for {i} in range({result}.shape[{axis}]):")
        read = f"{result}[{', '.join(index)}]" if index else result
        return [*lines, "    " * (2 + len(index)) + f"{out}[{', '.join([example, *index])}] = {read}"]
