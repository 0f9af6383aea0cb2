"""Python's operators and builtins on traced values, in both modes, against closed forms and differences."""

from __future__ import annotations

import functools
import itertools
import math
import operator

import mpmath
import numpy as np
import pytest
from truth import close, differences

from retrograde import ConversionError, gradient, hessian, istracked, jvp, param

X = np.array([0.7, -1.3, 2.1])
Y = np.array([1.9, 0.4, -0.6])


def mp_slopes(f, *point):
    """The partial derivatives of f at the point, with 50 digits."""
    with mpmath.workdps(50):
        numbers = [mpmath.mpf(p) for p in point]
        orders = [tuple(int(i == k) for i in range(len(point))) for k in range(len(point))]
        return [float(mpmath.diff(f, tuple(numbers), order)) for order in orders]


ARITHMETIC = [
    (operator.add, 0.7, 1.9),
    (operator.sub, 0.7, 1.9),
    (operator.mul, 0.7, 1.9),
    (operator.truediv, 0.7, 1.9),
    (operator.pow, 0.7, 1.9),
]


@pytest.mark.parametrize(("op", "a", "b"), ARITHMETIC)
@pytest.mark.parametrize("kind", [float, np.float64, np.array])
def test_arithmetic_has_the_derivatives_of_mathematics(op, a, b, kind):
    da, db = mp_slopes(op, a, b)
    got = gradient(op, kind(a), kind(b))
    close(got[0], da, 1e-13)
    close(got[1], db, 1e-13)
    # A constant on either side.
    close(gradient(lambda a: op(a, b), kind(a))[0], da, 1e-13)
    close(gradient(lambda b: op(a, b), kind(b))[0], db, 1e-13)
    close(jvp(op, (kind(a), kind(b)), (1.0, 10.0))[1], da + 10 * db, 1e-13)
    close(jvp(lambda a: op(a, b), (kind(a),), (1.0,))[1], da, 1e-13)
    close(jvp(lambda b: op(a, b), (kind(b),), (1.0,))[1], db, 1e-13)


CONSTANTS = {
    "float": 1.5,
    "int": 2,
    "bool": True,
    "np.float64": np.float64(1.5),
    "np.float32": np.float32(1.5),
    "np.int64": np.int64(2),
    "complex": 1.5 + 0.5j,
    "0-d array": np.array(1.5),
    "array": np.array([1.5, 2.5, 0.5]),
    "column": np.array([[1.5], [2.5]]),
    "int array": np.array([1, 2, 3]),
    "list": [1.5, 2.5, 0.5],
    "tuple": (1.5, 2.5, 0.5),
    "empty-broadcast": np.ones((1, 3)),
}


@pytest.mark.parametrize("constant", CONSTANTS.values(), ids=CONSTANTS.keys())
@pytest.mark.parametrize("op", [operator.add, operator.sub, operator.mul, operator.truediv, operator.pow])
@pytest.mark.parametrize("x", [np.array([0.7, 1.3, 2.1]), 0.7], ids=["array", "number"])
def test_every_kind_of_operand_may_stand_on_either_side(op, constant, x):
    if isinstance(constant, list | tuple) and not np.ndim(x):
        pytest.skip("Python's numbers and lists do not mix either")
    weigh = lambda y: np.sum(np.real(y * np.cos(np.arange(np.size(y))).reshape(np.shape(y))))
    for f in (lambda x: weigh(op(x, constant)), lambda x: weigh(op(constant, x))):
        want = differences(f, x)
        close(gradient(f, x)[0], want, 1e-7)
        close(jvp(f, (x,), (np.ones(np.shape(x)),))[1], np.sum(want), 1e-7)


@pytest.mark.parametrize("op", [operator.add, operator.sub, operator.mul, operator.truediv])
@pytest.mark.parametrize(
    ("a", "b"),
    [((3,), (2, 3)), ((2, 1), (3,)), ((), (2, 3)), ((1, 1), (2, 3)), ((2, 3), ()), ((0,), (1,)), ((4, 1, 3), (2, 1))],
)
def test_broadcast_operands_get_cotangents_of_their_own_shapes(op, a, b):
    rng = np.random.default_rng(0)
    a, b = rng.uniform(1, 2, a), rng.uniform(1, 2, b)
    weights = rng.normal(size=op(a, b).shape)
    a_bar, b_bar = gradient(lambda a, b: np.sum(weights * op(a, b)), a, b)
    assert a_bar.shape == a.shape
    assert b_bar.shape == b.shape
    if a.size and b.size:
        close(a_bar, differences(lambda a: np.sum(weights * op(a, b)), a), 1e-8)
        close(b_bar, differences(lambda b: np.sum(weights * op(a, b)), b), 1e-8)


@pytest.mark.parametrize("x", [2.5, np.float64(2.5), np.array([2.5, -1.5])])
def test_signs_and_absolute_values(x):
    ones = np.ones_like(x)
    close(gradient(lambda x: np.sum(-x), x)[0], -ones)
    close(gradient(lambda x: np.sum(+x), x)[0], ones)
    close(gradient(lambda x: np.sum(abs(x)), x)[0], np.sign(x))
    assert gradient(abs, 0.0) == (0.0,)


# --- remainders and rounding -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("a", "b"), [(7.3, 2.0), (-7.3, 2.0), (7.3, -2.0), (-7.3, -2.0), (0.3, 5.0)])
def test_remainders_follow_their_definition(a, b):
    # a % b = a − b ⌊a / b⌋, whose derivatives are 1 and −⌊a / b⌋.
    floor = math.floor(a / b)
    assert gradient(lambda a, b: a % b, a, b) == (1.0, -floor)
    close(gradient(lambda a: a % b, a)[0], 1.0)
    close(gradient(lambda b: a % b, b)[0], -float(floor))
    assert gradient(lambda a, b: a // b, a, b) == (0.0, 0.0)
    assert gradient(lambda a, b: divmod(a, b)[1] + 10 * divmod(a, b)[0], a, b) == (1.0, -floor)
    close(gradient(lambda a: divmod(a, b)[1] + divmod(-a, b)[0], a)[0], 1.0)
    close(gradient(lambda b: divmod(a, b)[1], b)[0], -float(floor))
    x = np.array([a, a + 1])
    close(gradient(lambda x: np.sum(x % b), x)[0], [1.0, 1.0])
    close(gradient(lambda b: np.sum(x % b), b)[0], -np.sum(np.floor(x / b)))
    close(jvp(lambda a, b: a % b, (a, b), (1.0, 1.0))[1], 1.0 - floor)


def test_remainders_have_pythons_values():
    def f(a, b):
        assert (a % b, a // b, divmod(a, b)) == (-7.5 % 2.0, -7.5 // 2.0, divmod(-7.5, 2.0))
        return a * b

    gradient(f, -7.5, 2.0)


@pytest.mark.parametrize("flat", [round, math.floor, math.ceil, math.trunc, lambda x: round(x, 1), lambda x: x // 1])
def test_rounding_is_a_path_of_derivative_zero(flat):
    def f(x):
        y = flat(x)
        assert y == flat(2.45)
        return y * 3.0

    assert gradient(f, 2.45) == (0.0,)
    assert gradient(lambda x: flat(x) * x, 2.45) == (float(flat(2.45)),)
    assert jvp(lambda x: flat(x) * x, (2.45,), (1.0,))[1] == float(flat(2.45))


def test_rounded_values_serve_as_indices():
    assert gradient(lambda x: X[round(x)] * x, 1.2) == (X[1],)
    assert gradient(lambda x: X[math.floor(x)] * x, 2.9) == (X[2],)
    close(gradient(lambda x: x[int(np.argmax(x))] ** 2, X)[0], [0.0, 0.0, 4.2])


# --- powers ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("a", "n", "slope"),
    [
        (0.0, 0, 0.0),
        (0.0, 1, 1.0),
        (0.0, 2, 0.0),
        (0.0, 3, 0.0),
        (0.0, 1.0, 1.0),
        (0.0, 2.0, 0.0),
        (0.0, 2.5, 0.0),
        (-2.0, 2, -4.0),
        (-2.0, 3, 12.0),
        (-2.0, 3.0, 12.0),
        (-2.0, -1, -0.25),
        (-2.0, 0, 0.0),
        (2.0, -2, -0.25),
        (2.0, 0.5, 0.5 / math.sqrt(2.0)),
        (2.0, True, 1.0),
    ],
)
@pytest.mark.parametrize("kind", [float, np.array])
def test_powers_of_awkward_numbers_have_the_right_derivative(a, n, slope, kind):
    close(gradient(lambda x: x**n, kind(a))[0], slope)
    close(gradient(lambda x: pow(x, n), kind(a))[0], slope)
    close(gradient(lambda x: np.power(x, n), kind(a))[0], slope)
    close(jvp(lambda x: x**n, (kind(a),), (1.0,))[1], slope)


def test_the_exponent_has_a_derivative_too():
    close(gradient(lambda b: 2.0**b, 3.0)[0], 8 * math.log(2))
    close(gradient(lambda b: 2**b, 3.0)[0], 8 * math.log(2))
    close(gradient(lambda b: 0.0**b, 2.0)[0], 0.0)
    close(
        gradient(lambda b: np.array([1.0, 2.0]) @ (np.array([2.0, 3.0]) ** b), 2.0)[0], 4 * np.log(2) + 18 * np.log(3)
    )
    close(gradient(lambda a: a**a, 2.0)[0], 4 * (math.log(2) + 1))
    assert gradient(lambda a, n: a**n, 2.0, 3) == (12.0, pytest.approx(8 * math.log(2)))


def test_repeated_multiplication_is_the_power():
    def power(x, n):
        r = 1.0
        for _ in range(n):
            r *= x
        return r

    assert gradient(power, 3.0, 4) == (108.0, None)


# --- comparisons and truth ---------------------------------------------------------------------------------------


def test_comparisons_give_plain_truth_values():
    def f(x, v):
        reflected = operator.lt(1, x), operator.eq(2.0, x), operator.le(x, x + 1)
        for truth in (x < 3, x <= 2, x > 1, x >= 2, x == 2.0, x != 1, bool(x), not x < 0, *reflected):
            assert type(truth) is bool or type(truth) is np.bool_
            assert truth
        mask = v > 0
        assert type(mask) is np.ndarray
        assert mask.tolist() == [True, False, True]
        assert (v == X).all()
        assert operator.eq(X, v).all()
        assert operator.lt(X - 1, v).all()
        assert (v > X - 1).all()
        assert (v <= v).all()
        return x * np.sum(v[mask])

    _, v_bar = gradient(f, 2.0, X)
    close(v_bar, [2.0, 0.0, 2.0])
    jvp(f, (2.0, X), (1.0, X))


def test_comparisons_with_other_kinds_are_pythons():
    def f(x):
        assert (x == None) is False  # noqa: E711
        assert x is not None
        assert (x != "text") is True
        assert (x == "text") is False
        assert x in [1.0, 2.0]
        assert x not in (1.0, 3.0)
        with pytest.raises(TypeError):
            operator.lt(x, "text")
        return x * 1.0

    gradient(f, 2.0)


def test_the_truth_of_an_array_is_as_ambiguous_as_numpys():
    def f(x):
        with pytest.raises(ValueError, match="ambiguous"):
            bool(x)
        with pytest.raises(ValueError, match="ambiguous"):
            assert x > 0
        assert bool(x[:1] > 0)
        return np.sum(x)

    gradient(f, X)


def test_bit_operations_on_integers_are_a_path_of_derivative_zero():
    def f(n, flags):
        assert (n & 6, n | 8, n ^ 1, n << 1, n >> 1, ~n) == (4, 13, 4, 10, 2, -6)
        assert (6 & n, 8 | n, 1 ^ n, 1 << n, 64 >> n) == (4, 13, 4, 32, 2)
        assert np.left_shift(n, 2) == 20
        mask = (flags > 0) & (flags < 2) | ~(flags > -5)
        assert type(mask) is np.ndarray
        return np.sum(flags[mask]) * (n & 6) * flags[n >> 1] + (n ^ n)

    n_bar, flags_bar = gradient(f, 5, X)
    assert n_bar == 0.0
    close(flags_bar, [4 * X[2], 0.0, 4 * X[0]])
    assert jvp(f, (5, X), (1.0, 0 * X))[1] == 0.0
    for f in (
        lambda n: ~n,
        lambda n: n & 1,
        lambda n: 2 | n,
        lambda n: n << n,
        np.invert,
        lambda n: np.bitwise_xor(3, n),
    ):
        assert gradient(f, 5) == (0.0,)
        assert hessian(f, 5) == 0.0
        close(gradient(lambda n, f=f: np.sum(f(n)), np.array([5, 2]))[0], np.zeros(2))
    with pytest.raises(TypeError):
        gradient(lambda x: x & 1, 2.0)


def test_augmented_bit_operations_change_the_array_itself():
    def f(x):
        mask = np.zeros(3, bool)
        alias = mask
        mask |= np.array([True, True, False])
        mask &= x > -2
        mask ^= np.array([False, False, True])
        counts = np.array([1, 2, 3])
        same = counts
        counts <<= 1
        counts >>= 1
        counts |= 4
        assert same.tolist() == [5, 6, 7]
        return np.sum(x[alias]) * same[0]

    close(gradient(f, X)[0], [5.0, 5.0, 5.0])


# --- products of matrices ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("a", "b"),
    [((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (3, 4)), ((5, 2, 3), (3, 4)), ((2, 3), (5, 3, 1))],
)
def test_matrix_products_of_every_shape(a, b):
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=a), rng.normal(size=b)
    weights = rng.normal(size=(a @ b).shape)
    a_bar, b_bar = gradient(lambda a, b: np.sum(weights * (a @ b)), a, b)
    close(a_bar, differences(lambda a: np.sum(weights * (a @ b)), a), 1e-8)
    close(b_bar, differences(lambda b: np.sum(weights * (a @ b)), b), 1e-8)
    close(gradient(lambda a: np.sum(weights * (a @ b)), a)[0], a_bar)
    close(gradient(lambda b: np.sum(weights * (a @ b)), b)[0], b_bar)


def test_a_list_may_be_an_operand_of_a_matrix_product():
    close(gradient(lambda x: [1.0, 2.0, 3.0] @ x, X)[0], [1.0, 2.0, 3.0])
    close(gradient(lambda x: x @ [1.0, 2.0, 3.0], X)[0], [1.0, 2.0, 3.0])


def test_numbers_have_no_matrix_product():
    for f in (lambda x: x @ 2.0, lambda x: 2.0 @ x, lambda x: x @ "text"):
        with pytest.raises((TypeError, ValueError)):
            gradient(f, 2.0)


@pytest.mark.parametrize("other", ["text", None, {}, object()])
@pytest.mark.parametrize("op", [operator.add, operator.mul, operator.truediv, operator.pow, operator.matmul])
def test_an_operand_that_makes_no_sense_is_pythons_type_error(op, other):
    for f in (lambda x: op(x, other), lambda x: op(other, x)):
        with pytest.raises(TypeError):
            gradient(f, 2.0)


def test_an_object_that_knows_what_to_do_is_asked():
    class Scaled:
        def __init__(self, scale):
            self.scale = scale

        def __radd__(self, x):
            return x * self.scale

        def __rmatmul__(self, x):
            return x * 100.0

    assert gradient(lambda x: x + Scaled(3.0), 2.0) == (3.0,)
    assert gradient(lambda x: x @ Scaled(3.0), 2.0) == (100.0,)


# --- augmented assignment ----------------------------------------------------------------------------------------


def test_augmented_assignment_of_numbers_and_arrays_has_the_value_of_the_plain_statement():
    def f(x, v):
        total = 0.0
        for i in range(3):
            total += v[i] * x
            total *= 2.0
            total -= x
            total /= 4.0
        w = v * 1.0
        w += x
        w **= 2
        w -= v
        return total + np.sum(w)

    def plain(z):
        return f(z[0], z[1:].copy())

    x_bar, v_bar = gradient(f, 1.5, X)
    want = differences(plain, np.array([1.5, *X]))
    close(x_bar, want[0], 1e-8)
    close(v_bar, want[1:], 1e-8)
    close(X, [0.7, -1.3, 2.1])


# --- iteration and builtins --------------------------------------------------------------------------------------


def test_iteration_unpacking_and_length():
    def f(x, m):
        a, b, c = x
        first, *rest = x
        assert len(x) == 3
        assert len(m) == 2
        assert len(rest) == 2
        total = a * b * c + first * rest[1]
        for row, weight in zip(m, (1.0, 10.0), strict=True):
            for v in row:
                total = total + weight * v * v
        for i, v in enumerate(reversed(x)):
            total = total + i * v
        return total + sum(list(x)) + sum(v for v in x) + sum(map(lambda v: v * v, x))  # noqa: C417

    m = np.array([[1.0, 2.0], [3.0, 4.0]])
    x_bar, m_bar = gradient(f, X, m)
    a, b, c = X
    close(x_bar, [b * c + c + 4 + 2 * a, a * c + 3 + 2 * b, a * b + a + 2 + 2 * c])
    close(m_bar, [[2.0, 4.0], [60.0, 80.0]])


def test_what_cannot_be_iterated_over_says_so():
    for x in (2.0, np.array(2.0)):
        with pytest.raises(TypeError):
            gradient(lambda x: sum(v for v in x), x)
        with pytest.raises(TypeError):
            gradient(lambda x: len(x), x)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: sum(x),
        lambda x: sum(x, start=x[0]),
        lambda x: max(x) * min(x),
        lambda x: max(x[0], 0.1) + min(1.0, x[1]),
        lambda x: max(x, key=lambda v: -v),
        lambda x: sorted(x)[0] * 10 + sorted(x, reverse=True)[0],
        lambda x: sum(abs(v) for v in x),
        lambda x: functools.reduce(operator.mul, x),
        lambda x: list(itertools.accumulate(x))[-1] ** 2,
        lambda x: sum(itertools.starmap(pow, zip(abs(x), [1, 2, 3], strict=True))),
        lambda x: math.prod(x),
        lambda x: math.fsum(x),
        lambda x: float(sum(v > 0 for v in x)) * x[0],
        lambda x: sum(v for v in x if v > 0) ** 2,
        lambda x: {"a": x[0], "b": x[1]}["a"] * x[2],
        lambda x: [x[0] if all(x > -5) else 0.0, 1.0][0] * 2,
        lambda x: x[0] if any(x < -5) else x[1] * 3,
    ],
)
def test_builtins_and_standard_functions_work_on_traced_values(f):
    close(gradient(f, X)[0], differences(f, X), 1e-8, 1e-10)
    v = np.array([1.0, 0.5, -2.0])
    close(jvp(f, (X,), (v,))[1], differences(f, X) @ v, 1e-8, 1e-10)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.sum(list(x)),
        lambda x: np.sum([x[0], x[1] * 2, 3.0]),
        lambda x: np.max((x[0], x[1], 0.5)),
        lambda x: np.dot([x[0], 1.0], [x[1], x[2]]),
        lambda x: np.mean([v**2 for v in x]),
        lambda x: np.prod(tuple(x)),
        lambda x: np.sum(np.concatenate([[x[0]], x, [1.0]]) * np.arange(5.0)),
        lambda x: np.sum(np.concatenate([[x[0]], [x[1]]]) * np.arange(2.0)),
        lambda x: np.sum(np.stack([[x[0], 1.0], [2.0, x[1]]]) ** 2),
        lambda x: np.linalg.norm([x[0], x[1], 1.0]),
        lambda x: np.sum(np.cumsum([x[0], x[2]])),
        lambda x: np.sum(np.outer([x[0], 1.0], x)),
    ],
)
def test_numpy_functions_take_lists_of_traced_values(f):
    close(gradient(f, X)[0], differences(f, X), 1e-8, 1e-10)
    v = np.array([1.0, 0.5, -2.0])
    close(jvp(f, (X,), (v,))[1], differences(f, X) @ v, 1e-8, 1e-10)


def test_a_ufunc_of_a_list_says_to_make_an_array_of_it():
    with pytest.raises(ConversionError, match=r"np\.array\(\[\.\.\.\]\)"):
        gradient(lambda x: np.sum(np.sin([x[0], x[2]])), X)


def test_pattern_matching_sees_values():
    def f(x):
        match data := (x, "name"):
            case (v, "name") if v > 1:
                return v * 2
        return data[0]

    assert gradient(f, 2.0) == (2.0,)


def test_a_value_of_two_levels_in_one_expression():
    # d/dx of x d/dy (x y²) at y = 3 is 12 x.
    assert gradient(lambda x: x * gradient(lambda y: x * y * y, 3.0)[0], 5.0) == (60.0,)


def test_operators_on_parameters_outside_of_transforms():
    w = param(2.0)
    for y in (w + 1, 1 + w, w - 1, 1 - w, w * 2, 2 * w, w / 2, 2 / w, w**2, 2**w, -w, +w, abs(w), w % 2, w // 2):
        assert istracked(y)
    assert not istracked(w > 1)


def test_float32_and_python_numbers_stay_float32():
    def f(x):
        y = (x * 2 + 1.0) / 3 - 4
        assert y.dtype == np.float32
        z = 2.0 ** (y**2)
        assert z.dtype == np.float32
        return np.sum(z)

    (x_bar,) = gradient(f, np.array([1.0, 2.0], np.float32))
    assert x_bar.dtype == np.float32
    (x_bar,) = gradient(lambda x: x * 2.0 * x, np.float32(3))
    assert type(x_bar) is np.float32


def test_integers_and_floats_mix_as_in_numpy():
    def f(n, x):
        assert (n * n).__class__ is not float
        assert n * n == 9
        y = n * x + n / 2 + n**2
        return y

    assert gradient(f, 3, 2.0) == (2.0 + 0.5 + 6.0, 3.0)


def test_overflow_and_division_by_zero_are_as_in_plain_python():
    with pytest.raises(ZeroDivisionError):
        gradient(lambda x: 1 / x, 0.0)
    with pytest.raises(OverflowError):
        gradient(lambda x: x**1000, 1e300)
