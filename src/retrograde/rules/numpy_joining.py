"""Functions that put arrays together, take them apart, and choose between them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from retrograde.errors import MutationError
from retrograde.originals import np
from retrograde.rules.contractions import as_array
from retrograde.rules.numpy_indexing import scatter
from retrograde.rules.points import call, complex_, real
from retrograde.rules.products import selected, unbroadcast
from retrograde.rules.table import Like, composed, linear

Likes = Like | Sequence[Like]
"""A sequence of arrays; one array stands for the sequence of its rows."""


def _members(arrays: Likes) -> Sequence[Like]:
    if isinstance(arrays, Like):  # before anything else, since a Like is itself a tuple
        return [Like(arrays.shape[1:], arrays.dtype)] * arrays.shape[0]
    return [like if isinstance(like, Like) else Like(_shape(like), np.dtype(float)) for like in arrays]


def _shape(arrays: Any) -> tuple[int, ...]:
    """Of an array, or of nested sequences that stand for one."""
    return arrays.shape if isinstance(arrays, Like) else (len(arrays), *(_shape(arrays[0]) if arrays else ()))


def _as_given(arrays: Likes, bars: list[Any]) -> Any:
    """The members' cotangents, as a list if the members were given in one and as an array if in an array."""
    return np.stack(bars) if isinstance(arrays, Like) else bars


def _at(axis: int, place: Any) -> tuple[Any, ...]:
    """The key of a place along an axis."""
    return (*(slice(None),) * axis, place)


def _cut(y_bar: Any, arrays: Likes, lengths: Iterable[int], axis: int) -> Any:
    """The pieces of `y_bar` along the axis, each in its member's shape."""
    ends = [0, *itertools.accumulate(lengths)]
    bars = []
    for like, (start, end) in zip(_members(arrays), itertools.pairwise(ends), strict=True):
        piece = y_bar[_at(axis, slice(start, end))]
        bars.append(piece if np.shape(piece) == like.shape else np.reshape(piece, like.shape))
    return _as_given(arrays, bars)


# --- joins -----------------------------------------------------------------------------------------------------------


def concatenate_adjoint(y_bar: Any, arrays: Likes, /, axis: int | None = 0, *, casting: str = "same_kind") -> Any:
    members = _members(arrays)
    if axis is None:
        return _cut(y_bar, arrays, (like.size for like in members), 0)
    axis %= np.ndim(y_bar)
    return _cut(y_bar, arrays, (like.shape[axis] for like in members), axis)


def stack_adjoint(y_bar: Any, arrays: Likes, axis: int = 0, *, casting: str = "same_kind") -> Any:
    if isinstance(arrays, Like):
        return np.moveaxis(y_bar, axis, 0)
    axis %= np.ndim(y_bar)
    return [y_bar[_at(axis, i)] for i in range(len(arrays))]


def hstack_adjoint(y_bar: Any, tup: Likes, *, casting: str = "same_kind") -> Any:
    """Along the second axis, but along the first if the first member has no second one."""
    members = _members(tup)
    axis = 0 if members[0].ndim <= 1 else 1
    return _cut(y_bar, tup, (like.shape[axis] if like.ndim else 1 for like in members), axis)


def vstack_adjoint(y_bar: Any, tup: Likes, *, casting: str = "same_kind") -> Any:
    return _cut(y_bar, tup, (like.shape[0] if like.ndim > 1 else 1 for like in _members(tup)), 0)


def dstack_adjoint(y_bar: Any, tup: Likes) -> Any:
    return _cut(y_bar, tup, (like.shape[2] if like.ndim > 2 else 1 for like in _members(tup)), 2)


def column_stack_adjoint(y_bar: Any, tup: Likes) -> Any:
    return _cut(y_bar, tup, (like.shape[1] if like.ndim > 1 else 1 for like in _members(tup)), 1)


def append_body(arr: Any, values: Any, axis: int | None = None) -> Any:
    return np.concatenate((as_array(arr), as_array(values)), axis)


def block_body(arrays: Any) -> Any:
    """Innermost lists are joined along the last axis, those around them along the one before it, and so on."""
    depth = _depth(arrays)
    ndim = max(depth, *map(np.ndim, _leaves(arrays)), 0)
    return _join(arrays, depth, ndim) if depth else np.copy(arrays)


def _depth(arrays: Any) -> int:
    if not isinstance(arrays, list):
        return 0
    depths = {_depth(each) for each in arrays}
    if len(depths) != 1:
        raise ValueError("np.block needs lists that are not empty, with all arrays at one depth of nesting")
    return 1 + depths.pop()


def _leaves(arrays: Any) -> Iterable[Any]:
    return itertools.chain.from_iterable(map(_leaves, arrays)) if isinstance(arrays, list) else (arrays,)


def _join(arrays: Any, depth: int, ndim: int) -> Any:
    if depth == 0:
        shape = np.shape(arrays)
        return np.reshape(arrays, (1,) * (ndim - len(shape)) + shape)
    return np.concatenate([_join(each, depth - 1, ndim) for each in arrays], axis=-depth)


linear(
    np.concatenate,
    concatenate_adjoint,
    at=[
        call([real(-1, 1, 2, 3), real(-1, 1, 1, 3)]),
        call((complex_(-1, 1, 2, 1), complex_(-1, 1, 2, 0), real(-1, 1, 2, 2)), axis=-1),
        call([real(-1, 1, 2, 3), real(-1, 1)], axis=None),
        call([real(-1, 1, 2), np.ones(3), [1.0, 2.0]]),
        call(real(-1, 1, 2, 3, 2), 1),
    ],
)
_VECTORS = [real(-1, 1, 2), complex_(-1, 1, 2), np.ones(2)]
_MATRICES = (real(-1, 1, 2, 3), real(-1, 1, 2, 3))
linear(
    np.stack,
    stack_adjoint,
    at=[
        call(_VECTORS),
        call(_MATRICES, axis=-1),
        call(_MATRICES, 1),
        call([real(-1, 1), real(-1, 1), 2.0]),
        call(real(-1, 1, 2, 3, 2), axis=-2),
    ],
)
linear(
    np.hstack,
    hstack_adjoint,
    at=[
        call(_VECTORS),
        call([real(-1, 1), real(-1, 1, 2)]),
        call((real(-1, 1, 2, 1), real(-1, 1, 2, 3))),
        call(real(-1, 1, 2, 3, 2)),
    ],
)
linear(
    np.vstack,
    vstack_adjoint,
    at=[call(_VECTORS), call([real(-1, 1), 2.0]), call((real(-1, 1, 2, 3), real(-1, 1, 3))), call(real(-1, 1, 2, 3))],
)
linear(
    np.dstack,
    dstack_adjoint,
    at=[
        call(_VECTORS),
        call([real(-1, 1), 2.0]),
        call((real(-1, 1, 2, 3), real(-1, 1, 2, 3, 2))),
        call(real(-1, 1, 2, 3, 2)),
    ],
)
linear(
    np.column_stack,
    column_stack_adjoint,
    at=[call(_VECTORS), call([real(-1, 1), 2.0]), call((real(-1, 1, 2, 3), real(-1, 1, 2))), call(real(-1, 1, 2, 3))],
)
composed(
    np.append,
    append_body,
    at=[
        call(real(-1, 1, 2, 3), real(-1, 1, 2)),
        call(real(-1, 1, 2, 3), real(-1, 1, 2, 1), axis=1),
        call(complex_(-1, 1, 2), 1.5),
    ],
)
composed(
    np.block,
    block_body,
    at=[
        call([[real(-1, 1, 2, 2), real(-1, 1, 2, 1)], [real(-1, 1, 1, 2), 3.0]]),
        call([real(-1, 1, 2), complex_(-1, 1), [1.0, 2.0][0]]),
        call([[real(-1, 1, 3)], [real(-1, 1, 3)]]),
        call([real(-1, 1, 2, 2, 1), real(-1, 1, 2, 2, 1)]),
        call(real(-1, 1, 2, 3)),
    ],
)


# --- splits ----------------------------------------------------------------------------------------------------------


def array_split_adjoint(y_bar: Any, ary: Like, indices_or_sections: Any, axis: int = 0) -> Any:
    """Join the pieces' cotangents, with zeros for those that have none.

    Indices that run backwards name pieces that overlap or leave gaps, whose cotangents are added in their places.
    """
    axis %= ary.ndim
    positions = np.arange(ary.shape[axis])
    pieces = np.array_split(positions, indices_or_sections)
    if np.array_equal(np.concatenate(pieces), positions):
        shapes = [(*ary.shape[:axis], len(piece), *ary.shape[axis + 1 :]) for piece in pieces]
        return np.concatenate(_filled(y_bar, shapes, ary.dtype), axis)
    bars = [
        scatter(bar, _at(axis, piece), ary.shape) for bar, piece in zip(y_bar, pieces, strict=True) if bar is not None
    ]
    return sum(bars[1:], start=bars[0])


def hsplit_adjoint(y_bar: Any, ary: Like, indices_or_sections: Any) -> Any:
    return array_split_adjoint(y_bar, ary, indices_or_sections, 1 if ary.ndim > 1 else 0)


def vsplit_adjoint(y_bar: Any, ary: Like, indices_or_sections: Any) -> Any:
    return array_split_adjoint(y_bar, ary, indices_or_sections, 0)


def dsplit_adjoint(y_bar: Any, ary: Like, indices_or_sections: Any) -> Any:
    return array_split_adjoint(y_bar, ary, indices_or_sections, 2)


def unstack_adjoint(y_bar: Any, x: Like, /, *, axis: int = 0) -> Any:
    axis %= x.ndim
    shape = (*x.shape[:axis], *x.shape[axis + 1 :])
    return np.stack(_filled(y_bar, [shape] * x.shape[axis], x.dtype), axis)


def _filled(bars: Any, shapes: list[tuple[int, ...]], dtype: Any) -> list[Any]:
    return [np.zeros(shape, dtype) if bar is None else bar for bar, shape in zip(bars, shapes, strict=True)]


_SPLIT_POINTS = [
    call(complex_(-1, 1, 4), 2),
    call(real(-1, 1, 4, 2), [1, 3]),
    call(real(-1, 1, 2, 3), (2,), axis=-1),
    call(real(-1, 1, 4), [1, 1, 9]),
    call(real(-1, 1, 4), [3, 1]),
    call(real(-1, 1, 4), [-1]),
]
linear(np.array_split, array_split_adjoint, at=[*_SPLIT_POINTS, call(real(-1, 1, 5, 2), 3)])
linear(np.split, array_split_adjoint, at=_SPLIT_POINTS)
linear(np.hsplit, hsplit_adjoint, at=[call(complex_(-1, 1, 4), 2), call(real(-1, 1, 2, 3), [1])])
linear(np.vsplit, vsplit_adjoint, at=[call(complex_(-1, 1, 4, 2), 2), call(real(-1, 1, 3, 2), [1])])
linear(np.dsplit, dsplit_adjoint, at=[call(complex_(-1, 1, 1, 2, 4), 2), call(real(-1, 1, 2, 1, 3), [1])])
linear(
    np.unstack,
    unstack_adjoint,
    at=[call(complex_(-1, 1, 2, 3)), call(real(-1, 1, 2, 3), axis=-1), call(real(-1, 1, 3))],
)


def meshgrid_body(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> tuple[Any, ...]:
    """Input i varies along axis i; with "xy" indexing the first two axes are exchanged."""
    if indexing not in ("xy", "ij"):
        raise ValueError("Valid values for `indexing` are 'xy' and 'ij'.")
    axes = list(range(len(xi)))
    if indexing == "xy":
        axes[:2] = axes[:2][::-1]
    sizes = [np.size(x) for x in xi]
    whole = tuple(sizes[axis] for axis in axes)  # the exchange is its own inverse
    outputs = []
    for x, size, axis in zip(xi, sizes, axes, strict=True):
        y: Any = np.reshape(x, tuple(size if i == axis else 1 for i in range(len(xi))))
        if not sparse:
            y = np.broadcast_to(y, whole)
        outputs.append(np.copy(y) if copy else y)
    return tuple(outputs)


composed(
    np.meshgrid,
    meshgrid_body,
    at=[
        call(real(-1, 1, 2), complex_(-1, 1, 3)),
        call(real(-1, 1, 2), real(-1, 1, 3), real(-1, 1), indexing="ij"),
        call(real(-1, 1, 2), real(-1, 1, 3), np.ones(2), sparse=True),
        call(real(-1, 1, 2, 2), real(-1, 1, 3), copy=False),
        call(real(-1, 1, 2)),
    ],
)


# --- deletions and insertions ----------------------------------------------------------------------------------------


def delete_body(arr: Any, obj: Any, axis: int | None = None) -> Any:
    """What remains is read by a mask, so that its adjoint is a plain assignment."""
    if axis is None:
        arr, axis = np.ravel(arr), 0
    axis %= np.ndim(arr)
    length = np.shape(arr)[axis]
    kept = np.zeros(length, bool)
    kept[np.delete(np.arange(length), obj)] = True
    return arr[_at(axis, kept)]


def insert_body(arr: Any, obj: Any, values: Any, axis: int | None = None) -> Any:
    """A read of both, joined: NumPy says from where, by inserting the values' positions among the array's."""
    arr, values = _stacked(arr), _stacked(values)
    dtype = as_array(arr).dtype  # with its byte order
    if dtype.kind not in "fc" and np.result_type(values).kind in "fc":
        raise MutationError(
            f"np.insert would truncate a {np.result_type(values)} to {dtype}, which loses its derivative",
            "arr.astype(float), before it is inserted into",
        )
    places = np.arange(np.size(arr)).reshape(np.shape(arr))
    value_places = np.arange(np.size(arr), np.size(arr) + np.size(values)).reshape(np.shape(values))
    y = np.take(np.concatenate((arr, values), axis=None), np.insert(places, obj, value_places, axis))
    return y if y.dtype == dtype else np.astype(y, dtype)


def _stacked(values: Any) -> Any:
    return np.stack(values) if isinstance(values, (list, tuple)) and values else values


composed(
    np.delete,
    delete_body,
    at=[
        call(complex_(-1, 1, 4), 1),
        call(real(-1, 1, 4), [0, -1, 0]),
        call(real(-1, 1, 2, 3), slice(None, None, 2), axis=-1),
        call(real(-1, 1, 2, 3), 4),
        call(real(-1, 1, 2, 3), np.array([True, False]), 0),
        call(real(-1, 1, 3), []),
    ],
)
composed(
    np.insert,
    insert_body,
    at=[
        call(real(-1, 1, 3), 1, real(-1, 1)),
        call(real(-1, 1, 2, 3), -1, real(-1, 1, 2), axis=1),
        call(real(-1, 1, 2, 3), 1, real(-1, 1), axis=1),
        call(complex_(-1, 1, 2, 3), [0, 0, 2], complex_(-1, 1, 3, 3), axis=0),
        call(real(-1, 1, 2, 2), [1, 3], real(-1, 1, 2)),
        call(real(-1, 1, 3), slice(0, 2), real(-1, 1)),
        call(real(-1, 1, 3), 0, [real(-1, 1), 2.0]),
        call(real(-1, 1, 2, 2), [0], real(-1, 1, 2, 1), axis=1),
    ],
)


# --- choices ---------------------------------------------------------------------------------------------------------


def where_x_adjoint(y_bar: Any, condition: Any, x: Any = None, y: Any = None, /) -> Any:
    return unbroadcast(selected(y_bar, condition), x.shape)


def where_y_adjoint(y_bar: Any, condition: Any, x: Any = None, y: Any = None, /) -> Any:
    return unbroadcast(selected(y_bar, np.logical_not(condition)), y.shape)


def select_body(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> Any:
    """From the last choice to the first, which takes precedence."""
    if len(condlist) != len(choicelist):
        raise ValueError("list of cases must be same length as list of conditions")
    if len(condlist) == 0:
        raise ValueError("select with an empty condition list is not possible")
    kinds = [x if type(x) in (int, float, complex) else as_array(x).dtype for x in (*choicelist, default)]
    dtype = np.result_type(*kinds)
    result: Any = np.asarray(default, dtype) if type(default) in (int, float, complex) else default
    for i, (condition, choice) in reversed(list(enumerate(zip(condlist, choicelist, strict=True)))):
        condition = np.asarray(condition)
        if condition.dtype.kind != "b":
            raise TypeError(f"invalid entry {i} in condlist: should be boolean ndarray")
        result = np.where(condition, choice, result)
    return result if result.dtype == dtype else result.astype(dtype)


def choose_adjoint(y_bar: Any, a: Any, choices: Likes, *, mode: str = "raise") -> Any:
    members = _members(choices)
    chosen = np.asarray(a)
    if mode == "wrap":
        chosen = chosen % len(members)
    elif mode == "clip":
        chosen = np.clip(chosen, 0, len(members) - 1)
    bars = [unbroadcast(selected(y_bar, chosen == i), like.shape) for i, like in enumerate(members)]
    return _as_given(choices, bars)


def piecewise_body(x: Any, condlist: Any, funclist: Sequence[Any], *args: Any) -> Any:
    """Each function is called, as NumPy does it, on the elements where its condition holds, and on no others.

    Where several conditions hold the last one counts. The result has the dtype of `x`.
    """
    shape, dtype = np.shape(x), as_array(x).dtype
    conditions = _conditions(shape, condlist, len(funclist))
    x = np.reshape(x, shape or (1,))  # a number has no elements to read
    y: Any = np.zeros(np.shape(x), dtype)
    for condition, piece in zip(
        conditions.reshape(len(conditions), *(conditions.shape[1:] or (1,))), funclist, strict=True
    ):
        elements = x[condition]
        if isinstance(piece, Callable):  # type: ignore[arg-type]
            if elements.size == 0:
                continue
            piece = piece(elements, *args)
        if np.ndim(piece):
            piece = scatter(np.broadcast_to(piece, np.shape(elements)), condition, np.shape(x))
        y = np.where(np.reshape(condition, condition.shape + (1,) * (np.ndim(x) - condition.ndim)), piece, y)
    y = np.reshape(y, shape)
    return y if y.dtype == dtype else np.astype(y, dtype)


def _conditions(shape: tuple[int, ...], condlist: Any, functions: int) -> Any:
    """One mask for each function; the last is the complement of the others where only that is missing."""
    if np.isscalar(condlist) or (not isinstance(condlist[0], (list, np.ndarray)) and shape != ()):
        condlist = [condlist]
    conditions = np.asarray(condlist, bool)
    if len(conditions) == functions - 1:
        conditions = np.concatenate([conditions, ~np.any(conditions, axis=0, keepdims=True)])
    if len(conditions) != functions:
        n = len(conditions)
        raise ValueError(f"with {n} condition(s), either {n} or {n + 1} functions are expected")
    return conditions


def extract_body(condition: Any, arr: Any) -> Any:
    return np.take(np.ravel(arr), np.flatnonzero(condition))


def compress_body(condition: Any, a: Any, axis: int | None = None) -> Any:
    """The condition may be shorter than the axis."""
    if np.ndim(condition) != 1:
        raise ValueError("condition must be a 1-d array")
    return np.take(a, np.flatnonzero(condition), axis)


linear(
    np.where,
    where_x_adjoint,
    where_y_adjoint,
    args=(1, 2),
    at=[
        call(np.array([True, False, True]), real(-1, 1, 3), real(-1, 1, 3)),
        call(np.array([[True], [False]]), complex_(-1, 1, 3), real(-1, 1)),
        call([1, 0], real(-1, 1, 3, 1), 2.0),
        call(True, real(-1, 1), real(-1, 1, 2)),
        call(np.array([], bool), real(-1, 1), real(-1, 1, 0)),
    ],
)
_FIRST = np.array([True, False, False])
_SECOND = np.array([[True, True, False], [False, False, False]])
composed(
    np.select,
    select_body,
    at=[
        call([_FIRST, _SECOND], [real(-1, 1, 3), real(-1, 1, 2, 3)], real(-1, 1)),
        call([_FIRST, _SECOND], [complex_(-1, 1), 2.0]),
        call([_FIRST], [real(-1, 1, 3)], default=3.0),
    ],
)
linear(
    np.choose,
    choose_adjoint,
    args=(1,),
    at=[
        call(np.array([0, 2, 1]), [real(-1, 1, 3), complex_(-1, 1), np.ones((2, 1))]),
        call([[0, 1], [1, 1]], real(-1, 1, 2, 2)),
        call(np.array([-1, 4]), (real(-1, 1, 2), real(-1, 1, 2)), mode="wrap"),
        call(np.array([-1, 4]), (real(-1, 1, 2), real(-1, 1, 2)), mode="clip"),
    ],
)
composed(
    np.piecewise,
    piecewise_body,
    at=[
        call(real(0.1, 1, 3), [_FIRST], [np.sqrt, np.negative]),
        call(complex_(-1, 1, 2, 3), [_SECOND, ~_SECOND], [np.square, 2.0]),
        call(real(-1, 1, 3), [_FIRST, [True, True, False]], [np.add, np.multiply, 1.0], 3.0),
        call(real(-1, 1), True, [np.square, 0.0]),
        call(real(-1, 1, 3, 2), [_FIRST], [np.square]),
    ],
)
composed(
    np.extract,
    extract_body,
    at=[call(_SECOND, complex_(-1, 1, 2, 3)), call([1, 0, 1], real(-1, 1, 3)), call(~_FIRST[:2], real(-1, 1, 2, 2))],
)
composed(
    np.compress,
    compress_body,
    at=[
        call([True, False, True], complex_(-1, 1, 2, 3), axis=1),
        call([0, 1], real(-1, 1, 2, 3), 0),
        call(np.array([True, False, True, True]), real(-1, 1, 2, 3)),
    ],
)
