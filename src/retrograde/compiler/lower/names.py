"""What names mean, and where paths meet.

A scalar that is bound on straight lines is just the operand that it was bound to. Only where paths meet (a loop, a
branch) does a name that is still wanted need a place that all paths write: a cell for a scalar, a slot for an array.

A slot is a buffer of its own into which every array that the name is bound to is copied. That is right as long as
nobody can tell: no write goes through a name that shares its array with another one. Where the code might tell, it is
refused (`check_borrowed`).
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from retrograde.compiler import ops
from retrograde.compiler.form import Set
from retrograde.compiler.known import Constant
from retrograde.compiler.lower.builder import Restart
from retrograde.compiler.lower.descriptions import describe
from retrograde.compiler.lower.expressions import Expressions
from retrograde.compiler.lower.values import Bound, Closure, InCell, Lazy, Object, PerhapsBound, Stale
from retrograde.compiler.source import At
from retrograde.compiler.types import BOOL, INT, Operand, Type, zero_of


class Names(Expressions):
    # What an earlier attempt found out about cells: the type that each needs, by the place where it is made.
    hints: dict[Any, Type]
    # Slots that hold an array which another name may share: (slot, the other buffer, name, place).
    borrowed: list[tuple[str, str, str, At | None]]

    # While one name is bound: the names that may be read afterwards. None where any may be.
    wanted: frozenset[str] | None = None

    # What the user calls temps and arrays that were made before they had his name.
    user_names: dict[str, str]

    def bind(self, name: str, value: Any) -> None:
        """`name = value`."""
        frame = self.frame
        if isinstance(value, str):
            self.user_names.setdefault(value, name)
        if name in frame.fixed:
            if value == frame.env.get(name):
                return
            raise self.refuse(
                f"{name} is {describe(self, frame.env[name])} before a loop or branch and something else after it",
                "names of their own"
                if not isinstance(frame.env[name], Constant)
                else f"a number or an array for {name} from the start",
            )
        if isinstance(value, tuple):
            self.bind_tuple(name, value)
        elif isinstance(value, Lazy) or self.is_array_name(value):
            self.bind_array(name, value)
        elif isinstance(value, Object):
            if name in frame.cells or name in frame.slots:
                raise self.refuse(
                    f"{name} is bound to a number or an array and to {describe(self, value)}", "two names"
                )
            frame.env[name] = value
        elif name in frame.slots:
            raise self.refuse(f"{name} is bound to an array and to a number", "two names")
        else:
            frame.env[name] = self.set_cell(name, value) if name in frame.cells else value

    def bind_array(self, name: str, value: Any) -> None:
        frame = self.frame
        if name in frame.cells:
            cell = frame.cells[name]
            if cell in self.unbound:  # it was thought to be a scalar, as nothing else was known
                self.array_names.add(self.cell_keys[cell])
                raise Restart
            raise self.refuse(f"{name} is bound to a number and to an array", "two names")
        if name in frame.slots:
            if self.is_array_name(value) and self.is_reachable(value, self.wanted):
                self.borrowed.append((frame.slots[name], self.root(value), name, self.at))
            self.rebind(name, value)
        else:
            frame.env[name] = self.in_memory(value, name)

    def bind_tuple(self, name: str, value: tuple[Any, ...]) -> None:
        # The parts of a tuple that changes along a loop would each need a place; names of their own have one.
        if name in self.frame.cells or name in self.frame.slots:
            raise self.refuse(f"the tuple {name} is bound in a loop or branch and used after it", "names for its parts")
        parts = [self.in_memory(v) if isinstance(v, Lazy) else v for v in value]
        self.frame.env[name] = type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)

    def is_reachable(self, array: str, wanted: frozenset[str] | None = None) -> bool:
        """Whether some name of the user's that is wanted yet means this array or a part of it."""
        own = [value for name, value in self.frame.env.items() if wanted is None or name in wanted]
        return self.is_seen(array, [*own, *self.seen_outside()])

    def is_seen(self, array: str, values: Sequence[Any]) -> bool:
        """Whether the array is the caller's or from outside, or a part of it is among the values."""
        root = self.root(array)
        from_outside = {constant for constant, _ in self.constants.values()}
        return root in from_outside or root in self.program.params or any(self.touches(v, root) for v in values)

    def set_cell(self, name: str, value: Operand) -> Operand:
        """Write a scalar into the cell of its name; the cell's type must hold it."""
        cell = self.frame.cells[name]
        self.widen(cell, value)
        value = self.cast(value, self.program.types[cell])
        self.emit(Set(cell, value))
        if cell in self.unbound:
            self.emit(Set(self.unbound[cell], True))
            self.frame.surely.add(cell)
        return value

    def widen(self, cell: str, value: Operand) -> None:
        type = self.program.types[cell]
        wanted = ops.common(type, self.type_of(value))
        if wanted != type:
            self.hints[self.cell_keys[cell]] = wanted
            raise Restart

    cell_keys: dict[str, Any]

    # --- slots ---------------------------------------------------------------------------------------------------

    def rebind(self, name: str, value: Any) -> None:
        """`name = value` for a name whose array lives in a slot: the elements are copied into the slot."""
        slot = self.frame.slots[name]
        if value == slot:
            return
        if len(self.shape(value)) != len(self.shape(slot)):
            raise self.refuse(f"{name} is bound to arrays of different numbers of axes", "two names")
        if ops.common(self.element_type(value), self.element_type(slot)) != self.element_type(slot):
            raise self.refuse(
                f"{name} is bound to an array of {self.element_type(slot)} and to one of {self.element_type(value)}",
                "one dtype from the start",
            )
        for n, m in zip(self.shape(slot), self.shape(value), strict=True):
            self.guard_equal(n, m, f"{name} changes its shape in a loop or branch, which compile does not take")
        value = self.safe_from(slot, value)
        self.make_stale(slot, name)
        self.nest(self.shape(slot), lambda index: self.store(slot, index, self.element(value, index)))
        if slot in self.unbound:
            self.emit(Set(self.unbound[slot], True))
        self.frame.env[name] = slot

    def make_stale(self, slot: str, owner: str) -> None:
        """Other names for an array that is about to be bound anew no longer mean what they meant."""
        for other, value in self.frame.env.items():
            if other != owner and self.touches(value, slot):
                self.frame.env[other] = Stale(owner, self.at)

    def touches(self, value: Any, slot: str) -> bool:
        if isinstance(value, tuple):
            return any(self.touches(v, slot) for v in value)
        if isinstance(value, Bound | PerhapsBound):
            return self.touches(value.array, slot)
        if isinstance(value, Closure):
            if value.frame in self.frames:
                return False  # it sees the names themselves
            around = (v for v in value.frame.env.values() if not isinstance(v, Closure) or v.frame is not value.frame)
            return any(self.touches(v, slot) for v in (*around, *value.defaults.values()))
        return self.is_array_name(value) and self.root(value) == self.root(slot)

    def check_borrowed(self) -> None:
        """Refuse writes through names that share an array with a name that is bound anew in a loop."""
        for slot, other, name, at in self.borrowed:
            if {slot, other} & self.written:
                self.at = at
                raise self.refuse(
                    f"{name} shares its array with another name here, is bound anew in a loop or branch, and one of "
                    "them is written into",
                    f"{name} = ….copy(), so that it has an array of its own",
                )

    # --- where paths meet ----------------------------------------------------------------------------------------

    def open_merge(self, node: Any) -> tuple[Any, ...]:
        """Give every name that must survive a loop or branch its place. Returns what `close_merge` puts back."""
        frame = self.frame
        saved = dict(frame.cells), dict(frame.slots), frame.fixed
        for name in sorted(node.assigned & node.wanted):
            value: Any = frame.env.get(name)
            if name in frame.cells:
                # What it was bound to last is what it means in the first iteration only.
                frame.env[name] = InCell(frame.cells[name])
                continue
            if name in frame.slots or isinstance(value, Stale):
                continue
            if isinstance(value, tuple | Object):
                frame.fixed = frame.fixed | {name}
            elif self.is_array_name(value) or isinstance(value, PerhapsBound):
                self.make_slot(name, value, None if isinstance(node, ast.If) else node.wanted)
            elif value is not None or self.key_of(name, node) not in self.array_names:
                self.make_cell(name, value, node)
        for name in node.assigned & frame.slots.keys():
            self.make_stale(frame.slots[name], name)
        return saved

    def key_of(self, name: str, node: Any) -> Any:
        return self.frame.path, name, node.lineno, node.col_offset, isinstance(node, ast.If)

    def close_merge(self, node: Any, saved: tuple[Any, ...]) -> None:
        """Behind a loop or branch: names mean what is in their places; those without a place are gone."""
        frame = self.frame
        cells, slots, fixed = saved
        for name in sorted(node.assigned):
            if name in frame.slots:
                frame.env[name] = self.in_slot(frame.slots[name])
            elif name in cells:
                frame.env[name] = InCell(frame.cells[name])
            elif name in frame.cells:
                cell = frame.cells[name]
                is_bound = cell not in self.unbound or cell in frame.surely or name in frame.trusted
                frame.env[name] = self.get(cell) if is_bound else InCell(cell)
            elif name not in frame.fixed:
                frame.env.pop(name, None)
        # The buffer of a slot is the array of its name from now on.
        frame.cells, frame.slots, frame.fixed = cells, slots, fixed

    def make_cell(self, name: str, value: Operand | None, node: Any) -> None:
        key = self.key_of(name, node)
        flag: Operand = False
        if isinstance(value, InCell):  # perhaps bound by an earlier loop or branch
            flag = self.get(self.unbound[value.cell])
            value = self.get(value.cell)
        type = BOOL if value is None else self.type_of(value)
        type = INT if type.kind in "iu" else type
        if key in self.hints:
            type = ops.common(type, self.hints[key])
        cell = self.program.new(name, type)
        self.cell_keys[cell] = key
        start: Operand = zero_of(type) if value is None else value
        self.emit(Set(cell, self.cast(start, type)))
        self.frame.cells[name] = cell
        self.frame.env[name] = InCell(cell)
        if value is None or flag is not False:
            self.unbound[cell] = self.new_cell(f"{name}_is_bound", BOOL, flag)

    # Names that were first thought to be scalars: by the places where they would get their cells.
    array_names: set[Any]

    def make_slot(self, name: str, value: str | PerhapsBound, wanted: frozenset[str] | None) -> None:
        self.frame.env.pop(name)
        array = value.array if isinstance(value, PerhapsBound) else value
        if self.root(array) != array or self.is_reachable(array, wanted):
            slot = self.copied(array, name)
            self.borrowed.append((slot, self.root(array), name, self.at))
        else:
            slot = array  # nobody else knows it
        if isinstance(value, PerhapsBound):
            self.unbound[slot] = value.flag
        self.frame.slots[name] = slot
        self.frame.env[name] = self.in_slot(slot)

    def in_slot(self, slot: str) -> str | PerhapsBound:
        return PerhapsBound(slot, self.unbound[slot]) if slot in self.unbound else slot
