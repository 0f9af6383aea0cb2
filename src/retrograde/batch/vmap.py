"""`vmap`: a function of one example as a function of many."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import optree

from retrograde.batch import mappings  # noqa: F401  fills the table
from retrograde.batch.level import BatchLevel
from retrograde.errors import BatchError, InputError
from retrograde.originals import np
from retrograde.trace.handle import HANDLES, is_traced, shape_of
from retrograde.trace.interception import traceable
from retrograde.trace.mapped import hold
from retrograde.trace.running import interruptible, run
from retrograde.trace.structure import NAMESPACE, flatten, unflatten
from retrograde.trace.views import settled, snapshot


def vmap(f: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0) -> Callable[..., Any]:
    """The function that computes `f` of every example of a batch at once, without a loop in Python.

    Args:
        f: a function of one example. What it returns may be an array, a number or a container of these.
        in_axes: which axis of each argument the examples lie along. An integer for all arguments, or a tuple with an
            entry for each: an integer, None for an argument that is the same for all examples, or a container of such
            with the upper part of the argument's structure.
        out_axes: where the axis of the examples stands in what is returned; likewise. None for a result that is the
            same for all examples.

    Returns:
        A function of the same positional arguments, with an axis more. Keyword arguments are the same for all examples.

    Raises:
        BatchError: the sizes of the axes differ, or `f` does something that cannot be done for all examples at once,
            such as a branch that depends on their values.

    >>> vmap(lambda x, y: x @ y)(np.ones((5, 3)), np.ones((5, 3)))
    array([3., 3., 3., 3., 3.])
    >>> vmap(grad(lambda w, x: (w @ x) ** 2), in_axes=(None, 0))(np.ones(2), np.eye(2))
    array([[2., 0.],
           [0., 2.]])
    """
    return functools.partial(_vmap, f, in_axes, out_axes)


@interruptible
def _vmap(f: Callable[..., Any], in_axes: Any, out_axes: Any, /, *args: Any, **kwargs: Any) -> Any:
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    if isinstance(in_axes, tuple) and len(in_axes) != len(args):
        raise BatchError(
            f"in_axes has {len(in_axes)} entries; the function was called with {len(args)} arguments",
            "one entry for each positional argument, or one integer for all",
        )
    flat = [flatten(arg) for arg in args]
    axes: list[list[Any]] = []
    for i, arg in enumerate(args):
        spec = in_axes[i] if isinstance(in_axes, tuple) else in_axes
        axes.append(_prefix(spec, arg, len(flat[i][0]), f"in_axes of argument {i}", "the argument"))
    size = _size([(i, leaf, axis) for i, (leaves, _) in enumerate(flat) for leaf, axis in zip(leaves, axes[i])])
    level = BatchLevel(size)

    def lift(leaf: Any, axis: int | None) -> Any:
        if axis is None or not _has_axes(leaf):
            return leaf
        raw = snapshot(leaf)
        return hold(raw if axis == 0 else np.moveaxis(raw, axis, 0), level)

    lifted = [
        unflatten(structure, [lift(leaf, axis) for leaf, axis in zip(leaves, axes[i], strict=True)])
        for i, (leaves, structure) in enumerate(flat)
    ]
    given = [leaf for leaves, _ in flat for leaf in leaves]
    return mapped_over(level, f, lifted, kwargs, out_axes, given)


def mapped_over(
    level: BatchLevel,
    f: Callable[..., Any],
    lifted: list[Any],
    kwargs: dict[str, Any],
    out_axes: Any = 0,
    given: Sequence[Any] = (),
) -> Any:
    """What `f` returns for arguments that are values of a batch; `given` are those arrays that are the caller's own."""
    f = traceable(f)
    outputs = run(level, lambda: settled(f(*lifted, **kwargs)), f)
    ys, structure = flatten(outputs)
    places = _prefix(out_axes, outputs, len(ys), "out_axes", "the result")
    return unflatten(structure, [_collected(level, y, axis, given) for y, axis in zip(ys, places, strict=True)])


def _has_axes(leaf: Any) -> bool:
    """Whether a leaf can have an axis of examples; constants of other kinds (text, functions) are passed on."""
    return type(leaf) in HANDLES or isinstance(leaf, _NUMBERS_AND_ARRAYS)


_NUMBERS_AND_ARRAYS = (np.ndarray, np.generic, float, int, complex)


def _prefix(spec: Any, tree: Any, count: int, name: str, what: str) -> list[Any]:
    """An axis for each leaf of `tree`, from a container with the upper part of its structure."""
    if spec is None or isinstance(spec, int):
        return [spec] * count
    try:
        axes = optree.broadcast_prefix(spec, tree, none_is_leaf=False, namespace=NAMESPACE, is_leaf=_is_none)
    except (ValueError, TypeError) as error:
        raise BatchError(
            f"{name} does not fit {what}: {error}",
            f"an integer, None, or a container with the upper part of the structure of {what}",
        ) from None
    return list(axes)


def _is_none(x: Any) -> bool:
    return x is None


def _size(leaves: list[tuple[int, Any, Any]]) -> int:
    """The number of examples, on which all mapped arguments agree."""
    found: list[tuple[int, str]] = []
    for i, leaf, axis in leaves:
        if axis is None or not _has_axes(leaf):
            continue
        shape = shape_of(leaf)
        if not shape:
            raise InputError(
                f"vmap was given a single number as (a part of) argument {i}: there is no axis to map over",
                f"in_axes=(..., None, ...) with None for argument {i}, if it is the same for all examples",
                "np.array([...]), where the examples are in a list: a list is a container of arguments",
            )
        if not -len(shape) <= axis < len(shape):
            raise BatchError(f"in_axes={axis} for argument {i} of shape {shape}, which has {len(shape)} axes")
        found.append((shape[axis], f"argument {i} of shape {shape} has {shape[axis]} along axis {axis}"))
    if not found:
        raise BatchError(
            "vmap was given nothing to map over: every argument is the same for all examples",
            "an integer in in_axes for at least one argument",
        )
    if len({size for size, _ in found}) > 1:
        raise BatchError(
            "vmap needs the same number of examples in all arguments; " + ", ".join(dict.fromkeys(t for _, t in found)),
            "in_axes=(..., None, ...) with None for an argument that is the same for all examples",
        )
    return found[0][0]


def _collected(level: BatchLevel, y: Any, axis: Any, given: Sequence[Any]) -> Any:
    """A result with the axis of the examples where it is wanted, in memory of its own."""
    if not _has_axes(y):
        return y
    if not level.holds(y):
        return y if axis is None else _own(_moved(np.broadcast_to(y, (level.size, *shape_of(y))), axis), given)
    if axis is None:
        raise BatchError(
            "out_axes=None for a result that differs between the examples",
            "out_axes=0",
            "np.mean(y, axis=0) of the mapped result, for one value of all examples",
        )
    return _own(_moved(y.primal, axis), given)


def _moved(raw: Any, axis: int) -> Any:
    return raw if axis == 0 else np.moveaxis(raw, 0, axis)


def _own(raw: Any, given: Sequence[Any]) -> Any:
    if is_traced(raw):
        return snapshot(raw)
    return np.array(raw) if raw.base is not None or any(raw is x for x in given) else raw
