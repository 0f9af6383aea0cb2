"""Containers: what is taken apart, what is put together again, and what is left alone."""

from __future__ import annotations

import collections
import dataclasses
import enum
import functools
from typing import Any

import attrs
import numpy as np
import pytest
from truth import close

from retrograde import InputError, dropgrad, gradient, jacobian, jvp, pullback


class Colour(enum.Enum):
    RED = 1.0


class Number(enum.IntEnum):
    ONE = 1


@dataclasses.dataclass
class Node:
    value: Any
    children: list[Node] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True, order=True)
class Frozen:
    a: Any
    b: Any = dataclasses.field(default=1.0, repr=False)


@dataclasses.dataclass(kw_only=True, slots=True, frozen=True)
class Strict:
    a: Any
    size: int = dataclasses.field(default=0)

    def __post_init__(self):
        # A check that a traced value or None would fail.
        if not isinstance(self.a, float | np.ndarray):
            raise TypeError("a must be a number")


@dataclasses.dataclass
class Cached:
    a: Any

    def __post_init__(self):
        self.extra = "kept"


@attrs.define(slots=False)
class Attrs:
    a: Any = attrs.field(converter=lambda v: v)
    b: Any = attrs.Factory(lambda: 2.0)


@attrs.frozen
class AttrsStrict:
    a: float = attrs.field(validator=attrs.validators.instance_of(float))


def test_recursive_dataclasses_are_trees():
    tree = Node(2.0, [Node(3.0), Node(np.array([4.0, 5.0]), [Node(6.0)])])

    def product(node):
        value = np.sum(node.value)
        for child in node.children:
            value = value * product(child)
        return value

    (bar,) = gradient(product, tree)
    assert type(bar) is Node
    close(bar.value, 162.0)
    close(bar.children[1].value, [36.0, 36.0])
    close(bar.children[1].children[0].value, 54.0)
    assert bar.children[0].children == []


@pytest.mark.parametrize(
    "instance", [Frozen(2.0, 3.0), Strict(a=2.0, size=3), Cached(2.0), Attrs(2.0), AttrsStrict(2.0)]
)
def test_an_instance_is_rebuilt_without_its_init(instance):
    def f(instance):
        assert type(instance) is kind
        return instance.a * 5.0

    kind = type(instance)
    (bar,) = gradient(f, instance)
    assert type(bar) is kind
    assert bar.a == 5.0
    y, y_dot = jvp(lambda i: i.a * 2, (instance,), (instance,))
    assert (y, y_dot) == (4.0, 4.0)


def test_an_integer_field_counts_as_a_number():
    (bar,) = gradient(lambda s: s.a * s.size, Strict(a=2.0, size=3))
    assert (bar.a, bar.size) == (3.0, 2.0)


def test_attributes_beside_the_fields_travel_along():
    def f(c):
        assert c.extra == "kept"
        return c.a * 1.0

    (bar,) = gradient(f, Cached(2.0))
    assert bar.extra == "kept"


def test_an_instance_is_never_changed():
    node = Node(2.0, [Node(3.0)])

    def f(node):
        node.value = node.value * 2
        node.children.append(Node(1.0))
        return node.value * node.children[0].value

    (bar,) = gradient(f, node)
    assert node == Node(2.0, [Node(3.0)])
    assert bar == Node(6.0, [Node(4.0)])


def test_a_class_that_was_registered_globally_with_optree_is_left_to_it():
    import optree

    class Registered:
        def __init__(self, a, name):
            self.a, self.name = a, name

    optree.register_pytree_node(
        Registered, lambda r: ((r.a,), r.name), lambda name, c: Registered(*c, name), namespace="retrograde"
    )

    def f(r):
        assert r.name == "static"
        return r.a**2

    (bar,) = gradient(f, Registered(3.0, "static"))
    assert (bar.a, bar.name) == (6.0, "static")


def test_classes_that_are_no_data_are_refused():
    class Plain:
        def __init__(self):
            self.a = 1.0

    with pytest.raises(InputError, match="Plain"):
        gradient(lambda p: p.a * 1.0, Plain())


def test_a_dataclass_type_itself_is_a_constant():
    assert gradient(lambda x, cls: cls(x).a * 2, 3.0, Cached) == (2.0, None)


def test_members_of_enumerations_are_constants():
    assert gradient(lambda x, c: x * c.value, 2.0, Colour.RED) == (1.0, None)
    (x_bar, n_bar) = gradient(lambda x, n: x * n, 2.0, Number.ONE)
    assert x_bar == 1.0
    assert n_bar is None


@pytest.mark.parametrize("constant", [np.dtype(float), range(3), np.random.default_rng(0), Ellipsis, NotImplemented])
def test_other_constants_pass_through_or_are_refused(constant):
    try:
        assert gradient(lambda x, c: x * 1.0 if c is constant else None, 2.0, constant) == (1.0, None)
    except InputError as error:
        assert "closure" in str(error)  # noqa: PT017


@pytest.mark.parametrize("function", [np.sin, len, lambda z: z, [].append, functools.partial(np.sum, axis=0)])
def test_functions_are_constants(function):
    assert gradient(lambda p: p["x"] * 2, {"x": 3.0, "f": function}) == ({"x": 2.0, "f": None},)


class Model:
    def __init__(self):
        self.w = np.ones(2)

    def __call__(self, x):
        return self.w * x


@pytest.mark.parametrize("argument", [Model(), {"m": Model(), "a": 2.0}])
def test_a_model_that_can_be_called_is_no_constant(argument):
    with pytest.raises(InputError, match="Model cannot be differentiated"):
        gradient(lambda m: 1.0, argument)


def test_a_subclass_of_a_number_is_a_number():
    class Metres(float):
        pass

    (bar,) = gradient(lambda m: m * m, Metres(3.0))
    assert bar == 6.0
    (bar,) = gradient(lambda m: m * m, np.float64(3.0))
    assert type(bar) is np.float64


@pytest.mark.parametrize("subclass", [dict, list, tuple])
def test_a_subclass_of_a_container_is_taken_apart_or_refused_but_never_a_silent_constant(subclass):
    class Mine(subclass):
        pass

    argument = Mine({"a": 2.0}) if subclass is dict else Mine([2.0])
    key = "a" if subclass is dict else 0
    try:
        (bar,) = gradient(lambda m: m[key] ** 2, argument)
    except InputError as error:
        assert "Mine" in str(error)  # noqa: PT017
    else:
        assert bar[key] == 4.0


def test_a_deep_container_is_no_problem():
    nested = 3.0
    for _ in range(200):
        nested = [nested]

    def f(nested):
        while isinstance(nested, list):
            nested = nested[0]
        return nested**2

    (bar,) = gradient(f, nested)
    for _ in range(200):
        bar = bar[0]
    assert bar == 6.0


def test_a_container_of_many_leaves_is_no_problem():
    values = {f"w{i}": float(i) for i in range(2000)}
    (bar,) = gradient(lambda d: sum(v * v for v in d.values()), values)
    assert bar == {name: 2 * v for name, v in values.items()}


def test_mappings_of_the_standard_library():
    counter = collections.Counter({"a": 2.0})
    try:
        (bar,) = gradient(lambda c: c["a"] ** 2, counter)
    except InputError as error:
        assert "Counter" in str(error)  # noqa: PT017
    else:
        assert bar["a"] == 4.0
    chained = collections.ChainMap({"a": 2.0})
    with pytest.raises(InputError, match="ChainMap"):
        gradient(lambda c: c["a"] ** 2, chained)


def test_results_may_be_mapped_over_though_none_is_an_empty_node():
    import optree

    (bar,) = gradient(lambda d: d["a"] ** 2, {"a": 3.0, "b": 1.0})
    assert bar == {"a": 6.0, "b": None}
    step = optree.tree_map(lambda p, g: p if g is None else p - g, {"a": 3.0, "b": 1.0}, bar, none_is_leaf=True)
    assert step == {"a": -3.0, "b": 1.0}


def test_every_tool_takes_the_same_containers():
    tree = {"n": Frozen(2.0, [3.0]), "t": (np.ones(2),)}
    _, back = pullback(lambda t: t["n"].a * t["n"].b[0] * t["t"][0], tree)
    (bar,) = back(np.array([1.0, 2.0]))
    assert bar["n"] == Frozen(9.0, [6.0])
    close(bar["t"][0], [6.0, 12.0])
    J = jacobian(lambda t: t["n"].a * t["t"][0], tree)
    close(J["n"].a, [1.0, 1.0])
    close(J["t"][0], 2 * np.eye(2))
    assert gradient(lambda t: dropgrad(t)["n"].a * t["n"].b[0], tree)[0]["n"] == Frozen(None, [2.0])
