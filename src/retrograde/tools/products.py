"""Products with Jacobians and Hessians that are never formed."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from retrograde.errors import InputError, MissingExtraError
from retrograde.forward.jvp import jvp
from retrograde.reverse.gradient import grad
from retrograde.reverse.pullback import pullback, pulled
from retrograde.reverse.tape import Tape
from retrograde.tools.directions import Passes
from retrograde.tools.jacobian import check_holomorphic
from retrograde.tools.vectors import Layout, checked_output
from retrograde.trace.directions import directions_of
from retrograde.trace.handle import is_traced, like_of
from retrograde.trace.running import interruptible, native_products
from retrograde.trace.structure import finished, flatten, is_variable, leaves_like, unflatten, zero_like


@interruptible
def hvp(f: Callable[..., Any], /, x: Any = None, v: Any = None, **kwargs: Any) -> Any:
    """The product of the Hessian of `f` at `x` with the direction `v`, in the structure of `x`.

    Costs a small multiple of one gradient; the Hessian is not formed.

    >>> hvp(lambda x: np.sum(x ** 3), np.array([1.0, 2.0]), np.array([1.0, 0.0]))
    array([6., 0.])
    """
    if x is None:
        return functools.partial(hvp, f, **kwargs)
    if isinstance(v, np.ndarray | float):
        products = native_products(f, (x,), kwargs, [np.asarray(v)[None]])
        if products is not None:
            return products[0][0] if isinstance(x, np.ndarray) else float(products[0][0])
    return jvp(functools.partial(grad(f), **kwargs), (x,), (v,))[1]


@interruptible
def vhp(f: Callable[..., Any], /, x: Any = None, v: Any = None, **kwargs: Any) -> Any:
    """The product of the direction `v` with the Hessian of `f` at `x`, in the structure of `x`.

    Equal to `hvp`, since Hessians are symmetric, but found by reverse mode alone: for functions with a rule that has no
    pushforward. It keeps the tapes of two sweeps, so it takes more memory than `hvp`.

    Raises:
        SeedError: `v` does not fit `x`.

    >>> vhp(lambda x: np.sum(x ** 3), np.array([1.0, 2.0]), np.array([1.0, 0.0]))
    array([6., 0.])
    """
    if x is None:
        return functools.partial(vhp, f, **kwargs)
    leaves, structure = flatten(x)
    directions = leaves_like(v, x, "direction", "argument")
    seed = [d if is_variable(leaf) else None for leaf, d in zip(leaves, directions, strict=True)]
    _, back = pullback(functools.partial(grad(f), **kwargs), x)
    products = leaves_like(back(unflatten(structure, seed))[0], x, "product", "argument")
    return unflatten(
        structure,
        [
            zero_like(leaf) if product is None and is_variable(leaf) else product
            for leaf, product in zip(leaves, products, strict=True)
        ],
    )


# --- linearised functions ----------------------------------------------------------------------------------------


@interruptible
def linearize(f: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """The value of `f` and its linear part: `y, push = linearize(f, *args)`.

    `push(*tangents)` is the tangent of `y`, as from `pushforward`, but does not run `f` again: it replays what the one
    run of `f` has kept. So it pays where many tangents are pushed through the same point.

    Args:
        f: returns a number, an array or a nested container of these.
        *args: numbers, arrays, and nested containers of these.
        **kwargs: passed to `f`.

    What is kept are two tapes: that of `f`, and that of its pullback. The pullback is a linear function of its seed,
    ȳ ↦ Jᵀȳ, so that the pullback *of the pullback* is v ↦ J v. Hence it takes a pullback that can be differentiated
    of every function (rules of NumPy functions have one), no pushforward; and memory like two gradients.

    Raises:
        SeedError: (by `push`) the tangents do not fit the arguments.

    >>> y, push = linearize(lambda x: x * x, 3.0)
    >>> y, push(1.0)
    (9.0, 6.0)
    """
    if not args:
        return functools.partial(linearize, f, **kwargs)
    linear = linearized("linearize", f, args, kwargs)
    return linear.y, lambda *tangents: linear.push(directions_of(args, tangents))


class Linear(NamedTuple):
    """A function at one point: its value, and the products with its Jacobian and with the adjoint of that.

    `push` takes one tangent for each variable among the leaves of the arguments, `back` a seed like `y`.
    """

    y: Any
    push: Callable[[list[Any]], Any]
    back: Callable[[Any], tuple[Any, ...]]


class _Silent(Tape):
    """A tape of forward mode: hooks, which look at cotangents, have no place in it."""

    __slots__ = ()
    calls_hooks = False


def linearized(name: str, f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Linear:
    """`f` at `args`, see `linearize`; `name` is what errors call the transform."""
    y, back = pulled(_Silent(), f, args, kwargs)
    checked_output(y, name)
    ys, structure = flatten(y)
    places = [i for i, leaf in enumerate(flatten(args)[0]) if is_variable(leaf)]
    # Any seed will do. Of ones, every product shows its infinities, as the pushforward would.
    ones = [np.ones(*like_of(leaf))[()] for leaf in ys if is_variable(leaf)]
    reached: list[int] = []  # the variables that a path leads from

    def pulled_back(seed: list[Any]) -> list[Any]:
        rest = iter(seed)
        x_bars = back(unflatten(structure, [next(rest) if is_variable(leaf) else None for leaf in ys]))
        bars = leaves_like(x_bars, args, "cotangent", "argument")
        reached[:] = [k for k, i in enumerate(places) if bars[i] is not None]
        return [bars[places[k]] for k in reached]

    _, push_back = pulled(_Silent(), pulled_back, (ones,), {})

    def push(dots: list[Any]) -> Any:
        found = iter(push_back([dots[k] for k in reached])[0])
        return unflatten(structure, [_tangent(next(found), leaf) if is_variable(leaf) else None for leaf in ys])

    return Linear(y, push, back)


def _tangent(y_dot: Any, y: Any) -> Any:
    return zero_like(y) if y_dot is None else finished(y_dot, y)


# --- operators for SciPy -----------------------------------------------------------------------------------------


@interruptible
def linear_operator(
    f: Callable[..., Any],
    /,
    x: Any = None,
    kind: str = "jacobian",
    *,
    loss: Callable[[Any], Any] | None = None,
    **kwargs: Any,
) -> Any:
    """A `scipy.sparse.linalg.LinearOperator` of derivatives of `f` at `x`, of which no matrix is formed.

    Args:
        f: for a Jacobian or Gauss–Newton product, returns a number, an array or a nested container; for a Hessian, one
            finite real number.
        x: a number, an array, or a nested container of these.
        kind: "jacobian" (J, of shape (size of y, size of x)), "hessian" (H, square), or "gauss_newton".
        loss: for "gauss_newton", a real function ℓ of the output of `f`: the operator is then Jᵀ (∇²ℓ at f(x)) J, the
            part of the Hessian of ℓ(f(x)) without second derivatives of `f`. By default ℓ = ½‖y‖², and it is Jᵀ J.
        **kwargs: passed to `f`.

    Returns:
        An operator with `matvec`, `rmatvec`, `matmat` and `rmatmat` (and so `@`, `.T`, `.H`), ready for `cg`, `lsmr`,
        `eigsh`, `svds`. Its vectors hold the numbers of `x` and `y` leaf after leaf, each in C order. `f` is run once,
        here; a product replays what that run has kept, and costs a small multiple of one run of `f`.

    Raises:
        MissingExtraError: SciPy is not installed.
        InputError: `x` is traced (operators hold plain numbers), or the operator would not be linear.

    >>> A = linear_operator(lambda x: x * x, np.array([1.0, 2.0]))
    >>> A @ np.array([1.0, 1.0])
    array([2., 4.])
    """
    if kind not in ("jacobian", "hessian", "gauss_newton"):
        raise InputError(f"kind={kind!r} is none of 'jacobian', 'hessian' and 'gauss_newton'")
    if loss is not None and kind != "gauss_newton":
        raise InputError(f"loss= belongs to kind='gauss_newton'; kind={kind!r} was given")
    if x is None:
        return functools.partial(linear_operator, f, kind=kind, loss=loss, **kwargs)
    columns = Layout(x)
    if any(is_traced(leaf) for leaf in flatten(x)[0]):
        raise InputError(
            "linear_operator was given a traced argument; SciPy's operators hold plain numbers",
            "hvp(f, x, v), or jvp(f, (x,), (v,)), which are differentiated themselves",
            "dropgrad(x), where the derivative of the operator is not wanted",
        )
    if kind == "hessian":
        _refuse_complex(columns, "Hessian")
        times_hessian = _symmetric(functools.partial(grad(f), **kwargs), x, columns)
        return _operator((columns.size, columns.size), columns.dtype, times_hessian, times_hessian)
    linear = linearized("linear_operator", f, (x,), kwargs)
    rows = Layout(linear.y)
    dtype = np.result_type(rows.dtype, columns.dtype)

    def push(v: Any) -> Any:
        return rows.join(linear.push(directions_of((x,), (columns.seed(v),))))

    def back(u: Any) -> Any:
        return columns.join(linear.back(rows.seed(u))[0])

    if kind == "jacobian":
        if columns.dtype.kind == "c":
            check_holomorphic(lambda z: rows.join(f(columns.split(z), **kwargs)), (columns.join(x),))
        elif rows.dtype.kind == "c":
            raise InputError(
                "the function takes real numbers to complex ones; no operator has that Jacobian and its adjoint",
                "linear_operator of the real and the imaginary part, np.stack([y.real, y.imag])",
            )
        return _operator((rows.size, columns.size), dtype, push, back)
    _refuse_complex(columns, "Gauss–Newton matrix")
    if loss is None:
        # |y|² has the gradient Jᵀy for complex y, too.
        return _operator((columns.size, columns.size), columns.dtype, lambda v: back(push(v)), lambda v: back(push(v)))
    curve = _symmetric(grad(loss), linear.y, rows)

    def product(v: Any) -> Any:
        return back(curve(push(v)))

    return _operator((columns.size, columns.size), columns.dtype, product, product)


def _symmetric(slope: Callable[[Any], Any], x: Any, layout: Layout) -> Callable[[Any], Any]:
    """The products with the symmetric Jacobian of a gradient: its pullback is also its pushforward."""
    _, back = pulled(_Silent(), slope, (x,), {})
    return lambda v: layout.join(back(layout.seed(v))[0])


def _refuse_complex(layout: Layout, what: str) -> None:
    if layout.dtype.kind == "c":
        raise InputError(
            f"a function of complex numbers has no complex {what}",
            "a function of the real and the imaginary part, f(a + 1j * b)",
        )


def _operator(shape: tuple[int, int], dtype: Any, product: Callable[[Any], Any], adjoint: Callable[[Any], Any]) -> Any:
    """SciPy's operator of two functions of vectors."""
    try:
        from scipy.sparse.linalg import LinearOperator
    except ImportError:
        raise MissingExtraError(
            "linear_operator makes an operator of SciPy, which is not installed",
            "pip install '.[scipy]' in the folder of retrograde",
        ) from None

    def checked(found: Any) -> Any:
        if is_traced(found):
            raise InputError(
                "the function of a linear_operator closes over a traced value; operators hold plain numbers",
                "jvp(f, (x,), (v,)) or hvp(f, x, v), which are differentiated themselves",
            )
        return found

    def of_vector(multiply: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def product_of_vector(v: Any) -> Any:
            v = np.ravel(v)
            if dtype.kind != "c" and np.iscomplexobj(v):
                return product_of_vector(v.real) + 1j * product_of_vector(v.imag)
            return checked(multiply(v))

        return product_of_vector

    def of_matrix(multiply: Callable[[Any], Any], rows: int) -> Callable[[Any], Any]:
        def product_of_matrix(vs: Any) -> Any:
            vs = np.asarray(vs)
            if dtype.kind != "c" and np.iscomplexobj(vs):
                return product_of_matrix(vs.real) + 1j * product_of_matrix(vs.imag)
            directions, passes = np.ascontiguousarray(vs.T), Passes()
            products = [
                checked(passes.along(lambda v: [multiply(v)], directions[start:stop])[0])
                for start, stop in passes.sizes(len(directions), dtype.itemsize * max(shape))
            ]
            return np.concatenate(products).T if products else np.zeros((rows, 0), dtype)

        return product_of_matrix

    right, left = of_vector(product), of_vector(adjoint)
    return LinearOperator(
        shape,
        matvec=right,
        rmatvec=left,
        matmat=of_matrix(product, shape[0]),
        rmatmat=of_matrix(adjoint, shape[1]),
        dtype=dtype,
    )
