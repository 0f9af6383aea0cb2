"""gradient, withgradient, grad and value_and_grad: what goes in, what comes out, and what is refused."""

from __future__ import annotations

import collections
import dataclasses
import functools
import math
from typing import Any, NamedTuple

import attrs
import numpy as np
import pytest
from truth import close, differences

from retrograde import (
    InputError,
    LossError,
    RetrogradeError,
    ScalarError,
    dropgrad,
    grad,
    gradient,
    istracked,
    value_and_grad,
    withgradient,
)

# --- arguments and results ---------------------------------------------------------------------------------------


def test_every_positional_argument_gets_an_entry():
    assert gradient(lambda x: x * x, 3.0) == (6.0,)
    assert gradient(lambda x, y, z: x * y + z, 2.0, 3.0, 4.0) == (3.0, 2.0, 1.0)


def test_keyword_arguments_are_passed_as_they_are_and_never_differentiated():
    weights = np.array([1.0, 2.0])

    def f(x, *, weights, power=1):
        assert weights is mine
        assert type(power) is int
        return np.sum(weights * x**power)

    mine = weights
    (x_bar,) = gradient(f, np.array([3.0, 4.0]), weights=weights, power=2)
    close(x_bar, [6.0, 16.0])


@pytest.mark.parametrize("transform", [gradient, withgradient])
@pytest.mark.parametrize("name", ["f", "name", "args", "kwargs", "self", "level", "x", "argnums", "tape"])
def test_a_keyword_of_any_name_belongs_to_the_function(transform, name):
    result = transform(lambda a, **kwargs: a * kwargs[name], 2.0, **{name: 3.0})
    assert (result if transform is gradient else result.grad) == (3.0,)


@pytest.mark.parametrize("name", ["f", "argnums", "self", "args"])
def test_a_keyword_of_any_name_belongs_to_the_function_of_grad(name):
    assert grad(lambda a, **kwargs: a * kwargs[name])(2.0, **{name: 3.0}) == 3.0
    assert value_and_grad(lambda a, **kwargs: a * kwargs[name])(2.0, **{name: 3.0}) == (6.0, 3.0)


def test_without_arguments_gradient_returns_the_function_that_computes_it():
    assert gradient(lambda x, y: x * y)(2.0, 3.0) == (3.0, 2.0)
    assert gradient(lambda x, y: x * y, y=3.0)(2.0) == (3.0,)
    assert withgradient(lambda x: x * x)(3.0) == (9.0, (6.0,))


@pytest.mark.parametrize(
    ("x", "kind"),
    [
        (3.0, float),
        (3, float),
        (2 + 1j, complex),
        (np.float64(3), np.float64),
        (np.float32(3), np.float32),
        (np.float16(3), np.float16),
        (np.longdouble(3), np.longdouble),
        (np.int64(3), np.float64),
        (np.int8(3), np.float64),
        (np.uint16(3), np.float64),
        (np.complex128(2 + 1j), np.complex128),
        (np.complex64(2 + 1j), np.complex64),
    ],
)
def test_the_gradient_of_a_number_is_a_number_of_its_type(x, kind):
    (x_bar,) = gradient(lambda x: np.real(x * np.conj(x)), x)
    assert type(x_bar) is kind
    close(x_bar, 2 * x)


@pytest.mark.parametrize("dtype", "float64 float32 float16 longdouble complex128 complex64".split())
@pytest.mark.parametrize("shape", [(), (1,), (3,), (2, 3), (0,), (2, 0, 3), (1, 1, 1)])
def test_the_gradient_of_an_array_has_its_shape_and_dtype(dtype, shape):
    x = np.arange(1.0, 1 + math.prod(shape)).reshape(shape).astype(dtype)
    (x_bar,) = gradient(lambda x: np.sum(np.real(x * np.conj(x))), x)
    assert type(x_bar) is np.ndarray
    assert x_bar.dtype == x.dtype
    close(x_bar, 2 * x)


@pytest.mark.parametrize("dtype", [">f8", ">f4", ">c16"])
def test_the_gradient_keeps_the_byte_order_of_its_argument(dtype):
    x = np.array([1.0, 2.0]).astype(dtype)
    (x_bar,) = gradient(lambda x: np.sum(np.real(x * np.conj(x))), x)
    assert x_bar.dtype == x.dtype
    close(x_bar, [2.0, 4.0])


@pytest.mark.parametrize("dtype", "int64 int32 int8 uint8 uint64".split())
def test_an_integer_array_counts_as_float64_in_its_cotangent(dtype):
    (x_bar,) = gradient(lambda x: np.sum(x * x * 0.5), np.array([1, 2, 3], dtype))
    assert x_bar.dtype == np.float64
    close(x_bar, [1.0, 2.0, 3.0])


def test_float32_stays_float32_through_a_chain_of_operations():
    x = np.array([[1.0, 5.0, 5.0], [2.0, 0.0, 3.0]], np.float32)

    def f(x):
        y = np.exp(x / 5) * 2.0 + np.mean(x, axis=0) - 1
        z = np.concatenate([y, x[:1]]) @ np.ones(3, np.float32)
        assert z.dtype == np.float32
        return np.sum(z)

    (x_bar,) = gradient(f, x)
    assert x_bar.dtype == np.float32
    close(x_bar, differences(lambda x: np.sum(np.concatenate([np.exp(x / 5) * 2 + np.mean(x, 0) - 1, x[:1]])), x), 1e-5)


def test_a_loss_in_float32_of_float64_arguments_gives_float64():
    (x_bar,) = gradient(lambda x: np.sum(x.astype(np.float32) ** 2), np.array([1.0, 2.0]))
    assert x_bar.dtype == np.float64
    close(x_bar, [2.0, 4.0])


@pytest.mark.parametrize("constant", [True, np.True_, "text", b"bytes", np.str_("text"), None, slice(2), len])
def test_booleans_strings_and_their_like_are_constants(constant):
    def f(x, constant):
        assert constant is given
        assert not istracked(constant)
        return x * x

    given = constant
    assert gradient(f, 3.0, constant) == (6.0, None)


@pytest.mark.parametrize("array", [np.array([True, False]), np.array(["a", "b"]), np.array([b"a"])])
def test_arrays_of_booleans_and_strings_are_constants(array):
    assert gradient(lambda x, array: x * len(array), 3.0, array) == (float(len(array)), None)


def test_an_integer_may_be_a_count_an_index_a_shape_and_a_number():
    x = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])

    def f(x, n):
        total = 0.0
        for i in range(n):
            total = total + x[i]
        total = total + x[n] + np.sum(x[:n]) + np.sum(x[n::n]) + np.sum(x.reshape(n, 2)[0]) + np.sum(np.zeros(n))
        total = total + np.sum(np.reshape(x, (n, -1))[:, 0]) + x[[0, n]].sum()
        return total * n

    x_bar, n_bar = gradient(f, x, 3)
    value = 6.0 + 4.0 + 6.0 + 4.0 + 3.0 + 9.0 + 5.0
    assert type(n_bar) is float
    close(n_bar, value)
    close(x_bar, 3 * np.array([5.0, 3.0, 3.0, 3.0, 1.0, 0.0]))


@pytest.mark.parametrize(
    "text",
    [
        "np.zeros(n)",
        "np.ones((n, 2))",
        "np.full(n, 2.0)",
        "np.empty((2, n))",
        "np.eye(n)",
        "np.arange(n)",
        "np.linspace(0.0, 1.0, n)",
        "np.roll(np.arange(4.0), n)",
        "np.tile(np.arange(2.0), n)",
        "np.repeat(np.arange(2.0), n)",
        "np.tri(n)",
        "np.identity(n)",
        "np.indices((n, n))",
        "np.array_split(np.arange(6.0), n)",
        "np.expand_dims(np.zeros((2, 2, 2)), n)",
        "list(range(n, 0, -1))",
        "round(2.34567, n)",
        "bin(n) + hex(n) + oct(n) + chr(n)",
        "math.factorial(n) + math.comb(5, n) + math.gcd(n, 6)",
        "1 << n",
    ],
)
def test_an_integer_argument_serves_wherever_python_and_numpy_want_an_integer(text):
    make = eval(f"lambda n: {text}", {"np": np, "math": math})
    want = make(3)

    def f(n):
        got = make(n)
        assert np.shape(got) == np.shape(want)
        assert "empty" in text or np.array_equal(dropgrad(got), want)
        return 0.0

    gradient(f, 3)


def test_an_integer_repeats_a_sequence():
    def f(x, n):
        assert "ab" * n == n * "ab" == "ababab"
        assert len((x, 2.0) * n) == 6
        assert len([x] * n) == 3
        assert [0.0] * n == n * [0.0] == [0.0, 0.0, 0.0]
        return sum([x] * n) + sum((x, 2 * x) * n)

    assert gradient(f, 2.0, 3) == (12.0, None)


def test_a_function_of_no_path_gives_none_and_of_a_zero_derivative_gives_zeros():
    x = np.array([1.5, 2.5])
    assert gradient(lambda x, y: x * 1.0, 2.0, 3.0) == (1.0, None)
    assert gradient(lambda x: 7.0, x) == (None,)
    assert gradient(lambda x: 7, x) == (None,)
    for flat in (np.floor, np.sign, np.round, np.rint, np.trunc, np.ceil):
        (x_bar,) = gradient(lambda x, flat=flat: np.sum(flat(x)), x)
        close(x_bar, [0.0, 0.0])
    assert gradient(lambda x: 0 * x, 2.0) == (0.0,)
    assert gradient(round, 2.5) == (0.0,)


def test_the_identity_has_gradient_one():
    assert gradient(lambda x: x, 2.0) == (1.0,)
    assert gradient(lambda n: n, 2) == (1.0,)
    (x_bar,) = gradient(lambda x: x, np.array(2.0))
    assert isinstance(x_bar, np.ndarray)
    close(x_bar, 1.0)


def test_a_zero_dimensional_result_is_a_scalar():
    close(gradient(lambda x: np.reshape(x, ()), np.array([4.0]))[0], [1.0])


# --- containers --------------------------------------------------------------------------------------------------


class Point(NamedTuple):
    x: Any
    y: Any


@dataclasses.dataclass
class Layer:
    weight: Any
    bias: Any
    name: str = "layer"


@dataclasses.dataclass(frozen=True)
class FrozenLayer:
    weight: Any
    bias: Any
    flag: bool = True


@dataclasses.dataclass(slots=True)
class SlottedLayer:
    weight: Any
    bias: Any


@dataclasses.dataclass
class Derived(Layer):
    scale: Any = 2.0
    label: str = dataclasses.field(default="x", init=False, compare=False)


@dataclasses.dataclass
class Converting:
    """Its __init__ converts, so that an instance cannot be rebuilt by calling it."""

    weight: Any

    def __post_init__(self):
        self.weight = np.array(self.weight, dtype=float)
        self.cache = {"calls": 0}


@attrs.define
class AttrsLayer:
    weight: Any
    bias: Any


@attrs.frozen
class AttrsFrozen:
    weight: Any
    bias: Any = attrs.field(default=0.0, kw_only=True)


def test_lists_and_tuples_keep_their_structure_leaf_by_leaf():
    nested = [1.0, (2.0, [3.0, np.array([4.0, 5.0])]), "text", True, 6]

    def f(t):
        assert type(t) is list
        assert type(t[1]) is tuple
        assert t[2] == "text"
        assert t[3] is True
        return t[0] * t[1][0] * t[1][1][0] + np.sum(t[1][1][1]) * t[4]

    (bar,) = gradient(f, nested)
    assert bar[:2] == [6.0, (3.0, [2.0, pytest.approx([6.0, 6.0])])]
    assert bar[2:] == [None, None, 9.0]


def test_unused_leaves_are_none_where_they_stand():
    assert gradient(lambda d: d["a"] * 2, {"a": 1.0, "b": [2.0, {"c": 3.0}]}) == ({"a": 2.0, "b": [None, {"c": None}]},)


def test_named_tuples_come_back_as_named_tuples():
    (bar,) = gradient(lambda p: p.x * p.y**2, Point(2.0, 3.0))
    assert type(bar) is Point
    assert bar == Point(9.0, 12.0)


@pytest.mark.parametrize(
    "make",
    [
        dict,
        collections.OrderedDict,
        lambda items: collections.defaultdict(list, items),
    ],
)
def test_dictionaries_keep_their_kind_and_their_keys(make):
    given = make([("z", 2.0), ("a", np.array([1.0, 3.0]))])
    (bar,) = gradient(lambda d: d["z"] * np.sum(d["a"]), given)
    assert type(bar) is type(given)
    assert set(bar) == {"z", "a"}
    assert bar["z"] == 4.0
    close(bar["a"], [2.0, 2.0])


def test_an_ordered_dictionary_keeps_its_order():
    given = collections.OrderedDict([("z", 1.0), ("a", 2.0), ("m", 3.0)])
    (bar,) = gradient(lambda d: d["z"] * d["a"] * d["m"], given)
    assert list(bar) == ["z", "a", "m"]


def test_dictionaries_with_keys_that_do_not_compare_work():
    (bar,) = gradient(lambda d: d[1] * d["a"] * d[(2, None)], {1: 2.0, "a": 3.0, (2, None): 4.0})
    assert bar == {1: 12.0, "a": 8.0, (2, None): 6.0}


def test_a_deque_is_a_container():
    (bar,) = gradient(lambda q: q[0] * q[1], collections.deque([2.0, 3.0]))
    assert bar == collections.deque([3.0, 2.0])


@pytest.mark.parametrize("kind", [Layer, FrozenLayer, SlottedLayer, Derived, AttrsLayer])
def test_dataclasses_and_attrs_classes_come_back_as_themselves(kind):
    layer = kind(weight=np.array([1.0, 2.0]), bias=3.0)

    def f(layer, x):
        assert type(layer) is kind
        return np.sum(layer.weight * x) + layer.bias**2

    layer_bar, _ = gradient(f, layer, 2.0)
    assert type(layer_bar) is kind
    close(layer_bar.weight, [2.0, 2.0])
    close(layer_bar.bias, 6.0)


def test_constant_fields_of_a_dataclass_reach_the_function_and_have_the_gradient_none():
    def f(layer):
        assert layer.name == "first"
        return layer.weight * layer.bias

    (bar,) = gradient(f, Layer(2.0, 3.0, "first"))
    assert bar == Layer(3.0, 2.0, None)


def test_a_dataclass_is_not_built_by_its_init():
    def f(model):
        assert model.cache == {"calls": 0}
        return np.sum(model.weight**2)

    (bar,) = gradient(f, Converting([1.0, 2.0]))
    assert type(bar) is Converting
    close(bar.weight, [2.0, 4.0])


def test_methods_and_properties_of_a_dataclass_work_on_traced_fields():
    @dataclasses.dataclass(frozen=True)
    class Gaussian:
        mean: Any
        scale: Any

        @property
        def precision(self):
            return 1 / self.scale**2

        def energy(self, x):
            return 0.5 * self.precision * (x - self.mean) ** 2

    bar, x_bar = gradient(lambda g, x: g.energy(x), Gaussian(1.0, 2.0), 4.0)
    assert bar == Gaussian(-0.75, pytest.approx(-9 / 8))
    close(x_bar, 0.75)


def test_an_attrs_class_with_keyword_only_fields_comes_back():
    (bar,) = gradient(lambda a: a.weight * a.bias, AttrsFrozen(2.0, bias=5.0))
    assert bar == AttrsFrozen(5.0, bias=2.0)


def test_dataclasses_nest_in_containers_and_in_each_other():
    model = {"layers": [Layer(1.0, 2.0), FrozenLayer(Layer(3.0, np.array([4.0])), AttrsLayer(5.0, (6.0,)))]}

    def f(m):
        a, b = m["layers"]
        return a.weight * a.bias * b.weight.weight * np.sum(b.weight.bias) * b.bias.weight * b.bias.bias[0]

    (bar,) = gradient(f, model)
    second = bar["layers"][1]
    assert type(second) is FrozenLayer
    assert second.bias == AttrsLayer(144.0, (120.0,))
    close(second.weight.bias, [180.0])
    assert bar["layers"][0] == Layer(720.0, 360.0, None)


def test_empty_containers_and_none_leaves_pass_through():
    assert gradient(lambda x, empty, d: x * 2, 1.0, [], {"a": None, "b": ()}) == (2.0, [], {"a": None, "b": ()})


def test_the_same_array_given_twice_is_two_arguments():
    x = np.array([1.0, 2.0])
    a, b = gradient(lambda a, b: np.sum(a * b**2), x, x)
    close(a, x**2)
    close(b, 2 * x * x)
    (both,) = gradient(lambda pair: np.sum(pair[0] * 3 + pair[1]), [x, x])
    close(both[0], [3.0, 3.0])
    close(both[1], [1.0, 1.0])


def test_a_function_may_change_the_containers_that_it_is_given():
    given = {"a": [1.0, 2.0], "b": 3.0}

    def f(d):
        last = d["a"].pop()
        d["c"] = last * d.pop("b")
        return d["c"] * d["a"][0]

    assert gradient(f, given) == ({"a": [6.0, 3.0], "b": 2.0},)
    assert given == {"a": [1.0, 2.0], "b": 3.0}


# --- results are the caller's own --------------------------------------------------------------------------------


def test_gradients_are_arrays_of_their_own_that_may_be_written_to():
    x, y = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    x_bar, y_bar = gradient(lambda x, y: np.sum(x + y), x, y)
    assert not np.shares_memory(x_bar, y_bar)
    x_bar *= 0
    y_bar += 1
    close(x, [1.0, 2.0])
    close(y_bar, [2.0, 2.0])


@pytest.mark.parametrize(
    "f",
    [
        lambda x, c: np.sum(x * c),
        lambda x, c: np.dot(x, c),
        lambda x, c: np.sum(np.where(c > 0, x, c)),
        lambda x, c: np.sum(x[::-1] * c),
        lambda x, c: np.sum(x.reshape(1, 3) @ c),
        lambda x, c: np.sum(np.concatenate([x, c])),
        lambda x, c: np.einsum("i,i->", x, c),
        lambda x, c: np.sum(np.copy(x)),
    ],
)
def test_a_gradient_never_shares_memory_with_what_the_function_used(f):
    x, c = np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0, 6.0])
    (x_bar,) = gradient(f, x, c=c)
    want = x_bar.copy()
    x_bar.fill(99.0)
    close(c, [4.0, 5.0, 6.0])
    close(x, [1.0, 2.0, 3.0])
    close(gradient(f, x, c=c)[0], want)


def test_the_callers_arrays_and_their_flags_are_never_changed():
    x = np.array([[1.0, 2.0], [3.0, 4.0]])
    before = x.copy()

    def f(x):
        y = np.sort(x, axis=1)[::-1].T.copy()
        return np.sum(y * np.cumsum(x, axis=0)) + np.linalg.norm(x) + x[0, 1] ** 2 + np.sum(x[[0, 0]])

    gradient(f, x)
    assert x.flags.writeable
    assert (x == before).all()


@pytest.mark.parametrize(
    "x",
    [
        pytest.param(np.asfortranarray(np.arange(6.0).reshape(2, 3)), id="Fortran order"),
        pytest.param(np.arange(12.0).reshape(2, 6)[:, ::2], id="strided"),
        pytest.param(np.arange(6.0).reshape(2, 3)[::-1, ::-1], id="negative strides"),
        pytest.param(np.broadcast_to(np.array([1.0, 2.0, 3.0]), (2, 3)), id="broadcast, read-only"),
        pytest.param(np.arange(6.0).reshape(3, 2).T, id="transposed"),
    ],
)
def test_arrays_of_every_layout_are_taken(x):
    (x_bar,) = gradient(lambda x: np.sum(x * x * np.array([[1.0], [2.0]])) + x[0, 1], x)
    want = 2 * x * np.array([[1.0], [2.0]])
    want[0, 1] += 1
    close(x_bar, want)
    assert x_bar.flags.writeable


def test_a_memory_mapped_array_is_an_array(tmp_path):
    path = tmp_path / "x.bin"
    np.array([1.0, 2.0]).tofile(path)
    x = np.memmap(path, dtype=float, mode="r")
    (x_bar,) = gradient(lambda x: np.sum(x**2), x)
    close(x_bar, [2.0, 4.0])
    (x_bar,) = gradient(lambda y: np.sum(y * x) + np.sum(np.concatenate([x, y])) + x @ y, np.array([3.0, 4.0]))
    close(x_bar, [3.0, 5.0])


# --- what a function may do --------------------------------------------------------------------------------------


def test_loops_branches_recursion_and_closures_are_python():
    def power(x, n):
        return 1.0 if n == 0 else x * power(x, n - 1)

    def f(x):
        total = 0.0
        while total < 10:
            total = total + (x * x if x > 1 else -x)
        scale = lambda y: y * x
        return scale(total) + power(x, 3)

    # Three turns of the loop: 3x² · x + x³ at x = 2.
    assert gradient(f, 2.0) == (48.0,)


def test_an_exception_that_the_function_handles_is_no_concern_of_ours():
    def f(x):
        try:
            raise ValueError(x)
        except ValueError as error:
            return error.args[0] * 3

    assert gradient(f, 2.0) == (3.0,)


def test_an_exception_of_the_function_passes_unchanged():
    error = KeyError("mine")

    def f(x):
        raise error

    with pytest.raises(KeyError) as caught:
        gradient(f, 2.0)
    assert caught.value is error
    assert not getattr(error, "__notes__", [])
    assert gradient(lambda x: x * x, 3.0) == (6.0,)


def test_anything_callable_can_be_differentiated():
    class Model:
        def __init__(self, scale):
            self.scale = scale

        def __call__(self, x):
            return self.scale * x**2

        def method(self, x):
            return self.scale * x

        @staticmethod
        def static(x):
            return x * 4

        @classmethod
        def of_class(cls, x):
            return x * 5

    model = Model(3.0)
    assert gradient(model, 2.0) == (12.0,)
    assert gradient(model.method, 2.0) == (3.0,)
    assert gradient(Model.static, 2.0) == (4.0,)
    assert gradient(Model.of_class, 2.0) == (5.0,)
    assert gradient(functools.partial(pow, exp=3), 2.0) == (12.0,)
    assert gradient(abs, -2.0) == (-1.0,)
    assert gradient(np.sin, 0.0) == (1.0,)
    assert gradient(np.sum, np.ones(2))[0].tolist() == [1.0, 1.0]
    assert gradient(np.linalg.norm, np.array([3.0, 4.0]))[0] == pytest.approx([0.6, 0.8])


def test_a_function_of_math_can_be_differentiated_by_itself():
    assert gradient(math.sin, 0.0) == (1.0,)
    assert gradient(math.pow, 2.0, 3.0) == (12.0, pytest.approx(8 * math.log(2)))


def test_a_callable_without_a_name_can_be_differentiated():
    class Nameless:
        __slots__ = ()

        def __call__(self, x):
            return x * x

    assert gradient(Nameless(), 3.0) == (6.0,)


# --- the loss ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("f", "says"),
    [
        (lambda x: x, r"shape \(3,\)"),
        (lambda x: x * np.ones((2, 3)), r"shape \(2, 3\)"),
        (lambda x: [x[0], x[1]], "a list"),
        (lambda x: (x[0],), "a tuple"),
        (lambda x: {"a": x[0]}, "a dict"),
        (lambda x: None, "None"),
        (lambda x: "text", "a str"),
        (lambda x: x[0] * 1j, "complex"),
        (lambda x: np.zeros(3), r"shape \(3,\)"),
        (lambda x: object(), "a object"),
    ],
)
def test_a_result_that_is_no_real_scalar_is_refused(f, says):
    with pytest.raises(ScalarError, match=says) as caught:
        gradient(f, np.array([1.0, 2.0, 3.0]))
    assert isinstance(caught.value, TypeError)
    assert "gradient needs a real scalar" in str(caught.value)
    assert "\n  1. " in str(caught.value)


def test_the_error_for_an_array_names_the_ways_out():
    with pytest.raises(ScalarError) as caught:
        gradient(lambda x: x**2, np.ones(3))
    for way in ("np.sum(f(x))", "jacobian(f, x)", "pullback(f, x)"):
        assert way in str(caught.value)


@pytest.mark.parametrize("shape", [(1,), (1, 1)])
def test_the_error_for_an_array_of_one_element_says_how_to_reduce_it(shape):
    with pytest.raises(ScalarError, match=r"item\(\)"):
        gradient(lambda x: x.reshape(shape), np.array([2.0]))


@pytest.mark.parametrize(
    ("x", "what"), [(np.inf, "infinite"), (-np.inf, "infinite"), (np.nan, "NaN"), (np.array(np.inf), "infinite")]
)
@pytest.mark.parametrize("transform", [gradient, withgradient, grad, value_and_grad])
def test_an_infinite_and_a_nan_loss_are_refused(x, what, transform):
    with pytest.raises(LossError, match=what) as caught:
        transform(lambda x: x * 1.0)(x)
    assert isinstance(caught.value, ValueError)
    with pytest.raises(LossError, match=what):
        transform(lambda y: x)(1.0)


def test_the_errors_of_the_loss_stand_at_the_users_line():
    with pytest.raises(ScalarError) as caught:
        gradient(lambda x: x, np.ones(2))
    assert "(test_gradient.py:" in str(caught.value)


def test_a_boolean_result_is_a_real_number_without_a_path():
    assert gradient(lambda x: x > 1, 2.0) == (None,)


def test_a_numpy_boolean_is_a_boolean():
    assert gradient(lambda x: np.sum(x) > 1, np.ones(2)) == (None,)
    assert gradient(lambda x: np.any(x > 0), np.ones(2)) == (None,)


def test_infinite_and_nan_elements_matter_only_where_they_reach_the_loss():
    x = np.array([np.inf, 1.0, np.nan])
    close(gradient(lambda x: x[1] ** 2, x)[0], [0.0, 2.0, 0.0])
    close(gradient(lambda x: np.sum(np.where(np.isfinite(x), x, 0.0) ** 2), x)[0], [0.0, 2.0, 0.0])
    close(gradient(lambda x: np.exp(-x), np.inf)[0], 0.0)
    close(gradient(lambda x: np.tanh(x), np.inf)[0], 0.0)
    close(gradient(lambda x: 1 / x, -np.inf)[0], 0.0)
    close(gradient(np.nansum, np.array([np.nan, 2.0]))[0], [0.0, 1.0])


def test_zero_times_infinity_is_zero_on_the_way_back():
    close(gradient(lambda x: np.sum(np.where(x > 0, np.sqrt(x), 0.0)), np.array([0.0, 4.0]))[0], [0.0, 0.25])
    close(gradient(lambda x: np.sum(np.sqrt(x)[1:]), np.array([0.0, 4.0]))[0], [0.0, 0.25])
    assert gradient(lambda x: 0.0 * np.sqrt(x), 0.0) == (0.0,)
    assert gradient(lambda x: np.sqrt(x), 0.0) == (np.inf,)


def test_an_empty_sum_is_a_loss_of_zero():
    for f in (np.sum, lambda x: np.sum(x**2), lambda x: np.sum(x) + 1, lambda x: np.dot(x, x)):
        (x_bar,) = gradient(f, np.zeros(0))
        close(x_bar, np.zeros(0))


# --- complex numbers ---------------------------------------------------------------------------------------------


def test_the_gradient_of_the_squared_modulus_is_twice_the_number():
    z = 3.0 - 2.0j
    assert gradient(lambda z: abs(z) ** 2, z)[0] == pytest.approx(2 * z)
    assert gradient(lambda z: z.real**2 + z.imag**2, z) == (2 * z,)
    assert gradient(lambda z: np.real(z * np.conj(z)), z) == (2 * z,)


def test_the_gradient_of_the_real_part_of_a_holomorphic_function_is_its_conjugate_derivative():
    z = np.array([0.3 + 0.5j, -1.0 + 0.2j])
    close(gradient(lambda z: np.sum(np.real(np.exp(z) * z)), z)[0], np.conj(np.exp(z) * (z + 1)))
    close(gradient(lambda z: np.sum(np.imag(np.sin(z))), z)[0], 1j * np.conj(np.cos(z)))


def test_a_real_argument_of_a_complex_computation_has_a_real_gradient():
    x = np.array([0.4, -1.2])
    (x_bar,) = gradient(lambda x: np.sum(np.abs(np.exp(1j * x) + x) ** 2), x)
    assert x_bar.dtype == np.float64
    close(x_bar, 2 * x + 2 * np.cos(x) - 2 * x * np.sin(x))


# --- refused arguments -------------------------------------------------------------------------------------------


class Opaque:
    pass


class Frame:
    """Like a data frame or a quantity: no array, but glad to become one."""

    def __array__(self, dtype=None, copy=None):
        return np.ones(3, dtype)


def matrix():
    with pytest.warns(PendingDeprecationWarning):
        return np.matrix([[1.0, 2.0]])


@pytest.mark.parametrize(
    ("make", "named", "way"),
    [
        (lambda: np.ma.masked_array([1.0, 2.0], [True, False]), "MaskedArray", "filled"),
        (matrix, "matrix", "np.asarray"),
        (lambda: np.array([1.0, 2.0], object), "dtype object", "astype(float)"),
        (lambda: np.array([(1.0, 2.0)], [("a", float), ("b", float)]), "dtype", "closure"),
        (lambda: np.array(["2020-01-01"], "datetime64[D]"), "datetime64", "keyword argument"),
        (lambda: np.array([3], "timedelta64[s]"), "timedelta64", "closure"),
        (lambda: np.datetime64("2020-01-01"), "datetime64", "closure"),
        (lambda: Opaque(), "Opaque", "register_pytree_node"),
        (lambda: Frame(), "Frame", "register_pytree_node"),
        (lambda: {1.0, 2.0}, "set", "closure"),
        (lambda: iter([1.0]), "iterator", "closure"),
    ],
)
def test_an_argument_that_cannot_be_differentiated_is_refused_by_name_with_a_way_out(make, named, way):
    argument = make()
    for transform in (gradient, withgradient):
        with pytest.raises(InputError) as caught:
            transform(lambda x: 0.0, argument)
        assert isinstance(caught.value, TypeError)
        assert named in str(caught.value)
        assert way in str(caught.value)
        assert "(test_gradient.py:" in str(caught.value)
    with pytest.raises(InputError, match=named):
        gradient(lambda x: 0.0, {"inside": [1.0, argument]})


def test_a_subclass_of_ndarray_with_units_is_refused_by_its_name():
    class Quantity(np.ndarray):
        pass

    with pytest.raises(InputError, match="Quantity"):
        gradient(np.sum, np.ones(2).view(Quantity))


def test_a_refused_argument_may_still_be_closed_over_or_passed_by_keyword():
    opaque = Opaque()
    assert gradient(lambda x, other: x * 2 if other is opaque else 0.0, 1.0, other=opaque) == (2.0,)


def test_a_class_registered_with_optree_is_a_container():
    import optree

    class Pair:
        def __init__(self, a, b):
            self.a, self.b = a, b

    optree.register_pytree_node(
        Pair, lambda p: ((p.a, p.b), None), lambda _, children: Pair(*children), namespace="retrograde"
    )
    (bar,) = gradient(lambda p: p.a * p.b, Pair(2.0, 3.0))
    assert (type(bar), bar.a, bar.b) == (Pair, 3.0, 2.0)


def test_what_cannot_be_called_is_refused_by_python():
    with pytest.raises(TypeError, match="not callable"):
        gradient(3.0, 2.0)


# --- the other three ---------------------------------------------------------------------------------------------


def test_withgradient_names_its_two_results():
    result = withgradient(lambda x, y: x * y, 2.0, 3.0)
    assert result.val == 6.0
    assert result.grad == (3.0, 2.0)
    val, grads = result
    assert type(val) is float
    assert grads == (3.0, 2.0)
    assert withgradient(lambda x: 5.0, 2.0) == (5.0, (None,))


def test_the_value_is_plain():
    x = np.array([1.0, 2.0], np.float32)
    val = withgradient(lambda x: np.sum(x), x).val
    assert type(val) is np.float32
    assert type(value_and_grad(np.sum)(x)[0]) is np.float32


def test_grad_differentiates_the_arguments_that_argnums_names():
    f = lambda x, y, z=2.0: x * y**z
    assert grad(f)(2.0, 3.0) == 9.0
    assert grad(f, 1)(2.0, 3.0) == 12.0
    assert grad(f, -1)(2.0, 3.0) == 12.0
    assert grad(f, (1, 0))(2.0, 3.0) == (12.0, 9.0)
    assert grad(f, argnums=(0,))(2.0, 3.0) == (9.0,)
    assert grad(f)(2.0, 3.0, z=1) == 3.0
    assert value_and_grad(f, (0, 1))(2.0, 3.0) == (18.0, (9.0, 12.0))
    assert value_and_grad(f)(2.0, 3.0) == (18.0, 9.0)


def test_grad_leaves_the_other_arguments_as_they_are():
    def f(x, n, text):
        assert type(n) is int
        assert text == "text"
        return x**n

    assert grad(f)(2.0, 3, "text") == 12.0


def test_grad_takes_any_object_where_it_does_not_differentiate():
    assert grad(lambda x, other: x * 2)(1.0, Opaque()) == 2.0


def test_grad_gives_zeros_where_no_path_leads():
    assert grad(lambda x, y: x * 1.0, 1)(2.0, 3.0) == 0.0
    zero = grad(lambda x: 3.0)(np.ones((2, 3), np.float32))
    assert zero.dtype == np.float32
    close(zero, np.zeros((2, 3)))
    bar = grad(lambda d: d["a"] ** 2)({"a": 2.0, "b": np.ones(2), "c": [1, 2j], "d": "text"})
    assert bar["a"] == 4.0
    close(bar["b"], [0.0, 0.0])
    assert bar["c"] == [0.0, 0j]
    assert [type(c) for c in bar["c"]] == [float, complex]
    assert bar["d"] is None


@pytest.mark.parametrize("argnums", [2, -3, (0, 5)])
def test_grad_refuses_an_argument_that_was_not_given(argnums):
    with pytest.raises(RetrogradeError, match=r"argnums.*there are 2"):
        grad(lambda x, y: x * y, argnums)(1.0, 2.0)


def test_grad_refuses_an_argument_named_twice_or_gives_it_twice():
    try:
        result = grad(lambda x, y: x * y, (0, 0))(2.0, 3.0)
    except RetrogradeError as error:
        assert "argnums" in str(error)  # noqa: PT017
    else:
        assert result == (3.0, 3.0)


@pytest.mark.parametrize("transform", [grad, value_and_grad])
def test_grad_always_returns_a_function(transform):
    assert callable(transform(lambda x: x))
    with pytest.raises(TypeError):
        transform(lambda x: x, 0, 2.0)


def test_the_gradient_of_a_vector_model_agrees_with_differences():
    rng = np.random.default_rng(0)
    features, target = rng.normal(size=(7, 4)), rng.normal(size=7)

    def loss(w):
        hidden = np.tanh(features @ w.reshape(4, 3))
        logits = hidden - np.log(np.sum(np.exp(hidden), axis=1, keepdims=True))
        return np.mean((np.max(logits, axis=1) - target) ** 2) + 0.1 * np.sum(w**2)

    w = rng.normal(size=12)
    close(gradient(loss, w)[0], differences(loss, w), 1e-7)
    close(grad(loss)(w), differences(loss, w), 1e-7)
