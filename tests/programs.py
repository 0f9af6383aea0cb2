"""Random programs of assignments, views and arithmetic on small arrays, as Python text that NumPy has run before.

A program is grown statement by statement. Each statement is tried on plain arrays as soon as it is drawn, and dropped
if NumPy refuses it or if its numbers grow too large for differences; so what is left is a program that NumPy runs, and
its text is the reproduction of whatever it finds.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from retrograde import Buffer, data, gradient

Choose = Callable[[int], int]
"""`choose(n)` draws one of 0 … n - 1; smaller ones are simpler."""

LARGEST = 30.0


# --- what programs are made of -----------------------------------------------------------------------------------


def weights(shape: tuple[int, ...], k: int) -> Any:
    """Numbers of which no two agree, so that a cotangent in the wrong place shows."""
    return np.cos(0.9 + 1.3 * k + 0.7 * np.arange(math.prod(shape))).reshape(shape)


def loss(reals: list[Any], complexes: list[Any] | tuple[Any, ...] = ()) -> Any:
    """A real number that depends on every element of every value, twice differentiably."""
    total: Any = 0.0
    for k, x in enumerate(reals):
        total = total + np.sum(weights(np.shape(x), k) * (x + 0.2 * x * x))
    for k, z in enumerate(complexes):
        w = weights(np.shape(z), k + 7)
        total = total + np.sum(w * np.real(z)) + np.sum((w + 0.3) * np.imag(z) * (1.0 + 0.2 * np.real(z)))
    return total


def above(x: Any, threshold: float) -> Any:
    """A comparison that means the same for a traced value, a plain one, and one with a complex step."""
    return np.real(data(x)) > threshold


def plain_inner(g: Callable[[Any], Any], x: Any, live: list[Any]) -> Any:
    """The gradient of `g` at its own copy of `x` by differences; what `g` does to the arrays in `live` is done once."""
    before = [array.copy() for array in live]
    x_bar = np.zeros(np.shape(x))
    for i in range(np.size(x)):
        for k, weight in ((1, 3 / 4), (2, -3 / 20), (3, 1 / 60)):
            for sign in (1, -1):
                moved = np.copy(x)
                moved.flat[i] += sign * k * 1e-2
                x_bar.flat[i] += sign * weight / 1e-2 * g(moved if isinstance(x, np.ndarray) else moved.item())
                for array, old in zip(live, before, strict=True):
                    if array.flags.writeable:
                        array[...] = old
    g(np.copy(x) if isinstance(x, np.ndarray) else x)
    return x_bar if isinstance(x, np.ndarray) else x_bar[()]


def traced_inner(g: Callable[[Any], Any], x: Any, live: list[Any]) -> Any:
    x_bar = gradient(g, x)[0]
    # How a gradient lies in memory is not promised, and decides what np.ravel gives: a view or a copy.
    return np.zeros(np.shape(x))[()] if x_bar is None else np.copy(x_bar, order="C") if np.ndim(x_bar) else x_bar


def filled(x: Any) -> Buffer:
    """A Buffer with the contents of `x`."""
    b = Buffer(x)
    b[...] = x
    return b


class ComplexNumPy:
    """NumPy whose new arrays are complex, so that the step of a complex step can be written into them."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)


def _makes_complex(name: str) -> Callable[..., Any]:
    return lambda self, *args, **kwargs: getattr(np, name)(*args, **{"dtype": complex} | kwargs)


MAKERS = ("zeros", "ones", "empty", "full", "eye", "identity", "linspace")
for _name in (*MAKERS, "zeros_like", "ones_like", "full_like"):
    setattr(ComplexNumPy, _name, _makes_complex(_name))

PLAIN = {"np": np, "loss": loss, "above": above, "inner": plain_inner, "start": np.copy, "finish": np.copy}
COMPLEX = PLAIN | {"np": ComplexNumPy()}
TRACED = PLAIN | {"inner": traced_inner}
BUFFERED = PLAIN | {"start": filled, "finish": lambda b: b.copy()}


@dataclass(frozen=True)
class Argument:
    """An array that a program is called with: its values, and how they lie in memory."""

    values: Any
    layout: str

    def array(self, values: Any = None) -> Any:
        """A new array of this layout, with these values or others; or a number, if it is one."""
        values = self.values if values is None else values
        if self.layout == "number":
            return values.item()
        shape, dtype = values.shape, values.dtype
        if self.layout == "Fortran":
            array = np.zeros(shape, dtype, order="F")
        elif self.layout == "strided":
            array = np.zeros((*shape[:-1], 2 * shape[-1]), dtype)[..., ::2]
        elif self.layout == "reversed":
            array = np.zeros(shape, dtype)[::-1]
        else:
            array = np.zeros(shape, dtype)
        array[...] = values
        return array


@dataclass(frozen=True)
class Program:
    """The text of a function of arrays that returns a real number.

    Attributes:
        analytic: whether every step is, so that a complex step gives its derivative.
    """

    names: tuple[str, ...]
    arguments: tuple[Argument, ...]
    body: tuple[str, ...]
    analytic: bool

    @property
    def source(self) -> str:
        lines = [f"def f({', '.join(self.names)}):"]
        for statement in self.body:
            lines += ["    " + line for line in statement.split("\n")]
        return "\n".join(lines)

    def function(self, names: dict[str, Any]) -> Callable[..., Any]:
        """The function, with what it is made of taken from PLAIN, TRACED or BUFFERED."""
        scope = dict(names)
        exec(compile(self.source, "<program>", "exec"), scope)
        return scope["f"]  # type: ignore[no-any-return]

    def arrays(self) -> list[Any]:
        return [argument.array() for argument in self.arguments]

    def __str__(self) -> str:
        calls = "\n".join(
            f"{name} = {np.array2string(argument.values, separator=', ', floatmode='unique')}  # {argument.layout}"
            for name, argument in zip(self.names, self.arguments, strict=True)
        )
        return f"{self.source}\n{calls}"


# --- drawing -----------------------------------------------------------------------------------------------------

KINDS = {
    "write": 8, "augment": 5, "in_place": 5, "overwrite": 2, "read": 4, "view": 6, "compute": 5, "alias": 1, "copy": 1,
    "number": 2, "loop": 1, "branch": 1, "out": 2, "at": 2, "function": 2, "make": 3,
}  # fmt: skip
COMPLEX_KINDS = KINDS | {"make_complex": 4, "part": 4}
BUFFER_KINDS = {"write": 8, "augment": 6, "read": 3, "compute": 2, "number": 3, "overwrite": 1}
NESTED_KINDS = KINDS | {"inner": 8}


def draw_program(choose: Choose, kinds: dict[str, int], layouts: tuple[str, ...] = ("C",), longest: int = 9) -> Program:
    """A program of statements of these kinds."""
    return _Growth(choose, kinds, layouts).program(longest)


class _Growth:
    """A program that grows, together with what its names hold so far when NumPy runs it."""

    def __init__(self, choose: Choose, kinds: dict[str, int], layouts: tuple[str, ...]) -> None:
        self.choose = choose
        self.kinds = [kind for kind, weight in kinds.items() for _ in range(weight)]
        self.buffered = kinds is BUFFER_KINDS
        self.body: list[str] = []
        self.analytic = "make_complex" not in kinds and "inner" not in kinds
        self.arguments = []
        first = self._shape()
        for k in range(1 + self.choose(3)):
            # Shapes that go together more often than chance would have it.
            shape = self.pick([first, first[-1:], self._shape()]) if k else first
            values = 1.2 * np.cos(1.0 + 1.7 * k + 2.3 * np.arange(math.prod(shape))).reshape(shape)
            layout = self.pick(layouts)
            if k and not self.buffered and self.chance(6):
                shape, values = (), np.array(values.ravel()[0])
                layout = self.pick(["number", "C"])
            if layout == "Fortran" and len(shape) < 2:
                layout = "C"
            self.arguments.append(Argument(values, layout))
        self.names = tuple("abc"[: len(self.arguments)])
        # In Buffer form the arguments are buffers, of which parts alone can be used.
        self.buffers = self.names if self.buffered else ()
        self.fresh = iter("defhijlmnopqrstvwxyz")  # g, k and u are taken
        self.scope = self._start()

    def pick(self, options: Any) -> Any:
        return options[self.choose(len(options))]

    def chance(self, n: int) -> bool:
        """One in n."""
        return self.choose(n) == n - 1

    def program(self, longest: int) -> Program:
        if self.buffered:
            for name in self.names:
                self.add(f"{name} = start({name})")
        for _ in range(2 + self.choose(longest - 1)):
            self.add(getattr(self, "_" + self.pick(self.kinds))())
        reals, complexes = [], []
        for name, value in self.values():
            text = f"finish({name})" if name in self.buffers else name
            (complexes if np.iscomplexobj(value) else reals).append(text)
        result = f"return loss([{', '.join(reals)}]" + (f", [{', '.join(complexes)}])" if complexes else ")")
        return Program(self.names, tuple(self.arguments), (*self.body, result), self.analytic)

    # --- what the names hold

    def _start(self) -> dict[str, Any]:
        scope = dict(PLAIN)
        scope.update((name, a.array()) for name, a in zip(self.names, self.arguments, strict=True))
        for statement in self.body:
            exec(statement, scope)
        return scope

    def add(self, statement: str | None) -> None:
        """Take the statement into the program if NumPy runs it and its numbers stay small."""
        if statement is None:
            return
        try:
            with strictly():
                exec(statement, self.scope)
            fits = all(np.all(np.isfinite(v)) and np.all(np.abs(v) < LARGEST) for _, v in self.values())
        except Exception:  # whatever NumPy says to a statement that does not fit
            fits = False
        if fits:
            self.body.append(statement)
        else:
            self.scope = self._start()

    def values(self) -> list[tuple[str, Any]]:
        kinds = (np.ndarray, np.floating, np.complexfloating, float, complex)
        return [(name, value) for name, value in self.scope.items() if name not in PLAIN and isinstance(value, kinds)]

    def arrays(self, is_complex: bool | None = None) -> list[str]:
        return [
            name
            for name, value in self.values()
            if isinstance(value, np.ndarray) and (is_complex is None or np.iscomplexobj(value) == is_complex)
        ]

    def array(self, dims: int = 0) -> str:
        """An array of at least `dims` dimensions, if there is one; the latest are drawn most."""
        names = [name for name in self.arrays() if self.scope[name].ndim >= dims]
        return self.pick((names or self.arrays())[::-1])  # type: ignore[no-any-return]

    def target(self) -> str:
        """An array to be written to."""
        return self.pick(self.buffers) if self.buffered else self.array()

    def name(self) -> str:
        """A new name, or now and then one that exists, whose old value then is nobody's."""
        if self.chance(6):
            kept = (*self.buffers, "a")  # so that there always is an array
            return self.pick([name for name, _ in self.values() if name not in kept] or [next(self.fresh)])  # type: ignore[no-any-return]
        return next(self.fresh)

    def shape(self, text: str) -> tuple[int, ...] | None:
        try:
            with strictly():
                return np.shape(eval(text, self.scope))
        except Exception:
            return None

    def _shape(self) -> tuple[int, ...]:
        return self.pick([(3,), (2, 3), (4,), (3, 3), (2, 2), (2, 1, 3), (1, 4), (2, 2, 2), (2,), (1,)])  # type: ignore[no-any-return]

    # --- expressions

    def constant(self) -> str:
        return self.pick(["0.5", "-1.5", "2.0", "0.0", "0.7"])  # type: ignore[no-any-return]

    def atom(self, shape: tuple[int, ...]) -> str:
        """A value that broadcasts to the shape: a name, a part of an array, a number."""
        options = []
        for name, value in self.values():
            if name in self.buffers:
                continue
            if _broadcasts(np.shape(value), shape):
                options.append(name)
        if not options or self.chance(3):
            for name in self.arrays():
                part = f"{name}[{self.key(name)}]"
                found = self.shape(part)
                if found is not None and _broadcasts(found, shape):
                    options.append(part)
        return self.pick(options[::-1]) if options else self.constant()  # type: ignore[no-any-return]

    def expression(self, shape: tuple[int, ...]) -> str:
        a = self.atom(shape)
        form = self.choose(9)
        if form == 0:
            return a
        if form == 1:
            return self.constant()
        if form == 2:
            return f"{self.pick(['np.sin', 'np.cos', 'np.tanh', 'np.square'])}({a})"
        if form == 3:
            return f"{a} {self.pick(['+', '-', '*'])} {self.constant()}"
        if form == 4:
            return f"{a} / (1.5 + np.square({self.atom(shape)}))"
        if form == 5:
            return f"{a} ** {self.pick(['2', '3'])}"
        if form == 6 and len(shape) == 1 and shape[0] <= 4:
            return f"[{', '.join(self.atom(()) for _ in range(shape[0]))}]"
        if form == 7:
            return f"np.exp(-0.5 * {a})"
        return f"{a} {self.pick(['*', '+', '-'])} {self.atom(shape)}"

    def key(self, name: str) -> str:
        """An index into the array of that name, as text."""
        shape = self.scope[name].shape
        form = self.choose(12)
        if form == 11 and not self.buffered:
            return f"above({name}, {self.threshold(name)})"
        if form == 10:
            mask = np.array([self.chance(2) for _ in range(math.prod(shape))], bool).reshape(shape)
            return f"np.array({mask.tolist()}, bool)"
        if form == 9 and len(shape) >= 2:
            return f"np.ix_({', '.join(self.integers(n) for n in shape)})"
        if form == 8 and shape and shape[0] >= 2:
            return f"np.array([[0, 1], [{self.choose(shape[0])}, -1]])"
        entries = []
        fancy = form >= 6
        for n in shape:
            if self.chance(6):
                break
            if self.chance(10):
                entries.append("None")
            entries.append(self.entry(n, fancy))
        if self.chance(5):
            entries.insert(self.choose(len(entries) + 1), "...")
        return ", ".join(entries) if entries else "..."

    def entry(self, n: int, fancy: bool) -> str:
        form = self.choose(7)
        if fancy and form >= 4:
            if form == 6:
                return f"np.array({[self.chance(2) for _ in range(n)]}, bool)"
            return self.integers(n)
        if form == 0 and n:
            return str(self.choose(2 * n) - n)
        return self.pick([":", "::-1", "1:", ":-1", ":2", "::2", "::-2", "-2:", "1:1"])  # type: ignore[no-any-return]

    def integers(self, n: int) -> str:
        return str([self.choose(2 * n) - n for _ in range(1 + self.choose(3))]) if n else "[]"

    def threshold(self, text: str) -> str:
        """A number between two elements, so that no small step crosses it."""
        values = np.unique(np.append(np.ravel(np.real(eval(text, self.scope))), [-2.0, 2.0]))
        gaps = np.diff(values)
        return repr(round(float(values[gaps.argmax()] + gaps.max() / 2), 3))

    # --- statements

    def _write(self) -> str | None:
        name = self.target()
        place = f"{name}[{self.key(name)}]"
        shape = self.shape(place)
        return None if shape is None else f"{place} = {self.expression(shape)}"

    def operation(self, shape: tuple[int, ...]) -> str:
        operator = self.pick(["+=", "-=", "*=", "/=", "**="])
        if operator == "/=":
            return f"/= {self.pick(['2.0', f'(1.5 + np.square({self.atom(shape)}))'])}"
        return f"{operator} {self.pick(['2', '3']) if operator == '**=' else self.expression(shape)}"

    def _augment(self) -> str | None:
        name = self.target()
        place = f"{name}[{self.key(name)}]"
        shape = self.shape(place)
        return None if shape is None else f"{place} {self.operation(shape)}"

    def _in_place(self) -> str:
        name = self.array()
        return f"{name} {self.operation(self.scope[name].shape)}"

    def _overwrite(self) -> str:
        name = self.target()
        return f"{name}[{self.pick([':', '...'])}] = {self.expression(self.scope[name].shape)}"

    def _read(self) -> str:
        name = self.array()
        copied = "1.0 * " if name in self.buffers else ""
        return f"{self.name()} = {copied}{name}[{self.key(name)}]"

    def _view(self) -> str | None:
        name = self.array(1 + self.choose(2))
        shape = self.scope[name].shape
        dims, size = len(shape), math.prod(shape)
        options = [
            f"{name}.T",
            f"{name}.reshape(-1)",
            f"{name}.ravel()",
            f"{name}[::-1]",
            f"np.reshape({name}, {(*shape[::-1],)})",
            f"np.ravel({name}, order='F')",
            f"{name}.reshape({(*shape[::-1],)}, order='F')",
            f"np.expand_dims({name}, {self.choose(dims + 1)})",
            f"np.squeeze({name})",
            f"np.flip({name})",
            f"{name}.flatten()",
            f"np.broadcast_to({name}, {(2, *shape)})",
            f"np.atleast_2d({name})",
        ]
        if not self.analytic:
            options.append(f"{name}.real")
        if dims >= 2:
            options += [
                f"{name}.swapaxes({self.choose(dims)}, {self.choose(dims)})",
                f"np.diagonal({name})",
                f"np.transpose({name}, {self.pick([tuple(range(dims))[::-1], (*range(1, dims), 0)])})",
                f"np.moveaxis({name}, 0, -1)",
                f"np.diagonal({name}, offset=1)",
            ]
        if size % 2 == 0 and size:
            options += [f"{name}.reshape(2, -1)", f"np.reshape({name}, (-1, 2), order='F')"]
        if dims and shape[0] >= 2:
            options.append(f"np.array_split({name}, 2)[{self.choose(2)}]")
        return f"{self.name()} = {self.pick(options)}"

    def _compute(self) -> str:
        name = self.array()
        if name in self.buffers:
            name = f"{name}[...]"
        shape = self.shape(name) or ()
        options = [self.expression(shape), self.expression(shape), f"np.sum({name}, axis=0)", f"np.cumsum({name})"]
        if not self.buffered:
            other = self.array()
            options += [f"np.dot({name}, {other})", f"0.3 * {name} @ {name}.T", f"np.concatenate([{name}, {other}])"]
            options += [f"np.where(above({name}, {self.threshold(name)}), {name}, {self.atom(shape)})"]
        result = self.pick(options)
        # A part of a Buffer is a copy, a part of an array is a view.
        return f"{self.name()} = 1.0 * ({result})" if self.buffered else f"{self.name()} = {result}"

    def _alias(self) -> str:
        return f"{self.name()} = {self.array()}"

    def _copy(self) -> str:
        name = self.array()
        return f"{self.name()} = {self.pick([f'{name}.copy()', f'np.array({name})', f'np.copy({name})', f'+{name}'])}"

    def _number(self) -> str:
        name = self.array()
        place = f"{name}[{', '.join(str(self.choose(n)) for n in self.scope[name].shape if n) or '()'}]"
        if self.buffered:
            return f"{self.name()} = 1.0 * {place}"
        form = self.choose(3)
        if form == 0:
            return f"{self.name()} = {place}"
        if form == 1:
            return f"{self.name()} = 0.3 * np.sum({name})"
        numbers = [n for n, value in self.values() if not np.shape(value)]
        return f"{self.pick(numbers)} {self.operation(())}" if numbers else f"{self.name()} = {place} * {place}"

    def _loop(self) -> str:
        name, other = self.array(1), self.array(1)
        return self.pick(  # type: ignore[no-any-return]
            [
                f"for k in range(1, len({name})):\n    {name}[k] = 0.5 * {name}[k - 1] + {other}[0] * {name}[k]",
                f"for k in range(1, len({name})):\n    {name}[k] += 0.5 * {name}[k - 1] ** 2",
                f"for row in {name}:\n    row *= 0.5 + {self.atom(())}",
                f"for row in {name}:\n    row[...] = np.sin(row) + {self.atom(())}",
                f"for row, value in zip({name}, {other}):\n    row -= 0.3 * value",
            ]
        )

    def _branch(self) -> str | None:
        name = self.array()
        if not self.scope[name].size:
            return None
        value = f"{name}[{', '.join(str(self.choose(n)) for n in self.scope[name].shape) or '()'}]"
        first, second = self._write(), self._in_place()
        if first is None:
            return None
        return f"if above({value}, {self.threshold(value)}):\n    {first}\nelse:\n    {second}"

    def _out(self) -> str | None:
        name = self.array()
        shape = self.scope[name].shape
        dims = len(shape)
        like = self.array_like(shape) or name
        options = [
            f"np.multiply({self.atom(shape)}, {self.atom(shape)}, out={name})",
            f"np.sin({name}, out={name})",
            f"{self.name()} = np.add({self.atom(shape)}, {self.constant()}, out={name})",
            f"np.add({name}, {self.atom(shape)}, out={name}, where={self.mask(shape)})",
            f"np.multiply({like}, {self.constant()}, {name})",
        ]
        if dims:
            # Of arrays without axes NumPy (2.4) crashes.
            options += [f"np.cumsum({like}, axis=0, out={name})", f"np.add.accumulate({like}, out={name})"]
        if dims >= 2:
            row = self.array_like(shape[1:]) or f"{name}[0]"
            rows = ", ".join(f"{like}[{self.choose(shape[0])}].copy()" for _ in range(shape[0]))
            options += [
                f"np.sum({name}, axis=0, out={row})",
                f"{name}.mean(0, None, {row})",
                f"np.add.reduce({name}, out={row})",
                f"np.take({like}, {[self.choose(shape[0]) for _ in range(shape[0])]}, axis=0, out={name})",
                f"np.stack([{rows}], out={name})",
                f"np.dot({name}, {name}[0].copy(), out={name}[:, 0].copy())",
                f"np.matmul({name}.copy(), {name}.T.copy() * 0.3 @ {name}.copy(), out={name})",
            ]
        if not self.analytic:
            options += [
                f"np.maximum({name}, {self.atom(shape)}, out={name})",
                f"np.clip({name}, -0.7, 0.8, out={name})",
            ]
        return self.pick(options)  # type: ignore[no-any-return]

    def array_like(self, shape: tuple[int, ...]) -> str | None:
        """An array of this very shape, if there is one."""
        names = [name for name in self.arrays() if self.scope[name].shape == shape]
        return self.pick(names[::-1]) if names else None

    def mask(self, shape: tuple[int, ...]) -> str:
        mask = np.array([self.chance(2) for _ in range(math.prod(shape))], bool).reshape(shape)
        return f"np.array({mask.tolist()}, bool)"

    def _at(self) -> str | None:
        name = self.array(1)
        key = self.key(name)
        shape = self.shape(f"{name}[{key}]")
        if shape is None:
            return None
        key = f"np.s_[{key}]"
        ufuncs = ["add", "add", "subtract", "multiply", "multiply", "sin", "negative", "divide"]
        if not self.analytic:
            ufuncs += ["maximum", "minimum", "logaddexp", "hypot"]
        ufunc = self.pick(ufuncs)
        if ufunc in ("sin", "negative"):
            return f"np.{ufunc}.at({name}, {key})"
        # NumPy (2.4) reads past the end of values that it has to broadcast, and says nothing of values that overlap.
        value = f"np.ones({shape}) * {self.atom(shape)}"
        return f"np.{ufunc}.at({name}, {key}, {f'1.5 + np.square({value})' if ufunc == 'divide' else value})"

    def _function(self) -> str | None:
        """One of NumPy's functions and methods that write into an array."""
        name = self.array(1)
        shape = self.scope[name].shape
        size, dims = math.prod(shape), len(shape)
        if not size:
            return None
        axis = self.choose(dims)
        along = (*shape[:axis], 1, *shape[axis + 1 :])
        places = self.integers(size)
        options = [
            f"np.copyto({name}, {self.atom(shape)})",
            f"np.copyto({name}, {self.atom(shape)}, where={self.mask(shape)})",
            f"np.put({name}, {places}, {self.vector()})",
            f"{name}.put({places}, {self.vector()}, mode='{self.pick(['wrap', 'clip'])}')",
            f"np.place({name}, {self.mask(shape)}, {self.vector()}.copy())",
            f"np.putmask({name}, {self.mask(shape)}, {self.vector()})",
            f"np.put_along_axis({name}, np.zeros({along}, dtype=int), {self.atom(())}, {axis})",
            f"{name}.fill({self.atom(())})",
            f"{name}.flat[{self.choose(size)}::2] = {self.vector()}.copy()",
            f"{name}.flat[{places}] *= {self.atom(())}",
            f"{name}[:] = [{', '.join(f'{name}[{self.choose(shape[0])}]' for _ in range(shape[0]))}]",
            f"{name}[:1], {name}[-1:] = {name}[-1:], {name}[:1].copy()",
        ]
        if dims >= 2:
            options.append(f"np.fill_diagonal({name}, {self.pick([self.vector() + '.copy()', self.atom(())])})")
        if not self.analytic:
            options += [f"{name}.sort({axis})", f"{name}.partition(0)", f"np.nan_to_num({name}, copy=False)"]
        return self.pick(options)  # type: ignore[no-any-return]

    def vector(self) -> str:
        """A vector, of whatever length."""
        return f"np.ravel({self.array()})"

    def _make(self) -> str | None:
        """An array made inside the function, and most often something written into it."""
        name = next(self.fresh)
        source = self.array(1)
        shape = self.scope[source].shape
        n = self.pick([2, 3])
        made = self.pick(
            [
                f"np.zeros({shape})",
                f"np.ones({shape})",
                f"np.full({shape}, {self.constant()})",
                f"np.full({shape}, {self.atom(())})",
                f"np.zeros_like({source})",
                f"np.full_like({source}, {self.constant()})",
                f"np.eye({n})",
                f"np.linspace(0.0, 1.0, {n})",
                f"np.tile({source}, 2)",
                f"np.repeat({source}, 2, axis=0)",
            ]
        )
        form = self.choose(5)
        if form == 0:
            return f"{name} = {made}"
        if form == 1:
            return (
                f"{name} = {made}\nfor k in range(len({name})):\n    {name}[k] = {self.atom(())} + 0.5 * {name}[k - 1]"
            )
        if form == 2:
            return f"{name} = np.empty({shape})\n{name}[...] = {self.expression(shape)}"
        if form == 3:
            right = f"np.ravel({source})[:{n}]"
            return (
                f"{name} = np.eye({n})\n{name}[0, -1] = 0.3 * {self.atom(())}\n{name} += 2.0 * np.eye({n})\n"
                f"{name} = np.linalg.solve({name}, np.resize({right}, {n}))"
            )
        key = self.pick(["0", "-1", "...", "1:", "::-1"])
        return f"{name} = {made}\n{name}[{key}] {self.pick(['=', '+='])} {self.atom(())}"

    # --- complex numbers

    def _make_complex(self) -> str:
        name = self.array()
        return f"{self.name()} = {name} + 1j * {self.atom(self.scope[name].shape)}"

    def _part(self) -> str | None:
        names = self.arrays(is_complex=True)
        if not names:
            return self._make_complex()
        z = self.pick(names)
        shape = self.scope[z].shape
        return self.pick(  # type: ignore[no-any-return]
            [
                f"{self.name()} = {z}.real",
                f"{self.name()} = np.imag({z})",
                f"{z}.real[{self.key(z)}] = {self.atom(())}",
                f"{z}.imag[...] = {self.atom(shape)}",
                f"{z}.imag {self.pick(['+=', '*='])} {self.atom(shape)}",
                f"{self.name()} = np.conj({z})",
                f"{z} *= {self.pick(['1j', '(0.5 - 1j)'])}",
            ]
        )

    # --- a gradient inside

    def _inner(self) -> str:
        """A function of `u` that writes into `u`, and into arrays outside of it what does not depend on `u`."""
        numbers = [name for name, value in self.values() if not isinstance(value, np.ndarray)]
        x = self.pick(numbers) if numbers and self.chance(3) else self.array()
        outside = [self.pick([self._write, self._augment])() for _ in range(self.choose(3))]
        used = self.atom(np.shape(self.scope[x]))
        if x in numbers:
            used = self.array()
        self.scope["u"] = self.scope[x] if x in numbers else np.array(self.scope[x])
        place = "u" if x in numbers else f"u[{self.key('u')}]"
        shape = self.shape(place)
        inside = None if shape is None else f"{place} {self.pick(['=', '+=', '*='])} {self.expression(shape)}"
        del self.scope["u"]
        lines = [line for line in (*outside[:1], inside, *outside[1:]) if line is not None]
        lines.append(f"return np.sum(np.sin(u) * {used} * u) + loss([u])")
        live = ", ".join(self.arrays())
        return "def g(u):\n    " + "\n    ".join(lines) + f"\n{self.name()} = inner(g, {x}, [{live}])"


def _broadcasts(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    try:
        return np.broadcast_shapes(shape, to) == to
    except ValueError:
        return False


@contextmanager
def strictly() -> Iterator[None]:
    """Where NumPy warns (a complex number cut to its real part), a program is refused."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield
