"""Products with Jacobians and Hessians that are never formed."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from retrograde.forward.jvp import jvp
from retrograde.reverse.gradient import grad
from retrograde.reverse.pullback import pullback
from retrograde.trace.running import interruptible
from retrograde.trace.structure import flatten, is_variable, leaves_like, unflatten, zero_like


@interruptible
def hvp(f: Callable[..., Any], /, x: Any = None, v: Any = None, **kwargs: Any) -> Any:
    """The product of the Hessian of `f` at `x` with the direction `v`, in the structure of `x`.

    Costs a small multiple of one gradient; the Hessian is not formed.

    >>> hvp(lambda x: np.sum(x ** 3), np.array([1.0, 2.0]), np.array([1.0, 0.0]))
    array([6., 0.])
    """
    if x is None:
        return functools.partial(hvp, f, **kwargs)
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
