"""Random programs with complex numbers, in the manner of random_programs.py, and smaller ones.

What a name is shows in its first letter: r a real number, c a complex one (or a real one that may become so), x
an array of real numbers, z one of complex numbers, i an index. All arrays have `SIZE` elements, views fewer.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

SIZE = 3


def random_complex_program(seed: int, size: int = 8) -> str:
    """The text of `program(c0, r0, z0, x0)` of a seed."""
    return _Writer(seed, size).text()


class _Writer:
    def __init__(self, seed: int, size: int) -> None:
        self.random = random.Random(seed)
        self.size = size
        self.lines: list[str] = []
        self.depth = 1
        self.loops = 0
        self.count = 0
        self.names: dict[str, list[str]] = {"r": ["r0"], "c": ["c0"], "x": ["x0"], "z": ["z0"], "i": []}
        self.own: list[str] = []  # arrays that may be written

    def text(self) -> str:
        self.lines.append("def program(c0, r0, z0, x0):")
        self.statements(self.size)
        total = " + ".join(f"np.sum({name} * {self.constant()})" for name in (*self.own, "z0")[:3])
        results = (f"abs({total}) + {self.real(1)}", f"{total} + {self.complex(2)}", self.array("z", 2))
        self.line(f"return {self.random.choice((results[0], results[0], results[1], f'{results[0]}, {results[2]}'))}")
        return "\n".join(self.lines) + "\n"

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    @contextmanager
    def block(self, is_loop: bool) -> Iterator[None]:
        """What is bound inside is not read outside."""
        names, own = {k: list(v) for k, v in self.names.items()}, list(self.own)
        self.depth += 1
        self.loops += is_loop
        yield
        self.loops -= is_loop
        self.depth -= 1
        self.names, self.own = names, own

    def fresh(self, letter: str) -> str:
        self.count += 1
        return f"{letter}{self.count}"

    def constant(self) -> str:
        return f"{self.random.choice((1, -1)) * self.random.uniform(0.2, 1.5):.3f}"

    # --- statements ----------------------------------------------------------------------------------------------

    def statements(self, budget: int) -> None:
        while budget > 0:
            kinds = [self.scalar, self.scalar, self.added, self.made, self.made, self.written, self.written, self.view]
            if budget > 2 and self.loops < 2:
                kinds += [self.loop, self.loop, self.loop, self.branch, self.repeated]
            budget -= self.random.choice(kinds)(budget)

    def scalar(self, budget: int) -> int:
        letter = self.random.choice("rcc")
        value = self.real(2) if letter == "r" or self.random.random() < 0.2 else self.complex(3)
        known = [n for n in self.names[letter] if not n.endswith("0")]
        name = self.random.choice(known) if known and self.random.random() < 0.6 else self.fresh(letter)
        self.line(f"{name} = {self.bounded(value)}")
        if name not in self.names[letter]:
            self.names[letter].append(name)
        return 1

    def added(self, budget: int) -> int:
        letter = self.random.choice("rcc")
        value = self.real(2) if letter == "r" or self.random.random() < 0.3 else self.complex(2)
        self.line(
            f"{self.random.choice(self.names[letter])} {self.random.choice(('+=', '-=', '*='))} {self.bounded(value)}"
        )
        return 1

    def made(self, budget: int) -> int:
        letter = self.random.choice("zzx")
        name = self.fresh(letter)
        kind = self.random.randrange(4)
        dtype = ", np.complex128" if letter == "z" else ""
        if kind == 0:
            self.line(f"{name} = np.zeros({SIZE}{dtype})")
        elif kind == 1:
            self.line(f"{name} = {self.random.choice(self.names[letter][:1])}.copy()")
        elif kind == 2:
            self.line(f"{name} = np.ones({SIZE}{dtype}) * {self.bounded(self.scalar_of(letter))}")
        else:
            self.line(f"{name} = {self.array(letter, 3)} * {self.constant()}")  # and no other name for an argument
        self.names[letter].append(name)
        self.own.append(name)
        return 1

    def view(self, budget: int) -> int:
        if not self.own:
            return self.made(budget)
        name = self.random.choice(self.own)
        part = self.random.choice(("[::-1]", "[:]", ""))
        new = self.fresh(name[0])
        self.line(f"{new} = {name}{part}")
        self.names[name[0]].append(new)
        self.own.append(new)
        return 1

    def written(self, budget: int) -> int:
        if not self.own:
            return self.made(budget)
        name = self.random.choice(self.own)
        sign = self.random.choice(("=", "=", "+=", "-=", "*="))
        if self.random.random() < 0.3:
            value = self.array(name[0] if self.random.random() < 0.7 else "x", 2)
            self.line(f"{name}{self.random.choice(('[:]', '[::-1]', '[:]'))} {sign} {self.bounded(value, 'np.abs')}")
            return 1
        value = self.scalar_of(name[0]) if self.random.random() < 0.7 else self.real(2)
        self.line(f"{name}[{self.index()}] {sign} {self.bounded(value)}")
        return 1

    def loop(self, budget: int) -> int:
        i = self.fresh("i")
        self.line(f"for {i} in range({self.random.choice((f'{SIZE}', f'1, {SIZE}', f'{SIZE - 1}, -1, -1'))}):")
        with self.block(True):
            self.names["i"].append(i)
            self.statements(inner := self.random.randint(1, 4))
            if self.random.random() < 0.2:
                self.line(f"if {self.condition()}:")
                self.line(f"    {self.random.choice(('break', 'continue'))}")
                self.statements(1)
        return inner + 1

    def repeated(self, budget: int) -> int:
        k = self.fresh("k")
        self.line(f"{k} = 0")
        self.line(f"while {k} < 3 and {self.condition()}:")
        with self.block(True):
            self.line(f"{k} += 1")
            self.statements(inner := self.random.randint(1, 3))
        return inner + 1

    def branch(self, budget: int) -> int:
        self.line(f"if {self.condition()}:")
        with self.block(False):
            self.statements(inner := self.random.randint(1, 3))
        if self.random.random() < 0.6:
            self.line("else:")
            with self.block(False):
                self.statements(1)
        return inner + 1

    # --- expressions ---------------------------------------------------------------------------------------------

    def condition(self) -> str:
        return f"{self.real(1)} {self.random.choice('<>')} {self.constant()}"

    def index(self) -> str:
        known = self.names["i"]
        if known and self.random.random() < 0.7:
            i = self.random.choice(known)
            return self.random.choice((i, i, f"({i} + 1) % {SIZE}"))
        return str(self.random.randrange(SIZE))

    def bounded(self, text: str, absolute: str = "abs") -> str:
        kind = self.random.randrange(3)
        return f"({text}) * 0.4" if kind == 0 else f"({text}) / (1.0 + {absolute}({text}) ** 2)"

    def scalar_of(self, letter: str) -> str:
        return self.complex(2) if letter in "cz" else self.real(2)

    def real(self, depth: int) -> str:
        kind = self.random.randrange(10) if depth > 0 else 0
        if kind < 3:
            element = f"{self.random.choice(self.names['x'])}[{self.index()}]"
            return self.random.choice((self.random.choice(self.names["r"]), element, self.constant()))
        a = self.complex(depth - 1)
        return {
            3: lambda: f"abs({a})",
            4: lambda: f"({a}).real",
            5: lambda: f"({a}).imag",
            6: lambda: f"({self.real(depth - 1)} {self.random.choice('+-*')} {self.real(depth - 1)})",
            7: lambda: f"np.angle(2.5 + ({self.complex(0)}) / (1.0 + abs({self.complex(0)})))",
            8: lambda: f"np.sin({self.real(depth - 1)})",
            9: lambda: f"np.sum(np.abs({self.array('z', 1)}))",
        }[kind]()

    def complex(self, depth: int) -> str:
        kind = self.random.randrange(13) if depth > 0 else 0
        if kind < 3:
            element = f"{self.random.choice(self.names['z'])}[{self.index()}]"
            literal = f"({self.constant()} + {self.random.uniform(0.2, 1.5):.3f}j)"
            return self.random.choice((self.random.choice(self.names["c"]), element, literal))
        a = self.complex(depth - 1)
        return {
            3: lambda: f"({a} {self.random.choice('+-*')} {self.complex(depth - 1)})",
            4: lambda: f"({a} * {self.complex(depth - 1)})",
            5: lambda: f"({self.real(depth - 1)} {self.random.choice('+-*')} {a})",
            6: lambda: f"({self.real(depth - 1)} + 1j * {self.real(depth - 1)})",
            7: lambda: f"np.conj({a})",
            8: lambda: f"np.exp(1j * {self.bounded(self.real(depth - 1))})",
            9: lambda: f"np.{self.random.choice(('sin', 'cos', 'sinh', 'exp'))}({self.bounded(a)})",
            10: lambda: f"({a}) / (2.0 + {self.random.choice((f'abs({a})', f'1j * abs({a})'))})",
            11: lambda: f"({a}) ** {self.random.choice((2, 3))}",
            12: lambda: f"({a} if {self.condition()} else {self.complex(0)})",
        }[kind]()

    def array(self, letter: str, depth: int) -> str:
        if letter == "x":
            kind = self.random.randrange(5) if depth > 0 else 0
            z = self.array("z", depth - 1) if kind else ""
            return {
                0: lambda: self.random.choice(self.names["x"]),
                1: lambda: f"({z}).real",
                2: lambda: f"({z}).imag",
                3: lambda: f"np.abs({z})",
                4: lambda: f"({self.array('x', depth - 1)} * {self.real(1)})",
            }[kind]()
        kind = self.random.randrange(8) if depth > 0 else 0
        z = self.array("z", depth - 1) if kind else ""
        return {
            0: lambda: self.random.choice(self.names["z"]),
            1: lambda: f"({z} {self.random.choice('+-*')} {self.array('z', depth - 1)})",
            2: lambda: f"({self.array('x', depth - 1)} {self.random.choice('+-*')} {z})",
            3: lambda: f"np.conj({z})",
            4: lambda: f"({z} * {self.complex(1)})",
            5: lambda: f"({z}) / (1.5 + np.abs({z}))",
            6: lambda: f"({z})[::-1]",
            7: lambda: f"np.where({self.array('x', 0)} > {self.constant()}, {z}, {self.complex(1)})",
        }[kind]()
