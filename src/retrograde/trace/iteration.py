"""Going through the elements of arrays: `np.ndenumerate` and `np.nditer`.

Both would take the memory of an array for as long as they run, and could not see that a traced value is written into
it. Here each element is looked up when it comes, so that what was written by then is seen, as in NumPy.
"""

from __future__ import annotations

from typing import Any

from retrograde.errors import MutationError
from retrograde.originals import np
from retrograde.trace.constant import constant_here
from retrograde.trace.creation import array_of, contains_traced
from retrograde.trace.handle import HANDLES, example_of
from retrograde.trace.memory import set_read_only

enumerate_init = np.ndenumerate.__init__


def enumerated(self: np.ndenumerate[Any], arr: Any) -> None:
    """`np.ndenumerate(arr)`."""
    if type(arr) in HANDLES and isinstance(arr, np.ndarray):
        self.iter = arr.flat  # type: ignore[attr-defined]
    else:
        enumerate_init(self, arr)


class _Answers(type):
    """`isinstance(x, np.nditer)` is true of NumPy's own."""

    def __instancecheck__(cls, x: Any) -> bool:
        return type.__instancecheck__(cls, x) or isinstance(x, _nditer)


_nditer = np.nditer


class Iterator(metaclass=_Answers):
    """`np.nditer(op, ...)`: NumPy's own, unless one of the operands is a traced array or one that is made inside.

    Then NumPy goes through the positions of the elements, which lie in memory as the array does, so that the order, the
    broadcasting and the indices are NumPy's; what stands at a position is a view of the array.

    Raises:
        MutationError: what is wanted are not views of single elements.
    """

    __slots__ = ("_is_alone", "_operands", "_positions", "_reads")

    def __new__(cls, op: Any, *args: Any, **kwargs: Any) -> Any:
        return super().__new__(cls) if contains_traced(op) else _nditer(op, *args, **kwargs)

    def __init__(
        self,
        op: Any,
        flags: Any = None,
        op_flags: Any = None,
        op_dtypes: Any = None,
        order: Any = "K",
        casting: Any = "safe",
        op_axes: Any = None,
        itershape: Any = None,
        buffersize: Any = 0,
    ) -> None:
        refused = [flag for flag in flags or () if flag in _REFUSED] + ["op_dtypes="] * (op_dtypes is not None)
        if refused:
            raise MutationError(
                f"np.nditer(..., {refused[0]}) of a traced array would give parts of its memory, or of a copy of it",
                "np.nditer without it, which gives one element after the other",
                "np.ndenumerate, np.ndindex, or slices",
            )
        self._is_alone = not isinstance(op, list | tuple)
        operands = [_array(x) for x in ([op] if self._is_alone else op)]
        places = [_places(x) if type(x) in HANDLES else x for x in operands]
        given = {"op_axes": op_axes, "itershape": itershape}
        given = {name: value for name, value in given.items() if value is not None}
        positions: Any = _nditer(
            places[0] if self._is_alone else places,
            flags,
            op_flags,
            None,
            order,
            casting,
            buffersize=buffersize,
            **given,
        )
        self._positions = positions
        for k, x in enumerate(operands):
            if x is None:
                # NumPy has made an array of it; what it makes it for is to be written to.
                numbers = positions.operands[k]
                operands[k] = constant_here(np.empty_like(numbers, np.result_type(*map(_dtype, operands))))
                numbers[...] = np.arange(numbers.size).reshape(numbers.shape)
        self._operands = operands
        each = [op_flags] * len(operands) if not op_flags or isinstance(op_flags[0], str) else op_flags
        self._reads = [x is not None and not _WRITES & {*(flag or ())} for x, flag in zip(places, each, strict=True)]

    @property
    def operands(self) -> tuple[Any, ...]:
        return tuple(self._operands)

    @property
    def value(self) -> Any:
        """The elements at which the iterator is."""
        elements = tuple(self[k] for k in range(len(self._operands)))
        return elements[0] if len(elements) == 1 else elements

    def __iter__(self) -> Iterator:
        return self

    def __next__(self) -> Any:
        next(self._positions)
        return self.value

    def __len__(self) -> int:
        return len(self._operands)

    def __getitem__(self, k: Any) -> Any:
        if isinstance(k, slice):
            return tuple(self[i] for i in range(len(self))[k])
        x, place = self._operands[k], self._positions[k]
        if type(x) not in HANDLES:
            return place
        element = x[(*np.unravel_index(int(place), x.shape), ...)]
        if self._reads[k]:
            set_read_only(element, True)
        return element

    def __setitem__(self, k: Any, value: Any) -> None:
        if isinstance(k, slice):
            for i, part in zip(range(len(self))[k], value, strict=True):
                self[i] = part
        else:
            self[k][...] = value

    def __enter__(self) -> Iterator:
        self._positions.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._positions.__exit__(*error)

    def copy(self) -> Iterator:
        """One at the same place, which goes on by itself."""
        other = object.__new__(type(self))
        other._is_alone, other._operands, other._reads = self._is_alone, self._operands, self._reads
        other._positions = self._positions.copy()
        return other

    __copy__ = copy

    def __getattr__(self, name: str) -> Any:
        if name in _MEMORY:
            raise MutationError(
                f"np.nditer(...).{name} of a traced array would give parts of its memory",
                "the elements, which the iterator gives one after the other",
            )
        return getattr(self._positions, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in Iterator.__slots__:
            object.__setattr__(self, name, value)
        else:
            setattr(self._positions, name, value)


_REFUSED = frozenset({"external_loop", "buffered", "grow_inner", "delay_bufalloc"})
_MEMORY = frozenset({"itviews", "enable_external_loop"})
_WRITES = frozenset({"readwrite", "writeonly"})


def _array(x: Any) -> Any:
    """An operand as an array; None, which stands for one that NumPy makes, as it is."""
    if isinstance(x, list | tuple) and contains_traced(x):
        x = array_of(x)
    return np.copy(x) if type(x) in HANDLES and not isinstance(x, np.ndarray) else x


def _dtype(x: Any) -> Any:
    return np.bool_ if x is None else getattr(x, "dtype", x)


def _places(x: Any) -> np.ndarray[Any, Any]:
    """The numbers of the elements of an array in an array that lies in memory as it does."""
    value: Any = example_of(x)
    numbers = np.arange(value.size).reshape(value.shape)
    width, strides = numbers.itemsize, value.strides
    if not value.size or any(stride % value.itemsize for stride in strides):
        return numbers
    strides = tuple(stride // value.itemsize * width for stride in strides)
    reach = [stride * (n - 1) for stride, n in zip(strides, value.shape, strict=True)]
    start = -sum(min(r, 0) for r in reach)
    memory = np.empty(start + sum(max(r, 0) for r in reach) + width, np.uint8)
    laid: np.ndarray[Any, Any] = np.ndarray(value.shape, numbers.dtype, memory, start, strides)
    # Elements that share memory are one: whichever number stays is the same element.
    laid[...] = numbers
    return laid
