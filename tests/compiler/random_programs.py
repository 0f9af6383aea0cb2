"""Random programs in the language of `compile`, as text: loops, branches, views, writes, aliases, calls.

A program is drawn statement by statement from what is in scope: scalars, integers of known range (so that indices are
in range) and arrays of known shape. Its numbers stay moderate, as most functions in it are bounded. Choices depend on
values at places that are hit with probability zero, and the maximum of what may tie is not taken.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from compiler.random_constructs import Constructs

Shape = tuple[int, ...]


class Array(NamedTuple):
    """What is known of an array in scope.

    Attributes:
        shape: its axes.
        root: the number of the memory that it is a part of.
        whole: whether it is a buffer of its own and no view.
    """

    shape: Shape
    root: int
    whole: bool = True


class Scope(NamedTuple):
    """The names that can be used, and what they are."""

    scalars: list[str]
    integers: dict[str, tuple[int, int]]
    arrays: dict[str, Array]

    def copy(self) -> Scope:
        return Scope(list(self.scalars), dict(self.integers), dict(self.arrays))


class Text(NamedTuple):
    """A program.

    Attributes:
        source: the text of its functions; the last is `program`.
        shapes: of its arguments: () for a float, "int" for an integer.
    """

    source: str
    shapes: tuple[Shape | str, ...]


def random_program(seed: int, size: int = 9) -> Text:
    """The program of a seed, of about `size` statements besides those of its helpers."""
    return _Writer(seed, size).program()


class _Writer(Constructs):
    def __init__(self, seed: int, size: int) -> None:
        self.random = random.Random(seed)
        self.size = size
        self.lines: list[str] = []
        self.depth = 1
        self.count = 0
        self.roots = 0
        self.loops = 0  # how many are around
        self.frozen: set[int] = set()  # memory that must not be written
        self.helpers: list[tuple[str, Shape, bool, str]] = []  # name, shape of the array, whether it writes, result
        self.scope = Scope([], {}, {})
        self.result = ""
        self.inside_branch = 0
        self.again = ""
        self.n = self.random.randint(2, 4)
        self.m = self.random.randint(2, 3)

    # --- choosing ------------------------------------------------------------------------------------------------

    def chance(self, p: float) -> bool:
        return self.random.random() < p

    def pick(self, items: Iterable[str]) -> str:
        return self.random.choice(list(items))

    def constant(self) -> str:
        number = f"{self.random.choice((1, 1, -1)) * self.random.uniform(0.15, 1.6):.4f}"
        return f"({number})" if number[0] == "-" else number  # a power of it would be negative otherwise

    def fresh(self, stem: str) -> str:
        self.count += 1
        return f"{stem}{self.count}"

    def root(self) -> int:
        self.roots += 1
        return self.roots

    # --- text ----------------------------------------------------------------------------------------------------

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    @contextmanager
    def block(self, is_loop: bool = False) -> Iterator[None]:
        outer = self.scope
        self.scope = outer.copy()
        self.depth += 1
        self.loops += is_loop
        self.inside_branch += not is_loop
        yield
        self.inside_branch -= not is_loop
        self.loops -= is_loop
        self.depth -= 1
        self.scope = outer

    # --- programs ------------------------------------------------------------------------------------------------

    def program(self) -> Text:
        for _ in range(self.random.choice((0, 0, 1, 1, 2))):
            self.helper()
        if self.chance(0.3):
            self.again = self.recursive_helper()
        if self.chance(0.3):
            self.depth = 0
            self.line(f"OUTSIDE = np.array([{', '.join(self.constant() for _ in range(self.n))}])")
            self.depth = 1
        has_outside = bool(self.lines) and any(line.startswith("OUTSIDE") for line in self.lines)
        shapes: list[Shape | str] = [(), (self.n,), (self.m, self.n)]
        names = ["u", "x", "a"]
        if self.chance(0.3):
            shapes.append((self.n,))
            names.append("w")
        if self.chance(0.3):
            shapes.append("int")
            names.append("k")
        self.scope = Scope(["u"], {}, {})
        for name, shape in zip(names, shapes, strict=True):
            if shape == "int":
                self.scope.integers[name] = (2, 2)
            elif shape:
                self.scope.arrays[name] = Array(shape, self.root())  # type: ignore[arg-type]
        if has_outside:
            self.scope.arrays["OUTSIDE"] = Array((self.n,), self.root())
            self.frozen.add(self.scope.arrays["OUTSIDE"].root)
        if not self.chance(0.15):
            self.frozen |= {array.root for array in self.scope.arrays.values()}
        self.result = self.pick(("scalar", "scalar", "scalar", "array", "both"))
        self.lines.append(f"def program({', '.join(names)}):")
        self.body(self.size)
        self.line(f"return {self.returned()}")
        return Text("\n".join(self.lines) + "\n", tuple(shapes))

    def helper(self) -> None:
        """A function of a number and an array."""
        name = f"helper{len(self.helpers)}"
        shape: Shape = (self.n,)
        writes = self.chance(0.5)
        self.scope = Scope(["p"], {}, {"q": Array(shape, self.root())})
        if not writes:
            self.frozen.add(self.scope.arrays["q"].root)
        self.result = self.pick(("scalar", "scalar", "array"))
        default = f"={self.constant()}" if self.chance(0.3) else ""
        self.lines.append(f"def {name}(q, p{default}):")
        self.body(self.random.randint(1, 3))
        self.line(f"return {self.returned()}")
        self.helpers.append((name, shape, writes, self.result))
        self.lines.append("")
        self.lines.append("")

    def returned(self) -> str:
        s = self.scalar(2)
        if self.result == "scalar":
            own = [n for n, a in self.scope.arrays.items() if a.root not in self.frozen]
            if own:
                s = f"{s} + np.sum({self.pick(own)} * {self.constant()})"
            return s
        array = self.elements((self.n,), 2)
        return array if self.result == "array" else f"{s}, {array}"

    def body(self, budget: int) -> None:
        """A block of statements."""
        start = len(self.lines)
        while budget > 0:
            budget -= self.statement(budget)
        if len(self.lines) == start:
            self.line("pass")

    # --- statements ----------------------------------------------------------------------------------------------

    def statement(self, budget: int) -> int:
        """Write one; returns what it cost of the budget."""
        kinds: list[Callable[[int], int]] = [
            self.set_scalar,
            self.set_scalar,
            self.add_to_scalar,
            self.make_array,
            self.make_array,
            self.make_view,
            self.write_element,
            self.write_element,
            self.write_part,
            self.rebind,
            self.call,
            self.swap,
        ]
        if self.chance(0.35):
            kinds = self.more_statements()
        if budget > 2 and self.loops < 3:
            kinds += [self.for_loop] * 5 + [self.while_loop, self.branch, self.branch]
        if self.loops and self.chance(0.25):
            kinds += [self.leave]
        if self.chance(0.1):
            kinds += [self.early_return]
        return self.random.choice(kinds)(budget)

    def set_scalar(self, budget: int) -> int:
        e = self.scalar(3)
        if self.chance(0.5) and [s for s in self.scope.scalars if s != "u"]:
            name = self.pick(self.scope.scalars)
        else:
            name = self.fresh("s")
        self.line(f"{name} = {e}")
        if name not in self.scope.scalars:
            self.scope.scalars.append(name)
        return 1

    def add_to_scalar(self, budget: int) -> int:
        name = self.pick(self.scope.scalars)
        self.line(f"{name} {self.pick(('+=', '+=', '-=', '*='))} {self.bounded(self.scalar(2))}")
        return 1

    def make_array(self, budget: int) -> int:
        shape = self.shape()
        name = self.fresh("y")
        same = [n for n, a in self.scope.arrays.items() if a.shape == shape]
        kind = self.random.randrange(6)
        if kind == 0:
            self.line(f"{name} = np.zeros({shape})")
        elif kind == 1 and same:
            self.line(f"{name} = {self.pick(same)}.copy()")
        elif kind == 2:
            self.line(f"{name} = np.{self.pick(('full', 'full'))}({shape}, {self.scalar(1)})")
        elif kind == 3 and len(shape) == 1:
            self.line(f"{name} = np.array([{', '.join(self.scalar(1) for _ in range(shape[0]))}])")
        elif kind == 4:
            self.line(f"{name} = np.empty({shape})")
            self.fill(name, shape)
        else:
            self.line(f"{name} = {self.elements(shape, 3)}")
        self.scope.arrays[name] = Array(shape, self.root())
        return 1

    def fill(self, name: str, shape: Shape) -> None:
        """Write every element of a new array in a nest of loops."""
        depth, index, outer = self.depth, [], self.scope
        self.scope = outer.copy()
        for n in shape:
            i = self.fresh("i")
            self.line(f"for {i} in range({n}):")
            self.depth += 1
            self.scope.integers[i] = (0, n - 1)
            index.append(i)
        self.line(f"{name}[{', '.join(index)}] = {self.scalar(2)}")
        self.depth, self.scope = depth, outer

    def make_view(self, budget: int) -> int:
        name = self.pick(self.scope.arrays)
        array = self.scope.arrays[name]
        new = self.fresh("v")
        kind = self.random.randrange(4)
        if kind == 0:
            self.line(f"{new} = {name}")
            self.scope.arrays[new] = Array(array.shape, array.root, False)
            return 1
        if kind == 1 and len(array.shape) == 2:
            self.line(f"{new} = {name}.T")
            self.scope.arrays[new] = Array(array.shape[::-1], array.root, False)
            return 1
        text, shape = self.part(name)
        if shape and text != name:
            self.line(f"{new} = {text}")
            self.scope.arrays[new] = Array(shape, array.root, False)
        return 1

    def new_array(self, name: str, shape: Shape) -> None:
        self.scope.arrays[name] = Array(shape, self.root())

    def writable(self) -> list[str]:
        return [n for n, a in self.scope.arrays.items() if a.root not in self.frozen]

    def write_element(self, budget: int) -> int:
        names = self.writable()
        if not names:
            return self.make_array(budget)
        name = self.pick(names)
        value = self.scalar(2)
        sign = self.pick(("=", "=", "+=", "-=", "*="))
        target = f"{name}[{', '.join(self.index(n) for n in self.scope.arrays[name].shape)}]"
        self.line(f"{target} {sign} {self.bounded(value)}")
        return 1

    def write_part(self, budget: int) -> int:
        names = self.writable()
        if not names:
            return self.make_array(budget)
        name = self.pick(names)
        sign = self.pick(("=", "=", "+=", "*="))
        if self.chance(0.15):
            self.line(f"{name}[{name} > {self.constant()}] {sign} {self.bounded(self.scalar(1))}")
            return 1
        text, shape = self.part(name) if self.chance(0.8) else (f"{name}[:]", self.scope.arrays[name].shape)
        if not shape:
            self.line(f"{text} {sign} {self.bounded(self.scalar(1))}")
            return 1
        if text == name:
            text += "[:]"
        value = self.scalar(1) if self.chance(0.3) else self.elements(shape, 2)
        self.line(f"{text} {sign} {self.bounded(value)}")
        return 1

    def rebind(self, budget: int) -> int:
        """`y = y + 1`, which makes a new array, or `y += 1`, which writes into the old one."""
        names = self.writable()
        if not names:
            return self.make_array(budget)
        name = self.pick(names)
        array = self.scope.arrays[name]
        value = self.bounded(self.elements(array.shape, 2))
        if self.chance(0.5) or not array.whole:
            self.line(f"{name} {self.pick(('+=', '-=', '*='))} {value}")
        elif self.chance(0.7):
            self.line(f"{name} = {value}")
            self.scope.arrays[name] = Array(array.shape, self.root() if not self.loops else array.root)
        else:
            self.line(f"{name} = {name} {self.pick('+-*')} {value}")
            self.scope.arrays[name] = Array(array.shape, self.root() if not self.loops else array.root)
        return 1

    def swap(self, budget: int) -> int:
        if len(self.scope.scalars) > 1 and self.chance(0.4):
            a, b = self.random.sample(self.scope.scalars, 2)
            self.line(f"{a}, {b} = {b}, {self.pick((a, f'{a} * {self.constant()}'))}")
            return 1
        names = [n for n in self.writable() if self.scope.arrays[n].whole]
        pairs = [
            (a, b) for a in names for b in names if a < b and self.scope.arrays[a].shape == self.scope.arrays[b].shape
        ]
        if not pairs:
            return self.set_scalar(budget)
        a, b = self.random.choice(pairs)
        self.line(f"{a}, {b} = {b}, {a}")
        arrays = self.scope.arrays
        arrays[a], arrays[b] = arrays[b], arrays[a]
        return 1

    def call(self, budget: int) -> int:
        """A helper with a part of an array."""
        if self.again and self.chance(0.4):
            s = self.fresh("s")
            self.line(
                f"{s} = {self.again}({self.elements((self.n,), 1)}, {self.scalar(1)}, {self.random.randint(0, 3)})"
            )
            self.scope.scalars.append(s)
            return 1
        if not self.helpers:
            return self.set_scalar(budget)
        helper, shape, writes, result = self.random.choice(self.helpers)
        names = [n for n, a in self.scope.arrays.items() if a.shape == shape and not (writes and a.root in self.frozen)]
        if not names:
            return self.make_array(budget)
        name = self.pick(names)
        text = f"{helper}({name}, {self.scalar(1)})" if self.chance(0.7) else f"{helper}(p={self.scalar(1)}, q={name})"
        if result == "scalar":
            if self.chance(0.5) and self.scope.scalars:
                self.line(f"{self.pick(self.scope.scalars)} += {self.bounded(text)}")
            else:
                s = self.fresh("s")
                self.line(f"{s} = {text} * {self.scalar(1)}")
                self.scope.scalars.append(s)
        else:
            y = self.fresh("y")
            self.line(f"{y} = {text} * {self.scalar(1)}")
            self.scope.arrays[y] = Array(shape, self.root())
        return 1

    # --- control -------------------------------------------------------------------------------------------------

    def for_loop(self, budget: int) -> int:
        inner = self.random.randint(1, max(1, min(budget - 1, 5)))
        vectors = [n for n, a in self.scope.arrays.items() if len(a.shape) == 1]
        matrices = [n for n, a in self.scope.arrays.items() if len(a.shape) == 2]
        kind = self.random.randrange(12)
        i = self.fresh("i")
        if kind == 0 and vectors:
            name = self.pick(vectors)
            s = self.fresh("e")
            with self.frozen_while(name), self.block(True):
                self.lines.append("    " * (self.depth - 1) + f"for {s} in {name}:")
                self.scope.scalars.append(s)
                self.body(inner)
        elif kind == 1 and matrices:
            name = self.pick(matrices)
            row = self.fresh("r")
            array = self.scope.arrays[name]
            with self.block(True):
                self.lines.append("    " * (self.depth - 1) + f"for {i}, {row} in enumerate({name}):")
                self.scope.arrays[row] = Array(array.shape[1:], array.root, False)
                self.scope.integers[i] = (0, array.shape[0] - 1)
                self.body(inner)
        elif kind == 2 and vectors:
            name = self.pick(vectors)
            s = self.fresh("e")
            n = self.scope.arrays[name].shape[0]
            with self.frozen_while(name), self.block(True):
                self.lines.append("    " * (self.depth - 1) + f"for {i}, {s} in enumerate({name}):")
                self.scope.scalars.append(s)
                self.scope.integers[i] = (0, n - 1)
                self.body(inner)
        elif kind == 3 and len(vectors) > 1:
            one, two = self.random.sample(vectors, 2)
            s, t = self.fresh("e"), self.fresh("e")
            with self.frozen_while(one), self.frozen_while(two), self.block(True):
                self.lines.append("    " * (self.depth - 1) + f"for {s}, {t} in zip({one}, {two}):")
                self.scope.scalars.extend((s, t))
                self.body(inner)
        else:
            text, low, high = self.range()
            with self.block(True):
                self.lines.append("    " * (self.depth - 1) + f"for {i} in {text}:")
                self.scope.integers[i] = (low, high)
                self.body(inner)
            if self.chance(0.07):
                self.line("else:")
                with self.block():
                    self.body(1)
        return inner + 1

    @contextmanager
    def frozen_while(self, name: str) -> Iterator[None]:
        """The memory of an array is not written inside."""
        before = set(self.frozen)
        self.frozen.add(self.scope.arrays[name].root)
        yield
        self.frozen.clear()
        self.frozen |= before

    def range(self) -> tuple[str, int, int]:
        """A range of integers, and the least and the greatest that it gives (if any)."""
        n = self.random.randint(2, 4)
        sized = [(name, axis) for name, a in self.scope.arrays.items() for axis in range(len(a.shape))]
        kind = self.random.randrange(9)
        outer = list(self.scope.integers.items())
        if kind <= 2 and sized:
            name, axis = self.random.choice(sized)
            high = self.scope.arrays[name].shape[axis]
            return f"range({name}.shape[{axis}])" if self.chance(0.7) or axis else f"range(len({name}))", 0, high - 1
        if kind == 3:
            return f"range({n - 1}, -1, -1)", 0, n - 1
        if kind == 4:
            return f"range({n}, 0, -2)", 1, n
        if kind == 5:
            return f"range(0, {n + 1}, 2)", 0, n
        if kind == 6 and outer:
            var, (low, high) = self.random.choice(outer)
            c = self.random.randint(0, 2)
            return f"range({var} - {c}, {n})", min(low - c, n), max(n - 1, low - c)
        if kind == 7 and outer:
            var, (low, high) = self.random.choice(outer)
            if high <= 6:
                c = self.random.randint(-1, 1)
                return f"range({var} + {c})", 0, max(high + c - 1, 0)
        if kind == 8 and outer:
            var, (low, high) = self.random.choice(outer)
            if low >= 0 and high <= 6:
                return f"range({var}, -1, -1)", 0, max(high, 0)
        return f"range({n})", 0, n - 1

    def while_loop(self, budget: int) -> int:
        inner = self.random.randint(1, max(1, min(budget - 1, 4)))
        i = self.fresh("j")
        n = self.random.randint(1, 4)
        self.line(f"{i} = 0")
        test = f"{i} < {n}"
        if self.chance(0.5):
            test += f" and ({self.condition()})"
        with self.block(True):
            self.lines.append("    " * (self.depth - 1) + f"while {test}:")
            if self.chance(0.5):
                self.scope.integers[i] = (1, n)
                self.line(f"{i} += 1")
                self.body(inner)
            else:
                # No `continue` above the count.
                loops, self.loops = self.loops, 0
                self.scope.integers[i] = (0, n - 1)
                self.body(inner)
                self.loops = loops
                self.line(f"{i} += 1")
        return inner + 1

    def branch(self, budget: int) -> int:
        inner = self.random.randint(1, max(1, min(budget - 1, 3)))
        self.line(f"if {self.condition()}:")
        with self.block():
            self.body(inner)
        if self.chance(0.25):
            self.line(f"elif {self.condition()}:")
            with self.block():
                self.body(1)
        if self.chance(0.5):
            self.line("else:")
            with self.block():
                self.body(inner)
        return 2 * inner

    def leave(self, budget: int) -> int:
        self.line(f"if {self.condition()}:")
        with self.block():
            if self.chance(0.5):
                self.body(1)
            self.line(self.pick(("break", "continue")))
        return 1

    def early_return(self, budget: int) -> int:
        self.line(f"if {self.condition()}:")
        with self.block():
            self.line(f"return {self.returned()}")
        return 1

    # --- expressions ---------------------------------------------------------------------------------------------

    def bounded(self, text: str) -> str:
        """An expression that cannot grow."""
        return text if self.loops < 1 or self.chance(0.3) else f"{self.pick(('np.tanh', 'np.sin'))}({text})"

    def shape(self) -> Shape:
        return self.random.choice(((self.n,), (self.n,), (self.n,), (self.m, self.n), (self.m,), (self.n, self.n)))

    def index(self, n: int) -> str:
        """An index of an axis of length n."""
        options = [str(self.random.randrange(-n, n))]
        for name, (low, high) in self.scope.integers.items():
            if -n <= low and high < n:
                options += [name] * 4
            if -n <= low - 1 and high - 1 < n:
                options.append(f"{name} - 1")
            if -n <= -1 - high and -1 - low < n:
                options.append(f"-1 - {name}")
            if low >= 0:
                options += [f"({name} + {self.random.randint(0, 2)}) % {n}", f"min({name}, {n - 1})"]
        if self.scope.scalars and self.chance(0.05):
            options.append(f"int(np.tanh({self.pick(self.scope.scalars)}) * 3.0 + 4.1) % {n}")
        return self.pick(options)

    def part(self, name: str) -> tuple[str, Shape]:
        """A part of an array by integers and slices."""
        parts: list[str] = []
        shape: list[int] = []
        for n in self.scope.arrays[name].shape:
            kind = self.random.randrange(7)
            if kind < 2:
                parts.append(self.index(n))
                continue
            low = self.random.randint(0, n - 1)
            high = self.random.randint(low + 1, n)
            text, used = {
                2: (":", slice(None)),
                3: (f"{low}:{high}", slice(low, high)),
                4: ("::2", slice(None, None, 2)),
                5: ("::-1", slice(None, None, -1)),
                6: (f"-{n - low}:", slice(low, None)),
            }[kind]
            parts.append(text)
            shape.append(len(range(*used.indices(n))))
        return f"{name}[{', '.join(parts)}]", tuple(shape)

    def condition(self) -> str:
        options = [f"{self.scalar(1)} {self.pick('<>')} {self.constant()}"] * 3
        for name in self.scope.integers:
            options.append(f"{name} % 2 == {self.random.randint(0, 1)}")
            options.append(f"{name} > {self.random.randint(0, 2)}")
        text = self.pick(options)
        if self.chance(0.2):
            text = f"{text} {self.pick(('and', 'or'))} {self.pick(options)}"
        return f"not ({text})" if self.chance(0.1) else text

    def scalar(self, depth: int) -> str:
        """An expression for a number."""
        if depth <= 0 or self.chance(0.15):
            return self.scalar_leaf()
        a, b = self.scalar(depth - 1), self.scalar(depth - 1)
        if self.chance(0.08):
            return self.more_scalar(depth - 1)
        kind = self.random.randrange(15)
        if kind < 5:
            return f"({a} {self.pick('+-*')} {b})"
        if kind == 13:
            name = self.pick(self.scope.arrays)
            text, shape = self.part(name)
            return f"np.sum({text})" if shape else text
        if kind == 14:
            return self.reduction(depth - 1)
        return {
            5: f"{a} / (1.5 + {b} ** 2)",
            6: f"np.sin({a})",
            7: f"np.tanh({a})",
            8: f"np.exp(-({a}) ** 2)",
            9: f"np.sqrt(1.0 + {a} ** 2)",
            10: f"({a} if {self.condition()} else {b})",
            11: f"abs({a} + {self.constant()})",
            12: f"math.cos({a})",
        }[kind]

    def scalar_leaf(self) -> str:
        options = [self.constant()]
        options += self.scope.scalars * 2
        if self.scope.arrays:
            name = self.pick(self.scope.arrays)
            text = f"{name}[{', '.join(self.index(n) for n in self.scope.arrays[name].shape)}]"
            options += [text] * (3 + len(self.scope.scalars))
        if self.scope.integers:
            name = self.pick(self.scope.integers)
            options += [f"0.3 * {name}"]
        return self.pick(options)

    def reduction(self, depth: int) -> str:
        shape = self.shape()
        e = self.elements(shape, depth)
        kind = self.random.randrange(5)
        if kind == 0:
            return f"np.sum({e})"
        if kind == 1:
            return f"np.mean({e})"
        if kind == 2:
            return f"np.{self.pick(('max', 'min'))}({e} + {self.distinct(shape)})"
        if kind == 3 and len(shape) == 1:
            return f"np.dot({e}, {self.elements(shape, 1)})"
        return f"({e}).sum()"

    def distinct(self, shape: Shape) -> str:
        """An array without ties: an argument of the program, if there is one of that shape, or numbers."""
        if len(shape) == 1:
            return f"np.array([{', '.join(f'{0.713 * (k + 1) ** 2:.3f}' for k in range(shape[0]))}])"
        rows = [[f"{0.713 * (k + 1) ** 2 + 0.137 * j:.3f}" for k in range(shape[1])] for j in range(shape[0])]
        return "np.array([" + ", ".join(f"[{', '.join(row)}]" for row in rows) + "])"

    def elements(self, shape: Shape, depth: int) -> str:
        """An expression for an array of the shape; it may need broadcasting, but not all of it."""
        if depth <= 0 or self.chance(0.15):
            return self.array_leaf(shape)
        a = self.elements(shape, depth - 1)
        b = self.narrower(shape, depth - 1)
        if self.chance(0.12):
            return self.more_elements(shape, depth - 1)
        kind = self.random.randrange(14)
        if kind < 5:
            a, b = (a, b) if self.chance(0.6) else (b, a)
            return f"({a} {self.pick('+-*')} {b})"
        if kind == 12 and len(shape) == 1 and depth > 1:
            axis = self.random.randint(0, 1)
            other = (self.m, *shape) if axis == 0 else (*shape, self.m)
            inner = self.elements(other, depth - 2)
            return f"np.{self.pick(('sum', 'mean'))}({inner}, axis={axis})"
        if kind == 13 and len(shape) == 1:
            names = [n for n, x in self.scope.arrays.items() if len(x.shape) == 2 and x.shape[0] == shape[0]]
            if names:
                name = self.pick(names)
                return f"({name} @ {self.elements(self.scope.arrays[name].shape[1:], depth - 1)})"
            return f"np.cumsum({a})"
        return {
            5: f"{a} / (1.5 + {b} ** 2)",
            6: f"np.sin({a})",
            7: f"np.tanh({a})",
            8: f"np.exp(-({a}) ** 2)",
            9: f"np.sqrt(1.0 + {a} ** 2)",
            10: f"np.where({a} > {self.constant()}, {a}, {b})",
            11: f"np.maximum({a}, {self.constant()})",
            12: f"np.cos({a})",
            13: f"np.abs({a} + {self.constant()})",
        }[kind]

    def narrower(self, shape: Shape, depth: int) -> str:
        """Something that is broadcast to the shape."""
        kind = self.random.randrange(5)
        if kind == 0:
            return self.scalar(depth)
        if kind == 1 and len(shape) == 2:
            return self.elements(shape[1:], depth)
        if kind == 2 and len(shape) == 2:
            inner = self.elements(shape[:1], depth)
            return f"({inner})[:, None]"
        return self.elements(shape, depth)

    def array_leaf(self, shape: Shape) -> str:
        options: list[str] = []
        for name, array in self.scope.arrays.items():
            if array.shape == shape:
                options += [name] * 3
                options.append(f"{name}[::-1]")
            if array.shape == shape[::-1] and len(shape) == 2:
                options.append(f"{name}.T")
            if len(array.shape) == 2 and array.shape[1:] == shape:
                options.append(f"{name}[{self.index(array.shape[0])}]")
            if len(array.shape) == 2 and array.shape[:1] == shape:
                options.append(f"{name}[:, {self.index(array.shape[1])}]")
            if len(array.shape) == 1 == len(shape) and self.chance(0.2):
                options.append(f"{name}[np.array([{', '.join(self.index(array.shape[0]) for _ in range(shape[0]))}])]")
        if not options:
            return f"np.full({shape}, {self.scalar_leaf()})"
        return self.pick(options)
