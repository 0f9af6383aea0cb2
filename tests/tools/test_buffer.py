"""Buffer: an array that is written to while derivatives are taken."""

from __future__ import annotations

import copy
import time

import numpy as np
import pytest
from truth import close, differences

from retrograde import (
    Buffer,
    FrozenBufferError,
    MutationError,
    Params,
    back,
    dropgrad,
    gradient,
    hessian,
    ignore,
    istracked,
    jacobian,
    jvp,
    param,
)

X = np.array([0.5, -1.0, 2.0])
W = np.array([1.0, 10.0, 100.0])


# --- shapes and contents -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "shape", "dtype"),
    [
        ((X,), (3,), float),
        ((X, 5), (5,), float),
        ((X, 2, 4), (2, 4), float),
        ((X, (2, 4)), (2, 4), float),
        ((X, [2, 4]), (2, 4), float),
        ((X, ()), (), float),
        ((X, 0), (0,), float),
        ((X, np.int64(2)), (2,), float),
        (([1, 2, 3],), (3,), int),
        (([[1.0, 2.0]],), (1, 2), float),
        (([],), (0,), float),
        ((3.0,), (), float),
        ((X.astype(np.float32), 2), (2,), np.float32),
        ((X * 1j, 2), (2,), complex),
        ((np.array([True]), 2), (2,), bool),
    ],
)
def test_a_buffer_is_like_its_argument_and_starts_at_zeros(args, shape, dtype):
    b = Buffer(*args)
    assert (b.shape, b.dtype, b.ndim, b.size) == (shape, np.dtype(dtype), len(shape), int(np.prod(shape)))
    value = b.copy()
    assert type(value) is np.ndarray
    assert (value == np.zeros(shape, dtype)).all()


def test_a_traced_argument_gives_the_shape_and_dtype():
    def f(x, n):
        assert Buffer(x).shape == (3,)
        assert Buffer(x, n, 2).shape == (2, 2)
        assert Buffer(x, (n,)).shape == (2,)
        assert Buffer([x[0], x[1]]).shape == (2,)
        assert Buffer([x[0], [1, 2][0]]).dtype == float
        assert Buffer(x[0]).shape == ()
        return 0.0

    gradient(f, X, 2)


def test_a_buffer_does_not_hold_its_argument():
    b = Buffer(X)
    b[:] = X
    b[0] = 9.0
    close(X, [0.5, -1.0, 2.0])


def test_a_buffer_without_derivatives_is_just_an_array_to_be_filled():
    b = Buffer(X, 2, 2)
    b[0] = [1.0, 2.0]
    b[1, 1] = b[0, 1] * 3
    b[:, 0] += 5.0
    close(b.copy(), [[6.0, 2.0], [5.0, 6.0]])


def test_reading_gives_back_what_was_written():
    def f(x):
        b = Buffer(x, 2, 3)
        b[0] = x
        b[1, 1:] = x[:2] * 2
        assert istracked(b[0])
        close(np.asarray(dropgrad(b[0])), X)
        close(np.asarray(dropgrad(b[1])), [0.0, 1.0, -2.0])
        assert [float(dropgrad(v)) for v in b[0]] == X.tolist()
        assert len(b) == 2
        return np.sum(b[0] * W) + b[1, 2] + b[1][1]

    close(gradient(f, X)[0], W + [2.0, 2.0, 0.0])


def test_what_was_read_does_not_change_with_a_later_write():
    def f(x):
        b = Buffer(x)
        b[:] = x * 2
        read, element = b[:], b[0]
        squares = b[:] * b[:]
        b[:] = 0.0
        b[0] = 5.0
        return np.sum(read * W) + element + np.sum(squares)

    close(gradient(f, X)[0], 2 * W + [2.0, 0.0, 0.0] + 8 * X)


def test_what_was_written_does_not_change_with_its_source():
    y = np.ones(3)
    b = Buffer(X)
    b[:] = y
    y[0] = 9.0
    close(b.copy(), [1.0, 1.0, 1.0])


# --- every form of assignment ------------------------------------------------------------------------------------

M = np.arange(1.0, 13.0).reshape(3, 4)
_MASK = np.array([[True, False, True, False]] * 3)
KEYS = {
    "integer": 1,
    "negative integer": -1,
    "pair": (1, 2),
    "numpy integer": np.int64(2),
    "slice": slice(1, None),
    "negative step": slice(None, None, -1),
    "long negative step": (slice(None), slice(None, None, -2)),
    "ellipsis": ...,
    "ellipsis and integer": (..., 0),
    "newaxis": (None, 1),
    "empty tuple": (),
    "empty slice": slice(0, 0),
    "mask": _MASK,
    "row mask": np.array([True, False, True]),
    "list mask": [True, False, True],
    "column mask": (slice(None), np.array([True, False, True, False])),
    "integer array": np.array([2, 0]),
    "list": [2, 0],
    "two integer arrays": (np.array([0, 1, 2]), np.array([3, 0, 1])),
    "matrix of integers": np.array([[0, 1], [2, 0]])[:, :1],
    "broadcast integer arrays": (np.array([[0], [2]]), np.array([1, 3])),
    "ix_": np.ix_([0, 2], [1, 3]),
    "array and slice": (np.array([0, 2]), slice(1, 3)),
    "slice and array": (slice(1, 3), np.array([3, 0])),
    "array and integer": (np.array([0, 2]), 1),
    "nothing": np.array([], int),
}


def _assign(b, key, v):
    b[key] = v


def _add(b, key, v):
    b[key] += v


def _subtract(b, key, v):
    b[key] -= v


def _multiply(b, key, v):
    b[key] *= v


def _divide(b, key, v):
    b[key] /= v


def _power(b, key, v):
    b[key] **= 2


@pytest.mark.parametrize("form", [_assign, _add, _subtract, _multiply, _divide, _power])
@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS.keys())
def test_every_form_of_assignment_agrees_with_numpy_and_with_differences(key, form):
    shape = M[key].shape
    weights = np.cos(np.arange(12.0)).reshape(3, 4)

    def run(flat, start):
        m = flat[:12].reshape(3, 4)
        b = start(m)
        b[...] = m * 1.5
        value = np.sum(m) * 0.1 + m[0, 0] * np.ones(shape) if shape else m[1, 1] * m[0, 2]
        form(b, key, value)
        # The cells are used twice: read now, and in the result.
        return b, np.sum(b[1] * m[2])

    def traced(flat):
        b, read = run(flat, Buffer)
        return np.sum(b.copy() ** 2 * weights) + read

    def plain(flat):
        b, read = run(flat, np.zeros_like)
        return np.sum(b**2 * weights) + read

    x = M.ravel() / 4
    assert traced(x) == pytest.approx(plain(x), rel=1e-12)
    close(gradient(traced, x)[0], differences(plain, x), 1e-7, 1e-8)
    v = np.sin(np.arange(12.0))
    close(jvp(traced, (x,), (v,))[1], differences(plain, x) @ v, 1e-7, 1e-8)


@pytest.mark.parametrize(
    ("key", "wanted"),
    [
        (np.array([0, 0]), [0.0, 1.0]),
        (np.array([0, -3]), [0.0, 1.0]),
        ([1, 1], [0.0, 10.0]),
    ],
)
def test_of_several_writes_to_one_cell_the_last_one_counts(key, wanted):
    def f(x):
        b = Buffer(x, 3)
        b[key] = x
        return np.sum(b.copy() * W)

    x = np.array([3.0, 4.0])
    close(gradient(f, x)[0], wanted)
    close(jvp(f, (x,), (np.array([1.0, 0.0]),))[1], wanted[0])


def test_an_augmented_write_to_repeated_cells_adds_once_as_in_numpy():
    def run(x, start):
        b = start(x)
        b[...] = x
        b[np.array([0, 0, 1])] += x * 2
        return b

    plain = lambda x: np.sum(run(x, np.zeros_like) * W)
    close(gradient(lambda x: np.sum(run(x, Buffer).copy() * W), X)[0], differences(plain, X), 1e-9)


def test_a_constant_overwrites_a_derivative():
    def f(x):
        b = Buffer(x)
        b[:] = x
        b[1] = 7.0
        b[2:] = [0.5]
        return np.sum(b.copy() * W)

    close(gradient(f, X)[0], [1.0, 0.0, 0.0])
    close(jvp(f, (X,), (np.ones(3),))[1], 1.0)


@pytest.mark.parametrize(
    ("shape", "key"),
    [((), slice(None)), ((1,), slice(None)), ((3,), ...), ((1, 3), slice(None)), ((1, 1, 3), ...)],
)
def test_a_right_hand_side_is_broadcast_as_numpy_does(shape, key):
    def f(x):
        b = Buffer(X)
        b[key] = np.reshape(x, shape) if shape else x[0]
        return np.sum(b.copy() * W)

    x = np.array([2.0, 3.0, 4.0])[: max(1, int(np.prod(shape)))]
    close(gradient(f, x)[0], W if x.size == 3 else [np.sum(W)])


def test_a_right_hand_side_may_be_a_nested_list_with_traced_values():
    def f(x):
        b = Buffer(x, 2, 2)
        b[:] = [[x[0], 2.0], [x[1] * x[2], x[0]]]
        b[1] = (x[2], 1)
        return np.sum(b.copy() * np.array([[1.0, 10.0], [100.0, 1000.0]]))

    close(gradient(f, X)[0], [1.0, 0.0, 100.0])


def test_a_buffer_may_be_written_into_a_buffer():
    def f(x):
        a, b = Buffer(x), Buffer(x, 2, 3)
        a[:] = x * 2
        b[0] = a
        b[1] = a
        a[0] = 0.0
        return np.sum(b.copy() * W)

    close(gradient(f, X)[0], 4 * W)


def test_a_write_that_numpy_refuses_is_refused_and_changes_nothing():
    def f(x):
        b = Buffer(x)
        b[:] = x
        with pytest.raises(ValueError, match="broadcast"):
            b[:] = np.concatenate([x, x])
        with pytest.raises(IndexError):
            b[7] = x[0]
        with pytest.raises(IndexError):
            b[0, 0] = x[0]
        return np.sum(b.copy() * W)

    close(gradient(f, X)[0], W)


def test_a_zero_dimensional_buffer_is_one_cell():
    def f(x):
        b = Buffer(x[0], ())
        b[()] = x[0] * x[1]
        b[...] += x[2]
        return b.copy() * 2.0

    close(gradient(f, X)[0], [2 * X[1], 2 * X[0], 2.0])
    with pytest.raises(TypeError, match="0-d"):
        len(Buffer(1.0))


# --- dtypes ------------------------------------------------------------------------------------------------------


def test_a_traced_float_written_into_an_integer_buffer_raises():
    def f(x):
        b = Buffer([1, 2, 3])
        b[0] = x
        return b.copy()[0] * 1.0

    with pytest.raises(MutationError, match="int") as caught:
        gradient(f, 2.5)
    assert isinstance(caught.value, TypeError)
    assert "(test_buffer.py:" in str(caught.value)


def test_a_traced_float_written_into_an_integer_buffer_raises_after_a_traced_integer_too():
    def f(n, x):
        b = Buffer([1, 2, 3])
        b[0] = n
        b[1] = x
        return np.sum(b.copy()) * 1.0

    with pytest.raises(MutationError, match="int"):
        gradient(f, 2, 2.5)


def test_a_traced_complex_written_into_a_real_buffer_raises():
    def first(z):
        b = Buffer(X)
        b[0] = z
        return np.real(b.copy()[0])

    def second(z):
        b = Buffer(X)
        b[0] = np.real(z)
        b[1] = z
        return np.real(np.sum(b.copy()))

    for f in (first, second):
        with pytest.raises(MutationError, match="complex"):
            gradient(f, 1.0 + 2.0j)


def test_integers_written_into_an_integer_buffer_stay_integers():
    def f(n):
        b = Buffer([0, 0])
        b[0] = n
        b[1] = n * 2
        y = b.copy()
        assert y.dtype == np.int64
        return np.sum(y) * 0.5

    assert gradient(f, 3) == (1.5,)


def test_a_float32_buffer_casts_what_is_written_and_its_cotangents():
    def f(x):
        b = Buffer(np.zeros(2, np.float32))
        b[0] = x[0] * x[1]
        b[1] = x[2]
        y = b.copy()
        assert y.dtype == np.float32
        return np.sum(y)

    (x_bar,) = gradient(f, X)
    assert x_bar.dtype == np.float64
    close(x_bar, [X[1], X[0], 1.0])


def test_a_complex_buffer_takes_real_values():
    def f(x):
        b = Buffer(np.zeros(2, complex))
        b[0] = x[0] * 1j
        b[1] = x[1]
        return np.sum(np.abs(b.copy()) ** 2)

    (x_bar,) = gradient(f, X)
    assert x_bar.dtype == np.float64
    close(x_bar, [2 * X[0], 2 * X[1], 0.0])


# --- freezing ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("freeze", [lambda b: b.copy(), copy.copy])
def test_a_copy_freezes_the_buffer(freeze):
    b = Buffer(X)
    b[:] = X
    assert type(freeze(b)) is np.ndarray
    for write in (
        lambda: b.__setitem__(0, 1.0),
        lambda: b.append(1.0),
        lambda: b.extend([1.0]),
        lambda: _add(b, 0, 1.0),
    ):
        with pytest.raises(FrozenBufferError, match="copied") as caught:
            write()
        assert isinstance(caught.value, RuntimeError)
        assert "(test_buffer.py:" in str(caught.value)
    close(b[:], X)
    close(freeze(b), X)


def test_a_copy_takes_no_memory():
    b = Buffer(np.zeros(10))
    b[:] = 1.0
    assert np.shares_memory(b.copy(), b.copy())


def test_a_frozen_buffer_of_traced_values_is_a_traced_array():
    def f(x):
        b = Buffer(x)
        b[:] = x * 2
        y = b.copy()
        assert istracked(y)
        with pytest.raises(FrozenBufferError):
            b[0] = 1.0
        return np.sum(y @ np.outer(W, W)) * y[0] * 1e-4

    plain = lambda x: np.sum((2 * x) @ np.outer(W, W)) * 2 * x[0] * 1e-4
    close(gradient(f, X)[0], differences(plain, X), 1e-8)


def test_a_buffer_without_traced_writes_gives_a_plain_array():
    def f(x):
        b = Buffer(x)
        b[:] = 3.0
        assert not istracked(b.copy())
        return x[0] * b[0]

    close(gradient(f, X)[0], [3.0, 0.0, 0.0])


# --- it is no array ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "use",
    [
        lambda b, x: b + x,
        lambda b, x: x + b,
        lambda b, x: b - 1,
        lambda b, x: 2 * b,
        lambda b, x: b / 2,
        lambda b, x: 1 / b,
        lambda b, x: b**2,
        lambda b, x: 2**b,
        lambda b, x: b // 2,
        lambda b, x: b % 2,
        lambda b, x: divmod(b, 2),
        lambda b, x: b @ x,
        lambda b, x: x @ b,
        lambda b, x: -b,
        lambda b, x: abs(b),
        lambda b, x: b == x,
        lambda b, x: b < x,
        lambda b, x: bool(b),
        lambda b, x: float(b),
        lambda b, x: int(b),
        lambda b, x: np.sum(b),
        lambda b, x: np.sin(b),
        lambda b, x: np.add(b, x),
        lambda b, x: np.add(x, b),
        lambda b, x: np.dot(x, b),
        lambda b, x: np.asarray(b),
        lambda b, x: np.array(b),
        lambda b, x: np.concatenate([b, x]),
        lambda b, x: np.linalg.norm(b),
        lambda b, x: np.stack([x, b]),
        lambda b, x: np.array([b, b]),
        lambda b, x: b & 1,
        lambda b, x: round(b),
        lambda b, x: hash(b),
    ],
)
def test_arithmetic_and_linear_algebra_on_a_buffer_is_a_type_error(use):
    def f(x):
        b = Buffer(x)
        b[:] = x
        use(b, x)
        return np.sum(x)

    with pytest.raises(TypeError) as caught:
        gradient(f, X)
    if "unhashable" not in str(caught.value) and "__round__" not in str(caught.value):
        assert "Buffer" in str(caught.value)
    plain = Buffer(X)
    with pytest.raises(TypeError):
        use(plain, X)


def test_the_error_names_the_ways_out():
    with pytest.raises(TypeError) as caught:
        Buffer(X) + 1
    assert "copy()" in str(caught.value)
    assert "(test_buffer.py:" in str(caught.value)


def test_augmented_assignment_of_the_buffer_itself_is_refused():
    b = Buffer(X)
    with pytest.raises(TypeError, match="Buffer"):
        b += 1
    with pytest.raises(TypeError, match="Buffer"):
        b @= X


def test_a_buffer_is_no_loss():
    with pytest.raises(TypeError):
        gradient(lambda x: Buffer(x), X)


def test_a_buffer_shows_its_contents_and_whether_it_is_frozen():
    b = Buffer([1.0, 2.0])
    b[:] = [3.0, 4.0]
    assert repr(b) == "Buffer(array([3., 4.]))"
    b.copy()
    assert "frozen" in repr(b)
    assert "3." in repr(b)


# --- growing -----------------------------------------------------------------------------------------------------


def test_append_and_extend_grow_a_vector():
    def f(x):
        b = Buffer(x, 0)
        for v in x:
            b.append(v * v)
        b.append(3.0)
        b.extend(x[i] * b[i] for i in range(3))
        b.extend([1, 2])
        assert b.shape == (9,)
        return np.sum(b.copy() * np.arange(1.0, 10.0))

    plain = lambda x: np.sum(np.concatenate([x**2, [3.0], x**3, [1, 2]]) * np.arange(1.0, 10.0))
    assert f(X) == pytest.approx(plain(X))
    close(gradient(f, X)[0], differences(plain, X), 1e-8)
    close(jvp(f, (X,), (W,))[1], differences(plain, X) @ W, 1e-8)


def test_rows_may_be_appended_to_an_empty_buffer():
    def f(x):
        b = Buffer([])
        b.append(x)
        b.append(x * x)
        b.extend([[x[0], 1.0, x[1]], x])
        y = b.copy()
        assert y.shape == (4, 3)
        return np.sum(y * np.arange(12.0).reshape(4, 3))

    plain = lambda x: np.sum(np.stack([x, x * x, np.array([x[0], 1.0, x[1]]), x]) * np.arange(12.0).reshape(4, 3))
    close(gradient(f, X)[0], differences(plain, X), 1e-8)


def test_a_vector_with_contents_may_be_appended_to():
    def f(x):
        b = Buffer(x)
        b[:] = x
        b.append(x[0] * x[1])
        b[0] = 0.0
        b[-1] *= 2.0
        return np.sum(b.copy() * np.array([1.0, 10.0, 100.0, 1000.0]))

    close(gradient(f, X)[0], [2000 * X[1], 10 + 2000 * X[0], 100.0])


def test_what_was_read_before_growing_is_still_right():
    def f(x):
        b = Buffer(x, 1)
        b[0] = x[0]
        early = b[0] * 2
        for i in range(20):
            b.append(b[i] * 1.0 + x[1])
        return early + b[20]

    close(gradient(f, X)[0], [3.0, 20.0, 0.0])


@pytest.mark.parametrize("value", [[1.0, 2.0], np.ones((1, 1)), np.ones(0)])
def test_a_value_of_another_shape_cannot_be_appended(value):
    b = Buffer(X)
    with pytest.raises(ValueError, match="shape"):
        b.append(value)
    close(b.copy(), np.zeros(3))
    rows = Buffer(X, 0)
    rows.append([1.0, 2.0])
    with pytest.raises(ValueError, match="shape"):
        rows.append([1.0, 2.0, 3.0])


def test_a_zero_dimensional_buffer_cannot_grow():
    with pytest.raises((ValueError, TypeError)):
        Buffer(1.0, ()).append(1.0)


def test_extending_a_buffer_by_itself_ends():
    b = Buffer([1.0, 2.0])
    b[:] = [1.0, 2.0]
    b.extend(b[:])
    close(b.copy(), [1.0, 2.0, 1.0, 2.0])


# --- modes -------------------------------------------------------------------------------------------------------


def cubes(x):
    b = Buffer(x, 3)
    b[0] = x[0]
    for i in range(1, 3):
        b[i] = b[i - 1] * x[0] + x[i]
    return b.copy()


def test_jacobians_and_hessians_go_through_a_buffer():
    plain = lambda x: np.array([x[0], x[0] ** 2 + x[1], x[0] ** 3 + x[1] * x[0] + x[2]])
    close(jacobian(cubes, X), differences(plain, X), 1e-8)
    f = lambda x: np.sum(cubes(x) ** 2)
    slope = lambda x: 2 * differences(plain, x).T @ plain(x)
    close(hessian(f, X), differences(slope, X, 1e-2), 1e-6, 1e-6)
    close(jacobian(lambda x: gradient(f, x)[0], X), differences(slope, X, 1e-2), 1e-6, 1e-6)


def test_a_buffer_of_an_outer_level_may_be_written_by_an_inner_one():
    def f(x):
        b = Buffer(x, 2)

        def g(y):
            b[0] = x[0] * y
            b[1] = y * y * x[1]
            return b[0] * b[1]

        # x0 x1 y³, whose derivative at y = 2 is 12 x0 x1.
        return gradient(g, 2.0)[0]

    close(gradient(f, X)[0], [12 * X[1], 12 * X[0], 0.0])


def test_a_buffer_made_outside_may_be_written_to_inside_a_transform():
    b = Buffer(X)

    def f(x):
        b[0] = x * x
        return b[0] * 3.0

    assert gradient(f, 2.0) == (12.0,)


def test_a_buffer_in_a_model_of_parameters():
    w = param(X)

    def f():
        b = Buffer(w, 4)
        b[0] = 1.0
        for i in range(3):
            b[i + 1] = b[i] * w[i]
        return b.copy()

    want = [X[1] * X[2], X[0] * X[2], X[0] * X[1]]
    close(gradient(lambda: f()[3], Params([w]))[w], want)
    back(f()[3])
    close(w.grad, want)


def test_writes_inside_ignore_are_constants():
    def f(x):
        b = Buffer(x)
        b[:] = x
        with ignore():
            b[0] = x[0] * 100
            b[1] = 7.0
        return np.sum(b.copy() * W)

    close(gradient(f, X)[0], [0.0, 0.0, 100.0])


def test_an_index_may_be_traced_if_it_is_an_integer():
    def f(x, n):
        b = Buffer(x)
        b[n] = x[n] * 3
        b[:n] = x[:n]
        assert not istracked(b[n + 0] > 1)
        return np.sum(b.copy())

    close(gradient(f, X, 2)[0], [1.0, 1.0, 3.0])
    with pytest.raises(IndexError):
        gradient(lambda x: Buffer(X)[x], 1.0)


def test_a_key_that_changes_after_the_write_does_not_matter():
    def f(x):
        b = Buffer(x)
        key = np.array([0, 1])
        b[key] = x[:2] * 2
        key[:] = 2
        keys = [0]
        b[keys] = x[2]
        keys[0] = 1
        return np.sum(b.copy() * W)

    close(gradient(f, X)[0], [0.0, 20.0, 1.0])


# --- cost --------------------------------------------------------------------------------------------------------


def _fill(n):
    def f(x):
        b = Buffer(x, n)
        b[0] = x[0]
        for i in range(1, n):
            b[i] = b[i - 1] * 0.5 + x[i]
        return np.sum(b.copy())

    x = np.linspace(0.0, 1.0, n)
    start = time.process_time()
    gradient(f, x)
    return time.process_time() - start


def test_a_loop_of_writes_and_reads_costs_time_in_proportion_to_its_length():
    _fill(500)
    short = min(_fill(2_000) for _ in range(3))
    long = min(_fill(16_000) for _ in range(2))
    # Eight times the length; a cost of n² would show as a factor of 64.
    assert long < 8 * 2.5 * short + 0.05


def _grow(n):
    def f(x):
        b = Buffer(x, 0)
        for i in range(n):
            b.append(x[i % 3])
        return np.sum(b.copy())

    start = time.process_time()
    gradient(f, X)
    return time.process_time() - start


def test_appending_costs_time_in_proportion_to_its_length():
    _grow(500)
    short = min(_grow(2_000) for _ in range(3))
    long = min(_grow(16_000) for _ in range(2))
    assert long < 8 * 2.5 * short + 0.05
