"""Random programs of writes, views and arithmetic, mapped over a batch: they do what a loop over the examples does."""

from __future__ import annotations

import os
import random
from typing import Any

import numpy as np
import pytest
from programs import BUFFER_KINDS, BUFFERED, KINDS, TRACED, Program, draw_program

from retrograde import BatchError, MutationError, gradient, jvp, pullback, vmap

LONG = "RETROGRADE_LONG" in os.environ
COUNT = 4000 if LONG else 60
EXAMPLES = 3

# A branch that depends on the values is refused, and so are derivatives that programs take by differences.
MAPPABLE = {kind: weight for kind, weight in KINDS.items() if kind != "branch"}


def examples_of(program: Program) -> list[Any]:
    """For each argument several near its own, with the examples in front."""
    return [np.stack([a.values * (1 + 0.03 * i) for i in range(EXAMPLES)]) for a in program.arguments]


def arguments(program: Program, batch: list[Any], i: int) -> list[Any]:
    # A float64 in the place of a Python number, since that is what an element of an array is.
    return [x[i] if a.layout == "number" else a.array(x[i]) for a, x in zip(program.arguments, batch, strict=True)]


def agrees(program: Program, kinds: dict[str, Any]) -> None:
    f = program.function(kinds)
    batch = examples_of(program)
    each = [arguments(program, batch, i) for i in range(EXAMPLES)]
    fresh = lambda: [x.copy() for x in batch]

    def same(got: Any, want: Any, what: str) -> None:
        for a, b in zip(got, want, strict=True):
            np.testing.assert_allclose(a, b, 1e-9, 1e-9, err_msg=f"{what}\n{program}")

    same([vmap(f)(*fresh())], [np.stack([f(*arguments(program, batch, i)) for i in range(EXAMPLES)])], "value")
    wanted = [np.stack(bars) for bars in zip(*(_zeros(gradient(f, *x), x) for x in each), strict=True)]
    same(vmap(lambda *x: tuple(_zeros(gradient(f, *x), x)))(*fresh()), wanted, "gradient inside")
    same(_zeros(gradient(lambda *x: np.sum(vmap(f)(*x)), *fresh()), batch), wanted, "gradient outside")
    dots = [np.cos(np.arange(x.size)).reshape(x.shape) for x in batch]
    push = [jvp(f, tuple(arguments(program, batch, i)), tuple(dot[i] for dot in dots))[1] for i in range(EXAMPLES)]
    same([vmap(lambda *x: jvp(f, x[: len(batch)], x[len(batch) :])[1])(*fresh(), *dots)], [push], "pushforward inside")
    same([jvp(vmap(f), tuple(fresh()), tuple(dots))[1]], [push], "pushforward outside")
    x = arguments(program, batch, 0)
    one_by_one = [
        jvp(f, tuple(arguments(program, batch, 0)), tuple(dot[i] for dot in dots))[1] for i in range(EXAMPLES)
    ]
    same([vmap(lambda *v: jvp(f, tuple(arguments(program, batch, 0)), v)[1])(*dots)], [one_by_one], "many tangents")
    _, back = pullback(f, *x)
    seeds = np.array([1.0, -2.0, 0.5])
    pulled = [np.stack(bars) for bars in zip(*(_zeros(back(seed), x) for seed in seeds), strict=True)]
    same(vmap(lambda seed: tuple(_zeros(back(seed), x)))(seeds), pulled, "many cotangents")


def refusal(program: Program, kinds: dict[str, Any]) -> str | None:
    """What the error says if the program cannot be mapped."""
    try:
        vmap(program.function(kinds))(*examples_of(program))
    except BatchError as error:
        return str(error)
    except MutationError as error:
        # A write that overlaps what it reads is refused outside of a batch, too.
        with pytest.raises(MutationError, match="they share memory"):
            gradient(program.function(kinds), *arguments(program, examples_of(program), 0))
        return str(error)
    return None


def _zeros(bars: Any, x: Any) -> list[Any]:
    return [np.zeros(np.shape(part)) if bar is None else bar for bar, part in zip(bars, x, strict=True)]


@pytest.mark.parametrize("block", range(10))
@pytest.mark.parametrize(
    ("kinds", "made_of"), [(MAPPABLE, TRACED), (BUFFER_KINDS, BUFFERED)], ids=["arrays", "buffers"]
)
def test_random_programs_are_mapped(kinds: dict[str, int], made_of: dict[str, Any], block: int) -> None:
    rng = random.Random(f"{block} {random.random() if LONG else 0}")
    tried = 0
    with np.errstate(all="ignore"):
        for _ in range(COUNT // (20 if made_of is BUFFERED else 10)):
            program = draw_program(rng.randrange, kinds)
            if any(a.values.shape == () and a.layout != "number" for a in program.arguments):
                continue  # an example without axes is a number
            message = refusal(program, made_of)
            if message is None:
                agrees(program, made_of)
                tried += 1
            else:
                # What else depends on the values: float(x), a mask as an index.
                assert "needs one number" in message or "mask" in message or "share memory" in message, str(program)
    assert tried
