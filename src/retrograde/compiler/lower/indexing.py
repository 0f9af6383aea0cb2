"""Subscripts: elements, views by integers and slices, gathers by masks and integer arrays, and assignments to them."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from retrograde.compiler import ops
from retrograde.compiler.form import Add, Index, Slice
from retrograde.compiler.known import Constant
from retrograde.compiler.lower.arrays import Arrays
from retrograde.compiler.lower.values import NONE, Lazy, is_field
from retrograde.compiler.types import BOOL, INT, Operand


class Indexing(Arrays):
    def subscript(self, value: Any, items: list[Any]) -> Any:
        """`value[items]`: an element, a view, or a gather."""
        if is_field(value):
            return self.field(self.subscript(value.part_of, items), value.field)
        items = self.completed(value, items)
        if any(self.is_array(i) for i in items):
            return self.gather(value, items)
        self.guard_indices(items, self.shape(value))
        if isinstance(value, Lazy):
            if not any(isinstance(i, Slice) or i is None for i in items):
                return value.element(self.nonnegative(items, value.shape))
            value = self.force(value)
        if not any(isinstance(i, Slice) or i is None for i in items):
            return self.load(value, tuple(items))
        return self.view(value, tuple(items))

    def field(self, z: Any, name: str) -> Any:
        """The real or imaginary part of a complex number or array."""
        found = self.elementwise(name, z)
        is_view = self.is_array_name(z) and self.element_type(z).is_complex
        return replace(found, part_of=z, field=name) if is_view else found

    def guard_indices(self, items: list[Any], shape: tuple[Operand, ...]) -> None:
        """Compare the integers of a subscript with the axes that they are for."""
        sizes = iter(shape)
        for i in items:
            size = None if i is None else next(sizes)
            if i is not None and not isinstance(i, Slice):
                self.guard_index(i, size)

    def nonnegative(self, items: list[Any], shape: tuple[Operand, ...]) -> Index:
        """Integers that count from the front."""
        found: list[Operand] = []
        for i, n in zip(items, shape, strict=True):
            if isinstance(i, str):
                found.append(self.op("where", self.op("<", i, 0), self.op("+", i, n), i))
            else:
                found.append(i if i >= 0 else self.op("+", n, i))
        return tuple(found)

    def completed(self, value: Any, items: list[Any]) -> list[Any]:
        """The items of a subscript as operands, slices, new axes and arrays, one for each axis."""
        ndim = len(self.shape(value))
        converted = [self.item(i) for i in items]
        used = sum(self.axes_used(i) for i in converted if i is not Ellipsis)
        if used > ndim:
            raise self.refuse(f"{used} indices for an array of {ndim} axes")
        missing = [Slice()] * (ndim - used)
        if Ellipsis in [i for i in converted if i is Ellipsis]:
            k = next(j for j, i in enumerate(converted) if i is Ellipsis)
            return [*converted[:k], *missing, *(i for i in converted[k + 1 :])]
        return [*converted, *missing]

    def axes_used(self, item: Any) -> int:
        if item is None:
            return 0
        return len(self.shape(item)) if self.is_array(item) and self.element_type(item) == BOOL else 1

    def item(self, item: Any) -> Any:
        if item is NONE:
            return None
        if isinstance(item, Constant):
            if item.value is Ellipsis or item.value is None:
                return item.value
            raise self.refuse(f"{item.value!r} is no index")
        if isinstance(item, Slice):
            return Slice(*(None if b is None or b is NONE else b for b in item))
        if isinstance(item, tuple):
            return self.item(self.array_of(item))
        if self.is_array(item):
            if self.element_type(item).kind not in "iub":
                raise self.refuse("an array of floats as an index", "x[indices.astype(np.int64)]")
            return item
        if self.type_of(item).kind not in "iu":
            if self.type_of(item) == BOOL:
                raise self.refuse("a truth value as an index", "an if")
            raise self.refuse(f"an index of type {self.type_of(item)}", "int(i)")
        return item

    def array_of(self, item: tuple[Any, ...]) -> Any:
        """A list of integers or truth values in the place of an index."""
        if not item or any(self.is_array(i) or isinstance(i, tuple | Constant) for i in item):
            raise self.refuse("a list as an index that does not hold numbers", "an array of integers")
        type = ops.common(*(self.element_type(i) for i in item))
        array = self.alloc("w", (len(item),), type)
        for k, i in enumerate(item):
            self.store(array, (k,), i)
        return array

    def gather(self, value: Any, items: list[Any]) -> Any:
        """`x[mask]`, `x[indices]`, `x[rows, columns]`: a copy, one element of the index arrays at a time."""
        value, items = self.parted(value, items)
        if len(items) == 1 and self.element_type(items[0]) == BOOL:
            return self.gather_masked(value, items[0])
        shape, place = self.places_of(value, items)
        reads = self.reads(value).union(*(self.reads(i) for i in items))
        is_cheap = not isinstance(value, Lazy) or value.is_cheap
        return Lazy(shape, lambda index: self.element(value, place(index)), self.element_type(value), reads, is_cheap)

    def places_of(self, value: Any, items: list[Any]) -> tuple[tuple[Operand, ...], Callable[[Index], Index]]:
        """The shape of `value[items]`, of arrays of integers and whole axes, and the place of each element of it."""
        if any(self.is_array(i) and self.element_type(i) == BOOL for i in items):
            raise self.refuse("a mask together with other indices", "np.where, or a loop with an if")
        if any(i is None for i in items):
            raise self.refuse("a new axis together with an array of integers", "two subscripts, x[i][:, None]")
        # Integers count as arrays of one element.
        advanced = [k for k, i in enumerate(items) if not isinstance(i, Slice)]
        if advanced != list(range(advanced[0], advanced[0] + len(advanced))):
            raise self.refuse("arrays of integers on both sides of a slice", "two subscripts")
        items = [self.force(i) if isinstance(i, Lazy) else i for i in items]
        inner = self.broadcast(tuple(items[k] for k in advanced))
        first = advanced[0]
        shape = self.shape(value)

        def place(index: Index) -> Index:
            within = index[first : first + len(inner)]
            places: list[Operand] = []
            for axis in range(len(shape)):
                if axis < first:
                    places.append(index[axis])
                elif axis < first + len(advanced):
                    i = self.element(items[axis], within)
                    self.guard_index(i, shape[axis])
                    places.append(i if isinstance(value, str) else self.nonnegative([i], (shape[axis],))[0])
                else:
                    places.append(index[axis - len(advanced) + len(inner)])
            return tuple(places)

        return (*shape[:first], *inner, *shape[first + len(advanced) :]), place

    def parted(self, value: Any, items: list[Any]) -> tuple[Any, list[Any]]:
        """Slices, and integers beside one mask, as a view; what remains to be looked up in it.

        Whole axes behind a mask in front need no mention.
        """
        masks = [k for k, i in enumerate(items) if self.is_array(i) and self.element_type(i) == BOOL]
        if (
            any(i is None for i in items)
            or len(masks) > 1
            or (masks and len(items) - 1 > sum(not self.is_array(i) for i in items))
        ):
            return value, items
        if masks and masks[0] > 0 and any(isinstance(i, Slice) for i in items[: masks[0]]):
            return value, items
        first: list[Any] = []
        rest: list[Any] = []
        for i in items:
            if self.is_array(i):
                first += [Slice()] * self.axes_used(i)
                rest.append(i)
            elif isinstance(i, Slice):
                first.append(i)
                rest.append(Slice())
            elif masks:
                first.append(i)
            else:
                first.append(Slice())
                rest.append(i)
        if any(i != Slice() for i in first):
            value = self.view(self.force(value), tuple(first))
        if masks and self.is_array(rest[0]):
            rest = rest[:1]
        return value, rest

    def gather_masked(self, value: Any, mask: Any) -> Any:
        shape, place = self.places_of_mask(value, mask)
        return Lazy(shape, lambda index: self.element(value, place(index)), self.element_type(value), self.reads(value))

    def places_of_mask(self, value: Any, mask: Any) -> tuple[tuple[Operand, ...], Callable[[Index], Index]]:
        """The shape of `value[mask]`, and the place of each element of it."""
        places = self.true_places(mask)
        shape = self.shape(value)
        for n, m in zip(shape, self.shape(mask), strict=False):
            self.guard_equal(n, m, "the mask and the array differ in shape", "IndexError")

        def place(index: Index) -> Index:
            found = tuple(self.load(places, (index[0], axis)) for axis in range(len(self.shape(mask))))
            return (*found, *index[1:])

        return (self.program.dims[places][0], *shape[len(self.shape(mask)) :]), place

    def true_places(self, mask: Any) -> str:
        """Where a mask is true: an array with a row of indices for each place."""
        mask = self.force(mask)
        shape = self.shape(mask)
        total = self.new_cell("count", INT, 0)
        self.nest(shape, lambda index: self.branch(self.element(mask, index), lambda: self.emit(Add(total, 1))))
        places = self.alloc("places", (self.get(total), len(shape)), INT)
        row = self.new_cell("row", INT, 0)

        def put(index: Index) -> None:
            def there() -> None:
                at = self.get(row)
                for axis, i in enumerate(index):
                    self.store(places, (at, axis), i)
                self.emit(Add(row, 1))

            self.branch(self.element(mask, index), there)

        self.nest(shape, put)
        return places

    # --- assignment ----------------------------------------------------------------------------------------------

    def assign_subscript(self, array: Any, items: list[Any], value: Any, fn: str = "") -> None:
        """`array[items] = value`, or with an operator `array[items] fn= value`."""
        if is_field(array):
            raise self.refuse("an assignment to a part of a complex array", "z[i] = x + 1j * z[i].imag")
        if not self.is_array_name(array):
            raise self.refuse("an assignment to an element of something that is no array in memory")
        self.note_write(array)
        items = self.completed(array, items)
        if any(self.is_array(i) for i in items):
            return self.scatter(array, items, value, fn)
        self.guard_indices(items, self.shape(array))
        if not any(isinstance(i, Slice) or i is None for i in items):
            if self.is_array(value):
                raise self.refuse("an array assigned to one element", "x[i, :] = row")
            return self.assign_element(array, tuple(items), value, fn)
        target = array if all(i == Slice() for i in items) else self.view(array, tuple(items))
        self.assign_elements(target, self.safe_from(array, value), fn)
        return None

    def scatter(self, array: str, items: list[Any], value: Any, fn: str) -> None:
        """`x[mask] = v`, `x[indices] += v`: in the order of the indices, so that the last of equal ones counts."""
        array, items = self.parted(array, items)
        if len(items) == 1 and self.element_type(items[0]) == BOOL and not self.is_array(value):
            mask = self.force(items[0])
            for n, m in zip(self.program.dims[array], self.shape(mask), strict=False):
                self.guard_equal(n, m, "the mask and the array differ in shape", "IndexError")
            self.nest(
                self.program.dims[array],
                lambda index: self.branch(
                    self.element(mask, index[: len(self.shape(mask))]),
                    lambda: self.assign_element(array, index, value, fn),
                ),
            )
            return
        if len(items) == 1 and self.element_type(items[0]) == BOOL:
            shape, place = self.places_of_mask(array, items[0])
        else:
            shape, place = self.places_of(array, items)

        if fn:  # x[i] += v reads all of x[i] before it writes
            old = Lazy(
                shape,
                lambda index: self.load(array, place(index)),
                self.program.types[array].element,
                frozenset([array]),
            )
            value = self.elementwise(fn, old, value)
        value = self.safe_from(array, value)
        for n, m in zip(reversed(shape), reversed(self.shape(value)), strict=False):
            if m != 1:
                self.guard_equal(n, m, "shape mismatch in an assignment")
        if len(self.shape(value)) > len(shape):
            raise self.refuse("an array of more axes than the places that it is assigned to")
        self.nest(shape, lambda index: self.store(array, place(index), self.element(value, index)))


def items_of(node: ast.expr) -> list[ast.expr]:
    """The items of a subscript."""
    return list(node.elts) if isinstance(node, ast.Tuple) else [node]


__all__ = ["Indexing", "items_of"]
