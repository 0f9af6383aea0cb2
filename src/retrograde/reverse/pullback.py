"""Pullbacks: the value of a function, and its reverse derivative for as many seeds as wanted."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from retrograde.errors import SeedError
from retrograde.originals import np
from retrograde.reverse.params import Grads, Params
from retrograde.reverse.tape import Tape
from retrograde.trace.handle import is_traced, like_of, shape_of
from retrograde.trace.memory import copied
from retrograde.trace.running import interruptible
from retrograde.trace.structure import Inputs, finished, flatten, leaves_like, unflatten


@interruptible
def pullback(f: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """The value of `f` and its pullback: `y, back = pullback(f, *args)`.

    Args:
        f: returns a number, an array or a nested container of these.
        *args: as for `gradient`. With a single `Params`, `f` is called without arguments.
        **kwargs: passed to `f`, never differentiated.

    Returns:
        `y`, and `back`. `back(y_bar)` takes a seed of the structure and shapes of `y` and returns what `gradient`
        returns; it may be called as often as wanted and from several threads.

    Raises:
        SeedError: (by `back`) the seed does not fit `y`.
    """
    if not args:
        return functools.partial(pullback, f, **kwargs)
    return pulled(Tape(), f, args, kwargs)


def pulled(tape: Tape, f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`pullback`, with the tape that it is to use."""
    if isinstance(args[0], Params) and len(args) == 1:
        params = args[0]
        leaves = params.lifted(tape)
        links = [leaf.link for leaf in leaves.values()]
        outputs = tape.record(f, (), kwargs, leaves)
        primals = [p.value for p in params]

        def collect(bars: list[Any]) -> Any:
            return Grads(params, bars)

    else:
        # The sweeps come later: what the caller does to his arrays until then must not reach them.
        inputs = Inputs(args, lambda primal: tape.leaf(copied(primal) if type(primal) is np.ndarray else primal))
        outputs = tape.record(f, inputs.args, kwargs)
        links, primals, collect = inputs.links, inputs.primals, inputs.collect  # type: ignore[assignment]

    ys, structure = flatten(outputs)
    values = [finished(y.primal, y.primal) if tape.owns(y) else y for y in ys]

    @interruptible
    def back(y_bar: Any) -> Any:
        seeds = [
            (y.link[0], bar)
            for y, bar in zip(ys, _checked_seed(y_bar, values, structure), strict=True)
            if tape.owns(y) and bar is not None
        ]
        bars = tape.sweep(seeds, links)
        for i, primal in enumerate(primals):
            if bars[i] is not None:
                bars[i] = finished(bars[i], primal)
        return collect(bars)

    return unflatten(structure, values), back


def _checked_seed(y_bar: Any, values: list[Any], structure: Any) -> list[Any]:
    """The leaves of a seed, each in the dtype of its output; None is a leaf without a seed."""
    seeds = [y_bar] if structure is None else leaves_like(y_bar, unflatten(structure, values), "seed", "output")
    return [None if seed is None else checked_leaf(seed, value) for seed, value in zip(seeds, values, strict=True)]


def checked_leaf(seed: Any, value: Any) -> Any:
    if not is_traced(seed):
        seed = np.asarray(seed)[()]
    shape, dtype = like_of(value)
    if shape_of(seed) != shape:
        raise SeedError(
            f"the seed has shape {shape_of(seed)}; the output has shape {shape}",
            "np.ones_like(y), for the gradient of the sum of the outputs",
        )
    have = like_of(seed)[1]
    if have == dtype:
        return seed
    if have.kind == "c" and dtype.kind != "c":
        raise SeedError(f"the seed is complex; the output is real ({dtype})", "np.real(seed)")
    return seed.astype(dtype)
