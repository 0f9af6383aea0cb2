"""Jacobians and Hessians, dense."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from retrograde.errors import InputError, MissingRuleError
from retrograde.forward.jvp import jvp
from retrograde.reverse.gradient import grad
from retrograde.reverse.pullback import pullback
from retrograde.trace.creation import array_of
from retrograde.trace.handle import is_traced, like_of, plain, shape_of
from retrograde.trace.running import interruptible
from retrograde.trace.structure import flatten, is_variable, unflatten


class WithJacobian(NamedTuple):
    """The value of a function together with its Jacobian."""

    val: Any
    grad: Any


@interruptible
def jacobian(f: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """The matrix of all partial derivatives of `f`, of shape `y.shape + x.shape`.

    Args:
        f: returns a number, an array, or a flat list of numbers (taken as a vector).
        *args: numbers, arrays, flat lists of numbers (taken as vectors), or containers of arrays.
        **kwargs: passed to `f`.

    Returns:
        The array for one argument, a tuple of arrays for several; a container of arrays for a container. Zeros where
        no path leads to the output. Computed by columns (forward mode) where there are fewer inputs than outputs, and
        by rows (reverse mode) otherwise.

    >>> jacobian(lambda x: x * x, np.array([1.0, 2.0]))
    array([[2., 0.],
           [0., 4.]])
    """
    if not args:
        return functools.partial(jacobian, f, **kwargs)
    return _value_and_jacobian(f, args, kwargs)[1]


@interruptible
def withjacobian(f: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """The value and the Jacobian of `f`: `(val, grad)`."""
    if not args:
        return functools.partial(withjacobian, f, **kwargs)
    return WithJacobian(*_value_and_jacobian(f, args, kwargs))


@interruptible
def hessian(f: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """The matrix of second derivatives of a real scalar function, of shape `x.shape + x.shape`.

    Args:
        f: returns one finite real number.
        *args: numbers, arrays or flat lists of numbers (taken as vectors). Several arguments give a tuple of tuples of
            blocks, `H[i][j]` of shape `x_i.shape + x_j.shape`.
        **kwargs: passed to `f`.

    Forward mode over reverse mode; reverse over reverse where a rule has no pushforward.

    >>> hessian(lambda ab: ab[0] * ab[1], [2, 3])
    array([[0., 1.],
           [1., 0.]])
    """
    if not args:
        return functools.partial(hessian, f, **kwargs)
    numbers = tuple(range(len(args)))
    vectors = tuple(_as_real_array(arg) for arg in args)

    def gradients(*xs: Any) -> Any:
        lists = [_as_given(x, arg) for x, arg in zip(xs, args, strict=True)]
        return tuple(array_of(g) for g in grad(f, numbers)(*lists, **kwargs))

    rows = []
    for i in numbers:

        def gradient_of_i(*xs: Any, i: int = i) -> Any:
            return gradients(*xs)[i]

        try:
            row = by_columns(gradient_of_i, vectors)[1]
        except MissingRuleError:
            row = _by_rows(gradient_of_i, vectors)[1]
        rows.append(row)
    return rows[0][0] if len(args) == 1 else tuple(tuple(row) for row in rows)


@interruptible
def diaghessian(f: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """The diagonal of the Hessian, in the shape of the argument (a tuple for several arguments).

    One Hessian–vector product an element: cheaper in memory than the whole matrix, not in time.
    """
    if not args:
        return functools.partial(diaghessian, f, **kwargs)
    diagonals = []
    for i, arg in enumerate(args):

        def along(x: Any, i: int = i, arg: Any = arg) -> Any:
            given = [*args[:i], _as_given(x, arg), *args[i + 1 :]]
            return array_of(grad(f, i)(*given, **kwargs))

        x = _as_real_array(arg)
        entries = [_component(jvp(along, (x,), (direction,))[1], k) for k, direction in enumerate(_directions(x))]
        diagonals.append(_shaped(entries, shape_of(x)))
    return diagonals[0] if len(args) == 1 else tuple(diagonals)


# --- columns and rows --------------------------------------------------------------------------------------------


def _value_and_jacobian(f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
    xs, structures = [], []
    for arg in args:
        if _is_vector(arg):
            leaves, structure = [arg], None
        else:
            leaves, structure = flatten(arg)
        variables = [_as_array(leaf) if _is_vector(leaf) or is_variable(leaf) else None for leaf in leaves]
        structures.append((leaves, structure, variables))
        xs += [x for x in variables if x is not None]

    def flat_f(*values: Any) -> Any:
        rest = iter(values)
        given = []
        for leaves, structure, variables in structures:
            filled = [
                leaf if x is None else _as_given(next(rest), leaf) for leaf, x in zip(leaves, variables, strict=True)
            ]
            given.append(unflatten(structure, filled))
        return _checked_output(array_of(f(*given, **kwargs)))

    if not xs:
        raise InputError("jacobian was given nothing that can be differentiated: constants have no derivative")
    y, blocks = _by_either(flat_f, tuple(xs))
    rest = iter(blocks)
    results = []
    for _leaves, structure, variables in structures:
        results.append(unflatten(structure, [None if x is None else next(rest) for x in variables]))
    return y, results[0] if len(args) == 1 else tuple(results)


def _by_either(f: Callable[..., Any], xs: tuple[Any, ...]) -> tuple[Any, list[Any]]:
    """The value and one block for each of `xs`, by columns or by rows, whichever are fewer."""
    y, back = pullback(f, *xs)
    if any(np.iscomplexobj(plain(x)) for x in xs):
        check_holomorphic(f, xs)
    n_inputs = sum(int(np.size(plain(x))) for x in xs)
    if n_inputs < np.size(plain(y)):
        try:
            return by_columns(f, xs)
        except MissingRuleError:
            pass
    return y, _rows(y, back, xs)


def check_holomorphic(f: Callable[..., Any], xs: tuple[Any, ...]) -> None:
    """Refuse a function of complex numbers that has no complex derivative: one pass more, along a random direction."""
    rng = np.random.default_rng(0)
    v = tuple(rng.standard_normal(shape_of(x)).astype(like_of(x)[1])[()] for x in xs)
    complex_ones = [np.iscomplexobj(plain(x)) for x in xs]
    straight = jvp(f, xs, tuple(d if c else None for d, c in zip(v, complex_ones, strict=True)))[1]
    turned = jvp(f, xs, tuple(1j * d if c else None for d, c in zip(v, complex_ones, strict=True)))[1]
    if not np.allclose(
        plain(turned), 1j * plain(straight), rtol=1e-6, atol=1e-9 * (1 + np.max(np.abs(plain(straight)), initial=0))
    ):
        raise InputError(
            "the function is not holomorphic in its complex arguments, so that it has no complex Jacobian",
            "jacobian of a function of the real and the imaginary part, f(a + 1j * b)",
            "gradient(f, z), for a real loss",
        )


def _by_rows(f: Callable[..., Any], xs: tuple[Any, ...]) -> tuple[Any, list[Any]]:
    y, back = pullback(f, *xs)
    return y, _rows(y, back, xs)


def _rows(y: Any, back: Callable[[Any], Any], xs: tuple[Any, ...]) -> list[Any]:
    is_complex = np.iscomplexobj(plain(y))
    rows = [back(direction) for direction in _directions(y)]
    imaginary_rows = [back(1j * direction) for direction in _directions(y)] if is_complex else rows
    blocks = []
    for j, x in enumerate(xs):
        shape, dtype = like_of(x)
        zero = np.zeros(shape, dtype)
        bars = []
        for row, imaginary in zip(rows, imaginary_rows, strict=True):
            bar = zero if row[j] is None else row[j]
            if is_complex and dtype.kind == "c":
                # A holomorphic function pulls back by the conjugate of its Jacobian.
                bar = np.conj(bar)
            elif is_complex:
                bar = bar + 1j * (zero if imaginary[j] is None else imaginary[j])
            bars.append(bar)
        blocks.append(_shaped(bars, shape_of(y), shape, np.result_type(dtype, like_of(y)[1]) if is_complex else dtype))
    return blocks


def by_columns(f: Callable[..., Any], xs: tuple[Any, ...]) -> tuple[Any, list[Any]]:
    """The value of `f(*xs)` and one block of its Jacobian for each of `xs`, by one forward run an element."""
    blocks = []
    y: Any = None
    for j, x in enumerate(xs):
        columns = []
        for direction in _directions(x):
            tangents = tuple(direction if i == j else None for i in range(len(xs)))
            y, y_dot = jvp(f, xs, tangents)
            columns.append(y_dot)
        shape = shape_of(x)
        if not columns:
            y = f(*xs)
            blocks.append(np.zeros(shape_of(y) + shape, like_of(y)[1]))
            continue
        columns_first = _shaped(columns, shape, shape_of(y), like_of(y)[1])
        blocks.append(_moved_behind(columns_first, len(shape)))
    return y, blocks


def _directions(x: Any) -> Any:
    """The unit arrays in the shape and dtype of `x`."""
    shape, dtype = like_of(x)
    for k in range(int(np.prod(shape))):
        direction = np.zeros(shape, dtype)
        direction.flat[k] = 1
        yield direction


def _shaped(parts: list[Any], outer: tuple[int, ...], inner: tuple[int, ...] = (), dtype: Any = float) -> Any:
    """The parts, each of shape `inner`, as one array of shape `outer + inner`."""
    if not outer:
        return parts[0]
    if not parts:
        return np.zeros(outer + inner, dtype)
    return np.reshape(array_of(parts), outer + inner)


def _moved_behind(a: Any, count: int) -> Any:
    """The first `count` axes moved behind all others."""
    ndim = len(shape_of(a))
    return a if not count or count == ndim else np.transpose(a, (*range(count, ndim), *range(count)))


def _component(y: Any, k: int) -> Any:
    return np.ravel(y)[k] if shape_of(y) else y


# --- lists of numbers as vectors ---------------------------------------------------------------------------------


def _is_vector(arg: Any) -> bool:
    return (
        isinstance(arg, list)
        and bool(arg)
        and all(not isinstance(a, list | tuple | dict) and not shape_of(a) for a in arg)
    )


def _as_array(arg: Any) -> Any:
    """A flat list as the vector that it stands for; integers as floats."""
    x = array_of(arg) if isinstance(arg, list) else arg
    if isinstance(x, list | tuple | dict) or not is_variable(x):
        raise InputError(
            f"a Hessian needs numbers and arrays; an argument of type {type(arg).__name__} was given",
            "hvp(f, x, v), which takes any container",
            "hessian of a function of the entries as arguments of their own, f(a, b)",
        )
    if is_traced(x):
        return x
    return x.astype(like_of(x)[1]) if isinstance(x, np.ndarray) and x.dtype.kind in "iu" else x


def _as_real_array(arg: Any) -> Any:
    if isinstance(arg, list) and not _is_vector(arg):
        raise InputError(
            "a Hessian needs numbers, arrays and flat lists of numbers; a nested list was given", "np.array(x)"
        )
    x = _as_array(arg)
    if np.iscomplexobj(plain(x)):
        raise InputError(
            "a real function of complex numbers has no complex Hessian",
            "hessian of a function of the real and the imaginary part, f(a + 1j * b)",
            "hvp(f, z, v), the change of the gradient along v",
        )
    return x


def _as_given(x: Any, arg: Any) -> Any:
    """The vector `x` as a list again, if that is what the user's function takes."""
    return list(x) if isinstance(arg, list) else x


def _checked_output(y: Any) -> Any:
    if isinstance(y, np.ndarray | np.generic | float | int | complex) or is_traced(y):
        return y
    raise InputError(
        f"jacobian needs a function that returns a number or an array; it returned a {type(y).__name__}",
        "return one array, e.g. np.concatenate([...])",
        "y, back = pullback(f, x), whose y may be any container",
    )
