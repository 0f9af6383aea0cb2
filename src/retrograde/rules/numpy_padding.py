"""`np.pad`, mode by mode: every mode is composed of joins, gathers and statistics along one axis after the other."""

from __future__ import annotations

import math
from typing import Any

from retrograde.errors import UnsupportedArgumentError
from retrograde.originals import np
from retrograde.rules.numpy_indexing import scatter
from retrograde.rules.points import call, complex_, distinct, real
from retrograde.rules.products import somewhere, times
from retrograde.rules.table import composed

_OPTIONS = {
    "constant": "constant_values",
    "linear_ramp": "end_values",
    "maximum": "stat_length",
    "mean": "stat_length",
    "median": "stat_length",
    "minimum": "stat_length",
    "reflect": "reflect_type",
    "symmetric": "reflect_type",
    "edge": None,
    "wrap": None,
    "empty": None,
}
_STATISTICS = {"maximum": np.max, "mean": np.mean, "median": np.median, "minimum": np.min}


def pad_body(
    array: Any,
    pad_width: Any,
    mode: Any = "constant",
    *,
    constant_values: Any = None,
    end_values: Any = None,
    stat_length: Any = None,
    reflect_type: Any = None,
) -> Any:
    """Pad the axes in their order, each with what the padding of the earlier ones has made of the array."""
    given = {
        "constant_values": constant_values,
        "end_values": end_values,
        "stat_length": stat_length,
        "reflect_type": reflect_type,
    }
    option = _checked_option(mode, given)
    value = given[option] if option else None
    shape = array.shape if hasattr(array, "shape") else np.shape(array)
    ndim = len(shape)
    widths = _widths(pad_width, ndim)
    if value is None and mode in ("constant", "linear_ramp"):
        value = 0
    # What nothing is added to is copied, and a number becomes an array, whatever the mode.
    is_whole = not any(map(any, widths))
    if is_whole or mode == "empty" or (mode == "constant" and _is_zero(value)):
        return _surrounded_by_zeros(array, shape, widths)
    dtype = array.dtype
    if mode != "constant":
        _check_not_empty(shape, widths)
    if mode in ("constant", "linear_ramp"):
        values = _pairs(value, ndim)
        pad_axis = _pad_with_constants if mode == "constant" else _pad_with_ramps
        for axis, width in enumerate(widths):
            array = pad_axis(array, axis, width, values[axis])
    elif mode in _STATISTICS:
        lengths = _pairs(value, ndim)
        for axis, width in enumerate(widths):
            array = _pad_with_statistic(array, axis, width, lengths[axis], _STATISTICS[mode])
    elif mode == "edge":
        for axis, width in enumerate(widths):
            array = _pad_with_edges(array, axis, width)
    else:
        for axis, width in enumerate(widths):
            array = _pad_periodically(array, axis, width, mode, odd=value == "odd")
    return array if array.dtype == dtype else np.astype(array, dtype)  # joins have the byte order of the machine


def _is_zero(value: Any) -> bool:
    """Whether it is the zero that new memory is filled with, which has no sign."""
    return type(value) in (int, float) and value == 0 and math.copysign(1, value) > 0


# --- arguments -------------------------------------------------------------------------------------------------------


def _checked_option(mode: Any, options: dict[str, Any]) -> str | None:
    """The name of the option that the mode takes; the others must be None."""
    if callable(mode):
        raise UnsupportedArgumentError(
            f"np.pad with mode={getattr(mode, '__name__', mode)!r}: a function that writes into the padded array in "
            "place has no derivative rule",
            "one of NumPy's named modes",
            "np.concatenate of the array and what your function computes",
        )
    if mode not in _OPTIONS:
        raise ValueError(f"mode '{mode}' is not supported")
    option = _OPTIONS[mode]
    given = set()
    for name, value in options.items():
        if value is not None and name != option:
            given.add(name)
    if given:
        raise ValueError(f"unsupported keyword arguments for mode '{mode}': {given}")
    return option


def _widths(pad_width: Any, ndim: int) -> list[tuple[int, int]]:
    if isinstance(pad_width, dict):
        widths: list[Any] = [(0, 0)] * ndim
        for axis, width in pad_width.items():
            widths[axis] = width if isinstance(width, tuple) else (width, width)
        pad_width = widths
    if type(pad_width) is int and pad_width >= 0:
        return [(pad_width, pad_width)] * ndim
    pad_width = np.asarray(pad_width)
    if pad_width.dtype.kind != "i" and pad_width.size:
        raise TypeError("`pad_width` must be of integral type.")
    if somewhere(pad_width < 0):
        raise ValueError("index can't contain negative values")
    return [(before, after) for before, after in np.broadcast_to(pad_width, (ndim, 2)).tolist()]


def _pairs(values: Any, ndim: int) -> list[tuple[Any, Any]]:
    """What stands before and after each axis; by hand, since the values in a list may be traced."""
    shape = _nested_shape(values)
    if shape == ():
        return [(values, values)] * ndim
    if len(shape) == 1:
        if shape[0] == 1:
            return [(values[0], values[0])] * ndim
        if shape[0] == 2:
            return [(values[0], values[1])] * ndim
    elif len(shape) == 2 and shape[0] in (1, ndim) and shape[1] in (1, 2):
        rows = [values[0]] * ndim if shape[0] == 1 else values
        return [(rows[i][0], rows[i][shape[1] - 1]) for i in range(ndim)]
    raise ValueError(f"cannot broadcast values of shape {shape} to the {ndim} axes' pairs (before, after)")


def _nested_shape(values: Any) -> tuple[int, ...]:
    if isinstance(values, (list, tuple)):
        return (len(values), *(_nested_shape(values[0]) if values else ()))
    return () if values is None else np.shape(values)


def _check_not_empty(shape: tuple[int, ...], widths: list[tuple[int, int]]) -> None:
    for axis, (n, width) in enumerate(zip(shape, widths, strict=True)):
        if n == 0 and any(width):
            raise ValueError(f"can't extend empty axis {axis} using modes other than 'constant' or 'empty'")


# --- modes -----------------------------------------------------------------------------------------------------------


def _surrounded_by_zeros(array: Any, shape: tuple[int, ...], widths: list[tuple[int, int]]) -> Any:
    """Also for mode "empty", whose padding is undefined."""
    key, padded = [], []
    for n, (before, after) in zip(shape, widths, strict=True):
        key.append(slice(before, before + n))
        padded.append(before + n + after)
    return scatter(array, tuple(key), tuple(padded))


def _slice(array: Any, axis: int, start: int, stop: int) -> Any:
    return array[(*(slice(None),) * axis, slice(start, stop))]


def _block(value: Any, array: Any, axis: int, width: int) -> Any:
    """`value` broadcast to the shape of `array`, but for the width along the axis, and in the array's dtype."""
    shape = np.shape(array)
    block = np.broadcast_to(value, (*shape[:axis], width, *shape[axis + 1 :]))
    return block if block.dtype == array.dtype else np.astype(block, array.dtype)


def _joined(before: Any, array: Any, after: Any, axis: int) -> Any:
    parts = [part for part in (before, array, after) if part is array or np.shape(part)[axis]]
    return np.concatenate(parts, axis) if len(parts) > 1 else array


def _pad_with_constants(array: Any, axis: int, width: tuple[int, int], values: tuple[Any, Any]) -> Any:
    before, after = (_block(value, array, axis, n) for value, n in zip(values, width, strict=True))
    return _joined(before, array, after, axis)


def _pad_with_edges(array: Any, axis: int, width: tuple[int, int]) -> Any:
    if not any(width):
        return array
    n = np.shape(array)[axis]
    before = _block(_slice(array, axis, 0, 1), array, axis, width[0])
    return _joined(before, array, _block(_slice(array, axis, n - 1, n), array, axis, width[1]), axis)


def _pad_with_ramps(array: Any, axis: int, width: tuple[int, int], ends: tuple[Any, Any]) -> Any:
    if not any(width):
        return array
    n = np.shape(array)[axis]
    before, after = (
        np.linspace(end, _slice(array, axis, place, place + 1), count, endpoint=False, axis=axis)
        for end, place, count in zip(ends, (0, n - 1), width, strict=True)
    )
    # The edge, kept to line the shapes up, has left an axis of length one after the ramp's own.
    before, after = np.squeeze(before, axis + 1), np.flip(np.squeeze(after, axis + 1), axis)
    return _joined(_block(before, array, axis, width[0]), array, _block(after, array, axis, width[1]), axis)


def _pad_with_statistic(array: Any, axis: int, width: tuple[int, int], lengths: tuple[Any, Any], statistic: Any) -> Any:
    n = np.shape(array)[axis]
    first, last = (n if length is None else min(n, length) for length in lengths)
    if any(width) and 0 in (first, last) and statistic in (np.max, np.min):
        raise ValueError("stat_length of 0 yields no value for padding")
    before = after = _slice(array, axis, n, n)
    if width[0]:
        before = _block(statistic(_slice(array, axis, 0, first), axis=axis, keepdims=True), array, axis, width[0])
    if width[1]:
        after = _block(statistic(_slice(array, axis, n - last, n), axis=axis, keepdims=True), array, axis, width[1])
    return _joined(before, array, after, axis)


def _pad_periodically(array: Any, axis: int, width: tuple[int, int], mode: Any, odd: bool) -> Any:
    """Reflections and repetitions are gathers: NumPy itself says from where, by padding the positions.

    A reflection of odd type is, besides, taken about the edges, perhaps many times: y = s·x[from] + p·x[0] + q·x[-1],
    with factors that NumPy tells by padding three arrays, which are one at the inner, the first, the last position.
    """
    n = np.shape(array)[axis]
    if not any(width):
        return array
    sources = np.pad(np.arange(n), width, mode=mode)
    if not odd or n == 1:
        return np.take(array, sources, axis)
    probes = np.zeros((n, 3))
    probes[1:-1, 0] = 1
    probes[0, 1] = probes[-1, 2] = 1
    s, p, q = np.moveaxis(np.pad(probes, (width, (0, 0)), mode=mode, reflect_type="odd"), 1, 0).astype(array.dtype)
    s, p, q = (np.expand_dims(factor, tuple(range(1, np.ndim(array) - axis))) for factor in (s, p, q))
    first, last = _slice(array, axis, 0, 1), _slice(array, axis, n - 1, n)
    return times(s, np.take(array, sources, axis)) + times(p, first) + times(q, last)  # an edge may be infinite


composed(
    np.pad,
    pad_body,
    at=[
        call(complex_(-1, 1, 2, 3), 1),
        call(real(-1, 1, 2, 3), ((1, 0), (0, 2)), "constant", constant_values=0.5),
        call(real(-1, 1, 2, 2), (1, 2), constant_values=((1, real(-1, 1)), (real(-1, 1), 2))),
        call(real(-1, 1, 2), 1, constant_values=real(-1, 1, 2)),
        call(real(-1, 1, 2, 3), 2, "edge"),
        call(real(-1, 1, 2, 3), ((1, 2), (0, 3)), "linear_ramp", end_values=real(-1, 1)),
        call(real(-1, 1, 3), 2, "linear_ramp"),
        call(distinct(-1, 1, 2, 3), ((1, 2), (0, 2)), "maximum", stat_length=2),
        call(distinct(-1, 1, 2, 3), 1, "minimum"),
        call(real(-1, 1, 2, 3), ((1, 2), (2, 0)), "mean", stat_length=((1, 2), (2, 3))),
        call(distinct(-1, 1, 2, 3), 1, "median"),
        call(complex_(-1, 1, 2, 3), ((1, 0), (5, 4)), "reflect"),
        call(real(-1, 1, 3, 2), ((5, 4), (0, 3)), "reflect", reflect_type="odd"),
        call(real(-1, 1, 1, 3), 2, mode="reflect", reflect_type="odd"),
        call(real(-1, 1, 2, 3), ((1, 3), (4, 0)), "symmetric"),
        call(complex_(-1, 1, 4), (7, 9), "symmetric", reflect_type="odd"),
        call(real(-1, 1, 2, 3), ((3, 1), (0, 7)), "wrap"),
    ],
)
