"""Random programs called by random functions, which write into arguments and results afterwards, in nested transforms.

The same source, compiled and not, must agree: who shares memory with whom, what is traced and what is plain. All run as
plain Python. With RETROGRADE_LONG set there are 3,000 of them.
"""

from __future__ import annotations

import math
import os
import random
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from compiler.random_programs import Text, random_program
from compiler.test_random_programs import arguments_of, function_of

from retrograde import BatchError, ConversionError, LanguageError, MutationError, grad, gradient, jvp, vmap
from retrograde.compiler.compiled import Compiled
from retrograde.compiler.settings import Settings
from retrograde.trace.interception import originals

special = pytest.importorskip("scipy.special")

GROUPS = 6
IN_A_GROUP = 500 if "RETROGRADE_LONG" in os.environ else 10
SIZE = 6
PARTS = ("{}", "{}[1:]", "{}[::-1]", "{}.T", "{}[:-1]", "{}.reshape(-1)", "{}[0:1]", "{} * 1.5")


class InPython(Compiled):
    """A compiled function whose programs are run as plain Python, and the function itself too."""

    def _bound(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        of, arguments = super()._bound(args, kwargs)
        of.is_plain = True
        return of, arguments

    def _by_numba(self, of: Any, args: Any) -> Any:
        with originals():
            return (self._function(*args),)


def returning_parts(text: Text, draw: random.Random) -> Text | None:
    """The program with parts of its arguments as further results; None where it has none, or returns early."""
    head, _, body = text.source.rpartition("def program(")
    lines = body.splitlines()
    arrays = [p for p, shape in zip(re.findall(r"\w+", body[: body.index(")")]), text.shapes) if is_array(shape)]
    if [k for k, line in enumerate(lines) if "return" in line] != [len(lines) - 1] or not arrays:
        return None
    parts = [draw.choice(PARTS).format(draw.choice(arrays)) for _ in range(draw.randint(1, 3))]
    lines[-1] = f"{lines[-1].replace('return ', 'return (', 1)}), {', '.join(parts)}"
    return text._replace(source="\n".join([f"{head}def program({lines[0]}", *lines[1:], ""]))


def is_array(shape: Any) -> bool:
    return isinstance(shape, tuple) and shape != ()


def in_some_memory(x: Any, draw: random.Random) -> tuple[Any, Any]:
    """An array made of `x` and what it is a part of."""
    how = draw.randrange(5)
    if how == 0:
        return (a := np.copy(x)), a
    if how == 1:
        return (a := x * 1.0 + 0.0), a
    if how == 2:
        return (a := np.copy(np.copy(x).T)).T, a
    around = np.zeros((2 * x.shape[0], *x.shape[1:]))
    part = slice(1, 1 + x.shape[0]) if how == 3 else slice(None, None, 2)
    around[part] = x
    return around[part], around


def caller(g: Callable[..., Any], shapes: tuple[Any, ...], seed: int) -> Callable[..., Any]:
    """A function that calls `g` once or twice, writes here and there, and looks at everything."""

    def f(*xs: Any) -> Any:
        draw = random.Random(seed)
        made = [in_some_memory(x, draw) if is_array(shape) else (x, None) for x, shape in zip(xs, shapes, strict=True)]
        arrays = [a for pair in made for a in pair if a is not None and np.ndim(a)]
        seen: list[Any] = []
        for _ in range(draw.randint(1, 2)):
            seen += leaves(g(*[x for x, _ in made]))
            pool = [*arrays, *(a for a in seen if np.ndim(a))]
            for _ in range(draw.randrange(3) if pool else 0):
                write(draw.choice(pool), draw.choice(pool), draw)
        return sum(weighed(a, k + 1) for k, a in enumerate([*seen, *arrays]))

    return f


def write(a: Any, b: Any, draw: random.Random) -> None:
    if a.size and b.size:
        i = draw.randrange(a.shape[0])
        if draw.randrange(2):
            a[i] = 0.3 * b[tuple(draw.randrange(n) for n in b.shape)] + 0.1
        else:
            a[i] *= 0.5


def weighed(a: Any, weight: int) -> Any:
    return weight * np.sum(np.sin(a * 0.1) * np.reshape(np.cos(np.arange(np.size(a))), np.shape(a)))


def leaves(value: Any) -> list[Any]:
    return [leaf for part in value for leaf in leaves(part)] if isinstance(value, tuple | list) else [value]


class Call:
    """A caller of a program in some of whose arguments there are derivatives, at three points near each other."""

    def __init__(self, text: Text, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.text, self.seed = text, seed
        self.args = arguments_of(text, seed)
        self.function = function_of(text, f"<caller {seed}>", {"np": np, "math": math, "special": special})
        places = [i for i, shape in enumerate(text.shapes) if shape != "int"]
        self.places = places[:1] if rng.integers(3) == 0 else places
        self.x = tuple(self.args[i] for i in self.places)
        self.v = tuple(rng.uniform(-1, 1, np.shape(x))[()] for x in self.x)
        self.points = [tuple(x + t * v for x, v in zip(self.x, self.v, strict=True)) for t in (0, 1e-3, -1e-3)]
        self.stacked = tuple(np.stack(xs) for xs in zip(*self.points, strict=True))

    def of(self, g: Callable[..., Any]) -> Callable[..., Any]:
        f = caller(g, self.text.shapes, self.seed)

        def of_some(*xs: Any) -> Any:
            given = dict(zip(self.places, xs, strict=True))
            return f(*[given.get(i, arg) for i, arg in enumerate(self.args)])

        return of_some

    def each(self, transform: Callable[..., Any]) -> Any:
        """What a transform gives at each point, stacked."""
        found = [leaves(transform(*point)) for point in self.points]
        return [np.stack(parts) for parts in zip(*found, strict=True)]

    def comparisons(self, f: Any, g: Any) -> Iterator[tuple[str, Callable[[], Any], Callable[[], Any]]]:
        """What must be equal for `f` and the compiled `g`."""
        x, v, every = self.x, self.v, tuple(range(len(self.x)))

        def product(h: Any) -> Any:
            return gradient(lambda *x: jvp(h, x, v)[1], *x)

        def summed(h: Any) -> Any:
            return gradient(lambda *x: np.sum(vmap(h)(*x)), *self.stacked)

        def gradients(*x: Any) -> Any:
            bars = gradient(f, *x)
            return [np.zeros(np.shape(part)) if bar is None else bar for bar, part in zip(bars, x, strict=True)]

        yield "gradient", lambda: gradient(f, *x), lambda: gradient(g, *x)
        yield "jvp", lambda: jvp(f, x, v), lambda: jvp(g, x, v)
        yield "Hessian product", lambda: product(f), lambda: product(g)
        yield "batch", lambda: self.each(f), lambda: vmap(g)(*self.stacked)
        yield "batch of gradients", lambda: self.each(gradients), lambda: vmap(grad(g, argnums=every))(*self.stacked)
        yield "gradient of a batch", lambda: self.each(gradients), lambda: summed(g)


@pytest.mark.parametrize("group", range(GROUPS))
def test_compiled_or_not_a_caller_gives_the_same(group: int) -> None:
    tried = 0
    for seed in range(20_000 + group * 1000, 20_000 + group * 1000 + IN_A_GROUP):
        plain = random_program(seed, SIZE)
        text = returning_parts(plain, random.Random(seed)) or plain
        if "OUTSIDE" in text.source or text.shapes.count("int") == len(text.shapes):
            continue  # what is written into a constant from outside would be there in the next call
        call = Call(text, seed)
        f, g = call.of(call.function), call.of(InPython(call.function, Settings(cache=False)))
        with np.errstate(all="ignore"):
            tried += sum(_agree(*names) for names in call.comparisons(f, g))
    assert tried > IN_A_GROUP


def _agree(name: str, plain: Callable[[], Any], compiled: Callable[[], Any]) -> bool:
    try:
        expected = plain()
        found = compiled()
    except (LanguageError, ConversionError):
        return False  # not in the language of compile, or what only that takes: int(x) of what is traced
    except (BatchError, MutationError, ValueError) as error:
        # The examples of a batch have no place in a plain array; compiled, more depends on them than by itself.
        if "batch" in name and re.search("plain array|sequence", str(error)):
            return False
        raise
    for a, b in zip(leaves(expected), leaves(found), strict=True):
        np.testing.assert_allclose(0.0 if b is None else b, 0.0 if a is None else a, rtol=1e-6, atol=1e-9, err_msg=name)
    return True
