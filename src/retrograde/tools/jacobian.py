"""Jacobians and Hessians, dense."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from retrograde.errors import InputError, MissingRuleError
from retrograde.forward.jvp import jvp
from retrograde.reverse.gradient import grad, gradient
from retrograde.tools.arguments import Arguments, is_vector
from retrograde.tools.directions import Blocks, Passes, Recorded, columns, diagonal
from retrograde.trace.creation import array_of
from retrograde.trace.handle import contents, is_traced, like_of, plain, shape_of
from retrograde.trace.running import interruptible, native_products, native_tangents
from retrograde.trace.structure import flatten, unflatten, zero_like


class WithJacobian(NamedTuple):
    """The value of a function together with its Jacobian."""

    val: Any
    grad: Any


@interruptible
def jacobian(
    f: Callable[..., Any],
    /,
    *args: Any,
    argnums: int | tuple[int, ...] | None = None,
    mode: str = "auto",
    chunk: int | None = None,
    progress: bool = False,
    holomorphic: bool = False,
    **kwargs: Any,
) -> Any:
    """The matrix of all partial derivatives of `f`, of shape `y.shape + x.shape`.

    Args:
        f: returns a number, an array, a flat list of numbers (taken as a vector), or a container of these.
        *args: numbers, arrays, flat lists of numbers (taken as vectors), or containers of arrays. A single `Params`
            instead: `f` is called without arguments, and its parameters are what counts.
        argnums: the numbers of the arguments that count, in a tuple or one alone. None: all of them.
        mode: "forward" computes by columns, "reverse" by rows; "auto" by whichever are fewer.
        chunk: how many columns or rows are computed at once. None: as many as make arrays of a few megabytes.
        progress: whether to show a progress bar, for which tqdm must be installed.
        holomorphic: promises that a function of complex arguments has a complex derivative, which is otherwise found
            out by one pass more in a random direction.
        **kwargs: passed to `f`.

    Returns:
        The array for one argument (the only one, or the one that `argnums` names), a tuple of arrays for several; a
        container of arrays for a container, a `Grads` for `Params`. Where `f` returns a container, the same container
        with that in the place of each of its arrays. Zeros where no path leads to the output.

    Raises:
        InputError: an argument or a result that has no Jacobian.
        MissingExtraError: `progress` without tqdm.

    >>> jacobian(lambda x: x * x, np.array([1.0, 2.0]))
    array([[2., 0.],
           [0., 4.]])
    """
    options: dict[str, Any] = {
        "argnums": argnums,
        "mode": mode,
        "chunk": chunk,
        "progress": progress,
        "holomorphic": holomorphic,
    }
    if not args:
        return functools.partial(jacobian, f, **options, **kwargs)
    return _value_and_jacobian(f, args, kwargs, **options)[1]


@interruptible
def withjacobian(
    f: Callable[..., Any],
    /,
    *args: Any,
    argnums: int | tuple[int, ...] | None = None,
    mode: str = "auto",
    chunk: int | None = None,
    progress: bool = False,
    holomorphic: bool = False,
    **kwargs: Any,
) -> Any:
    """The value and the Jacobian of `f`: `(val, grad)`; the options are those of `jacobian`."""
    options: dict[str, Any] = {
        "argnums": argnums,
        "mode": mode,
        "chunk": chunk,
        "progress": progress,
        "holomorphic": holomorphic,
    }
    if not args:
        return functools.partial(withjacobian, f, **options, **kwargs)
    return WithJacobian(*_value_and_jacobian(f, args, kwargs, **options))


@interruptible
def hessian(
    f: Callable[..., Any],
    /,
    *args: Any,
    argnums: int | tuple[int, ...] | None = None,
    mode: str = "auto",
    chunk: int | None = None,
    progress: bool = False,
    **kwargs: Any,
) -> Any:
    """The matrix of second derivatives of a real scalar function, of shape `x.shape + x.shape`.

    Args:
        f: returns one finite real number.
        *args: as for `jacobian`, but real.
        argnums: the numbers of the arguments that count, in a tuple or one alone. None: all of them.
        mode: "forward" is forward mode over reverse mode, "reverse" is reverse over reverse; "auto" is the former,
            and the latter where a rule has no pushforward.
        chunk, progress: as for `jacobian`.
        **kwargs: passed to `f`.

    Returns:
        The matrix for one argument. For several a tuple of tuples of blocks, `H[i][j]` of shape
        `x_i.shape + x_j.shape`; for containers the blocks in the structure of the gradient, each with the structure of
        the arguments in its place: `H["a"]["b"]` for one dictionary, `H[i]["a"][j]["b"]` for several.

    Raises:
        InputError: an argument that has no Hessian.

    >>> hessian(lambda ab: ab[0] * ab[1], [2, 3])
    array([[0., 1.],
           [1., 0.]])
    """
    if not args:
        return functools.partial(hessian, f, argnums=argnums, mode=mode, chunk=chunk, progress=progress, **kwargs)
    _check_mode(mode)
    passes = Passes(chunk, progress)
    arguments, gradients = _gradients("hessian", f, args, argnums, kwargs)
    if arguments.params is not None:
        _refuse_forward(mode)
        mode = "reverse"
    is_plain = arguments.places == tuple(range(len(args)))

    def natively(directions: list[Any]) -> tuple[Any, list[Any]] | None:
        products = native_products(f, args, kwargs, directions) if is_plain else None
        return None if products is None else (arguments.xs, products)

    try:
        blocks = (
            Recorded(gradients, arguments.xs, arguments.params).rows(passes)
            if mode == "reverse"
            else columns(gradients, arguments.xs, passes, natively=natively)[1]
        )
    except MissingRuleError:
        if mode != "auto":
            raise
        blocks = Recorded(gradients, arguments.xs).rows(passes)
    return arguments.in_structures([arguments.in_structures(row) for row in blocks])


@interruptible
def diaghessian(
    f: Callable[..., Any],
    /,
    *args: Any,
    argnums: int | tuple[int, ...] | None = None,
    chunk: int | None = None,
    progress: bool = False,
    **kwargs: Any,
) -> Any:
    """The diagonal of the Hessian, in the structure and shape of the argument (a tuple for several arguments).

    One Hessian–vector product an element, `chunk` of them at once: cheaper in memory than the whole matrix, not in
    time. `argnums`, `chunk` and `progress` are as for `hessian`.
    """
    if not args:
        return functools.partial(diaghessian, f, argnums=argnums, chunk=chunk, progress=progress, **kwargs)
    passes = Passes(chunk, progress)
    arguments = Arguments(args, argnums, "diaghessian")
    arguments.check_real()
    if arguments.params is not None:
        raise InputError(
            "diaghessian takes arguments, not Params",
            "hessian(f, params), of which it is the diagonal blocks' diagonals",
        )
    diagonals = []
    for i, x in enumerate(arguments.xs):

        def along(x: Any, i: int = i) -> Any:
            values = [*arguments.xs[:i], x, *arguments.xs[i + 1 :]]
            return grad(lambda *values: f(*arguments.filled(values), **kwargs), i)(*values)

        diagonals.append(diagonal(along, x, passes))
    return arguments.in_structures(diagonals)


def _gradients(
    name: str, f: Callable[..., Any], args: tuple[Any, ...], argnums: Any, kwargs: dict[str, Any]
) -> tuple[Arguments, Callable[..., list[Any]]]:
    """The arguments of a Hessian, and the gradient as a function of its variables."""
    arguments = Arguments(args, argnums, name)
    arguments.check_real()
    if arguments.params is not None:
        params = arguments.params

        def of_params() -> list[Any]:
            found = gradient(functools.partial(f, **kwargs), params)
            return [zero_like(p.value) if found[p] is None else found[p] for p in params]

        return arguments, of_params
    numbers = tuple(range(len(arguments.xs)))
    return arguments, lambda *xs: list(grad(lambda *values: f(*arguments.filled(values), **kwargs), numbers)(*xs))


# --- columns and rows --------------------------------------------------------------------------------------------


def _check_mode(mode: str) -> None:
    if mode not in ("auto", "forward", "reverse"):
        raise InputError(f"mode={mode!r} is none of the modes", 'mode="auto", mode="forward" or mode="reverse"')


def _refuse_forward(mode: str) -> None:
    if mode == "forward":
        raise InputError("parameters that a function closes over have reverse mode only", 'mode="reverse"')


def _value_and_jacobian(
    f: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    argnums: Any,
    mode: str,
    chunk: int | None,
    progress: bool,
    holomorphic: bool,
) -> tuple[Any, Any]:
    _check_mode(mode)
    arguments = Arguments(args, argnums, "jacobian")
    returned: list[Any] = []  # the structure of the result, in a list

    def flat_f(*values: Any) -> list[Any]:
        y = f(*arguments.filled(values), **kwargs)
        ys, returned[:] = ([array_of(y)], [None]) if is_vector(y) else _taken_apart(y)
        return [_checked_output(y) for y in ys]

    def natively(directions: list[Any]) -> tuple[list[Any], list[Any]] | None:
        if arguments.places is None or holomorphic:
            return None
        along = {i: d for i, d in zip(arguments.places, directions, strict=True) if d is not None}
        found = native_tangents(f, args, kwargs, along)
        if found is None:
            return None
        ys, returned[:] = _taken_apart(found[0])
        return ys, [found[1]]

    if not arguments.xs:
        raise InputError("jacobian was given nothing that can be differentiated: constants have no derivative")
    passes = Passes(chunk, progress)
    if arguments.params is not None:
        _refuse_forward(mode)
        recorded = Recorded(flat_f, arguments.xs, arguments.params)
        ys, blocks = recorded.ys, recorded.rows(passes)
    else:
        ys, blocks = _by_either(flat_f, arguments.xs, mode, passes, holomorphic, natively)
    return unflatten(returned[0], ys), unflatten(returned[0], [arguments.in_structures(row) for row in blocks])


def _taken_apart(y: Any) -> tuple[list[Any], list[Any]]:
    """The leaves of a result, and its structure in a list. None, which holds no leaf, is no result."""
    leaves, structure = flatten(y)
    return (leaves if y is not None else [y]), [structure]


def _by_either(
    f: Callable[..., list[Any]],
    xs: tuple[Any, ...],
    mode: str,
    passes: Passes,
    holomorphic: bool,
    natively: Callable[[list[Any]], tuple[list[Any], list[Any]] | None],
) -> tuple[list[Any], Blocks]:
    """The values and for each of them one block for each of `xs`, by columns or by rows, whichever are fewer."""
    if not holomorphic and any(np.iscomplexobj(plain(x)) for x in xs):
        check_holomorphic(f, xs)
    if mode == "forward":
        return columns(f, xs, passes, natively=natively)
    recorded = Recorded(f, xs)
    n_inputs, n_outputs = (sum(int(np.size(plain(x))) for x in values) for values in (xs, recorded.ys))
    # What is recorded need not be run again, so that rows are preferred where they are as many.
    if mode == "auto" and n_inputs < n_outputs:
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


def _is_output(y: Any) -> bool:
    return isinstance(y, np.ndarray | np.generic | float | int | complex) or is_traced(y)


def _checked_output(y: Any) -> Any:
    if _is_output(y):
        return y
    raise InputError(
        f"jacobian needs a function that returns numbers and arrays; it returned a {type(y).__name__}",
        "return one array, e.g. np.concatenate([...]), or a container of arrays",
    )
