"""Whole-array expressions: lazy until a loop over their elements is needed, with NumPy's broadcasting; reductions."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from retrograde.compiler import ops
from retrograde.compiler.form import Add, Copy, Index, Raise, Set
from retrograde.compiler.lower.builder import Builder, Restart
from retrograde.compiler.lower.values import Lazy, Object, is_field
from retrograde.compiler.source import At
from retrograde.compiler.types import INT, Operand, Type, type_of_number


class Arrays(Builder):
    # Buffers that the user's code writes into.
    written: set[str]

    def is_array(self, value: Any) -> bool:
        return isinstance(value, Lazy) or self.is_array_name(value)

    def is_complex(self, value: Any) -> bool:
        """Whether something is a complex number or an array of such."""
        return not isinstance(value, tuple | Object) and self.element_type(value).is_complex

    def shape(self, value: Any) -> tuple[Operand, ...]:
        """The sizes of an array; empty for a scalar."""
        if isinstance(value, Lazy):
            return value.shape
        return self.program.dims[value] if self.is_array_name(value) else ()

    def element_type(self, value: Any) -> Type:
        if isinstance(value, Lazy):
            return value.type
        return self.program.types[value].element if isinstance(value, str) else type_of_number(value)

    def reads(self, value: Any) -> frozenset[str]:
        if isinstance(value, Lazy):
            return value.reads
        return frozenset([value]) if self.is_array_name(value) else frozenset()

    def element(self, value: Any, index: Index) -> Operand:
        """One element of an array that is broadcast to the axes of the index; a scalar is its own element."""
        if not self.is_array(value):
            return value
        shape = self.shape(value)
        own = tuple(
            0 if type(n) is int and n == 1 else i for n, i in zip(shape, index[len(index) - len(shape) :], strict=True)
        )
        return value.element(own) if isinstance(value, Lazy) else self.load(value, own)

    def broadcast(self, values: tuple[Any, ...]) -> tuple[Operand, ...]:
        """The common shape of arrays and scalars; sizes that are not known to agree are compared at run time."""
        shapes = [self.shape(v) for v in values]
        ndim = max(map(len, shapes))
        common: list[Operand] = [1] * ndim
        for shape in shapes:
            for axis, n in enumerate(shape, ndim - len(shape)):
                if _is_one(common[axis]):
                    common[axis] = n
                elif not _is_one(n):
                    self.guard_equal(common[axis], n)
                    common[axis] = n if isinstance(common[axis], str) else common[axis]
        return tuple(common)

    def elementwise(self, fn: str, *args: Any) -> Any:
        """An operation on scalars and arrays, element by element."""
        if fn in ("-", "neg") and all(self.element_type(a).dtype.startswith("uint") for a in args):
            # numba computes with 64 bits and no sign, NumPy with as many bits as there are: -4 is neither of both.
            raise self.refuse("a difference of unsigned integers, which has no sign", "k.astype(np.int64)")
        if not any(self.is_array(a) for a in args):
            return self.op(fn, *args)
        shape = self.broadcast(args)
        types = tuple(self.element_type(a) for a in args)
        try:
            type = ops.result_type(fn, types)
        except TypeError:
            raise self.undefined(fn, types) from None
        args = tuple(self.force(a) if self.is_repeated(a, shape) else a for a in args)
        return Lazy(
            shape,
            lambda index: self.op(fn, *(self.element(a, index) for a in args)),
            type,
            frozenset().union(*(self.reads(a) for a in args)),
            ops.is_cheap(fn) and all(a.is_cheap for a in args if isinstance(a, Lazy)),
        )

    def is_repeated(self, value: Any, shape: tuple[Operand, ...]) -> bool:
        """Whether broadcasting would compute costly elements over and over."""
        if not isinstance(value, Lazy) or value.is_cheap:
            return False
        return len(value.shape) < len(shape) or any(
            _is_one(n) and not _is_one(m) for n, m in zip(value.shape, shape, strict=True)
        )

    def lazily(self, value: Any, shape: tuple[Operand, ...], element: Callable[[Index], Operand]) -> Lazy:
        """A rearrangement of the elements of one array."""
        is_cheap = value.is_cheap if isinstance(value, Lazy) else True
        return Lazy(shape, element, self.element_type(value), self.reads(value), is_cheap)

    def force(self, value: Any, base: str = "w") -> str:
        """The array in memory."""
        if not isinstance(value, Lazy):
            return value  # type: ignore[no-any-return]
        array = self.alloc(base, value.shape, value.type)
        self.assign_elements(array, value)
        return array

    def in_memory(self, value: Any, base: str = "w") -> str:
        """The array in memory, for a name of the user's to mean it."""
        made = self.force(value, base)
        if is_field(value):
            self.note_detached(made, value.part_of)
        return made

    def copied(self, value: Any, base: str = "w") -> str:
        """The array in memory of its own."""
        if isinstance(value, Lazy):
            return self.force(value, base)
        name = self.program.new(base, self.program.types[value], self.program.dims[value])
        self.emit(Copy(name, value))
        return name

    def safe_from(self, array: str, value: Any) -> Any:
        """The value, in memory of its own if writing into the array could change what it has yet to read."""
        if any(self.root(r) == self.root(array) for r in self.reads(value)):
            return self.copied(value)
        return value

    def assign_elements(self, array: str, value: Any, fn: str = "") -> None:
        """`array[...] = value`, or `array[...] fn= value`; the value must not read what is overwritten."""
        shape = self.program.dims[array]
        for n, m in zip(reversed(shape), reversed(self.shape(value)), strict=False):
            if not _is_one(m):
                self.guard_equal(n, m)
        for m in self.shape(value)[: max(len(self.shape(value)) - len(shape), 0)]:
            if not _is_one(m):
                raise self.refuse(
                    f"an array of {len(self.shape(value))} axes does not fit into one of {len(shape)}",
                )
        self.nest(shape, lambda index: self.assign_element(array, index, self.element(value, index), fn))

    def assign_element(self, array: str, index: Index, value: Operand, fn: str = "") -> None:
        """`array[index] = value`, or `array[index] fn= value`."""
        type = self.program.types[array].element
        if fn == "":
            self.store(array, index, value)
        elif fn in "+-" and ops.common(type, self.type_of(value)).kind == type.kind and type.kind in "fc":
            self.increase(array, index, value if fn == "+" else self.op("neg", value))
        else:
            self.store(array, index, self.op(fn, self.load(array, index), value))

    # --- copies where NumPy has views -----------------------------------------------------------------------------

    # What is a copy here and a view in NumPy: (copy, original, place of the call, the first write that matters).
    detachments: list[tuple[str, str, At | None, int]]
    # The buffers that are written into, in the order of the source.
    writes: list[str]
    # The places of calls whose results must be views, as something is written into them or the original.
    attached: set[At | None]

    def must_be_a_view(self) -> bool:
        return self.at in self.attached

    def detached(self, value: Lazy, original: str) -> Any:
        """A rearrangement in memory of its own, where NumPy makes a view."""
        made = self.force(value)
        self.note_detached(made, original)
        return made

    def note_detached(self, copy: str, original: str) -> None:
        since = len(self.writes) if self.before_loop is None else self.before_loop
        self.detachments.append((copy, original, self.at, since))

    def note_write(self, array: str) -> None:
        """The user's code writes into an array."""
        self.written.add(self.root(array))
        self.writes.append(self.root(array))

    def check_detached(self) -> None:
        """Start again with views, where something is written into a copy or its original."""
        for copy, original, at, since in self.detachments:
            if {copy, self.root(original)} & set(self.writes[since:]):
                if at in self.attached:
                    self.at = at
                    raise self.refuse(
                        "an array that shares its memory with another one here (a diagonal, a transpose, parts of a "
                        "complex array, or what a branch or loop chose) is written into, or the other one is",
                        "….copy()",
                    )
                self.attached.add(at)
                raise Restart

    # --- reductions ----------------------------------------------------------------------------------------------

    def reduce(self, value: Any, axes: tuple[int, ...] | None, keep: bool, fold: Callable[[Any, Any], Any]) -> Any:
        """A reduction over some axes, or all.

        Args:
            fold: `fold(shape, element)` reduces a part, given by its shape and its elements, to a scalar.
        """
        shape = self.shape(value)
        if axes is None or len(axes) == len(shape):
            result = fold(shape, lambda index: self.element(value, index))
            if not keep:
                return result
            return Lazy((1,) * len(shape), lambda index: result, self.type_of(result))
        if isinstance(value, Lazy) and not value.is_cheap:
            value = self.force(value)
        rest = [axis for axis in range(len(shape)) if axis not in axes]
        inner = tuple(shape[axis] for axis in sorted(axes))

        def part(index: Index) -> Operand:
            def element(within: Index) -> Operand:
                places = dict(zip([*rest, *sorted(axes)], (*index, *within), strict=True))
                return self.element(value, tuple(places[axis] for axis in range(len(shape))))

            return fold(inner, element)

        outer = tuple(shape[axis] for axis in rest)
        type = self.probe_type(outer, part)
        array = self.alloc("w", outer, type)
        self.nest(outer, lambda index: self.store(array, index, part(index)))
        if not keep:
            return array
        return Lazy(
            tuple(1 if axis in axes else n for axis, n in enumerate(shape)),
            lambda index: self.load(array, tuple(index[axis] for axis in rest)),
            type,
            frozenset([array]),
        )

    def fold_sum(self, shape: Any, element: Any) -> Operand:
        return self.fold_with("+", 0, shape, element)

    def fold_with(self, fn: str, start: Any, shape: Any, element: Any) -> Operand:
        """Fold with + or *; the cell is of the elements' type, integers for truth values."""
        type = self.probe_type(shape, element)
        if type.kind in "bu":
            type = INT
        cell = self.new_cell("s", type, self.cast(start, type))

        def step(index: Index) -> None:
            x = element(index)
            if fn == "+":
                self.emit(Add(cell, x))
            else:
                self.emit(Set(cell, self.op(fn, self.get(cell), x)))

        self.nest(shape, step)
        return self.get(cell)

    def probe_type(self, shape: Any, element: Any) -> Type:
        """The type of the elements, found by emitting one into a block that is thrown away."""
        saved, self.block = self.block, []
        found = self.type_of(element(tuple(self.program.new("i", INT) for _ in shape)))
        self.block = saved
        return found

    def fold_truth(self, is_all: bool, shape: Any, element: Any) -> Operand:
        """all or any."""
        cell = self.new_cell("s", Type("bool"), is_all)

        def step(index: Index) -> None:
            x = self.is_true(element(index))
            self.emit(Set(cell, self.op("and" if is_all else "or", self.get(cell), x)))

        self.nest(shape, step)
        return self.get(cell)

    def fold_extreme(self, sign: str, shape: Any, element: Any) -> Operand:
        """The largest (`>`) or smallest (`<`) element. Those that tie share its derivative.

        The search carries no derivative. Afterwards the one element that it found is looked at once more, or, where
        several tie, all of them.
        """
        self.guard_not_empty(shape)
        type = self.probe_type(shape, element)
        if type.is_complex:
            raise self.undefined(sign, (type,))
        found = self.new_cell("best", type, self.value_only(element(tuple(0 for _ in shape))))
        count = self.new_cell("count", INT, 0)
        places = [self.new_cell("place", INT, 0) for _ in shape]

        def search(index: Index) -> None:
            x = self.value_only(element(index))
            best = self.get(found)
            is_better = self.op(sign, x, best)
            if type.kind == "f":  # a NaN wins, as in NumPy
                is_better = self.op("or", is_better, self.op("!=", x, x))

            def better() -> None:
                self.emit(Set(found, x))
                self.emit(Set(count, 1))
                for place, i in zip(places, index, strict=True):
                    self.emit(Set(place, i))

            self.branch(
                is_better, better, lambda: self.branch(self.op("==", x, best), lambda: self.emit(Add(count, 1)))
            )

        self.nest(shape, search)
        best = self.get(found)
        if type.kind != "f":
            return best
        result = self.program.new("extreme", type)

        def only() -> None:
            self.emit(Set(result, element(tuple(self.get(place) for place in places))))

        def shared() -> None:
            ties = self.new_cell("ties", type, 0.0)

            def collect(index: Index) -> None:
                x = element(index)
                self.branch(self.op("==", self.value_only(x), best), lambda: self.emit(Add(ties, x)))

            self.nest(shape, collect)
            self.emit(Set(result, self.op("/", self.get(ties), self.get(count))))

        self.branch(self.op("==", self.get(count), 1), only, shared)
        return self.op("keep", best, self.get(result))

    def value_only(self, operand: Operand) -> Operand:
        """The same value, of which no derivative is taken."""
        return self.op("value", operand)

    def guard_not_empty(self, shape: Any) -> None:
        for n in shape:
            if type(n) is int and n == 0:
                raise self.refuse("zero-size array to reduction operation which has no identity")
            if isinstance(n, str):
                message = f"zero-size array to reduction operation which has no identity{self.where()}"
                self.branch(self.op("==", n, 0), functools.partial(self.emit, Raise("ValueError", message)))

    def size_of(self, shape: tuple[Operand, ...]) -> Operand:
        total: Operand = 1
        for n in shape:
            total = n if type(total) is int and total == 1 else self.op("*", total, n)
        return total


def _is_one(n: Operand) -> bool:
    return type(n) is int and n == 1


__all__ = ["Arrays"]
