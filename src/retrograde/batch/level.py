"""The level of a batch: its values have an axis of examples in front, and operations are mapped over that axis."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from retrograde.batch.keys import raw_read, raw_write
from retrograde.batch.layout import apart, spread
from retrograde.batch.table import Mapping, mapping_of, one_by_one, refusal
from retrograde.batch.units import Diagonal, computed
from retrograde.originals import np
from retrograde.rules import numpy_indexing
from retrograde.rules.table import Composed
from retrograde.trace.call import call
from retrograde.trace.creation import array_of
from retrograde.trace.handle import HANDLES, MAPPED, VIEWS, Traced
from retrograde.trace.keys import BatchedKey, fixed_key
from retrograde.trace.level import Level
from retrograde.trace.mapped import MappedView, become_mapped, hold
from retrograde.trace.memory import READ_ONLY, is_read_only, set_read_only
from retrograde.trace.views import shares_memory, snapshot
from retrograde.trace.writing import follow


class BatchLevel(Level):
    """A level whose values are those of `size` examples."""

    __slots__ = ("size",)

    maps = True

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size

    # --- values

    def holds(self, x: Any) -> bool:
        """Whether `x` differs between the examples of this batch."""
        return type(x) in MAPPED and x.level is self

    def aligned(self, x: Any, ndim: int) -> Any:
        """The values of all examples, where each example counts as an array of `ndim` dimensions; others as they are.

        Further axes go between that of the examples and those of one, so that broadcasting finds the right ones.
        """
        if not self.holds(x):
            return x
        raw = x.primal
        missing = ndim + 1 - len(raw.shape)
        return raw[(slice(None), *(None,) * missing)] if missing > 0 else raw

    def each(self, x: Any) -> Any:
        """The values of all examples; those of a constant again and again, without a copy."""
        if self.holds(x):
            return x.primal
        x = array_of(x)
        return np.broadcast_to(x, (self.size, *np.shape(x)))

    def wrap(self, raw: Any) -> Any:
        if isinstance(raw, tuple | list):
            parts = [self.wrap(part) for part in raw]
            return type(raw)(*parts) if hasattr(raw, "_fields") else type(raw)(parts)
        return raw if raw is None else hold(apart(raw), self)

    # --- operations

    def map(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self.number()  # raises, once the mapped function has ended
        for x in args:
            if type(x) is Diagonal and not kwargs and x.level is self:
                found = computed(function, args, self)
                if found is not None:
                    return found
                break
        mapping = mapping_of(function)
        if type(mapping) is Mapping and mapping.is_new and not kwargs:
            return self.wrap(mapping.compute(self, *args))
        if mapping is None:
            raise refusal(function)
        if isinstance(mapping, Composed):
            return _by_body(mapping, args, kwargs)
        if mapping.is_body:
            return mapping.compute(self, *args, **kwargs)
        return self._viewed(function, args, kwargs, mapping.compute(self, *args, **kwargs))

    def one_by_one(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self.number()
        return one_by_one(function, self, args, kwargs)

    def examples(self, args: tuple[Any, ...]) -> tuple[int, list[Any], list[bool]]:
        self.number()
        held = [self.holds(x) for x in args]
        return self.size, [x.primal if h else x for x, h in zip(args, held, strict=True)], held

    def _viewed(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], raw: Any) -> Any:
        """The result of a call: a view of the one batched argument, if it shares its memory."""
        several = type(raw) is tuple or type(raw) is list
        first: Any = (raw[0] if raw else None) if several else raw
        places = [i for i, x in enumerate(args) if type(x) in MAPPED and x.level is self]
        if len(places) != 1:
            return self.wrap(raw)
        if type(first) is np.ndarray:
            if first.base is None and first is not args[places[0]].primal:
                return self.wrap(raw)
        elif type(first) not in VIEWS and first is not args[places[0]].primal:
            return self.wrap(raw)
        place = places[0]
        x = args[place]
        before, after = args[:place], args[place + 1 :]

        def step(v: Any) -> Any:
            return function(*before, v, *after, **kwargs)

        if several:
            return type(raw)(view(x, lambda v, k=k: step(v)[k], part) for k, part in enumerate(raw))  # type: ignore[misc]
        return view(x, step, raw)

    # --- reading and writing

    def read(self, x: Any, key: Any) -> Any:
        self.number()
        try:
            key = fixed_key(key)
        except BatchedKey:
            return self.map(numpy_indexing.getitem, (x, key), {})
        raw = raw_read(x, key)
        if len(raw.shape) == 1 and not _has_ellipsis(key):
            # A number, and not a view of the array that it stands in.
            return hold(snapshot(raw) if type(raw) in HANDLES else raw.copy(), self)
        return view(x, operator.itemgetter(key), raw)

    def prepare(self, x: Traced) -> None:
        become_mapped(x)

    def spread_in_place(self, x: Traced) -> None:
        whole = snapshot(x)
        x.primal = spread(whole, self.size)
        x.link = True  # an array without axes is one all the same
        x.level = self
        become_mapped(x)

    def place(self, x: Any, path: Any, key: Any, value: Any) -> tuple[Any, Any, Any]:
        part = follow(x, path)
        key, value = raw_write(self, part.shape, key, value)
        return ((_RawStep(path),) if path else ()), key, value


def _has_ellipsis(key: Any) -> bool:
    return any(entry is Ellipsis for entry in key) if type(key) is tuple else key is Ellipsis


class _RawStep:
    """A path of a batched array, as a step of the array with the axis of the examples in front."""

    __slots__ = ("path",)

    def __init__(self, path: Any) -> None:
        self.path = path

    def __call__(self, raw: Any) -> Any:
        # A sweep comes here when the batch itself has ended long ago.
        return follow(hold(raw, BatchLevel(raw.shape[0])), self.path).primal


def view(x: Any, step: Callable[[Any], Any], raw: Any) -> Any:
    """What a mapping has computed of `x` as a view of it, if it shares its memory."""
    if raw is x.primal:
        return x
    if not shares_memory(raw, x.primal):
        return hold(apart(raw), x.level)
    v = MappedView()
    if READ_ONLY and is_read_only(x):
        set_read_only(v, True)
    v.base, v.path = (x.base, (*x.path, step)) if type(x) in VIEWS else (x, (step,))
    v.read, v.version = raw, v.base.primal
    return v


def _by_body(rule: Composed, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return call(rule.function, args, kwargs)
