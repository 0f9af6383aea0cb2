"""More of the language for random programs: linear algebra, order, scans, integers, inner functions, recursion."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

Shape = tuple[int, ...]


class Constructs:
    """Statements and expressions, for the writer of random_programs.py."""

    random: random.Random
    scope: Any
    n: int
    m: int
    loops: int
    lines: list[str]
    depth: int
    line: Callable[[str], None]
    pick: Callable[..., str]
    chance: Callable[[float], bool]
    constant: Callable[[], str]
    fresh: Callable[[str], str]
    root: Callable[[], int]
    scalar: Callable[[int], str]
    elements: Callable[[Shape, int], str]
    bounded: Callable[[str], str]
    condition: Callable[[], str]
    distinct: Callable[[Shape], str]
    writable: Callable[[], list[str]]
    index: Callable[[int], str]
    new_array: Callable[[str, Shape], None]

    # --- statements ----------------------------------------------------------------------------------------------

    def more_statements(self) -> list[Callable[[int], int]]:
        return [
            self.search,
            self.inner_function,
            self.born_in_a_branch,
            self.look_up,
            self.scatter,
            self.masked,
            self.stepped,
            self.while_with_else,
        ]

    def search(self, budget: int) -> int:
        """An integer that is found in an array."""
        k = self.fresh("k")
        e = self.elements((self.n,), 1)
        self.line(f"{k} = np.{self.pick(('argmax', 'argmin'))}({e} + {self.distinct((self.n,))})")
        self.scope.integers[k] = (0, self.n - 1)
        return 1

    def inner_function(self, budget: int) -> int:
        """A function that sees the names around it."""
        g, s = self.fresh("g"), self.fresh("s")
        outer = self.scope
        self.scope = outer.copy()
        self.scope.scalars.append("v")
        body = self.scalar(2)
        self.scope = outer
        if self.chance(0.5):
            self.line(f"{g} = lambda v: {body}")
        else:
            self.line(f"def {g}(v, w={self.constant()}):")
            self.line(f"    return w * ({body})")
        self.line(f"{s} = {self.bounded(f'{g}({self.scalar(1)})')} + {g}({self.constant()})")
        self.scope.scalars.append(s)
        return 1

    def born_in_a_branch(self, budget: int) -> int:
        y = self.fresh("y")
        shape = (self.n,)
        self.line(f"if {self.condition()}:")
        self.line(f"    {y} = {self.elements(shape, 2)} + 0.0")
        self.line("else:")
        self.line(f"    {y} = {self.elements(shape, 1)} * 1.0")
        self.new_array(y, shape)
        return 2

    def indices(self, n: int, count: int, distinct: bool) -> str:
        places = self.random.sample(range(n), count) if distinct else [self.random.randrange(n) for _ in range(count)]
        return f"np.array([{', '.join(map(str, places))}])"

    def look_up(self, budget: int) -> int:
        """An array made of elements of another one, by integers that are kept in a name."""
        names = [n for n, a in self.scope.arrays.items() if len(a.shape) >= 1]
        name = self.pick(names)
        shape = self.scope.arrays[name].shape
        i, y = self.fresh("at"), self.fresh("y")
        self.line(f"{i} = {self.indices(shape[0], self.n, False)}")
        self.line(f"{y} = {name}[{i}]")
        self.new_array(y, (self.n, *shape[1:]))
        return 1

    def scatter(self, budget: int) -> int:
        names = [n for n in self.writable() if len(self.scope.arrays[n].shape) == 1]
        if not names:
            return self.look_up(budget)
        name = self.pick(names)
        (n,) = self.scope.arrays[name].shape
        count = self.random.randint(1, n)
        sign = self.pick(("=", "+=", "*="))
        at = self.indices(n, count, sign != "=")
        self.line(f"{name}[{at}] {sign} {self.bounded(self.elements((count,), 1))}")
        return 1

    def masked(self, budget: int) -> int:
        names = [n for n in self.writable() if len(self.scope.arrays[n].shape) == 1]
        if not names:
            return self.look_up(budget)
        name, mask = self.pick(names), self.fresh("mask")
        self.line(f"{mask} = {name} > {self.constant()}")
        kind = self.random.randrange(3)
        if kind == 0:
            self.line(f"{name}[{mask}] {self.pick(('=', '+=', '*='))} {self.bounded(self.scalar(1))}")
        elif kind == 1:
            self.line(f"{name}[~{mask}] = np.sin({name}[~{mask}]) * {self.scalar(1)}")
        else:
            s = self.fresh("s")
            self.line(f"{s} = np.sum({name}[{mask}] ** 2)")
            self.scope.scalars.append(s)
        return 1

    def stepped(self, budget: int) -> int:
        """A state that is bound to a new array in each step."""
        u, new, t, i = self.fresh("y"), self.fresh("new"), self.fresh("t"), self.fresh("i")
        n = self.n
        self.line(f"{u} = {self.elements((n,), 1)} * 1.0")
        self.line(f"for {t} in range({self.random.randint(1, 3)}):")
        outer = self.scope
        self.scope = outer.copy()
        self.new_array(u, (n,))
        self.depth += 1
        self.line(f"{new} = np.{self.pick(('zeros_like', 'empty_like'))}({u})")
        self.line(f"for {i} in range({n}):")
        self.scope.integers[i] = (0, n - 1)
        self.line(f"    {new}[{i}] = np.sin({u}[{i}] * {self.constant()} + {u}[{i} - 1]) + 0.1 * {self.scalar(1)}")
        self.line(f"{u} = {new}")
        self.depth -= 1
        self.scope = outer
        self.new_array(u, (n,))
        return 3

    def while_with_else(self, budget: int) -> int:
        j, s = self.fresh("j"), self.fresh("s")
        self.line(f"{j} = 0")
        self.line(f"{s} = {self.scalar(1)}")
        self.line(f"while {j} < {self.random.randint(1, 4)}:")
        self.line(f"    {j} += 1")
        self.line(f"    {s} = np.tanh({s} * {self.constant()} + {self.scalar(1)})")
        self.line(f"    if {s} > {self.constant()}:")
        self.line(f"        {self.pick(('break', 'continue'))}")
        self.line("else:")
        self.line(f"    {s} *= {self.constant()}")
        self.scope.scalars.append(s)
        return 2

    def recursive_helper(self) -> str:
        """A function that calls itself, of an array, a number and a depth; returns its name."""
        name = self.fresh("again")
        change, back = self.pick(("q * 0.9", "np.sin(q)", "q[::-1]", "q")), self.pick("+-*")
        self.lines += [
            f"def {name}(q, p, n):",
            "    if n == 0:",
            f"        return np.sum(q) * {self.constant()} + p",
            f"    s = np.tanh(p * {self.constant()} + q[n % {self.n}])",
            f"    return {name}({change}, s, n - 1) {back} {self.constant()} * s",
            "",
            "",
        ]
        return name

    # --- expressions ---------------------------------------------------------------------------------------------

    def regular(self, depth: int) -> str:
        """A square matrix that is well away from singular ones."""
        n = self.n
        return f"(np.tanh({self.elements((n, n), depth)}) + {n + 1}.0 * np.eye({n}))"

    def more_scalar(self, depth: int) -> str:
        n = self.n
        e = self.elements((n,), depth)
        return self.pick(
            (
                f"0.1 * np.linalg.det({self.regular(depth)})",
                f"np.linalg.slogdet({self.regular(depth)})[1]",
                f"np.linalg.norm({e} + 0.3)",
                f"np.std({e} + {self.distinct((n,))})",
                f"np.var({e})",
                f"np.median({e} + {self.distinct((n,))})",
                f"special.erf({self.scalar(depth)})",
                f"special.gammaln(1.5 + np.tanh({self.scalar(depth)}))",
                f"special.expit({self.scalar(depth)})",
                f"special.logsumexp(np.tanh({e}))",
                f"np.trapezoid({e})",
                f"np.prod(np.tanh({e}))",
                f"np.einsum('ij,j->', np.tanh({self.elements((self.m, n), depth)}), {e})",
                f"np.hypot(1.0, {self.scalar(depth)})",
                f"np.sinc({self.scalar(depth)})",
            )
        )

    def more_elements(self, shape: Shape, depth: int) -> str:
        n = shape[-1]
        e = self.elements(shape, depth)
        options = [
            f"np.sort({e} + {self.distinct(shape)}, axis={self.random.randrange(-1, len(shape))})",
            f"np.cumsum({e}, axis={self.random.randrange(len(shape))})",
            f"np.cumprod(np.tanh({e}), axis={self.random.randrange(len(shape))})",
            f"np.roll({e}, {self.random.randint(-2, 2)}, axis={self.random.randrange(len(shape))})",
            f"np.flip({e}, axis={self.random.randrange(len(shape))})",
            f"special.expit({e})",
            f"np.clip({e}, -0.7312, 0.8123)",
            f"np.interp({e}, np.array([-2.01, -0.312, 0.4567, 2.03]), np.array([0.3, -1.0, 0.5, 0.2]))",
            f"({e}) * np.searchsorted(np.array([-1.0123, 0.2345, 0.9876]), {e})",
            f"special.softmax(np.tanh({e}), axis={self.random.randrange(len(shape))})",
        ]
        if shape == (self.n,):
            options += [
                f"np.linalg.solve({self.regular(depth)}, {e})",
                f"(np.linalg.inv({self.regular(depth)}) @ {e})",
                f"np.convolve({e}, np.array([0.3, -0.5, 0.2]))[1:{n + 1}]",
                f"np.diff(np.append({e}, {self.scalar(depth)}))",
            ]
        if shape == (self.n, self.n):
            a = self.regular(depth)
            options += [
                f"np.linalg.cholesky({a} @ ({a}).T)",
                f"np.outer({self.elements((n,), depth)}, {self.elements((n,), depth)})",
                f"np.tril({e})",
                f"({e}) @ ({self.elements(shape, depth)})",
            ]
        return self.pick(options)
