"""In-place updates and views of traced arrays: whatever NumPy does to a plain array, with its derivative."""

from __future__ import annotations

import array
import contextlib
import copy
from typing import Any

import numpy as np
import pytest
from compared import WM, M, W, X, agrees, each, lying
from truth import agree, close, differences

from retrograde import (
    DroppedGradientWarning,
    EndedError,
    MutationError,
    RetrogradeError,
    back,
    checkpointed,
    data,
    diaghessian,
    forwarddiff,
    grad,
    gradient,
    hessian,
    hvp,
    ignore,
    jacobian,
    jvp,
    param,
    pullback,
    pushforward,
    value_and_grad,
    withgradient,
    withjacobian,
)
from retrograde.trace import memory

# --- keys --------------------------------------------------------------------------------------------------------

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
    "newaxis behind": (slice(None, 2), None),
    "empty tuple": (),
    "empty slice": slice(0, 0),
    "mask": M > 0,
    "empty mask": M > 9,
    "row mask": np.array([True, False, True]),
    "list mask": [True, False, True],
    "column mask": (slice(None), np.array([True, False, True, False])),
    "true": True,
    "integer array": np.array([2, 0]),
    "repeats": np.array([2, 0, 2]),
    "repeats by a negative integer": [0, -3],
    "matrix of integers": np.array([[0, 1], [1, -1]]),
    "two integer arrays": (np.array([0, 1, 2]), np.array([3, 0, 1])),
    "two integer arrays with repeats": ([0, 1, 0], [3, 0, 3]),
    "broadcast integer arrays": (np.array([[0], [2]]), np.array([1, 3])),
    "ix_": np.ix_([0, 2], [1, 3]),
    "array and slice": (np.array([0, 2]), slice(1, 3)),
    "slice and array": (slice(1, 3), np.array([3, 0])),
    "array and integer": (np.array([0, 2]), 1),
    "array, new axis and array": (np.array([0, 2]), None, np.array([1, 1])),
    "no integers": np.array([], int),
}

FORMS = {
    "read": lambda x, key, v: 2.0 * x[key],
    "write": lambda x, key, v: x.__setitem__(key, v),
    "write a number": lambda x, key, v: x.__setitem__(key, v.sum() if v.ndim else v),
    "write a constant": lambda x, key, v: x.__setitem__(key, 0.25),
}


def _add(x, key, v):
    x[key] += v


def _subtract(x, key, v):
    x[key] -= v


def _multiply(x, key, v):
    x[key] *= v


def _divide(x, key, v):
    x[key] /= 2.0 + v


def _power(x, key, v):
    x[key] **= 3


FORMS |= {"+=": _add, "-=": _subtract, "*=": _multiply, "/=": _divide, "**=": _power}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS.keys())
def test_every_key_reads_and_writes_as_in_numpy(key, form):
    like = np.sum(M[key] * 0.1)
    spread = 0.3 * np.cos(np.arange(M[key].size)).reshape(M[key].shape)

    def f(x):
        v = spread * x[0, 0] * x[1, 2] + like
        before = np.sum(x * x * WM)
        read = form(x, key, v)
        return before + np.sum(np.sin(x) * WM) + (0.0 if read is None else np.sum(read * spread))

    agrees(f, M)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS.keys())
def test_every_key_reads_and_writes_through_a_transpose_as_in_numpy(key, form):
    spread = 0.3 * np.cos(np.arange(M[key].size)).reshape(M[key].shape)

    def f(x):
        t = x.T
        form(t, key, spread * x[0, 0] * x[1, 2])
        return np.sum(np.sin(x) * WM.T) + np.sum(t * t)

    agrees(f, M.T)


def test_an_element_named_twice_keeps_the_last_value_written():
    def f(x, y):
        x[[0, 0, 1]] = y
        return np.sum(x * W)

    agrees(f, X, W)
    assert gradient(f, X, W)[1].tolist() == [0.0, 1.0, 10.0]


def test_an_augmented_write_adds_once_to_an_element_named_twice():
    def f(x, y):
        x[[0, 0, 1]] += y
        return np.sum(x * W)

    agrees(f, X, W)


def test_a_key_may_be_changed_after_it_was_used():
    def f(x):
        key = np.array([0, 1])
        x[key] *= x[key]
        key[:] = 2
        mask = data(x) > 0
        x[mask] *= x[0]
        mask[:] = True
        return np.sum(x * W)

    agrees(f, X, analytic=False)


def test_a_traced_mask_and_a_traced_integer_are_keys():
    def f(x, n):
        x[x > 0] *= x[1]
        x[n] = x[0] * x[2]
        return np.sum(x * W)

    x = X.copy()
    wanted = differences(lambda x: f(x, 1), x)
    close(gradient(f, x, 1)[0], wanted, 1e-8)


def test_a_value_is_broadcast_and_may_have_more_axes_of_length_one():
    def f(x, y):
        x[:, 1:] = y
        x[0] = y[None, None] * np.ones((1, 1, 1)) if np.ndim(y) == 0 else np.append(0.5 * y, y[0])[None]
        return np.sum(x * x * WM)

    agrees(f, M, X)
    agrees(lambda x, y: f(x, y[0]), M, X)


def test_a_value_may_be_a_nested_list_of_traced_values():
    def f(x):
        x[0] = [x[1, 0], 2.0, x[0, 1] * x[2, 2], x[0, 3]]
        x[1:, :2] = [[x[0, 0], 1.0], (x[2, 3], x[0, 2])]
        return np.sum(x * x * WM)

    agrees(f, M)


@pytest.mark.parametrize("operator", ["+", "-", "*", "/"])
def test_a_list_of_traced_values_is_the_other_operand_of_an_in_place_operator(operator):
    names: dict[str, Any] = {"np": np}
    exec(f"def f(x):\n    x {operator}= [x[0], 2.0, x[1]]\n    return np.sum(x * x)", names)
    agrees(names["f"], X)


def test_a_failed_write_changes_nothing():
    def f(x, y):
        a, b = 1.0 * x, y[1:]
        for key, value in ((7, y[0]), (slice(0, 2), y), ((0, 0), 1.0), ("name", y[0])):
            with contextlib.suppress(IndexError, ValueError, TypeError):
                a[key] = value
                raise AssertionError("NumPy would have refused this")
            with contextlib.suppress(IndexError, ValueError, TypeError):
                b[key] = value
                raise AssertionError("NumPy would have refused this")
        with contextlib.suppress(ValueError):
            a += np.ones((2, 3))
        a[0] *= 2.0
        b[0] *= a[1]
        return np.sum(a * a * W) + np.sum(y * a)

    agrees(f, X, X[::-1].copy())
    close(gradient(lambda c: gradient(lambda u: _failing(u, c), X)[0][1], 3.0)[0], 2.0)


def _failing(u, c):
    with contextlib.suppress(IndexError):
        u[9] = c
    u[0] = c
    return u[0] * u[1] * 2.0


# --- views ---------------------------------------------------------------------------------------------------------

# What gives a view of its argument, or a copy, or one or the other.
SHARING = {
    "x": lambda x: x,
    "x[...]": lambda x: x[...],
    "x[:]": lambda x: x[:],
    "x[()]": lambda x: x[()],
    "x[1:]": lambda x: x[1:],
    "x[::-1]": lambda x: x[::-1],
    "x[:, 1]": lambda x: x[:, 1],
    "x[:, ::-2]": lambda x: x[:, ::-2],
    "x[None]": lambda x: x[None],
    "x[1]": lambda x: x[1],
    "x[1, 2]": lambda x: x[1, 2] * np.ones(1),
    "x[[0, 1]]": lambda x: x[[0, 1]],
    "x[[True, False, True]]": lambda x: x[[True, False, True]],
    "x[True]": lambda x: x[True],
    "x.T": lambda x: x.T,
    "x.mT": lambda x: x.mT,
    "np.transpose": np.transpose,
    "x.transpose(1, 0)": lambda x: x.transpose(1, 0),
    "np.permute_dims": lambda x: np.permute_dims(x, (1, 0)),
    "np.matrix_transpose": np.matrix_transpose,
    "swapaxes": lambda x: x.swapaxes(0, 1),
    "np.swapaxes": lambda x: np.swapaxes(x, 0, 1),
    "moveaxis": lambda x: np.moveaxis(x, 0, 1),
    "rollaxis": lambda x: np.rollaxis(x, 1),
    "reshape(-1)": lambda x: x.reshape(-1),
    "reshape(2, 6)": lambda x: x.reshape(2, 6),
    "np.reshape": lambda x: np.reshape(x, (4, 3)),
    "reshape to the same": lambda x: x.reshape(x.shape),
    "reshape of the transpose": lambda x: x.T.reshape(-1),
    "reshape of columns": lambda x: x[:, 1:3].reshape(-1),
    "reshape in Fortran's order": lambda x: x.reshape(-1, order="F"),
    "np.reshape in Fortran's order": lambda x: np.reshape(x, (2, 6), order="F"),
    "reshape as it lies": lambda x: x.reshape(-1, order="A"),
    "np.reshape(copy=True)": lambda x: np.reshape(x, -1, copy=True),
    "ravel": lambda x: x.ravel(),
    "np.ravel": np.ravel,
    "ravel in Fortran's order": lambda x: x.ravel(order="F"),
    "ravel of the transpose": lambda x: np.ravel(x.T),
    "ravel of the transpose in Fortran's order": lambda x: np.ravel(x.T, order="F"),
    "flatten": lambda x: x.flatten(),
    "flatten in Fortran's order": lambda x: x.flatten("F"),
    "squeeze": lambda x: x[None, :, None].squeeze(),
    "np.squeeze": lambda x: np.squeeze(x),
    "np.expand_dims": lambda x: np.expand_dims(x, 1),
    "np.atleast_1d": np.atleast_1d,
    "np.atleast_2d": np.atleast_2d,
    "np.atleast_3d": np.atleast_3d,
    "np.flip": np.flip,
    "np.flipud": np.flipud,
    "np.fliplr": np.fliplr,
    "np.rot90": np.rot90,
    "np.rot90 twice": lambda x: np.rot90(x, 2),
    "np.split": lambda x: np.split(x, 3)[1],
    "np.hsplit": lambda x: np.hsplit(x, 2)[1],
    "np.vsplit": lambda x: np.vsplit(x, 3)[1],
    "np.array_split": lambda x: np.array_split(x, 2)[0],
    "np.unstack": lambda x: np.unstack(x)[1],
    "iteration": lambda x: list(x)[2],
    "unpacking": lambda x: (lambda first, *rest: rest[0])(*x),
    "np.einsum transposes": lambda x: np.einsum("ij->ji", x),
    "np.einsum takes a diagonal": lambda x: np.einsum("ii->i", x[:3, :3]),
    "np.diagonal": np.diagonal,
    "x.diagonal": lambda x: x.diagonal(1),
    "np.diag": lambda x: np.diag(x),
    "np.broadcast_to": lambda x: np.broadcast_to(x, (2, 3, 4)),
    "np.broadcast_arrays": lambda x: np.broadcast_arrays(x, np.zeros((3, 4)))[0],
    "np.asarray": lambda x: np.asarray(x),
    "np.asanyarray": lambda x: np.asanyarray(x),
    "np.asarray(dtype)": lambda x: np.asarray(x, x.dtype),
    "np.asarray(order)": lambda x: np.asarray(x, order="F"),
    "np.ascontiguousarray": lambda x: np.ascontiguousarray(x),
    "np.asfortranarray": lambda x: np.asfortranarray(x),
    "np.array": lambda x: np.array(x),
    "np.array(copy=None)": lambda x: np.array(x, copy=None),
    "np.array(copy=False)": lambda x: np.array(x, copy=False),
    "np.array(ndmin)": lambda x: np.array(x, ndmin=3, copy=None),
    "np.require": lambda x: np.require(x),
    "astype": lambda x: x.astype(x.dtype),
    "astype(copy=False)": lambda x: x.astype(x.dtype, copy=False),
    "np.astype": lambda x: np.astype(x, x.dtype),
    "np.copy": np.copy,
    "x.copy": lambda x: x.copy(),
    "copy, then ravel": lambda x: _through(x, x.copy(), lambda y: y.ravel()),
    "np.copy, then ravel": lambda x: _through(x, np.copy(x), lambda y: y.ravel()),
    "sum, then ravel in Fortran's order": lambda x: _through(x, x + WM, lambda y: y.ravel(order="F")),
    "copy.copy": copy.copy,
    "copy.deepcopy": copy.deepcopy,
    "+x": lambda x: +x,
    "np.positive": np.positive,
    "x + 0": lambda x: x + 0,
    "x * 1": lambda x: x * 1,
    "x ** 1": lambda x: x**1,
    "np.where": lambda x: np.where(True, x, 0.0),
    "np.take": lambda x: np.take(x, [0, 1], axis=0),
    "np.take of one": lambda x: np.take(x, 1, axis=0),
    "np.compress": lambda x: np.compress([True, True, True], x, axis=0),
    "np.concatenate": lambda x: np.concatenate([x]),
    "np.stack": lambda x: np.stack([x]),
    "np.block": lambda x: np.block([x]),
    "np.tile": lambda x: np.tile(x, 1),
    "np.repeat": lambda x: np.repeat(x, 1, axis=0),
    "np.roll": lambda x: np.roll(x, 0),
    "np.tril": lambda x: np.tril(x, 9),
    "np.pad": lambda x: np.pad(x, 0),
    "np.delete": lambda x: np.delete(x, [], axis=0),
    "np.nan_to_num(copy=False)": lambda x: np.nan_to_num(x, copy=False),
    "np.lib.stride_tricks.sliding_window_view": lambda x: np.lib.stride_tricks.sliding_window_view(x, 2, axis=0),
    "np.sort": lambda x: np.sort(x, axis=0),
    "np.cumsum of one row": lambda x: np.cumsum(x[:1], axis=0),
    "np.sum of one row": lambda x: np.sum(x[:1], axis=0),
    "np.max of one row": lambda x: np.max(x[:1], axis=0),
    "np.squeeze of a sum": lambda x: np.squeeze(x[:1] * 1.0, axis=0),
}


def _through(x, y, step):
    """Of what `step` gives of `y`, whether it is a view: written into `y`, and added to `x`."""
    before = step(y)
    y[0] *= 3.0
    before[1] += 0.5
    x *= y
    return before


# np.sort compares complex numbers otherwise.
_NOT_ANALYTIC = {"np.sort", "np.max of one row", "np.nan_to_num(copy=False)"}


@contextlib.contextmanager
def or_refuses():
    """What is not right must be an error that says what to do instead."""
    try:
        yield
    except RetrogradeError as error:
        if not error.ways:
            raise
    except ValueError as error:
        # NumPy warns of writes to what np.broadcast_arrays gives, and will refuse them.
        if "read-only" not in str(error):
            raise


def _allowed_to_be_refused(f, *xs, **how):
    try:
        f(*[lying(x, how["how"]) for x in xs])
    except (ValueError, DeprecationWarning):
        # As NumPy says it of np.diagonal and np.broadcast_to, and of np.broadcast_arrays by a warning.
        with pytest.raises((ValueError, MutationError, DeprecationWarning)):
            gradient(f, *[lying(x, how["how"]) for x in xs])
        return
    with or_refuses():
        agrees(f, *xs, **how)


@pytest.mark.parametrize("how", ["C", "F", "strided", "reversed"])
@pytest.mark.parametrize("name", SHARING)
def test_what_was_taken_of_an_array_sees_a_write_to_the_array_exactly_if_it_is_a_view(name, how):
    def f(x):
        y = SHARING[name](x)
        before = np.sum(y) * x[2, 2]
        x[0] *= x[1]
        x[1:, 1:3] = 0.5
        return before + np.sum(y * y * _weights(y)) + np.sum(x * WM)

    _allowed_to_be_refused(f, M, how=how, analytic=name not in _NOT_ANALYTIC, second=how == "F")


@pytest.mark.parametrize("how", ["C", "F", "strided", "reversed"])
@pytest.mark.parametrize("name", SHARING)
def test_an_array_sees_a_write_to_what_was_taken_of_it_exactly_if_it_is_a_view(name, how):
    def f(x):
        y = SHARING[name](x)
        squares = y * y
        y[...] = np.sin(y) * x[2, 2]
        y *= 1.5
        return np.sum(squares) + np.sum(y * _weights(y)) + np.sum(x * x * WM)

    _allowed_to_be_refused(f, M, how=how, analytic=name not in _NOT_ANALYTIC, second=how == "F")


@pytest.mark.parametrize("how", ["C", "F", "strided", "reversed"])
@pytest.mark.parametrize("name", SHARING)
def test_an_array_that_was_written_to_before_gives_views_where_numpy_does(name, how):
    def f(x):
        x[0, 0] = x[1, 1] * 2.0
        y = SHARING[name](x)
        x[1] = 0.5 * x[2]
        y *= 1.5
        x += WM
        z = SHARING[name](x)
        z -= 0.25
        return np.sum(y * _weights(y)) + np.sum(z * z * _weights(z)) + np.sum(x * x * WM)

    _allowed_to_be_refused(f, M, how=how, analytic=name not in _NOT_ANALYTIC, second=how == "F")


def _weights(y: Any) -> Any:
    return np.cos(1.0 + 0.7 * np.arange(np.size(data(y)))).reshape(np.shape(y))


@pytest.mark.parametrize("how", ["C", "F"])
def test_a_tangent_may_lie_in_memory_in_another_way_than_its_primal(how):
    def f(x):
        r = x.ravel(order="F") if how == "F" else x.ravel()
        r[1] = 10.0 * r[0] * r[5]
        t = x.T.reshape(-1)
        t[2] = r[3]
        return np.sum(x * x * WM)

    x = lying(M, how)
    v = np.sin(np.arange(12.0)).reshape(3, 4)
    wanted = gradient(f, x)[0]
    for tangent_how in ("C", "F", "strided", "reversed"):
        close(jvp(f, (x,), (lying(v, tangent_how),))[1], np.sum(wanted * v))
        close(hvp(f, x, lying(v, tangent_how)), hessian(f, x).reshape(12, 12).dot(v.ravel()).reshape(3, 4), 1e-9, 1e-12)


def test_the_hessian_of_an_array_in_fortrans_order_that_is_written_to():
    def f(x):
        x[data(x) > 0.5] /= 2.0
        r = np.ravel(x, order="F")
        r[0] *= r[1]
        return np.sum(r**3) + np.sum(x * x * WM)

    agrees(f, M, how="F", analytic=False)


def test_views_of_views_write_into_the_one_array():
    def f(x):
        rows = x[1:]
        column = rows.T[2]
        end = column[::-1]
        end[0] = x[0, 0] * x[2, 2]
        rows[0] += column[1]
        x[1, 2] *= 3.0
        flat = x.reshape(-1)[2:9][::-2]
        flat *= flat
        return np.sum(end * end) + np.sum(rows) + np.sum(column * x[:2, 0]) + np.sum(x * WM)

    agrees(f, M)


def test_overlapping_views_show_each_others_writes():
    def f(x):
        left, right = x[:-1], x[1:]
        left += right
        right *= left
        left[1] = right[0] * x[0]
        return np.sum(x * W) + left[0] * right[1]

    agrees(f, X)


@pytest.mark.parametrize(
    "statement",
    each("""
        x[1:] = x[:-1]
        x[:-1] = x[1:]
        x[:] = x[::-1]
        x += x[::-1]
        x[1:] += x[:-1]
        x[::-1] *= x
        x[:2], x[1:] = x[1:], x[:2]
        x[0], x[1] = x[1], x[0]
        x[[0, 1]] = x[[1, 0]]
        x[...] = x
        x[:] = x[1]
        x -= x
        x /= x + 4.0
        x **= 2
        x *= x * x
    """),
)
def test_an_array_may_be_written_with_itself(statement):
    names: dict[str, Any] = {"np": np, "W": W}
    exec(f"def f(x):\n    y = x * x\n    {statement}\n    return np.sum(x * x * W) + np.sum(y)", names)
    agrees(names["f"], X)


@pytest.mark.parametrize(
    "statement",
    each("""
        A[...] = A.T
        A += A.T
        A[0], A[1] = A[1], A[0]
        A[:, 0] = A[0]
        A @= A
        A[0] @= A
        A.T[0] = A[0]
        A[1:] -= A[0] * A[1:, :1]
    """),
)
def test_a_matrix_may_be_written_with_itself(statement):
    names: dict[str, Any] = {"np": np, "W": WM[:, :3]}
    exec(f"def f(A):\n    {statement}\n    return np.sum(A * A * W)", names)
    agrees(names["f"], M[:, :3])


def test_rows_of_an_iteration_are_views():
    def f(x):
        for row in x:
            row *= row[0]
        for i, row in enumerate(x.T):
            row[i % 3] += x[0, 0]
        return np.sum(x * x * WM)

    agrees(f, M)


@pytest.mark.parametrize("take", [np.diagonal, lambda x: np.broadcast_to(x, (2, 3, 4)), lambda x: x.diagonal(1)[::-1]])
def test_a_view_that_numpy_makes_read_only_cannot_be_written_to(take):
    def write(x):
        y = take(x)
        for attempt in (lambda: y.__setitem__(0, 5.0), lambda: y.__setitem__(..., x[0, 0]), lambda: y.__iadd__(1.0)):
            with pytest.raises((ValueError, MutationError)):
                attempt()
        return np.sum(x * WM)

    close(gradient(write, M)[0], WM)
    close(jvp(write, (M,), (M,))[1], np.sum(M * WM))
    close(hvp(write, M, M), np.zeros((3, 4)))


@pytest.mark.parametrize(
    "take", [np.diagonal, lambda x: np.broadcast_to(x, (2, 3, 4)), lambda x: np.diagonal(x, 1)[::-1]]
)
def test_a_read_only_view_shows_later_writes_at_every_order(take):
    def f(x):
        y = take(x)
        x[:2] *= x[1:]
        x[1, 1] = 2.0
        return np.sum(y * y)

    agrees(f, M)
    agrees(f, M, how="F")


def test_a_view_keeps_its_array_alive():
    def f(x):
        y = (x * x)[1:]
        y[0] *= 3.0
        z = np.sin(x).reshape(1, 3).T[1:]
        z += y[:, None]
        return np.sum(y * W[1:]) + np.sum(z * z)

    agrees(f, X)


def test_a_view_outlives_the_name_of_its_array():
    def f(x):
        y = x[::-1]
        x[0] *= 3.0
        x = x * 2.0
        x[1] = 7.0
        y[1] *= y[0]
        return np.sum(y * W) + np.sum(x * x)

    agrees(f, X)


def test_a_result_may_be_a_view():
    def f(x):
        y = x[::-1]
        x[0] = x[1] * x[2]
        return y

    wanted = np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [0.0, 2.0, -1.0]])
    close(jacobian(f, X), wanted)
    close(jvp(f, (X,), (W,))[1], wanted @ W)
    y, pull = pullback(f, X)
    y[0] = 99.0
    close(pull(np.array([0.0, 0.0, 1.0]))[0], [0.0, 2.0, -1.0])


# --- complex arrays ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "statement",
    each("""
        z.real[...] = x
        z.imag[0] = x[1]
        z.real *= x
        z.imag += z.real
        np.real(z)[1:] = 0.5
        z.real[[0, 0]] = x[:2]
        z *= 1j
        z[0] = x[0]
        z[1] = z[0] * z[2]
        z.real.T[1] = x[2]
        z[::-1].imag[0] = x[0]
        z **= 2
        z /= 1.0 + 2j
        z.imag, z.real = z.real, z.imag
    """),
)
def test_the_parts_of_a_complex_array_are_views(statement):
    names: dict[str, Any] = {"np": np, "W": W}
    exec(
        "def f(x, y):\n    z = x + 1j * y\n    r, i = z.real, np.imag(z)\n    kept = z * z\n"
        f"    {statement}\n    return np.sum(r * W) + np.sum(i * i) + np.sum((z * kept).real) + np.sum((z * z).imag)",
        names,
    )
    agrees(names["f"], X, W / 50.0, analytic=False)


def test_the_real_part_of_a_real_array_is_the_array():
    def f(x):
        x.real[0] = x[1] * x[2]
        np.real(x)[2] *= 2.0
        return np.sum(x * x * W)

    agrees(f, X, analytic=False)


# --- values kept by earlier operations -----------------------------------------------------------------------------

KEEPING = {
    "x * x": lambda x: x * x,
    "a constant and x": lambda x: W * x * W,
    "x ** 3": lambda x: x**3,
    "1 / x": lambda x: 1.0 / x,
    "np.sin": np.sin,
    "np.exp": np.exp,
    "np.prod": np.prod,
    "np.cumprod": np.cumprod,
    "np.dot": lambda x: np.dot(x, x),
    "np.outer": lambda x: np.outer(x, x),
    "x @ matrix": lambda x: x @ np.outer(x, W),
    "np.einsum": lambda x: np.einsum("i,j,j->i", x, x, x),
    "np.linalg.solve": lambda x: np.linalg.solve(np.outer(x, x) + 9.0 * np.eye(3), x),
    "np.linalg.inv": lambda x: np.linalg.inv(np.outer(x, x) + 9.0 * np.eye(3)),
    "np.linalg.det": lambda x: np.linalg.det(np.outer(x, x) + 9.0 * np.eye(3)),
    "np.where": lambda x: np.where([True, False, True], x * x, x),
    "np.stack": lambda x: np.stack([x, x * x]) ** 2,
    "np.concatenate": lambda x: np.concatenate([x, x]) ** 2,
    "np.multiply.outer": lambda x: np.multiply.outer(x, x),
    "np.convolve": lambda x: np.convolve(x, x),
    "np.kron": lambda x: np.kron(x, x),
    "np.cross": lambda x: np.cross(x, x * x),
    "a part": lambda x: x[1:] * x[:-1],
    "a gathered part": lambda x: x[[0, 0, 2]] ** 2,
    "an element": lambda x: x[0] * x[1] * x[2],
    "a reshaped product": lambda x: (x[:, None] * x).reshape(-1),
}


@pytest.mark.parametrize("form", ["x[0] = 5.0", "x[:] = 0.3", "x *= 2.0", "x[1:] = x[:-1]", "np.add(x, 0.7, out=x)"])
@pytest.mark.parametrize("name", KEEPING)
def test_a_value_computed_earlier_does_not_see_a_later_write(name, form):
    names: dict[str, Any] = {"np": np, "keep": KEEPING[name]}
    exec(f"def f(x):\n    y = keep(x)\n    {form}\n    z = keep(x)\n    return np.sum(y * y) + 0.1 * np.sum(z)", names)
    agrees(names["f"], X)


def test_a_value_computed_of_a_view_does_not_see_a_later_write():
    def f(x):
        v = x[1:]
        y = v * v
        x[1] = 5.0
        z = v * v
        v[1] = x[0]
        w = v * x[:2]
        x[:] = 0.0
        return np.sum(y) + 3.0 * np.sum(z) + 7.0 * np.sum(w)

    agrees(f, X)


def test_a_result_computed_earlier_may_be_written_to():
    def f(x):
        y = np.exp(x)  # keeps its own result
        z = np.tanh(y)
        y[0] = 1.5
        y *= z
        z[1:] = x[:-1]
        return np.sum(y * z * W)

    agrees(f, X)


def test_a_plain_array_that_an_operation_kept_may_be_changed_later():
    c, key = np.ones(3), np.array([0, 1, 2])

    def f(x):
        y = x * c
        c[0] = 7.0
        z = x[key]
        key[0] = 2
        v = np.dot(x, c)
        c[1:] = 0.0
        x[:] = c
        c[2] = 9.0
        return np.sum(y) + np.sum(z * W) + v + np.sum(x)

    def reset():
        c[:] = 1.0
        key[:] = [0, 1, 2]

    wanted = np.ones(3) + W + np.array([7.0, 1.0, 1.0])
    with or_refuses():
        close(gradient(f, X)[0], wanted)
    reset()
    with or_refuses():
        close(jvp(f, (X,), (X,))[1], wanted @ X)
    reset()
    with or_refuses():
        close(pullback(f, X)[1](1.0)[0], wanted)
    reset()
    with or_refuses():
        close(hvp(lambda x: f(x) ** 2 / 2, X, X), wanted * (wanted @ X))


# --- constants over variables --------------------------------------------------------------------------------------


def test_a_constant_written_over_a_variable_ends_its_path():
    def f(x):
        y = x * x
        x[1] = 4.0
        y[0] = 2.0
        return np.sum(x * y * W)

    agrees(f, X)
    close(grad(f)(X), [2.0, 80.0 * X[1], 300.0 * X[2] ** 2])


@pytest.mark.parametrize("statement", ["x[:] = 2.0", "x[...] = W", "x[[0, 1, 2]] = 1.0", "x *= 0.0", "x[x == x] = 3.0"])
def test_an_array_that_was_overwritten_by_constants_has_no_derivative_left(statement):
    names: dict[str, Any] = {"np": np, "W": W}
    exec(f"def f(x):\n    {statement}\n    return np.sum(x * x)", names)
    f = names["f"]
    close(grad(f)(X), [0.0, 0.0, 0.0])
    close(jvp(f, (X,), (X,))[1], 0.0)
    close(hvp(f, X, X), [0.0, 0.0, 0.0])


def test_an_array_may_be_filled_again_after_constants():
    def f(x):
        y = x * x
        x[:] = 0.0
        x[1:] = y[1:] * y[0]
        x[0] = x[1] * x[2]
        return np.sum(x * W)

    agrees(f, X)


# --- dtypes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "statement",
    each("""
        n[0] = x[0]
        n[:] = x
        n[[0, 1]] = x[:2]
        n += x
        n[1:] += x[1:]
        n *= 1.5 * x[0]
        n /= 2
        n[0] /= x[0]
        np.multiply(n, x, out=n)
        np.add.at(n, [0], x[0])
        n.T[0] = x[0]
        n[:] = [x[0], 1, 2]
        n[0] = x[0] * 1j
        x[0] = x[0] * 1j
        x += 1j * x
    """),
)
def test_what_numpy_would_cut_is_refused(statement):
    def f(n, x):
        names = {"np": np, "n": n, "x": x}
        with pytest.raises(TypeError):
            exec(statement, names)
        assert data(n).tolist() == [1, 2, 3]
        assert n.dtype == int
        return np.sum(n * x * W)

    n = np.array([1, 2, 3])
    close(gradient(f, n, X)[1], n * W)
    close(jvp(f, (n, X), (X, X))[1], np.sum(n * X * W) + np.sum(X * X * W))
    assert n.tolist() == [1, 2, 3]


def test_integers_may_be_written_into_a_traced_integer_array():
    def f(n, x):
        n[0] = 5
        n[1:] += 1
        n *= 2
        assert n.dtype == int
        return np.sum(n * x)

    n = np.array([1, 2, 3])
    n_bar, x_bar = gradient(f, n, X)
    close(x_bar, [10.0, 6.0, 8.0])
    close(n_bar, [0.0, 2 * X[1], 2 * X[2]])
    assert n.tolist() == [1, 2, 3]


def test_single_precision_stays_single():
    def f(x, y):
        x[0] = y[0] * y[1]
        x += y
        x[1:] *= y[1:]
        return np.sum(x * x)

    single = X.astype(np.float32)
    x_bar, y_bar = gradient(f, single, X)
    assert (x_bar.dtype, y_bar.dtype) == (np.float32, np.float64)
    wanted = gradient(f, X, X)
    close(x_bar, wanted[0], 1e-5)
    close(y_bar, wanted[1], 1e-5)


# --- out= and ufunc.at -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "statement",
    each("""
        np.multiply(x, y, out=x)
        np.multiply(x, y, x)
        np.sin(x, out=x)
        np.sin(y, x)
        np.add(x[1:], y[1:], out=x[1:])
        np.exp(x, out=(y,))
        np.add(x, 1.0, out=x)
        np.add(1.0, 2.0, out=x)
        np.add(x[0], y[1], out=x)
        np.multiply(x, x[::-1], out=x[::-1])
        np.divide(x, 3.0 + y, out=x[...])
        np.add(x, y, out=x, where=np.array([True, False, True]))
        np.power(x, 2, out=x)
        np.negative(x[:2], out=x[1:])
        np.matmul(np.outer(x, y), x, out=x)
        np.add(x, W, out=y)
    """),
)
def test_out_writes_into_the_array_and_returns_it(statement):
    names: dict[str, Any] = {"np": np, "W": W}
    exec(
        "def f(x, y):\n    kept, alias, view = x * y, x, x[::-1]\n"
        f"    r = {statement}\n    r *= 1.5\n"
        "    return np.sum(kept) + np.sum(alias * alias * W) + view[0] * view[1] + np.sum(np.cos(y) * W) + np.sum(r)",
        names,
    )
    agrees(names["f"], X, W / 50.0)


@pytest.mark.parametrize("shape", [(2, 3), (1, 3)])
def test_out_may_be_larger_than_the_result(shape):
    def f(x, y):
        r = np.add(y, x[0, 0], out=x)
        r[0] *= 2.0
        return np.sum(x * x * WM[: shape[0], :3])

    agrees(f, M[: shape[0], :3], X)


def test_out_returns_the_very_array():
    def f(x):
        assert np.sin(x, out=x) is x
        assert np.add(x, 1.0, x) is x
        return np.sum(x)

    close(gradient(f, X)[0], np.cos(X))


def test_a_plain_array_made_outside_is_no_place_for_a_traced_value():
    outside = np.zeros(3)

    def write(x):
        outside[0] = x[0]

    def slices(x):
        outside[:] = x

    def out(x):
        np.sin(x, out=outside)

    def at(x):
        np.add.at(outside, [0], x[0])

    for attempt in (write, slices, out, at):
        for transform in (lambda f: gradient(f, X), lambda f: jvp(f, (X,), (X,)), lambda f: hvp(f, X, X)):
            with pytest.raises((TypeError, ValueError)):
                transform(lambda x, attempt=attempt: (attempt(x), np.sum(outside))[1])
            assert outside.tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("ufunc", [np.add, np.subtract])
@pytest.mark.parametrize(
    ("key", "shape"),
    [
        ([0, 0, 1], (3, 4)),
        (np.array([[0, 1], [2, -1]]), (2, 2, 4)),
        ((np.array([0, 0]), np.array([1, 1])), (2,)),
        ((np.array([0, 2]), slice(1, 3)), (2, 2)),
        (slice(None, None, -1), (3, 4)),
        (M > 0, (np.count_nonzero(M > 0),)),
        (1, (4,)),
        ((1, 2), ()),
        (..., (3, 4)),
        (np.array([], int), (0, 4)),
    ],
    ids=str,
)
def test_at_adds_as_often_as_the_key_names_a_place(ufunc, key, shape):
    values = 0.3 * np.cos(np.arange(np.prod(shape, dtype=int))).reshape(shape)
    for value in (lambda x: values * x[0, 0], lambda x: x[1, 1] ** 2, lambda x: 0.5, lambda x: values):

        def f(x, value=value):
            kept, view = x * x, x[::-1]
            ufunc.at(x, key, value(x))
            return np.sum(x * x * WM) + np.sum(kept) + np.sum(view[0])

        agrees(f, M)


def test_at_broadcasts_its_values():
    def f(x, y):
        np.add.at(x, np.array([[0, 1], [2, 0]]), y)
        np.subtract.at(x, (slice(None), [0, 0, 3]), y[:3])
        return np.sum(x * x * WM)

    agrees(f, M, WM[0].copy())


def test_at_broadcasts_into_a_vector():
    # Not compared with NumPy, which reads past the end of the values here (2.4.6).
    def f(x, y):
        np.add.at(x, np.array([[0, 1, 1], [2, 0, 0]]), y)
        return np.sum(x * W)

    x_bar, y_bar = gradient(f, X, X)
    close(withgradient(f, X, X).val, np.sum((X + [X[0] + X[1] + X[2], X[1] + X[2], X[0]]) * W))
    close(x_bar, W)
    close(y_bar, [101.0, 11.0, 11.0])


def test_at_goes_through_views():
    def f(x):
        np.add.at(x.T, [0, 0, 1], x[0, 0])
        np.subtract.at(x.reshape(-1), [0, 5, 5], x[1, :3])
        np.add.at(x[:, ::-1], ([0, 0], [1, 1]), x[2, :2])
        return np.sum(x * x * WM)

    agrees(f, M)
    agrees(f, M, how="F")


# --- numbers and arrays without axes -------------------------------------------------------------------------------


def test_numbers_are_not_changed_in_place():
    def f(x):
        s = x[0]
        t = s
        s += x[1]
        s *= s
        u = np.sum(x)
        v = u
        u **= 2
        return s * t + u * v

    agrees(f, X)


def test_an_array_without_axes_is_changed_in_place():
    def f(x, y):
        alias = x
        x += y[0]
        x *= x
        view = x[...]
        view[()] = view * 2.0
        kept = x * alias
        x[...] = y[1] * y[2]
        return kept + alias * view * y[0]

    agrees(f, np.array(0.7), X)


def test_a_number_among_the_arguments_is_no_array():
    def f(s, x):
        t = s
        s += 1.0
        x += s
        x[0] = t
        return np.sum(x * x * W) + s * t

    s_bar, x_bar = gradient(f, 0.7, X)
    close(s_bar, differences(lambda s: f(s[()], X.copy()), np.array(0.7)), 1e-8)
    close(x_bar, differences(lambda x: f(0.7, x.copy()), X), 1e-8)


# --- names -----------------------------------------------------------------------------------------------------------


def test_an_alias_is_the_same_array_however_it_was_changed():
    def f(x):
        a, box, table = x, [x], {"x": x}
        x += 1.0
        x[0] *= x[1]
        x /= 2.0 + x
        box[0][1] = x[2] ** 2
        table["x"] -= a
        a += W
        assert a is x
        assert box[0] is x
        return np.sum(x * x) + np.sum(a * box[0] * table["x"])

    agrees(f, X)


def test_a_function_changes_its_callers_array():
    def scale(a, s):
        a *= s
        a = a * 2.0
        a[0] = 9.0
        return a

    def f(x):
        y = scale(x, x[1])
        z = scale(x[1:], 2.0)
        return np.sum(x * W) + np.sum(y * y) + np.sum(z)

    agrees(f, X)


def test_attributes_and_closures_are_changed_in_place():
    class State:
        def __init__(self, x):
            self.x = x

        def step(self):
            self.x[0] += self.x[1] * self.x[2]
            self.x *= 0.5

    def f(x):
        state, y = State(x), x * 1.0

        def bump():
            nonlocal y
            y[1] *= y[0]
            y += x

        state.step()
        bump()
        state.x[1] = y[0]
        bump()
        return np.sum(x * W) + np.sum(y * y)

    agrees(f, X)


def test_a_branch_and_a_loop_write_what_their_values_say():
    def f(x):
        for i in range(1, 3):
            if np.real(data(x[i])) > 0:
                x[i] = x[i - 1] * x[i]
            else:
                x[i] -= 0.5 * x[i - 1]
        while np.real(data(x[0])) < 3.0:
            x *= 2.0
        return np.sum(x * W)

    agrees(f, X)


def test_gaussian_elimination_in_place():
    def solve(a, b):
        n = len(b)
        for k in range(n):
            for i in range(k + 1, n):
                factor = a[i, k] / a[k, k]
                a[i, k:] -= factor * a[k, k:]
                b[i] -= factor * b[k]
        for k in range(n - 1, -1, -1):
            b[k] = (b[k] - a[k, k + 1 :] @ b[k + 1 :]) / a[k, k]
        return b

    a = M[:, :3] + 3.0 * np.eye(3)
    agrees(lambda a, b: np.sum(solve(a, b) * W), a, X)
    close(jacobian(lambda b: solve(b[:, None] * 0.0 + a, b), X), np.linalg.inv(a), 1e-10)


def test_cholesky_in_place():
    def factor(a):
        for j in range(3):
            a[j, j] = np.sqrt(a[j, j] - np.sum(a[j, :j] ** 2))
            for i in range(j + 1, 3):
                a[i, j] = (a[i, j] - np.sum(a[i, :j] * a[j, :j])) / a[j, j]
            a[j, j + 1 :] = 0.0
        return a

    a = M[:, :3] @ M[:, :3].T + 3.0 * np.eye(3)
    agrees(lambda a: np.sum(factor(a) * WM[:, :3]), a)


# --- arguments ---------------------------------------------------------------------------------------------------

_EVERY = {
    "gradient": lambda f, x: gradient(f, x)[0],
    "withgradient": lambda f, x: withgradient(f, x).grad[0],
    "grad": lambda f, x: grad(f)(x),
    "value_and_grad": lambda f, x: value_and_grad(f)(x)[1],
    "pullback": lambda f, x: pullback(f, x)[1](1.0)[0],
    "pushforward": lambda f, x: np.array([pushforward(f, x)[1](e) for e in np.eye(3)]),
    "jvp": lambda f, x: np.array([jvp(f, (x,), (e,))[1] for e in np.eye(3)]),
    "jacobian": lambda f, x: jacobian(f, x),
    "withjacobian": lambda f, x: withjacobian(f, x).grad,
    "jacobian by columns": lambda f, x: jacobian(lambda x: f(x) * np.ones(9), x)[4],
    "hessian": lambda f, x: hessian(lambda x: f(x) ** 2 / 2, x) / f(x.copy()),
    "hvp": lambda f, x: hvp(lambda x: f(x) ** 2 / 2, x, np.array([1.0, 0.0, 0.0])) / f(x.copy()),
    "diaghessian": lambda f, x: diaghessian(lambda x: f(x) ** 2 / 2, x),
    "gradient of a container": lambda f, x: gradient(lambda d: f(d["x"][0]), {"x": [x]})[0]["x"][0],
    "gradient inside forwarddiff": lambda f, x: gradient(lambda x: forwarddiff(lambda y: f(np.copy(y)), x), x)[0],
}


@pytest.mark.parametrize("name", _EVERY)
def test_no_transform_changes_its_callers_array(name):
    def f(x):
        x[0] = x[1] * x[2]
        x += 1.0
        x[::-1][0] = 3.0
        return np.sum(x * W)

    for x in (X.copy(), np.stack([X, X], 1)[:, 0], X[::-1].copy()[::-1]):
        before = x.copy()
        first = _EVERY[name](f, x)
        assert x.tolist() == before.tolist()
        # So that it can be repeated.
        close(_EVERY[name](f, x), first)


def test_a_gradient_is_with_respect_to_the_value_on_entry():
    def f(x):
        x[0] = x[1] ** 2
        x *= 2.0
        return np.sum(x * W)

    close(gradient(f, X)[0], [0.0, 20.0 + 4.0 * X[1], 200.0])


def test_a_tangent_is_left_alone():
    def f(x):
        x[0] = x[1] ** 2
        x *= 2.0
        return x

    v = W.copy()
    close(jvp(f, (X,), (v,))[1], [4.0 * X[1] * 10.0, 20.0, 200.0])
    _, push = pushforward(f, X.copy())
    push(v)
    hvp(lambda x: np.sum(f(x) ** 2), X, v)
    assert v.tolist() == W.tolist()


def test_a_seed_is_left_alone():
    def f(x):
        x[0] = x[1] ** 2
        x[2] = 0.0
        return x

    _, pull = pullback(f, X)
    seed = W.copy()
    close(pull(seed)[0], [0.0, 10.0 + 2.0 * X[1], 0.0])
    close(pull(seed)[0], [0.0, 10.0 + 2.0 * X[1], 0.0])
    assert seed.tolist() == W.tolist()


def test_one_array_given_twice_is_two_variables():
    def f(x, y):
        x[0] = 5.0
        y *= 2.0
        return np.sum(x * y * W)

    x = X.copy()
    x_bar, y_bar = gradient(f, x, x)
    close(x_bar, [0.0, 2.0 * X[1] * 10.0, 2.0 * X[2] * 100.0])
    close(y_bar, [10.0, 2.0 * X[1] * 10.0, 2.0 * X[2] * 100.0])
    close(jvp(f, (x, x), (X, 0.0 * X))[1], np.sum(x_bar * X))
    close(pullback(f, x, x)[1](1.0)[1], y_bar)
    assert x.tolist() == X.tolist()


def test_arguments_that_share_memory_are_variables_of_their_own():
    base = np.arange(4.0) + 1.0

    def f(x, y):
        x[1] = 10.0
        y[0] *= 3.0
        return np.sum(x * W) + np.sum(y * y)

    x_bar, y_bar = gradient(f, base[:3], base[1:])
    close(x_bar, [1.0, 0.0, 100.0])
    close(y_bar, [18.0 * 2.0, 6.0, 8.0])
    assert base.tolist() == [1.0, 2.0, 3.0, 4.0]


def test_what_the_caller_does_to_his_array_after_a_pullback_does_not_matter():
    x = X.copy()
    _, pull = pullback(lambda x: np.sum(x * x), x)
    x[0] = 99.0
    close(pull(1.0)[0], 2.0 * X)


def test_an_argument_that_was_written_and_one_that_was_not():
    x, y = X.copy(), W.copy()
    x_bar, y_bar = gradient(lambda x, y: (x.__setitem__(0, y[0]), np.sum(x * y))[1], x, y)
    close(x_bar, [0.0, 10.0, 100.0])
    close(y_bar, [2.0, X[1], X[2]])


# --- parameters, checkpoints -----------------------------------------------------------------------------------------


def _churn(x):
    """Writes and views of an array that is the function's own."""
    d = x[::-1]
    x *= 2.0
    x[0] = d[0] * d[1]
    d[1:] += x[0]
    e = x.reshape(3, 1).T
    x += 0.5
    e[0, 1] *= 3.0
    return np.sum(x * d * W) + np.sum(e[:, 1:] * e[:, :2])


@pytest.mark.parametrize("copied", [np.copy, lambda x: 1.0 * x, lambda x: x.copy(), lambda x: x[[0, 1, 2]]])
def test_a_checkpoint_may_write_into_arrays_of_its_own(copied):
    wanted = differences(lambda x: _churn(x.copy()), X)
    f = lambda x: checkpointed(lambda x: _churn(copied(x)), x)
    close(pullback(f, X)[0], _churn(X.copy()))
    close(gradient(f, X)[0], wanted, 1e-8)
    close(hessian(f, X), hessian(lambda x: _churn(copied(x)), X))
    close(
        gradient(lambda x: checkpointed(lambda: _churn(copied(x)) * x[0]), X)[0],
        wanted * X[0] + [_churn(X.copy()), 0, 0],
        1e-8,
    )


def test_a_view_inside_a_checkpoint_sees_an_in_place_operator():
    def f(x):
        y = x * 1.0
        d = y[1:]
        y *= 0.5
        return d

    y, pull = pullback(lambda x: checkpointed(f, x), X)
    close(y, 0.5 * X[1:])
    close(pull(np.ones(2))[0], [0.0, 0.5, 0.5])
    with pytest.warns(DroppedGradientWarning):
        value = withgradient(lambda x, s: forwarddiff(lambda s: np.sum(f(x)) * s, s), X, 2.0)
    close(value.val, np.sum(X[1:]))
    close(value.grad[1], 0.5 * np.sum(X[1:]))


def test_a_checkpoint_that_writes_into_an_array_from_outside_is_refused():
    for f in (lambda x: x.__setitem__(0, 5.0), lambda x: x.__iadd__(1.0), lambda x: x[1:].__setitem__(0, x[0])):
        with pytest.raises(MutationError, match="copy"):
            gradient(lambda x, f=f: checkpointed(lambda x: (f(x), np.sum(x))[1], x * 1.0), X)
        with pytest.raises(MutationError, match="copy"):
            gradient(lambda x, f=f: checkpointed(lambda: (f(x), np.sum(x))[1]), X)


def test_what_was_passed_to_a_checkpoint_may_be_written_to_later():
    def f(x):
        y = checkpointed(lambda a: np.sum(a * a * a), x)
        z = checkpointed(lambda a: np.sum(a * a * W[1:]), x[1:])
        x[0] = 5.0
        x *= 2.0
        return y + z + np.sum(x)

    agrees(f, X)


def test_what_a_checkpoint_closed_over_may_be_written_to_later_or_is_refused():
    def f(x):
        y = x * 1.0
        z = checkpointed(lambda: np.sum(y * y * W))
        y *= 2.0
        return z + np.sum(y)

    with or_refuses():
        close(gradient(f, X)[0], 2.0 * X * W + 2.0)


def test_arrays_computed_of_parameters_are_written_to():
    p = param(X)
    y = p * 1.0
    y[2] = y[0] * y[1]
    y[:2] = y[1:]  # reads a version that was written to
    v = y[::-1]
    y += p
    v[0] *= 2.0
    loss = np.sum(y * W)
    back(loss, once=False)
    wanted = [1.0 + 10.0 * X[1] + 200.0 * X[1], 1.0 + 10.0 * (X[0] + 1.0) + 200.0 * X[0], 200.0]
    close(p.grad, wanted)
    back(loss)
    close(p.grad, 2.0 * np.array(wanted))


def test_a_parameter_itself_is_not_written_to():
    p = param(X)
    for attempt in (
        lambda: p.__setitem__(0, 1.0),
        lambda: p.__iadd__(1.0),
        lambda: p[1:].__setitem__(0, 1.0),
        lambda: np.sin(p, out=p),
    ):
        with pytest.raises(TypeError):
            attempt()
    assert data(p).tolist() == X.tolist()


def test_a_parameter_updated_inside_ignore_leaves_earlier_graphs_alone():
    p = param(X)
    view, y = p[1:] * 1.0, np.sum(p * p)
    with ignore():
        p -= 0.1 * W
        p[0] = 7.0
    close(data(p), [7.0, X[1] - 1.0, X[2] - 10.0])
    back(y + np.sum(view * W[1:]))
    close(p.grad, 2.0 * X + [0.0, 10.0, 100.0])


# --- transforms inside transforms ------------------------------------------------------------------------------------


def test_an_inner_gradient_leaves_the_outer_array_alone():
    def f(x):
        def inner(u):
            u[0] = u[1] * u[2]
            u *= 2.0
            return np.sum(u * u)

        g = gradient(inner, x)[0]
        return np.sum(g * W) + np.sum(x * x)

    def plain(x):
        g = np.array([0.0, 8.0 * x[1] * x[2] ** 2 + 8.0 * x[1], 8.0 * x[2] * x[1] ** 2 + 8.0 * x[2]])
        return np.sum(g * W) + np.sum(x * x)

    close(gradient(f, X)[0], differences(plain, X), 1e-8)
    close(jvp(f, (X,), (W,))[1], differences(plain, X) @ W, 1e-8)
    close(hessian(f, X), differences(lambda x: differences(plain, x, 1e-2), X, 1e-2), 1e-5, 1e-5)


def test_a_write_to_the_outer_array_does_not_reach_what_an_inner_pullback_kept():
    def f(x):
        _, pull = pullback(lambda u: np.sum(u * u * u), x)
        x[0] = 50.0
        x[1:] *= 2.0
        return np.sum(pull(1.0)[0] * W) + np.sum(x)

    close(gradient(f, X)[0], 6.0 * X * W + [0.0, 2.0, 2.0])
    close(jvp(f, (X,), (X,))[1], (6.0 * X * W + [0.0, 2.0, 2.0]) @ X)


def test_an_inner_function_writes_into_the_outer_array_that_it_multiplies_with():
    def f(x):
        def inner(u):
            z = np.sum(u * x)
            x[0] = 100.0 * x[1]
            return z + np.sum(u * u * x)

        return np.sum(gradient(inner, np.ones(3))[0] * W) + np.sum(x)

    def plain(x):
        y = x.copy()
        y[0] = 100.0 * x[1]
        return np.sum((x + 2.0 * y) * W) + np.sum(y)

    close(gradient(f, X)[0], differences(plain, X), 1e-8)
    close(jvp(f, (X,), (W,))[1], differences(plain, X) @ W, 1e-8)


def test_an_inner_function_writes_into_the_array_that_it_was_called_with():
    def f(x):
        def inner(u):
            x[0] = 7.0
            return np.sum(u * u)

        return np.sum(gradient(inner, x)[0] * W) + np.sum(x)

    # The inner function works on its own version of x, which is the one on entry.
    close(withgradient(f, X).val, 2.0 * np.sum(X * W) + 7.0 + X[1] + X[2])
    close(gradient(f, X)[0], 2.0 * W + [0.0, 1.0, 1.0])
    close(jvp(f, (X,), (X,))[1], (2.0 * W + [0.0, 1.0, 1.0]) @ X)


def test_a_view_of_an_outer_array_is_the_argument_of_an_inner_gradient():
    def f(x):
        v = x[1:]
        x[1] = x[0] * x[2]

        def inner(u):
            u *= v
            x[2] = 3.0 * x[0]
            return np.sum(u * v)

        g = gradient(inner, v)[0]
        v += g
        return np.sum(x * W)

    def plain(x):
        v = np.array([x[0] * x[2], x[2]])
        g = v * np.array([v[0], 3.0 * x[0]])
        return x[0] + np.sum((np.array([v[0], 3.0 * x[0]]) + g) * W[1:])

    close(gradient(f, X)[0], differences(plain, X), 1e-8)
    close(jvp(f, (X,), (W,))[1], differences(plain, X) @ W, 1e-8)


@pytest.mark.parametrize("mode", ["gradient", "jvp"])
def test_an_outer_array_written_with_an_inner_value_is_a_variable_of_the_inner_transform(mode):
    def inner_derivative(g, t):
        return gradient(g, t)[0] if mode == "gradient" else jvp(g, (t,), (1.0,))[1]

    def f(x):
        y = x * 1.0
        view = y[1:]

        def inner(t):
            y[1] = t * x[0]
            y[2] *= t
            return y[1] * y[2] + np.sum(view * view)

        slope = inner_derivative(inner, 2.0)
        with pytest.raises(EndedError):
            y + 1.0
        return slope

    # d/dt (x0 x2 t² + x0² t² + x2² t²) at t = 2.
    def plain(x):
        return 4.0 * (x[0] * x[2] + x[0] ** 2 + x[2] ** 2)

    close(withgradient(f, X).val, plain(X))
    close(gradient(f, X)[0], differences(plain, X), 1e-8)
    close(jvp(f, (X,), (W,))[1], differences(plain, X) @ W, 1e-8)


def test_perturbations_stay_apart_when_they_are_written_into_one_array():
    def f(x):
        y = np.sin(x)
        s = jvp(lambda t: _written(y * 1.0, t), (1.5,), (1.0,))[1]
        return s * x[0] + gradient(lambda t: _written(y * x[1], t), 0.5)[0]

    def _written(a, t):
        a[0] = t * t * a[1]
        a[1:] *= t
        return np.sum(a * a * W)

    def plain(x):
        y = np.sin(x)

        def slope(a, t):
            return 4.0 * t**3 * a[1] ** 2 + 2.0 * t * (10.0 * a[1] ** 2 + 100.0 * a[2] ** 2)

        return slope(y, 1.5) * x[0] + slope(y * x[1], 0.5)

    close(gradient(f, X)[0], differences(plain, X), 1e-8)
    close(jvp(f, (X,), (W,))[1], differences(plain, X) @ W, 1e-8)


def test_third_derivatives_go_through_writes():
    def f(t):
        a = t * np.ones(3)
        b = a[::-1]
        a[0] = a[1] * b[0]
        b[1] *= a[0]
        return np.sum(a)

    # t² + t³ + t
    close(gradient(lambda t: gradient(lambda t: gradient(f, t)[0], t)[0], 2.0)[0], 6.0)
    close(jvp(lambda t: jvp(lambda t: jvp(f, (t,), (1.0,))[1], (t,), (1.0,))[1], (2.0,), (1.0,))[1], 6.0)
    close(gradient(lambda t: jvp(lambda t: gradient(f, t)[0], (t,), (1.0,))[1], 2.0)[0], 6.0)


def test_a_number_of_an_inner_transform_meets_an_array_that_an_outer_one_traces():
    def f(x):
        a = x * 1.0

        def inner(t):
            b = a * t
            b[1:] *= t
            return np.sum(b * t) + np.sum(b + t)

        slope = gradient(inner, 0.5)[0]
        assert np.shape(slope) == ()
        return slope

    # x0 (t² + t) + (x1 + x2) (t³ + t²) + 3 t
    close(gradient(f, X)[0], [2.0, 1.75, 1.75])
    close(jvp(f, (X,), (W,))[1], 2.0 + 175.0 + 17.5)


# --- costs -----------------------------------------------------------------------------------------------------------


def _fill(x, i):
    x[i] = 0.5 * x[i - 1] + x[i]


def _augmented(x, i):
    x[i] += 0.5 * x[i - 1]


def _through_a_view(x, i):
    v = x[i : i + 2]
    v *= 0.5
    v[0] = x[i - 1]


def _with_a_view_held(x, i):
    x[i] = 0.5 * _HELD[0][i - 1]


def _reversed(x, i):
    x[::-1][i] = x[i]


def _gathered(x, i):
    x[[i, i + 1]] = x[[i - 1, i]]


def _gathered_and_added(x, i):
    x[np.array([i, i])] += 0.5


def _at(x, i):
    np.add.at(x, [i, i], x[i - 1])


def _matrix_row(x, i):
    x.reshape(-1, 8)[i] += x[:8]


def _constant_over(x, i):
    x[i] = 0.0
    x[i : i + 3] = 1.0


def _out(x, i):
    np.sin(x[i : i + 4], out=x[i : i + 4])


_HELD: list[Any] = [None]
_WRITES = [
    _fill,
    _augmented,
    _through_a_view,
    _with_a_view_held,
    _reversed,
    _gathered,
    _gathered_and_added,
    _at,
    _matrix_row,
    _constant_over,
    _out,
]


@pytest.mark.parametrize("mode", ["reverse", "forward", "hvp", "reverse over reverse"])
@pytest.mark.parametrize("write", _WRITES, ids=lambda f: f.__name__.strip("_"))
def test_a_loop_of_writes_copies_the_array_a_few_times_and_not_once_a_write(write, mode, monkeypatch):
    writes, size = 30, 2_000
    x = np.linspace(0.0, 1.0, size)
    copies = []
    copied = memory.copied

    def counted(array):
        copies.append(array.size)
        return copied(array)

    monkeypatch.setattr(memory, "copied", counted)

    def f(x):
        _HELD[0] = x[1:]
        for i in range(1, writes):
            write(x, i)
        _HELD[0] = None
        return x[7] * x[writes]

    {
        "reverse": lambda: gradient(f, x),
        "forward": lambda: jvp(f, (x,), (x,)),
        "hvp": lambda: hvp(f, x, x),
        "reverse over reverse": lambda: gradient(lambda x: np.sum(gradient(f, x)[0] * W[0]), x),
    }[mode]()
    # The caller's array, its tangent, what a view held before the first write; and in a sweep the same of cotangents.
    assert sum(n >= size // 2 for n in copies) <= 8


# --- masks, indices and counts that change after they were used ------------------------------------------------------


def _mask_of_where(x):
    u, mask, total = x / 4, np.ones(4, bool), 0.0
    for _ in range(4):
        total = total + np.sum(np.where(mask, u**2, 0.0))
        u = u * 0.8 + 0.02 * x
        mask &= u > 0.5
    return total


def _mask_of_reductions(x):
    mask = np.array([True, False, True, True])
    total = np.var(x, where=mask) + np.mean(x, where=mask) + np.max(x, where=mask, initial=0) + np.sum(x**2, where=mask)
    mask[:] = ~mask
    return total


def _conditions_of_select(x):
    conditions = [x > 2, x <= 2]
    total = np.sum(np.select(conditions, [x * x, x]))
    conditions[0][:] = False
    return total


def _selector_of_choose(x):
    selector, total = np.zeros(4, int), 0.0
    for _ in range(2):
        total = total + np.sum(np.choose(selector, [x, x * x]))
        selector += 1
    return total


def _indices_of_take(x):
    places, total = np.arange(4), 0.0
    for _ in range(3):
        total = total + np.take(x * x, places, mode="wrap") @ np.arange(1.0, 5)
        places += 1
    return total


def _order_of_take_along_axis(x):
    order = np.argsort(-x)
    total = np.sum(np.take_along_axis(x, order, 0) * np.arange(4.0))
    order.sort()
    return total


def _counts_of_repeat(x):
    counts, total = np.arange(4), 0.0
    for _ in range(3):
        total = total + np.sum(np.repeat(x, counts) ** 2)
        counts[:] = counts[::-1]
    return total


def _shift_of_roll(x):
    shift, total = np.array(1), 0.0
    for _ in range(3):
        total = total + np.roll(x, shift) @ np.arange(4.0) + np.sum(np.diagonal(np.outer(x, x), shift) ** 2)
        shift += 1
    return total


def _places_of_split(x):
    places = np.array([0, 1])
    part = np.split(x * 1, places)[2]
    places[:] = [1, 2]
    return np.sum(part**2)


def _bounds_of_slices(x):
    y, start = np.zeros(4), np.array(0)
    while start < 3:
        y[start:] = y[start:] + x[start:] ** 2
        start[...] += 1
    return np.sum(y * x)


@pytest.mark.parametrize(
    "f",
    [
        _mask_of_where,
        _mask_of_reductions,
        _conditions_of_select,
        _selector_of_choose,
        _indices_of_take,
        _order_of_take_along_axis,
        _counts_of_repeat,
        _shift_of_roll,
        _places_of_split,
        _bounds_of_slices,
    ],
)
def test_masks_and_indices_count_as_they_were_when_they_were_used(f):
    x = np.array([1.3, 2.3, 3.3, 4.3])
    want = differences(f, x)
    close(gradient(f, x)[0], want, rtol=1e-8)
    close(np.array([jvp(f, (x,), (v,))[1] for v in np.eye(4)]), want, rtol=1e-8)


def test_a_mask_may_change_after_a_pullback_was_made():
    mask = np.ones(4, bool)
    _, back = pullback(lambda x: np.sum(np.where(mask, x, 0.0)), np.ones(4))
    mask[:] = False
    close(back(1.0)[0], np.ones(4))


def test_ranges_and_other_sequences_are_indices_as_arrays_are():
    def f(x):
        A = 2.0 * np.eye(3)
        A[range(3), range(3)] += x
        A[range(2)] *= x[0]
        y = x * 1.0
        y[range(0, 3, 2)] = x[array.array("i", [1, 1])]
        np.add.at(y, range(2), x[range(1, 3)])
        return np.sum(A * A) + np.sum(y * y * x[range(2, -1, -1)])

    agree(f, np.array([0.7, -0.4, 1.3]))
