"""Jacobians and Hessians, dense."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from retrograde.errors import InputError, MissingRuleError
from retrograde.forward.jvp import jvp
from retrograde.reverse.gradient import grad
from retrograde.tools.directions import Blocks, Passes, Recorded, columns, diagonal
from retrograde.trace.creation import array_of
from retrograde.trace.handle import contents, is_traced, like_of, plain, shape_of
from retrograde.trace.running import interruptible
from retrograde.trace.structure import flatten, is_variable, unflatten


class WithJacobian(NamedTuple):
    """The value of a function together with its Jacobian."""

    val: Any
    grad: Any


@interruptible
def jacobian(
    f: Callable[..., Any],
    /,
    *args: Any,
    mode: str = "auto",
    chunk: int | None = None,
    progress: bool = False,
    holomorphic: bool = False,
    **kwargs: Any,
) -> Any:
    """The matrix of all partial derivatives of `f`, of shape `y.shape + x.shape`.

    Args:
        f: returns a number, an array, a flat list of numbers (taken as a vector), or a container of these.
        *args: numbers, arrays, flat lists of numbers (taken as vectors), or containers of arrays.
        mode: "forward" computes by columns, "reverse" by rows; "auto" by whichever are fewer, columns if they tie.
        chunk: how many columns or rows are computed at once. None: as many as make arrays of a few megabytes.
        progress: whether to show a progress bar, for which tqdm must be installed.
        holomorphic: promises that a function of complex arguments has a complex derivative, which is otherwise found
            out by one pass more in a random direction.
        **kwargs: passed to `f`.

    Returns:
        The array for one argument, a tuple of arrays for several; a container of arrays for a container. Where `f`
        returns a container, the same container with that in the place of each of its arrays. Zeros where no path leads
        to the output.

    Raises:
        InputError: an argument or a result that has no Jacobian.
        MissingExtraError: `progress` without tqdm.

    >>> jacobian(lambda x: x * x, np.array([1.0, 2.0]))
    array([[2., 0.],
           [0., 4.]])
    """
    options: dict[str, Any] = {"mode": mode, "chunk": chunk, "progress": progress, "holomorphic": holomorphic}
    if not args:
        return functools.partial(jacobian, f, **options, **kwargs)
    return _value_and_jacobian(f, args, kwargs, **options)[1]


@interruptible
def withjacobian(
    f: Callable[..., Any],
    /,
    *args: Any,
    mode: str = "auto",
    chunk: int | None = None,
    progress: bool = False,
    holomorphic: bool = False,
    **kwargs: Any,
) -> Any:
    """The value and the Jacobian of `f`: `(val, grad)`; the options are those of `jacobian`."""
    options: dict[str, Any] = {"mode": mode, "chunk": chunk, "progress": progress, "holomorphic": holomorphic}
    if not args:
        return functools.partial(withjacobian, f, **options, **kwargs)
    return WithJacobian(*_value_and_jacobian(f, args, kwargs, **options))


@interruptible
def hessian(
    f: Callable[..., Any],
    /,
    *args: Any,
    mode: str = "auto",
    chunk: int | None = None,
    progress: bool = False,
    **kwargs: Any,
) -> Any:
    """The matrix of second derivatives of a real scalar function, of shape `x.shape + x.shape`.

    Args:
        f: returns one finite real number.
        *args: numbers, arrays or flat lists of numbers (taken as vectors). Several arguments give a tuple of tuples of
            blocks, `H[i][j]` of shape `x_i.shape + x_j.shape`.
        mode: "forward" is forward mode over reverse mode, "reverse" is reverse over reverse; "auto" is the former,
            and the latter where a rule has no pushforward.
        chunk, progress: as for `jacobian`.
        **kwargs: passed to `f`.

    >>> hessian(lambda ab: ab[0] * ab[1], [2, 3])
    array([[0., 1.],
           [1., 0.]])
    """
    if not args:
        return functools.partial(hessian, f, mode=mode, chunk=chunk, progress=progress, **kwargs)
    _check_mode(mode)
    numbers = tuple(range(len(args)))
    vectors = tuple(_as_real_array(arg) for arg in args)
    passes = Passes(chunk, progress)

    def gradients(*xs: Any) -> list[Any]:
        lists = [_as_given(x, arg) for x, arg in zip(xs, args, strict=True)]
        return [array_of(g) for g in grad(f, numbers)(*lists, **kwargs)]

    try:
        blocks = (
            Recorded(gradients, vectors).rows(passes) if mode == "reverse" else columns(gradients, vectors, passes)[1]
        )
    except MissingRuleError:
        if mode != "auto":
            raise
        blocks = Recorded(gradients, vectors).rows(passes)
    return blocks[0][0] if len(args) == 1 else tuple(tuple(row) for row in blocks)


@interruptible
def diaghessian(
    f: Callable[..., Any], /, *args: Any, chunk: int | None = None, progress: bool = False, **kwargs: Any
) -> Any:
    """The diagonal of the Hessian, in the shape of the argument (a tuple for several arguments).

    One Hessian–vector product an element, `chunk` of them at once: cheaper in memory than the whole matrix, not in
    time. `chunk` and `progress` are as for `jacobian`.
    """
    if not args:
        return functools.partial(diaghessian, f, chunk=chunk, progress=progress, **kwargs)
    passes = Passes(chunk, progress)
    diagonals = []
    for i, arg in enumerate(args):

        def along(x: Any, i: int = i, arg: Any = arg) -> Any:
            given = [*args[:i], _as_given(x, arg), *args[i + 1 :]]
            return array_of(grad(f, i)(*given, **kwargs))

        diagonals.append(diagonal(along, _as_real_array(arg), passes))
    return diagonals[0] if len(args) == 1 else tuple(diagonals)


# --- columns and rows --------------------------------------------------------------------------------------------


def _check_mode(mode: str) -> None:
    if mode not in ("auto", "forward", "reverse"):
        raise InputError(f"mode={mode!r} is none of the modes", 'mode="auto", mode="forward" or mode="reverse"')


def _value_and_jacobian(
    f: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    mode: str,
    chunk: int | None,
    progress: bool,
    holomorphic: bool,
) -> tuple[Any, Any]:
    _check_mode(mode)
    xs, structures = [], []
    for arg in args:
        if _is_vector(arg):
            leaves, structure = [arg], None
        else:
            leaves, structure = flatten(arg)
        variables = [_as_array(leaf) if _is_vector(leaf) or is_variable(leaf) else None for leaf in leaves]
        structures.append((leaves, structure, variables))
        xs += [x for x in variables if x is not None]
    returned: list[Any] = []  # the structure of the result, in a list

    def flat_f(*values: Any) -> list[Any]:
        rest = iter(values)
        given = []
        for leaves, structure, variables in structures:
            filled = [
                leaf if x is None else _as_given(next(rest), leaf) for leaf, x in zip(leaves, variables, strict=True)
            ]
            given.append(unflatten(structure, filled))
        y = f(*given, **kwargs)
        ys, returned[:] = ([array_of(y)], [None]) if _is_vector(y) else _taken_apart(y)
        return [_checked_output(y) for y in ys]

    if not xs:
        raise InputError("jacobian was given nothing that can be differentiated: constants have no derivative")
    ys, blocks = _by_either(flat_f, tuple(xs), mode, Passes(chunk, progress), holomorphic)

    def in_structures(row: list[Any]) -> Any:
        rest = iter(row)
        results = [
            unflatten(structure, [None if x is None else next(rest) for x in variables])
            for _, structure, variables in structures
        ]
        return results[0] if len(args) == 1 else tuple(results)

    return unflatten(returned[0], ys), unflatten(returned[0], [in_structures(row) for row in blocks])


def _taken_apart(y: Any) -> tuple[list[Any], list[Any]]:
    """The leaves of a result, and its structure in a list. None, which holds no leaf, is no result."""
    leaves, structure = flatten(y)
    return (leaves if y is not None else [y]), [structure]


def _by_either(
    f: Callable[..., list[Any]], xs: tuple[Any, ...], mode: str, passes: Passes, holomorphic: bool
) -> tuple[list[Any], Blocks]:
    """The values and for each of them one block for each of `xs`, by columns or by rows, whichever are fewer."""
    if not holomorphic and any(np.iscomplexobj(plain(x)) for x in xs):
        check_holomorphic(f, xs)
    if mode == "forward":
        return columns(f, xs, passes)
    recorded = Recorded(f, xs)
    n_inputs, n_outputs = (sum(int(np.size(plain(x))) for x in values) for values in (xs, recorded.ys))
    if mode == "auto" and n_inputs <= n_outputs:
        try:
            return columns(f, xs, passes, recorded.nbytes)
        except MissingRuleError:
            pass
    return recorded.ys, recorded.rows(passes)


def check_holomorphic(f: Callable[..., Any], xs: tuple[Any, ...]) -> None:
    """Refuse a function of complex numbers that has no complex derivative: one pass more, along a random direction."""
    rng = np.random.default_rng(0)
    v = tuple(rng.standard_normal(shape_of(x)).astype(like_of(x)[1])[()] for x in xs)
    complex_ones = [np.iscomplexobj(plain(x)) for x in xs]
    along = tuple(d if c else None for d, c in zip(v, complex_ones, strict=True))
    straight = flatten(jvp(f, xs, along)[1])[0]
    turned = flatten(jvp(f, xs, tuple(None if d is None else 1j * d for d in along))[1])[0]
    if not all(map(_is_turned, straight, turned)):
        raise InputError(
            "the function is not holomorphic in its complex arguments, so that it has no complex Jacobian",
            "jacobian of a function of the real and the imaginary part, f(a + 1j * b)",
            "gradient(f, z), for a real loss",
        )


def _is_turned(straight: Any, turned: Any) -> bool:
    """Whether a derivative along i times a direction is i times the one along it."""
    straight, turned = contents(straight), contents(turned)
    return np.allclose(turned, 1j * straight, rtol=1e-6, atol=1e-9 * (1 + np.max(np.abs(straight), initial=0)))


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


def _is_output(y: Any) -> bool:
    return isinstance(y, np.ndarray | np.generic | float | int | complex) or is_traced(y)


def _checked_output(y: Any) -> Any:
    if _is_output(y):
        return y
    raise InputError(
        f"jacobian needs a function that returns numbers and arrays; it returned a {type(y).__name__}",
        "return one array, e.g. np.concatenate([...]), or a container of arrays",
    )
