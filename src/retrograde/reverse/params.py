"""Parameters: traced leaves that live outside every transform, and sets and maps of them."""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from retrograde.errors import InputError, MutationError
from retrograde.originals import np
from retrograde.reverse.tape import Tape
from retrograde.trace.handle import HANDLES, SIMPLE, Traced, data, is_traced, like_of, make, plain
from retrograde.trace.level import CONTEXT, is_ignored
from retrograde.trace.ops import LEAF
from retrograde.trace.recording import PARAMS
from retrograde.trace.structure import is_variable


class Cell:
    """The gradient of one parameter. Graphs hold the cell and not the parameter, so that no cycles arise."""

    __slots__ = ("grad",)

    def __init__(self, grad: np.ndarray[Any, Any]) -> None:
        self.grad = grad


class Param(Traced):
    """A leaf of every graph that uses it; made by `param`.

    Inside a `gradient(f, Params(...))` that names it, it stands for a leaf of that transform, for the thread that
    runs it alone. Therefore its three slots are looked up where it is used.
    """

    __slots__ = ("cell", "node", "value")

    value: Any
    node: tuple[Any, ...]
    cell: Cell

    @property
    def primal(self) -> Any:  # type: ignore[override]
        leaf = CONTEXT.get().leaves.get(id(self))
        return self.value if leaf is None else leaf.primal

    @property
    def link(self) -> Any:  # type: ignore[override]
        leaf = CONTEXT.get().leaves.get(id(self))
        return self.node if leaf is None else leaf.link

    @property
    def level(self) -> Any:  # type: ignore[override]
        leaf = CONTEXT.get().leaves.get(id(self))
        return PARAMS if leaf is None else leaf.level

    @property
    def grad(self) -> np.ndarray[Any, Any]:
        """The gradient that `back` has accumulated, in the parameter's shape; the same array for ever."""
        return self.cell.grad

    def zero_grad(self) -> None:
        """Set `grad` to zeros, in place."""
        self.cell.grad.fill(0)

    def __hash__(self) -> int:
        # A parameter is a thing with an identity, unlike the values that are computed of it.
        return id(self)

    def __repr__(self) -> str:
        return f"param({self.value!r})"

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _rebuilt, (self.value, self.cell.grad)

    def __deepcopy__(self, memo: Any) -> Param:
        return _rebuilt(self.value, self.cell.grad)

    # Writing. Graphs that were recorded earlier keep the old value, therefore each write makes a new one.

    def __setitem__(self, key: Any, value: Any) -> None:
        self._check_writable("W[...] = ...")
        new = np.array(self.value)
        new[key] = plain(value)
        self.value = new

    def _updated(self, update: Callable[[Any, Any], Any], sign: str, other: Any) -> Param:
        self._check_writable(f"W {sign} ...")
        if isinstance(self.value, np.ndarray):
            self.value = update(np.array(self.value), plain(other))
        else:
            new = update(self.value, plain(other))
            if np.ndim(new):
                raise MutationError(f"a parameter that is a number cannot become an array of shape {np.shape(new)}")
            self.value = type(self.value)(new)
        return self

    def _check_writable(self, write: str) -> None:
        if not is_ignored(PARAMS):
            raise MutationError(
                f"{write} on a parameter outside of ignore() would make it a computed value",
                f"with ignore(): {write}",
                "y = W + ..., a new value that is traced",
            )


def _in_place(name: str, sign: str) -> Callable[[Param, Any], Param]:
    update = getattr(operator, name)

    def update_in_place(self: Param, other: Any) -> Param:
        return self._updated(update, sign, other)

    return update_in_place


for _name, _sign in {
    "iadd": "+=",
    "isub": "-=",
    "imul": "*=",
    "itruediv": "/=",
    "ifloordiv": "//=",
    "imod": "%=",
    "ipow": "**=",
    "imatmul": "@=",
}.items():
    setattr(Param, f"__{_name}__", _in_place(_name, _sign))

HANDLES.add(Param)
SIMPLE.add(Param)


def param(x: Any) -> Param:
    """A parameter: a tracked leaf with the value of `x` (copied) and a gradient.

    Args:
        x: a number, or anything that NumPy makes an array of numbers from. Integers become float64.

    Returns:
        A value that NumPy functions and operators take like an array of the shape of `x`. `.grad` starts at zeros
        (a 0-d array for a number), `back` adds to it, `.zero_grad()` resets it.

    Raises:
        InputError: `x` does not hold numbers.

    >>> w = param([1, 2, 3])
    >>> back((w * w).sum())
    >>> w.grad
    array([2., 4., 6.])
    """
    if is_traced(x) and not isinstance(x, Param):
        x = x.release("param(x)", "param(data(x)), a leaf of its own")
    x = plain(x)
    value = np.array(x) if not isinstance(x, np.ndarray) else x
    if value.dtype.kind not in "fciu" or not is_variable(value):
        raise InputError(f"a parameter needs numbers; {x!r} holds {value.dtype}", "param(x.astype(float)), of an array")
    dtype = like_of(value)[1]
    new = Param()
    if isinstance(x, np.ndarray) or value.ndim:
        new.value = np.array(value, dtype)
    elif isinstance(x, np.generic):
        new.value = dtype.type(x)
    else:
        new.value = complex(x) if isinstance(x, complex) else float(x)
    return _attach(new, np.zeros(value.shape, dtype))


def _attach(new: Param, grad: np.ndarray[Any, Any]) -> Param:
    new.cell = Cell(grad)
    new.node = (PARAMS.number(), LEAF, new.cell)
    return new


def _rebuilt(value: Any, grad: np.ndarray[Any, Any]) -> Param:
    new = Param()
    new.value = np.array(value) if isinstance(value, np.ndarray) else value
    return _attach(new, np.array(grad))


def istracked(x: Any) -> bool:
    """Whether `x` is a traced value: a parameter, what was computed of one, or a value inside a transform."""
    return is_traced(x) and x.level.depth >= 0


class Params:
    """An ordered set of parameters, told apart by identity: two that are equal are still two.

    >>> w, b = param([1.0, 2.0]), param(0.0)
    >>> len(Params([w, b, w]))
    2
    """

    __slots__ = ("_members",)

    # What to say where a transform takes arguments only.
    _ways_as_argument = (
        "gradient, withgradient, pullback, jacobian and hessian take a Params, alone, and call f without arguments",
        "a function of the values instead: pass [data(p) for p in params] as the argument",
    )

    def __init__(self, params: Iterable[Param] = ()) -> None:
        self._members: dict[int, Param] = {}
        if isinstance(params, Param):
            params = (params,)
        for p in params:
            self.add(p)

    def add(self, p: Param) -> None:
        """Put a parameter at the end, unless it is in the set already.

        Raises:
            InputError: it is not a parameter.
        """
        if not isinstance(p, Param):
            raise InputError(
                f"Params holds parameters; {type(p).__name__} is none",
                "param(x), for a number or an array",
                "Params(optree.tree_leaves(model)), for parameters in nested containers",
            )
        self._members.setdefault(id(p), p)

    def lifted(self, tape: Tape) -> dict[int, Traced]:
        """A leaf of the tape for each parameter, by the parameter's identity."""
        outer = CONTEXT.get().leaves
        return {key: tape.leaf(outer.get(key, p.value)) for key, p in self._members.items()}

    def __iter__(self) -> Iterator[Param]:
        return iter(self._members.values())

    def __len__(self) -> int:
        return len(self._members)

    def __contains__(self, p: object) -> bool:
        return id(p) in self._members

    def __reduce__(self) -> Any:
        return Params, (list(self),)

    def __repr__(self) -> str:
        return f"Params([{', '.join(map(repr, self))}])"


class Grads:
    """The gradients of a set of parameters: `grads[w]`, in the shape and dtype of `w`, None where no path leads there.

    Iterating gives the parameters in order. `+` adds entry by entry (None counts as zero), `*` and `/` scale.
    """

    __slots__ = ("_grads", "params")

    # A NumPy number on the left leaves the operation to us, instead of iterating over the parameters.
    __array_ufunc__ = None

    def __init__(self, params: Params, grads: Iterable[Any] | None = None) -> None:
        self.params = params
        values = [None] * len(params) if grads is None else list(grads)
        self._grads = {id(p): g for p, g in zip(params, values, strict=True)}

    def __getitem__(self, p: Param) -> Any:
        if id(p) not in self._grads:
            raise KeyError(f"no gradient was asked for this parameter: {p!r}")
        return self._grads[id(p)]

    def __contains__(self, p: object) -> bool:
        return id(p) in self._grads

    def __iter__(self) -> Iterator[Param]:
        return iter(self.params)

    def __len__(self) -> int:
        return len(self.params)

    def keys(self) -> Iterator[Param]:
        return iter(self.params)

    def values(self) -> Iterator[Any]:
        return iter(self._grads.values())

    def items(self) -> Iterator[tuple[Param, Any]]:
        return zip(self.params, self._grads.values(), strict=True)

    def map(self, function: Callable[[Any], Any]) -> Grads:
        """The same map with the function applied to every gradient that is not None."""
        return Grads(self.params, [None if g is None else function(g) for g in self.values()])

    def __add__(self, other: Grads) -> Grads:
        if not isinstance(other, Grads):
            return NotImplemented
        members = Params([*self.params, *other.params])
        return Grads(members, [_sum(self._grads.get(id(p)), other._grads.get(id(p))) for p in members])

    def __radd__(self, other: Any) -> Grads:
        # So that sum() works, which starts from 0.
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def __mul__(self, factor: Any) -> Grads:
        if isinstance(factor, Grads):
            return NotImplemented
        return self.map(lambda g: g * factor)

    __rmul__ = __mul__

    def __truediv__(self, divisor: Any) -> Grads:
        if isinstance(divisor, Grads):
            return NotImplemented
        return self.map(lambda g: g / divisor)

    def __neg__(self) -> Grads:
        return self.map(operator.neg)

    def __sub__(self, other: Grads) -> Grads:
        return self + -other if isinstance(other, Grads) else NotImplemented

    def __reduce__(self) -> Any:
        return Grads, (self.params, list(self.values()))

    def __repr__(self) -> str:
        return "Grads({" + ", ".join(f"{p!r}: {g!r}" for p, g in self.items()) + "})"


def _sum(a: Any, b: Any) -> Any:
    if a is None or b is None:
        return b if a is None else a
    return a + b


_commit = threading.Lock()


def accumulate(changes: list[tuple[Cell, Any]]) -> None:
    """Add cotangents into the gradients of parameters; concurrent sweeps take turns."""
    with _commit:
        for cell, x_bar in changes:
            np.add(cell.grad, x_bar, out=cell.grad)


__all__ = ["Cell", "Grads", "Param", "Params", "accumulate", "data", "istracked", "make", "param"]
