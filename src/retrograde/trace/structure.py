"""Arguments as users have them: nested containers in, leaves out, and results back in the argument's own shape.

Containers are optree's business (list, tuple, named tuple, dict, OrderedDict, defaultdict, deque and what users have
registered there); dataclasses and attrs classes are registered when they are first met.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
from collections.abc import Callable
from sys import getrefcount
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import optree
from numpy import array, generic, memmap, ndarray

from retrograde.errors import InputError, SeedError
from retrograde.originals import np
from retrograde.trace.handle import FLOAT64, HANDLES, Traced, is_traced, like_of, plain, shape_of
from retrograde.trace.ops import has_own_memory

NAMESPACE = "retrograde"

_NUMBERS = frozenset({float, int, complex, np.float64, np.float32, np.complex128, np.int64})
_CONSTANTS = (
    bool,
    str,
    bytes,
    np.bool_,
    np.str_,
    np.bytes_,
    enum.Enum,
    np.dtype,
    slice,
    range,
    type,
    np.random.Generator,
    # Functions, but not every callable object: a model with a __call__ holds the numbers that are meant.
    FunctionType,
    BuiltinFunctionType,
    MethodType,
    functools.partial,
    np.ufunc,
)


def flatten(tree: Any) -> tuple[list[Any], Any]:
    """The leaves of a container and the structure that `unflatten` takes; a bare leaf has the structure None."""
    kind = type(tree)
    if kind in _NUMBERS or kind is ndarray or kind in HANDLES:
        return [tree], None
    while True:
        leaves, structure = optree.tree_flatten(tree, namespace=NAMESPACE)
        # Registering a class may uncover another one inside it.
        if not any(_register(type(leaf)) for leaf in leaves):
            return leaves, structure


def unflatten(structure: Any, leaves: list[Any]) -> Any:
    return leaves[0] if structure is None else optree.tree_unflatten(structure, leaves)


def map_leaves(function: Callable[[Any], Any], tree: Any) -> Any:
    """The same container with the function applied to every leaf."""
    leaves, structure = flatten(tree)
    return unflatten(structure, [function(leaf) for leaf in leaves])


def leaves_like(tree: Any, model: Any, name: str, model_name: str) -> list[Any]:
    """The leaves of a container that must be like another one; None may stand for any leaf.

    Raises:
        SeedError: the containers differ.
    """
    leaves, structure = optree.tree_flatten(tree, none_is_leaf=True, namespace=NAMESPACE)
    wanted, model_structure = optree.tree_flatten(model, none_is_leaf=True, namespace=NAMESPACE)
    if structure != model_structure:
        raise SeedError(
            f"the {name} has the structure {structure}; the {model_name} has {model_structure}",
            f"a {name} in the same containers as the {model_name}",
        )
    # Where the model itself holds None there is no leaf.
    return [leaf for leaf, like in zip(leaves, wanted, strict=True) if like is not None]


def _register(cls: type) -> bool:
    """Teach optree a dataclass or an attrs class; whether that was news."""
    if dataclasses.is_dataclass(cls):
        names = tuple(field.name for field in dataclasses.fields(cls))
    elif hasattr(cls, "__attrs_attrs__"):
        names = tuple(field.name for field in cls.__attrs_attrs__)
    else:
        return False

    def take_apart(instance: Any) -> tuple[tuple[Any, ...], Any]:
        # Attributes that are no fields (caches, set in __post_init__) travel beside the leaves.
        extra = {name: value for name, value in getattr(instance, "__dict__", {}).items() if name not in names}
        return tuple(getattr(instance, name) for name in names), _Extra(extra)

    def put_together(extra: _Extra, children: tuple[Any, ...]) -> Any:
        # Not through __init__, which may check or convert what it is given.
        instance: Any = object.__new__(cls)
        for name, value in (*zip(names, children, strict=True), *extra.attributes.items()):
            object.__setattr__(instance, name, value)
        return instance

    optree.register_pytree_node(cls, take_apart, put_together, namespace=NAMESPACE)  # type: ignore[arg-type]
    return True


class _Extra:
    """Attributes beside the fields; two structures are compared without them."""

    __slots__ = ("attributes",)

    def __init__(self, attributes: dict[str, Any]) -> None:
        self.attributes = attributes

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Extra)

    def __hash__(self) -> int:
        return 0


# --- inputs ------------------------------------------------------------------------------------------------------


def is_variable(leaf: Any) -> bool:
    """Whether a leaf is differentiated; False for constants. What is neither is refused.

    Raises:
        InputError: for an object that is no number, array or constant.
    """
    kind = type(leaf)
    if kind in _NUMBERS or kind in HANDLES:
        return True
    if kind is ndarray or kind is memmap or isinstance(leaf, generic):
        letter = leaf.dtype.kind
        if letter in "fciu":
            return True
        if letter in "bSU":
            return False
        raise InputError(
            f"an array of dtype {leaf.dtype} cannot be differentiated",
            "x.astype(float), if it holds numbers",
            "pass it as a keyword argument or through a closure, if it is a constant",
        )
    if isinstance(leaf, ndarray):
        raise InputError(
            f"a {kind.__module__}.{kind.__name__} cannot be differentiated: its operations are not NumPy's",
            _AS_PLAIN,
            "pass it as a keyword argument or through a closure, if it is a constant",
        )
    if isinstance(leaf, float | int | complex) and not isinstance(leaf, _CONSTANTS):
        return True
    if isinstance(leaf, _CONSTANTS) or leaf is None:
        return False
    if hasattr(kind, "_ways_as_argument"):
        raise InputError(f"a {kind.__qualname__} cannot be differentiated here", *kind._ways_as_argument)
    raise InputError(
        f"an argument of type {kind.__module__}.{kind.__qualname__} cannot be differentiated",
        "numbers, arrays, and lists, tuples, dicts and dataclasses of these can",
        f"optree.register_pytree_node({kind.__name__}, ..., namespace={NAMESPACE!r}), if it is a container",
        "pass it as a keyword argument or through a closure, if it is a constant",
    )


class Inputs:
    """The positional arguments of one transform, with their leaves lifted to a level.

    Attributes:
        args: what the function is called with.
        primals: all leaves as they came.
        leaves: the same, with traced values for the variables.
        links: the links of the traced values as they were lifted, since a write gives a handle another one; None for
            constants.
    """

    __slots__ = ("args", "leaves", "links", "primals", "structures")

    def __init__(self, args: tuple[Any, ...], lift: Callable[[Any], Traced]) -> None:
        self.primals: list[Any] = []
        self.leaves: list[Any] = []
        self.structures: list[tuple[int, Any]] = []
        self.links: list[Any] = []
        lifted = []
        for arg in args:
            kind = type(arg)
            if kind is float or (kind is ndarray and arg.dtype.kind in "fc"):
                # As nearly all are.
                leaf = lift(arg)
                self.primals.append(arg)
                self.leaves.append(leaf)
                self.links.append(leaf.link)
                self.structures.append((1, None))
                lifted.append(leaf)
                continue
            primals, structure = flatten(arg)
            leaves = [lift(_bare(primal)) if is_variable(primal) else primal for primal in primals]
            self.primals += primals
            self.leaves += leaves
            self.links += [leaf.link if type(leaf) in HANDLES else None for leaf in leaves]
            self.structures.append((len(primals), structure))
            lifted.append(unflatten(structure, leaves))
        self.args = tuple(lifted)

    def collect(self, results: list[Any]) -> tuple[Any, ...]:
        """One result for each leaf, back in the structures of the arguments."""
        collected = []
        start = 0
        for count, structure in self.structures:
            part = results[start] if structure is None else unflatten(structure, results[start : start + count])
            collected.append(part)
            start += count
        return tuple(collected)


def _bare(primal: Any) -> Any:
    """An array of a subclass that only says where its memory is (memmap) as a plain array."""
    return primal.view(ndarray) if type(primal) is memmap else primal


_AS_PLAIN = "np.asarray(x), a plain array (x.filled(value) for a masked one, x.value for a quantity)"


def of_numpy(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """An array that meets a traced value, or comes of it, as a plain one.

    Raises:
        InputError: it is of a subclass with operations of its own, which nobody has differentiated.
    """
    x = _bare(x)
    if type(x) is not ndarray:
        raise InputError(
            f"a {type(x).__module__}.{type(x).__name__} meets a traced value: its operations are not NumPy's", _AS_PLAIN
        )
    return x


# --- results -----------------------------------------------------------------------------------------------------


def finished(x_bar: Any, primal: Any) -> Any:
    """A cotangent as the user gets it: in the type of its primal, and an array of its own.

    Python numbers become float (or complex), 0-d arrays stay 0-d arrays. `x_bar` must be held by the caller alone
    for an array to be handed over without a copy.
    """
    if type(x_bar) in HANDLES:
        is_number = isinstance(plain(primal), ndarray) and not isinstance(plain(x_bar), ndarray)
        return np.copy(x_bar) if is_number else x_bar  # np.reshape leaves a number of NumPy's a number
    if type(primal) is not ndarray:
        primal = plain(primal)
    if isinstance(primal, ndarray):
        dtype = primal.dtype if primal.dtype.kind in "fc" else FLOAT64
        is_held = type(x_bar) is not ndarray or getrefcount(x_bar) > _HELD_BY_CALLER
        if not is_held and x_bar.dtype == dtype:
            owns_it = x_bar.base is None and x_bar.flags.writeable
            if owns_it or (has_own_memory(x_bar) and _is_whole(x_bar)):
                return x_bar
        return array(x_bar, dtype=dtype)
    if isinstance(primal, generic):
        dtype = like_of(primal)[1]
        return dtype.type(x_bar)
    return complex(x_bar) if isinstance(primal, complex) else float(x_bar)


def _is_whole(x: np.ndarray[Any, Any]) -> bool:
    """Whether an array has the whole of its memory; a part of something large would keep all of it alive."""
    return x.base is None or x.base.nbytes == x.nbytes


def _calibrate() -> int:
    """The reference count that `finished` sees of an array that its caller alone holds, in a list."""
    counts = []

    def probe(x_bar: Any, primal: Any) -> None:
        counts.append(getrefcount(x_bar))

    held = [np.zeros(1)]
    probe(held[0], None)
    return counts[0]


_HELD_BY_CALLER = _calibrate()


def zero_like(primal: Any) -> Any:
    """The zero cotangent of a leaf, in the type that `finished` gives."""
    shape, dtype = like_of(primal)
    value = plain(primal)
    if isinstance(value, ndarray):
        return np.zeros(shape, dtype)
    return dtype.type(0) if isinstance(value, np.generic) else complex(0) if isinstance(value, complex) else 0.0


__all__ = [
    "Inputs",
    "finished",
    "flatten",
    "is_traced",
    "is_variable",
    "map_leaves",
    "shape_of",
    "unflatten",
    "zero_like",
]


# --- the nested sequences that NumPy's functions are given -------------------------------------------------------


def plain_tree(tree: Any, leaf: Callable[[Any], Any] = plain) -> Any:
    """An argument with the plain value of each traced one, or what else `leaf` makes of a leaf."""
    if type(tree) not in HANDLES and isinstance(tree, list | tuple):
        return rebuilt(tree, [plain_tree(item, leaf) for item in tree])
    return leaf(tree)


def rebuilt(tree: Any, items: list[Any]) -> Any:
    """Other items in the same kind of sequence; a subclass (a named tuple) becomes a list."""
    return tuple(items) if type(tree) is tuple else items
